/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: counters, and who has moved how much.
 */
#ifndef HW_PEERLANE_GPU_COUNTERS_H
#define HW_PEERLANE_GPU_COUNTERS_H

#include "exec/memory.h"
#include "hw/pci/pci_device.h"
#include "hw/qdev-core.h"
#include "peerlane-gpu-regs.h"

typedef struct PeerlaneGPU PeerlaneGPU;

typedef struct PlnInitiator {
    PCIDevice *dev;             /* only to compare; NULL: found by its name */
    uint32_t id;                /* 0: this entry is free */
    uint32_t read_hi;
    uint32_t write_hi;
    uint64_t read;
    uint64_t write;
    uint8_t name[64];           /* a string */
} PlnInitiator;

typedef struct PlnCounters {
    QemuMutex lock;             /* of all below */
    uint64_t val[PLN_NUM_COUNTERS];
    uint32_t high[PLN_NUM_COUNTERS];    /* latched by reads of the low half */
    PlnInitiator initiators[PLN_NUM_INITIATORS];
    DeviceListener listener;
    GHashTable *mappings;
} PlnCounters;

extern const MemoryRegionObserver pln_vram_observer;
void pln_counters_init(PeerlaneGPU *s);
void pln_counters_finalize(PeerlaneGPU *s);
void pln_count(PeerlaneGPU *s, enum pln_counter n, uint64_t add);
void pln_account(PeerlaneGPU *s, AddressSpace *as, bool window, hwaddr len,
                 bool is_write);
uint32_t pln_counter_read(PeerlaneGPU *s, hwaddr reg);
uint32_t pln_initiator_read(PeerlaneGPU *s, hwaddr reg);
void pln_counters_add_properties(Object *obj);

#endif /* HW_PEERLANE_GPU_COUNTERS_H */
