// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "verbs.h"

struct pln_verbs pln_verbs;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(char *why, size_t size)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
	const char *missing = NULL;
	struct pln_verbs v = { 0 };

	if (!lib) {
		snprintf(why, size, "libibverbs.so.1 cannot be loaded (%s); "
			 "install rdma-core", dlerror());
		return -ENOENT;
	}
#define PLN_X(required, member, symbol, result, args) \
	*(void **)&v.member = dlsym(lib, symbol); \
	if (required && !v.member && !missing) \
		missing = symbol;
	PLN_VERBS_FUNCTIONS(PLN_X)
#undef PLN_X
	if (missing) {
		snprintf(why, size, "libibverbs.so.1 has no %s: install a "
			 "newer rdma-core", missing);
		dlclose(lib);
		return -ENOSYS;
	}
	v.loaded = true;
	pln_verbs = v;
	return 0;
}

int pln_verbs_errno(int result)
{
	if (result > 0)
		return -result;
	return errno ? -errno : -EIO;
}

int pln_verbs_load(char *why, size_t size)
{
	int err = 0;

	pthread_mutex_lock(&load_lock);
	if (!pln_verbs.loaded)
		err = load(why, size);
	pthread_mutex_unlock(&load_lock);
	return err;
}
