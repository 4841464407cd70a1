/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane ConnectX: work queue entries that change a memory key.
 *
 * All is checked, and the list of pages is in hand, before anything changes.
 */
#include "qemu/osdep.h"
#include "peerlane-cx.h"
#include "trace.h"

#define PLC_UMR_ALIGN           4       /* place and length, in octwords */

/* What of a context can be changed */
static const struct {
    uint64_t mask;
    uint32_t field;
} plc_umr_fields[] = {
    { CX_MASK_LEN, CX_MKC_LENGTH64 },
    { CX_MASK_LEN, CX_MKC_LEN },
    { CX_MASK_PAGE_SIZE, CX_MKC_LOG_PAGE },
    { CX_MASK_START, CX_MKC_START },
    { CX_MASK_PD, CX_MKC_PD },
    { CX_MASK_EN_RINVAL, CX_MKC_EN_RINVAL },
    { CX_MASK_KEY, CX_MKC_KEY },
    { CX_MASK_QPN, CX_MKC_QPN },
    { CX_MASK_LR, CX_MKC_LR },
    { CX_MASK_LW, CX_MKC_LW },
    { CX_MASK_RR, CX_MKC_RR },
    { CX_MASK_RW, CX_MKC_RW },
    { CX_MASK_A, CX_MKC_A },
    { CX_MASK_SMALL_FENCE, CX_MKC_SMALL_FENCE },
    { CX_MASK_FREE, CX_MKC_FREE },
};

/* The list of @bytes, which is in the entry or where that says */
static uint8_t plc_umr_list(PeerlaneCX *s, PlcQp *qp, const PlcWork *w,
                            uint8_t *list, uint32_t bytes)
{
    const uint8_t *seg = w->wqe + CX_UMR_LIST;
    uint32_t end = w->ds * CX_WQE_SEG;
    enum plc_result result;
    PlcSge sge;

    if (w->wqe[CX_UMR_SEG + CX_UMR_FLAGS] & CX_UMR_INLINE) {
        if (end < CX_UMR_LIST + bytes) {
            return CX_SYND_LOCAL_QP;
        }
        memcpy(list, seg, bytes);
        return 0;
    }
    if (end < CX_UMR_LIST + CX_WQE_SEG) {
        return CX_SYND_LOCAL_QP;
    }
    sge = (PlcSge) {
        .len = ldl_be_p(seg + CX_DATA_LEN),
        .key = ldl_be_p(seg + CX_DATA_LKEY),
        .addr = ldq_be_p(seg + CX_DATA_VA),
        .at = -1,
    };
    if (sge.len < bytes) {
        return CX_SYND_LOCAL_LENGTH;
    }
    /* A list that is not there itself is not waited for */
    result = plc_mkey_rw(s, qp, &sge, 1, NULL, 0, list, bytes, PLC_LOCAL_READ);
    return !result ? 0 : result == PLC_FAILED ? CX_SYND_LOCAL_QP :
           CX_SYND_LOCAL_PROTECTION;
}

static uint8_t plc_umr_do(PeerlaneCX *s, PlcQp *qp, const PlcWork *w)
{
    static const PlcCmd driver;
    const uint8_t *umr = w->wqe + CX_UMR_SEG, *ctx = w->wqe + CX_UMR_MKC;
    uint8_t flags = umr[CX_UMR_FLAGS];
    uint64_t mask = ldq_be_p(umr + CX_UMR_MASK), left = mask;
    uint64_t octwords = lduw_be_p(umr + CX_UMR_OCTWORDS);
    uint64_t at = lduw_be_p(umr + CX_UMR_OFFSET_LO) |
                  (uint64_t)ldl_be_p(umr + CX_UMR_OFFSET_HI) << 16;
    PlcMkey *mkey = plc_table_get(&s->st->mkey, w->imm >> 8);
    g_autofree uint8_t *list = NULL;
    uint8_t want[CX_MKC_SIZE], syndrome;

    if (w->ds * CX_WQE_SEG < CX_UMR_LIST ||
        octwords % PLC_UMR_ALIGN || at % PLC_UMR_ALIGN ||
        (at && !(flags & CX_UMR_OFFSET_EN))) {
        return CX_SYND_LOCAL_QP;
    }
    /* Who may not name pages may still name keys */
    if (!qp->umr && (plc_qp_datagrams(qp) || !mkey ||
                     (mkey->mode != CX_MKC_MODE_KLM &&
                      mkey->mode != CX_MKC_MODE_KSM))) {
        return CX_SYND_LOCAL_QP;
    }
    /* Without the right to name any domain a queue pair keeps to its own */
    if (!mkey || !mkey->umr ||
        (qp->st != CX_ST_REG_UMR &&
         (mkey->pd != qp->pd || mask & CX_MASK_PD)) ||
        (!(mask & CX_MASK_KEY) && mkey->key != w->imm) ||
        (flags & CX_UMR_IF_FREE && !mkey->free) ||
        (flags & CX_UMR_IF_NOT_FREE && mkey->free) ||
        (flags & CX_UMR_CHECK_QPN && mkey->qpn != CX_ANY_QPN &&
         mkey->qpn != qp->id) ||
        2 * octwords > mkey->mtts || 2 * at > mkey->mtts - 2 * octwords) {
        return CX_SYND_MW_BIND;
    }
    memcpy(want, mkey->ctx, CX_MKC_SIZE);
    for (unsigned i = 0; i < ARRAY_SIZE(plc_umr_fields); i++) {
        if (mask & plc_umr_fields[i].mask) {
            cx_copy(want, ctx, plc_umr_fields[i].field);
            left &= ~plc_umr_fields[i].mask;
        }
    }
    if (left || plc_mkey_bad(s, &driver, want, mkey->mtts)) {
        return CX_SYND_MW_BIND;
    }
    list = g_malloc(octwords * CX_WQE_SEG);
    s->walked += octwords * CX_WQE_SEG;
    if (octwords) {
        syndrome = plc_umr_list(s, qp, w, list, octwords * CX_WQE_SEG);
        if (syndrome) {
            return syndrome;
        }
        /* Reading it may have reset the function */
        if (s->old) {
            return 0;
        }
    }
    for (uint64_t i = 0; i < 2 * octwords; i++) {
        mkey->mtt[2 * at + i] = ldq_be_p(list + 8 * i);
    }
    mkey->checked |= octwords > 0;
    plc_mkey_set(mkey, want);
    return 0;
}

/* Do the entry at work; returns its syndrome */
uint8_t plc_umr(PeerlaneCX *s, PlcQp *qp, const PlcWork *w)
{
    const uint8_t *umr = w->wqe + CX_UMR_SEG;
    uint8_t syndrome = plc_umr_do(s, qp, w);

    trace_peerlane_cx_umr(plc_name(s), w->imm, ldq_be_p(umr + CX_UMR_MASK),
                          lduw_be_p(umr + CX_UMR_OFFSET_LO) * 2,
                          lduw_be_p(umr + CX_UMR_OCTWORDS) * 2, syndrome);
    return syndrome;
}
