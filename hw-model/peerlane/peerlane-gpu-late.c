/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: writes through BAR1 that become visible late, a fault.
 *
 * While it is on, an IO region lies before the runs of BAR1, so that each write
 * comes by here.  The last of them wait in a ring, in order; what is pushed out
 * is in VRAM.  All of this is within the BQL, but for what the observer hears.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "system/runstate.h"
#include "peerlane-gpu.h"
#include "trace.h"

static void pln_late_store(PeerlaneGPU *s, const PlnLateWrite *w)
{
    /* On a weakly ordered host, too, a vCPU sees them in the order of the ring */
    smp_wmb();
    stn_le_p(s->vram_ptr + w->vram, w->size, w->val);
    memory_region_set_dirty(&s->vram, w->vram, w->size);
}

/* The one that has waited longest is visible now */
static void pln_late_push(PeerlaneGPU *s)
{
    pln_late_store(s, &s->late.ring[s->late.first]);
    s->late.first = (s->late.first + 1) % s->late.size;
    s->late.count--;
}

void pln_late_flush(PeerlaneGPU *s)
{
    if (s->late.count) {
        trace_peerlane_gpu_late_flush(pln_name(s), s->late.count);
    }
    while (s->late.count) {
        pln_late_push(s);
    }
}

/* Where in VRAM that is; false if it is not all in one run */
static bool pln_late_vram(PeerlaneGPU *s, hwaddr addr, unsigned size,
                          uint64_t *vram)
{
    for (unsigned i = 0; i < s->bar1_runs; i++) {
        const PlnBar1Run *run = &s->bar1.runs[i];
        uint64_t base = (uint64_t)run->index * PLN_BAR1_UNIT_SIZE;
        uint64_t len = (uint64_t)run->count * PLN_BAR1_UNIT_SIZE;

        if (addr >= base && addr - base < len && size <= len - (addr - base)) {
            *vram = run->vram + (addr - base);
            return true;
        }
    }
    return false;
}

static uint64_t pln_late_read(void *opaque, hwaddr addr, unsigned size)
{
    PeerlaneGPU *s = opaque;
    uint64_t vram, val = 0;

    /* A read does not pass the writes before it */
    pln_late_flush(s);
    if (pln_late_vram(s, addr, size, &vram)) {
        return ldn_le_p(s->vram_ptr + vram, size);
    }
    if (size == 1) {
        memory_region_dispatch_read(&s->bar1.unmapped, addr, &val, MO_8,
                                    MEMTXATTRS_UNSPECIFIED);
        return val;
    }
    for (unsigned i = 0; i < size; i++) {
        val |= pln_late_read(s, addr + i, 1) << (8 * i);
    }
    return val;
}

static void pln_late_write(void *opaque, hwaddr addr, uint64_t val,
                           unsigned size)
{
    PeerlaneGPU *s = opaque;
    PlnLateWrite w = { .val = val, .size = size };

    if (!pln_late_vram(s, addr, size, &w.vram)) {
        if (size == 1) {
            memory_region_dispatch_write(&s->bar1.unmapped, addr, val, MO_8,
                                         MEMTXATTRS_UNSPECIFIED);
            return;
        }
        for (unsigned i = 0; i < size; i++) {
            pln_late_write(s, addr + i, (uint8_t)(val >> (8 * i)), 1);
        }
        return;
    }
    /* A vCPU finds the region before it has the BQL: the fault may be off */
    if (!s->late.size) {
        pln_late_store(s, &w);
        return;
    }
    if (s->late.count == s->late.size) {
        pln_late_push(s);
    }
    s->late.ring[(s->late.first + s->late.count++) % s->late.size] = w;
    /* A machine that has stopped is about to be saved */
    if (!runstate_is_running()) {
        pln_late_flush(s);
    }
}

static const MemoryRegionOps pln_late_ops = {
    .read = pln_late_read,
    .write = pln_late_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
    .impl = { .min_access_size = 1, .max_access_size = 8, .unaligned = true },
};

/*
 * They count when the GPU has them, visible or not.  An observer hears of an
 * access after it, in any thread and perhaps without the BQL, so a run that is
 * mapped or unmapped meanwhile decides what is counted, and no more than that.
 */
static void pln_late_access(MemoryRegion *mr, AddressSpace *as, hwaddr addr,
                            hwaddr offset, hwaddr len, bool is_write,
                            MemTxResult result)
{
    PeerlaneGPU *s = container_of(mr, PeerlaneGPU, late.mr);
    uint64_t vram;

    if (result == MEMTX_OK && pln_late_vram(s, offset, len, &vram)) {
        pln_account(s, as, false, len, is_write);
    }
}

static const MemoryRegionObserver pln_late_observer = {
    .access = pln_late_access,
};

/* As fault_late_writes says; nothing else changes the ring */
static void pln_late_show(PeerlaneGPU *s)
{
    pln_late_flush(s);
    g_free(s->late.ring);
    s->late.size = s->fault_late_writes;
    s->late.ring = s->late.size ? g_new0(PlnLateWrite, s->late.size) : NULL;
    s->late.first = 0;
    memory_region_set_enabled(&s->late.mr, s->late.size);
}

/* Off, until a stream that comes in has been checked */
void pln_late_off(PeerlaneGPU *s)
{
    s->fault_late_writes = 0;
    pln_late_show(s);
}

bool pln_late_restore(PeerlaneGPU *s)
{
    if (s->fault_late_writes > PLN_LATE_MAX) {
        pln_late_off(s);
        return false;
    }
    pln_late_show(s);
    return true;
}

void pln_late_init(PeerlaneGPU *s)
{
    memory_region_init_io(&s->late.mr, OBJECT(s), &pln_late_ops, s,
                          "peerlane-gpu-bar1-late", s->bar1_size);
    /* The engine reaches it too, while its device is at work */
    s->late.mr.disable_reentrancy_guard = true;
    /*
     * Accesses to an IO region end in the observer's access() as those to RAM
     * do; only what is mapped is RAM's, and memory_region_set_observer()
     * promises all of it, so it does not take this region.
     */
    s->late.mr.observer = &pln_late_observer;
    memory_region_add_subregion_overlap(&s->bar1.mr, 0, &s->late.mr, 5);
    pln_late_show(s);
}

void pln_late_finalize(PeerlaneGPU *s)
{
    g_free(s->late.ring);
}

static void pln_get_late(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &PEERLANE_GPU(obj)->fault_late_writes, errp);
}

static void pln_set_late(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);
    uint32_t val;

    if (!visit_type_uint32(v, name, &val, errp)) {
        return;
    }
    if (val > PLN_LATE_MAX) {
        error_setg(errp, "fault-late-writes must be at most %d", PLN_LATE_MAX);
        return;
    }
    s->fault_late_writes = val;
    if (DEVICE(s)->realized) {
        pln_late_show(s);
        if (val) {
            pln_count(s, PLN_CNT_FAULTS_INJECTED, 1);
        }
        trace_peerlane_gpu_fault(pln_name(s), name, val);
    }
}

void pln_late_add_property(Object *obj)
{
    object_property_add(obj, "fault-late-writes", "uint32", pln_get_late,
                        pln_set_late, NULL, NULL);
}
