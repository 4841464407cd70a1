// SPDX-License-Identifier: MIT
/*
 * Whose memory a range of addresses is: libcuda knows.
 */
#include <errno.h>

#include "mr_inside.h"

struct piece {
	uint64_t base, size, id;
	int gpu, managed;
};

/* What not every kind of memory has, nor every driver knows */
static CUresult get_if_any(const struct mr_cuda *cu, void *data,
			   CUpointer_attribute what, uint64_t addr)
{
	CUresult r = cu->pointer_get(data, what, addr);

	return r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_SUPPORTED ?
	       CUDA_SUCCESS : r;
}

/* 0: no GPU's, 1: a GPU's, -1: libcuda failed, with *result */
static int piece_at(const struct mr_cuda *cu, uint64_t addr, struct piece *p,
		    CUresult *result)
{
	unsigned int type = 0;
	CUdeviceptr base = 0, map = 0;
	size_t size = 0, map_size = 0;
	CUresult r;

	r = cu->pointer_get(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, addr);
	/* Before cuInit(), and without a GPU, nothing is GPU memory */
	if (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_INITIALIZED ||
	    r == CUDA_ERROR_NO_DEVICE || (!r && type != CU_MEMORYTYPE_DEVICE))
		return 0;
	if (!r)
		r = cu->pointer_get(&p->gpu, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				    addr);
	if (!r)
		r = cu->pointer_get(&base,
				    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
				    addr);
	if (!r)
		r = cu->pointer_get(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
				    addr);
	if (!r)
		r = get_if_any(cu, &map, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
			       addr);
	if (!r)
		r = get_if_any(cu, &map_size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
			       addr);
	/* The range of memory that was mapped by hand is all that was reserved */
	if (!r && map <= addr && addr - map < map_size) {
		uint64_t end = base + size;

		if (end > map + map_size)
			end = map + map_size;
		if (base < map)
			base = map;
		size = end - base;
	}
	if (!r && (base > addr || size <= addr - base))
		r = CUDA_ERROR_UNKNOWN;	/* the loop over pieces must end */
	p->base = base;
	p->size = size;
	p->id = 0;
	p->managed = 0;
	if (!r)
		r = get_if_any(cu, &p->id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
			       addr);
	if (!r)
		r = get_if_any(cu, &p->managed,
			       CU_POINTER_ATTRIBUTE_IS_MANAGED, addr);
	*result = r;
	return r ? -1 : 1;
}

static uint64_t mix(uint64_t sum, uint64_t x)
{
	return (sum ^ x) * 0x100000001b3ull;
}

/*
 * All allocations that the range touches, of which there are several when they
 * were mapped side by side.  Same results as piece_at(); *end is where the
 * memory of the one GPU ends.  *identity is 0 where libcuda does not tell one
 * allocation from the next at the same place.
 */
static int walk(const struct mr_cuda *cu, uint64_t addr, uint64_t length,
		struct piece *first, uint64_t *identity, uint64_t *end,
		CUresult *result)
{
	uint64_t at = addr, sum = 0xcbf29ce484222325ull;
	bool known = true;
	struct piece p = { 0 };
	int r = 0;

	while (at - addr < length) {
		r = piece_at(cu, at, &p, result);
		if (at == addr)
			*first = p;
		first->managed |= r == 1 && p.managed;
		if (r < 1 || p.gpu != first->gpu)
			break;
		sum = mix(mix(mix(sum, p.base), p.size), p.id);
		known &= p.id != 0;
		at = p.base + p.size;
	}
	*identity = known ? sum : 0;
	*end = at;
	return at == addr ? r : r < 0 ? r : 1;
}

static CUresult attribute(const struct mr_memory *mem, int *value,
			  CUdevice_attribute what)
{
	CUresult r = mem->cu->device_attribute(value, what, mem->dev);

	/* older drivers do not know it */
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}

/*
 * The completion of a write is in host memory, the bytes went to the GPU: nothing
 * on PCIe orders the two, so it is the GPU's driver that tells.  A GPU that RDMA
 * devices cannot write takes what the CPU stores into coherent pages.
 * The two scopes are numbers on one scale, a larger one has the smaller in it.
 */
static CUresult writes_of(struct mr_memory *mem)
{
	int rdma = 1, order = 0, flush = 0;
	CUresult r;

	r = attribute(mem, &rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
	if (!r)
		r = attribute(mem, &order,
			      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
	if (!r)
		r = attribute(mem, &flush,
			      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
	if (!rdma || order >= (int)CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER)
		mem->writes = MR_WRITES_SEEN;
	else if (mem->cu->flush_writes &&
		 (flush & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST))
		mem->writes = MR_WRITES_FLUSH;
	else
		mem->writes = MR_WRITES_UNSURE;
	return r;
}

/* The memory's context, or the primary one for memory that belongs to none */
static CUresult context_of(struct mr_memory *mem, const char **call)
{
	const struct mr_cuda *cu = mem->cu;
	CUresult r;

	*call = "cuDeviceGet";
	r = cu->device_get(&mem->dev, mem->gpu);
	if (r)
		return r;
	*call = "cuDeviceGetAttribute";
	r = writes_of(mem);
	if (r)
		return r;
	mem->ctx = NULL;
	if (!cu->pointer_get(&mem->ctx, CU_POINTER_ATTRIBUTE_CONTEXT,
			     mem->addr) && mem->ctx)
		return CUDA_SUCCESS;
	*call = "cuDevicePrimaryCtxRetain";
	r = cu->primary_retain(&mem->ctx, mem->dev);
	mem->primary = !r;
	return r;
}

int mr_memory_get(struct mr_memory *mem, void *addr, size_t length,
		  struct pln_mr_attempt *why)
{
	const struct mr_cuda *cu = mr_cuda();
	const char *call = "cuPointerGetAttribute";
	struct piece first;
	bool host = false;
	uint64_t end;
	CUresult r;
	int kind;

	*mem = (struct mr_memory){
		.addr = (uintptr_t)addr, .length = length, .gpu = -1,
	};
	if (!cu)
		return 0;
	kind = walk(cu, mem->addr, length, &first, &mem->identity, &end, &r);
	/* What lies between is not known, but the end often is */
	if (!kind) {
		kind = walk(cu, mem->addr + length - 1, 1, &first,
			    &mem->identity, &end, &r);
		host = true;
	}
	if (host && kind > 0) {
		mr_refuse(why, -EFAULT,
			  "the range begins in host memory and ends in memory of GPU %d",
			  first.gpu);
		return -EFAULT;
	}
	if (!kind)
		return 0;
	if (kind > 0 && end - mem->addr < length) {
		mr_refuse(why, -EFAULT,
			  "the memory of GPU %d ends %llu bytes before the range does",
			  first.gpu, (unsigned long long)
			  (length - (end - mem->addr)));
		return -EFAULT;
	}
	if (kind > 0) {
		mem->cu = cu;
		mem->base = first.base;
		mem->gpu = first.gpu;
		mem->managed = first.managed;
		r = context_of(mem, &call);
	}
	if (r) {
		mr_refuse_cuda(why, cu, r, call, "the GPU may have been reset");
		return why->error;
	}
	return 0;
}

void mr_memory_put(struct mr_memory *mem)
{
	if (mem->primary)
		(void)mem->cu->primary_release(mem->dev);
	mem->primary = false;
}

int mr_memory_same(const struct mr_memory *mem)
{
	uint64_t identity, end;
	struct piece first;
	CUresult r;
	int kind = walk(mem->cu, mem->addr, mem->length, &first, &identity,
			&end, &r);

	/* Freed while it was asked after is freed, too */
	if (kind < 0 && r != CUDA_ERROR_INVALID_VALUE)
		return mr_errno(r);
	return kind > 0 && end - mem->addr >= mem->length && identity &&
	       identity == mem->identity ? 0 : -EFAULT;
}

int mr_memory_flush(const struct mr_memory *mem)
{
	CUresult r = mr_enter(mem);

	if (!r) {
		r = mem->cu->flush_writes(
			CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
			CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
		mr_leave(mem);
	}
	return mr_errno(r);
}

void mr_memory_in_order(const struct mr_memory *mem)
{
	uint64_t at = mem->addr;
	struct piece p;
	CUresult r;
	int on = 1;

	if (!mem->cu || !mem->cu->pointer_set || mr_enter(mem))
		return;
	while (at - mem->addr < mem->length && piece_at(mem->cu, at, &p, &r) > 0) {
		(void)mem->cu->pointer_set(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
		at = p.base + p.size;
	}
	mr_leave(mem);
}

CUresult mr_enter(const struct mr_memory *mem)
{
	return mem->cu->ctx_push(mem->ctx);
}

void mr_leave(const struct mr_memory *mem)
{
	CUcontext old;

	(void)mem->cu->ctx_pop(&old);
}
