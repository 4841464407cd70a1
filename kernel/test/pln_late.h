/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that comes late, and calls that wait for it.  Userfaultfd stands for a FUSE
 * file system here, which any user may mount.
 */
#ifndef PLN_LATE_H
#define PLN_LATE_H

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#include "pln_test.h"

/* Anonymous memory */
static char *late_memory(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(p != MAP_FAILED, "memory");
	return p;
}

/*
 * From now on whoever touches it waits (UFFDIO_REGISTER_MODE_MISSING: it has not been
 * touched yet), or whoever writes (UFFDIO_REGISTER_MODE_WP: it has)
 */
static int late_begin(void *start, size_t len, uint64_t mode)
{
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_range range = { (uintptr_t)start, len };
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register reg = { .range = range, .mode = mode };
	struct uffdio_writeprotect protect = {
		.range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	need(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api), "userfaultfd");
	need(!ioctl(uffd, UFFDIO_REGISTER, &reg), "userfaultfd: register");
	if (mode & UFFDIO_REGISTER_MODE_WP)
		need(!ioctl(uffd, UFFDIO_WRITEPROTECT, &protect),
		     "userfaultfd: write protection");
	return uffd;
}

/* So many wait for it */
static void late_await(int uffd, int n)
{
	struct uffd_msg msg;
	int i;

	for (i = 0; i < n; i++) {
		struct pollfd wait = { uffd, POLLIN, 0 };

		need(poll(&wait, 1, 20000) == 1 && wait.revents == POLLIN &&
		     read(uffd, &msg, sizeof(msg)) == sizeof(msg),
		     "%d calls wait for their memory", i + 1);
	}
}

/* It comes */
static void late_end(int uffd, void *start, size_t len)
{
	struct uffdio_range range = { (uintptr_t)start, len };

	need(!ioctl(uffd, UFFDIO_UNREGISTER, &range), "the memory comes");
	close(uffd);
}

/* A call by a thread of its own */
struct late_call {
	int fd;
	unsigned long nr;
	void *arg;
	pthread_t thread;
	pid_t tid;
	int err;	/* errno, or 0 */
};

static void *late_call_run(void *arg)
{
	struct late_call *c = arg;

	__atomic_store_n(&c->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->err = ioctl(c->fd, c->nr, c->arg) ? errno : 0;
	return NULL;
}

static void late_call_start(struct late_call *c)
{
	need(!pthread_create(&c->thread, NULL, late_call_run, c), "a thread");
}

#endif
