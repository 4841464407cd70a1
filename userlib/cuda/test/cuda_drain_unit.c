// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: who waits for all of it, and for what.
 * Each test runs in a process of its own.
 */
#include <sys/mman.h>
#include <time.h>

#include "unit.h"

/*
 * The clock of the library, which the linker leads here: so much later at each
 * look.
 */
static atomic_ullong clock_step, clock_now;
static __thread bool is_caller;
static atomic_int looks;		/* of such a thread: it begins to wait, or does */

uint64_t __real_drv_now(void);
uint64_t __wrap_drv_now(void);

uint64_t __wrap_drv_now(void)
{
	uint64_t step = atomic_load(&clock_step);

	if (is_caller)
		atomic_fetch_add(&looks, 1);
	return step ? atomic_fetch_add(&clock_now, step) + step :
		      __real_drv_now();
}

/* ---- functions of the program ---- */

static atomic_int ran;

/* So slow that whoever does not wait for it is seen */
static void slow(void *arg)
{
	struct timespec nap = { 0, 200000000 };

	nanosleep(&nap, NULL);
	if (arg)
		*(volatile unsigned char *)arg = 0x77;
	atomic_store(&ran, 1);
}

static void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Until it is let go, or half a minute is over */
static void stuck(void *arg)
{
	for (int i = 0; i < 3000 && !atomic_load((atomic_int *)arg); i++)
		nap(10);
}

static struct fake_config manual(unsigned int gpus)
{
	struct fake_config cfg = one;

	cfg.gpus = gpus;
	cfg.manual = true;
	return cfg;
}

static void t_sync_function(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	CUstream nb, b;

	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, 0));
	OK(cuLaunchHostFunc(nb, slow, NULL));
	OK(cuCtxSynchronize());
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuLaunchHostFunc(b, slow, NULL));
	OK(cuCtxSynchronize_v2(ctx));
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuLaunchHostFunc(NULL, slow, NULL));
	OK(cuCtxSynchronize());
	CHECK(atomic_exchange(&ran, 0) == 1);
	/* The stream may be gone by then */
	OK(cuLaunchHostFunc(nb, slow, NULL));
	OK(cuStreamDestroy_v2(nb));
	CHECK(atomic_load(&ran) == 0);
	OK(cuCtxSynchronize());
	CHECK(atomic_exchange(&ran, 0) == 1);
	end(ctx);
}

static void t_destroy_function(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, slow, NULL));
	end(ctx);
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	OK(cuLaunchHostFunc(NULL, slow, NULL));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuCtxSetCurrent(NULL));
	CHECK(!fake_files());
}

/* The function uses the memory */
static void t_free_function(void)
{
	struct fake_config cfg = manual(1);
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUcontext ctx = start(&cfg);
	CUdeviceptr p;
	CUstream s;
	void *m;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuLaunchHostFunc(s, slow, m));
	OK(cuMemFreeHost(m));
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuLaunchHostFunc(s, slow, NULL));
	OK(cuMemFree_v2(p));
	CHECK(atomic_exchange(&ran, 0) == 1);
	/* Of no context: of every one on its device */
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MiB, 0, h, 0));
	OK(cuLaunchHostFunc(s, slow, NULL));
	OK(cuMemUnmap(p, 2 * MiB));
	CHECK(atomic_exchange(&ran, 0) == 1);
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MiB));
	end(ctx);
}

/* ---- two GPUs ---- */

struct pair {
	CUcontext ctx[2];		/* the second one is current */
	CUstream s[2];
	CUevent e;			/* of the first one */
	CUdeviceptr p[2];
	unsigned char *h;		/* made in the first one */
};

static struct pair pair(bool coherent)
{
	struct fake_config cfg = manual(2);
	struct pair t;
	void *m;

	cfg.coherent = coherent;
	start(&cfg);
	OK(cuCtxGetCurrent(&t.ctx[0]));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuEventCreate(&t.e, 0));
	for (int i = 0; i < 2; i++) {
		if (i)
			OK(cuCtxCreate_v2(&t.ctx[1], 0, 1));
		OK(cuStreamCreate(&t.s[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc_v2(&t.p[i], 4096));
		OK(cuMemsetD8_v2(t.p[i], 0x11, 4096));
	}
	t.h = memset(m, 0x33, 4096);
	return t;
}

static void pair_end(struct pair *t)
{
	OK(cuCtxDestroy_v2(t->ctx[1]));
	end(t->ctx[0]);
}

/* An event of another GPU that a stream waits for, and nothing behind it */
static void t_awaited_event(void)
{
	struct pair t = pair(false);

	OK(cuMemsetD8Async(t.p[0], 1, 4096, t.s[0]));
	OK(cuEventRecord(t.e, t.s[0]));
	OK(cuStreamWaitEvent(t.s[1], t.e, 0));
	IS(cuEventQuery(t.e), CUDA_ERROR_NOT_READY);
	OK(cuCtxSynchronize());
	OK(cuEventQuery(t.e));
	/* The waiting stream may be gone by then */
	OK(cuMemsetD8Async(t.p[0], 1, 4096, t.s[0]));
	OK(cuEventRecord(t.e, t.s[0]));
	OK(cuStreamWaitEvent(t.s[1], t.e, 0));
	OK(cuStreamDestroy_v2(t.s[1]));
	IS(cuEventQuery(t.e), CUDA_ERROR_NOT_READY);
	OK(cuCtxSynchronize());
	OK(cuEventQuery(t.e));
	/* So does the end of the context */
	OK(cuMemsetD8Async(t.p[0], 1, 4096, t.s[0]));
	OK(cuEventRecord(t.e, t.s[0]));
	OK(cuStreamWaitEvent(NULL, t.e, 0));
	OK(cuCtxDestroy_v2(t.ctx[1]));
	OK(cuEventQuery(t.e));
	end(t.ctx[0]);
}

/* Page-locked memory is that of every GPU's engine */
static void t_free_pinned(void)
{
	struct pair t = pair(false);
	unsigned char out[4096];

	OK(cuMemcpyHtoDAsync_v2(t.p[1], t.h, 4096, t.s[1]));
	OK(cuMemFreeHost(t.h));
	CHECK(fake_jobs() == 0);
	OK(cuMemcpyDtoH_v2(out, t.p[1], 4096));
	CHECK(out[0] == 0x33 && out[4095] == 0x33);
	pair_end(&t);
}

/* And ends with the context that it was made in */
static void t_destroy_pinned(void)
{
	struct pair t = pair(false);
	unsigned char out[4096];

	OK(cuMemcpyHtoDAsync_v2(t.p[1], t.h, 4096, t.s[1]));
	OK(cuCtxDestroy_v2(t.ctx[0]));
	OK(cuMemcpyDtoH_v2(out, t.p[1], 4096));
	CHECK(out[0] == 0x33 && out[4095] == 0x33);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	OK(cuCtxPopCurrent_v2(NULL));		/* the first one lay below */
	CHECK(!fake_files() && !fake_handles() && !fake_leaks());
}

/* With peer access, memory of one GPU is that of the other one's engine */
static void t_free_peer(void)
{
	struct pair t = pair(true);
	unsigned char out[4096];

	OK(cuCtxEnablePeerAccess(t.ctx[0], 0));
	OK(cuMemsetD8_v2(t.p[0], 0x44, 4096));
	OK(cuMemcpyDtoDAsync_v2(t.p[1], t.p[0], 4096, t.s[1]));
	OK(cuMemFree_v2(t.p[0]));
	CHECK(fake_jobs() == 0);
	OK(cuMemcpyDtoH_v2(out, t.p[1], 4096));
	CHECK(out[0] == 0x44 && out[4095] == 0x44);
	pair_end(&t);
}

/*
 * Of a GPU whose last context was given up, too: the copy still goes into a block that
 * has other memory, and would go into what is there next.
 */
static void t_free_stuck(void)
{
	struct pair t = pair(true);
	unsigned char out[4096];
	CUdeviceptr p;
	void *m;

	alarm(60);
	OK(cuCtxEnablePeerAccess(t.ctx[0], 0));
	OK(cuMemsetD8_v2(t.p[1], 0x44, 4096));
	fake_stick(true);
	OK(cuMemcpyDtoDAsync_v2(t.p[0], t.p[1], 4096, t.s[1]));
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	OK(cuCtxSetCurrent(t.ctx[0]));
	OK(cuMemAllocHost_v2(&m, 4096));
	IS(cuMemFree_v2(t.p[0]), CUDA_ERROR_LAUNCH_TIMEOUT);
	IS(cuMemFreeHost(m), CUDA_ERROR_LAUNCH_TIMEOUT);
	atomic_store(&clock_step, 0);
	CHECK(fake_jobs() == 1);
	fake_stick(false);
	OK(cuMemFree_v2(t.p[0]));
	CHECK(fake_jobs() == 0);
	OK(cuMemAlloc_v2(&p, 4096));
	CHECK(p == t.p[0]);
	OK(cuMemsetD8_v2(p, 0x55, 4096));
	OK(cuMemcpyDtoH_v2(out, p, 4096));
	CHECK(out[0] == 0x55 && out[4095] == 0x55);
	OK(cuMemFreeHost(m));
	end(t.ctx[0]);
}

/* Memory of a pool, too: who frees it in a stream does not wait, and nobody gets it yet */
static void t_free_async_stuck(void)
{
	CUmemAccessDesc both = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	struct pair t = pair(true);
	unsigned char out[4096];
	CUdeviceptr p, q, again;
	CUmemoryPool pool;

	alarm(60);
	OK(cuCtxSetCurrent(t.ctx[0]));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAccess(pool, &both, 1));
	OK(cuMemAllocAsync(&p, 4096, t.s[0]));
	OK(cuStreamSynchronize(t.s[0]));
	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuMemsetD8_v2(t.p[1], 0x44, 4096));
	fake_stick(true);
	OK(cuMemcpyDtoDAsync_v2(p, t.p[1], 4096, t.s[1]));
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	atomic_store(&clock_step, 0);
	OK(cuCtxSetCurrent(t.ctx[0]));
	OK(cuMemFreeAsync(p, t.s[0]));
	IS(cuMemFreeAsync(p, t.s[0]), INVALID);
	/* The same stream, another one, and a context that is asked */
	OK(cuMemAllocAsync(&q, 4096, t.s[0]));
	CHECK(q != p);
	OK(cuMemFreeAsync(q, t.s[0]));
	OK(cuMemAllocAsync(&again, 4096, NULL));
	CHECK(again != p);
	OK(cuStreamQuery(t.s[0]));
	OK(cuStreamQuery(NULL));
	CHECK(fake_jobs() == 1);
	fake_stick(false);
	OK(cuCtxSynchronize());
	OK(cuMemsetD8_v2(again, 0x55, 4096));
	OK(cuMemcpyDtoH_v2(out, again, 4096));
	CHECK(out[0] == 0x55 && out[4095] == 0x55);
	OK(cuMemFree_v2(again));
	OK(cuMemFree_v2(t.p[0]));	/* waits for the copy */
	/* All that the copy held is given back */
	OK(cuMemPoolTrimTo(pool, 0));
	/* A thread still looks at the other GPU's work for a moment */
	for (int i = 0; i < 3000 && fake_files() != 1; i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	end(t.ctx[0]);
}

/* Memory of a pool is freed at once, and is another one's when nothing uses it any more */
static void t_free_pool(void)
{
	CUcontext ctx = start(&one);
	atomic_int go = 0, use = 0;
	unsigned char b = 0;
	CUdeviceptr p, q, r;
	CUmemoryPool pool;
	CUstream s, t;

	alarm(60);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocAsync(&p, 4096, s));
	OK(cuMemAllocAsync(&r, 4096, s));
	OK(cuStreamSynchronize(s));
	/* Beside a function, and other work */
	OK(cuLaunchHostFunc(t, stuck, &go));
	OK(cuMemsetD8Async(r, 1, 4096, t));
	OK(cuMemFree_v2(p));
	IS(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
	IS(cuMemFree_v2(p), INVALID);
	OK(cuMemAllocAsync(&q, 4096, s));
	CHECK(q == p);
	OK(cuStreamSynchronize(s));
	/* While it is yet to be filled: nobody else gets it before */
	OK(cuLaunchHostFunc(s, stuck, &use));
	OK(cuMemsetD8Async(q, 0x11, 4096, s));
	OK(cuMemFree_v2(q));
	IS(cuMemFree_v2(q), INVALID);
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuMemAllocAsync(&p, 4096, NULL));
	CHECK(p != q);
	OK(cuMemsetD8_v2(p, 0x22, 4096));
	atomic_store(&use, 1);
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 0x22);
	IS(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
	atomic_store(&go, 1);
	OK(cuCtxSynchronize());
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(r));
	OK(cuMemPoolTrimTo(pool, 0));
	end(ctx);
}

/* ---- calls that wait ---- */

/* A call by a thread of its own */
struct call {
	CUresult (*fn)(const struct call *call);
	CUcontext ctx;
	CUdeviceptr ptr;
	const void *host;
	CUstream stream;
	pthread_t thread;
	atomic_bool returned;
};

static CUresult free_device(const struct call *call)
{
	return cuMemFree_v2(call->ptr);
}

static CUresult free_host(const struct call *call)
{
	return cuMemFreeHost((void *)(uintptr_t)call->ptr);
}

static CUresult unmap(const struct call *call)
{
	return cuMemUnmap(call->ptr, 2 * MiB);
}

static CUresult destroy(const struct call *call)
{
	return cuCtxDestroy_v2(call->ctx);
}

static CUresult sync_stream(const struct call *call)
{
	return cuStreamSynchronize(call->stream);
}

static void *call_run(void *arg)
{
	struct call *call = arg;

	OK(cuCtxSetCurrent(call->ctx));
	is_caller = true;
	OK(call->fn(call));
	is_caller = false;
	atomic_store(&call->returned, true);
	return NULL;
}

/* It must wait, until call_end() at least */
static void call_begin(struct call *call)
{
	atomic_store(&looks, 0);
	CHECK(!pthread_create(&call->thread, NULL, call_run, call));
	for (int i = 0; i < 3000 && !atomic_load(&looks) &&
	     !atomic_load(&call->returned); i++)
		nap(10);
	nap(100);			/* time to go wrong */
	CHECK(atomic_load(&looks) && !atomic_load(&call->returned));
}

static void call_end(struct call *call)
{
	CHECK(!pthread_join(call->thread, NULL));
}

/* With @file's submissions under way, in the driver or before it */
static void await_dispatcher(struct drv_file *file)
{
	bool busy = false;

	for (int i = 0; i < 3000 && !busy; i++) {
		nap(10);
		pthread_mutex_lock(&drv.order);
		busy = file->dispatching;
		pthread_mutex_unlock(&drv.order);
	}
	CHECK(busy);
}

static void await_held(void)
{
	for (int i = 0; i < 3000 && !fake_held(FAKE_SUBMIT); i++)
		nap(10);
	CHECK(fake_held(FAKE_SUBMIT) == 1);
}

/* Work that was pending, and that the driver has not taken yet, uses the memory */
static void t_free_submitted(void)
{
	struct fake_config cfg = manual(1);
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h;
	CUcontext ctx = start(&cfg);
	static atomic_int go;
	CUdeviceptr p, v;
	CUstream s;
	void *m;

	alarm(60);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&v, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(v, 2 * MiB, 0, h, 0));
	OK(cuMemSetAccess(v, 2 * MiB, &access, 1));
	struct call calls[] = {
		{ .fn = unmap, .ctx = ctx, .ptr = v },
		{ .fn = free_host, .ctx = ctx, .ptr = (uintptr_t)m },
		{ .fn = free_device, .ctx = ctx, .ptr = p },
	};
	for (int i = 0; i < 3; i++) {
		atomic_store(&go, 0);
		OK(cuLaunchHostFunc(s, stuck, &go));
		if (calls[i].fn == free_host)
			OK(cuMemcpyHtoDAsync_v2(p, m, 4096, s));
		else
			OK(cuMemsetD8Async(calls[i].ptr, 7, 4096, s));
		fake_hold(FAKE_SUBMIT, true);
		atomic_store(&go, 1);
		await_held();
		call_begin(&calls[i]);
		fake_hold(FAKE_SUBMIT, false);
		call_end(&calls[i]);
		CHECK(fake_jobs() == 0);
		OK(cuStreamSynchronize(s));
	}
	OK(cuMemAddressFree(v, 2 * MiB));
	OK(cuMemRelease(h));
	end(ctx);
}

/* So does work of another GPU; other memory is freed meanwhile */
static void t_free_submitted_far(void)
{
	struct pair t = pair(false);
	struct call call = {
		.fn = free_host, .ctx = t.ctx[0], .ptr = (uintptr_t)t.h,
	};
	unsigned char out[4096];
	static atomic_int go;
	void *m;

	alarm(60);
	OK(cuCtxSetCurrent(t.ctx[0]));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuLaunchHostFunc(t.s[1], stuck, &go));
	OK(cuMemcpyHtoDAsync_v2(t.p[1], t.h, 4096, t.s[1]));
	fake_hold(FAKE_SUBMIT, true);
	atomic_store(&go, 1);
	await_held();
	OK(cuMemFreeHost(m));
	call_begin(&call);
	fake_hold(FAKE_SUBMIT, false);
	call_end(&call);
	CHECK(fake_jobs() == 0);
	OK(cuMemcpyDtoH_v2(out, t.p[1], 4096));
	CHECK(out[0] == 0x33 && out[4095] == 0x33);
	pair_end(&t);
}

/* A context ends behind it, and does not take its memory away */
static void t_destroy_submitted(void)
{
	struct fake_config cfg = manual(1);
	struct call call = { .fn = destroy, .ctx = start(&cfg) };
	struct drv_file *file = call.ctx->file;
	static atomic_int go;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;

	alarm(60);
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, stuck, &go));
	OK(cuMemsetD8Async(p, 7, 4096, s));
	pthread_mutex_lock(&file->submit_lock);
	atomic_store(&go, 1);
	await_dispatcher(file);
	call_begin(&call);
	pthread_mutex_unlock(&file->submit_lock);
	call_end(&call);
	OK(cuStreamSynchronize(s));
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxPopCurrent_v2(NULL));		/* the first one lay below */
	CHECK(!fake_files() && !fake_handles() && !fake_leaks());
}

/* ---- what does not end ---- */

/*
 * An event of a process that has recorded it and will never end what is before
 * it: of the page of ipc.c the numbers, the latest recording and what is done.
 */
static _Atomic uint64_t *stuck_event(CUevent *e)
{
	CUipcEventHandle handle;
	_Atomic uint64_t *page;
	struct drv_name name;

	OK(cuEventCreate(e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuIpcGetEventHandle(&handle, *e));
	memcpy(&name, &handle, sizeof(name));
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, name.fd, 0);
	CHECK(page != MAP_FAILED);
	atomic_store(&page[1], 1);
	IS(cuEventQuery(*e), CUDA_ERROR_NOT_READY);
	return page;
}

/* Nothing that waits for it is at work in memory yet */
static void t_free_awaited(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	_Atomic uint64_t *page;
	CUdeviceptr p;
	CUstream s;
	CUevent e;
	void *m;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemAllocHost_v2(&m, 4096));
	page = stuck_event(&e);
	OK(cuStreamWaitEvent(s, e, 0));
	OK(cuStreamWaitEvent(NULL, e, 0));
	atomic_store(&clock_step, 121000000000ull);
	IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
	OK(cuMemFree_v2(p));
	OK(cuMemFreeHost(m));
	/* Of a stream that is gone, too */
	OK(cuStreamDestroy_v2(s));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemFree_v2(p));
	IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
	atomic_store(&clock_step, 0);
	atomic_store(&page[3], 1);
	OK(cuCtxSynchronize());
	munmap(page, 4096);
	end(ctx);
}

/* ---- time ---- */

/* Two minutes are for one job, and not for all that are in front of it */
static void t_progress(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	CUdeviceptr p;
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	for (int i = 0; i < 3; i++)
		OK(cuMemsetD8Async(p, 1, 4096, s));
	/* The first two end, and the third one only when asked twice */
	fake_fail(FAKE_WAIT, 3, ETIMEDOUT);
	atomic_store(&clock_step, 45000000000ull);
	OK(cuStreamSynchronize(s));
	/* A job that does not end is given up */
	OK(cuMemsetD8Async(p, 1, 4096, s));
	fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	atomic_store(&clock_step, 121000000000ull);
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_TIMEOUT);
	atomic_store(&clock_step, 0);
	OK(cuStreamSynchronize(s));
	end(ctx);
}

/* Two minutes are for one function, and not for what is in front of it */
static void t_functions(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	static atomic_int go;
	CUdeviceptr p;
	CUstream s[4];

	for (int i = 0; i < 4; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	for (int i = 0; i < 4; i++)
		OK(cuLaunchHostFunc(s[i], slow, NULL));
	atomic_store(&clock_step, 45000000000ull);
	OK(cuStreamSynchronize(s[3]));
	/* One that does not return is given up */
	OK(cuLaunchHostFunc(s[0], stuck, &go));
	atomic_store(&clock_step, 121000000000ull);
	IS(cuStreamSynchronize(s[0]), CUDA_ERROR_LAUNCH_TIMEOUT);
	/* Jobs in front have their own time, each of them */
	atomic_store(&go, 1);
	atomic_store(&clock_step, 0);
	OK(cuStreamSynchronize(s[0]));
	for (int i = 0; i < 3; i++)
		OK(cuMemsetD8Async(p, 1, 4096, s[0]));
	OK(cuLaunchHostFunc(s[0], slow, NULL));
	OK(cuStreamSynchronize(s[0]));
	CHECK(fake_jobs() == 0);
	end(ctx);
}

/* Who waits for a function is not woken up by what is submitted beside it */
static void t_wakes(void)
{
	struct fake_config cfg = manual(1);
	struct call call = { .fn = sync_stream, .ctx = start(&cfg) };
	static atomic_int go;
	CUdeviceptr p;
	uint64_t begin;
	CUstream s[2];
	int before;

	alarm(60);
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuLaunchHostFunc(s[0], stuck, &go));
	call.stream = s[0];
	call_begin(&call);
	begin = __real_drv_now();
	before = atomic_load(&looks);
	for (int i = 0; i < 50; i++) {
		OK(cuMemsetD8Async(p, 1, 1, s[1]));
		nap(2);
	}
	/* It looks for itself, too, once a second */
	CHECK((uint64_t)(atomic_load(&looks) - before) <
	      10 + (__real_drv_now() - begin) / 1000000000);
	atomic_store(&go, 1);
	call_end(&call);
	end(call.ctx);
}

/* What could not be freed is there, and is freed later */
static void t_free_again(void)
{
	struct fake_config cfg = manual(1);
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle h;
	unsigned long long id, now;
	CUcontext ctx = start(&cfg);
	CUdeviceptr p, q, v;
	CUstream s;
	void *m;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemAlloc_v2(&q, 4096));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&v, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(v, 2 * MiB, 0, h, 0));
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	OK(cuMemsetD8Async(p, 1, 4096, s));
	atomic_store(&clock_step, 121000000000ull);
	fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	IS(cuMemFree_v2(p), CUDA_ERROR_LAUNCH_TIMEOUT);
	fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	IS(cuMemFree_v2(q), CUDA_ERROR_LAUNCH_TIMEOUT);
	fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	IS(cuMemFreeHost(m), CUDA_ERROR_LAUNCH_TIMEOUT);
	fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	IS(cuMemUnmap(v, 2 * MiB), CUDA_ERROR_LAUNCH_TIMEOUT);
	atomic_store(&clock_step, 0);
	OK(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	CHECK(now == id);
	OK(cuMemFree_v2(p));
	IS(cuMemFree_v2(p), INVALID);
	OK(cuMemFree_v2(q));
	OK(cuMemFreeHost(m));
	OK(cuMemUnmap(v, 2 * MiB));
	OK(cuMemAddressFree(v, 2 * MiB));
	OK(cuMemRelease(h));
	CHECK(fake_handles() == 0);
	end(ctx);
}

/* Nor is it gone for others before its time has come */
static void t_unmap_known(void)
{
	struct fake_config cfg = manual(1);
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	struct call call;
	CUmemGenericAllocationHandle h;
	CUcontext ctx = start(&cfg);
	static atomic_int go;
	CUdeviceptr v, base;
	CUstream s[2];
	size_t size;

	alarm(60);
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&v, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(v, 2 * MiB, 0, h, 0));
	OK(cuMemSetAccess(v, 2 * MiB, &access, 1));
	OK(cuLaunchHostFunc(s[0], stuck, &go));
	call = (struct call){ .fn = unmap, .ctx = ctx, .ptr = v };
	call_begin(&call);
	OK(cuMemGetAddressRange_v2(&base, &size, v));
	CHECK(base == v && size == 2 * MiB);
	atomic_store(&go, 1);
	call_end(&call);
	IS(cuMemGetAddressRange_v2(&base, &size, v), CUDA_ERROR_NOT_FOUND);
	OK(cuMemUnmap(v, 2 * MiB));	/* nothing is there */
	OK(cuMemAddressFree(v, 2 * MiB));
	OK(cuMemRelease(h));
	end(ctx);
}

/*
 * Work of another context that is still to come when its memory's context has been given
 * up has no effect: the memory's number may be another one's by then.
 */
static void t_destroy_numbers(void)
{
	unsigned char out[4096] = { 0 };
	struct fake_config cfg = manual(1);
	CUcontext ctx[2] = { start(&cfg) };
	static atomic_int go;
	CUdeviceptr p, q;
	CUstream s;

	alarm(60);
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuCtxCreate_v2(&ctx[1], 0, 0));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, stuck, &go));
	OK(cuMemsetD8Async(p, 7, 4096, s));
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(ctx[0]));
	CHECK(!atomic_load(&go));
	atomic_store(&clock_step, 0);
	OK(cuMemAlloc_v2(&q, 2 * MiB));
	CHECK(fake_handles() == 1);		/* the number is used again */
	atomic_store(&go, 1);
	IS(cuStreamSynchronize(s), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuStreamSynchronize(s));		/* it goes on */
	OK(cuMemcpyDtoH_v2(out, q, 4096));
	CHECK(!out[0] && !out[4095]);
	OK(cuCtxDestroy_v2(ctx[1]));
	OK(cuCtxPopCurrent_v2(NULL));		/* the first one lay below */
	CHECK(!fake_files() && !fake_handles() && !fake_leaks());
}

static CUresult fill_cancelled(const struct call *call)
{
	IS(cuMemsetD8Async(call->ptr, 7, 4096, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	return CUDA_SUCCESS;
}

static CUresult copy_cancelled(const struct call *call)
{
	IS(cuMemcpyHtoDAsync_v2(call->ptr, call->host, 256 * KiB, NULL),
	   CUDA_ERROR_CONTEXT_IS_DESTROYED);
	return CUDA_SUCCESS;
}

/*
 * Nor has the rest of what the driver is being asked for: it has taken nothing yet,
 * because there is no room for so many jobs, or for so large a one.
 */
static void destroy_asked(int error, bool pending)
{
	unsigned char out[4096] = { 0 };
	struct fake_config cfg = manual(1);
	struct call call = {
		.fn = error == ENOMEM ? copy_cancelled : fill_cancelled,
	};
	static atomic_int go;
	CUcontext ctx[2];
	CUdeviceptr p, q, r;
	unsigned int n;
	CUstream s[2];
	void *m;

	alarm(60);
	cfg.memlock = error == ENOMEM ? 65536 : 0;
	ctx[0] = start(&cfg);
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuCtxCreate_v2(&ctx[1], 0, 0));
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&r, 2 * MiB));
	OK(cuMemAllocHost_v2(&m, 256 * KiB));
	memset(m, 7, 256 * KiB);
	if (pending) {
		OK(cuLaunchHostFunc(s[0], stuck, &go));
		OK(cuMemcpyHtoDAsync_v2(p, m, 256 * KiB, s[0]));
	}
	/* A job that ends makes room */
	if (error == EAGAIN)
		OK(cuMemsetD8Async(r, 0, 4096, s[1]));
	fake_hold(FAKE_SUBMIT, true);
	if (pending) {
		atomic_store(&go, 1);
	} else {
		call.ctx = ctx[1];
		call.ptr = p;
		call.host = m;
		call_begin(&call);
	}
	await_held();
	if (error == EAGAIN)
		fake_fail(FAKE_WAIT, 1, ETIMEDOUT);
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(ctx[0]));
	atomic_store(&clock_step, 0);
	CHECK(fake_jobs() == (error == EAGAIN));
	OK(cuMemAlloc_v2(&q, 2 * MiB));
	CHECK(fake_handles() == 2);		/* the number is used again */
	n = fake_calls(FAKE_SUBMIT);
	if (error == EAGAIN)
		fake_fail(FAKE_SUBMIT, 1, EAGAIN);
	fake_hold(FAKE_SUBMIT, false);
	if (pending)
		IS(cuStreamSynchronize(s[0]), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	else
		call_end(&call);
	CHECK(fake_calls(FAKE_SUBMIT) == n + 1);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(out, q, 4096));
	CHECK(!out[0] && !out[4095]);
	OK(cuCtxDestroy_v2(ctx[1]));
	OK(cuCtxPopCurrent_v2(NULL));		/* the first one lay below */
	CHECK(!fake_files() && !fake_handles() && !fake_leaks());
}

static void t_destroy_again(void)
{
	destroy_asked(EAGAIN, true);
}

static void t_destroy_again_now(void)
{
	destroy_asked(EAGAIN, false);
}

static void t_destroy_steps(void)
{
	destroy_asked(ENOMEM, true);
}

static void t_destroy_steps_now(void)
{
	destroy_asked(ENOMEM, false);
}

/* The same for what a thread of the library copies */
static void t_destroy_numbers_far(void)
{
	struct pair t = pair(false);
	unsigned char out[4096];
	static atomic_int go;

	alarm(60);
	OK(cuLaunchHostFunc(t.s[1], stuck, &go));
	OK(cuMemcpyPeerAsync(t.p[1], t.ctx[1], t.p[0], t.ctx[0], 4096, t.s[1]));
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(t.ctx[0]));
	atomic_store(&clock_step, 0);
	atomic_store(&go, 1);
	IS(cuStreamSynchronize(t.s[1]), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuMemcpyDtoH_v2(out, t.p[1], 4096));
	CHECK(out[0] == 0x11 && out[4095] == 0x11);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	OK(cuCtxPopCurrent_v2(NULL));		/* the first one lay below */
	CHECK(!fake_files() && !fake_handles() && !fake_leaks());
}

/* ---- a context ends between the steps of a call ---- */

/* A context is being destroyed while the first step of @call is in the driver */
static void destroy_between(struct call *call, CUcontext ctx)
{
	struct call end = { .fn = destroy, .ctx = ctx };

	atomic_fetch_add(&ctx->obj.refs, 1);
	fake_hold(FAKE_SUBMIT, true);
	CHECK(!pthread_create(&call->thread, NULL, call_run, call));
	await_held();
	CHECK(!pthread_create(&end.thread, NULL, call_run, &end));
	for (int i = 0; i < 3000 && !atomic_load(&ctx->destroyed); i++)
		nap(10);
	CHECK(atomic_load(&ctx->destroyed));
	fake_hold(FAKE_SUBMIT, false);
	call_end(call);
	call_end(&end);
	drv_ctx_put(ctx);
}

/* The last one; others lie below it */
static void end_last(CUcontext ctx)
{
	OK(cuCtxSetCurrent(ctx));
	OK(cuCtxDestroy_v2(ctx));
	while (!cuCtxPopCurrent_v2(NULL))
		continue;
	CHECK(!fake_files() && !fake_handles() && !fake_jobs() && !fake_leaks());
}

static CUresult copy_whole(const struct call *call)
{
	return cuMemcpyHtoD_v2(call->ptr, call->host, 8 * MiB);
}

/* The memory is of no context, and not of those that were made first and last */
static void t_steps_of_none(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	struct call call = { .fn = copy_whole };
	unsigned char *out = malloc(8 * MiB);
	CUmemGenericAllocationHandle h;
	CUcontext ctx[3];
	CUdeviceptr v;
	void *m;

	alarm(60);
	ctx[0] = start(&one);
	OK(cuCtxCreate_v2(&ctx[1], 0, 0));
	OK(cuMemAllocHost_v2(&m, 8 * MiB));
	call.host = memset(m, 7, 8 * MiB);
	OK(cuMemAddressReserve(&v, 8 * MiB, 0, 0, 0));
	OK(cuMemCreate(&h, 8 * MiB, &prop, 0));
	OK(cuMemMap(v, 8 * MiB, 0, h, 0));
	OK(cuMemSetAccess(v, 8 * MiB, &access, 1));
	OK(cuCtxCreate_v2(&ctx[2], 0, 0));
	call.ctx = ctx[1];
	call.ptr = v;
	for (int i = 0; i < 3; i += 2) {
		unsigned int n;

		OK(cuCtxSetCurrent(ctx[1]));
		OK(cuMemsetD8_v2(v, 0, 8 * MiB));
		n = fake_calls(FAKE_SUBMIT);
		destroy_between(&call, ctx[i]);
		CHECK(fake_calls(FAKE_SUBMIT) == n + 2);	/* there were two steps */
		OK(cuCtxSetCurrent(ctx[1]));
		OK(cuMemcpyDtoH_v2(out, v, 8 * MiB));
		CHECK(!memcmp(out, m, 8 * MiB));
	}
	free(out);
	OK(cuMemUnmap(v, 8 * MiB));
	OK(cuMemAddressFree(v, 8 * MiB));
	OK(cuMemRelease(h));
	end_last(ctx[1]);
}

static uint32_t number_of(CUdeviceptr p)
{
	struct drv_place place;
	uint32_t handle;

	OK(drv_place_get(p, 1, &place));
	handle = place.handle;
	drv_place_put(&place);
	return handle;
}

/* Memory of another process is open in a context on another GPU, which ends */
static void t_steps_opened(void)
{
	struct fake_config cfg = manual(2);
	struct call call = { .fn = copy_cancelled };
	unsigned char *out = malloc(2 * MiB);
	CUdeviceptr made, rest, p, q;
	CUcontext ctx, maker;
	CUipcMemHandle h;
	struct keeper k;
	uint32_t number;
	size_t n = 0;
	void *m;

	alarm(60);
	cfg.coherent = true;
	cfg.memlock = 65536;
	ctx = start(&cfg);
	OK(cuCtxCreate_v2(&maker, 0, 1));
	k = keep_memory(&made, &h, 2, &rest);
	OK(cuMemAllocHost_v2(&m, 256 * KiB));
	call.host = memset(m, 7, 256 * KiB);
	OK(cuCtxSetCurrent(ctx));
	OK(cuIpcOpenMemHandle_v2(&p, h, 1));
	number = number_of(p);
	OK(cuCtxSetCurrent(maker));
	call.ctx = maker;
	call.ptr = p;
	fake_hold(FAKE_SUBMIT, true);
	call_begin(&call);
	await_held();
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(ctx));
	atomic_store(&clock_step, 0);
	OK(cuMemAlloc_v2(&q, 2 * MiB));
	CHECK(number_of(q) == number);
	fake_hold(FAKE_SUBMIT, false);
	call_end(&call);
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(out, q, 2 * MiB));
	for (size_t i = 0; i < 2 * MiB; i++)
		n += out[i] == 7;
	CHECK(!n);
	free(out);
	let_go(&k);
}

#define LARGE	((1024 + 2) * MiB)	/* more than one fill of the engine */

static CUresult fill_large(const struct call *call)
{
	IS(cuMemsetD8Async(call->ptr, 7, LARGE, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	return CUDA_SUCCESS;
}

/* A large fill */
static void t_steps_fill(void)
{
	struct fake_config cfg = manual(1);
	struct call call = { .fn = fill_large };
	CUcontext ctx;
	unsigned int n;

	alarm(60);
	cfg.vram = 2048 * MiB;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&call.ptr, LARGE));
	OK(cuCtxCreate_v2(&call.ctx, 0, 0));
	n = fake_calls(FAKE_SUBMIT);
	fake_bad_jobs(1, 0, 0);		/* what it does is of no interest */
	destroy_between(&call, ctx);
	CHECK(fake_calls(FAKE_SUBMIT) == n + 1);
	end_last(call.ctx);
}

/* What a thread of the library does, when it has waited for long enough */
static void steps_by_hand(bool fill)
{
	size_t size = fill ? LARGE : 2 * MiB;
	struct fake_config cfg = manual(2);
	CUcontext near, far, other;
	unsigned char out[2] = { 0 };
	CUdeviceptr p, q, to;
	uint32_t number;
	unsigned int n;
	CUstream s;

	alarm(60);
	cfg.vram = 2048 * MiB;
	cfg.coherent = fill;		/* what is filled needs peer access */
	far = start(&cfg);
	OK(cuMemAlloc_v2(&p, size));
	number = number_of(p);
	OK(cuCtxCreate_v2(&other, 0, 0));	/* the GPU stays in use */
	OK(cuCtxCreate_v2(&near, 0, 1));
	if (fill)
		OK(cuCtxEnablePeerAccess(far, 0));
	OK(cuMemAlloc_v2(&to, 2 * MiB));
	OK(cuMemsetD8_v2(to, 0x11, 2 * MiB));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	n = fake_calls(FAKE_SUBMIT);
	fake_hold(FAKE_SUBMIT, true);
	if (fill)
		OK(cuMemsetD8Async(p, 7, size, s));
	else
		OK(cuMemcpyPeerAsync(to, near, p, far, size, s));
	await_held();
	atomic_store(&clock_step, 121000000000ull);
	OK(cuCtxDestroy_v2(far));
	atomic_store(&clock_step, 0);
	OK(cuCtxSetCurrent(other));
	OK(cuMemAlloc_v2(&q, size));
	CHECK(number_of(q) == number);
	if (fill)
		fake_bad_jobs(1, 0, 0);	/* what it does is of no interest */
	fake_hold(FAKE_SUBMIT, false);
	OK(cuCtxSetCurrent(near));
	IS(cuStreamSynchronize(s), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK(fake_calls(FAKE_SUBMIT) == n + 1);
	OK(cuMemcpyDtoH_v2(out, to, 1));
	OK(cuMemcpyDtoH_v2(out + 1, to + 2 * MiB - 1, 1));
	CHECK(out[0] == 0x11 && out[1] == 0x11);
	OK(cuCtxDestroy_v2(other));
	end_last(near);
}

static void t_steps_copy_by_hand(void)
{
	steps_by_hand(false);
}

static void t_steps_fill_by_hand(void)
{
	steps_by_hand(true);
}

/* The end of an event for other processes waits for nothing, whatever is under way */
static void t_event_end(void)
{
	struct fake_config cfg = manual(1);
	CUcontext ctx = start(&cfg);
	CUdeviceptr p, q, words;
	CUstream s;
	CUevent e;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* With other work, which has begun */
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(e, s));
	OK(cuStreamSynchronize(s));
	OK(cuMemsetD8Async(p, 1, 4096, s));
	words = e->words;
	OK(cuEventDestroy_v2(e));
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	/* Its memory is given back */
	OK(cuMemAlloc_v2(&q, 512));
	CHECK(q == words);
	OK(cuMemFree_v2(q));
	OK(cuStreamSynchronize(s));
	/* With its own recording: that has its memory until then, and more */
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(e, s));
	words = e->words;
	OK(cuEventDestroy_v2(e));
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuMemAlloc_v2(&q, 512));
	CHECK(q != words);
	OK(cuStreamSynchronize(s));
	end(ctx);
}

/* Events come and go with what has ended, or with what has not: neither takes memory */
static void event_rounds(bool pending)
{
	struct fake_config cfg = manual(1);
	size_t before, after, total;
	CUcontext ctx;
	CUstream s;
	CUevent e;

	ctx = start(&cfg);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 5000; i++) {
		OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
		OK(cuEventRecord(e, s));
		if (!i)
			OK(cuMemGetInfo_v2(&before, &total));
		for (unsigned int q = 0; q < cfg.queues && !pending; q++)
			fake_step(0, q, 1);	/* nobody asks */
		OK(cuEventDestroy_v2(e));
		if (pending)
			OK(cuStreamSynchronize(s));
	}
	OK(cuMemGetInfo_v2(&after, &total));
	CHECK(after >= before);
	OK(cuStreamSynchronize(s));
	end(ctx);
}

static void t_event_rounds(void)
{
	event_rounds(false);
}

static void t_event_rounds_pending(void)
{
	event_rounds(true);
}

/* ---- values that never come ---- */

static void t_value_destroy(void)
{
	CUdeviceptr p;
	CUcontext ctx;
	CUstream s;

	alarm(60);
	ctx = start(&one);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemsetD8_v2(p, 0, 4096));
	OK(cuStreamWaitValue32_v2(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuLaunchHostFunc(s, slow, NULL));
	atomic_store(&clock_step, 25000000000ull);
	IS(cuMemFree_v2(p), CUDA_ERROR_LAUNCH_TIMEOUT);
	end(ctx);
	CHECK(!atomic_load(&ran));	/* what follows has no effect */
}

static void t_value_free(void)
{
	CUdeviceptr p, q;
	CUcontext ctx;
	CUstream s;

	alarm(60);
	ctx = start(&one);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemAlloc_v2(&q, 2 * MiB));
	OK(cuMemsetD8_v2(p, 0, 4096));
	OK(cuStreamWaitValue32_v2(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemFree_v2(q));		/* the value is elsewhere */
	OK(cuMemsetD32Async(p, 5, 1, NULL));
	OK(cuMemFree_v2(p));
	end(ctx);
}

/* Looks at a value are nothing that a stuck function gains time by */
static void t_value_progress(void)
{
	static atomic_int go;
	CUstream s[2];
	CUdeviceptr p;
	CUcontext ctx;

	alarm(60);
	ctx = start(&one);
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8_v2(p, 0, 4096));
	OK(cuStreamWaitValue32_v2(s[0], p, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuLaunchHostFunc(s[1], stuck, &go));
	atomic_store(&clock_step, 25000000000ull);
	IS(cuStreamSynchronize(s[1]), CUDA_ERROR_LAUNCH_TIMEOUT);
	atomic_store(&clock_step, 0);
	atomic_store(&go, 1);
	OK(cuMemsetD32Async(p, 5, 1, NULL));
	OK(cuCtxSynchronize());
	end(ctx);
}

/* ---- what never comes, beside other work ---- */

struct busy {
	CUcontext ctx;
	CUdeviceptr p;
	atomic_bool stop;
	pthread_t thread;
};

static void *keep_busy(void *arg)
{
	struct busy *b = arg;

	OK(cuCtxSetCurrent(b->ctx));
	while (!atomic_load(&b->stop))
		OK(cuMemsetD8_v2(b->p, 1, 4096));
	return NULL;
}

/* Its two minutes are not those of other contexts, which go on working */
static void end_beside(bool value)
{
	struct busy b = { 0 };
	_Atomic uint64_t *page = NULL;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	CUevent e;

	alarm(60);
	ctx = start(&one);
	OK(cuMemAlloc_v2(&b.p, 4096));
	OK(cuCtxGetCurrent(&b.ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	if (value) {
		OK(cuMemAlloc_v2(&p, 4096));
		OK(cuMemsetD8_v2(p, 0, 4096));
		OK(cuStreamWaitValue32_v2(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
	} else {
		page = stuck_event(&e);
		OK(cuStreamWaitEvent(s, e, 0));
	}
	OK(cuLaunchHostFunc(s, slow, NULL));
	atomic_store(&clock_step, 100000000ull);
	CHECK(!pthread_create(&b.thread, NULL, keep_busy, &b));
	OK(cuCtxDestroy_v2(ctx));
	CHECK(!atomic_load(&ran));
	atomic_store(&b.stop, true);
	CHECK(!pthread_join(b.thread, NULL));
	atomic_store(&clock_step, 0);
	if (page)
		munmap(page, 4096);
	OK(cuCtxSetCurrent(b.ctx));
	end(b.ctx);
}

static void t_value_beside(void)
{
	end_beside(true);
}

static void t_event_beside(void)
{
	end_beside(false);
}

static const struct unit_test tests[] = {
	{ "a context waits for functions", t_sync_function },
	{ "and so does its end", t_destroy_function },
	{ "memory is freed behind functions", t_free_function },
	{ "a context waits for awaited events", t_awaited_event },
	{ "page-locked memory is freed behind all engines", t_free_pinned },
	{ "the end of a context is behind all engines", t_destroy_pinned },
	{ "a peer's memory is freed behind all engines", t_free_peer },
	{ "and behind one whose last context was given up", t_free_stuck },
	{ "memory of a pool behind such a one", t_free_async_stuck },
	{ "memory of a pool is freed behind nothing", t_free_pool },
	{ "memory is freed behind work that is being submitted", t_free_submitted },
	{ "and behind another GPU's", t_free_submitted_far },
	{ "a context ends behind work that is being submitted", t_destroy_submitted },
	{ "memory is freed while events are awaited", t_free_awaited },
	{ "a timeout is of one job", t_progress },
	{ "a timeout is of one function", t_functions },
	{ "a wait is not for what is submitted meanwhile", t_wakes },
	{ "what could not be freed is freed later", t_free_again },
	{ "what is to be unmapped is known until then", t_unmap_known },
	{ "a context ends before other work in its memory", t_destroy_numbers },
	{ "a context ends before other work is asked for again", t_destroy_again },
	{ "and by the program itself", t_destroy_again_now },
	{ "a context ends before the steps of other work", t_destroy_steps },
	{ "a context ends before the steps of another thread's call", t_destroy_steps_now },
	{ "a context ends before a copy from its memory", t_destroy_numbers_far },
	{ "other contexts end between the steps of a copy", t_steps_of_none },
	{ "a context ends between the steps to memory it has opened", t_steps_opened },
	{ "a context ends between the steps of a fill", t_steps_fill },
	{ "a context ends between the steps of a copy by the library", t_steps_copy_by_hand },
	{ "a context ends between the steps of a fill by the library", t_steps_fill_by_hand },
	{ "an event for other processes ends before what is under way", t_event_end },
	{ "memory of events whose recording has ended", t_event_rounds },
	{ "memory of events whose recording has not", t_event_rounds_pending },
	{ "a context ends before a value comes", t_value_destroy },
	{ "memory is freed while values are awaited", t_value_free },
	{ "looks at a value are no progress", t_value_progress },
	{ "a context ends before a value comes, beside others", t_value_beside },
	{ "a context ends before an event occurs, beside others", t_event_beside },
};

UNIT_MAIN(tests)
