/* SPDX-License-Identifier: MIT */
/* peerlane stats PID, --all */
#ifndef PEERLANE_PROCS_H
#define PEERLANE_PROCS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procs_options {
	pid_t pid;		/* 0: all */
	bool json;
	const char *prometheus;	/* a file instead of text, or NULL */
	uint64_t watch;		/* seconds between looks; 0: one look */
	uint64_t looks;		/* with watch: no more of them, 0: no end */
};

int procs_stats(const struct procs_options *o);

#endif
