/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: frames, from send queues to the wire and from there into
 * receive queues.
 */
#include "qemu/osdep.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "peerlane-cx-eth.h"
#include "trace.h"

#define PLC_BURST               8       /* entries in a step */
#define PLC_MAX_HEAD            256     /* inline, in front of segments */
#define PLC_MAX_SEGMENTS        8192    /* of an entry */
#define PLC_IP4_ADDRESSES       12
#define PLC_IP6_ADDRESSES       8

void plc_queue_schedule(PeerlaneCX *s, PlcQueue *q)
{
    if (!q->queued) {
        q->queued = true;
        QTAILQ_INSERT_TAIL(&s->st->eth->ready, q, link);
    }
}

bool plc_eth_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t sqn)
{
    PlcQueue *q = plc_table_get(&s->st->eth->sq, sqn);

    if (!q || q->uar != uar) {
        return false;
    }
    q->rung = true;
    plc_queue_schedule(s, q);
    return true;
}

/* The wire takes frames again */
void plc_eth_unblocked(PeerlaneCX *s)
{
    PlcTable *t = &s->st->eth->sq;

    for (uint32_t i = t->first; i < t->size; i++) {
        PlcQueue *q = plc_table_get(t, i);

        if (q && q->state != CX_QUEUE_RST) {
            plc_queue_schedule(s, q);
        }
    }
}

/* How many entries are posted; false: that cannot be read, or cannot be */
static bool plc_queue_posted(PeerlaneCX *s, PlcQueue *q, unsigned at,
                             uint32_t *posted)
{
    uint8_t word[4];
    bool ok = plc_read(s, q->dbr + at, word, sizeof(word));

    /* What it tells of is read after it */
    smp_rmb();
    *posted = (ldl_be_p(word) - q->head) & 0xffff;
    return ok && *posted <= 1u << q->log_size;
}

/* A piece of the ring, from an entry on */
static bool plc_queue_read(PeerlaneCX *s, PlcQueue *q, uint32_t index,
                           uint8_t *p, uint32_t len)
{
    uint32_t size = 1u << (q->log_size + q->log_stride);
    uint32_t at = (index << q->log_stride) & (size - 1);

    while (len) {
        uint32_t n = MIN(len, size - at);

        if (!plc_buf_read(s, &q->buf, at, p, n)) {
            return false;
        }
        p += n;
        len -= n;
        at = 0;
    }
    return true;
}

static void plc_queue_error(PeerlaneCX *s, PlcQueue *q, bool recv,
                            uint8_t opcode, uint8_t syndrome)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 };

    plc_count(s, PLC_CNT_WQE_ERRORS, 1);
    stl_be_p(cqe + CX_CQE_USER_INDEX, q->user_index);
    plc_cqe_syndrome(cqe, recv, syndrome);
    stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)opcode << 24 | q->id);
    stw_be_p(cqe + CX_CQE_COUNTER, q->head);
    plc_cq_post(s, q->cqn, cqe, recv ? CX_CQE_RECV_ERROR : CX_CQE_REQUEST_ERROR,
                false);
}

/* It fails for a reason that no completion tells */
static void plc_queue_fail(PeerlaneCX *s, PlcQueue *q)
{
    uint8_t eqe[CX_EQE_SIZE] = { 0 };
    PlcEq *eq = plc_eq_of(s, CX_EVENT_WQ_FATAL);

    q->state = CX_QUEUE_ERR;
    if (eq) {
        eqe[CX_EQE_QUEUE_TYPE] = q->id >= PLC_FIRST_RQN ? CX_QUEUE_TYPE_RQ :
                                 CX_QUEUE_TYPE_SQ;
        stl_be_p(eqe + CX_EQE_QPN, q->id);
        plc_eq_post(s, eq, CX_EVENT_WQ_FATAL, eqe);
    }
}

static void plc_queues_cq_lost(PeerlaneCX *s, PlcTable *t, uint32_t cqn)
{
    for (uint32_t i = t->first; i < t->size && !s->old; i++) {
        PlcQueue *q = plc_table_get(t, i);

        if (q && q->cqn == cqn && q->state == CX_QUEUE_RDY) {
            plc_queue_fail(s, q);
            if (!s->old) {
                plc_queue_schedule(s, q);
            }
        }
    }
}

void plc_eth_cq_lost(PeerlaneCX *s, uint32_t cqn)
{
    plc_queues_cq_lost(s, &s->st->eth->sq, cqn);
    plc_queues_cq_lost(s, &s->st->eth->rq, cqn);
}

/* A queue in error gives back what was posted */
static bool plc_queue_flush(PeerlaneCX *s, PlcQueue *q, bool recv)
{
    uint8_t ctrl[CX_WQE_SEG] = { 0 };
    uint32_t posted, n = 1;

    if (!plc_queue_posted(s, q, recv ? CX_DBR_RECV : CX_DBR_SEND, &posted) ||
        !posted) {
        return false;
    }
    if (!recv && plc_queue_read(s, q, q->head, ctrl, sizeof(ctrl))) {
        uint32_t ds = ldl_be_p(ctrl + CX_CTRL_QPN_DS) & CX_CTRL_DS_MASK;

        n = MIN(posted, DIV_ROUND_UP(MAX(ds, 1), CX_WQE_BB / CX_WQE_SEG));
    }
    plc_queue_error(s, q, recv, ctrl[CX_CTRL_OPCODE + 3], CX_SYND_FLUSHED);
    if (!s->old) {
        q->head += n;
    }
    return !s->old;
}

/* Counted at all, and for a port by what they are for: all, one, several */
static void plc_eth_count(PeerlaneCX *s, bool out, const uint8_t *frame,
                          uint32_t len)
{
    static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
    unsigned kind = !memcmp(frame, all, 6) ? 0 : !(frame[0] & 1) ? 1 : 2;

    plc_count(s, out ? PLC_CNT_ETH_OUT : PLC_CNT_ETH_IN, 1);
    plc_count(s, out ? PLC_CNT_ETH_BYTES_OUT : PLC_CNT_ETH_BYTES_IN, len);
    s->eth_count[out][kind][0]++;
    s->eth_count[out][kind][1] += len;
}

/*
 * Sending
 */

/* A frame that may be changed, of @len bytes; there is room for a tag */
static void plc_eth_out(PeerlaneCX *s, uint8_t *frame, uint32_t len)
{
    if (len < PLC_MIN_FRAME) {
        memset(frame + len, 0, PLC_MIN_FRAME - len);
        len = PLC_MIN_FRAME;
    }
    if (!s->nic) {
        /* Nobody is there */
        plc_count(s, PLC_CNT_ETH_DROPPED, 1);
        return;
    }
    plc_eth_count(s, true, frame, len);
    plc_net_out(s, frame, len);
}

/* An entry that sends, taken apart */
typedef struct PlcSend {
    uint8_t flags;              /* checksums to fill in */
    uint16_t mss;               /* 0: one frame */
    bool tag;                   /* to put in */
    uint16_t tci;
    uint32_t head;              /* bytes in the entry */
    unsigned sges;
    uint64_t total;             /* behind them */
    PlcSge sge[PLC_MAX_SGE];
} PlcSend;

static uint8_t plc_send_parse(PlcSend *e, const uint8_t *wqe, uint8_t opcode,
                              uint32_t ds)
{
    uint32_t end = ds * CX_WQE_SEG, word, at = CX_ETH_DATA;

    if (end < CX_ETH_DATA) {
        return CX_SYND_LOCAL_QP;
    }
    word = lduw_be_p(wqe + CX_ETH_INLINE);
    e->flags = wqe[CX_ETH_CS_FLAGS];
    e->mss = 0;
    e->head = 0;
    e->tag = word & CX_ETH_INSERT_VLAN;
    e->tci = lduw_be_p(wqe + CX_ETH_VLAN_TCI);
    if (!e->tag) {
        e->head = word & CX_ETH_INLINE_SIZE;
        /* Two bytes of it are in the segment itself */
        at += ROUND_UP(MAX(e->head, 2) - 2, CX_WQE_SEG);
    }
    if (at > end) {
        return CX_SYND_LOCAL_QP;
    }
    if (opcode == CX_WR_LSO) {
        e->mss = lduw_be_p(wqe + CX_ETH_MSS) & 0x3fff;
        if (!e->mss || !e->head || e->head > PLC_MAX_HEAD) {
            return CX_SYND_LOCAL_QP;
        }
    }
    if (!plc_parse_list(wqe, at, end, false, 0, e->sge, &e->sges, &e->total)) {
        return CX_SYND_LOCAL_QP;
    }
    if (opcode == CX_WR_LSO ? !e->total || e->total > 1u << PLC_LOG_MAX_LSO ||
                              e->total / e->mss > PLC_MAX_SEGMENTS ||
                              e->head + e->mss > PLC_MAX_FRAME :
        e->head + e->total < ETH_HLEN ||
        e->head + e->total > PLC_MAX_FRAME - (e->tag ? 4 : 0)) {
        return CX_SYND_LOCAL_LENGTH;
    }
    return 0;
}

/* The frames of an entry leave; returns the syndrome that it fails with */
static uint8_t plc_send_do(PeerlaneCX *s, PlcQueue *q, PlcSend *e,
                           const uint8_t *wqe, uint64_t *cost)
{
    g_autofree uint8_t *data = g_malloc(e->head + e->total + PLC_MIN_FRAME);
    uint8_t seg[PLC_MAX_FRAME];
    enum plc_result result;

    memcpy(data, wqe + CX_ETH_START, e->head);
    result = plc_mkey_rw(s, q->as, e->sge, e->sges, wqe, 0, data + e->head,
                         e->total, PLC_LOCAL_READ);
    if (result || s->old) {
        return result == PLC_DENIED || result == PLC_ABSENT ?
               CX_SYND_LOCAL_PROTECTION : CX_SYND_LOCAL_QP;
    }
    *cost += e->total;
    if (e->tag) {
        memmove(data + ETH_HLEN + 2, data + ETH_HLEN - 2,
                e->head + e->total - (ETH_HLEN - 2));
        stw_be_p(data + 12, ETH_P_VLAN);
        stw_be_p(data + 14, e->tci);
        e->total += 4;
    }
    if (!e->mss) {
        plc_frame_checksum(data, e->head + e->total, e->flags);
        plc_eth_out(s, data, e->head + e->total);
        return 0;
    }
    for (uint32_t at = 0, n = 0; at < e->total; n++) {
        uint32_t len = MIN(e->mss, e->total - at);

        *cost += e->head;
        if (!plc_frame_segment(data, e->head, seg, at, len, e->total, n)) {
            return CX_SYND_LOCAL_QP;
        }
        memcpy(seg + e->head, data + e->head + at, len);
        plc_frame_checksum(seg, e->head + len, e->flags);
        plc_eth_out(s, seg, e->head + len);
        at += len;
    }
    return 0;
}

/* The entry at the head of a send queue that is ready; false: there is none */
static bool plc_sq_one(PeerlaneCX *s, PlcQueue *q, uint64_t *cost)
{
    uint8_t wqe[PLC_MAX_WQE + CX_WQE_SEG], syndrome = CX_SYND_LOCAL_QP;
    uint8_t cqe[CX_CQE_SIZE] = { 0 };
    uint32_t posted, qpn_ds, ds, blocks;
    uint8_t opcode;
    PlcSend e;

    if (!plc_queue_posted(s, q, CX_DBR_SEND, &posted)) {
        plc_queue_fail(s, q);
        return false;
    }
    if (!posted) {
        return false;
    }
    if (!plc_queue_read(s, q, q->head, wqe, CX_WQE_SEG)) {
        memset(wqe, 0, CX_WQE_SEG);
    }
    qpn_ds = ldl_be_p(wqe + CX_CTRL_QPN_DS);
    opcode = wqe[CX_CTRL_OPCODE + 3];
    ds = MAX(qpn_ds & CX_CTRL_DS_MASK, 1);
    blocks = DIV_ROUND_UP(ds, CX_WQE_BB / CX_WQE_SEG);
    /* An entry names its own place: another one is not what was posted */
    if (lduw_be_p(wqe + CX_CTRL_OPCODE + 1) == q->head &&
        qpn_ds >> 8 == q->id && blocks <= posted &&
        plc_queue_read(s, q, q->head, wqe, ds * CX_WQE_SEG)) {
        if (opcode == CX_WR_NOP) {
            syndrome = 0;
        } else if (opcode == CX_WR_SEND || opcode == CX_WR_LSO) {
            syndrome = plc_send_parse(&e, wqe, opcode, ds);
            if (!syndrome) {
                syndrome = plc_send_do(s, q, &e, wqe, cost);
            }
        }
    }
    trace_peerlane_cx_wqe(plc_name(s), q->id, q->head, opcode, ds);
    if (s->old) {
        return false;
    }
    plc_count(s, PLC_CNT_WQES, 1);
    if (syndrome) {
        plc_queue_error(s, q, false, opcode, syndrome);
        q->state = CX_QUEUE_ERR;
        q->head += MIN(blocks, posted);
        return !s->old;
    }
    if (wqe[CX_CTRL_FLAGS] & CX_CTRL_CQ_UPDATE) {
        stl_be_p(cqe + CX_CQE_USER_INDEX, q->user_index);
        stl_be_p(cqe + CX_CQE_OPCODE_QPN, (uint32_t)opcode << 24 | q->id);
        stw_be_p(cqe + CX_CQE_COUNTER, q->head);
        plc_cq_post(s, q->cqn, cqe, CX_CQE_REQUEST, false);
    }
    if (!s->old) {
        q->head += blocks;
    }
    return !s->old;
}

/* The turn of a queue; returns what it cost, 0: no queue has work */
static uint64_t plc_eth_step(PeerlaneCX *s)
{
    PlcQueue *q = QTAILQ_FIRST(&s->st->eth->ready);
    uint64_t cost = PLC_STEP_COST;
    bool recv, more = false;

    if (!q) {
        return 0;
    }
    QTAILQ_REMOVE(&s->st->eth->ready, q, link);
    q->queued = false;
    recv = q->id >= PLC_FIRST_RQN;
    q->rung = false;
    /* As much as a slice may be, but for the last entry */
    for (unsigned i = 0;
         i < PLC_BURST && cost + s->walked < PLC_SLICE_BUDGET; i++) {
        if (q->state == CX_QUEUE_ERR) {
            more = plc_queue_flush(s, q, recv);
        } else if (q->state == CX_QUEUE_RDY && !recv &&
                   !qatomic_read(&s->tx_blocked)) {
            more = plc_sq_one(s, q, &cost);
        } else {
            more = false;
        }
        if (!more || s->old) {
            break;
        }
    }
    if (!s->old && (more || q->rung)) {
        plc_queue_schedule(s, q);
    }
    return cost;
}

uint64_t plc_eth_turn(PeerlaneCX *s)
{
    PlcState *st = s->st;
    uint64_t cost;

    st->eth->turn = !st->eth->turn;
    cost = st->eth->turn ? plc_net_step(s) : plc_eth_step(s);
    if (!cost && !s->old) {
        cost = st->eth->turn ? plc_eth_step(s) : plc_net_step(s);
    }
    return cost;
}

/*
 * Receiving
 */

/* What of a frame is hashed; the same for both ways if that is asked for */
static uint32_t plc_hash(const PlcTir *tir, const PlcFrame *f, uint8_t *type)
{
    uint32_t fields = cx_get(tir->ctx, CX_TIRC_FIELDS), hash = 0, len = 0;
    bool v4 = f->version == 4;
    uint32_t size = v4 ? 4 : 16;
    const uint8_t *ip = f->data + f->l3 + (v4 ? PLC_IP4_ADDRESSES :
                                           PLC_IP6_ADDRESSES);
    const uint8_t *ports = f->data + f->l4;
    bool swap_ip = false, swap_ports = false;
    uint8_t in[36], key[CX_TIRC_KEY_SIZE];
    net_toeplitz_key k;

    *type = 0;
    if (!f->version || cx_get(tir->ctx, CX_TIRC_HASH) == CX_HASH_NONE) {
        return 0;
    }
    if (cx_get(tir->ctx, CX_TIRC_SYMMETRIC)) {
        swap_ip = memcmp(ip, ip + size, size) > 0;
        swap_ports = f->l4 && memcmp(ports, ports + 2, 2) > 0;
    }
    if (fields & CX_HASH_SRC_IP) {
        memcpy(in, ip + (swap_ip ? size : 0), size);
        len += size;
    }
    if (fields & CX_HASH_DST_IP) {
        memcpy(in + len, ip + (swap_ip ? 0 : size), size);
        len += size;
    }
    if (len) {
        *type |= (v4 ? 1 : 2) << 2;
    }
    if (f->l4 && fields & CX_HASH_SRC_PORT) {
        memcpy(in + len, ports + (swap_ports ? 2 : 0), 2);
        len += 2;
    }
    if (f->l4 && fields & CX_HASH_DST_PORT) {
        memcpy(in + len, ports + (swap_ports ? 0 : 2), 2);
        len += 2;
    }
    if (f->l4 && fields & (CX_HASH_SRC_PORT | CX_HASH_DST_PORT)) {
        *type |= (f->proto == IP_PROTO_TCP ? 1 : 2) << 6;
    }
    if (cx_get(tir->ctx, CX_TIRC_HASH) == CX_HASH_XOR8) {
        for (uint32_t i = 0; i < len; i++) {
            hash ^= in[i];
        }
        return hash;
    }
    memcpy(key, tir->ctx + CX_TIRC_KEY, sizeof(key));
    net_toeplitz_key_init(&k, key);
    net_toeplitz_add(&hash, in, len, &k);
    return hash;
}

static PlcQueue *plc_tir_queue(PeerlaneCX *s, PlcTir *tir, const PlcFrame *f,
                               uint32_t *hash, uint8_t *type)
{
    uint32_t rqn = cx_get(tir->ctx, CX_TIRC_RQN);

    *hash = plc_hash(tir, f, type);
    if (cx_get(tir->ctx, CX_TIRC_TYPE) == CX_TIR_INDIRECT) {
        PlcRqt *rqt = plc_table_get(&s->st->eth->rqt,
                                    cx_get(tir->ctx, CX_TIRC_RQTN));

        if (!rqt) {
            return NULL;
        }
        rqn = rqt->rqn[*hash % rqt->size];
    }
    return plc_table_get(&s->st->eth->rq, rqn);
}

/* What is known of a frame, for its completion */
static void plc_recv_cqe(const PlcFrame *f, uint8_t *cqe)
{
    uint8_t types = 0, ok = CX_CQE_L2_OK;

    if (f->version) {
        types |= (f->version == 4 ? CX_CQE_IPV4 : CX_CQE_IPV6) <<
                 CX_CQE_L3_SHIFT;
        ok |= plc_frame_l3_good(f) ? CX_CQE_L3_OK : 0;
    }
    if (f->l4) {
        uint8_t type = CX_CQE_UDP;

        if (f->proto == IP_PROTO_TCP) {
            const uint8_t *tcp = f->data + f->l4;

            type = !(tcp[13] & 0x10) ? CX_CQE_TCP_NO_ACK :
                   f->end - f->l4 > (uint32_t)(tcp[12] >> 4) * 4 ?
                   CX_CQE_TCP_DATA : CX_CQE_TCP_ACK;
        }
        types |= type << CX_CQE_L4_SHIFT;
        ok |= plc_frame_l4_good(f) ? CX_CQE_L4_OK : 0;
    }
    cqe[CX_CQE_HEADERS_OK] = ok;
    cqe[CX_CQE_HEADER_TYPES] = types;
    stw_be_p(cqe + CX_CQE_CHECKSUM,
             plc_sum_fold(plc_sum(0, f->data + ETH_HLEN, f->len - ETH_HLEN)));
}

/* The frame into the next entry of a receive queue; false: it is dropped */
static bool plc_rq_put(PeerlaneCX *s, PlcQueue *q, const uint8_t *frame,
                       uint32_t len, uint8_t *cqe)
{
    uint8_t wqe[1 << PLC_LOG_MAX_RQ_STRIDE];
    PlcSge sge[PLC_MAX_SGE];
    unsigned sges;
    uint64_t room;
    uint32_t posted;
    uint8_t syndrome = 0;

    if (q->state != CX_QUEUE_RDY) {
        return false;
    }
    if (!plc_queue_posted(s, q, CX_DBR_RECV, &posted)) {
        plc_queue_fail(s, q);
        return false;
    }
    if (!posted) {
        plc_qc_count(q->as, CX_QC_OUT_OF_BUFFER);
        return false;
    }
    if (!plc_queue_read(s, q, q->head, wqe, 1u << q->log_stride)) {
        memset(wqe, 0, sizeof(wqe));
        syndrome = CX_SYND_LOCAL_QP;
    }
    /* The highest bit of a length asks for a padding that this has not */
    for (unsigned i = 0; i < 1u << q->log_stride; i += CX_WQE_SEG) {
        wqe[i + CX_DATA_LEN] &= 0x7f;
    }
    if (syndrome ||
        !plc_parse_list(wqe, 0, 1u << q->log_stride, true, 0, sge, &sges,
                        &room)) {
        syndrome = CX_SYND_LOCAL_QP;
    } else if (len > room) {
        syndrome = CX_SYND_LOCAL_LENGTH;
    } else if (plc_mkey_rw(s, q->as, sge, sges, NULL, 0, (uint8_t *)frame, len,
                           PLC_LOCAL_WRITE)) {
        syndrome = CX_SYND_LOCAL_PROTECTION;
    }
    if (s->old) {
        return false;
    }
    if (syndrome) {
        plc_queue_error(s, q, true, 0, syndrome);
        q->state = CX_QUEUE_ERR;
        if (!s->old) {
            q->head++;
            plc_queue_schedule(s, q);
        }
        return false;
    }
    stl_be_p(cqe + CX_CQE_USER_INDEX, q->user_index);
    stl_be_p(cqe + CX_CQE_BYTES, len);
    stw_be_p(cqe + CX_CQE_COUNTER, q->head);
    q->head++;
    plc_cq_post(s, q->cqn, cqe, CX_CQE_RECV_SEND, false);
    return true;
}

/* A frame that is not the transport's has come, and may be changed */
void plc_eth_receive(PeerlaneCX *s, uint8_t *data, uint32_t len)
{
    uint8_t cqe[CX_CQE_SIZE] = { 0 }, type;
    uint32_t tag, hash;
    PlcQueue *q = NULL;
    PlcTir *tir;
    PlcFrame f;

    plc_frame_look(&f, data, len);
    tir = plc_flow_find(s, &f, &tag);
    if (tir) {
        q = plc_tir_queue(s, tir, &f, &hash, &type);
    }
    if (!q) {
        plc_count(s, PLC_CNT_ETH_DROPPED, 1);
        return;
    }
    if (f.tagged && !q->keep_vlan && lduw_be_p(data + 12) == ETH_P_VLAN) {
        uint16_t tci = f.tci;

        memmove(data + 4, data, ETH_HLEN - 2);
        data += 4;
        len -= 4;
        plc_frame_look(&f, data, len);
        plc_recv_cqe(&f, cqe);
        cqe[CX_CQE_HEADER_TYPES] |= CX_CQE_HAS_VLAN;
        stw_be_p(cqe + CX_CQE_VLAN, tci);
    } else {
        plc_recv_cqe(&f, cqe);
    }
    stl_be_p(cqe + CX_CQE_HASH, hash);
    cqe[CX_CQE_HASH_TYPE] = type;
    stl_be_p(cqe + CX_CQE_FLOW_TAG, tag);
    if (plc_rq_put(s, q, data, len, cqe)) {
        plc_eth_count(s, false, data, len);
    } else {
        plc_count(s, PLC_CNT_ETH_DROPPED, 1);
    }
}

/*
 * All that a port of Ethernet has
 */

PlcEth *plc_eth_new(void)
{
    PlcEth *e = g_new0(PlcEth, 1);

    e->mtu = 1500 + PLC_ETH_HEAD + PLC_ETH_CRC;
    e->vport_mtu = e->mtu;
    plc_table_init(&e->sq, PLC_FIRST_SQN, PLC_FIRST_RQN);
    plc_table_init(&e->rq, PLC_FIRST_RQN,
                   PLC_FIRST_RQN + (1 << PLC_LOG_MAX_RQ));
    plc_table_init(&e->tir, 1, 1 << PLC_LOG_MAX_TIR);
    plc_table_init(&e->tis, 1, 1 << PLC_LOG_MAX_TIS);
    plc_table_init(&e->rqt, 1, 1 << PLC_LOG_MAX_RQT);
    plc_table_init(&e->table, 1, 1 << PLC_LOG_MAX_TABLES);
    plc_table_init(&e->group, 1, 1 << PLC_LOG_MAX_GROUPS);
    QTAILQ_INIT(&e->ready);
    return e;
}

void plc_eth_free(PlcEth *e)
{
    plc_free_all(&e->sq, PlcQueue, plc_queue_free);
    plc_free_all(&e->rq, PlcQueue, plc_queue_free);
    plc_free_all(&e->tir, PlcTir, g_free);
    plc_free_all(&e->tis, PlcTis, g_free);
    plc_free_all(&e->rqt, PlcRqt, plc_rqt_free);
    plc_free_all(&e->group, PlcGroup, g_free);
    plc_free_all(&e->table, PlcFlowTable, plc_flow_table_free);
    plc_table_free(&e->sq);
    plc_table_free(&e->rq);
    plc_table_free(&e->tir);
    plc_table_free(&e->tis);
    plc_table_free(&e->rqt);
    plc_table_free(&e->table);
    plc_table_free(&e->group);
    g_free(e);
}

bool plc_eth_owned(const PlcEth *e, uint16_t uid)
{
    return plc_table_owned(&e->sq, uid) || plc_table_owned(&e->rq, uid) ||
           plc_table_owned(&e->tir, uid) || plc_table_owned(&e->tis, uid) ||
           plc_table_owned(&e->rqt, uid);
}

bool plc_eth_uses_pd(const PlcEth *e, uint32_t pd)
{
    return plc_used(&e->sq, PlcQueue, pd, pd) ||
           plc_used(&e->rq, PlcQueue, pd, pd);
}

bool plc_eth_uses_td(const PlcEth *e, uint32_t td)
{
    return plc_used(&e->tir, PlcTir, td, td) ||
           plc_used(&e->tis, PlcTis, td, td);
}

void plc_eth_deafen(PlcEth *e, uint32_t uar)
{
    plc_deafen(&e->sq, PlcQueue, uar);
}

void plc_eth_uncount(PlcEth *e, uint32_t counter_set)
{
    for (uint32_t i = 0; i < e->rq.size; i++) {
        PlcQueue *q = plc_table_get(&e->rq, i);

        if (q && q->as->counter_set == counter_set) {
            q->as->counter_set = 0;
            cx_set(q->ctx, CX_RQC_COUNTER_SET, 0);
        }
    }
}
