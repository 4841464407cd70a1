/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: jobs for the engine.
 */
#ifndef _PLN_JOB_H
#define _PLN_JOB_H

#include "pln_gpu.h"

/* User memory of one operation: the pages that are pinned */
struct pln_pin {
	struct page **pages;
	unsigned long nr_pages;
	struct sg_table sgt;
	enum dma_data_direction dir;
	bool mapped;
};

/**
 * struct pln_jop - an operation, and what it holds until the job has ended
 * @src: GPU memory with a reference and a use (buf->users), or NULL
 * @dst: likewise
 * @pin: user memory, or NULL
 */
struct pln_jop {
	struct pln_gpu_op op;
	struct pln_buf *src;
	struct pln_buf *dst;
	struct pln_pin *pin;
};

/**
 * struct pln_job - operations given to a queue at once
 *
 * References: of the file's array until somebody has waited, of the call that
 * submits, of the queue until the job has ended, and of the parked jobs.  From when
 * it is submitted until it has ended the queue alone changes it, under the queue's
 * lock; only @cancelled is set by others.
 *
 * @gpu: with a reference to its device
 * @file: with a reference
 * @node: in a queue, then maybe in the list of parked jobs
 * @done: completed when the device has no more to do with it, and its user memory
 *	is let go
 * @pinned: bytes of user memory that count for the limits; pln_pin_lock guards it
 * @uid: who has them pinned
 * @mm: with a reference, while @pinned is not 0: its pinned_vm counts them too
 * @pinned_node: likewise, in the list of jobs that have some
 * @op: cursor: next operation to put on the ring
 * @off: bytes of it on the ring
 * @sg: segment of its user memory to go on with, and @sg_off in it
 * @first: sequence number of the first descriptor
 * @last: of the latest
 * @time_ns: when the engine ended it, 0 if it did not, or does not tell
 * @wait_seq: of the descriptor whose result decides how to go on, else 0
 */
struct pln_job {
	struct kref kref;
	struct pln_gpu *gpu;
	struct pln_file *file;		/* NULL: the driver's own job */
	struct list_head node;
	struct completion done;
	bool started;
	bool emitted;			/* all of it is on the ring */
	bool cancelled;
	unsigned int op;
	u64 off;
	struct scatterlist *sg;
	unsigned int sg_off;
	u64 first;
	u64 last;
	u64 wait_seq;
	u64 crc;
	u64 result;
	u64 time_ns;
	int status;
	u32 error;
	u64 pinned;
	kuid_t uid;
	struct mm_struct *mm;
	struct list_head pinned_node;
	unsigned int nr_ops;
	struct pln_jop ops[] __counted_by(nr_ops);
};

extern unsigned int pln_watchdog_ms;
struct pln_job *pln_job_alloc(struct pln_gpu *gpu, unsigned int nr_ops);
struct pln_job *pln_job_build(struct pln_file *file, struct pln_gpu_op *ops,
			      unsigned int nr_ops);
int pln_job_bind(struct pln_job *job);
void pln_job_get(struct pln_job *job);
void pln_job_put(struct pln_job *job);
void pln_job_release(struct pln_job *job);
void pln_job_finish(struct pln_job *job);
void pln_pins_wake(void);
int pln_job_setup(void);
void pln_job_cleanup(void);

#endif /* _PLN_JOB_H */
