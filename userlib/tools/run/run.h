/* SPDX-License-Identifier: MIT */
#ifndef PEERLANE_RUN_H
#define PEERLANE_RUN_H

/* The library that programs are led to */
#define RUN_LIBRARY	"libpeerlane-cudart.so.0"

#endif
