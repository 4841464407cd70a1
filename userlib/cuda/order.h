/* SPDX-License-Identifier: MIT */
/*
 * What the files share that keep jobs in order: job.c, submit.c, follow.c, wait.c.
 * drv.order is held unless it is said otherwise.
 */
#ifndef PEERLANE_CUDA_ORDER_H
#define PEERLANE_CUDA_ORDER_H

#include "internal.h"

/* drv.order */
struct drv_jobs {
	/* What has not ended and is not in the kernel, as it was asked for */
	struct drv_job_list pending;
	uint64_t numbers;
	unsigned int strays;		/* in the kernel */
	unsigned long long progress;	/* jobs that have ended */
	pthread_cond_t change;		/* its clock is CLOCK_MONOTONIC */
};

extern struct drv_jobs drv_jobs;

static inline bool drv_is_done(const struct drv_job *job)
{
	return atomic_load(&job->state) == DRV_JOB_DONE;
}

/* ---- job.c ---- */
/* One more of the kind, the GPU, the stream and the sinks of @like; needs no lock */
struct drv_job *drv_job_new(const struct drv_job *like);
/* Errors of @sink, which nobody asks any more, go to @to; that it has already, too */
void drv_sink_forward(struct drv_sink *sink, struct drv_sink *to);
/* Have a thread notice the end of @job, which is in the kernel */
void drv_watch_job(struct drv_job *job);
/* Nothing is left that @job follows.  Joins that end so are put into @ended. */
void drv_set_ready(struct drv_job *job, struct drv_job_fifo *ended);
/* @job has ended, and is in no list any more; takes over the list's reference */
void drv_finish(struct drv_job *job);
/* @job is in the kernel now: what is in the same queue follows it there */
void drv_queued(struct drv_job *job);
/* job->lock is held, drv.order is not.  True: the job has ended. */
bool drv_job_poll(struct drv_job *job, uint64_t timeout);

/* ---- submit.c ---- */
/*
 * Give @job to the kernel; submit_lock is held, drv.order is not.  The queue has a
 * reference of its own then.  On failure nothing has happened.  @pending: what @job is,
 * or is a part of, among what is pending; the kernel is not asked for it when it is
 * cancelled.  NULL: @job was not pending.
 */
CUresult drv_submit_one(struct drv_job *job, const struct drv_job *pending);
/* Have a thread give @job to the kernel */
void drv_dispatch_job(struct drv_job *job);

/* ---- wait.c ---- */
/* Does it do something with the memory of @range, which is of a GPU? */
bool drv_job_uses_range(const struct drv_job *job, const struct drv_range *range);

#endif /* PEERLANE_CUDA_ORDER_H */
