/* SPDX-License-Identifier: MIT */
/*
 * Functions of a library that is found at run time.  Types: ../cuda/cuda.h.
 */
#ifndef PEERLANE_CORE_LOAD_H
#define PEERLANE_CORE_LOAD_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct load_function {
	void *to;			/* a pointer to it */
	const char *symbol, *version;	/* NULL: the default one */
	bool needed;
};

/* Looks all of them up; the first one that is needed and not there, or NULL. */
static inline const char *load_functions(void *lib,
					 const struct load_function *f, size_t n)
{
	const char *missing = NULL;

	for (; n; n--, f++) {
		void *at = f->version ? dlvsym(lib, f->symbol, f->version) :
					dlsym(lib, f->symbol);

		memcpy(f->to, &at, sizeof(at));
		if (!at && f->needed && !missing)
			missing = f->symbol;
	}
	return missing;
}

/*
 * Loads @name with @flags of dlopen() and looks its functions up; it stays loaded.
 * -ENOENT: it cannot be loaded.  -ENOSYS: a function is missing, and it is let go.
 * Then @why says so.
 */
static inline int load_library(const char *name, int flags,
			       const struct load_function *f, size_t n,
			       char *why, size_t size)
{
	void *lib = dlopen(name, flags);
	const char *missing, *reason;

	if (!lib) {
		reason = dlerror();
		snprintf(why, size, "%s cannot be loaded: %s", name,
			 reason ? reason : "no reason given");
		return -ENOENT;
	}
	missing = load_functions(lib, f, n);
	if (!missing)
		return 0;
	snprintf(why, size, "%s has no %s", name, missing);
	dlclose(lib);
	for (; n; n--, f++)
		memset(f->to, 0, sizeof(void *));
	return -ENOSYS;
}

#define LOAD_COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#endif
