// SPDX-License-Identifier: MIT
/*
 * Lanes: made when a transfer needs one, kept until the library is closed.  Two
 * slabs of the pool make one, on the GPU's node and of huge pages where there are
 * any.
 *
 * Each thread begins its search with the lane that it had last: its memory is in
 * that CPU's cache, and threads do not meet there.
 */
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"
#include "lane.h"

#define MAX_LANES	1024
#define HUGE_PAGE	MIB(2)
/*
 * With so many callers, and so many bytes of lane_in() under way, a wait is long and
 * its CPU is wanted: it ends with an interrupt.  16 callers of 1 MiB on an H100 take
 * 0.03 s of CPU for each GiB then, and 0.37 of a spinning wait, at nearly the same
 * speed; those of 64 KiB lose a quarter of it.
 */
#define SLEEP_CALLERS	4
#define SLEEP_BYTES	MIB(2)

/*
 * The end of a few bytes is seen sooner in memory that the stream writes behind them than
 * by cuStreamSynchronize(): 4 KiB to an H200 take 6.8 us then, and 7.7; 1 MiB 25.9 and 26.4.
 * It is one more call for the stream.  Calls of many threads wait for each other in the
 * driver: 2 threads have 1.2 times the speed, 4 have 0.8.
 */
#define MARK_CALLERS	2
#define MARK_BYTES	MIB(1)
/* After so many marks in a row that were not there soon: this GPU is slow to write them */
#define MARKS_LATE	8

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
/* Those who wait for a lane.  Who is first in it is the next to have one. */
static struct waiter {
	struct waiter *next;
	pthread_cond_t freed;
} *queue;
/* Its memory is mapped when the library is opened, and touched only if no other can be made */
static struct lane *reserve;
static struct lane *_Atomic table[MAX_LANES];
static _Atomic unsigned int made;	/* of the table */
static unsigned int lanes;		/* and those that are being made */
static _Atomic unsigned int waiters;	/* in it, or not yet */
static _Atomic size_t under_way;
static _Atomic unsigned int marks_late;	/* in a row */
static __thread unsigned int mine;	/* the latest that this thread had */

/*
 * Which slab class serves the lanes: the largest of at most 4 MiB, or the smallest.  One
 * serves all, as chunks of other sizes are cut out of its slabs.
 */
static unsigned int slab_class(void)
{
	const struct slabs *s = &config.slabs;
	unsigned int i, best = 0;

	for (i = 1; i < s->n; i++)
		if (s->kb[best] > 4096 ? s->kb[i] < s->kb[best] :
		    s->kb[i] <= 4096 && s->kb[i] > s->kb[best])
			best = i;
	return best;
}

static size_t slab(size_t *count)
{
	unsigned int i = slab_class();

	*count = config.slabs.count[i];
	return round_up(KIB(config.slabs.kb[i]), MIN_CHUNK);
}

void bounce_say_slabs(void)
{
	unsigned int i, at = slab_class();
	char rest[MAX_SLABS * 24] = "";
	size_t n, size = slab(&n);

	for (i = 0; i < config.slabs.n; i++)
		if (i != at)
			snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest),
				 "%s %zu", rest[0] ? "," : "; not used: slabs of KiB",
				 config.slabs.kb[i]);
	log_line(LOG_INFO, "staging has %zu slabs of %zu KiB of the pool%s", n,
		 size / KIB(1), rest);
}

size_t lane_chunk(void)
{
	size_t n;

	return slab(&n);
}

static void forget_stream(struct lane *l, bool destroy)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (destroy && l->event[i])
			cu.EventDestroy(l->event[i]);
		l->event[i] = NULL;
	}
	if (destroy && l->blocking)
		cu.EventDestroy(l->blocking);
	l->blocking = NULL;
	if (destroy && l->stream)
		cu.StreamDestroy(l->stream);
	l->stream = NULL;
}

/* The caller has made @ctx current. */
static void bind_lane(struct lane *l, CUcontext ctx, unsigned long long id)
{
	if (l->stream)
		forget_stream(l, cu_lives(l->ctx, l->ctx_id));
	l->ctx = ctx;
	l->ctx_id = id;
	if (!cu.async || cu.StreamCreate(&l->stream, CU_STREAM_NON_BLOCKING)) {
		l->stream = NULL;
		return;
	}
	if (cu.EventCreate(&l->event[0], CU_EVENT_DISABLE_TIMING) ||
	    cu.EventCreate(&l->event[1], CU_EVENT_DISABLE_TIMING) ||
	    cu.EventCreate(&l->blocking,
			   CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
		forget_stream(l, true);
}

/* ---- memory ---- */

/* The node that the GPU is at, or -1. */
static int numa_node(int gpu)
{
	char bdf[32], path[80];
	int node = -1;
	FILE *f;

	if (!cu_pci_address(gpu, bdf, sizeof(bdf)))
		return -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bdf);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

/* Preferred: memory of another node is better than none.  Before it is touched. */
static void place(void *p, size_t len, int node)
{
	unsigned long mask[16] = { 0 };
	const unsigned int bits = 8 * sizeof(mask[0]);

	if (node < 0 || (unsigned int)node >= 16 * bits)
		return;
	mask[(unsigned int)node / bits] = 1ul << (unsigned int)node % bits;
	syscall(SYS_mbind, p, len, MPOL_PREFERRED, mask, 16 * bits, 0);
}

/*
 * Huge pages of the administrator's pool, else the kernel's own choice of them.  A
 * page of that pool that is not to be had on touch is a signal: so it is asked for.
 * *@mapped: what it takes; only of the former it is more, as they are whole.
 */
static char *map_memory(size_t len, int node, bool may_be_huge, size_t *mapped)
{
	const int prot = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	size_t huge = len < HUGE_PAGE || !may_be_huge ? 0 : HUGE_PAGE, head;
	char *p = MAP_FAILED;

	if (huge) {
		*mapped = round_up(len, HUGE_PAGE);
		p = mmap(NULL, *mapped, prot, flags | MAP_HUGETLB, -1, 0);
		if (p != MAP_FAILED) {
			place(p, *mapped, node);
			if (!madvise(p, *mapped, MADV_POPULATE_WRITE))
				return p;
			munmap(p, *mapped);
		}
	}
	*mapped = len;
	p = mmap(NULL, len + huge, prot, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (huge) {
		head = round_up((uintptr_t)p, HUGE_PAGE) - (uintptr_t)p;
		if (head)
			munmap(p, head);
		if (huge - head)
			munmap(p + head + len, huge - head);
		p += head;
		madvise(p, len, MADV_HUGEPAGE);
	}
	place(p, len, node);
	return p;
}

/* Not pinned */
static struct lane *bare_lane(int node, bool may_be_huge)
{
	struct lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->size = lane_chunk() + SLACK;
	l->half[0] = map_memory(2 * l->size + PAGE, node, may_be_huge, &l->mapped);
	if (!l->half[0]) {
		free(l);
		return NULL;
	}
	l->half[1] = l->half[0] + l->size;
	l->mark = (_Atomic uint32_t *)(l->half[1] + l->size);
	l->busy = true;
	madvise(l->half[0], l->mapped, MADV_DONTFORK);
	return l;
}

static struct lane *make_lane(int gpu)
{
	struct lane *l = bare_lane(numa_node(gpu), true);

	if (!l)
		return NULL;
	/*
	 * Our own memory, pinned by CUDA, rather than CUDA's: it outlives the
	 * context in which it was pinned.  Without pinning it is only slower.
	 */
	l->registered = cu.HostRegister &&
			!cu.HostRegister(l->half[0], 2 * l->size + PAGE,
					 CU_MEMHOSTREGISTER_PORTABLE);
	if (!l->registered)
		log_line(LOG_WARN, "staging buffers could not be pinned, "
			 "copies will be slower");
	return l;
}

void lane_reserve(void)
{
	reserve = bare_lane(-1, false);
}

static void free_lane(struct lane *l)
{
	CUcontext old;
	bool alive = l->ctx && cu_lives(l->ctx, l->ctx_id) && !cu.Push(l->ctx);

	forget_stream(l, alive);
	if (l->registered && cu.HostUnregister)
		cu.HostUnregister(l->half[0]);
	if (alive)
		cu.Pop(&old);
	munmap(l->half[0], l->mapped);
	free(l);
}

/* ---- who has which ---- */

static bool bound(const struct lane *l, const struct mem *mem)
{
	return l->ctx == mem->ctx && l->ctx_id == mem->ctx_id;
}

/* One that nobody has, of this context or of @any.  @locked: with the lock held. */
static struct lane *take(const struct mem *mem, bool any, bool locked)
{
	unsigned int i, n = made, at;

	for (i = 0; i < n; i++) {
		struct lane *l;

		at = (mine + i) % n;
		l = table[at];
		if (l->busy || !(any || bound(l, mem)) ||
		    atomic_exchange(&l->busy, true))
			continue;
		if (any || bound(l, mem)) {
			mine = at;
			return l;
		}
		/* it was bound to another one meanwhile */
		if (locked)
			l->busy = false;	/* for whoever has the lock: us */
		else
			lane_put(l);
	}
	return NULL;
}

static void enqueue(struct waiter *w)
{
	struct waiter **p = &queue;

	pthread_cond_init(&w->freed, NULL);
	w->next = NULL;
	while (*p)
		p = &(*p)->next;
	*p = w;
}

static void dequeue(struct waiter *w)
{
	struct waiter **p = &queue;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	pthread_cond_destroy(&w->freed);
	/* there may be something for it, too */
	if (queue)
		pthread_cond_signal(&queue->freed);
}

/*
 * Where none is free: make one, or have one of another context, or wait.  Who waits
 * is not overtaken.
 */
static struct lane *get_slowly(const struct mem *mem, bool wait)
{
	bool first, queued = false;
	struct waiter w;
	struct lane *l;
	size_t max;

	slab(&max);
	max = max / 2 ? min_of(max / 2, MAX_LANES) : 1;
	pthread_mutex_lock(&lane_lock);
	waiters++;
	for (;;) {
		first = !queue || queue == &w;
		l = first ? take(mem, false, true) : NULL;
		if (l)
			break;
		if (lanes < max) {
			lanes++;
			pthread_mutex_unlock(&lane_lock);
			l = make_lane(mem->gpu);
			pthread_mutex_lock(&lane_lock);
			if (!l && lanes == 1) {
				/* nobody will give one back to those who wait */
				l = reserve;
				reserve = NULL;
			}
			if (l) {
				mine = made;
				table[mine] = l;
				made = mine + 1;
				stats_gauges.lanes++;
				break;
			}
			lanes--;
			if (!lanes)
				break;
			first = !queue || queue == &w;
		}
		l = first ? take(mem, true, true) : NULL;
		if (l || !wait)
			break;
		if (!queued)
			enqueue(&w);
		queued = true;
		pthread_cond_wait(&w.freed, &lane_lock);
	}
	if (queued)
		dequeue(&w);
	else if (!l && queue)
		pthread_cond_signal(&queue->freed);
	waiters--;
	pthread_mutex_unlock(&lane_lock);
	return l;
}

struct lane *lane_get(const struct mem *mem, bool wait)
{
	struct lane *l = waiters ? NULL : take(mem, false, false);

	if (!l)
		l = get_slowly(mem, wait);
	if (l && (!bound(l, mem) || !l->stream))
		bind_lane(l, mem->ctx, mem->ctx_id);
	return l;
}

void lane_put(struct lane *l)
{
	l->busy = false;
	/* who waits has said so before it looked */
	if (!waiters)
		return;
	pthread_mutex_lock(&lane_lock);
	if (queue)
		pthread_cond_signal(&queue->freed);
	pthread_mutex_unlock(&lane_lock);
}

int lane_in(struct lane *l, uint64_t dev, const void *from, size_t n)
{
	l->under_way += n;
	under_way += n;
	return cu.HtoDAsync(dev, from, n, l->stream);
}

void lane_mark(struct lane *l, size_t n)
{
	if (!cu.WriteValue || !l->stream || !l->registered || n > MARK_BYTES ||
	    crew_callers() > MARK_CALLERS || marks_late >= MARKS_LATE)
		return;
	l->marked = !cu.WriteValue(l->stream, (uintptr_t)l->mark, ++l->marks,
				   CU_STREAM_WRITE_VALUE_DEFAULT);
	if (!l->marked)
		marks_late = MARKS_LATE;
}

/* A stream in error never writes its mark, and tells of it when it is waited for. */
static bool mark_is_there(struct lane *l)
{
	bool there = l->marked && crew_spin(l->mark, l->marks);

	if (there)
		marks_late = 0;
	else if (l->marked)
		marks_late++;
	return there;
}

static void settled(struct lane *l)
{
	l->marked = false;
	under_way -= l->under_way;
	l->under_way = 0;
}

int lane_settle(struct lane *l)
{
	int r;

	if (!l->stream)
		return 0;
	if (mark_is_there(l))
		r = 0;
	else if (l->under_way && under_way >= SLEEP_BYTES && crew_callers() >= SLEEP_CALLERS &&
	    !cu.EventRecord(l->blocking, l->stream))
		r = cu.EventSync(l->blocking);
	else
		r = cu.StreamSync(l->stream);
	settled(l);
	return r;
}

int lane_without_stream(struct lane *l)
{
	bool alive = cu_lives(l->ctx, l->ctx_id);
	int r = alive ? cu.StreamSync(l->stream) : 0;

	settled(l);
	forget_stream(l, alive);
	return r;
}

/* Nobody has one. */
void lane_free_all(void)
{
	pthread_mutex_lock(&lane_lock);
	while (made) {
		unsigned int i = made - 1;

		made = i;
		free_lane(table[i]);
		table[i] = NULL;
		lanes--;
		stats_gauges.lanes--;
	}
	if (reserve)
		free_lane(reserve);
	reserve = NULL;
	marks_late = 0;
	pthread_mutex_unlock(&lane_lock);
}
