/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: an optional model of the links.
 *
 * What passes the ports is scheduled on virtual time, after the fact: links
 * are busy for so long, transfers wait for one another.  Nothing is delayed.
 * peerlane-switch.rst has the formulas.
 */
#include "qemu/osdep.h"
#include "hw/qdev-properties.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/timer.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "peerlane-switch.h"
#include "trace.h"

#define PLS_MAX_GEN             5
#define PLS_MAX_PAYLOAD         256
#define PLS_MAX_READ_REQUEST    512
#define PLS_REQUEST_OVERHEAD    24      /* framing, 4 DW header, LCRC */
#define PLS_COMPLETION_OVERHEAD 20      /* header of 3 DW */
#define PLS_FIRST_SLICE         1000000 /* ps */

bool pls_link_modelled;

bool pls_link_check(PlsLink *link, Error **errp)
{
    if (link->gen > PLS_MAX_GEN) {
        error_setg(errp, "link-gen=%u is more than %u", link->gen,
                   PLS_MAX_GEN);
        return false;
    }
    if (!is_power_of_2(link->width) || link->width > 32) {
        error_setg(errp, "link-width=%u is not 1, 2, 4, 8, 16 or 32",
                   link->width);
        return false;
    }
    if (link->gen) {
        pls_link_modelled = true;
    }
    return true;
}

/*
 * A function below a modelled link, and a modelled upstream port, report the
 * full width and speed.
 */
void pls_link_show(PlsLink *link, PCIDevice *d)
{
    uint8_t *cap = d->config + d->exp.exp_cap;

    if (link->gen && pci_is_express(d) && d->exp.exp_cap &&
        (pci_get_word(cap + PCI_EXP_FLAGS) & PCI_EXP_FLAGS_VERS) >= 2) {
        pcie_cap_fill_link_ep_usp(d, link->width, link->gen);
    }
}

/* Femtoseconds for a byte on one lane, and by what to divide them */
static const struct {
    uint32_t fs;
    uint32_t div;
} pls_lanes[] = {
    [1] = { 4000000, 1 }, [2] = { 2000000, 1 },     /* 8b/10b */
    [3] = { 1015625, 1 }, [4] = { 1015625, 2 },     /* 128b/130b */
    [5] = { 1015625, 4 },
};

/* Picoseconds for so many bytes */
static uint64_t pls_serialise(const PlsLink *link, uint64_t bytes)
{
    return DIV_ROUND_UP(bytes * pls_lanes[link->gen].fs,
                        1000ULL * pls_lanes[link->gen].div * link->width);
}

/* Bytes per second */
static uint64_t pls_rate(const PlsLink *link)
{
    return 1000000000000000ULL * pls_lanes[link->gen].div * link->width /
           pls_lanes[link->gen].fs;
}

typedef struct PlsPackets {
    uint64_t payload;
    uint64_t wire;
    uint32_t first;
    uint32_t last;
} PlsPackets;

static PlsPackets pls_packets(uint64_t len, uint32_t max, uint32_t overhead)
{
    uint64_t n = DIV_ROUND_UP(len, max);

    return (PlsPackets) {
        .payload = len,
        .wire = len + n * overhead,
        .first = MIN(len, max) + overhead,
        .last = len - (n - 1) * max + overhead,
    };
}

/*
 * The lane is busy for @ps, not before the last time ends.  Slices are twice as
 * long whenever the end is beyond them, so that they last for any transfer.
 */
static void pls_busy(PlsLane *l, uint64_t start, uint64_t ps)
{
    if (!l->slice) {
        l->first = start;
        l->slice = PLS_FIRST_SLICE;
    }
    while ((start + ps - l->first - 1) / PLS_SLICES >= l->slice) {
        for (unsigned i = 0; i < PLS_SLICES; i++) {
            l->slices[i] = i < PLS_SLICES / 2 ?
                l->slices[2 * i] + l->slices[2 * i + 1] : 0;
        }
        l->slice *= 2;
    }
    while (ps) {
        uint64_t i = (start - l->first) / l->slice;
        uint64_t part = MIN(ps, l->first + (i + 1) * l->slice - start);

        l->slices[i] += part;
        start += part;
        ps -= part;
    }
}

/* One packet after another over one link after another; when all have come */
static uint64_t pls_leg(PlsPath *path, bool back, const PlsPackets *p,
                        uint64_t at, uint64_t *queued)
{
    uint64_t finish = at;
    bool after = false;

    for (unsigned i = 0; i < path->n; i++) {
        PlsHop *hop = &path->hops[back ? path->n - 1 - i : i];
        PlsLink *link = hop->link;
        PlsLane *lane = &link->lane[hop->down != back];
        uint64_t start, end;

        if (!link->gen) {
            continue;
        }
        start = MAX(at, lane->free);
        end = start + pls_serialise(link, p->wire);
        if (after) {
            end = MAX(end, finish + pls_serialise(link, p->last));
        }
        lane->transfers++;
        lane->payload += p->payload;
        lane->wire += p->wire;
        lane->busy += pls_serialise(link, p->wire);
        pls_busy(lane, start, pls_serialise(link, p->wire));
        lane->queued += start - at;
        lane->free = end;
        *queued += start - at;
        at = start + pls_serialise(link, p->first) + link->latency * 1000ULL;
        finish = end + link->latency * 1000ULL;
        after = true;
    }
    return finish;
}

/*
 * A transfer of @len bytes by @dev that began at @began (ns) and has ended now.
 * Within pls_lock.
 */
void pls_link_transfer(PCIDevice *dev, PlsModelled *m, PlsPath *path,
                       hwaddr len, bool is_write, int64_t began)
{
    uint64_t at = began * 1000, finish;
    PlsPackets p;
    bool late;

    if (is_write) {
        p = pls_packets(len, PLS_MAX_PAYLOAD, PLS_REQUEST_OVERHEAD);
        finish = pls_leg(path, false, &p, at, &m->queued);
    } else {
        uint64_t n = DIV_ROUND_UP(len, PLS_MAX_READ_REQUEST);

        p = (PlsPackets) {
            .wire = n * PLS_REQUEST_OVERHEAD,
            .first = PLS_REQUEST_OVERHEAD,
            .last = PLS_REQUEST_OVERHEAD,
        };
        finish = pls_leg(path, false, &p, at, &m->queued);
        p = pls_packets(len, PLS_MAX_PAYLOAD, PLS_COMPLETION_OVERHEAD);
        finish = pls_leg(path, true, &p, finish, &m->queued);
    }
    if (!m->transfers++) {
        m->first = at;
    }
    m->payload += len;
    m->finish = MAX(m->finish, finish);
    late = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) * 1000ULL > finish;
    m->late += late;
    trace_peerlane_switch_link_transfer(pls_name(dev), len, is_write, began,
                                        finish / 1000, late);
}

static bool pls_visit(Visitor *v, const char *name, uint64_t val, Error **errp)
{
    return visit_type_uint64(v, name, &val, errp);
}

static bool pls_visit_slices(Visitor *v, const PlsLane *l, Error **errp)
{
    bool ok = true;

    if (!visit_start_list(v, "slices", NULL, 0, errp)) {
        return false;
    }
    for (unsigned i = 0; ok && l->slice && i < PLS_SLICES; i++) {
        ok = pls_visit(v, NULL, l->slices[i] / 1000, errp);
    }
    ok = ok && visit_check_list(v, errp);
    visit_end_list(v, NULL);
    return ok;
}

static bool pls_visit_lane(Visitor *v, const char *name, const PlsLane *l,
                           Error **errp)
{
    bool ok;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return false;
    }
    ok = pls_visit(v, "transfers", l->transfers, errp) &&
         pls_visit(v, "payload-bytes", l->payload, errp) &&
         pls_visit(v, "wire-bytes", l->wire, errp) &&
         pls_visit(v, "busy-ns", l->busy / 1000, errp) &&
         pls_visit(v, "queued-ns", l->queued / 1000, errp) &&
         pls_visit(v, "free-ns", l->free / 1000, errp) &&
         pls_visit(v, "first-ns", l->first / 1000, errp) &&
         pls_visit(v, "slice-ns", l->slice / 1000, errp) &&
         pls_visit_slices(v, l, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static void pls_get_modelled(Object *obj, Visitor *v, const char *name,
                             void *opaque, Error **errp)
{
    PlsLink copy;

    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        copy = *pls_link(PCI_DEVICE(obj));
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (!copy.gen ||
        (pls_visit(v, "modelled-bytes-per-second",
                   pls_rate(&copy), errp) &&
         pls_visit(v, "modelled-latency-ns", copy.latency, errp) &&
         pls_visit_lane(v, "modelled-up", &copy.lane[0], errp) &&
         pls_visit_lane(v, "modelled-down", &copy.lane[1], errp))) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

void pls_link_add_property(Object *obj)
{
    object_property_add(obj, "modelled", "struct", pls_get_modelled, NULL,
                        NULL, NULL);
}

static bool pls_visit_requester(Visitor *v, const char *id, PlsModelled *m,
                                Error **errp)
{
    g_autofree char *name = g_strdup(id);
    bool ok;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_str(v, "requester", &name, errp) &&
         pls_visit(v, "modelled-transfers", m->transfers, errp) &&
         pls_visit(v, "modelled-payload-bytes", m->payload, errp) &&
         pls_visit(v, "modelled-first-ns", m->first / 1000, errp) &&
         pls_visit(v, "modelled-finish-ns", m->finish / 1000, errp) &&
         pls_visit(v, "modelled-queued-ns", m->queued / 1000, errp) &&
         pls_visit(v, "late", m->late, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

/* Of the functions right below the ports of this switch */
static void pls_get_requesters(Object *obj, Visitor *v, const char *name,
                               void *opaque, Error **errp)
{
    PCIBus *bus = pci_bridge_get_sec_bus(PCI_BRIDGE(obj));

    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bus->devices); i++) {
        PlsDownstream *p = bus->devices[i] ?
            (PlsDownstream *)object_dynamic_cast(OBJECT(bus->devices[i]),
                TYPE_PEERLANE_SWITCH_DOWNSTREAM) : NULL;
        PCIBus *sec = p ? pci_bridge_get_sec_bus(PCI_BRIDGE(p)) : NULL;
        PlsRequester *r;

        if (!p) {
            continue;
        }
        QLIST_FOREACH(r, &p->requesters, next) {
            PlsModelled copy;

            WITH_QEMU_LOCK_GUARD(&pls_lock) {
                copy = r->modelled;
            }
            if (r->bus == sec && sec->devices[r->devfn] && copy.transfers &&
                !pls_visit_requester(v, pls_name(sec->devices[r->devfn]),
                                     &copy, errp)) {
                goto out;
            }
        }
    }
    visit_check_list(v, errp);
out:
    visit_end_list(v, NULL);
}

static void pls_restart(Object *obj, bool value, Error **errp)
{
    PCIBus *bus = pci_bridge_get_sec_bus(PCI_BRIDGE(obj));
    PlsLink *link = pls_link(PCI_DEVICE(obj));

    if (!value) {
        error_setg(errp, "modelled-restart can only be set to true");
        return;
    }
    QEMU_LOCK_GUARD(&pls_lock);
    memset(link->lane, 0, sizeof(link->lane));
    for (unsigned i = 0; i < ARRAY_SIZE(bus->devices); i++) {
        PlsDownstream *p = bus->devices[i] ?
            (PlsDownstream *)object_dynamic_cast(OBJECT(bus->devices[i]),
                TYPE_PEERLANE_SWITCH_DOWNSTREAM) : NULL;
        PlsRequester *r;

        if (!p) {
            continue;
        }
        memset(p->link.lane, 0, sizeof(p->link.lane));
        QLIST_FOREACH(r, &p->requesters, next) {
            r->modelled = (PlsModelled) { };
        }
    }
}

void pls_link_add_requesters(ObjectClass *klass)
{
    object_class_property_add(klass, "modelled-requesters", "list",
                              pls_get_requesters, NULL, NULL, NULL);
    object_class_property_add_bool(klass, "modelled-restart", NULL,
                                   pls_restart);
}
