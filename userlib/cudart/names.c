// SPDX-License-Identifier: MIT
/* Each function of this runtime by its name; names.inc is made by the Makefile */
#include <stddef.h>

#include "lead.h"

#define N(name)	void name(void);
#include "names.inc"
#undef N

#define JOIN_(a, b)	a##b
#define JOIN(a, b)	JOIN_(a, b)
const struct lead_function JOIN(lead_functions_, CUDART_MAJOR)[] = {
#define N(name)	{ #name, name },
#include "names.inc"
	{ NULL, NULL },
};
