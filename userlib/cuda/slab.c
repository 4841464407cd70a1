// SPDX-License-Identifier: MIT
/*
 * Memory in the order of a stream.
 *
 * A pool has slabs, each an allocation of the kernel, cut into blocks.  What is
 * freed in a stream may be had again at once by work of the same stream or engine
 * queue, which runs in order; by others when the job has ended that went before
 * the freeing.  Memory that nobody has goes back to the kernel at the next
 * synchronization, but for the pool's release threshold.
 */
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"

#define SLAB_GRANULE	(2 * MiB)
#define UNIT		512ull

struct drv_block {
	struct drv_slab *slab;
	uint64_t at;			/* in the slab */
	uint64_t size;
	uint64_t asked;			/* for, while it is used */
	bool used;
	bool dead;			/* a dma-buf may still reach it */
	struct drv_job *job;		/* that went before its freeing */
	struct drv_range *left;		/* which what goes before it may still use */
	TAILQ_ENTRY(drv_block) link;
};

struct drv_slab {
	CUmemoryPool pool;		/* a reference */
	struct drv_chunk *chunk;
	unsigned int used;		/* blocks */
	TAILQ_HEAD(, drv_block) blocks;
	LIST_ENTRY(drv_slab) link;
};

/* How far a search for free memory may go */
enum reuse { REUSE_ENDED, REUSE_BY_CHANCE, REUSE_BY_WAITING };

/* ---- blocks: drv.lock is held ---- */

static struct drv_block *block_new(struct drv_slab *slab, uint64_t at,
				   uint64_t size)
{
	struct drv_block *block = calloc(1, sizeof(*block));

	if (block) {
		block->slab = slab;
		block->at = at;
		block->size = size;
	}
	return block;
}

/* What was freed and is known yet: no more */
static void forget(struct drv_block *block)
{
	struct drv_range *range = block->left;

	if (!range)
		return;
	block->left = NULL;
	drv_range_del(range);
	drv_job_put(range->after);
	drv_job_put(range->left);
	if (range->export_fd)
		close(range->export_fd - 1);
	free(range);
}

static bool ended(struct drv_block *block, bool ask)
{
	if (block->job &&
	    (atomic_load(&block->job->state) == DRV_JOB_DONE ||
	     (ask && !drv_job_wait(block->job, false)))) {
		drv_job_put(block->job);
		block->job = NULL;
	}
	if (!block->job)
		forget(block);
	return !block->job;
}

/* Neighbours that wait for the same, or for nothing, become one */
static void merge(struct drv_slab *slab)
{
	struct drv_block *b = TAILQ_FIRST(&slab->blocks), *next;

	for (; b && (next = TAILQ_NEXT(b, link)); b = next) {
		if (b->used || next->used || b->dead || next->dead)
			continue;
		ended(b, false);
		ended(next, false);
		if (b->job != next->job || b->left || next->left)
			continue;
		next->at = b->at;
		next->size += b->size;
		TAILQ_REMOVE(&slab->blocks, b, link);
		drv_job_put(b->job);
		free(b);
	}
}

/* Take [@at, @at + @size) out of the free @block; NULL: no host memory */
static struct drv_block *carve(struct drv_block *block, uint64_t at,
			       uint64_t size)
{
	struct drv_slab *slab = block->slab;
	struct drv_block *rest = NULL, *part = block;

	if (at > block->at) {
		part = block_new(slab, at, block->at + block->size - at);
		if (!part)
			return NULL;
	}
	if (part->size > size) {
		rest = block_new(slab, at + size, part->size - size);
		if (!rest) {
			if (part != block)
				free(part);
			return NULL;
		}
	}
	if (part != block) {
		block->size = at - block->at;
		part->job = drv_job_ref(block->job);
		TAILQ_INSERT_AFTER(&slab->blocks, block, part, link);
	}
	if (rest) {
		part->size = size;
		rest->job = drv_job_ref(part->job);
		TAILQ_INSERT_AFTER(&slab->blocks, part, rest, link);
	}
	return part;
}

static struct drv_block *slab_take(struct drv_slab *slab, uint64_t size,
				   CUstream stream, enum reuse how)
{
	uint64_t align = drv_small_align(slab->chunk->file, size);
	struct drv_block *b;

	merge(slab);
	TAILQ_FOREACH(b, &slab->blocks, link) {
		uint64_t at = (b->at + align - 1) & ~(align - 1);

		if (b->used || b->dead ||
		    !drv_span_has(at, size, b->at, b->size))
			continue;
		if (!ended(b, how == REUSE_BY_CHANCE) &&
		    !drv_stream_behind(stream, b->job) &&
		    (how != REUSE_BY_WAITING || b->job->stray))
			continue;
		forget(b);
		return carve(b, at, size);
	}
	return NULL;
}

/* ---- slabs ---- */

/* drv.lock is held; true: the caller frees it unlocked, with slab_free() */
static bool slab_drop(struct drv_slab *slab)
{
	struct drv_block *b;

	TAILQ_FOREACH(b, &slab->blocks, link)
		forget(b);
	LIST_REMOVE(slab, link);
	slab->pool->reserved -= slab->chunk->size;
	return drv_chunk_drop(slab->chunk);
}

/* @last: nobody else uses its memory */
static void slab_free(struct drv_slab *slab, bool last)
{
	struct drv_file *file = drv_file_ref(slab->chunk->file);
	struct drv_block *b;

	while ((b = TAILQ_FIRST(&slab->blocks))) {
		TAILQ_REMOVE(&slab->blocks, b, link);
		drv_job_put(b->job);
		free(b);
	}
	if (last)
		drv_chunk_free(slab->chunk);
	drv_file_unuse(file);
	drv_obj_put(&slab->pool->obj);
	free(slab);
}

/* With drv.lock held.  @size more would be too many. */
static bool is_full(CUmemoryPool pool, uint64_t size)
{
	return pool->props.maxSize && pool->reserved + size > pool->props.maxSize;
}

/*
 * A new one, and its first block, of @size bytes.  That is used already: nobody gives
 * the slab back, or takes the block, before the caller has it.
 * Here alone the pool grows, so its greatest size is checked in the same lock.
 */
static CUresult slab_new(CUmemoryPool pool, uint64_t size,
			 struct drv_block **out)
{
	uint64_t whole = (size + SLAB_GRANULE - 1) & ~(SLAB_GRANULE - 1);
	struct drv_slab *slab = calloc(1, sizeof(*slab));
	struct drv_block *block = NULL, *rest = NULL;
	struct drv_chunk *chunk;
	struct drv_file *file;
	CUresult err;

	if (slab)
		block = block_new(slab, 0, size);
	if (block && whole > size)
		rest = block_new(slab, size, whole - size);
	if (!block || (whole > size && !rest)) {
		err = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	err = drv_file_use(pool->dev, &file);
	if (err)
		goto out;
	err = drv_chunk_alloc(file, whole, false, &chunk);
	if (err)
		goto out_file;
	TAILQ_INIT(&slab->blocks);
	TAILQ_INSERT_HEAD(&slab->blocks, block, link);
	if (rest)
		TAILQ_INSERT_TAIL(&slab->blocks, rest, link);
	block->used = true;
	slab->used = 1;
	slab->chunk = chunk;
	pthread_mutex_lock(&drv.lock);
	if (is_full(pool, size))
		err = CUDA_ERROR_OUT_OF_MEMORY;
	else
		err = drv_chunk_add(NULL, chunk);
	if (!err) {
		atomic_fetch_add(&pool->obj.refs, 1);
		slab->pool = pool;
		pool->reserved += chunk->size;
		if (pool->reserved > pool->reserved_high)
			pool->reserved_high = pool->reserved;
		LIST_INSERT_HEAD(&pool->slabs, slab, link);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!err) {
		drv_file_put(file);	/* the chunk has one; we stay a user */
		*out = block;
		return CUDA_SUCCESS;
	}
	drv_chunk_free(chunk);
out_file:
	drv_file_unuse(file);
out:
	free(rest);
	free(block);
	free(slab);
	return err;
}

/*
 * Give back what nobody uses, while more than @above bytes are reserved and at least
 * @keep of them stay.
 */
static bool trim(CUmemoryPool pool, uint64_t above, uint64_t keep)
{
	struct drv_slab *slab;
	struct drv_block *b;
	bool last, any = false;

	for (;;) {
		last = false;
		pthread_mutex_lock(&drv.lock);
		LIST_FOREACH(slab, &pool->slabs, link) {
			if (slab->used || pool->reserved <= above ||
			    pool->reserved - slab->chunk->size < keep)
				continue;
			TAILQ_FOREACH(b, &slab->blocks, link)
				if (!ended(b, true))
					break;
			if (!b)
				break;
		}
		if (slab)
			last = slab_drop(slab);
		pthread_mutex_unlock(&drv.lock);
		if (!slab)
			return any;
		slab_free(slab, last);
		any = true;
	}
}

bool drv_pool_trim(CUmemoryPool pool, uint64_t keep)
{
	return trim(pool, 0, keep);
}

/* One whose last reference is gone is in the list for a moment yet */
static bool pool_ref(CUmemoryPool pool)
{
	int refs = atomic_load(&pool->obj.refs);

	while (refs && !atomic_compare_exchange_weak(&pool->obj.refs, &refs,
						     refs + 1))
		;
	return refs;
}

/* A pool of @dev after @pool, the first after NULL; a reference */
static CUmemoryPool next_pool(struct drv_device *dev, CUmemoryPool pool)
{
	CUmemoryPool next;

	pthread_mutex_lock(&drv.lock);
	next = pool ? LIST_NEXT(pool, link) : LIST_FIRST(&dev->pools);
	while (next && !pool_ref(next))
		next = LIST_NEXT(next, link);
	pthread_mutex_unlock(&drv.lock);
	if (pool)
		drv_obj_put(&pool->obj);
	return next;
}

bool drv_pools_squeeze(struct drv_device *dev)
{
	CUmemoryPool pool = NULL;
	bool any = false;

	while ((pool = next_pool(dev, pool)))
		any |= drv_pool_trim(pool, 0);
	return any;
}

void drv_pools_settle(struct drv_device *dev)
{
	CUmemoryPool pool = NULL;
	uint64_t above;

	while ((pool = next_pool(dev, pool))) {
		pthread_mutex_lock(&drv.lock);
		above = pool->gone ? 0 : pool->threshold;
		pthread_mutex_unlock(&drv.lock);
		/* As on a real GPU, this may end below the threshold */
		trim(pool, above, 0);
	}
}

/* ---- memory ---- */

/*
 * Find room; the block is used then, and @job is what @stream has to wait for
 * before it uses it, or NULL.
 */
static struct drv_block *find(CUmemoryPool pool, uint64_t size, CUstream stream,
			      struct drv_job **job)
{
	static const CUmemPool_attribute allows[] = {
		[REUSE_BY_CHANCE] = CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
		[REUSE_BY_WAITING] =
			CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
	};
	struct drv_block *block = NULL;
	struct drv_slab *slab;

	*job = NULL;
	for (enum reuse how = REUSE_ENDED; how <= REUSE_BY_WAITING; how++) {
		if (how != REUSE_ENDED && !pool->reuse[allows[how] - 1])
			continue;
		LIST_FOREACH(slab, &pool->slabs, link) {
			if (atomic_load(&slab->chunk->file->lost))
				continue;
			block = slab_take(slab, size, stream, how);
			if (!block)
				continue;
			*job = block->job;
			block->job = NULL;
			block->used = true;
			slab->used++;
			return block;
		}
	}
	return NULL;
}

/* drv.lock is held.  Takes over @job, what goes before the freeing, or NULL. */
static void give(struct drv_block *block, struct drv_job *job)
{
	struct drv_slab *slab = block->slab;

	slab->pool->used -= block->asked;
	slab->used--;
	block->used = false;
	block->dead = slab->chunk->exports;
	block->job = job;
}

/* drv.lock is held; @block is used */
static CUresult make_range(struct drv_block *block, size_t asked,
			   CUdeviceptr *out)
{
	CUmemoryPool pool = block->slab->pool;
	struct drv_range *range = calloc(1, sizeof(*range));
	CUresult err;

	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->addr = block->slab->chunk->addr + block->at;
	range->size = asked;
	range->kind = DRV_RANGE_POOL;
	range->dev = pool->dev;
	range->chunk = block->slab->chunk;
	range->pool = pool;
	range->block = block;
	err = drv_range_add(range);
	if (err) {
		free(range);
		return err;
	}
	block->asked = asked;
	pool->used += asked;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*out = range->addr;
	return CUDA_SUCCESS;
}

static CUresult alloc_in(CUmemoryPool pool, size_t asked, CUstream stream,
			 CUdeviceptr *out)
{
	uint64_t size = (asked + UNIT - 1) & ~(UNIT - 1);
	struct drv_job *job = NULL;
	struct drv_block *block;
	CUresult err;
	bool full;

	if (size < asked || size > pool->dev->info.vram_size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&drv.lock);
	while (!(block = find(pool, size, stream, &job))) {
		full = is_full(pool, size);
		pthread_mutex_unlock(&drv.lock);
		err = full ? CUDA_ERROR_OUT_OF_MEMORY : slab_new(pool, size, &block);
		if (err == CUDA_ERROR_OUT_OF_MEMORY) {
			/*
			 * What was freed and not waited for would do.  Others may be
			 * quicker to take it: again, until there is none.  In a full
			 * pool only what it keeps itself makes room.
			 */
			err = full ? CUDA_SUCCESS : drv_file_drain(stream->ctx->file);
			if (!err && !(full ? drv_pool_trim(pool, 0) :
				      drv_pools_squeeze(pool->dev)))
				err = CUDA_ERROR_OUT_OF_MEMORY;
		}
		if (err)
			return err;
		pthread_mutex_lock(&drv.lock);
		if (block)
			break;
	}
	err = make_range(block, asked, out);
	if (err) {
		block->asked = 0;
		give(block, job);
		job = NULL;
	}
	pthread_mutex_unlock(&drv.lock);
	/* The stream is not done before that is, either */
	if (drv_stream_follow(stream, job))
		err = drv_job_wait(job, true);	/* no room to note it down */
	drv_job_put(job);
	return err;
}

/* @pool: a reference that is taken over */
static CUresult alloc(CUdeviceptr *ptr, size_t size, CUmemoryPool pool,
		      CUstream stream)
{
	CUresult err = CUDA_SUCCESS;

	if (!ptr || pool->imported)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (!size)
		*ptr = 0;		/* nothing, as NVIDIA's driver has it */
	else
		err = alloc_in(pool, size, stream, ptr);
	drv_obj_put(&pool->obj);
	drv_obj_put(&stream->obj);
	return err;
}

DRV_PATCHABLE(cuMemAllocAsync, CUdeviceptr *ptr, size_t size, CUstream handle)
{
	CUmemoryPool pool;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = drv_pool_current(stream->ctx->dev, true, &pool);
	if (err) {
		drv_obj_put(&stream->obj);
		return err;
	}
	return alloc(ptr, size, pool, stream);
}

DRV_PATCHABLE(cuMemAllocFromPoolAsync, CUdeviceptr *ptr, size_t size,
	      CUmemoryPool handle, CUstream stream_handle)
{
	CUmemoryPool pool;
	CUstream stream;
	CUresult err = drv_stream_get(stream_handle, NULL, &stream);

	if (err)
		return err;
	err = drv_pool_get(handle, &pool);
	if (err) {
		drv_obj_put(&stream->obj);
		return err;
	}
	return alloc(ptr, size, pool, stream);
}

/* @range is in no tree any more */
void drv_pool_give(struct drv_range *range)
{
	CUmemoryPool pool = range->pool;
	bool gone;

	pthread_mutex_lock(&drv.lock);
	atomic_fetch_add(&pool->obj.refs, 1);
	give(range->block, NULL);
	gone = pool->gone;
	pthread_mutex_unlock(&drv.lock);
	if (gone)
		drv_pool_trim(pool, 0);
	drv_obj_put(&pool->obj);
}

/* drv.lock is held: what is pending may ask about the memory until @job, taken over, ends */
static void give_behind(struct drv_range *range, struct drv_job *job)
{
	range->after = job;
	range->block->left = range;
	give(range->block, drv_job_ref(job));
}

bool drv_pool_memory_free(CUdeviceptr ptr)
{
	struct drv_job *job = NULL;
	struct drv_range *range;

	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	if (!range || range->addr != ptr || range->kind != DRV_RANGE_POOL ||
	    range->after || drv_range_mark(range, &job)) {
		pthread_mutex_unlock(&drv.lock);
		return false;
	}
	if (job)
		give_behind(range, job);
	else
		drv_range_del(range);
	pthread_mutex_unlock(&drv.lock);
	if (!job)
		drv_range_free(range);
	return true;
}

/* Memory of no pool that is freed when a stream has come so far */
struct later {
	CUdeviceptr ptr;
	unsigned long long id;
};

/* Until then it is there, and may be freed otherwise */
static CUresult later_run(struct drv_job *job, void *arg)
{
	struct drv_range *range = NULL;
	struct later *later = arg;
	CUcontext ctx = NULL;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.lock);
	if (!atomic_load(&job->cancelled))
		range = drv_range_find(later->ptr, 1);
	if (range && range->id == later->id) {
		drv_range_del(range);
		ctx = range->ctx;
		if (ctx)
			atomic_fetch_add(&ctx->obj.refs, 1);
	} else {
		range = NULL;
	}
	pthread_mutex_unlock(&drv.lock);
	free(later);
	if (!range)
		return CUDA_SUCCESS;
	/* What is pending either comes before us, or is no user of the memory */
	err = drv_drain_engines();
	if (err)
		drv_range_back(range);
	else
		drv_range_free(range);
	drv_ctx_put(ctx);
	return err;
}

static CUresult free_later(CUstream stream, CUdeviceptr ptr,
			   unsigned long long id)
{
	struct later *later = malloc(sizeof(*later));
	CUresult err;

	if (!later)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*later = (struct later){ ptr, id };
	err = drv_stream_work(stream, NULL, DRV_USE_NONE, NULL, later_run,
			      later, NULL);
	if (err)
		free(later);
	return err;
}

DRV_PATCHABLE(cuMemFreeAsync, CUdeviceptr ptr, CUstream handle)
{
	const unsigned int kinds = DRV_KIND(DEVICE) | DRV_KIND(IMPORTED);
	unsigned long long id = 0;
	struct drv_range *range;
	struct drv_job *job;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = ptr ? drv_stream_mark_all(stream, &job) : CUDA_SUCCESS;
	if (err || !ptr)
		goto out;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find(ptr, 1);
	if (range && range->kind == DRV_RANGE_MANAGED) {
		err = CUDA_ERROR_NOT_SUPPORTED;
	} else if (!range || range->addr != ptr || range->after) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else if (range->kind == DRV_RANGE_POOL && job) {
		give_behind(range, job);
		job = NULL;
		range = NULL;
	} else if (range->kind == DRV_RANGE_POOL) {
		drv_range_del(range);
	} else if (kinds & 1u << range->kind) {
		id = range->id;
	} else {
		err = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&drv.lock);
	if (id)
		err = free_later(stream, ptr, id);
	else if (!err && range)
		drv_range_free(range);
	drv_job_put(job);
out:
	drv_obj_put(&stream->obj);
	return err;
}
