/* SPDX-License-Identifier: MIT */
#ifndef PEERLANE_NVML_FAKE_MACHINE_H
#define PEERLANE_NVML_FAKE_MACHINE_H

#include <stdbool.h>

extern bool fake_exchanged;	/* other GPUs are in the places of those before */

#endif
