// SPDX-License-Identifier: MIT
/*
 * The driver, the devices' contexts, and the error that a thread remembers.
 *
 * The driver is whatever libcuda.so.1 the loader finds, at the first call that
 * needs it: a program starts without one, as with NVIDIA's runtime.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/load.h"
#include "internal.h"

#define MAX_DEVICES	64

struct rt_driver rt_driver;

/* A primary context; its handle may be another one's when it is gone */
struct primary {
	CUcontext ctx;			/* that we hold, or NULL */
	unsigned long long id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool tried;
	cudaError_t err;		/* of starting the driver */
	struct primary primary[MAX_DEVICES];
	CUcontext *ours;		/* handles of all that we ever held */
	size_t nr_ours;
} rt;

static __thread cudaError_t last;
static __thread int device_of_thread;

/*
 * A child has one thread: what others were at must not be left half done in it, and no
 * lock taken.  The driver then tells it that it cannot be used.
 */
static void fork_begins(void)
{
	pthread_mutex_lock(&lock);
	rt_code_lock(true);
}

static void fork_ends(void)
{
	rt_code_lock(false);
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor))
static void init(void)
{
	pthread_atfork(fork_begins, fork_ends, fork_ends);
}

cudaError_t rt_end(cudaError_t error)
{
	if (error)
		last = error;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last;

	last = cudaSuccess;
	return error;
}

static const struct {
	cudaError_t error;
	const char *name;
	const char *words;
} errors[] = {
#define PLN_X(name, number, words) { name, #name, words },
	PLN_CUDART_ERRORS(PLN_X)
#undef PLN_X
};

static const char unknown[] = "unrecognized error code";

const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].name;
	return unknown;
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].words;
	return unknown;
}

static cudaError_t start(void)
{
	static const struct load_function functions[] = {
#define PLN_F(name, suffix, since, alias, sorts, ...) \
		{ &rt_driver.name##suffix, #name #suffix, NULL, false },
#include "../cuda/cuda_proto.h"
	};
	int version = 0;
	char why[256];
	CUresult err;

	if (load_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL, functions,
			 LOAD_COUNT(functions), why, sizeof(why))) {
		fprintf(stderr, "libcudart (Peerlane): %s\n", why);
		return cudaErrorInsufficientDriver;
	}
	if (!rt_driver.cuInit || !rt_driver.cuDriverGetVersion ||
	    !rt_driver.cuCtxGetCurrent || !rt_driver.cuDevicePrimaryCtxRetain)
		return cudaErrorInsufficientDriver;
	err = rt_driver.cuInit(0);
	if (err)
		return rt_from(err);
	/* Minor versions of one major version work together */
	if (rt_driver.cuDriverGetVersion(&version) ||
	    version / 1000 < CUDART_MAJOR)
		return cudaErrorInsufficientDriver;
	return cudaSuccess;
}

cudaError_t rt_start(void)
{
	cudaError_t err;

	pthread_mutex_lock(&lock);
	if (!rt.tried) {
		rt.err = start();
		rt.tried = true;
	}
	err = rt.err;
	pthread_mutex_unlock(&lock);
	return err;
}

static bool is_destroyed(CUresult err)
{
	return err == CUDA_ERROR_INVALID_CONTEXT ||
	       err == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Has somebody reset the device, by whichever interface? */
static bool is_gone(const struct primary *primary)
{
	unsigned long long id = primary->id;
	CUresult err;

	if (!primary->ctx || !rt_driver.cuCtxGetId)
		return false;
	err = rt_driver.cuCtxGetId(primary->ctx, &id);
	return is_destroyed(err) || id != primary->id;
}

/* lock is held */
static bool is_ours(CUcontext ctx)
{
	for (size_t i = 0; i < rt.nr_ours; i++)
		if (rt.ours[i] == ctx)
			return true;
	return false;
}

/* lock is held */
static cudaError_t retain(int device, struct primary *primary)
{
	CUcontext *more = realloc(rt.ours, (rt.nr_ours + 1) * sizeof(*more));
	cudaError_t err;

	if (!more)
		return cudaErrorMemoryAllocation;
	rt.ours = more;
	err = rt_from(rt_driver.cuDevicePrimaryCtxRetain(&primary->ctx, device));
	if (err)
		return err;
	(void)DRIVER(cuCtxGetId, primary->ctx, &primary->id);
	if (!is_ours(primary->ctx))
		rt.ours[rt.nr_ours++] = primary->ctx;
	return cudaSuccess;
}

/*
 * The primary context of @device, which we hold until it is reset or the program ends.
 * *@again: it replaces one that a reset has taken.
 */
static cudaError_t get_primary(int device, CUcontext *ctx, bool *again)
{
	struct primary *primary, anew = { NULL, 0 };
	cudaError_t err = cudaSuccess;
	bool gone;

	*again = false;
	if (device < 0 || device >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	primary = &rt.primary[device];
	pthread_mutex_lock(&lock);
	gone = is_gone(primary);
	if (gone || !primary->ctx) {
		err = retain(device, &anew);
		if (!err) {
			*primary = anew;
			*again = gone;
		}
	}
	*ctx = primary->ctx;
	pthread_mutex_unlock(&lock);
	if (!*again)
		return err;
	/* A reset does not release what it destroys; others may hold what has come since */
	(void)DRIVER(cuDevicePrimaryCtxRelease_v2, device);
	pthread_mutex_lock(&lock);
	/* Nor was it a reset where others released more than they had: then that was the last one */
	if (is_gone(primary)) {
		err = retain(device, &anew);
		if (!err)
			*primary = anew;
	}
	*ctx = primary->ctx;
	pthread_mutex_unlock(&lock);
	return err;
}

static cudaError_t make_current(CUcontext ctx, bool again)
{
	cudaError_t err = DRIVER(cuCtxSetCurrent, ctx);

	if (!err && again)
		rt_place_again();
	return err;
}

cudaError_t rt_primary(int device, CUcontext *ctx)
{
	bool again;
	cudaError_t err = get_primary(device, ctx, &again);

	if (!err && again)
		rt_place_again();
	return err;
}

/*
 * The thread's context, or NULL.  One of ours is none any more when the device has been
 * reset, by any thread; what is wrong with its own ones the program hears.
 */
static cudaError_t get_current(CUcontext *ctx)
{
	cudaError_t err = DRIVER(cuCtxGetCurrent, ctx);
	CUdevice dev;

	if (err || !*ctx || !rt_driver.cuCtxGetDevice ||
	    !is_destroyed(rt_driver.cuCtxGetDevice(&dev)))
		return err;
	pthread_mutex_lock(&lock);
	if (is_ours(*ctx))
		*ctx = NULL;
	pthread_mutex_unlock(&lock);
	return cudaSuccess;
}

cudaError_t rt_enter(void)
{
	CUcontext ctx = NULL;
	bool again;
	cudaError_t err = rt_start();

	if (!err)
		err = get_current(&ctx);
	if (err || ctx)
		return err;
	err = get_primary(device_of_thread, &ctx, &again);
	return err ? err : make_current(ctx, again);
}

/* ---- which device ---- */

/* A context that the program made with the driver interface counts */
static int current_device(void)
{
	CUcontext ctx = NULL;
	CUdevice dev;

	if (!rt_driver.cuCtxGetCurrent(&ctx) && ctx &&
	    !rt_driver.cuCtxGetDevice(&dev))
		return dev;
	return device_of_thread;
}

static cudaError_t check_device(int device)
{
	int n = 0;
	cudaError_t err = rt_start();

	if (!err)
		err = DRIVER(cuDeviceGetCount, &n);
	if (!err && (device < 0 || device >= n))
		err = cudaErrorInvalidDevice;
	return err;
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t err = rt_start();

	if (!err && !device)
		err = cudaErrorInvalidValue;
	if (!err)
		*device = current_device();
	return rt_end(err);
}

cudaError_t cudaSetDevice(int device)
{
	CUcontext ctx;
	bool again;
	cudaError_t err = check_device(device);

	if (!err)
		err = get_primary(device, &ctx, &again);
	if (!err)
		err = make_current(ctx, again);
	if (!err)
		device_of_thread = device;
	return rt_end(err);
}

/* The runtime's flags have the driver's numbers */
cudaError_t cudaInitDevice(int device, unsigned int device_flags,
			   unsigned int flags)
{
	CUcontext ctx;
	cudaError_t err = check_device(device);

	/* Bit 0: device_flags are to be used; others are not looked at */
	if (!err && (flags & 1))
		err = DRIVER(cuDevicePrimaryCtxSetFlags_v2, device,
			     device_flags);
	if (!err)
		err = rt_primary(device, &ctx);
	return rt_end(err);
}

/* Only the first is ever chosen here: there is no fall back at first use */
cudaError_t cudaSetValidDevices(int *devices, int n)
{
	cudaError_t err = cudaSuccess;

	if (n < 0 || (n && !devices))
		err = cudaErrorInvalidValue;
	for (int i = 0; i < n && !err; i++)
		err = check_device(devices[i]);
	if (!err)
		device_of_thread = n ? devices[0] : 0;
	return rt_end(err);
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	CUcontext ctx = NULL;
	int active;
	cudaError_t err = rt_start();

	if (!err && !flags)
		err = cudaErrorInvalidValue;
	if (!err)
		err = get_current(&ctx);
	if (!err)
		err = ctx ? DRIVER(cuCtxGetFlags, flags) :
			    DRIVER(cuDevicePrimaryCtxGetState,
				   device_of_thread, flags, &active);
	return rt_end(err);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	cudaError_t err = rt_start();

	if (err)
		return rt_end(err);
	/* Host memory is always mapped; the driver has no such wish any more */
	return rt_end(DRIVER(cuDevicePrimaryCtxSetFlags_v2, current_device(),
			     flags & ~(unsigned int)CU_CTX_MAP_HOST));
}

cudaError_t cudaDeviceReset(void)
{
	cudaError_t err = rt_start();
	struct primary held = { NULL, 0 };
	bool ours;
	int device;

	if (err)
		return rt_end(err);
	device = current_device();
	if (device < MAX_DEVICES) {
		pthread_mutex_lock(&lock);
		held = rt.primary[device];
		pthread_mutex_unlock(&lock);
	}
	/* Code is loaded for all devices: the driver places it anew where it is used next */
	err = DRIVER(cuDevicePrimaryCtxReset_v2, device);
	if (err)
		return rt_end(err);
	/* The next call takes a new one, if another thread has not done so */
	pthread_mutex_lock(&lock);
	ours = held.ctx && rt.primary[device].ctx == held.ctx &&
	       rt.primary[device].id == held.id;
	if (ours)
		rt.primary[device].ctx = NULL;
	pthread_mutex_unlock(&lock);
	if (ours)
		(void)DRIVER(cuDevicePrimaryCtxRelease_v2, device);
	err = make_current(NULL, false);
	rt_place_again();
	return rt_end(err);
}
