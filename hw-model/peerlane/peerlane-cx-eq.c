/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: event queues.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "peerlane-cx.h"
#include "trace.h"

void plc_eq_free(PlcEq *eq)
{
    plc_buf_free(&eq->buf);
    g_free(eq);
}

uint8_t plc_create_eq(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_CREATE_CTX;
    uint32_t intr = cx_get(ctx, CX_EQC_INTR);
    uint32_t uar = cx_get(ctx, CX_EQC_UAR);
    unsigned log_size = cx_get(ctx, CX_EQC_LOG_SIZE);
    PlcEq *eq;
    uint8_t status;

    if (log_size > PLC_LOG_MAX_EQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    if (intr >= s->vectors) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_get(&s->st->uar, uar)) {
        return CX_BAD_RESOURCE;
    }
    eq = g_new0(PlcEq, 1);
    QTAILQ_INIT(&eq->denied);
    eq->uar = uar;
    eq->intr = intr;
    eq->log_size = log_size;
    for (unsigned i = 0; i < ARRAY_SIZE(eq->events); i++) {
        eq->events[i] = ldq_be_p(c->in + CX_EQ_BITMASK + 8 * i);
    }
    status = plc_buf_init(&eq->buf, c, CX_CREATE_PAS,
                          cx_get(ctx, CX_EQC_LOG_PAGE),
                          cx_get(ctx, CX_EQC_PAGE_OFFSET),
                          (uint64_t)CX_EQE_SIZE << log_size);
    if (!status && !plc_table_add(&s->st->eq, c, eq, &eq->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_eq_free(eq);
        return status;
    }
    cx_set(c->out, CX_EQN_OUT, eq->id);
    return CX_OK;
}

uint8_t plc_destroy_eq(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_EQN_IN);
    PlcEq *eq = plc_table_get(&s->st->eq, id);

    if (!eq) {
        return CX_BAD_RESOURCE;
    }
    for (uint32_t i = 0; i < s->st->cq.size; i++) {
        PlcCq *cq = plc_table_get(&s->st->cq, i);

        if (cq && cq->eqn == id) {
            return CX_RESOURCE_BUSY;
        }
    }
    plc_table_del(&s->st->eq, id);
    plc_eq_free(eq);
    return CX_OK;
}

uint8_t plc_query_eq(PeerlaneCX *s, PlcCmd *c)
{
    PlcEq *eq = plc_table_get(&s->st->eq, cx_get(c->in, CX_EQN_IN));
    uint8_t *ctx = c->out + CX_OUT_HEAD;

    if (!eq) {
        return CX_BAD_RESOURCE;
    }
    cx_set(ctx, CX_EQC_LOG_SIZE, eq->log_size);
    cx_set(ctx, CX_EQC_UAR, eq->uar);
    cx_set(ctx, CX_EQC_INTR, eq->intr);
    cx_set(ctx, CX_EQC_ST, eq->armed ? 0x9 : 0xa);
    cx_set(ctx, CX_EQC_CI, eq->ci);
    cx_set(ctx, CX_EQC_PI, eq->pi);
    return CX_OK;
}

PlcEq *plc_eq_of(PeerlaneCX *s, unsigned event)
{
    PlcTable *t = &s->st->eq;

    /* The first of four words is of the lowest events */
    for (uint32_t i = t->first; i < t->size; i++) {
        PlcEq *eq = plc_table_get(t, i);

        if (eq && eq->events[event / 64] >> (event % 64) & 1) {
            return eq;
        }
    }
    return NULL;
}

static void plc_eq_fire(PeerlaneCX *s, PlcEq *eq)
{
    eq->armed = false;
    plc_interrupt(s, eq->intr);
}

bool plc_eq_full(const PlcEq *eq)
{
    return eq->pi - eq->ci >= 1u << eq->log_size;
}

/* @eqe has its data; the rest is filled in here */
void plc_eq_post(PeerlaneCX *s, PlcEq *eq, unsigned event, const uint8_t *data)
{
    uint8_t eqe[CX_EQE_SIZE];
    uint64_t at = (uint64_t)(eq->pi & ((1u << eq->log_size) - 1)) * CX_EQE_SIZE;

    if (plc_eq_full(eq)) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: event queue %" PRIu32 " is full; "
                      "event 0x%x is lost\n", plc_name(s), eq->id, event);
        return;
    }
    memcpy(eqe, data, CX_EQE_SIZE);
    eqe[CX_EQE_TYPE] = event;
    eqe[CX_EQE_OWNER] = eq->pi >> eq->log_size & 1;
    trace_peerlane_cx_event(plc_name(s), eq->id, event, eq->pi);
    if (!plc_buf_write(s, &eq->buf, at, eqe, CX_EQE_SIZE - 4)) {
        return;
    }
    /* The last word, with the owner, is seen after the rest */
    smp_wmb();
    if (!plc_buf_write(s, &eq->buf, at + CX_EQE_SIZE - 4,
                       eqe + CX_EQE_SIZE - 4, 4)) {
        return;
    }
    eq->pi++;
    plc_count(s, PLC_CNT_EQES, 1);
    if (eq->armed) {
        plc_eq_fire(s, eq);
    }
}

void plc_event_qp(PeerlaneCX *s, unsigned event, uint32_t qpn)
{
    uint8_t eqe[CX_EQE_SIZE] = { 0 };
    PlcEq *eq = plc_eq_of(s, event);

    if (eq) {
        stl_be_p(eqe + CX_EQE_QPN, qpn);
        plc_eq_post(s, eq, event, eqe);
    }
}

void plc_eq_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t val, bool arm)
{
    PlcEq *eq = plc_table_get(&s->st->eq, val >> 24);
    uint32_t behind;

    if (!eq || eq->uar != uar) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: page %" PRIu32 " has no event "
                      "queue %" PRIu32 "\n", plc_name(s), uar, val >> 24);
        return;
    }
    /* The low 24 bits of an index that is not behind what was written */
    behind = (eq->pi - val) & 0xffffff;
    if (behind > 1u << eq->log_size) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: event queue %" PRIu32 " cannot be "
                      "read that far\n", plc_name(s), eq->id);
        return;
    }
    eq->ci = eq->pi - behind;
    if (arm) {
        eq->look = true;
    }
}

void plc_eq_run_arms(PeerlaneCX *s)
{
    PlcTable *t = &s->st->eq;

    for (uint32_t i = t->first; i < t->size && !s->old; i++) {
        PlcEq *eq = plc_table_get(t, i);

        if (eq && eq->look) {
            eq->look = false;
            eq->armed = true;
            if (eq->pi != eq->ci) {
                plc_eq_fire(s, eq);
            }
        }
    }
}
