/* SPDX-License-Identifier: MIT */
/*
 * The CUDA runtime interface as far as this library serves it: names, numbers
 * and layouts, written down in our own words.  tests/cudart/abi.sh compares
 * them with NVIDIA's header on machines that have one.
 *
 * CUDART_MAJOR, 12 or 13, says whose layouts.
 */
#ifndef PEERLANE_CUDART_ABI_H
#define PEERLANE_CUDART_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUfunc_st *cudaFunction_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUuuid_st cudaUUID_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef void (*cudaHostFn_t)(void *arg);

#define PLN_CUDART_NUMBERS(X) \
	X(cudaMemcpyHostToHost, 0) \
	X(cudaMemcpyHostToDevice, 1) \
	X(cudaMemcpyDeviceToHost, 2) \
	X(cudaMemcpyDeviceToDevice, 3) \
	X(cudaMemcpyDefault, 4) \
	X(cudaMemoryTypeUnregistered, 0) \
	X(cudaMemoryTypeHost, 1) \
	X(cudaMemoryTypeDevice, 2) \
	X(cudaMemoryTypeManaged, 3) \
	X(cudaStreamCaptureStatusNone, 0) \
	X(cudaDriverEntryPointSuccess, 0) \
	X(cudaDriverEntryPointSymbolNotFound, 1) \
	X(cudaDriverEntryPointVersionNotSufficent, 2) \
	X(cudaFuncAttributeMaxDynamicSharedMemorySize, 8)

#define PLN_X(name, number) name = number,
enum { PLN_CUDART_NUMBERS(PLN_X) };
#undef PLN_X

#include "errors.h"

#define PLN_X(name, number, words) name = number,
typedef enum cudaError { PLN_CUDART_ERRORS(PLN_X) } cudaError_t;
#undef PLN_X

/* What programs say one of by number alone */
#define PLN_ENUM(name)	enum name { name##_none_ }
PLN_ENUM(cudaMemcpyKind);
PLN_ENUM(cudaMemoryType);
PLN_ENUM(cudaChannelFormatKind);
PLN_ENUM(cudaDeviceAttr);
PLN_ENUM(cudaDeviceP2PAttr);
PLN_ENUM(cudaLimit);
PLN_ENUM(cudaFuncCache);
PLN_ENUM(cudaSharedMemConfig);
PLN_ENUM(cudaFuncAttribute);
PLN_ENUM(cudaStreamCaptureStatus);
PLN_ENUM(cudaStreamCaptureMode);
PLN_ENUM(cudaDriverEntryPointQueryResult);
PLN_ENUM(cudaFlushGPUDirectRDMAWritesTarget);
PLN_ENUM(cudaFlushGPUDirectRDMAWritesScope);
PLN_ENUM(cudaMemAllocationHandleType);
PLN_ENUM(cudaMemAllocationType);
PLN_ENUM(cudaMemPoolAttr);
PLN_ENUM(cudaMemAccessFlags);
PLN_ENUM(cudaMemoryAdvise);
PLN_ENUM(cudaMemRangeAttribute);

typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status,
				     void *arg);

#ifndef __VECTOR_TYPES_H__
typedef struct dim3 {
	unsigned int x, y, z;
} dim3;
typedef struct uint3 {
	unsigned int x, y, z;
} uint3;
#endif

struct cudaChannelFormatDesc {
	int x, y, z, w;
	enum cudaChannelFormatKind f;
};

typedef struct cudaIpcMemHandle_st {
	char reserved[64];
} cudaIpcMemHandle_t;

typedef struct cudaIpcEventHandle_st {
	char reserved[64];
} cudaIpcEventHandle_t;

struct cudaMemLocation {
	unsigned int type;
	int id;
};

struct cudaMemAccessDesc {
	struct cudaMemLocation location;
	unsigned int flags;
};

struct cudaMemPoolProps {
	unsigned int allocType;
	unsigned int handleTypes;
	struct cudaMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
};

struct cudaMemPoolPtrExportData {
	unsigned char reserved[64];
};

struct cudaMemcpyAttributes {
	unsigned int srcAccessOrder;
	struct cudaMemLocation srcLocHint;
	struct cudaMemLocation dstLocHint;
	unsigned int flags;
};

struct cudaPointerAttributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
#if CUDART_MAJOR >= 13
	long reserved[8];
#endif
};

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPos {
	size_t x, y, z;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch;
	size_t xsize;
	size_t ysize;
};

struct cudaMemcpy3DParms {
	struct cudaArray *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	struct cudaArray *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};

struct cudaFuncAttributes {
	size_t sharedSizeBytes;
	size_t constSizeBytes;
	size_t localSizeBytes;
	int maxThreadsPerBlock;
	int numRegs;
	int ptxVersion;
	int binaryVersion;
	int cacheModeCA;
	int maxDynamicSharedSizeBytes;
	int preferredShmemCarveout;
	int clusterDimMustBeSet;
	int requiredClusterWidth;
	int requiredClusterHeight;
	int requiredClusterDepth;
	int clusterSchedulingPolicyPreference;
	int nonPortableClusterSizeAllowed;
	int reserved[16];
};

typedef struct cudaLaunchConfig_st {
	dim3 gridDim;
	dim3 blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	struct cudaLaunchAttribute_st *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;

#include "prop.h"
#include "cudart_proto.h"

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUDART_ABI_H */
