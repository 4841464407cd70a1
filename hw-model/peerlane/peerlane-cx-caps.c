/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: capabilities, and what it says about itself and its port.
 */
#include "qemu/osdep.h"
#include "peerlane-cx-eth.h"

typedef struct PlcCap {
    uint32_t field;
    uint32_t val;
} PlcCap;

/* What is not named here is 0: the device does not have it */
static const PlcCap plc_general[] = {
    { CX_CAP_LOG_MAX_SRQ_SZ, PLC_LOG_MAX_SRQ_SIZE },
    { CX_CAP_LOG_MAX_QP_SZ, PLC_LOG_MAX_QP_SIZE },
    { CX_CAP_LOG_MAX_SRQ, PLC_LOG_MAX_SRQ },
    { CX_CAP_LOG_MAX_CQ_SZ, PLC_LOG_MAX_CQ_SIZE },
    { CX_CAP_LOG_MAX_CQ, PLC_LOG_MAX_CQ },
    { CX_CAP_LOG_MAX_EQ_SZ, PLC_LOG_MAX_EQ_SIZE },
    { CX_CAP_LOG_MAX_MKEY, PLC_LOG_MAX_MKEY },
    { CX_CAP_LOG_MAX_EQ, PLC_LOG_MAX_EQ },
    { CX_CAP_MAX_INDIRECTION, PLC_MAX_INDIRECTION },
    { CX_CAP_FIXED_BUFFER_SIZE, 1 },
    { CX_CAP_LOG_MAX_MRW_SZ, 31 },
    { CX_CAP_UMR_EXTENDED_OFFSET, 1 },
    { CX_CAP_NULL_MKEY, 1 },
    { CX_CAP_LOG_MAX_KLM, PLC_LOG_MAX_KLM },
    { CX_CAP_LOG_MAX_RA_REQ_QP, PLC_LOG_MAX_RD_ATOMIC },
    { CX_CAP_LOG_MAX_RA_RES_QP, PLC_LOG_MAX_RD_ATOMIC },
    { CX_CAP_RTS2RTS_QC, 1 },
    { CX_CAP_OUT_OF_SEQ_CNT, 1 },
    { CX_CAP_VPORT_COUNTERS, 1 },
    { CX_CAP_RETRANSMISSION_QC, 1 },
    { CX_CAP_MAX_QC, PLC_MAX_QC - 1 },
    { CX_CAP_ENHANCED_ERROR_QC, 1 },
    { CX_CAP_IB_VIRT, 1 },
    { CX_CAP_LOCAL_CA_ACK_DELAY, 16 },
    { CX_CAP_NUM_PORTS, 1 },
    { CX_CAP_LOG_MAX_MSG, PLC_LOG_MAX_MSG },
    { CX_CAP_CQE_VERSION, 1 },
    { CX_CAP_ATOMIC, 1 },
    { CX_CAP_CQ_OI, 1 },
    { CX_CAP_CQ_RESIZE, 1 },
    { CX_CAP_CQ_MODERATION, 1 },
    { CX_CAP_PG, 1 },
    { CX_CAP_BLOCK_LB_MC, 1 },      /* there is no multicast to come back */
    { CX_CAP_IMAICL, 1 },
    { CX_CAP_SET_DETH_SQPN, 1 },
    { CX_CAP_XRC, 1 },
    { CX_CAP_UD, 1 },
    { CX_CAP_UC, 1 },
    { CX_CAP_RC, 1 },
    { CX_CAP_UAR_SZ, 5 },   /* 32 MiB */
    { CX_CAP_LOG_PG_SZ, 12 },
    { CX_CAP_LOG_BF_REG_SIZE, 9 },
    { CX_CAP_MAX_WQE_SZ_SQ, PLC_MAX_WQE },
    { CX_CAP_MAX_WQE_SZ_RQ, PLC_MAX_RECV_WQE },
    { CX_CAP_LOG_MAX_TRANSPORT_DOMAIN, PLC_LOG_MAX_TD },
    { CX_CAP_LOG_MAX_PD, PLC_LOG_MAX_PD },
    { CX_CAP_LOG_MAX_XRCD, PLC_LOG_MAX_XRCD },
    { CX_CAP_LOG_MAX_RMP, PLC_LOG_MAX_SRQ },
    { CX_CAP_LOG_MAX_UCTX, PLC_LOG_MAX_UCTX },
    { CX_CAP_LOG_MAX_UMEM, PLC_LOG_MAX_UMEM },
    { CX_CAP_MAX_NUM_EQS, (1 << PLC_LOG_MAX_EQ) - 1 },
    { CX_CAP_DEVICE_FREQUENCY_MHZ, PLC_FREQUENCY_KHZ / 1000 },
    { CX_CAP_DEVICE_FREQUENCY_KHZ, PLC_FREQUENCY_KHZ },
};

/* ... and what a port of Ethernet has beside that */
static const PlcCap plc_general_eth[] = {
    { CX_CAP_CC_QUERY_ALLOWED, 1 },
    { CX_CAP_MODIFY_RQ_COUNTER_SET_ID, 1 },
    { CX_CAP_IB_VIRT, 0 },
    { CX_CAP_NIC_FLOW_TABLE, 1 },
    { CX_CAP_PCAM_REG, 1 },     /* registers that are there: none */
    { CX_CAP_PORT_TYPE, CX_PORT_TYPE_ETH },
    { CX_CAP_ETH_NET_OFFLOADS, 1 },
    { CX_CAP_ROCE, 1 },
    { CX_CAP_UCTX_CAP, CX_UCTX_RAW_TX },
    /* 16 blocks, as the driver of frames wants; of them an entry uses 63/64 */
    { CX_CAP_MAX_WQE_SZ_SQ, 16 * CX_WQE_BB },
    { CX_CAP_LOG_MAX_RQ, PLC_LOG_MAX_RQ },
    { CX_CAP_LOG_MAX_SQ, PLC_LOG_MAX_SQ },
    { CX_CAP_LOG_MAX_TIR, PLC_LOG_MAX_TIR },
    { CX_CAP_LOG_MAX_TIS, PLC_LOG_MAX_TIS },
    { CX_CAP_BASIC_CYCLIC_RCV_WQE, 1 },
    { CX_CAP_LOG_MAX_RQT, PLC_LOG_MAX_RQT },
    { CX_CAP_LOG_MAX_RQT_SIZE, PLC_LOG_MAX_RQT_SIZE },
    { CX_CAP_LOG_MAX_STRIDE_SZ_RQ, PLC_LOG_MAX_RQ_STRIDE },
    { CX_CAP_LOG_MIN_STRIDE_SZ_RQ, 4 },
    { CX_CAP_LOG_MAX_STRIDE_SZ_SQ, 6 },
    { CX_CAP_LOG_MIN_STRIDE_SZ_SQ, 6 },
    { CX_CAP_LOG_MAX_WQ_SZ, PLC_LOG_MAX_WQ_SIZE },
    { CX_CAP_LOG_MAX_VLAN_LIST, PLC_LOG_MAX_LIST },
    { CX_CAP_LOG_MAX_MC_LIST, PLC_LOG_MAX_LIST },
    { CX_CAP_LOG_MAX_UC_LIST, PLC_LOG_MAX_LIST },
};

static const PlcCap plc_eth_caps[] = {
    { CX_ETH_CSUM, 1 },
    { CX_ETH_VLAN, 1 },
    { CX_ETH_VLAN_INSERT, 1 },
    { CX_ETH_SELF_LB_MODIFIABLE, 1 },   /* nothing comes back anyway */
    { CX_ETH_MAX_LSO, PLC_LOG_MAX_LSO },
    { CX_ETH_WQE_INLINE_MODE, CX_INLINE_NOT_REQUIRED },
    { CX_ETH_RSS_IND_TBL, 1 },
    { CX_ETH_CQE_CHECKSUM_FULL, 1 },
};

static const PlcCap plc_roce_caps[] = {
    { CX_ROCE_L3_TYPE, CX_ROCE_L3_BOTH },
    { CX_ROCE_VERSION, CX_ROCE_V2_CAP },
    { CX_ROCE_DEST_PORT, 4791 },
    { CX_ROCE_MAX_SRC_PORT, 0xffff },
    { CX_ROCE_MIN_SRC_PORT, 0xc000 },
    { CX_ROCE_TABLE_SIZE, PLC_ROCE_ADDRESSES },
};

static const PlcCap plc_flow_caps[] = {
    { CX_FT_SUPPORT, 1 },
    { CX_FT_FLOW_MODIFY, 1 },
    { CX_FT_MODIFY_ROOT, 1 },
    { CX_FT_MISS_TABLE, 1 },
    { CX_FT_MODIFY, 1 },
    { CX_FT_LOG_MAX_SIZE, PLC_LOG_MAX_TABLE },
    { CX_FT_MAX_LEVEL, PLC_MAX_TABLE_LEVEL },
    { CX_FT_LOG_MAX_NUM, PLC_LOG_MAX_TABLES },
    { CX_FT_LOG_MAX_DESTINATION, 0 },
    { CX_FT_LOG_MAX_FLOW, PLC_LOG_MAX_FLOWS },
    { CX_FT_FIELDS, CX_FT_FIELDS_OUTER },
};

/* Page faults tell of memory, not of work: the driver reads no entries */
static const uint32_t plc_odp[] = {
    CX_ODP_PREFETCH, CX_ODP_RC_SEND, CX_ODP_RC_RECEIVE, CX_ODP_RC_WRITE,
    CX_ODP_RC_READ, CX_ODP_RC_ATOMIC, CX_ODP_RC_SRQ_RECEIVE, CX_ODP_UD_SEND,
    CX_ODP_XRC_SEND, CX_ODP_XRC_RECEIVE, CX_ODP_XRC_WRITE, CX_ODP_XRC_READ,
    CX_ODP_XRC_ATOMIC, CX_ODP_XRC_SRQ_RECEIVE, CX_ODP_MEMORY,
};

enum {
    PLC_ATOMIC_OPS = 0x3,       /* compare and swap, fetch and add */
    PLC_ATOMIC_SIZE = 8,
    PLC_ATOMIC_HOST_ENDIAN = 1,
};

static void plc_caps_put(uint8_t *cap, const PlcCap *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        cx_set(cap, c[i].field, c[i].val);
    }
}

static void plc_cap_eth(uint8_t *cap, uint32_t type)
{
    switch (type) {
    case CX_TYPE_ETH:
        plc_caps_put(cap, plc_eth_caps, ARRAY_SIZE(plc_eth_caps));
        break;
    case CX_TYPE_ROCE:
        plc_caps_put(cap, plc_roce_caps, ARRAY_SIZE(plc_roce_caps));
        break;
    case CX_TYPE_FLOW_TABLE:
        plc_caps_put(cap + CX_FT_NIC_RX, plc_flow_caps,
                     ARRAY_SIZE(plc_flow_caps));
        break;
    }
}

/* A capability's type and, in the lowest bit, whether it is what is set now */
static uint8_t plc_cap_fill(PeerlaneCX *s, uint8_t *cap, uint32_t op_mod)
{
    bool now = op_mod & 1;

    switch (op_mod >> 1) {
    case CX_TYPE_GENERAL:
        plc_caps_put(cap, plc_general, ARRAY_SIZE(plc_general));
        if (s->ethernet) {
            plc_caps_put(cap, plc_general_eth, ARRAY_SIZE(plc_general_eth));
        }
        cx_set(cap, CX_CAP_LOG_MAX_QP,
               now ? s->st->log_max_qp : PLC_LOG_MAX_QP);
        return CX_OK;
    case CX_TYPE_ODP:
        for (unsigned i = 0; i < ARRAY_SIZE(plc_odp); i++) {
            cx_set(cap, plc_odp[i], 1);
        }
        return CX_OK;
    case CX_TYPE_ATOMIC:
        cx_set(cap, CX_ATOMIC_OPS, PLC_ATOMIC_OPS);
        cx_set(cap, CX_ATOMIC_SIZE_QP, PLC_ATOMIC_SIZE);
        cx_set(cap, CX_ATOMIC_MODE_1, 1);
        cx_set(cap, CX_ATOMIC_REQ_MODE,
               now ? s->st->atomic_mode : PLC_ATOMIC_HOST_ENDIAN);
        return CX_OK;
    default:
        if (s->ethernet) {
            plc_cap_eth(cap, op_mod >> 1);
        }
        /* Of those that the manual names the others are what it has not */
        return op_mod >> 1 > CX_TYPE_LAST ? CX_BAD_PARAM : CX_OK;
    }
}

/* Who knows fewer fields asks for fewer */
uint8_t plc_query_hca_cap(PeerlaneCX *s, PlcCmd *c)
{
    g_autofree uint8_t *cap = g_malloc0(CX_CAP_SIZE);
    uint8_t status = plc_cap_fill(s, cap, cx_get(c->in, CX_CMD_OP_MOD));

    memcpy(c->out + CX_OUT_HEAD, cap, MIN(c->out_len - CX_OUT_HEAD,
                                          CX_CAP_SIZE));
    return status;
}

/* Which may be set is set; all else has to be as it is */
static uint8_t plc_set_general(PeerlaneCX *s, const uint8_t *cap)
{
    g_autofree uint8_t *want = g_memdup2(cap, CX_CAP_SIZE);
    g_autofree uint8_t *have = g_malloc0(CX_CAP_SIZE);
    uint32_t log_max_qp = cx_get(cap, CX_CAP_LOG_MAX_QP);

    plc_cap_fill(s, have, CX_TYPE_GENERAL << 1 | 1);
    /* A table of 128 keys, no checksums and small pages are all there is */
    if (cx_get(cap, CX_CAP_PKEY_TABLE_SIZE) ||
        cx_get(cap, CX_CAP_CMDIF_CHECKSUM) ||
        cx_get(cap, CX_CAP_LOG_UAR_PAGE_SZ) || log_max_qp > PLC_LOG_MAX_QP) {
        return CX_BAD_PARAM;
    }
    cx_copy(want, have, CX_CAP_LOG_MAX_QP);
    if (memcmp(want, have, CX_CAP_SIZE)) {
        return CX_BAD_PARAM;
    }
    s->st->log_max_qp = log_max_qp;
    return CX_OK;
}

/* There is one kind of page faults */
static uint8_t plc_set_odp(PeerlaneCX *s, const uint8_t *cap)
{
    g_autofree uint8_t *have = g_malloc0(CX_CAP_SIZE);

    plc_cap_fill(s, have, CX_TYPE_ODP << 1 | 1);
    return memcmp(cap, have, CX_CAP_SIZE) ? CX_BAD_PARAM : CX_OK;
}

uint8_t plc_set_hca_cap(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *cap = c->in + CX_IN_HEAD;
    uint32_t mode;

    if (s->st->up) {
        return CX_BAD_SYS_STATE;
    }
    switch (cx_get(c->in, CX_CMD_OP_MOD) >> 1) {
    case CX_TYPE_GENERAL:
        return plc_set_general(s, cap);
    case CX_TYPE_ODP:
        return plc_set_odp(s, cap);
    case CX_TYPE_ATOMIC:
        /* The driver sends no more than this */
        mode = cx_get(cap, CX_ATOMIC_REQ_MODE);
        if (mode > PLC_ATOMIC_HOST_ENDIAN) {
            return CX_BAD_PARAM;
        }
        s->st->atomic_mode = mode;
        return CX_OK;
    default:
        return CX_BAD_PARAM;
    }
}

uint8_t plc_query_adapter(PeerlaneCX *s, PlcCmd *c)
{
    static const char id[] = "PLN0000000001";
    uint8_t *block = c->out + CX_OUT_HEAD;

    cx_set(block, CX_ADAPTER_IEEE_VENDOR, PLC_IEEE_VENDOR);
    cx_set(block, CX_ADAPTER_VSD_VENDOR, PLC_PCI_VENDOR_ID);
    memcpy(block + CX_F_BIT(CX_ADAPTER_PSID) / 8, id, sizeof(id) - 1);
    return CX_OK;
}

/* There are no special keys: 0 is none that can be had */
uint8_t plc_query_special_contexts(PeerlaneCX *s, PlcCmd *c)
{
    return CX_OK;
}

enum {
    PLC_WIDTH_4X = 2,
    PLC_SPEED_EDR = 32,
    PLC_MTU = 4096,
    PLC_VL_0 = 1,
    PLC_PROTO_IB = 1,
};

uint8_t plc_access_reg(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_REG_ID), len;
    const uint8_t *in = c->in + CX_REG_DATA;
    uint8_t *reg = c->out + CX_REG_DATA;
    bool write = cx_get(c->in, CX_CMD_OP_MOD) == CX_REG_WRITE;

    switch (id) {
    case CX_REG_PTYS:
    case CX_REG_NODE_DESC:
        len = 0x40;
        break;
    case CX_REG_PMTU:
    case CX_REG_PVLC:
    case CX_REG_PAOS:
        len = 0x10;
        break;
    case CX_REG_PCAM:
        len = 0x50;
        break;
    case CX_REG_PPCNT:
        len = 0x100;
        break;
    default:
        return CX_BAD_PARAM;
    }
    if (cx_get(c->in, CX_CMD_OP_MOD) > CX_REG_READ) {
        return CX_BAD_PARAM;
    }
    if (c->in_len < CX_REG_DATA + len) {
        return CX_BAD_INPUT_LEN;
    }
    if (c->out_len < CX_REG_DATA + len) {
        return CX_BAD_OUTPUT_LEN;
    }
    if (id != CX_REG_NODE_DESC && id != CX_REG_PCAM &&
        cx_get(in, CX_PTYS_PORT) != 1) {
        return CX_BAD_PARAM;
    }
    if (s->ethernet && id != CX_REG_NODE_DESC) {
        memcpy(reg, in, 4);
        return write ? plc_eth_reg_write(s, id, in, reg) :
               plc_eth_reg_read(s, id, reg);
    }
    if (write) {
        return CX_BAD_PARAM;
    }
    switch (id) {
    case CX_REG_PTYS:
        cx_set(reg, CX_PTYS_PORT, 1);
        cx_set(reg, CX_PTYS_PROTO_MASK, PLC_PROTO_IB);
        cx_set(reg, CX_PTYS_WIDTH_CAP, PLC_WIDTH_4X);
        cx_set(reg, CX_PTYS_WIDTH_ADMIN, PLC_WIDTH_4X);
        cx_set(reg, CX_PTYS_WIDTH_OPER, PLC_WIDTH_4X);
        cx_set(reg, CX_PTYS_PROTO_CAP, PLC_SPEED_EDR);
        cx_set(reg, CX_PTYS_PROTO_ADMIN, PLC_SPEED_EDR);
        cx_set(reg, CX_PTYS_PROTO_OPER, PLC_SPEED_EDR);
        break;
    case CX_REG_PMTU:
        cx_set(reg, CX_PMTU_PORT, 1);
        cx_set(reg, CX_PMTU_MAX, PLC_MTU);
        cx_set(reg, CX_PMTU_ADMIN, PLC_MTU);
        cx_set(reg, CX_PMTU_OPER, PLC_MTU);
        break;
    case CX_REG_PVLC:
        cx_set(reg, CX_PVLC_PORT, 1);
        cx_set(reg, CX_PVLC_HW_CAP, PLC_VL_0);
        cx_set(reg, CX_PVLC_ADMIN, PLC_VL_0);
        cx_set(reg, CX_PVLC_OPER, PLC_VL_0);
        break;
    case CX_REG_PPCNT:
        /* Nothing goes wrong on this link that these count */
        if (cx_get(in, CX_PPCNT_GROUP) != CX_PPCNT_IB ||
            cx_get(in, CX_PPCNT_CLEAR)) {
            return CX_BAD_PARAM;
        }
        cx_set(reg, CX_PPCNT_PORT, 1);
        cx_set(reg, CX_PPCNT_GROUP, CX_PPCNT_IB);
        break;
    case CX_REG_NODE_DESC:
        snprintf((char *)reg, len, "peerlane %s", plc_name(s));
        break;
    default:
        return CX_BAD_PARAM;
    }
    return CX_OK;
}

/* There is one virtual port, the function's own, on one port */
bool plc_own_vport(PlcCmd *c)
{
    return !cx_get(c->in, CX_VPORT_OTHER) &&
           cx_get(c->in, CX_VPORT_PORT) <= 1 &&
           !cx_get(c->in, CX_VPORT_NUMBER);
}

enum {
    PLC_PHYS_POLLING = 2,
    PLC_PHYS_LINK_UP = 5,
    PLC_SUBNET_TIMEOUT = 18,
};

uint8_t plc_query_vport_context(PeerlaneCX *s, PlcCmd *c)
{
    uint8_t *ctx = c->out + CX_OUT_HEAD;
    uint32_t state = plc_net_up(s) ? PLC_PORT_ACTIVE : PLC_PORT_DOWN;

    if (!plc_own_vport(c)) {
        return CX_BAD_PARAM;
    }
    cx_set(ctx, CX_HVC_PHYS_STATE, state == PLC_PORT_ACTIVE ?
           PLC_PHYS_LINK_UP : PLC_PHYS_POLLING);
    cx_set(ctx, CX_HVC_PORT_STATE, state);
    cx_set(ctx, CX_HVC_VPORT_STATE, state);
    cx_set(ctx, CX_HVC_SYS_GUID, s->guid);
    cx_set(ctx, CX_HVC_PORT_GUID, s->guid);
    cx_set(ctx, CX_HVC_NODE_GUID, s->guid);
    cx_set(ctx, CX_HVC_LID, s->lid);
    cx_set(ctx, CX_HVC_SM_LID, s->lid);
    cx_set(ctx, CX_HVC_SUBNET_TIMEOUT, PLC_SUBNET_TIMEOUT);
    return CX_OK;
}

#define PLC_GIDS                8
#define PLC_ALL                 0xffff
#define PLC_PKEY_DEFAULT        0xffff

/* How many entries of a table of @size are asked for, from *@first; 0: none */
static uint32_t plc_index(PlcCmd *c, uint32_t size, uint32_t *first)
{
    *first = cx_get(c->in, CX_VPORT_INDEX);
    if (*first == PLC_ALL) {
        *first = 0;
        return size;
    }
    return *first < size;
}

/* The first one of the port, and the only one that is set */
void plc_gid(PeerlaneCX *s, uint8_t *gid)
{
    stq_be_p(gid, PLC_SUBNET_PREFIX);
    stq_be_p(gid + 8, s->guid);
}

uint8_t plc_query_vport_gid(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t first, n = plc_index(c, PLC_GIDS, &first);

    if (!plc_own_vport(c) || !n) {
        return CX_BAD_PARAM;
    }
    if (c->out_len < CX_OUT_HEAD + 16 * n) {
        return CX_BAD_OUTPUT_LEN;
    }
    cx_set(c->out, CX_VPORT_GIDS, n);
    if (!first) {
        plc_gid(s, c->out + CX_OUT_HEAD);
    }
    return CX_OK;
}

uint8_t plc_query_vport_pkey(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t first, n = plc_index(c, PLC_PKEYS, &first);

    if (!plc_own_vport(c) || !n) {
        return CX_BAD_PARAM;
    }
    if (c->out_len < CX_OUT_HEAD + 4 * n) {
        return CX_BAD_OUTPUT_LEN;
    }
    if (!first) {
        stl_be_p(c->out + CX_OUT_HEAD, PLC_PKEY_DEFAULT);
    }
    return CX_OK;
}

uint8_t plc_query_vport_counter(PeerlaneCX *s, PlcCmd *c)
{
    const uint64_t *n = s->counters;

    if (!plc_own_vport(c) || cx_get(c->in, CX_VPORT_CLEAR)) {
        return CX_BAD_PARAM;
    }
    stq_be_p(c->out + CX_VPORT_COUNTER_RX, n[PLC_CNT_PACKETS_IN]);
    stq_be_p(c->out + CX_VPORT_COUNTER_RX + 8, n[PLC_CNT_BYTES_IN]);
    stq_be_p(c->out + CX_VPORT_COUNTER_TX, n[PLC_CNT_PACKETS_OUT]);
    stq_be_p(c->out + CX_VPORT_COUNTER_TX + 8, n[PLC_CNT_BYTES_OUT]);
    for (unsigned i = 0; i < 2 * 3 * 2; i++) {
        unsigned kind = i / 4, out = i / 2 % 2;

        stq_be_p(c->out + CX_VPORT_COUNTER_ETH + 8 * i,
                 s->eth_count[out][kind][i % 2]);
    }
    return CX_OK;
}
