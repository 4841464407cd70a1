// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: memory, and what a pointer is.
 * Each test runs in a process of its own.
 */
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>

#include "unit.h"

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

/* What the process may have pinned: a copy takes the steps that leaves it */
static void memlock(size_t bytes, CUresult want)
{
	unsigned char *in = malloc(MiB + 1), *out = calloc(1, MiB + 1);
	struct fake_config cfg = one;
	CUdeviceptr p;
	CUcontext ctx;

	CHECK(in && out);
	pattern(in, MiB + 1, 7);
	cfg.memlock = bytes;
	ctx = start(&cfg);
	OK(cuMemAlloc_v2(&p, MiB + 1));
	IS(cuMemcpyHtoD_v2(p, in, MiB + 1), want);
	if (!want) {
		OK(cuMemcpyDtoH_v2(out, p, MiB + 1));
		CHECK(!memcmp(in, out, MiB + 1));
	}
	end(ctx);
	free(in);
	free(out);
}

static void t_memlock(void)
{
	memlock(64 * KiB, CUDA_SUCCESS);
}

static void t_memlock_page(void)
{
	memlock(4 * KiB, CUDA_SUCCESS);
}

static void t_memlock_nothing(void)
{
	memlock(1, CUDA_ERROR_OUT_OF_MEMORY);
}

/* The kernel's own pages in each process count as those of a device */
static void t_io_memory(void)
{
	CUcontext ctx = start(&one);
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start_addr = 0, end_addr;
	char line[256];
	void *io = NULL;

	while (maps && !io && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]") &&
		    sscanf(line, "%lx-%lx", &start_addr, &end_addr) == 2)
			io = (void *)start_addr;
	CHECK(maps && io);
	if (maps)
		fclose(maps);
	OK(cuMemHostRegister_v2(io, 4096, CU_MEMHOSTREGISTER_IOMEMORY));
	OK(cuMemHostUnregister(io));
	/* More than is there, and over the end of all addresses */
	IS(cuMemHostRegister_v2(io, 64 * MiB, CU_MEMHOSTREGISTER_IOMEMORY),
	   INVALID);
	IS(cuMemHostRegister_v2(io, SIZE_MAX, CU_MEMHOSTREGISTER_IOMEMORY),
	   INVALID);
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
	CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens = { 77, 77 };
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
	OK(ATTR(&tokens, P2P_TOKENS, p));
	CHECK(tokens.p2pToken == 0 && tokens.vaSpaceToken == 0);
	IS(ATTR(&tokens, P2P_TOKENS, (uintptr_t)h), CUDA_ERROR_NOT_SUPPORTED);
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

/* What the heap holds; the sanitizers' own does not tell */
static size_t heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* What is remembered grows with what was said, not with the memory */
static void t_advice_memory(void)
{
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	struct fake_config cfg = one;
	size_t before;
	CUdeviceptr p;
	int value;

	cfg.coherent = true;
	start(&cfg);
	OK(cuMemAllocManaged(&p, 48 * MiB, CU_MEM_ATTACH_GLOBAL));
	before = heap();
	OK(cuMemAdvise_v2(p, 48 * MiB, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
	OK(cuMemPrefetchAsync_v2(p, 48 * MiB, here, 0, NULL));
	OK(cuMemRangeGetAttribute(&value, sizeof(value),
				  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p,
				  48 * MiB));
	CHECK(value == 1);
	CHECK(heap() < before + 4096);
	/* Every second page, and then the others: one answer is left */
	for (int odd = 0; odd < 2; odd++)
		for (size_t i = 0; i < 64; i++)
			OK(cuMemAdvise_v2(p + (2 * i + odd) * 4096, 4096,
					  CU_MEM_ADVISE_UNSET_READ_MOSTLY,
					  here));
	CHECK(heap() < before + 4096);
	OK(cuMemRangeGetAttribute(&value, sizeof(value),
				  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
				  p + 127 * 4096, 4096));
	CHECK(value == 0);
	OK(cuMemRangeGetAttribute(&value, sizeof(value),
				  CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
				  p + 128 * 4096, 47 * MiB));
	CHECK(value == 1);
	OK(cuMemFree_v2(p));
}

/* What a thread without one may do to memory, as a real GPU has it: free it */
static void t_free_without(void)
{
	CUcontext ctx = start(&one), popped;
	CUdeviceptr p, q;
	size_t n;
	char c;

	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAlloc_v2(&q, 4 * MiB));
	OK(cuCtxPopCurrent_v2(&popped));
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuMemcpyDtoH_v2(&c, p, 1), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuMemGetInfo_v2(&n, &n), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
	IS(cuMemFree_v2(q), INVALID);
	CHECK(fake_handles() == 0);
	OK(cuCtxPushCurrent_v2(ctx));
	end(ctx);
}

static void t_dmabuf(void)
{
	CUcontext ctx = start(&one);
	CUdeviceptr p, a, b, c, small[16];
	int fd = -1, fd2 = -1;
	uint64_t used;
	void *h;

	OK(cuMemAlloc_v2(&p, 3 * MiB + 4096));
	OK(EXPORT(&fd, p, 3 * MiB));
	CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
	OK(EXPORT(&fd2, p + MiB, MiB + 4096));
	CHECK(fake_export_offset(fd2) == fake_export_offset(fd) + MiB);
	/* The last page of the CPU, in the last page of the GPU */
	OK(EXPORT(&fd2, p, 3 * MiB + 4096));
	CHECK(fake_export_size(fd2) == 3 * MiB + 4096);
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
	/* In the middle of a page of the GPU, and no more than that */
	OK(EXPORT(&fd2, p + 4096, 4096));
	CHECK(fake_export_offset(fd2) == fake_export_offset(fd) + 4096);
	CHECK(fake_export_size(fd2) == 4096);
	IS(EXPORT(&fd2, p, 4 * MiB), INVALID);
	IS(EXPORT(&fd2, p - FAKE_PAGE, 2 * FAKE_PAGE), INVALID);
	IS(EXPORT(&fd2, p, (size_t)-4096), INVALID);
	IS(EXPORT(&fd2, BAD_PTR(CUdeviceptr) & ~4095ull, 4096), INVALID);
	OK(cuMemAllocHost_v2(&h, 65536));	/* it may lie right below p */
	IS(EXPORT(&fd2, (uintptr_t)h, 65536), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemFree_v2(p));
	IS(EXPORT(&fd2, p, MiB), INVALID);

	/*
	 * Freed memory of a block that a dma-buf reached must not be given to
	 * another allocation while the dma-buf can still be alive.
	 */
	OK(cuMemAlloc_v2(&a, FAKE_PAGE));
	OK(cuMemAlloc_v2(&b, FAKE_PAGE));
	/* Nobody has allocated the rest of the block, but it may go along */
	IS(EXPORT(&fd, b + FAKE_PAGE, FAKE_PAGE), INVALID);
	IS(EXPORT(&fd, a + MiB, FAKE_PAGE), INVALID);
	OK(EXPORT(&fd, b, 2 * FAKE_PAGE));
	OK(EXPORT(&fd, a, FAKE_PAGE));
	OK(cuMemFree_v2(a));
	IS(EXPORT(&fd2, a, FAKE_PAGE), INVALID);
	OK(cuMemAlloc_v2(&c, FAKE_PAGE));
	CHECK(c != a);
	used = fake_vram_used(0);
	OK(cuMemFree_v2(b));
	OK(cuMemFree_v2(c));
	CHECK(fake_vram_used(0) == used - 2 * MiB);

	/* What lies where freed memory was begins at any page of the CPU */
	for (int i = 0; i < 16; i++)
		OK(cuMemAlloc_v2(&small[i], 8192));
	for (int i = 0; i < 16; i += 2)
		OK(cuMemFree_v2(small[i]));
	for (int i = 0; i < 16; i += 2)
		OK(cuMemAlloc_v2(&small[i], 4096));
	for (int i = 0; i < 16; i++) {
		OK(EXPORT(&fd, small[i], i % 2 ? 8192 : 4096));
		CHECK(fake_export_size(fd) == (i % 2 ? 8192 : 4096));
	}
	end(ctx);
}

/* Where no dma-buf was made, none reaches the memory: it is given again */
static void t_dmabuf_failed(void)
{
	CUcontext ctx = start(&one);
	CUipcMemHandle handle;
	CUdeviceptr other, p, q;
	int fd;

	for (int i = 0; i < 2; i++) {
		/* Whose block stays */
		OK(cuMemAlloc_v2(&other, FAKE_PAGE));
		OK(cuMemAlloc_v2(&p, FAKE_PAGE));
		fake_fail(FAKE_EXPORT, 1, ENOMEM);
		IS(i ? cuIpcGetMemHandle(&handle, p) :
		       EXPORT(&fd, p, FAKE_PAGE), CUDA_ERROR_OUT_OF_MEMORY);
		OK(cuMemFree_v2(p));
		OK(cuMemAlloc_v2(&q, FAKE_PAGE));
		CHECK(p == q);
		/* A dma-buf that there is keeps it */
		OK(EXPORT(&fd, q, FAKE_PAGE));
		fake_fail(FAKE_EXPORT, 1, ENOMEM);
		IS(EXPORT(&fd, q, FAKE_PAGE), CUDA_ERROR_OUT_OF_MEMORY);
		OK(cuMemFree_v2(q));
		OK(cuMemAlloc_v2(&p, FAKE_PAGE));
		CHECK(p != q);
		OK(cuCtxDestroy_v2(ctx));
		OK(cuCtxCreate_v2(&ctx, 0, 0));
	}
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

static const struct unit_test tests[] = {
	{ "memory", t_memory },
	{ "memory, coherent", t_memory_coherent },
	{ "the CPU faults on memory without a window", t_cpu_faults },
	{ "host memory", t_host_memory },
	{ "little memory may be pinned", t_memlock },
	{ "a page may be pinned", t_memlock_page },
	{ "no page may be pinned", t_memlock_nothing },
	{ "memory of devices", t_io_memory },
	{ "a registration that outlived its memory", t_stale_registration },
	{ "pointer attributes", t_pointer_attributes },
	{ "what advice on managed memory costs", t_advice_memory },
	{ "freeing without a context", t_free_without },
	{ "dma-buf export", t_dmabuf },
	{ "a dma-buf export that fails", t_dmabuf_failed },
	{ "no dma-buf export", t_no_dmabuf },
};

UNIT_MAIN(tests)
