// SPDX-License-Identifier: MIT
/*
 * Start, errors, log, and the tables of objects.
 */
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

struct drv_global drv = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.order = PTHREAD_MUTEX_INITIALIZER,
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

void drv_log(const char *fmt, ...)
{
	const char *on = secure_getenv("PEERLANE_LOG");
	char line[512];
	va_list args;

	if (!on || !*on || !strcmp(on, "0"))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "peerlane: libcuda: %s\n", line);
}

uint64_t drv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/*
 * The child of a fork shares the parent's open device file: what it would
 * free or submit there would be the parent's.  So it may use nothing at all.
 * A fork before cuInit() does no harm.
 */
static void in_child(void)
{
	if (atomic_load(&drv.ready))
		atomic_store(&drv.forked, true);
}

static void init_once(void)
{
	drv_order_init();
	pthread_atfork(NULL, NULL, in_child);
}

CUresult drv_ready(void)
{
	if (drv_in_call())
		return CUDA_ERROR_NOT_PERMITTED;
	if (!atomic_load(&drv.ready) || atomic_load(&drv.forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	CUresult err = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&drv.forked)) {
		drv_log("cuInit: this process was forked after cuInit(); exec a program to use the GPU here");
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	pthread_once(&once, init_once);
	pthread_mutex_lock(&drv.lock);
	if (!atomic_load(&drv.ready)) {
		err = drv_devices_find();
		if (!err)
			atomic_store(&drv.ready, true);
	}
	pthread_mutex_unlock(&drv.lock);
	return err;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DRV_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

static const struct {
	CUresult error;
	const char *name;
	const char *words;
} errors[] = {
#define PLN_X(name, number, words) { name, #name, words },
	PLN_CUDA_ERRORS(PLN_X)
#undef PLN_X
};

CUresult cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error) {
			*name = errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **words)
{
	if (!words)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error) {
			*words = errors[i].words;
			return CUDA_SUCCESS;
		}
	}
	*words = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

/* ---- handles: a tree by address, so that a wrong one is an error ---- */

static int obj_cmp(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

CUresult drv_obj_add(struct drv_obj *obj)
{
	if (!tsearch(obj, &drv.objects, obj_cmp))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

void drv_obj_del(struct drv_obj *obj)
{
	tdelete(obj, &drv.objects, obj_cmp);
}

void *drv_obj_find(const void *handle, enum drv_type type)
{
	struct drv_obj **node = tfind(handle, &drv.objects, obj_cmp);

	if (!node || (*node)->type != type)
		return NULL;
	atomic_fetch_add(&(*node)->refs, 1);
	return *node;
}

/* The object behind a handle of the program, with a reference, or NULL and why */
void *drv_obj_get(const void *handle, enum drv_type type, CUresult none,
		  CUresult *err)
{
	void *obj;

	*err = drv_ready();
	if (*err)
		return NULL;
	pthread_mutex_lock(&drv.lock);
	obj = drv_obj_find(handle, type);
	pthread_mutex_unlock(&drv.lock);
	if (!obj)
		*err = none;
	return obj;
}

void drv_obj_put(struct drv_obj *obj)
{
	if (!obj || atomic_fetch_sub(&obj->refs, 1) != 1)
		return;
	switch (obj->type) {
	case DRV_CTX:
		drv_ctx_free((struct CUctx_st *)obj);
		break;
	case DRV_STREAM:
		drv_stream_free((struct CUstream_st *)obj);
		break;
	case DRV_EVENT:
		drv_event_free((struct CUevent_st *)obj);
		break;
	case DRV_MEM:
		drv_mem_free((struct drv_mem *)obj);
		break;
	case DRV_CODE:
		drv_code_free((struct CUmod_st *)obj);
		break;
	case DRV_FUNCTION:
		drv_function_free((struct CUfunc_st *)obj);
		break;
	case DRV_POOL:
		drv_pool_free((struct CUmemPoolHandle_st *)obj);
		break;
	}
}
