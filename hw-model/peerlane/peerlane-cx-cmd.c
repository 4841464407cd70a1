/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: the command interface.
 *
 * A command is read whole, checked against the table below, done, and
 * answered.  What does it touches no memory of the driver but its queues.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "peerlane-cx-eth.h"
#include "trace.h"

enum {
    PLC_ANYTIME,                /* even before ENABLE_HCA */
    PLC_ENABLED,
    PLC_UP,                     /* after INIT_HCA */
};

typedef struct PlcCommand {
    uint16_t opcode;
    uint8_t when;
    uint16_t in_len;            /* at least */
    uint16_t out_len;           /* at least */
    PlcHandler *run;
    const char *name;
    bool driver;                /* it is for no user */
    bool eth;                   /* of a port of Ethernet alone */
} PlcCommand;

#define PLC_COMMAND(op, when, in, out, run) \
    { CX_OP_##op, when, in, out, run, #op }
#define PLC_DRIVERS(op, when, in, out, run) \
    { CX_OP_##op, when, in, out, run, #op, true }
#define PLC_ETH(op, in, out, run) \
    { CX_OP_##op, PLC_UP, in, out, run, #op, false, true }
#define PLC_ETH_DRIVERS(op, in, out, run) \
    { CX_OP_##op, PLC_UP, in, out, run, #op, true, true }

static const PlcCommand plc_commands[] = {
    PLC_DRIVERS(ENABLE_HCA, PLC_ANYTIME, 0x10, 0x0c, plc_enable_hca),
    PLC_DRIVERS(DISABLE_HCA, PLC_ENABLED, 0x10, 0x08, plc_disable_hca),
    PLC_DRIVERS(INIT_HCA, PLC_ENABLED, 0x10, 0x08, plc_init_hca),
    PLC_DRIVERS(TEARDOWN_HCA, PLC_ENABLED, 0x10, 0x08, plc_teardown_hca),
    PLC_COMMAND(QUERY_ISSI, PLC_ENABLED, 0x10, 0x70, plc_query_issi),
    PLC_DRIVERS(SET_ISSI, PLC_ENABLED, 0x10, 0x08, plc_set_issi),
    PLC_DRIVERS(QUERY_PAGES, PLC_ENABLED, 0x10, 0x10, plc_query_pages),
    PLC_DRIVERS(MANAGE_PAGES, PLC_ENABLED, 0x10, 0x10, plc_manage_pages),
    PLC_COMMAND(NOP, PLC_ENABLED, 0x08, 0x08, plc_nop),

    PLC_COMMAND(QUERY_HCA_CAP, PLC_ENABLED, 0x10, 0x10, plc_query_hca_cap),
    PLC_DRIVERS(SET_HCA_CAP, PLC_ENABLED, 0x1010, 0x08, plc_set_hca_cap),
    PLC_COMMAND(QUERY_ADAPTER, PLC_UP, 0x08, 0x110, plc_query_adapter),
    PLC_COMMAND(QUERY_SPECIAL_CONTEXTS, PLC_UP, 0x08, 0x10,
                plc_query_special_contexts),
    PLC_DRIVERS(ACCESS_REG, PLC_ENABLED, 0x10, 0x10, plc_access_reg),
    PLC_COMMAND(QUERY_HCA_VPORT_CONTEXT, PLC_UP, 0x10, 0x210,
                plc_query_vport_context),
    PLC_COMMAND(QUERY_HCA_VPORT_GID, PLC_UP, 0x10, 0x20, plc_query_vport_gid),
    PLC_COMMAND(QUERY_HCA_VPORT_PKEY, PLC_UP, 0x10, 0x14,
                plc_query_vport_pkey),
    PLC_COMMAND(QUERY_VPORT_COUNTER, PLC_UP, 0x20, 0x210,
                plc_query_vport_counter),

    PLC_DRIVERS(CREATE_UCTX, PLC_UP, 0x40, 0x10, plc_create_uctx),
    PLC_DRIVERS(DESTROY_UCTX, PLC_UP, 0x10, 0x08, plc_destroy_uctx),
    PLC_COMMAND(CREATE_UMEM, PLC_UP, CX_UMEM_MTT, 0x0c, plc_create_umem),
    PLC_COMMAND(DESTROY_UMEM, PLC_UP, 0x0c, 0x08, plc_destroy_umem),
    PLC_COMMAND(ALLOC_PD, PLC_UP, 0x08, 0x0c, plc_alloc_pd),
    PLC_COMMAND(DEALLOC_PD, PLC_UP, 0x0c, 0x08, plc_dealloc_pd),
    PLC_COMMAND(ALLOC_UAR, PLC_UP, 0x08, 0x0c, plc_alloc_uar),
    PLC_COMMAND(DEALLOC_UAR, PLC_UP, 0x0c, 0x08, plc_dealloc_uar),
    PLC_COMMAND(ALLOC_XRCD, PLC_UP, 0x08, 0x0c, plc_alloc_xrcd),
    PLC_COMMAND(DEALLOC_XRCD, PLC_UP, 0x0c, 0x08, plc_dealloc_xrcd),
    PLC_COMMAND(ALLOC_TRANSPORT_DOMAIN, PLC_UP, 0x08, 0x0c, plc_alloc_td),
    PLC_COMMAND(DEALLOC_TRANSPORT_DOMAIN, PLC_UP, 0x0c, 0x08, plc_dealloc_td),
    PLC_COMMAND(ALLOC_Q_COUNTER, PLC_UP, 0x08, 0x0c, plc_alloc_qc),
    PLC_COMMAND(DEALLOC_Q_COUNTER, PLC_UP, 0x0c, 0x08, plc_dealloc_qc),
    PLC_COMMAND(QUERY_Q_COUNTER, PLC_UP, 0x20, 0x100, plc_query_qc),

    PLC_COMMAND(CREATE_MKEY, PLC_UP, CX_CREATE_PAS, 0x0c, plc_create_mkey),
    PLC_COMMAND(DESTROY_MKEY, PLC_UP, 0x0c, 0x08, plc_destroy_mkey),
    PLC_COMMAND(QUERY_MKEY, PLC_UP, 0x0c, 0x50, plc_query_mkey),
    PLC_DRIVERS(PAGE_FAULT_RESUME, PLC_UP, 0x10, 0x08, plc_page_fault_resume),
    PLC_DRIVERS(CREATE_EQ, PLC_UP, CX_CREATE_PAS, 0x0c, plc_create_eq),
    PLC_DRIVERS(DESTROY_EQ, PLC_UP, 0x0c, 0x08, plc_destroy_eq),
    PLC_DRIVERS(QUERY_EQ, PLC_UP, 0x0c, 0x50, plc_query_eq),
    PLC_COMMAND(CREATE_CQ, PLC_UP, CX_CREATE_PAS, 0x0c, plc_create_cq),
    PLC_COMMAND(DESTROY_CQ, PLC_UP, 0x0c, 0x08, plc_destroy_cq),
    PLC_COMMAND(QUERY_CQ, PLC_UP, 0x0c, 0x50, plc_query_cq),
    PLC_COMMAND(MODIFY_CQ, PLC_UP, CX_CREATE_PAS, 0x08, plc_modify_cq),
    PLC_COMMAND(CREATE_XRC_SRQ, PLC_UP, CX_CREATE_PAS, 0x0c,
                plc_create_xrc_srq),
    PLC_COMMAND(DESTROY_XRC_SRQ, PLC_UP, 0x0c, 0x08, plc_destroy_srq),
    PLC_COMMAND(QUERY_XRC_SRQ, PLC_UP, 0x0c, 0x50, plc_query_srq),
    PLC_COMMAND(ARM_XRC_SRQ, PLC_UP, 0x10, 0x08, plc_arm_xrc_srq),
    PLC_COMMAND(CREATE_RMP, PLC_UP, CX_CREATE_PAS, 0x0c, plc_create_rmp),
    PLC_COMMAND(MODIFY_RMP, PLC_UP, 0x110, 0x08, plc_modify_rmp),
    PLC_COMMAND(DESTROY_RMP, PLC_UP, 0x0c, 0x08, plc_destroy_srq),
    PLC_COMMAND(QUERY_RMP, PLC_UP, 0x0c, 0x110, plc_query_srq),

    PLC_COMMAND(CREATE_QP, PLC_UP, CX_CREATE_PAS, 0x0c, plc_create_qp),
    PLC_COMMAND(DESTROY_QP, PLC_UP, 0x0c, 0x08, plc_destroy_qp),
    PLC_COMMAND(QUERY_QP, PLC_UP, 0x0c, 0x100, plc_query_qp),
    PLC_COMMAND(RST2INIT_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(INIT2INIT_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(INIT2RTR_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(RTR2RTS_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(RTS2RTS_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(SQERR2RTS_QP, PLC_UP, 0x100, 0x08, plc_modify_qp),
    PLC_COMMAND(2ERR_QP, PLC_UP, 0x0c, 0x08, plc_modify_qp),
    PLC_COMMAND(2RST_QP, PLC_UP, 0x0c, 0x08, plc_modify_qp),

    PLC_ETH_DRIVERS(QUERY_VPORT_STATE, 0x10, 0x10, plc_query_vport_state),
    PLC_ETH_DRIVERS(QUERY_NIC_VPORT_CONTEXT, 0x10, 0x110, plc_query_nic_vport),
    PLC_ETH_DRIVERS(MODIFY_NIC_VPORT_CONTEXT, 0x200, 0x08,
                    plc_modify_nic_vport),
    PLC_ETH_DRIVERS(QUERY_ROCE_ADDRESS, 0x10, 0x30, plc_query_roce_address),
    PLC_ETH_DRIVERS(SET_ROCE_ADDRESS, 0x30, 0x08, plc_set_roce_address),
    PLC_ETH(QUERY_CONG_STATISTICS, 0x10, 0x110, plc_query_cong_statistics),
    PLC_ETH(CREATE_SQ, CX_ETH_PAS, 0x0c, plc_create_sq),
    PLC_ETH(MODIFY_SQ, CX_ETH_PAS, 0x08, plc_modify_sq),
    PLC_ETH(DESTROY_SQ, 0x0c, 0x08, plc_destroy_sq),
    PLC_ETH(QUERY_SQ, 0x0c, 0x110, plc_query_sq),
    PLC_ETH(CREATE_RQ, CX_ETH_PAS, 0x0c, plc_create_rq),
    PLC_ETH(MODIFY_RQ, CX_ETH_PAS, 0x08, plc_modify_rq),
    PLC_ETH(DESTROY_RQ, 0x0c, 0x08, plc_destroy_rq),
    PLC_ETH(QUERY_RQ, 0x0c, 0x110, plc_query_rq),
    PLC_ETH(CREATE_RQT, CX_ETH_PAS, 0x0c, plc_create_rqt),
    PLC_ETH(MODIFY_RQT, CX_ETH_PAS, 0x08, plc_modify_rqt),
    PLC_ETH(DESTROY_RQT, 0x0c, 0x08, plc_destroy_rqt),
    PLC_ETH(QUERY_RQT, 0x0c, 0x110, plc_query_rqt),
    PLC_ETH(CREATE_TIR, CX_ETH_PAS, 0x0c, plc_create_tir),
    PLC_ETH(MODIFY_TIR, CX_ETH_PAS, 0x08, plc_modify_tir),
    PLC_ETH(DESTROY_TIR, 0x0c, 0x08, plc_destroy_tir),
    PLC_ETH(QUERY_TIR, 0x0c, 0x110, plc_query_tir),
    PLC_ETH(CREATE_TIS, 0xc0, 0x0c, plc_create_tis),
    PLC_ETH(MODIFY_TIS, 0xc0, 0x08, plc_modify_tis),
    PLC_ETH(DESTROY_TIS, 0x0c, 0x08, plc_destroy_tis),
    PLC_ETH(QUERY_TIS, 0x0c, 0xc0, plc_query_tis),
    PLC_ETH_DRIVERS(CREATE_FLOW_TABLE, 0x40, 0x10, plc_create_flow_table),
    PLC_ETH_DRIVERS(MODIFY_FLOW_TABLE, 0x40, 0x08, plc_modify_flow_table),
    PLC_ETH_DRIVERS(DESTROY_FLOW_TABLE, 0x18, 0x08, plc_destroy_flow_table),
    PLC_ETH_DRIVERS(SET_FLOW_TABLE_ROOT, 0x20, 0x08, plc_set_flow_root),
    PLC_ETH_DRIVERS(CREATE_FLOW_GROUP, CX_FG_MASK + CX_MATCH_ALL, 0x10,
                    plc_create_flow_group),
    PLC_ETH_DRIVERS(DESTROY_FLOW_GROUP, 0x20, 0x08, plc_destroy_flow_group),
    PLC_ETH_DRIVERS(SET_FLOW_TABLE_ENTRY, CX_FTE_CTX + CX_FTC_DEST, 0x08,
                    plc_set_flow),
    PLC_ETH_DRIVERS(DELETE_FLOW_TABLE_ENTRY, 0x24, 0x08, plc_delete_flow),
};

static const PlcCommand *plc_command(uint32_t opcode)
{
    for (unsigned i = 0; i < ARRAY_SIZE(plc_commands); i++) {
        if (plc_commands[i].opcode == opcode) {
            return &plc_commands[i];
        }
    }
    return NULL;
}

static uint8_t plc_cmd_check(PeerlaneCX *s, const PlcCommand *cmd, PlcCmd *c)
{
    if (!cmd || (cmd->eth && !s->ethernet)) {
        return CX_BAD_OP;
    }
    if ((cmd->when >= PLC_ENABLED && !s->st->enabled) ||
        (cmd->when == PLC_UP && !s->st->up)) {
        return CX_BAD_SYS_STATE;
    }
    if (c->uid && c->uid != CX_UID_ALL) {
        if (cmd->driver) {
            return CX_BAD_PARAM;
        }
        if (!plc_table_get(&s->st->uctx, c->uid)) {
            return CX_BAD_RESOURCE;
        }
    }
    if (c->in_len < cmd->in_len) {
        return CX_BAD_INPUT_LEN;
    }
    if (c->out_len < cmd->out_len) {
        return CX_BAD_OUTPUT_LEN;
    }
    return CX_OK;
}

static void plc_cmd_do(PeerlaneCX *s, unsigned slot, PlcCmd *c)
{
    const PlcCommand *cmd = plc_command(cx_get(c->in, CX_CMD_OPCODE));
    uint8_t status;

    c->uid = cx_get(c->in, CX_CMD_UID);
    status = plc_cmd_check(s, cmd, c);
    trace_peerlane_cx_command(plc_name(s), slot, cmd ? cmd->name : "unknown",
                              cx_get(c->in, CX_CMD_OP_MOD), c->in_len,
                              c->out_len);
    if (!status) {
        status = cmd->run(s, c);
    }
    plc_count(s, PLC_CNT_COMMANDS, 1);
    if (status) {
        /* The model's own syndrome: the opcode, and the status again */
        plc_count(s, PLC_CNT_COMMAND_ERRORS, 1);
        memset(c->out, 0, c->out_len);
        c->syndrome = cx_get(c->in, CX_CMD_OPCODE) << 8 | status;
        cx_set(c->out, CX_CMD_SYNDROME, c->syndrome);
    }
    cx_set(c->out, CX_CMD_STATUS, status);
}

/* The rest of the input, from a chain of mailboxes */
static uint8_t plc_cmd_fetch(PeerlaneCX *s, const uint8_t *slot, uint8_t *in,
                             uint32_t len)
{
    uint64_t at = ldq_be_p(slot + CX_SLOT_IN_PTR);
    uint8_t box[CX_MBOX_SIZE];

    for (uint32_t n = 0, block = 0; n < len; n += CX_MBOX_DATA, block++) {
        if (!at || at % CX_MBOX_ALIGN) {
            return CX_DELIVERY_IN_ALIGN;
        }
        if (!plc_read(s, at, box, sizeof(box))) {
            return CX_DELIVERY_FW;
        }
        if (box[CX_MBOX_TOKEN] != slot[CX_SLOT_TOKEN]) {
            return CX_DELIVERY_TOKEN;
        }
        if (ldl_be_p(box + CX_MBOX_NUMBER) != block) {
            return CX_DELIVERY_BLOCK_NUMBER;
        }
        memcpy(in + n, box, MIN(CX_MBOX_DATA, len - n));
        at = ldq_be_p(box + CX_MBOX_NEXT);
    }
    return CX_DELIVERY_OK;
}

/*
 * The chain for the answer is looked at before the command is done: what the
 * driver could not learn of does not happen.
 */
static uint8_t plc_cmd_chain(PeerlaneCX *s, const uint8_t *slot, uint64_t *box,
                             uint32_t len)
{
    uint64_t at = ldq_be_p(slot + CX_SLOT_OUT_PTR);
    uint8_t next[8];

    for (uint32_t n = 0; n < len; n += CX_MBOX_DATA) {
        if (!at || at % CX_MBOX_ALIGN) {
            return CX_DELIVERY_OUT_ALIGN;
        }
        if (!plc_read(s, at + CX_MBOX_NEXT, next, sizeof(next))) {
            return CX_DELIVERY_FW;
        }
        *box++ = at;
        at = ldq_be_p(next);
    }
    return CX_DELIVERY_OK;
}

static bool plc_cmd_store(PeerlaneCX *s, const uint64_t *box,
                          const uint8_t *out, uint32_t len)
{
    for (uint32_t n = 0; n < len; n += CX_MBOX_DATA) {
        if (!plc_write(s, *box++, out + n, MIN(CX_MBOX_DATA, len - n))) {
            return false;
        }
    }
    return true;
}

static uint8_t plc_cmd_deliver(PeerlaneCX *s, unsigned n, uint8_t *slot)
{
    uint32_t in_len = ldl_be_p(slot + CX_SLOT_IN_LEN);
    uint32_t out_len = ldl_be_p(slot + CX_SLOT_OUT_LEN);
    uint32_t in_rest = MAX(in_len, CX_SLOT_INLINE) - CX_SLOT_INLINE;
    uint32_t out_rest = MAX(out_len, CX_SLOT_INLINE) - CX_SLOT_INLINE;
    g_autofree uint8_t *in = NULL;
    g_autofree uint8_t *out = NULL;
    g_autofree uint64_t *chain = NULL;
    PlcCmd c = { .in_len = in_len, .out_len = out_len };
    uint8_t result;

    if (slot[CX_SLOT_TYPE] != CX_SLOT_TYPE_PCI) {
        return CX_DELIVERY_DESCRIPTOR;
    }
    if (in_len < 8 || in_len > PLC_CMD_MAX_IN) {
        return CX_DELIVERY_IN_LENGTH;
    }
    if (out_len < 8 || out_len > PLC_CMD_MAX_OUT) {
        return CX_DELIVERY_OUT_LENGTH;
    }
    in = g_malloc0(CX_SLOT_INLINE + in_rest);
    out = g_malloc0(CX_SLOT_INLINE + out_rest);
    chain = g_new(uint64_t, DIV_ROUND_UP(out_rest, CX_MBOX_DATA));
    memcpy(in, slot + CX_SLOT_IN, CX_SLOT_INLINE);
    result = plc_cmd_fetch(s, slot, in + CX_SLOT_INLINE, in_rest);
    if (!result) {
        result = plc_cmd_chain(s, slot, chain, out_rest);
    }
    if (result) {
        return result;
    }
    c.in = in;
    c.out = out;
    plc_cmd_do(s, n, &c);
    memcpy(slot + CX_SLOT_OUT, out, CX_SLOT_INLINE);
    plc_cmd_store(s, chain, out + CX_SLOT_INLINE, out_rest);
    return CX_DELIVERY_OK;
}

void plc_cmd_run(PeerlaneCX *s, unsigned n)
{
    uint64_t at = s->cmdq + n * CX_SLOT_SIZE;
    uint8_t slot[CX_SLOT_SIZE], eqe[CX_EQE_SIZE] = { 0 };
    uint8_t result;
    PlcEq *eq;
    bool events;

    if (!s->cmdq || !plc_read(s, at, slot, sizeof(slot))) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: no command in slot %u\n",
                      plc_name(s), n);
        return;
    }
    if (!(slot[CX_SLOT_STATUS] & CX_SLOT_OWNER)) {
        qemu_log_mask(LOG_GUEST_ERROR, "%s: slot %u is the driver's\n",
                      plc_name(s), n);
        return;
    }
    /* Who makes the queue for such events waits for that without one */
    events = plc_eq_of(s, CX_EVENT_COMMAND);
    result = plc_cmd_deliver(s, n, slot);
    trace_peerlane_cx_command_done(plc_name(s), n, result,
                                   slot[CX_SLOT_OUT],
                                   ldl_be_p(slot + CX_SLOT_OUT + 4));
    if (!plc_write(s, at + CX_SLOT_OUT, slot + CX_SLOT_OUT, CX_SLOT_INLINE)) {
        return;
    }
    /* The owner is seen after the answer */
    smp_wmb();
    slot[CX_SLOT_STATUS] = result << 1;
    if (!plc_write(s, at + CX_SLOT_STATUS, slot + CX_SLOT_STATUS, 1)) {
        return;
    }
    eq = plc_eq_of(s, CX_EVENT_COMMAND);
    if (events && eq) {
        stl_be_p(eqe + CX_EQE_DATA, 1u << n);
        plc_eq_post(s, eq, CX_EVENT_COMMAND, eqe);
    }
}
