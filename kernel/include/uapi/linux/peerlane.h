/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Peerlane: user interface of /dev/peerlane, by which files are read into and
 * written from GPU memory without a copy in host memory.
 *
 * Rules: fixed-width fields only, the same layout for 32-bit and 64-bit
 * programs.  Every reserved field and every unknown flag must be 0, or the call
 * fails with EINVAL.  Handles belong to the open file of /dev/peerlane and end
 * with it, whatever ended the process.
 *
 * Calls that have a field @reason set it also when they fail: it says why more
 * exactly than errno does, and is 0 (PLN_REASON_NONE) where errno says it all.
 */
#ifndef _UAPI_LINUX_PEERLANE_H
#define _UAPI_LINUX_PEERLANE_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PLN_ABI_VERSION	1

/* Features in struct pln_query */
#define PLN_FEAT_URING_CMD	(1ull << 0)	/* PLN_IOC_IO by io_uring */

/**
 * enum pln_reason - why GPU memory or a file cannot be used
 * @PLN_REASON_NONE: it can, or errno says it
 * @PLN_REASON_NO_PAGES: the kernel has no pages for P2PDMA there: the GPU's
 *	driver did not give BAR1 to pci_p2pdma_add_resource(), and the parameter
 *	own_pages_mib does not allow the module to do so, or it cannot, which the
 *	kernel's log tells.  EOPNOTSUPP
 * @PLN_REASON_FREED: the GPU memory was freed, or lost in a reset.  EIDRM
 * @PLN_REASON_LIMIT: the user has as much memory registered as the parameter
 *	max_pinned_mib allows.  EDQUOT
 * @PLN_REASON_FILE_TYPE: neither a regular file nor a block device.  EOPNOTSUPP
 * @PLN_REASON_FILE_SYSTEM: a file system that is not known to leave the data
 *	to the drive; ext4 and xfs are.  EOPNOTSUPP
 * @PLN_REASON_NO_DIRECT: the file system does no direct IO with this file:
 *	it is encrypted, compressed, has its data in the journal, ...  EOPNOTSUPP
 * @PLN_REASON_DEVICE: the block device cannot do DMA to a peer: it is no NVMe
 *	drive on PCI, or a layer above the drives needs the data in host memory or
 *	does not pass such pages on (device mapper, md with parity, md before
 *	Linux 7.2, ...).  EOPNOTSUPP
 * @PLN_REASON_INTEGRITY: the processor has to read the data: checksums for the
 *	drive (T10 PI), or a drive that needs stable pages.  EOPNOTSUPP
 * @PLN_REASON_ALIGNMENT: offset, size or the address in GPU memory is no
 *	multiple of what PLN_IOC_CHECK says.  EINVAL
 * @PLN_REASON_APPEND: a write to a file that is open with O_APPEND.  EINVAL
 * @PLN_REASON_REFUSED: all of the above is right, and the file system or the
 *	drive's driver refused; mostly because there is no way between the two
 *	devices, which the kernel's log tells.  EINVAL, EREMOTEIO
 * @PLN_REASON_MERGES: md is above the drives, which lets the kernel merge this IO
 *	with one of host memory beside it, and map both as what the first of them is;
 *	and the queue of an NVMe drive merges.  Cure: echo 2 to queue/nomerges of
 *	each NVMe drive in /sys/block.  EOPNOTSUPP
 */
enum pln_reason {
	PLN_REASON_NONE,
	PLN_REASON_NO_PAGES,
	PLN_REASON_FREED,
	PLN_REASON_LIMIT,
	PLN_REASON_FILE_TYPE,
	PLN_REASON_FILE_SYSTEM,
	PLN_REASON_NO_DIRECT,
	PLN_REASON_DEVICE,
	PLN_REASON_INTEGRITY,
	PLN_REASON_ALIGNMENT,
	PLN_REASON_APPEND,
	PLN_REASON_REFUSED,
	PLN_REASON_MERGES,
};

/**
 * struct pln_query - what this module offers
 * @abi_version: out: PLN_ABI_VERSION
 * @flags: in: 0
 * @features: out: PLN_FEAT_*
 * @max_pinned: out: bytes of GPU memory that this user may register; all ones
 *	where there is no limit
 * @pinned: out: bytes that this user has registered
 * @page_size: out: addresses and sizes of PLN_IOC_REGISTER are multiples of it
 * @reserved32: 0
 * @reserved: 0
 */
struct pln_query {
	__u32 abi_version;
	__u32 flags;
	__u64 features;
	__u64 max_pinned;
	__u64 pinned;
	__u32 page_size;
	__u32 reserved32;
	__u64 reserved[3];
};

/**
 * struct pln_register - make GPU memory known
 * @address: in: device pointer of the calling process, a multiple of page_size
 * @size: in: bytes, a multiple of page_size, all in one allocation
 * @flags: in: 0
 * @handle: out: names the memory in this open file, never 0
 * @reason: out: an enum pln_reason
 * @reserved: 0
 *
 * The memory is pinned in BAR1 until it is unregistered, the file is closed, or
 * the memory is freed.  To free it is allowed at any time, and waits until IO
 * that is under way has ended; then the handle is good for nothing but to be
 * unregistered.
 *
 * EINVAL: not aligned, or no GPU memory of this process there.  ENOMEM: no
 * room in BAR1, or no memory.  ENOSPC: too many handles in this open file.
 * ENODEV: struct pages are to be made, and the GPU has no driver any more.
 * EINTR: a signal that kills came meanwhile.
 * EBUSY: struct pages are to be made, and somebody has the device locked for more
 * than 10 s.
 */
struct pln_register {
	__u64 address;
	__u64 size;
	__u32 flags;
	__u32 handle;
	__u32 reason;
	__u32 reserved;
};

/**
 * struct pln_unregister - forget GPU memory
 * @handle: in
 * @reserved: 0
 *
 * Waits until IO that is under way has ended.  When a process closes the file
 * that did not register the memory itself, the memory stays pinned until it is
 * freed or the process that registered it ends: a rule of NVIDIA's driver.  So
 * does unregistering it in such a process, which fails with EPERM.
 *
 * ENOENT: no such handle.
 */
struct pln_unregister {
	__u32 handle;
	__u32 reserved;
};

/**
 * struct pln_check - can this file be read into and written from GPU memory?
 * @fd: in: the file
 * @flags: in: 0
 * @offset_align: out: file offset and size must be multiples of it
 * @memory_align: out: the offset in the registered memory must be one of it
 * @reason: out: an enum pln_reason
 * @reserved: 0
 *
 * EOPNOTSUPP: it cannot, @reason says why.  If it can, the way between the
 * drive and the GPU is still to be found by the first IO.
 */
struct pln_check {
	__s32 fd;
	__u32 flags;
	__u32 offset_align;
	__u32 memory_align;
	__u32 reason;
	__u32 reserved;
};

#define PLN_IO_READ	0	/* from the file into GPU memory */
#define PLN_IO_WRITE	1

/**
 * struct pln_io - read or write a file
 * @op: in: PLN_IO_READ or PLN_IO_WRITE
 * @handle: in: registered memory
 * @fd: in: the file, which may be open with or without O_DIRECT
 * @flags: in: 0
 * @file_offset: in
 * @offset: in: in the registered memory
 * @size: in: bytes, not beyond the end of the registered memory
 * @done: out: bytes read or written
 * @reason: out: an enum pln_reason
 * @reserved32: 0
 * @reserved: 0
 *
 * As pread() and pwrite() do with O_DIRECT: the call returns when the data is
 * there, @done is less than @size at the end of the file, after a signal that
 * kills, or after an error that came when something had been done already, and
 * what these calls check is checked.  The position of the file does not change.
 *
 * The call fails with EINVAL where something is not aligned, with EIDRM when the
 * GPU memory was freed, with ENOENT when there is no such handle, with ERANGE when
 * the range is not in the registered memory, and else as the file system does.
 */
struct pln_io {
	__u32 op;
	__u32 handle;
	__s32 fd;
	__u32 flags;
	__u64 file_offset;
	__u64 offset;
	__u64 size;
	__u64 done;
	__u32 reason;
	__u32 reserved32;
	__u64 reserved[2];
};

/**
 * struct pln_uring - the command in an io_uring SQE
 * @io: address of a struct pln_io
 * @reserved: 0
 *
 * With opcode IORING_OP_URING_CMD, the descriptor of /dev/peerlane, and cmd_op
 * PLN_IOC_IO.  The struct pln_io is not written, and must stay as it is until the CQE
 * is there, which has in res the bytes or the negative errno, and in a ring with
 * 32-byte CQEs an enum pln_reason in big_cqe[0].  An IO does 16 MiB at most; what it
 * has left is to be asked for again.
 */
struct pln_uring {
	__u64 io;
	__u64 reserved;
};

#define PLN_IOC_MAGIC		0xd7	/* as peerlane_gpu, other numbers */

#define PLN_IOC_QUERY		_IOWR(PLN_IOC_MAGIC, 0x40, struct pln_query)
#define PLN_IOC_REGISTER	_IOWR(PLN_IOC_MAGIC, 0x41, struct pln_register)
#define PLN_IOC_UNREGISTER	_IOW(PLN_IOC_MAGIC, 0x42, struct pln_unregister)
#define PLN_IOC_CHECK		_IOWR(PLN_IOC_MAGIC, 0x43, struct pln_check)
#define PLN_IOC_IO		_IOWR(PLN_IOC_MAGIC, 0x44, struct pln_io)

#endif /* _UAPI_LINUX_PEERLANE_H */
