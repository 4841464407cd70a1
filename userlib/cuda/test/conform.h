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

/* All attributes of a device: number and value, or error */
void ask_attributes_of(int device);
void ask_vmm_wrong(void);
void ask_vmm(void);
void ask_vmm_ids(void);
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
void ask_two_devices(void);
void ask_two_facts(void);
void ask_two_access(void);
void ask_two_copies(void);
void ask_two_copies_wrong(void);
void ask_two_touch(void);
void ask_two_fill_none(void);
void ask_two_fill(void);
void ask_two_values_none(void);
void ask_two_values(void);
void ask_two_pointers(void);
void ask_two_streams(void);
void ask_two_pools(void);
void ask_two_pool_none(void);
void ask_two_vmm(void);
void ask_two_vmm_none(void);
void ask_two_vmm_own(void);
void ask_two_order(void);
void ask_two_order_access(void);
void ask_two_order_value(void);
void ask_two_order_destroy(void);
void ask_two_order_end(void);
void ask_two_rights(void);
void ask_two_destroyed(void);
void ask_two_no_context(void);
void ask_procs_one(void);
void ask_procs_two(void);
void ask_procs_events_one(void);
void ask_procs_events_two(void);
void ask_procs_shared_one(void);
void ask_procs_shared_two(void);

/* ---- conform_order.c: a stream that a function of the program holds ---- */

/* Hold @stream, of the context that is current, when all before is done */
void shut(CUstream stream);
/* Let it go on, and wait for all of the context */
void open_gate(void);
/* A function that does nothing */
void note(void *arg);
/* Does @fn, called in ctx by another thread, return soon?  And then what it gives, at its end */
void returns(const char *what, CUresult (*fn)(void));
void ends(void);
/* Likewise while @stream is held */
void meanwhile(const char *what, CUresult (*fn)(void), CUstream stream);

#endif
