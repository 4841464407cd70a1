/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane: memory, mappings and work that a GPU has when it fails or goes,
 * for the tests that take it away.
 */
#ifndef PLN_VICTIM_H
#define PLN_VICTIM_H

#include "pln_test.h"

static const char *disk;

static bool works(int fd)
{
	struct pln_gpu_alloc a = { .size = UNIT };
	struct pln_gpu_op ops[2];
	uint64_t result;
	char zero[64] = { 0 };
	bool ok;

	if (ioctl(fd, PLN_GPU_IOC_ALLOC, &a))
		return false;
	ops[0] = op_fill(a.handle, 0, 64, 8, 0);
	ops[1] = op_crc(a.handle, 0, 64);
	ok = !gpu_run(fd, ops, 2, &result) && result == crc32c(0, zero, 64);
	gpu_free(fd, a.handle);
	return ok;
}

static void *map_export(int fd, uint32_t handle, uint64_t size, int *buf)
{
	void *p;

	*buf = gpu_export(fd, handle, 0, size);
	need(*buf >= 0, "export");
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *buf, 0);
	need(p != MAP_FAILED, "mmap of the dma-buf");
	return p;
}

/*
 * A child whose disk reads into GPU memory until that is revoked.  Reads that
 * are under way when a GPU is pulled out may fail with the disk's own error.
 */
static pid_t start_reader(void *p, size_t len)
{
	pid_t pid = fork();
	int d;

	need(pid >= 0, "fork");
	if (pid)
		return pid;
	d = open(disk, O_RDONLY | O_DIRECT);
	if (d < 0)
		_exit(2);
	while (pread(d, p, len, 0) >= 0 || errno == EIO)
		;
	_exit(errno == EFAULT ? 42 : 1);
}

static bool reader_ended(pid_t pid)
{
	int i, status;

	for (i = 0; i < 1000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 42;
		usleep(10000);
	}
	kill(pid, SIGKILL);
	return false;
}

/* 512 GiB to sum up: more than a GPU does in the five seconds of an attention button */
#define VICTIM_JOBS	128

/* Memory, mappings and work that the GPU has when it goes */
struct victim {
	struct pln_gpu_alloc a;
	int buf;
	char *bar1, *coherent;
	uint64_t job[VICTIM_JOBS];
	pid_t reader;
};

static void victim_make(int fd, struct victim *v)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_op ops[PLN_GPU_MAX_OPS];
	size_t len = 16 * MIB;
	int i;

	v->a = gpu_alloc(fd, len);
	v->bar1 = map_export(fd, v->a.handle, len, &v->buf);
	v->coherent = NULL;
	if (q.features & PLN_GPU_FEAT_COHERENT) {
		v->coherent = mmap(NULL, len, PROT_READ, MAP_SHARED, fd,
				   v->a.mmap_offset);
		need(v->coherent != MAP_FAILED, "mmap");
		need(!raises_sigbus(v->coherent), "access");
	}
	need(!raises_sigbus(v->bar1), "access");
	v->reader = q.features & PLN_GPU_FEAT_P2PDMA ?
		start_reader(v->bar1, len) : 0;
	usleep(50000);
	for (i = 0; i < PLN_GPU_MAX_OPS; i++)
		ops[i] = op_crc(v->a.handle, 0, len);
	for (i = 0; i < VICTIM_JOBS; i++)
		need(!gpu_submit(fd, ops, PLN_GPU_MAX_OPS, 0, &v->job[i]),
		     "submit");
}

/* Right after the event for most; a dead GPU is buried by a worker */
static bool revoked_soon(const struct victim *v)
{
	int i;

	for (i = 0; i < 1000 && !raises_sigbus(v->bar1); i++)
		usleep(10000);
	return raises_sigbus(v->bar1);
}

static void victim_check(int fd, struct victim *v, const char *what, int err)
{
	struct pln_gpu_op op = op_fill(v->a.handle, 0, 8, 8, 0);
	struct pln_gpu_wait w;
	uint64_t job;
	int i;

	for (i = 0; i < VICTIM_JOBS; i++)
		need(!gpu_wait(fd, v->job[i], SECONDS(20), &w), "wait");
	check(w.status == -err,
	      "%s: the job in flight fails with %s (%s)", what, strerror(err),
	      strerror(-w.status));
	check(revoked_soon(v), "%s: SIGBUS behind BAR1", what);
	check_errno(gpu_submit(fd, &op, 1, 0, &job), err,
		    "its memory in a new job");
	if (v->coherent)
		check(raises_sigbus(v->coherent),
		      "%s: SIGBUS behind the coherent window", what);
	check(mmap(NULL, UNIT, PROT_READ, MAP_SHARED, v->buf, 0) ==
	      MAP_FAILED && errno == ENODEV, "%s: the dma-buf is revoked",
	      what);
	if (v->reader)
		check(reader_ended(v->reader), "%s: IO of the disk ends", what);
	munmap(v->bar1, v->a.size);
	if (v->coherent)
		munmap(v->coherent, v->a.size);
	close(v->buf);
}

#endif /* PLN_VICTIM_H */
