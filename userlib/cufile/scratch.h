/* SPDX-License-Identifier: MIT */
/* Blocks of GPU memory of the library's own. */
#ifndef PLN_CUFILE_SCRATCH_H
#define PLN_CUFILE_SCRATCH_H

#include "internal.h"

struct scratch {
	struct scratch *next;
	bool busy;
	struct mem mem;
	CUdeviceptr memory;
	uint64_t at;		/* whole pages of the GPU in it */
	size_t size;		/* 0: it cannot be used yet */
	CUstream stream;
};

/*
 * One in @mem's context, which is current.  NULL: there is none to wait for, because
 * of *@err, a CUresult, or of max_device_cache_size_kb if that is 0.
 */
struct scratch *scratch_get(const struct mem *mem, int *err);
void scratch_put(struct scratch *s);
/* GPU memory to GPU memory.  CUresult; then it is done. */
int scratch_copy(struct scratch *s, uint64_t to, uint64_t from, size_t n);

#endif
