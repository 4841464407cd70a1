// SPDX-License-Identifier: MIT
/*
 * Primary contexts: one for each device, shared by all who retain it.
 */
#include "internal.h"

/*
 * Take the primary context away from its device, with a reference, or NULL.  Who
 * retained it still has to release it: the count stays.
 */
static CUcontext primary_take(struct drv_device *d)
{
	CUcontext ctx = d->primary;

	if (ctx)
		atomic_fetch_add(&ctx->obj.refs, 1);
	d->primary = NULL;
	return ctx;
}

/* The end of what was taken away, or of nothing; drv.lock is not held */
static void primary_end(CUcontext ctx)
{
	if (!ctx)
		return;
	drv_ctx_destroy(ctx);
	drv_ctx_put(ctx);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	struct drv_device *d;
	CUcontext lost = NULL;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	/* A reset took its memory: start afresh */
	if (d->primary && atomic_load(&d->primary->file->lost))
		lost = primary_take(d);
	if (!d->primary)
		err = drv_ctx_new(d, d->primary_flags, true, 3020, &d->primary);
	if (!err) {
		d->primary_refs++;
		*out = d->primary;
	}
	pthread_mutex_unlock(&drv.lock);
	primary_end(lost);
	return err;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct drv_device *d;
	CUcontext last = NULL;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (!d->primary_refs)
		err = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--d->primary_refs)
		last = primary_take(d);
	pthread_mutex_unlock(&drv.lock);
	primary_end(last);
	return err;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

/*
 * Everything in the primary context goes, whoever retains it.  Their handles
 * then answer "destroyed", and the next retain makes a new context.  Those who
 * retained the old one release the new one, if there is one by then.
 */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct drv_device *d;
	CUcontext ctx;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	ctx = primary_take(d);
	pthread_mutex_unlock(&drv.lock);
	primary_end(ctx);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (!err)
		err = drv_ctx_check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	d->primary_flags = flags;
	if (d->primary)
		d->primary->flags = flags;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
				    int *active)
{
	struct drv_device *d;
	CUresult err = drv_device_named(dev, &d);

	if (err)
		return err;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	*flags = d->primary_flags;
	*active = d->primary != NULL;
	pthread_mutex_unlock(&drv.lock);
	return CUDA_SUCCESS;
}
