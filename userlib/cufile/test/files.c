// SPDX-License-Identifier: MIT
/* Files: how far transfers get, and what registration does to descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

/* A write ends in the middle of a block, without an error */
void test_odd_write(void)
{
	char *g = gpu(65536);
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	fd = make(path, 0, NULL, 0);
	fh = reg(fd);
	mock.odd_write = 8292;
	is(cuFileWrite(fh, g, 65536, 0, 0), 8292,
	   "a write ends in a block: so many bytes are told");
	is(cuFileWrite(fh, g, 65536, 0, 0), 65536, "the next one goes to its end");
	mock.no_write = true;
	errno = 0;
	is(cuFileWrite(fh, g, 65536, 0, 0), -1, "one that moves nothing");
	is(errno, EIO, "has failed");
	close(fd);
	gpu_free(g);
}

/* The program's memory, and a file that it has opened with O_DIRECT */
void test_host_direct(void)
{
	enum { SIZE = 32768 };
	char *data = aligned_alloc(4096, SIZE), want[SIZE], back[SIZE];
	static const struct {
		off_t off, from;
		size_t n, direct;	/* so many calls */
	} w[] = {
		{ 512, 0, 1024, 0 },
		{ 3584, 512, 1024, 0 },
		{ 512, 512, 16384, 1 },
		{ 4096, 4096, 8192, 1 },
		{ 8192, 0, 8704, 1 },
		{ 100, 7, 20000, 0 },	/* the memory is not aligned */
	};
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	fresh(NULL);
	noise(data, SIZE);
	for (i = 0; i < sizeof(w) / sizeof(w[0]); i++) {
		memset(want, 'x', SIZE);
		fd = make(path, O_DIRECT, want, SIZE);
		fh = reg(fd);
		mock.directs = mock.parts = 0;
		is(cuFileWrite(fh, data + w[i].from, w[i].n, w[i].off, 0),
		   (long long)w[i].n, "a write of host memory");
		is((long long)mock.parts, 0, "no part of a page goes around the page cache");
		/* some file systems take any memory */
		if (!(w[i].from % 512))
			is((long long)mock.directs, (long long)w[i].direct, "whole pages do");
		cuFileHandleDeregister(fh);
		close(fd);
		memcpy(want + w[i].off, data + w[i].from, w[i].n);
		fd = open(path, O_RDONLY);
		check(pread(fd, back, SIZE, 0) == SIZE && !memcmp(back, want, SIZE),
		      "the file is right");
		close(fd);
	}
	free(data);

	/* memory that ends within the write: what comes before is written, and told */
	data = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(data, 'y', 4096);
	mprotect(data + 4096, 4096, PROT_NONE);
	memset(want, 'x', SIZE);
	fd = make(path, O_DIRECT, want, SIZE);
	fh = reg(fd);
	is(cuFileWrite(fh, data, 8192, 0, 0), 4096, "a write of two pages, of which one is there");
	cuFileHandleDeregister(fh);
	close(fd);
	memset(want, 'y', 4096);
	fd = open(path, O_RDONLY);
	check(pread(fd, back, SIZE, 0) == SIZE && !memcmp(back, want, SIZE),
	      "it is in the file, and no more");
	close(fd);
	munmap(data, 8192);
}

/* Several lanes write, and that of the second MiB meets a full disk */
void test_short_write(void)
{
	const size_t n = MIB(16);
	CUfileHandle_t fh;
	struct stat st;
	char *g = gpu(n);
	int fd, filled;

	for (filled = 0; filled < 2; filled++) {
		fresh("{\"properties\":{\"force_compat_mode\":true},\"peerlane\":"
		      "{\"max_io_threads\":4,\"max_request_parallelism\":4}}");
		fd = make(path, O_DIRECT, NULL, 0);
		if (filled && posix_fallocate(fd, 0, (off_t)n))
			return;
		fh = reg(fd);
		mock.slow_ms = 10;
		mock.bad_from = MIB(1);
		mock.bad_to = MIB(2);
		mock.media_errno = ENOSPC;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)MIB(1),
		   "a write by several lanes, to a full disk");
		fstat(fd, &st);
		is((long long)st.st_size, (long long)(filled ? n : MIB(1)),
		   filled ? "the file is as long as it was" :
			    "the file ends where it is told");
		mock.media_errno = 0;
		/* so long that all lanes have begun before the first has ended */
		mock.slow_ms = filled ? 200 : 10;
		mock.most_in_io = 0;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)n, "the next one");
		check(!filled == (mock.most_in_io == 1),
		      filled ? "several lanes write what does not grow" :
			       "one lane makes a file longer");
		close(fd);
	}
	gpu_free(g);
}

/* What fcntl() does to the program's descriptor is not done to ours */
void test_append_later(void)
{
	char page[8192], *g = gpu(8192), *own = page;
	static const int how[] = { 0, O_DIRECT };
	CUfileHandle_t fh;
	unsigned int i;
	struct stat st;
	int fd;

	for (i = 0; i < 2; i++) {
		fresh(NULL);
		memset(page, 'a', sizeof(page));
		fd = make(path, how[i], page, sizeof(page));
		fh = reg(fd);
		memset(mem(g), 'B', 8192);
		if (fcntl(fd, F_SETFL, O_APPEND | (i ? 0 : O_DIRECT)))
			abort();
		is(cuFileWrite(fh, g, 100, 0, 0), 100,
		   "a few bytes, with O_APPEND since registration");
		is(cuFileWrite(fh, g, 4096 + 100, 200, 0), 4196, "more of them");
		is(cuFileWrite(fh, own, 10, 4300, 0), 10, "and host memory");
		fstat(fd, &st);
		is((long long)st.st_size, 8192, "the file is as long as it was");
		is(cuFileRead(fh, g, 8192, 0, 0), 8192, "read them");
		check(mem(g)[99] == 'B' && mem(g)[100] == 'a' &&
		      mem(g)[200] == 'B' && mem(g)[4299] == 'B' &&
		      mem(g)[4300] == 'a' && mem(g)[4310] == 'B' &&
		      mem(g)[4395] == 'B' && mem(g)[4396] == 'a',
		      "they are where they belong");
		close(fd);
	}
	gpu_free(g);
}

/* The program closes its file and opens it again: the number is the same */
void test_number_again(void)
{
	static const int modes[] = { O_RDONLY, O_RDWR };
	char *g = gpu(4096);
	CUfileHandle_t fh;
	unsigned int i;
	int fd, again, twin;

	for (i = 0; i < 2; i++) {
		fresh(NULL);
		close(make(path, 0, "abcd", 4));
		fd = open(path, modes[i]);
		fh = reg(fd);
		twin = dup(fd);
		close(fd);
		is(dup2(twin, fd), fd, "a number that comes back by dup2()");
		is(reg_error(fd), 5028, "is registered");
		close(twin);
		close(fd);
		again = open(path, O_RDWR);
		is(again, fd, "the number of a file that was closed");
		is(reg_error(again), 0, i ? "opened in the same way: registered" :
		   "opened to write, too: registered");
		fh = reg(again);
		is(cuFileWrite(fh, g, 4096, 0, 0), 4096, "and written");
		close(again);
	}
	gpu_free(g);
}

struct again {
	int fd, err[4];
};

/* The kernel does not tell which descriptors are of one open() */
static void *register_again(void *arg)
{
	static const int flags[] = { O_RDWR | O_DIRECT, O_RDONLY, O_RDWR };
	struct again *a = arg;
	int twin, i;

	forbid(SYS_kcmp, EPERM);
	reg(a->fd);
	twin = dup(a->fd);
	if (fcntl(a->fd, F_SETFL, O_DIRECT) || lseek(twin, 2, SEEK_SET) != 2 ||
	    dup2(twin, a->fd) != a->fd)
		abort();
	a->err[0] = reg_error(a->fd);
	if (fcntl(a->fd, F_SETFL, 0))
		abort();
	close(twin);
	for (i = 0; i < 3; i++) {
		close(a->fd);
		if (open(path, flags[i]) != a->fd)
			abort();
		a->err[i + 1] = reg_error(a->fd);
	}
	return NULL;
}

void test_number_blind(void)
{
	struct again a;
	pthread_t thread;

	fresh(NULL);
	a.fd = make(path, 0, "abcd", 4);
	mock.no_query = true;
	pthread_create(&thread, NULL, register_again, &a);
	pthread_join(thread, NULL);
	is(a.err[0], 5028, "a duplicate, with other flags and at another position since");
	is(a.err[1], 0, "opened with O_DIRECT: it is registered");
	is(a.err[2], 0, "opened to read: it is");
	is(a.err[3], 0, "opened in the same way, at another position: it is");
	mock.no_query = false;
	close(a.fd);
}

struct held_read {
	int fd, err;
	void *to;
	ssize_t n;
	_Atomic bool asked;
};

static void *read_to_held(void *arg)
{
	struct held_read *h = arg;

	h->n = read(h->fd, h->to, 4);
	return NULL;
}

static void *ask_for_held(void *arg)
{
	struct held_read *h = arg;

	forbid(SYS_kcmp, EPERM);
	reg(h->fd);
	h->err = reg_error(h->fd);
	h->asked = true;
	return NULL;
}

/*
 * A read() holds the position of its descriptor until its memory has a page.  Meanwhile a kernel
 * that does not tell which descriptors are of one open() is asked.
 */
void test_number_read(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register memory = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage page = { 0 };
	int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), i;
	pthread_t reader, other_one;
	struct held_read h = { 0 };
	struct uffd_msg fault;
	struct pollfd p = { .fd = faults, .events = POLLIN };

	if (faults < 0) {
		check(true, "# SKIP no userfaultfd() here that holds up a system call: %s",
		      strerror(errno));
		return;
	}
	fresh(NULL);
	h.fd = make(path, 0, "abcd", 4);
	h.to = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory.range.start = page.range.start = (uintptr_t)h.to;
	memory.range.len = page.range.len = 4096;
	if (h.to == MAP_FAILED || ioctl(faults, UFFDIO_API, &api) ||
	    ioctl(faults, UFFDIO_REGISTER, &memory))
		abort();
	mock.no_query = true;
	pthread_create(&reader, NULL, read_to_held, &h);
	if (poll(&p, 1, 60000) != 1 || read(faults, &fault, sizeof(fault)) != sizeof(fault))
		abort();
	pthread_create(&other_one, NULL, ask_for_held, &h);
	for (i = 0; i < 10000 && !h.asked; i++)
		usleep(1000);
	check(h.asked, "another thread reads the descriptor: nobody waits for it");
	if (ioctl(faults, UFFDIO_ZEROPAGE, &page))
		abort();
	pthread_join(reader, NULL);
	pthread_join(other_one, NULL);
	is(h.n, 4, "that read ends");
	is(h.err, 5028, "the descriptor is known");
	mock.no_query = false;
	munmap(h.to, 4096);
	close(faults);
	close(h.fd);
}

static void *ask_for_moved(void *arg)
{
	int *fd = arg;

	forbid(SYS_kcmp, EPERM);
	reg(*fd);
	mock.moved_fd = *fd;
	is(reg_error(*fd), 5028, "its position moves at each look: the descriptor is known");
	mock.moved_fd = 0;
	if (lseek(*fd, 2, SEEK_SET) != 2)
		abort();
	close(*fd);
	if (open(path, O_RDWR) != *fd)
		abort();
	mock.moved_fd = *fd;
	is(reg_error(*fd), 0, "opened anew, and moved past where the first stands: registered");
	mock.moved_fd = 0;
	return NULL;
}

/* As while another thread reads by the descriptor in short calls */
void test_number_moved(void)
{
	pthread_t thread;
	int fd;

	fresh(NULL);
	fd = make(path, 0, "abcd", 4);
	mock.no_query = true;
	pthread_create(&thread, NULL, ask_for_moved, &fd);
	pthread_join(thread, NULL);
	mock.no_query = false;
	close(fd);
}

/* One and the next are another file's in all threads but one, which has unshared its descriptors */
struct unshared {
	int fd[32];
};

static void *register_alone(void *arg)
{
	struct unshared *u = arg;
	char *g = gpu(4096);
	CUfileHandle_t fh;
	int fd, i;

	if (unshare(CLONE_FILES))
		abort();
	forbid(SYS_kcmp, EPERM);
	for (i = 0; i < 32; i++)
		close(u->fd[i]);
	fd = make(path, 0, "mine", 4);
	is(fd, u->fd[0], "a number that is another file's in the other threads");
	fh = reg(fd);
	is(reg_error(fd), 5028, "is registered");
	is(cuFileRead(fh, g, 4, 0, 0), 4, "and read");
	check(!memcmp(mem(g), "mine", 4), "as this thread's file");
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	return NULL;
}

void test_number_unshared(void)
{
	struct unshared u;
	pthread_t thread;
	int i;

	fresh(NULL);
	u.fd[0] = make(other, 0, "theirs", 6);
	for (i = 1; i < 32; i++) {
		u.fd[i] = open(other, O_RDWR);
		if (lseek(u.fd[i], i, SEEK_SET) != i)
			abort();
	}
	mock.no_query = true;
	pthread_create(&thread, NULL, register_alone, &u);
	pthread_join(thread, NULL);
	mock.no_query = false;
	for (i = 0; i < 32; i++)
		close(u.fd[i]);
	unlink(other);
}

/* A number of the library's leads to another open of the same file: that one stays open */
void test_number_taken(void)
{
	static const int flags[] = { O_RDONLY, O_RDWR | O_APPEND };
	char *g = gpu(KIB(128)), *data = calloc(1, KIB(128));
	struct flock l = { .l_type = F_WRLCK };
	CUfileHandle_t fh;
	unsigned int i;
	int fd, n, own;

	for (i = 0; i < 16; i++) {
		const unsigned int which = i % 8 / 2;

		fresh("{\"properties\":{\"force_compat_mode\":true}}");
		fd = make(path, 0, data, KIB(128));
		fh = reg(fd);
		/* the fourth is what a write looks at, where the kernel tells what is cached */
		warm_file(path, KIB(128));
		is(cuFileWrite(fh, g, KIB(128), 0, 0), KIB(128), "a write");
		may_cool();
		/* and of a handle that has what was kept of one before */
		if (i >= 8) {
			if (fcntl(fd, F_SETLK, &l))
				abort();
			cuFileHandleDeregister(fh);
			fh = reg(fd);
			l.l_type = F_UNLCK;
			if (fcntl(fd, F_SETLK, &l))
				abort();
			l.l_type = F_WRLCK;
		}
		n = number_of(fd, which);
		if (n < 0 && which == 3) {
			check(true, "# SKIP nothing is looked at before a write where cachestat() says "
			      "nothing");
			cuFileHandleDeregister(fh);
			close(fd);
			continue;
		}
		check(which < 3 || (fcntl(n, F_GETFL) & O_ACCMODE) == O_RDONLY, "it has so many");
		own = open(path, flags[i % 2]);
		if (n < 0 || own < 0 || lseek(own, 1, SEEK_SET) != 1 || dup2(own, n) != n)
			abort();
		close(own);
		cuFileHandleDeregister(fh);
		/* the first one is the program's open: only its access tells */
		if (i % 8 != 1)
			is(lseek(n, 0, SEEK_CUR), 1, "it is not closed");
		close(n);
		is(number_of(fd, 0), -1, "what is the library's is");
		close(fd);
	}
	/* all are closed, and one has the duplicate's number with the same access */
	fresh(NULL);
	fd = make(path, 0, "abcd", 4);
	fh = reg(fd);
	n = number_of(fd, 0);
	own = open(path, O_RDWR);
	if (n < 0 || own < 0 || dup2(own, n) != n)
		abort();
	close(own);
	while ((own = number_of(fd, 1)) >= 0)
		close(own);
	cuFileHandleDeregister(fh);
	is(lseek(n, 0, SEEK_CUR), 0, "that of who closed all stays open");
	close(n);
	close(fd);
	gpu_free(g);
	free(data);
}

static CUfileHandle_t shared;
static char *shared_gpu;
static _Atomic bool closed;

static void *read_it(void *arg)
{
	*(ssize_t *)arg = cuFileRead(shared, shared_gpu, 4096, 0, 0);
	pthread_testcancel();
	return NULL;
}

static void *close_it(void *arg)
{
	(void)arg;
	cuFileDriverClose();
	closed = true;
	return NULL;
}

/* A thread is cancelled in the middle of its read */
void test_cancel(void)
{
	pthread_t reader, closer;
	ssize_t result = 0;
	void *end = NULL;
	char data[4096] = "";
	int fd, tries;

	fresh(NULL);
	fd = make(path, 0, data, sizeof(data));
	shared = reg(fd);
	shared_gpu = gpu(4096);
	mock.hold_io = true;
	pthread_create(&reader, NULL, read_it, &result);
	for (tries = 0; tries < 20000 && !mock.in_io; tries++)
		usleep(1000);
	pthread_cancel(reader);
	usleep(50000);
	mock.hold_io = false;
	pthread_join(reader, &end);
	check(end == PTHREAD_CANCELED, "a thread is cancelled during its read");
	is(result, 4096, "which ended before");
	pthread_create(&closer, NULL, close_it, NULL);
	for (tries = 0; tries < 20000 && !closed; tries++)
		usleep(1000);
	if (!check(closed, "the library can be closed")) {
		printf("1..%u\n", checks);
		_exit(1);
	}
	pthread_join(closer, NULL);
	gpu_free(shared_gpu);
	close(fd);
}

/* Pieces of memory, of both kinds, one after the other in the file */
/* Host memory ends before the transfer does: what went is told, then the error */
void test_half_there(void)
{
	char *data = malloc(KIB(8)), *p;
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, KIB(8));
	fd = make(path, 0, data, KIB(8));
	fh = reg(fd);
	p = mmap(NULL, KIB(8), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED || mprotect(p + KIB(4), KIB(4), PROT_NONE))
		abort();
	is(cuFileRead(fh, p, KIB(8), 0, 0), KIB(4),
	   "half of the memory is there: so many bytes are read");
	check(!memcmp(p, data, KIB(4)), "the right ones");
	noise(p, KIB(4));
	is(cuFileWrite(fh, p, KIB(8), 0, 0), KIB(4), "and are written");
	is(cuFileWrite(fh, p, KIB(4), 4096, 4096), -CU_FILE_CUDA_POINTER_INVALID,
	   "the next one meets the error");
	is(cuFileRead(fh, p, KIB(4), 4096, 4096), -CU_FILE_CUDA_POINTER_INVALID,
	   "when it reads, too");
	cuFileHandleDeregister(fh);
	close(fd);
	munmap(p, KIB(8));
	free(data);
}

struct reading {
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
};

static void *read_all(void *arg)
{
	struct reading *r = arg;

	r->result = cuFileRead(r->fh, r->g, MIB(1), 0, 0);
	return NULL;
}

/* A file becomes longer while it is read: no memory behind its end is touched. */
void test_grows(void)
{
	struct reading r = { .g = gpu(MIB(1)) };
	char *data = malloc(KIB(64) + 100);
	pthread_t reader;
	size_t i;
	int fd, end;

	fresh(NULL);
	noise(data, KIB(64) + 100);
	fd = make(path, 0, data, KIB(64));
	end = open(path, O_WRONLY | O_APPEND);
	r.fh = reg(fd);
	memset(mem(r.g), 'm', MIB(1));
	mock.hold_io = true;
	pthread_create(&reader, NULL, read_all, &r);
	AWAIT(mock.in_io == 1);
	is(write(end, data + KIB(64), 100), 100, "a file grows while it is read");
	mock.hold_io = false;
	pthread_join(reader, NULL);
	is(r.result, KIB(64) + 100, "to its new end");
	check(!memcmp(mem(r.g), data, KIB(64) + 100), "the right data");
	for (i = KIB(68); i < MIB(1) && mem(r.g)[i] == 'm'; i++)
		continue;
	is((long long)i, MIB(1), "memory behind its last block is as it was");
	cuFileHandleDeregister(r.fh);
	close(end);
	close(fd);
	gpu_free(r.g);
	free(data);
}

/* What lies behind the end of the file needs no mapping. */
void test_strict_end(void)
{
	const size_t n = MIB(2);
	char *data = malloc(n), *g = (char *)(uintptr_t)mock_two(n);
	CUfileHandle_t fh;
	int fd;

	fresh("{\"peerlane\":{\"strict\":true}}");
	noise(data, n);
	fd = make(path, 0, data, n);
	fh = reg(fd);
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "strict: memory that is mapped");
	mock.handle_error = 801;
	is(cuFileRead(fh, g + n, 4096, 0, 0), -5008, "and memory that cannot be");
	is(cuFileRead(fh, g, 2 * n, 0, 0), (long long)n, "the file ends before that");
	check(!memcmp(mem(g), data, n), "the right data");
	is(cuFileRead(fh, g + n, n, (off_t)n, 0), 0, "nothing is read into it");
	cuFileHandleDeregister(fh);
	close(fd);
	fd = open(path, O_WRONLY);
	fh = reg(fd);
	errno = 0;
	is(cuFileRead(fh, g, 4096, (off_t)n, 0), -1, "a file that is not open to read");
	is(errno, EBADF, "says so at its end, too");
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	gpu_free(g + n);
	free(data);
}

/* ---- direct reads that meet writes into the page cache: the kernel's own EIO ---- */

#define HOLE	MIB(2)

static struct {
	int fd;
	char *map;
	_Atomic size_t at;
	_Atomic bool stop;
} filler;

/* Writes into each page of a hole, as whoever maps a file does, and makes the hole anew */
static void *fill_hole(void *arg)
{
	while (!filler.stop) {
		for (filler.at = 0; filler.at < HOLE && !filler.stop; filler.at += 4096)
			filler.map[filler.at] = 1;
		if (ftruncate(filler.fd, 0) || ftruncate(filler.fd, HOLE))
			abort();
	}
	return arg;
}

/*
 * How often they meet is for the kernel and the file system: a few of a thousand reads on
 * ext4.  None must fail.
 */
void test_real_collisions(void)
{
	unsigned int reads, bad = 0, strange = 0;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	char *g = gpu(MIB(1));
	time_t end = time(NULL) + 10;
	pthread_t thread;
	ssize_t r, i;
	size_t at;

	fresh(NULL);
	filler.fd = make(path, 0, "", 0);
	if (ftruncate(filler.fd, HOLE))
		abort();
	filler.map = mmap(NULL, HOLE, PROT_READ | PROT_WRITE, MAP_SHARED, filler.fd, 0);
	if (filler.map == MAP_FAILED)
		abort();
	filler.stop = false;
	fh = reg(filler.fd);
	pthread_create(&thread, NULL, fill_hole, NULL);
	for (reads = 0, s.fallbacks = 0; s.fallbacks < 3 && reads < 3000 && time(NULL) < end; reads++) {
		at = filler.at < MIB(1) ? filler.at : MIB(1);
		r = cuFileRead(fh, g, MIB(1), (off_t)at, 0);
		bad += r < 0;
		for (i = 0; i < r; i++)
			strange += mem(g)[i] & (i % 4096 ? 0xff : 0xfe);
		s = stats_of(fh);
	}
	filler.stop = true;
	pthread_join(thread, NULL);
	is(bad, 0, "reads beside writes into a mapping of a file with a hole");
	is(strange, 0, "no byte is of another place");
	printf("# %u reads, of which %llu were staged: %s\n", reads,
	       (unsigned long long)s.fallbacks, s.fallbacks ? s.reason : "none");
	munmap(filler.map, HOLE);
	cuFileHandleDeregister(fh);
	close(filler.fd);
	gpu_free(g);
}

void test_vectors(void)
{
	char *data = malloc(MIB(1)), *got = malloc(MIB(1)), *g, *host = malloc(KIB(64));
	CUfileIOVec_t v[4], one;
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, MIB(1));
	fd = make(path, 0, data, MIB(1));
	fh = reg(fd);
	g = gpu(KIB(512));
	v[0] = (CUfileIOVec_t){ g + KIB(256), KIB(128) };
	v[1] = (CUfileIOVec_t){ NULL, 0 };
	v[2] = (CUfileIOVec_t){ host, 1001 };
	v[3] = (CUfileIOVec_t){ g, KIB(64) };
	is(cuFileReadv(fh, v, 4, 8192, 0), KIB(192) + 1001, "pieces are read");
	check(!memcmp(mem(g) + KIB(256), data + 8192, KIB(128)) &&
	      !memcmp(host, data + 8192 + KIB(128), 1001) &&
	      !memcmp(mem(g), data + 8192 + KIB(128) + 1001, KIB(64)),
	      "each from its place");
	check(stats_of(fh).path[PLN_PATH_P2P].bytes_read >= KIB(128) &&
	      stats_of(fh).path[PLN_PATH_POSIX].bytes_read == 1001,
	      "by the path that is right for it");
	noise(mem(g), KIB(512));
	noise(host, 1001);
	is(cuFileWritev(fh, v, 4, 4096, 0), KIB(192) + 1001, "and written");
	is(pread(fd, got, KIB(192) + 1001, 4096), KIB(192) + 1001, "the file");
	check(!memcmp(got, mem(g) + KIB(256), KIB(128)) &&
	      !memcmp(got + KIB(128), host, 1001) &&
	      !memcmp(got + KIB(128) + 1001, mem(g), KIB(64)), "has them");
	is(cuFileReadv(fh, v, 4, MIB(1) - KIB(128) - 77, 0), KIB(128) + 77,
	   "the file ends within a piece");
	is(cuFileReadv(fh, v, 0, 0, 0), 0, "no pieces");
	is(cuFileReadv(fh, NULL, 0, 0, 0), 0, "and nowhere");
	is(cuFileReadv(fh, v + 1, 1, 0, 0), 0, "one of nothing");

	memset(mem(g), 0, KIB(512));
	is(cuFileReadv(fh, NULL, 1, 0, 0), -5022, "a piece nowhere");
	is(errno, 5022, "the code is in errno, too");
	is(cuFileReadv(fh, v, 4, -1, 0), -5022, "a negative offset");
	is(cuFileReadv(fh, v, 4, 0, 1), -5022, "a flag");
	v[1].len = 1;
	is(cuFileReadv(fh, v, 4, 0, 0), -5022, "one without memory");
	v[1] = (CUfileIOVec_t){ host, INT64_MAX };
	is(cuFileReadv(fh, v, 4, 0, 0), -5022, "more than a file can have");
	is(mem(g)[KIB(256)], 0, "of a call that is wrong nothing is moved");
	is(cuFileReadv((void *)4, v, 4, 0, 0), -5027, "no such file");
	v[1] = (CUfileIOVec_t){ g + KIB(512), 4096 };
	is(cuFileReadv(fh, v, 4, 0, 0), KIB(128), "what went before a failure");
	is(cuFileReadv(fh, v + 1, 3, 0, 0), stats_of(fh).last_error,
	   "the next call meets it");
	mock.media_errno = EIO;
	mock.bad_to = 4096;
	one = (CUfileIOVec_t){ g, 4096 };
	is(cuFileReadv(fh, &one, 1, 0, 0), -1, "an error of the system");
	is(errno, EIO, "with its errno");
	mock.bad_to = 0;
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	is(cuFileReadv(fh, &one, 1, 0, 0), -5001, "closed");
	cuFileDriverOpen();
	close(fd);
	gpu_free(g);
	free(data);
	free(got);
	free(host);
}

enum huge_way { CALL, VECTOR, BATCH, STREAM, HUGE_WAYS };

/* Bytes, or what it says instead */
static long long huge(enum huge_way way, bool write, CUfileHandle_t fh, char *base, size_t n)
{
	CUfileIOVec_t v[2] = { { base, n - MIB(4) }, { base + n - MIB(4), MIB(4) } };
	CUfileIOParams_t p = {
		.mode = CUFILE_BATCH, .fh = fh, .opcode = write ? CUFILE_WRITE : CUFILE_READ,
		.u.batch = { base, 0, 0, n },
	};
	off_t zero = 0;
	unsigned int one = 1;
	CUfileBatchHandle_t b;
	CUfileIOEvents_t e = { 0 };
	ssize_t r = -9;

	switch (way) {
	case VECTOR:
		return write ? cuFileWritev(fh, v, 2, 0, 0) : cuFileReadv(fh, v, 2, 0, 0);
	case BATCH:
		if (cuFileBatchIOSetUp(&b, 1).err || cuFileBatchIOSubmit(b, 1, &p, 0).err ||
		    cuFileBatchIOGetStatus(b, 1, &one, &e, NULL).err)
			return -9;
		cuFileBatchIODestroy(b);
		return (long long)e.ret;
	case STREAM:
		if (write ? cuFileWriteAsync(fh, base, &n, &zero, &zero, &r, NULL).err :
			    cuFileReadAsync(fh, base, &n, &zero, &zero, &r, NULL).err)
			return -9;
		mock_settle();
		return r;
	default:
		return write ? cuFileWrite(fh, base, n, 0, 0) : cuFileRead(fh, base, n, 0, 0);
	}
}

/* More bytes in one call than 32 bits can tell.  The mock moves none of them. */
void test_huge(void)
{
	static const struct {
		const char *json;
		enum pln_path path;
	} by[] = {
		{ NULL, PLN_PATH_P2P },
		{ "{\"properties\":{\"force_compat_mode\":true}}", PLN_PATH_BOUNCE },
		{ NULL, PLN_PATH_POSIX },
	};
	static const char *const ways[] = { "a call", "a vector", "a batch", "a stream" };
	const size_t n = ((size_t)1 << 32) + MIB(5);
	char *g = gpu(n), *host, *base, what[80];
	struct pln_file_stats s;
	uint64_t moved, count;
	CUfileHandle_t fh;
	unsigned int i, way;
	bool write;
	int fd;

	fd = make(path, 0, "", 0);
	host = mmap(NULL, n, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ftruncate(fd, (off_t)n) || host == MAP_FAILED)
		abort();
	for (i = 0; i < 3; i++)
		for (way = 0; way < 2 * HUGE_WAYS; way++) {
			write = way % 2;
			fresh(by[i].json);
			fh = reg(fd);
			base = by[i].path == PLN_PATH_POSIX ? host : g;
			mock.pretend = (uintptr_t)base;
			snprintf(what, sizeof(what), "4 GiB and more by %s, %s that %s",
				 pln_path_name(by[i].path), ways[way / 2],
				 write ? "writes" : "reads");
			is(huge((enum huge_way)(way / 2), write, fh, base, n), (long long)n, what);
			s = stats_of(fh);
			moved = write ? s.path[by[i].path].bytes_written :
					s.path[by[i].path].bytes_read;
			count = by[i].path == PLN_PATH_BOUNCE ? n : 0;
			check(moved == n && mock.pretended == n && !mock.astray &&
			      mock.pretended_copies == count,
			      "each piece in its place: %llu of %llu in file IO, %llu in copies, %llu astray",
			      (unsigned long long)moved, (unsigned long long)mock.pretended,
			      (unsigned long long)mock.pretended_copies,
			      (unsigned long long)mock.astray);
		}
	fresh(NULL);
	if (ftruncate(fd, 0))
		abort();
	close(fd);
	munmap(host, n);
	gpu_free(g);
}

/* ---- the statistics of 1.19, by its members as cuda-python has them ---- */

struct l1_1_19 {
	CUfileStatsLevel1_t until_1_18;
	CUfileOpCounter_t readv_ops, writev_ops;
	uint64_t readv_bytes, writev_bytes, readv_bw_bytes_per_sec, writev_bw_bytes_per_sec,
		 readv_lat_avg_us, writev_lat_avg_us, readv_ops_per_sec, writev_ops_per_sec,
		 readv_lat_sum_us, writev_lat_sum_us;
};

struct l2_1_19 {
	struct l1_1_19 basic;
	uint64_t read_size_kb_hist[32], write_size_kb_hist[32];
};

/* What the library has written of @size bytes, which all were 0x5a; as all after them */
static void until(const void *p, size_t size, size_t most, const char *what)
{
	const unsigned char *c = p;
	size_t end = most;

	while (end && c[end - 1] == 0x5a)
		end--;
	is((long long)end, (long long)size, what);
}

void test_vector_counts(void)
{
	static union {
		CUfileStatsLevel1_t l1;
		CUfileStatsLevel2_t l2;
		CUfileStatsLevel3_t l3;
		struct l1_1_19 n1;
		struct l2_1_19 n2;
		struct {
			struct l2_1_19 detailed;
			uint32_t num_gpus;
			CUfilePerGpuStats_t per_gpu_stats[16];
		} n3;
		char all[32768];
	} s;
	char *data = calloc(1, MIB(1)), *g = gpu(KIB(512));
	CUfileIOVec_t v[2] = { { g, KIB(64) }, { g + KIB(64), 8192 } };
	int fd = make(path, 0, data, MIB(1)), newer;
	CUfileHandle_t fh;

	for (newer = 0; newer < 2; newer++) {
		fresh(newer ? "{\"profile\":{\"cufile_stats\":3},\"peerlane\":{\"stats_1_19\":true}}" :
			      "{\"profile\":{\"cufile_stats\":3}}");
		fh = reg(fd);
		mock.slow_ms = 2;	/* so that it takes some time */
		is(cuFileRead(fh, g, 4096, 0, 0), 4096, newer ? "as of 1.19: a read" : "a read");
		is(cuFileReadv(fh, v, 2, 0, 0), KIB(72), "pieces are read");
		is(cuFileReadv(fh, v, 2, 0, 0), KIB(72), "twice");
		is(cuFileWritev(fh, v + 1, 1, 0, 0), 8192, "and written");
		mock.media_errno = EIO;
		mock.bad_to = 4096;
		is(cuFileWritev(fh, v, 2, 0, 0), -1, "badly");
		mock.media_errno = 0;
		memset(&s, 0x5a, sizeof(s));
		is(cuFileGetStatsL1((CUfileStatsLevel1_t *)&s).err, 0, "level 1");
		until(&s, newer ? sizeof(s.n1) : sizeof(s.l1), sizeof(s), "has its size");
		is((long long)s.l1.read_ops.ok, newer ? 1 : 5, "reads");
		is((long long)s.l1.read_bytes, newer ? 4096 : 4096 + KIB(144), "their bytes");
		is((long long)s.l1.write_ops.ok, newer ? 0 : 1, "writes");
		is((long long)s.l1.write_ops.err, newer ? 0 : 1, "and bad ones");
		if (newer) {
			is((long long)s.n1.readv_ops.ok, 2, "vectors that were read");
			is((long long)s.n1.readv_ops.err, 0, "all of them well");
			is((long long)s.n1.writev_ops.ok, 1, "that were written");
			is((long long)s.n1.writev_ops.err, 1, "and that were not");
			is((long long)s.n1.readv_bytes, KIB(144), "bytes read");
			is((long long)s.n1.writev_bytes, 8192, "bytes written");
			check(s.n1.readv_lat_sum_us >= 8000 && s.n1.writev_lat_sum_us >= 2000,
			      "times: %llu and %llu us", (unsigned long long)s.n1.readv_lat_sum_us,
			      (unsigned long long)s.n1.writev_lat_sum_us);
			is((long long)s.n1.readv_lat_avg_us, (long long)s.n1.readv_lat_sum_us / 2, "average");
			is((long long)s.n1.writev_lat_avg_us, (long long)s.n1.writev_lat_sum_us, "of one");
			check(s.n1.readv_bw_bytes_per_sec > s.n1.writev_bw_bytes_per_sec &&
			      s.n1.writev_bw_bytes_per_sec, "rates");
			check(s.n1.readv_ops_per_sec >= s.n1.writev_ops_per_sec, "of both");
		}
		memset(&s, 0x5a, sizeof(s));
		is(cuFileGetStatsL2((CUfileStatsLevel2_t *)&s).err, 0, "level 2");
		until(&s, newer ? sizeof(s.n2) : sizeof(s.l2), sizeof(s), "has its size");
		is((long long)(newer ? s.n2.read_size_kb_hist[2] : s.l2.read_size_kb_hist[2]), 2,
		   "two pieces of 8 KiB");
		is((long long)(newer ? s.n2.write_size_kb_hist[2] : s.l2.write_size_kb_hist[2]), 1,
		   "and one written");
		memset(&s, 0x5a, sizeof(s));
		is(cuFileGetStatsL3((CUfileStatsLevel3_t *)&s).err, 0, "level 3");
		until(&s, newer ? sizeof(s.n3) : sizeof(s.l3), sizeof(s), "has its size");
		is(newer ? s.n3.num_gpus : s.l3.num_gpus, 1, "one GPU");
		is((long long)(newer ? s.n3.per_gpu_stats[0].read_bytes : s.l3.per_gpu_stats[0].read_bytes),
		   4096 + KIB(144), "which has read all of it");
		is((long long)(newer ? s.n3.detailed.basic.readv_ops.ok : s.l3.detailed.basic.read_ops.ok),
		   newer ? 2 : 5, "and level 1 is in it");
		is((long long)(newer ? s.n3.detailed.read_size_kb_hist[2] :
				       s.l3.detailed.read_size_kb_hist[2]), 2, "and level 2");
		cuFileHandleDeregister(fh);
	}
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}
