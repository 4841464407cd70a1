// SPDX-License-Identifier: MIT
/*
 * Questions on streams that are held up: by a function of the program, or by a
 * value that they wait for.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "conform.h"

static atomic_int gate, ran;
static CUdeviceptr mem;
static unsigned char *host;
static CUstream held, other, apart;

/* Until the gate opens; not for ever */
static void hold(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000 && !atomic_load(&gate); i++)
		usleep(10000);
}

void note(void *arg)
{
	(void)arg;
	atomic_fetch_add(&ran, 1);
}

void shut(CUstream stream)
{
	CALL(cuCtxSynchronize);
	atomic_store(&gate, 0);
	atomic_store(&ran, 0);
	CALL(cuLaunchHostFunc, stream, hold, NULL);
}

void open_gate(void)
{
	atomic_store(&gate, 1);
	CALL(cuCtxSynchronize);
}

static void ask_held(void)
{
	CUevent e, e2;

	CALL(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	CALL(cuEventCreate, &e2, CU_EVENT_DISABLE_TIMING);
	shut(held);
	ASK("copy behind a function", cuMemcpyHtoDAsync_v2, mem, host, 4096, held);
	ASK("fill", cuMemsetD8Async, mem, 1, 4096, held);
	ASK("function", cuLaunchHostFunc, held, note, NULL);
	ASK("record", cuEventRecord, e, held);
	ASK("query the event", cuEventQuery, e);
	ASK("query the stream", cuStreamQuery, held);
	ASK("query another blocking stream", cuStreamQuery, other);
	ASK("query a non-blocking stream", cuStreamQuery, apart);
	ASK("query the default stream", cuStreamQuery, NULL);
	ASK("fill in another stream", cuMemsetD8Async, mem, 1, 4096, other);
	ASK("synchronize that", cuStreamSynchronize, other);
	ASK("another one waits for the event", cuStreamWaitEvent, apart, e, 0);
	ASK("query who waits", cuStreamQuery, apart);
	ASK("record there", cuEventRecord, e2, apart);
	ASK("query that", cuEventQuery, e2);
	SAY("nothing behind has run", atomic_load(&ran) == 0);
	open_gate();
	ASK("query the stream, after", cuStreamQuery, held);
	ASK("query who waited", cuStreamQuery, apart);
	SAY("it has run", atomic_load(&ran));

	shut(held);
	ASK("record twice: here", cuEventRecord, e, held);
	ASK("and where nothing is", cuEventRecord, e, apart);
	ASK("query", cuEventQuery, e);
	open_gate();
	shut(held);
	ASK("record", cuEventRecord, e, held);
	ASK("wait", cuStreamWaitEvent, apart, e, 0);
	ASK("destroy the event", cuEventDestroy_v2, e);
	ASK("query who waits", cuStreamQuery, apart);
	open_gate();
}

static void ask_default(void)
{
	CUevent e;

	CALL(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	shut(held);
	ASK("fill in the default stream", cuMemsetD8Async, mem, 1, 4096, NULL);
	ASK("another blocking stream is free", cuStreamQuery, other);
	ASK("fill there", cuMemsetD8Async, mem, 1, 4096, other);
	ASK("query it", cuStreamQuery, other);
	ASK("a non-blocking one is free", cuStreamQuery, apart);
	open_gate();
	shut(held);
	ASK("record in the default stream", cuEventRecord, e, NULL);
	ASK("query the event", cuEventQuery, e);
	ASK("fill in another blocking stream", cuMemsetD8Async, mem, 1, 4096, other);
	usleep(300000);
	ASK("query it", cuStreamQuery, other);
	open_gate();
	shut(NULL);
	ASK("the default stream is held", cuStreamQuery, NULL);
	ASK("fill in a blocking stream", cuMemsetD8Async, mem, 1, 4096, other);
	ASK("query it", cuStreamQuery, other);
	ASK("fill in a non-blocking one", cuMemsetD8Async, mem, 1, 4096, apart);
	ASK("synchronize it", cuStreamSynchronize, apart);
	ASK("fill in the thread's own", cuMemsetD8Async, mem, 1, 4096, CU_STREAM_PER_THREAD);
	ASK("query it", cuStreamQuery, CU_STREAM_PER_THREAD);
	open_gate();
	shut(CU_STREAM_PER_THREAD);
	ASK("the thread's own is held", cuStreamQuery, CU_STREAM_PER_THREAD);
	ASK("a blocking stream", cuStreamQuery, other);
	ASK("fill there", cuMemsetD8Async, mem, 1, 4096, other);
	ASK("synchronize it", cuStreamSynchronize, other);
	ASK("the default stream", cuStreamQuery, NULL);
	ASK("fill there", cuMemsetD8Async, mem, 1, 4096, NULL);
	ASK("the default stream", cuStreamQuery, NULL);
	open_gate();
}

/* ---- another thread ---- */

static CUresult result;
static atomic_int returned;

static void *own_stream(void *arg)
{
	(void)arg;
	CALL(cuCtxSetCurrent, ctx);
	ASK("another thread's own stream", cuStreamQuery, CU_STREAM_PER_THREAD);
	ASK("fill there", cuMemsetD8Async, mem, 1, 4096, CU_STREAM_PER_THREAD);
	ASK("synchronize it", cuStreamSynchronize, CU_STREAM_PER_THREAD);
	return NULL;
}

static void *call(void *fn)
{
	CALL(cuCtxSetCurrent, ctx);
	result = (*(CUresult (**)(void))fn)();
	atomic_store(&returned, 1);
	return NULL;
}

static CUdeviceptr victim;
static unsigned char pageable[4 << 20];

static CUresult c_small_in(void)
{
	return CALL(cuMemcpyHtoDAsync_v2, mem, pageable, 4096, held);
}

static CUresult c_large_in(void)
{
	return CALL(cuMemcpyHtoDAsync_v2, mem, pageable, sizeof(pageable), held);
}

static CUresult c_small_out(void)
{
	return CALL(cuMemcpyDtoHAsync_v2, pageable, mem, 4096, held);
}

static CUresult c_host(void)
{
	return CALL(cuMemcpyAsync, (uintptr_t)host, (uintptr_t)host + 4096, 4096, held);
}

static CUresult c_sync_other(void)
{
	return CALL(cuMemsetD8_v2, mem, 1, 4096);
}

static CUresult c_copy_default(void)
{
	return CALL(cuMemcpyHtoD_v2, mem, pageable, 4096);
}

static CUresult c_alloc(void)
{
	return CALL(cuMemAlloc_v2, &victim, 1 << 20);
}

static CUresult c_free(void)
{
	return CALL(cuMemFree_v2, victim);
}

static CUresult c_alloc_async(void)
{
	return CALL(cuMemAllocAsync, &victim, 1 << 20, held);
}

static CUresult c_free_async(void)
{
	return CALL(cuMemFreeAsync, victim, held);
}

static CUresult c_destroy(void)
{
	CUstream s;

	CALL(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	CALL(cuLaunchHostFunc, s, hold, NULL);
	return CALL(cuStreamDestroy_v2, s);
}

static pthread_t caller;

void returns(const char *what, CUresult (*fn)(void))
{
	static CUresult (*called)(void);

	called = fn;
	atomic_store(&returned, 0);
	pthread_create(&caller, NULL, call, &called);
	/* So long that who returns has returned, on a busy machine, too */
	for (int i = 0; i < 200 && !atomic_load(&returned); i++)
		usleep(10000);
	printf("%-44s %s", what, atomic_load(&returned) ? "returns " : "waits ");
}

void ends(void)
{
	pthread_join(caller, NULL);
	printf("%d\n", (int)result);
}

void meanwhile(const char *what, CUresult (*fn)(void), CUstream stream)
{
	shut(stream);
	returns(what, fn);
	atomic_store(&gate, 1);
	ends();
	CALL(cuCtxSynchronize);
}

static void ask_callers(void)
{
	pthread_t thread;

	shut(CU_STREAM_PER_THREAD);
	pthread_create(&thread, NULL, own_stream, NULL);
	pthread_join(thread, NULL);
	open_gate();
	meanwhile("copy of 4 KiB of pageable memory in", c_small_in, held);
	meanwhile("of 4 MiB", c_large_in, held);
	meanwhile("of 4 KiB out", c_small_out, held);
	meanwhile("copy in page-locked memory", c_host, held);
	meanwhile("synchronous fill, blocking stream held", c_sync_other, held);
	meanwhile("non-blocking stream held", c_sync_other, apart);
	meanwhile("synchronous copy, blocking stream held", c_copy_default, held);
	meanwhile("non-blocking stream held", c_copy_default, apart);
	meanwhile("allocation", c_alloc, held);
	meanwhile("freeing", c_free, held);
	CALL(cuMemAlloc_v2, &victim, 1 << 20);
	meanwhile("freeing, non-blocking stream held", c_free, apart);
	meanwhile("allocation in a stream", c_alloc_async, held);
	meanwhile("freeing in a stream", c_free_async, held);
	CALL(cuMemAlloc_v2, &victim, 1 << 20);
	meanwhile("of memory of no pool", c_free_async, held);
	meanwhile("end of a stream that is held", c_destroy, held);
	CALL(cuMemAllocAsync, &victim, 1 << 20, other);
	CALL(cuStreamSynchronize, other);
	meanwhile("freeing memory of a pool", c_free, held);
	CALL(cuMemAllocAsync, &victim, 1 << 20, other);
	CALL(cuStreamSynchronize, other);
	meanwhile("non-blocking stream held", c_free, apart);
	CALL(cuMemAllocAsync, &victim, 1 << 20, other);
	CALL(cuStreamSynchronize, other);
	meanwhile("default stream held", c_free, NULL);
}

/* ---- synchronous copies and fills in memory of GPUs ---- */

static CUcontext second;
static CUdeviceptr there;

static CUresult c_dtod(void)
{
	return CALL(cuMemcpyDtoD_v2, mem, mem + 65536, 4096);
}

static CUresult c_peer(void)
{
	return CALL(cuMemcpyPeer, mem, ctx, mem + 65536, ctx, 4096);
}

static CUresult c_2d(void)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = mem + 65536, .srcPitch = 512,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = mem, .dstPitch = 512,
		.WidthInBytes = 100, .Height = 8,
	};

	return CALL(cuMemcpy2D_v2, &c);
}

static CUresult c_fill_2d(void)
{
	return CALL(cuMemsetD2D8_v2, mem, 512, 1, 100, 8);
}

static CUresult c_to_second(void)
{
	CALL(cuCtxSetCurrent, second);
	return CALL(cuMemcpyDtoD_v2, there, mem, 4096);
}

static CUresult c_from_second(void)
{
	CALL(cuCtxSetCurrent, second);
	return CALL(cuMemcpyDtoD_v2, mem, there, 4096);
}

static CUresult c_peer_second(void)
{
	CALL(cuCtxSetCurrent, second);
	return CALL(cuMemcpyPeer, there, second, mem, ctx, 4096);
}

static CUresult set_sync(CUdeviceptr at, unsigned int value)
{
	return CALL(cuPointerSetAttribute, &value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
}

static CUresult c_set(void)
{
	return set_sync(mem, 1);
}

static CUresult c_set_behind_copy(void)
{
	CUresult err = c_dtod();

	return err ? err : c_set();
}

static CUresult c_set_behind_fill(void)
{
	CUresult err = c_sync_other();

	return err ? err : c_set();
}

static CUresult c_set_behind_rows(void)
{
	CUresult err = c_2d();

	return err ? err : c_set();
}

static CUresult c_set_of_other(void)
{
	CUresult err = c_dtod();

	return err ? err : set_sync(victim, 1);
}

static CUresult c_set_behind_async(void)
{
	CUresult err = CALL(cuMemcpyDtoDAsync_v2, mem, mem + 65536, 4096, held);

	return err ? err : c_set();
}

/* Is what was asked for before waited for, and what is asked for then? */
static void ask_sync_memops(void)
{
	ASK("other memory", cuMemAlloc_v2, &victim, 1 << 20);
	meanwhile("set sync memops, default stream held", c_set, NULL);
	set_sync(mem, 0);
	meanwhile("behind a synchronous copy", c_set_behind_copy, NULL);
	set_sync(mem, 0);
	meanwhile("the same, blocking stream held", c_set_behind_copy, held);
	set_sync(mem, 0);
	meanwhile("behind a synchronous fill", c_set_behind_fill, NULL);
	set_sync(mem, 0);
	meanwhile("behind one of rows", c_set_behind_rows, NULL);
	set_sync(mem, 0);
	meanwhile("of other memory", c_set_of_other, NULL);
	meanwhile("behind an asynchronous copy", c_set_behind_async, held);
	meanwhile("cuMemcpyDtoD, sync memops set", c_dtod, NULL);
	meanwhile("cuMemcpy2D", c_2d, NULL);
	meanwhile("cuMemsetD8", c_sync_other, NULL);
	meanwhile("cuMemsetD2D8", c_fill_2d, NULL);
	set_sync(mem, 0);
}

void ask_copies(void)
{
	ASK("memory", cuMemAlloc_v2, &mem, 1 << 20);
	CALL(cuStreamCreate, &held, 0);
	CALL(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
	ASK("second context", cuCtxCreate_v2, &second, 0, 0);
	ASK("memory there", cuMemAlloc_v2, &there, 1 << 20);
	CALL(cuCtxSetCurrent, ctx);
	meanwhile("cuMemcpyDtoD, default stream held", c_dtod, NULL);
	meanwhile("blocking stream held", c_dtod, held);
	meanwhile("non-blocking stream held", c_dtod, apart);
	meanwhile("cuMemcpyPeer, default stream held", c_peer, NULL);
	meanwhile("cuMemcpy2D, default stream held", c_2d, NULL);
	meanwhile("cuMemsetD8, default stream held", c_sync_other, NULL);
	meanwhile("cuMemsetD2D8, default stream held", c_fill_2d, NULL);
	meanwhile("blocking stream held", c_fill_2d, held);
	meanwhile("to a second context, default stream held", c_to_second, NULL);
	meanwhile("blocking stream held", c_to_second, held);
	meanwhile("non-blocking stream held", c_to_second, apart);
	meanwhile("from it, default stream held", c_from_second, NULL);
	meanwhile("cuMemcpyPeer to it, default stream held", c_peer_second, NULL);
	ask_sync_memops();
	ASK("synchronize the context", cuCtxSynchronize);
}

/* ---- values ---- */

static void ask_values(void)
{
	static const int attrs[] = { 92, 93, 94, 98, 122, 123 };
	CUstreamBatchMemOpParams op[2];
	CUdeviceptr at = (uintptr_t)host;
	int value = -1;

	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
		printf("attribute %d: ", attrs[i]);
		ASK("", cuDeviceGetAttribute, &value, (CUdevice_attribute)attrs[i], 0);
		SAY("value", value);
	}
	CALL(cuCtxSynchronize);
	memset(host, 0, 4096);
	ASK("wait for a value", cuStreamWaitValue32_v2, held, at, 5, CU_STREAM_WAIT_VALUE_GEQ);
	ASK("query", cuStreamQuery, held);
	ASK("function behind it", cuLaunchHostFunc, held, note, NULL);
	ASK("another stream writes 4", cuStreamWriteValue32_v2, apart, at, 4, 0);
	ASK("synchronize it", cuStreamSynchronize, apart);
	SAY("it is there", *(volatile int *)host);
	usleep(100000);
	ASK("query", cuStreamQuery, held);
	ASK("another stream writes 6", cuStreamWriteValue32_v2, apart, at, 6, 0);
	ASK("synchronize who waits", cuStreamSynchronize, held);
	ASK("the CPU's write is seen", cuStreamWaitValue64_v2, held, at + 8, 1, CU_STREAM_WAIT_VALUE_EQ);
	ASK("query", cuStreamQuery, held);
	*(volatile unsigned long long *)(host + 8) = 1;
	ASK("synchronize", cuStreamSynchronize, held);
	ASK("in memory of the GPU", cuMemsetD8_v2, mem, 0, 4096);
	ASK("wait", cuStreamWaitValue64_v2, held, mem, 1ull << 40, CU_STREAM_WAIT_VALUE_AND);
	ASK("query", cuStreamQuery, held);
	ASK("write", cuStreamWriteValue64_v2, apart, mem, 3ull << 40, 0);
	ASK("write without a barrier", cuStreamWriteValue64_v2, apart, mem, 3ull << 40, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
	ASK("synchronize", cuStreamSynchronize, held);
	*(volatile int *)host = -1;
	ASK("-1 is not 1", cuStreamWaitValue32_v2, held, at, 1, CU_STREAM_WAIT_VALUE_GEQ);
	ASK("query", cuStreamQuery, held);
	*(volatile int *)host = (int)0x80000000;
	usleep(100000);
	ASK("nor is the least", cuStreamQuery, held);
	*(volatile int *)host = 0x7fffffff;
	ASK("the greatest is", cuStreamSynchronize, held);
	*(volatile unsigned int *)host = ~5u;
	ASK("NOR", cuStreamWaitValue32_v2, held, at, 5, CU_STREAM_WAIT_VALUE_NOR);
	ASK("query", cuStreamQuery, held);
	*(volatile unsigned int *)host = 5;
	ASK("synchronize", cuStreamSynchronize, held);
	ASK("FLUSH", cuStreamWaitValue32_v2, held, at, 5, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH);
	ASK("address 0", cuStreamWaitValue32_v2, held, 0, 5, 0);
	ASK("odd address", cuStreamWaitValue32_v2, held, at + 2, 0, 0);
	ASK("half a word of 64 bits", cuStreamWaitValue64_v2, held, at + 4, 0, 0);
	ASK("odd address to write", cuStreamWriteValue32_v2, held, at + 2, 0, 0);
	ASK("write to half a word of 64 bits", cuStreamWriteValue64_v2, held, at + 20, 0, 0);
	ASK("wrong flags", cuStreamWaitValue32_v2, held, at, 5, 8);
	ASK("wrong flags to write", cuStreamWriteValue32_v2, held, at, 5, 2);
	ASK("pageable memory", cuStreamWriteValue32_v2, held, (uintptr_t)pageable, 5, 0);
	ASK("default stream", cuStreamWriteValue32_v2, NULL, at, 7, 0);
	ASK("per thread", cuStreamWriteValue32_v2, CU_STREAM_PER_THREAD, at, 7, 0);
	ASK("first version: write", cuStreamWriteValue32, held, at, 7, 0);
	ASK("first version: wait", cuStreamWaitValue32, held, at, 7, 1);
	ASK("synchronize", cuCtxSynchronize);

	memset(op, 0, sizeof(op));
	op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[0].writeValue.address = at;
	op[0].writeValue.value = 9;
	op[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	op[1].waitValue.address = at + 8;
	op[1].waitValue.value64 = 9;
	op[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ASK("batch", cuStreamBatchMemOp_v2, held, 2, op, 0);
	for (int i = 0; i < 2000 && *(volatile int *)host != 9; i++)
		usleep(10000);
	SAY("the first is done", *(volatile int *)host);
	ASK("query", cuStreamQuery, held);
	*(volatile unsigned long long *)(host + 8) = 9;
	ASK("synchronize", cuStreamSynchronize, held);
	ASK("empty batch", cuStreamBatchMemOp_v2, held, 0, op, 0);
	ASK("flags", cuStreamBatchMemOp_v2, held, 1, op, 1);
	ASK("first version", cuStreamBatchMemOp, held, 1, op, 0);
	*(volatile int *)host = 1;
	op[1].operation = 77;
	ASK("wrong operation", cuStreamBatchMemOp_v2, held, 2, op, 0);
	ASK("synchronize", cuCtxSynchronize);
	SAY("the first was done", *(volatile int *)host == 9);
	memset(op, 0, sizeof(op));
	op[0].operation = CU_STREAM_MEM_OP_BARRIER;
	ASK("barrier", cuStreamBatchMemOp_v2, held, 1, op, 0);
	op[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	ASK("flush", cuStreamBatchMemOp_v2, held, 1, op, 0);
}

static void ask_times(void)
{
	CUevent a, b, never, plain;
	float ms = 1000;

	CALL(cuEventCreate, &a, 0);
	CALL(cuEventCreate, &b, 0);
	CALL(cuEventCreate, &never, 0);
	CALL(cuEventCreate, &plain, CU_EVENT_DISABLE_TIMING);
	CALL(cuEventRecord, plain, held);
	CALL(cuCtxSynchronize);
	CALL(cuEventRecord, a, held);
	CALL(cuMemsetD8Async, mem, 1, 4096, held);
	CALL(cuEventRecord, b, held);
	usleep(2000000);
	ASK("time of work that ended long ago", cuEventElapsedTime, &ms, a, b);
	SAY("it is not when somebody asked", ms < 1900);
	shut(held);
	CALL(cuEventRecord, b, held);
	usleep(700000);
	ASK("no time of what has not ended", cuEventElapsedTime, &ms, a, b);
	ASK("and of what was never recorded", cuEventElapsedTime, &ms, b, never);
	ASK("the other way round", cuEventElapsedTime, &ms, never, b);
	ASK("and of what takes no times", cuEventElapsedTime, &ms, b, plain);
	open_gate();
	ASK("time of what was held", cuEventElapsedTime, &ms, a, b);
	SAY("it is when it was let go", ms > 600);
}

void ask_order(void)
{
	void *p;

	ASK("memory", cuMemAlloc_v2, &mem, sizeof(pageable));
	ASK("host memory", cuMemAllocHost_v2, &p, 1 << 20);
	host = p;
	CALL(cuStreamCreate, &held, 0);
	CALL(cuStreamCreate, &other, 0);
	CALL(cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING);
	ask_held();
	ask_default();
	ask_callers();
	ask_values();
	ask_times();
	ASK("synchronize the context", cuCtxSynchronize);
}
