// SPDX-License-Identifier: MIT
/*
 * The kernel module peerlane, for GPU memory that cannot be mapped: it registers
 * the memory by its address, and does the IO of the files itself.
 *
 * It is there or not when the library opens.  Its descriptor stays the same until
 * the last close, when nothing is under way any more: no lock.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "ring.h"

static int device = -1;
static struct node node;	/* of it */
static bool queues;

void module_open(void)
{
	struct pln_query q = { 0 };

	if (!config.kernel_module)
		return;
	device = no_stream(open("/dev/peerlane", O_RDWR | O_CLOEXEC));
	if (device < 0) {
		if (errno != ENOENT && errno != ENXIO && errno != ENODEV)
			log_line(LOG_NOTICE, "/dev/peerlane: %s (%d): %s; the "
				 "kernel module is not used", errname(errno),
				 errno, strerror(errno));
		return;
	}
	node = node_of_own(device, false);
	if (!ioctl(device, PLN_IOC_QUERY, &q) &&
	    q.abi_version == PLN_ABI_VERSION && q.page_size &&
	    GPU_PAGE % q.page_size == 0) {
		queues = q.features & PLN_FEAT_URING_CMD;
		return;
	}
	log_line(LOG_NOTICE, "/dev/peerlane is not used: it does not answer as "
		 "this library expects: version %u instead of %u, pages of %u "
		 "bytes", q.abi_version, PLN_ABI_VERSION, q.page_size);
	close(device);
	device = -1;
}

void module_close(void)
{
	close_own(device, &node);
	device = -1;
}

/*
 * Does the number lead to our open file still?  Handles of another open of the device
 * are the same small numbers.
 */
static bool ours(void)
{
	return device >= 0 && leads_to(device, &node);
}

bool module_there(void)
{
	return device >= 0;
}

bool module_queues(void)
{
	return device >= 0 && queues;
}

/* What the module has said, or NULL where errno says it. */
static const char *words(uint32_t reason)
{
	switch (reason) {
	case PLN_REASON_NO_PAGES:
		return "the kernel has no pages of this GPU's BAR1: its driver "
		       "did not provide it to P2PDMA, and the module's "
		       "own_pages_mib is 0 or the kernel's log has the reason";
	case PLN_REASON_LIMIT:
		return "the module's limit max_pinned_mib is used up";
	case PLN_REASON_FILE_TYPE:
		return "neither a regular file nor a block device";
	case PLN_REASON_FILE_SYSTEM:
		return "the module supports ext4 and xfs";
	case PLN_REASON_NO_DIRECT:
		return "the file system does no direct IO with this file";
	case PLN_REASON_DEVICE:
		return "the block device does not support device memory";
	case PLN_REASON_INTEGRITY:
		return "the processor has to read the data for checksums";
	case PLN_REASON_ALIGNMENT:
		return "the module asks for other blocks than O_DIRECT";
	case PLN_REASON_APPEND:
		return "the file is open with O_APPEND";
	case PLN_REASON_MERGES:
		return "md lets the kernel merge requests of device and host "
		       "memory; the cure: for each NVMe drive, "
		       "echo 2 >/sys/block/DRIVE/queue/nomerges";
	default:
		return NULL;
	}
}

int module_register(uint64_t start, size_t len, uint32_t *handle,
		    const char **why)
{
	struct pln_register reg = { .address = start, .size = len };

	*why = NULL;
	if (!ours())
		return -ENODEV;
	if (!ioctl(device, PLN_IOC_REGISTER, &reg)) {
		*handle = reg.handle;
		return 0;
	}
	*why = words(reg.reason);
	/* there may be room when others have given theirs up */
	return errno == ENOMEM ? -ENOSPC : -errno;
}

void module_unregister(uint32_t handle)
{
	struct pln_unregister un = { .handle = handle };

	/* else it went with its open file */
	if (ours() && ioctl(device, PLN_IOC_UNREGISTER, &un))
		log_line(LOG_ERROR, "GPU memory stays registered with "
			 "/dev/peerlane: %s (%d): %s", errname(errno), errno,
			 strerror(errno));
}

static struct pln_io request(const struct io *io, uint32_t handle, uint64_t at,
			     uint64_t off, size_t len)
{
	return (struct pln_io){
		.op = io->write ? PLN_IO_WRITE : PLN_IO_READ,
		.handle = handle, .fd = io->f->direct_fd, .file_offset = off,
		.offset = at, .size = len,
	};
}

ssize_t module_move(struct io *io, uint32_t handle, uint64_t at, uint64_t off,
		    size_t len)
{
	struct pln_io q = request(io, handle, at, off, len);

	io->module_says = NULL;
	io->file_refused = io->request_refused = io->device_refused = false;
	if (!ours()) {
		errno = ENODEV;
		return -1;
	}
	if (!ioctl(device, PLN_IOC_IO, &q))
		return (ssize_t)q.done;
	io->module_says = words(q.reason);
	io->file_refused = q.reason == PLN_REASON_FILE_TYPE ||
			   q.reason == PLN_REASON_FILE_SYSTEM ||
			   q.reason == PLN_REASON_NO_DIRECT;
	/* O_APPEND is refused to writes, and is a flag that may be taken away again */
	io->request_refused = q.reason == PLN_REASON_ALIGNMENT ||
			      q.reason == PLN_REASON_APPEND;
	io->device_refused = q.reason == PLN_REASON_DEVICE;
	/* as when a mapping is revoked */
	if (errno == EIDRM)
		errno = EFAULT;
	return -1;
}

/* What the module says beside errno is for ioctl(): a thread asks again for the reason. */
void module_queue(struct ring_io *r, uint64_t at, struct io_uring_sqe *sqe)
{
	r->module = request(&r->io, r->window->handle, at, r->off, r->len);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = ours() ? device : -1;
	sqe->cmd_op = PLN_IOC_IO;
	sqe->addr3 = (uintptr_t)&r->module;	/* struct pln_uring: what follows is 0 */
}
