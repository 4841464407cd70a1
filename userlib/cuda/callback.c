// SPDX-License-Identifier: MIT
/*
 * Functions of the program in the order of a stream.
 *
 * Each is called by a thread of the library that has nothing else to do, so one
 * that waits holds up its own stream only.  They must not call the library.
 */
#include <stdlib.h>

#include "internal.h"

struct call {
	CUhostFn host;			/* or */
	CUstreamCallback callback;
	void *arg;
	CUstream stream;		/* as the program named it */
};

static __thread bool in_call;

bool drv_in_call(void)
{
	return in_call;
}

static void call_end(void *call)
{
	/* The function may have let its thread be cancelled; the library holds locks */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	in_call = false;
	free(call);
}

static CUresult call_run(struct drv_job *job, void *arg)
{
	struct call *call = arg;
	CUresult fault = (CUresult)atomic_load(&job->fault->err);

	pthread_cleanup_push(call_end, call);
	in_call = true;
	if (atomic_load(&job->cancelled))
		;
	else if (call->callback)
		call->callback(call->stream, job->before ? job->before : fault,
			       call->arg);
	/* Of a context in error these are not called, and those are */
	else if (!fault)
		call->host(call->arg);
	pthread_cleanup_pop(1);
	return CUDA_SUCCESS;
}

static CUresult add(CUstream handle, CUhostFn host, CUstreamCallback callback,
		    void *arg)
{
	struct call *call;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	call = calloc(1, sizeof(*call));
	if (call) {
		call->host = host;
		call->callback = callback;
		call->arg = arg;
		call->stream = handle;
		err = drv_stream_work(stream, NULL, DRV_USE_FILE, NULL, call_run,
				      call, NULL);
		if (err)
			free(call);
	} else {
		err = CUDA_ERROR_OUT_OF_MEMORY;
	}
	drv_obj_put(&stream->obj);
	return err;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg)
{
	CUresult err = drv_ready();

	if (!err && !function)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : add(stream, function, NULL, arg);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
			     void *arg, unsigned int flags)
{
	CUresult err = drv_ready();

	if (!err && (!callback || flags))
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : add(stream, NULL, callback, arg);
}
