// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: IO by io_uring's commands.
 *
 * The file system may use the kiocb, the iterator, and what these lead to until its
 * completion was called, in any context, and until the call that began the IO has
 * returned: whichever is later.  Then the program is told in its own task.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/io_uring/cmd.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "peerlane.h"

/**
 * struct pln_async - an IO under way
 * @refs: 1 of who begins the IO, 1 of its completion
 * @kiocb: the file system's; with a reference to its file
 * @iter: the file system's
 * @io: what was asked for
 * @mem: of pln_io_begin()
 * @cmd: who asked
 * @ret: bytes or an errno
 * @notify: data has moved, of which the call that began the IO did not know yet
 */
struct pln_async {
	refcount_t refs;
	struct kiocb kiocb;
	struct iov_iter iter;
	struct pln_io io;
	struct pln_mem *mem;
	struct io_uring_cmd *cmd;
	int ret;
	bool notify;
};

static struct pln_async **pln_async_of(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct pln_async *);
}

static void pln_async_told(struct io_tw_req tw_req, io_tw_token_t tw)
{
	struct io_uring_cmd *cmd = io_uring_cmd_from_tw(tw_req);
	struct pln_async *async = *pln_async_of(cmd);
	struct file *file = async->kiocb.ki_filp;
	u32 reason = async->io.reason;
	int ret = async->ret;

	/* Here, since a file system may call the completion in any context */
	if (async->notify && async->io.op == PLN_IO_WRITE)
		fsnotify_modify(file);
	else if (async->notify)
		fsnotify_access(file);
	fput(file);
	kfree(async);
	io_uring_cmd_done32(cmd, ret, reason,
			    IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);
}

static void pln_async_end(struct pln_async *async)
{
	/* A command cannot be restarted */
	switch (async->ret) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		async->ret = -EINTR;
	}
	async->ret = pln_io_done(async->mem, &async->io, async->ret);
	pln_io_result(&async->io, max(async->ret, 0), async->ret);
	pln_io_end(&async->io, async->mem);
}

static void pln_async_put(struct pln_async *async)
{
	if (!refcount_dec_and_test(&async->refs))
		return;
	pln_async_end(async);
	io_uring_cmd_complete_in_task(async->cmd, pln_async_told);
}

static void pln_async_complete(struct kiocb *kiocb, long ret)
{
	struct pln_async *async = container_of(kiocb, struct pln_async, kiocb);

	if (async->io.op == PLN_IO_WRITE)
		kiocb_end_write(kiocb);
	async->ret = ret;
	async->notify = ret > 0;
	pln_async_put(async);
}

/* Return: -EIOCBQUEUED: @async is not the caller's any more; 0: it is, with its result */
static int pln_async_start(struct pln_file *pf, struct pln_async *async)
{
	struct file *file;
	ssize_t ret;

	ret = pln_io_begin(pf, &async->io, &file, &async->mem);
	if (ret) {
		async->ret = ret;
		return 0;
	}
	init_sync_kiocb(&async->kiocb, file);
	async->kiocb.ki_complete = pln_async_complete;
	ret = pln_io_chunk(file, async->mem, &async->io, 0, &async->kiocb,
			   &async->iter);
	if (ret == -EIOCBQUEUED) {
		pln_async_put(async);
		return -EIOCBQUEUED;
	}
	async->ret = ret;
	pln_async_end(async);
	fput(file);
	return 0;
}

/**
 * pln_uring_cmd - a command of io_uring
 * @cmd: PLN_IOC_IO
 * @issue_flags: io_uring's
 *
 * Return: -EIOCBQUEUED: the program is or will be told; -EAGAIN: to be called again
 * where waiting is allowed; or another errno.
 */
int pln_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct pln_uring *arg = io_uring_sqe_cmd(cmd->sqe,
						       struct pln_uring);
	struct pln_async *async;
	u32 reason;
	int ret;

	if (cmd->cmd_op != PLN_IOC_IO)
		return -ENOTTY;
	if (READ_ONCE(arg->reserved))
		return -EINVAL;
	/*
	 * What begins an IO may wait: for locks, metadata, a frozen file system, a full
	 * queue.  One of io_uring's workers begins it, and does not wait for its end.
	 */
	if (issue_flags & IO_URING_F_NONBLOCK)
		return -EAGAIN;
	async = kzalloc_obj(*async, GFP_KERNEL_ACCOUNT);
	if (!async)
		return -ENOMEM;
	if (copy_from_user(&async->io, u64_to_user_ptr(READ_ONCE(arg->io)),
			   sizeof(async->io))) {
		kfree(async);
		return -EFAULT;
	}
	refcount_set(&async->refs, 2);
	async->cmd = cmd;
	*pln_async_of(cmd) = async;
	if (pln_async_start(cmd->file->private_data, async))
		return -EIOCBQUEUED;
	ret = async->ret;
	reason = async->io.reason;
	kfree(async);
	io_uring_cmd_done32(cmd, ret, reason, issue_flags);
	return -EIOCBQUEUED;
}
