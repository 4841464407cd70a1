// SPDX-License-Identifier: MIT
/*
 * Batches: transfers that are started together, and whose ends are asked for.
 *
 * A batch's handle is a number that never comes again.  Each entry that was
 * started keeps the library open and its file registered until it has ended.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "ring.h"

#define MARK		0xb	/* odd, as in file handles, and another */

struct entry {
	struct work work;
	struct ring_io ring;
	struct entry *next;	/* of those that are free, or ended */
	struct batch *batch;
	struct file *file;
	struct answer answer;
	CUfileIOParams_t p;
	uint64_t began;
	CUfileStatus_t status;
	ssize_t ret;
	bool queued;		/* for a thread, and may be cancelled; batch's lock */
};

struct batch {
	struct batch *next;
	uint64_t value;
	unsigned int refs;	/* under the list's lock */
	unsigned int capacity;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct entry *free;
	unsigned int nfree;
	struct entry *done, **done_end;
	unsigned int ndone;
	unsigned int want;	/* so many wake the first of those who wait */
	unsigned int busy;	/* started, and not ended */
	bool dead;
	struct entry entry[];
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct batch *batches;
static uint64_t count;

void batch_forked(void)
{
	pthread_mutex_init(&list_lock, NULL);
}

/* ---- batches ---- */

static struct batch *batch_get(CUfileBatchHandle_t id)
{
	struct batch *b;

	if (driver_is_child())
		return NULL;
	pthread_mutex_lock(&list_lock);
	for (b = batches; b && b->value != (uintptr_t)id; b = b->next)
		continue;
	if (b)
		b->refs++;
	pthread_mutex_unlock(&list_lock);
	return b;
}

static void batch_put(struct batch *b)
{
	bool gone;

	pthread_mutex_lock(&list_lock);
	gone = !--b->refs;
	pthread_mutex_unlock(&list_lock);
	if (!gone)
		return;
	pthread_cond_destroy(&b->ended);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* ---- entries ---- */

/*
 * The file was put.  Whoever waits is woken when there is what it waits for, and without
 * the lock, for which it would have to wait again; the entry keeps the batch until then.
 */
static void entry_end(struct entry *e, CUfileStatus_t status, ssize_t ret)
{
	struct batch *b = e->batch;
	bool enough;

	count_op(OP_BATCH_PROCESSED, status == CUFILE_COMPLETE);
	if (status == CUFILE_COMPLETE)
		count_batch_done(e->began, (size_t)ret,
				 e->p.opcode == CUFILE_WRITE);
	e->status = status;
	e->ret = ret;
	e->next = NULL;
	pthread_mutex_lock(&b->lock);
	*b->done_end = e;
	b->done_end = &e->next;
	b->ndone++;
	enough = b->ndone >= b->want;
	if (enough)
		b->want = UINT_MAX;
	pthread_mutex_unlock(&b->lock);
	if (enough)
		pthread_cond_broadcast(&b->ended);
	pthread_mutex_lock(&b->lock);
	if (!--b->busy)
		pthread_cond_broadcast(&b->ended);
	pthread_mutex_unlock(&b->lock);
	/* the batch may be gone from here on */
	driver_end();
}

static void entry_run(struct work *w)
{
	struct entry *e = (struct entry *)w;
	struct pln_file_result now = { .size = e->answer.size };
	ssize_t r;

	pthread_mutex_lock(&e->batch->lock);
	e->queued = false;
	pthread_mutex_unlock(&e->batch->lock);
	errno = 0;
	r = driver_transfer(e->file, 0, e->p.u.batch.devPtr_base,
			    e->p.u.batch.size, e->p.u.batch.file_offset,
			    e->p.u.batch.devPtr_offset,
			    e->p.opcode == CUFILE_WRITE, &e->ring, &now);
	result_tell(&e->answer, &now, r, errno);
	if (r == -1)
		r = -errno;
	count_op(OP_BATCH_POSIX_PROCESSED, r >= 0);
	file_put(e->file);
	entry_end(e, r < 0 ? CUFILE_FAILED : CUFILE_COMPLETE, r);
}

/* By a thread. */
static void entry_add(struct entry *e)
{
	count_op(OP_BATCH_POSIX_ENQUEUED, true);
	work_add(&e->work, false);
}

/* By p2p, at once; what is left, as another way may do it, is done by a thread. */
static void ring_ended(struct ring_io *ring, int res)
{
	struct entry *e = (struct entry *)((char *)ring -
					   offsetof(struct entry, ring));
	struct pln_file_result now = { .size = e->answer.size };
	ssize_t r;

	if (!ring_result(ring, res, &now, &r)) {
		entry_add(e);
		return;
	}
	result_tell(&e->answer, &now, r, errno);
	if (r < 0)
		r = -errno;
	file_put_later(e->file);
	entry_end(e, r < 0 ? CUFILE_FAILED : CUFILE_COMPLETE, r);
}

static bool to_ring(struct entry *e)
{
	e->ring.began = e->began;
	e->ring.ended = ring_ended;
	if (!ring_move(&e->ring, e->file, e->p.u.batch.devPtr_base,
		       e->p.u.batch.size, e->p.u.batch.file_offset,
		       e->p.u.batch.devPtr_offset, e->p.opcode == CUFILE_WRITE))
		return false;
	count_op(OP_BATCH_RING, true);
	return true;
}

/* Why it cannot be started, or NULL and the file held. */
static const char *refused(const CUfileIOParams_t *p, struct file **file)
{
	off_t off = p->u.batch.devPtr_offset;
	struct file *f;
	struct buf reg;

	if (p->mode != CUFILE_BATCH)
		return "the mode is not CUFILE_BATCH";
	if (p->opcode != CUFILE_READ && p->opcode != CUFILE_WRITE)
		return "the opcode is neither CUFILE_READ nor CUFILE_WRITE";
	if (!p->u.batch.devPtr_base)
		return "there is no memory";
	if (p->u.batch.file_offset < 0 || off < 0)
		return "an offset is negative";
	if (buf_find((uintptr_t)p->u.batch.devPtr_base, &reg) &&
	    ((uint64_t)off > reg.length ||
	     p->u.batch.size > reg.length - (uint64_t)off))
		return "it goes beyond the registered buffer";
	f = file_get(p->fh);
	if (!f)
		return "the file has no such handle";
	if (f->access == (p->opcode == CUFILE_WRITE ? O_RDONLY : O_WRONLY)) {
		file_put(f);
		return "the file was opened for the other direction only";
	}
	*file = f;
	return NULL;
}

/* @nr free entries, or none; the caller gives them back or starts them. */
static struct entry *take_free(struct batch *b, unsigned int nr)
{
	struct entry *e = NULL, **p;
	unsigned int i;

	pthread_mutex_lock(&b->lock);
	if (!b->dead && nr <= b->nfree) {
		e = b->free;
		for (p = &b->free, i = 0; i < nr; i++)
			p = &(*p)->next;
		b->free = *p;
		*p = NULL;
		b->nfree -= nr;
	}
	pthread_mutex_unlock(&b->lock);
	return e;
}

/* With the lock held. */
static void give_free(struct batch *b, struct entry *e)
{
	e->next = b->free;
	b->free = e;
	b->nfree++;
}

/* ---- calls ---- */

EXPORT CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp,
					unsigned int nr)
{
	NOT_CANCELLED;
	pthread_condattr_t attr;
	CUfileOpError r;
	struct batch *b;
	unsigned int i;

	if (!batch_idp)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	if (!nr || nr > config.size[CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE]) {
		r = CU_FILE_INVALID_VALUE;
		goto out;
	}
	b = calloc(1, sizeof(*b) + nr * sizeof(b->entry[0]));
	if (!b) {
		r = CU_FILE_NOMEM_ERROR;
		goto out;
	}
	b->refs = 1;
	b->capacity = nr;
	b->want = UINT_MAX;
	b->done_end = &b->done;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&b->ended, &attr);
	pthread_condattr_destroy(&attr);
	for (i = nr; i--; )
		give_free(b, &b->entry[i]);
	pthread_mutex_lock(&list_lock);
	b->value = ++count << 4 | MARK;
	b->next = batches;
	batches = b;
	*batch_idp = (CUfileBatchHandle_t)(uintptr_t)b->value;
	pthread_mutex_unlock(&list_lock);
out:
	count_op(OP_BATCH_SETUP, !r);
	driver_end();
	return result(r);
}

static const char *submit(CUfileBatchHandle_t id, unsigned int nr,
			  const CUfileIOParams_t *p, const struct wanted *wanted)
{
	struct entry *first, *e, *next;
	size_t bytes[2] = { 0, 0 };
	uint64_t began = count_now();
	const char *why = NULL;
	struct batch *b;
	unsigned int i;

	if (!nr || !p)
		return "there is nothing to start";
	b = batch_get(id);
	if (!b)
		return "there is no such batch";
	first = take_free(b, nr);
	if (!first) {
		why = "the batch has not so many entries free";
		goto out;
	}
	for (e = first; e; e = e->next)
		e->file = NULL;
	if (!work_ready())
		why = "no thread can be made";
	for (e = first, i = 0; e && !why; e = e->next, i++) {
		why = refused(&p[i], &e->file);
		e->batch = b;
		e->work.run = entry_run;
		e->began = began;
		e->answer = result_of(wanted, i);
		e->p = p[i];
	}
	pthread_mutex_lock(&b->lock);
	if (!why && b->dead)
		why = "the batch was destroyed";
	if (!why)
		b->busy += nr;
	pthread_mutex_unlock(&b->lock);
	for (e = first; e && why; e = next) {
		next = e->next;
		if (e->file)
			file_put(e->file);
		pthread_mutex_lock(&b->lock);
		give_free(b, e);
		pthread_mutex_unlock(&b->lock);
	}
	if (why)
		goto out;
	driver_begin_more(nr);
	for (e = first; e; e = next) {
		next = e->next;
		bytes[e->p.opcode == CUFILE_WRITE] += e->p.u.batch.size;
		count_op(OP_BATCH_ENQUEUED, true);
		if (to_ring(e))
			continue;
		pthread_mutex_lock(&b->lock);
		e->queued = true;
		pthread_mutex_unlock(&b->lock);
		entry_add(e);
	}
	count_batch_submit(began, bytes[0], bytes[1]);
out:
	batch_put(b);
	return why;
}

EXPORT CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp,
					 unsigned int nr,
					 CUfileIOParams_t *iocbp,
					 unsigned int flags)
{
	NOT_CANCELLED;
	struct wanted wanted = result_wanted();
	const char *why;

	(void)flags;
	if (!driver_begin())
		return result(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	why = submit(batch_idp, nr, iocbp, &wanted);
	count_op(OP_BATCH_SUBMIT, !why);
	driver_end();
	if (!why)
		return result(CU_FILE_SUCCESS);
	log_line(LOG_DEBUG, "batch of %u not started: %s", nr, why);
	return result(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
}

/* From now on; what is longer than a year has no end. */
static void deadline(struct timespec *at, const struct timespec *timeout)
{
	const time_t year = 366 * 86400;

	clock_gettime(CLOCK_MONOTONIC, at);
	at->tv_sec += timeout->tv_sec < year ? timeout->tv_sec : year;
	at->tv_nsec += timeout->tv_nsec;
	if (at->tv_nsec >= 1000000000) {
		at->tv_nsec -= 1000000000;
		at->tv_sec++;
	}
}

EXPORT CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp,
					    unsigned int min_nr,
					    unsigned int *nr,
					    CUfileIOEvents_t *iocbp,
					    struct timespec *timeout)
{
	NOT_CANCELLED;
	struct timespec at;
	unsigned int n = 0;
	struct entry *e;
	struct batch *b;
	int err = 0;

	if (!nr || !iocbp || min_nr > *nr ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
			 timeout->tv_nsec >= 1000000000)))
		return result(CU_FILE_INVALID_VALUE);
	b = batch_get(batch_idp);
	if (!b)
		return result(CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	if (timeout)
		deadline(&at, timeout);
	pthread_mutex_lock(&b->lock);
	while (b->ndone < min_nr && b->busy && !err) {
		b->want = (unsigned int)min_of(b->want, min_nr);
		err = timeout ?
		      pthread_cond_timedwait(&b->ended, &b->lock, &at) :
		      pthread_cond_wait(&b->ended, &b->lock);
	}
	while (n < *nr && b->done) {
		e = b->done;
		b->done = e->next;
		if (!b->done)
			b->done_end = &b->done;
		b->ndone--;
		iocbp[n].cookie = e->p.cookie;
		iocbp[n].status = e->status;
		iocbp[n].ret = (size_t)e->ret;
		count_op(OP_BATCH_COMPLETE, e->status == CUFILE_COMPLETE);
		give_free(b, e);
		n++;
	}
	pthread_mutex_unlock(&b->lock);
	batch_put(b);
	*nr = n;
	return result(CU_FILE_SUCCESS);
}

/* Ends what nobody has begun. */
static void cancel(struct batch *b)
{
	struct pln_file_result now;
	unsigned int i;
	bool queued;

	for (i = 0; i < b->capacity; i++) {
		pthread_mutex_lock(&b->lock);
		queued = b->entry[i].queued;
		/* a thread that takes it now finds it taken */
		if (queued && work_remove(&b->entry[i].work))
			b->entry[i].queued = false;
		else
			queued = false;
		pthread_mutex_unlock(&b->lock);
		if (queued) {
			file_put(b->entry[i].file);
			now = (struct pln_file_result){
				.reason = "cancelled before it began",
			};
			result_tell(&b->entry[i].answer, &now, 0, 0);
			entry_end(&b->entry[i], CUFILE_CANCELED, 0);
		}
	}
}

EXPORT CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp)
{
	NOT_CANCELLED;
	struct batch *b = batch_get(batch_idp);

	count_op(OP_BATCH_CANCEL, b);
	if (b) {
		cancel(b);
		batch_put(b);
	}
	return result(CU_FILE_SUCCESS);
}

/* Who took it off the list: waits for what has begun. */
static void destroy(struct batch *b)
{
	pthread_mutex_lock(&b->lock);
	b->dead = true;
	pthread_mutex_unlock(&b->lock);
	cancel(b);
	pthread_mutex_lock(&b->lock);
	while (b->busy)
		pthread_cond_wait(&b->ended, &b->lock);
	pthread_mutex_unlock(&b->lock);
	batch_put(b);
}

EXPORT void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp)
{
	NOT_CANCELLED;
	struct batch *b, **p;

	if (driver_is_child())
		return;
	pthread_mutex_lock(&list_lock);
	for (p = &batches; *p && (*p)->value != (uintptr_t)batch_idp;
	     p = &(*p)->next)
		continue;
	b = *p;
	if (b)
		*p = b->next;
	pthread_mutex_unlock(&list_lock);
	count_op(OP_BATCH_DESTROY, b);
	if (b)
		destroy(b);
}

/* The last close: nothing is under way. */
void batch_drop_all(void)
{
	struct batch *b;

	for (;;) {
		pthread_mutex_lock(&list_lock);
		b = batches;
		if (b)
			batches = b->next;
		pthread_mutex_unlock(&list_lock);
		if (!b)
			return;
		destroy(b);
	}
}
