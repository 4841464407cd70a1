// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: video memory.
 *
 * Memory that its owner has given up may still be the target of DMA: of a job,
 * of an importer of its dma-buf, or of a disk that was told to read into its
 * pages.  So it is *retired*: nobody can start to use it any more, and it lies
 * in the graveyard until nothing can reach it.  Only then the reaper gives it
 * back to the allocator.
 */
#include <linux/genalloc.h>
#include <linux/jiffies.h>

#include "pln_gpu.h"

#define PLN_REAP_MIN_MS		1
#define PLN_REAP_MAX_MS		1000
#define PLN_ALLOC_WAIT_MS	500

int pln_state_errno(struct pln_gpu *gpu)
{
	switch (READ_ONCE(gpu->state)) {
	case PLN_LIVE:
		return 0;
	case PLN_GONE:
	case PLN_REMOVED:
		return -ENODEV;
	default:
		return -EIO;
	}
}

/*
 * A page that only we know of has one reference.  Nobody can get a new one to
 * a page of retired memory, so what was found idle stays so, and *end, the
 * bytes known to be idle, only grows.
 */
bool pln_pages_idle(phys_addr_t phys, u64 size, u64 *end)
{
	for (; *end < size; *end += PAGE_SIZE) {
		if (page_ref_count(pfn_to_page(PHYS_PFN(phys + *end))) != 1)
			return false;
		cond_resched();
	}
	return true;
}

void pln_buf_get(struct pln_buf *buf)
{
	kref_get(&buf->kref);
}

static void pln_buf_release(struct kref *kref)
{
	struct pln_buf *buf = container_of(kref, struct pln_buf, kref);
	struct pln_gpu *gpu = buf->gpu;

	WARN_ON(!list_empty(&buf->node));
	kfree(buf);
	atomic64_dec(&gpu->nr_bufs);
	put_device(&gpu->dev);
}

void pln_buf_put(struct pln_buf *buf)
{
	kref_put(&buf->kref, pln_buf_release);
}

/* The engine is about to use the memory: it will not be reaped before unuse */
int pln_buf_use(struct pln_buf *buf)
{
	int ret = 0;

	down_read(&buf->gpu->mem_lock);
	if (buf->revoked)
		ret = buf->lost ? -EIO : -EINVAL;
	else
		atomic_inc(&buf->users);
	up_read(&buf->gpu->mem_lock);
	return ret;
}

void pln_buf_unuse(struct pln_buf *buf)
{
	if (atomic_dec_and_test(&buf->users) && READ_ONCE(buf->revoked))
		pln_reap_soon(buf->gpu);
}

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
		gen_pool_free(gpu->vram_pool, PLN_POOL_BASE + buf->vram,
			      buf->size);
		gpu->vram_used -= buf->size;
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

/* Something was retired or let go: look soon, and back off from there */
void pln_reap_soon(struct pln_gpu *gpu)
{
	WRITE_ONCE(gpu->reaper_delay, PLN_REAP_MIN_MS);
	mod_delayed_work(gpu->wq, &gpu->reaper, 0);
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

static int pln_vram_take(struct pln_gpu *gpu, struct pln_buf *buf)
{
	unsigned long addr;
	int ret;

	down_write(&gpu->mem_lock);
	ret = pln_state_errno(gpu);
	if (ret)
		goto out;

	addr = gen_pool_alloc(gpu->vram_pool, buf->size);
	if (!addr) {
		ret = gpu->quarantined ? -EAGAIN : -ENOMEM;
		goto out;
	}
	buf->vram = addr - PLN_POOL_BASE;
	gpu->vram_used += buf->size;
	/* The list has a reference, which goes with it to the graveyard */
	pln_buf_get(buf);
	list_add_tail(&buf->node, &gpu->bufs);
out:
	up_write(&gpu->mem_lock);
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
		pln_buf_retire(buf, false);
		goto err_put;
	}
	return buf;

err_put:
	pln_buf_put(buf);
	return ERR_PTR(ret);
}

/*
 * No use of the memory starts after this: handles, mappings and dma-bufs of it
 * are dead.  What runs goes on; the reaper waits for it.
 */
void pln_buf_retire(struct pln_buf *buf, bool lost)
{
	struct pln_gpu *gpu = buf->gpu;
	struct pln_export *exp;
	struct pln_part *part;
	struct file *file;

	down_write(&gpu->mem_lock);
	if (buf->revoked) {
		up_write(&gpu->mem_lock);
		return;
	}
	buf->revoked = true;
	buf->lost = lost;
	list_move_tail(&buf->node, &gpu->graveyard);
	gpu->quarantined += buf->size;
	if (buf->mapping)
		unmap_mapping_range(buf->mapping, buf->vram, buf->size, 1);

	/* A dma-buf of several allocations goes with the first of them */
	list_for_each_entry(part, &buf->exports, node)
		part->exp->revoked = true;
	while (!list_empty(&buf->exports)) {
		part = list_first_entry(&buf->exports, struct pln_part, node);
		exp = part->exp;
		/* Before the run may be reaped: not all mappings hold pages */
		unmap_mapping_range(exp->inode->i_mapping, 0, 0, 1);
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
	pln_p2p_revoke(buf);

	/* Mostly nothing is in flight, and the memory is free again at once */
	if (!pln_reap(gpu))
		pln_reap_soon(gpu);
}

/* A handle and its reference go; with the last one the memory is retired */
void pln_buf_drop(struct pln_buf *buf)
{
	bool last;

	down_write(&buf->gpu->mem_lock);
	last = !--buf->handles;
	up_write(&buf->gpu->mem_lock);
	if (last)
		pln_buf_retire(buf, false);
	pln_buf_put(buf);
}

void pln_bufs_retire_all(struct pln_gpu *gpu, bool lost)
{
	struct pln_buf *buf;

	for (;;) {
		down_write(&gpu->mem_lock);
		buf = list_first_entry_or_null(&gpu->bufs, struct pln_buf,
					       node);
		if (buf)
			pln_buf_get(buf);
		up_write(&gpu->mem_lock);
		if (!buf)
			return;
		pln_buf_retire(buf, lost);
		pln_buf_put(buf);
	}
}

int pln_vram_init(struct pln_gpu *gpu)
{
	int ret;

	INIT_DELAYED_WORK(&gpu->reaper, pln_reaper);
	gpu->vram_pool = gen_pool_create(PLN_PAGE_SHIFT,
					 dev_to_node(&gpu->pdev->dev));
	if (!gpu->vram_pool)
		return -ENOMEM;
	ret = gen_pool_add(gpu->vram_pool, PLN_POOL_BASE, gpu->vram_size,
			   dev_to_node(&gpu->pdev->dev));
	if (ret)
		pln_vram_fini(gpu);
	return ret;
}

/* All memory is retired and reaped, or none was ever given out */
void pln_vram_fini(struct pln_gpu *gpu)
{
	cancel_delayed_work_sync(&gpu->reaper);
	gen_pool_destroy(gpu->vram_pool);
}
