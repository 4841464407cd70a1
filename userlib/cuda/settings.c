// SPDX-License-Identifier: MIT
/*
 * What a context is and may: flags, limits, peers; and waiting for all of it.
 */
#include <stdlib.h>

#include "internal.h"

CUresult cuCtxGetDevice(CUdevice *dev)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

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
	err = drv_ctx_get(handle, &ctx);
	if (err)
		return err;
	if (dev)
		*dev = ctx->dev->ordinal;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	drv_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

	if (err)
		return err;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	*flags = ctx->flags;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

	if (!err)
		err = drv_ctx_check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	ctx->flags = flags;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

/* The context of @handle, or the thread's without one; to be put */
static CUresult get_or_current(CUcontext handle, CUcontext *ctx)
{
	CUresult err;

	if (handle)
		return drv_ctx_get(handle, ctx);
	err = drv_ctx_current_any(ctx);
	if (!err)
		atomic_fetch_add(&(*ctx)->obj.refs, 1);
	return err;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	CUcontext ctx;
	CUresult err;

	err = get_or_current(handle, &ctx);
	if (err)
		return err;
	if (id)
		*id = ctx->id;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	drv_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
	CUcontext ctx;
	CUresult err;

	err = get_or_current(handle, &ctx);
	if (err)
		return err;
	if (version)
		*version = ctx->api_version;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	drv_ctx_put(ctx);
	return err;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

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
	CUresult err = drv_ctx_current_any(&ctx);

	if (err)
		return err;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit > CU_LIMIT_MALLOC_HEAP_SIZE)
		return no_limit(limit);
	pthread_mutex_lock(&drv.lock);
	*value = ctx->limits[limit];
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

	if (err)
		return err;
	if (limit > CU_LIMIT_MALLOC_HEAP_SIZE)
		return no_limit(limit);
	pthread_mutex_lock(&drv.lock);
	ctx->limits[limit] = value;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

	if (err)
		return err;
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	*config = ctx->cache_config;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current_any(&ctx);

	if (err)
		return err;
	if (config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	ctx->cache_config = config;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

static struct drv_peer *peer_of(CUcontext ctx, CUcontext peer)
{
	struct drv_peer *p;

	LIST_FOREACH(p, &ctx->peers, link)
		if (p->ctx == peer)
			return p;
	return NULL;
}

bool drv_ctx_reaches(CUcontext ctx, CUcontext owner)
{
	return ctx->dev == owner->dev || peer_of(ctx, owner);
}

static void peer_drop(struct drv_peer *p)
{
	if (p) {
		LIST_REMOVE(p, link);
		free(p);
	}
}

void drv_ctx_unpeer(CUcontext ctx)
{
	CUcontext other;

	while (!LIST_EMPTY(&ctx->peers))
		peer_drop(LIST_FIRST(&ctx->peers));
	for (int i = 0; i < drv.nr_devices; i++)
		LIST_FOREACH(other, &drv.devices[i].contexts, link)
			peer_drop(peer_of(other, ctx));
}

static CUresult peer_access(CUcontext handle, bool on)
{
	struct drv_peer *p, *fresh = NULL;
	CUcontext ctx, peer;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	err = drv_ctx_get(handle, &peer);
	if (err) {
		drv_ctx_put(ctx);
		return err;
	}
	if (on)
		fresh = calloc(1, sizeof(*fresh));
	pthread_mutex_lock(&drv.lock);
	p = peer_of(ctx, peer);
	if (atomic_load(&ctx->destroyed) || atomic_load(&peer->destroyed)) {
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else if (!on && !p) {
		err = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	} else if (!on) {
		peer_drop(p);
	} else if (!drv_peers(ctx->dev, peer->dev)) {
		err = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	} else if (p) {
		err = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	} else if (!fresh) {
		err = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		fresh->ctx = peer;
		LIST_INSERT_HEAD(&ctx->peers, fresh, link);
		fresh = NULL;
	}
	pthread_mutex_unlock(&drv.lock);
	free(fresh);
	drv_ctx_put(peer);
	drv_ctx_put(ctx);
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

/* What @sink has is told once; *@err: the first one */
static void take_error(struct drv_sink *sink, CUresult *err)
{
	CUresult e = (CUresult)atomic_exchange(&sink->err, 0);

	if (!*err)
		*err = e;
}

static CUresult ctx_sync(CUcontext ctx)
{
	CUresult err = drv_ctx_state(ctx);
	CUresult drained;
	CUstream stream;

	if (err)
		return err;
	drained = drv_ctx_drain(ctx);
	err = drv_ctx_state(ctx);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (ctx->legacy)
		take_error(ctx->legacy->sink, &err);
	LIST_FOREACH(stream, &ctx->streams, link)
		take_error(stream->sink, &err);
	take_error(ctx->gone, &err);
	pthread_mutex_unlock(&drv.lock);
	if (!err && !drained)
		drv_pools_settle(ctx->dev);
	return err ? err : drained;
}

CUresult cuCtxSynchronize(void)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	err = ctx_sync(ctx);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	CUcontext ctx;
	CUresult err;

	if (!handle)
		return cuCtxSynchronize();
	err = drv_ctx_get(handle, &ctx);
	if (err)
		return err;
	err = ctx_sync(ctx);
	drv_ctx_put(ctx);
	return err;
}
