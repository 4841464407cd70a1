/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: users, to whom the driver gives commands of their own, and
 * the memory in which they make queues without it.
 *
 * What a user has made no other can name.  What the driver makes for the user
 * CX_UID_ALL is all's: event queues, and counters.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

/* A user in the table, without and with the right to send frames */
static char plc_user, plc_raw_user;

uint8_t plc_create_uctx(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t cap = cx_get(c->in, CX_UCTX_CAP), uid;

    /* There are no other rights to give */
    if (cap & ~(s->ethernet ? CX_UCTX_RAW_TX : 0)) {
        return CX_BAD_PARAM;
    }
    if (!plc_table_add(&s->st->uctx, c, cap ? &plc_raw_user : &plc_user,
                       &uid)) {
        return CX_NO_RESOURCES;
    }
    cx_set(c->out, CX_UCTX_UID, uid);
    return CX_OK;
}

uint8_t plc_destroy_uctx(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t uid = cx_get(c->in, CX_UCTX_UID);
    PlcState *st = s->st;
    const PlcTable *const all[] = {
        &st->umem, &st->pd, &st->uar, &st->xrcd, &st->td, &st->qc, &st->cq,
        &st->mkey, &st->srq, &st->qp,
    };

    if (!plc_table_get(&st->uctx, uid)) {
        return CX_BAD_RESOURCE;
    }
    if (plc_eth_owned(st->eth, uid)) {
        return CX_RESOURCE_BUSY;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
        if (plc_table_owned(all[i], uid)) {
            return CX_RESOURCE_BUSY;
        }
    }
    plc_table_del(&st->uctx, uid);
    return CX_OK;
}

/* May whoever this command is for send frames of any kind? */
bool plc_user_sends_raw(PeerlaneCX *s, const PlcCmd *c)
{
    return !c->uid || c->uid == CX_UID_ALL ||
           plc_table_get(&s->st->uctx, c->uid) == &plc_raw_user;
}

void plc_umem_free(PlcUmem *umem)
{
    g_free(umem->page);
    g_free(umem);
}

uint8_t plc_create_umem(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_UMEM_CTX;
    uint64_t pages = cx_get(ctx, CX_UMEM_PAGES);
    uint32_t offset = cx_get(ctx, CX_UMEM_OFFSET);
    uint8_t shift = cx_get(ctx, CX_UMEM_LOG_PAGE) + 12;
    PlcUmem *umem;

    if (!pages || (uint64_t)offset >> shift) {
        return CX_BAD_PARAM;
    }
    if ((c->in_len - CX_UMEM_MTT) / 8 < pages) {
        return CX_BAD_INPUT_LEN;
    }
    if (pages > PLC_MAX_MTT - s->st->mtts) {
        return CX_NO_RESOURCES;
    }
    umem = g_new0(PlcUmem, 1);
    umem->offset = offset;
    umem->shift = shift;
    umem->pages = pages;
    umem->page = g_new(uint64_t, pages);
    umem->writable = true;
    for (uint64_t i = 0; i < pages; i++) {
        uint64_t entry = ldq_be_p(c->in + CX_UMEM_MTT + 8 * i);

        umem->page[i] = entry & ~0xfffull;
        umem->writable &= !!(entry & CX_MTT_WRITE);
    }
    if (!plc_table_add(&s->st->umem, c, umem, &umem->id)) {
        plc_umem_free(umem);
        return CX_NO_RESOURCES;
    }
    s->st->mtts += pages;
    cx_set(c->out, CX_ID_OUT, umem->id);
    return CX_OK;
}

uint8_t plc_destroy_umem(PeerlaneCX *s, PlcCmd *c)
{
    PlcUmem *umem = plc_table_own(&s->st->umem, c, cx_get(c->in, CX_ID_IN));

    if (!umem) {
        return CX_BAD_RESOURCE;
    }
    if (umem->users) {
        return CX_RESOURCE_BUSY;
    }
    s->st->mtts -= umem->pages;
    plc_table_del(&s->st->umem, umem->id);
    plc_umem_free(umem);
    return CX_OK;
}

uint8_t plc_umem_dbr(PeerlaneCX *s, PlcCmd *c, uint32_t id, uint64_t offset,
                     PlcUmem **to, uint64_t *addr)
{
    PlcUmem *umem = plc_table_own(&s->st->umem, c, id);
    uint64_t at;

    if (!umem) {
        return CX_BAD_RESOURCE;
    }
    /* Two words, which no end of a page parts */
    at = umem->offset + offset;
    if (at % 8 || at < offset || at >> umem->shift >= umem->pages) {
        return CX_BAD_SIZE;
    }
    *addr = umem->page[at >> umem->shift] + (at & ((1ull << umem->shift) - 1));
    *to = umem;
    umem->users++;
    return CX_OK;
}
