/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: PCI device, registers, reset and faults.
 *
 * The register specification is peerlane-gpu.rst.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/resettable.h"
#include "system/runstate.h"
#include "peerlane-gpu.h"
#include "trace.h"

/* All GPUs of a machine together; QEMU has room for fewer than 4096 sections */
#define PLN_MACHINE_MAX_RUNS    1536

/* What every kind of reset does; counters and VRAM survive */
static void pln_reset(PeerlaneGPU *s, const char *kind)
{
    pln_engine_reset(s);
    pln_bar1_unmap_all(s);
    s->scratch = 0;
    s->bar1.index = 0;
    s->bar1.count = 0;
    s->bar1.vram = 0;
    s->bar1.result = PLN_ERR_NONE;
    trace_peerlane_gpu_reset(pln_name(s), kind, s->reset_count);
}

static uint32_t pln_status(PeerlaneGPU *s)
{
    uint32_t status = PLN_STATUS_READY;

    QEMU_LOCK_GUARD(&s->engine.base.lock);
    for (unsigned i = 0; i < s->num_queues; i++) {
        if (s->engine.queues[i].status == PLN_Q_ERROR) {
            status |= PLN_STATUS_QUEUE_ERROR;
        }
    }
    return status;
}

static uint32_t pln_half(uint64_t val, hwaddr addr)
{
    return addr & 4 ? val >> 32 : val;
}

static uint64_t pln_regs_read(void *opaque, hwaddr addr, unsigned size)
{
    PeerlaneGPU *s = opaque;
    uint32_t val = 0;

    switch (addr) {
    case PLN_REG_ID:
        val = PLN_ID_VALUE;
        break;
    case PLN_REG_VERSION:
        val = PLN_VERSION_VALUE;
        break;
    case PLN_REG_FEATURES:
        val = s->features |
              (s->late.size ? PLN_FEAT_LATE_WRITES : 0);
        break;
    case PLN_REG_STATUS:
        val = pln_status(s);
        break;
    case PLN_REG_VRAM_SIZE:
    case PLN_REG_VRAM_SIZE + 4:
        val = pln_half(s->vram_size, addr);
        break;
    case PLN_REG_BAR1_SIZE:
    case PLN_REG_BAR1_SIZE + 4:
        val = pln_half(s->bar1.size, addr);
        break;
    case PLN_REG_COHERENT_SIZE:
    case PLN_REG_COHERENT_SIZE + 4:
        val = s->coherent ? pln_half(s->vram_size, addr) : 0;
        break;
    case PLN_REG_BAR1_UNIT:
        val = PLN_BAR1_UNIT_SIZE;
        break;
    case PLN_REG_NUM_QUEUES:
        val = s->num_queues;
        break;
    case PLN_REG_UUID ... PLN_REG_UUID + 15:
        val = ldl_le_p(s->uuid.data + (addr - PLN_REG_UUID));
        break;
    case PLN_REG_SCRATCH:
        val = s->scratch;
        break;
    case PLN_REG_RESET_COUNT:
        val = s->reset_count;
        break;
    case PLN_REG_TIME:
    case PLN_REG_TIME + 4:
        val = pla_half(pln_time(), &s->time_hi, addr & 4);
        break;
    case PLN_REG_BAR1_INDEX:
        val = s->bar1.index;
        break;
    case PLN_REG_BAR1_COUNT:
        val = s->bar1.count;
        break;
    case PLN_REG_BAR1_VRAM:
    case PLN_REG_BAR1_VRAM + 4:
        val = pln_half(s->bar1.vram, addr);
        break;
    case PLN_REG_BAR1_RESULT:
        val = s->bar1.result;
        break;
    case PLN_REG_BAR1_UNITS_USED:
        val = s->bar1.units_used;
        break;
    case PLN_REG_BAR1_RUNS_USED:
        val = s->bar1.runs_used;
        break;
    case PLN_REG_BAR1_RUNS_MAX:
        val = s->bar1_runs;
        break;
    case PLN_REG_COUNTER(0) ... PLN_REG_COUNTER(PLN_NUM_COUNTERS) - 1:
        val = pln_counter_read(s, addr);
        break;
    case PLN_REG_INITIATOR(0) ... PLN_REG_INITIATOR(PLN_NUM_INITIATORS) - 1:
        val = pln_initiator_read(s, addr);
        break;
    case PLN_REG_QUEUE(0) ... PLN_REG_QUEUE(PLN_MAX_QUEUES) - 1:
        val = pln_queue_read(s, (addr - PLN_REG_QUEUE(0)) / 0x100,
                             addr % 0x100);
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: read of no register 0x%"
                      HWADDR_PRIx "\n", pln_name(s), addr);
        break;
    }
    trace_peerlane_gpu_reg_read(pln_name(s), addr, val);
    return val;
}

static void pln_regs_write(void *opaque, hwaddr addr, uint64_t val,
                           unsigned size)
{
    PeerlaneGPU *s = opaque;

    trace_peerlane_gpu_reg_write(pln_name(s), addr, val);
    switch (addr) {
    case PLN_REG_SCRATCH:
        s->scratch = val;
        break;
    case PLN_REG_RESET:
        if (val == PLN_RESET_MAGIC) {
            s->reset_count++;
            pln_reset(s, "register");
        } else {
            qemu_log_mask(LOG_GUEST_ERROR, "%s: no reset without the magic\n",
                          pln_name(s));
        }
        break;
    case PLN_REG_BAR1_INDEX:
        s->bar1.index = val;
        break;
    case PLN_REG_BAR1_COUNT:
        s->bar1.count = val;
        break;
    case PLN_REG_BAR1_VRAM:
        s->bar1.vram = deposit64(s->bar1.vram, 0, 32, val);
        break;
    case PLN_REG_BAR1_VRAM + 4:
        s->bar1.vram = deposit64(s->bar1.vram, 32, 32, val);
        break;
    case PLN_REG_BAR1_CMD:
        pln_bar1_command(s, val);
        break;
    case PLN_REG_BAR1_FLUSH:
        pln_late_flush(s);
        break;
    case PLN_REG_QUEUE(0) ... PLN_REG_QUEUE(PLN_MAX_QUEUES) - 1:
        pln_queue_write(s, (addr - PLN_REG_QUEUE(0)) / 0x100, addr % 0x100,
                        val);
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: write to no register, or to a "
                      "read-only one, 0x%" HWADDR_PRIx "\n", pln_name(s),
                      addr);
        break;
    }
}

static const MemoryRegionOps pln_regs_ops = {
    .read = pln_regs_read,
    .write = pln_regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

/* A removed device answers nothing, also not to configuration cycles */
static uint32_t pln_config_read(PCIDevice *pdev, uint32_t addr, int len)
{
    if (PEERLANE_GPU(pdev)->removed) {
        return MAKE_64BIT_MASK(0, len * 8);
    }
    return pci_default_read_config(pdev, addr, len);
}

static void pln_config_write(PCIDevice *pdev, uint32_t addr, uint32_t val,
                             int len)
{
    PeerlaneGPU *s = PEERLANE_GPU(pdev);
    bool sizes = pln_rebar_changes(s, addr, len);
    bool stops = ranges_overlap(addr, len, PCI_COMMAND, 2) ||
                 ranges_overlap(addr, len, pdev->pm_cap + PCI_PM_CTRL, 2) ||
                 sizes;

    if (s->removed) {
        return;
    }
    /* What may not master any more, or sleeps, has ended what it was at */
    if (stops) {
        pla_engine_hold(&s->engine.base, PLA_HELD_CONFIG, true);
    }
    pci_default_write_config(pdev, addr, val, len);
    pcie_aer_write_config(pdev, addr, val, len);
    pcie_cap_flr_write_config(pdev, addr, val, len);
    if (sizes) {
        pln_rebar_write_config(s, addr, val);
    }
    if (stops) {
        pln_engine_holds(s);
        pla_engine_hold(&s->engine.base, PLA_HELD_CONFIG, false);
    }
}

static bool pln_get_hung(Object *obj, Error **errp)
{
    return PEERLANE_GPU(obj)->fault_hung_engine;
}

static void pln_set_hung(Object *obj, bool hung, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);

    if (s->fault_hung_engine == hung) {
        return;
    }
    s->fault_hung_engine = hung;
    if (hung) {
        pln_count(s, PLN_CNT_FAULTS_INJECTED, 1);
        trace_peerlane_gpu_fault(pln_name(s), "fault-hung-engine", 0);
    }
    pln_engine_holds(s);
}

static bool pln_get_removed(Object *obj, Error **errp)
{
    return PEERLANE_GPU(obj)->removed;
}

static void pln_set_removed(Object *obj, bool removed, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);

    if (s->removed == removed) {
        return;
    }
    if (!DEVICE(obj)->realized) {
        error_setg(errp, "surprise-removed is for a device that works");
        return;
    }
    trace_peerlane_gpu_removed(pln_name(s), removed);
    if (removed) {
        pln_count(s, PLN_CNT_FAULTS_INJECTED, 1);
        pln_reset(s, "surprise removal");
        s->removed = true;
        pln_engine_holds(s);
        pln_show_removed(s);
    } else {
        /* It comes back as after power on, but for its counters */
        s->removed = false;
        pln_engine_holds(s);
        pln_show_removed(s);
        pci_device_reset(PCI_DEVICE(s));
    }
}

static void pln_reset_hold(Object *obj, ResetType type)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);

    if (s->powered && !s->removed) {
        s->reset_count++;
    }
    s->powered = true;
    pln_reset(s, "function");
    pln_rebar_reset(s);
    pcie_cap_deverr_reset(PCI_DEVICE(s));
}

static void pln_vm_state_change(void *opaque, bool running, RunState state)
{
    if (!running) {
        pln_late_flush(opaque);
    }
}

static int pln_count_runs(Object *obj, void *opaque)
{
    PeerlaneGPU *s = (PeerlaneGPU *)object_dynamic_cast(obj,
                                                        TYPE_PEERLANE_GPU);
    uint32_t *sum = opaque;

    if (s) {
        *sum += s->bar1_runs;
    }
    return 0;
}

static bool pln_check_properties(PeerlaneGPU *s, Error **errp)
{
    uint32_t runs = 0;

    if (s->vram_size < MiB || s->vram_size % PLN_BAR1_UNIT_SIZE ||
        s->vram_size > 16 * TiB) {
        error_setg(errp, "vram-size must be a multiple of 64 KiB from 1 MiB "
                   "to 16 TiB");
        return false;
    }
    if (s->bar1_size < PLN_BAR1_UNIT_SIZE || s->bar1_size > 16 * TiB ||
        !is_power_of_2(s->bar1_size)) {
        error_setg(errp, "bar1-size must be a power of two from 64 KiB to "
                   "16 TiB");
        return false;
    }
    if (s->rebar && s->bar1_size < MiB) {
        error_setg(errp, "with rebar=on bar1-size must be at least 1 MiB");
        return false;
    }
    if (!s->num_queues || s->num_queues > PLN_MAX_QUEUES) {
        error_setg(errp, "queues must be 1 to %d", PLN_MAX_QUEUES);
        return false;
    }
    if (!s->bar1_runs || s->bar1_runs > PLN_BAR1_MAX_RUNS) {
        error_setg(errp, "bar1-runs must be 1 to %d", PLN_BAR1_MAX_RUNS);
        return false;
    }
    object_child_foreach_recursive(object_get_root(), pln_count_runs, &runs);
    if (runs > PLN_MACHINE_MAX_RUNS) {
        error_setg(errp, "bar1-runs of all GPUs together are %" PRIu32
                   ", more than %d", runs, PLN_MACHINE_MAX_RUNS);
        return false;
    }
    return true;
}

static void pln_bar0_exit(PeerlaneGPU *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    msix_uninit(pdev, &s->bar0, &s->bar0);
    memory_region_del_subregion(&s->bar0, &s->regs);
    pcie_aer_exit(pdev);
    pcie_cap_exit(pdev);
}

static void pln_realize(PCIDevice *pdev, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(pdev);
    Object *obj = OBJECT(pdev);
    int pos;

    if (!pln_check_properties(s, errp)) {
        return;
    }

    s->features = PLN_FEAT_DMA_COUNTERS | PLN_FEAT_TIME |
                  (s->coherent ? PLN_FEAT_COHERENT : 0);
    pci_config_set_vendor_id(pdev->config, s->vendor_id);
    pci_config_set_device_id(pdev->config, s->device_id);

    pos = pci_pm_init(pdev, 0, errp);
    if (pos < 0) {
        return;
    }
    pci_set_word(pdev->config + pos + PCI_PM_PMC, 3);
    pci_set_word(pdev->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(pdev->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    if (pcie_endpoint_cap_init(pdev, 0) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(pdev);
    pcie_cap_deverr_init(pdev);
    if (pcie_aer_init(pdev, PCI_ERR_VER, PLN_AER_OFFSET, PCI_ERR_SIZEOF,
                      errp) < 0) {
        pcie_cap_exit(pdev);
        return;
    }
    pln_rebar_init(s);

    memory_region_init(&s->bar0, obj, "peerlane-gpu-bar0", PLN_REGS_SIZE);
    memory_region_init_io(&s->regs, obj, &pln_regs_ops, s,
                          "peerlane-gpu-regs", PLN_MSIX_TABLE);
    memory_region_add_subregion(&s->bar0, 0, &s->regs);
    if (msix_init(pdev, PLN_MSIX_VECTORS, &s->bar0, PLN_BAR_REGS,
                  PLN_MSIX_TABLE, &s->bar0, PLN_BAR_REGS, PLN_MSIX_PBA, 0,
                  errp) < 0) {
        memory_region_del_subregion(&s->bar0, &s->regs);
        pcie_aer_exit(pdev);
        pcie_cap_exit(pdev);
        return;
    }
    for (unsigned i = 0; i < PLN_MSIX_VECTORS; i++) {
        msix_vector_use(pdev, i);
    }
    pci_register_bar(pdev, PLN_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->bar0);
    if (!pln_bar1_init(s, errp)) {
        pln_bar0_exit(s);
        return;
    }
    /* It comes before the engine's, so after that when the machine stops */
    s->vmstate_entry = qemu_add_vm_change_state_handler(pln_vm_state_change,
                                                        s);
    pln_engine_start(s);
    device_listener_register(&s->counters.listener);
}

static void pln_exit(PCIDevice *pdev)
{
    PeerlaneGPU *s = PEERLANE_GPU(pdev);

    device_listener_unregister(&s->counters.listener);
    pln_engine_exit(s);
    qemu_del_vm_change_state_handler(s->vmstate_entry);
    pln_bar1_exit(s);
    pln_bar0_exit(s);
}

static const Property pln_properties[] = {
    DEFINE_PROP_SIZE("vram-size", PeerlaneGPU, vram_size, 1 * GiB),
    DEFINE_PROP_SIZE("bar1-size", PeerlaneGPU, bar1_size, 256 * MiB),
    DEFINE_PROP_BOOL("rebar", PeerlaneGPU, rebar, false),
    DEFINE_PROP_BOOL("coherent", PeerlaneGPU, coherent, false),
    DEFINE_PROP_UINT8("queues", PeerlaneGPU, num_queues, 4),
    DEFINE_PROP_UINT32("bar1-runs", PeerlaneGPU, bar1_runs, 512),
    DEFINE_PROP_UINT16("vendor-id", PeerlaneGPU, vendor_id,
                       PLN_PCI_VENDOR_ID),
    DEFINE_PROP_UINT16("device-id", PeerlaneGPU, device_id,
                       PLN_PCI_DEVICE_ID),
    DEFINE_PROP_UUID("uuid", PeerlaneGPU, uuid),
    DEFINE_PROP_LINK("memdev", PeerlaneGPU, memdev, TYPE_MEMORY_BACKEND,
                     HostMemoryBackend *),
    DEFINE_PROP_BOOL("posted-errors", PeerlaneGPU, posted_errors, false),
};

static void pln_instance_init(Object *obj)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);

    pln_counters_init(s);
    pln_engine_init(s);
    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
    pla_fault_add(obj, "fault-engine-error", &s->fault_engine_error);
    pla_fault_add(obj, "fault-stuck-fence", &s->fault_stuck_fence);
    pla_fault_add(obj, "fault-lost-irq", &s->fault_lost_irq);
    object_property_add_bool(obj, "fault-hung-engine", pln_get_hung,
                             pln_set_hung);
    object_property_add_bool(obj, "surprise-removed", pln_get_removed,
                             pln_set_removed);
    pln_late_add_property(obj);
    pln_counters_add_properties(obj);
    pln_state_add_property(obj);
}

static void pln_instance_finalize(Object *obj)
{
    pln_engine_finalize(PEERLANE_GPU(obj));
    pln_late_finalize(PEERLANE_GPU(obj));
    pln_counters_finalize(PEERLANE_GPU(obj));
}

static void pln_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = pln_realize;
    pc->exit = pln_exit;
    pc->config_read = pln_config_read;
    pc->config_write = pln_config_write;
    pc->vendor_id = PLN_PCI_VENDOR_ID;
    pc->device_id = PLN_PCI_DEVICE_ID;
    pc->class_id = PLN_PCI_CLASS;
    pc->revision = 1;
    rc->phases.hold = pln_reset_hold;
    dc->desc = "Peerlane emulated GPU";
    dc->vmsd = &vmstate_pln;
    device_class_set_props(dc, pln_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo pln_info = {
    .name = TYPE_PEERLANE_GPU,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(PeerlaneGPU),
    .instance_init = pln_instance_init,
    .instance_finalize = pln_instance_finalize,
    .class_init = pln_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void pln_register_types(void)
{
    type_register_static(&pln_info);
}
type_init(pln_register_types)
