/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: VRAM, the BAR1 aperture and the coherent window.
 *
 * VRAM is a RAM region that is mapped nowhere by itself.  BAR1 shows runs of
 * it through aliases, so an access ends in RAM at once; where no run is mapped
 * lies an IO region that answers with all ones.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/log.h"
#include "qapi/error.h"
#include "exec/ramblock.h"
#include "hw/qdev-core.h"
#include "migration/vmstate.h"
#include "peerlane-gpu.h"
#include "trace.h"

static uint64_t pln_all_ones(unsigned size)
{
    return MAKE_64BIT_MASK(0, size * 8);
}

static void pln_bar1_unmapped(PeerlaneGPU *s, const char *dir, hwaddr addr,
                              unsigned size)
{
    pln_count(s, PLN_CNT_BAR1_UNMAPPED, 1);
    trace_peerlane_gpu_bar1_unmapped(pln_name(s), dir, addr, size);
    qemu_log_mask(LOG_GUEST_ERROR, "%s: %s of unmapped BAR1 at 0x%"
                  HWADDR_PRIx "\n", pln_name(s), dir, addr);
}

static uint64_t pln_bar1_unmapped_read(void *opaque, hwaddr addr, unsigned size)
{
    pln_bar1_unmapped(opaque, "read", addr, size);
    return pln_all_ones(size);
}

static void pln_bar1_unmapped_write(void *opaque, hwaddr addr, uint64_t val,
                                    unsigned size)
{
    pln_bar1_unmapped(opaque, "write", addr, size);
}

static const MemoryRegionOps pln_bar1_unmapped_ops = {
    .read = pln_bar1_unmapped_read,
    .write = pln_bar1_unmapped_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/* Behind the end of VRAM in a coherent window, and all of a removed device */
static uint64_t pln_absent_read(void *opaque, hwaddr addr, unsigned size)
{
    return pln_all_ones(size);
}

static void pln_absent_write(void *opaque, hwaddr addr, uint64_t val,
                           unsigned size)
{
}

static const MemoryRegionOps pln_absent_ops = {
    .read = pln_absent_read,
    .write = pln_absent_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

static void pln_removed_bar_init(PeerlaneGPU *s, unsigned i, MemoryRegion *bar,
                                 const char *name)
{
    MemoryRegion *mr = &s->removed_bar[i];

    memory_region_init_io(mr, OBJECT(s), &pln_absent_ops, s, name,
                          memory_region_size(bar));
    memory_region_set_enabled(mr, false);
    memory_region_add_subregion_overlap(bar, 0, mr, 10);
}

void pln_show_removed(PeerlaneGPU *s)
{
    memory_region_transaction_begin();
    memory_region_set_enabled(&s->removed_bar[0], s->removed);
    memory_region_set_enabled(&s->removed_bar[1], s->removed);
    if (s->coherent) {
        memory_region_set_enabled(&s->removed_bar[2], s->removed);
    }
    memory_region_transaction_commit();
}

/*
 * VRAM in memory that somebody else can see or has placed.  The region is our
 * own, so that it is known for a device's, and migrates as one.  It maps the
 * file a second time: what a host address belongs to must be unique, or a
 * mapping of this region would end as one of the backend's.
 */
static bool pln_vram_of_backend(PeerlaneGPU *s, Error **errp)
{
    g_autofree char *path = object_get_canonical_path(OBJECT(s->memdev));
    MemoryRegion *mr = host_memory_backend_get_memory(s->memdev);
    int fd;

    if (host_memory_backend_is_mapped(s->memdev)) {
        error_setg(errp, "memdev %s is in use", path);
        return false;
    }
    if (memory_region_size(mr) != s->vram_size) {
        error_setg(errp, "memdev %s has %" PRIu64 " bytes, vram-size is %"
                   PRIu64, path, memory_region_size(mr), s->vram_size);
        return false;
    }
    if (memory_region_is_rom(mr)) {
        error_setg(errp, "memdev %s cannot be written", path);
        return false;
    }
    fd = memory_region_get_fd(mr);
    if (fd < 0 || !qemu_ram_is_shared(mr->ram_block)) {
        error_setg(errp, "memdev %s is not memory that can be mapped twice: "
                   "it must be a file or a memfd, with share=on", path);
        return false;
    }
    fd = qemu_dup(fd);
    if (fd < 0) {
        error_setg_errno(errp, errno, "memdev %s cannot be mapped again", path);
        return false;
    }
    if (!memory_region_init_ram_from_fd(&s->vram, OBJECT(s),
                                        "peerlane-gpu-vram", s->vram_size,
                                        RAM_SHARED, fd,
                                        mr->ram_block->fd_offset, errp)) {
        close(fd);
        return false;
    }
    host_memory_backend_set_mapped(s->memdev, true);
    return true;
}

static bool pln_vram_init(PeerlaneGPU *s, Error **errp)
{
    Object *obj = OBJECT(s);

    if (s->memdev) {
        return pln_vram_of_backend(s, errp);
    }
    /* A host that commits all memory must have as much as VRAM */
    return memory_region_init_ram_flags_nomigrate(&s->vram, obj,
                                                  "peerlane-gpu-vram",
                                                  s->vram_size, RAM_NORESERVE,
                                                  NULL) ||
           memory_region_init_ram_flags_nomigrate(&s->vram, obj,
                                                  "peerlane-gpu-vram",
                                                  s->vram_size, 0, errp);
}

bool pln_bar1_init(PeerlaneGPU *s, Error **errp)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    Object *obj = OBJECT(s);
    const uint8_t attr = PCI_BASE_ADDRESS_SPACE_MEMORY |
                         PCI_BASE_ADDRESS_MEM_TYPE_64 |
                         PCI_BASE_ADDRESS_MEM_PREFETCH;

    if (!pln_vram_init(s, errp)) {
        return false;
    }
    vmstate_register_ram(&s->vram, DEVICE(s));
    s->vram_ptr = memory_region_get_ram_ptr(&s->vram);
    memory_region_set_observer(&s->vram, &pln_vram_observer);

    s->bar1.size = s->bar1_size;
    memory_region_init(&s->bar1.mr, obj, "peerlane-gpu-bar1", s->bar1_size);
    memory_region_init_io(&s->bar1.unmapped, obj, &pln_bar1_unmapped_ops, s,
                          "peerlane-gpu-bar1-unmapped", s->bar1_size);
    /* The engine reaches it too, while its device is at work */
    s->bar1.unmapped.disable_reentrancy_guard = true;
    memory_region_add_subregion_overlap(&s->bar1.mr, 0, &s->bar1.unmapped, -1);
    memory_region_init(&s->bar1.map, obj, "peerlane-gpu-bar1-map",
                       s->bar1_size);
    memory_region_add_subregion_overlap(&s->bar1.mr, 0, &s->bar1.map, 0);
    pln_late_init(s);
    pln_removed_bar_init(s, 0, &s->bar0,
                         "peerlane-gpu-regs-removed");
    pln_removed_bar_init(s, 1, &s->bar1.mr,
                         "peerlane-gpu-bar1-removed");
    pci_register_bar(pdev, PLN_BAR_APERTURE, attr, &s->bar1.mr);

    if (s->coherent) {
        uint64_t size = pow2ceil(s->vram_size);

        memory_region_init(&s->window, obj, "peerlane-gpu-coherent", size);
        memory_region_init_io(&s->window_unmapped, obj, &pln_absent_ops, s,
                              "peerlane-gpu-coherent-end", size);
        s->window_unmapped.disable_reentrancy_guard = true;
        memory_region_add_subregion_overlap(&s->window, 0,
                                            &s->window_unmapped, -1);
        memory_region_init_alias(&s->window_map, obj,
                                 "peerlane-gpu-coherent-map", &s->vram, 0,
                                 s->vram_size);
        memory_region_add_subregion_overlap(&s->window, 0, &s->window_map, 0);
        pln_removed_bar_init(s, 2, &s->window,
                             "peerlane-gpu-window-removed");
        pci_register_bar(pdev, PLN_BAR_COHERENT, attr, &s->window);
    }
    return true;
}

/* A subregion holds on to its owner, so all of them must be taken out */
void pln_bar1_exit(PeerlaneGPU *s)
{
    MemoryRegion *parts[] = {
        &s->removed_bar[0], &s->removed_bar[1], &s->removed_bar[2],
        &s->bar1.unmapped, &s->bar1.map, &s->late.mr, &s->window_unmapped,
        &s->window_map,
    };

    pln_bar1_unmap_all(s);
    pln_late_off(s);
    memory_region_transaction_begin();
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i]->container) {
            memory_region_del_subregion(parts[i]->container, parts[i]);
        }
    }
    memory_region_transaction_commit();
    vmstate_unregister_ram(&s->vram, DEVICE(s));
    if (s->memdev) {
        host_memory_backend_set_mapped(s->memdev, false);
    }
}

/* The same size for all that BAR1 is made of; no run is mapped */
void pln_bar1_set_size(PeerlaneGPU *s, uint64_t size)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    MemoryRegion *parts[] = {
        &s->bar1.mr, &s->bar1.unmapped, &s->bar1.map, &s->late.mr,
        &s->removed_bar[1],
    };

    trace_peerlane_gpu_bar1_size(pln_name(s), size);
    memory_region_transaction_begin();
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        memory_region_set_size(parts[i], size);
    }
    memory_region_transaction_commit();
    s->bar1.size = size;
    pdev->io_regions[PLN_BAR_APERTURE].size = size;
    pci_set_quad(pdev->wmask + pci_bar(pdev, PLN_BAR_APERTURE), ~(size - 1));
}

static void pln_bar1_add(PeerlaneGPU *s, PlnBar1Run *run)
{
    const uint64_t unit = PLN_BAR1_UNIT_SIZE;

    memory_region_init_alias(&run->mr, OBJECT(s), "peerlane-gpu-bar1-run",
                             &s->vram, run->vram, run->count * unit);
    memory_region_add_subregion(&s->bar1.map, run->index * unit, &run->mr);
    s->bar1.units_used += run->count;
    s->bar1.runs_used++;
}

static void pln_bar1_remove(PeerlaneGPU *s, PlnBar1Run *run)
{
    pln_late_flush(s);
    trace_peerlane_gpu_bar1_unmap(pln_name(s), run->index, run->count,
                                  run->vram);
    memory_region_del_subregion(&s->bar1.map, &run->mr);
    object_unparent(OBJECT(&run->mr));
    s->bar1.units_used -= run->count;
    s->bar1.runs_used--;
    run->index = 0;
    run->count = 0;
    run->vram = 0;
}

void pln_bar1_unmap_all(PeerlaneGPU *s)
{
    if (!s->bar1.runs_used) {
        return;
    }
    memory_region_transaction_begin();
    for (unsigned i = 0; i < s->bar1_runs; i++) {
        if (s->bar1.runs[i].count) {
            pln_bar1_remove(s, &s->bar1.runs[i]);
        }
    }
    memory_region_transaction_commit();
}

/* Is this run inside of BAR1 and of VRAM? */
static enum pln_gpu_error pln_bar1_check(PeerlaneGPU *s, uint64_t index,
                                         uint64_t count, uint64_t vram)
{
    const uint64_t unit = PLN_BAR1_UNIT_SIZE;

    if (!count) {
        return PLN_ERR_LENGTH;
    }
    if (vram % unit) {
        return PLN_ERR_ALIGN;
    }
    if (index + count > s->bar1.size / unit || vram > s->vram_size ||
        count * unit > s->vram_size - vram) {
        return PLN_ERR_RANGE;
    }
    return PLN_ERR_NONE;
}

static enum pln_gpu_error pln_bar1_do_map(PeerlaneGPU *s)
{
    PlnBar1Run *free_run = NULL;
    enum pln_gpu_error err;

    err = pln_bar1_check(s, s->bar1.index, s->bar1.count, s->bar1.vram);
    if (err) {
        return err;
    }
    for (unsigned i = 0; i < s->bar1_runs; i++) {
        PlnBar1Run *run = &s->bar1.runs[i];

        if (!run->count) {
            free_run = free_run ? free_run : run;
        } else if (run->index < s->bar1.index + s->bar1.count &&
                   s->bar1.index < run->index + run->count) {
            return PLN_ERR_OVERLAP;
        }
    }
    if (!free_run) {
        return PLN_ERR_NO_SPACE;
    }

    free_run->index = s->bar1.index;
    free_run->count = s->bar1.count;
    free_run->vram = s->bar1.vram;
    pln_bar1_add(s, free_run);
    trace_peerlane_gpu_bar1_map(pln_name(s), s->bar1.index, s->bar1.count,
                                s->bar1.vram);
    return PLN_ERR_NONE;
}

static enum pln_gpu_error pln_bar1_do_unmap(PeerlaneGPU *s)
{
    if (!s->bar1.count) {
        return PLN_ERR_LENGTH;
    }
    for (unsigned i = 0; i < s->bar1_runs; i++) {
        PlnBar1Run *run = &s->bar1.runs[i];

        if (run->count == s->bar1.count && run->index == s->bar1.index) {
            pln_bar1_remove(s, run);
            return PLN_ERR_NONE;
        }
    }
    return PLN_ERR_NOT_MAPPED;
}

void pln_bar1_command(PeerlaneGPU *s, uint32_t cmd)
{
    switch (cmd) {
    case PLN_BAR1_CMD_MAP:
        s->bar1.result = pln_bar1_do_map(s);
        break;
    case PLN_BAR1_CMD_UNMAP:
        s->bar1.result = pln_bar1_do_unmap(s);
        break;
    case PLN_BAR1_CMD_UNMAP_ALL:
        pln_bar1_unmap_all(s);
        s->bar1.result = PLN_ERR_NONE;
        break;
    default:
        s->bar1.result = PLN_ERR_COMMAND;
        break;
    }
    if (s->bar1.result) {
        pln_count(s, PLN_CNT_ERRORS, 1);
        trace_peerlane_gpu_bar1_error(pln_name(s), cmd, s->bar1.result);
        qemu_log_mask(LOG_GUEST_ERROR, "%s: BAR1 command %" PRIu32
                      " index %" PRIu32 " count %" PRIu32 ": error %" PRIu32
                      "\n", pln_name(s), cmd, s->bar1.index, s->bar1.count,
                      s->bar1.result);
    }
}

/* Map again what an incoming migration says was mapped, if the size is right */
bool pln_bar1_restore(PeerlaneGPU *s, bool sized)
{
    s->bar1.units_used = 0;
    s->bar1.runs_used = 0;
    memory_region_transaction_begin();
    for (unsigned i = 0; i < PLN_BAR1_MAX_RUNS; i++) {
        PlnBar1Run *run = &s->bar1.runs[i];
        bool bad;

        if (!run->count) {
            continue;
        }
        bad = !sized || i >= s->bar1_runs ||
              pln_bar1_check(s, run->index, run->count, run->vram);
        for (unsigned j = 0; j < i && !bad; j++) {
            const PlnBar1Run *other = &s->bar1.runs[j];

            bad = other->count && run->index < other->index + other->count &&
                  other->index < run->index + run->count;
        }
        if (bad) {
            /* Keep what is not mapped out of the way of a later unmap */
            for (unsigned j = i; j < PLN_BAR1_MAX_RUNS; j++) {
                s->bar1.runs[j].count = 0;
            }
            memory_region_transaction_commit();
            return false;
        }
        pln_bar1_add(s, run);
    }
    memory_region_transaction_commit();
    return sized;
}
