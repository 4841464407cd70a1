/* SPDX-License-Identifier: MIT */
/*
 * Peerlane: engine operations beyond the CUDA driver interface.
 *
 * Only Peerlane's libcuda.so.1, the one for the emulated GPU, has these
 * functions.  A program that must also run with another libcuda.so.1 looks
 * them up with dlsym() and does without when they are absent.
 *
 * Their names are written as CUDA's are, plnMemAdd() as cuMemAlloc(), unlike those
 * of Peerlane's other libraries, pln_mr_reg().
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
 * Stores at @crc the CRC32C of @n bytes of GPU memory at @p, without moving
 * them to the host. The polynomial is Castagnoli's, with initial and final
 * inversion: the CRC of the nine bytes "123456789" is 0xe3069283. Nothing, @n
 * = 0, has the CRC 0.
 *
 * The call follows what was submitted before to the default stream and to
 * blocking streams, and waits for its result. It may be made in any thread.
 * Only Peerlane's libcuda.so.1 has it; look it up with dlsym(3) in a program
 * that must also run with NVIDIA's.
 *
 * Return: CUDA_SUCCESS or an error.
 *
 * CUDA_ERROR_INVALID_CONTEXT: The calling thread has no current context.
 * CUDA_ERROR_INVALID_VALUE: @crc is NULL, or the range is not inside one
 *   allocation of device memory.
 * CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_DEVICE_UNAVAILABLE: See
 *   libcuda-peerlane(7).
 *
 * Example:
 *
 *	CUresult (*crc_of)(CUdeviceptr, size_t, uint32_t *);
 *
 *	crc_of = dlsym(RTLD_DEFAULT, "plnMemCrc32c");
 *	if (crc_of && crc_of(p, n, &crc) == CUDA_SUCCESS)
 *	        printf("%08x\n", crc);
 *
 * Since 0.1.
 *
 * See also: plnMemCompare(), plnMemAdd(), libcuda-peerlane(7)
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
 * Compares @n bytes at @a with those at @b, both memory of the current
 * context's device, and stores at @first_diff the index of the first byte that
 * differs, or PLN_COMPARE_SAME when none does.
 *
 * Order, threads and availability are as with plnMemCrc32c().
 *
 * Return: CUDA_SUCCESS or an error.
 *
 * CUDA_ERROR_INVALID_CONTEXT: The calling thread has no current context.
 * CUDA_ERROR_INVALID_VALUE: @first_diff is NULL, or a range is not inside
 *   one allocation of device memory.
 * CUDA_ERROR_NOT_SUPPORTED: A range is memory of another device.
 * CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_DEVICE_UNAVAILABLE: See
 *   libcuda-peerlane(7).
 *
 * Example:
 *
 *	uint64_t at;
 *
 *	if (plnMemCompare(a, b, n, &at) == CUDA_SUCCESS &&
 *	    at != PLN_COMPARE_SAME)
 *	        printf("byte %llu differs\n", (unsigned long long)at);
 *
 * Since 0.1.
 *
 * See also: plnMemCrc32c(), plnMemAdd(), libcuda-peerlane(7)
 */
PLN_CU_RESULT plnMemCompare(PLN_CU_PTR a, PLN_CU_PTR b, size_t n,
			    uint64_t *first_diff);

/**
 * plnMemAdd - add arrays in GPU memory element by element, by the GPU
 * @dst: device address, multiple of 4
 * @src: device address on the same device, multiple of 4
 * @n: bytes, multiple of 4
 * @dtype: PLN_DTYPE_INT32 (wraps) or PLN_DTYPE_FLOAT32
 *
 * Adds the elements of @src to those of @dst, both memory of the current
 * context's device, @n bytes of each. @dtype is PLN_DTYPE_INT32 (sums wrap) or
 * PLN_DTYPE_FLOAT32. Addresses and @n are multiples of 4.
 *
 * Order, threads and availability are as with plnMemCrc32c().
 *
 * Return: CUDA_SUCCESS or an error.
 *
 * CUDA_ERROR_INVALID_CONTEXT: The calling thread has no current context.
 * CUDA_ERROR_INVALID_VALUE: @dtype is unknown, an address or @n is no
 *   multiple of 4, or a range is not inside one allocation of device memory.
 * CUDA_ERROR_NOT_SUPPORTED: A range is memory of another device.
 * CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_DEVICE_UNAVAILABLE: See
 *   libcuda-peerlane(7).
 *
 * Example: the sum of two vectors of 1000 floats, into the first
 *
 *	plnMemAdd(x, y, 1000 * sizeof(float), PLN_DTYPE_FLOAT32);
 *
 * Since 0.1.
 *
 * See also: plnMemCrc32c(), plnMemCompare(), libcuda-peerlane(7)
 */
PLN_CU_RESULT plnMemAdd(PLN_CU_PTR dst, PLN_CU_PTR src, size_t n, int dtype);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUDA_EXT_H */
