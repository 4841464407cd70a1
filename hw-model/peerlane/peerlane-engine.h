/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane: the engine of a device, in a thread of its own.
 *
 * The thread never takes the BQL.  It moves bytes from and to RAM by itself, a
 * slice at a time; what needs the BQL (an IO region, what an IOMMU translates,
 * an interrupt) it has done by the main loop.  What the engine and the rest of
 * the device share is within @lock, which nobody holds for long: the engine
 * gives it up during a slice.  The order of locks: BQL, @lock, all others.
 *
 * Who has the BQL may wait for the end of a slice, in pla_engine_stop().  He
 * does meanwhile what the engine wants done with the BQL, so that neither waits
 * for the other.  When he is there only because the engine has had something
 * done (it resets its own device, say) he does not wait, and the engine drops
 * what it is at.
 */
#ifndef HW_PEERLANE_ENGINE_H
#define HW_PEERLANE_ENGINE_H

#include "qemu/thread.h"
#include "hw/pci/pci_device.h"

typedef struct PlaEngineOps {
    /*
     * Do one slice, between pla_engine_enter() and pla_engine_leave(), if there
     * is work, and return whether there was.  Within the lock.
     */
    bool (*step)(PCIDevice *pdev);
    /* Does anybody still want what step() is at?  Within the lock. */
    bool (*wanted)(PCIDevice *pdev);
    /* Raise this one.  With the BQL, and without the lock. */
    void (*interrupt)(PCIDevice *pdev, unsigned vector);
    /* What else the main loop has to do; may be NULL */
    void (*main)(PCIDevice *pdev);
} PlaEngineOps;

/* Why an engine rests */
enum {
    PLA_HELD_MACHINE = 1 << 0,  /* the machine is stopped */
    PLA_HELD_CONFIG = 1 << 1,   /* while configuration space changes */
    PLA_HELD_DEVICE = 1 << 2,   /* the device has a reason */
};

typedef struct PlaEngine {
    PCIDevice *pdev;
    const PlaEngineOps *ops;
    VMChangeStateEntry *vmstate_entry;
    QEMUBH *bh;                 /* for what needs the BQL; NULL: no thread */
    QemuMutex lock;
    QemuCond wake;              /* the engine, which has nothing to do */
    QemuCond served;            /* the engine, which has asked for a call */
    QemuCond rest;              /* those who wait for the end of a slice */
    bool exit;
    bool kicked;                /* there may be something to do */
    bool inside;                /* of a slice */
    bool dropped;               /* it is not wanted any more */
    unsigned held;              /* why it begins no slice */
    unsigned waiters;           /* who come before the next slice */
    uint64_t irqs;              /* to be raised, a bit for each vector */
    /* What the engine wants done with the BQL */
    void (*call)(void *opaque);
    void *opaque;
    bool calling;               /* it is being done */
} PlaEngine;

/*
 * Of an instance, with its property engine-idle; pla_engine_start() is of
 * realize, pla_engine_exit() its end
 */
void pla_engine_init(PlaEngine *e, PCIDevice *pdev, const PlaEngineOps *ops);
void pla_engine_finalize(PlaEngine *e);
void pla_engine_start(PlaEngine *e);
void pla_engine_exit(PlaEngine *e);

/* There may be something to do; within the lock, or not */
void pla_engine_kick_locked(PlaEngine *e);
void pla_engine_kick(PlaEngine *e);

/*
 * Take the lock at the end of a slice: nothing moves until pla_engine_go().
 * With the BQL.
 */
void pla_engine_stop(PlaEngine *e);
void pla_engine_go(PlaEngine *e);

/* Let it rest, for one of several reasons, or not any more.  With the BQL. */
void pla_engine_hold(PlaEngine *e, unsigned why, bool hold);

/* For step(): a slice.  pla_engine_leave() says whether what it did holds. */
void pla_engine_enter(PlaEngine *e);
bool pla_engine_leave(PlaEngine *e);

/* Within a slice: have @fn called with the BQL, or return false: not wanted */
bool pla_engine_call(PlaEngine *e, void (*fn)(void *opaque), void *opaque);
/* For @fn, which may have reset or unplugged the device by now */
bool pla_engine_wanted(PlaEngine *e);

/*
 * An interrupt is noted within the lock, and raised with the BQL: by the main
 * loop, or by pla_engine_raise() of who has it.
 */
void pla_engine_irq_locked(PlaEngine *e, unsigned vector);
void pla_engine_raise(PlaEngine *e);

/* Have the main loop call main().  Within a slice, or with the BQL. */
void pla_engine_main(PlaEngine *e);

#endif /* HW_PEERLANE_ENGINE_H */
