// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: /dev/peerlane, its calls, and what can be seen from outside.
 */
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/file.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "peerlane.h"

#define PLN_MAX_HANDLES	65536

/* The same for 32-bit and 64-bit programs */
static_assert(sizeof(struct pln_query) == 64);
static_assert(sizeof(struct pln_register) == 32);
static_assert(sizeof(struct pln_unregister) == 8);
static_assert(sizeof(struct pln_check) == 24);
static_assert(sizeof(struct pln_io) == 72);
static_assert(sizeof(struct pln_uring) == 16);

static int pln_ioctl_query(struct pln_file *pf, struct pln_query *q)
{
	if (q->flags || q->reserved32 ||
	    memchr_inv(q->reserved, 0, sizeof(q->reserved)))
		return -EINVAL;
	q->abi_version = PLN_ABI_VERSION;
	q->features = PLN_FEATURES;
	q->max_pinned = capable(CAP_IPC_LOCK) ? U64_MAX :
		(u64)READ_ONCE(pln_max_pinned_mib) * SZ_1M;
	q->pinned = pln_user_pinned(current_uid());
	q->page_size = PLN_PAGE_SIZE;
	return 0;
}

static int pln_ioctl_register(struct pln_file *pf, struct pln_register *arg,
			      struct pln_register __user *user)
{
	struct pln_mem *mem;
	int ret;

	arg->reason = PLN_REASON_NONE;
	if (arg->flags || arg->reserved || !arg->size ||
	    !IS_ALIGNED(arg->address | arg->size, PLN_PAGE_SIZE) ||
	    arg->address + arg->size < arg->address)
		return -EINVAL;

	mem = pln_mem_register(arg->address, arg->size, &arg->reason);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	/* Nobody can use the handle before the caller has been told it */
	ret = xa_alloc(&pf->mems, &arg->handle, NULL,
		       XA_LIMIT(1, PLN_MAX_HANDLES), GFP_KERNEL_ACCOUNT);
	if (ret) {
		if (ret == -EBUSY)
			ret = -ENOSPC;
		goto err_end;
	}
	if (copy_to_user(user, arg, sizeof(*arg))) {
		ret = -EFAULT;
		goto err_release;
	}
	xa_store(&pf->mems, arg->handle, mem, GFP_KERNEL_ACCOUNT);
	return 0;

err_release:
	xa_erase(&pf->mems, arg->handle);
err_end:
	pln_mem_end(mem);
	arg->handle = 0;
	return ret;
}

static int pln_ioctl_unregister(struct pln_file *pf, struct pln_unregister *arg)
{
	struct pln_mem *mem;
	int ret = 0;

	if (arg->reserved)
		return -EINVAL;
	xa_lock(&pf->mems);
	mem = xa_load(&pf->mems, arg->handle);
	if (!mem)
		ret = -ENOENT;
	else if (!pln_mem_is_own(mem))
		ret = -EPERM;
	else
		__xa_erase(&pf->mems, arg->handle);
	xa_unlock(&pf->mems);
	if (ret)
		return ret;
	pln_mem_end(mem);
	return 0;
}

static int pln_ioctl_check(struct pln_file *pf, struct pln_check *arg)
{
	struct file *file;
	int ret;

	if (arg->flags || arg->reserved)
		return -EINVAL;
	arg->offset_align = 0;
	arg->memory_align = 0;
	arg->reason = PLN_REASON_NONE;
	file = fget(arg->fd);
	if (!file)
		return -EBADF;
	ret = pln_file_check(file, arg);
	fput(file);
	return ret;
}

static int pln_ioctl_io(struct pln_file *pf, struct pln_io *io)
{
	struct pln_mem *mem;
	struct file *file;
	int ret;

	ret = pln_io_begin(pf, io, &file, &mem);
	if (ret)
		return ret;
	ret = pln_file_io(file, mem, io);
	pln_io_end(io, mem);
	fput(file);
	return ret;
}

static long pln_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct pln_file *pf = filp->private_data;
	void __user *user = (void __user *)arg;
	union {
		struct pln_query query;
		struct pln_register reg;
		struct pln_unregister unreg;
		struct pln_check check;
		struct pln_io io;
	} u;
	int ret;

	switch (cmd) {
	case PLN_IOC_QUERY:
	case PLN_IOC_REGISTER:
	case PLN_IOC_UNREGISTER:
	case PLN_IOC_CHECK:
	case PLN_IOC_IO:
		break;
	default:
		return -ENOTTY;
	}
	if (copy_from_user(&u, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case PLN_IOC_QUERY:
		ret = pln_ioctl_query(pf, &u.query);
		break;
	case PLN_IOC_REGISTER:
		ret = pln_ioctl_register(pf, &u.reg, user);
		if (!ret)
			return 0;
		break;
	case PLN_IOC_UNREGISTER:
		ret = pln_ioctl_unregister(pf, &u.unreg);
		break;
	case PLN_IOC_CHECK:
		ret = pln_ioctl_check(pf, &u.check);
		break;
	default:
		ret = pln_ioctl_io(pf, &u.io);
	}
	/* Also when the call fails: the reason */
	if (_IOC_DIR(cmd) & _IOC_READ &&
	    copy_to_user(user, &u, _IOC_SIZE(cmd)) && !ret)
		ret = -EFAULT;
	return ret;
}

static int pln_open(struct inode *inode, struct file *filp)
{
	struct pln_file *pf;

	pf = kzalloc_obj(*pf, GFP_KERNEL_ACCOUNT);
	if (!pf)
		return -ENOMEM;
	xa_init_flags(&pf->mems, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	filp->private_data = pf;
	atomic64_inc(&pln_stats.files);
	return 0;
}

static int pln_release(struct inode *inode, struct file *filp)
{
	struct pln_file *pf = filp->private_data;
	struct pln_mem *mem;
	unsigned long handle;

	xa_for_each(&pf->mems, handle, mem)
		pln_mem_end(mem);
	xa_destroy(&pf->mems);
	kfree(pf);
	atomic64_dec(&pln_stats.files);
	return 0;
}

static const struct file_operations pln_fops = {
	.owner = THIS_MODULE,
	.open = pln_open,
	.release = pln_release,
	.unlocked_ioctl = pln_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = pln_uring_cmd,
};

static struct miscdevice pln_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "peerlane",
	.fops = &pln_fops,
	.mode = 0666,
};

static int state_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "files %lld\n", atomic64_read(&pln_stats.files));
	seq_printf(m, "memories %lld\n", atomic64_read(&pln_stats.memories));
	seq_printf(m, "orphans %lld\n", atomic64_read(&pln_stats.orphans));
	seq_printf(m, "pinned %lld\n", atomic64_read(&pln_stats.pinned));
	seq_printf(m, "ios %lld\n", atomic64_read(&pln_stats.ios));
	seq_printf(m, "read %lld\n", atomic64_read(&pln_stats.read));
	seq_printf(m, "written %lld\n", atomic64_read(&pln_stats.written));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static struct dentry *pln_debugfs;

static int __init pln_init(void)
{
	int ret;

	if (!PLN_HAVE_KVEC_DIRECT_IO) {
		pr_err("peerlane: Linux before 6.5 does no direct IO with addresses of GPU memory\n");
		return -EOPNOTSUPP;
	}
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA)) {
		pr_err("peerlane: this kernel was built without CONFIG_PCI_P2PDMA, so no drive can reach GPU memory\n");
		return -EOPNOTSUPP;
	}
	ret = pln_gpu_find();
	if (ret) {
		pr_err("peerlane: no driver of a GPU has nvidia_p2p_get_pages(): load nvidia or peerlane_gpu first\n");
		return ret;
	}
	ret = misc_register(&pln_misc);
	if (ret)
		return ret;
	pln_debugfs = debugfs_create_dir("peerlane", NULL);
	debugfs_create_file("state", 0444, pln_debugfs, NULL, &state_fops);
	return 0;
}

static void __exit pln_exit(void)
{
	debugfs_remove_recursive(pln_debugfs);
	misc_deregister(&pln_misc);
	pln_pages_exit();
	/*
	 * The last statement of a callback lets this function be called, or end: wait
	 * until tasks that were there have gone to sleep elsewhere
	 */
	synchronize_rcu_tasks();
}

module_init(pln_init);
module_exit(pln_exit);

/* The GPU's driver must be there first, whichever it is */
MODULE_SOFTDEP("pre: nvidia peerlane_gpu");
MODULE_DESCRIPTION("Peerlane: IO between files and GPU memory");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(PLN_MODULE_VERSION);
