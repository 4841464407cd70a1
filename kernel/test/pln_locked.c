// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: jobs with a page of user memory that somebody has locked, as a file system
 * does that waits for its server.  Only who has submitted them waits.
 *
 *	pln_locked NAME PCI-ADDRESS
 *
 * NAME is the GPU's for the host side.  The module peerlane_fail_test locks the page.
 */
#include <pthread.h>

#include "pln_test.h"

#define LOCK		"/sys/kernel/debug/peerlane_fail_test/lock"
#define PAGE		4096
#define STUCK		3

static const char *gpu_name, *pci;

/* 0: unlock */
static void lock_page(const void *p)
{
	char text[24];
	int f = open(LOCK, O_WRONLY);
	int n = snprintf(text, sizeof(text), "%#lx", (unsigned long)p);

	need(f >= 0 && write(f, text, n) == n, "lock a page");
	close(f);
}

static bool page_is(const char *what)
{
	char text[8] = "";
	int f = open(LOCK, O_RDONLY);

	need(f >= 0 && read(f, text, sizeof(text) - 1) > 0, "state of a page");
	close(f);
	return !strncmp(text, what, strlen(what));
}

static bool pinned_is(unsigned int bytes)
{
	return !shell("grep -q '^pinned %u$' /sys/kernel/debug/peerlane_gpu/%s/memory",
		      bytes, pci);
}

struct copier {
	int fd;
	struct pln_gpu_op op;
	uint64_t job;
	pthread_t thread;
};

static void *copy_on(void *arg)
{
	struct copier *c = arg;

	need(!gpu_submit(c->fd, &c->op, 1, 0, &c->job), "submit");
	return NULL;
}

static char *page_alloc(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(p != MAP_FAILED, "a page");
	memset(p, 1, PAGE);
	return p;
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

	memset(want, 0x5a, PAGE);
	lock_page(p);
	need(page_is("clean"), "a clean page");
	need(!gpu_submit(fd, &op, 1, 0, &job), "submit");
	/* The engine is done with it when it is with the next one */
	check(!gpu_run(fd, &nop, 1, NULL), "locked page: the next job of its program ends");
	check_errno(gpu_wait(fd, job, SECONDS(1) / 5, &w), ETIMEDOUT,
		    "locked page: its job");
	check(pinned_is(PAGE), "locked page: it counts as pinned");
	lock_page(0);
	check(!gpu_wait(fd, job, SECONDS(60), &w) && !w.status,
	      "the job ends when the page is unlocked");
	check(!memcmp(p, want, PAGE), "its data is there");
	check(page_is("dirty"), "the page is dirty");
	check(pinned_is(0), "and not pinned");
	munmap(p, PAGE);
	gpu_free(fd, a.handle);
}

/* So many jobs that each of those who take in what has ended meets one of them */
static bool hold_locked(void)
{
	int fd = gpu_open(), i;
	struct pln_gpu_alloc a = filled(fd, 0x66);
	char *p = page_alloc();
	static struct copier c[STUCK];

	lock_page(p);
	for (i = 0; i < STUCK; i++) {
		c[i].fd = fd;
		c[i].op = op_from_gpu(p, a.handle, 0, PAGE);
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
	check(pinned_is(STUCK * PAGE), "locked page: its jobs count as pinned");
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
	struct copier c = { .fd = fd, .op = op_from_gpu(p, a.handle, 0, PAGE) };

	lock_page(p);
	need(!shell("host set %s fault-stuck-fence 1 >/dev/null", gpu_name),
	     "a job whose end is not told");
	copy_on(&c);
	return true;
}

/* Nobody can be told of the job any more, and the module is going: it waits for no page */
static void test_unload(void)
{
	pid_t pid = start_holder(hold_running);

	end_holder(pid);
	check(pinned_is(PAGE), "locked page: the job of a killed program goes on");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(shell("rmmod peerlane_gpu"));
	check(ends_well(pid), "locked page: the module is unloaded");
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
	close(fd);
	test_others(&q);
	test_unload();
	fd = gpu_open();
	check(room_is(fd, &q), "all memory is free again");
	close(fd);
	return test_end();
}
