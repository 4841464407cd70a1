/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: what the parts of the device model share.
 */
#ifndef HW_PEERLANE_CX_H
#define HW_PEERLANE_CX_H

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "hw/pci/pci_device.h"
#include "net/net.h"
#include "qom/object.h"
#include "peerlane-engine.h"
#include "peerlane-cx-packet.h"
#include "peerlane-cx-regs.h"

#define TYPE_PEERLANE_CX "peerlane-cx"
OBJECT_DECLARE_SIMPLE_TYPE(PeerlaneCX, PEERLANE_CX)

#define PLC_PCI_VENDOR_ID       0x15b3
#define PLC_PCI_DEVICE_ID       0x101e
#define PLC_IEEE_VENDOR         0x0002c9
#define PLC_PCI_CLASS           0x0207  /* InfiniBand controller */
#define PLC_PCI_CLASS_ETH       0x0200  /* Ethernet controller */
#define PLC_FW_MAJOR            22
#define PLC_FW_MINOR            41
#define PLC_FW_SUB              1000
#define PLC_BAR                 0
#define PLC_BAR_SIZE            (32 * MiB)
#define PLC_BAR_MSIX            2

/* The command queue */
#define PLC_LOG_SLOTS           5
#define PLC_LOG_SLOT            6
#define PLC_CMD_MAX_IN          (4 * MiB + 4 * KiB)
#define PLC_CMD_MAX_OUT         (64 * KiB)

/* What there may be of everything; an id is below its limit */
#define PLC_LOG_MAX_QP          12
#define PLC_LOG_MAX_CQ          12
#define PLC_LOG_MAX_MKEY        14
#define PLC_LOG_MAX_PD          10
#define PLC_LOG_MAX_SRQ         10
#define PLC_LOG_MAX_XRCD        6
#define PLC_LOG_MAX_TD          10
#define PLC_LOG_MAX_EQ          6
#define PLC_LOG_MAX_UCTX        10
#define PLC_LOG_MAX_UMEM        12
#define PLC_MAX_QC              256
#define PLC_MAX_UAR             (PLC_BAR_SIZE / CX_UAR_SIZE)
#define PLC_FIRST_UAR           16
#define PLC_FIRST_QPN           0x40
#define PLC_LOG_MAX_QP_SIZE     15
#define PLC_LOG_MAX_SRQ_SIZE    13
#define PLC_LOG_MAX_CQ_SIZE     16
#define PLC_LOG_MAX_EQ_SIZE     14
#define PLC_LOG_MAX_MSG         30
#define PLC_LOG_MAX_RD_ATOMIC   4
#define PLC_MAX_WQE             1008    /* 63 segments of 16 bytes */
#define PLC_MAX_RECV_WQE        512
#define PLC_MAX_MTT             (16 * MiB)      /* words of all keys together */
#define PLC_LOG_MAX_KLM         12
#define PLC_MAX_INDIRECTION     1       /* keys in keys, but not in those */
#define PLC_MAX_PAGES           1024    /* that the driver may give */
#define PLC_BOOT_PAGES          16
#define PLC_INIT_PAGES          32
#define PLC_PKEYS               128
#define PLC_SUBNET_PREFIX       0xfe80000000000000ull
#define PLC_LAST_LID            0xbfff  /* those above are of many */
#define PLC_LID_WIRE            0xffff  /* of others, on a port of Ethernet */
#define PLC_ROCE_ADDRESSES      16
#define PLC_FREQUENCY_KHZ       1000000

/* The engine moves at most this much before another queue pair's turn ... */
#define PLC_SLICE               (256 * 1024)
/* ... and begins nothing after so much, so that who waits for it may go on */
#define PLC_SLICE_BUDGET        (32 * 1024)
/* What is sent waits this much for company */
#define PLC_TRAIN_BUDGET        (128 * 1024)
/* What a piece of work costs of these budgets even if it moves nothing */
#define PLC_STEP_COST           4096
#define PLC_MAX_MTU             4096
/* How often a queue pair in error looks for receives to flush */
#define PLC_FLUSH_POLL_NS       (10 * SCALE_MS)
/* How long one waits that cannot tell of a page fault: the queue is full */
#define PLC_FAULT_RETRY_NS      (1 * SCALE_MS)

enum plc_counter {
    PLC_CNT_COMMANDS,
    PLC_CNT_COMMAND_ERRORS,
    PLC_CNT_DOORBELLS,
    PLC_CNT_WQES,
    PLC_CNT_WQE_ERRORS,
    PLC_CNT_CQES,
    PLC_CNT_EQES,
    PLC_CNT_INTERRUPTS,
    PLC_CNT_HOST_READ,
    PLC_CNT_HOST_WRITE,
    PLC_CNT_PEER_READ,
    PLC_CNT_PEER_WRITE,
    PLC_CNT_DATA_HOST_READ,
    PLC_CNT_DATA_HOST_WRITE,
    PLC_CNT_DATA_PEER_READ,
    PLC_CNT_DATA_PEER_WRITE,
    PLC_CNT_READS_REFUSED,
    PLC_CNT_WRITES_LOST,
    PLC_CNT_LOOPBACK_MESSAGES,
    PLC_CNT_LOOPBACK_BYTES,
    PLC_CNT_PACKETS_IN,
    PLC_CNT_PACKETS_OUT,
    PLC_CNT_BYTES_IN,
    PLC_CNT_BYTES_OUT,
    PLC_CNT_PACKETS_DROPPED,
    PLC_CNT_RETRANSMISSIONS,
    PLC_CNT_FRAMES_IN,
    PLC_CNT_FRAMES_OUT,
    PLC_CNT_FRAMES_DROPPED,
    PLC_CNT_MARKED,
    PLC_CNT_CNPS_IN,
    PLC_CNT_CNPS_OUT,
    PLC_CNT_ETH_IN,
    PLC_CNT_ETH_OUT,
    PLC_CNT_ETH_BYTES_IN,
    PLC_CNT_ETH_BYTES_OUT,
    PLC_CNT_ETH_DROPPED,
    PLC_NUM_COUNTERS
};

/* Things with an id */
typedef struct PlcTable {
    void **slot;
    uint16_t *owner;            /* the user who has made it; 0: the driver */
    uint32_t first;
    uint32_t size;
    uint32_t next;
} PlcTable;

/* Memory that a user has registered to make queues in it */
typedef struct PlcUmem {
    uint32_t id;
    uint32_t users;
    uint64_t *page;
    uint64_t pages;
    uint32_t offset;            /* in the first page */
    uint8_t shift;
    bool writable;
} PlcUmem;

/* A queue in memory, as a list of pages */
typedef struct PlcBuf {
    PlcUmem *umem;              /* that they are of; NULL: the driver named them */
    uint64_t *page;
    uint32_t pages;
    uint32_t offset;
    uint8_t shift;
} PlcBuf;

/* What queue pairs that refer to it count */
typedef struct PlcQc {
    uint32_t count[CX_QC_SIZE / 4];
} PlcQc;

typedef struct PlcEq {
    uint32_t id;
    uint32_t uar;
    uint32_t intr;
    uint8_t log_size;
    bool armed;
    bool look;                  /* the doorbell was rung to arm it */
    uint32_t pi;
    uint32_t ci;
    uint64_t events[4];
    PlcBuf buf;
    QTAILQ_HEAD(, PlcCq) denied;        /* due, without a place here */
} PlcEq;

/*
 * A timer of the engine, and when it ends; 0: it is not set.  The main loop ends
 * it at any time, so the engine does not ask QEMU whether it is pending.
 */
typedef struct PlcAlarm {
    QEMUTimer *timer;
    int64_t end;
} PlcAlarm;

typedef struct PlcCq {
    uint32_t id;
    uint32_t uar;
    uint32_t eqn;
    uint32_t users;
    uint8_t log_size;
    bool wide;                  /* entries of 128 bytes */
    bool collapsed;             /* all are written to the first place */
    bool ignore_overrun;
    bool overrun;
    bool lost;                  /* a completion: who has posted it fails */
    enum { PLC_CQ_IDLE, PLC_CQ_ARMED, PLC_CQ_SOLICITED } arm;
    uint32_t arm_ci;
    uint32_t pi;
    uint32_t ci;                /* when the doorbell record was read last */
    uint32_t solicited;         /* behind the last solicited entry */
    uint32_t max_count;         /* an armed one tells of so many, 0: one ... */
    uint32_t period;            /* ... or after so many us; 0: never */
    bool late;                  /* the time is over */
    PlcAlarm alarm;
    PeerlaneCX *cx;
    uint64_t dbr;
    PlcUmem *dbr_umem;
    PlcBuf buf;
    bool queued;
    QTAILQ_ENTRY(PlcCq) link;   /* of those with an arm to look at */
    bool denied;
    QTAILQ_ENTRY(PlcCq) denied_link;    /* of those that wait for @eqn */
    uint8_t ctx[CX_CQC_SIZE];
} PlcCq;

typedef struct PlcMkey {
    uint32_t id;
    uint32_t key;
    uint32_t pd;
    uint8_t mode;
    bool free;                  /* nobody can use it */
    bool umr;                   /* entries may change it */
    bool all;                   /* the whole address space */
    bool checked;               /* entries say what they permit */
    bool local_read;
    bool local_write;
    bool remote_read;
    bool remote_write;
    bool atomic;
    uint32_t qpn;
    uint64_t start;
    uint64_t len;
    uint8_t shift;
    uint32_t mtts;
    uint64_t *mtt;              /* pages; or keys, each two words */
    uint8_t ctx[CX_MKC_SIZE];
} PlcMkey;

/* Receives that several queue pairs share */
typedef struct PlcSrq {
    uint32_t id;
    uint32_t cqn;               /* 0: has none */
    uint32_t pd;
    uint32_t xrcd;
    uint32_t users;
    uint32_t user_index;
    uint8_t log_size;
    uint8_t log_stride;
    uint64_t dbr;
    PlcBuf buf;
    bool failed;
    uint16_t next;              /* the entry that is taken next */
    uint16_t taken;             /* how many were */
    uint16_t limit;             /* to be told when there are fewer; 0: not */
    uint8_t ctx[CX_RMP_SIZE];
} PlcSrq;

typedef struct PlcSge {
    uint64_t addr;
    uint32_t len;
    uint32_t key;
    uint32_t pd;                /* of the key; 0: the queue pair's */
    int32_t at;                 /* in the entry itself; -1: in memory */
} PlcSge;

#define PLC_MAX_SGE             64

/* An entry of a send queue that is at work */
typedef struct PlcWork {
    QTAILQ_ENTRY(PlcWork) link;
    uint32_t index;             /* in the queue */
    uint8_t opcode;
    uint8_t flags;
    uint8_t ds;
    uint8_t syndrome;           /* it fails with this when it is the oldest */
    bool checked;               /* its keys */
    uint16_t lid;               /* where it goes */
    PlcPath path;               /* of a datagram, by Ethernet */
    uint32_t qpn;
    uint32_t qkey;              /* of a datagram */
    bool grh;                   /* likewise */
    uint32_t srqn;              /* of XRC: whose receives it is for */
    uint32_t imm;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add;
    uint64_t compare;
    uint32_t total;
    uint32_t psn;               /* of its first packet */
    uint32_t packets;           /* that it takes; of a READ, the answers */
    unsigned sges;
    PlcSge sge[PLC_MAX_SGE];
    uint8_t wqe[PLC_MAX_WQE + CX_WQE_SEG];
} PlcWork;

/* A page that is waited for */
typedef struct PlcFault {
    uint32_t token;             /* 0: none */
    bool failed;                /* the driver had no page */
} PlcFault;

/* What a queue pair is as a requester */
typedef struct PlcReq {
    PlcFault fault;
    QTAILQ_HEAD(, PlcWork) works;
    uint32_t count;             /* of them */
    uint32_t next_psn;          /* of the next entry that is taken up */
    uint32_t send_psn;          /* what to send next */
    uint32_t sent_psn;          /* behind all that was ever sent */
    uint32_t una_psn;           /* the oldest that is not acknowledged */
    bool asked;                 /* again, since an answer was missing there */
    bool timed_out;
    uint8_t put_off;            /* how often the timeout was */
    uint8_t tries;
    uint8_t rnr_tries;
} PlcReq;

typedef struct PlcReply {
    enum { PLC_REPLY_ACK, PLC_REPLY_NAK, PLC_REPLY_READ, PLC_REPLY_ATOMIC } kind;
    uint8_t syndrome;
    bool fatal;                 /* the queue pair fails when it is sent */
    uint32_t psn;
    uint32_t msn;
    uint64_t va;
    uint32_t rkey;
    uint32_t pd;                /* of that; 0: the queue pair's */
    uint32_t len;
    uint32_t done;
    uint64_t value;
} PlcReply;

#define PLC_MAX_REPLIES         32

/* ... and as a responder */
typedef struct PlcResp {
    PlcFault fault;
    uint32_t psn;               /* that is expected */
    uint32_t msn;
    bool nak_sent;              /* for that one */
    bool closing;               /* the last answer is queued */
    enum { PLC_IN_NOTHING, PLC_IN_SEND, PLC_IN_WRITE } in;
    uint32_t done;              /* of the message */
    uint64_t va;                /* where the message goes */
    uint32_t rkey;
    uint32_t left;
    uint32_t srqn;              /* of XRC: whose receives the message is for */
    uint32_t pd;                /* what it names is of; 0: the queue pair's */
    bool taken;                 /* a receive */
    uint16_t index;             /* of that */
    uint64_t room;              /* in it */
    unsigned sges;
    PlcSge sge[PLC_MAX_SGE];
    PlcReply reply[PLC_MAX_REPLIES];
    uint32_t first_reply;
    uint32_t replies;
    /* Atomics are not done twice: what the last ones have found */
    struct {
        bool valid;
        uint32_t psn;
        uint64_t value;
    } atomic[1 << PLC_LOG_MAX_RD_ATOMIC];
    uint32_t atomics;
} PlcResp;

typedef struct PlcQp {
    uint32_t id;
    uint8_t st;
    uint8_t state;
    uint8_t rq_type;
    uint32_t pd;
    uint32_t uar;
    uint32_t user_index;
    uint32_t cqn_send;
    uint32_t cqn_recv;
    uint32_t counter_set;
    PlcSrq *srq;                /* NULL: none, or XRC: each message names one */
    uint32_t xrcd;
    bool has_sq;
    uint8_t log_sq;
    uint8_t log_rq;
    uint32_t rq_stride;
    uint32_t sq_at;             /* in the buffer */
    uint64_t dbr;
    PlcUmem *dbr_umem;
    PlcBuf buf;
    uint32_t sq_head;           /* the oldest entry that is not done */
    uint32_t sq_fetch;          /* the next to take up */
    uint32_t sq_tail;
    uint32_t rq_head;
    uint32_t qkey;
    uint32_t sqpn;              /* who sends, on the wire; 0: its own number */
    uint32_t remote_qpn;
    uint16_t rlid;
    PlcPath path;               /* by Ethernet */
    uint32_t mtu;
    uint32_t rd_atomic;         /* READs and atomics at a time */
    uint8_t retry_count;
    uint8_t rnr_retry;
    uint8_t ack_timeout;
    uint8_t min_rnr;
    bool remote_read;
    bool remote_write;
    bool remote_atomic;
    bool umr;                   /* may change keys */
    bool rung;                  /* its doorbell record is to be read */
    bool established;           /* a request was told since it can receive */
    bool leaves;                /* a shared queue: it has failed */
    int32_t held;               /* what it has taken of that; -1: nothing */
    uint32_t held_srqn;         /* of XRC: of which */
    bool waiting;               /* as a requester, or in error: for the timer */
    bool queued;
    QTAILQ_ENTRY(PlcQp) link;
    PlcAlarm wait_alarm;        /* to wait: for a receive, a page, or to flush */
    PlcAlarm fault_alarm;       /* an answer looks for its page again */
    PlcAlarm ack_alarm;
    int64_t cnp_at;             /* when the next one may be sent */
    PeerlaneCX *cx;
    PlcReq req;
    PlcResp resp;
    uint8_t ctx[CX_QPC_SIZE];
} PlcQp;

/* What a port of Ethernet has, in peerlane-cx-eth.h */
typedef struct PlcEth PlcEth;

/* Everything that the driver has made; goes when the function is reset */
typedef struct PlcState {
    bool enabled;
    bool up;
    uint16_t issi;
    uint8_t atomic_mode;
    uint16_t pkey_size;         /* as the capability encodes it */
    uint8_t log_max_qp;
    uint64_t page[PLC_MAX_PAGES];
    uint32_t pages;
    uint32_t mtts;
    uint32_t faults;            /* how many there were */
    struct {
        uint32_t key;
        uint64_t addr;
        uint32_t len;
    } absent;                   /* what the last access to a key missed */
    PlcTable uctx;
    PlcTable umem;
    PlcTable pd;
    PlcTable uar;
    PlcTable xrcd;
    PlcTable td;
    PlcTable qc;
    PlcTable eq;
    PlcTable cq;
    PlcTable mkey;
    PlcTable srq;
    PlcTable qp;
    PlcEth *eth;
    PlcQp *gsi;                 /* QP1; NULL: there is none */
    QTAILQ_HEAD(, PlcQp) ready;
    QTAILQ_HEAD(, PlcCq) arms;
    QTAILQ_HEAD(, PlcPacket) rx;        /* packets that have come */
    uint32_t rx_own;            /* of them */
    uint32_t rx_frames;
    struct PlcState *next;      /* of those that wait to be freed */
} PlcState;

#define PLC_NEIGHBOURS          64
#define PLC_MAX_PENDING         16

/* States of the port, and the events that tell of them */
enum {
    PLC_PORT_DOWN = 1,
    PLC_PORT_ACTIVE = 4,
};

typedef struct PlcNeighbour {
    uint32_t lid;               /* 0: free */
    bool known;
    bool asked;
    int64_t asked_at;
    uint8_t mac[6];
    uint32_t pending;           /* frames that wait for the address */
    PlcPacket *frame[PLC_MAX_PENDING];
} PlcNeighbour;

struct PeerlaneCX {
    PCIDevice parent_obj;

    /* Properties */
    uint64_t guid;
    uint16_t lid;
    uint16_t vectors;
    char *link_layer;
    bool ethernet;

    MemoryRegion bar;
    uint64_t cmdq;
    uint32_t cmdq_high;
    uint32_t cmds;              /* slots whose doorbell was rung */
    uint8_t nic_ifc;            /* what the driver says that it is */
    bool failed;                /* the firmware, until it is started anew */

    PlaEngine engine;
    uint32_t at_epoch;          /* that of the slice */
    bool with_bql;              /* a command */
    uint64_t unsent;            /* what was done since packets were sent */
    GArray *ended;              /* timers; within the lock of the engine */
    /* The wire */
    NICConf conf;
    NICState *nic;              /* NULL: there is none */
    char *subnet;
    uint32_t subnet_ip;
    bool trains;
    uint8_t *train;             /* that is made up; NULL: none */
    uint32_t train_len;
    QemuMutex out_lock;         /* of the two below */
    GQueue *out;                /* for the main loop to send */
    uint32_t out_len;
    bool tx_blocked;
    uint32_t tx_waiting;        /* what the netdev has of it, in datagrams */
    bool rx_blocked;
    bool link_down;
    bool link_changed;          /* and the driver is to be told */
    PlcNeighbour neighbour[PLC_NEIGHBOURS];
    uint32_t neighbours;
    uint64_t walked;            /* bytes of lists of pages, not yet paid for */
    bool turn;                  /* of queue pairs, not of packets */
    uint32_t epoch;             /* how often the function was reset */
    PlcState *st;
    PlcState *old;
    uint64_t counters[PLC_NUM_COUNTERS];
    uint64_t eth_count[2][3][2]; /* in and out; kind; frames and bytes */
};

typedef enum PlcTimer {
    PLC_TIMER_CQ,
    PLC_TIMER_WAIT,             /* of a queue pair */
    PLC_TIMER_ACK,              /* likewise */
    PLC_TIMER_FAULT,            /* likewise */
} PlcTimer;

/* A timer that has ended, and whose it was */
typedef struct PlcEnded {
    PlcTimer what;
    uint32_t id;
} PlcEnded;

/* A command at work */
typedef struct PlcCmd {
    uint16_t uid;               /* the user whom it is for; 0: the driver */
    const uint8_t *in;
    uint32_t in_len;
    uint8_t *out;
    uint32_t out_len;
    uint32_t syndrome;
} PlcCmd;

typedef uint8_t PlcHandler(PeerlaneCX *s, PlcCmd *c);

static inline const char *plc_name(PeerlaneCX *s)
{
    return DEVICE(s)->id ? DEVICE(s)->id : TYPE_PEERLANE_CX;
}

static inline uint64_t cx_get(const uint8_t *p, uint32_t field)
{
    unsigned bit = CX_F_BIT(field), width = CX_F_WIDTH(field);

    if (width == 64) {
        return ldq_be_p(p + bit / 8);
    }
    return extract32(ldl_be_p(p + bit / 32 * 4), 32 - bit % 32 - width, width);
}

static inline void cx_set(uint8_t *p, uint32_t field, uint64_t val)
{
    unsigned bit = CX_F_BIT(field), width = CX_F_WIDTH(field);
    uint8_t *word = p + bit / 32 * 4;

    if (width == 64) {
        stq_be_p(p + bit / 8, val);
    } else {
        stl_be_p(word, deposit32(ldl_be_p(word), 32 - bit % 32 - width, width,
                                 val));
    }
}

static inline void cx_copy(uint8_t *to, const uint8_t *from, uint32_t field)
{
    cx_set(to, field, cx_get(from, field));
}

static inline void plc_alarm_set(PlcAlarm *alarm, int64_t ns)
{
    alarm->end = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + ns;
    timer_mod(alarm->timer, alarm->end);
}

static inline void plc_alarm_clear(PlcAlarm *alarm)
{
    alarm->end = 0;
    timer_del(alarm->timer);
}

/* The main loop says that it has ended; not if it was set or cleared since */
static inline bool plc_alarm_over(PlcAlarm *alarm)
{
    if (!alarm->end || qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) < alarm->end) {
        return false;
    }
    alarm->end = 0;
    return true;
}

/* peerlane-cx.c */
/* With the BQL: what is done in between is not in the middle of a slice */
void plc_begin(PeerlaneCX *s);
void plc_end(PeerlaneCX *s);
void plc_timer_ended(PeerlaneCX *s, PlcTimer what, uint32_t id);
void plc_count(PeerlaneCX *s, enum plc_counter n, uint64_t add);
/* A read that fails leaves zeros; a write that is refused is lost */
bool plc_read(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len);
bool plc_write(PeerlaneCX *s, uint64_t addr, const void *buf, uint64_t len);
/* The same, of what keys describe: @data of messages is counted as that, too */
bool plc_move(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len,
              bool is_write, bool data);
void plc_interrupt(PeerlaneCX *s, uint32_t vector);

/* peerlane-cx-table.c */
void plc_table_init(PlcTable *t, uint32_t first, uint32_t size);
void plc_table_free(PlcTable *t);
void *plc_table_get(const PlcTable *t, uint32_t id);
/* Likewise for a command: what its user may name */
void *plc_table_own(const PlcTable *t, const PlcCmd *c, uint32_t id);
bool plc_table_owned(const PlcTable *t, uint16_t uid);
bool plc_table_add(PlcTable *t, const PlcCmd *c, void *thing, uint32_t *id);
void plc_table_del(PlcTable *t, uint32_t id);
uint8_t plc_buf_init(PlcBuf *b, PlcCmd *c, uint32_t pas, uint8_t log_page,
                     uint32_t offset, uint64_t size);
uint8_t plc_buf_umem(PeerlaneCX *s, PlcBuf *b, PlcCmd *c, uint32_t id,
                     uint64_t offset, uint64_t size, bool is_write);
void plc_buf_free(PlcBuf *b);
bool plc_buf_read(PeerlaneCX *s, const PlcBuf *b, uint64_t at, void *data,
                  uint32_t len);
bool plc_buf_write(PeerlaneCX *s, const PlcBuf *b, uint64_t at,
                   const void *data, uint32_t len);

/* Free all that is in a table */
#define plc_free_all(table, type, free_it) do {                         \
        for (uint32_t _i = 0; _i < (table)->size; _i++) {               \
            type *_thing = plc_table_get(table, _i);                    \
            if (_thing) {                                               \
                plc_table_del(table, _i);                               \
                free_it(_thing);                                        \
            }                                                           \
        }                                                               \
    } while (0)

/* Does anything in the table @t have @id in the field @member? */
#define plc_used(t, type, member, id) ({                                \
        bool _used = false;                                             \
        for (uint32_t _i = 0; _i < (t)->size && !_used; _i++) {         \
            type *_thing = plc_table_get(t, _i);                        \
            _used = _thing && _thing->member == (id);                   \
        }                                                               \
        _used;                                                          \
    })

/* What was made with the page hears no doorbells; page 0 is nobody's */
#define plc_deafen(t, type, id) do {                                    \
        for (uint32_t _i = 0; _i < (t)->size; _i++) {                   \
            type *_thing = plc_table_get(t, _i);                        \
            if (_thing && _thing->uar == (id)) {                        \
                _thing->uar = 0;                                        \
            }                                                           \
        }                                                               \
    } while (0)

/* peerlane-cx-state.c */
PlcState *plc_state_new(void);
void plc_state_free(PlcState *st);
void plc_state_clear(PlcState *st);

/* peerlane-cx-cmd.c */
void plc_cmd_run(PeerlaneCX *s, unsigned slot);

/* peerlane-cx-hca.c: the life of the device */
PlcHandler plc_enable_hca, plc_disable_hca, plc_init_hca, plc_teardown_hca,
    plc_query_issi, plc_set_issi, plc_query_pages, plc_manage_pages, plc_nop;

/* peerlane-cx-caps.c: what it says about itself */
void plc_gid(PeerlaneCX *s, uint8_t *gid);
bool plc_own_vport(PlcCmd *c);
PlcHandler plc_query_hca_cap, plc_set_hca_cap, plc_query_adapter,
    plc_query_special_contexts, plc_access_reg, plc_query_vport_context,
    plc_query_vport_gid, plc_query_vport_pkey, plc_query_vport_counter;

/* peerlane-cx-res.c: things that are only an id */
PlcHandler plc_alloc_pd, plc_dealloc_pd, plc_alloc_uar, plc_dealloc_uar,
    plc_alloc_xrcd, plc_dealloc_xrcd, plc_alloc_td, plc_dealloc_td,
    plc_alloc_qc, plc_dealloc_qc, plc_query_qc;
/* Is @id neither 0, which is no set, nor one that the command may name? */
bool plc_qc_bad(PeerlaneCX *s, const PlcCmd *c, uint32_t id);
void plc_qc_count(PlcQp *qp, unsigned counter);

/* peerlane-cx-user.c: users, and their memory */
PlcHandler plc_create_uctx, plc_destroy_uctx, plc_create_umem,
    plc_destroy_umem;
void plc_umem_free(PlcUmem *umem);
bool plc_user_sends_raw(PeerlaneCX *s, const PlcCmd *c);
/* A doorbell record at @offset of the memory @id, which is kept from then on */
uint8_t plc_umem_dbr(PeerlaneCX *s, PlcCmd *c, uint32_t id, uint64_t offset,
                     PlcUmem **umem, uint64_t *addr);

/* peerlane-cx-eq.c */
PlcHandler plc_create_eq, plc_destroy_eq, plc_query_eq;
void plc_eq_free(PlcEq *eq);
void plc_eq_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t val, bool arm);
void plc_eq_run_arms(PeerlaneCX *s);
PlcEq *plc_eq_of(PeerlaneCX *s, unsigned event);
bool plc_eq_full(const PlcEq *eq);
void plc_eq_post(PeerlaneCX *s, PlcEq *eq, unsigned event,
                 const uint8_t *eqe);
void plc_event_qp(PeerlaneCX *s, unsigned event, uint32_t qpn);

/* peerlane-cx-cq.c */
PlcHandler plc_create_cq, plc_destroy_cq, plc_query_cq, plc_modify_cq;
void plc_cq_free(PlcCq *cq);
void plc_cq_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t cmd, uint32_t cqn);
void plc_cq_run(PeerlaneCX *s, PlcCq *cq);
void plc_cq_timer_ended(PeerlaneCX *s, uint32_t id);
bool plc_cq_denied_run(PeerlaneCX *s);
void plc_cq_post(PeerlaneCX *s, uint32_t cqn, uint8_t *cqe, uint8_t opcode,
                 bool solicited);

/* peerlane-cx-mkey.c */
PlcHandler plc_create_mkey, plc_destroy_mkey, plc_query_mkey;
void plc_mkey_free(PlcMkey *mkey);
uint8_t plc_mkey_bad(PeerlaneCX *s, const PlcCmd *c, const uint8_t *ctx,
                     uint64_t room);
void plc_mkey_set(PlcMkey *mkey, const uint8_t *ctx);
enum plc_access {
    PLC_LOCAL_READ,
    PLC_LOCAL_WRITE,
    PLC_REMOTE_READ,
    PLC_REMOTE_WRITE,
    PLC_REMOTE_ATOMIC_READ,     /* of what an atomic is to change */
    PLC_REMOTE_ATOMIC,
};
enum plc_result {
    PLC_DONE,
    PLC_DENIED,                 /* by the key */
    PLC_FAILED,                 /* on the bus */
    PLC_ABSENT,                 /* the key has no such page now */
};
enum plc_result plc_mkey_check(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                               unsigned n, uint32_t at, uint32_t len,
                               enum plc_access access);
enum plc_result plc_mkey_rw(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                            unsigned n, const uint8_t *wqe, uint32_t at,
                            void *buf, uint32_t len, enum plc_access access);
bool plc_mkey_invalidate(PeerlaneCX *s, PlcQp *qp, uint32_t key, uint32_t pd);

/* peerlane-cx-odp.c */
PlcHandler plc_page_fault_resume;
bool plc_fault(PeerlaneCX *s, PlcQp *qp, PlcFault *fault);

/* peerlane-cx-umr.c */
uint8_t plc_umr(PeerlaneCX *s, PlcQp *qp, const PlcWork *w);

/* peerlane-cx-srq.c */
PlcHandler plc_create_xrc_srq, plc_create_rmp, plc_destroy_srq, plc_query_srq,
    plc_arm_xrc_srq, plc_modify_rmp;
void plc_srq_free(PlcSrq *srq);
/* The one of XRC for a message to @qp; NULL: there is none such */
PlcSrq *plc_srq_named(PeerlaneCX *s, PlcQp *qp, uint32_t srqn);
/* Those of XRC that complete on the queue @cqn */
void plc_srq_cq_lost(PeerlaneCX *s, uint32_t cqn);
enum plc_taken {
    PLC_TAKEN,
    PLC_TAKE_LATER,             /* there is none */
    PLC_TAKE_REQUEST,           /* there will be none */
    PLC_TAKE_OPERATION,         /* it cannot be had */
};
enum plc_taken plc_srq_take(PeerlaneCX *s, PlcSrq *srq, uint8_t *wqe,
                            uint16_t *index);

/* peerlane-cx-qp.c */
int plc_qp_service(const PlcQp *qp);
bool plc_qp_datagrams(const PlcQp *qp);
bool plc_qp_reliable(const PlcQp *qp);
PlcHandler plc_create_qp, plc_destroy_qp, plc_query_qp, plc_modify_qp;
void plc_qp_free(PlcQp *qp);
void plc_qp_schedule(PlcQp *qp);
void plc_qp_wait(PlcQp *qp, int64_t ns);
void plc_qp_timer_ended(PeerlaneCX *s, uint32_t id, PlcTimer what);
void plc_qp_to_error(PlcQp *qp);
void plc_qp_send_failed(PlcQp *qp);
/* Those that complete on the queue @cqn */
void plc_qp_cq_lost(PeerlaneCX *s, uint32_t cqn);

/* peerlane-cx-rc.c: entries of queues, and completions */
void plc_qp_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t qpn);
uint64_t plc_qp_step(PeerlaneCX *s, PlcQp *qp);
PlcWork *plc_sq_fetch(PeerlaneCX *s, PlcQp *qp);
void plc_cqe_syndrome(uint8_t *cqe, bool recv, uint8_t syndrome);
void plc_sq_done(PeerlaneCX *s, PlcQp *qp, PlcWork *w, uint8_t syndrome);
enum plc_taken plc_take_recv(PeerlaneCX *s, PlcQp *qp);
void plc_recv_done(PeerlaneCX *s, PlcQp *qp, uint8_t opcode,
                   const PlcHeaders *h);
void plc_recv_fail(PeerlaneCX *s, PlcQp *qp, uint8_t syndrome);
bool plc_is_atomic(uint8_t opcode);
/* The elements of a list from @at to @end of @wqe; their sum in *total */
bool plc_parse_list(const uint8_t *wqe, uint32_t at, uint32_t end, bool recv,
                    uint32_t pd, PlcSge *sge, unsigned *n, uint64_t *total);
bool plc_needs_answer(uint8_t opcode);

/* peerlane-cx-req.c: the requester */
void plc_req_reset(PlcQp *qp);
void plc_req_cancel(PlcQp *qp);
bool plc_req_step(PeerlaneCX *s, PlcQp *qp, uint64_t *cost);
void plc_req_packet(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);

/* peerlane-cx-resp.c: the responder */
void plc_resp_reset(PlcQp *qp);
bool plc_resp_step(PeerlaneCX *s, PlcQp *qp, uint64_t *cost);
void plc_resp_packet(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);
void plc_resp_unreliable(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);
void plc_resp_datagram(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);

/* peerlane-cx-mad.c: management that the device answers itself */
bool plc_mad(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);

/* peerlane-cx-net.c: how packets get from one to the other */
bool plc_net_check(PeerlaneCX *s, Error **errp);
void plc_net_init(PeerlaneCX *s);
void plc_net_exit(PeerlaneCX *s);
void plc_net_reset(PeerlaneCX *s);
/* May the queue pair send a packet now?  Else *@again: nobody tells when */
bool plc_net_room(PeerlaneCX *s, PlcQp *qp, bool *again);
/* Takes @p */
void plc_net_send(PeerlaneCX *s, PlcQp *qp, uint16_t lid, PlcPacket *p);
/* The other end will be talked to */
void plc_net_meet(PeerlaneCX *s, PlcQp *qp);
uint64_t plc_net_step(PeerlaneCX *s);
bool plc_net_up(PeerlaneCX *s);
/* Does the driver know the port's state now?  Not while there is no place */
bool plc_net_tell(PeerlaneCX *s);
void plc_net_flush(PeerlaneCX *s);
void plc_net_slice_ends(PeerlaneCX *s);
void plc_net_main(PCIDevice *pdev);
void plc_net_free(PlcState *st);
/* A packet or frame that has come waits for its turn; takes it */
void plc_net_arrive(PeerlaneCX *s, PlcPacket *p);
void plc_net_out(PeerlaneCX *s, const uint8_t *frame, uint32_t len);
/* Of what does not change on the way; the IP header has @head bytes */
uint32_t plc_icrc(const uint8_t *ip, uint32_t head, uint32_t len);

/* peerlane-cx-eth.c: frames of queues, and all that the driver has for them */
PlcEth *plc_eth_new(void);
void plc_eth_free(PlcEth *eth);
bool plc_eth_owned(const PlcEth *eth, uint16_t uid);
bool plc_eth_uses_pd(const PlcEth *eth, uint32_t pd);
bool plc_eth_uses_td(const PlcEth *eth, uint32_t td);
void plc_eth_deafen(PlcEth *eth, uint32_t uar);
/* The set of counters goes */
void plc_eth_uncount(PlcEth *eth, uint32_t counter_set);
/* Is the doorbell one of a send queue of frames? */
bool plc_eth_doorbell(PeerlaneCX *s, uint32_t uar, uint32_t sqn);
/* Packets and frames that have come, and frames to send, in turn */
uint64_t plc_eth_turn(PeerlaneCX *s);
void plc_eth_receive(PeerlaneCX *s, uint8_t *frame, uint32_t len);
void plc_eth_unblocked(PeerlaneCX *s);
/* Queues that complete on the queue @cqn */
void plc_eth_cq_lost(PeerlaneCX *s, uint32_t cqn);

/* peerlane-cx-vport.c: registers of a port of Ethernet */
uint8_t plc_eth_reg_read(PeerlaneCX *s, uint32_t id, uint8_t *reg);
uint8_t plc_eth_reg_write(PeerlaneCX *s, uint32_t id, const uint8_t *in,
                          uint8_t *reg);

/* peerlane-cx-roce.c: the transport on a port of Ethernet */
bool plc_gid_is_ipv4(const uint8_t *gid);
void plc_path_of_qp(PeerlaneCX *s, PlcQp *qp);
void plc_path_of_av(PeerlaneCX *s, const uint8_t *wqe, PlcPath *path);
/* Takes @p */
void plc_roce_send(PeerlaneCX *s, PlcQp *qp, PlcPacket *p);
bool plc_roce_from(PeerlaneCX *s, PlcQp *qp, const PlcHeaders *h);
/*
 * Is a frame the transport's?  Then *@p is its packet, or *@wrong says why it is
 * dropped.
 */
bool plc_roce_take(PeerlaneCX *s, const uint8_t *frame, uint32_t size,
                   PlcPacket **p, const char **wrong);

#endif /* HW_PEERLANE_CX_H */
