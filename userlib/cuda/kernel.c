// SPDX-License-Identifier: MIT
/*
 * Kernels: what can be asked of them, and launches, which are refused by name.
 */
#include <stdio.h>

#include "internal.h"

#define MAX_THREADS	1024

/* The function behind a handle, with a reference */
static CUresult function_find(const void *handle, struct CUfunc_st **out)
{
	CUresult err;

	*out = drv_obj_get(handle, DRV_FUNCTION, CUDA_ERROR_INVALID_HANDLE,
			   &err);
	return err;
}

/* A kernel is used as its function */
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct CUfunc_st *f;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	drv_ctx_put(ctx);
	err = function_find(kernel, &f);
	if (err)
		return err;
	if (function)
		*function = f;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	drv_obj_put(&f->obj);
	return err;
}

static CUresult name_of(const char **name, const void *handle)
{
	struct CUfunc_st *f;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!name || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	err = function_find(handle, &f);
	if (err)
		return err;
	*name = f->name;		/* lives as long as its module */
	drv_obj_put(&f->obj);
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return name_of(name, kernel);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	return name_of(name, function);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	struct CUfunc_st *f;
	CUresult err = function_find(function, &f);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (!module)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (!f->code || !f->code->ctx)
		err = CUDA_ERROR_INVALID_HANDLE;
	else
		*module = f->code;
	pthread_mutex_unlock(&drv.lock);
	drv_obj_put(&f->obj);
	return err;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr,
			    CUfunction function)
{
	struct CUfunc_st *f;
	CUresult err = drv_ready();

	if (!err && (!value || attr > CU_FUNC_ATTRIBUTE_LAST))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = function_find(function, &f);
	if (err)
		return err;
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = MAX_THREADS;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 90;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		pthread_mutex_lock(&drv.lock);
		*value = attr == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ?
			 f->shared : f->carveout;
		pthread_mutex_unlock(&drv.lock);
		break;
	default:
		*value = 0;
	}
	drv_obj_put(&f->obj);
	return CUDA_SUCCESS;
}

/* Remembered for who asks: no launch comes so far that it would matter */
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attr,
			    int value)
{
	struct CUfunc_st *f;
	CUresult err = function_find(function, &f);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	if (attr == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    value >= 0 && value <= DRV_MAX_SHARED)
		f->shared = value;
	else if (attr == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
		 value >= -1 && value <= 100)
		f->carveout = value;
	else if (attr > CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT &&
		 attr <= CU_FUNC_ATTRIBUTE_LAST)
		err = CUDA_ERROR_NOT_SUPPORTED;	/* of clusters of blocks */
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	drv_obj_put(&f->obj);
	return err;
}

/* ---- launches ---- */

static CUresult refuse(CUfunction handle, const unsigned int dim[6],
		       CUstream stream_handle)
{
	uint64_t threads = (uint64_t)dim[3] * dim[4] * dim[5];
	struct CUfunc_st *f;
	CUstream stream;
	CUresult err;

	err = drv_stream_get(stream_handle, NULL, &stream);
	if (err)
		return err;
	drv_obj_put(&stream->obj);
	err = function_find(handle, &f);
	if (err)
		return err;
	/* Below 2^32 each, so two of them do not overflow; three may */
	if (!dim[0] || !dim[1] || !dim[2] || !dim[3] || !dim[4] || !dim[5] ||
	    dim[3] > MAX_THREADS || dim[4] > MAX_THREADS ||
	    dim[5] > MAX_THREADS || threads > MAX_THREADS) {
		err = CUDA_ERROR_INVALID_VALUE;
	} else {
		err = CUDA_ERROR_NOT_SUPPORTED;
		fprintf(stderr, "peerlane: libcuda: kernel %s was not launched: the emulated GPU runs no kernels\n",
			f->name);
	}
	drv_obj_put(&f->obj);
	return err;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
			unsigned int grid_y, unsigned int grid_z,
			unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	unsigned int dim[6] = { grid_x, grid_y, grid_z,
				block_x, block_y, block_z };

	(void)shared;
	(void)params;
	(void)extra;
	return refuse(function, dim, stream);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
				   unsigned int grid_y, unsigned int grid_z,
				   unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared,
				   CUstream stream, void **params)
{
	return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x,
			      block_y, block_z, shared, stream, params, NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
			  void **params, void **extra)
{
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return cuLaunchKernel(function, config->gridDimX, config->gridDimY,
			      config->gridDimZ, config->blockDimX,
			      config->blockDimY, config->blockDimZ,
			      config->sharedMemBytes, config->hStream, params,
			      extra);
}
