/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: completion queues.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "peerlane-cx.h"
#include "trace.h"

#define PLC_CQ_OVERRUN          1       /* the syndrome of its event */

#define PLC_CQ_INDEX            0xffffff        /* what is told of one */

void plc_cq_free(PlcCq *cq)
{
    timer_free(cq->alarm.timer);
    plc_buf_free(&cq->buf);
    if (cq->dbr_umem) {
        cq->dbr_umem->users--;
    }
    g_free(cq);
}

static void plc_cq_enqueue(PeerlaneCX *s, PlcCq *cq)
{
    if (!cq->queued) {
        cq->queued = true;
        QTAILQ_INSERT_TAIL(&s->st->arms, cq, link);
    }
}

static void plc_cq_timer(void *opaque)
{
    PlcCq *cq = opaque;

    plc_timer_ended(cq->cx, PLC_TIMER_CQ, cq->id);
}

void plc_cq_timer_ended(PeerlaneCX *s, uint32_t id)
{
    PlcCq *cq = plc_table_get(&s->st->cq, id);

    if (cq && plc_alarm_over(&cq->alarm)) {
        cq->late = true;
        plc_cq_enqueue(s, cq);
    }
}

static void plc_cq_moderate(PlcCq *cq, const uint8_t *ctx)
{
    cx_copy(cq->ctx, ctx, CX_CQC_PERIOD);
    cx_copy(cq->ctx, ctx, CX_CQC_MAX_COUNT);
    cq->period = cx_get(cq->ctx, CX_CQC_PERIOD);
    cq->max_count = cx_get(cq->ctx, CX_CQC_MAX_COUNT);
}

uint8_t plc_create_cq(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_CREATE_CTX;
    unsigned log_size = cx_get(ctx, CX_CQC_LOG_SIZE);
    unsigned cqe_sz = cx_get(ctx, CX_CQC_CQE_SZ);
    uint32_t eqn = cx_get(ctx, CX_CQC_EQN);
    uint32_t uar = cx_get(ctx, CX_CQC_UAR);
    uint64_t size = (uint64_t)CX_CQE_SIZE << (log_size + cqe_sz);
    uint8_t status = CX_OK;
    PlcCq *cq;

    if (log_size > PLC_LOG_MAX_CQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    /* Nobody can tell when the only place of one that is collapsed is free */
    if (cqe_sz > 1 || cx_get(ctx, CX_CQC_COMP_EN) ||
        (cx_get(ctx, CX_CQC_CC) && !cx_get(ctx, CX_CQC_OI))) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_own(&s->st->eq, c, eqn) ||
        !plc_table_own(&s->st->uar, c, uar)) {
        return CX_BAD_RESOURCE;
    }
    cq = g_new0(PlcCq, 1);
    cq->uar = uar;
    cq->eqn = eqn;
    cq->log_size = log_size;
    cq->wide = cqe_sz;
    cq->collapsed = cx_get(ctx, CX_CQC_CC);
    cq->ignore_overrun = cx_get(ctx, CX_CQC_OI);
    cq->dbr = cx_get(ctx, CX_CQC_DBR) & ~7ull;
    memcpy(cq->ctx, ctx, CX_CQC_SIZE);
    plc_cq_moderate(cq, ctx);
    cq->cx = s;
    cq->alarm.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, plc_cq_timer, cq);
    if (cx_get(ctx, CX_CQC_UMEM_DBR)) {
        status = plc_umem_dbr(s, c, cx_get(ctx, CX_CQC_UMEM_DBR_ID),
                              cx_get(ctx, CX_CQC_DBR), &cq->dbr_umem,
                              &cq->dbr);
    }
    if (!status && cx_get(c->in, CX_CQ_UMEM_VALID)) {
        status = plc_buf_umem(s, &cq->buf, c, cx_get(c->in, CX_CQ_UMEM_ID),
                              cx_get(c->in, CX_CQ_UMEM_OFFSET), size, true);
    } else if (!status) {
        status = plc_buf_init(&cq->buf, c, CX_CREATE_PAS,
                              cx_get(ctx, CX_CQC_LOG_PAGE),
                              cx_get(ctx, CX_CQC_PAGE_OFFSET), size);
    }
    if (!status && !plc_table_add(&s->st->cq, c, cq, &cq->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_cq_free(cq);
        return status;
    }
    cx_set(c->out, CX_ID_OUT, cq->id);
    return CX_OK;
}

/* It waits no more for a place in its event queue */
static void plc_cq_admit(PeerlaneCX *s, PlcCq *cq)
{
    if (cq->denied) {
        PlcEq *eq = plc_table_get(&s->st->eq, cq->eqn);

        QTAILQ_REMOVE(&eq->denied, cq, denied_link);
        cq->denied = false;
    }
}

uint8_t plc_destroy_cq(PeerlaneCX *s, PlcCmd *c)
{
    PlcCq *cq = plc_table_own(&s->st->cq, c, cx_get(c->in, CX_ID_IN));

    if (!cq) {
        return CX_BAD_RESOURCE;
    }
    if (cq->users) {
        return CX_RESOURCE_BUSY;
    }
    if (cq->queued) {
        QTAILQ_REMOVE(&s->st->arms, cq, link);
    }
    plc_cq_admit(s, cq);
    plc_table_del(&s->st->cq, cq->id);
    plc_cq_free(cq);
    return CX_OK;
}

uint8_t plc_query_cq(PeerlaneCX *s, PlcCmd *c)
{
    PlcCq *cq = plc_table_own(&s->st->cq, c, cx_get(c->in, CX_ID_IN));
    uint8_t *ctx = c->out + CX_OUT_HEAD;

    if (!cq) {
        return CX_BAD_RESOURCE;
    }
    memcpy(ctx, cq->ctx, CX_CQC_SIZE);
    cx_set(ctx, CX_CQC_STATUS, cq->overrun ? 0x9 : 0);
    cx_set(ctx, CX_CQC_ST, cq->arm == PLC_CQ_ARMED ? 0x9 :
           cq->arm == PLC_CQ_SOLICITED ? 0x6 : 0xa);
    cx_set(ctx, CX_CQC_CI, cq->ci);
    cx_set(ctx, CX_CQC_PI, cq->pi);
    return CX_OK;
}

static void plc_cq_fire(PeerlaneCX *s, PlcCq *cq)
{
    uint8_t eqe[CX_EQE_SIZE] = { 0 };
    PlcEq *eq = plc_table_get(&s->st->eq, cq->eqn);

    if (!eq) {
        return;
    }
    /* Without a place for the event it stays armed, and waits for its turn */
    if (plc_eq_full(eq)) {
        if (!cq->denied) {
            cq->denied = true;
            QTAILQ_INSERT_TAIL(&eq->denied, cq, denied_link);
        }
        return;
    }
    plc_cq_admit(s, cq);
    cq->arm = PLC_CQ_IDLE;
    cq->late = false;
    plc_alarm_clear(&cq->alarm);
    stl_be_p(eqe + CX_EQE_COMP_CQN, cq->id);
    plc_eq_post(s, eq, CX_EVENT_COMP, eqe);
}

/* The index near @pi of which 24 bits were told */
static uint32_t plc_cq_index(uint32_t pi, uint32_t told)
{
    return pi - sextract32(pi - told, 0, 24);
}

/* @index, or what is far enough behind @pi, so that it does not come round */
static uint32_t plc_cq_far(uint32_t pi, uint32_t index)
{
    return (int32_t)(pi - index) > PLC_CQ_INDEX ? pi - PLC_CQ_INDEX : index;
}

void plc_cq_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t cmd, uint32_t cqn)
{
    PlcCq *cq = plc_table_get(&s->st->cq, cqn);

    if (!cq || cq->uar != uar) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: page %" PRIu32 " has no completion "
                      "queue %" PRIu32 "\n", plc_name(s), uar, cqn);
        return;
    }
    cq->arm = cmd & CX_CQ_DB_SOLICITED ? PLC_CQ_SOLICITED : PLC_CQ_ARMED;
    cq->arm_ci = plc_cq_index(cq->pi, cmd);
    plc_cq_enqueue(s, cq);
}

/* Is there what a queue was armed for at @arm_ci?  All indices have 32 bits. */
static bool plc_cq_due(uint32_t pi, uint32_t solicited, uint32_t arm_ci,
                       bool only_solicited)
{
    uint32_t fresh = pi - arm_ci;

    /* An index that is ahead of @pi waits for what is not there yet */
    return (int32_t)fresh > 0 && (!only_solicited || pi - solicited < fresh);
}

/* Does an arm fire?  What came before it was seen counts, too. */
static void plc_cq_arm_run(PeerlaneCX *s, PlcCq *cq)
{
    uint32_t fresh = cq->pi - cq->arm_ci;

    if (cq->arm == PLC_CQ_IDLE ||
        !plc_cq_due(cq->pi, cq->solicited, cq->arm_ci,
                    cq->arm == PLC_CQ_SOLICITED)) {
        cq->late = false;
        plc_alarm_clear(&cq->alarm);
        return;
    }
    if ((!cq->max_count && !cq->period) || cq->late ||
        (cq->max_count && fresh >= cq->max_count)) {
        plc_cq_fire(s, cq);
    } else if (cq->period && !cq->alarm.end) {
        plc_alarm_set(&cq->alarm, (int64_t)cq->period * SCALE_US);
    }
}

/* Look at the queue that has waited longest for a place that is there now */
bool plc_cq_denied_run(PeerlaneCX *s)
{
    PlcTable *t = &s->st->eq;

    for (uint32_t i = t->first; i < t->size; i++) {
        PlcEq *eq = plc_table_get(t, i);
        PlcCq *cq = eq ? QTAILQ_FIRST(&eq->denied) : NULL;

        if (cq && !plc_eq_full(eq)) {
            plc_cq_admit(s, cq);
            plc_cq_arm_run(s, cq);
            return true;
        }
    }
    return false;
}

/* What the engine has to do for a queue, outside of who posts to it */
void plc_cq_run(PeerlaneCX *s, PlcCq *cq)
{
    uint32_t id = cq->id;

    plc_cq_arm_run(s, cq);
    if (!s->old && cq->lost) {
        cq->lost = false;
        plc_srq_cq_lost(s, id);
        plc_qp_cq_lost(s, id);
        plc_eth_cq_lost(s, id);
    }
}

/* A completion has no place */
static void plc_cq_lose(PeerlaneCX *s, PlcCq *cq)
{
    cq->lost = true;
    plc_cq_enqueue(s, cq);
}

static void plc_cq_overrun(PeerlaneCX *s, PlcCq *cq)
{
    uint8_t eqe[CX_EQE_SIZE] = { 0 };
    PlcEq *eq = plc_eq_of(s, CX_EVENT_CQ_ERROR);

    cq->overrun = true;
    stl_be_p(eqe + CX_EQE_DATA, cq->id);
    eqe[CX_EQE_CQ_SYNDROME] = PLC_CQ_OVERRUN;
    if (eq) {
        plc_eq_post(s, eq, CX_EVENT_CQ_ERROR, eqe);
    }
}

/* Is there room for @n more? */
static bool plc_cq_room(PeerlaneCX *s, PlcCq *cq, uint8_t log_size, uint32_t n)
{
    uint8_t dbr[4];

    if (cq->pi - cq->ci + n <= 1u << log_size) {
        return true;
    }
    /* The record has 24 bits of an index that is not ahead of ours */
    if (plc_read(s, cq->dbr + CX_DBR_CQ_CI, dbr, 4)) {
        /* What it frees has been read; it is written after that */
        smp_mb_acquire();
        cq->ci = cq->pi - ((cq->pi - ldl_be_p(dbr)) & PLC_CQ_INDEX);
    }
    /* One that cannot be read frees no place */
    return cq->pi - cq->ci + n <= 1u << log_size;
}

static bool plc_cq_put(PeerlaneCX *s, PlcCq *cq, uint8_t *cqe, uint8_t op)
{
    uint64_t at = cq->collapsed ? 0 : cq->pi & ((1u << cq->log_size) - 1);

    cqe[CX_CQE_OP_OWN] = op | (cq->pi >> cq->log_size & 1);
    at = (at << cq->wide) * CX_CQE_SIZE + (cq->wide ? CX_CQE_SIZE : 0);
    if (!plc_buf_write(s, &cq->buf, at, cqe, CX_CQE_SIZE - 4)) {
        return false;
    }
    /* The last word, with the owner, is seen after the rest and the data */
    smp_wmb();
    if (!plc_buf_write(s, &cq->buf, at + CX_CQE_SIZE - 4,
                       cqe + CX_CQE_SIZE - 4, 4)) {
        return false;
    }
    cq->pi++;
    return true;
}

/* The last entry of the old queue says so; those before it are the driver's */
static uint8_t plc_cq_resize(PeerlaneCX *s, PlcCmd *c, PlcCq *cq)
{
    const uint8_t *ctx = c->in + CX_CREATE_CTX;
    unsigned log_size = cx_get(ctx, CX_CQC_LOG_SIZE);
    uint8_t cqe[CX_CQE_SIZE] = { 0 };
    PlcBuf buf = { 0 };
    uint8_t status;

    if (log_size > PLC_LOG_MAX_CQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    if (cx_get(c->in, CX_CQ_FIELDS) != (CX_CQ_RESIZE_SIZE |
                                        CX_CQ_RESIZE_OFFSET |
                                        CX_CQ_RESIZE_PAGE) ||
        cx_get(c->in, CX_CQ_UMEM_VALID) || cq->collapsed ||
        cx_get(ctx, CX_CQC_CQE_SZ) != cq->wide) {
        return CX_BAD_PARAM;
    }
    if (cq->overrun) {
        return CX_BAD_RES_STATE;
    }
    if (!plc_cq_room(s, cq, MIN(log_size, cq->log_size), 1)) {
        return CX_BAD_SIZE;
    }
    status = plc_buf_init(&buf, c, CX_CREATE_PAS,
                          cx_get(ctx, CX_CQC_LOG_PAGE),
                          cx_get(ctx, CX_CQC_PAGE_OFFSET),
                          (uint64_t)CX_CQE_SIZE << (log_size + cq->wide));
    if (status) {
        return status;
    }
    if (!plc_cq_put(s, cq, cqe, CX_CQE_RESIZED << 4)) {
        plc_buf_free(&buf);
        return CX_BAD_RES_STATE;
    }
    plc_buf_free(&cq->buf);
    cq->buf = buf;
    cq->log_size = log_size;
    cx_copy(cq->ctx, ctx, CX_CQC_LOG_SIZE);
    cx_copy(cq->ctx, ctx, CX_CQC_LOG_PAGE);
    cx_copy(cq->ctx, ctx, CX_CQC_PAGE_OFFSET);
    return CX_OK;
}

uint8_t plc_modify_cq(PeerlaneCX *s, PlcCmd *c)
{
    PlcCq *cq = plc_table_own(&s->st->cq, c, cx_get(c->in, CX_ID_IN));

    if (!cq) {
        return CX_BAD_RESOURCE;
    }
    switch (cx_get(c->in, CX_CMD_OP_MOD)) {
    case CX_CQ_MODIFY:
        if (cx_get(c->in, CX_CQ_FIELDS) != (CX_CQ_FIELD_PERIOD |
                                            CX_CQ_FIELD_COUNT)) {
            return CX_BAD_PARAM;
        }
        plc_cq_moderate(cq, c->in + CX_CREATE_CTX);
        /* What has waited for the old values does not wait for ever */
        cq->late = false;
        plc_alarm_clear(&cq->alarm);
        plc_cq_enqueue(s, cq);
        return CX_OK;
    case CX_CQ_RESIZE:
        return plc_cq_resize(s, c, cq);
    default:
        return CX_BAD_PARAM;
    }
}

/* @cqe has what belongs to its kind; the rest is filled in here */
void plc_cq_post(PeerlaneCX *s, uint32_t cqn, uint8_t *cqe, uint8_t opcode,
                 bool solicited)
{
    PlcCq *cq = plc_table_get(&s->st->cq, cqn);
    bool error = opcode == CX_CQE_REQUEST_ERROR || opcode == CX_CQE_RECV_ERROR;

    if (!cq) {
        return;
    }
    if (!cq->overrun && !cq->ignore_overrun &&
        !plc_cq_room(s, cq, cq->log_size, 1)) {
        plc_cq_overrun(s, cq);
    }
    if (s->old) {
        return;
    }
    if (cq->overrun) {
        plc_cq_lose(s, cq);
        return;
    }
    if (!error) {
        stq_be_p(cqe + CX_CQE_TIME, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    }
    trace_peerlane_cx_completion(plc_name(s), cqn, cq->pi, opcode,
                                 error ? cqe[CX_CQE_SYNDROME] : 0);
    if (!plc_cq_put(s, cq, cqe, opcode << 4 |
                    (solicited ? CX_CQE_SOLICITED : 0))) {
        return;
    }
    if (solicited || error) {
        cq->solicited = cq->pi;
    }
    cq->solicited = plc_cq_far(cq->pi, cq->solicited);
    cq->arm_ci = plc_cq_far(cq->pi, cq->arm_ci);
    plc_count(s, PLC_CNT_CQES, 1);
    plc_cq_arm_run(s, cq);
}
