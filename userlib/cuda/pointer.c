// SPDX-License-Identifier: MIT
/*
 * What a pointer is: attributes, and places for copies.
 */
#include <string.h>

#include "internal.h"

/* ---- what is this pointer? ---- */

/*
 * Memory by hand must have been asked for so: a real GPU might have put it where
 * other devices do not reach.  Here it can be exported all the same.
 */
static bool rdma_promised(const struct drv_range *range)
{
	if (range->kind == DRV_RANGE_VMM)
		return range->chunk->mem->prop.allocFlags.gpuDirectRDMACapable;
	return drv_rdma_capable(range);
}

/* Of memory by hand, the range of addresses that it is mapped into */
static struct drv_span span_of(const struct drv_range *range)
{
	struct drv_span own = { range->addr, range->size }, *reserved = NULL;

	if (range->kind == DRV_RANGE_VMM)
		reserved = drv_span_find(&drv.reservations, range->addr, 1);
	return reserved ? *reserved : own;
}

/* The devices that may, of memory for which the program says that */
static uint32_t readers_of(const struct drv_range *range)
{
	if (range->kind == DRV_RANGE_VMM)
		return range->readers;
	if (range->kind == DRV_RANGE_POOL || range->kind == DRV_RANGE_IMPORTED)
		return range->pool->peers | 1u << range->pool->dev->ordinal;
	return ~0u;
}

bool drv_range_reached(const struct drv_range *range, CUcontext ctx)
{
	return readers_of(range) & 1u << ctx->dev->ordinal &&
	       (!drv_is_apart(range) || drv_ctx_reaches(ctx, range->ctx));
}

static CUresult pointer_attribute(const struct drv_range *range, uint64_t ptr,
				  CUpointer_attribute attr, void *data)
{
	bool device = drv_on_device(range);
	CUcontext ctx;

	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = range->kind == DRV_RANGE_IMPORTED ?
				     NULL : range->ctx;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = device ? CU_MEMORYTYPE_DEVICE :
						 CU_MEMORYTYPE_HOST;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		if (device && drv_ctx_current_any(&ctx))
			return CUDA_ERROR_INVALID_CONTEXT;
		if (device && !drv_range_reached(range, ctx))
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = ptr;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (device && range->kind != DRV_RANGE_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(int *)data = range->sync_memops;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = range->id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = range->kind == DRV_RANGE_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(int *)data = range->kind == DRV_RANGE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		/* Of memory of another process: who opened it */
		*(int *)data = (range->kind == DRV_RANGE_IPC ?
				range->ctx->dev : range->dev)->ordinal;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = span_of(range).addr;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = span_of(range).size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = range->kind == DRV_RANGE_VMM ?
			range->chunk->mem->prop.requestedHandleTypes :
			range->pool ? range->pool->props.handleTypes : 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(int *)data = device && rdma_promised(range) &&
			       (range->chunk->file->features &
				PLN_GPU_FEAT_DMABUF);
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data =
			CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = range->pool;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = device ? range->chunk->size : range->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = device ? range->chunk->addr :
						range->addr;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = device ? range->chunk->id :
						       range->id;
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		if (!device)
			return CUDA_ERROR_NOT_SUPPORTED;
		/* Nobody needs one: the kernel's driver goes by the address */
		*(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS *)data =
			(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS){ 0, 0 };
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	struct drv_range *range;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	err = range ? pointer_attribute(range, ptr, attr, data) :
		      CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	return err;
}

/* The answer for memory that the library does not know */
static CUresult pointer_default(CUpointer_attribute attr, uint64_t ptr,
				void *data)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = (void *)(uintptr_t)ptr;
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = NULL;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = CU_DEVICE_INVALID;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(int *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attrs,
				void **data, CUdeviceptr ptr)
{
	struct drv_range *range;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!n || !attrs || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++)
		if (!data[i])
			return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	for (unsigned int i = 0; i < n && !err; i++) {
		/* No value for this kind of memory is no error here */
		if (range && drv_on_device(range) &&
		    range->kind != DRV_RANGE_MANAGED &&
		    attrs[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
			*(void **)data[i] = NULL;
		else if (range &&
			 attrs[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
			 pointer_attribute(range, ptr, attrs[i], data[i]))
			*(CUdeviceptr *)data[i] = 0;
		else if (range)
			err = pointer_attribute(range, ptr, attrs[i], data[i]);
		else
			err = pointer_default(attrs[i], ptr, data[i]);
	}
	pthread_mutex_unlock(&drv.lock);
	return err;
}

/* @left, of the memory at @addr, has ended: it keeps the device open no longer */
static void forget_left(uint64_t addr, struct drv_job *left)
{
	struct drv_range *range;

	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(addr, 1);
	if (range && range->left == left) {
		range->left = NULL;
		drv_job_put(left);	/* not the last reference */
	}
	pthread_mutex_unlock(&drv.lock);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	struct drv_job *left = NULL;
	struct drv_range *range;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	if (range && drv_on_device(range)) {
		range->sync_memops = *(const unsigned int *)value != 0;
		if (range->sync_memops)
			left = drv_job_ref(range->left);
	} else {
		err = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&drv.lock);
	if (left)
		err = drv_job_wait(left, true);
	if (left && !err)
		forget_left(ptr, left);
	drv_job_put(left);
	return err;
}

CUresult drv_left(CUstream stream, uint64_t addr)
{
	struct drv_job *now = NULL;
	struct drv_range *range;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(addr, 1);
	/* Another thread may have said meanwhile that nothing is to be left */
	if (range)
		now = drv_stream_left(stream, range->sync_memops ? NULL :
				      &range->left);
	pthread_mutex_unlock(&drv.lock);
	if (now)
		err = drv_job_wait(now, true);
	drv_job_put(now);
	return err;
}

/* ---- places, for copies ---- */

/*
 * The default stream of the memory's context.  Memory made by cuMemCreate(), or
 * of a pool, has none, and that of another process may be open in one on another
 * GPU; it is at home in any context of its device, and where the program has none
 * there, in one of the library's own, which goes with the memory.  drv.lock is held.
 */
static CUresult home(const struct drv_range *range, CUstream *stream)
{
	struct drv_chunk *chunk = range->chunk;
	CUresult err = CUDA_SUCCESS;
	CUcontext ctx = drv_is_far(range) ? NULL : range->ctx;

	if (!ctx)
		LIST_FOREACH(ctx, &range->dev->contexts, link)
			if (ctx->legacy && ctx->file == chunk->file)
				break;
	if (!ctx) {
		if (!chunk->home) {
			err = drv_ctx_new(range->dev, 0, false, 0,
					  &chunk->home);
			/* No handle of the program leads to it */
			if (!err)
				drv_obj_del(&chunk->home->obj);
		}
		ctx = chunk->home;
	}
	if (err)
		return err;
	if (!ctx->legacy)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	/* A reset that nobody had noticed yet */
	if (ctx->file != chunk->file)
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	*stream = ctx->legacy;
	return CUDA_SUCCESS;
}

CUresult drv_place_get(uint64_t addr, size_t n, struct drv_place *place)
{
	struct drv_range *range;
	CUresult err = CUDA_SUCCESS;

	memset(place, 0, sizeof(*place));
	if (!addr || addr + (n - 1) < addr)
		return CUDA_ERROR_INVALID_VALUE;
	place->offset = place->addr = addr;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(addr, n);
	if (!range) {
		;			/* pageable host memory */
	} else if (!drv_span_has(addr, n, range->addr, range->size)) {
		/*
		 * A host buffer may be registered in part.  Device memory, or
		 * what the library allocated, ends where it ends.
		 */
		if (range->kind != DRV_RANGE_REGISTERED)
			err = CUDA_ERROR_INVALID_VALUE;
	} else if (!drv_on_device(range)) {
		place->pinned = true;
		place->io = range->kind == DRV_RANGE_REGISTERED &&
			    range->flags & CU_MEMHOSTREGISTER_IOMEMORY;
	} else if (atomic_load(&range->chunk->file->lost)) {
		err = CUDA_ERROR_DEVICE_UNAVAILABLE;
	} else if (range->kind == DRV_RANGE_VMM && !range->readers) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		err = home(range, &place->stream);
	}
	if (place->stream) {
		place->device = true;
		place->sync_memops = range->sync_memops ||
			(place->stream->ctx->flags & CU_CTX_SYNC_MEMOPS);
		place->handle = range->chunk->handle;
		place->readers = place->writers = readers_of(range);
		if (range->kind == DRV_RANGE_VMM)
			place->writers = range->writers;
		if (place->readers != ~0u)
			place->peers = place->readers;
		else if (drv_is_far(range))
			place->peers = 1u << range->ctx->dev->ordinal;
		place->offset = addr - range->chunk->addr;
		atomic_fetch_add(&place->stream->obj.refs, 1);
		place->owner = range->ctx;
		place->apart = drv_is_apart(range);
		if (place->owner)
			atomic_fetch_add(&place->owner->obj.refs, 1);
	}
	pthread_mutex_unlock(&drv.lock);
	return err;
}

/*
 * Memory by hand and of pools is for the devices that were given a right.  Any
 * context may copy the rest, and work that copies nothing needs peer access to that
 * of another one's device.  Host memory has no such rights.
 */
CUresult drv_place_may(CUcontext ctx, const struct drv_place *place,
		       unsigned int does)
{
	uint32_t who = does & DRV_WRITES ? place->writers : place->readers;
	bool may = true;

	if (!place->device)
		return CUDA_SUCCESS;
	if (place->apart && does & DRV_ALONE) {
		pthread_mutex_lock(&drv.lock);
		may = drv_ctx_reaches(ctx, place->owner);
		pthread_mutex_unlock(&drv.lock);
	}
	return may && who & 1u << ctx->dev->ordinal ? CUDA_SUCCESS :
						      CUDA_ERROR_INVALID_VALUE;
}

/*
 * How much of [@addr, @addr + @n) one place can be: memory that is mapped by
 * hand goes on where the next map begins.
 */
size_t drv_place_piece(uint64_t addr, size_t n)
{
	struct drv_range *range;

	pthread_mutex_lock(&drv.lock);
	range = n ? drv_range_find(addr, 1) : NULL;
	if (range && range->kind == DRV_RANGE_VMM &&
	    n > range->addr + range->size - addr)
		n = range->addr + range->size - addr;
	pthread_mutex_unlock(&drv.lock);
	return n;
}

void drv_place_put(struct drv_place *place)
{
	if (place->stream) {
		drv_obj_put(&place->stream->obj);
		drv_ctx_put(place->owner);
	}
	place->stream = NULL;
}

bool drv_place_gone(const struct drv_place *place, const struct drv_job *by)
{
	if (by)
		return atomic_load(&by->cancelled);
	return place->stream && place->owner &&
	       atomic_load(&place->owner->destroyed);
}
