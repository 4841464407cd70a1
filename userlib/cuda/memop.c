// SPDX-License-Identifier: MIT
/*
 * Values in memory that a stream writes, or waits for.
 *
 * A value in memory of a GPU is written by the engine, and in host memory by the
 * CPU.  A wait is a thread's that looks at the memory again and again: by itself
 * where the CPU reaches it, else through the engine.  It may be for ever.
 */
#include <stdlib.h>
#include <time.h>

#include "internal.h"

#define POLL_MIN_NS	20000
#define POLL_MAX_NS	1000000
#define BATCH_MAX	256

struct value {
	struct drv_place place;		/* with its reference */
	uint64_t value;
	unsigned int width;
	unsigned int flags;
	uint64_t word;			/* what the engine read */
	struct drv_sink *sink;		/* of looks: an error is the wait's own */
	struct drv_job *job;		/* the look that has not ended, or NULL */
};

static void value_free(struct value *v)
{
	drv_place_put(&v->place);
	drv_sink_put(v->sink);
	free(v);
}

/* What is there now */
static CUresult look(struct value *v, uint64_t *now)
{
	const struct drv_place *place = &v->place;
	struct pln_gpu_op op = {
		.opcode = PLN_GPU_OP_COPY,
		.flags = PLN_GPU_OP_F_DST_USER,
		.src_handle = place->handle,
		.src = place->offset,
		.dst = (uintptr_t)&v->word,
		.len = v->width,
	};
	CUresult err = CUDA_SUCCESS;

	if (!place->device ||
	    place->stream->ctx->file->features & PLN_GPU_FEAT_COHERENT) {
		void *at = (void *)(uintptr_t)place->addr;

		*now = v->width == 8 ? atomic_load((_Atomic uint64_t *)at) :
				       atomic_load((_Atomic uint32_t *)at);
		return CUDA_SUCCESS;
	}
	if (!v->job) {
		v->word = 0;
		err = drv_submit_look(place->stream, v->sink, &op, &v->job);
	}
	if (!err)
		err = drv_job_wait(v->job, true);
	if (err)
		return err;
	err = v->job->err;
	drv_job_put(v->job);
	v->job = NULL;
	*now = v->word;
	return err;
}

/* May the next look be better? */
static bool is_passing(CUresult err)
{
	return err == CUDA_ERROR_OUT_OF_MEMORY ||
	       err == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
	       err == CUDA_ERROR_LAUNCH_TIMEOUT;
}

static bool is_met(const struct value *v, uint64_t now)
{
	uint64_t mask = v->width == 8 ? ~0ull : ~0u;

	switch (v->flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return v->width == 8 ? (int64_t)(now - v->value) >= 0 :
				       (int32_t)(uint32_t)(now - v->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == v->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return now & v->value;
	default:
		return ~(now | v->value) & mask;
	}
}

CUresult drv_value_wait(struct drv_job *job, void *arg)
{
	struct timespec nap = { 0, POLL_MIN_NS };
	struct value *v = arg;
	CUresult err = CUDA_SUCCESS;
	uint64_t now;

	while (!atomic_load(&job->cancelled)) {
		err = look(v, &now);
		if (err ? !is_passing(err) : is_met(v, now))
			break;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < POLL_MAX_NS)
			nap.tv_nsec *= 2;
	}
	if (atomic_load(&job->cancelled))
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (v->job && drv_job_wait(v->job, true))
		return err;	/* it is stuck, and may write to @v: leave that */
	drv_job_put(v->job);
	value_free(v);
	return err;
}

static CUresult value_write(struct drv_job *job, void *arg)
{
	struct value *v = arg;
	void *at = (void *)(uintptr_t)v->place.addr;

	if (atomic_load(&job->cancelled))
		;
	else if (v->width == 8)
		atomic_store((_Atomic uint64_t *)at, v->value);
	else
		atomic_store((_Atomic uint32_t *)at, (uint32_t)v->value);
	value_free(v);
	return CUDA_SUCCESS;
}

/* One operation: only looked at unless @go */
static CUresult value_op(CUstream handle, uint64_t addr, uint64_t value,
			 unsigned int width, unsigned int flags, bool wait,
			 bool go)
{
	unsigned int known = wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH :
				    width == 8 ? 0 :
				    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
	struct drv_span span[2] = { { 0 } };
	struct drv_place place = { 0 };
	struct value *v = NULL;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (!addr || addr % width || (flags & ~known))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = drv_place_get(addr, width, &place);
	if (!err)
		err = drv_place_may(stream->ctx, &place,
				    DRV_ALONE | (wait ? DRV_READS : DRV_WRITES));
	if (!err && !place.device && !place.pinned)
		err = CUDA_ERROR_INVALID_VALUE;
	/* As attribute 98 says; an H100 cannot either */
	if (!err && wait && (flags & CU_STREAM_WAIT_VALUE_FLUSH))
		err = CUDA_ERROR_NOT_SUPPORTED;
	if (err || !go)
		goto out;
	if (!wait && place.device) {
		err = drv_fill(addr, value, width, handle);
		goto out;
	}
	v = calloc(1, sizeof(*v));
	if (v)
		v->sink = drv_sink_new();
	if (!v || !v->sink) {
		free(v);
		err = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	v->place = place;
	v->value = value;
	v->width = width;
	v->flags = flags;
	place.stream = NULL;
	span[0] = (struct drv_span){ addr, width };
	err = wait ? drv_stream_work(stream, NULL, DRV_USE_SPAN, span,
				     drv_value_wait, v, NULL) :
		     drv_stream_work(stream, NULL, DRV_USE_ANY, span,
				     value_write, v, NULL);
	if (err)
		value_free(v);
out:
	drv_place_put(&place);
	drv_obj_put(&stream->obj);
	return err;
}

static CUresult batch(CUstream stream, unsigned int n,
		      const CUstreamBatchMemOpParams *ops, unsigned int flags)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (flags || n > BATCH_MAX || (n && !ops))
		return CUDA_ERROR_INVALID_VALUE;
	/* All of them are looked at before the first one begins */
	for (int go = 0; go < 2; go++) {
		for (unsigned int i = 0; i < n && !err; i++) {
			const CUstreamBatchMemOpParams *op = &ops[i];
			unsigned int type = op->operation;

			switch (type) {
			case CU_STREAM_MEM_OP_WAIT_VALUE_32:
			case CU_STREAM_MEM_OP_WRITE_VALUE_32:
				err = value_op(stream, op->waitValue.address,
					       op->waitValue.value, 4,
					       op->waitValue.flags, type ==
					       CU_STREAM_MEM_OP_WAIT_VALUE_32,
					       go);
				break;
			case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			case CU_STREAM_MEM_OP_WRITE_VALUE_64:
				err = value_op(stream, op->waitValue.address,
					       op->waitValue.value64, 8,
					       op->waitValue.flags, type ==
					       CU_STREAM_MEM_OP_WAIT_VALUE_64,
					       go);
				break;
			case CU_STREAM_MEM_OP_BARRIER:
				break;	/* each operation is seen by the next */
			case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
				err = CUDA_ERROR_NOT_SUPPORTED;
				break;
			default:
				err = CUDA_ERROR_INVALID_VALUE;
			}
		}
	}
	return err;
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr,
				cuuint32_t value, unsigned int flags)
{
	return value_op(stream, addr, value, 4, flags, true, true);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr,
				cuuint64_t value, unsigned int flags)
{
	return value_op(stream, addr, value, 8, flags, true, true);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr,
				 cuuint32_t value, unsigned int flags)
{
	return value_op(stream, addr, value, 4, flags, false, true);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr,
				 cuuint64_t value, unsigned int flags)
{
	return value_op(stream, addr, value, 8, flags, false, true);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int n,
			       CUstreamBatchMemOpParams *ops,
			       unsigned int flags)
{
	return batch(stream, n, ops, flags);
}

/*
 * The first versions, of programs built before CUDA 11.7.  Attributes 92 to 94 say
 * that they do not work, and so says an H100 when they are called.
 */
static CUresult first_version(void)
{
	CUresult err = drv_ready();

	return err ? err : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr,
			     cuuint32_t value, unsigned int flags)
{
	(void)stream, (void)addr, (void)value, (void)flags;
	return first_version();
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr,
			     cuuint64_t value, unsigned int flags)
{
	(void)stream, (void)addr, (void)value, (void)flags;
	return first_version();
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr,
			      cuuint32_t value, unsigned int flags)
{
	(void)stream, (void)addr, (void)value, (void)flags;
	return first_version();
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr,
			      cuuint64_t value, unsigned int flags)
{
	(void)stream, (void)addr, (void)value, (void)flags;
	return first_version();
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int n,
			    CUstreamBatchMemOpParams *ops, unsigned int flags)
{
	(void)stream, (void)n, (void)ops, (void)flags;
	return first_version();
}
