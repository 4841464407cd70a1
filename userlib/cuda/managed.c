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

/* Of the pages from @first on, up to where the next one begins; ordered */
struct drv_advice {
	struct drv_advice *next;
	uint64_t first;
	bool mostly_read;
	CUmemLocation preferred;	/* type 0: none */
	CUmemLocation prefetched;
	uint32_t by;			/* devices */
	bool by_host;
};

DRV_PATCHABLE(cuMemAllocManaged, CUdeviceptr *ptr, size_t size,
	      unsigned int flags)
{
	CUdeviceptr got;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!ptr || !size ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (!(ctx->file->features & PLN_GPU_FEAT_COHERENT)) {
		drv_log("cuMemAllocManaged: the GPU has no coherent window, so the CPU cannot reach its memory");
		err = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		err = drv_device_alloc(ctx, size, DRV_RANGE_MANAGED, &got);
	}
	if (!err)
		*ptr = got;
	drv_ctx_put(ctx);
	return err;
}

/* The managed memory that [@ptr, @ptr + @n) is in; drv.lock is held */
static struct drv_range *managed(CUdeviceptr ptr, size_t n)
{
	struct drv_range *range = n ? drv_range_find(ptr, n) : NULL;

	return range && range->kind == DRV_RANGE_MANAGED &&
	       drv_span_has(ptr, n, range->addr, range->size) ? range : NULL;
}

/* Of memory that nothing has been said about */
static const struct drv_advice silence;

struct pages {
	struct drv_range *range;
	uint64_t first, end;		/* in it */
};

/* The pages of managed memory that are meant; drv.lock is held */
static CUresult pages_of(CUdeviceptr ptr, size_t n, struct pages *pages)
{
	struct drv_range *range = managed(ptr, n);

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	pages->range = range;
	pages->first = (ptr - range->addr) / PAGE;
	pages->end = (ptr - range->addr + n - 1) / PAGE + 1;
	return CUDA_SUCCESS;
}

/* What was said about the first of @pages */
static const struct drv_advice *advice_on(const struct pages *pages)
{
	const struct drv_advice *a = pages->range->advice;

	while (a && a->next && a->next->first <= pages->first)
		a = a->next;
	return a ? a : &silence;
}

/* The advice that begins at @page, divided from the one before; NULL: no memory */
static struct drv_advice *divide(struct drv_advice *a, uint64_t page)
{
	struct drv_advice *rest;

	while (a->next && a->next->first <= page)
		a = a->next;
	if (a->first == page)
		return a;
	rest = malloc(sizeof(*rest));
	if (!rest)
		return NULL;
	*rest = *a;
	rest->first = page;
	a->next = rest;
	return rest;
}

static bool same_place(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

static bool same_advice(const struct drv_advice *a, const struct drv_advice *b)
{
	return a->mostly_read == b->mostly_read && a->by == b->by &&
	       a->by_host == b->by_host &&
	       same_place(&a->preferred, &b->preferred) &&
	       same_place(&a->prefetched, &b->prefetched);
}

/* Of neighbours that say the same one is enough */
static void join(struct drv_advice *a)
{
	struct drv_advice *next;

	while ((next = a->next)) {
		if (same_advice(a, next)) {
			a->next = next->next;
			free(next);
		} else {
			a = next;
		}
	}
}

void drv_advice_free(struct drv_advice *a)
{
	struct drv_advice *next;

	for (; a; a = next) {
		next = a->next;
		free(a);
	}
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
		return drv_device_get(where->id) ? CUDA_SUCCESS :
						   CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

#define PREFETCH	0		/* beside CUmem_advise, which begins at 1 */

static void advise(struct drv_advice *page, int advice,
		   const CUmemLocation *where)
{
	bool set = advice == CU_MEM_ADVISE_SET_ACCESSED_BY;

	switch (advice) {
	case PREFETCH:
		page->prefetched = *where;
		break;
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

/* Write @advice down for the memory at @ptr */
static CUresult note(CUdeviceptr ptr, size_t n, int advice,
		     const CUmemLocation *where)
{
	struct drv_advice *a, *behind = NULL;
	struct pages pages;
	CUresult err;

	pthread_mutex_lock(&drv.lock);
	err = pages_of(ptr, n, &pages);
	if (err)
		goto out;
	if (!pages.range->advice)
		pages.range->advice = calloc(1, sizeof(*a));
	a = pages.range->advice;
	if (a)
		a = divide(a, pages.first);
	if (a && pages.end * PAGE < pages.range->size) {
		behind = divide(a, pages.end);
		if (!behind)
			a = NULL;
	}
	if (!a)
		err = CUDA_ERROR_OUT_OF_MEMORY;
	for (; a && a != behind; a = a->next)
		advise(a, advice, where);
	if (pages.range->advice)
		join(pages.range->advice);
out:
	pthread_mutex_unlock(&drv.lock);
	return err;
}

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t n, CUmem_advise advice,
			CUmemLocation where)
{
	CUresult err = drv_ready();

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
	return err ? err : note(ptr, n, (int)advice, &where);
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t n, CUmem_advise advice,
		     CUdevice dev)
{
	return cuMemAdvise_v2(ptr, n, advice, place_of(dev));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t n, CUmemLocation where,
			       unsigned int flags, CUstream handle)
{
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	drv_obj_put(&stream->obj);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	err = check_place(&where);
	return err ? err : note(ptr, n, PREFETCH, &where);
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t n, CUdevice dev,
			    CUstream stream)
{
	return cuMemPrefetchAsync_v2(ptr, n, place_of(dev), 0, stream);
}

/* ---- what was said about it ---- */

/* Of all pages alike, or no place */
static CUmemLocation common(const struct drv_advice *a, uint64_t end,
			    bool preferred)
{
	CUmemLocation none = { 0 };
	CUmemLocation first = preferred ? a->preferred : a->prefetched;

	while ((a = a->next) && a->first < end)
		if (!same_place(&first, preferred ? &a->preferred :
						    &a->prefetched))
			return none;
	return first;
}

/* As the older attributes give it: a device, -1 the host, -2 none */
static int number_of(const CUmemLocation *where)
{
	return !where->type ? CU_DEVICE_INVALID :
	       where->type == CU_MEM_LOCATION_TYPE_DEVICE ? where->id :
	       CU_DEVICE_CPU;
}

static void accessed_by(const struct drv_advice *a, uint64_t end, int *out,
			size_t room)
{
	uint32_t by = a->by;
	bool host = a->by_host;
	size_t n = 0;

	while ((a = a->next) && a->first < end) {
		by &= a->by;
		host = host && a->by_host;
	}
	for (int dev = 0; dev < DRV_MAX_DEVICES && n < room; dev++)
		if (by & 1u << dev)
			out[n++] = dev;
	if (host && n < room)
		out[n++] = CU_DEVICE_CPU;
	while (n < room)
		out[n++] = CU_DEVICE_INVALID;
}

/* drv.lock is held */
static CUresult range_attribute(const struct pages *pages,
				CUmem_range_attribute attr, void *data,
				size_t size)
{
	const struct drv_advice *a = advice_on(pages);
	CUmemLocation where;
	bool preferred = true, all;

	if (!data || !size || size % sizeof(int) ||
	    (attr != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && size != sizeof(int)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		all = a->mostly_read;
		while ((a = a->next) && a->first < pages->end)
			all = all && a->mostly_read;
		*(int *)data = all;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		accessed_by(a, pages->end, data, size / sizeof(int));
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		preferred = false;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	where = common(a, pages->end, preferred);
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
	struct pages pages;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!data || !sizes || !attrs || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	err = pages_of(ptr, n, &pages);
	for (size_t i = 0; i < count && !err; i++)
		err = range_attribute(&pages, attrs[i], data[i], sizes[i]);
	pthread_mutex_unlock(&drv.lock);
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
	struct drv_range *range;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	drv_obj_put(&stream->obj);
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = managed(ptr, 1);
	if (!range || range->addr != ptr || (n && n != range->size))
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	return err;
}
