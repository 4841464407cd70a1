// SPDX-License-Identifier: MIT
/*
 * Ask a libcuda.so.1 questions and print its answers, one line each, so that
 * the answers of ours can be compared with those of NVIDIA's on a real GPU
 * (conform.golden: driver 580.159.04, an H100; many on an H200, too; the goldens of
 * two GPUs and of two processes: two H100s with NVLink between them).  Only
 * questions whose answer does not depend on the GPU, and that NVIDIA's library
 * does not crash on.
 *
 * The library is loaded as a program of a user does it: by name.
 */
#include "conform.h"

CUcontext ctx;

void ask_attributes_of(int device)
{
	CUresult err;
	int v;

	for (int i = 1; i <= PLN_CUDA_DEVICE_ATTRIBUTE_LAST; i++) {
		v = 0;
		err = CALL(cuDeviceGetAttribute, &v, (CUdevice_attribute)i, device);
		if (err)
			printf("%d error %d\n", i, (int)err);
		else
			printf("%d %d\n", i, v);
	}
}

static void ask_attributes(void)
{
	ask_attributes_of(0);
}

/* Forms of the first device's bus id */
static void bus_ids(void)
{
	static const char *const with_domain[] = {
		"%04x:%02x:%02x.0",
		"+%04x:%02x:%02x.0",
		"%04x:+%02x:%02x.0",
		"%04x:%02x:+%02x.0",
		"%04x:%02x:%02x.+0",
		" %04x:%02x:%02x.0",
		"%04x: %02x:%02x.0",
		"%016x:%02x:%02x.0",
		"%024x:%02x:%02x.0",
		"%040x:%02x:%02x.0",
		"%04x:%020x:%02x.0",
		"%04x:%02x:%020x.0",
		"%04x:%02x:%02x.00000000000000000000",
		"10000000000000000%x:%x:%x.0",
		"1%08x:%x:%x.0",
		"%x:%x:%x",
		"0x%x:%x:%x.0",
		"%04x:%02x:%02x.1",
		"%04x:%02x:%02x.",
		"%04x:%02x:%02x.0.0",
		"%04x:%02x:%02x.0x",
		"%04x:%02x:%02x.0X",
		"%04x:%02x:%02x.+0x",
		"%04x:%02x:%02x.-0x",
		"%04x:%02x:%02x.0x0",
		"%04x:%02x:%02x.0x1",
		"%04x:%02x:%02x.0xz",
		"%04x:%02x:%02x.0xx",
		"%04x:%02x:%02x.0x0x",
		"%04x:%02x:%02x.00x",
		"%04x:%02x:%02x.1x",
		"%04x:%02x:%02x.x",
		"%04x:%02x:%02x.0z",
		"%04x:%02x:%02xx",
	};
	static const char *const without[] = {
		"%02x:%02x.0", "%02x:%02x", "%x:%x.0", "%02x:%02x.0x",
		"0x:%02x:%02x.0", "0x:%02x:%02x",
	};
	unsigned int domain, bus, device;
	char text[16], id[96];
	CUdevice d;

	if (CALL(cuDeviceGetPCIBusId, text, sizeof(text), 0) ||
	    sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3)
		abort();
	for (size_t i = 0; i < sizeof(with_domain) / sizeof(*with_domain); i++) {
		snprintf(id, sizeof(id), with_domain[i], domain, bus, device);
		ASK(with_domain[i], cuDeviceGetByPCIBusId, &d, id);
	}
	for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++) {
		snprintf(id, sizeof(id), without[i], bus, device);
		ASK(without[i], cuDeviceGetByPCIBusId, &d, id);
	}
}

static void start(void)
{
	unsigned int version = 0;
	CUcontext c = (CUcontext)8;
	CUdeviceptr p;
	CUdevice d;
	int n = 0;

	ASK("count before init", cuDeviceGetCount, &n);
	ASK("alloc before init", cuMemAlloc_v2, &p, 10);
	ASK("init with flags", cuInit, 1);
	ASK("version without a place", cuDriverGetVersion, NULL);
	ASK("init", cuInit, 0);
	ASK("count", cuDeviceGetCount, &n);
	ASK("count without a place", cuDeviceGetCount, NULL);
	ASK("device -1", cuDeviceGet, &d, -1);
	ASK("device 1000", cuDeviceGet, &d, 1000);
	ASK("device without a place", cuDeviceGet, NULL, 0);
	ASK("attribute 0", cuDeviceGetAttribute, &n, (CUdevice_attribute)0, 0);
	ASK("attribute 100000", cuDeviceGetAttribute, &n,
	    (CUdevice_attribute)100000, 0);
	ASK("attribute of no device", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000);
	ASK("unified addressing", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0);
	SAY("unified addressing", n);
	ASK("GPUDirect RDMA", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0);
	SAY("GPUDirect RDMA", n);
	ASK("dma-buf", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0);
	SAY("dma-buf", n);
	ASK("shared memory of a block", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
	SAY("shared memory of a block", n);
	ASK("flush options", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0);
	SAY("flush options", n);
	ASK("total memory of no device", cuDeviceTotalMem_v2, (size_t[1]){ 0 },
	    1000);
	ASK("bus id, 12 bytes", cuDeviceGetPCIBusId, (char[16]){ 0 }, 12, 0);
	ASK("bus id, 13 bytes", cuDeviceGetPCIBusId, (char[16]){ 0 }, 13, 0);
	ASK("device by words", cuDeviceGetByPCIBusId, &d, "gpu");
	ASK("device by a bus id of none", cuDeviceGetByPCIBusId, &d,
	    "fedc:ba:18.0");
	bus_ids();
	ASK("current before any", cuCtxGetCurrent, &c);
	SAY("current is none", c == NULL);
	ASK("device of no context", cuCtxGetDevice, &d);
	ASK("alloc without a context", cuMemAlloc_v2, &p, 10);
	ASK("synchronize without a context", cuCtxSynchronize);
	ASK("pop without a context", cuCtxPopCurrent_v2, &c);
	ASK("stream without a context", cuStreamCreate, (CUstream[1]){ 0 }, 0);
	ASK("free of 0 without a context", cuMemFree_v2, 0);
	ASK("primary release, not retained", cuDevicePrimaryCtxRelease_v2, 0);
	ASK("context of no device", cuCtxCreate_v2, &c, 0, 1000);
	ASK("context, flags 3", cuCtxCreate_v2, &c, 3, 0);
	ASK("context without a place", cuCtxCreate_v2, NULL, 0, 0);
	ASK("context", cuCtxCreate_v2, &ctx, CU_CTX_SCHED_YIELD, 0);
	ASK("api version", cuCtxGetApiVersion, ctx, &version);
	SAY("api version", version);
	ASK("destroy NULL", cuCtxDestroy_v2, NULL);
	ASK("push NULL", cuCtxPushCurrent_v2, NULL);
}

static void memory(void)
{
	CUdeviceptr p = 0, q = 0, base = 0;
	size_t size = 0, total = 0, pitch = 0;
	unsigned int flags = 0;
	static char plain[8192];
	int fd = -1;
	void *h = NULL;

	ASK("alloc 0", cuMemAlloc_v2, &p, 0);
	ASK("alloc without a place", cuMemAlloc_v2, NULL, 10);
	ASK("alloc everything", cuMemAlloc_v2, &p, (size_t)1 << 50);
	ASK("alloc 100000", cuMemAlloc_v2, &p, 100000);
	ASK("alloc 4 MiB", cuMemAlloc_v2, &q, 4 * MiB);
	SAY("address modulo 512", p % 512);
	SAY("address of 4 MiB modulo 2 MiB", q % (2 * MiB));
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p + 99999);
	SAY("range starts there", base == p);
	SAY("range size", size);
	ASK("range of host memory", cuMemGetAddressRange_v2, &base, &size,
	    (uintptr_t)plain);
	ASK("range, no places", cuMemGetAddressRange_v2, NULL, NULL, p);
	ASK("info", cuMemGetInfo_v2, &size, &total);
	ASK("free inside", cuMemFree_v2, p + 512);
	ASK("free host memory", cuMemFree_v2, (uintptr_t)plain);
	ASK("free 0", cuMemFree_v2, 0);
	ASK("pitch, element 3", cuMemAllocPitch_v2, &base, &pitch, 10, 10, 3);
	ASK("pitch, no width", cuMemAllocPitch_v2, &base, &pitch, 0, 10, 4);
	ASK("managed, flags 0", cuMemAllocManaged, &base, 10, 0);
	ASK("host alloc 0", cuMemAllocHost_v2, &h, 0);
	ASK("host alloc, flags 8", cuMemHostAlloc, &h, 10, 8);
	ASK("host alloc", cuMemHostAlloc, &h, 5000,
	    CU_MEMHOSTALLOC_WRITECOMBINED);
	ASK("its flags", cuMemHostGetFlags, &flags, h);
	SAY("its flags, write combined", !!(flags & 4));
	ASK("flags of plain memory", cuMemHostGetFlags, &flags, plain);
	ASK("device pointer, flags 1", cuMemHostGetDevicePointer_v2, &base, h, 1);
	ASK("device pointer", cuMemHostGetDevicePointer_v2, &base, h, 0);
	SAY("device pointer is the same", base == (uintptr_t)h);
	ASK("device pointer of plain memory", cuMemHostGetDevicePointer_v2,
	    &base, plain, 0);
	ASK("free host, inside", cuMemFreeHost, (char *)h + 8);
	ASK("free host, plain memory", cuMemFreeHost, plain);
	ASK("register NULL", cuMemHostRegister_v2, NULL, 10, 0);
	ASK("register 0 bytes", cuMemHostRegister_v2, plain, 0, 0);
	ASK("register, flags 0x100", cuMemHostRegister_v2, plain, 10, 0x100);
	ASK("register", cuMemHostRegister_v2, plain, 8192, 0);
	ASK("register again", cuMemHostRegister_v2, plain, 8192, 0);
	ASK("free host, registered", cuMemFreeHost, plain);
	ASK("unregister, inside", cuMemHostUnregister, plain + 8);
	ASK("unregister", cuMemHostUnregister, plain);
	ASK("unregister again", cuMemHostUnregister, plain);
	ASK("unregister allocated", cuMemHostUnregister, h);
	ASK("export", cuMemGetHandleForAddressRange, &fd, q, 4 * MiB, 1, 0);
	SAY("export gave a descriptor", fd >= 0);
	if (fd >= 0)
		close(fd);
	ASK("export, size 0", cuMemGetHandleForAddressRange, &fd, q, 0, 1, 0);
	ASK("export, size 4095", cuMemGetHandleForAddressRange, &fd, q, 4095, 1,
	    0);
	ASK("export, offset 512", cuMemGetHandleForAddressRange, &fd, q + 512,
	    4096, 1, 0);
	ASK("export, type 2", cuMemGetHandleForAddressRange, &fd, q, 4096, 2, 0);
	ASK("export, flags 2", cuMemGetHandleForAddressRange, &fd, q, 4096, 1, 2);
	ASK("export without a place", cuMemGetHandleForAddressRange, NULL, q,
	    4096, 1, 0);
	ASK("export of a page, not of 64 KiB", cuMemGetHandleForAddressRange,
	    &fd, q, 4096, 1, 0);
	ASK("export of a page within 64 KiB", cuMemGetHandleForAddressRange,
	    &fd, q + 4096, 4096, 1, 0);
	ASK("export behind an allocation", cuMemGetHandleForAddressRange, &fd,
	    (p + MiB) & ~65535ull, 65536, 1, 0);
	ASK("free host", cuMemFreeHost, h);
	ASK("free host again", cuMemFreeHost, h);
	ASK("free", cuMemFree_v2, p);
	ASK("free again", cuMemFree_v2, p);
	ASK("free the other", cuMemFree_v2, q);
}

static void pointers(void)
{
	CUpointer_attribute attrs[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	};
	CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens = { 77, 77 };
	unsigned int type = 77;
	int ordinal = 77, managed = 77, v = 77;
	void *host = &host;
	size_t size = 77;
	CUdeviceptr p, dp = 77;
	CUcontext c = NULL;
	void *data[] = { &type, &ordinal, &host, &size, &managed, &dp };
	void *h = NULL;

	ASK("alloc", cuMemAlloc_v2, &p, 100000);
	ASK("host alloc", cuMemAllocHost_v2, &h, 5000);
#define ATTR(what, out, attr, ptr) \
	ASK(what, cuPointerGetAttribute, out, attr, ptr)
	ATTR("type, device", &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5);
	SAY("type, device", type);
	ATTR("type, host", &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)h);
	SAY("type, host", type);
	ATTR("type, plain", &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	     (uintptr_t)&v);
	ATTR("type, 0", &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0);
	ATTR("context", &c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("context is ours", c == ctx);
	ATTR("host pointer of device memory", &host,
	     CU_POINTER_ATTRIBUTE_HOST_POINTER, p);
	ATTR("device pointer of host memory", &dp,
	     CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (uintptr_t)h);
	SAY("the same", dp == (uintptr_t)h);
	ATTR("range start", &dp, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 99);
	SAY("range start", dp == p);
	ATTR("range size", &size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	SAY("range size", size);
	ATTR("ordinal", &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", ordinal);
	ATTR("managed", &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	SAY("managed", managed);
	ATTR("mapped", &v, CU_POINTER_ATTRIBUTE_MAPPED, p);
	SAY("mapped", v);
	ATTR("rdma capable", &v, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
	     p);
	SAY("rdma capable", v);
	ATTR("tokens", &tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p);
	SAY("token", tokens.p2pToken);
	ATTR("attribute 0", &v, (CUpointer_attribute)0, p);
	ATTR("attribute 999", &v, (CUpointer_attribute)999, p);
	ATTR("attribute without a place", NULL, CU_POINTER_ATTRIBUTE_MAPPED, p);
	v = 1;
	ASK("set sync memops", cuPointerSetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	ASK("set mapped", cuPointerSetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_MAPPED, p);
	ASK("set of plain memory", cuPointerSetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (uintptr_t)&v);
	ASK("attributes, device", cuPointerGetAttributes, 6, attrs, data, p);
	SAY("type", type);
	SAY("ordinal", ordinal);
	SAY("no host pointer", host == NULL);
	SAY("size", size);
	SAY("managed", managed);
	SAY("device pointer", dp == p);
	ASK("attributes, plain", cuPointerGetAttributes, 6, attrs, data,
	    (uintptr_t)&v);
	SAY("type", type);
	SAY("ordinal", ordinal);
	SAY("host pointer is the pointer", host == &v);
	SAY("managed", managed);
	SAY("no device pointer", dp == 0);
	ASK("attributes, none", cuPointerGetAttributes, 0, attrs, data, p);
	ASK("free", cuMemFree_v2, p);
	ATTR("type, freed", &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	ASK("free host", cuMemFreeHost, h);
}

static void copies(void)
{
	unsigned char in[4096], out[4096];
	CUcontext c = NULL;
	CUdeviceptr p, q;
	size_t left;

	memset(in, 7, sizeof(in));
	ASK("alloc", cuMemAlloc_v2, &p, 4 * MiB);
	ASK("alloc", cuMemAlloc_v2, &q, 4 * MiB);
	ASK("to device", cuMemcpyHtoD_v2, p, in, 4096);
	ASK("to device, 0 bytes", cuMemcpyHtoD_v2, p, in, 0);
	ASK("to device, 0 bytes, NULL", cuMemcpyHtoD_v2, p, NULL, 0);
	ASK("to device, too much", cuMemcpyHtoD_v2, p + 4 * MiB - 8, in, 4096);
	ASK("between", cuMemcpyDtoD_v2, q, p, 4096);
	ASK("from device", cuMemcpyDtoH_v2, out, q, 4096);
	SAY("same", !memcmp(in, out, 4096));
	ASK("unified, host to host", cuMemcpy, (uintptr_t)out, (uintptr_t)in, 9);
	ASK("unified, to device", cuMemcpy, p, (uintptr_t)in, 9);
	ASK("fill 8", cuMemsetD8_v2, p + 1, 1, 3);
	ASK("fill 16, odd", cuMemsetD16_v2, p + 1, 1, 3);
	ASK("fill 32, odd", cuMemsetD32_v2, p + 2, 1, 3);
	ASK("fill, 0 bytes", cuMemsetD8_v2, p, 1, 0);
	ASK("fill, too much", cuMemsetD8_v2, p, 1, 5 * MiB);
	ASK("fill plain memory", cuMemsetD8_v2, (uintptr_t)out, 1, 8);
	ASK("free", cuMemFree_v2, p);
	ASK("pop", cuCtxPopCurrent_v2, &c);
	ASK("fill without a context", cuMemsetD8_v2, q, 1, 8);
	ASK("from device without a context", cuMemcpyDtoH_v2, out, q, 8);
	ASK("info without a context", cuMemGetInfo_v2, &left, &left);
	ASK("free without a context", cuMemFree_v2, q);
	ASK("push", cuCtxPushCurrent_v2, c);
	ASK("fill freed", cuMemsetD8_v2, p, 1, 8);
	ASK("synchronize", cuCtxSynchronize);
}

static void streams(void)
{
	unsigned int flags = 9;
	CUstream s = NULL, t = NULL;
	CUevent e = NULL, f = NULL;
	float ms = -1;

	ASK("stream, flags 2", cuStreamCreate, &s, 2);
	ASK("stream without a place", cuStreamCreate, NULL, 0);
	ASK("stream", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	ASK("stream, priority -99", cuStreamCreateWithPriority, &t, 0, -99);
	ASK("flags", cuStreamGetFlags, s, &flags);
	SAY("flags", flags);
	ASK("query", cuStreamQuery, s);
	ASK("query the default", cuStreamQuery, NULL);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("synchronize legacy", cuStreamSynchronize, CU_STREAM_LEGACY);
	ASK("synchronize per thread", cuStreamSynchronize, CU_STREAM_PER_THREAD);
	ASK("destroy NULL", cuStreamDestroy_v2, NULL);
	ASK("event, flags 8", cuEventCreate, &e, 8);
	ASK("event, interprocess with times", cuEventCreate, &e,
	    CU_EVENT_INTERPROCESS);
	ASK("event without a place", cuEventCreate, NULL, 0);
	ASK("event", cuEventCreate, &e, 0);
	ASK("event without times", cuEventCreate, &f, CU_EVENT_DISABLE_TIMING);
	ASK("query, never recorded", cuEventQuery, e);
	ASK("synchronize, never recorded", cuEventSynchronize, e);
	ASK("elapsed, never recorded", cuEventElapsedTime, &ms, e, e);
	ASK("wait, never recorded", cuStreamWaitEvent, s, e, 0);
	ASK("wait, flags 4", cuStreamWaitEvent, s, e, 4);
	ASK("wait for NULL", cuStreamWaitEvent, s, NULL, 0);
	ASK("record", cuEventRecord, e, s);
	ASK("record without times", cuEventRecord, f, s);
	ASK("record NULL", cuEventRecord, NULL, s);
	ASK("record, flags 2", cuEventRecordWithFlags, e, s, 2);
	ASK("synchronize", cuEventSynchronize, e);
	ASK("elapsed", cuEventElapsedTime, &ms, e, e);
	SAY("elapsed", ms == 0);
	ASK("elapsed without times", cuEventElapsedTime, &ms, e, f);
	ASK("destroy event", cuEventDestroy_v2, e);
	ASK("destroy event", cuEventDestroy_v2, f);
	ASK("destroy event NULL", cuEventDestroy_v2, NULL);
	ASK("destroy", cuStreamDestroy_v2, s);
	ASK("destroy", cuStreamDestroy_v2, t);
}

static void names(void)
{
	CUdriverProcAddressQueryResult status = 77;
	const char *text = "?";
	void *fn = &fn;

	ASK("name", cuGetErrorName, CUDA_ERROR_NO_DEVICE, &text);
	printf("%s\n", text);
	ASK("name of nothing", cuGetErrorName, (CUresult)12345, &text);
	SAY("is NULL", text == NULL);
	ASK("words of nothing", cuGetErrorString, (CUresult)12345, &text);
	ASK("proc", cuGetProcAddress_v2, "cuMemAlloc", &fn, 12000, 0, &status);
	SAY("is v2", fn == sym("cuMemAlloc_v2"));
	SAY("status", status);
	fn = &fn;
	ASK("proc of nothing", cuGetProcAddress_v2, "cuMakeCoffee", &fn, 12000,
	    0, &status);
	SAY("is NULL", fn == NULL);
	SAY("status", status);
	fn = &fn;
	ASK("proc, first form, of nothing", cuGetProcAddress, "cuMakeCoffee",
	    &fn, 12000, 0);
	fn = &fn;
	ASK("proc by versioned name", cuGetProcAddress_v2, "cuMemAlloc_v2", &fn,
	    12000, 0, &status);
	SAY("status", status);
	ASK("proc, too old", cuGetProcAddress_v2, "cuMemcpyAsync", &fn, 3000, 0,
	    &status);
	SAY("is NULL", fn == NULL);
	SAY("status", status);
	ASK("proc, of the future", cuGetProcAddress_v2, "cuInit", &fn, 99000, 0,
	    &status);
	ASK("proc, flags 8", cuGetProcAddress_v2, "cuInit", &fn, 12000, 8,
	    &status);
	ASK("proc, flags 3", cuGetProcAddress_v2, "cuInit", &fn, 12000, 3,
	    &status);
}

static void peers(void)
{
	CUcontext other = NULL, c = NULL;
	CUdeviceptr p;
	int can = 77;

	ASK("can access itself", cuDeviceCanAccessPeer, &can, 0, 0);
	SAY("can access itself", can);
	ASK("can access, no device", cuDeviceCanAccessPeer, &can, 0, 1000);
	ASK("can access, no place", cuDeviceCanAccessPeer, NULL, 0, 0);
	ASK("attribute, itself", cuDeviceGetP2PAttribute, &can, 2, 0, 0);
	ASK("attribute 0", cuDeviceGetP2PAttribute, &can, 0, 0, 0);
	ASK("attribute, no device", cuDeviceGetP2PAttribute, &can, 2, 0, 1000);
	ASK("enable, none", cuCtxEnablePeerAccess, NULL, 0);
	ASK("enable, flags 1", cuCtxEnablePeerAccess, ctx, 1);
	ASK("disable, itself", cuCtxDisablePeerAccess, ctx);
	ASK("disable, none", cuCtxDisablePeerAccess, NULL);
	ASK("second context", cuCtxCreate_v2, &other, 0, 0);
	ASK("enable, same device", cuCtxEnablePeerAccess, ctx, 0);
	ASK("disable, same device", cuCtxDisablePeerAccess, ctx);
	ASK("alloc", cuMemAlloc_v2, &p, 4096);
	ASK("pop", cuCtxPopCurrent_v2, &c);
	ASK("copy between contexts", cuMemcpyPeer, p, other, p + 512, other,
	    512);
	ASK("destroy", cuCtxDestroy_v2, other);
}

static void modules(void)
{
	static const char ptx[] =
		".version 6.0\n.target sm_50\n.address_size 64\n"
		".visible .entry drv_nothing()\n{\n\tret;\n}\n";
	CUmodule m = NULL;
	CUfunction f = NULL;
	CUlibrary l = NULL;
	CUkernel k = NULL;
	const char *name = "?";
	CUdeviceptr p;
	size_t size;

	ASK("load, no image", cuModuleLoadData, &m, NULL);
	ASK("load, no place", cuModuleLoadData, NULL, ptx);
	ASK("load, words", cuModuleLoadData, &m, "these are no instructions");
	ASK("load, nothing", cuModuleLoadData, &m, "");
	ASK("load a file of none", cuModuleLoad, &m, "/nonexistent/file");
	ASK("load a file, no name", cuModuleLoad, &m, NULL);
	ASK("load a file, no device code", cuModuleLoad, &m, "/dev/null");
	ASK("load", cuModuleLoadData, &m, ptx);
	ASK("function of none", cuModuleGetFunction, &f, m, "drv_none");
	ASK("function, no name", cuModuleGetFunction, &f, m, NULL);
	ASK("function, empty name", cuModuleGetFunction, &f, m, "");
	ASK("function, no place", cuModuleGetFunction, NULL, m, "drv_nothing");
	ASK("function, no module", cuModuleGetFunction, &f, NULL, "drv_nothing");
	ASK("function", cuModuleGetFunction, &f, m, "drv_nothing");
	ASK("its name", cuFuncGetName, &name, f);
	printf("%s\n", name);
	ASK("its name, no place", cuFuncGetName, NULL, f);
	ASK("name of no function", cuFuncGetName, &name, NULL);
	ASK("variable of none", cuModuleGetGlobal_v2, &p, &size, m, "drv_none");
	ASK("variable, no name", cuModuleGetGlobal_v2, &p, &size, m, NULL);
	ASK("launch nothing", cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL,
	    NULL, NULL);
	ASK("launch, no blocks", cuLaunchKernel, f, 0, 1, 1, 1, 1, 1, 0, NULL,
	    NULL, NULL);
	ASK("launch, no threads", cuLaunchKernel, f, 1, 1, 1, 1, 0, 1, 0, NULL,
	    NULL, NULL);
	ASK("launch, 2000 threads", cuLaunchKernel, f, 1, 1, 1, 2000, 1, 1, 0,
	    NULL, NULL, NULL);
	ASK("launch, nothing said", cuLaunchKernelEx, NULL, f, NULL, NULL);
	ASK("unload", cuModuleUnload, m);
	ASK("unload nothing", cuModuleUnload, NULL);
	ASK("library, no image", cuLibraryLoadData, &l, NULL, NULL, NULL, 0,
	    NULL, NULL, 0);
	ASK("library", cuLibraryLoadData, &l, ptx, NULL, NULL, 0, NULL, NULL, 0);
	ASK("kernel of none", cuLibraryGetKernel, &k, l, "drv_none");
	ASK("kernel", cuLibraryGetKernel, &k, l, "drv_nothing");
	ASK("its name", cuKernelGetName, &name, k);
	printf("%s\n", name);
	ASK("its function", cuKernelGetFunction, &f, k);
	ASK("its module", cuLibraryGetModule, &m, l);
	ASK("unload its module", cuModuleUnload, m);
	ASK("its module, after", cuLibraryGetModule, &m, l);
	ASK("kernel, after", cuLibraryGetKernel, &k, l, "drv_nothing");
	ASK("unload library", cuLibraryUnload, l);
	ASK("unload no library", cuLibraryUnload, NULL);
}


/* Last: NVIDIA's library may end here instead of answering */
static void rough(void)
{
	CUmemGenericAllocationHandle h = 0;
	unsigned char out[64];
	CUipcMemHandle mh;
	CUipcEventHandle eh;
	CUdeviceptr p = 0, q;
	CUcontext c;
	CUevent e;

	memset(&mh, 0x5a, sizeof(mh));
	memset(&eh, 0x5a, sizeof(eh));
	ASK("context", cuCtxCreate_v2, &c, 0, 0);
	ASK("open rubbish", cuIpcOpenMemHandle_v2, &q, mh, 1);
	ASK("open a rubbish event", cuIpcOpenEventHandle, &e, eh);
	ASK("create", cuMemCreate, &h, 2 * MiB, &prop, 0);
	ASK("reserve", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 0);
	ASK("map", cuMemMap, p, 2 * MiB, 0, h, 0);
	ASK("copy without access", cuMemcpyDtoH_v2, out, p, 64);
	ASK("fill without access", cuMemsetD8_v2, p, 1, 64);
	ASK("synchronize", cuCtxSynchronize);
	ASK("unmap", cuMemUnmap, p, 2 * MiB);
	ASK("release", cuMemRelease, h);
	ASK("free the address", cuMemAddressFree, p, 2 * MiB);
	ASK("event", cuEventCreate, &e, 0);
	ASK("destroy", cuEventDestroy_v2, e);
	ASK("context", cuCtxDestroy_v2, c);
}

static void end(void)
{
	CUcontext primary = NULL, c = NULL;
	unsigned int flags = 77;
	CUdeviceptr p;
	int active = 77;

	ASK("primary state", cuDevicePrimaryCtxGetState, 0, &flags, &active);
	SAY("active", active);
	ASK("primary flags 3", cuDevicePrimaryCtxSetFlags_v2, 0, 3);
	ASK("primary", cuDevicePrimaryCtxRetain, &primary, 0);
	ASK("current", cuCtxGetCurrent, &c);
	SAY("unchanged", c == ctx);
	ASK("destroy the primary", cuCtxDestroy_v2, primary);
	ASK("peer access to itself", cuCtxEnablePeerAccess, ctx, 0);
	ASK("push", cuCtxPushCurrent_v2, primary);
	ASK("alloc", cuMemAlloc_v2, &p, 100);
	ASK("release the primary", cuDevicePrimaryCtxRelease_v2, 0);
	ASK("primary state", cuDevicePrimaryCtxGetState, 0, &flags, &active);
	SAY("active", active);
	ASK("alloc in the released", cuMemAlloc_v2, &p, 100);
	ASK("pop", cuCtxPopCurrent_v2, &c);
	ASK("destroy", cuCtxDestroy_v2, ctx);
	ASK("current", cuCtxGetCurrent, &c);
	SAY("none", c == NULL);
	ASK("alloc", cuMemAlloc_v2, &p, 100);
}

static const struct section sections[] = {
	{ "start", start },
	{ "memory", memory },
	{ "pointers", pointers },
	{ "copies", copies },
	{ "streams", streams },
	{ "names", names },
	{ "peers", peers },
	{ "modules", modules },
	{ "memory by hand, wrong", ask_vmm_wrong },
	{ "memory by hand", ask_vmm },
	{ "processes", ask_ipc },
	{ "pools, wrong", ask_pools_wrong },
	{ "pools", ask_pools },
	{ "order of pools", ask_pool_order },
	{ "pools for other processes", ask_pool_export },
	{ "managed memory", ask_managed },
	{ "pages of managed memory", ask_managed_pages },
	{ "batches", ask_batches },
	{ "fills", ask_fills },
	{ "IO memory", ask_io_memory },
	{ "work under way", ask_pending },
	{ "end", end },
	{ "rough", rough },
};

/* With the argument "order" */
static const struct section held_up[] = {
	{ "streams that are held up", ask_order },
};

/* With the argument "copies" */
static const struct section copies_held[] = {
	{ "copies behind what is held up", ask_copies },
};

/* With the argument "ids" */
static const struct section ids[] = {
	{ "ids of memory by hand", ask_vmm_ids },
};

/* Questions for a library with two devices */
static const struct section two[] = {
	{ "two devices", ask_two_devices },
	{ "access", ask_two_access },
	{ "copies between two", ask_two_copies },
	{ "copies between two, wrong", ask_two_copies_wrong },
	{ "memory of the other one", ask_two_touch },
	{ "fills of the other one's memory, no access", ask_two_fill_none },
	{ "fills of the other one's memory", ask_two_fill },
	{ "values in the other one's memory, no access", ask_two_values_none },
	{ "values in the other one's memory", ask_two_values },
	{ "pointers of the other one", ask_two_pointers },
	{ "streams of the other one", ask_two_streams },
	{ "pools for two", ask_two_pools },
	{ "a pool without access", ask_two_pool_none },
	{ "memory by hand for two", ask_two_vmm },
	{ "memory by hand without access", ask_two_vmm_none },
	{ "memory by hand without access for its own", ask_two_vmm_own },
	{ "rights of two", ask_two_rights },
	{ "a destroyed context", ask_two_destroyed },
	{ "no context named", ask_two_no_context },
};

static const struct section two_order[] = {
	{ "order of two", ask_two_order },
	{ "order with access", ask_two_order_access },
	{ "order of two, held by a value", ask_two_order_value },
	{ "end of a context", ask_two_order_destroy },
	{ "a context that is waited for ends", ask_two_order_end },
};

static const struct section two_facts[] = {
	{ "this machine", ask_two_facts },
};

/* With the argument "attributes": of one device, to be read; many depend on it, and ours are explained in libcuda-peerlane(7) */
static const struct section attributes[] = {
	{ "attributes", ask_attributes },
};

/* Two processes, the second one on the same device and on another one */
static const struct section procs[] = {
	{ "memory of another process", ask_procs_one },
	{ "memory of another process, another device", ask_procs_two },
	{ "events of another process", ask_procs_events_one },
	{ "events of another process, another device", ask_procs_events_two },
	{ "pools of another process", ask_procs_shared_one },
	{ "pools of another process, another device", ask_procs_shared_two },
};

/* Which of them are asked: the first without an argument */
static const struct {
	const char *name;
	const struct section *sections;
	size_t n;
} groups[] = {
#define GROUP(name, list)	{ name, list, sizeof(list) / sizeof(list[0]) }
	GROUP("", sections),
	GROUP("order", held_up),
	GROUP("copies", copies_held),
	GROUP("ids", ids),
	GROUP("attributes", attributes),
	GROUP("two", two),
	GROUP("two-order", two_order),
	GROUP("two-facts", two_facts),
	GROUP("procs", procs),
};

static int begin(const struct section *section)
{
	/* Nobody waits for ever for an answer */
	alarm(150);
	/* The fake's jobs end when they are waited for */
	if (section->ask == ask_pending)
		setenv("PEERLANE_FAKE_MANUAL", "1", 1);
	/* These begin before the library does, or both processes do */
	for (size_t i = 0; i < sizeof(procs) / sizeof(procs[0]); i++)
		if (section->ask == procs[i].ask)
			return 0;
	if (section->ask != start &&
	    (CALL(cuInit, 0) ||
	     CALL(cuCtxCreate_v2, &ctx, CU_CTX_SCHED_YIELD, 0))) {
		printf("no context\n");
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (!strcmp(groups[i].name, name))
			return ask_all(groups[i].sections, groups[i].n, "libcuda.so.1", begin);
	fprintf(stderr, "cuda_conform: no questions are called %s\n", name);
	return 2;
}
