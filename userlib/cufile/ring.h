/* SPDX-License-Identifier: MIT */
/* Requests in an io_uring: ring.c does them, batch.c and async.c make them. */
#ifndef PLN_CUFILE_RING_H
#define PLN_CUFILE_RING_H

#include <linux/peerlane.h>

#include "io.h"

struct ring_io {
	struct ring_io *next;
	struct io io;
	struct window *window;	/* held */
	uint64_t dev;		/* where in it, as the GPU has it */
	size_t len;
	uint64_t off;		/* in the file */
	size_t done;		/* bytes that a thread need not move any more */
	uint64_t began;		/* for the accounts */
	struct pln_io module;	/* of the kernel path: the module reads it until it ends */
	/* called by the ring's thread: bytes, or -errno */
	void (*ended)(struct ring_io *r, int res);
};

/*
 * By p2p or the kernel module, in one piece; @r->ended() is called then.  False: not so, or there is no
 * io_uring, or it is full.  The library and the file are held.
 */
bool ring_move(struct ring_io *r, struct file *f, const void *base, size_t size,
	       off_t off, off_t buf_off, bool write);
/*
 * In ended(), with its @res.  True: *@result is bytes, or -1 with errno, as @now has
 * them.  False: a thread is to do what is behind @r->done; another way may do it.
 */
bool ring_result(struct ring_io *r, int res, struct pln_file_result *now,
		 ssize_t *result);
void ring_shutdown(void);

#endif
