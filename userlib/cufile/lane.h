/* SPDX-License-Identifier: MIT */
/* Lanes of the bounce path: pinned memory in two halves, and a CUDA stream. */
#ifndef PLN_CUFILE_LANE_H
#define PLN_CUFILE_LANE_H

#include "internal.h"

#define MIN_CHUNK	KIB(64)
#define SLACK		KIB(8)	/* room to read whole blocks around a chunk */

struct lane {
	_Atomic bool busy;
	unsigned int class;	/* of the pool */
	CUcontext _Atomic ctx;
	_Atomic unsigned long long ctx_id;
	CUstream stream;	/* NULL: copy synchronously */
	CUevent event[2];
	CUevent blocking;	/* who waits for it leaves the CPU to others */
	_Atomic uint32_t *mark;	/* behind the halves: lane_mark() */
	uint32_t marks;		/* what it is when the latest was written */
	bool marked;		/* and nobody has waited for it */
	size_t under_way;	/* bytes of lane_in() that nobody has waited for */
	struct lane *next;	/* of those that helpers have left to their caller */
	uint64_t unsettled;	/* from here on in the file, copies may be under way */
	char *half[2];
	size_t size;		/* of each: a chunk with its SLACK */
	size_t mapped;		/* from half[0] on: both, the mark, what is left of a page */
	bool registered;	/* with CUDA, so pinned: in this context, with which that ends */
	CUcontext pinned_ctx;
	unsigned long long pinned_id;
};

/* The largest chunk that lane_get() has lanes for. */
size_t lane_chunk(void);
/*
 * With a stream of @mem's context, which is current, and halves that hold @chunk bytes.
 * NULL: none is to be had.
 */
struct lane *lane_get(const struct mem *mem, size_t chunk, bool wait);
void lane_put(struct lane *l);
/*
 * A copy could not be started.  Perhaps the stream went with its context;
 * perhaps it is the memory.  What was started before must still end well.
 */
int lane_without_stream(struct lane *l);	/* CUresult */
/*
 * Copies from registered memory to the GPU, by a lane with a stream.  After a failure
 * it is to be without one.
 */
int lane_in(struct lane *l, uint64_t dev, const void *from, size_t n); /* CUresult */
/*
 * No more than the @n bytes that are in its stream now comes before lane_settle(): if
 * they are few, that sees their end sooner.
 */
void lane_mark(struct lane *l, size_t n);
/* All that was put into its stream is done. */
int lane_settle(struct lane *l);		/* CUresult */
void lane_free_all(void);

#endif
