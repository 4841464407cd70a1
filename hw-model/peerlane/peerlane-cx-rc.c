/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: reliable connections.
 *
 * Both ends are queue pairs of this function.  A step of the engine fetches one
 * entry, or moves one slice of it, or flushes one.  Everything that another
 * queue pair or a key is needed for is looked up again in each step, since
 * commands come in between.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "peerlane-cx.h"
#include "trace.h"

#define PLC_RNR_FOREVER         7
#define PLC_VENDOR_ACCESS       0x88
#define PLC_VENDOR_RETRY        0x81

/* How long a code of the RNR timer stands for, in steps of 10 us */
static const uint32_t plc_rnr_time[32] = {
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
    512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
    32768, 49152,
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

static void plc_complete_send(PeerlaneCX *s, PlcQp *qp, uint8_t opcode,
                              uint32_t bytes)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };

    stl_be_p(cqe + CX_CQE_USER_INDEX, qp->user_index);
    stl_be_p(cqe + CX_CQE_BYTES, bytes);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)opcode << 24 | qp->id);
    stw_be_p(cqe + CX_CQE_COUNTER, qp->sq_head);
    plc_cq_post(s, qp->cqn_send, cqe, CX_CQE_REQUEST, false);
}

static void plc_error_cqe(PeerlaneCX *s, PlcQp *qp, bool recv, uint8_t opcode,
                          uint32_t index, uint8_t syndrome)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };

    stl_be_p(cqe + CX_CQE_USER_INDEX, qp->user_index);
    cqe[CX_CQE_VENDOR] = syndrome == CX_SYND_REMOTE_ACCESS ? PLC_VENDOR_ACCESS :
                         syndrome == CX_SYND_RETRY ? PLC_VENDOR_RETRY : 0;
    cqe[CX_CQE_SYNDROME] = syndrome;
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)opcode << 24 | qp->id);
    stw_be_p(cqe + CX_CQE_COUNTER, index);
    plc_cq_post(s, recv ? qp->cqn_recv : qp->cqn_send, cqe,
                recv ? CX_CQE_RECV_ERROR : CX_CQE_REQUEST_ERROR, false);
}

/* The entry at work is done, or has failed */
static void plc_sq_done(PeerlaneCX *s, PlcQp *qp, uint8_t syndrome)
{
    PlcWork *w = &qp->work;

    w->active = false;
    qp->tries = 0;
    qp->rnr_tries = 0;
    qp->fault_failed = false;
    plc_count(s, PLC_CNT_WQES, 1);
    if (syndrome) {
        plc_count(s, PLC_CNT_WQE_ERRORS, 1);
        plc_error_cqe(s, qp, false, w->opcode, qp->sq_head, syndrome);
    } else if (w->flags & CX_CTRL_CQ_UPDATE) {
        plc_complete_send(s, qp, w->opcode, w->total);
    }
    qp->sq_head += MIN(plc_blocks(w->ds), qp->sq_tail - qp->sq_head);
    if (syndrome) {
        plc_qp_to_error(qp);
    }
}

static void plc_recv_done(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    PlcWork *w = &qp->work;
    uint8_t cqe[CX_CQE_SIZE] = { 0 };
    uint8_t opcode = w->opcode == CX_WR_SEND ? CX_CQE_RECV_SEND :
                     w->opcode == CX_WR_SEND_IMM ? CX_CQE_RECV_SEND_IMM :
                     CX_CQE_RECV_WRITE_IMM;

    stl_be_p(cqe + CX_CQE_USER_INDEX, peer->user_index);
    stl_be_p(cqe + CX_CQE_IMM, w->imm);
    stl_be_p(cqe + CX_CQE_BYTES, w->total);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, peer->id);
    stw_be_p(cqe + CX_CQE_COUNTER, peer->rq_head);
    peer->rq_head++;
    plc_cq_post(s, peer->cqn_recv, cqe, opcode, w->flags & CX_CTRL_SOLICITED);
}

/* The receive that was taken fails, and with it the queue pair */
static void plc_recv_fail(PeerlaneCX *s, PlcQp *peer, uint8_t syndrome)
{
    plc_error_cqe(s, peer, true, 0, peer->rq_head, syndrome);
    peer->rq_head++;
    plc_qp_to_error(peer);
}

/*
 * Fetching
 */

static bool plc_needs_recv(uint8_t opcode)
{
    return opcode == CX_WR_SEND || opcode == CX_WR_SEND_IMM ||
           opcode == CX_WR_WRITE_IMM;
}

static bool plc_is_atomic(uint8_t opcode)
{
    return opcode == CX_WR_COMPARE_SWAP || opcode == CX_WR_FETCH_ADD;
}

/* The elements of a list from @at to @end of @wqe; their sum in *total */
static bool plc_parse_list(const uint8_t *wqe, uint32_t at, uint32_t end,
                           bool recv, PlcSge *sge, unsigned *n,
                           uint64_t *total)
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

static uint8_t plc_parse(PlcWork *w)
{
    uint32_t at = CX_WQE_SEG, end = w->ds * CX_WQE_SEG;
    bool inlined = false;
    uint64_t total;

    switch (w->opcode) {
    case CX_WR_NOP:
        return 0;
    case CX_WR_SEND:
    case CX_WR_SEND_IMM:
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
    if (!plc_parse_list(w->wqe, at, end, false, w->sge, &w->sges, &total)) {
        return CX_SYND_LOCAL_QP;
    }
    if (total > 1u << PLC_LOG_MAX_MSG ||
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

/* Take the entry at the head of the send queue, if there is one */
static void plc_sq_fetch(PeerlaneCX *s, PlcQp *qp)
{
    PlcWork *w = &qp->work;
    uint8_t syndrome = 0;
    uint32_t word;

    if (qp->rung) {
        bool ok;
        uint32_t to = plc_dbr(s, qp, CX_DBR_SEND, &ok);

        qp->rung = false;
        qp->sq_tail = qp->sq_head + ((to - qp->sq_head) & 0xffff);
        if (!ok || qp->sq_tail - qp->sq_head > 1u << qp->log_sq) {
            /* There cannot be that much in it */
            qp->sq_tail = qp->sq_head;
            plc_event_qp(s, CX_EVENT_WQ_INVALID, qp->id);
            plc_qp_to_error(qp);
            return;
        }
    }
    if (qp->sq_head == qp->sq_tail) {
        return;
    }
    *w = (PlcWork) { .active = true, .ds = 1 };
    if (!plc_sq_read(s, qp, qp->sq_head, w->wqe, CX_WQE_SEG)) {
        plc_sq_done(s, qp, CX_SYND_LOCAL_QP);
        return;
    }
    word = ldl_be_p(w->wqe + CX_CTRL_OPCODE);
    w->opcode = word & 0xff;
    w->flags = w->wqe[CX_CTRL_FLAGS];
    w->imm = ldl_be_p(w->wqe + CX_CTRL_IMM);
    w->ds = ldl_be_p(w->wqe + CX_CTRL_QPN_DS) & CX_CTRL_DS_MASK;
    /* An entry names its own place: another one is not what was posted */
    if (extract32(word, 8, 16) != (qp->sq_head & 0xffff) || !w->ds ||
        ldl_be_p(w->wqe + CX_CTRL_QPN_DS) >> 8 != qp->id ||
        plc_blocks(w->ds) > qp->sq_tail - qp->sq_head ||
        !plc_sq_read(s, qp, qp->sq_head, w->wqe, w->ds * CX_WQE_SEG)) {
        syndrome = CX_SYND_LOCAL_QP;
    } else if (w->opcode == CX_WR_UMR) {
        syndrome = plc_umr(s, qp);
    } else if (qp->st != CX_ST_RC) {
        syndrome = CX_SYND_LOCAL_QP;
    } else {
        syndrome = plc_parse(w);
    }
    trace_peerlane_cx_wqe(plc_name(s), qp->id, qp->sq_head, w->opcode,
                          w->total);
    if (s->old) {
        return;
    }
    if (syndrome || w->opcode == CX_WR_NOP || w->opcode == CX_WR_UMR) {
        plc_sq_done(s, qp, syndrome);
    }
}

/*
 * The other end
 */

static PlcQp *plc_peer(PeerlaneCX *s, PlcQp *qp)
{
    PlcQp *peer = plc_table_get(&s->st->qp, qp->remote_qpn);

    if (qp->rlid != s->lid || !peer || peer->st != CX_ST_RC ||
        (peer->state != CX_QP_RTR && peer->state != CX_QP_RTS) ||
        peer->remote_qpn != qp->id || peer->rlid != s->lid) {
        return NULL;
    }
    return peer;
}

/* Nobody answers: wait as long as the timeout says, as often as allowed */
static void plc_no_answer(PeerlaneCX *s, PlcQp *qp)
{
    if (qp->ack_timeout && qp->tries++ >= qp->retry_count) {
        plc_sq_done(s, qp, CX_SYND_RETRY);
        return;
    }
    plc_qp_wait(qp, 4096ll << (qp->ack_timeout ? qp->ack_timeout : 18));
}

static void plc_no_receive(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    if (qp->rnr_retry != PLC_RNR_FOREVER && qp->rnr_tries++ >= qp->rnr_retry) {
        plc_sq_done(s, qp, CX_SYND_RNR);
        return;
    }
    plc_qp_wait(qp, (int64_t)plc_rnr_time[peer->min_rnr] * 10 * SCALE_US);
}

/* Take the receive at the head of the other's queue; false: not now */
static bool plc_take_recv(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    PlcWork *w = &qp->work;
    uint8_t wqe[PLC_MAX_RECV_WQE];
    enum plc_result result;
    uint32_t at, posted;
    uint64_t room;
    bool ok;

    if (peer->rq_type != CX_RQ_REGULAR) {
        plc_qp_to_error(peer);
        plc_sq_done(s, qp, CX_SYND_REMOTE_REQUEST);
        return false;
    }
    posted = (plc_dbr(s, peer, CX_DBR_RECV, &ok) - peer->rq_head) & 0xffff;
    if (!ok || posted > 1u << peer->log_rq) {
        plc_event_qp(s, CX_EVENT_WQ_INVALID, peer->id);
        plc_qp_to_error(peer);
        plc_sq_done(s, qp, CX_SYND_REMOTE_OPERATION);
        return false;
    }
    if (!posted) {
        plc_no_receive(s, qp, peer);
        return false;
    }
    at = peer->rq_head & ((1u << peer->log_rq) - 1);
    if (!plc_buf_read(s, &peer->buf, (uint64_t)at * peer->rq_stride, wqe,
                      peer->rq_stride) ||
        !plc_parse_list(wqe, 0, peer->rq_stride, true, w->rsge, &w->rsges,
                        &room)) {
        plc_recv_fail(s, peer, CX_SYND_LOCAL_QP);
        plc_sq_done(s, qp, CX_SYND_REMOTE_OPERATION);
        return false;
    }
    if (w->opcode == CX_WR_WRITE_IMM) {
        return true;
    }
    if (room < w->total) {
        plc_recv_fail(s, peer, CX_SYND_LOCAL_LENGTH);
        plc_sq_done(s, qp, CX_SYND_REMOTE_REQUEST);
        return false;
    }
    result = plc_mkey_check(s, peer, w->rsge, w->rsges, w->total,
                            PLC_LOCAL_WRITE);
    if (result == PLC_ABSENT && plc_fault(s, qp)) {
        return false;
    }
    if (result) {
        plc_recv_fail(s, peer, CX_SYND_LOCAL_PROTECTION);
        plc_sq_done(s, qp, CX_SYND_REMOTE_OPERATION);
        return false;
    }
    return true;
}

static enum plc_access plc_local_access(uint8_t opcode)
{
    return opcode == CX_WR_READ || plc_is_atomic(opcode) ? PLC_LOCAL_WRITE :
           PLC_LOCAL_READ;
}

static enum plc_access plc_remote_access(uint8_t opcode)
{
    return plc_is_atomic(opcode) ? PLC_REMOTE_ATOMIC :
           opcode == CX_WR_READ ? PLC_REMOTE_READ :
           opcode == CX_WR_WRITE || opcode == CX_WR_WRITE_IMM ?
           PLC_REMOTE_WRITE : PLC_LOCAL_WRITE;
}

static void plc_remote_denied(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    plc_event_qp(s, CX_EVENT_WQ_ACCESS, peer->id);
    plc_qp_to_error(peer);
    plc_sq_done(s, qp, CX_SYND_REMOTE_ACCESS);
}

/* All checks, before the first byte is moved; false: it does not go on now */
static bool plc_match(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    PlcWork *w = &qp->work;
    bool sends = w->opcode == CX_WR_SEND || w->opcode == CX_WR_SEND_IMM;
    bool may = plc_is_atomic(w->opcode) ? peer->remote_atomic :
               w->opcode == CX_WR_READ ? peer->remote_read :
               peer->remote_write;
    enum plc_result result;

    result = plc_mkey_check(s, qp, w->sge, w->sges, w->total,
                            plc_local_access(w->opcode));
    if (result == PLC_ABSENT && plc_fault(s, qp)) {
        return false;
    }
    if (result) {
        plc_sq_done(s, qp, CX_SYND_LOCAL_PROTECTION);
        return false;
    }
    if (!sends) {
        w->rsge[0] = (PlcSge) {
            .addr = w->raddr, .len = w->total, .key = w->rkey, .at = -1,
        };
        w->rsges = 1;
        if (!may) {
            plc_qp_to_error(peer);
            plc_sq_done(s, qp, CX_SYND_REMOTE_REQUEST);
            return false;
        }
        if (plc_is_atomic(w->opcode) && w->raddr % 8) {
            plc_qp_to_error(peer);
            plc_sq_done(s, qp, CX_SYND_REMOTE_REQUEST);
            return false;
        }
        result = plc_mkey_check(s, peer, w->rsge, 1, w->total,
                                plc_remote_access(w->opcode));
        if (result == PLC_ABSENT && plc_fault(s, qp)) {
            return false;
        }
        if (result) {
            plc_remote_denied(s, qp, peer);
            return false;
        }
    }
    if (plc_needs_recv(w->opcode) && !plc_take_recv(s, qp, peer)) {
        return false;
    }
    if (!sends) {
        /* Taking a receive has used the list */
        w->rsge[0] = (PlcSge) {
            .addr = w->raddr, .len = w->total, .key = w->rkey, .at = -1,
        };
        w->rsges = 1;
    }
    qp->fault_failed = false;
    w->matched = true;
    w->peer_life = peer->life;
    return true;
}

/* What a slice that failed means, by whose end it was */
static void plc_move_failed(PeerlaneCX *s, PlcQp *qp, PlcQp *peer, bool local,
                            enum plc_result result)
{
    PlcWork *w = &qp->work;

    if (result == PLC_ABSENT) {
        if (plc_fault(s, qp)) {
            /* All is looked at anew, and moved again */
            w->matched = false;
            w->done = 0;
            return;
        }
        result = PLC_DENIED;
    }
    if (local) {
        plc_sq_done(s, qp, result == PLC_DENIED ? CX_SYND_LOCAL_PROTECTION :
                    CX_SYND_LOCAL_QP);
    } else if (w->opcode == CX_WR_SEND || w->opcode == CX_WR_SEND_IMM) {
        plc_recv_fail(s, peer, CX_SYND_LOCAL_PROTECTION);
        plc_sq_done(s, qp, CX_SYND_REMOTE_OPERATION);
    } else if (result == PLC_DENIED) {
        plc_remote_denied(s, qp, peer);
    } else {
        plc_qp_to_error(peer);
        plc_sq_done(s, qp, CX_SYND_REMOTE_OPERATION);
    }
}

static bool plc_atomic(PeerlaneCX *s, PlcQp *qp, PlcQp *peer)
{
    PlcWork *w = &qp->work;
    uint8_t word[8], reply[8];
    enum plc_result result;
    uint64_t old, new;

    result = plc_mkey_rw(s, peer, w->rsge, 1, NULL, 0, word, 8,
                         PLC_REMOTE_ATOMIC_READ);
    if (result) {
        plc_move_failed(s, qp, peer, false, result);
        return false;
    }
    old = ldq_le_p(word);
    new = w->opcode == CX_WR_FETCH_ADD ? old + w->swap_add :
          old == w->compare ? w->swap_add : old;
    stq_le_p(word, new);
    result = plc_mkey_rw(s, peer, w->rsge, 1, NULL, 0, word, 8,
                         PLC_REMOTE_ATOMIC);
    if (result) {
        plc_move_failed(s, qp, peer, false, result);
        return false;
    }
    if (s->st->atomic_mode) {
        stq_le_p(reply, old);
    } else {
        stq_be_p(reply, old);
    }
    result = plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, 0, reply, 8,
                         PLC_LOCAL_WRITE);
    if (result) {
        plc_move_failed(s, qp, peer, true, result);
        return false;
    }
    return true;
}

/* Move a slice; false when that has ended the entry */
static bool plc_slice(PeerlaneCX *s, PlcQp *qp, PlcQp *peer, uint32_t n)
{
    PlcWork *w = &qp->work;
    bool read = w->opcode == CX_WR_READ;
    enum plc_result result;
    bool local = !read;

    /* From where the data is, to where it goes */
    result = local ?
        plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, w->done, s->stage, n,
                    PLC_LOCAL_READ) :
        plc_mkey_rw(s, peer, w->rsge, w->rsges, NULL, w->done, s->stage, n,
                    PLC_REMOTE_READ);
    if (!result) {
        local = read;
        result = local ?
            plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, w->done, s->stage, n,
                        PLC_LOCAL_WRITE) :
            plc_mkey_rw(s, peer, w->rsge, w->rsges, NULL, w->done, s->stage, n,
                        plc_remote_access(w->opcode));
    }
    if (result) {
        plc_move_failed(s, qp, peer, local, result);
        return false;
    }
    w->done += n;
    return true;
}

static uint64_t plc_rts_step(PeerlaneCX *s, PlcQp *qp)
{
    PlcWork *w = &qp->work;
    PlcQp *peer;
    uint32_t n = 0;

    if (!w->active) {
        plc_sq_fetch(s, qp);
        return PLC_STEP_COST;
    }
    peer = plc_peer(s, qp);
    if (!peer || (w->matched && peer->life != w->peer_life)) {
        plc_no_answer(s, qp);
        return PLC_STEP_COST;
    }
    if (!w->matched && !plc_match(s, qp, peer)) {
        return PLC_STEP_COST;
    }
    if (plc_is_atomic(w->opcode)) {
        if (!plc_atomic(s, qp, peer)) {
            return PLC_STEP_COST;
        }
    } else if (w->done < w->total) {
        n = MIN(w->total - w->done, PLC_SLICE);
        if (!plc_slice(s, qp, peer, n) || w->done < w->total) {
            return PLC_STEP_COST + n;
        }
    }
    if (s->old) {
        return PLC_STEP_COST + n;
    }
    plc_count(s, PLC_CNT_LOOPBACK_MESSAGES, 1);
    plc_count(s, PLC_CNT_LOOPBACK_BYTES, w->total);
    if (plc_needs_recv(w->opcode)) {
        plc_recv_done(s, qp, peer);
    }
    plc_sq_done(s, qp, 0);
    return PLC_STEP_COST + n;
}

/* A queue pair in error gives back what was posted, one entry in each step */
static uint64_t plc_error_step(PeerlaneCX *s, PlcQp *qp)
{
    uint32_t posted = 0;
    bool ok = true;

    if (qp->has_sq) {
        posted = (plc_dbr(s, qp, CX_DBR_SEND, &ok) - qp->sq_head) & 0xffff;
    }
    if (ok && posted && posted <= 1u << qp->log_sq) {
        uint8_t ctrl[CX_WQE_SEG];
        uint32_t ds;

        /* One that cannot be read is flushed too: one block, of opcode 0 */
        if (!plc_sq_read(s, qp, qp->sq_head, ctrl, sizeof(ctrl))) {
            memset(ctrl, 0, sizeof(ctrl));
        }
        ds = ldl_be_p(ctrl + CX_CTRL_QPN_DS) & CX_CTRL_DS_MASK;
        plc_error_cqe(s, qp, false, ctrl[CX_CTRL_OPCODE + 3], qp->sq_head,
                      CX_SYND_FLUSHED);
        qp->sq_head += MIN(plc_blocks(ds), posted);
        plc_qp_schedule(qp);
        return PLC_STEP_COST;
    }
    if (qp->rq_type == CX_RQ_REGULAR) {
        posted = (plc_dbr(s, qp, CX_DBR_RECV, &ok) - qp->rq_head) & 0xffff;
        if (ok && posted && posted <= 1u << qp->log_rq) {
            plc_error_cqe(s, qp, true, 0, qp->rq_head, CX_SYND_FLUSHED);
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
    uint64_t cost;

    switch (qp->state) {
    case CX_QP_RTS:
        cost = plc_rts_step(s, qp);
        break;
    case CX_QP_ERR:
        return plc_error_step(s, qp);
    default:
        return PLC_STEP_COST;
    }
    if (!qp->waiting && qp->state == CX_QP_RTS &&
        (qp->work.active || qp->rung || qp->sq_head != qp->sq_tail)) {
        plc_qp_schedule(qp);
    }
    return cost;
}
