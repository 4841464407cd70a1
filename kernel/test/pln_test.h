/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane: what the driver's test programs share.  Results are KTAP lines on
 * standard output; the exit status is 1 when a check failed or none ran.
 */
#ifndef PLN_TEST_H
#define PLN_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/peerlane_gpu.h>

#define UNIT		65536u
#define MIB		(1024u * 1024u)
#define SECONDS(n)	((n) * 1000000000ull)

/* The kernel's own, which user space sees of test modules only */
#ifndef ENOTSUPP
#define ENOTSUPP	524
#endif

static int test_count, test_failed;

/* Prints a result; returns ok */
__attribute__((format(printf, 2, 3), unused))
static bool check(bool ok, const char *fmt, ...)
{
	va_list ap;

	test_count++;
	test_failed += !ok;
	printf("%sok %d - ", ok ? "" : "not ", test_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	return ok;
}

/* For what has to work so that the test can go on */
__attribute__((format(printf, 2, 3), unused))
static void need(bool ok, const char *fmt, ...)
{
	va_list ap;
	int err = errno;

	if (ok)
		return;
	printf("not ok %d - ", ++test_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(": %s\n", strerror(err));
	printf("Bail out!\n");
	fflush(stdout);
	_exit(1);
}

/* The call must fail, and so */
__attribute__((unused))
static void check_errno(int ret, int want, const char *what)
{
	int err = errno;

	if (ret == -1 && err == want)
		check(true, "%s: %s", what, strerror(want));
	else
		check(false, "%s: want %s, got %d (%s)", what, strerror(want),
		      ret, ret == -1 ? strerror(err) : "success");
}

__attribute__((unused))
static int test_end(void)
{
	printf("1..%d\n", test_count);
	fflush(stdout);
	return test_failed || !test_count;
}

__attribute__((unused))
static int gpu_open(void)
{
	const char *path = getenv("PLN_GPU");
	int fd = open(path ? path : "/dev/peerlane-gpu0", O_RDWR | O_CLOEXEC);

	need(fd >= 0, "open the GPU");
	return fd;
}

__attribute__((unused))
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((unused))
static struct pln_gpu_query gpu_query(int fd)
{
	struct pln_gpu_query q = { 0 };

	need(!ioctl(fd, PLN_GPU_IOC_QUERY, &q), "query");
	return q;
}

/* What it has when it holds nothing: the memory of who has just ended goes a little later */
__attribute__((unused))
static struct pln_gpu_query gpu_query_idle(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	int i;

	for (i = 0; i < 3000 && (q.vram_free != q.vram_size ||
				 q.bar1_free != q.bar1_size); i++) {
		usleep(10000);
		q = gpu_query(fd);
	}
	need(i < 3000, "nothing is held from before");
	return q;
}

/* Memory that was let go comes back soon: as much is free as in *q0 */
__attribute__((unused))
static bool room_is(int fd, const struct pln_gpu_query *q0)
{
	struct pln_gpu_query q;
	int i;

	for (i = 0; i < 3000; i++) {
		q = gpu_query(fd);
		if (q.vram_free == q0->vram_free &&
		    q.bar1_free == q0->bar1_free)
			return true;
		usleep(10000);
	}
	printf("# vram %llu, was %llu; bar1 %llu, was %llu\n",
	       (unsigned long long)q.vram_free,
	       (unsigned long long)q0->vram_free,
	       (unsigned long long)q.bar1_free,
	       (unsigned long long)q0->bar1_free);
	return false;
}

__attribute__((unused))
static struct pln_gpu_alloc gpu_alloc(int fd, uint64_t size)
{
	struct pln_gpu_alloc a = { .size = size };

	need(!ioctl(fd, PLN_GPU_IOC_ALLOC, &a), "allocate %llu bytes",
	     (unsigned long long)size);
	return a;
}

__attribute__((unused))
static int gpu_free(int fd, uint32_t handle)
{
	struct pln_gpu_free f = { .handle = handle };

	return ioctl(fd, PLN_GPU_IOC_FREE, &f);
}

__attribute__((unused))
static int gpu_export(int fd, uint32_t handle, uint64_t offset, uint64_t size)
{
	struct pln_gpu_export e = {
		.handle = handle, .flags = O_CLOEXEC,
		.offset = offset, .size = size,
	};

	return ioctl(fd, PLN_GPU_IOC_EXPORT, &e) ? -1 : e.fd;
}

/* All of the memory, and others may import it */
__attribute__((unused))
static int gpu_export_whole(int fd, const struct pln_gpu_alloc *a)
{
	struct pln_gpu_export e = {
		.handle = a->handle, .size = a->size,
		.flags = O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT,
	};

	return ioctl(fd, PLN_GPU_IOC_EXPORT, &e) ? -1 : e.fd;
}

__attribute__((unused))
static int gpu_submit(int fd, struct pln_gpu_op *ops, uint32_t n,
		      uint32_t queue, uint64_t *job)
{
	struct pln_gpu_submit s = {
		.ops = (uintptr_t)ops, .nr_ops = n, .queue = queue,
	};

	*job = 0;
	if (ioctl(fd, PLN_GPU_IOC_SUBMIT, &s))
		return -1;
	*job = s.job;
	return 0;
}

/* 0 or -1 as the call says; the job's own fate is in *w */
__attribute__((unused))
static int gpu_wait(int fd, uint64_t job, uint64_t ns, struct pln_gpu_wait *w)
{
	*w = (struct pln_gpu_wait){ .job = job, .timeout_ns = ns };
	return ioctl(fd, PLN_GPU_IOC_WAIT, w);
}

/*
 * One job, to its end; returns its status, or 1 when a call failed.  A thread that
 * uses io_uring gets EINTR without a signal.
 */
__attribute__((unused))
static int gpu_run(int fd, struct pln_gpu_op *ops, uint32_t n,
		   uint64_t *result)
{
	struct pln_gpu_wait w;
	uint64_t job;
	int ret;

	do {
		ret = gpu_submit(fd, ops, n, 0, &job);
	} while (ret && errno == EINTR);
	if (ret)
		return 1;
	do {
		ret = gpu_wait(fd, job, SECONDS(60), &w);
	} while (ret && errno == EINTR);
	if (ret)
		return 1;
	if (result)
		*result = w.result;
	return w.status;
}

__attribute__((unused))
static struct pln_gpu_op op_fill(uint32_t h, uint64_t off, uint64_t len,
				 uint32_t width, uint64_t value)
{
	return (struct pln_gpu_op){
		.opcode = PLN_GPU_OP_FILL, .arg = width, .dst_handle = h,
		.dst = off, .len = len, .imm = value,
	};
}

__attribute__((unused))
static struct pln_gpu_op op_crc(uint32_t h, uint64_t off, uint64_t len)
{
	return (struct pln_gpu_op){
		.opcode = PLN_GPU_OP_CRC32C, .src_handle = h, .src = off,
		.len = len,
	};
}

__attribute__((unused))
static struct pln_gpu_op op_to_gpu(uint32_t h, uint64_t off, const void *p,
				   uint64_t len)
{
	return (struct pln_gpu_op){
		.opcode = PLN_GPU_OP_COPY, .flags = PLN_GPU_OP_F_SRC_USER,
		.dst_handle = h, .dst = off, .src = (uintptr_t)p, .len = len,
	};
}

__attribute__((unused))
static struct pln_gpu_op op_from_gpu(void *p, uint32_t h, uint64_t off,
				     uint64_t len)
{
	return (struct pln_gpu_op){
		.opcode = PLN_GPU_OP_COPY, .flags = PLN_GPU_OP_F_DST_USER,
		.src_handle = h, .src = off, .dst = (uintptr_t)p, .len = len,
	};
}

__attribute__((unused))
static struct pln_gpu_op op_two(uint32_t opcode, uint32_t dst_h, uint64_t dst,
				uint32_t src_h, uint64_t src, uint64_t len,
				uint32_t arg)
{
	return (struct pln_gpu_op){
		.opcode = opcode, .arg = arg, .dst_handle = dst_h, .dst = dst,
		.src_handle = src_h, .src = src, .len = len,
	};
}

/* CRC-32C by a table; not the device's code */
__attribute__((unused))
static uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	unsigned int i, bit;

	for (i = 0; i < 256 && !table[255]; i++)
		for (table[i] = i, bit = 0; bit < 8; bit++)
			table[i] = (table[i] >> 1) ^
				   (table[i] & 1 ? 0x82f63b78 : 0);
	crc = ~crc;
	while (len--)
		crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
	return ~crc;
}

/* Bytes that repeat late and are told apart by seed */
__attribute__((unused))
static void pattern(void *data, size_t len, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = len - at < sizeof(x) ? len - at : sizeof(x);
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy((char *)data + at, &x, n);
	}
}

/* How often something is tried that chance may break: more often at night */
__attribute__((unused))
static int often(int by_day, int at_night)
{
	const char *tier = getenv("TIER");

	return tier && !strcmp(tier, "nightly") ? at_night : by_day;
}

static sigjmp_buf test_bus_jump;

__attribute__((unused))
static void test_on_sigbus(int sig)
{
	(void)sig;
	siglongjmp(test_bus_jump, 1);
}

/* Does a read of the byte raise SIGBUS? */
__attribute__((unused))
static bool raises_sigbus(const volatile char *p)
{
	struct sigaction sa = { .sa_handler = test_on_sigbus }, old;
	volatile bool raised = true;

	sigaction(SIGBUS, &sa, &old);
	if (!sigsetjmp(test_bus_jump, 1)) {
		(void)*p;
		raised = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return raised;
}

__attribute__((format(printf, 1, 2), unused))
static int shell(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	fflush(stdout);
	return system(cmd);
}

/* The host's end of a drive moves @bps bytes per second at most; 0: any */
__attribute__((unused))
static int host_throttle(const char *drive, unsigned int bps)
{
	return shell("test \"$(host throttle %s %u)\" = ok", drive, bps);
}

/* Reads that a disk, /dev/..., is at now */
__attribute__((unused))
static unsigned int disk_reads(const char *disk)
{
	unsigned int rd = 0, wr = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/inflight",
		 strrchr(disk, '/') + 1);
	f = fopen(path, "r");
	need(f && fscanf(f, "%u %u", &rd, &wr) == 2, "requests in flight");
	fclose(f);
	return rd;
}

__attribute__((unused))
static void await_disk_reads(const char *disk)
{
	double end = now() + 60;

	while (!disk_reads(disk))
		need(now() < end, "a read of the disk that is under way");
}

/* The next node with a living GPU behind it, while an old one is open */
__attribute__((unused))
static int reopen(void)
{
	char path[64];
	int i, n, fd;

	for (i = 0; i < 3000; i++) {
		for (n = 0; n < 4; n++) {
			snprintf(path, sizeof(path), "/dev/peerlane-gpu%d", n);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd >= 0)
				return fd;
		}
		usleep(10000);
	}
	need(false, "open the GPU again");
	return -1;
}

/*
 * Room for a mapping, aligned as CUDA's pointers are: that of twice the size
 * stays reserved
 */
__attribute__((unused))
static char *reserve(size_t len)
{
	char *p = mmap(NULL, len + 2 * MIB, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	need(p != MAP_FAILED, "reserve");
	return (char *)(((uintptr_t)p + 2 * MIB - 1) & -(uintptr_t)(2 * MIB));
}

/* The device pointer of memory, where the CPU may or may not read */
__attribute__((unused))
static char *map_at(int fd, void *where, uint64_t offset, size_t len)
{
	bool coherent = gpu_query(fd).features & PLN_GPU_FEAT_COHERENT;
	char *p;

	p = mmap(where, len, coherent ? PROT_READ | PROT_WRITE : PROT_NONE,
		 MAP_SHARED | (where ? MAP_FIXED : 0), fd, offset);
	need(p != MAP_FAILED, "mmap of GPU memory");
	return p;
}

__attribute__((unused))
static char *dev_map(int fd, const struct pln_gpu_alloc *a)
{
	return map_at(fd, reserve(a->size), a->mmap_offset, a->size);
}

/* A child that has what @hold gives it, until end_holder() */
__attribute__((unused))
static pid_t start_holder(bool (*hold)(void))
{
	int pipefd[2];
	bool has;
	pid_t pid;

	need(!pipe(pipefd), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		has = hold();
		if (write(pipefd[1], &has, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipefd[1]);
	need(read(pipefd[0], &has, 1) == 1 && has, "what the child holds");
	close(pipefd[0]);
	return pid;
}

/* By kill -9 */
__attribute__((unused))
static void end_holder(pid_t pid)
{
	int status;

	need(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid, "kill");
}

/* Ends within a minute? */
__attribute__((unused))
static bool ends_well(pid_t pid)
{
	int i, status;

	for (i = 0; i < 6000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(10000);
	}
	return false;
}

/* @what: bind or unbind */
__attribute__((unused))
static bool driver_does(const struct pln_gpu_query *q, const char *what)
{
	char path[64], addr[32];
	pid_t pid;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/peerlane_gpu/%s", what);
	snprintf(addr, sizeof(addr), "%04x:%02x:%02x.%x", q->pci_domain,
		 q->pci_bus, q->pci_devfn >> 3, q->pci_devfn & 7);
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		int f = open(path, O_WRONLY);

		_exit(f < 0 || write(f, addr, strlen(addr)) < 0);
	}
	return ends_well(pid);
}

#endif
