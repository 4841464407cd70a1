/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the Resizable BAR capability, for BAR1.
 *
 * The size stands in the control register, in configuration space, which also
 * migrates it.  That is one byte: the other fields of the register are read-only.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/log.h"
#include "qemu/range.h"
#include "qemu/units.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "peerlane-gpu.h"

#define PLN_REBAR_SIZEOF        12
#define PLN_REBAR_CAP           (PLN_REBAR_OFFSET + PCI_REBAR_CAP)
#define PLN_REBAR_CTRL          (PLN_REBAR_OFFSET + PCI_REBAR_CTRL)
#define PLN_REBAR_SIZE_BYTE     (PLN_REBAR_CTRL + 1)
#define PLN_REBAR_SIZE_MASK     0x3f
#define PLN_REBAR_CAP_SHIFT     4       /* this bit of it is 1 MiB */

/* 0 is 1 MiB */
static unsigned pln_rebar_size_of(uint64_t bytes)
{
    return ctz64(bytes / MiB);
}

static bool pln_rebar_supports(PeerlaneGPU *s, unsigned size)
{
    uint32_t sizes = pci_get_long(PCI_DEVICE(s)->config + PLN_REBAR_CAP) >>
                     PLN_REBAR_CAP_SHIFT;

    return size < 32 && sizes >> size & 1;
}

void pln_rebar_init(PeerlaneGPU *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    uint64_t largest = MAX(pow2ceil(s->vram_size), s->bar1_size);

    if (!s->rebar) {
        return;
    }
    pcie_add_capability(pdev, PCI_EXT_CAP_ID_REBAR, 1, PLN_REBAR_OFFSET,
                        PLN_REBAR_SIZEOF);
    pci_set_long(pdev->config + PLN_REBAR_CAP,
                 (2u << pln_rebar_size_of(largest)) - 1 <<
                 PLN_REBAR_CAP_SHIFT);
    pci_set_long(pdev->config + PLN_REBAR_CTRL,
                 1 << PCI_REBAR_CTRL_NBAR_SHIFT | PLN_BAR_APERTURE);
    pdev->config[PLN_REBAR_SIZE_BYTE] = pln_rebar_size_of(s->bar1_size);
    /* A stream may say another size; pln_rebar_restore() checks it */
    pdev->cmask[PLN_REBAR_SIZE_BYTE] = 0;
}

bool pln_rebar_changes(PeerlaneGPU *s, uint32_t addr, int len)
{
    return s->rebar && range_covers_byte(addr, len, PLN_REBAR_SIZE_BYTE);
}

static void pln_rebar_set(PeerlaneGPU *s, unsigned size)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    pln_bar1_unmap_all(s);
    pln_bar1_set_size(s, MiB << size);
    pdev->config[PLN_REBAR_SIZE_BYTE] = size;
    /* The address that it had may not be one of this size */
    pci_set_quad(pdev->config + pci_bar(pdev, PLN_BAR_APERTURE),
                 pdev->io_regions[PLN_BAR_APERTURE].type);
}

/* A write that pln_rebar_changes(); the engine does not run meanwhile */
void pln_rebar_write_config(PeerlaneGPU *s, uint32_t addr, uint32_t val)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    unsigned size = val >> 8 * (PLN_REBAR_SIZE_BYTE - addr) &
                    PLN_REBAR_SIZE_MASK;

    if (size == pdev->config[PLN_REBAR_SIZE_BYTE]) {
        return;
    }
    if (!pln_rebar_supports(s, size)) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: BAR1 cannot have size %u: only 0 "
                      "(1 MiB) to %u\n", pln_name(s), size,
                      31 - clz32(pci_get_long(pdev->config + PLN_REBAR_CAP)) -
                      PLN_REBAR_CAP_SHIFT);
    } else if (pci_get_word(pdev->config + PCI_COMMAND) & PCI_COMMAND_MEMORY) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: BAR1 keeps its size while memory "
                      "is enabled\n", pln_name(s));
    } else {
        pln_rebar_set(s, size);
    }
}

/* The reset of the function that follows clears the address once more */
void pln_rebar_reset(PeerlaneGPU *s)
{
    if (s->rebar && s->bar1.size != s->bar1_size) {
        pln_rebar_set(s, pln_rebar_size_of(s->bar1_size));
    }
}

/*
 * Before the configuration space of a stream: with the smallest BAR1, whatever
 * address it may have is made of bits that can be written.
 */
void pln_rebar_pre_load(PeerlaneGPU *s)
{
    if (s->rebar) {
        pln_bar1_set_size(s, MiB);
    }
}

/* And after it: no run is mapped yet */
bool pln_rebar_restore(PeerlaneGPU *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    unsigned size = pdev->config[PLN_REBAR_SIZE_BYTE];
    int bar = pci_bar(pdev, PLN_BAR_APERTURE);

    if (!s->rebar) {
        return true;
    }
    if (!pln_rebar_supports(s, size) ||
        (pci_get_quad(pdev->config + bar) & ((MiB << size) - 1) &
         PCI_BASE_ADDRESS_MEM_MASK)) {
        return false;
    }
    pln_bar1_set_size(s, MiB << size);
    /* Not every address that the smallest can have is one for this size */
    pci_default_write_config(pdev, bar, pci_get_long(pdev->config + bar), 4);
    return true;
}
