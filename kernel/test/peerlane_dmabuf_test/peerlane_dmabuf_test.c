// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: a dma-buf importer that does what a test tells it.
 *
 * debugfs, peerlane_dmabuf_test/:
 *   cmd    write "attach FD PCI-ADDRESS KIND", "map", "unmap" or "detach"; the
 *          errno of the write is that of the operation.  KIND: p2p, or nop2p
 *          (no peer memory), or static (cannot be revoked)
 *   state  "attached N mapped N invalidated N nents N addr X len N"
 */
#include <linux/debugfs.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

PLN_IMPORT_NS_DMA_BUF();

static DEFINE_MUTEX(test_lock);
static struct dentry *test_dir;
static struct pci_dev *test_pdev;
static struct dma_buf *test_dmabuf;
static struct dma_buf_attachment *test_attach;
static struct sg_table *test_sgt;
static atomic_t test_invalidated;

/* A real importer would stop its device here; the test says when to unmap */
static void test_invalidate(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	atomic_inc(&test_invalidated);
}

static const struct dma_buf_attach_ops test_p2p_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = test_invalidate,
};

static const struct dma_buf_attach_ops test_nop2p_ops = {
	.allow_peer2peer = false,
	.invalidate_mappings = test_invalidate,
};

static int test_do_attach(char *arg)
{
	unsigned int fd, domain, bus, slot, func;
	const struct dma_buf_attach_ops *ops;
	char kind[8];
	int ret;

	if (test_attach)
		return -EBUSY;
	if (sscanf(arg, "%u %x:%x:%x.%x %7s", &fd, &domain, &bus, &slot, &func,
		   kind) != 6)
		return -EINVAL;
	if (!strcmp(kind, "p2p"))
		ops = &test_p2p_ops;
	else if (!strcmp(kind, "nop2p"))
		ops = &test_nop2p_ops;
	else if (!strcmp(kind, "static"))
		ops = NULL;
	else
		return -EINVAL;

	test_pdev = pci_get_domain_bus_and_slot(domain, bus,
						PCI_DEVFN(slot, func));
	if (!test_pdev)
		return -ENXIO;
	test_dmabuf = dma_buf_get(fd);
	if (IS_ERR(test_dmabuf)) {
		ret = PTR_ERR(test_dmabuf);
		goto err_pdev;
	}
	atomic_set(&test_invalidated, 0);
	test_attach = dma_buf_dynamic_attach(test_dmabuf, &test_pdev->dev, ops,
					     NULL);
	if (IS_ERR(test_attach)) {
		ret = PTR_ERR(test_attach);
		goto err_dmabuf;
	}
	return 0;

err_dmabuf:
	test_attach = NULL;
	dma_buf_put(test_dmabuf);
err_pdev:
	pci_dev_put(test_pdev);
	return ret;
}

static int test_do_map(void)
{
	struct sg_table *sgt;

	if (!test_attach || test_sgt)
		return -EBUSY;
	dma_resv_lock(test_dmabuf->resv, NULL);
	sgt = dma_buf_map_attachment(test_attach, DMA_BIDIRECTIONAL);
	dma_resv_unlock(test_dmabuf->resv);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	test_sgt = sgt;
	return 0;
}

static int test_do_unmap(void)
{
	if (!test_sgt)
		return -EBUSY;
	dma_resv_lock(test_dmabuf->resv, NULL);
	dma_buf_unmap_attachment(test_attach, test_sgt, DMA_BIDIRECTIONAL);
	dma_resv_unlock(test_dmabuf->resv);
	test_sgt = NULL;
	return 0;
}

static int test_do_detach(void)
{
	if (!test_attach || test_sgt)
		return -EBUSY;
	dma_buf_detach(test_dmabuf, test_attach);
	test_attach = NULL;
	dma_buf_put(test_dmabuf);
	pci_dev_put(test_pdev);
	return 0;
}

static ssize_t test_cmd_write(struct file *file, const char __user *from,
			      size_t count, loff_t *pos)
{
	char *buf, *cmd;
	int ret;

	if (count > 128)
		return -E2BIG;
	buf = memdup_user_nul(from, count);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	cmd = strim(buf);

	mutex_lock(&test_lock);
	if (!strncmp(cmd, "attach ", 7))
		ret = test_do_attach(cmd + 7);
	else if (!strcmp(cmd, "map"))
		ret = test_do_map();
	else if (!strcmp(cmd, "unmap"))
		ret = test_do_unmap();
	else if (!strcmp(cmd, "detach"))
		ret = test_do_detach();
	else
		ret = -EINVAL;
	mutex_unlock(&test_lock);
	kfree(buf);
	return ret ? ret : count;
}

static const struct file_operations test_cmd_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = test_cmd_write,
};

static int state_show(struct seq_file *m, void *unused)
{
	mutex_lock(&test_lock);
	seq_printf(m, "attached %d mapped %d invalidated %d nents %u addr %#llx len %u\n",
		   !!test_attach, !!test_sgt, atomic_read(&test_invalidated),
		   test_sgt ? test_sgt->nents : 0,
		   test_sgt ? (u64)sg_dma_address(test_sgt->sgl) : 0,
		   test_sgt ? sg_dma_len(test_sgt->sgl) : 0);
	mutex_unlock(&test_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int __init test_init(void)
{
	test_dir = debugfs_create_dir("peerlane_dmabuf_test", NULL);
	debugfs_create_file("cmd", 0200, test_dir, NULL, &test_cmd_fops);
	debugfs_create_file("state", 0400, test_dir, NULL, &state_fops);
	return 0;
}

static void __exit test_exit(void)
{
	debugfs_remove_recursive(test_dir);
	mutex_lock(&test_lock);
	test_do_unmap();
	test_do_detach();
	mutex_unlock(&test_lock);
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane dma-buf importer for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
