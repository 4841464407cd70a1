/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: queue pairs, as the driver makes and changes them.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"
#include "trace.h"

void plc_qp_free(PlcQp *qp)
{
    plc_req_reset(qp);
    timer_free(qp->wait_alarm.timer);
    timer_free(qp->ack_alarm.timer);
    timer_free(qp->fault_alarm.timer);
    plc_buf_free(&qp->buf);
    if (qp->dbr_umem) {
        qp->dbr_umem->users--;
    }
    g_free(qp);
}

/* Its turn comes, unless it belongs to what was before a reset */
void plc_qp_schedule(PlcQp *qp)
{
    PeerlaneCX *s = qp->cx;

    if (!qp->queued && plc_table_get(&s->st->qp, qp->id) == qp) {
        qp->queued = true;
        QTAILQ_INSERT_TAIL(&s->st->ready, qp, link);
    }
}

static void plc_qp_timer(void *opaque)
{
    PlcQp *qp = opaque;

    plc_timer_ended(qp->cx, PLC_TIMER_WAIT, qp->id);
}

static void plc_qp_ack_timer(void *opaque)
{
    PlcQp *qp = opaque;

    plc_timer_ended(qp->cx, PLC_TIMER_ACK, qp->id);
}

static void plc_qp_fault_timer(void *opaque)
{
    PlcQp *qp = opaque;

    plc_timer_ended(qp->cx, PLC_TIMER_FAULT, qp->id);
}

void plc_qp_timer_ended(PeerlaneCX *s, uint32_t id, PlcTimer what)
{
    PlcQp *qp = plc_table_get(&s->st->qp, id);

    if (!qp || !plc_alarm_over(what == PLC_TIMER_ACK ? &qp->ack_alarm :
                               what == PLC_TIMER_FAULT ? &qp->fault_alarm :
                               &qp->wait_alarm)) {
        return;
    }
    if (what == PLC_TIMER_ACK) {
        qp->req.timed_out = true;
    } else if (what == PLC_TIMER_WAIT) {
        qp->waiting = false;
    }
    plc_qp_schedule(qp);
}

void plc_qp_wait(PlcQp *qp, int64_t ns)
{
    qp->waiting = true;
    plc_alarm_set(&qp->wait_alarm, ns);
}

static void plc_qp_state(PlcQp *qp, uint8_t state)
{
    qp->state = state;
    qp->waiting = false;
    plc_alarm_clear(&qp->wait_alarm);
    cx_set(qp->ctx, CX_QPC_STATE, state);
    trace_peerlane_cx_qp_state(plc_name(qp->cx), qp->id, state);
}

/* All that is posted is flushed, and all that will be */
void plc_qp_to_error(PlcQp *qp)
{
    if (qp->state != CX_QP_ERR &&
        (qp->srq || (qp->st == CX_ST_XRC && qp->resp.taken))) {
        qp->leaves = true;
        qp->held = qp->resp.taken ? qp->resp.index : -1;
        qp->held_srqn = qp->resp.srqn;
    }
    plc_qp_state(qp, CX_QP_ERR);
    plc_req_reset(qp);
    plc_resp_reset(qp);
    qp->rung = true;
    plc_qp_schedule(qp);
}

/*
 * An entry that was to be sent has failed.  Without acknowledges only what is
 * posted to send is flushed then, and receiving goes on.
 */
void plc_qp_send_failed(PlcQp *qp)
{
    if (plc_qp_reliable(qp) || qp->st == CX_ST_REG_UMR) {
        plc_qp_to_error(qp);
        return;
    }
    plc_qp_state(qp, CX_QP_SQER);
    plc_req_cancel(qp);
    plc_qp_schedule(qp);
}

static void plc_qp_to_reset(PlcQp *qp)
{
    plc_qp_state(qp, CX_QP_RST);
    plc_req_reset(qp);
    plc_resp_reset(qp);
    qp->rung = false;
    qp->leaves = false;
    qp->sq_head = 0;
    qp->sq_fetch = 0;
    qp->sq_tail = 0;
    qp->rq_head = 0;
    if (qp->queued) {
        QTAILQ_REMOVE(&qp->cx->st->ready, qp, link);
        qp->queued = false;
    }
}

/* In which service it sends and receives; negative: it does not */
int plc_qp_service(const PlcQp *qp)
{
    switch (qp->st) {
    case CX_ST_RC:
        return CX_SERVICE_RC;
    case CX_ST_UC:
        return CX_SERVICE_UC;
    case CX_ST_UD:
    case CX_ST_QP1:
        return CX_SERVICE_UD;
    case CX_ST_XRC:
        return CX_SERVICE_XRC;
    default:
        return -1;
    }
}

/* Does it send to whom each entry names? */
bool plc_qp_datagrams(const PlcQp *qp)
{
    return qp->st == CX_ST_UD || qp->st == CX_ST_QP1;
}

/* Are its packets acknowledged? */
bool plc_qp_reliable(const PlcQp *qp)
{
    return qp->st == CX_ST_RC || qp->st == CX_ST_XRC;
}

/* Has it a completion queue for receives?  One of XRC's is the shared queue's. */
static bool plc_qp_receives(const PlcQp *qp)
{
    return qp->rq_type != CX_RQ_NONE && qp->st != CX_ST_XRC;
}

static PlcCq *plc_qp_cq(PeerlaneCX *s, uint32_t cqn)
{
    return plc_table_get(&s->st->cq, cqn);
}

/* What is not modelled is refused, not made to look as if it worked */
static uint8_t plc_qp_parse(PeerlaneCX *s, PlcCmd *c, PlcQp *qp)
{
    const uint8_t *ctx = qp->ctx;
    uint64_t rq = 0, sq = 0;
    uint8_t status;

    qp->st = cx_get(ctx, CX_QPC_ST);
    qp->rq_type = cx_get(ctx, CX_QPC_RQ_TYPE);
    qp->pd = cx_get(ctx, CX_QPC_PD);
    qp->uar = cx_get(ctx, CX_QPC_UAR);
    qp->user_index = cx_get(ctx, CX_QPC_USER_INDEX);
    qp->cqn_send = cx_get(ctx, CX_QPC_CQN_SND);
    qp->cqn_recv = cx_get(ctx, CX_QPC_CQN_RCV);
    qp->has_sq = !cx_get(ctx, CX_QPC_NO_SQ);
    qp->log_sq = cx_get(ctx, CX_QPC_LOG_SQ_SIZE);
    qp->log_rq = cx_get(ctx, CX_QPC_LOG_RQ_SIZE);
    qp->rq_stride = CX_WQE_SEG << cx_get(ctx, CX_QPC_LOG_RQ_STRIDE);
    qp->umr = cx_get(ctx, CX_QPC_FRE);
    qp->dbr = cx_get(ctx, CX_QPC_DBR) & ~3ull;
    qp->sqpn = qp->st == CX_ST_QP1 ? CX_GSI_QPN : cx_get(ctx, CX_QPC_DETH_SQPN);

    if (plc_qp_service(qp) < 0 && qp->st != CX_ST_QP0 &&
        qp->st != CX_ST_REG_UMR) {
        return CX_BAD_PARAM;
    }
    if ((qp->rq_type != CX_RQ_REGULAR && qp->rq_type != CX_RQ_SHARED &&
         qp->rq_type != CX_RQ_NONE) ||
        (qp->st == CX_ST_XRC && qp->rq_type == CX_RQ_REGULAR) ||
        cx_get(ctx, CX_QPC_WQ_SIG) || cx_get(ctx, CX_QPC_OFFLOAD) ||
        cx_get(ctx, CX_QPC_CS_REQ) || cx_get(ctx, CX_QPC_CS_RES) ||
        (qp->sqpn && (qp->sqpn != CX_GSI_QPN || !plc_qp_datagrams(qp))) ||
        cx_get(c->in, CX_QP_QPC_EXT)) {
        return CX_BAD_PARAM;
    }
    /* Keys of others, and management, are the driver's */
    if (c->uid && (plc_qp_service(qp) < 0 || qp->sqpn || qp->umr)) {
        return CX_BAD_PARAM;
    }
    /* The sizes of both queues have 4 bits: PLC_LOG_MAX_QP_SIZE at most */
    if (qp->rq_type == CX_RQ_REGULAR && qp->rq_stride > PLC_MAX_RECV_WQE) {
        return CX_EXCEED_LIM;
    }
    /* A UMR queue pair belongs to no domain; who does not send has no doorbell */
    if ((qp->st != CX_ST_REG_UMR && !plc_table_own(&s->st->pd, c, qp->pd)) ||
        (qp->has_sq && (!plc_table_own(&s->st->uar, c, qp->uar) ||
                        !plc_table_own(&s->st->cq, c, qp->cqn_send))) ||
        (plc_qp_receives(qp) && !plc_table_own(&s->st->cq, c, qp->cqn_recv))) {
        return CX_BAD_RESOURCE;
    }
    if (qp->st == CX_ST_XRC) {
        /* Messages name shared receives of this domain */
        qp->xrcd = cx_get(ctx, CX_QPC_XRCD);
        if (!plc_table_own(&s->st->xrcd, c, qp->xrcd)) {
            return CX_BAD_RESOURCE;
        }
    } else if (qp->rq_type == CX_RQ_SHARED) {
        qp->srq = plc_table_own(&s->st->srq, c, cx_get(ctx, CX_QPC_SRQN));
        if (!qp->srq || qp->srq->cqn) {
            return CX_BAD_RESOURCE;
        }
    }
    if (qp->rq_type == CX_RQ_REGULAR) {
        rq = (uint64_t)qp->rq_stride << qp->log_rq;
    }
    if (qp->has_sq) {
        sq = (uint64_t)CX_WQE_BB << qp->log_sq;
    }
    qp->sq_at = rq;
    if (cx_get(ctx, CX_QPC_DBR_UMEM)) {
        status = plc_umem_dbr(s, c, cx_get(ctx, CX_QPC_DBR_UMEM_ID),
                              cx_get(ctx, CX_QPC_DBR), &qp->dbr_umem,
                              &qp->dbr);
        if (status) {
            return status;
        }
    }
    if (cx_get(c->in, CX_QP_UMEM_VALID)) {
        return plc_buf_umem(s, &qp->buf, c, cx_get(c->in, CX_QP_UMEM_ID),
                            cx_get(c->in, CX_QP_UMEM_OFFSET), rq + sq, false);
    }
    return plc_buf_init(&qp->buf, c, CX_CREATE_PAS,
                        cx_get(ctx, CX_QPC_LOG_PAGE),
                        cx_get(ctx, CX_QPC_PAGE_OFFSET), rq + sq);
}

uint8_t plc_create_qp(PeerlaneCX *s, PlcCmd *c)
{
    PlcQp *qp = g_new0(PlcQp, 1);
    uint8_t status;

    memcpy(qp->ctx, c->in + CX_CREATE_QPC, CX_QPC_SIZE);
    qp->cx = s;
    QTAILQ_INIT(&qp->req.works);
    status = plc_qp_parse(s, c, qp);
    if (!status && qp->st == CX_ST_QP1 && s->st->gsi) {
        status = CX_RESOURCE_BUSY;
    }
    if (!status && !plc_table_add(&s->st->qp, c, qp, &qp->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_qp_free(qp);
        return status;
    }
    qp->wait_alarm.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, plc_qp_timer, qp);
    qp->ack_alarm.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, plc_qp_ack_timer,
                                       qp);
    qp->fault_alarm.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL,
                                         plc_qp_fault_timer, qp);
    if (qp->st == CX_ST_QP1) {
        s->st->gsi = qp;
    }
    if (qp->has_sq) {
        plc_qp_cq(s, qp->cqn_send)->users++;
    }
    if (plc_qp_receives(qp)) {
        plc_qp_cq(s, qp->cqn_recv)->users++;
    }
    if (qp->srq) {
        qp->srq->users++;
    }
    plc_qp_state(qp, CX_QP_RST);
    cx_set(c->out, CX_ID_OUT, qp->id);
    return CX_OK;
}

uint8_t plc_destroy_qp(PeerlaneCX *s, PlcCmd *c)
{
    PlcQp *qp = plc_table_own(&s->st->qp, c, cx_get(c->in, CX_ID_IN));

    if (!qp) {
        return CX_BAD_RESOURCE;
    }
    plc_qp_to_reset(qp);
    if (s->st->gsi == qp) {
        s->st->gsi = NULL;
    }
    if (qp->has_sq) {
        plc_qp_cq(s, qp->cqn_send)->users--;
    }
    if (plc_qp_receives(qp)) {
        plc_qp_cq(s, qp->cqn_recv)->users--;
    }
    if (qp->srq) {
        qp->srq->users--;
    }
    plc_table_del(&s->st->qp, qp->id);
    plc_qp_free(qp);
    return CX_OK;
}

uint8_t plc_query_qp(PeerlaneCX *s, PlcCmd *c)
{
    PlcQp *qp = plc_table_own(&s->st->qp, c, cx_get(c->in, CX_ID_IN));

    if (!qp) {
        return CX_BAD_RESOURCE;
    }
    memcpy(c->out + CX_CREATE_QPC, qp->ctx, CX_QPC_SIZE);
    return CX_OK;
}

/* A completion for one of these was lost: all of them fail */
void plc_qp_cq_lost(PeerlaneCX *s, uint32_t cqn)
{
    PlcTable *t = &s->st->qp;

    for (uint32_t i = t->first; i < t->size && !s->old; i++) {
        PlcQp *qp = plc_table_get(t, i);

        if (qp && qp->state != CX_QP_RST && qp->state != CX_QP_ERR &&
            ((qp->has_sq && qp->cqn_send == cqn) ||
             (plc_qp_receives(qp) && qp->cqn_recv == cqn))) {
            plc_event_qp(s, CX_EVENT_WQ_FATAL, qp->id);
            plc_qp_to_error(qp);
        }
    }
}

typedef struct PlcMove {
    uint16_t opcode;
    uint8_t from;
    uint8_t to;
} PlcMove;

static const PlcMove plc_moves[] = {
    { CX_OP_RST2INIT_QP, CX_QP_RST, CX_QP_INIT },
    { CX_OP_INIT2INIT_QP, CX_QP_INIT, CX_QP_INIT },
    { CX_OP_INIT2RTR_QP, CX_QP_INIT, CX_QP_RTR },
    { CX_OP_RTR2RTS_QP, CX_QP_RTR, CX_QP_RTS },
    { CX_OP_RTS2RTS_QP, CX_QP_RTS, CX_QP_RTS },
    { CX_OP_SQERR2RTS_QP, CX_QP_SQER, CX_QP_RTS },
};

/* The way by Ethernet: all but timeout, key and port */
static void plc_path_copy(uint8_t *to, const uint8_t *from)
{
    memcpy(to + CX_ADS_WAY, from + CX_ADS_WAY, CX_ADS_WAY_END - CX_ADS_WAY);
    memcpy(to + CX_ADS_MAC, from + CX_ADS_MAC, 6);
}

/* The other end will be talked to */
static void plc_qp_meet(PlcQp *qp)
{
    if (qp->cx->ethernet) {
        plc_path_of_qp(qp->cx, qp);
    } else {
        plc_net_meet(qp->cx, qp);
    }
}

/* Which fields a transition takes over */
static void plc_qp_take(PlcQp *qp, const uint8_t *in, uint16_t opcode,
                        uint32_t opt)
{
    uint8_t *path = qp->ctx + CX_QPC_ADS;
    const uint8_t *in_path = in + CX_QPC_ADS;
    bool first = opcode == CX_OP_RST2INIT_QP;

    if (first || opt & CX_OPT_RRE) {
        cx_copy(qp->ctx, in, CX_QPC_RRE);
    }
    if (first || opt & CX_OPT_RWE) {
        cx_copy(qp->ctx, in, CX_QPC_RWE);
    }
    if (first || opt & CX_OPT_RAE) {
        cx_copy(qp->ctx, in, CX_QPC_RAE);
        cx_copy(qp->ctx, in, CX_QPC_ATOMIC_MODE);
    }
    if (first || opt & CX_OPT_PKEY_INDEX) {
        cx_copy(path, in_path, CX_ADS_PKEY_INDEX);
    }
    if (first) {
        cx_copy(path, in_path, CX_ADS_PORT);
    }
    if (first || opt & CX_OPT_COUNTER_SET) {
        cx_copy(qp->ctx, in, CX_QPC_COUNTER_SET);
    }
    if (first || opt & CX_OPT_Q_KEY) {
        cx_copy(qp->ctx, in, CX_QPC_Q_KEY);
    }
    if (opcode == CX_OP_INIT2RTR_QP) {
        cx_copy(qp->ctx, in, CX_QPC_MTU);
        cx_copy(qp->ctx, in, CX_QPC_LOG_MSG_MAX);
        cx_copy(qp->ctx, in, CX_QPC_REMOTE_QPN);
        cx_copy(qp->ctx, in, CX_QPC_LOG_RRA);
        cx_copy(qp->ctx, in, CX_QPC_NEXT_RCV_PSN);
        cx_copy(path, in_path, CX_ADS_RLID);
        plc_path_copy(path, in_path);
    }
    if (opcode == CX_OP_INIT2RTR_QP || opt & CX_OPT_RNR_TIMEOUT) {
        cx_copy(qp->ctx, in, CX_QPC_MIN_RNR_NAK);
    }
    if (opcode == CX_OP_RTR2RTS_QP) {
        cx_copy(qp->ctx, in, CX_QPC_LOG_SRA);
        cx_copy(qp->ctx, in, CX_QPC_RETRY_COUNT);
        cx_copy(qp->ctx, in, CX_QPC_RNR_RETRY);
        cx_copy(qp->ctx, in, CX_QPC_NEXT_SEND_PSN);
        cx_copy(path, in_path, CX_ADS_ACK_TIMEOUT);
    }
    qp->remote_read = cx_get(qp->ctx, CX_QPC_RRE);
    qp->remote_write = cx_get(qp->ctx, CX_QPC_RWE);
    qp->remote_atomic = cx_get(qp->ctx, CX_QPC_RAE);
    qp->counter_set = cx_get(qp->ctx, CX_QPC_COUNTER_SET);
    qp->qkey = cx_get(qp->ctx, CX_QPC_Q_KEY);
    qp->remote_qpn = cx_get(qp->ctx, CX_QPC_REMOTE_QPN);
    if (!qp->cx->ethernet) {
        qp->rlid = cx_get(path, CX_ADS_RLID);
    }
    qp->min_rnr = cx_get(qp->ctx, CX_QPC_MIN_RNR_NAK);
    qp->retry_count = cx_get(qp->ctx, CX_QPC_RETRY_COUNT);
    qp->rnr_retry = cx_get(qp->ctx, CX_QPC_RNR_RETRY);
    qp->ack_timeout = cx_get(path, CX_ADS_ACK_TIMEOUT);
    qp->mtu = 128 << cx_get(qp->ctx, CX_QPC_MTU);
    qp->rd_atomic = 1 << cx_get(qp->ctx, CX_QPC_LOG_SRA);
    if (opcode == CX_OP_INIT2RTR_QP) {
        plc_resp_reset(qp);
        qp->established = false;
        if (!plc_qp_datagrams(qp)) {
            plc_qp_meet(qp);
        }
    }
    if (opcode == CX_OP_RTR2RTS_QP) {
        plc_req_reset(qp);
    }
    if (opcode == CX_OP_SQERR2RTS_QP) {
        /* What was not flushed is sent, and perhaps no doorbell tells of it */
        qp->sq_fetch = qp->sq_head;
        qp->rung = true;
    }
}

/* Does the transition name a set of counters that is not there for it? */
static bool plc_counter_set_bad(PeerlaneCX *s, PlcCmd *c, uint16_t opcode)
{
    if (opcode != CX_OP_RST2INIT_QP &&
        !(cx_get(c->in, CX_QP_OPT_MASK) & CX_OPT_COUNTER_SET)) {
        return false;
    }
    return plc_qc_bad(s, c, cx_get(c->in + CX_CREATE_QPC, CX_QPC_COUNTER_SET));
}

/* 256 to 4096 bytes */
static bool plc_mtu_good(const uint8_t *in)
{
    uint32_t mtu = cx_get(in + CX_CREATE_QPC, CX_QPC_MTU);

    return mtu >= 1 && mtu <= 5;
}

uint8_t plc_modify_qp(PeerlaneCX *s, PlcCmd *c)
{
    PlcQp *qp = plc_table_own(&s->st->qp, c, cx_get(c->in, CX_ID_IN));
    uint16_t opcode = cx_get(c->in, CX_CMD_OPCODE);

    if (!qp) {
        return CX_BAD_RESOURCE;
    }
    if (opcode == CX_OP_2RST_QP) {
        plc_qp_to_reset(qp);
        return CX_OK;
    }
    if (opcode == CX_OP_2ERR_QP) {
        if (qp->state == CX_QP_RST) {
            return CX_BAD_QP_STATE;
        }
        plc_qp_to_error(qp);
        return CX_OK;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(plc_moves); i++) {
        if (plc_moves[i].opcode == opcode) {
            if (qp->state != plc_moves[i].from) {
                return CX_BAD_QP_STATE;
            }
            if (opcode == CX_OP_INIT2RTR_QP && plc_qp_service(qp) >= 0 &&
                !plc_mtu_good(c->in)) {
                return CX_BAD_PARAM;
            }
            if (plc_counter_set_bad(s, c, opcode)) {
                return CX_BAD_RESOURCE;
            }
            plc_qp_take(qp, c->in + CX_CREATE_QPC, opcode,
                        cx_get(c->in, CX_QP_OPT_MASK));
            /* Who stays in RTS goes on waiting for what it waits for */
            if (qp->state != plc_moves[i].to) {
                plc_qp_state(qp, plc_moves[i].to);
            }
            if (qp->state == CX_QP_RTS) {
                plc_qp_schedule(qp);
            }
            return CX_OK;
        }
    }
    return CX_BAD_OP;
}
