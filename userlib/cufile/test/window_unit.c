// SPDX-License-Identifier: MIT
/*
 * Windows are found: window.c itself, with memory that is numbers and mappings that are
 * none.  Whoever uses one while others drop windows, evict them and get other memory at
 * the same addresses has the right one, mapped.  How long a look-up takes beside 9999
 * other windows is compared with how long it takes alone, in the same run: of each the
 * shortest of many times, which a busy machine leaves as it is.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "../window.c"

struct config config;
struct cu cu;
static struct stats_page page;
struct stats_page *_Atomic stats_page = &page;

#define FAR	MIB(1)		/* from one memory to the next but one */
#define FIRST	(1000 * FAR)

void log_line(int level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
}

#define MEMORIES	64	/* of which each is freed and allocated again */
static _Atomic uint64_t births[MEMORIES];
static _Atomic unsigned int mapped[MEMORIES];
static _Atomic bool refuses;	/* who maps */
static _Atomic long maps;

static uint64_t number(uint64_t ptr)
{
	return (ptr - FIRST) / (2 * FAR);
}

int mem_of(uint64_t ptr, struct mem *mem)
{
	uint64_t i = number(ptr);

	*mem = (struct mem){
		.kind = MEM_DEVICE, .start = ptr / FAR * FAR, .len = FAR / 2,
		.buffer_id = 1 + i + (i < MEMORIES ? births[i] << 20 : 0),
	};
	return 0;
}

bool mem_freed(uint64_t ptr, uint64_t buffer_id)
{
	struct mem mem;

	mem_of(ptr, &mem);
	return mem.buffer_id != buffer_id;
}

int uvm_map(const struct mem *mem, uint64_t start, size_t len, char **host,
	    struct no_window *no)
{
	uint64_t i = number(mem->start);

	(void)len;
	if (refuses) {
		strcpy(no->uvm, "it is refused");
		return -EOPNOTSUPP;
	}
	*host = (char *)(uintptr_t)start;
	maps++;
	if (i < MEMORIES)
		mapped[i]++;
	return 0;
}

void uvm_unmap(char *host, size_t len)
{
	uint64_t i = number((uint64_t)(uintptr_t)host);

	(void)len;
	maps--;
	if (i < MEMORIES)
		mapped[i]--;
}

bool module_there(void)
{
	return false;
}

int module_register(uint64_t start, size_t len, uint32_t *handle, const char **why)
{
	(void)start;
	(void)len;
	(void)handle;
	(void)why;
	return -ENODEV;
}

void module_unregister(uint32_t handle)
{
	(void)handle;
}

uint32_t reason_new(void)
{
	return 1;
}

static unsigned int checks, failed;

static void check(bool good, const char *what)
{
	checks++;
	failed += !good;
	printf("%s %u - %s\n", good ? "ok" : "not ok", checks, what);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Uses the window of memory @i; was it there? */
static bool use(unsigned int i)
{
	uint64_t at = FIRST + 2 * FAR * i;
	struct no_window why;
	struct window *w;
	size_t avail;
	struct mem mem;
	bool fresh;

	mem_of(at, &mem);
	if (window_get(&mem, at, PAGE, &w, &avail, &fresh, &why))
		abort();
	if (w->start != at || avail != PAGE ||
	    w->host != (char *)(uintptr_t)at) {
		check(false, "the window is that of the memory");
		exit(1);
	}
	window_put(w);
	return !fresh;
}

static uint32_t draw(uint64_t *random)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return *random >> 33;
}

#define USERS	3
#define ROUNDS	20000
static _Atomic unsigned int wrong, good, users;

/* Uses windows; each is of the memory asked for, and mapped until it is put */
static void *user(void *seed)
{
	uint64_t random = (uintptr_t)seed;
	unsigned int n, i;

	for (n = 0; n < ROUNDS; n++) {
		struct no_window why;
		struct window *w;
		struct mem mem;
		size_t avail;
		uint64_t at;
		bool fresh;

		i = draw(&random) % MEMORIES;
		at = FIRST + 2 * FAR * i;
		mem_of(at, &mem);
		if (window_get(&mem, at, PAGE, &w, &avail, &fresh, &why)) {
			wrong++;
			continue;
		}
		if (w->buffer_id != mem.buffer_id || w->start != at ||
		    w->host != (char *)(uintptr_t)at || !mapped[i])
			wrong++;
		else
			good++;
		if (draw(&random) % 64)
			window_put(w);
		else
			window_kill(w);
	}
	users--;
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[USERS];
	uint64_t random = 7;
	unsigned int i;

	/* room for half of them, so that one evicts another */
	config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] =
		MEMORIES / 2 * (FAR / 2 >> 10);
	users = USERS;
	for (i = 0; i < USERS; i++)
		if (pthread_create(&thread[i], NULL, user, (void *)(uintptr_t)(i + 1)))
			abort();
	while (users) {
		i = draw(&random) % MEMORIES;
		if (draw(&random) % 4)
			births[i]++;
		else
			window_drop_range(FIRST + 2 * FAR * i, FAR);
		sched_yield();
	}
	for (i = 0; i < USERS; i++)
		pthread_join(thread[i], NULL);
	check(!wrong && good == USERS * ROUNDS, "a window is of the memory asked for, and mapped while it is used");
	check(stats_gauges.window_hits && stats_gauges.window_evictions, "some were found, some evicted");
	window_drop_all();
	check(!maps && !stats_gauges.windows && !stats_gauges.window_bytes, "no mapping is left");
	config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = SIZE_MAX >> 10;
}

#define READERS	2

static _Atomic unsigned int refusals, tries[READERS];
static _Atomic bool stop;

static int try(void)
{
	uint64_t at = FIRST;
	struct no_window why;
	struct window *w;
	struct mem mem;
	size_t avail;
	bool fresh;
	int r;

	mem_of(at, &mem);
	r = window_get(&mem, at, PAGE, &w, &avail, &fresh, &why);
	if (!r)
		window_put(w);
	return r;
}

static void *reader(void *arg)
{
	unsigned int i = (unsigned int)(uintptr_t)arg;

	while (!stop) {
		if (try())
			refusals++;
		tries[i]++;
	}
	return NULL;
}

/* What was under way is over */
static void once_more(void)
{
	unsigned int i, then;

	for (i = 0; i < READERS; i++)
		for (then = tries[i]; tries[i] - then < 2;)
			sched_yield();
}

/* A refusal that is forgotten is not remembered by who meets it just then */
static void test_forgotten(void)
{
	uint64_t end = now_ns() + 3000000000u;
	unsigned int i, then, rounds = 0, remembered = 0;
	pthread_t thread[READERS];

	/* behind it in the table, so that it takes a while to leave that */
	for (i = 1; i < 10000; i++)
		use(i);
	for (i = 0; i < READERS; i++)
		if (pthread_create(&thread[i], NULL, reader, (void *)(uintptr_t)i))
			abort();
	while (now_ns() < end || rounds < 100) {
		refuses = true;
		window_drop_range(FIRST, FAR);
		once_more();
		then = refusals;
		once_more();
		rounds += refusals != then;
		refuses = false;
		window_drop_range(FIRST, FAR);
		once_more();
		then = refusals;
		once_more();
		remembered += refusals != then;
	}
	stop = true;
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	check(!remembered, "what is not refused any more is asked again by all");
	window_drop_all();
}

/* There is room for four, and a fifth comes: the oldest goes that was not used again */
static void test_eviction(void)
{
	unsigned int i;

	config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = 4 * (FAR / 2 >> 10);
	for (i = 0; i < 4; i++)
		use(i);
	use(0);
	check(!use(4) && use(0) && use(2) && use(3) && use(4), "all are there but one");
	/* all were used again: the one whose turn was longest ago */
	check(!use(1) && use(4) && use(0) && use(3) && !use(2), "which is the oldest that was not used again");
	window_drop_all();
	config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = SIZE_MAX >> 10;
}

static void *locked(void *there)
{
	*(bool *)there = use(1);
	return NULL;
}

/* Nobody waits for who holds the locks: neither to find a window nor to give it back */
static void test_no_lock(void)
{
	struct timespec end;
	pthread_t thread;
	bool there = false;

	use(1);
	pthread_mutex_lock(&making);
	pthread_mutex_lock(&lock);
	if (pthread_create(&thread, NULL, locked, &there))
		abort();
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	check(!pthread_timedjoin_np(thread, NULL, &end) && there, "a window that is there is used without a lock");
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&making);
	window_drop_all();
}

#define RUNS	300
#define USES	200		/* in each: some ten microseconds */

/* Nanoseconds of a look-up beside @n - 1 other windows; @any: of any of them */
static double look_up(unsigned int n, bool any)
{
	uint64_t least = UINT64_MAX, random = 1, began;
	unsigned int run, i;
	bool there = true;

	for (i = 0; i < n; i++)
		use(i);
	if (stats_gauges.windows != n)
		abort();
	for (run = 0; run < RUNS; run++) {
		began = now_ns();
		for (i = 0; i < USES; i++) {
			there &= use(any ? draw(&random) % n : n / 2);
		}
		began = now_ns() - began;
		if (began < least)
			least = began;
	}
	if (!there)
		abort();
	window_drop_all();
	return (double)least / USES;
}

int main(void)
{
	double same[2] = { 1e9, 1e9 }, any[2] = { 1e9, 1e9 }, t;
	static const unsigned int n[2] = { 1, 10000 };
	unsigned int turn, i;

	alarm(300);
	config.flag[CUFILE_PARAM_USE_PCIP2PDMA] = true;
	config.window_kb = FAR >> 10;
	config.size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = SIZE_MAX >> 10;
	test_no_lock();
	test_eviction();
	test_threads();
	test_forgotten();
	for (turn = 0; turn < 3; turn++)
		for (i = 0; i < 2; i++) {
			t = look_up(n[i], false);
			same[i] = t < same[i] ? t : same[i];
			t = look_up(n[i], true);
			any[i] = t < any[i] ? t : any[i];
		}
	printf("# a look-up with 1 window: %.0f ns; with 10,000: %.0f ns of the one that was "
	       "used last, %.0f ns of any\n", same[0], same[1], any[1]);
	check(same[1] < 4 * same[0], "10,000 windows: the one that was used last takes no "
	      "more than four times what a single one takes");
	/* which are not in the processor's caches */
	check(any[1] < 8 * any[0], "and any of them no more than eight times");
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
