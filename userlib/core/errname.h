/* SPDX-License-Identifier: MIT */
#ifndef PEERLANE_CORE_ERRNAME_H
#define PEERLANE_CORE_ERRNAME_H

#include <string.h>

/* The kernel's own; drivers let it out where they mean EOPNOTSUPP */
#define ENOTSUPP	524

/* The name of an errno, "?" where there is none */
static inline const char *errname(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : err == ENOTSUPP ? "ENOTSUPP" : "?";
}

#endif
