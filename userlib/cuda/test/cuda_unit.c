// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: start, devices, contexts, names.
 * Each test runs in a process of its own.
 */

#include "unit.h"

/* ---- start ---- */

static void t_not_initialized(void)
{
	CUdeviceptr p;
	CUcontext c;
	CUstream s;
	CUevent e;
	size_t n;
	int i;

	fake_setup(&one);
	IS(cuDeviceGetCount(&i), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuDeviceGet(&i, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuDeviceTotalMem_v2(&n, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuCtxCreate_v2(&c, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuCtxGetCurrent(&c), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuDevicePrimaryCtxRetain(&c, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuMemAlloc_v2(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuMemFree_v2(0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuMemHostUnregister(NULL), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuMemcpyDtoH_v2(&i, 4096, 4), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuStreamCreate(&s, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuStreamDestroy_v2(NULL), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuEventCreate(&e, 0), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuEventQuery(NULL), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuPointerGetAttribute(&i, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 1),
	   CUDA_ERROR_NOT_INITIALIZED);
	/* These work without */
	OK(cuDriverGetVersion(&i));
	CHECK(i == DRV_DRIVER_VERSION);
	IS(cuDriverGetVersion(NULL), INVALID);
	IS(cuInit(1), INVALID);
	OK(cuInit(0));
	OK(cuInit(0));
	OK(cuDeviceGetCount(&i));
	CHECK(i == 1);
}

static void t_no_device(void)
{
	struct fake_config cfg = one;
	int i;

	cfg.gpus = 0;
	fake_setup(&cfg);
	IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
	IS(cuDeviceGetCount(&i), CUDA_ERROR_NOT_INITIALIZED);
}

/* What the library says on stderr while it does @cfg's cuInit() */
static void init_log(const struct fake_config *cfg, const char *level,
		     char *out, size_t len)
{
	int keep = dup(2), pipe_fd[2];
	ssize_t n;

	if (pipe2(pipe_fd, O_NONBLOCK)) {
		CHECK(!"pipe");
		return;
	}
	setenv("PEERLANE_LOG", level, 1);
	fake_setup(cfg);
	dup2(pipe_fd[1], 2);
	IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
	dup2(keep, 2);
	n = read(pipe_fd[0], out, len - 1);
	out[n > 0 ? n : 0] = 0;
}

static void t_no_permission(void)
{
	struct fake_config cfg = one;
	char text[8192];

	cfg.open_errno = EACCES;
	init_log(&cfg, "1", text, sizeof(text));
	CHECK(strstr(text, "/dev/peerlane-gpu0") && strstr(text, "ermission"));
}

static void t_log_is_off(void)
{
	struct fake_config cfg = one;
	char text[8192];

	cfg.open_errno = EACCES;
	init_log(&cfg, "0", text, sizeof(text));
	CHECK(!text[0]);
}

static void t_wrong_driver(void)
{
	struct fake_config cfg = one;
	char text[8192];

	cfg.abi_version = PLN_GPU_ABI_VERSION + 1;
	init_log(&cfg, "1", text, sizeof(text));
	CHECK(strstr(text, "interface version"));
}

static void t_visible_devices(void)
{
	struct fake_config cfg = one;
	CUuuid uuid;
	int n;

	cfg.gpus = 3;
	fake_setup(&cfg);
	setenv("CUDA_VISIBLE_DEVICES", "2,GPU-0001,7,1", 1);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&n));
	CHECK(n == 2);
	OK(cuDeviceGetUuid_v2(&uuid, 0));
	CHECK(uuid.bytes[0] == 32);
	OK(cuDeviceGetUuid(&uuid, 1));
	CHECK(uuid.bytes[0] == 0);
}

static void t_hidden_devices(void)
{
	fake_setup(&one);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void t_errors(void)
{
	const char *s = NULL;

	OK(cuGetErrorName(CUDA_ERROR_NO_DEVICE, &s));
	CHECK(s && !strcmp(s, "CUDA_ERROR_NO_DEVICE"));
	OK(cuGetErrorString(CUDA_SUCCESS, &s));
	CHECK(s && !strcmp(s, "no error"));
	IS(cuGetErrorName((CUresult)12345, &s), INVALID);
	CHECK(!s);
	IS(cuGetErrorString((CUresult)12345, &s), INVALID);
	IS(cuGetErrorName(CUDA_SUCCESS, NULL), INVALID);
}

/* ---- devices ---- */

static void t_device(void)
{
	static const int of_9_0[][2] = {
		{ 8, 49152 }, { 9, 65536 }, { 12, 65536 }, { 39, 2048 },
		{ 81, 233472 }, { 82, 65536 }, { 97, 232448 }, { 106, 32 },
		{ 111, 1024 },
	};
	struct fake_config cfg = one;
	char text[64];
	CUuuid uuid;
	CUdevice d;
	size_t n;
	int a, b;

	cfg.gpus = 2;
	fake_setup(&cfg);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&a));
	CHECK(a == 2);
	OK(cuDeviceGet(&d, 1));
	IS(cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGet(NULL, 0), INVALID);
	OK(cuDeviceGetName(text, sizeof(text), 0));
	CHECK(!strncmp(text, "Peerlane", 8));
	OK(cuDeviceGetName(text, 4, 0));
	CHECK(!strcmp(text, "Pee"));
	IS(cuDeviceGetName(text, 0, 0), INVALID);
	IS(cuDeviceGetName(text, 9, 5), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetUuid_v2(&uuid, 1));
	CHECK(uuid.bytes[15] == 31);
	IS(cuDeviceGetUuid_v2(NULL, 1), INVALID);
	OK(cuDeviceTotalMem_v2(&n, 0));
	CHECK(n == 64 * MiB);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
	CHECK(a == 1);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0));
	CHECK(a == 1);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
	CHECK(a == 1);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1));
	CHECK(a == 4);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 1));
	CHECK(a == 1);
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
	CHECK(a == 0);
	/* What compute capability 9.0 has */
	for (size_t i = 0; i < sizeof(of_9_0) / sizeof(of_9_0[0]); i++) {
		OK(cuDeviceGetAttribute(&a, (CUdevice_attribute)of_9_0[i][0], 0));
		CHECK(a == of_9_0[i][1]);
	}
	OK(cuDeviceGetAttribute(&a, (CUdevice_attribute)PLN_CUDA_DEVICE_ATTRIBUTE_LAST, 0));
	IS(cuDeviceGetAttribute(&a, (CUdevice_attribute)0, 0), INVALID);
	IS(cuDeviceGetAttribute(&a, (CUdevice_attribute)9999, 0), INVALID);
	IS(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), INVALID);
	IS(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2),
	   CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceComputeCapability(&a, &b, 0));
	CHECK(a == 9 && b == 0);
	OK(cuDeviceGetPCIBusId(text, sizeof(text), 1));
	CHECK(!strcmp(text, "0000:04:01.0"));
	IS(cuDeviceGetPCIBusId(text, 12, 1), INVALID);
	OK(cuDeviceGetPCIBusId(text, 13, 1));
	OK(cuDeviceGetByPCIBusId(&d, "0000:04:01.0"));
	CHECK(d == 1);
	OK(cuDeviceGetByPCIBusId(&d, "3:1.0"));
	CHECK(d == 0);
	IS(cuDeviceGetByPCIBusId(&d, "3:1"), INVALID);
	OK(cuDeviceGetByPCIBusId(&d, "04:01.0"));
	CHECK(d == 1);
	IS(cuDeviceGetByPCIBusId(&d, "0000:05:01.0"), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGetByPCIBusId(&d, "gpu"), INVALID);
	IS(cuDeviceGetByPCIBusId(&d, "0:0:0:0"), INVALID);
	IS(cuDeviceGetByPCIBusId(&d, "04:01."), INVALID);
	OK(cuDeviceGetByPCIBusId(&d, "+04:01.0"));
	OK(cuDeviceGetByPCIBusId(&d, " 04:01.0"));
	OK(cuDeviceGetByPCIBusId(&d, "100000004:01.0"));
	IS(cuDeviceGetByPCIBusId(&d, ""), INVALID);
	IS(cuDeviceGetByPCIBusId(&d, NULL), INVALID);
	OK(cuDeviceCanAccessPeer(&a, 0, 1));
	CHECK(a == 0);
	IS(cuDeviceCanAccessPeer(&a, 0, 2), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetP2PAttribute(&a, 2, 0, 1));
	IS(cuDeviceGetP2PAttribute(&a, 2, 0, 0), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGetP2PAttribute(&a, 9, 0, 1), INVALID);
	CHECK(fake_files() == 0);
}

/* ---- contexts ---- */

static void t_context(void)
{
	CUcontext a, b, c;
	unsigned int u;
	CUdeviceptr p;
	CUdevice d;
	size_t n;

	fake_setup(&one);
	OK(cuInit(0));
	OK(cuCtxGetCurrent(&c));
	CHECK(!c);
	IS(cuCtxGetDevice(&d), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxPopCurrent_v2(&c), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxPushCurrent_v2(BAD_PTR(CUcontext)), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxPushCurrent_v2(NULL), INVALID);
	IS(cuCtxDestroy_v2(NULL), INVALID);
	IS(cuCtxDestroy_v2(BAD_PTR(CUcontext)), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxCreate_v2(NULL, 0, 0), INVALID);
	IS(cuCtxCreate_v2(&a, 0x100, 0), INVALID);
	IS(cuCtxCreate_v2(&a, 3, 0), INVALID);
	IS(cuCtxCreate_v2(&a, 0, 1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuCtxCreate_v2(&a, CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST, 0));
	OK(cuCtxGetFlags(&u));
	CHECK(u == (CU_CTX_SCHED_YIELD | CU_CTX_MAP_HOST));
	OK(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
	IS(cuCtxSetFlags(7), INVALID);
	OK(cuCtxCreate_v4(&b, NULL, 0, 0));
	OK(cuCtxGetCurrent(&c));
	CHECK(c == b);
	OK(cuCtxGetDevice(&d));
	CHECK(d == 0);
	OK(cuCtxGetDevice_v2(&d, a));
	OK(cuCtxGetApiVersion(a, &u));
	CHECK(u >= 3020);
	OK(cuCtxGetApiVersion(NULL, &u));
	IS(cuCtxGetApiVersion(BAD_PTR(CUcontext), &u), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxGetLimit(&n, CU_LIMIT_STACK_SIZE));
	OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096));
	OK(cuCtxGetLimit(&n, CU_LIMIT_MALLOC_HEAP_SIZE));
	CHECK(n == 4096);
	IS(cuCtxGetLimit(&n, 77), INVALID);
	IS(cuCtxGetLimit(&n, 5), CUDA_ERROR_UNSUPPORTED_LIMIT);
	OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
	OK(cuCtxGetCacheConfig(&u));
	CHECK(u == CU_FUNC_CACHE_PREFER_EQUAL);
	IS(cuCtxSetCacheConfig(9), INVALID);
	IS(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	IS(cuCtxDisablePeerAccess(a), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxPushCurrent_v2(a));
	OK(cuCtxPopCurrent_v2(&c));
	CHECK(c == a);
	OK(cuCtxSetCurrent(a));
	OK(cuCtxGetCurrent(&c));
	CHECK(c == a);
	OK(cuCtxSynchronize_v2(b));
	OK(cuCtxDestroy_v2(b));
	IS(cuCtxSynchronize_v2(b), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuCtxDestroy_v2(a));
	CHECK(fake_files() == 0);
	IS(cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT);
}

static void t_destroyed_while_current(void)
{
	CUcontext ctx = start(&one), top;
	CUdeviceptr p;
	CUstream s;
	CUevent e;

	OK(cuStreamCreate(&s, 0));
	OK(cuEventCreate(&e, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuCtxPushCurrent_v2(ctx));
	OK(cuCtxDestroy_v2(ctx));	/* pops one of the two */
	OK(cuCtxGetCurrent(&top));
	CHECK(top == ctx);
	IS(cuMemAlloc_v2(&p, 4096), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(cuStreamSynchronize(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxPopCurrent_v2(NULL));
	CHECK(fake_handles() == 0 && fake_files() == 0);
}

static void t_primary(void)
{
	CUcontext a, b, c;
	unsigned int flags;
	CUdeviceptr p;
	int active;

	fake_setup(&one);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!flags && !active);
	IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
	IS(cuDevicePrimaryCtxSetFlags_v2(0, 3), INVALID);
	IS(cuDevicePrimaryCtxRetain(&a, 3), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDevicePrimaryCtxRetain(NULL, 0), INVALID);
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	CHECK(a == b);
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(flags == CU_CTX_SCHED_BLOCKING_SYNC && active);
	OK(cuCtxGetCurrent(&c));
	CHECK(!c);			/* retaining does not make it current */
	IS(cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(a));
	OK(cuMemAlloc_v2(&p, 100));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK(fake_handles() == 1);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	CHECK(fake_handles() == 0);
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	IS(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuCtxSetCurrent(a));
	OK(cuMemAlloc_v2(&p, 100));
	OK(cuDevicePrimaryCtxReset_v2(0));
	CHECK(fake_handles() == 0);
	IS(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuCtxPopCurrent_v2(NULL));
	CHECK(fake_files() == 0);
}

/* Those who had it before a reset give it back after it */
static void t_primary_reset(void)
{
	CUcontext a, b;
	CUdeviceptr p;

	fake_setup(&one);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxReset_v2(0));	/* there is none */
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxReset_v2(0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	CHECK(fake_files() == 0);

	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxReset_v2(0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	/* Two had it, and one has given it back; one more has come */
	OK(cuCtxSetCurrent(b));
	OK(cuMemAlloc_v2(&p, 100));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	IS(cuMemAlloc_v2(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(NULL));
	CHECK(fake_files() == 0);
}

static void *thread_stack(void *ctx)
{
	CUcontext c = (CUcontext)1;

	OK(cuCtxGetCurrent(&c));
	CHECK(!c);
	OK(cuCtxSetCurrent(ctx));
	OK(cuCtxPushCurrent_v2(ctx));
	return NULL;			/* with its stack not empty */
}

static void t_thread_stack(void)
{
	CUcontext ctx = start(&one);
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, thread_stack, ctx));
	pthread_join(t, NULL);
	end(ctx);
}

/* ---- cuGetProcAddress ---- */

static void t_proc_address(void)
{
	CUdriverProcAddressQueryResult status;
	CUresult (*init)(unsigned int);
	void *fn;

	OK(cuGetProcAddress_v2("cuInit", &fn, 12000, 0, &status));
	CHECK(fn && status == CU_GET_PROC_ADDRESS_SUCCESS);
	fake_setup(&one);
	memcpy(&init, &fn, sizeof(fn));
	OK(init(0));
	OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, 0, NULL));
	CHECK(fn == (void *)cuMemAlloc_v2);
	OK(cuGetProcAddress_v2("cuMemAlloc_v2", &fn, 12000, 0, &status));
	CHECK(!fn && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 3000, 0, &status));
	CHECK(!fn && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress_v2("cuMakeCoffee", &fn, 12000, 0, &status));
	CHECK(!fn && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	/* The newest that the asker knows */
	OK(cuGetProcAddress_v2("cuCtxCreate", &fn, 11000, 0, NULL));
	CHECK(fn == (void *)cuCtxCreate_v2);
	OK(cuGetProcAddress_v2("cuCtxCreate", &fn, 11040, 0, NULL));
	CHECK(fn == (void *)cuCtxCreate_v3);
	OK(cuGetProcAddress_v2("cuCtxCreate", &fn, 12050, 0, NULL));
	CHECK(fn == (void *)cuCtxCreate_v4);
	OK(cuGetProcAddress_v2("cuGetProcAddress", &fn, 11030, 0, NULL));
	CHECK(fn == (void *)cuGetProcAddress);
	OK(cuGetProcAddress_v2("cuGetProcAddress", &fn, 12000,
			       CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			       NULL));
	CHECK(fn == (void *)cuGetProcAddress_v2);
	OK(cuGetProcAddress("cuMemFree", &fn, 12000, 0));
	CHECK(fn == (void *)cuMemFree_v2);
	IS(cuGetProcAddress("cuMakeCoffee", &fn, 12000, 0), CUDA_ERROR_NOT_FOUND);
	CHECK(!fn);
	IS(cuGetProcAddress("cuInit", &fn, DRV_DRIVER_VERSION + 10, 0), INVALID);
	IS(cuGetProcAddress(NULL, &fn, 12000, 0), INVALID);
	IS(cuGetProcAddress("", &fn, 12000, 0), CUDA_ERROR_NOT_FOUND);
	IS(cuGetProcAddress("cuInit", NULL, 12000, 0), INVALID);
	OK(cuGetProcAddress("cuInit", &fn, 12000, 3));
	IS(cuGetProcAddress("cuInit", &fn, 12000, 8), INVALID);
	{
		CUuuid id = { { 0 } };
		const void *table = &id;

		IS(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
		CHECK(!table);
	}
}

#define FLUSH(target, scope) \
	cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)(target), \
				   (CUflushGPUDirectRDMAWritesScope)(scope))

static int rdma_order(void)
{
	int order = -1, flush = -1;

	OK(cuDeviceGetAttribute(&flush,
				CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0));
	CHECK(flush == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
	OK(cuDeviceGetAttribute(&order,
				CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0));
	return order;
}

static void t_flush(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;

	/* As an H100 says */
	OK((fake_setup(&cfg), cuInit(0)));
	IS(FLUSH(0, 100), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(FLUSH(0, 100));
	OK(FLUSH(0, 200));
	IS(FLUSH(0, 0), INVALID);
	IS(FLUSH(0, 201), INVALID);
	IS(FLUSH(1, 100), INVALID);
	CHECK(rdma_order() == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES);
	CHECK(fake_calls(FAKE_SUBMIT) == 0);	/* there is nothing to flush */
	end(ctx);
}

static void t_flush_late(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;

	cfg.late_writes = true;
	cfg.manual = true;
	ctx = start(&cfg);
	CHECK(rdma_order() == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE);
	fake_late_write(0, 123, 0x5a);
	IS(FLUSH(0, 0), INVALID);
	CHECK(fake_vram(0)[123] == 0);
	OK(FLUSH(0, 100));
	CHECK(fake_vram(0)[123] == 0x5a);
	fake_late_write(0, 124, 0x5b);
	OK(FLUSH(0, 200));
	CHECK(fake_vram(0)[124] == 0x5b);
	CHECK(fake_jobs() == 0);
	/* One that fails says so, and nobody hears of it again */
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	IS(FLUSH(0, 100), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuStreamSynchronize(NULL));
	OK(FLUSH(0, 100));
	end(ctx);
}

static const struct unit_test tests[] = {
	{ "nothing works before cuInit", t_not_initialized },
	{ "no device", t_no_device },
	{ "no permission, explained when asked", t_no_permission },
	{ "no word when not asked", t_log_is_off },
	{ "a driver of another version", t_wrong_driver },
	{ "CUDA_VISIBLE_DEVICES selects and orders", t_visible_devices },
	{ "CUDA_VISIBLE_DEVICES hides all", t_hidden_devices },
	{ "error names", t_errors },
	{ "device queries", t_device },
	{ "contexts", t_context },
	{ "a context destroyed while current", t_destroyed_while_current },
	{ "primary contexts", t_primary },
	{ "primary contexts that were reset", t_primary_reset },
	{ "each thread has its own stack", t_thread_stack },
	{ "cuGetProcAddress", t_proc_address },
	{ "peers' writes need no flush", t_flush },
	{ "peers' writes that wait are flushed", t_flush_late },
};

UNIT_MAIN(tests)
