// SPDX-License-Identifier: MIT
/*
 * Reads and writes in the order of a CUDA stream: a function of the stream gives
 * the transfer to a thread of work.c and waits for it, so that what follows in
 * the stream does.  CUDA lets nobody call it from such a function; hence the
 * thread.  What goes p2p in one piece it leaves to the ring, and is free for the next.
 * Its own streams do not wait for the program's.
 */
#include <semaphore.h>
#include <stdlib.h>

#include "ring.h"

#define FLAGS	(CU_FILE_STREAM_FIXED_BUF_OFFSET | \
		 CU_FILE_STREAM_FIXED_FILE_OFFSET | \
		 CU_FILE_STREAM_FIXED_FILE_SIZE | \
		 CU_FILE_STREAM_PAGE_ALIGNED_INPUTS)

/* The CUDA errors that a context stays in are among these; it has others for a call */
#define FIRST_OF_CONTEXT	700
#define LAST_OF_CONTEXT		719

struct order {
	struct work work;
	struct ring_io ring;
	struct file *file;
	struct order *next;
	uintptr_t number;	/* what CUDA has of it */
	CUcontext ctx;		/* of the stream, or NULL: not known */
	unsigned long long ctx_id;
	bool lost;		/* the context is gone, or in error: CUDA need not call it */
	CUfileHandle_t fh;
	void *base;
	bool write;
	unsigned int fixed;
	size_t size, *size_p;
	off_t off, *off_p;
	off_t buf_off, *buf_off_p;
	ssize_t *result_p;
	ssize_t result;
	int error;		/* errno, where that is -1 */
	struct answer answer;
	struct pln_file_result now;
	sem_t done;
};

static struct stream {
	struct stream *next;
	CUstream stream;
	unsigned long long id;	/* another one where the handle is used again */
	unsigned int flags;
} *streams;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Functions in streams take it also after the library was closed. */
void async_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

/*
 * Orders in streams, the latest first.  One waits for a thread and for buffers; those
 * who have them must not wait for its stream, unless that calls nothing any more.
 */
static struct order *ordered;
static uintptr_t last_number;
static _Atomic unsigned int orders;	/* that are not lost */
static _Atomic unsigned int refusers;	/* copies that would wait for orders */
static pthread_rwlock_t held = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* With the lock held.  Where the order with this number is, or the next older one. */
static struct order **from(uintptr_t number)
{
	struct order **p;

	for (p = &ordered; *p && (*p)->number > number; p = &(*p)->next)
		continue;
	return p;
}

/* The order is the caller's from now on, and counts; NULL: it was given up. */
static struct order *take_order(uintptr_t number)
{
	struct order **p, *o;

	pthread_mutex_lock(&lock);
	p = from(number);
	o = *p;
	if (o && o->number == number) {
		*p = o->next;
		orders += o->lost;
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

static void free_order(struct order *o)
{
	sem_destroy(&o->done);
	free(o);
}

/*
 * In a context whose work has failed nothing is called behind that, and its number
 * is told all the same: so says an H100.  What looks at the GPU gives the error.
 */
static bool has_failed(CUcontext ctx)
{
	size_t avail, total;
	CUcontext was;
	int r;

	if (!cu.MemGetInfo || cu.Push(ctx))
		return false;
	r = cu.MemGetInfo(&avail, &total);
	cu.Pop(&was);
	return r >= FIRST_OF_CONTEXT && r <= LAST_OF_CONTEXT;
}

static bool is_gone(CUcontext ctx, unsigned long long id)
{
	unsigned long long now = 0;

	return ctx && (cu.CtxGetId(ctx, &now) || now != id || has_failed(ctx));
}

/*
 * Contexts that are gone, or in error, have lost their orders.  CUDA is not asked with the lock
 * held, which its functions take.
 */
static void find_lost(void)
{
	struct order with = { .number = 0 }, *o;

	for (;;) {
		pthread_mutex_lock(&lock);
		o = *from(with.number - 1);
		if (o)
			with = *o;
		pthread_mutex_unlock(&lock);
		if (!o)
			return;
		if (with.lost || !is_gone(with.ctx, with.ctx_id))
			continue;
		pthread_mutex_lock(&lock);
		o = *from(with.number);
		if (o && o->number == with.number && !o->lost) {
			o->lost = true;
			orders--;
		}
		pthread_mutex_unlock(&lock);
	}
}

bool stream_hold_back(void)
{
	bool none;

	/* What comes meanwhile need not wait for CUDA's answer, and counts */
	if (orders)
		find_lost();
	pthread_rwlock_rdlock(&held);
	none = !orders;
	if (!none)
		pthread_rwlock_unlock(&held);
	return none;
}

void stream_go_on(void)
{
	pthread_rwlock_unlock(&held);
}

void stream_refuse_held(void)
{
	refusers++;
}

bool stream_refuse(void)
{
	bool good = stream_hold_back();

	if (good) {
		stream_refuse_held();
		stream_go_on();
	}
	return good;
}

void stream_accept(void)
{
	refusers--;
}

/* Copies of our own are in streams that wait for none of the program's. */
bool stream_supported(void)
{
	return cu.LaunchHostFunc && cu.async;
}

/* 0: the CUDA driver does not tell. */
static unsigned long long id_of(CUstream stream)
{
	unsigned long long id = 0;

	return cu.StreamGetId && !cu.StreamGetId(stream, &id) ? id : 0;
}

/* With the lock held. */
static struct stream **find(CUstream stream)
{
	struct stream **p;

	for (p = &streams; *p && (*p)->stream != stream; p = &(*p)->next)
		continue;
	return p;
}

static unsigned int fixed_in(CUstream stream)
{
	unsigned long long id = id_of(stream);
	struct stream *s;
	unsigned int flags;

	pthread_mutex_lock(&lock);
	s = *find(stream);
	flags = s && s->id == id ? s->flags : 0;
	pthread_mutex_unlock(&lock);
	return flags;
}

static void read_fixed(struct order *o, unsigned int which)
{
	if (which & CU_FILE_STREAM_FIXED_FILE_SIZE)
		o->size = *o->size_p;
	if (which & CU_FILE_STREAM_FIXED_FILE_OFFSET)
		o->off = *o->off_p;
	if (which & CU_FILE_STREAM_FIXED_BUF_OFFSET)
		o->buf_off = *o->buf_off_p;
}

static void by_thread(struct work *w)
{
	struct order *o = (struct order *)w;

	o->result = driver_transfer(o->file, 0, o->base, o->size, o->off,
				    o->buf_off, o->write, &o->ring, &o->now);
	o->error = errno;
	file_put(o->file);
	sem_post(&o->done);
}

static void ring_ended(struct ring_io *ring, int res)
{
	struct order *o = (struct order *)((char *)ring -
					   offsetof(struct order, ring));

	if (!ring_result(ring, res, &o->now, &o->result)) {
		o->work.run = by_thread;
		work_add(&o->work, true);
		return;
	}
	o->error = errno;
	file_put_later(o->file);
	sem_post(&o->done);
}

/* A transfer would find that it is more than was registered. */
static bool beyond(const struct order *o)
{
	struct buf reg;

	return buf_find((uintptr_t)o->base, &reg) &&
	       ((uint64_t)o->buf_off > reg.length ||
		o->size > reg.length - (uint64_t)o->buf_off);
}

static void transfer(struct work *w)
{
	struct order *o = (struct order *)w;

	o->file = file_get(o->fh);
	if (!o->file) {
		o->result = -CU_FILE_HANDLE_NOT_REGISTERED;
		sem_post(&o->done);
		return;
	}
	o->ring.ended = ring_ended;
	o->ring.began = count_now();
	o->ring.done = 0;
	if (beyond(o) || !ring_move(&o->ring, o->file, o->base, o->size, o->off,
				    o->buf_off, o->write))
		by_thread(w);
}

static void CUDA_CB in_stream(void *arg)
{
	struct order *o = take_order((uintptr_t)arg);

	if (!o)
		return;
	if (!driver_begin()) {
		o->result = -CU_FILE_DRIVER_NOT_INITIALIZED;
	} else {
		read_fixed(o, ~o->fixed);
		if (work_ready()) {
			work_add(&o->work, true);
			while (sem_wait(&o->done))
				continue;
		} else {
			o->result = -CU_FILE_NOMEM_ERROR;
		}
		driver_end();
	}
	orders--;
	result_tell(&o->answer, &o->now, o->result, o->error);
	__atomic_store_n(o->result_p, o->result, __ATOMIC_RELEASE);
	free_order(o);
}

static void find_context(struct order *o, CUstream stream)
{
	if (!cu.StreamGetCtx || !cu.CtxGetId ||
	    cu.StreamGetCtx(stream, &o->ctx) || cu.CtxGetId(o->ctx, &o->ctx_id))
		o->ctx = NULL;
}

static CUfileError_t order(const struct order *with, CUstream stream)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	uintptr_t number;
	struct order *o;
	struct file *f;
	int r;

	if (!with->base || !with->size_p || !with->off_p || !with->buf_off_p ||
	    !with->result_p)
		return result(CU_FILE_INVALID_VALUE);
	if (!stream_supported())
		return result(CU_FILE_ASYNC_NOT_SUPPORTED);
	f = file_get(with->fh);
	if (!f)
		return result(CU_FILE_HANDLE_NOT_REGISTERED);
	file_put(f);
	/* a graph may run the function more than once, or never */
	r = cu.StreamIsCapturing ? cu.StreamIsCapturing(stream, &capture) : 0;
	if (r)
		return cuda_result(r);
	if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
		return result(CU_FILE_ASYNC_NOT_SUPPORTED);
	o = malloc(sizeof(*o));
	if (!o || !work_ready()) {
		free(o);
		return result(CU_FILE_NOMEM_ERROR);
	}
	*o = *with;
	o->work.run = transfer;
	o->fixed = fixed_in(stream);
	read_fixed(o, o->fixed);
	sem_init(&o->done, 0, 0);
	*o->result_p = 0;
	find_context(o, stream);
	pthread_rwlock_wrlock(&held);
	if (refusers) {
		pthread_rwlock_unlock(&held);
		free_order(o);
		return result(CU_FILE_NOMEM_ERROR);
	}
	pthread_mutex_lock(&lock);
	o->number = number = ++last_number;
	o->next = ordered;
	ordered = o;
	orders++;
	pthread_mutex_unlock(&lock);
	pthread_rwlock_unlock(&held);
	r = cu.LaunchHostFunc(stream, in_stream, (void *)number);
	if (!r)
		return result(CU_FILE_SUCCESS);
	o = take_order(number);
	if (o) {
		orders--;
		free_order(o);
	}
	return cuda_result(r);
}

static CUfileError_t order_if_open(struct order *o, CUstream stream)
{
	struct wanted wanted = result_wanted();
	CUfileError_t r;

	o->answer = result_of(&wanted, 0);
	o->now.size = o->answer.size;
	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	r = order(o, stream);
	driver_end();
	return r;
}

EXPORT CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base,
				     size_t *size_p, off_t *file_offset_p,
				     off_t *bufPtr_offset_p,
				     ssize_t *bytes_read_p, CUstream stream)
{
	NOT_CANCELLED;
	struct order o = {
		.fh = fh, .base = bufPtr_base, .size_p = size_p,
		.off_p = file_offset_p, .buf_off_p = bufPtr_offset_p,
		.result_p = bytes_read_p,
	};

	return order_if_open(&o, stream);
}

EXPORT CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base,
				      size_t *size_p, off_t *file_offset_p,
				      off_t *bufPtr_offset_p,
				      ssize_t *bytes_written_p, CUstream stream)
{
	NOT_CANCELLED;
	struct order o = {
		.fh = fh, .base = bufPtr_base, .size_p = size_p,
		.off_p = file_offset_p, .buf_off_p = bufPtr_offset_p,
		.result_p = bytes_written_p, .write = true,
	};

	return order_if_open(&o, stream);
}

/* ---- streams ---- */

EXPORT CUfileError_t cuFileStreamRegister(CUstream stream, unsigned int flags)
{
	NOT_CANCELLED;
	struct stream *s, *old;
	CUfileOpError r;

	if (flags & ~FLAGS)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	s = malloc(sizeof(*s));
	if (s)
		*s = (struct stream){ .stream = stream, .id = id_of(stream),
				      .flags = flags };
	pthread_mutex_lock(&lock);
	old = *find(stream);
	if (!s) {
		r = CU_FILE_NOMEM_ERROR;
	} else if (old && old->id == s->id) {
		r = CU_FILE_INVALID_VALUE;
		free(s);
	} else if (old) {
		/* that of a stream that is no more */
		old->id = s->id;
		old->flags = flags;
		free(s);
	} else {
		s->next = streams;
		streams = s;
	}
	pthread_mutex_unlock(&lock);
	driver_end();
	return result(r);
}

EXPORT CUfileError_t cuFileStreamDeregister(CUstream stream)
{
	struct stream **p, *s;

	if (!driver_begin())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	pthread_mutex_lock(&lock);
	p = find(stream);
	s = *p;
	if (s)
		*p = s->next;
	pthread_mutex_unlock(&lock);
	free(s);
	driver_end();
	return result(s ? CU_FILE_SUCCESS : CU_FILE_INVALID_VALUE);
}

void stream_drop_all(void)
{
	struct order **p, *o;
	struct stream *s;

	find_lost();
	pthread_mutex_lock(&lock);
	for (p = &ordered; (o = *p);) {
		if (!o->lost) {
			p = &o->next;
			continue;
		}
		*p = o->next;
		free_order(o);
	}
	while ((s = streams)) {
		streams = s->next;
		free(s);
	}
	pthread_mutex_unlock(&lock);
}
