// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: meaning of every call, every error path.
 * Each test runs in a process of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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
	CHECK(i == PLN_DRIVER_VERSION);
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
	OK(cuDeviceGetByPCIBusId(&d, "3:1"));
	CHECK(d == 0);
	OK(cuDeviceGetByPCIBusId(&d, "04:01.0"));
	CHECK(d == 1);
	IS(cuDeviceGetByPCIBusId(&d, "0000:05:01.0"), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGetByPCIBusId(&d, "gpu"), INVALID);
	IS(cuDeviceGetByPCIBusId(&d, "0:0:0:0"), INVALID);
	IS(cuDeviceGetByPCIBusId(&d, "04:01."), INVALID);
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

/* ---- memory ---- */

static void memory_with(bool coherent)
{
	struct fake_config cfg = one;
	CUdeviceptr p, q, small[300], base;
	size_t n, avail, total, size;
	unsigned int blocks;
	CUcontext ctx;
	uint64_t used;

	cfg.coherent = coherent;
	ctx = start(&cfg);
	IS(cuMemAlloc_v2(NULL, 1), INVALID);
	IS(cuMemAlloc_v2(&p, 0), INVALID);
	IS(cuMemAlloc_v2(&p, 65 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&p, 5 * MiB + 1));
	CHECK(p % (2 * MiB) == 0);
	CHECK(fake_vram_used(0) == 5 * MiB + FAKE_PAGE);
	OK(cuMemGetAddressRange_v2(&base, &n, p + 5 * MiB));
	CHECK(base == p && n == 5 * MiB + 1);
	OK(cuMemGetAddressRange_v2(NULL, NULL, p));
	IS(cuMemGetAddressRange_v2(&base, &n, p + 5 * MiB + 1),
	   CUDA_ERROR_NOT_FOUND);
	IS(cuMemGetAddressRange_v2(&base, &n, p - 1), CUDA_ERROR_NOT_FOUND);
	OK(cuMemGetInfo_v2(&avail, &total));
	CHECK(total == 64 * MiB && avail == total - fake_vram_used(0));
	IS(cuMemGetInfo_v2(NULL, &total), INVALID);
	IS(cuMemFree_v2(p + 512), INVALID);
	IS(cuMemFree_v2(BAD_PTR(CUdeviceptr)), INVALID);
	OK(cuMemFree_v2(0));
	if (coherent) {
		CHECK(*(volatile char *)(uintptr_t)p == 0);
		OK(cuMemsetD8_v2(p, 0x5a, 100));
		CHECK(((volatile char *)(uintptr_t)p)[99] == 0x5a);
	}
	OK(cuMemFree_v2(p));
	IS(cuMemFree_v2(p), INVALID);
	CHECK(fake_vram_used(0) == 0);

	/* Small ones share blocks and do not overlap */
	used = 0;
	for (size_t i = 0; i < 300; i++) {
		size = 1 + (i * 7919) % 40000;
		OK(cuMemAlloc_v2(&small[i], size));
		CHECK(small[i] % 512 == 0);
		if (size >= 4096)
			CHECK(small[i] % 4096 == 0);
		OK(cuMemsetD8_v2(small[i], (unsigned char)i, size));
		used += size;
	}
	CHECK(fake_vram_used(0) < 2 * used + 4 * MiB);
	CHECK(fake_handles() < 20);
	blocks = fake_handles();
	for (size_t i = 0; i < 300; i++) {
		unsigned char byte[2];

		size = 1 + (i * 7919) % 40000;
		OK(cuMemcpyDtoH_v2(byte, small[i], 1));
		OK(cuMemcpyDtoH_v2(byte + 1, small[i] + size - 1, 1));
		CHECK(byte[0] == (unsigned char)i && byte[1] == byte[0]);
		if (i % 2)
			OK(cuMemFree_v2(small[i]));
	}
	for (size_t i = 1; i < 300; i += 2)
		OK(cuMemAlloc_v2(&small[i], 1 + (i * 7919) % 40000));
	CHECK(fake_handles() == blocks);	/* in the holes */
	for (size_t i = 0; i < 300; i++)
		OK(cuMemFree_v2(small[i]));
	CHECK(fake_vram_used(0) == 0);

	/* A page of the GPU, or more, starts at one: it can be exported */
	OK(cuMemAlloc_v2(&q, 100));
	OK(cuMemAlloc_v2(&p, 2 * FAKE_PAGE));
	CHECK(p % FAKE_PAGE == 0);
	OK(cuMemAllocPitch_v2(&p, &n, 1000, 10, 4));
	CHECK(n == 1024);
	IS(cuMemAllocPitch_v2(&p, &n, 1000, 10, 3), INVALID);
	IS(cuMemAllocPitch_v2(&p, &n, 0, 10, 4), INVALID);
	IS(cuMemAllocPitch_v2(&p, &n, SIZE_MAX, 10, 4), INVALID);
	IS(cuMemAllocPitch_v2(&p, &n, 1 << 20, 1ull << 60, 4),
	   CUDA_ERROR_OUT_OF_MEMORY);
	/* All of it, then more */
	for (n = 0; n < 100 && !cuMemAlloc_v2(&small[n], MiB); n++)
		;
	CHECK(n > 50 && n < 64);
	IS(cuMemAlloc_v2(&p, MiB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(small[0]));
	OK(cuMemAlloc_v2(&p, MiB));
	end(ctx);			/* frees what is left */
}

static void t_memory(void)
{
	memory_with(false);
}

static void t_memory_coherent(void)
{
	memory_with(true);
}

static void t_cpu_faults(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p;
	int status;
	pid_t pid;

	OK(cuMemAlloc_v2(&p, 4096));
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*(volatile char *)(uintptr_t)p ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	end(ctx);
}

static void t_host_memory(void)
{
	static char buf[3 * 4096] __attribute__((aligned(4096)));
	CUcontext ctx = start(&one);
	unsigned int flags;
	CUdeviceptr d;
	void *p, *q;

	IS(cuMemAllocHost_v2(NULL, 1), INVALID);
	p = &p;
	OK(cuMemAllocHost_v2(&p, 0));
	CHECK(!p);
	IS(cuMemHostAlloc(&p, 1, 8), INVALID);
	IS(cuMemHostAlloc(&p, SIZE_MAX, 0), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemHostAlloc(&p, 1ull << 60, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocHost_v2(&p, 5000));
	OK(cuMemHostAlloc(&q, 1, CU_MEMHOSTALLOC_WRITECOMBINED));
	memset(p, 1, 5000);
	OK(cuMemHostGetFlags(&flags, q));
	CHECK(flags == (CU_MEMHOSTALLOC_WRITECOMBINED |
			CU_MEMHOSTALLOC_DEVICEMAP));
	IS(cuMemHostGetFlags(&flags, buf), INVALID);
	OK(cuMemHostGetDevicePointer_v2(&d, (char *)p + 10, 0));
	CHECK(d == (uintptr_t)p + 10);
	IS(cuMemHostGetDevicePointer_v2(&d, p, 1), INVALID);
	IS(cuMemHostGetDevicePointer_v2(&d, buf, 0), INVALID);
	IS(cuMemHostGetDevicePointer_v2(NULL, p, 0), INVALID);
	IS(cuMemFreeHost((char *)p + 1), INVALID);
	IS(cuMemFreeHost(buf), INVALID);
	IS(cuMemFreeHost(NULL), INVALID);
	IS(cuMemHostUnregister(p), INVALID);
	OK(cuMemFreeHost(p));
	IS(cuMemFreeHost(p), INVALID);

	IS(cuMemHostRegister_v2(NULL, 1, 0), INVALID);
	IS(cuMemHostRegister_v2(buf, 0, 0), INVALID);
	IS(cuMemHostRegister_v2(buf, 1, 0x10), INVALID);
	IS(cuMemHostRegister_v2(buf, SIZE_MAX, 0), INVALID);
	IS(cuMemHostRegister_v2((void *)4096, 4096, 0), INVALID);
	/* Not of a device */
	IS(cuMemHostRegister_v2(buf, 1, CU_MEMHOSTREGISTER_IOMEMORY), INVALID);
	OK(cuMemHostRegister_v2(buf + 100, 5000, CU_MEMHOSTREGISTER_READ_ONLY));
	IS(cuMemHostRegister_v2(buf, 200, 0),
	   CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostRegister_v2(buf, 100, 0));
	OK(cuMemHostGetDevicePointer_v2(&d, buf + 200, 0));
	IS(cuMemHostUnregister(buf + 200), INVALID);
	IS(cuMemFreeHost(buf + 100), INVALID);
	OK(cuMemHostUnregister(buf + 100));
	IS(cuMemHostUnregister(buf + 100), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	IS(cuMemHostUnregister(NULL), INVALID);
	end(ctx);
}

/* Unmapped by the program while registered; the address comes back as ours */
static void t_stale_registration(void)
{
	CUcontext ctx = start(&one);
	size_t len = 64 * MiB;
	bool seen = false;
	CUdeviceptr p;
	char *m;

	m = mmap(NULL, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	OK(cuMemHostRegister_v2(m, len, 0));
	munmap(m, len);
	for (int i = 0; i < 10; i++) {
		OK(cuMemAlloc_v2(&p, 4 * MiB));
		seen |= p >= (uintptr_t)m && p < (uintptr_t)m + len;
		OK(cuMemsetD8_v2(p, 1, 4 * MiB));
	}
	CHECK(seen);
	end(ctx);
}

static void t_pointer_attributes(void)
{
	CUpointer_attribute attrs[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE,
	};
	CUcontext ctx = start(&one), c;
	unsigned long long id[2];
	CUdeviceptr p, q, d;
	unsigned int type;
	void *h, *hp;
	size_t n;
	int i;
	void *data[] = { &type, &i, &hp, &n };

	OK(cuMemAlloc_v2(&p, 3 * MiB));
	OK(cuMemAlloc_v2(&q, 600));
	OK(cuMemAllocHost_v2(&h, 8192));
#define ATTR(out, name, ptr) \
	cuPointerGetAttribute(out, CU_POINTER_ATTRIBUTE_##name, ptr)
	OK(ATTR(&type, MEMORY_TYPE, p + 5));
	CHECK(type == CU_MEMORYTYPE_DEVICE);
	OK(ATTR(&type, MEMORY_TYPE, (uintptr_t)h));
	CHECK(type == CU_MEMORYTYPE_HOST);
	IS(ATTR(&type, MEMORY_TYPE, (uintptr_t)&type), INVALID);
	OK(ATTR(&c, CONTEXT, p));
	CHECK(c == ctx);
	OK(ATTR(&d, DEVICE_POINTER, p + 7));
	CHECK(d == p + 7);
	IS(ATTR(&hp, HOST_POINTER, p), INVALID);
	OK(ATTR(&hp, HOST_POINTER, (uintptr_t)h + 3));
	CHECK(hp == (char *)h + 3);
	OK(ATTR(&d, RANGE_START_ADDR, q + 599));
	CHECK(d == q);
	IS(ATTR(&d, RANGE_START_ADDR, q + 600), INVALID);
	OK(ATTR(&n, RANGE_SIZE, q));
	CHECK(n == 600);
	OK(ATTR(&n, MAPPING_SIZE, q));
	CHECK(n == 2 * MiB);
	OK(ATTR(&i, DEVICE_ORDINAL, q));
	CHECK(i == 0);
	OK(ATTR(&i, IS_MANAGED, q));
	CHECK(i == 0);
	OK(ATTR(&i, MAPPED, q));
	CHECK(i == 1);
	OK(ATTR(&i, IS_GPU_DIRECT_RDMA_CAPABLE, q));
	CHECK(i == 1);
	OK(ATTR(&i, IS_GPU_DIRECT_RDMA_CAPABLE, (uintptr_t)h));
	CHECK(i == 0);
	OK(ATTR(&id[0], BUFFER_ID, p));
	OK(ATTR(&id[1], BUFFER_ID, q));
	CHECK(id[0] != id[1]);
	OK(cuMemFree_v2(p));
	OK(cuMemAlloc_v2(&p, 3 * MiB));
	OK(ATTR(&id[1], BUFFER_ID, p));
	CHECK(id[0] != id[1]);
	IS(ATTR(&i, P2P_TOKENS, p), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuPointerGetAttribute(&i, (CUpointer_attribute)0, p), INVALID);
	IS(cuPointerGetAttribute(&i, (CUpointer_attribute)99, p), INVALID);
	IS(ATTR(NULL, MAPPED, p), INVALID);
	OK(ATTR(&i, SYNC_MEMOPS, p));
	CHECK(i == 0);
	i = 1;
	OK(cuPointerSetAttribute(&i, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	i = 0;
	OK(ATTR(&i, SYNC_MEMOPS, p));
	CHECK(i == 1);
	IS(cuPointerSetAttribute(&i, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
				 (uintptr_t)h), INVALID);
	IS(cuPointerSetAttribute(&i, CU_POINTER_ATTRIBUTE_MAPPED, p), INVALID);
	IS(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p),
	   INVALID);
	OK(cuPointerGetAttributes(4, attrs, data, p));
	CHECK(type == CU_MEMORYTYPE_DEVICE && i == 0 && !hp && n == 3 * MiB);
	OK(cuPointerGetAttributes(4, attrs, data, (uintptr_t)&type));
	CHECK(type == 0 && i == CU_DEVICE_INVALID && hp == &type && n == 0);
	IS(cuPointerGetAttributes(0, attrs, data, p), INVALID);
	IS(cuPointerGetAttributes(1, NULL, data, p), INVALID);
	IS(cuPointerGetAttributes(1, attrs, NULL, p), INVALID);
	data[2] = NULL;
	IS(cuPointerGetAttributes(4, attrs, data, p), INVALID);
	end(ctx);
}

static void t_dmabuf(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p, a, b, c;
	int fd = -1, fd2 = -1;
	uint64_t used;
	void *h;

	OK(cuMemAlloc_v2(&p, 3 * MiB + 4096));
	OK(cuMemAllocHost_v2(&h, 65536));
#define EXPORT(out, ptr, size) \
	cuMemGetHandleForAddressRange(out, ptr, size, \
				      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)
	OK(EXPORT(&fd, p, 3 * MiB));
	CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	OK(EXPORT(&fd2, p + MiB, MiB + 4096));
	CHECK(fake_export_offset(fd2) == fake_export_offset(fd) + MiB);
	/* The last page of the CPU, in the last page of the GPU */
	OK(EXPORT(&fd2, p, 3 * MiB + 4096));
	CHECK(fake_export_size(fd2) == 3 * MiB + FAKE_PAGE);
	OK(cuMemGetHandleForAddressRange(&fd2, p, 3 * MiB,
					 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					 CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE));
	IS(cuMemGetHandleForAddressRange(&fd2, p, 3 * MiB,
					 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 2),
	   INVALID);
	IS(cuMemGetHandleForAddressRange(&fd2, p, 3 * MiB, 2, 0), INVALID);
	IS(EXPORT(NULL, p, MiB), INVALID);
	IS(EXPORT(&fd2, p, 0), INVALID);
	IS(EXPORT(&fd2, p, 4095), INVALID);
	IS(EXPORT(&fd2, p + 512, 4096), INVALID);
	IS(EXPORT(&fd2, p + 4096, 4096), INVALID);	/* GPU page is 64 KiB */
	IS(EXPORT(&fd2, p, 4 * MiB), INVALID);
	IS(EXPORT(&fd2, p - FAKE_PAGE, 2 * FAKE_PAGE), INVALID);
	IS(EXPORT(&fd2, p, (size_t)-4096), INVALID);
	IS(EXPORT(&fd2, BAD_PTR(CUdeviceptr) & ~4095ull, 4096), INVALID);
	IS(EXPORT(&fd2, (uintptr_t)h, 65536), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemFree_v2(p));
	IS(EXPORT(&fd2, p, MiB), INVALID);

	/*
	 * Freed memory of a block that a dma-buf reached must not be given to
	 * another allocation while the dma-buf can still be alive.
	 */
	OK(cuMemAlloc_v2(&a, FAKE_PAGE));
	OK(cuMemAlloc_v2(&b, FAKE_PAGE));
	OK(EXPORT(&fd, a, FAKE_PAGE));
	OK(cuMemFree_v2(a));
	OK(cuMemAlloc_v2(&c, FAKE_PAGE));
	CHECK(c != a);
	used = fake_vram_used(0);
	OK(cuMemFree_v2(b));
	OK(cuMemFree_v2(c));
	CHECK(fake_vram_used(0) == used - 2 * MiB);
	end(ctx);
}

static void t_no_dmabuf(void)
{
	struct fake_config cfg = one;
	CUcontext ctx;
	CUdeviceptr p;
	int fd, v;

	cfg.dmabuf = false;
	ctx = start(&cfg);
	OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
	CHECK(v == 0);
	OK(cuMemAlloc_v2(&p, MiB));
	IS(EXPORT(&fd, p, MiB), CUDA_ERROR_NOT_SUPPORTED);
	end(ctx);
}

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
	IS(cuMemcpyAsync(p, q, 10, BAD_PTR(CUstream)),
	   CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree_v2(q));
	IS(cuMemcpyDtoD_v2(q, p, 10), INVALID);
	end(ctx);
}

static void t_fills(void)
{
	CUcontext ctx = start(&one);
	unsigned char b[16];
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
	IS(cuMemsetD16_v2(p + 1, 0, 1), INVALID);
	IS(cuMemsetD32_v2(p + 2, 0, 1), INVALID);
	IS(cuMemsetD8_v2(p, 0, 4097), INVALID);
	IS(cuMemsetD32_v2(p, 0, SIZE_MAX), INVALID);
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
	IS(cuMemcpy2DUnaligned_v2(&c), INVALID);
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
	OK(cuMemsetD8_v2(pa, 9, 100));
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
	CUevent e, e2;
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

	/* The call returns before the work is done */
	h[0] = 7;
	OK(cuMemcpyHtoDAsync_v2(p, h, 1, nb));
	CHECK(fake_vram(0)[0] == 0);
	IS(cuStreamQuery(nb), CUDA_ERROR_NOT_READY);
	OK(cuEventRecord(e, nb));
	IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	IS(cuEventElapsedTime(&ms, e, e), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(b1));		/* another stream is not concerned */
	OK(cuStreamQuery(NULL));
	fake_step(0, 1, 1);
	OK(cuEventQuery(e));
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
	CHECK(h[7] == 7);
	OK(cuCtxSynchronize());

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
		CHECK(fake_jobs() == 0);
		local = 0;
		OK(cuMemcpyDtoHAsync_v2(&local, p + 9, 1, nb));
		CHECK(local == 9);
	}
	/* So may memory that asks for it */
	{
		int on = 1;

		OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
		OK(cuMemsetD8Async(p, 3, 1, nb));
		OK(cuStreamQuery(nb));
		on = 0;
		OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	}
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

/* ---- failures ---- */

static void t_engine_error(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p;
	CUstream s, t;
	CUevent e;
	char b;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	fake_bad_jobs(1, -EIO, 16);
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuMemcpyDtoH_v2(&b, p, 1));	/* the context goes on */
	fake_bad_jobs(1, -EIO, 8 /* a refused DMA */);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	fake_bad_jobs(1, -ETIMEDOUT, 0);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
	/* An asynchronous one is told once, on its stream */
	fake_bad_jobs(1, -EIO, 16);
	OK(cuMemsetD8Async(p, 1, 1, s));
	OK(cuEventRecord(e, s));
	OK(cuStreamSynchronize(t));
	OK(cuMemsetD8_v2(p, 1, 1));
	IS(cuEventSynchronize(e), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuStreamSynchronize(s));
	fake_bad_jobs(1, -EIO, 16);
	OK(cuMemsetD8Async(p, 1, 1, s));
	IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuCtxSynchronize());
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
	CUdeviceptr p;
	size_t a, b;

	OK(cuMemAlloc_v2(&p, 4096));
	fake_remove(0);
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
	 * A failed free is in the log only, the call has done its part; the
	 * search for devices goes on behind one that cannot be opened.
	 */
	if (call != FAKE_FREE && call != FAKE_QUERY &&
	    (call != FAKE_OPEN || nth == 1 || nth > PLN_MAX_DEVICES))
		CHECK(before > 0);
	CHECK(fake_files() == 0 && fake_jobs() == 0 && fake_handles() == 0);
	if (call != FAKE_FREE && call != FAKE_WAIT)
		CHECK(fake_leaks() == 0);
	errors_seen = 0;
	program();
	CHECK(errors_seen == 0);
	CHECK(fake_files() == 0);
}

static int in_child(void (*test)(void));
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
			nth = PLN_MAX_DEVICES;
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
	IS(cuGetProcAddress("cuInit", &fn, PLN_DRIVER_VERSION + 10, 0), INVALID);
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

static const struct {
	const char *name;
	void (*fn)(void);
} tests[] = {
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
	{ "each thread has its own stack", t_thread_stack },
	{ "memory", t_memory },
	{ "memory, coherent", t_memory_coherent },
	{ "the CPU faults on memory without a window", t_cpu_faults },
	{ "host memory", t_host_memory },
	{ "a registration that outlived its memory", t_stale_registration },
	{ "pointer attributes", t_pointer_attributes },
	{ "dma-buf export", t_dmabuf },
	{ "no dma-buf export", t_no_dmabuf },
	{ "copies", t_copies },
	{ "fills", t_fills },
	{ "copies in two dimensions", t_copy_2d },
	{ "two GPUs", t_two_gpus },
	{ "engine extensions", t_extensions },
	{ "stream and event calls", t_stream_api },
	{ "asynchronous order", t_async },
	{ "an event of another context", t_event_other_context },
	{ "more jobs than the kernel keeps", t_many_jobs },
	{ "ended jobs are forgotten", t_reaped },
	{ "engine errors", t_engine_error },
	{ "GPU reset", t_reset },
	{ "GPU reset that nobody noticed", t_reset_unnoticed },
	{ "GPU reset under work", t_reset_under_work },
	{ "GPU reset and the primary context", t_reset_primary },
	{ "GPU removed", t_removed },
	{ "fork", t_fork },
	{ "threads", t_threads },
	{ "cuGetProcAddress", t_proc_address },
};

int main(int argc, char **argv)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("PEERLANE_LOG");
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		ktap(!in_child(tests[i].fn), "%s", tests[i].name);
	}
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
	}
	return ktap_end();
}
