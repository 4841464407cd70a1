// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: nvidia_p2p_*, by which other drivers reach its memory.
 *
 * A page table is a run of BAR1 that stays until it is put, or until its
 * memory is taken away.  Then its owner is told by the callback, and the table
 * and its DMA mappings are ours to free.  So whoever holds a pointer to a table
 * may hold it too long: pointers from outside are looked up, not followed.
 *
 * A table of the persistent flavour has no callback.  Its memory, when its
 * owner frees it, lies in the graveyard until the table is put.
 */
#include <linux/completion.h>
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/nv-p2p.h>
#include <linux/sched.h>

#include "aperture.h"

/**
 * struct pln_p2p - one page table
 * @table: what its owner sees
 * @hash: in pln_p2p_tables, from get to the end
 * @node: in buf->pins, while the memory is its owner's
 * @maps: of struct pln_p2p_map
 * @buf: the memory
 * @run: where it is in BAR1
 * @holder: of @run
 * @va: as given to get
 * @flags: likewise
 * @free_cb: NULL: persistent
 * @data: for @free_cb
 * @owner: process that called get
 * @revoked: @free_cb is to run, runs, or has run
 * @caller: the task that runs it
 * @work: runs it, when the GPU loses its memory
 * @ended: the callback has returned, and nobody finds the table any more
 * @refs: 1 while the table is found, and 1 for each put that waits for @ended;
 *	guarded by pln_p2p_lock
 * @uuid: what @table points to
 * @pages: likewise
 */
struct pln_p2p {
	struct nvidia_p2p_page_table table;
	struct hlist_node hash;
	struct list_head node;
	struct list_head maps;
	struct pln_buf *buf;
	struct pln_run *run;
	struct pln_holder holder;
	u64 va;
	u32 flags;
	void (*free_cb)(void *data);
	void *data;
	pid_t owner;
	bool revoked;
	struct task_struct *caller;
	struct work_struct work;
	struct completion ended;
	unsigned int refs;
	u8 uuid[NVIDIA_P2P_GPU_UUID_LEN];
	struct nvidia_p2p_page pages[];
};

/**
 * struct pln_p2p_map - a page table as one device sees it
 * @mapping: what its owner sees
 * @node: in the table's list
 * @sgt: when the pages are P2PDMA pages
 * @addr: else: of all pages, in one piece
 * @size: likewise
 * @addrs: what @mapping points to
 */
struct pln_p2p_map {
	struct nvidia_p2p_dma_mapping mapping;
	struct list_head node;
	struct sg_table sgt;
	dma_addr_t addr;
	u64 size;
	u64 addrs[];
};

static DEFINE_MUTEX(pln_p2p_lock);
static DEFINE_HASHTABLE(pln_p2p_tables, 6);

/* The major number decides which modules take our tables for theirs */
static unsigned int pln_p2p_abi = 2;

static int pln_p2p_abi_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 2);
}

static const struct kernel_param_ops pln_p2p_abi_ops = {
	.set = pln_p2p_abi_set,
	.get = param_get_uint,
};
module_param_cb(p2p_abi, &pln_p2p_abi_ops, &pln_p2p_abi, 0644);
MODULE_PARM_DESC(p2p_abi,
		 "Page tables of nvidia_p2p_get_pages(): 1 as drivers before 580 made them, 2 as later ones (default 2)");

/*
 * NVIDIA's driver runs callbacks under a lock of its own that get, put and map
 * take, and it finds a table by the calling process.
 */
static bool pln_p2p_strict;
module_param_named(p2p_strict, pln_p2p_strict, bool, 0644);
MODULE_PARM_DESC(p2p_strict,
		 "nvidia_p2p_*: refuse what NVIDIA's driver cannot do: calls from inside a callback, put by another process (default off)");

static struct pln_p2p *pln_p2p_find(struct nvidia_p2p_page_table *table)
{
	struct pln_p2p *pin;

	lockdep_assert_held(&pln_p2p_lock);
	hash_for_each_possible(pln_p2p_tables, pin, hash, (unsigned long)table)
		if (&pin->table == table)
			return pin;
	return NULL;
}

static void pln_p2p_free(struct pln_p2p *pin)
{
	kvfree(pin->table.pages);
	kvfree(pin);
}

static void pln_p2p_unref(struct pln_p2p *pin)
{
	bool last;

	mutex_lock(&pln_p2p_lock);
	last = !--pin->refs;
	mutex_unlock(&pln_p2p_lock);
	if (last)
		pln_p2p_free(pin);
}

/*
 * In strict mode: with NVIDIA's driver a task that calls from inside a callback
 * would wait for itself
 */
static bool pln_p2p_deadlock(const char *what, void *client)
{
	struct pln_p2p *pin;
	bool inside = false;
	int i;

	if (!READ_ONCE(pln_p2p_strict))
		return false;
	mutex_lock(&pln_p2p_lock);
	hash_for_each(pln_p2p_tables, i, pin, hash)
		inside |= READ_ONCE(pin->caller) == current;
	mutex_unlock(&pln_p2p_lock);
	if (inside)
		pr_err_ratelimited("peerlane_gpu: %pS calls %s from inside its callback; with NVIDIA's driver it would wait for itself\n",
				   client, what);
	return inside;
}

static void pln_p2p_unmap(struct pln_p2p_map *map)
{
	struct pci_dev *peer = map->mapping.pci_dev;

	if (map->sgt.sgl) {
		dma_unmap_sgtable(&peer->dev, &map->sgt, DMA_BIDIRECTIONAL,
				  DMA_ATTR_SKIP_CPU_SYNC);
		sg_free_table(&map->sgt);
	} else {
		dma_unmap_resource(&peer->dev, map->addr, map->size,
				   DMA_BIDIRECTIONAL, 0);
	}
	pci_dev_put(peer);
	list_del(&map->node);
	kvfree(map);
}

/* Nobody finds the table any more */
static void pln_p2p_end(struct pln_p2p *pin)
{
	struct pln_p2p_map *map, *tmp;

	list_for_each_entry_safe(map, tmp, &pin->maps, node)
		pln_p2p_unmap(map);
	pln_run_unpin(pin->run, &pin->holder);
	atomic64_dec(&pin->buf->gpu->nr_pins);
	pln_buf_put(pin->buf);
	pln_p2p_unref(pin);
}

/* The owner of a revoked table is told, and that is the end of it */
static void pln_p2p_call(struct pln_p2p *pin)
{
	WRITE_ONCE(pin->caller, current);
	pin->free_cb(pin->data);
	mutex_lock(&pln_p2p_lock);
	hash_del(&pin->hash);
	mutex_unlock(&pln_p2p_lock);
	complete_all(&pin->ended);
	pln_p2p_end(pin);
}

static void pln_p2p_work(struct work_struct *work)
{
	pln_p2p_call(container_of(work, struct pln_p2p, work));
}

/*
 * The memory is marked revoked, so it gets no new pins.  With a workqueue @wq the owners
 * are told there, all at once: none goes on with DMA because another one does not end
 * its own.  Else the caller tells them, one after the other.
 */
void pln_p2p_revoke(struct pln_buf *buf, struct workqueue_struct *wq)
{
	struct pln_p2p *pin;

	mutex_lock(&pln_p2p_lock);
	while (!list_empty(&buf->pins)) {
		pin = list_first_entry(&buf->pins, struct pln_p2p, node);
		list_del_init(&pin->node);
		pln_run_orphan(pin->run);
		if (!pin->free_cb)
			continue;

		pin->revoked = true;
		if (wq) {
			INIT_WORK(&pin->work, pln_p2p_work);
			queue_work(wq, &pin->work);
			continue;
		}
		mutex_unlock(&pln_p2p_lock);
		pln_p2p_call(pin);
		mutex_lock(&pln_p2p_lock);
	}
	mutex_unlock(&pln_p2p_lock);
}

static struct pln_p2p *pln_p2p_alloc(struct pln_buf *buf, u64 len)
{
	u32 entries = len >> PLN_PAGE_SHIFT, i;
	struct nvidia_p2p_page_table *table;
	struct pln_p2p *pin;

	pin = kvzalloc(struct_size(pin, pages, entries), GFP_KERNEL);
	if (!pin)
		return NULL;
	table = &pin->table;
	table->pages = kvcalloc(entries, sizeof(*table->pages), GFP_KERNEL);
	if (!table->pages) {
		kvfree(pin);
		return NULL;
	}
	for (i = 0; i < entries; i++)
		table->pages[i] = &pin->pages[i];
	memcpy(pin->uuid, buf->gpu->uuid, sizeof(pin->uuid));
	table->version = READ_ONCE(pln_p2p_abi) == 1 ?
		NVIDIA_P2P_PAGE_TABLE_VERSION_1 : NVIDIA_P2P_PAGE_TABLE_VERSION;
	table->page_size = NVIDIA_P2P_PAGE_SIZE_64KB;
	table->entries = entries;
	table->gpu_uuid = pin->uuid;

	INIT_LIST_HEAD(&pin->maps);
	init_completion(&pin->ended);
	pin->refs = 1;
	pin->owner = task_tgid_nr(current);
	pin->buf = buf;
	return pin;
}

static int pln_p2p_get(u64 va, u64 len, u32 flags,
		       struct nvidia_p2p_page_table **table,
		       void (*free_cb)(void *data), void *data)
{
	struct pln_piece piece = { .size = len };
	struct pln_buf *buf;
	struct pln_p2p *pin;
	u32 i;
	int ret;

	if (!table || !len || !IS_ALIGNED(va | len, PLN_PAGE_SIZE) ||
	    va + len < va)
		return -EINVAL;
	*table = NULL;
	buf = pln_buf_at(va, len, &piece.offset);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	ret = -EINVAL;
	if (!IS_ALIGNED(piece.offset, PLN_PAGE_SIZE))
		goto err_buf;

	ret = -ENOMEM;
	pin = pln_p2p_alloc(buf, len);
	if (!pin)
		goto err_buf;
	pin->va = va;
	pin->flags = flags;
	pin->free_cb = free_cb;
	pin->data = data;

	mutex_lock(&pln_p2p_lock);
	piece.buf = buf;
	pin->run = pln_run_pin(&piece, &pin->holder);
	ret = PTR_ERR_OR_ZERO(pin->run);
	if (ret)
		goto err_unlock;
	for (i = 0; i < pin->table.entries; i++)
		pin->pages[i].physical_address = buf->gpu->bar1_phys +
			pin->run->bar1 + ((u64)i << PLN_PAGE_SHIFT);
	/* The callback may run as soon as the lock is free */
	*table = &pin->table;
	hash_add(pln_p2p_tables, &pin->hash, (unsigned long)&pin->table);
	list_add_tail(&pin->node, &buf->pins);
	atomic64_inc(&buf->gpu->nr_pins);
	mutex_unlock(&pln_p2p_lock);
	return 0;

err_unlock:
	mutex_unlock(&pln_p2p_lock);
	pln_p2p_free(pin);
	/* Who asks knows of memory only */
	if (ret == -ENOSPC)
		ret = -ENOMEM;
err_buf:
	pln_buf_put(buf);
	return ret;
}

/**
 * nvidia_p2p_get_pages - make GPU memory of the calling process reachable
 * @p2p_token: 0; the tokens of old are not given out
 * @va_space: 0
 * @virtual_address: device pointer, a multiple of 64 KiB
 * @length: bytes, a multiple of 64 KiB, all in one allocation
 * @page_table: filled in before @free_callback can be called
 * @free_callback: called once if the memory goes away before it is put, by any
 *	task, beside others; when it returns no DMA may be under way, and the
 *	table is gone
 * @data: for @free_callback
 *
 * Return: 0; -EINVAL: an argument, or no GPU memory there; -ENOMEM: no memory,
 * or no room in BAR1; -EIO, -ENODEV: the GPU is out of service, or gone;
 * -EDEADLK: from inside a callback, in strict mode.
 */
int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	if (p2p_token || va_space || !free_callback)
		return -EINVAL;
	if (pln_p2p_deadlock("get_pages", __builtin_return_address(0)))
		return -EDEADLK;
	return pln_p2p_get(virtual_address, length, 0, page_table,
			   free_callback, data);
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

/**
 * nvidia_p2p_get_pages_persistent - the same, and the memory stays until put
 * @virtual_address: as above
 * @length: as above
 * @page_table: as above
 * @flags: NVIDIA_P2P_FLAGS_DEFAULT, or NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING,
 *	which is for mappings of the CPU: such a table cannot be mapped for DMA
 *
 * Return: as above.
 */
int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	if (flags & ~NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		return -EINVAL;
	if (pln_p2p_deadlock("get_pages_persistent",
			     __builtin_return_address(0)))
		return -EDEADLK;
	return pln_p2p_get(virtual_address, length, flags, page_table, NULL,
			   NULL);
}
EXPORT_SYMBOL(nvidia_p2p_get_pages_persistent);

/**
 * nvidia_p2p_put_pages - the pages, and their DMA mappings, are not used more
 * @p2p_token: as for get
 * @va_space: as for get
 * @virtual_address: as for get
 * @page_table: NULL does nothing; a table that is gone is no error
 *
 * When this returns, the callback does not run and will not be called.  If it
 * runs, this waits until it has returned, so the caller must not hold what the
 * callback waits for; drivers free what their callback uses after put.  From
 * inside the callback this does nothing.
 *
 * Return: 0; -EINVAL: the table is of the persistent flavour; -EDEADLK: from
 * inside a callback, in strict mode.
 */
int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct pln_p2p *pin;
	int ret = 0;

	if (pln_p2p_deadlock("put_pages", __builtin_return_address(0)))
		return -EDEADLK;
	mutex_lock(&pln_p2p_lock);
	pin = pln_p2p_find(page_table);
	if (!pin || pin->va != virtual_address || p2p_token || va_space)
		goto out;
	if (READ_ONCE(pln_p2p_strict) && pin->free_cb &&
	    pin->owner != task_tgid_nr(current)) {
		pr_warn_ratelimited("peerlane_gpu: put_pages by process %d of pages of process %d: as with NVIDIA's driver, they stay\n",
				    task_tgid_nr(current), pin->owner);
		goto out;
	}
	if (pin->revoked) {
		if (READ_ONCE(pin->caller) == current)
			goto out;
		pin->refs++;
		mutex_unlock(&pln_p2p_lock);
		wait_for_completion(&pin->ended);
		pln_p2p_unref(pin);
		return 0;
	}
	ret = -EINVAL;
	if (!pin->free_cb)
		goto out;
	hash_del(&pin->hash);
	list_del(&pin->node);
	mutex_unlock(&pln_p2p_lock);
	pln_p2p_end(pin);
	return 0;

out:
	mutex_unlock(&pln_p2p_lock);
	return ret;
}
EXPORT_SYMBOL(nvidia_p2p_put_pages);

/**
 * nvidia_p2p_put_pages_persistent - the same for the persistent flavour
 * @virtual_address: as for get
 * @page_table: NULL does nothing
 * @flags: 0
 *
 * Return: 0; -EINVAL: no such table; -EDEADLK: from inside a callback, in strict
 * mode.
 */
int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	struct pln_p2p *pin;

	if (flags)
		return -EINVAL;
	if (!page_table)
		return 0;
	if (pln_p2p_deadlock("put_pages_persistent",
			     __builtin_return_address(0)))
		return -EDEADLK;
	mutex_lock(&pln_p2p_lock);
	pin = pln_p2p_find(page_table);
	if (!pin || pin->va != virtual_address || pin->free_cb) {
		mutex_unlock(&pln_p2p_lock);
		return -EINVAL;
	}
	hash_del(&pin->hash);
	list_del(&pin->node);
	mutex_unlock(&pln_p2p_lock);
	pln_p2p_end(pin);
	return 0;
}
EXPORT_SYMBOL(nvidia_p2p_put_pages_persistent);

/* The kernel's own code knows the ways between devices */
static int pln_p2p_map_pages(struct pln_p2p *pin, struct pln_p2p_map *map,
			     struct device *dev)
{
	u32 entries = pin->table.entries, i, n = 0;
	struct scatterlist *sg;
	u64 off;
	int ret;

	ret = sg_alloc_table(&map->sgt, entries, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sgtable_sg(&map->sgt, sg, i)
		sg_set_page(sg, pfn_to_page(PHYS_PFN(pin->pages[i].physical_address)),
			    PLN_PAGE_SIZE, 0);
	ret = dma_map_sgtable(dev, &map->sgt, DMA_BIDIRECTIONAL,
			      DMA_ATTR_SKIP_CPU_SYNC);
	if (ret)
		goto err_free;
	for_each_sgtable_dma_sg(&map->sgt, sg, i)
		for (off = 0; off < sg_dma_len(sg); off += PLN_PAGE_SIZE)
			map->addrs[n++] = sg_dma_address(sg) + off;
	return 0;

err_free:
	sg_free_table(&map->sgt);
	/* Refused, says the kernel's code; it has said why */
	return ret == -EREMOTEIO ? -ENOTSUPP : ret;
}

static int pln_p2p_map_resource(struct pln_p2p *pin, struct pln_p2p_map *map,
				struct pci_dev *peer)
{
	struct pci_dev *gpu = pin->buf->gpu->pdev;
	u64 bus = pci_bus_address(gpu, PLN_BAR_APERTURE) + pin->run->bar1;
	const char *why = "they are not below one switch, or that redirects";
	u32 i;

	if (!pln_below_one_switch(pin->buf->gpu, peer))
		goto refuse;

	map->size = pin->run->size;
	map->addr = dma_map_resource(&peer->dev, pin->pages[0].physical_address,
				     map->size, DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(&peer->dev, map->addr))
		return -EIO;
	if (map->addr != bus) {
		dma_unmap_resource(&peer->dev, map->addr, map->size,
				   DMA_BIDIRECTIONAL, 0);
		why = "an IOMMU translates its addresses";
		goto refuse;
	}
	for (i = 0; i < pin->table.entries; i++)
		map->addrs[i] = map->addr + ((u64)i << PLN_PAGE_SHIFT);
	return 0;

refuse:
	dev_warn_ratelimited(&peer->dev,
			     "no DMA to the memory of %s: %s, and this kernel has no P2PDMA to find another way\n",
			     pci_name(gpu), why);
	return -ENOTSUPP;
}

/**
 * nvidia_p2p_dma_map_pages - addresses of the pages for DMA of a device
 * @peer: the device
 * @page_table: of GPU memory that is still there
 * @dma_mapping: out
 *
 * Below a switch these are bus addresses; where the way leads through the host
 * bridge, what the IOMMU makes of them.
 *
 * Return: 0; -EINVAL: an argument, or the table is gone; -ENOTSUPP: DMA of this
 * device cannot get there; -ENOMEM; -EIO: the device's addresses are too short,
 * or the memory was lost in a reset; -EDEADLK: from inside a callback, in strict
 * mode.
 */
int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct pln_p2p_map *map;
	struct pln_p2p *pin;
	int ret = -EINVAL;

	if (!peer || !page_table || !dma_mapping)
		return -EINVAL;
	*dma_mapping = NULL;
	if (pln_p2p_deadlock("dma_map_pages", __builtin_return_address(0)))
		return -EDEADLK;

	mutex_lock(&pln_p2p_lock);
	pin = pln_p2p_find(page_table);
	if (!pin || pin->revoked)
		goto out;
	ret = -EIO;
	if (READ_ONCE(pin->buf->lost))
		goto out;
	ret = -ENOTSUPP;
	if (pin->flags & NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		goto out;
	ret = -ENOMEM;
	map = kvzalloc(struct_size(map, addrs, pin->table.entries), GFP_KERNEL);
	if (!map)
		goto out;
	ret = pin->buf->gpu->bar1_p2pmem ?
		pln_p2p_map_pages(pin, map, &peer->dev) :
		pln_p2p_map_resource(pin, map, peer);
	if (ret) {
		kvfree(map);
		goto out;
	}
	map->mapping.version = NVIDIA_P2P_DMA_MAPPING_VERSION;
	map->mapping.page_size_type = NVIDIA_P2P_PAGE_SIZE_64KB;
	map->mapping.entries = pin->table.entries;
	map->mapping.dma_addresses = map->addrs;
	map->mapping.pci_dev = pci_dev_get(peer);
	list_add(&map->node, &pin->maps);
	*dma_mapping = &map->mapping;
out:
	mutex_unlock(&pln_p2p_lock);
	return ret;
}
EXPORT_SYMBOL(nvidia_p2p_dma_map_pages);

/**
 * nvidia_p2p_dma_unmap_pages - the device does no DMA there any more
 * @peer: as for map
 * @page_table: as for map
 * @dma_mapping: one that is gone, or whose table is, is no error
 *
 * Return: 0; -EINVAL: an argument.
 */
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct pln_p2p_map *map;
	struct pln_p2p *pin;
	int ret = 0;

	if (!peer || !page_table || !dma_mapping)
		return -EINVAL;

	mutex_lock(&pln_p2p_lock);
	pin = pln_p2p_find(page_table);
	if (!pin)
		goto out;
	list_for_each_entry(map, &pin->maps, node) {
		if (&map->mapping != dma_mapping)
			continue;
		if (map->mapping.pci_dev != peer)
			ret = -EINVAL;
		else
			pln_p2p_unmap(map);
		break;
	}
out:
	mutex_unlock(&pln_p2p_lock);
	return ret;
}
EXPORT_SYMBOL(nvidia_p2p_dma_unmap_pages);

/*
 * Drivers call these two from inside the callback.  Table and mappings are freed
 * when it has returned.
 */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	return 0;
}
EXPORT_SYMBOL(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	return 0;
}
EXPORT_SYMBOL(nvidia_p2p_free_dma_mapping);

int nvidia_p2p_init_mapping(u64 p2p_token, struct nvidia_p2p_params *params,
			    void (*destroy_callback)(void *data), void *data)
{
	return -ENOTSUPP;
}
EXPORT_SYMBOL(nvidia_p2p_init_mapping);

int nvidia_p2p_destroy_mapping(u64 p2p_token)
{
	return -ENOTSUPP;
}
EXPORT_SYMBOL(nvidia_p2p_destroy_mapping);
