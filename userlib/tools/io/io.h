/* SPDX-License-Identifier: MIT */
/* peerlane io, inside. */
#ifndef PEERLANE_IO_H
#define PEERLANE_IO_H

#include <stdbool.h>
#include <stdint.h>

enum io_what { READ, WRITE, COPY, CRC };

extern const char *const io_what_name[4];

struct options {
	enum io_what what;
	const char *in, *out;
	int gpu;
	char gpu_reason[512];	/* of near */
	bool near, have_size, direct, unregistered, crc, verify, sync, strict,
	     json, fill;
	uint64_t size, offset, to_offset, gpu_offset, chunk, loops, seed;
};

/* ---- io.c ---- */
/* Does it all, and says what came of it: an exit status. */
int io_run(struct options *o);

#endif
