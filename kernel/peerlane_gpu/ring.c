// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: the ring of an engine queue, as the device sees it:
 * started, stopped, and filled with the descriptors of jobs.
 */
#include <linux/iopoll.h>

#include "job.h"
#include "queue.h"

#define PLN_MARK_DESCS		128		/* a mark at least so often */
#define PLN_MARK_BYTES		(256ULL << 20)
#define PLN_STOP_US		1000000

static void pln_q_wr64(struct pln_queue *q, u32 reg, u64 val)
{
	writel(lower_32_bits(val), q->regs + reg);
	writel(upper_32_bits(val), q->regs + reg + 4);
}

static void pln_desc_wr32(u8 *desc, unsigned int at, u32 val)
{
	*(__le32 *)(desc + at) = cpu_to_le32(val);
}

static void pln_desc_wr64(u8 *desc, unsigned int at, u64 val)
{
	*(__le64 *)(desc + at) = cpu_to_le64(val);
}

/* Stop the device's queue; 0: it does no DMA any more */
int pln_hw_stop(struct pln_queue *q)
{
	u32 status;
	int ret;

	writel(PLN_Q_CTRL_RESET, q->regs + PLN_Q_CTRL);
	ret = readl_poll_timeout(q->regs + PLN_Q_STATUS, status,
				 status == PLN_Q_DISABLED || status == U32_MAX,
				 50, PLN_STOP_US);
	return status == U32_MAX ? -ENODEV : ret;
}

/* The ring is empty; start it at its beginning */
int pln_hw_start(struct pln_queue *q)
{
	unsigned int vector = 0;
	u32 status;

	q->head = round_up(q->tail, PLN_RING_SIZE);
	q->tail = q->head;
	q->mark_head = 0;
	q->mark_tail = 0;
	q->unmarked_bytes = 0;
	q->unmarked_descs = 0;
	if (q->gpu->nr_vectors > 1)
		vector = 1 + q->index % (q->gpu->nr_vectors - 1);

	pln_q_wr64(q, PLN_Q_BASE, q->ring_dma);
	writel(PLN_RING_SIZE, q->regs + PLN_Q_SIZE);
	writel(vector, q->regs + PLN_Q_VECTOR);
	writel(PLN_Q_CTRL_ENABLE, q->regs + PLN_Q_CTRL);
	status = pln_q_rd(q, PLN_Q_STATUS);
	if (status == PLN_Q_IDLE)
		return 0;
	dev_err(&q->gpu->pdev->dev,
		"queue %u does not start (status %#x, error %u); the device needs a reset\n",
		q->index, status, pln_q_rd(q, PLN_Q_ERROR_CODE));
	return -EIO;
}

/* A piece of the current operation: as much as one descriptor takes */
static void pln_emit_piece(struct pln_job *job, u8 *desc, u64 *bytes)
{
	struct pln_jop *jop = &job->ops[job->op];
	const struct pln_gpu_op *op = &jop->op;
	u64 len = min(op->len - job->off, PLN_PIECE);
	u64 src = 0, dst = 0, bus = 0;
	u32 flags = 0;

	if (jop->pin) {
		if (!job->sg) {
			job->sg = jop->pin->sgt.sgl;
			job->sg_off = 0;
		}
		bus = sg_dma_address(job->sg) + job->sg_off;
		len = min_t(u64, len, sg_dma_len(job->sg) - job->sg_off);
		job->sg_off += len;
		if (job->sg_off == sg_dma_len(job->sg)) {
			job->sg = sg_next(job->sg);
			job->sg_off = 0;
		}
	}

	if (jop->src)
		src = jop->src->vram + op->src + job->off;
	if (jop->dst)
		dst = jop->dst->vram + op->dst + job->off;
	if (op->flags & PLN_GPU_OP_F_SRC_USER) {
		src = bus;
		flags |= PLN_DESC_F_SRC_BUS;
	}
	if (op->flags & PLN_GPU_OP_F_DST_USER) {
		dst = bus;
		flags |= PLN_DESC_F_DST_BUS;
	}

	memset(desc, 0, PLN_DESC_SIZE);
	pln_desc_wr32(desc, PLN_DESC_OPCODE, op->opcode);
	pln_desc_wr32(desc, PLN_DESC_FLAGS, flags);
	pln_desc_wr32(desc, PLN_DESC_ARG, op->arg);
	pln_desc_wr64(desc, PLN_DESC_SRC, src);
	pln_desc_wr64(desc, PLN_DESC_DST, dst);
	pln_desc_wr64(desc, PLN_DESC_LEN, len);
	if (op->opcode == PLN_GPU_OP_CRC32C)
		pln_desc_wr64(desc, PLN_DESC_IMM, job->off ? job->crc : op->imm);
	else
		pln_desc_wr64(desc, PLN_DESC_IMM, op->imm);

	job->off += len;
	*bytes = len;
}

static void pln_emit_nop(u8 *desc)
{
	memset(desc, 0, PLN_DESC_SIZE);
	pln_desc_wr32(desc, PLN_DESC_OPCODE, PLN_OP_NOP);
}

void pln_next_op(struct pln_job *job)
{
	job->op++;
	job->off = 0;
	job->sg = NULL;
	job->sg_off = 0;
}

static bool pln_has_result(u32 opcode)
{
	return opcode == PLN_GPU_OP_CRC32C || opcode == PLN_GPU_OP_COMPARE;
}

/* The next descriptor of a job; there is room for it */
void pln_emit(struct pln_queue *q, struct pln_job *job)
{
	u64 seq = q->tail, bytes = 0;
	u32 slot = pln_slot(seq);
	u8 *desc = q->ring + slot * PLN_DESC_SIZE;
	bool mark = false;
	u32 opcode;

	if (job->cancelled || job->op >= job->nr_ops) {
		/* Cut short: a mark tells when what is on the ring is done */
		pln_emit_nop(desc);
		job->emitted = true;
	} else if (job->ops[job->op].op.opcode == PLN_GPU_OP_NOP) {
		pln_emit_nop(desc);
		pln_next_op(job);
	} else {
		opcode = job->ops[job->op].op.opcode;
		pln_emit_piece(job, desc, &bytes);
		if (pln_has_result(opcode)) {
			/* Go on when it is known */
			job->wait_seq = seq;
			mark = true;
		} else if (job->off == job->ops[job->op].op.len) {
			pln_next_op(job);
		}
	}
	if (job->op == job->nr_ops)
		job->emitted = true;

	q->unmarked_descs++;
	q->unmarked_bytes += bytes;
	if (mark || job->emitted || q->unmarked_descs >= PLN_MARK_DESCS ||
	    q->unmarked_bytes >= PLN_MARK_BYTES) {
		u8 *comp = q->comp + slot * PLN_COMP_SIZE;

		memset(comp, 0, PLN_COMP_SIZE);
		pln_desc_wr32(desc, PLN_DESC_FLAGS,
			      le32_to_cpu(*(__le32 *)(desc + PLN_DESC_FLAGS)) |
			      PLN_DESC_F_COMP | PLN_DESC_F_IRQ |
			      (q->gpu->has_time ? PLN_DESC_F_TIME : 0));
		pln_desc_wr64(desc, PLN_DESC_COMP,
			      q->comp_dma + slot * PLN_COMP_SIZE);
		pln_desc_wr64(desc, PLN_DESC_FENCE, seq);
		q->marks[q->mark_tail++ % PLN_RING_SIZE] = seq;
		q->unmarked_descs = 0;
		q->unmarked_bytes = 0;
	}

	if (!job->started) {
		job->started = true;
		job->first = seq;
	}
	job->last = seq;
	q->tail = seq + 1;
}
