/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: packets, made and taken apart.
 */
#include "qemu/osdep.h"
#include "peerlane-cx-packet.h"

enum {
    PLC_HAS_AETH = 1,
    PLC_HAS_RETH = 2,
    PLC_HAS_ATOMIC = 4,
    PLC_HAS_ATOMIC_ACK = 8,
    PLC_HAS_IMM = 16,
    PLC_HAS_PAYLOAD = 32,
    PLC_HAS_DETH = 64,
    PLC_HAS_CNP = 128,
    PLC_HAS_XRCETH = 256,
};

static const uint8_t plc_has[CX_PKT_KINDS] = {
    [CX_PKT_SEND_FIRST] = PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_MIDDLE] = PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_LAST] = PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_LAST_IMM] = PLC_HAS_IMM | PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_ONLY] = PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_ONLY_IMM] = PLC_HAS_IMM | PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_FIRST] = PLC_HAS_RETH | PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_MIDDLE] = PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_LAST] = PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_LAST_IMM] = PLC_HAS_IMM | PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_ONLY] = PLC_HAS_RETH | PLC_HAS_PAYLOAD,
    [CX_PKT_WRITE_ONLY_IMM] = PLC_HAS_RETH | PLC_HAS_IMM | PLC_HAS_PAYLOAD,
    [CX_PKT_READ_REQUEST] = PLC_HAS_RETH,
    [CX_PKT_READ_FIRST] = PLC_HAS_AETH | PLC_HAS_PAYLOAD,
    [CX_PKT_READ_MIDDLE] = PLC_HAS_PAYLOAD,
    [CX_PKT_READ_LAST] = PLC_HAS_AETH | PLC_HAS_PAYLOAD,
    [CX_PKT_READ_ONLY] = PLC_HAS_AETH | PLC_HAS_PAYLOAD,
    [CX_PKT_ACK] = PLC_HAS_AETH,
    [CX_PKT_ATOMIC_ACK] = PLC_HAS_AETH | PLC_HAS_ATOMIC_ACK,
    [CX_PKT_COMPARE_SWAP] = PLC_HAS_ATOMIC,
    [CX_PKT_FETCH_ADD] = PLC_HAS_ATOMIC,
    [CX_PKT_SEND_LAST_INV] = PLC_HAS_IMM | PLC_HAS_PAYLOAD,
    [CX_PKT_SEND_ONLY_INV] = PLC_HAS_IMM | PLC_HAS_PAYLOAD,
};

/* What is in a packet of @opcode; 0: there is no such packet */
static uint16_t plc_packet_has(uint8_t opcode)
{
    uint8_t kind = opcode & CX_PKT_KIND;

    switch (opcode & CX_PKT_SERVICE) {
    case CX_SERVICE_RC:
        return kind < CX_PKT_KINDS ? plc_has[kind] : 0;
    case CX_SERVICE_UC:
        return kind <= CX_PKT_WRITE_ONLY_IMM ? plc_has[kind] : 0;
    case CX_SERVICE_XRC:
        /* All requests, and no answers */
        return kind >= CX_PKT_KINDS || !plc_has[kind] ? 0 :
               kind <= CX_PKT_READ_REQUEST || kind >= CX_PKT_COMPARE_SWAP ?
               plc_has[kind] | PLC_HAS_XRCETH : plc_has[kind];
    case CX_SERVICE_UD:
        return kind == CX_PKT_SEND_ONLY || kind == CX_PKT_SEND_ONLY_IMM ?
               plc_has[kind] | PLC_HAS_DETH : 0;
    case CX_SERVICE_CNP:
        return kind == CX_PKT_CNP ? PLC_HAS_CNP : 0;
    default:
        return 0;
    }
}

static uint32_t plc_headers(uint16_t has)
{
    return CX_BTH_SIZE + (has & PLC_HAS_AETH ? CX_AETH_SIZE : 0) +
           (has & PLC_HAS_XRCETH ? CX_XRCETH_SIZE : 0) +
           (has & PLC_HAS_RETH ? CX_RETH_SIZE : 0) +
           (has & PLC_HAS_DETH ? CX_DETH_SIZE : 0) +
           (has & PLC_HAS_ATOMIC ? CX_ATOMIC_ETH_SIZE : 0) +
           (has & PLC_HAS_ATOMIC_ACK ? CX_ATOMIC_ACK_SIZE : 0) +
           (has & PLC_HAS_CNP ? CX_CNP_SIZE : 0) +
           (has & PLC_HAS_IMM ? CX_IMM_SIZE : 0);
}

PlcPacket *plc_packet_new(uint8_t opcode, uint32_t qpn, uint32_t psn,
                          uint32_t bytes, uint8_t **payload)
{
    uint32_t headers = plc_headers(plc_packet_has(opcode));
    uint32_t pad = -bytes & 3;
    uint32_t len = headers + bytes + pad;
    PlcPacket *p = g_malloc(sizeof(*p) + PLC_HEADROOM + len + CX_ICRC_SIZE);
    uint8_t *bth = p->data + PLC_HEADROOM;

    p->from = 0;
    p->marked = false;
    p->grh = false;
    p->datagram = false;
    p->raw = false;
    p->l3 = PLC_L3_GRH;
    p->len = len;
    memset(bth, 0, headers);
    memset(bth + headers + bytes, 0, pad);
    bth[CX_BTH_OPCODE] = opcode;
    bth[CX_BTH_FLAGS] = pad << CX_BTH_PAD_SHIFT;
    stw_be_p(bth + CX_BTH_PKEY, CX_PKEY_DEFAULT);
    stl_be_p(bth + CX_BTH_QPN, qpn);
    stl_be_p(bth + CX_BTH_PSN, psn);
    if (payload) {
        *payload = bth + headers;
    }
    return p;
}

/* An extended header of requests or of answers is the first one, but for XRC */
uint8_t *plc_packet_aeth(PlcPacket *p)
{
    return plc_bth(p) + CX_BTH_SIZE;
}

uint8_t *plc_packet_reth(PlcPacket *p)
{
    uint8_t *bth = plc_bth(p);

    return bth + CX_BTH_SIZE +
           (plc_packet_has(bth[CX_BTH_OPCODE]) & PLC_HAS_XRCETH ?
            CX_XRCETH_SIZE : 0);
}

uint8_t *plc_packet_deth(PlcPacket *p)
{
    return plc_bth(p) + CX_BTH_SIZE;
}

uint8_t *plc_packet_xrceth(PlcPacket *p)
{
    return plc_bth(p) + CX_BTH_SIZE;
}

/* An immediate, or a key that is to be invalidated, is the last one */
uint8_t *plc_packet_imm(PlcPacket *p)
{
    uint8_t *bth = plc_bth(p);

    return bth + plc_headers(plc_packet_has(bth[CX_BTH_OPCODE])) - CX_IMM_SIZE;
}

/* @len is without the checksum; false: it is none, or of no kind we know */
bool plc_packet_parse(const uint8_t *bth, uint32_t len, PlcHeaders *h,
                      uint32_t *qpn)
{
    const uint8_t *p = bth + CX_BTH_SIZE;
    uint32_t headers, pad;
    uint16_t has;

    if (len < CX_BTH_SIZE) {
        return false;
    }
    *h = (PlcHeaders) {
        .service = bth[CX_BTH_OPCODE] & CX_PKT_SERVICE,
        .kind = bth[CX_BTH_OPCODE] & CX_PKT_KIND,
        .solicited = bth[CX_BTH_FLAGS] & CX_BTH_SOLICITED,
        .ack_req = ldl_be_p(bth + CX_BTH_PSN) & CX_BTH_ACK_REQ,
        .psn = ldl_be_p(bth + CX_BTH_PSN) & CX_PSN_MASK,
        .pkey = lduw_be_p(bth + CX_BTH_PKEY),
    };
    *qpn = ldl_be_p(bth + CX_BTH_QPN) & 0xffffff;
    has = plc_packet_has(bth[CX_BTH_OPCODE]);
    if (!has ||
        bth[CX_BTH_FLAGS] & CX_BTH_VERSION_MASK ||
        (lduw_be_p(bth + CX_BTH_PKEY) ^ CX_PKEY_DEFAULT) & 0x7fff) {
        return false;
    }
    headers = plc_headers(has);
    pad = bth[CX_BTH_FLAGS] >> CX_BTH_PAD_SHIFT & 3;
    if (len < headers + pad || len % 4 ||
        (!(has & PLC_HAS_PAYLOAD) && len != headers)) {
        return false;
    }
    if (has & PLC_HAS_AETH) {
        h->syndrome = p[0];
        p += CX_AETH_SIZE;
    }
    if (has & PLC_HAS_XRCETH) {
        h->srqn = ldl_be_p(p) & 0xffffff;
        p += CX_XRCETH_SIZE;
    }
    if (has & PLC_HAS_RETH) {
        h->va = ldq_be_p(p);
        h->rkey = ldl_be_p(p + 8);
        h->len = ldl_be_p(p + 12);
        p += CX_RETH_SIZE;
    }
    if (has & PLC_HAS_DETH) {
        h->qkey = ldl_be_p(p);
        h->src_qpn = ldl_be_p(p + 4) & 0xffffff;
        p += CX_DETH_SIZE;
    }
    if (has & PLC_HAS_ATOMIC) {
        h->va = ldq_be_p(p);
        h->rkey = ldl_be_p(p + 8);
        h->swap_add = ldq_be_p(p + 12);
        h->compare = ldq_be_p(p + 20);
        p += CX_ATOMIC_ETH_SIZE;
    }
    if (has & PLC_HAS_ATOMIC_ACK) {
        h->value = ldq_be_p(p);
        p += CX_ATOMIC_ACK_SIZE;
    }
    if (has & PLC_HAS_IMM) {
        h->imm = ldl_be_p(p);
    }
    h->payload = bth + headers;
    h->bytes = len - headers - pad;
    return true;
}
