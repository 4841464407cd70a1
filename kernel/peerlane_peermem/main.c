// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: GPU memory in RDMA memory regions, by the peer-memory interface.
 *
 * Stands between two modules that may be absent: an RDMA core that has the
 * interface, and a GPU's driver with nvidia_p2p_*.  Both are found when this
 * module is loaded: the references are weak, and depmod still makes
 * dependencies of them.  symbol_get() would not do: since 6.6 it refuses symbols
 * that are not GPL-only, and none of these is.  A kernel with symbol versions
 * wants those of the two at build time (SYMVERS of kernel/Makefile).
 *
 * When memory goes away under a region, the GPU's driver calls us back and then
 * frees the page table and the mapping, whoever points to them.  The callback
 * and the end of the region may meet at any point.  So the callback gets no
 * pointer but a number, which means nothing once the region has ended; and a
 * region that was called back never touches its table again.
 */
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/nv-p2p.h>
#include <linux/pci.h>
#include <linux/peer-mem.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#pragma weak ib_register_peer_memory_client
#pragma weak ib_unregister_peer_memory_client
#pragma weak nvidia_p2p_get_pages
#pragma weak nvidia_p2p_put_pages
#pragma weak nvidia_p2p_dma_map_pages
#pragma weak nvidia_p2p_dma_unmap_pages

#define GPU_PAGE_SIZE	SZ_64K

static char *name = "peerlane";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name,
		 "Name of the client (default peerlane); applications that look for NVIDIA's in /sys/kernel/mm/memory_peers want nv_mem");

/* NULL where there is none */
static const struct {
	typeof(ib_register_peer_memory_client) *add;
	typeof(ib_unregister_peer_memory_client) *del;
} core = { ib_register_peer_memory_client, ib_unregister_peer_memory_client };

static const struct {
	typeof(nvidia_p2p_get_pages) *get;
	typeof(nvidia_p2p_put_pages) *put;
	typeof(nvidia_p2p_dma_map_pages) *map;
	typeof(nvidia_p2p_dma_unmap_pages) *unmap;
} gpu = {
	nvidia_p2p_get_pages, nvidia_p2p_put_pages,
	nvidia_p2p_dma_map_pages, nvidia_p2p_dma_unmap_pages,
};

/**
 * struct pln_mem - memory that the core has acquired
 * @kref: one of the core's, one of a callback that runs
 * @id: in pln_mems until release
 * @va: of whole pages of the GPU
 * @len: likewise
 * @core_context: what the core calls it
 * @table: NULL: not pinned
 * @mapping: NULL: not mapped
 * @pdev: for which device
 * @sgt: a copy of what the core got
 * @gone: the GPU's driver has taken @table and @mapping back, or does so now
 */
struct pln_mem {
	struct kref kref;
	u32 id;
	u64 va;
	u64 len;
	u64 core_context;
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_dma_mapping *mapping;
	struct pci_dev *pdev;
	struct sg_table sgt;
	bool gone;
};

static DEFINE_XARRAY_ALLOC1(pln_mems);
static u32 pln_next_id;
static void *pln_handle;
static invalidate_peer_memory pln_invalidate;

static void pln_mem_free(struct kref *kref)
{
	kfree(container_of(kref, struct pln_mem, kref));
}

/* From the GPU's driver: when this returns no DMA may be under way */
static void pln_mem_revoked(void *data)
{
	struct pln_mem *mem;

	xa_lock(&pln_mems);
	mem = xa_load(&pln_mems, (unsigned long)data);
	if (mem)
		kref_get(&mem->kref);
	xa_unlock(&pln_mems);
	if (!mem)
		return;

	WRITE_ONCE(mem->gone, true);
	/* Waits for those of our functions that saw it otherwise */
	pln_invalidate(pln_handle, mem->core_context);
	kref_put(&mem->kref, pln_mem_free);
}

static void pln_mem_nothing(void *data)
{
}

static int pln_mem_acquire(unsigned long addr, size_t size, void *unused,
			   char *unused_name, void **context)
{
	u64 start = ALIGN_DOWN((u64)addr, GPU_PAGE_SIZE);
	u64 end = ALIGN((u64)addr + size, GPU_PAGE_SIZE);
	struct nvidia_p2p_page_table *table;
	struct pln_mem *mem;
	int ret;

	if (!size || end <= start)
		return 0;
	/* There is no other way to ask whose memory it is */
	ret = gpu.get(0, 0, start, end - start, &table, pln_mem_nothing,
		      &pln_mems);
	if (ret)
		return ret == -ENOMEM ? ret : 0;
	gpu.put(0, 0, start, table);

	mem = kzalloc_obj(*mem, GFP_KERNEL);
	if (!mem)
		return -ENOMEM;
	kref_init(&mem->kref);
	mem->va = start;
	mem->len = end - start;
	/* Not soon the same again: a callback may be on its way with it */
	ret = xa_alloc_cyclic(&pln_mems, &mem->id, mem, xa_limit_31b,
			      &pln_next_id, GFP_KERNEL);
	if (ret < 0) {
		kfree(mem);
		return ret;
	}
	__module_get(THIS_MODULE);
	*context = mem;
	return 1;
}

static int pln_mem_get_pages(unsigned long addr, size_t size, int write,
			     int force, struct sg_table *sg_head, void *context,
			     u64 core_context)
{
	struct pln_mem *mem = context;

	mem->core_context = core_context;
	return gpu.get(0, 0, mem->va, mem->len, &mem->table, pln_mem_revoked,
		       (void *)(unsigned long)mem->id);
}

static int pln_mem_dma_map(struct sg_table *sg_head, void *context,
			   struct device *dev, int dmasync, int *nmap)
{
	struct nvidia_p2p_dma_mapping *map;
	struct pln_mem *mem = context;
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	if (!dev_is_pci(dev)) {
		dev_warn_ratelimited(dev,
				     "no DMA to GPU memory: not a PCI device\n");
		return -EINVAL;
	}
	if (READ_ONCE(mem->gone))
		return -EINVAL;
	if (mem->table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB)
		return -EINVAL;
	ret = gpu.map(to_pci_dev(dev), mem->table, &map);
	if (ret)
		return ret == -ENOTSUPP ? -EOPNOTSUPP : ret;
	if (!NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(map)) {
		dev_warn_ratelimited(dev,
				     "no DMA to GPU memory: mapping of version %#x, known is %#x\n",
				     map->version,
				     NVIDIA_P2P_DMA_MAPPING_VERSION);
		ret = -EINVAL;
		goto err_map;
	}
	ret = sg_alloc_table(&mem->sgt, map->entries, GFP_KERNEL);
	if (ret)
		goto err_map;
	for_each_sgtable_sg(&mem->sgt, sg, i) {
		sg_set_page(sg, NULL, GPU_PAGE_SIZE, 0);
		sg_dma_address(sg) = map->dma_addresses[i];
		sg_dma_len(sg) = GPU_PAGE_SIZE;
	}
	mem->mapping = map;
	mem->pdev = to_pci_dev(dev);
	*sg_head = mem->sgt;
	*nmap = map->entries;
	return 0;

err_map:
	gpu.unmap(to_pci_dev(dev), mem->table, map);
	return ret;
}

static int pln_mem_dma_unmap(struct sg_table *sg_head, void *context,
			     struct device *dev)
{
	struct pln_mem *mem = context;

	if (mem->mapping && !READ_ONCE(mem->gone))
		gpu.unmap(mem->pdev, mem->table, mem->mapping);
	mem->mapping = NULL;
	return 0;
}

static void pln_mem_put_pages(struct sg_table *sg_head, void *context)
{
	struct pln_mem *mem = context;

	if (mem->table && !READ_ONCE(mem->gone))
		gpu.put(0, 0, mem->va, mem->table);
	mem->table = NULL;
	sg_free_table(&mem->sgt);
}

static unsigned long pln_mem_get_page_size(void *context)
{
	return GPU_PAGE_SIZE;
}

static void pln_mem_release(void *context)
{
	struct pln_mem *mem = context;

	xa_erase(&pln_mems, mem->id);
	kref_put(&mem->kref, pln_mem_free);
	module_put(THIS_MODULE);
}

static struct peer_memory_client_ex pln_client = {
	.client = {
		.version = "1",
		.acquire = pln_mem_acquire,
		.get_pages = pln_mem_get_pages,
		.dma_map = pln_mem_dma_map,
		.dma_unmap = pln_mem_dma_unmap,
		.put_pages = pln_mem_put_pages,
		.get_page_size = pln_mem_get_page_size,
		.release = pln_mem_release,
	},
	.ex_size = sizeof(pln_client),
	.flags = PEER_MEM_INVALIDATE_UNMAPS,
};

static int __init pln_peermem_init(void)
{
	if (!core.add || !core.del) {
		pr_err("peerlane_peermem: this kernel's RDMA core has no peer-memory interface (ib_register_peer_memory_client); register GPU memory as dma-bufs (ibv_reg_dmabuf_mr), or load the RDMA stack of DOCA first\n");
		return -EOPNOTSUPP;
	}
	if (!gpu.get || !gpu.put || !gpu.map || !gpu.unmap) {
		pr_err("peerlane_peermem: no GPU driver with nvidia_p2p_get_pages() is loaded; load peerlane_gpu, or nvidia, first\n");
		return -ENODEV;
	}
	if (strscpy(pln_client.client.name, name, IB_PEER_MEMORY_NAME_MAX) <= 0) {
		pr_err("peerlane_peermem: name must have 1 to %d characters\n",
		       IB_PEER_MEMORY_NAME_MAX - 1);
		return -EINVAL;
	}
	pln_client.client.version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	pln_handle = core.add(&pln_client.client, &pln_invalidate);
	if (!pln_handle) {
		pr_err("peerlane_peermem: the RDMA core refuses client %s; is there another one of that name?\n",
		       name);
		return -EBUSY;
	}
	return 0;
}

static void __exit pln_peermem_exit(void)
{
	core.del(pln_handle);
	xa_destroy(&pln_mems);
}

module_init(pln_peermem_init);
module_exit(pln_peermem_exit);

MODULE_VERSION("0.1");
MODULE_DESCRIPTION("GPU memory for RDMA cores with the peer-memory interface");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
