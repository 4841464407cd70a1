/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: what is in a frame, its checksums, and how a long one is
 * cut into segments.
 */
#include "qemu/osdep.h"
#include "net/eth.h"
#include "peerlane-cx-eth.h"

#define PLC_IP4_MIN             20
#define PLC_IP6_SIZE            40
#define PLC_TCP_MIN             20
#define PLC_UDP_SIZE            8
#define PLC_TCP_CHECKSUM        16
#define PLC_UDP_CHECKSUM        6
#define PLC_TCP_FLAGS           13
#define PLC_TCP_LAST_ONLY       0x09    /* FIN and PSH */
#define PLC_TCP_FIRST_ONLY      0x80    /* CWR */

/* Headers that do not fit into their frame are none */
void plc_frame_look(PlcFrame *f, const uint8_t *data, uint32_t len)
{
    const uint8_t *l3;
    uint32_t need, end;

    *f = (PlcFrame) { .data = data, .len = len, .l3 = ETH_HLEN, .end = len };
    f->type = lduw_be_p(data + 12);
    if ((f->type == ETH_P_VLAN || f->type == ETH_P_DVLAN) &&
        len >= ETH_HLEN + 4) {
        f->tagged = true;
        f->tci = lduw_be_p(data + 14);
        f->type = lduw_be_p(data + 16);
        f->l3 += 4;
    }
    l3 = data + f->l3;
    if (f->type == ETH_P_IP && len >= f->l3 + PLC_IP4_MIN && l3[0] >> 4 == 4) {
        need = (l3[0] & 0xf) * 4;
        end = f->l3 + lduw_be_p(l3 + 2);
        if (need < PLC_IP4_MIN || f->l3 + need > MIN(end, len)) {
            return;
        }
        f->version = 4;
        f->proto = l3[9];
        f->fragment = lduw_be_p(l3 + 6) & (IP_MF | IP_OFFMASK);
    } else if (f->type == ETH_P_IPV6 && len >= f->l3 + PLC_IP6_SIZE &&
               l3[0] >> 4 == 6) {
        need = PLC_IP6_SIZE;
        end = f->l3 + need + lduw_be_p(l3 + 4);
        f->version = 6;
        f->proto = l3[6];
        f->fragment = f->proto == IP6_FRAGMENT;
    } else {
        return;
    }
    f->cut = end > len;
    f->end = end = MIN(end, len);
    need += f->l3;
    if (!f->fragment &&
        end - need >= (f->proto == IP_PROTO_TCP ? PLC_TCP_MIN :
                       f->proto == IP_PROTO_UDP ? PLC_UDP_SIZE : UINT32_MAX)) {
        f->l4 = need;
    }
}

uint64_t plc_sum(uint64_t sum, const uint8_t *p, uint32_t len)
{
    for (; len >= 2; len -= 2, p += 2) {
        sum += lduw_be_p(p);
    }
    return len ? sum + (*p << 8) : sum;
}

uint16_t plc_sum_fold(uint64_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static uint16_t plc_l3_sum(const PlcFrame *f)
{
    const uint8_t *l3 = f->data + f->l3;

    return plc_sum_fold(plc_sum(0, l3, (l3[0] & 0xf) * 4));
}

/* With the addresses and the length that are not in it */
static uint16_t plc_l4_sum(const PlcFrame *f)
{
    const uint8_t *l3 = f->data + f->l3;
    uint32_t len = f->end - f->l4;
    uint64_t sum = (uint64_t)f->proto + len;

    sum = f->version == 4 ? plc_sum(sum, l3 + 12, 8) :
          plc_sum(sum, l3 + 8, 32);
    return plc_sum_fold(plc_sum(sum, f->data + f->l4, len));
}

bool plc_frame_l3_good(const PlcFrame *f)
{
    return !f->cut && (f->version == 6 ||
                       (f->version == 4 && plc_l3_sum(f) == 0xffff));
}

/* A datagram over IPv4 may have none */
bool plc_frame_l4_good(const PlcFrame *f)
{
    if (!f->l4 || f->cut) {
        return false;
    }
    return (f->proto == IP_PROTO_UDP && f->version == 4 &&
            !lduw_be_p(f->data + f->l4 + PLC_UDP_CHECKSUM)) ||
           plc_l4_sum(f) == 0xffff;
}

/* Fill in those that @flags asks for */
void plc_frame_checksum(uint8_t *data, uint32_t len, uint8_t flags)
{
    PlcFrame f;

    plc_frame_look(&f, data, len);
    if (f.cut) {
        return;
    }
    if (flags & CX_ETH_L3_CSUM && f.version == 4) {
        uint8_t *at = data + f.l3 + 10;

        stw_be_p(at, 0);
        stw_be_p(at, ~plc_l3_sum(&f));
    }
    if (flags & CX_ETH_L4_CSUM && f.l4) {
        uint8_t *at = data + f.l4 + (f.proto == IP_PROTO_TCP ?
                                     PLC_TCP_CHECKSUM : PLC_UDP_CHECKSUM);
        uint16_t sum;

        stw_be_p(at, 0);
        sum = ~plc_l4_sum(&f);
        stw_be_p(at, sum || f.proto == IP_PROTO_TCP ? sum : 0xffff);
    }
}

bool plc_frame_segment(const uint8_t *head, uint32_t head_len, uint8_t *seg,
                       uint32_t at, uint32_t len, uint32_t total, uint32_t n)
{
    uint8_t *l3, *l4;
    uint32_t l3_at = ETH_HLEN, l4_at;
    uint16_t type;

    if (head_len < ETH_HLEN + 4) {
        return false;
    }
    type = lduw_be_p(head + 12);
    if (type == ETH_P_VLAN || type == ETH_P_DVLAN) {
        type = lduw_be_p(head + 16);
        l3_at += 4;
    }
    if (head_len < l3_at + PLC_IP4_MIN) {
        return false;
    }
    memcpy(seg, head, head_len);
    l3 = seg + l3_at;
    if (type == ETH_P_IP) {
        l4_at = l3_at + (l3[0] & 0xf) * 4;
        stw_be_p(l3 + 2, head_len - l3_at + len);
        stw_be_p(l3 + 4, lduw_be_p(l3 + 4) + n);
    } else if (type == ETH_P_IPV6) {
        l4_at = l3_at + PLC_IP6_SIZE;
        stw_be_p(l3 + 4, head_len - l4_at + len);
    } else {
        return false;
    }
    l4 = seg + l4_at;
    switch (type == ETH_P_IP ? l3[9] : l3[6]) {
    case IP_PROTO_TCP:
        if (head_len < l4_at + PLC_TCP_MIN) {
            return false;
        }
        stl_be_p(l4 + 4, ldl_be_p(l4 + 4) + at);
        if (at) {
            l4[PLC_TCP_FLAGS] &= ~PLC_TCP_FIRST_ONLY;
        }
        if (at + len < total) {
            l4[PLC_TCP_FLAGS] &= ~PLC_TCP_LAST_ONLY;
        }
        return true;
    case IP_PROTO_UDP:
        if (head_len < l4_at + PLC_UDP_SIZE) {
            return false;
        }
        stw_be_p(l4 + 4, PLC_UDP_SIZE + len);
        return true;
    default:
        return false;
    }
}
