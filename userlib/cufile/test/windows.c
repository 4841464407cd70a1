// SPDX-License-Identifier: MIT
/* Windows: which there are, for how long, and who waits for them. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

/* Small memory in a page of the GPU where what lay before it was freed */
void test_beside_freed(void)
{
	char *data = malloc(3 * 4096), *g;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, 3 * 4096);
	fd = make(path, 0, data, 3 * 4096);
	fh = reg(fd);
	mock.start_at = 5 * 4096;
	g = gpu(3 * 4096);
	mock.start_at = 0;
	is(cuFileRead(fh, g, 3 * 4096, 0, 0), 3 * 4096, "a read into small memory");
	s = stats_of(fh);
	is((long long)s.path[PLN_PATH_P2P].bytes_read, 3 * 4096, "is p2p");
	check(!memcmp(mem(g), data, 3 * 4096), "and right");
	is((long long)stats_of(NULL).window_bytes, KIB(64),
	   "which takes a page of the GPU");
	is(mock.bar1_used, KIB(64), "BAR1 agrees");
	is(cuFileWrite(fh, g, 4096, 0, 2 * 4096), 4096, "a part is written");
	is(pread(fd, data, 4096, 0), 4096, "and read");
	check(!memcmp(data, mem(g) + 2 * 4096, 4096), "which is right");
	cuFileHandleDeregister(fh);
	close(fd);
	gpu_free(g);
	free(data);
}

struct both {
	CUfileHandle_t fh;
	char *g;
	size_t n;
	ssize_t r;
};

static void *read_both(void *arg)
{
	struct both *b = arg;

	b->r = cuFileRead(b->fh, b->g, b->n, 0, 0);
	return NULL;
}

/* Into two memories side by side; while the first is read the second becomes another GPU's. */
void test_next_gpu(void)
{
	const size_t n = MIB(1);
	struct both b = { .g = (char *)(uintptr_t)mock_two(n), .n = 2 * n };
	char *data = calloc(1, 2 * n);
	pthread_t thread;
	int fd;

	fresh(NULL);
	fd = make(path, 0, data, 2 * n);
	b.fh = reg(fd);
	mock.hold_io = true;
	pthread_create(&thread, NULL, read_both, &b);
	AWAIT(mock.in_io == 1);
	mock_swap((uintptr_t)b.g);
	mock.next_gpu = (uintptr_t)b.g + n;
	mock.hold_io = false;
	pthread_join(thread, NULL);
	is(b.r, -CU_FILE_CUDA_POINTER_INVALID, "a transfer into memory that is another GPU's by then");
	check(strstr(stats_of(b.fh).reason, "was freed during the transfer"), "why: %s",
	      stats_of(b.fh).reason);
	is((long long)mock.p2p_calls, 1, "that memory is left alone");
	mock.next_gpu = 0;
	cuFileHandleDeregister(b.fh);
	close(fd);
	gpu_free(b.g);
	gpu_free(b.g + n);
	free(data);
}

/* The most that may be mapped is of what small windows take of BAR1, which is more */
void test_small_limit(void)
{
	char data[4096], *g[3];
	unsigned long long evictions;
	CUfileHandle_t fh;
	int fd, i;

	fresh("{\"properties\":{\"max_device_pinned_mem_size_kb\":128}}");
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	evictions = stats_of(NULL).window_evictions;
	for (i = 0; i < 3; i++) {
		g[i] = gpu(4096);
		is(cuFileRead(fh, g[i], 4096, 0, 0), 4096, "a read into small memory");
	}
	is((long long)(stats_of(NULL).window_evictions - evictions), 1,
	   "a window was given up");
	is((long long)stats_of(NULL).windows, 2, "there are as many as may be");
	is(mock.bar1_used, KIB(128), "in BAR1, too");
	for (i = 0; i < 3; i++)
		gpu_free(g[i]);
	close(fd);
}

/*
 * Blocks of 16 KiB, a page behind where the windows of 64 KiB begin: the last 12 KiB of
 * each window are no block.  What lies in two windows is staged, or goes by way of the
 * library's own GPU memory.
 */
void test_seams(void)
{
	const size_t n = KIB(128), block = KIB(16), seams = 2 * block;
	char *data = malloc(n), *g, *m;
	struct pln_file_stats s;
	CUfileHandle_t fh;
	int fd, strict;

	noise(data, n);
	for (strict = 0; strict < 2; strict++) {
		fresh(strict ? "{\"peerlane\":{\"window_size_kb\":64,\"strict\":true}}" :
			       "{\"peerlane\":{\"window_size_kb\":64}}");
		fd = make(path, 0, data, n);
		mock.dio_align = (uint32_t)block;
		fh = reg(fd);
		g = gpu(n + KIB(64));
		m = mem(g) + 4096;
		is(cuFileRead(fh, g, n, 0, 4096), (long long)n,
		   strict ? "strict: a read across windows" : "a read across windows");
		check(!memcmp(m, data, n), "the right data");
		is((long long)mock.host_bytes, strict ? 0 : (long long)seams,
		   "as much is in host memory");
		is((long long)mock.within, strict ? (long long)seams : 0,
		   "as much is copied within the GPU");
		s = stats_of(fh);
		is((long long)s.path[PLN_PATH_P2P].bytes_read,
		   (long long)(strict ? n : n - seams), "the rest is p2p");
		is((long long)s.path[PLN_PATH_BOUNCE].bytes_read,
		   (long long)(strict ? 0 : seams), "staged are two blocks");
		if (!strict)
			check(strstr(s.reason, "a block is in two mappings") != NULL,
			      "for this reason: %s", s.reason);
		noise(m, n);
		is(cuFileWrite(fh, g, n, 0, 4096), (long long)n, "a write across them");
		is(pread(fd, data, n, 0), (long long)n, "is read");
		check(!memcmp(m, data, n), "the right data");
		mock.host_bytes = 0;
		is(cuFileRead(fh, g, n, 0, 0), (long long)n, "where blocks end with windows");
		is((long long)mock.host_bytes, 0, "nothing is");
		cuFileHandleDeregister(fh);
		close(fd);
		gpu_free(g);
	}
	fresh(NULL);
	free(data);
}

/* Memory that is freed and not allocated again at the same address */
void test_many_windows(void)
{
	enum { LIVE = 24, TURNS = 300 };
	char data[8192], *live[LIVE], *g;
	unsigned int i, bad = 0, most = 0;
	CUfileHandle_t fh;
	int fd;

	fresh("{\"peerlane\":{\"window_size_kb\":64}}");
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	mock.no_revoke = true;
	for (i = 0; i < LIVE; i++) {
		live[i] = gpu(KIB(64));
		if (cuFileRead(fh, live[i], 8192, 0, 0) != 8192)
			bad++;
	}
	for (i = 0; i < TURNS; i++) {
		/* each of another size, so each at another address */
		g = gpu(MIB(1) + (i + 1) * KIB(64));
		if (cuFileRead(fh, g, 8192, 0, 0) != 8192 ||
		    memcmp(mem(g), data, 8192))
			bad++;
		gpu_free(g);
		if (stats_of(NULL).windows > most)
			most = (unsigned int)stats_of(NULL).windows;
	}
	is(bad, 0, "300 times memory is allocated, read into and freed");
	check(most <= 2 * LIVE, "of which few windows stay: %u at most, with "
	      "%u of memory that is there", most, LIVE);
	is(mock.bar1_used, (int64_t)stats_of(NULL).window_bytes,
	   "BAR1 agrees");
	i = (unsigned int)mock.maps;
	for (bad = 0; bad < LIVE; bad++)
		cuFileRead(fh, live[bad], 8192, 0, 0);
	is((long long)mock.maps, i, "and those are all still mapped");
	/* next to each other, large and small, some deregistered between */
	fresh("{\"peerlane\":{\"window_size_kb\":1024}}");
	fh = reg(fd);
	g = gpu(MIB(8));
	bad = 0;
	for (i = 0; i < 2000; i++) {
		size_t at = rnd() % (MIB(8) - 8192) / 512 * 512;

		mock.bar1_size = rnd() % 4 ? MIB(3) : KIB(192);
		memset(mem(g) + at, 0, 8192);
		if (cuFileRead(fh, g, 8192, 0, (off_t)at) != 8192 ||
		    memcmp(mem(g) + at, data, 8192))
			bad++;
		if (!(rnd() % 50) && (cuFileBufRegister(g + at, 8192, 0).err ||
				      cuFileBufDeregister(g + at).err))
			bad++;
	}
	is(bad, 0, "2000 reads into windows that come, go and shrink");
	gpu_free(g);
	for (i = 0; i < LIVE; i++)
		gpu_free(live[i]);
	close(fd);
}

/* Memory that is freed while no other window is made */
void test_freed_windows(void)
{
	CUfileHandle_t fh;
	char data[4096], *g[3];
	int fd, i;

	fresh(NULL);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	close(make(other, 0, data, sizeof(data)));
	fh = reg(fd);
	mock.no_revoke = true;
	mock_stop_clock();
	mock.later += 1000000;	/* since another test, which may have been ahead, too */
	for (i = 0; i < 3; i++) {
		g[i] = gpu(MIB(1) + (size_t)i * KIB(64));
		is(cuFileRead(fh, g[i], 4096, 0, 0), 4096, "a read");
	}
	is((long long)stats_of(NULL).windows, 3, "three windows");
	gpu_free(g[0]);
	is(cuFileRead(fh, g[1], 4096, 0, 0), 4096, "memory is freed; at once, a read");
	is((long long)stats_of(NULL).windows, 3, "does not look for that");
	mock.later++;
	is(cuFileRead(fh, g[1], 4096, 0, 0), 4096, "a second later, a read");
	is((long long)stats_of(NULL).windows, 2, "drops its window");

	gpu_free(g[1]);
	is(reg_error(open(other, O_RDWR)), 0, "memory is freed, a handle deregistered");
	is((long long)stats_of(NULL).windows, 1, "that does, too");

	g[1] = gpu(MIB(2));
	is(cuFileRead(fh, g[1], 4096, 0, 0), 4096, "a read");
	gpu_free(g[1]);
	is(cuFileBufRegister(g[2], 4096, 0).err, 0, "a buffer is registered");
	is(cuFileBufDeregister(g[2]).err, 0, "memory is freed, the buffer deregistered");
	is((long long)stats_of(NULL).windows, 0, "which drops the windows of both");
	is(mock.bar1_used, 0, "BAR1 agrees");
	is(cuFileRead(fh, g[2], 4096, 0, 0), 4096, "what is there is read");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	gpu_free(g[2]);
	close(fd);
	fresh(NULL);
}

/* Memory that is registered has windows before any transfer, if there is room */
void test_registered_windows(void)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *g = gpu(n), *h = gpu(MIB(1)), *b;
	unsigned long long maps;
	CUfileHandle_t fh;
	uint64_t asked;
	int fd;

	fresh(NULL);
	noise(data, n);
	fd = make(path, 0, data, n);
	fh = reg(fd);
	is(cuFileBufRegister(g, n, 0).err, 0, "40 MiB are registered");
	is((long long)stats_of(NULL).windows, 3, "three windows of 16 MiB have them");
	is((long long)stats_of(NULL).window_bytes, (long long)n, "each byte in one");
	maps = stats_of(NULL).window_maps;
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "a read");
	check(!memcmp(mem(g), data, n), "of the right data");
	is((long long)(stats_of(NULL).window_maps - maps), 0, "finds them");
	is(cuFileBufDeregister(g).err, 0, "deregistered");
	is((long long)stats_of(NULL).windows, 0, "there is none");

	b = gpu(MIB(100));
	is(cuFileBufRegister(b, MIB(100), 0).err, 0, "100 MiB are registered");
	is((long long)stats_of(NULL).window_bytes, MIB(64), "64 of them are mapped");
	is(cuFileBufDeregister(b).err, 0, "deregistered");
	gpu_free(b);

	/* nobody's window goes for memory of which nobody knows whether it is used */
	is(cuFileRead(fh, h, MIB(1), 0, 0), MIB(1), "other memory");
	mock.bar1_size = MIB(20);
	maps = stats_of(NULL).window_evictions + stats_of(NULL).window_nospace;
	is(cuFileBufRegister(g, n, 0).err, 0, "40 MiB are registered, with 20 of BAR1");
	is((long long)stats_of(NULL).windows, 2, "what there is room for has one");
	is((long long)(stats_of(NULL).window_evictions + stats_of(NULL).window_nospace - maps), 0,
	   "and none was given up");
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "a read of all");
	is((long long)stats_of(fh).path[PLN_PATH_P2P].bytes_read, (long long)(2 * n + MIB(1)),
	   "goes p2p");

	/* the reason is kept */
	fresh(NULL);
	fh = reg(fd);
	mock.handle_error = 801;
	asked = mock.handles;
	is(cuFileBufRegister(g, n, 0).err, 0, "memory that cannot be mapped is registered");
	is((long long)(mock.handles - asked), 1, "it was asked for");
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "a read");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is staged");
	check(strstr(stats_of(fh).reason, "no dma-buf of this GPU memory"), "why: %s",
	      stats_of(fh).reason);
	is((long long)(mock.handles - asked), 1, "and nobody was asked again");

	fresh("{\"properties\":{\"force_compat_mode\":true}}");
	asked = mock.handles;
	is(cuFileBufRegister(g, n, 0).err, 0, "without p2p: registered");
	is((long long)(mock.handles - asked), 0, "nobody is asked");
	gpu_free(g);
	gpu_free(h);
	close(fd);
	free(data);
	fresh(NULL);
}

struct one {
	CUfileHandle_t fh;
	char *g;
	ssize_t result;
	_Atomic bool done;
};

static void *read_one(void *arg)
{
	struct one *o = arg;

	o->result = cuFileRead(o->fh, o->g, 4096, 0, 0);
	o->done = true;
	return NULL;
}

/* Whose memory is mapped does not wait while other memory is being mapped */
void test_map_apart(void)
{
	struct one old = { 0 }, new = { 0 };
	pthread_t mapping, mapped;
	char data[4096];
	int fd, tries;

	fresh(NULL);
	fd = make(path, 0, data, sizeof(data));
	old.fh = new.fh = reg(fd);
	old.g = gpu(4096);
	new.g = gpu(4096);
	is(cuFileRead(old.fh, old.g, 4096, 0, 0), 4096, "a window is made");
	mock.hold_map = true;
	pthread_create(&mapping, NULL, read_one, &new);
	for (tries = 0; tries < 5000 && !mock.in_map; tries++)
		usleep(1000);
	pthread_create(&mapped, NULL, read_one, &old);
	for (tries = 0; tries < 5000 && !old.done; tries++)
		usleep(1000);
	check(old.done && !new.done,
	      "while another one is made, the first is in use");
	mock.hold_map = false;
	pthread_join(mapping, NULL);
	pthread_join(mapped, NULL);
	is(old.result, 4096, "that read is done");
	is(new.result, 4096, "and so is the other");
	gpu_free(old.g);
	gpu_free(new.g);
	close(fd);
}

/* A driver that does not tell one memory from another at the same address */
void test_no_id(void)
{
	char data[8192], *g, *again;
	CUfileHandle_t fh;
	int fd, i;

	fresh(NULL);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	mock.no_id = true;
	mock.no_revoke = true;
	g = gpu(MIB(1));
	is(cuFileRead(fh, g, 8192, 0, 0), 8192, "no buffer id: a read");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	gpu_free(g);
	again = gpu(MIB(1));
	check(again == g, "other memory gets the address");
	memset(mem(again), 0, 8192);
	is(cuFileRead(fh, again, 8192, 0, 0), 8192, "a read into it");
	check(!memcmp(mem(again), data, 8192), "and the data is there");
	for (i = 0; i < 100; i++)
		cuFileRead(fh, again, 8192, 0, 0);
	is((long long)stats_of(NULL).windows, 0, "no window is kept");
	is(mock.bar1_used, 0, "BAR1 agrees");
	gpu_free(again);
	close(fd);
}

/* : how often it is asked for, in windows of 16 MiB */
static void no_dmabuf(int cuda, int mmap_errno, int turns)
{
	const size_t n = MIB(40);
	char *data = malloc(n), *bad, *good, *again;
	unsigned long long asked;
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	noise(data, n);
	fd = make(path, 0, data, n);
	fh = reg(fd);
	bad = gpu(n);
	good = gpu(2 * n);
	mock.handle_error = cuda;
	mock.mmap_errno = mmap_errno;
	asked = mock.handles;
	is(cuFileRead(fh, bad, n, 0, 0), (long long)n,
	   "memory that cannot be mapped: read");
	check(!memcmp(mem(bad), data, n), "the right data");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "which was staged");
	is((long long)(mock.handles - asked), turns, "asked for no more than needed");
	mock.handle_error = 0;
	mock.mmap_errno = 0;
	asked = mock.handles;
	is(cuFileRead(fh, bad, n, 0, 0), (long long)n, "again");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "staged");
	is((long long)(mock.handles - asked), 0,
	   "and CUDA is not asked again, for any part of it");
	check(stats_of(fh).reason[0], "why: %s", stats_of(fh).reason);
	is((long long)stats_of(NULL).windows, 0, "there is no window");
	is(cuFileRead(fh, good, n, 0, 0), (long long)n, "other memory");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p all the same");
	gpu_free(bad);
	again = gpu(n);
	check(again == bad, "new memory at the address of the bad one");
	is(cuFileRead(fh, again, n, 0, 0), (long long)n, "is read into");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "by p2p");
	gpu_free(again);
	gpu_free(good);
	close(fd);
	free(data);
}

/* What is wrong with one memory says nothing about the GPU's other memory */
void test_no_dmabuf(void)
{
	no_dmabuf(801, 0, 1);
	no_dmabuf(0, 19, 1);	/* ENODEV */
	/* as of a pool: it may be for what lies beside it, so each part is asked for */
	no_dmabuf(1, 0, 3);
}
