// SPDX-License-Identifier: MIT
/*
 * libibverbs.so.1 and libcuda.so.1 as the program has loaded them.
 *
 * They are looked for and never loaded: without libibverbs there is no
 * protection domain, without libcuda no GPU pointer, and a second copy of
 * either would know nothing of the first one's objects.  A reference is kept,
 * so that neither can be unloaded below us.
 */
#include <pthread.h>

#include "load.h"
#include "mr_inside.h"

/* Whether @library is loaded and has all that is needed, then or before */
static bool look_up(const char *library, const struct load_function *f, size_t n,
		    bool *there)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!*there)
		*there = !load_library(library, RTLD_NOLOAD | RTLD_NOW, f, n,
				       NULL, 0);
	n = *there;
	pthread_mutex_unlock(&lock);
	return n;
}

const struct mr_verbs *mr_verbs(void)
{
	static struct mr_verbs verbs;
	static bool there;
	/*
	 * By handle and version: not the shim's functions of the same names,
	 * and not libibverbs 1.0's.
	 */
	static const struct load_function wanted[] = {
#define MR_X(name, symbol, version, needed)				\
		{ &verbs.name, #symbol, version, needed },
		MR_VERBS_FUNCTIONS(MR_X)
#undef MR_X
	};

	return look_up("libibverbs.so.1", wanted, LOAD_COUNT(wanted), &there) ?
	       &verbs : NULL;
}

const struct mr_cuda *mr_cuda(void)
{
	static struct mr_cuda cuda;
	static bool there;
	static const struct load_function wanted[] = {
#define MR_X(name, symbol, needed)					\
		{ &cuda.name, #symbol, NULL, needed },
		MR_CUDA_FUNCTIONS(MR_X)
#undef MR_X
	};

	return look_up("libcuda.so.1", wanted, LOAD_COUNT(wanted), &there) ?
	       &cuda : NULL;
}
