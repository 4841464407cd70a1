// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: the GPU fails, hangs, is reset, and goes away.
 *
 *	pln_fault NAME PCI-ADDRESS DISK
 *
 * NAME is the GPU's for the host side, which sets its faults.  Each time: a
 * documented error, in time, and what comes next works.
 */
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

#include "pln_test.h"

#define WATCHDOG_MS	700

static const char *gpu_name, *pci, *disk;

__attribute__((format(printf, 1, 2)))
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

static void fault(const char *what, const char *value)
{
	need(!shell("host set %s %s %s >/dev/null", gpu_name, what, value),
	     "set %s", what);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

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

static void test_engine_error(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB), b = { .size = MIB };
	struct pln_gpu_op op = op_fill(a.handle, 0, MIB, 8, 1);
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_wait w[3];
	uint64_t job[3];
	int i;

	fault("fault-engine-error", "1");
	for (i = 0; i < 3; i++)
		need(!gpu_submit(fd, &op, 1, 0, &job[i]), "submit");
	for (i = 0; i < 3; i++)
		need(!gpu_wait(fd, job[i], SECONDS(20), &w[i]), "wait");
	check(w[0].status == -EIO && w[0].error == 16,
	      "engine error: the job fails with the device's code");
	check(!w[1].status && !w[2].status, "engine error: jobs behind it run");

	fault("fault-engine-error", "1");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &b), EIO,
		    "engine error: memory that cannot be zeroed is not given");
	check(gpu_query(fd).vram_free == q.vram_free, "and not lost");
	check(works(fd), "the next job works");
	gpu_free(fd, a.handle);
}

static void test_stuck_fence(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	struct pln_gpu_op op = op_fill(a.handle, 0, MIB, 8, 1);
	struct pln_gpu_wait w[2];
	uint64_t job[2];
	double start = now();
	int i;

	fault("fault-stuck-fence", "1");
	start = now();
	for (i = 0; i < 2; i++)
		need(!gpu_submit(fd, &op, 1, 1, &job[i]), "submit");
	for (i = 0; i < 2; i++)
		need(!gpu_wait(fd, job[i], SECONDS(20), &w[i]), "wait");
	check(w[0].status == -ETIMEDOUT, "stuck fence: the job times out");
	check(now() - start >= WATCHDOG_MS / 1000.0 &&
	      now() - start < WATCHDOG_MS / 1000.0 + 3, "in time");
	check(!w[1].status, "stuck fence: the job behind it is done");
	check(works(fd), "the next job works");
	gpu_free(fd, a.handle);
}

static void test_lost_irq(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	struct pln_gpu_op op = op_fill(a.handle, 0, MIB, 8, 1);
	double start = now();
	int i, bad = 0;

	fault("fault-lost-irq", "10");
	start = now();
	for (i = 0; i < 10; i++)
		bad += gpu_run(fd, &op, 1, NULL) != 0;
	check(!bad && now() - start < 5, "lost interrupts only cost time");
	gpu_free(fd, a.handle);
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

/* A child whose disk reads into GPU memory until that goes */
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
	while (pread(d, p, len, 0) == (ssize_t)len)
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

/* Memory, mappings and work that the GPU has when it goes */
struct victim {
	struct pln_gpu_alloc a;
	int buf;
	char *bar1, *coherent;
	uint64_t job;
	pid_t reader;
};

static void victim_make(int fd, struct victim *v)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_op ops[64];
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
	for (i = 0; i < 64; i++)
		ops[i] = op_crc(v->a.handle, 0, len);
	need(!gpu_submit(fd, ops, 64, 0, &v->job), "submit");
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

	need(!gpu_wait(fd, v->job, SECONDS(20), &w), "wait");
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

static void test_reset(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct victim v;

	victim_make(fd, &v);
	check(!shell("echo 1 > /sys/bus/pci/devices/%s/reset", pci), "reset");
	check(gpu_query(fd).reset_count == q.reset_count + 1,
	      "the reset is counted");
	victim_check(fd, &v, "reset", EIO);
	check_errno(gpu_export(fd, v.a.handle, 0, UNIT), EIO,
		    "reset: export of lost memory");
	check(works(fd), "the same open file works again");
	check(!gpu_free(fd, v.a.handle), "a lost handle can be freed");
}

static void test_surprise(int fd)
{
	struct pln_gpu_alloc a = { .size = UNIT };
	struct victim v;
	double start;

	victim_make(fd, &v);
	start = now();
	fault("surprise-removed", "true");
	victim_check(fd, &v, "surprise removal", EIO);
	check(now() - start < 20, "nothing hangs");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &a), EIO,
		    "surprise removal: alloc");
	check(!gpu_free(fd, v.a.handle), "surprise removal: free");
}

static void test_unbind(int fd, bool gone)
{
	struct pln_gpu_alloc a = { .size = UNIT };
	struct pln_gpu_query q = { 0 };
	struct pln_gpu_wait w;
	struct victim v;

	if (!gone)
		victim_make(fd, &v);
	check(!shell("echo %s > /sys/bus/pci/drivers/peerlane_gpu/unbind", pci),
	      "unbind while the file is open");
	if (!gone)
		victim_check(fd, &v, "unbind", ENODEV);
	check_errno(ioctl(fd, PLN_GPU_IOC_QUERY, &q), ENODEV, "unbound: query");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &a), ENODEV, "unbound: alloc");
	check_errno(gpu_wait(fd, 77, 0, &w), ENOENT, "unbound: wait");
	check(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED &&
	      errno == ENODEV, "unbound: mmap");
	check(access("/sys/kernel/debug/peerlane_gpu", F_OK) ||
	      shell("test -e /sys/kernel/debug/peerlane_gpu/%s", pci),
	      "unbound: no debugfs folder");
	if (gone)
		check(!shell("echo 1 > /sys/bus/pci/devices/%s/remove", pci),
		      "remove the dead device");
	else
		shell("echo %s > /sys/bus/pci/drivers/peerlane_gpu/bind", pci);
}

/* The next node with a living GPU behind it, while an old one is open */
static int reopen(void)
{
	char path[64];
	int i, n, fd;

	for (i = 0; i < 500; i++) {
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

int main(int argc, char **argv)
{
	int fd, old;

	need(argc == 4, "usage: pln_fault NAME PCI-ADDRESS DISK");
	gpu_name = argv[1];
	pci = argv[2];
	disk = argv[3];
	need(!shell("echo %d > /sys/module/peerlane_gpu/parameters/watchdog_ms",
		    WATCHDOG_MS), "set the watchdog");

	fd = gpu_open();
	check(works(fd), "the GPU works");
	test_engine_error(fd);
	test_stuck_fence(fd);
	test_lost_irq(fd);
	test_reset(fd);
	test_reset(fd);
	check(shell("rmmod peerlane_gpu 2>/dev/null") != 0,
	      "the module cannot go while a file is open");
	test_unbind(fd, false);
	old = fd;
	fd = reopen();
	check(works(fd), "bound again, it works");
	close(old);
	check(works(fd), "also after the old file is closed");
	test_surprise(fd);
	test_unbind(fd, true);
	close(fd);
	return test_end();
}
