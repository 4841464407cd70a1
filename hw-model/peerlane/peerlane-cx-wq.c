/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: queues of frames, and what spreads frames over them, as
 * the driver makes and changes them.  What they do is in -eth.c.
 */
#include "qemu/osdep.h"
#include "peerlane-cx-eth.h"
#include "trace.h"

static PlcCq *plc_queue_cq(PeerlaneCX *s, const PlcQueue *q)
{
    return plc_table_get(&s->st->cq, q->cqn);
}

void plc_queue_free(PlcQueue *q)
{
    plc_buf_free(&q->buf);
    if (q->dbr_umem) {
        q->dbr_umem->users--;
    }
    g_free(q->as);
    g_free(q);
}

/* Both kinds have a ring of entries and a doorbell record */
static uint8_t plc_queue_wq(PeerlaneCX *s, PlcCmd *c, PlcQueue *q)
{
    const uint8_t *wq = q->ctx + CX_WQ_CTX;
    uint64_t size;
    uint8_t status;

    q->pd = cx_get(wq, CX_WQ_PD);
    q->log_size = cx_get(wq, CX_WQ_LOG_SIZE);
    q->log_stride = cx_get(wq, CX_WQ_LOG_STRIDE);
    q->dbr = cx_get(wq, CX_WQ_DBR) & ~7ull;
    size = 1ull << (q->log_size + q->log_stride);
    if (cx_get(wq, CX_WQ_TYPE) != CX_WQ_CYCLIC || cx_get(wq, CX_WQ_SIG)) {
        return CX_BAD_PARAM;
    }
    if (q->log_size > PLC_LOG_MAX_WQ_SIZE) {
        return CX_EXCEED_LIM;
    }
    /* The driver makes queues of no domain, to which no key permits anything */
    if (((q->pd || c->uid) && !plc_table_own(&s->st->pd, c, q->pd)) ||
        !plc_table_own(&s->st->cq, c, q->cqn)) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(wq, CX_WQ_DBR_UMEM)) {
        status = plc_umem_dbr(s, c, cx_get(wq, CX_WQ_DBR_UMEM_ID),
                              cx_get(wq, CX_WQ_DBR), &q->dbr_umem, &q->dbr);
        if (status) {
            return status;
        }
    }
    if (cx_get(wq, CX_WQ_UMEM)) {
        return plc_buf_umem(s, &q->buf, c, cx_get(wq, CX_WQ_UMEM_ID),
                            cx_get(wq, CX_WQ_UMEM_OFFSET), size, false);
    }
    return plc_buf_init(&q->buf, c, CX_ETH_PAS, cx_get(wq, CX_WQ_LOG_PAGE),
                        cx_get(wq, CX_WQ_PAGE_OFFSET), size);
}

static uint8_t plc_sq_parse(PeerlaneCX *s, PlcCmd *c, PlcQueue *q)
{
    const uint8_t *ctx = q->ctx;
    uint32_t tises = cx_get(ctx, CX_SQC_TIS_NUM);

    if (!plc_user_sends_raw(s, c) ||
        cx_get(ctx, CX_QUEUE_STATE) != CX_QUEUE_RST ||
        cx_get(ctx, CX_QUEUE_HAIRPIN) || cx_get(ctx, CX_SQC_FRE) ||
        cx_get(ctx, CX_SQC_MPWQE) || cx_get(ctx, CX_SQC_REG_UMR) ||
        cx_get(ctx, CX_SQC_SWP) || cx_get(ctx, CX_SQC_NON_WIRE) ||
        cx_get(ctx, CX_SQC_RATE) || tises > 1 ||
        cx_get(ctx + CX_WQ_CTX, CX_WQ_LOG_STRIDE) != ctz32(CX_WQE_BB)) {
        return CX_BAD_PARAM;
    }
    q->uar = cx_get(ctx + CX_WQ_CTX, CX_WQ_UAR);
    q->tisn = tises ? cx_get(ctx, CX_SQC_TISN) : 0;
    if (!plc_table_own(&s->st->uar, c, q->uar) ||
        (tises && !plc_table_own(&s->st->eth->tis, c, q->tisn))) {
        return CX_BAD_RESOURCE;
    }
    return plc_queue_wq(s, c, q);
}

static uint8_t plc_rq_parse(PeerlaneCX *s, PlcCmd *c, PlcQueue *q)
{
    const uint8_t *ctx = q->ctx;
    uint32_t stride = cx_get(ctx + CX_WQ_CTX, CX_WQ_LOG_STRIDE);

    if (cx_get(ctx, CX_QUEUE_STATE) != CX_QUEUE_RST ||
        cx_get(ctx, CX_QUEUE_HAIRPIN) || cx_get(ctx, CX_RQC_DELAY_DROP) ||
        cx_get(ctx, CX_RQC_SCATTER_FCS) || cx_get(ctx, CX_RQC_MEM_TYPE) ||
        stride < ctz32(CX_WQE_SEG)) {
        return CX_BAD_PARAM;
    }
    if (stride > PLC_LOG_MAX_RQ_STRIDE) {
        return CX_EXCEED_LIM;
    }
    q->keep_vlan = cx_get(ctx, CX_RQC_NO_VLAN_STRIP);
    q->as->counter_set = cx_get(ctx, CX_RQC_COUNTER_SET);
    if (plc_qc_bad(s, c, q->as->counter_set)) {
        return CX_BAD_RESOURCE;
    }
    return plc_queue_wq(s, c, q);
}

static uint8_t plc_create_queue(PeerlaneCX *s, PlcCmd *c, PlcTable *t,
                                uint8_t (*parse)(PeerlaneCX *s, PlcCmd *c,
                                                 PlcQueue *q))
{
    PlcQueue *q = g_new0(PlcQueue, 1);
    uint8_t status;

    memcpy(q->ctx, c->in + CX_ETH_CTX, CX_SQC_SIZE);
    q->as = g_new0(PlcQp, 1);
    q->cqn = cx_get(q->ctx, CX_QUEUE_CQN);
    q->user_index = cx_get(q->ctx, CX_QUEUE_USER_INDEX);
    status = parse(s, c, q);
    if (!status && !plc_table_add(t, c, q, &q->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_queue_free(q);
        return status;
    }
    q->as->cx = s;
    q->as->id = q->id;
    q->as->pd = q->pd;
    plc_queue_cq(s, q)->users++;
    cx_set(c->out, CX_ID_OUT, q->id);
    return CX_OK;
}

static void plc_queue_leave(PeerlaneCX *s, PlcQueue *q)
{
    if (q->queued) {
        QTAILQ_REMOVE(&s->st->eth->ready, q, link);
        q->queued = false;
    }
}

static void plc_destroy_queue(PeerlaneCX *s, PlcTable *t, PlcQueue *q)
{
    plc_queue_leave(s, q);
    plc_queue_cq(s, q)->users--;
    plc_table_del(t, q->id);
    plc_queue_free(q);
}

/* From the state that the driver believes it to be in */
static uint8_t plc_queue_move(PeerlaneCX *s, PlcCmd *c, PlcQueue *q)
{
    uint8_t to = cx_get(c->in + CX_ETH_CTX, CX_QUEUE_STATE);

    if (to != CX_QUEUE_RST && to != CX_QUEUE_RDY && to != CX_QUEUE_ERR) {
        return CX_BAD_PARAM;
    }
    if (cx_get(c->in, CX_QUEUE_STATE_NOW) != q->state ||
        (q->state == CX_QUEUE_ERR && to == CX_QUEUE_RDY)) {
        return CX_BAD_RES_STATE;
    }
    if (to == CX_QUEUE_RST) {
        plc_queue_leave(s, q);
        q->head = 0;
        q->rung = false;
    }
    q->state = to;
    if (to != CX_QUEUE_RST) {
        plc_queue_schedule(s, q);
    }
    return CX_OK;
}

/* The context as it is now */
static uint8_t plc_query_queue(PlcCmd *c, const PlcQueue *q)
{
    uint8_t *ctx = c->out + CX_ETH_CTX;

    if (!q) {
        return CX_BAD_RESOURCE;
    }
    memcpy(ctx, q->ctx, CX_SQC_SIZE);
    cx_set(ctx, CX_QUEUE_STATE, q->state);
    return CX_OK;
}

uint8_t plc_create_sq(PeerlaneCX *s, PlcCmd *c)
{
    return plc_create_queue(s, c, &s->st->eth->sq, plc_sq_parse);
}

uint8_t plc_modify_sq(PeerlaneCX *s, PlcCmd *c)
{
    PlcQueue *q = plc_table_own(&s->st->eth->sq, c, cx_get(c->in, CX_ID_IN));

    if (!q) {
        return CX_BAD_RESOURCE;
    }
    /* There is no pacing, and there are no groups of queues */
    if (cx_get(c->in, CX_MODIFY_MASK_HI) || cx_get(c->in, CX_MODIFY_MASK_LO)) {
        return CX_BAD_PARAM;
    }
    return plc_queue_move(s, c, q);
}

uint8_t plc_destroy_sq(PeerlaneCX *s, PlcCmd *c)
{
    PlcQueue *q = plc_table_own(&s->st->eth->sq, c, cx_get(c->in, CX_ID_IN));

    if (!q) {
        return CX_BAD_RESOURCE;
    }
    plc_destroy_queue(s, &s->st->eth->sq, q);
    return CX_OK;
}

uint8_t plc_query_sq(PeerlaneCX *s, PlcCmd *c)
{
    return plc_query_queue(c, plc_table_own(&s->st->eth->sq, c,
                                            cx_get(c->in, CX_ID_IN)));
}

uint8_t plc_create_rq(PeerlaneCX *s, PlcCmd *c)
{
    return plc_create_queue(s, c, &s->st->eth->rq, plc_rq_parse);
}

uint8_t plc_modify_rq(PeerlaneCX *s, PlcCmd *c)
{
    PlcQueue *q = plc_table_own(&s->st->eth->rq, c, cx_get(c->in, CX_ID_IN));
    const uint8_t *ctx = c->in + CX_ETH_CTX;
    uint32_t mask = cx_get(c->in, CX_MODIFY_MASK_LO);
    uint8_t status;

    if (!q) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_MODIFY_MASK_HI) ||
        mask & ~(CX_RQ_MODIFY_VSD | CX_RQ_MODIFY_COUNTER_SET)) {
        return CX_BAD_PARAM;
    }
    if (mask & CX_RQ_MODIFY_COUNTER_SET &&
        plc_qc_bad(s, c, cx_get(ctx, CX_RQC_COUNTER_SET))) {
        return CX_BAD_RESOURCE;
    }
    status = plc_queue_move(s, c, q);
    if (status) {
        return status;
    }
    if (mask & CX_RQ_MODIFY_VSD) {
        cx_copy(q->ctx, ctx, CX_RQC_NO_VLAN_STRIP);
        q->keep_vlan = cx_get(ctx, CX_RQC_NO_VLAN_STRIP);
    }
    if (mask & CX_RQ_MODIFY_COUNTER_SET) {
        cx_copy(q->ctx, ctx, CX_RQC_COUNTER_SET);
        q->as->counter_set = cx_get(ctx, CX_RQC_COUNTER_SET);
    }
    return CX_OK;
}

/* Does anything lead to the receive queue? */
static bool plc_rq_named(PeerlaneCX *s, uint32_t rqn)
{
    PlcTable *t = &s->st->eth->rqt;

    for (uint32_t i = t->first; i < t->size; i++) {
        PlcRqt *rqt = plc_table_get(t, i);

        for (unsigned n = 0; rqt && n < rqt->size; n++) {
            if (rqt->rqn[n] == rqn) {
                return true;
            }
        }
    }
    t = &s->st->eth->tir;
    for (uint32_t i = t->first; i < t->size; i++) {
        PlcTir *tir = plc_table_get(t, i);

        if (tir && cx_get(tir->ctx, CX_TIRC_TYPE) == CX_TIR_DIRECT &&
            cx_get(tir->ctx, CX_TIRC_RQN) == rqn) {
            return true;
        }
    }
    return false;
}

uint8_t plc_destroy_rq(PeerlaneCX *s, PlcCmd *c)
{
    PlcQueue *q = plc_table_own(&s->st->eth->rq, c, cx_get(c->in, CX_ID_IN));

    if (!q) {
        return CX_BAD_RESOURCE;
    }
    if (plc_rq_named(s, q->id)) {
        return CX_RESOURCE_BUSY;
    }
    plc_destroy_queue(s, &s->st->eth->rq, q);
    return CX_OK;
}

uint8_t plc_query_rq(PeerlaneCX *s, PlcCmd *c)
{
    return plc_query_queue(c, plc_table_own(&s->st->eth->rq, c,
                                            cx_get(c->in, CX_ID_IN)));
}

/*
 * Tables of receive queues
 */

void plc_rqt_free(PlcRqt *rqt)
{
    g_free(rqt->rqn);
    g_free(rqt);
}

/* The list of @n queues that came with the command */
static uint8_t plc_rqt_list(PeerlaneCX *s, PlcCmd *c, PlcRqt *rqt, uint32_t n)
{
    const uint8_t *list = c->in + CX_ETH_CTX + CX_RQTC_LIST;

    if (!n || n > rqt->max) {
        return CX_BAD_PARAM;
    }
    if ((c->in_len - CX_ETH_CTX - CX_RQTC_LIST) / 4 < n) {
        return CX_BAD_INPUT_LEN;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!plc_table_own(&s->st->eth->rq, c,
                           ldl_be_p(list + 4 * i) & 0xffffff)) {
            return CX_BAD_RESOURCE;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        rqt->rqn[i] = ldl_be_p(list + 4 * i) & 0xffffff;
    }
    rqt->size = n;
    return CX_OK;
}

static bool plc_rqt_bad(const uint8_t *ctx)
{
    return cx_get(ctx, CX_RQTC_TYPE) || cx_get(ctx, CX_RQTC_VHCA);
}

uint8_t plc_create_rqt(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_ETH_CTX;
    uint32_t max = cx_get(ctx, CX_RQTC_MAX);
    PlcRqt *rqt;
    uint8_t status;

    if (max > 1u << PLC_LOG_MAX_RQT_SIZE) {
        return CX_EXCEED_LIM;
    }
    if (plc_rqt_bad(ctx)) {
        return CX_BAD_PARAM;
    }
    rqt = g_new0(PlcRqt, 1);
    rqt->max = max;
    rqt->rqn = g_new0(uint32_t, MAX(max, 1));
    status = plc_rqt_list(s, c, rqt, cx_get(ctx, CX_RQTC_ACTUAL));
    if (!status && !plc_table_add(&s->st->eth->rqt, c, rqt, &rqt->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_rqt_free(rqt);
        return status;
    }
    cx_set(c->out, CX_ID_OUT, rqt->id);
    return CX_OK;
}

uint8_t plc_modify_rqt(PeerlaneCX *s, PlcCmd *c)
{
    PlcRqt *rqt = plc_table_own(&s->st->eth->rqt, c, cx_get(c->in, CX_ID_IN));
    const uint8_t *ctx = c->in + CX_ETH_CTX;

    if (!rqt) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_MODIFY_MASK_HI) ||
        cx_get(c->in, CX_MODIFY_MASK_LO) != 1 || plc_rqt_bad(ctx)) {
        return CX_BAD_PARAM;
    }
    return plc_rqt_list(s, c, rqt, cx_get(ctx, CX_RQTC_ACTUAL));
}

uint8_t plc_destroy_rqt(PeerlaneCX *s, PlcCmd *c)
{
    PlcRqt *rqt = plc_table_own(&s->st->eth->rqt, c, cx_get(c->in, CX_ID_IN));
    PlcTable *t = &s->st->eth->tir;

    if (!rqt) {
        return CX_BAD_RESOURCE;
    }
    for (uint32_t i = t->first; i < t->size; i++) {
        PlcTir *tir = plc_table_get(t, i);

        if (tir && cx_get(tir->ctx, CX_TIRC_TYPE) == CX_TIR_INDIRECT &&
            cx_get(tir->ctx, CX_TIRC_RQTN) == rqt->id) {
            return CX_RESOURCE_BUSY;
        }
    }
    plc_table_del(&s->st->eth->rqt, rqt->id);
    plc_rqt_free(rqt);
    return CX_OK;
}

uint8_t plc_query_rqt(PeerlaneCX *s, PlcCmd *c)
{
    PlcRqt *rqt = plc_table_own(&s->st->eth->rqt, c, cx_get(c->in, CX_ID_IN));
    uint8_t *ctx = c->out + CX_ETH_CTX;

    if (!rqt) {
        return CX_BAD_RESOURCE;
    }
    if ((c->out_len - CX_ETH_CTX - CX_RQTC_LIST) / 4 < rqt->size) {
        return CX_BAD_OUTPUT_LEN;
    }
    cx_set(ctx, CX_RQTC_MAX, rqt->max);
    cx_set(ctx, CX_RQTC_ACTUAL, rqt->size);
    for (unsigned i = 0; i < rqt->size; i++) {
        stl_be_p(ctx + CX_RQTC_LIST + 4 * i, rqt->rqn[i]);
    }
    return CX_OK;
}

/*
 * Ends of receiving (TIR) and of sending (TIS)
 */

/* IPsec's number may be selected; it is in no frame that is looked into */
static bool plc_hash_bad(const uint8_t *ctx)
{
    return cx_get(ctx, CX_TIRC_HASH) > CX_HASH_TOEPLITZ ||
           extract32(cx_get(ctx, CX_TIRC_FIELDS), 5, 25);
}

uint8_t plc_create_tir(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_ETH_CTX;
    uint32_t type = cx_get(ctx, CX_TIRC_TYPE);
    PlcTir *tir;

    if (type > CX_TIR_INDIRECT || cx_get(ctx, CX_TIRC_TLS) ||
        cx_get(ctx, CX_TIRC_MERGE) || cx_get(ctx, CX_TIRC_TUNNELED) ||
        plc_hash_bad(ctx)) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_own(&s->st->td, c, cx_get(ctx, CX_TIRC_TD)) ||
        !(type == CX_TIR_DIRECT ?
          plc_table_own(&s->st->eth->rq, c, cx_get(ctx, CX_TIRC_RQN)) :
          plc_table_own(&s->st->eth->rqt, c, cx_get(ctx, CX_TIRC_RQTN)))) {
        return CX_BAD_RESOURCE;
    }
    tir = g_new0(PlcTir, 1);
    tir->td = cx_get(ctx, CX_TIRC_TD);
    memcpy(tir->ctx, ctx, CX_TIRC_SIZE);
    if (!plc_table_add(&s->st->eth->tir, c, tir, &tir->id)) {
        g_free(tir);
        return CX_NO_RESOURCES;
    }
    cx_set(c->out, CX_ID_OUT, tir->id);
    return CX_OK;
}

uint8_t plc_modify_tir(PeerlaneCX *s, PlcCmd *c)
{
    PlcTir *tir = plc_table_own(&s->st->eth->tir, c, cx_get(c->in, CX_ID_IN));
    const uint8_t *ctx = c->in + CX_ETH_CTX;
    uint32_t mask = cx_get(c->in, CX_MODIFY_MASK_LO);

    if (!tir) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_MODIFY_MASK_HI) ||
        mask & ~(CX_TIR_MODIFY_HASH | CX_TIR_MODIFY_SELF_LB |
                 CX_TIR_MODIFY_MERGE) ||
        (mask & CX_TIR_MODIFY_MERGE && cx_get(ctx, CX_TIRC_MERGE)) ||
        (mask & CX_TIR_MODIFY_HASH && plc_hash_bad(ctx))) {
        return CX_BAD_PARAM;
    }
    if (mask & CX_TIR_MODIFY_HASH) {
        cx_copy(tir->ctx, ctx, CX_TIRC_SYMMETRIC);
        cx_copy(tir->ctx, ctx, CX_TIRC_HASH);
        cx_copy(tir->ctx, ctx, CX_TIRC_FIELDS);
        cx_copy(tir->ctx, ctx, CX_TIRC_INNER_FIELDS);
        memcpy(tir->ctx + CX_TIRC_KEY, ctx + CX_TIRC_KEY, CX_TIRC_KEY_SIZE);
    }
    if (mask & CX_TIR_MODIFY_SELF_LB) {
        cx_copy(tir->ctx, ctx, CX_TIRC_SELF_LB);
    }
    return CX_OK;
}

uint8_t plc_destroy_tir(PeerlaneCX *s, PlcCmd *c)
{
    PlcTir *tir = plc_table_own(&s->st->eth->tir, c, cx_get(c->in, CX_ID_IN));

    if (!tir) {
        return CX_BAD_RESOURCE;
    }
    if (plc_flow_names_tir(s, tir->id)) {
        return CX_RESOURCE_BUSY;
    }
    plc_table_del(&s->st->eth->tir, tir->id);
    g_free(tir);
    return CX_OK;
}

uint8_t plc_query_tir(PeerlaneCX *s, PlcCmd *c)
{
    PlcTir *tir = plc_table_own(&s->st->eth->tir, c, cx_get(c->in, CX_ID_IN));

    if (!tir) {
        return CX_BAD_RESOURCE;
    }
    memcpy(c->out + CX_ETH_CTX, tir->ctx, CX_TIRC_SIZE);
    return CX_OK;
}

uint8_t plc_create_tis(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_ETH_CTX;
    PlcTis *tis;

    if (cx_get(ctx, CX_TISC_TLS)) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_own(&s->st->td, c, cx_get(ctx, CX_TISC_TD))) {
        return CX_BAD_RESOURCE;
    }
    tis = g_new0(PlcTis, 1);
    tis->td = cx_get(ctx, CX_TISC_TD);
    memcpy(tis->ctx, ctx, CX_TISC_SIZE);
    if (!plc_table_add(&s->st->eth->tis, c, tis, &tis->id)) {
        g_free(tis);
        return CX_NO_RESOURCES;
    }
    cx_set(c->out, CX_ID_OUT, tis->id);
    return CX_OK;
}

/* The priority is kept: there is one queue on the wire */
uint8_t plc_modify_tis(PeerlaneCX *s, PlcCmd *c)
{
    PlcTis *tis = plc_table_own(&s->st->eth->tis, c, cx_get(c->in, CX_ID_IN));

    if (!tis) {
        return CX_BAD_RESOURCE;
    }
    if (cx_get(c->in, CX_MODIFY_MASK_HI) ||
        cx_get(c->in, CX_MODIFY_MASK_LO) & ~CX_TIS_MODIFY_PRIO) {
        return CX_BAD_PARAM;
    }
    if (cx_get(c->in, CX_MODIFY_MASK_LO) & CX_TIS_MODIFY_PRIO) {
        cx_copy(tis->ctx, c->in + CX_ETH_CTX, CX_TISC_PRIO);
    }
    return CX_OK;
}

uint8_t plc_destroy_tis(PeerlaneCX *s, PlcCmd *c)
{
    PlcTis *tis = plc_table_own(&s->st->eth->tis, c, cx_get(c->in, CX_ID_IN));
    PlcTable *t = &s->st->eth->sq;

    if (!tis) {
        return CX_BAD_RESOURCE;
    }
    for (uint32_t i = t->first; i < t->size; i++) {
        PlcQueue *q = plc_table_get(t, i);

        if (q && q->tisn == tis->id) {
            return CX_RESOURCE_BUSY;
        }
    }
    plc_table_del(&s->st->eth->tis, tis->id);
    g_free(tis);
    return CX_OK;
}

uint8_t plc_query_tis(PeerlaneCX *s, PlcCmd *c)
{
    PlcTis *tis = plc_table_own(&s->st->eth->tis, c, cx_get(c->in, CX_ID_IN));

    if (!tis) {
        return CX_BAD_RESOURCE;
    }
    memcpy(c->out + CX_ETH_CTX, tis->ctx, CX_TISC_SIZE);
    return CX_OK;
}
