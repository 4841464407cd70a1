/* SPDX-License-Identifier: GPL-2.0-only */
/* Peerlane: long-term pins of user memory, by io_uring. */
#ifndef PLN_RING_H
#define PLN_RING_H

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include "pln_test.h"

/* The least of io_uring: fixed buffers, one request at a time */
struct ring {
	int fd;
	unsigned int *tail, *mask, *array, *head, *ctail, *cmask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

__attribute__((unused))
static void ring_make(struct ring *r)
{
	struct io_uring_params p = { 0 };
	char *sq, *cq;

	r->fd = syscall(SYS_io_uring_setup, 2, &p);
	need(r->fd >= 0, "io_uring");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ |
		  PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(*r->cqes),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
		  IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes), PROT_READ |
		       PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQES);
	need(sq != MAP_FAILED && cq != MAP_FAILED && r->sqes != MAP_FAILED,
	     "io_uring");
	r->tail = (void *)(sq + p.sq_off.tail);
	r->mask = (void *)(sq + p.sq_off.ring_mask);
	r->array = (void *)(sq + p.sq_off.array);
	r->head = (void *)(cq + p.cq_off.head);
	r->ctail = (void *)(cq + p.cq_off.tail);
	r->cmask = (void *)(cq + p.cq_off.ring_mask);
	r->cqes = (void *)(cq + p.cq_off.cqes);
}

/* Before Linux 6.5 io_uring refuses what is mapped from a file or device, but for tmpfs */
__attribute__((unused))
static bool ring_pins_mappings(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	need(!uname(&u) && sscanf(u.release, "%d.%d", &major, &minor) == 2, "uname");
	return major > 6 || (major == 6 && minor >= 5);
}

__attribute__((unused))
static int ring_pin(struct ring *r, void *p, size_t len)
{
	struct iovec vec = { p, len };

	return syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS,
		       &vec, 1);
}

__attribute__((unused))
static int ring_unpin(struct ring *r)
{
	return syscall(SYS_io_uring_register, r->fd,
		       IORING_UNREGISTER_BUFFERS, NULL, 0);
}

/* The file's first bytes into the pinned pages that were at @p */
__attribute__((unused))
static int ring_read(struct ring *r, int file, void *p, unsigned int len)
{
	unsigned int at = *r->tail & *r->mask;

	r->sqes[at] = (struct io_uring_sqe){
		.opcode = IORING_OP_READ_FIXED, .fd = file,
		.addr = (uintptr_t)p, .len = len,
	};
	r->array[at] = at;
	__atomic_store_n(r->tail, *r->tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) != 1 ||
	    __atomic_load_n(r->ctail, __ATOMIC_ACQUIRE) == *r->head)
		return -1;
	at = *r->head & *r->cmask;
	__atomic_store_n(r->head, *r->head + 1, __ATOMIC_RELEASE);
	return r->cqes[at].res;
}

__attribute__((unused))
static void ring_end(struct ring *r)
{
	close(r->fd);
}

#endif /* PLN_RING_H */
