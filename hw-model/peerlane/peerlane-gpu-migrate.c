/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the migration stream, and the checks of one that comes in.
 */
#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "migration/vmstate.h"
#include "peerlane-gpu.h"

static bool pln_queue_ok(PeerlaneGPU *s, unsigned index)
{
    const PlnQueue *q = &s->engine.queues[index];

    if (q->status > PLN_Q_ERROR || q->vector >= PLN_MSIX_VECTORS ||
        q->size > PLN_Q_SIZE_MAX || q->head >= MAX(q->size, 1) ||
        q->tail >= MAX(q->size, 1)) {
        return false;
    }
    if (q->active) {
        return index < s->num_queues && q->size &&
               q->status == PLN_Q_RUNNING && pln_op_in_flight(s, q);
    }
    return !q->waiting &&
           (q->status != PLN_Q_IDLE || q->head == q->tail) &&
           (q->status != PLN_Q_RUNNING || q->head != q->tail) &&
           (index < s->num_queues || q->status == PLN_Q_DISABLED);
}

/* If the stream ends early, no old ring goes with what it has brought */
static int pln_pre_load(void *opaque)
{
    pln_late_off(opaque);
    pln_rebar_pre_load(opaque);
    return 0;
}

static int pln_post_load(void *opaque, int version_id)
{
    PeerlaneGPU *s = opaque;

    if (!pln_late_restore(s) || !pln_bar1_restore(s, pln_rebar_restore(s)) ||
        s->engine.next_queue >= s->num_queues) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        if (!pln_queue_ok(s, i)) {
            return -EINVAL;
        }
    }
    for (unsigned i = 0; i < PLN_NUM_INITIATORS; i++) {
        PlnInitiator *in = &s->counters.initiators[i];

        in->name[sizeof(in->name) - 1] = 0;
        in->dev = NULL;
    }
    pln_engine_holds(s);
    pln_show_removed(s);
    return 0;
}

static const VMStateDescription vmstate_pln_desc = {
    .name = "peerlane-gpu-desc",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(opcode, PlnDesc),
        VMSTATE_UINT32(flags, PlnDesc),
        VMSTATE_UINT32(arg, PlnDesc),
        VMSTATE_UINT32(reserved, PlnDesc),
        VMSTATE_UINT64(src, PlnDesc),
        VMSTATE_UINT64(dst, PlnDesc),
        VMSTATE_UINT64(len, PlnDesc),
        VMSTATE_UINT64(imm, PlnDesc),
        VMSTATE_UINT64(comp, PlnDesc),
        VMSTATE_UINT64(fence, PlnDesc),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pln_queue = {
    .name = "peerlane-gpu-queue",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(status, PlnQueue),
        VMSTATE_UINT64(base, PlnQueue),
        VMSTATE_UINT32(size, PlnQueue),
        VMSTATE_UINT32(head, PlnQueue),
        VMSTATE_UINT32(tail, PlnQueue),
        VMSTATE_UINT32(error_code, PlnQueue),
        VMSTATE_UINT32(error_index, PlnQueue),
        VMSTATE_UINT32(vector, PlnQueue),
        VMSTATE_UINT64(fence, PlnQueue),
        VMSTATE_UINT32(fence_hi, PlnQueue),
        VMSTATE_BOOL(active, PlnQueue),
        VMSTATE_BOOL(waiting, PlnQueue),
        VMSTATE_STRUCT(work.desc, PlnQueue, 1, vmstate_pln_desc, PlnDesc),
        VMSTATE_UINT64(work.done, PlnQueue),
        VMSTATE_UINT64(work.result, PlnQueue),
        VMSTATE_INT64(work.deadline, PlnQueue),
        VMSTATE_TIMER_PTR(timer, PlnQueue),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pln_run = {
    .name = "peerlane-gpu-run",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(index, PlnBar1Run),
        VMSTATE_UINT32(count, PlnBar1Run),
        VMSTATE_UINT64(vram, PlnBar1Run),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pln_initiator = {
    .name = "peerlane-gpu-initiator",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(id, PlnInitiator),
        VMSTATE_UINT32(read_hi, PlnInitiator),
        VMSTATE_UINT32(write_hi, PlnInitiator),
        VMSTATE_UINT64(read, PlnInitiator),
        VMSTATE_UINT64(write, PlnInitiator),
        VMSTATE_UINT8_ARRAY(name, PlnInitiator, 64),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_pln = {
    .name = TYPE_PEERLANE_GPU,
    .version_id = 5,
    .minimum_version_id = 5,
    .pre_load = pln_pre_load,
    .post_load = pln_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, PeerlaneGPU),
        VMSTATE_MSIX(parent_obj, PeerlaneGPU),
        VMSTATE_UINT64_EQUAL(vram_size, PeerlaneGPU, NULL),
        VMSTATE_UINT64_EQUAL(bar1_size, PeerlaneGPU, NULL),
        VMSTATE_UINT8_EQUAL(num_queues, PeerlaneGPU, NULL),
        VMSTATE_UINT32_EQUAL(bar1_runs, PeerlaneGPU, NULL),
        VMSTATE_UINT32_EQUAL(features, PeerlaneGPU, NULL),
        VMSTATE_UINT8_ARRAY(uuid.data, PeerlaneGPU, 16),
        VMSTATE_UINT32(fault_engine_error, PeerlaneGPU),
        VMSTATE_UINT32(fault_stuck_fence, PeerlaneGPU),
        VMSTATE_UINT32(fault_lost_irq, PeerlaneGPU),
        VMSTATE_BOOL(fault_hung_engine, PeerlaneGPU),
        VMSTATE_UINT32(fault_late_writes, PeerlaneGPU),
        VMSTATE_BOOL(removed, PeerlaneGPU),
        VMSTATE_UINT32(reset_count, PeerlaneGPU),
        VMSTATE_UINT32(scratch, PeerlaneGPU),
        VMSTATE_UINT32(bar1.index, PeerlaneGPU),
        VMSTATE_UINT32(bar1.count, PeerlaneGPU),
        VMSTATE_UINT64(bar1.vram, PeerlaneGPU),
        VMSTATE_UINT32(bar1.result, PeerlaneGPU),
        VMSTATE_UINT32(engine.next_queue, PeerlaneGPU),
        VMSTATE_STRUCT_ARRAY(bar1.runs, PeerlaneGPU, PLN_BAR1_MAX_RUNS, 1,
                             vmstate_pln_run, PlnBar1Run),
        VMSTATE_STRUCT_ARRAY(engine.queues, PeerlaneGPU, PLN_MAX_QUEUES, 1,
                             vmstate_pln_queue, PlnQueue),
        VMSTATE_UINT64_ARRAY(counters.val, PeerlaneGPU, PLN_NUM_COUNTERS),
        VMSTATE_UINT32_ARRAY(counters.high, PeerlaneGPU, PLN_NUM_COUNTERS),
        VMSTATE_STRUCT_ARRAY(counters.initiators, PeerlaneGPU,
                             PLN_NUM_INITIATORS, 1, vmstate_pln_initiator,
                             PlnInitiator),
        VMSTATE_UINT32(time_hi, PeerlaneGPU),
        VMSTATE_END_OF_LIST()
    }
};
