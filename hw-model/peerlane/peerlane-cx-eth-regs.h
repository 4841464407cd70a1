/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the layout of the public command interface for a port of
 * Ethernet, as in peerlane-cx-regs.h.  Fields of a context count from its start.
 */
#ifndef HW_PEERLANE_CX_ETH_REGS_H
#define HW_PEERLANE_CX_ETH_REGS_H

#include "peerlane-cx-regs.h"

enum {
    CX_OP_QUERY_VPORT_STATE = 0x750,
    CX_OP_QUERY_NIC_VPORT_CONTEXT = 0x754,
    CX_OP_MODIFY_NIC_VPORT_CONTEXT = 0x755,
    CX_OP_QUERY_ROCE_ADDRESS = 0x760,
    CX_OP_SET_ROCE_ADDRESS = 0x761,
    CX_OP_QUERY_CONG_STATISTICS = 0x826,
    CX_OP_CREATE_TIR = 0x900,
    CX_OP_MODIFY_TIR = 0x901,
    CX_OP_DESTROY_TIR = 0x902,
    CX_OP_QUERY_TIR = 0x903,
    CX_OP_CREATE_SQ = 0x904,
    CX_OP_MODIFY_SQ = 0x905,
    CX_OP_DESTROY_SQ = 0x906,
    CX_OP_QUERY_SQ = 0x907,
    CX_OP_CREATE_RQ = 0x908,
    CX_OP_MODIFY_RQ = 0x909,
    CX_OP_DESTROY_RQ = 0x90a,
    CX_OP_QUERY_RQ = 0x90b,
    CX_OP_CREATE_TIS = 0x912,
    CX_OP_MODIFY_TIS = 0x913,
    CX_OP_DESTROY_TIS = 0x914,
    CX_OP_QUERY_TIS = 0x915,
    CX_OP_CREATE_RQT = 0x916,
    CX_OP_MODIFY_RQT = 0x917,
    CX_OP_DESTROY_RQT = 0x918,
    CX_OP_QUERY_RQT = 0x919,
    CX_OP_SET_FLOW_TABLE_ROOT = 0x92f,
    CX_OP_CREATE_FLOW_TABLE = 0x930,
    CX_OP_DESTROY_FLOW_TABLE = 0x931,
    CX_OP_CREATE_FLOW_GROUP = 0x933,
    CX_OP_DESTROY_FLOW_GROUP = 0x934,
    CX_OP_SET_FLOW_TABLE_ENTRY = 0x936,
    CX_OP_DELETE_FLOW_TABLE_ENTRY = 0x938,
    CX_OP_MODIFY_FLOW_TABLE = 0x93c,
};

/* Capabilities: general ones, and of their own kinds */
#define CX_CAP_NIC_FLOW_TABLE           CX_F(0x01a6, 1)
#define CX_CAP_PCAM_REG                 CX_F(0x01aa, 1)
#define CX_CAP_PORT_TYPE                CX_F(0x01b6, 2)
#define CX_CAP_ETH_NET_OFFLOADS         CX_F(0x021c, 1)
#define CX_CAP_ROCE                     CX_F(0x021d, 1)
#define CX_CAP_LOG_MAX_RQ               CX_F(0x0363, 5)
#define CX_CAP_LOG_MAX_SQ               CX_F(0x036b, 5)
#define CX_CAP_LOG_MAX_TIR              CX_F(0x0373, 5)
#define CX_CAP_LOG_MAX_TIS              CX_F(0x037b, 5)
#define CX_CAP_BASIC_CYCLIC_RCV_WQE     CX_F(0x0380, 1)
#define CX_CAP_LOG_MAX_RQT              CX_F(0x038b, 5)
#define CX_CAP_LOG_MAX_RQT_SIZE         CX_F(0x0393, 5)
#define CX_CAP_LOG_MAX_STRIDE_SZ_RQ     CX_F(0x03a3, 5)
#define CX_CAP_LOG_MIN_STRIDE_SZ_RQ     CX_F(0x03ab, 5)
#define CX_CAP_LOG_MAX_STRIDE_SZ_SQ     CX_F(0x03b3, 5)
#define CX_CAP_LOG_MIN_STRIDE_SZ_SQ     CX_F(0x03bb, 5)
#define CX_CAP_LOG_MAX_WQ_SZ            CX_F(0x03db, 5)
#define CX_CAP_LOG_MAX_VLAN_LIST        CX_F(0x03eb, 5)
#define CX_CAP_LOG_MAX_MC_LIST          CX_F(0x03f3, 5)
#define CX_CAP_LOG_MAX_UC_LIST          CX_F(0x03fb, 5)
#define CX_PORT_TYPE_ETH                1

enum {
    CX_TYPE_ETH = 1,
    CX_TYPE_ROCE = 4,
    CX_TYPE_FLOW_TABLE = 7,
};
#define CX_ETH_CSUM                     CX_F(0x0000, 1)
#define CX_ETH_VLAN                     CX_F(0x0001, 1)
#define CX_ETH_VLAN_INSERT              CX_F(0x0007, 1)
#define CX_ETH_SELF_LB_MODIFIABLE       CX_F(0x0008, 1)
#define CX_ETH_MAX_LSO                  CX_F(0x000b, 5)
#define CX_ETH_WQE_INLINE_MODE          CX_F(0x0012, 2)
#define CX_ETH_RSS_IND_TBL              CX_F(0x0014, 4)
#define CX_ETH_CQE_CHECKSUM_FULL        CX_F(0x0023, 1)
#define CX_INLINE_NOT_REQUIRED          2
#define CX_ROCE_L3_TYPE                 CX_F(0x008c, 4)
#define CX_ROCE_VERSION                 CX_F(0x0098, 8)
#define CX_ROCE_DEST_PORT               CX_F(0x00b0, 16)
#define CX_ROCE_MAX_SRC_PORT            CX_F(0x00c0, 16)
#define CX_ROCE_MIN_SRC_PORT            CX_F(0x00d0, 16)
#define CX_ROCE_TABLE_SIZE              CX_F(0x00f0, 16)
#define CX_ROCE_L3_BOTH                 6       /* IPv4 and IPv6 */
#define CX_ROCE_V2_CAP                  4
/* Of received frames, behind 0x40 bytes of what is common to all tables */
#define CX_FT_NIC_RX                    0x40
#define CX_FT_SUPPORT                   CX_F(0x0000, 1)
#define CX_FT_FLOW_MODIFY               CX_F(0x0003, 1)
#define CX_FT_MODIFY_ROOT               CX_F(0x0004, 1)
#define CX_FT_MISS_TABLE                CX_F(0x0005, 1)
#define CX_FT_MODIFY                    CX_F(0x0006, 1)
#define CX_FT_LOG_MAX_SIZE              CX_F(0x0022, 6)
#define CX_FT_MAX_LEVEL                 CX_F(0x0038, 8)
#define CX_FT_LOG_MAX_NUM               CX_F(0x0078, 8)
#define CX_FT_LOG_MAX_DESTINATION       CX_F(0x0098, 8)
#define CX_FT_LOG_MAX_FLOW              CX_F(0x00b8, 8)
#define CX_FT_FIELDS                    CX_F(0x0100, 32) /* one bit for each */
#define CX_FT_FIELDS_OUTER              0xff0ffe00u      /* layers 2 to 4 */

/* The port */
/* For all, one and several; of each what came, then what went */
#define CX_VPORT_COUNTER_ETH            0x70
#define CX_VPORT_STATE_MAX_SPEED        CX_F(0x0060, 16)
#define CX_VPORT_STATE_ADMIN            CX_F(0x0078, 4)
#define CX_VPORT_STATE_STATE            CX_F(0x007c, 4)
#define CX_VPORT_LIST_TYPE              CX_F(0x0065, 3) /* that is asked for */
/* Counters of congestion, 64 bits each */
#define CX_CONG_CLEAR                   CX_F(0x0040, 1)
#define CX_CONG_CNPS_IGNORED            0x18
#define CX_CONG_MARKED                  0x54
#define CX_CONG_CNPS_SENT               0x5c
#define CX_NIC_QUERY_CTX                0x10
#define CX_NIC_MODIFY_CTX               0x100
#define CX_NIC_SIZE                     0x100   /* but for the list behind it */
#define CX_NIC_FIELDS                   CX_F(0x0060, 32)
#define CX_NIC_INLINE_MODE              CX_F(0x0005, 3)
#define CX_NIC_NO_MC_LB                 CX_F(0x001d, 1)
#define CX_NIC_NO_UC_LB                 CX_F(0x001e, 1)
#define CX_NIC_ROCE_EN                  CX_F(0x001f, 1)
#define CX_NIC_MTU                      CX_F(0x0130, 16)
#define CX_NIC_SYS_GUID                 CX_F(0x0140, 64)
#define CX_NIC_PORT_GUID                CX_F(0x0180, 64)
#define CX_NIC_NODE_GUID                CX_F(0x01c0, 64)
#define CX_NIC_PROMISC_UC               CX_F(0x0780, 1)
#define CX_NIC_PROMISC_MC               CX_F(0x0781, 1)
#define CX_NIC_PROMISC_ALL              CX_F(0x0782, 1)
#define CX_NIC_LIST_TYPE                CX_F(0x0785, 3)
#define CX_NIC_LIST_SIZE                CX_F(0x0790, 16)
#define CX_NIC_MAC                      0xf6    /* six bytes */
#define CX_NIC_SELECT_PROMISC           0x10
#define CX_NIC_SELECT_LIST              0x04
#define CX_NIC_SELECT_ROCE_EN           0x02
#define CX_NIC_SELECT_MTU               0x40
#define CX_NIC_SELECT_EVENT             0x20    /* none is told */
#define CX_NIC_LISTS                    3       /* unicast, multicast, VLANs */

enum {
    CX_REG_PAOS = 0x5006,
    CX_REG_PCAM = 0x507f,
};
#define CX_REG_WRITE                    0
#define CX_PAOS_PORT                    CX_F(0x0008, 8)
#define CX_PAOS_ADMIN                   CX_F(0x0014, 4)
#define CX_PAOS_OPER                    CX_F(0x001c, 4)
#define CX_PAOS_ASE                     CX_F(0x0020, 1)
#define CX_PTYS_ETH_CAP                 CX_F(0x0060, 32)
#define CX_PTYS_ETH_ADMIN               CX_F(0x00c0, 32)
#define CX_PTYS_ETH_OPER                CX_F(0x0120, 32)
#define CX_PTYS_ETH_100G_CR4            (1u << 20)
#define CX_PROTO_ETH                    4
enum {
    CX_PAOS_UP = 1,
    CX_PAOS_DOWN = 2,
};

/* RoCE addresses */
#define CX_ROCE_INDEX                   CX_F(0x0040, 16)
#define CX_ROCE_PORT                    CX_F(0x005c, 4)
#define CX_ROCE_ADDR                    0x10    /* where the address is */
#define CX_ROCE_ADDR_SIZE               0x20
#define CX_ROCE_ADDR_MAC                0x12
#define CX_ROCE_ADDR_VLAN               CX_F(0x0083, 1)
#define CX_ROCE_ADDR_L3                 CX_F(0x00d4, 4)
#define CX_ROCE_ADDR_VERSION            CX_F(0x00d8, 8)
#define CX_ROCE_V2                      2
enum {
    CX_ROCE_IPV4 = 0,
    CX_ROCE_IPV6 = 1,
};

/* The primary path of a queue pair */
#define CX_ADS_SGID_INDEX               CX_F(0x0048, 8)
#define CX_ADS_HOP_LIMIT                CX_F(0x0058, 8)
#define CX_ADS_TCLASS                   CX_F(0x0064, 8)
#define CX_ADS_FLOW_LABEL               CX_F(0x006c, 20)
#define CX_ADS_GID                      0x10
#define CX_ADS_UDP_PORT                 CX_F(0x0110, 16)
#define CX_ADS_SIZE                     0x2c
/* ... and the address of a datagram */
#define CX_AV_UDP_PORT          0x1e
#define CX_AV_MAC               0x24

/* Queues: contexts begin behind 0x20 bytes of the command */
#define CX_ETH_CTX                      0x20
#define CX_WQ_CTX                       0x30    /* in a context of SQ or RQ */
#define CX_WQ_SIZE                      0x18
#define CX_SQC_SIZE                     0xf0
#define CX_ETH_PAS                      0x110
#define CX_QUEUE_STATE_NOW              CX_F(0x0040, 4) /* of MODIFY */
#define CX_MODIFY_MASK_HI               CX_F(0x0080, 32)
#define CX_MODIFY_MASK_LO               CX_F(0x00a0, 32)
#define CX_SQC_CD_MASTER                CX_F(0x0001, 1)
#define CX_SQC_FRE                      CX_F(0x0002, 1)
#define CX_SQC_MPWQE                    CX_F(0x0004, 1)
#define CX_QUEUE_STATE                  CX_F(0x0008, 4)
#define CX_SQC_REG_UMR                  CX_F(0x000c, 1)
#define CX_SQC_SWP                      CX_F(0x000d, 1)
#define CX_QUEUE_HAIRPIN                CX_F(0x000e, 1)
#define CX_SQC_NON_WIRE                 CX_F(0x000f, 1)
#define CX_QUEUE_USER_INDEX             CX_F(0x0028, 24)
#define CX_QUEUE_CQN                    CX_F(0x0048, 24)
#define CX_SQC_RATE                     CX_F(0x00f0, 16)
#define CX_SQC_TIS_NUM                  CX_F(0x0100, 16)
#define CX_SQC_TISN                     CX_F(0x0168, 24)
#define CX_RQC_DELAY_DROP               CX_F(0x0001, 1)
#define CX_RQC_SCATTER_FCS              CX_F(0x0002, 1)
#define CX_RQC_NO_VLAN_STRIP            CX_F(0x0003, 1)
#define CX_RQC_MEM_TYPE                 CX_F(0x0004, 4)
#define CX_RQC_COUNTER_SET              CX_F(0x0060, 8)
#define CX_WQ_UAR                       CX_F(0x0068, 24)
#define CX_WQ_DBR_UMEM_ID               CX_F(0x0140, 32)
#define CX_WQ_UMEM_ID                   CX_F(0x0160, 32)
#define CX_WQ_UMEM_OFFSET               CX_F(0x0180, 64)
#define CX_WQ_CYCLIC                    1
#define CX_RQ_MODIFY_VSD                0x2
#define CX_RQ_MODIFY_COUNTER_SET        0x8
enum {
    CX_QUEUE_RST = 0,
    CX_QUEUE_RDY = 1,
    CX_QUEUE_ERR = 3,
};

/* What spreads frames over receive queues */
#define CX_RQTC_MAX                     CX_F(0x00b0, 16)
#define CX_RQTC_ACTUAL                  CX_F(0x00d0, 16)
#define CX_RQTC_TYPE                    CX_F(0x00a5, 3)
#define CX_RQTC_VHCA                    CX_F(0x00c0, 1)
#define CX_RQTC_LIST                    0xf0
#define CX_TIRC_SIZE                    0xf0
#define CX_TIRC_TYPE                    CX_F(0x0020, 4)
#define CX_TIRC_TLS                     CX_F(0x0024, 1)
#define CX_TIRC_MERGE                   CX_F(0x0094, 4)
#define CX_TIRC_RQN                     CX_F(0x00e8, 24)
#define CX_TIRC_SYMMETRIC               CX_F(0x0100, 1)
#define CX_TIRC_TUNNELED                CX_F(0x0102, 1)
#define CX_TIRC_RQTN                    CX_F(0x0108, 24)
#define CX_TIRC_HASH                    CX_F(0x0120, 4)
#define CX_TIRC_SELF_LB                 CX_F(0x0126, 2)
#define CX_TIRC_TD                      CX_F(0x0128, 24)
#define CX_TIRC_KEY                     0x28    /* 40 bytes */
#define CX_TIRC_KEY_SIZE                40
#define CX_TIRC_FIELDS                  CX_F(0x0280, 32)
#define CX_TIRC_INNER_FIELDS            CX_F(0x02a0, 32)
#define CX_TIR_DIRECT                   0
#define CX_TIR_INDIRECT                 1
#define CX_TIR_MODIFY_HASH              0x4
#define CX_TIR_MODIFY_SELF_LB           0x10
#define CX_TIR_MODIFY_MERGE             0x1
enum {
    CX_HASH_NONE = 0,
    CX_HASH_XOR8 = 1,
    CX_HASH_TOEPLITZ = 2,
};
#define CX_HASH_SRC_IP                  0x1
#define CX_HASH_DST_IP                  0x2
#define CX_HASH_SRC_PORT                0x4
#define CX_HASH_DST_PORT                0x8
#define CX_TISC_SIZE                    0xa0
#define CX_TISC_TLS                     CX_F(0x0001, 1)
#define CX_TISC_PRIO                    CX_F(0x000c, 4)
#define CX_TISC_TD                      CX_F(0x0128, 24)
#define CX_TIS_MODIFY_PRIO              0x1

/* Flow tables */
#define CX_FT_OTHER                     CX_F(0x0040, 1)
#define CX_FT_TYPE                      CX_F(0x0080, 8)
#define CX_FT_ID                        CX_F(0x00a8, 24)
#define CX_FT_ID_OUT                    CX_F(0x0048, 24)
#define CX_FT_SELECT                    CX_F(0x0070, 16)
#define CX_FT_CTX                       0x18
#define CX_FTC_FLAGS                    CX_F(0x0000, 4)
#define CX_FTC_MISS                     CX_F(0x0004, 4)
#define CX_FTC_LEVEL                    CX_F(0x0008, 8)
#define CX_FTC_LOG_SIZE                 CX_F(0x0018, 8)
#define CX_FTC_MISS_ID                  CX_F(0x0028, 24)
#define CX_FT_NIC_RX_TYPE               0
#define CX_FT_MISS_DROP                 0
#define CX_FT_MISS_FORWARD              1
#define CX_FT_SELECT_MISS               1
#define CX_ROOT_UNDERLAY                CX_F(0x00c8, 24)
#define CX_ROOT_SET                     0
#define CX_ROOT_CLEAR                   1
#define CX_FG_START                     CX_F(0x00e0, 32)
#define CX_FG_END                       CX_F(0x0120, 32)
#define CX_FG_DEFINER                   CX_F(0x0150, 16)
#define CX_FG_ENABLE                    CX_F(0x01f8, 8)
#define CX_FG_KIND                      CX_F(0x008c, 4)
#define CX_FG_MASK                      0x40
#define CX_FG_ID_IN                     CX_F(0x00c0, 32)
#define CX_FG_ID_OUT                    CX_F(0x0048, 24)
#define CX_FG_OUTER                     1
#define CX_MATCH_SIZE                   0x40    /* outer headers, layers 2 to 4 */
#define CX_MATCH_ALL                    0x200   /* what may be matched */
#define CX_FTE_INDEX                    CX_F(0x0100, 32)
#define CX_FTE_MASK                     CX_F(0x00d8, 8)
#define CX_FTE_CTX                      0x40
#define CX_FTC_GROUP                    CX_F(0x0020, 32)
#define CX_FTC_TAG                      CX_F(0x0048, 24)
#define CX_FTC_ACTION                   CX_F(0x0070, 16)
#define CX_FTC_EXTENDED                 CX_F(0x0080, 1)
#define CX_FTC_DESTS                    CX_F(0x0088, 24)
#define CX_FTC_COUNTERS                 CX_F(0x00a8, 24)
#define CX_FTC_VALUE                    0x40
#define CX_FTC_DEST                     0x300
#define CX_DEST_TYPE                    CX_F(0x0000, 8)
#define CX_DEST_ID                      CX_F(0x0008, 24)
#define CX_FTE_SET                      0
#define CX_FTE_MODIFY                   1
#define CX_FTE_MODIFY_ALL               0x7     /* action, tag, destinations */
enum {
    CX_ACTION_ALLOW = 0x1,
    CX_ACTION_DROP = 0x2,
    CX_ACTION_FORWARD = 0x4,
};
enum {
    CX_DEST_TABLE = 1,
    CX_DEST_TIR = 2,
};

/* Where a frame's fields are in what is matched */
#define CX_MATCH_SMAC                   0x00
#define CX_MATCH_ETHERTYPE              0x06
#define CX_MATCH_DMAC                   0x08
#define CX_MATCH_VLAN                   0x0e
#define CX_MATCH_PROTO                  0x10
#define CX_MATCH_TOS                    0x11
#define CX_MATCH_FLAGS                  0x12
#define CX_MATCH_TCP_SPORT              0x14
#define CX_MATCH_TCP_DPORT              0x16
#define CX_MATCH_TTL                    0x1b
#define CX_MATCH_UDP_SPORT              0x1c
#define CX_MATCH_UDP_DPORT              0x1e
#define CX_MATCH_SRC_IP                 0x20
#define CX_MATCH_DST_IP                 0x30
#define CX_MATCH_CVLAN                  0x8000  /* flags */
#define CX_MATCH_SVLAN                  0x4000
#define CX_MATCH_FRAG                   0x2000
#define CX_MATCH_VERSION_SHIFT          9

/* An entry that sends a frame: control, this, inline headers, data */
#define CX_ETH_SEG                      0x10
#define CX_ETH_CS_FLAGS                 0x14
#define CX_ETH_MSS                      0x16
#define CX_ETH_INLINE                   0x1c    /* bytes, or what to insert */
#define CX_ETH_VLAN_TCI                 0x1e
#define CX_ETH_START                    0x1e
#define CX_ETH_DATA                     0x20
#define CX_ETH_INLINE_SIZE              0x03ff
#define CX_ETH_INSERT_VLAN              0x8000
#define CX_ETH_L3_CSUM                  0x40
#define CX_ETH_L4_CSUM                  0x80
#define CX_WR_LSO                       0x0e

/* Completions of frames */
#define CX_CQE_HASH                     0x0c
#define CX_CQE_HASH_TYPE                0x10
#define CX_CQE_CHECKSUM                 0x14
#define CX_CQE_HEADERS_OK               0x1c
#define CX_CQE_HEADER_TYPES             0x1d
#define CX_CQE_VLAN                     0x1e
#define CX_CQE_FLOW_TAG                 CX_CQE_OPCODE_QPN
#define CX_CQE_L2_OK                    0x01
#define CX_CQE_L3_OK                    0x02
#define CX_CQE_L4_OK                    0x04
#define CX_CQE_HAS_VLAN                 0x01
#define CX_CQE_L3_SHIFT                 2
#define CX_CQE_L4_SHIFT                 4
enum {
    CX_CQE_IPV6 = 1,
    CX_CQE_IPV4 = 2,
    CX_CQE_TCP_NO_ACK = 1,
    CX_CQE_UDP = 2,
    CX_CQE_TCP_ACK = 3,
    CX_CQE_TCP_DATA = 4,
};

#endif /* HW_PEERLANE_CX_ETH_REGS_H */
