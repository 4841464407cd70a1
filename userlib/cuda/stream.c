// SPDX-License-Identifier: MIT
/*
 * Jobs, streams and events.
 *
 * The kernel runs the jobs of one engine queue in order.  All blocking streams
 * of a context, the legacy default stream among them, use one queue (a "lane"),
 * which gives the default stream's rules without any waiting: an operation in
 * it follows all earlier ones of blocking streams and precedes all later ones.
 * Non-blocking streams have lanes of their own, on the other queues.
 *
 * The engine cannot wait for another queue, so cuStreamWaitEvent() across lanes
 * is kept by the next submission to the waiting lane: it sleeps until the
 * event's job has ended.  No thread is needed, and no cycle is possible,
 * because an event names a job that has been submitted already.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define WAIT_SLICE_NS	1000000000ull
#define WAIT_LIMIT_NS	(120 * 1000000000ull)
#define UNREAPED_MAX	32

/* Of the device's error codes, those that speak of an address */
#define DEV_ERR_ALIGN	6
#define DEV_ERR_RANGE	7
#define DEV_ERR_BUS	8

struct pln_sink *pln_sink_new(void)
{
	struct pln_sink *sink = calloc(1, sizeof(*sink));

	if (sink)
		atomic_init(&sink->refs, 1);
	return sink;
}

struct pln_sink *pln_sink_ref(struct pln_sink *sink)
{
	atomic_fetch_add(&sink->refs, 1);
	return sink;
}

void pln_sink_put(struct pln_sink *sink)
{
	if (sink && atomic_fetch_sub(&sink->refs, 1) == 1)
		free(sink);
}

struct pln_job *pln_job_ref(struct pln_job *job)
{
	if (job)
		atomic_fetch_add(&job->refs, 1);
	return job;
}

void pln_job_put(struct pln_job *job)
{
	if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&job->lock);
	pln_sink_put(job->sink);
	pln_file_put(job->file);
	free(job);
}

static CUresult job_error(struct pln_job *job, int status, uint32_t code)
{
	CUresult err;

	if (!status)
		return CUDA_SUCCESS;
	err = pln_file_error(job->file, -status);
	if (!code || err == CUDA_ERROR_DEVICE_UNAVAILABLE)
		return err;
	pln_log("device %d: the engine failed a job, error code %u",
		job->file->dev->ordinal, code);
	if (code == DEV_ERR_ALIGN || code == DEV_ERR_RANGE ||
	    code == DEV_ERR_BUS)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return CUDA_ERROR_LAUNCH_FAILED;
}

/* job->lock is held.  True: the job has ended and is off its list. */
static bool job_poll(struct pln_job *job, uint64_t timeout)
{
	struct pln_gpu_wait wait = { .job = job->id, .timeout_ns = timeout };
	struct pln_file *file = job->file;
	int status, none = 0;

	if (atomic_load(&job->done))
		return true;
	if (pln_io_ioctl(file->fd, PLN_GPU_IOC_WAIT, &wait)) {
		if (errno == ETIMEDOUT || errno == EINTR)
			return false;
		status = -errno;
		wait.error = 0;
	} else {
		status = wait.status;
		job->result = wait.result;
	}
	job->err = job_error(job, status, wait.error);
	job->t_done = pln_now();
	if (job->err)
		atomic_compare_exchange_strong(&job->sink->err, &none,
					       (int)job->err);
	pthread_mutex_lock(&file->jobs_lock);
	TAILQ_REMOVE(&file->queue[job->queue], job, link);
	atomic_store(&job->done, true);
	pthread_mutex_unlock(&file->jobs_lock);
	pln_job_put(job);		/* the list's */
	return true;
}

/*
 * Jobs of a queue end in order, so earlier ones are asked for first: that
 * gives each its own time of ending, and lets the kernel forget them.
 */
CUresult pln_job_wait(struct pln_job *job, bool block)
{
	uint64_t deadline = pln_now() + WAIT_LIMIT_NS;
	struct pln_file *file = job->file;
	struct pln_job *head;
	bool ended;

	while (!atomic_load(&job->done)) {
		pthread_mutex_lock(&file->jobs_lock);
		head = pln_job_ref(TAILQ_FIRST(&file->queue[job->queue]));
		pthread_mutex_unlock(&file->jobs_lock);
		if (!head)
			continue;	/* somebody has just taken the last */
		if (block) {
			pthread_mutex_lock(&head->lock);
		} else if (pthread_mutex_trylock(&head->lock)) {
			pln_job_put(head);
			return CUDA_ERROR_NOT_READY;
		}
		ended = job_poll(head, block ? WAIT_SLICE_NS : 0);
		pthread_mutex_unlock(&head->lock);
		pln_job_put(head);
		if (!ended && !block)
			return CUDA_ERROR_NOT_READY;
		if (!ended && pln_now() > deadline) {
			pln_log("device %d: a job has not ended for 120 s",
				file->dev->ordinal);
			return CUDA_ERROR_LAUNCH_TIMEOUT;
		}
	}
	return CUDA_SUCCESS;
}

/* Wait for everything submitted until now */
CUresult pln_file_drain(struct pln_file *file)
{
	CUresult err = CUDA_SUCCESS, e;

	for (unsigned int q = 0; q < file->num_queues; q++) {
		struct pln_job *tail;

		pthread_mutex_lock(&file->jobs_lock);
		tail = pln_job_ref(TAILQ_LAST(&file->queue[q], pln_job_list));
		pthread_mutex_unlock(&file->jobs_lock);
		if (!tail)
			continue;
		e = pln_job_wait(tail, true);
		if (!err)
			err = e;
		pln_job_put(tail);
	}
	return err;
}

/* Let the kernel forget ended jobs, so that it has room for new ones */
static void reap(struct pln_file *file)
{
	for (unsigned int q = 0; q < file->num_queues; q++) {
		for (int i = 0; i < UNREAPED_MAX; i++) {
			struct pln_job *head;
			CUresult err;

			pthread_mutex_lock(&file->jobs_lock);
			head = pln_job_ref(TAILQ_FIRST(&file->queue[q]));
			pthread_mutex_unlock(&file->jobs_lock);
			if (!head)
				break;
			err = pln_job_wait(head, false);
			pln_job_put(head);
			if (err)
				break;
		}
	}
}

/* ---- lanes ---- */

static void dep_ref(const struct pln_dep *dep)
{
	pln_job_ref(dep->job);
	if (dep->shared)
		pln_shared_ref(dep->shared);
	pln_call_ref(dep->call);
}

static void dep_put(struct pln_dep *dep)
{
	pln_job_put(dep->job);
	pln_shared_put(dep->shared);
	pln_call_put(dep->call);
}

void pln_lane_clear(struct pln_lane *lane)
{
	for (size_t i = 0; i < lane->nr_deps; i++)
		dep_put(&lane->deps[i]);
	free(lane->deps);
	lane->deps = NULL;
	lane->nr_deps = 0;
	pln_job_put(lane->last);
	lane->last = NULL;
}

static CUresult lane_add_dep(struct pln_lane *lane, const struct pln_dep *dep)
{
	struct pln_dep *deps;

	deps = realloc(lane->deps, (lane->nr_deps + 1) * sizeof(*deps));
	if (!deps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lane->deps = deps;
	deps[lane->nr_deps] = *dep;
	dep_ref(dep);
	lane->nr_deps++;
	return CUDA_SUCCESS;
}

static CUresult dep_wait(struct pln_dep *dep, bool block)
{
	CUresult err = CUDA_SUCCESS;

	if (dep->job)
		err = pln_job_wait(dep->job, block);
	if (!err && dep->shared)
		err = pln_shared_wait(dep->shared, dep->number, block);
	if (!err && dep->call)
		err = pln_call_wait(dep->call, block);
	return err;
}

/* A dependency stays in the list until it has ended, for other threads' sake */
static CUresult lane_settle(struct pln_lane *lane, bool block)
{
	struct pln_dep dep;
	CUresult err;
	bool more;

	for (;;) {
		pthread_mutex_lock(&pln.lock);
		more = lane->nr_deps;
		if (more) {
			dep = lane->deps[0];
			dep_ref(&dep);
		}
		pthread_mutex_unlock(&pln.lock);
		if (!more)
			return CUDA_SUCCESS;
		err = dep_wait(&dep, block);
		if (err) {
			dep_put(&dep);
			return err;
		}
		pthread_mutex_lock(&pln.lock);
		for (size_t i = 0; i < lane->nr_deps; i++) {
			struct pln_dep *d = &lane->deps[i];

			if (d->job != dep.job || d->shared != dep.shared ||
			    d->number != dep.number || d->call != dep.call)
				continue;
			*d = lane->deps[--lane->nr_deps];
			dep_put(&dep);
			break;
		}
		pthread_mutex_unlock(&pln.lock);
		dep_put(&dep);
	}
}

/*
 * Queue @n operations as one job of @stream.  Its error goes to @sink, or to
 * the stream when @sink is NULL.  @out may be NULL.
 */
CUresult pln_submit(CUstream stream, struct pln_sink *sink,
		    struct pln_gpu_op *ops, unsigned int n,
		    struct pln_job **out)
{
	struct pln_file *file = stream->ctx->file;
	struct pln_lane *lane = stream->lane;
	struct pln_gpu_submit submit = {
		.ops = (uintptr_t)ops,
		.nr_ops = n,
		.queue = lane->queue,
	};
	uint64_t deadline = pln_now() + WAIT_LIMIT_NS;
	struct pln_job *job;
	CUresult err;
	int error = 0;

	err = lane_settle(lane, true);
	if (err)
		return err;
	job = calloc(1, sizeof(*job));
	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_init(&job->refs, 2);		/* the list's and ours */
	pthread_mutex_init(&job->lock, NULL);
	job->file = pln_file_ref(file);
	job->sink = pln_sink_ref(sink ? sink : stream->sink);
	job->queue = lane->queue;

	pthread_mutex_lock(&file->submit_lock);
	while (pln_io_ioctl(file->fd, PLN_GPU_IOC_SUBMIT, &submit)) {
		struct pln_job *oldest = NULL;

		error = errno;
		if (error == EINTR)
			continue;
		if (error != EAGAIN || pln_now() > deadline)
			break;
		/* Too many jobs: let the oldest of some queue end */
		pthread_mutex_lock(&file->jobs_lock);
		for (unsigned int q = 0; q < file->num_queues && !oldest; q++)
			oldest = pln_job_ref(TAILQ_FIRST(&file->queue[q]));
		pthread_mutex_unlock(&file->jobs_lock);
		if (!oldest)
			break;
		err = pln_job_wait(oldest, true);
		pln_job_put(oldest);
		if (err)
			break;
		error = 0;
	}
	if (error) {
		pthread_mutex_unlock(&file->submit_lock);
		atomic_store(&job->refs, 1);
		pln_job_put(job);
		return err ? err : pln_file_error(file, error);
	}
	job->id = submit.job;
	pthread_mutex_lock(&file->jobs_lock);
	TAILQ_INSERT_TAIL(&file->queue[job->queue], job, link);
	pthread_mutex_unlock(&file->jobs_lock);
	pln_job_put(stream->last);
	stream->last = pln_job_ref(job);
	pln_job_put(lane->last);
	lane->last = pln_job_ref(job);
	pthread_mutex_unlock(&file->submit_lock);

	reap(file);
	if (out)
		*out = job;
	else
		pln_job_put(job);
	return CUDA_SUCCESS;
}

/* The job that ends last of all that @stream has to wait for; a reference */
static struct pln_job *stream_tail(CUstream stream)
{
	struct pln_file *file = stream->ctx->file;
	struct pln_job *job;

	pthread_mutex_lock(&file->submit_lock);
	job = stream == stream->ctx->legacy ? stream->lane->last : stream->last;
	pln_job_ref(job);
	pthread_mutex_unlock(&file->submit_lock);
	return job;
}

CUresult pln_stream_call(CUstream stream, struct pln_call *call,
			 struct pln_job **job)
{
	struct pln_dep dep = { .call = call };
	CUresult err = lane_settle(stream->lane, true);

	if (err)
		return err;
	*job = stream_tail(stream);
	pthread_mutex_lock(&pln.lock);
	err = lane_add_dep(stream->lane, &dep);
	pthread_mutex_unlock(&pln.lock);
	return err;
}

static CUresult stream_end(CUstream stream, bool block)
{
	struct pln_job *tail;
	CUresult err;

	err = lane_settle(stream->lane, block);
	if (err)
		return err;
	tail = stream_tail(stream);
	if (tail)
		err = pln_job_wait(tail, block);
	pln_job_put(tail);
	if (err)
		return err;
	err = pln_ctx_state(stream->ctx);
	if (err)
		return err;
	return (CUresult)atomic_exchange(&stream->sink->err, 0);
}

CUresult pln_stream_wait(CUstream stream)
{
	return stream_end(stream, true);
}

/* ---- streams ---- */

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
		err = pln_ready();
		if (err)
			return err;
		pthread_mutex_lock(&pln.lock);
		stream = pln_obj_find(handle, PLN_STREAM);
		pthread_mutex_unlock(&pln.lock);
		if (!stream)
			return CUDA_ERROR_INVALID_HANDLE;
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
	stream = handle ? pln_obj_find(handle, PLN_STREAM) : NULL;
	if (stream) {
		pln_obj_del(&stream->obj);
		LIST_REMOVE(stream, link);
	}
	pthread_mutex_unlock(&pln.lock);
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pln_obj_put(&stream->obj);	/* the table's */
	pln_obj_put(&stream->obj);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = stream_end(stream, true);
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamQuery(CUstream handle)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	err = stream_end(stream, false);
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (priority)
		*priority = stream->priority;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (flags)
		*flags = stream->flags;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (id)
		*id = stream->id;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (ctx)
		*ctx = stream->ctx;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

/* There are no green contexts */
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *ctx, CUgreenCtx *green)
{
	CUresult err = cuStreamGetCtx(handle, ctx);

	if (!err && green)
		*green = NULL;
	return err;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *dev)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (dev)
		*dev = stream->ctx->dev->ordinal;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (status)
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_obj_put(&stream->obj);
	return err;
}

/* ---- events ---- */

void pln_event_free(struct CUevent_st *event)
{
	if (event->words && !atomic_load(&event->ctx->destroyed))
		pln_device_free(event->words);
	pln_shared_put(event->shared);
	pln_job_put(event->job);
	pln_ctx_put(event->ctx);
	free(event);
}

CUresult pln_event_get(CUevent handle, CUevent *out)
{
	CUevent event;
	CUresult err = pln_ready();

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	event = handle ? pln_obj_find(handle, PLN_EVENT) : NULL;
	pthread_mutex_unlock(&pln.lock);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = event;
	return CUDA_SUCCESS;
}

/* Takes over @shared, whatever the outcome; NULL: see @flags */
CUresult pln_event_new(CUcontext ctx, unsigned int flags,
		       struct pln_shared *shared, CUevent *out)
{
	CUevent event = calloc(1, sizeof(*event));
	CUresult err = CUDA_SUCCESS;

	if (!event) {
		pln_shared_put(shared);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->obj.type = PLN_EVENT;
	atomic_init(&event->obj.refs, 1);
	atomic_fetch_add(&ctx->obj.refs, 1);
	event->ctx = ctx;
	event->flags = flags;
	event->shared = shared;
	if ((flags & CU_EVENT_INTERPROCESS) && !shared)
		err = pln_shared_new(event);
	pthread_mutex_lock(&pln.lock);
	if (!err)
		err = atomic_load(&ctx->destroyed) ?
		      CUDA_ERROR_CONTEXT_IS_DESTROYED :
		      pln_obj_add(&event->obj);
	if (!err)
		LIST_INSERT_HEAD(&ctx->events, event, link);
	pthread_mutex_unlock(&pln.lock);
	if (err)
		pln_obj_put(&event->obj);
	else
		*out = event;
	return err;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

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
		err = pln_event_new(ctx, flags, NULL, out);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
	CUevent event;
	CUresult err = pln_ready();

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	event = handle ? pln_obj_find(handle, PLN_EVENT) : NULL;
	if (event) {
		pln_obj_del(&event->obj);
		LIST_REMOVE(event, link);
	}
	pthread_mutex_unlock(&pln.lock);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pln_obj_put(&event->obj);	/* the table's */
	pln_obj_put(&event->obj);
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle,
				unsigned int flags)
{
	struct pln_job *job, *old;
	CUstream stream;
	CUevent event;
	CUresult err;

	err = pln_event_get(handle, &event);
	if (err)
		return err;
	err = pln_stream_get(stream_handle, NULL, &stream);
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
	err = lane_settle(stream->lane, true);
	if (err)
		goto out_stream;
	if (event->shared) {
		err = pln_shared_record(event, stream, &job);
		if (err)
			goto out_stream;
	} else {
		job = stream_tail(stream);
	}
	if (job)
		pln_job_wait(job, false);
	pthread_mutex_lock(&pln.lock);
	old = event->job;
	event->job = job;
	event->recorded = true;
	event->t_record = pln_now();
	pthread_mutex_unlock(&pln.lock);
	pln_job_put(old);
out_stream:
	pln_obj_put(&stream->obj);
out_event:
	pln_obj_put(&event->obj);
	return err;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

/* Has what @event recorded ended?  @t: when, @recorded: was there anything */
static CUresult event_end(CUevent event, bool block, bool *recorded,
			  uint64_t *t)
{
	struct pln_job *job;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&pln.lock);
	*recorded = event->recorded;
	*t = event->t_record;
	job = pln_job_ref(event->job);
	pthread_mutex_unlock(&pln.lock);
	if (job) {
		err = pln_job_wait(job, block);
		if (!err) {
			err = job->err;
			if (job->t_done > *t)
				*t = job->t_done;
		}
	}
	if (!err && event->shared)
		err = pln_shared_wait(event->shared,
				      pln_shared_last(event->shared), block);
	pln_job_put(job);
	return err;
}

static CUresult event_ask(CUevent handle, bool block)
{
	bool recorded;
	CUevent event;
	uint64_t t;
	CUresult err = pln_event_get(handle, &event);

	if (err)
		return err;
	err = pln_ctx_state(event->ctx);
	if (!err)
		err = event_end(event, block, &recorded, &t);
	pln_obj_put(&event->obj);
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

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	bool recorded[2] = { false, false };
	CUevent event[2] = { NULL, NULL };
	CUevent handle[2] = { start, end };
	uint64_t t[2] = { 0, 0 };
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 2 && !err; i++)
		err = pln_event_get(handle[i], &event[i]);
	for (int i = 0; i < 2 && !err; i++) {
		if (event[i]->flags & CU_EVENT_DISABLE_TIMING)
			err = CUDA_ERROR_INVALID_HANDLE;
		else
			err = event_end(event[i], false, &recorded[i], &t[i]);
		if (!err && !recorded[i])
			err = CUDA_ERROR_INVALID_HANDLE;
	}
	if (!err && event[0]->ctx->dev != event[1]->ctx->dev)
		err = CUDA_ERROR_INVALID_HANDLE;
	if (!err)
		*ms = (float)((double)(int64_t)(t[1] - t[0]) / 1e6);
	for (int i = 0; i < 2; i++)
		if (event[i])
			pln_obj_put(&event[i]->obj);
	return err;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle,
			   unsigned int flags)
{
	struct pln_dep dep = { 0 };
	CUstream stream;
	CUevent event;
	CUresult err;

	err = pln_stream_get(stream_handle, NULL, &stream);
	if (err)
		return err;
	err = pln_event_get(handle, &event);
	if (err)
		goto out_stream;
	if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (flags)
		err = CUDA_ERROR_ILLEGAL_STATE;	/* only while capturing */
	if (err)
		goto out_event;
	pthread_mutex_lock(&pln.lock);
	dep.job = pln_job_ref(event->job);
	pthread_mutex_unlock(&pln.lock);
	if (event->shared) {
		dep.shared = event->shared;
		dep.number = pln_shared_last(dep.shared);
	} else if (dep.job && dep.job->file == stream->ctx->file &&
		   dep.job->queue == stream->lane->queue) {
		pln_job_put(dep.job);	/* the queue is in order */
		dep.job = NULL;
	}
	if ((dep.job || dep.shared) &&
	    dep_wait(&dep, false) == CUDA_ERROR_NOT_READY) {
		pthread_mutex_lock(&pln.lock);
		err = lane_add_dep(stream->lane, &dep);
		pthread_mutex_unlock(&pln.lock);
	}
	pln_job_put(dep.job);
out_event:
	pln_obj_put(&event->obj);
out_stream:
	pln_obj_put(&stream->obj);
	return err;
}

/* Names of programs built with per-thread default streams */
PLN_ALIAS(cuStreamGetPriority, cuStreamGetPriority_ptsz);
PLN_ALIAS(cuStreamGetFlags, cuStreamGetFlags_ptsz);
PLN_ALIAS(cuStreamGetId, cuStreamGetId_ptsz);
PLN_ALIAS(cuStreamGetCtx, cuStreamGetCtx_ptsz);
PLN_ALIAS(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz);
PLN_ALIAS(cuStreamGetDevice, cuStreamGetDevice_ptsz);
PLN_ALIAS(cuStreamWaitEvent, cuStreamWaitEvent_ptsz);
PLN_ALIAS(cuStreamIsCapturing, cuStreamIsCapturing_ptsz);
PLN_ALIAS(cuStreamQuery, cuStreamQuery_ptsz);
PLN_ALIAS(cuStreamSynchronize, cuStreamSynchronize_ptsz);
PLN_ALIAS(cuEventRecord, cuEventRecord_ptsz);
PLN_ALIAS(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz);
