/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the entries of a queue pair's queues, and what completes
 * them.  How messages get to the other end is in -req.c and -resp.c.
 *
 * Keys are looked up again for each packet, since commands come in between.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "peerlane-cx.h"
#include "trace.h"

/*
 * What a completion with each syndrome says and counts; 0: nothing.  The
 * specification has where the vendor's syndromes are from.
 */
static const struct {
    uint8_t requester_vendor;
    uint8_t responder_vendor;
    uint8_t requester;
    uint8_t responder;
} plc_errors[] = {
    [CX_SYND_LOCAL_LENGTH] = {
        0, 0, CX_QC_REQ_LOCAL_LENGTH, CX_QC_RESP_LOCAL_LENGTH },
    [CX_SYND_LOCAL_QP] = {
        0x68, 0xd6, CX_QC_REQ_LOCAL_QP, CX_QC_RESP_LOCAL_QP },
    [CX_SYND_LOCAL_PROTECTION] = {
        0x51, 0x32, CX_QC_REQ_PROTECTION, CX_QC_RESP_PROTECTION },
    [CX_SYND_FLUSHED] = {
        0xf9, 0xf9, CX_QC_REQ_FLUSHED, CX_QC_RESP_FLUSHED },
    [CX_SYND_MW_BIND] = { 0, 0, CX_QC_REQ_MW_BIND },
    [CX_SYND_BAD_RESPONSE] = { 0, 0, CX_QC_REQ_BAD_RESPONSE },
    [CX_SYND_REMOTE_REQUEST] = { 0x8a, 0, CX_QC_REQ_REMOTE_REQUEST },
    [CX_SYND_REMOTE_ACCESS] = { 0x88, 0, CX_QC_REQ_REMOTE_ACCESS },
    [CX_SYND_REMOTE_OPERATION] = { 0x89, 0, CX_QC_REQ_REMOTE_OPERATION },
    [CX_SYND_RETRY] = { 0x81, 0, CX_QC_REQ_RETRIES_EXCEEDED },
    [CX_SYND_RNR] = { 0, 0, CX_QC_REQ_RNR_EXCEEDED },
};

void plc_qp_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t qpn)
{
    PlcQp *qp = plc_table_get(&s->st->qp, qpn);

    if (!qp || qp->uar != uar || !qp->has_sq) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: page %" PRIu32 " has no queue "
                      "pair %" PRIu32 " to send with\n", plc_name(s), uar, qpn);
        return;
    }
    qp->rung = true;
    if (!qp->waiting || qp->state == CX_QP_ERR) {
        plc_qp_schedule(qp);
    }
}

static uint32_t plc_dbr(PeerlaneCX *s, PlcQp *qp, unsigned at, bool *ok)
{
    uint8_t word[4];

    *ok = plc_read(s, qp->dbr + at, word, sizeof(word));
    /* What it tells of is read after it */
    smp_rmb();
    return ldl_be_p(word) & 0xffff;
}

/* A piece of the send queue, which may go round its end */
static bool plc_sq_read(PeerlaneCX *s, PlcQp *qp, uint32_t index, uint8_t *p,
                        uint32_t len)
{
    while (len) {
        uint32_t at = index & ((1u << qp->log_sq) - 1);
        uint32_t n = MIN(len, CX_WQE_BB);

        if (!plc_buf_read(s, &qp->buf, qp->sq_at + (uint64_t)at * CX_WQE_BB, p,
                          n)) {
            return false;
        }
        index++;
        p += n;
        len -= n;
    }
    return true;
}

/* How many blocks an entry of @ds segments takes */
static uint32_t plc_blocks(uint32_t ds)
{
    return DIV_ROUND_UP(MAX(ds, 1), CX_WQE_BB / CX_WQE_SEG);
}

/*
 * Completions
 */

static void plc_complete_send(PeerlaneCX *s, PlcQp *qp, const PlcWork *w)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };

    stl_be_p(cqe + CX_CQE_USER_INDEX, qp->user_index);
    stl_be_p(cqe + CX_CQE_BYTES, w->total);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)w->opcode << 24 | qp->id);
    stw_be_p(cqe + CX_CQE_COUNTER, w->index);
    plc_cq_post(s, qp->cqn_send, cqe, CX_CQE_REQUEST, false);
}

void plc_cqe_syndrome(uint8_t *cqe, bool recv, uint8_t syndrome)
{
    cqe[CX_CQE_VENDOR] = recv ? plc_errors[syndrome].responder_vendor :
                         plc_errors[syndrome].requester_vendor;
    cqe[CX_CQE_SYNDROME] = syndrome;
}

/* A completion with an error counts twice: as one, and as that error */
static void plc_count_error(PlcQp *qp, bool recv, uint8_t syndrome)
{
    plc_qc_count(qp, recv ? CX_QC_RESP_CQE_ERRORS : CX_QC_REQ_CQE_ERRORS);
    plc_qc_count(qp, recv ? plc_errors[syndrome].responder :
                 plc_errors[syndrome].requester);
}

/* Where a receive completes, and as whose: one of XRC is its shared queue's */
static uint32_t plc_recv_cq(PeerlaneCX *s, PlcQp *qp, uint32_t srqn,
                            uint8_t *cqe)
{
    PlcSrq *srq;

    if (qp->st != CX_ST_XRC) {
        stl_be_p(cqe + CX_CQE_USER_INDEX, qp->user_index);
        return qp->cqn_recv;
    }
    srq = plc_srq_named(s, qp, srqn);
    if (!srq) {
        /* It has been destroyed since */
        return 0;
    }
    stl_be_p(cqe + CX_CQE_USER_INDEX, srq->user_index);
    return srq->cqn;
}

/* @srqn is of a receive of XRC */
static void plc_error_cqe(PeerlaneCX *s, PlcQp *qp, bool recv, uint32_t srqn,
                          uint8_t opcode, uint32_t index, uint8_t syndrome)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };
    uint32_t cqn = qp->cqn_send;

    plc_count_error(qp, recv, syndrome);
    stl_be_p(cqe + CX_CQE_USER_INDEX, qp->user_index);
    if (recv) {
        cqn = plc_recv_cq(s, qp, srqn, cqe);
    }
    plc_cqe_syndrome(cqe, recv, syndrome);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)opcode << 24 | qp->id);
    stw_be_p(cqe + CX_CQE_COUNTER, index);
    plc_cq_post(s, cqn, cqe, recv ? CX_CQE_RECV_ERROR : CX_CQE_REQUEST_ERROR,
                false);
}

/* @w, the oldest entry at work, is done, or has failed; it is gone then */
void plc_sq_done(PeerlaneCX *s, PlcQp *qp, PlcWork *w, uint8_t syndrome)
{
    plc_count(s, PLC_CNT_WQES, 1);
    if (syndrome) {
        plc_count(s, PLC_CNT_WQE_ERRORS, 1);
        plc_error_cqe(s, qp, false, 0, w->opcode, w->index, syndrome);
    } else if (w->flags & CX_CTRL_CQ_UPDATE) {
        plc_complete_send(s, qp, w);
    }
    if (!syndrome && w->lid == s->lid && w->opcode != CX_WR_NOP &&
        w->opcode != CX_WR_UMR) {
        plc_count(s, PLC_CNT_LOOPBACK_MESSAGES, 1);
        plc_count(s, PLC_CNT_LOOPBACK_BYTES, w->total);
    }
    qp->sq_head += MIN(plc_blocks(w->ds), qp->sq_tail - qp->sq_head);
    QTAILQ_REMOVE(&qp->req.works, w, link);
    qp->req.count--;
    g_free(w);
    if (syndrome) {
        plc_qp_send_failed(qp);
    }
}

/* The receive that was taken is done; its number */
static uint16_t plc_recv_end(PlcQp *qp)
{
    qp->resp.taken = false;
    if (qp->rq_type == CX_RQ_REGULAR) {
        qp->rq_head++;
    }
    return qp->resp.index;
}

/* The message that the receive was taken for is there */
void plc_recv_done(PeerlaneCX *s, PlcQp *qp, uint8_t opcode,
                   const PlcHeaders *h)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };
    uint32_t cqn = plc_recv_cq(s, qp, qp->resp.srqn, cqe);

    if (plc_qp_datagrams(qp)) {
        stw_be_p(cqe + CX_CQE_SLID, h->from);
        stl_be_p(cqe + CX_CQE_SRC_QPN,
                 h->src_qpn | (uint32_t)h->l3 << CX_CQE_ROCE_SHIFT |
                 (h->grh ? CX_CQE_GRH : 0));
    }
    stl_be_p(cqe + CX_CQE_IMM, qp->st == CX_ST_QP1 ? h->pkey : h->imm);
    stl_be_p(cqe + CX_CQE_BYTES, qp->resp.done);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, qp->id);
    stw_be_p(cqe + CX_CQE_COUNTER, plc_recv_end(qp));
    plc_cq_post(s, cqn, cqe, opcode, h->solicited);
}

/* The receive that was taken fails; the queue pair does, or will */
void plc_recv_fail(PeerlaneCX *s, PlcQp *qp, uint8_t syndrome)
{
    plc_error_cqe(s, qp, true, qp->resp.srqn, 0, plc_recv_end(qp), syndrome);
    if (!plc_qp_reliable(qp)) {
        plc_qp_to_error(qp);
    }
}

/*
 * Fetching
 */

bool plc_is_atomic(uint8_t opcode)
{
    return opcode == CX_WR_COMPARE_SWAP || opcode == CX_WR_FETCH_ADD;
}

/* Is there more to it than that it has arrived? */
bool plc_needs_answer(uint8_t opcode)
{
    return opcode == CX_WR_READ || plc_is_atomic(opcode);
}

bool plc_parse_list(const uint8_t *wqe, uint32_t at, uint32_t end, bool recv,
                    uint32_t pd, PlcSge *sge, unsigned *n, uint64_t *total)
{
    *n = 0;
    *total = 0;
    while (at + CX_WQE_SEG <= end && *n < PLC_MAX_SGE) {
        uint32_t len = ldl_be_p(wqe + at + CX_DATA_LEN);
        PlcSge *e = &sge[*n];

        if (len & CX_DATA_INLINE) {
            len &= ~CX_DATA_INLINE;
            if (recv || len > end - at - 4) {
                return false;
            }
            *e = (PlcSge) { .len = len, .at = at + 4 };
            at += ROUND_UP(len + 4, CX_WQE_SEG);
        } else {
            *e = (PlcSge) {
                .len = len,
                .key = ldl_be_p(wqe + at + CX_DATA_LKEY),
                .addr = ldq_be_p(wqe + at + CX_DATA_VA),
                .pd = pd,
                .at = -1,
            };
            if (recv && e->key == CX_LKEY_END) {
                break;
            }
            at += CX_WQE_SEG;
        }
        *total += e->len;
        ++*n;
    }
    return true;
}

/* Where a datagram goes; returns how long that is, 0: it is malformed */
static uint32_t plc_parse_av(PlcQp *qp, PlcWork *w)
{
    uint32_t qpn = ldl_be_p(w->wqe + CX_AV_QPN), grh;
    uint32_t len = qpn & CX_AV_EXTENDED ? CX_AV_LONG : CX_AV_SHORT;

    if (w->ds * CX_WQE_SEG < CX_WQE_SEG + len) {
        return 0;
    }
    w->qpn = qpn & 0xffffff;
    w->lid = lduw_be_p(w->wqe + CX_AV_RLID);
    w->qkey = ldl_be_p(w->wqe + CX_AV_Q_KEY);
    if (w->qkey & CX_Q_KEY_OWN) {
        w->qkey = qp->qkey;
    }
    if (qp->cx->ethernet) {
        if (len != CX_AV_LONG) {
            return 0;
        }
        plc_path_of_av(qp->cx, w->wqe, &w->path);
        w->lid = w->path.own ? qp->cx->lid : PLC_LID_WIRE;
        return len;
    }
    if (len == CX_AV_LONG) {
        grh = ldl_be_p(w->wqe + CX_AV_GRH);
        w->grh = grh & CX_AV_HAS_GRH;
        /* The other GIDs of the port are not set */
        if (w->grh && extract32(grh, 20, 8)) {
            return 0;
        }
    }
    return len;
}

/* What each service can do */
static bool plc_can(const PlcQp *qp, uint8_t opcode)
{
    if (opcode == CX_WR_NOP || opcode == CX_WR_UMR) {
        return true;
    }
    switch (qp->st) {
    case CX_ST_RC:
    case CX_ST_XRC:
        return true;
    case CX_ST_UC:
        return !plc_needs_answer(opcode) && opcode != CX_WR_SEND_INV;
    case CX_ST_UD:
    case CX_ST_QP1:
        return opcode == CX_WR_SEND || opcode == CX_WR_SEND_IMM;
    default:
        return false;
    }
}

static uint8_t plc_parse(PlcQp *qp, PlcWork *w)
{
    uint32_t at = CX_WQE_SEG, end = w->ds * CX_WQE_SEG;
    bool inlined = false;
    uint64_t total;

    if (!plc_can(qp, w->opcode)) {
        return CX_SYND_LOCAL_QP;
    }
    if (w->opcode == CX_WR_NOP || w->opcode == CX_WR_UMR) {
        return 0;
    }
    if (qp->st == CX_ST_XRC) {
        if (end < at + CX_WQE_SEG) {
            return CX_SYND_LOCAL_QP;
        }
        w->srqn = ldl_be_p(w->wqe + at + CX_XRC_SRQN) & 0xffffff;
        at += CX_WQE_SEG;
    }
    switch (w->opcode) {
    case CX_WR_SEND:
    case CX_WR_SEND_IMM:
    case CX_WR_SEND_INV:
        if (plc_qp_datagrams(qp)) {
            uint32_t len = plc_parse_av(qp, w);

            if (!len) {
                return CX_SYND_LOCAL_QP;
            }
            at += len;
        }
        break;
    case CX_WR_WRITE:
    case CX_WR_WRITE_IMM:
    case CX_WR_READ:
    case CX_WR_COMPARE_SWAP:
    case CX_WR_FETCH_ADD:
        if (end < at + CX_WQE_SEG) {
            return CX_SYND_LOCAL_QP;
        }
        w->raddr = ldq_be_p(w->wqe + at + CX_RADDR_VA);
        w->rkey = ldl_be_p(w->wqe + at + CX_RADDR_KEY);
        at += CX_WQE_SEG;
        break;
    default:
        return CX_SYND_LOCAL_QP;
    }
    if (plc_is_atomic(w->opcode)) {
        if (end < at + CX_WQE_SEG) {
            return CX_SYND_LOCAL_QP;
        }
        w->swap_add = ldq_be_p(w->wqe + at + CX_ATOMIC_SWAP_ADD);
        w->compare = ldq_be_p(w->wqe + at + CX_ATOMIC_COMPARE);
        at += CX_WQE_SEG;
    }
    if (!plc_parse_list(w->wqe, at, end, false, 0, w->sge, &w->sges,
                        &total)) {
        return CX_SYND_LOCAL_QP;
    }
    if (total > (plc_qp_datagrams(qp) ? qp->mtu : 1u << PLC_LOG_MAX_MSG) ||
        (plc_is_atomic(w->opcode) && total != 8)) {
        return CX_SYND_LOCAL_LENGTH;
    }
    for (unsigned i = 0; i < w->sges; i++) {
        inlined |= w->sge[i].at >= 0;
    }
    if (inlined && (w->opcode == CX_WR_READ || plc_is_atomic(w->opcode))) {
        return CX_SYND_LOCAL_QP;
    }
    w->total = total;
    return 0;
}

/* Take up the next entry of the send queue; NULL: there is none */
PlcWork *plc_sq_fetch(PeerlaneCX *s, PlcQp *qp)
{
    uint8_t ctrl[CX_WQE_SEG];
    uint32_t word, qpn_ds, at = qp->sq_fetch;
    PlcWork *w;

    if (qp->rung) {
        bool ok;
        uint32_t to = plc_dbr(s, qp, CX_DBR_SEND, &ok);

        qp->rung = false;
        qp->sq_tail = qp->sq_head + ((to - qp->sq_head) & 0xffff);
        if (!ok || qp->sq_tail - qp->sq_head > 1u << qp->log_sq ||
            (int32_t)(qp->sq_tail - at) < 0) {
            /* There cannot be that much in it */
            qp->sq_tail = at;
            plc_event_qp(s, CX_EVENT_WQ_INVALID, qp->id);
            plc_qp_to_error(qp);
            return NULL;
        }
    }
    if (at == qp->sq_tail) {
        return NULL;
    }
    w = g_new0(PlcWork, 1);
    w->index = at;
    w->ds = 1;
    w->lid = qp->rlid;
    w->qpn = qp->remote_qpn;
    w->syndrome = CX_SYND_LOCAL_QP;
    if (plc_sq_read(s, qp, at, ctrl, CX_WQE_SEG)) {
        word = ldl_be_p(ctrl + CX_CTRL_OPCODE);
        qpn_ds = ldl_be_p(ctrl + CX_CTRL_QPN_DS);
        w->opcode = word & 0xff;
        w->flags = ctrl[CX_CTRL_FLAGS];
        w->imm = ldl_be_p(ctrl + CX_CTRL_IMM);
        w->ds = qpn_ds & CX_CTRL_DS_MASK;
        /* An entry names its own place: another one is not what was posted */
        if (extract32(word, 8, 16) == (at & 0xffff) && w->ds &&
            qpn_ds >> 8 == qp->id &&
            plc_blocks(w->ds) <= qp->sq_tail - at &&
            plc_sq_read(s, qp, at, w->wqe, w->ds * CX_WQE_SEG)) {
            w->syndrome = plc_parse(qp, w);
        }
    }
    qp->sq_fetch += MIN(plc_blocks(w->ds), qp->sq_tail - at);
    trace_peerlane_cx_wqe(plc_name(s), qp->id, at, w->opcode, w->total);
    QTAILQ_INSERT_TAIL(&qp->req.works, w, link);
    qp->req.count++;
    return w;
}

/* The receive at the head of the queue pair's own queue */
static enum plc_taken plc_rq_take(PeerlaneCX *s, PlcQp *qp, uint8_t *wqe)
{
    uint32_t at, posted;
    bool ok;

    posted = (plc_dbr(s, qp, CX_DBR_RECV, &ok) - qp->rq_head) & 0xffff;
    if (!ok || posted > 1u << qp->log_rq) {
        plc_event_qp(s, CX_EVENT_WQ_INVALID, qp->id);
        return PLC_TAKE_OPERATION;
    }
    if (!posted) {
        return PLC_TAKE_LATER;
    }
    qp->resp.index = qp->rq_head;
    at = qp->rq_head & ((1u << qp->log_rq) - 1);
    if (!plc_buf_read(s, &qp->buf, (uint64_t)at * qp->rq_stride, wqe,
                      qp->rq_stride)) {
        plc_recv_fail(s, qp, CX_SYND_LOCAL_QP);
        return PLC_TAKE_OPERATION;
    }
    return PLC_TAKEN;
}

/* Take a receive for a responder, unless the last one has not been used */
enum plc_taken plc_take_recv(PeerlaneCX *s, PlcQp *qp)
{
    PlcResp *r = &qp->resp;
    PlcSrq *srq = qp->st == CX_ST_XRC ? plc_srq_named(s, qp, r->srqn) : qp->srq;
    uint32_t at = srq ? CX_SRQ_DATA : 0;
    uint32_t end = srq ? 1u << srq->log_stride : qp->rq_stride;
    uint8_t wqe[PLC_MAX_RECV_WQE];
    enum plc_taken taken;

    if (r->taken) {
        return PLC_TAKEN;
    }
    if (!srq && qp->rq_type != CX_RQ_REGULAR) {
        return PLC_TAKE_REQUEST;
    }
    taken = srq ? plc_srq_take(s, srq, wqe, &r->index) :
            plc_rq_take(s, qp, wqe);
    if (taken) {
        return taken;
    }
    if (!plc_parse_list(wqe, at, end, true, srq ? srq->pd : 0, r->sge, &r->sges,
                        &r->room)) {
        plc_recv_fail(s, qp, CX_SYND_LOCAL_QP);
        return PLC_TAKE_OPERATION;
    }
    r->taken = true;
    return PLC_TAKEN;
}

/* Give back the oldest entry that is posted to send; false: there is none */
static bool plc_flush_send(PeerlaneCX *s, PlcQp *qp)
{
    uint8_t ctrl[CX_WQE_SEG];
    uint32_t ds, posted;
    bool ok;

    if (!qp->has_sq) {
        return false;
    }
    posted = (plc_dbr(s, qp, CX_DBR_SEND, &ok) - qp->sq_head) & 0xffff;
    if (!ok || !posted || posted > 1u << qp->log_sq) {
        return false;
    }
    /* One that cannot be read is flushed too: one block, of opcode 0 */
    if (!plc_sq_read(s, qp, qp->sq_head, ctrl, sizeof(ctrl))) {
        memset(ctrl, 0, sizeof(ctrl));
    }
    ds = ldl_be_p(ctrl + CX_CTRL_QPN_DS) & CX_CTRL_DS_MASK;
    plc_error_cqe(s, qp, false, 0, ctrl[CX_CTRL_OPCODE + 3], qp->sq_head,
                  CX_SYND_FLUSHED);
    qp->sq_head += MIN(plc_blocks(ds), posted);
    plc_qp_schedule(qp);
    return true;
}

/* A queue pair in error gives back what was posted, one entry in each step */
static uint64_t plc_error_step(PeerlaneCX *s, PlcQp *qp)
{
    uint32_t posted;
    bool ok;

    /* It takes no more of a shared queue, and gives up what it has of it */
    if (qp->leaves) {
        qp->leaves = false;
        if (qp->held >= 0) {
            plc_error_cqe(s, qp, true, qp->held_srqn, 0, qp->held,
                          CX_SYND_FLUSHED);
        }
        if (qp->srq) {
            plc_event_qp(s, CX_EVENT_LAST_WQE, qp->id);
        }
        plc_qp_schedule(qp);
        return PLC_STEP_COST;
    }
    if (plc_flush_send(s, qp)) {
        return PLC_STEP_COST;
    }
    if (qp->rq_type == CX_RQ_REGULAR) {
        posted = (plc_dbr(s, qp, CX_DBR_RECV, &ok) - qp->rq_head) & 0xffff;
        if (ok && posted && posted <= 1u << qp->log_rq) {
            plc_error_cqe(s, qp, true, 0, 0, qp->rq_head, CX_SYND_FLUSHED);
            qp->rq_head++;
            plc_qp_schedule(qp);
            return PLC_STEP_COST;
        }
        /* No doorbell tells of what is posted later */
        if (ok) {
            plc_qp_wait(qp, PLC_FLUSH_POLL_NS);
        }
    }
    return PLC_STEP_COST;
}

uint64_t plc_qp_step(PeerlaneCX *s, PlcQp *qp)
{
    uint64_t cost = PLC_STEP_COST;
    bool more = false;

    if (qp->state == CX_QP_ERR) {
        return plc_error_step(s, qp);
    }
    if (qp->state == CX_QP_SQER) {
        plc_flush_send(s, qp);
    }
    if (qp->state == CX_QP_RTR || qp->state == CX_QP_RTS) {
        more = plc_resp_step(s, qp, &cost);
    }
    if (qp->state == CX_QP_RTS) {
        more |= plc_req_step(s, qp, &cost);
    }
    if (more && qp->state != CX_QP_ERR) {
        plc_qp_schedule(qp);
    }
    return cost;
}
