/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: interrupts, and faults that are armed for a number of times.
 */
#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "peerlane-gpu.h"
#include "peerlane-gpu-irq.h"
#include "trace.h"

/* A fault that is armed for some more times happens now */
bool pln_inject_fault(PeerlaneGPU *s, uint32_t *fault, const char *name)
{
    if (!pla_fault_take(fault)) {
        return false;
    }
    pln_count(s, PLN_CNT_FAULTS_INJECTED, 1);
    trace_peerlane_gpu_fault(pln_name(s), name, qatomic_read(fault));
    return true;
}

void pln_raise_irq(PCIDevice *pdev, unsigned vector)
{
    PeerlaneGPU *s = PEERLANE_GPU(pdev);

    if (!msix_enabled(pdev)) {
        return;
    }
    if (pln_inject_fault(s, &s->fault_lost_irq, "fault-lost-irq")) {
        trace_peerlane_gpu_irq_lost(pln_name(s), vector);
        return;
    }
    pln_count(s, PLN_CNT_INTERRUPTS, 1);
    trace_peerlane_gpu_irq(pln_name(s), vector);
    msix_notify(pdev, vector);
}
