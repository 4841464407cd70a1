/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: what the device answers itself of the management datagrams
 * for QP1: those that ask for the counters of the port.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

enum {
    PLC_MAD_SIZE = 256,
    PLC_MAD_BASE_VERSION = 0,
    PLC_MAD_CLASS = 1,
    PLC_MAD_CLASS_VERSION = 2,
    PLC_MAD_METHOD = 3,
    PLC_MAD_STATUS = 4,
    PLC_MAD_ATTRIBUTE = 16,
    PLC_MAD_DATA = 64,          /* of performance management */
    PLC_PERFORMANCE = 0x04,
    PLC_GET = 0x01,
    PLC_SET = 0x02,
    PLC_GET_RESPONSE = 0x81,
    PLC_UNSUPPORTED = 0x000c,   /* method and attribute */
    PLC_INVALID = 0x001c,       /* a field */
    PLC_CLASS_PORT_INFO = 0x0001,
    PLC_PORT_COUNTERS = 0x0012,
    PLC_PORT_COUNTERS_EXT = 0x001d,
    PLC_EXT_WIDTH = 0x0200,     /* there are extended counters */
    PLC_RESPONSE_TIME = 18,     /* 4.096 us << that */
    PLC_ALL_PORTS = 0xff,
};

/* The data of an answer; returns its status */
static uint16_t plc_mad_get(PeerlaneCX *s, uint16_t attribute, uint8_t *data)
{
    /* Data is told in words of 4 bytes */
    const uint64_t count[] = {
        s->counters[PLC_CNT_BYTES_OUT] / 4, s->counters[PLC_CNT_BYTES_IN] / 4,
        s->counters[PLC_CNT_PACKETS_OUT], s->counters[PLC_CNT_PACKETS_IN],
    };
    uint8_t port = data[1];

    memset(data, 0, PLC_MAD_SIZE - PLC_MAD_DATA);
    if (attribute == PLC_CLASS_PORT_INFO) {
        data[0] = 1;
        data[1] = 1;
        stw_be_p(data + 2, PLC_EXT_WIDTH);
        data[7] = PLC_RESPONSE_TIME;
        return 0;
    }
    if (attribute != PLC_PORT_COUNTERS && attribute != PLC_PORT_COUNTERS_EXT) {
        return PLC_UNSUPPORTED;
    }
    if (port != 1 && port != PLC_ALL_PORTS) {
        return PLC_INVALID;
    }
    data[1] = port;
    for (unsigned i = 0; i < ARRAY_SIZE(count); i++) {
        if (attribute == PLC_PORT_COUNTERS) {
            /* They stop at their end */
            stl_be_p(data + 24 + 4 * i, MIN(count[i], UINT32_MAX));
        } else {
            stq_be_p(data + 8 + 8 * i, count[i]);
        }
    }
    if (attribute == PLC_PORT_COUNTERS_EXT) {
        /* All of them have one receiver */
        stq_be_p(data + 40, count[2]);
        stq_be_p(data + 48, count[3]);
    }
    return 0;
}

/* Is this datagram for QP1 the device's?  Then it is answered, if it can be. */
bool plc_mad(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h)
{
    const uint8_t *in = h->payload;
    uint16_t status = PLC_UNSUPPORTED;
    uint8_t *mad, *deth;
    PlcPacket *p;

    /* On a port of Ethernet it is the driver's: where it came from is no LID */
    if (s->ethernet) {
        return false;
    }
    if (h->bytes != PLC_MAD_SIZE || in[PLC_MAD_BASE_VERSION] != 1 ||
        in[PLC_MAD_CLASS] != PLC_PERFORMANCE ||
        in[PLC_MAD_CLASS_VERSION] != 1 ||
        (in[PLC_MAD_METHOD] != PLC_GET && in[PLC_MAD_METHOD] != PLC_SET)) {
        return false;
    }
    /* Who gets no answer asks again */
    if (h->from != s->lid && s->tx_blocked) {
        plc_count(s, PLC_CNT_PACKETS_DROPPED, 1);
        return true;
    }
    p = plc_packet_new(CX_SERVICE_UD | CX_PKT_SEND_ONLY, h->src_qpn, 0,
                       PLC_MAD_SIZE, &mad);
    memcpy(mad, in, PLC_MAD_SIZE);
    mad[PLC_MAD_METHOD] = PLC_GET_RESPONSE;
    if (in[PLC_MAD_METHOD] == PLC_GET) {
        status = plc_mad_get(s, lduw_be_p(in + PLC_MAD_ATTRIBUTE),
                             mad + PLC_MAD_DATA);
    }
    stw_be_p(mad + PLC_MAD_STATUS, status);
    deth = plc_packet_deth(p);
    stl_be_p(deth, qp->qkey);
    stl_be_p(deth + 4, CX_GSI_QPN);
    plc_net_send(s, qp, h->from, p);
    return true;
}
