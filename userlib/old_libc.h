/* SPDX-License-Identifier: MIT */
/*
 * Included before all else, so that what is built runs with C libraries from 2.34
 * on: with _GNU_SOURCE glibc 2.38 and later lead strtol(), sscanf() and the like to
 * names that older ones do not have (__isoc23_strtol), for numbers with "0b".
 */
#include <features.h>

/* The first name is that of glibc 2.38 and 2.39 */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
