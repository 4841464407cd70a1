// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: the Nth call that can fail, fails.
 *
 * Distributions' kernels are built without fault injection, but with kprobes.
 * One sits on each function of the kernel whose failure our drivers handle.
 * When a driver of ours calls it on behalf of the task that armed it, and it is
 * that call's turn, the function is not entered and its caller gets an error.
 *
 * debugfs, peerlane_fail_test/:
 *   arm    write N: the Nth call from now on by the writing task fails; 0: none;
 *          "N workers": the Nth by any thread of the kernel, as those of work and
 *          of interrupts
 *   hold   write 1: the module peerlane does not get a lock that the writing task tries
 *          to take; 0: it does
 *   held   how often not
 *   linger write 1: the writing task stays where it calls nvidia_p2p_put_pages(), until 0
 *          is written, for two seconds at most; "held" counts that, too
 *   unmaps how often the driver has called unmap_mapping_range()
 *   lock   write an address: the page there, of the writing task, is locked and clean; 0: the
 *          one that has been locked for the longest is unlocked; read: a letter for each, in
 *          the order in which they were locked, d (dirty) or c (clean), as it is now.  The next
 *          one to be locked when none is begins a new row
 *   state  "points N calls N failed FUNCTION by CALLER", or "failed -"
 *
 * With "arm" of a number too high to be reached, "calls" is their number.
 */
#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/processor.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* What the functions return instead */
static unsigned long fail_0(void)
{
	return 0;
}

static unsigned long fail_1(void)
{
	return 1;
}

static unsigned long fail_enomem(void)
{
	return -ENOMEM;
}

static unsigned long fail_eio(void)
{
	return -EIO;
}

static unsigned long fail_emfile(void)
{
	return -EMFILE;
}

static unsigned long fail_mapping(void)
{
	return DMA_MAPPING_ERROR;
}

struct fail_point {
	struct kprobe kp;
	unsigned long (*with)(void);
	bool there;
};

static void fail_post(struct kprobe *kp, struct pt_regs *regs,
		      unsigned long flags);
static int fail_pre(struct kprobe *kp, struct pt_regs *regs);

/* A post-handler keeps the kernel from jumping past the change of address */
#define POINT(name, ret) {					\
	.kp.symbol_name = name, .kp.pre_handler = fail_pre,	\
	.kp.post_handler = fail_post, .with = ret }

static struct fail_point fail_points[] = {
	/* memory */
	POINT("__kmalloc_cache_noprof", fail_0),
	POINT("__kmalloc_noprof", fail_0),
	POINT("__kvmalloc_node_noprof", fail_0),
	POINT("devm_kmalloc", fail_0),
	POINT("__devres_alloc_node", fail_0),
	POINT("dma_alloc_attrs", fail_0),
	POINT("gen_pool_create", fail_0),
	POINT("gen_pool_add_owner", fail_enomem),
	POINT("gen_pool_alloc_algo_owner", fail_0),
	POINT("sg_alloc_table", fail_enomem),
	POINT("sg_alloc_table_from_pages_segment", fail_enomem),
	POINT("__xa_alloc", fail_enomem),
	POINT("__xa_alloc_cyclic", fail_enomem),
	POINT("ida_alloc_range", fail_enomem),
	POINT("init_srcu_struct", fail_enomem),
	POINT("dev_set_name", fail_enomem),
	POINT("alloc_workqueue_noprof", fail_0),
	POINT("alloc_workqueue", fail_0),
	/* users */
	POINT("_copy_from_user", fail_1),
	POINT("_copy_to_user", fail_1),
	POINT("vmemdup_user", fail_enomem),
	POINT("pin_user_pages_fast", fail_enomem),
	POINT("get_unused_fd_flags", fail_emfile),
	POINT("vm_insert_pages", fail_enomem),
	/* dma-bufs and DMA */
	POINT("dma_buf_export", fail_enomem),
	POINT("dma_buf_phys_vec_to_sgt", fail_enomem),
	POINT("dma_resv_get_singleton", fail_enomem),
	POINT("dma_map_sgtable", fail_eio),
	POINT("dma_map_resource", fail_mapping),
	/* the device */
	POINT("pci_enable_device_mem", fail_eio),
	POINT("pci_request_selected_regions", fail_eio),
	POINT("pci_iomap", fail_0),
	POINT("dma_set_mask", fail_eio),
	POINT("dma_set_coherent_mask", fail_eio),
	POINT("pci_alloc_irq_vectors", fail_enomem),
	POINT("request_threaded_irq", fail_enomem),
	POINT("pci_p2pdma_add_resource", fail_enomem),
	POINT("pci_alloc_p2pmem", fail_0),
	POINT("anon_inode_create_getfile", fail_enomem),
	POINT("pcim_p2pdma_init", fail_enomem),
	POINT("pcim_p2pdma_provider", fail_0),
	POINT("devm_memremap_pages", fail_enomem),
	POINT("cdev_device_add", fail_enomem),
	/* a module that is loaded */
	POINT("alloc_chrdev_region", fail_enomem),
	POINT("class_create", fail_enomem),
	POINT("__pci_register_driver", fail_enomem),
	POINT("misc_register", fail_enomem),
	/* the GPU's driver, as others see it */
	POINT("nvidia_p2p_get_pages", fail_enomem),
	POINT("nvidia_p2p_dma_map_pages", fail_enomem),
};

static void hold_post(struct kprobe *kp, struct pt_regs *regs,
		      unsigned long flags);
static int hold_pre(struct kprobe *kp, struct pt_regs *regs);

#define HOLD(name) {						\
	.symbol_name = name, .pre_handler = hold_pre,		\
	.post_handler = hold_post }

/* One of them is there */
static struct kprobe hold_points[] = {
	HOLD("mutex_trylock"),
	HOLD("_mutex_trylock_nest_lock"),	/* from 6.16 on, with lockdep */
};

static const char * const fail_modules[] = {
	"[peerlane_gpu]",
	"[peerlane]",
};

static DEFINE_MUTEX(fail_lock);		/* who writes the next four */
static struct task_struct *fail_task;
static bool fail_workers;
static unsigned int fail_at;
static unsigned int fail_there;
/* Threads of the kernel come from all processors; a lock may not be had in a kprobe */
static atomic_t fail_calls;
static const char *fail_what;
static char fail_where[KSYM_SYMBOL_LEN];
static DEFINE_PER_CPU(char [KSYM_SYMBOL_LEN], fail_caller);
static struct dentry *fail_dir;

/* With preemption disabled; @text: of this processor */
static bool fail_is_ours(unsigned long caller, char *text)
{
	unsigned int i;

	sprint_symbol(text, caller);
	for (i = 0; i < ARRAY_SIZE(fail_modules); i++)
		if (strstr(text, fail_modules[i]))
			return true;
	return false;
}

/* At the function's first instruction: on the stack is the caller's address */
static int fail_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct fail_point *point = container_of(kp, struct fail_point, kp);
	struct task_struct *task = smp_load_acquire(&fail_task); /* of what is armed */
	char *caller = *this_cpu_ptr(&fail_caller);

	if (!task || (fail_workers ? !(current->flags & PF_KTHREAD) : task != current))
		return 0;
	if (!fail_is_ours(regs_get_kernel_stack_nth(regs, 0), caller) ||
	    atomic_inc_return(&fail_calls) != fail_at)
		return 0;
	fail_what = kp->symbol_name;
	strscpy(fail_where, caller, sizeof(fail_where));
	instruction_pointer_set(regs, (unsigned long)point->with);
	return 1;
}

static void fail_post(struct kprobe *kp, struct pt_regs *regs,
		      unsigned long flags)
{
}

static struct task_struct *hold_task;
static atomic_t hold_count;

static int hold_pre(struct kprobe *kp, struct pt_regs *regs)
{
	char *caller = *this_cpu_ptr(&fail_caller);

	if (READ_ONCE(hold_task) != current)
		return 0;
	sprint_symbol(caller, regs_get_kernel_stack_nth(regs, 0));
	if (!strstr(caller, "[peerlane]"))
		return 0;
	atomic_inc(&hold_count);
	instruction_pointer_set(regs, (unsigned long)fail_0);
	return 1;
}

static void hold_post(struct kprobe *kp, struct pt_regs *regs,
		      unsigned long flags)
{
}

static ssize_t hold_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	bool hold;
	int ret;

	ret = kstrtobool_from_user(from, count, &hold);
	if (ret)
		return ret;
	atomic_set(&hold_count, 0);
	WRITE_ONCE(hold_task, hold ? current : NULL);
	return count;
}

static const struct file_operations hold_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = hold_write,
};

static struct task_struct *linger_task;

static int linger_pre(struct kprobe *kp, struct pt_regs *regs)
{
	u64 end;

	if (READ_ONCE(linger_task) != current)
		return 0;
	atomic_inc(&hold_count);
	end = ktime_get_mono_fast_ns() + 2 * NSEC_PER_SEC;
	while (READ_ONCE(linger_task) && ktime_get_mono_fast_ns() < end)
		cpu_relax();
	WRITE_ONCE(linger_task, NULL);
	return 0;
}

static struct kprobe linger_point = {
	.symbol_name = "nvidia_p2p_put_pages", .pre_handler = linger_pre,
};

static ssize_t linger_write(struct file *file, const char __user *from,
			    size_t count, loff_t *pos)
{
	bool linger;
	int ret;

	ret = kstrtobool_from_user(from, count, &linger);
	if (ret)
		return ret;
	atomic_set(&hold_count, 0);
	WRITE_ONCE(linger_task, linger ? current : NULL);
	return count;
}

static const struct file_operations linger_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = linger_write,
};

static atomic_t unmap_count;

static int unmap_pre(struct kprobe *kp, struct pt_regs *regs)
{
	char *caller = *this_cpu_ptr(&fail_caller);

	if (fail_is_ours(regs_get_kernel_stack_nth(regs, 0), caller))
		atomic_inc(&unmap_count);
	return 0;
}

static struct kprobe unmap_point = {
	.symbol_name = "unmap_mapping_range", .pre_handler = unmap_pre,
};

static int unmaps_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", atomic_read(&unmap_count));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(unmaps);

/* With references; those from lock_first on are locked; fail_lock guards all three */
static struct folio *lock_of[16];
static unsigned int lock_first, lock_n;

static void lock_end(void)
{
	if (lock_first < lock_n)
		folio_unlock(lock_of[lock_first++]);
}

static void lock_forget(void)
{
	while (lock_n)
		folio_put(lock_of[--lock_n]);
	lock_first = 0;
}

static int lock_begin(unsigned long addr)
{
	struct folio *folio;
	struct page *page;

	if (lock_first == lock_n)
		lock_forget();
	if (lock_n == ARRAY_SIZE(lock_of))
		return -ENOSPC;
	if (get_user_pages_fast(addr, 1, FOLL_WRITE, &page) != 1)
		return -EFAULT;
	folio = page_folio(page);
	folio_lock(folio);
	folio_clear_dirty(folio);
	lock_of[lock_n++] = folio;
	return 0;
}

static ssize_t lock_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	unsigned long addr;
	int ret;

	ret = kstrtoul_from_user(from, count, 0, &addr);
	if (ret)
		return ret;
	mutex_lock(&fail_lock);
	if (addr)
		ret = lock_begin(addr);
	else
		lock_end();
	mutex_unlock(&fail_lock);
	return ret ? ret : count;
}

static int lock_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	mutex_lock(&fail_lock);
	for (i = 0; i < lock_n; i++)
		seq_putc(m, folio_test_dirty(lock_of[i]) ? 'd' : 'c');
	mutex_unlock(&fail_lock);
	return 0;
}

static int lock_open(struct inode *inode, struct file *file)
{
	return single_open(file, lock_show, NULL);
}

static const struct file_operations lock_fops = {
	.owner = THIS_MODULE,
	.open = lock_open,
	.read = seq_read,
	.write = lock_write,
	.release = single_release,
};

static int held_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", atomic_read(&hold_count));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(held);

static ssize_t fail_arm_write(struct file *file, const char __user *from,
			      size_t count, loff_t *pos)
{
	char text[24] = "";
	bool workers;
	unsigned int n;
	char *word;
	int ret;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, count))
		return -EFAULT;
	word = strchr(text, ' ');
	workers = word && !strcmp(word, " workers");
	if (workers)
		*word = 0;
	ret = kstrtouint(text, 0, &n);
	if (ret)
		return ret;
	mutex_lock(&fail_lock);
	WRITE_ONCE(fail_task, NULL);
	/* Others may be in a kprobe still, which is a section of RCU */
	if (fail_workers)
		synchronize_rcu();
	if (n) {
		fail_workers = workers;
		fail_at = n;
		atomic_set(&fail_calls, 0);
		fail_what = NULL;
		/* With what is armed */
		smp_store_release(&fail_task, current);
	}
	mutex_unlock(&fail_lock);
	return count;
}

static const struct file_operations fail_arm_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = fail_arm_write,
};

static int state_show(struct seq_file *m, void *unused)
{
	mutex_lock(&fail_lock);
	seq_printf(m, "points %u calls %u failed ", fail_there, atomic_read(&fail_calls));
	if (fail_what)
		seq_printf(m, "%s by %s\n", fail_what, fail_where);
	else
		seq_puts(m, "-\n");
	mutex_unlock(&fail_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int __init fail_init(void)
{
	struct fail_point *point;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(fail_points); i++) {
		point = &fail_points[i];
		ret = register_kprobe(&point->kp);
		point->there = !ret;
		fail_there += point->there;
		if (ret)
			pr_info("peerlane_fail_test: this kernel has no %s (%d)\n",
				point->kp.symbol_name, ret);
	}
	for (i = 0; i < ARRAY_SIZE(hold_points); i++)
		if (register_kprobe(&hold_points[i]))
			hold_points[i].pre_handler = NULL;
	if (register_kprobe(&linger_point))
		linger_point.pre_handler = NULL;
	if (register_kprobe(&unmap_point))
		unmap_point.pre_handler = NULL;
	fail_dir = debugfs_create_dir("peerlane_fail_test", NULL);
	debugfs_create_file("arm", 0200, fail_dir, NULL, &fail_arm_fops);
	debugfs_create_file("hold", 0200, fail_dir, NULL, &hold_fops);
	debugfs_create_file("linger", 0200, fail_dir, NULL, &linger_fops);
	debugfs_create_file("unmaps", 0400, fail_dir, NULL, &unmaps_fops);
	debugfs_create_file("lock", 0600, fail_dir, NULL, &lock_fops);
	debugfs_create_file("held", 0400, fail_dir, NULL, &held_fops);
	debugfs_create_file("state", 0400, fail_dir, NULL, &state_fops);
	return 0;
}

static void __exit fail_exit(void)
{
	unsigned int i;

	debugfs_remove_recursive(fail_dir);
	while (lock_first < lock_n)
		lock_end();
	lock_forget();
	WRITE_ONCE(fail_task, NULL);
	WRITE_ONCE(hold_task, NULL);
	WRITE_ONCE(linger_task, NULL);
	if (unmap_point.pre_handler)
		unregister_kprobe(&unmap_point);
	if (linger_point.pre_handler)
		unregister_kprobe(&linger_point);
	for (i = 0; i < ARRAY_SIZE(hold_points); i++)
		if (hold_points[i].pre_handler)
			unregister_kprobe(&hold_points[i]);
	for (i = 0; i < ARRAY_SIZE(fail_points); i++)
		if (fail_points[i].there)
			unregister_kprobe(&fail_points[i].kp);
}

module_init(fail_init);
module_exit(fail_exit);

MODULE_DESCRIPTION("Peerlane fault injection for tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
