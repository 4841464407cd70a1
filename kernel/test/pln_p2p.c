// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a disk reads and writes GPU memory through BAR1.
 *
 *	pln_p2p DISK [NAME]
 *
 * DISK is a block device whose content is overwritten; NAME, what the host side
 * calls it, so that it can be made slow.
 *
 * With P2PDMA data must be right, and memory that is given up in the middle
 * of IO must never be hit by it once it belongs to somebody else.  Without,
 * O_DIRECT IO into the mapping must fail cleanly.
 */
#include <signal.h>
#include <sys/wait.h>

#include "pln_test.h"

static const char *disk;

static int disk_open(int flags)
{
	int fd = open(disk, flags | O_DIRECT | O_CLOEXEC);

	need(fd >= 0, "open %s", disk);
	return fd;
}

static void *map_export(int fd, uint32_t handle, uint64_t size)
{
	int buf = gpu_export(fd, handle, 0, size);
	void *p;

	need(buf >= 0, "export");
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	need(p != MAP_FAILED, "mmap of the dma-buf");
	close(buf);
	return p;
}

static void test_data(int fd)
{
	size_t len = 8 * MIB;
	struct pln_gpu_alloc a = gpu_alloc(fd, len), b = gpu_alloc(fd, len);
	int d = disk_open(O_RDWR);
	struct pln_gpu_op op;
	uint64_t result;
	char *in, *pa, *pb;

	in = aligned_alloc(4096, len);
	need(in, "memory");
	pattern(in, len, 7);
	need(pwrite(d, in, len, 0) == (ssize_t)len, "write to the disk");

	pa = map_export(fd, a.handle, len);
	pb = map_export(fd, b.handle, len);
	check(pread(d, pa, len, 0) == (ssize_t)len, "the disk reads into BAR1");
	op = op_crc(a.handle, 0, len);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, len),
	      "what arrived is right");
	op = op_two(PLN_GPU_OP_COPY, b.handle, 4096, a.handle, 0, len - 4096, 0);
	gpu_run(fd, &op, 1, NULL);
	check(pwrite(d, pb + 4096, len - 4096, 16 * MIB) ==
	      (ssize_t)(len - 4096), "the disk writes from BAR1");
	memset(in, 0, len);
	check(pread(d, in, len - 4096, 16 * MIB) == (ssize_t)(len - 4096),
	      "read back");
	op = op_crc(a.handle, 0, len - 4096);
	check(!gpu_run(fd, &op, 1, &result) &&
	      result == crc32c(0, in, len - 4096), "what was written is right");

	munmap(pa, len);
	munmap(pb, len);
	gpu_free(fd, a.handle);
	gpu_free(fd, b.handle);
	free(in);
	close(d);
}

/* As much of VRAM as BAR1 can show, in one piece, up to its last byte */
static void test_whole(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	uint64_t len = q.bar1_free < q.vram_free ? q.bar1_free : q.vram_free;
	struct pln_gpu_alloc a = gpu_alloc(fd, len);
	int d = disk_open(O_RDWR);
	struct pln_gpu_op op;
	uint64_t result;
	char *in, *p;

	in = aligned_alloc(4096, MIB);
	need(in, "memory");
	pattern(in, MIB, 9);
	need(pwrite(d, in, MIB, 0) == MIB, "write to the disk");
	p = map_export(fd, a.handle, len);
	check(gpu_query(fd).bar1_free == q.bar1_free - len,
	      "%llu MiB are mapped at once", (unsigned long long)len >> 20);
	check(pread(d, p + len - MIB, MIB, 0) == MIB,
	      "the disk reads into the end of it");
	op = op_crc(a.handle, len - MIB, MIB);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, MIB),
	      "and it is right");
	munmap(p, len);
	gpu_free(fd, a.handle);
	free(in);
	close(d);
}

static void test_refused(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int d = disk_open(O_RDONLY);
	char *p = map_export(fd, a.handle, MIB);

	check_errno(pread(d, p, MIB, 0), EFAULT,
		    "no P2PDMA: O_DIRECT into BAR1");
	munmap(p, MIB);
	gpu_free(fd, a.handle);
	close(d);
}

/* Reads into GPU memory until something stops it */
static void reader(bool engine_too)
{
	int fd = gpu_open(), d = disk_open(O_RDONLY);
	size_t len = 4 * MIB;
	struct pln_gpu_alloc a = gpu_alloc(fd, len);
	char *p = map_export(fd, a.handle, len), *host = malloc(len);
	struct pln_gpu_op op = op_to_gpu(a.handle, 0, host, len);
	struct pln_gpu_wait w;
	uint64_t job;

	memset(host, 0xee, len);
	for (;;) {
		if (engine_too && !gpu_submit(fd, &op, 1, 0, &job))
			gpu_wait(fd, job, SECONDS(10), &w);
		if (pread(d, p, len, 32 * MIB) != (ssize_t)len)
			_exit(1);
	}
}

/*
 * A process is killed in the middle of IO, again and again, while another
 * allocates what becomes free: nothing but zeros may ever be in new memory.
 */
static void test_kill(int fd, bool p2p)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	const char *env = getenv("PLN_ROUNDS");
	int rounds = env ? atoi(env) : 25, i, status, dirty = 0, alive = 0;
	size_t len = 4 * MIB;
	int d = disk_open(O_WRONLY);
	struct pln_gpu_alloc z = gpu_alloc(fd, len), a;
	struct pln_gpu_op op;
	uint64_t result;
	char *junk;
	pid_t pid;

	junk = aligned_alloc(4096, len);
	need(junk, "memory");
	memset(junk, 0xdd, len);
	need(pwrite(d, junk, len, 32 * MIB) == (ssize_t)len, "write");
	for (i = 0; i < rounds; i++) {
		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			reader(!p2p || i % 2);
		usleep(20000 + i * 3000);
		alive += !kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid &&
			 WIFSIGNALED(status);
		a = gpu_alloc(fd, len);
		op = op_two(PLN_GPU_OP_COMPARE, a.handle, 0, z.handle, 0, len,
			    0);
		usleep(5000);
		if (gpu_run(fd, &op, 1, &result) ||
		    result != PLN_GPU_COMPARE_EQUAL)
			dirty++;
		gpu_free(fd, a.handle);
	}
	if (p2p)
		check(alive == rounds, "%d of %d killed in the middle of IO",
		      alive, rounds);
	check(!dirty, "%d of %d new allocations hit by old IO", dirty, rounds);
	gpu_free(fd, z.handle);
	check(room_is(fd, &q0), "all memory and BAR1 are back after kill -9");
	free(junk);
	close(d);
}

/* Memory is freed while the disk reads into it */
static void test_free_in_flight(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	size_t len = 8 * MIB;
	int i, status, bad = 0;

	for (i = 0; i < 15; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, len);
		char *p = map_export(fd, a.handle, len);
		pid_t pid = fork();

		need(pid >= 0, "fork");
		if (!pid) {
			int d = disk_open(O_RDONLY);

			/* Ends with EFAULT, when the mapping has gone */
			while (pread(d, p, len, 0) == (ssize_t)len)
				;
			_exit(errno == EFAULT ? 42 : 1);
		}
		usleep(30000 + i * 2000);
		bad += gpu_free(fd, a.handle) != 0;
		bad += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		       WEXITSTATUS(status) != 42;
		munmap(p, len);
	}
	check(!bad, "free in the middle of IO: the IO ends with EFAULT");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
}

/*
 * A slow disk has been told to read into memory, which is freed.  What is given
 * out next, the lowest that is free, must stay clean; when the disk is done, the
 * memory is back.
 */
static void test_slow_disk(int fd, const char *name)
{
	struct pln_gpu_query q0 = gpu_query(fd), q;
	struct pln_gpu_alloc a, rest;
	size_t len = MIB, half;
	int d = disk_open(O_RDWR), status;
	struct pln_gpu_op op;
	uint64_t result = 0;
	char *junk = aligned_alloc(4096, len), *p;
	pid_t pid;

	need(junk, "memory");
	memset(junk, 0xdd, len);
	need(pwrite(d, junk, len, 0) == (ssize_t)len, "write");
	need(!host_throttle(name, MIB / 32), "slow the disk down");
	a = gpu_alloc(fd, len);
	p = map_export(fd, a.handle, len);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(pread(d, p, len, 0) <= 0);
	await_disk_reads(disk);
	/* Between the first command, which the disk does at once, and the next none may be under way */
	check(!gpu_free(fd, a.handle), "free while a slow disk reads into it");
	q = gpu_query(fd);
	check(q.vram_free == q0.vram_free - len &&
	      q.bar1_free == q0.bar1_free - len,
	      "the memory and its BAR1 wait for the disk");
	rest = gpu_alloc(fd, 8 * MIB);
	check(disk_reads(disk), "the disk is still at it");
	need(!host_throttle(name, 0), "speed the disk up");
	need(waitpid(pid, &status, 0) == pid, "wait");
	half = rest.size / 2;
	op = op_two(PLN_GPU_OP_COMPARE, rest.handle, 0, rest.handle, half, half,
		    0);
	check(!gpu_run(fd, &op, 1, &result) && result == PLN_GPU_COMPARE_EQUAL,
	      "memory given out meanwhile is clean");
	gpu_free(fd, rest.handle);
	munmap(p, len);
	check(room_is(fd, &q0), "all memory and BAR1 are back");
	free(junk);
	close(d);
}

/*
 * Memory is freed while the engine works on it.  A job that has not ended after
 * the question had not before it; one that has proves nothing, and is repeated.
 */
static void test_free_under_engine(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd), q;
	size_t len = 64 * MIB;
	struct pln_gpu_alloc a;
	struct pln_gpu_op ops[8];
	struct pln_gpu_wait w;
	uint64_t job;
	int i, round;

	for (round = 0; round < 50; round++) {
		a = gpu_alloc(fd, len);
		for (i = 0; i < 8; i++)
			ops[i] = op_crc(a.handle, 0, len);
		need(!gpu_submit(fd, ops, 8, 0, &job), "submit");
		need(!gpu_free(fd, a.handle), "free while the engine works");
		q = gpu_query(fd);
		if (gpu_wait(fd, job, 0, &w))
			break;
		need(!w.status && room_is(fd, &q0), "a job that ended early");
	}
	check(round < 50 && errno == ETIMEDOUT, "free while the engine works");
	check(q.vram_free == q0.vram_free - len,
	      "the memory is held as long as the job");
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status,
	      "the job ends well");
	check(room_is(fd, &q0), "and then all memory is back");
}

/* User memory that is a file's, mapped for writing: of the disk, whose pages Linux writes back */
static void test_file_pages(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int d = open(disk, O_RDWR | O_CLOEXEC);
	struct pln_gpu_op op[2];
	static char in[MIB] __attribute__((aligned(4096)));
	int direct = disk_open(O_RDONLY);
	uint64_t crc;
	char *p;

	p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, d, 0);
	need(d >= 0 && p != MAP_FAILED, "mmap of %s", disk);
	pattern(in, MIB, 9);
	memcpy(p, in, MIB);
	op[0] = op_to_gpu(a.handle, 0, p, MIB);
	op[1] = op_crc(a.handle, 0, MIB);
	check(!gpu_run(fd, op, 2, &crc) && crc == crc32c(0, in, MIB),
	      "a job reads a file that is mapped for writing");
	op[0] = op_from_gpu(p + MIB, a.handle, 0, MIB);
	check(!gpu_run(fd, op, 1, NULL) && !memcmp(p + MIB, in, MIB),
	      "and writes there");
	memset(in, 0, MIB);
	check(!msync(p + MIB, MIB, MS_SYNC) &&
	      pread(direct, in, MIB, MIB) == MIB && !memcmp(p + MIB, in, MIB),
	      "that is on the disk");
	munmap(p, 2 * MIB);
	close(direct);
	close(d);
	gpu_free(fd, a.handle);
}

/* The file that the memory belongs to is the parent's alone */
static void test_exec(int fd)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "test ! -e \"$0\"", path, NULL);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && !WEXITSTATUS(status), "close on exec");
}

int main(int argc, char **argv)
{
	int fd;
	struct pln_gpu_query q;

	need(argc == 2 || argc == 3, "usage: pln_p2p DISK [NAME]");
	disk = argv[1];
	fd = gpu_open();
	q = gpu_query(fd);
	if (q.features & PLN_GPU_FEAT_P2PDMA) {
		test_data(fd);
		test_whole(fd);
		test_free_in_flight(fd);
		if (argc == 3)
			test_slow_disk(fd, argv[2]);
	} else {
		test_refused(fd);
	}
	test_kill(fd, q.features & PLN_GPU_FEAT_P2PDMA);
	test_free_under_engine(fd);
	test_file_pages(fd);
	test_exec(fd);
	close(fd);
	return test_end();
}
