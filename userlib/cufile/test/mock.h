/* SPDX-License-Identifier: MIT */
/*
 * A mock of libcuda.so.1, for tests of libcufile without a GPU.  GPU memory is
 * host memory behind addresses that the CPU cannot touch; a dma-buf is a
 * memfd; BAR1 is a number of bytes.  Asynchronous copies are put off until
 * somebody waits for them, so that a missing wait shows in the data.
 *
 * It proves what the library does, not what a machine does: that is for the
 * scenarios, with the real kernel and the emulated devices.
 */
#ifndef PLN_TEST_MOCK_H
#define PLN_TEST_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mock {
	/* what fails; 0 and -1 mean nothing does */
	int handle_error;	/* result of cuMemGetHandleForAddressRange */
	int mmap_errno;		/* of mapping a dma-buf */
	int64_t bar1_size;	/* bytes, -1 no limit: ENOSPC beyond */
	int p2p_errno;		/* of file IO into a mapped dma-buf */
	int p2p_after;		/* after so many that go well */
	int p2p_count;		/* for so many, -1 for ever */
	int host_errno;		/* of O_DIRECT and buffered IO to host memory */
	uint64_t bad_from, bad_to; /* file range that gives media_errno */
	int media_errno;
	int anon_errno;		/* of mapping 1 MiB or more of anonymous memory */
	int anon_together;	/* such calls that must be under way at once first */
	size_t short_io;	/* at most so many bytes for each call */
	size_t odd_write;	/* what the next write by p2p says that it moved */
	int interrupt;		/* every so many-th call gives EINTR */
	int copy_error;		/* CUresult of copies */
	int copy_after;
	bool no_pinning;
	bool no_revoke;		/* freeing memory leaves its mappings working */
	unsigned int slow_ms;	/* file IO takes so long */
	bool no_streams;
	int64_t alloc_after;	/* the so many-th allocation fails, -1 none */
	const char *kernel_line; /* what the kernel says when p2p fails */
	uint64_t dev;		/* device of all files, 0 what it is */
	int gpu;		/* number of the GPU that all memory is of */
	bool no_id;		/* cuPointerGetAttribute has no buffer id */
	_Atomic bool hold_map;	/* who wants a dma-buf waits */
	_Atomic bool hold_stat;	/* who asks about a file waits */
	_Atomic bool hold_host;	/* the first who reads into host memory waits */

	/* what happened */
	_Atomic uint64_t p2p_calls, p2p_bytes, host_bytes, copies, maps, unmaps,
		allocs;
	_Atomic int64_t bar1_used;
	_Atomic int in_io;	/* calls under way */
	_Atomic int most_in_io;
	_Atomic int in_map;	/* waiting for a dma-buf */
	_Atomic int in_stat;	/* waiting to be told about a file */
	_Atomic int in_host;	/* waiting to read into host memory */
	_Atomic uint64_t handles; /* dma-bufs asked for */
	_Atomic int anon_calls;
	_Atomic int pinned;	/* registrations of host memory that stand */
};

extern struct mock mock;
void mock_reset(void);

/* Two allocations of @size bytes at addresses side by side; the first of them. */
unsigned long long mock_two(size_t size);

/* Straight to the GPU's memory, for checks. */
void *mock_memory(unsigned long long ptr);

int cuInit(unsigned int flags);
int cuMemAlloc_v2(unsigned long long *ptr, size_t size);
int cuMemFree_v2(unsigned long long ptr);

#endif
