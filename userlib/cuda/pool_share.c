// SPDX-License-Identifier: MIT
/*
 * Pools for other processes.
 *
 * A pool's descriptor is a sealed page that says which pool of which GPU this
 * is.  Memory of it goes over piece by piece, as memory does that has a handle
 * (ipc.c).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define MAGIC_POOL	0x706c7031u
#define MAGIC_POINTER	0x706c7032u
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

/* What the descriptor of a pool holds */
struct paper {
	uint32_t magic;
	uint32_t device;
	uint64_t pool;
};

_Static_assert(sizeof(struct drv_name) <= sizeof(CUmemPoolPtrExportData),
	       "fits");

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool_handle,
					  CUmemAllocationHandleType type,
					  unsigned long long flags)
{
	struct paper paper = { .magic = MAGIC_POOL };
	CUmemoryPool pool;
	int fd;
	CUresult err = drv_pool_get(pool_handle, &pool);

	if (err)
		return err;
	paper.device = drv_device_name(pool->dev);
	paper.pool = pool->id;
	if (!handle || flags || pool->imported ||
	    type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(pool->props.handleTypes & type))
		err = CUDA_ERROR_INVALID_VALUE;
	drv_obj_put(&pool->obj);
	if (err)
		return err;
	fd = memfd_create("peerlane-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (write(fd, &paper, sizeof(paper)) != (ssize_t)sizeof(paper) ||
	    fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*(int *)handle = fd;
	return CUDA_SUCCESS;
}

static CUresult read_paper(int fd, struct paper *paper,
			   struct drv_device **dev)
{
	if (fcntl(fd, F_GET_SEALS) != SEALS ||
	    pread(fd, paper, sizeof(*paper), 0) != (ssize_t)sizeof(*paper) ||
	    paper->magic != MAGIC_POOL)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = drv_device_of_name(paper->device);
	return *dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	struct drv_device *dev;
	struct paper paper;
	CUmemoryPool pool;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (fcntl((int)(intptr_t)handle, F_GETFD) < 0)
		return CUDA_ERROR_UNKNOWN;	/* no descriptor: NVIDIA's answer */
	err = read_paper((int)(intptr_t)handle, &paper, &dev);
	if (err)
		return err;
	props.location.id = dev->ordinal;
	err = drv_pool_new(dev, &props, &pool);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	pool->imported = true;
	pool->id = paper.pool;
	pthread_mutex_unlock(&drv.lock);
	*out = pool;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	struct drv_name name = { .magic = MAGIC_POINTER };
	struct drv_range *range;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	if (!range || range->kind != DRV_RANGE_POOL || range->addr != ptr ||
	    range->after || !range->pool->props.handleTypes) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		name.pool = range->pool->id;
		err = drv_name_memory(range, &name);
	}
	pthread_mutex_unlock(&drv.lock);
	if (err)
		return err;
	memset(data, 0, sizeof(*data));
	memcpy(data, &name, sizeof(name));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool handle,
				CUmemPoolPtrExportData *data)
{
	struct drv_name name;
	CUmemoryPool pool;
	CUcontext ctx;
	int fd;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	err = drv_pool_get(handle, &pool);
	if (err)
		goto out;
	if (!ptr || !data || !pool->imported) {
		err = CUDA_ERROR_INVALID_VALUE;
		goto out_pool;
	}
	memcpy(&name, data, sizeof(name));
	if (name.pool != pool->id || name.device != drv_device_name(pool->dev))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = drv_take_fd(&name, MAGIC_POINTER, &fd);
	if (!err) {
		err = drv_open_memory(ctx, &name, fd, pool, ptr);
		close(fd);
	}
out_pool:
	drv_obj_put(&pool->obj);
out:
	drv_ctx_put(ctx);
	return err;
}
