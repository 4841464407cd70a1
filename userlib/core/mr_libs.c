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
#include <string.h>

#include "mr_inside.h"

struct wanted {
	void *to;		/* a pointer to a function */
	const char *symbol, *version;	/* NULL: the default one */
	bool needed;
};

/* Whether @library is loaded and has all that is needed, then or before */
static bool look_up(const char *library, const struct wanted *w, size_t n,
		    bool *there)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool found;
	void *lib;

	pthread_mutex_lock(&lock);
	found = *there;
	lib = found ? NULL : dlopen(library, RTLD_NOLOAD | RTLD_NOW);
	for (found |= lib != NULL; lib && n; n--, w++) {
		void *at = w->version ? dlvsym(lib, w->symbol, w->version) :
					dlsym(lib, w->symbol);

		memcpy(w->to, &at, sizeof(at));
		found &= at || !w->needed;
	}
	if (lib && !found)
		dlclose(lib);
	*there = found;
	pthread_mutex_unlock(&lock);
	return found;
}

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

const struct mr_verbs *mr_verbs(void)
{
	static struct mr_verbs verbs;
	static bool there;
	/*
	 * By handle and version: not the shim's functions of the same names,
	 * and not libibverbs 1.0's.
	 */
	static const struct wanted wanted[] = {
#define MR_X(name, symbol, version, needed, type, args)			\
		{ &verbs.name, #symbol, version, needed },
		MR_VERBS_FUNCTIONS(MR_X)
#undef MR_X
	};

	return look_up("libibverbs.so.1", wanted, COUNT(wanted), &there) ?
	       &verbs : NULL;
}

const struct mr_cuda *mr_cuda(void)
{
	static struct mr_cuda cuda;
	static bool there;
	static const struct wanted wanted[] = {
#define MR_X(name, symbol, needed, args)				\
		{ &cuda.name, #symbol, NULL, needed },
		MR_CUDA_FUNCTIONS(MR_X)
#undef MR_X
	};

	return look_up("libcuda.so.1", wanted, COUNT(wanted), &there) ?
	       &cuda : NULL;
}
