// SPDX-License-Identifier: MIT
/*
 * Pools of memory: making them, their attributes, the one that a device uses.
 * slab.c has the memory.  A pool belongs to a device and to no context.
 */
#include <stdlib.h>

#include "internal.h"

/* Last reference: it has no slabs any more */
void drv_pool_free(struct CUmemPoolHandle_st *pool)
{
	pthread_mutex_lock(&drv.lock);
	LIST_REMOVE(pool, link);
	pthread_mutex_unlock(&drv.lock);
	free(pool);
}

CUresult drv_pool_new(struct drv_device *dev, const CUmemPoolProps *props,
		      CUmemoryPool *out)
{
	CUmemoryPool pool = calloc(1, sizeof(*pool));
	CUresult err;

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->obj.type = DRV_POOL;
	atomic_init(&pool->obj.refs, 1);
	pool->dev = dev;
	pool->props = *props;
	pool->id = (uint64_t)drv_now() << 20 ^ atomic_fetch_add(&drv.next_id, 1);
	for (int i = 0; i < DRV_POOL_REUSES; i++)
		pool->reuse[i] = 1;
	LIST_INIT(&pool->slabs);
	pthread_mutex_lock(&drv.lock);
	err = drv_obj_add(&pool->obj);
	if (!err)
		LIST_INSERT_HEAD(&dev->pools, pool, link);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		free(pool);
	else
		*out = pool;
	return err;
}

/* The pool that a handle names; a reference */
CUresult drv_pool_get(CUmemoryPool handle, CUmemoryPool *out)
{
	CUresult err;

	*out = drv_obj_get(handle, DRV_POOL, CUDA_ERROR_INVALID_VALUE, &err);
	return err;
}

static CUresult default_pool(struct drv_device *dev, CUmemoryPool *out)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev->ordinal },
	};
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&one);
	if (!dev->default_pool)
		err = drv_pool_new(dev, &props, &dev->default_pool);
	pthread_mutex_unlock(&one);
	*out = dev->default_pool;
	return err;
}

/* The one that cuMemAllocAsync() uses; a reference when @get */
CUresult drv_pool_current(struct drv_device *dev, bool get, CUmemoryPool *out)
{
	CUresult err = default_pool(dev, out);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (dev->pool)
		*out = dev->pool;
	if (get)
		atomic_fetch_add(&(*out)->obj.refs, 1);
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

static CUresult check_props(const CUmemPoolProps *props)
{
	if (!props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    (props->handleTypes & ~(unsigned int)
	     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ||
	    props->win32SecurityAttributes || props->usage)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(props->reserved); i++)
		if (props->reserved[i])
			return CUDA_ERROR_INVALID_VALUE;
	/* Pools of host memory could be had so too */
	if (props->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	    props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	    props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !drv_device_get(props->location.id))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	CUresult err = drv_ready();

	if (!err && !pool)
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = check_props(props);
	return err ? err : drv_pool_new(drv_device_get(props->location.id),
					props, pool);
}

/* Memory of it that is used stays until it is freed */
CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	CUmemoryPool pool;
	bool keep;
	CUresult err = drv_pool_get(handle, &pool);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	keep = pool == pool->dev->default_pool || pool->gone;
	if (!keep) {
		pool->gone = true;
		drv_obj_del(&pool->obj);
		if (pool->dev->pool == pool)
			pool->dev->pool = NULL;
	}
	pthread_mutex_unlock(&drv.lock);
	if (keep) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		drv_pool_trim(pool, 0);
		drv_obj_put(&pool->obj);	/* the table's */
	}
	drv_obj_put(&pool->obj);
	return err;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	CUmemoryPool pool;
	CUresult err = drv_pool_get(handle, &pool);

	if (err)
		return err;
	if (pool->imported)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		drv_pool_trim(pool, keep);
	drv_obj_put(&pool->obj);
	return err;
}

/* The pool that a handle names, with a reference, and drv.lock held */
static CUresult pool_lock(CUmemoryPool handle, CUmemoryPool *out)
{
	CUresult err = drv_pool_get(handle, out);

	if (!err)
		pthread_mutex_lock(&drv.lock);
	return err;
}

static void pool_unlock(CUmemoryPool pool)
{
	pthread_mutex_unlock(&drv.lock);
	drv_obj_put(&pool->obj);
}

/* The counter that attribute @attr is, or NULL */
static uint64_t *counter(CUmemoryPool pool, CUmemPool_attribute attr)
{
	switch (attr) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attr,
			       void *value)
{
	CUmemoryPool pool;
	CUresult err = pool_lock(handle, &pool);

	if (err)
		return err;
	if (value && attr >= 1 && attr <= DRV_POOL_REUSES)
		*(int *)value = pool->reuse[attr - 1];
	else if (value && counter(pool, attr))
		*(cuuint64_t *)value = *counter(pool, attr);
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pool_unlock(pool);
	return err;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attr,
			       void *value)
{
	CUmemoryPool pool;
	CUresult err = pool_lock(handle, &pool);

	if (err)
		return err;
	if (!value) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (attr >= 1 && attr <= DRV_POOL_REUSES) {
		pool->reuse[attr - 1] = *(const int *)value != 0;
	} else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		pool->threshold = *(const cuuint64_t *)value;
	} else if (*(const cuuint64_t *)value) {
		err = CUDA_ERROR_INVALID_VALUE;	/* marks can only be reset */
	} else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
		pool->reserved_high = pool->reserved;
	} else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
		pool->used_high = pool->used;
	} else {
		err = CUDA_ERROR_INVALID_VALUE;
	}
	pool_unlock(pool);
	return err;
}

/* Which other GPUs reach the memory of @pool */
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *desc,
			    size_t n)
{
	uint32_t peers, own;
	CUmemoryPool pool;
	CUresult err = pool_lock(handle, &pool);

	if (err)
		return err;
	own = 1u << pool->dev->ordinal;
	peers = pool->peers;
	if (n && !desc)
		err = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && !err; i++) {
		struct drv_device *dev = drv_device_get(desc[i].location.id);
		uint32_t bit;

		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_HOST ||
		    desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			err = CUDA_ERROR_NOT_SUPPORTED;
		else if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			 (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			  desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			err = CUDA_ERROR_INVALID_VALUE;
		else if (!dev)
			err = CUDA_ERROR_INVALID_DEVICE;
		if (err)
			break;
		bit = 1u << dev->ordinal;
		if (bit == own) {
			if (!desc[i].flags)
				err = CUDA_ERROR_INVALID_DEVICE;
		} else if (!desc[i].flags) {
			peers &= ~bit;
		} else if (drv_peers(dev, pool->dev)) {
			peers |= bit;
		} else {
			err = CUDA_ERROR_INVALID_DEVICE;
		}
	}
	if (!err)
		pool->peers = peers;
	pool_unlock(pool);
	return err;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
			    CUmemLocation *location)
{
	CUmemoryPool pool;
	uint32_t all;
	CUresult err = pool_lock(handle, &pool);

	if (err)
		return err;
	all = pool->peers | 1u << pool->dev->ordinal;
	if (!flags || !location ||
	    location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !drv_device_get(location->id))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = all & 1u << location->id ?
			 CU_MEM_ACCESS_FLAGS_PROT_READWRITE :
			 CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pool_unlock(pool);
	return err;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return default_pool(drv_device_get(dev), pool);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!pool || !drv_device_get(dev))
		return CUDA_ERROR_INVALID_VALUE;
	return drv_pool_current(drv_device_get(dev), false, pool);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
	CUmemoryPool pool;
	CUresult err = pool_lock(handle, &pool);

	if (err)
		return err;
	if (!drv_device_get(dev) || pool->dev != drv_device_get(dev) ||
	    pool->imported || pool->gone)
		err = CUDA_ERROR_INVALID_VALUE;
	else
		pool->dev->pool = pool == pool->dev->default_pool ? NULL : pool;
	pool_unlock(pool);
	return err;
}

/* CUDA 13's names for the same: pinned memory of a device is what there is */
static CUresult check_place(const CUmemLocation *location,
			    CUmemAllocationType type)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
				CUmemAllocationType type)
{
	CUresult err = check_place(location, type);

	return err ? err : cuDeviceGetDefaultMemPool(pool, location->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
			 CUmemAllocationType type)
{
	CUresult err = check_place(location, type);

	return err ? err : cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
			 CUmemoryPool pool)
{
	CUresult err = check_place(location, type);

	return err ? err : cuDeviceSetMemPool(location->id, pool);
}

