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
		err = drv_host_copy(dst + at, (uintptr_t)block, step);
	}
	return err;
}

/* @by: the work that fills, by a thread of the library and not in the order of @stream, or NULL */
static CUresult put_jobs(CUstream stream, struct drv_sink *sink,
			 const struct drv_job *by,
			 const struct drv_place *to, uint64_t value,
			 unsigned int width, size_t len, bool sync)
{
	CUresult err = CUDA_SUCCESS;

	for (size_t at = 0; at < len && !err; at += STEP_DEVICE) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_FILL,
			.arg = width,
			.dst_handle = to->handle,
			.dst = to->offset + at,
			.len = len - at < STEP_DEVICE ? len - at : STEP_DEVICE,
			.imm = value,
		};
		struct drv_job *job;

		if (at && drv_place_gone(to, by))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		err = by ? drv_submit_now(stream, sink, &op, &job) :
			   drv_submit(stream, sink, &op, 1, &job);
		if (err)
			break;
		if (sync)
			err = drv_job_wait(job, true);
		if (sync && !err)
			err = job->err;
		drv_job_put(job);
	}
	return err;
}

struct by_hand {
	struct drv_place to;		/* with its reference */
	uint64_t value;
	unsigned int width;
	size_t n;
};

static CUresult by_hand_run(struct drv_job *job, void *arg)
{
	struct by_hand *f = arg;
	CUresult err;

	if (atomic_load(&job->cancelled))
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else if (f->to.device)
		err = put_jobs(f->to.stream, job->sink, job, &f->to, f->value,
			       f->width, f->n * f->width, true);
	else
		err = host_fill(f->to.addr, f->value, f->width, f->n);
	drv_place_put(&f->to);
	free(f);
	return err;
}

/*
 * A synchronous fill need not wait, and as on a real GPU does not where that is long,
 * unless the memory asks for it.
 */
static bool is_left(CUstream stream, const struct drv_place *to)
{
	return to->device && !to->sync_memops && drv_stream_held(stream);
}

static CUresult fill_piece(CUdeviceptr dst, uint64_t value, unsigned int width,
			   size_t n, CUstream handle, bool sync)
{
	struct drv_place to = { 0 };
	struct drv_sink *sink = NULL;
	bool left = false;
	CUstream stream;
	size_t len;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (dst % width || __builtin_mul_overflow(n, width, &len))
		err = CUDA_ERROR_INVALID_VALUE;
	else if (len)
		err = drv_place_get(dst, len, &to);
	if (!err)
		err = drv_place_may(stream->ctx, &to, DRV_ALONE | DRV_WRITES);
	if (!err && len && !to.device && !to.pinned)
		err = CUDA_ERROR_INVALID_VALUE;
	if (err || !len)
		goto out;
	left = sync && is_left(stream, &to);
	sync = sync && !left;
	if (!drv_place_on(stream, &to)) {
		/* Host memory, or that of another device */
		const struct drv_span span[2] = { { to.addr, len } };
		struct by_hand *f = calloc(1, sizeof(*f));

		if (f) {
			*f = (struct by_hand){ to, value, width, n };
			to.stream = NULL;
		}
		err = f ? drv_stream_do(stream, span, by_hand_run, f, sync) :
			  CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	if (sync) {
		sink = drv_sink_new();
		if (!sink) {
			err = CUDA_ERROR_OUT_OF_MEMORY;
			goto out;
		}
	}
	err = put_jobs(stream, sink, NULL, &to, value, width, len, sync);
	drv_sink_put(sink);
out:
	if (!err && left)
		err = drv_left(stream, dst);
	drv_place_put(&to);
	drv_obj_put(&stream->obj);
	return err;
}

/* Maps begin and end at multiples of every width */
static CUresult fill(CUdeviceptr dst, uint64_t value, unsigned int width,
		     size_t n, CUstream stream, bool sync)
{
	size_t len, piece;
	CUresult err;

	if (dst % width || __builtin_mul_overflow(n, width, &len) ||
	    drv_place_piece(dst, len) == len)
		return fill_piece(dst, value, width, n, stream, sync);
	err = drv_check_all(dst, len, stream, DRV_ALONE | DRV_WRITES);
	for (size_t at = 0; at < len && !err; at += piece) {
		piece = drv_place_piece(dst + at, len - at);
		err = fill_piece(dst + at, value, width, piece / width, stream,
				 sync);
	}
	return err;
}

CUresult drv_fill(CUdeviceptr dst, uint64_t value, unsigned int width,
		  CUstream stream)
{
	return fill(dst, value, width, 1, stream, false);
}

/* ---- two dimensions ---- */

/* Likewise rows, the first of which is there */
static bool rows_left(CUdeviceptr dst, size_t len, CUstream handle)
{
	struct drv_place to = { 0 };
	CUstream stream;
	bool left;

	if (drv_stream_get(handle, NULL, &stream))
		return false;
	left = !drv_place_get(dst, len, &to) && is_left(stream, &to);
	drv_place_put(&to);
	drv_obj_put(&stream->obj);
	return left;
}

/* @pitch is in bytes, @columns in elements */
static CUresult fill_2d(CUdeviceptr dst, size_t pitch, uint64_t value,
			unsigned int width, size_t columns, size_t rows,
			CUstream stream, bool sync)
{
	size_t len, all;
	bool left;
	CUresult err = drv_ready();

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
	err = drv_check_all(dst, all, stream, DRV_ALONE | DRV_WRITES);
	left = sync && rows_left(dst, len, stream);
	for (size_t y = 0; y < rows && !err; y++)
		err = fill(dst + y * pitch, value, width, columns, stream,
			   left);
	if (!err && sync && !left)
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
