// SPDX-License-Identifier: MIT
/*
 * Jobs, and the order that they run in.
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
		if (ended) {
			/* The time is the next one's */
			deadline = pln_now() + WAIT_LIMIT_NS;
		} else if (pln_now() > deadline) {
			pln_log("device %d: a job has not ended for 120 s",
				file->dev->ordinal);
			return CUDA_ERROR_LAUNCH_TIMEOUT;
		}
	}
	return CUDA_SUCCESS;
}

/* Wait for every job submitted until now */
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
	pln_job_put(lane->legacy);
	lane->legacy = NULL;
}

CUresult pln_lane_depend(struct pln_lane *lane, const struct pln_dep *dep)
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

CUresult pln_dep_wait(struct pln_dep *dep, bool block)
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
CUresult pln_lane_settle(struct pln_lane *lane, bool block)
{
	CUresult err, all = CUDA_SUCCESS;
	struct pln_dep dep;
	size_t at = 0;		/* those before it have not ended */
	bool more;

	for (;;) {
		pthread_mutex_lock(&pln.lock);
		more = at < lane->nr_deps;
		if (more) {
			dep = lane->deps[at];
			dep_ref(&dep);
		}
		pthread_mutex_unlock(&pln.lock);
		if (!more)
			return all;
		err = pln_dep_wait(&dep, block);
		if (err == CUDA_ERROR_NOT_READY) {
			all = err;
			at++;
			dep_put(&dep);
			continue;
		}
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

	err = pln_lane_settle(lane, true);
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
		deadline = pln_now() + WAIT_LIMIT_NS;
		error = 0;
	}
	if (error) {
		pthread_mutex_unlock(&file->submit_lock);
		atomic_store(&job->refs, 1);
		pln_job_put(job);
		return err ? err : pln_file_error(file, error);
	}
	job->id = submit.job;
	job->seq = ++file->submitted;
	pthread_mutex_lock(&file->jobs_lock);
	TAILQ_INSERT_TAIL(&file->queue[job->queue], job, link);
	pthread_mutex_unlock(&file->jobs_lock);
	pln_job_put(stream->last);
	stream->last = pln_job_ref(job);
	pln_job_put(lane->last);
	lane->last = pln_job_ref(job);
	if (stream == stream->ctx->legacy) {
		pln_job_put(lane->legacy);
		lane->legacy = pln_job_ref(job);
	}
	pthread_mutex_unlock(&file->submit_lock);

	reap(file);
	if (out)
		*out = job;
	else
		pln_job_put(job);
	return CUDA_SUCCESS;
}

/* Of two jobs of one queue, or none, the one that ends last */
static struct pln_job *later(struct pln_job *a, struct pln_job *b)
{
	return !a || (b && b->seq > a->seq) ? b : a;
}

/*
 * A queue is in order, so what the stream does next needs no dependency.  But
 * whoever asks whether the stream is done, or joins it, asks for @job, too.
 */
void pln_stream_follow(CUstream stream, struct pln_job *job)
{
	struct pln_file *file = stream->ctx->file;
	struct pln_job *old = NULL;

	pthread_mutex_lock(&file->submit_lock);
	if (later(stream->last, job) == job && stream->last != job) {
		old = stream->last;
		stream->last = pln_job_ref(job);
	}
	pthread_mutex_unlock(&file->submit_lock);
	pln_job_put(old);
}

/* The job that ends last of all that @stream has to wait for; a reference */
static struct pln_job *stream_tail(CUstream stream)
{
	struct pln_file *file = stream->ctx->file;
	struct pln_job *job;

	pthread_mutex_lock(&file->submit_lock);
	/* In its lane, work of the default stream comes before what follows */
	if (stream == stream->ctx->legacy)
		job = stream->lane->last;
	else
		job = later(stream->last, stream->lane->legacy);
	pln_job_ref(job);
	pthread_mutex_unlock(&file->submit_lock);
	return job;
}

CUresult pln_stream_mark(CUstream stream, struct pln_job **job)
{
	CUresult err = pln_lane_settle(stream->lane, true);

	if (!err)
		*job = stream_tail(stream);
	return err;
}

CUresult pln_lane_wait_for(CUstream stream, struct pln_job *job)
{
	struct pln_dep dep = { .job = job };

	return pln_lane_depend(stream->lane, &dep);
}

CUresult pln_stream_call(CUstream stream, struct pln_call *call,
			 struct pln_job **job)
{
	struct pln_dep dep = { .call = call };
	CUresult err = pln_stream_mark(stream, job);

	if (err)
		return err;
	dep.job = *job;		/* which has its own time to end */
	pthread_mutex_lock(&pln.lock);
	err = pln_lane_depend(stream->lane, &dep);
	pthread_mutex_unlock(&pln.lock);
	return err;
}

CUresult pln_stream_end(CUstream stream, bool block)
{
	struct pln_job *tail;
	CUresult err;

	err = pln_lane_settle(stream->lane, block);
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
	return pln_stream_end(stream, true);
}

/* ---- waiting for all of it ---- */

/*
 * pln.lock is held: have @to wait for what @lane waits for, or for functions of
 * the program only
 */
static CUresult lane_add(struct pln_lane *to, const struct pln_lane *lane,
			 bool calls)
{
	CUresult err = CUDA_SUCCESS;

	for (size_t i = 0; i < lane->nr_deps && !err; i++)
		if (!calls || lane->deps[i].call)
			err = pln_lane_depend(to, &lane->deps[i]);
	return err;
}

/* pln.lock is held: have @to wait for what all streams of @ctx wait for */
static CUresult ctx_add(struct pln_lane *to, CUcontext ctx, bool calls)
{
	CUresult err = lane_add(to, &ctx->lane, calls);
	CUstream stream;

	if (!err)
		err = lane_add(to, &ctx->left, calls);
	LIST_FOREACH(stream, &ctx->streams, link)
		if (!err)
			err = lane_add(to, &stream->own_lane, calls);
	return err;
}

CUresult pln_stream_leave(CUstream stream)
{
	return lane_add(&stream->ctx->left, &stream->own_lane, false);
}

/* Functions of the program and awaited events first, then jobs: all of @ctx's */
CUresult pln_ctx_drain(CUcontext ctx)
{
	struct pln_lane all = { 0 };
	CUresult err, drained;

	pthread_mutex_lock(&pln.lock);
	err = ctx_add(&all, ctx, false);
	pthread_mutex_unlock(&pln.lock);
	if (!err)
		err = pln_lane_settle(&all, true);
	pln_lane_clear(&all);
	drained = pln_file_drain(ctx->file);
	if (!err && !drained) {
		/* Forget it; something new may have come */
		pln_lane_settle(&ctx->lane, false);
		pln_lane_settle(&ctx->left, false);
	}
	return err ? err : drained;
}

/*
 * Before memory is given back that is @file's, or page-locked in a context of
 * it.  Functions of the program are waited for that are called in such contexts;
 * of jobs those of every GPU: its engine reaches page-locked memory, and that
 * of a peer.  Awaited events are not: what follows one is not submitted yet, and
 * what another process records may never end.
 */
CUresult pln_drain(struct pln_file *file)
{
	struct pln_file *files[PLN_MAX_DEVICES + 1];
	struct pln_lane all = { 0 };
	CUresult err = CUDA_SUCCESS;
	CUcontext ctx;
	int n = 0;

	pthread_mutex_lock(&pln.lock);
	LIST_FOREACH(ctx, &file->dev->contexts, link)
		if (!err && ctx->file == file)
			err = ctx_add(&all, ctx, true);
	for (int i = 0; i < pln.nr_devices; i++)
		if (pln.devices[i].file && pln.devices[i].file != file)
			files[n++] = pln_file_ref(pln.devices[i].file);
	files[n++] = pln_file_ref(file);
	pthread_mutex_unlock(&pln.lock);
	if (!err)
		err = pln_lane_settle(&all, true);
	pln_lane_clear(&all);
	for (int i = 0; i < n; i++) {
		CUresult drained = pln_file_drain(files[i]);

		if (!err)
			err = drained;
		pln_file_put(files[i]);
	}
	return err;
}
