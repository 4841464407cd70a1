// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: how the CPU and other devices reach its memory.
 *
 * BAR1 is a window: runs of units are mapped to VRAM while an export needs
 * them.  Its pages, and those of the coherent window, are the business of pages.c.
 */
#include <linux/genalloc.h>

#include "aperture.h"

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

/*
 * Show the pieces in BAR1.  The caller holds mem_lock for writing and has seen that
 * none of them is retired; the run takes references of its own.
 */
struct pln_run *pln_run_create(struct pln_gpu *gpu,
			       const struct pln_piece *pieces,
			       unsigned int nr_pieces)
{
	struct pln_run *run;
	unsigned long addr;
	unsigned int i;
	int ret;

	lockdep_assert_held_write(&gpu->mem_lock);
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

/* Its export was revoked or has ended; the reaper takes it when it is idle */
void pln_run_drain(struct pln_run *run)
{
	struct pln_gpu *gpu = run->gpu;

	lockdep_assert_held_write(&gpu->mem_lock);
	list_move_tail(&run->node, &gpu->dying_runs);
	run->idle_end = 0;
	pln_reap_soon(gpu);
}

/* The same, for a run that may well be idle now: then BAR1 is free again at once */
void pln_run_kill(struct pln_run *run)
{
	struct pln_gpu *gpu = run->gpu;

	lockdep_assert_held_write(&gpu->mem_lock);
	list_move_tail(&run->node, &gpu->dying_runs);
	run->idle_end = 0;
	if (!pln_run_reap(gpu, run))
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
	pln_run_kill(run);
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

static bool pln_redirects(struct pci_dev *bridge)
{
	int acs = pci_find_ext_capability(bridge, PCI_EXT_CAP_ID_ACS);
	u16 ctrl = 0;

	if (acs)
		pci_read_config_word(bridge, acs + PCI_ACS_CTRL, &ctrl);
	return ctrl & (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC);
}

/* Is the bridge above the device, and nothing between sends DMA past it? */
static bool pln_below(struct pci_dev *pdev, struct pci_dev *top)
{
	struct pci_dev *up;

	for (up = pci_upstream_bridge(pdev); up; up = pci_upstream_bridge(up)) {
		if (up == top)
			return true;
		if (pln_redirects(up))
			return false;
	}
	return false;
}

/*
 * Without P2PDMA pages there is no code to ask.  What is certain all the same:
 * devices below one switch that does not redirect reach each other by bus
 * addresses.
 */
bool pln_below_one_switch(struct pln_gpu *gpu, struct pci_dev *peer)
{
	struct pci_dev *up;

	for (up = pci_upstream_bridge(gpu->pdev); up;
	     up = pci_upstream_bridge(up))
		if (pci_pcie_type(up) == PCI_EXP_TYPE_UPSTREAM &&
		    pln_below(gpu->pdev, up) && pln_below(peer, up))
			return true;
	return false;
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
