// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: jobs with pages of user memory that somebody has locked, as a file system
 * does that waits for its server.  Only who has submitted them waits.
 *
 *	pln_locked NAME PCI-ADDRESS
 *
 * NAME is the GPU's for the host side.  The module peerlane_fail_test locks the pages.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "pln_test.h"

#define LOCK		"/sys/kernel/debug/peerlane_fail_test/lock"
#define WATCHDOG	"/sys/module/peerlane_gpu/parameters/watchdog_ms"
#define PAGE		4096
#define STUCK		3
#define MANY		12
#define USER		1000

static const char *gpu_name, *pci;

/* Others stay locked; 0: unlock the one that was locked first */
static void lock_page(const void *p)
{
	char text[24];
	int f = open(LOCK, O_WRONLY);
	int n = snprintf(text, sizeof(text), "%#lx", (unsigned long)p);

	need(f >= 0 && write(f, text, n) == n, "lock a page");
	close(f);
}

/* A letter for each that was locked, in this order: d (dirty) or c (clean) */
static bool pages_are(const char *want)
{
	char text[MANY + 1] = "";
	int f = open(LOCK, O_RDONLY);

	need(f >= 0 && read(f, text, sizeof(text) - 1) > 0, "state of pages");
	close(f);
	return !strcmp(text, want);
}

static bool pinned_is(unsigned int bytes)
{
	return !shell("grep -q '^pinned %u$' /sys/kernel/debug/peerlane_gpu/%s/memory",
		      bytes, pci);
}

struct copier {
	int fd;
	struct pln_gpu_op ops[2];
	unsigned int n;
	uint64_t job;
	pthread_t thread;
};

static void *copy_on(void *arg)
{
	struct copier *c = arg;

	need(!gpu_submit(c->fd, c->ops, c->n, 0, &c->job), "submit");
	return NULL;
}

static char *pages_alloc(unsigned int n, int fd)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	need(p != MAP_FAILED, "pages");
	memset(p, 1, n * PAGE);
	return p;
}

static char *page_alloc(void)
{
	return pages_alloc(1, -1);
}

/* GPU memory with a value in it */
static struct pln_gpu_alloc filled(int fd, uint8_t value)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, UNIT);
	struct pln_gpu_op op = op_fill(a.handle, 0, UNIT, 1, value);

	need(!gpu_run(fd, &op, 1, NULL), "fill");
	return a;
}

/* The job has ended for its program when its pages are dirty: what it writes back is right then */
static void test_wait(int fd)
{
	struct pln_gpu_alloc a = filled(fd, 0x5a);
	char *p = page_alloc(), want[PAGE];
	struct pln_gpu_op nop = { .opcode = PLN_GPU_OP_NOP };
	struct pln_gpu_op op = op_from_gpu(p, a.handle, 0, PAGE);
	struct pln_gpu_wait w;
	uint64_t job;
	pid_t pid;

	memset(want, 0x5a, PAGE);
	lock_page(p);
	need(pages_are("c"), "a clean page");
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	/* The engine is done with it when it is with the next one */
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(gpu_run(fd, &nop, 1, NULL));
	check(ends_well(pid), "locked page: the next job of its program ends");
	check_errno(gpu_wait(fd, job, SECONDS(1) / 5, &w), ETIMEDOUT,
		    "locked page: its job");
	check(pinned_is(PAGE), "locked page: it counts as pinned");
	lock_page(0);
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status,
	      "the job ends when the page is unlocked");
	check(!memcmp(p, want, PAGE), "its data is there");
	check(pages_are("d"), "the page is dirty");
	check(pinned_is(0), "and not pinned");
	munmap(p, PAGE);
	gpu_free(fd, a.handle);
}

/* What nobody has locked goes at once: here all pages of a file but one in the middle */
static void test_one_of_many(int fd)
{
	static const int order[] = { 0, 1, 3, 4, 2 };
	struct pln_gpu_alloc a = filled(fd, 0x3c);
	int i, file = memfd_create("pln_locked", MFD_CLOEXEC);
	struct pln_gpu_op ops[2];
	struct pln_gpu_wait w;
	uint64_t job;
	char *p;

	need(file >= 0 && !ftruncate(file, 5 * PAGE), "a file");
	p = pages_alloc(5, file);
	for (i = 0; i < 5; i++)
		lock_page(p + order[i] * PAGE);
	for (i = 0; i < 4; i++)
		lock_page(0);
	need(pages_are("ccccc"), "clean pages");
	ops[0] = op_from_gpu(p, a.handle, 0, 3 * PAGE);
	ops[1] = op_from_gpu(p + 3 * PAGE, a.handle, 0, 2 * PAGE);
	need(!gpu_submit(fd, ops, 2, 0, &job), "submit");
	check_errno(gpu_wait(fd, job, SECONDS(2), &w), ETIMEDOUT,
		    "one page of five is locked: the job");
	check(pages_are("ddddc"), "the others are dirty");
	check(pinned_is(PAGE), "and not pinned");
	lock_page(0);
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status &&
	      pages_are("ddddd") && pinned_is(0),
	      "the job ends when it is unlocked, too: all are dirty, none is pinned");
	munmap(p, 5 * PAGE);
	close(file);
	gpu_free(fd, a.handle);
}

/* However long it has lasted, the job ends soon after the last page is unlocked */
static void test_one_by_one(int fd)
{
	struct pln_gpu_alloc a = filled(fd, 0x3d);
	struct pln_gpu_op op;
	struct pln_gpu_wait w;
	char *p = pages_alloc(MANY, -1), want[MANY + 1] = "";
	double begin = 0;
	uint64_t job;
	int i;

	for (i = 0; i < MANY; i++)
		lock_page(p + i * PAGE);
	memset(want, 'c', MANY);
	need(pages_are(want), "clean pages");
	op = op_from_gpu(p, a.handle, 0, MANY * PAGE);
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	check_errno(gpu_wait(fd, job, SECONDS(1) / 5, &w), ETIMEDOUT,
		    "all pages are locked: the job");
	/* Each when the driver has just found the one before unlocked */
	for (i = 0; i < MANY; i++) {
		begin = now();
		lock_page(0);
		want[i] = 'd';
		while (!pages_are(want) && now() < begin + 60)
			usleep(1000);
	}
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status,
	      "the job ends when they are unlocked one by one");
	check(now() < begin + 0.5, "%.3f s after the last one", now() - begin);
	munmap(p, MANY * PAGE);
	gpu_free(fd, a.handle);
}

/* An ordinary user, who may have one page pinned */
static void become_user(void)
{
	struct rlimit one = { PAGE, PAGE };

	need(!setrlimit(RLIMIT_MEMLOCK, &one) && !setuid(USER), "a user");
}

static bool hold_as_user(void)
{
	int fd = gpu_open();
	struct pln_gpu_alloc a = filled(fd, 0x4d);
	char *p = page_alloc();
	struct copier c = {
		.fd = fd, .n = 1, .ops = { op_from_gpu(p, a.handle, 0, PAGE) },
	};

	lock_page(p);
	become_user();
	copy_on(&c);
	return true;
}

/* What jobs keep pinned counts for the user when their programs have gone */
static void test_user(int fd)
{
	struct pln_gpu_alloc a = filled(fd, 0x4e);
	struct pln_gpu_op op = op_from_gpu(page_alloc(), a.handle, 0, PAGE);
	struct pln_gpu_op nop = { .opcode = PLN_GPU_OP_NOP };
	uint64_t job;
	pid_t pid;
	int i;

	for (i = 0; i < 2; i++)
		end_holder(start_holder(hold_as_user));
	need(!gpu_run(fd, &nop, 1, NULL) && pinned_is(2 * PAGE),
	     "two jobs with a locked page");
	need(!shell("echo 100 >" WATCHDOG), "short waits");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		become_user();
		_exit(!gpu_submit(fd, &op, 1, 0, &job) || errno != EAGAIN);
	}
	check(ends_well(pid),
	      "the user of more than RLIMIT_MEMLOCK in locked pages gets EAGAIN");
	need(!shell("echo 30000 >" WATCHDOG), "waits as before");
	check(!gpu_run(fd, &op, 1, NULL), "another one does not");
	lock_page(0);
	lock_page(0);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		become_user();
		_exit(gpu_run(fd, &op, 1, NULL));
	}
	check(ends_well(pid), "nor that one when they are unlocked");
	gpu_free(fd, a.handle);
}

/*
 * So many jobs that each of those who take in what has ended meets one of them.  Each has
 * a page of GPU memory, too, where there is a coherent window.
 */
static bool hold_locked(void)
{
	int fd = gpu_open(), i;
	struct pln_gpu_alloc a = filled(fd, 0x66);
	bool window = gpu_query(fd).features & PLN_GPU_FEAT_COHERENT;
	char *p = page_alloc();
	char *other = window ? map_at(fd, NULL, a.mmap_offset, UNIT) : page_alloc();
	static struct copier c[STUCK];

	lock_page(p);
	for (i = 0; i < STUCK; i++) {
		c[i].fd = fd;
		c[i].n = 2;
		c[i].ops[0] = op_from_gpu(p, a.handle, 0, PAGE);
		c[i].ops[1] = op_from_gpu(other, a.handle, UNIT - PAGE, PAGE);
		need(!pthread_create(&c[i].thread, NULL, copy_on, &c[i]),
		     "thread");
		usleep(300000);
	}
	return true;
}

static void test_others(const struct pln_gpu_query *q)
{
	struct pln_gpu_op nop = { .opcode = PLN_GPU_OP_NOP };
	struct pln_gpu_wait w;
	int fd = gpu_open();
	pid_t holder, pid;
	uint64_t job;

	holder = start_holder(hold_locked);
	need(!gpu_submit(fd, &nop, 1, 0, &job), "submit");
	check(!gpu_wait(fd, job, SECONDS(20), &w) && !w.status,
	      "locked page: a job of another program ends");
	check(pinned_is(STUCK * PAGE), "locked page: it alone stays pinned");
	close(fd);

	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(shell("echo 1 > /sys/bus/pci/devices/%s/reset", pci));
	check(ends_well(pid), "locked page: the GPU is reset");
	check(driver_does(q, "unbind"), "locked page: the driver is unbound");

	end_holder(holder);
	check(shell("rmmod peerlane_gpu 2>&1 | grep -q 'temporarily unavailable'") == 0,
	      "while the page is locked, the module stays");
	lock_page(0);
	check(!shell("for i in $(seq 100); do rmmod peerlane_gpu 2>/dev/null && exit 0; sleep 0.1; done; exit 1"),
	      "unlocked, it can go");
	need(!shell("modprobe peerlane_gpu"), "load it");
}

static bool hold_running(void)
{
	int fd = gpu_open();
	struct pln_gpu_alloc a = filled(fd, 0x77);
	char *p = page_alloc();
	struct copier c = {
		.fd = fd, .n = 1, .ops = { op_from_gpu(p, a.handle, 0, PAGE) },
	};

	lock_page(p);
	need(!shell("host set %s fault-stuck-fence 1 >/dev/null", gpu_name),
	     "a job whose end is not told");
	copy_on(&c);
	return true;
}

/* Nobody can be told of the job any more, and the module is going: it waits for no page */
static void test_unload(void)
{
	pid_t pid;

	need(!shell("echo 600000 >" WATCHDOG), "a patient watchdog");
	pid = start_holder(hold_running);
	end_holder(pid);
	check(pinned_is(PAGE), "locked page: the job of a killed program goes on");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(shell("rmmod peerlane_gpu"));
	check(ends_well(pid), "locked page: the module is unloaded");
	check(pages_are("c"), "while it is locked");
	lock_page(0);
	need(!shell("modprobe peerlane_gpu"), "load it");
}

int main(int argc, char **argv)
{
	struct pln_gpu_query q;
	int fd;

	need(argc == 3, "usage: pln_locked NAME PCI-ADDRESS");
	gpu_name = argv[1];
	pci = argv[2];
	fd = gpu_open();
	q = gpu_query(fd);
	test_wait(fd);
	test_one_of_many(fd);
	test_one_by_one(fd);
	test_user(fd);
	close(fd);
	test_others(&q);
	test_unload();
	fd = gpu_open();
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
	return test_end();
}
