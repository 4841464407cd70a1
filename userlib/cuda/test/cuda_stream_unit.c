// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: what streams do while they are held up.
 * Each test runs in a process of its own.
 */
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "../order.h"
#include "unit.h"

#define OWN_(symbol)		symbol
#define OWN_ptsz(symbol)	symbol##_ptsz
#define OWN_ptds(symbol)	symbol##_ptds
#define PLN_F(name, suffix, since, alias, sorts, ...) \
	CUresult OWN_##alias(name##suffix)(__VA_ARGS__);
#include "../cuda_proto.h"

static atomic_int gate, ran;

static void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Until the gate, or that of @arg, is open, or half a minute is over */
static void hold(void *arg)
{
	atomic_int *open = arg ? arg : &gate;

	for (int i = 0; i < 3000 && !atomic_load(open); i++)
		nap(10);
}

static void note(void *arg)
{
	(void)arg;
	atomic_fetch_add(&ran, 1);
}

static bool becomes(atomic_int *what, int value)
{
	for (int i = 0; i < 1000 && atomic_load(what) != value; i++)
		nap(10);
	return atomic_load(what) == value;
}

struct streams {
	CUcontext ctx;
	CUstream b[2], nb[2];
	CUdeviceptr p;
	unsigned char *h;
};

static struct streams streams(bool coherent)
{
	struct fake_config cfg = one;
	struct streams t;
	void *m;

	alarm(60);			/* who waits where nobody should, ends */
	cfg.coherent = coherent;
	t.ctx = start(&cfg);
	for (int i = 0; i < 2; i++) {
		OK(cuStreamCreate(&t.b[i], 0));
		OK(cuStreamCreate(&t.nb[i], CU_STREAM_NON_BLOCKING));
	}
	OK(cuMemAlloc_v2(&t.p, 4096));
	OK(cuMemAllocHost_v2(&m, 4096));
	t.h = memset(m, 0, 4096);
	return t;
}

/* No call that is behind a function waits for it, nor does another stream */
static void t_submitter(void)
{
	struct streams t = streams(false);
	CUdeviceptr q;
	CUevent e;

	OK(cuEventCreate(&e, 0));
	OK(cuMemAllocAsync(&q, 4096, t.b[0]));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuMemsetD8Async(t.p, 7, 4096, t.b[0]));
	OK(cuMemcpyDtoHAsync_v2(t.h, t.p, 1, t.b[0]));
	OK(cuMemsetD8Async((uintptr_t)t.h + 2, 8, 1, t.b[0]));
	OK(cuEventRecord(e, t.b[0]));
	OK(cuLaunchHostFunc(t.b[0], note, NULL));
	OK(cuMemFreeAsync(q, t.b[0]));
	OK(cuStreamWaitEvent(t.nb[0], e, 0));
	OK(cuMemcpyDtoHAsync_v2(t.h + 3, t.p, 1, t.nb[0]));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	/* Others go on */
	OK(cuLaunchHostFunc(t.b[1], note, NULL));
	OK(cuMemsetD8Async(t.p + 1, 1, 1, t.b[1]));
	OK(cuStreamSynchronize(t.b[1]));
	CHECK(atomic_load(&ran) == 1);
	OK(cuLaunchHostFunc(t.nb[1], note, NULL));
	OK(cuStreamSynchronize(t.nb[1]));
	CHECK(atomic_load(&ran) == 2);
	CHECK(!t.h[0] && !t.h[2] && !t.h[3]);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	CHECK(atomic_load(&ran) == 3);
	CHECK(t.h[0] == 7 && t.h[2] == 8 && t.h[3] == 7);
	end(t.ctx);
}

/* The default stream is behind blocking streams, and they are behind it */
static void t_legacy(void)
{
	struct streams t = streams(false);
	CUevent e;

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuLaunchHostFunc(NULL, note, NULL));
	OK(cuLaunchHostFunc(t.b[1], note, NULL));
	OK(cuMemsetD8Async(t.p, 1, 1, t.nb[0]));
	OK(cuStreamSynchronize(t.nb[0]));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(t.b[1]), CUDA_ERROR_NOT_READY);
	CHECK(atomic_load(&ran) == 0);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[1]));
	CHECK(atomic_load(&ran) == 2);
	/* An event in the default stream is in the same order */
	atomic_store(&gate, 0);
	OK(cuEventCreate(&e, 0));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuEventRecord(e, NULL));
	OK(cuMemsetD8_v2(t.p, 1, 1));		/* nor does this one wait */
	OK(cuStreamQuery(t.b[1]));		/* nothing was asked of it */
	OK(cuMemsetD8Async(t.p, 1, 1, t.b[1]));
	IS(cuStreamQuery(t.b[1]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[1]));
	/* Also of a stream that is gone */
	atomic_store(&gate, 0);
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuStreamDestroy_v2(t.b[0]));
	OK(cuMemsetD8Async(t.p, 1, 1, NULL));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(NULL));
	end(t.ctx);
}

/* What has not begun when its context ends is done before */
static void t_destroy(void)
{
	struct streams t = streams(false);

	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	for (int i = 0; i < 100; i++)
		OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuMemsetD8Async(t.p, 1, 4096, t.nb[0]));
	atomic_store(&gate, 1);
	end(t.ctx);
	CHECK(atomic_load(&ran) == 100);
}

/* An event has the time at which its work ended, not that of the question */
static void t_times(void)
{
	struct streams t = streams(false);
	CUevent a, b, never, plain;
	float ms;

	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, 0));
	OK(cuEventCreate(&never, 0));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(a, t.b[0]));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuMemsetD8Async(t.p, 1, 4096, t.b[0]));
	OK(cuEventRecord(b, t.b[0]));
	OK(cuLaunchHostFunc(t.b[0], note, NULL));
	IS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
	/* What never has a time goes before what has none yet */
	OK(cuEventRecord(plain, t.b[0]));
	IS(cuEventElapsedTime(&ms, b, never), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventElapsedTime(&ms, b, plain), CUDA_ERROR_INVALID_HANDLE);
	atomic_store(&gate, 1);
	CHECK(becomes(&ran, 1));
	nap(2000);
	OK(cuEventElapsedTime(&ms, a, b));
	CHECK(ms < 1900);
	end(t.ctx);
}

/* ---- memory whose synchronous operations are to be synchronous ---- */

static CUresult set_sync(CUdeviceptr p, unsigned int value)
{
	return cuPointerSetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
}

struct setter {
	CUdeviceptr p;
	pthread_t thread;
	atomic_int returned;
};

static void *set_run(void *arg)
{
	struct setter *s = arg;

	OK(set_sync(s->p, 1));
	atomic_store(&s->returned, 1);
	return NULL;
}

static void set_begin(struct setter *s, CUdeviceptr p)
{
	s->p = p;
	atomic_store(&s->returned, 0);
	CHECK(!pthread_create(&s->thread, NULL, set_run, s));
	nap(300);
}

static CUresult copy_rows(CUdeviceptr to, CUdeviceptr from)
{
	const CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
		.srcPitch = 64, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to, .dstPitch = 64, .WidthInBytes = 8, .Height = 2,
	};

	return cuMemcpy2D_v2(&c);
}

static CUresult call_sync(int how, CUdeviceptr p, CUdeviceptr from)
{
	switch (how) {
	case 0:
		return cuMemcpyDtoD_v2(p, from, 64);
	case 1:
		return cuMemcpyDtoD_v2(from, p, 64);
	case 2:
		return cuMemsetD8_v2(p, 1, 64);
	case 3:
		return copy_rows(p, from);
	case 4:
		return cuMemsetD2D8_v2(p, 64, 1, 8, 2);
	default:
		return cuMemcpyPeer(p, NULL, from, NULL, 64);
	}
}

/* What of them is left to the stream is waited for when that is said */
static void t_sync_memops(void)
{
	struct streams t = streams(false);
	struct setter s;
	CUdeviceptr q, r;

	OK(cuMemAlloc_v2(&q, 4096));
	OK(cuMemAlloc_v2(&r, 4096));
	for (int how = 0; how < 6; how++) {
		atomic_store(&gate, 0);
		OK(set_sync(t.p, 0));
		OK(cuLaunchHostFunc(t.b[0], hold, NULL));
		OK(call_sync(how, t.p, q));
		OK(cuMemsetD8Async(r, 1, 64, NULL));
		IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
		/* Of other memory nothing is pending but what is asynchronous */
		OK(set_sync(r, 1));
		OK(set_sync(t.p, 0));
		set_begin(&s, t.p);
		if (atomic_load(&s.returned))
			printf("# left by %d\n", how);
		CHECK(!atomic_load(&s.returned));
		atomic_store(&gate, 1);
		CHECK(!pthread_join(s.thread, NULL));
		OK(cuCtxSynchronize());
	}
	end(t.ctx);
}

static void *leave_own(void *arg)
{
	struct streams *t = arg;

	OK(cuCtxSetCurrent(t->ctx));
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, hold, NULL));
	OK(cuMemsetD8_v2_ptds(t->p, 1, 64));
	return NULL;
}

/* By the default streams of several threads */
static void t_sync_memops_own(void)
{
	struct streams t = streams(false);
	atomic_int go = 0;
	pthread_t thread;
	struct setter s;

	CHECK(!pthread_create(&thread, NULL, leave_own, &t));
	CHECK(!pthread_join(thread, NULL));
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, hold, &go));
	OK(cuMemsetD8_v2_ptds(t.p, 1, 64));
	set_begin(&s, t.p);
	CHECK(!atomic_load(&s.returned));
	atomic_store(&go, 1);
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	nap(200);
	CHECK(!atomic_load(&s.returned));
	atomic_store(&gate, 1);
	CHECK(!pthread_join(s.thread, NULL));
	end(t.ctx);
}

/* What another context has left is not waited for by who synchronizes this one */
static void t_left_beside(void)
{
	struct streams t = streams(false);
	atomic_int go = 0;
	CUcontext beside;

	OK(cuLaunchHostFunc(NULL, hold, NULL));
	OK(cuLaunchHostFunc(NULL, note, NULL));
	OK(cuMemsetD8_v2(t.p, 1, 64));
	OK(cuCtxCreate_v2(&beside, 0, 0));
	OK(cuLaunchHostFunc(NULL, hold, &go));
	OK(cuMemsetD8_v2(t.p, 2, 64));
	atomic_store(&go, 1);
	OK(cuCtxSynchronize());
	CHECK(!atomic_load(&ran));
	atomic_store(&gate, 1);
	OK(cuCtxDestroy_v2(beside));
	OK(cuCtxSynchronize());
	end(t.ctx);
}

/* However many rows are left: each is a job, and there are no more */
static void t_left_many(void)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcPitch = 16,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstPitch = 16,
		.WidthInBytes = 8, .Height = 200,
	};
	struct streams t = streams(false);
	uint64_t before, after;
	struct setter s;
	CUdeviceptr q;

	OK(cuMemAlloc_v2(&q, 4096));
	c.dstDevice = t.p;
	c.srcDevice = q;
	OK(cuLaunchHostFunc(NULL, hold, NULL));
	pthread_mutex_lock(&drv.order);
	before = drv_jobs.numbers;
	pthread_mutex_unlock(&drv.order);
	OK(cuMemcpy2D_v2(&c));
	pthread_mutex_lock(&drv.order);
	after = drv_jobs.numbers;
	pthread_mutex_unlock(&drv.order);
	CHECK(after - before <= 201);
	set_begin(&s, q);
	CHECK(!atomic_load(&s.returned));
	atomic_store(&gate, 1);
	CHECK(!pthread_join(s.thread, NULL));
	end(t.ctx);
}

static void *leave_run(void *arg)
{
	struct streams *t = arg;

	OK(drv_left(t->ctx->legacy, t->p));
	atomic_store(&ran, 1);
	return NULL;
}

/* What was to be left when nothing is to be, after all, is waited for */
static void t_left_late(void)
{
	struct streams t = streams(false);
	pthread_t thread;

	OK(cuLaunchHostFunc(NULL, hold, NULL));
	OK(cuMemsetD8Async(t.p, 1, 64, NULL));
	OK(set_sync(t.p, 1));
	CHECK(!pthread_create(&thread, NULL, leave_run, &t));
	nap(300);
	CHECK(!atomic_load(&ran));
	atomic_store(&gate, 1);
	CHECK(!pthread_join(thread, NULL));
	end(t.ctx);
}

struct rows {
	struct streams *t;
	pthread_t thread;
	atomic_int returned;
	int how;
};

static void *rows_run(void *arg)
{
	struct rows *r = arg;

	OK(cuCtxSetCurrent(r->t->ctx));
	OK(call_sync(r->how, r->t->p, r->t->p + 1024));
	atomic_store(&r->returned, 1);
	return NULL;
}

/* From then on they wait, those of rows, too */
static void t_sync_rows(void)
{
	struct streams t = streams(false);
	struct rows r = { .t = &t };

	OK(set_sync(t.p, 1));
	for (r.how = 0; r.how < 6; r.how++) {
		atomic_store(&gate, 0);
		atomic_store(&r.returned, 0);
		OK(cuLaunchHostFunc(t.b[0], hold, NULL));
		CHECK(!pthread_create(&r.thread, NULL, rows_run, &r));
		nap(300);
		if (atomic_load(&r.returned))
			printf("# left by %d\n", r.how);
		CHECK(!atomic_load(&r.returned));
		atomic_store(&gate, 1);
		CHECK(!pthread_join(r.thread, NULL));
		OK(cuCtxSynchronize());
	}
	end(t.ctx);
}

/* Each thread has a default stream of its own, which follows the legacy one */
static void *own_stream(void *arg)
{
	struct streams *t = arg;

	OK(cuCtxSetCurrent(t->ctx));
	OK(cuStreamQuery(CU_STREAM_PER_THREAD));
	OK(cuMemsetD8Async(t->p, 1, 1, CU_STREAM_PER_THREAD));
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, note, NULL));
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	return NULL;
}

static void t_per_thread(void)
{
	struct streams t = streams(false);
	unsigned long long id[2];
	pthread_t thread;

	OK(cuStreamGetId(NULL, &id[0]));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &id[1]));
	CHECK(id[0] != id[1]);
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, hold, NULL));
	IS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(t.b[0]));
	CHECK(!pthread_create(&thread, NULL, own_stream, &t));
	CHECK(!pthread_join(thread, NULL));
	CHECK(atomic_load(&ran) == 1);
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuMemsetD8Async(t.p, 1, 1, NULL));
	OK(cuMemsetD8Async(t.p, 1, 1, t.b[0]));
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	end(t.ctx);
}

/* Second symbols of functions: no stream is the thread's own default stream */
static void t_second_symbols(void)
{
	struct streams t = streams(false);
	CUresult (*query)(CUstream stream), (*query_own)(CUstream stream);
	unsigned long long id, own, asked;
	CUdeviceptr q;
	CUevent e;

	OK(cuStreamGetId(NULL, &id));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
	OK(cuStreamGetId_ptsz(NULL, &asked));
	CHECK(asked == own && own != id);
	OK(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &asked));
	CHECK(asked == id);
	OK(cuStreamGetId(NULL, &asked));	/* nothing is left of it */
	CHECK(asked == id);
	OK(cuGetProcAddress("cuStreamQuery", (void **)&query, 13000,
			    CU_GET_PROC_ADDRESS_LEGACY_STREAM));
	OK(cuGetProcAddress("cuStreamQuery", (void **)&query_own, 13000,
			    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
	OK(cuEventCreate(&e, 0));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	/* The default stream is behind it, the thread's own is not */
	OK(cuMemcpyHtoD_v2_ptds(t.p, t.h, 4096));
	OK(cuMemsetD8_v2_ptds(t.p, 7, 4096));
	OK(cuMemcpyDtoHAsync_v2_ptsz(t.h, t.p, 4096, NULL));
	OK(cuMemcpyPeer_ptds(t.p, t.ctx, t.p + 1, t.ctx, 1));
	OK(cuMemAllocAsync_ptsz(&q, 4096, NULL));
	OK(cuMemFreeAsync_ptsz(q, NULL));
	OK(cuEventRecord_ptsz(e, NULL));
	OK(cuLaunchHostFunc_ptsz(NULL, note, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(t.h[0] == 7 && t.h[4095] == 7 && atomic_load(&ran) == 1);
	OK(cuEventQuery(e));
	OK(query_own(NULL));
	IS(query(NULL), CUDA_ERROR_NOT_READY);
	/* A failed call leaves nothing either */
	IS(cuMemsetD8_v2_ptds(0, 1, 1), INVALID);
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(NULL));
	end(t.ctx);
}

static void values(bool coherent)
{
	struct streams t = streams(coherent);
	_Atomic uint32_t *w = (void *)t.h;
	CUdeviceptr at = (uintptr_t)t.h;
	CUstreamBatchMemOpParams op[2];

	/* By another stream, and by the CPU */
	OK(cuStreamWaitValue32_v2(t.nb[0], at, 5, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuStreamWriteValue32_v2(t.nb[1], at, 4, 0));
	OK(cuStreamSynchronize(t.nb[1]));
	CHECK(w[0] == 4);
	nap(20);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	CHECK(!atomic_load(&ran));
	w[0] = 6;
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 1);
	/* In memory of the GPU, 64 bits */
	OK(cuMemsetD8_v2(t.p, 0, 4096));
	OK(cuStreamWaitValue64_v2(t.nb[0], t.p + 8, 1ull << 40,
				  CU_STREAM_WAIT_VALUE_AND));
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	OK(cuStreamWriteValue64_v2(t.nb[1], t.p + 8, 3ull << 40, 0));
	OK(cuStreamSynchronize(t.nb[0]));
	/* The comparison goes round */
	w[0] = 0x80000001;
	OK(cuStreamWaitValue32_v2(t.nb[0], at, 1, CU_STREAM_WAIT_VALUE_GEQ));
	nap(20);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	w[0] = 0x80000000;
	OK(cuStreamSynchronize(t.nb[0]));
	w[0] = ~5u;
	OK(cuStreamWaitValue32_v2(t.nb[0], at, 5, CU_STREAM_WAIT_VALUE_NOR));
	nap(20);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	w[0] = 5;
	OK(cuStreamSynchronize(t.nb[0]));
	/* A batch is in order; nothing of a wrong one is done */
	memset(op, 0, sizeof(op));
	op[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[0].waitValue.address = at;
	op[0].waitValue.value = 9;
	op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[1].writeValue.address = at + 8;
	op[1].writeValue.value64 = 10;
	OK(cuStreamBatchMemOp_v2(t.nb[0], 2, op, 0));
	nap(20);
	CHECK(w[2] == 0);
	w[0] = 9;
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(w[2] == 10);
	op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[0].writeValue.flags = 0;
	op[0].writeValue.value = 1;
	op[1].operation = 77;
	IS(cuStreamBatchMemOp_v2(t.nb[0], 2, op, 0), INVALID);
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(w[0] == 9);
	IS(cuStreamWaitValue32_v2(t.nb[0], 0, 1, 0), INVALID);
	IS(cuStreamWaitValue32_v2(t.nb[0], at + 2, 1, 0), INVALID);
	IS(cuStreamWaitValue64_v2(t.nb[0], at + 4, 1, 0), INVALID);
	IS(cuStreamWaitValue32_v2(t.nb[0], at, 1, 8), INVALID);
	IS(cuStreamWriteValue32_v2(t.nb[0], at, 1, 2), INVALID);
	IS(cuStreamWriteValue32_v2(t.nb[0], (uintptr_t)&gate, 1, 0), INVALID);
	IS(cuStreamBatchMemOp_v2(t.nb[0], 1, NULL, 0), INVALID);
	IS(cuStreamBatchMemOp_v2(t.nb[0], 1, op, 1), INVALID);
	end(t.ctx);
}

static void t_values(void)
{
	values(false);
}

static void t_values_window(void)
{
	values(true);
}

/* Many that are pending, in order */
static void t_many(void)
{
	struct streams t = streams(false);
	CUevent e;

	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	for (int i = 0; i < 300; i++) {
		OK(cuMemsetD8Async(t.p, (unsigned char)i, 1, t.b[0]));
		OK(cuEventRecord(e, t.b[0]));
		OK(cuStreamWaitEvent(t.nb[i % 2], e, 0));
		OK(cuMemcpyDtoHAsync_v2(t.h, t.p, 1, t.nb[i % 2]));
		OK(cuEventRecord(e, t.nb[i % 2]));
		OK(cuStreamWaitEvent(t.b[0], e, 0));
	}
	CHECK(fake_jobs() == 0);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	CHECK(t.h[0] == (unsigned char)299);
	end(t.ctx);
}

/* Host memory of a pending copy goes in steps where little may be pinned */
static void t_memlock(void)
{
	struct fake_config cfg = one;
	static unsigned char *h;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	void *m;

	cfg.memlock = 65536;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAlloc_v2(&p, 1 * MiB));
	OK(cuMemAllocHost_v2(&m, 1 * MiB));
	h = m;
	OK(cuMemsetD8_v2(p, 0x5a, 1 * MiB));
	OK(cuLaunchHostFunc(s, hold, NULL));
	OK(cuMemcpyDtoHAsync_v2(h, p, 1 * MiB, s));
	CHECK(!h[0]);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(s));
	for (size_t i = 0; i < 1 * MiB; i++)
		CHECK(h[i] == 0x5a);
	end(ctx);
}

/* Steps that the driver does not take change nothing: what is in the queue follows there */
static void t_memlock_now(void)
{
	struct fake_config cfg = one;
	static unsigned char *h;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	void *m;

	alarm(60);
	cfg.memlock = 65536;
	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAlloc_v2(&p, 1 * MiB));
	OK(cuMemAllocHost_v2(&m, 1 * MiB));
	h = m;
	/* In a stream of its own, and in the default stream, behind work and behind nothing */
	for (int i = 0; i < 4; i++) {
		CUstream stream = i & 1 ? NULL : s;
		unsigned int before = i < 2;

		h[0] = 0;
		if (before)
			OK(cuMemsetD8Async(p, 0x50 + i, 1 * MiB, s));
		else
			OK(cuMemsetD8_v2(p, 0x50 + i, 1 * MiB));
		CHECK(fake_jobs() == before);
		OK(cuMemcpyDtoHAsync_v2(h, p, 1 * MiB, stream));
		CHECK(fake_jobs() == before + 16);
		CHECK(!drv_stream_held(s));
		CHECK(!h[0]);
		OK(cuStreamSynchronize(stream));
		CHECK(h[0] == 0x50 + i && h[1 * MiB - 1] == 0x50 + i);
		OK(cuCtxSynchronize());
	}
	end(ctx);
}

/* ---- memory that is freed under work that is held up ---- */

static void *open_soon(void *arg)
{
	(void)arg;
	nap(300);
	atomic_store(&gate, 1);
	return NULL;
}

struct two {
	CUcontext ctx[2];
	CUdeviceptr p[2];
	CUstream s;
	pthread_t opener;
};

/* A stream of the first of two GPUs, held up for a while */
static struct two two_gpus(bool peers)
{
	struct fake_config cfg = one;
	struct two t;

	alarm(60);
	cfg.gpus = 2;
	cfg.coherent = peers;
	t.ctx[0] = start(&cfg);
	OK(cuMemAlloc_v2(&t.p[0], 4096));
	OK(cuMemsetD8_v2(t.p[0], 7, 4096));
	OK(cuStreamCreate(&t.s, CU_STREAM_NON_BLOCKING));
	OK(cuCtxCreate_v2(&t.ctx[1], 0, 1));
	OK(cuMemAlloc_v2(&t.p[1], 4096));
	OK(cuCtxPopCurrent_v2(NULL));
	return t;
}

static void hold_up(struct two *t)
{
	atomic_store(&gate, 0);
	OK(cuLaunchHostFunc(t->s, hold, NULL));
	CHECK(!pthread_create(&t->opener, NULL, open_soon, NULL));
}

static void held_up(struct two *t)
{
	CHECK(atomic_load(&gate));
	OK(cuStreamSynchronize(t->s));
	CHECK(!pthread_join(t->opener, NULL));
}

static void t_free_peer(void)
{
	struct two t = two_gpus(false);
	void *m;

	hold_up(&t);
	OK(cuMemcpyPeerAsync(t.p[1], t.ctx[1], t.p[0], t.ctx[0], 4096, t.s));
	OK(cuMemFree_v2(t.p[1]));
	held_up(&t);
	/* Page-locked in a context of the other GPU */
	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuCtxSetCurrent(t.ctx[0]));
	hold_up(&t);
	OK(cuMemsetD8Async((uintptr_t)m, 1, 4096, t.s));
	OK(cuMemFreeHost(m));
	held_up(&t);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	end(t.ctx[0]);
}

/* Memory of one GPU does not wait for what only the other one has to do */
static void t_free_beside(void)
{
	struct two t = two_gpus(false);
	void *m;

	hold_up(&t);
	OK(cuMemsetD8Async(t.p[0], 1, 4096, t.s));
	OK(cuMemFree_v2(t.p[1]));
	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuMemAllocHost_v2(&m, 4096));
	OK(cuMemFreeHost(m));
	OK(cuCtxDestroy_v2(t.ctx[1]));
	CHECK(!atomic_load(&gate));
	OK(cuCtxSetCurrent(t.ctx[0]));
	OK(cuStreamSynchronize(t.s));
	held_up(&t);
	end(t.ctx[0]);
}

/* No end of the host sees a copy in memory of GPUs, so nobody waits for a long one */
static void t_device_copy(void)
{
	struct streams t = streams(false);
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcPitch = 128,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstPitch = 128,
		.srcDevice = t.p, .dstDevice = t.p + 2048,
		.WidthInBytes = 64, .Height = 2,
	};

	OK(cuLaunchHostFunc(NULL, hold, NULL));
	OK(cuMemcpyDtoD_v2(t.p, t.p + 1024, 64));
	OK(cuMemcpy(t.p, t.p + 1024, 64));
	OK(cuMemcpyPeer(t.p, t.ctx, t.p + 1024, t.ctx, 64));
	OK(cuMemcpy2D_v2(&c));
	CHECK(!atomic_load(&gate));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(NULL));
	end(t.ctx);
}

/* Pageable memory is copied as it is at the call, which waits only for large copies */
static void t_stage(void)
{
	static unsigned char from[2 * MiB], to[2 * MiB];
	struct streams t = streams(false);
	CUdeviceptr p;
	CUevent e;

	OK(cuMemAlloc_v2(&p, sizeof(from)));
	OK(cuEventCreate(&e, 0));
	pattern(from, sizeof(from), 1);
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuMemcpyHtoDAsync_v2(p, from, sizeof(from), t.b[0]));
	OK(cuEventRecord(e, t.b[0]));
	memset(from, 0, sizeof(from));
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuMemcpyDtoH_v2(to, p, sizeof(to)));
	pattern(from, sizeof(from), 1);
	CHECK(!memcmp(from, to, sizeof(to)));
	/* There is room again; where there is none, the call waits */
	atomic_store(&gate, 0);
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	for (int i = 0; i < 2; i++)
		OK(cuMemcpyHtoDAsync_v2(p, from, 1 * MiB, t.b[0]));
	OK(cuMemcpyHtoDAsync_v2(t.p, from + 1, 1, t.nb[0]));
	OK(cuStreamQuery(t.nb[0]));
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	/* Nowhere is an error of the call; one of the engine is the stream's */
	IS(cuMemcpyHtoDAsync_v2(p, (void *)16, 4096, t.b[0]), INVALID);
	OK(cuStreamSynchronize(t.b[0]));
	fake_bad_jobs(1, -EIO, 7);
	OK(cuMemcpyHtoDAsync_v2(p, from, 4096, t.b[0]));
	IS(cuStreamSynchronize(t.b[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
	end(t.ctx);
}

/* Nor does it wait where RLIMIT_MEMLOCK has room in smaller steps only, once it is held */
static void t_stage_steps(void)
{
	static unsigned char from[1 * MiB], to[1 * MiB];
	struct fake_config cfg = one;
	CUdeviceptr p;
	CUcontext ctx;
	CUstream s;

	alarm(60);
	cfg.memlock = 65536;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAlloc_v2(&p, sizeof(from)));
	for (int held = 0; held < 2; held++) {
		pattern(from, sizeof(from), (unsigned int)held);
		atomic_store(&gate, 0);
		if (held)
			OK(cuLaunchHostFunc(s, hold, NULL));
		OK(cuMemcpyHtoDAsync_v2(p, from, sizeof(from), s));
		memset(from, 0, sizeof(from));
		atomic_store(&gate, 1);
		OK(cuStreamSynchronize(s));
		OK(cuMemcpyDtoH_v2(to, p, sizeof(to)));
		pattern(from, sizeof(from), (unsigned int)held);
		CHECK(!memcmp(from, to, sizeof(to)));
	}
	end(ctx);
}

/* Memory of no pool goes when the stream has come so far, and nobody waits for that */
static void t_free_in_order(void)
{
	struct streams t = streams(false);
	_Atomic uint32_t *w = (void *)t.h;
	CUdeviceptr p, base, pool[2];
	size_t size;

	/* No others use it, and none of them is waited for */
	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemFreeAsync(p, t.b[0]));
	OK(cuStreamSynchronize(t.b[0]));
	IS(cuMemGetAddressRange_v2(&base, &size, p), CUDA_ERROR_NOT_FOUND);
	CHECK(!atomic_load(&gate));
	/* It is there until then */
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemsetD8Async(p, 1, 2 * MiB, t.nb[0]));
	OK(cuMemFreeAsync(p, t.nb[0]));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuMemGetAddressRange_v2(&base, &size, p));
	CHECK(base == p && size == 2 * MiB);
	/* So is memory of a pool, until somebody has it again */
	OK(cuMemAllocAsync(&pool[0], 2 * MiB, t.nb[0]));
	OK(cuMemFreeAsync(pool[0], t.nb[0]));
	OK(cuMemGetAddressRange_v2(&base, &size, pool[0]));
	CHECK(base == pool[0] && size == 2 * MiB);
	IS(cuMemFreeAsync(pool[0], t.nb[0]), INVALID);
	IS(cuMemFree_v2(pool[0]), INVALID);
	OK(cuMemAllocAsync(&pool[1], MiB, t.nb[0]));
	CHECK(pool[1] == pool[0]);
	OK(cuMemGetAddressRange_v2(&base, &size, pool[0]));
	CHECK(size == MiB);
	OK(cuMemFreeAsync(pool[1], t.nb[0]));
	OK(cuMemGetAddressRange_v2(&base, &size, pool[1]));
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 1);
	IS(cuMemGetAddressRange_v2(&base, &size, pool[1]), CUDA_ERROR_NOT_FOUND);
	IS(cuMemGetAddressRange_v2(&base, &size, p), CUDA_ERROR_NOT_FOUND);
	IS(cuMemFreeAsync(p, t.nb[0]), INVALID);
	/* Freed otherwise, and had again by somebody else, it is not freed once more */
	atomic_store(&gate, 0);
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuStreamWaitValue32_v2(t.b[0], (uintptr_t)t.h, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemFreeAsync(p, t.b[0]));
	OK(cuMemFree_v2(p));
	OK(cuMemAlloc_v2(&base, 2 * MiB));	/* at the same address, as a rule */
	w[0] = 1;
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuMemFree_v2(base));
	/* So is what its context takes along */
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	OK(cuMemFreeAsync(p, t.nb[0]));
	atomic_store(&gate, 1);
	end(t.ctx);
}

static void *sync_default(void *arg)
{
	struct streams *t = arg;

	OK(cuCtxSetCurrent(t->ctx));
	OK(cuStreamSynchronize(t->b[0]));
	return NULL;
}

/* A thread that is cancelled while it waits keeps no lock */
static void t_cancel(void)
{
	struct streams t = streams(false);
	pthread_t thread;
	void *end_of;

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	CHECK(!pthread_create(&thread, NULL, sync_default, &t));
	nap(100);
	CHECK(!pthread_cancel(thread));
	nap(100);
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	CHECK(!pthread_join(thread, &end_of));
	end(t.ctx);
}

static void t_destroy_peer(void)
{
	struct two t = two_gpus(false);

	hold_up(&t);
	OK(cuMemcpyPeerAsync(t.p[1], t.ctx[1], t.p[0], t.ctx[0], 4096, t.s));
	OK(cuCtxDestroy_v2(t.ctx[1]));
	held_up(&t);
	end(t.ctx[0]);
}

/* Memory that goes with its context: no value is looked for there any more */
static void t_destroy_awaited(void)
{
	struct two t = two_gpus(false);
	CUdeviceptr at;
	void *m;

	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuMemAllocHost_v2(&m, 4096));
	memset(m, 0, 4096);
	at = (uintptr_t)m;
	OK(cuCtxSetCurrent(t.ctx[0]));
	/* One wait that is under way, and one that is still to come */
	OK(cuStreamWaitValue32_v2(t.s, at, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWaitValue32_v2(t.s, at + 4, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuLaunchHostFunc(t.s, note, NULL));
	nap(20);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	IS(cuStreamSynchronize(t.s), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK(atomic_load(&ran) == 1);
	OK(cuStreamSynchronize(t.s));
	end(t.ctx[0]);
}

/* The engine's error of a fill that another GPU does */
static void t_peer_fill(void)
{
	struct two t = two_gpus(true);

	OK(cuCtxEnablePeerAccess(t.ctx[1], 0));
	fake_bad_jobs(1, -EIO, 7);
	OK(cuMemsetD8Async(t.p[1], 1, 4096, t.s));
	IS(cuStreamSynchronize(t.s), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(cuStreamSynchronize(t.s), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* It is lost for both: one asked, the other's engine failed */
	IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(cuCtxSynchronize_v2(t.ctx[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy_v2(t.ctx[1]));
	end(t.ctx[0]);
}

/* ---- events of other processes ---- */

static CUevent shared_event(void)
{
	CUevent e;

	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	return e;
}

static bool is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[512];

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		found = found || strstr(line, name);
	fclose(maps);
	return found;
}

/* The engine writes to the page of an event that is gone by then */
static void t_ipc_destroy(void)
{
	struct streams t = streams(false);
	CUevent e = shared_event();

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuEventRecord(e, t.b[0]));
	OK(cuEventDestroy_v2(e));
	/* The page is the recording's until it is done */
	CHECK(is_mapped("peerlane-event"));
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuMemsetD8Async(t.p, 1, 1, t.b[0]));	/* its last job is another one */
	OK(cuStreamSynchronize(t.b[0]));
	/* A thread of the library that has waited for it may have it a moment longer */
	for (int i = 0; i < 1000 && is_mapped("peerlane-event"); i++)
		nap(10);
	CHECK(!is_mapped("peerlane-event"));
	end(t.ctx);
}

/* Others do not wait for a recording that failed */
static void t_ipc_failure(void)
{
	struct streams t = streams(false);
	CUevent e = shared_event();

	OK(cuEventRecord(e, t.b[0]));
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuEventRecord(e, t.b[0]));
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	atomic_store(&gate, 1);
	IS(cuStreamSynchronize(t.b[0]), CUDA_ERROR_OUT_OF_MEMORY);
	OK(drv_shared_wait(e->shared, drv_shared_last(e->shared), false));
	fake_bad_jobs(1, -EIO, 7);
	OK(cuEventRecord(e, t.b[0]));
	IS(cuStreamSynchronize(t.b[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(drv_shared_wait(e->shared, drv_shared_last(e->shared), false));
	end(t.ctx);
}

/* One that is held up does not undo later ones, however many they are */
static void t_ipc_ring(void)
{
	struct streams t = streams(false);
	CUevent e = shared_event();

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuEventRecord(e, t.b[0]));
	for (int i = 0; i < 64; i++) {
		OK(cuEventRecord(e, t.nb[0]));
		OK(cuStreamSynchronize(t.nb[0]));
	}
	OK(cuEventQuery(e));
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuEventQuery(e));
	/* In one stream, as many as one likes may be held up */
	atomic_store(&gate, 0);
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	for (int i = 0; i < 200; i++)
		OK(cuEventRecord(e, t.b[0]));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuEventSynchronize(e));
	OK(cuEventQuery(e));
	end(t.ctx);
}

/* Nor does it undo those of another process, nor seem to be done by them */
static void t_ipc_both(void)
{
	struct streams t = streams(false);
	CUevent e = shared_event(), other;
	CUipcEventHandle handle;
	struct drv_name name;
	struct keeper k;

	OK(cuIpcGetEventHandle(&handle, e));
	k = keep();
	memcpy(&name, &handle, sizeof(name));
	name.pid = k.pid;
	memcpy(&handle, &name, sizeof(name));
	OK(cuIpcOpenEventHandle(&other, handle));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuEventRecord(e, t.b[0]));
	for (int i = 0; i < 64; i++) {
		OK(cuEventRecord(other, t.nb[0]));
		OK(cuStreamSynchronize(t.nb[0]));
	}
	OK(cuEventQuery(other));
	IS(drv_shared_wait(e->shared, 1, false), CUDA_ERROR_NOT_READY);
	/* All words are held: a recording elsewhere follows one of them */
	for (int i = 0; i < 100; i++)
		OK(cuEventRecord(e, t.b[0]));
	OK(cuEventRecord(other, t.nb[0]));
	nap(20);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.b[0]));
	OK(cuStreamSynchronize(t.nb[0]));
	OK(cuEventQuery(other));
	OK(cuEventQuery(e));
	let_go(&k);
	end(t.ctx);
}

/* ---- failures, and costs ---- */

/* A value that could not be looked at once is still waited for */
static void t_value_again(void)
{
	struct streams t = streams(false);

	OK(cuMemsetD8_v2(t.p, 0, 4096));
	OK(cuStreamWaitValue32_v2(t.nb[0], t.p, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	nap(20);
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	for (int i = 0; i < 1000 && fake_will_fail(FAKE_SUBMIT); i++)
		nap(10);
	CHECK(!fake_will_fail(FAKE_SUBMIT));
	nap(20);
	CHECK(!atomic_load(&ran));
	OK(cuMemsetD32Async(t.p, 5, 1, t.nb[1]));
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 1);
	end(t.ctx);
}

/* A job whose end could not be told is still under way */
static void t_wait_again(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;
	CUdeviceptr p;
	char b = 0;

	alarm(60);
	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8Async(p, 5, 1, NULL));
	fake_fail(FAKE_WAIT, 1, EFAULT);
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	CHECK(fake_jobs() == 1);
	fake_fail(FAKE_WAIT, 1, EFAULT);
	OK(cuStreamSynchronize(NULL));
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 5);
	end(ctx);
}

/* A copy that failed half way is no more at work when that is reported */
static void t_half_way(void)
{
	struct fake_config cfg = one;
	unsigned char *h;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s;
	void *m;

	alarm(60);
	cfg.memlock = 65536;
	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAlloc_v2(&p, 256 * KiB));
	OK(cuMemAllocHost_v2(&m, 256 * KiB));
	h = m;
	OK(cuMemsetD8_v2(p, 0x5a, 256 * KiB));
	OK(cuCtxSynchronize());
	OK(cuLaunchHostFunc(s, hold, NULL));
	OK(cuMemcpyDtoHAsync_v2(h, p, 256 * KiB, s));
	/* 256, 128, 64 and 64 KiB, 128, 64 */
	fake_fail(FAKE_SUBMIT, 6, EINVAL);
	atomic_store(&gate, 1);
	IS(cuStreamSynchronize(s), INVALID);
	CHECK(h[0] == 0x5a && h[128 * KiB - 1] == 0x5a && !h[128 * KiB]);
	end(ctx);
}

/* Of the sanitizers' allocator; not every compiler has the header */
size_t __sanitizer_get_current_allocated_bytes(void);

/* What the process has allocated and not freed; freed memory that is kept is not in it */
static size_t allocated(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return __sanitizer_get_current_allocated_bytes();
#else
	return mallinfo2().uordblks;
#endif
}

/* A question leaves nothing behind */
static void t_query_memory(void)
{
	struct streams t = streams(false);
	size_t before, after;

	for (int i = 0; i < 2; i++)
		OK(cuLaunchHostFunc(t.b[i], hold, NULL));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	before = allocated();
	for (int i = 0; i < 20000; i++)
		IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	after = allocated();
	/* Less than one byte each: its threads may begin meanwhile */
	if (after > before + 20000)
		fprintf(stderr, "%zu bytes before, %zu after\n", before, after);
	CHECK(after <= before + 20000);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(NULL));
	end(t.ctx);
}

static double records(struct streams *t, CUevent e, int n)
{
	struct timespec a, b;

	atomic_store(&gate, 0);
	OK(cuLaunchHostFunc(t->b[0], hold, NULL));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < n; i++) {
		OK(cuMemsetD8Async(t->p, 1, 1, t->b[0]));
		OK(cuEventRecord(e, t->b[0]));
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	return (double)(b.tv_sec - a.tv_sec) +
	       (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Four times as many records that are held up cost four times as much */
static void t_records(void)
{
	struct streams t = streams(false);
	double few, many;
	CUevent e;

	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	records(&t, e, 100);
	/* A processor that others share, or slow down, is not as fast at all times */
	for (int i = 0; i < 8; i++) {
		few = records(&t, e, 2000);
		many = records(&t, e, 8000);
		if (many <= 9 * few)
			break;
		fprintf(stderr, "2000: %.3f s, 8000: %.3f s\n", few, many);
	}
	CHECK(many <= 9 * few);
	end(t.ctx);
}

static double cpu_time(clockid_t of)
{
	struct timespec t;

	clock_gettime(of, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Long enough for who waits to wake up after each */
static void short_nap(void *arg)
{
	struct timespec t = { 0, 1000 };

	nanosleep(&t, NULL);
	note(arg);
}

struct waiter {
	struct streams *t;
	double time;
};

static void *wait_beside(void *arg)
{
	struct waiter *w = arg;

	OK(cuCtxSetCurrent(w->t->ctx));
	OK(cuStreamSynchronize(w->t->b[0]));
	w->time = cpu_time(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* To wait costs less than what is waited for, however much that is */
static void t_wait_cost(void)
{
	struct streams t = streams(false);
	struct waiter w = { .t = &t };
	pthread_t thread;
	double all;

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	for (int i = 0; i < 20000; i++)
		OK(cuLaunchHostFunc(t.b[0], short_nap, NULL));
	all = -cpu_time(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(!pthread_create(&thread, NULL, wait_beside, &w));
	nap(100);
	atomic_store(&gate, 1);
	CHECK(!pthread_join(thread, NULL));
	all += cpu_time(CLOCK_PROCESS_CPUTIME_ID);
	if (w.time > all / 2)
		fprintf(stderr, "%.3f s of %.3f s\n", w.time, all);
	CHECK(w.time <= all / 2);
	CHECK(atomic_load(&ran) == 20000);
	end(t.ctx);
}

/* A context ends while the library is busy for another one of the GPU, for ever */
static void t_destroy_beside(void)
{
	struct streams t = streams(false);
	CUcontext other;

	OK(cuCtxCreate_v2(&other, 0, 0));
	pthread_mutex_lock(&drv.order);
	t.ctx->file->helpers++;
	pthread_mutex_unlock(&drv.order);
	OK(cuCtxDestroy_v2(other));
	pthread_mutex_lock(&drv.order);
	t.ctx->file->helpers--;
	pthread_mutex_unlock(&drv.order);
	end(t.ctx);
}

/* A submission that waits for room holds up nobody who ends a stream */
static void t_stream_destroy(void)
{
	struct streams t = streams(false);
	struct drv_file *file = t.ctx->file;

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	pthread_mutex_lock(&file->submit_lock);
	OK(cuStreamDestroy_v2(t.b[0]));
	pthread_mutex_unlock(&file->submit_lock);
	OK(cuMemsetD8Async(t.p, 1, 1, NULL));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(NULL));
	end(t.ctx);
}

/* Nor who only asks, or records */
static void t_questions(void)
{
	struct streams t = streams(false);
	struct drv_file *file = t.ctx->file;
	CUevent e;

	OK(cuEventCreate(&e, 0));
	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	pthread_mutex_lock(&file->submit_lock);
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(t.b[1]));
	OK(cuStreamSynchronize(t.b[1]));
	OK(cuEventRecord(e, t.nb[0]));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	/* In the default stream, too; nor who has a stream wait, or call a function */
	OK(cuStreamWaitEvent(t.nb[1], e, 0));
	OK(cuLaunchHostFunc(t.nb[1], note, NULL));
	OK(cuEventRecord(e, NULL));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	CHECK(!atomic_load(&ran));
	atomic_store(&gate, 1);
	OK(cuEventSynchronize(e));
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamSynchronize(t.nb[1]));
	CHECK(atomic_load(&ran) == 1);
	pthread_mutex_unlock(&file->submit_lock);
	end(t.ctx);
}

/* A thread that submits, and stays in the driver */
struct submitter {
	struct streams *t;
	CUresult err;
	pthread_t thread;
};

static void *submit_fill(void *arg)
{
	struct submitter *s = arg;

	OK(cuCtxSetCurrent(s->t->ctx));
	s->err = cuMemsetD8Async(s->t->p, 9, 1, s->t->b[0]);
	return NULL;
}

static void submit_held(struct submitter *s, struct streams *t)
{
	s->t = t;
	fake_hold(FAKE_SUBMIT, true);
	CHECK(!pthread_create(&s->thread, NULL, submit_fill, s));
	for (int i = 0; i < 1000 && !fake_held(FAKE_SUBMIT); i++)
		nap(10);
	CHECK(fake_held(FAKE_SUBMIT) == 1);
}

/* It holds up nobody but those who submit, and what is asked for meanwhile is behind it */
static void t_submit_held(void)
{
	struct streams t = streams(false);
	struct submitter s;
	CUevent e;

	OK(cuEventCreate(&e, 0));
	submit_held(&s, &t);
	IS(cuStreamQuery(t.b[0]), CUDA_ERROR_NOT_READY);
	OK(cuEventRecord(e, NULL));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	OK(cuStreamWaitEvent(t.nb[0], e, 0));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuLaunchHostFunc(t.b[1], note, NULL));
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(t.b[1]), CUDA_ERROR_NOT_READY);
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	CHECK(!atomic_load(&ran));
	fake_hold(FAKE_SUBMIT, false);
	OK(cuEventSynchronize(e));
	CHECK(!pthread_join(s.thread, NULL));
	OK(s.err);
	OK(cuCtxSynchronize());
	CHECK(atomic_load(&ran) == 2);
	end(t.ctx);
}

/* It fails: what was asked for behind it is behind what was before it */
static void t_submit_refused(void)
{
	struct fake_config cfg = one;
	struct submitter s;
	struct streams t;
	CUevent e;

	alarm(60);
	cfg.manual = true;
	t.ctx = start(&cfg);
	OK(cuStreamCreate(&t.b[0], 0));
	OK(cuMemAlloc_v2(&t.p, 4096));
	OK(cuCtxSynchronize());
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (int before = 0; before < 2; before++) {
		atomic_store(&ran, 0);
		if (before)
			OK(cuMemsetD8Async(t.p, 1, 1, t.b[0]));
		submit_held(&s, &t);
		OK(cuLaunchHostFunc(t.b[0], note, NULL));
		OK(cuEventRecord(e, NULL));
		CHECK(!atomic_load(&ran));
		fake_fail(FAKE_SUBMIT, 1, EINVAL);
		fake_hold(FAKE_SUBMIT, false);
		CHECK(!pthread_join(s.thread, NULL));
		IS(s.err, INVALID);
		if (before) {
			nap(100);
			CHECK(!atomic_load(&ran));
			IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
			fake_step(0, t.b[0]->queue, 1);
		}
		CHECK(becomes(&ran, 1));
		OK(cuEventSynchronize(e));
		/* It is nothing that the stream was to do */
		OK(cuStreamSynchronize(t.b[0]));
		OK(cuCtxSynchronize());
	}
	end(t.ctx);
}

static bool is_helped(struct drv_file *file)
{
	unsigned int n;

	pthread_mutex_lock(&drv.order);
	n = file->helpers;
	pthread_mutex_unlock(&drv.order);
	return n;
}

/* Nor what is pending for another GPU */
static void t_submit_beside(void)
{
	struct two t = two_gpus(false);
	struct drv_file *file = t.ctx[0]->file;
	static atomic_int second;
	CUstream s;

	OK(cuLaunchHostFunc(t.s, hold, NULL));
	OK(cuMemsetD8Async(t.p[0], 1, 4096, t.s));
	OK(cuCtxSetCurrent(t.ctx[1]));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(s, hold, &second));
	OK(cuMemsetD8Async(t.p[1], 1, 4096, s));
	pthread_mutex_lock(&file->submit_lock);
	atomic_store(&gate, 1);
	for (int i = 0; i < 1000 && !is_helped(file); i++)
		nap(10);
	CHECK(is_helped(file));
	atomic_store(&second, 1);
	OK(cuStreamSynchronize(s));
	IS(cuStreamQuery(t.s), CUDA_ERROR_NOT_READY);
	pthread_mutex_unlock(&file->submit_lock);
	OK(cuStreamSynchronize(t.s));
	OK(cuCtxDestroy_v2(t.ctx[1]));
	OK(cuCtxSetCurrent(t.ctx[0]));
	end(t.ctx[0]);
}

/* The linker leads the library here */
static atomic_int no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg)
{
	return atomic_load(&no_threads) ? EAGAIN :
	       __real_pthread_create(thread, attr, run, arg);
}

/* So is its memory */
static atomic_int no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return atomic_load(&no_memory) ? NULL : __real_calloc(n, size);
}

static atomic_int second_ended, seen;

static void hold_second(void *arg)
{
	hold(arg);
	atomic_store(&second_ended, 1);
}

static void look_at_second(void *arg)
{
	(void)arg;
	atomic_store(&seen, 1 + atomic_load(&second_ended));
}

/* The default stream is behind streams that ended, for which there was no memory left */
static void t_stream_no_memory(void)
{
	struct streams t = streams(false);
	static atomic_int second;

	OK(cuLaunchHostFunc(t.b[0], hold, NULL));
	OK(cuLaunchHostFunc(t.b[1], hold_second, &second));
	atomic_store(&no_memory, 1);
	OK(cuStreamDestroy_v2(t.b[0]));
	OK(cuStreamDestroy_v2(t.b[1]));
	atomic_store(&no_memory, 0);
	OK(cuLaunchHostFunc(NULL, look_at_second, NULL));
	atomic_store(&gate, 1);
	nap(100);			/* time to go wrong */
	atomic_store(&second, 1);
	OK(cuStreamSynchronize(NULL));
	CHECK(atomic_load(&seen) == 2);
	end(t.ctx);
}

static void leave(void *arg)
{
	note(arg);
	pthread_exit(NULL);
}

static void leave_callback(CUstream stream, CUresult err, void *arg)
{
	(void)stream;
	CHECK(!err);
	leave(arg);
}

/* A function of the program that ends its thread ends like one that returns */
static void t_exit(void)
{
	struct streams t = streams(false);

	for (int i = 0; i < 3; i++) {
		OK(cuLaunchHostFunc(t.nb[0], leave, NULL));
		OK(cuStreamAddCallback(t.nb[0], leave_callback, NULL, 0));
	}
	OK(cuMemsetD8Async(t.p, 1, 1, t.nb[0]));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 7);
	/* Tasks that it would have taken find another thread */
	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	OK(cuLaunchHostFunc(t.nb[0], leave, NULL));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	atomic_store(&no_threads, 1);
	OK(cuLaunchHostFunc(t.nb[1], leave, NULL));
	OK(cuLaunchHostFunc(t.b[0], leave, NULL));
	OK(cuLaunchHostFunc(t.b[1], leave, NULL));
	atomic_store(&no_threads, 0);
	atomic_store(&gate, 1);
	OK(cuCtxSynchronize());
	CHECK(atomic_load(&ran) == 12);
	end(t.ctx);
}

static void let_cancel(void *arg)
{
	CHECK(!pthread_cancel(pthread_self()));
	note(arg);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
}

static void let_cancel_callback(CUstream stream, CUresult err, void *arg)
{
	(void)stream;
	CHECK(!err);
	let_cancel(arg);
}

static void be_cancelled(void *arg)
{
	let_cancel(arg);
	pthread_testcancel();
	CHECK(false);
}

/* One that lets its thread be cancelled does so for itself, and not for the library */
static void t_cancel_function(void)
{
	struct streams t = streams(false);

	OK(cuLaunchHostFunc(t.nb[0], let_cancel, NULL));
	OK(cuStreamAddCallback(t.nb[0], let_cancel_callback, NULL, 0));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 3);
	nap(100);			/* time to go wrong */
	/* A thread that is cancelled there ends like a function that returns */
	OK(cuLaunchHostFunc(t.nb[0], be_cancelled, NULL));
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	OK(cuStreamSynchronize(t.nb[0]));
	CHECK(atomic_load(&ran) == 5);
	end(t.ctx);
}

/* A task that no thread could be made for takes none from later tasks */
static void t_no_thread(void)
{
	struct streams t = streams(false);
	static atomic_int second;

	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	atomic_store(&no_threads, 1);
	OK(cuLaunchHostFunc(t.nb[1], hold, &second));
	OK(cuLaunchHostFunc(t.nb[1], note, NULL));
	atomic_store(&no_threads, 0);
	atomic_store(&gate, 1);
	OK(cuStreamSynchronize(t.nb[0]));
	nap(100);			/* its thread goes on to the second */
	OK(cuLaunchHostFunc(t.nb[0], note, NULL));
	CHECK(becomes(&ran, 1));
	atomic_store(&second, 1);
	OK(cuCtxSynchronize());
	CHECK(atomic_load(&ran) == 2);
	end(t.ctx);
}

/* Threads are made as soon as they can be */
static void t_thread_again(void)
{
	struct streams t = streams(false);
	static atomic_int second, third;

	OK(cuLaunchHostFunc(t.nb[0], hold, NULL));
	atomic_store(&no_threads, 1);
	OK(cuLaunchHostFunc(t.nb[1], note, NULL));
	for (int i = 0; i < 10; i++)
		IS(cuStreamQuery(t.nb[1]), CUDA_ERROR_NOT_READY);
	atomic_store(&no_threads, 0);
	/* By who asks */
	for (int i = 0; i < 1000 && cuStreamQuery(t.nb[1]); i++)
		nap(10);
	CHECK(atomic_load(&ran) == 1);
	/* By who asks for more */
	OK(cuLaunchHostFunc(t.nb[1], hold, &second));
	atomic_store(&no_threads, 1);
	OK(cuLaunchHostFunc(t.b[0], hold, &third));
	atomic_store(&no_threads, 0);
	OK(cuLaunchHostFunc(t.b[1], note, NULL));
	CHECK(becomes(&ran, 2));
	/* And by who waits */
	atomic_store(&no_threads, 1);
	OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, hold, NULL));
	OK(cuLaunchHostFunc(t.b[1], note, NULL));
	atomic_store(&no_threads, 0);
	OK(cuStreamSynchronize(t.b[1]));
	IS(cuStreamQuery(t.nb[0]), CUDA_ERROR_NOT_READY);
	atomic_store(&gate, 1);
	atomic_store(&second, 1);
	atomic_store(&third, 1);
	OK(cuCtxSynchronize());
	CHECK(atomic_load(&ran) == 3);
	end(t.ctx);
}

/* What waits for the program takes no thread from what lets the engine go on */
static void t_thread_apart(void)
{
	struct fake_config cfg = one;
	CUstream waits, before, writes;
	CUdeviceptr p;
	CUcontext ctx;
	CUevent e;
	void *m;

	alarm(60);
	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&before, 0));
	OK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAllocHost_v2(&m, 4096));
	memset(m, 0, 4096);
	OK(cuMemsetD32_v2(p, 5, 1));
	OK(cuStreamWaitValue32_v2(waits, (uintptr_t)m, 5, CU_STREAM_WAIT_VALUE_EQ));
	atomic_store(&no_threads, 1);
	OK(cuMemsetD8Async(p + 64, 1, 1, before));
	OK(cuEventRecord(e, before));
	OK(cuStreamWaitEvent(writes, e, 0));
	OK(cuMemcpyDtoHAsync_v2(m, p, 4, writes));
	fake_step(0, before->queue, 1);
	for (int i = 0; i < 500 && cuStreamQuery(waits); i++) {
		fake_step(0, writes->queue, 1);
		nap(10);
	}
	OK(cuStreamQuery(waits));
	end(ctx);
}

static void look_at_mask(void *arg)
{
	pthread_sigmask(SIG_BLOCK, NULL, arg);
}

/* A fault in a function of the program finds the program's handler */
static void t_signals(void)
{
	struct streams t = streams(false);
	sigset_t set;

	OK(cuLaunchHostFunc(t.b[0], look_at_mask, &set));
	OK(cuStreamSynchronize(t.b[0]));
	CHECK(sigismember(&set, SIGINT) && sigismember(&set, SIGCHLD));
	CHECK(!sigismember(&set, SIGSEGV) && !sigismember(&set, SIGBUS) &&
	      !sigismember(&set, SIGFPE) && !sigismember(&set, SIGILL));
	end(t.ctx);
}

static const struct unit_test tests[] = {
	{ "who submits does not wait", t_submitter },
	{ "the default stream's order", t_legacy },
	{ "the end of a context", t_destroy },
	{ "what synchronous calls have left", t_sync_memops },
	{ "what they have left in several streams", t_sync_memops_own },
	{ "what another context has left", t_left_beside },
	{ "what is left of many rows", t_left_many },
	{ "what is left when nothing is to be", t_left_late },
	{ "synchronous calls that leave nothing", t_sync_rows },
	{ "a thread's own default stream", t_per_thread },
	{ "second symbols of functions", t_second_symbols },
	{ "times of events", t_times },
	{ "values", t_values },
	{ "values, with a window", t_values_window },
	{ "many pending jobs", t_many },
	{ "pending copies by steps", t_memlock },
	{ "copies by steps are in the kernel at once", t_memlock_now },
	{ "a peer's memory is freed behind copies", t_free_peer },
	{ "and so is all that its context has", t_destroy_peer },
	{ "a context ends with memory that a value is awaited in", t_destroy_awaited },
	{ "memory is freed beside work of another GPU", t_free_beside },
	{ "copies between memory of GPUs", t_device_copy },
	{ "copies of pageable memory", t_stage },
	{ "copies of pageable memory by steps", t_stage_steps },
	{ "memory of no pool is freed in order", t_free_in_order },
	{ "a thread is cancelled", t_cancel },
	{ "errors of fills by a peer", t_peer_fill },
	{ "an event of processes ends before its recording", t_ipc_destroy },
	{ "a recording for other processes fails", t_ipc_failure },
	{ "many recordings for other processes", t_ipc_ring },
	{ "recordings of two processes", t_ipc_both },
	{ "a value is looked at again", t_value_again },
	{ "the end of a job is asked for again", t_wait_again },
	{ "a copy fails half way", t_half_way },
	{ "questions leave nothing", t_query_memory },
	{ "the cost of records", t_records },
	{ "the cost of a wait", t_wait_cost },
	{ "the end of a context beside a busy one", t_destroy_beside },
	{ "the end of a stream during a submission", t_stream_destroy },
	{ "questions during a submission", t_questions },
	{ "another GPU's work during a submission", t_submit_beside },
	{ "a submission stays in the driver", t_submit_held },
	{ "a submission stays in the driver, and fails", t_submit_refused },
	{ "the end of a stream without memory", t_stream_no_memory },
	{ "a function ends its thread", t_exit },
	{ "a function lets its thread be cancelled", t_cancel_function },
	{ "signals of threads", t_signals },
	{ "a thread that cannot be made", t_no_thread },
	{ "a thread that can be made later", t_thread_again },
	{ "threads that nothing holds up", t_thread_apart },
};

UNIT_MAIN(tests)
