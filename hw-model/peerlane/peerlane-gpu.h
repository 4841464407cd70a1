/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: what the parts of the device model share.
 */
#ifndef HW_PEERLANE_GPU_H
#define HW_PEERLANE_GPU_H

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/uuid.h"
#include "hw/pci/pci_device.h"
#include "hw/qdev-core.h"
#include "system/hostmem.h"
#include "qom/object.h"
#include "peerlane-account.h"
#include "peerlane-gpu-regs.h"

#define TYPE_PEERLANE_GPU "peerlane-gpu"
OBJECT_DECLARE_SIMPLE_TYPE(PeerlaneGPU, PEERLANE_GPU)

/* The engine moves at most this much before it lets another queue run ... */
#define PLN_SLICE               (256 * 1024)
/* ... and this much before it lets the main loop run */
#define PLN_BH_BUDGET           (1024 * 1024)
/* What one descriptor costs of these budgets even if it moves nothing */
#define PLN_DESC_COST           4096
#define PLN_SEM_POLL_NS         (50 * SCALE_US)

/* All GPUs of a machine together; QEMU has room for fewer than 4096 sections */
#define PLN_MACHINE_MAX_RUNS    1536

typedef struct PlnDesc {
    uint32_t opcode;
    uint32_t flags;
    uint32_t arg;
    uint32_t reserved;
    uint64_t src;
    uint64_t dst;
    uint64_t len;
    uint64_t imm;
    uint64_t comp;
    uint64_t fence;
} PlnDesc;

typedef struct PlnQueue {
    PeerlaneGPU *gpu;
    QEMUTimer *timer;
    uint32_t index;

    uint32_t status;
    uint64_t base;
    uint32_t size;
    uint32_t head;
    uint32_t tail;
    uint32_t error_code;
    uint32_t error_index;
    uint32_t vector;
    uint64_t fence;
    uint32_t fence_hi;

    /* The descriptor in flight */
    bool active;
    bool waiting;
    PlnDesc desc;
    uint64_t done;
    uint64_t result;
    int64_t deadline;
} PlnQueue;

typedef struct PlnBar1Run {
    uint32_t index;
    uint32_t count;             /* 0: this entry is free */
    uint64_t vram;
    MemoryRegion mr;
} PlnBar1Run;

/* A write through BAR1 that nobody sees yet */
typedef struct PlnLateWrite {
    uint64_t vram;
    uint64_t val;
    uint32_t size;
} PlnLateWrite;

/* Of these at a time */
#define PLN_LATE_MAX            65536

typedef struct PlnInitiator {
    PCIDevice *dev;             /* only to compare; NULL: found by its name */
    uint32_t id;                /* 0: this entry is free */
    uint32_t read_hi;
    uint32_t write_hi;
    uint64_t read;
    uint64_t write;
    uint8_t name[64];           /* a string */
} PlnInitiator;

struct PeerlaneGPU {
    PCIDevice parent_obj;

    /* Properties */
    uint64_t vram_size;
    uint64_t bar1_size;
    bool coherent;
    uint8_t num_queues;
    uint16_t vendor_id;
    uint16_t device_id;
    uint32_t bar1_runs;
    bool posted_errors;
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
    MemoryRegion bar1;
    MemoryRegion bar1_unmapped;
    MemoryRegion bar1_map;      /* holds the runs */
    MemoryRegion bar1_late;     /* over the runs, if writes are late */
    MemoryRegion window;
    MemoryRegion window_unmapped;
    MemoryRegion window_map;
    MemoryRegion removed_bar[3];    /* over the BARs of a removed device */
    uint8_t *vram_ptr;

    VMChangeStateEntry *vmstate_entry;
    bool powered;               /* the reset of power on has been seen */
    uint32_t reset_count;
    uint32_t time_hi;           /* latched */
    uint32_t scratch;

    uint32_t bar1_index;
    uint32_t bar1_count;
    uint64_t bar1_vram;
    uint32_t bar1_result;
    uint32_t bar1_units_used;
    uint32_t bar1_runs_used;
    PlnBar1Run runs[PLN_BAR1_MAX_RUNS];

    PlnLateWrite *late;         /* a ring */
    uint32_t late_size;         /* fault_late_writes, when that took effect */
    uint32_t late_first;
    uint32_t late_count;

    QEMUBH *bh;
    uint32_t next_queue;
    PlnQueue queues[PLN_MAX_QUEUES];
    uint8_t *stage[2];

    QemuMutex lock;             /* of the counters and all below */
    uint64_t counters[PLN_NUM_COUNTERS];
    uint32_t counters_hi[PLN_NUM_COUNTERS];
    PlnInitiator initiators[PLN_NUM_INITIATORS];
    DeviceListener listener;
    GHashTable *mappings;
};

static inline const char *pln_name(PeerlaneGPU *s)
{
    return DEVICE(s)->id ? DEVICE(s)->id : TYPE_PEERLANE_GPU;
}

/* peerlane-gpu.c */
void pln_raise_irq(PeerlaneGPU *s, uint32_t vector);
bool pln_inject_fault(PeerlaneGPU *s, uint32_t *fault, const char *name);
void pln_show_removed(PeerlaneGPU *s);

/* peerlane-gpu-bar1.c */
bool pln_bar1_init(PeerlaneGPU *s, Error **errp);
void pln_bar1_exit(PeerlaneGPU *s);
void pln_bar1_command(PeerlaneGPU *s, uint32_t cmd);
void pln_bar1_unmap_all(PeerlaneGPU *s);
bool pln_bar1_restore(PeerlaneGPU *s);
uint64_t pln_bar1_unmapped_read(void *opaque, hwaddr addr, unsigned size);
void pln_bar1_unmapped_write(void *opaque, hwaddr addr, uint64_t val,
                             unsigned size);

/* peerlane-gpu-late.c */
void pln_late_init(PeerlaneGPU *s);
void pln_late_flush(PeerlaneGPU *s);
void pln_late_off(PeerlaneGPU *s);
bool pln_late_restore(PeerlaneGPU *s);
void pln_late_add_property(Object *obj);

/* peerlane-gpu-ops.c */
enum {
    PLN_STEP_MORE = -1,         /* run again */
    PLN_STEP_WAIT = -2,         /* the timer runs it again */
};
enum pln_gpu_error pln_bus_rw(PeerlaneGPU *s, uint64_t addr, void *buf,
                              uint64_t len, bool is_write);
enum pln_gpu_error pln_op_check(PeerlaneGPU *s, const PlnDesc *d);
bool pln_op_in_flight(PeerlaneGPU *s, const PlnQueue *q);
int pln_op_step(PlnQueue *q);

/* peerlane-gpu-engine.c */
void pln_engine_init(PeerlaneGPU *s);
void pln_engine_exit(PeerlaneGPU *s);
void pln_engine_finalize(PeerlaneGPU *s);
void pln_engine_reset(PeerlaneGPU *s);
void pln_engine_kick(PeerlaneGPU *s);
uint32_t pln_queue_read(PeerlaneGPU *s, unsigned q, hwaddr reg);
void pln_queue_write(PeerlaneGPU *s, unsigned q, hwaddr reg, uint32_t val);
const char *pln_queue_status_name(const PlnQueue *q);
uint64_t pln_time(void);

/* peerlane-gpu-migrate.c */
extern const VMStateDescription vmstate_pln;

/* peerlane-gpu-state.c */
void pln_state_add_property(Object *obj);

/* peerlane-gpu-counters.c */
extern const MemoryRegionObserver pln_vram_observer;
void pln_counters_init(PeerlaneGPU *s);
void pln_counters_finalize(PeerlaneGPU *s);
void pln_count(PeerlaneGPU *s, enum pln_counter n, uint64_t add);
void pln_account(PeerlaneGPU *s, AddressSpace *as, bool window, hwaddr len,
                 bool is_write);
uint32_t pln_counter_read(PeerlaneGPU *s, hwaddr reg);
uint32_t pln_initiator_read(PeerlaneGPU *s, hwaddr reg);
void pln_counters_add_properties(Object *obj);

#endif /* HW_PEERLANE_GPU_H */
