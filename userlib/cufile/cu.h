/* SPDX-License-Identifier: MIT */
/* The part of the CUDA driver interface that this library uses. */
#ifndef PLN_CUFILE_CU_H
#define PLN_CUFILE_CU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cuda/cuda.h"

/* X(required, name, symbol) */
#define CU_FUNCTIONS(X) \
	X(1, Init, cuInit) \
	X(1, DeviceGet, cuDeviceGet) \
	X(0, DeviceGetCount, cuDeviceGetCount) \
	X(0, DeviceGetAttribute, cuDeviceGetAttribute) \
	X(0, DeviceGetUuid, cuDeviceGetUuid_v2) \
	X(0, DeviceGetPCIBusId, cuDeviceGetPCIBusId) \
	X(1, PrimaryRetain, cuDevicePrimaryCtxRetain) \
	X(1, Push, cuCtxPushCurrent_v2) \
	X(1, Pop, cuCtxPopCurrent_v2) \
	X(0, CtxGetId, cuCtxGetId) \
	X(0, MemGetInfo, cuMemGetInfo_v2) \
	X(0, GetCurrent, cuCtxGetCurrent) \
	X(1, PointerGetAttribute, cuPointerGetAttribute) \
	X(0, PointerGetAttributes, cuPointerGetAttributes) \
	X(0, MemGetHandle, cuMemGetHandleForAddressRange) \
	X(0, MemRetain, cuMemRetainAllocationHandle) \
	X(0, MemRelease, cuMemRelease) \
	X(0, MemProperties, cuMemGetAllocationPropertiesFromHandle) \
	X(0, MemExport, cuMemExportToShareableHandle) \
	X(0, HostRegister, cuMemHostRegister_v2) \
	X(0, HostUnregister, cuMemHostUnregister) \
	X(0, MemAlloc, cuMemAlloc_v2) \
	X(0, MemFree, cuMemFree_v2) \
	X(1, HtoD, cuMemcpyHtoD_v2) \
	X(1, DtoH, cuMemcpyDtoH_v2) \
	X(0, HtoDAsync, cuMemcpyHtoDAsync_v2) \
	X(0, DtoHAsync, cuMemcpyDtoHAsync_v2) \
	X(0, DtoDAsync, cuMemcpyDtoDAsync_v2) \
	X(0, StreamCreate, cuStreamCreate) \
	X(0, StreamDestroy, cuStreamDestroy_v2) \
	X(0, StreamSync, cuStreamSynchronize) \
	X(0, WriteValue, cuStreamWriteValue32_v2) \
	X(0, EventCreate, cuEventCreate) \
	X(0, EventDestroy, cuEventDestroy_v2) \
	X(0, EventRecord, cuEventRecord) \
	X(0, EventSync, cuEventSynchronize) \
	X(0, StreamIsCapturing, cuStreamIsCapturing) \
	X(0, StreamGetId, cuStreamGetId) \
	X(0, StreamGetCtx, cuStreamGetCtx) \
	X(0, LaunchHostFunc, cuLaunchHostFunc) \
	X(0, GetErrorName, cuGetErrorName)

struct cu {
	bool loaded;
#define PLN_X(required, name, symbol) __typeof__(symbol) *name;
	CU_FUNCTIONS(PLN_X)
#undef PLN_X
	bool async;		/* all that asynchronous copies need */
};

extern struct cu cu;

bool cu_load(char *err, size_t size);
const char *cu_name(int result);
/* A context may be gone, and all that it had with it.  False, too: CUDA does not tell. */
bool cu_lives(CUcontext ctx, unsigned long long id);
/* Of a GPU by its ordinal, as sysfs has it: 0000:01:00.0.  False: CUDA does not tell. */
bool cu_pci_address(int gpu, char *buf, size_t size);

enum mem_kind { MEM_HOST, MEM_DEVICE, MEM_MANAGED };

/* What a pointer is. */
struct mem {
	enum mem_kind kind;
	bool known;		/* CUDA knows it */
	int gpu;		/* ordinal */
	CUcontext ctx;
	unsigned long long ctx_id;
	uint64_t start;		/* of the allocation */
	size_t len;
	uint64_t buffer_id;	/* never reused, 0 when CUDA does not say */
};

int mem_of(uint64_t ptr, struct mem *mem);	/* CUresult */
/* Has @ptr no memory of this id any more?  What this thread learnt last stays. */
bool mem_freed(uint64_t ptr, uint64_t buffer_id);
/* Bytes of GPU memory from @ptr on, looking at most @want far. */
size_t mem_extent(const struct mem *mem, uint64_t ptr, size_t want);
/* Is it of a kind behind which more can be mapped later?  cuMemAlloc's is not. */
bool mem_may_grow(uint64_t ptr);

#endif
