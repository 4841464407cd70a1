// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: the GPU fails, hangs, is reset, and goes away.
 *
 *	pln_fault NAME PCI-ADDRESS DISK
 *
 * NAME is the GPU's for the host side, which sets its faults.  Each time: a
 * documented error, in time, and what comes next works.
 */
#include "pln_late.h"
#include "pln_victim.h"

#define WATCHDOG_MS	700

static const char *gpu_name, *pci;

static void fault(const char *what, const char *value)
{
	need(!shell("host set %s %s %s >/dev/null", gpu_name, what, value),
	     "set %s", what);
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
	struct pollfd p = { .events = POLLIN | POLLOUT };
	int i;

	p.fd = gpu_export(fd, a.handle, 0, MIB);
	need(p.fd >= 0, "export");
	fault("fault-stuck-fence", "1");
	start = now();
	for (i = 0; i < 2; i++)
		need(!gpu_submit(fd, &op, 1, 1, &job[i]), "submit");
	check(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLOUT),
	      "a job that does not end has no fence in a dma-buf");
	close(p.fd);
	for (i = 0; i < 2; i++)
		need(!gpu_wait(fd, job[i], SECONDS(20), &w[i]), "wait");
	check(w[0].status == -ETIMEDOUT, "stuck fence: the job times out");
	/* How much later depends on the machine; the wait has a bound */
	check(now() - start >= WATCHDOG_MS / 1000.0, "and not before its time");
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

/* A counter of the device, read by the host: the driver reads none of a dead one */
static unsigned long long host_counter(const char *name)
{
	unsigned long long n = 0;
	char cmd[160];
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "host counters %s | sed -n 's/.*\"%s\": *\\([0-9]*\\).*/\\1/p'",
		 gpu_name, name);
	f = popen(cmd, "r");
	need(f && fscanf(f, "%llu", &n) == 1, "counter %s", name);
	pclose(f);
	return n;
}

/*
 * The engine does nothing and obeys nothing, with a job that writes to the
 * program's memory.  That memory is let go with the job; what the engine does
 * when it goes on must not reach it.
 */
static void test_hung_engine(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	char *p = aligned_alloc(4096, UNIT);
	struct pln_gpu_op fill = op_fill(a.handle, 0, UNIT, 1, 0xaa);
	struct pln_gpu_op out = op_from_gpu(p, a.handle, 0, UNIT);
	unsigned long long ended;
	struct pln_gpu_wait w;
	uint64_t job;
	size_t i, bad = 0;

	need(p && !gpu_run(fd, &fill, 1, NULL), "fill");
	memset(p, 0x55, UNIT);
	fault("fault-hung-engine", "true");
	need(!gpu_submit(fd, &out, 1, 1, &job), "submit");
	need(!gpu_wait(fd, job, SECONDS(20), &w), "wait");
	check(w.status == -EIO, "hung engine: the job fails with %s (%s)",
	      strerror(EIO), strerror(-w.status));
	check(!shell("grep -q '^pinned 0$' /sys/kernel/debug/peerlane_gpu/%s/memory",
		     pci), "hung engine: the program's memory is let go");

	ended = host_counter("descriptors");
	fault("fault-hung-engine", "false");
	for (i = 0; i < 1000 && host_counter("descriptors") == ended; i++)
		usleep(10000);
	check(host_counter("descriptors") > ended,
	      "the engine goes on with its descriptor");
	for (i = 0; i < UNIT; i++)
		bad += p[i] != 0x55;
	check(!bad, "and writes to no memory that was let go (%zu bytes)", bad);

	check(!shell("echo 1 > /sys/bus/pci/devices/%s/reset", pci),
	      "reset after the engine hung");
	check(works(fd), "the next job works");
	gpu_free(fd, a.handle);
	free(p);
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

/* The kernel suspends all devices and resumes them at once; they keep their power */
static void test_suspend(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct victim v;

	need(!shell("echo 0 > /sys/module/suspend/parameters/pm_test_delay && echo devices > /sys/power/pm_test"),
	     "a test of suspend");
	victim_make(fd, &v);
	check(!shell("echo freeze > /sys/power/state"), "suspend");
	check(gpu_query(fd).reset_count == q.reset_count + 1,
	      "suspend: counted as a reset");
	victim_check(fd, &v, "suspend", EIO);
	check(works(fd), "suspend: the same open file works again");
	gpu_free(fd, v.a.handle);
}

static bool asleep(struct late_call *c)
{
	pid_t tid = __atomic_load_n(&c->tid, __ATOMIC_ACQUIRE);

	return tid && !shell("grep -q '^State:.S' /proc/%d/task/%d/status",
			     getpid(), tid);
}

/*
 * A submission fails when it has a number that another thread waits for: that
 * of the program's page cannot be written, when that is known.
 */
static void test_refused(int fd)
{
	struct pln_gpu_op nop = { .opcode = PLN_GPU_OP_NOP };
	struct late_call submit = { .fd = fd, .nr = PLN_GPU_IOC_SUBMIT };
	struct late_call wait = { .fd = fd, .nr = PLN_GPU_IOC_WAIT };
	struct pln_gpu_submit *s = (void *)late_memory(4096);
	struct pln_gpu_wait w;
	uint64_t job;
	double start;
	int uffd, i;

	*s = (struct pln_gpu_submit){ .ops = (uintptr_t)&nop, .nr_ops = 1 };
	submit.arg = s;
	uffd = late_begin(s, 4096, UFFDIO_REGISTER_MODE_WP);
	need(!gpu_submit(fd, &nop, 1, 0, &job) &&
	     !gpu_wait(fd, job, SECONDS(20), &w), "a job");

	late_call_start(&submit);
	late_await(uffd, 1);
	check_errno(gpu_wait(fd, job + 1, 0, &w), ETIMEDOUT,
		    "refused job: its number is known before");
	w = (struct pln_gpu_wait){ .job = job + 1, .timeout_ns = SECONDS(30) };
	wait.arg = &w;
	late_call_start(&wait);
	for (i = 0; i < 1000 && !asleep(&wait); i++)
		usleep(10000);
	need(i < 1000, "another thread waits for it");

	start = now();
	need(!mprotect(s, 4096, PROT_READ), "no memory");
	late_end(uffd, s, 4096);
	pthread_join(submit.thread, NULL);
	pthread_join(wait.thread, NULL);
	check(submit.err == EFAULT, "refused job: %s", strerror(EFAULT));
	check(wait.err == ENOENT || (!wait.err && w.status == -EFAULT),
	      "and who waits for it is told (%s)", strerror(wait.err));
	check(now() - start < 20, "at once");
	munmap(s, 4096);
}

/* A fatal error of the link: the kernel resets it, with the GPU behind it */
static void test_link_error(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct victim v;
	int i;

	victim_make(fd, &v);
	check(!shell("host link-error %s | grep -q ok", gpu_name),
	      "a fatal error of the link above the GPU");
	for (i = 0; i < 2000 && gpu_query(fd).reset_count == q.reset_count; i++)
		usleep(10000);
	check(gpu_query(fd).reset_count == q.reset_count + 1,
	      "link error: the GPU is reset");
	victim_check(fd, &v, "link error", EIO);
	check(works(fd), "link error: the same open file works again");
	gpu_free(fd, v.a.handle);
}

/* No slot tells of it: the driver finds out for itself */
static void test_surprise(int fd)
{
	struct pln_gpu_alloc a = { .size = UNIT };
	struct victim v;
	double start;

	victim_make(fd, &v);
	start = now();
	fault("surprise-removed", "true");
	victim_check(fd, &v, "surprise removal", ENODEV);
	check(now() - start < 20, "nothing hangs");
	check_errno(ioctl(fd, PLN_GPU_IOC_ALLOC, &a), ENODEV,
		    "surprise removal: alloc");
	check_errno(gpu_free(fd, v.a.handle), ENODEV,
		    "surprise removal: free");
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
	test_hung_engine(fd);
	test_refused(fd);
	test_reset(fd);
	test_reset(fd);
	/* Twice: what the first restores, the second needs again */
	test_link_error(fd);
	test_link_error(fd);
	test_suspend(fd);
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
