/* SPDX-License-Identifier: MIT */
/*
 * What this library asks of NVIDIA's kernel drivers without libcuda: nvidia's
 * resource manager ("RM"), and nvidia-uvm.
 *
 * There is no public document of these calls.  The numbers and layouts are facts
 * read in NVIDIA's open kernel modules, releases 570.86.15 to 595.45.04; each has
 * the file where it stands, below kernel-open/ or src/.  What differs between
 * releases says so; the rest is the same in all of them.
 */
#ifndef PLN_CUFILE_NVRM_H
#define PLN_CUFILE_NVRM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "node.h"

/* Branches whose sources were read; of others nothing is known. */
#define NVRM_KNOWN(major) \
	((major) == 570 || (major) == 575 || (major) == 580 || \
	 (major) == 590 || (major) == 595)

/*
 * A status, in the last field of every structure.
 * src/common/sdk/nvidia/inc/nvstatuscodes.h; X(name, number)
 */
#define NVRM_STATUSES(X) \
	X(OK, 0x00) \
	X(BUSY_RETRY, 0x03) \
	X(GPU_IS_LOST, 0x0f) \
	X(GPU_UUID_NOT_FOUND, 0x12) \
	X(ILLEGAL_ACTION, 0x16) \
	X(IN_USE, 0x17) \
	X(INSUFFICIENT_RESOURCES, 0x1a) \
	X(INSUFFICIENT_PERMISSIONS, 0x1b) \
	X(INVALID_ACCESS_TYPE, 0x1d) \
	X(INVALID_ADDRESS, 0x1e) \
	X(INVALID_ARGUMENT, 0x1f) \
	X(INVALID_CLASS, 0x22) \
	X(INVALID_CLIENT, 0x23) \
	X(INVALID_COMMAND, 0x24) \
	X(INVALID_DEVICE, 0x26) \
	X(INVALID_OBJECT, 0x31) \
	X(INVALID_OBJECT_HANDLE, 0x33) \
	X(INVALID_OBJECT_PARENT, 0x36) \
	X(INVALID_PARAM_STRUCT, 0x3a) \
	X(INVALID_PARAMETER, 0x3b) \
	X(INVALID_STATE, 0x40) \
	X(NO_MEMORY, 0x51) \
	X(NOT_COMPATIBLE, 0x54) \
	X(NOT_SUPPORTED, 0x56) \
	X(OBJECT_NOT_FOUND, 0x57) \
	X(OBJECT_TYPE_MISMATCH, 0x58) \
	X(OPERATING_SYSTEM, 0x59) \
	X(OUT_OF_RANGE, 0x5b) \
	X(PAGE_TABLE_NOT_AVAIL, 0x5d) \
	X(UVM_ADDRESS_IN_USE, 0x68) \
	X(FATAL_ERROR, 0x71) \
	X(GENERIC, 0xffff)

enum nvrm_status {
#define PLN_X(name, number) NVRM_##name = (number),
	NVRM_STATUSES(PLN_X)
#undef PLN_X
};

typedef uint32_t nvrm_handle;

/* ---- /dev/nvidiactl ---- */

/*
 * _IOWR('F', number, structure).  kernel-open/common/inc/nv-ioctl-numbers.h,
 * src/nvidia/arch/nvalloc/unix/include/nv_escape.h
 */
#define NVRM_IOC_FREE		_IOWR('F', 0x29, struct nvrm_free)
#define NVRM_IOC_CONTROL	_IOWR('F', 0x2a, struct nvrm_control)
#define NVRM_IOC_ALLOC		_IOWR('F', 0x2b, struct nvrm_alloc)
#define NVRM_IOC_VERSION	_IOWR('F', 210, struct nvrm_version)

/* NVOS00 to NVOS54 of src/common/sdk/nvidia/inc/nvos.h */
struct nvrm_free {
	nvrm_handle client, parent, object;
	uint32_t status;
};
static_assert(sizeof(struct nvrm_free) == 16, "NVOS00");

struct nvrm_alloc {
	nvrm_handle client, parent;
	nvrm_handle object;		/* 0: the driver chooses, and says */
	uint32_t class;
	uint64_t params;
	uint32_t params_size;
	uint32_t status;
};
static_assert(sizeof(struct nvrm_alloc) == 32, "NVOS21");

struct nvrm_control {
	nvrm_handle client, object;
	uint32_t cmd, flags;
	uint64_t params;
	uint32_t params_size;		/* must be right to the byte */
	uint32_t status;
};
static_assert(sizeof(struct nvrm_control) == 32, "NVOS54");

/* kernel-open/common/inc/nv-ioctl.h; cmd '2': tell your own */
struct nvrm_version {
	uint32_t cmd, reply;
	char text[64];
};
static_assert(sizeof(struct nvrm_version) == 72, "nv_ioctl_rm_api_version");

/* Classes: src/common/sdk/nvidia/inc/class/cl0000.h, cl0080.h, cl2080.h */
#define NVRM_CLASS_CLIENT	0x0041	/* NV01_ROOT_CLIENT, nvos.h */
#define NVRM_CLASS_DEVICE	0x0080
#define NVRM_CLASS_SUBDEVICE	0x2080

struct nvrm_device {
	uint32_t instance;
	nvrm_handle client_share, target_client, target_device;
	uint32_t flags;
	uint64_t va_size, va_start, va_limit;
	uint32_t va_mode;
};
static_assert(sizeof(struct nvrm_device) == 56, "NV0080_ALLOC_PARAMETERS");

struct nvrm_subdevice {
	uint32_t number;
};
static_assert(sizeof(struct nvrm_subdevice) == 4, "NV2080_ALLOC_PARAMETERS");

/* ctrl0000unix.h in src/common/sdk/nvidia/inc/ctrl/ctrl0000; of the client */
#define NVRM_EXPORT_INFO	0x3d08
#define NVRM_IMPORT		0x3d0c	/* OS_UNIX_IMPORT_OBJECTS_FROM_FD */

#define NVRM_NO_MIG		UINT32_MAX

struct nvrm_export_info {
	int32_t fd;
	uint32_t device_instance;
	uint32_t gpu_instance;		/* NVRM_NO_MIG, or of which partition */
	uint16_t max_objects;
	uint8_t metadata[64];
};
static_assert(sizeof(struct nvrm_export_info) == 80, "GET_EXPORT_OBJECT_INFO");

#define NVRM_TYPE_NONE		0
#define NVRM_TYPE_VIDMEM	1

struct nvrm_import {
	int32_t fd;
	nvrm_handle parent;
	nvrm_handle objects[128];	/* 0: as in struct nvrm_alloc */
	uint8_t types[128];
	uint16_t count, first;
};
static_assert(sizeof(struct nvrm_import) == 652, "IMPORT_OBJECTS_FROM_FD");

/*
 * src/common/sdk/nvidia/inc/ctrl/ctrl2080/ctrl2080fb.h; of the subdevice.  Every
 * user may ask (flag 0x8 in src/nvidia/generated/g_subdevice_nvoc.c).
 */
#define NVRM_STATIC_BAR1	0x20801354

struct nvrm_static_bar1 {
	uint8_t enabled;
	uint8_t write_combined;		/* from 580 on; 0 before */
	uint64_t start, size;
};
static_assert(sizeof(struct nvrm_static_bar1) == 24, "GET_STATIC_BAR1_INFO");

/* ---- /dev/nvidia-uvm ---- */

/*
 * Plain numbers, and the structure's size is not in them.
 * kernel-open/nvidia-uvm/uvm_ioctl.h, uvm_linux_ioctl.h
 */
#define NVUVM_IOC_INITIALIZE	0x30000001
#define NVUVM_IOC_FREE		34
#define NVUVM_IOC_REGISTER_GPU	37
#define NVUVM_IOC_LEND		78	/* UVM_ALLOC_DEVICE_P2P */

/*
 * uvm_types.h.  Without the second, what nvidia-uvm does for the descriptor is
 * tied to the process's address space as CUDA's own is.
 */
#define NVUVM_NO_HMM		1
#define NVUVM_MULTI_PROCESS	2

struct nvuvm_initialize {
	uint64_t flags;
	uint32_t status;
};
static_assert(sizeof(struct nvuvm_initialize) == 16, "UVM_INITIALIZE");

struct nvuvm_register {
	uint8_t uuid[16];
	uint8_t numa;
	int32_t numa_node;
	int32_t ctl;
	nvrm_handle client, partition;
	uint32_t status;
};
static_assert(sizeof(struct nvuvm_register) == 40, "UVM_REGISTER_GPU");

/* The memory is mapped by mmap() at @base then, with the offset @base. */
struct nvuvm_lend {
	uint64_t base, size;
	uint64_t offset;		/* in the memory */
	uint8_t uuid[16];
	int32_t ctl;
	nvrm_handle client, memory;
	uint32_t status;
};
static_assert(sizeof(struct nvuvm_lend) == 56, "UVM_ALLOC_DEVICE_P2P");

/* From 590 on it has no size: the status is where that was. */
struct nvuvm_free {
	uint64_t base;
	union {
		uint64_t size;
		uint32_t status_590;
	};
	uint32_t status;
};
static_assert(sizeof(struct nvuvm_free) == 24 &&
	      offsetof(struct nvuvm_free, status_590) == 8, "UVM_FREE");

/* ---- nvrm.c ---- */

struct nvrm {
	_Atomic int ctl, uvm;		/* -1: not open */
	struct node ctl_node, uvm_node;
	nvrm_handle client;
	unsigned int major;
	char version[64];
	/* of the latest call */
	const char *call;
	int err;			/* errno, or 0: the driver answered */
	uint32_t status;		/* so */
};

/* The name of a status, or "" */
const char *nvrm_status_name(uint32_t status);
/* What the latest call has come to, in words. */
void nvrm_says(const struct nvrm *n, char *out, size_t size);

/*
 * Each returns whether it went well.  The first opens both devices, and asks for
 * the version; n->major is 0 until it is known.
 */
bool nvrm_open(struct nvrm *n);
/* Also in a child, where a thread of the parent may have been in any of these. */
void nvrm_close(struct nvrm *n);
/*
 * From Linux 6.15 on, free pages of P2PDMA have another reference count.  A driver
 * that does not know that fails when it has taken the memory, and never lets go of
 * it (alloc_device_p2p_mem() in uvm_va_range_device_p2p.c; known from 595 on).
 */
bool nvrm_counts_right(const struct nvrm *n);
bool nvrm_make(struct nvrm *n, const char *what, nvrm_handle parent,
	       uint32_t class, void *params, uint32_t size, nvrm_handle *object);
bool nvrm_ask(struct nvrm *n, const char *what, nvrm_handle object,
	      uint32_t cmd, void *params, uint32_t size);
bool nvrm_drop(struct nvrm *n, nvrm_handle parent, nvrm_handle object);
bool nvuvm_initialize(struct nvrm *n);
bool nvuvm_register(struct nvrm *n, const void *uuid);
bool nvuvm_lend(struct nvrm *n, const void *uuid, nvrm_handle memory,
		uint64_t base, uint64_t size, uint64_t offset);
bool nvuvm_free(struct nvrm *n, uint64_t base, uint64_t size);

#endif
