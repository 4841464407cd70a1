/* SPDX-License-Identifier: MIT */
/*
 * What the false libibverbs.so.1 and libcuda.so.1 have in common with the test:
 * one structure in each that says how it shall answer, and what it was asked.
 */
#ifndef PEERLANE_CORE_TEST_MR_FAKES_H
#define PEERLANE_CORE_TEST_MR_FAKES_H

#include <stddef.h>
#include <stdint.h>

/* The false libibverbs */
struct fake_verbs {
	int probe_errno;	/* for a dma-buf of no descriptor; 0: takes it */
	int dmabuf_errno;	/* for a true one; 0: takes it */
	int plain_errno;	/* GPU memory by its pointer */
	int host_errno;		/* host memory by its pointer */
	int dereg_errno, minus_one;	/* returned as -1, with errno */
	int silent;		/* the probe fails without an errno */
	int now;		/* errno of the next call, whatever it is */
	void *kept;		/* region that was not ended, for that */
	/* asked */
	unsigned int probes, dmabufs, plains, deregs, live;
	const char *call;	/* the last one that registered */
	uint64_t offset, length, iova;
	uint64_t addr;
	unsigned int access;
	int fd, fd_good;	/* of the last dma-buf, and that it was open */
	int64_t fd_size;
};
extern struct fake_verbs fake_verbs;

/* The false libcuda: memory is a few ranges of addresses */
#define FAKE_RANGES	4

struct fake_range {
	uint64_t base, size, id;
	int gpu;
	int loose;		/* belongs to no context */
	unsigned char *bytes;	/* what is in it; NULL: nothing is looked at */
	int managed;
	uint64_t range, range_size;	/* reserved addresses; 0: none */
	int in_order;		/* SYNC_MEMOPS; -1: it cannot be set */
};

enum fake_call {
	FAKE_NOTHING, FAKE_POINTER, FAKE_PUSH, FAKE_DEVICE, FAKE_RETAIN,
	FAKE_EXPORT, FAKE_HOST_ALLOC, FAKE_STREAM, FAKE_ATTRIBUTE, FAKE_COPY,
	FAKE_WAIT, FAKE_FLUSH, FAKE_SET,
	FAKE_CALLS
};

struct fake_cuda {
	struct fake_range range[FAKE_RANGES];
	enum fake_call fails;	/* this one, the at-th time from now on */
	unsigned int at;
	int with;		/* CUresult */
	int no_rdma, order, flush;	/* attributes; order is less than 0: unknown */
	int now;		/* CUresult of the next call, whatever it is */
	/* asked */
	unsigned int calls[FAKE_CALLS];
	uint64_t export_start, export_size;
	unsigned int depth;	/* contexts pushed and not popped */
	unsigned int primaries, hosts, streams, running;
	unsigned int busy, most_busy;	/* streams with copies that run */
	unsigned int wrong;	/* things that a caller must not do */
};
extern struct fake_cuda fake_cuda;

#endif
