/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: what the parts of a port of Ethernet share.
 */
#ifndef HW_PEERLANE_CX_ETH_H
#define HW_PEERLANE_CX_ETH_H

#include "peerlane-cx.h"
#include "peerlane-cx-eth-regs.h"

/* What there may be of everything; numbers of queues follow those of pairs */
#define PLC_LOG_MAX_SQ          10
#define PLC_LOG_MAX_RQ          10
#define PLC_FIRST_SQN           (1u << PLC_LOG_MAX_QP)
#define PLC_FIRST_RQN           (PLC_FIRST_SQN + (1u << PLC_LOG_MAX_SQ))
#define PLC_LOG_MAX_TIR         10
#define PLC_LOG_MAX_TIS         10
#define PLC_LOG_MAX_RQT         8
#define PLC_LOG_MAX_RQT_SIZE    8
#define PLC_LOG_MAX_WQ_SIZE     13
#define PLC_LOG_MAX_RQ_STRIDE   9
#define PLC_LOG_MAX_LSO         18
#define PLC_LOG_MAX_TABLES      8
#define PLC_LOG_MAX_TABLE       16
#define PLC_LOG_MAX_GROUPS      10
#define PLC_LOG_MAX_FLOWS       12
#define PLC_MAX_TABLE_LEVEL     128
#define PLC_LOG_MAX_LIST        7       /* of addresses, that the driver tells */
#define PLC_MAX_ETH_MTU         9000
#define PLC_ETH_HEAD            18      /* with a tag of a VLAN */
#define PLC_ETH_CRC             4
#define PLC_MAX_FRAME           (PLC_MAX_ETH_MTU + PLC_ETH_HEAD)
#define PLC_MIN_FRAME           60

/* A queue of frames, to send or to receive into */
typedef struct PlcQueue {
    uint32_t id;
    uint8_t state;
    uint32_t pd;
    uint32_t uar;
    uint32_t cqn;
    uint32_t tisn;              /* to send */
    uint32_t user_index;
    uint8_t log_size;
    uint8_t log_stride;
    bool keep_vlan;             /* to receive: tags stay in the frame */
    bool rung;
    bool queued;
    uint16_t head;              /* the next entry */
    uint64_t dbr;
    PlcUmem *dbr_umem;
    PlcBuf buf;
    PlcQp *as;                  /* as whose its keys are checked */
    QTAILQ_ENTRY(PlcQueue) link;
    uint8_t ctx[CX_SQC_SIZE];
} PlcQueue;

typedef struct PlcRqt {
    uint32_t id;
    uint16_t max;
    uint16_t size;
    uint32_t *rqn;
} PlcRqt;

typedef struct PlcTir {
    uint32_t id;
    uint32_t td;
    uint8_t ctx[CX_TIRC_SIZE];
} PlcTir;

typedef struct PlcTis {
    uint32_t id;
    uint32_t td;
    uint8_t ctx[CX_TISC_SIZE];
} PlcTis;

/* Flow tables: entries of a group are matched by its mask, lowest index first */
typedef struct PlcFlow {
    QTAILQ_ENTRY(PlcFlow) link; /* by index */
    struct PlcGroup *group;
    uint32_t index;
    uint16_t action;
    uint32_t tag;
    uint8_t dest_type;
    uint32_t dest;
    uint8_t value[CX_MATCH_SIZE];
} PlcFlow;

typedef struct PlcFlowTable {
    uint32_t id;
    uint8_t level;
    uint8_t log_size;
    uint32_t miss;              /* a table; 0: drop */
    uint32_t groups;
    QTAILQ_HEAD(, PlcFlow) flows;
} PlcFlowTable;

typedef struct PlcGroup {
    uint32_t id;
    PlcFlowTable *table;
    uint32_t start;
    uint32_t end;
    uint32_t flows;
    uint8_t mask[CX_MATCH_SIZE];
} PlcGroup;

/* Of the port, and of the driver's things for it; goes with a reset */
struct PlcEth {
    uint16_t mtu;               /* with header and checksum */
    uint16_t vport_mtu;         /* likewise */
    bool down;                  /* the driver wants it so */
    bool roce;
    uint8_t promisc;
    uint16_t list_size[CX_NIC_LISTS];
    uint64_t list[CX_NIC_LISTS][1 << PLC_LOG_MAX_LIST];
    uint8_t roce_address[PLC_ROCE_ADDRESSES][CX_ROCE_ADDR_SIZE];
    PlcTable sq;
    PlcTable rq;
    PlcTable tir;
    PlcTable tis;
    PlcTable rqt;
    PlcTable table;
    PlcTable group;
    uint32_t flows;
    uint32_t root;              /* the table that frames come to; 0: none */
    QTAILQ_HEAD(, PlcQueue) ready;
    bool turn;                  /* of what has come, not of queues */
};

/* What is in a frame */
typedef struct PlcFrame {
    const uint8_t *data;
    uint32_t len;
    uint16_t l3;                /* where the header is */
    uint16_t l4;                /* 0: there is none that is known */
    uint16_t type;              /* of what is in it, behind a tag */
    bool tagged;
    uint16_t tci;
    uint8_t version;            /* of IP; 0: it is none */
    uint8_t proto;
    bool fragment;
    uint32_t end;               /* of IP's packet */
    bool cut;                   /* it says that it is longer than the frame */
} PlcFrame;

/* peerlane-cx-frame.c: headers, checksums, segments */
void plc_frame_look(PlcFrame *f, const uint8_t *data, uint32_t len);
/* The ones' complement sum, not folded */
uint64_t plc_sum(uint64_t sum, const uint8_t *p, uint32_t len);
uint16_t plc_sum_fold(uint64_t sum);
bool plc_frame_l3_good(const PlcFrame *f);
bool plc_frame_l4_good(const PlcFrame *f);
void plc_frame_checksum(uint8_t *data, uint32_t len, uint8_t flags);
/* The headers of the segment of @len bytes at @at of @total, from *@head */
bool plc_frame_segment(const uint8_t *head, uint32_t head_len, uint8_t *seg,
                       uint32_t at, uint32_t len, uint32_t total, uint32_t n);

/* peerlane-cx-eth.c */
void plc_queue_schedule(PeerlaneCX *s, PlcQueue *q);

/* peerlane-cx-wq.c: queues, and what spreads frames over them */
PlcHandler plc_create_sq, plc_modify_sq, plc_destroy_sq, plc_query_sq,
    plc_create_rq, plc_modify_rq, plc_destroy_rq, plc_query_rq,
    plc_create_rqt, plc_modify_rqt, plc_destroy_rqt, plc_query_rqt,
    plc_create_tir, plc_modify_tir, plc_destroy_tir, plc_query_tir,
    plc_create_tis, plc_modify_tis, plc_destroy_tis, plc_query_tis;
void plc_queue_free(PlcQueue *q);
void plc_rqt_free(PlcRqt *rqt);

/* peerlane-cx-flow.c */
PlcHandler plc_create_flow_table, plc_modify_flow_table,
    plc_destroy_flow_table, plc_create_flow_group, plc_destroy_flow_group,
    plc_set_flow, plc_delete_flow, plc_set_flow_root;
void plc_flow_table_free(PlcFlowTable *t);
/* The TIR that a frame goes to, and the tag that it gets; NULL: dropped */
PlcTir *plc_flow_find(PeerlaneCX *s, const PlcFrame *f, uint32_t *tag);
/* Does an entry lead to the TIR? */
bool plc_flow_names_tir(PeerlaneCX *s, uint32_t tirn);

/* peerlane-cx-vport.c: the port, as the driver sees it */
uint32_t plc_eth_longest(const PlcEth *eth);
PlcHandler plc_query_vport_state, plc_query_nic_vport,
    plc_modify_nic_vport, plc_set_roce_address, plc_query_roce_address,
    plc_query_cong_statistics;

#endif /* HW_PEERLANE_CX_ETH_H */
