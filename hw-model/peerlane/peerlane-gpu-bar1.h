/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the memory behind its BARs.
 */
#ifndef HW_PEERLANE_GPU_BAR1_H
#define HW_PEERLANE_GPU_BAR1_H

#include "exec/memory.h"
#include "peerlane-gpu-regs.h"

typedef struct PeerlaneGPU PeerlaneGPU;

typedef struct PlnBar1Run {
    uint32_t index;
    uint32_t count;             /* 0: this entry is free */
    uint64_t vram;
    MemoryRegion mr;
} PlnBar1Run;

typedef struct PlnBar1 {
    uint64_t size;              /* of BAR1 now */
    MemoryRegion mr;
    MemoryRegion unmapped;
    MemoryRegion map;           /* holds the runs */

    /* Registers */
    uint32_t index;
    uint32_t count;
    uint64_t vram;
    uint32_t result;

    uint32_t units_used;
    uint32_t runs_used;
    PlnBar1Run runs[PLN_BAR1_MAX_RUNS];
} PlnBar1;

bool pln_bar1_init(PeerlaneGPU *s, Error **errp);
void pln_bar1_exit(PeerlaneGPU *s);
void pln_bar1_command(PeerlaneGPU *s, uint32_t cmd);
void pln_bar1_unmap_all(PeerlaneGPU *s);
void pln_bar1_set_size(PeerlaneGPU *s, uint64_t size);
bool pln_bar1_restore(PeerlaneGPU *s, bool sized);
void pln_show_removed(PeerlaneGPU *s);

/* peerlane-gpu-rebar.c */
void pln_rebar_init(PeerlaneGPU *s);
bool pln_rebar_changes(PeerlaneGPU *s, uint32_t addr, int len);
void pln_rebar_write_config(PeerlaneGPU *s, uint32_t addr, uint32_t val);
void pln_rebar_reset(PeerlaneGPU *s);
void pln_rebar_pre_load(PeerlaneGPU *s);
bool pln_rebar_restore(PeerlaneGPU *s);

#endif /* HW_PEERLANE_GPU_BAR1_H */
