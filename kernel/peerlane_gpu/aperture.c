// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: how the CPU and other devices reach its memory.
 *
 * BAR1 is a window: runs of units are mapped to VRAM while an export needs
 * them.  Its pages, and those of the coherent window, are the business of pages.c.
 */
#include <linux/genalloc.h>

#include "pln_gpu.h"

#define PLN_INSERT_BATCH	16

static int pln_bar1_cmd(struct pln_gpu *gpu, u32 cmd, u64 bar1, u64 size,
			u64 vram)
{
	u32 result;

	lockdep_assert_held_write(&gpu->mem_lock);
	pln_wr(gpu, PLN_REG_BAR1_INDEX, bar1 >> PLN_PAGE_SHIFT);
	pln_wr(gpu, PLN_REG_BAR1_COUNT, size >> PLN_PAGE_SHIFT);
	pln_wr(gpu, PLN_REG_BAR1_VRAM, lower_32_bits(vram));
	pln_wr(gpu, PLN_REG_BAR1_VRAM + 4, upper_32_bits(vram));
	pln_wr(gpu, PLN_REG_BAR1_CMD, cmd);
	result = pln_rd(gpu, PLN_REG_BAR1_RESULT);
	switch (result) {
	case PLN_ERR_NONE:
		return 0;
	case PLN_ERR_NO_SPACE:
		return -ENOSPC;
	case U32_MAX:
		return pln_gpu_die(gpu, "BAR1 command got no answer");
	default:
		dev_err(&gpu->pdev->dev,
			"BAR1 command %u (unit %llu, %llu units, VRAM %#llx) refused: error %u (%s); this is a bug in the driver or the device\n",
			cmd, bar1 >> PLN_PAGE_SHIFT, size >> PLN_PAGE_SHIFT,
			vram, result,
			result < PLN_NUM_ERRORS ? pln_error_names[result] :
						  "unknown");
		return -EIO;
	}
}

/* The device knows each piece as a run of its own */
static void pln_run_hide(struct pln_run *run, unsigned int nr_pieces)
{
	u64 bar1 = run->bar1;
	unsigned int i;

	for (i = 0; i < nr_pieces; i++) {
		pln_bar1_cmd(run->gpu, PLN_BAR1_CMD_UNMAP, bar1,
			     run->pieces[i].size, 0);
		bar1 += run->pieces[i].size;
	}
}

static int pln_run_show(struct pln_run *run)
{
	const struct pln_piece *piece;
	u64 bar1 = run->bar1;
	unsigned int i;
	int ret;

	for (i = 0; i < run->nr_pieces; i++) {
		piece = &run->pieces[i];
		ret = pln_bar1_cmd(run->gpu, PLN_BAR1_CMD_MAP, bar1,
				   piece->size,
				   piece->buf->vram + piece->offset);
		if (ret) {
			pln_run_hide(run, i);
			return ret;
		}
		bar1 += piece->size;
	}
	run->in_hw = true;
	return 0;
}

/* True: no DMA can reach BAR1 through this run, and it is gone */
static bool pln_run_reap(struct pln_gpu *gpu, struct pln_run *run)
{
	unsigned int i;

	if (!list_empty(&run->holders))
		return false;
	if (run->fence && !dma_fence_is_signaled(run->fence))
		return false;
	if (gpu->bar1_p2pmem &&
	    !pln_pages_idle(gpu->bar1_phys + run->bar1, run->size,
			    &run->idle_end))
		return false;

	if (run->in_hw && gpu->state == PLN_LIVE)
		pln_run_hide(run, run->nr_pieces);
	gen_pool_free(gpu->bar1_pool, PLN_POOL_BASE + run->bar1, run->size);
	gpu->bar1_used -= run->size;
	for (i = 0; i < run->nr_pieces; i++) {
		run->pieces[i].buf->nr_runs--;
		pln_buf_put(run->pieces[i].buf);
	}
	list_del(&run->node);
	dma_fence_put(run->fence);
	kvfree(run);
	return true;
}

bool pln_runs_reap(struct pln_gpu *gpu)
{
	struct pln_run *run, *tmp;
	bool clean = true;

	lockdep_assert_held_write(&gpu->mem_lock);
	list_for_each_entry_safe(run, tmp, &gpu->dying_runs, node)
		clean &= pln_run_reap(gpu, run);
	return clean;
}

static void pln_run_kill(struct pln_gpu *gpu, struct pln_run *run)
{
	list_move_tail(&run->node, &gpu->dying_runs);
	run->idle_end = 0;
	/* Mostly nothing is in flight, and BAR1 is free again at once */
	if (!pln_run_reap(gpu, run))
		pln_reap_soon(gpu);
}

static struct pln_run *pln_run_create(struct pln_gpu *gpu,
				      const struct pln_piece *pieces,
				      unsigned int nr_pieces)
{
	struct pln_run *run;
	unsigned long addr;
	unsigned int i;
	int ret;

	run = kvzalloc(struct_size(run, pieces, nr_pieces), GFP_KERNEL);
	if (!run)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&run->holders);
	run->gpu = gpu;
	run->nr_pieces = nr_pieces;
	for (i = 0; i < nr_pieces; i++) {
		run->pieces[i] = pieces[i];
		run->size += pieces[i].size;
	}

	addr = gen_pool_alloc(gpu->bar1_pool, run->size);
	if (!addr && !list_empty(&gpu->dying_runs)) {
		pln_runs_reap(gpu);
		addr = gen_pool_alloc(gpu->bar1_pool, run->size);
	}
	if (!addr) {
		ret = -ENOSPC;
		goto err_free;
	}

	run->bar1 = addr - PLN_POOL_BASE;
	ret = pln_run_show(run);
	if (ret)
		goto err_pool;

	gpu->bar1_used += run->size;
	for (i = 0; i < nr_pieces; i++) {
		pieces[i].buf->nr_runs++;
		pln_buf_get(pieces[i].buf);
	}
	list_add_tail(&run->node, &gpu->runs);
	return run;

err_pool:
	gen_pool_free(gpu->bar1_pool, addr, run->size);
err_free:
	kvfree(run);
	return ERR_PTR(ret);
}

/* One more VMA (no @holder) or DMA mapping of the export */
struct pln_run *pln_run_get(struct pln_export *exp, struct pln_holder *holder)
{
	struct pln_gpu *gpu = exp->gpu;
	struct pln_run *run;
	int ret;

	down_write(&gpu->mem_lock);
	ret = exp->revoked ? -ENODEV : pln_state_errno(gpu);
	if (ret) {
		run = ERR_PTR(ret);
		goto out;
	}

	run = exp->run;
	if (!run) {
		run = pln_run_create(gpu, exp->pieces, exp->nr_pieces);
		if (IS_ERR(run))
			goto out;
		exp->run = run;
	}
	run->users++;
	if (holder)
		list_add_tail(&holder->node, &run->holders);
out:
	up_write(&gpu->mem_lock);
	return run;
}

/* A VMA was copied or split; a revoked export has no run to count it on */
void pln_run_dup(struct pln_export *exp)
{
	struct pln_gpu *gpu = exp->gpu;

	down_write(&gpu->mem_lock);
	if (exp->run)
		exp->run->users++;
	up_write(&gpu->mem_lock);
}

/*
 * A DMA mapping names the @run that it had: a revoked export has let go of it;
 * and a @fence, whose reference goes along, when the DMA is still to end.  VMAs
 * give NULL: they matter only while the export has a run.
 */
void pln_run_put(struct pln_export *exp, struct pln_run *run,
		 struct pln_holder *holder, struct dma_fence *fence)
{
	struct pln_gpu *gpu = exp->gpu;

	down_write(&gpu->mem_lock);
	if (fence) {
		/* It stands for the earlier one, too, unless that is done */
		dma_fence_put(run->fence);
		run->fence = fence;
	}
	if (holder) {
		list_del(&holder->node);
		if (list_empty(&run->holders))
			pln_reap_soon(gpu);
	}
	run = exp->run;
	if (run && !--run->users) {
		exp->run = NULL;
		pln_run_kill(gpu, run);
	}
	up_write(&gpu->mem_lock);
}

/* Revocation, or the end of the export */
void pln_run_detach(struct pln_export *exp)
{
	struct pln_gpu *gpu = exp->gpu;
	struct pln_run *run = exp->run;

	lockdep_assert_held_write(&gpu->mem_lock);
	if (!run)
		return;
	exp->run = NULL;
	list_move_tail(&run->node, &gpu->dying_runs);
	run->idle_end = 0;
	pln_reap_soon(gpu);
}

/* A run for another driver, which nothing but pln_run_unpin() takes away */
struct pln_run *pln_run_pin(const struct pln_piece *piece,
			    struct pln_holder *holder)
{
	struct pln_gpu *gpu = piece->buf->gpu;
	struct pln_run *run;
	int ret;

	down_write(&gpu->mem_lock);
	ret = piece->buf->revoked ? -EINVAL : pln_state_errno(gpu);
	run = ret ? ERR_PTR(ret) : pln_run_create(gpu, piece, 1);
	if (!IS_ERR(run))
		list_add_tail(&holder->node, &run->holders);
	up_write(&gpu->mem_lock);
	return run;
}

/* Its memory was retired: no live run */
void pln_run_orphan(struct pln_run *run)
{
	struct pln_gpu *gpu = run->gpu;

	down_write(&gpu->mem_lock);
	list_move_tail(&run->node, &gpu->dying_runs);
	up_write(&gpu->mem_lock);
}

void pln_run_unpin(struct pln_run *run, struct pln_holder *holder)
{
	struct pln_gpu *gpu = run->gpu;

	down_write(&gpu->mem_lock);
	list_del(&holder->node);
	if (run->pieces[0].buf->revoked)
		pln_reap_soon(gpu);
	pln_run_kill(gpu, run);
	up_write(&gpu->mem_lock);
}

/* A reset has emptied BAR1 */
void pln_aperture_was_reset(struct pln_gpu *gpu)
{
	struct pln_run *run;

	lockdep_assert_held_write(&gpu->mem_lock);
	/* A page table that is being put has taken its run along, not yet ended */
	list_for_each_entry(run, &gpu->runs, node)
		run->in_hw = false;
	list_for_each_entry(run, &gpu->dying_runs, node)
		run->in_hw = false;
	pln_bar1_cmd(gpu, PLN_BAR1_CMD_UNMAP_ALL, 0, 0, 0);
}

/*
 * Page fault on a VMA that shows memory from @phys on: insert the page, and
 * those behind it up to the end of the page table.  Called with mem_lock held
 * for reading, so that revocation comes either before, and is seen, or after,
 * and zaps what is inserted here.
 */
vm_fault_t pln_insert(struct vm_fault *vmf, phys_addr_t phys, bool have_pages)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long addr = vmf->address & PAGE_MASK;
	unsigned long end = min(vma->vm_end, ALIGN(addr + 1, PMD_SIZE));
	struct page *pages[PLN_INSERT_BATCH];
	unsigned long start = addr, nr, i;
	vm_fault_t fault;
	int ret;

	phys += addr - vma->vm_start;
	while (addr < end) {
		if (!have_pages) {
			fault = vmf_insert_pfn(vma, addr, PHYS_PFN(phys));
			if (fault != VM_FAULT_NOPAGE)
				return addr == start ? fault : VM_FAULT_NOPAGE;
			addr += PAGE_SIZE;
			phys += PAGE_SIZE;
			continue;
		}

		nr = min_t(unsigned long, PHYS_PFN(end - addr),
			   PLN_INSERT_BATCH);
		for (i = 0; i < nr; i++)
			pages[i] = pfn_to_page(PHYS_PFN(phys) + i);
		addr += nr << PAGE_SHIFT;
		phys += nr << PAGE_SHIFT;
		ret = vm_insert_pages(vma, addr - (nr << PAGE_SHIFT), pages,
				      &nr);
		if (!ret)
			continue;
		/* Somebody else was faster with this or a later page */
		if (ret == -EBUSY || addr - (nr << PAGE_SHIFT) > start)
			return VM_FAULT_NOPAGE;
		return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	}
	return VM_FAULT_NOPAGE;
}

/*
 * User mappings of memory: through the coherent window, or of the address alone.
 * Either way they say what memory a device pointer means.
 */
static void pln_vma_open(struct vm_area_struct *vma)
{
	pln_buf_get(vma->vm_private_data);
}

static void pln_vma_close(struct vm_area_struct *vma)
{
	pln_buf_put(vma->vm_private_data);
}

static vm_fault_t pln_vma_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct pln_buf *buf = vma->vm_private_data;
	struct pln_gpu *gpu = buf->gpu;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	down_read(&gpu->mem_lock);
	if (!buf->revoked && gpu->coherent_pgmap)
		ret = pln_insert(vmf, gpu->coherent_phys +
				 ((u64)vma->vm_pgoff << PAGE_SHIFT), true);
	up_read(&gpu->mem_lock);
	return ret;
}

static const struct vm_operations_struct pln_buf_vm_ops = {
	.open = pln_vma_open,
	.close = pln_vma_close,
	.fault = pln_vma_fault,
};

/* The VMA's offset is that of the memory in VRAM */
int pln_buf_mmap(struct pln_buf *buf, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (buf->gpu->coherent_pgmap) {
		vm_flags_set(vma, VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTDUMP);
	} else {
		if (vma->vm_flags & (VM_READ | VM_WRITE | VM_EXEC))
			return -ENODEV;
		vm_flags_clear(vma, VM_MAYREAD | VM_MAYWRITE | VM_MAYEXEC);
		vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTCOPY |
			     VM_DONTEXPAND | VM_DONTDUMP);
	}
	vma->vm_ops = &pln_buf_vm_ops;
	vma->vm_private_data = buf;
	pln_vma_open(vma);
	return 0;
}

/*
 * What memory do these addresses of the calling process mean?  All must be in
 * one allocation.  The caller gets a reference.
 */
struct pln_buf *pln_buf_at(u64 va, u64 len, u64 *offset)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct pln_buf *buf = NULL;
	u64 at = va, off;

	if (!mm)
		return ERR_PTR(-EINVAL);
	mmap_read_lock(mm);
	while (at < va + len) {
		vma = find_vma(mm, at);
		if (!vma || vma->vm_start > at ||
		    vma->vm_ops != &pln_buf_vm_ops)
			goto none;
		if (!buf)
			buf = vma->vm_private_data;
		off = ((u64)vma->vm_pgoff << PAGE_SHIFT) +
		      (at - vma->vm_start) - buf->vram;
		if (at == va)
			*offset = off;
		else if (vma->vm_private_data != buf ||
			 off != *offset + (at - va))
			goto none;
		at = vma->vm_end;
	}
	pln_buf_get(buf);
	mmap_read_unlock(mm);
	return buf;

none:
	mmap_read_unlock(mm);
	return ERR_PTR(-EINVAL);
}

int pln_aperture_init(struct pln_gpu *gpu)
{
	int node = dev_to_node(&gpu->pdev->dev);
	int ret;

	gpu->bar1_phys = pci_resource_start(gpu->pdev, PLN_BAR_APERTURE);
	gpu->bar1_pool = gen_pool_create(PLN_PAGE_SHIFT, node);
	if (!gpu->bar1_pool)
		return -ENOMEM;
	ret = gen_pool_add(gpu->bar1_pool, PLN_POOL_BASE, gpu->bar1_size, node);
	if (ret)
		goto err_pool;

	down_write(&gpu->mem_lock);
	ret = pln_bar1_cmd(gpu, PLN_BAR1_CMD_UNMAP_ALL, 0, 0, 0);
	up_write(&gpu->mem_lock);
	if (ret)
		goto err_pool;

	pln_pages_init(gpu);
	return 0;

err_pool:
	gen_pool_destroy(gpu->bar1_pool);
	return ret;
}

/* All runs are reaped */
void pln_aperture_fini(struct pln_gpu *gpu)
{
	pln_pages_fini(gpu);
	gen_pool_destroy(gpu->bar1_pool);
}
