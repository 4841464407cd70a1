// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: struct pages of BAR1, where the GPU's driver has made none.
 *
 * pci_p2pdma_add_resource() makes them, for the GPU's device: the kernel takes for
 * granted that a page map of P2PDMA lies in a structure of its own, which says whose
 * memory it is, so no page map of this module would do.
 *
 * They hang on the GPU's driver, as what that driver allocates itself (devres), and go
 * when it is unbound, after its remove(), so after all callbacks, and when IO has no
 * references to the page map any more.  They are made when memory is registered: then
 * the GPU's driver has had its chance to make pages itself, and cannot finish its
 * remove() meanwhile.
 *
 * Nobody gets such a page but by its address: the kernel's allocator of peers' memory
 * would give GPU memory that belongs to others, so its file is taken away.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/pgtable.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>

#include "peerlane.h"

static unsigned int pln_own_pages_mib;
module_param_named(own_pages_mib, pln_own_pages_mib, uint, 0644);
MODULE_PARM_DESC(own_pages_mib,
		 "host memory for struct pages of a GPU's BAR1, where its driver has made none, in MiB for each GPU (default 0: none are made)");

/* How long for a device that somebody has locked, and until a refusal is looked at anew */
#define PLN_BAR_LOCK_MS	10000
#define PLN_BAR_AGAIN	(60 * HZ)

/**
 * struct pln_bar - a BAR that was tried, an entry of its devres
 * @node: in pln_bars
 * @pdev: the GPU
 * @nr: of the BAR
 * @pgmap: the pages, which are this module's; NULL: there are none
 * @mib: pln_own_pages_mib when it was tried
 * @again: no new trial with the same @mib before
 * @wc: its mappings were write-combining: no new trial with the same @mib, as each leaves
 *	some memory until the GPU's driver is unbound
 *
 * All but @node is guarded by the lock of the device.
 */
struct pln_bar {
	struct list_head node;
	struct pci_dev *pdev;
	int nr;
	struct dev_pagemap *pgmap;
	unsigned int mib;
	unsigned long again;
	bool wc;
};

static DEFINE_MUTEX(pln_bars_lock);
static LIST_HEAD(pln_bars);

/* The GPU's driver is unbound; or this module goes */
static void pln_bar_release(struct device *dev, void *res)
{
	struct pln_bar *bar = res;

	mutex_lock(&pln_bars_lock);
	list_del(&bar->node);
	mutex_unlock(&pln_bars_lock);
}

static int pln_bar_is(struct device *dev, void *res, void *nr)
{
	const struct pln_bar *bar = res;

	return bar->nr == *(const int *)nr;
}

static struct pln_bar *pln_bar_get(struct pci_dev *pdev, int nr)
{
	struct pln_bar *bar;

	bar = devres_find(&pdev->dev, pln_bar_release, pln_bar_is, &nr);
	if (bar)
		return bar;
	bar = devres_alloc(pln_bar_release, sizeof(*bar), GFP_KERNEL);
	if (!bar)
		return NULL;
	bar->pdev = pdev;
	bar->nr = nr;
	bar->pgmap = NULL;
	bar->mib = 0;
	bar->wc = false;
	mutex_lock(&pln_bars_lock);
	list_add(&bar->node, &pln_bars);
	mutex_unlock(&pln_bars_lock);
	devres_add(&pdev->dev, bar);
	return bar;
}

/* Is the kernel's mapping of the page uncached, weakly or strongly? */
static bool pln_page_uncached(const struct page *page)
{
#ifdef CONFIG_X86_64
	unsigned int level;
	pteval_t pat;
	pte_t *pte;

	pte = lookup_address((unsigned long)page_address(page), &level);
	pat = level == PG_LEVEL_4K ? _PAGE_PAT : _PAGE_PAT_LARGE;
	return pte && (pte_flags(*pte) & (_PAGE_PCD | pat)) == _PAGE_PCD;
#else
	return false;
#endif
}

/* Where the kernel would only warn, or not notice at all: why not, or NULL */
static const char *pln_bar_refuse(resource_size_t start, resource_size_t size,
				  unsigned int mib)
{
	resource_size_t at;

	if (!IS_ENABLED(CONFIG_X86_64))
		return "only on x86-64 the processor can use them like memory";
	if (!IS_ALIGNED(start | size, memremap_compat_align()))
		return "it is no multiple of 2 MiB";
	if (size / PAGE_SIZE * sizeof(struct page) > (u64)mib * SZ_1M)
		return "they take more host memory than own_pages_mib allows";
	for (at = start; at < start + size; at += memremap_compat_align())
		if (pfn_valid(PHYS_PFN(at)))
			return "a part of it has pages already";
	return NULL;
}

/* With the lock of the device, which has a driver */
static int pln_bar_make(struct pci_dev *pdev, int nr, unsigned int mib)
{
	static const struct attribute allocate = { .name = "allocate" };
	resource_size_t start = pci_resource_start(pdev, nr);
	resource_size_t size = pci_resource_len(pdev, nr);
	struct dev_pagemap *pgmap;
	struct pln_bar *bar;
	const char *why;
	int ret;

	bar = pln_bar_get(pdev, nr);
	if (!bar)
		return -ENOMEM;
	if (bar->pgmap)
		return 0;
	if (bar->mib == mib && (bar->wc || time_before(jiffies, bar->again)))
		return -EOPNOTSUPP;
	bar->mib = mib;
	bar->wc = false;
	bar->again = jiffies + PLN_BAR_AGAIN;

	why = pln_bar_refuse(start, size, mib);
	if (why) {
		ret = -EOPNOTSUPP;
		goto err;
	}
	ret = pci_p2pdma_add_resource(pdev, nr, 0, 0);
	if (ret) {
		/* Mostly since only some of its mappings are write-combining */
		why = "the kernel refuses";
		goto err;
	}
	sysfs_remove_file_from_group(&pdev->dev.kobj, &allocate, "p2pmem");
	pgmap = page_pgmap(pfn_to_page(PHYS_PFN(start)));
	/*
	 * There is one type for all mappings of an address, the first one's.  What the
	 * GPU's driver wants uncached from now on would be write-combining.
	 */
	if (!pln_page_uncached(pfn_to_page(PHYS_PFN(start)))) {
		bar->wc = true;
		devm_memunmap_pages(&pdev->dev, pgmap);
		why = "its mappings are write-combining";
		ret = -EOPNOTSUPP;
		goto err;
	}
	bar->pgmap = pgmap;
	pci_info(pdev, "peerlane: BAR %d has %llu MiB of struct pages for P2PDMA now\n",
		 nr, (u64)size / PAGE_SIZE * sizeof(struct page) / SZ_1M);
	return 0;

err:
	pci_warn(pdev, "peerlane: no struct pages for BAR %d of %llu MiB: %s (%pe)\n",
		 nr, (u64)size / SZ_1M, why, ERR_PTR(ret));
	return -EOPNOTSUPP;
}

/* With a reference */
static struct pci_dev *pln_bar_find(phys_addr_t phys, int *nr)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev)
		for (*nr = 0; *nr < PCI_STD_NUM_BARS; ++*nr)
			if (pci_resource_flags(pdev, *nr) & IORESOURCE_MEM &&
			    phys >= pci_resource_start(pdev, *nr) &&
			    phys <= pci_resource_end(pdev, *nr))
				return pdev;
	return NULL;
}

/*
 * Who has locked the device may be waiting for the callback, so for the caller.  The
 * callback says so first.
 */
static int pln_bar_lock(const struct pln_mem *mem, struct device *dev)
{
	unsigned long end = jiffies + msecs_to_jiffies(PLN_BAR_LOCK_MS);
	int ret;

	while (!device_trylock(dev)) {
		ret = pln_mem_stopped(mem);
		if (ret)
			return ret;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EBUSY;
		usleep_range(500, 1000);
	}
	return 0;
}

/**
 * pln_pages_make - make struct pages for a BAR
 * @mem: in whose registration it happens, so that the callback waits for the caller
 * @phys: in the BAR
 *
 * Return: 0; -EOPNOTSUPP: it is not allowed, or not possible; another errno: not now.
 */
int pln_pages_make(const struct pln_mem *mem, phys_addr_t phys)
{
	unsigned int mib = READ_ONCE(pln_own_pages_mib);
	struct pci_dev *pdev;
	int ret, nr;

	if (!mib)
		return -EOPNOTSUPP;
	pdev = pln_bar_find(phys, &nr);
	if (!pdev)
		return -EOPNOTSUPP;
	ret = pln_bar_lock(mem, &pdev->dev);
	if (!ret) {
		ret = pdev->dev.driver ? pln_bar_make(pdev, nr, mib) : -ENODEV;
		device_unlock(&pdev->dev);
	}
	pci_dev_put(pdev);
	return ret;
}

static struct pci_dev *pln_bar_first(void)
{
	struct pci_dev *pdev = NULL;

	mutex_lock(&pln_bars_lock);
	if (!list_empty(&pln_bars))
		pdev = pci_dev_get(list_first_entry(&pln_bars, struct pln_bar,
						    node)->pdev);
	mutex_unlock(&pln_bars_lock);
	return pdev;
}

/* No memory is registered.  The GPU's driver may be unbound meanwhile. */
void pln_pages_exit(void)
{
	struct dev_pagemap *pgmap;
	struct pci_dev *pdev;
	struct pln_bar *bar;

	while ((pdev = pln_bar_first())) {
		device_lock(&pdev->dev);
		bar = devres_find(&pdev->dev, pln_bar_release, NULL, NULL);
		if (bar) {
			pgmap = bar->pgmap;
			devres_release(&pdev->dev, pln_bar_release, NULL, NULL);
			if (pgmap)
				devm_memunmap_pages(&pdev->dev, pgmap);
		}
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
	}
}
