/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: upstream and downstream ports of a PCI Express switch with
 * Access Control Services (ACS).
 */
#include "qemu/osdep.h"
#include "hw/hotplug.h"
#include "hw/pci/msi.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "hw/resettable.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "peerlane-switch.h"

static uint32_t pls_read_config(PCIDevice *d, uint32_t address, int len)
{
    pls_vsec_read(d, address, len);
    return pci_default_read_config(d, address, len);
}

/*
 * Does this write change where requests go?  A function level reset clears the
 * command register last, after the port was told of the reset.
 */
static bool pls_changes_routes(PCIDevice *d, uint32_t address, int len)
{
    return ranges_overlap(address, len, PCI_COMMAND, 2) ||
           ranges_overlap(address, len, d->exp.exp_cap + PCI_EXP_DEVCTL, 2) ||
           ranges_overlap(address, len, PCI_SECONDARY_BUS, 2) ||
           ranges_overlap(address, len, PCI_MEMORY_BASE, 20);
}

/* The capabilities that both kinds of ports have */
static bool pls_port_init(PCIDevice *d, uint8_t type, Error **errp)
{
    int rc;

    pcie_port_init_reg(d);
    rc = msi_init(d, PLS_MSI_OFFSET, 1, true, false, errp);
    if (rc < 0) {
        return false;
    }
    rc = pci_bridge_ssvid_init(d, PLS_SSVID_OFFSET, 0, 0, errp);
    if (rc < 0) {
        goto err_msi;
    }
    rc = pcie_cap_init(d, PLS_EXP_OFFSET, type, PCIE_PORT(d)->port, errp);
    if (rc < 0) {
        goto err_msi;
    }
    pcie_cap_flr_init(d);
    pcie_cap_deverr_init(d);
    rc = pcie_aer_init(d, PCI_ERR_VER, PLS_AER_OFFSET, PCI_ERR_SIZEOF, errp);
    if (rc < 0) {
        goto err_cap;
    }
    return true;

err_cap:
    pcie_cap_exit(d);
err_msi:
    msi_uninit(d);
    return false;
}

static void pls_port_exit(PCIDevice *d)
{
    pcie_aer_exit(d);
    pcie_cap_exit(d);
    msi_uninit(d);
}

static void pls_upstream_write_config(PCIDevice *d, uint32_t address,
                                      uint32_t val, int len)
{
    bool routes = pls_changes_routes(d, address, len);

    if (routes) {
        memory_region_transaction_begin();
    }
    pci_bridge_write_config(d, address, val, len);
    pcie_cap_flr_write_config(d, address, val, len);
    pcie_aer_write_config(d, address, val, len);
    if (routes) {
        pls_update(PEERLANE_SWITCH_UPSTREAM(d));
        memory_region_transaction_commit();
    }
}

static void pls_upstream_reset(Object *obj, ResetType type)
{
    DeviceState *qdev = DEVICE(obj);

    memory_region_transaction_begin();
    pci_bridge_reset(qdev);
    pcie_cap_deverr_reset(PCI_DEVICE(qdev));
    pls_update(PEERLANE_SWITCH_UPSTREAM(qdev));
    memory_region_transaction_commit();
}

static void pls_upstream_realize(PCIDevice *d, Error **errp)
{
    if (!pls_link_check(&PEERLANE_SWITCH_UPSTREAM(d)->link, errp)) {
        return;
    }
    pci_bridge_initfn(d, TYPE_PCIE_BUS);
    if (!pls_port_init(d, PCI_EXP_TYPE_UPSTREAM, errp)) {
        pci_bridge_exitfn(d);
        return;
    }
    pls_link_show(&PEERLANE_SWITCH_UPSTREAM(d)->link, d);
    pls_vsec_init(d);
    pls_counters_get();
}

static void pls_upstream_exit(PCIDevice *d)
{
    pls_port_exit(d);
    pci_bridge_exitfn(d);
    pls_counters_forget(&PEERLANE_SWITCH_UPSTREAM(d)->counters);
    pls_counters_put();
}

static int pls_upstream_post_load(void *opaque, int version_id)
{
    pls_update(opaque);
    return 0;
}

static const VMStateDescription vmstate_pls_upstream = {
    .name = TYPE_PEERLANE_SWITCH_UPSTREAM,
    .priority = MIG_PRI_PCI_BUS,
    .version_id = 2,
    .minimum_version_id = 2,
    .post_load = pls_upstream_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj.parent_obj.parent_obj, PlsUpstream),
        VMSTATE_STRUCT(parent_obj.parent_obj.parent_obj.exp.aer_log,
                       PlsUpstream, 0, vmstate_pcie_aer_log, PCIEAERLog),
        VMSTATE_STRUCT(counters, PlsUpstream, 1, vmstate_pls_counters,
                       PlsCounters),
        VMSTATE_END_OF_LIST()
    }
};

static void pls_get_live(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    uint64_t live = pls_live_requesters();

    visit_type_uint64(v, name, &live, errp);
}

static const Property pls_upstream_props[] = {
    DEFINE_PROP_UINT8("link-gen", PlsUpstream, link.gen, 0),
    DEFINE_PROP_UINT8("link-width", PlsUpstream, link.width, 16),
    DEFINE_PROP_UINT32("link-latency", PlsUpstream, link.latency, 0),
};

/* As firmware leaves it; that of QEMU reads from drives without setting it */
static void pls_port_reset_exit(Object *obj, ResetType type)
{
    PCIDevice *d = PCI_DEVICE(obj);
    uint16_t command = pci_get_word(d->config + PCI_COMMAND);
    PlsDownstream *p = pls_as_downstream(d);

    pci_default_write_config(d, PCI_COMMAND, command | PCI_COMMAND_MASTER, 2);
    pls_update(p ? pls_upstream(p) : PEERLANE_SWITCH_UPSTREAM(d));
}

/* What both kinds of ports are */
static void pls_port_class_init(ObjectClass *klass)
{
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    RESETTABLE_CLASS(klass)->phases.exit = pls_port_reset_exit;

    k->config_read = pls_read_config;
    k->vendor_id = PLS_VENDOR_ID;
    k->revision = 1;
    set_bit(DEVICE_CATEGORY_BRIDGE, DEVICE_CLASS(klass)->categories);
}

static void pls_upstream_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    pls_port_class_init(klass);
    k->config_write = pls_upstream_write_config;
    k->realize = pls_upstream_realize;
    k->exit = pls_upstream_exit;
    k->device_id = PLS_UPSTREAM_ID;
    dc->desc = "Peerlane PCI Express switch, upstream port";
    RESETTABLE_CLASS(klass)->phases.hold = pls_upstream_reset;
    dc->vmsd = &vmstate_pls_upstream;
    device_class_set_props(dc, pls_upstream_props);
    pls_link_add_requesters(klass);
    object_class_property_add(klass, "requesters-of-all-switches", "uint64",
                              pls_get_live, NULL, NULL, NULL);
}

/* ACS: what has no effect can be enabled all the same, see the spec */
static void pls_acs_init(PlsDownstream *p)
{
    PCIDevice *d = PCI_DEVICE(p);
    if (!p->acs) {
        return;
    }
    pcie_add_capability(d, PCI_EXT_CAP_ID_ACS, PCI_ACS_VER, PLS_ACS_OFFSET,
                        PCI_ACS_SIZEOF + 8);
    d->exp.acs_cap = PLS_ACS_OFFSET;
    pci_set_word(d->config + PLS_ACS_OFFSET + PCI_ACS_CAP,
                 PLS_ACS_BITS | (PLS_MAX_PORT + 1) << 8);
    pci_set_word(d->wmask + PLS_ACS_OFFSET + PCI_ACS_CTRL,
                 PLS_ACS_BITS);
    /* A port's own bit is not there */
    pci_set_quad(d->wmask + PLS_ACS_VECTOR, ~BIT_ULL(PCIE_PORT(p)->port));
}

static void pls_downstream_write_config(PCIDevice *d, uint32_t address,
                                        uint32_t val, int len)
{
    bool routes = pls_changes_routes(d, address, len) ||
                  ranges_overlap(address, len, PLS_ACS_OFFSET,
                                 PCI_ACS_SIZEOF + 8);
    uint16_t slt_ctl, slt_sta;

    if (routes) {
        memory_region_transaction_begin();
    }
    pcie_cap_slot_get(d, &slt_ctl, &slt_sta);
    pci_bridge_write_config(d, address, val, len);
    pcie_cap_flr_write_config(d, address, val, len);
    pls_slot_write_config(d, slt_ctl, slt_sta, address, val, len);
    pcie_aer_write_config(d, address, val, len);
    if (routes) {
        pls_update(pls_upstream(PEERLANE_SWITCH_DOWNSTREAM(d)));
        memory_region_transaction_commit();
    }
}

static void pls_downstream_reset(Object *obj, ResetType type)
{
    DeviceState *qdev = DEVICE(obj);
    PCIDevice *d = PCI_DEVICE(qdev);

    memory_region_transaction_begin();
    pcie_cap_deverr_reset(d);
    pci_word_test_and_clear_mask(d->config + PCI_SEC_STATUS,
                                 PCI_STATUS_SIG_TARGET_ABORT);
    pls_slot_reset(d);
    pcie_cap_arifwd_reset(d);
    pcie_acs_reset(d);
    if (d->exp.acs_cap) {
        pci_set_word(d->config + PLS_ACS_OFFSET + PCI_ACS_CTRL,
                     PEERLANE_SWITCH_DOWNSTREAM(d)->acs_control);
        pci_set_quad(d->config + PLS_ACS_VECTOR, 0);
    }
    pci_bridge_reset(qdev);
    pls_update(pls_upstream(PEERLANE_SWITCH_DOWNSTREAM(qdev)));
    memory_region_transaction_commit();
}

/* Port numbers index the egress control vector: give one, or take ours */
static bool pls_set_port_number(PCIDevice *d, Error **errp)
{
    PCIBus *bus = pci_get_bus(d);
    PCIEPort *port = PCIE_PORT(d);

    if (!port->port) {
        port->port = PCI_SLOT(d->devfn) + 1;
    }
    if (port->port > PLS_MAX_PORT) {
        error_setg(errp, "port=%u is more than %u", port->port, PLS_MAX_PORT);
        return false;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bus->devices); i++) {
        PCIDevice *other = bus->devices[i];

        if (other && other != d &&
            object_dynamic_cast(OBJECT(other),
                                TYPE_PEERLANE_SWITCH_DOWNSTREAM) &&
            PCIE_PORT(other)->port == port->port) {
            error_setg(errp, "port=%u is also that of another port of the "
                       "switch", port->port);
            return false;
        }
    }
    return true;
}

static void pls_downstream_realize(PCIDevice *d, Error **errp)
{
    PlsDownstream *p = PEERLANE_SWITCH_DOWNSTREAM(d);
    PCIESlot *s = PCIE_SLOT(d);
    PCIDevice *above = pci_get_bus(d)->parent_dev;

    if (!above || !object_dynamic_cast(OBJECT(above),
                                       TYPE_PEERLANE_SWITCH_UPSTREAM)) {
        error_setg(errp, TYPE_PEERLANE_SWITCH_DOWNSTREAM " belongs on the bus "
                   "of a " TYPE_PEERLANE_SWITCH_UPSTREAM);
        return;
    }
    if (p->acs_control & ~(p->acs ? PLS_ACS_BITS : 0)) {
        error_setg(errp, "acs-control=0x%x has bits that the port has not",
                   p->acs_control);
        return;
    }
    if (!pls_link_check(&p->link, errp)) {
        return;
    }
    p->up = PEERLANE_SWITCH_UPSTREAM(above);
    if (!pls_set_port_number(d, errp)) {
        return;
    }
    if (p->link.gen) {
        s->speed = p->link.gen;
        s->width = p->link.width;
    } else {
        s->speed = QEMU_PCI_EXP_LNK_2_5GT;
        s->width = QEMU_PCI_EXP_LNK_X1;
    }
    pci_bridge_initfn(d, TYPE_PCIE_BUS);
    if (!pls_port_init(d, PCI_EXP_TYPE_DOWNSTREAM, errp)) {
        goto err_bridge;
    }
    pcie_cap_slot_init(d, s);
    pls_slot_init(d);
    pcie_cap_arifwd_init(d);
    pcie_chassis_create(s->chassis);
    if (pcie_chassis_add_slot(s) < 0) {
        error_setg(errp, "chassis %u has a slot %u already", s->chassis,
                   s->slot);
        goto err_port;
    }
    pls_acs_init(p);
    pci_word_test_and_set_mask(d->w1cmask + PCI_SEC_STATUS,
                               PCI_STATUS_SIG_TARGET_ABORT);
    pls_vsec_init(d);
    pls_downstream_init_routes(p);
    return;

err_port:
    pls_port_exit(d);
err_bridge:
    pci_bridge_exitfn(d);
}

static void pls_downstream_exit(PCIDevice *d)
{
    pls_downstream_exit_routes(PEERLANE_SWITCH_DOWNSTREAM(d));
    pls_counters_forget(&PEERLANE_SWITCH_DOWNSTREAM(d)->counters);
    pcie_chassis_del_slot(PCIE_SLOT(d));
    pls_port_exit(d);
    pci_bridge_exitfn(d);
}

static int pls_downstream_post_load(void *opaque, int version_id)
{
    PlsDownstream *p = opaque;
    int rc = pcie_cap_slot_post_load(PCIE_SLOT(p), version_id);

    pls_update(pls_upstream(p));
    return rc;
}

static const VMStateDescription vmstate_pls_downstream = {
    .name = TYPE_PEERLANE_SWITCH_DOWNSTREAM,
    .priority = MIG_PRI_PCI_BUS,
    .version_id = 2,
    .minimum_version_id = 2,
    .post_load = pls_downstream_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj.parent_obj.parent_obj.parent_obj,
                           PlsDownstream),
        VMSTATE_STRUCT(parent_obj.parent_obj.parent_obj.parent_obj.exp.aer_log,
                       PlsDownstream, 0, vmstate_pcie_aer_log, PCIEAERLog),
        VMSTATE_STRUCT(counters, PlsDownstream, 1, vmstate_pls_counters,
                       PlsCounters),
        VMSTATE_END_OF_LIST()
    }
};

static const Property pls_downstream_props[] = {
    DEFINE_PROP_BIT(COMPAT_PROP_PCP, PCIDevice, cap_present,
                    QEMU_PCIE_SLTCAP_PCP_BITNR, true),
    DEFINE_PROP_BOOL("acs", PlsDownstream, acs, true),
    DEFINE_PROP_UINT16("acs-control", PlsDownstream, acs_control, 0),
    DEFINE_PROP_UINT8("link-gen", PlsDownstream, link.gen, 0),
    DEFINE_PROP_UINT8("link-width", PlsDownstream, link.width, 16),
    DEFINE_PROP_UINT32("link-latency", PlsDownstream, link.latency, 0),
};

static void pls_downstream_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    HotplugHandlerClass *hc = HOTPLUG_HANDLER_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);

    pls_port_class_init(klass);
    k->config_write = pls_downstream_write_config;
    k->realize = pls_downstream_realize;
    k->exit = pls_downstream_exit;
    k->device_id = PLS_DOWNSTREAM_ID;
    dc->desc = "Peerlane PCI Express switch, downstream port";
    RESETTABLE_CLASS(klass)->phases.hold = pls_downstream_reset;
    dc->vmsd = &vmstate_pls_downstream;
    device_class_set_props(dc, pls_downstream_props);
    hc->plug = pls_slot_plug;
    pls_slot_add_property(klass);
}

static void pls_port_instance_init(Object *obj)
{
    pls_counters_add_property(obj);
    pls_link_add_property(obj);
}

static const TypeInfo pls_types[] = {
    {
        .name = TYPE_PEERLANE_SWITCH_UPSTREAM,
        .parent = TYPE_PCIE_PORT,
        .instance_size = sizeof(PlsUpstream),
        .instance_init = pls_port_instance_init,
        .class_init = pls_upstream_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    }, {
        .name = TYPE_PEERLANE_SWITCH_DOWNSTREAM,
        .parent = TYPE_PCIE_SLOT,
        .instance_size = sizeof(PlsDownstream),
        .instance_init = pls_port_instance_init,
        .class_init = pls_downstream_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(pls_types)
