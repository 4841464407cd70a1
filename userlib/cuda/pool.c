// SPDX-License-Identifier: MIT
/*
 * Memory pools and managed memory: there are none, as the attributes of the
 * device say.  The functions are here because libraries link to them.
 */
#include "internal.h"

static CUresult none(bool valid)
{
	CUresult err = pln_ready();

	if (err)
		return err;
	return valid ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	(void)size;
	(void)stream;
	return none(ptr);
}
PLN_ALIAS(cuMemAllocAsync, cuMemAllocAsync_ptsz);

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size,
				 CUmemoryPool pool, CUstream stream)
{
	(void)size;
	(void)pool;
	(void)stream;
	return none(ptr);
}
PLN_ALIAS(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz);

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	(void)stream;
	return none(ptr);
}
PLN_ALIAS(cuMemFreeAsync, cuMemFreeAsync_ptsz);

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	return none(pool && props);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	(void)pool;
	return none(false);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return none(pool && pln_device_get(dev));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc,
			    size_t n)
{
	(void)pool;
	(void)desc;
	(void)n;
	return none(false);
}

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
					  CUmemAllocationHandleType type,
					  unsigned long long flags)
{
	(void)handle;
	(void)pool;
	(void)type;
	(void)flags;
	return none(false);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	(void)handle;
	(void)type;
	(void)flags;
	return none(pool);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
	(void)ptr;
	return none(data);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool,
				CUmemPoolPtrExportData *data)
{
	(void)ptr;
	(void)pool;
	(void)data;
	return none(false);
}

/* Only managed memory has these */
CUresult cuMemRangeGetAttribute(void *data, size_t size,
				CUmem_range_attribute attr, CUdeviceptr ptr,
				size_t n)
{
	(void)data;
	(void)size;
	(void)attr;
	(void)ptr;
	(void)n;
	return none(false);
}
