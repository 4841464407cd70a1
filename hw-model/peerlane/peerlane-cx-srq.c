/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: shared queues of receives.
 *
 * Their entries are a list: each says which one comes next, and the driver puts
 * those that are done at its end.  A queue pair takes one for each message, and
 * keeps it until that is there.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

void plc_srq_free(PlcSrq *srq)
{
    plc_buf_free(&srq->buf);
    g_free(srq);
}

static uint8_t plc_create_srq(PeerlaneCX *s, PlcCmd *c, PlcSrq *srq,
                              uint8_t log_page, uint32_t offset)
{
    uint8_t status;

    status = plc_buf_init(&srq->buf, c, CX_CREATE_PAS, log_page, offset,
                          1ull << (srq->log_size + srq->log_stride));
    if (!status && !plc_table_add(&s->st->srq, c, srq, &srq->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_srq_free(srq);
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

    if (log_size > PLC_LOG_MAX_SRQ_SIZE ||
        1u << log_stride > PLC_MAX_RECV_WQE) {
        return CX_EXCEED_LIM;
    }
    if (cx_get(c->in, CX_XRQ_UMEM_VALID) || cx_get(ctx, CX_XRQC_WQ_SIG) ||
        cx_get(ctx, CX_XRQC_CONTINUED) || cx_get(ctx, CX_XRQC_CYCLIC) ||
        cx_get(ctx, CX_XRQC_DBR_UMEM) ||
        cx_get(ctx, CX_XRQC_LWM) > 1u << log_size) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_own(&s->st->pd, c, pd) ||
        !plc_table_own(&s->st->cq, c, cqn) ||
        !plc_table_own(&s->st->xrcd, c, xrcd)) {
        return CX_BAD_RESOURCE;
    }
    srq = g_new0(PlcSrq, 1);
    srq->pd = pd;
    srq->cqn = cqn;
    srq->xrcd = xrcd;
    srq->user_index = cx_get(ctx, CX_XRQC_USER_INDEX);
    srq->log_size = log_size;
    srq->log_stride = log_stride;
    srq->dbr = cx_get(ctx, CX_XRQC_DBR) & ~3ull;
    srq->limit = cx_get(ctx, CX_XRQC_LWM);
    memcpy(srq->ctx, ctx, CX_XRQC_SIZE);
    return plc_create_srq(s, c, srq, cx_get(ctx, CX_XRQC_LOG_PAGE),
                          cx_get(ctx, CX_XRQC_PAGE_OFFSET));
}

uint8_t plc_create_rmp(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_RMP_CTX, *wq = ctx + CX_RMPC_WQ;
    unsigned log_size = cx_get(wq, CX_WQ_LOG_SIZE);
    unsigned log_stride = cx_get(wq, CX_WQ_LOG_STRIDE);
    uint32_t pd = cx_get(wq, CX_WQ_PD);
    PlcSrq *srq;

    if (log_size > PLC_LOG_MAX_SRQ_SIZE ||
        1u << log_stride > PLC_MAX_RECV_WQE) {
        return CX_EXCEED_LIM;
    }
    if (cx_get(ctx, CX_RMPC_STATE) != CX_RMP_READY ||
        cx_get(ctx, CX_RMPC_CYCLIC) || cx_get(wq, CX_WQ_TYPE) ||
        cx_get(wq, CX_WQ_SIG) || cx_get(wq, CX_WQ_DBR_UMEM) ||
        cx_get(wq, CX_WQ_UMEM) || log_stride < 4 ||
        cx_get(wq, CX_WQ_LWM) > 1u << log_size) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_own(&s->st->pd, c, pd)) {
        return CX_BAD_RESOURCE;
    }
    srq = g_new0(PlcSrq, 1);
    srq->pd = pd;
    srq->log_size = log_size;
    srq->log_stride = log_stride;
    srq->dbr = cx_get(wq, CX_WQ_DBR) & ~3ull;
    srq->limit = cx_get(wq, CX_WQ_LWM);
    memcpy(srq->ctx, ctx, CX_RMP_SIZE);
    return plc_create_srq(s, c, srq, cx_get(wq, CX_WQ_LOG_PAGE),
                          cx_get(wq, CX_WQ_PAGE_OFFSET));
}

/* Both kinds are in one table, but each has its commands */
static PlcSrq *plc_srq_of(PeerlaneCX *s, PlcCmd *c)
{
    PlcSrq *srq = plc_table_own(&s->st->srq, c, cx_get(c->in, CX_ID_IN));
    uint16_t opcode = cx_get(c->in, CX_CMD_OPCODE);
    bool xrc = opcode == CX_OP_DESTROY_XRC_SRQ ||
               opcode == CX_OP_QUERY_XRC_SRQ || opcode == CX_OP_ARM_XRC_SRQ;

    return srq && xrc == !!srq->cqn ? srq : NULL;
}

uint8_t plc_destroy_srq(PeerlaneCX *s, PlcCmd *c)
{
    PlcSrq *srq = plc_srq_of(s, c);
    PlcCq *cq;

    if (!srq) {
        return CX_BAD_RESOURCE;
    }
    if (srq->users) {
        return CX_RESOURCE_BUSY;
    }
    cq = plc_table_get(&s->st->cq, srq->cqn);
    if (cq) {
        cq->users--;
    }
    plc_table_del(&s->st->srq, srq->id);
    plc_srq_free(srq);
    return CX_OK;
}

uint8_t plc_query_srq(PeerlaneCX *s, PlcCmd *c)
{
    PlcSrq *srq = plc_srq_of(s, c);
    uint8_t *ctx;

    if (!srq) {
        return CX_BAD_RESOURCE;
    }
    if (srq->cqn) {
        ctx = c->out + CX_OUT_HEAD;
        memcpy(ctx, srq->ctx, CX_XRQC_SIZE);
        cx_set(ctx, CX_XRQC_STATE, srq->failed ? CX_XRQ_ERROR : CX_XRQ_READY);
        cx_set(ctx, CX_XRQC_LWM, srq->limit);
    } else {
        ctx = c->out + CX_RMP_CTX;
        memcpy(ctx, srq->ctx, CX_RMP_SIZE);
        cx_set(ctx, CX_RMPC_STATE, srq->failed ? CX_RMP_ERROR : CX_RMP_READY);
        cx_set(ctx + CX_RMPC_WQ, CX_WQ_LWM, srq->limit);
    }
    return CX_OK;
}

static enum plc_taken plc_srq_fail(PeerlaneCX *s, PlcSrq *srq)
{
    if (!s->old && !srq->failed) {
        srq->failed = true;
        plc_event_qp(s, CX_EVENT_SRQ_ERROR, srq->id);
    }
    return PLC_TAKE_OPERATION;
}

/* Those of XRC belong to no queue pair: a message names one of its domain */
PlcSrq *plc_srq_named(PeerlaneCX *s, PlcQp *qp, uint32_t srqn)
{
    PlcSrq *srq = plc_table_get(&s->st->srq, srqn);

    return qp->st == CX_ST_XRC && srq && srq->cqn && srq->xrcd == qp->xrcd ?
           srq : NULL;
}

void plc_srq_cq_lost(PeerlaneCX *s, uint32_t cqn)
{
    PlcTable *t = &s->st->srq;

    for (uint32_t i = t->first; i < t->size && !s->old; i++) {
        PlcSrq *srq = plc_table_get(t, i);

        if (srq && srq->cqn == cqn) {
            plc_srq_fail(s, srq);
        }
    }
}

/* How many receives are there?  False: that cannot be */
static bool plc_srq_posted(PeerlaneCX *s, PlcSrq *srq, uint32_t *posted)
{
    uint8_t word[4];
    bool ok = plc_read(s, srq->dbr + CX_DBR_RECV, word, sizeof(word));

    /* What it tells of is read after it */
    smp_rmb();
    *posted = (ldl_be_p(word) - srq->taken) & 0xffff;
    return ok && *posted <= 1u << srq->log_size;
}

/* There are @posted: is that what the driver wants to be told? */
static void plc_srq_look(PeerlaneCX *s, PlcSrq *srq, uint32_t posted)
{
    if (posted < srq->limit) {
        srq->limit = 0;
        plc_event_qp(s, CX_EVENT_SRQ_LIMIT, srq->id);
    }
}

static uint8_t plc_srq_arm(PeerlaneCX *s, PlcSrq *srq, uint16_t limit)
{
    uint32_t posted;

    if (limit > 1u << srq->log_size) {
        return CX_BAD_PARAM;
    }
    if (srq->failed) {
        return CX_BAD_RES_STATE;
    }
    srq->limit = limit;
    if (!plc_srq_posted(s, srq, &posted)) {
        plc_srq_fail(s, srq);
    } else {
        plc_srq_look(s, srq, posted);
    }
    return CX_OK;
}

uint8_t plc_arm_xrc_srq(PeerlaneCX *s, PlcCmd *c)
{
    PlcSrq *srq = plc_srq_of(s, c);

    if (!srq) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_CMD_OP_MOD) != CX_ARM_XRC) {
        return CX_BAD_PARAM;
    }
    return plc_srq_arm(s, srq, cx_get(c->in, CX_XRQ_ARM_LWM));
}

uint8_t plc_modify_rmp(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_RMP_CTX;
    PlcSrq *srq = plc_srq_of(s, c);

    if (!srq) {
        return CX_BAD_RESOURCE;
    }
    /* It is ready, or has failed for good */
    if (cx_get(c->in, CX_RMP_STATE) != CX_RMP_READY ||
        cx_get(ctx, CX_RMPC_STATE) != CX_RMP_READY ||
        cx_get(c->in, CX_RMP_MASK_HI) ||
        cx_get(c->in, CX_RMP_MASK_LO) != CX_RMP_MASK_LWM) {
        return CX_BAD_PARAM;
    }
    return plc_srq_arm(s, srq, cx_get(ctx + CX_RMPC_WQ, CX_WQ_LWM));
}

/* Take the entry at the head of the list, into @wqe; its number in *@index */
enum plc_taken plc_srq_take(PeerlaneCX *s, PlcSrq *srq, uint8_t *wqe,
                            uint16_t *index)
{
    uint32_t len = 1u << srq->log_stride, posted;
    uint16_t next;

    if (srq->failed || !plc_srq_posted(s, srq, &posted)) {
        return plc_srq_fail(s, srq);
    }
    if (!posted) {
        return PLC_TAKE_LATER;
    }
    if (!plc_buf_read(s, &srq->buf, (uint64_t)srq->next * len, wqe, len)) {
        return plc_srq_fail(s, srq);
    }
    next = lduw_be_p(wqe + CX_SRQ_NEXT);
    if (next >= 1u << srq->log_size) {
        return plc_srq_fail(s, srq);
    }
    *index = srq->next;
    srq->next = next;
    srq->taken++;
    plc_srq_look(s, srq, posted - 1);
    return PLC_TAKEN;
}
