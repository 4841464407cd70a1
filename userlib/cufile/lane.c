// SPDX-License-Identifier: MIT
/*
 * Lanes: made when a transfer needs one, kept until the library is closed.  Two
 * slabs of one class of the pool make one, on the GPU's node and of huge pages where
 * there are any.  A transfer takes the smallest class that holds its chunks, or a
 * larger one while that has all its lanes in use.
 *
 * Each thread begins its search in a class with the lane that it had last: its memory
 * is in that CPU's cache, and threads do not meet there.
 */
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"
#include "lane.h"

#define MAX_LANES	1024	/* of a class */
#define MOST_CHUNK	MIB(4)	/* larger ones bring nothing, so slabs need not hold them */
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
#define MARKS_AGAIN	1024	/* copies, then one is marked to see */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static pthread_mutex_t lane_lock = PTHREAD_MUTEX_INITIALIZER;
/*
 * Those who wait for a lane.  Who is the first of those that a class serves is the next
 * to have one of it.
 */
static struct waiter {
	struct waiter *next;
	pthread_cond_t freed;
	unsigned int fit;	/* the smallest class that serves it */
	unsigned int tried;	/* bits: classes of which it could make no lane */
} *queue;
/* Its memory is mapped when the library is opened, and touched only if no other can be made */
static struct lane *reserve;
/* Sorted by their size; those are written when the library is opened only */
static struct class {
	size_t size;			/* of a slab */
	unsigned int max;		/* lanes */
	struct lane *_Atomic table[MAX_LANES];
	_Atomic unsigned int made;	/* of the table */
	unsigned int lanes;		/* and those that are being made */
} class[MAX_SLABS];
static unsigned int classes;
static unsigned int usual;		/* the class with the largest chunks */
static _Atomic unsigned int waiters;	/* in the queue, or not yet */
static _Atomic size_t under_way;
static _Atomic unsigned int marks_late;	/* in a row */
static __thread unsigned int mine[MAX_SLABS];	/* the latest that this thread had */

size_t lane_chunk(void)
{
	return class[usual].size;
}

static unsigned int class_for(size_t chunk)
{
	unsigned int i = 0;

	while (class[i].size < chunk)
		i++;
	return i;
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

/*
 * Our own memory, pinned by CUDA, rather than CUDA's: other contexts use it, too.  Without
 * pinning it is only slower.  The caller has made @ctx current.
 */
static void pin_lane(struct lane *l, CUcontext ctx, unsigned long long id)
{
	int r = cu.HostRegister ? cu.HostRegister(l->half[0], 2 * l->size + PAGE,
						  CU_MEMHOSTREGISTER_PORTABLE) :
				  CUDA_ERROR_NOT_SUPPORTED;

	l->registered = !r || r == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	l->pinned_ctx = ctx;
	l->pinned_id = id;
	if (!l->registered)
		log_line(LOG_WARN, "staging buffers could not be pinned, "
			 "copies will be slower");
}

/* It went with the context that pinned it. */
static bool pin_lost(const struct lane *l)
{
	return l->registered && cu.CtxGetId && !cu_lives(l->pinned_ctx, l->pinned_id);
}

/* The caller has made @ctx current. */
static void bind_lane(struct lane *l, CUcontext ctx, unsigned long long id)
{
	if (l->stream)
		forget_stream(l, cu_lives(l->ctx, l->ctx_id));
	if (pin_lost(l))
		pin_lane(l, ctx, id);
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
static struct lane *bare_lane(unsigned int at, int node, bool may_be_huge)
{
	struct lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->class = at;
	l->size = class[at].size + SLACK;
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

static struct lane *make_lane(unsigned int at, const struct mem *mem)
{
	struct lane *l = bare_lane(at, numa_node(mem->gpu), true);

	if (l)
		pin_lane(l, mem->ctx, mem->ctx_id);
	return l;
}

void lane_open(void)
{
	const struct slabs *s = &config.slabs;
	char list[MAX_SLABS * 32] = "";
	unsigned int i, k;
	size_t n;

	classes = s->n;
	for (i = 0; i < classes; i++) {
		const size_t size = round_up(KIB(s->kb[i]), PAGE);

		for (k = i; k && class[k - 1].size > size; k--) {
			class[k].size = class[k - 1].size;
			class[k].max = class[k - 1].max;
		}
		n = s->count[i] / 2 ? s->count[i] / 2 : 1;
		class[k].size = size;
		class[k].max = (unsigned int)min_of(n, MAX_LANES);
	}
	for (usual = classes - 1; usual && class[usual].size > MOST_CHUNK; usual--)
		;
	/* no chunk is larger: what larger slabs have beyond it, and larger classes, bring nothing */
	class[usual].size = min_of(class[usual].size, MOST_CHUNK);
	for (i = 0; i < classes; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%u of %zu",
			 i ? ", " : "", 2 * class[i].max, class[i].size / KIB(1));
	log_line(LOG_INFO, "the pool for staging has slabs of KiB: %s", list);
	classes = usual + 1;
	reserve = bare_lane(usual, -1, false);
}

static void free_lane(struct lane *l)
{
	CUcontext old;
	bool alive = l->ctx && cu_lives(l->ctx, l->ctx_id) && !cu.Push(l->ctx);

	forget_stream(l, alive);
	if (alive)
		cu.Pop(&old);
	alive = l->registered && cu_lives(l->pinned_ctx, l->pinned_id) && !cu.Push(l->pinned_ctx);
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

/* One of the class that nobody has, of this context or of @any.  @locked: with the lock held. */
static struct lane *take(unsigned int from, const struct mem *mem, bool any, bool locked)
{
	struct class *c = &class[from];
	unsigned int i, n = c->made, at;

	for (i = 0; i < n; i++) {
		struct lane *l;

		at = (mine[from] + i) % n;
		l = c->table[at];
		if (l->busy || !(any || bound(l, mem)) ||
		    atomic_exchange(&l->busy, true))
			continue;
		if (any || bound(l, mem)) {
			mine[from] = at;
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

/* A lane of the class may be free. */
static void wake(unsigned int at)
{
	struct waiter *w = queue;

	while (w && w->fit > at)
		w = w->next;
	if (w)
		pthread_cond_signal(&w->freed);
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
}

/* Does nobody wait before @w, which may not be in the queue yet, for one of the class? */
static bool first(const struct waiter *w, unsigned int at)
{
	const struct waiter *p = queue;

	while (p && p != w && p->fit > at)
		p = p->next;
	return !p || p == w;
}

/* One that is free, of the smallest class; or NULL, and in *@at the class to make one of. */
static struct lane *find(const struct mem *mem, const struct waiter *w, unsigned int *at)
{
	struct lane *l = NULL;
	unsigned int i;

	*at = classes;
	for (i = w->fit; i < classes && !l; i++) {
		if (first(w, i))
			l = take(i, mem, false, true);
		if (!l && class[i].lanes < class[i].max && !(w->tried & 1u << i)) {
			*at = i;
			break;
		}
		if (!l && first(w, i))
			l = take(i, mem, true, true);
	}
	return l;
}

static struct lane *add(struct lane *l)
{
	struct class *c = &class[l->class];

	mine[l->class] = c->made;
	c->table[c->made] = l;
	c->made++;
	stats_gauges.lanes++;
	return l;
}

/* Without the lock for a while.  NULL: @w has tried. */
static struct lane *make_one(const struct mem *mem, struct waiter *w, unsigned int at)
{
	struct lane *l = NULL;
	struct waiter *other;

	class[at].lanes++;
	pthread_mutex_unlock(&lane_lock);
	/* who could wait for a smaller one leaves the program half of what there is */
	if (at == w->fit || 2 * class[at].size <= config_memory_left() / 2)
		l = make_lane(at, mem);
	pthread_mutex_lock(&lane_lock);
	if (l)
		return add(l);
	class[at].lanes--;
	w->tried |= 1u << at;
	/* others may have waited for this one alone, and then have the reserve */
	for (other = class[at].lanes ? NULL : queue; other; other = other->next)
		pthread_cond_signal(&other->freed);
	return NULL;
}

static unsigned int lanes_from(unsigned int fit)
{
	unsigned int n = 0;

	for (; fit < classes; fit++)
		n += class[fit].lanes;
	return n;
}

/*
 * Where none is free: make one, or have one of another context, or wait.  Who waits
 * is not overtaken.
 */
static struct lane *get_slowly(const struct mem *mem, unsigned int fit, bool wait)
{
	struct waiter w = { .fit = fit };
	bool queued = false;
	struct lane *l;
	unsigned int at;

	pthread_mutex_lock(&lane_lock);
	waiters++;
	for (;;) {
		l = find(mem, &w, &at);
		if (at < classes) {
			l = make_one(mem, &w, at);
			if (!l)
				continue;
		}
		if (!l && !lanes_from(fit) && reserve) {
			/* nobody will give one back to those who wait */
			l = add(reserve);
			class[usual].lanes++;
			reserve = NULL;
		}
		if (l || !wait || !lanes_from(fit))
			break;
		if (!queued)
			enqueue(&w);
		queued = true;
		pthread_cond_wait(&w.freed, &lane_lock);
	}
	if (queued)
		dequeue(&w);
	/* there may be something for others, too */
	for (at = 0; at < classes && queue; at++)
		wake(at);
	waiters--;
	pthread_mutex_unlock(&lane_lock);
	return l;
}

struct lane *lane_get(const struct mem *mem, size_t chunk, bool wait)
{
	unsigned int fit = class_for(chunk);
	struct lane *l = waiters ? NULL : take(fit, mem, false, false);

	if (!l)
		l = get_slowly(mem, fit, wait);
	if (l && (!bound(l, mem) || !l->stream))
		bind_lane(l, mem->ctx, mem->ctx_id);
	else if (l && l->pinned_id != mem->ctx_id && pin_lost(l))
		pin_lane(l, mem->ctx, mem->ctx_id);
	return l;
}

void lane_put(struct lane *l)
{
	const unsigned int at = l->class;

	l->busy = false;
	/* who waits has said so before it looked */
	if (!waiters)
		return;
	pthread_mutex_lock(&lane_lock);
	wake(at);
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
	static _Atomic unsigned int without;

	if (!cu.WriteValue || !l->stream || !l->registered || n > MARK_BYTES ||
	    crew_callers() > MARK_CALLERS)
		return;
	/* the engines may have been busy for a while only */
	if (marks_late >= MARKS_LATE && ++without % MARKS_AGAIN)
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
	struct class *c;

	pthread_mutex_lock(&lane_lock);
	for (c = class; c < class + classes; c++)
		while (c->made) {
			unsigned int i = c->made - 1;

			c->made = i;
			free_lane(c->table[i]);
			c->table[i] = NULL;
			c->lanes--;
			stats_gauges.lanes--;
		}
	if (reserve)
		free_lane(reserve);
	reserve = NULL;
	marks_late = 0;
	pthread_mutex_unlock(&lane_lock);
}
