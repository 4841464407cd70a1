/* SPDX-License-Identifier: MIT */
/* What the files of cuda_guest share */
#ifndef PEERLANE_CUDA_GUEST_H
#define PEERLANE_CUDA_GUEST_H

#include <stddef.h>
#include <stdint.h>

#include "../cuda_abi.h"
#include "check.h"

#define MiB	(1024ul * 1024)

/* A command of the result port; the host does it before this returns */
bool host(const char *command);
void pattern(unsigned char *p, size_t n, uint32_t seed);

/* ---- cuda_guest_dmabuf.c ---- */
void dmabuf(void);
void dmabuf_revoked(void);
void dmabuf_of_parts(void);

/* ---- cuda_guest_failures.c ---- */
void after_fork(void);
/* @self: the program, to be started as "busy" */
void killed(const char *self);
int busy(void);
/* Likewise, as "held" */
void held_up(const char *self);
int held(void);
void engine_error(void);
void engine_error_in_alloc(void);
void lost_interrupt(void);
void stuck(void);
/* These two leave no context current */
void reset_gpu(void);
void reset_at_work(void);

#endif
