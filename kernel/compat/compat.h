/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane: one source for many kernels.
 *
 * Force-included before every source file.  The code is written for the newest
 * kernel; this file offers what it uses to older ones, and nothing else in the
 * modules knows about kernel versions.  Where a distribution may have
 * backported an interface, the test is for the interface.
 */
#ifndef _PEERLANE_COMPAT_H
#define _PEERLANE_COMPAT_H

#include <linux/version.h>

#define PLN_KERNEL_MIN	KERNEL_VERSION(6, 1, 0)
#define PLN_KERNEL_MAX	KERNEL_VERSION(7, 3, 0)		/* below this one */

#if LINUX_VERSION_CODE < PLN_KERNEL_MIN && !defined(PLN_ANY_KERNEL)
#error "Peerlane supports Linux 6.1 to 7.2; to try an older one, build with ANY_KERNEL=1"
#endif
#if LINUX_VERSION_CODE >= PLN_KERNEL_MAX && !defined(PLN_ANY_KERNEL)
#error "Peerlane supports Linux 6.1 to 7.2; to try a newer one, build with ANY_KERNEL=1"
#endif

#include <linux/device/class.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

/* 6.4: class_create() without a module */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
static inline struct class *pln_class_create(const char *name)
{
	return class_create(THIS_MODULE, name);
}

#undef class_create
#define class_create(name)	pln_class_create(name)
#endif

/* 6.2: who takes pages of peers says so */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define FOLL_PCI_P2PDMA	0
#endif

/* 6.2: the class callback has a const device */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define PLN_DEVNODE_CONST
#else
#define PLN_DEVNODE_CONST	const
#endif

/*
 * 6.8: an inode for a driver.  None is needed: before 6.10 pin_user_pages_fast() takes
 * pages that have none.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
#define anon_inode_create_getfile(name, fops, priv, flags, context)	\
	((void)(fops), (struct file *)NULL)
#endif

/* 6.5: direct IO of the block layer takes a kernel's addresses (ITER_KVEC) */
#define PLN_HAVE_KVEC_DIRECT_IO	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0))

/* 6.6: an attribute that newer compilers know */
#ifndef __counted_by
#define __counted_by(member)
#endif

/* 7.0: allocation by type; the flags may be left out */
#ifndef kzalloc_obj
#define pln_second(first, second, ...)	second
#define kzalloc_obj(P, ...)	\
	((typeof(P) *)kzalloc(sizeof(P),	\
			      pln_second(0, ##__VA_ARGS__, GFP_KERNEL)))
#endif

/* 6.3: VMA flags behind accessors */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* 6.8: protects against freezing by itself; regular files only, as file_start_write() */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
static inline ssize_t pln_vfs_iocb_iter_write(struct file *file,
					      struct kiocb *iocb,
					      struct iov_iter *iter)
{
	ssize_t ret;

	file_start_write(file);
	ret = vfs_iocb_iter_write(file, iocb, iter);
	file_end_write(file);
	return ret;
}

#define vfs_iocb_iter_write	pln_vfs_iocb_iter_write
#endif

/* 6.13: namespaces are strings */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define PLN_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS(DMA_BUF)
#else
#define PLN_IMPORT_NS_DMA_BUF()	MODULE_IMPORT_NS("DMA_BUF")
#endif

/* 6.15: pages of devices name it by their folio */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
#define page_pgmap(page)	((page)->pgmap)
#endif

/* 6.17: flags of files in the kernel and in its interface have names of their own */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define file_kattr	fileattr
#endif

/* 6.18: it takes no page map that the caller has already */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define pln_get_dev_pagemap(pfn)	get_dev_pagemap(pfn, NULL)
#else
#define pln_get_dev_pagemap(pfn)	get_dev_pagemap(pfn)
#endif

/* 7.1: move_notify is called what it is */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define invalidate_mappings		move_notify
#define dma_buf_invalidate_mappings	dma_buf_move_notify

static inline bool dma_buf_attach_revocable(struct dma_buf_attachment *attach)
{
	return attach->importer_ops && attach->importer_ops->move_notify;
}
#endif

/*
 * 6.19: exporters of MMIO give ranges of physical addresses and let the core
 * find the way from the importer.  Before, nothing exported says which way that
 * is: pci_p2pdma_distance() allows pairs below one switch, whose way stays there,
 * and pairs whose way leads through the host bridge, while dma_map_resource()
 * always gives an address for the host bridge.  So the exporter itself must allow
 * only what is certain, and check the address.
 */
#ifdef PLN_HAVE_DMA_BUF_MAPPING
#include <linux/dma-buf-mapping.h>

#define PLN_DMA_BUF_FINDS_WAY	IS_ENABLED(CONFIG_PCI_P2PDMA)

/*
 * Up to 7.2 at least the core sets orig_nents to 0, since there are no pages for
 * the CPU, and when it frees the table it then finds no list to free.
 */
static inline void pln_dma_buf_free_sgt(struct dma_buf_attachment *attach,
					struct sg_table *sgt,
					enum dma_data_direction dir)
{
	sgt->orig_nents = sgt->nents;
	dma_buf_free_sgt(attach, sgt, dir);
}

#define dma_buf_free_sgt	pln_dma_buf_free_sgt
#else
#define PLN_DMA_BUF_FINDS_WAY	false

struct phys_vec {
	phys_addr_t paddr;
	size_t len;
};

struct p2pdma_provider {
	struct device *owner;
};

static inline int pcim_p2pdma_init(struct pci_dev *pdev)
{
	return 0;
}

static inline struct p2pdma_provider *pcim_p2pdma_provider(struct pci_dev *pdev,
							   int bar)
{
	struct p2pdma_provider *provider;

	provider = devm_kzalloc(&pdev->dev, sizeof(*provider), GFP_KERNEL);
	if (!provider)
		return NULL;
	provider->owner = &pdev->dev;
	return provider;
}

/* One range is all that our exporters use */
static inline struct sg_table *
dma_buf_phys_vec_to_sgt(struct dma_buf_attachment *attach,
			struct p2pdma_provider *provider,
			struct phys_vec *vec, size_t nr_ranges, size_t size,
			enum dma_data_direction dir)
{
	struct sg_table *sgt;
	dma_addr_t addr;
	int ret;

	if (nr_ranges != 1 || vec->len != size || size > UINT_MAX)
		return ERR_PTR(-EINVAL);

	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, 1, GFP_KERNEL);
	if (ret)
		goto err_free;

	addr = dma_map_resource(attach->dev, vec->paddr, size, dir, 0);
	ret = dma_mapping_error(attach->dev, addr);
	if (ret)
		goto err_table;

	sg_set_page(sgt->sgl, NULL, 0, 0);
	sg_dma_address(sgt->sgl) = addr;
	sg_dma_len(sgt->sgl) = size;
	sgt->orig_nents = 0;	/* no pages for the CPU */
	return sgt;

err_table:
	sg_free_table(sgt);
err_free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static inline void dma_buf_free_sgt(struct dma_buf_attachment *attach,
				    struct sg_table *sgt,
				    enum dma_data_direction dir)
{
	dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl),
			   sg_dma_len(sgt->sgl), dir, 0);
	sgt->orig_nents = 1;
	sg_free_table(sgt);
	kfree(sgt);
}
#endif

#endif /* _PEERLANE_COMPAT_H */
