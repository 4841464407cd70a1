// SPDX-License-Identifier: MIT
/* Questions on managed memory, batches of copies, fills of two dimensions */
#include <sys/mman.h>

#include "conform.h"

#define RANGE(what, attr, p, n) do {					\
	int value_ = 77;						\
	ASK(what, cuMemRangeGetAttribute, &value_, sizeof(value_), attr, \
	    p, n);							\
	SAY(what, value_);						\
} while (0)

void ask_managed(void)
{
	CUmemLocation host = { CU_MEM_LOCATION_TYPE_HOST, 0 };
	CUmemLocation gpu = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	CUmemLocation none = { CU_MEM_LOCATION_TYPE_DEVICE, 1000 };
	CUmemLocation rubbish = { 77, 0 };
	int mostly = 77, preferred = 77, by[3] = { 77, 77, 77 };
	void *data[] = { &mostly, &preferred };
	size_t sizes[] = { sizeof(mostly), sizeof(preferred) };
	CUmem_range_attribute attrs[] = {
		CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
		CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
	};
	static char plain[65536] __attribute__((aligned(4096)));
	CUdeviceptr p = 0, q = 0, base = 0;
	CUmemoryPool pool = (CUmemoryPool)8;
	unsigned char byte = 0x42;
	CUipcMemHandle mh;
	unsigned int type = 0;
	CUstream s = NULL;
	size_t size = 0;
	void *h = NULL;
	int n = 77;

	ASK("managed supported", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0);
	SAY("managed supported", n);
	ASK("concurrent access", cuDeviceGetAttribute, &n,
	    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0);
	SAY("concurrent access", n);
	ASK("no place", cuMemAllocManaged, NULL, 10, 1);
	ASK("nothing", cuMemAllocManaged, &p, 0, 1);
	ASK("flags 0", cuMemAllocManaged, &p, 10, 0);
	ASK("flags 3", cuMemAllocManaged, &p, 10, 3);
	ASK("flags single", cuMemAllocManaged, &p, 10, CU_MEM_ATTACH_SINGLE);
	ASK("everything", cuMemAllocManaged, &p, (size_t)1 << 60, 1);
	ASK("alloc", cuMemAllocManaged, &p, 256 * 1024, CU_MEM_ATTACH_GLOBAL);
	ASK("alloc", cuMemAllocManaged, &q, 1000, CU_MEM_ATTACH_HOST);
	ASK("type", cuPointerGetAttribute, &type,
	    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	SAY("type", type);
	ASK("managed", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_MANAGED, p);
	SAY("managed", n);
	ASK("host pointer", cuPointerGetAttribute, &h,
	    CU_POINTER_ATTRIBUTE_HOST_POINTER, p);
	SAY("host pointer is the same", h == (void *)(uintptr_t)p);
	ASK("device pointer", cuPointerGetAttribute, &base,
	    CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p);
	SAY("device pointer is the same", base == p);
	ASK("device", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("device", n);
	ASK("old IPC", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("old IPC", n);
	ASK("pool", cuPointerGetAttribute, &pool,
	    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
	SAY("pool is none", pool == NULL);
	ASK("mapped", cuPointerGetAttribute, &n, CU_POINTER_ATTRIBUTE_MAPPED, p);
	SAY("mapped", n);
	n = 77;
	ASK("GPUDirect RDMA", cuPointerGetAttribute, &n,
	    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p);
	SAY("GPUDirect RDMA", n);
	ASK("dma-buf", cuMemGetHandleForAddressRange, &n, p, 65536,
	    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p + 100);
	SAY("range starts there", base == p);
	SAY("range size", size);
	ASK("IPC handle", cuIpcGetMemHandle, &mh, p);
	ASK("set sync memops", cuPointerSetAttribute, &(int){ 1 },
	    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
	*(volatile unsigned char *)(uintptr_t)q = 0x41;
	SAY("written by the CPU", *(volatile unsigned char *)(uintptr_t)q);
	ASK("fill", cuMemsetD8_v2, p, 0x17, 1000);
	SAY("read by the CPU", *(volatile unsigned char *)(uintptr_t)p);
	ASK("copy in", cuMemcpyHtoD_v2, p, &byte, 1);
	SAY("read by the CPU", *(volatile unsigned char *)(uintptr_t)p);
	byte = 0;
	ASK("copy out as host memory", cuMemcpyHtoD_v2, p + 1,
	    (void *)(uintptr_t)p, 1);
	SAY("read by the CPU", *(volatile unsigned char *)(uintptr_t)(p + 1));

	RANGE("mostly read", CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096);
	RANGE("preferred", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4096);
	RANGE("prefetched", CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p,
	      4096);
	RANGE("preferred type", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p,
	      4096);
	RANGE("prefetched type",
	      CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, p, 4096);
	ASK("advise: mostly read", cuMemAdvise, p, 4096,
	    CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	RANGE("mostly read", CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096);
	ASK("advise: preferred", cuMemAdvise, p, 256 * 1024,
	    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU);
	RANGE("preferred", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4096);
	RANGE("preferred type", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, p,
	      4096);
	ASK("advise: preferred, by location", cuMemAdvise_v2, p, 256 * 1024,
	    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu);
	RANGE("preferred", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 4096);
	RANGE("preferred id", CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, p,
	      4096);
	ASK("advise: accessed by", cuMemAdvise, p, 256 * 1024,
	    CU_MEM_ADVISE_SET_ACCESSED_BY, 0);
	ASK("accessed by", cuMemRangeGetAttribute, by, sizeof(by),
	    CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096);
	SAY("accessed by, first", by[0]);
	SAY("accessed by, second", by[1]);
	ASK("advise: accessed by the host", cuMemAdvise_v2, p, 256 * 1024,
	    CU_MEM_ADVISE_SET_ACCESSED_BY, host);
	ASK("accessed by", cuMemRangeGetAttribute, by, sizeof(by),
	    CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096);
	SAY("accessed by, one of two is the host", by[0] == -1 || by[1] == -1);
	ASK("advise: undo all", cuMemAdvise, p, 256 * 1024,
	    CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0);
	ASK("advise: undo all", cuMemAdvise, p, 256 * 1024,
	    CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 0);
	ASK("advise: undo all", cuMemAdvise, p, 256 * 1024,
	    CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0);
	ASK("both", cuMemRangeGetAttributes, data, sizes, attrs, 2, p, 4096);
	SAY("mostly read", mostly);
	SAY("preferred", preferred);
	ASK("both, none asked", cuMemRangeGetAttributes, data, sizes, attrs, 0, p,
	    4096);
	ASK("both, no places", cuMemRangeGetAttributes, NULL, sizes, attrs, 2, p,
	    4096);
	ASK("advise 0", cuMemAdvise, p, 4096, 0, 0);
	ASK("advise 77", cuMemAdvise, p, 4096, 77, 0);
	ASK("advise, no device", cuMemAdvise, p, 4096,
	    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 1000);
	ASK("advise, rubbish location", cuMemAdvise_v2, p, 4096,
	    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, rubbish);
	ASK("advise, nothing", cuMemAdvise, p, 0,
	    CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	ASK("advise, too long", cuMemAdvise, p, 64 * MiB,
	    CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	ASK("attribute 0", cuMemRangeGetAttribute, &n, sizeof(n), 0, p, 4096);
	ASK("attribute 77", cuMemRangeGetAttribute, &n, sizeof(n), 77, p, 4096);
	ASK("attribute, no place", cuMemRangeGetAttribute, NULL, sizeof(n),
	    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096);
	ASK("attribute, 3 bytes", cuMemRangeGetAttribute, &n, 3,
	    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096);
	ASK("accessed by, 6 bytes", cuMemRangeGetAttribute, by, 6,
	    CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 4096);
	ASK("attribute of nothing", cuMemRangeGetAttribute, &n, sizeof(n),
	    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 0);
	ASK("stream", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	ASK("prefetch", cuMemPrefetchAsync, p, 4096, 0, s);
	ASK("prefetch to the host", cuMemPrefetchAsync, p, 4096, CU_DEVICE_CPU,
	    s);
	ASK("synchronize", cuStreamSynchronize, s);
	RANGE("prefetched", CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p,
	      4096);
	ASK("prefetch by location", cuMemPrefetchAsync_v2, p, 256 * 1024, gpu, 0,
	    s);
	ASK("synchronize", cuStreamSynchronize, s);
	RANGE("prefetched", CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p,
	      4096);
	ASK("prefetch, no device", cuMemPrefetchAsync, p, 4096, 1000, s);
	ASK("prefetch, no such location", cuMemPrefetchAsync_v2, p, 4096, none, 0,
	    s);
	ASK("prefetch, flags 1", cuMemPrefetchAsync_v2, p, 4096, gpu, 1, s);
	ASK("prefetch nothing", cuMemPrefetchAsync, p, 0, 0, s);
	ASK("prefetch too much", cuMemPrefetchAsync, p, 64 * MiB, 0, s);
	ASK("attach", cuStreamAttachMemAsync, s, p, 0, CU_MEM_ATTACH_GLOBAL);
	ASK("attach to the one", cuStreamAttachMemAsync, s, q, 0,
	    CU_MEM_ATTACH_SINGLE);
	ASK("attach all of it", cuStreamAttachMemAsync, s, q, 1000,
	    CU_MEM_ATTACH_HOST);
	ASK("attach part", cuStreamAttachMemAsync, s, p, 4096,
	    CU_MEM_ATTACH_GLOBAL);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("free in order", cuMemFreeAsync, q, s);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("free", cuMemFree_v2, p);
	ASK("free again", cuMemFree_v2, p);
	/* Memory of other kinds */
	ASK("plain device memory", cuMemAlloc_v2, &p, 65536);
	ASK("attribute", cuMemRangeGetAttribute, &n, sizeof(n),
	    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 4096);
	ASK("advise", cuMemAdvise, p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	ASK("prefetch", cuMemPrefetchAsync, p, 4096, 0, s);
	ASK("attach", cuStreamAttachMemAsync, s, p, 0, CU_MEM_ATTACH_GLOBAL);
	ASK("attribute of address 0", cuMemRangeGetAttribute, &n, sizeof(n),
	    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 4096);
	ASK("free", cuMemFree_v2, p);
	(void)plain;
	ASK("destroy", cuStreamDestroy_v2, s);
}

/* What is said about parts of it; each attribute of the same eight parts */
static void ask_parts(CUdeviceptr p, CUmem_range_attribute attr)
{
	RANGE("page 0", attr, p, 4096);
	RANGE("page 1", attr, p + 4096, 4096);
	RANGE("page 2", attr, p + 8192, 4096);
	RANGE("all", attr, p, 256 * 1024);
	RANGE("the end of page 0", attr, p + 4095, 1);
	RANGE("a byte of page 1", attr, p + 4096, 1);
	RANGE("of pages 1 and 2", attr, p + 8191, 2);
	RANGE("of pages 0 and 1", attr, p + 4000, 200);
}

void ask_managed_pages(void)
{
	CUdeviceptr p = 0;

	ASK("alloc", cuMemAllocManaged, &p, 256 * 1024, CU_MEM_ATTACH_GLOBAL);
	ASK("page 1 is mostly read", cuMemAdvise, p + 4096, 4096,
	    CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	ask_parts(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
	ASK("page 1 is not", cuMemAdvise, p + 4096, 4096,
	    CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0);
	ask_parts(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
	ASK("8 bytes of page 1 are", cuMemAdvise, p + 4196, 8,
	    CU_MEM_ADVISE_SET_READ_MOSTLY, 0);
	ask_parts(p, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY);
	ASK("pages 1 and 2 are preferred", cuMemAdvise, p + 8000, 400,
	    CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 0);
	ask_parts(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
	ASK("prefetch 8 bytes of page 1", cuMemPrefetchAsync, p + 4196, 8, 0,
	    NULL);
	ASK("synchronize", cuCtxSynchronize);
	ask_parts(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
	ASK("free", cuMemFree_v2, p);
}

void ask_batches(void)
{
	CUmemcpyAttributes attrs[2] = {
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
		{ .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
	};
	static unsigned char in[3][4096], out[3][4096];
	CUdeviceptr p = 0, dst[3], src[3];
	size_t sizes[3] = { 4096, 100, 7 }, starts[2] = { 0, 2 }, bad = 77;
	CUstream s = NULL;

	ASK("alloc", cuMemAlloc_v2, &p, 3 * 4096);
	ASK("stream", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	for (size_t i = 0; i < 3; i++) {
		memset(in[i], 0x31 + (int)i, sizeof(in[i]));
		dst[i] = p + i * 4096;
		src[i] = (uintptr_t)in[i];
	}
	ASK("batch", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts, 2,
	    s);
	for (size_t i = 0; i < 3; i++) {
		src[i] = p + i * 4096;
		dst[i] = (uintptr_t)out[i];
	}
	ASK("batch back", cuMemcpyBatchAsync, dst, src, sizes, 3, attrs, starts,
	    1, &bad, s);
	ASK("synchronize", cuStreamSynchronize, s);
	for (size_t i = 0; i < 3; i++)
		SAY("copied", !memcmp(in[i], out[i], sizes[i]) &&
			      (sizes[i] == 4096 || !out[i][sizes[i]]));
	ASK("default stream", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 1, NULL);
	ASK("legacy stream", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 1, CU_STREAM_LEGACY);
	ASK("none", cuMemcpyBatchAsync_v2, dst, src, sizes, 0, attrs, starts, 1,
	    s);
	ASK("no targets", cuMemcpyBatchAsync_v2, NULL, src, sizes, 3, attrs,
	    starts, 1, s);
	ASK("no sources", cuMemcpyBatchAsync_v2, dst, NULL, sizes, 3, attrs,
	    starts, 1, s);
	ASK("no sizes", cuMemcpyBatchAsync_v2, dst, src, NULL, 3, attrs, starts,
	    1, s);
	ASK("no attributes", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, NULL,
	    starts, 1, s);
	ASK("no starts", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, NULL,
	    1, s);
	ASK("0 attributes", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 0, s);
	ASK("4 attributes", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 4, s);
	starts[0] = 1;
	ASK("first start 1", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 1, s);
	starts[0] = 0;
	starts[1] = 0;
	ASK("starts not rising", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs,
	    starts, 2, s);
	starts[1] = 3;
	ASK("start past the end", cuMemcpyBatchAsync_v2, dst, src, sizes, 3,
	    attrs, starts, 2, s);
	starts[1] = 2;
	attrs[0].srcAccessOrder = 0;
	ASK("order 0", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts,
	    1, s);
	attrs[0].srcAccessOrder = 4;
	ASK("order 4", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts,
	    1, s);
	attrs[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
	ASK("any order", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts,
	    1, s);
	attrs[0].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
	ASK("flags 1", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts,
	    1, s);
	attrs[0].flags = 0;
	sizes[1] = 0;
	ASK("size 0", cuMemcpyBatchAsync_v2, dst, src, sizes, 3, attrs, starts,
	    1, s);
	sizes[1] = 1 << 20;
	ASK("second too long", cuMemcpyBatchAsync, dst, src, sizes, 3, attrs,
	    starts, 1, &bad, s);
	sizes[1] = 100;
	src[2] = 0;
	bad = 77;
	ASK("third from 0", cuMemcpyBatchAsync, dst, src, sizes, 3, attrs,
	    starts, 1, &bad, s);
	ASK("synchronize", cuStreamSynchronize, s);
	ASK("destroy", cuStreamDestroy_v2, s);
	ASK("free", cuMemFree_v2, p);
}

void ask_fills(void)
{
	static unsigned char out[64 * 8];
	unsigned int word = 0;
	CUdeviceptr p = 0;
	bool right = true;

	ASK("alloc", cuMemAlloc_v2, &p, sizeof(out));
	ASK("clear", cuMemsetD8_v2, p, 0, sizeof(out));
	ASK("bytes", cuMemsetD2D8_v2, p, 64, 0x11, 10, 8);
	ASK("copy", cuMemcpyDtoH_v2, out, p, sizeof(out));
	for (size_t i = 0; i < sizeof(out); i++)
		right = right && out[i] == (i % 64 < 10 ? 0x11 : 0);
	SAY("the columns are filled, no others", right);
	ASK("words", cuMemsetD2D32_v2, p + 128, 64, 0x22334455, 2, 2);
	ASK("copy", cuMemcpyDtoH_v2, &word, p + 128 + 64 + 4, 4);
	SAY("the last one", word);
	ASK("half words", cuMemsetD2D16_v2, p, 64, 0x6677, 3, 1);
	ASK("wait", cuMemsetD2D32Async, p, 64, 1, 2, 2, NULL);
	ASK("synchronize", cuCtxSynchronize);
	ASK("not aligned", cuMemsetD2D32_v2, p + 2, 64, 1, 2, 2);
	ASK("pitch not aligned", cuMemsetD2D32_v2, p, 62, 1, 2, 2);
	ASK("pitch below the width", cuMemsetD2D8_v2, p, 8, 1, 10, 2);
	ASK("one row, pitch below the width", cuMemsetD2D8_v2, p, 8, 1, 10, 1);
	ASK("no rows", cuMemsetD2D8_v2, p, 64, 1, 10, 0);
	ASK("no columns", cuMemsetD2D8_v2, p, 64, 1, 0, 10);
	ASK("too many rows", cuMemsetD2D8_v2, p, 1 << 20, 1, 10, 100);
	ASK("of address 0", cuMemsetD2D8_v2, 0, 64, 1, 10, 2);
	ASK("free", cuMemFree_v2, p);
}

void ask_io_memory(void)
{
	static unsigned char plain[8192] __attribute__((aligned(4096)));
	unsigned int flags = 77;
	CUdeviceptr p = 0;
	void *gone;

	gone = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(gone, 8192);
	ASK("plain memory as IO memory", cuMemHostRegister_v2, plain,
	    sizeof(plain), CU_MEMHOSTREGISTER_IOMEMORY);
	ASK("nothing there", cuMemHostRegister_v2, gone, 8192,
	    CU_MEMHOSTREGISTER_IOMEMORY);
	ASK("not mapped for devices", cuMemHostRegister_v2, plain,
	    sizeof(plain), CU_MEMHOSTREGISTER_PORTABLE);
	ASK("its flags", cuMemHostGetFlags, &flags, plain);
	SAY("its flags", flags);
	ASK("device pointer", cuMemHostGetDevicePointer_v2, &p, plain, 0);
	ASK("unregister", cuMemHostUnregister, plain);
	ASK("read only", cuMemHostRegister_v2, plain, sizeof(plain),
	    CU_MEMHOSTREGISTER_READ_ONLY);
	ASK("unregister", cuMemHostUnregister, plain);
}
