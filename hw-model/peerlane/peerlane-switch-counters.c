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

/* What a request adds to: which counter of which port */
typedef struct PlsTally {
    PlsCounters *counters;      /* NULL: of a port that is gone */
    enum pls_counter n;
} PlsTally;

/* Where a request goes */
typedef struct PlsWent {
    PlsTally tally[4 * PLS_MAX_DEPTH + 2];
    unsigned n;
    bool arrived;
    PlsUpstream *top;           /* it turned around below; only to compare */
} PlsWent;

/* Memory that is mapped: it counts where it went when it was mapped */
typedef struct PlsMapping {
    PlaMapping m;
    int64_t began;
    PlsWent went;
} PlsMapping;

static GHashTable *pls_mappings;

/* Of pairs, the write follows the read */
static enum pls_counter pls_kind(enum pls_counter n, bool is_write)
{
    return n + (is_write && n < PLS_CNT_OTHER);
}

static void pls_add(PlsWent *w, PlsCounters *c, enum pls_counter n,
                    bool is_write)
{
    if (!c->gone && w->n < ARRAY_SIZE(w->tally)) {
        w->tally[w->n++] = (PlsTally) { c, pls_kind(n, is_write) };
    }
}

/*
 * Is @as that of a function which lies below a port of ours, and will until
 * pls_lock is let go?
 *
 * Observers are called in any thread.  A vCPU and the main loop have the BQL; an
 * IO thread (iothread= of virtio-blk and virtio-scsi) has not, and the tree of
 * devices may change beside it.  But a function stops being observed, within
 * pls_lock, before it leaves its bus and before what is above it goes.  So
 * whoever walks up from a function asks this first, in the same section.
 */
static bool pls_observed(AddressSpace *as)
{
    return qatomic_read(&as->observer);
}

/* All ports that a request passes on its way down to @target, below @stop */
static void pls_add_target(PlsWent *w, PCIDevice *target, PlsUpstream *stop,
                           bool is_write)
{
    if (!pls_observed(&target->bus_master_as)) {
        return;
    }
    for (PCIBus *bus = pci_get_bus(target); bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsCounters *c = pls_counters(bus->parent_dev);

        if (stop && bus->parent_dev == (PCIDevice *)stop) {
            break;
        }
        if (c) {
            pls_add(w, c, PLS_CNT_TARGET_READ, is_write);
        }
    }
}

static void pls_count(PlsWent *w, hwaddr len)
{
    for (unsigned i = 0; i < w->n; i++) {
        if (w->tally[i].counters) {
            w->tally[i].counters->val[w->tally[i].n] += len;
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

/* The function whose memory this is, or NULL */
static PCIDevice *pls_target(MemoryRegion *mr)
{
    Object *owner = memory_region_owner(mr);

    return owner ? pls_as_pci_device(owner) : NULL;
}

/*
 * A request that came down through a port to where no device is.  The header on
 * the bus below has the address there, which an IOMMU has made of the device's.
 */
static void pls_log_unclaimed(PCIDevice *target, MemoryRegion *mr,
                              PCIDevice *dev, hwaddr offset, hwaddr len,
                              bool is_write)
{
    PlsDownstream *p = target ? pls_as_downstream(target) : NULL;

    if (p && mr == &p->unclaimed) {
        pls_log_refused(target, dev, false, offset, len, is_write);
    }
}

static bool pls_is_refused(PlsRouting routing)
{
    return routing != PLS_UP && routing != PLS_DIRECT;
}

/* @p, or the upstream port above it, does not let this go on */
static void pls_refuse(PlsWent *w, PlsDownstream *p, PlsRouting routing,
                       PCIDevice *dev, hwaddr addr, hwaddr len, bool is_write)
{
    PCIDevice *port = PCI_DEVICE(p);

    if (routing == PLS_REFUSE_ABOVE) {
        pls_add(w, &p->counters, PLS_CNT_OTHER, is_write);
        port = PCI_DEVICE(pls_upstream(p));
    }
    pls_log_refused(port, dev, routing == PLS_VIOLATION, addr, len, is_write);
    pls_add(w, pls_counters(port), PLS_CNT_REFUSED, is_write);
    trace_peerlane_switch_refused(pls_name(port), pls_name(dev), addr, len,
                                  is_write);
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
    PlsDownstream *p = bus && bus->parent_dev ?
                       pls_as_downstream(bus->parent_dev) : NULL;
    PlsRequester *r = p ? pls_find(p, bus, dev->devfn) : NULL;
    PlsPath path = { }, below = { };

    if (!r) {
        return;
    }
    pls_add_hops(&path, dev, top, false);
    if (target && pls_observed(&target->bus_master_as)) {
        pls_add_hops(&below, target, top, true);
    }
    while (below.n && path.n < ARRAY_SIZE(path.hops)) {
        path.hops[path.n++] = below.hops[--below.n];
    }
    pls_link_transfer(dev, &r->modelled, &path, len, is_write, began);
}

/*
 * Where a request of @dev goes that ends at @offset of @mr, with this result.
 * It holds for *@len bytes, which are made less if the rest goes another way.
 */
static void pls_follow(PlsWent *w, PCIDevice *dev, MemoryRegion *mr,
                       hwaddr addr, hwaddr offset, hwaddr *len,
                       bool is_write, MemTxResult result)
{
    PlsCounters *passed[2 * PLS_MAX_DEPTH];
    unsigned n = 0;
    PCIBus *own = pci_get_bus(dev);
    PlsDownstream *p = NULL, *to = NULL;
    PCIDevice *target = pls_target(mr);
    PlsRouting routing = PLS_UP;
    enum pls_counter end = PLS_CNT_OTHER;

    w->n = 0;
    w->top = NULL;
    for (PCIBus *bus = own; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        p = pls_as_downstream(bus->parent_dev);
        if (!p || n == ARRAY_SIZE(passed)) {
            continue;
        }
        routing = pls_route(p, own, dev->devfn, addr, len, &to);
        if (routing != PLS_UP) {
            break;
        }
        passed[n++] = &p->counters;
        passed[n++] = &pls_upstream(p)->counters;
    }
    w->arrived = result == MEMTX_OK;
    if (pls_is_refused(routing)) {
        w->arrived = false;
        pls_refuse(w, p, routing, dev, addr, *len, is_write);
    } else if (!w->arrived) {
        if (routing == PLS_DIRECT) {
            pls_add(w, &p->counters, PLS_CNT_OTHER, is_write);
        }
        pls_log_unclaimed(target, mr, dev, offset, *len, is_write);
    } else if (routing == PLS_DIRECT) {
        w->top = pls_upstream(p);
        end = PLS_CNT_UPSTREAM_PEER_READ;
        pls_add(w, &p->counters, PLS_CNT_PEER_READ, is_write);
        if (target) {
            pls_add_target(w, target, w->top, is_write);
        } else {
            pls_add(w, &to->counters, PLS_CNT_TARGET_READ, is_write);
        }
    } else if (target) {
        end = PLS_CNT_UPSTREAM_PEER_READ;
        pls_add_target(w, target, NULL, is_write);
    } else if (memory_region_is_ram(mr)) {
        end = PLS_CNT_HOST_READ;
    }
    for (unsigned i = 0; i < n; i++) {
        pls_add(w, passed[i], end, is_write);
    }
    if (end == PLS_CNT_OTHER) {
        w->arrived = false;
    }
}

/* It has ended, with @len bytes moved */
static void pls_account(PlsWent *w, PCIDevice *dev, MemoryRegion *mr,
                        hwaddr len, bool is_write, int64_t began)
{
    pls_count(w, len);
    if (pls_link_modelled && w->arrived && len) {
        pls_model(dev, pls_target(mr), w->top, len, is_write, began);
    }
}

/* The function that masters @as: only those of functions are observed */
static PCIDevice *pls_function(AddressSpace *as)
{
    return container_of(as, PCIDevice, bus_master_as);
}

/* While bus mastering is off all fails, and nothing leaves a function */
static bool pls_masters(PCIDevice *dev)
{
    return dev->bus_master_enable_region.enabled;
}

static int64_t pls_now(void)
{
    return pls_link_modelled ? qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) : 0;
}

static void pls_access(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                       hwaddr offset, hwaddr len, bool is_write,
                       MemTxResult result)
{
    PCIDevice *dev = pls_function(as);
    int64_t began = pls_now();
    PlsWent went;

    if (result != MEMTX_OK && !pls_masters(dev)) {
        return;
    }
    QEMU_LOCK_GUARD(&pls_lock);
    if (!pls_observed(as)) {
        return;
    }
    while (len) {
        hwaddr n = len;

        pls_follow(&went, dev, mr, addr, offset, &n, is_write, result);
        pls_account(&went, dev, mr, n, is_write, began);
        addr += n;
        offset += n;
        len -= n;
    }
}

/* What is mapped at once is memory of one device, and so has one way */
static void pls_map(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                    void *host, hwaddr len, bool is_write)
{
    PlsMapping *m;

    QEMU_LOCK_GUARD(&pls_lock);
    if (!pls_observed(as)) {
        return;
    }
    m = g_new0(PlsMapping, 1);
    m->m = (PlaMapping) {
        .as = as, .host = host, .len = len, .is_write = is_write,
    };
    m->began = pls_now();
    pls_follow(&m->went, pls_function(as), mr, addr, 0, &len, is_write,
               MEMTX_OK);
    pla_map(pls_mappings, &m->m);
}

static void pls_unmap(MemoryRegion *mr, AddressSpace *as, void *host,
                      hwaddr len, bool is_write, hwaddr access_len)
{
    g_autofree PlsMapping *m = NULL;

    QEMU_LOCK_GUARD(&pls_lock);
    m = (PlsMapping *)pla_unmap(pls_mappings, as, host, len, is_write);
    if (m) {
        pls_account(&m->went, pls_function(as), mr, access_len, is_write,
                    m->began);
    }
}

/*
 * A device asked first, and does not begin: all of it counts where the first
 * part ends that does not go on upwards.
 */
static void pls_invalid(AddressSpace *as, hwaddr addr, hwaddr len,
                        bool is_write)
{
    PCIDevice *dev = pls_function(as);
    PCIBus *own = pci_get_bus(dev);
    PlsWent went = { };

    if (!pls_masters(dev)) {
        return;
    }
    QEMU_LOCK_GUARD(&pls_lock);
    if (!pls_observed(as)) {
        return;
    }
    for (PCIBus *bus = own; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsDownstream *p = pls_as_downstream(bus->parent_dev);
        bool up = false;

        for (hwaddr at = 0, n; p && at < len; at += n) {
            PlsDownstream *to;
            PlsRouting routing;

            n = len - at;
            routing = pls_route(p, own, dev->devfn, addr + at, &n, &to);
            if (pls_is_refused(routing)) {
                pls_refuse(&went, p, routing, dev, addr + at, n, is_write);
                goto out;
            }
            up |= routing == PLS_UP;
        }
        if (p) {
            pls_add(&went, &p->counters, PLS_CNT_OTHER, is_write);
            if (!up) {
                break;
            }
            pls_add(&went, &pls_upstream(p)->counters, PLS_CNT_OTHER, is_write);
        }
    }
out:
    pls_count(&went, len);
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
    PCIDevice *port = d ? pci_bridge_get_device(pci_get_bus(d)) : NULL;
    PlsDownstream *p = port ? pls_as_downstream(port) : NULL;

    /* The link above an upstream port is that port's own */
    if (p && !pls_as_upstream(d)) {
        pls_link_show(&p->link, d);
    }
    for (PCIBus *bus = d ? pci_get_bus(d) : NULL; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        if (pls_counters(bus->parent_dev)) {
            address_space_set_observer(&d->bus_master_as, &pls_observer);
            return;
        }
    }
}

static void pls_device_unrealize(DeviceListener *listener, DeviceState *dev)
{
    PCIDevice *d = (PCIDevice *)object_dynamic_cast(OBJECT(dev),
                                                    TYPE_PCI_DEVICE);

    if (!d) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        address_space_set_observer(&d->bus_master_as, NULL);
        pla_forget(pls_mappings, &d->bus_master_as);
    }
    pls_forget_function(d);
}

static DeviceListener pls_listener = {
    .realize = pls_device_realize,
    .unrealize = pls_device_unrealize,
};
static unsigned pls_listeners;

void pls_counters_get(void)
{
    if (!pls_mappings) {
        /* For good: other threads may still be about to look at it */
        pls_mappings = pla_mappings_new();
    }
    if (!pls_listeners++) {
        pls_ports_init();
        device_listener_register(&pls_listener);
    }
}

static void pls_forget_tallies(PlaMapping *m, void *counters)
{
    PlsWent *w = &((PlsMapping *)m)->went;

    for (unsigned i = 0; i < w->n; i++) {
        if (w->tally[i].counters == counters) {
            w->tally[i].counters = NULL;
        }
    }
}

/*
 * The port of these is being unrealized.  Requests may still pass it, in other
 * threads too, but no mapping refers to its counters from now on.
 */
void pls_counters_forget(PlsCounters *counters)
{
    QEMU_LOCK_GUARD(&pls_lock);
    counters->gone = true;
    pla_foreach(pls_mappings, pls_forget_tallies, counters);
}

void pls_counters_put(void)
{
    if (!--pls_listeners) {
        device_listener_unregister(&pls_listener);
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
            pci_set_long(d->config + at,
                         pla_half(counters->val[i], &counters->high[i], false));
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
    pla_visit(v, name, pls_counter_names, copy, PLS_NUM_COUNTERS, errp);
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
