// SPDX-License-Identifier: MIT
/*
 * Functions of NVIDIA's library that this one has not.  They are here so that a
 * program that has them somewhere starts; called, they say which one it was.
 */
#include <stdio.h>

#include "internal.h"

cudaError_t __cudaPeerlaneAbsent(const char *name)
{
	fprintf(stderr, "libcudart (Peerlane): %s is not supported\n", name);
	return rt_end(cudaErrorNotSupported);
}

/* With its second name, if it has one */
#define PLN_ABSENT(name, alias)	ONE(name) SECOND_##alias(name)
#define SECOND_(name)
#define SECOND_ptsz(name)	ONE(name##_ptsz)
#define SECOND_ptds(name)	ONE(name##_ptds)
#define ONE(name)							\
	cudaError_t name(void);						\
	cudaError_t name(void)						\
	{								\
		return __cudaPeerlaneAbsent(#name);			\
	}
#define PLN_RT(...)
#include "cudart_proto.h"
