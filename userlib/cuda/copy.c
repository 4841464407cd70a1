// SPDX-License-Identifier: MIT
/*
 * Copies.
 *
 * Every pointer is looked up, whatever the function's name says about it, so
 * that all of them follow the rules of unified addressing.  Copies run on the
 * copy engine; the CPU moves only host memory to host memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "internal.h"

#define STEP_DEVICE	(1024 * MiB)	/* of one operation without host memory, or without GPU memory */
#define STEP_USER	(4 * MiB)	/* of one job that pins host memory; RLIMIT_MEMLOCK is 8 MiB by default */
#define STEP_STAGE	(1 * MiB)
#define STAGE_MAX	(2 * MiB)	/* of pageable memory, as much as an H100 takes */
#define HOST_PAGE	4096ull

/* Run one operation on @stream, wait, give its own error */
CUresult drv_run(CUstream stream, struct pln_gpu_op *op, uint64_t *result)
{
	struct drv_sink *sink = drv_sink_new();
	struct drv_job *job;
	CUresult err;

	if (!sink)
		return CUDA_ERROR_OUT_OF_MEMORY;
	err = drv_submit(stream, sink, op, 1, &job);
	if (!err) {
		err = drv_job_wait(job, true);
		if (!err)
			err = job->err;
		if (!err && result)
			*result = job->result;
		drv_job_put(job);
	}
	drv_sink_put(sink);
	return err;
}

/* Host to host, without a crash for a wrong pointer where the kernel helps */
CUresult drv_host_copy(uint64_t dst, uint64_t src, size_t n)
{
	while (n) {
		size_t len = n < STEP_DEVICE ? n : STEP_DEVICE;
		struct iovec to = { (void *)(uintptr_t)dst, len };
		struct iovec from = { (void *)(uintptr_t)src, len };
		ssize_t done = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

		if (done < 0 && (errno == ENOSYS || errno == EPERM)) {
			memmove(to.iov_base, from.iov_base, n);
			return CUDA_SUCCESS;
		}
		if (done <= 0)
			return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY :
						 CUDA_ERROR_INVALID_VALUE;
		dst += (size_t)done;
		src += (size_t)done;
		n -= (size_t)done;
	}
	return CUDA_SUCCESS;
}

/* To or from a device that is mapped: words where it can be, never twice */
static void io_copy(uint64_t dst, uint64_t src, size_t n)
{
	const volatile unsigned char *from = (void *)(uintptr_t)src;
	volatile unsigned char *to = (void *)(uintptr_t)dst;

	while (n) {
		if ((((uintptr_t)to | (uintptr_t)from) & 7) == 0 && n >= 8) {
			*(volatile uint64_t *)to =
				*(const volatile uint64_t *)from;
			to += 8;
			from += 8;
			n -= 8;
		} else {
			*to++ = *from++;
			n--;
		}
	}
}

/*
 * Smaller steps where RLIMIT_MEMLOCK leaves no room for larger ones.  @by: the work that
 * copies, by a thread of the library and not in the order of the stream, or NULL.  @last:
 * a reference to the last job, or NULL.
 */
static CUresult put_jobs(CUstream stream, struct drv_sink *sink,
			 const struct drv_job *by,
			 const struct drv_place *dst,
			 const struct drv_place *src, size_t n,
			 struct drv_job **last)
{
	bool user = !dst->device || !src->device;
	size_t step = user ? STEP_USER : STEP_DEVICE;
	CUresult err = CUDA_SUCCESS;
	size_t at = 0;

	*last = NULL;
	while (at < n) {
		struct pln_gpu_op op = {
			.opcode = PLN_GPU_OP_COPY,
			.flags = (src->device ? 0 : PLN_GPU_OP_F_SRC_USER) |
				 (dst->device ? 0 : PLN_GPU_OP_F_DST_USER),
			.src_handle = src->handle,
			.dst_handle = dst->handle,
			.src = src->offset + at,
			.dst = dst->offset + at,
			.len = n - at < step ? n - at : step,
		};
		struct drv_job *job;

		/* What came before may have taken long */
		if ((at || err) && (drv_place_gone(dst, by) || drv_place_gone(src, by)))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		err = by ? drv_submit_now(stream, sink, &op, &job) :
			   drv_submit(stream, sink, &op, 1, &job);
		if (!err) {
			at += op.len;
			drv_job_put(*last);
			*last = job;
		} else if (err == CUDA_ERROR_OUT_OF_MEMORY && user && op.len > HOST_PAGE) {
			step = (op.len / 2 + HOST_PAGE - 1) & ~(HOST_PAGE - 1);
		} else {
			return err;
		}
	}
	return CUDA_SUCCESS;
}

/* Both ends reachable from @stream's device; @sync: wait, give own errors */
static CUresult engine_copy(CUstream stream, const struct drv_job *by,
			    const struct drv_place *dst,
			    const struct drv_place *src, size_t n, bool sync)
{
	struct drv_sink *sink = NULL;
	struct drv_job *tail;
	CUresult err, e;

	if (sync) {
		sink = drv_sink_new();
		if (!sink)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	err = put_jobs(stream, sink, by, dst, src, n, &tail);
	if (sync) {
		if (tail) {
			e = drv_job_wait(tail, true);
			if (!err)
				err = e;
		}
		if (!err)
			err = (CUresult)atomic_load(&sink->err);
		drv_sink_put(sink);
	}
	drv_job_put(tail);
	return err;
}

/* ---- pageable memory ---- */

static atomic_size_t staged;		/* in bytes, of all jobs that have not ended */

void drv_stage_free(struct drv_stage *stage)
{
	if (stage)
		atomic_fetch_sub(&staged, stage->size);
	free(stage);
}

/*
 * Copy a little to memory of @stream's device as it is now: the caller need not wait,
 * and the program may use it again.  CUDA_ERROR_OUT_OF_MEMORY: there is no room aside.
 */
static CUresult stage_copy(CUstream stream, const struct drv_place *to,
			   const struct drv_place *from, size_t n)
{
	struct pln_gpu_op op = {
		.opcode = PLN_GPU_OP_COPY,
		.flags = PLN_GPU_OP_F_SRC_USER,
		.dst_handle = to->handle,
		.dst = to->offset,
		.len = n,
	};
	struct drv_stage *stage = NULL;
	CUresult err;

	if (n <= STAGE_MAX && atomic_load(&staged) <= STAGE_MAX - n)
		stage = malloc(sizeof(*stage) + n);
	if (!stage)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stage->size = n;
	atomic_fetch_add(&staged, n);
	err = drv_host_copy((uintptr_t)stage->data, from->offset, n);
	if (err) {
		drv_stage_free(stage);
		return err;
	}
	op.src = (uintptr_t)stage->data;
	return drv_submit_staged(stream, stage, &op);
}

/* ---- by a thread of the library, in the order of a stream ---- */

struct by_hand {
	struct drv_place to, from;	/* with their references */
	size_t n;
};

/* One end is host memory of our own */
static CUresult step_copy(const struct drv_job *by, const struct drv_place *dst,
			  const struct drv_place *src, size_t n)
{
	if (atomic_load(&by->cancelled))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (src->device)
		return engine_copy(src->stream, by, dst, src, n, true);
	if (dst->device)
		return engine_copy(dst->stream, by, dst, src, n, true);
	if (src->io || dst->io) {
		io_copy(dst->offset, src->offset, n);
		return CUDA_SUCCESS;
	}
	return drv_host_copy(dst->offset, src->offset, n);
}

/* Between devices, or with one that is mapped: through host memory, by steps */
static CUresult staged_copy(const struct drv_job *by,
			    const struct drv_place *dst,
			    const struct drv_place *src, size_t n)
{
	struct drv_place stage = { 0 }, part;
	CUresult err = CUDA_SUCCESS;
	void *buf;

	buf = mmap(NULL, STEP_STAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stage.offset = (uintptr_t)buf;
	for (size_t at = 0; at < n && !err; at += STEP_STAGE) {
		size_t len = n - at < STEP_STAGE ? n - at : STEP_STAGE;

		part = *src;
		part.offset += at;
		err = step_copy(by, &stage, &part, len);
		if (err)
			break;
		part = *dst;
		part.offset += at;
		err = step_copy(by, &part, &stage, len);
	}
	munmap(buf, STEP_STAGE);
	return err;
}

static CUresult by_hand_run(struct drv_job *job, void *arg)
{
	struct by_hand *c = arg;
	CUresult err = CUDA_SUCCESS;

	if (atomic_load(&job->cancelled))
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else if (c->to.device || c->from.device || c->to.io || c->from.io)
		err = staged_copy(job, &c->to, &c->from, c->n);
	else
		err = drv_host_copy(c->to.offset, c->from.offset, c->n);
	drv_place_put(&c->to);
	drv_place_put(&c->from);
	free(c);
	return err;
}

/* Takes over the references of @to and @from, whatever the outcome */
static CUresult copy_by_hand(CUstream stream, struct drv_place *to,
			     struct drv_place *from, size_t n, bool sync)
{
	const struct drv_span span[2] = { { to->addr, n }, { from->addr, n } };
	struct by_hand *c = calloc(1, sizeof(*c));

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->to = *to;
	c->from = *from;
	c->n = n;
	to->stream = from->stream = NULL;
	return drv_stream_do(stream, span, by_hand_run, c, sync);
}

/*
 * Have a thread of the library do @work, which uses the two of @span, and with @sync wait
 * for it and give its own error.  On failure @work has been told to give back @arg.
 */
CUresult drv_stream_do(CUstream stream, const struct drv_span *span,
		       CUresult (*work)(struct drv_job *job, void *arg),
		       void *arg, bool sync)
{
	struct drv_sink *sink = sync ? drv_sink_new() : NULL;
	struct drv_job *job = NULL, gone = { .cancelled = true };
	CUresult err;

	err = sync && !sink ? CUDA_ERROR_OUT_OF_MEMORY :
	      drv_stream_work(stream, sink, DRV_USE_ANY, span, work, arg, &job);
	if (err) {
		work(&gone, arg);	/* gives it back */
	} else if (sync) {
		err = drv_job_wait(job, true);
		if (!err)
			err = job->err;
	}
	drv_job_put(job);
	drv_sink_put(sink);
	return err;
}

bool drv_place_on(CUstream stream, const struct drv_place *place)
{
	return place->device && place->stream->ctx->file == stream->ctx->file;
}

/*
 * Can the engine of @stream's device do the copy?  Memory of another GPU that
 * peer access is on for becomes, for the engine, user memory.
 */
static bool reachable(CUstream stream, struct drv_place *a, struct drv_place *b)
{
	struct drv_place *far = drv_place_on(stream, a) ? b : a;
	CUcontext ctx = stream->ctx;
	bool may;

	if (!drv_place_on(stream, a) && !drv_place_on(stream, b))
		return false;
	if (!far->device || drv_place_on(stream, far))
		return true;
	pthread_mutex_lock(&drv.lock);
	may = far->peers & 1u << ctx->dev->ordinal ||
	      (far->apart && drv_ctx_reaches(ctx, far->owner));
	pthread_mutex_unlock(&drv.lock);
	if (!may)
		return false;
	far->device = false;
	far->pinned = true;
	far->handle = 0;
	far->offset = far->addr;
	return true;
}

/*
 * A synchronous copy between memory of GPUs does not wait for the host, as CUDA's rules
 * say, unless the memory asks for it.  It is waited for all the same where that is
 * short: its error is known then.
 */
static bool is_left(CUstream stream, const struct drv_place *to,
		    const struct drv_place *from)
{
	return to->device && from->device && !to->sync_memops &&
	       !from->sync_memops && drv_stream_held(stream);
}

/* The contexts that the caller names, or NULL */
struct named {
	CUcontext dst, src;
};

/* On a real GPU it is the calling thread's context, not the stream's, that needs the right */
static CUcontext who(CUcontext named, CUstream stream)
{
	CUcontext ctx = named;

	if (!ctx && drv_ctx_current_any(&ctx))
		ctx = stream->ctx;
	return ctx;
}

static CUresult copy_piece(uint64_t dst, int dst_kind, uint64_t src,
			   int src_kind, size_t n, const struct named *named,
			   CUstream handle, bool sync)
{
	struct drv_place to = { 0 }, from = { 0 };
	bool from_host, to_host;
	bool left = false;
	CUstream stream;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	if (!n)
		goto out;
	err = drv_place_get(dst, n, &to);
	if (!err)
		err = drv_place_get(src, n, &from);
	if (!err)
		err = drv_place_may(who(named->dst, stream), &to, DRV_WRITES);
	if (!err)
		err = drv_place_may(who(named->src, stream), &from, DRV_READS);
	to.peers &= to.writers;
	/* Page-locked host memory has a device address too: its own */
	if (!err && ((dst_kind == DRV_DEVICE && !to.device && !to.pinned) ||
		     (src_kind == DRV_DEVICE && !from.device && !from.pinned)))
		err = CUDA_ERROR_INVALID_VALUE;
	if (err)
		goto out;
	left = sync && is_left(stream, &to, &from);
	sync = sync && !left;
	/*
	 * The program may use pageable memory again when the call returns, so it
	 * is not left to others.
	 */
	from_host = !from.device && !from.pinned;
	to_host = !to.device && !to.pinned;
	if (!sync && from_host && !from.io && drv_place_on(stream, &to)) {
		err = stage_copy(stream, &to, &from, n);
		if (err != CUDA_ERROR_OUT_OF_MEMORY)
			goto out;
	}
	if (from_host || to_host || (!to.device && !from.device))
		sync = true;
	if (to.io || from.io || (!to.device && !from.device) ||
	    !reachable(stream, &to, &from))
		err = copy_by_hand(stream, &to, &from, n, sync);
	else
		err = engine_copy(stream, NULL, &to, &from, n, sync);
	if (!err && left)
		err = drv_left(stream, dst);
	if (!err && left)
		err = drv_left(stream, src);
out:
	drv_place_put(&to);
	drv_place_put(&from);
	drv_obj_put(&stream->obj);
	return err;
}

/* @named: or NULL */
static CUresult check_all(uint64_t addr, size_t n, CUstream handle,
			  CUcontext named, unsigned int does)
{
	struct drv_place place;
	bool device = false;
	CUstream stream;
	size_t piece;
	CUresult err = drv_stream_get(handle, NULL, &stream);

	if (err)
		return err;
	for (size_t at = 0; at < n && !err; at += piece) {
		piece = drv_place_piece(addr + at, n - at);
		err = drv_place_get(addr + at, piece, &place);
		device = at ? device : place.device;
		if (!err && device && !place.device)
			err = CUDA_ERROR_INVALID_VALUE;
		if (!err)
			err = drv_place_may(does & DRV_ALONE ? stream->ctx :
					    who(named, stream), &place, does);
		drv_place_put(&place);
	}
	drv_obj_put(&stream->obj);
	return err;
}

CUresult drv_check_all(uint64_t addr, size_t n, CUstream handle,
		       unsigned int does)
{
	return check_all(addr, n, handle, NULL, does);
}

static CUresult copy(uint64_t dst, int dst_kind, uint64_t src, int src_kind,
		     size_t n, const struct named *named, CUstream stream,
		     bool sync)
{
	CUresult err;
	size_t piece = drv_place_piece(dst, drv_place_piece(src, n));

	if (piece == n)
		return copy_piece(dst, dst_kind, src, src_kind, n, named, stream,
				  sync);
	/* All of it must be there before any of it is copied */
	err = check_all(dst, n, stream, named->dst, DRV_WRITES);
	if (!err)
		err = check_all(src, n, stream, named->src, DRV_READS);
	for (size_t at = 0; at < n && !err; at += piece) {
		piece = drv_place_piece(dst + at,
					drv_place_piece(src + at, n - at));
		err = copy_piece(dst + at, dst_kind, src + at, src_kind, piece,
				 named, stream, sync);
	}
	return err;
}

CUresult drv_copy(uint64_t dst, int dst_kind, uint64_t src, int src_kind,
		  size_t n, CUstream stream, bool sync)
{
	static const struct named none;

	return copy(dst, dst_kind, src, src_kind, n, &none, stream, sync);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return drv_copy(dst, DRV_ANY, src, DRV_ANY, n, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n,
		       CUstream stream)
{
	return drv_copy(dst, DRV_ANY, src, DRV_ANY, n, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	return drv_copy(dst, DRV_DEVICE, (uintptr_t)src, DRV_ANY, n, NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n,
			      CUstream stream)
{
	return drv_copy(dst, DRV_DEVICE, (uintptr_t)src, DRV_ANY, n, stream, false);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	return drv_copy((uintptr_t)dst, DRV_ANY, src, DRV_DEVICE, n, NULL, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n,
			      CUstream stream)
{
	return drv_copy((uintptr_t)dst, DRV_ANY, src, DRV_DEVICE, n, stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return drv_copy(dst, DRV_DEVICE, src, DRV_DEVICE, n, NULL, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n,
			      CUstream stream)
{
	return drv_copy(dst, DRV_DEVICE, src, DRV_DEVICE, n, stream, false);
}

/* A context that is named, usable; none is no error */
static CUresult usable(CUcontext handle, CUcontext *ctx)
{
	CUresult err = drv_ready();

	*ctx = NULL;
	if (!err && handle)
		err = drv_ctx_get(handle, ctx);
	return err || !*ctx ? err : drv_ctx_state(*ctx);
}

/* Unified addressing knows the devices; the contexts say who has the right */
static CUresult peer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
		     CUcontext src_ctx, size_t n, CUstream stream, bool sync)
{
	struct named named = { 0 };
	CUresult err = usable(dst_ctx, &named.dst);

	if (!err)
		err = usable(src_ctx, &named.src);
	if (!err)
		err = copy(dst, DRV_DEVICE, src, DRV_DEVICE, n, &named, stream,
			   sync);
	drv_ctx_put(named.src);
	drv_ctx_put(named.dst);
	return err;
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
		      CUcontext src_ctx, size_t n)
{
	return peer(dst, dst_ctx, src, src_ctx, n, NULL, true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
			   CUcontext src_ctx, size_t n, CUstream stream)
{
	return peer(dst, dst_ctx, src, src_ctx, n, stream, false);
}

/* ---- two dimensions: row by row ---- */

static CUresult side(CUmemorytype type, const void *host, CUdeviceptr device,
		     size_t x, size_t y, size_t pitch, uint64_t *addr,
		     int *kind)
{
	uint64_t skip;

	switch ((int)type) {
	case CU_MEMORYTYPE_HOST:
		*addr = (uintptr_t)host;
		*kind = DRV_ANY;
		break;
	case CU_MEMORYTYPE_DEVICE:
		*addr = device;
		*kind = DRV_DEVICE;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		*addr = device;
		*kind = DRV_ANY;
		break;
	case CU_MEMORYTYPE_ARRAY:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!*addr || __builtin_mul_overflow(y, pitch, &skip) ||
	    __builtin_add_overflow(skip, x, &skip) ||
	    __builtin_add_overflow(*addr, skip, addr))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Does a copy from @src to @dst, of rows that are there, wait for long by itself? */
static bool goes_on(CUstream handle, uint64_t dst, uint64_t src)
{
	struct drv_place to = { 0 }, from = { 0 };
	CUstream stream;
	bool so = false;

	if (drv_stream_get(handle, NULL, &stream))
		return false;
	if (!drv_place_get(dst, 1, &to) && !drv_place_get(src, 1, &from))
		so = is_left(stream, &to, &from);
	drv_place_put(&to);
	drv_place_put(&from);
	drv_obj_put(&stream->obj);
	return so;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool sync)
{
	size_t src_pitch, dst_pitch, src_all, dst_all;
	int src_kind, dst_kind;
	uint64_t src, dst;
	bool left;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	src_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
	dst_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
	if (src_pitch < c->WidthInBytes || dst_pitch < c->WidthInBytes ||
	    __builtin_mul_overflow(src_pitch, c->Height, &src_all) ||
	    __builtin_mul_overflow(dst_pitch, c->Height, &dst_all))
		return CUDA_ERROR_INVALID_VALUE;
	err = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
		   c->srcY, src_pitch, &src, &src_kind);
	if (!err)
		err = side(c->dstMemoryType, c->dstHost, c->dstDevice,
			   c->dstXInBytes, c->dstY, dst_pitch, &dst, &dst_kind);
	if (err)
		return err;
	if (src_pitch == c->WidthInBytes && dst_pitch == c->WidthInBytes)
		return drv_copy(dst, dst_kind, src, src_kind,
			    c->WidthInBytes * c->Height, stream, sync);
	/* All of it must be there before any of it is copied; no last gap */
	if (c->WidthInBytes && c->Height) {
		err = drv_check_all(dst, dst_all - dst_pitch + c->WidthInBytes,
				    stream, DRV_WRITES);
		if (!err)
			err = drv_check_all(src, src_all - src_pitch +
					    c->WidthInBytes, stream,
					    DRV_READS);
	}
	left = !err && sync && goes_on(stream, dst, src);
	for (size_t y = 0; y < c->Height && !err; y++)
		err = drv_copy(dst + y * dst_pitch, dst_kind, src + y * src_pitch,
			   src_kind, c->WidthInBytes, stream, left);
	if (sync && !left) {
		CUresult e = cuStreamSynchronize(stream);

		if (!err)
			err = e;
	}
	return err;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c)
{
	return copy_2d(c, NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return copy_2d(c, stream, false);
}

