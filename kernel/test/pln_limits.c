// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: how much user memory and how many jobs one open file may have.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sysinfo.h>

#include "pln_test.h"

/* More user memory than one file may have pinned */
static void test_pin_limit(int fd)
{
	static const char param[] =
		"/sys/module/peerlane_gpu/parameters/max_pinned_mib";
	struct pln_gpu_alloc a = gpu_alloc(fd, 4 * MIB);
	char *p = aligned_alloc(4096, 4 * MIB), old[16] = "";
	struct pln_gpu_op op = op_to_gpu(a.handle, 0, p, 4 * MIB);
	int i, f = open(param, O_RDWR), bad = 0;
	struct pln_gpu_wait w;
	uint64_t job[8];

	need(p && f >= 0 && read(f, old, sizeof(old) - 1) > 0, "limit");
	memset(p, 1, 4 * MIB);
	need(pwrite(f, "3", 1, 0) == 1, "set the limit");
	check_errno(gpu_submit(fd, &op, 1, 0, &job[0]), ENOMEM,
		    "submit: more user memory than allowed");
	need(pwrite(f, "5", 1, 0) == 1, "set the limit");
	for (i = 0; i < 8; i++)
		bad += gpu_submit(fd, &op, 1, 0, &job[i]) != 0;
	for (i = 0; i < 8; i++)
		bad += gpu_wait(fd, job[i], SECONDS(30), &w) || w.status;
	check(!bad, "submit waits for jobs that end to make room");
	need(pwrite(f, old, strlen(old), 0) > 0, "restore the limit");
	close(f);
	free(p);
	gpu_free(fd, a.handle);
}

/* Operations that keep a queue busy for a while */
static void busy_ops(struct pln_gpu_op *ops, int n, const struct pln_gpu_alloc *a)
{
	while (n--)
		ops[n] = op_crc(a->handle, 0, a->size);
}

/*
 * The limit for all files holds for all GPUs together.  Two jobs that have over
 * half of it pinned each, on two GPUs: the second waits for the end of the first.
 */
static void test_pin_two(int fd)
{
	static const char param[] =
		"/sys/module/peerlane_gpu/parameters/max_pinned_mib";
	int other = getenv("PLN_GPU") ? -1 :
		open("/dev/peerlane-gpu1", O_RDWR | O_CLOEXEC);
	struct pln_gpu_op ops[PLN_GPU_MAX_OPS];
	struct pln_gpu_alloc a, b;
	struct pln_gpu_wait w;
	struct sysinfo si;
	uint64_t job[3];
	char old[16] = "", *p;
	size_t len;
	int i, f;

	if (other < 0)
		return;
	need(!sysinfo(&si), "sysinfo");
	len = si.totalram * si.mem_unit / 2 / 10 * 6 / PLN_GPU_MAX_OPS;
	len = len / 4096 * 4096;
	p = aligned_alloc(4096, len);
	f = open(param, O_RDWR);
	need(p && f >= 0 && read(f, old, sizeof(old) - 1) > 0, "limit");
	need(pwrite(f, "1000000", 7, 0) == 7, "set the limit");
	memset(p, 1, len);
	a = gpu_alloc(fd, 16 * MIB);
	b = gpu_alloc(other, 16 * MIB);

	busy_ops(ops, PLN_GPU_MAX_OPS / 2, &a);
	need(!gpu_submit(fd, ops, PLN_GPU_MAX_OPS / 2, 0, &job[0]), "submit");
	for (i = 0; i < PLN_GPU_MAX_OPS; i++)
		ops[i] = op_to_gpu(a.handle, 0, p, len);
	need(!gpu_submit(fd, ops, PLN_GPU_MAX_OPS, 0, &job[1]), "submit");
	for (i = 0; i < PLN_GPU_MAX_OPS; i++)
		ops[i].dst_handle = b.handle;
	need(!gpu_submit(other, ops, PLN_GPU_MAX_OPS, 0, &job[2]), "submit");
	check(!gpu_wait(fd, job[1], 0, &w) && !w.status,
	      "two GPUs: a job waits until what the other's have pinned leaves room");
	check(!gpu_wait(other, job[2], SECONDS(60), &w) && !w.status,
	      "and then runs");
	need(!gpu_wait(fd, job[0], SECONDS(60), &w), "wait");
	need(pwrite(f, old, strlen(old), 0) > 0, "restore the limit");
	close(f);
	close(other);
	gpu_free(fd, a.handle);
	free(p);
}

/* Work of one program on all queues does not hold up memory for others */
static void test_alloc_meanwhile(int fd)
{
	struct pln_gpu_op ops[PLN_GPU_MAX_OPS];
	struct pln_gpu_query q = gpu_query(fd);
	int busy = gpu_open(), pending = 0;
	struct pln_gpu_alloc a, b;
	struct pln_gpu_wait w;
	uint64_t job[16];
	unsigned int i, n;

	need(q.num_queues <= 16, "queues");
	a = gpu_alloc(busy, 16 * MIB);
	busy_ops(ops, 64, &a);
	/* 64 GiB to sum up for each: they do not end in the time of an allocation */
	for (n = 0; n < 64; n++)
		for (i = 0; i < q.num_queues; i++)
			need(!gpu_submit(busy, ops, 64, i, &job[i]),
			     "submit");
	b = gpu_alloc(fd, UNIT);
	for (i = 0; i < q.num_queues; i++)
		pending += gpu_wait(busy, job[i], 0, &w) == -1 &&
			   errno == ETIMEDOUT;
	check(pending == (int)q.num_queues,
	      "memory is given out while all %u queues have work (%d still have)",
	      q.num_queues, pending);
	check_errno(gpu_submit(fd, ops, 1, q.num_queues, &job[0]), EINVAL,
		    "submit: the driver's own queue");
	/* What has not begun ends with the file */
	close(busy);
	gpu_free(fd, b.handle);
}

#define PIN_THREADS	6
#define PIN_ROUNDS_MOST	4000

static atomic_bool pin_seen;

struct pinner {
	int fd;
	uint32_t handle;
	unsigned int bad;
};

static void *pin_on(void *arg)
{
	char *p = aligned_alloc(4096, MIB);
	struct pinner *t = arg;
	struct pln_gpu_op op = op_to_gpu(t->handle, 0, p, MIB);
	int i, least = often(10, 40);

	memset(p, 1, MIB);
	/* On a busy machine all may be over before somebody has looked */
	for (i = 0; i < least ||
	     (i < PIN_ROUNDS_MOST && !atomic_load(&pin_seen)); i++)
		t->bad += gpu_run(t->fd, &op, 1, NULL) != 0;
	free(p);
	return NULL;
}

/* What debugfs says is pinned now */
static unsigned long long pinned_now(void)
{
	const char *node = getenv("PLN_GPU");
	unsigned long long bytes = 0;
	char link[96], pci[128], path[192], line[64];
	bool found = false;
	ssize_t n;
	FILE *f;

	snprintf(link, sizeof(link), "/sys/class/peerlane_gpu/%s/device",
		 node ? strrchr(node, '/') + 1 : "peerlane-gpu0");
	n = readlink(link, pci, sizeof(pci) - 1);
	need(n > 0, "%s", link);
	pci[n] = 0;
	snprintf(path, sizeof(path), "/sys/kernel/debug/peerlane_gpu/%s/memory",
		 strrchr(pci, '/') + 1);
	f = fopen(path, "r");
	need(f, "%s", path);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "pinned %llu", &bytes) == 1;
	fclose(f);
	need(found, "pinned");
	return bytes;
}

/* Threads that all want the last room: one gets it */
static void test_pin_race(int fd)
{
	static const char param[] =
		"/sys/module/peerlane_gpu/parameters/max_pinned_mib";
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	struct pinner t[PIN_THREADS];
	unsigned long long most = 0, now;
	pthread_t thread[PIN_THREADS];
	int i, f = open(param, O_RDWR);
	unsigned int bad = 0;
	char old[16] = "";

	need(f >= 0 && read(f, old, sizeof(old) - 1) > 0, "limit");
	need(pwrite(f, "1", 1, 0) == 1, "set the limit");
	atomic_store(&pin_seen, false);
	for (i = 0; i < PIN_THREADS; i++) {
		t[i] = (struct pinner){ .fd = fd, .handle = a.handle };
		need(!pthread_create(&thread[i], NULL, pin_on, &t[i]), "thread");
	}
	for (i = 0; i < PIN_THREADS; i++) {
		while (pthread_tryjoin_np(thread[i], NULL)) {
			now = pinned_now();
			most = now > most ? now : most;
			if (most)
				atomic_store(&pin_seen, true);
		}
		bad += t[i].bad;
	}
	check(!bad && most && most <= MIB,
	      "%d threads that submit never have more pinned than allowed (%llu bytes)",
	      PIN_THREADS, most);
	need(pwrite(f, old, strlen(old), 0) > 0, "restore the limit");
	close(f);
	gpu_free(fd, a.handle);
}

static void test_many_jobs(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_op op = op_fill(a.handle, 0, 8, 8, 1);
	uint64_t first = 0, job, n;
	struct pln_gpu_wait w;

	for (n = 0; n < 100000; n++) {
		if (gpu_submit(fd, &op, 1, n % 2, &job))
			break;
		if (!first)
			first = job;
	}
	check(n == 1024 && errno == EAGAIN,
	      "EAGAIN after %llu jobs that nobody waited for",
	      (unsigned long long)n);
	check(!gpu_wait(fd, first, SECONDS(30), &w) && !w.status &&
	      !gpu_submit(fd, &op, 1, 0, &job), "one waited for makes room");
	gpu_free(fd, a.handle);
	/* The rest is left to close() */
}

#define EXPORTS		20

/* How often the driver has taken mappings of a file away; peerlane_fail_test counts */
static unsigned int unmaps(void)
{
	FILE *f = fopen("/sys/kernel/debug/peerlane_fail_test/unmaps", "r");
	unsigned int n;

	need(f && fscanf(f, "%u", &n) == 1, "unmaps");
	fclose(f);
	return n;
}

/* What is done once for a dma-buf is not done for each part of it */
static void test_many_parts(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_part parts[PLN_GPU_MAX_PARTS];
	struct pln_gpu_export_parts e = {
		.parts = (uintptr_t)parts, .nr_parts = PLN_GPU_MAX_PARTS,
		.flags = O_CLOEXEC,
	};
	unsigned int i, n;
	int fds[EXPORTS];

	for (i = 0; i < PLN_GPU_MAX_PARTS; i++)
		parts[i] = (struct pln_gpu_part){
			.handle = a.handle, .size = UNIT,
		};
	for (i = 0; i < EXPORTS; i++) {
		need(!ioctl(fd, PLN_GPU_IOC_EXPORT_PARTS, &e), "export");
		fds[i] = e.fd;
	}
	n = unmaps();
	need(!gpu_free(fd, a.handle), "free");
	n = unmaps() - n;
	check(n == 1 + EXPORTS,
	      "free: %d dma-bufs of %d equal parts lose their mappings once each (%u calls)",
	      EXPORTS, PLN_GPU_MAX_PARTS, n);
	for (i = 0; i < EXPORTS; i++)
		close(fds[i]);
}

int main(void)
{
	struct pln_gpu_query q;
	int fd = gpu_open();

	q = gpu_query_idle(fd);
	test_pin_limit(fd);
	test_pin_race(fd);
	test_pin_two(fd);
	test_alloc_meanwhile(fd);
	test_many_parts(fd);
	test_many_jobs(fd);
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
	return test_end();
}
