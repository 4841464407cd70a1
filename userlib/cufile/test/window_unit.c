// SPDX-License-Identifier: MIT
/*
 * What it costs to find a window: window.c itself, with memory that is numbers and
 * mappings that are none.  How long a look-up takes beside 9999 other windows is compared
 * with how long it takes alone, in the same run: of each the shortest of many times, which
 * a busy machine leaves as it is.
 */
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

int mem_of(uint64_t ptr, struct mem *mem)
{
	*mem = (struct mem){
		.kind = MEM_DEVICE, .start = ptr / FAR * FAR, .len = FAR / 2,
		.buffer_id = ptr / FAR,
	};
	return 0;
}

int uvm_map(const struct mem *mem, uint64_t start, size_t len, char **host,
	    struct no_window *no)
{
	(void)mem;
	(void)len;
	(void)no;
	*host = (char *)(uintptr_t)start;
	return 0;
}

void uvm_unmap(char *host, size_t len)
{
	(void)host;
	(void)len;
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
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			there &= use(any ? (unsigned int)((random >> 33) % n) : n / 2);
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
	check(any[1] < 16 * any[0], "and any of them no more than sixteen times");
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
