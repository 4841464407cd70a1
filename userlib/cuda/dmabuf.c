// SPDX-License-Identifier: MIT
/*
 * Memory as a dma-buf, for other drivers: one allocation or part of one, or a
 * range in which several are mapped by hand, one after the other.
 */
#include <errno.h>
#include <fcntl.h>

#include "internal.h"

#define HOST_PAGE	4096ull

struct parts {
	struct drv_file *file;
	unsigned int n;
	struct pln_gpu_part part[PLN_GPU_MAX_PARTS];
	struct drv_chunk *chunk[PLN_GPU_MAX_PARTS];
};

/* One part more, from @at on; drv.lock is held */
static CUresult add_part(struct parts *p, uint64_t at, uint64_t end,
			 uint64_t *next)
{
	struct drv_chunk *chunk = drv_span_find(&drv.chunks, at, 1);
	struct drv_range *range = drv_range_find(at, 1);
	uint64_t size;

	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	if (drv_on_device(range) && !drv_rdma_capable(range)) {
		drv_log("dma-buf export: memory of a pool, of another process, or managed memory, is not given to other devices");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!chunk)
		return p->n ? CUDA_ERROR_INVALID_VALUE :
			      CUDA_ERROR_NOT_SUPPORTED;
	if (atomic_load(&chunk->file->lost))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	if (!(chunk->file->features & PLN_GPU_FEAT_DMABUF))
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Only what is mapped by hand goes on in the next mapping */
	if (p->n && (chunk->file != p->file || !chunk->mem || !p->chunk[0]->mem))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->n == PLN_GPU_MAX_PARTS) {
		drv_log("dma-buf export: more than %d mappings", PLN_GPU_MAX_PARTS);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	size = end - at;
	if (size > chunk->addr + chunk->size - at)
		size = chunk->addr + chunk->size - at;
	p->file = chunk->file;
	p->chunk[p->n] = chunk;
	p->part[p->n] = (struct pln_gpu_part){
		.handle = chunk->handle,
		.offset = at - chunk->addr,
		.size = size,
	};
	p->n++;
	*next = at + size;
	return CUDA_SUCCESS;
}

static CUresult export(const struct parts *p, int *fd)
{
	struct pln_gpu_export one = {
		.handle = p->part[0].handle,
		.flags = O_CLOEXEC,
		.offset = p->part[0].offset,
		.size = p->part[0].size,
	};
	struct pln_gpu_export_parts many = {
		.parts = (uintptr_t)p->part,
		.nr_parts = p->n,
		.flags = O_CLOEXEC,
	};

	if (p->n > 1 && !(p->file->features & PLN_GPU_FEAT_PARTS)) {
		drv_log("dma-buf export: the range is mapped in %u pieces; this driver puts one into a dma-buf",
			p->n);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (p->n > 1 ?
	    drv_call(p->file->fd, PLN_GPU_IOC_EXPORT_PARTS, &many) :
	    drv_call(p->file->fd, PLN_GPU_IOC_EXPORT, &one))
		return drv_file_error(p->file, errno);
	*fd = p->n > 1 ? many.fd : one.fd;
	return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
				       size_t size, CUmemRangeHandleType type,
				       unsigned long long flags)
{
	struct parts p = { .n = 0 };
	uint64_t at = ptr, end;
	CUcontext ctx;
	bool last;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	drv_ctx_put(ctx);
	if (!handle || !size || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
	    (flags & ~(unsigned long long)
		     CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE) ||
	    ptr % HOST_PAGE || size % HOST_PAGE ||
	    __builtin_add_overflow(ptr, size, &end))
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&drv.lock);
	while (!err && at < end)
		err = add_part(&p, at, end, &at);
	for (unsigned int i = 0; i < p.n && !err; i++) {
		/* Before there is one: its memory may be freed meanwhile */
		p.chunk[i]->exports++;
		p.chunk[i]->users++;
	}
	pthread_mutex_unlock(&drv.lock);
	if (err)
		return err;
	err = export(&p, handle);
	for (unsigned int i = 0; i < p.n; i++) {
		pthread_mutex_lock(&drv.lock);
		p.chunk[i]->exports -= !!err;
		last = drv_chunk_drop(p.chunk[i]);
		pthread_mutex_unlock(&drv.lock);
		if (last)
			drv_chunk_free(p.chunk[i]);
	}
	return err;
}
