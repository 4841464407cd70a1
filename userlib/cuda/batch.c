// SPDX-License-Identifier: MIT
/*
 * Many copies in one call.  All of them are looked at before the first one
 * begins; they run in the order of the stream.
 */
#include "internal.h"

#define WHOLE_BATCH	SIZE_MAX	/* the failure is of no single copy */

static CUresult check_attrs(const CUmemcpyAttributes *attrs,
			    const size_t *starts, size_t n, size_t count)
{
	if (!attrs || !starts || !n || n > count || starts[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (starts[i] >= count || (i && starts[i] <= starts[i - 1]) ||
		    attrs[i].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		    attrs[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
		    (attrs[i].flags & ~(unsigned int)
		     CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs,
		      const size_t *sizes, size_t count,
		      const CUmemcpyAttributes *attrs, const size_t *starts,
		      size_t nr_attrs, size_t *fail, CUstream stream)
{
	size_t at = 0;
	CUresult err = drv_ready();

	*fail = WHOLE_BATCH;
	if (err)
		return err;
	/* The default stream is refused, as NVIDIA's driver does */
	if (!stream || stream == CU_STREAM_LEGACY || !dsts || !srcs || !sizes ||
	    !count)
		return CUDA_ERROR_INVALID_VALUE;
	err = check_attrs(attrs, starts, nr_attrs, count);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		err = !sizes[i] ? CUDA_ERROR_INVALID_VALUE :
		      drv_check_all(dsts[i], sizes[i], stream, DRV_WRITES);
		if (!err)
			err = drv_check_all(srcs[i], sizes[i], stream, DRV_READS);
		if (err) {
			*fail = i;
			return err;
		}
	}
	for (size_t i = 0; i < count && !err; i++) {
		if (at + 1 < nr_attrs && starts[at + 1] == i)
			at++;
		/* A source that the program takes back when the call returns */
		err = drv_copy(dsts[i], DRV_ANY, srcs[i], DRV_ANY, sizes[i],
			       stream, attrs[at].srcAccessOrder ==
			       CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL);
		if (err)
			*fail = i;
	}
	return err;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs,
			    size_t *sizes, size_t count,
			    CUmemcpyAttributes *attrs, size_t *starts,
			    size_t nr_attrs, size_t *fail, CUstream stream)
{
	size_t unused;

	return batch(dsts, srcs, sizes, count, attrs, starts, nr_attrs,
		     fail ? fail : &unused, stream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs,
			       size_t *sizes, size_t count,
			       CUmemcpyAttributes *attrs, size_t *starts,
			       size_t nr_attrs, CUstream stream)
{
	size_t unused;

	return batch(dsts, srcs, sizes, count, attrs, starts, nr_attrs,
		     &unused, stream);
}
