// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: memory by hand, other processes.
 * Each test runs in a process of its own.
 */
#include <sys/mman.h>

#include "unit.h"

/* ---- memory by hand ---- */

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static const CUmemAccessDesc all = {
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

/* Two allocations side by side: one span to set and to unmap, two to copy */
static void vmm_use(const struct fake_config *cfg)
{
	CUmemGenericAllocationHandle h[2] = { 0, 0 };
	unsigned char in[64], out[64];
	CUcontext ctx = start(cfg), other;
	CUdeviceptr p = 0;

	pattern(in, sizeof(in), 3);
	OK(cuMemCreate(&h[0], 2 * MiB, &prop, 0));
	OK(cuMemCreate(&h[1], 4 * MiB, &prop, 0));
	CHECK(fake_vram_used(0) == 6 * MiB);
	OK(cuMemAddressReserve(&p, 6 * MiB, 0, 0, 0));
	IS(cuMemMap(p + 4 * MiB, 4 * MiB, 0, h[1], 0), INVALID);
	OK(cuMemMap(p, 2 * MiB, 0, h[0], 0));
	OK(cuMemMap(p + 2 * MiB, 4 * MiB, 0, h[1], 0));
	IS(cuMemMap(p, 2 * MiB, 0, h[0], 0), INVALID);	/* there is one */
	IS(cuMemcpyHtoD_v2(p, in, 64), INVALID);	/* no access yet */
	OK(cuMemSetAccess(p, 6 * MiB, &all, 1));
	OK(cuMemcpyHtoD_v2(p + 3 * MiB, in, 64));
	OK(cuMemcpyDtoD_v2(p, p + 3 * MiB, 64));
	OK(cuMemcpyDtoH_v2(out, p, 64));
	CHECK(!memcmp(in, out, 64));
	if (cfg->coherent) {
		CHECK(!memcmp((void *)(uintptr_t)p, in, 64));
		CHECK(!memcmp((void *)(uintptr_t)(p + 3 * MiB), in, 64));
	}
	/* Maps side by side are one piece; behind the last there is nothing */
	OK(cuMemcpyHtoD_v2(p + 2 * MiB - 32, in, 64));
	OK(cuMemcpyDtoH_v2(out, p + 2 * MiB - 32, 64));
	CHECK(!memcmp(in, out, 64));
	OK(cuMemsetD32_v2(p + 2 * MiB - 16, 0x01020304, 8));
	OK(cuMemcpyDtoH_v2(out, p + 2 * MiB - 17, 34));
	CHECK(out[0] == in[15] && out[1] == 4 && out[32] == 1 &&
	      out[33] == in[48]);
	OK(cuMemsetD8_v2(p + 6 * MiB - 8, 3, 8));
	IS(cuMemsetD8_v2(p + 6 * MiB - 8, 4, 9), INVALID);
	IS(cuMemsetD8_v2(p + 2 * MiB - 8, 4, 5 * MiB), INVALID);
	OK(cuMemcpyDtoH_v2(out, p + 6 * MiB - 1, 1));
	CHECK(out[0] == 3);
	/* Another context of the device reaches it, and it outlives both */
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuMemsetD8_v2(p + 64, 7, 8));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemcpyDtoH_v2(out, p + 64, 8));
	CHECK(out[0] == 7 && out[7] == 7);
	OK(cuMemRelease(h[0]));
	IS(cuMemRelease(h[0]), INVALID);
	OK(cuMemcpyDtoH_v2(out, p, 64));
	CHECK(!memcmp(in, out, 64));
	OK(cuMemRetainAllocationHandle(&h[0], (void *)(uintptr_t)(p + 9)));
	OK(cuMemRelease(h[0]));
	IS(cuMemAddressFree(p, 6 * MiB), INVALID);
	IS(cuMemUnmap(p, 4 * MiB), INVALID);
	OK(cuMemUnmap(p, 6 * MiB));
	CHECK(fake_vram_used(0) == 4 * MiB);
	OK(cuMemRelease(h[1]));
	OK(cuMemAddressFree(p, 6 * MiB));
	end(ctx);
}

static void t_vmm(void)
{
	vmm_use(&one);
}

static void t_vmm_coherent(void)
{
	struct fake_config cfg = one;

	cfg.coherent = true;
	vmm_use(&cfg);
}

/* The CPU faults where access is not, or not any more, set */
static void t_vmm_cpu(void)
{
	struct fake_config cfg = one;
	CUmemAccessDesc none = all;
	CUmemGenericAllocationHandle h;
	CUcontext ctx;
	CUdeviceptr p;
	int pipe_fd[2];
	char *cpu;

	cfg.coherent = true;
	ctx = start(&cfg);
	CHECK(!pipe(pipe_fd));
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	cpu = (char *)(uintptr_t)p;
	OK(cuMemMap(p, 2 * MiB, 0, h, 0));
	CHECK(write(pipe_fd[1], cpu, 1) == -1 && errno == EFAULT);
	OK(cuMemSetAccess(p, 2 * MiB, &all, 1));
	CHECK(write(pipe_fd[1], cpu, 1) == 1);
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemSetAccess(p, 2 * MiB, &none, 1));
	CHECK(write(pipe_fd[1], cpu, 1) == -1 && errno == EFAULT);
	OK(cuMemSetAccess(p, 2 * MiB, &all, 1));
	OK(cuMemUnmap(p, 2 * MiB));
	CHECK(write(pipe_fd[1], cpu, 1) == -1 && errno == EFAULT);
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MiB));
	end(ctx);
}

static void t_vmm_addresses(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p, q, wish;

	OK(cuMemAddressReserve(&p, 4 * MiB, 64 * MiB, 0, 0));
	CHECK(p % (64 * MiB) == 0);
	wish = p;
	OK(cuMemAddressReserve(&q, 4 * MiB, 0, wish, 0));
	CHECK(q != wish);		/* it is taken */
	OK(cuMemAddressFree(p, 4 * MiB));
	OK(cuMemAddressReserve(&p, 4 * MiB, 0, wish, 0));
	CHECK(p == wish);
	IS(cuMemAddressReserve(&p, ~0ull & ~(2 * MiB - 1), 0, 0, 0),
	   CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAddressFree(p, 2 * MiB), INVALID);
	OK(cuMemAddressFree(p, 4 * MiB));
	IS(cuMemAddressFree(p, 4 * MiB), INVALID);
	OK(cuMemAddressFree(q, 4 * MiB));
	end(ctx);
}

/* Other memory at an address has another id: by that libcufile knows it */
static void t_vmm_ids(void)
{
	CUmemGenericAllocationHandle h[2];
	CUcontext ctx = start(&one);
	unsigned long long id[3];
	CUdeviceptr p;

	OK(cuMemCreate(&h[0], 2 * MiB, &prop, 0));
	OK(cuMemCreate(&h[1], 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuMemMap(p, 2 * MiB, 0, h[i % 2], 0));
		OK(cuPointerGetAttribute(&id[i], CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
		OK(cuMemUnmap(p, 2 * MiB));
	}
	CHECK(id[0] && id[1] && id[2]);
	CHECK(id[0] != id[1]);
	CHECK(id[1] != id[2]);
	IS(cuPointerGetAttribute(&id[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, p), INVALID);
	OK(cuMemRelease(h[0]));
	OK(cuMemRelease(h[1]));
	OK(cuMemAddressFree(p, 2 * MiB));
	end(ctx);
}

static void t_vmm_share(void)
{
	struct fake_config cfg = one;
	CUmemGenericAllocationHandle h, again, far;
	CUmemAllocationProp p1 = prop, got;
	CUcontext ctx;
	CUdeviceptr p;
	int fd, file;
	char b = 0;

	cfg.gpus = 2;
	ctx = start(&cfg);
	p1.location.id = 1;
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, h, 1, 0));
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, 1));
	CHECK(again != h);
	close(fd);
	OK(cuMemRelease(h));
	CHECK(fake_vram_used(0) == 2 * MiB);
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MiB, 0, again, 0));
	OK(cuMemSetAccess(p, 2 * MiB, &all, 1));
	OK(cuMemsetD8_v2(p, 5, 2 * MiB));
	OK(cuMemcpyDtoH_v2(&b, p + 9, 1));
	CHECK(b == 5);
	OK(cuMemUnmap(p, 2 * MiB));
	OK(cuMemAddressFree(p, 2 * MiB));
	OK(cuMemRelease(again));
	CHECK(fake_vram_used(0) == 0);
	/* Of the second GPU: the descriptor alone says so */
	OK(cuMemCreate(&h, 2 * MiB, &p1, 0));
	OK(cuMemExportToShareableHandle(&fd, h, 1, 0));
	OK(cuMemImportFromShareableHandle(&far, (void *)(intptr_t)fd, 1));
	OK(cuMemGetAllocationPropertiesFromHandle(&got, far));
	CHECK(got.location.id == 1);
	OK(cuMemRelease(far));
	OK(cuMemRelease(h));
	close(fd);
	file = open("/dev/zero", O_RDONLY);
	IS(cuMemImportFromShareableHandle(&far, (void *)(intptr_t)file, 1),
	   INVALID);
	close(file);
	/* There is no fabric, which a program learns when it asks for memory for it */
	p1.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	IS(cuMemCreate(&h, 2 * MiB, &p1, 0), CUDA_ERROR_NOT_SUPPORTED);
	/* What was not made to be shared is not */
	p1.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	OK(cuMemCreate(&h, 2 * MiB, &p1, 0));
	IS(cuMemExportToShareableHandle(&fd, h, 1, 0), INVALID);
	OK(cuMemRelease(h));
	end(ctx);
}

/* The driver refuses, at each call that it can */
static void t_vmm_failures(void)
{
	struct fake_config cfg = one;
	CUmemGenericAllocationHandle h, again;
	CUcontext ctx;
	CUdeviceptr p;
	int fd;

	cfg.coherent = true;
	ctx = start(&cfg);
	fake_fail(FAKE_ALLOC, 1, ENOMEM);
	IS(cuMemCreate(&h, 2 * MiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemCreate(&h, 128 * MiB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	fake_fail(FAKE_EXPORT, 1, EMFILE);
	IS(cuMemExportToShareableHandle(&fd, h, 1, 0),
	   CUDA_ERROR_OPERATING_SYSTEM);
	OK(cuMemExportToShareableHandle(&fd, h, 1, 0));
	fake_fail(FAKE_IMPORT, 1, ENOMEM);
	IS(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, 1),
	   INVALID);
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MiB, 0, h, 0));
	fake_fail(FAKE_MMAP, 1, ENOMEM);
	IS(cuMemSetAccess(p, 2 * MiB, &all, 1), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemsetD8_v2(p, 1, 1), INVALID);
	OK(cuMemSetAccess(p, 2 * MiB, &all, 1));
	OK(cuMemsetD8_v2(p, 1, 1));
	fake_reset(0);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuMemUnmap(p, 2 * MiB));
	OK(cuMemAddressFree(p, 2 * MiB));
	OK(cuMemRelease(h));
	close(fd);
	end(ctx);
}

/* What may not be written in whole is not written in part */
static void t_vmm_rights(void)
{
	CUmemGenericAllocationHandle h[2];
	unsigned char in[64], out[64];
	CUmemAccessDesc read = all;
	CUcontext ctx = start(&one);
	CUdeviceptr p, at, far, from[1], to[1];
	size_t n[1] = { 64 }, starts[1] = { 0 };
	CUmemcpyAttributes attrs[1] = { { .srcAccessOrder =
		CU_MEMCPY_SRC_ACCESS_ORDER_STREAM } };
	CUmemAccessDesc none = all;
	CUstream s;

	pattern(in, sizeof(in), 3);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuMemAddressReserve(&p, 4 * MiB, 0, 0, 0));
	for (uint64_t i = 0; i < 2; i++) {
		OK(cuMemCreate(&h[i], 2 * MiB, &prop, 0));
		OK(cuMemMap(p + i * 2 * MiB, 2 * MiB, 0, h[i], 0));
	}
	OK(cuMemSetAccess(p, 4 * MiB, &all, 1));
	read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemSetAccess(p + 2 * MiB, 2 * MiB, &read, 1));
	at = p + 2 * MiB - 32;
	far = at - 1 * MiB;
	OK(cuMemsetD8_v2(p, 5, 64));
	IS(cuMemsetD8_v2(at, 1, 64), INVALID);
	IS(cuMemsetD8Async(at, 1, 64, s), INVALID);
	IS(cuMemsetD2D8_v2(at, 33, 1, 32, 2), INVALID);
	IS(cuMemcpyHtoD_v2(at, in, 64), INVALID);
	IS(cuMemcpyDtoDAsync_v2(at, p, 64, s), INVALID);
	from[0] = p;
	to[0] = at;
	IS(cuMemcpyBatchAsync_v2(to, from, n, 1, attrs, starts, 1, s), INVALID);
	memset(out, 1, sizeof(out));
	OK(cuMemcpyDtoH_v2(out, at, 64));
	for (int i = 0; i < 64; i++)
		CHECK(out[i] == 0);
	/* Reading needs no more than that right; here both pieces have it */
	OK(cuMemsetD8_v2(far, 9, 64));
	OK(cuMemcpyDtoD_v2(far, at, 64));
	OK(cuMemcpyDtoH_v2(out, far, 64));
	CHECK(out[0] == 0 && out[63] == 0);
	OK(cuMemSetAccess(p + 2 * MiB, 2 * MiB, &none, 1));
	IS(cuMemcpyDtoH_v2(in, at, 64), INVALID);
	OK(cuMemUnmap(p, 4 * MiB));
	OK(cuMemAddressFree(p, 4 * MiB));
	for (int i = 0; i < 2; i++)
		OK(cuMemRelease(h[i]));
	end(ctx);
}

/* What memory by hand can be of, and what is promised of it */
static void t_vmm_kinds(void)
{
	CUcontext ctx = start(&one);
	CUmemAllocationProp p1 = prop;
	CUmemGenericAllocationHandle h;
	size_t size = 0;
	CUdeviceptr p;
	int v = 77, fd;

	p1.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	OK(cuMemGetAllocationGranularity(&size, &p1, 0));
	CHECK(size == 2 * MiB);
	IS(cuMemCreate(&h, 2 * MiB, &p1, 0), CUDA_ERROR_NOT_SUPPORTED);
	p1.location.type = CU_MEM_LOCATION_TYPE_HOST;
	IS(cuMemGetAllocationGranularity(&size, &p1, 0),
	   CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemCreate(&h, 2 * MiB, &p1, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	for (unsigned char capable = 0; capable < 2; capable++) {
		p1 = prop;
		p1.allocFlags.gpuDirectRDMACapable = capable;
		OK(cuMemCreate(&h, 2 * MiB, &p1, 0));
		OK(cuMemMap(p, 2 * MiB, 0, h, 0));
		OK(cuPointerGetAttribute(&v,
			CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p));
		CHECK(v == capable);
		OK(EXPORT(&fd, p, 2 * MiB));
		close(fd);
		OK(cuMemUnmap(p, 2 * MiB));
		OK(cuMemRelease(h));
	}
	OK(cuMemAddressFree(p, 2 * MiB));
	end(ctx);
}

/* ---- other processes: what one process can see of it ---- */

static void t_ipc_event(void)
{
	struct fake_config cfg = one;
	CUipcEventHandle handle;
	CUcontext ctx;
	CUstream s, t;
	CUdeviceptr p;
	CUevent e;
	void *pinned;
	unsigned char *b;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAllocHost_v2(&pinned, 4096));
	b = pinned;
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuIpcGetEventHandle(&handle, e));
	OK(cuEventQuery(e));
	for (int i = 1; i < 200; i++) {	/* more than the page has places */
		OK(cuMemsetD8Async(p, (unsigned char)i, 1, s));
		OK(cuEventRecord(e, s));
		if (i % 50 == 1)
			IS(cuEventQuery(e), CUDA_ERROR_NOT_READY);
		OK(cuStreamWaitEvent(t, e, 0));
		OK(cuMemcpyDtoHAsync_v2(b, p, 1, t));
		OK(cuStreamSynchronize(t));
		CHECK(*b == i);
		OK(cuEventQuery(e));
	}
	/* What cannot be submitted is not waited for */
	OK(cuEventRecord(e, s));
	fake_fail(FAKE_SUBMIT, 1, ENOMEM);
	IS(cuEventRecord(e, s), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuEventSynchronize(e));
	OK(cuMemFreeHost(pinned));
	/* Work that fails ends the event too, with its error */
	fake_bad_jobs(1, -EIO, 1);
	OK(cuEventRecord(e, s));
	IS(cuEventSynchronize(e), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuEventDestroy_v2(e));
	IS(cuIpcGetEventHandle(&handle, e), CUDA_ERROR_INVALID_HANDLE);
	end(ctx);
}

static void t_ipc_memory(void)
{
	CUipcMemHandle handle, same;
	CUcontext ctx = start(&one);
	CUdeviceptr p, q;
	CUmemGenericAllocationHandle h;
	int fd, next;
	void *pinned;

	fd = dup(0);
	close(fd);
	OK(cuMemAlloc_v2(&p, 4 * MiB));
	fake_fail(FAKE_EXPORT, 1, EMFILE);
	IS(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_OPERATING_SYSTEM);
	OK(cuIpcGetMemHandle(&handle, p));
	OK(cuIpcGetMemHandle(&same, p + 100));
	CHECK(!memcmp(&handle, &same, sizeof(same)));
	IS(cuIpcOpenMemHandle(&q, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
	for (size_t i = 0; i < sizeof(handle); i += 4) {
		memcpy(&same, &handle, sizeof(same));
		same.reserved[i] = (char)~same.reserved[i];
		CHECK(cuIpcOpenMemHandle_v2(&q, same, 1) != CUDA_SUCCESS);
	}
	OK(cuMemFree_v2(p));
	next = dup(0);
	CHECK(next == fd);		/* the descriptor behind the handle */
	close(next);
	IS(cuIpcGetMemHandle(&handle, p), INVALID);
	OK(cuMemAllocHost_v2(&pinned, 4096));
	IS(cuIpcGetMemHandle(&handle, (uintptr_t)pinned), INVALID);
	OK(cuMemFreeHost(pinned));
	OK(cuMemCreate(&h, 2 * MiB, &prop, 0));
	OK(cuMemAddressReserve(&p, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(p, 2 * MiB, 0, h, 0));
	IS(cuIpcGetMemHandle(&handle, p), INVALID);
	IS(cuMemFree_v2(p), INVALID);
	OK(cuMemUnmap(p, 2 * MiB));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(p, 2 * MiB));
	end(ctx);
}

/* Another process's handle, opened twice: one place, closed as often */
static void t_ipc_twice(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p, rest, a = 0, b = 0, c = 0;
	CUipcMemHandle handle;
	struct keeper other = keep_memory(&p, &handle, 2, &rest);

	OK(cuIpcOpenMemHandle_v2(&a, handle, 1));
	OK(cuIpcOpenMemHandle_v2(&b, handle, 1));
	CHECK(a && a == b);
	OK(cuMemsetD8_v2(a, 9, 1));
	OK(cuIpcCloseMemHandle(a));
	OK(cuMemsetD8_v2(a, 8, 1));		/* it is open yet */
	OK(cuIpcCloseMemHandle(a));
	IS(cuMemsetD8_v2(a, 8, 1), INVALID);
	IS(cuIpcCloseMemHandle(a), INVALID);
	OK(cuIpcOpenMemHandle_v2(&c, handle, 1));
	OK(cuIpcCloseMemHandle(c));
	let_go(&other);
	OK(cuMemFree_v2(rest));
	OK(cuMemFree_v2(p));
	end(ctx);
}

/* Memory of another process's pool that is freed in a stream is gone, however often it was imported */
static void t_import_twice(void)
{
	CUcontext ctx = start(&one);
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUdeviceptr p, rest, unused, a = 0, b = 0;
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, other;
	CUipcMemHandle handle;
	struct drv_name name;
	struct keeper k;
	int fd = -1;

	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemAllocFromPoolAsync(&p, 4 * MiB, pool, NULL));
	OK(cuMemPoolExportPointer(&data, p));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0));
	k = keep_memory(&unused, &handle, 2, &rest);
	memcpy(&name, &data, sizeof(name));
	name.pid = k.pid;
	memcpy(&data, &name, sizeof(name));
	OK(cuMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd, 1, 0));
	OK(cuMemPoolImportPointer(&a, other, &data));
	OK(cuMemPoolImportPointer(&b, other, &data));
	CHECK(a && a == b);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuStreamSynchronize(NULL));
	IS(cuMemsetD8_v2(a, 8, 1), INVALID);
	IS(cuMemFreeAsync(a, NULL), INVALID);
	let_go(&k);
	close(fd);
	OK(cuMemPoolDestroy(other));
	OK(cuMemFree_v2(p));
	OK(cuMemPoolDestroy(pool));
	OK(cuMemFree_v2(rest));
	OK(cuMemFree_v2(unused));
	end(ctx);
}

/* A descriptor of another process is taken only while it is what it was */
static void t_take_fd(void)
{
	struct drv_name name = { .magic = 77 }, wrong;
	int fd = open("/dev/zero", O_RDONLY), got = -1;
	struct keeper other;
	char byte;

	OK(drv_name_fd(&name, fd));
	other = keep();
	name.pid = other.pid;
	close(fd);
	OK(drv_take_fd(&name, 77, &got));
	CHECK(read(got, &byte, 1) == 1 && !byte);
	close(got);
	IS(drv_take_fd(&name, 78, &got), INVALID);
	wrong = name;
	wrong.inode++;			/* closed, and its number used again */
	IS(drv_take_fd(&wrong, 77, &got), INVALID);
	wrong = name;
	wrong.fd = 1000;
	IS(drv_take_fd(&wrong, 77, &got), INVALID);
	wrong.fd = -1;
	IS(drv_take_fd(&wrong, 77, &got), INVALID);
	wrong = name;
	wrong.pid = 0;
	IS(drv_take_fd(&wrong, 77, &got), INVALID);
	let_go(&other);
	IS(drv_take_fd(&name, 77, &got), CUDA_ERROR_INVALID_HANDLE);	/* it has ended */
}

static const struct unit_test tests[] = {
	{ "memory by hand", t_vmm },
	{ "memory by hand, with a window", t_vmm_coherent },
	{ "memory by hand and the CPU", t_vmm_cpu },
	{ "reserved addresses", t_vmm_addresses },
	{ "memory by hand, ids", t_vmm_ids },
	{ "memory by hand, shared", t_vmm_share },
	{ "memory by hand, every failure", t_vmm_failures },
	{ "memory by hand, rights of pieces", t_vmm_rights },
	{ "memory by hand, of what", t_vmm_kinds },
	{ "events for other processes", t_ipc_event },
	{ "memory for other processes", t_ipc_memory },
	{ "memory of another process, opened twice", t_ipc_twice },
	{ "memory of another process's pool, imported twice", t_import_twice },
	{ "a descriptor of another process", t_take_fd },
};

UNIT_MAIN(tests)
