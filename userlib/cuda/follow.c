// SPDX-License-Identifier: MIT
/*
 * What a job of a stream follows: the stream's last one; for the default stream the
 * last ones of all blocking streams, and the other way round; what the stream was told
 * to wait for.
 */
#include <stdlib.h>
#include <string.h>

#include "order.h"

struct deps {
	const struct CUstream_st *stream;	/* or NULL: of none */
	struct drv_job *engine;		/* the last one in the stream's own queue */
	struct drv_job *few[8];
	struct drv_job **job;		/* others; no references */
	size_t n, room;
	bool failed;
};

/* Of two jobs of one queue, or none, the one that ends last */
static struct drv_job *later(struct drv_job *a, struct drv_job *b)
{
	return !a || (b && b->seq > a->seq) ? b : a;
}

static void add(struct deps *deps, struct drv_job *job)
{
	struct drv_job **more;

	if (!job || drv_is_done(job))
		return;
	if (deps->stream && atomic_load(&job->state) == DRV_JOB_QUEUED &&
	    job->file == deps->stream->ctx->file &&
	    job->queue == deps->stream->queue) {
		deps->engine = later(deps->engine, job);
		return;
	}
	for (size_t i = 0; i < deps->n; i++)
		if (deps->job[i] == job)
			return;
	if (deps->n == deps->room) {
		more = malloc(2 * deps->room * sizeof(*more));
		if (!more) {
			deps->failed = true;
			return;
		}
		memcpy(more, deps->job, deps->n * sizeof(*more));
		if (deps->job != deps->few)
			free(deps->job);
		deps->job = more;
		deps->room *= 2;
	}
	deps->job[deps->n++] = job;
}

static void deps_init(struct deps *deps, CUstream stream)
{
	deps->stream = stream;
	deps->engine = NULL;
	deps->job = deps->few;
	deps->room = sizeof(deps->few) / sizeof(deps->few[0]);
	deps->n = 0;
	deps->failed = false;
}

/* What the next job of @stream follows; drv.order is held */
static void collect(struct deps *deps, CUstream stream)
{
	CUcontext ctx = stream->ctx;
	struct drv_job *job;
	CUstream other;

	deps_init(deps, stream);
	add(deps, stream->last);
	if (stream->flags & CU_STREAM_NON_BLOCKING)
		return;
	add(deps, ctx->barrier);
	if (!stream->legacy)
		return;
	LIST_FOREACH(job, &ctx->left, left)
		add(deps, job);
	LIST_FOREACH(other, &ctx->streams, link)
		if (!(other->flags & CU_STREAM_NON_BLOCKING))
			add(deps, other->last);
}

static void deps_free(struct deps *deps)
{
	if (deps->job != deps->few)
		free(deps->job);
}

static struct drv_job **last_of(CUstream stream)
{
	return stream->legacy ? &stream->ctx->barrier : &stream->last;
}

/* Of streams that are gone nobody follows what has ended; nor, with @all, the rest */
static void drop_left(CUcontext ctx, bool all)
{
	struct drv_job *job, *next;

	for (job = LIST_FIRST(&ctx->left); job; job = next) {
		next = LIST_NEXT(job, left);
		if (!all && !drv_is_done(job))
			continue;
		LIST_REMOVE(job, left);
		job->is_left = false;
		drv_job_put(job);
	}
}

/* @job follows all that collect() has found */
static void set_last(CUstream stream, struct drv_job *job)
{
	struct drv_job **last = last_of(stream);

	if (stream->legacy)
		drop_left(stream->ctx, true);
	if (*last == job)
		return;
	drv_job_put(*last);
	*last = drv_job_ref(job);
}

void drv_ctx_forget(CUcontext ctx)
{
	pthread_mutex_lock(&drv.order);
	drop_left(ctx, true);
	drv_job_put(ctx->barrier);
	ctx->barrier = NULL;
	pthread_mutex_unlock(&drv.order);
}

/* @edge takes over the reference on @job */
static void follow(struct drv_job *waiter, struct drv_edge *edge,
		   struct drv_job *job)
{
	edge->waiter = waiter;
	edge->job = job;
	LIST_INSERT_HEAD(&job->waiters, edge, link);
	if (atomic_load(&job->state) == DRV_JOB_QUEUED)
		drv_watch_job(job);
}

static void make_pending(struct drv_job *job)
{
	job->number = ++drv_jobs.numbers;
	drv_job_ref(job);
	TAILQ_INSERT_TAIL(&drv_jobs.pending, job, link);
}

/*
 * @job, which is none of the engine's queue yet, follows @deps, and is pending.
 * drv.order is held.  On failure nothing has happened.
 */
static CUresult enter(struct drv_job *job, struct deps *deps)
{
	struct drv_job_fifo ended = STAILQ_HEAD_INITIALIZER(ended);
	bool engine = deps->engine && job->kind != DRV_JOB_ENGINE;
	size_t n = deps->n + engine;

	if (deps->failed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!drv_workers_ready())
		return CUDA_ERROR_OPERATING_SYSTEM;
	job->edges = n > 1 ? calloc(n, sizeof(*job->edges)) : &job->own_edge;
	if (!job->edges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++)
		follow(job, &job->edges[i],
		       drv_job_ref(i < deps->n ? deps->job[i] : deps->engine));
	job->nr_edges = job->unmet = n;
	make_pending(job);
	if (!n)
		drv_set_ready(job, &ended);
	return CUDA_SUCCESS;
}

static struct drv_job *job_of(CUstream stream, struct drv_sink *sink,
			      enum drv_job_kind kind)
{
	const struct drv_job like = {
		.kind = kind,
		.file = stream->ctx->file,
		.sink = sink ? sink : stream->sink,
		.fault = stream->ctx->fault,
		.ctx = stream->ctx->id,
		.stream = stream->id,
		.queue = stream->queue,
	};

	return drv_job_new(&like);
}

static struct drv_job *engine_job(CUstream stream, struct drv_sink *sink,
				  const struct pln_gpu_op *ops, unsigned int n)
{
	struct drv_job *job = job_of(stream, sink, DRV_JOB_ENGINE);

	if (!job)
		return NULL;
	memcpy(job->op, ops, n * sizeof(*ops));
	job->nr_ops = n;
	return job;
}

/*
 * @job is the stream's last one, and pending.  *@now: the kernel can have it, and the
 * caller is to submit it.  submit_lock is held.
 */
static CUresult try_enter(CUstream stream, struct drv_job *job, bool *now)
{
	CUresult err = CUDA_SUCCESS;
	struct deps deps;

	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	*now = !deps.n && !deps.failed;
	if (*now) {
		job->behind = drv_job_ref(deps.engine);
		make_pending(job);
		atomic_store(&job->state, DRV_JOB_READY);
	} else {
		err = enter(job, &deps);
	}
	if (!err)
		set_last(stream, job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return err;
}

/*
 * The kernel did not take @job.  Others may follow it by now: it does nothing, and ends
 * with what is before it.  What comes next in @stream follows that, and can be in the
 * kernel at once.
 */
static void withdraw(CUstream stream, struct drv_job *job)
{
	struct drv_job *behind = job->behind, **last = last_of(stream);

	pthread_mutex_lock(&drv.order);
	if (*last == job) {
		*last = drv_job_ref(behind);
		drv_job_put(job);
	}
	job->kind = DRV_JOB_JOIN;
	job->behind = NULL;
	if (behind && !drv_is_done(behind)) {
		atomic_store(&job->state, DRV_JOB_WAITING);
		job->edges = &job->own_edge;
		job->nr_edges = job->unmet = 1;
		follow(job, job->edges, behind);
	} else {
		drv_job_put(behind);
		drv_finish(job);
	}
	pthread_mutex_unlock(&drv.order);
}

/*
 * Takes over the reference on @job, which may be NULL.  @ordered: it follows what is in
 * the stream.
 */
static CUresult submit(CUstream stream, struct drv_job *job, bool ordered,
		       struct drv_job **out)
{
	struct drv_file *file = stream->ctx->file;
	CUresult err = CUDA_SUCCESS;
	bool now = true;

	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&file->submit_lock);
	if (ordered)
		err = try_enter(stream, job, &now);
	if (!err && now) {
		err = drv_submit_one(job, ordered ? job : NULL);
		if (err && ordered)
			withdraw(stream, job);
	}
	pthread_mutex_unlock(&file->submit_lock);
	if (!err)
		drv_reap(file);
	if (!err && out)
		*out = job;
	else
		drv_job_put(job);
	return err;
}

CUresult drv_submit(CUstream stream, struct drv_sink *sink,
		    const struct pln_gpu_op *ops, unsigned int n,
		    struct drv_job **out)
{
	return submit(stream, engine_job(stream, sink, ops, n), true, out);
}

CUresult drv_submit_record(CUstream stream, struct drv_shared *shared,
			   uint64_t number, const struct pln_gpu_op *ops,
			   unsigned int n, struct drv_job **out)
{
	struct drv_job *job = engine_job(stream, NULL, ops, n);

	if (job) {
		job->shared = drv_shared_ref(shared);
		job->recording = number;
	}
	return submit(stream, job, true, out);
}

CUresult drv_submit_staged(CUstream stream, struct drv_stage *stage,
			   const struct pln_gpu_op *op)
{
	struct drv_job *job = engine_job(stream, NULL, op, 1);

	if (job)
		job->stage = stage;
	else
		drv_stage_free(stage);
	return submit(stream, job, true, NULL);
}

CUresult drv_submit_now(CUstream stream, struct drv_sink *sink,
			const struct pln_gpu_op *op, struct drv_job **out)
{
	return submit(stream, engine_job(stream, sink, op, 1), false, out);
}

CUresult drv_submit_look(CUstream stream, struct drv_sink *sink,
			 const struct pln_gpu_op *op, struct drv_job **out)
{
	struct drv_job *job = engine_job(stream, sink, op, 1);

	if (job)
		job->look = true;
	return submit(stream, job, false, out);
}

CUresult drv_stream_work(CUstream stream, struct drv_sink *sink,
			 enum drv_use use, const struct drv_span *span,
			 CUresult (*work)(struct drv_job *job, void *arg),
			 void *arg, struct drv_job **out)
{
	struct drv_job *job = job_of(stream, sink, DRV_JOB_WORK);
	struct deps deps;
	CUresult err;

	if (!job)
		return CUDA_ERROR_OUT_OF_MEMORY;
	job->work = work;
	job->arg = arg;
	job->use = use;
	if (span)
		memcpy(job->span, span, sizeof(job->span));
	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	if (*last_of(stream) && drv_is_done(*last_of(stream)))
		job->before = (*last_of(stream))->err;
	err = enter(job, &deps);
	if (!err)
		set_last(stream, job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	if (!err && out)
		*out = job;
	else
		drv_job_put(job);
	return err;
}

/* A job that ends with all of @deps, a reference, or NULL: all have ended */
static CUresult joined(CUstream stream, struct deps *deps, struct drv_job **out)
{
	CUresult err;

	*out = NULL;
	if (!deps->failed && deps->n + !!deps->engine <= 1) {
		*out = drv_job_ref(deps->n ? deps->job[0] : deps->engine);
		/* What waits for the context must find that it is awaited */
		if (!*out || (*out)->ctx == stream->ctx->id)
			return CUDA_SUCCESS;
		drv_job_put(*out);
	}
	*out = job_of(stream, NULL, DRV_JOB_JOIN);
	err = *out ? enter(*out, deps) : CUDA_ERROR_OUT_OF_MEMORY;
	if (err) {
		drv_job_put(*out);
		*out = NULL;
	}
	return err;
}

CUresult drv_stream_mark(CUstream stream, struct drv_job **job)
{
	struct deps deps;
	CUresult err;

	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	err = joined(stream, &deps, job);
	if (!err && *job && stream->legacy)
		set_last(stream, *job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return err;
}

/*
 * A job that ends with all of @deps.  No stream follows it that would be held up by it,
 * and no context waits for it: it is nobody's.
 */
static CUresult joined_apart(struct drv_file *file, struct deps *deps,
			     struct drv_job **out)
{
	const struct drv_job like = { .kind = DRV_JOB_JOIN, .file = file };
	CUresult err;

	*out = drv_job_new(&like);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*out)->stray = true;
	err = enter(*out, deps);
	if (err) {
		drv_job_put(*out);
		*out = NULL;
	}
	return err;
}

CUresult drv_range_mark(const struct drv_range *range, struct drv_job **job)
{
	struct drv_file *file = NULL;
	CUresult err = CUDA_SUCCESS;
	struct drv_job *other;
	struct deps deps;

	*job = NULL;
	pthread_mutex_lock(&drv.order);
	deps_init(&deps, NULL);
	TAILQ_FOREACH(other, &drv_jobs.pending, link)
		if (drv_job_uses_range(other, range))
			add(&deps, other);
	while ((file = drv_file_next(file)))
		for (unsigned int q = 0; q < file->num_queues; q++)
			TAILQ_FOREACH(other, &file->queue[q], link)
				if (drv_job_uses_range(other, range))
					add(&deps, other);
	if (deps.n || deps.failed)
		err = joined_apart(range->chunk->file, &deps, job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return err;
}

CUresult drv_stream_mark_all(CUstream stream, struct drv_job **job)
{
	struct drv_file *file = NULL;
	struct drv_job *other;
	CUresult err = CUDA_SUCCESS;
	struct deps deps;

	*job = NULL;
	pthread_mutex_lock(&drv.order);
	if (!drv_jobs.strays) {
		pthread_mutex_unlock(&drv.order);
		return drv_stream_mark(stream, job);
	}
	collect(&deps, stream);
	while ((file = drv_file_next(file)))
		for (unsigned int q = 0; q < file->num_queues; q++)
			TAILQ_FOREACH(other, &file->queue[q], link)
				if (other->stray)
					add(&deps, other);
	err = joined_apart(stream->ctx->file, &deps, job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return err;
}

bool drv_stream_held(CUstream stream)
{
	struct deps deps;
	bool held;

	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	held = deps.n;
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return held;
}

/* Has all ended that the next job of @stream would follow?  No job is made. */
static CUresult stream_ask(CUstream stream)
{
	CUresult err = CUDA_SUCCESS;
	struct deps deps;

	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	for (size_t i = 0; i < deps.n; i++)
		drv_job_ref(deps.job[i]);
	drv_job_ref(deps.engine);
	pthread_mutex_unlock(&drv.order);
	if (deps.failed)
		err = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < deps.n; i++) {
		if (!err)
			err = drv_job_wait(deps.job[i], false);
		drv_job_put(deps.job[i]);
	}
	if (!err && deps.engine)
		err = drv_job_wait(deps.engine, false);
	drv_job_put(deps.engine);
	deps_free(&deps);
	return err;
}

/*
 * What a question about @stream is for: a blocking stream has not done more when
 * it has to wait for the default stream only.
 */
static CUresult tail_of(CUstream stream, struct drv_job **job)
{
	struct deps deps;
	CUresult err = CUDA_SUCCESS;

	pthread_mutex_lock(&drv.order);
	if (stream->legacy) {
		collect(&deps, stream);
		err = joined(stream, &deps, job);
		deps_free(&deps);
	} else {
		*job = drv_job_ref(stream->last);
	}
	pthread_mutex_unlock(&drv.order);
	return err;
}

struct drv_job *drv_stream_left(CUstream stream, struct drv_job **left)
{
	struct drv_job *last, *both = NULL;
	CUresult err = CUDA_SUCCESS;
	struct deps deps;

	pthread_mutex_lock(&drv.order);
	last = drv_job_ref(*last_of(stream));
	if (!last || !left) {
		pthread_mutex_unlock(&drv.order);
		return last;
	}
	deps_init(&deps, NULL);
	/* What the same stream left before ends before */
	if (*left && ((*left)->stream != stream->id || last->stream != stream->id))
		add(&deps, *left);
	add(&deps, last);
	if (deps.n > 1)
		err = joined_apart(stream->ctx->file, &deps, &both);
	else if (deps.n)
		both = drv_job_ref(deps.job[0]);
	if (!err) {
		drv_job_put(*left);
		*left = both;
		drv_job_put(last);
		last = NULL;
	}
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return last;
}

CUresult drv_stream_follow(CUstream stream, struct drv_job *other)
{
	struct drv_job *job;
	struct deps deps;
	CUresult err;

	if (!other || !drv_job_wait(other, false))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&drv.order);
	collect(&deps, stream);
	add(&deps, other);
	err = joined(stream, &deps, &job);
	if (!err && job)
		set_last(stream, job);
	drv_job_put(job);
	pthread_mutex_unlock(&drv.order);
	deps_free(&deps);
	return err;
}

bool drv_stream_behind(CUstream stream, struct drv_job *job)
{
	return job->stream == stream->id ||
	       (atomic_load(&job->state) >= DRV_JOB_QUEUED &&
		job->kind == DRV_JOB_ENGINE &&
		job->file == stream->ctx->file && job->queue == stream->queue);
}

void drv_stream_leave(CUstream stream)
{
	CUcontext ctx = stream->ctx;
	struct drv_job *last;

	pthread_mutex_lock(&drv.order);
	LIST_REMOVE(stream, link);
	drop_left(ctx, false);
	last = stream->last;
	if (last && !(stream->flags & CU_STREAM_NON_BLOCKING) &&
	    !drv_is_done(last) && !last->is_left) {
		drv_job_ref(last);
		LIST_INSERT_HEAD(&ctx->left, last, left);
		last->is_left = true;
	}
	drv_sink_forward(stream->sink, ctx->gone);
	pthread_mutex_unlock(&drv.order);
}

CUresult drv_stream_end(CUstream stream, bool block)
{
	struct drv_job *tail = NULL;
	CUresult err = stream->legacy && !block ? stream_ask(stream) :
						  tail_of(stream, &tail);

	if (!err && tail)
		err = drv_job_wait(tail, block);
	drv_job_put(tail);
	if (err)
		return err;
	err = drv_ctx_state(stream->ctx);
	if (err)
		return err;
	return (CUresult)atomic_exchange(&stream->sink->err, 0);
}

CUresult drv_stream_wait(CUstream stream)
{
	return drv_stream_end(stream, true);
}
