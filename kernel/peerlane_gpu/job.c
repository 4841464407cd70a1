// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: jobs, from what a program asks for to what a queue
 * can run.  All checks are made here; a queue trusts its jobs.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "job.h"

#define PLN_PIN_BATCH	512	/* pages at a time, between looks for signals */
#define PLN_UNPIN_MS	20	/* between looks for pages that nobody has locked any more */
#define PLN_UNLOAD_MS	100	/* for locked pages of all jobs together, while the module goes */

unsigned int pln_watchdog_ms = 30000;
module_param_named(watchdog_ms, pln_watchdog_ms, uint, 0644);
MODULE_PARM_DESC(watchdog_ms,
		 "Time for an engine queue to make progress, in ms (default 30000)");

static unsigned int pln_max_pinned_mib = 1024;
module_param_named(max_pinned_mib, pln_max_pinned_mib, uint, 0644);
MODULE_PARM_DESC(max_pinned_mib,
		 "User memory pinned by the jobs of one open file, in MiB (default 1024; never over half of the memory)");

/* User memory that jobs of all GPUs have pinned, in bytes, and these jobs */
static DEFINE_SPINLOCK(pln_pin_lock);
static s64 pln_pinned;
static LIST_HEAD(pln_pinned_jobs);
static DECLARE_WAIT_QUEUE_HEAD(pln_unpinned);

/*
 * Jobs that the device is done with, parked while somebody has user pages of theirs locked.
 * pln_pin_lock guards the list, which has a reference to each, and to the module for it.
 */
static LIST_HEAD(pln_parked_jobs);
static struct workqueue_struct *pln_unpin_wq;

static_assert(PLN_GPU_OP_NOP == PLN_OP_NOP);
static_assert(PLN_GPU_OP_COPY == PLN_OP_COPY);
static_assert(PLN_GPU_OP_FILL == PLN_OP_FILL);
static_assert(PLN_GPU_OP_CRC32C == PLN_OP_CRC32C);
static_assert(PLN_GPU_OP_COMPARE == PLN_OP_COMPARE);
static_assert(PLN_GPU_OP_ADD == PLN_OP_ADD);
static_assert(PLN_GPU_ADD_INT32 == PLN_ADD_INT32);
static_assert(PLN_GPU_ADD_FLOAT32 == PLN_ADD_FLOAT32);
static_assert(PLN_GPU_COMPARE_EQUAL == PLN_COMPARE_EQUAL);

/* The same for 32-bit and 64-bit programs */
static_assert(sizeof(struct pln_gpu_query) == 136);
static_assert(sizeof(struct pln_gpu_alloc) == 32);
static_assert(sizeof(struct pln_gpu_free) == 8);
static_assert(sizeof(struct pln_gpu_export) == 32);
static_assert(sizeof(struct pln_gpu_op) == 56);
static_assert(sizeof(struct pln_gpu_submit) == 32);
static_assert(sizeof(struct pln_gpu_wait) == 40);

/*
 * What the device wrote is written back only from dirty pages.  They are marked under
 * the lock, which keeps their file's inode.  A file system may hold that lock for as long
 * as a server likes, which may be a program (FUSE), so nothing here waits for it.
 */
static bool pln_mark_dirty(struct folio *folio)
{
	if (folio_test_dirty(folio))
		return true;
	if (!folio_trylock(folio))
		return false;
	folio_mark_dirty(folio);
	folio_unlock(folio);
	return true;
}

/* Unpin the pages; with @mark the dirty ones alone, after marking all that nobody has locked */
static void pln_pin_unpin(struct pln_pin *pin, bool mark)
{
	unsigned long i, left = 0;

	for (i = 0; i < pin->nr_pages; i++) {
		struct page *page = pin->pages[i];

		if (!mark || pln_mark_dirty(page_folio(page)))
			unpin_user_page(page);
		else
			pin->pages[left++] = page;
		if (i % PLN_PIN_BATCH == PLN_PIN_BATCH - 1)
			cond_resched();
	}
	pin->nr_pages = left;
}

/*
 * The device is done with it, and only these pages stay pinned.  No memory is kept for the
 * others, which do not count any more.
 */
static void pln_pin_shrink(struct pln_pin *pin)
{
	struct page **pages;

	sg_free_table(&pin->sgt);
	pages = kmemdup(pin->pages, pin->nr_pages * sizeof(*pages), GFP_NOWAIT | __GFP_NOWARN);
	if (!pages)
		return;
	kvfree(pin->pages);
	pin->pages = pages;
}

/* No page is pinned */
static void pln_pin_free(struct pln_pin *pin)
{
	sg_free_table(&pin->sgt);
	kvfree(pin->pages);
	kfree(pin);
}

/*
 * May fault, and so wait for another program as long as that likes.  The pages
 * are pinned as for direct IO, not for the long term: shared mappings of files
 * must work, which the kernel refuses to pin for the long term.  The pin of a
 * queued job ends with it, which the watchdog ends if the engine does not; while
 * a submit waits for a fault, what it has pinned stays so, within the limit.
 */
static struct pln_pin *pln_pin_user(struct pln_gpu *gpu, u64 addr, u64 len,
				    enum dma_data_direction dir)
{
	unsigned int gup = dir == DMA_FROM_DEVICE ? FOLL_WRITE : 0;
	u64 first = addr >> PAGE_SHIFT;
	unsigned long nr = ((addr + len - 1) >> PAGE_SHIFT) - first + 1;
	struct pln_pin *pin;
	long got;
	int ret;

	pin = kzalloc_obj(*pin, GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	pin->dir = dir;
	pin->pages = kvmalloc_array(nr, sizeof(*pin->pages),
				    GFP_KERNEL_ACCOUNT);
	if (!pin->pages) {
		ret = -ENOMEM;
		goto err;
	}

	while (pin->nr_pages < nr) {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			goto err;
		}
		ret = pln_state_errno(gpu);
		if (ret)
			goto err;
		got = pin_user_pages_fast((first + pin->nr_pages) << PAGE_SHIFT,
					  min_t(unsigned long, PLN_PIN_BATCH,
						nr - pin->nr_pages),
					  gup, pin->pages + pin->nr_pages);
		if (got <= 0) {
			ret = got == -ENOMEM ? -ENOMEM : -EFAULT;
			goto err;
		}
		pin->nr_pages += got;
		cond_resched();
	}

	ret = sg_alloc_table_from_pages_segment(&pin->sgt, pin->pages, nr,
						offset_in_page(addr), len,
						SZ_64M, GFP_KERNEL_ACCOUNT);
	if (ret)
		goto err;
	return pin;

err:
	pln_pin_unpin(pin, false);
	pln_pin_free(pin);
	return ERR_PTR(ret);
}

/* Who waits for room looks again: there may be some, or the GPU has gone */
void pln_pins_wake(void)
{
	wake_up_all(&pln_unpinned);
}

/* What pln_pin_take() took, but for @left bytes */
static void pln_pin_give(struct pln_job *job, u64 left)
{
	u64 bytes = job->pinned - left;

	if (!bytes)
		return;
	spin_lock(&pln_pin_lock);
	job->pinned = left;
	pln_pinned -= bytes;
	atomic64_sub(bytes, &job->gpu->pinned);
	atomic64_sub(bytes, &job->file->pinned);
	atomic64_sub(bytes >> PAGE_SHIFT, &job->mm->pinned_vm);
	if (!left) {
		list_del_init(&job->pinned_node);
		list_del_init(&job->node);	/* if parked */
	}
	spin_unlock(&pln_pin_lock);
	if (!left)
		mmdrop(job->mm);
	pln_pins_wake();
}

/*
 * Memory is let go when the device is done with the job, not when the last
 * reference goes: a program may wait late, or never.  This is what the device knows
 * of; user pages stay pinned.
 */
void pln_job_release(struct pln_job *job)
{
	struct pln_gpu *gpu = job->gpu;
	unsigned int i;

	for (i = 0; i < job->nr_ops; i++) {
		struct pln_jop *jop = &job->ops[i];
		struct pln_pin *pin = jop->pin;

		if (pin && pin->mapped) {
			dma_unmap_sgtable(&gpu->pdev->dev, &pin->sgt, pin->dir,
					  0);
			pin->mapped = false;
		}
		if (jop->src) {
			pln_buf_unuse(jop->src);
			pln_buf_put(jop->src);
		}
		jop->src = NULL;
		if (jop->dst) {
			pln_buf_unuse(jop->dst);
			pln_buf_put(jop->dst);
		}
		jop->dst = NULL;
	}
}

/*
 * Let the user pages go.  If the device has written, those that it wrote to and somebody
 * has locked stay pinned: then job->pinned is not 0.
 */
static void pln_job_unpin(struct pln_job *job, bool written)
{
	unsigned long had;
	unsigned int i;
	u64 left = 0;

	for (i = 0; i < job->nr_ops; i++) {
		struct pln_pin *pin = job->ops[i].pin;

		if (!pin)
			continue;
		had = pin->nr_pages;
		pln_pin_unpin(pin, written && pin->dir == DMA_FROM_DEVICE);
		left += (u64)pin->nr_pages << PAGE_SHIFT;
		if (pin->nr_pages) {
			if (pin->nr_pages < had)
				pln_pin_shrink(pin);
			continue;
		}
		pln_pin_free(pin);
		job->ops[i].pin = NULL;
	}
	pln_pin_give(job, left);
}

static void pln_unpin_work(struct work_struct *work)
{
	struct pln_job *job, *next, *last;
	bool is_last;

	spin_lock(&pln_pin_lock);
	/* Those that come meanwhile are for the next pass */
	last = list_last_entry(&pln_parked_jobs, struct pln_job, node);
	/* Nobody else takes jobs off the list: @next stays there while it is unlocked */
	list_for_each_entry_safe(job, next, &pln_parked_jobs, node) {
		spin_unlock(&pln_pin_lock);
		is_last = job == last;
		pln_job_unpin(job, true);
		if (!job->pinned) {
			complete_all(&job->done);
			pln_job_put(job);
			/* pln_job_cleanup() waits for the rest of this function */
			module_put(THIS_MODULE);
		}
		cond_resched();
		spin_lock(&pln_pin_lock);
		if (is_last)
			break;
	}
	if (!list_empty(&pln_parked_jobs))
		queue_delayed_work(pln_unpin_wq, to_delayed_work(work),
				   msecs_to_jiffies(PLN_UNPIN_MS));
	spin_unlock(&pln_pin_lock);
}

static DECLARE_DELAYED_WORK(pln_unpin, pln_unpin_work);

/* Until when jobs that end while the module goes wait for locked pages: all of them together */
static unsigned long pln_unload_end(void)
{
	static unsigned long until;

	spin_lock(&pln_pin_lock);
	if (!until)
		until = (jiffies + msecs_to_jiffies(PLN_UNLOAD_MS)) | 1;
	spin_unlock(&pln_pin_lock);
	return until;
}

/*
 * The device has no more to do with the job, which has its status.  Waits for nobody:
 * where a page is locked, the job alone ends later.  Its program is told when the pages
 * are dirty, so that what it writes back or reads directly then is right.
 *
 * The module stays until then.  Where it is going already, no file is open, so nobody is
 * told how the job ended: pages that do not soon get unlocked go as they are.
 */
void pln_job_finish(struct pln_job *job)
{
	unsigned long until;

	pln_job_release(job);
	pln_job_unpin(job, job->started);
	if (job->pinned && !try_module_get(THIS_MODULE)) {
		until = pln_unload_end();
		while (job->pinned && time_before(jiffies, until)) {
			fsleep(1000);
			pln_job_unpin(job, true);
		}
		pln_job_unpin(job, false);
	}
	if (!job->pinned) {
		complete_all(&job->done);
		return;
	}
	pln_job_get(job);
	spin_lock(&pln_pin_lock);
	list_add_tail(&job->node, &pln_parked_jobs);
	spin_unlock(&pln_pin_lock);
	queue_delayed_work(pln_unpin_wq, &pln_unpin, 1);
}

struct pln_job *pln_job_alloc(struct pln_gpu *gpu, unsigned int nr_ops)
{
	struct pln_job *job;

	job = kvzalloc(struct_size(job, ops, nr_ops), GFP_KERNEL_ACCOUNT);
	if (!job)
		return NULL;
	job->nr_ops = nr_ops;
	kref_init(&job->kref);
	INIT_LIST_HEAD(&job->node);
	INIT_LIST_HEAD(&job->pinned_node);
	init_completion(&job->done);
	job->gpu = gpu;
	get_device(&gpu->dev);
	atomic64_inc(&gpu->nr_jobs);
	return job;
}

void pln_job_get(struct pln_job *job)
{
	kref_get(&job->kref);
}

static void pln_job_free(struct kref *kref)
{
	struct pln_job *job = container_of(kref, struct pln_job, kref);
	struct pln_gpu *gpu = job->gpu;

	/* What a job has that no queue took */
	pln_job_release(job);
	pln_job_unpin(job, false);
	if (job->file)
		kref_put(&job->file->kref, pln_file_free);
	kvfree(job);
	atomic64_dec(&gpu->nr_jobs);
	put_device(&gpu->dev);
}

void pln_job_put(struct pln_job *job)
{
	kref_put(&job->kref, pln_job_free);
}

/* Look up the memory of a handle, check the range, and take hold of it */
static int pln_job_buf(struct pln_file *file, u32 handle, u64 offset, u64 len,
		       struct pln_buf **ret)
{
	struct pln_buf *buf;
	u64 end;
	int err;

	if (!handle || check_add_overflow(offset, len, &end))
		return -EINVAL;

	xa_lock(&file->bufs);
	buf = xa_load(&file->bufs, handle);
	if (buf)
		pln_buf_get(buf);
	xa_unlock(&file->bufs);
	if (!buf)
		return -EINVAL;

	err = end > buf->size ? -EINVAL : pln_buf_use(buf);
	if (err) {
		pln_buf_put(buf);
		return err;
	}
	*ret = buf;
	return 0;
}

static bool pln_user_range_ok(u64 addr, u64 len)
{
	u64 end;

	return !check_add_overflow(addr, len, &end) && (unsigned long)addr ==
		addr && len <= SIZE_MAX && access_ok(u64_to_user_ptr(addr), len);
}

/* Bytes of one element, 0: not an operation of ours, or a bad argument */
static unsigned int pln_op_width(const struct pln_gpu_op *op)
{
	switch (op->opcode) {
	case PLN_GPU_OP_COPY:
	case PLN_GPU_OP_CRC32C:
	case PLN_GPU_OP_COMPARE:
		return op->arg ? 0 : 1;
	case PLN_GPU_OP_FILL:
		return op->arg <= 8 && is_power_of_2(op->arg) ? op->arg : 0;
	case PLN_GPU_OP_ADD:
		return op->arg == PLN_GPU_ADD_INT32 ||
		       op->arg == PLN_GPU_ADD_FLOAT32 ? 4 : 0;
	default:
		return 0;
	}
}

/* Everything about an operation that can be judged without its memory */
static int pln_op_check(const struct pln_gpu_op *op)
{
	bool src_user = op->flags & PLN_GPU_OP_F_SRC_USER;
	bool dst_user = op->flags & PLN_GPU_OP_F_DST_USER;
	bool has_src, has_dst;
	unsigned int width;

	if (op->reserved ||
	    op->flags & ~(PLN_GPU_OP_F_SRC_USER | PLN_GPU_OP_F_DST_USER))
		return -EINVAL;
	if (op->opcode == PLN_GPU_OP_NOP)
		return op->flags || op->arg || op->src_handle ||
		       op->dst_handle || op->src || op->dst || op->len ||
		       op->imm ? -EINVAL : 0;

	width = pln_op_width(op);
	if (!width || !op->len || op->len % width)
		return -EINVAL;
	if (op->flags && (op->opcode != PLN_GPU_OP_COPY ||
			  (src_user && dst_user)))
		return -EINVAL;
	if (op->imm && op->opcode != PLN_GPU_OP_FILL &&
	    op->opcode != PLN_GPU_OP_CRC32C)
		return -EINVAL;
	if (op->opcode == PLN_GPU_OP_FILL && width < 8 &&
	    op->imm >> (8 * width))
		return -EINVAL;
	if (op->opcode == PLN_GPU_OP_CRC32C && op->imm > U32_MAX)
		return -EINVAL;

	has_src = op->opcode != PLN_GPU_OP_FILL;
	has_dst = op->opcode != PLN_GPU_OP_CRC32C;
	if ((!has_src && (op->src || op->src_handle)) ||
	    (!has_dst && (op->dst || op->dst_handle)))
		return -EINVAL;
	if ((src_user && op->src_handle) || (dst_user && op->dst_handle))
		return -EINVAL;
	if ((has_src && !src_user && op->src % width) ||
	    (has_dst && !dst_user && op->dst % width))
		return -EINVAL;
	return 0;
}

static s64 pln_pin_max(void)
{
	return (s64)(totalram_pages() / 2) << PAGE_SHIFT;
}

/* Has a job of this process user memory pinned, which it will let go? */
static bool pln_pinned_by(const struct mm_struct *mm)
{
	struct pln_job *job;

	lockdep_assert_held(&pln_pin_lock);
	list_for_each_entry(job, &pln_pinned_jobs, pinned_node)
		if (job->mm == mm)
			return true;
	return false;
}

/* Bytes that jobs of this user keep pinned which the device is done with */
static u64 pln_parked_by(kuid_t uid)
{
	struct pln_job *job;
	u64 bytes = 0;

	lockdep_assert_held(&pln_pin_lock);
	list_for_each_entry(job, &pln_parked_jobs, node)
		if (uid_eq(job->uid, uid))
			bytes += job->pinned;
	return bytes;
}

/*
 * Three limits: of the file, by @limit; of all files of all GPUs together, which
 * leave half of the machine's memory alone; and of the process, RLIMIT_MEMLOCK,
 * which counts what other drivers have pinned for it, too.  Parked jobs may outlive
 * their process, so no user begins more while these have more than that.
 *
 * Return: 0; -EAGAIN: there is room when jobs end; -ENOMEM: no job is there whose
 * end could make room.
 */
static int pln_pin_take(struct pln_job *job, s64 bytes, s64 limit)
{
	s64 memlock = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	struct pln_file *file = job->file;
	s64 pages = bytes >> PAGE_SHIFT;
	int ret = 0;

	spin_lock(&pln_pin_lock);
	if (atomic64_read(&file->pinned) + bytes > limit ||
	    pln_pinned + bytes > pln_pin_max()) {
		ret = -EAGAIN;
	} else if (atomic64_add_return(pages, &mm->pinned_vm) > memlock &&
		   !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		ret = pages <= memlock && pln_pinned_by(mm) ? -EAGAIN : -ENOMEM;
	} else if (rlimit(RLIMIT_MEMLOCK) != RLIM_INFINITY &&
		   pln_parked_by(current_uid()) > rlimit(RLIMIT_MEMLOCK) &&
		   !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		ret = -EAGAIN;
	} else {
		mmgrab(mm);
		job->mm = mm;
		job->uid = current_uid();
		job->pinned = bytes;
		list_add(&job->pinned_node, &pln_pinned_jobs);
		pln_pinned += bytes;
		atomic64_add(bytes, &file->pinned);
		atomic64_add(bytes, &job->gpu->pinned);
	}
	spin_unlock(&pln_pin_lock);
	return ret;
}

/* Take room for the user memory of a job; jobs that end make some */
static int pln_pin_room(struct pln_job *job, u64 bytes)
{
	s64 limit = min_t(s64, pln_pin_max(),
			  (s64)READ_ONCE(pln_max_pinned_mib) << 20);
	long left = msecs_to_jiffies(2 * READ_ONCE(pln_watchdog_ms));
	int ret = -EAGAIN, err;

	if (bytes > (u64)limit)
		return -ENOMEM;
	left = wait_event_interruptible_timeout(pln_unpinned,
						pln_state_errno(job->gpu) ||
						(ret = pln_pin_take(job, bytes, limit)) != -EAGAIN,
						left);
	if (ret != -EAGAIN)
		return ret;
	if (left < 0)
		return -EINTR;
	err = pln_state_errno(job->gpu);
	return err ? err : ret;
}

/* User pages that an operation needs, in bytes */
static u64 pln_op_pinned(const struct pln_gpu_op *op)
{
	u64 addr = op->flags & PLN_GPU_OP_F_SRC_USER ? op->src : op->dst;

	if (!op->flags)
		return 0;
	return ALIGN(addr + op->len, PAGE_SIZE) - ALIGN_DOWN(addr, PAGE_SIZE);
}

/*
 * A job of these operations, checked, with its user memory pinned.  This uses
 * the program's memory and not the device.
 */
struct pln_job *pln_job_build(struct pln_file *file, struct pln_gpu_op *ops,
			      unsigned int nr_ops)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_job *job;
	unsigned int i;
	u64 pinned = 0;
	int ret;

	for (i = 0; i < nr_ops; i++) {
		struct pln_gpu_op *op = &ops[i];

		ret = pln_op_check(op);
		if (ret)
			return ERR_PTR(ret);
		if ((op->flags & PLN_GPU_OP_F_SRC_USER &&
		     !pln_user_range_ok(op->src, op->len)) ||
		    (op->flags & PLN_GPU_OP_F_DST_USER &&
		     !pln_user_range_ok(op->dst, op->len)))
			return ERR_PTR(-EFAULT);
		if (check_add_overflow(pinned, pln_op_pinned(op), &pinned))
			return ERR_PTR(-ENOMEM);
	}
	job = pln_job_alloc(gpu, nr_ops);
	if (!job)
		return ERR_PTR(-ENOMEM);
	kref_get(&file->kref);
	job->file = file;
	if (pinned) {
		ret = pln_pin_room(job, pinned);
		if (ret)
			goto err;
	}

	for (i = 0; i < nr_ops; i++) {
		struct pln_jop *jop = &job->ops[i];
		struct pln_gpu_op *op = &jop->op;
		struct pln_pin *pin;

		*op = ops[i];
		if (!op->flags)
			continue;
		if (op->flags & PLN_GPU_OP_F_SRC_USER)
			pin = pln_pin_user(gpu, op->src, op->len,
					   DMA_TO_DEVICE);
		else
			pin = pln_pin_user(gpu, op->dst, op->len,
					   DMA_FROM_DEVICE);
		if (IS_ERR(pin)) {
			ret = PTR_ERR(pin);
			goto err;
		}
		jop->pin = pin;
	}
	return job;

err:
	pln_job_put(job);
	return ERR_PTR(ret);
}

static int pln_jop_bind(struct pln_job *job, struct pln_jop *jop)
{
	const struct pln_gpu_op *op = &jop->op;
	int ret;

	if (op->opcode == PLN_GPU_OP_NOP)
		return 0;
	if (op->opcode != PLN_GPU_OP_FILL &&
	    !(op->flags & PLN_GPU_OP_F_SRC_USER)) {
		ret = pln_job_buf(job->file, op->src_handle, op->src, op->len,
				  &jop->src);
		if (ret)
			return ret;
	}
	if (op->opcode != PLN_GPU_OP_CRC32C &&
	    !(op->flags & PLN_GPU_OP_F_DST_USER)) {
		ret = pln_job_buf(job->file, op->dst_handle, op->dst, op->len,
				  &jop->dst);
		if (ret)
			return ret;
	}
	if (!jop->pin)
		return 0;
	ret = dma_map_sgtable(&job->gpu->pdev->dev, &jop->pin->sgt,
			      jop->pin->dir, 0);
	jop->pin->mapped = !ret;
	return ret;
}

/*
 * Take hold of the GPU memory of a job, and map its user memory for the device.
 * The caller is inside gpu->calls.  What was taken before a failure goes with the
 * job's resources, which the caller lets go before it leaves.
 */
int pln_job_bind(struct pln_job *job)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < job->nr_ops && !ret; i++)
		ret = pln_jop_bind(job, &job->ops[i]);
	return ret;
}

int pln_job_setup(void)
{
	pln_unpin_wq = alloc_workqueue("peerlane_gpu-unpin", WQ_UNBOUND, 0);
	return pln_unpin_wq ? 0 : -ENOMEM;
}

void pln_job_cleanup(void)
{
	/* No job is left to it */
	cancel_delayed_work_sync(&pln_unpin);
	destroy_workqueue(pln_unpin_wq);
}
