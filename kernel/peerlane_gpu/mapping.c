// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: mappings of its memory by programs.
 */
#include <linux/mm.h>

#include "pln_gpu.h"

#define PLN_INSERT_BATCH	16

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
