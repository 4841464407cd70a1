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

#include "aperture.h"
#include "dmabuf.h"

PLN_IMPORT_NS_DMA_BUF();

static int pln_dmabuf_attach(struct dma_buf *dmabuf,
			     struct dma_buf_attachment *attach)
{
	struct pln_export *exp = dmabuf->priv;
	struct pln_gpu *gpu = exp->gpu;
	int ret = 0;

	/* There are no pages in host memory that could be used instead */
	if (!attach->peer2peer || !dma_buf_attach_revocable(attach))
		return -EOPNOTSUPP;
	down_write(&gpu->mem_lock);
	if (exp->revoked)
		ret = -ENODEV;
	else if (!gpu->provider)
		ret = -EOPNOTSUPP;
	else
		exp->attachments++;
	up_write(&gpu->mem_lock);
	return ret;
}

static void pln_dmabuf_detach(struct dma_buf *dmabuf,
			      struct dma_buf_attachment *attach)
{
	struct pln_export *exp = dmabuf->priv;

	down_write(&exp->gpu->mem_lock);
	exp->attachments--;
	up_write(&exp->gpu->mem_lock);
}

/* Memory stays where it is until it is revoked */
static int pln_dmabuf_pin(struct dma_buf_attachment *attach)
{
	struct pln_export *exp = attach->dmabuf->priv;

	return READ_ONCE(exp->revoked) ? -ENODEV : 0;
}

static void pln_dmabuf_unpin(struct dma_buf_attachment *attach)
{
}

/* One more mapping of the export: of a program, or with a @holder of an importer */
static struct pln_run *pln_export_show(struct pln_export *exp,
				       struct pln_holder *holder)
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
static void pln_export_dup(struct pln_export *exp)
{
	struct pln_gpu *gpu = exp->gpu;

	down_write(&gpu->mem_lock);
	if (exp->run)
		exp->run->users++;
	up_write(&gpu->mem_lock);
}

/*
 * A mapping of the export has gone.  That of an importer names its @holder and the
 * @run it is on, since a revoked export has no run any more; with a @fence, whose
 * reference it hands over, if its DMA ends when that is signaled.  That of a program
 * has none of these: what it counts on is the run of the export, or nothing.
 */
static void pln_export_hide(struct pln_export *exp, struct pln_run *run,
			    struct pln_holder *holder, struct dma_fence *fence)
{
	struct pln_gpu *gpu = exp->gpu;

	down_write(&gpu->mem_lock);
	if (fence) {
		/* The dma-buf's fences are all in it, also the earlier one if not done */
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
		pln_run_kill(run);
	}
	up_write(&gpu->mem_lock);
}

/*
 * An importer's mapping, in exp->maps; the run stays while @holder is in its list.  That
 * is a list, and not the attachment's priv, as dma_buf_map_attachment() lets an importer
 * map one attachment more than once.  The buffer's dma_resv protects it.
 */
struct pln_dmabuf_map {
	struct list_head node;
	struct sg_table *sgt;
	struct pln_run *run;
	struct pln_holder holder;
};

/*
 * Kernels without P2PDMA, and those before 6.19, cannot be asked for a way.  One
 * is certain: by bus addresses, below one switch.
 */
static int pln_dmabuf_check_way(struct pln_gpu *gpu, struct device *dev)
{
	if (PLN_DMA_BUF_FINDS_WAY)
		return 0;
	if (dev_is_pci(dev) && pln_below_one_switch(gpu, to_pci_dev(dev)))
		return 0;
	dev_warn_ratelimited(dev,
			     "no DMA to a dma-buf of %s: they are not below one switch, or that redirects, and this kernel cannot be asked for another way\n",
			     pci_name(gpu->pdev));
	return -EINVAL;
}

static int pln_dmabuf_check_addr(struct pln_gpu *gpu, u64 bar1,
				 struct device *dev, struct sg_table *sgt)
{
	if (PLN_DMA_BUF_FINDS_WAY || sg_dma_address(sgt->sgl) ==
	    pci_bus_address(gpu->pdev, PLN_BAR_APERTURE) + bar1)
		return 0;
	dev_warn_ratelimited(dev,
			     "no DMA to a dma-buf of %s: an IOMMU translates its addresses, and this kernel cannot be asked for another way\n",
			     pci_name(gpu->pdev));
	return -EINVAL;
}

static struct sg_table *pln_dmabuf_map(struct dma_buf_attachment *attach,
				       enum dma_data_direction dir)
{
	struct pln_export *exp = attach->dmabuf->priv;
	struct pln_gpu *gpu = exp->gpu;
	struct pln_dmabuf_map *map;
	struct phys_vec vec;
	struct sg_table *sgt;
	u64 bar1;
	int ret;

	dma_resv_assert_held(attach->dmabuf->resv);

	if (READ_ONCE(exp->revoked))
		return ERR_PTR(-ENODEV);
	ret = pln_dmabuf_check_way(gpu, attach->dev);
	if (ret)
		return ERR_PTR(ret);
	map = kzalloc_obj(*map, GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);

	map->holder.dev = attach->dev;
	map->run = pln_export_show(exp, &map->holder);
	if (IS_ERR(map->run)) {
		ret = PTR_ERR(map->run);
		goto err_free;
	}

	bar1 = map->run->bar1 + exp->skip;
	vec.paddr = gpu->bar1_phys + bar1;
	vec.len = exp->size;
	sgt = dma_buf_phys_vec_to_sgt(attach, gpu->provider, &vec, 1,
				      exp->size, dir);
	if (IS_ERR(sgt)) {
		ret = PTR_ERR(sgt);
		goto err_run;
	}
	ret = pln_dmabuf_check_addr(gpu, bar1, attach->dev, sgt);
	if (ret)
		goto err_sgt;
	map->sgt = sgt;
	list_add(&map->node, &exp->maps);
	return sgt;

err_sgt:
	dma_buf_free_sgt(attach, sgt, dir);
err_run:
	pln_export_hide(exp, map->run, &map->holder, NULL);
err_free:
	kfree(map);
	return ERR_PTR(ret);
}

/*
 * Importers whose devices work by fences may unmap before the DMA has ended;
 * then it has when the fences say so.
 */
static struct dma_fence *pln_dmabuf_fence(struct dma_buf *dmabuf)
{
	struct dma_fence *fence = NULL;

	if (dma_resv_test_signaled(dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP))
		return NULL;
	/* Fences end in finite time, so without memory there is still a way */
	if (dma_resv_get_singleton(dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP,
				   &fence))
		dma_resv_wait_timeout(dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP,
				      false, MAX_SCHEDULE_TIMEOUT);
	else if (fence)
		dma_fence_enable_sw_signaling(fence);
	return fence;
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
	pln_export_hide(exp, found->run, &found->holder,
			pln_dmabuf_fence(attach->dmabuf));
	kfree(found);
}

static void pln_dmabuf_vm_open(struct vm_area_struct *vma)
{
	pln_export_dup(vma->vm_private_data);
}

static void pln_dmabuf_vm_close(struct vm_area_struct *vma)
{
	pln_export_hide(vma->vm_private_data, NULL, NULL, NULL);
}

static vm_fault_t pln_dmabuf_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct pln_export *exp = vma->vm_private_data;
	struct pln_gpu *gpu = exp->gpu;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	down_read(&gpu->mem_lock);
	if (exp->run)
		ret = pln_insert(vmf, gpu->bar1_phys + exp->run->bar1 +
				 exp->skip +
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
	struct pln_gpu *gpu = exp->gpu;
	struct pln_run *run;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	run = pln_export_show(exp, NULL);
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

/* No mapping finds the memory any more */
void pln_export_unshow(struct pln_export *exp)
{
	lockdep_assert_held_write(&exp->gpu->mem_lock);
	if (exp->run)
		pln_run_drain(exp->run);
	exp->run = NULL;
}

/* Nor does its retirement find the export */
void pln_export_detach(struct pln_export *exp)
{
	unsigned int i;

	pln_export_unshow(exp);
	for (i = 0; i < exp->nr_pieces; i++)
		list_del_init(&exp->parts[i].node);
}

static void pln_export_free(struct pln_export *exp)
{
	iput(exp->inode);
	kvfree(exp->parts);
	kvfree(exp);
}

/* Called when the path of the file goes, which may be after the file has gone */
static void pln_dmabuf_release(struct dma_buf *dmabuf)
{
	struct pln_export *exp = dmabuf->priv;
	struct pln_gpu *gpu = exp->gpu;
	unsigned int i;

	down_write(&gpu->mem_lock);
	WARN_ON(!list_empty(&exp->maps) || exp->attachments);
	pln_export_detach(exp);
	up_write(&gpu->mem_lock);

	for (i = 0; i < exp->nr_pieces; i++)
		pln_buf_put(exp->pieces[i].buf);
	pln_export_free(exp);
	atomic64_dec(&gpu->nr_exports);
	put_device(&gpu->dev);
}

static const struct dma_buf_ops pln_dmabuf_ops = {
	.attach = pln_dmabuf_attach,
	.detach = pln_dmabuf_detach,
	.pin = pln_dmabuf_pin,
	.unpin = pln_dmabuf_unpin,
	.map_dma_buf = pln_dmabuf_map,
	.unmap_dma_buf = pln_dmabuf_unmap,
	.mmap = pln_dmabuf_mmap,
	.release = pln_dmabuf_release,
};

/* The GPU pages that @piece is in, which belong to its buffer too */
static struct pln_piece pln_whole_pages(const struct pln_piece *piece)
{
	u64 start = round_down(piece->offset, PLN_PAGE_SIZE);
	u64 end = round_up(piece->offset + piece->size, PLN_PAGE_SIZE);

	return (struct pln_piece){
		.buf = piece->buf, .offset = start, .size = end - start,
	};
}

static struct pln_export *pln_export_alloc(struct pln_gpu *gpu,
					   const struct pln_piece *pieces,
					   unsigned int nr_pieces)
{
	struct pln_export *exp;
	unsigned int i;

	exp = kvzalloc(struct_size(exp, pieces, nr_pieces), GFP_KERNEL_ACCOUNT);
	if (!exp)
		return NULL;
	exp->parts = kvcalloc(nr_pieces, sizeof(*exp->parts),
			      GFP_KERNEL_ACCOUNT);
	if (!exp->parts) {
		kvfree(exp);
		return NULL;
	}
	INIT_LIST_HEAD(&exp->maps);
	exp->gpu = gpu;
	exp->skip = pieces[0].offset % PLN_PAGE_SIZE;
	exp->nr_pieces = nr_pieces;
	for (i = 0; i < nr_pieces; i++) {
		exp->pieces[i] = pln_whole_pages(&pieces[i]);
		exp->size += pieces[i].size;
		exp->parts[i].exp = exp;
		INIT_LIST_HEAD(&exp->parts[i].node);
	}
	return exp;
}

/*
 * The pieces, one behind the other, as one dma-buf.  Only where it begins and ends it
 * may do so within a page of the GPU.
 */
struct dma_buf *pln_export_pieces(struct pln_gpu *gpu,
				  const struct pln_piece *pieces,
				  unsigned int nr_pieces, bool importable)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct pln_export *exp;
	struct dma_buf *dmabuf;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < nr_pieces; i++)
		if ((i && pieces[i].offset % PLN_PAGE_SIZE) ||
		    (i + 1 < nr_pieces &&
		     (pieces[i].offset + pieces[i].size) % PLN_PAGE_SIZE))
			return ERR_PTR(-EINVAL);
	exp = pln_export_alloc(gpu, pieces, nr_pieces);
	if (!exp)
		return ERR_PTR(-ENOMEM);

	info.ops = &pln_dmabuf_ops;
	info.size = exp->size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = exp;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		pln_export_free(exp);
		return dmabuf;
	}

	/* From here on dma_buf_put() undoes it all */
	exp->inode = file_inode(dmabuf->file);
	ihold(exp->inode);
	exp->importable = importable;
	for (i = 0; i < nr_pieces; i++)
		pln_buf_get(pieces[i].buf);
	get_device(&gpu->dev);
	atomic64_inc(&gpu->nr_exports);
	down_write(&gpu->mem_lock);
	exp->dmabuf = dmabuf;
	for (i = 0; i < nr_pieces && !ret; i++)
		if (pieces[i].buf->revoked)
			ret = pieces[i].buf->lost ? -EIO : -ENOENT;
	for (i = 0; i < nr_pieces && !ret; i++)
		list_add_tail(&exp->parts[i].node, &pieces[i].buf->exports);
	up_write(&gpu->mem_lock);
	if (ret) {
		dma_buf_put(dmabuf);
		return ERR_PTR(ret);
	}
	return dmabuf;
}

/*
 * The memory is marked revoked, the run is detached and user mappings are gone:
 * no new mapping can be made.  Tell importers, who may have one.  The caller
 * has a reference to the file.
 */
void pln_export_revoke(struct pln_export *exp)
{
	struct dma_buf *dmabuf = exp->dmabuf;

	dma_resv_lock(dmabuf->resv, NULL);
	dma_buf_invalidate_mappings(dmabuf);
	dma_resv_unlock(dmabuf->resv);
}

/*
 * The memory behind a dma-buf of ours, with a reference and one more handle,
 * which pln_buf_drop() gives back.
 */
struct pln_buf *pln_import_buf(struct pln_gpu *gpu, int fd,
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
	buf = exp->pieces[0].buf;
	down_write(&gpu->mem_lock);
	/* Revocation must find all mappings, so they are of one device node */
	if (!exp->importable)
		ret = -EACCES;
	else if (buf->gpu != gpu ||
		 (!buf->revoked && buf->mapping != mapping))
		ret = -EXDEV;
	else if (buf->revoked)
		ret = buf->lost ? -EIO : -ENOENT;
	else
		buf->handles++;
	up_write(&gpu->mem_lock);
	if (!ret)
		pln_buf_get(buf);
	dma_buf_put(dmabuf);
	return ret ? ERR_PTR(ret) : buf;
}
