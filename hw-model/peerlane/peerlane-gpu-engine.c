/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the queues of the engine, and their registers.
 *
 * A doorbell only wakes the thread that runs the queues in turn, a slice each.
 * During a slice that works on a copy of the descriptor in flight, and what it has
 * done holds unless the queue was stopped by what it did itself.  All that is said
 * here of a queue is within the lock of the engine.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "hw/pci/pci.h"
#include "peerlane-gpu.h"
#include "peerlane-gpu-irq.h"
#include "trace.h"

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
    q->generation++;
    timer_del(q->timer);
    pln_count(s, PLN_CNT_ERRORS, 1);
    trace_peerlane_gpu_queue_error(pln_name(s), q->index, index, err);
    pla_engine_irq_locked(&s->engine.base, 0);
}

/* The fence goes last: who sees it sees the record and the data */
static enum pln_gpu_error pln_write_completion(PeerlaneGPU *s, const PlnWork *w,
                                               enum pln_gpu_error err)
{
    const PlnDesc *d = &w->desc;
    uint8_t rec[PLN_COMP_SIZE];
    enum pln_gpu_error bus;

    stq_le_p(rec + PLN_COMP_FENCE, d->fence);
    stl_le_p(rec + PLN_COMP_STATUS, err);
    stl_le_p(rec + PLN_COMP_OPCODE, d->opcode);
    stq_le_p(rec + PLN_COMP_RESULT, w->result);
    if (d->flags & PLN_DESC_F_TIME) {
        stq_le_p(rec + PLN_COMP_TIME, pln_time());
    } else {
        stq_le_p(rec + PLN_COMP_BYTES, w->done);
    }
    bus = pln_bus_rw(s, d->comp + PLN_COMP_STATUS, rec + PLN_COMP_STATUS,
                     PLN_COMP_SIZE - PLN_COMP_STATUS, true);
    if (!bus) {
        /* The fence is seen after the rest of the record and after the data */
        smp_wmb();
        bus = pln_bus_rw(s, d->comp + PLN_COMP_FENCE, rec + PLN_COMP_FENCE, 8,
                         true);
    }
    return bus;
}

/* Within a slice, as all that moves bytes */
static enum pln_gpu_error pln_desc_fetch(PeerlaneGPU *s, uint64_t ring,
                                         uint32_t head, PlnWork *w)
{
    uint8_t raw[PLN_DESC_SIZE];
    PlnDesc *d = &w->desc;

    memset(w, 0, sizeof(*w));
    if (pln_bus_rw(s, ring + (uint64_t)head * PLN_DESC_SIZE, raw, sizeof(raw),
                   false)) {
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
    trace_peerlane_gpu_desc_start(pln_name(s), s->engine.at->index, head,
                                  d->opcode, d->flags, d->src, d->dst, d->len);
    if (pln_inject_fault(s, &s->fault_engine_error, "fault-engine-error")) {
        return PLN_ERR_INJECTED;
    }

    if (d->opcode == PLN_OP_CRC32C) {
        w->result = d->imm;
    } else if (d->opcode == PLN_OP_COMPARE) {
        w->result = PLN_COMPARE_EQUAL;
    }
    w->deadline = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                  (int64_t)d->arg * SCALE_US;
    return pln_op_check(s, d);
}

static void pln_desc_finish(PlnQueue *q, enum pln_gpu_error err, bool stuck)
{
    PeerlaneGPU *s = q->gpu;
    const PlnDesc *d = &q->work.desc;

    trace_peerlane_gpu_desc_done(pln_name(s), q->index, q->head, err,
                                 d->fence, q->work.result, q->work.done);
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
        pla_engine_irq_locked(&s->engine.base, q->vector);
    }
}

/*
 * One slice of a queue.  Whatever the engine writes to may reset or even unplug
 * this very device, by way of configuration space, say.  Then nothing of the
 * slice holds, and the descriptor has been dropped.
 */
static void pln_queue_step(PlnQueue *q)
{
    PeerlaneGPU *s = q->gpu;
    PlaEngine *e = &s->engine.base;
    uint64_t ring = q->base;
    uint32_t head = q->head;
    bool active = q->active, stuck = false;
    PlnWork w = q->work;
    int ret = PLN_ERR_NONE;

    s->engine.at = q;
    s->engine.generation = q->generation;
    pla_engine_enter(e);
    if (!active) {
        ret = pln_desc_fetch(s, ring, head, &w);
    }
    if (!ret) {
        ret = pln_op_step(s, &w);
    }
    if (ret >= 0 && !e->dropped) {
        stuck = pln_inject_fault(s, &s->fault_stuck_fence, "fault-stuck-fence");
        pln_count(s, PLN_CNT_DESCRIPTORS, 1);
        if ((w.desc.flags & PLN_DESC_F_COMP) &&
            w.desc.comp % PLN_COMP_SIZE == 0 && !stuck) {
            enum pln_gpu_error bus = pln_write_completion(s, &w, ret);

            ret = ret ? ret : bus;
        }
    }
    if (!pla_engine_leave(e)) {
        return;
    }
    q->active = true;
    q->work = w;
    if (ret >= 0) {
        pln_desc_finish(q, ret, stuck);
    } else if (ret == PLN_STEP_WAIT) {
        q->waiting = true;
        timer_mod(q->timer, pln_op_poll_at(&w));
    }
}

static bool pln_engine_step(PCIDevice *pdev)
{
    PeerlaneGPU *s = PEERLANE_GPU(pdev);
    PlnEngine *e = &s->engine;

    for (unsigned i = 0; i < s->num_queues; i++) {
        PlnQueue *q = &e->queues[e->next_queue];

        e->next_queue = (e->next_queue + 1) % s->num_queues;
        if (q->status == PLN_Q_RUNNING && !q->waiting) {
            pln_queue_step(q);
            return true;
        }
    }
    return false;
}

static bool pln_engine_wanted(PCIDevice *pdev)
{
    PlnEngine *e = &PEERLANE_GPU(pdev)->engine;

    return e->at->generation == e->generation;
}

static const PlaEngineOps pln_engine_ops = {
    .step = pln_engine_step,
    .wanted = pln_engine_wanted,
    .interrupt = pln_raise_irq,
};

/* In D3hot a function sends no requests, and no interrupts */
static bool pln_in_d0(PeerlaneGPU *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    return !(pci_get_word(pdev->config + pdev->pm_cap + PCI_PM_CTRL) &
             PCI_PM_CTRL_STATE_MASK);
}

void pln_engine_holds(PeerlaneGPU *s)
{
    if (s->engine.base.bh) {
        pla_engine_hold(&s->engine.base, PLA_HELD_DEVICE, !pln_in_d0(s) ||
                        s->removed || s->fault_hung_engine);
    }
}

static void pln_queue_timer(void *opaque)
{
    PlnQueue *q = opaque;
    PlaEngine *e = &q->gpu->engine.base;

    QEMU_LOCK_GUARD(&e->lock);
    q->waiting = false;
    pla_engine_kick_locked(e);
}

static void pln_queue_stop(PlnQueue *q)
{
    q->status = PLN_Q_DISABLED;
    q->active = false;
    q->waiting = false;
    q->generation++;
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
    pla_engine_kick_locked(&q->gpu->engine.base);
}

/* At the end of a slice */
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
    pla_engine_kick_locked(&s->engine.base);
}

uint32_t pln_queue_read(PeerlaneGPU *s, unsigned n, hwaddr reg)
{
    PlnQueue *q = &s->engine.queues[n];

    if (n >= s->num_queues) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: read of queue %u of %u\n",
                      pln_name(s), n, s->num_queues);
        return 0;
    }
    QEMU_LOCK_GUARD(&s->engine.base.lock);
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

static void pln_queue_set(PlnQueue *q, hwaddr reg, uint32_t val)
{
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
    qemu_log_mask(LOG_GUEST_ERROR, "%s: queue %" PRIu32 " refuses 0x%" PRIx32
                  " to register 0x%" HWADDR_PRIx "\n", pln_name(q->gpu),
                  q->index, val, reg);
}

void pln_queue_write(PeerlaneGPU *s, unsigned n, hwaddr reg, uint32_t val)
{
    PlnQueue *q = &s->engine.queues[n];
    PlaEngine *e = &s->engine.base;

    if (n >= s->num_queues) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: write to queue %u of %u\n",
                      pln_name(s), n, s->num_queues);
        return;
    }
    /* A reset has brought it back to D0 */
    pln_engine_holds(s);
    /* Nothing but a good doorbell waits for the engine */
    qemu_mutex_lock(&e->lock);
    if (reg != PLN_Q_TAIL || val >= q->size) {
        qemu_mutex_unlock(&e->lock);
        pla_engine_stop(e);
    }
    pln_queue_set(q, reg, val);
    pla_engine_go(e);
    pla_engine_raise(e);
}

void pln_engine_reset(PeerlaneGPU *s)
{
    PlaEngine *e = &s->engine.base;

    pla_engine_stop(e);
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        PlnQueue *q = &s->engine.queues[i];

        pln_queue_reset(q);
        q->base = 0;
        q->size = 0;
        q->vector = i + 1;
    }
    s->engine.next_queue = 0;
    e->irqs = 0;
    pla_engine_go(e);
}

void pln_engine_init(PeerlaneGPU *s)
{
    pla_engine_init(&s->engine.base, PCI_DEVICE(s), &pln_engine_ops);
}

void pln_engine_start(PeerlaneGPU *s)
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
    pla_engine_start(&s->engine.base);
}

void pln_engine_exit(PeerlaneGPU *s)
{
    pln_engine_reset(s);
    pla_engine_exit(&s->engine.base);
}

/* The engine may be at work in pln_engine_exit(), but not here */
void pln_engine_finalize(PeerlaneGPU *s)
{
    for (unsigned i = 0; i < PLN_MAX_QUEUES; i++) {
        timer_free(s->engine.queues[i].timer);
    }
    g_free(s->stage[0]);
    g_free(s->stage[1]);
    pla_engine_finalize(&s->engine.base);
}
