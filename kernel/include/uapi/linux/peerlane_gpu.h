/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Peerlane emulated GPU: user interface of /dev/peerlane-gpuN.
 *
 * Rules: fixed-width fields only, the same layout for 32-bit and 64-bit
 * programs, pointers travel as __u64.  Every reserved field and every unknown
 * flag must be 0, or the call fails with EINVAL.  Memory and jobs belong to
 * the open file and end with it, whatever ended the process.
 *
 * EIO: the GPU does not work, or the memory was lost in a reset.  ENODEV: the
 * GPU has gone, for good as far as this open file is concerned; jobs that have
 * ended can still be asked for.
 */
#ifndef _UAPI_LINUX_PEERLANE_GPU_H
#define _UAPI_LINUX_PEERLANE_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PLN_GPU_ABI_VERSION	1

/* Features in struct pln_gpu_query */
#define PLN_GPU_FEAT_COHERENT	(1ull << 0)	/* the CPU reaches memory */
#define PLN_GPU_FEAT_P2PDMA	(1ull << 1)	/* BAR1 has P2PDMA pages */
#define PLN_GPU_FEAT_DMABUF	(1ull << 2)	/* PLN_GPU_IOC_EXPORT works */
#define PLN_GPU_FEAT_DEVPTR	(1ull << 3)	/* mmap() makes device pointers */
#define PLN_GPU_FEAT_PARTS	(1ull << 4)	/* PLN_GPU_IOC_EXPORT_PARTS works */
/* Writes of peers wait in the GPU until a job begins: see struct pln_gpu_submit */
#define PLN_GPU_FEAT_LATE_WRITES	(1ull << 5)
#define PLN_GPU_FEAT_TIME	(1ull << 6)	/* the GPU tells time */

/**
 * struct pln_gpu_query - what this GPU and this driver offer
 * @abi_version: out: PLN_GPU_ABI_VERSION
 * @flags: in: 0
 * @features: out: PLN_GPU_FEAT_*
 * @vram_size: out: bytes
 * @vram_free: out: bytes not allocated now
 * @bar1_size: out: bytes of the peer-to-peer aperture
 * @bar1_free: out: bytes of it not mapped now
 * @coherent_size: out: bytes of the coherent window, 0 without one
 * @reset_count: out: resets that lost memory since the driver was bound
 * @page_size: out: allocation granularity, bytes
 * @num_queues: out: engine queues for PLN_GPU_IOC_SUBMIT
 * @pci_domain: out
 * @pci_bus: out
 * @pci_devfn: out
 * @numa_node: out: -1 when not known
 * @uuid: out
 * @time_ns: out: the GPU's clock, see struct pln_gpu_wait; 0 without PLN_GPU_FEAT_TIME
 * @reserved: 0
 */
struct pln_gpu_query {
	__u32 abi_version;
	__u32 flags;
	__u64 features;
	__u64 vram_size;
	__u64 vram_free;
	__u64 bar1_size;
	__u64 bar1_free;
	__u64 coherent_size;
	__u64 reset_count;
	__u32 page_size;
	__u32 num_queues;
	__u32 pci_domain;
	__u32 pci_bus;
	__u32 pci_devfn;
	__s32 numa_node;
	__u8 uuid[16];
	__u64 time_ns;
	__u64 reserved[3];
};

/**
 * struct pln_gpu_alloc - allocate GPU memory
 * @size: in: bytes, more than 0; rounded up to the page size, and told back
 * @flags: in: 0
 * @handle: out: names the memory in this open file, never 0
 * @mmap_offset: out: offset for mmap() of the device file
 * @reserved: 0
 *
 * The memory is zeroed.  ENOMEM: no room in VRAM.  ETIMEDOUT: the engine did not
 * zero it in the time that the driver gives a queue.
 *
 * Where a process maps memory is the memory's device pointer there: what other
 * drivers look up when they are given one (nvidia_p2p_get_pages()).  Mappings
 * are MAP_SHARED.  Without PLN_GPU_FEAT_COHERENT they must be PROT_NONE, which
 * cannot be changed later and is not inherited by a forked child; else ENODEV.
 */
struct pln_gpu_alloc {
	__u64 size;
	__u32 flags;
	__u32 handle;
	__u64 mmap_offset;
	__u64 reserved;
};

/**
 * struct pln_gpu_free - free GPU memory
 * @handle: in
 * @reserved: 0
 *
 * User mappings are revoked (SIGBUS on access), dma-bufs are revoked, and the
 * VRAM is given to somebody else only when no DMA can reach it any more.
 * ENOENT: no such handle.
 */
struct pln_gpu_free {
	__u32 handle;
	__u32 reserved;
};

/* Other processes may import the dma-buf: get a handle of the allocation */
#define PLN_GPU_EXPORT_F_IMPORT	(1u << 0)

/**
 * struct pln_gpu_export - export GPU memory as a dma-buf
 * @handle: in
 * @flags: in: O_CLOEXEC, PLN_GPU_EXPORT_F_IMPORT
 * @offset: in: bytes from the start of the allocation, multiple of the CPU's page
 * @size: in: bytes, multiple of the CPU's page
 * @fd: out: the dma-buf; mmap() of it maps BAR1
 * @reserved: 0
 *
 * BAR1 space, in units of page_size, is taken when the dma-buf is first mapped, by a program or for a
 * device (ENOSPC: none left), and given back with the last mapping.
 *
 * A dma-buf gives access to its range and no more.  PLN_GPU_IOC_IMPORT gives
 * access to the whole allocation and keeps it alive, so it takes only a dma-buf
 * that was exported with PLN_GPU_EXPORT_F_IMPORT.  That flag needs the whole
 * allocation: offset 0 and all of its size, else EINVAL.
 */
struct pln_gpu_export {
	__u32 handle;
	__u32 flags;
	__u64 offset;
	__u64 size;
	__s32 fd;
	__u32 reserved;
};

#define PLN_GPU_MAX_PARTS	256

/**
 * struct pln_gpu_part - a part of a dma-buf
 * @handle: GPU memory
 * @reserved: 0
 * @offset: bytes from the start of the allocation, multiple of the CPU's page
 * @size: bytes, likewise
 *
 * Where two parts meet, both are at a multiple of page_size in their allocations.
 */
struct pln_gpu_part {
	__u32 handle;
	__u32 reserved;
	__u64 offset;
	__u64 size;
};

/**
 * struct pln_gpu_export_parts - export parts of GPU memory as one dma-buf
 * @parts: in: address of an array of struct pln_gpu_part: what the dma-buf
 *	shows, in this order; the same memory may come more than once
 * @nr_parts: in: 1 to PLN_GPU_MAX_PARTS
 * @flags: in: 0 or O_CLOEXEC
 * @fd: out: the dma-buf
 * @reserved: 0
 * @size: out: bytes of all parts
 *
 * As of PLN_GPU_IOC_EXPORT.  All of it is revoked when one of the allocations
 * is freed.  PLN_GPU_IOC_IMPORT does not take it (EACCES).
 */
struct pln_gpu_export_parts {
	__u64 parts;
	__u32 nr_parts;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
	__u64 size;
};

/**
 * struct pln_gpu_import - name memory that an open file has exported
 * @fd: in: dma-buf of this GPU, exported with PLN_GPU_EXPORT_F_IMPORT
 * @flags: in: 0
 * @handle: out: names the memory in this open file too
 * @reserved: 0
 * @offset: out: 0
 * @size: out: bytes of the memory
 * @mmap_offset: out: as of PLN_GPU_IOC_ALLOC
 *
 * The memory is then freed with its last handle, in whatever file.  EBADF: no
 * descriptor; EINVAL: no dma-buf of this driver; EACCES: exported without
 * PLN_GPU_EXPORT_F_IMPORT; EXDEV: memory of another GPU, or this file was
 * opened through another device node; ENOENT: freed.
 */
struct pln_gpu_import {
	__s32 fd;
	__u32 flags;
	__u32 handle;
	__u32 reserved;
	__u64 offset;
	__u64 size;
	__u64 mmap_offset;
};

/* Engine operations */
#define PLN_GPU_OP_NOP		0
#define PLN_GPU_OP_COPY		1	/* dst = src */
#define PLN_GPU_OP_FILL		2	/* dst = imm, arg: width 1, 2, 4, 8 */
#define PLN_GPU_OP_CRC32C	3	/* of src, imm: CRC so far; GPU memory */
#define PLN_GPU_OP_COMPARE	4	/* src with dst, both GPU memory */
#define PLN_GPU_OP_ADD		5	/* dst += src, both GPU memory */

#define PLN_GPU_ADD_INT32	1	/* arg of PLN_GPU_OP_ADD */
#define PLN_GPU_ADD_FLOAT32	2

#define PLN_GPU_OP_F_SRC_USER	(1u << 0)	/* src is a user address */
#define PLN_GPU_OP_F_DST_USER	(1u << 1)	/* dst is a user address */

#define PLN_GPU_COMPARE_EQUAL	(~0ull)

/**
 * struct pln_gpu_op - one engine operation
 * @opcode: PLN_GPU_OP_*
 * @flags: PLN_GPU_OP_F_*; user addresses are for COPY only, on one side
 * @arg: as the operation says, else 0
 * @src_handle: GPU memory, 0 when src is a user address or unused
 * @dst_handle: likewise
 * @reserved: 0
 * @src: offset in the memory of src_handle, or user address
 * @dst: offset in the memory of dst_handle, or user address
 * @len: bytes
 * @imm: as the operation says, else 0
 */
struct pln_gpu_op {
	__u32 opcode;
	__u32 flags;
	__u32 arg;
	__u32 src_handle;
	__u32 dst_handle;
	__u32 reserved;
	__u64 src;
	__u64 dst;
	__u64 len;
	__u64 imm;
};

#define PLN_GPU_MAX_OPS		256

/**
 * struct pln_gpu_submit - give operations to an engine queue
 * @ops: in: address of an array of struct pln_gpu_op
 * @nr_ops: in: 1 to PLN_GPU_MAX_OPS
 * @queue: in: below num_queues; operations of one queue run in order
 * @flags: in: 0
 * @reserved: 0
 * @job: out: names the job in this open file, for PLN_GPU_IOC_WAIT
 *
 * Returns when the work is queued.  Operations of one queue run in order, but
 * jobs may end out of order: wait for each whose memory is to be written back.
 * User memory stays pinned until the job ends.  EFAULT: user memory; EINVAL: a
 * bad operation (nothing was queued); EAGAIN: too many jobs not waited for, or no
 * job ended in time that would have made room for the user memory, or, without
 * CAP_IPC_LOCK, file systems have more than RLIMIT_MEMLOCK of the user's pages
 * locked which jobs wrote to; ENOMEM: more user memory than one file may have
 * pinned, or, without CAP_IPC_LOCK, than RLIMIT_MEMLOCK leaves the process beside
 * what other drivers have pinned for it.
 *
 * With PLN_GPU_FEAT_LATE_WRITES: what peers had written to GPU memory before the call is
 * there when an operation begins.  So who waits for a job of one PLN_GPU_OP_NOP has
 * flushed these writes, for the CPU too.
 */
struct pln_gpu_submit {
	__u64 ops;
	__u32 nr_ops;
	__u32 queue;
	__u32 flags;
	__u32 reserved;
	__u64 job;
};

/* With PLN_GPU_FEAT_TIME: the time of the job's end is wanted, too */
#define PLN_GPU_WAIT_F_TIME	(1u << 0)

/**
 * struct pln_gpu_wait - wait for a job, and forget it
 * @job: in
 * @timeout_ns: in: at most 600 s; 0 asks without waiting
 * @time_ns: out, with PLN_GPU_WAIT_F_TIME: when the engine ended the job; 0 for one that
 *	failed or was given up
 * @result: out: of the last operation with a result (CRC, first difference)
 * @status: out: 0, or a negative errno that says how the job failed
 * @error: out: the device's error code (PLN_ERR_* of its specification) or 0
 * @flags: in: PLN_GPU_WAIT_F_TIME or 0
 * @reserved: 0
 *
 * The GPU's clock counts nanoseconds since the machine was started.  All GPUs of a
 * machine have the same one; it runs as fast as CLOCK_MONOTONIC, and no reset changes it.
 *
 * ETIMEDOUT: not finished, the job stays.  EINTR: a signal, or work that io_uring
 * has for this thread, likewise.  EFAULT:
 * its end could not be told, likewise.
 * ENOENT: no such job.  When the call returns 0 the job has ended, well or
 * badly, as @status says, and its number is not valid any more.  What it wrote to
 * the program's memory is in dirty pages then.  While a file system has one of them
 * locked it does not end, and up to 0.1 s after the unlock; jobs behind it may.
 */
struct pln_gpu_wait {
	__u64 job;
	union {
		__u64 timeout_ns;
		__u64 time_ns;
	};
	__u64 result;
	__s32 status;
	__u32 error;
	__u32 flags;
	__u32 reserved;
};

#define PLN_GPU_IOC_MAGIC	0xd7

#define PLN_GPU_IOC_QUERY	_IOWR(PLN_GPU_IOC_MAGIC, 0, struct pln_gpu_query)
#define PLN_GPU_IOC_ALLOC	_IOWR(PLN_GPU_IOC_MAGIC, 1, struct pln_gpu_alloc)
#define PLN_GPU_IOC_FREE	_IOW(PLN_GPU_IOC_MAGIC, 2, struct pln_gpu_free)
#define PLN_GPU_IOC_EXPORT	_IOWR(PLN_GPU_IOC_MAGIC, 3, struct pln_gpu_export)
#define PLN_GPU_IOC_SUBMIT	_IOWR(PLN_GPU_IOC_MAGIC, 4, struct pln_gpu_submit)
#define PLN_GPU_IOC_WAIT	_IOWR(PLN_GPU_IOC_MAGIC, 5, struct pln_gpu_wait)
#define PLN_GPU_IOC_IMPORT	_IOWR(PLN_GPU_IOC_MAGIC, 6, struct pln_gpu_import)
#define PLN_GPU_IOC_EXPORT_PARTS \
	_IOWR(PLN_GPU_IOC_MAGIC, 7, struct pln_gpu_export_parts)

#endif /* _UAPI_LINUX_PEERLANE_GPU_H */
