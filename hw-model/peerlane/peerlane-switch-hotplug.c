/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: the slots of downstream ports.
 *
 * QEMU's slots know presence but not the state of the link, and removal only
 * with the guest's consent.  Here are both.
 */
#include "qemu/osdep.h"
#include "hw/hotplug.h"
#include "hw/pci/msi.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "qapi/error.h"
#include "peerlane-switch.h"
#include "trace.h"

static uint8_t *pls_exp_cap(PCIDevice *d)
{
    return d->config + d->exp.exp_cap;
}

/* Besides what pcie_cap_slot_init() has done */
void pls_slot_init(PCIDevice *d)
{
    uint32_t pos = d->exp.exp_cap;

    if (!PCIE_SLOT(d)->hotplug) {
        return;
    }
    pci_long_test_and_set_mask(d->config + pos + PCI_EXP_LNKCAP,
                               PCI_EXP_LNKCAP_DLLLARC);
    pci_word_test_and_set_mask(d->wmask + pos + PCI_EXP_SLTCTL,
                               PCI_EXP_SLTCTL_DLLSCE);
    pci_word_test_and_set_mask(d->w1cmask + pos + PCI_EXP_SLTSTA,
                               PCI_EXP_SLTSTA_DLLSC);
}

void pls_slot_reset(PCIDevice *d)
{
    pcie_cap_slot_reset(d);
    pci_word_test_and_clear_mask(pls_exp_cap(d) + PCI_EXP_SLTCTL,
                                 PCI_EXP_SLTCTL_DLLSCE);
    pci_word_test_and_clear_mask(pls_exp_cap(d) + PCI_EXP_SLTSTA,
                                 PCI_EXP_SLTSTA_DLLSC);
}

bool pls_link_active(PCIDevice *d)
{
    return pci_get_word(pls_exp_cap(d) + PCI_EXP_LNKSTA) & PCI_EXP_LNKSTA_DLLLA;
}

/* These events have happened: one interrupt, if the guest wants it for any */
static void pls_slot_event(PCIDevice *d, uint16_t events)
{
    uint8_t *cap = pls_exp_cap(d);
    uint16_t ctl = pci_get_word(cap + PCI_EXP_SLTCTL);
    uint16_t new = events & ~pci_get_word(cap + PCI_EXP_SLTSTA);

    pci_word_test_and_set_mask(cap + PCI_EXP_SLTSTA, events);
    if (!(ctl & PCI_EXP_SLTCTL_PDCE)) {
        new &= ~PCI_EXP_SLTSTA_PDC;
    }
    if (!(ctl & PCI_EXP_SLTCTL_DLLSCE)) {
        new &= ~PCI_EXP_SLTSTA_DLLSC;
    }
    if (new && (ctl & PCI_EXP_SLTCTL_HPIE) && msi_enabled(d)) {
        msi_notify(d, pcie_cap_flags_get_vector(d));
    }
}

/* After anything that may have changed it; @was is the link's state before */
void pls_slot_check_link(PCIDevice *d, bool was)
{
    if (pls_link_active(d) != was) {
        pls_slot_event(d, PCI_EXP_SLTSTA_DLLSC);
    }
}

void pls_slot_plug(HotplugHandler *slot, DeviceState *dev, Error **errp)
{
    bool was = pls_link_active(PCI_DEVICE(slot));

    pcie_cap_slot_plug_cb(slot, dev, errp);
    if (dev->hotplugged) {
        pls_slot_check_link(PCI_DEVICE(slot), was);
    }
}

/* From here on its DMA fails, and it answers no access; work is waited for */
static void pls_power_off(PCIBus *bus, PCIDevice *dev, void *opaque)
{
    if (IS_PCI_BRIDGE(dev)) {
        pci_for_each_device_under_bus(pci_bridge_get_sec_bus(PCI_BRIDGE(dev)),
                                      pls_power_off, NULL);
    }
    pci_set_power(dev, false);
}

static void pls_pull(PCIBus *bus, PCIDevice *dev, void *opaque)
{
    hotplug_handler_unplug(qdev_get_hotplug_handler(DEVICE(dev)), DEVICE(dev),
                           &error_abort);
    object_unparent(OBJECT(dev));
}

static void pls_surprise_removal(Object *obj, bool value, Error **errp)
{
    PCIDevice *d = PCI_DEVICE(obj);
    PCIBus *bus;
    uint8_t *cap;

    if (!value) {
        error_setg(errp, "surprise-removal can only be set to true");
        return;
    }
    if (!DEVICE(d)->realized) {
        error_setg(errp, "surprise-removal is for a port that works");
        return;
    }
    bus = pci_bridge_get_sec_bus(PCI_BRIDGE(d));
    if (BUS(bus)->hotplug_handler != HOTPLUG_HANDLER(d) ||
        !PCIE_SLOT(d)->hotplug) {
        error_setg(errp, "surprise-removal needs hotplug=on and native "
                   "hotplug (-global ICH9-LPC."
                   "acpi-pci-hotplug-with-bridge-support=off)");
        return;
    }
    if (!BUS(bus)->num_children) {
        error_setg(errp, "no device is plugged below %s", pls_name(d));
        return;
    }
    trace_peerlane_switch_surprise_removal(pls_name(d));
    cap = pls_exp_cap(d);
    pci_for_each_device_under_bus(bus, pls_power_off, NULL);
    pci_for_each_device_under_bus(bus, pls_pull, NULL);
    pci_word_test_and_clear_mask(cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS);
    pci_word_test_and_clear_mask(cap + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA);
    pls_slot_event(d, PCI_EXP_SLTSTA_PDC | PCI_EXP_SLTSTA_DLLSC);
}

void pls_slot_add_property(ObjectClass *klass)
{
    object_class_property_add_bool(klass, "surprise-removal", NULL,
                                   pls_surprise_removal);
}
