// SPDX-License-Identifier: MIT
/*
 * The cache path on a GPU, emulated or real: a reader that keeps registrations of
 * a cached file, and processes that change it.
 *
 *	cufile-page-cache DIR ROUNDS
 *
 * On the emulated GPU a registration holds no pages, only a copy under way does; a
 * real one holds those of its moment, and there an old byte could show.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/cuda.h"
#include "../cufile.h"
#include "noise.h"
#include "writers.h"
#include <peerlane/file.h>

/* no piece of a read has less than 64 KiB, which is staged */
#define SIZE	(((size_t)6 << 20) + 66770)
#define ROOM	((size_t)8 << 20)

#define CUDA(X) \
	X(Init, cuInit) \
	X(DeviceGet, cuDeviceGet) \
	X(PrimaryRetain, cuDevicePrimaryCtxRetain) \
	X(SetCurrent, cuCtxSetCurrent) \
	X(Alloc, cuMemAlloc_v2) \
	X(DtoH, cuMemcpyDtoH_v2)

static struct {
#define X(name, symbol) __typeof__(symbol) *name;
	CUDA(X)
#undef X
} gpu;

struct order {
	int way;
	uint64_t seed;
};

static unsigned int checks, failed;
static char path[512], other[512];
static char *old, *new, *back;
static CUdeviceptr g;

static bool check(bool good, const char *what, double value)
{
	checks++;
	failed += !good;
	printf("%sok %u - %s: %g\n", good ? "" : "not ", checks, what, value);
	fflush(stdout);
	return good;
}

static bool setup_gpu(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *ctx;
	CUdevice dev;

	if (!lib)
		return false;
#define X(name, symbol) \
	*(void **)&gpu.name = dlsym(lib, #symbol); \
	if (!gpu.name) \
		return false;
	CUDA(X)
#undef X
	return !gpu.Init(0) && !gpu.DeviceGet(&dev, 0) &&
	       !gpu.PrimaryRetain((CUcontext *)&ctx, dev) &&
	       !gpu.SetCurrent(ctx) && !gpu.Alloc(&g, ROOM);
}

/* The file anew, and in the page cache */
static CUfileHandle_t a_file(int *fd)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh = NULL;

	unlink(path);
	*fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (*fd < 0 || write(*fd, old, SIZE) != (ssize_t)SIZE)
		exit(2);
	close(*fd);
	*fd = open(path, O_RDONLY);
	d.handle.fd = *fd;
	if (*fd < 0 || cuFileHandleRegister(&fh, &d).err)
		exit(2);
	return fh;
}

static struct pln_file_stats stats(CUfileHandle_t fh)
{
	struct pln_file_stats s = { .size = sizeof(s) };

	if (pln_file_stats(fh, &s))
		exit(2);
	return s;
}

/* Reads as much as there is, at once or by pieces; is it @want? */
static bool reads(CUfileHandle_t fh, const char *want, size_t size, size_t piece)
{
	size_t at;

	for (at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		if (cuFileRead(fh, (void *)(uintptr_t)g, piece, (off_t)at,
			       (off_t)at) != (ssize_t)n)
			return false;
	}
	return !gpu.DtoH(back, g, size) && !memcmp(back, want, size);
}

/* A process that has no CUDA: changes the file when it is told how */
static void write_when_told(int in, int out)
{
	struct order o;
	double took;

	while (read(in, &o, sizeof(o)) == sizeof(o)) {
		noise(new, ROOM, o.seed);
		took = write_as(o.way, path, other, new, SIZE);
		if (write(out, &took, sizeof(took)) < 0)
			break;
	}
	_exit(0);
}

/* Reads the file, says so, and waits for its end */
static void hold(int out)
{
	CUfileHandle_t fh;
	char c;
	int fd;

	if (!setup_gpu())
		_exit(1);
	fh = a_file(&fd);
	reads(fh, old, SIZE, ROOM);
	c = stats(NULL).leases == 1 && stats(NULL).cache_windows > 0;
	if (write(out, &c, 1) < 0)
		_exit(1);
	for (;;)
		pause();
}

static void test_killed(void)
{
	int pipes[2], fd;
	pid_t reader;
	char c = 0;

	if (pipe(pipes))
		exit(2);
	reader = fork();
	if (!reader)
		hold(pipes[1]);
	close(pipes[1]);
	if (read(pipes[0], &c, 1) < 0)
		c = 0;
	check(c, "a process has a lease and registrations", c);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	fd = open(path, O_WRONLY | O_NONBLOCK);
	check(fd >= 0, "it is killed, and a writer need not wait", fd);
	close(fd);
	close(pipes[0]);
}

int main(int argc, char **argv)
{
	int to[2], from[2], round, rounds, fd, stale = 0, kept = 0, late = 0;
	CUfileHandle_t fh;
	double took, most = 0;
	uint64_t broken;

	rounds = argc == 3 ? atoi(argv[2]) : 0;
	if (rounds < 1) {
		fprintf(stderr, "usage: cufile-page-cache DIR ROUNDS\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/cached", argv[1]);
	snprintf(other, sizeof(other), "%s/cached.other", argv[1]);
	setenv("CUFILE_FORCE_COMPAT_MODE", "1", 1);
	setenv("PEERLANE_PAGE_CACHE", "1", 1);
	old = malloc(ROOM);
	new = malloc(ROOM);
	back = malloc(ROOM);
	if (!old || !new || !back || pipe(to) || pipe(from))
		return 2;
	noise(old, ROOM, 1);
	/* before there is CUDA */
	if (!fork()) {
		close(to[1]);
		write_when_told(to[0], from[1]);
	}
	test_killed();
	if (!check(setup_gpu(), "there is a GPU", 0))
		return 1;
	for (round = 0; round < rounds; round++) {
		struct order o = { round % WAYS, (uint64_t)round + 2 };
		size_t size;

		fh = a_file(&fd);
		if (!reads(fh, old, SIZE, ROOM) ||
		    !reads(fh, old, SIZE, (size_t)1 << 20))
			stale++;
		kept += stats(fh).path[PLN_PATH_CACHE].bytes_read == 2 * SIZE;
		if (write(to[1], &o, sizeof(o)) != sizeof(o) ||
		    read(from[0], &took, sizeof(took)) != sizeof(took) ||
		    took < 0)
			return 2;
		most = took > most ? took : most;
		late += took > 0.1;
		noise(new, ROOM, o.seed);
		size = written(o.way, old, new, SIZE);
		if (!reads(fh, new, size, (size_t)1 << 20) ||
		    !reads(fh, new, size, ROOM)) {
			printf("# after way %d\n", o.way);
			stale++;
		}
		cuFileHandleDeregister(fh);
		close(fd);
	}
	broken = stats(NULL).leases_broken;
	check(!stale, "reads that brought other bytes than the file has", stale);
	check(kept == rounds, "rounds in which all was read from the page cache",
	      kept);
	/* a file that is renamed over has no writer */
	check(broken == (uint64_t)(rounds - (rounds + WAYS - 1 - RENAME) / WAYS),
	      "leases that writers broke", (double)broken);
	printf("# the longest that a writer waited: %.1f ms\n", most * 1e3);
	/*
	 * A busy machine may keep either of them from running.  The scenario page-cache knows
	 * when it did, and asks that no writer at all waits so long.
	 */
	check(late <= rounds / 10 && most < 5, "writers that waited for 100 ms",
	      late);
	unlink(path);
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
