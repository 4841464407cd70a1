/* SPDX-License-Identifier: MIT */
/* Lanes of the bounce path: two pinned buffers and a CUDA stream each. */
#ifndef PLN_CUFILE_LANE_H
#define PLN_CUFILE_LANE_H

#include "internal.h"

#define MIN_CHUNK	KIB(64)

struct lane {
	struct lane *next;
	CUcontext ctx;
	unsigned long long ctx_id;
	CUstream stream;	/* NULL: copy synchronously */
	CUevent event[2];
	char *buf[2];
	bool registered;	/* with CUDA, so pinned */
};

/* The largest chunk that a buffer holds; *@count: buffers that there may be. */
size_t lane_size(size_t *count);
/* With a stream of @mem's context, which is current.  NULL: none is to be had. */
struct lane *lane_get(const struct mem *mem, bool wait);
void lane_put(struct lane *l);
/*
 * A copy could not be started.  Perhaps the stream went with its context;
 * perhaps it is the memory.  What was started before must still end well.
 */
int lane_without_stream(struct lane *l);	/* CUresult */
void lane_free_all(void);

#endif
