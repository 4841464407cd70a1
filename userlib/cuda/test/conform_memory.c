// SPDX-License-Identifier: MIT
/* Questions on memory by hand and on other processes */
#include <unistd.h>

#include "conform.h"

CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	.allocFlags = { .gpuDirectRDMACapable = 1 },
};

void ask_vmm_wrong(void)
{
	CUmemAllocationProp bad = prop;
	CUmemGenericAllocationHandle h = 0;
	CUdeviceptr p = 0;
	size_t g = 0;

	ASK("granularity", cuMemGetAllocationGranularity, &g, &prop, 0);
	SAY("granularity", g);
	ASK("recommended", cuMemGetAllocationGranularity, &g, &prop, 1);
	SAY("recommended", g);
	ASK("granularity, option 2", cuMemGetAllocationGranularity, &g, &prop, 2);
	ASK("granularity of nothing", cuMemGetAllocationGranularity, &g, NULL, 0);
	ASK("granularity, no place", cuMemGetAllocationGranularity, NULL, &prop,
	    0);
	bad.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	ASK("granularity, of the host's node", cuMemGetAllocationGranularity, &g,
	    &bad, 0);
	SAY("granularity, of the host's node", g);
	bad = prop;
	bad.location.id = 1000;
	ASK("granularity, no device", cuMemGetAllocationGranularity, &g, &bad, 0);
	ASK("create, no device", cuMemCreate, &h, 2 * MiB, &bad, 0);
	bad = prop;
	bad.type = 0;
	ASK("create, type 0", cuMemCreate, &h, 2 * MiB, &bad, 0);
	bad = prop;
	bad.location.type = 0;
	ASK("create, nowhere", cuMemCreate, &h, 2 * MiB, &bad, 0);
	bad = prop;
	bad.requestedHandleTypes = 64;
	ASK("create, handle type 64", cuMemCreate, &h, 2 * MiB, &bad, 0);
	ASK("create, no place", cuMemCreate, NULL, 2 * MiB, &prop, 0);
	ASK("create, no properties", cuMemCreate, &h, 2 * MiB, NULL, 0);
	ASK("create, 0 bytes", cuMemCreate, &h, 0, &prop, 0);
	ASK("create, 4096 bytes", cuMemCreate, &h, 4096, &prop, 0);
	ASK("create, flags 1", cuMemCreate, &h, 2 * MiB, &prop, 1);
	ASK("create, too much", cuMemCreate, &h, (size_t)1 << 45, &prop, 0);
	ASK("reserve, no place", cuMemAddressReserve, NULL, 2 * MiB, 0, 0, 0);
	ASK("reserve, 0 bytes", cuMemAddressReserve, &p, 0, 0, 0, 0);
	ASK("reserve, 4096 bytes", cuMemAddressReserve, &p, 4096, 0, 0, 0);
	ASK("reserve, flags 2", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 2);
	ASK("reserve, alignment 3", cuMemAddressReserve, &p, 2 * MiB, 3, 0, 0);
	ASK("free address 0", cuMemAddressFree, 0, 2 * MiB);
	ASK("unmap 0", cuMemUnmap, 0, 2 * MiB);
	ASK("release 0", cuMemRelease, 0);
	ASK("map 0", cuMemMap, 0, 2 * MiB, 0, 0, 0);
	ASK("import, no descriptor", cuMemImportFromShareableHandle, &h,
	    (void *)(intptr_t)-1, 1);
	ASK("import, wrong descriptor", cuMemImportFromShareableHandle, &h,
	    (void *)(intptr_t)0, 1);
	ASK("retain host memory", cuMemRetainAllocationHandle, &h, &prop);
}

void ask_vmm(void)
{
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h = 0, again = 0;
	CUmemAllocationProp got = { 0 }, plain = prop;
	unsigned long long flags = 77;
	unsigned char in[64], out[64];
	CUdeviceptr p = 0, base = 0;
	CUcontext c = (CUcontext)8;
	size_t size = 0;
	int fd = -1, v = 77;

	memset(in, 9, sizeof(in));
	ASK("create", cuMemCreate, &h, 4 * MiB, &prop, 0);
	ASK("properties", cuMemGetAllocationPropertiesFromHandle, &got, h);
	SAY("type", got.type);
	SAY("location", got.location.type);
	SAY("handle types", got.requestedHandleTypes);
	ASK("properties, no place", cuMemGetAllocationPropertiesFromHandle, NULL,
	    h);
	ASK("reserve", cuMemAddressReserve, &p, 8 * MiB, 0, 0, 0);
	SAY("address modulo 2 MiB", p % (2 * MiB));
	ASK("access, not mapped", cuMemSetAccess, p, 4 * MiB, &access, 1);
	ASK("map, flags 1", cuMemMap, p, 4 * MiB, 0, h, 1);
	ASK("map, offset 2 MiB", cuMemMap, p, 2 * MiB, 2 * MiB, h, 0);
	ASK("map, too much", cuMemMap, p, 8 * MiB, 0, h, 0);
	ASK("map, 4096 bytes", cuMemMap, p, 4096, 0, h, 0);
	ASK("map, 0 bytes", cuMemMap, p, 0, 0, h, 0);
	ASK("map, not reserved", cuMemMap, p + 8 * MiB, 4 * MiB, 0, h, 0);
	ASK("map", cuMemMap, p, 4 * MiB, 0, h, 0);
	ASK("map again", cuMemMap, p, 4 * MiB, 0, h, 0);
	ASK("range, no access", cuMemGetAddressRange_v2, &base, &size, p);
	ASK("access of mapped memory", cuMemGetAccess, &flags, &access.location,
	    p);
	SAY("access of mapped memory", flags);
	ASK("set access, nothing", cuMemSetAccess, p, 4 * MiB, NULL, 1);
	ASK("set access, none of them", cuMemSetAccess, p, 4 * MiB, &access, 0);
	ASK("set access, half", cuMemSetAccess, p, 2 * MiB, &access, 1);
	ASK("set access, too much", cuMemSetAccess, p, 8 * MiB, &access, 1);
	access.flags = 2;
	ASK("set access, flags 2", cuMemSetAccess, p, 4 * MiB, &access, 1);
	access.flags = 3;
	access.location.id = 1000;
	ASK("set access, no device", cuMemSetAccess, p, 4 * MiB, &access, 1);
	access.location.id = 0;
	ASK("set access", cuMemSetAccess, p, 4 * MiB, &access, 1);
	ASK("get access", cuMemGetAccess, &flags, &access.location, p);
	SAY("get access", flags);
	ASK("get access, no place", cuMemGetAccess, NULL, &access.location, p);
	ASK("get access, not mapped", cuMemGetAccess, &flags, &access.location,
	    p + 4 * MiB);
	ASK("to device", cuMemcpyHtoD_v2, p + 100, in, 64);
	ASK("from device", cuMemcpyDtoH_v2, out, p + 100, 64);
	SAY("same", !memcmp(in, out, 64));
	ASK("fill", cuMemsetD8_v2, p, 1, 4 * MiB);
	ASK("range", cuMemGetAddressRange_v2, &base, &size, p + 5);
	SAY("range starts there", base == p);
	SAY("range size", size);
	ASK("start of the reserved", cuPointerGetAttribute, &base,
	    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9);
	SAY("start of the reserved", base == p);
	ASK("size of the reserved", cuPointerGetAttribute, &size,
	    CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 9);
	SAY("size of the reserved", size);
	ASK("start of the mapping", cuPointerGetAttribute, &base,
	    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p + 9);
	SAY("start of the mapping", base == p);
	ASK("size of the mapping", cuPointerGetAttribute, &size,
	    CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p + 9);
	SAY("size of the mapping", size);
	ASK("type", cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	    p);
	SAY("type", v);
	ASK("ordinal", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("ordinal", v);
	ASK("context", cuPointerGetAttribute, &c, CU_POINTER_ATTRIBUTE_CONTEXT,
	    p);
	SAY("context is none", c == NULL);
	ASK("old IPC", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("old IPC", v);
	ASK("handle types", cuPointerGetAttribute, &flags,
	    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p);
	SAY("handle types", flags);
	ASK("rdma capable", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p);
	SAY("rdma capable", v);
	ASK("dma-buf", cuMemGetHandleForAddressRange, &fd, p, 4 * MiB, 1, 0);
	if (fd >= 0)
		close(fd);
	ASK("free as an allocation", cuMemFree_v2, p);
	ASK("retain", cuMemRetainAllocationHandle, &again,
	    (void *)(uintptr_t)(p + 10));
	SAY("the same handle", again == h);
	ASK("release the retained", cuMemRelease, again);
	ASK("export, type 0", cuMemExportToShareableHandle, &fd, h, 0, 0);
	ASK("export, flags 1", cuMemExportToShareableHandle, &fd, h, 1, 1);
	ASK("export, no place", cuMemExportToShareableHandle, NULL, h, 1, 0);
	ASK("export", cuMemExportToShareableHandle, &fd, h, 1, 0);
	SAY("export gave a descriptor", fd >= 0);
	ASK("import, type 0", cuMemImportFromShareableHandle, &again,
	    (void *)(intptr_t)fd, 0);
	ASK("import, no place", cuMemImportFromShareableHandle, NULL,
	    (void *)(intptr_t)fd, 1);
	ASK("import", cuMemImportFromShareableHandle, &again,
	    (void *)(intptr_t)fd, 1);
	close(fd);
	ASK("map the imported", cuMemMap, p + 4 * MiB, 4 * MiB, 0, again, 0);
	ASK("access to it", cuMemSetAccess, p + 4 * MiB, 4 * MiB, &access, 1);
	memset(out, 0, 64);
	ASK("fill", cuMemsetD8_v2, p + 20, 9, 64);
	ASK("from the imported", cuMemcpyDtoH_v2, out, p + 4 * MiB + 20, 64);
	SAY("same memory", !memcmp(in, out, 64));
	ASK("copy across two", cuMemcpyDtoH_v2, out, p + 4 * MiB - 32, 64);
	ASK("release the imported", cuMemRelease, again);
	ASK("unmap the imported", cuMemUnmap, p + 4 * MiB, 4 * MiB);
	ASK("release, still mapped", cuMemRelease, h);
	ASK("still there", cuMemcpyDtoH_v2, out, p, 64);
	ASK("free the address, mapped", cuMemAddressFree, p, 8 * MiB);
	ASK("unmap half", cuMemUnmap, p, 2 * MiB);
	ASK("unmap", cuMemUnmap, p, 4 * MiB);
	ASK("unmap again", cuMemUnmap, p, 4 * MiB);
	ASK("type of unmapped", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	ASK("copy of unmapped", cuMemcpyDtoH_v2, out, p, 64);
	ASK("free half the address", cuMemAddressFree, p, 4 * MiB);
	ASK("free the address", cuMemAddressFree, p, 8 * MiB);
	ASK("free the address again", cuMemAddressFree, p, 8 * MiB);
	/* Nothing is said of GPUDirect RDMA, and reading is all that is allowed */
	plain.allocFlags.gpuDirectRDMACapable = 0;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	ASK("create, plain", cuMemCreate, &h, 2 * MiB, &plain, 0);
	ASK("reserve", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 0);
	ASK("map", cuMemMap, p, 2 * MiB, 0, h, 0);
	ASK("set access, reading", cuMemSetAccess, p, 2 * MiB, &access, 1);
	ASK("fill what can be read", cuMemsetD8_v2, p, 1, 99);
	ASK("rdma capable, plain", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, p);
	SAY("rdma capable, plain", v);
	ASK("dma-buf, plain", cuMemGetHandleForAddressRange, &fd, p, 2 * MiB,
	    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	close(fd);
	ASK("unmap", cuMemUnmap, p, 2 * MiB);
	ASK("release", cuMemRelease, h);
	ASK("free the address", cuMemAddressFree, p, 2 * MiB);
}

/* libcufile takes memory of the same id for the same memory */
void ask_vmm_ids(void)
{
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	static const struct {
		const char *what;
		int which;
	} turns[] = {
		{ "the first", 0 }, { "another one there", 1 }, { "the first again", 0 },
	};
	CUmemGenericAllocationHandle h[2] = { 0 };
	unsigned long long id[3] = { 0 }, none = 0;
	CUdeviceptr p = 0;

	ASK("create", cuMemCreate, &h[0], 2 * MiB, &prop, 0);
	ASK("create another one", cuMemCreate, &h[1], 2 * MiB, &prop, 0);
	ASK("reserve", cuMemAddressReserve, &p, 2 * MiB, 0, 0, 0);
	for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
		ASK(turns[i].what, cuMemMap, p, 2 * MiB, 0, h[turns[i].which], 0);
		ASK("access", cuMemSetAccess, p, 2 * MiB, &access, 1);
		ASK("its id", cuPointerGetAttribute, &id[i],
		    CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
		SAY("is one", id[i] != 0);
		for (size_t k = 0; k < i; k++)
			SAY("is that of before", id[i] == id[k]);
		ASK("unmap", cuMemUnmap, p, 2 * MiB);
		ASK("id of none", cuPointerGetAttribute, &none,
		    CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
	}
	ASK("release", cuMemRelease, h[0]);
	ASK("release the other one", cuMemRelease, h[1]);
	ASK("free the address", cuMemAddressFree, p, 2 * MiB);
}

void ask_ipc(void)
{
	CUipcEventHandle eh;
	CUipcMemHandle mh;
	CUdeviceptr p = 0, q = 0;
	CUevent e = NULL, f = NULL;
	static char plain[4096];
	int v = 77;

	memset(&mh, 0, sizeof(mh));
	memset(&eh, 0, sizeof(eh));
	ASK("alloc", cuMemAlloc_v2, &p, 4 * MiB);
	ASK("old IPC", cuPointerGetAttribute, &v,
	    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("old IPC", v);
	ASK("handle, no place", cuIpcGetMemHandle, NULL, p);
	ASK("handle of host memory", cuIpcGetMemHandle, &mh, (uintptr_t)plain);
	ASK("handle of 0", cuIpcGetMemHandle, &mh, 0);
	ASK("open zeroes", cuIpcOpenMemHandle_v2, &q, mh, 1);
	ASK("handle", cuIpcGetMemHandle, &mh, p);
	ASK("handle, inside", cuIpcGetMemHandle, &mh, p + 4096);
	ASK("open, flags 0", cuIpcOpenMemHandle_v2, &q, mh, 0);
	ASK("open, flags 2", cuIpcOpenMemHandle_v2, &q, mh, 2);
	ASK("open, no place", cuIpcOpenMemHandle_v2, NULL, mh, 1);
	ASK("open, same process", cuIpcOpenMemHandle_v2, &q, mh, 1);
	ASK("close what is ours", cuIpcCloseMemHandle, p);
	ASK("close 0", cuIpcCloseMemHandle, 0);
	ASK("close host memory", cuIpcCloseMemHandle, (uintptr_t)plain);
	ASK("free", cuMemFree_v2, p);
	ASK("event", cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	ASK("handle of a plain event", cuIpcGetEventHandle, &eh, e);
	ASK("destroy", cuEventDestroy_v2, e);
	ASK("event", cuEventCreate, &e,
	    CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	ASK("handle, no place", cuIpcGetEventHandle, NULL, e);
	ASK("handle of no event", cuIpcGetEventHandle, &eh, NULL);
	ASK("handle", cuIpcGetEventHandle, &eh, e);
	ASK("open, no place", cuIpcOpenEventHandle, NULL, eh);
	ASK("open, same process", cuIpcOpenEventHandle, &f, eh);
	ASK("query", cuEventQuery, e);
	ASK("record", cuEventRecord, e, NULL);
	ASK("synchronize", cuEventSynchronize, e);
	ASK("wait", cuStreamWaitEvent, NULL, e, 0);
	ASK("destroy", cuEventDestroy_v2, e);
}
