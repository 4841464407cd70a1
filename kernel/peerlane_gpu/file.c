// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane emulated GPU: /dev/peerlane-gpuN.
 */
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "dmabuf.h"
#include "job.h"
#include "queue.h"

#define PLN_MAX_GPUS		64
#define PLN_MAX_WAIT_NS		(600ULL * NSEC_PER_SEC)
#define PLN_RESET_WAIT_MS	10000

static unsigned int pln_max_jobs = 1024;
module_param_named(max_jobs, pln_max_jobs, uint, 0644);
MODULE_PARM_DESC(max_jobs,
		 "Jobs of one open file that nobody has waited for yet (default 1024)");

/* 0 is no handle and no job */
#define PLN_XA_LIMIT		XA_LIMIT(1, INT_MAX)

static dev_t pln_devt;
static struct class *pln_class;

static bool pln_is_gone(struct pln_gpu *gpu)
{
	return pln_state_errno(gpu) == -ENODEV;
}

static int pln_open(struct inode *inode, struct file *filp)
{
	struct pln_gpu *gpu = container_of(inode->i_cdev, struct pln_gpu, cdev);
	struct pln_file *file;

	if (pln_is_gone(gpu))
		return -ENODEV;
	file = kzalloc_obj(*file, GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	kref_init(&file->kref);
	xa_init_flags(&file->bufs, XA_FLAGS_ALLOC1);
	xa_init_flags(&file->jobs, XA_FLAGS_ALLOC1);
	file->mapping = filp->f_mapping;
	file->gpu = gpu;
	get_device(&gpu->dev);
	atomic64_inc(&gpu->nr_files);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int pln_release(struct inode *inode, struct file *filp)
{
	struct pln_file *file = filp->private_data;
	struct pln_gpu *gpu = file->gpu;
	struct pln_buf *buf;
	struct pln_job *job;
	unsigned long index;
	unsigned int i;
	int idx;

	/* What has not begun need not; what has is waited for by the reaper */
	idx = srcu_read_lock(&gpu->calls);
	xa_for_each(&file->jobs, index, job) {
		xa_erase(&file->jobs, index);
		WRITE_ONCE(job->cancelled, true);
		pln_job_put(job);
	}
	for (i = 0; i < gpu->num_queues; i++)
		pln_queue_kick(&gpu->queues[i]);

	xa_for_each(&file->bufs, index, buf) {
		xa_erase(&file->bufs, index);
		pln_buf_drop(buf);
	}
	srcu_read_unlock(&gpu->calls, idx);
	kref_put(&file->kref, pln_file_free);
	return 0;
}

/* A reset in progress is waited for; afterwards each call judges for itself */
static bool pln_not_resetting(struct pln_gpu *gpu)
{
	return READ_ONCE(gpu->state) != PLN_RESETTING;
}

/* Not every kernel tells a driver that the recovery of its link has failed */
static void pln_reset_failed(struct pln_gpu *gpu)
{
	down_write(&gpu->mem_lock);
	if (gpu->state == PLN_RESETTING)
		gpu->state = pln_state_unusable(gpu);
	up_write(&gpu->mem_lock);
	wake_up_all(&gpu->state_wait);
}

static int pln_await_live(struct pln_gpu *gpu)
{
	long left = msecs_to_jiffies(PLN_RESET_WAIT_MS);

	left = wait_event_interruptible_timeout(gpu->state_wait,
						pln_not_resetting(gpu), left);
	/* Nothing was done: the call is made again after the signal */
	if (left < 0)
		return -ERESTARTSYS;
	if (!left)
		pln_reset_failed(gpu);
	return pln_is_gone(gpu) ? -ENODEV : 0;
}

/*
 * Begin to use the device; removal waits until pln_leave().  Between the two no
 * user memory is touched.
 */
static int pln_enter(struct pln_gpu *gpu, int *idx)
{
	int ret = pln_await_live(gpu);

	if (ret)
		return ret;
	*idx = srcu_read_lock(&gpu->calls);
	if (!pln_is_gone(gpu)) {
		__release(&gpu->calls);		/* for sparse: see pln_leave() */
		return 0;
	}
	srcu_read_unlock(&gpu->calls, *idx);
	return -ENODEV;
}

static void pln_leave(struct pln_gpu *gpu, int idx)
{
	__acquire(&gpu->calls);
	srcu_read_unlock(&gpu->calls, idx);
}

static int pln_ioc_query(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_query q;
	int ret, idx;

	if (copy_from_user(&q, arg, sizeof(q)))
		return -EFAULT;
	if (q.flags || memchr_inv(q.reserved, 0, sizeof(q.reserved)))
		return -EINVAL;

	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	memset(&q, 0, sizeof(q));
	q.abi_version = PLN_GPU_ABI_VERSION;
	q.features = PLN_GPU_FEAT_DMABUF | PLN_GPU_FEAT_DEVPTR |
		     PLN_GPU_FEAT_PARTS;
	if (gpu->coherent_pgmap)
		q.features |= PLN_GPU_FEAT_COHERENT;
	if (gpu->bar1_p2pmem)
		q.features |= PLN_GPU_FEAT_P2PDMA;
	if (gpu->late_writes)
		q.features |= PLN_GPU_FEAT_LATE_WRITES;
	if (gpu->has_time) {
		q.features |= PLN_GPU_FEAT_TIME;
		q.time_ns = pln_time(gpu);
	}
	down_read(&gpu->mem_lock);
	q.vram_size = gpu->vram_size;
	q.vram_free = gpu->vram_size - gpu->vram_used;
	q.bar1_size = gpu->bar1_size;
	q.bar1_free = gpu->bar1_size - gpu->bar1_used;
	q.coherent_size = gpu->coherent_pgmap ? gpu->coherent_size : 0;
	q.reset_count = gpu->reset_count;
	up_read(&gpu->mem_lock);
	q.page_size = PLN_PAGE_SIZE;
	q.num_queues = pln_user_queues(gpu);
	q.pci_domain = pci_domain_nr(gpu->pdev->bus);
	q.pci_bus = gpu->pdev->bus->number;
	q.pci_devfn = gpu->pdev->devfn;
	q.numa_node = dev_to_node(&gpu->pdev->dev);
	memcpy(q.uuid, gpu->uuid, sizeof(q.uuid));
	pln_leave(gpu, idx);
	if (q.time_ns == U64_MAX)	/* all ones: it has been removed */
		return -ENODEV;
	return copy_to_user(arg, &q, sizeof(q)) ? -EFAULT : 0;
}

/* Give the memory a handle in this file; without one it is dropped */
static int pln_handle_new(struct pln_file *file, struct pln_buf *buf, u32 *handle)
{
	int ret;

	ret = xa_alloc_cyclic(&file->bufs, handle, buf, PLN_XA_LIMIT,
			      &file->next_buf, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		pln_buf_drop(buf);
	return min(ret, 0);
}

/* The program could not be told its new handle */
static int pln_handle_untold(struct pln_file *file, struct pln_buf *buf,
			     u32 handle)
{
	int idx;

	/* Another thread may have guessed and freed it */
	if (xa_cmpxchg(&file->bufs, handle, buf, NULL, 0) == buf) {
		idx = srcu_read_lock(&file->gpu->calls);
		pln_buf_drop(buf);
		srcu_read_unlock(&file->gpu->calls, idx);
	}
	return -EFAULT;
}

static int pln_ioc_alloc(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_alloc a;
	struct pln_buf *buf;
	int ret, idx;

	if (copy_from_user(&a, arg, sizeof(a)))
		return -EFAULT;
	if (!a.size || a.flags || a.reserved)
		return -EINVAL;

	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	buf = pln_buf_alloc(gpu, a.size);
	if (IS_ERR(buf)) {
		ret = PTR_ERR(buf);
		goto out;
	}

	down_write(&gpu->mem_lock);
	buf->mapping = file->mapping;
	buf->handles = 1;
	up_write(&gpu->mem_lock);
	a.size = buf->size;
	a.mmap_offset = buf->vram;
	ret = pln_handle_new(file, buf, &a.handle);
out:
	pln_leave(gpu, idx);
	if (!ret && copy_to_user(arg, &a, sizeof(a)))
		ret = pln_handle_untold(file, buf, a.handle);
	return ret;
}

static int pln_ioc_free(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_free f;
	struct pln_buf *buf;
	int ret, idx;

	if (copy_from_user(&f, arg, sizeof(f)))
		return -EFAULT;
	if (f.reserved)
		return -EINVAL;
	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	buf = f.handle ? xa_erase(&file->bufs, f.handle) : NULL;
	if (buf)
		pln_buf_drop(buf);
	pln_leave(gpu, idx);
	return buf ? 0 : -ENOENT;
}

static struct pln_buf *pln_file_buf(struct pln_file *file, u32 handle)
{
	struct pln_buf *buf;

	xa_lock(&file->bufs);
	buf = handle ? xa_load(&file->bufs, handle) : NULL;
	if (buf)
		pln_buf_get(buf);
	xa_unlock(&file->bufs);
	return buf;
}

/* A piece of memory that is named by a handle; with a reference */
static int pln_piece_get(struct pln_file *file, struct pln_piece *piece,
			 u32 handle, u64 offset, u64 size)
{
	struct pln_buf *buf;

	if (!size || offset % PAGE_SIZE || size % PAGE_SIZE)
		return -EINVAL;
	buf = pln_file_buf(file, handle);
	if (!buf)
		return -ENOENT;
	if (offset > buf->size || size > buf->size - offset) {
		pln_buf_put(buf);
		return -EINVAL;
	}
	piece->buf = buf;
	piece->offset = offset;
	piece->size = size;
	return 0;
}

/* The descriptor becomes real when the program has been told it */
static int pln_export_fd(struct dma_buf *dmabuf, u32 flags, void __user *user,
			 const void *arg, size_t arg_size, __s32 *arg_fd)
{
	int fd = get_unused_fd_flags(flags & O_CLOEXEC);

	if (fd < 0)
		goto err_dmabuf;
	*arg_fd = fd;
	if (copy_to_user(user, arg, arg_size)) {
		put_unused_fd(fd);
		fd = -EFAULT;
		goto err_dmabuf;
	}
	fd_install(fd, dmabuf->file);
	return 0;

err_dmabuf:
	dma_buf_put(dmabuf);
	return fd;
}

static int pln_ioc_export(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct dma_buf *dmabuf;
	struct pln_gpu_export e;
	struct pln_piece piece;
	bool importable;
	int ret, idx;

	if (copy_from_user(&e, arg, sizeof(e)))
		return -EFAULT;
	if (e.flags & ~(O_CLOEXEC | PLN_GPU_EXPORT_F_IMPORT) || e.reserved)
		return -EINVAL;
	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	ret = pln_piece_get(file, &piece, e.handle, e.offset, e.size);
	if (ret)
		goto out;
	/* A handle is of the whole allocation */
	importable = e.flags & PLN_GPU_EXPORT_F_IMPORT;
	if (importable && e.size != piece.buf->size) {
		ret = -EINVAL;
	} else {
		dmabuf = pln_export_pieces(gpu, &piece, 1, importable);
		ret = PTR_ERR_OR_ZERO(dmabuf);
	}
	pln_buf_put(piece.buf);
out:
	pln_leave(gpu, idx);
	return ret ? ret : pln_export_fd(dmabuf, e.flags, arg, &e, sizeof(e),
					 &e.fd);
}

/* The parts as one dma-buf; *size: bytes of all */
static struct dma_buf *pln_export_parts(struct pln_file *file,
					const struct pln_gpu_part *parts,
					unsigned int nr_parts, u64 *size)
{
	struct dma_buf *dmabuf;
	struct pln_piece *pieces;
	unsigned int n = 0;
	int ret;

	pieces = kvcalloc(nr_parts, sizeof(*pieces), GFP_KERNEL_ACCOUNT);
	if (!pieces)
		return ERR_PTR(-ENOMEM);
	*size = 0;
	while (n < nr_parts) {
		ret = parts[n].reserved ? -EINVAL :
			pln_piece_get(file, &pieces[n], parts[n].handle,
				      parts[n].offset, parts[n].size);
		if (ret) {
			dmabuf = ERR_PTR(ret);
			goto out;
		}
		*size += parts[n++].size;
	}
	dmabuf = pln_export_pieces(file->gpu, pieces, n, false);
out:
	while (n)
		pln_buf_put(pieces[--n].buf);
	kvfree(pieces);
	return dmabuf;
}

static int pln_ioc_export_parts(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_export_parts e;
	struct pln_gpu_part *parts;
	struct dma_buf *dmabuf;
	int ret, idx;

	if (copy_from_user(&e, arg, sizeof(e)))
		return -EFAULT;
	if (e.flags & ~O_CLOEXEC || e.reserved || !e.nr_parts ||
	    e.nr_parts > PLN_GPU_MAX_PARTS)
		return -EINVAL;
	parts = vmemdup_user(u64_to_user_ptr(e.parts),
			     array_size(e.nr_parts, sizeof(*parts)));
	if (IS_ERR(parts))
		return PTR_ERR(parts);
	ret = pln_enter(gpu, &idx);
	if (ret)
		goto out;
	dmabuf = pln_export_parts(file, parts, e.nr_parts, &e.size);
	ret = PTR_ERR_OR_ZERO(dmabuf);
	pln_leave(gpu, idx);
out:
	kvfree(parts);
	return ret ? ret : pln_export_fd(dmabuf, e.flags, arg, &e, sizeof(e),
					 &e.fd);
}

static int pln_ioc_import(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_import i;
	struct pln_buf *buf;
	int ret, idx;

	if (copy_from_user(&i, arg, sizeof(i)))
		return -EFAULT;
	if (i.flags || i.reserved)
		return -EINVAL;
	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	buf = pln_import_buf(gpu, i.fd, file->mapping);
	if (IS_ERR(buf)) {
		ret = PTR_ERR(buf);
		goto out;
	}
	i.offset = 0;
	i.size = buf->size;
	i.mmap_offset = buf->vram;
	ret = pln_handle_new(file, buf, &i.handle);
out:
	pln_leave(gpu, idx);
	if (!ret && copy_to_user(arg, &i, sizeof(i)))
		ret = pln_handle_untold(file, buf, i.handle);
	return ret;
}

static void pln_forget_job(struct pln_file *file, struct pln_job *job)
{
	atomic_dec(&file->nr_jobs);
	pln_job_put(job);
}

/* Hand the job to its queue */
static int pln_job_run(struct pln_job *job, u32 queue)
{
	struct pln_gpu *gpu = job->gpu;
	int ret, idx;

	ret = pln_enter(gpu, &idx);
	if (ret)
		return ret;
	ret = pln_job_bind(job);
	if (!ret)
		ret = pln_queue_submit(&gpu->queues[queue], job);
	/* GPU memory is let go while the driver is here */
	if (ret)
		pln_job_release(job);
	pln_leave(gpu, idx);
	return ret;
}

/* The job never ran: nobody waits for its number any longer */
static void pln_job_refused(struct pln_file *file, struct pln_job *job, u32 id,
			    int err)
{
	job->status = err;
	pln_job_finish(job);
	if (xa_cmpxchg(&file->jobs, id, job, NULL, 0) == job)
		pln_forget_job(file, job);
}

static int pln_ioc_submit(struct pln_file *file, void __user *arg)
{
	struct pln_gpu *gpu = file->gpu;
	struct pln_gpu_submit s;
	struct pln_gpu_op *ops;
	struct pln_job *job;
	u32 id;
	int ret;

	if (copy_from_user(&s, arg, sizeof(s)))
		return -EFAULT;
	if (!s.nr_ops || s.nr_ops > PLN_GPU_MAX_OPS || s.flags ||
	    s.reserved || s.queue >= pln_user_queues(gpu))
		return -EINVAL;

	ops = vmemdup_user(u64_to_user_ptr(s.ops),
			   array_size(s.nr_ops, sizeof(*ops)));
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	/* Pinning gives up when the GPU is out of service, which a reset is not */
	ret = pln_await_live(gpu);
	if (ret) {
		kvfree(ops);
		return ret;
	}
	if (atomic_inc_return(&file->nr_jobs) > READ_ONCE(pln_max_jobs)) {
		ret = -EAGAIN;
		goto err_count;
	}

	job = pln_job_build(file, ops, s.nr_ops);
	if (IS_ERR(job)) {
		ret = PTR_ERR(job);
		goto err_count;
	}
	/* Its number may be known before it runs, so keep a reference */
	pln_job_get(job);
	ret = xa_alloc_cyclic(&file->jobs, &id, job, PLN_XA_LIMIT,
			      &file->next_job, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		pln_job_put(job);
		goto err_job;
	}
	s.job = id;
	ret = copy_to_user(arg, &s, sizeof(s)) ? -EFAULT :
						 pln_job_run(job, s.queue);
	if (ret)
		pln_job_refused(file, job, id, ret);
	pln_job_put(job);
	kvfree(ops);
	return ret;

err_job:
	pln_job_put(job);
err_count:
	atomic_dec(&file->nr_jobs);
	kvfree(ops);
	return ret;
}

static int pln_ioc_wait(struct pln_file *file, void __user *arg)
{
	u32 known = file->gpu->has_time ? PLN_GPU_WAIT_F_TIME : 0;
	struct pln_gpu_wait w;
	struct pln_job *job;
	long left;
	int ret;

	if (copy_from_user(&w, arg, sizeof(w)))
		return -EFAULT;
	if (w.flags & ~known || w.reserved || w.timeout_ns > PLN_MAX_WAIT_NS)
		return -EINVAL;

	xa_lock(&file->jobs);
	job = w.job && w.job <= INT_MAX ? xa_load(&file->jobs, w.job) : NULL;
	if (job)
		pln_job_get(job);
	xa_unlock(&file->jobs);
	if (!job)
		return -ENOENT;

	if (!try_wait_for_completion(&job->done)) {
		ret = -ETIMEDOUT;
		if (!w.timeout_ns)
			goto out;
		left = nsecs_to_jiffies(w.timeout_ns) + 1;
		left = wait_for_completion_interruptible_timeout(&job->done,
								 left);
		if (left <= 0) {
			ret = left ? -EINTR : -ETIMEDOUT;
			goto out;
		}
	}

	/* The job is forgotten when its end is told, and one waiter alone is told */
	if (w.flags & PLN_GPU_WAIT_F_TIME)
		w.time_ns = job->time_ns;
	w.result = job->result;
	w.status = job->status;
	w.error = job->error;
	ret = -EFAULT;
	if (copy_to_user(arg, &w, sizeof(w)))
		goto out;
	ret = -ENOENT;
	if (xa_cmpxchg(&file->jobs, w.job, job, NULL, 0) != job)
		goto out;
	pln_forget_job(file, job);
	ret = 0;
out:
	pln_job_put(job);
	return ret;
}

static long pln_ioctl(struct file *filp, unsigned int cmd, unsigned long param)
{
	struct pln_file *file = filp->private_data;
	void __user *arg = (void __user *)param;

	switch (cmd) {
	case PLN_GPU_IOC_QUERY:
		return pln_ioc_query(file, arg);
	case PLN_GPU_IOC_ALLOC:
		return pln_ioc_alloc(file, arg);
	case PLN_GPU_IOC_FREE:
		return pln_ioc_free(file, arg);
	case PLN_GPU_IOC_EXPORT:
		return pln_ioc_export(file, arg);
	case PLN_GPU_IOC_EXPORT_PARTS:
		return pln_ioc_export_parts(file, arg);
	case PLN_GPU_IOC_IMPORT:
		return pln_ioc_import(file, arg);
	case PLN_GPU_IOC_SUBMIT:
		return pln_ioc_submit(file, arg);
	/* Ended jobs can be asked for even when the device is gone */
	case PLN_GPU_IOC_WAIT:
		return pln_ioc_wait(file, arg);
	default:
		return -ENOTTY;
	}
}

static int pln_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct pln_file *file = filp->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	struct pln_buf *buf, *found = NULL;
	struct xa_state xas = __XA_STATE(&file->bufs, 0, 0, 0);
	unsigned int tried = 0;
	int ret;

	ret = pln_state_errno(file->gpu);
	if (ret)
		return ret;

	/* The lock keeps the memory of a handle; there may be very many */
	xas_lock(&xas);
	xas_for_each(&xas, buf, ULONG_MAX) {
		if (xa_is_zero(buf))
			continue;
		if (!READ_ONCE(buf->revoked) && offset >= buf->vram &&
		    offset - buf->vram < buf->size &&
		    size <= buf->size - (offset - buf->vram)) {
			pln_buf_get(buf);
			found = buf;
			break;
		}
		if (++tried % XA_CHECK_SCHED)
			continue;
		xas_pause(&xas);
		xas_unlock(&xas);
		cond_resched();
		xas_lock(&xas);
	}
	xas_unlock(&xas);
	if (!found)
		return -EINVAL;

	ret = pln_buf_mmap(found, vma);
	pln_buf_put(found);
	return ret;
}

static const struct file_operations pln_fops = {
	.owner = THIS_MODULE,
	.open = pln_open,
	.release = pln_release,
	.unlocked_ioctl = pln_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = pln_mmap,
	.llseek = noop_llseek,
};

int pln_cdev_add(struct pln_gpu *gpu)
{
	if (gpu->id >= PLN_MAX_GPUS)
		return -ENOSPC;
	gpu->dev.class = pln_class;
	gpu->dev.devt = MKDEV(MAJOR(pln_devt), gpu->id);
	cdev_init(&gpu->cdev, &pln_fops);
	gpu->cdev.owner = THIS_MODULE;
	return cdev_device_add(&gpu->cdev, &gpu->dev);
}

void pln_cdev_del(struct pln_gpu *gpu)
{
	cdev_device_del(&gpu->cdev, &gpu->dev);
}

static char *pln_devnode(PLN_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	/* Like the GPUs that it stands for: memory is private to each open */
	if (mode)
		*mode = 0666;
	return NULL;
}

int pln_file_setup(void)
{
	int ret;

	ret = alloc_chrdev_region(&pln_devt, 0, PLN_MAX_GPUS, PLN_NAME);
	if (ret)
		return ret;
	pln_class = class_create(PLN_NAME);
	if (IS_ERR(pln_class)) {
		unregister_chrdev_region(pln_devt, PLN_MAX_GPUS);
		return PTR_ERR(pln_class);
	}
	pln_class->devnode = pln_devnode;
	return 0;
}

void pln_file_cleanup(void)
{
	class_destroy(pln_class);
	unregister_chrdev_region(pln_devt, PLN_MAX_GPUS);
}
