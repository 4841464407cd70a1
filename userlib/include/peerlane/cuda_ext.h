/* SPDX-License-Identifier: MIT */
/*
 * Peerlane: engine operations beyond the CUDA driver interface.
 *
 * Only Peerlane's libcuda.so.1, the one for the emulated GPU, has these
 * functions.  A program that must also run with another libcuda.so.1 looks
 * them up with dlsym() and does without when they are absent.
 *
 * All three need a current context, wait until the result is there, run in
 * the order of the context's legacy default stream, and may be called from any
 * thread.  Since 0.1.
 */
#ifndef PEERLANE_CUDA_EXT_H
#define PEERLANE_CUDA_EXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PEERLANE_CUDA_ABI_H
#ifdef __cuda_cuda_h__
/* NVIDIA's cuda.h has been included and gives the types */
#else
typedef unsigned long long pln_cu_deviceptr;
#endif
#endif

#if defined(PEERLANE_CUDA_ABI_H) || defined(__cuda_cuda_h__)
#define PLN_CU_RESULT	CUresult
#define PLN_CU_PTR	CUdeviceptr
#else
#define PLN_CU_RESULT	int
#define PLN_CU_PTR	pln_cu_deviceptr
#endif

/* @dtype of plnMemAdd() */
#define PLN_DTYPE_INT32		1
#define PLN_DTYPE_FLOAT32	2

/* *first_diff of plnMemCompare() when the two are equal */
#define PLN_COMPARE_SAME	UINT64_MAX

/**
 * plnMemCrc32c - CRC32C of GPU memory, computed by the GPU
 * @p: device address, any alignment
 * @n: bytes; 0 gives the CRC of nothing, 0
 * @crc: out: Castagnoli polynomial, initial and final inversion, so that the
 *	CRC of the nine bytes "123456789" is 0xe3069283
 *
 * Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE: @crc is NULL, or the range
 * is not inside one allocation of device memory; CUDA_ERROR_INVALID_CONTEXT:
 * no context; or the error of the engine.
 */
PLN_CU_RESULT plnMemCrc32c(PLN_CU_PTR p, size_t n, uint32_t *crc);

/**
 * plnMemCompare - compare two ranges of GPU memory, by the GPU
 * @a: device address
 * @b: device address on the same device
 * @n: bytes
 * @first_diff: out: index of the first byte that differs, PLN_COMPARE_SAME
 *	when none does
 *
 * Returns as plnMemCrc32c(); CUDA_ERROR_NOT_SUPPORTED when the two ranges are
 * on different devices.
 */
PLN_CU_RESULT plnMemCompare(PLN_CU_PTR a, PLN_CU_PTR b, size_t n,
			    uint64_t *first_diff);

/**
 * plnMemAdd - add arrays element by element, dst += src, by the GPU
 * @dst: device address, multiple of 4
 * @src: device address on the same device, multiple of 4
 * @n: bytes, multiple of 4
 * @dtype: PLN_DTYPE_INT32 (wraps) or PLN_DTYPE_FLOAT32
 *
 * Returns as plnMemCompare().
 */
PLN_CU_RESULT plnMemAdd(PLN_CU_PTR dst, PLN_CU_PTR src, size_t n, int dtype);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUDA_EXT_H */
