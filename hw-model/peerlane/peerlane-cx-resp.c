/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the responder.
 *
 * A request is done when it comes, if its number is the one that is expected.
 * Answers wait in a list and leave in order; a READ fetches its data then.
 * While the list is full, requests are dropped like those that get lost.
 *
 * Without acknowledges nobody is told: what cannot be done is dropped, and the
 * next message gets the same receive.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"
#include "trace.h"

#define PLC_BURST               8       /* packets in a step */
#define PLC_RNR_FAULT           14      /* 1.28 ms: a driver is not quicker */

void plc_resp_reset(PlcQp *qp)
{
    qp->resp = (PlcResp) {
        .psn = cx_get(qp->ctx, CX_QPC_NEXT_RCV_PSN),
    };
}

/* How many packets the answer to a READ has */
static uint32_t plc_packets(PlcQp *qp, uint32_t len)
{
    return MAX(1, DIV_ROUND_UP(len, qp->mtu));
}

static PlcReply *plc_reply_at(PlcResp *r, uint32_t i)
{
    return &r->reply[(r->first_reply + i) % PLC_MAX_REPLIES];
}

/*
 * Who asks for the rest of a READ again has no use for what is queued.  The
 * new answer has its place behind those of what was asked before it.
 */
static void plc_reply_forget_read(PlcQp *qp, uint32_t psn)
{
    PlcResp *r = &qp->resp;

    for (uint32_t i = 0; i < r->replies; i++) {
        PlcReply *old = plc_reply_at(r, i);
        int32_t ahead = plc_psn_diff(psn, old->psn);

        if (old->kind != PLC_REPLY_READ || ahead < 0 ||
            ahead >= (int32_t)plc_packets(qp, old->len)) {
            continue;
        }
        for (r->replies--; i < r->replies; i++) {
            *plc_reply_at(r, i) = *plc_reply_at(r, i + 1);
        }
    }
}

static void plc_reply(PeerlaneCX *s, PlcQp *qp, PlcReply reply)
{
    PlcResp *r = &qp->resp;
    PlcReply *last;

    /* After a reset the state is that of others */
    if (s->old) {
        return;
    }
    reply.msn = r->msn;
    if (reply.kind == PLC_REPLY_READ) {
        plc_reply_forget_read(qp, reply.psn);
    }
    last = plc_reply_at(r, r->replies - 1);
    /* One acknowledge does for all before it */
    if (reply.kind == PLC_REPLY_ACK && r->replies &&
        last->kind == PLC_REPLY_ACK) {
        *last = reply;
        return;
    }
    *plc_reply_at(r, r->replies++) = reply;
    plc_qp_schedule(qp);
}

static void plc_reply_ack(PeerlaneCX *s, PlcQp *qp)
{
    plc_reply(s, qp, (PlcReply) {
        .kind = PLC_REPLY_ACK, .syndrome = CX_AETH_ACK | CX_AETH_NO_CREDITS,
        .psn = plc_psn_add(qp->resp.psn, CX_PSN_MASK),
    });
}

static void plc_resp_drop(PeerlaneCX *s, PlcQp *qp)
{
    plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
    qp->resp.in = PLC_IN_NOTHING;
}

/* The request that was expected cannot be done now, or ever (@fatal) */
static void plc_reply_nak(PeerlaneCX *s, PlcQp *qp, uint8_t syndrome,
                          bool fatal)
{
    if (!plc_qp_reliable(qp)) {
        plc_resp_drop(s, qp);
        return;
    }
    plc_reply(s, qp, (PlcReply) {
        .kind = PLC_REPLY_NAK, .syndrome = syndrome, .fatal = fatal,
        .psn = qp->resp.psn,
    });
    qp->resp.nak_sent = true;
    qp->resp.closing |= fatal;
}

static void plc_fatal(PeerlaneCX *s, PlcQp *qp, uint8_t code)
{
    /* What is wrong on this side is wrong for all others, too */
    if (!plc_qp_reliable(qp) && code == CX_NAK_OPERATION &&
        qp->state != CX_QP_ERR) {
        plc_qp_to_error(qp);
    }
    if (code != CX_NAK_OPERATION) {
        plc_qc_count(qp, code == CX_NAK_ACCESS ? CX_QC_RESP_REMOTE_ACCESS :
                     CX_QC_RESP_REMOTE_REQUEST);
    }
    if (plc_qp_reliable(qp) && code == CX_NAK_ACCESS) {
        plc_event_qp(s, CX_EVENT_WQ_ACCESS, qp->id);
    }
    plc_reply_nak(s, qp, CX_AETH_NAK | code, true);
}

/* Is a page asked for?  Then the request is to come again. */
static bool plc_resp_absent(PeerlaneCX *s, PlcQp *qp, enum plc_result result)
{
    if (result != PLC_ABSENT || s->old || !plc_fault(s, qp, &qp->resp.fault)) {
        return false;
    }
    /* 0 is the longest */
    plc_reply_nak(s, qp, CX_AETH_RNR | (qp->min_rnr ? MAX(qp->min_rnr,
                                                          PLC_RNR_FAULT) : 0),
                  false);
    return true;
}

/* May this be used?  What is there is not denied for what was not. */
static enum plc_result plc_resp_check(PeerlaneCX *s, PlcQp *qp,
                                      const PlcSge *sge, unsigned n,
                                      uint32_t at, uint32_t len,
                                      enum plc_access access)
{
    enum plc_result result = plc_mkey_check(s, qp, sge, n, at, len, access);

    if (!result) {
        qp->resp.fault.failed = false;
    }
    return result;
}

/*
 * Requests
 */

/* Take a receive; false: the request ends here */
static bool plc_resp_recv(PeerlaneCX *s, PlcQp *qp)
{
    switch (plc_take_recv(s, qp)) {
    case PLC_TAKEN:
        return !s->old;
    case PLC_TAKE_LATER:
        plc_qc_count(qp, CX_QC_OUT_OF_BUFFER);
        plc_reply_nak(s, qp, CX_AETH_RNR | qp->min_rnr, false);
        return false;
    case PLC_TAKE_REQUEST:
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return false;
    default:
        plc_fatal(s, qp, CX_NAK_OPERATION);
        return false;
    }
}

static bool plc_resp_send_data(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcResp *r = &qp->resp;
    uint64_t end = (uint64_t)r->done + h->bytes;
    enum plc_result result;

    if (end > r->room || end > 1u << PLC_LOG_MAX_MSG) {
        /* Without acknowledges the receive is kept for the next message */
        if (plc_qp_reliable(qp)) {
            plc_recv_fail(s, qp, CX_SYND_LOCAL_LENGTH);
        }
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return false;
    }
    result = plc_resp_check(s, qp, r->sge, r->sges, r->done, h->bytes,
                            PLC_LOCAL_WRITE);
    if (result == PLC_ABSENT) {
        /* All the rest of the receive is asked for at once, if it may be used */
        result = plc_mkey_check(s, qp, r->sge, r->sges,
                                r->done,
                                MIN(r->room, 1u << PLC_LOG_MAX_MSG) - r->done,
                                PLC_LOCAL_WRITE);
        if (result != PLC_ABSENT) {
            result = plc_mkey_check(s, qp, r->sge, r->sges, r->done,
                                    h->bytes, PLC_LOCAL_WRITE);
        }
    }
    if (!result) {
        result = plc_mkey_rw(s, qp, r->sge, r->sges, NULL, r->done,
                             (void *)h->payload, h->bytes, PLC_LOCAL_WRITE);
    }
    if (result) {
        if (!s->old && !plc_resp_absent(s, qp, result)) {
            plc_recv_fail(s, qp, CX_SYND_LOCAL_PROTECTION);
            plc_fatal(s, qp, CX_NAK_OPERATION);
        }
        return false;
    }
    r->done = end;
    return !s->old;
}

/* How a failed access to memory that a request names is answered */
static void plc_resp_failed(PeerlaneCX *s, PlcQp *qp, enum plc_result result)
{
    if (!s->old && !plc_resp_absent(s, qp, result)) {
        plc_fatal(s, qp, result == PLC_FAILED ? CX_NAK_OPERATION :
                  CX_NAK_ACCESS);
    }
}

static bool plc_resp_write_data(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h,
                                bool last)
{
    PlcResp *r = &qp->resp;
    PlcSge to = {
        .addr = r->va, .len = h->bytes, .key = r->rkey, .pd = r->pd, .at = -1,
    };
    enum plc_result result;

    if (h->bytes > r->left || (last && h->bytes != r->left)) {
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return false;
    }
    result = plc_mkey_rw(s, qp, &to, 1, NULL, 0, (void *)h->payload, h->bytes,
                         PLC_REMOTE_WRITE);
    if (result || s->old) {
        plc_resp_failed(s, qp, result);
        return false;
    }
    r->va += h->bytes;
    r->left -= h->bytes;
    r->done += h->bytes;
    return true;
}

/* A piece of a SEND or WRITE; false: it is not done */
static bool plc_resp_message(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcResp *r = &qp->resp;
    bool inv = h->kind >= CX_PKT_SEND_LAST_INV;
    bool write = h->kind >= CX_PKT_WRITE_FIRST && !inv;
    /* The kinds of WRITE follow those of SEND, in the same order */
    uint8_t kind = h->kind == CX_PKT_SEND_LAST_INV ? CX_PKT_SEND_LAST :
                   inv ? CX_PKT_SEND_ONLY :
                   h->kind - (write ? CX_PKT_WRITE_FIRST : 0);
    bool only = kind >= CX_PKT_SEND_ONLY;
    bool first = only || kind == CX_PKT_SEND_FIRST;
    bool last = only || kind >= CX_PKT_SEND_LAST;
    bool imm = kind == CX_PKT_SEND_LAST_IMM || kind == CX_PKT_SEND_ONLY_IMM;

    if (r->in != (first ? PLC_IN_NOTHING : write ? PLC_IN_WRITE :
                  PLC_IN_SEND) ||
        (last ? h->bytes > qp->mtu : h->bytes != qp->mtu) ||
        (last && !only && !h->bytes)) {
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return false;
    }
    if (first && write) {
        PlcSge to = {
            .addr = h->va, .len = h->len, .key = h->rkey, .pd = r->pd, .at = -1,
        };
        enum plc_result result;

        if (!qp->remote_write || h->len > 1u << PLC_LOG_MAX_MSG) {
            plc_fatal(s, qp, CX_NAK_REQUEST);
            return false;
        }
        result = plc_resp_check(s, qp, &to, 1, 0, h->len, PLC_REMOTE_WRITE);
        if (result) {
            plc_resp_failed(s, qp, result);
            return false;
        }
        r->va = h->va;
        r->rkey = h->rkey;
        r->left = h->len;
        plc_qc_count(qp, CX_QC_WRITES);
    }
    if ((write ? last && imm : first) && !plc_resp_recv(s, qp)) {
        return false;
    }
    if (first) {
        r->done = 0;
    }
    if (!(write ? plc_resp_write_data(s, qp, h, last) :
          plc_resp_send_data(s, qp, h))) {
        return false;
    }
    /* What the message names is to be the last thing that is wrong with it */
    if (inv && !plc_mkey_invalidate(s, qp, h->imm, r->pd ? r->pd : qp->pd)) {
        plc_recv_fail(s, qp, CX_SYND_REMOTE_REQUEST);
        plc_fatal(s, qp, CX_NAK_ACCESS);
        return false;
    }
    r->in = last ? PLC_IN_NOTHING : write ? PLC_IN_WRITE : PLC_IN_SEND;
    if (last) {
        r->msn = plc_psn_add(r->msn, 1);
        if (!write || imm) {
            plc_recv_done(s, qp, write ? CX_CQE_RECV_WRITE_IMM : imm ?
                          CX_CQE_RECV_SEND_IMM : inv ?
                          CX_CQE_RECV_SEND_INV : CX_CQE_RECV_SEND, h);
        }
    }
    r->psn = plc_psn_add(r->psn, 1);
    return true;
}

/* Answer a READ, or refuse it; false: a @repeat is not answered */
static bool plc_resp_read(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h,
                          uint32_t pd, bool repeat)
{
    PlcResp *r = &qp->resp;
    PlcSge from = {
        .addr = h->va, .len = h->len, .key = h->rkey, .pd = pd, .at = -1,
    };
    uint8_t code = CX_NAK_REQUEST;
    enum plc_result result;

    /* A later message may have begun when one is asked for again */
    if ((repeat || r->in == PLC_IN_NOTHING) && qp->remote_read &&
        h->len <= 1u << PLC_LOG_MAX_MSG) {
        result = plc_resp_check(s, qp, &from, 1, 0, h->len, PLC_REMOTE_READ);
        if (!repeat && plc_resp_absent(s, qp, result)) {
            return false;
        }
        /* The answer to one that is repeated waits for its pages itself */
        if (!result || (repeat && result == PLC_ABSENT)) {
            if (!repeat) {
                plc_qc_count(qp, CX_QC_READS);
                r->msn = plc_psn_add(r->msn, 1);
                r->psn = plc_psn_add(r->psn, plc_packets(qp, h->len));
            }
            plc_reply(s, qp, (PlcReply) {
                .kind = PLC_REPLY_READ, .psn = h->psn, .va = h->va,
                .rkey = h->rkey, .pd = pd, .len = h->len,
            });
            return true;
        }
        code = CX_NAK_ACCESS;
    }
    if (!repeat) {
        plc_fatal(s, qp, code);
        return false;
    }
    if (code != CX_NAK_ACCESS) {
        return false;
    }
    /* It may be a late copy of a request, whose key has gone in good order */
    plc_qc_count(qp, CX_QC_RESP_REMOTE_ACCESS);
    plc_reply(s, qp, (PlcReply) {
        .kind = PLC_REPLY_NAK, .syndrome = CX_AETH_NAK | code, .psn = h->psn,
    });
    return true;
}

static void plc_resp_atomic(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcResp *r = &qp->resp;
    PlcSge at = {
        .addr = h->va, .len = 8, .key = h->rkey, .pd = r->pd, .at = -1,
    };
    enum plc_result result;
    uint8_t word[8];
    uint64_t old, new;
    unsigned slot;

    if (r->in != PLC_IN_NOTHING || !qp->remote_atomic || h->va % 8) {
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return;
    }
    result = plc_mkey_rw(s, qp, &at, 1, NULL, 0, word, 8,
                         PLC_REMOTE_ATOMIC_READ);
    if (result || s->old) {
        plc_resp_failed(s, qp, result);
        return;
    }
    old = ldq_le_p(word);
    new = h->kind == CX_PKT_FETCH_ADD ? old + h->swap_add :
          old == h->compare ? h->swap_add : old;
    stq_le_p(word, new);
    result = plc_mkey_rw(s, qp, &at, 1, NULL, 0, word, 8, PLC_REMOTE_ATOMIC);
    if (result || s->old) {
        plc_resp_failed(s, qp, result);
        return;
    }
    plc_qc_count(qp, CX_QC_ATOMICS);
    slot = r->atomics++ % ARRAY_SIZE(r->atomic);
    r->atomic[slot].valid = true;
    r->atomic[slot].psn = h->psn;
    r->atomic[slot].value = old;
    r->msn = plc_psn_add(r->msn, 1);
    r->psn = plc_psn_add(r->psn, 1);
    plc_reply(s, qp, (PlcReply) {
        .kind = PLC_REPLY_ATOMIC, .psn = h->psn, .value = old,
    });
}

/* It was done before: its answer got lost, or it came twice */
static void plc_resp_repeat(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcSrq *srq = plc_srq_named(s, qp, h->srqn);
    PlcResp *r = &qp->resp;

    plc_qc_count(qp, CX_QC_DUPLICATES);
    switch (h->kind) {
    case CX_PKT_READ_REQUEST:
        /* A part of what was asked for; not what is still to come */
        if (plc_psn_diff(plc_psn_add(h->psn, plc_packets(qp, h->len)),
                         r->psn) <= 0 && (srq || qp->st != CX_ST_XRC) &&
            plc_resp_read(s, qp, h, srq ? srq->pd : 0, true)) {
            return;
        }
        break;
    case CX_PKT_COMPARE_SWAP:
    case CX_PKT_FETCH_ADD:
        /* The latest first: sequence numbers wrap */
        for (unsigned i = 1; i <= ARRAY_SIZE(r->atomic); i++) {
            unsigned slot = (r->atomics - i) % ARRAY_SIZE(r->atomic);

            if (r->atomic[slot].valid && r->atomic[slot].psn == h->psn) {
                plc_reply(s, qp, (PlcReply) {
                    .kind = PLC_REPLY_ATOMIC, .psn = h->psn,
                    .value = r->atomic[slot].value,
                });
                return;
            }
        }
        break;
    default:
        plc_reply_ack(s, qp);
        return;
    }
    plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
}

/*
 * A request of XRC names the shared queue whose receives it is for, and whose
 * protection domain.  It is the same one for all of a message.
 */
static bool plc_resp_xrc(PeerlaneCX *s, PlcQp *qp, uint32_t srqn)
{
    PlcSrq *srq = plc_srq_named(s, qp, srqn);
    PlcResp *r = &qp->resp;

    if (!srq || ((r->in != PLC_IN_NOTHING || r->taken) && srqn != r->srqn)) {
        return false;
    }
    r->srqn = srqn;
    r->pd = srq->pd;
    return true;
}

/*
 * The other end sends a request that is accepted: the driver need not wait for
 * who says so by another way.  While there is no place for the event, the next
 * request has it.
 */
static void plc_resp_established(PeerlaneCX *s, PlcQp *qp)
{
    PlcEq *eq;

    if (qp->state != CX_QP_RTR || qp->established) {
        return;
    }
    eq = plc_eq_of(s, CX_EVENT_ESTABLISHED);
    if (!eq || !plc_eq_full(eq)) {
        qp->established = true;
        plc_event_qp(s, CX_EVENT_ESTABLISHED, qp->id);
    }
}

void plc_resp_packet(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcResp *r = &qp->resp;
    int32_t ahead = plc_psn_diff(h->psn, r->psn);

    /* One place is kept for the last answer */
    if (r->closing || r->replies >= PLC_MAX_REPLIES - 1) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return;
    }
    if (ahead > 0) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        plc_qc_count(qp, CX_QC_OUT_OF_SEQUENCE);
        if (!r->nak_sent) {
            plc_reply_nak(s, qp, CX_AETH_NAK | CX_NAK_SEQUENCE, false);
        }
        return;
    }
    if (ahead < 0) {
        plc_resp_repeat(s, qp, h);
        return;
    }
    r->nak_sent = false;
    plc_resp_established(s, qp);
    if (s->old) {
        return;
    }
    if (qp->st == CX_ST_XRC && !plc_resp_xrc(s, qp, h->srqn)) {
        plc_fatal(s, qp, CX_NAK_REQUEST);
        return;
    }
    switch (h->kind) {
    case CX_PKT_READ_REQUEST:
        plc_resp_read(s, qp, h, r->pd, false);
        break;
    case CX_PKT_COMPARE_SWAP:
    case CX_PKT_FETCH_ADD:
        plc_resp_atomic(s, qp, h);
        break;
    default:
        if (plc_resp_message(s, qp, h) && h->ack_req) {
            plc_reply_ack(s, qp);
        }
        break;
    }
}

/* A connection that does not acknowledge: a message with a hole is lost */
void plc_resp_unreliable(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcResp *r = &qp->resp;
    uint8_t kind = h->kind - (h->kind >= CX_PKT_WRITE_FIRST ?
                              CX_PKT_WRITE_FIRST : 0);
    bool first = kind == CX_PKT_SEND_FIRST || kind >= CX_PKT_SEND_ONLY;

    if (first || h->psn != r->psn) {
        r->in = PLC_IN_NOTHING;
    }
    r->psn = h->psn;
    if (!first && r->in == PLC_IN_NOTHING) {
        plc_resp_drop(s, qp);
    } else {
        plc_resp_established(s, qp);
        if (s->old || plc_resp_message(s, qp, h) || s->old) {
            return;
        }
    }
    r->psn = plc_psn_add(h->psn, 1);
}

void plc_resp_datagram(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcHeaders grh = { .payload = h->grh, .bytes = CX_GRH_SIZE };
    PlcResp *r = &qp->resp;
    uint8_t gid[16];

    plc_gid(s, gid);
    if (h->qkey != qp->qkey || h->bytes > qp->mtu ||
        (h->grh && h->l3 == PLC_L3_GRH &&
         memcmp(h->grh + 24, gid, sizeof(gid)))) {
        plc_resp_drop(s, qp);
        return;
    }
    if (qp->st == CX_ST_QP1 && plc_mad(s, qp, h)) {
        return;
    }
    if (!plc_resp_recv(s, qp)) {
        return;
    }
    /* Its place is kept even if there is none */
    r->done = h->grh ? 0 : CX_GRH_SIZE;
    if ((h->grh && !plc_resp_send_data(s, qp, &grh)) ||
        !plc_resp_send_data(s, qp, h)) {
        return;
    }
    plc_recv_done(s, qp, h->kind == CX_PKT_SEND_ONLY_IMM ?
                  CX_CQE_RECV_SEND_IMM : CX_CQE_RECV_SEND, h);
}

/*
 * Answers
 */

static void plc_aeth(PlcPacket *p, uint8_t syndrome, uint32_t msn)
{
    stl_be_p(plc_packet_aeth(p), (uint32_t)syndrome << 24 | msn);
}

/* The next packet of the answer to a READ; NULL: it cannot go on */
static PlcPacket *plc_read_packet(PeerlaneCX *s, PlcQp *qp, PlcReply *reply)
{
    uint32_t bytes = MIN(qp->mtu, reply->len - reply->done);
    bool first = !reply->done, last = reply->done + bytes == reply->len;
    uint8_t kind = first && last ? CX_PKT_READ_ONLY : first ?
                   CX_PKT_READ_FIRST : last ? CX_PKT_READ_LAST :
                   CX_PKT_READ_MIDDLE;
    PlcSge from = {
        .addr = reply->va + reply->done, .len = bytes, .key = reply->rkey,
        .pd = reply->pd, .at = -1,
    };
    uint8_t *payload;
    PlcPacket *p = plc_packet_new(plc_qp_service(qp) | kind, qp->remote_qpn,
                                  plc_psn_add(reply->psn,
                                              reply->done / qp->mtu),
                                  bytes, &payload);
    enum plc_result result = plc_mkey_rw(s, qp, &from, 1, NULL, 0, payload,
                                         bytes, PLC_REMOTE_READ);

    if (result || s->old) {
        g_free(p);
        if (!s->old && !(result == PLC_ABSENT &&
                         plc_fault(s, qp, &qp->resp.fault))) {
            /* This is the last answer, and the others will not be sent */
            qp->resp.replies = 1;
            qp->resp.closing = true;
            if (result != PLC_FAILED) {
                plc_qc_count(qp, CX_QC_RESP_REMOTE_ACCESS);
                plc_event_qp(s, CX_EVENT_WQ_ACCESS, qp->id);
            }
            *reply = (PlcReply) {
                .kind = PLC_REPLY_NAK, .fatal = true, .msn = reply->msn,
                .syndrome = CX_AETH_NAK | (result == PLC_FAILED ?
                                           CX_NAK_OPERATION : CX_NAK_ACCESS),
                .psn = plc_psn_add(reply->psn, reply->done / qp->mtu),
            };
        }
        return NULL;
    }
    if (kind != CX_PKT_READ_MIDDLE) {
        plc_aeth(p, CX_AETH_ACK | CX_AETH_NO_CREDITS, reply->msn);
    }
    reply->done += bytes;
    return p;
}

static PlcPacket *plc_reply_packet(PeerlaneCX *s, PlcQp *qp, PlcReply *reply)
{
    uint8_t *payload;
    PlcPacket *p;

    switch (reply->kind) {
    case PLC_REPLY_READ:
        return plc_read_packet(s, qp, reply);
    case PLC_REPLY_ATOMIC:
        p = plc_packet_new(plc_qp_service(qp) | CX_PKT_ATOMIC_ACK,
                           qp->remote_qpn, reply->psn, 0, &payload);
        plc_aeth(p, CX_AETH_ACK | CX_AETH_NO_CREDITS, reply->msn);
        stq_be_p(payload - CX_ATOMIC_ACK_SIZE, reply->value);
        return p;
    default:
        p = plc_packet_new(plc_qp_service(qp) | CX_PKT_ACK, qp->remote_qpn,
                           reply->psn, 0, NULL);
        plc_aeth(p, reply->syndrome, reply->msn);
        return p;
    }
}

/* Returns whether there is more to do at once */
bool plc_resp_step(PeerlaneCX *s, PlcQp *qp, uint64_t *cost)
{
    PlcResp *r = &qp->resp;
    bool again;

    for (unsigned i = 0; i < PLC_BURST && r->replies; i++) {
        PlcReply *reply = &r->reply[r->first_reply];
        PlcPacket *p;

        if (!plc_net_room(s, qp, &again)) {
            return again;
        }
        p = plc_reply_packet(s, qp, reply);
        if (s->old) {
            return false;
        }
        if (!p) {
            /* The answer waits for a page, or it has become another one */
            if (reply->kind == PLC_REPLY_READ) {
                return false;
            }
            continue;
        }
        *cost += p->len;
        plc_net_send(s, qp, qp->rlid, p);
        if (reply->fatal) {
            plc_qp_to_error(qp);
            return false;
        }
        if (reply->kind != PLC_REPLY_READ || reply->done == reply->len) {
            r->first_reply = (r->first_reply + 1) % PLC_MAX_REPLIES;
            r->replies--;
        }
        /* A list that was searched may have been all of a slice */
        if (s->walked >= PLC_SLICE_BUDGET) {
            break;
        }
    }
    return r->replies;
}
