/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: packets of the InfiniBand transport, from the base
 * transport header on.  peerlane-cx.rst says which are understood.
 */
#ifndef HW_PEERLANE_CX_PACKET_H
#define HW_PEERLANE_CX_PACKET_H

#include "qemu/bswap.h"
#include "qemu/queue.h"

/* Base transport header */
#define CX_BTH_OPCODE           0
#define CX_BTH_FLAGS            1
#define CX_BTH_PKEY             2
#define CX_BTH_QPN              4       /* the first byte is reserved */
#define CX_BTH_PSN              8       /* the first bit asks to acknowledge */
#define CX_BTH_SIZE             12
#define CX_BTH_SOLICITED        0x80
#define CX_BTH_PAD_SHIFT        4
#define CX_BTH_VERSION_MASK     0x0f
#define CX_BTH_ACK_REQ          0x80000000u
#define CX_BTH_BECN             0x40    /* in the byte in front of the QPN */

/* Extended headers */
#define CX_AETH_SIZE            4
#define CX_RETH_SIZE            16
#define CX_DETH_SIZE            8
#define CX_ATOMIC_ETH_SIZE      28
#define CX_ATOMIC_ACK_SIZE      8
#define CX_IMM_SIZE             4
#define CX_CNP_SIZE             16      /* reserved */
#define CX_XRCETH_SIZE          4
#define CX_MAX_HEADERS          (CX_BTH_SIZE + CX_ATOMIC_ETH_SIZE)
#define CX_ICRC_SIZE            4
#define CX_GRH_SIZE             40
#define CX_GRH_NEXT             0x1b    /* the transport */

/* An opcode is a service, and what is done by it */
#define CX_PKT_SERVICE          0xe0
#define CX_PKT_KIND             0x1f
enum {
    CX_SERVICE_RC = 0x00,
    CX_SERVICE_UC = 0x20,
    CX_SERVICE_UD = 0x60,
    CX_SERVICE_CNP = 0x80,
    CX_SERVICE_XRC = 0xa0,
};

enum {
    CX_PKT_SEND_FIRST = 0x00,
    CX_PKT_SEND_MIDDLE = 0x01,
    CX_PKT_SEND_LAST = 0x02,
    CX_PKT_SEND_LAST_IMM = 0x03,
    CX_PKT_SEND_ONLY = 0x04,
    CX_PKT_SEND_ONLY_IMM = 0x05,
    CX_PKT_WRITE_FIRST = 0x06,
    CX_PKT_WRITE_MIDDLE = 0x07,
    CX_PKT_WRITE_LAST = 0x08,
    CX_PKT_WRITE_LAST_IMM = 0x09,
    CX_PKT_WRITE_ONLY = 0x0a,
    CX_PKT_WRITE_ONLY_IMM = 0x0b,
    CX_PKT_READ_REQUEST = 0x0c,
    CX_PKT_READ_FIRST = 0x0d,
    CX_PKT_READ_MIDDLE = 0x0e,
    CX_PKT_READ_LAST = 0x0f,
    CX_PKT_READ_ONLY = 0x10,
    CX_PKT_ACK = 0x11,
    CX_PKT_ATOMIC_ACK = 0x12,
    CX_PKT_COMPARE_SWAP = 0x13,
    CX_PKT_FETCH_ADD = 0x14,
    CX_PKT_SEND_LAST_INV = 0x16,
    CX_PKT_SEND_ONLY_INV = 0x17,
    CX_PKT_KINDS,
};
#define CX_PKT_CNP              0x01    /* of its own service */

/* What an acknowledge says */
#define CX_AETH_KIND            0x60
#define CX_AETH_VALUE           0x1f
#define CX_AETH_ACK             0x00
#define CX_AETH_RNR             0x20
#define CX_AETH_NAK             0x60
#define CX_AETH_NO_CREDITS      0x1f    /* they are not counted */
enum {
    CX_NAK_SEQUENCE = 0,
    CX_NAK_REQUEST = 1,
    CX_NAK_ACCESS = 2,
    CX_NAK_OPERATION = 3,
};

#define CX_PSN_MASK             0xffffffu
#define CX_PKEY_DEFAULT         0xffff

/* In front of a packet there is room for what carries it */
#define PLC_HEADROOM            62      /* Ethernet, IPv6, UDP */

/* How a packet gets from a port of Ethernet to another one */
typedef struct PlcPath {
    bool own;                   /* it is for the port itself */
    uint8_t sgid;               /* which of its addresses it is from */
    uint8_t hop_limit;
    uint8_t tclass;
    uint32_t flow_label;
    uint16_t port;              /* of UDP; 0: any */
    uint8_t mac[6];
    uint8_t gid[16];
} PlcPath;

/* What is in front of a packet; numbers are those of completions */
enum plc_l3 {
    PLC_L3_GRH = 0,
    PLC_L3_IPV6 = 1,
    PLC_L3_IPV4 = 2,
};

typedef struct PlcPacket {
    QTAILQ_ENTRY(PlcPacket) link;
    uint32_t from;              /* the sender's LID */
    bool marked;                /* congestion on the way */
    bool grh;                   /* there is one in front, in the room there */
    bool datagram;              /* that goes its own way */
    bool raw;                   /* a frame that is none of the transport */
    uint8_t l3;                 /* what is in front */
    PlcPath path;
    uint32_t len;               /* from the base transport header on */
    uint8_t data[];
} PlcPacket;

/* What is in a packet that has been looked at */
typedef struct PlcHeaders {
    uint8_t service;            /* CX_SERVICE_* */
    uint8_t kind;               /* CX_PKT_* */
    uint32_t from;              /* the sender's LID */
    const uint8_t *grh;         /* NULL: there is none */
    uint8_t l3;                 /* what that is */
    uint32_t qkey;              /* of a datagram */
    uint32_t src_qpn;           /* likewise */
    uint16_t pkey;
    uint32_t srqn;              /* whose receives a request of XRC is for */
    bool solicited;
    bool ack_req;
    uint32_t psn;
    uint8_t syndrome;           /* of an acknowledge */
    uint64_t va;
    uint32_t rkey;
    uint32_t len;               /* of the whole, in a request for remote memory */
    uint64_t swap_add;
    uint64_t compare;
    uint64_t value;             /* that an atomic has found */
    uint32_t imm;               /* or what is to be invalidated */
    const uint8_t *payload;
    uint32_t bytes;
} PlcHeaders;

static inline uint8_t *plc_bth(PlcPacket *p)
{
    return p->data + PLC_HEADROOM;
}

/* How far @a is ahead of @b, of 24 bits */
static inline int32_t plc_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t plc_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & CX_PSN_MASK;
}

/* Room for the headers of @opcode and @bytes of payload, in *@payload */
PlcPacket *plc_packet_new(uint8_t opcode, uint32_t qpn, uint32_t psn,
                          uint32_t bytes, uint8_t **payload);
/* Of an extended header of a packet that was made so */
uint8_t *plc_packet_aeth(PlcPacket *p);
uint8_t *plc_packet_reth(PlcPacket *p);
uint8_t *plc_packet_deth(PlcPacket *p);
uint8_t *plc_packet_xrceth(PlcPacket *p);
uint8_t *plc_packet_imm(PlcPacket *p);
bool plc_packet_parse(const uint8_t *bth, uint32_t len, PlcHeaders *h,
                      uint32_t *qpn);

/* peerlane-cx-crc.c: as crc32() of zlib */
uint32_t plc_crc(uint32_t crc, const uint8_t *p, size_t len);

#endif /* HW_PEERLANE_CX_PACKET_H */
