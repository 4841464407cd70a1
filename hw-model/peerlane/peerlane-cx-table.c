/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: ids, and queues in the memory of the driver.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

void plc_table_init(PlcTable *t, uint32_t first, uint32_t size)
{
    t->slot = g_new0(void *, size);
    t->owner = g_new0(uint16_t, size);
    t->first = first;
    t->size = size;
    t->next = first;
}

void plc_table_free(PlcTable *t)
{
    g_free(t->slot);
    g_free(t->owner);
    t->slot = NULL;
    t->owner = NULL;
    t->size = 0;
}

void *plc_table_get(const PlcTable *t, uint32_t id)
{
    return id < t->size ? t->slot[id] : NULL;
}

/* Users have nothing in common but what the driver has made for all of them */
void *plc_table_own(const PlcTable *t, const PlcCmd *c, uint32_t id)
{
    void *thing = plc_table_get(t, id);

    return thing && (!c->uid || t->owner[id] == c->uid ||
                     t->owner[id] == CX_UID_ALL) ? thing : NULL;
}

/* Has the user anything in it? */
bool plc_table_owned(const PlcTable *t, uint16_t uid)
{
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->slot[i] && t->owner[i] == uid) {
            return true;
        }
    }
    return false;
}

/* An id is not given again at once, so that a stale one is seen */
bool plc_table_add(PlcTable *t, const PlcCmd *c, void *thing, uint32_t *id)
{
    for (uint32_t n = t->first; n < t->size; n++) {
        uint32_t try = t->next;

        t->next = try + 1 < t->size ? try + 1 : t->first;
        if (!t->slot[try]) {
            t->slot[try] = thing;
            t->owner[try] = c->uid;
            *id = try;
            return true;
        }
    }
    return false;
}

void plc_table_del(PlcTable *t, uint32_t id)
{
    t->slot[id] = NULL;
}

/*
 * The pages of a queue of @size bytes, from the command's list at @pas.  The
 * queue begins @offset units of a 64th of a page into the first one.
 */
uint8_t plc_buf_init(PlcBuf *b, PlcCmd *c, uint32_t pas, uint8_t log_page,
                     uint32_t offset, uint64_t size)
{
    uint64_t bytes;

    if (log_page > 31) {
        return CX_BAD_PARAM;
    }
    b->shift = log_page + 12;
    bytes = (uint64_t)offset << (b->shift - 6);
    b->pages = DIV_ROUND_UP(bytes + size, 1ull << b->shift);
    b->offset = 0;
    if (bytes > UINT32_MAX) {
        return CX_BAD_PARAM;
    }
    b->offset = bytes;
    if (c->in_len < pas || (c->in_len - pas) / 8 < b->pages) {
        return CX_BAD_INPUT_LEN;
    }
    b->page = g_new(uint64_t, b->pages);
    for (uint32_t i = 0; i < b->pages; i++) {
        b->page[i] = ldq_be_p(c->in + pas + 8 * i) & ~0xfffull;
    }
    return CX_OK;
}

/* The same, of a user's memory, from @offset on; it stays as long as the queue */
uint8_t plc_buf_umem(PeerlaneCX *s, PlcBuf *b, PlcCmd *c, uint32_t id,
                     uint64_t offset, uint64_t size, bool is_write)
{
    PlcUmem *umem = plc_table_own(&s->st->umem, c, id);
    uint64_t bytes;

    if (!umem) {
        return CX_BAD_RESOURCE;
    }
    bytes = (umem->pages << umem->shift) - umem->offset;
    if (offset % 64 || offset > UINT32_MAX - umem->offset || offset > bytes ||
        size > bytes - offset) {
        return CX_BAD_SIZE;
    }
    if (is_write && !umem->writable) {
        return CX_BAD_PARAM;
    }
    b->shift = umem->shift;
    b->offset = umem->offset + offset;
    b->pages = umem->pages;
    b->page = umem->page;
    b->umem = umem;
    umem->users++;
    return CX_OK;
}

void plc_buf_free(PlcBuf *b)
{
    if (b->umem) {
        /* Its list of pages, which lasts as long as it has users */
        b->umem->users--;
        b->umem = NULL;
    } else {
        g_free(b->page);
    }
    b->page = NULL;
}

/* The caller keeps within the size that the queue was made with */
static bool plc_buf_rw(PeerlaneCX *s, const PlcBuf *b, uint64_t at, void *data,
                       uint32_t len, bool is_write)
{
    at += b->offset;
    while (len) {
        uint64_t in_page = at & ((1ull << b->shift) - 1);
        uint32_t n = MIN(len, (1ull << b->shift) - in_page);
        uint64_t addr = b->page[at >> b->shift] + in_page;

        if (!(is_write ? plc_write(s, addr, data, n) :
              plc_read(s, addr, data, n))) {
            return false;
        }
        at += n;
        data = (uint8_t *)data + n;
        len -= n;
    }
    return true;
}

bool plc_buf_read(PeerlaneCX *s, const PlcBuf *b, uint64_t at, void *data,
                  uint32_t len)
{
    return plc_buf_rw(s, b, at, data, len, false);
}

bool plc_buf_write(PeerlaneCX *s, const PlcBuf *b, uint64_t at,
                   const void *data, uint32_t len)
{
    return plc_buf_rw(s, b, at, (void *)data, len, true);
}
