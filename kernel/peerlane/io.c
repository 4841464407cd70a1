// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: IO between a file and registered memory.
 *
 * The file system gets a kernel's direct IO whose segments are addresses of BAR1's
 * pages.  The block layer takes no references to these pages and does not ask
 * whether the queue takes them, as it does for a program's; so the checks are here.
 *
 * From Linux 6.17 on it must not merge the IO with one of host memory beside it, since
 * a request is mapped for DMA as its first page is; before, each segment is mapped as
 * it is, and merging does no harm.  It looks for P2PDMA pages, and marks their
 * bios REQ_NOMERGE, where it makes a bio's segments itself: from addresses, but not
 * from bvecs.  md takes the mark away before it hands the bio to a drive, so there
 * the drives' queues must not merge at all.  NVMe multipath keeps the mark.
 */
#include <linux/blk-integrity.h>
#include <linux/blkdev.h>
#include <linux/device/class.h>
#include <linux/file.h>
#include <linux/fileattr.h>
#include <linux/fs.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/stat.h>
#include <linux/string.h>
#include <linux/uio.h>

#include "peerlane.h"

/* Between looks at signals, and whether the memory is wanted back */
#define PLN_IO_CHUNK	SZ_16M

static int pln_refuse(struct pln_check *check, u32 reason)
{
	check->reason = reason;
	return -EOPNOTSUPP;
}

/*
 * File systems whose direct IO leaves the data alone.  Others may copy it through
 * the page cache, or read it for checksums.
 */
static bool pln_fs_known(const struct super_block *sb)
{
	return !strcmp(sb->s_type->name, "ext4") ||
	       !strcmp(sb->s_type->name, "xfs");
}

/*
 * Is the data of the file on the file system's device?  xfs keeps that of some files on
 * a second one, of which modules are not told.  A program can move an empty file there
 * after this; then its writes are checked by the flags of the wrong device.
 */
static int pln_file_on_bdev(struct file *file)
{
	struct file_kattr fa = { };
	int ret;

	if (strcmp(file_inode(file)->i_sb->s_type->name, "xfs"))
		return 1;
	ret = vfs_fileattr_get(file->f_path.dentry, &fa);
	if (ret == -ENOIOCTLCMD)
		return 0;
	return ret ?: !(fa.fsx_xflags & FS_XFLAG_REALTIME);
}

/*
 * Does the queue of a drive merge that md may send P2PDMA pages to?  Which drives are
 * below md the kernel does not tell modules, so all count.
 */
static bool pln_drives_merge(struct block_device *md)
{
	struct class_dev_iter iter;
	struct request_queue *q;
	struct device *dev;
	bool merge = false;

	class_dev_iter_init(&iter, disk_to_dev(md->bd_disk)->class, NULL, NULL);
	while (!merge && (dev = class_dev_iter_next(&iter))) {
		q = bdev_get_queue(dev_to_bdev(dev));
		merge = queue_is_mq(q) && blk_queue_pci_p2pdma(q) &&
			!blk_queue_nomerges(q);
	}
	class_dev_iter_exit(&iter);
	return merge;
}

/**
 * pln_file_check - can the drive below a file do the IO?
 * @file: any
 * @check: out: its reason, and alignments when it can
 *
 * Return: 0; -EOPNOTSUPP: the reason says why not.
 */
int pln_file_check(struct file *file, struct pln_check *check)
{
	struct inode *inode = file_inode(file);
	struct block_device *bdev;
	struct request_queue *q;
	struct kstat stat;
	int ret;

	check->reason = PLN_REASON_NONE;
	if (S_ISBLK(inode->i_mode)) {
		bdev = I_BDEV(file->f_mapping->host);
		check->offset_align = bdev_logical_block_size(bdev);
		check->memory_align = bdev_dma_alignment(bdev) + 1;
	} else if (S_ISREG(inode->i_mode)) {
		bdev = inode->i_sb->s_bdev;
		if (!pln_fs_known(inode->i_sb) || !bdev)
			return pln_refuse(check, PLN_REASON_FILE_SYSTEM);
		ret = pln_file_on_bdev(file);
		if (ret < 0)
			return ret;
		if (!ret)
			return pln_refuse(check, PLN_REASON_FILE_SYSTEM);
		ret = vfs_getattr(&file->f_path, &stat, STATX_DIOALIGN,
				  AT_STATX_SYNC_AS_STAT);
		if (ret)
			return ret;
		/*
		 * With the mount option inlinecrypt an encrypted file has direct IO,
		 * whose data the processor encrypts where the drive does not
		 */
		if (!(file->f_mode & FMODE_CAN_ODIRECT) || IS_DAX(inode) ||
		    IS_ENCRYPTED(inode) ||
		    !(stat.result_mask & STATX_DIOALIGN) ||
		    !stat.dio_mem_align || !stat.dio_offset_align)
			return pln_refuse(check, PLN_REASON_NO_DIRECT);
		check->offset_align = stat.dio_offset_align;
		check->memory_align = stat.dio_mem_align;
	} else {
		return pln_refuse(check, PLN_REASON_FILE_TYPE);
	}
	/* A layer above drives has the feature where all below it have it */
	q = bdev_get_queue(bdev);
	if (!blk_queue_pci_p2pdma(q))
		return pln_refuse(check, PLN_REASON_DEVICE);
	if (bdev_get_integrity(bdev) || bdev_stable_writes(bdev))
		return pln_refuse(check, PLN_REASON_INTEGRITY);
	/* The names of all of md's disks, and of no others, begin so */
	if (strstarts(bdev->bd_disk->disk_name, "md") && pln_drives_merge(bdev))
		return pln_refuse(check, PLN_REASON_MERGES);
	return 0;
}

static void pln_io_iter(struct iov_iter *iter, struct pln_mem *mem,
			const struct pln_io *io, u64 done, u64 len)
{
	u64 page_size = 1ull << mem->shift, start = io->offset + done;
	u64 first = start >> mem->shift;
	u64 end = (start + len + page_size - 1) >> mem->shift;

	iov_iter_kvec(iter, io->op == PLN_IO_WRITE ? ITER_SOURCE : ITER_DEST,
		      mem->kvec + first, end - first,
		      (start & (page_size - 1)) + len);
	iov_iter_advance(iter, start & (page_size - 1));
}

/**
 * pln_io_chunk - a piece of an IO, of PLN_IO_CHUNK bytes at most
 * @file: any
 * @mem: the memory
 * @io: all of its input checked
 * @done: bytes of it that are done
 * @kiocb: of @file; its completion and flags are the caller's
 * @iter: for the file system
 *
 * Return: bytes, an errno, or -EIOCBQUEUED where @kiocb has a completion, which
 * may have been called, and for a write calls kiocb_end_write().
 */
ssize_t pln_io_chunk(struct file *file, struct pln_mem *mem,
		     const struct pln_io *io, u64 done, struct kiocb *kiocb,
		     struct iov_iter *iter)
{
	bool write = io->op == PLN_IO_WRITE;

	pln_io_iter(iter, mem, io, done,
		    min_t(u64, io->size - done, PLN_IO_CHUNK));
	kiocb->ki_pos = io->file_offset + done;
	/* The file need not be open with O_DIRECT */
	kiocb->ki_flags |= IOCB_DIRECT;
	/* As seen by this kiocb: a program may change the file's flag at any time */
	if (write && kiocb->ki_flags & IOCB_APPEND)
		return -EINVAL;

	/* With all checks of the caller's rights, and freeze protection */
	return write ? vfs_iocb_iter_write(file, kiocb, iter) :
		       vfs_iocb_iter_read(file, kiocb, iter);
}

static int pln_io_check(struct file *file, struct pln_mem *mem,
			struct pln_io *io)
{
	struct pln_check check = { };
	u64 end;
	int ret;

	if (check_add_overflow(io->offset, io->size, &end) || end > mem->size)
		return -ERANGE;
	ret = pln_file_check(file, &check);
	if (ret) {
		io->reason = check.reason;
		return ret;
	}
	if ((io->file_offset | io->size) % check.offset_align ||
	    io->offset % check.memory_align) {
		io->reason = PLN_REASON_ALIGNMENT;
		return -EINVAL;
	}
	if (io->op == PLN_IO_WRITE && file->f_flags & O_APPEND) {
		io->reason = PLN_REASON_APPEND;
		return -EINVAL;
	}
	return 0;
}

/**
 * pln_io_begin - look an IO up and check it
 * @pf: the open /dev/peerlane
 * @io: in: as given; out: done 0, reason
 * @file: out: the file, with a reference
 * @mem: out: the memory, which takes part in IO
 *
 * Return: 0, and pln_io_end() and fput() must follow; or an errno.
 */
int pln_io_begin(struct pln_file *pf, struct pln_io *io, struct file **file,
		 struct pln_mem **mem)
{
	int ret;

	io->done = 0;
	io->reason = PLN_REASON_NONE;
	if (io->op > PLN_IO_WRITE || io->flags || io->reserved32 ||
	    memchr_inv(io->reserved, 0, sizeof(io->reserved)))
		return -EINVAL;
	*file = fget(io->fd);
	if (!*file)
		return -EBADF;

	xa_lock(&pf->mems);
	*mem = xa_load(&pf->mems, io->handle);
	ret = *mem ? pln_mem_io_begin(*mem) : -ENOENT;
	xa_unlock(&pf->mems);
	if (ret) {
		if (ret == -EIDRM)
			io->reason = PLN_REASON_FREED;
		fput(*file);
		return ret;
	}
	atomic64_inc(&pln_stats.ios);
	ret = pln_io_check(*file, *mem, io);
	if (ret) {
		pln_io_end(io, *mem);
		fput(*file);
	}
	return ret;
}

/* In any context */
void pln_io_end(const struct pln_io *io, struct pln_mem *mem)
{
	atomic64_add(io->done, io->op == PLN_IO_WRITE ? &pln_stats.written :
							&pln_stats.read);
	atomic64_dec(&pln_stats.ios);
	pln_mem_io_end(mem);
}

/**
 * pln_io_done - what became of a piece of an IO
 * @mem: its memory
 * @io: all of it
 * @ret: of the file system
 *
 * Memory that is taken away may be lost in a reset before a drive has read it, and reads
 * as ones then, without an error.  So what a file has been given meanwhile is unknown.
 *
 * Return: @ret, or -EIDRM.
 */
ssize_t pln_io_done(const struct pln_mem *mem, const struct pln_io *io,
		    ssize_t ret)
{
	if (ret > 0 && io->op == PLN_IO_WRITE &&
	    test_bit(PLN_MEM_REVOKED, &mem->flags))
		return -EIDRM;
	return ret;
}

/**
 * pln_io_result - what the program is told
 * @io: out: done, reason
 * @done: bytes
 * @err: an errno that came after these, or 0
 *
 * Return: 0 or an errno.
 */
int pln_io_result(struct pln_io *io, u64 done, int err)
{
	io->done = done;
	if (done || err >= 0)
		return 0;
	if (err == -EIDRM)
		io->reason = PLN_REASON_FREED;
	else if (err == -EINVAL || err == -EREMOTEIO)
		io->reason = PLN_REASON_REFUSED;
	return err;
}

/**
 * pln_file_io - read or write a file, and wait for it
 * @file: of pln_io_begin()
 * @mem: likewise
 * @io: likewise; out: done, reason
 *
 * Return: 0 or an errno.
 */
int pln_file_io(struct file *file, struct pln_mem *mem, struct pln_io *io)
{
	struct iov_iter iter;
	struct kiocb kiocb;
	u64 done = 0, len;
	ssize_t ret;

	do {
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		ret = pln_mem_stopped(mem);
		if (ret)
			break;
		len = min_t(u64, io->size - done, PLN_IO_CHUNK);
		init_sync_kiocb(&kiocb, file);
		ret = pln_io_done(mem, io, pln_io_chunk(file, mem, io, done,
							&kiocb, &iter));
		if (ret <= 0)
			break;
		done += ret;
	} while (ret == len && done < io->size);
	return pln_io_result(io, done, ret);
}
