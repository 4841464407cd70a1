// SPDX-License-Identifier: MIT
/* Ways in which others change a file: see writers.h. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "writers.h"

#define MORE	((size_t)1 << 20)

double writers_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double write_as(int way, const char *path, const char *other, const char *new,
		size_t size)
{
	static char block[8192] __attribute__((aligned(4096)));
	double took, began = writers_now();
	bool good = true;
	char *p;
	int fd;

	if (way == CUT) {
		good = !truncate(path, (off_t)(size / 2));
		took = writers_now() - began;
		return good ? took : -1;
	}
	fd = open(way == RENAME ? other : path, O_RDWR |
		  (way == REWRITE ? O_TRUNC : 0) |
		  (way == RENAME ? O_CREAT : 0) | (way == DIRECT ? O_DIRECT : 0),
		  0644);
	took = writers_now() - began;
	if (fd < 0)
		return -1;
	switch (way) {
	case PUNCH:
		good = !fallocate(fd, FALLOC_FL_PUNCH_HOLE |
				  FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
		break;
	case MAPPED:
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		good = p != MAP_FAILED;
		if (good) {
			memcpy(p, new, size);
			munmap(p, size);
		}
		break;
	case DIRECT:
		memcpy(block, new, sizeof(block));
		good = pwrite(fd, block, sizeof(block), 0) == sizeof(block);
		break;
	default:
		size += way == EXTEND ? MORE : 0;
		good = pwrite(fd, new, size, 0) == (ssize_t)size;
	}
	close(fd);
	if (way == RENAME)
		good = good && !rename(other, path);
	return good ? took : -1;
}

size_t written(int way, const char *old, char *new, size_t size)
{
	switch (way) {
	case RENAME:
	case CUT:
		memcpy(new, old, size);
		break;
	case PUNCH:
		memset(new, 0, size);
		break;
	case DIRECT:
		memcpy(new + 8192, old + 8192, size - 8192);
	}
	return way == CUT ? size / 2 : way == EXTEND ? size + MORE : size;
}
