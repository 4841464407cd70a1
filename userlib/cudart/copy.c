// SPDX-License-Identifier: MIT
/*
 * Copies and fills.  A copy says its direction, which the driver checks.
 */
#include <string.h>

#include "internal.h"

#define PTR(p)	((CUdeviceptr)(uintptr_t)(p))

cudaError_t rt_copy(void *dst, const void *src, size_t n, int kind,
		    cudaStream_t stream, bool sync)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!n)
		return cudaSuccess;
	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return sync ? DRIVER(cuMemcpyHtoD_v2, PTR(dst), src, n) :
			      DRIVER(cuMemcpyHtoDAsync_v2, PTR(dst), src, n,
				     stream);
	case cudaMemcpyDeviceToHost:
		return sync ? DRIVER(cuMemcpyDtoH_v2, dst, PTR(src), n) :
			      DRIVER(cuMemcpyDtoHAsync_v2, dst, PTR(src), n,
				     stream);
	case cudaMemcpyDeviceToDevice:
		return sync ? DRIVER(cuMemcpyDtoD_v2, PTR(dst), PTR(src), n) :
			      DRIVER(cuMemcpyDtoDAsync_v2, PTR(dst), PTR(src),
				     n, stream);
	default:
		return sync ? DRIVER(cuMemcpy, PTR(dst), PTR(src), n) :
			      DRIVER(cuMemcpyAsync, PTR(dst), PTR(src), n,
				     stream);
	}
}

/*
 * The driver's waiting copies are of the legacy stream: for the thread's own,
 * go by way of that stream.
 */
static cudaError_t copy_now(void *dst, const void *src, size_t n, int kind,
			    bool own)
{
	cudaError_t err = rt_copy(dst, src, n, kind,
				  own ? CU_STREAM_PER_THREAD : NULL, !own);

	if (!err && own)
		err = DRIVER(cuStreamSynchronize, CU_STREAM_PER_THREAD);
	return err;
}

BOTH(cudaMemcpy, _ptds,
     (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
	return rt_end(copy_now(dst, src, n, (int)kind, own_));
);

BOTH(cudaMemcpyAsync, _ptsz,
     (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
      cudaStream_t stream),
	return rt_end(rt_copy(dst, src, n, (int)kind, S(stream), false));
);

/* Pointers say which device they are of; the numbers need only be right */
static cudaError_t peer(void *dst, int dst_device, const void *src,
			int src_device, size_t n, cudaStream_t stream,
			bool sync)
{
	CUcontext a, b;
	CUdevice dev;
	cudaError_t err = rt_enter();

	if (!err)
		err = DRIVER(cuDeviceGet, &dev, dst_device);
	if (!err)
		err = DRIVER(cuDeviceGet, &dev, src_device);
	if (!err)
		err = rt_primary(dst_device, &a);
	if (!err)
		err = rt_primary(src_device, &b);
	if (err || !n)
		return err;
	return sync ? DRIVER(cuMemcpyPeer, PTR(dst), a, PTR(src), b, n) :
		      DRIVER(cuMemcpyPeerAsync, PTR(dst), a, PTR(src), b, n,
			     stream);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src,
			   int src_device, size_t n)
{
	return rt_end(peer(dst, dst_device, src, src_device, n, NULL, true));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
				int src_device, size_t n, cudaStream_t stream)
{
	return rt_end(peer(dst, dst_device, src, src_device, n, stream, false));
}

/* ---- two dimensions ---- */

static cudaError_t copy_2d(void *dst, size_t dst_pitch, const void *src,
			   size_t src_pitch, size_t width, size_t height,
			   int kind, cudaStream_t stream, bool sync)
{
	/* Which side must be memory of a device; else the pointer says it */
	bool to_device = kind == cudaMemcpyHostToDevice ||
			 kind == cudaMemcpyDeviceToDevice;
	bool from_device = kind == cudaMemcpyDeviceToHost ||
			   kind == cudaMemcpyDeviceToDevice;
	CUDA_MEMCPY2D c = {
		.srcMemoryType = from_device ? CU_MEMORYTYPE_DEVICE :
					       CU_MEMORYTYPE_UNIFIED,
		.srcDevice = PTR(src),
		.srcPitch = src_pitch,
		.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE :
					     CU_MEMORYTYPE_UNIFIED,
		.dstDevice = PTR(dst),
		.dstPitch = dst_pitch,
		.WidthInBytes = width,
		.Height = height,
	};
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!width || !height)
		return cudaSuccess;
	if (dst_pitch < width || src_pitch < width)
		return cudaErrorInvalidPitchValue;
	if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) {
		c.srcMemoryType = CU_MEMORYTYPE_HOST;
		c.srcHost = src;
	}
	if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) {
		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = dst;
	}
	err = sync && !stream ? DRIVER(cuMemcpy2DUnaligned_v2, &c) :
				DRIVER(cuMemcpy2DAsync_v2, &c, stream);
	if (!err && sync && stream)
		err = DRIVER(cuStreamSynchronize, stream);
	return err;
}

BOTH(cudaMemcpy2D, _ptds,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
      size_t width, size_t height, enum cudaMemcpyKind kind),
	return rt_end(copy_2d(dst, dst_pitch, src, src_pitch, width, height,
			      (int)kind, S((cudaStream_t)NULL), true));
);

BOTH(cudaMemcpy2DAsync, _ptsz,
     (void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
      size_t width, size_t height, enum cudaMemcpyKind kind,
      cudaStream_t stream),
	return rt_end(copy_2d(dst, dst_pitch, src, src_pitch, width, height,
			      (int)kind, S(stream), false));
);

/* ---- many at once ---- */

_Static_assert(sizeof(struct cudaMemcpyAttributes) ==
	       sizeof(CUmemcpyAttributes), "the driver's");

#if CUDART_MAJOR >= 13
BOTH(cudaMemcpyBatchAsync, _ptsz,
     (void *const *dsts, const void *const *srcs, const size_t *sizes,
      size_t count, struct cudaMemcpyAttributes *attrs, size_t *starts,
      size_t nr_attrs, cudaStream_t stream),
	RUN(cuMemcpyBatchAsync_v2, (CUdeviceptr *)dsts, (CUdeviceptr *)srcs,
	    (size_t *)sizes, count, (CUmemcpyAttributes *)attrs, starts,
	    nr_attrs, S(stream));
);
#else
BOTH(cudaMemcpyBatchAsync, _ptsz,
     (void **dsts, void **srcs, size_t *sizes, size_t count,
      struct cudaMemcpyAttributes *attrs, size_t *starts, size_t nr_attrs,
      size_t *fail, cudaStream_t stream),
	RUN(cuMemcpyBatchAsync, (CUdeviceptr *)dsts, (CUdeviceptr *)srcs,
	    sizes, count, (CUmemcpyAttributes *)attrs, starts, nr_attrs, fail,
	    S(stream));
);
#endif

/* ---- variables of the program's device code ---- */

static cudaError_t to_variable(const void *symbol, const void *src, size_t n,
			       size_t offset, int kind, cudaStream_t stream,
			       bool sync)
{
	void *ptr;
	cudaError_t err = rt_variable(symbol, offset, n, &ptr, NULL);

	if (!err && kind != cudaMemcpyHostToDevice &&
	    kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		err = cudaErrorInvalidMemcpyDirection;
	if (!err)
		err = rt_copy(ptr, src, n, kind, stream, sync && !stream);
	if (!err && sync && stream)
		err = DRIVER(cuStreamSynchronize, stream);
	return err;
}

static cudaError_t from_variable(void *dst, const void *symbol, size_t n,
				 size_t offset, int kind, cudaStream_t stream,
				 bool sync)
{
	void *ptr;
	cudaError_t err = rt_variable(symbol, offset, n, &ptr, NULL);

	if (!err && kind != cudaMemcpyDeviceToHost &&
	    kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		err = cudaErrorInvalidMemcpyDirection;
	if (!err)
		err = rt_copy(dst, ptr, n, kind, stream, sync && !stream);
	if (!err && sync && stream)
		err = DRIVER(cuStreamSynchronize, stream);
	return err;
}

BOTH(cudaMemcpyToSymbol, _ptds,
     (const void *symbol, const void *src, size_t n, size_t offset,
      enum cudaMemcpyKind kind),
	return rt_end(to_variable(symbol, src, n, offset, (int)kind,
				  S((cudaStream_t)NULL), true));
);

BOTH(cudaMemcpyToSymbolAsync, _ptsz,
     (const void *symbol, const void *src, size_t n, size_t offset,
      enum cudaMemcpyKind kind, cudaStream_t stream),
	return rt_end(to_variable(symbol, src, n, offset, (int)kind,
				  S(stream), false));
);

BOTH(cudaMemcpyFromSymbol, _ptds,
     (void *dst, const void *symbol, size_t n, size_t offset,
      enum cudaMemcpyKind kind),
	return rt_end(from_variable(dst, symbol, n, offset, (int)kind,
				    S((cudaStream_t)NULL), true));
);

BOTH(cudaMemcpyFromSymbolAsync, _ptsz,
     (void *dst, const void *symbol, size_t n, size_t offset,
      enum cudaMemcpyKind kind, cudaStream_t stream),
	return rt_end(from_variable(dst, symbol, n, offset, (int)kind,
				    S(stream), false));
);

cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol)
{
	return rt_end(ptr ? rt_variable(symbol, 0, 0, ptr, NULL) :
			    cudaErrorInvalidValue);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	void *ptr;

	return rt_end(size ? rt_variable(symbol, 0, 0, &ptr, size) :
			     cudaErrorInvalidValue);
}

/* ---- fills ---- */

static cudaError_t fill(void *dst, int value, size_t n, cudaStream_t stream,
			bool sync)
{
	cudaError_t err = rt_enter();

	if (err || !n)
		return err;
	err = sync && !stream ?
	      DRIVER(cuMemsetD8_v2, PTR(dst), (unsigned char)value, n) :
	      DRIVER(cuMemsetD8Async, PTR(dst), (unsigned char)value, n,
		     stream);
	if (!err && sync && stream)
		err = DRIVER(cuStreamSynchronize, stream);
	return err;
}

BOTH(cudaMemset, _ptds, (void *dst, int value, size_t n),
	return rt_end(fill(dst, value, n, S((cudaStream_t)NULL), true));
);

BOTH(cudaMemsetAsync, _ptsz,
     (void *dst, int value, size_t n, cudaStream_t stream),
	return rt_end(fill(dst, value, n, S(stream), false));
);

static cudaError_t fill_2d(void *dst, size_t pitch, int value, size_t width,
			   size_t height, cudaStream_t stream, bool sync)
{
	cudaError_t err = rt_enter();

	if (err || !width || !height)
		return err;
	err = sync && !stream ?
	      DRIVER(cuMemsetD2D8_v2, PTR(dst), pitch, (unsigned char)value,
		     width, height) :
	      DRIVER(cuMemsetD2D8Async, PTR(dst), pitch, (unsigned char)value,
		     width, height, stream);
	if (!err && sync && stream)
		err = DRIVER(cuStreamSynchronize, stream);
	return err;
}

BOTH(cudaMemset2D, _ptds,
     (void *dst, size_t pitch, int value, size_t width, size_t height),
	return rt_end(fill_2d(dst, pitch, value, width, height,
			      S((cudaStream_t)NULL), true));
);

BOTH(cudaMemset2DAsync, _ptsz,
     (void *dst, size_t pitch, int value, size_t width, size_t height,
      cudaStream_t stream),
	return rt_end(fill_2d(dst, pitch, value, width, height, S(stream),
			      false));
);
