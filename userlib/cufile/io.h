/* SPDX-License-Identifier: MIT */
/* A request on its way, and why it goes the way it goes: io.c and verdict.c. */
#ifndef PLN_CUFILE_IO_H
#define PLN_CUFILE_IO_H

#include "../core/errname.h"
#include "internal.h"

/* One request on its way. */
struct io {
	struct file *f;
	struct mem mem;
	bool write;
	bool untried;		/* p2p, by anybody */
	int since;		/* from log_kernel_now(), or -1 */
	uint64_t bytes[PLN_PATH_SLOTS];
	int reason_errno;
	char reason[PLN_FILE_REASON_MAX];
};

/* What is known of p2p between a storage device and a GPU. */
enum state { UNKNOWN, WORKS, REFUSED };

/* Why p2p is not what moves the data of a whole transfer.  NO_ROOM for a
 * mapping, and SHORTAGE of what the system call needs: for now. */
enum cause { POSSIBLE, SETTING, MANAGED, NO_DIRECT, ALIGNMENT, PAIR, MEMORY,
	     NO_ROOM, SHORTAGE };

/* Of io's device and GPU; io has the reason of what is refused. */
enum state verdict_ask(struct io *io);
void verdict_set(struct io *io, enum state state);
/* io's reason is one of this cause: told once for each device and GPU. */
void verdict_tell(struct io *io, enum cause cause);
/* io's reason, with an errno or 0. */
void io_because(struct io *io, int err, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* Adds to io's reason what the kernel says of a refusal. */
void verdict_kernel_says(struct io *io);

#endif
