// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * modify-code reach|twice ROUNDS: one thread changes the constant that a function
 * returns, while another calls it and so has it translated again.  Once that one knows
 * of a change, by an acquire and a serializing instruction, it must never see the
 * constant before it.
 *
 * reach: the store reaches into the next page, which is full of code.  An emulator that
 * throws translations away before it stores is busy with that page for long, and the
 * function's old bytes are translated meanwhile.
 *
 * twice: two stores for each change, to a page with no other code: the first leaves the
 * page without a translation, and the second comes when the function is translated.
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

static uint8_t (*function)(void);
static unsigned int stored;		/* the last change that is done */
static unsigned int seen;	/* the last one that was looked for */
static unsigned long calls, stale;

static void *caller(void *arg)
{
	unsigned int a, b, c, d;

	(void)arg;
	for (;;) {
		unsigned int at = __atomic_load_n(&stored, __ATOMIC_ACQUIRE);

		if (at == UINT32_MAX)
			return NULL;
		__cpuid(0, a, b, c, d);
		calls++;
		/* change N stores 2 * N, and 2 * N - 1 before; the next may have begun */
		stale += (uint8_t)(function() - 2 * at) > 2;
		__atomic_store_n(&seen, at, __ATOMIC_RELEASE);
	}
}

int main(int argc, char **argv)
{
	unsigned char *code, *bytes;	/* two pages, for calls and for stores */
	volatile unsigned int delay;
	pthread_t thread;
	unsigned int rounds, i;
	int fd, reach;

	if (argc != 3)
		return 2;
	reach = !strcmp(argv[1], "reach");
	rounds = strtoul(argv[2], NULL, 0);
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
	for (i = PAGE + 8; reach && i < 2 * PAGE; i++)
		((void (*)(void))(code + i))();

	if (pthread_create(&thread, NULL, caller, NULL))
		return 1;
	for (i = 1; i <= rounds; i++) {
		if (reach) {
			uint64_t word;

			memcpy(&word, bytes + PAGE - 4, 8);
			word &= ~0xff0000ull;
			word |= (uint64_t)(uint8_t)(2 * i) << 16;
			*(volatile uint64_t *)(bytes + PAGE - 4) = word;
		} else {
			*(volatile uint8_t *)(bytes + PAGE - 2) = 2 * i - 1;
			for (delay = i * 37 % 4096; delay; delay--)
				;
			*(volatile uint8_t *)(bytes + PAGE - 2) = 2 * i;
		}
		__atomic_store_n(&stored, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) != i)
			sched_yield();
	}
	__atomic_store_n(&stored, UINT32_MAX, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	printf("%s, %u changes, %lu calls, %lu stale\n", argv[1], rounds,
	       calls, stale);
	return stale ? 1 : 0;
}
