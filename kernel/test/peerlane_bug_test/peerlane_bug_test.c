// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: errors made on purpose, which a debug kernel must see.
 *
 * debugfs, peerlane_bug_test/:
 *   cmd    use-after-free, out-of-bounds, typesafe, index, inversion,
 *	    atomic, leak, race, or dma PCI-ADDRESS
 *
 * Never loaded but in a guest whose kernel is about to be searched for them.
 */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "test_cmd.h"

#define BUG_BYTES	64

static DEFINE_MUTEX(bug_first);
static DEFINE_MUTEX(bug_second);
static DEFINE_SPINLOCK(bug_spin);
static unsigned long bug_shared;
static struct dentry *bug_dir;

static noinline int bug_memory(bool freed)
{
	u8 *p = kmalloc(BUG_BYTES, GFP_KERNEL);
	unsigned int at = freed ? 0 : BUG_BYTES;

	if (!p)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(at);
	if (freed)
		kfree(p);
	(void)READ_ONCE(p[at]);
	if (!freed)
		kfree(p);
	return 0;
}

/* Memory of a cache whose objects may be read until the grace period is over */
static noinline int bug_typesafe(void)
{
	struct kmem_cache *cache;
	u8 *p;

	cache = kmem_cache_create("peerlane_bug_test", BUG_BYTES, 0,
				  SLAB_TYPESAFE_BY_RCU, NULL);
	if (!cache)
		return -ENOMEM;
	p = kmem_cache_alloc(cache, GFP_KERNEL);
	if (p) {
		kmem_cache_free(cache, p);
		rcu_barrier();
		(void)READ_ONCE(*p);
	}
	kmem_cache_destroy(cache);
	return p ? 0 : -ENOMEM;
}

/* Still inside of the structure, which is all that KASAN looks at */
static noinline int bug_index(void)
{
	struct {
		u8 of[4];
		u8 behind[4];
	} array = { };
	unsigned int at = ARRAY_SIZE(array.of);

	OPTIMIZER_HIDE_VAR(at);
	return array.of[at];
}

/* Never both at once, and all the same a deadlock of two threads */
static int bug_inversion(void)
{
	mutex_lock(&bug_first);
	mutex_lock(&bug_second);
	mutex_unlock(&bug_second);
	mutex_unlock(&bug_first);
	mutex_lock(&bug_second);
	mutex_lock(&bug_first);
	mutex_unlock(&bug_first);
	mutex_unlock(&bug_second);
	return 0;
}

static int bug_atomic(void)
{
	spin_lock(&bug_spin);
	might_sleep();
	spin_unlock(&bug_spin);
	return 0;
}

/* Several, since a word on a stack may still look like a pointer to one */
static noinline int bug_leak(void)
{
	int i;

	for (i = 0; i < 8; i++)
		if (!kmalloc(BUG_BYTES, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

/* Two tasks count with one number, without a lock */
static noinline void bug_count(void)
{
	bug_shared++;
}

static int bug_racer(void *unused)
{
	while (!kthread_should_stop()) {
		bug_count();
		cond_resched();
	}
	return 0;
}

static int bug_race(void)
{
	unsigned long end = jiffies + 5 * HZ;
	struct task_struct *racer;

	racer = kthread_run(bug_racer, NULL, "bug_racer");
	if (IS_ERR(racer))
		return PTR_ERR(racer);
	while (time_before(jiffies, end)) {
		bug_count();
		cond_resched();
	}
	return kthread_stop(racer);
}

/* Unmapped with another size */
static int bug_dma(const char *address)
{
	unsigned int domain, bus, dev, func;
	struct pci_dev *pdev;
	dma_addr_t addr;
	int ret = -ENOMEM;
	void *p;

	if (sscanf(address, "%x:%x:%x.%x", &domain, &bus, &dev, &func) != 4)
		return -EBADMSG;
	pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(dev, func));
	if (!pdev)
		return -ENXIO;
	p = kmalloc(BUG_BYTES, GFP_KERNEL);
	if (!p)
		goto out;
	addr = dma_map_single(&pdev->dev, p, BUG_BYTES, DMA_TO_DEVICE);
	ret = dma_mapping_error(&pdev->dev, addr);
	if (!ret)
		dma_unmap_single(&pdev->dev, addr, BUG_BYTES / 2,
				 DMA_TO_DEVICE);
	kfree(p);
out:
	pci_dev_put(pdev);
	return ret;
}

static int bug_run(char *cmd)
{
	if (!strcmp(cmd, "use-after-free"))
		return bug_memory(true);
	if (!strcmp(cmd, "out-of-bounds"))
		return bug_memory(false);
	if (!strcmp(cmd, "typesafe"))
		return bug_typesafe();
	if (!strcmp(cmd, "index"))
		return bug_index();
	if (!strcmp(cmd, "inversion"))
		return bug_inversion();
	if (!strcmp(cmd, "atomic"))
		return bug_atomic();
	if (!strcmp(cmd, "leak"))
		return bug_leak();
	if (!strcmp(cmd, "race"))
		return bug_race();
	if (!strncmp(cmd, "dma ", 4))
		return bug_dma(cmd + 4);
	return -EBADMSG;
}

DEFINE_TEST_CMD(bug_cmd, bug_run);

static int __init bug_init(void)
{
	bug_dir = debugfs_create_dir("peerlane_bug_test", NULL);
	debugfs_create_file("cmd", 0200, bug_dir, NULL, &bug_cmd_fops);
	return 0;
}

static void __exit bug_exit(void)
{
	debugfs_remove_recursive(bug_dir);
}

module_init(bug_init);
module_exit(bug_exit);

MODULE_DESCRIPTION("Peerlane errors on purpose, for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
