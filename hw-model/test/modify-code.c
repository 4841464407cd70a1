// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * modify-code ROUNDS: one thread changes the constant that a function returns, while
 * others call it and so have it translated again.  Once they know of a change, by an
 * acquire and a serializing instruction, they must never see the constant before it.
 *
 * The store reaches into the next page, which is full of code: an emulator that
 * throws translations away before it stores is busy with that page for long, and the
 * function's old bytes are translated meanwhile.
 */
#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define CALLERS	2

static unsigned char *code;		/* two pages, for calls */
static unsigned char *bytes;		/* the same, for stores */
static uint8_t (*function)(void);
static unsigned int stored;		/* the last change that is done */
static unsigned int seen[CALLERS];	/* the last one that was looked for */
static unsigned long calls[CALLERS], stale[CALLERS];

static void *caller(void *arg)
{
	unsigned long n = (unsigned long)arg;
	unsigned int a, b, c, d;

	for (;;) {
		unsigned int at = __atomic_load_n(&stored, __ATOMIC_ACQUIRE);
		uint8_t got;

		if (at == UINT32_MAX)
			return NULL;
		__cpuid(0, a, b, c, d);
		got = function();
		calls[n]++;
		/* the next change may have begun */
		if (got != (uint8_t)at && got != (uint8_t)(at + 1))
			stale[n]++;
		__atomic_store_n(&seen[n], at, __ATOMIC_RELEASE);
	}
}

int main(int argc, char **argv)
{
	unsigned int rounds, i;
	pthread_t thread[CALLERS];
	unsigned long n;
	int fd;

	if (argc != 2)
		return 2;
	rounds = strtoul(argv[1], NULL, 0);
	fd = memfd_create("code", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 2 * PAGE)) {
		perror("memfd");
		return 1;
	}
	bytes = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || code == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	/* mov $0, %al; ret at the end of the first page; the second has ret only */
	memset(bytes, 0xc3, 2 * PAGE);
	bytes[PAGE - 3] = 0xb0;
	bytes[PAGE - 2] = 0;
	function = (uint8_t (*)(void))(code + PAGE - 3);
	/* the store ends with the first bytes of that page */
	for (i = PAGE + 8; i < 2 * PAGE; i++)
		((void (*)(void))(code + i))();

	for (n = 0; n < CALLERS; n++)
		if (pthread_create(&thread[n], NULL, caller, (void *)n))
			return 1;
	for (i = 1; i <= rounds; i++) {
		uint64_t word;

		memcpy(&word, bytes + PAGE - 4, 8);
		word = (word & ~0xff0000ull) | (uint64_t)(uint8_t)i << 16;
		*(volatile uint64_t *)(bytes + PAGE - 4) = word;
		__atomic_store_n(&stored, i, __ATOMIC_RELEASE);
		for (n = 0; n < CALLERS; n++)
			while (__atomic_load_n(&seen[n], __ATOMIC_ACQUIRE) != i)
				sched_yield();
	}
	__atomic_store_n(&stored, UINT32_MAX, __ATOMIC_RELEASE);
	for (n = 0; n < CALLERS; n++)
		pthread_join(thread[n], NULL);
	printf("%u changes, %lu calls, %lu stale\n", rounds, calls[0] + calls[1],
	       stale[0] + stale[1]);
	return stale[0] || stale[1] ? 1 : 0;
}
