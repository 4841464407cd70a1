/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: bytes per port, read by the guest in the configuration
 * space and from outside as a QOM property.
 *
 * An observer on the address space of each function below a port hears of its
 * DMA; memory stays directly accessible.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "exec/memory.h"
#include "qemu/timer.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "migration/vmstate.h"
#include "peerlane-switch.h"
#include "trace.h"

static const char *const pls_counter_names[] = {
    [PLS_CNT_PEER_READ] = "peer-read",
    [PLS_CNT_PEER_WRITE] = "peer-write",
    [PLS_CNT_HOST_READ] = "host-read",
    [PLS_CNT_HOST_WRITE] = "host-write",
    [PLS_CNT_UPSTREAM_PEER_READ] = "upstream-peer-read",
    [PLS_CNT_UPSTREAM_PEER_WRITE] = "upstream-peer-write",
    [PLS_CNT_TARGET_READ] = "target-read",
    [PLS_CNT_TARGET_WRITE] = "target-write",
    [PLS_CNT_OTHER] = "other",
    [PLS_CNT_REFUSED] = "refused",
};
QEMU_BUILD_BUG_ON(ARRAY_SIZE(pls_counter_names) != PLS_NUM_COUNTERS);

/* Memory that is mapped for DMA, which counts when the mapping ends */
typedef struct PlsMapping {
    AddressSpace *as;
    void *host;
    bool is_write;
    hwaddr addr;
    int64_t began;
    unsigned users;
} PlsMapping;

static GHashTable *pls_mappings;

static guint pls_mapping_hash(gconstpointer p)
{
    const PlsMapping *m = p;

    return g_direct_hash(m->host) * 31 + g_direct_hash(m->as) + m->is_write;
}

static gboolean pls_mapping_equal(gconstpointer a, gconstpointer b)
{
    const PlsMapping *x = a, *y = b;

    return x->as == y->as && x->host == y->host && x->is_write == y->is_write;
}

/* A cast by name would cost more than all else that is done for a page */
static ObjectClass *pls_downstream_class, *pls_upstream_class;

static PlsDownstream *pls_as_downstream(PCIDevice *d)
{
    return object_get_class(OBJECT(d)) == pls_downstream_class ?
           (PlsDownstream *)d : NULL;
}

static PlsUpstream *pls_as_upstream(PCIDevice *d)
{
    return object_get_class(OBJECT(d)) == pls_upstream_class ?
           (PlsUpstream *)d : NULL;
}

PlsCounters *pls_counters(PCIDevice *d)
{
    PlsDownstream *p = pls_as_downstream(d);
    PlsUpstream *up = p ? NULL : pls_as_upstream(d);

    return p ? &p->counters : up ? &up->counters : NULL;
}

PlsLink *pls_link(PCIDevice *d)
{
    PlsDownstream *p = pls_as_downstream(d);
    PlsUpstream *up = p ? NULL : pls_as_upstream(d);

    return p ? &p->link : up ? &up->link : NULL;
}

static void pls_add(PlsCounters *c, enum pls_counter n, bool is_write,
                    hwaddr len)
{
    /* Of pairs, the write follows the read */
    c->val[n + (is_write && n < PLS_CNT_OTHER)] += len;
}

/* All ports that a request passes on its way down to @target, below @stop */
static void pls_count_target(PCIDevice *target, PlsUpstream *stop,
                             bool is_write, hwaddr len)
{
    for (PCIBus *bus = pci_get_bus(target); bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsCounters *c = pls_counters(bus->parent_dev);

        if (stop && bus->parent_dev == (PCIDevice *)stop) {
            break;
        }
        if (c) {
            pls_add(c, PLS_CNT_TARGET_READ, is_write, len);
        }
    }
}

/* Within pls_lock; most objects in a row are of one class */
static PCIDevice *pls_as_pci_device(Object *obj)
{
    static ObjectClass *last;
    static bool is_pci;
    ObjectClass *class = object_get_class(obj);

    if (class != last) {
        last = class;
        is_pci = object_class_dynamic_cast(class, TYPE_PCI_DEVICE);
    }
    return is_pci ? (PCIDevice *)obj : NULL;
}

/* What a request that leaves all switches upwards reaches there */
static enum pls_counter pls_end(MemoryRegion *mr, PCIDevice **target)
{
    Object *owner = memory_region_owner(mr);

    *target = owner ? pls_as_pci_device(owner) : NULL;
    if (*target) {
        return pls_counters(*target) ? PLS_CNT_OTHER :
                                       PLS_CNT_UPSTREAM_PEER_READ;
    }
    return memory_region_is_ram(mr) ? PLS_CNT_HOST_READ : PLS_CNT_OTHER;
}

/* The links above @dev, below @stop; that of two switches is the lower one's */
static void pls_add_hops(PlsPath *path, PCIDevice *dev, PlsUpstream *stop,
                         bool down)
{
    for (PCIBus *bus = pci_get_bus(dev); bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsLink *link = pls_link(bus->parent_dev);

        if (stop && bus->parent_dev == (PCIDevice *)stop) {
            break;
        }
        if (link && path->n < ARRAY_SIZE(path->hops) &&
            !(pls_as_downstream(bus->parent_dev) && pls_as_upstream(dev))) {
            path->hops[path->n++] = (PlsHop) { link, down };
        }
        dev = bus->parent_dev;
    }
}

/* A request that has arrived, at @target or in memory of the host */
static void pls_model(PCIDevice *dev, PCIDevice *target, PlsUpstream *top,
                      hwaddr len, bool is_write, int64_t began)
{
    PCIBus *bus = pci_get_bus(dev);
    PlsDownstream *p = bus->parent_dev ? pls_as_downstream(bus->parent_dev) :
                                         NULL;
    PlsRequester *r = p ? pls_find(p, bus, dev->devfn) : NULL;
    PlsPath path = { }, below = { };

    if (!r) {
        return;
    }
    pls_add_hops(&path, dev, top, false);
    if (target) {
        pls_add_hops(&below, target, top, true);
    }
    while (below.n && path.n < ARRAY_SIZE(path.hops)) {
        path.hops[path.n++] = below.hops[--below.n];
    }
    pls_link_transfer(&r->modelled, &path, len, is_write, began);
}

/*
 * Account one request of @dev; @mr is where it ended.
 * Returns how many bytes went the same way.
 */
static hwaddr pls_account_piece(PCIDevice *dev, MemoryRegion *mr, hwaddr addr,
                                hwaddr len, bool is_write,
                                int64_t began)
{
    PlsCounters *passed[2 * PLS_MAX_DEPTH];
    unsigned n = 0;
    PCIBus *own = pci_get_bus(dev);
    PlsDownstream *p = NULL, *to = NULL;
    PCIDevice *target;
    PlsWay way = PLS_UP;
    enum pls_counter end;

    for (PCIBus *bus = own; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        p = pls_as_downstream(bus->parent_dev);
        if (!p || n == ARRAY_SIZE(passed)) {
            continue;
        }
        way = pls_route(p, own, dev->devfn, addr, &len, &to);
        if (way != PLS_UP) {
            break;
        }
        passed[n++] = &p->counters;
        passed[n++] = &pls_upstream(p)->counters;
    }
    end = pls_end(mr, &target);
    if (way == PLS_REFUSE || way == PLS_VIOLATION) {
        pls_log_refused(p, dev, way == PLS_VIOLATION, addr, len, is_write);
        pls_add(&p->counters, PLS_CNT_REFUSED, is_write, len);
        end = PLS_CNT_OTHER;
        trace_peerlane_switch_refused(pls_name(p), pls_name(dev), addr, len,
                                      is_write);
    } else if (way == PLS_DIRECT) {
        pls_add(&p->counters, PLS_CNT_PEER_READ, is_write, len);
        end = PLS_CNT_UPSTREAM_PEER_READ;
        if (target && !pls_counters(target)) {
            pls_count_target(target, pls_upstream(p), is_write, len);
        } else {
            pls_add(&to->counters, PLS_CNT_TARGET_READ, is_write, len);
        }
    } else if (end == PLS_CNT_UPSTREAM_PEER_READ) {
        pls_count_target(target, NULL, is_write, len);
    }
    for (unsigned i = 0; i < n; i++) {
        pls_add(passed[i], end, is_write, len);
    }
    if (pls_link_modelled && end != PLS_CNT_OTHER &&
        !(target && pls_counters(target))) {
        pls_model(dev, target, way == PLS_DIRECT ? pls_upstream(p) : NULL, len,
                  is_write, began);
    }
    return len;
}

/* The function that masters @as: only those of functions are observed */
static PCIDevice *pls_function(AddressSpace *as)
{
    return container_of(as, PCIDevice, bus_master_as);
}

static void pls_account(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                        hwaddr len, bool is_write, int64_t began)
{
    while (len) {
        hwaddr n = pls_account_piece(pls_function(as), mr, addr, len,
                                     is_write, began);

        addr += n;
        len -= n;
    }
}

static int64_t pls_now(void)
{
    return pls_link_modelled ? qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) : 0;
}

static void pls_access(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                       hwaddr offset, hwaddr len, bool is_write)
{
    QEMU_LOCK_GUARD(&pls_lock);
    pls_account(mr, as, addr, len, is_write, pls_now());
}

static void pls_map(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                    void *host, hwaddr len, bool is_write)
{
    PlsMapping key = {
        .as = as, .host = host, .is_write = is_write, .addr = addr,
        .began = pls_now(),
    };
    PlsMapping *m;

    QEMU_LOCK_GUARD(&pls_lock);
    m = g_hash_table_lookup(pls_mappings, &key);
    if (!m) {
        m = g_memdup2(&key, sizeof(key));
        g_hash_table_add(pls_mappings, m);
    }
    m->users++;
}

static void pls_unmap(MemoryRegion *mr, AddressSpace *as, void *host,
                      bool is_write, hwaddr access_len)
{
    PlsMapping key = { .as = as, .host = host, .is_write = is_write };
    PlsMapping *m;

    QEMU_LOCK_GUARD(&pls_lock);
    m = g_hash_table_lookup(pls_mappings, &key);
    if (!m) {
        return;
    }
    pls_account(mr, as, m->addr, access_len, is_write, m->began);
    if (!--m->users) {
        g_hash_table_remove(pls_mappings, m);
    }
}

/* A device asked first, and does not begin: all of it is refused */
static void pls_invalid(AddressSpace *as, hwaddr addr, hwaddr len,
                        bool is_write)
{
    PCIDevice *dev = pls_function(as);
    PCIBus *own = pci_get_bus(dev);

    QEMU_LOCK_GUARD(&pls_lock);
    for (PCIBus *bus = own; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsDownstream *p = pls_as_downstream(bus->parent_dev);
        hwaddr at = 0;

        while (p && at < len) {
            hwaddr n = len - at;
            PlsDownstream *to;
            PlsWay way = pls_route(p, own, dev->devfn, addr + at, &n, &to);

            if (way == PLS_REFUSE || way == PLS_VIOLATION) {
                pls_log_refused(p, dev, way == PLS_VIOLATION, addr + at, n,
                                is_write);
                pls_add(&p->counters, PLS_CNT_REFUSED, is_write, len);
                trace_peerlane_switch_refused(pls_name(p), pls_name(dev),
                                              addr, len, is_write);
                return;
            }
            at += n;
        }
        if (p) {
            pls_add(&p->counters, PLS_CNT_OTHER, is_write, len);
            pls_add(&pls_upstream(p)->counters, PLS_CNT_OTHER, is_write, len);
        }
    }
}

static const MemoryRegionObserver pls_observer = {
    .access = pls_access,
    .map = pls_map,
    .unmap = pls_unmap,
    .invalid = pls_invalid,
};

/* Every function that is plugged below a port of ours is observed */
static void pls_device_realize(DeviceListener *listener, DeviceState *dev)
{
    PCIDevice *d = (PCIDevice *)object_dynamic_cast(OBJECT(dev),
                                                    TYPE_PCI_DEVICE);

    for (PCIBus *bus = d ? pci_get_bus(d) : NULL; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        if (pls_as_downstream(bus->parent_dev)) {
            address_space_set_observer(&d->bus_master_as, &pls_observer);
            return;
        }
    }
}

static gboolean pls_mapping_of(gpointer key, gpointer value, gpointer as)
{
    return ((PlsMapping *)key)->as == as;
}

static void pls_device_unrealize(DeviceListener *listener, DeviceState *dev)
{
    PCIDevice *d = (PCIDevice *)object_dynamic_cast(OBJECT(dev),
                                                    TYPE_PCI_DEVICE);

    if (!d) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        g_hash_table_foreach_remove(pls_mappings, pls_mapping_of,
                                    &d->bus_master_as);
    }
    address_space_set_observer(&d->bus_master_as, NULL);
    pls_forget_function(d);
}

static DeviceListener pls_listener = {
    .realize = pls_device_realize,
    .unrealize = pls_device_unrealize,
};
static unsigned pls_listeners;

void pls_counters_get(void)
{
    if (!pls_listeners++) {
        pls_downstream_class =
            object_class_by_name(TYPE_PEERLANE_SWITCH_DOWNSTREAM);
        pls_upstream_class =
            object_class_by_name(TYPE_PEERLANE_SWITCH_UPSTREAM);
        pls_mappings = g_hash_table_new_full(pls_mapping_hash,
                                             pls_mapping_equal, g_free, NULL);
        device_listener_register(&pls_listener);
    }
}

void pls_counters_put(void)
{
    if (!--pls_listeners) {
        device_listener_unregister(&pls_listener);
        g_hash_table_destroy(pls_mappings);
    }
}

/*
 * The capability: 64-bit counters, of which a read of the low half latches
 * the high half.
 */
void pls_vsec_init(PCIDevice *d)
{
    uint8_t *c = d->config + PLS_VSEC_OFFSET;

    pcie_add_capability(d, PCI_EXT_CAP_ID_VNDR, 1, PLS_VSEC_OFFSET,
                        PLS_VSEC_SIZE);
    pci_set_long(c + 4, PLS_VSEC_ID | 1 << 16 | PLS_VSEC_SIZE << 20);
    pci_set_long(c + 8, PLS_VSEC_MAGIC);
    pci_set_long(c + 12, PLS_NUM_COUNTERS);
    /* What migrates is in the counters, not here */
    memset(d->cmask + PLS_VSEC_OFFSET + PLS_VSEC_COUNTERS, 0,
           8 * PLS_NUM_COUNTERS);
}

void pls_vsec_read(PCIDevice *d, uint32_t address, int len)
{
    PlsCounters *counters = pls_counters(d);
    uint32_t first = PLS_VSEC_OFFSET + PLS_VSEC_COUNTERS;

    if (!ranges_overlap(address, len, first, 8 * PLS_NUM_COUNTERS)) {
        return;
    }
    QEMU_LOCK_GUARD(&pls_lock);
    for (unsigned i = 0; i < PLS_NUM_COUNTERS; i++) {
        uint32_t at = first + 8 * i;

        if (address == at) {
            counters->high[i] = counters->val[i] >> 32;
            pci_set_long(d->config + at, counters->val[i]);
            pci_set_long(d->config + at + 4, counters->high[i]);
        }
    }
}

static void pls_get_counters(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    uint64_t copy[PLS_NUM_COUNTERS];

    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        memcpy(copy, pls_counters(PCI_DEVICE(obj))->val, sizeof(copy));
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < PLS_NUM_COUNTERS; i++) {
        if (!visit_type_uint64(v, pls_counter_names[i], &copy[i], errp)) {
            goto out;
        }
    }
    visit_check_struct(v, errp);
out:
    visit_end_struct(v, NULL);
}

void pls_counters_add_property(Object *obj)
{
    object_property_add(obj, "counters", "struct", pls_get_counters, NULL,
                        NULL, NULL);
}

const VMStateDescription vmstate_pls_counters = {
    .name = "peerlane-switch-counters",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64_ARRAY(val, PlsCounters, PLS_NUM_COUNTERS),
        VMSTATE_END_OF_LIST()
    }
};
