// SPDX-License-Identifier: MIT
/*
 * Work of the engine goes to the kernel: at once, or by a thread of the library, one
 * for each GPU, when it follows nothing any more.
 */
#include <errno.h>
#include <stdlib.h>

#include "order.h"

#define UNREAPED_MAX	32
#define HOST_PAGE	4096ull

void drv_reap(struct drv_file *file)
{
	for (unsigned int q = 0; q < file->num_queues; q++) {
		for (int i = 0; i < UNREAPED_MAX; i++) {
			struct drv_job *head;
			CUresult err;

			pthread_mutex_lock(&drv.order);
			head = drv_job_ref(TAILQ_FIRST(&file->queue[q]));
			pthread_mutex_unlock(&drv.order);
			if (!head)
				break;
			err = drv_job_wait(head, false);
			drv_job_put(head);
			if (err)
				break;
		}
	}
}

CUresult drv_submit_one(struct drv_job *job, const struct drv_job *pending)
{
	struct drv_file *file = job->file;
	struct pln_gpu_submit submit = {
		.ops = (uintptr_t)job->op,
		.nr_ops = job->nr_ops,
		.queue = job->queue,
	};
	uint64_t deadline = drv_now() + DRV_WAIT_LIMIT_NS;
	CUresult err;

	for (;;) {
		struct drv_job *oldest = NULL;
		int error;

		if (pending && atomic_load(&pending->cancelled))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		if (!drv_io_ioctl(file->fd, PLN_GPU_IOC_SUBMIT, &submit))
			break;
		error = errno;
		if (error == EINTR)
			continue;
		if (error != EAGAIN || drv_now() > deadline)
			return drv_file_error(file, error);
		/* Too many jobs: let the oldest of some queue end */
		pthread_mutex_lock(&drv.order);
		for (unsigned int q = 0; q < file->num_queues && !oldest; q++)
			oldest = drv_job_ref(TAILQ_FIRST(&file->queue[q]));
		pthread_mutex_unlock(&drv.order);
		if (!oldest)
			return drv_file_error(file, error);
		err = drv_job_wait(oldest, true);
		drv_job_put(oldest);
		if (err)
			return err;
		deadline = drv_now() + DRV_WAIT_LIMIT_NS;
	}
	job->id = submit.job;
	job->seq = ++file->submitted;
	pthread_mutex_lock(&drv.order);
	if (pending == job)
		TAILQ_REMOVE(&drv_jobs.pending, job, link);	/* and its reference */
	else
		drv_job_ref(job);
	atomic_store(&job->state, DRV_JOB_QUEUED);
	TAILQ_INSERT_TAIL(&file->queue[job->queue], job, link);
	/* It was given up a moment ago */
	job->stray = pending && atomic_load(&pending->cancelled);
	drv_jobs.strays += job->stray;
	drv_job_put(job->behind);
	job->behind = NULL;
	drv_queued(job);
	pthread_mutex_unlock(&drv.order);
	return CUDA_SUCCESS;
}

/* A part of the copy @job, half of it, as a job of its own */
static struct drv_job *half_of(struct drv_job *job)
{
	struct drv_job *half = drv_job_new(job);
	uint64_t len = (job->op[0].len / 2 + HOST_PAGE - 1) & ~(HOST_PAGE - 1);

	if (!half)
		return NULL;
	half->op[0] = job->op[0];
	half->op[0].len = len;
	half->nr_ops = 1;
	pthread_mutex_lock(&drv.order);		/* see drv_job_uses() */
	job->op[0].src += len;
	job->op[0].dst += len;
	job->op[0].len -= len;
	pthread_mutex_unlock(&drv.order);
	return half;
}

/*
 * drv_submit_one() for a job that was pending, or a part of one, and that nobody is there
 * to ask for in smaller steps where RLIMIT_MEMLOCK leaves no room for all of it.  On
 * failure no step is under way any more, unless one does not end.
 */
static CUresult submit_steps(struct drv_job *job, const struct drv_job *pending)
{
	const struct pln_gpu_op *op = job->op;
	struct drv_job *half, *last = NULL;
	CUresult err;

	for (;;) {
		err = drv_submit_one(job, pending);
		if (err != CUDA_ERROR_OUT_OF_MEMORY || job->nr_ops != 1 ||
		    op->opcode != PLN_GPU_OP_COPY || !op->flags ||
		    op->len <= HOST_PAGE)
			break;
		half = half_of(job);
		if (!half)
			break;
		err = submit_steps(half, pending);
		if (err) {
			drv_job_put(half);
			break;
		}
		drv_job_put(last);
		last = half;
	}
	if (err && last)
		drv_job_wait(last, true);
	drv_job_put(last);
	return err;
}

/* What was pending and follows nothing any more, until there is no more of it */
static void dispatch(void *arg)
{
	struct drv_file *file = arg;
	struct drv_job *job;
	CUresult err;

	pthread_mutex_lock(&drv.order);
	while ((job = STAILQ_FIRST(&file->ready))) {
		STAILQ_REMOVE_HEAD(&file->ready, next);
		pthread_mutex_unlock(&drv.order);
		pthread_mutex_lock(&file->submit_lock);
		err = submit_steps(job, job);
		pthread_mutex_unlock(&file->submit_lock);
		if (!err)
			drv_reap(file);
		pthread_mutex_lock(&drv.order);
		if (err) {
			TAILQ_REMOVE(&drv_jobs.pending, job, link);
			job->err = err;
			drv_finish(job);
		}
	}
	file->dispatching = false;
	file->helpers--;
	pthread_cond_broadcast(&drv_jobs.change);
	/* Whoever waits for us has a reference */
	drv_file_put(file);
	pthread_mutex_unlock(&drv.order);
}

void drv_dispatch_job(struct drv_job *job)
{
	struct drv_file *file = job->file;

	STAILQ_INSERT_TAIL(&file->ready, job, next);
	if (file->dispatching)
		return;
	file->dispatching = true;
	file->helpers++;
	file->dispatcher = (struct drv_task){
		.run = dispatch, .arg = drv_file_ref(file),
	};
	drv_task_start(&file->dispatcher, DRV_TASK_HELP);
}
