// SPDX-License-Identifier: MIT
/*
 * Waiting: for a job, for all of a context, and before memory goes.
 */
#include <errno.h>
#include <time.h>

#include "order.h"

#define WAIT_SLICE_NS	1000000000ull

/* The first job that @job waits for, or itself: in the kernel, or at work */
static struct drv_job *root_of(struct drv_job *job)
{
	size_t i;

	while (atomic_load(&job->state) == DRV_JOB_WAITING) {
		for (i = 0; i < job->nr_edges && !job->edges[i].job; i++)
			;
		if (i == job->nr_edges)
			break;		/* it is being entered */
		job = job->edges[i].job;
	}
	return job;
}

/*
 * Sleep until some job ends, or a second is over; drv.order is held.  A thread that
 * the program cancels is ended after it: with the lock it would hold up all others.
 */
static void await_change(void)
{
	struct timespec end;
	int state;

	drv_tasks_serve();
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAIT_SLICE_NS / 1000000000;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cond_timedwait(&drv_jobs.change, &drv.order, &end);
	pthread_setcancelstate(state, NULL);
}

enum wait {
	WAIT_ASK,
	WAIT_LONG,			/* for a value as long as it takes */
	WAIT_LIMITED,
};

/* For how long a wait lasts at most: two minutes without what is counted here */
struct limit {
	uint64_t deadline;
	unsigned long long seen;	/* progress */
	uint64_t number;		/* of the wait for somebody outside, or 0 */
};

/* @root is not in the kernel: is the limit over?  drv.order is held. */
static bool is_over(struct limit *limit, const struct drv_job *root,
		    enum wait how, uint64_t now)
{
	bool outside = root->kind == DRV_JOB_WORK &&
		       (root->use == DRV_USE_SPAN || root->use == DRV_USE_NONE);
	uint64_t number = outside ? root->number : 0;
	bool more;

	if (root->work == drv_value_wait && how == WAIT_LONG)
		more = true;
	else if (outside && how == WAIT_LIMITED)
		more = number != limit->number;
	else
		more = limit->seen != drv_jobs.progress;
	if (more)
		limit->deadline = now + DRV_WAIT_LIMIT_NS;
	limit->number = number;
	limit->seen = drv_jobs.progress;
	return now > limit->deadline;
}

/*
 * Jobs of a queue end in order, so earlier ones are asked for first: that
 * gives each its own time of ending, and lets the kernel forget them.  The limit
 * is for what cannot be CUDA's meaning: two minutes in which nothing at all ends.
 * A value, or another process, has two minutes of its own where the wait is limited.
 *
 * Threads of the library notice the end of what @job waits for.  What that is is looked
 * for once a second only, for the limit and in case that such a thread could not be
 * made: there may be many jobs on the way, and one ends at any time.
 */
static CUresult job_wait(struct drv_job *job, enum wait how)
{
	struct limit limit = { .deadline = drv_now() + DRV_WAIT_LIMIT_NS };
	struct drv_file *file = job->file;
	bool block = how != WAIT_ASK;
	struct drv_job *root, *head;
	uint64_t look_at = 0, now;
	bool ended, over;

	while (!drv_is_done(job)) {
		pthread_mutex_lock(&drv.order);
		if (!block && atomic_load(&job->state) < DRV_JOB_QUEUED) {
			drv_tasks_serve();
			pthread_mutex_unlock(&drv.order);
			return CUDA_ERROR_NOT_READY;
		}
		root = job;
		over = false;
		now = atomic_load(&job->state) < DRV_JOB_QUEUED ? drv_now() : 0;
		if (now && now >= look_at) {
			look_at = now + WAIT_SLICE_NS;
			root = root_of(job);
			over = atomic_load(&root->state) < DRV_JOB_QUEUED &&
			       is_over(&limit, root, how, now);
		}
		if (atomic_load(&root->state) != DRV_JOB_QUEUED) {
			if (!over && !drv_is_done(root)) {
				job->awaited++;
				await_change();
				job->awaited--;
			}
			pthread_mutex_unlock(&drv.order);
			if (over) {
				drv_log("a stream has waited for a function of the program, a value, or another process, for 120 s");
				return CUDA_ERROR_LAUNCH_TIMEOUT;
			}
			continue;
		}
		file = root->file;
		head = drv_job_ref(TAILQ_FIRST(&file->queue[root->queue]));
		if (drv_is_watcher() && atomic_load(&head->wanted)) {
			await_change();		/* they see to it */
			pthread_mutex_unlock(&drv.order);
			drv_job_put(head);
			continue;
		}
		pthread_mutex_unlock(&drv.order);
		if (block) {
			if (!drv_is_watcher())
				atomic_fetch_add(&head->wanted, 1);
			pthread_mutex_lock(&head->lock);
		} else if (pthread_mutex_trylock(&head->lock)) {
			drv_job_put(head);
			return CUDA_ERROR_NOT_READY;
		}
		ended = drv_job_poll(head, block ? WAIT_SLICE_NS : 0);
		pthread_mutex_unlock(&head->lock);
		if (block && !drv_is_watcher())
			atomic_fetch_sub(&head->wanted, 1);
		drv_job_put(head);
		if (!ended && !block)
			return CUDA_ERROR_NOT_READY;
		look_at = 0;
		if (ended) {
			/* The time is the next one's */
			limit.deadline = drv_now() + DRV_WAIT_LIMIT_NS;
		} else if (drv_now() > limit.deadline) {
			drv_log("device %d: a job has not ended for 120 s",
				file->dev->ordinal);
			return CUDA_ERROR_LAUNCH_TIMEOUT;
		}
	}
	return CUDA_SUCCESS;
}

CUresult drv_job_wait(struct drv_job *job, bool block)
{
	return job_wait(job, block ? WAIT_LONG : WAIT_ASK);
}

/* Wait for every job that is in the kernel */
CUresult drv_file_drain(struct drv_file *file)
{
	CUresult err = CUDA_SUCCESS, e;

	for (unsigned int q = 0; q < file->num_queues; q++) {
		struct drv_job *tail;

		pthread_mutex_lock(&drv.order);
		tail = drv_job_ref(TAILQ_LAST(&file->queue[q], drv_job_list));
		pthread_mutex_unlock(&drv.order);
		if (!tail)
			continue;
		e = drv_job_wait(tail, true);
		if (!err)
			err = e;
		drv_job_put(tail);
	}
	return err;
}

void drv_file_quiet(struct drv_file *file)
{
	uint64_t deadline = drv_now() + DRV_WAIT_LIMIT_NS;

	pthread_mutex_lock(&drv.order);
	while (file->helpers && drv_now() < deadline)
		await_change();
	pthread_mutex_unlock(&drv.order);
}

static bool overlap(const struct drv_span *a, uint64_t addr, uint64_t size)
{
	return a->addr < addr + size && addr < a->addr + a->size;
}

static bool op_uses(const struct pln_gpu_op *op, const struct drv_span *span)
{
	return ((op->flags & PLN_GPU_OP_F_SRC_USER) &&
		overlap(span, op->src, op->len)) ||
	       ((op->flags & PLN_GPU_OP_F_DST_USER) &&
		overlap(span, op->dst, op->len));
}

/*
 * Must @job have ended before @span, which is of @file's GPU or page-locked in a
 * context of it, goes?  All work of the GPU, as with CUDA; and what others do there.
 */
static bool may_use(const struct drv_job *job, const struct drv_file *file,
		    const struct drv_span *span)
{
	if (job->kind == DRV_JOB_JOIN ||
	    (job->kind == DRV_JOB_WORK && job->use == DRV_USE_NONE))
		return false;
	if (job->file == file && job->use != DRV_USE_SPAN)
		return true;
	if (job->kind == DRV_JOB_WORK)
		return overlap(span, job->span[0].addr, job->span[0].size) ||
		       overlap(span, job->span[1].addr, job->span[1].size);
	for (unsigned int i = 0; i < job->nr_ops; i++)
		if (op_uses(&job->op[i], span))
			return true;
	return false;
}

/*
 * Wait for what is pending now: of context @ctx; or, when that is 0, what may use
 * memory that is to be freed.
 */
static CUresult pending_wait(uint64_t ctx, struct drv_file *file,
			     const struct drv_span *span, enum wait how)
{
	struct drv_job *job;
	CUresult err = CUDA_SUCCESS;
	uint64_t upto = 0;

	while (!err) {
		pthread_mutex_lock(&drv.order);
		if (!upto)
			upto = drv_jobs.numbers;
		TAILQ_FOREACH(job, &drv_jobs.pending, link)
			if (job->number <= upto &&
			    (ctx ? job->ctx == ctx :
			     may_use(job, file, span)))
				break;
		drv_job_ref(job);
		pthread_mutex_unlock(&drv.order);
		if (!job)
			break;
		err = job_wait(job, how);
		drv_job_put(job);
	}
	return err;
}

CUresult drv_ctx_drain(CUcontext ctx)
{
	CUresult err = pending_wait(ctx->id, NULL, NULL, WAIT_LONG);
	CUresult drained = drv_file_drain(ctx->file);

	return err ? err : drained;
}

/* Every GPU's reach page-locked memory, and memory of peers */
CUresult drv_drain_engines(void)
{
	struct drv_file *file = NULL;
	CUresult err = CUDA_SUCCESS;

	while ((file = drv_file_next(file))) {
		CUresult drained = drv_file_drain(file);

		if (!err)
			err = drained;
	}
	return err;
}

/*
 * Before @span is given back, which is memory of @file's GPU, or page-locked in a
 * context of it.  Of what is pending, all of that GPU is waited for, functions of the
 * program too, and what others do with the memory.  Awaited events are not, nor values
 * elsewhere, unless something follows them: they may never come.
 */
CUresult drv_drain(struct drv_file *file, const struct drv_span *span)
{
	CUresult err = pending_wait(0, file, span, WAIT_LIMITED);
	CUresult drained = drv_drain_engines();

	return err ? err : drained;
}

/* What was asked for in @ctx and has not begun has no effect */
static void cancel(CUcontext ctx)
{
	struct drv_job *job;

	pthread_mutex_lock(&drv.order);
	TAILQ_FOREACH(job, &drv_jobs.pending, link)
		if (job->ctx == ctx->id)
			atomic_store(&job->cancelled, true);
	pthread_mutex_unlock(&drv.order);
}

/* What is in the kernel may have effects for ever */
static void stray(CUcontext ctx)
{
	struct drv_file *file = ctx->file;
	struct drv_job *job;

	pthread_mutex_lock(&drv.order);
	for (unsigned int q = 0; q < file->num_queues; q++) {
		TAILQ_FOREACH(job, &file->queue[q], link) {
			if (job->ctx != ctx->id || job->stray)
				continue;
			job->stray = true;
			drv_jobs.strays++;
		}
	}
	pthread_mutex_unlock(&drv.order);
}

void drv_ctx_end(CUcontext ctx)
{
	if (pending_wait(ctx->id, NULL, NULL, WAIT_LIMITED)) {
		cancel(ctx);
		pending_wait(ctx->id, NULL, NULL, WAIT_LIMITED);
	}
	/* What other contexts have asked of this GPU goes by number of memory */
	drv_drain(ctx->file, &(struct drv_span){ 0 });
	cancel(ctx);			/* nothing is left, or it is stuck */
	stray(ctx);
}

void drv_span_end(const struct drv_span *span)
{
	struct drv_job *job;

	do {
		pthread_mutex_lock(&drv.order);
		TAILQ_FOREACH(job, &drv_jobs.pending, link) {
			if (job->use != DRV_USE_SPAN ||
			    !may_use(job, NULL, span))
				continue;
			atomic_store(&job->cancelled, true);
			if (atomic_load(&job->state) == DRV_JOB_READY)
				break;	/* it may be looking now */
		}
		drv_job_ref(job);
		pthread_mutex_unlock(&drv.order);
		if (job && job_wait(job, WAIT_LIMITED)) {
			drv_job_put(job);
			return;
		}
		drv_job_put(job);
	} while (job);
	/* And what other GPUs are to do with it */
	if (!pending_wait(0, NULL, span, WAIT_LIMITED))
		return;
	pthread_mutex_lock(&drv.order);
	TAILQ_FOREACH(job, &drv_jobs.pending, link)
		if (may_use(job, NULL, span))
			atomic_store(&job->cancelled, true);
	pthread_mutex_unlock(&drv.order);
}

static bool uses_handle(const struct drv_job *job, const struct drv_file *file,
			uint32_t handle, const struct drv_span *span)
{
	if (job->kind != DRV_JOB_ENGINE || job->file != file)
		return false;
	for (unsigned int i = 0; i < job->nr_ops; i++) {
		const struct pln_gpu_op *op = &job->op[i];

		if ((op->src_handle == handle &&
		     overlap(span, op->src, op->len)) ||
		    (op->dst_handle == handle &&
		     overlap(span, op->dst, op->len)))
			return true;
	}
	return false;
}

bool drv_job_uses_range(const struct drv_job *job, const struct drv_range *range)
{
	const struct drv_span span = { range->addr, range->size };
	const struct drv_span part = { range->addr - range->chunk->addr, range->size };

	if (job->kind == DRV_JOB_WORK)
		return overlap(&span, job->span[0].addr, job->span[0].size) ||
		       overlap(&span, job->span[1].addr, job->span[1].size);
	for (unsigned int i = 0; i < job->nr_ops; i++)
		if (op_uses(&job->op[i], &span))
			return true;
	return uses_handle(job, range->chunk->file, range->chunk->handle, &part);
}

void drv_handle_end(struct drv_file *file, uint32_t handle,
		    const struct drv_span *span)
{
	struct drv_job *job;

	pthread_mutex_lock(&drv.order);
	TAILQ_FOREACH(job, &drv_jobs.pending, link)
		if (uses_handle(job, file, handle, span))
			atomic_store(&job->cancelled, true);
	pthread_mutex_unlock(&drv.order);
}

bool drv_job_uses(struct drv_file *file, uint32_t handle,
		  const struct drv_span *span)
{
	struct drv_job *job;
	bool found = false;

	pthread_mutex_lock(&drv.order);
	TAILQ_FOREACH(job, &drv_jobs.pending, link)
		found = found || uses_handle(job, file, handle, span);
	for (unsigned int q = 0; q < file->num_queues; q++)
		TAILQ_FOREACH(job, &file->queue[q], link)
			found = found || uses_handle(job, file, handle, span);
	pthread_mutex_unlock(&drv.order);
	return found;
}
