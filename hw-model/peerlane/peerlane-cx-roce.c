/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: packets of the transport in frames of a port of Ethernet.
 *
 * A packet that is here has its IP header as a route header in front: 40 bytes
 * of IPv6, or 20 of IPv4 behind 20 others.  That is how a receive gets it.
 */
#include "qemu/osdep.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "peerlane-cx-eth.h"
#include "trace.h"

#define PLC_ROCE_PORT           4791
#define PLC_UDP_SIZE            8
#define PLC_IP4_SIZE            20
#define PLC_IP6_SIZE            40
#define PLC_ECT                 2       /* may be marked */
#define PLC_CE                  3       /* was */

bool plc_gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    return !memcmp(gid, mapped, sizeof(mapped));
}

/* The address of the port with that number; NULL: there is none */
static const uint8_t *plc_roce_address(PeerlaneCX *s, uint32_t index)
{
    static const uint8_t none[16];
    const uint8_t *addr;

    if (index >= PLC_ROCE_ADDRESSES) {
        return NULL;
    }
    addr = s->st->eth->roce_address[index];
    return memcmp(addr, none, sizeof(none)) ? addr : NULL;
}

/* Is an address that a frame is for one of the port's?  In 16 bytes. */
static bool plc_roce_mine(PeerlaneCX *s, const uint8_t *mac,
                          const uint8_t *gid)
{
    for (uint32_t i = 0; i < PLC_ROCE_ADDRESSES; i++) {
        const uint8_t *own = plc_roce_address(s, i);

        if (own && !memcmp(own, gid, 16) &&
            !memcmp(own + CX_ROCE_ADDR_MAC, mac, 6)) {
            return true;
        }
    }
    return false;
}

/* Where a connection goes, from its context */
void plc_path_of_qp(PeerlaneCX *s, PlcQp *qp)
{
    const uint8_t *ads = qp->ctx + CX_QPC_ADS;

    qp->path = (PlcPath) {
        .sgid = cx_get(ads, CX_ADS_SGID_INDEX),
        .hop_limit = cx_get(ads, CX_ADS_HOP_LIMIT),
        .tclass = cx_get(ads, CX_ADS_TCLASS),
        .flow_label = cx_get(ads, CX_ADS_FLOW_LABEL),
        .port = cx_get(ads, CX_ADS_UDP_PORT),
    };
    memcpy(qp->path.gid, ads + CX_ADS_GID, 16);
    memcpy(qp->path.mac, ads + CX_ADS_MAC, 6);
    qp->path.own = plc_roce_mine(s, qp->path.mac, qp->path.gid);
    qp->rlid = qp->path.own ? s->lid : PLC_LID_WIRE;
}

/*
 * Where a datagram goes, from its entry.  There is always a route header: the
 * bit for that means nothing.
 */
void plc_path_of_av(PeerlaneCX *s, const uint8_t *wqe, PlcPath *path)
{
    uint32_t grh = ldl_be_p(wqe + CX_AV_GRH);

    *path = (PlcPath) {
        .sgid = extract32(grh, 20, 8),
        .hop_limit = wqe[CX_AV_HOP_LIMIT],
        .tclass = wqe[CX_AV_TCLASS],
        .flow_label = grh & 0xfffff,
        .port = lduw_be_p(wqe + CX_AV_UDP_PORT),
    };
    memcpy(path->gid, wqe + CX_AV_RGID, 16);
    memcpy(path->mac, wqe + CX_AV_MAC, 6);
    path->own = plc_roce_mine(s, path->mac, path->gid);
}

/* All that is around a packet; how long that is with it, 0: there is no way */
static uint32_t plc_roce_wrap(PeerlaneCX *s, PlcQp *qp, const PlcPath *path,
                              PlcPacket *p)
{
    const uint8_t *own = plc_roce_address(s, path->sgid);
    uint8_t *bth = plc_bth(p), *udp = bth - PLC_UDP_SIZE, *ip, *frame;
    uint32_t len = PLC_UDP_SIZE + p->len;
    uint8_t tos = (path->tclass & ~3) | PLC_ECT;
    bool v4;

    /* Both ends are of one kind */
    if (!own || !s->st->eth->roce ||
        plc_gid_is_ipv4(own) != plc_gid_is_ipv4(path->gid)) {
        return 0;
    }
    v4 = plc_gid_is_ipv4(own);
    ip = udp - (v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE);
    frame = ip - ETH_HLEN;
    memcpy(frame, path->mac, 6);
    memcpy(frame + 6, own + CX_ROCE_ADDR_MAC, 6);
    stw_be_p(frame + 12, v4 ? ETH_P_IP : ETH_P_IPV6);
    if (v4) {
        memset(ip, 0, PLC_IP4_SIZE);
        ip[0] = 0x45;
        ip[1] = tos;
        stw_be_p(ip + 2, PLC_IP4_SIZE + len + CX_ICRC_SIZE);
        stw_be_p(ip + 6, IP_DF);
        ip[8] = path->hop_limit;
        ip[9] = IP_PROTO_UDP;
        memcpy(ip + 12, own + 12, 4);
        memcpy(ip + 16, path->gid + 12, 4);
        stw_be_p(ip + 10, net_raw_checksum(ip, PLC_IP4_SIZE));
    } else {
        stl_be_p(ip, 6u << 28 | (uint32_t)tos << 20 | path->flow_label);
        stw_be_p(ip + 4, len + CX_ICRC_SIZE);
        ip[6] = IP_PROTO_UDP;
        ip[7] = path->hop_limit;
        memcpy(ip + 8, own, 16);
        memcpy(ip + 24, path->gid, 16);
    }
    /* Who names no port gets one that is always the same for a queue pair */
    stw_be_p(udp, path->port ? path->port : 0xc000 | (qp->id & 0x3fff));
    stw_be_p(udp + 2, PLC_ROCE_PORT);
    stw_be_p(udp + 4, len + CX_ICRC_SIZE);
    stw_be_p(udp + 6, 0);
    len += v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE;
    stl_le_p(ip + len, plc_icrc(ip, v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE, len));
    return ETH_HLEN + len + CX_ICRC_SIZE;
}

/* The packet in a frame, with its route header in front; frees nothing */
static PlcPacket *plc_roce_unwrap(const uint8_t *ip, bool v4,
                                  const uint8_t *bth, uint32_t len)
{
    PlcPacket *p = g_malloc(sizeof(*p) + PLC_HEADROOM + len);
    uint8_t *grh = plc_bth(p) - CX_GRH_SIZE;

    p->from = PLC_LID_WIRE;
    p->raw = false;
    p->datagram = false;
    p->grh = true;
    p->l3 = v4 ? PLC_L3_IPV4 : PLC_L3_IPV6;
    p->marked = (v4 ? ip[1] & 3 : lduw_be_p(ip) >> 4 & 3) == PLC_CE;
    p->len = len;
    memset(grh, 0, CX_GRH_SIZE);
    memcpy(grh + (v4 ? CX_GRH_SIZE - PLC_IP4_SIZE : 0), ip,
           v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE);
    memcpy(plc_bth(p), bth, len);
    return p;
}

void plc_roce_send(PeerlaneCX *s, PlcQp *qp, PlcPacket *p)
{
    const PlcPath *path = p->datagram ? &p->path : &qp->path;
    uint32_t size = s->old ? 0 : plc_roce_wrap(s, qp, path, p);
    bool v4 = plc_gid_is_ipv4(path->gid);
    uint8_t *ip = plc_bth(p) - PLC_UDP_SIZE -
                  (v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE);

    if (size && path->own && plc_roce_mine(s, path->mac, path->gid)) {
        PlcPacket *own = plc_roce_unwrap(ip, v4, plc_bth(p), p->len);

        own->from = s->lid;
        plc_net_arrive(s, own);
    } else if (size && !path->own && s->nic) {
        plc_net_out(s, ip - ETH_HLEN, size);
    } else {
        /* Nobody is there */
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
    }
    g_free(p);
}

/* An address of the route header, as a GID */
static void plc_l3_gid(const uint8_t *grh, enum plc_l3 l3, bool dest,
                       uint8_t *gid)
{
    if (l3 == PLC_L3_IPV4) {
        memset(gid, 0, 10);
        memset(gid + 10, 0xff, 2);
        memcpy(gid + 12, grh + 20 + (dest ? 16 : 12), 4);
    } else {
        memcpy(gid, grh + (dest ? 24 : 8), 16);
    }
}

/* Is it from the other end of the connection, and for this end's address? */
bool plc_roce_from(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    const uint8_t *own = plc_roce_address(s, qp->path.sgid);
    uint8_t from[16], to[16];

    plc_l3_gid(h->grh, h->l3, false, from);
    plc_l3_gid(h->grh, h->l3, true, to);
    return own && !memcmp(from, qp->path.gid, 16) && !memcmp(to, own, 16);
}

bool plc_roce_take(PeerlaneCX *s, const uint8_t *frame, uint32_t size,
                   PlcPacket **p, const char **wrong)
{
    const uint8_t *ip, *udp;
    uint32_t len, head, qpn;
    uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };
    PlcHeaders h;
    PlcFrame f;
    bool v4;

    *p = NULL;
    *wrong = NULL;
    plc_frame_look(&f, frame, size);
    if (!s->st->eth->roce || f.tagged || f.cut || !f.l4 ||
        f.proto != IP_PROTO_UDP ||
        lduw_be_p(frame + f.l4 + 2) != PLC_ROCE_PORT) {
        return false;
    }
    ip = frame + f.l3;
    udp = frame + f.l4;
    v4 = f.version == 4;
    memcpy(gid + (v4 ? 12 : 0), v4 ? ip + 16 : ip + 24, v4 ? 4 : 16);
    if (!plc_roce_mine(s, frame, gid)) {
        return false;
    }
    head = v4 ? PLC_IP4_SIZE : PLC_IP6_SIZE;
    len = f.end - f.l4;
    if (f.l4 - f.l3 != head || !plc_frame_l3_good(&f) ||
        lduw_be_p(udp + 4) != len ||
        len < PLC_UDP_SIZE + CX_BTH_SIZE + CX_ICRC_SIZE) {
        *wrong = "malformed UDP";
        return true;
    }
    if (len > PLC_UDP_SIZE + CX_MAX_HEADERS + PLC_MAX_MTU + CX_ICRC_SIZE) {
        *wrong = "long";
        return true;
    }
    len -= CX_ICRC_SIZE;
    if (ldl_le_p(udp + len) != plc_icrc(ip, head, head + len)) {
        *wrong = "checksum";
        return true;
    }
    len -= PLC_UDP_SIZE;
    if (!plc_packet_parse(udp + PLC_UDP_SIZE, len, &h, &qpn)) {
        *wrong = "malformed packet";
        return true;
    }
    *p = plc_roce_unwrap(ip, v4, udp + PLC_UDP_SIZE, len);
    return true;
}
