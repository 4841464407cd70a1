/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the device.  Each part of the model has a header of its own,
 * with what it keeps here and what it does.
 */
#ifndef HW_PEERLANE_GPU_H
#define HW_PEERLANE_GPU_H

#include "qemu/osdep.h"
#include "qemu/uuid.h"
#include "hw/pci/pci_device.h"
#include "system/hostmem.h"
#include "qom/object.h"
#include "peerlane-account.h"
#include "peerlane-gpu-bar1.h"
#include "peerlane-gpu-counters.h"
#include "peerlane-gpu-engine.h"
#include "peerlane-gpu-late.h"
#include "peerlane-gpu-regs.h"

/* In the extended configuration space */
#define PLN_AER_OFFSET          0x100
#define PLN_REBAR_OFFSET        0x148

#define TYPE_PEERLANE_GPU "peerlane-gpu"
OBJECT_DECLARE_SIMPLE_TYPE(PeerlaneGPU, PEERLANE_GPU)

struct PeerlaneGPU {
    PCIDevice parent_obj;

    /* Properties */
    uint64_t vram_size;
    uint64_t bar1_size;         /* after reset */
    bool coherent;
    uint8_t num_queues;
    uint16_t vendor_id;
    uint16_t device_id;
    uint32_t bar1_runs;
    bool posted_errors;
    bool rebar;
    QemuUUID uuid;
    HostMemoryBackend *memdev;  /* or NULL: VRAM of its own */
    uint32_t features;

    /* Faults, settable at any time */
    uint32_t fault_engine_error;
    uint32_t fault_stuck_fence;
    uint32_t fault_lost_irq;
    bool fault_hung_engine;
    uint32_t fault_late_writes;
    bool removed;

    MemoryRegion bar0;
    MemoryRegion regs;
    MemoryRegion vram;
    MemoryRegion window;
    MemoryRegion window_unmapped;
    MemoryRegion window_map;
    MemoryRegion removed_bar[3];    /* over the BARs of a removed device */
    uint8_t *vram_ptr;
    uint8_t *stage[2];              /* operands of the operation at work */

    VMChangeStateEntry *vmstate_entry;
    bool powered;               /* the reset of power on has been seen */
    uint32_t reset_count;
    uint32_t time_hi;           /* latched */
    uint32_t scratch;

    PlnBar1 bar1;
    PlnLate late;
    PlnEngine engine;
    PlnCounters counters;
};

static inline const char *pln_name(PeerlaneGPU *s)
{
    return DEVICE(s)->id ? DEVICE(s)->id : TYPE_PEERLANE_GPU;
}

/* peerlane-gpu-migrate.c */
extern const VMStateDescription vmstate_pln;

/* peerlane-gpu-state.c */
void pln_state_add_property(Object *obj);

#endif /* HW_PEERLANE_GPU_H */
