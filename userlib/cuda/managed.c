// SPDX-License-Identifier: MIT
/*
 * Managed memory: memory of the GPU that the CPU reaches through the coherent
 * window, so it is there only with one.  It stays where it is: a prefetch is
 * checked and written down, an advice too, and neither moves anything.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define PAGE		4096ull

/* Of one page */
struct pln_advice {
	bool mostly_read;
	CUmemLocation preferred;	/* type 0: none */
	CUmemLocation prefetched;
	uint32_t by;			/* devices */
	bool by_host;
};

PLN_PATCHABLE(cuMemAllocManaged, CUdeviceptr *ptr, size_t size,
	      unsigned int flags)
{
	CUdeviceptr got;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	if (!ptr || !size ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (!(ctx->file->features & PLN_GPU_FEAT_COHERENT)) {
		pln_log("cuMemAllocManaged: the GPU has no coherent window, so the CPU cannot reach its memory");
		err = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		err = pln_device_alloc(ctx, size, PLN_RANGE_MANAGED, &got);
	}
	if (!err)
		*ptr = got;
	pln_ctx_put(ctx);
	return err;
}

/* The managed memory that [@ptr, @ptr + @n) is in; pln.lock is held */
static struct pln_range *managed(CUdeviceptr ptr, size_t n)
{
	struct pln_range *range = n ? pln_range_find(ptr, n) : NULL;

	return range && range->kind == PLN_RANGE_MANAGED &&
	       pln_span_has(ptr, n, range->addr, range->size) ? range : NULL;
}

/* The advice on the pages of managed memory; pln.lock is held */
static CUresult pages_of(CUdeviceptr ptr, size_t n, struct pln_advice **page,
			 size_t *count)
{
	struct pln_range *range = managed(ptr, n);
	uint64_t first;

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	if (!range->advice)
		range->advice = calloc((range->size + PAGE - 1) / PAGE,
				       sizeof(*range->advice));
	if (!range->advice)
		return CUDA_ERROR_OUT_OF_MEMORY;
	first = (ptr - range->addr) / PAGE;
	*page = range->advice + first;
	*count = (ptr - range->addr + n - 1) / PAGE - first + 1;
	return CUDA_SUCCESS;
}

/* CUDA 11's way of naming a place: a device, or -1 */
static CUmemLocation place_of(CUdevice dev)
{
	return (CUmemLocation){
		dev == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST :
				       CU_MEM_LOCATION_TYPE_DEVICE,
		dev == CU_DEVICE_CPU ? 0 : dev,
	};
}

static CUresult check_place(const CUmemLocation *where)
{
	switch (where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return pln_device_get(where->id) ? CUDA_SUCCESS :
						   CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void advise(struct pln_advice *page, CUmem_advise advice,
		   const CUmemLocation *where)
{
	bool set = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		page->mostly_read = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		page->preferred = *where;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		memset(&page->preferred, 0, sizeof(page->preferred));
		break;
	default:
		if (where->type != CU_MEM_LOCATION_TYPE_DEVICE)
			page->by_host = set;
		else if (set)
			page->by |= 1u << where->id;
		else
			page->by &= ~(1u << where->id);
	}
}

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t n, CUmem_advise advice,
			CUmemLocation where)
{
	struct pln_advice *page;
	size_t count;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
	    advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	/* These two name no place */
	if (advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
	    advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
	    advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		err = check_place(&where);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	err = pages_of(ptr, n, &page, &count);
	for (size_t i = 0; !err && i < count; i++)
		advise(&page[i], advice, &where);
	pthread_mutex_unlock(&pln.lock);
	return err;
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t n, CUmem_advise advice,
		     CUdevice dev)
{
	return cuMemAdvise_v2(ptr, n, advice, place_of(dev));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t n, CUmemLocation where,
			       unsigned int flags, CUstream handle)
{
	struct pln_advice *page;
	CUstream stream;
	size_t count;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	pln_obj_put(&stream->obj);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	err = check_place(&where);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	err = pages_of(ptr, n, &page, &count);
	for (size_t i = 0; !err && i < count; i++)
		page[i].prefetched = where;
	pthread_mutex_unlock(&pln.lock);
	return err;
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t n, CUdevice dev,
			    CUstream stream)
{
	return cuMemPrefetchAsync_v2(ptr, n, place_of(dev), 0, stream);
}

/* ---- what was said about it ---- */

static bool same_place(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

/* Of all pages alike, or no place */
static CUmemLocation common(const struct pln_advice *page, size_t count,
			    size_t offset)
{
	CUmemLocation none = { 0 }, first, other;

	memcpy(&first, (const char *)page + offset, sizeof(first));
	for (size_t i = 1; i < count; i++) {
		memcpy(&other, (const char *)&page[i] + offset, sizeof(other));
		if (!same_place(&first, &other))
			return none;
	}
	return first;
}

/* As the older attributes give it: a device, -1 the host, -2 none */
static int number_of(const CUmemLocation *where)
{
	return !where->type ? CU_DEVICE_INVALID :
	       where->type == CU_MEM_LOCATION_TYPE_DEVICE ? where->id :
	       CU_DEVICE_CPU;
}

static void accessed_by(const struct pln_advice *page, size_t count, int *out,
			size_t room)
{
	uint32_t by = page[0].by;
	bool host = page[0].by_host;
	size_t n = 0;

	for (size_t i = 1; i < count; i++) {
		by &= page[i].by;
		host = host && page[i].by_host;
	}
	for (int dev = 0; dev < PLN_MAX_DEVICES && n < room; dev++)
		if (by & 1u << dev)
			out[n++] = dev;
	if (host && n < room)
		out[n++] = CU_DEVICE_CPU;
	while (n < room)
		out[n++] = CU_DEVICE_INVALID;
}

/* pln.lock is held */
static CUresult range_attribute(const struct pln_advice *page, size_t count,
				CUmem_range_attribute attr, void *data,
				size_t size)
{
	size_t offset = offsetof(struct pln_advice, preferred);
	CUmemLocation where;
	bool all = true;

	if (!data || !size || size % sizeof(int) ||
	    (attr != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != sizeof(int)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		for (size_t i = 0; i < count; i++)
			all = all && page[i].mostly_read;
		*(int *)data = all;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		accessed_by(page, count, data, size / sizeof(int));
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		offset = offsetof(struct pln_advice, prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	where = common(page, count, offset);
	if (attr == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION ||
	    attr == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION)
		*(int *)data = number_of(&where);
	else if (attr == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE ||
		 attr == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE)
		*(int *)data = (int)where.type;
	else
		*(int *)data = where.id;
	return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes,
				 CUmem_range_attribute *attrs, size_t count,
				 CUdeviceptr ptr, size_t n)
{
	struct pln_advice *page;
	size_t pages;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!data || !sizes || !attrs || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	err = pages_of(ptr, n, &page, &pages);
	for (size_t i = 0; i < count && !err; i++)
		err = range_attribute(page, pages, attrs[i], data[i], sizes[i]);
	pthread_mutex_unlock(&pln.lock);
	return err;
}

CUresult cuMemRangeGetAttribute(void *data, size_t size,
				CUmem_range_attribute attr, CUdeviceptr ptr,
				size_t n)
{
	return cuMemRangeGetAttributes(&data, &size, &attr, 1, ptr, n);
}

/* The CPU and all streams reach it at any time, so there is nothing to do */
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr ptr, size_t n,
				unsigned int flags)
{
	struct pln_range *range;
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	pln_obj_put(&stream->obj);
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	range = managed(ptr, 1);
	if (!range || range->addr != ptr || (n && n != range->size))
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pln.lock);
	return err;
}
