/* SPDX-License-Identifier: MIT */
/*
 * The cuFile interface as libcufile.so.0 of Peerlane serves it: names, numbers
 * and layouts, written down in our own words so that a program built with this
 * header and one built with NVIDIA's are the same to the library.
 * tests/cufile/abi.sh compares the two where a machine has both.
 *
 * Batch and stream calls are not part of it yet, and are not exported: a
 * program that looks for them with dlsym() sees that they are absent.
 */
#ifndef PEERLANE_CUFILE_H
#define PEERLANE_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef PEERLANE_CUFILE_WITHOUT_CUDA_H
typedef int CUresult;
#else
#include <cuda.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CUFILEOP_BASE_ERR 5000

/* name, offset from CUFILEOP_BASE_ERR, words of our own */
#define PLN_CUFILE_ERRORS(X) \
	X(CU_FILE_DRIVER_NOT_INITIALIZED, 1, "the library is not open") \
	X(CU_FILE_DRIVER_INVALID_PROPS, 2, "invalid setting") \
	X(CU_FILE_DRIVER_UNSUPPORTED_LIMIT, 3, "setting out of range") \
	X(CU_FILE_DRIVER_VERSION_MISMATCH, 4, "driver version mismatch") \
	X(CU_FILE_DRIVER_VERSION_READ_ERROR, 5, "driver version not readable") \
	X(CU_FILE_DRIVER_CLOSING, 6, "the library is being closed") \
	X(CU_FILE_PLATFORM_NOT_SUPPORTED, 7, "no usable CUDA driver here") \
	X(CU_FILE_IO_NOT_SUPPORTED, 8, "not possible for this file in this mode") \
	X(CU_FILE_DEVICE_NOT_SUPPORTED, 9, "not possible on this GPU") \
	X(CU_FILE_NVFS_DRIVER_ERROR, 10, "kernel driver error") \
	X(CU_FILE_CUDA_DRIVER_ERROR, 11, "CUDA driver error") \
	X(CU_FILE_CUDA_POINTER_INVALID, 12, "not a valid memory address") \
	X(CU_FILE_CUDA_MEMORY_TYPE_INVALID, 13, "wrong kind of memory") \
	X(CU_FILE_CUDA_POINTER_RANGE_ERROR, 14, "beyond the end of the memory") \
	X(CU_FILE_CUDA_CONTEXT_MISMATCH, 15, "wrong CUDA context") \
	X(CU_FILE_INVALID_MAPPING_SIZE, 16, "larger than allowed") \
	X(CU_FILE_INVALID_MAPPING_RANGE, 17, "beyond the registered buffer") \
	X(CU_FILE_INVALID_FILE_TYPE, 18, "neither a regular file nor a block device") \
	X(CU_FILE_INVALID_FILE_OPEN_FLAG, 19, "opened with a flag that does not work here") \
	X(CU_FILE_DIO_NOT_SET, 20, "O_DIRECT is missing") \
	X(CU_FILE_INVALID_VALUE, 22, "invalid argument") \
	X(CU_FILE_MEMORY_ALREADY_REGISTERED, 23, "buffer is registered already") \
	X(CU_FILE_MEMORY_NOT_REGISTERED, 24, "buffer is not registered") \
	X(CU_FILE_PERMISSION_DENIED, 25, "permission denied") \
	X(CU_FILE_DRIVER_ALREADY_OPEN, 26, "not possible while the library is open") \
	X(CU_FILE_HANDLE_NOT_REGISTERED, 27, "not a registered file handle") \
	X(CU_FILE_HANDLE_ALREADY_REGISTERED, 28, "file is registered already") \
	X(CU_FILE_DEVICE_NOT_FOUND, 29, "device not found") \
	X(CU_FILE_INTERNAL_ERROR, 30, "internal error") \
	X(CU_FILE_GETNEWFD_FAILED, 31, "no file descriptor could be had") \
	X(CU_FILE_NVFS_SETUP_ERROR, 33, "kernel driver could not be set up") \
	X(CU_FILE_IO_DISABLED, 34, "direct IO is disabled for this file") \
	X(CU_FILE_BATCH_SUBMIT_FAILED, 35, "batch not submitted") \
	X(CU_FILE_GPU_MEMORY_PINNING_FAILED, 36, "GPU memory could not be pinned") \
	X(CU_FILE_BATCH_FULL, 37, "batch is full") \
	X(CU_FILE_ASYNC_NOT_SUPPORTED, 38, "stream IO is not supported") \
	X(CU_FILE_INTERNAL_BATCH_SETUP_ERROR, 39, "batch set-up failed") \
	X(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR, 40, "batch submission failed") \
	X(CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR, 41, "batch status failed") \
	X(CU_FILE_INTERNAL_BATCH_CANCEL_ERROR, 42, "batch cancel failed") \
	X(CU_FILE_NOMEM_ERROR, 43, "out of memory") \
	X(CU_FILE_IO_ERROR, 44, "IO error") \
	X(CU_FILE_INTERNAL_BUF_REGISTER_ERROR, 45, "buffer registration failed") \
	X(CU_FILE_HASH_OPR_ERROR, 46, "look-up failed") \
	X(CU_FILE_INVALID_CONTEXT_ERROR, 47, "invalid CUDA context") \
	X(CU_FILE_NVFS_INTERNAL_DRIVER_ERROR, 48, "kernel driver failed inside") \
	X(CU_FILE_BATCH_NOCOMPAT_ERROR, 49, "batch needs the fallback path, which is off") \
	X(CU_FILE_IO_MAX_ERROR, 50, "unknown error")

typedef enum CUfileOpError {
	CU_FILE_SUCCESS = 0,
#define PLN_X(name, n, words) name = CUFILEOP_BASE_ERR + (n),
	PLN_CUFILE_ERRORS(PLN_X)
#undef PLN_X
} CUfileOpError;

/* Words for an error code; unknown codes get a text of their own. */
static inline const char *cufileop_status_error(CUfileOpError status)
{
	switch ((int)status) {
	case 0:
		return "no error";
#define PLN_X(name, n, words) case CUFILEOP_BASE_ERR + (n): return words;
	PLN_CUFILE_ERRORS(PLN_X)
#undef PLN_X
	default:
		return "not a cuFile error";
	}
}

typedef struct CUfileError {
	CUfileOpError err;
	CUresult cu_err;	/* meaningful for CU_FILE_CUDA_DRIVER_ERROR */
} CUfileError_t;

#define IS_CUFILE_ERR(err) \
	((err) > CUFILEOP_BASE_ERR || (err) < -CUFILEOP_BASE_ERR)
#define CUFILE_ERRSTR(err) \
	cufileop_status_error((CUfileOpError)((err) < 0 ? -(err) : (err)))
#define IS_CUDA_ERR(status) ((status).err == CU_FILE_CUDA_DRIVER_ERROR)
#define CU_FILE_CUDA_ERR(status) ((status).cu_err)

/* Bit numbers in CUfileDrvProps_t.nvfs.dstatusflags */
typedef enum CUfileDriverStatusFlags {
	CU_FILE_LUSTRE_SUPPORTED = 0,
	CU_FILE_WEKAFS_SUPPORTED = 1,
	CU_FILE_NFS_SUPPORTED = 2,
	CU_FILE_GPFS_SUPPORTED = 3,
	CU_FILE_NVME_SUPPORTED = 4,
	CU_FILE_NVMEOF_SUPPORTED = 5,
	CU_FILE_SCSI_SUPPORTED = 6,
	CU_FILE_SCALEFLUX_CSD_SUPPORTED = 7,
	CU_FILE_NVMESH_SUPPORTED = 8,
	CU_FILE_BEEGFS_SUPPORTED = 9,
	CU_FILE_NVME_P2P_SUPPORTED = 11
} CUfileDriverStatusFlags_t;

/* Bit numbers in CUfileDrvProps_t.nvfs.dcontrolflags */
typedef enum CUfileDriverControlFlags {
	CU_FILE_USE_POLL_MODE = 0,
	CU_FILE_ALLOW_COMPAT_MODE = 1
} CUfileDriverControlFlags_t;

/* Bit numbers in CUfileDrvProps_t.fflags */
typedef enum CUfileFeatureFlags {
	CU_FILE_DYN_ROUTING_SUPPORTED = 0,
	CU_FILE_BATCH_IO_SUPPORTED = 1,
	CU_FILE_STREAMS_SUPPORTED = 2,
	CU_FILE_PARALLEL_IO_SUPPORTED = 3
} CUfileFeatureFlags_t;

typedef struct CUfileDrvProps {
	struct {
		unsigned int major_version;
		unsigned int minor_version;
		size_t poll_thresh_size;	/* KiB */
		size_t max_direct_io_size;	/* KiB */
		unsigned int dstatusflags;
		unsigned int dcontrolflags;
	} nvfs;
	unsigned int fflags;
	unsigned int max_device_cache_size;		/* KiB */
	unsigned int per_buffer_cache_size;		/* KiB */
	unsigned int max_device_pinned_mem_size;	/* KiB */
	unsigned int max_batch_io_size;			/* entries */
	unsigned int max_batch_io_timeout_msecs;
} CUfileDrvProps_t;

typedef struct sockaddr sockaddr_t;

typedef struct cufileRDMAInfo {
	int version;
	int desc_len;
	const char *desc_str;
} cufileRDMAInfo_t;

#define CU_FILE_RDMA_REGISTER 1
#define CU_FILE_RDMA_RELAXED_ORDERING (1 << 1)

/* Call-backs of a file system in user space: taken, never called. */
typedef struct CUfileFSOps {
	const char *(*fs_type)(const void *handle);
	int (*getRDMADeviceList)(const void *handle, sockaddr_t **hostaddrs);
	int (*getRDMADevicePriority)(const void *handle, char *dev, size_t n,
				     loff_t offset, const sockaddr_t *host);
	ssize_t (*read)(const void *handle, char *buf, size_t n, loff_t offset,
			const cufileRDMAInfo_t *info);
	ssize_t (*write)(const void *handle, const char *buf, size_t n,
			 loff_t offset, const cufileRDMAInfo_t *info);
} CUfileFSOps_t;

enum CUfileFileHandleType {
	CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
	CU_FILE_HANDLE_TYPE_OPAQUE_WIN32 = 2,	/* refused */
	CU_FILE_HANDLE_TYPE_USERSPACE_FS = 3	/* refused */
};

typedef struct CUfileDescr_t {
	enum CUfileFileHandleType type;
	union {
		int fd;
		void *handle;
	} handle;
	const CUfileFSOps_t *fs_ops;
} CUfileDescr_t;

/* A number in disguise; never an address. */
typedef void *CUfileHandle_t;

typedef enum CUFileSizeTConfigParameter_t {
	CUFILE_PARAM_PROFILE_STATS,
	CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH,
	CUFILE_PARAM_EXECUTION_MAX_IO_THREADS,
	CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
	CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM,
	CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE,
	CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB,
	CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS
} CUFileSizeTConfigParameter_t;

typedef enum CUFileBoolConfigParameter_t {
	CUFILE_PARAM_PROPERTIES_USE_POLL_MODE,
	CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE,
	CUFILE_PARAM_FORCE_COMPAT_MODE,
	CUFILE_PARAM_FS_MISC_API_CHECK_AGGRESSIVE,
	CUFILE_PARAM_EXECUTION_PARALLEL_IO,
	CUFILE_PARAM_PROFILE_NVTX,
	CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY,
	CUFILE_PARAM_USE_PCIP2PDMA,
	CUFILE_PARAM_PREFER_IO_URING,
	CUFILE_PARAM_FORCE_ODIRECT_MODE,
	CUFILE_PARAM_SKIP_TOPOLOGY_DETECTION,
	CUFILE_PARAM_STREAM_MEMOPS_BYPASS
} CUFileBoolConfigParameter_t;

typedef enum CUFileStringConfigParameter_t {
	CUFILE_PARAM_LOGGING_LEVEL,
	CUFILE_PARAM_ENV_LOGFILE_PATH,
	CUFILE_PARAM_LOG_DIR
} CUFileStringConfigParameter_t;

CUfileError_t cuFileDriverOpen(void);
CUfileError_t cuFileDriverClose_v2(void);
#define cuFileDriverClose cuFileDriverClose_v2
long cuFileUseCount(void);
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props);
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size);
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size);
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);
CUfileError_t cuFileGetVersion(int *version);

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);
void cuFileHandleDeregister(CUfileHandle_t fh);
CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length,
				int flags);
CUfileError_t cuFileBufDeregister(const void *bufPtr_base);

/*
 * Bytes moved; -1 with errno for an error of the system; the negative of a
 * CUfileOpError for everything else.  A read returns fewer bytes at the end of
 * the file, a write when the device is full.
 */
ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size,
		   off_t file_offset, off_t bufPtr_offset);
ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size,
		    off_t file_offset, off_t bufPtr_offset);

CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t *value);
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param,
				     bool *value);
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param,
				       char *desc_str, int len);
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t value);
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param,
				     bool value);
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param,
				       const char *desc_str);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUFILE_H */
