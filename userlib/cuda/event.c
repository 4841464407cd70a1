// SPDX-License-Identifier: MIT
/*
 * Events.  An event names a job that ends with all that was in the stream when it was
 * recorded: the last one, or one made for it that follows several.
 */
#include <stdlib.h>

#include "internal.h"

void drv_event_free(struct CUevent_st *event)
{
	drv_shared_unuse(event);
	drv_shared_put(event->shared);
	drv_job_put(event->job);
	drv_ctx_put(event->ctx);
	free(event);
}

CUresult drv_event_get(CUevent handle, CUevent *out)
{
	CUresult err;

	*out = drv_obj_get(handle, DRV_EVENT, CUDA_ERROR_INVALID_HANDLE, &err);
	return err;
}

/* Takes over @shared, whatever the outcome; NULL: see @flags */
CUresult drv_event_new(CUcontext ctx, unsigned int flags,
		       struct drv_shared *shared, CUevent *out)
{
	CUevent event = calloc(1, sizeof(*event));
	CUresult err = CUDA_SUCCESS;

	if (!event) {
		drv_shared_put(shared);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->obj.type = DRV_EVENT;
	atomic_init(&event->obj.refs, 1);
	atomic_fetch_add(&ctx->obj.refs, 1);
	event->ctx = ctx;
	event->flags = flags;
	event->shared = shared;
	if ((flags & CU_EVENT_INTERPROCESS) && !shared)
		err = drv_shared_new(event);
	pthread_mutex_lock(&drv.lock);
	if (!err)
		err = atomic_load(&ctx->destroyed) ?
		      CUDA_ERROR_CONTEXT_IS_DESTROYED :
		      drv_obj_add(&event->obj);
	if (!err)
		LIST_INSERT_HEAD(&ctx->events, event, link);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		drv_obj_put(&event->obj);
	else
		*out = event;
	return err;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!out || (flags & ~(unsigned int)(CU_EVENT_BLOCKING_SYNC |
					     CU_EVENT_DISABLE_TIMING |
					     CU_EVENT_INTERPROCESS)))
		err = CUDA_ERROR_INVALID_VALUE;
	else if ((flags & CU_EVENT_INTERPROCESS) &&
		 !(flags & CU_EVENT_DISABLE_TIMING))
		err = CUDA_ERROR_INVALID_VALUE;
	else
		err = drv_event_new(ctx, flags, NULL, out);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
	CUevent event;
	CUresult err = drv_ready();

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	event = drv_obj_find(handle, DRV_EVENT);
	if (event) {
		drv_obj_del(&event->obj);
		LIST_REMOVE(event, link);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	drv_obj_put(&event->obj);	/* the table's */
	drv_obj_put(&event->obj);
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle,
				unsigned int flags)
{
	struct drv_job *job, *old;
	uint64_t recording = 0, now = 0;
	CUstream stream;
	CUevent event;
	CUresult err;

	err = drv_event_get(handle, &event);
	if (err)
		return err;
	err = drv_stream_get(stream_handle, NULL, &stream);
	if (err)
		goto out_event;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (flags)
		err = CUDA_ERROR_ILLEGAL_STATE;	/* only while capturing */
	else if (event->ctx != stream->ctx)
		err = CUDA_ERROR_INVALID_HANDLE;
	if (err)
		goto out_stream;
	err = drv_stream_mark(stream, &job);
	if (!err && event->shared) {
		drv_job_put(job);
		err = drv_shared_record(event, stream, &job, &recording);
	}
	if (err)
		goto out_stream;
	/* It is reached now, or when its job ends */
	if (!(event->flags & CU_EVENT_DISABLE_TIMING))
		err = drv_file_time(stream->ctx->file, &now);
	if (err) {
		drv_job_put(job);
		goto out_stream;
	}
	pthread_mutex_lock(&drv.lock);
	old = event->job;
	event->job = job;
	event->recording = recording;
	event->recorded = true;
	event->t_record = now;
	pthread_mutex_unlock(&drv.lock);
	drv_job_put(old);
out_stream:
	drv_obj_put(&stream->obj);
out_event:
	drv_obj_put(&event->obj);
	return err;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

/* Has what @event recorded, if anything, ended?  @t: when */
static CUresult event_end(CUevent event, bool block, uint64_t *t)
{
	struct drv_job *job;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.lock);
	*t = event->t_record;
	job = drv_job_ref(event->job);
	pthread_mutex_unlock(&drv.lock);
	if (job) {
		err = drv_job_wait(job, block);
		if (!err) {
			err = job->err;
			if (job->t_done > *t)
				*t = job->t_done;
		}
	}
	if (!err && event->shared)
		err = drv_shared_wait(event->shared,
				      drv_shared_last(event->shared), block);
	drv_job_put(job);
	return err;
}

static CUresult event_ask(CUevent handle, bool block)
{
	CUevent event;
	uint64_t t;
	CUresult err = drv_event_get(handle, &event);

	if (err)
		return err;
	err = drv_ctx_state(event->ctx);
	if (!err)
		err = event_end(event, block, &t);
	if (!err && block)
		drv_pools_settle(event->ctx->dev);
	drv_obj_put(&event->obj);
	return err;
}

CUresult cuEventQuery(CUevent event)
{
	return event_ask(event, false);
}

CUresult cuEventSynchronize(CUevent event)
{
	return event_ask(event, true);
}

static bool has_time(CUevent event)
{
	bool recorded;

	pthread_mutex_lock(&drv.lock);
	recorded = event->recorded;
	pthread_mutex_unlock(&drv.lock);
	return recorded && !(event->flags & CU_EVENT_DISABLE_TIMING);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	CUevent event[2] = { NULL, NULL };
	CUevent handle[2] = { start, end };
	uint64_t t[2] = { 0, 0 };
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 2 && !err; i++)
		err = drv_event_get(handle[i], &event[i]);
	if (!err && (!has_time(event[0]) || !has_time(event[1]) ||
		     event[0]->ctx->dev != event[1]->ctx->dev))
		err = CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < 2 && !err; i++)
		err = event_end(event[i], false, &t[i]);
	if (!err)
		*ms = (float)((double)(int64_t)(t[1] - t[0]) / 1e6);
	for (int i = 0; i < 2; i++)
		if (event[i])
			drv_obj_put(&event[i]->obj);
	return err;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle,
			   unsigned int flags)
{
	struct drv_job *job;
	CUstream stream;
	CUevent event;
	CUresult err;
	bool other;

	err = drv_stream_get(stream_handle, NULL, &stream);
	if (err)
		return err;
	err = drv_event_get(handle, &event);
	if (err)
		goto out_stream;
	if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (flags)
		err = CUDA_ERROR_ILLEGAL_STATE;	/* only while capturing */
	if (err)
		goto out_event;
	pthread_mutex_lock(&drv.lock);
	job = drv_job_ref(event->job);
	/* Another process has recorded it since */
	other = event->shared &&
		event->recording != drv_shared_last(event->shared);
	pthread_mutex_unlock(&drv.lock);
	err = other ? drv_shared_await(event->shared, stream) :
		      drv_stream_follow(stream, job);
	drv_job_put(job);
out_event:
	drv_obj_put(&event->obj);
out_stream:
	drv_obj_put(&stream->obj);
	return err;
}
