/* SPDX-License-Identifier: MIT */
/*
 * Peerlane libnvidia-ml: what its files share.
 *
 * The only state is the table of GPUs, under one lock, and it is made by the
 * first nvmlInit_v2().  All that can change is asked for in each call, without the
 * lock: the driver, and /sys by the readers of userlib/core.
 */
#ifndef PEERLANE_NVML_INTERNAL_H
#define PEERLANE_NVML_INTERNAL_H

/* The functions by the names that the library exports */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <stddef.h>

#include "nvml.h"

#include "gpu.h"

/* A GPU as nvmlInit_v2() found it; handles are addresses of these */
struct nvmlDevice_st {
	unsigned int index;
	unsigned int minor;
	struct pln_gpu_query info;
};

/* ---- init.c ---- */
/* What an errno of the driver means; EPROTO: it speaks another language */
nvmlReturn_t nvml_errno(int error);
/* UNINITIALIZED, or success */
nvmlReturn_t nvml_ready(void);
/* Copies the GPU that a handle names; INVALID_ARGUMENT if it names none */
nvmlReturn_t nvml_gpu(nvmlDevice_t handle, struct nvmlDevice_st *gpu);
/* Copies GPU number @index and gives its handle; both pointers may be NULL */
nvmlReturn_t nvml_nth(unsigned int index, struct nvmlDevice_st *gpu,
			  nvmlDevice_t *handle);
/* A text for the caller */
nvmlReturn_t nvml_text(const char *text, char *out, unsigned int length);

/* ---- device.c ---- */
/* The driver of the GPU asked now; GPU_IS_LOST if another one is in its place,
 * INVALID_ARGUMENT, too, if @out is NULL */
nvmlReturn_t nvml_now(nvmlDevice_t device, const void *out,
		      struct pln_gpu_query *now);

/* ---- pci.c ---- */
/* An attribute in /sys, without white space at its ends; NOT_SUPPORTED if there
 * is none */
nvmlReturn_t nvml_attribute(const struct pln_gpu_query *gpu, const char *name,
			    char *text, size_t size);

#endif /* PEERLANE_NVML_INTERNAL_H */
