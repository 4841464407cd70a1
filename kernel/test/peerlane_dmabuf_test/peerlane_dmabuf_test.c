// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a dma-buf importer that does what a test tells it.
 *
 * debugfs, peerlane_dmabuf_test/:
 *   cmd    a command; the errno of the write is that of the operation.  S is
 *          one of 8 slots, each for one attachment
 *	attach S FD PCI-ADDRESS KIND	KIND: p2p; auto: it unmaps when it is
 *				told; careless: it goes on with DMA when it is
 *				told; hold: what tells it waits for "go S"; nop2p: no
 *				peer memory; static: cannot be told
 *	map S	unmap S		pin S	unpin S		detach S
 *	go S
 *	later S			map, by a thread of the kernel
 *	fence S		signal S	a fence of the importer's work
 *	dma S write|read OFFSET		the peer of peerlane_p2p_test moves its
 *				buffer there, or from there
 *	fast S ADDRESS BYTES	pin_user_pages_fast() would take these pages of the
 *				caller as they are; S has no part in it
 *   state  a line for each slot in use
 *
 * As in a real importer the resv lock guards the mapping and its use, so that
 * what is told waits for the DMA under way.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "p2p_test.h"
#include "test_cmd.h"

PLN_IMPORT_NS_DMA_BUF();

#define TEST_SLOTS	8
#define TEST_HOLD_MS	20000

struct test_slot {
	struct mutex lock;	/* all below */
	struct pci_dev *pdev;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct dma_fence *fence;
	bool careless;
	bool hold;
	bool unmaps;
	bool pinned;
	struct completion go;
	/* and the resv lock for these */
	struct sg_table *sgt;
	bool valid;		/* @sgt may be used */
	int invalidated;
};

static struct test_slot test_slots[TEST_SLOTS];
static DEFINE_SPINLOCK(test_fence_lock);
static struct dentry *test_dir;

static void test_unmap_locked(struct test_slot *slot)
{
	struct sg_table *sgt = slot->sgt;

	slot->sgt = NULL;
	slot->valid = false;
	if (sgt)
		dma_buf_unmap_attachment(slot->attach, sgt, DMA_BIDIRECTIONAL);
}

static void test_invalidate(struct dma_buf_attachment *attach)
{
	struct test_slot *slot = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	slot->invalidated++;
	if (slot->hold)
		wait_for_completion_timeout(&slot->go,
					    msecs_to_jiffies(TEST_HOLD_MS));
	if (slot->careless)
		return;
	slot->valid = false;
	if (slot->unmaps)
		test_unmap_locked(slot);
}

static const struct dma_buf_attach_ops test_p2p_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = test_invalidate,
};

static const struct dma_buf_attach_ops test_nop2p_ops = {
	.allow_peer2peer = false,
	.invalidate_mappings = test_invalidate,
};

static const char *test_fence_name(struct dma_fence *fence)
{
	return "peerlane_dmabuf_test";
}

static const struct dma_fence_ops test_fence_ops = {
	.get_driver_name = test_fence_name,
	.get_timeline_name = test_fence_name,
};

static int test_do_attach(struct test_slot *slot, const char *arg)
{
	const struct dma_buf_attach_ops *ops = &test_p2p_ops;
	unsigned int fd, domain, bus, dev, func;
	struct dma_buf_attachment *attach;
	char kind[12];
	int ret;

	if (slot->attach)
		return -EBUSY;
	if (sscanf(arg, "%u %x:%x:%x.%x %11s", &fd, &domain, &bus, &dev, &func,
		   kind) != 6)
		return -EBADMSG;
	slot->careless = !strcmp(kind, "careless");
	slot->hold = !strcmp(kind, "hold");
	slot->unmaps = !strcmp(kind, "auto");
	init_completion(&slot->go);
	if (!strcmp(kind, "nop2p"))
		ops = &test_nop2p_ops;
	else if (!strcmp(kind, "static"))
		ops = NULL;
	else if (!slot->careless && !slot->hold && !slot->unmaps &&
		 strcmp(kind, "p2p"))
		return -EBADMSG;

	slot->pdev = pci_get_domain_bus_and_slot(domain, bus,
						 PCI_DEVFN(dev, func));
	if (!slot->pdev)
		return -ENXIO;
	slot->dmabuf = dma_buf_get(fd);
	if (IS_ERR(slot->dmabuf)) {
		ret = PTR_ERR(slot->dmabuf);
		goto err_pdev;
	}
	slot->invalidated = 0;
	attach = dma_buf_dynamic_attach(slot->dmabuf, &slot->pdev->dev, ops,
					slot);
	if (IS_ERR(attach)) {
		ret = PTR_ERR(attach);
		goto err_dmabuf;
	}
	slot->attach = attach;
	return 0;

err_dmabuf:
	dma_buf_put(slot->dmabuf);
err_pdev:
	pci_dev_put(slot->pdev);
	return ret;
}

static int test_do_map(struct test_slot *slot)
{
	struct sg_table *sgt;
	int ret = -EBUSY;

	dma_resv_lock(slot->dmabuf->resv, NULL);
	if (slot->sgt)
		goto out;
	sgt = dma_buf_map_attachment(slot->attach, DMA_BIDIRECTIONAL);
	ret = PTR_ERR_OR_ZERO(sgt);
	if (ret)
		goto out;
	slot->sgt = sgt;
	slot->valid = true;
out:
	dma_resv_unlock(slot->dmabuf->resv);
	return ret;
}

static long test_map_later(void *slot)
{
	return test_do_map(slot);
}

static int test_do_unmap(struct test_slot *slot)
{
	bool mapped;

	dma_resv_lock(slot->dmabuf->resv, NULL);
	mapped = slot->sgt;
	test_unmap_locked(slot);
	dma_resv_unlock(slot->dmabuf->resv);
	return mapped ? 0 : -EBUSY;
}

static int test_do_pin(struct test_slot *slot, bool pin)
{
	int ret = 0;

	if (slot->pinned == pin)
		return -EBUSY;
	dma_resv_lock(slot->dmabuf->resv, NULL);
	if (pin)
		ret = dma_buf_pin(slot->attach);
	else
		dma_buf_unpin(slot->attach);
	dma_resv_unlock(slot->dmabuf->resv);
	if (!ret)
		slot->pinned = pin;
	return ret;
}

static int test_do_fence(struct test_slot *slot)
{
	struct dma_fence *fence;
	int ret;

	if (slot->fence)
		return -EBUSY;
	fence = kzalloc_obj(*fence, GFP_KERNEL);
	if (!fence)
		return -ENOMEM;
	dma_fence_init(fence, &test_fence_ops, &test_fence_lock,
		       dma_fence_context_alloc(1), 1);
	dma_resv_lock(slot->dmabuf->resv, NULL);
	ret = dma_resv_reserve_fences(slot->dmabuf->resv, 1);
	if (!ret)
		dma_resv_add_fence(slot->dmabuf->resv, fence,
				   DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_unlock(slot->dmabuf->resv);
	if (ret)
		dma_fence_put(fence);
	else
		slot->fence = fence;
	return ret;
}

static int test_do_signal(struct test_slot *slot)
{
	if (!slot->fence)
		return -EBUSY;
	dma_fence_signal(slot->fence);
	dma_fence_put(slot->fence);
	slot->fence = NULL;
	return 0;
}

static int test_do_detach(struct test_slot *slot)
{
	if (slot->sgt || slot->fence || slot->pinned)
		return -EBUSY;
	dma_buf_detach(slot->dmabuf, slot->attach);
	slot->attach = NULL;
	dma_buf_put(slot->dmabuf);
	pci_dev_put(slot->pdev);
	return 0;
}

static int test_addr(struct test_slot *slot, u64 offset, u64 *addr)
{
	struct scatterlist *sg;
	unsigned int i;

	if (!slot->sgt || !slot->valid)
		return -ENODEV;
	for_each_sgtable_dma_sg(slot->sgt, sg, i) {
		if (offset < sg_dma_len(sg)) {
			*addr = sg_dma_address(sg) + offset;
			return sg_dma_len(sg) - offset < PEER_BUF_SIZE ?
				-ERANGE : 0;
		}
		offset -= sg_dma_len(sg);
	}
	return -ERANGE;
}

static int test_do_dma(struct test_slot *slot, const char *arg)
{
	typeof(peer_do_dma) *dma;
	u64 offset, addr;
	char dir[8];
	int ret;

	if (sscanf(arg, "%7s %lli", dir, &offset) != 2)
		return -EBADMSG;
	dma = symbol_get(peer_do_dma);
	if (!dma)
		return -ENXIO;
	dma_resv_lock(slot->dmabuf->resv, NULL);
	ret = test_addr(slot, offset, &addr);
	if (!ret)
		ret = dma(addr, !strcmp(dir, "write"));
	dma_resv_unlock(slot->dmabuf->resv);
	symbol_put(peer_do_dma);
	return ret;
}

static int test_do_fast(const char *arg)
{
	unsigned long addr, bytes, at;
	struct page *page;

	if (sscanf(arg, "%lx %lu", &addr, &bytes) != 2 || !bytes ||
	    addr + bytes < addr)
		return -EINVAL;
	for (at = addr & PAGE_MASK; at < addr + bytes; at += PAGE_SIZE) {
		if (get_user_pages_fast_only(at, 1, FOLL_WRITE | FOLL_PCI_P2PDMA,
					     &page) != 1)
			return -EAGAIN;
		put_page(page);
	}
	return 0;
}

static int test_do(struct test_slot *slot, const char *verb, const char *arg)
{
	if (!strcmp(verb, "attach"))
		return test_do_attach(slot, arg);
	if (!strcmp(verb, "fast"))
		return test_do_fast(arg);
	if (!slot->attach)
		return -ENOENT;
	if (!strcmp(verb, "map"))
		return test_do_map(slot);
	if (!strcmp(verb, "later"))
		return work_on_cpu(raw_smp_processor_id(), test_map_later, slot);
	if (!strcmp(verb, "unmap"))
		return test_do_unmap(slot);
	if (!strcmp(verb, "pin"))
		return test_do_pin(slot, true);
	if (!strcmp(verb, "unpin"))
		return test_do_pin(slot, false);
	if (!strcmp(verb, "fence"))
		return test_do_fence(slot);
	if (!strcmp(verb, "signal"))
		return test_do_signal(slot);
	if (!strcmp(verb, "dma"))
		return test_do_dma(slot, arg);
	if (!strcmp(verb, "detach"))
		return test_do_detach(slot);
	if (!strcmp(verb, "go")) {
		complete(&slot->go);
		return 0;
	}
	return -EBADMSG;
}

static int test_run(char *cmd)
{
	char verb[TEST_VERB_MAX];
	unsigned int n;
	int ret;

	cmd = test_cmd_parse(cmd, verb, &n, TEST_SLOTS);
	if (!cmd)
		return -EBADMSG;
	mutex_lock(&test_slots[n].lock);
	ret = test_do(&test_slots[n], verb, cmd);
	mutex_unlock(&test_slots[n].lock);
	return ret;
}

DEFINE_TEST_CMD(test_cmd, test_run);

static int state_show(struct seq_file *m, void *unused)
{
	struct scatterlist *sg;
	struct test_slot *slot;
	unsigned int i, j;
	u64 len;

	for (i = 0; i < TEST_SLOTS; i++) {
		slot = &test_slots[i];
		mutex_lock(&slot->lock);
		if (slot->attach) {
			dma_resv_lock(slot->dmabuf->resv, NULL);
			len = 0;
			if (slot->sgt)
				for_each_sgtable_dma_sg(slot->sgt, sg, j)
					len += sg_dma_len(sg);
			seq_printf(m, "slot %u mapped %d valid %d invalidated %d nents %u addr %#llx len %llu\n",
				   i, !!slot->sgt, slot->valid,
				   slot->invalidated,
				   slot->sgt ? slot->sgt->nents : 0,
				   slot->sgt ?
				   (u64)sg_dma_address(slot->sgt->sgl) : 0,
				   len);
			dma_resv_unlock(slot->dmabuf->resv);
		}
		mutex_unlock(&slot->lock);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int __init test_init(void)
{
	unsigned int i;

	for (i = 0; i < TEST_SLOTS; i++)
		mutex_init(&test_slots[i].lock);
	test_dir = debugfs_create_dir("peerlane_dmabuf_test", NULL);
	debugfs_create_file("cmd", 0200, test_dir, NULL, &test_cmd_fops);
	debugfs_create_file("state", 0400, test_dir, NULL, &state_fops);
	return 0;
}

static void __exit test_exit(void)
{
	struct test_slot *slot;

	debugfs_remove_recursive(test_dir);
	for (slot = test_slots; slot < test_slots + TEST_SLOTS; slot++) {
		if (!slot->attach)
			continue;
		test_do_signal(slot);
		test_do_unmap(slot);
		test_do_pin(slot, false);
		test_do_detach(slot);
	}
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane dma-buf importer for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
