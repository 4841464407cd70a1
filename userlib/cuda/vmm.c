// SPDX-License-Identifier: MIT
/*
 * Virtual memory management: addresses, memory, and maps of one to the other.
 *
 * A map is a struct drv_range with a struct drv_chunk of the same span, which
 * has a reference on the memory.  Memory lives as long as a handle or a map.
 * It belongs to a device and to no context.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define GRANULE		(2 * MiB)	/* as on NVIDIA's GPUs */

void *drv_no_access(uint64_t addr, size_t size)
{
	return mmap((void *)(uintptr_t)addr, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		    -1, 0);
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t align,
			     CUdeviceptr addr, unsigned long long flags)
{
	struct drv_span *span;
	void *va = NULL;
	bool added;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!ptr || !size || size % GRANULE || flags || (align & (align - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	span = calloc(1, sizeof(*span));
	if (!span)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The wish is granted when the place is free */
	if (addr && addr % GRANULE == 0 && (!align || addr % align == 0)) {
		va = mmap((void *)(uintptr_t)addr, size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
			  MAP_FIXED_NOREPLACE, -1, 0);
		if (va != MAP_FAILED && (uintptr_t)va != addr)
			munmap(va, size);	/* a kernel without the flag */
		if ((uintptr_t)va != addr)
			va = NULL;
	}
	if (!va)
		va = drv_reserve(size, align);
	if (!va) {
		free(span);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	span->addr = (uintptr_t)va;
	span->size = size;
	pthread_mutex_lock(&drv.lock);
	added = tsearch(span, &drv.reservations, drv_span_cmp);
	pthread_mutex_unlock(&drv.lock);
	if (!added) {
		munmap(va, size);
		free(span);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = span->addr;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct drv_span *span;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	span = drv_span_find(&drv.reservations, ptr, 1);
	if (!span || span->addr != ptr || span->size != size ||
	    drv_range_find(ptr, size))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		tdelete(span, &drv.reservations, drv_span_cmp);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		return err;
	munmap((void *)(uintptr_t)ptr, size);
	free(span);
	return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	/* Host memory could be had so too */
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	    prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_NOT_SUPPORTED;
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ?
	       CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void drv_mem_free(struct drv_mem *mem)
{
	drv_handle_free(mem->file, mem->handle);
	drv_file_unuse(mem->file);
	free(mem);
}

/* Takes over @file and @kernel_handle, whatever the outcome */
static CUresult mem_new(struct drv_file *file, uint32_t kernel_handle,
			uint64_t size, uint64_t mmap_offset,
			const CUmemAllocationProp *prop, bool imported,
			CUmemGenericAllocationHandle *handle)
{
	struct drv_mem *mem = calloc(1, sizeof(*mem));
	CUresult err = CUDA_ERROR_OUT_OF_MEMORY;

	if (!mem) {
		drv_handle_free(file, kernel_handle);
		drv_file_unuse(file);
		return err;
	}
	mem->obj.type = DRV_MEM;
	atomic_init(&mem->obj.refs, 1);
	mem->file = file;
	mem->handle = kernel_handle;
	mem->size = size;
	mem->mmap_offset = mmap_offset;
	mem->prop = *prop;
	mem->imported = imported;
	mem->handles = 1;
	pthread_mutex_lock(&drv.lock);
	err = drv_obj_add(&mem->obj);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		drv_obj_put(&mem->obj);
	else
		*handle = (uintptr_t)mem;
	return err;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct pln_gpu_alloc req = { .size = size };
	struct drv_file *file;
	CUresult err = drv_ready();

	if (!err && (!handle || !size || size % GRANULE || flags))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = check_prop(prop);
	/* A program with such memory would export it so, without asking */
	if (!err && (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC))
		err = CUDA_ERROR_NOT_SUPPORTED;
	if (!err && !drv_device_get(prop->location.id))
		err = CUDA_ERROR_INVALID_DEVICE;
	if (!err)
		err = drv_file_use(drv_device_get(prop->location.id), &file);
	if (err)
		return err;
	while (drv_call(file->fd, PLN_GPU_IOC_ALLOC, &req)) {
		err = drv_file_error(file, errno);
		if (err == CUDA_ERROR_OUT_OF_MEMORY &&
		    drv_pools_squeeze(file->dev))
			continue;
		drv_file_unuse(file);
		return err;
	}
	return mem_new(file, req.handle, size, req.mmap_offset, prop, false,
		       handle);
}

/* With a reference */
static CUresult mem_get(CUmemGenericAllocationHandle handle,
			struct drv_mem **mem)
{
	CUresult err;

	*mem = drv_obj_get((void *)(uintptr_t)handle, DRV_MEM,
			   CUDA_ERROR_INVALID_VALUE, &err);
	return err;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct drv_mem *mem;
	bool last;
	CUresult err = drv_ready();

	if (err)
		return err;
	/* In one go, so that of two who give back the last one fails */
	pthread_mutex_lock(&drv.lock);
	mem = drv_obj_find((void *)(uintptr_t)handle, DRV_MEM);
	last = mem && !--mem->handles;
	if (last)
		drv_obj_del(&mem->obj);
	pthread_mutex_unlock(&drv.lock);
	if (!mem)
		return CUDA_ERROR_INVALID_VALUE;
	if (last)
		drv_obj_put(&mem->obj);		/* the table's */
	drv_obj_put(&mem->obj);
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
				     void *addr)
{
	struct drv_range *range;
	struct drv_mem *mem;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find((uintptr_t)addr, 1);
	if (!range || range->kind != DRV_RANGE_VMM) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		mem = range->chunk->mem;
		if (!mem->handles) {
			/* Released while mapped: the handle is back */
			err = drv_obj_add(&mem->obj);
			if (!err)
				atomic_fetch_add(&mem->obj.refs, 1);
		}
		if (!err) {
			mem->handles++;
			*handle = (uintptr_t)mem;
		}
	}
	pthread_mutex_unlock(&drv.lock);
	return err;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity,
				       const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	CUresult err = drv_ready();

	if (!err && (!granularity ||
		     option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = check_prop(prop);
	/* It would be the same for memory of a host's node, if there were any */
	if (err == CUDA_ERROR_NOT_SUPPORTED &&
	    prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		err = CUDA_SUCCESS;
	if (!err)
		*granularity = GRANULE;
	return err;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
				CUmemAllocationProp *prop,
				CUmemGenericAllocationHandle handle)
{
	struct drv_mem *mem;
	CUresult err = mem_get(handle, &mem);

	if (err)
		return err;
	if (prop)
		*prop = mem->prop;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	/* As on a real GPU, although it can be exported again */
	if (prop && mem->imported)
		prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	drv_obj_put(&mem->obj);
	return err;
}

/* ---- for other processes ---- */

CUresult cuMemExportToShareableHandle(void *shareable,
				      CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type,
				      unsigned long long flags)
{
	struct pln_gpu_export req = {
		.flags = O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT,
	};
	struct drv_mem *mem;
	CUresult err = mem_get(handle, &mem);

	if (err)
		return err;
	if (!shareable || flags ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(mem->prop.requestedHandleTypes & type))
		err = CUDA_ERROR_INVALID_VALUE;
	req.handle = mem->handle;
	req.size = mem->size;
	if (!err && drv_call(mem->file->fd, PLN_GPU_IOC_EXPORT, &req))
		err = drv_file_error(mem->file, errno);
	if (!err)
		*(int *)shareable = req.fd;
	drv_obj_put(&mem->obj);
	return err;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					void *shareable,
					CUmemAllocationHandleType type)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		/* The descriptor does not say; all memory of ours is */
		.allocFlags.gpuDirectRDMACapable = 1,
	};
	struct pln_gpu_import req = { .fd = (int)(intptr_t)shareable };
	struct drv_file *file;
	CUresult err = drv_ready();
	int error = EXDEV;

	if (err)
		return err;
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	/* The descriptor does not say which GPU's memory it is */
	for (int i = 0; i < drv.nr_devices && error == EXDEV; i++) {
		err = drv_file_use(&drv.devices[i], &file);
		if (err)
			return err;
		error = 0;
		if (drv_call(file->fd, PLN_GPU_IOC_IMPORT, &req)) {
			error = errno;
			if (error == EIO || error == ENODEV)
				err = drv_file_error(file, error);
			drv_file_unuse(file);
		}
		prop.location.id = i;
	}
	if (error)
		return err ? err : error == EBADF ? CUDA_ERROR_UNKNOWN :
		       CUDA_ERROR_INVALID_VALUE;
	return mem_new(file, req.handle, req.size, req.mmap_offset, &prop,
		       true, handle);
}

/* ---- maps ---- */

DRV_PATCHABLE(cuMemMap, CUdeviceptr ptr, size_t size, size_t offset,
	      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct drv_range *range = NULL;
	struct drv_chunk *chunk = NULL;
	struct drv_span *span;
	struct drv_mem *mem;
	CUresult err = mem_get(handle, &mem);

	if (err)
		return err;
	if (!ptr || ptr % GRANULE || !size || flags)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (offset || size != mem->size)
		err = CUDA_ERROR_NOT_SUPPORTED;	/* all or nothing */
	if (err)
		goto out;
	err = CUDA_ERROR_OUT_OF_MEMORY;
	range = calloc(1, sizeof(*range));
	chunk = calloc(1, sizeof(*chunk));
	if (!range || !chunk)
		goto out;
	chunk->addr = range->addr = ptr;
	chunk->size = range->size = size;
	chunk->handle = mem->handle;
	chunk->id = atomic_fetch_add(&drv.next_id, 1) + 1;
	chunk->file = mem->file;
	chunk->mem = mem;
	range->kind = DRV_RANGE_VMM;
	range->dev = mem->file->dev;
	range->chunk = chunk;
	pthread_mutex_lock(&drv.lock);
	span = drv_span_find(&drv.reservations, ptr, 1);
	if (!span || !drv_span_has(ptr, size, span->addr, span->size) ||
	    drv_range_find(ptr, size))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = drv_chunk_add(NULL, chunk);
	if (!err) {
		err = drv_range_add(range);
		if (err)
			drv_chunk_drop(chunk);
	}
	if (!err) {
		/* Now they have references of their own */
		drv_file_ref(mem->file);
		atomic_fetch_add(&mem->obj.refs, 1);
	}
	pthread_mutex_unlock(&drv.lock);
out:
	if (err) {
		free(range);
		free(chunk);
	}
	drv_obj_put(&mem->obj);
	return err;
}

/*
 * The map at @addr, when it is a whole one inside [@addr, @end).  drv.lock is
 * held.
 */
static struct drv_range *whole_map(uint64_t addr, uint64_t end)
{
	struct drv_range *range = drv_range_find(addr, 1);

	if (!range || range->kind != DRV_RANGE_VMM || range->addr != addr ||
	    range->size > end - addr)
		return NULL;
	return range;
}

/* Is [@ptr, @ptr + @size) made of whole maps?  drv.lock is held. */
static CUresult check_maps(CUdeviceptr ptr, size_t size)
{
	struct drv_range *range;
	uint64_t end;

	if (!ptr || !size || __builtin_add_overflow(ptr, size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t at = ptr; at < end; at += range->size) {
		range = whole_map(at, end);
		if (!range)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

DRV_PATCHABLE(cuMemUnmap, CUdeviceptr ptr, size_t size)
{
	struct drv_span *span;
	struct drv_range *range;
	size_t len = 0;
	CUresult err = drv_ready();

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	span = ptr && size ? drv_span_find(&drv.reservations, ptr, 1) : NULL;
	if (span && drv_span_has(ptr, size, span->addr, span->size) &&
	    !drv_range_find(ptr, size)) {
		pthread_mutex_unlock(&drv.lock);
		return CUDA_SUCCESS;	/* nothing is mapped there */
	}
	err = check_maps(ptr, size);
	pthread_mutex_unlock(&drv.lock);
	for (uint64_t at = ptr, end = ptr + size; !err && at < end; at += len) {
		pthread_mutex_lock(&drv.lock);
		range = whole_map(at, end);
		len = range ? range->size : 0;
		pthread_mutex_unlock(&drv.lock);
		err = range ? drv_take_and_free(at, DRV_KIND(VMM),
						CUDA_ERROR_INVALID_VALUE) :
			      CUDA_ERROR_INVALID_VALUE;	/* a race */
	}
	return err;
}

/* What devices may do with @range changes as @desc says; drv.lock is held */
static void set_access(struct drv_range *range, const CUmemAccessDesc *desc,
		       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bit = 1u << desc[i].location.id;

		range->readers &= ~bit;
		range->writers &= ~bit;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			range->readers |= bit;
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			range->writers |= bit;
	}
}

/* drv.lock is held */
static CUresult check_access(CUdeviceptr ptr, size_t size,
			     const CUmemAccessDesc *desc, size_t count)
{
	struct drv_range *range;
	CUresult err = check_maps(ptr, size);

	for (uint64_t at = ptr; !err && at < ptr + size; at += range->size) {
		range = whole_map(at, ptr + size);
		for (size_t i = 0; i < count; i++) {
			struct drv_device *dev =
				drv_device_get(desc[i].location.id);

			if (desc[i].flags && dev != range->dev &&
			    !drv_peers(dev, range->dev))
				err = CUDA_ERROR_INVALID_DEVICE;
		}
	}
	return err;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size,
			const CUmemAccessDesc *desc, size_t count)
{
	struct drv_range *range;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		     desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		     desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
		    !drv_device_get(desc[i].location.id))
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&drv.lock);
	err = check_access(ptr, size, desc, count);
	for (uint64_t at = ptr; !err && at < ptr + size; at += range->size) {
		uint32_t readers, writers;

		range = whole_map(at, ptr + size);
		readers = range->readers;
		writers = range->writers;
		set_access(range, desc, count);
		if (!readers == !range->readers)
			continue;
		if (range->readers)
			err = drv_map(range->chunk->file,
				      (void *)(uintptr_t)range->addr,
				      range->size,
				      range->chunk->mem->mmap_offset);
		else if (drv_no_access(range->addr, range->size) == MAP_FAILED)
			err = CUDA_ERROR_OUT_OF_MEMORY;
		if (err) {
			range->readers = readers;
			range->writers = writers;
		}
	}
	pthread_mutex_unlock(&drv.lock);
	return err;
}

CUresult cuMemGetAccess(unsigned long long *flags,
			const CUmemLocation *location, CUdeviceptr ptr)
{
	struct drv_range *range;
	uint32_t bit;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_device_get(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	bit = 1u << location->id;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	if (!range || range->kind != DRV_RANGE_VMM)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = range->writers & bit ?
			 CU_MEM_ACCESS_FLAGS_PROT_READWRITE :
			 range->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ :
						CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&drv.lock);
	return err;
}
