// SPDX-License-Identifier: MIT
/*
 * Batches and transfers in streams on a GPU, emulated or real:
 *
 *	cufile-guest DIR [read|write]
 *	cufile-guest DEVICE neighbours ROUNDS
 *
 * With a second word, one batch of 4 MiB of that direction alone, for whoever
 * counts what the devices move; or many writers of a block device.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"
#include "../../cuda/cuda.h"
#include "../cufile.h"
#include <peerlane/file.h>

#define N	64
#define SIZE	((size_t)64 << 10)
#define ALL	(N * SIZE)

#define CUDA(X) \
	X(Init, cuInit) \
	X(DeviceGet, cuDeviceGet) \
	X(PrimaryRetain, cuDevicePrimaryCtxRetain) \
	X(SetCurrent, cuCtxSetCurrent) \
	X(Alloc, cuMemAlloc_v2) \
	X(Free, cuMemFree_v2) \
	X(HostAlloc, cuMemHostAlloc) \
	X(HtoD, cuMemcpyHtoD_v2) \
	X(DtoH, cuMemcpyDtoH_v2) \
	X(DtoHAsync, cuMemcpyDtoHAsync_v2) \
	X(SetAsync, cuMemsetD8Async) \
	X(AllocAsync, cuMemAllocAsync) \
	X(FreeAsync, cuMemFreeAsync) \
	X(StreamCreate, cuStreamCreate) \
	X(StreamSync, cuStreamSynchronize) \
	X(StreamDestroy, cuStreamDestroy_v2) \
	X(Launch, cuLaunchHostFunc)

static struct {
#define X(name, symbol) __typeof__(symbol) *name;
	CUDA(X)
#undef X
} gpu;

static unsigned int checks, failed;
static CUdeviceptr g;
static char *data, *back;
static CUfileHandle_t in, out;

static bool check(bool good, const char *what, long long value)
{
	checks++;
	failed += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", checks, what);
	if (!good)
		printf("# %lld\n", value);
	fflush(stdout);
	return good;
}

static CUfileHandle_t open_file(const char *dir, const char *name)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh = NULL;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0 || pwrite(fd, data, ALL, 0) != (ssize_t)ALL || fsync(fd) ||
	    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		exit(2);
	d.handle.fd = fd;
	check(!cuFileHandleRegister(&fh, &d).err, "a file is registered", fd);
	return fh;
}

/* All of it in one batch, back to front; entries that ended well. */
static unsigned int batch(CUfileHandle_t fh, CUfileOpcode_t op)
{
	struct timespec limit = { .tv_sec = 30 };
	static CUfileIOParams_t p[N];
	static CUfileIOEvents_t e[N];
	CUfileBatchHandle_t b;
	unsigned int i, n = N, good = 0;

	if (cuFileBatchIOSetUp(&b, N).err)
		return 0;
	for (i = 0; i < N; i++)
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh, .opcode = op,
			.cookie = &p[i],
			.u.batch = { (void *)(uintptr_t)g,
				     (off_t)((N - 1 - i) * SIZE),
				     (off_t)((N - 1 - i) * SIZE), SIZE },
		};
	if (!cuFileBatchIOSubmit(b, N, p, 0).err &&
	    !cuFileBatchIOGetStatus(b, N, &n, e, &limit).err)
		for (i = 0; i < n; i++)
			good += e[i].status == CUFILE_COMPLETE &&
				e[i].ret == SIZE;
	cuFileBatchIODestroy(b);
	return good;
}

static struct {
	size_t size;
	off_t off, buf_off;
} late;

static void CUDA_CB decide(void *arg)
{
	(void)arg;
	late.size = SIZE;
	late.off = 3 * (off_t)SIZE;
	late.buf_off = (off_t)SIZE;
}

static void streams(const char *dir)
{
	size_t size = SIZE;
	off_t off = 5 * (off_t)SIZE, zero = 0;
	ssize_t wrote = -9, read = -9;
	char path[512], *file = malloc(SIZE);
	CUstream s = NULL;
	unsigned int i;
	int fd, r;

	if (gpu.StreamCreate(&s, CU_STREAM_NON_BLOCKING))
		exit(2);
	check(!cuFileStreamRegister(s, 0).err, "a stream is registered", 0);
	/* fill, write it, read another part over it, copy that out: in this order */
	gpu.SetAsync(g, 0x5a, SIZE, s);
	r = cuFileWriteAsync(out, (void *)(uintptr_t)g, &size, &off, &zero,
			     &wrote, s).err;
	check(!r, "a write is put into it", r);
	late.size = ALL;
	gpu.Launch(s, decide, NULL);
	r = cuFileReadAsync(in, (void *)(uintptr_t)g, &late.size, &late.off,
			    &late.buf_off, &read, s).err;
	check(!r, "a read is, whose arguments come later", r);
	gpu.DtoHAsync(back, g, 2 * SIZE, s);
	r = gpu.StreamSync(s);
	check(!r, "the stream ends", r);
	check(wrote == (ssize_t)SIZE, "what was written", wrote);
	check(read == (ssize_t)SIZE, "what was read", read);
	for (i = 0; i < SIZE && back[i] == 0x5a; i++)
		continue;
	check(i == SIZE, "the fill came before", i);
	check(!memcmp(back + SIZE, data + 3 * SIZE, SIZE),
	      "the read came before the copy", 0);
	snprintf(path, sizeof(path), "%s/out", dir);
	fd = open(path, O_RDONLY);
	check(pread(fd, file, SIZE, off) == (ssize_t)SIZE &&
	      !memcmp(file, back, SIZE), "the file has what the stream filled", 0);
	close(fd);
	check(!cuFileStreamDeregister(s).err, "a stream is given up", 0);
	gpu.StreamDestroy(s);
	free(file);
}

/* ---- memory that is freed while a transfer of it waits in a stream ---- */

static _Atomic bool hold;

static void CUDA_CB held(void *arg)
{
	while (hold)
		usleep(1000);
	(void)arg;
}

static struct {
	CUcontext ctx;
	CUdeviceptr ptr;
	_Atomic int tid;
	int r;
} leaving;

static void *free_it(void *arg)
{
	gpu.SetCurrent(leaving.ctx);
	leaving.tid = (int)syscall(SYS_gettid);
	leaving.r = gpu.Free(leaving.ptr);
	return arg;
}

/*
 * cuMemFree() waits for what may use the memory, and takes nothing from it;
 * cuMemFreeAsync() (@ordered) frees it when the stream has come so far.
 */
static void freed(const char *dir, bool ordered)
{
	size_t size = SIZE;
	off_t off = 7 * (off_t)SIZE, zero = 0;
	char byte = ordered ? 0x5a : 0x3c;
	char path[512], *file = malloc(SIZE);
	ssize_t wrote = -9;
	pthread_t thread;
	CUstream s = NULL;
	unsigned int i;
	int fd, r;

	if (gpu.StreamCreate(&s, CU_STREAM_NON_BLOCKING) ||
	    (ordered ? gpu.AllocAsync(&leaving.ptr, SIZE, s) :
	     gpu.Alloc(&leaving.ptr, SIZE)))
		exit(2);
	gpu.SetAsync(leaving.ptr, byte, SIZE, s);
	hold = true;
	gpu.Launch(s, held, NULL);
	r = cuFileWriteAsync(out, (void *)(uintptr_t)leaving.ptr, &size, &off,
			     &zero, &wrote, s).err;
	check(!r, "a write waits in a stream", r);
	if (ordered) {
		leaving.r = gpu.FreeAsync(leaving.ptr, s);
		hold = false;
		gpu.StreamSync(s);
	} else {
		pthread_create(&thread, NULL, free_it, NULL);
		while (!asleep(leaving.tid))
			usleep(1000);
		hold = false;
		pthread_join(thread, NULL);
	}
	check(!leaving.r, "its memory is freed", leaving.r);
	check(wrote == (ssize_t)SIZE, "after all was written", wrote);
	snprintf(path, sizeof(path), "%s/out", dir);
	fd = open(path, O_RDONLY);
	r = (int)pread(fd, file, SIZE, off);
	for (i = 0; i < SIZE && file[i] == byte; i++)
		continue;
	check(r == (int)SIZE && i == SIZE, "and is in the file", i);
	check(gpu.Free(leaving.ptr), "it cannot be freed again", 0);
	close(fd);
	gpu.StreamDestroy(s);
	free(file);
}

/* Memory that begins within a page of the GPU's, beside other memory */
static void small(void)
{
	enum { LEN = 4096, COUNT = 8 };
	CUdeviceptr p[COUNT];
	unsigned int i, bad = 0, within = 0;

	for (i = 0; i < COUNT; i++) {
		if (gpu.Alloc(&p[i], LEN))
			exit(2);
		within += p[i] % 65536 != 0;
	}
	for (i = 0; i < COUNT; i++)
		bad += cuFileRead(in, (void *)(uintptr_t)p[i], LEN,
				  (off_t)(SIZE + i * LEN), 0) != LEN;
	for (i = 0; i < COUNT; i++) {
		gpu.DtoH(back, p[i], LEN);
		bad += memcmp(back, data + SIZE + i * LEN, LEN) != 0;
		gpu.Free(p[i]);
	}
	check(within && !bad, "small memories get their own data", bad);
}

/* ---- a block device that several write ---- */

#define REGION	((size_t)128 << 10)
#define WRITERS	4	/* the last one is another process, which has no CUDA */

static char *want;		/* what the region is to have after the round */
static size_t ends[REGION / 1024]; /* of the ranges, one behind the other, each another writer's */
static unsigned int ranges;
static _Atomic unsigned int refused;
static pthread_barrier_t together;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Ranges from 1 KiB to 16 KiB, most with odd ends; a page has parts of two writers or more */
static off_t plan(unsigned int round)
{
	uint64_t state = (round + 1) * 0x9e3779b97f4a7c15ull;
	size_t at = 0, i;

	for (i = 0; i < REGION; i += sizeof(state)) {
		next(&state);
		memcpy(want + i, &state, sizeof(state));
	}
	for (ranges = 0; at < REGION; ranges++) {
		at += 1024 + next(&state) % (15 * 1024);
		if (at + 1024 > REGION)
			at = REGION;
		ends[ranges] = at;
	}
	return (off_t)(round % 8 * REGION);
}

static void write_ranges(int fd, CUfileHandle_t fh, unsigned int who, off_t base)
{
	size_t from = 0;
	unsigned int i;

	for (i = 0; i < ranges; from = ends[i++]) {
		ssize_t n = (ssize_t)(ends[i] - from);

		if (i % WRITERS != who)
			continue;
		refused += n != (fh ? cuFileWrite(fh, (void *)(uintptr_t)g, (size_t)n,
						  base + (off_t)from, (off_t)from) :
				      pwrite(fd, want + from, (size_t)n, base + (off_t)from));
	}
}

/* Told a round, it says that it is ready, is told to begin, and says that it has written */
static void foreign(const char *device, int orders, int answers)
{
	int fd = open(device, O_RDWR);
	unsigned int round;
	char c;

	while (fd >= 0 && read(orders, &round, sizeof(round)) == sizeof(round)) {
		off_t base = plan(round);

		if (write(answers, "", 1) != 1 || read(orders, &c, 1) != 1)
			break;
		write_ranges(fd, NULL, WRITERS - 1, base);
		if (write(answers, refused ? "!" : "", 1) != 1)
			break;
	}
	_exit(0);
}

static struct {
	CUcontext ctx;
	CUfileHandle_t fh;
	off_t base;
	bool over;
} shared;

static void *thread_writes(void *arg)
{
	gpu.SetCurrent(shared.ctx);
	for (;;) {
		pthread_barrier_wait(&together);
		if (shared.over)
			return NULL;
		write_ranges(-1, shared.fh, (unsigned int)(uintptr_t)arg, shared.base);
		pthread_barrier_wait(&together);
	}
}

static unsigned int differ(int fd, off_t base)
{
	unsigned int n = 0;
	size_t i;

	if (pread(fd, back, REGION, base) != (ssize_t)REGION)
		exit(2);
	for (i = 0; i < REGION; i++)
		n += back[i] != want[i];
	return n;
}

static void neighbours(const char *device, unsigned int rounds, CUcontext ctx, int to,
		       int from)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct pln_file_stats st = { .size = sizeof(st) };
	unsigned int round, cached = 0, medium = 0, lost = 0;
	int fd = open(device, O_RDWR), direct = open(device, O_RDONLY | O_DIRECT);
	pthread_t threads[WRITERS - 1];
	char c = 0;

	d.handle.fd = fd;
	if (fd < 0 || direct < 0 || cuFileHandleRegister(&shared.fh, &d).err)
		exit(2);
	shared.ctx = ctx;
	pthread_barrier_init(&together, NULL, WRITERS);
	for (uintptr_t i = 0; i < WRITERS - 1; i++)
		pthread_create(&threads[i], NULL, thread_writes, (void *)i);
	for (round = 0; round < rounds; round++) {
		shared.base = plan(round);
		gpu.HtoD(g, want, REGION);
		if (write(to, &round, sizeof(round)) < 0 || read(from, &c, 1) != 1 ||
		    write(to, "", 1) < 0)
			exit(2);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		if (read(from, &c, 1) != 1)
			exit(2);
		lost += c != 0;
		/* the first of them has written back what was in the page cache */
		medium += differ(direct, shared.base);
		cached += differ(fd, shared.base);
	}
	shared.over = true;
	pthread_barrier_wait(&together);
	for (unsigned int i = 0; i < WRITERS - 1; i++)
		pthread_join(threads[i], NULL);
	check(!refused && !lost, "all was written", refused + lost);
	check(!medium, "no byte of a neighbour is lost on the drive", medium);
	check(!cached, "nor in the page cache", cached);
	if (pln_file_stats(shared.fh, &st))
		exit(2);
	check(st.path[PLN_PATH_P2P].bytes_written && st.path[PLN_PATH_BOUNCE].bytes_written,
	      "whole pages went directly, the ends did not",
	      (long long)st.path[PLN_PATH_P2P].bytes_written);
	cuFileHandleDeregister(shared.fh);
}

int main(int argc, char **argv)
{
	struct pln_file_stats st = { .size = sizeof(st) };
	CUfileStatsLevel3_t l3;
	/* all goes this way; else nothing goes directly */
	const char *expect = getenv("EXPECT_PATH");
	bool kernel = expect && !strcmp(expect, "kernel");
	unsigned int way = kernel ? PLN_PATH_KERNEL : PLN_PATH_P2P;
	uint64_t seed = 88172645463325252ull;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUfileDrvProps_t props;
	CUcontext ctx;
	CUdevice dev;
	size_t i, kb = 0;
	unsigned int n;
	bool many = argc == 4 && !strcmp(argv[2], "neighbours");
	int to[2], from[2];

#define X(name, symbol) \
	if (!lib || !(*(void **)&gpu.name = dlsym(lib, #symbol))) { \
		printf("1..0 # SKIP no " #symbol "\n"); \
		return 77; \
	}
	CUDA(X)
#undef X
	if (argc < 2)
		return 64;
	if (argc > 3 && !strcmp(argv[2], "topology")) {
		printf("# exported %d, opened %ld\n",
		       cuFileExportPCIeTopology(argv[3]).err, cuFileUseCount());
		return 0;
	}
	data = malloc(ALL);
	want = malloc(REGION);
	if (many && want && !pipe(to) && !pipe(from)) {
		/* before there is CUDA */
		if (!fork()) {
			close(to[1]);
			close(from[0]);
			foreign(argv[1], to[0], from[1]);
		}
		close(to[0]);
		close(from[1]);
	}
	if (!data || !want || gpu.Init(0) || gpu.DeviceGet(&dev, 0) ||
	    gpu.PrimaryRetain(&ctx, dev) || gpu.SetCurrent(ctx) ||
	    gpu.Alloc(&g, ALL) || gpu.HostAlloc((void **)&back, ALL, 0))
		return 2;
	for (i = 0; i < ALL; i += sizeof(seed)) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(data + i, &seed, sizeof(seed));
	}
	gpu.HtoD(g, data, ALL);
	if (many) {
		neighbours(argv[1], (unsigned int)atoi(argv[3]), ctx, to[1], from[0]);
		close(to[1]);
		wait(NULL);
		goto out;
	}
	cuFileSetStatsLevel(3);
	in = open_file(argv[1], "in");
	if (argc > 2) {
		n = batch(in, argv[2][0] == 'w' ? CUFILE_WRITE : CUFILE_READ);
		check(n == N, "one batch", n);
		goto out;
	}
	out = open_file(argv[1], "out");
	n = (unsigned int)cuFileRead(in, (void *)(uintptr_t)g, SIZE, 0, 0);
	check(n == SIZE, "a read finds the path", n);
	gpu.SetAsync(g, 0, ALL, NULL);
	gpu.StreamSync(NULL);
	n = batch(in, CUFILE_READ);
	check(n == N, "a batch of reads", n);
	gpu.DtoH(back, g, ALL);
	check(!memcmp(back, data, ALL), "its data is right", 0);
	memset(data, 0x77, SIZE);
	gpu.HtoD(g, data, SIZE);
	n = batch(out, CUFILE_WRITE);
	check(n == N, "a batch of writes", n);
	gpu.SetAsync(g, 0, ALL, NULL);
	gpu.StreamSync(NULL);
	n = batch(out, CUFILE_READ);
	check(n == N, "is read again", n);
	gpu.DtoH(back, g, ALL);
	check(!memcmp(back, data, ALL), "and is right", 0);
	check(!cuFileGetStatsL3(&l3).err, "statistics", 0);
	check(!pln_file_stats(NULL, &st), "and those of paths", 0);
	if (expect) {
		n = (unsigned int)l3.detailed.basic.batch_iouring_submit_ops.ok;
		check(n == 3 * N, "all of the batches went through the ring", n);
		check(st.path[way].bytes_read == 2 * ALL + SIZE &&
		      st.path[way].bytes_written == ALL,
		      kernel ? "all bytes by the kernel module" :
		      "all bytes by p2p", (long long)st.path[way].bytes_read);
		check(l3.per_gpu_stats[0].n_p2p_reads == 2 * N + 1,
		      "as cuFile's statistics say", (long long)
		      l3.per_gpu_stats[0].n_p2p_reads);
		cuFileDriverGetProperties(&props);
		check(props.fflags & 1u << CU_FILE_P2P_SUPPORTED,
		      "the properties say p2p after it went so", props.fflags);
	} else {
		check(!st.path[PLN_PATH_P2P].bytes_read &&
		      !st.path[PLN_PATH_KERNEL].bytes_read, "no byte directly",
		      (long long)st.path[PLN_PATH_P2P].bytes_read);
		cuFileDriverGetProperties(&props);
		check(!(props.fflags & 1u << CU_FILE_P2P_SUPPORTED),
		      "the properties do not claim p2p", props.fflags);
	}
	small();
	n = (unsigned int)cuFileGetBARSizeInKB(0, &kb).err;
	check(!n && kb >= 1024 && !(kb & (kb - 1)), "the size of BAR1",
	      (long long)kb);
	printf("# BAR1 has %zu KiB\n", kb);
	streams(argv[1]);
	leaving.ctx = ctx;
	freed(argv[1], false);
	freed(argv[1], true);
out:
	check(!cuFileDriverClose().err, "the library closes", 0);
	gpu.Free(g);
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
