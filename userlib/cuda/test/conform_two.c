// SPDX-License-Identifier: MIT
/*
 * Questions on two GPUs: memory of one in work of the other, and who waits for
 * whom.  The context of conform.h is on the first one.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "conform.h"

#define BYTES	4096ul

static CUcontext far;		/* on the second GPU */
static CUdeviceptr a, b;	/* memory of the first one, and of the second */
static unsigned char *host;

static void on(CUcontext c)
{
	CALL(cuCtxSetCurrent, c);
}

static void on_none(void)
{
	CUcontext c = NULL;

	while (!CALL(cuCtxGetCurrent, &c) && c)
		CALL(cuCtxPopCurrent_v2, &c);
}

static void two(void)
{
	void *p;

	ASK("context on the second", cuCtxCreate_v2, &far, CU_CTX_SCHED_YIELD, 1);
	ASK("memory there", cuMemAlloc_v2, &b, 4 * MiB);
	on(ctx);
	ASK("memory here", cuMemAlloc_v2, &a, 4 * MiB);
	ASK("host memory", cuMemHostAlloc, &p, 4 * MiB, CU_MEMHOSTALLOC_PORTABLE);
	host = p;
}

static void quiet(void)
{
	CUcontext was = NULL;

	CALL(cuCtxGetCurrent, &was);
	on(far);
	CALL(cuCtxSynchronize);
	on(ctx);
	CALL(cuCtxSynchronize);
	on(was);
}

/* The bytes at @p, of the GPU that @c is on */
static void put(CUdeviceptr p, CUcontext c, unsigned char value)
{
	CUcontext was = NULL;

	CALL(cuCtxGetCurrent, &was);
	on(c);
	CALL(cuMemsetD8_v2, p, value, BYTES);
	CALL(cuCtxSynchronize);
	on(was);
}

static bool has(CUdeviceptr p, CUcontext c, unsigned char value)
{
	unsigned char got[BYTES];
	CUcontext was = NULL;
	bool right = true;

	memset(got, 0xee, sizeof(got));
	CALL(cuCtxGetCurrent, &was);
	on(c);
	if (CALL(cuMemcpyDtoH_v2, got, p, BYTES))
		right = false;
	on(was);
	for (size_t i = 0; i < BYTES; i++)
		right = right && got[i] == value;
	return right;
}

/* ---- the two devices ---- */

void ask_two_devices(void)
{
	int n = 77, can = 77;

	ASK("count", cuDeviceGetCount, &n);
	SAY("two or more", n >= 2);
	ASK("can access, first to second", cuDeviceCanAccessPeer, &can, 0, 1);
	SAY("can access", can);
	ASK("can access, second to first", cuDeviceCanAccessPeer, &can, 1, 0);
	SAY("can access", can);
	ASK("second to itself", cuDeviceCanAccessPeer, &can, 1, 1);
	SAY("can access", can);
	ASK("no place", cuDeviceCanAccessPeer, NULL, 0, 1);
	ASK("device -1", cuDeviceCanAccessPeer, &can, -1, 1);
	for (unsigned int i = 0; i < 8; i++) {
		printf("attribute %u: ", i);
		ASK("", cuDeviceGetP2PAttribute, &can, i, 0, 1);
		printf("attribute %u of itself: ", i);
		ASK("", cuDeviceGetP2PAttribute, &can, i, 1, 1);
	}
	can = 77;
	ASK("access supported", cuDeviceGetP2PAttribute, &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 0);
	SAY("access supported", can);
	ASK("attribute, no place", cuDeviceGetP2PAttribute, NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1);
	ASK("attribute, no such device", cuDeviceGetP2PAttribute, &can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1000, 1);
	for (int i = 0; i < 2; i++) {
		ASK("unified addressing", cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, i);
		SAY("unified addressing", can);
	}
}

/* Numbers of this very machine: to be read, not to be compared */
void ask_two_facts(void)
{
	static const int attrs[] = { 1, 2, 3, 4, 5 };
	char name[64];
	int v;

	for (int i = 0; i < 2; i++) {
		CALL(cuDeviceGetName, name, sizeof(name), i);
		puts(name);
		for (size_t j = 0; j < sizeof(attrs) / sizeof(attrs[0]); j++) {
			v = 77;
			CALL(cuDeviceGetP2PAttribute, &v, (CUdevice_P2PAttribute)attrs[j], i, 1 - i);
			printf("P2P attribute %d from %d to %d: %d\n", attrs[j], i, 1 - i, v);
		}
		ask_attributes_of(i);
	}
}

/* ---- access ---- */

void ask_two_access(void)
{
	CUcontext more = NULL, primary = NULL;

	two();
	ASK("disable, never enabled", cuCtxDisablePeerAccess, far);
	ASK("enable, flags 1", cuCtxEnablePeerAccess, far, 1);
	ASK("enable, of none", cuCtxEnablePeerAccess, NULL, 0);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	ASK("enable again", cuCtxEnablePeerAccess, far, 0);
	ASK("enable again, flags 1", cuCtxEnablePeerAccess, far, 1);
	ASK("second context there", cuCtxCreate_v2, &more, 0, 1);
	on(ctx);
	ASK("enable for that one", cuCtxEnablePeerAccess, more, 0);
	ASK("enable for that one again", cuCtxEnablePeerAccess, more, 0);
	ASK("disable for that one", cuCtxDisablePeerAccess, more);
	ASK("the first one is still on", cuCtxEnablePeerAccess, far, 0);
	ASK("primary context there", cuDevicePrimaryCtxRetain, &primary, 1);
	ASK("enable for it", cuCtxEnablePeerAccess, primary, 0);
	ASK("release it", cuDevicePrimaryCtxRelease_v2, 1);
	ASK("retain it", cuDevicePrimaryCtxRetain, &primary, 1);
	ASK("enable for it, after", cuCtxEnablePeerAccess, primary, 0);
	ASK("release it", cuDevicePrimaryCtxRelease_v2, 1);
	on(far);
	ASK("other way, disable", cuCtxDisablePeerAccess, ctx);
	ASK("other way, enable", cuCtxEnablePeerAccess, ctx, 0);
	ASK("of itself", cuCtxEnablePeerAccess, far, 0);
	ASK("of another one here", cuCtxEnablePeerAccess, more, 0);
	ASK("other way, disable", cuCtxDisablePeerAccess, ctx);
	on(ctx);
	ASK("that is another thing", cuCtxEnablePeerAccess, far, 0);
	ASK("disable", cuCtxDisablePeerAccess, far);
	ASK("disable again", cuCtxDisablePeerAccess, far);
	ASK("destroy the second context there", cuCtxDestroy_v2, more);
	on_none();
	ASK("enable without a context", cuCtxEnablePeerAccess, far, 0);
	ASK("disable without a context", cuCtxDisablePeerAccess, far);
	on(ctx);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	ASK("destroy who was enabled", cuCtxDestroy_v2, far);
	ASK("still works", cuMemsetD8_v2, a, 1, BYTES);
	ASK("context on the second", cuCtxCreate_v2, &far, 0, 1);
	on(ctx);
	ASK("enable for the new one", cuCtxEnablePeerAccess, far, 0);
	ASK("destroy who enabled", cuCtxDestroy_v2, ctx);
	on(far);
	ASK("the other one still works", cuMemAlloc_v2, &b, BYTES);
}

/* ---- copies ---- */

struct way {
	CUdeviceptr dst, src;
	CUcontext dst_ctx, src_ctx;
};

static CUresult k_dtod(const struct way *w)
{
	return CALL(cuMemcpyDtoD_v2, w->dst, w->src, BYTES);
}

static CUresult k_unified(const struct way *w)
{
	return CALL(cuMemcpy, w->dst, w->src, BYTES);
}

static CUresult k_peer(const struct way *w)
{
	return CALL(cuMemcpyPeer, w->dst, w->dst_ctx, w->src, w->src_ctx, BYTES);
}

static CUresult k_dtod_async(const struct way *w)
{
	return CALL(cuMemcpyDtoDAsync_v2, w->dst, w->src, BYTES, NULL);
}

static CUresult k_unified_async(const struct way *w)
{
	return CALL(cuMemcpyAsync, w->dst, w->src, BYTES, NULL);
}

static CUresult k_peer_async(const struct way *w)
{
	return CALL(cuMemcpyPeerAsync, w->dst, w->dst_ctx, w->src, w->src_ctx, BYTES, NULL);
}

static CUresult k_2d(const struct way *w)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = w->src, .srcPitch = BYTES / 4,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = w->dst, .dstPitch = BYTES / 4,
		.WidthInBytes = BYTES / 4, .Height = 4,
	};

	return CALL(cuMemcpy2D_v2, &c);
}

static CUresult k_2d_unified(const struct way *w)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = w->src, .srcPitch = BYTES / 4,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = w->dst, .dstPitch = BYTES / 4,
		.WidthInBytes = BYTES / 4, .Height = 4,
	};

	return CALL(cuMemcpy2D_v2, &c);
}

static CUresult k_batch(const struct way *w)
{
	CUmemcpyAttributes attrs = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUdeviceptr dst = w->dst, src = w->src;
	size_t size = BYTES, start = 0;
	CUstream s = NULL;
	CUresult err;

	CALL(cuStreamCreate, &s, 0);
	err = CALL(cuMemcpyBatchAsync_v2, &dst, &src, &size, 1, &attrs, &start, 1, s);
	CALL(cuStreamSynchronize, s);
	CALL(cuStreamDestroy_v2, s);
	return err;
}

static const struct {
	const char *name;
	CUresult (*copy)(const struct way *w);
} kinds[] = {
	{ "cuMemcpyDtoD", k_dtod },
	{ "cuMemcpy", k_unified },
	{ "cuMemcpyPeer", k_peer },
	{ "cuMemcpyDtoDAsync", k_dtod_async },
	{ "cuMemcpyAsync", k_unified_async },
	{ "cuMemcpyPeerAsync", k_peer_async },
	{ "cuMemcpy2D", k_2d },
	{ "cuMemcpy2D, unified", k_2d_unified },
	{ "cuMemcpyBatchAsync", k_batch },
};

/* Each call, each way, with each of the contexts current */
static void copy_all(const char *access)
{
	const struct way ways[] = {
		{ .dst = b, .dst_ctx = far, .src = a, .src_ctx = ctx },
		{ .dst = a, .dst_ctx = ctx, .src = b, .src_ctx = far },
		{ .dst = b + 2 * BYTES, .dst_ctx = far, .src = b, .src_ctx = far },
		{ .dst = a + 2 * BYTES, .dst_ctx = ctx, .src = a, .src_ctx = ctx },
	};
	static const char *const names[] = { "there", "here", "within the second", "within the first" };
	static unsigned char value;
	CUresult err;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
			for (int second = 0; second < 2; second++) {
				if (++value == 255)
					value = 1;
				put(ways[w].src, ways[w].src_ctx, value);
				put(ways[w].dst, ways[w].dst_ctx, 0);
				on(second ? far : ctx);
				err = kinds[k].copy(&ways[w]);
				quiet();
				on(ctx);
				printf("%s, %s, %s, the %s is current: %d %s\n", access, kinds[k].name, names[w],
				       second ? "second" : "first", (int)err,
				       has(ways[w].dst, ways[w].dst_ctx, value) ? "copied" : "not copied");
			}
}

void ask_two_copies(void)
{
	two();
	copy_all("no access");
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	copy_all("the first may");
	on(far);
	ASK("enable the other way", cuCtxEnablePeerAccess, ctx, 0);
	on(ctx);
	copy_all("both may");
	ASK("disable", cuCtxDisablePeerAccess, far);
	copy_all("the second may");
}

void ask_two_copies_wrong(void)
{
	two();
	memset(host, 0x21, BYTES);
	put(a, ctx, 0x11);
	put(b, far, 0x12);
	ASK("contexts the wrong way round", cuMemcpyPeer, b, ctx, a, far, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x11));
	put(b, far, 0x12);
	ASK("both contexts the first", cuMemcpyPeer, b, ctx, a, ctx, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x11));
	put(b, far, 0x12);
	ASK("asynchronous, both the second", cuMemcpyPeerAsync, b, far, a, far, BYTES, NULL);
	quiet();
	SAY("copied", has(b, far, 0x11));
	ASK("nothing", cuMemcpyPeer, b, far, a, ctx, 0);
	ASK("too long", cuMemcpyPeer, b + 4 * MiB - 8, far, a, ctx, BYTES);
	ASK("from too long", cuMemcpyPeer, b, far, a + 4 * MiB - 8, ctx, BYTES);
	ASK("to address 0", cuMemcpyPeer, 0, far, a, ctx, BYTES);
	ASK("from address 0", cuMemcpyPeer, b, far, 0, ctx, BYTES);
	ASK("from host memory", cuMemcpyPeer, b, far, (uintptr_t)host, ctx, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x21));
	ASK("to host memory", cuMemcpyPeer, (uintptr_t)host, far, a, ctx, BYTES);
	quiet();
	SAY("copied", host[0] == 0x11 && host[BYTES - 1] == 0x11);
	ASK("to itself", cuMemcpyPeer, a, ctx, a, ctx, BYTES);
	ASK("overlapping", cuMemcpyPeer, a + 100, ctx, a, ctx, BYTES);
	on_none();
	ASK("without a context", cuMemcpyPeer, b, far, a, ctx, BYTES);
	ASK("without a context, asynchronous", cuMemcpyPeerAsync, b, far, a, ctx, BYTES, NULL);
	on(ctx);
	ASK("synchronize", cuCtxSynchronize);
	on(far);
	ASK("synchronize", cuCtxSynchronize);
}

/* ---- the other one's memory, in calls that have one pointer ---- */

static void touch(const char *access)
{
	static const char *const names[] = { "first", "second" };
	unsigned char in[64], out[64];

	printf("%s\n", access);
	memset(in, 0x55, sizeof(in));
	for (int i = 0; i < 2; i++) {
		CUdeviceptr p = i ? a : b;

		on(i ? far : ctx);
		printf("the %s is current\n", names[i]);
		ASK("to the other's memory", cuMemcpyHtoD_v2, p, in, sizeof(in));
		memset(out, 0, sizeof(out));
		ASK("from it", cuMemcpyDtoH_v2, out, p, sizeof(out));
		SAY("the same", !memcmp(in, out, sizeof(in)));
		ASK("asynchronous", cuMemcpyHtoDAsync_v2, p, host, BYTES, NULL);
		ASK("asynchronous, back", cuMemcpyDtoHAsync_v2, host, p, BYTES, NULL);
		ASK("synchronize", cuCtxSynchronize);
	}
	quiet();
	on(ctx);
}

void ask_two_touch(void)
{
	two();
	touch("no access");
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	touch("the first may");
}

static void fill(CUcontext c, CUdeviceptr p, CUcontext owner)
{
	put(p, owner, 0);
	on(c);
	ASK("fill the other's memory", cuMemsetD8_v2, p, 0x77, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(p, owner, 0x77));
	ASK("fill of two dimensions", cuMemsetD2D8_v2, p, 512, 0x78, 100, 4);
	ASK("fill, asynchronous", cuMemsetD8Async, p, 0x79, BYTES, NULL);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(p, owner, 0x79));
	on(ctx);
}

void ask_two_fill_none(void)
{
	two();
	fill(ctx, b, far);
	fill(far, a, ctx);
}

void ask_two_fill(void)
{
	two();
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	fill(ctx, b, far);
	on(far);
	ASK("enable the other way", cuCtxEnablePeerAccess, ctx, 0);
	fill(far, a, ctx);
	ASK("disable", cuCtxDisablePeerAccess, far);
	ASK("synchronize", cuCtxSynchronize);
}

static void value(void)
{
	CUstream s;

	ASK("stream", cuStreamCreate, &s, 0);
	put(b, far, 0);
	ASK("write a value", cuStreamWriteValue32_v2, s, b, 0x11111111, 0);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("wait for a value", cuStreamWaitValue32_v2, s, b, 0, CU_STREAM_WAIT_VALUE_GEQ);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("destroy", cuStreamDestroy_v2, s);
}

void ask_two_values_none(void)
{
	two();
	value();
}

void ask_two_values(void)
{
	two();
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	value();
	ASK("synchronize", cuCtxSynchronize);
}

/* ---- pointers ---- */

static void attributes(CUdeviceptr p)
{
	unsigned long long types = 77, id = 0, id2 = 0;
	CUdeviceptr base = 0;
	CUcontext c = NULL;
	unsigned int type = 77;
	size_t size = 77;
	int v = 77;

	ASK("type", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	SAY("type", type);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("context: none, first, second, other", !c ? 0 : c == ctx ? 1 : c == far ? 2 : 3);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", v);
	ASK("device pointer", cuPointerGetAttribute, &base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p);
	SAY("the same", base == p);
	ASK("start", cuPointerGetAttribute, &base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5);
	SAY("the same", base == p);
	ASK("size", cuPointerGetAttribute, &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	SAY("size", size);
	ASK("mapped", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_MAPPED, p);
	SAY("mapped", v);
	ASK("old IPC", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("old IPC", v);
	ASK("handle types", cuPointerGetAttribute, &types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p);
	SAY("handle types", types);
	ASK("access", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
	SAY("access", v);
	ASK("buffer id", cuPointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
	ASK("buffer id again", cuPointerGetAttribute, &id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 7);
	SAY("the same", id == id2);
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p + 9);
	SAY("starts there", base == p);
	SAY("size", size);
}

void ask_two_pointers(void)
{
	CUcontext more = NULL;
	static unsigned char plain[3 * BYTES] __attribute__((aligned(4096)));
	size_t avail = 0, total = 0, other = 0;
	CUipcMemHandle mh;
	CUdeviceptr p = 0;
	unsigned int n = 77;
	int fd = -1, v = 1;
	void *h = NULL;

	two();
	printf("the second's memory\n");
	attributes(b);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	printf("the second's memory, with access\n");
	attributes(b);
	ASK("synchronous operations", cuPointerSetAttribute, &v, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, b);
	ASK("IPC handle", cuIpcGetMemHandle, &mh, b);
	ASK("dma-buf", cuMemGetHandleForAddressRange, &fd, b, 2 * MiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (fd >= 0)
		close(fd);
	ASK("info", cuMemGetInfo_v2, &avail, &total);
	on(far);
	printf("the first's memory\n");
	attributes(a);
	ASK("alloc", cuMemAlloc_v2, &p, 64 * MiB);
	on(ctx);
	ASK("info", cuMemGetInfo_v2, &other, &total);
	SAY("memory of the other one does not count", other == avail);
	ASK("free the other's memory", cuMemFree_v2, p);
	ASK("free again", cuMemFree_v2, p);
	ASK("disable", cuCtxDisablePeerAccess, far);
	on(far);
	ASK("alloc", cuMemAlloc_v2, &p, BYTES);
	on(ctx);
	ASK("free the other's memory, no access", cuMemFree_v2, p);
	/* Another context of the same GPU */
	ASK("second context here", cuCtxCreate_v2, &more, 0, 0);
	ASK("fill the first one's memory", cuMemsetD8_v2, a, 3, BYTES);
	ASK("copy from the second", cuMemcpyDtoD_v2, a, b, BYTES);
	ASK("destroy it", cuCtxDestroy_v2, more);
	on_none();
	ASK("attribute without a context", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b);
	SAY("ordinal", v);
	on(ctx);
	/* Host memory */
	ASK("host memory, not portable", cuMemHostAlloc, &h, BYTES, 0);
	ASK("flags", cuMemHostGetFlags, &n, h);
	SAY("flags", n);
	on(far);
	ASK("device pointer in the other one", cuMemHostGetDevicePointer_v2, &p, h, 0);
	SAY("the same", p == (uintptr_t)h);
	ASK("copy to it", cuMemcpyHtoDAsync_v2, b, h, BYTES, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("free it there", cuMemFreeHost, h);
	ASK("register, not portable", cuMemHostRegister_v2, plain, sizeof(plain), 0);
	on(ctx);
	ASK("register in the other one", cuMemHostRegister_v2, plain, sizeof(plain), 0);
	ASK("flags in the other one", cuMemHostGetFlags, &n, plain);
	SAY("flags", n);
	ASK("context of it", cuPointerGetAttribute, &more, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t)plain);
	SAY("the second", more == far);
	ASK("unregister in the other one", cuMemHostUnregister, plain);
	ASK("unregister again", cuMemHostUnregister, plain);
	ASK("destroy the second", cuCtxDestroy_v2, far);
	ASK("type of its memory", cuPointerGetAttribute, &n, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, b);
	ASK("free it", cuMemFree_v2, b);
	ASK("copy from it", cuMemcpyDtoD_v2, a, b, BYTES);
	ASK("synchronize", cuCtxSynchronize);
}

/* ---- streams and events of the other one ---- */

void ask_two_streams(void)
{
	CUevent e1 = NULL, e2 = NULL, plain = NULL;
	CUstream s1 = NULL, s2 = NULL;
	CUcontext c = NULL;
	CUdevice dev = 77;
	CUdeviceptr p = 0;
	unsigned int n = 77;
	int priority;
	float ms = -1;

	two();
	on(far);
	ASK("stream of the second", cuStreamCreate, &s2, 0);
	ASK("event of the second", cuEventCreate, &e2, 0);
	on(ctx);
	ASK("stream of the first", cuStreamCreate, &s1, 0);
	ASK("event of the first", cuEventCreate, &e1, 0);
	ASK("event without times", cuEventCreate, &plain, CU_EVENT_DISABLE_TIMING);
	ASK("query the other's", cuStreamQuery, s2);
	ASK("synchronize it", cuStreamSynchronize, s2);
	ASK("flags of it", cuStreamGetFlags, s2, &n);
	ASK("priority of it", cuStreamGetPriority, s2, &priority);
	ASK("context of it", cuStreamGetCtx, s2, &c);
	SAY("the second", c == far);
	ASK("device of it", cuStreamGetDevice, s2, &dev);
	SAY("device", dev);
	ASK("device of the default stream", cuStreamGetDevice, NULL, &dev);
	SAY("device", dev);
	ASK("fill its memory in it", cuMemsetD8Async, b, 1, BYTES, s2);
	ASK("copy in it", cuMemcpyHtoDAsync_v2, b, host, BYTES, s2);
	ASK("to memory of this one", cuMemcpyHtoDAsync_v2, a, host, BYTES, s2);
	ASK("copy within this one", cuMemcpyDtoDAsync_v2, a, a + BYTES, BYTES, s2);
	ASK("between the two", cuMemcpyPeerAsync, a, ctx, b, far, BYTES, s2);
	ASK("between the two, unified", cuMemcpyAsync, b, a, BYTES, s2);
	ASK("the second's memory in a stream of the first", cuMemcpyHtoDAsync_v2, b, host, BYTES, s1);
	ASK("copy within the second", cuMemcpyDtoDAsync_v2, b, b + BYTES, BYTES, s1);
	ASK("alloc in it", cuMemAllocAsync, &p, BYTES, s2);
	ASK("ordinal", cuPointerGetAttribute, &dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", dev);
	ASK("free in a stream of the first", cuMemFreeAsync, p, s1);
	ASK("synchronize it", cuStreamSynchronize, s2);
	ASK("record the first's event there", cuEventRecord, e1, s2);
	ASK("record the second's event here", cuEventRecord, e2, s1);
	ASK("record the second's in the default stream", cuEventRecord, e2, NULL);
	ASK("record the second's there", cuEventRecord, e2, s2);
	ASK("record the first's here", cuEventRecord, e1, s1);
	ASK("query the second's", cuEventQuery, e2);
	ASK("synchronize the second's", cuEventSynchronize, e2);
	ASK("synchronize the first's", cuEventSynchronize, e1);
	ASK("time between the two", cuEventElapsedTime, &ms, e1, e2);
	ASK("time of the second's", cuEventElapsedTime, &ms, e2, e2);
	ASK("wait there for the first's", cuStreamWaitEvent, s2, e1, 0);
	ASK("wait here for the second's", cuStreamWaitEvent, s1, e2, 0);
	ASK("wait in the default stream for the second's", cuStreamWaitEvent, NULL, e2, 0);
	ASK("function in it", cuLaunchHostFunc, s2, (CUhostFn)note, NULL);
	ASK("synchronize it", cuStreamSynchronize, s2);
	ASK("the thread's own", cuMemcpyHtoDAsync_v2, b, host, BYTES, CU_STREAM_PER_THREAD);
	on_none();
	ASK("no context: query", cuStreamQuery, s2);
	ASK("no context: query the event", cuEventQuery, e2);
	ASK("no context: fill", cuMemsetD8Async, b, 1, BYTES, s2);
	ASK("no context: copy", cuMemcpyHtoDAsync_v2, b, host, BYTES, s2);
	ASK("no context: record", cuEventRecord, e2, s2);
	ASK("no context: wait", cuStreamWaitEvent, s1, e2, 0);
	ASK("no context: query the default stream", cuStreamQuery, NULL);
	ASK("no context: synchronize", cuStreamSynchronize, s2);
	on(ctx);
	ASK("destroy the other's stream", cuStreamDestroy_v2, s2);
	ASK("destroy the other's event", cuEventDestroy_v2, e2);
	ASK("destroy", cuStreamDestroy_v2, s1);
	ASK("destroy", cuEventDestroy_v2, e1);
	ASK("synchronize", cuCtxSynchronize);
}

/* ---- pools ---- */

#define ACCESS(what, dev) do {						\
	CUmemLocation where_ = { CU_MEM_LOCATION_TYPE_DEVICE, dev };	\
	CUmemAccess_flags flags_ = 77;					\
	ASK(what, cuMemPoolGetAccess, &flags_, pool, &where_);		\
	SAY(what, flags_);						\
} while (0)

void ask_two_pools(void)
{
	CUmemAccessDesc second = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAccessDesc first = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc both[2] = { first, second };
	CUmemoryPool pool = NULL, set = NULL, was = NULL;
	CUstream s2 = NULL;
	CUdeviceptr p = 0, q = 0;
	int v = 77;

	two();
	on(far);
	ASK("stream of the second", cuStreamCreate, &s2, 0);
	on(ctx);
	ASK("pool of the first", cuMemPoolCreate, &pool, &props);
	ACCESS("access of the first", 0);
	ACCESS("access of the second", 1);
	ASK("alloc", cuMemAllocFromPoolAsync, &p, BYTES, pool, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("access flags", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
	SAY("access flags", v);
	put(p, ctx, 0x31);
	ASK("copy to the second, no access", cuMemcpyDtoD_v2, b, p, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x31));
	on(far);
	put(b, far, 0);
	ASK("in the second, no access", cuMemcpyDtoD_v2, b, p, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x31));
	ASK("cuMemcpyPeer", cuMemcpyPeer, b, far, p, ctx, BYTES);
	ASK("access flags in the second", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
	SAY("access flags", v);
	ASK("context access is another thing", cuCtxEnablePeerAccess, ctx, 0);
	ACCESS("access of the second", 1);
	on(ctx);
	ASK("set access", cuMemPoolSetAccess, pool, &second, 1);
	ACCESS("access of the second", 1);
	ASK("set access again", cuMemPoolSetAccess, pool, &second, 1);
	on(far);
	ASK("fill in the second", cuMemsetD8_v2, p, 0x32, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(p, ctx, 0x32));
	ASK("access flags in the second", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
	SAY("access flags", v);
	ASK("copy in the second", cuMemcpyDtoD_v2, b, p, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x32));
	ASK("alloc in a stream of the second", cuMemAllocFromPoolAsync, &q, BYTES, pool, s2);
	ASK("synchronize", cuStreamSynchronize, s2);
	ASK("fill it in that stream", cuMemsetD8Async, q, 0x33, BYTES, s2);
	ASK("synchronize", cuStreamSynchronize, s2);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q);
	SAY("ordinal", v);
	ASK("free in that stream", cuMemFreeAsync, q, s2);
	ASK("free the other one in that stream", cuMemFreeAsync, p, s2);
	ASK("synchronize", cuStreamSynchronize, s2);
	on(ctx);
	second.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	ASK("set access, reading", cuMemPoolSetAccess, pool, &second, 1);
	ACCESS("access of the second", 1);
	second.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	ASK("set access, none", cuMemPoolSetAccess, pool, &second, 1);
	ACCESS("access of the second", 1);
	second.flags = 2;
	ASK("set access, flags 2", cuMemPoolSetAccess, pool, &second, 1);
	first.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	ASK("none for the first", cuMemPoolSetAccess, pool, &first, 1);
	first.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	ASK("reading for the first", cuMemPoolSetAccess, pool, &first, 1);
	ASK("both at once", cuMemPoolSetAccess, pool, both, 2);
	ACCESS("access of the first", 0);
	ACCESS("access of the second", 1);
	both[1] = both[0];
	ASK("one of them twice", cuMemPoolSetAccess, pool, both, 2);
	second.location.id = 1000;
	second.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	ASK("no such device", cuMemPoolSetAccess, pool, &second, 1);
	ASK("none of them", cuMemPoolSetAccess, pool, &second, 0);
	ASK("no list", cuMemPoolSetAccess, pool, NULL, 1);
	second.location.id = 1;
	ASK("destroy", cuMemPoolDestroy, pool);
	/* The default pools */
	ASK("default pool of the second", cuDeviceGetDefaultMemPool, &pool, 1);
	ASK("of the first", cuDeviceGetDefaultMemPool, &set, 0);
	SAY("another one", pool != set);
	ACCESS("access of the first", 0);
	ASK("the first's pool for the second", cuDeviceSetMemPool, 1, set);
	ASK("pool of the second", cuDeviceGetMemPool, &was, 1);
	SAY("its own", was == pool);
	ASK("alloc of the second's pool, default stream", cuMemAllocFromPoolAsync, &p, BYTES, pool, NULL);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", v);
	ASK("synchronize", cuCtxSynchronize);
	ASK("free in the default stream", cuMemFreeAsync, p, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("alloc in a stream of the second", cuMemAllocAsync, &p, BYTES, s2);
	ASK("free, synchronous, from the first", cuMemFree_v2, p);
	ASK("synchronize", cuCtxSynchronize);
}

/* A pool that the context's GPU has no right to */
void ask_two_pool_none(void)
{
	CUmemoryPool pool = NULL;
	CUdeviceptr p = 0;

	two();
	ASK("default pool of the second", cuDeviceGetDefaultMemPool, &pool, 1);
	ASK("alloc", cuMemAllocFromPoolAsync, &p, BYTES, pool, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("fill", cuMemsetD8_v2, p, 1, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("fill again", cuMemsetD8_v2, a, 1, BYTES);
}

/* ---- memory by hand ---- */

static CUdeviceptr map_at(int dev, CUdeviceptr at)
{
	CUmemAllocationProp where = prop;
	CUmemGenericAllocationHandle h = 0;

	where.location.id = dev;
	ASK("create", cuMemCreate, &h, 2 * MiB, &where, 0);
	if (!at)
		ASK("reserve", cuMemAddressReserve, &at, 2 * MiB, 0, 0, 0);
	ASK("map", cuMemMap, at, 2 * MiB, 0, h, 0);
	ASK("release", cuMemRelease, h);
	return at;
}

static void right(CUdeviceptr p, const char *what)
{
	printf("%s:", what);
	for (int dev = 0; dev < 2; dev++) {
		CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, dev };
		unsigned long long flags = 77;
		CUresult err = CALL(cuMemGetAccess, &flags, &where, p);

		printf(" %d/%llu", (int)err, flags);
	}
	printf("\n");
}

static CUresult give(CUdeviceptr p, size_t size, int dev, unsigned int flags)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, dev }, flags };

	return CALL(cuMemSetAccess, p, size, &desc, 1);
}
#define GIVE(what, p, size, dev, flags) \
	printf("%-44s %d\n", what, (int)give(p, size, dev, flags))

void ask_two_vmm(void)
{
	CUmemAccessDesc list[2] = {
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READ },
		{ { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
	};
	unsigned char in[64], out[64];
	CUdeviceptr p, q = 0;
	CUcontext c = NULL;
	int v = 77, fd = -1;
	size_t size = 0;

	memset(in, 0x41, sizeof(in));
	two();
	p = map_at(1, 0);
	right(p, "nothing set");
	ASK("copy, nothing set", cuMemcpyDtoD_v2, a, p, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	GIVE("access for its own", p, 2 * MiB, 1, 3);
	right(p, "its own");
	ASK("to it, the first is current", cuMemcpyHtoD_v2, p, in, sizeof(in));
	ASK("from it", cuMemcpyDtoH_v2, out, p, sizeof(out));
	SAY("the same", !memcmp(in, out, sizeof(in)));
	ASK("copy to the first", cuMemcpyDtoD_v2, a, p, BYTES);
	ASK("copy to it", cuMemcpyDtoD_v2, p + BYTES, a, BYTES);
	ASK("cuMemcpyPeer to it", cuMemcpyPeer, p, far, a, ctx, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	on(far);
	ASK("fill, the second is current", cuMemsetD8_v2, p, 0x42, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	on(ctx);
	GIVE("access for the first", p, 2 * MiB, 0, 3);
	right(p, "both");
	ASK("fill, the first is current", cuMemsetD8_v2, p, 0x43, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(p, far, 0x43));
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("none", c == NULL);
	ASK("ordinal", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", v);
	ASK("access flags", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p);
	SAY("access flags", v);
	GIVE("none for its own", p, 2 * MiB, 1, 0);
	right(p, "the first only");
	ASK("fill, the first is current", cuMemsetD8_v2, p, 0x44, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("copy to the first", cuMemcpyDtoD_v2, a, p, BYTES);
	quiet();
	SAY("copied", has(a, ctx, 0x44));
	ASK("to it", cuMemcpyHtoD_v2, p, in, sizeof(in));
	ASK("set both, one for reading", cuMemSetAccess, p, 2 * MiB, list, 2);
	right(p, "reading and all");
	ASK("copy to the first", cuMemcpyDtoD_v2, a, p, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	list[1] = list[0];
	ASK("the first twice", cuMemSetAccess, p, 2 * MiB, list, 2);
	list[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	ASK("the first twice, two rights", cuMemSetAccess, p, 2 * MiB, list, 2);
	list[1].location.id = 1000;
	ASK("one of two does not exist", cuMemSetAccess, p, 2 * MiB, list, 2);
	right(p, "after that");
	GIVE("none for the first", p, 2 * MiB, 0, 0);
	GIVE("all for its own", p, 2 * MiB, 1, 3);
	right(p, "its own");
	ASK("context access", cuCtxEnablePeerAccess, far, 0);
	right(p, "it changes nothing");
	ASK("synchronize", cuCtxSynchronize);

	/* One behind the other */
	ASK("reserve", cuMemAddressReserve, &q, 4 * MiB, 0, 0, 0);
	map_at(0, q);
	map_at(1, q + 2 * MiB);
	GIVE("access for the first", q, 4 * MiB, 0, 3);
	right(q, "first half");
	right(q + 2 * MiB, "second half");
	GIVE("access for the second", q, 4 * MiB, 1, 3);
	ASK("fill across", cuMemsetD8_v2, q + 2 * MiB - 2048, 0x51, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(q + 2 * MiB - 2048, ctx, 0x51));
	ASK("copy across", cuMemcpyDtoD_v2, a, q + 2 * MiB - 2048, BYTES);
	quiet();
	SAY("copied", has(a, ctx, 0x51));
	ASK("copy across, to it", cuMemcpyDtoD_v2, q + 2 * MiB - 100, b, BYTES);
	ASK("from it to the host", cuMemcpyDtoH_v2, out, q + 2 * MiB - 32, sizeof(out));
	on(far);
	ASK("the second is current", cuMemcpyDtoH_v2, out, q + 2 * MiB - 32, sizeof(out));
	on(ctx);
	ASK("ordinal of the first half", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q);
	SAY("ordinal", v);
	ASK("ordinal of the second half", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q + 2 * MiB);
	SAY("ordinal", v);
	ASK("range of the first half", cuMemGetAddressRange_v2, &p, &size, q + 1);
	SAY("size", size);
	ASK("dma-buf of both", cuMemGetHandleForAddressRange, &fd, q, 4 * MiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (fd >= 0)
		close(fd);
	fd = -1;
	ASK("dma-buf of the second half", cuMemGetHandleForAddressRange, &fd, q + 2 * MiB, 2 * MiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (fd >= 0)
		close(fd);
	ASK("unmap both", cuMemUnmap, q, 4 * MiB);
	ASK("free the address", cuMemAddressFree, q, 4 * MiB);
}

/* Each of these may end the context, so each is in a process of its own */
void ask_two_vmm_none(void)
{
	CUdeviceptr p;

	two();
	p = map_at(1, 0);
	GIVE("access for its own", p, 2 * MiB, 1, 3);
	ASK("fill, the first is current", cuMemsetD8_v2, p, 1, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("fill own memory", cuMemsetD8_v2, a, 1, BYTES);
}

void ask_two_vmm_own(void)
{
	CUdeviceptr p;

	two();
	p = map_at(1, 0);
	GIVE("access for the first", p, 2 * MiB, 0, 3);
	on(far);
	ASK("fill, the second is current", cuMemsetD8_v2, p, 1, BYTES);
	ASK("synchronize", cuCtxSynchronize);
	ASK("fill own memory", cuMemsetD8_v2, b, 1, BYTES);
}

/* ---- order ---- */

static CUstream held1, held2, free1, free2;
static CUdeviceptr victim;

static void streams(void)
{
	on(far);
	CALL(cuStreamCreate, &held2, 0);
	CALL(cuStreamCreate, &free2, CU_STREAM_NON_BLOCKING);
	on(ctx);
	CALL(cuStreamCreate, &held1, 0);
	CALL(cuStreamCreate, &free1, CU_STREAM_NON_BLOCKING);
}

/* A function holds @stream, of the context @c */
static void shut_of(CUstream stream, CUcontext c)
{
	quiet();
	on(c);
	shut(stream);
	on(ctx);
}

static void let_go(void)
{
	open_gate();
	quiet();
}

static void ask_events(void)
{
	CUevent e1, e2;

	CALL(cuEventCreate, &e1, CU_EVENT_DISABLE_TIMING);
	on(far);
	CALL(cuEventCreate, &e2, CU_EVENT_DISABLE_TIMING);
	on(ctx);
	put(a, ctx, 0);
	put(b, far, 0);
	shut_of(held1, ctx);
	ASK("fill behind a function", cuMemsetD8Async, a, 0x61, BYTES, held1);
	ASK("record", cuEventRecord, e1, held1);
	ASK("the second waits", cuStreamWaitEvent, held2, e1, 0);
	ASK("copy behind that", cuMemcpyPeerAsync, b, far, a, ctx, BYTES, held2);
	ASK("record behind it", cuEventRecord, e2, held2);
	ASK("the first waits for that", cuStreamWaitEvent, free1, e2, 0);
	ASK("query the event", cuEventQuery, e1);
	ASK("query who waits", cuStreamQuery, held2);
	ASK("query the second's event", cuEventQuery, e2);
	ASK("query who waits for that", cuStreamQuery, free1);
	ASK("the second's other stream", cuStreamQuery, free2);
	on(far);
	ASK("the second's default stream", cuStreamQuery, NULL);
	ASK("fill in the second's other stream", cuMemsetD8Async, b + MiB, 1, BYTES, free2);
	ASK("synchronize it", cuStreamSynchronize, free2);
	on(ctx);
	let_go();
	SAY("copied", has(b, far, 0x61));
	ASK("query, after", cuStreamQuery, free1);
	CALL(cuEventDestroy_v2, e1);
	CALL(cuEventDestroy_v2, e2);
}

/* A copy between the two, in a stream that is held: who is busy? */
static void ask_busy(void)
{
	put(a, ctx, 0x62);
	put(b, far, 0);
	shut_of(held1, ctx);
	ASK("copy there behind a function", cuMemcpyPeerAsync, b, far, a, ctx, BYTES, held1);
	ASK("query it", cuStreamQuery, held1);
	ASK("a stream of the second", cuStreamQuery, held2);
	on(far);
	ASK("the second's default stream", cuStreamQuery, NULL);
	ASK("fill the target in the second", cuMemsetD8Async, b, 0x63, BYTES, held2);
	ASK("synchronize that", cuStreamSynchronize, held2);
	ASK("synchronize the second's context", cuCtxSynchronize);
	on(ctx);
	let_go();
	SAY("the copy came last", has(b, far, 0x62));
	put(b, far, 0);
	shut_of(held1, ctx);
	ASK("copy here behind a function", cuMemcpyPeerAsync, a, ctx, b, far, BYTES, held1);
	on(far);
	ASK("the second's default stream", cuStreamQuery, NULL);
	ASK("fill the source in the second", cuMemsetD8Async, b, 0x64, BYTES, held2);
	ASK("synchronize that", cuStreamSynchronize, held2);
	on(ctx);
	let_go();
	SAY("the fill came first", has(a, ctx, 0x64));
	/* Default streams of the two have nothing to do with each other */
	shut_of(NULL, ctx);
	on(far);
	ASK("the first's default stream is held: the second's", cuStreamQuery, NULL);
	ASK("fill in it", cuMemsetD8Async, b, 0x65, BYTES, NULL);
	ASK("fill in a blocking stream", cuMemsetD8Async, b, 0x65, BYTES, held2);
	ASK("synchronize that", cuStreamSynchronize, held2);
	ASK("the thread's own", cuMemsetD8Async, b, 0x65, BYTES, CU_STREAM_PER_THREAD);
	ASK("synchronize that", cuStreamSynchronize, CU_STREAM_PER_THREAD);
	ASK("copy from the first in it", cuMemcpyPeerAsync, b, far, a, ctx, BYTES, NULL);
	ASK("synchronize the context", cuCtxSynchronize);
	on(ctx);
	let_go();
}

static CUresult w_dtod(void)
{
	return CALL(cuMemcpyDtoD_v2, b, a, BYTES);
}

static CUresult w_back(void)
{
	return CALL(cuMemcpyDtoD_v2, a, b, BYTES);
}

static CUresult w_peer(void)
{
	return CALL(cuMemcpyPeer, b, far, a, ctx, BYTES);
}

static CUresult w_peer_back(void)
{
	return CALL(cuMemcpyPeer, a, ctx, b, far, BYTES);
}

static CUresult w_peer_second(void)
{
	on(far);
	return CALL(cuMemcpyPeer, b, far, a, ctx, BYTES);
}

static CUresult w_peer_async(void)
{
	return CALL(cuMemcpyPeerAsync, b, far, a, ctx, BYTES, held1);
}

static CUresult w_peer_async_free(void)
{
	return CALL(cuMemcpyPeerAsync, b, far, a, ctx, BYTES, free1);
}

static CUresult w_fill_second(void)
{
	on(far);
	return CALL(cuMemsetD8_v2, b, 1, BYTES);
}

static CUresult w_in_second(void)
{
	static unsigned char plain[BYTES];

	on(far);
	return CALL(cuMemcpyHtoD_v2, b, plain, BYTES);
}

static CUresult w_sync_second(void)
{
	on(far);
	return CALL(cuCtxSynchronize);
}

static CUresult w_alloc_second(void)
{
	on(far);
	return CALL(cuMemAlloc_v2, &victim, BYTES);
}

static CUresult w_free_second(void)
{
	on(far);
	return CALL(cuMemFree_v2, victim);
}

static CUresult w_free_from_first(void)
{
	return CALL(cuMemFree_v2, victim);
}

static CUresult w_free_host(void)
{
	return CALL(cuMemFreeHost, host);
}

static CUresult w_enable(void)
{
	return CALL(cuCtxEnablePeerAccess, far, 0);
}

static CUresult w_disable(void)
{
	return CALL(cuCtxDisablePeerAccess, far);
}

static CUresult w_destroy_second(void)
{
	return CALL(cuCtxDestroy_v2, far);
}

/* Does the call return while the stream is held? */
static void callers(void)
{
	meanwhile("cuMemcpyDtoD there, blocking stream held", w_dtod, held1);
	meanwhile("non-blocking stream held", w_dtod, free1);
	meanwhile("default stream held", w_dtod, NULL);
	meanwhile("cuMemcpyDtoD here, blocking stream held", w_back, held1);
	meanwhile("cuMemcpyPeer there, blocking stream held", w_peer, held1);
	meanwhile("non-blocking stream held", w_peer, free1);
	meanwhile("default stream held", w_peer, NULL);
	meanwhile("cuMemcpyPeer here, blocking stream held", w_peer_back, held1);
	meanwhile("the second is current", w_peer_second, held1);
	meanwhile("asynchronous", w_peer_async, held1);
	meanwhile("asynchronous, another stream", w_peer_async_free, held1);
	meanwhile("fill in the second", w_fill_second, NULL);
	meanwhile("copy from the host in the second", w_in_second, NULL);
	meanwhile("synchronize the second", w_sync_second, NULL);
	meanwhile("alloc in the second", w_alloc_second, NULL);
	meanwhile("free in the second", w_free_second, NULL);
	on(far);
	CALL(cuMemAlloc_v2, &victim, BYTES);
	on(ctx);
	meanwhile("free the second's memory from here", w_free_from_first, NULL);
	meanwhile("enable access", w_enable, held1);
	meanwhile("disable access", w_disable, held1);
}

void ask_two_order(void)
{
	two();
	streams();
	ask_events();
	ask_busy();
	callers();
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	on(far);
	ASK("enable the other way", cuCtxEnablePeerAccess, ctx, 0);
	on(ctx);
	printf("both may\n");
	ask_events();
	ask_busy();
	meanwhile("cuMemcpyDtoD there, blocking stream held", w_dtod, held1);
	meanwhile("cuMemcpyPeer there, blocking stream held", w_peer, held1);
	meanwhile("the second is current", w_peer_second, held1);
	on(far);
	meanwhile("stream of the second held: cuMemcpyDtoD there", w_dtod, held2);
	meanwhile("cuMemcpyDtoD here", w_back, held2);
	meanwhile("cuMemcpyPeer there", w_peer, held2);
	meanwhile("cuMemcpyPeer here", w_peer_back, held2);
	meanwhile("its non-blocking stream held: cuMemcpyPeer", w_peer, free2);
	meanwhile("page-locked memory is freed", w_free_host, held2);
	on(ctx);
	meanwhile("destroy the second, the first's stream is held", w_destroy_second, held1);
	ASK("synchronize", cuCtxSynchronize);
}

static CUresult w_free_both(void)
{
	return CALL(cuMemFree_v2, b);
}

static CUresult w_free_here(void)
{
	return CALL(cuMemFree_v2, a);
}

/* What waits only where there is access */
void ask_two_order_access(void)
{
	two();
	streams();
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	meanwhile("free the second's memory, the first's stream is held", w_free_both, held1);
	on(far);
	meanwhile("free the first's memory, the second's stream is held", w_free_here, held2);
	ASK("memory", cuMemAlloc_v2, &b, BYTES);
	on(ctx);
	ASK("memory", cuMemAlloc_v2, &a, BYTES);
	meanwhile("alloc in the second, the first's stream is held", w_alloc_second, held1);
	on(far);
	meanwhile("the second's stream is held: destroy the second", w_destroy_second, held2);
	on(ctx);
	ASK("synchronize", cuCtxSynchronize);
	ASK("fill", cuMemsetD8_v2, a, 1, BYTES);
}

/*
 * A value holds the stream.  A function may hold up more than its stream: NVIDIA's
 * library has one thread for the functions of all.
 */
static void by_value(const char *what, CUresult (*fn)(void), CUstream stream)
{
	volatile unsigned int *word = (void *)host;

	*word = 0;
	CALL(cuStreamWaitValue32_v2, stream, (uintptr_t)host, 1, CU_STREAM_WAIT_VALUE_EQ);
	CALL(cuMemsetD8Async, a, 1, BYTES, stream);
	returns(what, fn);
	*word = 1;
	ends();
	CALL(cuCtxSynchronize);
}

void ask_two_order_value(void)
{
	two();
	streams();
	by_value("cuMemcpyDtoD there, blocking stream held", w_dtod, held1);
	by_value("cuMemcpyPeer there", w_peer, held1);
	by_value("alloc in the second", w_alloc_second, held1);
	by_value("free in the second", w_free_second, held1);
	by_value("destroy the second", w_destroy_second, held1);
}

/* Nobody may */
void ask_two_order_destroy(void)
{
	two();
	streams();
	meanwhile("destroy the second, the first's stream is held", w_destroy_second, held1);
	ASK("context on the second", cuCtxCreate_v2, &far, CU_CTX_SCHED_YIELD, 1);
	on(ctx);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	meanwhile("the first may: destroy the second", w_destroy_second, held1);
	ASK("context on the second", cuCtxCreate_v2, &far, CU_CTX_SCHED_YIELD, 1);
	ASK("enable the other way", cuCtxEnablePeerAccess, ctx, 0);
	on(ctx);
	meanwhile("the second may: destroy the second", w_destroy_second, held1);
	ASK("synchronize", cuCtxSynchronize);
}

/* Memory by hand and of pools, and who may: the stream's context, or who is current? */
void ask_two_rights(void)
{
	CUcontext more = NULL;
	CUmemoryPool pool = NULL;
	CUdeviceptr p, q = 0;
	CUstream s2 = NULL;

	two();
	on(far);
	ASK("stream of the second", cuStreamCreate, &s2, CU_STREAM_NON_BLOCKING);
	on(ctx);
	p = map_at(1, 0);
	GIVE("access for its own", p, 2 * MiB, 1, 3);
	ASK("to it in a stream of the second", cuMemcpyHtoDAsync_v2, p, host, BYTES, s2);
	ASK("fill in it", cuMemsetD8Async, p, 1, BYTES, s2);
	ASK("fill of two dimensions in it", cuMemsetD2D8Async, p, 512, 1, 100, 4, s2);
	ASK("copy in it", cuMemcpyDtoDAsync_v2, b, p, BYTES, s2);
	ASK("synchronize it", cuStreamSynchronize, s2);
	ASK("write a value in it", cuStreamWriteValue32_v2, s2, p, 1, 0);
	ASK("synchronize it", cuStreamSynchronize, s2);
	ASK("unified", cuMemcpy, a, p, BYTES);
	ASK("unified, to the host", cuMemcpy, (uintptr_t)host, p, BYTES);
	ASK("cuMemcpyPeer, contexts the wrong way round", cuMemcpyPeer, p, ctx, a, far, BYTES);
	ASK("cuMemcpyPeer, both the first", cuMemcpyPeer, p, ctx, a, ctx, BYTES);
	ASK("cuMemcpyPeer, both the second", cuMemcpyPeer, p, far, p + BYTES, far, BYTES);
	ASK("cuMemcpyPeerAsync", cuMemcpyPeerAsync, p, far, a, ctx, BYTES, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("device pointer", cuPointerGetAttribute, &q, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p);
	ASK("range", cuMemGetAddressRange_v2, &q, &(size_t){ 0 }, p);
	on_none();
	ASK("device pointer, no context", cuPointerGetAttribute, &q, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, b);
	ASK("range, no context", cuMemGetAddressRange_v2, &q, &(size_t){ 0 }, b);
	on(ctx);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	ASK("to it, the first is current", cuMemcpyHtoD_v2, p, host, BYTES);
	ASK("disable", cuCtxDisablePeerAccess, far);
	GIVE("none for its own", p, 2 * MiB, 1, 0);
	GIVE("reading for the first", p, 2 * MiB, 0, 1);
	ASK("from it", cuMemcpyDtoH_v2, host, p, BYTES);
	ASK("copy from it", cuMemcpyDtoD_v2, a, p, BYTES);
	ASK("copy to the second", cuMemcpyDtoD_v2, b, p, BYTES);
	ASK("cuMemcpyPeer, its own named", cuMemcpyPeer, a, ctx, p, far, BYTES);
	ASK("cuMemcpyPeer, the first named", cuMemcpyPeer, a, ctx, p, ctx, BYTES);
	ASK("synchronize", cuCtxSynchronize);

	ASK("default pool of the second", cuDeviceGetDefaultMemPool, &pool, 1);
	ASK("alloc", cuMemAllocFromPoolAsync, &q, BYTES, pool, s2);
	ASK("synchronize", cuStreamSynchronize, s2);
	ASK("to it", cuMemcpyHtoD_v2, q, host, BYTES);
	ASK("from it", cuMemcpyDtoH_v2, host, q, BYTES);
	ASK("copy to the first", cuMemcpyDtoD_v2, a, q, BYTES);
	ASK("copy within it", cuMemcpyDtoD_v2, q, q + 512, 512);
	ASK("unified", cuMemcpy, q, a, BYTES);
	ASK("cuMemcpyPeer", cuMemcpyPeer, a, ctx, q, far, BYTES);
	ASK("enable", cuCtxEnablePeerAccess, far, 0);
	ASK("to it, with access of the context", cuMemcpyHtoD_v2, q, host, BYTES);
	ASK("fill, with access of the context", cuMemsetD8_v2, q, 1, BYTES);
	ASK("device pointer", cuPointerGetAttribute, &p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, q);
	ASK("range", cuMemGetAddressRange_v2, &p, &(size_t){ 0 }, q);
	ASK("free it", cuMemFree_v2, q);
	ASK("second context there", cuCtxCreate_v2, &more, CU_CTX_SCHED_YIELD, 1);
	ASK("its memory", cuMemAlloc_v2, &q, BYTES);
	on(ctx);
	ASK("fill that, access to the first one only", cuMemsetD8_v2, q, 1, BYTES);
	ASK("device pointer", cuPointerGetAttribute, &p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, q);
	ASK("copy from it", cuMemcpyDtoD_v2, a, q, BYTES);
	ASK("synchronize", cuCtxSynchronize);
}

/* The second's context goes while the first waits for it */
void ask_two_order_end(void)
{
	CUevent e2;

	two();
	streams();
	on(far);
	CALL(cuEventCreate, &e2, CU_EVENT_DISABLE_TIMING);
	on(ctx);
	shut_of(held2, far);
	ASK("record in the second", cuEventRecord, e2, held2);
	ASK("the first waits", cuStreamWaitEvent, held1, e2, 0);
	ASK("fill behind that", cuMemsetD8Async, a, 0x66, BYTES, held1);
	ASK("destroy the event", cuEventDestroy_v2, e2);
	ASK("query who waits", cuStreamQuery, held1);
	open_gate();
	ASK("synchronize who waited", cuStreamSynchronize, held1);
	SAY("filled", has(a, ctx, 0x66));
	ASK("destroy the second", cuCtxDestroy_v2, far);
	ASK("query its stream", cuStreamQuery, held1);
	ASK("fill", cuMemsetD8Async, a, 0x67, BYTES, held1);
	ASK("synchronize", cuCtxSynchronize);
	SAY("filled", has(a, ctx, 0x67));
}

void ask_two_destroyed(void)
{
	two();
	ASK("destroy the second", cuCtxDestroy_v2, far);
	ASK("enable for what is destroyed", cuCtxEnablePeerAccess, far, 0);
	ASK("disable for what is destroyed", cuCtxDisablePeerAccess, far);
	ASK("synchronize", cuCtxSynchronize);
}

void ask_two_no_context(void)
{
	two();
	put(a, ctx, 0x71);
	put(b, far, 0);
	ASK("copy, no context named", cuMemcpyPeer, b, NULL, a, NULL, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x71));
	put(b, far, 0);
	ASK("asynchronous", cuMemcpyPeerAsync, b, NULL, a, NULL, BYTES, NULL);
	quiet();
	SAY("copied", has(b, far, 0x71));
	put(b, far, 0);
	ASK("one context named", cuMemcpyPeer, b, far, a, NULL, BYTES);
	quiet();
	SAY("copied", has(b, far, 0x71));
	on_none();
	ASK("no context named, none current", cuMemcpyPeer, b, NULL, a, NULL, BYTES);
	on(ctx);
	ASK("synchronize", cuCtxSynchronize);
}
