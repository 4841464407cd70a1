/* SPDX-License-Identifier: MIT */
/* What the files of cuda_conform share */
#ifndef PEERLANE_CONFORM_H
#define PEERLANE_CONFORM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda_abi.h"
#include "ask.h"

#define MiB	(1024ul * 1024)

/* The context that each part but the first begins with */
extern CUcontext ctx;
/* 2 MiB of memory by hand, on device 0 */
extern CUmemAllocationProp prop;

void ask_vmm_wrong(void);
void ask_vmm(void);
void ask_ipc(void);
void ask_pools_wrong(void);
void ask_pools(void);
void ask_pool_order(void);
void ask_pool_export(void);
void ask_managed(void);
void ask_managed_pages(void);
void ask_batches(void);
void ask_fills(void);
void ask_io_memory(void);
void ask_pending(void);
void ask_order(void);
void ask_copies(void);

#endif
