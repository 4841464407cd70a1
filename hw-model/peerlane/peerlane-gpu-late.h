/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: writes through BAR1 that become visible late, a fault.
 */
#ifndef HW_PEERLANE_GPU_LATE_H
#define HW_PEERLANE_GPU_LATE_H

#include "exec/memory.h"

typedef struct PeerlaneGPU PeerlaneGPU;

/* A write through BAR1 that nobody sees yet */
typedef struct PlnLateWrite {
    uint64_t vram;
    uint64_t val;
    uint32_t size;
} PlnLateWrite;

/* Of these at a time */
#define PLN_LATE_MAX            65536

typedef struct PlnLate {
    MemoryRegion mr;            /* over the runs of BAR1 */
    PlnLateWrite *ring;
    uint32_t size;              /* fault_late_writes, when that took effect */
    uint32_t first;
    uint32_t count;
} PlnLate;

void pln_late_init(PeerlaneGPU *s);
void pln_late_finalize(PeerlaneGPU *s);
void pln_late_flush(PeerlaneGPU *s);
void pln_late_off(PeerlaneGPU *s);
bool pln_late_restore(PeerlaneGPU *s);
void pln_late_add_property(Object *obj);

#endif /* HW_PEERLANE_GPU_LATE_H */
