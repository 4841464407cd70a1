/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the requester.
 *
 * Entries are taken up in order and get sequence numbers; a READ has as many as
 * its answer has packets.  Packets from una_psn to send_psn are on their way.
 * What is lost is sent again from una_psn on: nothing is kept but the entries.
 * Without acknowledges, an entry is done when its last packet has been sent.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"
#include "trace.h"

#define PLC_MAX_WORKS           16      /* entries at work */
#define PLC_WINDOW              128     /* packets on their way */
#define PLC_ACK_EVERY           32
/* No message is begun so far ahead; two of 2^22 packets can be told apart */
#define PLC_MAX_AHEAD           (1 << 21)
#define PLC_RNR_FOREVER         7
#define PLC_PUT_OFF             16      /* times */
#define PLC_BURST               8       /* packets in a step */

/* How long a code of the RNR timer stands for, in steps of 10 us */
static const uint32_t plc_rnr_time[32] = {
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
    512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
    32768, 49152,
};

/* Nothing is at work; numbers start with @psn */
static void plc_req_begin(PlcQp *qp, uint32_t psn)
{
    PlcReq *r = &qp->req;
    PlcWork *w;

    while ((w = QTAILQ_FIRST(&r->works))) {
        QTAILQ_REMOVE(&r->works, w, link);
        g_free(w);
    }
    *r = (PlcReq) {
        .next_psn = psn, .send_psn = psn, .sent_psn = psn, .una_psn = psn,
    };
    QTAILQ_INIT(&r->works);
    if (qp->ack_alarm.timer) {
        plc_alarm_clear(&qp->ack_alarm);
    }
}

/* Numbers start where the context says */
void plc_req_reset(PlcQp *qp)
{
    plc_req_begin(qp, cx_get(qp->ctx, CX_QPC_NEXT_SEND_PSN));
}

/* Nothing is at work, but numbers go on behind what was sent */
void plc_req_cancel(PlcQp *qp)
{
    plc_req_begin(qp, qp->req.una_psn);
}

/* Nothing is sent for one, and nothing answers it */
static bool plc_is_nop(const PlcWork *w)
{
    return w->opcode == CX_WR_NOP && !w->syndrome;
}

static bool plc_req_waits(PlcQp *qp)
{
    return plc_psn_diff(qp->req.send_psn, qp->req.una_psn) > 0;
}

/*
 * The specification permits one to four times 4.096 us << ack_timeout; the
 * longest is the best for who shares a processor with the other end.
 */
static void plc_req_arm(PlcQp *qp)
{
    int64_t ns = 4 * 4096ll << (qp->ack_timeout ? qp->ack_timeout : 16);

    plc_alarm_set(&qp->ack_alarm, ns);
}

static bool plc_psn_in(const PlcWork *w, uint32_t psn)
{
    int32_t n = plc_psn_diff(psn, w->psn);

    return n >= 0 && n < (int32_t)w->packets;
}

/*
 * Send again from the oldest on; false: that was tried often enough.  Without
 * an ack_timeout, only what the other end asks for counts.
 */
static bool plc_req_again(PeerlaneCX *s, PlcQp *qp, bool timeout)
{
    PlcReq *r = &qp->req;
    PlcWork *w = QTAILQ_FIRST(&r->works);

    if (w && (!timeout || qp->ack_timeout) && r->tries++ >= qp->retry_count) {
        plc_sq_done(s, qp, w, CX_SYND_RETRY);
        return false;
    }
    plc_count(s, PLC_CNT_RETRANSMISSIONS, 1);
    trace_peerlane_cx_again(plc_name(s), qp->id, r->una_psn, r->send_psn,
                            r->tries);
    r->put_off = 0;
    r->send_psn = r->una_psn;
    plc_qp_schedule(qp);
    return true;
}

/* Something was acknowledged, up to @psn */
static void plc_req_progress(PlcQp *qp, uint32_t psn)
{
    PlcReq *r = &qp->req;

    r->una_psn = psn;
    if (plc_psn_diff(r->send_psn, psn) < 0) {
        r->send_psn = psn;
    }
    r->put_off = 0;
    r->tries = 0;
    r->rnr_tries = 0;
    r->asked = false;
    r->timed_out = false;
    if (plc_req_waits(qp)) {
        plc_req_arm(qp);
    } else {
        plc_alarm_clear(&qp->ack_alarm);
    }
    plc_qp_schedule(qp);
}

/*
 * All before @psn has arrived, and @psn has not if it is @lost.  False: that is
 * no news of anything that was sent, or an answer before it is missing, which is
 * asked for again.
 */
static bool plc_req_acked(PeerlaneCX *s, PlcQp *qp, uint32_t psn, bool lost)
{
    PlcReq *r = &qp->req;
    PlcWork *w;

    if (plc_psn_diff(psn, r->una_psn) < 0 ||
        plc_psn_diff(psn, r->sent_psn) > 0) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return false;
    }
    while ((w = QTAILQ_FIRST(&r->works)) &&
           (plc_psn_diff(psn, r->una_psn) > 0 || plc_is_nop(w))) {
        uint32_t end = plc_psn_add(w->psn, w->packets);

        if (w->packets && plc_needs_answer(w->opcode)) {
            /*
             * Once for each hole: who answers late is not asked for each.  And
             * once more for each packet that is lost when it was sent again.
             */
            if (!r->asked || (lost && plc_psn_diff(r->send_psn, psn) > 0)) {
                plc_qc_count(qp, r->asked ? CX_QC_SEQUENCE_NAKS :
                             CX_QC_IMPLIED_NAKS);
                r->asked = true;
                plc_req_again(s, qp, false);
            }
            return false;
        }
        if (plc_psn_diff(psn, end) < 0) {
            plc_req_progress(qp, psn);
            break;
        }
        if (w->packets) {
            plc_req_progress(qp, end);
        }
        plc_sq_done(s, qp, w, 0);
        if (qp->state != CX_QP_RTS) {
            return false;
        }
    }
    return true;
}

static void plc_req_rnr(PeerlaneCX *s, PlcQp *qp, uint8_t code)
{
    PlcReq *r = &qp->req;
    PlcWork *w = QTAILQ_FIRST(&r->works);

    /* Who waits for room in the queue of page faults waits for this, too */
    if (!w || !plc_req_waits(qp)) {
        return;
    }
    plc_qc_count(qp, CX_QC_RNR_NAKS);
    if (qp->rnr_retry != PLC_RNR_FOREVER && r->rnr_tries++ >= qp->rnr_retry) {
        plc_sq_done(s, qp, w, CX_SYND_RNR);
        return;
    }
    r->send_psn = r->una_psn;
    r->timed_out = false;
    plc_alarm_clear(&qp->ack_alarm);
    plc_qp_wait(qp, (int64_t)plc_rnr_time[code] * 10 * SCALE_US);
}

static void plc_req_nak(PeerlaneCX *s, PlcQp *qp, uint8_t code)
{
    static const uint8_t syndrome[] = {
        [CX_NAK_REQUEST] = CX_SYND_REMOTE_REQUEST,
        [CX_NAK_ACCESS] = CX_SYND_REMOTE_ACCESS,
        [CX_NAK_OPERATION] = CX_SYND_REMOTE_OPERATION,
    };
    PlcReq *r = &qp->req;
    PlcWork *w = QTAILQ_FIRST(&r->works);

    if (!w || r->sent_psn == r->una_psn) {
        return;
    }
    if (code == CX_NAK_SEQUENCE) {
        /* Unless it is going to be sent again anyway */
        if (plc_req_waits(qp)) {
            plc_qc_count(qp, CX_QC_SEQUENCE_NAKS);
            plc_req_again(s, qp, false);
        }
    } else if (code < ARRAY_SIZE(syndrome)) {
        plc_sq_done(s, qp, w, syndrome[code]);
    } else {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
    }
}

/* The oldest entry waits for an answer, and this is a piece of it */
static void plc_req_answer(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    PlcReq *r = &qp->req;
    PlcWork *w = QTAILQ_FIRST(&r->works);
    enum plc_result result;
    uint8_t word[8];
    bool last;

    if (!w || !plc_needs_answer(w->opcode) || h->psn != r->una_psn ||
        !plc_psn_in(w, h->psn) || !plc_req_waits(qp)) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return;
    }
    last = plc_psn_add(w->psn, w->packets - 1) == h->psn;
    if (plc_is_atomic(w->opcode)) {
        if (h->kind != CX_PKT_ATOMIC_ACK) {
            plc_sq_done(s, qp, w, CX_SYND_BAD_RESPONSE);
            return;
        }
        if (s->st->atomic_mode) {
            stq_le_p(word, h->value);
        } else {
            stq_be_p(word, h->value);
        }
        result = plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, 0, word, 8,
                             PLC_LOCAL_WRITE);
    } else {
        uint32_t at = plc_psn_diff(h->psn, w->psn) * qp->mtu;

        if (h->kind == CX_PKT_ATOMIC_ACK ||
            last != (h->kind == CX_PKT_READ_LAST ||
                     h->kind == CX_PKT_READ_ONLY) ||
            h->bytes != MIN(qp->mtu, w->total - at)) {
            plc_sq_done(s, qp, w, CX_SYND_BAD_RESPONSE);
            return;
        }
        result = plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, at,
                             (void *)h->payload, h->bytes, PLC_LOCAL_WRITE);
    }
    if (s->old) {
        return;
    }
    if (result == PLC_ABSENT) {
        /* It is asked for again, when the page is there */
        w->checked = false;
        r->asked = true;
        r->timed_out = false;
        r->send_psn = r->una_psn;
        plc_alarm_clear(&qp->ack_alarm);
        plc_qp_schedule(qp);
        return;
    }
    if (result) {
        plc_sq_done(s, qp, w, result == PLC_DENIED ? CX_SYND_LOCAL_PROTECTION :
                    CX_SYND_LOCAL_QP);
        return;
    }
    plc_req_progress(qp, plc_psn_add(h->psn, 1));
    if (last) {
        plc_sq_done(s, qp, w, 0);
    }
}

void plc_req_packet(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    uint8_t value = h->syndrome & CX_AETH_VALUE;

    if (qp->state != CX_QP_RTS) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return;
    }
    if (h->kind != CX_PKT_ACK) {
        if (plc_req_acked(s, qp, h->psn, false)) {
            plc_req_answer(s, qp, h);
        }
        return;
    }
    switch (h->syndrome & CX_AETH_KIND) {
    case CX_AETH_ACK:
        plc_req_acked(s, qp, plc_psn_add(h->psn, 1), false);
        break;
    case CX_AETH_RNR:
        if (plc_req_acked(s, qp, h->psn, false)) {
            plc_req_rnr(s, qp, value);
        }
        break;
    case CX_AETH_NAK:
        if (plc_req_acked(s, qp, h->psn, value == CX_NAK_SEQUENCE)) {
            plc_req_nak(s, qp, value);
        }
        break;
    default:
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        break;
    }
}

/* How many READs and atomics are on their way */
static uint32_t plc_req_asked(const PlcReq *r)
{
    uint32_t n = 0;
    PlcWork *w;

    QTAILQ_FOREACH(w, &r->works, link) {
        n += w->packets && plc_needs_answer(w->opcode) &&
             plc_psn_diff(r->send_psn, w->psn) > 0;
    }
    return n;
}

static void plc_req_number(PlcQp *qp, PlcWork *w)
{
    PlcReq *r = &qp->req;

    w->psn = r->next_psn;
    if (!w->syndrome && w->opcode != CX_WR_NOP && w->opcode != CX_WR_UMR) {
        w->packets = plc_is_atomic(w->opcode) ? 1 :
                     MAX(1, DIV_ROUND_UP(w->total, qp->mtu));
    }
    r->next_psn = plc_psn_add(r->next_psn, w->packets);
}

/* The entry that is to be sent next, perhaps a new one */
static PlcWork *plc_req_work(PeerlaneCX *s, PlcQp *qp)
{
    PlcReq *r = &qp->req;
    PlcWork *w;

    QTAILQ_FOREACH(w, &r->works, link) {
        /* Nothing passes one that changes a key */
        if (w->syndrome || w->opcode == CX_WR_UMR ||
            plc_psn_in(w, r->send_psn)) {
            return w;
        }
    }
    if (r->count >= PLC_MAX_WORKS ||
        plc_psn_diff(r->next_psn, r->una_psn) > PLC_MAX_AHEAD) {
        return NULL;
    }
    w = plc_sq_fetch(s, qp);
    if (w) {
        plc_req_number(qp, w);
    }
    return w;
}

static uint8_t plc_req_kind(const PlcWork *w, bool first, bool last)
{
    bool write = w->opcode == CX_WR_WRITE || w->opcode == CX_WR_WRITE_IMM;
    bool imm = w->opcode == CX_WR_SEND_IMM || w->opcode == CX_WR_WRITE_IMM;
    uint8_t kind;

    switch (w->opcode) {
    case CX_WR_READ:
        return CX_PKT_READ_REQUEST;
    case CX_WR_COMPARE_SWAP:
        return CX_PKT_COMPARE_SWAP;
    case CX_WR_FETCH_ADD:
        return CX_PKT_FETCH_ADD;
    }
    if (last && w->opcode == CX_WR_SEND_INV) {
        return first ? CX_PKT_SEND_ONLY_INV : CX_PKT_SEND_LAST_INV;
    }
    kind = first && last ? CX_PKT_SEND_ONLY : first ? CX_PKT_SEND_FIRST :
           last ? CX_PKT_SEND_LAST : CX_PKT_SEND_MIDDLE;
    return kind + (write ? CX_PKT_WRITE_FIRST - CX_PKT_SEND_FIRST : 0) +
           (last && imm);
}

/* Who a datagram is from, and for whom that is */
static void plc_req_datagram(PeerlaneCX *s, PlcQp *qp, const PlcWork *w,
                             PlcPacket *p)
{
    uint8_t *deth = plc_packet_deth(p), *grh = plc_bth(p) - CX_GRH_SIZE;

    stl_be_p(deth, w->qkey);
    stl_be_p(deth + 4, qp->sqpn ? qp->sqpn : qp->id);
    p->datagram = true;
    p->path = w->path;
    p->grh = w->grh;
    if (w->grh) {
        stl_be_p(grh, 6u << 28 | (uint32_t)w->wqe[CX_AV_TCLASS] << 20 |
                 (ldl_be_p(w->wqe + CX_AV_GRH) & 0xfffff));
        stw_be_p(grh + 4, p->len + CX_ICRC_SIZE);
        grh[6] = CX_GRH_NEXT;
        grh[7] = w->wqe[CX_AV_HOP_LIMIT];
        plc_gid(s, grh + 8);
        memcpy(grh + 24, w->wqe + CX_AV_RGID, 16);
    }
}

/* Make the packet @psn of @w; NULL: the entry has failed, or no device is left */
static PlcPacket *plc_req_make(PeerlaneCX *s, PlcQp *qp, PlcWork *w,
                               uint32_t psn, bool last)
{
    uint32_t n = plc_psn_diff(psn, w->psn);
    bool answer = plc_needs_answer(w->opcode);
    uint8_t kind = plc_req_kind(w, !n, last);
    uint32_t at = n * qp->mtu, bytes = answer ? 0 : MIN(qp->mtu, w->total - at);
    enum plc_result result = PLC_DONE;
    uint8_t *payload, *reth;
    PlcPacket *p;

    p = plc_packet_new(plc_qp_service(qp) | kind, w->qpn, psn, bytes, &payload);
    reth = plc_packet_reth(p);
    if (kind == CX_PKT_READ_REQUEST || kind == CX_PKT_WRITE_FIRST ||
        kind == CX_PKT_WRITE_ONLY || kind == CX_PKT_WRITE_ONLY_IMM ||
        plc_is_atomic(w->opcode)) {
        stq_be_p(reth, w->raddr + (kind == CX_PKT_READ_REQUEST ? at : 0));
        stl_be_p(reth + 8, w->rkey);
    }
    if (plc_is_atomic(w->opcode)) {
        stq_be_p(reth + 12, w->swap_add);
        stq_be_p(reth + 20, w->compare);
    } else if (kind == CX_PKT_READ_REQUEST) {
        stl_be_p(reth + 12, w->total - at);
    } else if (kind == CX_PKT_WRITE_FIRST || kind == CX_PKT_WRITE_ONLY ||
               kind == CX_PKT_WRITE_ONLY_IMM) {
        stl_be_p(reth + 12, w->total);
    }
    if (kind == CX_PKT_SEND_LAST_INV || kind == CX_PKT_SEND_ONLY_INV ||
        kind == CX_PKT_SEND_LAST_IMM || kind == CX_PKT_SEND_ONLY_IMM ||
        kind == CX_PKT_WRITE_LAST_IMM || kind == CX_PKT_WRITE_ONLY_IMM) {
        stl_be_p(plc_packet_imm(p), w->imm);
    }
    if (plc_qp_datagrams(qp)) {
        plc_req_datagram(s, qp, w, p);
    }
    if (qp->st == CX_ST_XRC) {
        stl_be_p(plc_packet_xrceth(p), w->srqn);
    }
    if (last && w->flags & CX_CTRL_SOLICITED) {
        plc_bth(p)[CX_BTH_FLAGS] |= CX_BTH_SOLICITED;
    }
    if (!answer) {
        result = plc_mkey_rw(s, qp, w->sge, w->sges, w->wqe, at, payload, bytes,
                             PLC_LOCAL_READ);
    }
    if (s->old || result) {
        /* An absent page is asked for when it is checked again */
        w->checked = false;
        w->syndrome = result == PLC_ABSENT ? 0 :
                      result == PLC_DENIED ? CX_SYND_LOCAL_PROTECTION :
                      CX_SYND_LOCAL_QP;
        g_free(p);
        return NULL;
    }
    return p;
}

static void plc_req_send(PeerlaneCX *s, PlcQp *qp, PlcWork *w)
{
    PlcReq *r = &qp->req;
    bool answer = plc_needs_answer(w->opcode);
    uint32_t psn = r->send_psn, end = plc_psn_add(w->psn, w->packets);
    bool last = answer || plc_psn_add(psn, 1) == end;
    enum plc_result result = PLC_DONE;
    PlcPacket *p;

    assert(w->packets);
    if (!w->checked) {
        result = plc_mkey_check(s, qp, w->sge, w->sges, 0, w->total,
                                answer ? PLC_LOCAL_WRITE : PLC_LOCAL_READ);
    }
    if (result == PLC_ABSENT && plc_fault(s, qp, &r->fault)) {
        return;
    }
    if (result) {
        w->syndrome = CX_SYND_LOCAL_PROTECTION;
        return;
    }
    w->checked = true;
    r->fault.failed = false;
    p = plc_req_make(s, qp, w, psn, last);
    if (!p) {
        return;
    }
    r->send_psn = answer ? end : plc_psn_add(psn, 1);
    if (plc_psn_diff(r->send_psn, r->sent_psn) > 0) {
        r->sent_psn = r->send_psn;
    }
    if (!plc_qp_reliable(qp)) {
        plc_net_send(s, qp, w->lid, p);
        r->una_psn = r->send_psn;
        if (last) {
            plc_sq_done(s, qp, w, 0);
        }
        return;
    }
    if (last || psn % PLC_ACK_EVERY == PLC_ACK_EVERY - 1) {
        stl_be_p(plc_bth(p) + CX_BTH_PSN, psn | CX_BTH_ACK_REQ);
    }
    if (!qp->ack_alarm.end) {
        plc_req_arm(qp);
    }
    plc_net_send(s, qp, w->lid, p);
}

/* One packet, or one entry that ends; false: there is nothing to do now */
static bool plc_req_one(PeerlaneCX *s, PlcQp *qp)
{
    PlcReq *r = &qp->req;
    PlcWork *w = plc_req_work(s, qp);
    PlcWork *first = QTAILQ_FIRST(&r->works);

    if (s->old || qp->state != CX_QP_RTS) {
        return false;
    }
    /* Those that end without an answer end in order, too */
    if (first && (!first->packets || first->syndrome)) {
        uint8_t syndrome = first->syndrome;

        if (!syndrome && first->opcode == CX_WR_UMR) {
            syndrome = plc_umr(s, qp, first);
        }
        if (s->old) {
            return false;
        }
        plc_sq_done(s, qp, first, syndrome);
        return true;
    }
    if (w && plc_is_nop(w)) {
        /* It ends in its turn; what comes behind it need not wait */
        return true;
    }
    if (!w || w->syndrome || w->opcode == CX_WR_UMR ||
        plc_psn_diff(r->send_psn, r->una_psn) >= PLC_WINDOW) {
        return false;
    }
    if (r->send_psn == w->psn && plc_req_asked(r) &&
        (w->flags & CX_CTRL_FENCE ||
         (plc_needs_answer(w->opcode) && plc_req_asked(r) >= qp->rd_atomic))) {
        return false;
    }
    plc_req_send(s, qp, w);
    return true;
}

/*
 * Of its own other end the device knows that it is not yet done.  Packets that
 * wait may be those of others: they do not put the timeout off for ever.
 */
static bool plc_req_busy(PeerlaneCX *s, PlcQp *qp)
{
    PlcQp *to = plc_table_get(&s->st->qp, qp->remote_qpn);

    if (qp->rlid != s->lid || !to || to->rlid != s->lid ||
        to->remote_qpn != qp->id ||
        (to->state != CX_QP_RTR && to->state != CX_QP_RTS)) {
        return false;
    }
    return to->resp.replies ||
           (s->st->rx_own && qp->req.put_off++ < PLC_PUT_OFF);
}

/* Returns whether there may be more to do at once */
bool plc_req_step(PeerlaneCX *s, PlcQp *qp, uint64_t *cost)
{
    PlcReq *r = &qp->req;
    bool again;

    if (!qp->has_sq || qp->waiting) {
        return false;
    }
    if (r->timed_out) {
        r->timed_out = false;
        if (plc_req_waits(qp)) {
            plc_req_arm(qp);
            if (!plc_req_busy(s, qp)) {
                r->asked = false;
                plc_qc_count(qp, CX_QC_TIMEOUTS);
                if (!plc_req_again(s, qp, true)) {
                    return false;
                }
            }
        }
    }
    for (unsigned i = 0; i < PLC_BURST; i++) {
        if (qp->waiting || r->fault.token) {
            return false;
        }
        if (plc_qp_service(qp) >= 0 && !plc_net_room(s, qp, &again)) {
            return again;
        }
        if (!plc_req_one(s, qp)) {
            return false;
        }
        if (qp->state != CX_QP_RTS || s->old) {
            return false;
        }
        *cost += qp->mtu;
        /* A list that was read or searched may have been all of a slice */
        if (s->walked >= PLC_SLICE_BUDGET) {
            break;
        }
    }
    return true;
}
