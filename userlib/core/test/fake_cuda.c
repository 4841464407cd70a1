// SPDX-License-Identifier: MIT
/* A libcuda.so.1 of a few ranges of addresses: see mr_fakes.h */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/cuda_abi.h"
#include "../../cuda/cuda_proto.h"
#include "mr_fakes.h"

struct fake_cuda fake_cuda;

/* Contexts are numbers: 0x100 and the GPU, the primary one 0x200 and it */
#define CTX(gpu)	((CUcontext)(uintptr_t)(0x100 + (gpu)))
#define PRIMARY(gpu)	((CUcontext)(uintptr_t)(0x200 + (gpu)))

/* What ends something does so, and may tell of an error nevertheless */
static CUresult ended(void)
{
	CUresult r = (CUresult)fake_cuda.now;

	fake_cuda.now = 0;
	return r;
}

/* The mistake that was ordered */
static bool fails(enum fake_call call, CUresult *r)
{
	fake_cuda.calls[call]++;
	*r = ended();
	if (*r)
		return true;
	if (fake_cuda.fails != call || --fake_cuda.at)
		return false;
	fake_cuda.fails = FAKE_NOTHING;
	*r = (CUresult)fake_cuda.with;
	return true;
}

static struct fake_range *range_of(uint64_t p)
{
	struct fake_range *f = fake_cuda.range;

	for (; f < fake_cuda.range + FAKE_RANGES; f++)
		if (p >= f->base && p - f->base < f->size)
			return f;
	return NULL;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
			       CUdeviceptr p)
{
	const struct fake_range *f = range_of(p);
	CUresult r;

	if (fails(FAKE_POINTER, &r))
		return r;
	if (!f)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = f->gpu;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = f->range ? f->range : f->base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = f->range ? f->range_size : f->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = f->base;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = f->size;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = f->id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)data = f->managed;
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = f->loose ? NULL : CTX(f->gpu);
		break;
	default:
		fake_cuda.wrong++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *data, CUpointer_attribute attr,
			       CUdeviceptr p)
{
	struct fake_range *f = range_of(p);
	CUresult r;

	if (fails(FAKE_SET, &r))
		return r;
	fake_cuda.wrong += !f || !fake_cuda.depth || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
		*(const int *)data != 1;
	if (!f || f->in_order < 0)
		return CUDA_ERROR_INVALID_VALUE;
	f->in_order = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult r;

	if (fails(FAKE_PUSH, &r))
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	fake_cuda.depth++;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	*ctx = NULL;
	fake_cuda.wrong += !fake_cuda.depth;
	fake_cuda.depth--;
	return ended();
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	CUresult r;

	if (fails(FAKE_DEVICE, &r))
		return r;
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute what, CUdevice dev)
{
	CUresult r;

	fake_cuda.wrong += dev < 0 || dev > 1;
	if (fails(FAKE_ATTRIBUTE, &r))
		return r;
	if (fake_cuda.order < 0)
		return CUDA_ERROR_INVALID_VALUE;
	switch (what) {
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
		*value = !fake_cuda.no_rdma;
		break;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
		*value = fake_cuda.flush;
		break;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
		*value = fake_cuda.order;
		break;
	default:
		fake_cuda.wrong++;
	}
	return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
				    CUflushGPUDirectRDMAWritesScope scope)
{
	CUresult r;

	if (fails(FAKE_FLUSH, &r))
		return r;
	fake_cuda.wrong += !fake_cuda.depth || !(fake_cuda.flush & 1) ||
		target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
		scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	CUresult r;

	if (fails(FAKE_RETAIN, &r))
		return r;
	*ctx = PRIMARY(dev);
	fake_cuda.primaries++;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	(void)dev;
	fake_cuda.wrong += !fake_cuda.primaries;
	fake_cuda.primaries--;
	return ended();
}

CUresult cuGetErrorName(CUresult r, const char **name)
{
	*name = NULL;
	if (fake_cuda.now)
		return ended();
	switch (r) {
#define PLN_X(id, number, words) case id: *name = #id; break;
	PLN_CUDA_ERRORS(PLN_X)
#undef PLN_X
	default:
		*name = NULL;
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr p,
				       size_t size, CUmemRangeHandleType type,
				       unsigned long long flags)
{
	const struct fake_range *f = fake_cuda.range;
	CUresult r;

	if (fails(FAKE_EXPORT, &r))
		return r;
	fake_cuda.export_start = p;
	fake_cuda.export_size = size;
	fake_cuda.wrong += !fake_cuda.depth;
	/* Whole pages of one allocation */
	while (f < fake_cuda.range + FAKE_RANGES &&
	       (p < (f->base & ~4095ull) ||
		p + size > ((f->base + f->size + 4095) & ~4095ull)))
		f++;
	if (f == fake_cuda.range + FAKE_RANGES || p % 4096 || size % 4096 ||
	    flags || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)handle = open("/dev/null", O_RDWR | O_CLOEXEC);
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **p, size_t size, unsigned int flags)
{
	CUresult r;

	if (fails(FAKE_HOST_ALLOC, &r))
		return r;
	fake_cuda.wrong += !fake_cuda.depth || !size ||
			   flags != CU_MEMHOSTALLOC_PORTABLE;
	*p = malloc(size);
	if (!*p)
		abort();
	fake_cuda.hosts++;
	return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *p)
{
	free(p);
	fake_cuda.wrong += !fake_cuda.hosts || fake_cuda.running;
	fake_cuda.hosts--;
	return ended();
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	unsigned int *s;
	CUresult r;

	if (fails(FAKE_STREAM, &r))
		return r;
	fake_cuda.wrong += flags != CU_STREAM_NON_BLOCKING;
	s = calloc(1, sizeof(*s));	/* copies that run */
	if (!s)
		abort();
	*stream = (CUstream)s;
	fake_cuda.streams++;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	fake_cuda.wrong += *(unsigned int *)stream;
	free(stream);
	fake_cuda.streams--;
	return ended();
}

static CUresult copy(CUdeviceptr gpu, void *to, const void *from, size_t n,
		     CUstream stream)
{
	CUresult r;

	if (fails(FAKE_COPY, &r))
		return r;
	if (!range_of(gpu))
		return CUDA_ERROR_INVALID_VALUE;
	fake_cuda.wrong += !fake_cuda.depth;
	memcpy(to, from, n);
	fake_cuda.busy += !*(unsigned int *)stream;
	if (fake_cuda.busy > fake_cuda.most_busy)
		fake_cuda.most_busy = fake_cuda.busy;
	++*(unsigned int *)stream;
	fake_cuda.running++;
	return CUDA_SUCCESS;
}

static unsigned char *bytes_of(CUdeviceptr p)
{
	const struct fake_range *f = range_of(p);

	return f ? f->bytes + (p - f->base) : NULL;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n,
			      CUstream stream)
{
	return copy(to, bytes_of(to), from, n, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n,
			      CUstream stream)
{
	return copy(from, to, bytes_of(from), n, stream);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	CUresult r;

	fake_cuda.running -= *(unsigned int *)stream;
	fake_cuda.busy -= *(unsigned int *)stream > 0;
	*(unsigned int *)stream = 0;
	return fails(FAKE_WAIT, &r) ? r : CUDA_SUCCESS;
}
