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

_Static_assert(offsetof(struct drv_range, addr) == 0 &&
	       offsetof(struct drv_range, size) == 8, "starts with a span");
_Static_assert(offsetof(struct drv_chunk, addr) == 0 &&
	       offsetof(struct drv_chunk, size) == 8, "starts with a span");

int drv_span_cmp(const void *a, const void *b)
{
	const struct drv_span *x = a, *y = b;

	/* Last bytes, not ends: a span may end at the top of all addresses */
	if (x->addr + (x->size - 1) < y->addr)
		return -1;
	if (y->addr + (y->size - 1) < x->addr)
		return 1;
	return 0;
}

void *drv_span_find(void *const *tree, uint64_t addr, uint64_t n)
{
	struct drv_span key = { addr, n ? n : 1 };
	void **node;

	if (key.addr + (key.size - 1) < key.addr)
		return NULL;
	node = tfind(&key, tree, drv_span_cmp);
	return node ? *node : NULL;
}

struct drv_range *drv_range_find(uint64_t addr, uint64_t n)
{
	struct drv_range *range = drv_span_find(&drv.ranges, addr, n);

	if (range && range->after &&
	    atomic_load(&range->after->state) == DRV_JOB_DONE)
		return NULL;
	return range;
}

bool drv_span_has(uint64_t addr, uint64_t n, uint64_t base, uint64_t size)
{
	return addr >= base && addr - base <= size && n <= size - (addr - base);
}

/* drv.lock is held */
CUresult drv_range_add(struct drv_range *range)
{
	struct drv_range **node, *other;

	if (range->ctx && atomic_load(&range->ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	for (;;) {
		node = tsearch(range, &drv.ranges, drv_span_cmp);
		if (!node)
			return CUDA_ERROR_OUT_OF_MEMORY;
		other = *node;
		if (other == range)
			break;
		if (other->kind != DRV_RANGE_REGISTERED ||
		    range->kind == DRV_RANGE_REGISTERED)
			return drv_on_device(other) ?
			       CUDA_ERROR_INVALID_VALUE :
			       CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
		/* Unmapped by the program while still registered */
		tdelete(other, &drv.ranges, drv_span_cmp);
		LIST_REMOVE(other, link);
		free(other);
	}
	if (range->ctx)
		LIST_INSERT_HEAD(&range->ctx->ranges, range, link);
	range->id = atomic_fetch_add(&drv.next_id, 1) + 1;
	return CUDA_SUCCESS;
}

void drv_range_del(struct drv_range *range)
{
	tdelete(range, &drv.ranges, drv_span_cmp);
	if (range->ctx)
		LIST_REMOVE(range, link);
}

/*
 * Put @range back that was taken out and could not be freed, so that it can be
 * later; it is the one that it was.  Lost with its context, or where something
 * else is by now.
 */
void drv_range_back(struct drv_range *range)
{
	unsigned long long id = range->id;

	pthread_mutex_lock(&drv.lock);
	drv_range_add(range);
	range->id = id;
	pthread_mutex_unlock(&drv.lock);
}

/* ---- allocations of the kernel ---- */

/* Addresses that nothing else uses; @align is a power of two */
void *drv_reserve(size_t size, size_t align)
{
	size_t all;
	char *p, *start;

	if (align < VA_ALIGN)
		align = VA_ALIGN;
	if (__builtin_add_overflow(size, align, &all))
		return NULL;
	p = mmap(NULL, all, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	start = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (start + size < p + all)
		munmap(start + size, (size_t)(p + all - (start + size)));
	return start;
}

/*
 * Map memory of the GPU at @va, by which the driver knows the device pointer.
 * The CPU reaches it only through a coherent window.
 */
CUresult drv_map(struct drv_file *file, void *va, size_t size, uint64_t offset)
{
	int prot = file->features & PLN_GPU_FEAT_COHERENT ?
		   PROT_READ | PROT_WRITE : PROT_NONE;

	if (!(file->features & (PLN_GPU_FEAT_COHERENT | PLN_GPU_FEAT_DEVPTR)))
		return CUDA_SUCCESS;
	if (drv_io_mmap(va, size, prot, file->fd, offset) == MAP_FAILED)
		return drv_file_error(file, errno);
	/* A forked child has no business in the GPU's memory */
	madvise(va, size, MADV_DONTFORK);
	return CUDA_SUCCESS;
}

void drv_handle_free(struct drv_file *file, uint32_t handle)
{
	struct pln_gpu_free req = { .handle = handle };

	if (drv_call(file->fd, PLN_GPU_IOC_FREE, &req))
		drv_file_error(file, errno);
}

void drv_chunk_free(struct drv_chunk *chunk)
{
	struct drv_file *file = chunk->file;

	if (chunk->home)
		drv_ctx_destroy(chunk->home);
	if (chunk->mem) {
		drv_obj_put(&chunk->mem->obj);
	} else {
		/* The kernel first: it takes the mapping's pages back */
		drv_handle_free(file, chunk->handle);
		munmap((void *)(uintptr_t)chunk->addr, chunk->size);
	}
	drv_file_put(file);
	free(chunk->map);
	free(chunk);
}

/* Takes over @handle, whatever the outcome */
CUresult drv_chunk_new(struct drv_file *file, uint32_t handle, uint64_t size,
		       uint64_t mmap_offset, struct drv_chunk **out)
{
	struct drv_chunk *chunk = calloc(1, sizeof(*chunk));
	void *va = chunk ? drv_reserve(size, 0) : NULL;
	CUresult err = va ? drv_map(file, va, size, mmap_offset) :
			    CUDA_ERROR_OUT_OF_MEMORY;

	if (err) {
		if (va)
			munmap(va, size);
		free(chunk);
		drv_handle_free(file, handle);
		return err;
	}
	chunk->file = drv_file_ref(file);
	chunk->handle = handle;
	chunk->addr = (uintptr_t)va;
	chunk->size = size;
	chunk->id = atomic_fetch_add(&drv.next_id, 1) + 1;
	*out = chunk;
	return CUDA_SUCCESS;
}

CUresult drv_chunk_alloc(struct drv_file *file, size_t size, bool block,
			 struct drv_chunk **out)
{
	struct pln_gpu_alloc req = { .size = size };
	uint8_t *map = NULL;
	CUresult err;

	if (block) {
		map = calloc(1, BLOCK_SIZE / UNIT);
		if (!map)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (drv_call(file->fd, PLN_GPU_IOC_ALLOC, &req))
		err = drv_file_error(file, errno);
	else
		err = drv_chunk_new(file, req.handle, req.size,
				    req.mmap_offset, out);
	if (err) {
		free(map);
		return err;
	}
	(*out)->block = block;
	(*out)->map = map;
	return CUDA_SUCCESS;
}

/* drv.lock is held.  A new chunk has one user, the caller.  @ctx may be NULL. */
CUresult drv_chunk_add(CUcontext ctx, struct drv_chunk *chunk)
{
	struct drv_chunk **node;

	if (ctx && atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	node = tsearch(chunk, &drv.chunks, drv_span_cmp);
	if (!node || *node != chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	chunk->users = 1;
	if (chunk->block)
		LIST_INSERT_HEAD(&ctx->blocks, chunk, link);
	return CUDA_SUCCESS;
}

/* drv.lock is held: what is found at its addresses from now on is not @chunk */
static void chunk_hide(struct drv_chunk *chunk)
{
	struct drv_chunk **node = tfind(chunk, &drv.chunks, drv_span_cmp);

	if (node && *node == chunk)
		tdelete(chunk, &drv.chunks, drv_span_cmp);
}

/* drv.lock is held.  True: no user is left, the caller frees it unlocked. */
bool drv_chunk_drop(struct drv_chunk *chunk)
{
	if (--chunk->users)
		return false;
	chunk_hide(chunk);
	if (chunk->block)
		LIST_REMOVE(chunk, link);
	return true;
}

/*
 * Alignment of a small allocation: what is large enough to be exported starts
 * at a page, of the CPU or of the GPU.
 */
uint64_t drv_small_align(const struct drv_file *file, uint64_t size)
{
	if (size >= file->page_size)
		return file->page_size;
	return size >= HOST_PAGE ? HOST_PAGE : UNIT;
}

/* First fit; the offset, or ~0 */
static uint64_t block_take(struct drv_chunk *chunk, uint64_t size)
{
	uint64_t step = drv_small_align(chunk->file, size) / UNIT;
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
static void block_give(struct drv_chunk *chunk, uint64_t addr, uint64_t size)
{
	if (chunk->block && !chunk->exports)
		memset(chunk->map + (addr - chunk->addr) / UNIT, 0,
		       (size + UNIT - 1) / UNIT);
}

CUresult drv_device_alloc(CUcontext ctx, size_t size,
			  enum drv_range_kind kind, CUdeviceptr *out)
{
	bool block = size < DIRECT_SIZE;
	struct drv_chunk *chunk = NULL, *c;
	struct drv_range *range;
	uint64_t at = 0;
	CUresult err;

	if (size > ctx->dev->info.vram_size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range = calloc(1, sizeof(*range));
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&drv.lock);
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
	pthread_mutex_unlock(&drv.lock);
	if (!chunk) {
		do {
			err = drv_chunk_alloc(ctx->file,
					      block ? BLOCK_SIZE : size, block,
					      &chunk);
		} while (err == CUDA_ERROR_OUT_OF_MEMORY &&
			 drv_pools_squeeze(ctx->dev));
		if (err) {
			free(range);
			return err;
		}
		pthread_mutex_lock(&drv.lock);
		err = drv_chunk_add(ctx, chunk);
		at = block ? block_take(chunk, size) : 0;
		pthread_mutex_unlock(&drv.lock);
		if (err) {
			drv_chunk_free(chunk);
			free(range);
			return err;
		}
	}
	range->addr = chunk->addr + at;
	range->size = size;
	range->kind = kind;
	range->ctx = ctx;
	range->dev = ctx->dev;
	range->chunk = chunk;
	pthread_mutex_lock(&drv.lock);
	err = drv_range_add(range);
	if (err) {
		block_give(chunk, range->addr, size);
		if (!drv_chunk_drop(chunk))
			chunk = NULL;
	} else {
		*out = range->addr;
	}
	pthread_mutex_unlock(&drv.lock);
	if (err) {
		if (chunk)
			drv_chunk_free(chunk);
		free(range);
	}
	return err;
}

/* @range is in no tree and no list any more */
void drv_range_free(struct drv_range *range)
{
	struct drv_file *used = drv_is_far(range) ? range->chunk->file : NULL;
	struct drv_chunk *chunk = range->chunk;
	bool last;

	if (range->export_fd)
		close(range->export_fd - 1);
	drv_advice_free(range->advice);
	if (range->kind == DRV_RANGE_IMPORTED)
		drv_obj_put(&range->pool->obj);
	if (range->kind == DRV_RANGE_HOST) {
		munmap((void *)(uintptr_t)range->addr, range->map_size);
	} else if (range->kind == DRV_RANGE_POOL) {
		drv_pool_give(range);
	} else if (drv_on_device(range)) {
		pthread_mutex_lock(&drv.lock);
		block_give(chunk, range->addr, range->size);
		last = drv_chunk_drop(chunk);
		pthread_mutex_unlock(&drv.lock);
		if (last)
			drv_chunk_free(chunk);
	}
	if (used)
		drv_file_unuse(used);
	drv_job_put(range->left);
	free(range);
}

/* Of a context that is being destroyed; its jobs have ended */
void drv_ctx_free_memory(CUcontext ctx)
{
	struct drv_range *range;

	for (;;) {
		pthread_mutex_lock(&drv.lock);
		range = LIST_FIRST(&ctx->ranges);
		if (range)
			drv_range_del(range);
		pthread_mutex_unlock(&drv.lock);
		if (!range)
			return;
		/* Its own GPU's jobs go by number of memory, and were not waited for */
		if (drv_is_far(range))
			drv_drain(range->chunk->file,
				  &(struct drv_span){ range->addr, range->size });
		drv_span_end(&(struct drv_span){ range->addr, range->size });
		if (range->chunk)
			drv_handle_end(range->chunk->file, range->chunk->handle,
				       &(struct drv_span){
					range->addr - range->chunk->addr,
					range->size });
		drv_range_free(range);
	}
}

DRV_PATCHABLE(cuMemAlloc_v2, CUdeviceptr *ptr, size_t size)
{
	CUdeviceptr got;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	err = !ptr || !size ? CUDA_ERROR_INVALID_VALUE :
	      drv_device_alloc(ctx, size, DRV_RANGE_DEVICE, &got);
	if (!err)
		*ptr = got;
	drv_ctx_put(ctx);
	return err;
}

DRV_PATCHABLE(cuMemAllocPitch_v2, CUdeviceptr *ptr, size_t *pitch,
	      size_t width, size_t height, unsigned int element)
{
	CUdeviceptr got;
	size_t row, all;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	row = (width + UNIT - 1) & ~(size_t)(UNIT - 1);
	if (!ptr || !pitch || !width || !height ||
	    (element != 4 && element != 8 && element != 16) || row < width)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (__builtin_mul_overflow(row, height, &all))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	else
		err = drv_device_alloc(ctx, all, DRV_RANGE_DEVICE, &got);
	if (!err) {
		*ptr = got;
		*pitch = row;
	}
	drv_ctx_put(ctx);
	return err;
}

/* The range of one of @kinds that starts at @addr.  drv.lock is held. */
static CUresult range_at(uint64_t addr, unsigned int kinds, CUresult none,
			 struct drv_range **out)
{
	struct drv_range *range = drv_range_find(addr, 1);

	if (!range || range->after)
		return none;
	if (!(kinds & 1u << range->kind) || range->addr != addr)
		return CUDA_ERROR_INVALID_VALUE;	/* or inside */
	*out = range;
	return CUDA_SUCCESS;
}

/*
 * Take the range @id out of the tree, and free it.  Somebody else may have freed
 * it since it was looked up, or opened it once more.
 */
static CUresult range_take(uint64_t addr, unsigned int kinds, CUresult none,
			   unsigned long long id)
{
	struct drv_range *range = NULL;
	CUresult err;

	pthread_mutex_lock(&drv.lock);
	err = range_at(addr, kinds, none, &range);
	if (!err && range->id != id)
		err = none;
	if (!err && range->opened > 1) {
		range->opened--;
		range = NULL;
	} else if (!err) {
		/*
		 * An export may keep the chunk; the addresses are the program's from
		 * now on, and other memory may be mapped there
		 */
		if (range->kind == DRV_RANGE_VMM) {
			drv_no_access(range->addr, range->size);
			chunk_hide(range->chunk);
		}
		drv_range_del(range);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!err && range)
		drv_range_free(range);
	return err;
}

CUresult drv_take_and_free(uint64_t addr, unsigned int kinds, CUresult none)
{
	struct drv_file *file = NULL;
	struct drv_range *range = NULL;
	unsigned long long id = 0;
	struct drv_span span;
	CUcontext ctx = NULL;
	bool far = false;
	CUresult err;

	pthread_mutex_lock(&drv.lock);
	err = range_at(addr, kinds, none, &range);
	if (!err) {
		id = range->id;
		span = (struct drv_span){ range->addr, range->size };
		/* the context may have the block */
		ctx = range->ctx;
		if (ctx)
			atomic_fetch_add(&ctx->obj.refs, 1);
		if (range->opened <= 1)
			file = drv_file_ref(drv_on_device(range) ?
					    range->chunk->file : ctx->file);
		far = file && drv_is_far(range);
	}
	pthread_mutex_unlock(&drv.lock);
	/*
	 * What was asked for may still use it.  Until it has ended, the range stays
	 * in the tree: functions of the program let other threads look it up.
	 */
	if (file)
		err = drv_drain(file, &span);
	/* As the memory's GPU, the one that it is open on */
	if (!err && far)
		err = drv_drain(ctx->file, &span);
	if (!err)
		err = range_take(addr, kinds, none, id);
	if (file)
		drv_file_put(file);
	drv_ctx_put(ctx);
	return err;
}

void drv_device_free(CUcontext ctx, CUdeviceptr ptr)
{
	struct drv_range *range = NULL;

	pthread_mutex_lock(&drv.lock);
	if (range_at(ptr, DRV_KIND(DEVICE), CUDA_ERROR_INVALID_VALUE, &range) ||
	    range->ctx != ctx)
		range = NULL;
	else
		drv_range_del(range);
	pthread_mutex_unlock(&drv.lock);
	if (range)
		drv_range_free(range);
}

DRV_PATCHABLE(cuMemFree_v2, CUdeviceptr ptr)
{
	CUresult err = ptr ? drv_ctx_needed() : drv_ready();

	/* A thread without a context may free, as on a real GPU */
	if (!ptr || (err && err != CUDA_ERROR_INVALID_CONTEXT))
		return err;
	if (drv_pool_memory_free(ptr))
		return CUDA_SUCCESS;
	return drv_take_and_free(ptr, DRV_KIND(DEVICE) | DRV_KIND(MANAGED) |
				 DRV_KIND(POOL) | DRV_KIND(IMPORTED),
				 CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetInfo_v2(size_t *avail, size_t *total)
{
	struct pln_gpu_query info = { 0 };
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!avail || !total)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (drv_call(ctx->file->fd, PLN_GPU_IOC_QUERY, &info))
		err = drv_file_error(ctx->file, errno);
	if (!err) {
		*avail = info.vram_free;
		*total = info.vram_size;
	}
	drv_ctx_put(ctx);
	return err;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
				 CUdeviceptr ptr)
{
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	/* what the context does not reach is not found */
	if (!range || (drv_on_device(range) && !drv_range_reached(range, ctx))) {
		err = CUDA_ERROR_NOT_FOUND;
		range = NULL;
	}
	if (base)
		*base = range ? range->addr : 0;
	if (size)
		*size = range ? range->size : 0;
	pthread_mutex_unlock(&drv.lock);
	drv_ctx_put(ctx);
	return err;
}
