// SPDX-License-Identifier: MIT
/*
 * Ask a libcudart questions and print its answers, one line each, so that ours
 * can be compared with NVIDIA's on a real GPU (conform.golden: runtimes 13.0.96
 * and 12.4.127 on driver 580.159.04, H100).  Only questions whose answer does not
 * depend on the GPU.
 *
 * The library is loaded by name, as the loader does it for a program.
 *
 *	cudart_conform_13 [FILE]	and write the properties of device 0 there
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "../cudart_abi.h"
#include "../../cuda/test/ask.h"

/* cudaStreamGetCaptureInfo as CUDA 13 has it; 12 has less, and looks at no more */
typedef cudaError_t capture_info(cudaStream_t stream,
				 enum cudaStreamCaptureStatus *status,
				 unsigned long long *id, void *graph,
				 void *deps, void *edges, void *n);

#define TEXT_(x)	#x
#define TEXT(x)		TEXT_(x)
#define NAME		"libcudart.so." TEXT(CUDART_MAJOR)
#define MiB		(1024ul * 1024)

#define LAST()		SAY("last error", CALL(cudaGetLastError))
#define E(name, n)	((enum name)(n))
#define KIND(n)		E(cudaMemcpyKind, n)

static void start(void)
{
	int n = 77;
	char id[64];

	ASK("count, no place", cudaGetDeviceCount, NULL);
	LAST();
	LAST();
	ASK("count", cudaGetDeviceCount, &n);
	ASK("driver version, no place", cudaDriverGetVersion, NULL);
	ASK("driver version", cudaDriverGetVersion, &n);
	ASK("runtime version, no place", cudaRuntimeGetVersion, NULL);
	ASK("runtime version", cudaRuntimeGetVersion, &n);
	SAY("major", n / 1000);
	LAST();
	ASK("device", cudaGetDevice, &n);
	SAY("device", n);
	ASK("device, no place", cudaGetDevice, NULL);
	ASK("set device -1", cudaSetDevice, -1);
	ASK("set device 1000", cudaSetDevice, 1000);
	ASK("set device", cudaSetDevice, 0);
	SAY("peek", CALL(cudaPeekAtLastError));
	SAY("peek", CALL(cudaPeekAtLastError));
	LAST();
	ASK("attribute of no device", cudaDeviceGetAttribute, &n,
	    E(cudaDeviceAttr, 10), 1000);
	ASK("attribute 0", cudaDeviceGetAttribute, &n, E(cudaDeviceAttr, 0), 0);
	ASK("attribute, no place", cudaDeviceGetAttribute, NULL,
	    E(cudaDeviceAttr, 10), 0);
	ASK("warp size", cudaDeviceGetAttribute, &n, E(cudaDeviceAttr, 10), 0);
	SAY("warp size", n);
	ASK("bus id, 12 bytes", cudaDeviceGetPCIBusId, id, 12, 0);
	ASK("bus id", cudaDeviceGetPCIBusId, id, 64, 0);
	ASK("device by it", cudaDeviceGetByPCIBusId, &n, id);
	SAY("device", n);
	ASK("device by words", cudaDeviceGetByPCIBusId, &n, "gpu");
	ASK("can access itself", cudaDeviceCanAccessPeer, &n, 0, 0);
	SAY("can access itself", n);
	ASK("can access none", cudaDeviceCanAccessPeer, &n, 0, 1000);
	ASK("enable itself", cudaDeviceEnablePeerAccess, 0, 0);
	ASK("enable none", cudaDeviceEnablePeerAccess, 1000, 0);
	ASK("disable itself", cudaDeviceDisablePeerAccess, 0);
	ASK("synchronize", cudaDeviceSynchronize);
	ASK("properties, no place", cudaGetDeviceProperties, NULL, 0);
	ASK("properties of no device", cudaGetDeviceProperties,
	    (struct cudaDeviceProp[2]){ 0 }, 1000);
	ASK("limit", cudaDeviceGetLimit, (size_t[1]){ 0 }, E(cudaLimit, 0));
	ASK("limit 1000", cudaDeviceGetLimit, (size_t[1]){ 0 },
	    E(cudaLimit, 1000));
	LAST();
}

static void names(void)
{
	static const int numbers[] = {
		0, 1, 2, 3, 35, 98, 100, 101, 201, 400, 600, 719, 801, 999, -1,
		10, 5000,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		printf("name of %-36d %s\n", numbers[i],
		       CALL(cudaGetErrorName, (cudaError_t)numbers[i]));
}

static void memory(void)
{
	struct cudaPointerAttributes a;
	struct cudaPitchedPtr pp;
	struct cudaExtent box = { 100, 3, 2 };
	void *p = (void *)8, *q = NULL, *h = NULL;
	static char plain[8192];
	unsigned int flags = 77;
	size_t pitch = 77, total = 0;
	cudaIpcMemHandle_t mh;

	ASK("alloc 0", cudaMalloc, &p, 0);
	SAY("nothing", p == NULL);
	ASK("alloc, no place", cudaMalloc, NULL, 10);
	LAST();
	ASK("alloc everything", cudaMalloc, &p, (size_t)1 << 50);
	LAST();
	ASK("alloc", cudaMalloc, &p, 100000);
	ASK("pitch", cudaMallocPitch, &q, &pitch, 100, 10);
	SAY("pitch", pitch);
	ASK("free", cudaFree, q);
	ASK("pitch, no width", cudaMallocPitch, &q, &pitch, 0, 10);
	ASK("3D", cudaMalloc3D, &pp, box);
	SAY("its width", pp.xsize);
	SAY("its height", pp.ysize);
	SAY("its pitch", pp.pitch);
	ASK("free", cudaFree, pp.ptr);
	ASK("free inside", cudaFree, (char *)p + 512);
	ASK("free host memory", cudaFree, plain);
	ASK("free 0", cudaFree, NULL);
	ASK("host alloc 0", cudaMallocHost, &h, 0);
	ASK("host alloc", cudaHostAlloc, &h, 5000, 4);
	ASK("host alloc, flags 8", cudaHostAlloc, &q, 5000, 8);
	ASK("its flags", cudaHostGetFlags, &flags, h);
	SAY("its flags", flags);
	ASK("device pointer", cudaHostGetDevicePointer, &q, h, 0);
	SAY("the same", q == h);
	ASK("attributes", cudaPointerGetAttributes, &a, h);
	SAY("type", a.type);
	SAY("host pointer is the same", a.hostPointer == h);
	SAY("device pointer is the same", a.devicePointer == h);
	ASK("attributes", cudaPointerGetAttributes, &a, p);
	SAY("type", a.type);
	SAY("device", a.device);
	SAY("device pointer is the same", a.devicePointer == p);
	SAY("host pointer is none", a.hostPointer == NULL);
	memset(&a, 0x5a, sizeof(a));
	ASK("attributes of plain memory", cudaPointerGetAttributes, &a, plain);
	SAY("type", a.type);
	SAY("device", a.device);
	SAY("device pointer is none", a.devicePointer == NULL);
	SAY("host pointer is the same", a.hostPointer == (void *)plain);
	ASK("attributes of 0", cudaPointerGetAttributes, &a, NULL);
	ASK("attributes, no place", cudaPointerGetAttributes, NULL, p);
	ASK("free host", cudaFreeHost, h);
	ASK("free host 0", cudaFreeHost, NULL);
	ASK("free host of plain memory", cudaFreeHost, plain);
	ASK("register", cudaHostRegister, plain, sizeof(plain), 0);
	ASK("again", cudaHostRegister, plain, sizeof(plain), 0);
	ASK("attributes", cudaPointerGetAttributes, &a, plain + 1);
	SAY("type", a.type);
	ASK("unregister", cudaHostUnregister, plain);
	ASK("again", cudaHostUnregister, plain);
	ASK("info", cudaMemGetInfo, &pitch, &total);
	ASK("IPC handle", cudaIpcGetMemHandle, &mh, p);
	ASK("open, same process", cudaIpcOpenMemHandle, &q, mh, 1);
	ASK("close what is ours", cudaIpcCloseMemHandle, p);
	ASK("managed, flags 0", cudaMallocManaged, &q, 100, 0);
	ASK("managed, nothing", cudaMallocManaged, &q, 0, 1);
	ASK("managed, no place", cudaMallocManaged, NULL, 100, 1);
	LAST();
	ASK("managed", cudaMallocManaged, &q, 100, 1);
	ASK("attributes", cudaPointerGetAttributes, &a, q);
	SAY("type", a.type);
	SAY("host pointer is the same", a.hostPointer == q);
	ASK("free", cudaFree, q);
	ASK("free", cudaFree, p);
	ASK("free again", cudaFree, p);
	LAST();
}

static void copies(void)
{
	static unsigned char in[4096], out[4096];
	void *p = NULL, *h = NULL;
	bool same;

	ASK("alloc", cudaMalloc, &p, 4096);
	ASK("host alloc", cudaMallocHost, &h, 4096);
	memset(in, 0x42, sizeof(in));
	ASK("in", cudaMemcpy, p, in, 4096, KIND(cudaMemcpyHostToDevice));
	ASK("out", cudaMemcpy, out, p, 4096, KIND(cudaMemcpyDeviceToHost));
	SAY("the same", !memcmp(in, out, 4096));
	ASK("default", cudaMemcpy, out, p, 4096, KIND(cudaMemcpyDefault));
	ASK("host to host", cudaMemcpy, out, in, 4096,
	    KIND(cudaMemcpyHostToHost));
	ASK("kind 5", cudaMemcpy, out, p, 4096, KIND(5));
	ASK("kind -1", cudaMemcpy, out, p, 4096, KIND(-1));
	LAST();
	ASK("kind 5, nothing", cudaMemcpy, out, p, 0, KIND(5));
	ASK("nothing", cudaMemcpy, NULL, NULL, 0, KIND(0));
	ASK("to 0", cudaMemcpy, NULL, p, 10, KIND(cudaMemcpyDeviceToHost));
	ASK("device to device, to plain", cudaMemcpy, out, p, 10,
	    KIND(cudaMemcpyDeviceToDevice));
	ASK("host to device, to plain", cudaMemcpy, out, in, 10,
	    KIND(cudaMemcpyHostToDevice));
	ASK("device to host, from plain", cudaMemcpy, out, in, 10,
	    KIND(cudaMemcpyDeviceToHost));
	ASK("host to host, of the device", cudaMemcpy, p, in, 10,
	    KIND(cudaMemcpyHostToHost));
	ASK("too much", cudaMemcpy, p, in, 64 * MiB,
	    KIND(cudaMemcpyHostToDevice));
	LAST();
	ASK("fill", cudaMemset, p, 0x17, 4096);
	ASK("fill nothing", cudaMemset, NULL, 0, 0);
	ASK("fill 0", cudaMemset, NULL, 0, 10);
	ASK("fill plain memory", cudaMemset, out, 0, 10);
	ASK("fill, two dimensions", cudaMemset2D, p, 64, 0x18, 8, 4);
	ASK("fill, two dimensions, pitch 4", cudaMemset2D, p, 4, 0x18, 8, 4);
	ASK("two dimensions", cudaMemcpy2D, out, 8, p, 64, 8, 4,
	    KIND(cudaMemcpyDeviceToHost));
	same = true;
	for (int i = 0; i < 32; i++)
		same = same && out[i] == 0x18;
	SAY("the same", same);
	SAY("and no more", out[32] == 0x42);
	ASK("two dimensions, pitch 4", cudaMemcpy2D, out, 4, p, 64, 8, 4,
	    KIND(cudaMemcpyDeviceToHost));
	ASK("two dimensions, kind 5", cudaMemcpy2D, out, 8, p, 64, 8, 4,
	    KIND(5));
	ASK("two dimensions, nothing", cudaMemcpy2D, out, 8, p, 64, 0, 4,
	    KIND(cudaMemcpyDeviceToHost));
	ASK("two dimensions, to 0", cudaMemcpy2D, NULL, 8, p, 64, 8, 4,
	    KIND(cudaMemcpyDeviceToHost));
	LAST();
	ASK("peer, itself", cudaMemcpyPeer, p, 0, (char *)p + 2048, 0, 100);
	ASK("peer, no device", cudaMemcpyPeer, p, 1000, p, 0, 100);
	ASK("async", cudaMemcpyAsync, h, p, 4096,
	    KIND(cudaMemcpyDeviceToHost), NULL);
	ASK("fill async", cudaMemsetAsync, p, 1, 4096, NULL);
	ASK("synchronize", cudaDeviceSynchronize);
	ASK("async, no stream", cudaMemcpyAsync, h, p, 4096, KIND(9), NULL);
	LAST();
	ASK("symbol of none", cudaMemcpyToSymbol, in, in, 4, 0, KIND(1));
	ASK("symbol, kind 2", cudaMemcpyToSymbol, in, in, 4, 0, KIND(2));
	ASK("address of none", cudaGetSymbolAddress, &h, in);
	ASK("size of none", cudaGetSymbolSize, (size_t[1]){ 0 }, in);
	LAST();
	ASK("free", cudaFree, p);
}

static void streams(void)
{
	cudaStream_t s = NULL;
	cudaEvent_t a = NULL, b = NULL;
	unsigned int flags = 77;
	int n = 77, m = 77;
	float ms = -1;

	ASK("create, no place", cudaStreamCreate, NULL);
	ASK("create, flags 2", cudaStreamCreateWithFlags, &s, 2);
	ASK("create", cudaStreamCreateWithFlags, &s, 1);
	ASK("flags", cudaStreamGetFlags, s, &flags);
	SAY("flags", flags);
	ASK("priority", cudaStreamGetPriority, s, &n);
	SAY("priority", n);
	ASK("range", cudaDeviceGetStreamPriorityRange, &n, &m);
	ASK("query", cudaStreamQuery, s);
	ASK("query the default", cudaStreamQuery, NULL);
	ASK("synchronize", cudaStreamSynchronize, s);
	ASK("capturing, no place", cudaStreamIsCapturing, s, NULL);
	ASK("capturing", cudaStreamIsCapturing, s, (void *)&n);
	SAY("capturing", n);
	n = 77;
	printf("%-44s %d\n", "capture info",
	       (int)((capture_info *)sym("cudaStreamGetCaptureInfo"))(
			s, (void *)&n, NULL, NULL, NULL, NULL, NULL));
	SAY("capture info", n);
	n = 1;
	ASK("mode", cudaThreadExchangeStreamCaptureMode, (void *)&n);
	SAY("mode", n);
	n = 3;
	ASK("mode 3", cudaThreadExchangeStreamCaptureMode, (void *)&n);
	LAST();
	ASK("event, no place", cudaEventCreate, NULL);
	ASK("event, flags 8", cudaEventCreateWithFlags, &a, 8);
	ASK("event", cudaEventCreate, &a);
	ASK("event", cudaEventCreate, &b);
	ASK("time, not recorded", cudaEventElapsedTime, &ms, a, b);
	LAST();
	ASK("record", cudaEventRecord, a, s);
	ASK("record", cudaEventRecord, b, s);
	ASK("wait", cudaStreamWaitEvent, s, b, 0);
	ASK("wait, flags 2", cudaStreamWaitEvent, s, b, 2);
	ASK("synchronize", cudaEventSynchronize, b);
	ASK("query", cudaEventQuery, b);
	ASK("time", cudaEventElapsedTime, &ms, a, b);
	SAY("not below 0", ms >= 0);
	ASK("record none", cudaEventRecord, NULL, s);
	ASK("callback, none", cudaStreamAddCallback, s, NULL, NULL, 0);
	ASK("host function, none", cudaLaunchHostFunc, s, NULL, NULL);
	ASK("destroy", cudaEventDestroy, a);
	ASK("destroy", cudaEventDestroy, b);
	ASK("destroy none", cudaEventDestroy, NULL);
	ASK("destroy", cudaStreamDestroy, s);
	ASK("destroy none", cudaStreamDestroy, NULL);
	LAST();
}

static void pools(void)
{
	struct cudaMemPoolProps props = {
		.allocType = 1, .location = { 1, 0 },
	};
	cudaMemPool_t pool = NULL, other = NULL;
	uint64_t v = 77;
	void *p = NULL;

	ASK("default", cudaDeviceGetDefaultMemPool, &pool, 0);
	ASK("default of none", cudaDeviceGetDefaultMemPool, &other, 1000);
	ASK("current", cudaDeviceGetMemPool, &other, 0);
	SAY("the same", pool == other);
	ASK("alloc, no place", cudaMallocAsync, NULL, 10, NULL);
	ASK("alloc 0", cudaMallocAsync, &p, 0, NULL);
	LAST();
	ASK("alloc", cudaMallocAsync, &p, 1000, NULL);
	ASK("free", cudaFreeAsync, p, NULL);
	ASK("free 0", cudaFreeAsync, NULL, NULL);
	ASK("synchronize", cudaStreamSynchronize, NULL);
	ASK("create, no properties", cudaMemPoolCreate, &pool, NULL);
	ASK("create", cudaMemPoolCreate, &pool, &props);
	ASK("alloc", cudaMallocFromPoolAsync, &p, 1000, pool, NULL);
	ASK("used", cudaMemPoolGetAttribute, pool, E(cudaMemPoolAttr, 7), &v);
	SAY("used", v);
	ASK("free", cudaFree, p);
	ASK("trim", cudaMemPoolTrimTo, pool, 0);
	ASK("destroy", cudaMemPoolDestroy, pool);
	LAST();
}

static void code(void)
{
	static char no_kernel;
	void *args[1] = { NULL };
	dim3 one = { 1, 1, 1 };
	unsigned int status = 77;
	struct cudaFuncAttributes fa;
	void *fn = (void *)8;

	ASK("launch none", cudaLaunchKernel, &no_kernel, one, one, args, 0,
	    NULL);
	LAST();
	ASK("attributes of none", cudaFuncGetAttributes, &fa, &no_kernel);
#if CUDART_MAJOR >= 13
	/* NVIDIA 12.4 gives something and says that it is well */
	ASK("kernel of none", cudaGetKernel, (cudaKernel_t *)&fn, &no_kernel);
#endif
	LAST();
	ASK("entry", cudaGetDriverEntryPoint, "cuMemAlloc", &fn, 0,
	    (void *)&status);
	SAY("status", status);
	SAY("something", fn != NULL);
	ASK("entry of none", cudaGetDriverEntryPoint, "cuNothing", &fn, 0,
	    (void *)&status);
	SAY("status", status);
	SAY("nothing", fn == NULL);
	LAST();
}

/* The state of the device, from beginning to end */
static void reset(void)
{
	void *p = NULL, *q = NULL;
	unsigned int flags = 77;

	ASK("flags", cudaGetDeviceFlags, &flags);
	ASK("free 0 begins", cudaFree, NULL);
	ASK("alloc", cudaMalloc, &p, 1000);
	ASK("reset", cudaDeviceReset);
	ASK("alloc after it", cudaMalloc, &q, 1000);
	ASK("free", cudaFree, q);
	ASK("reset", cudaDeviceReset);
	ASK("reset again", cudaDeviceReset);
	ASK("set flags 3", cudaSetDeviceFlags, 3);
	ASK("set flags", cudaSetDeviceFlags, 4);
	ASK("flags", cudaGetDeviceFlags, &flags);
	SAY("flags", flags & 7);
	ASK("initialize", cudaInitDevice, 0, 0, 0);
	ASK("initialize none", cudaInitDevice, 1000, 0, 0);
	ASK("initialize, flags 2", cudaInitDevice, 0, 0, 2);
	LAST();
}

static const struct section sections[] = {
	{ "start", start },
	{ "names", names },
	{ "memory", memory },
	{ "copies", copies },
	{ "streams", streams },
	{ "pools", pools },
	{ "code", code },
	{ "reset", reset },
};

static void write_properties(const char *file)
{
	static struct cudaDeviceProp prop[2];
	FILE *f = fopen(file, "w");
	void *lib = dlopen(NAME, RTLD_NOW);
	cudaError_t (*get)(struct cudaDeviceProp *, int);

	get = lib ? dlsym(lib, "cudaGetDeviceProperties_v2") : NULL;
	if (lib && !get)
		get = dlsym(lib, "cudaGetDeviceProperties");
	memset(prop, 0x5a, sizeof(prop));
	if (!f || !get || get(prop, 0) ||
	    fwrite(prop, 1, sizeof(prop), f) != sizeof(prop) || fclose(f))
		printf("no properties\n");
}

int main(int argc, char **argv)
{
	int bad = ask_all(sections, sizeof(sections) / sizeof(sections[0]),
			  NAME, NULL);

	if (argc > 1)
		write_properties(argv[1]);
	return bad;
}
