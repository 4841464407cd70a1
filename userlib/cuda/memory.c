// SPDX-License-Identifier: MIT
/*
 * Memory: device allocations, page-locked host memory, and what a pointer is.
 *
 * A device pointer is an address in the process that belongs to nothing else.
 * With a coherent window the memory itself is mapped there; without one the
 * place is only reserved, and the CPU faults on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define BLOCK_SIZE	(2 * MiB)
#define DIRECT_SIZE	(1 * MiB)	/* from here on: an allocation of its own */
#define UNIT		512ull
#define VA_ALIGN	(2 * MiB)
#define HOST_PAGE	4096ull

/* ---- trees of spans that do not overlap ---- */

struct span {
	uint64_t addr;
	uint64_t size;
};

_Static_assert(offsetof(struct pln_range, addr) == 0 &&
	       offsetof(struct pln_range, size) == 8, "starts with a span");
_Static_assert(offsetof(struct pln_chunk, addr) == 0 &&
	       offsetof(struct pln_chunk, size) == 8, "starts with a span");

static int span_cmp(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	/* Last bytes, not ends: a span may end at the top of all addresses */
	if (x->addr + (x->size - 1) < y->addr)
		return -1;
	if (y->addr + (y->size - 1) < x->addr)
		return 1;
	return 0;
}

static void *span_find(void *const *tree, uint64_t addr, uint64_t n)
{
	struct span key = { addr, n ? n : 1 };
	void **node;

	if (key.addr + (key.size - 1) < key.addr)
		return NULL;
	node = tfind(&key, tree, span_cmp);
	return node ? *node : NULL;
}

struct pln_range *pln_range_find(uint64_t addr, uint64_t n)
{
	return span_find(&pln.ranges, addr, n);
}

static bool inside(uint64_t addr, uint64_t n, uint64_t base, uint64_t size)
{
	return addr >= base && addr - base <= size && n <= size - (addr - base);
}

/* pln.lock is held */
static CUresult range_add(struct pln_range *range)
{
	struct pln_range **node, *other;

	if (atomic_load(&range->ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	for (;;) {
		node = tsearch(range, &pln.ranges, span_cmp);
		if (!node)
			return CUDA_ERROR_OUT_OF_MEMORY;
		other = *node;
		if (other == range)
			break;
		if (other->kind != PLN_RANGE_REGISTERED ||
		    range->kind == PLN_RANGE_REGISTERED)
			return other->kind == PLN_RANGE_DEVICE ?
			       CUDA_ERROR_INVALID_VALUE :
			       CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
		/* Unmapped by the program while still registered */
		tdelete(other, &pln.ranges, span_cmp);
		LIST_REMOVE(other, link);
		free(other);
	}
	LIST_INSERT_HEAD(&range->ctx->ranges, range, link);
	range->id = atomic_fetch_add(&pln.next_id, 1) + 1;
	return CUDA_SUCCESS;
}

static void range_del(struct pln_range *range)
{
	tdelete(range, &pln.ranges, span_cmp);
	LIST_REMOVE(range, link);
}

/* ---- allocations of the kernel ---- */

static void *reserve(size_t size)
{
	size_t all = size + VA_ALIGN;
	char *p, *start;

	p = mmap(NULL, all, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	start = (char *)(((uintptr_t)p + VA_ALIGN - 1) & ~(uintptr_t)(VA_ALIGN - 1));
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (start + size < p + all)
		munmap(start + size, (size_t)(p + all - (start + size)));
	return start;
}

static void chunk_free(struct pln_chunk *chunk)
{
	struct pln_gpu_free req = { .handle = chunk->handle };
	struct pln_file *file = chunk->file;

	/* The kernel first: it takes the mapping's pages back */
	if (pln_io_ioctl(file->fd, PLN_GPU_IOC_FREE, &req))
		pln_file_error(file, errno);
	munmap((void *)(uintptr_t)chunk->addr, chunk->size);
	pln_file_put(file);
	free(chunk->map);
	free(chunk);
}

static CUresult chunk_new(struct pln_file *file, size_t size, bool block,
			  struct pln_chunk **out)
{
	struct pln_gpu_alloc req = { .size = size };
	struct pln_gpu_free undo = { 0 };
	struct pln_chunk *chunk;
	void *va;
	CUresult err;

	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (block) {
		chunk->map = calloc(1, BLOCK_SIZE / UNIT);
		if (!chunk->map) {
			free(chunk);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (pln_io_ioctl(file->fd, PLN_GPU_IOC_ALLOC, &req)) {
		err = pln_file_error(file, errno);
		goto out_free;
	}
	undo.handle = req.handle;
	va = reserve(req.size);
	if (!va) {
		err = CUDA_ERROR_OUT_OF_MEMORY;
		goto out_undo;
	}
	if (file->features & PLN_GPU_FEAT_COHERENT) {
		if (pln_io_mmap(va, req.size, file->fd, req.mmap_offset) ==
		    MAP_FAILED) {
			err = pln_file_error(file, errno);
			munmap(va, req.size);
			goto out_undo;
		}
		/* A forked child has no business in the GPU's memory */
		madvise(va, req.size, MADV_DONTFORK);
	}
	chunk->file = pln_file_ref(file);
	chunk->handle = req.handle;
	chunk->addr = (uintptr_t)va;
	chunk->size = req.size;
	chunk->block = block;
	chunk->id = atomic_fetch_add(&pln.next_id, 1) + 1;
	*out = chunk;
	return CUDA_SUCCESS;
out_undo:
	if (pln_io_ioctl(file->fd, PLN_GPU_IOC_FREE, &undo))
		pln_file_error(file, errno);
out_free:
	free(chunk->map);
	free(chunk);
	return err;
}

/* pln.lock is held.  A new chunk has one user, the caller. */
static CUresult chunk_add(CUcontext ctx, struct pln_chunk *chunk)
{
	struct pln_chunk **node;

	if (atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	node = tsearch(chunk, &pln.chunks, span_cmp);
	if (!node || *node != chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	chunk->users = 1;
	if (chunk->block)
		LIST_INSERT_HEAD(&ctx->blocks, chunk, link);
	return CUDA_SUCCESS;
}

/* pln.lock is held.  True: no user is left, the caller frees it unlocked. */
static bool chunk_drop(struct pln_chunk *chunk)
{
	if (--chunk->users)
		return false;
	tdelete(chunk, &pln.chunks, span_cmp);
	if (chunk->block)
		LIST_REMOVE(chunk, link);
	return true;
}

/*
 * Alignment of a small allocation: what is large enough to be exported starts
 * at a page, of the CPU or of the GPU.
 */
static uint64_t small_align(const struct pln_file *file, uint64_t size)
{
	if (size >= file->page_size)
		return file->page_size;
	return size >= HOST_PAGE ? HOST_PAGE : UNIT;
}

/* First fit; the offset, or ~0 */
static uint64_t block_take(struct pln_chunk *chunk, uint64_t size)
{
	uint64_t step = small_align(chunk->file, size) / UNIT;
	uint64_t units = (size + UNIT - 1) / UNIT;
	uint64_t all = BLOCK_SIZE / UNIT;

	for (uint64_t at = 0; at + units <= all; at += step) {
		uint64_t n = 0;

		while (n < units && !chunk->map[at + n])
			n++;
		if (n < units)
			continue;
		memset(chunk->map + at, 1, units);
		return at * UNIT;
	}
	return ~0ull;
}

/*
 * Memory that a dma-buf reached is not given to somebody else: the kernel
 * takes the dma-buf's access away only when the whole block is freed.
 */
static void block_give(struct pln_chunk *chunk, uint64_t addr, uint64_t size)
{
	if (chunk->block && !chunk->exported)
		memset(chunk->map + (addr - chunk->addr) / UNIT, 0,
		       (size + UNIT - 1) / UNIT);
}

static CUresult device_alloc(CUcontext ctx, size_t size, CUdeviceptr *out)
{
	bool block = size < DIRECT_SIZE;
	struct pln_chunk *chunk = NULL, *c;
	struct pln_range *range;
	uint64_t at = 0;
	CUresult err;

	if (size > ctx->dev->info.vram_size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range = calloc(1, sizeof(*range));
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&pln.lock);
	if (block) {
		LIST_FOREACH(c, &ctx->blocks, link) {
			at = block_take(c, size);
			if (at == ~0ull)
				continue;
			chunk = c;
			chunk->users++;
			break;
		}
	}
	pthread_mutex_unlock(&pln.lock);
	if (!chunk) {
		err = chunk_new(ctx->file, block ? BLOCK_SIZE : size, block,
				&chunk);
		if (err) {
			free(range);
			return err;
		}
		pthread_mutex_lock(&pln.lock);
		err = chunk_add(ctx, chunk);
		at = block ? block_take(chunk, size) : 0;
		pthread_mutex_unlock(&pln.lock);
		if (err) {
			chunk_free(chunk);
			free(range);
			return err;
		}
	}
	range->addr = chunk->addr + at;
	range->size = size;
	range->kind = PLN_RANGE_DEVICE;
	range->ctx = ctx;
	range->chunk = chunk;
	pthread_mutex_lock(&pln.lock);
	err = range_add(range);
	if (err) {
		block_give(chunk, range->addr, size);
		if (!chunk_drop(chunk))
			chunk = NULL;
	} else {
		*out = range->addr;
	}
	pthread_mutex_unlock(&pln.lock);
	if (err) {
		if (chunk)
			chunk_free(chunk);
		free(range);
	}
	return err;
}

/* @range is in no tree and no list any more */
static void range_free(struct pln_range *range)
{
	struct pln_chunk *chunk = range->chunk;
	bool last;

	if (range->kind == PLN_RANGE_HOST) {
		munmap((void *)(uintptr_t)range->addr, range->map_size);
	} else if (range->kind == PLN_RANGE_DEVICE) {
		pthread_mutex_lock(&pln.lock);
		block_give(chunk, range->addr, range->size);
		last = chunk_drop(chunk);
		pthread_mutex_unlock(&pln.lock);
		if (last)
			chunk_free(chunk);
	}
	free(range);
}

/* Of a context that is being destroyed; its jobs have ended */
void pln_ctx_free_memory(CUcontext ctx)
{
	struct pln_range *range;

	for (;;) {
		pthread_mutex_lock(&pln.lock);
		range = LIST_FIRST(&ctx->ranges);
		if (range)
			range_del(range);
		pthread_mutex_unlock(&pln.lock);
		if (!range)
			return;
		range_free(range);
	}
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	CUdeviceptr got;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	err = !ptr || !size ? CUDA_ERROR_INVALID_VALUE :
	      device_alloc(ctx, size, &got);
	if (!err)
		*ptr = got;
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width,
			    size_t height, unsigned int element)
{
	CUdeviceptr got;
	size_t row, all;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	row = (width + UNIT - 1) & ~(size_t)(UNIT - 1);
	if (!ptr || !pitch || !width || !height ||
	    (element != 4 && element != 8 && element != 16) || row < width)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (__builtin_mul_overflow(row, height, &all))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	else
		err = device_alloc(ctx, all, &got);
	if (!err) {
		*ptr = got;
		*pitch = row;
	}
	pln_ctx_put(ctx);
	return err;
}

/* Take the range that starts at @addr out of the tree */
static CUresult range_take(uint64_t addr, enum pln_range_kind kind,
			   CUresult none, struct pln_range **out,
			   struct pln_file **file)
{
	struct pln_range *range;
	CUresult err = none;

	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(addr, 1);
	if (range && range->kind == kind && range->addr == addr) {
		range_del(range);
		*file = pln_file_ref(range->ctx->file);
		*out = range;
		err = CUDA_SUCCESS;
	} else if (range) {
		err = CUDA_ERROR_INVALID_VALUE;	/* of another kind, or inside */
	}
	pthread_mutex_unlock(&pln.lock);
	return err;
}

static CUresult take_and_free(uint64_t addr, enum pln_range_kind kind,
			      CUresult none)
{
	struct pln_range *range;
	struct pln_file *file;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	err = range_take(addr, kind, none, &range, &file);
	if (!err) {
		/* Work that was submitted may still use it */
		err = pln_file_drain(file);
		if (err) {
			/* Stuck: leave it mapped, the engine may yet write */
			pln_file_put(file);
			pln_ctx_put(ctx);
			return err;
		}
		range_free(range);
		pln_file_put(file);
	}
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	if (!ptr)
		return pln_ready();
	return take_and_free(ptr, PLN_RANGE_DEVICE, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	pln_ctx_put(ctx);
	if (!ptr || !size || (flags != 1 && flags != 2))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemGetInfo_v2(size_t *avail, size_t *total)
{
	struct pln_gpu_query info = { 0 };
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	if (!avail || !total)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (pln_io_ioctl(ctx->file->fd, PLN_GPU_IOC_QUERY, &info))
		err = pln_file_error(ctx->file, errno);
	if (!err) {
		*avail = info.vram_free;
		*total = info.vram_size;
	}
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
				 CUdeviceptr ptr)
{
	struct pln_range *range;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(ptr, 1);
	if (!range) {
		err = CUDA_ERROR_NOT_FOUND;
	} else {
		if (base)
			*base = range->addr;
		if (size)
			*size = range->size;
	}
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(ctx);
	return err;
}

/* ---- host memory ---- */

static CUresult host_alloc(void **ptr, size_t size, unsigned int flags)
{
	struct pln_range *range;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);
	size_t all;
	void *p;

	if (err)
		return err;
	all = (size + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);
	if (!ptr || (flags & ~7u))
		err = CUDA_ERROR_INVALID_VALUE;
	else if (all < size)
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (!err && !size) {
		*ptr = NULL;		/* nothing, as NVIDIA's driver has it */
		pln_ctx_put(ctx);
		return CUDA_SUCCESS;
	}
	range = err ? NULL : calloc(1, sizeof(*range));
	if (!range) {
		pln_ctx_put(ctx);
		return err ? err : CUDA_ERROR_OUT_OF_MEMORY;
	}
	p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED) {
		free(range);
		pln_ctx_put(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->addr = (uintptr_t)p;
	range->size = size;
	range->map_size = all;
	range->kind = PLN_RANGE_HOST;
	range->ctx = ctx;
	range->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
	pthread_mutex_lock(&pln.lock);
	err = range_add(range);
	pthread_mutex_unlock(&pln.lock);
	if (err) {
		munmap(p, all);
		free(range);
	} else {
		*ptr = p;
	}
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	return host_alloc(ptr, size, flags);
}

/* With unified addressing all host memory is portable and mapped */
CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	return host_alloc(ptr, size, CU_MEMHOSTALLOC_PORTABLE |
			  CU_MEMHOSTALLOC_DEVICEMAP);
}

CUresult cuMemFreeHost(void *ptr)
{
	return take_and_free((uintptr_t)ptr, PLN_RANGE_HOST,
			     CUDA_ERROR_INVALID_VALUE);
}

static bool is_mapped(uintptr_t addr, size_t size)
{
	uintptr_t at = addr & ~(uintptr_t)(HOST_PAGE - 1);
	uintptr_t last = addr + (size - 1);
	unsigned char vec[1024];

	for (;;) {
		size_t n = last - at + 1;

		if (n > sizeof(vec) * HOST_PAGE)
			n = sizeof(vec) * HOST_PAGE;
		if (mincore((void *)at, n, vec))
			return false;
		if (last - at < n)
			return true;
		at += n;
	}
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	struct pln_range *range;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	if (!ptr || !size || (flags & ~0xfu) ||
	    (uintptr_t)ptr + (size - 1) < (uintptr_t)ptr)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		err = CUDA_ERROR_NOT_SUPPORTED;
	else if (!is_mapped((uintptr_t)ptr, size))
		err = CUDA_ERROR_INVALID_VALUE;
	range = err ? NULL : calloc(1, sizeof(*range));
	if (!range) {
		pln_ctx_put(ctx);
		return err ? err : CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->addr = (uintptr_t)ptr;
	range->size = size;
	range->kind = PLN_RANGE_REGISTERED;
	range->ctx = ctx;
	range->flags = flags;
	pthread_mutex_lock(&pln.lock);
	err = range_add(range);
	pthread_mutex_unlock(&pln.lock);
	if (err)
		free(range);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemHostUnregister(void *ptr)
{
	if (!ptr) {
		CUresult err = pln_ready();

		return err ? err : CUDA_ERROR_INVALID_VALUE;
	}
	return take_and_free((uintptr_t)ptr, PLN_RANGE_REGISTERED,
			     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr,
				      unsigned int flags)
{
	struct pln_range *range;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	if (!dptr || flags) {
		pln_ctx_put(ctx);
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find((uintptr_t)ptr, 1);
	if (range && range->kind != PLN_RANGE_DEVICE)
		*dptr = (uintptr_t)ptr;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	struct pln_range *range;
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find((uintptr_t)ptr, 1);
	if (flags && range && range->kind == PLN_RANGE_HOST)
		*flags = range->flags;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(ctx);
	return err;
}

/* ---- dma-buf ---- */

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
				       size_t size, CUmemRangeHandleType type,
				       unsigned long long flags)
{
	struct pln_gpu_export req = { .flags = O_CLOEXEC };
	struct pln_chunk *chunk = NULL;
	struct pln_range *range;
	struct pln_file *file;
	uint64_t granule;
	CUcontext ctx;
	bool last;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	pln_ctx_put(ctx);
	if (!handle || !size || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD ||
	    (flags & ~(unsigned long long)
		     CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE) ||
	    ptr % HOST_PAGE || size % HOST_PAGE)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&pln.lock);
	chunk = span_find(&pln.chunks, ptr, size);
	if (!chunk) {
		range = pln_range_find(ptr, size);
		err = range ? CUDA_ERROR_NOT_SUPPORTED :
			      CUDA_ERROR_INVALID_VALUE;
	} else if (!inside(ptr, size, chunk->addr, chunk->size)) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (atomic_load(&chunk->file->lost)) {
		err = CUDA_ERROR_DEVICE_UNAVAILABLE;
	} else if (!(chunk->file->features & PLN_GPU_FEAT_DMABUF)) {
		err = CUDA_ERROR_NOT_SUPPORTED;
	} else if ((ptr - chunk->addr) % chunk->file->page_size) {
		pln_log("dma-buf export: address 0x%llx is no multiple of the GPU's page, 0x%x",
			(unsigned long long)ptr, chunk->file->page_size);
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		chunk->exported = true;
		chunk->users++;
	}
	pthread_mutex_unlock(&pln.lock);
	if (err)
		return err;

	/* The rest of the last GPU page belongs to the same allocation */
	file = chunk->file;
	granule = file->page_size;
	req.handle = chunk->handle;
	req.offset = ptr - chunk->addr;
	req.size = (size + granule - 1) / granule * granule;
	if (pln_io_ioctl(file->fd, PLN_GPU_IOC_EXPORT, &req))
		err = pln_file_error(file, errno);
	else
		*(int *)handle = req.fd;
	pthread_mutex_lock(&pln.lock);
	last = chunk_drop(chunk);
	pthread_mutex_unlock(&pln.lock);
	if (last)
		chunk_free(chunk);
	return err;
}

/* ---- what is this pointer? ---- */

static CUresult pointer_attribute(const struct pln_range *range, uint64_t ptr,
				  CUpointer_attribute attr, void *data)
{
	bool device = range->kind == PLN_RANGE_DEVICE;

	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = range->ctx;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = device ? CU_MEMORYTYPE_DEVICE :
						 CU_MEMORYTYPE_HOST;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (device)
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
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(int *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range->ctx->dev->ordinal;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range->addr;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)data = 1;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(int *)data = device && (range->chunk->file->features &
					  PLN_GPU_FEAT_DMABUF);
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data =
			CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)data = NULL;
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
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	struct pln_range *range;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(ptr, 1);
	err = range ? pointer_attribute(range, ptr, attr, data) :
		      CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pln.lock);
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
	struct pln_range *range;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!n || !attrs || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++)
		if (!data[i])
			return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(ptr, 1);
	for (unsigned int i = 0; i < n && !err; i++) {
		/* No value for this kind of memory is no error here */
		if (range && range->kind == PLN_RANGE_DEVICE &&
		    attrs[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
			*(void **)data[i] = NULL;
		else if (range)
			err = pointer_attribute(range, ptr, attrs[i], data[i]);
		else
			err = pointer_default(attrs[i], ptr, data[i]);
	}
	pthread_mutex_unlock(&pln.lock);
	return err;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	struct pln_range *range;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(ptr, 1);
	if (range && range->kind == PLN_RANGE_DEVICE)
		range->sync_memops = *(const unsigned int *)value != 0;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pln.lock);
	return err;
}

/* ---- places, for copies ---- */

CUresult pln_place_get(uint64_t addr, size_t n, struct pln_place *place)
{
	struct pln_range *range;
	CUresult err = CUDA_SUCCESS;

	memset(place, 0, sizeof(*place));
	if (!addr || addr + (n - 1) < addr)
		return CUDA_ERROR_INVALID_VALUE;
	place->offset = addr;
	pthread_mutex_lock(&pln.lock);
	range = pln_range_find(addr, n);
	if (!range) {
		;			/* pageable host memory */
	} else if (!inside(addr, n, range->addr, range->size)) {
		/*
		 * A host buffer may be registered in part.  Device memory, or
		 * what the library allocated, ends where it ends.
		 */
		if (range->kind != PLN_RANGE_REGISTERED)
			err = CUDA_ERROR_INVALID_VALUE;
	} else if (range->kind != PLN_RANGE_DEVICE) {
		place->pinned = true;
	} else if (atomic_load(&range->chunk->file->lost)) {
		err = CUDA_ERROR_DEVICE_UNAVAILABLE;
	} else if (!range->ctx->legacy) {
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else {
		place->device = true;
		place->sync_memops = range->sync_memops ||
			(range->ctx->flags & CU_CTX_SYNC_MEMOPS);
		place->handle = range->chunk->handle;
		place->offset = addr - range->chunk->addr;
		place->stream = range->ctx->legacy;
		atomic_fetch_add(&place->stream->obj.refs, 1);
	}
	pthread_mutex_unlock(&pln.lock);
	return err;
}

void pln_place_put(struct pln_place *place)
{
	if (place->stream)
		pln_obj_put(&place->stream->obj);
	place->stream = NULL;
}
