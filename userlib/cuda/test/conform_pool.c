// SPDX-License-Identifier: MIT
/* Questions on memory in the order of a stream, and on pools of it */
#include <unistd.h>

#include "conform.h"

/* Fixed so that no answer depends on what came before */
static CUmemPoolProps props = {
	.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	.handleTypes = CU_MEM_HANDLE_TYPE_NONE,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static uint64_t value_of(CUmemoryPool pool, CUmemPool_attribute attr)
{
	uint64_t v = 77;

	if (attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
		int n = 77;

		CALL(cuMemPoolGetAttribute, pool, attr, &n);
		return (uint64_t)n;
	}
	CALL(cuMemPoolGetAttribute, pool, attr, &v);
	return v;
}

void ask_pools_wrong(void)
{
	CUmemoryPool pool = NULL, other = NULL;
	CUmemPoolPtrExportData data;
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, 3 };
	CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	CUmemPoolProps bad;

	CUmemAccess_flags flags = 77;
	static char plain[4096];
	CUdeviceptr p = 0, q = 0;
	uint64_t v = 0;
	int fd = -1;


	ASK("pools supported", cuDeviceGetAttribute, &fd,
	    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0);
	SAY("pools supported", fd);
	ASK("default, no place", cuDeviceGetDefaultMemPool, NULL, 0);
	ASK("default of no device", cuDeviceGetDefaultMemPool, &pool, 1000);
	ASK("current, no place", cuDeviceGetMemPool, NULL, 0);
	ASK("current of no device", cuDeviceGetMemPool, &pool, 1000);
	ASK("set on no device", cuDeviceSetMemPool, 1000, pool);
	ASK("set to no pool", cuDeviceSetMemPool, 0, NULL);
	ASK("create, no place", cuMemPoolCreate, NULL, &props);
	ASK("create, no properties", cuMemPoolCreate, &pool, NULL);
	bad = props;
	bad.allocType = 0;
	ASK("create, type 0", cuMemPoolCreate, &pool, &bad);
	bad = props;
	bad.location.type = 0;
	ASK("create, location 0", cuMemPoolCreate, &pool, &bad);
	bad = props;
	bad.location.id = 1000;
	ASK("create on no device", cuMemPoolCreate, &pool, &bad);
	bad = props;
	bad.handleTypes = 0x40;
	ASK("create, handle type 0x40", cuMemPoolCreate, &pool, &bad);
	bad = props;
	bad.reserved[3] = 1;
	ASK("create, reserved byte", cuMemPoolCreate, &pool, &bad);
	bad = props;
	bad.maxSize = 4 * MiB;
	ASK("create, of 4 MiB at most", cuMemPoolCreate, &other, &bad);
	if (other)
		ASK("destroy", cuMemPoolDestroy, other);
	ASK("destroy no pool", cuMemPoolDestroy, NULL);
	ASK("default", cuDeviceGetDefaultMemPool, &pool, 0);
	ASK("destroy the default", cuMemPoolDestroy, pool);
	ASK("trim no pool", cuMemPoolTrimTo, NULL, 0);
	ASK("get, no pool", cuMemPoolGetAttribute, NULL,
	    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
	ASK("get, no place", cuMemPoolGetAttribute, pool,
	    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL);
	ASK("get attribute 0", cuMemPoolGetAttribute, pool, 0, &v);
	ASK("get attribute 1000", cuMemPoolGetAttribute, pool, 1000, &v);
	ASK("set, no pool", cuMemPoolSetAttribute, NULL,
	    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
	ASK("set attribute 1000", cuMemPoolSetAttribute, pool, 1000, &v);
	v = 1;
	ASK("set reserved", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v);
	ASK("set highest reserved to 1", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &v);
	ASK("set used", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v);
	ASK("access of no pool", cuMemPoolSetAccess, NULL, &desc, 1);
	ASK("access, no list", cuMemPoolSetAccess, pool, NULL, 1);
	ASK("access, empty list", cuMemPoolSetAccess, pool, &desc, 0);
	ASK("access", cuMemPoolSetAccess, pool, &desc, 1);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	ASK("access, none for its own device", cuMemPoolSetAccess, pool, &desc, 1);
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	ASK("access, reading for its own device", cuMemPoolSetAccess, pool, &desc,
	    1);
	desc.flags = 77;
	ASK("access, flags 77", cuMemPoolSetAccess, pool, &desc, 1);
	desc.flags = 3;
	desc.location.id = 1000;
	ASK("access for no device", cuMemPoolSetAccess, pool, &desc, 1);
	desc.location.id = 0;
	desc.location.type = CU_MEM_LOCATION_TYPE_HOST;
	ASK("access for the host", cuMemPoolSetAccess, pool, &desc, 1);
	ASK("get access", cuMemPoolGetAccess, &flags, pool, &where);
	SAY("access", flags);
	ASK("get access, no place", cuMemPoolGetAccess, NULL, pool, &where);
	ASK("get access, no pool", cuMemPoolGetAccess, &flags, NULL, &where);
	ASK("get access, no location", cuMemPoolGetAccess, &flags, pool, NULL);
	where.id = 1000;
	ASK("get access, no device", cuMemPoolGetAccess, &flags, pool, &where);
	where.id = 0;
	where.type = 0;
	ASK("get access, location 0", cuMemPoolGetAccess, &flags, pool, &where);
	where.type = CU_MEM_LOCATION_TYPE_DEVICE;
	ASK("default by location, no place", cuMemGetDefaultMemPool, NULL, &where,
	    CU_MEM_ALLOCATION_TYPE_PINNED);
	ASK("default by location, type 0", cuMemGetDefaultMemPool, &other, &where,
	    0);
	ASK("default by location", cuMemGetDefaultMemPool, &other, &where,
	    CU_MEM_ALLOCATION_TYPE_PINNED);
	SAY("the same", other == pool);
	ASK("current by location", cuMemGetMemPool, &other, &where,
	    CU_MEM_ALLOCATION_TYPE_PINNED);
	SAY("the same", other == pool);
	ASK("set current by location", cuMemSetMemPool, &where,
	    CU_MEM_ALLOCATION_TYPE_PINNED, pool);
	ASK("alloc, no place", cuMemAllocAsync, NULL, 10, NULL);
	ASK("alloc 0", cuMemAllocAsync, &p, 0, NULL);
	ASK("alloc everything", cuMemAllocAsync, &p, (size_t)1 << 50, NULL);
	ASK("alloc from no pool", cuMemAllocFromPoolAsync, &p, 10, NULL, NULL);
	ASK("alloc from pool, no place", cuMemAllocFromPoolAsync, NULL, 10, pool,
	    NULL);
	ASK("free 0", cuMemFreeAsync, 0, NULL);
	ASK("free host memory", cuMemFreeAsync, (uintptr_t)plain, NULL);
	ASK("alloc", cuMemAllocAsync, &p, 1000, NULL);
	ASK("free inside", cuMemFreeAsync, p + 512, NULL);
	ASK("free", cuMemFreeAsync, p, NULL);
	ASK("synchronize", cuStreamSynchronize, NULL);
	ASK("free again", cuMemFreeAsync, p, NULL);
	ASK("plain alloc", cuMemAlloc_v2, &q, 1000);
	ASK("free it in order", cuMemFreeAsync, q, NULL);
	ASK("synchronize", cuStreamSynchronize, NULL);
	ASK("free it again", cuMemFree_v2, q);
	ASK("export, no place", cuMemPoolExportToShareableHandle, NULL, pool,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("export the default", cuMemPoolExportToShareableHandle, &fd, pool,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("import no descriptor", cuMemPoolImportFromShareableHandle, &other,
	    (void *)(intptr_t)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("import, no place", cuMemPoolImportFromShareableHandle, NULL,
	    (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("export pointer, no place", cuMemPoolExportPointer, NULL, p);
	ASK("export host memory", cuMemPoolExportPointer, &data,
	    (uintptr_t)plain);
	ASK("alloc", cuMemAllocAsync, &p, 1000, NULL);
	ASK("export of the default pool", cuMemPoolExportPointer, &data, p);
	ASK("free", cuMemFreeAsync, p, NULL);
}

void ask_pools(void)
{
	static const CUmemPool_attribute attrs[] = {
		CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
		CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
		CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
		CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
		CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
		CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
		CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
		CU_MEMPOOL_ATTR_USED_MEM_HIGH,
	};
	CUmemoryPool pool = NULL, other = NULL, got = NULL;
	unsigned char in[1000], out[1000];
	CUdeviceptr p = 0, q = 0, base = 0;
	uint64_t v = ~0ull;
	unsigned int type = 0;
	size_t size = 0;
	CUcontext c = (CUcontext)8;
	int n = 77;
	CUipcMemHandle mh;
	int fd = -1;

	ASK("create", cuMemPoolCreate, &pool, &props);
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		SAY("attribute of a new pool", value_of(pool, attrs[i]));
	n = 0;
	ASK("set no reuse by chance", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &n);
	SAY("reuse by chance",
	    value_of(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC));
	n = 5;
	ASK("set reuse by chance to 5", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &n);
	SAY("reuse by chance",
	    value_of(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC));
	ASK("threshold", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
	SAY("threshold is kept",
	    value_of(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == ~0ull);
	ASK("alloc", cuMemAllocFromPoolAsync, &p, 1000, pool, NULL);
	SAY("address modulo 512", p % 512);
	SAY("used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	SAY("reserved modulo 2 MiB",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) % (2 * MiB));
	ASK("alloc of 3 MiB and one", cuMemAllocFromPoolAsync, &q, 3 * MiB + 1,
	    pool, NULL);
	SAY("used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	SAY("reserved at least as much",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >=
	    value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	memset(in, 0x42, sizeof(in));
	memset(out, 0, sizeof(out));
	ASK("copy in", cuMemcpyHtoD_v2, p, in, sizeof(in));
	ASK("copy out", cuMemcpyDtoH_v2, out, p, sizeof(out));
	SAY("copied", !memcmp(in, out, sizeof(in)));
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p + 999);
	SAY("range starts there", base == p);
	SAY("range size", size);
	ASK("type", cuPointerGetAttribute, &type,
	    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	SAY("type", type);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT,
	    p);
	SAY("context is none", c == NULL);
	ASK("device", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("device", n);
	ASK("pool of a pointer", cuPointerGetAttribute, &got,
	    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
	SAY("it is the pool", got == pool);
	ASK("start", cuPointerGetAttribute, &base,
	    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9);
	SAY("start", base == p);
	ASK("size", cuPointerGetAttribute, &size,
	    CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	SAY("size", size);
	ASK("old IPC", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("old IPC", n);
	ASK("managed", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	SAY("managed", n);
	ASK("mapped", cuPointerGetAttribute, &n, CU_POINTER_ATTRIBUTE_MAPPED, p);
	SAY("mapped", n);
	ASK("IPC handle", cuIpcGetMemHandle, &mh, p);
	ASK("alloc of 4 MiB", cuMemAllocFromPoolAsync, &base, 4 * MiB, pool,
	    NULL);
	n = 77;
	ASK("GPUDirect RDMA", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, base);
	SAY("GPUDirect RDMA", n);
	ASK("dma-buf of 2 MiB", cuMemGetHandleForAddressRange, &fd, base,
	    2 * MiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	ASK("free", cuMemFree_v2, base);
	ASK("destroy with memory in use", cuMemPoolDestroy, pool);
	ASK("alloc from the destroyed", cuMemAllocFromPoolAsync, &base, 10, pool,
	    NULL);
	ASK("copy out", cuMemcpyDtoH_v2, out, p, sizeof(out));
	ASK("plain free", cuMemFree_v2, p);
	ASK("free in order", cuMemFreeAsync, q, NULL);
	ASK("synchronize", cuStreamSynchronize, NULL);
	/* The current pool */
	ASK("create", cuMemPoolCreate, &pool, &props);
	ASK("default", cuDeviceGetDefaultMemPool, &other, 0);
	ASK("current", cuDeviceGetMemPool, &got, 0);
	SAY("is the default", got == other);
	ASK("make it current", cuDeviceSetMemPool, 0, pool);
	ASK("current", cuDeviceGetMemPool, &got, 0);
	SAY("is ours", got == pool);
	ASK("alloc", cuMemAllocAsync, &p, 4096, NULL);
	got = NULL;
	ASK("pool of a pointer", cuPointerGetAttribute, &got,
	    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
	SAY("it is ours", got == pool);
	ASK("free", cuMemFreeAsync, p, NULL);
	ASK("destroy the current pool", cuMemPoolDestroy, pool);
	ASK("current", cuDeviceGetMemPool, &got, 0);
	SAY("is the default", got == other);
	ASK("synchronize the context", cuCtxSynchronize);
}

static uint64_t reserved(CUmemoryPool pool)
{
	return value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

/* Four pieces of 32 MiB that are free, and all kept */
static uint64_t free_pieces(CUmemoryPool pool, CUstream s)
{
	CUdeviceptr p[4];
	uint64_t v = ~0ull;

	CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
	for (int i = 0; i < 4; i++)
		CALL(cuMemAllocFromPoolAsync, &p[i], 32 * MiB, pool, s);
	for (int i = 0; i < 4; i++)
		CALL(cuMemFreeAsync, p[i], s);
	CALL(cuStreamSynchronize, s);
	return reserved(pool);
}

/* How much of what is free stays; in how large pieces it goes is each driver's own */
static void ask_pool_kept(CUmemoryPool pool, CUstream s)
{
	uint64_t keep = 80 * MiB, all;

	CALL(cuMemPoolTrimTo, pool, 0);
	all = free_pieces(pool, s);
	SAY("all is reserved", all >= 128 * MiB);
	ASK("trim to a byte less", cuMemPoolTrimTo, pool, all - 1);
	SAY("no less is", reserved(pool) == all);
	ASK("trim to 80 MiB", cuMemPoolTrimTo, pool, keep);
	SAY("no less is", reserved(pool) >= keep);
	SAY("but less than before", reserved(pool) < all);
	all = free_pieces(pool, s);
	SAY("all is reserved", all >= 128 * MiB);
	ASK("threshold of 80 MiB", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
	ASK("synchronize", cuStreamSynchronize, s);
	SAY("no more is", reserved(pool) <= keep);
	SAY("but not nothing", reserved(pool) > 0);
	ASK("trim", cuMemPoolTrimTo, pool, 0);
}

void ask_pool_order(void)
{
	static unsigned char out[4096];
	CUmemoryPool pool = NULL;
	CUdeviceptr p = 0, q = 0;
	uint64_t v = ~0ull, zero = 0;
	CUstream s = NULL, t = NULL;
	unsigned int type = 0;
	bool all = true;

	ASK("create", cuMemPoolCreate, &pool, &props);
	ASK("stream", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	ASK("stream", cuStreamCreate, &t, CU_STREAM_NON_BLOCKING);
	ASK("alloc in a stream", cuMemAllocFromPoolAsync, &p, 4096, pool, s);
	ASK("fill", cuMemsetD8Async, p, 0x11, 4096, s);
	ASK("copy", cuMemcpyDtoHAsync_v2, out, p, 4096, s);
	ASK("free", cuMemFreeAsync, p, s);
	ASK("synchronize", cuStreamSynchronize, s);
	for (size_t i = 0; i < sizeof(out); i++)
		all = all && out[i] == 0x11;
	SAY("copied before it was freed", all);
	SAY("nothing reserved, threshold 0",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
	SAY("nothing used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
	SAY("highest used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
	ASK("reset the highest", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
	SAY("highest used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH));
	ASK("threshold", cuMemPoolSetAttribute, pool,
	    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);
	ASK("alloc", cuMemAllocFromPoolAsync, &p, 4096, pool, s);
	ASK("free", cuMemFreeAsync, p, s);
	ASK("alloc again in the same stream", cuMemAllocFromPoolAsync, &q, 4096,
	    pool, s);
	SAY("same place", p == q);
	ASK("free", cuMemFreeAsync, q, s);
	ASK("synchronize", cuStreamSynchronize, s);
	SAY("something stays reserved",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > 0);
	ASK("alloc in another stream", cuMemAllocFromPoolAsync, &q, 4096, pool,
	    t);
	SAY("same place", p == q);
	ASK("trim while in use", cuMemPoolTrimTo, pool, 0);
	SAY("something stays reserved",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > 0);
	ASK("free", cuMemFreeAsync, q, t);
	ASK("synchronize", cuStreamSynchronize, t);
	ASK("trim", cuMemPoolTrimTo, pool, 0);
	SAY("nothing reserved",
	    value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
	ASK("attribute of what was freed", cuPointerGetAttribute, &type,
	    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q);
	ASK("alloc in a wrong stream", cuMemAllocFromPoolAsync, &q, 4096, pool,
	    CU_STREAM_PER_THREAD);
	ASK("plain free", cuMemFree_v2, q);
	ask_pool_kept(pool, s);
	ASK("destroy", cuStreamDestroy_v2, s);
	ASK("destroy", cuStreamDestroy_v2, t);
	ASK("destroy", cuMemPoolDestroy, pool);
}

void ask_pool_export(void)
{
	CUmemPoolProps shared = props;
	CUmemoryPool pool = NULL, other = NULL, plain = NULL;
	CUmemPoolPtrExportData data;
	CUdeviceptr p = 0, q = 0;
	int fd = -1, n = 0;

	ASK("handle types", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0);
	SAY("descriptors among them",
	    !!(n & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	shared.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	ASK("create, not for others", cuMemPoolCreate, &plain, &props);
	ASK("create, for others", cuMemPoolCreate, &pool, &shared);
	ASK("export what is not for others", cuMemPoolExportToShareableHandle,
	    &fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("export, flags 1", cuMemPoolExportToShareableHandle, &fd, pool,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
	ASK("export, type 0", cuMemPoolExportToShareableHandle, &fd, pool, 0, 0);
	ASK("export", cuMemPoolExportToShareableHandle, &fd, pool,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	SAY("a descriptor", fd >= 0);
	ASK("import, flags 1", cuMemPoolImportFromShareableHandle, &other,
	    (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
	ASK("import", cuMemPoolImportFromShareableHandle, &other,
	    (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	SAY("another pool", other != pool);
	ASK("alloc from the imported", cuMemAllocFromPoolAsync, &q, 100, other,
	    NULL);
	ASK("make the imported current", cuDeviceSetMemPool, 0, other);
	ASK("export the imported", cuMemPoolExportToShareableHandle, &n, other,
	    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	ASK("alloc", cuMemAllocFromPoolAsync, &p, 5000, pool, NULL);
	ASK("export the pointer", cuMemPoolExportPointer, &data, p);
	ASK("export inside", cuMemPoolExportPointer, &data, p + 512);
	ASK("import, no place", cuMemPoolImportPointer, NULL, other, &data);
	ASK("import, no data", cuMemPoolImportPointer, &q, other, NULL);
	ASK("import, no pool", cuMemPoolImportPointer, &q, NULL, &data);
	ASK("import to a pool that is not imported", cuMemPoolImportPointer, &q,
	    pool, &data);
	close(fd);
	ASK("free", cuMemFreeAsync, p, NULL);
	ASK("synchronize", cuStreamSynchronize, NULL);
	ASK("destroy", cuMemPoolDestroy, other);
	ASK("destroy", cuMemPoolDestroy, pool);
	ASK("destroy", cuMemPoolDestroy, plain);
}
