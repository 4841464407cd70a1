/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: the engine's queues, and their rings.
 */
#ifndef _PLN_QUEUE_H
#define _PLN_QUEUE_H

#include <linux/ktime.h>

#include "pln_gpu.h"

struct pln_job;

/**
 * struct pln_queue - one engine queue
 * @lock: guards all below and the queue's registers
 * @jobs: in order; those on the ring come first
 * @stopped: 0, or the errno for jobs given to it; registers are off limits
 * @head: sequence number of the oldest descriptor not known to be done
 * @tail: sequence number of the next descriptor; slot = number modulo size
 * @marks: sequence numbers on the ring that write a completion record
 * @unmarked: bytes and descriptors since the last mark
 * @progress: when the last mark completed; no jiffies, which are old where a
 *	processor that counts them did not run
 */
struct pln_queue {
	struct pln_gpu *gpu;
	unsigned int index;
	void __iomem *regs;
	int irq;
	struct mutex lock;	/* see above */
	struct list_head jobs;
	int stopped;
	u8 *ring;
	dma_addr_t ring_dma;
	u8 *comp;
	dma_addr_t comp_dma;
	u64 head;
	u64 tail;
	u64 *marks;
	unsigned int mark_head;
	unsigned int mark_tail;
	unsigned int unmarked_descs;
	u64 unmarked_bytes;
	ktime_t progress;
	struct delayed_work watchdog;
	u64 nr_jobs;
	u64 nr_recovered;
	char name[32];
};

/* ring.c */
#define PLN_RING_SIZE		512		/* descriptors, 2^n */
#define PLN_PIECE		(64ULL << 20)	/* bytes of one descriptor */

static inline u32 pln_slot(u64 seq)
{
	return seq & (PLN_RING_SIZE - 1);
}

static inline u32 pln_q_rd(struct pln_queue *q, u32 reg)
{
	return readl(q->regs + reg);
}

int pln_hw_stop(struct pln_queue *q);
int pln_hw_start(struct pln_queue *q);
void pln_emit(struct pln_queue *q, struct pln_job *job);
void pln_next_op(struct pln_job *job);

/* queue.c */
int pln_queues_init(struct pln_gpu *gpu);
void pln_queues_fini(struct pln_gpu *gpu);
void pln_queues_stop(struct pln_gpu *gpu, int err);
int pln_queues_start(struct pln_gpu *gpu);
int pln_queue_submit(struct pln_queue *q, struct pln_job *job);
void pln_queue_kick(struct pln_queue *q);

#endif /* _PLN_QUEUE_H */
