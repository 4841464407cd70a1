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

/* These events have happened: one interrupt, if the guest wants it for any */
static void pls_slot_event(PCIDevice *d, uint16_t events)
{
    uint8_t *cap = pls_exp_cap(d);
    uint16_t ctl = pci_get_word(cap + PCI_EXP_SLTCTL);
    uint16_t new = events & ~pci_get_word(cap + PCI_EXP_SLTSTA);
    bool irq;

    pci_word_test_and_set_mask(cap + PCI_EXP_SLTSTA, events);
    if (!(ctl & PCI_EXP_SLTCTL_PDCE)) {
        new &= ~PCI_EXP_SLTSTA_PDC;
    }
    if (!(ctl & PCI_EXP_SLTCTL_DLLSCE)) {
        new &= ~PCI_EXP_SLTSTA_DLLSC;
    }
    irq = new && (ctl & PCI_EXP_SLTCTL_HPIE) && msi_enabled(d);
    trace_peerlane_switch_slot_event(pls_name(d), events, irq);
    if (irq) {
        msi_notify(d, pcie_cap_flags_get_vector(d));
    }
}

static bool pls_slot_power(PCIDevice *d)
{
    uint8_t *cap = pls_exp_cap(d);

    return !(pci_get_long(cap + PCI_EXP_SLTCAP) & PCI_EXP_SLTCAP_PCP) ||
           !(pci_get_word(cap + PCI_EXP_SLTCTL) & PCI_EXP_SLTCTL_PCC);
}

static bool pls_occupied(PCIDevice *d)
{
    return pci_bridge_get_sec_bus(PCI_BRIDGE(d))->devices[0];
}

static bool pls_set_link(PCIDevice *d, bool up)
{
    uint8_t *sta = pls_exp_cap(d) + PCI_EXP_LNKSTA;
    uint16_t was = pci_get_word(sta) & PCI_EXP_LNKSTA_DLLLA;

    if (up) {
        pci_word_test_and_set_mask(sta, PCI_EXP_LNKSTA_DLLLA);
    } else {
        pci_word_test_and_clear_mask(sta, PCI_EXP_LNKSTA_DLLLA);
    }
    if (up == !!was) {
        return false;
    }
    trace_peerlane_switch_link(pls_name(d), up);
    return true;
}

/* Slot control decides on power; only a device that is to go goes with it */
void pls_slot_write_config(PCIDevice *d, uint16_t slt_ctl, uint16_t slt_sta,
                           uint32_t address, uint32_t val, int len)
{
    PCIDevice *below = pci_bridge_get_sec_bus(PCI_BRIDGE(d))->devices[0];
    bool was_on = !(slt_ctl & PCI_EXP_SLTCTL_PCC);

    if (below && !DEVICE(below)->pending_deleted_event) {
        /* QEMU destroys what is plugged when power goes, unless it was off */
        slt_ctl |= PCI_EXP_SLTCTL_PWR_IND_OFF | PCI_EXP_SLTCTL_PWR_OFF;
    }
    pcie_cap_slot_write_config(d, slt_ctl, slt_sta, address, val, len);
    if (pls_slot_power(d) != was_on &&
        pls_set_link(d, !was_on && pls_occupied(d))) {
        pls_slot_event(d, PCI_EXP_SLTSTA_DLLSC);
    }
}

void pls_slot_reset(PCIDevice *d)
{
    pcie_cap_slot_reset(d);
    pci_word_test_and_clear_mask(pls_exp_cap(d) + PCI_EXP_SLTCTL,
                                 PCI_EXP_SLTCTL_DLLSCE);
    pci_word_test_and_clear_mask(pls_exp_cap(d) + PCI_EXP_SLTSTA,
                                 PCI_EXP_SLTSTA_DLLSC);
    pls_set_link(d, pls_occupied(d));
}

static void pls_set_power(PCIBus *bus, PCIDevice *dev, void *on)
{
    pci_set_power(dev, *(bool *)on);
}

/*
 * QEMU presses the button for a device that comes, which is a second event:
 * a guest that was busy takes it for the order to turn the new device off.
 * Here the link comes up, whatever the slot's power.
 */
void pls_slot_plug(HotplugHandler *slot, DeviceState *dev, Error **errp)
{
    PCIDevice *d = PCI_DEVICE(slot);
    bool on = pls_slot_power(d);

    if (!dev->hotplugged || pci_is_vf(PCI_DEVICE(dev))) {
        pcie_cap_slot_plug_cb(slot, dev, errp);
        return;
    }
    if (!pls_occupied(d)) {
        return;         /* function 0 comes last */
    }
    trace_peerlane_switch_plug(pls_name(d), pls_name(dev), on);
    pci_word_test_and_set_mask(pls_exp_cap(d) + PCI_EXP_SLTSTA,
                               PCI_EXP_SLTSTA_PDS);
    pls_set_link(d, true);
    pci_for_each_device_under_bus(pci_get_bus(PCI_DEVICE(dev)), pls_set_power,
                                  &on);
    pls_slot_event(d, PCI_EXP_SLTSTA_PDC | PCI_EXP_SLTSTA_DLLSC);
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
    pls_set_link(d, false);
    pls_slot_event(d, PCI_EXP_SLTSTA_PDC | PCI_EXP_SLTSTA_DLLSC);
}

void pls_slot_add_property(ObjectClass *klass)
{
    object_class_property_add_bool(klass, "surprise-removal", NULL,
                                   pls_surprise_removal);
}
