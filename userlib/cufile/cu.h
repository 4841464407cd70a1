/* SPDX-License-Identifier: MIT */
/* The part of the CUDA driver interface that this library uses. */
#ifndef PLN_CUFILE_CU_H
#define PLN_CUFILE_CU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

#define CUDA_ERROR_INVALID_VALUE	1
#define CUDA_ERROR_OUT_OF_MEMORY	2
#define CUDA_ERROR_NOT_INITIALIZED	3
#define CUDA_ERROR_NOT_SUPPORTED	801

#define CU_ATTR_CONTEXT		1
#define CU_ATTR_MEMORY_TYPE	2
#define CU_ATTR_BUFFER_ID	7
#define CU_ATTR_IS_MANAGED	8
#define CU_ATTR_DEVICE_ORDINAL	9
#define CU_ATTR_LEGACY_IPC	10
#define CU_ATTR_RANGE_START	11
#define CU_ATTR_RANGE_SIZE	12
#define CU_ATTR_MAPPING_SIZE	18
#define CU_ATTR_MAPPING_START	19

#define CU_TYPE_HOST		1
#define CU_TYPE_DEVICE		2
#define CU_TYPE_UNIFIED		4

#define CU_STREAM_NON_BLOCKING	1
#define CU_EVENT_DISABLE_TIMING	2
#define CU_HOST_PORTABLE	1
#define CU_RANGE_HANDLE_DMABUF	1

/* X(required, result, name, symbol, arguments) */
#define PLN_CU_FUNCTIONS(X) \
	X(1, Init, cuInit, (unsigned int)) \
	X(1, DeviceGet, cuDeviceGet, (CUdevice *, int)) \
	X(0, DeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *, int, CUdevice)) \
	X(1, PrimaryRetain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	X(1, Push, cuCtxPushCurrent_v2, (CUcontext)) \
	X(1, Pop, cuCtxPopCurrent_v2, (CUcontext *)) \
	X(0, CtxGetId, cuCtxGetId, (CUcontext, unsigned long long *)) \
	X(1, PointerGetAttribute, cuPointerGetAttribute, \
	  (void *, int, CUdeviceptr)) \
	X(0, PointerGetAttributes, cuPointerGetAttributes, \
	  (unsigned int, int *, void **, CUdeviceptr)) \
	X(0, MemGetHandle, cuMemGetHandleForAddressRange, \
	  (void *, CUdeviceptr, size_t, int, unsigned long long)) \
	X(0, HostRegister, cuMemHostRegister_v2, \
	  (void *, size_t, unsigned int)) \
	X(0, HostUnregister, cuMemHostUnregister, (void *)) \
	X(1, HtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) \
	X(1, DtoH, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
	X(0, HtoDAsync, cuMemcpyHtoDAsync_v2, \
	  (CUdeviceptr, const void *, size_t, CUstream)) \
	X(0, DtoHAsync, cuMemcpyDtoHAsync_v2, \
	  (void *, CUdeviceptr, size_t, CUstream)) \
	X(0, StreamCreate, cuStreamCreate, (CUstream *, unsigned int)) \
	X(0, StreamDestroy, cuStreamDestroy_v2, (CUstream)) \
	X(0, StreamSync, cuStreamSynchronize, (CUstream)) \
	X(0, EventCreate, cuEventCreate, (CUevent *, unsigned int)) \
	X(0, EventDestroy, cuEventDestroy_v2, (CUevent)) \
	X(0, EventRecord, cuEventRecord, (CUevent, CUstream)) \
	X(0, EventSync, cuEventSynchronize, (CUevent)) \
	X(0, GetErrorName, cuGetErrorName, (int, const char **))

struct pln_cu {
	void *lib;
#define PLN_X(required, name, symbol, args) int (*name) args;
	PLN_CU_FUNCTIONS(PLN_X)
#undef PLN_X
	bool async;		/* all that asynchronous copies need */
};

extern struct pln_cu cu;

bool pln_cu_load(char *err, size_t size);
const char *pln_cu_name(int result);

enum pln_mem_kind { PLN_MEM_HOST, PLN_MEM_DEVICE, PLN_MEM_MANAGED };

/* What a pointer is. */
struct pln_mem {
	enum pln_mem_kind kind;
	bool known;		/* CUDA knows it */
	int gpu;		/* ordinal */
	CUcontext ctx;
	unsigned long long ctx_id;
	uint64_t start;		/* of the allocation */
	size_t len;
	uint64_t buffer_id;	/* never reused, 0 when CUDA does not say */
};

int pln_mem_of(uint64_t ptr, struct pln_mem *mem);	/* CUresult */
/* Bytes of GPU memory from @ptr on, looking at most @want far. */
size_t pln_mem_extent(const struct pln_mem *mem, uint64_t ptr, size_t want);
/* Is it of a kind behind which more can be mapped later?  cuMemAlloc's is not. */
bool pln_mem_may_grow(uint64_t ptr);

#endif
