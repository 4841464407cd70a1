// SPDX-License-Identifier: MIT
/*
 * Streams: handles, and what can be asked of them.  job.c has the order.
 */
#include <stdlib.h>

#include "internal.h"

/* pln.lock is held.  The legacy stream is in no table and no list. */
CUresult pln_stream_new(CUcontext ctx, unsigned int flags, int priority,
			bool legacy, CUstream *out)
{
	CUstream stream;
	CUresult err;

	if (atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->sink = pln_sink_new();
	if (!stream->sink) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->obj.type = PLN_STREAM;
	atomic_init(&stream->obj.refs, 1);
	atomic_fetch_add(&ctx->obj.refs, 1);
	stream->ctx = ctx;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add(&pln.next_id, 1) + 1;
	stream->lane = &ctx->lane;
	if (flags & CU_STREAM_NON_BLOCKING) {
		struct pln_file *file = ctx->file;

		stream->lane = &stream->own_lane;
		if (file->num_queues > 1)
			stream->own_lane.queue =
				1 + file->next_queue++ % (file->num_queues - 1);
	}
	if (!legacy) {
		err = pln_obj_add(&stream->obj);
		if (err) {
			pln_obj_put(&stream->obj);
			return err;
		}
		LIST_INSERT_HEAD(&ctx->streams, stream, link);
	}
	*out = stream;
	return CUDA_SUCCESS;
}

void pln_stream_free(struct CUstream_st *stream)
{
	pln_job_put(stream->last);
	pln_lane_clear(&stream->own_lane);
	pln_sink_put(stream->sink);
	pln_ctx_put(stream->ctx);
	free(stream);
}

/* A usable stream: its context is alive.  The caller gets one reference. */
CUresult pln_stream_get(CUstream handle, CUcontext *ctx_out, CUstream *out)
{
	CUcontext ctx;
	CUstream stream;
	CUresult err;

	if (!handle || handle == CU_STREAM_LEGACY ||
	    handle == CU_STREAM_PER_THREAD) {
		err = pln_ctx_current(&ctx);
		if (err)
			return err;
		pthread_mutex_lock(&pln.lock);
		stream = ctx->legacy;
		if (stream)
			atomic_fetch_add(&stream->obj.refs, 1);
		pthread_mutex_unlock(&pln.lock);
		pln_ctx_put(ctx);
		if (!stream)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else {
		stream = pln_obj_get(handle, PLN_STREAM,
				     CUDA_ERROR_INVALID_HANDLE, &err);
		if (err)
			return err;
		err = pln_ctx_state(stream->ctx);
		if (err) {
			pln_obj_put(&stream->obj);
			return err;
		}
	}
	if (ctx_out)
		*ctx_out = stream->ctx;
	*out = stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags,
				    int priority)
{
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	if (!out || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)) {
		pln_ctx_put(ctx);
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* One priority exists; others are brought to it, as the rule says */
	(void)priority;
	pthread_mutex_lock(&pln.lock);
	err = pln_stream_new(ctx, flags, 0, false, out);
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	CUstream stream;
	CUresult err = pln_ready();

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	stream = pln_obj_find(handle, PLN_STREAM);
	err = stream ? pln_stream_leave(stream) : CUDA_ERROR_INVALID_HANDLE;
	if (!err) {
		pln_obj_del(&stream->obj);
		LIST_REMOVE(stream, link);
	}
	pthread_mutex_unlock(&pln.lock);
	if (!stream)
		return err;
	if (!err) {
		/* What has ended of what other streams left */
		pln_lane_settle(&stream->ctx->left, false);
		pln_obj_put(&stream->obj);	/* the table's */
	}
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamSynchronize(CUstream handle)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = pln_stream_end(stream, true);
	if (!err)
		pln_pools_settle(stream->ctx->dev);
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamQuery(CUstream handle)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = pln_stream_end(stream, false);
	pln_obj_put(&stream->obj);
	return err;
}

/* What a stream is: @value is an expression with "stream" */
#define GETTER(name, type, value)					\
CUresult name(CUstream handle, type *out)				\
{									\
	CUstream stream;						\
	CUresult err = pln_stream_get(handle, NULL, &stream);		\
									\
	if (err)							\
		return err;						\
	if (out)							\
		*out = (value);						\
	else								\
		err = CUDA_ERROR_INVALID_VALUE;				\
	pln_obj_put(&stream->obj);					\
	return err;							\
}

GETTER(cuStreamGetPriority, int, stream->priority)
GETTER(cuStreamGetFlags, unsigned int, stream->flags)
GETTER(cuStreamGetId, unsigned long long, stream->id)
GETTER(cuStreamGetCtx, CUcontext, stream->ctx)
GETTER(cuStreamGetDevice, CUdevice, stream->ctx->dev->ordinal)
GETTER(cuStreamIsCapturing, CUstreamCaptureStatus,
       CU_STREAM_CAPTURE_STATUS_NONE)

/* There are no green contexts */
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
	CUresult err = cuStreamGetCtx(handle, ctx);

	if (!err && green)
		*green = NULL;
	return err;
}
