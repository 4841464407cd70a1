/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: counters, read by the guest as registers and from outside as
 * QOM properties.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "exec/memory.h"
#include "hw/core/cpu.h"
#include "hw/pci/pci.h"
#include "peerlane-gpu.h"
#include "trace.h"

static const char *const pln_counter_names[] = {
    [PLN_CNT_ENGINE_VRAM_READ] = "engine-vram-read",
    [PLN_CNT_ENGINE_VRAM_WRITE] = "engine-vram-write",
    [PLN_CNT_ENGINE_HOST_READ] = "engine-host-read",
    [PLN_CNT_ENGINE_HOST_WRITE] = "engine-host-write",
    [PLN_CNT_ENGINE_PEER_READ] = "engine-peer-read",
    [PLN_CNT_ENGINE_PEER_WRITE] = "engine-peer-write",
    [PLN_CNT_BAR1_DMA_READ] = "bar1-dma-read",
    [PLN_CNT_BAR1_DMA_WRITE] = "bar1-dma-write",
    [PLN_CNT_COHERENT_DMA_READ] = "coherent-dma-read",
    [PLN_CNT_COHERENT_DMA_WRITE] = "coherent-dma-write",
    [PLN_CNT_BAR1_UNMAPPED] = "bar1-unmapped",
    [PLN_CNT_DOORBELLS] = "doorbells",
    [PLN_CNT_DESCRIPTORS] = "descriptors",
    [PLN_CNT_ERRORS] = "errors",
    [PLN_CNT_INTERRUPTS] = "interrupts",
    [PLN_CNT_FAULTS_INJECTED] = "faults-injected",
};
QEMU_BUILD_BUG_ON(ARRAY_SIZE(pln_counter_names) != PLN_NUM_COUNTERS);

void pln_count(PeerlaneGPU *s, enum pln_counter n, uint64_t add)
{
    QEMU_LOCK_GUARD(&s->counters.lock);
    s->counters.val[n] += add;
}

uint32_t pln_counter_read(PeerlaneGPU *s, hwaddr reg)
{
    unsigned n = (reg - PLN_REG_COUNTER(0)) / 8;

    QEMU_LOCK_GUARD(&s->counters.lock);
    return pla_half(s->counters.val[n], &s->counters.high[n], reg & 4);
}

uint32_t pln_initiator_read(PeerlaneGPU *s, hwaddr reg)
{
    unsigned n = (reg - PLN_REG_INITIATOR(0)) / 0x20;
    PlnInitiator *in = &s->counters.initiators[n];

    QEMU_LOCK_GUARD(&s->counters.lock);
    switch (reg % 0x20) {
    case PLN_INITIATOR_ID:
        return in->id;
    case PLN_INITIATOR_READ:
    case PLN_INITIATOR_READ + 4:
        return pla_half(in->read, &in->read_hi, reg & 4);
    case PLN_INITIATOR_WRITE:
    case PLN_INITIATOR_WRITE + 4:
        return pla_half(in->write, &in->write_hi, reg & 4);
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: read of no register 0x%"
                      HWADDR_PRIx "\n", pln_name(s), reg);
        return 0;
    }
}

/*
 * DMA of other devices into VRAM.  VRAM is RAM, so the device never sees such
 * an access itself; an observer on the region tells who did it, and how much.
 */

/* A mapping, and through which window; only with both */
typedef struct PlnMapping {
    PlaMapping m;
    bool window;
} PlnMapping;

/* Does @addr of @as lie in the coherent window, and not in BAR1? */
static bool pln_in_window(PeerlaneGPU *s, AddressSpace *as, hwaddr addr,
                          bool is_write)
{
    IOMMUTLBEntry entry;
    pcibus_t bar;

    if (!s->coherent || !as) {
        return false;
    }
    /* With an IOMMU @addr is not yet a bus address */
    entry = address_space_get_iotlb_entry(as, addr, is_write,
                                          MEMTXATTRS_UNSPECIFIED);
    addr = entry.translated_addr | (addr & entry.addr_mask);
    bar = pci_get_bar_addr(PCI_DEVICE(s), PLN_BAR_COHERENT);
    return bar != PCI_BAR_UNMAPPED && addr >= bar &&
           addr - bar < memory_region_size(&s->window);
}

static bool pln_is_cpu(AddressSpace *as)
{
    CPUState *cpu;

    /* An unmap has a reference to VRAM, and is in no RCU section */
    RCU_READ_LOCK_GUARD();
    CPU_FOREACH(cpu) {
        if (cpu->as == as) {
            return true;
        }
    }
    return false;
}

/* The device that masters @as, or NULL */
static PCIDevice *pln_initiator(AddressSpace *as)
{
    Object *owner = as ? memory_region_owner(as->root) : NULL;

    return owner ? (PCIDevice *)object_dynamic_cast(owner, TYPE_PCI_DEVICE) :
                   NULL;
}

/* The entry with this name, or a free one, which gets it; or NULL */
static PlnInitiator *pln_named_initiator(PeerlaneGPU *s, const char *name)
{
    for (unsigned i = 0; name && i < PLN_NUM_INITIATORS - 1; i++) {
        PlnInitiator *in = &s->counters.initiators[i];

        if (!in->id) {
            pstrcpy((char *)in->name, sizeof(in->name), name);
            return in;
        }
        if (!strncmp((const char *)in->name, name, sizeof(in->name) - 1)) {
            return in;
        }
    }
    return NULL;
}

/*
 * A name is made once, and belongs to its device until that is unrealized:
 * another one may get the same address then.
 */
static PlnInitiator *pln_find_initiator(PeerlaneGPU *s, PCIDevice *dev)
{
    PlnInitiator *in = NULL;

    for (unsigned i = 0; dev && i < PLN_NUM_INITIATORS - 1; i++) {
        if (s->counters.initiators[i].dev == dev) {
            in = &s->counters.initiators[i];
            break;
        }
    }
    if (dev && !in) {
        g_autofree char *path =
            dev->qdev.id ? NULL : object_get_canonical_path(OBJECT(dev));

        in = pln_named_initiator(s, path ? path : dev->qdev.id);
        if (in) {
            in->dev = qatomic_read(&dev->qdev.realized) ? dev : NULL;
        }
    }
    if (in) {
        in->id = PLN_INITIATOR_VALID | pci_get_bdf(dev);
        return in;
    }
    /* The last entry is for all that have no other */
    in = &s->counters.initiators[PLN_NUM_INITIATORS - 1];
    pstrcpy((char *)in->name, sizeof(in->name), "unknown");
    in->id = PLN_INITIATOR_VALID | PLN_INITIATOR_UNKNOWN;
    return in;
}

static void pln_device_unrealize(DeviceListener *listener, DeviceState *dev)
{
    PeerlaneGPU *s = container_of(listener, PeerlaneGPU, counters.listener);
    PCIDevice *d = (PCIDevice *)object_dynamic_cast(OBJECT(dev),
                                                    TYPE_PCI_DEVICE);

    if (!d) {
        return;
    }
    QEMU_LOCK_GUARD(&s->counters.lock);
    pla_forget(s->counters.mappings, &d->bus_master_as);
    for (unsigned i = 0; i < PLN_NUM_INITIATORS - 1; i++) {
        if (s->counters.initiators[i].dev == d) {
            s->counters.initiators[i].dev = NULL;
        }
    }
}

void pln_account(PeerlaneGPU *s, AddressSpace *as, bool window, hwaddr len,
                 bool is_write)
{
    PCIDevice *dev = pln_initiator(as);
    PlnInitiator *in;

    if (!len || dev == PCI_DEVICE(s) || (!dev && pln_is_cpu(as))) {
        return;
    }
    trace_peerlane_gpu_dma(pln_name(s),
                           dev && dev->qdev.id ? dev->qdev.id : "-",
                           is_write ? "write" : "read",
                           window ? "coherent" : "bar1", len);
    QEMU_LOCK_GUARD(&s->counters.lock);
    in = pln_find_initiator(s, dev);
    if (is_write) {
        in->write += len;
        s->counters.val[window ? PLN_CNT_COHERENT_DMA_WRITE :
                        PLN_CNT_BAR1_DMA_WRITE] += len;
    } else {
        in->read += len;
        s->counters.val[window ? PLN_CNT_COHERENT_DMA_READ :
                        PLN_CNT_BAR1_DMA_READ] += len;
    }
}

static void pln_vram_access(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                            hwaddr offset, hwaddr len, bool is_write,
                            MemTxResult result)
{
    PeerlaneGPU *s = container_of(mr, PeerlaneGPU, vram);

    pln_account(s, as, pln_in_window(s, as, addr, is_write), len, is_write);
}

static void pln_vram_map(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                         void *host, hwaddr len, bool is_write)
{
    PeerlaneGPU *s = container_of(mr, PeerlaneGPU, vram);
    PlnMapping *m;

    if (!s->coherent) {
        return;
    }
    m = g_new0(PlnMapping, 1);
    m->m = (PlaMapping) {
        .as = as, .host = host, .len = len, .is_write = is_write,
    };
    m->window = pln_in_window(s, as, addr, is_write);
    QEMU_LOCK_GUARD(&s->counters.lock);
    pla_map(s->counters.mappings, &m->m);
}

static void pln_vram_unmap(MemoryRegion *mr, AddressSpace *as, void *host,
                           hwaddr len, bool is_write, hwaddr access_len)
{
    PeerlaneGPU *s = container_of(mr, PeerlaneGPU, vram);
    g_autofree PlnMapping *m = NULL;

    if (s->coherent) {
        QEMU_LOCK_GUARD(&s->counters.lock);
        m = (PlnMapping *)pla_unmap(s->counters.mappings, as, host, len,
                                    is_write);
    }
    pln_account(s, as, m && m->window, access_len, is_write);
}

const MemoryRegionObserver pln_vram_observer = {
    .access = pln_vram_access,
    .map = pln_vram_map,
    .unmap = pln_vram_unmap,
};

void pln_counters_init(PeerlaneGPU *s)
{
    qemu_mutex_init(&s->counters.lock);
    s->counters.mappings = pla_mappings_new();
    s->counters.listener.unrealize = pln_device_unrealize;
}

void pln_counters_finalize(PeerlaneGPU *s)
{
    g_hash_table_destroy(s->counters.mappings);
    qemu_mutex_destroy(&s->counters.lock);
}

static void pln_get_counters(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);
    uint64_t copy[PLN_NUM_COUNTERS];

    WITH_QEMU_LOCK_GUARD(&s->counters.lock) {
        memcpy(copy, s->counters.val, sizeof(copy));
    }
    pla_visit(v, name, pln_counter_names, copy, PLN_NUM_COUNTERS, errp);
}

static bool pln_visit_initiator(Visitor *v, PlnInitiator *in, Error **errp)
{
    g_autofree char *bdf = NULL;
    char *name = (char *)in->name;
    bool ok;

    if (in->id & PLN_INITIATOR_UNKNOWN) {
        bdf = g_strdup("unknown");
    } else {
        bdf = g_strdup_printf("%02x:%02x.%x", PCI_BUS_NUM(in->id & 0xffff),
                              PCI_SLOT(in->id), PCI_FUNC(in->id));
    }
    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_str(v, "id", &name, errp) &&
         visit_type_str(v, "bdf", &bdf, errp) &&
         visit_type_uint64(v, "read", &in->read, errp) &&
         visit_type_uint64(v, "write", &in->write, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static void pln_get_initiators(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);
    PlnInitiator copy[PLN_NUM_INITIATORS];

    WITH_QEMU_LOCK_GUARD(&s->counters.lock) {
        memcpy(copy, s->counters.initiators, sizeof(copy));
    }
    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < PLN_NUM_INITIATORS; i++) {
        if (copy[i].id && !pln_visit_initiator(v, &copy[i], errp)) {
            goto out;
        }
    }
    visit_check_list(v, errp);
out:
    visit_end_list(v, NULL);
}

void pln_counters_add_properties(Object *obj)
{
    object_property_add(obj, "counters", "struct", pln_get_counters, NULL,
                        NULL, NULL);
    object_property_add(obj, "initiators", "list", pln_get_initiators, NULL,
                        NULL, NULL);
}
