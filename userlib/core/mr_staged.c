// SPDX-License-Identifier: MIT
/*
 * Staging: the device sees page-locked host memory, the GPU's copy engine does
 * the rest.
 */
#include <errno.h>

#include "mr_inside.h"

/* Large enough for the link's full speed, small enough for two engines */
#define PIECE		(4ull << 20)

static bool can_stage(const struct mr_cuda *cu)
{
	return cu->host_alloc && cu->host_free && cu->copy_to_gpu &&
	       cu->copy_from_gpu && cu->stream_create && cu->stream_destroy &&
	       cu->stream_wait;
}

static void stage_free(const struct mr_cuda *cu, struct mr_stage *stage)
{
	int i;

	for (i = 0; i < MR_STREAMS; i++)
		if (stage->stream[i])
			(void)cu->stream_destroy(stage->stream[i]);
	if (stage->host)
		(void)cu->host_free(stage->host);
	*stage = (struct mr_stage){ 0 };
}

struct ibv_mr *mr_by_staging(const struct mr_verbs *verbs,
			     const struct mr_memory *mem,
			     const struct mr_wish *wish,
			     struct mr_stage *stage,
			     struct pln_mr_attempt *why)
{
	const char *device = wish->pd->context->device->name;
	const char *call = "cuCtxPushCurrent";
	const char *hint = "the memory's context is gone";
	const struct mr_cuda *cu = mem->cu;
	struct mr_wish host = *wish;
	struct ibv_mr *mr = NULL;
	CUresult r;
	int i, err = 0;

	*stage = (struct mr_stage){ 0 };
	if (!can_stage(cu)) {
		mr_refuse(why, -ENOSYS,
			  "libcuda.so.1 lacks functions for streams or host memory");
		return NULL;
	}
	if (!mem->identity) {
		mr_refuse(why, -EOPNOTSUPP,
			  "libcuda.so.1 gives no id of the memory "
			  "(CU_POINTER_ATTRIBUTE_BUFFER_ID): a copy could not "
			  "distinguish it from later memory at this address");
		return NULL;
	}
	r = mr_enter(mem);
	if (r)
		goto out;
	call = "cuMemHostAlloc";
	hint = "no host memory for staging";
	r = cu->host_alloc(&stage->host, mem->length,
			   CU_MEMHOSTALLOC_PORTABLE);
	for (i = 0; i < MR_STREAMS && !r; i++) {
		call = "cuStreamCreate";
		hint = "the GPU's driver makes no stream for the copies";
		r = cu->stream_create(&stage->stream[i],
				      CU_STREAM_NON_BLOCKING);
	}
	if (!r) {
		host.iova = (uintptr_t)stage->host;
		errno = 0;
		mr = mr_verbs_reg(verbs, &host, stage->host, mem->length);
		err = errno ? errno : EIO;
	}
	if (!mr)
		stage_free(cu, stage);
	mr_leave(mem);
out:
	if (r)
		mr_refuse_cuda(why, cu, r, call, hint);
	else if (!mr)
		mr_words_staged(why, device, err, mem->length);
	return mr;
}

void mr_stage_end(const struct mr_memory *mem, struct mr_stage *stage)
{
	CUresult r;

	if (!stage->host)
		return;
	/* The context may be gone, and its streams with it */
	r = mr_enter(mem);
	stage_free(mem->cu, stage);
	if (!r)
		mr_leave(mem);
}

int mr_stage_copy(const struct mr_memory *mem, struct mr_stage *stage,
		  uint64_t offset, uint64_t length, bool to_gpu,
		  uint64_t *pieces)
{
	const struct mr_cuda *cu = mem->cu;
	uint64_t done, n, gpu = mem->addr + offset;
	char *host = (char *)stage->host + offset;
	unsigned int first, used = 0, i;
	CUresult r, end;
	int err;

	/*
	 * The same addresses may be another allocation's by now.  A program
	 * that frees memory while it is copied has no such protection.
	 */
	err = mr_memory_same(mem);
	if (err)
		return err;
	r = mr_enter(mem);
	if (r)
		return mr_errno(r);
	first = atomic_fetch_add(&stage->next, 1);
	for (done = 0; done < length && !r; done += n, used++) {
		CUstream s = stage->stream[(first + used) % MR_STREAMS];

		n = length - done < PIECE ? length - done : PIECE;
		r = to_gpu ? cu->copy_to_gpu(gpu + done, host + done, n, s) :
			     cu->copy_from_gpu(host + done, gpu + done, n, s);
	}
	/* Nothing may run on when this returns, whatever failed */
	for (i = 0; i < used && i < MR_STREAMS; i++) {
		end = cu->stream_wait(stage->stream[(first + i) % MR_STREAMS]);
		r = r ? r : end;
	}
	mr_leave(mem);
	*pieces = used;
	return r == CUDA_ERROR_INVALID_VALUE ? -EFAULT : mr_errno(r);
}
