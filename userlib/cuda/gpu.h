/* SPDX-License-Identifier: MIT */
/*
 * The emulated GPUs as the driver shows them, and what all libraries that stand
 * in for NVIDIA's say about them: libcuda, libnvidia-ml.  No state, no output.
 */
#ifndef PEERLANE_CUDA_GPU_H
#define PEERLANE_CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/peerlane_gpu.h>

#define DRV_DRIVER_VERSION	13000	/* CUDA's, 13.0 */
#define DRV_DRIVER_BRANCH	580	/* of NVIDIA's drivers: the first with it */
#define DRV_MAX_DEVICES		32
#define DRV_GPU_NAME		"Peerlane emulated GPU"
#define DRV_GPU_CC_MAJOR	9	/* compute capability */
#define DRV_GPU_CC_MINOR	0

/* ---- io.c: the only file that makes system calls on the device ---- */
int drv_io_open(unsigned int minor);
int drv_io_ioctl(int fd, unsigned long request, void *arg);
void *drv_io_mmap(void *addr, size_t len, int prot, int fd, uint64_t offset);
int drv_io_close(int fd);

/* ---- gpu.c ---- */
/* An ioctl but SUBMIT and WAIT, whose callers look at other things before they try
 * again: made again when a signal came meanwhile.  0, or -1 with errno. */
int drv_call(int fd, unsigned long request, void *arg);
/* Asks GPU number @minor: 0, or an errno; EPROTO: the driver's answer is of no
 * use, and @info has it. */
int drv_gpu_query(unsigned int minor, struct pln_gpu_query *info);

#define DRV_UUID_TEXT		37	/* bytes */
#define DRV_BUS_ID_TEXT		20
void drv_uuid_text(const uint8_t *uuid, char out[DRV_UUID_TEXT]);
/* As the kernel writes it: 0000:01:00.0 */
void drv_bus_id_text(const struct pln_gpu_query *info,
		     char out[DRV_BUS_ID_TEXT]);
/* Takes domain:bus:device[.function] or bus:device.function, in hexadecimal, apart */
bool drv_bus_id_parse(const char *id, unsigned int out[4]);
/* Is @id that of @info? */
bool drv_bus_id_is(const unsigned int id[4], const struct pln_gpu_query *info);

/*
 * The engine of one GPU reaches the memory of another one as user memory, so
 * the other one must have it in the process: by a coherent window.
 */
static inline bool drv_gpu_reachable(const struct pln_gpu_query *peer)
{
	return peer->features & PLN_GPU_FEAT_COHERENT;
}

#endif /* PEERLANE_CUDA_GPU_H */
