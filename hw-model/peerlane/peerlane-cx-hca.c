/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the life of the device, and the memory that it is given.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

enum {
    PLC_PAGES_BOOT = 1,
    PLC_PAGES_INIT = 2,
    PLC_PAGES_REGULAR = 3,
};
enum {
    PLC_PAGES_CANNOT_GIVE = 0,
    PLC_PAGES_GIVE = 1,
    PLC_PAGES_TAKE = 2,
};
#define PLC_ISSI                1
#define PLC_ISSI_SUPPORTED      (1u << PLC_ISSI)

uint8_t plc_nop(PeerlaneCX *s, PlcCmd *c)
{
    return CX_OK;
}

uint8_t plc_enable_hca(PeerlaneCX *s, PlcCmd *c)
{
    if (s->st->enabled) {
        return CX_BAD_SYS_STATE;
    }
    s->st->enabled = true;
    return CX_OK;
}

/* The driver has taken its pages back before, or has lost them */
uint8_t plc_disable_hca(PeerlaneCX *s, PlcCmd *c)
{
    if (s->st->up) {
        return CX_BAD_SYS_STATE;
    }
    s->st->enabled = false;
    s->st->issi = 0;
    s->st->pages = 0;
    return CX_OK;
}

uint8_t plc_init_hca(PeerlaneCX *s, PlcCmd *c)
{
    if (s->st->up) {
        return CX_BAD_SYS_STATE;
    }
    s->st->up = true;
    return CX_OK;
}

uint8_t plc_teardown_hca(PeerlaneCX *s, PlcCmd *c)
{
    if (!s->st->up) {
        return CX_BAD_SYS_STATE;
    }
    s->st->up = false;
    plc_state_clear(s->st);
    return CX_OK;
}

uint8_t plc_query_issi(PeerlaneCX *s, PlcCmd *c)
{
    cx_set(c->out, CX_ISSI_CURRENT, s->st->issi);
    cx_set(c->out, CX_ISSI_SUPPORTED, PLC_ISSI_SUPPORTED);
    return CX_OK;
}

uint8_t plc_set_issi(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t issi = cx_get(c->in, CX_SET_ISSI);

    if (issi != PLC_ISSI) {
        return CX_BAD_PARAM;
    }
    s->st->issi = issi;
    return CX_OK;
}

uint8_t plc_query_pages(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t want;

    switch (cx_get(c->in, CX_CMD_OP_MOD)) {
    case PLC_PAGES_BOOT:
        want = PLC_BOOT_PAGES;
        break;
    case PLC_PAGES_INIT:
        want = PLC_BOOT_PAGES + PLC_INIT_PAGES;
        break;
    case PLC_PAGES_REGULAR:
        want = 0;
        break;
    default:
        return CX_BAD_PARAM;
    }
    cx_set(c->out, CX_QUERY_PAGES_NUM,
           want > s->st->pages ? want - s->st->pages : 0);
    return CX_OK;
}

uint8_t plc_manage_pages(PeerlaneCX *s, PlcCmd *c)
{
    PlcState *st = s->st;
    uint32_t n = cx_get(c->in, CX_MANAGE_PAGES_NUM);

    switch (cx_get(c->in, CX_CMD_OP_MOD)) {
    case PLC_PAGES_CANNOT_GIVE:
        return CX_OK;
    case PLC_PAGES_GIVE:
        if (n > PLC_MAX_PAGES - st->pages) {
            return CX_EXCEED_LIM;
        }
        if ((c->in_len - CX_IN_HEAD) / 8 < n) {
            return CX_BAD_INPUT_LEN;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint64_t page = ldq_be_p(c->in + CX_IN_HEAD + 8 * i);

            if (page & 0xfff) {
                return CX_BAD_PARAM;
            }
            st->page[st->pages + i] = page;
        }
        st->pages += n;
        return CX_OK;
    case PLC_PAGES_TAKE:
        n = MIN(n, MIN(st->pages, (c->out_len - CX_OUT_HEAD) / 8));
        for (uint32_t i = 0; i < n; i++) {
            stq_be_p(c->out + CX_OUT_HEAD + 8 * i, st->page[--st->pages]);
        }
        cx_set(c->out, CX_MANAGE_PAGES_OUT_NUM, n);
        return CX_OK;
    default:
        return CX_BAD_PARAM;
    }
}
