/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the layout of the public command interface, and of work
 * queue entries, completions and events.  peerlane-cx.rst says what works.
 *
 * A field is its first bit, as the manual counts them (0 is the highest bit of
 * the first big-endian word), and its width.
 */
#ifndef HW_PEERLANE_CX_REGS_H
#define HW_PEERLANE_CX_REGS_H

#define CX_F(bit, width)        ((bit) << 8 | (width))
#define CX_F_BIT(field)         ((field) >> 8)
#define CX_F_WIDTH(field)       ((field) & 0xff)

/* The initialization segment, at the start of BAR0 */
#define CX_SEG_FW_REV           0x0000
#define CX_SEG_CMDIF_REV        0x0004
#define CX_SEG_CMDQ_HIGH        0x0010
#define CX_SEG_CMDQ_LOW         0x0014
#define CX_SEG_CMD_DOORBELL     0x0018
#define CX_SEG_HEALTH_RFR       0x0238  /* in the highest byte */
#define CX_SEG_HEALTH_SYNDROME  0x023c  /* in the second */
#define CX_SEG_TIMER_HIGH       0x1000
#define CX_SEG_TIMER_LOW        0x1004
#define CX_SEG_HEALTH_COUNTER   0x1010
#define CX_CMDIF_REV            5
#define CX_NIC_DISABLED         1       /* bits 10 to 8 beside the queue */
#define CX_HEALTH_RFR           0x80    /* a reset is asked for */
#define CX_HEALTH_CRITICAL      0x0a
#define CX_HEALTH_FIRMWARE      0x01

/* Within a page of doorbells (UAR) */
#define CX_UAR_SIZE             0x1000
#define CX_UAR_CQ               0x0020
#define CX_UAR_EQ_ARM           0x0040
#define CX_UAR_EQ               0x0048
#define CX_UAR_SEND             0x0800
#define CX_UAR_SEND_BUF         0x0100

/* A slot of the command queue */
#define CX_SLOT_SIZE            64
#define CX_SLOT_TYPE            0x00
#define CX_SLOT_IN_LEN          0x04
#define CX_SLOT_IN_PTR          0x08
#define CX_SLOT_IN              0x10
#define CX_SLOT_OUT             0x20
#define CX_SLOT_OUT_PTR         0x30
#define CX_SLOT_OUT_LEN         0x38
#define CX_SLOT_TOKEN           0x3c
#define CX_SLOT_STATUS          0x3f
#define CX_SLOT_INLINE          16
#define CX_SLOT_TYPE_PCI        0x07
#define CX_SLOT_OWNER           0x01

/* A mailbox */
#define CX_MBOX_DATA            512
#define CX_MBOX_SIZE            576
#define CX_MBOX_NEXT            0x230
#define CX_MBOX_NUMBER          0x238
#define CX_MBOX_TOKEN           0x23d
#define CX_MBOX_ALIGN           512

enum {
    CX_DELIVERY_OK = 0x00,
    CX_DELIVERY_TOKEN = 0x02,
    CX_DELIVERY_BLOCK_NUMBER = 0x03,
    CX_DELIVERY_OUT_ALIGN = 0x04,
    CX_DELIVERY_IN_ALIGN = 0x05,
    CX_DELIVERY_FW = 0x06,
    CX_DELIVERY_IN_LENGTH = 0x07,
    CX_DELIVERY_OUT_LENGTH = 0x08,
    CX_DELIVERY_DESCRIPTOR = 0x10,
};

enum {
    CX_OK = 0x00,
    CX_BAD_OP = 0x02,
    CX_BAD_PARAM = 0x03,
    CX_BAD_SYS_STATE = 0x04,
    CX_BAD_RESOURCE = 0x05,
    CX_RESOURCE_BUSY = 0x06,
    CX_EXCEED_LIM = 0x08,
    CX_BAD_RES_STATE = 0x09,
    CX_NO_RESOURCES = 0x0f,
    CX_BAD_QP_STATE = 0x10,
    CX_BAD_SIZE = 0x40,
    CX_BAD_INPUT_LEN = 0x50,
    CX_BAD_OUTPUT_LEN = 0x51,
};

enum {
    CX_OP_QUERY_HCA_CAP = 0x100,
    CX_OP_QUERY_ADAPTER = 0x101,
    CX_OP_INIT_HCA = 0x102,
    CX_OP_TEARDOWN_HCA = 0x103,
    CX_OP_ENABLE_HCA = 0x104,
    CX_OP_DISABLE_HCA = 0x105,
    CX_OP_QUERY_PAGES = 0x107,
    CX_OP_MANAGE_PAGES = 0x108,
    CX_OP_SET_HCA_CAP = 0x109,
    CX_OP_QUERY_ISSI = 0x10a,
    CX_OP_SET_ISSI = 0x10b,
    CX_OP_CREATE_MKEY = 0x200,
    CX_OP_QUERY_MKEY = 0x201,
    CX_OP_DESTROY_MKEY = 0x202,
    CX_OP_QUERY_SPECIAL_CONTEXTS = 0x203,
    CX_OP_PAGE_FAULT_RESUME = 0x204,
    CX_OP_CREATE_EQ = 0x301,
    CX_OP_DESTROY_EQ = 0x302,
    CX_OP_QUERY_EQ = 0x303,
    CX_OP_CREATE_CQ = 0x400,
    CX_OP_DESTROY_CQ = 0x401,
    CX_OP_QUERY_CQ = 0x402,
    CX_OP_MODIFY_CQ = 0x403,
    CX_OP_CREATE_QP = 0x500,
    CX_OP_DESTROY_QP = 0x501,
    CX_OP_RST2INIT_QP = 0x502,
    CX_OP_INIT2RTR_QP = 0x503,
    CX_OP_RTR2RTS_QP = 0x504,
    CX_OP_RTS2RTS_QP = 0x505,
    CX_OP_SQERR2RTS_QP = 0x506,
    CX_OP_2ERR_QP = 0x507,
    CX_OP_2RST_QP = 0x50a,
    CX_OP_QUERY_QP = 0x50b,
    CX_OP_INIT2INIT_QP = 0x50e,
    CX_OP_CREATE_XRC_SRQ = 0x705,
    CX_OP_DESTROY_XRC_SRQ = 0x706,
    CX_OP_QUERY_XRC_SRQ = 0x707,
    CX_OP_ARM_XRC_SRQ = 0x708,
    CX_OP_QUERY_HCA_VPORT_CONTEXT = 0x762,
    CX_OP_QUERY_HCA_VPORT_GID = 0x764,
    CX_OP_QUERY_HCA_VPORT_PKEY = 0x765,
    CX_OP_QUERY_VPORT_COUNTER = 0x770,
    CX_OP_ALLOC_Q_COUNTER = 0x771,
    CX_OP_DEALLOC_Q_COUNTER = 0x772,
    CX_OP_QUERY_Q_COUNTER = 0x773,
    CX_OP_ALLOC_PD = 0x800,
    CX_OP_DEALLOC_PD = 0x801,
    CX_OP_ALLOC_UAR = 0x802,
    CX_OP_DEALLOC_UAR = 0x803,
    CX_OP_ACCESS_REG = 0x805,
    CX_OP_NOP = 0x80d,
    CX_OP_ALLOC_XRCD = 0x80e,
    CX_OP_DEALLOC_XRCD = 0x80f,
    CX_OP_ALLOC_TRANSPORT_DOMAIN = 0x816,
    CX_OP_DEALLOC_TRANSPORT_DOMAIN = 0x817,
    CX_OP_CREATE_RMP = 0x90c,
    CX_OP_MODIFY_RMP = 0x90d,
    CX_OP_DESTROY_RMP = 0x90e,
    CX_OP_QUERY_RMP = 0x90f,
    CX_OP_CREATE_UCTX = 0xa04,
    CX_OP_DESTROY_UCTX = 0xa06,
    CX_OP_CREATE_UMEM = 0xa08,
    CX_OP_DESTROY_UMEM = 0xa0a,
};

enum {
    CX_EVENT_COMP = 0x00,
    CX_EVENT_ESTABLISHED = 0x02,
    CX_EVENT_CQ_ERROR = 0x04,
    CX_EVENT_WQ_FATAL = 0x05,
    CX_EVENT_PORT = 0x09,
    CX_EVENT_WQ_INVALID = 0x10,
    CX_EVENT_WQ_ACCESS = 0x11,
    CX_EVENT_SRQ_ERROR = 0x12,
    CX_EVENT_LAST_WQE = 0x13,
    CX_EVENT_SRQ_LIMIT = 0x14,
    CX_EVENT_COMMAND = 0x0a,
    CX_EVENT_PAGE_FAULT = 0x0c,
};

/* Structures, in bytes */
#define CX_IN_HEAD              0x10
#define CX_OUT_HEAD             0x10
#define CX_CAP_SIZE             0x1000
#define CX_CQC_SIZE             0x40
#define CX_MKC_SIZE             0x40
#define CX_QPC_SIZE             0xe8
#define CX_CREATE_CTX           0x10
#define CX_CREATE_QPC           0x18
#define CX_CREATE_PAS           0x110
#define CX_UMEM_CTX             0x10
#define CX_UMEM_MTT             0x30
#define CX_RMP_CTX              0x20
#define CX_RMP_SIZE             0xf0
#define CX_XRQC_SIZE            0x40
#define CX_QPC_ADS              0x18
#define CX_REG_DATA             0x10
#define CX_VPORT_COUNTER_RX     0x30    /* packets, then bytes */
#define CX_VPORT_COUNTER_TX     0x40

/* Command fields and contexts */
#define CX_CMD_OPCODE                   CX_F(0x0000, 16)
#define CX_CMD_UID                      CX_F(0x0010, 16)
#define CX_UID_ALL                      0xffff  /* what is made so is all's */
#define CX_CMD_OP_MOD                   CX_F(0x0030, 16)
#define CX_CMD_STATUS                   CX_F(0x0000, 8)
#define CX_CMD_SYNDROME                 CX_F(0x0020, 32)
#define CX_QUERY_PAGES_NUM              CX_F(0x0060, 32)
#define CX_MANAGE_PAGES_NUM             CX_F(0x0060, 32)
#define CX_MANAGE_PAGES_OUT_NUM         CX_F(0x0040, 32)
#define CX_ISSI_CURRENT                 CX_F(0x0050, 16)
#define CX_ISSI_SUPPORTED               CX_F(0x0360, 32)
#define CX_SET_ISSI                     CX_F(0x0050, 16)
#define CX_ADAPTER_IEEE_VENDOR          CX_F(0x00c8, 24)
#define CX_ADAPTER_VSD_VENDOR           CX_F(0x00f0, 16)
#define CX_ADAPTER_PSID                 CX_F(0x0780, 128)
#define CX_ID_OUT                       CX_F(0x0048, 24)
#define CX_ID_IN                        CX_F(0x0048, 24)
#define CX_EQN_OUT                      CX_F(0x0058, 8)
#define CX_EQN_IN                       CX_F(0x0058, 8)
#define CX_QC_OUT                       CX_F(0x0058, 8)
#define CX_QC_IN                        CX_F(0x0058, 8)
#define CX_QC_QUERY                     CX_F(0x00f8, 8)
#define CX_QC_OTHER                     CX_F(0x0040, 1)
#define CX_QC_CLEAR                     CX_F(0x00c0, 1)
#define CX_QC_ALL                       CX_F(0x00c1, 1)
#define CX_VPORT_CLEAR                  CX_F(0x00c0, 1)
#define CX_VPORT_PORT                   CX_F(0x004c, 4)
#define CX_VPORT_OTHER                  CX_F(0x0040, 1)
#define CX_VPORT_NUMBER                 CX_F(0x0050, 16)
#define CX_VPORT_INDEX                  CX_F(0x0070, 16)
#define CX_VPORT_GIDS                   CX_F(0x0060, 16)
#define CX_REG_ID                       CX_F(0x0050, 16)
#define CX_PTYS_PORT                    CX_F(0x0008, 8)
#define CX_PTYS_PROTO_MASK              CX_F(0x001d, 3)
#define CX_PTYS_WIDTH_CAP               CX_F(0x0080, 16)
#define CX_PTYS_PROTO_CAP               CX_F(0x0090, 16)
#define CX_PTYS_WIDTH_ADMIN             CX_F(0x00e0, 16)
#define CX_PTYS_PROTO_ADMIN             CX_F(0x00f0, 16)
#define CX_PTYS_WIDTH_OPER              CX_F(0x0140, 16)
#define CX_PTYS_PROTO_OPER              CX_F(0x0150, 16)
#define CX_PMTU_PORT                    CX_F(0x0008, 8)
#define CX_PMTU_MAX                     CX_F(0x0020, 16)
#define CX_PMTU_ADMIN                   CX_F(0x0040, 16)
#define CX_PMTU_OPER                    CX_F(0x0060, 16)
#define CX_PPCNT_PORT                   CX_F(0x0008, 8)
#define CX_PPCNT_GROUP                  CX_F(0x001a, 6)
#define CX_PPCNT_CLEAR                  CX_F(0x0020, 1)
#define CX_PVLC_PORT                    CX_F(0x0008, 8)
#define CX_PVLC_HW_CAP                  CX_F(0x003c, 4)
#define CX_PVLC_ADMIN                   CX_F(0x005c, 4)
#define CX_PVLC_OPER                    CX_F(0x007c, 4)
#define CX_HVC_PHYS_STATE               CX_F(0x0110, 4)
#define CX_HVC_PORT_STATE               CX_F(0x0118, 4)
#define CX_HVC_VPORT_STATE              CX_F(0x011c, 4)
#define CX_HVC_SYS_GUID                 CX_F(0x0140, 64)
#define CX_HVC_PORT_GUID                CX_F(0x0180, 64)
#define CX_HVC_NODE_GUID                CX_F(0x01c0, 64)
#define CX_HVC_LID                      CX_F(0x0300, 16)
#define CX_HVC_SUBNET_TIMEOUT           CX_F(0x031b, 5)
#define CX_HVC_SM_LID                   CX_F(0x0320, 16)
#define CX_MKEY_PG_ACCESS               CX_F(0x0060, 1)
#define CX_MKEY_UMEM_VALID              CX_F(0x0061, 1)
#define CX_MKEY_OCTWORDS                CX_F(0x0300, 32)
#define CX_MKC_FREE                     CX_F(0x0001, 1)
#define CX_MKC_MODE_HI                  CX_F(0x0003, 3)
#define CX_MKC_SMALL_FENCE              CX_F(0x000f, 1)
#define CX_MKC_UMR_EN                   CX_F(0x0010, 1)
#define CX_MKC_A                        CX_F(0x0011, 1)
#define CX_MKC_RW                       CX_F(0x0012, 1)
#define CX_MKC_RR                       CX_F(0x0013, 1)
#define CX_MKC_LW                       CX_F(0x0014, 1)
#define CX_MKC_LR                       CX_F(0x0015, 1)
#define CX_MKC_MODE_LO                  CX_F(0x0016, 2)
#define CX_MKC_QPN                      CX_F(0x0020, 24)
#define CX_MKC_KEY                      CX_F(0x0038, 8)
#define CX_MKC_LENGTH64                 CX_F(0x0060, 1)
#define CX_MKC_BSF_EN                   CX_F(0x0061, 1)
#define CX_MKC_EN_RINVAL                CX_F(0x0067, 1)
#define CX_MKC_PD                       CX_F(0x0068, 24)
#define CX_MKC_START                    CX_F(0x0080, 64)
#define CX_MKC_LEN                      CX_F(0x00c0, 64)
#define CX_MKC_OCTWORDS                 CX_F(0x01a0, 32)
#define CX_MKC_LOG_PAGE                 CX_F(0x01da, 6)
#define CX_RESUME_ERROR                 CX_F(0x0040, 1)
#define CX_RESUME_TOKEN_HI              CX_F(0x0050, 16)
#define CX_RESUME_TOKEN_LO              CX_F(0x0060, 32)
#define CX_EQC_ST                       CX_F(0x0014, 4)
#define CX_EQC_PAGE_OFFSET              CX_F(0x0054, 6)
#define CX_EQC_LOG_SIZE                 CX_F(0x0063, 5)
#define CX_EQC_UAR                      CX_F(0x0068, 24)
#define CX_EQC_INTR                     CX_F(0x00b4, 12)
#define CX_EQC_LOG_PAGE                 CX_F(0x00c3, 5)
#define CX_EQC_CI                       CX_F(0x0148, 24)
#define CX_EQC_PI                       CX_F(0x0168, 24)
#define CX_CQC_STATUS                   CX_F(0x0000, 4)
#define CX_CQC_UMEM_DBR                 CX_F(0x0006, 1)
#define CX_CQC_CQE_SZ                   CX_F(0x0008, 3)
#define CX_CQC_CC                       CX_F(0x000b, 1)
#define CX_CQC_OI                       CX_F(0x000e, 1)
#define CX_CQC_COMP_EN                  CX_F(0x0011, 1)
#define CX_CQC_ST                       CX_F(0x0014, 4)
#define CX_CQC_PAGE_OFFSET              CX_F(0x0054, 6)
#define CX_CQC_LOG_SIZE                 CX_F(0x0063, 5)
#define CX_CQC_UAR                      CX_F(0x0068, 24)
#define CX_CQC_PERIOD                   CX_F(0x0084, 12)
#define CX_CQC_MAX_COUNT                CX_F(0x0090, 16)
#define CX_CQC_EQN                      CX_F(0x00a0, 32)
#define CX_CQC_LOG_PAGE                 CX_F(0x00c3, 5)
#define CX_CQC_CI                       CX_F(0x0148, 24)
#define CX_CQC_PI                       CX_F(0x0168, 24)
#define CX_CQC_DBR                      CX_F(0x01c0, 64)
#define CX_CQC_UMEM_DBR_ID              CX_F(0x0020, 32)
#define CX_CQ_UMEM_OFFSET               CX_F(0x0280, 64)
#define CX_CQ_UMEM_ID                   CX_F(0x02c0, 32)
#define CX_CQ_FIELDS                    CX_F(0x0060, 32)
#define CX_CQ_MODIFY                    0
#define CX_CQ_RESIZE                    1
#define CX_CQ_FIELD_PERIOD              0x01
#define CX_CQ_FIELD_COUNT               0x02
#define CX_CQ_RESIZE_SIZE               0x01
#define CX_CQ_RESIZE_OFFSET             0x02
#define CX_CQ_RESIZE_PAGE               0x04
#define CX_CQ_UMEM_VALID                CX_F(0x02e0, 1)
#define CX_QP_OPT_MASK                  CX_F(0x0080, 32)
#define CX_QP_QPC_EXT                   CX_F(0x0040, 1)
#define CX_QP_UMEM_OFFSET               CX_F(0x0800, 64)
#define CX_QP_UMEM_ID                   CX_F(0x0840, 32)
#define CX_QP_UMEM_VALID                CX_F(0x0860, 1)
#define CX_QPC_STATE                    CX_F(0x0000, 4)
#define CX_QPC_ST                       CX_F(0x0008, 8)
#define CX_QPC_OFFLOAD                  CX_F(0x0018, 4)
#define CX_QPC_WQ_SIG                   CX_F(0x0020, 1)
#define CX_QPC_PD                       CX_F(0x0028, 24)
#define CX_QPC_MTU                      CX_F(0x0040, 3)
#define CX_QPC_LOG_MSG_MAX              CX_F(0x0043, 5)
#define CX_QPC_LOG_RQ_SIZE              CX_F(0x0049, 4)
#define CX_QPC_LOG_RQ_STRIDE            CX_F(0x004d, 3)
#define CX_QPC_NO_SQ                    CX_F(0x0050, 1)
#define CX_QPC_LOG_SQ_SIZE              CX_F(0x0051, 4)
#define CX_QPC_COUNTER_SET              CX_F(0x0060, 8)
#define CX_QPC_UAR                      CX_F(0x0068, 24)
#define CX_QPC_USER_INDEX               CX_F(0x0088, 24)
#define CX_QPC_LOG_PAGE                 CX_F(0x00a3, 5)
#define CX_QPC_REMOTE_QPN               CX_F(0x00a8, 24)
#define CX_QPC_LOG_SRA                  CX_F(0x0388, 3)
#define CX_QPC_RETRY_COUNT              CX_F(0x038d, 3)
#define CX_QPC_RNR_RETRY                CX_F(0x0390, 3)
#define CX_QPC_FRE                      CX_F(0x0394, 1)
#define CX_QPC_NEXT_SEND_PSN            CX_F(0x03c8, 24)
#define CX_QPC_CQN_SND                  CX_F(0x03e8, 24)
#define CX_QPC_DETH_SQPN                CX_F(0x0408, 24)
#define CX_QPC_LOG_RRA                  CX_F(0x0488, 3)
#define CX_QPC_ATOMIC_MODE              CX_F(0x048c, 4)
#define CX_QPC_RRE                      CX_F(0x0490, 1)
#define CX_QPC_RWE                      CX_F(0x0491, 1)
#define CX_QPC_RAE                      CX_F(0x0492, 1)
#define CX_QPC_PAGE_OFFSET              CX_F(0x0494, 6)
#define CX_QPC_MIN_RNR_NAK              CX_F(0x04a3, 5)
#define CX_QPC_NEXT_RCV_PSN             CX_F(0x04a8, 24)
#define CX_QPC_XRCD                     CX_F(0x04c8, 24)
#define CX_QPC_CQN_RCV                  CX_F(0x04e8, 24)
#define CX_QPC_DBR                      CX_F(0x0500, 64)
#define CX_QPC_Q_KEY                    CX_F(0x0540, 32)
#define CX_QPC_RQ_TYPE                  CX_F(0x0565, 3)
#define CX_QPC_SRQN                     CX_F(0x0568, 24)
#define CX_QPC_CS_REQ                   CX_F(0x0630, 8)
#define CX_QPC_CS_RES                   CX_F(0x0638, 8)
#define CX_QPC_DBR_UMEM                 CX_F(0x0683, 1)
#define CX_QPC_DBR_UMEM_ID              CX_F(0x0720, 32)
#define CX_ADS_PKEY_INDEX               CX_F(0x0010, 16)
#define CX_ADS_RLID                     CX_F(0x0030, 16)
#define CX_ADS_ACK_TIMEOUT              CX_F(0x0040, 5)
#define CX_ADS_PORT                     CX_F(0x0128, 8)
#define CX_ADS_WAY                      0x09    /* from here on, ... */
#define CX_ADS_WAY_END                  0x25    /* ... to here */
#define CX_ADS_MAC                      0x26    /* ... and this */
#define CX_RMP_ID                       CX_F(0x0048, 24)
#define CX_RMP_STATE                    CX_F(0x0040, 4)
#define CX_RMP_MASK_HI                  CX_F(0x0080, 32)
#define CX_RMP_MASK_LO                  CX_F(0x00a0, 32)
#define CX_ARM_XRC                      1
#define CX_RMP_MASK_LWM                 1
#define CX_RMPC_STATE                   CX_F(0x0008, 4)
#define CX_RMPC_CYCLIC                  CX_F(0x0020, 1)
#define CX_XRQ_ARM_LWM                  CX_F(0x0070, 16)
#define CX_XRQC_STATE                   CX_F(0x0000, 4)
#define CX_XRQC_WQ_SIG                  CX_F(0x0020, 1)
#define CX_XRQC_CONTINUED               CX_F(0x0021, 1)
#define CX_XRQC_CYCLIC                  CX_F(0x0024, 1)
#define CX_XRQC_DBR_UMEM                CX_F(0x0047, 1)
#define CX_XRQC_USER_INDEX              CX_F(0x0088, 24)
#define CX_XRQC_LWM                     CX_F(0x00e0, 16)
#define CX_XRQC_DBR                     CX_F(0x0140, 64)
#define CX_XRQC_LOG_SIZE                CX_F(0x0004, 4)
#define CX_XRQC_LOG_STRIDE              CX_F(0x0025, 3)
#define CX_XRQC_XRCD                    CX_F(0x0028, 24)
#define CX_XRQC_PAGE_OFFSET             CX_F(0x0040, 6)
#define CX_XRQC_CQN                     CX_F(0x0048, 24)
#define CX_XRQC_LOG_PAGE                CX_F(0x0082, 6)
#define CX_XRQC_PD                      CX_F(0x00c8, 24)
#define CX_XRQ_UMEM_VALID               CX_F(0x02e0, 1)
#define CX_UCTX_CAP                     CX_F(0x0080, 32)
#define CX_UCTX_RAW_TX                  1
#define CX_UCTX_UID                     CX_F(0x0050, 16)
#define CX_UMEM_LOG_PAGE                CX_F(0x009b, 5)
#define CX_UMEM_OFFSET                  CX_F(0x00a0, 32)
#define CX_UMEM_PAGES                   CX_F(0x00c0, 64)
#define CX_WQ_TYPE                      CX_F(0x0000, 4)
#define CX_WQ_SIG                       CX_F(0x0004, 1)
#define CX_WQ_LWM                       CX_F(0x0030, 16)
#define CX_WQ_DBR                       CX_F(0x0080, 64)
#define CX_WQ_DBR_UMEM                  CX_F(0x0120, 1)
#define CX_WQ_UMEM                      CX_F(0x0121, 1)
#define CX_WQ_PAGE_OFFSET               CX_F(0x002b, 5)
#define CX_WQ_PD                        CX_F(0x0048, 24)
#define CX_WQ_LOG_STRIDE                CX_F(0x010c, 4)
#define CX_WQ_LOG_PAGE                  CX_F(0x0113, 5)
#define CX_WQ_LOG_SIZE                  CX_F(0x011b, 5)
#define CX_ODP_PREFETCH                 CX_F(0x0245, 1)
#define CX_ODP_RC_SEND                  CX_F(0x0280, 1)
#define CX_ODP_RC_RECEIVE               CX_F(0x0281, 1)
#define CX_ODP_RC_WRITE                 CX_F(0x0282, 1)
#define CX_ODP_RC_READ                  CX_F(0x0283, 1)
#define CX_ODP_RC_ATOMIC                CX_F(0x0284, 1)
#define CX_ODP_RC_SRQ_RECEIVE           CX_F(0x0285, 1)
#define CX_ODP_UD_SEND                  CX_F(0x02c0, 1)
#define CX_ODP_XRC_SEND                 CX_F(0x02e0, 1)
#define CX_ODP_XRC_RECEIVE              CX_F(0x02e1, 1)
#define CX_ODP_XRC_WRITE                CX_F(0x02e2, 1)
#define CX_ODP_XRC_READ                 CX_F(0x02e3, 1)
#define CX_ODP_XRC_ATOMIC               CX_F(0x02e4, 1)
#define CX_ODP_XRC_SRQ_RECEIVE          CX_F(0x02e5, 1)
#define CX_ODP_MEMORY                   CX_F(0x0600, 1)
#define CX_ATOMIC_MODE_1                CX_F(0x0046, 1)
#define CX_ATOMIC_REQ_MODE              CX_F(0x0040, 2)
#define CX_ATOMIC_OPS                   CX_F(0x0090, 16)
#define CX_ATOMIC_SIZE_QP               CX_F(0x00b0, 16)
#define CX_CAP_LOG_MAX_SRQ_SZ           CX_F(0x0080, 8)
#define CX_CAP_LOG_MAX_QP_SZ            CX_F(0x0088, 8)
#define CX_CAP_LOG_MAX_QP               CX_F(0x009b, 5)
#define CX_CAP_LOG_MAX_SRQ              CX_F(0x00ab, 5)
#define CX_CAP_LOG_MAX_CQ_SZ            CX_F(0x00c8, 8)
#define CX_CAP_LOG_MAX_CQ               CX_F(0x00db, 5)
#define CX_CAP_LOG_MAX_EQ_SZ            CX_F(0x00e0, 8)
#define CX_CAP_LOG_MAX_MKEY             CX_F(0x00ea, 6)
#define CX_CAP_LOG_MAX_EQ               CX_F(0x00fc, 4)
#define CX_CAP_MAX_INDIRECTION          CX_F(0x0100, 8)
#define CX_CAP_FIXED_BUFFER_SIZE        CX_F(0x0108, 1)
#define CX_CAP_LOG_MAX_MRW_SZ           CX_F(0x0109, 7)
#define CX_CAP_UMR_EXTENDED_OFFSET      CX_F(0x0118, 1)
#define CX_CAP_NULL_MKEY                CX_F(0x0119, 1)
#define CX_CAP_LOG_MAX_KLM              CX_F(0x011a, 6)
#define CX_CAP_LOG_MAX_RA_REQ_QP        CX_F(0x014a, 6)
#define CX_CAP_LOG_MAX_RA_RES_QP        CX_F(0x015a, 6)
#define CX_CAP_RTS2RTS_QC               CX_F(0x0169, 1)
#define CX_CAP_CC_QUERY_ALLOWED         CX_F(0x0161, 1)
#define CX_CAP_OUT_OF_SEQ_CNT           CX_F(0x0180, 1)
#define CX_CAP_VPORT_COUNTERS           CX_F(0x0181, 1)
#define CX_CAP_RETRANSMISSION_QC        CX_F(0x0182, 1)
#define CX_CAP_MODIFY_RQ_COUNTER_SET_ID CX_F(0x0184, 1)
#define CX_CAP_PKEY_TABLE_SIZE          CX_F(0x0190, 16)
#define CX_CAP_IB_VIRT                  CX_F(0x01a2, 1)
#define CX_CAP_LOCAL_CA_ACK_DELAY       CX_F(0x01ab, 5)
#define CX_CAP_MAX_QC                   CX_F(0x0186, 10)
#define CX_CAP_ENHANCED_ERROR_QC        CX_F(0x01b1, 1)
#define CX_CAP_NUM_PORTS                CX_F(0x01b8, 8)
#define CX_CAP_LOG_MAX_MSG              CX_F(0x01c3, 5)
#define CX_CAP_CQE_VERSION              CX_F(0x01fc, 4)
#define CX_CAP_CMDIF_CHECKSUM           CX_F(0x0210, 2)
#define CX_CAP_ATOMIC                   CX_F(0x021e, 1)
#define CX_CAP_CQ_OI                    CX_F(0x0220, 1)
#define CX_CAP_CQ_RESIZE                CX_F(0x0221, 1)
#define CX_CAP_CQ_MODERATION            CX_F(0x0222, 1)
#define CX_CAP_PG                       CX_F(0x0227, 1)
#define CX_CAP_BLOCK_LB_MC              CX_F(0x0228, 1)
#define CX_CAP_IMAICL                   CX_F(0x0231, 1)
#define CX_CAP_SET_DETH_SQPN            CX_F(0x0238, 1)
#define CX_CAP_XRC                      CX_F(0x023c, 1)
#define CX_CAP_UD                       CX_F(0x023d, 1)
#define CX_CAP_UC                       CX_F(0x023e, 1)
#define CX_CAP_RC                       CX_F(0x023f, 1)
#define CX_CAP_UAR_SZ                   CX_F(0x024a, 6)
#define CX_CAP_LOG_PG_SZ                CX_F(0x0258, 8)
#define CX_CAP_LOG_BF_REG_SIZE          CX_F(0x026b, 5)
#define CX_CAP_MAX_WQE_SZ_SQ            CX_F(0x0290, 16)
#define CX_CAP_MAX_WQE_SZ_RQ            CX_F(0x02b0, 16)
#define CX_CAP_LOG_MAX_TRANSPORT_DOMAIN  CX_F(0x0323, 5)
#define CX_CAP_LOG_MAX_PD               CX_F(0x032b, 5)
#define CX_CAP_LOG_MAX_XRCD             CX_F(0x033b, 5)
#define CX_CAP_LOG_MAX_RMP              CX_F(0x0383, 5)
#define CX_CAP_LOG_UAR_PAGE_SZ          CX_F(0x0490, 16)
#define CX_CAP_LOG_MAX_UCTX             CX_F(0x0463, 5)
#define CX_CAP_LOG_MAX_UMEM             CX_F(0x046b, 5)
#define CX_CAP_MAX_NUM_EQS              CX_F(0x0470, 16)
#define CX_CAP_DEVICE_FREQUENCY_MHZ     CX_F(0x04c0, 32)
#define CX_CAP_DEVICE_FREQUENCY_KHZ     CX_F(0x04e0, 32)
#define CX_CAP_UCTX_CAP                 CX_F(0x06a0, 32)

#define CX_EQ_BITMASK                   0x58    /* four words of 64 bits */
#define CX_RMPC_WQ                      0x30

enum {
    CX_REG_PMTU = 0x5003,
    CX_REG_PTYS = 0x5004,
    CX_REG_PPCNT = 0x5008,
    CX_REG_PVLC = 0x500f,
    CX_REG_NODE_DESC = 0x6001,
};
#define CX_REG_READ                     1
#define CX_PPCNT_IB                     0x20    /* the group that is kept */

enum {
    CX_TYPE_GENERAL = 0,
    CX_TYPE_ODP = 2,
    CX_TYPE_ATOMIC = 3,
    CX_TYPE_LAST = 0x28,
};

enum {
    CX_MKC_MODE_PA = 0,
    CX_MKC_MODE_MTT = 1,
    CX_MKC_MODE_KLM = 2,
    CX_MKC_MODE_KSM = 3,
};
/* A piece in a key that names keys: bytes (not KSM), key; address */
#define CX_KLM_SIZE                     16
#define CX_KLM_REPEAT                   0x400   /* instead of the first key */
#define CX_MTT_READ                     0x01
#define CX_MTT_WRITE                    0x02
#define CX_ANY_QPN                      0xffffff
#define CX_GSI_QPN                      1       /* QP1, on the wire */

enum {
    CX_QP_RST = 0,
    CX_QP_INIT = 1,
    CX_QP_RTR = 2,
    CX_QP_RTS = 3,
    CX_QP_SQER = 4,             /* sending has failed */
    CX_QP_ERR = 6,
};
enum {
    CX_ST_RC = 0x0,
    CX_ST_UC = 0x1,
    CX_ST_UD = 0x2,
    CX_ST_XRC = 0x3,
    CX_ST_QP0 = 0x7,
    CX_ST_QP1 = 0x8,
    CX_ST_REG_UMR = 0xc,
};
enum {
    CX_RQ_REGULAR = 0,
    CX_RQ_SHARED = 1,
    CX_RQ_NONE = 3,
};
#define CX_OPT_RRE                      0x00000002
#define CX_OPT_RAE                      0x00000004
#define CX_OPT_RWE                      0x00000008
#define CX_OPT_PKEY_INDEX               0x00000010
#define CX_OPT_Q_KEY                    0x00000020
#define CX_OPT_RNR_TIMEOUT              0x00000040
#define CX_OPT_COUNTER_SET              0x02000000

/* Counters of a set: where QUERY_Q_COUNTER has them */
enum {
    CX_QC_WRITES = 0x10,
    CX_QC_READS = 0x18,
    CX_QC_ATOMICS = 0x20,
    CX_QC_OUT_OF_BUFFER = 0x30,
    CX_QC_OUT_OF_SEQUENCE = 0x38,
    CX_QC_DUPLICATES = 0x40,
    CX_QC_RNR_NAKS = 0x48,
    CX_QC_SEQUENCE_NAKS = 0x50,
    CX_QC_IMPLIED_NAKS = 0x58,
    CX_QC_TIMEOUTS = 0x60,
    CX_QC_REQ_RNR_EXCEEDED = 0x70,
    CX_QC_RESP_LOCAL_LENGTH = 0x78,
    CX_QC_REQ_LOCAL_LENGTH = 0x7c,
    CX_QC_RESP_LOCAL_QP = 0x80,
    CX_QC_REQ_LOCAL_QP = 0x84,
    CX_QC_RESP_PROTECTION = 0x88,
    CX_QC_REQ_PROTECTION = 0x8c,
    CX_QC_RESP_CQE_ERRORS = 0x90,
    CX_QC_REQ_CQE_ERRORS = 0x94,
    CX_QC_REQ_MW_BIND = 0x98,
    CX_QC_REQ_BAD_RESPONSE = 0x9c,
    CX_QC_REQ_REMOTE_REQUEST = 0xa0,
    CX_QC_RESP_REMOTE_REQUEST = 0xa4,
    CX_QC_REQ_REMOTE_ACCESS = 0xa8,
    CX_QC_RESP_REMOTE_ACCESS = 0xac,
    CX_QC_REQ_REMOTE_OPERATION = 0xb0,
    CX_QC_REQ_RETRIES_EXCEEDED = 0xb4,
    CX_QC_RESP_FLUSHED = 0xbc,
    CX_QC_REQ_FLUSHED = 0xc0,
    CX_QC_SIZE = 0x100,
};

/* Doorbell records: words in memory */
#define CX_DBR_RECV                     0
#define CX_DBR_SEND                     4
#define CX_DBR_CQ_CI                    0

/* An entry of a shared queue of receives begins with the next one's number */
#define CX_SRQ_NEXT             0x02
#define CX_SRQ_DATA             0x10
enum {
    CX_RMP_READY = 1,
    CX_RMP_ERROR = 3,
    CX_XRQ_READY = 0,
    CX_XRQ_ERROR = 1,
};

#define CX_CQ_DB_SOLICITED              0x01000000

/* A work queue entry for sending is made of segments of 16 bytes */
#define CX_WQE_BB                       64
#define CX_WQE_SEG                      16
#define CX_CTRL_OPCODE                  0x00
#define CX_CTRL_QPN_DS                  0x04
#define CX_CTRL_FLAGS                   0x0b
#define CX_CTRL_IMM                     0x0c
#define CX_CTRL_DS_MASK                 0x3f
#define CX_CTRL_SOLICITED               0x02
#define CX_CTRL_FENCE                   0xe0
#define CX_CTRL_CQ_UPDATE               0x08
/* The address of a datagram; the second half only if the number says so */
#define CX_AV_Q_KEY             0x10
#define CX_AV_QPN               0x18
#define CX_AV_RLID              0x1e
#define CX_AV_TCLASS            0x2a
#define CX_AV_HOP_LIMIT         0x2b
#define CX_AV_GRH               0x2c
#define CX_AV_RGID              0x30
#define CX_AV_SHORT             16
#define CX_AV_LONG              48
#define CX_AV_EXTENDED          0x80000000u     /* with the number */
#define CX_AV_HAS_GRH           0x40000000u     /* with index and flow label */
#define CX_Q_KEY_OWN            0x80000000u     /* the queue pair's is sent */
#define CX_XRC_SRQN                     0x00
#define CX_RADDR_VA                     0x00
#define CX_RADDR_KEY                    0x08
#define CX_ATOMIC_SWAP_ADD              0x00
#define CX_ATOMIC_COMPARE               0x08
#define CX_DATA_LEN                     0x00
#define CX_DATA_LKEY                    0x04
#define CX_DATA_VA                      0x08
#define CX_DATA_INLINE                  0x80000000u
#define CX_LKEY_END                     0x100   /* ends a list of receive */

/* An entry that changes a key: control, this, a context, a list or its place */
#define CX_UMR_SEG                      0x10
#define CX_UMR_FLAGS                    0x00
#define CX_UMR_OCTWORDS                 0x04
#define CX_UMR_OFFSET_LO                0x06
#define CX_UMR_MASK                     0x08
#define CX_UMR_OFFSET_HI                0x10
#define CX_UMR_MKC                      0x40
#define CX_UMR_LIST                     0x80
#define CX_UMR_CHECK_QPN                0x08
#define CX_UMR_OFFSET_EN                0x10
#define CX_UMR_IF_FREE                  0x20
#define CX_UMR_IF_NOT_FREE              0x40
#define CX_UMR_INLINE                   0x80

/* What of the context it changes */
#define CX_MASK_LEN                     (1ull << 0)
#define CX_MASK_PAGE_SIZE               (1ull << 1)
#define CX_MASK_START                   (1ull << 6)
#define CX_MASK_PD                      (1ull << 7)
#define CX_MASK_EN_RINVAL               (1ull << 8)
#define CX_MASK_KEY                     (1ull << 13)
#define CX_MASK_QPN                     (1ull << 14)
#define CX_MASK_LR                      (1ull << 17)
#define CX_MASK_LW                      (1ull << 18)
#define CX_MASK_RR                      (1ull << 19)
#define CX_MASK_RW                      (1ull << 20)
#define CX_MASK_A                       (1ull << 21)
#define CX_MASK_SMALL_FENCE             (1ull << 23)
#define CX_MASK_FREE                    (1ull << 29)

enum {
    CX_WR_NOP = 0x00,
    CX_WR_SEND_INV = 0x01,
    CX_WR_WRITE = 0x08,
    CX_WR_WRITE_IMM = 0x09,
    CX_WR_SEND = 0x0a,
    CX_WR_SEND_IMM = 0x0b,
    CX_WR_READ = 0x10,
    CX_WR_COMPARE_SWAP = 0x11,
    CX_WR_FETCH_ADD = 0x12,
    CX_WR_UMR = 0x25,
};

/* Completions */
#define CX_CQE_SIZE                     64
#define CX_CQE_SLID             0x16
#define CX_CQE_SRC_QPN          0x18
#define CX_CQE_GRH              0x10000000u     /* with the number */
#define CX_CQE_ROCE_SHIFT       24      /* what that is, likewise */
#define CX_CQE_USER_INDEX               0x20
#define CX_CQE_IMM                      0x24    /* or P_Key, or a key */
#define CX_CQE_BYTES                    0x2c
#define CX_CQE_TIME                     0x30
#define CX_CQE_VENDOR                   0x36
#define CX_CQE_SYNDROME                 0x37
#define CX_CQE_OPCODE_QPN               0x38
#define CX_CQE_COUNTER                  0x3c
#define CX_CQE_OP_OWN                   0x3f
#define CX_CQE_SOLICITED                0x02

enum {
    CX_CQE_REQUEST = 0x0,
    CX_CQE_RECV_WRITE_IMM = 0x1,
    CX_CQE_RECV_SEND = 0x2,
    CX_CQE_RECV_SEND_IMM = 0x3,
    CX_CQE_RECV_SEND_INV = 0x4,
    CX_CQE_RESIZED = 0x5,
    CX_CQE_REQUEST_ERROR = 0xd,
    CX_CQE_RECV_ERROR = 0xe,
};
enum {
    CX_SYND_LOCAL_LENGTH = 0x01,
    CX_SYND_LOCAL_QP = 0x02,
    CX_SYND_LOCAL_PROTECTION = 0x04,
    CX_SYND_FLUSHED = 0x05,
    CX_SYND_MW_BIND = 0x06,
    CX_SYND_BAD_RESPONSE = 0x10,
    CX_SYND_REMOTE_REQUEST = 0x12,
    CX_SYND_REMOTE_ACCESS = 0x13,
    CX_SYND_REMOTE_OPERATION = 0x14,
    CX_SYND_RETRY = 0x15,
    CX_SYND_RNR = 0x16,
};

/* Events */
#define CX_EQE_SIZE                     64
#define CX_EQE_TYPE                     0x01
#define CX_EQE_DATA                     0x20
#define CX_EQE_COMP_CQN                 0x38
#define CX_EQE_QPN                      0x38
#define CX_EQE_QUEUE_TYPE               0x34    /* with it */
#define CX_QUEUE_TYPE_RQ                1
#define CX_QUEUE_TYPE_SQ                2
#define CX_EQE_CQ_SYNDROME              0x2b
#define CX_EQE_SUBTYPE                  0x03
#define CX_EQE_PORT                     0x28    /* in the upper 4 bits */
#define CX_EQE_PF_FLAGS                 0x20
#define CX_EQE_PF_TOKEN                 0x28
#define CX_EQE_PF_PAGES                 0x2c    /* in the upper 20 bits */
#define CX_EQE_PF_MKEY                  0x30
#define CX_EQE_PF_VA                    0x34
#define CX_PF_MEMORY                    0x02
#define CX_PF_LAST                      0x80
#define CX_EQE_OWNER                    0x3f

#endif /* HW_PEERLANE_CX_REGS_H */
