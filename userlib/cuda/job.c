// SPDX-License-Identifier: MIT
/*
 * Jobs: what they are, and what happens when one ends.
 *
 * A job is what a stream does: work of the engine, work of a thread of the
 * library (functions of the program, waits for a value or for another process),
 * or a join, which does nothing.  When it is submitted it is noted which jobs it
 * follows: follow.c.
 *
 * The kernel runs the jobs of one engine queue in order.  So work of the engine
 * goes to the kernel at once when all that it follows has ended or is in the
 * same queue: the usual case, since all blocking streams of a context use one.
 * Other jobs are pending in the library.  Whoever notices the end of a job
 * releases what follows it; work of the engine is then submitted by a thread of the
 * library, one for each GPU (submit.c), other work is begun by a thread of its own.
 * The end of a job in the kernel is noticed by who waits for it (wait.c), and by a
 * thread of the library when something follows it.
 *
 * No cycle is possible: a job follows earlier ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "order.h"

/* Of the device's error codes, those that speak of an address */
#define DEV_ERR_ALIGN	6
#define DEV_ERR_RANGE	7
#define DEV_ERR_BUS	8

struct drv_jobs drv_jobs = {
	.pending = TAILQ_HEAD_INITIALIZER(drv_jobs.pending),
};

void drv_order_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&drv_jobs.change, &attr);
	pthread_condattr_destroy(&attr);
}

struct drv_sink *drv_sink_new(void)
{
	struct drv_sink *sink = calloc(1, sizeof(*sink));

	if (sink)
		atomic_init(&sink->refs, 1);
	return sink;
}

struct drv_sink *drv_sink_ref(struct drv_sink *sink)
{
	if (sink)
		atomic_fetch_add(&sink->refs, 1);
	return sink;
}

void drv_sink_put(struct drv_sink *sink)
{
	if (!sink || atomic_fetch_sub(&sink->refs, 1) != 1)
		return;
	drv_sink_put(sink->forward);
	free(sink);
}

struct drv_job *drv_job_ref(struct drv_job *job)
{
	if (job)
		atomic_fetch_add(&job->refs, 1);
	return job;
}

void drv_job_put(struct drv_job *job)
{
	if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
		return;
	for (size_t i = 0; i < job->nr_edges; i++)
		drv_job_put(job->edges[i].job);
	if (job->edges != &job->own_edge)
		free(job->edges);
	drv_job_put(job->behind);
	pthread_mutex_destroy(&job->lock);
	drv_stage_free(job->stage);
	drv_sink_put(job->sink);
	drv_sink_put(job->fault);
	drv_shared_put(job->shared);
	drv_file_put(job->file);
	free(job);
}

static CUresult job_error(struct drv_job *job, int status, uint32_t code)
{
	CUresult err;

	if (!status)
		return CUDA_SUCCESS;
	err = drv_file_error(job->file, -status);
	if (!code || err == CUDA_ERROR_DEVICE_UNAVAILABLE)
		return err;
	drv_log("device %d: the engine failed a job, error code %u",
		job->file->dev->ordinal, code);
	if (code == DEV_ERR_ALIGN || code == DEV_ERR_RANGE ||
	    code == DEV_ERR_BUS)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return CUDA_ERROR_LAUNCH_FAILED;
}

struct drv_job *drv_job_new(const struct drv_job *like)
{
	struct drv_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	atomic_init(&job->refs, 1);
	atomic_init(&job->state, DRV_JOB_WAITING);
	pthread_mutex_init(&job->lock, NULL);
	LIST_INIT(&job->waiters);
	job->kind = like->kind;
	job->file = drv_file_ref(like->file);
	job->sink = drv_sink_ref(like->sink);
	job->fault = drv_sink_ref(like->fault);
	job->ctx = like->ctx;
	job->stream = like->stream;
	job->queue = like->queue;
	return job;
}

/* ---- the end of jobs; drv.order is held ---- */

static __thread bool is_watcher;

bool drv_is_watcher(void)
{
	return is_watcher;
}

static void watch_run(void *arg)
{
	struct drv_watch *watch = arg;
	struct drv_file *file = watch->file;
	struct drv_job *job;

	is_watcher = true;
	for (;;) {
		pthread_mutex_lock(&drv.order);
		job = watch->upto;
		watch->upto = NULL;
		if (!job) {
			watch->active = false;
			file->helpers--;
			pthread_cond_broadcast(&drv_jobs.change);
			/* Whoever waits for us has a reference */
			drv_file_put(file);
			pthread_mutex_unlock(&drv.order);
			is_watcher = false;
			return;
		}
		pthread_mutex_unlock(&drv.order);
		while (!drv_is_done(job))
			drv_job_wait(job, true);
		drv_job_put(job);
	}
}

void drv_watch_job(struct drv_job *job)
{
	struct drv_watch *watch = &job->file->watch[job->queue];

	if (watch->upto && watch->upto->seq >= job->seq)
		return;
	drv_job_put(watch->upto);
	watch->upto = drv_job_ref(job);
	if (watch->active)
		return;
	watch->active = true;
	watch->file = drv_file_ref(job->file);
	watch->task = (struct drv_task){ .run = watch_run, .arg = watch };
	job->file->helpers++;
	drv_task_start(&watch->task, DRV_TASK_HELP);
}

static void work_end(void *arg)
{
	struct drv_job *job = arg;

	/* Without an answer it ended with the last of what it followed */
	drv_file_time(job->file, &job->t_done);
	pthread_mutex_lock(&drv.order);
	TAILQ_REMOVE(&drv_jobs.pending, job, link);
	drv_finish(job);
	pthread_mutex_unlock(&drv.order);
}

/* Also when a function of the program ends the thread */
static void work_run(void *arg)
{
	struct drv_job *job = arg;

	pthread_cleanup_push(work_end, job);
	job->err = job->work(job, job->arg);
	pthread_cleanup_pop(1);
}

void drv_set_ready(struct drv_job *job, struct drv_job_fifo *ended)
{
	atomic_store(&job->state, DRV_JOB_READY);
	switch (job->kind) {
	case DRV_JOB_JOIN:
		STAILQ_INSERT_TAIL(ended, job, next);
		break;
	case DRV_JOB_WORK:
		job->task = (struct drv_task){ .run = work_run, .arg = job };
		drv_task_start(&job->task, DRV_TASK_WORK);
		break;
	case DRV_JOB_ENGINE:
		drv_dispatch_job(job);
		break;
	}
}

/* Does @waiter follow @job, which is in the kernel, by being in its queue? */
static bool same_queue(const struct drv_job *waiter, const struct drv_job *job)
{
	return waiter->kind == DRV_JOB_ENGINE && waiter->file == job->file &&
	       waiter->queue == job->queue;
}

static void drop_edge(struct drv_edge *edge, struct drv_job_fifo *ended)
{
	struct drv_job *waiter = edge->waiter, *job = edge->job;

	LIST_REMOVE(edge, link);
	edge->job = NULL;
	if (job->t_done > waiter->t_done)
		waiter->t_done = job->t_done;
	if (!waiter->before)
		waiter->before = job->err;
	drv_job_put(job);
	if (!--waiter->unmet)
		drv_set_ready(waiter, ended);
}

static void leave_error(struct drv_sink *sink, CUresult err)
{
	int none = 0;

	atomic_compare_exchange_strong(&sink->err, &none, (int)err);
}

void drv_sink_forward(struct drv_sink *sink, struct drv_sink *to)
{
	CUresult err = (CUresult)atomic_exchange(&sink->err, 0);

	if (err)
		leave_error(to, err);
	if (!sink->forward)
		sink->forward = drv_sink_ref(to);
}

void drv_finish(struct drv_job *job)
{
	struct drv_job_fifo ended = STAILQ_HEAD_INITIALIZER(ended);
	struct drv_edge *edge;

	STAILQ_INSERT_TAIL(&ended, job, next);
	while ((job = STAILQ_FIRST(&ended))) {
		STAILQ_REMOVE_HEAD(&ended, next);
		if (job->kind == DRV_JOB_JOIN) {
			TAILQ_REMOVE(&drv_jobs.pending, job, link);
			job->err = job->before;
		} else {
			drv_jobs.strays -= job->stray;
			if (job->shared)
				drv_shared_done(job);
			if (job->err)
				leave_error(job->sink->forward ? job->sink->forward :
							      job->sink, job->err);
			/* Also by jobs of another context that the work is made of */
			if (job->err == CUDA_ERROR_ILLEGAL_ADDRESS ||
			    job->err == CUDA_ERROR_LAUNCH_FAILED)
				leave_error(job->fault, job->err);
		}
		/* Events may keep the job for long */
		drv_stage_free(job->stage);
		job->stage = NULL;
		atomic_store(&job->state, DRV_JOB_DONE);
		while ((edge = LIST_FIRST(&job->waiters)))
			drop_edge(edge, &ended);
		drv_jobs.progress += !job->look;
		drv_job_put(job);
	}
	pthread_cond_broadcast(&drv_jobs.change);
}

void drv_queued(struct drv_job *job)
{
	struct drv_job_fifo ended = STAILQ_HEAD_INITIALIZER(ended);
	struct drv_edge *edge, *next;

	for (edge = LIST_FIRST(&job->waiters); edge; edge = next) {
		next = LIST_NEXT(edge, link);
		if (same_queue(edge->waiter, job))
			drop_edge(edge, &ended);
	}
	if (!LIST_EMPTY(&job->waiters))
		drv_watch_job(job);
	/* Who waits for what follows it hears of its end */
	if (job->awaited)
		pthread_cond_broadcast(&drv_jobs.change);
}

bool drv_job_poll(struct drv_job *job, uint64_t timeout)
{
	struct drv_file *file = job->file;
	bool timed = file->features & PLN_GPU_FEAT_TIME;
	struct pln_gpu_wait wait = {
		.job = job->id,
		.timeout_ns = timeout,
		.flags = timed ? PLN_GPU_WAIT_F_TIME : 0,
	};
	int status;

	if (drv_is_done(job))
		return true;
	if (drv_io_ioctl(file->fd, PLN_GPU_IOC_WAIT, &wait)) {
		/* The job stays */
		if (errno == ETIMEDOUT || errno == EINTR || errno == EFAULT)
			return false;
		status = -errno;
		wait.error = 0;
	} else {
		status = wait.status;
		job->result = wait.result;
		job->t_done = timed ? wait.time_ns : drv_now();
	}
	job->err = job_error(job, status, wait.error);
	/* Given up by the driver, and not by who waits */
	if (job->err == CUDA_ERROR_LAUNCH_TIMEOUT)
		leave_error(job->fault, job->err);
	pthread_mutex_lock(&drv.order);
	TAILQ_REMOVE(&file->queue[job->queue], job, link);
	drv_finish(job);
	pthread_mutex_unlock(&drv.order);
	return true;
}

void drv_file_jobs_init(struct drv_file *file)
{
	for (int q = 0; q < DRV_MAX_QUEUES; q++)
		TAILQ_INIT(&file->queue[q]);
	STAILQ_INIT(&file->ready);
}
