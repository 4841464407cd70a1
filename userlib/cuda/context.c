// SPDX-License-Identifier: MIT
/*
 * Contexts, and each thread's stack of them.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct stack_entry {
	CUcontext ctx;
	struct stack_entry *below;
};

static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;
static bool stack_ok;

static void stack_drop(void *top)
{
	struct stack_entry *e = top;

	while (e) {
		struct stack_entry *below = e->below;

		/* A forked child must leave the parent's objects alone */
		if (!atomic_load(&drv.forked))
			drv_ctx_put(e->ctx);
		free(e);
		e = below;
	}
}

static void stack_init(void)
{
	stack_ok = !pthread_key_create(&stack_key, stack_drop);
}

static struct stack_entry *stack_top(void)
{
	pthread_once(&stack_once, stack_init);
	return stack_ok ? pthread_getspecific(stack_key) : NULL;
}

/* Takes over the caller's reference on @ctx */
static CUresult stack_push(CUcontext ctx)
{
	struct stack_entry *e = malloc(sizeof(*e));
	struct stack_entry *top = stack_top();

	if (!e || !stack_ok) {
		free(e);
		drv_ctx_put(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = ctx;
	e->below = top;
	if (pthread_setspecific(stack_key, e)) {
		free(e);
		drv_ctx_put(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Gives its reference to the caller */
static CUcontext stack_pop(void)
{
	struct stack_entry *e = stack_top();
	CUcontext ctx;

	if (!e)
		return NULL;
	ctx = e->ctx;
	pthread_setspecific(stack_key, e->below);
	free(e);
	return ctx;
}

void drv_ctx_put(CUcontext ctx)
{
	if (ctx)
		drv_obj_put(&ctx->obj);
}

/* Last reference gone: nobody can reach it any more */
void drv_ctx_free(struct CUctx_st *ctx)
{
	drv_ctx_forget(ctx);
	drv_shared_forget(ctx);
	drv_file_put(ctx->file);
	drv_sink_put(ctx->fault);
	drv_sink_put(ctx->gone);
	free(ctx);
}

CUresult drv_ctx_state(CUcontext ctx)
{
	if (atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (atomic_load(&ctx->file->lost))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	return (CUresult)atomic_load(&ctx->fault->err);
}

/* The calling thread's context, usable, with a reference for the caller */
CUresult drv_ctx_current(CUcontext *out)
{
	struct stack_entry *e;
	CUresult err = drv_ready();

	if (err)
		return err;
	e = stack_top();
	if (!e || !e->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	err = drv_ctx_state(e->ctx);
	if (err)
		return err;
	atomic_fetch_add(&e->ctx->obj.refs, 1);
	*out = e->ctx;
	return CUDA_SUCCESS;
}

CUresult drv_ctx_needed(void)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (!err)
		drv_ctx_put(ctx);
	return err;
}

/* The context that a handle names, lost or not */
CUresult drv_ctx_get(CUcontext handle, CUcontext *out)
{
	CUresult err;

	*out = drv_obj_get(handle, DRV_CTX, CUDA_ERROR_INVALID_CONTEXT, &err);
	return err;
}

CUresult drv_ctx_check_flags(unsigned int flags)
{
	unsigned int sched = flags & CU_CTX_SCHED_MASK;

	/* The two core-dump flags (0x20, 0x40) are taken and mean nothing */
	if (flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	if (sched != CU_CTX_SCHED_AUTO && sched != CU_CTX_SCHED_SPIN &&
	    sched != CU_CTX_SCHED_YIELD &&
	    sched != CU_CTX_SCHED_BLOCKING_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* drv.lock is held; the table's reference is the only one */
CUresult drv_ctx_new(struct drv_device *dev, unsigned int flags, bool primary,
		     unsigned int version, CUcontext *out)
{
	CUresult err;
	CUcontext ctx;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->obj.type = DRV_CTX;
	atomic_init(&ctx->obj.refs, 1);
	ctx->fault = drv_sink_new();
	ctx->gone = drv_sink_new();
	err = CUDA_ERROR_OUT_OF_MEMORY;
	if (ctx->fault && ctx->gone)
		ctx->file = drv_file_open(dev, &err);
	if (!ctx->file) {
		drv_sink_put(ctx->fault);
		drv_sink_put(ctx->gone);
		free(ctx);
		return err;
	}
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->primary = primary;
	ctx->api_version = version;
	ctx->id = atomic_fetch_add(&drv.next_id, 1) + 1;
	ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 * MiB;
	ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MiB;
	LIST_INIT(&ctx->streams);
	LIST_INIT(&ctx->events);
	LIST_INIT(&ctx->ranges);
	LIST_INIT(&ctx->blocks);
	LIST_INIT(&ctx->modules);
	LIST_INIT(&ctx->left);
	LIST_INIT(&ctx->peers);
	STAILQ_INIT(&ctx->words);
	err = drv_stream_new(ctx, 0, 0, true, &ctx->legacy);
	if (!err) {
		err = drv_obj_add(&ctx->obj);
		if (err) {
			CUstream legacy = ctx->legacy;

			ctx->legacy = NULL;
			drv_obj_put(&legacy->obj);
		}
	}
	if (err) {
		drv_ctx_put(ctx);
		return err;
	}
	dev->nr_users++;
	LIST_INSERT_HEAD(&dev->contexts, ctx, link);
	*out = ctx;
	return CUDA_SUCCESS;
}

/*
 * Take a context out of service and give back what it holds.  drv.lock is not
 * held; the caller has a reference of its own.  Returns false when somebody
 * else did it.
 */
bool drv_ctx_destroy(CUcontext ctx)
{
	struct drv_file *idle;
	CUstream stream, legacy;
	CUevent event;

	pthread_mutex_lock(&drv.lock);
	if (atomic_exchange(&ctx->destroyed, true)) {
		pthread_mutex_unlock(&drv.lock);
		return false;
	}
	drv_obj_del(&ctx->obj);
	drv_ctx_unpeer(ctx);
	pthread_mutex_unlock(&drv.lock);

	drv_ctx_unload(ctx);
	drv_ctx_end(ctx);
	drv_ctx_free_memory(ctx);

	for (;;) {
		pthread_mutex_lock(&drv.lock);
		stream = LIST_FIRST(&ctx->streams);
		if (stream) {
			drv_obj_del(&stream->obj);
			drv_stream_leave(stream);
		}
		pthread_mutex_unlock(&drv.lock);
		if (!stream)
			break;
		drv_obj_put(&stream->obj);
	}
	for (;;) {
		pthread_mutex_lock(&drv.lock);
		event = LIST_FIRST(&ctx->events);
		if (event) {
			LIST_REMOVE(event, link);
			drv_obj_del(&event->obj);
		}
		pthread_mutex_unlock(&drv.lock);
		if (!event)
			break;
		drv_obj_put(&event->obj);
	}
	pthread_mutex_lock(&drv.lock);
	legacy = ctx->legacy;
	ctx->legacy = NULL;
	LIST_REMOVE(ctx, link);
	idle = drv_device_unuse(ctx->dev);
	pthread_mutex_unlock(&drv.lock);
	if (legacy)
		drv_obj_put(&legacy->obj);
	/* It is to be closed when we return; else threads work for others, too */
	if (idle == ctx->file || atomic_load(&ctx->file->lost))
		drv_file_quiet(ctx->file);
	drv_file_put(idle);
	drv_ctx_put(ctx);		/* the table's reference */
	return true;
}

static CUresult create(CUcontext *out, unsigned int flags, CUdevice dev,
		       unsigned int version)
{
	struct drv_device *d;
	CUcontext ctx;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	err = drv_ctx_check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	err = drv_ctx_new(d, flags, false, version, &ctx);
	if (!err)
		atomic_fetch_add(&ctx->obj.refs, 2);	/* stack, and here */
	pthread_mutex_unlock(&drv.lock);
	if (err)
		return err;
	err = stack_push(ctx);
	if (err)
		drv_ctx_destroy(ctx);
	else
		*out = ctx;
	drv_ctx_put(ctx);
	return err;
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int n,
			unsigned int flags, CUdevice dev)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (n < 0 || (n > 0) != (params != NULL))
		return CUDA_ERROR_INVALID_VALUE;
	if (n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params,
			unsigned int flags, CUdevice dev)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (params && (params->affinity || params->nr_affinity || params->cig))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ctx, flags, dev, 3020);
}

/* Where no context at all is a bad argument, not a bad context */
static CUresult named(CUcontext handle, CUcontext *ctx)
{
	CUresult err = drv_ready();

	if (!err && !handle)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : drv_ctx_get(handle, ctx);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct stack_entry *top;
	CUcontext ctx;
	CUresult err = named(handle, &ctx);

	if (err)
		return err;
	if (ctx->primary || !drv_ctx_destroy(ctx)) {
		drv_ctx_put(ctx);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	top = stack_top();
	if (top && top->ctx == ctx)
		drv_ctx_put(stack_pop());
	drv_ctx_put(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	CUcontext ctx;
	CUresult err = named(handle, &ctx);

	return err ? err : stack_push(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	CUcontext ctx;
	CUresult err = drv_ready();

	if (err)
		return err;
	ctx = stack_pop();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (out)
		*out = ctx;
	drv_ctx_put(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct stack_entry *top;
	CUcontext ctx, old;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!handle) {
		drv_ctx_put(stack_pop());
		return CUDA_SUCCESS;
	}
	err = drv_ctx_get(handle, &ctx);
	if (err)
		return err;
	top = stack_top();
	if (!top)
		return stack_push(ctx);
	old = top->ctx;
	top->ctx = ctx;
	drv_ctx_put(old);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	struct stack_entry *top;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	top = stack_top();
	*out = top ? top->ctx : NULL;
	return CUDA_SUCCESS;
}

/* Questions that a lost context can still answer */
CUresult drv_ctx_current_any(CUcontext *out)
{
	struct stack_entry *top;
	CUresult err = drv_ready();

	if (err)
		return err;
	top = stack_top();
	if (!top)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (atomic_load(&top->ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*out = top->ctx;
	return CUDA_SUCCESS;
}
