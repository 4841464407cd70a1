/* SPDX-License-Identifier: MIT */
/*
 * Peerlane libcudart: what its files share.
 *
 * Each function is a call of the driver, in the context of the thread's
 * device, whose error the thread remembers.  Locks: one of code.c for the program's
 * code, one of driver.c for the driver and the devices.  Neither is held in a call of
 * the driver that waits for work, as functions of the program, which are work, may
 * need it.
 */
#ifndef PEERLANE_CUDART_INTERNAL_H
#define PEERLANE_CUDART_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "../cuda/cuda_abi.h"
#include "cudart_abi.h"

/* The driver's functions; NULL: it has no such */
struct rt_driver {
#define PLN_F(name, suffix, since, alias, sorts, ...) \
	__typeof__(&name##suffix) name##suffix;
#include "../cuda/cuda_proto.h"
};

extern struct rt_driver rt_driver;

/* ---- driver.c ---- */
/* Remember @error for cudaGetLastError(), unless it is none; give it back */
cudaError_t rt_end(cudaError_t error);
/* The driver is loaded and started */
cudaError_t rt_start(void);
/* And the thread has a context: its own, or that of its device */
cudaError_t rt_enter(void);
/* The primary context of @device, which need not be the thread's */
cudaError_t rt_primary(int device, CUcontext *ctx);

/* The errors of the driver have the numbers of the runtime's */
static inline cudaError_t rt_from(CUresult err)
{
	return (cudaError_t)err;
}

/* Call the driver, or say that it is too old to have the function */
#define DRIVER(name, ...)						\
	(rt_driver.name ? rt_from(rt_driver.name(__VA_ARGS__)) :	\
			  cudaErrorCallRequiresNewerDriver)

/* A whole function of the runtime: in a context; or needing none */
#define RUN(name, ...)							\
	do {								\
		cudaError_t err_ = rt_enter();				\
									\
		return rt_end(err_ ? err_ : DRIVER(name, __VA_ARGS__));	\
	} while (0)
#define RUN_WITHOUT(name, ...)						\
	do {								\
		cudaError_t err_ = rt_start();				\
									\
		return rt_end(err_ ? err_ : DRIVER(name, __VA_ARGS__));	\
	} while (0)

/*
 * A function and its second name, for programs with a default stream for each
 * thread.  In the body S(stream) is the driver's name of @stream.
 */
#define BOTH(name, suffix, params, ...)					\
	cudaError_t name params						\
	{								\
		const bool own_ = false;				\
									\
		(void)own_;						\
		__VA_ARGS__						\
	}								\
	cudaError_t name##suffix params					\
	{								\
		const bool own_ = true;					\
									\
		(void)own_;						\
		__VA_ARGS__						\
	}								\
	_Static_assert(1, "")
#define S(stream)	(own_ && !(stream) ? CU_STREAM_PER_THREAD : (stream))

/* ---- copy.c ---- */
cudaError_t rt_copy(void *dst, const void *src, size_t n, int kind,
		    cudaStream_t stream, bool sync);

/* ---- code.c ---- */
cudaError_t rt_variable(const void *symbol, size_t offset, size_t n,
			void **ptr, size_t *size);
void rt_code_lock(bool on);		/* for a fork */
/* New memory for the managed variables whose memory a reset has taken */
void rt_place_again(void);

#endif /* PEERLANE_CUDART_INTERNAL_H */
