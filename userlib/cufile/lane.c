// SPDX-License-Identifier: MIT
/* Lanes: made when a transfer needs one, kept until the library is closed. */
#include <stdlib.h>
#include <sys/mman.h>

#include "lane.h"

#define SLACK		KIB(8)	/* room to read whole blocks around a chunk */

static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lane_freed = PTHREAD_COND_INITIALIZER;
static struct lane *idle;
static unsigned int lanes;

/* The slab class that serves the lanes: the largest of at most 4 MiB. */
size_t lane_size(size_t *slab_count)
{
	size_t best = 0, least = SIZE_MAX;
	unsigned int i, at = 0;

	for (i = 0; i < config.slabs.n; i++) {
		if (config.slabs.kb[i] <= 4096 && config.slabs.kb[i] > best) {
			best = config.slabs.kb[i];
			at = i;
		}
	}
	if (!best)
		for (i = 0; i < config.slabs.n; i++)
			if (config.slabs.kb[i] < least) {
				least = best = config.slabs.kb[i];
				at = i;
			}
	*slab_count = config.slabs.count[at];
	/* a chunk starts at a multiple of the chunk size, so of a page */
	return round_up(KIB(best), MIN_CHUNK);
}

/* A context may be gone, and its streams with it. */
static bool context_lives(const struct lane *l)
{
	unsigned long long now = 0;

	return cu.CtxGetId && !cu.CtxGetId(l->ctx, &now) && now == l->ctx_id;
}

static void forget_stream(struct lane *l, bool destroy)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (destroy && l->event[i])
			cu.EventDestroy(l->event[i]);
		l->event[i] = NULL;
	}
	if (destroy && l->stream)
		cu.StreamDestroy(l->stream);
	l->stream = NULL;
}

/* The caller has made @ctx current. */
static void bind_lane(struct lane *l, CUcontext ctx, unsigned long long id)
{
	if (l->stream)
		forget_stream(l, context_lives(l));
	l->ctx = ctx;
	l->ctx_id = id;
	if (!cu.async || cu.StreamCreate(&l->stream, CU_STREAM_NON_BLOCKING)) {
		l->stream = NULL;
		return;
	}
	if (cu.EventCreate(&l->event[0], CU_EVENT_DISABLE_TIMING) ||
	    cu.EventCreate(&l->event[1], CU_EVENT_DISABLE_TIMING))
		forget_stream(l, true);
}

static struct lane *make_lane(void)
{
	struct lane *l = calloc(1, sizeof(*l));
	size_t n, size = lane_size(&n) + SLACK;
	char *p;

	if (!l)
		return NULL;
	p = mmap(NULL, size * 2, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		free(l);
		return NULL;
	}
	madvise(p, size * 2, MADV_DONTFORK);
	/*
	 * Our own memory, pinned by CUDA, rather than CUDA's: it outlives the
	 * context in which it was pinned.  Without pinning it is only slower.
	 */
	l->registered = cu.HostRegister &&
			!cu.HostRegister(p, size * 2, CU_MEMHOSTREGISTER_PORTABLE);
	if (!l->registered)
		log_line(LOG_WARN, "staging buffers could not be pinned, "
			 "copies will be slower");
	l->buf[0] = p;
	l->buf[1] = p + size;
	stats_gauges.lanes++;
	return l;
}

static void free_lane(struct lane *l)
{
	CUcontext old;
	size_t n, size = lane_size(&n) + SLACK;
	bool alive = l->ctx && context_lives(l) && !cu.Push(l->ctx);

	forget_stream(l, alive);
	if (l->registered && cu.HostUnregister)
		cu.HostUnregister(l->buf[0]);
	if (alive)
		cu.Pop(&old);
	munmap(l->buf[0], size * 2);
	free(l);
	stats_gauges.lanes--;
}

struct lane *lane_get(const struct mem *mem, bool wait)
{
	struct lane **p, *l = NULL;
	size_t max;

	lane_size(&max);
	max = max / 2 ? max / 2 : 1;
	pthread_mutex_lock(&lane_lock);
	for (;;) {
		for (p = &idle; *p; p = &(*p)->next)
			if ((*p)->ctx == mem->ctx &&
			    (*p)->ctx_id == mem->ctx_id)
				break;
		if (*p) {
			l = *p;
			*p = l->next;
			break;
		}
		if (lanes < max) {
			lanes++;
			pthread_mutex_unlock(&lane_lock);
			l = make_lane();
			pthread_mutex_lock(&lane_lock);
			if (l)
				break;
			lanes--;
			if (!lanes) {
				/* nobody will give one back to those who wait */
				pthread_cond_broadcast(&lane_freed);
				break;
			}
		}
		if (idle) {
			l = idle;
			idle = l->next;
			break;
		}
		if (!wait)
			break;
		pthread_cond_wait(&lane_freed, &lane_lock);
	}
	pthread_mutex_unlock(&lane_lock);
	if (l && (l->ctx != mem->ctx || l->ctx_id != mem->ctx_id || !l->stream))
		bind_lane(l, mem->ctx, mem->ctx_id);
	return l;
}

void lane_put(struct lane *l)
{
	pthread_mutex_lock(&lane_lock);
	l->next = idle;
	idle = l;
	pthread_cond_signal(&lane_freed);
	pthread_mutex_unlock(&lane_lock);
}

int lane_without_stream(struct lane *l)
{
	bool alive = context_lives(l);
	int r = alive ? cu.StreamSync(l->stream) : 0;

	forget_stream(l, alive);
	return r;
}

void lane_free_all(void)
{
	struct lane *l;

	pthread_mutex_lock(&lane_lock);
	while (idle) {
		l = idle;
		idle = l->next;
		lanes--;
		free_lane(l);
	}
	pthread_mutex_unlock(&lane_lock);
}
