// SPDX-License-Identifier: MIT
/*
 * Memory pools, managed memory, batches, fills of two dimensions, and dma-bufs of
 * several mappings, on the fake driver.
 */
#include <sys/mman.h>

#include "unit.h"

static const struct fake_config window = {
	.gpus = 1, .vram = 64 * MiB, .queues = 4, .coherent = true,
	.dmabuf = true,
};

static uint64_t value(CUmemoryPool pool, CUmemPool_attribute attr)
{
	uint64_t v = 77;

	OK(cuMemPoolGetAttribute(pool, attr, &v));
	return v;
}

#define RESERVED(pool)	value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(pool)	value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

static CUmemoryPool make(unsigned int handle_types, size_t max)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = handle_types,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.maxSize = max,
	};
	CUmemoryPool pool = NULL;

	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static void keep_all(CUmemoryPool pool)
{
	uint64_t all = ~0ull;

	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
}

static void reuse(CUmemoryPool pool, CUmemPool_attribute attr, int on)
{
	OK(cuMemPoolSetAttribute(pool, attr, &on));
}

/* What is freed is not given to others before the work on it has ended */
static void t_order(void)
{
	struct fake_config cfg = one;
	CUdeviceptr p, q, r, others[41];
	unsigned char b = 0;
	int n;
	CUmemoryPool pool;
	CUstream s, t;
	CUcontext ctx;

	cfg.manual = true;
	ctx = start(&cfg);
	pool = make(0, 0);
	keep_all(pool);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocFromPoolAsync(&p, 100000, pool, s));
	OK(cuMemsetD8Async(p, 0x11, 100000, s));
	OK(cuMemFreeAsync(p, s));
	CHECK(USED(pool) == 0);
	/* The same stream: at once, the queue is in order */
	OK(cuMemAllocFromPoolAsync(&q, 100000, pool, s));
	CHECK(q == p);
	OK(cuMemsetD8Async(q, 0x22, 100000, s));
	OK(cuMemFreeAsync(q, s));
	/* Another one may not wait: elsewhere */
	reuse(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
	OK(cuMemAllocFromPoolAsync(&r, 2000000, pool, t));
	OK(cuMemAllocFromPoolAsync(&q, 100000, pool, t));
	CHECK(q != p);
	OK(cuMemFreeAsync(q, t));
	OK(cuMemFreeAsync(r, t));
	/* It may: then its work comes after the other stream's */
	reuse(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1);
	for (n = 0; n < 40; n++) {
		OK(cuMemAllocFromPoolAsync(&others[n], 100000, pool, t));
		if (others[n] == p)
			break;
	}
	CHECK(n < 40);
	q = p;
	OK(cuMemsetD8Async(q, 0x33, 100000, t));
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(t));
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	CHECK(b == 0x33);
	for (int i = 0; i <= n; i++)
		OK(cuMemFreeAsync(others[i], t));
	OK(cuStreamSynchronize(t));
	OK(cuMemPoolDestroy(pool));
	end(ctx);
}

/* By chance: only when the job has ended by itself */
static void t_chance(void)
{
	struct fake_config cfg = one;
	CUdeviceptr p, q;
	CUmemoryPool pool;
	CUstream s, t;
	CUcontext ctx;

	cfg.manual = true;
	ctx = start(&cfg);
	pool = make(0, 0);
	keep_all(pool);
	reuse(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocFromPoolAsync(&p, 2 * MiB, pool, s));
	OK(cuMemsetD8Async(p, 0x11, 2 * MiB, s));
	OK(cuMemFreeAsync(p, s));
	for (unsigned int q_nr = 0; q_nr < 4; q_nr++)
		fake_step(0, q_nr, 100);
	reuse(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
	OK(cuMemAllocFromPoolAsync(&q, 2 * MiB, pool, t));
	CHECK(q != p);		/* nobody has asked whether it has ended */
	OK(cuMemFreeAsync(q, t));
	reuse(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(RESERVED(pool) == 0);
	OK(cuMemPoolDestroy(pool));
	end(ctx);
}

static void t_accounts(void)
{
	CUcontext ctx = start(&one);
	CUmemoryPool pool = make(0, 0), own;
	CUmemAllocationProp by_hand = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle h = 0, more;
	CUdeviceptr p[300], q;
	uint64_t zero = 0;
	CUevent e;

	CHECK(RESERVED(pool) == 0 && USED(pool) == 0);
	/* Small ones share a slab, and come back to it */
	for (int i = 0; i < 300; i++) {
		OK(cuMemAllocFromPoolAsync(&p[i], 1 + (size_t)i * 7 % 3000, pool,
					   NULL));
		OK(cuMemsetD8Async(p[i], (unsigned char)i,
				   1 + (size_t)i * 7 % 3000, NULL));
	}
	CHECK(RESERVED(pool) == 2 * MiB && fake_handles() == 1);
	for (int i = 0; i < 300; i++) {
		unsigned char b;

		OK(cuMemcpyDtoH_v2(&b, p[i] + (unsigned int)i * 7 % 3000, 1));
		CHECK(b == (unsigned char)i);
		OK(cuMemFreeAsync(p[i], NULL));
	}
	CHECK(USED(pool) == 0 && RESERVED(pool) == 2 * MiB);
	OK(cuMemAllocFromPoolAsync(&q, 2 * MiB, pool, NULL));
	CHECK(fake_handles() == 1);	/* the blocks have become one again */
	OK(cuMemFreeAsync(q, NULL));
	CHECK(value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2 * MiB);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
	CHECK(value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
	/* Every kind of synchronization gives back what is above the threshold */
	OK(cuStreamSynchronize(NULL));
	CHECK(RESERVED(pool) == 0 && fake_handles() == 0);
	OK(cuEventCreate(&e, 0));
	OK(cuMemAllocFromPoolAsync(&q, 100, pool, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuEventRecord(e, NULL));
	OK(cuEventSynchronize(e));
	CHECK(RESERVED(pool) == 0);
	OK(cuMemAllocFromPoolAsync(&q, 100, pool, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuCtxSynchronize());
	CHECK(RESERVED(pool) == 0);
	/* Up to the threshold it stays; until somebody trims */
	keep_all(pool);
	OK(cuMemAllocFromPoolAsync(&q, 5 * MiB, pool, NULL));
	OK(cuMemAllocFromPoolAsync(&p[0], 5 * MiB, pool, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuCtxSynchronize());
	CHECK(RESERVED(pool) == 12 * MiB);
	OK(cuMemPoolTrimTo(pool, 7 * MiB));
	CHECK(RESERVED(pool) == 12 * MiB);	/* less than that would stay */
	OK(cuMemPoolTrimTo(pool, 6 * MiB));
	CHECK(RESERVED(pool) == 6 * MiB);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(RESERVED(pool) == 6 * MiB);	/* in use */
	OK(cuMemFreeAsync(p[0], NULL));
	OK(cuMemPoolDestroy(pool));
	IS(cuMemPoolDestroy(pool), INVALID);
	IS(cuMemPoolTrimTo(pool, 0), INVALID);
	/* What others need, the pool gives back: here, all memory but a bit */
	OK(cuDeviceGetDefaultMemPool(&own, 0));
	keep_all(own);
	OK(cuMemAllocAsync(&q, 40 * MiB, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(RESERVED(own) == 40 * MiB);
	OK(cuMemAlloc_v2(&q, 40 * MiB));
	CHECK(RESERVED(own) == 0);
	IS(cuMemAllocAsync(&p[0], 40 * MiB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(q));
	/* And to memory by hand */
	OK(cuMemAllocAsync(&q, 40 * MiB, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(RESERVED(own) == 40 * MiB);
	OK(cuMemCreate(&h, 40 * MiB, &by_hand, 0));
	CHECK(RESERVED(own) == 0);
	IS(cuMemCreate(&more, 40 * MiB, &by_hand, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemRelease(h));
	/* Another pool of the same device gives back too */
	pool = make(0, 0);
	keep_all(pool);
	OK(cuMemAllocFromPoolAsync(&q, 40 * MiB, pool, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuMemAllocAsync(&q, 40 * MiB, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuMemPoolTrimTo(own, 0));
	OK(cuMemPoolDestroy(pool));
	end(ctx);
}

/* No less stays than who trims is to keep; the threshold is for what is above it */
static void kept(bool by_threshold)
{
	static const size_t sizes[] = { 2 * MiB, 4 * MiB, 2 * MiB };
	CUcontext ctx = start(&one);
	CUmemoryPool pool = make(0, 0);
	uint64_t keep = 5 * MiB, stays;
	CUdeviceptr p[3];

	keep_all(pool);
	for (int i = 0; i < 3; i++)
		OK(cuMemAllocFromPoolAsync(&p[i], sizes[i], pool, NULL));
	for (int i = 0; i < 3; i++)
		OK(cuMemFreeAsync(p[i], NULL));
	OK(cuCtxSynchronize());
	CHECK(RESERVED(pool) == 8 * MiB);
	if (by_threshold) {
		OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
					 &keep));
		OK(cuCtxSynchronize());
	} else {
		OK(cuMemPoolTrimTo(pool, keep));
	}
	stays = RESERVED(pool);
	CHECK(by_threshold ? stays < keep : stays == 6 * MiB);
	CHECK(stays);
	OK(cuMemPoolTrimTo(pool, 8 * MiB));
	CHECK(RESERVED(pool) == stays);
	OK(cuMemPoolDestroy(pool));
	end(ctx);
}

static void t_trim(void)
{
	kept(false);
}

static void t_threshold(void)
{
	kept(true);
}

static void t_limits(void)
{
	CUcontext ctx = start(&one);
	CUmemoryPool pool = make(0, 4 * MiB);
	CUdeviceptr p, q, gone;
	CUstream s;

	OK(cuMemAllocFromPoolAsync(&p, 3 * MiB, pool, NULL));
	IS(cuMemAllocFromPoolAsync(&q, 3 * MiB, pool, NULL),
	   CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAllocFromPoolAsync(&q, 1ull << 60, pool, NULL),
	   CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAllocFromPoolAsync(&q, SIZE_MAX, pool, NULL),
	   CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAllocFromPoolAsync(&q, 10, BAD_PTR(CUmemoryPool), NULL),
	   INVALID);
	IS(cuMemAllocFromPoolAsync(&q, 10, (CUmemoryPool)ctx, NULL), INVALID);
	IS(cuMemAllocFromPoolAsync(&q, 10, pool, BAD_PTR(CUstream)),
	   CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFreeAsync(p, BAD_PTR(CUstream)), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFreeAsync(p + 1, NULL), INVALID);
	/* What is kept and too small makes room */
	keep_all(pool);
	OK(cuMemFree_v2(p));
	OK(cuMemPoolTrimTo(pool, 0));
	OK(cuMemAllocFromPoolAsync(&p, 2 * MiB, pool, NULL));
	OK(cuMemFree_v2(p));
	CHECK(RESERVED(pool) == 2 * MiB);
	OK(cuMemAllocFromPoolAsync(&p, 3 * MiB, pool, NULL));
	CHECK(RESERVED(pool) == 4 * MiB);
	/* Destroyed while in use: it ends with its last memory */
	OK(cuMemPoolDestroy(pool));
	IS(cuMemAllocFromPoolAsync(&q, 10, pool, NULL), INVALID);
	OK(cuMemsetD8_v2(p, 1, 3 * MiB));
	CHECK(fake_handles() == 1);
	OK(cuMemFree_v2(p));
	CHECK(fake_handles() == 0);
	IS(cuMemFree_v2(p), INVALID);
	/* A stream's pool memory outlives the context that it was asked in */
	OK(cuStreamCreate(&s, 0));
	OK(cuMemAllocAsync(&gone, 100, s));
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemsetD8_v2(gone, 1, 100));
	OK(cuMemFreeAsync(gone, NULL));
	OK(cuStreamSynchronize(NULL));
	end(ctx);
}

/* Every call of the kernel that can fail, does */
static void t_failures(void)
{
	CUcontext ctx = start(&one);
	CUmemoryPool pool = make(0, 0);
	CUdeviceptr p;

	fake_fail(FAKE_ALLOC, 1, EIO);
	IS(cuMemAllocFromPoolAsync(&p, 10, pool, NULL),
	   CUDA_ERROR_LAUNCH_FAILED);
	fake_fail(FAKE_ALLOC, 1, ENOMEM);
	IS(cuMemAllocFromPoolAsync(&p, 10, pool, NULL),
	   CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(RESERVED(pool) == 0 && USED(pool) == 0);
	OK(cuMemAllocFromPoolAsync(&p, 10, pool, NULL));
	fake_reset(0);
	IS(cuMemsetD8_v2(p, 1, 10), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemFreeAsync(p, NULL), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxDestroy_v2(ctx));
	/* A new context has a new file; the pool makes new slabs */
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemAllocFromPoolAsync(&p, 10, pool, NULL));
	OK(cuMemsetD8_v2(p, 1, 10));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemPoolDestroy(pool));
	OK(cuCtxDestroy_v2(ctx));
	CHECK(fake_files() == 0);
}

/* A pool and its memory, in another process */
static void t_share(void)
{
	CUcontext ctx = start(&one);
	CUmemoryPool pool = make(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	CUmemoryPool plain = make(0, 0), other;
	CUmemPoolPtrExportData data, wrong;
	CUdeviceptr p, q;
	int fd = -1, pair[2];
	char x = 'x';

	OK(cuMemAllocFromPoolAsync(&p, 5000, pool, NULL));
	OK(cuMemAllocFromPoolAsync(&q, 5000, plain, NULL));
	IS(cuMemPoolExportPointer(&data, q), INVALID);
	IS(cuMemPoolExportPointer(&data, p + 1), INVALID);
	fake_fail(FAKE_EXPORT, 1, ENOMEM);
	IS(cuMemPoolExportPointer(&data, p), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemPoolExportPointer(&data, p));
	IS(cuMemPoolExportToShareableHandle(&fd, plain, 1, 0), INVALID);
	OK(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0));
	CHECK(write(fd, &x, 1) < 0);	/* sealed */
	/* Descriptors of other things are none of a pool */
	CHECK(!pipe(pair));
	IS(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)pair[0],
					      1, 0), INVALID);
	IS(cuMemPoolImportFromShareableHandle(&other, (void *)-1l, 1, 0),
	   CUDA_ERROR_UNKNOWN);
	OK(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, 1,
					      0));
	IS(cuMemAllocFromPoolAsync(&q, 1, other, NULL), INVALID);
	IS(cuMemPoolExportToShareableHandle(&fd, other, 1, 0), INVALID);
	IS(cuDeviceSetMemPool(0, other), INVALID);
	/* Our own: as with other handles, it takes another process */
	IS(cuMemPoolImportPointer(&q, other, &data),
	   CUDA_ERROR_INVALID_CONTEXT);
	wrong = data;
	memset(wrong.reserved + 40, 1, 8);
	IS(cuMemPoolImportPointer(&q, other, &wrong), INVALID);
	IS(cuMemPoolImportPointer(&q, pool, &data), INVALID);
	/* What was exported is not given to somebody else */
	OK(cuMemFree_v2(p));
	OK(cuMemAllocFromPoolAsync(&q, 5000, pool, NULL));
	CHECK(q != p);
	OK(cuMemFree_v2(q));
	OK(cuMemPoolDestroy(other));
	OK(cuMemPoolDestroy(pool));
	OK(cuMemPoolDestroy(plain));
	close(fd);
	OK(cuCtxDestroy_v2(ctx));
}

/* Memory of pools is not exported for devices, as on a real GPU */
static void t_no_rdma(void)
{
	CUcontext ctx = start(&window);
	CUdeviceptr p, q;
	int fd = -1, can = 77;

	OK(cuMemAllocAsync(&p, 4 * MiB, NULL));
	OK(cuMemAllocManaged(&q, 4 * MiB, CU_MEM_ATTACH_GLOBAL));
	OK(cuPointerGetAttribute(&can,
			CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p));
	CHECK(can == 0);
	IS(cuMemGetHandleForAddressRange(&fd, p, MiB,
			CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), INVALID);
	IS(cuMemGetHandleForAddressRange(&fd, q, MiB,
			CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0), INVALID);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemFree_v2(q));
	OK(cuCtxSynchronize());
	end(ctx);
}

static void t_managed(void)
{
	CUcontext ctx = start(&window);
	unsigned char buf[3 * 4096], *cpu;
	CUdeviceptr p;
	int v = 77, by[2];

	OK(cuMemAllocManaged(&p, 3 * 4096, CU_MEM_ATTACH_GLOBAL));
	cpu = (unsigned char *)(uintptr_t)p;
	pattern(cpu, 3 * 4096, 5);		/* by the CPU */
	OK(cuMemcpyDtoH_v2(buf, p, sizeof(buf)));
	CHECK(!memcmp(buf, cpu, sizeof(buf)));
	OK(cuMemsetD8_v2(p + 100, 0x42, 50));
	CHECK(cpu[100] == 0x42 && cpu[149] == 0x42 && cpu[150] == buf[150]);
	/* Advice is of pages; a range says what all of its pages say */
	OK(cuMemAdvise(p + 4096, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	OK(cuMemAdvise(p, 8192, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0));
	OK(cuMemAdvise(p + 8192, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
		       CU_DEVICE_CPU));
	OK(cuMemAdvise(p, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	OK(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
				  p + 4096, 4096));
	CHECK(v == 1);
	OK(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
				  p + 4000, 200));
	CHECK(v == 0);
	OK(cuMemRangeGetAttribute(&v, 4,
				  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
				  8192));
	CHECK(v == 0);
	OK(cuMemRangeGetAttribute(&v, 4,
				  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p,
				  8193));
	CHECK(v == CU_DEVICE_INVALID);
	OK(cuMemRangeGetAttribute(by, sizeof(by),
				  CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096));
	CHECK(by[0] == 0 && by[1] == CU_DEVICE_INVALID);
	OK(cuMemRangeGetAttribute(by, sizeof(by),
				  CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4097));
	CHECK(by[0] == CU_DEVICE_INVALID);
	IS(cuMemAdvise(p, 3 * 4096 + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, 0),
	   INVALID);
	OK(cuMemPrefetchAsync(p, 3 * 4096, CU_DEVICE_CPU, NULL));
	CHECK(cpu[100] == 0x42);		/* it stays where it is */
	IS(cuMemPrefetchAsync(p, 4096, 0, BAD_PTR(CUstream)),
	   CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamAttachMemAsync(NULL, p, 0, 3), INVALID);
	IS(cuStreamAttachMemAsync(NULL, p, 0, 0), INVALID);
	IS(cuStreamAttachMemAsync(NULL, p + 1, 0, 1), INVALID);
	OK(cuMemFree_v2(p));
	IS(cuMemAdvise(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), INVALID);
	end(ctx);
}

static void t_no_managed(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p;
	int has = 77;

	OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
	CHECK(has == 0);
	IS(cuMemAllocManaged(&p, 100, 1), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemAllocManaged(&p, 0, 1), INVALID);
	end(ctx);
}

static void t_batch(void)
{
	CUcontext ctx = start(&one);
	CUmemcpyAttributes attrs[2] = {
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
	};
	CUdeviceptr p, dst[3], src[3];
	size_t sizes[3] = { 10, 20, 30 }, starts[2] = { 0, 2 }, bad = 0;
	unsigned char out[60];
	unsigned char *in;
	CUstream s;
	void *mem;

	OK(cuMemAllocHost_v2(&mem, 4096));
	in = mem;
	pattern(in, 60, 3);
	OK(cuMemAlloc_v2(&p, 60));
	OK(cuMemsetD8_v2(p, 0, 60));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0, at = 0; i < 3; at += sizes[i++]) {
		dst[i] = p + at;
		src[i] = (uintptr_t)in + at;
	}
	OK(cuMemcpyBatchAsync(dst, src, sizes, 3, attrs, starts, 2, &bad, s));
	CHECK(bad == SIZE_MAX);
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH_v2(out, p, 60));
	CHECK(!memcmp(in, out, 60));
	/* A wrong one: it is named, and none is copied */
	OK(cuMemsetD8_v2(p, 0, 60));
	sizes[2] = 31;
	IS(cuMemcpyBatchAsync(dst, src, sizes, 3, attrs, starts, 2, &bad, s),
	   INVALID);
	CHECK(bad == 2);
	OK(cuStreamSynchronize(s));
	OK(cuMemcpyDtoH_v2(out, p, 60));
	for (size_t i = 0; i < 60; i++)
		CHECK(out[i] == 0);
	sizes[2] = 30;
	/* The kernel fails at the second */
	fake_fail(FAKE_SUBMIT, 2, ENOMEM);
	IS(cuMemcpyBatchAsync(dst, src, sizes, 3, attrs, starts, 2, &bad, s),
	   CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(bad == 1);
	OK(cuMemFreeHost(mem));
	end(ctx);
}

static void t_fill_2d(void)
{
	CUcontext ctx = start(&one);
	unsigned char b[64 * 4];
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, sizeof(b)));
	OK(cuMemsetD8_v2(p, 0, sizeof(b)));
	OK(cuMemsetD2D16_v2(p + 64, 64, 0x1234, 3, 2));
	OK(cuMemcpyDtoH_v2(b, p, sizeof(b)));
	for (int i = 0; i < (int)sizeof(b); i++) {
		int row = i / 64, at = i % 64;
		int want = (row == 1 || row == 2) && at < 6 ?
			   (at % 2 ? 0x12 : 0x34) : 0;

		CHECK(b[i] == want);
	}
	/* The last row ends where the memory ends; one byte more does not */
	OK(cuMemsetD2D8_v2(p + 60, 64, 1, 4, 4));
	IS(cuMemsetD2D8_v2(p + 60, 64, 1, 5, 4), INVALID);
	IS(cuMemsetD2D8_v2(p, SIZE_MAX, 1, 1, 3), INVALID);
	IS(cuMemsetD2D32_v2(p, 64, 1, SIZE_MAX / 2, 2), INVALID);
	end(ctx);
}

static void t_parts(void)
{
	CUcontext ctx = start(&one);
	CUmemAllocationProp by_hand = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle h[3];
	CUdeviceptr p, plain;
	int fd = -1;

	OK(cuMemAddressReserve(&p, 8 * MiB, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuMemCreate(&h[i], 2 * MiB, &by_hand, 0));
		OK(cuMemMap(p + (CUdeviceptr)i * 2 * MiB, 2 * MiB, 0, h[i], 0));
	}
	/* From inside the first to inside the third */
	OK(EXPORT(&fd, p + MiB, 4 * MiB));
	CHECK(fake_export_size(fd) == 4 * MiB);
	close(fd);
	OK(EXPORT(&fd, p, 6 * MiB));
	CHECK(fake_export_size(fd) == 6 * MiB);
	close(fd);
	/* One mapping is as it was */
	OK(EXPORT(&fd, p + 2 * MiB, 2 * MiB));
	CHECK(fake_export_size(fd) == 2 * MiB);
	close(fd);
	/* Into the hole at the end, or from before the beginning */
	IS(EXPORT(&fd, p + 4 * MiB, 4 * MiB), INVALID);
	IS(EXPORT(&fd, p, SIZE_MAX - 4095), INVALID);
	fake_fail(FAKE_EXPORT, 1, ENOMEM);
	IS(EXPORT(&fd, p, 6 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	/* Allocations that are not mapped by hand end where they end */
	OK(cuMemAlloc_v2(&plain, 2 * MiB));
	IS(EXPORT(&fd, plain, 4 * MiB), INVALID);
	for (int i = 0; i < 3; i++) {
		OK(cuMemUnmap(p + (CUdeviceptr)i * 2 * MiB, 2 * MiB));
		OK(cuMemRelease(h[i]));
	}
	OK(cuMemAddressFree(p, 8 * MiB));
	end(ctx);
}

struct exporter {
	CUcontext ctx;
	CUdeviceptr p;
	int fd;
	CUresult err;
	pthread_t thread;
};

static void *export_run(void *arg)
{
	struct exporter *e = arg;

	OK(cuCtxSetCurrent(e->ctx));
	e->err = EXPORT(&e->fd, e->p, 2 * MiB);
	return NULL;
}

/* Another thread's export stays in the driver until export_end() */
static void export_begin(struct exporter *e)
{
	fake_hold(FAKE_EXPORT, true);
	CHECK(!pthread_create(&e->thread, NULL, export_run, e));
	for (int i = 0; i < 10000 && !fake_held(FAKE_EXPORT); i++)
		usleep(1000);
	CHECK(fake_held(FAKE_EXPORT) == 1);
}

static void export_end(struct exporter *e)
{
	fake_hold(FAKE_EXPORT, false);
	CHECK(!pthread_join(e->thread, NULL));
	OK(e->err);
	close(e->fd);
}

/* What is unmapped while it is being exported: its addresses are the program's at once */
static void t_unmap_exported(void)
{
	CUcontext ctx = start(&one);
	CUmemAllocationProp by_hand = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	struct exporter e = { .ctx = ctx };
	CUmemGenericAllocationHandle h;
	unsigned char *mine;

	OK(cuMemAddressReserve(&e.p, 2 * MiB, 0, 0, 0));
	OK(cuMemCreate(&h, 2 * MiB, &by_hand, 0));
	/* For another map */
	OK(cuMemMap(e.p, 2 * MiB, 0, h, 0));
	export_begin(&e);
	OK(cuMemUnmap(e.p, 2 * MiB));
	OK(cuMemMap(e.p, 2 * MiB, 0, h, 0));
	export_end(&e);
	OK(EXPORT(&e.fd, e.p, 2 * MiB));
	close(e.fd);
	/* For memory of its own; the memory of the GPU is the export's to the end */
	export_begin(&e);
	OK(cuMemUnmap(e.p, 2 * MiB));
	OK(cuMemAddressFree(e.p, 2 * MiB));
	OK(cuMemRelease(h));
	mine = mmap((void *)(uintptr_t)e.p, 2 * MiB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(mine == (void *)(uintptr_t)e.p);
	if (failed)
		return;
	memset(mine, 0x5a, 2 * MiB);
	CHECK(fake_handles() == 1);
	export_end(&e);
	CHECK(fake_handles() == 0);
	CHECK(mine[0] == 0x5a && mine[2 * MiB - 1] == 0x5a);
	munmap(mine, 2 * MiB);
	end(ctx);
}

/* Between its last reference and its leaving the list, nobody takes another */
static void t_dying_pool(void)
{
	CUcontext ctx = start(&one);
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemoryPool pool;

	OK(cuMemPoolCreate(&pool, &props));
	atomic_store(&pool->obj.refs, 0);
	OK(cuStreamSynchronize(NULL));	/* looks through all pools */
	CHECK(LIST_FIRST(&drv.devices[0].pools) == pool);
	if (failed)
		return;
	atomic_store(&pool->obj.refs, 1);
	OK(cuMemPoolDestroy(pool));
	end(ctx);
}

/*
 * A block passes from stream to stream of one queue.  Its new owner has it when the
 * allocation is done, says a synchronized stream or an event, and then the old
 * owner's work is, too.
 */
static void next_owner(bool by_event)
{
	struct fake_config cfg = one;
	CUdeviceptr p, q;
	unsigned char b[4] = { 0 }, *h;
	CUstream s, t, nb;
	CUcontext ctx;
	CUevent e;
	void *m;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamCreate(&t, 0));
	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuMemAllocHost_v2(&m, 4096));
	h = memset(m, 0x22, 4096);
	OK(cuMemAllocAsync(&p, 4096, s));
	OK(cuMemsetD8Async(p, 0x11, 4096, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuMemAllocAsync(&q, 4096, t));
	CHECK(p == q);
	if (by_event) {
		OK(cuEventRecord(e, t));
		OK(cuStreamWaitEvent(nb, e, 0));
	} else {
		OK(cuStreamSynchronize(t));
	}
	OK(cuMemcpyHtoDAsync_v2(q, h, 4096, nb));
	OK(cuStreamSynchronize(nb));
	fake_step(0, 0, 100);
	OK(cuMemcpyDtoH_v2(b, q, 4));
	CHECK(b[0] == 0x22 && b[3] == 0x22);
	OK(cuMemFree_v2(q));
	OK(cuCtxSynchronize());
	OK(cuMemFreeHost(m));
	end(ctx);
}

static void t_next_owner(void)
{
	next_owner(false);
}

static void t_next_owner_by_event(void)
{
	next_owner(true);
}

/* Freed in a stream that has waited for the one that uses it */
static void t_free_elsewhere(void)
{
	struct fake_config cfg = one;
	unsigned char b = 0;
	CUdeviceptr p, q;
	CUstream s, t, nb;
	CUcontext ctx;
	CUevent e;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamCreate(&t, 0));
	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuMemAllocAsync(&p, 4096, s));
	OK(cuMemsetD8Async(p, 0x33, 4096, s));
	OK(cuEventRecord(e, s));
	OK(cuStreamWaitEvent(t, e, 0));
	OK(cuMemFreeAsync(p, t));
	OK(cuMemAllocAsync(&q, 4096, nb));
	OK(cuMemsetD8Async(q, 0x44, 4096, nb));
	OK(cuStreamSynchronize(nb));
	fake_step(0, 0, 100);
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	CHECK(b == 0x44);
	OK(cuMemFree_v2(q));
	OK(cuCtxSynchronize());
	end(ctx);
}

static const struct unit_test tests[] = {
	{ "freed memory in the order of streams", t_order },
	{ "memory that passes from stream to stream", t_next_owner },
	{ "the same, told by an event", t_next_owner_by_event },
	{ "memory freed in another stream than its own", t_free_elsewhere },
	{ "freed memory by chance", t_chance },
	{ "what a pool holds and gives back", t_accounts },
	{ "what a trimmed pool keeps", t_trim },
	{ "what a pool keeps at its threshold", t_threshold },
	{ "limits and ends of a pool", t_limits },
	{ "pools, failures", t_failures },
	{ "a pool that is being freed", t_dying_pool },
	{ "pools for other processes", t_share },
	{ "no memory of pools for devices", t_no_rdma },
	{ "managed memory", t_managed },
	{ "no managed memory without a window", t_no_managed },
	{ "batches of copies", t_batch },
	{ "fills of two dimensions", t_fill_2d },
	{ "one dma-buf of several mappings", t_parts },
	{ "memory is unmapped while it is being exported", t_unmap_exported },
};

UNIT_MAIN(tests)
