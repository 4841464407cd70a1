// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: the allocator of video memory, and the references and
 * uses of what it gave out.  When memory ends is for memory.c to say.
 */
#include <linux/genalloc.h>

#include "pln_gpu.h"

void pln_buf_get(struct pln_buf *buf)
{
	kref_get(&buf->kref);
}

static void pln_buf_release(struct kref *kref)
{
	struct pln_buf *buf = container_of(kref, struct pln_buf, kref);
	struct pln_gpu *gpu = buf->gpu;

	WARN_ON(!list_empty(&buf->node));
	put_pid(buf->pid);
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

/* The caller has set the size; -EAGAIN: there is room when memory is reaped */
int pln_vram_take(struct pln_gpu *gpu, struct pln_buf *buf)
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

/* The caller holds mem_lock for writing, and keeps its reference */
void pln_vram_give(struct pln_buf *buf)
{
	struct pln_gpu *gpu = buf->gpu;

	lockdep_assert_held_write(&gpu->mem_lock);
	gen_pool_free(gpu->vram_pool, PLN_POOL_BASE + buf->vram, buf->size);
	gpu->vram_used -= buf->size;
}

int pln_vram_init(struct pln_gpu *gpu)
{
	int ret;

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

/* All memory was given back */
void pln_vram_fini(struct pln_gpu *gpu)
{
	gen_pool_destroy(gpu->vram_pool);
}
