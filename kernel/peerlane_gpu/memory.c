// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: memory from its allocation to its end.
 *
 * Memory that its owner has given up may still be the target of DMA: of a job,
 * of an importer of its dma-buf, or of a disk that was told to read into its
 * pages.  So it is *retired*: nobody can start to use it any more, and it lies
 * in the graveyard until nothing can reach it.  Only then the reaper gives it
 * back to the allocator.
 *
 * This file calls all that has a hold on memory: the allocator, BAR1, dma-bufs,
 * page tables of other drivers, the engine.  None of them calls this file; the
 * reaper is woken by pln_reap_soon().
 */
#include <linux/jiffies.h>

#include "aperture.h"
#include "dmabuf.h"
#include "job.h"
#include "queue.h"

#define PLN_REAP_MAX_MS		1000
#define PLN_ALLOC_WAIT_MS	500

static bool pln_buf_idle(struct pln_buf *buf)
{
	struct pln_gpu *gpu = buf->gpu;

	if (buf->nr_runs || atomic_read(&buf->users))
		return false;
	if (!gpu->coherent_pgmap || buf->vram + buf->size > gpu->coherent_size)
		return true;
	return pln_pages_idle(gpu->coherent_phys + buf->vram, buf->size,
			      &buf->idle_end);
}

/* True: nothing is left to be reaped */
static bool pln_reap(struct pln_gpu *gpu)
{
	struct pln_buf *buf, *tmp;
	LIST_HEAD(idle);
	bool clean;

	down_write(&gpu->mem_lock);
	clean = pln_runs_reap(gpu);
	list_for_each_entry_safe(buf, tmp, &gpu->graveyard, node) {
		if (!pln_buf_idle(buf)) {
			clean = false;
			continue;
		}
		pln_vram_give(buf);
		gpu->quarantined -= buf->size;
		list_move(&buf->node, &idle);
	}
	up_write(&gpu->mem_lock);

	list_for_each_entry_safe(buf, tmp, &idle, node) {
		list_del_init(&buf->node);
		pln_buf_put(buf);
	}
	wake_up_all(&gpu->reaped);
	return clean;
}

static void pln_reaper(struct work_struct *work)
{
	struct pln_gpu *gpu = container_of(to_delayed_work(work),
					   struct pln_gpu, reaper);
	unsigned int delay;

	if (pln_reap(gpu))
		return;
	delay = READ_ONCE(gpu->reaper_delay);
	WRITE_ONCE(gpu->reaper_delay, min(2 * delay, PLN_REAP_MAX_MS));
	queue_delayed_work(gpu->wq, &gpu->reaper, msecs_to_jiffies(delay));
}

/* Wait until all that is retired is reaped; false: not yet */
bool pln_reap_wait(struct pln_gpu *gpu, unsigned int ms)
{
	pln_reap_soon(gpu);
	return wait_event_timeout(gpu->reaped,
				  list_empty_careful(&gpu->graveyard) &&
				  list_empty_careful(&gpu->dying_runs),
				  msecs_to_jiffies(ms));
}

/* New memory shows nobody's old data: fill it, or fail */
static int pln_vram_zero(struct pln_buf *buf)
{
	struct pln_gpu *gpu = buf->gpu;
	struct pln_job *job;
	int ret;

	job = pln_job_alloc(gpu, 1);
	if (!job)
		return -ENOMEM;
	job->ops[0].op.opcode = PLN_GPU_OP_FILL;
	job->ops[0].op.arg = 8;
	job->ops[0].op.len = buf->size;
	ret = pln_buf_use(buf);
	if (ret)
		goto out;
	pln_buf_get(buf);
	job->ops[0].dst = buf;

	ret = pln_queue_submit(&gpu->queues[gpu->num_queues - 1], job);
	if (ret)
		goto out;
	/* The queue's watchdog ends every job */
	ret = wait_for_completion_killable(&job->done);
	if (ret)
		goto out;
	ret = job->status;
	if (ret && ret != -ENODEV) {
		dev_err_ratelimited(&gpu->dev,
				    "cannot give out memory: the engine failed to zero it (%pe, device error %u)\n",
				    ERR_PTR(ret), job->error);
		if (ret != -ETIMEDOUT)
			ret = -EIO;
	}
out:
	pln_job_put(job);
	return ret;
}

/*
 * Allocate and zero; the caller gets a reference and must retire the memory
 * before dropping the last one.
 */
struct pln_buf *pln_buf_alloc(struct pln_gpu *gpu, u64 size)
{
	unsigned long end = jiffies + msecs_to_jiffies(PLN_ALLOC_WAIT_MS);
	struct pln_buf *buf;
	int ret;

	if (!size || size > gpu->vram_size)
		return ERR_PTR(size ? -ENOMEM : -EINVAL);

	buf = kzalloc_obj(*buf, GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	kref_init(&buf->kref);
	INIT_LIST_HEAD(&buf->node);
	INIT_LIST_HEAD(&buf->exports);
	INIT_LIST_HEAD(&buf->pins);
	buf->size = ALIGN(size, PLN_PAGE_SIZE);
	buf->pid = get_task_pid(current, PIDTYPE_TGID);
	get_task_comm(buf->comm, current->group_leader);
	buf->gpu = gpu;
	get_device(&gpu->dev);
	atomic64_inc(&gpu->nr_bufs);

	/* Retired memory may be about to come back: give it a moment */
	for (;;) {
		ret = pln_vram_take(gpu, buf);
		if (ret != -EAGAIN)
			break;
		if (time_after(jiffies, end) || fatal_signal_pending(current)) {
			ret = -ENOMEM;
			break;
		}
		pln_reap_wait(gpu, 2 * PLN_REAP_MIN_MS);
	}
	if (ret)
		goto err_put;

	ret = pln_vram_zero(buf);
	if (ret) {
		pln_buf_retire(buf);
		goto err_put;
	}
	return buf;

err_put:
	pln_buf_put(buf);
	return ERR_PTR(ret);
}

/*
 * No use of the memory starts after this: handles, mappings and dma-bufs of it
 * are dead.  What runs goes on.  Unless that was so already, pln_buf_drain() must
 * follow.
 */
static bool pln_buf_revoke(struct pln_buf *buf, bool lost)
{
	struct pln_gpu *gpu = buf->gpu;
	struct pln_export *exp;
	struct pln_part *part;

	lockdep_assert_held_write(&gpu->mem_lock);
	if (buf->revoked)
		return false;
	buf->revoked = true;
	buf->lost = lost;
	list_move_tail(&buf->node, &gpu->graveyard);
	gpu->quarantined += buf->size;
	if (buf->mapping)
		unmap_mapping_range(buf->mapping, buf->vram, buf->size, 1);

	/* A dma-buf of several allocations goes with the first of them */
	list_for_each_entry(part, &buf->exports, node) {
		cond_resched();
		exp = part->exp;
		/* By another part of it, of this allocation or of one before */
		if (exp->revoked)
			continue;
		exp->revoked = true;
		/* Before the run may be reaped: not all mappings hold pages */
		unmap_mapping_range(exp->inode->i_mapping, 0, 0, 1);
		pln_export_unshow(exp);
	}
	return true;
}

/* Tell importers of dma-bufs; waits until each has ended its DMA, or will by a fence */
static void pln_exports_revoke(struct pln_buf *buf)
{
	struct pln_gpu *gpu = buf->gpu;
	struct pln_export *exp;
	struct file *file;

	down_write(&gpu->mem_lock);
	while (!list_empty(&buf->exports)) {
		cond_resched();
		exp = list_first_entry(&buf->exports, struct pln_part,
				       node)->exp;
		pln_export_detach(exp);
		/* Nobody else needs to be told, and the file may be gone */
		if (!exp->attachments)
			continue;
		file = get_file(exp->dmabuf->file);
		up_write(&gpu->mem_lock);
		pln_export_revoke(exp);
		fput(file);
		down_write(&gpu->mem_lock);
	}
	up_write(&gpu->mem_lock);
}

/*
 * Tell those who do DMA in revoked memory, and wait until each has ended it, however
 * long that takes; then the reaper looks.
 */
static void pln_buf_drain(struct pln_buf *buf)
{
	struct pln_gpu *gpu = buf->gpu;

	/* First those that wait for nobody: an importer may not end its DMA for long */
	pln_p2p_revoke(buf, NULL);
	pln_exports_revoke(buf);

	/* Mostly nothing is in flight, and the memory is free again at once */
	if (!pln_reap(gpu))
		pln_reap_soon(gpu);
}

/* Revoke and drain; when somebody else has revoked it, that may not have ended yet */
void pln_buf_retire(struct pln_buf *buf)
{
	bool revoked;

	down_write(&buf->gpu->mem_lock);
	revoked = pln_buf_revoke(buf, false);
	up_write(&buf->gpu->mem_lock);
	if (revoked)
		pln_buf_drain(buf);
}

/* A handle and its reference go; with the last one the memory is retired */
void pln_buf_drop(struct pln_buf *buf)
{
	bool last;

	down_write(&buf->gpu->mem_lock);
	last = !--buf->handles;
	up_write(&buf->gpu->mem_lock);
	if (last)
		pln_buf_retire(buf);
	pln_buf_put(buf);
}

static void pln_importers_work(struct work_struct *work)
{
	struct pln_buf *buf = container_of(work, struct pln_buf, drain_work);

	pln_exports_revoke(buf);
	pln_reap_soon(buf->gpu);
	pln_buf_put(buf);
}

/*
 * Waits for nobody: a workqueue runs so many works at once, and importers that do not
 * end their DMA may be more than that
 */
static void pln_drain_work(struct work_struct *work)
{
	struct pln_buf *buf = container_of(work, struct pln_buf, drain_work);

	pln_p2p_revoke(buf, buf->gpu->p2p_wq);
	INIT_WORK(&buf->drain_work, pln_importers_work);
	queue_work(buf->gpu->drain_wq, &buf->drain_work);
}

/*
 * The GPU has lost its memory, or is about to.  All of it is revoked at once, and
 * drained elsewhere: a drive may end its DMA only when the reset that the caller is part
 * of is over.  pln_reap_wait() waits for all but importers without mappings, who have
 * nothing to end.
 */
void pln_bufs_lose_all(struct pln_gpu *gpu)
{
	struct pln_buf *buf, *tmp;

	down_write(&gpu->mem_lock);
	list_for_each_entry_safe(buf, tmp, &gpu->bufs, node) {
		pln_buf_revoke(buf, true);
		pln_buf_get(buf);
		INIT_WORK(&buf->drain_work, pln_drain_work);
		queue_work(gpu->wq, &buf->drain_work);
	}
	up_write(&gpu->mem_lock);
}

static size_t pln_run_held_by(struct pln_run *run, char *text, size_t size)
{
	struct pln_gpu *gpu = run->gpu;
	struct pln_holder *holder;
	size_t n = 0;

	list_for_each_entry(holder, &run->holders, node)
		n += scnprintf(text + n, size - n, " %s", holder->dev ?
			       dev_name(holder->dev) : "p2p-table");
	if (run->fence && !dma_fence_is_signaled(run->fence))
		n += scnprintf(text + n, size - n, " fence");
	if (gpu->bar1_p2pmem)
		n += scnprintf(text + n, size - n, " bar1-pages=%llu",
			       pln_pages_busy(gpu->bar1_phys + run->bar1,
					      run->size));
	return n;
}

static bool pln_run_shows(const struct pln_run *run, const struct pln_buf *buf)
{
	unsigned int i;

	for (i = 0; i < run->nr_pieces; i++)
		if (run->pieces[i].buf == buf)
			return true;
	return false;
}

/* Who may still reach retired memory; what does not fit is cut off */
size_t pln_held_by(struct pln_buf *buf, char *text, size_t size)
{
	struct pln_gpu *gpu = buf->gpu;
	struct pln_run *run;
	size_t n = 0;

	lockdep_assert_held(&gpu->mem_lock);
	*text = 0;
	list_for_each_entry(run, &gpu->dying_runs, node)
		if (pln_run_shows(run, buf))
			n += pln_run_held_by(run, text + n, size - n);
	if (gpu->coherent_pgmap && buf->vram + buf->size <= gpu->coherent_size)
		n += scnprintf(text + n, size - n, " coherent-pages=%llu",
			       pln_pages_busy(gpu->coherent_phys + buf->vram,
					      buf->size));
	return n;
}

void pln_memory_init(struct pln_gpu *gpu)
{
	INIT_DELAYED_WORK(&gpu->reaper, pln_reaper);
}

/* All memory is retired and reaped, or none was ever given out */
void pln_memory_fini(struct pln_gpu *gpu)
{
	cancel_delayed_work_sync(&gpu->reaper);
}
