/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: where a request from below a downstream port goes.
 *
 * Each function below a port has an address space there: what lies above the
 * switch, and in front of it the windows of the switch's ports, as ACS lets
 * them be reached.  An outer switch is what lies above an inner one.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "peerlane-switch.h"
#include "trace.h"

QemuMutex pls_lock;
static uint64_t pls_live;

static uint16_t pls_acs(PlsDownstream *p)
{
    return p->acs ? pci_get_word(PCI_DEVICE(p)->config + PLS_ACS_OFFSET +
                                 PCI_ACS_CTRL) : 0;
}

static bool pls_egress_bit(PlsDownstream *p, PlsDownstream *to)
{
    uint64_t vector = pci_get_quad(PCI_DEVICE(p)->config + PLS_ACS_VECTOR);

    return vector & BIT_ULL(PCIE_PORT(to)->port);
}

/* How @p treats requests from below for what lies below @to */
static PlsRouting pls_peer_routing(PlsDownstream *p, PlsDownstream *to)
{
    uint16_t acs = pls_acs(p);

    if (p == to) {
        return acs & PCI_ACS_UF ? PLS_UP : PLS_REFUSE;
    }
    if (acs & PCI_ACS_EC) {
        if (!pls_egress_bit(p, to)) {
            return PLS_DIRECT;
        }
        return acs & PCI_ACS_RR ? PLS_UP : PLS_VIOLATION;
    }
    return acs & PCI_ACS_RR ? PLS_UP : PLS_DIRECT;
}

static bool pls_source_valid(PlsDownstream *p, PCIBus *bus)
{
    uint8_t *config = PCI_DEVICE(p)->config;
    int n = pci_bus_num(bus);

    return !(pls_acs(p) & PCI_ACS_SV) ||
           (n >= config[PCI_SECONDARY_BUS] && n <= config[PCI_SUBORDINATE_BUS]);
}

/* Bus master enable of a port: may what comes from below go on upwards? */
static bool pls_lets_up(void *port)
{
    return pci_get_word(PCI_DEVICE(port)->config + PCI_COMMAND) &
           PCI_COMMAND_MASTER;
}

static void pls_add_route(PlsRequester *r, hwaddr base, hwaddr size,
                          PlsRouting routing, PlsDownstream *to)
{
    MemoryRegion *target = &r->port->refuse;
    PlsRoute *route;

    if (routing == PLS_UP && !pls_lets_up(pls_upstream(r->port))) {
        routing = PLS_REFUSE_ABOVE;
    }
    if (routing == PLS_UP) {
        target = r->parent_as->root;
    } else if (routing == PLS_DIRECT) {
        target = pci_get_bus(PCI_DEVICE(to))->address_space_mem;
    }
    route = g_new0(PlsRoute, 1);
    route->base = base;
    route->size = size;
    route->routing = routing;
    route->to = to;
    memory_region_init_alias(&route->mr, OBJECT(r), "peerlane-switch-route",
                             target, base, size);
    memory_region_add_subregion_overlap(&r->root, base, &route->mr,
                                        1 + r->routes->len);
    g_ptr_array_add(r->routes, route);
    trace_peerlane_switch_route(pls_name(r->port), pci_bus_num(r->bus),
                                PCI_SLOT(r->devfn), PCI_FUNC(r->devfn), base,
                                size, routing);
}

/*
 * Nothing goes up.  What is above may end so, too, and of two regions that have
 * all addresses QEMU cannot hide one behind the other.
 */
static void pls_add_end(PlsRequester *r, PlsRouting routing)
{
    memory_region_set_enabled(&r->up, false);
    pls_add_route(r, 0, UINT64_MAX, routing, NULL);
}

/* Routes for the windows of @bridge */
static void pls_add_windows(PlsRequester *r, PCIDevice *bridge,
                            PlsRouting routing, PlsDownstream *to)
{
    static const uint8_t types[] = {
        PCI_BASE_ADDRESS_SPACE_MEMORY, PCI_BASE_ADDRESS_MEM_PREFETCH
    };

    if (!(pci_get_word(bridge->config + PCI_COMMAND) & PCI_COMMAND_MEMORY)) {
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        pcibus_t base = pci_bridge_get_base(bridge, types[i]);
        pcibus_t limit = pci_bridge_get_limit(bridge, types[i]);

        if (base <= limit && limit != UINT64_MAX) {
            pls_add_route(r, base, limit - base + 1, routing, to);
        }
    }
}

static void pls_drop(PlsRequester *r);

static void pls_free_route(PlsRequester *r, PlsRoute *route)
{
    memory_region_del_subregion(&r->root, &route->mr);
    object_unparent(OBJECT(&route->mr));
    g_free(route);
}

/* Within a memory transaction */
static void pls_set_routes(PlsRequester *r)
{
    PlsDownstream *p = r->port;
    PlsUpstream *up = pls_upstream(p);
    PCIBus *bus = pci_get_bus(PCI_DEVICE(p));

    QEMU_LOCK_GUARD(&pls_lock);
    for (unsigned i = 0; i < r->routes->len; i++) {
        pls_free_route(r, g_ptr_array_index(r->routes, i));
    }
    g_ptr_array_set_size(r->routes, 0);
    memory_region_set_enabled(&r->up, true);

    if (!pls_source_valid(p, r->bus)) {
        pls_add_end(r, PLS_VIOLATION);
        return;
    }
    if (!pls_lets_up(p)) {
        pls_add_end(r, PLS_REFUSE);
        return;
    }
    if (!pls_lets_up(up)) {
        pls_add_end(r, PLS_REFUSE_ABOVE);
    }
    /* What belongs below the switch, and nobody there claims */
    if (!(pls_acs(p) & PCI_ACS_RR)) {
        pls_add_windows(r, PCI_DEVICE(up), PLS_REFUSE, NULL);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bus->devices); i++) {
        PlsDownstream *to;

        if (!bus->devices[i] || bus->devices[i] == PCI_DEVICE(p) ||
            !object_dynamic_cast(OBJECT(bus->devices[i]),
                                 TYPE_PEERLANE_SWITCH_DOWNSTREAM)) {
            continue;
        }
        to = PEERLANE_SWITCH_DOWNSTREAM(bus->devices[i]);
        if (!to->unrealizing) {
            pls_add_windows(r, PCI_DEVICE(to), pls_peer_routing(p, to), to);
        }
    }
    pls_add_windows(r, PCI_DEVICE(p), pls_peer_routing(p, p), p);
}

/*
 * A function that could not be realized leaves a requester behind.  On a
 * conventional bus requests have the bridge's ID, and the slot says nothing.
 */
static bool pls_is_orphan(PlsRequester *r)
{
    return pci_bus_is_express(r->bus) && !r->bus->devices[r->devfn];
}

static void pls_update_ports(PlsUpstream *up)
{
    PCIBus *bus = pci_bridge_get_sec_bus(PCI_BRIDGE(up));

    for (unsigned i = 0; i < ARRAY_SIZE(bus->devices); i++) {
        PlsRequester *r, *next;
        PlsDownstream *p;

        if (!bus->devices[i] ||
            !object_dynamic_cast(OBJECT(bus->devices[i]),
                                 TYPE_PEERLANE_SWITCH_DOWNSTREAM)) {
            continue;
        }
        p = PEERLANE_SWITCH_DOWNSTREAM(bus->devices[i]);
        QLIST_FOREACH_SAFE(r, &p->requesters, next, next) {
            if (pls_is_orphan(r)) {
                pls_drop(r);
            } else {
                pls_set_routes(r);
            }
        }
    }
}

/* The switch that @up is below, if any */
static PlsUpstream *pls_outer(PlsUpstream *up)
{
    for (PCIBus *bus = pci_get_bus(PCI_DEVICE(up)); bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        Object *obj = object_dynamic_cast(OBJECT(bus->parent_dev),
                                          TYPE_PEERLANE_SWITCH_DOWNSTREAM);

        if (obj) {
            return pls_upstream(PEERLANE_SWITCH_DOWNSTREAM(obj));
        }
    }
    return NULL;
}

/* Bus numbers of a switch are what source validation of outer ones looks at */
void pls_update(PlsUpstream *up)
{
    memory_region_transaction_begin();
    for (; up; up = pls_outer(up)) {
        pls_update_ports(up);
    }
    memory_region_transaction_commit();
}

PlsRequester *pls_find(PlsDownstream *p, PCIBus *bus, int devfn)
{
    PlsRequester *r;

    QLIST_FOREACH(r, &p->requesters, next) {
        if (r->bus == bus && r->devfn == devfn) {
            return r;
        }
    }
    return NULL;
}

/*
 * How @addr is routed, which holds for *@len bytes (made smaller if need be).
 * Within pls_lock.
 */
PlsRouting pls_route(PlsDownstream *p, PCIBus *bus, int devfn, hwaddr addr,
                     hwaddr *len, PlsDownstream **to)
{
    PlsRequester *r = pls_find(p, bus, devfn);

    for (unsigned i = r ? r->routes->len : 0; i-- > 0; ) {
        PlsRoute *route = g_ptr_array_index(r->routes, i);

        if (addr < route->base) {
            *len = MIN(*len, route->base - addr);
        } else if (addr - route->base < route->size) {
            *len = MIN(*len, route->size - (addr - route->base));
            *to = route->to;
            return route->routing;
        }
    }
    return PLS_UP;
}

/* The bus above @up that translates, if any */
static PCIBus *pls_iommu_bus(PlsUpstream *up)
{
    PCIBus *bus = pci_get_bus(PCI_DEVICE(up));

    while (!bus->iommu_ops && bus->parent_dev) {
        bus = pci_get_bus(bus->parent_dev);
    }
    return bus->iommu_ops ? bus : NULL;
}

static AddressSpace *pls_get_address_space(PCIBus *bus, void *opaque,
                                           int devfn)
{
    PlsDownstream *p = opaque;
    PlsRequester *r = pls_find(p, bus, devfn);
    PCIBus *above;

    if (r) {
        return &r->as;
    }
    above = pls_iommu_bus(pls_upstream(p));

    r = PEERLANE_SWITCH_REQUESTER(object_new(TYPE_PEERLANE_SWITCH_REQUESTER));
    r->port = p;
    r->bus = bus;
    r->devfn = devfn;
    r->parent_as = !above ? &address_space_memory :
        above->iommu_ops->get_address_space(bus, above->iommu_opaque, devfn);
    memory_region_init(&r->root, OBJECT(r), "peerlane-switch", UINT64_MAX);
    memory_region_init_alias(&r->up, OBJECT(r), "peerlane-switch-up",
                             r->parent_as->root, 0, UINT64_MAX);
    memory_region_add_subregion(&r->root, 0, &r->up);
    address_space_init(&r->as, &r->root, "peerlane-switch");
    memory_region_transaction_begin();
    pls_set_routes(r);
    memory_region_transaction_commit();
    /* With its routes: another thread may look for them from now on */
    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        QLIST_INSERT_HEAD(&p->requesters, r, next);
    }
    return &r->as;
}

static bool pls_set_iommu_device(PCIBus *bus, void *opaque, int devfn,
                                 HostIOMMUDevice *dev, Error **errp)
{
    PCIBus *above = pls_iommu_bus(pls_upstream(opaque));

    if (!above || !above->iommu_ops->set_iommu_device) {
        return true;
    }
    return above->iommu_ops->set_iommu_device(bus, above->iommu_opaque, devfn,
                                              dev, errp);
}

static void pls_unset_iommu_device(PCIBus *bus, void *opaque, int devfn)
{
    PCIBus *above = pls_iommu_bus(pls_upstream(opaque));

    if (above && above->iommu_ops->unset_iommu_device) {
        above->iommu_ops->unset_iommu_device(bus, above->iommu_opaque, devfn);
    }
}

static const PCIIOMMUOps pls_iommu_ops = {
    .get_address_space = pls_get_address_space,
    .set_iommu_device = pls_set_iommu_device,
    .unset_iommu_device = pls_unset_iommu_device,
};

/* The address space and its views keep @r until nobody uses them any more */
static void pls_drop(PlsRequester *r)
{
    memory_region_transaction_begin();
    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        QLIST_REMOVE(r, next);
        for (unsigned i = 0; i < r->routes->len; i++) {
            pls_free_route(r, g_ptr_array_index(r->routes, i));
        }
        g_ptr_array_set_size(r->routes, 0);
    }
    memory_region_del_subregion(&r->root, &r->up);
    memory_region_transaction_commit();
    address_space_destroy(&r->as);
    object_unref(OBJECT(r));
}

/*
 * @dev goes: its requester goes, and when it is a bridge those of the bus below
 * it.  Functions of a conventional bus share one, which goes with the bus.
 */
void pls_forget_function(PCIDevice *dev)
{
    PCIBus *own = pci_get_bus(dev);
    PCIBus *below = IS_PCI_BRIDGE(dev) ? &PCI_BRIDGE(dev)->sec_bus : NULL;

    for (PCIBus *bus = own; bus && bus->parent_dev;
         bus = pci_get_bus(bus->parent_dev)) {
        PlsDownstream *p = (PlsDownstream *)object_dynamic_cast(
            OBJECT(bus->parent_dev), TYPE_PEERLANE_SWITCH_DOWNSTREAM);
        PlsRequester *r, *next;

        if (!p) {
            continue;
        }
        QLIST_FOREACH_SAFE(r, &p->requesters, next, next) {
            if ((below && r->bus == below) ||
                (r->bus == own && r->devfn == dev->devfn &&
                 pci_bus_is_express(own))) {
                pls_drop(r);
            }
        }
    }
}

uint64_t pls_live_requesters(void)
{
    return qatomic_read(&pls_live);
}

/* Only asks: what does not go on is not counted here but by the observer */
static bool pls_refuse_accepts(void *opaque, hwaddr addr, unsigned size,
                               bool is_write, MemTxAttrs attrs)
{
    trace_peerlane_switch_refuse(pls_name(opaque), addr, size, is_write);
    return false;
}

static const MemoryRegionOps pls_refuse_ops = {
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {
        .min_access_size = 1,
        .max_access_size = 8,
        .accepts = pls_refuse_accepts,
        .refused_ones = true,
    },
};

/* Where nothing answers below a port; a CPU does not look at the error */
static bool pls_unclaimed_accepts(void *opaque, hwaddr addr, unsigned size,
                                  bool is_write, MemTxAttrs attrs)
{
    return false;
}

static const MemoryRegionOps pls_unclaimed_ops = {
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {
        .min_access_size = 1,
        .max_access_size = 8,
        .accepts = pls_unclaimed_accepts,
        .refused_ones = true,
    },
};

void pls_downstream_init_routes(PlsDownstream *p)
{
    PCIBus *bus = pci_bridge_get_sec_bus(PCI_BRIDGE(p));

    memory_region_init_io(&p->unclaimed, OBJECT(p), &pls_unclaimed_ops, p,
                          "peerlane-switch-unclaimed", UINT64_MAX);
    memory_region_add_subregion_overlap(bus->address_space_mem, 0,
                                        &p->unclaimed, INT_MIN);
    memory_region_init_io(&p->refuse, OBJECT(p), &pls_refuse_ops, p,
                          "peerlane-switch-refuse", UINT64_MAX);
    pci_setup_iommu(bus, &pls_iommu_ops, p);
}

void pls_downstream_exit_routes(PlsDownstream *p)
{
    PCIBus *bus = pci_bridge_get_sec_bus(PCI_BRIDGE(p));
    PlsRequester *r, *next;

    p->unrealizing = true;
    pls_update(pls_upstream(p));
    QLIST_FOREACH_SAFE(r, &p->requesters, next, next) {
        pls_drop(r);
    }
    memory_region_del_subregion(bus->address_space_mem, &p->unclaimed);
}

static void pls_requester_instance_init(Object *obj)
{
    PlsRequester *r = PEERLANE_SWITCH_REQUESTER(obj);

    r->routes = g_ptr_array_new();
    qatomic_inc(&pls_live);
}

static void pls_requester_finalize(Object *obj)
{
    PlsRequester *r = PEERLANE_SWITCH_REQUESTER(obj);

    g_ptr_array_free(r->routes, true);
    qatomic_dec(&pls_live);
}

static const TypeInfo pls_requester_info = {
    .name = TYPE_PEERLANE_SWITCH_REQUESTER,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(PlsRequester),
    .instance_init = pls_requester_instance_init,
    .instance_finalize = pls_requester_finalize,
};

static void pls_route_register_types(void)
{
    qemu_mutex_init(&pls_lock);
    type_register_static(&pls_requester_info);
}

type_init(pls_route_register_types)
