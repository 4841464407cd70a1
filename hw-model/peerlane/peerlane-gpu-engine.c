/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the queues of the engine, and their registers.
 *
 * A doorbell only schedules a bottom half.  That runs the queues in turn, a
 * slice each, and gives way to the main loop after PLN_BH_BUDGET bytes.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "hw/pci/pci.h"
#include "system/runstate.h"
#include "peerlane-gpu.h"
#include "peerlane-gpu-irq.h"
#include "trace.h"

/* After so many bytes the engine lets the main loop run */
#define PLN_BH_BUDGET           (1024 * 1024)
/* What one descriptor costs of this even if it moves nothing */
#define PLN_DESC_COST           4096

static const char *const pln_status_names[] = {
    [PLN_Q_DISABLED] = "disabled",
    [PLN_Q_IDLE] = "idle",
    [PLN_Q_RUNNING] = "running",
    [PLN_Q_ERROR] = "error",
};

const char *pln_queue_status_name(const PlnQueue *q)
{
    return pln_status_names[q->status];
}

/* The same in all GPUs of the machine; it stands still while that does */
uint64_t pln_time(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint32_t pln_queue_rest(const PlnQueue *q)
{
    return q->active || q->head != q->tail ? PLN_Q_RUNNING : PLN_Q_IDLE;
}

static void pln_queue_halt(PlnQueue *q, enum pln_gpu_error err,
                           uint32_t index)
{
    PeerlaneGPU *s = q->gpu;

    q->status = PLN_Q_ERROR;
    q->error_code = err;
    q->error_index = index;
    q->active = false;
    q->waiting = false;
    timer_del(q->timer);
    pln_count(s, PLN_CNT_ERRORS, 1);
    trace_peerlane_gpu_queue_error(pln_name(s), q->index, index, err);
    pln_raise_irq(s, 0);
}

/* The fence goes last: who sees it sees the record and the data */
static enum pln_gpu_error pln_write_completion(PlnQueue *q,
                                               enum pln_gpu_error err)
{
    const PlnDesc *d = &q->desc;
    uint8_t rec[PLN_COMP_SIZE];
    enum pln_gpu_error bus;

    stq_le_p(rec + PLN_COMP_FENCE, d->fence);
    stl_le_p(rec + PLN_COMP_STATUS, err);
    stl_le_p(rec + PLN_COMP_OPCODE, d->opcode);
    stq_le_p(rec + PLN_COMP_RESULT, q->result);
    if (d->flags & PLN_DESC_F_TIME) {
        stq_le_p(rec + PLN_COMP_TIME, pln_time());
    } else {
        stq_le_p(rec + PLN_COMP_BYTES, q->done);
    }
    bus = pln_bus_rw(q->gpu, d->comp + PLN_COMP_STATUS, rec + PLN_COMP_STATUS,
                     PLN_COMP_SIZE - PLN_COMP_STATUS, true);
    if (!bus) {
        /* The fence is seen after the rest of the record and after the data */
        smp_wmb();
        bus = pln_bus_rw(q->gpu, d->comp + PLN_COMP_FENCE,
                         rec + PLN_COMP_FENCE, 8, true);
    }
    return bus;
}

static void pln_desc_finish(PlnQueue *q, enum pln_gpu_error err)
{
    PeerlaneGPU *s = q->gpu;
    const PlnDesc *d = &q->desc;
    bool stuck = pln_inject_fault(s, &s->fault_stuck_fence,
                                  "fault-stuck-fence");

    pln_count(s, PLN_CNT_DESCRIPTORS, 1);
    if ((d->flags & PLN_DESC_F_COMP) && d->comp % PLN_COMP_SIZE == 0 &&
        !stuck) {
        enum pln_gpu_error bus = pln_write_completion(q, err);

        if (!q->active) {
            return;
        }
        err = err ? err : bus;
    }
    trace_peerlane_gpu_desc_done(pln_name(s), q->index, q->head, err,
                                 d->fence, q->result, q->done);
    q->active = false;
    if (err) {
        pln_queue_halt(q, err, q->head);
    } else {
        q->head = (q->head + 1) & (q->size - 1);
        if (!stuck) {
            q->fence = d->fence;
        }
        q->status = pln_queue_rest(q);
    }
    if (d->flags & PLN_DESC_F_IRQ) {
        pln_raise_irq(s, q->vector);
    }
}

static enum pln_gpu_error pln_desc_start(PlnQueue *q)
{
    PeerlaneGPU *s = q->gpu;
    PlnDesc *d = &q->desc;
    uint8_t raw[PLN_DESC_SIZE];

    memset(d, 0, sizeof(*d));
    q->active = true;
    q->done = 0;
    q->result = 0;
    if (pln_bus_rw(s, q->base + (uint64_t)q->head * PLN_DESC_SIZE, raw,
                   sizeof(raw), false)) {
        return PLN_ERR_RING;
    }
    d->opcode = ldl_le_p(raw + PLN_DESC_OPCODE);
    d->flags = ldl_le_p(raw + PLN_DESC_FLAGS);
    d->arg = ldl_le_p(raw + PLN_DESC_ARG);
    d->reserved = ldl_le_p(raw + PLN_DESC_RESERVED);
    d->src = ldq_le_p(raw + PLN_DESC_SRC);
    d->dst = ldq_le_p(raw + PLN_DESC_DST);
    d->len = ldq_le_p(raw + PLN_DESC_LEN);
    d->imm = ldq_le_p(raw + PLN_DESC_IMM);
    d->comp = ldq_le_p(raw + PLN_DESC_COMP);
    d->fence = ldq_le_p(raw + PLN_DESC_FENCE);
    trace_peerlane_gpu_desc_start(pln_name(s), q->index, q->head, d->opcode,
                                  d->flags, d->src, d->dst, d->len);
    if (pln_inject_fault(s, &s->fault_engine_error, "fault-engine-error")) {
        return PLN_ERR_INJECTED;
    }

    if (d->opcode == PLN_OP_CRC32C) {
        q->result = d->imm;
    } else if (d->opcode == PLN_OP_COMPARE) {
        q->result = PLN_COMPARE_EQUAL;
    }
    q->deadline = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                  (int64_t)d->arg * SCALE_US;
    return pln_op_check(s, d);
}

/*
 * Run one slice; returns what it cost.
 *
 * Whatever the engine writes to may reset or even unplug this very device, by
 * way of configuration space, say.  Then the queue is not active any more, and
 * its descriptor has been dropped.
 */
static uint64_t pln_queue_step(PlnQueue *q)
{
    uint64_t before;
    int ret;

    if (!q->active) {
        ret = pln_desc_start(q);
        if (ret && q->active) {
            pln_desc_finish(q, ret);
        }
        if (!q->active) {
            return PLN_DESC_COST;
        }
    }
    before = q->done;
    ret = pln_op_step(q);
    before = q->done - before;
    if (ret >= 0 && q->active) {
        pln_desc_finish(q, ret);
    }
    return before + PLN_DESC_COST;
}

static bool pln_queue_ready(const PlnQueue *q)
{
    return q->status == PLN_Q_RUNNING && !q->waiting;
}

/* In D3hot a function sends no requests, and no interrupts */
static bool pln_in_d0(PeerlaneGPU *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    return !(pci_get_word(pdev->config + pdev->pm_cap + PCI_PM_CTRL) &
             PCI_PM_CTRL_STATE_MASK);
}

static void pln_unref(void *opaque)
{
    object_unref(OBJECT(opaque));
}

static void pln_engine_bh(void *opaque)
{
    PeerlaneGPU *s = opaque;
    uint64_t spent = 0;
    unsigned idle = 0;

    /* Work may end with the device unplugged: see pln_queue_step() */
    object_ref(OBJECT(s));
    /* While the machine is stopped nothing may change its memory */
    while (idle < s->num_queues && s->engine.bh && !s->removed &&
           pln_in_d0(s) && !s->fault_hung_engine && runstate_is_running()) {
        PlnQueue *q = &s->engine.queues[s->engine.next_queue];

        if (spent >= PLN_BH_BUDGET) {
            qemu_bh_schedule(s->engine.bh);
            break;
        }
        s->engine.next_queue = (s->engine.next_queue + 1) % s->num_queues;
        if (pln_queue_ready(q)) {
            spent += pln_queue_step(q);
            idle = 0;
        } else {
            idle++;
        }
    }
    if (s->engine.bh) {
        object_unref(OBJECT(s));
    } else {
        /* Who called this still looks at the device afterwards */
        aio_bh_schedule_oneshot(qemu_get_aio_context(), pln_unref, s);
    }
}

static void pln_queue_timer(void *opaque)
{
    PlnQueue *q = opaque;

    q->waiting = false;
    pln_engine_kick(q->gpu);
}

void pln_engine_kick(PeerlaneGPU *s)
{
    if (s->engine.bh) {
        qemu_bh_schedule(s->engine.bh);
    }
}

static void pln_queue_stop(PlnQueue *q)
{
    q->status = PLN_Q_DISABLED;
    q->active = false;
    q->waiting = false;
    timer_del(q->timer);
}

static void pln_queue_reset(PlnQueue *q)
{
    pln_queue_stop(q);
    q->head = 0;
    q->tail = 0;
    q->error_code = PLN_ERR_NONE;
    q->error_index = 0;
    q->fence = 0;
    q->fence_hi = 0;
}

static void pln_queue_enable(PlnQueue *q)
{
    uint64_t bytes = (uint64_t)q->size * PLN_DESC_SIZE;

    trace_peerlane_gpu_queue_enable(pln_name(q->gpu), q->index, q->base,
                                    q->size);
    if (q->size < PLN_Q_SIZE_MIN || q->size > PLN_Q_SIZE_MAX ||
        !is_power_of_2(q->size) || q->base % PLN_DESC_SIZE ||
        q->base + bytes - 1 < q->base) {
        pln_queue_halt(q, PLN_ERR_RING, 0);
        return;
    }
    q->status = pln_queue_rest(q);
    pln_engine_kick(q->gpu);
}

static void pln_queue_ctrl(PlnQueue *q, uint32_t val)
{
    bool enabled = q->status == PLN_Q_IDLE || q->status == PLN_Q_RUNNING;

    if (q->gpu->fault_hung_engine) {
        return;
    }
    if (val & ~(PLN_Q_CTRL_ENABLE | PLN_Q_CTRL_RESET)) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: unknown bits in CTRL of queue %"
                      PRIu32 "\n", pln_name(q->gpu), q->index);
    }
    if (val & PLN_Q_CTRL_RESET) {
        trace_peerlane_gpu_queue_reset(pln_name(q->gpu), q->index);
        pln_queue_reset(q);
        enabled = false;
    }
    if (q->status == PLN_Q_ERROR) {
        return;                 /* only a reset leaves this state */
    }
    if ((val & PLN_Q_CTRL_ENABLE) && !enabled) {
        pln_queue_enable(q);
    } else if (!(val & PLN_Q_CTRL_ENABLE) && enabled) {
        trace_peerlane_gpu_queue_disable(pln_name(q->gpu), q->index);
        pln_queue_stop(q);
    }
}

static void pln_queue_doorbell(PlnQueue *q, uint32_t tail)
{
    PeerlaneGPU *s = q->gpu;

    pln_count(s, PLN_CNT_DOORBELLS, 1);
    trace_peerlane_gpu_doorbell(pln_name(s), q->index, q->head, tail);
    if (q->status != PLN_Q_IDLE && q->status != PLN_Q_RUNNING) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: doorbell of queue %" PRIu32
                      ", which is not enabled\n", pln_name(s), q->index);
        return;
    }
    if (tail >= q->size) {
        pln_queue_halt(q, PLN_ERR_TAIL, q->head);
        return;
    }
    q->tail = tail;
    q->status = pln_queue_rest(q);
    pln_engine_kick(s);
}

uint32_t pln_queue_read(PeerlaneGPU *s, unsigned n, hwaddr reg)
{
    PlnQueue *q = &s->engine.queues[n];

    if (n >= s->num_queues) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: read of queue %u of %u\n",
                      pln_name(s), n, s->num_queues);
        return 0;
    }
    switch (reg) {
    case PLN_Q_CTRL:
        return q->status == PLN_Q_IDLE || q->status == PLN_Q_RUNNING ?
               PLN_Q_CTRL_ENABLE : 0;
    case PLN_Q_STATUS:
        return q->status;
    case PLN_Q_BASE:
        return q->base;
    case PLN_Q_BASE + 4:
        return q->base >> 32;
    case PLN_Q_SIZE:
        return q->size;
    case PLN_Q_HEAD:
        return q->head;
    case PLN_Q_TAIL:
        return q->tail;
    case PLN_Q_ERROR_CODE:
        return q->error_code;
    case PLN_Q_ERROR_INDEX:
        return q->error_index;
    case PLN_Q_VECTOR:
        return q->vector;
    case PLN_Q_FENCE:
        q->fence_hi = q->fence >> 32;
        return q->fence;
    case PLN_Q_FENCE + 4:
        return q->fence_hi;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: read of no register 0x%"
                      HWADDR_PRIx " of queue %u\n", pln_name(s), reg, n);
        return 0;
    }
}

void pln_queue_write(PeerlaneGPU *s, unsigned n, hwaddr reg, uint32_t val)
{
    PlnQueue *q = &s->engine.queues[n];

    if (n >= s->num_queues) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: write to queue %u of %u\n",
                      pln_name(s), n, s->num_queues);
        return;
    }
    switch (reg) {
    case PLN_Q_CTRL:
        pln_queue_ctrl(q, val);
        return;
    case PLN_Q_TAIL:
        pln_queue_doorbell(q, val);
        return;
    case PLN_Q_VECTOR:
        if (val < PLN_MSIX_VECTORS) {
            q->vector = val;
            return;
        }
        break;
    case PLN_Q_BASE:
    case PLN_Q_BASE + 4:
    case PLN_Q_SIZE:
        if (q->status != PLN_Q_DISABLED) {
            break;
        }
        if (reg == PLN_Q_SIZE) {
            q->size = val;
        } else {
            q->base = deposit64(q->base, reg == PLN_Q_BASE ? 0 : 32, 32, val);
        }
        /* Another ring starts at its beginning */
        q->head = 0;
        q->tail = 0;
        return;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "%s: queue %u refuses 0x%" PRIx32
                  " to register 0x%" HWADDR_PRIx "\n", pln_name(s), n, val,
                  reg);
}

void pln_engine_reset(PeerlaneGPU *s)
{
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        PlnQueue *q = &s->engine.queues[i];

        pln_queue_reset(q);
        q->base = 0;
        q->size = 0;
        q->vector = i + 1;
    }
    s->engine.next_queue = 0;
}

void pln_engine_init(PeerlaneGPU *s)
{
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        PlnQueue *q = &s->engine.queues[i];

        q->gpu = s;
        q->index = i;
        q->vector = i + 1;
        q->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, pln_queue_timer, q);
    }
    s->stage[0] = g_malloc(PLN_SLICE);
    s->stage[1] = g_malloc(PLN_SLICE);
    /*
     * Of the main loop only: a device that waits for its work in its MMIO
     * handler runs the bottom halves of the other context, and would refuse
     * the engine there.
     */
    s->engine.bh = aio_bh_new_guarded(iohandler_get_aio_context(),
                                      pln_engine_bh, s,
                                      &DEVICE(s)->mem_reentrancy_guard);
}

void pln_engine_exit(PeerlaneGPU *s)
{
    pln_engine_reset(s);
    qemu_bh_delete(s->engine.bh);
    s->engine.bh = NULL;
}

/* The engine may be at work in pln_engine_exit(), but not here */
void pln_engine_finalize(PeerlaneGPU *s)
{
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        timer_free(s->engine.queues[i].timer);
    }
    g_free(s->stage[0]);
    g_free(s->stage[1]);
}
