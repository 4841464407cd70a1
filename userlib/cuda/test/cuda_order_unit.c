// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: copies and fills, streams and events.
 * Each test runs in a process of its own.
 */

#include <sys/mman.h>

#include "unit.h"

/* ---- copies and fills ---- */

static void t_copies(void)
{
	static unsigned char in[40 << 20], out[40 << 20];
	CUcontext ctx = start(&one);
	CUdeviceptr p, q;
	void *pinned;

	pattern(in, sizeof(in), 1);
	OK(cuMemAlloc_v2(&p, sizeof(in) / 2));
	OK(cuMemAlloc_v2(&q, sizeof(in) / 2));
	OK(cuMemcpyHtoD_v2(p, in, sizeof(in) / 2));	/* several jobs */
	OK(cuMemcpyDtoD_v2(q, p, sizeof(in) / 2));
	OK(cuMemcpyDtoH_v2(out, q, sizeof(in) / 2));
	CHECK(!memcmp(in, out, sizeof(in) / 2));
	memset(out, 0, 1000);
	OK(cuMemcpy((uintptr_t)out, p + 17, 999));
	CHECK(!memcmp(out, in + 17, 999) && !out[999]);
	OK(cuMemcpy(p, (uintptr_t)in + 5, 100));
	OK(cuMemcpy(q, p, 100));
	OK(cuMemcpyDtoH_v2(out, q, 100));
	CHECK(!memcmp(out, in + 5, 100));
	OK(cuMemcpy((uintptr_t)out, (uintptr_t)in, 4096));
	CHECK(!memcmp(out, in, 4096));
	OK(cuMemAllocHost_v2(&pinned, 8192));
	OK(cuMemcpyHtoD_v2(p, in, 8192));
	OK(cuMemcpyDtoH_v2(pinned, p, 8192));
	CHECK(!memcmp(pinned, in, 8192));
	/* Page-locked memory has a device address */
	OK(cuMemcpyDtoD_v2(q, (uintptr_t)pinned, 8192));
	/* A device address where a host one is named */
	OK(cuMemcpyHtoD_v2(q, (void *)(uintptr_t)p, 100));

	OK(cuMemcpyHtoD_v2(p, in, 0));
	IS(cuMemcpyHtoD_v2(p, in, sizeof(in) / 2 + 1), INVALID);
	IS(cuMemcpyHtoD_v2(p + 1, in, sizeof(in) / 2), INVALID);
	IS(cuMemcpyHtoD_v2(p - 1, in, 2), INVALID);
	IS(cuMemcpyHtoD_v2((uintptr_t)out, in, 10), INVALID);
	IS(cuMemcpyHtoD_v2(0, in, 10), INVALID);
	IS(cuMemcpyHtoD_v2(p, NULL, 10), INVALID);
	IS(cuMemcpyHtoD_v2(p, (void *)4096, 10), INVALID);
	IS(cuMemcpyHtoD_v2(p, in, SIZE_MAX), INVALID);
	IS(cuMemcpyDtoH_v2(out, (uintptr_t)in, 10), INVALID);
	IS(cuMemcpyDtoH_v2(NULL, p, 10), INVALID);
	IS(cuMemcpyDtoH_v2((void *)4096, p, 10), INVALID);
	IS(cuMemcpyDtoD_v2(q, (uintptr_t)in, 10), INVALID);
	IS(cuMemcpyDtoH_v2((char *)pinned + 1, p, 8192), INVALID);
	/* Over the end of all addresses: nothing at all is copied */
	memset(out, 0, 100);
	IS(cuMemcpy((uintptr_t)out, (uintptr_t)in + 5, SIZE_MAX), INVALID);
	CHECK(!out[0] && !memcmp(out, out + 1, 99));
	/* More than the kernel takes in one call, from nowhere to nowhere */
	IS(cuMemcpy(1ull << 62, 1ull << 62, 1ull << 63), INVALID);
	IS(cuMemcpyAsync(p, q, 10, BAD_PTR(CUstream)),
	   CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree_v2(q));
	IS(cuMemcpyDtoD_v2(q, p, 10), INVALID);
	end(ctx);
}

/*
 * Addresses that the kernel gives to nobody who does not ask for them: what was there
 * stays away.  Elsewhere another thread, or a sanitizer, gets them at once.
 */
#define NOBODY	((void *)0x200000000000)

static void t_fills(void)
{
	CUcontext ctx = start(&one);
	unsigned char b[16];
	unsigned char *m;
	unsigned int w[4];
	CUdeviceptr p;
	void *h;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAllocHost_v2(&h, 4096));
	OK(cuMemsetD8_v2(p + 1, 0xaa, 3));
	OK(cuMemcpyDtoH_v2(b, p, 5));
	CHECK(!memcmp(b, "\0\xaa\xaa\xaa\0", 5));
	OK(cuMemsetD16_v2(p + 2, 0x1234, 2));
	OK(cuMemcpyDtoH_v2(b, p, 7));
	CHECK(!memcmp(b, "\0\xaa\x34\x12\x34\x12\0", 7));
	OK(cuMemsetD32_v2(p, 0x89abcdef, 3));
	OK(cuMemcpyDtoH_v2(w, p, 16));
	CHECK(w[0] == 0x89abcdef && w[2] == w[0] && w[3] == 0);
	OK(cuMemsetD8Async(p, 1, 16, NULL));
	OK(cuMemsetD16Async(p, 0x0202, 4, CU_STREAM_LEGACY));
	OK(cuMemsetD32Async(p, 0x03030303, 1, CU_STREAM_PER_THREAD));
	OK(cuMemcpyDtoH_v2(b, p, 16));
	CHECK(!memcmp(b, "\3\3\3\3\2\2\2\2\1\1\1\1\1\1\1\1", 16));
	OK(cuMemsetD16_v2((uintptr_t)h, 0x0607, 3));
	CHECK(!memcmp(h, "\7\6\7\6\7\6\0", 7));
	OK(cuMemsetD8_v2(p, 0, 0));
	/* Registered, and taken away or shut by the program since */
	m = mmap(NOBODY, 65536, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(m == NOBODY);
	OK(cuMemHostRegister_v2(m, 65536, 0));
	OK(cuMemsetD16_v2((uintptr_t)m + 2, 0x0403, 20000));
	CHECK(m[1] == 0 && m[2] == 3 && m[40001] == 4 && m[40002] == 0);
	CHECK(!mprotect(m + 32768, 32768, PROT_READ));
	IS(cuMemsetD8_v2((uintptr_t)m, 1, 65536), INVALID);
	munmap(m, 65536);
	IS(cuMemsetD8_v2((uintptr_t)m, 1, 65536), INVALID);
	OK(cuMemHostUnregister(m));
	IS(cuMemsetD16_v2(p + 1, 0, 1), INVALID);
	IS(cuMemsetD32_v2(p + 2, 0, 1), INVALID);
	IS(cuMemsetD8_v2(p, 0, 4097), INVALID);
	IS(cuMemsetD32_v2(p, 0, SIZE_MAX), INVALID);
	/* Products that come round to four bytes, and to two */
	IS(cuMemsetD32_v2(p, 0, (1ull << 62) + 1), INVALID);
	IS(cuMemsetD16_v2(p, 0, (1ull << 63) + 1), INVALID);
	IS(cuMemsetD8_v2((uintptr_t)b, 0, 1), INVALID);
	IS(cuMemsetD8_v2(0, 0, 1), INVALID);
	end(ctx);
}

static void t_copy_2d(void)
{
	CUcontext ctx = start(&one);
	unsigned char in[10 * 20], out[10 * 20];
	CUDA_MEMCPY2D c = { 0 };
	CUdeviceptr p;
	size_t pitch;

	pattern(in, sizeof(in), 7);
	memset(out, 0, sizeof(out));
	OK(cuMemAllocPitch_v2(&p, &pitch, 20, 10, 4));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = in;
	c.srcPitch = 20;
	c.srcXInBytes = 3;
	c.srcY = 2;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = p;
	c.dstPitch = pitch;
	c.WidthInBytes = 15;
	c.Height = 8;
	OK(cuMemcpy2D_v2(&c));
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = out;
	c.dstPitch = 15;
	c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = p;
	c.srcPitch = pitch;
	c.srcXInBytes = c.srcY = 0;
	OK(cuMemcpy2DAsync_v2(&c, NULL));
	OK(cuStreamSynchronize(NULL));
	for (int y = 0; y < 8; y++)
		CHECK(!memcmp(out + 15 * y, in + 20 * (y + 2) + 3, 15));
	c.srcPitch = 14;
	IS(cuMemcpy2D_v2(&c), INVALID);
	c.srcPitch = pitch;
	c.srcY = 3;
	memset(out, 1, sizeof(out));
	IS(cuMemcpy2DUnaligned_v2(&c), INVALID);
	CHECK(out[0] == 1);	/* its last row is not there: nothing is copied */
	c.srcY = 0;
	c.srcPitch = c.dstPitch = 0;
	c.WidthInBytes = c.Height = 1ull << 32;
	IS(cuMemcpy2D_v2(&c), INVALID);		/* 0 bytes, 2 to the 64th */
	c.WidthInBytes = 15;
	c.srcPitch = pitch;
	c.Height = SIZE_MAX / pitch + 2;
	IS(cuMemcpy2D_v2(&c), INVALID);
	CHECK(out[0] == 1);
	c.Height = 8;
	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	IS(cuMemcpy2D_v2(&c), CUDA_ERROR_NOT_SUPPORTED);
	c.srcMemoryType = (CUmemorytype)9;
	IS(cuMemcpy2D_v2(&c), INVALID);
	IS(cuMemcpy2D_v2(NULL), INVALID);
	end(ctx);
}

static void t_two_gpus(void)
{
	static unsigned char in[3 << 20], out[3 << 20];
	struct fake_config cfg = one;
	CUcontext a, b;
	CUdeviceptr pa, pb;
	uint64_t diff;
	uint32_t crc;
	int ordinal;

	cfg.gpus = 2;
	fake_setup(&cfg);
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&a, 0, 0));
	OK(cuMemAlloc_v2(&pa, sizeof(in)));
	OK(cuCtxCreate_v2(&b, 0, 1));
	OK(cuMemAlloc_v2(&pb, sizeof(in)));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pb));
	CHECK(ordinal == 1);
	pattern(in, sizeof(in), 3);
	OK(cuMemcpyHtoD_v2(pa, in, sizeof(in)));	/* not our device */
	OK(cuMemcpyPeer(pb, b, pa, a, sizeof(in)));
	OK(cuMemcpyDtoH_v2(out, pb, sizeof(in)));
	CHECK(!memcmp(in, out, sizeof(in)));
	IS(cuMemsetD8_v2(pa, 9, 100), INVALID);		/* nor is there peer access */
	OK(cuCtxSetCurrent(a));
	OK(cuMemsetD8_v2(pa, 9, 100));
	OK(cuCtxSetCurrent(b));
	OK(cuMemcpyPeerAsync(pb + 50, b, pa, a, 100, NULL));
	OK(cuMemcpyDtoH_v2(out, pb, 200));
	CHECK(out[49] == in[49] && out[50] == 9 && out[149] == 9 &&
	      out[150] == in[150]);
	IS(cuMemcpyPeer(pb, BAD_PTR(CUcontext), pa, a, 10),
	   CUDA_ERROR_INVALID_CONTEXT);
	IS(plnMemCompare(pa, pb, 100, &diff), CUDA_ERROR_NOT_SUPPORTED);
	OK(plnMemCrc32c(pa, 100, &crc));
	OK(cuCtxDestroy_v2(b));
	IS(cuMemcpyDtoH_v2(out, pb, 10), INVALID);
	OK(cuCtxDestroy_v2(a));
	CHECK(!fake_handles() && !fake_files());
}

static void t_extensions(void)
{
	CUcontext ctx = start(&one);
	float f[4] = { 1.5f, 2, 3, 4 };
	int v[4] = { 1, 2, 3, 0x7fffffff };
	CUdeviceptr p, q;
	uint64_t diff;
	uint32_t crc;
	void *h;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAlloc_v2(&q, 4096));
	OK(cuMemAllocHost_v2(&h, 4096));
	OK(cuMemcpyHtoD_v2(p, "123456789", 9));
	OK(plnMemCrc32c(p, 9, &crc));
	CHECK(crc == 0xe3069283);
	OK(plnMemCrc32c(p, 0, &crc));
	CHECK(crc == 0);
	IS(plnMemCrc32c(p, 9, NULL), INVALID);
	IS(plnMemCrc32c(p, 5000, &crc), INVALID);
	IS(plnMemCrc32c((uintptr_t)h, 9, &crc), INVALID);
	OK(cuMemcpyDtoD_v2(q, p, 4096));
	OK(plnMemCompare(p, q, 4096, &diff));
	CHECK(diff == PLN_COMPARE_SAME);
	OK(cuMemsetD8_v2(q + 1000, 1, 1));
	OK(plnMemCompare(p, q, 4096, &diff));
	CHECK(diff == 1000);
	OK(plnMemCompare(p, q, 0, &diff));
	CHECK(diff == PLN_COMPARE_SAME);
	IS(plnMemCompare(p, q, 4096, NULL), INVALID);
	IS(plnMemCompare(p, (uintptr_t)h, 4096, &diff), INVALID);
	OK(cuMemcpyHtoD_v2(p, v, 16));
	OK(cuMemcpyHtoD_v2(q, v, 16));
	OK(plnMemAdd(p, q, 16, PLN_DTYPE_INT32));
	OK(cuMemcpyDtoH_v2(v, p, 16));
	CHECK(v[0] == 2 && v[2] == 6 && v[3] == -2);
	OK(cuMemcpyHtoD_v2(p, f, 16));
	OK(cuMemcpyHtoD_v2(q, f, 16));
	OK(plnMemAdd(p, q, 16, PLN_DTYPE_FLOAT32));
	OK(cuMemcpyDtoH_v2(f, p, 16));
	CHECK(f[0] == 3.0f && f[3] == 8.0f);
	IS(plnMemAdd(p, q, 16, 3), INVALID);
	IS(plnMemAdd(p, q, 15, PLN_DTYPE_INT32), INVALID);
	IS(plnMemAdd(p + 1, q, 16, PLN_DTYPE_INT32), INVALID);
	end(ctx);
}

/* ---- streams and events ---- */

static void t_stream_api(void)
{
	CUcontext ctx = start(&one), c;
	unsigned long long id[2];
	CUstream s, t;
	unsigned int u;
	CUevent e;
	float ms;
	int i, j;

	IS(cuStreamCreate(NULL, 0), INVALID);
	IS(cuStreamCreate(&s, 2), INVALID);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreateWithPriority(&t, 0, -5));
	OK(cuStreamGetFlags(s, &u));
	CHECK(u == CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetPriority(t, &i));
	OK(cuCtxGetStreamPriorityRange(&i, &j));
	CHECK(i == 0 && j == 0);
	OK(cuStreamGetId(s, &id[0]));
	OK(cuStreamGetId(NULL, &id[1]));
	CHECK(id[0] != id[1]);
	OK(cuStreamGetCtx(s, &c));
	CHECK(c == ctx);
	OK(cuStreamGetDevice(s, &i));
	CHECK(i == 0);
	OK(cuStreamIsCapturing(s, &u));
	CHECK(u == CU_STREAM_CAPTURE_STATUS_NONE);
	IS(cuStreamGetFlags(s, NULL), INVALID);
	OK(cuStreamQuery(s));
	OK(cuStreamQuery(NULL));
	OK(cuStreamSynchronize(s));
	IS(cuStreamQuery(BAD_PTR(CUstream)), CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamSynchronize((CUstream)ctx), CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamDestroy_v2(BAD_PTR(CUstream)), CUDA_ERROR_INVALID_HANDLE);

	IS(cuEventCreate(NULL, 0), INVALID);
	IS(cuEventCreate(&e, 8), INVALID);
	IS(cuEventCreate(&e, CU_EVENT_INTERPROCESS), INVALID);
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventDestroy_v2(e));
	OK(cuEventCreate(&e, 0));
	OK(cuEventQuery(e));		/* never recorded: nothing to wait for */
	OK(cuEventSynchronize(e));
	IS(cuEventElapsedTime(&ms, e, e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamWaitEvent(s, e, 0));
	IS(cuStreamWaitEvent(s, e, 4), INVALID);
	IS(cuStreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL),
	   CUDA_ERROR_ILLEGAL_STATE);
	IS(cuStreamWaitEvent(s, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(e, s));
	IS(cuEventRecordWithFlags(e, s, 2), INVALID);
	OK(cuEventElapsedTime(&ms, e, e));
	CHECK(ms == 0);
	IS(cuEventElapsedTime(NULL, e, e), INVALID);
	IS(cuEventRecord(NULL, s), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventRecord(e, (CUstream)e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy_v2(e));
	IS(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamDestroy_v2(s));
	IS(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
	end(ctx);
}

static void t_async(void)
{
	struct fake_config cfg = one;
	CUstream b1, b2, nb, nb2;
	CUevent e, e2, plain;
	unsigned char *h;
	CUdeviceptr p;
	CUcontext ctx;
	void *mem;
	float ms;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 8192));
	OK(cuMemAllocHost_v2(&mem, 8192));
	h = mem;
	OK(cuStreamCreate(&b1, 0));
	OK(cuStreamCreate(&b2, 0));
	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuEventCreate(&e2, 0));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));

	/* The call returns before the work is done */
	h[0] = 7;
	OK(cuMemcpyHtoDAsync_v2(p, h, 1, nb));
	CHECK(fake_vram(0)[0] == 0);
	IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
	OK(cuEventRecord(plain, nb));
	IS(cuEventQuery(plain), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(b1));		/* another stream is not concerned */
	OK(cuStreamQuery(NULL));
	fake_step(0, 1, 1);
	OK(cuEventQuery(plain));
	OK(cuStreamQuery(nb));
	CHECK(fake_jobs() == 0);

	/* The default stream waits for blocking streams, and they for it */
	h[1] = 1;
	OK(cuMemcpyHtoDAsync_v2(p + 1, h + 1, 1, b1));
	OK(cuMemsetD8Async(p + 1, 2, 1, NULL));
	OK(cuMemcpyDtoHAsync_v2(h + 2, p + 1, 1, b2));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(b2));
	CHECK(h[2] == 2);
	OK(cuStreamQuery(b1));

	/* Not for non-blocking ones */
	OK(cuMemsetD8Async(p + 4, 4, 1, nb));
	OK(cuMemsetD8_v2(p + 5, 5, 1));
	IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
	OK(cuCtxSynchronize());
	OK(cuStreamQuery(nb));

	/* An event across queues is kept */
	OK(cuMemsetD8Async(p + 6, 6, 1, nb));
	OK(cuEventRecord(e, nb));
	OK(cuStreamWaitEvent(b1, e, 0));
	IS(cuStreamQuery(b1), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync_v2(h + 6, p + 6, 1, b1));
	OK(cuEventRecord(e2, b1));
	IS(cuEventQuery(e2), CUDA_ERROR_NOT_READY);
	IS(cuEventElapsedTime(&ms, e, e2), CUDA_ERROR_NOT_READY);
	OK(cuEventSynchronize(e2));
	CHECK(h[6] == 6);
	OK(cuEventElapsedTime_v2(&ms, e, e2));
	CHECK(ms >= 0);

	/* The next submission is later than the event, whoever runs first */
	h[7] = 0;
	OK(cuMemsetD8Async(p + 7, 7, 1, nb));
	OK(cuEventRecord(e, nb));
	OK(cuStreamWaitEvent(b2, e, 0));
	OK(cuMemcpyDtoHAsync_v2(h + 7, p + 7, 1, b2));
	fake_step(0, 0, 100);
	CHECK(h[7] == 0);
	OK(cuCtxSynchronize());
	CHECK(h[7] == 7);

	/* Two events of two queues */
	OK(cuStreamCreate(&nb2, CU_STREAM_NON_BLOCKING));
	h[10] = h[11] = 0;
	OK(cuMemsetD8Async(p + 10, 10, 1, nb));
	OK(cuEventRecord(e, nb));
	OK(cuMemsetD8Async(p + 11, 11, 1, nb2));
	OK(cuEventRecord(e2, nb2));
	OK(cuStreamWaitEvent(b2, e, 0));
	OK(cuStreamWaitEvent(b2, e2, 0));
	OK(cuMemcpyDtoHAsync_v2(h + 10, p + 10, 2, b2));
	fake_step(0, 0, 100);
	CHECK(h[10] == 0 && h[11] == 0);
	OK(cuStreamSynchronize(b2));
	CHECK(h[10] == 10 && h[11] == 11);
	OK(cuStreamDestroy_v2(nb2));
	OK(cuCtxSynchronize());

	/* The default stream is not done before the blocking ones are */
	OK(cuMemsetD8Async(p + 8, 8, 1, b1));
	IS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	IS(cuStreamQuery(b1), CUDA_ERROR_NOT_READY);
	OK(cuEventRecord(e, NULL));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(b1));

	/* Recording again forgets the first */
	OK(cuMemsetD8Async(p, 1, 1, nb));
	OK(cuEventRecord(e, nb));
	OK(cuEventRecord(e, b1));
	OK(cuEventQuery(e));
	OK(cuStreamSynchronize(nb));

	/* Pageable memory may be used again when the call returns */
	{
		unsigned char local = 9;

		OK(cuMemcpyHtoDAsync_v2(p + 9, &local, 1, nb));
		CHECK(fake_jobs() == 1);
		local = 0;
		OK(cuMemcpyDtoHAsync_v2(&local, p + 9, 1, nb));
		CHECK(local == 9);
	}
	/* Registered memory is left to the engine, as long as it is registered */
	{
		static unsigned char own[4096], large[2 * MiB + 1];
		CUdeviceptr q;

		OK(cuMemAlloc_v2(&q, sizeof(large)));
		OK(cuMemHostRegister_v2(own, sizeof(own), 0));
		OK(cuMemcpyHtoDAsync_v2(p + 9, own, 1, nb));
		IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(nb));
		OK(cuMemHostUnregister(own));
		/* Of other memory little is copied aside, and more is waited for */
		OK(cuMemcpyHtoDAsync_v2(p + 9, own, 1, nb));
		IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(nb));
		OK(cuMemcpyHtoDAsync_v2(q, large, sizeof(large), nb));
		CHECK(fake_jobs() == 0);
		OK(cuMemFree_v2(q));
	}
	/*
	 * Of memory that asks for it, or whose context does, synchronous operations
	 * are synchronous; others stay what they are, as on an H200.
	 */
	for (int by_ctx = 0; by_ctx < 2; by_ctx++) {
		int on = !by_ctx;

		OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
		OK(cuCtxSetFlags(by_ctx ? CU_CTX_SYNC_MEMOPS : 0));
		OK(cuMemsetD8Async(p, 3, 1, nb));
		IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(nb));
		OK(cuMemcpyHtoDAsync_v2(p, h, 1, nb));
		IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(nb));
		OK(cuMemcpyDtoHAsync_v2(h, p, 1, nb));
		IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(nb));
		OK(cuMemcpyDtoD_v2(p, p + 8, 4));
		CHECK(!fake_jobs());
		OK(cuMemsetD8_v2(p, 3, 1));
		CHECK(!fake_jobs());
		on = 0;
		OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	}
	OK(cuCtxSetFlags(0));
	/* Freeing waits for the work that uses it; the fake checks */
	OK(cuMemsetD8Async(p, 1, 4096, nb));
	OK(cuMemcpyDtoHAsync_v2(h, p, 4096, nb));
	OK(cuMemFree_v2(p));
	CHECK(h[4095] == 1);
	/* So does destroying a stream's handle: the work goes on */
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8Async(p, 1, 4096, nb));
	OK(cuEventRecord(e, nb));
	OK(cuStreamDestroy_v2(nb));
	OK(cuEventSynchronize(e));
	OK(cuMemcpyDtoH_v2(h, p, 1));
	CHECK(h[0] == 1);
	OK(cuMemsetD8Async(p, 1, 4096, NULL));
	end(ctx);
}

static void t_event_other_context(void)
{
	CUcontext a = start(&one), b;
	CUevent e;

	OK(cuEventCreate(&e, 0));
	OK(cuCtxCreate_v2(&b, 0, 0));
	IS(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamWaitEvent(NULL, e, 0));
	OK(cuCtxDestroy_v2(b));
	end(a);
}

static void t_many_jobs(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;
	CUdeviceptr p;
	CUstream s[3];
	unsigned char b;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	for (int i = 0; i < 3; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	/* More than the kernel keeps: the oldest are waited for */
	for (int i = 0; i < 5 * FAKE_MAX_JOBS; i++)
		OK(cuMemsetD8Async(p + (unsigned int)(i % 3),
				   (unsigned char)(i / 3), 1, s[i % 3]));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == (unsigned char)((5 * FAKE_MAX_JOBS - 1) / 3));
	end(ctx);
}

struct joined {
	CUcontext ctx;
	CUstream s[4];
	CUevent e, e2;
	CUdeviceptr p, q;
	unsigned char *h;
};

/* Streams with @flags, 0x33 in p, and nothing runs before somebody waits */
static struct joined joined(unsigned int flags)
{
	struct fake_config cfg = one;
	struct joined j = { 0 };
	void *m;

	cfg.manual = true;
	j.ctx = start(&cfg);
	for (int i = 0; i < 4; i++)
		OK(cuStreamCreate(&j.s[i], flags));
	OK(cuEventCreate(&j.e, 0));
	OK(cuEventCreate(&j.e2, 0));
	OK(cuMemAllocHost_v2(&m, 4096));
	j.h = memset(m, 0, 4096);
	OK(cuMemAlloc_v2(&j.p, 4096));
	OK(cuMemAlloc_v2(&j.q, 4096));
	OK(cuMemsetD8_v2(j.p, 0x33, 4096));
	return j;
}

/* A stream that has waited for another one's event is done when that is */
static void join(unsigned int flags)
{
	struct joined j = joined(flags);

	OK(cuMemcpyDtoHAsync_v2(j.h, j.p, 4096, j.s[0]));
	OK(cuEventRecord(j.e, j.s[0]));
	OK(cuStreamWaitEvent(j.s[3], j.e, 0));
	IS(cuStreamQuery(j.s[3]), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(j.s[3]));
	CHECK(j.h[0] == 0x33 && j.h[4095] == 0x33);
	OK(cuMemFreeHost(j.h));
	end(j.ctx);
}

static void t_join(void)
{
	join(0);
}

/* The first and the last of four share a queue */
static void t_join_non_blocking(void)
{
	join(CU_STREAM_NON_BLOCKING);
}

/* And so is an event that is recorded there */
static void t_join_chain(void)
{
	struct joined j = joined(0);
	CUstream nb;

	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuMemcpyDtoDAsync_v2(j.q, j.p, 4096, j.s[0]));
	OK(cuEventRecord(j.e, j.s[0]));
	OK(cuStreamWaitEvent(j.s[1], j.e, 0));
	OK(cuEventRecord(j.e2, j.s[1]));
	IS(cuEventQuery(j.e2), CUDA_ERROR_NOT_READY);
	OK(cuStreamWaitEvent(nb, j.e2, 0));
	OK(cuMemcpyDtoHAsync_v2(j.h, j.q, 4096, nb));
	OK(cuStreamSynchronize(nb));
	CHECK(j.h[0] == 0x33 && j.h[4095] == 0x33);
	OK(cuMemFreeHost(j.h));
	end(j.ctx);
}

/* Blocking streams follow the default stream, without an event */
static void t_join_legacy(void)
{
	struct joined j = joined(0);

	OK(cuMemcpyDtoHAsync_v2(j.h, j.p, 4096, NULL));
	OK(cuEventRecord(j.e, j.s[0]));
	IS(cuEventQuery(j.e), CUDA_ERROR_NOT_READY);
	OK(cuEventSynchronize(j.e));
	CHECK(j.h[0] == 0x33 && j.h[4095] == 0x33);
	OK(cuMemFreeHost(j.h));
	end(j.ctx);
}

/* Ended jobs are not left with the kernel */
static void t_reaped(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, 4096));
	for (int i = 0; i < 40; i++)
		OK(cuMemsetD8Async(p, 1, 1, NULL));
	CHECK(fake_jobs() <= 1);
	end(ctx);
}

static void pass_7_ms(void *arg)
{
	(void)arg;
	fake_pass_time(7000000);
}

/* By the GPU's clock, which @ms of the last two events is from */
static bool took(CUevent a, CUevent b, float ms)
{
	float got = -1;

	OK(cuEventElapsedTime(&got, a, b));
	if (got < ms || got >= ms + 0.001f)
		printf("# %f ms, not %f\n", (double)got, (double)ms);
	return got >= ms && got < ms + 0.001f;
}

/* The time of an event is that of the engine, whenever somebody looks */
static void t_event_times(void)
{
	struct fake_config cfg = one;
	CUevent a, b, plain, shared;
	CUstream s, nb;
	CUdeviceptr p;
	CUcontext ctx;
	unsigned int n;
	float ms;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, 0));
	OK(cuStreamCreate(&nb, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	/* The program is held up for a second, and looks then */
	OK(cuMemsetD8Async(p, 1, 1, s));
	OK(cuEventRecord(a, s));
	OK(cuMemsetD8Async(p, 2, 1, s));
	OK(cuEventRecord(b, s));
	fake_step(0, 0, 1);
	fake_pass_time(5000000);
	fake_step(0, 0, 1);
	fake_pass_time(1000000000);
	CHECK(took(a, b, 5));
	/* The last of two streams that it waits for, in the order in which they end */
	OK(cuEventRecord(a, nb));
	OK(cuMemsetD8Async(p, 1, 1, s));
	OK(cuMemsetD8Async(p, 2, 1, nb));
	OK(cuEventRecord(plain, nb));
	OK(cuStreamWaitEvent(s, plain, 0));
	OK(cuEventRecord(b, s));
	fake_pass_time(2000000);
	fake_step(0, 1, 1);
	fake_pass_time(2000000);
	fake_step(0, 0, 1);
	fake_pass_time(1000000000);
	OK(cuEventSynchronize(b));
	CHECK(took(a, b, 4));
	/* Nothing is before it: when it is recorded */
	OK(cuEventRecord(a, s));
	fake_pass_time(3000000);
	OK(cuEventRecord(b, s));
	CHECK(took(a, b, 3));
	/* Behind a function of the program: when that has ended */
	OK(cuEventRecord(a, s));
	OK(cuLaunchHostFunc(s, pass_7_ms, NULL));
	OK(cuEventRecord(b, s));
	OK(cuEventSynchronize(b));
	CHECK(took(a, b, 7));
	/* No time, and nobody asks for it */
	n = fake_calls(FAKE_QUERY);
	OK(cuEventRecord(plain, s));
	OK(cuEventRecord(shared, s));
	OK(cuEventSynchronize(shared));
	CHECK(fake_calls(FAKE_QUERY) == n);
	IS(cuEventElapsedTime(&ms, a, plain), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventElapsedTime(&ms, shared, a), CUDA_ERROR_INVALID_HANDLE);
	end(ctx);
}

/* A driver that tells no time: the CPU's clock, when the end is noticed */
static void t_event_no_time(void)
{
	struct fake_config cfg = one;
	struct timespec nap = { 0, 2000000 };
	CUdeviceptr p;
	CUcontext ctx;
	CUevent a, b;
	float ms = 0;

	cfg.no_time = true;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, 0));
	OK(cuEventRecord(a, NULL));
	nanosleep(&nap, NULL);
	OK(cuMemsetD8_v2(p, 1, 1));
	OK(cuEventRecord(b, NULL));
	OK(cuEventElapsedTime(&ms, a, b));
	CHECK(ms >= 2);
	end(ctx);
}

static const struct unit_test tests[] = {
	{ "copies", t_copies },
	{ "fills", t_fills },
	{ "copies in two dimensions", t_copy_2d },
	{ "two GPUs", t_two_gpus },
	{ "engine extensions", t_extensions },
	{ "stream and event calls", t_stream_api },
	{ "asynchronous order", t_async },
	{ "times of events are the engine's", t_event_times },
	{ "times of events, with a driver that tells none", t_event_no_time },
	{ "an event of another context", t_event_other_context },
	{ "more jobs than the kernel keeps", t_many_jobs },
	{ "ended jobs are forgotten", t_reaped },
	{ "a stream joins another one", t_join },
	{ "a non-blocking stream joins another one", t_join_non_blocking },
	{ "an event behind an event", t_join_chain },
	{ "behind the default stream", t_join_legacy },
};

UNIT_MAIN(tests)
