// SPDX-License-Identifier: MIT
/* For unit tests: "this machine" is the record that PEERLANE_FAKE_MACHINE names. */
#include <stdlib.h>

#include "facts.h"

int __real_facts_open(struct facts **f, const char *record);
int __wrap_facts_open(struct facts **f, const char *record);

int __wrap_facts_open(struct facts **f, const char *record)
{
	return __real_facts_open(f, record ? record :
				    getenv("PEERLANE_FAKE_MACHINE"));
}
