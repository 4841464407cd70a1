// SPDX-License-Identifier: MIT
/* What a transfer costs, in system calls and locks, and how often the kernel's log is read. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "unit.h"

/* By p2p, of 4 KiB, with its window there and its registered memory */
void test_costs(void)
{
	static char data[4 * 4096];
	char *g = gpu(sizeof(data));
	CUfileIOVec_t v[] = { { g, 4096 }, { g + 4096, 4096 } };
	CUfileHandle_t fh;
	int fd, write;

	fresh(NULL);
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	/* at times one looks for windows that nobody uses */
	mock_stop_clock();
	is(cuFileBufRegister(g, sizeof(data), 0).err, 0, "registered memory");
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "the first read");
	for (write = 0; write < 2; write++) {
		enum { MANY = 1000 };

		mock.stats = mock.p2p_calls = 0;
		mock.lock_turns = MANY;
		is(write ? cuFileWrite(fh, g, 4096, 4096, 0) :
			   cuFileRead(fh, g, 4096, 4096, 0), 4096,
		   write ? "a write" : "a read");
#ifndef __SANITIZE_THREAD__
		/* of the handles, of the registered memory, and of what is known to work */
		check(mock.lock_turns < MANY && mock.lock_turns >= MANY - 3,
		      "takes three locks at most: %d", MANY - mock.lock_turns);
#endif
		mock.lock_turns = 0;
		is((long long)mock.p2p_calls, 1, "moves it by one call");
		is((long long)mock.stats, 1, "and asks once about the file");
	}
	mock.stats = 0;
	is(cuFileReadv(fh, v, 2, 0, 0), 8192, "a read into two pieces");
	is((long long)mock.stats, 1, "asks once");
	mock.stats = 0;
	is(cuFileRead(fh, g, sizeof(data), 4096, 0), sizeof(data) - 4096, "a read of more than there is");
	is((long long)mock.stats, 2, "asks again at the end, which may have moved");
	mock.stats = 0;
	is(cuFileRead(fh, g, 4096, sizeof(data), 0), 0, "a read behind the end");
	is((long long)mock.stats, 2, "so does that");
	is(ftruncate(fd, 4096), 0, "a shorter file");
	mem(g)[8192] = 7;
	is(cuFileRead(fh, g, sizeof(data), 0, 0), 4096, "has less");
	is(mem(g)[8192], 7, "and no zeros behind it");
	is(cuFileBufDeregister(g).err, 0, "deregister");
	close(fd);
	gpu_free(g);
}

/* The number of a drive that the kernel knows, 0: there is none */
static uint64_t some_drive(void)
{
	unsigned int major, minor;
	uint64_t dev = 0;
	struct dirent *e;
	DIR *d = opendir("/sys/dev/block");

	while (d && !dev && (e = readdir(d)))
		if (sscanf(e->d_name, "%u:%u", &major, &minor) == 2)
			dev = makedev(major, minor);
	if (d)
		closedir(d);
	return dev;
}

/* Strict reads of a pair that p2p refuses: all that the kernel has said is read for the first */
void test_kernel_words_once(void)
{
	char data[8192] = "", kmsg[300], *g = gpu(sizeof(data));
	uint64_t dev = some_drive();
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	if (!dev) {
		check(1, "# SKIP no drive is in /sys/dev/block");
		return;
	}
	snprintf(kmsg, sizeof(kmsg), "%s.kmsg", path);
	close(open(kmsg, O_CREAT | O_TRUNC | O_WRONLY, 0600));
	setenv("PEERLANE_KMSG", kmsg, 1);
	fresh("{\"peerlane\":{\"strict\":true}}");
	mock.dev = dev;
	fd = make(path, 0, data, sizeof(data));
	mock.p2p_errno = EINVAL;
	mock.kernel_line = "4,1,2345,-;nvme 0000:fe:1f.7: cannot be used for peer-to-peer DMA as the "
		"client and provider (0000:42:00.0) do not share an upstream bridge\n";
	fh = reg(fd);
	mock.kmsg_opened = 0;
	for (i = 1; i <= 5; i++) {
		is(cuFileRead(fh, g, sizeof(data), 0, 0), -5008, "refused");
		/* each looks from where the log ends when it begins */
		is(mock.kmsg_opened, i + 1, "the log is opened for each, and once more");
		check(strstr(stats_of(fh).reason, "; kernel: nvme 0000:fe:1f.7"), "what it said to the first: %s",
		      stats_of(fh).reason);
		mock.kernel_line = NULL;
	}
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	unlink(kmsg);
	fresh(NULL);
	close(fd);
	gpu_free(g);
}
