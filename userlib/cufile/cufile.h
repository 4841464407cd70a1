/* SPDX-License-Identifier: MIT */
/*
 * The cuFile interface of Peerlane's libcufile.so.0: names, numbers and layouts. A
 * program built with this header and one built with NVIDIA's use the same binary
 * interface. The text is Peerlane's own. tests/cufile/abi.sh compares the two headers
 * if a machine has both.
 *
 * functions.list names all public functions.
 *
 * Any thread may make any call.  A child of a process that had the library open
 * cannot use it: its calls fail with CU_FILE_DRIVER_NOT_INITIALIZED, calls about
 * batches fail as for a batch that does not exist, and functions of type void do
 * nothing.
 */
#ifndef PEERLANE_CUFILE_H
#define PEERLANE_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#ifdef PEERLANE_CUFILE_WITHOUT_CUDA_H
typedef int CUresult;
typedef struct CUstream_st *CUstream;
#else
#include <cuda.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CUFILEOP_BASE_ERR 5000

/* name, offset from CUFILEOP_BASE_ERR, Peerlane's text */
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
	X(CU_FILE_GETNEWFD_FAILED, 31, "no free file descriptor") \
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
	X(CU_FILE_NVFS_INTERNAL_DRIVER_ERROR, 48, "internal error of the kernel driver") \
	X(CU_FILE_BATCH_NOCOMPAT_ERROR, 49, "batch needs the fallback path, which is off") \
	X(CU_FILE_IO_MAX_ERROR, 50, "unknown error")

typedef enum CUfileOpError {
	CU_FILE_SUCCESS = 0,
#define PLN_X(name, n, words) name = CUFILEOP_BASE_ERR + (n),
	PLN_CUFILE_ERRORS(PLN_X)
#undef PLN_X
} CUfileOpError;

/* The text of an error code; unknown codes have one text. */
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
	CU_FILE_NVME_P2P_SUPPORTED = 11,
	CU_FILE_SCATEFS_SUPPORTED = 12,
	CU_FILE_VIRTIOFS_SUPPORTED = 13,
	CU_FILE_MAX_TARGET_TYPES = 14
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
	CU_FILE_PARALLEL_IO_SUPPORTED = 3,
	CU_FILE_P2P_SUPPORTED = 4
} CUfileFeatureFlags_t;

/* Bit numbers: how data may go to and from GPU memory */
typedef enum CUfileP2PFlags {
	CUFILE_P2PDMA = 0,
	CUFILE_NVFS = 1,
	CUFILE_DMABUF = 2,
	CUFILE_C2C = 3,
	CUFILE_NVIDIA_PEERMEM = 4
} CUfileP2PFlags_t;

#define CU_FILE_P2P_FLAG_PCI_P2PDMA ((CUfileP2PFlags_t)(1 << CUFILE_P2PDMA))
#define CU_FILE_P2P_FLAG_NVFS ((CUfileP2PFlags_t)(1 << CUFILE_NVFS))
#define CU_FILE_P2P_FLAG_DMABUF ((CUfileP2PFlags_t)(1 << CUFILE_DMABUF))
#define CU_FILE_P2P_FLAG_C2C ((CUfileP2PFlags_t)(1 << CUFILE_C2C))

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

/* Call-backs of a file system in user space: accepted, never called. */
typedef struct CUfileFSOps {
	const char *(*fs_type)(const void *handle);
	int (*getRDMADeviceList)(const void *handle, sockaddr_t **hostaddrs);
	int (*getRDMADevicePriority)(const void *handle, char *dev, size_t n,
				     off_t offset, const sockaddr_t *host);
	ssize_t (*read)(const void *handle, char *buf, size_t n, off_t offset,
			const cufileRDMAInfo_t *info);
	ssize_t (*write)(const void *handle, const char *buf, size_t n,
			 off_t offset, const cufileRDMAInfo_t *info);
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

/* A number, not an address. */
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

typedef enum CUFileArrayConfigParameter_t {
	CUFILE_PARAM_POSIX_POOL_SLAB_SIZE_KB,
	CUFILE_PARAM_POSIX_POOL_SLAB_COUNT,
	CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_SIZE_KB,
	CUFILE_PARAM_GPU_BOUNCE_BUFFER_SLAB_COUNT
} CUFileArrayConfigParameter_t;

/* A piece of memory, of a GPU or of the host */
typedef struct CUfileIOVec {
	void *base;
	size_t len;
} CUfileIOVec_t;

typedef enum CUfileOpcode {
	CUFILE_READ = 0,
	CUFILE_WRITE = 1
} CUfileOpcode_t;

/* The state of an entry of a batch */
typedef enum CUFILEStatus_enum {
	CUFILE_WAITING = 0x01,
	CUFILE_PENDING = 0x02,
	CUFILE_INVALID = 0x04,
	CUFILE_CANCELED = 0x08,
	CUFILE_COMPLETE = 0x10,
	CUFILE_TIMEOUT = 0x20,
	CUFILE_FAILED = 0x40
} CUfileStatus_t;

typedef enum cufileBatchMode {
	CUFILE_BATCH = 1
} CUfileBatchMode_t;

/* One transfer of a batch */
typedef struct CUfileIOParams {
	CUfileBatchMode_t mode;
	union {
		struct {
			void *devPtr_base;
			off_t file_offset;
			off_t devPtr_offset;
			size_t size;
		} batch;
	} u;
	CUfileHandle_t fh;
	CUfileOpcode_t opcode;
	void *cookie;		/* returned in the event */
} CUfileIOParams_t;

typedef struct CUfileIOEvents {
	void *cookie;
	CUfileStatus_t status;
	size_t ret;		/* bytes, or the negative of an error */
} CUfileIOEvents_t;

typedef void *CUfileBatchHandle_t;

/* Flags of cuFileStreamRegister(): the values that the library reads at the time of the call. */
#define CU_FILE_STREAM_FIXED_BUF_OFFSET 1
#define CU_FILE_STREAM_FIXED_FILE_OFFSET 2
#define CU_FILE_STREAM_FIXED_FILE_SIZE 4
#define CU_FILE_STREAM_PAGE_ALIGNED_INPUTS 8	/* a hint */

#define CUFILE_GPU_UUID_LEN 16

typedef struct CUfileOpCounter {
	uint64_t ok;
	uint64_t err;
} CUfileOpCounter_t;

/* The layout of 1.15 to 1.18 */
typedef struct CUfileStatsLevel1 {
	CUfileOpCounter_t read_ops;
	CUfileOpCounter_t write_ops;
	CUfileOpCounter_t hdl_register_ops;
	CUfileOpCounter_t hdl_deregister_ops;
	CUfileOpCounter_t buf_register_ops;
	CUfileOpCounter_t buf_deregister_ops;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t read_bw_bytes_per_sec;
	uint64_t write_bw_bytes_per_sec;
	uint64_t read_lat_avg_us;
	uint64_t write_lat_avg_us;
	uint64_t read_ops_per_sec;
	uint64_t write_ops_per_sec;
	uint64_t read_lat_sum_us;
	uint64_t write_lat_sum_us;
	CUfileOpCounter_t batch_submit_ops;
	CUfileOpCounter_t batch_complete_ops;
	CUfileOpCounter_t batch_setup_ops;
	CUfileOpCounter_t batch_cancel_ops;
	CUfileOpCounter_t batch_destroy_ops;
	CUfileOpCounter_t batch_enqueued_ops;
	CUfileOpCounter_t batch_posix_enqueued_ops;	/* entries that threads of the library execute */
	CUfileOpCounter_t batch_processed_ops;
	CUfileOpCounter_t batch_posix_processed_ops;	/* entries that they have completed */
	CUfileOpCounter_t batch_nvfs_submit_ops;
	CUfileOpCounter_t batch_p2p_submit_ops;		/* entries that the io_uring executes */
	CUfileOpCounter_t batch_aio_submit_ops;
	CUfileOpCounter_t batch_iouring_submit_ops;	/* the same */
	CUfileOpCounter_t batch_mixed_io_submit_ops;
	CUfileOpCounter_t batch_total_submit_ops;
	uint64_t batch_read_bytes;
	uint64_t batch_write_bytes;
	uint64_t batch_read_bw_bytes;
	uint64_t batch_write_bw_bytes;
	uint64_t batch_submit_lat_avg_us;
	uint64_t batch_completion_lat_avg_us;
	uint64_t batch_submit_ops_per_sec;
	uint64_t batch_complete_ops_per_sec;
	uint64_t batch_submit_lat_sum_us;
	uint64_t batch_completion_lat_sum_us;
	uint64_t last_batch_read_bytes;
	uint64_t last_batch_write_bytes;
} CUfileStatsLevel1_t;

/*
 * Histograms of sizes: the first field counts transfers below 4 KiB, field n those
 * from 4 KiB << (n - 1) to below twice that size.
 */
typedef struct CUfileStatsLevel2 {
	CUfileStatsLevel1_t basic;
	uint64_t read_size_kb_hist[32];
	uint64_t write_size_kb_hist[32];
} CUfileStatsLevel2_t;

typedef struct CUfilePerGpuStats {
	char uuid[CUFILE_GPU_UUID_LEN];
	uint64_t read_bytes;
	uint64_t read_bw_bytes_per_sec;
	/* percent of the time since the start, of all transfers together, up to 100 */
	uint64_t read_utilization;
	uint64_t read_duration_us;
	uint64_t n_total_reads;
	uint64_t n_p2p_reads;
	uint64_t n_nvfs_reads;
	uint64_t n_posix_reads;		/* staged, in whole or in part */
	uint64_t n_unaligned_reads;	/* offset or size is not a multiple of the file's block size */
	uint64_t n_dr_reads;
	uint64_t n_sparse_regions;
	uint64_t n_inline_regions;
	uint64_t n_reads_err;
	uint64_t writes_bytes;
	uint64_t write_bw_bytes_per_sec;
	uint64_t write_utilization;
	uint64_t write_duration_us;
	uint64_t n_total_writes;
	uint64_t n_p2p_writes;
	uint64_t n_nvfs_writes;
	uint64_t n_posix_writes;
	uint64_t n_unaligned_writes;
	uint64_t n_dr_writes;
	uint64_t n_writes_err;
	uint64_t n_mmap;		/* registrations of buffers */
	uint64_t n_mmap_ok;
	uint64_t n_mmap_err;
	uint64_t n_mmap_free;
	uint64_t reg_bytes;
} CUfilePerGpuStats_t;

typedef struct CUfileStatsLevel3 {
	CUfileStatsLevel2_t detailed;
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[16];
} CUfileStatsLevel3_t;

/**
 * cuFileDriverOpen - open the library
 *
 * The library counts opens: each needs a cuFileDriverClose(). The first open reads the
 * settings (see libcufile-peerlane(7)) and loads libcuda.so.1. Registering a file or a
 * buffer, and some other calls, open the library if it is closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_INVALID_PROPS: a setting is wrong; the log names it.
 * - CU_FILE_PLATFORM_NOT_SUPPORTED: there is no usable CUDA driver.
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the process is a child of one that had it open.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverOpen(void);

/**
 * cuFileDriverClose_v2 - close the library
 *
 * The last close waits for all transfers in progress, also those of batches and
 * streams, and then releases all handles, buffers, batches and streams. Transfers in a
 * stream that have not begun end with -CU_FILE_DRIVER_NOT_INITIALIZED.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: it is not open.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverClose_v2(void);

/**
 * cuFileDriverClose - close the library
 *
 * A macro: programs that call it call cuFileDriverClose_v2().
 *
 * Return: as cuFileDriverClose_v2()
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverClose(void);
#define cuFileDriverClose cuFileDriverClose_v2

/**
 * cuFileUseCount - the number of opens
 *
 * The call does not fail, and does not open the library.
 *
 * Return: the number of opens without a close; 0 when the library is closed.
 *
 * Since cuFile 1.2.
 *
 * See also: libcufile-peerlane(7)
 */
long cuFileUseCount(void);

/**
 * cuFileDriverGetProperties - limits and supported features
 * @props: filled in; sizes are in KiB
 *
 * CU_FILE_NVME_P2P_SUPPORTED and CU_FILE_P2P_SUPPORTED are set after the first p2p
 * transfer of this process: the library does not know earlier. The call opens the
 * library if it is closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @props is NULL.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props);

/**
 * cuFileDriverSetPollMode - wait by polling
 * @poll: whether to poll
 * @poll_threshold_size: the largest size to poll for, in KiB, in steps of 4
 *
 * The library stores the values, and cuFileDriverGetProperties() returns them; they have
 * no other effect. A synchronous transfer of this library sleeps in the kernel, which
 * polls the drive if it was configured to. If the library is closed, the values apply
 * from the next open on.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_UNSUPPORTED_LIMIT: the size is out of range.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverSetPollMode(bool poll, size_t poll_threshold_size);

/**
 * cuFileDriverSetMaxDirectIOSize - size of one request to a drive
 * @max_direct_io_size: KiB, from 64, in steps of 4
 *
 * The library splits larger transfers into pieces of this size.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_UNSUPPORTED_LIMIT: it is out of range.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t max_direct_io_size);

/**
 * cuFileDriverSetMaxCacheSize - GPU memory for the library itself
 * @max_cache_size: KiB for each context, in steps of 4
 *
 * The library uses it only for unaligned transfers that must not be staged in host memory.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_UNSUPPORTED_LIMIT: it is out of range.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverSetMaxCacheSize(size_t max_cache_size);

/**
 * cuFileDriverSetMaxPinnedMemSize - limit of mapped GPU memory
 * @max_pinned_size: KiB, from 64, in steps of 4: of all GPUs together
 *
 * The library unmaps memory beyond the limit to make new mappings.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_UNSUPPORTED_LIMIT: it is out of range.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t max_pinned_size);

/**
 * cuFileGetVersion - version of the interface
 * @version: 1000 times the major and 10 times the minor number
 *
 * It is the highest version of cuFile whose public functions the library has all.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @version is NULL.
 *
 * Since cuFile 1.8.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetVersion(int *version);

/**
 * cuFileDriverSetP2PFlags - allow p2p for a kind of storage
 * @status_flag: the kind
 * @p2p_flags: CU_FILE_P2P_FLAG_PCI_P2PDMA, or 0, which changes nothing
 *
 * The library stores the flags until the last close, and cuFileDriverGetP2PFlags()
 * returns them; they have no other effect: this library tries p2p for every kind of
 * storage, unless peerlane.use_pci_p2pdma is off. The library may be closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @status_flag is invalid, or @p2p_flags has another flag.
 *
 * Since cuFile 1.16.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t p2p_flags);

/**
 * cuFileDriverGetP2PFlags - the flags that cuFileDriverSetP2PFlags() has set
 * @status_flag: the kind of storage
 * @p2p_flags: the flags, 0 when none was set
 *
 * pln_file_stats() reports the paths that transfers took.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @status_flag is invalid, or @p2p_flags is NULL.
 *
 * Since cuFile 1.16.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
				      CUfileP2PFlags_t *p2p_flags);

/**
 * cuFileGetBARSizeInKB - size of the window into a GPU's memory
 * @gpuIndex: CUDA's ordinal of the GPU
 * @barSize: KiB of BAR1, from the PCI bus
 *
 * The call opens the library if it is closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: there is no such GPU, or @barSize is NULL.
 * - CU_FILE_DEVICE_NOT_FOUND: the GPU is not on this machine's PCI bus.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize);

/**
 * cuFileExportPCIeTopology - write the PCI topology of GPUs, NICs and drives
 * @filename: the file, which the call overwrites
 *
 * The file is JSON, in Peerlane's own format, because the format of NVIDIA's library is
 * not public. "devices" has label, kind (gpu, nic, nvme), pci_address, name and
 * numa_node (null if the system does not report it) of each device; "pairs" has, for
 * each GPU and each other device by their labels, relation, distance, verdict and
 * reason, which peerlane-topo(1) explains. The call loads libpeerlane.so.0, and does
 * not open the library. If it cannot read the topology, it does not change the file.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @filename is NULL or empty, or cannot be opened for
 *   writing.
 * - CU_FILE_IO_ERROR: it cannot be written.
 * - CU_FILE_NOMEM_ERROR: out of memory.
 * - CU_FILE_INTERNAL_ERROR: libpeerlane.so.0 is not there, or there is no PCI
 *   bus; the log has the reason.
 *
 * Since cuFile 1.17.
 *
 * See also: pln_topo_open(), peerlane-topo(1), libcufile-peerlane(7)
 */
CUfileError_t cuFileExportPCIeTopology(const char *filename);

/**
 * cuFileHandleRegister - make a handle of a file
 * @fh: the handle
 * @descr: type CU_FILE_HANDLE_TYPE_OPAQUE_FD and an open descriptor, with O_DIRECT or without
 *
 * The library keeps its own descriptors: the program may close this one. The handle is
 * valid until cuFileHandleDeregister() or the last cuFileDriverClose().
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a bad descriptor or argument.
 * - CU_FILE_INVALID_FILE_TYPE: neither a regular file nor a block device.
 * - CU_FILE_INVALID_FILE_OPEN_FLAG: opened with O_APPEND or another unsupported flag.
 * - CU_FILE_HANDLE_ALREADY_REGISTERED: this descriptor has a handle.
 * - CU_FILE_IO_NOT_SUPPORTED: the library does not support this type of handle.
 * - CU_FILE_GETNEWFD_FAILED: no descriptors are free.
 * - CU_FILE_NOMEM_ERROR: no memory or no handles are left.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr);

/**
 * cuFileHandleDeregister - release a handle
 * @fh: the handle
 *
 * Transfers in progress complete, and the library closes the file after the last of
 * them. It ignores an unknown handle.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
void cuFileHandleDeregister(CUfileHandle_t fh);

/**
 * cuFileBufRegister - register memory for transfers
 * @bufPtr_base: its first byte, of a GPU or of the host
 * @length: its bytes
 * @flags: 0; others are hints for RDMA storage
 *
 * Registration is optional. Transfers that name a registered base fail if they exceed
 * the buffer. The library maps GPU memory for direct transfers, as far as BAR1 has free
 * space; if it cannot, the first transfer reports the reason. The program still owns
 * the memory.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no address, or no length.
 * - CU_FILE_CUDA_POINTER_RANGE_ERROR: @length exceeds the memory at this address.
 * - CU_FILE_MEMORY_ALREADY_REGISTERED: this base is registered.
 * - CU_FILE_NOMEM_ERROR: out of memory.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBufRegister(const void *bufPtr_base, size_t length,
				int flags);

/**
 * cuFileBufDeregister - end a registration
 * @bufPtr_base: as registered
 *
 * The library removes its mappings of the memory.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: NULL.
 * - CU_FILE_MEMORY_NOT_REGISTERED: it is not registered.
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBufDeregister(const void *bufPtr_base);

/**
 * cuFileRead - read from a file into memory
 * @fh: handle of the file
 * @bufPtr_base: memory; the base of a registered buffer if it is one
 * @size: bytes
 * @file_offset: in the file, in bytes
 * @bufPtr_offset: from @bufPtr_base, in bytes
 *
 * @size may have any alignment: the library moves whole blocks directly, and stages the
 * ends. The memory is of a GPU or of the host. The transfer is not ordered with CUDA
 * streams.
 * At the end of the file it returns fewer bytes.
 *
 * Return: bytes moved; -1 with errno for an error of the system; the negative of a
 * CUfileOpError for anything else. libcufile-peerlane(7) has them.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
ssize_t cuFileRead(CUfileHandle_t fh, void *bufPtr_base, size_t size,
		   off_t file_offset, off_t bufPtr_offset);

/**
 * cuFileWrite - write from memory to a file
 * @fh: handle of the file
 * @bufPtr_base: memory; the base of a registered buffer if it is one
 * @size: bytes
 * @file_offset: in the file, in bytes
 * @bufPtr_offset: from @bufPtr_base, in bytes
 *
 * @size may have any alignment: the library moves whole blocks directly, and stages the
 * ends. The memory is of a GPU or of the host. The transfer is not ordered with CUDA
 * streams.
 * The call does not sync data to the medium.
 *
 * Return: bytes moved; -1 with errno for an error of the system; the negative of a
 * CUfileOpError for anything else. libcufile-peerlane(7) has them.
 *
 * Since cuFile 1.0.
 *
 * See also: libcufile-peerlane(7)
 */
ssize_t cuFileWrite(CUfileHandle_t fh, const void *bufPtr_base, size_t size,
		    off_t file_offset, off_t bufPtr_offset);

/**
 * cuFileReadv - read into pieces of memory in one call
 * @fh: handle of the file
 * @iov: pieces of memory, of GPUs or of the host
 * @iovcnt: their number; a piece of 0 bytes is ignored
 * @file_offset: in the file, in bytes
 * @flags: 0
 *
 * The pieces are consecutive in the file. The call moves one after the other, each as
 * cuFileRead() does. If a piece ends within a block, the next one is unaligned. The
 * pieces can belong to different GPUs.
 *
 * Return: bytes moved, fewer if a piece moved fewer or a later piece failed; the result
 * of cuFileRead() if the first piece fails; -CU_FILE_INVALID_VALUE, with nothing moved, if
 * a piece is invalid or @flags is not 0.
 *
 * Since cuFile 1.19.
 *
 * See also: libcufile-peerlane(7)
 */
ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		    off_t file_offset, unsigned int flags);

/**
 * cuFileWritev - write from pieces of memory in one call
 * @fh: handle of the file
 * @iov: pieces of memory, of GPUs or of the host
 * @iovcnt: their number; a piece of 0 bytes is ignored
 * @file_offset: in the file, in bytes
 * @flags: 0
 *
 * The pieces are consecutive in the file. The call moves one after the other, each as
 * cuFileWrite() does. If a piece ends within a block, the next one is unaligned.
 * Another writer can write between two pieces. A part of a failed piece may have been
 * written.
 *
 * Return: bytes moved, fewer if a piece moved fewer or a later piece failed; the result
 * of cuFileWrite() if the first piece fails; -CU_FILE_INVALID_VALUE, with nothing moved, if
 * a piece is invalid or @flags is not 0.
 *
 * Since cuFile 1.19.
 *
 * See also: libcufile-peerlane(7)
 */
ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t iovcnt,
		    off_t file_offset, unsigned int flags);

/**
 * cuFileBatchIOSetUp - make a batch
 * @batch_idp: the batch
 * @nr: entries that it holds, from 1 to properties.io_batchsize
 *
 * A program can submit to a batch any number of times. The batch is valid until
 * cuFileBatchIODestroy() or the last close. The call opens the library if it is closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @batch_idp is NULL, or @nr is out of range.
 * - CU_FILE_NOMEM_ERROR: out of memory.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.6.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch_idp, unsigned int nr);

/**
 * cuFileBatchIOSubmit - start transfers
 * @batch_idp: the batch
 * @nr: entries of @iocbp
 * @iocbp: the transfers, in any order; not used after the call
 * @flags: 0; others have no effect
 *
 * The call does not wait for the transfers. It sends transfers that p2p moves in one
 * piece to the drive at once, up to execution.max_io_queue_depth, at most 4095;
 * peerlane.max_io_threads threads execute the others. The call starts either all
 * transfers or none. It refuses all of them for a wrong mode or opcode, an unknown
 * handle, a file that is not opened for the direction, lack of memory, negative
 * offsets, a range beyond the registered buffer, or more entries than are free in the
 * batch. An entry is free again after the program has taken its event.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR: refused, nothing was started; the log has
 *   the reason at level debug.
 *
 * Since cuFile 1.6.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch_idp, unsigned int nr,
				  CUfileIOParams_t *iocbp, unsigned int flags);

/**
 * cuFileBatchIOGetStatus - take the events of completed transfers
 * @batch_idp: the batch
 * @min_nr: the number of events to wait for; if fewer are in progress, wait for all
 * @nr: in: size of @iocbp in events; out: events taken
 * @iocbp: the events, in the order in which the transfers ended
 * @timeout: the longest time to wait; NULL: no limit
 *
 * An event has the cookie of its entry, CUFILE_COMPLETE and the bytes moved,
 * CUFILE_CANCELED and 0, or CUFILE_FAILED and in ret the negative of an errno or of a
 * CUfileOpError. The call returns each event once. Several threads may take events of
 * one batch.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @nr or @iocbp is NULL, @min_nr is more than @nr, or @timeout is invalid.
 * - CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR: no such batch.
 *
 * Since cuFile 1.6.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch_idp,
				     unsigned int min_nr, unsigned int *nr,
				     CUfileIOEvents_t *iocbp,
				     struct timespec *timeout);

/**
 * cuFileBatchIOCancel - cancel the entries that have not begun
 * @batch_idp: the batch
 *
 * Entries that have not begun end as CUFILE_CANCELED; others continue to their end. Each
 * entry has an event. The call ignores an unknown batch.
 *
 * Return: CU_FILE_SUCCESS.
 *
 * Since cuFile 1.6.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch_idp);

/**
 * cuFileBatchIODestroy - release a batch
 * @batch_idp: the batch
 *
 * The call cancels entries that have not begun, and waits for the others: after it, no
 * transfer accesses their memory. Events that the program has not taken are lost. The
 * call ignores an unknown batch.
 *
 * Since cuFile 1.6.
 *
 * See also: libcufile-peerlane(7)
 */
void cuFileBatchIODestroy(CUfileBatchHandle_t batch_idp);

/**
 * cuFileReadAsync - read in the order of a stream
 * @fh: handle of the file
 * @bufPtr_base: memory, as in cuFileRead()
 * @size_p: bytes
 * @file_offset_p: in the file
 * @bufPtr_offset_p: from @bufPtr_base
 * @bytes_read_p: set to 0 by the call, and to the result when the transfer ends
 * @stream: stream, or NULL for the default one
 *
 * The transfer begins when earlier work in the stream has ended; later work in it
 * waits for the transfer. When it begins, the library reads @size_p, @file_offset_p and
 * @bufPtr_offset_p, unless cuFileStreamRegister() declared them fixed; they and the
 * result must be valid until the transfer ends. The result is that of cuFileRead(); -1
 * means a system error. The result stays 0 if CUDA abandons the stream before, because
 * of an error or with its context: check CUDA's status of the stream first.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL.
 * - CU_FILE_HANDLE_NOT_REGISTERED: no such handle.
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_ASYNC_NOT_SUPPORTED: the CUDA driver has no cuLaunchHostFunc(), or the
 *   stream is being captured into a graph.
 * - CU_FILE_CUDA_DRIVER_ERROR: the stream does not accept it; cu_err has the reason.
 * - CU_FILE_NOMEM_ERROR: out of memory or threads; or CUDA has neither a stream nor pinned
 *   memory for a copy of the library's, which is under way and would wait for this one.
 *
 * Since cuFile 1.7.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p,
			      off_t *file_offset_p, off_t *bufPtr_offset_p,
			      ssize_t *bytes_read_p, CUstream stream);

/**
 * cuFileWriteAsync - write in the order of a stream
 * @fh: handle of the file
 * @bufPtr_base: memory, as in cuFileWrite()
 * @size_p: bytes
 * @file_offset_p: in the file
 * @bufPtr_offset_p: from @bufPtr_base
 * @bytes_written_p: set to 0 by the call, and to the result when the transfer ends
 * @stream: stream, or NULL for the default one
 *
 * The transfer begins when earlier work in the stream has ended; later work in it
 * waits for the transfer. When it begins, the library reads @size_p, @file_offset_p and
 * @bufPtr_offset_p, unless cuFileStreamRegister() declared them fixed; they and the
 * result must be valid until the transfer ends. The result is that of cuFileWrite(); -1
 * means a system error. The result stays 0 if CUDA abandons the stream before, because
 * of an error or with its context: check CUDA's status of the stream first.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL.
 * - CU_FILE_HANDLE_NOT_REGISTERED: no such handle.
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_ASYNC_NOT_SUPPORTED: the CUDA driver has no cuLaunchHostFunc(), or the
 *   stream is being captured into a graph.
 * - CU_FILE_CUDA_DRIVER_ERROR: the stream does not accept it; cu_err has the reason.
 * - CU_FILE_NOMEM_ERROR: out of memory or threads; or CUDA has neither a stream nor pinned
 *   memory for a copy of the library's, which is under way and would wait for this one.
 *
 * Since cuFile 1.7.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *bufPtr_base, size_t *size_p,
			      off_t *file_offset_p, off_t *bufPtr_offset_p,
			      ssize_t *bytes_written_p, CUstream stream);

/**
 * cuFileStreamRegister - declare values of a stream's transfers as fixed
 * @stream: stream, or NULL for the default one
 * @flags: of CU_FILE_STREAM_FIXED_BUF_OFFSET, CU_FILE_STREAM_FIXED_FILE_OFFSET,
 *	CU_FILE_STREAM_FIXED_FILE_SIZE and CU_FILE_STREAM_PAGE_ALIGNED_INPUTS
 *
 * Registration is optional. The library reads fixed values at the time of the call, not
 * when the transfer begins. The function opens the library if it is closed. The
 * registration lasts until cuFileStreamDeregister(), the end of the stream or the last
 * close.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: registered already, or an unknown flag.
 * - CU_FILE_NOMEM_ERROR: out of memory.
 * - what cuFileDriverOpen() returns
 *
 * Since cuFile 1.7.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileStreamRegister(CUstream stream, unsigned int flags);

/**
 * cuFileStreamDeregister - end the registration of a stream
 * @stream: as registered
 *
 * The call does not wait for transfers in the stream.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: it is not registered.
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 *
 * Since cuFile 1.7.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileStreamDeregister(CUstream stream);

/**
 * cuFileGetParameterSizeT - read a setting
 * @param: the setting
 * @value: its value
 *
 * Returns the current value; if the library is closed, the one that the next open uses.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting, or @value is NULL.
 * - CU_FILE_DRIVER_INVALID_PROPS: the settings file is invalid.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t *value);

/**
 * cuFileGetParameterBool - read a setting
 * @param: the setting
 * @value: its value
 *
 * Returns the current value; if the library is closed, the one that the next open uses.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting, or @value is NULL.
 * - CU_FILE_DRIVER_INVALID_PROPS: the settings file is invalid.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param,
				      bool *value);

/**
 * cuFileGetParameterString - read a setting
 * @param: the setting
 * @desc_str: its value, with a 0 at the end
 * @len: size of @desc_str in bytes
 *
 * Returns the current value; if the library is closed, the one that the next open uses.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting, NULL, or @len is too small.
 * - CU_FILE_DRIVER_INVALID_PROPS: the settings file is invalid.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetParameterString(CUFileStringConfigParameter_t param,
				       char *desc_str, int len);

/**
 * cuFileSetParameterSizeT - change a setting
 * @param: the setting
 * @value: its value
 *
 * The value applies from the next open on and overrides file and environment.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting.
 * - CU_FILE_DRIVER_UNSUPPORTED_LIMIT: out of range.
 * - CU_FILE_DRIVER_ALREADY_OPEN: the library is open.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param,
				      size_t value);

/**
 * cuFileSetParameterBool - change a setting
 * @param: the setting
 * @value: its value
 *
 * The value applies from the next open on and overrides file and environment.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting.
 * - CU_FILE_DRIVER_ALREADY_OPEN: the library is open.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param,
				      bool value);

/**
 * cuFileSetParameterString - change a setting
 * @param: the setting
 * @desc_str: its value
 *
 * The value applies from the next open on and overrides file and environment.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting, NULL, too long, or no such level.
 * - CU_FILE_DRIVER_ALREADY_OPEN: the library is open.
 *
 * Since cuFile 1.14.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileSetParameterString(CUFileStringConfigParameter_t param,
				       const char *desc_str);

/**
 * cuFileGetParameterMinMaxValue - the range of a setting
 * @param: the setting
 * @min_value: least value
 * @max_value: greatest value
 *
 * The library may be open or closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such setting, or a pointer is NULL.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t
cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param,
			      size_t *min_value, size_t *max_value);

/**
 * cuFileSetParameterPosixPoolSlabArray - sizes of staging buffers in host memory
 * @size_values: KiB, from 1 to 16777216
 * @count_values: the number of buffers of each size, from 1 to 65536
 * @len: the number of sizes, from 1 to 8
 *
 * They apply from the next open on, and override the file.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL, or a value is out of range.
 * - CU_FILE_DRIVER_ALREADY_OPEN: the library is open.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t
cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
				     const size_t *count_values, int len);

/**
 * cuFileGetParameterPosixPoolSlabArray - sizes of staging buffers in host memory
 * @size_values: KiB
 * @count_values: the number of buffers of each size
 * @len: the number of sizes, which must be exact
 *
 * Returns the current value; if the library is closed, the one that the next open uses.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL, or there are not @len sizes.
 * - CU_FILE_DRIVER_INVALID_PROPS: the settings file is invalid.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t
cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values,
				     int len);

/**
 * cuFileSetParameterGpuBounceBufferSlabArray - sizes of staging buffers in GPU memory
 * @size_values: KiB, from 1 to 16777216
 * @count_values: the number of buffers of each size, from 1 to 65536
 * @len: the number of sizes, from 1 to 8
 *
 * They apply from the next open on, and override the file. This library has no such
 * buffers: it only stores the values and returns them.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL, or a value is out of range.
 * - CU_FILE_DRIVER_ALREADY_OPEN: the library is open.
 *
 * Since cuFile 1.17.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t
cuFileSetParameterGpuBounceBufferSlabArray(const size_t *size_values,
				     const size_t *count_values, int len);

/**
 * cuFileGetParameterGpuBounceBufferSlabArray - sizes of staging buffers in GPU memory
 * @size_values: KiB
 * @count_values: the number of buffers of each size
 * @len: the number of sizes, which must be exact
 *
 * Returns the current value; if the library is closed, the one that the next open uses.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: a pointer is NULL, or there are not @len sizes.
 * - CU_FILE_DRIVER_INVALID_PROPS: the settings file is invalid.
 *
 * Since cuFile 1.17.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t
cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values, size_t *count_values,
				     int len);

/**
 * cuFileSetStatsLevel - set the level of statistics
 * @level: 0 none, 1 operations and bytes, 2 also sizes, 3 also each GPU
 *
 * The library may be open or closed. The level overrides profile.cufile_stats of
 * cufile.json.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: no such level.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileSetStatsLevel(int level);

/**
 * cuFileGetStatsLevel - read the level of statistics
 * @level: see cuFileSetStatsLevel()
 *
 * The library may be open or closed.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_INVALID_VALUE: @level is NULL.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetStatsLevel(int *level);

/**
 * cuFileStatsStart - start counting
 *
 * The first open also starts counting if the level is above 0. Rates refer to the time
 * during which the library counted.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_INVALID_VALUE: the level is 0.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileStatsStart(void);

/**
 * cuFileStatsStop - stop counting
 *
 * The counts can be read until cuFileStatsReset() or the last close.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileStatsStop(void);

/**
 * cuFileStatsReset - set the counts to zero
 *
 * Counting continues if it was on.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileStatsReset(void);

/**
 * cuFileGetStatsL1 - operations and bytes
 * @stats: filled in
 *
 * The counters are of all threads; while threads transfer, they are not of one moment.
 * Fields of paths that this library does not have are 0. Times are in microseconds.
 * read_ops and write_ops count all transfers, also those of batches and streams.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_INVALID_VALUE: @stats is NULL, or the level is below 1.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetStatsL1(CUfileStatsLevel1_t *stats);

/**
 * cuFileGetStatsL2 - operations, bytes and sizes
 * @stats: filled in
 *
 * The counters are of all threads; while threads transfer, they are not of one moment.
 * Fields of paths that this library does not have are 0. Times are in microseconds.
 * read_ops and write_ops count all transfers, also those of batches and streams.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_INVALID_VALUE: @stats is NULL, or the level is below 2.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetStatsL2(CUfileStatsLevel2_t *stats);

/**
 * cuFileGetStatsL3 - operations, bytes and sizes, by GPU
 * @stats: filled in
 *
 * The counters are of all threads; while threads transfer, they are not of one moment.
 * Fields of paths that this library does not have are 0. Times are in microseconds.
 * read_ops and write_ops count all transfers, also those of batches and streams.
 *
 * Return: CU_FILE_SUCCESS, or:
 *
 * - CU_FILE_DRIVER_NOT_INITIALIZED: the library is closed.
 * - CU_FILE_INVALID_VALUE: @stats is NULL, or the level is below 3.
 *
 * Since cuFile 1.15.
 *
 * See also: libcufile-peerlane(7)
 */
CUfileError_t cuFileGetStatsL3(CUfileStatsLevel3_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_CUFILE_H */
