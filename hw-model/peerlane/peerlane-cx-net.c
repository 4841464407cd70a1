/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: how packets get to the other end.
 *
 * What is for the function itself goes into the list of packets that have come.
 * All else leaves as a RoCEv2 frame: the port is its own gateway from InfiniBand
 * to Ethernet.  LID n is the IPv4 address with n in its lower half.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qapi/error.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "system/runstate.h"
#include "peerlane-cx-eth.h"
#include "trace.h"

#define PLC_RX_HIGH             256     /* own packets wait in their queues */
#define PLC_RX_MAX              1024    /* frames wait on the wire */
#define PLC_OUT_MAX             (256 * KiB)     /* waits for the main loop */
#define PLC_ASK_NS              (50 * SCALE_MS)
#define PLC_ROCE_PORT           4791
#define PLC_IP_AT               14
#define PLC_UDP_AT              34
#define PLC_IP_SIZE             20
#define PLC_IP6_SIZE            40
#define PLC_FRAME_HEAD          42      /* Ethernet, IPv4, UDP */
#define PLC_UDP_SIZE            8
#define PLC_TTL                 64
#define PLC_ECT                 2       /* may be marked */
#define PLC_CE                  3       /* was */
#define PLC_CNP_NS              (50 * SCALE_US)
#define PLC_ARP_SIZE            28
#define PLC_TRAIN_SIZE          14      /* what a train begins with */
#define PLC_TRAIN_TYPE          0x88b6

static void plc_frame_dropped(PeerlaneCX *s, const char *why)
{
    plc_count(s, PLC_CNT_FRAMES_DROPPED, 1);
    trace_peerlane_cx_frame_dropped(plc_name(s), why);
}

static bool plc_unicast(uint32_t lid)
{
    return lid && lid <= PLC_LAST_LID;
}

static uint32_t plc_ip(PeerlaneCX *s, uint32_t lid)
{
    return s->subnet_ip | lid;
}

/* How many like @p wait: own ones, or frames */
static uint32_t *plc_rx_count(PeerlaneCX *s, const PlcPacket *p)
{
    return p->from == s->lid ? &s->st->rx_own : &s->st->rx_frames;
}

void plc_net_arrive(PeerlaneCX *s, PlcPacket *p)
{
    QTAILQ_INSERT_TAIL(&s->st->rx, p, link);
    qatomic_inc(plc_rx_count(s, p));
}

void plc_net_free(PlcState *st)
{
    PlcPacket *p;

    while ((p = QTAILQ_FIRST(&st->rx))) {
        QTAILQ_REMOVE(&st->rx, p, link);
        g_free(p);
    }
    st->rx_own = 0;
    st->rx_frames = 0;
}

/* There is room again */
static void plc_tx_unblock(PeerlaneCX *s)
{
    plc_begin(s);
    qatomic_set(&s->tx_blocked, false);
    for (uint32_t i = 0; i < s->st->qp.size; i++) {
        PlcQp *qp = plc_table_get(&s->st->qp, i);

        if (qp && (qp->state == CX_QP_RTR || qp->state == CX_QP_RTS)) {
            plc_qp_schedule(qp);
        }
    }
    plc_eth_unblocked(s);
    plc_end(s);
}

static void plc_net_sent(NetClientState *nc, ssize_t len)
{
    PeerlaneCX *s = qemu_get_nic_opaque(nc);

    /* Not before it has none left: it would get more for each that it sends */
    if (!--s->tx_waiting) {
        plc_tx_unblock(s);
    }
}

/*
 * Trains: several frames in one datagram of the netdev
 */

static const uint8_t plc_train_to[6] = { 0x03, 0, 0, 0, 0, 0x01 };

static bool plc_is_train(PeerlaneCX *s, const uint8_t *data, size_t size)
{
    return s->trains && size >= PLC_TRAIN_SIZE &&
           !memcmp(data, plc_train_to, sizeof(plc_train_to)) &&
           lduw_be_p(data + 12) == PLC_TRAIN_TYPE;
}

/* What leaves is for the main loop to send */
static void plc_give(PeerlaneCX *s, const uint8_t *data, uint32_t len)
{
    WITH_QEMU_LOCK_GUARD(&s->out_lock) {
        g_queue_push_tail(s->out, g_bytes_new(data, len));
        s->out_len += len;
        if (s->out_len >= PLC_OUT_MAX) {
            qatomic_set(&s->tx_blocked, true);
        }
    }
    pla_engine_main(&s->engine);
}

/* What waits for company leaves */
void plc_net_flush(PeerlaneCX *s)
{
    g_autofree uint8_t *train = g_steal_pointer(&s->train);

    if (train) {
        plc_give(s, train, s->train_len);
    }
}

void plc_net_out(PeerlaneCX *s, const uint8_t *frame, uint32_t len)
{
    plc_count(s, PLC_CNT_FRAMES_OUT, 1);
    if (!s->trains) {
        plc_give(s, frame, len);
        return;
    }
    if (s->train && s->train_len + 2 + len > NET_BUFSIZE) {
        plc_net_flush(s);
    }
    if (!s->train) {
        s->train = g_malloc(NET_BUFSIZE);
        memcpy(s->train, plc_train_to, 6);
        memcpy(s->train + 6, s->conf.macaddr.a, 6);
        stw_be_p(s->train + 12, PLC_TRAIN_TYPE);
        s->train_len = PLC_TRAIN_SIZE;
    }
    stw_be_p(s->train + s->train_len, len);
    memcpy(s->train + s->train_len + 2, frame, len);
    s->train_len += 2 + len;
}

/* @p is a frame, with all headers, but for the address */
static void plc_frame_out(PeerlaneCX *s, const uint8_t *mac, PlcPacket *p)
{
    uint8_t *frame = plc_bth(p) - PLC_FRAME_HEAD;

    memcpy(frame, mac, 6);
    plc_net_out(s, frame, PLC_FRAME_HEAD + p->len + CX_ICRC_SIZE);
}

/* What has waited for the address is sent if @send, and gone then */
static void plc_pending_end(PeerlaneCX *s, PlcNeighbour *n, bool send)
{
    uint32_t pending = n->pending;

    n->pending = 0;
    for (uint32_t i = 0; i < pending; i++) {
        if (send) {
            plc_frame_out(s, n->mac, n->frame[i]);
        } else {
            plc_frame_dropped(s, "address not known");
        }
        g_free(n->frame[i]);
    }
}

/*
 * Who has which address
 */

static void plc_arp_send(PeerlaneCX *s, uint16_t op, const uint8_t *mac,
                         uint32_t ip)
{
    static const uint8_t nobody[6];
    uint8_t frame[PLC_IP_AT + PLC_ARP_SIZE], *arp = frame + PLC_IP_AT;

    /* Whoever asks in vain asks again, and so does this port */
    if (qatomic_read(&s->tx_blocked)) {
        plc_frame_dropped(s, "no room for ARP");
        return;
    }
    memset(frame, 0xff, 6);
    if (mac) {
        memcpy(frame, mac, 6);
    }
    memcpy(frame + 6, s->conf.macaddr.a, 6);
    stw_be_p(frame + 12, ETH_P_ARP);
    stw_be_p(arp, 1);
    stw_be_p(arp + 2, ETH_P_IP);
    arp[4] = 6;
    arp[5] = 4;
    stw_be_p(arp + 6, op);
    memcpy(arp + 8, s->conf.macaddr.a, 6);
    stl_be_p(arp + 14, plc_ip(s, s->lid));
    memcpy(arp + 18, mac ? mac : nobody, 6);
    stl_be_p(arp + 24, ip);
    plc_net_out(s, frame, sizeof(frame));
}

/* The entry of @lid, asked for if it is not known */
static PlcNeighbour *plc_neighbour(PeerlaneCX *s, uint32_t lid)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    PlcNeighbour *n = NULL;

    for (unsigned i = 0; i < PLC_NEIGHBOURS && !n; i++) {
        if (s->neighbour[i].lid == lid) {
            n = &s->neighbour[i];
        }
    }
    if (!n) {
        n = &s->neighbour[s->neighbours++ % PLC_NEIGHBOURS];
        plc_pending_end(s, n, false);
        *n = (PlcNeighbour) { .lid = lid };
    }
    if (n->known) {
        return n;
    }
    if (!n->asked || now - n->asked_at >= PLC_ASK_NS) {
        n->asked = true;
        n->asked_at = now;
        plc_arp_send(s, 1, NULL, plc_ip(s, lid));
    }
    return n;
}

/* Frames of what was before a reset and wait for an address are not sent any more */
void plc_net_reset(PeerlaneCX *s)
{
    plc_net_flush(s);
    for (unsigned i = 0; i < PLC_NEIGHBOURS; i++) {
        plc_pending_end(s, &s->neighbour[i], false);
    }
}

static void plc_arp_receive(PeerlaneCX *s, const uint8_t *arp, size_t len)
{
    uint32_t from, to;

    if (len < PLC_ARP_SIZE || lduw_be_p(arp) != 1 ||
        lduw_be_p(arp + 2) != ETH_P_IP || arp[4] != 6 || arp[5] != 4 ||
        arp[8] & 1) {
        plc_frame_dropped(s, "malformed ARP");
        return;
    }
    from = ldl_be_p(arp + 14);
    to = ldl_be_p(arp + 24);
    /* Only of those that are talked to */
    for (unsigned i = 0; i < PLC_NEIGHBOURS; i++) {
        PlcNeighbour *n = &s->neighbour[i];

        if (n->lid && plc_ip(s, n->lid) == from) {
            memcpy(n->mac, arp + 8, 6);
            n->known = true;
            plc_pending_end(s, n, true);
        }
    }
    if (lduw_be_p(arp + 6) == 1 && to == plc_ip(s, s->lid)) {
        plc_arp_send(s, 2, arp + 8, from);
    }
}

/*
 * Frames
 */

/*
 * The checksum of what does not change on the way.  What does counts as ones,
 * and so does a local route header that is not there.
 */
uint32_t plc_icrc(const uint8_t *ip, uint32_t head, uint32_t len)
{
    uint8_t copy[8 + PLC_IP6_SIZE + PLC_UDP_SIZE + CX_BTH_SIZE];
    uint32_t n = head + PLC_UDP_SIZE + CX_BTH_SIZE;
    uint8_t *p = copy + 8;
    uint32_t crc;

    memset(copy, 0xff, 8);
    memcpy(p, ip, n);
    if (head == PLC_IP_SIZE) {
        p[1] = 0xff;                            /* type of service */
        p[8] = 0xff;                            /* time to live */
        memset(p + 10, 0xff, 2);                /* checksum */
    } else {
        p[0] |= 0x0f;                           /* class, flow label */
        memset(p + 1, 0xff, 3);
        p[7] = 0xff;                            /* hop limit */
    }
    memset(p + head + 6, 0xff, 2);              /* of UDP */
    p[head + PLC_UDP_SIZE + CX_BTH_QPN] = 0xff; /* congestion */
    crc = plc_crc(0, copy, 8 + n);
    return plc_crc(crc, ip + n, len - n);
}

/* Takes @p */
static void plc_frame_send(PeerlaneCX *s, PlcQp *qp, uint16_t lid,
                           PlcPacket *p)
{
    PlcNeighbour *to = plc_neighbour(s, lid);
    uint8_t *frame = plc_bth(p) - PLC_FRAME_HEAD, *ip = frame + PLC_IP_AT;
    uint8_t *udp = frame + PLC_UDP_AT;
    uint32_t len = PLC_IP_SIZE + PLC_UDP_SIZE + p->len;

    memcpy(frame + 6, s->conf.macaddr.a, 6);
    stw_be_p(frame + 12, ETH_P_IP);
    memset(ip, 0, PLC_IP_SIZE + PLC_UDP_SIZE);
    ip[0] = 0x45;
    ip[1] = PLC_ECT;
    stw_be_p(ip + 2, len + CX_ICRC_SIZE);
    stw_be_p(ip + 6, IP_DF);
    ip[8] = PLC_TTL;
    ip[9] = IP_PROTO_UDP;
    stl_be_p(ip + 12, plc_ip(s, s->lid));
    stl_be_p(ip + 16, plc_ip(s, lid));
    stw_be_p(ip + 10, net_raw_checksum(ip, PLC_IP_SIZE));
    stw_be_p(udp, 0xc000 | (qp->id & 0x3fff));
    stw_be_p(udp + 2, PLC_ROCE_PORT);
    stw_be_p(udp + 4, len + CX_ICRC_SIZE - PLC_IP_SIZE);
    stl_le_p(ip + len, plc_icrc(ip, PLC_IP_SIZE, len));
    if (to->known) {
        plc_frame_out(s, to->mac, p);
        g_free(p);
    } else if (to->pending < PLC_MAX_PENDING) {
        to->frame[to->pending++] = p;
    } else {
        plc_frame_dropped(s, "too many wait for the address");
        g_free(p);
    }
}

/* What is wrong with a frame; NULL: nothing, and its packet is at *@at */
static const char *plc_frame_check(PeerlaneCX *s, const uint8_t *frame,
                                   size_t size, uint32_t *from, uint32_t *len)
{
    const uint8_t *ip = frame + PLC_IP_AT, *udp = frame + PLC_UDP_AT;
    uint32_t ip_len, udp_len, src, body;
    PlcHeaders h;
    uint32_t qpn;

    if (size < PLC_FRAME_HEAD + CX_BTH_SIZE + CX_ICRC_SIZE) {
        return "short";
    }
    ip_len = lduw_be_p(ip + 2);
    if (ip[0] != 0x45 || ip_len > size - PLC_IP_AT || ip[9] != IP_PROTO_UDP ||
        lduw_be_p(ip + 6) & (IP_MF | IP_OFFMASK) ||
        net_raw_checksum((uint8_t *)ip, PLC_IP_SIZE)) {
        return "malformed IP";
    }
    src = ldl_be_p(ip + 12);
    if (ldl_be_p(ip + 16) != plc_ip(s, s->lid) ||
        (src & 0xffff0000) != s->subnet_ip) {
        return "for somebody else";
    }
    /* What the port sends to itself comes by no wire */
    if (src == plc_ip(s, s->lid) || !plc_unicast(src & 0xffff)) {
        return "from nobody";
    }
    udp_len = lduw_be_p(udp + 4);
    if (lduw_be_p(udp + 2) != PLC_ROCE_PORT ||
        udp_len != ip_len - PLC_IP_SIZE ||
        udp_len < PLC_UDP_SIZE + CX_BTH_SIZE + CX_ICRC_SIZE) {
        return "malformed UDP";
    }
    if (udp_len > PLC_UDP_SIZE + CX_MAX_HEADERS + PLC_MAX_MTU + CX_ICRC_SIZE) {
        return "long";
    }
    body = ip_len - CX_ICRC_SIZE;
    if (ldl_le_p(ip + body) != plc_icrc(ip, PLC_IP_SIZE, body)) {
        return "checksum";
    }
    *from = src & 0xffff;
    *len = body - PLC_IP_SIZE - PLC_UDP_SIZE;
    return plc_packet_parse(udp + PLC_UDP_SIZE, *len, &h, &qpn) ? NULL :
           "malformed packet";
}

static bool plc_can_receive(NetClientState *nc)
{
    PeerlaneCX *s = qemu_get_nic_opaque(nc);

    bool full = !s->engine.bh ||
                qatomic_read(&s->st->rx_frames) >= PLC_RX_MAX;

    qatomic_set(&s->rx_blocked, full);
    /* The engine may have done with them by now, and look no more */
    plc_net_slice_ends(s);
    return !full;
}

/* On a port of Ethernet: the transport's, or the driver's */
static void plc_eth_frame_in(PeerlaneCX *s, const uint8_t *frame, size_t size)
{
    const char *wrong;
    PlcPacket *p;

    if (!plc_roce_take(s, frame, size, &p, &wrong)) {
        if (size > plc_eth_longest(s->st->eth)) {
            plc_frame_dropped(s, "long");
            return;
        }
        p = g_malloc(sizeof(*p) + size);
        p->from = PLC_LID_WIRE;
        p->raw = true;
        p->len = size;
        memcpy(p->data, frame, size);
    } else if (wrong) {
        plc_frame_dropped(s, wrong);
        return;
    }
    plc_net_arrive(s, p);
}

static void plc_frame_in(PeerlaneCX *s, const uint8_t *frame, size_t size)
{
    uint32_t from, len;
    const char *wrong;
    PlcPacket *p;

    plc_count(s, PLC_CNT_FRAMES_IN, 1);
    if (size < PLC_IP_AT || !s->st->up || s->failed) {
        plc_frame_dropped(s, size < PLC_IP_AT ? "short" : "not in use");
        return;
    }
    if (s->ethernet) {
        plc_eth_frame_in(s, frame, size);
        return;
    }
    if (lduw_be_p(frame + 12) == ETH_P_ARP) {
        plc_arp_receive(s, frame + PLC_IP_AT, size - PLC_IP_AT);
        return;
    }
    if (lduw_be_p(frame + 12) != ETH_P_IP ||
        memcmp(frame, s->conf.macaddr.a, 6)) {
        plc_frame_dropped(s, "for somebody else");
        return;
    }
    wrong = plc_frame_check(s, frame, size, &from, &len);
    if (wrong) {
        plc_frame_dropped(s, wrong);
        return;
    }
    p = g_malloc(sizeof(*p) + PLC_HEADROOM + len);
    p->from = from;
    p->raw = false;
    p->grh = false;
    p->l3 = PLC_L3_GRH;
    p->marked = (frame[PLC_IP_AT + 1] & 3) == PLC_CE;
    p->len = len;
    memcpy(plc_bth(p), frame + PLC_FRAME_HEAD, len);
    plc_net_arrive(s, p);
}

static void plc_train_in(PeerlaneCX *s, const uint8_t *data, size_t size)
{
    size_t at = PLC_TRAIN_SIZE;

    while (size - at >= 2) {
        uint32_t len = lduw_be_p(data + at);

        if (len > size - at - 2) {
            break;
        }
        plc_frame_in(s, data + at + 2, len);
        at += 2 + len;
    }
    if (at < size) {
        plc_count(s, PLC_CNT_FRAMES_IN, 1);
        plc_frame_dropped(s, "cut off");
    }
}

static ssize_t plc_receive(NetClientState *nc, const uint8_t *data, size_t size)
{
    PeerlaneCX *s = qemu_get_nic_opaque(nc);

    if (!plc_can_receive(nc)) {
        return 0;
    }
    plc_begin(s);
    if (plc_is_train(s, data, size)) {
        plc_train_in(s, data, size);
    } else {
        plc_frame_in(s, data, size);
    }
    plc_net_flush(s);
    plc_end(s);
    return size;
}

static void plc_link_changed(NetClientState *nc)
{
    PeerlaneCX *s = qemu_get_nic_opaque(nc);

    plc_begin(s);
    s->link_down = nc->link_down;
    s->link_changed = true;
    plc_end(s);
    if (nc->link_down) {
        /* What the netdev has is lost, as is all that is sent from now on */
        qemu_purge_queued_packets(nc);
    }
}

bool plc_net_up(PeerlaneCX *s)
{
    return !s->link_down;
}

bool plc_net_tell(PeerlaneCX *s)
{
    uint8_t eqe[CX_EQE_SIZE] = { 0 };
    PlcEq *eq = plc_eq_of(s, CX_EVENT_PORT);

    if (eq && plc_eq_full(eq)) {
        return false;
    }
    if (eq) {
        eqe[CX_EQE_SUBTYPE] = plc_net_up(s) ? PLC_PORT_ACTIVE : PLC_PORT_DOWN;
        eqe[CX_EQE_PORT] = 1 << 4;
        plc_eq_post(s, eq, CX_EVENT_PORT, eqe);
    }
    return true;
}

static NetClientInfo plc_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = plc_can_receive,
    .receive = plc_receive,
    .link_status_changed = plc_link_changed,
};

bool plc_net_check(PeerlaneCX *s, Error **errp)
{
    struct in_addr subnet;

    if (!inet_aton(s->subnet ? s->subnet : "10.0.0.0", &subnet) ||
        ntohl(subnet.s_addr) & 0xffff) {
        error_setg(errp, "subnet must be an IPv4 address that ends with .0.0");
        return false;
    }
    s->subnet_ip = ntohl(subnet.s_addr);
    return true;
}

void plc_net_init(PeerlaneCX *s)
{
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    if (s->conf.peers.ncs[0]) {
        s->nic = qemu_new_nic(&plc_net_info, &s->conf, TYPE_PEERLANE_CX,
                              DEVICE(s)->id,
                              &DEVICE(s)->mem_reentrancy_guard, s);
        qemu_format_nic_info_str(qemu_get_queue(s->nic), s->conf.macaddr.a);
        s->link_down = qemu_get_queue(s->nic)->link_down;
    }
}

void plc_net_exit(PeerlaneCX *s)
{
    if (s->nic) {
        /* The other end may still have a frame, and would tell of it later */
        qemu_purge_queued_packets(qemu_get_queue(s->nic));
        qemu_del_nic(s->nic);
        s->nic = NULL;
        g_clear_pointer(&s->train, g_free);
    }
}

/*
 * Packets
 */

bool plc_net_room(PeerlaneCX *s, PlcQp *qp, bool *again)
{
    bool own = s->st->rx_own < PLC_RX_HIGH;

    /* The wire tells when it can take more; a datagram may go either way */
    *again = true;
    if (!plc_qp_datagrams(qp) && qp->rlid == s->lid) {
        return own;
    }
    *again = !qatomic_read(&s->tx_blocked);
    return *again && (!plc_qp_datagrams(qp) || own);
}

void plc_net_meet(PeerlaneCX *s, PlcQp *qp)
{
    if (s->nic && qp->rlid != s->lid && plc_unicast(qp->rlid)) {
        plc_neighbour(s, qp->rlid);
    }
}

void plc_net_send(PeerlaneCX *s, PlcQp *qp, uint16_t lid, PlcPacket *p)
{
    uint8_t *bth = plc_bth(p);

    plc_count(s, PLC_CNT_PACKETS_OUT, 1);
    plc_count(s, PLC_CNT_BYTES_OUT, p->len);
    trace_peerlane_cx_packet(plc_name(s), "to", ldl_be_p(bth + CX_BTH_QPN),
                             bth[CX_BTH_OPCODE],
                             ldl_be_p(bth + CX_BTH_PSN) & CX_PSN_MASK, p->len);
    if (s->ethernet) {
        plc_roce_send(s, qp, p);
        return;
    }
    if (lid == s->lid && !s->old) {
        p->from = s->lid;
        plc_net_arrive(s, p);
        return;
    }
    if (s->nic && plc_unicast(lid) && !s->old) {
        plc_frame_send(s, qp, lid, p);
        return;
    }
    /* Nobody is there */
    plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
    g_free(p);
}

/* A packet of @qp was marked on its way: its sender is told, not too often */
static void plc_net_marked(PeerlaneCX *s, PlcQp *qp)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    PlcPacket *p;

    plc_count(s, PLC_CNT_MARKED, 1);
    if (plc_qp_datagrams(qp) || qatomic_read(&s->tx_blocked) ||
        now < qp->cnp_at) {
        return;
    }
    qp->cnp_at = now + PLC_CNP_NS;
    plc_count(s, PLC_CNT_CNPS_OUT, 1);
    p = plc_packet_new(CX_SERVICE_CNP | CX_PKT_CNP, qp->remote_qpn, 0, 0, NULL);
    plc_bth(p)[CX_BTH_QPN] |= CX_BTH_BECN;
    plc_net_send(s, qp, qp->rlid, p);
}

static void plc_net_dispatch(PeerlaneCX *s, const PlcHeaders *h, uint32_t qpn,
                             bool marked)
{
    PlcQp *qp = qpn == CX_GSI_QPN ? s->st->gsi :
                plc_table_get(&s->st->qp, qpn);
    int service = qp ? plc_qp_service(qp) : -1;
    bool cnp = h->service == CX_SERVICE_CNP;

    if (!qp || (cnp ? service == CX_SERVICE_UD : service != h->service) ||
        (qp->state != CX_QP_RTR && qp->state != CX_QP_RTS &&
         qp->state != CX_QP_SQER) ||
        (!plc_qp_datagrams(qp) && (h->from != qp->rlid ||
                                   (s->ethernet &&
                                    !plc_roce_from(s, qp, h))))) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return;
    }
    /* Nobody here sends less for it */
    if (cnp) {
        plc_count(s, PLC_CNT_CNPS_IN, 1);
        return;
    }
    if (marked) {
        plc_net_marked(s, qp);
    }
    if (plc_qp_datagrams(qp)) {
        plc_resp_datagram(s, qp, h);
        return;
    }
    if (qp->st == CX_ST_UC) {
        plc_resp_unreliable(s, qp, h);
        return;
    }
    switch (h->kind) {
    case CX_PKT_READ_FIRST:
    case CX_PKT_READ_MIDDLE:
    case CX_PKT_READ_LAST:
    case CX_PKT_READ_ONLY:
    case CX_PKT_ACK:
    case CX_PKT_ATOMIC_ACK:
        plc_req_packet(s, qp, h);
        break;
    default:
        plc_resp_packet(s, qp, h);
        break;
    }
}

/* Look at a packet that has come; returns what that cost, 0: there is none */
uint64_t plc_net_step(PeerlaneCX *s)
{
    PlcState *st = s->st;
    PlcPacket *p = QTAILQ_FIRST(&st->rx);
    PlcHeaders h;
    uint32_t qpn;
    uint64_t cost;

    if (!p) {
        return 0;
    }
    QTAILQ_REMOVE(&st->rx, p, link);
    qatomic_dec(plc_rx_count(s, p));
    if (p->raw) {
        cost = MAX(p->len, PLC_STEP_COST / 4);
        plc_eth_receive(s, p->data, p->len);
        g_free(p);
        return cost;
    }
    plc_count(s, PLC_CNT_PACKETS_IN, 1);
    plc_count(s, PLC_CNT_BYTES_IN, p->len);
    cost = MAX(p->len, PLC_STEP_COST / 4);
    if (plc_packet_parse((const uint8_t *)plc_bth(p), p->len, &h, &qpn)) {
        h.from = p->from;
        h.grh = p->grh ? plc_bth(p) - CX_GRH_SIZE : NULL;
        h.l3 = p->l3;
        trace_peerlane_cx_packet(plc_name(s), "for", qpn, h.service | h.kind,
                                 h.psn, p->len);
        plc_net_dispatch(s, &h, qpn, p->marked);
    }
    g_free(p);
    return cost;
}

/* There may be room again for what waits on the wire */
void plc_net_slice_ends(PeerlaneCX *s)
{
    /* Who has changed one of these looks at the other */
    smp_mb();
    if (qatomic_read(&s->rx_blocked) &&
        qatomic_read(&s->st->rx_frames) <= PLC_RX_MAX / 2) {
        pla_engine_main(&s->engine);
    }
}

/* What the main loop has to do for it, in either direction */
void plc_net_main(PCIDevice *pdev)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);
    GQueue out = G_QUEUE_INIT;
    GBytes *data;

    if (!s->nic) {
        return;
    }
    WITH_QEMU_LOCK_GUARD(&s->out_lock) {
        while ((data = g_queue_pop_head(s->out))) {
            g_queue_push_tail(&out, data);
        }
        s->out_len = 0;
    }
    while ((data = g_queue_pop_head(&out))) {
        /* Whoever takes it may answer at once */
        if (s->nic &&
            !qemu_send_packet_async(qemu_get_queue(s->nic),
                                    g_bytes_get_data(data, NULL),
                                    g_bytes_get_size(data), plc_net_sent)) {
            s->tx_waiting++;
            qatomic_set(&s->tx_blocked, true);
        }
        g_bytes_unref(data);
    }
    if (qatomic_read(&s->tx_blocked) && !s->tx_waiting) {
        plc_tx_unblock(s);
    }
    if (s->nic && qatomic_read(&s->rx_blocked) &&
        qatomic_read(&s->st->rx_frames) <= PLC_RX_MAX / 2) {
        qatomic_set(&s->rx_blocked, false);
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
}
