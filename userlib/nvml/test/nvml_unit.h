/* SPDX-License-Identifier: MIT */
/* Between the files of nvml_unit. */
#ifndef PEERLANE_NVML_UNIT_H
#define PEERLANE_NVML_UNIT_H

#include "../../cuda/test/child.h"
#include "../../cuda/test/fake_gpu.h"
#include "../internal.h"

#define MiB	(1024 * 1024ull)
#define INVALID	NVML_ERROR_INVALID_ARGUMENT
#define ABSENT	NVML_ERROR_NOT_SUPPORTED

/* Records of machines: four GPUs below switches, and below host bridges; one with
 * neither GPUs nor driver */
extern const char *switches, *bridges, *no_driver;
extern const struct fake_config four;

/* /sys is that of @machine from now on */
void on(const char *machine);
/* A driver, the library on it, and its handles if @gpu is not NULL */
void start(const struct fake_config *cfg, nvmlDevice_t gpu[4]);

/* nvml_unit_sys.c */
void t_pci(void);
void t_links(void);
void t_switches(void);
void t_bridges(void);
void t_nearest(void);
void t_processors(void);

#endif
