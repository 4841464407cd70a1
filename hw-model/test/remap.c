// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * remap STEADY MOVING SECONDS: while one thread takes the device MOVING out of
 * the memory map and puts it back, others read the identity register of STEADY
 * and must never see anything else.  Both are addresses such as 0000:01:00.0,
 * without a driver.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define READERS	2

static volatile int stop;
static const volatile uint32_t *regs;
static uint32_t identity;
static unsigned long wrong[READERS], reads[READERS];

static int open_in(const char *device, const char *file)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device,
		 file);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static void enable(const char *device)
{
	int fd = open_in(device, "enable");

	if (write(fd, "1", 1) != 1) {
		perror("enable");
		exit(1);
	}
	close(fd);
}

static void *reader(void *arg)
{
	unsigned long n = (unsigned long)arg;

	while (!stop) {
		wrong[n] += regs[0] != identity;
		reads[n]++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long i, moves = 0;
	pthread_t thread[READERS];
	uint16_t on, off;
	time_t end;
	int config;

	if (argc != 4)
		return 2;
	enable(argv[1]);
	enable(argv[2]);
	regs = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
		    open_in(argv[1], "resource0"), 0);
	if (regs == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	identity = regs[0];
	config = open_in(argv[2], "config");
	if (pread(config, &on, 2, 4) != 2)
		return 1;
	off = on & ~2;		/* memory space enable */
	for (i = 0; i < READERS; i++)
		if (pthread_create(&thread[i], NULL, reader, (void *)i))
			return 1;
	end = time(NULL) + atoi(argv[3]);
	while (time(NULL) < end) {
		if (pwrite(config, &off, 2, 4) != 2 ||
		    pwrite(config, &on, 2, 4) != 2) {
			perror("config");
			return 1;
		}
		moves++;
	}
	stop = 1;
	for (i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	printf("identity 0x%08x, %lu moves, %lu reads, %lu wrong\n", identity,
	       moves, reads[0] + reads[1], wrong[0] + wrong[1]);
	return wrong[0] || wrong[1] ? 1 : 0;
}
