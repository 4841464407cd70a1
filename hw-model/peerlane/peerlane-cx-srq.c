/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: shared receive queues.
 *
 * The driver makes two for its own use when it starts, and refers to one from
 * every queue pair that has no receive queue.  Nothing is received by them.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

static uint8_t plc_create_srq(PeerlaneCX *s, PlcCmd *c, PlcSrq *srq,
                              uint8_t log_page, uint32_t offset, uint64_t size)
{
    PlcBuf buf = { 0 };
    uint8_t status;

    /* The list of pages is checked like any other, and not kept */
    status = plc_buf_init(&buf, c, CX_CREATE_PAS, log_page, offset, size);
    plc_buf_free(&buf);
    if (!status && !plc_table_add(&s->st->srq, srq, &srq->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        g_free(srq);
        return status;
    }
    if (srq->cqn) {
        ((PlcCq *)plc_table_get(&s->st->cq, srq->cqn))->users++;
    }
    cx_set(c->out, CX_ID_OUT, srq->id);
    return CX_OK;
}

uint8_t plc_create_xrc_srq(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_CREATE_CTX;
    unsigned log_size = cx_get(ctx, CX_XRQC_LOG_SIZE);
    unsigned log_stride = cx_get(ctx, CX_XRQC_LOG_STRIDE) + 4;
    uint32_t cqn = cx_get(ctx, CX_XRQC_CQN);
    uint32_t xrcd = cx_get(ctx, CX_XRQC_XRCD);
    uint32_t pd = cx_get(ctx, CX_XRQC_PD);
    PlcSrq *srq;

    if (log_size > PLC_LOG_MAX_SRQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    if (cx_get(c->in, CX_XRQ_UMEM_VALID)) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_get(&s->st->pd, pd) || !plc_table_get(&s->st->cq, cqn) ||
        !plc_table_get(&s->st->xrcd, xrcd)) {
        return CX_BAD_RESOURCE;
    }
    srq = g_new0(PlcSrq, 1);
    srq->pd = pd;
    srq->cqn = cqn;
    srq->xrcd = xrcd;
    return plc_create_srq(s, c, srq, cx_get(ctx, CX_XRQC_LOG_PAGE),
                          cx_get(ctx, CX_XRQC_PAGE_OFFSET),
                          1ull << (log_size + log_stride));
}

uint8_t plc_create_rmp(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *wq = c->in + CX_RMP_CTX + CX_RMPC_WQ;
    unsigned log_size = cx_get(wq, CX_WQ_LOG_SIZE);
    unsigned log_stride = cx_get(wq, CX_WQ_LOG_STRIDE);
    uint32_t pd = cx_get(wq, CX_WQ_PD);
    PlcSrq *srq;

    if (log_size > PLC_LOG_MAX_SRQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    if (log_stride < 4 || log_stride > 9) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_get(&s->st->pd, pd)) {
        return CX_BAD_RESOURCE;
    }
    srq = g_new0(PlcSrq, 1);
    srq->pd = pd;
    return plc_create_srq(s, c, srq, cx_get(wq, CX_WQ_LOG_PAGE),
                          cx_get(wq, CX_WQ_PAGE_OFFSET),
                          1ull << (log_size + log_stride));
}

/* Both kinds are in one table, but each has its command */
uint8_t plc_destroy_srq(PeerlaneCX *s, PlcCmd *c)
{
    PlcSrq *srq = plc_table_get(&s->st->srq, cx_get(c->in, CX_ID_IN));
    bool xrc = cx_get(c->in, CX_CMD_OPCODE) == CX_OP_DESTROY_XRC_SRQ;
    PlcCq *cq;

    if (!srq || xrc != !!srq->cqn) {
        return CX_BAD_RESOURCE;
    }
    cq = plc_table_get(&s->st->cq, srq->cqn);
    if (cq) {
        cq->users--;
    }
    plc_table_del(&s->st->srq, srq->id);
    g_free(srq);
    return CX_OK;
}
