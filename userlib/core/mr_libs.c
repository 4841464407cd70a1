// SPDX-License-Identifier: MIT
/*
 * libibverbs.so.1 and libcuda.so.1 as the program has loaded them.
 *
 * They are looked for and never loaded: without libibverbs there is no
 * protection domain, without libcuda no GPU pointer, and a second copy of
 * either would know nothing of the first one's objects.  A reference is kept,
 * so that neither can be unloaded below us.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "mr_inside.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct mr_verbs *mr_verbs(void)
{
	static struct mr_verbs verbs;
	static bool there;
	bool all = true;
	void *lib;

	pthread_mutex_lock(&lock);
	if (there)
		goto out;
	lib = dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (!lib)
		goto out;
	/*
	 * By handle and version: not the shim's functions of the same names,
	 * and not libibverbs 1.0's.
	 */
#define MR_X(name, symbol, version, needed, type, args)			\
	*(void **)&verbs.name = dlvsym(lib, #symbol, version);		\
	all &= !(needed) || verbs.name;
	MR_VERBS_FUNCTIONS(MR_X)
#undef MR_X
	there = all;
	if (!there)
		dlclose(lib);
out:
	pthread_mutex_unlock(&lock);
	return there ? &verbs : NULL;
}

const struct mr_cuda *mr_cuda(void)
{
	static struct mr_cuda cuda;
	static bool there;
	bool all = true;
	void *lib;

	pthread_mutex_lock(&lock);
	if (there)
		goto out;
	lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	if (!lib)
		goto out;
#define MR_X(name, symbol, needed, args)				\
	*(void **)&cuda.name = dlsym(lib, #symbol);			\
	all &= !(needed) || cuda.name;
	MR_CUDA_FUNCTIONS(MR_X)
#undef MR_X
	there = all;
	if (!there)
		dlclose(lib);
out:
	pthread_mutex_unlock(&lock);
	return there ? &cuda : NULL;
}
