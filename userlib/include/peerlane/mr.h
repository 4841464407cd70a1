/* SPDX-License-Identifier: MIT */
/*
 * Registration of GPU memory with an RDMA device, by the best way that works,
 * with the reasons why the better ones did not.
 *
 * The ways, best first:
 *
 * dmabuf	The device maps a dma-buf of the memory (ibv_reg_dmabuf_mr).
 * plain	ibv_reg_mr() on the pointer: a peer-memory client of the kernel
 *		knows it, or it is GPU memory with pages that the CPU reaches
 *		coherently, which is what soft-RoCE needs.
 * staged	The device sees page-locked host memory instead, and
 *		pln_mr_to_gpu() and pln_mr_from_gpu() copy with the GPU's copy
 *		engine.  It works everywhere, and costs a copy.
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
 * pln_mr_reg - register memory by the best way that works
 * @pd: protection domain; its device is the one that ways are tried on
 * @addr: memory of one GPU, or of the host; any alignment, need not be the start
 *	of an allocation
 * @length: bytes, more than 0
 * @access: IBV_ACCESS_*, but neither IBV_ACCESS_ON_DEMAND nor
 *	IBV_ACCESS_ZERO_BASED
 * @flags: PLN_MR_*
 * @mr: out: for pln_mr_dereg(); untouched when the call fails
 *
 * The memory must not be freed before pln_mr_dereg(); register-gpu-memory in
 * Peerlane's documentation says what happens, on each way, if it is.  Staged,
 * as much host memory again is page-locked, with its content undefined.
 *
 * Returns 0; -EINVAL: an argument, or PEERLANE_MR_WAYS; -EFAULT: not all of the
 * range is memory of one GPU, or of the host; -ENOSYS: no libibverbs.so.1 is
 * loaded, or it lacks what is needed; -EPERM: @flags and PEERLANE_MR_WAYS leave no
 * way to try; -ENOMEM; -ENODEV, -EIO: libcuda could not say what the memory is;
 * else the error of the last way that was tried, as libibverbs or libcuda gave it:
 * -EOPNOTSUPP, -EFAULT, -EREMOTEIO, -ENOSPC, -ENOMEM, -EINVAL, -ENOSYS, ...
 * pln_mr_info(NULL, ...) in the same thread has the reasons.  Since 0.1.
 */
int pln_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access,
	       unsigned int flags, struct pln_mr **mr);

/**
 * pln_mr_dereg - end a registration
 * @mr: NULL does nothing
 *
 * Staged: data that pln_mr_to_gpu() has not copied is lost.
 *
 * Returns 0 and @mr is gone; or the error of ibv_dereg_mr(), -EBUSY while a
 * memory window is bound to it, and @mr stays as it was.  Where the device itself
 * has gone that error, -EIO, stays: libibverbs lets go of such regions only with
 * RDMAV_ALLOW_DISASSOC_DESTROY set in the environment.  Since 0.1.
 */
int pln_mr_dereg(struct pln_mr *mr);

/**
 * pln_mr_verbs - the memory region of libibverbs
 * @mr: a registration
 *
 * Its lkey, rkey and addr are for work requests; staged, addr is not the address
 * that was given to pln_mr_reg().  It belongs to @mr and must not be given to
 * ibv_dereg_mr() or ibv_rereg_mr().
 *
 * Returns NULL only for NULL.  Since 0.1.
 */
struct ibv_mr *pln_mr_verbs(struct pln_mr *mr);

/**
 * pln_mr_iova - the address of a byte for work requests, here and at the peer
 * @mr: a registration
 * @offset: bytes from the start of the registered memory
 *
 * Returns 0 for NULL or an offset beyond the end; the end itself is allowed.
 * Since 0.1.
 */
uint64_t pln_mr_iova(struct pln_mr *mr, size_t offset);

/**
 * pln_mr_info - how memory was registered, and why so
 * @mr: a registration; NULL: the last pln_mr_reg() of the calling thread, be it
 *	that it failed
 * @info: out; its size must be set
 *
 * Returns 0; -EINVAL: @info is NULL or its size less than that of version 0.1;
 * -ENOENT: @mr is NULL and the thread has not called pln_mr_reg().  Since 0.1.
 */
int pln_mr_info(struct pln_mr *mr, struct pln_mr_info *info);

/**
 * pln_mr_to_gpu - staged: bring what the RDMA device wrote to the GPU
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * To be called when the completion is there.  When it returns, the data is in
 * the GPU's memory and visible to work that the program then gives to the GPU.
 * Large ranges are copied in pieces on two streams of the library's own.
 * Several threads may copy at once; overlapping ranges are the program's affair.
 * Ways other than staged: checks its arguments and returns 0, there is nothing
 * to copy.
 *
 * Returns 0; -EINVAL: @mr is NULL; -ERANGE: the range is not inside the
 * registered memory; -EFAULT: the GPU memory has been freed, or its context
 * destroyed; -EIO, -ENODEV: the GPU failed, or has gone.  After an error, the
 * range in the GPU's memory is undefined.  Since 0.1.
 */
int pln_mr_to_gpu(struct pln_mr *mr, size_t offset, size_t length);

/**
 * pln_mr_from_gpu - staged: fetch from the GPU what the RDMA device will read
 * @mr: a registration
 * @offset: bytes from the start of the registered memory, any alignment
 * @length: bytes; 0 does nothing
 *
 * To be called before the work request is posted, or before the peer may read,
 * and after the GPU's work that produces the data has ended: as with a device
 * that reads the GPU's memory itself, streams of the program are not waited for.
 *
 * Returns as pln_mr_to_gpu().  Since 0.1.
 */
int pln_mr_from_gpu(struct pln_mr *mr, size_t offset, size_t length);

/**
 * pln_mr_way_name - what a way is called
 * @way: enum pln_mr_way
 *
 * Returns "none", "dmabuf", "plain" or "staged"; "?" for anything else.  The
 * text belongs to the library.  Since 0.1.
 */
const char *pln_mr_way_name(unsigned int way);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_MR_H */
