/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: the queues of the engine, and who runs them.
 */
#ifndef HW_PEERLANE_GPU_ENGINE_H
#define HW_PEERLANE_GPU_ENGINE_H

#include "exec/hwaddr.h"
#include "peerlane-engine.h"
#include "peerlane-gpu-ops.h"

typedef struct PlnEngine {
    PlaEngine base;             /* its lock is that of all below */
    uint32_t next_queue;
    PlnQueue queues[PLN_MAX_QUEUES];
    /* What the thread is at */
    PlnQueue *at;
    uint32_t generation;        /* of that queue, then */
} PlnEngine;

void pln_engine_init(PeerlaneGPU *s);
void pln_engine_start(PeerlaneGPU *s);
void pln_engine_exit(PeerlaneGPU *s);
void pln_engine_finalize(PeerlaneGPU *s);
void pln_engine_reset(PeerlaneGPU *s);
/* As the configuration space, and the faults, say now */
void pln_engine_holds(PeerlaneGPU *s);
uint32_t pln_queue_read(PeerlaneGPU *s, unsigned q, hwaddr reg);
void pln_queue_write(PeerlaneGPU *s, unsigned q, hwaddr reg, uint32_t val);
const char *pln_queue_status_name(const PlnQueue *q);
uint64_t pln_time(void);

#endif /* HW_PEERLANE_GPU_ENGINE_H */
