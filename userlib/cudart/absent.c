// SPDX-License-Identifier: MIT
/*
 * Functions of NVIDIA's library that this one has not.  They are here so that a
 * program that has them somewhere starts; called, they say which one it was.
 */
#include <stdio.h>

#include "internal.h"

/* For libpeerlane-cudart.so.0, too: a name that is not even in the list */
cudaError_t __cudaPeerlaneAbsent(const char *name);
cudaError_t __cudaPeerlaneAbsent(const char *name)
{
	fprintf(stderr, "libcudart (Peerlane): %s is not supported\n", name);
	return rt_end(cudaErrorNotSupported);
}

#define A(name)								\
	cudaError_t name(void);						\
	cudaError_t name(void)						\
	{								\
		return __cudaPeerlaneAbsent(#name);					\
	}
#include "absent.inc"
