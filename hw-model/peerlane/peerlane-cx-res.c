/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: things that are no more than an id, and counters.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

/* What is in a table in place of a thing */
static char plc_taken;

static uint8_t plc_alloc(PlcTable *t, PlcCmd *c, uint32_t field)
{
    uint32_t id;

    if (!plc_table_add(t, c, &plc_taken, &id)) {
        return CX_NO_RESOURCES;
    }
    cx_set(c->out, field, id);
    return CX_OK;
}

static uint8_t plc_dealloc(PlcTable *t, PlcCmd *c, uint32_t id, bool busy)
{
    if (!plc_table_own(t, c, id)) {
        return CX_BAD_RESOURCE;
    }
    if (busy) {
        return CX_RESOURCE_BUSY;
    }
    plc_table_del(t, id);
    return CX_OK;
}

uint8_t plc_alloc_pd(PeerlaneCX *s, PlcCmd *c)
{
    return plc_alloc(&s->st->pd, c, CX_ID_OUT);
}

uint8_t plc_dealloc_pd(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_ID_IN);

    return plc_dealloc(&s->st->pd, c, id,
                       plc_used(&s->st->mkey, PlcMkey, pd, id) ||
                       plc_used(&s->st->srq, PlcSrq, pd, id) ||
                       plc_eth_uses_pd(s->st->eth, id) ||
                       plc_used(&s->st->qp, PlcQp, pd, id));
}

uint8_t plc_alloc_uar(PeerlaneCX *s, PlcCmd *c)
{
    return plc_alloc(&s->st->uar, c, CX_ID_OUT);
}

/* The driver may do so before what was made with the page */
uint8_t plc_dealloc_uar(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_ID_IN);
    uint8_t status = plc_dealloc(&s->st->uar, c, id, false);

    if (status == CX_OK) {
        plc_deafen(&s->st->eq, PlcEq, id);
        plc_deafen(&s->st->cq, PlcCq, id);
        plc_deafen(&s->st->qp, PlcQp, id);
        plc_eth_deafen(s->st->eth, id);
    }
    return status;
}

uint8_t plc_alloc_xrcd(PeerlaneCX *s, PlcCmd *c)
{
    return plc_alloc(&s->st->xrcd, c, CX_ID_OUT);
}

uint8_t plc_dealloc_xrcd(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_ID_IN);

    return plc_dealloc(&s->st->xrcd, c, id,
                       id && (plc_used(&s->st->srq, PlcSrq, xrcd, id) ||
                              plc_used(&s->st->qp, PlcQp, xrcd, id)));
}

uint8_t plc_alloc_td(PeerlaneCX *s, PlcCmd *c)
{
    return plc_alloc(&s->st->td, c, CX_ID_OUT);
}

uint8_t plc_dealloc_td(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_ID_IN);

    return plc_dealloc(&s->st->td, c, id, plc_eth_uses_td(s->st->eth, id));
}

uint8_t plc_alloc_qc(PeerlaneCX *s, PlcCmd *c)
{
    PlcQc *qc = g_new0(PlcQc, 1);
    uint32_t id;

    if (!plc_table_add(&s->st->qc, c, qc, &id)) {
        g_free(qc);
        return CX_NO_RESOURCES;
    }
    cx_set(c->out, CX_QC_OUT, id);
    return CX_OK;
}

bool plc_qc_bad(PeerlaneCX *s, const PlcCmd *c, uint32_t id)
{
    return id && !plc_table_own(&s->st->qc, c, id);
}

/*
 * The driver may do so before it has moved a queue pair to another set.  Who
 * refers to it counts nothing from then on, also when the id is given again.
 */
uint8_t plc_dealloc_qc(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_QC_IN);
    PlcQc *qc = plc_table_own(&s->st->qc, c, id);

    if (!qc) {
        return CX_BAD_RESOURCE;
    }
    for (uint32_t i = 0; i < s->st->qp.size; i++) {
        PlcQp *qp = plc_table_get(&s->st->qp, i);

        if (qp && qp->counter_set == id) {
            qp->counter_set = 0;
            cx_set(qp->ctx, CX_QPC_COUNTER_SET, 0);
        }
    }
    plc_eth_uncount(s->st->eth, id);
    plc_table_del(&s->st->qc, id);
    g_free(qc);
    return CX_OK;
}

uint8_t plc_query_qc(PeerlaneCX *s, PlcCmd *c)
{
    PlcQc *qc = plc_table_own(&s->st->qc, c, cx_get(c->in, CX_QC_QUERY));

    if (!qc) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_QC_OTHER) || cx_get(c->in, CX_QC_ALL)) {
        return CX_BAD_PARAM;
    }
    for (unsigned i = CX_OUT_HEAD / 4; i < ARRAY_SIZE(qc->count); i++) {
        stl_be_p(c->out + 4 * i, qc->count[i]);
    }
    if (cx_get(c->in, CX_QC_CLEAR)) {
        memset(qc->count, 0, sizeof(qc->count));
    }
    return CX_OK;
}

void plc_qc_count(PlcQp *qp, unsigned counter)
{
    PlcQc *qc = plc_table_get(&qp->cx->st->qc, qp->counter_set);

    if (qc && counter) {
        qc->count[counter / 4]++;
    }
}
