/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane: files and GPU memory.
 *
 * main.c has the calls, memory.c the registered memory, pages.c the struct pages of BAR1
 * where the GPU's driver has none, io.c the files, uring.c IO that nobody waits for.
 * pages.c calls none of the others, memory.c only that, io.c only memory.c, uring.c only
 * io.c.
 */
#ifndef PEERLANE_H
#define PEERLANE_H

#include <linux/completion.h>
#include <linux/linkage.h>
#include <linux/nv-p2p.h>
#include <linux/pid.h>
#include <linux/refcount.h>
#include <linux/uio.h>
#include <linux/xarray.h>

#include <uapi/linux/peerlane.h>

#define PLN_PAGE_SIZE	SZ_64K	/* what nvidia_p2p_get_pages() pins */

/* Bits of struct pln_mem.flags */
enum {
	PLN_MEM_STOPPED,	/* no new IO */
	PLN_MEM_REVOKED,	/* the callback has begun; set before STOPPED */
	PLN_MEM_LEFT,		/* callback or pln_mem_end(): one has left it to the other */
};

/**
 * struct pln_mem - GPU memory that a process has registered
 * @flags: PLN_MEM_*
 * @ios: IO under way, and 1 until the memory is stopped
 * @idle: stopped, and no IO is under way any more
 * @done: the callback does not use this any more
 * @table: the GPU driver's; valid until put, or until the callback has returned
 * @kvec: a segment for each page of @table
 * @pgmap: of these pages
 * @shift: of the size of these pages
 * @va: as registered
 * @size: likewise
 * @process: that registered it; only there can it be put
 * @uid: the user that it is charged to
 *
 * Who finds one in the xarray of a file takes part in @ios under the xarray's
 * lock; pln_mem_end() is called for what is in no xarray, waits for @ios, and
 * frees it, or leaves that to the callback.
 */
struct pln_mem {
	unsigned long flags;
	refcount_t ios;
	struct completion idle;
	struct completion done;
	struct nvidia_p2p_page_table *table;
	struct kvec *kvec;
	struct dev_pagemap *pgmap;
	unsigned int shift;
	u64 va;
	u64 size;
	struct pln_process *process;
	kuid_t uid;
};

/**
 * pln_mem_stopped - is IO with the memory to end?
 * @mem: any
 *
 * Return: 0; -EIDRM: the memory was taken away; -ENOENT: it is being
 * unregistered.
 */
static inline int pln_mem_stopped(const struct pln_mem *mem)
{
	if (!test_bit(PLN_MEM_STOPPED, &mem->flags))
		return 0;
	return test_bit(PLN_MEM_REVOKED, &mem->flags) ? -EIDRM : -ENOENT;
}

/**
 * struct pln_file - an open /dev/peerlane
 * @mems: struct pln_mem, by handle
 */
struct pln_file {
	struct xarray mems;
};

/* What debugfs shows */
struct pln_stats {
	atomic64_t files;
	atomic64_t memories;
	atomic64_t orphans;
	atomic64_t pinned;
	atomic64_t ios;
	atomic64_t read;
	atomic64_t written;
};

/* memory.c */
extern struct pln_stats pln_stats;
extern unsigned int pln_max_pinned_mib;
int pln_gpu_find(void);
u64 pln_user_pinned(kuid_t uid);
bool pln_mem_is_own(const struct pln_mem *mem);
struct pln_mem *pln_mem_register(u64 va, u64 size, u32 *reason);
void pln_mem_end(struct pln_mem *mem);
int pln_mem_io_begin(struct pln_mem *mem);
void pln_mem_io_end(struct pln_mem *mem);

/* pages.c */
int pln_pages_make(const struct pln_mem *mem, phys_addr_t phys);
void pln_pages_exit(void);

/* io.c */
int pln_file_check(struct file *file, struct pln_check *check);
int pln_io_begin(struct pln_file *pf, struct pln_io *io, struct file **file,
		 struct pln_mem **mem);
void pln_io_end(const struct pln_io *io, struct pln_mem *mem);
ssize_t pln_io_done(const struct pln_mem *mem, const struct pln_io *io,
		    ssize_t ret);
int pln_io_result(struct pln_io *io, u64 done, int err);
ssize_t pln_io_chunk(struct file *file, struct pln_mem *mem,
		     const struct pln_io *io, u64 done, struct kiocb *kiocb,
		     struct iov_iter *iter);
int pln_file_io(struct file *file, struct pln_mem *mem, struct pln_io *io);

/* uring.c */
#ifdef PLN_HAVE_URING_CMD
struct io_uring_cmd;
int pln_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);
#define PLN_FEATURES	PLN_FEAT_URING_CMD
#else
#define pln_uring_cmd	NULL
#define PLN_FEATURES	0
#endif

#endif
