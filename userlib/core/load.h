/* SPDX-License-Identifier: MIT */
/*
 * Functions of a library that is found at run time.  Types: ../cuda/cuda.h.
 */
#ifndef PEERLANE_CORE_LOAD_H
#define PEERLANE_CORE_LOAD_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
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

#define LOAD_COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#endif
