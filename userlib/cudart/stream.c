// SPDX-License-Identifier: MIT
/*
 * Streams, events, functions of the program, memory in the order of a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define PTR(p)	((CUdeviceptr)(uintptr_t)(p))

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
					 unsigned int flags, int priority)
{
	RUN(cuStreamCreateWithPriority, stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	RUN(cuStreamCreateWithPriority, stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	RUN(cuStreamCreateWithPriority, stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	RUN(cuStreamDestroy_v2, stream);
}

BOTH(cudaStreamSynchronize, _ptsz, (cudaStream_t stream),
	RUN(cuStreamSynchronize, S(stream));
);

BOTH(cudaStreamQuery, _ptsz, (cudaStream_t stream),
	RUN(cuStreamQuery, S(stream));
);

BOTH(cudaStreamWaitEvent, _ptsz,
     (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
	RUN(cuStreamWaitEvent, S(stream), event, flags);
);

BOTH(cudaStreamGetPriority, _ptsz, (cudaStream_t stream, int *priority),
	RUN(cuStreamGetPriority, S(stream), priority);
);

BOTH(cudaStreamGetFlags, _ptsz, (cudaStream_t stream, unsigned int *flags),
	RUN(cuStreamGetFlags, S(stream), flags);
);

BOTH(cudaStreamGetId, _ptsz, (cudaStream_t stream, unsigned long long *id),
	RUN(cuStreamGetId, S(stream), id);
);

BOTH(cudaStreamGetDevice, _ptsz, (cudaStream_t stream, int *device),
	RUN(cuStreamGetDevice, S(stream), device);
);

BOTH(cudaStreamIsCapturing, _ptsz,
     (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
	RUN(cuStreamIsCapturing, S(stream), (CUstreamCaptureStatus *)status);
);

/* The versions differ in what else they say of a capture, and there is none */
#define CAPTURE_INFO(name, ...)						\
	BOTH(name, _ptsz,						\
	     (cudaStream_t stream, enum cudaStreamCaptureStatus *status, \
	      unsigned long long *id, ##__VA_ARGS__),			\
		(void)id;						\
		RUN(cuStreamIsCapturing, S(stream),			\
		    (CUstreamCaptureStatus *)status);)

CAPTURE_INFO(cudaStreamGetCaptureInfo);
CAPTURE_INFO(cudaStreamGetCaptureInfo_v2, void *, void *, void *);
CAPTURE_INFO(cudaStreamGetCaptureInfo_v3, void *, void *, void *, void *);

/* Nothing is ever captured, so no mode makes a difference */
cudaError_t cudaThreadExchangeStreamCaptureMode(
					enum cudaStreamCaptureMode *mode)
{
	static __thread unsigned int current;
	unsigned int before = current;

	if (!mode)
		return rt_end(cudaErrorInvalidValue);
	current = *(unsigned int *)mode;
	*(unsigned int *)mode = before;
	return cudaSuccess;
}

/* ---- functions of the program ---- */

/* The driver's callback says the driver's error, which has the same number */
BOTH(cudaStreamAddCallback, _ptsz,
     (cudaStream_t stream, cudaStreamCallback_t callback, void *arg,
      unsigned int flags),
	RUN(cuStreamAddCallback, S(stream),
	    (CUstreamCallback)(void (*)(void))callback, arg, flags);
);

BOTH(cudaLaunchHostFunc, _ptsz,
     (cudaStream_t stream, cudaHostFn_t function, void *arg),
	RUN(cuLaunchHostFunc, S(stream), function, arg);
);

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	RUN(cuEventCreate, event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	RUN(cuEventCreate, event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	RUN(cuEventDestroy_v2, event);
}

BOTH(cudaEventRecord, _ptsz, (cudaEvent_t event, cudaStream_t stream),
	RUN(cuEventRecordWithFlags, event, S(stream), 0);
);

BOTH(cudaEventRecordWithFlags, _ptsz,
     (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
	RUN(cuEventRecordWithFlags, event, S(stream), flags);
);

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	RUN(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	RUN(cuEventSynchronize, event);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	RUN(cuEventElapsedTime, ms, start, end);
}

/* ---- memory in the order of a stream ---- */

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
	       sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
	       sizeof(struct cudaMemPoolPtrExportData) ==
	       sizeof(CUmemPoolPtrExportData), "the driver's");

static cudaError_t alloc_async(void **ptr, size_t size, cudaMemPool_t pool,
			       bool from_pool, cudaStream_t stream)
{
	CUdeviceptr got = 0;
	cudaError_t err = rt_enter();

	if (!err && !ptr)
		err = cudaErrorInvalidValue;
	if (!err)
		err = from_pool ? DRIVER(cuMemAllocFromPoolAsync, &got, size,
					 pool, stream) :
				  DRIVER(cuMemAllocAsync, &got, size, stream);
	if (!err)
		*ptr = (void *)(uintptr_t)got;
	return err;
}

BOTH(cudaMallocAsync, _ptsz, (void **ptr, size_t size, cudaStream_t stream),
	return rt_end(alloc_async(ptr, size, NULL, false, S(stream)));
);

BOTH(cudaMallocFromPoolAsync, _ptsz,
     (void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream),
	return rt_end(alloc_async(ptr, size, pool, true, S(stream)));
);

BOTH(cudaFreeAsync, _ptsz, (void *ptr, cudaStream_t stream),
	RUN(cuMemFreeAsync, PTR(ptr), S(stream));
);

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	RUN(cuDeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	RUN(cuDeviceGetMemPool, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	RUN(cuDeviceSetMemPool, device, pool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
			      const struct cudaMemPoolProps *props)
{
	RUN(cuMemPoolCreate, pool, (const CUmemPoolProps *)props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	RUN(cuMemPoolDestroy, pool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	RUN(cuMemPoolTrimTo, pool, keep);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
				    enum cudaMemPoolAttr attr, void *value)
{
	RUN(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attr, value);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
				    enum cudaMemPoolAttr attr, void *value)
{
	RUN(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attr, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
				 const struct cudaMemAccessDesc *desc, size_t n)
{
	RUN(cuMemPoolSetAccess, pool, (const CUmemAccessDesc *)desc, n);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags,
				 cudaMemPool_t pool,
				 struct cudaMemLocation *location)
{
	RUN(cuMemPoolGetAccess, (CUmemAccess_flags *)flags, pool,
	    (CUmemLocation *)location);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle,
				cudaMemPool_t pool,
				enum cudaMemAllocationHandleType type,
				unsigned int flags)
{
	RUN(cuMemPoolExportToShareableHandle, handle, pool,
	    (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool,
				void *handle,
				enum cudaMemAllocationHandleType type,
				unsigned int flags)
{
	RUN(cuMemPoolImportFromShareableHandle, pool, handle,
	    (CUmemAllocationHandleType)type, flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data,
				     void *ptr)
{
	RUN(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)data, PTR(ptr));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
				     struct cudaMemPoolPtrExportData *data)
{
	RUN(cuMemPoolImportPointer, (CUdeviceptr *)ptr, pool,
	    (CUmemPoolPtrExportData *)data);
}
