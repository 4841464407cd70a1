/* SPDX-License-Identifier: MIT */
/* Checks that say where they failed and go on; a part looks at "failed". */
#ifndef PEERLANE_TEST_CHECK_H
#define PEERLANE_TEST_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "ktap.h"

/* One in each program, however many files it has */
__attribute__((weak)) bool failed;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		fflush(stdout);						\
		failed = true;						\
	}								\
} while (0)

/* A result of the driver or of the runtime */
#define IS(call, want) do {						\
	__typeof__(call) got_ = (call);					\
	if (got_ != (want)) {						\
		printf("# %s:%d: %s: %d, not %s\n", __func__, __LINE__,	\
		       #call, (int)got_, #want);			\
		fflush(stdout);						\
		failed = true;						\
	}								\
} while (0)

#define OK(call)	IS(call, 0)

/* One line of the report: did all checks of @call hold? */
#define TEST(what, call) do {						\
	failed = false;							\
	call;								\
	ktap(!failed, "%s", what);					\
} while (0)

#endif
