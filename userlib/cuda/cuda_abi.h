/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver interface as far as this library serves it: names, numbers
 * and layouts, written down in our own words.  tests/cuda/abi.sh compares them
 * with NVIDIA's cuda.h on machines that have one.
 */
#ifndef PEERLANE_CUDA_ABI_H
#define PEERLANE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUgreenCtx_st *CUgreenCtx;

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

#define CU_STREAM_LEGACY	((CUstream)0x1)
#define CU_STREAM_PER_THREAD	((CUstream)0x2)
#define CU_DEVICE_CPU		((CUdevice)-1)
#define CU_DEVICE_INVALID	((CUdevice)-2)

/* name, number, words of our own */
#define PLN_CUDA_ERRORS(X) \
	X(CUDA_SUCCESS, 0, "no error") \
	X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument") \
	X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory") \
	X(CUDA_ERROR_NOT_INITIALIZED, 3, "driver not initialized in this process") \
	X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down") \
	X(CUDA_ERROR_STUB_LIBRARY, 34, "stub library, no driver behind it") \
	X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36, "call needs a newer driver") \
	X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "device unavailable: it was reset or removed") \
	X(CUDA_ERROR_NO_DEVICE, 100, "no GPU found") \
	X(CUDA_ERROR_INVALID_DEVICE, 101, "no such device") \
	X(CUDA_ERROR_INVALID_IMAGE, 200, "invalid device code") \
	X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid or missing context") \
	X(CUDA_ERROR_INVALID_PTX, 218, "invalid PTX text") \
	X(CUDA_ERROR_INVALID_SOURCE, 300, "invalid device code in the file") \
	X(CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found") \
	X(CUDA_ERROR_TOO_MANY_PEERS, 711, "too many peers") \
	X(CUDA_ERROR_MAP_FAILED, 205, "mapping failed") \
	X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable memory error") \
	X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "limit not supported") \
	X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, "peer access not supported") \
	X(CUDA_ERROR_OPERATING_SYSTEM, 304, "operating system call failed") \
	X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid handle") \
	X(CUDA_ERROR_ILLEGAL_STATE, 401, "object is in a wrong state") \
	X(CUDA_ERROR_NOT_FOUND, 500, "not found") \
	X(CUDA_ERROR_NOT_READY, 600, "not finished yet") \
	X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "the engine was given an illegal address") \
	X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "out of queue resources") \
	X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the engine did not finish in time") \
	X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already on") \
	X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access is not on") \
	X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "the primary context is active") \
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "the context was destroyed") \
	X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "host memory is already registered") \
	X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "host memory is not registered") \
	X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address") \
	X(CUDA_ERROR_LAUNCH_FAILED, 719, "the engine reported a failure") \
	X(CUDA_ERROR_NOT_PERMITTED, 800, "not permitted") \
	X(CUDA_ERROR_NOT_SUPPORTED, 801, "not supported") \
	X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "system not ready") \
	X(CUDA_ERROR_TIMEOUT, 909, "timed out") \
	X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

typedef enum {
#define PLN_X(name, number, words) name = number,
	PLN_CUDA_ERRORS(PLN_X)
#undef PLN_X
} CUresult;

#define PLN_CUDA_DEVICE_ATTRIBUTES(X) \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6) \
	X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7) \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
	X(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 9) \
	X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10) \
	X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11) \
	X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 12) \
	X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) \
	X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14) \
	X(CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 15) \
	X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
	X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18) \
	X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20) \
	X(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32) \
	X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33) \
	X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34) \
	X(CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 35) \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39) \
	X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40) \
	X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41) \
	X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
	X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78) \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81) \
	X(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 82) \
	X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83) \
	X(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 84) \
	X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88) \
	X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89) \
	X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) \
	X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
	X(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 98) \
	X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99) \
	X(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 101) \
	X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102) \
	X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) \
	X(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 106) \
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110) \
	X(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 111) \
	X(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 113) \
	X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115) \
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116) \
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 117) \
	X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 118) \
	X(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 119) \
	X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122) \
	X(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 123) \
	X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124) \
	X(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 125) \
	X(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 130) \
	X(CU_DEVICE_ATTRIBUTE_NUMA_ID, 131) \
	X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)

#define PLN_CUDA_DEVICE_ATTRIBUTE_LAST	147
#define CU_FUNC_ATTRIBUTE_LAST		15
#define CU_LIMIT_LAST			9

typedef enum {
#define PLN_X(name, number) name = number,
	PLN_CUDA_DEVICE_ATTRIBUTES(PLN_X)
#undef PLN_X
} CUdevice_attribute;

#define PLN_CUDA_POINTER_ATTRIBUTES(X) \
	X(CU_POINTER_ATTRIBUTE_CONTEXT, 1) \
	X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
	X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3) \
	X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4) \
	X(CU_POINTER_ATTRIBUTE_P2P_TOKENS, 5) \
	X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6) \
	X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7) \
	X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8) \
	X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9) \
	X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10) \
	X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11) \
	X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12) \
	X(CU_POINTER_ATTRIBUTE_MAPPED, 13) \
	X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14) \
	X(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 15) \
	X(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16) \
	X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17) \
	X(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 18) \
	X(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 19) \
	X(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 20)

typedef enum {
#define PLN_X(name, number) name = number,
	PLN_CUDA_POINTER_ATTRIBUTES(PLN_X)
#undef PLN_X
} CUpointer_attribute;

/* Other numbers, by the type that carries them */
#define PLN_CUDA_MEMORYTYPES(X) \
	X(CU_MEMORYTYPE_HOST, 1) \
	X(CU_MEMORYTYPE_DEVICE, 2) \
	X(CU_MEMORYTYPE_ARRAY, 3) \
	X(CU_MEMORYTYPE_UNIFIED, 4)

#define PLN_CUDA_FLAGS(X) \
	X(CU_CTX_SCHED_AUTO, 0x00) \
	X(CU_CTX_SCHED_SPIN, 0x01) \
	X(CU_CTX_SCHED_YIELD, 0x02) \
	X(CU_CTX_SCHED_BLOCKING_SYNC, 0x04) \
	X(CU_CTX_SCHED_MASK, 0x07) \
	X(CU_CTX_MAP_HOST, 0x08) \
	X(CU_CTX_LMEM_RESIZE_TO_MAX, 0x10) \
	X(CU_CTX_SYNC_MEMOPS, 0x80) \
	X(CU_CTX_FLAGS_MASK, 0xff) \
	X(CU_STREAM_DEFAULT, 0) \
	X(CU_STREAM_NON_BLOCKING, 1) \
	X(CU_STREAM_WAIT_VALUE_GEQ, 0) \
	X(CU_STREAM_WAIT_VALUE_EQ, 1) \
	X(CU_STREAM_WAIT_VALUE_AND, 2) \
	X(CU_STREAM_WAIT_VALUE_NOR, 3) \
	X(CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30) \
	X(CU_STREAM_WRITE_VALUE_DEFAULT, 0) \
	X(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, 1) \
	X(CU_STREAM_MEM_OP_WAIT_VALUE_32, 1) \
	X(CU_STREAM_MEM_OP_WRITE_VALUE_32, 2) \
	X(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, 3) \
	X(CU_STREAM_MEM_OP_WAIT_VALUE_64, 4) \
	X(CU_STREAM_MEM_OP_WRITE_VALUE_64, 5) \
	X(CU_STREAM_MEM_OP_BARRIER, 6) \
	X(CU_EVENT_DEFAULT, 0) \
	X(CU_EVENT_BLOCKING_SYNC, 1) \
	X(CU_EVENT_DISABLE_TIMING, 2) \
	X(CU_EVENT_INTERPROCESS, 4) \
	X(CU_EVENT_RECORD_DEFAULT, 0) \
	X(CU_EVENT_RECORD_EXTERNAL, 1) \
	X(CU_EVENT_WAIT_DEFAULT, 0) \
	X(CU_EVENT_WAIT_EXTERNAL, 1) \
	X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1) \
	X(CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE, 1) \
	X(CU_GET_PROC_ADDRESS_DEFAULT, 0) \
	X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1) \
	X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2) \
	X(CU_GET_PROC_ADDRESS_SUCCESS, 0) \
	X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1) \
	X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2) \
	X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST, 1) \
	X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX, 0) \
	X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER, 100) \
	X(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES, 200) \
	X(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE, 0) \
	X(CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES, 200) \
	X(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE, 3) \
	X(CU_LIMIT_STACK_SIZE, 0) \
	X(CU_LIMIT_PRINTF_FIFO_SIZE, 1) \
	X(CU_LIMIT_MALLOC_HEAP_SIZE, 2) \
	X(CU_FUNC_CACHE_PREFER_NONE, 0) \
	X(CU_FUNC_CACHE_PREFER_EQUAL, 3) \
	X(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
	X(CU_MEM_HANDLE_TYPE_NONE, 0) \
	X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1) \
	X(CU_MEM_ALLOCATION_TYPE_PINNED, 1) \
	X(CU_MEM_LOCATION_TYPE_DEVICE, 1) \
	X(CU_MEM_LOCATION_TYPE_HOST, 2) \
	X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0) \
	X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1) \
	X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3) \
	X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0) \
	X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1) \
	X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1) \
	X(CU_MEM_HANDLE_TYPE_FABRIC, 8) \
	X(CU_MEM_ALLOCATION_TYPE_MANAGED, 2) \
	X(CU_MEM_LOCATION_TYPE_HOST_NUMA, 3) \
	X(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 4) \
	X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1) \
	X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2) \
	X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3) \
	X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4) \
	X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5) \
	X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6) \
	X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7) \
	X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8) \
	X(CU_MEM_ATTACH_GLOBAL, 1) \
	X(CU_MEM_ATTACH_HOST, 2) \
	X(CU_MEM_ATTACH_SINGLE, 4) \
	X(CU_MEM_ADVISE_SET_READ_MOSTLY, 1) \
	X(CU_MEM_ADVISE_UNSET_READ_MOSTLY, 2) \
	X(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 3) \
	X(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, 4) \
	X(CU_MEM_ADVISE_SET_ACCESSED_BY, 5) \
	X(CU_MEM_ADVISE_UNSET_ACCESSED_BY, 6) \
	X(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1) \
	X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 2) \
	X(CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, 3) \
	X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 4) \
	X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 5) \
	X(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, 6) \
	X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, 7) \
	X(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, 8) \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 1) \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, 2) \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, 3) \
	X(CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE, 1) \
	X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
	X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5) \
	X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6) \
	X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
	X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9) \
	X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2) \
	X(CU_MODULE_EAGER_LOADING, 1) \
	X(CU_MODULE_LAZY_LOADING, 2)

/* These are preprocessor constants in the original too */
#define CU_MEMHOSTALLOC_PORTABLE	0x01
#define CU_MEMHOSTALLOC_DEVICEMAP	0x02
#define CU_MEMHOSTALLOC_WRITECOMBINED	0x04
#define CU_MEMHOSTREGISTER_PORTABLE	0x01
#define CU_MEMHOSTREGISTER_DEVICEMAP	0x02
#define CU_MEMHOSTREGISTER_IOMEMORY	0x04
#define CU_MEMHOSTREGISTER_READ_ONLY	0x08

#define PLN_CUDA_MACROS(X) \
	X(CU_MEMHOSTALLOC_PORTABLE, 0x01) \
	X(CU_MEMHOSTALLOC_DEVICEMAP, 0x02) \
	X(CU_MEMHOSTALLOC_WRITECOMBINED, 0x04) \
	X(CU_MEMHOSTREGISTER_PORTABLE, 0x01) \
	X(CU_MEMHOSTREGISTER_DEVICEMAP, 0x02) \
	X(CU_MEMHOSTREGISTER_IOMEMORY, 0x04) \
	X(CU_MEMHOSTREGISTER_READ_ONLY, 0x08)

#define PLN_X(name, number) name = number,
typedef enum { PLN_CUDA_MEMORYTYPES(PLN_X) } CUmemorytype;
enum { PLN_CUDA_FLAGS(PLN_X) };
#undef PLN_X

typedef unsigned int CUmemRangeHandleType;
typedef unsigned int CUdriverProcAddressQueryResult;
typedef unsigned int CUflushGPUDirectRDMAWritesTarget;
typedef unsigned int CUflushGPUDirectRDMAWritesScope;
typedef unsigned int CUlimit;
typedef unsigned int CUfunc_cache;
typedef unsigned int CUstreamCaptureStatus;
typedef unsigned int CUmoduleLoadingMode;
typedef unsigned int CUdevice_P2PAttribute;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef unsigned int CUmemAllocationHandleType;
typedef unsigned int CUmemAllocationGranularity_flags;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUjit_option;
typedef unsigned int CUlibraryOption;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUlaunchAttribute_st CUlaunchAttribute;
typedef void (*CUhostFn)(void *arg);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *arg);
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned int CUmemPool_attribute;
typedef unsigned int CUmemAllocationType;
typedef unsigned int CUmemAccess_flags;
typedef unsigned int CUmem_advise;
typedef unsigned int CUmem_range_attribute;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st {
	CUexecAffinityParam *affinity;
	int nr_affinity;
	void *cig;
} CUctxCreateParams;

typedef struct {
	unsigned long long p2pToken;
	unsigned int vaSpaceToken;
} CUDA_POINTER_ATTRIBUTE_P2P_TOKENS;

typedef struct CUmemLocation_st {
	unsigned int type;
	int id;
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
	unsigned int type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
	CUmemLocation location;
	unsigned int flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps_st {
	unsigned int allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmemPoolPtrExportData_st {
	unsigned char reserved[64];
} CUmemPoolPtrExportData;

/* Of cuStreamBatchMemOp(): the two kinds of values have the same members */
struct drv_mem_op_value {
	unsigned int operation;
	CUdeviceptr address;
	__extension__ union {
		cuuint32_t value;
		cuuint64_t value64;
	};
	unsigned int flags;
	CUdeviceptr alias;
};

typedef union CUstreamBatchMemOpParams_union {
	unsigned int operation;
	struct drv_mem_op_value waitValue;
	struct drv_mem_op_value writeValue;
	struct {
		unsigned int operation;
		unsigned int flags;
	} flushRemoteWrites, memoryBarrier;
	cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct CUmemcpyAttributes_st {
	unsigned int srcAccessOrder;
	CUmemLocation srcLocHint;
	CUmemLocation dstLocHint;
	unsigned int flags;
} CUmemcpyAttributes;

typedef struct CUipcMemHandle_st {
	char reserved[64];
} CUipcMemHandle;

typedef struct CUipcEventHandle_st {
	char reserved[64];
} CUipcEventHandle;

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

typedef struct {
	size_t srcXInBytes;
	size_t srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes;
	size_t dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;

#include "cuda_proto.h"

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUDA_ABI_H */
