// SPDX-License-Identifier: MIT
/*
 * The two ways on which the device reaches the memory itself.
 */
#include <errno.h>
#include <unistd.h>

#include "mr_inside.h"

/*
 * NVIDIA's GPUs export multiples of the host's page; the emulated ones start at
 * multiples of their own.
 */
#define EXPORT_ALIGN	0x10000ull

static const char *name_of(const struct ibv_pd *pd)
{
	return pd->context->device->name;
}

struct ibv_mr *mr_verbs_reg(const struct mr_verbs *verbs,
			    const struct mr_wish *wish, void *addr,
			    size_t length)
{
	unsigned int access = wish->access;

	if (verbs->reg_mr_iova2 && (access & IBV_ACCESS_OPTIONAL_RANGE))
		return verbs->reg_mr_iova2(wish->pd, addr, length, wish->iova,
					   access);
	/* That is what optional means */
	access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	if (wish->iova == (uintptr_t)addr)
		return verbs->reg_mr(wish->pd, addr, length, (int)access);
	if (verbs->reg_mr_iova)
		return verbs->reg_mr_iova(wish->pd, addr, length, wish->iova,
					  (int)access);
	errno = ENOSYS;
	return NULL;
}

/*
 * Whether the device takes dma-bufs at all, asked with a descriptor that is
 * none: a device that can says so by EBADF.  That is as cheap as a memory of
 * past refusals, and cannot be about a device that went and whose place another
 * one took.
 */
static bool takes_dmabufs(const struct mr_verbs *verbs, struct ibv_pd *pd)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = verbs->reg_dmabuf_mr(pd, 0, 1, 0, -1, 0);
	if (mr) {
		verbs->dereg_mr(mr);
		return true;
	}
	return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT &&
	       errno != ENOSYS;
}

static int export(const struct mr_memory *mem, uint64_t start, uint64_t size,
		  struct pln_mr_attempt *why)
{
	const struct mr_cuda *cu = mem->cu;
	CUresult r;
	int fd = -1;

	r = mr_enter(mem);
	if (r) {
		mr_refuse_cuda(why, cu, r, "cuCtxPushCurrent",
			       "the memory's context is gone");
		return -1;
	}
	r = cu->range_handle(&fd, start, size,
			     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	mr_leave(mem);
	if (!r && fd >= 0)
		return fd;
	mr_refuse_cuda(why, cu, r ? r : CUDA_ERROR_UNKNOWN,
		       "cuMemGetHandleForAddressRange",
		       r == CUDA_ERROR_NOT_SUPPORTED ?
		       "the GPU's driver exports no dma-buf of this memory; NVIDIA's does with its open kernel modules" :
		       mem->managed ?
		       "the GPU's driver exports no managed memory" :
		       r == CUDA_ERROR_INVALID_VALUE ?
		       "the GPU's driver makes no dma-buf of this range; if it is several allocations, register them one by one" :
		       "the GPU's driver failed");
	return -1;
}

struct ibv_mr *mr_by_dmabuf(const struct mr_verbs *verbs,
			    const struct mr_memory *mem,
			    const struct mr_wish *wish,
			    struct pln_mr_attempt *why)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start, end;
	struct ibv_mr *mr;
	int fd, err;

	if (!verbs->reg_dmabuf_mr) {
		mr_refuse(why, -ENOSYS,
			  "libibverbs.so.1 has no ibv_reg_dmabuf_mr(): rdma-core 34 or later has");
		return NULL;
	}
	if (!mem->cu->range_handle) {
		mr_refuse(why, -ENOSYS,
			  "libcuda.so.1 has no cuMemGetHandleForAddressRange(): the GPU driver of CUDA 11.7 or later has");
		return NULL;
	}
	if (!takes_dmabufs(verbs, wish->pd)) {
		mr_refuse(why, -errno,
			  "%s cannot take dma-bufs: its kernel driver, or its "
			  "part of libibverbs, does not support them",
			  name_of(wish->pd));
		return NULL;
	}

	/* Pages from the allocation only: before it may be another's memory */
	start = mem->addr & ~(EXPORT_ALIGN - 1);
	if (start < mem->base)
		start = mem->base & ~(page - 1);
	end = (mem->addr + mem->length + page - 1) & ~(page - 1);
	fd = export(mem, start, end - start, why);
	if (fd < 0)
		return NULL;
	errno = 0;
	mr = verbs->reg_dmabuf_mr(wish->pd, mem->addr - start, mem->length,
				  wish->iova, fd, (int)wish->access);
	err = errno ? errno : EIO;
	close(fd);	/* the region has its own reference */
	if (!mr) {
		mr_words_dmabuf(why, name_of(wish->pd), err);
		return NULL;
	}
	/* libibverbs put the offset in the dma-buf there */
	mr->addr = (void *)(uintptr_t)mem->addr;
	return mr;
}

struct ibv_mr *mr_by_plain(const struct mr_verbs *verbs,
			   const struct mr_memory *mem,
			   const struct mr_wish *wish,
			   struct pln_mr_attempt *why)
{
	struct ibv_mr *mr;

	if (mem->managed) {
		/* The kernel would take it, as host memory */
		mr_refuse(why, -EOPNOTSUPP,
			  "managed memory moves between host and GPU, away "
			  "from the pages that a registration has pinned; "
			  "memory of cuMemAlloc() does not");
		return NULL;
	}
	errno = 0;
	mr = mr_verbs_reg(verbs, wish, (void *)(uintptr_t)mem->addr,
			  mem->length);
	if (!mr)
		mr_words_plain(why, name_of(wish->pd), errno ? errno : EIO,
			       mem);
	return mr;
}
