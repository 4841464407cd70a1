/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane: the engine of a device, in a thread of its own.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "peerlane-engine.h"

static void pla_engine_unref(void *opaque)
{
    object_unref(OBJECT(opaque));
}

static void *pla_engine_thread(void *opaque)
{
    PlaEngine *e = opaque;

    rcu_register_thread();
    WITH_QEMU_LOCK_GUARD(&e->lock) {
        while (!e->exit) {
            if (!e->kicked || e->held || e->waiters) {
                qemu_cond_wait(&e->wake, &e->lock);
                continue;
            }
            e->kicked = false;
            if (e->ops->step(e->pdev)) {
                e->kicked = true;
            }
        }
    }
    rcu_unregister_thread();
    /* The last reference may go, which is for the main loop to do */
    aio_bh_schedule_oneshot(qemu_get_aio_context(), pla_engine_unref, e->pdev);
    return NULL;
}

/* Do what the engine wants done with the BQL, if anything.  Within the lock. */
static bool pla_engine_serve(PlaEngine *e)
{
    MemReentrancyGuard *guard = &DEVICE(e->pdev)->mem_reentrancy_guard;
    void (*call)(void *opaque) = e->call;
    bool engaged = guard->engaged_in_io;

    if (!call) {
        return false;
    }
    e->call = NULL;
    e->calling = true;
    qemu_mutex_unlock(&e->lock);
    /* The device's own registers refuse it */
    guard->engaged_in_io = true;
    call(e->opaque);
    guard->engaged_in_io = engaged;
    qemu_mutex_lock(&e->lock);
    e->calling = false;
    qemu_cond_signal(&e->served);
    return true;
}

static void pla_engine_bh(void *opaque)
{
    PlaEngine *e = opaque;

    WITH_QEMU_LOCK_GUARD(&e->lock) {
        pla_engine_serve(e);
    }
    pla_engine_raise(e);
    if (e->ops->main && !e->exit) {
        e->ops->main(e->pdev);
    }
}

static void pla_engine_vm_state(void *opaque, bool running, RunState state)
{
    pla_engine_hold(opaque, PLA_HELD_MACHINE, !running);
}

static void pla_engine_get_idle(Object *obj, Visitor *v, const char *name,
                                void *opaque, Error **errp)
{
    PlaEngine *e = opaque;
    bool idle;

    WITH_QEMU_LOCK_GUARD(&e->lock) {
        idle = !e->kicked && !e->inside && !e->irqs;
    }
    visit_type_bool(v, name, &idle, errp);
}

/* For tests without a guest, between what they have the engine do */
static bool pla_engine_qtest(CharBackend *chr, gchar **words)
{
    g_autofree char *path = NULL;
    Object *obj;

    if (strcmp(words[0], "engine-idle") || !words[1]) {
        return false;
    }
    path = g_strconcat("/machine/peripheral/", words[1], NULL);
    obj = object_resolve_path(path, NULL);
    if (obj && object_property_find(obj, "engine-idle")) {
        qtest_sendf(chr, "OK %d\n", object_property_get_bool(obj, "engine-idle",
                                                             &error_abort));
    } else {
        qtest_sendf(chr, "FAIL %s has no engine\n", words[1]);
    }
    return true;
}

static void pla_engine_register(void)
{
    qtest_set_command_cb(pla_engine_qtest);
}
type_init(pla_engine_register)

void pla_engine_init(PlaEngine *e, PCIDevice *pdev, const PlaEngineOps *ops)
{
    e->pdev = pdev;
    e->ops = ops;
    qemu_mutex_init(&e->lock);
    qemu_cond_init(&e->wake);
    qemu_cond_init(&e->served);
    qemu_cond_init(&e->rest);
    object_property_add(OBJECT(pdev), "engine-idle", "bool",
                        pla_engine_get_idle, NULL, NULL, e);
}

void pla_engine_finalize(PlaEngine *e)
{
    qemu_cond_destroy(&e->rest);
    qemu_cond_destroy(&e->served);
    qemu_cond_destroy(&e->wake);
    qemu_mutex_destroy(&e->lock);
}

void pla_engine_start(PlaEngine *e)
{
    QemuThread thread;

    /* A guest that sleeps is not told of when it wakes */
    if (!runstate_is_live(runstate_get())) {
        e->held |= PLA_HELD_MACHINE;
    }
    e->vmstate_entry = qemu_add_vm_change_state_handler(pla_engine_vm_state, e);
    /*
     * Of the main loop only: a device that waits for its work in its MMIO
     * handler runs the bottom halves of the other context, and would refuse
     * the engine there.
     */
    e->bh = aio_bh_new(iohandler_get_aio_context(), pla_engine_bh, e);
    /* Nobody waits for its end, as that may come by what it does */
    object_ref(OBJECT(e->pdev));
    qemu_thread_create(&thread, "peerlane-engine", pla_engine_thread, e,
                       QEMU_THREAD_DETACHED);
}

void pla_engine_exit(PlaEngine *e)
{
    qemu_del_vm_change_state_handler(e->vmstate_entry);
    pla_engine_stop(e);
    e->exit = true;
    e->irqs = 0;
    qemu_bh_delete(e->bh);
    e->bh = NULL;
    pla_engine_go(e);
}

void pla_engine_kick_locked(PlaEngine *e)
{
    e->kicked = true;
    qemu_cond_signal(&e->wake);
}

void pla_engine_kick(PlaEngine *e)
{
    QEMU_LOCK_GUARD(&e->lock);
    pla_engine_kick_locked(e);
}

void pla_engine_stop(PlaEngine *e)
{
    assert(bql_locked());
    qemu_mutex_lock(&e->lock);
    e->waiters++;
    /* What is being called has the BQL, so it is that which wants to stop it */
    while (e->inside && !e->calling) {
        if (!pla_engine_serve(e)) {
            qemu_cond_wait(&e->rest, &e->lock);
        }
    }
    e->waiters--;
}

void pla_engine_go(PlaEngine *e)
{
    qemu_cond_signal(&e->wake);
    qemu_mutex_unlock(&e->lock);
}

void pla_engine_hold(PlaEngine *e, unsigned why, bool hold)
{
    assert(bql_locked());
    /* Only who has the BQL changes that */
    if (!(e->held & why) == !hold) {
        return;
    }
    pla_engine_stop(e);
    if (hold) {
        e->held |= why;
    } else {
        e->held &= ~why;
        e->kicked = true;
    }
    pla_engine_go(e);
    /* What it has finished is told before it rests */
    pla_engine_raise(e);
}

void pla_engine_enter(PlaEngine *e)
{
    e->inside = true;
    e->dropped = false;
    qemu_mutex_unlock(&e->lock);
}

bool pla_engine_leave(PlaEngine *e)
{
    qemu_mutex_lock(&e->lock);
    e->inside = false;
    if (e->waiters) {
        qemu_cond_broadcast(&e->rest);
    }
    return !e->dropped;
}

bool pla_engine_wanted(PlaEngine *e)
{
    QEMU_LOCK_GUARD(&e->lock);
    return !e->exit && e->ops->wanted(e->pdev);
}

bool pla_engine_call(PlaEngine *e, void (*fn)(void *opaque), void *opaque)
{
    if (e->dropped) {
        return false;
    }
    QEMU_LOCK_GUARD(&e->lock);
    e->call = fn;
    e->opaque = opaque;
    qemu_bh_schedule(e->bh);
    qemu_cond_broadcast(&e->rest);
    while (e->call || e->calling) {
        qemu_cond_wait(&e->served, &e->lock);
    }
    e->dropped = e->exit || !e->ops->wanted(e->pdev);
    return !e->dropped;
}

void pla_engine_irq_locked(PlaEngine *e, unsigned vector)
{
    e->irqs |= BIT_ULL(vector);
    if (e->bh) {
        qemu_bh_schedule(e->bh);
    }
}

void pla_engine_raise(PlaEngine *e)
{
    MemReentrancyGuard *guard = &DEVICE(e->pdev)->mem_reentrancy_guard;
    bool engaged = guard->engaged_in_io;
    uint64_t irqs;

    WITH_QEMU_LOCK_GUARD(&e->lock) {
        irqs = e->irqs;
        e->irqs = 0;
    }
    guard->engaged_in_io = true;
    for (; irqs; irqs &= irqs - 1) {
        e->ops->interrupt(e->pdev, ctz64(irqs));
    }
    guard->engaged_in_io = engaged;
}

void pla_engine_main(PlaEngine *e)
{
    if (e->bh) {
        qemu_bh_schedule(e->bh);
    }
}
