/* SPDX-License-Identifier: MIT */
/* A request on its way, and why it goes the way it goes: io.c, its back ends and
 * verdict.c. */
#ifndef PLN_CUFILE_IO_H
#define PLN_CUFILE_IO_H

#include "../core/errname.h"
#include "internal.h"

/* What is known of a path between a storage device and a GPU. */
enum state { UNKNOWN, WORKS, REFUSED };

/* One request on its way. */
struct io {
	struct file *f;
	struct mem mem;
	bool write;
	unsigned int way;	/* PLN_PATH_P2P, or PLN_PATH_KERNEL */
	enum state state;	/* of it, as this request has it */
	uint32_t tries;		/* bits: paths that were refused, and this request tries again */
	uint64_t file_size;	/* as leads_to_size() has it: p2p reads no block behind it */
	uint32_t unit;		/* of p2p's whole blocks; 0: it was not asked */
	bool registered;	/* what p2p passes on is for kernel_move() */
	struct {
		struct window *w;	/* of its first piece; NULL: none */
		size_t avail;
		bool fresh;
	} handed;
	bool part;		/* what they pass on is for p2p_part() */
	bool gave_eio;		/* p2p, for what it passes on: nobody's other errno counts */
	bool no_pages;		/* of mappings: the module was asked */
	int since;		/* from log_kernel_now(), or -1 */
	uint64_t bytes[PLN_PATH_SLOTS];
	int reason_errno;
	char reason[PLN_FILE_REASON_MAX];
	struct no_window why;	/* what the reason would say, if it is late */
	bool late;
	uint64_t reason_id;	/* the same for the same reason, 0: one of a kind */
	bool same;		/* all accounts have it: it was not put into words */
	const char *module_says; /* of the latest IO that failed, or NULL */
	bool file_refused;	/* it would do it with another file of the device */
	bool request_refused;	/* it would do another one of this file */
	bool device_refused;	/* by the module, whatever the file */
	char no_cache[PLN_FILE_REASON_MAX / 4]; /* why what is staged did not go so */
	struct pln_file_result *now;	/* for the program */
	uint32_t no_cache_id;	/* as reason_id */
	const char *no_cache_words; /* if set, instead of no_cache: always the same ones */
	bool no_lease;		/* which are why there is no lease */
	bool no_cache_quick;	/* so cache_quick() found: cache_move() need not look */
};

/* Why p2p is not what moves the data of a whole transfer.  NO_ROOM for a
 * mapping, and SHORTAGE of what the system call needs: for now. */
enum cause { POSSIBLE, SETTING, MANAGED, NO_DIRECT, ALIGNMENT, PAIR, MEMORY,
	     NO_ROOM, SHORTAGE };

/* Of a path, and io's device and GPU; io has the reason of what is refused.  A refusal that
 * has held long enough is UNKNOWN, until a request tries the path. */
enum state verdict_ask(struct io *io, unsigned int path);
/* Is it a refusal that holds at @now, in seconds?  Without a lock. */
bool verdict_refused(const struct io *io, unsigned int path, time_t now);
/* The same, by who tries at once what is UNKNOWN: of a refusal, one request does. */
enum state verdict_try(struct io *io, unsigned int path);
/* Who was to try could not: the next one does, and the refusal holds no longer for that. */
void verdict_not_tried(struct io *io, unsigned int path);
void verdict_set(struct io *io, unsigned int path, enum state state);
/* It need not be told again: nobody will read io's reason for that. */
bool verdict_told(const struct io *io, enum cause cause);
/* io's reason is one of this cause: told once for each device and GPU. */
void verdict_tell(struct io *io, enum cause cause);
/* io's reason, with an errno or 0. */
void io_because(struct io *io, int err, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/*
 * What the program gets for a system call that failed after @done bytes from @off on:
 * those bytes, as from read(2) and write(2), or the error.  The next call then meets
 * it.
 */
ssize_t io_system_error(struct io *io, int err, uint64_t off, size_t done);
ssize_t io_cuda_error(struct io *io, CUresult r);
/* The result of a transfer of which @done bytes went before this part of it. */
ssize_t io_after(size_t done, ssize_t r);
/* What was not said in words, as it had been before, is now. */
void p2p_say_late(struct io *io);
struct ring_io;
struct io_uring_sqe;

/*
 * At @now, in seconds, neither p2p_move() nor kernel_move() would move any of this read:
 * without a lock, so they may have to be asked all the same.
 */
bool p2p_is_out(const struct io *io, uint64_t dev, uint64_t off, size_t len, time_t now);

/* Back ends: see move_fn in io.c. */
ssize_t p2p_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		 size_t *pass);
ssize_t kernel_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		    size_t *pass);
/* Behind these: of what they pass on for its place in blocks, if by_scratch(). */
ssize_t p2p_part(struct io *io, uint64_t dev, uint64_t off, size_t len,
		 size_t *pass);
/* Before all others, where those are out: all of it, or nothing and false. */
bool cache_quick(struct io *io, uint64_t dev, uint64_t off, size_t len);
ssize_t cache_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		   size_t *pass);
/* As p2p would, but with host memory; *@err: what ended it, or 0. */
ssize_t bounce_probe(struct io *io, uint64_t dev, uint64_t off, size_t len,
		     int *err);
/*
 * Is io's file on a drive of NVMe over Fabrics whose RDMA device cannot reach io's GPU,
 * or of which that is not known?  A request would never end.  1: yes; 0: no; or -errno: files or
 * memory have run out, and nobody could look.
 */
int fabric_stops(const struct io *io, char *why, size_t size);
/* As read(2) and write(2), by the kernel module; @at: in the memory of @handle. */
ssize_t module_move(struct io *io, uint32_t handle, uint64_t at, uint64_t off,
		    size_t len);
/* And by the ring; @at: in the memory of its window. */
void module_queue(struct ring_io *r, uint64_t at, struct io_uring_sqe *sqe);
/* And what some of them put into the ring, when io_plan() was for it: see queue_fn there. */
void p2p_queue(struct ring_io *r, struct io_uring_sqe *sqe);
void kernel_queue(struct ring_io *r, struct io_uring_sqe *sqe);
/* By that of @r's way. */
void io_queue(struct ring_io *r, struct io_uring_sqe *sqe);
/*
 * Can p2p or the kernel module move it in one piece, between a device and a GPU of which
 * that is known to work?  Then *@w is held, and io's way is which.
 */
bool io_plan(struct io *io, uint64_t addr, size_t size, uint64_t off,
	     struct window **w);
/*
 * Has a request that p2p was to move failed for what no other way could do?  Then
 * errno is what the program gets.
 */
bool io_failed(struct io *io, int err, uint64_t off);
/* It is done, or has failed: for the accounts. */
void io_account(struct io *io, size_t size, uint64_t off, ssize_t result,
		uint64_t began);
/* Adds to io's reason what the kernel says of a refusal. */
void verdict_kernel_says(struct io *io);

#endif
