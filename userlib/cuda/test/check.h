/* SPDX-License-Identifier: MIT */
/* Checks that say where they failed and go on; a part looks at "failed". */
#ifndef PEERLANE_TEST_CHECK_H
#define PEERLANE_TEST_CHECK_H

#include <stdbool.h>
#include <stdio.h>

static bool failed;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		fflush(stdout);						\
		failed = true;						\
	}								\
} while (0)

#define IS(call, want) do {						\
	CUresult got_ = (call);						\
	if (got_ != (want)) {						\
		printf("# %s:%d: %s: %d, not %s\n", __func__, __LINE__,	\
		       #call, got_, #want);				\
		fflush(stdout);						\
		failed = true;						\
	}								\
} while (0)

#define OK(call)	IS(call, CUDA_SUCCESS)

#endif
