// SPDX-License-Identifier: MIT
/*
 * Memory of the GPU and of the host, and what a pointer is.
 */
#include <string.h>

#include "internal.h"

#define PTR(p)	((CUdeviceptr)(uintptr_t)(p))

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle) &&
	       sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle) &&
	       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation),
	       "the driver's");

/* Nothing is asked for, nothing is given: no error, unlike the driver's */
cudaError_t cudaMalloc(void **ptr, size_t size)
{
	CUdeviceptr got = 0;
	cudaError_t err = rt_enter();

	if (!err && !ptr)
		err = cudaErrorInvalidValue;
	if (!err && size)
		err = DRIVER(cuMemAlloc_v2, &got, size);
	if (!err)
		*ptr = (void *)(uintptr_t)got;
	return rt_end(err);
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width,
			    size_t height)
{
	CUdeviceptr got = 0;
	size_t row = 0;
	cudaError_t err = rt_enter();

	if (!err && (!ptr || !pitch))
		err = cudaErrorInvalidValue;
	if (!err && width && height)
		err = DRIVER(cuMemAllocPitch_v2, &got, &row, width, height, 4);
	if (!err) {
		*ptr = (void *)(uintptr_t)got;
		*pitch = row;
	}
	return rt_end(err);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	size_t rows;
	cudaError_t err;

	if (!ptr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return rt_end(cudaErrorInvalidValue);
	err = cudaMallocPitch(&ptr->ptr, &ptr->pitch, extent.width, rows);
	if (err)
		return err;
	ptr->xsize = extent.width;
	ptr->ysize = extent.height;
	return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	CUdeviceptr got = 0;
	cudaError_t err = rt_enter();

	if (!err && !ptr)
		err = cudaErrorInvalidValue;
	if (!err && size)
		err = DRIVER(cuMemAllocManaged, &got, size, flags);
	if (!err)
		*ptr = (void *)(uintptr_t)got;
	return rt_end(err);
}

cudaError_t cudaFree(void *ptr)
{
	RUN(cuMemFree_v2, PTR(ptr));
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	RUN(cuMemAllocHost_v2, ptr, size);
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	RUN(cuMemHostAlloc, ptr, size, flags);
}

cudaError_t cudaFreeHost(void *ptr)
{
	cudaError_t err = rt_enter();

	if (!err && ptr)
		err = DRIVER(cuMemFreeHost, ptr);
	return rt_end(err);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	RUN(cuMemHostRegister_v2, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	RUN(cuMemHostUnregister, ptr);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host,
				     unsigned int flags)
{
	RUN(cuMemHostGetDevicePointer_v2, (CUdeviceptr *)device, host, flags);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr)
{
	RUN(cuMemHostGetFlags, flags, ptr);
}

cudaError_t cudaMemGetInfo(size_t *avail, size_t *total)
{
	RUN(cuMemGetInfo_v2, avail, total);
}

/* Any pointer has an answer: memory that is not CUDA's is unregistered */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attrs,
				     const void *ptr)
{
	unsigned int type = 0, managed = 0;
	CUdeviceptr device_ptr = 0;
	void *host_ptr = NULL;
	int device = 0;
	CUpointer_attribute ask[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
	};
	void *data[] = { &type, &managed, &device, &device_ptr, &host_ptr };
	cudaError_t err = rt_enter();

	if (!err && !attrs)
		err = cudaErrorInvalidValue;
	if (!err)
		err = DRIVER(cuPointerGetAttributes,
			     sizeof(ask) / sizeof(ask[0]), ask, data, PTR(ptr));
	if (err)
		return rt_end(err);
	memset(attrs, 0, sizeof(*attrs));
	attrs->type = (enum cudaMemoryType)
		      (managed ? cudaMemoryTypeManaged :
		       type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice :
		       type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost :
		       cudaMemoryTypeUnregistered);
	attrs->device = device;
	attrs->devicePointer = (void *)(uintptr_t)device_ptr;
	attrs->hostPointer = host_ptr;
	return cudaSuccess;
}

/* ---- managed memory ---- */

/* CUDA 13 has for the plain names what CUDA 12 has for those with "_v2" */
#if CUDART_MAJOR >= 13
#define cudaMemPrefetchAsync_v2		cudaMemPrefetchAsync
#define cudaMemPrefetchAsync_v2_ptsz	cudaMemPrefetchAsync_ptsz
#define cudaMemAdvise_v2		cudaMemAdvise
#else
BOTH(cudaMemPrefetchAsync, _ptsz,
     (const void *ptr, size_t n, int device, cudaStream_t stream),
	RUN(cuMemPrefetchAsync, PTR(ptr), n, device, S(stream));
);

cudaError_t cudaMemAdvise(const void *ptr, size_t n,
			  enum cudaMemoryAdvise advice, int device)
{
	RUN(cuMemAdvise, PTR(ptr), n, (CUmem_advise)advice, device);
}
#endif

BOTH(cudaMemPrefetchAsync_v2, _ptsz,
     (const void *ptr, size_t n, struct cudaMemLocation where,
      unsigned int flags, cudaStream_t stream),
	CUmemLocation place = { where.type, where.id };
	RUN(cuMemPrefetchAsync_v2, PTR(ptr), n, place, flags, S(stream));
);

cudaError_t cudaMemAdvise_v2(const void *ptr, size_t n,
			     enum cudaMemoryAdvise advice,
			     struct cudaMemLocation where)
{
	CUmemLocation place = { where.type, where.id };

	RUN(cuMemAdvise_v2, PTR(ptr), n, (CUmem_advise)advice, place);
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size,
				     enum cudaMemRangeAttribute attr,
				     const void *ptr, size_t n)
{
	RUN(cuMemRangeGetAttribute, data, size, (CUmem_range_attribute)attr,
	    PTR(ptr), n);
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes,
				      enum cudaMemRangeAttribute *attrs,
				      size_t count, const void *ptr, size_t n)
{
	RUN(cuMemRangeGetAttributes, data, sizes,
	    (CUmem_range_attribute *)attrs, count, PTR(ptr), n);
}

BOTH(cudaStreamAttachMemAsync, _ptsz,
     (cudaStream_t stream, void *ptr, size_t n, unsigned int flags),
	RUN(cuStreamAttachMemAsync, S(stream), PTR(ptr), n, flags);
);

/* ---- other processes ---- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	RUN(cuIpcGetMemHandle, (CUipcMemHandle *)handle, PTR(ptr));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle,
				 unsigned int flags)
{
	CUipcMemHandle h;

	memcpy(&h, &handle, sizeof(h));
	RUN(cuIpcOpenMemHandle_v2, (CUdeviceptr *)ptr, h, flags);
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	RUN(cuIpcCloseMemHandle, PTR(ptr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle,
				  cudaEvent_t event)
{
	RUN(cuIpcGetEventHandle, (CUipcEventHandle *)handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
				   cudaIpcEventHandle_t handle)
{
	CUipcEventHandle h;

	memcpy(&h, &handle, sizeof(h));
	RUN(cuIpcOpenEventHandle, event, h);
}

/* A value alone, as C++ programs ask for at their start; arrays are not here */
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
					enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}
