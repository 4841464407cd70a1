/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: all that the driver has made.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"

static void plc_tables_init(PlcState *st)
{
    plc_table_init(&st->uctx, 1, 1 << PLC_LOG_MAX_UCTX);
    plc_table_init(&st->umem, 1, 1 << PLC_LOG_MAX_UMEM);
    plc_table_init(&st->pd, 1, 1 << PLC_LOG_MAX_PD);
    plc_table_init(&st->uar, PLC_FIRST_UAR, PLC_MAX_UAR);
    plc_table_init(&st->xrcd, 1, 1 << PLC_LOG_MAX_XRCD);
    plc_table_init(&st->td, 1, 1 << PLC_LOG_MAX_TD);
    plc_table_init(&st->qc, 1, PLC_MAX_QC);
    plc_table_init(&st->eq, 1, 1 << PLC_LOG_MAX_EQ);
    plc_table_init(&st->cq, 1, 1 << PLC_LOG_MAX_CQ);
    /* Not 1: the key 0x100 ends a list of receive */
    plc_table_init(&st->mkey, 16, 1 << PLC_LOG_MAX_MKEY);
    plc_table_init(&st->srq, 1, 1 << PLC_LOG_MAX_SRQ);
    plc_table_init(&st->qp, PLC_FIRST_QPN, 1 << PLC_LOG_MAX_QP);
    st->eth = plc_eth_new();
    QTAILQ_INIT(&st->ready);
    QTAILQ_INIT(&st->arms);
    QTAILQ_INIT(&st->rx);
}

static void plc_tables_free(PlcState *st)
{
    plc_eth_free(st->eth);
    plc_net_free(st);
    plc_free_all(&st->qp, PlcQp, plc_qp_free);
    plc_free_all(&st->srq, PlcSrq, plc_srq_free);
    plc_free_all(&st->mkey, PlcMkey, plc_mkey_free);
    plc_free_all(&st->cq, PlcCq, plc_cq_free);
    plc_free_all(&st->eq, PlcEq, plc_eq_free);
    plc_free_all(&st->qc, PlcQc, g_free);
    /* After the queues that are in it */
    plc_free_all(&st->umem, PlcUmem, plc_umem_free);
    plc_table_free(&st->uctx);
    plc_table_free(&st->umem);
    plc_table_free(&st->pd);
    plc_table_free(&st->uar);
    plc_table_free(&st->xrcd);
    plc_table_free(&st->td);
    plc_table_free(&st->qc);
    plc_table_free(&st->eq);
    plc_table_free(&st->cq);
    plc_table_free(&st->mkey);
    plc_table_free(&st->srq);
    plc_table_free(&st->qp);
}

PlcState *plc_state_new(void)
{
    PlcState *st = g_new0(PlcState, 1);

    st->log_max_qp = PLC_LOG_MAX_QP;
    plc_tables_init(st);
    return st;
}

/* What TEARDOWN_HCA does: pages stay with the device until they are taken */
void plc_state_clear(PlcState *st)
{
    plc_tables_free(st);
    st->mtts = 0;
    st->gsi = NULL;
    plc_tables_init(st);
}

void plc_state_free(PlcState *st)
{
    plc_tables_free(st);
    g_free(st);
}
