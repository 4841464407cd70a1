// SPDX-License-Identifier: MIT
/*
 * Functions of the program in the order of a stream.
 *
 * One thread, made when it is first needed, calls them one after the other.
 * What follows in the stream waits for the call as for a job of another queue:
 * the next submission sleeps.  They must not call the library.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

#define WAIT_SLICE_S	1
#define WAIT_LIMIT_NS	(120 * 1000000000ull)

struct pln_call {
	atomic_int refs;
	bool done;			/* calls_lock */
	CUhostFn host;			/* or */
	CUstreamCallback callback;
	void *arg;
	CUstream stream;		/* as the program named it */
	struct pln_job *job;		/* that goes before; may be NULL */
	STAILQ_ENTRY(pln_call) link;
};

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t calls_change;	/* its clock is CLOCK_MONOTONIC */
static pthread_once_t calls_once = PTHREAD_ONCE_INIT;
static unsigned long long ended;	/* calls_lock: calls, and jobs before them */
static STAILQ_HEAD(, pln_call) calls = STAILQ_HEAD_INITIALIZER(calls);
static atomic_bool have_thread;	/* set when thread is */
static pthread_t thread;

bool pln_in_call(void)
{
	return atomic_load(&have_thread) &&
	       pthread_equal(pthread_self(), thread);
}

struct pln_call *pln_call_ref(struct pln_call *call)
{
	if (call)
		atomic_fetch_add(&call->refs, 1);
	return call;
}

void pln_call_put(struct pln_call *call)
{
	if (!call || atomic_fetch_sub(&call->refs, 1) != 1)
		return;
	pln_job_put(call->job);
	free(call);
}

static void calls_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&calls_change, &attr);
	pthread_condattr_destroy(&attr);
}

static void *caller(void *unused)
{
	struct pln_call *call;
	CUresult err;

	for (;;) {
		pthread_mutex_lock(&calls_lock);
		while (STAILQ_EMPTY(&calls))
			pthread_cond_wait(&calls_change, &calls_lock);
		call = STAILQ_FIRST(&calls);
		STAILQ_REMOVE_HEAD(&calls, link);
		pthread_mutex_unlock(&calls_lock);

		err = CUDA_SUCCESS;
		if (call->job) {
			err = pln_job_wait(call->job, true);
			if (!err)
				err = call->job->err;
			pthread_mutex_lock(&calls_lock);
			ended++;
			pthread_mutex_unlock(&calls_lock);
		}
		if (call->host)
			call->host(call->arg);
		else
			call->callback(call->stream, err, call->arg);

		/* Whoever waits may find everything given back */
		pln_job_put(call->job);
		call->job = NULL;
		pthread_mutex_lock(&calls_lock);
		call->done = true;
		ended++;
		pthread_cond_broadcast(&calls_change);
		pthread_mutex_unlock(&calls_lock);
		pln_call_put(call);
	}
	return unused;
}

/* calls_lock is held.  Signals are the program's own threads' business. */
static bool start_thread(void)
{
	sigset_t all, before;

	if (have_thread)
		return true;
	pthread_once(&calls_once, calls_init);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	have_thread = !pthread_create(&thread, NULL, caller, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (have_thread)
		pthread_detach(thread);
	return have_thread;
}

/* The time is that of one function: when another one has ended it starts anew */
CUresult pln_call_wait(struct pln_call *call, bool block)
{
	uint64_t deadline = pln_now() + WAIT_LIMIT_NS;
	CUresult err = CUDA_SUCCESS;
	unsigned long long seen;
	struct timespec end;

	pthread_once(&calls_once, calls_init);
	pthread_mutex_lock(&calls_lock);
	seen = ended;
	while (!call->done && !err) {
		if (!block) {
			err = CUDA_ERROR_NOT_READY;
			break;
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_sec += WAIT_SLICE_S;
		pthread_cond_timedwait(&calls_change, &calls_lock, &end);
		if (seen != ended) {
			seen = ended;
			deadline = pln_now() + WAIT_LIMIT_NS;
		} else if (!call->done && pln_now() > deadline) {
			pln_log("a function of the program has not returned for 120 s");
			err = CUDA_ERROR_LAUNCH_TIMEOUT;
		}
	}
	pthread_mutex_unlock(&calls_lock);
	return err;
}

static CUresult add(CUstream handle, CUhostFn host, CUstreamCallback callback,
		    void *arg)
{
	struct pln_call *call;
	CUstream stream;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	call = calloc(1, sizeof(*call));
	if (!call) {
		pln_obj_put(&stream->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_init(&call->refs, 2);		/* the thread's and ours */
	call->host = host;
	call->callback = callback;
	call->arg = arg;
	call->stream = handle;
	err = pln_stream_call(stream, call, &call->job);
	if (!err) {
		pthread_mutex_lock(&calls_lock);
		if (start_thread()) {
			STAILQ_INSERT_TAIL(&calls, call, link);
			pthread_cond_broadcast(&calls_change);
		} else {
			call->done = true;	/* nobody need wait for it */
			err = CUDA_ERROR_OPERATING_SYSTEM;
		}
		pthread_mutex_unlock(&calls_lock);
	}
	if (err)
		pln_call_put(call);		/* the thread's */
	pln_call_put(call);
	pln_obj_put(&stream->obj);
	return err;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg)
{
	CUresult err = pln_ready();

	if (!err && !function)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : add(stream, function, NULL, arg);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
			     void *arg, unsigned int flags)
{
	CUresult err = pln_ready();

	if (!err && (!callback || flags))
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : add(stream, NULL, callback, arg);
}
