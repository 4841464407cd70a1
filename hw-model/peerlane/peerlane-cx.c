/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: PCI device, registers, reset, and the engine's loop.
 *
 * What the device does is in peerlane-cx.rst.
 *
 * The engine is a thread of its own: peerlane-engine.h.  It looks at arms and gives
 * queue pairs a slice each in turn.  Whoever else touches what the driver has made
 * does so at the end of a slice, between plc_begin() and plc_end(): a doorbell, the
 * wire, QMP.  Timers only note that they have ended.  Commands are done with the
 * BQL, so that what they free is not what a timer or a frame is at.
 *
 * Whatever the engine writes to may reset or even unplug this very device, by
 * way of configuration space, say.  Then s->st is another one, which is empty;
 * the old one is kept until the slice ends, and DMA fails until then.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/resettable.h"
#include "migration/vmstate.h"
#include "peerlane-account.h"
#include "peerlane-cx.h"
#include "trace.h"

static const char *const plc_counter_names[PLC_NUM_COUNTERS] = {
    [PLC_CNT_COMMANDS] = "commands",
    [PLC_CNT_COMMAND_ERRORS] = "command-errors",
    [PLC_CNT_DOORBELLS] = "doorbells",
    [PLC_CNT_WQES] = "wqes",
    [PLC_CNT_WQE_ERRORS] = "wqe-errors",
    [PLC_CNT_CQES] = "cqes",
    [PLC_CNT_EQES] = "eqes",
    [PLC_CNT_INTERRUPTS] = "interrupts",
    [PLC_CNT_HOST_READ] = "dma-host-read",
    [PLC_CNT_HOST_WRITE] = "dma-host-write",
    [PLC_CNT_PEER_READ] = "dma-peer-read",
    [PLC_CNT_PEER_WRITE] = "dma-peer-write",
    [PLC_CNT_DATA_HOST_READ] = "data-host-read",
    [PLC_CNT_DATA_HOST_WRITE] = "data-host-write",
    [PLC_CNT_DATA_PEER_READ] = "data-peer-read",
    [PLC_CNT_DATA_PEER_WRITE] = "data-peer-write",
    [PLC_CNT_READS_REFUSED] = "dma-reads-refused",
    [PLC_CNT_WRITES_LOST] = "dma-writes-lost",
    [PLC_CNT_LOOPBACK_MESSAGES] = "loopback-messages",
    [PLC_CNT_LOOPBACK_BYTES] = "loopback-bytes",
    [PLC_CNT_PACKETS_IN] = "packets-in",
    [PLC_CNT_PACKETS_OUT] = "packets-out",
    [PLC_CNT_BYTES_IN] = "packet-bytes-in",
    [PLC_CNT_BYTES_OUT] = "packet-bytes-out",
    [PLC_CNT_PACKETS_DROPPED] = "packets-dropped",
    [PLC_CNT_RETRANSMISSIONS] = "retransmissions",
    [PLC_CNT_FRAMES_IN] = "frames-in",
    [PLC_CNT_FRAMES_OUT] = "frames-out",
    [PLC_CNT_FRAMES_DROPPED] = "frames-dropped",
    [PLC_CNT_MARKED] = "frames-marked",
    [PLC_CNT_CNPS_IN] = "cnps-in",
    [PLC_CNT_CNPS_OUT] = "cnps-out",
    [PLC_CNT_ETH_IN] = "eth-frames-in",
    [PLC_CNT_ETH_OUT] = "eth-frames-out",
    [PLC_CNT_ETH_BYTES_IN] = "eth-bytes-in",
    [PLC_CNT_ETH_BYTES_OUT] = "eth-bytes-out",
    [PLC_CNT_ETH_DROPPED] = "eth-frames-dropped",
};

void plc_count(PeerlaneCX *s, enum plc_counter n, uint64_t add)
{
    qatomic_add(&s->counters[n], add);
}

/* What is left of a transfer; @data: of messages */
typedef struct PlcMove {
    PeerlaneCX *s;
    uint64_t addr;
    uint8_t *buf;
    uint64_t len;
    bool is_write;
    bool data;
    bool failed;
} PlcMove;

/* A piece of it has ended */
static void plc_moved(PlcMove *m, uint64_t n, PlaEnd end, bool peer)
{
    PeerlaneCX *s = m->s;

    trace_peerlane_cx_dma(plc_name(s), m->is_write ? "write" : "read",
                          peer ? "peer" : "host", m->addr, n, end);
    if (end == PLA_MOVED) {
        plc_count(s, m->is_write ?
                  (peer ? PLC_CNT_PEER_WRITE : PLC_CNT_HOST_WRITE) :
                  (peer ? PLC_CNT_PEER_READ : PLC_CNT_HOST_READ), n);
        if (m->data) {
            plc_count(s, m->is_write ?
                      (peer ? PLC_CNT_DATA_PEER_WRITE :
                       PLC_CNT_DATA_HOST_WRITE) :
                      (peer ? PLC_CNT_DATA_PEER_READ :
                       PLC_CNT_DATA_HOST_READ), n);
        }
    } else if (end == PLA_LOST) {
        plc_count(s, PLC_CNT_WRITES_LOST, 1);
    } else {
        plc_count(s, PLC_CNT_READS_REFUSED, 1);
        m->failed = true;
    }
    m->addr += n;
    m->buf += n;
    m->len -= n;
}

/* With the BQL */
static void plc_move_rest(void *opaque)
{
    PlcMove *m = opaque;
    PeerlaneCX *s = m->s;

    while (m->len && !m->failed) {
        hwaddr n = m->len;
        bool peer;
        PlaEnd end = pla_dma_piece(PCI_DEVICE(s), m->addr, m->buf, &n,
                                   m->is_write, &peer);

        if (s->old) {
            m->failed = true;
            return;
        }
        plc_moved(m, n, end, peer);
    }
}

static bool plc_dma(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len,
                    bool is_write, bool data)
{
    PlcMove m = {
        .s = s, .addr = addr, .buf = buf, .len = len, .is_write = is_write,
        .data = data,
    };
    hwaddr n;
    bool peer;

    if (s->old) {
        return false;
    }
    while (n = m.len, n && pla_dma_ram(PCI_DEVICE(s), m.addr, m.buf, &n,
                                       is_write, &peer)) {
        plc_moved(&m, n, PLA_MOVED, peer);
    }
    if (m.len && s->with_bql) {
        plc_move_rest(&m);
    } else if (m.len && !pla_engine_call(&s->engine, plc_move_rest, &m)) {
        return false;
    }
    return !m.failed;
}

/* A read that fails leaves zeros */
static bool plc_fetch(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len,
                      bool data)
{
    if (plc_dma(s, addr, buf, len, false, data)) {
        return true;
    }
    memset(buf, 0, len);
    return false;
}

bool plc_read(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len)
{
    return plc_fetch(s, addr, buf, len, false);
}

bool plc_write(PeerlaneCX *s, uint64_t addr, const void *buf, uint64_t len)
{
    return plc_dma(s, addr, (void *)buf, len, true, false);
}

bool plc_move(PeerlaneCX *s, uint64_t addr, void *buf, uint64_t len,
              bool is_write, bool data)
{
    return is_write ? plc_dma(s, addr, buf, len, true, data) :
           plc_fetch(s, addr, buf, len, data);
}

void plc_interrupt(PeerlaneCX *s, uint32_t vector)
{
    if (s->old || vector >= s->vectors) {
        return;
    }
    QEMU_LOCK_GUARD(&s->engine.lock);
    pla_engine_irq_locked(&s->engine, vector);
}

static void plc_raise(PCIDevice *pdev, unsigned vector)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);

    if (msix_enabled(pdev)) {
        plc_count(s, PLC_CNT_INTERRUPTS, 1);
        trace_peerlane_cx_irq(plc_name(s), vector);
        msix_notify(pdev, vector);
    }
}

void plc_begin(PeerlaneCX *s)
{
    pla_engine_stop(&s->engine);
}

void plc_end(PeerlaneCX *s)
{
    pla_engine_kick_locked(&s->engine);
    pla_engine_go(&s->engine);
}

/* A timer has ended: who asked for it is told in a slice, if he is still there */
void plc_timer_ended(PeerlaneCX *s, PlcTimer what, uint32_t id)
{
    const PlcEnded ended = { what, id };

    QEMU_LOCK_GUARD(&s->engine.lock);
    g_array_append_val(s->ended, ended);
    pla_engine_kick_locked(&s->engine);
}

static void plc_run_timers(PeerlaneCX *s)
{
    g_autoptr(GArray) ended = NULL;

    WITH_QEMU_LOCK_GUARD(&s->engine.lock) {
        if (!s->ended->len) {
            return;
        }
        ended = s->ended;
        s->ended = g_array_new(false, false, sizeof(PlcEnded));
    }
    for (unsigned i = 0; i < ended->len; i++) {
        const PlcEnded *e = &g_array_index(ended, PlcEnded, i);

        if (e->what == PLC_TIMER_CQ) {
            plc_cq_timer_ended(s, e->id);
        } else {
            plc_qp_timer_ended(s, e->id, e->what);
        }
    }
}

static void plc_commands(void *opaque)
{
    PeerlaneCX *s = opaque;
    unsigned slot = ctz32(s->cmds);

    s->cmds &= ~(1u << slot);
    s->with_bql = true;
    plc_cmd_run(s, slot);
    s->with_bql = false;
}

static void plc_state_bh(void *opaque)
{
    plc_state_free(opaque);
}

/* One piece of work; returns what it cost, 0 when there is none */
static uint64_t plc_step(PeerlaneCX *s)
{
    PlcState *st = s->st;
    PlcCq *cq;
    PlcQp *qp;

    if (s->cmds) {
        return pla_engine_call(&s->engine, plc_commands, s) ? PLC_SLICE : 0;
    }
    if (s->link_changed && plc_net_tell(s)) {
        s->link_changed = false;
        return PLC_STEP_COST;
    }
    if (plc_cq_denied_run(s)) {
        return PLC_STEP_COST;
    }
    cq = QTAILQ_FIRST(&st->arms);
    if (cq) {
        QTAILQ_REMOVE(&st->arms, cq, link);
        cq->queued = false;
        plc_cq_run(s, cq);
        return PLC_STEP_COST;
    }
    /* In turn, so that neither keeps the other from its work */
    qp = QTAILQ_FIRST(&st->ready);
    s->turn = !s->turn;
    if (!qp || s->turn) {
        uint64_t cost = plc_eth_turn(s);

        if (cost) {
            return cost;
        }
    }
    if (qp) {
        QTAILQ_REMOVE(&st->ready, qp, link);
        qp->queued = false;
        return plc_qp_step(s, qp);
    }
    return 0;
}

static bool plc_engine_step(PCIDevice *pdev)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);
    PlcState *old;
    uint64_t cost = 0, spent;

    if (s->failed) {
        return false;
    }
    s->at_epoch = s->epoch;
    pla_engine_enter(&s->engine);
    plc_run_timers(s);
    for (spent = 0; !s->old && spent < PLC_SLICE_BUDGET; spent += cost) {
        plc_eq_run_arms(s);
        cost = s->old ? 0 : plc_step(s);
        if (!cost) {
            break;
        }
        cost += s->walked;
        s->walked = 0;
        s->unsent += cost;
        if (s->unsent >= PLC_TRAIN_BUDGET) {
            plc_net_flush(s);
            s->unsent = 0;
        }
    }
    trace_peerlane_cx_slice(plc_name(s), spent);
    if (!cost) {
        plc_net_flush(s);
    }
    plc_net_slice_ends(s);
    pla_engine_leave(&s->engine);
    /* A timer of it may be about to end, so it is for the main loop to free */
    while ((old = s->old)) {
        s->old = old->next;
        aio_bh_schedule_oneshot(qemu_get_aio_context(), plc_state_bh, old);
    }
    return cost;
}

static bool plc_engine_wanted(PCIDevice *pdev)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);

    return s->at_epoch == s->epoch;
}

static const PlaEngineOps plc_engine_ops = {
    .step = plc_engine_step,
    .wanted = plc_engine_wanted,
    .interrupt = plc_raise,
    .main = plc_net_main,
};

static uint32_t plc_seg_read(PeerlaneCX *s, hwaddr addr)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    switch (addr) {
    case CX_SEG_FW_REV:
        return PLC_FW_MINOR << 16 | PLC_FW_MAJOR;
    case CX_SEG_CMDIF_REV:
        return CX_CMDIF_REV << 16 | PLC_FW_SUB;
    case CX_SEG_CMDQ_HIGH:
        return s->cmdq_high;
    case CX_SEG_CMDQ_LOW:
        return (s->cmdq & ~0xfffu) | s->nic_ifc << 8 | PLC_LOG_SLOTS << 4 |
               PLC_LOG_SLOT;
    case CX_SEG_HEALTH_RFR:
        return s->failed ? (uint32_t)(CX_HEALTH_RFR | CX_HEALTH_CRITICAL) << 24
               : 0;
    case CX_SEG_HEALTH_SYNDROME:
        if (!s->failed) {
            return 0;
        }
        /* Whoever looks after the card has reset it by the time it is known */
        s->nic_ifc = CX_NIC_DISABLED;
        return CX_HEALTH_FIRMWARE << 16;
    case CX_SEG_TIMER_HIGH:
        return now >> 32;
    case CX_SEG_TIMER_LOW:
        return now;
    case CX_SEG_HEALTH_COUNTER:
        return now / (10 * SCALE_MS);
    default:
        return 0;
    }
}

static uint64_t plc_bar_read(void *opaque, hwaddr addr, unsigned size)
{
    PeerlaneCX *s = opaque;
    uint64_t val = plc_seg_read(s, addr & ~3ull);

    if (size < 4) {
        val = extract32(val, 8 * (4 - size - (addr & 3)), 8 * size);
    } else if (size == 8) {
        val = val << 32 | plc_seg_read(s, addr + 4);
    }
    trace_peerlane_cx_read(plc_name(s), addr, size, val);
    return val;
}

static void plc_reset_locked(PeerlaneCX *s);

static void plc_seg_write(PeerlaneCX *s, hwaddr addr, uint32_t val)
{
    switch (addr) {
    case CX_SEG_CMDQ_HIGH:
        s->cmdq_high = val;
        break;
    case CX_SEG_CMDQ_LOW:
        if (s->failed) {
            uint32_t high = s->cmdq_high;

            plc_reset_locked(s);
            s->cmdq_high = high;
        }
        s->cmdq = (uint64_t)s->cmdq_high << 32 | (val & ~0xfffu);
        s->nic_ifc = extract32(val, 8, 3);
        break;
    case CX_SEG_CMD_DOORBELL:
        s->cmds |= val;
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "%s: write to 0x%" HWADDR_PRIx
                      ", which cannot be written\n", plc_name(s), addr);
        break;
    }
}

static void plc_uar_write(PeerlaneCX *s, hwaddr addr, uint64_t val,
                          unsigned size)
{
    uint32_t uar = addr / CX_UAR_SIZE, at = addr % CX_UAR_SIZE;

    if (!plc_table_get(&s->st->uar, uar)) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: doorbell in page %" PRIu32
                      ", which nobody has\n", plc_name(s), uar);
        return;
    }
    if (at == CX_UAR_CQ && size == 8) {
        plc_count(s, PLC_CNT_DOORBELLS, 1);
        plc_cq_doorbell(s, uar, val >> 32, val);
    } else if (at == CX_UAR_EQ_ARM || at == CX_UAR_EQ) {
        plc_count(s, PLC_CNT_DOORBELLS, 1);
        plc_eq_doorbell(s, uar, size == 8 ? val >> 32 : val,
                        at == CX_UAR_EQ_ARM);
    } else if (at >= CX_UAR_SEND && at % CX_UAR_SEND_BUF == 0 && size == 8) {
        plc_count(s, PLC_CNT_DOORBELLS, 1);
        if (!plc_eth_doorbell(s, uar, extract32(val, 8, 24))) {
            plc_qp_doorbell(s, uar, extract32(val, 8, 24));
        }
    } else if (at < CX_UAR_SEND || at % CX_UAR_SEND_BUF == 0) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no doorbell of %u bytes at 0x%"
                      PRIx32 " of a page\n", plc_name(s), size, at);
    }
    /* The rest of an entry in a BlueFlame buffer is in the queue, too */
}

static void plc_bar_write(void *opaque, hwaddr addr, uint64_t val,
                          unsigned size)
{
    PeerlaneCX *s = opaque;

    trace_peerlane_cx_write(plc_name(s), addr, size, val);
    plc_begin(s);
    if (size < 4) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: write of %u bytes to 0x%"
                      HWADDR_PRIx "\n", plc_name(s), size, addr);
    } else if (addr >= PLC_FIRST_UAR * CX_UAR_SIZE) {
        plc_uar_write(s, addr, val, size);
    } else if (size == 8) {
        plc_seg_write(s, addr, val >> 32);
        plc_seg_write(s, addr + 4, val);
    } else {
        plc_seg_write(s, addr, val);
    }
    plc_end(s);
}

static const MemoryRegionOps plc_bar_ops = {
    .read = plc_bar_read,
    .write = plc_bar_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

static void plc_reset_locked(PeerlaneCX *s)
{
    s->cmdq = 0;
    s->cmdq_high = 0;
    s->nic_ifc = CX_NIC_DISABLED;
    s->failed = false;
    s->cmds = 0;
    s->epoch++;
    s->engine.irqs = 0;
    /* The engine is at the access that has led here */
    if (s->engine.inside) {
        s->st->next = s->old;
        s->old = s->st;
    } else {
        plc_state_free(s->st);
    }
    s->st = plc_state_new();
    plc_net_reset(s);
    trace_peerlane_cx_reset(plc_name(s), s->epoch);
}

static void plc_reset(PeerlaneCX *s)
{
    plc_begin(s);
    plc_reset_locked(s);
    plc_end(s);
}

static void plc_reset_hold(Object *obj, ResetType type)
{
    plc_reset(PEERLANE_CX(obj));
}

static void plc_config_write(PCIDevice *pdev, uint32_t addr, uint32_t val,
                             int len)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);
    bool stops = ranges_overlap(addr, len, PCI_COMMAND, 2);

    /* What may not master any more has ended what it was at */
    if (stops) {
        pla_engine_hold(&s->engine, PLA_HELD_CONFIG, true);
    }
    pci_default_write_config(pdev, addr, val, len);
    pcie_cap_flr_write_config(pdev, addr, val, len);
    if (stops) {
        pla_engine_hold(&s->engine, PLA_HELD_CONFIG, false);
    }
}

static void plc_realize(PCIDevice *pdev, Error **errp)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);

    if (!s->vectors || s->vectors > 64) {
        error_setg(errp, "vectors must be 1 to 64");
        return;
    }
    if (!s->lid || s->lid > PLC_LAST_LID) {
        error_setg(errp, "lid must be a unicast one, 1 to 0xbfff");
        return;
    }
    if (!g_strcmp0(s->link_layer, "ethernet")) {
        s->ethernet = true;
        pci_config_set_class(pdev->config, PLC_PCI_CLASS_ETH);
    } else if (s->link_layer && strcmp(s->link_layer, "infiniband")) {
        error_setg(errp, "link-layer must be infiniband or ethernet");
        return;
    }
    if (!plc_net_check(s, errp)) {
        return;
    }
    if (pcie_endpoint_cap_init(pdev, 0) < 0) {
        error_setg(errp, "no room for the PCI Express capability");
        return;
    }
    pcie_cap_flr_init(pdev);
    pcie_cap_deverr_init(pdev);
    memory_region_init_io(&s->bar, OBJECT(s), &plc_bar_ops, s,
                          "peerlane-cx-bar0", PLC_BAR_SIZE);
    if (msix_init_exclusive_bar(pdev, s->vectors, PLC_BAR_MSIX, errp) < 0) {
        pcie_cap_exit(pdev);
        return;
    }
    for (unsigned i = 0; i < s->vectors; i++) {
        msix_vector_use(pdev, i);
    }
    pci_register_bar(pdev, PLC_BAR, PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->bar);
    s->st = plc_state_new();
    plc_net_init(s);
    pla_engine_start(&s->engine);
}

static void plc_exit(PCIDevice *pdev)
{
    PeerlaneCX *s = PEERLANE_CX(pdev);

    plc_reset(s);
    pla_engine_exit(&s->engine);
    plc_net_exit(s);
    msix_uninit_exclusive_bar(pdev);
    pcie_cap_exit(pdev);
}

/* The engine may be at work in plc_exit(), but not here */
static void plc_instance_finalize(Object *obj)
{
    PeerlaneCX *s = PEERLANE_CX(obj);

    if (s->st) {
        plc_state_free(s->st);
    }
    g_array_free(s->ended, true);
    g_queue_free_full(s->out, (GDestroyNotify)g_bytes_unref);
    qemu_mutex_destroy(&s->out_lock);
    pla_engine_finalize(&s->engine);
}

static void plc_get_counters(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    PeerlaneCX *s = PEERLANE_CX(obj);
    uint64_t copy[PLC_NUM_COUNTERS];

    for (unsigned i = 0; i < PLC_NUM_COUNTERS; i++) {
        copy[i] = qatomic_read(&s->counters[i]);
    }
    pla_visit(v, name, plc_counter_names, copy, PLC_NUM_COUNTERS, errp);
}

static bool plc_get_failed(Object *obj, Error **errp)
{
    return PEERLANE_CX(obj)->failed;
}

static void plc_set_failed(Object *obj, bool failed, Error **errp)
{
    PeerlaneCX *s = PEERLANE_CX(obj);

    if (!s->engine.bh) {
        error_setg(errp, "firmware fails when it runs");
    } else if (failed) {
        plc_begin(s);
        s->failed = true;
        plc_end(s);
    } else if (s->failed) {
        plc_reset(s);
    }
}

static void plc_instance_init(Object *obj)
{
    PeerlaneCX *s = PEERLANE_CX(obj);

    s->ended = g_array_new(false, false, sizeof(PlcEnded));
    s->out = g_queue_new();
    qemu_mutex_init(&s->out_lock);
    pla_engine_init(&s->engine, PCI_DEVICE(obj), &plc_engine_ops);
    PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
    object_property_add(obj, "counters", "struct", plc_get_counters, NULL,
                        NULL, NULL);
    object_property_add_bool(obj, "firmware-failed", plc_get_failed,
                             plc_set_failed);
}

/* A machine can be saved while the card is not in use */
static int plc_pre_save(void *opaque)
{
    PeerlaneCX *s = opaque;

    return s->cmdq || s->failed || s->nic_ifc != CX_NIC_DISABLED ||
           s->st->enabled ? -EBUSY : 0;
}

static const VMStateDescription vmstate_plc = {
    .name = TYPE_PEERLANE_CX,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = plc_pre_save,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, PeerlaneCX),
        VMSTATE_MSIX(parent_obj, PeerlaneCX),
        VMSTATE_END_OF_LIST()
    },
};

static const Property plc_properties[] = {
    DEFINE_PROP_UINT64("guid", PeerlaneCX, guid, 0x0200c9fffe000001ull),
    DEFINE_PROP_UINT16("lid", PeerlaneCX, lid, 1),
    DEFINE_PROP_UINT16("vectors", PeerlaneCX, vectors, 8),
    DEFINE_PROP_STRING("subnet", PeerlaneCX, subnet),
    DEFINE_PROP_STRING("link-layer", PeerlaneCX, link_layer),
    DEFINE_PROP_BOOL("trains", PeerlaneCX, trains, false),
    DEFINE_NIC_PROPERTIES(PeerlaneCX, conf),
};

static void plc_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    pc->realize = plc_realize;
    pc->exit = plc_exit;
    pc->config_write = plc_config_write;
    pc->vendor_id = PLC_PCI_VENDOR_ID;
    pc->device_id = PLC_PCI_DEVICE_ID;
    pc->class_id = PLC_PCI_CLASS;
    rc->phases.hold = plc_reset_hold;
    dc->desc = "Peerlane emulated ConnectX virtual function";
    dc->vmsd = &vmstate_plc;
    device_class_set_props(dc, plc_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo plc_info = {
    .name = TYPE_PEERLANE_CX,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(PeerlaneCX),
    .instance_init = plc_instance_init,
    .instance_finalize = plc_instance_finalize,
    .class_init = plc_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void plc_register_types(void)
{
    type_register_static(&plc_info);
}
type_init(plc_register_types)
