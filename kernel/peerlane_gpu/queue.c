// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: the jobs of engine queues.
 *
 * A queue has a ring in host memory.  Jobs wait in a list and are put on the
 * ring piece by piece, as there is room.  Some descriptors are *marks*: they
 * write a completion record and raise an interrupt.  Marks are the last
 * descriptor of a job, those with a result, and one in so many of a long job.
 * Interrupts only say when to look: a lost one costs time, because the
 * watchdog looks too.  When the oldest mark does not come in time, or the
 * device reports an error, the queue is stopped, it is worked out which jobs
 * have run, the guilty one fails, and those that have not begun run again.
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>

#include "job.h"
#include "queue.h"

#define PLN_POLL_MS		20

/* A job has ended: take it off the queue, and tell who waits when unlocked */
static void pln_job_end(struct pln_queue *q, struct pln_job *job, int status,
			u32 error, struct list_head *ended)
{
	job->status = status;
	job->error = error;
	q->nr_jobs++;
	list_move_tail(&job->node, ended);
}

static void pln_jobs_ended(struct list_head *ended)
{
	struct pln_job *job, *tmp;

	list_for_each_entry_safe(job, tmp, ended, node) {
		list_del_init(&job->node);
		pln_job_finish(job);
		pln_job_put(job);
	}
}

static void pln_pump(struct pln_queue *q, struct list_head *ended)
{
	struct pln_job *job, *tmp;
	u64 tail = q->tail;
	bool was_empty = q->mark_head == q->mark_tail;

	list_for_each_entry_safe(job, tmp, &q->jobs, node) {
		if (job->cancelled && !job->started) {
			pln_job_end(q, job, -ECANCELED, 0, ended);
			continue;
		}
		while (!job->emitted && !job->wait_seq &&
		       q->tail - q->head < PLN_RING_SIZE - 1)
			pln_emit(q, job);
		if (!job->emitted)
			break;
	}

	if (q->tail == tail)
		return;
	if (was_empty)
		q->progress = ktime_get();
	/* What peers wrote before is visible to the work that begins now */
	if (q->gpu->late_writes)
		pln_wr(q->gpu, PLN_REG_BAR1_FLUSH, 1);
	/* writel() orders the ring before the doorbell */
	writel(pln_slot(q->tail), q->regs + PLN_Q_TAIL);
}

/* The engine has done all of a job, whose last completion record is there */
static void pln_job_done(struct pln_queue *q, struct pln_job *job, int status,
			 struct list_head *ended)
{
	u8 *comp = q->comp + pln_slot(job->last) * PLN_COMP_SIZE;

	if (!status && q->gpu->has_time)
		job->time_ns = le64_to_cpu(*(__le64 *)(comp + PLN_COMP_TIME));
	pln_job_end(q, job, status, 0, ended);
}

/* A descriptor with a result is done: how does its job go on? */
static void pln_job_result(struct pln_job *job, u64 result)
{
	const struct pln_gpu_op *op = &job->ops[job->op].op;

	job->wait_seq = 0;
	if (op->opcode == PLN_GPU_OP_CRC32C) {
		job->crc = result;
		job->result = result;
	} else if (result == PLN_COMPARE_EQUAL) {
		job->result = PLN_GPU_COMPARE_EQUAL;
	} else {
		/* The first difference is known: the rest does not matter */
		u64 piece = (job->off - 1) / PLN_PIECE * PLN_PIECE;

		job->result = piece + result;
		job->off = op->len;
	}
	if (job->off == op->len)
		pln_next_op(job);
}

/* Take in what the device has completed; returns whether there was any */
static bool pln_retire(struct pln_queue *q, struct list_head *ended)
{
	bool any = false;

	while (q->mark_head != q->mark_tail) {
		u64 seq = q->marks[q->mark_head % PLN_RING_SIZE];
		u8 *comp = q->comp + pln_slot(seq) * PLN_COMP_SIZE;
		struct pln_job *job;

		if (le64_to_cpu(READ_ONCE(*(__le64 *)(comp + PLN_COMP_FENCE))) !=
		    seq)
			break;
		dma_rmb();
		/* Errors are for recovery, which knows their place */
		if (*(__le32 *)(comp + PLN_COMP_STATUS))
			break;

		q->mark_head++;
		q->head = seq + 1;
		q->progress = ktime_get();
		any = true;

		job = list_first_entry_or_null(&q->jobs, struct pln_job, node);
		if (WARN_ON_ONCE(!job))
			break;
		if (job->wait_seq == seq) {
			pln_job_result(job, le64_to_cpu(*(__le64 *)(comp +
							PLN_COMP_RESULT)));
			job->emitted = job->op == job->nr_ops;
		}
		if (job->emitted && job->last == seq)
			pln_job_done(q, job, job->cancelled ? -ECANCELED : 0,
				     ended);
	}
	return any;
}

/*
 * Make sure that the queue does no DMA any more.  What cannot be stopped, or does
 * not answer, loses the bus; then the jobs' memory may be let go.
 */
static int pln_queue_quiet(struct pln_queue *q, const char *why)
{
	if (!why && !pln_hw_stop(q))
		return 0;
	pci_clear_master(q->gpu->pdev);
	return pln_gpu_die(q->gpu, why ? why : "an engine queue cannot be stopped");
}

static void pln_fail_all(struct pln_queue *q, int err, struct list_head *ended)
{
	struct pln_job *job, *tmp;

	list_for_each_entry_safe(job, tmp, &q->jobs, node)
		pln_job_end(q, job, err, 0, ended);
	q->mark_head = q->mark_tail;
}

static void pln_job_rewind(struct pln_job *job)
{
	job->op = 0;
	pln_next_op(job);
	job->op = 0;
	job->started = false;
	job->emitted = false;
	job->wait_seq = 0;
	job->result = 0;
}

static const char *pln_error_name(u32 code)
{
	return code < PLN_NUM_ERRORS ? pln_error_names[code] : "unknown";
}

static bool pln_mark_done(struct pln_queue *q, u64 seq)
{
	u8 *comp = q->comp + pln_slot(seq) * PLN_COMP_SIZE;

	if (le64_to_cpu(READ_ONCE(*(__le64 *)(comp + PLN_COMP_FENCE))) != seq)
		return false;
	dma_rmb();
	return !*(__le32 *)(comp + PLN_COMP_STATUS);
}

/* A job behind the one whose completion is missing: is it done all the same? */
static bool pln_job_late(struct pln_queue *q, struct pln_job *job)
{
	u8 *comp = q->comp + pln_slot(job->last) * PLN_COMP_SIZE;

	if (!(job->emitted || job->wait_seq) || !pln_mark_done(q, job->last))
		return false;
	if (job->wait_seq == job->last)
		pln_job_result(job, le64_to_cpu(*(__le64 *)(comp +
							PLN_COMP_RESULT)));
	return job->op == job->nr_ops;
}

static void pln_job_fail(struct pln_queue *q, struct pln_job *job, u32 code,
			 struct list_head *ended)
{
	dev_warn_ratelimited(&q->gpu->pdev->dev,
			     "queue %u: job failed with device error %u (%s)\n",
			     q->index, code, pln_error_name(code));
	pln_job_end(q, job, -EIO, code, ended);
}

static void pln_job_expire(struct pln_queue *q, struct pln_job *job,
			   struct list_head *ended)
{
	dev_warn_ratelimited(&q->gpu->pdev->dev,
			     "queue %u: no completion within %u ms, job given up; if the work was only slow, raise the module parameter watchdog_ms\n",
			     q->index, pln_watchdog_ms);
	pln_job_end(q, job, -ETIMEDOUT, 0, ended);
}

/*
 * The queue has halted with an error, or makes no progress.  Descriptors run
 * in order, so the place where the device stopped divides the jobs.
 */
static void pln_recover(struct pln_queue *q, bool halted,
			struct list_head *ended)
{
	struct pln_job *job, *tmp;
	u32 code, at;
	u64 stop;

	at = pln_q_rd(q, halted ? PLN_Q_ERROR_INDEX : PLN_Q_HEAD);
	code = halted ? pln_q_rd(q, PLN_Q_ERROR_CODE) : 0;
	q->stopped = pln_queue_quiet(q, at == U32_MAX ? "it does not answer" : NULL);
	if (q->stopped) {
		pln_fail_all(q, q->stopped, ended);
		return;
	}
	/* The device is quiet now: what it wrote before counts */
	pln_retire(q, ended);

	stop = q->head + ((at - pln_slot(q->head)) & (PLN_RING_SIZE - 1));
	list_for_each_entry_safe(job, tmp, &q->jobs, node) {
		if (!job->started)
			break;
		if (pln_job_late(q, job))
			pln_job_done(q, job, 0, ended);
		else if (job->first > stop)
			pln_job_rewind(job);
		else if (halted && job->last >= stop)
			pln_job_fail(q, job, code, ended);
		else
			pln_job_expire(q, job, ended);
	}

	q->nr_recovered++;
	if (pln_hw_start(q)) {
		q->stopped = pln_gpu_die(q->gpu,
					 "an engine queue does not start again");
		pln_fail_all(q, q->stopped, ended);
	}
}

static bool pln_head_failed(struct pln_queue *q)
{
	u64 seq = q->marks[q->mark_head % PLN_RING_SIZE];
	u8 *comp = q->comp + pln_slot(seq) * PLN_COMP_SIZE;

	return le64_to_cpu(READ_ONCE(*(__le64 *)(comp + PLN_COMP_FENCE))) ==
		seq && *(__le32 *)(comp + PLN_COMP_STATUS);
}

static void pln_process(struct pln_queue *q, bool check_status)
{
	LIST_HEAD(ended);
	bool halted, late;
	u32 status;

	mutex_lock(&q->lock);
	if (q->stopped)
		goto out;
	pln_retire(q, &ended);

	if (q->mark_head != q->mark_tail) {
		late = ktime_ms_delta(ktime_get(), q->progress) >
			READ_ONCE(pln_watchdog_ms);
		halted = pln_head_failed(q);
		if (halted || late || check_status) {
			status = pln_q_rd(q, PLN_Q_STATUS);
			if (status == U32_MAX) {
				q->stopped = pln_queue_quiet(q, "it does not answer");
				pln_fail_all(q, q->stopped, &ended);
				goto out;
			}
			halted = status == PLN_Q_ERROR;
		}
		if (halted || late)
			pln_recover(q, halted, &ended);
	}
	if (!q->stopped)
		pln_pump(q, &ended);
	if (!q->stopped && !list_empty(&q->jobs))
		queue_delayed_work(q->gpu->wq, &q->watchdog,
				   msecs_to_jiffies(PLN_POLL_MS));
out:
	mutex_unlock(&q->lock);
	pln_jobs_ended(&ended);
}

static void pln_watchdog(struct work_struct *work)
{
	pln_process(container_of(to_delayed_work(work), struct pln_queue,
				 watchdog), true);
}

static irqreturn_t pln_queue_irq(int irq, void *data)
{
	struct pln_queue *q = data;

	pln_process(q, false);
	return IRQ_HANDLED;
}

/* Vector 0: a queue has halted */
static irqreturn_t pln_device_irq(int irq, void *data)
{
	struct pln_gpu *gpu = data;
	unsigned int i;

	for (i = 0; i < gpu->num_queues; i++)
		pln_process(&gpu->queues[i], true);
	return IRQ_HANDLED;
}

/* Something about the queue's jobs has changed */
void pln_queue_kick(struct pln_queue *q)
{
	pln_process(q, false);
}

/* The queue takes a reference of its own, and ends the job in any case */
int pln_queue_submit(struct pln_queue *q, struct pln_job *job)
{
	int ret;

	mutex_lock(&q->lock);
	ret = q->stopped;
	if (!ret) {
		pln_job_get(job);
		list_add_tail(&job->node, &q->jobs);
	}
	mutex_unlock(&q->lock);
	if (!ret)
		pln_process(q, false);
	return ret;
}

/* No DMA by the engine after this: all jobs fail, new ones are refused */
void pln_queues_stop(struct pln_gpu *gpu, int err)
{
	unsigned int i;

	for (i = 0; i < gpu->num_queues; i++) {
		struct pln_queue *q = &gpu->queues[i];
		LIST_HEAD(ended);

		mutex_lock(&q->lock);
		/* Without the bus there is nothing to wait for */
		if (!q->stopped && gpu->pdev->is_busmaster)
			pln_queue_quiet(q, NULL);
		q->stopped = err;
		pln_fail_all(q, err, &ended);
		mutex_unlock(&q->lock);
		pln_jobs_ended(&ended);
		cancel_delayed_work_sync(&q->watchdog);
	}
}

/*
 * The queues are stopped for jobs.  The device gets the bus when none of them has
 * work of before: what that would write to belongs to others now.
 */
int pln_queues_start(struct pln_gpu *gpu)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < gpu->num_queues && !ret; i++) {
		struct pln_queue *q = &gpu->queues[i];

		mutex_lock(&q->lock);
		ret = pln_hw_stop(q);
		mutex_unlock(&q->lock);
	}
	if (!ret)
		pci_set_master(gpu->pdev);
	for (i = 0; i < gpu->num_queues && !ret; i++) {
		struct pln_queue *q = &gpu->queues[i];

		mutex_lock(&q->lock);
		ret = pln_hw_start(q);
		q->stopped = ret;
		mutex_unlock(&q->lock);
	}
	if (ret)
		pci_clear_master(gpu->pdev);
	return ret;
}

static int pln_request_irqs(struct pln_gpu *gpu)
{
	struct pci_dev *pdev = gpu->pdev;
	unsigned int i;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, 1, 1 + gpu->num_queues,
				    PCI_IRQ_MSIX);
	if (ret < 0) {
		dev_warn(&pdev->dev,
			 "no MSI-X vectors (%pe): completions are polled, which is slow\n",
			 ERR_PTR(ret));
		return 0;
	}
	gpu->nr_vectors = ret;

	gpu->irq = pci_irq_vector(pdev, 0);
	ret = request_threaded_irq(gpu->irq, NULL, pln_device_irq,
				   IRQF_ONESHOT, dev_name(&gpu->dev), gpu);
	if (ret) {
		gpu->irq = 0;
		return ret;
	}
	for (i = 0; i < gpu->num_queues && i + 1 < gpu->nr_vectors; i++) {
		struct pln_queue *q = &gpu->queues[i];

		snprintf(q->name, sizeof(q->name), "%s-q%u",
			 dev_name(&gpu->dev), i);
		q->irq = pci_irq_vector(pdev, 1 + i);
		ret = request_threaded_irq(q->irq, NULL, pln_queue_irq,
					   IRQF_ONESHOT, q->name, q);
		if (ret) {
			q->irq = 0;
			return ret;
		}
	}
	return 0;
}

static void pln_free_irqs(struct pln_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < gpu->num_queues; i++)
		if (gpu->queues[i].irq)
			free_irq(gpu->queues[i].irq, &gpu->queues[i]);
	if (gpu->irq)
		free_irq(gpu->irq, gpu);
	if (gpu->nr_vectors)
		pci_free_irq_vectors(gpu->pdev);
	gpu->nr_vectors = 0;
}

static void pln_queues_free(struct pln_gpu *gpu)
{
	struct device *dev = &gpu->pdev->dev;
	unsigned int i;

	pln_free_irqs(gpu);
	for (i = 0; i < gpu->num_queues; i++) {
		struct pln_queue *q = &gpu->queues[i];

		cancel_delayed_work_sync(&q->watchdog);
		if (q->ring)
			dma_free_coherent(dev, PLN_RING_SIZE * PLN_DESC_SIZE,
					  q->ring, q->ring_dma);
		if (q->comp)
			dma_free_coherent(dev, PLN_RING_SIZE * PLN_COMP_SIZE,
					  q->comp, q->comp_dma);
		kvfree(q->marks);
		q->ring = NULL;
		q->comp = NULL;
		q->marks = NULL;
	}
}

int pln_queues_init(struct pln_gpu *gpu)
{
	struct device *dev = &gpu->pdev->dev;
	unsigned int i;
	int ret;

	for (i = 0; i < gpu->num_queues; i++) {
		struct pln_queue *q = &gpu->queues[i];

		q->gpu = gpu;
		q->index = i;
		q->regs = gpu->regs + PLN_REG_QUEUE(i);
		q->stopped = -EIO;
		q->tail = 1;		/* fence 0 means not yet */
		mutex_init(&q->lock);
		INIT_LIST_HEAD(&q->jobs);
		INIT_DELAYED_WORK(&q->watchdog, pln_watchdog);
	}
	for (i = 0; i < gpu->num_queues; i++) {
		struct pln_queue *q = &gpu->queues[i];

		q->ring = dma_alloc_coherent(dev, PLN_RING_SIZE * PLN_DESC_SIZE,
					     &q->ring_dma, GFP_KERNEL);
		q->comp = dma_alloc_coherent(dev, PLN_RING_SIZE * PLN_COMP_SIZE,
					     &q->comp_dma, GFP_KERNEL);
		q->marks = kvcalloc(PLN_RING_SIZE, sizeof(*q->marks),
				    GFP_KERNEL);
		if (!q->ring || !q->comp || !q->marks) {
			ret = -ENOMEM;
			goto err;
		}
	}
	ret = pln_request_irqs(gpu);
	if (ret)
		goto err;
	ret = pln_queues_start(gpu);
	if (ret) {
		dev_err(dev, "the engine queues do not start (%pe)\n",
			ERR_PTR(ret));
		pln_queues_stop(gpu, -EIO);
		goto err;
	}
	return 0;

err:
	pln_queues_free(gpu);
	return ret;
}

/* The queues are stopped */
void pln_queues_fini(struct pln_gpu *gpu)
{
	pln_queues_free(gpu);
	/* q->lock and q->stopped stay for files that are still open */
}
