/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: a queue, and the operation that it is at.
 */
#ifndef HW_PEERLANE_GPU_OPS_H
#define HW_PEERLANE_GPU_OPS_H

#include "qemu/timer.h"
#include "peerlane-gpu-regs.h"

typedef struct PeerlaneGPU PeerlaneGPU;

/* The engine moves at most this much before it lets another queue run */
#define PLN_SLICE               (256 * 1024)

typedef struct PlnDesc {
    uint32_t opcode;
    uint32_t flags;
    uint32_t arg;
    uint32_t reserved;
    uint64_t src;
    uint64_t dst;
    uint64_t len;
    uint64_t imm;
    uint64_t comp;
    uint64_t fence;
} PlnDesc;

/* A descriptor in flight, and how far it is */
typedef struct PlnWork {
    PlnDesc desc;
    uint64_t done;
    uint64_t result;
    int64_t deadline;
} PlnWork;

typedef struct PlnQueue {
    PeerlaneGPU *gpu;
    QEMUTimer *timer;
    uint32_t index;

    uint32_t status;
    uint64_t base;
    uint32_t size;
    uint32_t head;
    uint32_t tail;
    uint32_t error_code;
    uint32_t error_index;
    uint32_t vector;
    uint64_t fence;
    uint32_t fence_hi;

    /* The descriptor in flight, as it was at the end of the last slice */
    bool active;
    bool waiting;
    PlnWork work;
    uint32_t generation;        /* how often it was stopped */
} PlnQueue;

enum {
    PLN_STEP_MORE = -1,         /* run again */
    PLN_STEP_WAIT = -2,         /* run again at a time: pln_op_poll_at() */
};
enum pln_gpu_error pln_bus_rw(PeerlaneGPU *s, uint64_t addr, void *buf,
                              uint64_t len, bool is_write);
enum pln_gpu_error pln_op_check(PeerlaneGPU *s, const PlnDesc *d);
bool pln_op_in_flight(PeerlaneGPU *s, const PlnQueue *q);
int pln_op_step(PeerlaneGPU *s, PlnWork *w);
int64_t pln_op_poll_at(const PlnWork *w);

#endif /* HW_PEERLANE_GPU_OPS_H */
