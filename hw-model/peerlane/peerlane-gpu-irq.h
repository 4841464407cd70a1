/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: interrupts, and faults that are armed for a number of times.
 */
#ifndef HW_PEERLANE_GPU_IRQ_H
#define HW_PEERLANE_GPU_IRQ_H

typedef struct PeerlaneGPU PeerlaneGPU;

/* With the BQL */
void pln_raise_irq(PCIDevice *pdev, unsigned vector);
bool pln_inject_fault(PeerlaneGPU *s, uint32_t *fault, const char *name);

#endif /* HW_PEERLANE_GPU_IRQ_H */
