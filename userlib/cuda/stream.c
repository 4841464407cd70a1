// SPDX-License-Identifier: MIT
/*
 * Streams: handles, and what can be asked of them.  follow.c has the order.
 */
#include <stdlib.h>

#include "internal.h"

/* drv.lock is held.  The legacy stream is in no table and no list. */
CUresult drv_stream_new(CUcontext ctx, unsigned int flags, int priority,
			bool legacy, CUstream *out)
{
	CUstream stream;
	CUresult err;

	if (atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->sink = drv_sink_new();
	if (!stream->sink) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->obj.type = DRV_STREAM;
	atomic_init(&stream->obj.refs, 1);
	atomic_fetch_add(&ctx->obj.refs, 1);
	stream->ctx = ctx;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add(&drv.next_id, 1) + 1;
	stream->legacy = legacy;
	/* All others are in queue 0, which often is all the order they need */
	if ((flags & CU_STREAM_NON_BLOCKING) && ctx->file->num_queues > 1)
		stream->queue = 1 + ctx->file->next_queue++ %
				    (ctx->file->num_queues - 1);
	if (!legacy) {
		err = drv_obj_add(&stream->obj);
		if (err) {
			drv_obj_put(&stream->obj);
			return err;
		}
		pthread_mutex_lock(&drv.order);
		LIST_INSERT_HEAD(&ctx->streams, stream, link);
		pthread_mutex_unlock(&drv.order);
	}
	*out = stream;
	return CUDA_SUCCESS;
}

void drv_stream_free(struct CUstream_st *stream)
{
	drv_job_put(stream->last);
	drv_sink_put(stream->sink);
	drv_ctx_put(stream->ctx);
	free(stream);
}

/* ---- default streams of threads: a blocking one in each context ---- */

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static bool thread_ok;
static __thread uint64_t thread_number;
__thread bool drv_own_default;

/* One of the thread's in some context, with the table's reference, or NULL */
static CUstream take_own(uint64_t number)
{
	CUstream stream;
	CUcontext ctx;

	for (int i = 0; i < drv.nr_devices; i++) {
		LIST_FOREACH(ctx, &drv.devices[i].contexts, link) {
			LIST_FOREACH(stream, &ctx->streams, link) {
				if (stream->thread != number)
					continue;
				drv_obj_del(&stream->obj);
				drv_stream_leave(stream);
				return stream;
			}
		}
	}
	return NULL;
}

/* The thread ends, and the work that it asked for goes on */
static void thread_end(void *number)
{
	CUstream stream;

	if (atomic_load(&drv.forked))
		return;
	/* A later destructor of the program's may have it made again */
	thread_number = 0;
	do {
		pthread_mutex_lock(&drv.lock);
		stream = take_own((uintptr_t)number);
		pthread_mutex_unlock(&drv.lock);
		drv_obj_put(stream ? &stream->obj : NULL);
	} while (stream);
}

static void thread_init(void)
{
	thread_ok = !pthread_key_create(&thread_key, thread_end);
}

/* drv.lock is held; a reference */
static CUresult own_stream(CUcontext ctx, CUstream *out)
{
	static atomic_ullong numbers;
	CUresult err = CUDA_SUCCESS;
	CUstream stream;
	uint64_t number;

	if (!thread_number) {
		pthread_once(&thread_once, thread_init);
		number = atomic_fetch_add(&numbers, 1) + 1;
		if (!thread_ok ||
		    pthread_setspecific(thread_key, (void *)(uintptr_t)number))
			return CUDA_ERROR_OUT_OF_MEMORY;
		thread_number = number;
	}
	LIST_FOREACH(stream, &ctx->streams, link)
		if (stream->thread == thread_number)
			break;
	if (!stream) {
		err = drv_stream_new(ctx, 0, 0, false, &stream);
		if (!err)
			stream->thread = thread_number;
	}
	if (!err) {
		atomic_fetch_add(&stream->obj.refs, 1);
		*out = stream;
	}
	return err;
}

/* A usable stream: its context is alive.  The caller gets one reference. */
CUresult drv_stream_get(CUstream handle, CUcontext *ctx_out, CUstream *out)
{
	CUcontext ctx;
	CUstream stream;
	CUresult err;

	if (!handle && drv_own_default)
		handle = CU_STREAM_PER_THREAD;
	if (!handle || handle == CU_STREAM_LEGACY ||
	    handle == CU_STREAM_PER_THREAD) {
		err = drv_ctx_current(&ctx);
		if (err)
			return err;
		pthread_mutex_lock(&drv.lock);
		stream = ctx->legacy;
		if (!stream)
			err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
		else if (handle == CU_STREAM_PER_THREAD)
			err = own_stream(ctx, &stream);
		else
			atomic_fetch_add(&stream->obj.refs, 1);
		pthread_mutex_unlock(&drv.lock);
		drv_ctx_put(ctx);
		if (err)
			return err;
	} else {
		stream = drv_obj_get(handle, DRV_STREAM,
				     CUDA_ERROR_INVALID_HANDLE, &err);
		if (err)
			return err;
		err = drv_ctx_state(stream->ctx);
		if (err) {
			drv_obj_put(&stream->obj);
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
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!out || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)) {
		drv_ctx_put(ctx);
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* One priority exists; others are brought to it, as the rule says */
	(void)priority;
	pthread_mutex_lock(&drv.lock);
	err = drv_stream_new(ctx, flags, 0, false, out);
	pthread_mutex_unlock(&drv.lock);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	CUstream stream;
	CUresult err = drv_ready();

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	stream = drv_obj_find(handle, DRV_STREAM);
	if (stream) {
		drv_obj_del(&stream->obj);
		drv_stream_leave(stream);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	drv_obj_put(&stream->obj);	/* the table's */
	drv_obj_put(&stream->obj);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = drv_stream_end(stream, true);
	if (!err)
		drv_pools_settle(stream->ctx->dev);
	drv_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamQuery(CUstream handle)
{
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = drv_stream_end(stream, false);
	drv_obj_put(&stream->obj);
	return err;
}

/* What a stream is: @value is an expression with "stream" */
#define GETTER(name, type, value)					\
CUresult name(CUstream handle, type *out)				\
{									\
	CUstream stream;						\
	CUresult err = drv_stream_get(handle, NULL, &stream);		\
									\
	if (err)							\
		return err;						\
	if (out)							\
		*out = (value);						\
	else								\
		err = CUDA_ERROR_INVALID_VALUE;				\
	drv_obj_put(&stream->obj);					\
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
