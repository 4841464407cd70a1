/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane: accounting that the devices share.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_bus.h"
#include "system/dma.h"
#include "exec/memory-ram.h"
#include "peerlane-account.h"

uint32_t pla_half(uint64_t val, uint32_t *latch, bool high)
{
    if (high) {
        return *latch;
    }
    *latch = val >> 32;
    return val;
}

void pla_visit(Visitor *v, const char *name, const char *const *names,
               const uint64_t *val, unsigned n, Error **errp)
{
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t copy = val[i];

        if (!visit_type_uint64(v, names[i], &copy, errp)) {
            goto out;
        }
    }
    visit_check_struct(v, errp);
out:
    visit_end_struct(v, NULL);
}

static guint pla_mapping_hash(gconstpointer p)
{
    const PlaMapping *m = p;

    return (g_direct_hash(m->host) * 31 + g_direct_hash(m->as)) * 31 +
           m->is_write;
}

static gboolean pla_mapping_equal(gconstpointer a, gconstpointer b)
{
    const PlaMapping *x = a, *y = b;

    return x->as == y->as && x->host == y->host && x->is_write == y->is_write;
}

static void pla_free(gpointer p)
{
    for (PlaMapping *m = p, *next; m; m = next) {
        next = m->next;
        g_free(m);
    }
}

GHashTable *pla_mappings_new(void)
{
    return g_hash_table_new_full(pla_mapping_hash, pla_mapping_equal, pla_free,
                                 NULL);
}

void pla_map(GHashTable *mappings, PlaMapping *m)
{
    PlaMapping *last = g_hash_table_lookup(mappings, m);

    m->next = NULL;
    if (!last) {
        g_hash_table_add(mappings, m);
        return;
    }
    while (last->next) {
        last = last->next;
    }
    last->next = m;
}

PlaMapping *pla_unmap(GHashTable *mappings, AddressSpace *as, void *host,
                      hwaddr len, bool is_write)
{
    PlaMapping key = { .as = as, .host = host, .is_write = is_write };
    PlaMapping *first = g_hash_table_lookup(mappings, &key);
    PlaMapping *m = NULL, **link = NULL;

    for (PlaMapping *try = first, **at = NULL; try;
         at = &try->next, try = try->next) {
        if (try->len == len || (try->len > len && !m)) {
            m = try;
            link = at;
            if (m->len == len) {
                break;
            }
        }
    }
    if (m && link) {
        *link = m->next;
    } else if (m) {
        g_hash_table_steal(mappings, m);
        if (m->next) {
            g_hash_table_add(mappings, m->next);
        }
    }
    return m;
}

static gboolean pla_is_of(gpointer key, gpointer value, gpointer as)
{
    return ((PlaMapping *)key)->as == as;
}

void pla_forget(GHashTable *mappings, AddressSpace *as)
{
    g_hash_table_foreach_remove(mappings, pla_is_of, as);
}

void pla_foreach(GHashTable *mappings, void (*fn)(PlaMapping *m, void *opaque),
                 void *opaque)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, mappings);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        for (PlaMapping *m = key; m; m = m->next) {
            fn(m, opaque);
        }
    }
}

/* Is this the memory of a PCI device, or below a PCI bus? */
static bool pla_is_peer(PCIDevice *pdev, MemoryRegion *mr)
{
    MemoryRegion *pci = pci_device_root_bus(pdev)->address_space_mem;
    Object *owner = memory_region_owner(mr);

    if (owner && object_dynamic_cast(owner, TYPE_PCI_DEVICE)) {
        return true;
    }
    for (; mr; mr = mr->container) {
        if (mr == pci) {
            return true;
        }
    }
    return false;
}

PlaEnd pla_dma_piece(PCIDevice *pdev, uint64_t addr, void *buf, hwaddr *len,
                     bool is_write, bool *peer)
{
    const MemTxAttrs attrs = { .requester_id = pci_requester_id(pdev) };
    MemTxResult result;
    hwaddr xlat;

    WITH_RCU_READ_LOCK_GUARD() {
        MemoryRegion *mr = address_space_translate(
            pci_get_address_space(pdev), addr, &xlat, len, is_write, attrs);

        *peer = pla_is_peer(pdev, mr);
    }
    result = pci_dma_rw(pdev, addr, buf, *len,
                        is_write ? DMA_DIRECTION_FROM_DEVICE :
                        DMA_DIRECTION_TO_DEVICE, attrs);
    if (result == MEMTX_OK) {
        return PLA_MOVED;
    }
    return is_write ? PLA_LOST : PLA_FAILED;
}

bool pla_dma_ram(PCIDevice *pdev, uint64_t addr, void *buf, hwaddr *len,
                 bool is_write, bool *peer)
{
    AddressSpace *as = pci_get_address_space(pdev);
    MemoryRegion *mr;
    hwaddr n = *len;

    /* What was written before is seen before */
    dma_barrier(as, is_write ? DMA_DIRECTION_FROM_DEVICE :
                DMA_DIRECTION_TO_DEVICE);
    RCU_READ_LOCK_GUARD();
    mr = address_space_rw_ram(as, addr, buf, &n, is_write);
    if (!mr) {
        return false;
    }
    *len = n;
    *peer = pla_is_peer(pdev, mr);
    return true;
}

static void pla_get_fault(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    uint32_t left = qatomic_read((uint32_t *)opaque);

    visit_type_uint32(v, name, &left, errp);
}

static void pla_set_fault(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    uint32_t left;

    if (visit_type_uint32(v, name, &left, errp)) {
        qatomic_set((uint32_t *)opaque, left);
    }
}

void pla_fault_add(Object *obj, const char *name, uint32_t *left)
{
    object_property_add(obj, name, "uint32", pla_get_fault, pla_set_fault,
                        NULL, left);
}

bool pla_fault_take(uint32_t *left)
{
    uint32_t was = qatomic_read(left);

    while (was) {
        uint32_t now = qatomic_cmpxchg(left, was, was - 1);

        if (now == was) {
            return true;
        }
        was = now;
    }
    return false;
}
