// SPDX-License-Identifier: MIT
/* The bounce path: how it cuts transfers, who takes part, and what is not cached. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"
#include "unit.h"

#ifndef SYS_cachestat
#define SYS_cachestat	451
#endif

#define COMPAT	"\"properties\":{\"force_compat_mode\":true}"
#define SIZE	MIB(2)

/* A new file with SIZE bytes of noise, which are @data, too, and in the page cache */
static int cached_file(char *data)
{
	int fd;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	may_cool();
	warm_file(path, SIZE);
	return fd;
}

/* A transfer without helpers, of no more than 1 MiB: one call of each kind */
void test_one_chunk(void)
{
	static const size_t offs[] = { 0, 4096, 1, 4096 * 3 + 77 };
	char *data = malloc(SIZE), *g = gpu(SIZE);
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	fresh("{" COMPAT "}");
	mock.cpus = 1;
	fd = cached_file(data);
	fh = reg(fd);
	for (i = 0; i < 4; i++) {
		mock.reads = mock.copies = mock.waits = 0;
		is(cuFileRead(fh, g, MIB(1), (off_t)offs[i], 0), MIB(1), "1 MiB");
		check(!memcmp(mem(g), data + offs[i], MIB(1)), "the right data");
		is((long long)mock.reads, 1, "by one read of the file");
		is((long long)mock.copies, 1, "one copy");
		is((long long)mock.waits, 1, "and one wait");
	}
	mock.reads = 0;
	is(cuFileRead(fh, g, MIB(1) + 4096, 4096, 0), MIB(1) + 4096, "a page more");
	is((long long)mock.reads, 2, "is two of them");
	check(!memcmp(mem(g), data + 4096, MIB(1) + 4096), "the right data");
	may_cool();
	close(fd);
	gpu_free(g);
	free(data);
}

/*
 * The end of a small transfer is seen in memory that the stream writes, and nobody waits
 * for the stream: unless what it writes comes late, or an error instead.
 */
void test_marks(void)
{
	char *data = malloc(SIZE), *g = gpu(SIZE), got[4096];
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	fd = cached_file(data);
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	mock.marks = MARKS;
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 4096, 0), MIB(1), "a read of 1 MiB");
	check(!memcmp(mem(g), data + 4096, MIB(1)), "the right data");
	is(cuFileWrite(fh, g, 4096, 0, 0), 4096, "a write");
	check(pread(fd, got, 4096, 0) == 4096 && !memcmp(got, data + 4096, 4096),
	      "the right data");
	is((long long)mock.marked, 2, "each is seen to end");
	is((long long)mock.waits, 0, "nobody waits for a stream");
	is(cuFileRead(fh, g, MIB(1) + 4096, 0, 0), MIB(1) + 4096, "a read of more");
	is((long long)mock.marked, 2, "for which nothing is written");

	mock.marks = MARKS_LATE;
	mock.waits = mock.marked = 0;
	for (i = 0; i < 20; i++) {
		memset(mem(g), 0, 4096);
		is(cuFileRead(fh, g, 4096, 4096 * (off_t)i, 0), 4096, "a read");
		check(!memcmp(mem(g), i ? data + 4096 * i : got, 4096), "the right data");
	}
	is((long long)mock.waits, 20, "where it comes late, all are waited for");
	is((long long)mock.marked, 8, "and soon none is asked for");

	fresh("{" COMPAT "}");
	mock.marks = MARKS_LATE;
	fh = reg(fd);
	mock.sync_error = 700;
	is(cuFileRead(fh, g, 4096, 0, 0), -5011, "the error of a stream that never writes");
	mock.sync_error = 0;
	may_cool();
	close(fd);
	gpu_free(g);
	free(data);
}

struct one {
	CUfileHandle_t fh;
	char *g;
	size_t n;
	pthread_t thread;
	ssize_t r;
};

/* Of /proc/self/io */
static long long count_of(const char *what)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n;
	char name[32];

	while (f && fscanf(f, "%31s %llu", name, &n) == 2)
		if (!strcmp(name, what)) {
			fclose(f);
			return (long long)n;
		}
	abort();
}

/* Bytes that this process has read of files, this one of some hundred, too */
static long long bytes_read(void)
{
	return count_of("rchar:");
}

static long long kib_of_read(CUfileHandle_t fh, char *g, off_t off)
{
	long long before = bytes_read();

	is(cuFileRead(fh, g, KIB(128), off, 0), KIB(128), "a read");
	return (bytes_read() - before) >> 10;
}

static void *write_it(void *arg)
{
	struct one *o = arg;

	o->r = cuFileWrite(o->fh, o->g, o->n, 0, 0);
	return NULL;
}

/* Pages of the first @n bytes of the file that are in the page cache; -1: unknown */
static long cached(int fd, size_t n)
{
	uint64_t range[2] = { 0, n }, is[5];

	return syscall(SYS_cachestat, fd, range, is, 0) ? -1 : (long)is[0];
}

/*
 * What will be read next, or written, is looked at while there is nothing else to do: 64 KiB
 * by who waits for a copy, all by who waits for another writer of the file.
 */
void test_warmed(void)
{
	struct one o[2] = { { .g = gpu(KIB(128)), .n = KIB(128) },
			    { .g = gpu(KIB(128)), .n = KIB(128) } };
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_NOW } };
	char *data = malloc(SIZE);
	long long before;
	CUfileHandle_t fh;
	struct stat st;
	int fd;

	fd = cached_file(data);
	if (cached(fd, SIZE) < 0) {
		check(true, "# SKIP data is looked at before its turn only where cachestat() says "
		      "what is cached: %s", strerror(errno));
		may_cool();
		goto out;
	}
	fresh("{" COMPAT "}");
	fh = reg(fd);
	is(kib_of_read(fh, o[0].g, 0), 128, "the first read reads no more");
	is(kib_of_read(fh, o[0].g, KIB(128)), 192, "the next one in order looks ahead");
	is(kib_of_read(fh, o[0].g, KIB(512)), 128, "another one does not");
	is(kib_of_read(fh, o[0].g, KIB(640)), 192, "until it goes on in order");
	may_cool();

	futimens(fd, old);
	before = bytes_read();
	o[0].fh = o[1].fh = fh;
	write_it(&o[0]);
	is(o[0].r, KIB(128), "a write");
	is((bytes_read() - before) >> 10, 64, "looks at the first of what it replaces");
	mock.hold_io = true;
	pthread_create(&o[0].thread, NULL, write_it, &o[0]);
	AWAIT(mock.in_io == 1);
	before = bytes_read();
	pthread_create(&o[1].thread, NULL, write_it, &o[1]);
	AWAIT(mock.in_io == 2);
	is((bytes_read() - before) >> 10, 128, "one that has to wait for another looks at all of it");
	mock.hold_io = false;
	pthread_join(o[0].thread, NULL);
	pthread_join(o[1].thread, NULL);
	is(o[0].r + o[1].r, KIB(256), "both are written");
	check(!fstat(fd, &st) && st.st_atime == 1, "and no access is seen");

	/* what the device would have to be asked for is not looked at */
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		abort();
	before = count_of("read_bytes:");
	write_it(&o[0]);
	is(o[0].r, KIB(128), "a write of what is not in the page cache");
	is(count_of("read_bytes:") - before, 0, "reads nothing from the device");
out:
	close(fd);
	gpu_free(o[0].g);
	gpu_free(o[1].g);
	free(data);
}

static void *read_all(void *arg)
{
	struct one *o = arg;

	o->r = cuFileRead(o->fh, o->g, o->n, 0, 0);
	return NULL;
}

/* While one thread of a transfer is held, helpers do the rest: if there are CPUs */
void test_helpers(void)
{
	char *data = malloc(SIZE);
	struct one o = { .g = gpu(SIZE), .n = SIZE };
	int fd, cpus;

	fd = cached_file(data);
	for (cpus = 1; cpus <= 4; cpus += 3) {
		fresh("{" COMPAT ",\"peerlane\":{\"max_io_threads\":8,"
		      "\"max_request_parallelism\":8}}");
		mock.cpus = cpus;
		o.fh = reg(fd);
		memset(mem(o.g), 0, SIZE);
		mock.hold_host = true;
		mock.in_host = 0;
		pthread_create(&o.thread, NULL, read_all, &o);
		AWAIT(mock.in_host > 0);
		if (cpus > 1)
			AWAIT(mock.reads == SIZE / KIB(256));
		else
			is((long long)mock.reads, 1, "alone, nobody goes on");
		mock.hold_host = false;
		pthread_join(o.thread, NULL);
		is(o.r, SIZE, "all is read");
		check(!memcmp(mem(o.g), data, SIZE), "the right data");
		check(stats_of(NULL).lanes <= 2, "by two lanes at most");
	}
	may_cool();
	close(fd);
	gpu_free(o.g);
	free(data);
}

struct writer {
	struct one o;
	off_t at;
	_Atomic int tid;
};

static void *read_part(void *arg)
{
	struct writer *w = arg;

	w->tid = (int)syscall(SYS_gettid);
	return read_all(&w->o);
}

static void *write_part(void *arg)
{
	struct writer *w = arg;

	w->tid = (int)syscall(SYS_gettid);
	w->o.r = cuFileWrite(w->o.fh, w->o.g, w->o.n, w->at, 0);
	return NULL;
}

/*
 * Those who write into the page cache of one file wait in the kernel for each other, awake:
 * so of large writes only two are there, and the rest sleeps before.  A block device has no
 * such lock.
 */
void test_write_turns(void)
{
	static const struct {
		size_t n;
		bool block;
		int flags, copies, together;
		const char *what;
	} how[] = {
		{ MIB(1), false, 0, 8, 2, "two of eight write at once" },
		{ MIB(1), true, 0, 8, 8, "all eight, to a block device" },
		{ MIB(1), false, O_DIRECT, 16, 8, "all eight, past the page cache" },
		{ KIB(64), false, 0, 8, 8, "all eight, of small ones" },
	};
	char *data = malloc(MIB(8)), *got = malloc(MIB(8));
	struct writer w[8];
	CUfileHandle_t fh;
	unsigned int i, k;
	int fd, in, turn;

	noise(data, MIB(8));
	for (i = 0; i < 8; i++)
		w[i].o.g = gpu(MIB(1));
	for (k = 0; k < sizeof(how) / sizeof(how[0]); k++) {
		const size_t n = how[k].n;

		fresh("{" COMPAT ",\"execution\":{\"parallel_io\":false}}");
		fd = make(path, how[k].flags, data + 1, MIB(8) - 1);
		mock.block = how[k].block;
		fh = reg(fd);
		mock.copies = 0;
		mock.hold_io = true;
		for (i = 0; i < 8; i++) {
			memcpy(mem(w[i].o.g), data + n * i, n);
			w[i].o.fh = fh;
			w[i].o.n = n;
			w[i].at = (off_t)(n * i);
			w[i].tid = 0;
			pthread_create(&w[i].o.thread, NULL, write_part, &w[i]);
		}
		/* all have their first part, which is to be written next */
		AWAIT((int)mock.copies >= how[k].copies);
		/* who waits in a write wakes now and then: once is enough */
		for (i = 0; i < 8; i++)
			for (turn = 0; turn < 600000 && !asleep(w[i].tid); turn++)
				usleep(100);
		AWAIT(mock.in_io >= how[k].together);
		mock.hold_io = false;
		for (i = 0; i < 8; i++) {
			pthread_join(w[i].o.thread, NULL);
			is(w[i].o.r, (long long)n, "a write");
		}
		is(mock.most_in_io, how[k].together, how[k].what);
		mock.block = false;
		in = open(path, O_RDONLY);
		check(in >= 0 && pread(in, got, 8 * n, 0) == (ssize_t)(8 * n) &&
		      !memcmp(got, data, 8 * n), "the right data");
		close(in);
		close(fd);
	}
	for (i = 0; i < 8; i++)
		gpu_free(w[i].o.g);
	free(got);
	free(data);
}

/* There are no more helpers than max_io_threads, whoever calls for them */
void test_most_helpers(void)
{
	char *data = malloc(SIZE);
	struct one o[3];
	unsigned int before;
	CUfileHandle_t fh;
	int fd, i;

	fd = cached_file(data);
	fresh("{" COMPAT ",\"peerlane\":{\"max_io_threads\":2}}");
	mock.cpus = 16;
	fh = reg(fd);
	before = tasks();
	mock.hold_copy = true;
	for (i = 0; i < 3; i++) {
		o[i] = (struct one){ .fh = fh, .g = gpu(SIZE), .n = SIZE };
		pthread_create(&o[i].thread, NULL, read_all, &o[i]);
		/* each of these threads, and a helper of the first two */
		AWAIT(mock.in_copy >= (i < 2 ? 2 * (i + 1) : 5));
	}
	/* one that was joined may have been counted before */
	check(tasks() <= before + 3 + 2, "three transfers have two helpers");
	mock.hold_copy = false;
	for (i = 0; i < 3; i++) {
		pthread_join(o[i].thread, NULL);
		is(o[i].r, SIZE, "all is read");
		check(!memcmp(mem(o[i].g), data, SIZE), "the right data");
		gpu_free(o[i].g);
	}
	may_cool();
	close(fd);
	free(data);
}

/* Sixteen requests to a device: each transfer has its share when it begins */
void test_share(void)
{
	char *data = malloc(MIB(1));
	struct one o[9];
	CUfileHandle_t fh;
	int fd, others, i;

	noise(data, MIB(1));
	fd = make(path, O_DIRECT, data, MIB(1));
	fresh("{" COMPAT "}");
	fh = reg(fd);
	for (others = 7; others <= 8; others++) {
		mock.reads = 0;
		mock.hold_io = true;
		for (i = 0; i <= others; i++) {
			o[i] = (struct one){ .fh = fh, .g = gpu(MIB(1)),
					     .n = i < others ? 4096 : MIB(1) };
			pthread_create(&o[i].thread, NULL, read_all, &o[i]);
			AWAIT(mock.in_io > i);
		}
		mock.hold_io = false;
		for (i = 0; i <= others; i++) {
			pthread_join(o[i].thread, NULL);
			is(o[i].r, (long long)o[i].n, "all is read");
			check(!memcmp(mem(o[i].g), data, o[i].n), "the right data");
			gpu_free(o[i].g);
		}
		is((long long)mock.reads - others, others < 8 ? 2 : 1,
		   others < 8 ? "the eighth has two requests" : "the ninth has one");
	}
	close(fd);
	free(data);
}

static ssize_t go(CUfileHandle_t fh, char *g, size_t n, bool write)
{
	return write ? cuFileWrite(fh, g, n, 0, 0) : cuFileRead(fh, g, n, 0, 0);
}

/* Copies that somebody waits for in vain: whose lane it was does not matter */
void test_lost_copies(void)
{
	const size_t n = MIB(3);
	struct one o = { .g = gpu(n), .n = SIZE };
	char *data = malloc(n);
	int fd, i, waits, write;

	noise(data, n);
	fd = make(path, 0, data, n);
	may_cool();
	warm_file(path, n);
	/* halves that hold all of it: the only wait of a lane is that at its end */
	set_slabs(4096, 8);
	for (i = 0; i < 2; i++) {
		fresh("{" COMPAT "}");
		mock.cpus = 4;
		o.fh = reg(fd);
		/* while one thread is held, the other one does the rest */
		mock.hold_host = true;
		mock.sync_error = 700;
		mock.sync_after = i;
		pthread_create(&o.thread, NULL, read_all, &o);
		AWAIT(mock.reads == SIZE / KIB(256));
		mock.hold_host = false;
		pthread_join(o.thread, NULL);
		is((long long)mock.waits, 2, "two lanes, one wait for each");
		is(o.r, -5011, i ? "that for the helper's fails" : "the first one fails");
		mock.sync_error = 0;
		memset(mem(o.g), 0, SIZE);
		is(cuFileRead(o.fh, o.g, SIZE, 0, 0), SIZE, "the next one works");
		check(!memcmp(mem(o.g), data, SIZE), "the right data");
	}
	set_slabs(0, 0);
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	o.fh = reg(fd);
	for (write = 0; write < 2; write++) {
		mock.waits = 0;
		is(go(o.fh, o.g, n, write), (long long)n, "by one lane");
		waits = (int)mock.waits;
		check(waits > 1, "which waits for its halves, too");
		for (i = 0; i < waits; i++) {
			mock.sync_error = 700;
			mock.sync_after = i;
			is(go(o.fh, o.g, n, write), -5011, "one of its waits fails");
			mock.sync_error = 0;
		}
		is(go(o.fh, o.g, n, write), (long long)n, "the next one works");
	}
	may_cool();
	close(fd);
	gpu_free(o.g);
	free(data);
}

/*
 * A copy from the GPU cannot be started, and the one before it is lost: what its buffer
 * has is of another file.
 */
void test_lost_before_write(void)
{
	const size_t n = KIB(512);
	char *old = malloc(n), *new = malloc(n), *got = malloc(n), *g = gpu(n), *h = gpu(n);
	int fd, fd_other, lost;
	size_t i, wrong;
	CUfileHandle_t fh;

	noise(new, n);
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	fd_other = make(other, 0, new, n);
	is(cuFileRead(reg(fd_other), h, n, 0, 0), (long long)n, "a read of a file");
	noise(old, n);
	noise(new, n);
	memcpy(mem(g), new, n);
	fd = make(path, 0, old, n);
	fh = reg(fd);
	for (lost = 1; lost >= 0; lost--) {
		mock.copy_after = 1;
		mock.copy_error = 700;
		mock.sync_error = lost ? 700 : 0;
		mock.sync_after = 0;
		is(cuFileWrite(fh, g, n, 0, 0), -5011, lost ? "the first copy is lost" :
		   "the second copy of a write to another one fails");
		mock.copy_error = mock.sync_error = 0;
		is(pread(fd, got, n, 0), (long long)n, "the file");
		for (i = wrong = 0; i < n; i++)
			wrong += got[i] != old[i] && got[i] != new[i];
		is((long long)wrong, 0, "has its old bytes, or new ones");
	}
	is(cuFileWrite(fh, g, n, 0, 0), (long long)n, "the next write");
	check(pread(fd, got, n, 0) == (ssize_t)n && !memcmp(got, new, n), "goes well");
	close(fd);
	close(fd_other);
	gpu_free(g);
	gpu_free(h);
	free(old);
	free(new);
	free(got);
}

/*
 * No event tells when a half can be used again: the transfer fails, and its lane goes back
 * when its copies have ended.  They would move what the next one has in the same memory.
 */
void test_no_record(void)
{
	const size_t n = KIB(192);
	char *data = malloc(n), *old = malloc(n), *now = malloc(n), *got = malloc(n);
	char *g = gpu(n), *h = gpu(n);
	CUfileHandle_t fh, fh_other;
	int fd, fd_other, write;
	size_t i, wrong;

	set_slabs(64, 2);
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	noise(data, n);
	noise(old, n);
	noise(now, n);
	fd = make(path, 0, old, n);
	fd_other = make(other, 0, data, n);
	fh = reg(fd);
	fh_other = reg(fd_other);
	for (write = 0; write < 2; write++) {
		memcpy(mem(g), now, n);
		memset(mem(h), 0, n);
		mock.no_record = true;
		is(go(fh, g, n, write), -5011, write ? "a write" : "a read");
		mock.no_record = false;
		mock.copies = 0;
		is(cuFileRead(fh_other, h, n, 0, 0), (long long)n, "the next transfer");
		is((long long)mock.copies, 3, "has its copies");
		check(!memcmp(mem(h), data, n), "the right data");
		memcpy(got, mem(g), n);
		if (write && pread(fd, got, n, 0) != (ssize_t)n)
			abort();
		for (i = wrong = 0; i < n; i++)
			wrong += got[i] != old[i] && got[i] != now[i];
		is((long long)wrong, 0, "and the one before has no byte of it");
	}
	is(stats_of(NULL).lanes, 1, "by one lane");
	set_slabs(0, 0);
	close(fd);
	close(fd_other);
	gpu_free(g);
	gpu_free(h);
	free(data);
	free(old);
	free(now);
	free(got);
}

static void cool(int fd)
{
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		abort();
}

/* What is not in the page cache is read around it */
void test_cold(void)
{
	const size_t n = MIB(1) + 1000;
	char *data = malloc(n), *g = gpu(SIZE);
	CUfileHandle_t fh;
	size_t off;
	long before;
	int fd;

	noise(data, n);
	fd = make(path, 0, data, n);
	cool(fd);
	before = cached(fd, MIB(1));
	if (before < 0 || before == (long)(MIB(1) / 4096)) {
		check(true, "# SKIP cold ranges, as %s; cufile/page-cache has them in a "
		      "guest", before < 0 ? "this kernel does not say what is cached" :
		      "this file system keeps all in its cache");
		goto out;
	}
	for (off = 0; off < 8192; off += 1000) {
		fresh("{" COMPAT ",\"peerlane\":{\"max_io_threads\":1}}");
		fh = reg(fd);
		memset(mem(g), 0, SIZE);
		is(cuFileRead(fh, g, SIZE, (off_t)off, 0), (long long)(n - off),
		   "to the end of a file that is not cached");
		check(!memcmp(mem(g), data + off, n - off), "the right data");
		check(!mem(g)[n - off], "and nothing behind it");
		/* the pages of its ends may be */
		check(cached(fd, MIB(1) - KIB(64)) <= before + 2,
		      "it still is not: %ld pages were, %ld are", before,
		      cached(fd, MIB(1) - KIB(64)));
		cool(fd);
	}
	/* of a device nobody says here how long it is */
	mock.block = true;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the same as a block device");
	mock.block = false;
	check(cached(fd, MIB(1) - KIB(64)) <= before + 2,
	      "it still is not: %ld pages were, %ld are", before,
	      cached(fd, MIB(1) - KIB(64)));
	cool(fd);
	/* some of it is, and newer than the device has it */
	memset(data + KIB(512), 'n', 4096);
	if (pwrite(fd, data + KIB(512), 4096, KIB(512)) != 4096)
		abort();
	is(cuFileRead(fh, g, SIZE, 0, 0), (long long)n, "a page of it is dirty");
	check(!memcmp(mem(g), data, n), "the right data");
	cool(fd);
	mock.bad_from = KIB(512) + 4096;
	mock.bad_to = mock.bad_from + 4096;
	mock.media_errno = EIO;
	memset(mem(g), 0, SIZE);
	is(cuFileRead(fh, g, SIZE, 0, 0), (long long)mock.bad_from,
	   "a bad block: what lies before it");
	check(!memcmp(mem(g), data, mock.bad_from), "the right data");
	is(cuFileRead(fh, g, MIB(1), (off_t)mock.bad_from, 0), -1, "then an error");
	is(errno, EIO, "with EIO");
	mock.media_errno = 0;
	is(cuFileRead(fh, g, SIZE, 0, 0), (long long)n, "the next one works");
out:
	close(fd);
	gpu_free(g);
	free(data);
}

static void *close_it(void *arg)
{
	(void)arg;
	cuFileDriverClose();
	return NULL;
}

struct opener {
	_Atomic int tid;
	int err;
};

static void *open_it(void *arg)
{
	struct opener *o = arg;

	o->tid = (int)syscall(SYS_gettid);
	o->err = cuFileDriverOpen().err;
	return NULL;
}

/* While a transfer holds a lane, the library closes, and opens with smaller slabs */
void test_other_slabs(void)
{
	char *data = malloc(MIB(1));
	struct one o = { .g = gpu(MIB(1)), .n = MIB(1) };
	size_t kb = 64, count = 2;
	pthread_t closer, opening;
	struct opener opener = { 0 };
	int fd;

	set_slabs(1024, 2);
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	warm_file(path, MIB(1));
	o.fh = reg(fd);
	mock.reads = 0;
	mock.hold_host = true;
	pthread_create(&o.thread, NULL, read_all, &o);
	AWAIT(mock.in_host);
	pthread_create(&closer, NULL, close_it, NULL);
	AWAIT(!cuFileUseCount());
	is(cuFileSetParameterPosixPoolSlabArray(&kb, &count, 1).err, 0,
	   "smaller slabs, while the library closes");
	pthread_create(&opening, NULL, open_it, &opener);
	AWAIT(asleep(opener.tid));
	mock.hold_host = false;
	pthread_join(o.thread, NULL);
	pthread_join(closer, NULL);
	pthread_join(opening, NULL);
	is(opener.err, 0, "it opens");
	is(o.r, MIB(1), "what was under way has ended well");
	is((long long)mock.reads, 1, "with the slabs that it had");
	check(!memcmp(mem(o.g), data, MIB(1)), "the right data");
	o.fh = reg(fd);
	memset(mem(o.g), 0, MIB(1));
	mock.reads = 0;
	read_all(&o);
	is(o.r, MIB(1), "another one");
	is((long long)mock.reads, MIB(1) / KIB(64), "has the new ones");
	check(!memcmp(mem(o.g), data, MIB(1)), "the right data");
	is((long long)stats_of(NULL).lanes, 1, "one lane");
	may_cool();
	set_slabs(0, 0);
	fresh(NULL);
	close(fd);
	gpu_free(o.g);
	free(data);
}

/* Two slabs of each size, the largest first; and the library is opened. */
static void three_classes(void)
{
	const size_t kb[] = { 1024, 4, 64 }, count[] = { 2, 2, 2 };

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is(cuFileSetParameterPosixPoolSlabArray(kb, count, 3).err, 0, "three sizes");
	fresh("{" COMPAT "}");
	mock.cpus = 1;
}

/* A lane has two slabs, each with room for the whole blocks around a chunk */
static long long lane_of(size_t kb)
{
	return (long long)(2 * (KIB(kb) + KIB(8)) + KIB(4));
}

/* A transfer has the smallest slabs that hold its chunks */
void test_slab_classes(void)
{
	static const struct {
		size_t n;
		off_t off;
		bool write;
		size_t slab;	/* KiB */
	} how[] = {
		{ 512, 0, false, 4 }, { 4096, 0, false, 4 }, { 4096, 4095, false, 4 },
		{ 4096, 1, true, 4 }, { 4097, 0, false, 64 }, { KIB(64), 77, false, 64 },
		{ KIB(64), 4095, true, 64 }, { KIB(64) + 1, 0, false, 1024 },
		{ KIB(300), 5, true, 1024 }, { MIB(1), 0, false, 1024 },
		{ MIB(2) - 7, 7, false, 1024 }, { MIB(2) - 5, 5, true, 1024 },
	};
	char *data = malloc(SIZE), *got = malloc(SIZE), *g = gpu(SIZE);
	size_t kb[3] = { 0 }, count[3] = { 0 };
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(data, SIZE);
	fd = make(path, 0, data, SIZE);
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		three_classes();
		fh = reg(fd);
		if (how[i].write) {
			noise(data + how[i].off, how[i].n);
			memcpy(mem(g), data + how[i].off, how[i].n);
			is(cuFileWrite(fh, g, how[i].n, how[i].off, 0),
			   (long long)how[i].n, "a write");
			check(pread(fd, got, SIZE, 0) == (ssize_t)SIZE &&
			      !memcmp(got, data, SIZE), "the right data");
		} else {
			memset(mem(g), 0, SIZE);
			is(cuFileRead(fh, g, how[i].n, how[i].off, 0),
			   (long long)how[i].n, "a read");
			check(!memcmp(mem(g), data + how[i].off, how[i].n) &&
			      (how[i].n == SIZE || !mem(g)[how[i].n]), "the right data");
		}
		is(mock.pinned_bytes, lane_of(how[i].slab), "by the smallest slabs");
	}
	is(cuFileGetParameterPosixPoolSlabArray(kb, count, 3).err, 0, "the sizes");
	check(kb[0] == 1024 && kb[1] == 4 && kb[2] == 64, "are told as they were set");
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is(mock.pinned_bytes, 0, "closed, none is pinned");
	kb[0] = 1u << 24;
	is(cuFileSetParameterPosixPoolSlabArray(kb, count, 3).err, 0,
	   "a size as in the tests of cuda-python");
	kb[0]++;
	is(cuFileSetParameterPosixPoolSlabArray(kb, count, 3).err, 5022, "a larger one");
	kb[0] = 4;
	count[1] = 0;
	is(cuFileSetParameterPosixPoolSlabArray(kb, count, 3).err, 5022, "none of a size");
	set_slabs(0, 0);
	close(fd);
	gpu_free(g);
	free(got);
	free(data);
}

/* Who finds none of its size has a larger one, or waits; others have theirs meanwhile */
void test_slab_turns(void)
{
	static const size_t slabs[] = { 4, 64, 1024 };
	char *data = malloc(MIB(1));
	struct writer w[5];
	CUfileHandle_t fh;
	long long want = 0;
	int fd, i;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	for (i = 0; i < 5; i++)
		w[i] = (struct writer){ .o = { .g = gpu(MIB(1)), .n = 4096 } };
	three_classes();
	fh = reg(fd);
	mock.hold_copy = true;
	for (i = 0; i < 3; i++) {
		w[i].o.fh = fh;
		pthread_create(&w[i].o.thread, NULL, read_all, &w[i].o);
		AWAIT(mock.in_copy > i);
		want += lane_of(slabs[i]);
		is(mock.pinned_bytes, want, "the next larger slabs");
	}
	/* all are in use */
	w[3].o.fh = fh;
	pthread_create(&w[3].o.thread, NULL, read_part, &w[3]);
	AWAIT(asleep(w[3].tid));
	is(mock.in_copy, 3, "the fourth waits");
	mock.hold_copy = false;
	for (i = 0; i < 4; i++) {
		pthread_join(w[i].o.thread, NULL);
		is(w[i].o.r, 4096, "it has read");
		check(!memcmp(mem(w[i].o.g), data, 4096), "the right data");
	}
	is(stats_of(NULL).lanes, 3, "by three lanes");

	/* one has the only lane that two need; a small one does not need it */
	three_classes();
	fh = reg(fd);
	is(cuFileRead(fh, w[2].o.g, 4096, 0, 0), 4096, "there is a lane for it");
	mock.copies = 0;
	mock.hold_host = true;
	for (i = 0; i < 3; i++) {
		w[i].o.fh = fh;
		w[i].o.n = i < 2 ? MIB(1) : 4096;
		w[i].tid = 0;
		pthread_create(&w[i].o.thread, NULL, read_part, &w[i]);
		if (!i)
			AWAIT(mock.in_host > 0);
		else if (i == 1)
			AWAIT(asleep(w[1].tid));
	}
	AWAIT(mock.copies);
	is(mock.pinned_bytes, lane_of(1024) + lane_of(4),
	   "a small one passes who waits for large slabs");
	mock.hold_host = false;
	pthread_join(w[2].o.thread, NULL);
	is(w[2].o.r, 4096, "it has read");
	for (i = 0; i < 2; i++) {
		pthread_join(w[i].o.thread, NULL);
		is(w[i].o.r, MIB(1), "which have theirs, too");
		check(!memcmp(mem(w[i].o.g), data, MIB(1)), "the right data");
	}
	is(mock.pinned_bytes, lane_of(1024) + lane_of(4), "one after the other");

	/* all have one, two wait, and what becomes free serves the second of them only */
	three_classes();
	fh = reg(fd);
	mock.hold_host = true;
	for (i = 0; i < 5; i++) {
		w[i].o.fh = fh;
		w[i].o.n = i % 3 ? 4096 : MIB(1);
		w[i].tid = 0;
		pthread_create(&w[i].o.thread, NULL, read_part, &w[i]);
		if (!i) {
			AWAIT(mock.in_host > 0);
			mock.hold_copy = true;
		} else if (i < 3) {
			AWAIT(mock.in_copy >= i);
		} else {
			AWAIT(asleep(w[i].tid));
		}
	}
	mock.hold_copy = false;
	AWAIT(mock.copies == 3);
	mock.hold_host = false;
	for (i = 0; i < 5; i++) {
		pthread_join(w[i].o.thread, NULL);
		is(w[i].o.r, (long long)w[i].o.n, "all have read");
		check(!memcmp(mem(w[i].o.g), data, w[i].o.n), "the right data");
	}
	set_slabs(0, 0);
	for (i = 0; i < 5; i++)
		gpu_free(w[i].o.g);
	close(fd);
	free(data);
}

/* Larger slabs than needed leave half of the memory; one that is needed is made anyway */
void test_slab_memory(void)
{
	char *data = malloc(MIB(1));
	struct writer w[2];
	CUfileHandle_t fh;
	int fd, i;

	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	group();
	group_says("memory.max", "3000000\n");
	group_says("memory.current", "0\n");
	three_classes();
	fh = reg(fd);
	mock.hold_copy = true;
	for (i = 0; i < 2; i++) {
		w[i] = (struct writer){ .o = { fh, gpu(MIB(1)), KIB(64) } };
		pthread_create(&w[i].o.thread, NULL, read_part, &w[i]);
		if (!i)
			AWAIT(mock.in_copy > 0);
	}
	AWAIT(asleep(w[1].tid));
	is(mock.pinned_bytes, lane_of(64), "the second does not take much of little");
	mock.hold_copy = false;
	for (i = 0; i < 2; i++) {
		pthread_join(w[i].o.thread, NULL);
		is(w[i].o.r, KIB(64), "but waits for the first");
		check(!memcmp(mem(w[i].o.g), data, KIB(64)), "the right data");
	}
	is(cuFileRead(fh, w[0].o.g, MIB(1), 0, 0), MIB(1), "who needs much");
	is(mock.pinned_bytes, lane_of(64) + lane_of(1024), "has it");
	no_group();
	set_slabs(0, 0);
	gpu_free(w[0].o.g);
	gpu_free(w[1].o.g);
	close(fd);
	free(data);
}

/* Who waits for a lane that another transfer makes has the reserve when that fails */
void test_slab_failure(void)
{
	const size_t kb[] = { 4, 1024 }, count[] = { 2, 2 };
	char *data = malloc(MIB(1));
	struct writer w[3];
	CUfileHandle_t fh;
	int fd, i;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is(cuFileSetParameterPosixPoolSlabArray(kb, count, 2).err, 0, "two sizes");
	fresh("{" COMPAT "}");
	mock.cpus = 1;
	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	fh = reg(fd);
	for (i = 0; i < 3; i++)
		w[i] = (struct writer){ .o = { .fh = fh, .g = gpu(MIB(1)),
					       .n = i < 2 ? 4096 : MIB(1) } };
	mock.hold_host = true;
	pthread_create(&w[0].o.thread, NULL, read_part, &w[0]);
	AWAIT(mock.in_host > 0);
	mock.anon_errno = ENOMEM;
	mock.anon_together = 2;
	pthread_create(&w[1].o.thread, NULL, read_part, &w[1]);
	AWAIT(mock.anon_calls == 1);
	pthread_create(&w[2].o.thread, NULL, read_part, &w[2]);
	AWAIT(asleep(w[2].tid));
	mock.anon_together = 0;
	/* then the first small one may have it, too */
	AWAIT(mock.copies > 0);
	is(stats_of(NULL).lanes, 2, "it has the reserve, and the small ones have their lane");
	mock.hold_host = false;
	for (i = 0; i < 3; i++) {
		pthread_join(w[i].o.thread, NULL);
		is(w[i].o.r, (long long)w[i].o.n, "it has read");
		check(!memcmp(mem(w[i].o.g), data, w[i].o.n), "the right data");
		gpu_free(w[i].o.g);
	}
	mock.anon_errno = 0;
	set_slabs(0, 0);
	close(fd);
	free(data);
}

/* One lane, and memory of two contexts */
void test_two_contexts(void)
{
	char *data = malloc(KIB(64)), *g[2];
	CUfileHandle_t fh;
	int fd, i;

	set_slabs(64, 2);
	fresh("{" COMPAT "}");
	noise(data, KIB(64));
	fd = make(path, 0, data, KIB(64));
	fh = reg(fd);
	g[0] = gpu(KIB(64));
	mock.other_memory = true;
	g[1] = gpu(KIB(64));
	for (i = 0; i < 4; i++) {
		memset(mem(g[i % 2]), 0, KIB(64));
		mock.copies = mock.waits = 0;
		is(cuFileRead(fh, g[i % 2], KIB(64), 0, 0), KIB(64),
		   "a read to memory of another context than before");
		check(!memcmp(mem(g[i % 2]), data, KIB(64)), "the right data");
		/* in another context's stream it fails, and another one follows */
		is((long long)mock.copies, 1, "by one copy");
		is((long long)mock.waits, 1, "in a stream of that context");
	}
	is((long long)stats_of(NULL).lanes, 1, "one lane does all");
	set_slabs(0, 0);
	close(fd);
	gpu_free(g[0]);
	gpu_free(g[1]);
	free(data);
}

/* The file anew, with lanes of 64 KiB; memory of the usual context, and of another one */
static CUfileHandle_t two_contexts(int fd, char **usual, char **other_one)
{
	set_slabs(64, 2);
	fresh("{" COMPAT "}");
	*usual = gpu(KIB(64));
	mock.other_memory = true;
	*other_one = gpu(KIB(64));
	mock.other_memory = false;
	return reg(fd);
}

/* The memory of a lane is pinned in one context; others use it, too, until that one is destroyed. */
void test_lane_context(void)
{
	char *data = malloc(KIB(64)), *g, *h;
	const int64_t before = mock.pinned_bytes;
	CUfileHandle_t fh;
	int64_t pinned;
	int fd, i;

	noise(data, KIB(64));
	fd = make(path, 0, data, KIB(64));
	for (i = 0; i < 2; i++) {
		fh = two_contexts(fd, &g, &h);
		if (i)
			is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "a lane of the first context");
		is(cuFileRead(fh, h, KIB(64), 0, 0), KIB(64), i ? "has a stream of another" :
		   "a lane of another context");
		pinned = mock.pinned_bytes;
		check(pinned > before, "is pinned");
		mock_end_other();
		memset(mem(g), 0, KIB(64));
		is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "that is destroyed, and the first reads");
		check(!memcmp(mem(g), data, KIB(64)), "the right data");
		is((long long)mock.pinned_bytes, pinned, "its lane is pinned");
		is((long long)mock.unpinned, 0, "for all that is copied from it");
		is((long long)stats_of(NULL).lanes, 1, "there is one");
		if (!i)
			mock.no_other = false;	/* a new one */
		is(cuFileRead(fh, h, KIB(64), 0, 0), i ? -5011 : (int)KIB(64),
		   i ? "what has no context is no memory" : "a new context");
		set_slabs(0, 0);
		is((long long)mock.pinned_bytes, before, "closed, nothing is pinned");
		gpu_free(g);
		gpu_free(h);
	}

	/* who has pinned it is gone, after it had got a stream of the one that stays */
	fh = two_contexts(fd, &g, &h);
	cuFileRead(fh, h, KIB(64), 0, 0);
	cuFileRead(fh, g, KIB(64), 0, 0);
	pinned = mock.pinned_bytes;
	mock_end_other();
	is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "a lane whose stream stays, and what pinned it is destroyed");
	is((long long)mock.unpinned, 0, "is pinned before anything is copied from it");
	is((long long)mock.pinned_bytes, pinned, "as before");
	set_slabs(0, 0);
	is((long long)mock.pinned_bytes, before, "closed, nothing is pinned");
	gpu_free(g);
	gpu_free(h);

	/* the last who used it is gone, and not who has pinned it */
	fh = two_contexts(fd, &g, &h);
	cuFileRead(fh, g, KIB(64), 0, 0);
	is(cuFileRead(fh, h, KIB(64), 0, 0), KIB(64), "a lane with a stream of another context");
	mock_end_other();
	set_slabs(0, 0);
	is((long long)mock.pinned_bytes, before, "which is destroyed: closed, nothing is pinned");
	close(fd);
	gpu_free(g);
	gpu_free(h);
	free(data);
}

/* Reads a few times, each time what lies behind it */
struct some {
	CUfileHandle_t fh;
	char *g;
	off_t off;
	int times;
	_Atomic int tid;
	bool right;
	pthread_t thread;
};

static void *read_some(void *arg)
{
	struct some *s = arg;
	int i;

	s->tid = (int)syscall(SYS_gettid);
	s->right = true;
	for (i = 0; i < s->times; i++)
		s->right &= cuFileRead(s->fh, s->g, KIB(64),
				       s->off + i * (off_t)KIB(64), 0) == (ssize_t)KIB(64);
	return NULL;
}

/* One lane: who waits for it has it before who comes back for it */
void test_turns(void)
{
	struct some a = { .times = 2 }, b = { .times = 1, .off = KIB(128) };
	char *data = calloc(1, KIB(192));
	uint64_t next = 0;
	int fd, turn;

	set_slabs(64, 2);
	fresh("{" COMPAT "}");
	fd = make(path, 0, data, KIB(192));
	a.fh = b.fh = reg(fd);
	a.g = gpu(KIB(64));
	b.g = gpu(KIB(64));
	for (turn = 0; turn < 5; turn++) {
		mock.in_host = 0;
		b.tid = 0;
		mock.hold_copy = true;
		pthread_create(&a.thread, NULL, read_some, &a);
		AWAIT(mock.in_copy > 0);
		pthread_create(&b.thread, NULL, read_some, &b);
		AWAIT(b.tid && asleep(b.tid));
		/* the next one that reads the file shows itself */
		mock.hold_host = true;
		mock.hold_copy = false;
		AWAIT(mock.in_host > 0);
		next = mock.host_off;
		mock.hold_host = false;
		pthread_join(a.thread, NULL);
		pthread_join(b.thread, NULL);
		check(a.right && b.right, "all is read");
		if (next == KIB(128))
			break;
		/* it may have slept before it came to the lane */
	}
	is((long long)next, KIB(128), "the next is who has waited");
	is((long long)stats_of(NULL).lanes, 1, "by one lane");
	set_slabs(0, 0);
	close(fd);
	gpu_free(a.g);
	gpu_free(b.g);
	free(data);
}
