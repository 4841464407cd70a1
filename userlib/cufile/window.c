// SPDX-License-Identifier: MIT
/*
 * Windows: mappings of GPU memory into this process, through a dma-buf or lent by
 * nvidia-uvm (uvm.c), or registrations of it with the kernel module where it cannot
 * be mapped.  Each takes room in the GPU's BAR1, which may be smaller than its memory.  So they
 * are a cache: made when memory is registered, if there is room, or when a transfer needs
 * one, and given up when BAR1 is full, oldest first, but for those that were used since the
 * last time round.  A window that a transfer is using stays.
 *
 * They lie in a table in the order of their addresses and do not overlap.  Who
 * makes one holds `making`, and `lock` only to look and to enter it, so that
 * transfers which find theirs do not wait for CUDA and the kernel.
 *
 * A transfer finds its window without a lock: `hints` has it by its memory and place.  A
 * window may be retired at any time, so a reference is taken only of one that is not
 * dead, and then its memory and range are checked.  For this the structs are never
 * freed, but used again.  Where the hint is of another one, it is a
 * binary search with `lock` held.
 *
 * Memory of which there can be no window has one without either, so that nobody
 * is asked again while it is the same memory.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/*
 * Windows looked at for memory that is freed by now: when one is made, when a buffer or
 * a handle is deregistered, and of all every LOOK_NS by who does IO then
 */
#define SWEEP		4
#define SWEEP_MANY	256
#define SWEEP_SHARE(n)	((n) / 16 + SWEEP)
#define LOOK_NS		100000000

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static unsigned int hand;		/* of the sweep; under `making` */

#define WINDOW_DEAD	(1u << 31)	/* in refs: not in the table */

#define HINT_BITS	16
static struct window *_Atomic hints[1 << HINT_BITS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int forgotten;	/* windows that were none */
static struct window *head, *tail;	/* the newest first */
static struct window *spare;		/* linked by next */
static struct window **table;
static unsigned int count, room;
static _Atomic uint64_t no_pages;	/* a bit for each GPU: window_no_pages() */

static uint64_t bit_of(int gpu)
{
	return gpu < 0 || gpu >= 64 ? 0 : 1ull << gpu;
}

static void unlist(struct window *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		tail = w->prev;
	w->prev = w->next = NULL;
}

static void list_front(struct window *w)
{
	w->prev = NULL;
	w->next = head;
	if (head)
		head->prev = w;
	else
		tail = w;
	head = w;
}

/* With the lock held: the place of the first window that ends behind @addr. */
static unsigned int place(uint64_t addr)
{
	unsigned int lo = 0, hi = count;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (table[mid]->start + table[mid]->len <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* With the lock held. */
static void leave_table(struct window *w)
{
	unsigned int i = place(w->start);

	memmove(table + i, table + i + 1, (--count - i) * sizeof(*table));
	unlist(w);
}

/* With the lock held: out of the table, and to @gone if nobody uses it. */
static void retire(struct window *w, struct window **gone)
{
	bool none = w->err;

	if (w->refs & WINDOW_DEAD)
		return;
	leave_table(w);
	/* from here on nobody finds it; who uses it now may be the last to see it */
	if (!atomic_fetch_or(&w->refs, WINDOW_DEAD)) {
		w->next = *gone;
		*gone = w;
	}
	/* not before, or who finds it meanwhile keeps its refusal */
	if (none)
		forgotten++;
}

/* A reference of a window that may be dead, or used again for other memory. */
static bool ref(struct window *w)
{
	uint32_t refs = w->refs;

	while (!(refs & WINDOW_DEAD))
		if (atomic_compare_exchange_weak(&w->refs, &refs, refs + 1))
			return true;
	return false;
}

/* Who called has used it. */
static void unref(struct window *w, struct window **gone)
{
	if (atomic_fetch_sub(&w->refs, 1) != (WINDOW_DEAD | 1))
		return;
	w->next = *gone;
	*gone = w;
}

/*
 * Where @mem has its hint for @addr: windows begin at multiples of their size in it.
 * Smaller ones, for lack of room, share it: only one of them is found by it.
 */
static struct window *_Atomic *hint_of(const struct mem *mem, uint64_t addr)
{
	uint64_t size = round_up(KIB(config.window_kb), GPU_PAGE);
	uint64_t key = mem->buffer_id << 20 ^
		(addr - round_down(mem->start, GPU_PAGE)) / size;

	return &hints[key * 0x9e3779b97f4a7c15ull >> (64 - HINT_BITS)];
}

/* What @w takes of BAR1: whole GPU pages, though it may be of less. */
static size_t taken(const struct window *w)
{
	return round_up(w->map_start + w->map_len, GPU_PAGE) -
	       round_down(w->map_start, GPU_PAGE);
}

/* A struct that is dead; others may still look at its refs. */
static struct window *window_new(void)
{
	struct window *w;

	pthread_mutex_lock(&lock);
	w = spare;
	if (w)
		spare = w->next;
	pthread_mutex_unlock(&lock);
	if (w) {
		memset(w, 0, offsetof(struct window, refs));
		return w;
	}
	w = calloc(1, sizeof(*w));
	if (w)
		w->refs = WINDOW_DEAD;
	return w;
}

static void window_free(struct window *w)
{
	pthread_mutex_lock(&lock);
	w->next = spare;
	spare = w;
	pthread_mutex_unlock(&lock);
}

/* Without the lock, as unmapping takes the kernel a while. */
static void unmap(struct window *gone)
{
	while (gone) {
		struct window *w = gone;

		gone = w->next;
		if (!w->err) {
			if (w->uvm)
				uvm_unmap(w->map, w->map_len);
			else if (w->map)
				munmap(w->map, w->map_len);
			else
				module_unregister(w->handle);
			stats_gauges.windows--;
			stats_gauges.window_bytes -= taken(w);
		}
		window_free(w);
	}
}

/* @registered: one that the kernel module has. */
static bool evict_one(bool registered)
{
	struct window *w, *gone = NULL;
	uint32_t unused;
	unsigned int n;

	pthread_mutex_lock(&lock);
	/* the third time round it may be one that others have used in between */
	for (n = 3 * count; n; n--) {
		w = tail;
		unused = 0;
		if (!w->err && !(registered && w->map) && (!w->used || n <= count) &&
		    atomic_compare_exchange_strong(&w->refs, &unused, WINDOW_DEAD)) {
			leave_table(w);
			gone = w;
			break;
		}
		/* it is looked at again in the next round */
		w->used = false;
		unlist(w);
		list_front(w);
	}
	pthread_mutex_unlock(&lock);
	if (!gone)
		return false;
	stats_gauges.window_evictions++;
	unmap(gone);
	return true;
}

/*
 * Nobody says when memory is freed.  So who makes a window, or passes by at times, looks
 * at some of the others, each in its turn: those of freed memory are never many more than
 * those of memory that is there, and none is kept for long while there is IO.  With
 * `making` held.
 */
static void sweep(unsigned int n)
{
	struct window *w, *gone = NULL;

	while (n--) {
		pthread_mutex_lock(&lock);
		if (hand >= count)
			hand = 0;
		w = count ? table[hand++] : NULL;
		if (w)
			ref(w);
		pthread_mutex_unlock(&lock);
		if (!w)
			break;
		if (mem_freed(w->start, w->buffer_id)) {
			pthread_mutex_lock(&lock);
			retire(w, &gone);
			hand--;
			pthread_mutex_unlock(&lock);
		}
		unref(w, &gone);
	}
	unmap(gone);
}

static uint64_t ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Who has `making` makes one, and looks itself */
static void look(bool many)
{
	unsigned int n;

	if (pthread_mutex_trylock(&making))
		return;
	pthread_mutex_lock(&lock);
	n = many ? (unsigned int)min_of(count, SWEEP_MANY) : SWEEP_SHARE(count);
	pthread_mutex_unlock(&lock);
	sweep(n);
	pthread_mutex_unlock(&making);
}

void window_look(void)
{
	look(true);
}

void window_look_at_times(void)
{
	static _Atomic uint64_t next;
	uint64_t now = ns_now(), then = next;

	if (now >= then && atomic_compare_exchange_strong(&next, &then, now + LOOK_NS))
		look(false);
}

/* 0, or -errno of the step that failed. */
static int map_range(uint64_t start, size_t len, char **host, CUresult *cu_err)
{
	int fd = -1, r;
	void *p;

	*cu_err = 0;
	if (!cu.MemGetHandle) {
		*cu_err = CUDA_ERROR_NOT_SUPPORTED;
		return -ENOSYS;
	}
	r = cu.MemGetHandle(&fd, start, len, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return -ENOSPC;
	if (r || fd < 0) {
		*cu_err = r ? r : CUDA_ERROR_NOT_SUPPORTED;
		return -EOPNOTSUPP;
	}
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = p == MAP_FAILED ? -errno : 0;
	close(fd);
	if (r)
		return r == -ENOMEM ? -ENOSPC : r;
	madvise(p, len, MADV_DONTFORK);
	*host = p;
	return 0;
}

/* It may work later, or for less: EIO and ENODEV are of a GPU that is being reset. */
static bool of_the_moment(int r, CUresult cu_err, bool module)
{
	return r == -ENOSPC || r == -EAGAIN || r == -ENOMEM || r == -EINTR ||
	       (module && (r == -EIO || r == -ENODEV)) ||
	       (cu_err && cu_err != CUDA_ERROR_NOT_SUPPORTED &&
		cu_err != CUDA_ERROR_INVALID_VALUE);
}

static int register_range(struct window *w, struct no_window *why)
{
	int r = module_register(w->map_start, w->map_len, &w->handle, &why->module);

	why->quota = r == -EDQUOT;
	return why->quota ? -ENOSPC : r;
}

/*
 * Maps @w, or registers it where there is no mapping and a module.  A map is of pages
 * of the CPU that have memory of @mem: CUDA makes none that begins where nothing is
 * allocated, as before memory whose neighbour was freed.  The module takes GPU pages.
 */
static int open_range(struct window *w, const struct mem *mem,
		      struct no_window *why)
{
	bool map = config.flag[CUFILE_PARAM_USE_PCIP2PDMA];
	uint64_t start = round_down(mem->start, PAGE);
	uint64_t end = round_up(mem->start + mem->len, PAGE);
	int r = -EOPNOTSUPP, module;

	*why = (struct no_window){ .of_module = !map };
	if (map && no_pages & bit_of(mem->gpu) && module_there()) {
		module = register_range(w, why);
		if (!module || module == -ENOSPC)
			return module;
		why->module = NULL;
	}
	if (map) {
		if (start < w->map_start)
			start = w->map_start;
		if (end > w->map_start + w->map_len)
			end = w->map_start + w->map_len;
		r = uvm_map(mem, w->map_start, w->map_len, &w->map, why);
		w->uvm = !r;
		/* the dma-bufs of its driver have no mapping with pages */
		if (r && !why->uvm[0]) {
			r = map_range(start, end - start, &w->map, &why->cu_err);
			if (!r) {
				w->map_start = start;
				w->map_len = end - start;
			}
		}
		if (!r || of_the_moment(r, why->cu_err, false))
			return r;
	}
	if (!module_there())
		return r;
	module = register_range(w, why);
	if (module == -ENOSPC)
		why->uvm[0] = '\0';	/* the lack is the module's */
	return !module || module == -ENOSPC || !map ? module : r;
}

/*
 * The GPU pages to map for @addr, of at most @size: between the windows that the
 * memory has.  What lies there of other memory is of memory that was freed.
 * With `making` held.
 */
static void fit(const struct mem *mem, uint64_t addr, size_t size,
		uint64_t *start, uint64_t *end)
{
	uint64_t first = round_down(mem->start, GPU_PAGE);
	uint64_t last = mem->start + mem->len;
	struct window *w, *gone = NULL;
	unsigned int i;

	*start = first + round_down(addr - first, size);
	*end = *start + size;
	if (*end > round_up(last, GPU_PAGE))
		*end = round_up(last, GPU_PAGE);
	if (last > *end)
		last = *end;
	pthread_mutex_lock(&lock);
	i = place(*start > mem->start ? *start : mem->start);
	while (i < count && table[i]->start < last) {
		w = table[i];
		if (w->buffer_id != mem->buffer_id) {
			retire(w, &gone);
		} else if (w->start > addr) {
			*end = w->start;
			break;
		} else {
			*start = w->start + w->len;
			i++;
		}
	}
	pthread_mutex_unlock(&lock);
	unmap(gone);
}

/* Room for one more; with `making` held, so that it stays. */
static bool make_room(void)
{
	struct window **bigger;
	bool ok = true;

	pthread_mutex_lock(&lock);
	if (count == room) {
		bigger = realloc(table, (room ? room * 2 : 64) *
				 sizeof(*table));
		ok = bigger;
		if (ok) {
			table = bigger;
			room = room ? room * 2 : 64;
		}
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

/* @w, for @addr, is what GPU pages from @start to @end have of @mem. */
static void cover(struct window *w, const struct mem *mem,
		  uint64_t start, uint64_t end)
{
	/* pages may be shared with the memory before and behind */
	w->start = start > mem->start ? start : mem->start;
	if (end > mem->start + mem->len)
		end = mem->start + mem->len;
	w->len = end - w->start;
	w->host = w->map ? w->map + (w->start - w->map_start) : NULL;
}

/*
 * With `making` held: the number of a reason that is kept.  Memory after memory has the
 * same few; one that has been forgotten gets another number.
 */
static uint32_t reason_of(int err, const struct no_window *why)
{
	static struct {
		int err;
		struct no_window why;
	} known[32];
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].err == err && known[i].why.cu_err == why->cu_err &&
		    known[i].why.module == why->module &&
		    known[i].why.of_module == why->of_module &&
		    !strcmp(known[i].why.uvm, why->uvm))
			return known[i].why.id;
	i = next++ % (sizeof(known) / sizeof(known[0]));
	known[i].err = err;
	known[i].why = *why;
	return known[i].why.id = reason_new();
}

/* With `making` held: maps @w, for @addr.  @evict: others may go for it. */
static int map_window(struct window *w, const struct mem *mem, uint64_t addr,
		      bool evict, struct no_window *why)
{
	size_t size = round_up(KIB(config.window_kb), GPU_PAGE);
	size_t limit = KIB(config_now(CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB));
	uint64_t start, end;
	int r;

	for (;;) {
		fit(mem, addr, size, &start, &end);
		w->map_start = start;
		w->map_len = end - start;
		while (stats_gauges.window_bytes + w->map_len > limit && evict &&
		       evict_one(false))
			continue;
		r = -ENOSPC;
		*why = (struct no_window){ 0 };
		if (stats_gauges.window_bytes + w->map_len <= limit)
			r = open_range(w, mem, why);
		if (r != -ENOSPC || !evict)
			break;
		stats_gauges.window_nospace++;
		if (evict_one(why->quota))
			continue;
		if (size <= GPU_PAGE)
			break;
		size = round_up(size / 2, GPU_PAGE);
	}
	if (r && of_the_moment(r, why->cu_err, why->of_module))
		return r;
	if (r) {
		/*
		 * So it will be for all of this memory; INVALID_VALUE and the
		 * module's EINVAL can be for what a neighbour has in the same
		 * page, of the CPU or of the GPU.
		 */
		if (why->cu_err != CUDA_ERROR_INVALID_VALUE && !why->here &&
		    !(why->of_module && r == -EINVAL))
			fit(mem, addr, mem->len + GPU_PAGE, &start, &end);
		why->id = reason_of(r, why);
		w->err = r;
		w->why = *why;
		cover(w, mem, start, end);
		return 0;
	}
	stats_gauges.windows++;
	stats_gauges.window_bytes += taken(w);
	stats_gauges.window_maps++;
	cover(w, mem, start, end);
	return 0;
}

/* A window of @mem that holds @addr, in use from now on, or NULL. */
static struct window *find(const struct mem *mem, uint64_t addr)
{
	struct window *_Atomic *hint = hint_of(mem, addr);
	struct window *w = *hint, *gone = NULL;
	unsigned int i;

	if (!mem->buffer_id)
		return NULL;
	if (w && ref(w)) {
		if (w->buffer_id == mem->buffer_id && w->start <= addr &&
		    addr - w->start < w->len)
			goto found;
		unref(w, &gone);
	}
	pthread_mutex_lock(&lock);
	i = place(addr);
	w = i < count && table[i]->start <= addr ? table[i] : NULL;
	if (w && w->buffer_id != mem->buffer_id) {
		retire(w, &gone);	/* other memory had this address */
		w = NULL;
	}
	if (w) {
		ref(w);		/* in the table none is dead */
		*hint = w;
	}
	pthread_mutex_unlock(&lock);
	unmap(gone);
	if (!w)
		return NULL;
found:
	if (!w->used)
		w->used = true;
	return w;
}

/* With `making` held. */
static int make(const struct mem *mem, uint64_t addr, bool evict,
		struct window **out, struct no_window *why)
{
	struct window *w = window_new();
	unsigned int i;
	int r;

	if (!w)
		return -ENOMEM;
	if (!make_room()) {
		window_free(w);
		return -ENOMEM;
	}
	sweep(SWEEP);
	w->gpu = mem->gpu;
	r = map_window(w, mem, addr, evict, why);
	if (r) {
		window_free(w);
		return r;
	}
	w->buffer_id = mem->buffer_id;
	*out = w;
	if (!mem->buffer_id) {
		/* of this memory cannot be told whether it is still the same */
		w->refs = WINDOW_DEAD | 1;
		return 0;
	}
	pthread_mutex_lock(&lock);
	w->refs = 1;
	i = place(w->start);
	memmove(table + i + 1, table + i, (count++ - i) * sizeof(*table));
	table[i] = w;
	list_front(w);
	*hint_of(mem, addr) = w;
	pthread_mutex_unlock(&lock);
	return 0;
}

/*
 * What this thread was told last of memory that has no window: it holds until any
 * such answer is forgotten.
 */
static __thread struct {
	uint64_t buffer_id, start, end;
	unsigned int forgotten;
	int err;
	struct no_window why;
} refused;

bool window_refused(const struct mem *mem, uint64_t addr, size_t len)
{
	return mem->buffer_id && refused.buffer_id == mem->buffer_id &&
	       addr >= refused.start && addr < refused.end &&
	       len <= refused.end - addr && refused.forgotten == forgotten;
}

enum window_kind window_peek(const struct mem *mem, uint64_t addr, size_t *len)
{
	enum window_kind kind = WINDOW_UNKNOWN;
	struct window *w;

	if (!mem->len || window_refused(mem, addr, *len))
		return WINDOW_NONE;
	if (!mem->buffer_id)
		return WINDOW_UNKNOWN;
	w = *hint_of(mem, addr);
	if (!w || !ref(w))
		return WINDOW_UNKNOWN;
	if (w->buffer_id == mem->buffer_id && w->start <= addr && addr - w->start < w->len) {
		kind = w->err ? WINDOW_NONE : w->host ? WINDOW_MAPPED : WINDOW_REGISTERED;
		*len = min_of(*len, w->len - (addr - w->start));
	}
	window_put(w);
	return kind;
}

int window_get(const struct mem *mem, uint64_t addr, size_t len,
	       struct window **out, size_t *avail, bool *fresh,
	       struct no_window *why)
{
	unsigned int then = forgotten;
	struct window *w;
	int r = 0;

	*fresh = false;
	*why = (struct no_window){
		.of_module = !config.flag[CUFILE_PARAM_USE_PCIP2PDMA],
	};
	*avail = 0;
	if (mem->buffer_id && refused.buffer_id == mem->buffer_id &&
	    addr >= refused.start && addr < refused.end && refused.forgotten == then) {
		*why = refused.why;
		*avail = refused.end - addr;
		return refused.err;
	}
	if (!mem->len) {
		/* CUDA does not say where the memory ends */
		why->cu_err = CUDA_ERROR_NOT_SUPPORTED;
		*avail = len;
		return -EOPNOTSUPP;
	}
	w = find(mem, addr);
	if (!w) {
		pthread_mutex_lock(&making);
		w = find(mem, addr);	/* made by who had the lock? */
		if (!w) {
			r = make(mem, addr, true, &w, why);
			*fresh = true;
		}
		pthread_mutex_unlock(&making);
	}
	if (r)
		return r;
	if (w->err) {
		r = w->err;
		*why = w->why;
		*avail = w->len - (addr - w->start);
		refused.buffer_id = w->buffer_id;
		refused.start = w->start;
		refused.end = w->start + w->len;
		refused.forgotten = then;
		refused.err = r;
		refused.why = w->why;
		refused.why.before = true;
		window_put(w);
		return r;
	}
	if (!*fresh)
		stats_gauges.window_hits++;
	*avail = min_of(len, w->len - (addr - w->start));
	*out = w;
	return 0;
}

/*
 * BAR1 is of all processes, and only a process's own windows go for others of it.  So
 * registrations map so much, and transfers the rest.
 */
#define PREPARED_MAX	MIB(64)

void window_prepare(uint64_t start, size_t len)
{
	struct no_window why;
	uint64_t at = start;
	struct window *w;
	struct mem mem;
	CUcontext old;
	int r = 0;

	if (config.flag[CUFILE_PARAM_FORCE_COMPAT_MODE] ||
	    (!config.flag[CUFILE_PARAM_USE_PCIP2PDMA] && !module_there()))
		return;
	while (!r && at < start + len && !mem_of(at, &mem) && mem.kind == MEM_DEVICE &&
	       mem.buffer_id && mem.len && !cu.Push(mem.ctx)) {
		pthread_mutex_lock(&making);
		w = find(&mem, at);
		if (!w && stats_gauges.window_bytes < PREPARED_MAX)
			r = make(&mem, at, false, &w, &why);
		pthread_mutex_unlock(&making);
		cu.Pop(&old);
		if (r || !w)
			break;
		at = w->start + w->len;
		window_put(w);
	}
}

void window_put(struct window *w)
{
	struct window *gone = NULL;

	unref(w, &gone);
	unmap(gone);
}

void window_kill(struct window *w)
{
	struct window *gone = NULL;

	pthread_mutex_lock(&lock);
	retire(w, &gone);
	pthread_mutex_unlock(&lock);
	unref(w, &gone);
	unmap(gone);
}

bool window_no_pages(int gpu)
{
	struct window *w, *gone = NULL;
	unsigned int i;

	if (!module_there() || !bit_of(gpu))
		return false;
	if (!(atomic_fetch_or(&no_pages, bit_of(gpu)) & bit_of(gpu)))
		log_line(LOG_NOTICE, "GPU %d: the kernel does not accept pages "
			 "of its mappings; the library uses the module "
			 "peerlane", gpu);
	pthread_mutex_lock(&lock);
	for (i = count; i; i--) {
		w = table[i - 1];
		if (w->map && w->gpu == gpu)
			retire(w, &gone);
	}
	pthread_mutex_unlock(&lock);
	unmap(gone);
	return true;
}

void window_drop_range(uint64_t start, size_t len)
{
	struct window *gone = NULL;
	unsigned int i;

	/* who makes one of nvidia-uvm's has looked at the registrations */
	if (config.nvidia_uvm) {
		pthread_mutex_lock(&making);
		pthread_mutex_unlock(&making);
	}
	pthread_mutex_lock(&lock);
	i = place(start);
	while (i < count && table[i]->start < start + len)
		retire(table[i], &gone);
	pthread_mutex_unlock(&lock);
	unmap(gone);
}

/* Nobody makes one meanwhile: the library is closed. */
void window_drop_all(void)
{
	struct window *gone = NULL;

	pthread_mutex_lock(&lock);
	while (count)
		retire(table[count - 1], &gone);
	free(table);
	table = NULL;
	room = 0;
	no_pages = 0;
	pthread_mutex_unlock(&lock);
	unmap(gone);
}
