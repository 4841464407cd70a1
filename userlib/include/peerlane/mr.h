/* SPDX-License-Identifier: MIT */
/*
 * Registration of GPU memory with an RDMA device, by the best way that works,
 * with the reasons why the better ones did not.
 *
 * The ways, best first:
 *
 * - dmabuf: The device maps a dma-buf of the memory (ibv_reg_dmabuf_mr(3)).
 * - plain: ibv_reg_mr(3) on the pointer: a peer-memory client of the kernel
 *   knows it, or it is GPU memory with pages that the CPU reaches coherently,
 *   which is what soft-RoCE needs.
 * - staged: The device sees page-locked host memory instead, and pln_mr_to_gpu()
 *   and pln_mr_from_gpu() copy with the GPU's copy engine. It works
 *   everywhere, and costs a copy.
 *
 * Host memory, too, can be registered: that is always plain.  Managed memory never
 * is: it moves away from the pages that a registration has pinned.
 *
 * Each way is tried on the device at hand; nothing is concluded from names.
 * IBV_ACCESS_ON_DEMAND is never used: stock soft-RoCE takes it for any memory
 * and then moves wrong bytes.
 *
 * The library is linked with neither libibverbs nor libcuda.  It uses the
 * libibverbs.so.1 and the libcuda.so.1 that the program has loaded; a program
 * without libcuda has no GPU pointers.
 *
 * PEERLANE_MR_WAYS in the environment, names of ways with commas in between,
 * forbids all others: "plain,staged".
 *
 * Threads: any function from any thread at any time, but one struct pln_mr must
 * not be used while pln_mr_dereg() runs on it.  After fork() registrations are the
 * parent's alone: the child can neither use nor deregister them, as libcuda and
 * libibverbs are of no use there.
 *
 * Functions return 0 or a negative errno, but for those that say otherwise.
 */
#ifndef PEERLANE_MR_H
#define PEERLANE_MR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_mr;
struct ibv_pd;
struct pln_mr;

enum pln_mr_way {
	PLN_MR_NONE = 0,	/* in struct pln_mr_info: nothing worked */
	PLN_MR_DMABUF = 1,
	PLN_MR_PLAIN = 2,
	PLN_MR_STAGED = 3,
};
#define PLN_MR_WAYS	4	/* one more than the greatest */

/* @flags of pln_mr_reg() */
#define PLN_MR_STRICT		(1u << 0)	/* do not stage: fail */
#define PLN_MR_ONLY_DMABUF	(1u << 1)	/* at most one of these */
#define PLN_MR_ONLY_PLAIN	(1u << 2)
#define PLN_MR_ONLY_STAGED	(1u << 3)

#define PLN_MR_REASON_MAX	1024
#define PLN_MR_WORDS_MAX	256

/**
 * struct pln_mr_attempt - what became of one way
 * @error: 0: it is the one that was taken, or it was not tried; else a negative
 *	errno, as libibverbs, libcuda or this library gave it
 * @reserved: 0
 * @words: why it was refused or not tried, and what to do about it; empty for
 *	the one that was taken
 */
struct pln_mr_attempt {
	int32_t error;
	uint32_t reserved;
	char words[PLN_MR_WORDS_MAX];
};

/**
 * struct pln_mr_info - how memory was registered, and why so
 * @size: in: sizeof(struct pln_mr_info); a library that knows less or more than
 *	the program fills in what both know
 * @way: enum pln_mr_way; PLN_MR_NONE: the registration failed
 * @gpu: CUDA ordinal of the GPU that the memory belongs to; -1: host memory,
 *	or memory that is unknown
 * @error: what pln_mr_reg() returned
 * @addr: of the memory, as given to pln_mr_reg()
 * @length: likewise, bytes
 * @to_gpu: bytes that pln_mr_to_gpu() has copied
 * @from_gpu: bytes that pln_mr_from_gpu() has copied
 * @copies_to_gpu: how many pieces that took
 * @copies_from_gpu: likewise
 * @reserved: 0
 * @reason: all of it in one line for people: the way taken or the failure, and
 *	why no better way was
 * @tried: by enum pln_mr_way; the one of PLN_MR_NONE is about the arguments
 */
struct pln_mr_info {
	uint32_t size;
	uint32_t way;
	int32_t gpu;
	int32_t error;
	uint64_t addr;
	uint64_t length;
	uint64_t to_gpu;
	uint64_t from_gpu;
	uint64_t copies_to_gpu;
	uint64_t copies_from_gpu;
	uint64_t reserved[4];
	char reason[PLN_MR_REASON_MAX];
	struct pln_mr_attempt tried[PLN_MR_WAYS];
};

/**
 * pln_mr_reg - register GPU memory with an RDMA device by the best way that works
 * @pd: protection domain; its device is the one that ways are tried on
 * @addr: memory of one GPU, or of the host; any alignment, need not be the start
 *	of an allocation
 * @length: bytes, more than 0
 * @access: IBV_ACCESS_*, but neither IBV_ACCESS_ON_DEMAND nor
 *	IBV_ACCESS_ZERO_BASED
 * @flags: PLN_MR_*
 * @mr: out: for pln_mr_dereg(); untouched when the call fails
 *
 * Registers @length bytes at @addr with the device of the protection domain
 * @pd. The memory is one GPU's (of any libcuda.so.1 that the program uses; any
 * alignment, need not be the start of an allocation), or the host's. @access
 * is made of IBV_ACCESS_* of ibv_reg_mr(3). The ways are tried on the device
 * at hand, best first:
 *
 * - dmabuf: The device maps a dma-buf of the memory, ibv_reg_dmabuf_mr(3).
 *   Whole pages are exported, within the allocation; the region is exactly
 *   what was asked for, and its addresses are the memory's.
 * - plain: ibv_reg_mr(3) on the pointer: a peer-memory client of the kernel
 *   knows it (nvidia-peermem), or the memory has pages that
 *   the CPU reaches coherently, as soft-RoCE needs. Host memory is always
 *   registered so.
 * - staged: The device sees page-locked host memory of the same size, with
 *   undefined content, and pln_mr_to_gpu() and pln_mr_from_gpu() copy.
 *
 * With IBV_ACCESS_LOCAL_WRITE, which every write of the device needs, the first
 * two are for GPUs whose driver keeps such writes in order or can flush them:
 * CUDA 11.3 or later.
 *
 * With the first two, the allocations get the attribute
 * CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, and keep it: synchronous copies and fills
 * of them (cuMemcpy(3), cuMemsetD8(3) and the like) have always finished when
 * their call returns, so that none still runs while a device reads or writes. The
 * program waits itself for what it has put into a stream, and for all copies of
 * memory that cannot have the attribute, as of a pool; that is registered all the
 * same.
 *
 * What was taken and why nothing better, is told by pln_mr_info(), also after
 * a failure.
 *
 * @flags is 0, or made of:
 *
 * - PLN_MR_STRICT: Do not stage: fail.
 * - PLN_MR_ONLY_DMABUF, PLN_MR_ONLY_PLAIN, PLN_MR_ONLY_STAGED: Try this way
 *   and no other; at most one of them.
 *
 * Memory must stay allocated until pln_mr_dereg(); the notes say what happens if
 * it does not.
 *
 * Return: 0 and *mr is the registration, or a negative errno and *mr is as it was.
 *
 * When ways have failed, the error of the last one that was tried. Of the
 * library itself:
 *
 * -EINVAL: An argument is wrong, flags contradict each other, @access has
 *   IBV_ACCESS_ON_DEMAND or IBV_ACCESS_ZERO_BASED, or PEERLANE_MR_WAYS names a
 *   way that there is not.
 * -EFAULT: Not all of the range is memory of one GPU; or the kernel finds no
 *   pages behind the pointer.
 * -EPERM: The flags and PEERLANE_MR_WAYS leave no way to try.
 * -ENOSYS: The program has not loaded libibverbs.so.1, or it or libcuda.so.1
 *   is too old.
 * -EOPNOTSUPP: The device cannot take dma-bufs, or the GPU's driver exports
 *   none; to stage, the driver gives the memory no id.
 * -ENOMEM: No memory, or more than RLIMIT_MEMLOCK allows to lock.
 * -ENODEV, -EIO: The GPU's driver could not say what the memory is, or
 *   failed.
 * -ENOSPC: The memory must be in the GPU's BAR1, which has no room left.
 * -EREMOTEIO: The kernel allows no peer-to-peer DMA between the device and
 *   the GPU.
 *
 * Environment:
 *
 * - PEERLANE_MR_WAYS: Names of ways with commas in between: no others are
 *   tried for GPU memory. Not heeded in programs that change their privileges
 *   when they start.
 *
 * Notes:
 *
 * The library is linked with neither libibverbs nor libcuda. It uses those
 * that the program has loaded, and loads none.
 *
 * Managed memory (cuMemAllocManaged) is never registered plain: it moves
 * between host and GPU, away from the pages that a registration has pinned.
 *
 * After fork(2) registrations are the parent's alone: the child can neither
 * use nor deregister them.
 *
 * IBV_ACCESS_ON_DEMAND is refused, as stock soft-RoCE registers any memory
 * with it and then moves wrong bytes.
 *
 * A device is asked anew at each call whether it takes dma-bufs, by
 * ibv_reg_dmabuf_mr(3) with a descriptor that is none; that makes no export
 * and is not an event that anything remembers.
 *
 * If the memory is freed first:
 *
 * - dmabuf: The GPU's driver takes the memory back from the device, and work
 *   requests on the region fail; with a device that cannot let go, the memory
 *   stays allocated until pln_mr_dereg().
 * - plain: With a peer-memory client, as with dmabuf; one of the persistent
 *   kind keeps the memory allocated instead. With coherent pages the device
 *   goes on without an error: what is written is lost, in memory that belongs
 *   to nobody else until pln_mr_dereg() gives it back.
 * - staged: The device goes on in host memory, and copies fail with -EFAULT.
 *
 * Example:
 *
 *	struct pln_mr_info info = { .size = sizeof(info) };
 *	struct pln_mr *mr;
 *	int r = pln_mr_reg(pd, gpu_pointer, n, IBV_ACCESS_LOCAL_WRITE |
 *	                   IBV_ACCESS_REMOTE_WRITE, 0, &mr);
 *
 *	pln_mr_info(r ? NULL : mr, &info);
 *	puts(info.reason);
 *
 * Since 0.1.
 *
 * See also: pln_mr_info(), pln_mr_to_gpu(), pln_mr_iova(), libpeerlane-mr(7)
 */
int pln_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access,
	       unsigned int flags, struct pln_mr **mr);

/**
 * pln_mr_dereg - end a registration
 * @mr: NULL does nothing
 *
 * Ends a registration of pln_mr_reg(); NULL does nothing. Staged, what
 * pln_mr_to_gpu() has not copied is lost. To be called before the GPU memory
 * is freed and before its context is destroyed, and not while another function
 * works on @mr.
 *
 * Return: 0 and @mr is gone; or a negative errno and it is as it was.
 *
 * Those of ibv_dereg_mr(3):
 *
 * -EBUSY: A memory window is bound to the region.
 * -EIO: The device has gone. libibverbs lets go of its regions then only
 *   with RDMAV_ALLOW_DISASSOC_DESTROY set in the environment; until then, this
 *   error stays.
 *
 * Since 0.1.
 *
 * See also: pln_mr_reg()
 */
int pln_mr_dereg(struct pln_mr *mr);

/**
 * pln_mr_verbs - the memory region of libibverbs behind a registration
 * @mr: a registration
 *
 * The region has the lkey and rkey for work requests. Its addr is where the
 * device sees the memory: staged, that is not the address that was registered;
 * pln_mr_iova() is right in any case.
 *
 * The region belongs to @mr and must not be given to ibv_dereg_mr(3) or
 * ibv_rereg_mr(3).
 *
 * Return: The region; NULL for NULL.
 *
 * Since 0.1.
 *
 * See also: pln_mr_reg(), pln_mr_iova()
 */
struct ibv_mr *pln_mr_verbs(struct pln_mr *mr);

/**
 * pln_mr_iova - the address of a byte for work requests
 * @mr: a registration
 * @offset: bytes from the start of the registered memory
 *
 * What to put into a work request, here or at the peer, for the byte @offset
 * of the registered memory.
 *
 * Return: The address; 0 for NULL, or for an offset beyond the end. The end itself has
 * an address.
 *
 * Since 0.1.
 *
 * See also: pln_mr_reg(), pln_mr_verbs()
 */
uint64_t pln_mr_iova(struct pln_mr *mr, size_t offset);

/**
 * pln_mr_info - how memory was registered, and why so
 * @mr: a registration; NULL: the last pln_mr_reg() of the calling thread, even
 *	if it failed
 * @info: out; its size must be set
 *
 * Fills @info for a registration; or, when @mr is NULL, for the last
 * pln_mr_reg() of the calling thread, which may have failed. The caller sets
 * @info->size to sizeof(struct pln_mr_info).
 *
 * The reason is a line like: plain: rxe0 took the pointer to memory of GPU 0;
 * dmabuf refused: EOPNOTSUPP: rxe0 cannot take dma-bufs: its kernel driver, or
 * its part of libibverbs, does not offer it.
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @info is NULL, or its size is less than that of version 0.1.
 * -ENOENT: @mr is NULL, and the thread has not called pln_mr_reg().
 *
 * Since 0.1.
 *
 * See also: pln_mr_reg(), pln_mr_way_name()
 */
int pln_mr_info(struct pln_mr *mr, struct pln_mr_info *info);

/**
 * pln_mr_to_gpu - bring what the RDMA device wrote to the GPU
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * To be called when the completion of a transfer into @length bytes from the
 * byte @offset of the registered memory on is there. When it returns, the data
 * is in GPU memory, for all work that is then given to the GPU.
 *
 * Staged, the bytes are copied from the host memory that the device sees. Else
 * the device has written them itself: the GPU is told to take in all such
 * writes where it does not keep them in order with what tells of them
 * (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING).
 *
 * More than 4 MiB are copied in pieces, on two streams of the library's own,
 * so that two copy engines share them. Several threads may copy at once.
 * A program need not ask for the way.
 *
 * Return: 0, or a negative errno; then the content of the range is undefined, but
 * nothing is being copied any more.
 *
 * -EINVAL: @mr is NULL.
 * -ERANGE: The range is not inside the registered memory.
 * -EFAULT: The GPU memory was freed, even if its addresses belong to another
 *   allocation by now; or its context was destroyed.
 * -EIO, -ENODEV: The GPU failed, or has gone.
 *
 * Since 0.1.
 *
 * See also: pln_mr_from_gpu(), pln_mr_reg(), pln_mr_info()
 */
int pln_mr_to_gpu(struct pln_mr *mr, size_t offset, size_t length);

/**
 * pln_mr_from_gpu - staged: fetch from the GPU what the RDMA device will read
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * Copies @length bytes from the byte @offset of the registered memory on,
 * between the host memory that the device sees and the GPU. To be called
 * before the work request is posted, or before the peer may read, and when the
 * work of the GPU that makes the data has ended: as with a device that reads
 * GPU memory itself, no stream of the program is waited for.
 *
 * More than 4 MiB are copied in pieces, on two streams of the library's own,
 * so that two copy engines share them. Several threads may copy at once.
 * Registrations that are not staged have nothing to copy: the arguments are
 * checked and 0 is returned, so a program need not ask for the way.
 *
 * Return: 0, or a negative errno; then the content of the range is undefined, but
 * nothing is being copied any more.
 *
 * -EINVAL: @mr is NULL.
 * -ERANGE: The range is not inside the registered memory.
 * -EFAULT: The GPU memory was freed, even if its addresses belong to another
 *   allocation by now; or its context was destroyed.
 * -EIO, -ENODEV: The GPU failed, or has gone.
 *
 * Since 0.1.
 *
 * See also: pln_mr_to_gpu(), pln_mr_reg(), pln_mr_info()
 */
int pln_mr_from_gpu(struct pln_mr *mr, size_t offset, size_t length);

/**
 * pln_mr_way_name - what a way of registration is called
 * @way: enum pln_mr_way
 *
 * Names a value of enum pln_mr_way.
 *
 * Return: "none", "dmabuf", "plain" or "staged"; "?" for any other number. The text
 * belongs to the library.
 *
 * Since 0.1.
 *
 * See also: pln_mr_info()
 */
const char *pln_mr_way_name(unsigned int way);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_MR_H */
