/* SPDX-License-Identifier: MIT */
/* Requests in an io_uring: ring.c does them, batch.c makes them. */
#ifndef PLN_CUFILE_RING_H
#define PLN_CUFILE_RING_H

#include "io.h"

struct ring_io {
	struct ring_io *next;
	struct io io;
	struct window *window;	/* held */
	char *host;		/* where in it */
	size_t len;
	uint64_t off;		/* in the file */
	/* called by the ring's thread: bytes, or -errno */
	void (*ended)(struct ring_io *r, int res);
};

/* False: no io_uring is to be had, or it is full.  The library is held open. */
bool ring_add(struct ring_io *r);
void ring_shutdown(void);

#endif
