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
		if (!atomic_load(&pln.forked))
			pln_ctx_put(e->ctx);
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
		pln_ctx_put(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	e->ctx = ctx;
	e->below = top;
	if (pthread_setspecific(stack_key, e)) {
		free(e);
		pln_ctx_put(ctx);
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

void pln_ctx_put(CUcontext ctx)
{
	if (ctx)
		pln_obj_put(&ctx->obj);
}

/* Last reference gone: nobody can reach it any more */
void pln_ctx_free(struct CUctx_st *ctx)
{
	pln_lane_clear(&ctx->lane);
	pln_file_put(ctx->file);
	free(ctx);
}

CUresult pln_ctx_state(CUcontext ctx)
{
	if (atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (atomic_load(&ctx->file->lost))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	return CUDA_SUCCESS;
}

/* The calling thread's context, usable, with a reference for the caller */
CUresult pln_ctx_current(CUcontext *out)
{
	struct stack_entry *e;
	CUresult err = pln_ready();

	if (err)
		return err;
	e = stack_top();
	if (!e || !e->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	err = pln_ctx_state(e->ctx);
	if (err)
		return err;
	atomic_fetch_add(&e->ctx->obj.refs, 1);
	*out = e->ctx;
	return CUDA_SUCCESS;
}

/* The context that a handle names, lost or not */
CUresult pln_ctx_get(CUcontext handle, CUcontext *out)
{
	CUresult err = pln_ready();

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	*out = handle ? pln_obj_find(handle, PLN_CTX) : NULL;
	pthread_mutex_unlock(&pln.lock);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult check_flags(unsigned int flags)
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

/* pln.lock is held; the table's reference is the only one */
static CUresult ctx_new(struct pln_device *dev, unsigned int flags,
			bool primary, unsigned int version, CUcontext *out)
{
	CUresult err;
	CUcontext ctx;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->obj.type = PLN_CTX;
	atomic_init(&ctx->obj.refs, 1);
	ctx->file = pln_file_open(dev, &err);
	if (!ctx->file) {
		free(ctx);
		return err;
	}
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->primary = primary;
	ctx->api_version = version;
	ctx->id = atomic_fetch_add(&pln.next_id, 1) + 1;
	ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 * MiB;
	ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MiB;
	LIST_INIT(&ctx->streams);
	LIST_INIT(&ctx->events);
	LIST_INIT(&ctx->ranges);
	LIST_INIT(&ctx->blocks);
	LIST_INIT(&ctx->cls);
	LIST_INIT(&ctx->modules);
	err = pln_stream_new(ctx, 0, 0, true, &ctx->legacy);
	if (!err) {
		err = pln_obj_add(&ctx->obj);
		if (err) {
			CUstream legacy = ctx->legacy;

			ctx->legacy = NULL;
			pln_obj_put(&legacy->obj);
		}
	}
	if (err) {
		pln_ctx_put(ctx);
		return err;
	}
	dev->nr_users++;
	LIST_INSERT_HEAD(&dev->contexts, ctx, link);
	*out = ctx;
	return CUDA_SUCCESS;
}

/*
 * Take a context out of service and give back what it holds.  pln.lock is not
 * held; the caller has a reference of its own.  Returns false when somebody
 * else did it.
 */
static bool ctx_destroy(CUcontext ctx)
{
	struct pln_file *idle;
	CUstream stream, legacy;
	CUevent event;

	pthread_mutex_lock(&pln.lock);
	if (atomic_exchange(&ctx->destroyed, true)) {
		pthread_mutex_unlock(&pln.lock);
		return false;
	}
	pln_obj_del(&ctx->obj);
	pthread_mutex_unlock(&pln.lock);

	pln_cls_drop(ctx);
	pln_ctx_unload(ctx);
	pln_file_drain(ctx->file);
	pln_ctx_free_memory(ctx);

	for (;;) {
		pthread_mutex_lock(&pln.lock);
		stream = LIST_FIRST(&ctx->streams);
		if (stream) {
			LIST_REMOVE(stream, link);
			pln_obj_del(&stream->obj);
		}
		pthread_mutex_unlock(&pln.lock);
		if (!stream)
			break;
		pln_obj_put(&stream->obj);
	}
	for (;;) {
		pthread_mutex_lock(&pln.lock);
		event = LIST_FIRST(&ctx->events);
		if (event) {
			LIST_REMOVE(event, link);
			pln_obj_del(&event->obj);
		}
		pthread_mutex_unlock(&pln.lock);
		if (!event)
			break;
		pln_obj_put(&event->obj);
	}
	pthread_mutex_lock(&pln.lock);
	legacy = ctx->legacy;
	ctx->legacy = NULL;
	LIST_REMOVE(ctx, link);
	idle = pln_device_unuse(ctx->dev);
	pthread_mutex_unlock(&pln.lock);
	if (legacy)
		pln_obj_put(&legacy->obj);
	pln_file_put(idle);
	pln_ctx_put(ctx);		/* the table's reference */
	return true;
}

static CUresult create(CUcontext *out, unsigned int flags, CUdevice dev,
		       unsigned int version)
{
	struct pln_device *d;
	CUcontext ctx;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	err = check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	err = ctx_new(d, flags, false, version, &ctx);
	if (!err)
		atomic_fetch_add(&ctx->obj.refs, 2);	/* stack, and here */
	pthread_mutex_unlock(&pln.lock);
	if (err)
		return err;
	err = stack_push(ctx);
	if (err)
		ctx_destroy(ctx);
	else
		*out = ctx;
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return create(ctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int n,
			unsigned int flags, CUdevice dev)
{
	CUresult err = pln_ready();

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
	CUresult err = pln_ready();

	if (err)
		return err;
	if (params && (params->affinity || params->nr_affinity || params->cig))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ctx, flags, dev, 3020);
}

/* Where no context at all is a bad argument, not a bad context */
static CUresult named(CUcontext handle, CUcontext *ctx)
{
	CUresult err = pln_ready();

	if (!err && !handle)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err : pln_ctx_get(handle, ctx);
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct stack_entry *top;
	CUcontext ctx;
	CUresult err = named(handle, &ctx);

	if (err)
		return err;
	if (ctx->primary || !ctx_destroy(ctx)) {
		pln_ctx_put(ctx);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	top = stack_top();
	if (top && top->ctx == ctx)
		pln_ctx_put(stack_pop());
	pln_ctx_put(ctx);
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
	CUresult err = pln_ready();

	if (err)
		return err;
	ctx = stack_pop();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (out)
		*out = ctx;
	pln_ctx_put(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct stack_entry *top;
	CUcontext ctx, old;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!handle) {
		pln_ctx_put(stack_pop());
		return CUDA_SUCCESS;
	}
	err = pln_ctx_get(handle, &ctx);
	if (err)
		return err;
	top = stack_top();
	if (!top)
		return stack_push(ctx);
	old = top->ctx;
	top->ctx = ctx;
	pln_ctx_put(old);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	struct stack_entry *top;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	top = stack_top();
	*out = top ? top->ctx : NULL;
	return CUDA_SUCCESS;
}

/* Questions that a lost context can still answer */
static CUresult current_any(CUcontext *out)
{
	struct stack_entry *top;
	CUresult err = pln_ready();

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

CUresult cuCtxGetDevice(CUdevice *dev)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*dev = ctx->dev->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext handle)
{
	CUcontext ctx;
	CUresult err;

	if (!handle)
		return cuCtxGetDevice(dev);
	err = pln_ctx_get(handle, &ctx);
	if (err)
		return err;
	if (dev)
		*dev = ctx->dev->ordinal;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	*flags = ctx->flags;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (!err)
		err = check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	ctx->flags = flags;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	CUcontext ctx;
	CUresult err;

	if (!handle) {
		err = current_any(&ctx);
		if (err)
			return err;
		atomic_fetch_add(&ctx->obj.refs, 1);
	} else {
		err = pln_ctx_get(handle, &ctx);
		if (err)
			return err;
	}
	if (id)
		*id = ctx->id;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
	CUcontext ctx;
	CUresult err;

	if (!handle) {
		err = current_any(&ctx);
		if (err)
			return err;
		atomic_fetch_add(&ctx->obj.refs, 1);
	} else {
		err = pln_ctx_get(handle, &ctx);
		if (err)
			return err;
	}
	if (version)
		*version = ctx->api_version;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (least)
		*least = 0;
	if (greatest)
		*greatest = 0;
	return CUDA_SUCCESS;
}

/* Kernels have more limits; past the last one there is none */
static CUresult no_limit(CUlimit limit)
{
	return limit > CU_LIMIT_LAST ? CUDA_ERROR_INVALID_VALUE :
				       CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit > CU_LIMIT_MALLOC_HEAP_SIZE)
		return no_limit(limit);
	pthread_mutex_lock(&pln.lock);
	*value = ctx->limits[limit];
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (limit > CU_LIMIT_MALLOC_HEAP_SIZE)
		return no_limit(limit);
	pthread_mutex_lock(&pln.lock);
	ctx->limits[limit] = value;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	*config = ctx->cache_config;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	CUcontext ctx;
	CUresult err = current_any(&ctx);

	if (err)
		return err;
	if (config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	ctx->cache_config = config;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

static CUresult peer_access(CUcontext handle, bool on)
{
	CUcontext ctx, peer;
	uint32_t bit;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	err = pln_ctx_get(handle, &peer);
	if (err) {
		pln_ctx_put(ctx);
		return err;
	}
	bit = 1u << peer->dev->ordinal;
	pthread_mutex_lock(&pln.lock);
	if (!on && !(ctx->peers & bit))
		err = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	else if (!on)
		ctx->peers &= ~bit;
	else if (!pln_peers(ctx->dev, peer->dev))
		err = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	else if (ctx->peers & bit)
		err = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	else
		ctx->peers |= bit;
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(peer);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return peer_access(peer, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	return peer_access(peer, false);
}

static CUresult ctx_sync(CUcontext ctx)
{
	CUresult err = pln_ctx_state(ctx);
	CUresult drained;
	CUstream stream;

	if (err)
		return err;
	drained = pln_file_drain(ctx->file);
	err = pln_ctx_state(ctx);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	if (ctx->legacy)
		err = (CUresult)atomic_exchange(&ctx->legacy->sink->err, 0);
	LIST_FOREACH(stream, &ctx->streams, link) {
		CUresult e = (CUresult)atomic_exchange(&stream->sink->err, 0);

		if (!err)
			err = e;
	}
	pthread_mutex_unlock(&pln.lock);
	if (!err && !drained)
		pln_pools_settle(ctx->dev);
	return err ? err : drained;
}

CUresult cuCtxSynchronize(void)
{
	CUcontext ctx;
	CUresult err = pln_ctx_current(&ctx);

	if (err)
		return err;
	err = ctx_sync(ctx);
	pln_ctx_put(ctx);
	return err;
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	CUcontext ctx;
	CUresult err;

	if (!handle)
		return cuCtxSynchronize();
	err = pln_ctx_get(handle, &ctx);
	if (err)
		return err;
	err = ctx_sync(ctx);
	pln_ctx_put(ctx);
	return err;
}

/* ---- primary contexts ---- */

/* Take the primary context away from its device, with a reference */
static CUcontext primary_take(struct pln_device *d)
{
	CUcontext ctx = d->primary;

	if (ctx)
		atomic_fetch_add(&ctx->obj.refs, 1);
	d->primary = NULL;
	d->primary_refs = 0;
	return ctx;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	struct pln_device *d;
	CUcontext lost = NULL, ctx = NULL;
	CUresult err = pln_ready();

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&pln.lock);
	if (d->primary && atomic_load(&d->primary->file->lost)) {
		/* A reset took its memory: start afresh, keep the count */
		unsigned int refs = d->primary_refs;

		lost = primary_take(d);
		d->primary_refs = refs;
	}
	if (!d->primary)
		err = ctx_new(d, d->primary_flags, true, 3020, &d->primary);
	if (!err) {
		d->primary_refs++;
		ctx = d->primary;
	}
	pthread_mutex_unlock(&pln.lock);
	if (lost) {
		ctx_destroy(lost);
		pln_ctx_put(lost);
	}
	if (!err)
		*out = ctx;
	return err;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct pln_device *d;
	CUcontext last = NULL;
	CUresult err = pln_ready();

	if (err)
		return err;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&pln.lock);
	if (!d->primary_refs)
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--d->primary_refs)
		last = primary_take(d);
	pthread_mutex_unlock(&pln.lock);
	if (last) {
		ctx_destroy(last);
		pln_ctx_put(last);
	}
	return err;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

/*
 * Everything in the primary context goes, whoever retains it.  Their handles
 * then answer "destroyed", and the next retain makes a new context.
 */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct pln_device *d;
	CUcontext ctx;
	CUresult err = pln_ready();

	if (err)
		return err;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&pln.lock);
	ctx = primary_take(d);
	pthread_mutex_unlock(&pln.lock);
	if (ctx) {
		ctx_destroy(ctx);
		pln_ctx_put(ctx);
	}
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct pln_device *d;
	CUresult err = pln_ready();

	if (err)
		return err;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	err = check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	d->primary_flags = flags;
	if (d->primary)
		d->primary->flags = flags;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
				    int *active)
{
	struct pln_device *d;
	CUresult err = pln_ready();

	if (err)
		return err;
	d = pln_device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pln.lock);
	*flags = d->primary_flags;
	*active = d->primary != NULL;
	pthread_mutex_unlock(&pln.lock);
	return CUDA_SUCCESS;
}
