/* SPDX-License-Identifier: MIT */
/*
 * <cuda.h> for programs that use the CUDA driver interface and are built where
 * no CUDA Toolkit is: types, numbers and functions that Peerlane's libcuda
 * serves, written down in our own words.  A program that is built with this
 * header runs on NVIDIA's libcuda.so.1 as well.
 *
 * It presents the interface of CUDA 12.0, e.g. cuCtxCreate() with three
 * parameters.  What it lacks, the library lacks too, except for two things
 * that are left out on purpose: arrays and textures, and per-thread default
 * streams as a property of the whole program.
 */
#ifndef PEERLANE_CUDA_H
#define PEERLANE_CUDA_H

#ifdef __cuda_cuda_h__
#error "NVIDIA's cuda.h is included already; leave Peerlane's out of the include path"
#endif
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
#error "Peerlane's cuda.h has no per-thread default streams; name CU_STREAM_PER_THREAD in the calls instead"
#endif

#define CUDA_VERSION		12000
#define CUDAAPI
#define CUDA_CB

#include "cuda_abi.h"

/* The names that programs write, and the symbols behind them */
#define cuCtxCreate			cuCtxCreate_v2
#define cuCtxDestroy			cuCtxDestroy_v2
#define cuCtxPopCurrent			cuCtxPopCurrent_v2
#define cuCtxPushCurrent		cuCtxPushCurrent_v2
#define cuDevicePrimaryCtxRelease	cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset		cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags	cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceTotalMem		cuDeviceTotalMem_v2
#define cuEventDestroy			cuEventDestroy_v2
#define cuGetProcAddress		cuGetProcAddress_v2
#define cuIpcOpenMemHandle		cuIpcOpenMemHandle_v2
#define cuMemAlloc			cuMemAlloc_v2
#define cuMemAllocHost			cuMemAllocHost_v2
#define cuMemAllocPitch			cuMemAllocPitch_v2
#define cuMemFree			cuMemFree_v2
#define cuMemGetAddressRange		cuMemGetAddressRange_v2
#define cuMemGetInfo			cuMemGetInfo_v2
#define cuMemHostGetDevicePointer	cuMemHostGetDevicePointer_v2
#define cuMemHostRegister		cuMemHostRegister_v2
#define cuMemcpy2D			cuMemcpy2D_v2
#define cuMemcpy2DAsync			cuMemcpy2DAsync_v2
#define cuMemcpy2DUnaligned		cuMemcpy2DUnaligned_v2
#define cuMemcpyDtoD			cuMemcpyDtoD_v2
#define cuMemcpyDtoDAsync		cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH			cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync		cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoD			cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync		cuMemcpyHtoDAsync_v2
#define cuMemsetD16			cuMemsetD16_v2
#define cuMemsetD32			cuMemsetD32_v2
#define cuMemsetD2D8			cuMemsetD2D8_v2
#define cuMemsetD2D16			cuMemsetD2D16_v2
#define cuMemsetD2D32			cuMemsetD2D32_v2
#define cuMemsetD8			cuMemsetD8_v2
#define cuModuleGetGlobal		cuModuleGetGlobal_v2
#define cuStreamBatchMemOp		cuStreamBatchMemOp_v2
#define cuStreamDestroy			cuStreamDestroy_v2
#define cuStreamWaitValue32		cuStreamWaitValue32_v2
#define cuStreamWaitValue64		cuStreamWaitValue64_v2
#define cuStreamWriteValue32		cuStreamWriteValue32_v2
#define cuStreamWriteValue64		cuStreamWriteValue64_v2

#endif /* PEERLANE_CUDA_H */
