// SPDX-License-Identifier: MIT
/* What is not aligned goes by way of the library's own GPU memory. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

#define STRICT	"{\"peerlane\":{\"strict\":true}}"
#define NO_COMPAT "{\"properties\":{\"allow_compat_mode\":false}}"
#define SIZE	(MIB(3) + 1000)

static const char *const modes[] = { STRICT, NO_COMPAT };

/* A byte in GPU memory that nothing has written */
#define FREE	'm'

static bool is_free(const char *p, size_t n)
{
	while (n && *p == FREE) {
		p++;
		n--;
	}
	return !n;
}

/* Reads of all sorts: the right bytes, and none beside them */
static void read_odd(const char *mode)
{
	static const size_t at[] = { 0, 1, 511, 512, 4095, 4096, 4097, 70001 };
	static const size_t len[] = { 1, 100, 511, 512, 4095, 4096, 4097, 8193, 70000,
				      MIB(2) + 77 };
	static const size_t to[] = { 0, 1, 512, 4095 };
	char *data = malloc(SIZE), *g = gpu(MIB(4)), *m = mem(g);
	unsigned int i, k, j, wrong = 0;
	long long all = 0;
	CUfileHandle_t fh;
	int fd;

	fresh(mode);
	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	fh = reg(fd);
	memset(m, FREE, MIB(4));
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (k = 0; k < sizeof(len) / sizeof(len[0]); k++)
			for (j = 0; j < sizeof(to) / sizeof(to[0]); j++) {
				char *p = m + KIB(64) + to[j];
				ssize_t r = cuFileRead(fh, g, len[k], (off_t)at[i],
						       (off_t)(KIB(64) + to[j]));

				if (r != (ssize_t)len[k] ||
				    memcmp(p, data + at[i], len[k]) ||
				    !is_free(m, KIB(64) + to[j]) ||
				    !is_free(p + len[k], MIB(4) - KIB(64) - to[j] - len[k])) {
					if (!wrong++)
						printf("# %zu bytes at %zu to %zu: %zd\n",
						       len[k], at[i], to[j], r);
				}
				memset(p, FREE, len[k]);
				all += (long long)len[k];
			}
	is(wrong, 0, "odd places: the right bytes, and none beside them");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, all,
	   "all of them by p2p");
	check(!stats_of(fh).reason[0], "which needs no reason: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, MIB(2), SIZE - 1001, 3), 1001, "up to the end of the file");
	check(!memcmp(m + 3, data + SIZE - 1001, 1001) && is_free(m, 3) &&
	      is_free(m + 1004, MIB(2)), "not a byte more");
	is(cuFileRead(fh, g, 100, SIZE, 0), 0, "behind its end");
	is(cuFileRead(fh, g, 100, SIZE - 1, 1), 1, "its last byte");
	is((long long)mock.host_bytes, 0, "no byte by host memory");
	is((long long)mock.copies, 0, "nor was one copied there");
	check(mock.within > 0, "but within the GPU");
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

void test_scratch(void)
{
	int64_t used;
	unsigned int i;

	fresh(NULL);
	used = mock.gpu_used;
	for (i = 0; i < 2; i++)
		read_odd(modes[i]);
	fresh(NULL);
	is(mock.gpu_used, used, "closing the library gives its memory back");
	is(mock.bar1_used, 0, "and the windows of it");
}

struct reader {
	CUfileHandle_t fh;
	char *g;
	off_t off;
	pthread_t thread;
	ssize_t r;
};

static void *read_part(void *arg)
{
	struct reader *r = arg;

	r->r = cuFileRead(r->fh, r->g, 1000, r->off, 1);
	return NULL;
}

/* Copies are put off until somebody waits for them: all that are under way are then. */
static void readers(const char *json, unsigned int together)
{
	struct reader r[4];
	char data[KIB(32)];
	unsigned int i;
	int fd;

	fresh(json);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	for (i = 0; i < 4; i++) {
		r[i].fh = i ? r[0].fh : reg(fd);
		r[i].g = gpu(KIB(64));
		r[i].off = (off_t)(KIB(8) * i + 5);
	}
	mock.hold_wait = true;
	for (i = 0; i < 4; i++)
		pthread_create(&r[i].thread, NULL, read_part, &r[i]);
	AWAIT(mock.in_wait == (int)together);
	mock.hold_wait = false;
	for (i = 0; i < 4; i++) {
		pthread_join(r[i].thread, NULL);
		is(r[i].r, 1000, "several at once");
		check(!memcmp(mem(r[i].g) + 1, data + r[i].off, 1000), "each its own bytes");
	}
	cuFileHandleDeregister(r[0].fh);
	close(fd);
	for (i = 0; i < 4; i++)
		gpu_free(r[i].g);
}

void test_scratch_together(void)
{
	int64_t used;

	readers(STRICT, 4);
	/* with room for two of them, two wait; each is 64 KiB, and as much to align it */
	fresh(NULL);
	used = mock.gpu_used;
	readers("{\"peerlane\":{\"strict\":true},\"properties\":{"
		"\"per_buffer_cache_size_kb\":64,\"max_device_cache_size_kb\":256}}", 2);
	is(mock.gpu_used - used, (int64_t)KIB(256), "as much as is allowed, with what it "
	   "takes to align it");
	fresh(NULL);
}

void test_scratch_none(void)
{
	char data[KIB(16)], *g = gpu(KIB(64));
	size_t size = 100;
	off_t zero = 0;
	ssize_t late = -9;
	CUfileHandle_t fh;
	int fd;

	noise(data, sizeof(data));
	fresh(STRICT);
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	mock.gpu_full = true;
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "strict, and no GPU memory left");
	check(strstr(stats_of(fh).reason, "no GPU memory for whole blocks"), "why: %s",
	      stats_of(fh).reason);
	is(cuFileRead(fh, g, KIB(8), 0, 0), KIB(8), "whole blocks need none");
	mock.gpu_full = false;
	mock.no_streams = true;
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "nor is there a stream");
	is(cuFileReadAsync(fh, g, &size, &zero, &zero, &late, NULL).err, 0,
	   "nor for one in a stream");
	AWAIT(late == -5008);
	mock.no_streams = false;
	mock.copy_error = 700;
	is(cuFileRead(fh, g, 100, 0, 0), -5011, "a copy that fails");
	mock.copy_error = 0;
	mock.sync_error = 700;
	is(cuFileRead(fh, g, 100, 0, 0), -5011, "and one that fails on its way");
	mock.sync_error = 0;
	mock.media_errno = EIO;
	mock.bad_to = 4096;
	is(cuFileRead(fh, g, 100, 0, 0), -1, "a medium that cannot be read");
	is(errno, EIO, "says so");
	is(cuFileRead(fh, g, 100, 4096, 0), 100, "elsewhere it can");
	mock.media_errno = 0;
	fresh("{\"peerlane\":{\"strict\":true},\"properties\":{\"max_device_cache_size_kb\":0}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "none is allowed");
	check(strstr(stats_of(fh).reason, "max_device_cache_size_kb"), "why: %s",
	      stats_of(fh).reason);
	is((long long)mock.host_bytes, 0, "nothing was staged");
	fresh(NO_COMPAT);
	fh = reg(fd);
	mock.gpu_full = true;
	is(cuFileRead(fh, g, 100, 3, 0), 100, "no compat mode: then it is staged");
	check(!memcmp(mem(g), data + 3, 100), "the right bytes");
	check(strstr(stats_of(fh).reason, "no GPU memory for whole blocks"), "why: %s",
	      stats_of(fh).reason);
	mock.gpu_full = false;
	fresh(NO_COMPAT);
	fh = reg(fd);
	mock.bar1_size = 0;
	is(cuFileRead(fh, g, 100, 3, 0), 100, "or where it cannot be mapped");
	check(strstr(stats_of(fh).reason, "BAR1 is full"), "why: %s", stats_of(fh).reason);
	fresh(NULL);
	close(fd);
	gpu_free(g);
}

/* Neither mode has a page written of which a part is another's. */
void test_scratch_write(void)
{
	char data[KIB(64)], now[KIB(64)], *g = gpu(MIB(4));
	unsigned int i;
	CUfileHandle_t fh;
	int fd;

	noise(data, sizeof(data));
	noise(mem(g), MIB(4));
	fresh(STRICT);
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	is(cuFileWrite(fh, g, 100, 0, 0), -5008, "strict: a part of a page is not written");
	check(strstr(stats_of(fh).reason, "data that others write beside it is not lost"),
	      "why: %s", stats_of(fh).reason);
	is(cuFileWrite(fh, g, KIB(8), 512, 0), -5008, "nor are blocks of the drive less than "
	   "a page");
	is(cuFileWrite(fh, g, KIB(8) + 1, 0, 1), -5008, "nor the rest of one");
	check(pread(fd, now, sizeof(now), 0) == sizeof(now) &&
	      !memcmp(now, data, sizeof(now)), "the file is as it was");
	is((long long)mock.host_bytes - (long long)sizeof(now), 0, "nothing was staged");
	for (i = 0; i < 2; i++) {
		fresh(modes[i]);
		fh = reg(fd);
		is(cuFileWrite(fh, g, KIB(48), KIB(4), 3), KIB(48),
		   "whole pages, from an odd address");
		is((long long)mock.host_bytes, 0, "go by p2p");
		is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_written, KIB(48), "all");
		memcpy(data + KIB(4), mem(g) + 3, KIB(48));
		check(pread(fd, now, sizeof(now), 0) == sizeof(now) &&
		      !memcmp(now, data, sizeof(now)), "the file has them, and no others");
		noise(mem(g), KIB(64));
	}
	is(cuFileWrite(fh, g, 100, 5, 0), 100, "no compat mode: a part is staged");
	fresh(STRICT);
	fh = reg(fd);
	is(cuFileWrite(fh, g, MIB(3), 0, 1), MIB(3), "more than the library has of its own");
	is(cuFileRead(fh, g, MIB(1), MIB(2), MIB(3)), MIB(1), "is in the file");
	check(!memcmp(mem(g) + MIB(3), mem(g) + MIB(2) + 1, MIB(1) - 1),
	      "as it was in memory");
	fresh(NULL);
	close(fd);
	gpu_free(g);
}
