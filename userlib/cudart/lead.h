/* SPDX-License-Identifier: MIT */
/* Our runtimes as libpeerlane-cudart.so.0 has them in it: names.c, lead.c */
#ifndef PEERLANE_CUDART_LEAD_H
#define PEERLANE_CUDART_LEAD_H

struct lead_function {
	const char *name;
	void (*at)(void);
};

/* The last one has no name.  Nobody else sees them. */
__attribute__((visibility("hidden")))
extern const struct lead_function lead_functions_12[], lead_functions_13[];

#endif
