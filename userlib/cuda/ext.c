// SPDX-License-Identifier: MIT
/*
 * Engine operations beyond the CUDA interface: peerlane/cuda_ext.h.
 */
#include "internal.h"

#define STEP	(1024 * MiB)

static CUresult two_places(CUstream stream, CUdeviceptr a, CUdeviceptr b,
			   size_t n, struct drv_place *pa, struct drv_place *pb)
{
	CUresult err;

	err = drv_place_get(a, n, pa);
	if (!err)
		err = drv_place_get(b, n, pb);
	if (err)
		return err;
	if (!pa->device || !pb->device)
		return CUDA_ERROR_INVALID_VALUE;
	if (pa->stream->ctx->file != stream->ctx->file ||
	    pb->stream->ctx->file != stream->ctx->file)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult plnMemCrc32c(CUdeviceptr p, size_t n, uint32_t *crc)
{
	struct drv_place place = { 0 };
	uint64_t so_far = 0;
	CUstream stream;
	CUresult err = drv_stream_get(NULL, NULL, &stream);

	if (err)
		return err;
	if (!crc)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (n)
		err = drv_place_get(p, n, &place);
	if (!err && n && !place.device)
		err = CUDA_ERROR_INVALID_VALUE;
	for (size_t at = 0; !err && at < n; at += STEP) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_CRC32C,
			.src_handle = place.handle,
			.src = place.offset + at,
			.len = n - at < STEP ? n - at : STEP,
			.imm = so_far,
		};

		/* On the device that has the memory, whoever is current */
		err = drv_run(place.stream, &op, &so_far);
	}
	if (!err)
		*crc = (uint32_t)so_far;
	drv_place_put(&place);
	drv_obj_put(&stream->obj);
	return err;
}

CUresult plnMemCompare(CUdeviceptr a, CUdeviceptr b, size_t n,
		       uint64_t *first_diff)
{
	struct drv_place pa = { 0 }, pb = { 0 };
	uint64_t found = PLN_GPU_COMPARE_EQUAL;
	CUstream stream;
	CUresult err = drv_stream_get(NULL, NULL, &stream);

	if (err)
		return err;
	if (!first_diff)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (n)
		err = two_places(stream, a, b, n, &pa, &pb);
	for (size_t at = 0; !err && at < n; at += STEP) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_COMPARE,
			.src_handle = pa.handle,
			.dst_handle = pb.handle,
			.src = pa.offset + at,
			.dst = pb.offset + at,
			.len = n - at < STEP ? n - at : STEP,
		};

		err = drv_run(stream, &op, &found);
		if (err || found != PLN_GPU_COMPARE_EQUAL) {
			found += at;
			break;
		}
	}
	if (!err)
		*first_diff = found == PLN_GPU_COMPARE_EQUAL ?
			      PLN_COMPARE_SAME : found;
	drv_place_put(&pa);
	drv_place_put(&pb);
	drv_obj_put(&stream->obj);
	return err;
}

CUresult plnMemAdd(CUdeviceptr dst, CUdeviceptr src, size_t n, int dtype)
{
	struct drv_place to = { 0 }, from = { 0 };
	CUstream stream;
	CUresult err = drv_stream_get(NULL, NULL, &stream);

	if (err)
		return err;
	if ((dtype != PLN_DTYPE_INT32 && dtype != PLN_DTYPE_FLOAT32) ||
	    n % 4 || dst % 4 || src % 4)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (n)
		err = two_places(stream, dst, src, n, &to, &from);
	for (size_t at = 0; !err && at < n; at += STEP) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_ADD,
			.arg = dtype == PLN_DTYPE_INT32 ? PLN_GPU_ADD_INT32 :
							  PLN_GPU_ADD_FLOAT32,
			.src_handle = from.handle,
			.dst_handle = to.handle,
			.src = from.offset + at,
			.dst = to.offset + at,
			.len = n - at < STEP ? n - at : STEP,
		};

		err = drv_run(stream, &op, NULL);
	}
	drv_place_put(&to);
	drv_place_put(&from);
	drv_obj_put(&stream->obj);
	return err;
}
