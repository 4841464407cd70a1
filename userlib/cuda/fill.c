// SPDX-License-Identifier: MIT
/*
 * Fills: a byte or a word, over and over, in one dimension or two.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define STEP_DEVICE	(1024 * MiB)	/* of one operation */

static CUresult host_fill(uint64_t dst, uint64_t value, unsigned int width,
			  size_t n)
{
	unsigned char block[16 * KiB];
	size_t len = n * width, step;
	CUresult err = CUDA_SUCCESS;

	for (size_t i = 0; i < sizeof(block) && i < len; i += width)
		memcpy(block + i, &value, width);	/* little endian */
	for (size_t at = 0; at < len && !err; at += step) {
		step = len - at < sizeof(block) ? len - at : sizeof(block);
		err = pln_host_copy(dst + at, (uintptr_t)block, step);
	}
	return err;
}

static CUresult fill_piece(CUdeviceptr dst, uint64_t value, unsigned int width,
			   size_t n, CUstream handle, bool sync)
{
	struct pln_place to = { 0 };
	struct pln_sink *sink = NULL;
	CUstream stream, where;
	size_t len;
	CUresult err = pln_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (dst % width || __builtin_mul_overflow(n, width, &len))
		err = CUDA_ERROR_INVALID_VALUE;
	else if (len)
		err = pln_place_get(dst, len, &to);
	if (!err)
		err = pln_place_may(stream, &to, true);
	if (!err && len && !to.device && !to.pinned)
		err = CUDA_ERROR_INVALID_VALUE;
	if (err || !len)
		goto out;
	if (!to.device) {
		err = pln_stream_wait(stream);
		if (!err)
			err = host_fill(dst, value, width, n);
		goto out;
	}
	where = stream;
	if (!pln_place_on(stream, &to)) {
		/* Memory of another device: after our work, before its own */
		err = pln_stream_wait(stream);
		if (err)
			goto out;
		where = to.stream;
		sync = true;
	}
	if (to.sync_memops)
		sync = true;
	if (sync) {
		sink = pln_sink_new();
		if (!sink) {
			err = CUDA_ERROR_OUT_OF_MEMORY;
			goto out;
		}
	}
	for (size_t at = 0; at < len && !err; at += STEP_DEVICE) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_FILL,
			.arg = width,
			.dst_handle = to.handle,
			.dst = to.offset + at,
			.len = len - at < STEP_DEVICE ? len - at : STEP_DEVICE,
			.imm = value,
		};
		struct pln_job *job;

		err = pln_submit(where, sink, &op, 1, &job);
		if (err)
			break;
		if (sync)
			err = pln_job_wait(job, true);
		pln_job_put(job);
	}
	if (sync) {
		if (!err)
			err = (CUresult)atomic_load(&sink->err);
		pln_sink_put(sink);
	}
out:
	pln_place_put(&to);
	pln_obj_put(&stream->obj);
	return err;
}

/* Maps begin and end at multiples of every width */
static CUresult fill(CUdeviceptr dst, uint64_t value, unsigned int width,
		     size_t n, CUstream stream, bool sync)
{
	size_t len, piece;
	CUresult err;

	if (dst % width || __builtin_mul_overflow(n, width, &len) ||
	    pln_place_piece(dst, len) == len)
		return fill_piece(dst, value, width, n, stream, sync);
	err = pln_check_all(dst, len, stream, true);
	for (size_t at = 0; at < len && !err; at += piece) {
		piece = pln_place_piece(dst + at, len - at);
		err = fill_piece(dst + at, value, width, piece / width, stream,
				 sync);
	}
	return err;
}

/* ---- two dimensions ---- */

/* @pitch is in bytes, @columns in elements */
static CUresult fill_2d(CUdeviceptr dst, size_t pitch, uint64_t value,
			unsigned int width, size_t columns, size_t rows,
			CUstream stream, bool sync)
{
	size_t len, all;
	CUresult err = pln_ready();

	if (err || !columns || !rows)
		return err;
	if (dst % width || __builtin_mul_overflow(columns, width, &len))
		return CUDA_ERROR_INVALID_VALUE;
	if (rows == 1 || pitch == len)
		return __builtin_mul_overflow(columns, rows, &all) ?
		       CUDA_ERROR_INVALID_VALUE :
		       fill(dst, value, width, all, stream, sync);
	if (pitch % width || pitch < len ||
	    __builtin_mul_overflow(pitch, rows - 1, &all) ||
	    __builtin_add_overflow(all, len, &all))
		return CUDA_ERROR_INVALID_VALUE;
	/* All of it must be there before any of it is filled */
	err = pln_check_all(dst, all, stream, true);
	for (size_t y = 0; y < rows && !err; y++)
		err = fill(dst + y * pitch, value, width, columns, stream,
			   false);
	if (!err && sync)
		err = cuStreamSynchronize(stream);
	return err;
}

/* For elements of one width: a line, two dimensions, and both in a stream */
#define FILLS(bits, type)						\
CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t n)	\
{									\
	return fill(dst, value, sizeof(value), n, NULL, true);		\
}									\
CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t n,	\
				CUstream stream)			\
{									\
	return fill(dst, value, sizeof(value), n, stream, false);	\
}									\
CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value, \
				size_t width, size_t height)		\
{									\
	return fill_2d(dst, pitch, value, sizeof(value), width, height, \
		       NULL, true);					\
}									\
CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch,	\
				  type value, size_t width,		\
				  size_t height, CUstream stream)	\
{									\
	return fill_2d(dst, pitch, value, sizeof(value), width, height, \
		       stream, false);					\
}

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
