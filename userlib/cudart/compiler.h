/* SPDX-License-Identifier: MIT */
/*
 * What code of the compiler calls: it hands over device code, kernels and variables,
 * and launches kernels.
 */
#ifndef PEERLANE_CUDART_COMPILER_H
#define PEERLANE_CUDART_COMPILER_H

#include "cudart_abi.h"

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *function, char *stub,
			    const char *name, int thread_limit, uint3 *tid,
			    uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *variable, char *address,
		       const char *name, int ext, size_t size, int constant,
		       int global);
void __cudaRegisterManagedVar(void **handle, void **variable, char *address,
			      const char *name, int ext, size_t size,
			      int constant, int global);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
				       void *stream);
char __cudaInitModule(void **handle);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);

#endif /* PEERLANE_CUDART_COMPILER_H */
