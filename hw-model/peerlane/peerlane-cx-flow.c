/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: flow tables, which lead a received frame to a TIR.
 *
 * A frame's fields are put where the manual has them in what is matched, so that
 * an entry is compared by the mask of its group, whatever fields that names.
 */
#include "qemu/osdep.h"
#include "peerlane-cx-eth.h"

#define PLC_MATCH_COST          16      /* of the work of a slice */

/* Users have no tables, and there are none but those of received frames */
static bool plc_flow_other(const PlcCmd *c)
{
    return cx_get(c->in, CX_FT_OTHER) ||
           cx_get(c->in, CX_FT_TYPE) != CX_FT_NIC_RX_TYPE;
}

static PlcFlowTable *plc_flow_table(PeerlaneCX *s, uint32_t id)
{
    return plc_table_get(&s->st->eth->table, id);
}

/* A frame that comes from @t only goes on to what is behind it */
static uint8_t plc_flow_next(PeerlaneCX *s, uint8_t level, uint32_t id)
{
    PlcFlowTable *next = plc_flow_table(s, id);

    return !next ? CX_BAD_RESOURCE : next->level <= level ? CX_BAD_PARAM :
           CX_OK;
}

void plc_flow_table_free(PlcFlowTable *t)
{
    PlcFlow *f;

    while ((f = QTAILQ_FIRST(&t->flows))) {
        QTAILQ_REMOVE(&t->flows, f, link);
        g_free(f);
    }
    g_free(t);
}

/* Where what no entry takes goes */
static uint8_t plc_flow_miss(PeerlaneCX *s, const uint8_t *ctx, uint8_t level,
                             uint32_t *miss)
{
    uint32_t action = cx_get(ctx, CX_FTC_MISS);
    uint8_t status;

    if (action == CX_FT_MISS_DROP) {
        *miss = 0;
        return CX_OK;
    }
    if (action != CX_FT_MISS_FORWARD) {
        return CX_BAD_PARAM;
    }
    status = plc_flow_next(s, level, cx_get(ctx, CX_FTC_MISS_ID));
    if (!status) {
        *miss = cx_get(ctx, CX_FTC_MISS_ID);
    }
    return status;
}

uint8_t plc_create_flow_table(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_FT_CTX;
    uint8_t level = cx_get(ctx, CX_FTC_LEVEL), status;
    uint32_t log_size = cx_get(ctx, CX_FTC_LOG_SIZE);
    PlcFlowTable *t;

    if (plc_flow_other(c) || cx_get(c->in, CX_CMD_OP_MOD) ||
        cx_get(ctx, CX_FTC_FLAGS)) {
        return CX_BAD_PARAM;
    }
    if (log_size > PLC_LOG_MAX_TABLE || level > PLC_MAX_TABLE_LEVEL) {
        return CX_EXCEED_LIM;
    }
    t = g_new0(PlcFlowTable, 1);
    QTAILQ_INIT(&t->flows);
    t->level = level;
    t->log_size = log_size;
    status = plc_flow_miss(s, ctx, level, &t->miss);
    if (!status && !plc_table_add(&s->st->eth->table, c, t, &t->id)) {
        status = CX_NO_RESOURCES;
    }
    if (status) {
        g_free(t);
        return status;
    }
    cx_set(c->out, CX_FT_ID_OUT, t->id);
    return CX_OK;
}

uint8_t plc_modify_flow_table(PeerlaneCX *s, PlcCmd *c)
{
    PlcFlowTable *t = plc_flow_table(s, cx_get(c->in, CX_FT_ID));

    if (plc_flow_other(c) || cx_get(c->in, CX_FT_SELECT) != CX_FT_SELECT_MISS) {
        return CX_BAD_PARAM;
    }
    return t ? plc_flow_miss(s, c->in + CX_FT_CTX, t->level, &t->miss) :
           CX_BAD_RESOURCE;
}

/* Does anything lead to what has this type and number? */
static bool plc_flow_named(PeerlaneCX *s, uint8_t type, uint32_t id)
{
    PlcTable *all = &s->st->eth->table;

    for (uint32_t i = all->first; i < all->size; i++) {
        PlcFlowTable *t = plc_table_get(all, i);
        PlcFlow *f;

        if (!t) {
            continue;
        }
        if (type == CX_DEST_TABLE && t->miss == id) {
            return true;
        }
        QTAILQ_FOREACH(f, &t->flows, link) {
            if (f->action & CX_ACTION_FORWARD && f->dest_type == type &&
                f->dest == id) {
                return true;
            }
        }
    }
    return false;
}

bool plc_flow_names_tir(PeerlaneCX *s, uint32_t tirn)
{
    return plc_flow_named(s, CX_DEST_TIR, tirn);
}

uint8_t plc_destroy_flow_table(PeerlaneCX *s, PlcCmd *c)
{
    PlcFlowTable *t = plc_flow_table(s, cx_get(c->in, CX_FT_ID));

    if (plc_flow_other(c)) {
        return CX_BAD_PARAM;
    }
    if (!t) {
        return CX_BAD_RESOURCE;
    }
    if (t->groups || s->st->eth->root == t->id ||
        plc_flow_named(s, CX_DEST_TABLE, t->id)) {
        return CX_RESOURCE_BUSY;
    }
    plc_table_del(&s->st->eth->table, t->id);
    plc_flow_table_free(t);
    return CX_OK;
}

static bool plc_nonzero(const uint8_t *p, uint32_t len)
{
    while (len && !*p) {
        p++;
        len--;
    }
    return len;
}

/* Nothing but the outer headers of layers 2 to 4 can be matched */
static bool plc_match_bad(const uint8_t *match)
{
    return plc_nonzero(match + CX_MATCH_SIZE, CX_MATCH_ALL - CX_MATCH_SIZE);
}

uint8_t plc_create_flow_group(PeerlaneCX *s, PlcCmd *c)
{
    PlcFlowTable *t = plc_flow_table(s, cx_get(c->in, CX_FT_ID));
    PlcTable *all = &s->st->eth->group;
    uint32_t start = cx_get(c->in, CX_FG_START), end = cx_get(c->in, CX_FG_END);
    uint32_t enable = cx_get(c->in, CX_FG_ENABLE);
    PlcGroup *g;

    if (plc_flow_other(c) || cx_get(c->in, CX_FG_KIND) ||
        cx_get(c->in, CX_FG_DEFINER) || enable & ~CX_FG_OUTER ||
        start > end || plc_match_bad(c->in + CX_FG_MASK) ||
        (!enable && plc_nonzero(c->in + CX_FG_MASK, CX_MATCH_SIZE))) {
        return CX_BAD_PARAM;
    }
    if (!t) {
        return CX_BAD_RESOURCE;
    }
    if (end >= 1u << t->log_size) {
        return CX_BAD_SIZE;
    }
    for (uint32_t i = all->first; i < all->size; i++) {
        g = plc_table_get(all, i);
        if (g && g->table == t && g->start <= end && start <= g->end) {
            return CX_BAD_PARAM;
        }
    }
    g = g_new0(PlcGroup, 1);
    g->table = t;
    g->start = start;
    g->end = end;
    memcpy(g->mask, c->in + CX_FG_MASK, CX_MATCH_SIZE);
    if (!plc_table_add(all, c, g, &g->id)) {
        g_free(g);
        return CX_NO_RESOURCES;
    }
    t->groups++;
    cx_set(c->out, CX_FG_ID_OUT, g->id);
    return CX_OK;
}

uint8_t plc_destroy_flow_group(PeerlaneCX *s, PlcCmd *c)
{
    PlcGroup *g = plc_table_get(&s->st->eth->group,
                                cx_get(c->in, CX_FG_ID_IN));

    if (plc_flow_other(c)) {
        return CX_BAD_PARAM;
    }
    if (!g || g->table->id != cx_get(c->in, CX_FT_ID)) {
        return CX_BAD_RESOURCE;
    }
    if (g->flows) {
        return CX_RESOURCE_BUSY;
    }
    g->table->groups--;
    plc_table_del(&s->st->eth->group, g->id);
    g_free(g);
    return CX_OK;
}

/* The entry at @index, or the one that comes behind it; NULL: there is none */
static PlcFlow *plc_flow_at(PlcFlowTable *t, uint32_t index)
{
    PlcFlow *f;

    QTAILQ_FOREACH(f, &t->flows, link) {
        if (f->index >= index) {
            break;
        }
    }
    return f;
}

/* What an entry does with a frame, as the command says */
static uint8_t plc_flow_action(PeerlaneCX *s, PlcCmd *c, PlcFlowTable *t,
                               PlcFlow *f)
{
    const uint8_t *ctx = c->in + CX_FTE_CTX, *dest = ctx + CX_FTC_DEST;
    uint32_t dests = cx_get(ctx, CX_FTC_DESTS);
    uint8_t status = CX_OK;

    f->action = cx_get(ctx, CX_FTC_ACTION);
    f->tag = cx_get(ctx, CX_FTC_TAG);
    if (cx_get(ctx, CX_FTC_EXTENDED) || cx_get(ctx, CX_FTC_COUNTERS) ||
        f->action & ~(CX_ACTION_ALLOW | CX_ACTION_DROP | CX_ACTION_FORWARD) ||
        !(f->action & (CX_ACTION_DROP | CX_ACTION_FORWARD)) ||
        dests != !!(f->action & CX_ACTION_FORWARD)) {
        return CX_BAD_PARAM;
    }
    if (!dests) {
        return CX_OK;
    }
    if (c->in_len < CX_FTE_CTX + CX_FTC_DEST + 8) {
        return CX_BAD_INPUT_LEN;
    }
    f->dest_type = cx_get(dest, CX_DEST_TYPE);
    f->dest = cx_get(dest, CX_DEST_ID);
    if (f->dest_type == CX_DEST_TABLE) {
        status = plc_flow_next(s, t->level, f->dest);
    } else if (f->dest_type != CX_DEST_TIR) {
        status = CX_BAD_PARAM;
    } else if (!plc_table_own(&s->st->eth->tir, c, f->dest)) {
        status = CX_BAD_RESOURCE;
    }
    return status;
}

uint8_t plc_set_flow(PeerlaneCX *s, PlcCmd *c)
{
    const uint8_t *ctx = c->in + CX_FTE_CTX;
    PlcFlowTable *t = plc_flow_table(s, cx_get(c->in, CX_FT_ID));
    PlcGroup *g = plc_table_get(&s->st->eth->group, cx_get(ctx, CX_FTC_GROUP));
    uint32_t index = cx_get(c->in, CX_FTE_INDEX);
    uint32_t how = cx_get(c->in, CX_CMD_OP_MOD);
    PlcFlow flow = { .index = index, .group = g }, *at, *new;
    uint8_t status;

    if (plc_flow_other(c) || how > CX_FTE_MODIFY ||
        cx_get(c->in, CX_FTE_MASK) & ~CX_FTE_MODIFY_ALL ||
        plc_match_bad(ctx + CX_FTC_VALUE)) {
        return CX_BAD_PARAM;
    }
    if (!t || !g || g->table != t || index < g->start || index > g->end) {
        return CX_BAD_RESOURCE;
    }
    status = plc_flow_action(s, c, t, &flow);
    if (status) {
        return status;
    }
    at = plc_flow_at(t, index);
    if (how == CX_FTE_MODIFY) {
        if (!at || at->index != index) {
            return CX_BAD_RESOURCE;
        }
        at->action = flow.action;
        at->tag = flow.tag;
        at->dest_type = flow.dest_type;
        at->dest = flow.dest;
        return CX_OK;
    }
    if (at && at->index == index) {
        return CX_BAD_RES_STATE;
    }
    if (s->st->eth->flows >= 1u << PLC_LOG_MAX_FLOWS) {
        return CX_NO_RESOURCES;
    }
    for (unsigned i = 0; i < CX_MATCH_SIZE; i++) {
        flow.value[i] = ctx[CX_FTC_VALUE + i] & g->mask[i];
    }
    s->st->eth->flows++;
    g->flows++;
    new = g_memdup2(&flow, sizeof(flow));
    if (at) {
        QTAILQ_INSERT_BEFORE(at, new, link);
    } else {
        QTAILQ_INSERT_TAIL(&t->flows, new, link);
    }
    return CX_OK;
}

uint8_t plc_delete_flow(PeerlaneCX *s, PlcCmd *c)
{
    PlcFlowTable *t = plc_flow_table(s, cx_get(c->in, CX_FT_ID));
    uint32_t index = cx_get(c->in, CX_FTE_INDEX);
    PlcFlow *f;

    if (plc_flow_other(c)) {
        return CX_BAD_PARAM;
    }
    f = t ? plc_flow_at(t, index) : NULL;
    if (!f || f->index != index) {
        return CX_BAD_RESOURCE;
    }
    f->group->flows--;
    s->st->eth->flows--;
    QTAILQ_REMOVE(&t->flows, f, link);
    g_free(f);
    return CX_OK;
}

uint8_t plc_set_flow_root(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t id = cx_get(c->in, CX_FT_ID);

    if (plc_flow_other(c) || cx_get(c->in, CX_ROOT_UNDERLAY)) {
        return CX_BAD_PARAM;
    }
    switch (cx_get(c->in, CX_CMD_OP_MOD)) {
    case CX_ROOT_SET:
        if (!plc_flow_table(s, id)) {
            return CX_BAD_RESOURCE;
        }
        s->st->eth->root = id;
        return CX_OK;
    case CX_ROOT_CLEAR:
        s->st->eth->root = 0;
        return CX_OK;
    default:
        return CX_BAD_PARAM;
    }
}

/* The fields of a frame, where an entry has them */
static void plc_match_fill(const PlcFrame *f, uint8_t *m)
{
    const uint8_t *l3 = f->data + f->l3, *l4 = f->data + f->l4;
    uint16_t flags = f->version << CX_MATCH_VERSION_SHIFT;

    memset(m, 0, CX_MATCH_SIZE);
    memcpy(m + CX_MATCH_DMAC, f->data, 6);
    memcpy(m + CX_MATCH_SMAC, f->data + 6, 6);
    stw_be_p(m + CX_MATCH_ETHERTYPE, f->type);
    if (f->tagged) {
        bool service = lduw_be_p(f->data + 12) == 0x88a8;

        stw_be_p(m + CX_MATCH_VLAN, f->tci);
        flags |= service ? CX_MATCH_SVLAN : CX_MATCH_CVLAN;
    }
    if (f->version == 4) {
        m[CX_MATCH_TOS] = l3[1];
        m[CX_MATCH_TTL] = l3[8];
        memcpy(m + CX_MATCH_SRC_IP + 12, l3 + 12, 4);
        memcpy(m + CX_MATCH_DST_IP + 12, l3 + 16, 4);
    } else if (f->version == 6) {
        m[CX_MATCH_TOS] = lduw_be_p(l3) >> 4;
        m[CX_MATCH_TTL] = l3[7];
        memcpy(m + CX_MATCH_SRC_IP, l3 + 8, 16);
        memcpy(m + CX_MATCH_DST_IP, l3 + 24, 16);
    }
    if (f->version) {
        m[CX_MATCH_PROTO] = f->proto;
        flags |= f->fragment ? CX_MATCH_FRAG : 0;
    }
    if (f->l4 && f->proto == 6) {
        memcpy(m + CX_MATCH_TCP_SPORT, l4, 4);
        flags |= lduw_be_p(l4 + 12) & 0x1ff;
    } else if (f->l4) {
        memcpy(m + CX_MATCH_UDP_SPORT, l4, 4);
    }
    stw_be_p(m + CX_MATCH_FLAGS, flags);
}

static bool plc_flow_matches(const PlcFlow *f, const uint8_t *m)
{
    for (unsigned i = 0; i < CX_MATCH_SIZE; i++) {
        if ((m[i] & f->group->mask[i]) != f->value[i]) {
            return false;
        }
    }
    return true;
}

PlcTir *plc_flow_find(PeerlaneCX *s, const PlcFrame *frame, uint32_t *tag)
{
    uint32_t id = s->st->eth->root;
    uint8_t m[CX_MATCH_SIZE];
    PlcFlowTable *t;

    *tag = 0;
    plc_match_fill(frame, m);
    /* Each table is of a higher level than the one before: this ends */
    while ((t = plc_flow_table(s, id))) {
        PlcFlow *f;

        QTAILQ_FOREACH(f, &t->flows, link) {
            s->walked += PLC_MATCH_COST;
            if (plc_flow_matches(f, m)) {
                break;
            }
        }
        if (!f) {
            id = t->miss;
            continue;
        }
        if (!(f->action & CX_ACTION_FORWARD)) {
            return NULL;
        }
        *tag = f->tag;
        if (f->dest_type == CX_DEST_TIR) {
            return plc_table_get(&s->st->eth->tir, f->dest);
        }
        id = f->dest;
    }
    return NULL;
}
