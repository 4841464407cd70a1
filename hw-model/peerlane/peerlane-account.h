/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane: accounting that the devices share.
 */
#ifndef HW_PEERLANE_ACCOUNT_H
#define HW_PEERLANE_ACCOUNT_H

#include "exec/memory.h"
#include "hw/pci/pci_device.h"

/* A counter read in halves: a read of the low one latches the high one */
uint32_t pla_half(uint64_t val, uint32_t *latch, bool high);

/* Visit @n counters as one struct */
void pla_visit(Visitor *v, const char *name, const char *const *names,
               const uint64_t *val, unsigned n, Error **errp);

/*
 * Memory that is mapped for DMA, which counts when the mapping ends.  QEMU does
 * not say which mapping ends, only what is in here.  Of several at one place
 * the oldest with that length is taken, or the oldest that is longer: a device
 * may give back less than it mapped.  To be embedded as the first member, in
 * memory from GLib.  The caller has a lock.
 */
typedef struct PlaMapping {
    AddressSpace *as;
    void *host;
    hwaddr len;
    bool is_write;
    struct PlaMapping *next;    /* a later one at the same place */
} PlaMapping;

GHashTable *pla_mappings_new(void);
/* Takes @m over */
void pla_map(GHashTable *mappings, PlaMapping *m);
/* Gives it back to the caller, or returns NULL if there is none */
PlaMapping *pla_unmap(GHashTable *mappings, AddressSpace *as, void *host,
                      hwaddr len, bool is_write);
/* Drops all of @as */
void pla_forget(GHashTable *mappings, AddressSpace *as);
void pla_foreach(GHashTable *mappings, void (*fn)(PlaMapping *m, void *opaque),
                 void *opaque);

/*
 * How a piece of a DMA transfer ended.  A write is posted: nobody tells its
 * requester that it was refused on its way, so that it is lost and not failed.
 */
typedef enum PlaEnd {
    PLA_MOVED,
    PLA_LOST,
    PLA_FAILED,
} PlaEnd;

/*
 * The order in which others see what a device does, on hosts that reorder, too
 * (hw-model/docs/peerlane-gpu.rst, "Order"): a piece of DMA comes after all that
 * its thread has accessed before, since QEMU's dma_memory_rw() has a barrier in
 * front of it. An access by pointer, and what follows a read that was waited
 * for, has none but the device's own.
 *
 * Moves the first piece of a DMA transfer: what one memory region has of it.
 * @len becomes the length of that piece, and @peer says whose memory it was.
 */
PlaEnd pla_dma_piece(PCIDevice *pdev, uint64_t addr, void *buf, hwaddr *len,
                     bool is_write, bool *peer);

/*
 * The same if that is RAM, and no IOMMU is in between; else it does nothing.
 * Needs no BQL, and does not wait for it.
 */
bool pla_dma_ram(PCIDevice *pdev, uint64_t addr, void *buf, hwaddr *len,
                 bool is_write, bool *peer);

/*
 * Faults that happen a number of times: a property of that name, which tells how
 * many are left.  Armed by one thread, taken by another.
 */
void pla_fault_add(Object *obj, const char *name, uint32_t *left);
/* One more of them happens now */
bool pla_fault_take(uint32_t *left);

#endif /* HW_PEERLANE_ACCOUNT_H */
