// SPDX-License-Identifier: MIT
/*
 * Blocks of GPU memory of the library's own: what a read wants a part of goes there
 * as whole blocks, and from there to its place (p2p.c).
 *
 * Each transfer has one for itself, with a stream that waits for none of the
 * program's.  They are made when a transfer needs one, of per_buffer_cache_size_kb
 * each, with what aligns it, and at most max_device_cache_size_kb in each context, and
 * kept until the library is closed.  Then whoever needs one waits.
 */
#include <stdlib.h>

#include "scratch.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct scratch *all;

static bool is_of(const struct scratch *s, const struct mem *mem)
{
	return s->mem.ctx == mem->ctx && s->mem.ctx_id == mem->ctx_id;
}

/*
 * CUresult.  Without the lock: CUDA may take its time.  But it must not wait for host
 * functions of the program, one of which may wait for this transfer: cuMemFree waits for
 * all that run (seen on an H100), unlike cuStreamCreate, cuMemAlloc and copies within
 * the GPU.  So memory of @s that cannot be told of stays, for the next attempt.
 */
static int make(struct scratch *s, size_t size, struct mem *mem)
{
	int r;

	/* without cuCtxGetId nobody would know whether it is still there */
	if (!cu.async || !cu.MemAlloc || !cu.MemFree || !cu.DtoDAsync || !cu.CtxGetId)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!s->memory) {
		r = cu.StreamCreate(&s->stream, CU_STREAM_NON_BLOCKING);
		if (r)
			return r;
		/* windows are of whole pages of the GPU */
		r = cu.MemAlloc(&s->memory, size + GPU_PAGE);
		if (r) {
			s->memory = 0;
			cu.StreamDestroy(s->stream);
			return r;
		}
	}
	s->at = round_up(s->memory, GPU_PAGE);
	r = mem_of(s->at, mem);
	if (!r)
		s->size = size;
	return r;
}

/* With the lock held: what contexts had that are gone is gone, too. */
static void forget(void)
{
	struct scratch **p = &all, *s;

	while ((s = *p)) {
		if (s->busy || cu_lives(s->mem.ctx, s->mem.ctx_id)) {
			p = &s->next;
			continue;
		}
		*p = s->next;
		free(s);
	}
}

/* With the lock held. */
static void drop(struct scratch *s)
{
	struct scratch **p = &all;

	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	free(s);
}

struct scratch *scratch_get(const struct mem *mem, int *err)
{
	size_t size = round_up(KIB(config.size[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB]),
			       GPU_PAGE);
	struct scratch *s;
	size_t have, most;
	struct mem its;

	*err = 0;
	pthread_mutex_lock(&lock);
	for (;;) {
		have = 0;
		most = KIB(config_now(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB)) /
		       (size + GPU_PAGE);
		for (s = all; s && (s->busy || !is_of(s, mem) || (*err && !s->size));
		     s = s->next)
			have += s->busy && is_of(s, mem);
		if (s) {
			s->busy = true;
			if (s->size)
				break;
		} else if (have < most && !*err) {
			forget();
			s = calloc(1, sizeof(*s));
			if (!s) {
				*err = CUDA_ERROR_OUT_OF_MEMORY;
				continue;
			}
			s->busy = true;
			s->mem = *mem;	/* so that it counts */
			s->next = all;
			all = s;
		} else if (have) {
			pthread_cond_wait(&change, &lock);
			continue;
		} else {
			break;	/* nobody will give one back */
		}
		pthread_mutex_unlock(&lock);
		*err = make(s, size, &its);
		pthread_mutex_lock(&lock);
		if (!*err) {
			s->mem = its;
			break;
		}
		s->busy = false;
		if (!s->memory)
			drop(s);
		pthread_cond_broadcast(&change);
	}
	pthread_mutex_unlock(&lock);
	return s;
}

void scratch_put(struct scratch *s)
{
	pthread_mutex_lock(&lock);
	s->busy = false;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
}

int scratch_copy(struct scratch *s, uint64_t to, uint64_t from, size_t n)
{
	int r = (int)cu.DtoDAsync(to, from, n, s->stream);

	return r ? r : (int)cu.StreamSync(s->stream);
}

/* Nobody has one. */
void scratch_free_all(void)
{
	struct scratch *s;
	CUcontext old;

	while ((s = all)) {
		all = s->next;
		if (cu_lives(s->mem.ctx, s->mem.ctx_id) && !cu.Push(s->mem.ctx)) {
			cu.StreamDestroy(s->stream);
			cu.MemFree(s->memory);
			cu.Pop(&old);
		}
		free(s);
	}
}
