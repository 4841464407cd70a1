/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: memory keys.
 *
 * A key is looked up and checked anew for each slice that is moved, so that a
 * key which the driver has destroyed, or a page that it has taken away, is not
 * used any more.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

void plc_mkey_free(PlcMkey *mkey)
{
    g_free(mkey->mtt);
    g_free(mkey);
}

/* How many pages a key like @ctx has; it has to be of a list, and not empty */
static uint64_t plc_mkey_pages(const uint8_t *ctx)
{
    uint64_t start = cx_get(ctx, CX_MKC_START);
    unsigned shift = cx_get(ctx, CX_MKC_LOG_PAGE);

    return ((start + cx_get(ctx, CX_MKC_LEN) - 1) >> shift) -
           (start >> shift) + 1;
}

/* What is wrong with @ctx for a key whose list has @room pages; @c: who asks */
uint8_t plc_mkey_bad(PeerlaneCX *s, const PlcCmd *c, const uint8_t *ctx,
                     uint64_t room)
{
    uint64_t start = cx_get(ctx, CX_MKC_START);
    uint64_t len = cx_get(ctx, CX_MKC_LEN);
    bool all = cx_get(ctx, CX_MKC_LENGTH64);
    unsigned shift = cx_get(ctx, CX_MKC_LOG_PAGE);

    if (!plc_table_own(&s->st->pd, c, cx_get(ctx, CX_MKC_PD))) {
        return CX_BAD_RESOURCE;
    }
    /* A free one may be anything, until it is used */
    if (cx_get(ctx, CX_MKC_FREE)) {
        return CX_OK;
    }
    if (!all && (!len || start + len - 1 < start)) {
        return CX_BAD_PARAM;
    }
    if (cx_get(ctx, CX_MKC_MODE_LO) == CX_MKC_MODE_MTT) {
        /* A list of pages has an end */
        if (all || shift < 12 || shift > 62) {
            return CX_BAD_PARAM;
        }
        if (plc_mkey_pages(ctx) > room) {
            return CX_BAD_SIZE;
        }
    }
    return CX_OK;
}

/* The key is like @ctx from now on, which has been checked */
void plc_mkey_set(PlcMkey *mkey, const uint8_t *ctx)
{
    memcpy(mkey->ctx, ctx, CX_MKC_SIZE);
    mkey->key = mkey->id << 8 | cx_get(ctx, CX_MKC_KEY);
    mkey->pd = cx_get(ctx, CX_MKC_PD);
    mkey->mode = cx_get(ctx, CX_MKC_MODE_LO);
    mkey->free = cx_get(ctx, CX_MKC_FREE);
    mkey->umr = cx_get(ctx, CX_MKC_UMR_EN);
    mkey->all = cx_get(ctx, CX_MKC_LENGTH64);
    mkey->local_read = cx_get(ctx, CX_MKC_LR);
    mkey->local_write = cx_get(ctx, CX_MKC_LW);
    mkey->remote_read = cx_get(ctx, CX_MKC_RR);
    mkey->remote_write = cx_get(ctx, CX_MKC_RW);
    mkey->atomic = cx_get(ctx, CX_MKC_A);
    mkey->qpn = cx_get(ctx, CX_MKC_QPN);
    mkey->start = cx_get(ctx, CX_MKC_START);
    mkey->len = cx_get(ctx, CX_MKC_LEN);
    mkey->shift = cx_get(ctx, CX_MKC_LOG_PAGE);
}

/* Room for its list, and what of that came with the command */
static uint8_t plc_mkey_list(PeerlaneCX *s, PlcCmd *c, PlcMkey *mkey,
                             const uint8_t *ctx)
{
    uint64_t entries = 2ull * cx_get(c->in, CX_MKEY_OCTWORDS), room = entries;

    if ((c->in_len - CX_CREATE_PAS) / 8 < entries) {
        return CX_BAD_INPUT_LEN;
    }
    if (cx_get(ctx, CX_MKC_UMR_EN)) {
        /* Lists are changed by 64 bytes at a time */
        room = MAX(room, ROUND_UP(2ull * cx_get(ctx, CX_MKC_OCTWORDS), 8));
    }
    if (room > PLC_MAX_MTT - s->st->mtts) {
        return CX_NO_RESOURCES;
    }
    mkey->mtts = room;
    mkey->mtt = g_new0(uint64_t, room);
    for (uint64_t i = 0; i < entries; i++) {
        mkey->mtt[i] = ldq_be_p(c->in + CX_CREATE_PAS + 8 * i);
    }
    return CX_OK;
}

uint8_t plc_create_mkey(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_CREATE_CTX;
    unsigned mode = cx_get(ctx, CX_MKC_MODE_LO);
    bool umr = cx_get(ctx, CX_MKC_UMR_EN), free = cx_get(ctx, CX_MKC_FREE);
    PlcMkey *mkey;
    uint8_t status = CX_OK;

    /* Who names pages is the driver */
    if (c->uid) {
        return CX_BAD_PARAM;
    }
    /* Only entries that change a key can use one that is free */
    if (cx_get(ctx, CX_MKC_MODE_HI) || mode > CX_MKC_MODE_MTT ||
        (mode != CX_MKC_MODE_MTT && umr) || (free && !umr) ||
        cx_get(ctx, CX_MKC_BSF_EN) || cx_get(c->in, CX_MKEY_UMEM_VALID)) {
        return CX_BAD_PARAM;
    }
    mkey = g_new0(PlcMkey, 1);
    if (mode == CX_MKC_MODE_MTT) {
        status = plc_mkey_list(s, c, mkey, ctx);
    }
    if (!status) {
        status = plc_mkey_bad(s, c, ctx, mkey->mtts);
    }
    if (!status && !plc_table_add(&s->st->mkey, c, mkey, &mkey->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        plc_mkey_free(mkey);
        return status;
    }
    s->st->mtts += mkey->mtts;
    mkey->checked = free || cx_get(c->in, CX_MKEY_PG_ACCESS);
    plc_mkey_set(mkey, ctx);
    cx_set(c->out, CX_ID_OUT, mkey->id);
    return CX_OK;
}

uint8_t plc_destroy_mkey(PeerlaneCX *s, PlcCmd *c)
{
    PlcMkey *mkey = plc_table_own(&s->st->mkey, c, cx_get(c->in, CX_ID_IN));

    if (!mkey) {
        return CX_BAD_RESOURCE;
    }
    s->st->mtts -= mkey->mtts;
    plc_table_del(&s->st->mkey, mkey->id);
    plc_mkey_free(mkey);
    return CX_OK;
}

uint8_t plc_query_mkey(PeerlaneCX *s, PlcCmd *c)
{
    PlcMkey *mkey = plc_table_own(&s->st->mkey, c, cx_get(c->in, CX_ID_IN));

    if (!mkey) {
        return CX_BAD_RESOURCE;
    }
    memcpy(c->out + CX_OUT_HEAD, mkey->ctx, CX_MKC_SIZE);
    return CX_OK;
}

static bool plc_writes(enum plc_access access)
{
    return access == PLC_LOCAL_WRITE || access == PLC_REMOTE_WRITE ||
           access == PLC_REMOTE_ATOMIC;
}

/*
 * The key of @sge for [@addr, @addr + @len), which is not empty.  With
 * PLC_ABSENT s->st->absent says what is not there.
 */
static enum plc_result plc_mkey_get(PeerlaneCX *s, PlcQp *qp,
                                    const PlcSge *sge, uint64_t addr,
                                    uint32_t len, enum plc_access access,
                                    PlcMkey **found)
{
    uint32_t key = sge->key, pd = sge->pd ? sge->pd : qp->pd;
    PlcMkey *mkey = plc_table_get(&s->st->mkey, key >> 8);
    uint64_t from;
    bool may = false;

    /* The queue pair of the driver that changes keys is of no domain */
    if (!mkey || mkey->key != key || mkey->free ||
        (mkey->pd != pd && qp->st != CX_ST_REG_UMR) ||
        (mkey->qpn != CX_ANY_QPN && mkey->qpn != qp->id &&
         mkey->mode != CX_MKC_MODE_PA)) {
        return PLC_DENIED;
    }
    switch (access) {
    case PLC_LOCAL_READ:
        may = mkey->local_read;
        break;
    case PLC_LOCAL_WRITE:
        may = mkey->local_write;
        break;
    case PLC_REMOTE_READ:
        may = mkey->remote_read;
        break;
    case PLC_REMOTE_WRITE:
        may = mkey->remote_write;
        break;
    case PLC_REMOTE_ATOMIC_READ:
    case PLC_REMOTE_ATOMIC:
        may = mkey->atomic;
        break;
    }
    from = addr - mkey->start;
    if (!may || addr + len - 1 < addr ||
        (!mkey->all && (addr < mkey->start || from >= mkey->len ||
                        len > mkey->len - from))) {
        return PLC_DENIED;
    }
    *found = mkey;
    if (mkey->mode == CX_MKC_MODE_MTT && mkey->checked) {
        uint64_t first = mkey->start >> mkey->shift;
        uint64_t last = (addr + len - 1) >> mkey->shift;

        for (uint64_t i = addr >> mkey->shift; i <= last; i++) {
            s->walked += sizeof(mkey->mtt[0]);
            if (!(mkey->mtt[i - first] &
                  (plc_writes(access) ? CX_MTT_WRITE : CX_MTT_READ))) {
                uint64_t at = MAX(addr, i << mkey->shift);

                s->st->absent.key = key;
                s->st->absent.addr = at;
                s->st->absent.len = addr + len - at;
                return PLC_ABSENT;
            }
        }
    }
    return PLC_DONE;
}

/* May @len bytes from @at on, of all that @n elements describe, be used so? */
enum plc_result plc_mkey_check(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                               unsigned n, uint32_t at, uint32_t len,
                               enum plc_access access)
{
    for (unsigned i = 0; i < n && len; i++) {
        uint32_t part;
        enum plc_result result = PLC_DONE;
        PlcMkey *mkey;

        if (at >= sge[i].len) {
            at -= sge[i].len;
            continue;
        }
        part = MIN(len, sge[i].len - at);
        if (sge[i].at < 0) {
            result = plc_mkey_get(s, qp, &sge[i], sge[i].addr + at, part,
                                  access, &mkey);
        }
        if (result) {
            return result;
        }
        len -= part;
        at = 0;
    }
    return PLC_DONE;
}

static enum plc_result plc_mkey_move(PeerlaneCX *s, PlcMkey *mkey,
                                     uint64_t addr, uint8_t *buf, uint32_t len,
                                     bool is_write)
{
    while (len) {
        uint64_t bus = addr;
        uint32_t n = len;

        if (mkey->mode == CX_MKC_MODE_MTT) {
            uint64_t page = 1ull << mkey->shift;
            uint64_t in_page = addr & (page - 1);
            uint64_t i = (addr >> mkey->shift) - (mkey->start >> mkey->shift);

            n = MIN(len, page - in_page);
            bus = (mkey->mtt[i] & ~0xfffull) + in_page;
        }
        if (!plc_move(s, bus, buf, n, is_write)) {
            return PLC_FAILED;
        }
        addr += n;
        buf += n;
        len -= n;
    }
    return PLC_DONE;
}

/*
 * Move @len bytes, from the byte @at of all that the @n elements describe.
 * Elements with data in the entry itself take that from @wqe.
 */
enum plc_result plc_mkey_rw(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                            unsigned n, const uint8_t *wqe, uint32_t at,
                            void *buf, uint32_t len, enum plc_access access)
{
    uint8_t *p = buf;

    for (unsigned i = 0; i < n && len; i++) {
        uint64_t addr = sge[i].addr + at;
        uint32_t part;

        if (at >= sge[i].len) {
            at -= sge[i].len;
            continue;
        }
        part = MIN(len, sge[i].len - at);
        if (sge[i].at >= 0) {
            memcpy(p, wqe + sge[i].at + at, part);
        } else {
            PlcMkey *mkey;
            enum plc_result result = plc_mkey_get(s, qp, &sge[i], addr, part,
                                                  access, &mkey);

            if (result) {
                return result;
            }
            result = plc_mkey_move(s, mkey, addr, p, part,
                                   plc_writes(access));
            if (result) {
                return result;
            }
        }
        p += part;
        len -= part;
        at = 0;
    }
    return PLC_DONE;
}
