/* SPDX-License-Identifier: MIT */
/*
 * The management interface NVML as libnvidia-ml.so.1 of Peerlane serves it for
 * emulated GPUs: names, numbers and layouts, written down in our own words so
 * that a program built with this header and one built with NVIDIA's are the same
 * to the library.  No CUDA Toolkit is needed.
 *
 * The facts are public: names, numbers and layouts are those of the Go bindings
 * github.com/NVIDIA/go-nvml (const.go, types_gen.go, nvml.go), what a function
 * returns is of docs.nvidia.com/deploy/nvml-api, and which functions are called
 * of NCCL, UCX and libfabric.  tests/nvml/abi.sh compares this header with
 * NVIDIA's where a machine has it; that of CUDA 13.0 agrees in all numbers, sizes
 * and signatures.  Answers are those of NVIDIA's library on an H100, driver
 * 580.159.04 (test/conform.golden); where that one crashes on NULL, this one gives
 * INVALID_ARGUMENT.
 *
 * For all functions, if their comment says nothing else:
 *
 * Return: NVML_SUCCESS, or an error, and then nothing is written but what a comment names.
 *   UNINITIALIZED	nvmlInit_v2() was not called, or nvmlShutdown() was
 *   INVALID_ARGUMENT	a pointer is NULL, a handle is none, a number is out of
 *			its range
 *   INSUFFICIENT_SIZE	the text with its NUL, or the set, is longer than @length
 *   ARGUMENT_VERSION_MISMATCH	@version of a structure is not what the macro
 *			beside the structure gives
 *   GPU_IS_LOST	the GPU was unplugged, or does not work
 *   NO_PERMISSION	the user may not open /dev/peerlane-gpuN
 *   NOT_SUPPORTED	nobody knows: the system does not say, or it is nothing
 *			that an emulated GPU has
 *   UNKNOWN, MEMORY	the system did not answer
 * Ownership: what is returned is copied to the caller.  Handles belong to the
 * library and are good until the last nvmlShutdown().
 * Threads: any function may be called in any thread at any time.
 * Since: 0.1.
 */
#ifndef PEERLANE_NVML_H
#define PEERLANE_NVML_H

#ifdef __nvml_nvml_h__
#error "NVIDIA's nvml.h is included already: use one of the two"
#endif
#define __nvml_nvml_h__

#ifdef __cplusplus
extern "C" {
#endif

#define NVML_API_VERSION	13

/* name, number, our own words for nvmlErrorString() */
#define PLN_NVML_RETURNS(X) \
	X(NVML_SUCCESS, 0, "success") \
	X(NVML_ERROR_UNINITIALIZED, 1, "nvmlInit was not called") \
	X(NVML_ERROR_INVALID_ARGUMENT, 2, "invalid argument") \
	X(NVML_ERROR_NOT_SUPPORTED, 3, "not supported by this device") \
	X(NVML_ERROR_NO_PERMISSION, 4, "no permission") \
	X(NVML_ERROR_ALREADY_INITIALIZED, 5, "initialized already") \
	X(NVML_ERROR_NOT_FOUND, 6, "not found") \
	X(NVML_ERROR_INSUFFICIENT_SIZE, 7, "the buffer is too small") \
	X(NVML_ERROR_INSUFFICIENT_POWER, 8, "not enough power") \
	X(NVML_ERROR_DRIVER_NOT_LOADED, 9, "the driver is not loaded") \
	X(NVML_ERROR_TIMEOUT, 10, "timed out") \
	X(NVML_ERROR_IRQ_ISSUE, 11, "a problem with interrupts") \
	X(NVML_ERROR_LIBRARY_NOT_FOUND, 12, "library not found") \
	X(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "function not found") \
	X(NVML_ERROR_CORRUPTED_INFOROM, 14, "the infoROM is corrupted") \
	X(NVML_ERROR_GPU_IS_LOST, 15, "the GPU is gone or does not work") \
	X(NVML_ERROR_RESET_REQUIRED, 16, "the GPU needs a reset") \
	X(NVML_ERROR_OPERATING_SYSTEM, 17, "blocked by the operating system") \
	X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18, \
	  "library and driver are of different versions") \
	X(NVML_ERROR_IN_USE, 19, "in use") \
	X(NVML_ERROR_MEMORY, 20, "out of memory") \
	X(NVML_ERROR_NO_DATA, 21, "no data") \
	X(NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, 22, "no ECC on virtual GPUs") \
	X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23, "out of resources") \
	X(NVML_ERROR_FREQ_NOT_SUPPORTED, 24, "frequency not supported") \
	X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, \
	  "a structure of another version") \
	X(NVML_ERROR_DEPRECATED, 26, "deprecated") \
	X(NVML_ERROR_NOT_READY, 27, "not ready") \
	X(NVML_ERROR_GPU_NOT_FOUND, 28, "no GPU found") \
	X(NVML_ERROR_INVALID_STATE, 29, "not possible in this state") \
	X(NVML_ERROR_UNKNOWN, 999, "unknown error")

typedef enum nvmlReturn_enum {
#define PLN_X(name, number, words) name = number,
	PLN_NVML_RETURNS(PLN_X)
#undef PLN_X
} nvmlReturn_t;

/* A GPU; no program can look inside */
typedef struct nvmlDevice_st *nvmlDevice_t;

/* @version of a structure: its size and its number */
#define NVML_STRUCT_VERSION(name, number) \
	((unsigned int)(sizeof(nvml##name##_v##number##_t) | \
			(number##u << 24)))

/* Sizes that are always enough, bytes */
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE	32
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE	16
#define NVML_DEVICE_NAME_BUFFER_SIZE		64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE		96
#define NVML_DEVICE_UUID_BUFFER_SIZE		80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE		96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE		30
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE	80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE	80

/* What a number is that nobody knows */
#define NVML_VALUE_NOT_AVAILABLE		(-1)

/* ---- start and end ---- */

/* Flags of nvmlInitWithFlags() */
#define NVML_INIT_FLAG_NO_GPUS		1	/* no GPU is no error */
#define NVML_INIT_FLAG_NO_ATTACH	2	/* no effect here */
#define NVML_INIT_FLAG_FORCE_INIT	4	/* no effect here */

/**
 * nvmlInit_v2 - find the GPUs
 *
 * Counted: each successful call needs an nvmlShutdown().  The first one looks
 * which GPUs there are, in the order of cuDeviceGet(); CUDA_VISIBLE_DEVICES does
 * not matter.  GPUs that cannot be asked are left out.  nvmlInit() (version 1) fails
 * instead if there is one.
 *
 * Return: DRIVER_NOT_LOADED, NO_PERMISSION, GPU_NOT_FOUND if no GPU is left,
 * LIB_RM_VERSION_MISMATCH if the driver has another interface.
 */
nvmlReturn_t nvmlInit_v2(void);

/**
 * nvmlInitWithFlags - nvmlInit_v2() with NVML_INIT_FLAG_*
 * @flags: others have no effect
 */
nvmlReturn_t nvmlInitWithFlags(unsigned int flags);

/**
 * nvmlShutdown - take one nvmlInit_v2() back
 */
nvmlReturn_t nvmlShutdown(void);

/**
 * nvmlErrorString - words for an error
 *
 * Return: A text that belongs to the library, never NULL.  Works without
 * nvmlInit_v2().
 */
const char *nvmlErrorString(nvmlReturn_t result);

/* ---- the system ---- */

/**
 * nvmlSystemGetDriverVersion - such as "580.0.1"
 * @version: out: text; NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE is enough
 * @length: of @version, bytes
 *
 * Programs refuse drivers that are older than what they were built for.  So the
 * first number is the branch of NVIDIA's drivers that came with the CUDA version of
 * nvmlSystemGetCudaDriverVersion_v2(), 580 for 13.0; then follow the major and the
 * minor number of Peerlane's own version.
 */
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);

/**
 * nvmlSystemGetNVMLVersion - version of the interface, then the driver's
 * @version: out: text; NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE is enough
 * @length: of @version, bytes
 *
 * Works without nvmlInit_v2().
 */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length);

#define NVML_CUDA_DRIVER_VERSION_MAJOR(v)	((v) / 1000)
#define NVML_CUDA_DRIVER_VERSION_MINOR(v)	(((v) % 1000) / 10)

/**
 * nvmlSystemGetCudaDriverVersion_v2 - what cuDriverGetVersion() says
 * @version: out: 1000 times the major version and 10 times the minor one
 */
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);

/**
 * nvmlSystemGetProcessName - name of a process
 * @pid: of the process
 * @name: out: how it was called, cut after @length - 1 bytes
 * @length: of @name, bytes, more than 0
 *
 * Return: NOT_FOUND if there is no such process.
 */
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name,
				      unsigned int length);

/* ---- GPUs ---- */

/**
 * nvmlDeviceGetCount_v2 - the number of GPUs
 */
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count);

/**
 * nvmlDeviceGetHandleByIndex_v2 - a GPU by its number, from 0
 */
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index,
					   nvmlDevice_t *device);

/**
 * nvmlDeviceGetHandleByPciBusId_v2 - a GPU by its address on PCI
 * @id: domain:bus:device[.0] or bus:device.0, hexadecimal, any number of digits
 * @device: out
 *
 * Return: NOT_FOUND if it is the address of no GPU.
 */
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id,
					      nvmlDevice_t *device);

/**
 * nvmlDeviceGetHandleByUUID - a GPU by what nvmlDeviceGetUUID() says, with or
 * without "GPU-"
 *
 * Return: NOT_FOUND if it is that of no GPU.
 */
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);

/**
 * nvmlDeviceGetHandleBySerial - NOT_FOUND: emulated GPUs have no serial number
 */
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial,
					 nvmlDevice_t *device);

/**
 * nvmlDeviceGetIndex - the number of a GPU, from 0
 */
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index);

/**
 * nvmlDeviceGetName - what cuDeviceGetName() says
 * @name: out: text; NVML_DEVICE_NAME_V2_BUFFER_SIZE is enough
 * @length: of @name, bytes
 */
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name,
			       unsigned int length);

/**
 * nvmlDeviceGetUUID - "GPU-" and the UUID of cuDeviceGetUuid()
 * @uuid: out: text; NVML_DEVICE_UUID_V2_BUFFER_SIZE is enough
 * @length: of @uuid, bytes
 */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid,
			       unsigned int length);

/**
 * nvmlDeviceGetMinorNumber - N of /dev/peerlane-gpuN
 */
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);

/**
 * nvmlDeviceGetCudaComputeCapability - what libcuda says, such as 9 and 0
 */
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
						int *minor);

/* Bytes of GPU memory, as of now */
typedef struct nvmlMemory_st {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_t;

typedef struct nvmlMemory_v2_st {
	unsigned int version;	/* in: nvmlMemory_v2, else FUNCTION_NOT_FOUND */
	unsigned long long total;
	unsigned long long reserved;	/* by the driver for itself: 0 */
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_v2_t;
#define nvmlMemory_v2	NVML_STRUCT_VERSION(Memory, 2)

/**
 * nvmlDeviceGetMemoryInfo - GPU memory in bytes, as the driver counts it
 */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device,
					nvmlMemory_v2_t *memory);

/* Bytes of the aperture for other devices, as of now */
typedef struct nvmlBAR1Memory_st {
	unsigned long long bar1Total;
	unsigned long long bar1Free;
	unsigned long long bar1Used;
} nvmlBAR1Memory_t;

/**
 * nvmlDeviceGetBAR1MemoryInfo - how much of the aperture is mapped, in bytes
 */
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device,
					 nvmlBAR1Memory_t *memory);

/* ---- processes ---- */

typedef struct nvmlProcessInfo_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;	/* bytes */
} nvmlProcessInfo_v1_t;

typedef struct nvmlProcessInfo_v2_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;	/* bytes */
	unsigned int gpuInstanceId;	/* 0xffffffff: it is not divided */
	unsigned int computeInstanceId;		/* 0xffffffff: it is not divided */
} nvmlProcessInfo_v2_t;
typedef nvmlProcessInfo_v2_t nvmlProcessInfo_t;

/**
 * nvmlDeviceGetComputeRunningProcesses_v3 - the processes that have GPU memory
 * @device: the GPU
 * @count: in: the room in @infos, or 0; out: how many there are, also with
 *	INSUFFICIENT_SIZE, and with INVALID_ARGUMENT for @infos
 * @infos: out: may be NULL if there are none
 *
 * They are of all users.  Memory belongs to the process that has allocated it; one
 * that has allocated none is left out, and so are those that the process namespace
 * of the caller does not have.  Version 1 has shorter structures.
 */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
						     unsigned int *count,
						     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
						     unsigned int *count,
						     nvmlProcessInfo_v2_t *infos);

/**
 * nvmlDeviceGetGraphicsRunningProcesses_v3 - none: *@count is 0
 */
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
						      unsigned int *count,
						      nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
						      unsigned int *count,
						      nvmlProcessInfo_v2_t *infos);

/* ---- PCI ---- */

typedef struct nvmlPciInfo_st {
	char busIdLegacy[NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE];
					/* 0000:01:00.0 */
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;	/* device << 16 | vendor */
	unsigned int pciSubSystemId;	/* likewise */
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];	/* 00000000:01:00.0 */
} nvmlPciInfo_t;

/**
 * nvmlDeviceGetPciInfo_v3 - address and ids on PCI
 *
 * nvmlDeviceGetPciInfo() (version 1) writes up to @pciDeviceId, version 2 up to
 * @pciSubSystemId: the structures of their time ended there.
 */
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci);

typedef struct {
	unsigned int version;		/* in: nvmlPciInfoExt_v1 */
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;
	unsigned int pciSubSystemId;
	unsigned int baseClass;
	unsigned int subClass;
	char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfoExt_v1_t;
typedef nvmlPciInfoExt_v1_t nvmlPciInfoExt_t;
#define nvmlPciInfoExt_v1	NVML_STRUCT_VERSION(PciInfoExt, 1)

/**
 * nvmlDeviceGetPciInfoExt - the same, and the class
 */
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device,
				     nvmlPciInfoExt_t *pci);

/*
 * The link of the GPU: generation (1: 2.5 GT/s, each one twice the one before) and
 * lanes, as the system says.  Curr: now.  GpuMax: what the GPU can.  Max: what
 * both the GPU and the port above it can.
 */
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
						 unsigned int *generation);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device,
						unsigned int *generation);
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device,
						   unsigned int *generation);
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device,
					    unsigned int *width);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device,
					   unsigned int *width);

/* ---- where GPUs are ---- */

/* How far apart; in brackets: what peerlane topo calls it */
typedef enum nvmlGpuLevel_enum {
	NVML_TOPOLOGY_INTERNAL = 0,	/* the same device (X) */
	NVML_TOPOLOGY_SINGLE = 10,	/* one switch (PIX) */
	NVML_TOPOLOGY_MULTIPLE = 20,	/* several switches (PXB) */
	NVML_TOPOLOGY_HOSTBRIDGE = 30,	/* one host bridge (PHB) */
	NVML_TOPOLOGY_NODE = 40,	/* one NUMA node (NODE) */
	NVML_TOPOLOGY_SYSTEM = 50	/* several NUMA nodes (SYS) */
} nvmlGpuTopologyLevel_t;

/**
 * nvmlDeviceGetTopologyCommonAncestor - what lies between two GPUs
 *
 * Return: NOT_SUPPORTED if they are the same.
 */
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1,
						 nvmlDevice_t device2,
						 nvmlGpuTopologyLevel_t *level);

/**
 * nvmlDeviceGetTopologyNearestGpus - the other GPUs that are @level away
 * @device: the GPU
 * @level: just this one; 0 to 50
 * @count: in: 0, or the room in @devices; out: how many there are, or were written
 * @devices: out: handles; may be NULL if *@count is 0
 */
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
					      nvmlGpuTopologyLevel_t level,
					      unsigned int *count,
					      nvmlDevice_t *devices);

/**
 * nvmlSystemGetTopologyGpuSet - the GPUs that are near a processor
 * @cpu: its number; no GPU is near one that there is not
 * @count: in: 0, or the room in @devices; out: how many there are, if it was 0
 * @devices: out: handles; may be NULL if *@count is 0
 */
nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
					 nvmlDevice_t *devices);

typedef unsigned int nvmlAffinityScope_t;
#define NVML_AFFINITY_SCOPE_NODE	0	/* NUMA node */
#define NVML_AFFINITY_SCOPE_SOCKET	1	/* all nodes of its processors */

/**
 * nvmlDeviceGetCpuAffinity - the processors that are near a GPU
 * @device: the GPU
 * @size: elements of @set, more than 0
 * @set: out: bit n of them is processor n
 */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
				      unsigned long *set);
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device,
						 unsigned int size,
						 unsigned long *set,
						 nvmlAffinityScope_t scope);

/**
 * nvmlDeviceGetMemoryAffinity - the NUMA node that a GPU is near to
 * @device: the GPU
 * @size: elements of @set, more than 0
 * @set: out: bit n of them is node n
 * @scope: NVML_AFFINITY_SCOPE_*
 */
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
					 unsigned long *set,
					 nvmlAffinityScope_t scope);

typedef enum nvmlGpuP2PStatus_enum {
	NVML_P2P_STATUS_OK = 0,
	NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
	NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
	NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
	NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
	NVML_P2P_STATUS_NOT_SUPPORTED = 5,
	NVML_P2P_STATUS_UNKNOWN = 6
} nvmlGpuP2PStatus_t;

typedef enum nvmlGpuP2PCapsIndex_enum {
	NVML_P2P_CAPS_INDEX_READ = 0,
	NVML_P2P_CAPS_INDEX_WRITE = 1,
	NVML_P2P_CAPS_INDEX_NVLINK = 2,
	NVML_P2P_CAPS_INDEX_ATOMICS = 3,
	NVML_P2P_CAPS_INDEX_PCI = 4,
	NVML_P2P_CAPS_INDEX_PROP = NVML_P2P_CAPS_INDEX_PCI,
	NVML_P2P_CAPS_INDEX_UNKNOWN = 5
} nvmlGpuP2PCapsIndex_t;

/**
 * nvmlDeviceGetP2PStatus - can one GPU reach the memory of another one?
 * @device1: the one that reaches
 * @device2: the one with the memory
 * @index: how: READ, WRITE and PCI are one, NVLINK and ATOMICS there are not;
 *	others are always OK
 * @status: out: OK where cuDeviceCanAccessPeer() says yes; GPU_NOT_SUPPORTED:
 *	@device2 has no coherent window; NOT_SUPPORTED: they are the same, or
 *	there is no such way
 */
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
				    nvmlGpuP2PCapsIndex_t index,
				    nvmlGpuP2PStatus_t *status);

#include "nvml_absent.h"

/* ---- names without a version ---- */

/*
 * They mean the newest one, as in NVIDIA's header; what the library exports by
 * these names is the oldest, for programs of that time.
 */
#ifndef NVML_NO_UNVERSIONED_FUNC_DEFS
#define nvmlInit			nvmlInit_v2
#define nvmlDeviceGetCount		nvmlDeviceGetCount_v2
#define nvmlDeviceGetHandleByIndex	nvmlDeviceGetHandleByIndex_v2
#define nvmlDeviceGetHandleByPciBusId	nvmlDeviceGetHandleByPciBusId_v2
#define nvmlDeviceGetPciInfo		nvmlDeviceGetPciInfo_v3
#define nvmlDeviceGetNvLinkRemotePciInfo nvmlDeviceGetNvLinkRemotePciInfo_v2
#define nvmlDeviceGetComputeRunningProcesses \
	nvmlDeviceGetComputeRunningProcesses_v3
#define nvmlDeviceGetGraphicsRunningProcesses \
	nvmlDeviceGetGraphicsRunningProcesses_v3
#else
nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlDeviceGetCount(unsigned int *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index,
					nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id,
					   nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device,
					      unsigned int link,
					      nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
						  unsigned int *count,
						  nvmlProcessInfo_v1_t *infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device,
						   unsigned int *count,
						   nvmlProcessInfo_v1_t *infos);
#endif

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_NVML_H */
