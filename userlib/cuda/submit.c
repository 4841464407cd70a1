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

void pln_reap(struct pln_file *file)
{
	for (unsigned int q = 0; q < file->num_queues; q++) {
		for (int i = 0; i < UNREAPED_MAX; i++) {
			struct pln_job *head;
			CUresult err;

			pthread_mutex_lock(&pln.order);
			head = pln_job_ref(TAILQ_FIRST(&file->queue[q]));
			pthread_mutex_unlock(&pln.order);
			if (!head)
				break;
			err = pln_job_wait(head, false);
			pln_job_put(head);
			if (err)
				break;
		}
	}
}

CUresult pln_submit_one(struct pln_job *job, const struct pln_job *pending)
{
	struct pln_file *file = job->file;
	struct pln_gpu_submit submit = {
		.ops = (uintptr_t)job->op,
		.nr_ops = job->nr_ops,
		.queue = job->queue,
	};
	uint64_t deadline = pln_now() + PLN_WAIT_LIMIT_NS;
	CUresult err;

	for (;;) {
		struct pln_job *oldest = NULL;
		int error;

		if (pending && atomic_load(&pending->cancelled))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		if (!pln_io_ioctl(file->fd, PLN_GPU_IOC_SUBMIT, &submit))
			break;
		error = errno;
		if (error == EINTR)
			continue;
		if (error != EAGAIN || pln_now() > deadline)
			return pln_file_error(file, error);
		/* Too many jobs: let the oldest of some queue end */
		pthread_mutex_lock(&pln.order);
		for (unsigned int q = 0; q < file->num_queues && !oldest; q++)
			oldest = pln_job_ref(TAILQ_FIRST(&file->queue[q]));
		pthread_mutex_unlock(&pln.order);
		if (!oldest)
			return pln_file_error(file, error);
		err = pln_job_wait(oldest, true);
		pln_job_put(oldest);
		if (err)
			return err;
		deadline = pln_now() + PLN_WAIT_LIMIT_NS;
	}
	job->id = submit.job;
	job->seq = ++file->submitted;
	pthread_mutex_lock(&pln.order);
	if (pending == job)
		TAILQ_REMOVE(&pln_jobs.pending, job, link);	/* and its reference */
	else
		pln_job_ref(job);
	atomic_store(&job->state, PLN_JOB_QUEUED);
	TAILQ_INSERT_TAIL(&file->queue[job->queue], job, link);
	pln_job_put(job->behind);
	job->behind = NULL;
	pln_queued(job);
	pthread_mutex_unlock(&pln.order);
	return CUDA_SUCCESS;
}

/* A part of the copy @job, half of it, as a job of its own */
static struct pln_job *half_of(struct pln_job *job)
{
	struct pln_job *half = pln_job_new(job);
	uint64_t len = (job->op[0].len / 2 + HOST_PAGE - 1) & ~(HOST_PAGE - 1);

	if (!half)
		return NULL;
	half->op[0] = job->op[0];
	half->op[0].len = len;
	half->nr_ops = 1;
	pthread_mutex_lock(&pln.order);		/* see pln_job_uses() */
	job->op[0].src += len;
	job->op[0].dst += len;
	job->op[0].len -= len;
	pthread_mutex_unlock(&pln.order);
	return half;
}

/*
 * pln_submit_one() for a job that was pending, or a part of one, and that nobody is there
 * to ask for in smaller steps where RLIMIT_MEMLOCK leaves no room for all of it.  On
 * failure no step is under way any more, unless one does not end.
 */
static CUresult submit_steps(struct pln_job *job, const struct pln_job *pending)
{
	const struct pln_gpu_op *op = job->op;
	struct pln_job *half, *last = NULL;
	CUresult err;

	for (;;) {
		err = pln_submit_one(job, pending);
		if (err != CUDA_ERROR_OUT_OF_MEMORY || job->nr_ops != 1 ||
		    op->opcode != PLN_GPU_OP_COPY || !op->flags ||
		    op->len <= HOST_PAGE)
			break;
		half = half_of(job);
		if (!half)
			break;
		err = submit_steps(half, pending);
		if (err) {
			pln_job_put(half);
			break;
		}
		pln_job_put(last);
		last = half;
	}
	if (err && last)
		pln_job_wait(last, true);
	pln_job_put(last);
	return err;
}

/* What was pending and follows nothing any more, until there is no more of it */
static void dispatch(void *arg)
{
	struct pln_file *file = arg;
	struct pln_job *job;
	CUresult err;

	pthread_mutex_lock(&pln.order);
	while ((job = STAILQ_FIRST(&file->ready))) {
		STAILQ_REMOVE_HEAD(&file->ready, next);
		pthread_mutex_unlock(&pln.order);
		pthread_mutex_lock(&file->submit_lock);
		err = submit_steps(job, job);
		pthread_mutex_unlock(&file->submit_lock);
		if (!err)
			pln_reap(file);
		pthread_mutex_lock(&pln.order);
		if (err) {
			TAILQ_REMOVE(&pln_jobs.pending, job, link);
			job->err = err;
			pln_finish(job);
		}
	}
	file->dispatching = false;
	file->helpers--;
	pthread_cond_broadcast(&pln_jobs.change);
	/* Whoever waits for us has a reference */
	pln_file_put(file);
	pthread_mutex_unlock(&pln.order);
}

void pln_dispatch_job(struct pln_job *job)
{
	struct pln_file *file = job->file;

	STAILQ_INSERT_TAIL(&file->ready, job, next);
	if (file->dispatching)
		return;
	file->dispatching = true;
	file->helpers++;
	file->dispatcher = (struct pln_task){
		.run = dispatch, .arg = pln_file_ref(file),
	};
	pln_task_start(&file->dispatcher, PLN_TASK_HELP);
}
