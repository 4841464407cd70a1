/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: what the parts of the device model share.
 * The specification is hw-model/docs/peerlane-switch.rst.
 */
#ifndef HW_PEERLANE_SWITCH_H
#define HW_PEERLANE_SWITCH_H

#include "qemu/osdep.h"
#include "hw/pci/pcie_port.h"
#include "qom/object.h"
#include "peerlane-account.h"

#define TYPE_PEERLANE_SWITCH_UPSTREAM   "peerlane-switch-upstream"
OBJECT_DECLARE_SIMPLE_TYPE(PlsUpstream, PEERLANE_SWITCH_UPSTREAM)

#define TYPE_PEERLANE_SWITCH_DOWNSTREAM "peerlane-switch-downstream"
OBJECT_DECLARE_SIMPLE_TYPE(PlsDownstream, PEERLANE_SWITCH_DOWNSTREAM)

#define TYPE_PEERLANE_SWITCH_REQUESTER  "peerlane-switch-requester"
OBJECT_DECLARE_SIMPLE_TYPE(PlsRequester, PEERLANE_SWITCH_REQUESTER)

#define PLS_VENDOR_ID           0x1234
#define PLS_UPSTREAM_ID         0x9e72
#define PLS_DOWNSTREAM_ID       0x9e73

#define PLS_MSI_OFFSET          0x70
#define PLS_SSVID_OFFSET        0x80
#define PLS_EXP_OFFSET          0x90
#define PLS_AER_OFFSET          0x100
#define PLS_ACS_OFFSET          0x148
#define PLS_ACS_VECTOR          (PLS_ACS_OFFSET + 8)
#define PLS_ACS_BITS            (PCI_ACS_SV | PCI_ACS_TB | PCI_ACS_RR | \
                                 PCI_ACS_CR | PCI_ACS_UF | PCI_ACS_EC | \
                                 PCI_ACS_DT)
#define PLS_MAX_PORT            63      /* one bit each in the vector */
#define PLS_VSEC_OFFSET         0x160
#define PLS_VSEC_ID             0x504c
#define PLS_VSEC_MAGIC          0x534e4c50      /* "PLNS" */

/* In this order in the capability */
enum pls_counter {
    PLS_CNT_PEER_READ,
    PLS_CNT_PEER_WRITE,
    PLS_CNT_HOST_READ,
    PLS_CNT_HOST_WRITE,
    PLS_CNT_UPSTREAM_PEER_READ,
    PLS_CNT_UPSTREAM_PEER_WRITE,
    PLS_CNT_TARGET_READ,
    PLS_CNT_TARGET_WRITE,
    PLS_CNT_OTHER,
    PLS_CNT_REFUSED,
    PLS_NUM_COUNTERS
};
#define PLS_VSEC_COUNTERS       16
#define PLS_VSEC_SIZE           (PLS_VSEC_COUNTERS + 8 * PLS_NUM_COUNTERS)

typedef struct PlsCounters {
    uint64_t val[PLS_NUM_COUNTERS];
    uint32_t high[PLS_NUM_COUNTERS];    /* latched by reads of the low half */
    bool gone;                          /* with their port: nothing is added */
} PlsCounters;

#define PLS_SLICES      64

/* Of one direction of a link; times in picoseconds of virtual time */
typedef struct PlsLane {
    uint64_t transfers;
    uint64_t payload;
    uint64_t wire;
    uint64_t busy;
    uint64_t queued;
    uint64_t free;
    uint64_t first;             /* when the slices begin */
    uint64_t slice;             /* how long each is; 0: none yet */
    uint64_t slices[PLS_SLICES];        /* busy */
} PlsLane;

/* The link above an upstream port, or below a downstream port */
typedef struct PlsLink {
    uint8_t gen;                /* 0: not modelled */
    uint8_t width;
    uint32_t latency;           /* ns */
    PlsLane lane[2];            /* up, down */
} PlsLink;

/* Of one requester */
typedef struct PlsModelled {
    uint64_t transfers;
    uint64_t payload;
    uint64_t first;
    uint64_t finish;
    uint64_t queued;
    uint64_t late;
} PlsModelled;

/* More switches than this one above another are not counted */
#define PLS_MAX_DEPTH   8

typedef struct PlsHop {
    PlsLink *link;
    bool down;
} PlsHop;

typedef struct PlsPath {
    PlsHop hops[2 * (PLS_MAX_DEPTH + 1)];
    unsigned n;
} PlsPath;

/* A request, until it is logged; there is none without a requester */
typedef struct PlsRefused {
    PCIDevice *requester;
    bool violation;
    bool is_write;
    hwaddr addr;
    hwaddr len;
} PlsRefused;

struct PlsUpstream {
    PCIEPort parent_obj;

    PlsLink link;
    PlsRefused refused;
    PlsCounters counters;
};

struct PlsDownstream {
    PCIESlot parent_obj;

    PlsUpstream *up;            /* of the same switch */
    bool acs;
    uint16_t acs_control;       /* after reset */
    bool unrealizing;
    PlsLink link;
    MemoryRegion refuse;        /* whatever is sent here fails */
    MemoryRegion unclaimed;     /* below, where no device answers */
    QLIST_HEAD(, PlsRequester) requesters;
    PlsRefused refused;
    PlsCounters counters;
};

typedef enum PlsRouting {
    PLS_UP,
    PLS_DIRECT,
    PLS_REFUSE,                 /* Unsupported Request */
    PLS_VIOLATION,              /* of ACS */
    PLS_REFUSE_ABOVE,           /* as PLS_REFUSE, by the upstream port */
} PlsRouting;

typedef struct PlsRoute {
    hwaddr base;
    hwaddr size;
    PlsRouting routing;
    PlsDownstream *to;          /* of PLS_DIRECT */
    MemoryRegion mr;
} PlsRoute;

/* A function below a downstream port, and what it reaches from there */
struct PlsRequester {
    Object parent_obj;

    PlsDownstream *port;
    PCIBus *bus;                /* dropped before it: pls_forget_function() */
    uint8_t devfn;
    AddressSpace as;
    AddressSpace *parent_as;
    MemoryRegion root;
    MemoryRegion up;
    GPtrArray *routes;          /* a later one goes before an earlier one */
    PlsModelled modelled;
    QLIST_ENTRY(PlsRequester) next;
};

static inline PlsUpstream *pls_upstream(PlsDownstream *p)
{
    return p->up;
}

static inline const char *pls_name(void *dev)
{
    return DEVICE(dev)->id ? DEVICE(dev)->id : object_get_typename(OBJECT(dev));
}

/* peerlane-switch-port.c; NULL for what is no port, or not of that kind */
void pls_ports_init(void);
PlsDownstream *pls_as_downstream(PCIDevice *d);
PlsUpstream *pls_as_upstream(PCIDevice *d);
PlsCounters *pls_counters(PCIDevice *d);
PlsLink *pls_link(PCIDevice *d);
PlsRefused *pls_refused(PCIDevice *d);

/* peerlane-switch-route.c; pls_lock is of all switches' routes and counters */
extern QemuMutex pls_lock;
void pls_downstream_init_routes(PlsDownstream *p);
void pls_downstream_exit_routes(PlsDownstream *p);
void pls_update(PlsUpstream *up);
void pls_forget_function(PCIDevice *dev);
PlsRouting pls_route(PlsDownstream *p, PCIBus *bus, int devfn, hwaddr addr,
                     hwaddr *len, PlsDownstream **to);
PlsRequester *pls_find(PlsDownstream *p, PCIBus *bus, int devfn);
uint64_t pls_live_requesters(void);

/* peerlane-switch-hotplug.c */
void pls_slot_init(PCIDevice *d);
void pls_slot_reset(PCIDevice *d);
void pls_slot_write_config(PCIDevice *d, uint16_t slt_ctl, uint16_t slt_sta,
                           uint32_t address, uint32_t val, int len);
void pls_slot_plug(HotplugHandler *slot, DeviceState *dev, Error **errp);
void pls_slot_add_property(ObjectClass *klass);

/* peerlane-switch-counters.c */
void pls_counters_get(void);
void pls_counters_put(void);
void pls_counters_forget(PlsCounters *counters);
void pls_counters_add_property(Object *obj);
void pls_vsec_init(PCIDevice *d);
void pls_vsec_read(PCIDevice *d, uint32_t address, int len);
extern const VMStateDescription vmstate_pls_counters;

/* peerlane-switch-link.c */
extern bool pls_link_modelled;          /* any is */
bool pls_link_check(PlsLink *link, Error **errp);
void pls_link_show(PlsLink *link, PCIDevice *d);
void pls_link_transfer(PCIDevice *dev, PlsModelled *m, PlsPath *path,
                       hwaddr len, bool is_write, int64_t began);
void pls_link_add_property(Object *obj);
void pls_link_add_requesters(ObjectClass *klass);

/* peerlane-switch-error.c */
void pls_log_refused(PCIDevice *port, PCIDevice *requester, bool violation,
                     hwaddr addr, hwaddr len, bool is_write);

#endif /* HW_PEERLANE_SWITCH_H */
