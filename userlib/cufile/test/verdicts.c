// SPDX-License-Identifier: MIT
/* What is remembered of a refusal, and for what: each errno, the path, the device, the GPU, the memory. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "unit.h"

#define NO_MAP	"{\"peerlane\":{\"use_pci_p2pdma\":false}}"

static char *data;

static void with_module(const char *json)
{
	fresh(json);
	cuFileDriverClose();
	mock.module = PLN_ABI_VERSION;
	if (cuFileDriverOpen().err)
		abort();
}

/* One transfer of 8192 bytes at @off of memory and file, which ends well: its path */
static int way_of(CUfileHandle_t fh, bool write, char *g, size_t off)
{
	const unsigned int bounce = PLN_PATH_BOUNCE;
	struct pln_file_stats s = stats_of(fh), now;
	ssize_t r = write ? cuFileWrite(fh, g, 8192, (off_t)off, (off_t)off) :
			    cuFileRead(fh, g, 8192, (off_t)off, (off_t)off);

	now = stats_of(fh);
	if (r != 8192)
		return r == -1 ? -errno : (int)r;
	return now.path[bounce].bytes_read + now.path[bounce].bytes_written >
	       s.path[bounce].bytes_read + s.path[bounce].bytes_written ? PLN_PATH_BOUNCE :
	       (int)now.last_path;
}

/* ---- of the device and the GPU ---- */

static const struct {
	int err;
	enum { OF_PAIR, OF_MOMENT, OF_DATA } read, write;
} moves[] = {
	{ EFAULT, OF_PAIR, OF_PAIR },
	{ EINVAL, OF_PAIR, OF_PAIR },
	{ EREMOTEIO, OF_PAIR, OF_PAIR },
	{ EOPNOTSUPP, OF_PAIR, OF_PAIR },
	{ ENXIO, OF_PAIR, OF_PAIR },
	{ ENOTTY, OF_PAIR, OF_PAIR },
	{ ENODEV, OF_PAIR, OF_PAIR },
	{ ENOMEM, OF_MOMENT, OF_MOMENT },
	{ EAGAIN, OF_MOMENT, OF_MOMENT },
	/* a write into the page cache may be beside a read */
	{ EIO, OF_MOMENT, OF_DATA },
	{ ENOSPC, OF_DATA, OF_DATA },
	{ EDQUOT, OF_DATA, OF_DATA },
	{ EFBIG, OF_DATA, OF_DATA },
	{ EPERM, OF_DATA, OF_DATA },
	{ EACCES, OF_DATA, OF_DATA },
	{ ESTALE, OF_DATA, OF_DATA },
	{ ETIMEDOUT, OF_DATA, OF_DATA },
	/* as the module has it; a system call never says so */
	{ EIDRM, OF_PAIR, OF_PAIR },
};

static void set_move(int direct, int err, int times)
{
	if (direct == PLN_PATH_P2P) {
		mock.p2p_errno = err;
		mock.p2p_count = times ? times : -1;
	} else {
		mock.module_errno = err;
		mock.module_count = times;
	}
}

/* What another handle of the file is told of its first transfer */
static void told_to_others(char *g, int way, int err, const char *what)
{
	int fd = open(path, O_RDWR);
	CUfileHandle_t fh = reg(fd);
	struct pln_file_stats s;

	is(way_of(fh, false, g, 0), way, what);
	s = stats_of(fh);
	check(s.last_errno == err && !err == !s.reason[0], "errno %d, why: %s", s.last_errno, s.reason);
	cuFileHandleDeregister(fh);
	close(fd);
}

/* The first transfer of a pair fails with @err */
static void first_fails(int fd, char *g, int direct, int err, bool write, int of)
{
	CUfileHandle_t fh;
	int way;

	if (direct == PLN_PATH_P2P)
		fresh(NULL);
	else
		with_module(NO_MAP);
	mock_stop_clock();
	fh = reg(fd);
	set_move(direct, err, of == OF_PAIR ? 0 : 1);
	way = way_of(fh, write, g, 0);
	check(way == (of == OF_DATA ? -err : PLN_PATH_BOUNCE), "errno %d of the first %s: %d", err,
	      write ? "write" : "read", way);
	set_move(direct, 0, 0);
	is(way_of(fh, write, g, 0), of == OF_PAIR ? PLN_PATH_BOUNCE : direct,
	   of == OF_PAIR ? "it is remembered" : "it is not remembered");
	is(way_of(fh, !write, g, 0), of == OF_PAIR ? PLN_PATH_BOUNCE : direct, "the other way round, too");
	told_to_others(g, of == OF_PAIR ? PLN_PATH_BOUNCE : direct,
		       of != OF_PAIR ? 0 : err == EIDRM && direct == PLN_PATH_KERNEL ? EFAULT : err,
		       "by another handle");
	mock.later += 9;
	is(way_of(fh, write, g, 0), of == OF_PAIR ? PLN_PATH_BOUNCE : direct, "nine seconds later");
	mock.later += 1;
	is(way_of(fh, write, g, 0), direct, "ten seconds later it is tried again");
	told_to_others(g, direct, 0, "and works for all");
	cuFileHandleDeregister(fh);
}

void test_first_errno(void)
{
	char *g = gpu(8192);
	unsigned int i;
	int fd, way;

	data = calloc(1, 8192);
	fd = make(path, 0, data, 8192);
	for (way = PLN_PATH_P2P; way; way = way == PLN_PATH_P2P ? PLN_PATH_KERNEL : 0)
		for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
			first_fails(fd, g, way, moves[i].err, false, moves[i].read);
			first_fails(fd, g, way, moves[i].err, true, moves[i].write);
		}
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

/* Another device, another GPU, and the other path, are not meant */
void test_refused_pair(void)
{
	char *g[2] = { gpu(8192), gpu(8192) };
	const uint64_t devs[] = { 259 << 8 | 1, 259 << 8 | 2 };
	CUfileHandle_t fh[2];
	int fd[2], i, k;

	data = calloc(1, 8192);
	close(make(path, 0, data, 8192));
	with_module(NULL);
	mock_stop_clock();
	for (i = 0; i < 2; i++) {
		fd[i] = open(path, O_RDWR);
		mock.dev = devs[i];
		fh[i] = reg(fd[i]);
	}
	mock.dev = 0;
	mock.gpu = 0;
	mock.p2p_errno = EREMOTEIO;
	is(way_of(fh[0], false, g[0], 0), PLN_PATH_BOUNCE, "a device and a GPU refuse");
	mock.p2p_errno = 0;
	for (i = 0; i < 2; i++)
		for (k = 0; k < 2; k++) {
			mock.gpu = k;
			is(way_of(fh[i], false, g[k], 0), i || k ? PLN_PATH_P2P : PLN_PATH_BOUNCE,
			   i || k ? "others do not" : "they alone are staged");
		}
	/* each is told, of one file too */
	mock.gpu = 1;
	gpu_free(g[1]);
	g[1] = gpu(8192);
	with_module(NULL);
	for (i = 0; i < 2; i++) {
		mock.dev = devs[i];
		fh[i] = reg(fd[i]);
	}
	mock.dev = 0;
	mock.p2p_errno = EREMOTEIO;
	for (k = 0; k < 2; k++) {
		mock.gpu = k;
		is(way_of(fh[0], false, g[k], 0), PLN_PATH_BOUNCE, "two GPUs refuse");
	}
	mock.p2p_errno = 0;
	for (k = 0; k < 2; k++) {
		mock.gpu = k;
		is(way_of(fh[0], false, g[k], 0), PLN_PATH_BOUNCE, "which is remembered");
	}
	is(log_count("device 259:1 and GPU 0: no p2p: p2p refused: EREMOTEIO"), 1, "of the first it is told");
	is(log_count("device 259:1 and GPU 1: no p2p: p2p refused: EREMOTEIO"), 1, "and of the second");
	/* what is said of memory is not taken for what is known of the device */
	gpu_free(g[1]);
	g[1] = gpu(8192);
	mock.handle_error = 801;
	mock.register_errno = EOPNOTSUPP;
	is(way_of(fh[0], false, g[1], 0), PLN_PATH_BOUNCE, "memory that has no window");
	check(strstr(stats_of(fh[0]).reason, "no dma-buf of this GPU memory"), "why: %s",
	      stats_of(fh[0]).reason);
	mock.register_errno = 0;
	/* memory that cannot be mapped */
	gpu_free(g[0]);
	g[0] = gpu(8192);
	mock.gpu = 0;
	mock.handle_error = 801;
	is(way_of(fh[0], false, g[0], 0), PLN_PATH_KERNEL, "nor does the module");
	for (i = 0; i < 2; i++) {
		cuFileHandleDeregister(fh[i]);
		close(fd[i]);
		gpu_free(g[i]);
	}
	mock.gpu = 0;
	fresh(NULL);
	free(data);
}

/* One of two requests at once is refused; the other works, and that counts */
struct one_read {
	CUfileHandle_t fh;
	char *g;
	ssize_t r;
};

static void *read_it(void *arg)
{
	struct one_read *o = arg;

	o->r = cuFileRead(o->fh, o->g, 8192, 0, 0);
	return NULL;
}

void test_refused_beside(void)
{
	struct one_read o = { .g = gpu(8192) };
	char *g = gpu(8192);
	pthread_t thread;
	int fd;

	data = calloc(1, 8192);
	fd = make(path, 0, data, 8192);
	fresh("{\"logging\":{\"level\":\"INFO\"}}");
	o.fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	mock.p2p_count = 1;
	mock.hold_host = true;
	pthread_create(&thread, NULL, read_it, &o);
	AWAIT(mock.in_host == 1);
	is(way_of(o.fh, false, g, 0), PLN_PATH_P2P, "one works, while another is refused");
	mock.hold_host = false;
	pthread_join(thread, NULL);
	is(o.r, 8192, "which is staged");
	is(way_of(o.fh, false, o.g, 0), PLN_PATH_P2P, "from then on all go directly");
	is(log_count("p2p works"), 1, "that is said once");
	is(log_count("p2p works now"), 0, "and not as if it had not before");
	cuFileHandleDeregister(o.fh);
	fresh(NULL);
	close(fd);
	gpu_free(g);
	gpu_free(o.g);
	free(data);
}

/* A request tries again, and its first piece meets what is of the moment: the others try, too */
void test_refused_pieces(void)
{
	enum { PIECE = 64 << 10, ALL = 4 * PIECE };
	struct pln_file_stats s;
	char *g = gpu(ALL);
	CUfileHandle_t fh;
	int fd;

	data = calloc(1, ALL);
	fd = make(path, 0, data, ALL);
	fresh("{\"peerlane\":{\"window_size_kb\":64}}");
	mock_stop_clock();
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, ALL, 0, 0), ALL, "refused");
	mock.later += 10;
	mock.p2p_errno = ENOMEM;
	mock.p2p_count = 1;
	s = stats_of(fh);
	is(cuFileRead(fh, g, ALL, 0, 0), ALL, "ten seconds later it is tried again");
	is((long long)(stats_of(fh).path[PLN_PATH_P2P].bytes_read - s.path[PLN_PATH_P2P].bytes_read),
	   ALL - PIECE, "and all but the piece that had no memory for it go directly");
	cuFileHandleDeregister(fh);
	fresh(NULL);
	close(fd);
	gpu_free(g);
	free(data);
}

/* One request into two memories side by side: the last reason is that of the second */
void test_refused_halves(void)
{
	const size_t n = MIB(2);
	char *g = (char *)(uintptr_t)mock_two(n);
	CUfileHandle_t fh;
	int fd, i;

	data = calloc(1, 2 * n);
	fd = make(path, 0, data, 2 * n);
	fresh(NULL);
	fh = reg(fd);
	mock.handle_error = 801;
	for (i = 0; i < 2; i++)
		is(cuFileRead(fh, g, n, 0, 0), (long long)n, "memory that has no mapping");
	mock.handle_error = 0;
	mock.p2p_errno = ENOMEM;
	mock.p2p_count = 1;
	is(cuFileRead(fh, g, 2 * n, 0, 0), (long long)(2 * n), "and what is beside it, for a moment");
	check(strstr(stats_of(fh).reason, "p2p read failed: ENOMEM"), "why: %s", stats_of(fh).reason);
	cuFileHandleDeregister(fh);

	fresh(NULL);
	close(fd);
	gpu_free(g);
	gpu_free(g + n);
	free(data);
}

/* EFAULT of a mapping is the GPU's, unless p2p has worked with that one, by that path */
void test_refused_mapping(void)
{
	static const struct {
		const char *before;
		int gpu, dev, p2p_errno, handle_error;
		int way;
	} how[] = {
		{ "nothing was tried before", .gpu = -1 },
		{ "the module has worked", 0, 0, 0, 801, PLN_PATH_KERNEL },
		{ "p2p has with another GPU", 1, 0, 0, 0, PLN_PATH_P2P },
		{ "it was refused with another device", 0, 259 << 8 | 1, EREMOTEIO, 0, PLN_PATH_BOUNCE },
	};
	char *g, *h;
	CUfileHandle_t fh, fh2;
	unsigned int i;
	int fd, fd2;

	data = calloc(1, 8192);
	close(make(path, 0, data, 8192));
	for (i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		with_module(NULL);
		g = gpu(8192);
		h = gpu(8192);
		fd = open(path, O_RDWR);
		fd2 = open(path, O_RDWR);
		mock.dev = (uint64_t)how[i].dev;
		fh2 = reg(fd2);
		mock.dev = 0;
		fh = reg(fd);
		if (how[i].gpu >= 0) {
			mock.gpu = how[i].gpu;
			mock.handle_error = how[i].handle_error;
			mock.p2p_errno = how[i].p2p_errno;
			is(way_of(fh2, false, h, 0), how[i].way, how[i].before);
			mock.gpu = mock.handle_error = 0;
		}
		mock.p2p_errno = EFAULT;
		is(way_of(fh, false, g, 0), PLN_PATH_KERNEL, "EFAULT: the module moves it");
		is(log_count("GPU 0: the kernel does not accept pages of its mappings"), 1, "as is told");
		cuFileHandleDeregister(fh);
		cuFileHandleDeregister(fh2);
		close(fd);
		close(fd2);
		gpu_free(g);
		gpu_free(h);
	}
	fresh(NULL);
	free(data);
}

/* ---- of memory ---- */

static const struct {
	int cuda, mmap_errno;		/* of a mapping */
	int register_errno;		/* or of a registration */
	enum { ALL_OF_IT, A_PIECE, FOR_NOW } of;
	const char *words;
} memory[] = {
	{ 801, 0, 0, ALL_OF_IT, "no dma-buf of this GPU memory: CUDA_ERROR_NOT_SUPPORTED (801)" },
	{ 1, 0, 0, A_PIECE, "no dma-buf of this GPU memory: MOCK_ERROR (1)" },
	{ 2, 0, 0, FOR_NOW, "BAR1 is full" },
	{ 46, 0, 0, FOR_NOW, "no dma-buf of this GPU memory: MOCK_ERROR (46)" },
	{ 700, 0, 0, FOR_NOW, "no dma-buf of this GPU memory: " },
	{ 0, ENODEV, 0, ALL_OF_IT, "the GPU's dma-buf cannot be mapped: ENODEV (19): its driver has no mmap for it" },
	/* the kernel's own, of NVIDIA's driver */
	{ 0, 524, 0, ALL_OF_IT, "the GPU's dma-buf cannot be mapped: ENOTSUPP (524): its driver has no mmap for it" },
	{ 0, EIO, 0, ALL_OF_IT, "cannot be mapped: EIO" },
	{ 0, EINVAL, 0, ALL_OF_IT, "cannot be mapped: EINVAL" },
	{ 0, EACCES, 0, ALL_OF_IT, "cannot be mapped: EACCES" },
	{ 0, ENOMEM, 0, FOR_NOW, "BAR1 is full" },
	{ 0, ENOSPC, 0, FOR_NOW, "BAR1 is full" },
	{ 0, EAGAIN, 0, FOR_NOW, "cannot be mapped: EAGAIN" },
	{ 0, EINTR, 0, FOR_NOW, "cannot be mapped: EINTR" },
	{ 0, 0, EOPNOTSUPP, ALL_OF_IT, "the module peerlane cannot register this memory: EOPNOTSUPP" },
	{ 0, 0, EACCES, ALL_OF_IT, "register this memory: EACCES" },
	{ 0, 0, EINVAL, A_PIECE, "register this memory: EINVAL" },
	{ 0, 0, EIO, FOR_NOW, "register this memory: EIO" },
	{ 0, 0, ENODEV, FOR_NOW, "register this memory: ENODEV" },
	{ 0, 0, EAGAIN, FOR_NOW, "register this memory: EAGAIN" },
	{ 0, 0, EINTR, FOR_NOW, "register this memory: EINTR" },
	{ 0, 0, ENOMEM, FOR_NOW, "BAR1 is full" },
	{ 0, 0, ENOSPC, FOR_NOW, "BAR1 is full" },
	{ 0, 0, EDQUOT, FOR_NOW, "BAR1 is full" },
};

void test_refused_memory(void)
{
	const size_t n = MIB(40), far = MIB(32);
	char *g, *h = gpu(8192);
	CUfileHandle_t fh;
	unsigned int i;
	int fd, direct;

	data = calloc(1, 8192);
	fd = make(path, 0, data, 8192);
	if (ftruncate(fd, (off_t)n))
		abort();
	for (i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		g = gpu(n);
		if (memory[i].register_errno)
			with_module(NO_MAP);
		else
			fresh(NULL);
		direct = memory[i].register_errno ? PLN_PATH_KERNEL : PLN_PATH_P2P;
		fh = reg(fd);
		mock.handle_error = memory[i].cuda;
		mock.mmap_errno = memory[i].mmap_errno;
		mock.register_errno = memory[i].register_errno;
		is(way_of(fh, false, g, 0), PLN_PATH_BOUNCE, memory[i].words);
		check(strstr(stats_of(fh).reason, memory[i].words), "why: %s", stats_of(fh).reason);
		mock.handle_error = mock.mmap_errno = mock.register_errno = 0;
		is(way_of(fh, false, h, 0), direct, "other memory is not meant");
		is(way_of(fh, false, g, 0), memory[i].of == FOR_NOW ? direct : PLN_PATH_BOUNCE, "the same");
		is(way_of(fh, false, g, far), memory[i].of == ALL_OF_IT ? PLN_PATH_BOUNCE : direct,
		   "and far from there");
		/* by another thread's way, which was not told itself */
		is(way_of(fh, false, g, 4096), memory[i].of == FOR_NOW ? direct : PLN_PATH_BOUNCE, "beside it");
		mock.later += 1000;
		is(way_of(fh, false, g, 0), memory[i].of == FOR_NOW ? direct : PLN_PATH_BOUNCE,
		   "time is no reason to ask again");
		/* other memory at this address is */
		gpu_free(g);
		g = gpu(n);
		is(way_of(fh, false, g, 0), direct, "memory in its place");
		cuFileHandleDeregister(fh);
		gpu_free(g);
	}
	fresh(NULL);
	close(fd);
	gpu_free(h);
	free(data);
}

/* Nobody could look whether the file is on a drive of another host: that says nothing of p2p. */
void test_out_of_files(void)
{
	static const int err[] = { EMFILE, ENOMEM };
	char *g = gpu(MIB(1)), *bytes = malloc(MIB(1));
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	noise(bytes, MIB(1));
	fd = make(path, 0, bytes, MIB(1));
	for (i = 0; i < 3; i++) {
		fresh(i == 2 ? "{\"peerlane\":{\"strict\":true}}" : NULL);
		fh = reg(fd);
		mock.read_errno = err[i % 2];
		is(cuFileRead(fh, g, MIB(1), 0, 0), i == 2 ? -CU_FILE_IO_NOT_SUPPORTED : (int)MIB(1),
		   i == 2 ? "strict, and out of files" : "a read when files or memory have run out");
		check(strstr(stats_of(fh).reason, "cannot be looked for"), "why it is no p2p: %s",
		      stats_of(fh).reason);
		mock.read_errno = 0;
		memset(mem(g), 0, MIB(1));
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next one");
		check(!memcmp(mem(g), bytes, MIB(1)), "the right data");
		is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p at once");
	}
	/* nor do they lengthen a refusal, when it is to be tried again */
	fresh(NULL);
	mock_stop_clock();
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "refused");
	for (i = 0; i < 2; i++) {
		mock.later += 10 << i;
		mock.p2p_errno = i ? 0 : EREMOTEIO;
		mock.read_errno = EMFILE;
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "tried again, and out of files");
		is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "it is staged");
		check(strstr(stats_of(fh).reason, "cannot be looked for"), "why: %s",
		      stats_of(fh).reason);
		mock.read_errno = 0;
		is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "the next one tries");
		is(stats_of(fh).last_path, i ? PLN_PATH_P2P : PLN_PATH_BOUNCE,
		   i ? "and goes p2p, as it was only refused twice" : "and is refused");
	}
	close(fd);
	gpu_free(g);
	free(bytes);
}
