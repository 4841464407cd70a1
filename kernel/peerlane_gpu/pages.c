// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: the struct pages of BAR1 and of the coherent window.
 *
 * With P2PDMA those of BAR1 come from the PCI core, all at once, and each keeps
 * one reference of ours as long as the driver is bound: a page with more is in
 * use, and the core's pool never hands one to somebody else.
 * They belong to an inode of ours, as those of device-dax do: since Linux 6.10
 * pin_user_pages_fast() takes no page of which it cannot tell that it is not secret
 * (secretmem), and all IO would pin page by page on the slow way.
 *
 * The coherent window shows all VRAM, one to one, as MEMORY_DEVICE_GENERIC
 * pages, with the same rule for references.  They belong to no inode: those
 * that a driver pins for IO it pins on the slow way.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/moduleparam.h>

#include "pln_gpu.h"

static bool pln_p2pdma = true;
module_param_named(p2pdma, pln_p2pdma, bool, 0644);
MODULE_PARM_DESC(p2pdma,
		 "struct pages for BAR1, of GPUs bound from now on (default on); off, as with most of NVIDIA's");

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

/* Pages that have more references than ours */
u64 pln_pages_busy(phys_addr_t phys, u64 size)
{
	u64 at, busy = 0;

	for (at = 0; at < size; at += PAGE_SIZE) {
		busy += page_ref_count(pfn_to_page(PHYS_PFN(phys + at))) != 1;
		cond_resched();
	}
	return busy;
}

/*
 * The inode of the pages of BAR1 is that of a file which nobody opens.  It has no owner: it is
 * gone before the module is.
 */
static const struct file_operations pln_bar1_fops;

static void pln_p2pdma_init(struct pln_gpu *gpu)
{
	struct device *dev = &gpu->pdev->dev;
	struct page *page;
	unsigned long i;
	void *mem;
	int ret;

	if (!IS_ENABLED(CONFIG_PCI_P2PDMA)) {
		dev_info(dev,
			 "no peer-to-peer DMA of files: this kernel is built without CONFIG_PCI_P2PDMA\n");
		return;
	}

	if (!READ_ONCE(pln_p2pdma)) {
		dev_info(dev, "no struct pages for BAR1: p2pdma is off\n");
		return;
	}

	ret = pci_p2pdma_add_resource(gpu->pdev, PLN_BAR_APERTURE, 0, 0);
	if (ret) {
		dev_warn(dev,
			 "no peer-to-peer DMA: no struct pages for BAR1 (%pe); a BAR1 of a multiple of 2 MiB is needed\n",
			 ERR_PTR(ret));
		return;
	}

	mem = pci_alloc_p2pmem(gpu->pdev, gpu->bar1_size);
	if (!mem) {
		dev_warn(dev,
			 "no peer-to-peer DMA: another driver has created pages of BAR1\n");
		return;
	}
	gpu->bar1_file = anon_inode_create_getfile("[peerlane_gpu]",
						   &pln_bar1_fops, NULL,
						   O_RDWR, NULL);
	if (IS_ERR(gpu->bar1_file)) {
		dev_info(dev,
			 "direct IO takes more time: no inode for the pages of BAR1 (%pe)\n",
			 gpu->bar1_file);
		gpu->bar1_file = NULL;
	}
	for (i = 0; i < gpu->bar1_size >> PAGE_SHIFT; i++) {
		page = virt_to_page(mem + i * PAGE_SIZE);
		set_page_count(page, 1);
		if (gpu->bar1_file)
			page_folio(page)->mapping =
				gpu->bar1_file->f_mapping;
	}
	gpu->bar1_p2pmem = mem;
}

static void pln_p2pdma_fini(struct pln_gpu *gpu)
{
	struct page *page;
	unsigned long i;

	if (!gpu->bar1_p2pmem)
		return;
	/*
	 * All mappings are gone.  pin_user_pages_fast() may have read one before and
	 * hold a reference until it looks again; it does all that with interrupts
	 * off, which is over after this.
	 */
	synchronize_rcu();
	for (i = 0; i < gpu->bar1_size >> PAGE_SHIFT; i++) {
		page = virt_to_page(gpu->bar1_p2pmem + i * PAGE_SIZE);
		WARN_ON_ONCE(!page_ref_freeze(page, 1));
		page_folio(page)->mapping = NULL;
	}
	if (gpu->bar1_file)
		__fput_sync(gpu->bar1_file);
	gpu->bar1_file = NULL;
	pci_free_p2pmem(gpu->pdev, gpu->bar1_p2pmem, gpu->bar1_size);
	gpu->bar1_p2pmem = NULL;
}

static void pln_coherent_init(struct pln_gpu *gpu)
{
	struct pci_dev *pdev = gpu->pdev;
	struct dev_pagemap *pgmap;
	void *addr;

	if (!(pln_rd(gpu, PLN_REG_FEATURES) & PLN_FEAT_COHERENT))
		return;
	gpu->coherent_phys = pci_resource_start(pdev, PLN_BAR_COHERENT);
	gpu->coherent_size = pci_resource_len(pdev, PLN_BAR_COHERENT);
	if (gpu->coherent_size < gpu->vram_size) {
		dev_warn(&pdev->dev,
			 "coherent window not used: it has %llu bytes, VRAM %llu; was BAR %u given space?\n",
			 gpu->coherent_size, gpu->vram_size, PLN_BAR_COHERENT);
		goto none;
	}

	/* Freed by the driver core, after the pages are gone */
	pgmap = devm_kzalloc(&pdev->dev, sizeof(*pgmap), GFP_KERNEL);
	if (!pgmap)
		goto none;
	pgmap->type = MEMORY_DEVICE_GENERIC;
	pgmap->range.start = gpu->coherent_phys;
	pgmap->range.end = gpu->coherent_phys + gpu->coherent_size - 1;
	pgmap->nr_range = 1;
	addr = devm_memremap_pages(&pdev->dev, pgmap);
	if (IS_ERR(addr)) {
		dev_warn(&pdev->dev,
			 "coherent window not used: no struct pages for it (%pe); VRAM of a multiple of 2 MiB is needed\n",
			 addr);
		goto none;
	}
	gpu->coherent_pgmap = pgmap;
	return;

none:
	gpu->coherent_size = 0;
}

/* What cannot be had is done without; the log says why */
void pln_pages_init(struct pln_gpu *gpu)
{
	pln_p2pdma_init(gpu);
	if (!pcim_p2pdma_init(gpu->pdev))
		gpu->provider = pcim_p2pdma_provider(gpu->pdev,
						     PLN_BAR_APERTURE);
	pln_coherent_init(gpu);
}

/* No page is in use; the core takes them back after remove */
void pln_pages_fini(struct pln_gpu *gpu)
{
	pln_p2pdma_fini(gpu);
	gpu->coherent_pgmap = NULL;
}
