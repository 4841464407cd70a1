/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: what it is doing, as a QOM property for those who look from
 * outside.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "peerlane-gpu.h"

static bool pln_visit_queue(Visitor *v, PlnQueue *q, Error **errp)
{
    g_autofree char *status = NULL;
    uint32_t head, tail, code, index;
    uint64_t fence;
    bool ok;

    WITH_QEMU_LOCK_GUARD(&q->gpu->engine.base.lock) {
        status = g_strdup(pln_queue_status_name(q));
        fence = q->fence;
        head = q->head;
        tail = q->tail;
        code = q->error_code;
        index = q->error_index;
    }

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_type_str(v, "status", &status, errp) &&
         visit_type_uint32(v, "head", &head, errp) &&
         visit_type_uint32(v, "tail", &tail, errp) &&
         visit_type_uint32(v, "error-code", &code, errp) &&
         visit_type_uint32(v, "error-index", &index, errp) &&
         visit_type_uint64(v, "fence", &fence, errp) &&
         visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static bool pln_visit_queues(Visitor *v, PeerlaneGPU *s, Error **errp)
{
    bool ok = true;

    if (!visit_start_list(v, "queues", NULL, 0, errp)) {
        return false;
    }
    for (unsigned i = 0; i < s->num_queues && ok; i++) {
        ok = pln_visit_queue(v, &s->engine.queues[i], errp);
    }
    ok = ok && visit_check_list(v, errp);
    visit_end_list(v, NULL);
    return ok;
}

static void pln_get_state(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    PeerlaneGPU *s = PEERLANE_GPU(obj);
    uint32_t resets = s->reset_count;
    uint32_t units = s->bar1.units_used;
    uint32_t runs = s->bar1.runs_used;
    bool removed = s->removed;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    if (visit_type_bool(v, "removed", &removed, errp) &&
        visit_type_uint32(v, "reset-count", &resets, errp) &&
        visit_type_uint32(v, "bar1-units-used", &units, errp) &&
        visit_type_uint32(v, "bar1-runs-used", &runs, errp) &&
        pln_visit_queues(v, s, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

void pln_state_add_property(Object *obj)
{
    object_property_add(obj, "state", "struct", pln_get_state, NULL, NULL,
                        NULL);
}
