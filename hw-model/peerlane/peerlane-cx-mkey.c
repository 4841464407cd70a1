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

/* What the check of a message looks at where pieces are repeated, at most */
#define PLC_MAX_SPAN            (4 * GiB)

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

/* What is wrong with @ctx for a key whose list has @room words; @c: who asks */
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
    switch (cx_get(ctx, CX_MKC_MODE_LO)) {
    case CX_MKC_MODE_MTT:
    case CX_MKC_MODE_KSM:
        if (shift < 12 || shift > 62) {
            return CX_BAD_PARAM;
        }
        if (cx_get(ctx, CX_MKC_MODE_LO) == CX_MKC_MODE_KSM) {
            room /= 2;
        }
        /* One without an end ends where its list does */
        if (!all && plc_mkey_pages(ctx) > room) {
            return CX_BAD_SIZE;
        }
        break;
    case CX_MKC_MODE_KLM:
        if (all) {
            return CX_BAD_PARAM;
        }
        break;
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

    /* Who names pages is the driver; keys are named by others, too */
    if (c->uid && mode != CX_MKC_MODE_KLM && mode != CX_MKC_MODE_KSM) {
        return CX_BAD_PARAM;
    }
    /* Only entries that change a key can use one that is free */
    if (cx_get(ctx, CX_MKC_MODE_HI) ||
        (mode == CX_MKC_MODE_PA && umr) || (free && !umr) ||
        cx_get(ctx, CX_MKC_BSF_EN) || cx_get(c->in, CX_MKEY_UMEM_VALID)) {
        return CX_BAD_PARAM;
    }
    if (mode == CX_MKC_MODE_KLM &&
        MAX(cx_get(ctx, CX_MKC_OCTWORDS), cx_get(c->in, CX_MKEY_OCTWORDS)) >
        1u << PLC_LOG_MAX_KLM) {
        return CX_EXCEED_LIM;
    }
    mkey = g_new0(PlcMkey, 1);
    if (mode != CX_MKC_MODE_PA) {
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

/* How many pages or pieces there are in its list */
static uint64_t plc_mkey_room(const PlcMkey *mkey)
{
    return mkey->mode == CX_MKC_MODE_MTT ? mkey->mtts : mkey->mtts / 2;
}

/* May @qp use @mkey so for [@addr, @addr + @len), which is not empty? */
static bool plc_mkey_permits(const PlcQp *qp, const PlcMkey *mkey,
                             uint32_t key, uint32_t pd, uint64_t addr,
                             uint64_t len, enum plc_access access)
{
    uint64_t from;
    bool may = false;

    /* The queue pair of the driver that changes keys is of no domain */
    if (!mkey || mkey->key != key || mkey->free ||
        (mkey->pd != pd && qp->st != CX_ST_REG_UMR) ||
        (mkey->qpn != CX_ANY_QPN && mkey->qpn != qp->id &&
         mkey->mode != CX_MKC_MODE_PA)) {
        return false;
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
    if (!may || addr + len - 1 < addr) {
        return false;
    }
    if (mkey->all && mkey->mode == CX_MKC_MODE_PA) {
        return true;
    }
    from = addr - mkey->start;
    if (mkey->all) {
        return addr >= mkey->start &&
               ((addr + len - 1) >> mkey->shift) -
               (mkey->start >> mkey->shift) < plc_mkey_room(mkey);
    }
    return addr >= mkey->start && from < mkey->len && len <= mkey->len - from;
}

/* Are the pages there?  With PLC_ABSENT s->st->absent says what is not. */
static enum plc_result plc_mkey_present(PeerlaneCX *s, const PlcMkey *mkey,
                                        uint64_t addr, uint64_t len,
                                        enum plc_access access)
{
    uint64_t first = mkey->start >> mkey->shift;
    uint64_t last = (addr + len - 1) >> mkey->shift;

    for (uint64_t i = addr >> mkey->shift; i <= last; i++) {
        s->walked += sizeof(mkey->mtt[0]);
        if (!(mkey->mtt[i - first] &
              (plc_writes(access) ? CX_MTT_WRITE : CX_MTT_READ))) {
            uint64_t at = MAX(addr, i << mkey->shift);

            s->st->absent.key = mkey->key;
            s->st->absent.addr = at;
            s->st->absent.len = MIN(addr + len - at, 1ull << PLC_LOG_MAX_MSG);
            return PLC_ABSENT;
        }
    }
    return PLC_DONE;
}

static enum plc_result plc_mkey_move(PeerlaneCX *s, PlcMkey *mkey,
                                     uint64_t addr, uint8_t *buf, uint32_t len,
                                     bool is_write, bool data)
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
        if (!plc_move(s, bus, buf, n, is_write, data)) {
            return PLC_FAILED;
        }
        addr += n;
        buf += n;
        len -= n;
    }
    return PLC_DONE;
}

/* What is done to memory by a key, and for whom */
typedef struct PlcUse {
    PlcQp *qp;
    uint32_t pd;
    enum plc_access access;
    unsigned depth;             /* of keys that name keys */
    uint64_t *span;             /* only looked at: so much; NULL: moved */
} PlcUse;

static enum plc_result plc_mkey_use(PeerlaneCX *s, const PlcUse *u,
                                    uint32_t key, uint64_t addr, uint8_t *buf,
                                    uint64_t len);

/* Of a key whose entries are all of the same size */
static enum plc_result plc_mkey_ksm(PeerlaneCX *s, const PlcUse *u,
                                    const PlcMkey *mkey, uint64_t addr,
                                    uint8_t *buf, uint64_t len)
{
    uint64_t size = 1ull << mkey->shift;

    while (len) {
        uint64_t i = (addr >> mkey->shift) - (mkey->start >> mkey->shift);
        uint64_t in = addr & (size - 1), n = MIN(len, size - in);
        enum plc_result result;

        s->walked += CX_KLM_SIZE;
        result = plc_mkey_use(s, u, mkey->mtt[2 * i],
                              mkey->mtt[2 * i + 1] + in, buf, n);
        if (result) {
            return result;
        }
        addr += n;
        buf += u->span ? 0 : n;
        len -= n;
    }
    return PLC_DONE;
}

/* Of one with a list of pieces; @at: from its start on */
static enum plc_result plc_mkey_klm(PeerlaneCX *s, const PlcUse *u,
                                    const PlcMkey *mkey, uint64_t at,
                                    uint8_t *buf, uint64_t len)
{
    for (uint32_t i = 0; i < mkey->mtts / 2 && len; i++) {
        uint32_t bytes = mkey->mtt[2 * i] >> 32;
        uint64_t n;
        enum plc_result result;

        s->walked += CX_KLM_SIZE;
        if (at >= bytes) {
            at -= bytes;
            continue;
        }
        n = MIN(len, bytes - at);
        result = plc_mkey_use(s, u, mkey->mtt[2 * i],
                              mkey->mtt[2 * i + 1] + at, buf, n);
        if (result) {
            return result;
        }
        buf += u->span ? 0 : n;
        len -= n;
        at = 0;
    }
    return len ? PLC_DENIED : PLC_DONE;
}

/*
 * Of one whose pieces are repeated, each a stride further.  What is only looked
 * at is all of each piece from the first round to the last: how many rounds a
 * message takes has no bound.
 */
static enum plc_result plc_mkey_block(PeerlaneCX *s, const PlcUse *u,
                                      const PlcMkey *mkey, uint64_t at,
                                      uint8_t *buf, uint64_t len)
{
    uint32_t round = mkey->mtt[0] >> 32;        /* bytes in one */
    uint32_t pieces = extract64(mkey->mtt[1], 0, 16);
    uint64_t rounds = mkey->mtt[1] >> 32;
    uint64_t first = round ? at / round : 0;
    uint64_t last = round ? (at + len - 1) / round : 0;

    if (!round || pieces >= mkey->mtts / 2 || last >= rounds) {
        return PLC_DENIED;
    }
    for (uint64_t r = first; r <= (u->span ? first : last); r++) {
        uint64_t in = u->span ? 0 : at - r * round, n = 0, left = round;

        for (uint32_t i = 1; i <= pieces && left && len; i++) {
            uint64_t word = mkey->mtt[2 * i], va = mkey->mtt[2 * i + 1];
            uint32_t stride = word >> 48;
            uint32_t bytes = MIN(left, extract64(word, 32, 16));
            enum plc_result result;

            s->walked += CX_KLM_SIZE;
            if (!bytes) {
                return PLC_DENIED;
            }
            left -= bytes;
            if (in >= bytes) {
                in -= bytes;
                continue;
            }
            n = u->span ? (last - first) * stride + bytes :
                MIN(len, bytes - in);
            if (u->span) {
                *u->span += n;
                if (*u->span >= PLC_MAX_SPAN) {
                    return PLC_DENIED;
                }
            }
            result = plc_mkey_use(s, u, word, va + r * stride + in, buf, n);
            if (result) {
                return result;
            }
            if (!u->span) {
                buf += n;
                at += n;
                len -= n;
                in = 0;
            }
        }
        /* Its pieces are all there is of a round */
        if (left && len) {
            return PLC_DENIED;
        }
    }
    return PLC_DONE;
}

/* @len, which is not 0, bytes of @buf and from @addr of @key on */
static enum plc_result plc_mkey_use(PeerlaneCX *s, const PlcUse *u,
                                    uint32_t key, uint64_t addr, uint8_t *buf,
                                    uint64_t len)
{
    PlcMkey *mkey = plc_table_get(&s->st->mkey, key >> 8);
    enum plc_result result = PLC_DONE;
    PlcUse inner = *u;

    if (!plc_mkey_permits(u->qp, mkey, key, u->pd, addr, len, u->access)) {
        return PLC_DENIED;
    }
    if (mkey->mode == CX_MKC_MODE_PA || mkey->mode == CX_MKC_MODE_MTT) {
        if (mkey->mode == CX_MKC_MODE_MTT && mkey->checked) {
            result = plc_mkey_present(s, mkey, addr, len, u->access);
        }
        return result || u->span ? result :
               plc_mkey_move(s, mkey, addr, buf, len, plc_writes(u->access),
                             !u->qp->sqpn);
    }
    if (u->depth >= PLC_MAX_INDIRECTION) {
        return PLC_DENIED;
    }
    /* What others may do says this key; those in it are its owner's */
    inner.depth++;
    inner.access = plc_writes(u->access) ? PLC_LOCAL_WRITE : PLC_LOCAL_READ;
    if (mkey->mode == CX_MKC_MODE_KSM) {
        return plc_mkey_ksm(s, &inner, mkey, addr, buf, len);
    }
    return mkey->mtts && (uint32_t)mkey->mtt[0] == CX_KLM_REPEAT ?
           plc_mkey_block(s, &inner, mkey, addr - mkey->start, buf, len) :
           plc_mkey_klm(s, &inner, mkey, addr - mkey->start, buf, len);
}

static enum plc_result plc_mkey_run(PeerlaneCX *s, PlcQp *qp,
                                    const PlcSge *sge, unsigned n,
                                    const uint8_t *wqe, uint32_t at,
                                    uint8_t *buf, uint32_t len,
                                    enum plc_access access)
{
    uint64_t span = 0;

    for (unsigned i = 0; i < n && len; i++) {
        PlcUse use = {
            .qp = qp, .pd = sge[i].pd ? sge[i].pd : qp->pd, .access = access,
            .span = buf ? NULL : &span,
        };
        enum plc_result result = PLC_DONE;
        uint32_t part;

        if (at >= sge[i].len) {
            at -= sge[i].len;
            continue;
        }
        part = MIN(len, sge[i].len - at);
        if (sge[i].at < 0) {
            result = plc_mkey_use(s, &use, sge[i].key, sge[i].addr + at, buf,
                                  part);
        } else if (buf) {
            memcpy(buf, wqe + sge[i].at + at, part);
        }
        if (result) {
            return result;
        }
        buf += buf ? part : 0;
        len -= part;
        at = 0;
    }
    return PLC_DONE;
}

/* May @len bytes from @at on, of all that @n elements describe, be used so? */
enum plc_result plc_mkey_check(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                               unsigned n, uint32_t at, uint32_t len,
                               enum plc_access access)
{
    return plc_mkey_run(s, qp, sge, n, NULL, at, NULL, len, access);
}

/*
 * Move @len bytes, from the byte @at of all that the @n elements describe.
 * Elements with data in the entry itself take that from @wqe.
 */
enum plc_result plc_mkey_rw(PeerlaneCX *s, PlcQp *qp, const PlcSge *sge,
                            unsigned n, const uint8_t *wqe, uint32_t at,
                            void *buf, uint32_t len, enum plc_access access)
{
    return plc_mkey_run(s, qp, sge, n, wqe, at, buf, len, access);
}

/* The other end says that nobody is to use @key any more; false: it may not */
bool plc_mkey_invalidate(PeerlaneCX *s, PlcQp *qp, uint32_t key, uint32_t pd)
{
    PlcMkey *mkey = plc_table_get(&s->st->mkey, key >> 8);

    if (!mkey || mkey->key != key || mkey->free || mkey->pd != pd ||
        !cx_get(mkey->ctx, CX_MKC_EN_RINVAL) ||
        (mkey->qpn != CX_ANY_QPN && mkey->qpn != qp->id)) {
        return false;
    }
    mkey->free = true;
    cx_set(mkey->ctx, CX_MKC_FREE, 1);
    return true;
}
