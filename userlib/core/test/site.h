/* SPDX-License-Identifier: MIT */
/* One place of the library that calls something that can fail: see sites.h */
#ifndef PLN_CORE_TEST_SITE_H
#define PLN_CORE_TEST_SITE_H

#include <stdbool.h>

struct site {
	const char *what, *file;
	int line;
	unsigned int failed;	/* times */
	bool told, harmless;	/* its error came out; the caller went on */
};

/* Whether the call is to fail; one by a pointer is told so by the test */
bool site_reached(struct site *site);

#endif
