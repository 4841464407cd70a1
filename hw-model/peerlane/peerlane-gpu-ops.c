/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: what a descriptor may ask for, and doing it.
 *
 * An operation touches VRAM directly and all else by DMA, a slice at a time:
 * peerlane-gpu-engine.c says when.
 */
#include "qemu/osdep.h"
#include "qemu/crc32c.h"
#include "hw/pci/pci.h"
#include "peerlane-gpu.h"
#include "trace.h"

#define PLN_SEM_POLL_NS         (50 * SCALE_US)

/*
 * Memory access
 */

/* What is left of a transfer */
typedef struct PlnMove {
    PeerlaneGPU *s;
    uint64_t addr;
    uint8_t *buf;
    uint64_t len;
    bool is_write;
    enum pln_gpu_error err;
} PlnMove;

static void pln_moved(PlnMove *m, uint64_t n, bool peer)
{
    trace_peerlane_gpu_bus(pln_name(m->s), m->is_write ? "write" : "read",
                           peer ? "peer" : "host", m->addr, n);
    pln_count(m->s, m->is_write ?
              (peer ? PLN_CNT_ENGINE_PEER_WRITE : PLN_CNT_ENGINE_HOST_WRITE) :
              (peer ? PLN_CNT_ENGINE_PEER_READ : PLN_CNT_ENGINE_HOST_READ), n);
}

static void pln_move_on(PlnMove *m, uint64_t n)
{
    m->addr += n;
    m->buf += n;
    m->len -= n;
}

/* What RAM there is, up to the first that is something else */
static void pln_move_ram(PlnMove *m)
{
    hwaddr n;
    bool peer;

    while (n = m->len, n && pla_dma_ram(PCI_DEVICE(m->s), m->addr, m->buf, &n,
                                        m->is_write, &peer)) {
        pln_moved(m, n, peer);
        pln_move_on(m, n);
    }
}

/* The rest, with the BQL */
static void pln_move_rest(void *opaque)
{
    PlnMove *m = opaque;

    /* What was moved may have unplugged the device */
    while (m->len && pla_engine_wanted(&m->s->engine.base)) {
        hwaddr n = m->len;
        bool peer;
        PlaEnd end = pla_dma_piece(PCI_DEVICE(m->s), m->addr, m->buf, &n,
                                   m->is_write, &peer);

        if (end == PLA_MOVED) {
            pln_moved(m, n, peer);
        } else {
            trace_peerlane_gpu_bus_refused(pln_name(m->s),
                                           m->is_write ? "write" : "read",
                                           m->addr, n);
            if (end == PLA_FAILED || m->s->posted_errors) {
                m->err = PLN_ERR_BUS;
                return;
            }
        }
        pln_move_on(m, n);
    }
}

enum pln_gpu_error pln_bus_rw(PeerlaneGPU *s, uint64_t addr, void *buf,
                              uint64_t len, bool is_write)
{
    PlnMove m = {
        .s = s, .addr = addr, .buf = buf, .len = len, .is_write = is_write,
    };

    if (s->engine.base.dropped) {
        return PLN_ERR_BUS;     /* nobody looks at it */
    }
    pln_move_ram(&m);
    if (m.len && !pla_engine_call(&s->engine.base, pln_move_rest, &m)) {
        return PLN_ERR_BUS;
    }
    return m.err;
}

/* The range was checked when the descriptor was taken */
static uint8_t *pln_vram(PeerlaneGPU *s, uint64_t addr, uint64_t len)
{
    assert(addr <= s->vram_size && len <= s->vram_size - addr);
    return s->vram_ptr + addr;
}

static void pln_vram_written(PeerlaneGPU *s, uint64_t addr, uint64_t len)
{
    memory_region_set_dirty(&s->vram, addr, len);
    pln_count(s, PLN_CNT_ENGINE_VRAM_WRITE, len);
}

/* Where to read an operand: in VRAM itself, or in @stage after DMA to it */
static enum pln_gpu_error pln_fetch(PeerlaneGPU *s, bool bus, uint64_t addr,
                                    uint64_t len, uint8_t *stage,
                                    const uint8_t **data)
{
    if (bus) {
        *data = stage;
        return pln_bus_rw(s, addr, stage, len, false);
    }
    *data = pln_vram(s, addr, len);
    pln_count(s, PLN_CNT_ENGINE_VRAM_READ, len);
    return PLN_ERR_NONE;
}

/* Write @len bytes at @data to an operand; @data may lie in VRAM */
static enum pln_gpu_error pln_store(PeerlaneGPU *s, bool bus, uint64_t addr,
                                    uint64_t len, const uint8_t *data)
{
    if (bus) {
        return pln_bus_rw(s, addr, (void *)data, len, true);
    }
    memmove(pln_vram(s, addr, len), data, len);
    pln_vram_written(s, addr, len);
    return PLN_ERR_NONE;
}

/*
 * Descriptor checks: all of them, before any operand is touched
 */

typedef struct PlnOpRule {
    uint32_t flags;             /* besides COMP and IRQ */
    bool src;
    bool dst;
    bool imm;
    bool arg;
    bool word;                  /* moves one word of 8 bytes, or of arg */
} PlnOpRule;

static const PlnOpRule pln_rules[] = {
    [PLN_OP_NOP] = { 0 },
    [PLN_OP_COPY] = {
        .flags = PLN_DESC_F_SRC_BUS | PLN_DESC_F_DST_BUS,
        .src = true, .dst = true,
    },
    [PLN_OP_FILL] = {
        .flags = PLN_DESC_F_DST_BUS, .dst = true, .imm = true, .arg = true,
    },
    [PLN_OP_CRC32C] = {
        .flags = PLN_DESC_F_SRC_BUS, .src = true, .imm = true,
    },
    [PLN_OP_COMPARE] = {
        .flags = PLN_DESC_F_SRC_BUS | PLN_DESC_F_DST_BUS,
        .src = true, .dst = true,
    },
    [PLN_OP_ADD] = {
        .flags = PLN_DESC_F_SRC_BUS | PLN_DESC_F_DST_BUS,
        .src = true, .dst = true, .arg = true,
    },
    [PLN_OP_SEM_WRITE] = {
        .flags = PLN_DESC_F_DST_BUS, .dst = true, .imm = true, .word = true,
    },
    [PLN_OP_SEM_WAIT] = {
        .flags = PLN_DESC_F_SRC_BUS, .src = true, .imm = true, .arg = true,
        .word = true,
    },
    [PLN_OP_IMM_WRITE] = {
        .flags = PLN_DESC_F_DST_BUS, .dst = true, .imm = true, .arg = true,
        .word = true,
    },
};
QEMU_BUILD_BUG_ON(ARRAY_SIZE(pln_rules) != PLN_NUM_OPS);

/* The unit in which an operation works, and to which it is aligned */
static uint32_t pln_width(const PlnDesc *d)
{
    switch (d->opcode) {
    case PLN_OP_FILL:
    case PLN_OP_IMM_WRITE:
        return d->arg;
    case PLN_OP_ADD:
        return 4;
    case PLN_OP_SEM_WRITE:
    case PLN_OP_SEM_WAIT:
        return 8;
    default:
        return 1;
    }
}

static uint64_t pln_length(const PlnDesc *d)
{
    return pln_rules[d->opcode].word ? pln_width(d) : d->len;
}

static bool pln_arg_ok(const PlnDesc *d)
{
    switch (d->opcode) {
    case PLN_OP_FILL:
    case PLN_OP_IMM_WRITE:
        if (d->arg != 1 && d->arg != 2 && d->arg != 4 && d->arg != 8) {
            return false;
        }
        return d->arg == 8 || !(d->imm >> (d->arg * 8));
    case PLN_OP_CRC32C:
        return d->arg == 0 && !(d->imm >> 32);
    case PLN_OP_ADD:
        return d->arg == PLN_ADD_INT32 || d->arg == PLN_ADD_FLOAT32;
    case PLN_OP_SEM_WAIT:
        return d->arg <= PLN_SEM_MAX_WAIT_US;
    default:
        return d->arg == 0;
    }
}

static bool pln_len_ok(const PlnDesc *d)
{
    if (d->opcode == PLN_OP_NOP) {
        return d->len == 0;
    }
    if (pln_rules[d->opcode].word) {
        return d->len == 0 || d->len == pln_width(d);
    }
    return d->len && d->len <= PLN_MAX_LEN && d->len % pln_width(d) == 0;
}

static bool pln_range_ok(PeerlaneGPU *s, bool bus, uint64_t addr, uint64_t len)
{
    if (bus) {
        return addr + len - 1 >= addr;
    }
    return addr <= s->vram_size && len <= s->vram_size - addr;
}

/* Can a descriptor be in flight in this state?  Asked of a migration stream */
bool pln_op_in_flight(PeerlaneGPU *s, const PlnQueue *q)
{
    const PlnDesc *d = &q->work.desc;

    return pln_op_check(s, d) == PLN_ERR_NONE &&
           q->work.done < MAX(pln_length(d), 1) &&
           q->work.done % pln_width(d) == 0 &&
           (!q->waiting || d->opcode == PLN_OP_SEM_WAIT);
}

enum pln_gpu_error pln_op_check(PeerlaneGPU *s, const PlnDesc *d)
{
    const PlnOpRule *rule;

    if (d->opcode >= PLN_NUM_OPS) {
        return PLN_ERR_OPCODE;
    }
    rule = &pln_rules[d->opcode];
    if (d->flags & ~(rule->flags | PLN_DESC_F_COMP | PLN_DESC_F_IRQ |
                     PLN_DESC_F_TIME)) {
        return PLN_ERR_FLAGS;
    }
    if (d->reserved || (!rule->src && d->src) || (!rule->dst && d->dst) ||
        (!rule->imm && d->imm)) {
        return PLN_ERR_RESERVED;
    }
    if (!pln_arg_ok(d)) {
        return PLN_ERR_ARG;
    }
    if (!pln_len_ok(d)) {
        return PLN_ERR_LENGTH;
    }
    if ((rule->src && d->src % pln_width(d)) ||
        (rule->dst && d->dst % pln_width(d)) ||
        ((d->flags & PLN_DESC_F_COMP) && d->comp % PLN_COMP_SIZE)) {
        return PLN_ERR_ALIGN;
    }
    if ((rule->src && !pln_range_ok(s, d->flags & PLN_DESC_F_SRC_BUS, d->src,
                                    pln_length(d))) ||
        (rule->dst && !pln_range_ok(s, d->flags & PLN_DESC_F_DST_BUS, d->dst,
                                    pln_length(d)))) {
        return PLN_ERR_RANGE;
    }
    return PLN_ERR_NONE;
}

/*
 * CRC-32C, of files while the guest waits: by the processor's instruction where
 * it has one, several times as fast as QEMU's tables
 */

#ifdef __x86_64__
static __attribute__((target("sse4.2")))
uint32_t pln_crc32c_sse42(uint32_t crc, const uint8_t *p, uint64_t n)
{
    uint64_t sum = (uint32_t)~crc;

    for (; n >= 8; n -= 8, p += 8) {
        sum = __builtin_ia32_crc32di(sum, ldq_le_p(p));
    }
    while (n--) {
        sum = __builtin_ia32_crc32qi(sum, *p++);
    }
    return ~sum;
}
#endif

static uint32_t pln_crc32c(uint32_t crc, const uint8_t *p, uint64_t n)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) {
        return pln_crc32c_sse42(crc, p, n);
    }
#endif
    return crc32c(~crc, p, n);
}

/*
 * Operations.  Each does at most one slice of @w and returns an error,
 * PLN_ERR_NONE when the descriptor is done, or a PLN_STEP_*.
 */

static int pln_more(PlnWork *w, uint64_t n)
{
    w->done += n;
    return w->done == w->desc.len ? PLN_ERR_NONE : PLN_STEP_MORE;
}

static int pln_do_copy(PeerlaneGPU *s, PlnWork *w, uint64_t n)
{
    const PlnDesc *d = &w->desc;
    bool src_bus = d->flags & PLN_DESC_F_SRC_BUS;
    bool dst_bus = d->flags & PLN_DESC_F_DST_BUS;
    uint64_t at = w->done;
    const uint8_t *data;
    int err;

    /* Overlapping ranges are copied right: from the end when need be */
    if (src_bus == dst_bus && d->dst > d->src && d->dst - d->src < d->len) {
        at = d->len - w->done - n;
    }
    err = pln_fetch(s, src_bus, d->src + at, n, s->stage[0], &data);
    if (!err) {
        err = pln_store(s, dst_bus, d->dst + at, n, data);
    }
    return err ? err : pln_more(w, n);
}

static int pln_do_fill(PeerlaneGPU *s, PlnWork *w, uint64_t n)
{
    const PlnDesc *d = &w->desc;
    bool bus = d->flags & PLN_DESC_F_DST_BUS;
    uint64_t addr = d->dst + w->done;
    uint8_t *to = bus ? s->stage[0] : pln_vram(s, addr, n);
    int err = PLN_ERR_NONE;

    if (d->arg == 1) {
        memset(to, d->imm, n);
    } else {
        for (uint64_t i = 0; i < n; i += d->arg) {
            stn_le_p(to + i, d->arg, d->imm);
        }
    }
    if (bus) {
        err = pln_bus_rw(s, addr, to, n, true);
    } else {
        pln_vram_written(s, addr, n);
    }
    return err ? err : pln_more(w, n);
}

static int pln_do_crc32c(PeerlaneGPU *s, PlnWork *w, uint64_t n)
{
    const PlnDesc *d = &w->desc;
    const uint8_t *data;
    int err;

    err = pln_fetch(s, d->flags & PLN_DESC_F_SRC_BUS, d->src + w->done, n,
                    s->stage[0], &data);
    if (err) {
        return err;
    }
    w->result = pln_crc32c(w->result, data, n);
    return pln_more(w, n);
}

static int pln_do_compare(PeerlaneGPU *s, PlnWork *w, uint64_t n)
{
    const PlnDesc *d = &w->desc;
    const uint8_t *data[2];
    int err;

    err = pln_fetch(s, d->flags & PLN_DESC_F_SRC_BUS, d->src + w->done, n,
                    s->stage[0], &data[0]);
    if (!err) {
        err = pln_fetch(s, d->flags & PLN_DESC_F_DST_BUS, d->dst + w->done, n,
                        s->stage[1], &data[1]);
    }
    if (err) {
        return err;
    }
    /* VRAM is written by vCPUs and other devices meanwhile: look once */
    for (int i = 0; i < 2; i++) {
        if (data[i] != s->stage[i]) {
            memcpy(s->stage[i], data[i], n);
        }
    }
    if (memcmp(s->stage[0], s->stage[1], n)) {
        uint64_t i = 0;

        while (s->stage[0][i] == s->stage[1][i]) {
            i++;
        }
        w->done += i;
        w->result = w->done;
        return PLN_ERR_NONE;
    }
    return pln_more(w, n);
}

static void pln_add_words(uint8_t *to, const uint8_t *from, uint64_t n,
                          uint32_t type)
{
    for (uint64_t i = 0; i < n; i += 4) {
        uint32_t a = ldl_le_p(to + i);
        uint32_t b = ldl_le_p(from + i);

        if (type == PLN_ADD_FLOAT32) {
            float x, y;

            memcpy(&x, &a, 4);
            memcpy(&y, &b, 4);
            x += y;
            memcpy(&a, &x, 4);
        } else {
            a += b;
        }
        stl_le_p(to + i, a);
    }
}

static int pln_do_add(PeerlaneGPU *s, PlnWork *w, uint64_t n)
{
    const PlnDesc *d = &w->desc;
    bool dst_bus = d->flags & PLN_DESC_F_DST_BUS;
    const uint8_t *a, *b;
    int err;

    err = pln_fetch(s, d->flags & PLN_DESC_F_SRC_BUS, d->src + w->done, n,
                    s->stage[0], &b);
    if (!err) {
        err = pln_fetch(s, dst_bus, d->dst + w->done, n, s->stage[1], &a);
    }
    if (err) {
        return err;
    }
    /* Add in the stage: the operands may overlap, and see no partial sums */
    if (!dst_bus) {
        memcpy(s->stage[1], a, n);
    }
    pln_add_words(s->stage[1], b, n, d->arg);
    err = pln_store(s, dst_bus, d->dst + w->done, n, s->stage[1]);
    return err ? err : pln_more(w, n);
}

static int pln_do_write(PeerlaneGPU *s, PlnWork *w)
{
    const PlnDesc *d = &w->desc;
    uint64_t n = pln_width(d);
    int err = PLN_ERR_NONE;

    /* Who sees it sees what the descriptors before it have written */
    smp_wmb();
    if (d->flags & PLN_DESC_F_DST_BUS) {
        uint8_t data[8];

        stq_le_p(data, d->imm);
        err = pln_bus_rw(s, d->dst, data, n, true);
    } else {
        /* It is aligned: one store, of which nobody sees a part */
        stn_le_p(pln_vram(s, d->dst, n), n, d->imm);
        pln_vram_written(s, d->dst, n);
    }
    if (!err) {
        w->done = n;
    }
    return err;
}

static int pln_do_sem_wait(PeerlaneGPU *s, PlnWork *w)
{
    const PlnDesc *d = &w->desc;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    const uint8_t *data;
    int err;

    err = pln_fetch(s, d->flags & PLN_DESC_F_SRC_BUS, d->src, 8, s->stage[0],
                    &data);
    if (err) {
        return err;
    }
    w->result = ldq_le_p(data);
    /* Who has written it wrote before it what the next descriptors access */
    smp_mb_acquire();
    trace_peerlane_gpu_sem_poll(pln_name(s), w->result, d->imm);
    if (w->result >= d->imm) {
        w->done = 8;
        return PLN_ERR_NONE;
    }
    if (now >= w->deadline) {
        return PLN_ERR_TIMEOUT;
    }
    return PLN_STEP_WAIT;
}

int64_t pln_op_poll_at(const PlnWork *w)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    return MIN(now + PLN_SEM_POLL_NS, w->deadline);
}

int pln_op_step(PeerlaneGPU *s, PlnWork *w)
{
    uint64_t n = MIN(w->desc.len - w->done, PLN_SLICE);

    switch (w->desc.opcode) {
    case PLN_OP_COPY:
        return pln_do_copy(s, w, n);
    case PLN_OP_FILL:
        return pln_do_fill(s, w, n);
    case PLN_OP_CRC32C:
        return pln_do_crc32c(s, w, n);
    case PLN_OP_COMPARE:
        return pln_do_compare(s, w, n);
    case PLN_OP_ADD:
        return pln_do_add(s, w, n);
    case PLN_OP_SEM_WRITE:
    case PLN_OP_IMM_WRITE:
        return pln_do_write(s, w);
    case PLN_OP_SEM_WAIT:
        return pln_do_sem_wait(s, w);
    default:
        return PLN_ERR_NONE;
    }
}
