/* SPDX-License-Identifier: MIT */
/*
 * Registration of memory with RDMA devices: what mr*.c share, the library and
 * the shim alike.
 */
#ifndef PEERLANE_MR_INSIDE_H
#define PEERLANE_MR_INSIDE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../cuda/cuda.h"
#include "peerlane/mr.h"

/* verbs.h has macros of these names */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* ---- what a link asks of a registration: mr.c ---- */

uint32_t mr_way(const struct pln_mr *mr);	/* enum pln_mr_way */
uint64_t mr_length(const struct pln_mr *mr);

/* ---- other libraries' functions: mr_libs.c ---- */

/* member, symbol, version of the symbol, needed */
#define MR_VERBS_FUNCTIONS(X)						\
	X(reg_mr, ibv_reg_mr, "IBVERBS_1.1", true)			\
	X(reg_mr_iova, ibv_reg_mr_iova, "IBVERBS_1.7", false)		\
	X(reg_mr_iova2, ibv_reg_mr_iova2, "IBVERBS_1.8", false)		\
	X(reg_dmabuf_mr, ibv_reg_dmabuf_mr, "IBVERBS_1.12", false)	\
	X(dereg_mr, ibv_dereg_mr, "IBVERBS_1.1", true)

struct mr_verbs {
#define MR_X(name, symbol, version, needed) __typeof__(symbol) *name;
	MR_VERBS_FUNCTIONS(MR_X)
#undef MR_X
};

/* member, symbol, needed to know what a pointer is */
#define MR_CUDA_FUNCTIONS(X)						\
	X(pointer_get, cuPointerGetAttribute, true)			\
	X(ctx_push, cuCtxPushCurrent_v2, true)				\
	X(ctx_pop, cuCtxPopCurrent_v2, true)				\
	X(device_get, cuDeviceGet, true)				\
	X(device_attribute, cuDeviceGetAttribute, true)			\
	X(primary_retain, cuDevicePrimaryCtxRetain, true)		\
	X(primary_release, cuDevicePrimaryCtxRelease_v2, true)		\
	X(error_name, cuGetErrorName, false)				\
	X(pointer_set, cuPointerSetAttribute, false)			\
	X(range_handle, cuMemGetHandleForAddressRange, false)		\
	X(host_alloc, cuMemHostAlloc, false)				\
	X(host_free, cuMemFreeHost, false)				\
	X(copy_to_gpu, cuMemcpyHtoDAsync_v2, false)			\
	X(copy_from_gpu, cuMemcpyDtoHAsync_v2, false)			\
	X(stream_create, cuStreamCreate, false)				\
	X(stream_destroy, cuStreamDestroy_v2, false)			\
	X(stream_wait, cuStreamSynchronize, false)			\
	X(flush_writes, cuFlushGPUDirectRDMAWrites, false)

struct mr_cuda {
#define MR_X(name, symbol, needed) __typeof__(symbol) *name;
	MR_CUDA_FUNCTIONS(MR_X)
#undef MR_X
};

/*
 * Both live as long as the process.  NULL: the program has not loaded the
 * library (asked anew the next time), or it lacks what is needed.
 */
const struct mr_verbs *mr_verbs(void);
const struct mr_cuda *mr_cuda(void);

/* ---- what a range of addresses is: mr_memory.c ---- */

/* How what devices write into the memory gets to who reads it */
enum mr_writes {
	MR_WRITES_SEEN,		/* in order, by the GPU that has it */
	MR_WRITES_FLUSH,	/* when it is told to */
	MR_WRITES_UNSURE,	/* there is no telling */
};

struct mr_memory {
	const struct mr_cuda *cu;	/* NULL: of the host */
	uint64_t addr;
	uint64_t length;
	uint64_t base;		/* of the allocation that addr is in */
	uint64_t identity;	/* another one: freed and allocated again; 0: unknown */
	int gpu;		/* -1: of the host */
	CUdevice dev;
	CUcontext ctx;
	bool primary;		/* ctx is, and is retained */
	bool managed;		/* moves between host and GPU by itself */
	enum mr_writes writes;
};

/*
 * 0; or -errno with @why filled.  After 0, mr_memory_put(); memory of the host
 * is what no GPU knows, mapped or not.
 */
int mr_memory_get(struct mr_memory *mem, void *addr, size_t length,
		  struct pln_mr_attempt *why);
void mr_memory_put(struct mr_memory *mem);

/* 0: it is still that of mr_memory_get(); -EFAULT: it is not; the GPU's error */
int mr_memory_same(const struct mr_memory *mem);

/* What devices have written is there for work that the GPU is given from now on */
int mr_memory_flush(const struct mr_memory *mem);

/*
 * From now on synchronous copies and fills of the memory have finished when their call
 * returns, so that none still runs when a device reads or writes it.  Where the driver
 * does not take the attribute (pools, old drivers) that is left to the program.
 */
void mr_memory_in_order(const struct mr_memory *mem);

/* Make the memory's context current, and the one before again */
CUresult mr_enter(const struct mr_memory *mem);
void mr_leave(const struct mr_memory *mem);

/* ---- the ways: mr_ways.c, mr_staged.c ---- */

struct mr_wish {
	struct ibv_pd *pd;
	uint64_t iova;
	unsigned int access;	/* IBV_ACCESS_* */
};

#define MR_STREAMS	2

struct mr_stage {
	void *host;
	CUstream stream[MR_STREAMS];
	atomic_uint next;
};

/* Each: the region; or NULL with @why filled */
struct ibv_mr *mr_by_dmabuf(const struct mr_verbs *verbs,
			    const struct mr_memory *mem,
			    const struct mr_wish *wish,
			    struct pln_mr_attempt *why);
struct ibv_mr *mr_by_plain(const struct mr_verbs *verbs,
			   const struct mr_memory *mem,
			   const struct mr_wish *wish,
			   struct pln_mr_attempt *why);
struct ibv_mr *mr_by_staging(const struct mr_verbs *verbs,
			     const struct mr_memory *mem,
			     const struct mr_wish *wish,
			     struct mr_stage *stage,
			     struct pln_mr_attempt *why);
void mr_stage_end(const struct mr_memory *mem, struct mr_stage *stage);

/* 0 with the number of pieces, or -errno; the range is inside */
int mr_stage_copy(const struct mr_memory *mem, struct mr_stage *stage,
		  uint64_t offset, uint64_t length, bool to_gpu,
		  uint64_t *pieces);

/* ibv_reg_mr() on @addr, whatever it is: NULL, with errno, on failure */
struct ibv_mr *mr_verbs_reg(const struct mr_verbs *verbs,
			    const struct mr_wish *wish, void *addr,
			    size_t length);

/* ---- words: mr_words.c ---- */

/* @why: @error, a negative errno, and words */
void mr_refuse(struct pln_mr_attempt *why, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same after @call of libcuda has failed with @result */
void mr_refuse_cuda(struct pln_mr_attempt *why, const struct mr_cuda *cu,
		    CUresult result, const char *call, const char *hint);
int mr_errno(CUresult result);

/* Words for an errno of a registration */
void mr_words_dmabuf(struct pln_mr_attempt *why, const char *device, int error);
void mr_words_plain(struct pln_mr_attempt *why, const char *device, int error,
		    const struct mr_memory *mem);
void mr_words_staged(struct pln_mr_attempt *why, const char *device, int error,
		     uint64_t length);

/* From all the rest, its reason */
void mr_conclude(struct pln_mr_info *info, const char *device);

/* The bits 1 << enum pln_mr_way of PEERLANE_MR_WAYS; -EINVAL with @why */
int mr_ways_allowed(struct pln_mr_attempt *why);

#endif /* PEERLANE_MR_INSIDE_H */
