/* SPDX-License-Identifier: MIT */
/*
 * Registration of GPU memory with an RDMA device by the best way that works,
 * with the reasons why better ways failed.
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
 * Host memory can be registered, too, always with plain.  Managed memory is never
 * registered with plain: it moves away from the pages that a registration has pinned.
 *
 * The library tries each way on the device, and concludes nothing from names.
 * IBV_ACCESS_ON_DEMAND is never used: stock soft-RoCE accepts it for any memory
 * and then moves wrong bytes.
 *
 * The library is not linked with libibverbs or libcuda.  It uses the
 * libibverbs.so.1 and the libcuda.so.1 that the program has loaded; a program
 * without libcuda has no GPU pointers.
 *
 * PEERLANE_MR_WAYS in the environment, names of ways with commas in between,
 * forbids all others: "plain,staged".
 *
 * Threads: any function from any thread at any time, but one struct pln_mr must
 * not be used while pln_mr_dereg() runs on it.  After fork() registrations belong to the
 * parent only: the child can neither use nor deregister them, because libcuda and
 * libibverbs do not work there.
 *
 * Functions return 0 or a negative errno, unless they document another result.
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
 * struct pln_mr_attempt - the result of one way
 * @error: 0: the library uses this way, or it was not tried; else the negative
 *	errno of libibverbs, libcuda or this library
 * @reserved: 0
 * @words: why it was refused or not tried, and the remedy; empty for the way
 *	in use
 */
struct pln_mr_attempt {
	int32_t error;
	uint32_t reserved;
	char words[PLN_MR_WORDS_MAX];
};

/**
 * struct pln_mr_info - how memory was registered, and the reason
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
 * @reason: a line for people: the way in use or the failure, and why better
 *	ways failed
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
 * two require a GPU whose driver keeps such writes in order or can flush them:
 * CUDA 11.3 or later.
 *
 * With the first two, the allocations get the attribute
 * CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, and keep it: synchronous copies and fills
 * of them (cuMemcpy(3), cuMemsetD8(3) and similar calls) have always finished when
 * their call returns, so that none still runs while a device reads or writes. The
 * program must wait for its work in streams, and for all copies of memory that
 * cannot have the attribute, such as memory of a pool; such memory is still
 * registered.
 *
 * pln_mr_info() returns the way in use and the reason, also after a failure.
 *
 * @flags is 0, or made of:
 *
 * - PLN_MR_STRICT: Do not stage: fail.
 * - PLN_MR_ONLY_DMABUF, PLN_MR_ONLY_PLAIN, PLN_MR_ONLY_STAGED: Try this way
 *   and no other; at most one of them.
 *
 * Memory must stay allocated until pln_mr_dereg(); the notes describe what happens
 * otherwise.
 *
 * Return: 0 and *mr is the registration, or a negative errno and *mr is unchanged.
 *
 * If all ways failed, the error is that of the last one. The library itself
 * returns:
 *
 * -EINVAL: An argument is wrong, flags contradict each other, @access has
 *   IBV_ACCESS_ON_DEMAND or IBV_ACCESS_ZERO_BASED, or PEERLANE_MR_WAYS contains
 *   an unknown way.
 * -EFAULT: Not all of the range is memory of one GPU; or the kernel finds no
 *   pages behind the pointer.
 * -EPERM: The flags and PEERLANE_MR_WAYS leave no way to try.
 * -ENOSYS: The program has not loaded libibverbs.so.1, or it or libcuda.so.1
 *   is too old.
 * -EOPNOTSUPP: The device does not support dma-bufs, or the GPU's driver does not
 *   export them; for staging, the driver returns no id of the memory.
 * -ENOMEM: No memory, or more than RLIMIT_MEMLOCK allows to lock.
 * -ENODEV, -EIO: The GPU's driver could not identify the memory, or
 *   failed.
 * -ENOSPC: The memory must be in the GPU's BAR1, which has no space left.
 * -EREMOTEIO: The kernel allows no peer-to-peer DMA between the device and
 *   the GPU.
 *
 * Environment:
 *
 * - PEERLANE_MR_WAYS: Names of ways, separated by commas: only these are
 *   tried for GPU memory. Programs that change their privileges when they start
 *   ignore it.
 *
 * Notes:
 *
 * The library is not linked with libibverbs or libcuda. It uses those
 * that the program has loaded, and loads none.
 *
 * Managed memory (cuMemAllocManaged) is never registered plain: it moves
 * between host and GPU, away from the pages that a registration has pinned.
 *
 * After fork(2) registrations belong to the parent only: the child can neither
 * use nor deregister them.
 *
 * IBV_ACCESS_ON_DEMAND is refused, because stock soft-RoCE registers any memory
 * with it and then moves wrong bytes.
 *
 * Each call checks whether the device supports dma-bufs, by calling
 * ibv_reg_dmabuf_mr(3) with an invalid descriptor; this creates no export
 * and has no lasting effect.
 *
 * If the memory is freed first:
 *
 * - dmabuf: The GPU's driver revokes the memory, and work requests on the region
 *   fail; with a device that cannot unmap it, the memory
 *   stays allocated until pln_mr_dereg().
 * - plain: With a peer-memory client, as with dmabuf; a persistent client
 *   keeps the memory allocated instead. With coherent pages the device
 *   continues without an error: the data that it writes is lost, in memory that
 *   no other process gets before pln_mr_dereg().
 * - staged: The device continues in host memory, and copies fail with -EFAULT.
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
 * Ends a registration of pln_mr_reg(); NULL does nothing. Staged data that
 * pln_mr_to_gpu() has not copied is lost. Call it before the GPU memory
 * is freed and before its context is destroyed, and not while another function
 * uses @mr.
 *
 * Return: 0 and @mr is freed; or a negative errno and it is unchanged.
 *
 * The errors are those of ibv_dereg_mr(3):
 *
 * -EBUSY: A memory window is bound to the region.
 * -EIO: The device was removed. libibverbs then frees its regions only
 *   with RDMAV_ALLOW_DISASSOC_DESTROY set in the environment; without it, this
 *   error remains.
 *
 * Since 0.1.
 *
 * See also: pln_mr_reg()
 */
int pln_mr_dereg(struct pln_mr *mr);

/**
 * pln_mr_verbs - the libibverbs memory region of a registration
 * @mr: a registration
 *
 * The region has the lkey and rkey for work requests. Its addr is the device's
 * address of the memory. With staging it differs from the registered address;
 * pln_mr_iova() returns the right address in all cases.
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
 * Returns the address for a work request, at either end, of the byte @offset
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
 * pln_mr_info - how memory was registered, and the reason
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
 * its part of libibverbs, does not support them.
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
 * pln_mr_to_gpu - make the data that the RDMA device wrote available to the GPU
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * Call it after the completion of a transfer into @length bytes at offset
 * @offset of the registered memory. When it returns, the data is in GPU memory
 * for all work that the program submits to the GPU from then on.
 *
 * If the memory is staged, the function copies the bytes from the host memory of
 * the device. Otherwise the device has written them itself; the function makes
 * the GPU flush these writes if the GPU does not order them with the notification
 * (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING).
 *
 * More than 4 MiB are copied in pieces, on two streams of the library,
 * so that two copy engines share them. Several threads may copy at the same time.
 * A program need not query the way.
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
 * pln_mr_from_gpu - make GPU memory available to the RDMA device
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * If the memory is staged, copies @length bytes at offset @offset of the
 * registered memory from the GPU to the host memory of the device. Call it
 * before the work request is posted, or before the peer may read, and after the
 * GPU work that produces the data has ended: the function does not wait for
 * streams of the program, just as a device that reads GPU memory itself.
 *
 * More than 4 MiB are copied in pieces, on two streams of the library,
 * so that two copy engines share them. Several threads may copy at the same time.
 * For registrations that are not staged, the function checks the arguments and
 * returns 0, so a program need not query the way.
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
 * pln_mr_way_name - the name of a way of registration
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
