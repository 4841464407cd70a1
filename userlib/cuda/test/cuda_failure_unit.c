// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: failures, forks and threads.
 * Each test runs in a process of its own.
 */
#include <signal.h>

#include <time.h>

#include "unit.h"
#include "yield.h"

/* ---- failures ---- */

struct work {
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	CUevent e;
};

/* A context of its own, which may be lost */
static struct work work(void)
{
	struct work w;

	OK(cuCtxCreate_v2(&w.ctx, 0, 0));
	OK(cuMemAlloc_v2(&w.p, 4096));
	OK(cuStreamCreate(&w.s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&w.e, 0));
	return w;
}

/* Every call in it gives @err from now on; others are not concerned */
static void lost(const struct work *w, CUresult err)
{
	CUdeviceptr q;
	char b;

	for (int i = 0; i < 2; i++) {
		IS(cuCtxSynchronize(), err);
		IS(cuStreamSynchronize(w->s), err);
		IS(cuStreamQuery(NULL), err);
		IS(cuEventQuery(w->e), err);
		IS(cuMemAlloc_v2(&q, 4096), err);
		IS(cuMemcpyDtoH_v2(&b, w->p, 1), err);
		IS(cuMemsetD8Async(w->p, 1, 1, w->s), err);
	}
	OK(cuCtxDestroy_v2(w->ctx));
	OK(cuCtxSynchronize());
}

static void t_engine_error(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr q;
	struct work w;
	char b;

	OK(cuMemAlloc_v2(&q, 4096));
	w = work();
	fake_bad_jobs(1, -EIO, 16);
	IS(cuMemcpyDtoH_v2(&b, w.p, 1), CUDA_ERROR_LAUNCH_FAILED);
	lost(&w, CUDA_ERROR_LAUNCH_FAILED);
	w = work();
	fake_bad_jobs(1, -EIO, 8 /* a refused DMA */);
	IS(cuMemsetD8_v2(w.p, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	lost(&w, CUDA_ERROR_ILLEGAL_ADDRESS);
	w = work();
	fake_bad_jobs(1, -ETIMEDOUT, 0);
	IS(cuMemsetD8_v2(w.p, 1, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
	lost(&w, CUDA_ERROR_LAUNCH_TIMEOUT);
	/* Asynchronous work, asked for by its event, stream or context */
	for (int i = 0; i < 3; i++) {
		w = work();
		fake_bad_jobs(1, -EIO, 16);
		OK(cuMemsetD8Async(w.p, 1, 1, w.s));
		cuEventRecord(w.e, w.s);	/* which may know of it already */
		IS(i == 0 ? cuEventSynchronize(w.e) :
		   i == 1 ? cuStreamSynchronize(w.s) : cuCtxSynchronize(),
		   CUDA_ERROR_LAUNCH_FAILED);
		lost(&w, CUDA_ERROR_LAUNCH_FAILED);
	}
	/* Another context does not see it */
	OK(cuMemsetD8_v2(q, 1, 1));
	end(ctx);
}

static void let(void *arg)
{
	struct timespec nap = { 0, 1000000 };

	while (!atomic_load((atomic_int *)arg))
		nanosleep(&nap, NULL);
}

/* What the host could not do is told once, and the context goes on */
static void t_host_error(void)
{
	CUcontext ctx = start(&one);
	struct work w = work();
	atomic_int go = 0;

	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	IS(cuMemsetD8_v2(w.p, 1, 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemsetD8_v2(w.p, 1, 1));
	OK(cuLaunchHostFunc(w.s, let, &go));
	OK(cuMemsetD8Async(w.p, 1, 1, w.s));
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	atomic_store(&go, 1);
	IS(cuStreamSynchronize(w.s), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuStreamSynchronize(w.s));
	OK(cuCtxSynchronize());
	OK(cuEventRecord(w.e, w.s));	/* nor is a later event of it */
	OK(cuEventQuery(w.e));
	OK(cuEventSynchronize(w.e));
	OK(cuCtxDestroy_v2(w.ctx));
	end(ctx);
}

struct left {
	struct work w;
	void *to;
	atomic_int go;
};

/* A copy behind the gate, in the default stream of a thread that ends */
static void *copy_and_end(void *arg)
{
	struct left *l = arg;

	OK(cuCtxSetCurrent(l->w.ctx));
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, let, &l->go));
	OK(cuMemcpyDtoHAsync_v2(l->to, l->w.p, 1, CU_STREAM_PER_THREAD));
	return NULL;
}

static void open_gate(struct left *l)
{
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	atomic_store(&l->go, 1);
}

/* It is told, too, where the stream is gone by then: by its context */
static void t_host_error_left(void)
{
	CUcontext ctx = start(&one);
	struct left l = { .w = work() };
	pthread_t thread;

	OK(cuMemAllocHost_v2(&l.to, 4096));
	OK(cuLaunchHostFunc(l.w.s, let, &l.go));
	OK(cuMemcpyDtoHAsync_v2(l.to, l.w.p, 1, l.w.s));
	OK(cuStreamDestroy_v2(l.w.s));
	open_gate(&l);
	IS(cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuCtxSynchronize());
	/* Nobody has asked for it when the stream goes */
	atomic_store(&l.go, 0);
	OK(cuStreamCreate(&l.w.s, 0));
	OK(cuLaunchHostFunc(l.w.s, let, &l.go));
	OK(cuMemcpyDtoHAsync_v2(l.to, l.w.p, 1, l.w.s));
	OK(cuEventRecord(l.w.e, l.w.s));
	open_gate(&l);
	IS(cuEventSynchronize(l.w.e), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuStreamDestroy_v2(l.w.s));
	IS(cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuCtxSynchronize());
	/* With its thread */
	atomic_store(&l.go, 0);
	CHECK(!pthread_create(&thread, NULL, copy_and_end, &l));
	pthread_join(thread, NULL);
	open_gate(&l);
	IS(cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy_v2(l.w.ctx));
	end(ctx);
}

static void t_reset(void)
{
	CUcontext ctx = start(&one), next;
	CUdeviceptr p, q;
	CUstream s;
	char b = 1;
	int fd;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, 0));
	fake_reset(0);
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* From here on the context only says so */
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemAlloc_v2(&q, 4096), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemFree_v2(p), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuStreamSynchronize(s), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	/* A new one works, next to the old one's remains */
	OK(cuCtxCreate_v2(&next, 0, 0));
	OK(cuMemAlloc_v2(&q, 4096));
	OK(cuMemsetD8_v2(q, 3, 4096));
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	CHECK(b == 3);
	IS(cuMemcpyDtoD_v2(q, p, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(EXPORT(&fd, p, 4096), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	OK(cuCtxDestroy_v2(ctx));
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	OK(cuCtxDestroy_v2(next));
	OK(cuCtxPopCurrent_v2(NULL));	/* the old one, destroyed */
	CHECK(fake_files() == 0 && fake_handles() == 0);
}

/* Nobody noticed the reset before the next context was made */
static void t_reset_unnoticed(void)
{
	CUcontext ctx = start(&one), next;
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, 4096));
	fake_reset(0);
	OK(cuCtxCreate_v2(&next, 0, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8_v2(p, 1, 4096));
	OK(cuCtxDestroy_v2(next));
	IS(cuMemAlloc_v2(&p, 4096), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(ctx);
}

static void t_reset_under_work(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	CUevent e;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, 0));
	OK(cuEventCreate(&e, 0));
	OK(cuMemsetD8Async(p, 1, 4096, s));
	OK(cuEventRecord(e, s));
	fake_reset(0);
	IS(cuStreamSynchronize(s), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuEventSynchronize(e), CUDA_ERROR_DEVICE_UNAVAILABLE);
	end(ctx);
}

static void t_reset_primary(void)
{
	CUcontext a, b;
	CUdeviceptr p;

	fake_setup(&one);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuCtxSetCurrent(a));
	OK(cuMemAlloc_v2(&p, 4096));
	fake_reset(0);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	CHECK(fake_handles() == 0);
	OK(cuCtxSetCurrent(b));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8_v2(p, 1, 1));
	OK(cuCtxSetCurrent(NULL));
	for (int i = 0; i < 3; i++)
		OK(cuDevicePrimaryCtxRelease_v2(0));
	IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	CHECK(fake_files() == 0);
}

static void t_removed(void)
{
	CUcontext ctx = start(&one), next;
	CUevent first, last;
	CUdeviceptr p;
	size_t a, b;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	OK(cuEventRecord(first, NULL));
	fake_remove(0);
	IS(cuEventRecord(last, NULL), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemGetInfo_v2(&a, &b), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuCtxCreate_v2(&next, 0, 0), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxDestroy_v2(ctx));
	CHECK(fake_files() == 0);
}

static void t_fork(void)
{
	struct fake_config cfg = one;
	CUcontext ctx, c;
	CUdeviceptr p;
	int n, status;
	pid_t pid;
	char b = 0;

	cfg.coherent = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8_v2(p, 5, 4096));
	pid = fork();
	if (!pid) {
		failed = false;
		IS(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuMemFree_v2(p), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuCtxDestroy_v2(ctx), CUDA_ERROR_NOT_INITIALIZED);
		IS(cuCtxGetCurrent(&c), CUDA_ERROR_NOT_INITIALIZED);
		_exit(failed);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	pid = fork();
	if (!pid) {
		/* The memory is not the child's */
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)(uintptr_t)p);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 5);
	end(ctx);
}

/* ---- every call of the kernel fails once ---- */

/* All that a program does; returns how many calls of ours failed */
static unsigned int errors_seen;

static CUresult note(CUresult err)
{
	errors_seen += err != CUDA_SUCCESS && err != CUDA_ERROR_NOT_READY;
	return err;
}

static void program(void)
{
	static unsigned char in[65536], out[65536];
	CUcontext ctx = NULL, primary = NULL;
	CUstream s = NULL;
	CUevent e = NULL;
	CUdeviceptr p = 0, q = 0, r = 0;
	uint64_t diff;
	size_t n, m;
	void *h = NULL;
	uint32_t crc;
	int fd = -1;

	if (note(cuInit(0)))
		return;
	if (note(cuDevicePrimaryCtxRetain(&primary, 0)))
		return;
	note(cuCtxSetCurrent(primary));
	if (!note(cuCtxCreate_v2(&ctx, 0, 0))) {
		note(cuMemGetInfo_v2(&n, &m));
		if (note(cuMemAlloc_v2(&p, 2 * MiB)))
			p = 0;
		if (note(cuMemAlloc_v2(&q, 65536)))
			q = 0;
		if (note(cuMemAlloc_v2(&r, 65536)))
			r = 0;
		note(cuMemAllocHost_v2(&h, 65536));
		note(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
		note(cuEventCreate(&e, 0));
		if (p && q && r) {
			note(cuMemcpyHtoD_v2(p, in, sizeof(in)));
			note(cuMemcpyDtoD_v2(q, p, sizeof(in)));
			note(cuMemcpyDtoH_v2(out, q, sizeof(in)));
			note(cuMemsetD32Async(r, 1, 100, s));
			note(cuMemcpyDtoHAsync_v2(h, r, 100, s));
			note(cuEventRecord(e, s));
			note(cuStreamWaitEvent(NULL, e, 0));
			note(cuMemsetD8Async(r, 1, 100, NULL));
			note(cuEventSynchronize(e));
			note(cuStreamSynchronize(s));
			note(plnMemCrc32c(p, 65536, &crc));
			note(plnMemCompare(p, q, 65536, &diff));
			note(plnMemAdd(p, q, 65536, PLN_DTYPE_INT32));
			if (!note(EXPORT(&fd, p, MiB)))
				close(fd);
			note(cuCtxSynchronize());
		}
		if (q)
			note(cuMemFree_v2(q));
		if (h)
			note(cuMemFreeHost(h));
		note(cuStreamDestroy_v2(s));
		note(cuEventDestroy_v2(e));
		note(cuCtxDestroy_v2(ctx));
	}
	note(cuCtxSetCurrent(NULL));
	note(cuDevicePrimaryCtxRelease_v2(0));
}

/* The @nth call of a kind fails with @error: is it told, is all well after? */
static void sweep_one(enum fake_call call, unsigned int nth, int error,
		      bool coherent)
{
	struct fake_config cfg = one;
	unsigned int before;

	cfg.coherent = coherent;
	fake_setup(&cfg);
	fake_fail(call, nth, error);
	errors_seen = 0;
	program();
	before = errors_seen;
	if (fake_calls(call) < nth) {
		CHECK(before == 0);
		_exit(failed ? 1 : 9);		/* past the last call */
	}
	fake_fail(call, 0, 0);
	/*
	 * No program learns of a signal.  A failed free is in the log only, the call
	 * has done its part; the search for devices goes on behind one that cannot be
	 * opened; and a copy goes on with less when there is no memory.
	 */
	if (error == EINTR)
		CHECK(before == 0 && fake_leaks() == 0);
	else if (call != FAKE_FREE && call != FAKE_QUERY &&
	    (call != FAKE_SUBMIT || error != ENOMEM) &&
	    (call != FAKE_OPEN || nth == 1 || nth > DRV_MAX_DEVICES))
		CHECK(before > 0);
	CHECK(fake_files() == 0 && fake_jobs() == 0 && fake_handles() == 0);
	if (call != FAKE_FREE && call != FAKE_WAIT)
		CHECK(fake_leaks() == 0);
	errors_seen = 0;
	program();
	CHECK(errors_seen == 0);
	CHECK(fake_files() == 0);
}

static enum fake_call sweep_call;
static unsigned int sweep_nth;
static int sweep_errno;
static bool sweep_coherent;

static void sweep_child(void)
{
	sweep_one(sweep_call, sweep_nth, sweep_errno, sweep_coherent);
}

static void sweep(enum fake_call call, const char *name, int error,
		  bool coherent)
{
	unsigned int nth;
	int status = 0;

	sweep_call = call;
	sweep_errno = error;
	sweep_coherent = coherent;
	for (nth = 1; nth < 200; nth++) {
		/* The search for devices is the same 32 times */
		if (call == FAKE_OPEN && nth == 3)
			nth = DRV_MAX_DEVICES;
		sweep_nth = nth;
		status = in_child(sweep_child);
		if (status)
			break;
	}
	ktap(status == 9 && nth > 1, "%s fails (%s) at each of %u calls, %s",
	     name, strerrorname_np(error), nth - 1,
	     coherent ? "coherent" : "not coherent");
}

/* ---- threads ---- */

static CUcontext shared_ctx;

static void *worker(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	unsigned char in[3000], out[3000];
	CUdeviceptr p;
	CUstream s;
	CUevent e;

	OK(cuCtxSetCurrent(shared_ctx));
	pattern(in, sizeof(in), seed);
	for (unsigned int i = 0; i < 60; i++) {
		size_t n = 1 + (seed * 31 + i * 577) % sizeof(in);

		OK(cuStreamCreate(&s, i & 1));
		OK(cuEventCreate(&e, 0));
		OK(cuMemAlloc_v2(&p, i % 10 ? n : MiB + n));
		OK(cuMemcpyHtoDAsync_v2(p, in, n, s));
		OK(cuEventRecord(e, s));
		OK(cuStreamWaitEvent(NULL, e, 0));
		OK(cuMemcpyDtoH_v2(out, p, n));
		CHECK(!memcmp(in, out, n));
		OK(cuMemFree_v2(p));
		OK(cuEventDestroy_v2(e));
		OK(cuStreamDestroy_v2(s));
	}
	return NULL;
}

static void t_threads(void)
{
	pthread_t t[8];

	shared_ctx = start(&one);
	for (uintptr_t i = 0; i < 8; i++)
		CHECK(!pthread_create(&t[i], NULL, worker, (void *)i));
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	end(shared_ctx);
}

/* What several threads share, and each of them does with it at the same time */
static struct {
	CUstream s;
	CUevent e, ipc;
	CUmemoryPool pool;
	CUmemGenericAllocationHandle mem;
	CUdeviceptr p, far, managed;
	CUcontext peer;			/* of the second GPU, which has @far */
	pthread_barrier_t together;
	atomic_uint released;
} common;

static void use_common(unsigned int what)
{
	CUmemAccessDesc peer = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	CUmemAccess_flags access;
	cuuint64_t n = 1 << 20;
	unsigned int flags;
	int on = 1, active;
	CUdeviceptr q;
	CUcontext ctx;
	float ms;

	switch (what) {
	case 0:
		OK(cuMemPoolSetAccess(common.pool, &peer, 1));
		OK(cuMemPoolGetAccess(&access, common.pool, &here));
		break;
	case 1:
		for (int i = 0; i < 100; i++) {
			OK(cuMemPoolSetAttribute(common.pool,
						 CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
						 &n));
			OK(cuCtxSynchronize());	/* which asks for it */
		}
		OK(cuMemPoolGetAttribute(common.pool,
					 CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &n));
		OK(cuMemPoolTrimTo(common.pool, 0));
		break;
	case 2:
		OK(cuMemAllocFromPoolAsync(&q, 5000, common.pool, common.s));
		OK(cuMemsetD8Async(q, 1, 5000, common.s));
		OK(cuMemFreeAsync(q, common.s));
		break;
	case 3:
		OK(cuEventRecord(common.e, common.s));
		OK(cuStreamWaitEvent(NULL, common.e, 0));
		OK(cuEventSynchronize(common.e));
		OK(cuEventElapsedTime(&ms, common.e, common.e));
		break;
	case 4:
		OK(cuEventRecord(common.ipc, common.s));
		OK(cuStreamWaitEvent(NULL, common.ipc, 0));
		OK(cuEventSynchronize(common.ipc));
		break;
	case 5:
		OK(cuMemsetD8Async(common.p, 1, 1 << 20, common.s));
		OK(cuStreamSynchronize(common.s));
		CHECK(cuStreamQuery(common.s) != CUDA_ERROR_INVALID_HANDLE);
		break;
	case 6:
		/* Off again, here and below: the copies are to be asynchronous */
		for (on = 1; on >= 0; on--) {
			OK(cuPointerSetAttribute(&on,
						 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
						 common.p));
			OK(cuPointerGetAttribute(&active,
						 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
						 common.p));
		}
		break;
	case 7:
		OK(cuCtxSetFlags(CU_CTX_SYNC_MEMOPS));
		OK(cuCtxGetFlags(&flags));
		OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
		OK(cuCtxGetLimit(&(size_t){ 0 }, CU_LIMIT_STACK_SIZE));
		OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE));
		OK(cuCtxGetCacheConfig(&(CUfunc_cache){ 0 }));
		OK(cuCtxSetFlags(0));
		break;
	case 8:
		OK(cuDevicePrimaryCtxRetain(&ctx, 0));
		OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
		OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
		OK(cuDevicePrimaryCtxRelease_v2(0));
		break;
	case 9:
		OK(cuMemPrefetchAsync_v2(common.managed, 9000, here, 0,
					 common.s));
		OK(cuMemAdvise_v2(common.managed, 9000,
				  CU_MEM_ADVISE_SET_READ_MOSTLY, here));
		OK(cuMemRangeGetAttribute(&on, sizeof(on),
					  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
					  common.managed, 9000));
		break;
	case 10:
		OK(cuMemAlloc_v2(&q, 700));
		OK(cuMemcpyDtoDAsync_v2(q, common.p, 700, NULL));
		OK(cuMemFree_v2(q));
		break;
	case 11:
		for (int i = 0; i < 8; i++) {
			on = i % 2 ? cuCtxDisablePeerAccess(common.peer) :
				     cuCtxEnablePeerAccess(common.peer, 0);
			CHECK(!on || on == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ||
			      on == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
			OK(cuMemcpyDtoDAsync_v2(common.p, common.far, 700,
						common.s));
		}
		break;
	default:
		CHECK(cuCtxEnablePeerAccess(shared_ctx, 0) != CUDA_SUCCESS);
		OK(cuCtxSynchronize());
	}
}

#define USES	13

static void *sharer(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg;

	OK(cuCtxSetCurrent(shared_ctx));
	for (unsigned int i = 0; i < 8 * USES; i++) {
		pthread_barrier_wait(&common.together);
		/* Each thing by all at once, then each next to others */
		use_common((i < 4 * USES ? i : i + n * (i / USES)) % USES);
	}
	return NULL;
}

static void t_shared(void)
{
	struct fake_config cfg = one;
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.maxSize = 512 * MiB,
	};
	pthread_t t[4];

	cfg.gpus = 2;
	cfg.coherent = true;
	shared_ctx = start(&cfg);
	OK(cuStreamCreate(&common.s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&common.e, 0));
	OK(cuEventCreate(&common.ipc,
			 CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuMemPoolCreate(&common.pool, &props));
	OK(cuCtxCreate_v2(&common.peer, 0, 1));
	OK(cuMemAlloc_v2(&common.far, 4096));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuMemAlloc_v2(&common.p, 2 * MiB));
	OK(cuMemAllocManaged(&common.managed, 9000, CU_MEM_ATTACH_GLOBAL));
	yield_every = 3;	/* now before a lock, now after one */
	pthread_barrier_init(&common.together, NULL, 4);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, sharer, (void *)i));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	OK(cuMemPoolDestroy(common.pool));
	OK(cuCtxDestroy_v2(common.peer));
	end(shared_ctx);
}

/* What others do with a pool between any two steps of an allocation in it */
static unsigned int meetings;
static CUdeviceptr taken[16];

static bool meet(const pthread_mutex_t *lock)
{
	return lock == &drv.lock && common.pool->reserved &&
	       meetings < sizeof(taken) / sizeof(taken[0]);
}

static void trim(const pthread_mutex_t *lock)
{
	if (!meet(lock))
		return;
	meetings++;
	OK(cuMemPoolTrimTo(common.pool, 0));
}

static void take(const pthread_mutex_t *lock)
{
	if (meet(lock))
		OK(cuMemAllocFromPoolAsync(&taken[meetings++], 2 * MiB,
					   common.pool, common.s));
}

/* Neither takes away the memory that the allocation has asked the kernel for */
static void allocate_among(void (*others)(const pthread_mutex_t *lock))
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUcontext ctx = start(&one);
	CUdeviceptr p;

	OK(cuStreamCreate(&common.s, CU_STREAM_NON_BLOCKING));
	OK(cuMemPoolCreate(&common.pool, &props));
	after_unlock = others;
	OK(cuMemAllocFromPoolAsync(&p, 2 * MiB, common.pool, common.s));
	after_unlock = NULL;
	CHECK(meetings);
	if (failed)
		return;
	OK(cuMemsetD8_v2(p, 1, 2 * MiB));
	OK(cuMemFree_v2(p));
	for (unsigned int i = 0; i < meetings && taken[i]; i++)
		OK(cuMemFree_v2(taken[i]));
	OK(cuMemPoolDestroy(common.pool));
	end(ctx);
}

static void t_trimmed(void)
{
	allocate_among(trim);
}

static void t_taken(void)
{
	allocate_among(take);
}

/* The step, of an allocation in a pool for one of that size, at which another comes */
static unsigned int steps_to_go;
static CUresult others_result;

static void fill_up(const pthread_mutex_t *lock)
{
	if (lock != &drv.lock || !steps_to_go || --steps_to_go)
		return;
	others_result = cuMemAllocFromPoolAsync(&taken[0], 2 * MiB, common.pool,
						common.s);
}

/* One of the two has the memory, whichever step the other comes at */
static void t_filled(void)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.maxSize = 2 * MiB,
	};
	CUcontext ctx = start(&one);
	unsigned int lost = 0;
	CUdeviceptr p;
	CUresult err;

	OK(cuStreamCreate(&common.s, CU_STREAM_NON_BLOCKING));
	OK(cuMemPoolCreate(&common.pool, &props));
	for (unsigned int step = 1;; step++) {
		steps_to_go = step;
		after_unlock = fill_up;
		err = cuMemAllocFromPoolAsync(&p, 2 * MiB, common.pool, common.s);
		after_unlock = NULL;
		if (steps_to_go)
			break;
		CHECK(common.pool->reserved == 2 * MiB);
		IS(err ? others_result : err, CUDA_SUCCESS);
		IS(err ? err : others_result, CUDA_ERROR_OUT_OF_MEMORY);
		if (failed)
			return;
		lost += !!err;
		OK(cuMemFree_v2(err ? taken[0] : p));
		OK(cuMemPoolTrimTo(common.pool, 0));
	}
	CHECK(lost);
	OK(err);
	OK(cuMemFree_v2(p));
	OK(cuMemPoolDestroy(common.pool));
	end(ctx);
}

/* One handle, given back by all at once: once */
static void *releaser(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++) {
		pthread_barrier_wait(&common.together);
		if (!cuMemRelease(common.mem))
			atomic_fetch_add(&common.released, 1);
		pthread_barrier_wait(&common.together);
		pthread_barrier_wait(&common.together);
	}
	return NULL;
}

static void t_release(void)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUcontext ctx = start(&one);
	pthread_t t[3];

	yield_every = 1;
	pthread_barrier_init(&common.together, NULL, 4);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, releaser, NULL));
	for (int i = 0; i < 50; i++) {
		OK(cuMemCreate(&common.mem, 2 * MiB, &prop, 0));
		atomic_store(&common.released, 0);
		pthread_barrier_wait(&common.together);
		pthread_barrier_wait(&common.together);
		CHECK(atomic_load(&common.released) == 1);
		pthread_barrier_wait(&common.together);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	end(ctx);
}

/* Memory of another process: what one thread has opened, no other one closes */
static CUipcMemHandle opened;

static void *opener(void *arg)
{
	CUdeviceptr p;

	(void)arg;
	OK(cuCtxSetCurrent(shared_ctx));
	for (int i = 0; i < 300; i++) {
		OK(cuIpcOpenMemHandle_v2(&p, opened, 1));
		OK(cuMemsetD8_v2(p, 1, 8));
		OK(cuIpcCloseMemHandle(p));
	}
	return NULL;
}

static void t_open(void)
{
	struct keeper other;
	CUdeviceptr p, rest;
	pthread_t t[2];

	shared_ctx = start(&one);
	other = keep_memory(&p, &opened, 4, &rest);	/* two a thread */
	yield_every = 1;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, opener, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	let_go(&other);
	end(shared_ctx);
}

static const struct unit_test tests[] = {
	{ "engine errors", t_engine_error },
	{ "an error of the host", t_host_error },
	{ "an error of the host in a stream that is gone", t_host_error_left },
	{ "GPU reset", t_reset },
	{ "GPU reset that nobody noticed", t_reset_unnoticed },
	{ "GPU reset under work", t_reset_under_work },
	{ "GPU reset and the primary context", t_reset_primary },
	{ "GPU removed", t_removed },
	{ "fork", t_fork },
	{ "threads", t_threads },
	{ "threads that share what they use", t_shared },
	{ "an allocation in a pool that others trim", t_trimmed },
	{ "an allocation in a pool that others take from", t_taken },
	{ "an allocation in a pool that others fill", t_filled },
	{ "threads that give back the same handle", t_release },
	{ "threads that open and close the same memory", t_open },
};

int main(int argc, char **argv)
{
	unit_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
	if (argc > 1 && strcmp(argv[1], "sweep"))
		return ktap_end();
	for (int coherent = 0; coherent < 2; coherent++) {
		sweep(FAKE_OPEN, "open", ENOENT, coherent);
		sweep(FAKE_QUERY, "query", EIO, coherent);
		sweep(FAKE_ALLOC, "alloc", ENOMEM, coherent);
		sweep(FAKE_ALLOC, "alloc", EIO, coherent);
		sweep(FAKE_FREE, "free", EIO, coherent);
		sweep(FAKE_EXPORT, "export", EMFILE, coherent);
		sweep(FAKE_SUBMIT, "submit", EFAULT, coherent);
		sweep(FAKE_SUBMIT, "submit", EIO, coherent);
		sweep(FAKE_SUBMIT, "submit", ENOMEM, coherent);
		sweep(FAKE_WAIT, "wait", EIO, coherent);
		sweep(FAKE_MMAP, "mmap", ENOMEM, coherent);
		sweep(FAKE_QUERY, "query", EINTR, coherent);
		sweep(FAKE_ALLOC, "alloc", EINTR, coherent);
		sweep(FAKE_FREE, "free", EINTR, coherent);
		sweep(FAKE_EXPORT, "export", EINTR, coherent);
		sweep(FAKE_SUBMIT, "submit", EINTR, coherent);
		sweep(FAKE_WAIT, "wait", EINTR, coherent);
	}
	return ktap_end();
}
