// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: memory exported as dma-bufs, through BAR1.
 *
 * A dma-buf may outlive the file that the memory belongs to, and the binding
 * of the driver.  What is left then is an empty shell: revoked, with SIGBUS
 * behind its mappings and ENODEV for importers.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>

#include "pln_gpu.h"

PLN_IMPORT_NS_DMA_BUF();

static int pln_dmabuf_attach(struct dma_buf *dmabuf,
			     struct dma_buf_attachment *attach)
{
	struct pln_export *exp = dmabuf->priv;
	struct pln_gpu *gpu = exp->buf->gpu;

	/* There are no pages in host memory that could be used instead */
	if (!attach->peer2peer || !dma_buf_attach_revocable(attach))
		return -EOPNOTSUPP;
	if (READ_ONCE(exp->buf->revoked))
		return -ENODEV;
	if (!gpu->provider)
		return -EOPNOTSUPP;
	return 0;
}

/* Memory stays where it is until it is revoked */
static int pln_dmabuf_pin(struct dma_buf_attachment *attach)
{
	struct pln_export *exp = attach->dmabuf->priv;

	return READ_ONCE(exp->buf->revoked) ? -ENODEV : 0;
}

static void pln_dmabuf_unpin(struct dma_buf_attachment *attach)
{
}

/* An importer's mapping remembers its run */
struct pln_dmabuf_map {
	struct list_head node;
	struct sg_table *sgt;
	struct pln_run *run;
};

static struct sg_table *pln_dmabuf_map(struct dma_buf_attachment *attach,
				       enum dma_data_direction dir)
{
	struct pln_export *exp = attach->dmabuf->priv;
	struct pln_gpu *gpu = exp->buf->gpu;
	struct pln_dmabuf_map *map;
	struct phys_vec vec;
	struct sg_table *sgt;
	int ret;

	dma_resv_assert_held(attach->dmabuf->resv);

	map = kzalloc_obj(*map, GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);

	map->run = pln_run_get(exp, true);
	if (IS_ERR(map->run)) {
		ret = PTR_ERR(map->run);
		goto err_free;
	}

	vec.paddr = gpu->bar1_phys + map->run->bar1;
	vec.len = exp->size;
	sgt = dma_buf_phys_vec_to_sgt(attach, gpu->provider, &vec, 1,
				      exp->size, dir);
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto err_run;
	}
	map->sgt = sgt;
	list_add(&map->node, &exp->maps);
	return sgt;

err_run:
	pln_run_put(exp, map->run);
err_free:
	kfree(map);
	return ERR_PTR(ret);
}

static void pln_dmabuf_unmap(struct dma_buf_attachment *attach,
			     struct sg_table *sgt, enum dma_data_direction dir)
{
	struct pln_export *exp = attach->dmabuf->priv;
	struct pln_dmabuf_map *map, *found = NULL;

	dma_resv_assert_held(attach->dmabuf->resv);

	list_for_each_entry(map, &exp->maps, node)
		if (map->sgt == sgt)
			found = map;
	dma_buf_free_sgt(attach, sgt, dir);
	if (WARN_ON(!found))
		return;
	list_del(&found->node);
	pln_run_put(exp, found->run);
	kfree(found);
}

static void pln_dmabuf_vm_open(struct vm_area_struct *vma)
{
	pln_run_dup(vma->vm_private_data);
}

static void pln_dmabuf_vm_close(struct vm_area_struct *vma)
{
	pln_run_put(vma->vm_private_data, NULL);
}

static vm_fault_t pln_dmabuf_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct pln_export *exp = vma->vm_private_data;
	struct pln_gpu *gpu = exp->buf->gpu;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	down_read(&gpu->mem_lock);
	if (exp->run)
		ret = pln_insert(vmf, gpu->bar1_phys + exp->run->bar1 +
				 ((u64)vma->vm_pgoff << PAGE_SHIFT),
				 gpu->bar1_p2pmem);
	up_read(&gpu->mem_lock);
	return ret;
}

static const struct vm_operations_struct pln_dmabuf_vm_ops = {
	.open = pln_dmabuf_vm_open,
	.close = pln_dmabuf_vm_close,
	.fault = pln_dmabuf_fault,
};

static int pln_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct pln_export *exp = dmabuf->priv;
	struct pln_gpu *gpu = exp->buf->gpu;
	struct pln_run *run;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	run = pln_run_get(exp, false);
	if (IS_ERR(run))
		return PTR_ERR(run);

	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (gpu->bar1_p2pmem) {
		vm_flags_set(vma, VM_MIXEDMAP);
	} else {
		vm_flags_set(vma, VM_IO | VM_PFNMAP);
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	}
	vma->vm_ops = &pln_dmabuf_vm_ops;
	vma->vm_private_data = exp;
	return 0;
}

static void pln_dmabuf_release(struct dma_buf *dmabuf)
{
	struct pln_export *exp = dmabuf->priv;
	struct pln_gpu *gpu = exp->buf->gpu;

	down_write(&gpu->mem_lock);
	list_del(&exp->node);
	WARN_ON(!list_empty(&exp->maps));
	pln_run_detach(exp);
	up_write(&gpu->mem_lock);

	pln_buf_put(exp->buf);
	atomic64_dec(&gpu->nr_exports);
	put_device(&gpu->dev);
	kfree(exp);
}

static const struct dma_buf_ops pln_dmabuf_ops = {
	.attach = pln_dmabuf_attach,
	.pin = pln_dmabuf_pin,
	.unpin = pln_dmabuf_unpin,
	.map_dma_buf = pln_dmabuf_map,
	.unmap_dma_buf = pln_dmabuf_unmap,
	.mmap = pln_dmabuf_mmap,
	.release = pln_dmabuf_release,
};

struct dma_buf *pln_export_buf(struct pln_buf *buf, u64 offset, u64 size)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct pln_gpu *gpu = buf->gpu;
	struct pln_export *exp;
	struct dma_buf *dmabuf;
	int ret = 0;

	exp = kzalloc_obj(*exp, GFP_KERNEL_ACCOUNT);
	if (!exp)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&exp->node);
	INIT_LIST_HEAD(&exp->maps);
	exp->buf = buf;
	exp->offset = offset;
	exp->size = size;

	info.ops = &pln_dmabuf_ops;
	info.size = size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = exp;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(exp);
		return dmabuf;
	}

	/* From here on dma_buf_put() undoes it all */
	pln_buf_get(buf);
	get_device(&gpu->dev);
	atomic64_inc(&gpu->nr_exports);
	down_write(&gpu->mem_lock);
	exp->dmabuf = dmabuf;
	if (buf->revoked)
		ret = buf->lost ? -EIO : -ENOENT;
	else
		list_add_tail(&exp->node, &buf->exports);
	up_write(&gpu->mem_lock);
	if (ret) {
		dma_buf_put(dmabuf);
		return ERR_PTR(ret);
	}
	return dmabuf;
}

/*
 * The memory is marked revoked and the run is detached: no new mapping can be
 * made.  Undo those that are there.  The caller has a reference to the file.
 */
void pln_export_revoke(struct pln_export *exp, struct file *file)
{
	struct dma_buf *dmabuf = exp->dmabuf;

	unmap_mapping_range(file->f_mapping, 0, 0, 1);

	dma_resv_lock(dmabuf->resv, NULL);
	dma_buf_invalidate_mappings(dmabuf);
	dma_resv_unlock(dmabuf->resv);
}

/*
 * The memory behind a dma-buf of ours, with a reference and one more handle,
 * which pln_buf_drop() gives back.
 */
struct pln_buf *pln_import_buf(struct pln_gpu *gpu, int fd, u64 *offset,
			       struct address_space *mapping)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	struct pln_export *exp;
	struct pln_buf *buf;
	int ret = 0;

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	if (dmabuf->ops != &pln_dmabuf_ops) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-EINVAL);
	}
	exp = dmabuf->priv;
	buf = exp->buf;
	down_write(&gpu->mem_lock);
	/* Revocation must find all mappings, so they are of one device node */
	if (buf->gpu != gpu || (!buf->revoked && buf->mapping != mapping))
		ret = -EXDEV;
	else if (buf->revoked)
		ret = buf->lost ? -EIO : -ENOENT;
	else
		buf->handles++;
	up_write(&gpu->mem_lock);
	if (!ret) {
		pln_buf_get(buf);
		*offset = exp->offset;
	}
	dma_buf_put(dmabuf);
	return ret ? ERR_PTR(ret) : buf;
}
