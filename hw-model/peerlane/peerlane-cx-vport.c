/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: a port of Ethernet as the driver sees it, and its RoCE
 * addresses.
 */
#include "qemu/osdep.h"
#include "peerlane-cx-eth.h"

/* How the interface counts: with what is around a packet */
static uint16_t plc_hw_mtu(uint16_t mtu)
{
    return mtu + PLC_ETH_HEAD + PLC_ETH_CRC;
}

static bool plc_hw_mtu_good(uint32_t mtu)
{
    return mtu > PLC_ETH_HEAD + PLC_ETH_CRC &&
           mtu <= plc_hw_mtu(PLC_MAX_ETH_MTU);
}

/* The longest frame that is received: longer ones would end receive queues */
uint32_t plc_eth_longest(const PlcEth *e)
{
    return MAX(e->mtu, e->vport_mtu) - PLC_ETH_CRC;
}

uint8_t plc_query_vport_state(PeerlaneCX *s, PlcCmd *c)
{
    bool up = plc_net_up(s);

    if (!plc_own_vport(c) || cx_get(c->in, CX_CMD_OP_MOD)) {
        return CX_BAD_PARAM;
    }
    cx_set(c->out, CX_VPORT_STATE_ADMIN, 1);
    cx_set(c->out, CX_VPORT_STATE_STATE, up);
    return CX_OK;
}

uint8_t plc_query_nic_vport(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t type = cx_get(c->in, CX_VPORT_LIST_TYPE);
    uint8_t *ctx = c->out + CX_NIC_QUERY_CTX;
    PlcEth *e = s->st->eth;
    uint32_t room;

    if (!plc_own_vport(c) || type >= CX_NIC_LISTS) {
        return CX_BAD_PARAM;
    }
    cx_set(ctx, CX_NIC_ROCE_EN, e->roce);
    cx_set(ctx, CX_NIC_MTU, e->vport_mtu);
    cx_set(ctx, CX_NIC_SYS_GUID, s->guid);
    cx_set(ctx, CX_NIC_PORT_GUID, s->guid);
    cx_set(ctx, CX_NIC_NODE_GUID, s->guid);
    cx_set(ctx, CX_NIC_PROMISC_UC, e->promisc >> 2 & 1);
    cx_set(ctx, CX_NIC_PROMISC_MC, e->promisc >> 1 & 1);
    cx_set(ctx, CX_NIC_PROMISC_ALL, e->promisc & 1);
    memcpy(ctx + CX_NIC_MAC, s->conf.macaddr.a, 6);
    room = (c->out_len - CX_NIC_QUERY_CTX - CX_NIC_SIZE) / 8;
    cx_set(ctx, CX_NIC_LIST_TYPE, type);
    cx_set(ctx, CX_NIC_LIST_SIZE, MIN(room, e->list_size[type]));
    for (uint32_t i = 0; i < MIN(room, e->list_size[type]); i++) {
        stq_be_p(ctx + CX_NIC_SIZE + 8 * i, e->list[type][i]);
    }
    return CX_OK;
}

/* Nobody sends less for a CNP: each that has come was ignored */
uint8_t plc_query_cong_statistics(PeerlaneCX *s, PlcCmd *c)
{
    if (cx_get(c->in, CX_CMD_OP_MOD) || cx_get(c->in, CX_CONG_CLEAR)) {
        return CX_BAD_PARAM;
    }
    stq_be_p(c->out + CX_CONG_CNPS_IGNORED, s->counters[PLC_CNT_CNPS_IN]);
    stq_be_p(c->out + CX_CONG_MARKED, s->counters[PLC_CNT_MARKED]);
    stq_be_p(c->out + CX_CONG_CNPS_SENT, s->counters[PLC_CNT_CNPS_OUT]);
    return CX_OK;
}

/* Lists are kept: what comes by the wire is looked at by flow tables */
static uint8_t plc_nic_list(PlcEth *e, PlcCmd *c, const uint8_t *ctx)
{
    uint32_t type = cx_get(ctx, CX_NIC_LIST_TYPE);
    uint32_t n = cx_get(ctx, CX_NIC_LIST_SIZE);

    if (type >= CX_NIC_LISTS) {
        return CX_BAD_PARAM;
    }
    if (n > 1u << PLC_LOG_MAX_LIST) {
        return CX_EXCEED_LIM;
    }
    if ((c->in_len - CX_NIC_MODIFY_CTX - CX_NIC_SIZE) / 8 < n) {
        return CX_BAD_INPUT_LEN;
    }
    for (uint32_t i = 0; i < n; i++) {
        e->list[type][i] = ldq_be_p(ctx + CX_NIC_SIZE + 8 * i);
    }
    e->list_size[type] = n;
    return CX_OK;
}

uint8_t plc_modify_nic_vport(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_NIC_MODIFY_CTX;
    uint32_t fields = cx_get(c->in, CX_NIC_FIELDS);
    PlcEth *e = s->st->eth;

    /* MAC address and GUIDs are the physical function's to set */
    if (!plc_own_vport(c) ||
        fields & ~(CX_NIC_SELECT_PROMISC | CX_NIC_SELECT_LIST |
                   CX_NIC_SELECT_ROCE_EN | CX_NIC_SELECT_MTU |
                   CX_NIC_SELECT_EVENT) ||
        (fields & CX_NIC_SELECT_MTU &&
         !plc_hw_mtu_good(cx_get(ctx, CX_NIC_MTU)))) {
        return CX_BAD_PARAM;
    }
    if (fields & CX_NIC_SELECT_LIST) {
        uint8_t status = plc_nic_list(e, c, ctx);

        if (status) {
            return status;
        }
    }
    if (fields & CX_NIC_SELECT_PROMISC) {
        e->promisc = cx_get(ctx, CX_NIC_PROMISC_UC) << 2 |
                     cx_get(ctx, CX_NIC_PROMISC_MC) << 1 |
                     cx_get(ctx, CX_NIC_PROMISC_ALL);
    }
    if (fields & CX_NIC_SELECT_ROCE_EN) {
        e->roce = cx_get(ctx, CX_NIC_ROCE_EN);
    }
    if (fields & CX_NIC_SELECT_MTU) {
        e->vport_mtu = cx_get(ctx, CX_NIC_MTU);
    }
    return CX_OK;
}

/*
 * Registers
 */

static void plc_reg_mtu(PlcEth *e, uint8_t *reg)
{
    cx_set(reg, CX_PMTU_MAX, plc_hw_mtu(PLC_MAX_ETH_MTU));
    cx_set(reg, CX_PMTU_ADMIN, e->mtu);
    cx_set(reg, CX_PMTU_OPER, e->mtu);
}

uint8_t plc_eth_reg_read(PeerlaneCX *s, uint32_t id, uint8_t *reg)
{
    PlcEth *e = s->st->eth;
    uint32_t speed = CX_PTYS_ETH_100G_CR4;

    switch (id) {
    case CX_REG_PTYS:
        cx_set(reg, CX_PTYS_PROTO_MASK, CX_PROTO_ETH);
        cx_set(reg, CX_PTYS_ETH_CAP, speed);
        cx_set(reg, CX_PTYS_ETH_ADMIN, speed);
        cx_set(reg, CX_PTYS_ETH_OPER, plc_net_up(s) ? speed : 0);
        break;
    case CX_REG_PMTU:
        plc_reg_mtu(e, reg);
        break;
    case CX_REG_PAOS:
        cx_set(reg, CX_PAOS_ADMIN, e->down ? CX_PAOS_DOWN : CX_PAOS_UP);
        cx_set(reg, CX_PAOS_OPER, plc_net_up(s) ? CX_PAOS_UP : CX_PAOS_DOWN);
        break;
    case CX_REG_PCAM:
        /* None of the registers that it tells of */
        break;
    default:
        return CX_BAD_PARAM;
    }
    return CX_OK;
}

/* The port itself is the physical function's: what is asked for is kept */
uint8_t plc_eth_reg_write(PeerlaneCX *s, uint32_t id, const uint8_t *in,
                          uint8_t *reg)
{
    PlcEth *e = s->st->eth;
    uint32_t val;

    switch (id) {
    case CX_REG_PMTU:
        val = cx_get(in, CX_PMTU_ADMIN);
        if (!plc_hw_mtu_good(val)) {
            return CX_BAD_PARAM;
        }
        e->mtu = val;
        plc_reg_mtu(e, reg);
        return CX_OK;
    case CX_REG_PAOS:
        val = cx_get(in, CX_PAOS_ADMIN);
        if (!cx_get(in, CX_PAOS_ASE) ||
            (val != CX_PAOS_UP && val != CX_PAOS_DOWN)) {
            return CX_BAD_PARAM;
        }
        e->down = val == CX_PAOS_DOWN;
        return plc_eth_reg_read(s, id, reg);
    default:
        return CX_BAD_PARAM;
    }
}

/*
 * RoCE addresses: an entry without an address is free
 */

static bool plc_roce_index(PlcCmd *c, uint32_t *index)
{
    *index = cx_get(c->in, CX_ROCE_INDEX);
    return *index < PLC_ROCE_ADDRESSES && cx_get(c->in, CX_ROCE_PORT) <= 1;
}

uint8_t plc_set_roce_address(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *addr = c->in + CX_ROCE_ADDR;
    uint32_t l3 = cx_get(addr, CX_ROCE_ADDR_L3), index;
    static const uint8_t none[16];

    if (!plc_roce_index(c, &index)) {
        return CX_BAD_PARAM;
    }
    /* Version 2 alone, and no VLANs */
    if (memcmp(addr, none, 16) &&
        (cx_get(addr, CX_ROCE_ADDR_VERSION) != CX_ROCE_V2 ||
         l3 > CX_ROCE_IPV6 || cx_get(addr, CX_ROCE_ADDR_VLAN) ||
         addr[CX_ROCE_ADDR_MAC] & 1 ||
         plc_gid_is_ipv4(addr) != (l3 == CX_ROCE_IPV4))) {
        return CX_BAD_PARAM;
    }
    memcpy(s->st->eth->roce_address[index], addr, CX_ROCE_ADDR_SIZE);
    return CX_OK;
}

uint8_t plc_query_roce_address(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t index;

    if (!plc_roce_index(c, &index)) {
        return CX_BAD_PARAM;
    }
    memcpy(c->out + CX_ROCE_ADDR, s->st->eth->roce_address[index],
           CX_ROCE_ADDR_SIZE);
    return CX_OK;
}
