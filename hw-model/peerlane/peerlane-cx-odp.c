/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: page faults.
 *
 * Who meets a page that a key has not asks the driver for it.  A requester then
 * waits, and goes on where it was; a responder has the request sent again, as if
 * it had no receive, and an answer to a READ waits.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"
#include "trace.h"

/* Ask for the page in s->st->absent; false if none will come: it is denied */
bool plc_fault(PeerlaneCX *s, PlcQp *qp, PlcFault *fault)
{
    PlcState *st = s->st;
    PlcEq *eq = plc_eq_of(s, CX_EVENT_PAGE_FAULT);
    uint64_t va = st->absent.addr & ~0xfffull;
    uint64_t bytes = st->absent.addr + st->absent.len - va;
    uint8_t eqe[CX_EQE_SIZE] = { 0 };

    if (!eq || fault->failed) {
        return false;
    }
    if (fault->token) {
        return true;
    }
    if (plc_eq_full(eq)) {
        if (fault == &qp->req.fault) {
            plc_qp_wait(qp, PLC_FAULT_RETRY_NS);
        } else {
            /* Of its own: the requester may wait for something else */
            plc_alarm_set(&qp->fault_alarm, PLC_FAULT_RETRY_NS);
        }
        return true;
    }
    /* 0 is no fault */
    st->faults += st->faults == UINT32_MAX ? 2 : 1;
    fault->token = st->faults;
    trace_peerlane_cx_fault(plc_name(s), qp->id, fault->token, st->absent.key,
                            va, bytes);
    eqe[CX_EQE_SUBTYPE] = CX_PF_MEMORY;
    eqe[CX_EQE_PF_FLAGS] = CX_PF_LAST;
    stl_be_p(eqe + CX_EQE_PF_TOKEN, fault->token);
    stl_be_p(eqe + CX_EQE_PF_PAGES, DIV_ROUND_UP(bytes, 4096) << 12);
    stl_be_p(eqe + CX_EQE_PF_MKEY, st->absent.key);
    stq_be_p(eqe + CX_EQE_PF_VA, va);
    plc_eq_post(s, eq, CX_EVENT_PAGE_FAULT, eqe);
    return true;
}

/* Who has waited may be gone by now, or have other work */
uint8_t plc_page_fault_resume(PeerlaneCX *s, PlcCmd *c)
{
    uint32_t token = cx_get(c->in, CX_RESUME_TOKEN_LO);
    PlcTable *t = &s->st->qp;

    if (cx_get(c->in, CX_RESUME_TOKEN_HI) || !token || token > s->st->faults) {
        return CX_BAD_PARAM;
    }
    for (uint32_t i = t->first; i < t->size; i++) {
        PlcQp *qp = plc_table_get(t, i);
        PlcFault *fault = !qp ? NULL : qp->req.fault.token == token ?
                          &qp->req.fault : qp->resp.fault.token == token ?
                          &qp->resp.fault : NULL;

        if (fault) {
            fault->token = 0;
            fault->failed = cx_get(c->in, CX_RESUME_ERROR);
            plc_qp_schedule(qp);
            break;
        }
    }
    return CX_OK;
}
