/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane switch: a refused request is logged by the port that refused it, and
 * told to the root complex, as its AER registers say.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/main-loop.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "peerlane-switch.h"

/* As a memory request stands in the header log, DWORD by DWORD */
static void pls_header(const PlsRefused *e, uint16_t id, uint32_t *header)
{
    bool wide = e->addr >> 32;
    uint32_t dw[4] = {
        e->is_write << 30 | wide << 29 |
        (MIN(DIV_ROUND_UP((e->addr & 3) + e->len, 4), 1024) & 0x3ff),
        id << 16 | 0xff,
        wide ? e->addr >> 32 : e->addr & ~3,
        wide ? e->addr & ~3 : 0,
    };

    /* QEMU writes them as big-endian; a register begins at its high end */
    for (unsigned i = 0; i < ARRAY_SIZE(dw); i++) {
        header[i] = bswap32(dw[i]);
    }
}

/* The completion of a read: Completer Abort or Unsupported Request */
static void pls_complete(PCIDevice *port, const PlsRefused *e)
{
    uint16_t received = PCI_STATUS_REC_MASTER_ABORT;

    if (e->violation) {
        pci_word_test_and_set_mask(port->config + PCI_SEC_STATUS,
                                   PCI_STATUS_SIG_TARGET_ABORT);
        received = PCI_STATUS_REC_TARGET_ABORT;
    }
    pci_word_test_and_set_mask(e->requester->config + PCI_STATUS, received);
}

static void pls_log(void *opaque)
{
    PCIDevice *port = opaque;
    PCIEAERErr err = { };
    PlsRefused e;

    WITH_QEMU_LOCK_GUARD(&pls_lock) {
        e = *pls_refused(port);
        pls_refused(port)->requester = NULL;
    }
    if (DEVICE(port)->realized && DEVICE(e.requester)->realized) {
        err.status = e.violation ? PCI_ERR_UNC_ACSV : PCI_ERR_UNC_UNSUP;
        err.source_id = pci_get_bdf(port);
        /* The requester of a read has the completion to know it by */
        err.flags = PCIE_AER_ERR_HEADER_VALID |
                    (e.is_write ? 0 : PCIE_AER_ERR_MAYBE_ADVISORY);
        pls_header(&e, pci_get_bdf(e.requester), err.header);
        pcie_aer_inject_error(port, &err);
        if (!e.is_write) {
            pls_complete(port, &e);
        }
    }
    object_unref(OBJECT(e.requester));
    object_unref(OBJECT(port));
}

/*
 * @port has refused a request.  Registers and messages are the main loop's, so
 * that logs it; of more until then, the first stands for all.  Within pls_lock.
 */
void pls_log_refused(PCIDevice *port, PCIDevice *requester, bool violation,
                     hwaddr addr, hwaddr len, bool is_write)
{
    PlsRefused *refused = pls_refused(port);

    if (refused->requester) {
        return;
    }
    *refused = (PlsRefused) {
        .requester = PCI_DEVICE(object_ref(OBJECT(requester))),
        .violation = violation,
        .is_write = is_write,
        .addr = addr,
        .len = len,
    };
    object_ref(OBJECT(port));
    aio_bh_schedule_oneshot(qemu_get_aio_context(), pls_log, port);
}
