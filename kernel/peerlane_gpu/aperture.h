/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: runs of BAR1.
 */
#ifndef _PLN_APERTURE_H
#define _PLN_APERTURE_H

#include "pln_gpu.h"

/**
 * struct pln_holder - a DMA mapping or a pin of a run; a part of what it is for
 * @node: in run->holders, guarded by mem_lock
 * @dev: that does the DMA, or NULL when not known; whoever mapped keeps it
 */
struct pln_holder {
	struct list_head node;
	struct device *dev;
};

/**
 * struct pln_run - a run of BAR1 units that shows pieces of VRAM in a row
 *
 * All is guarded by mem_lock.  Whoever uses the run keeps it in gpu->runs.  Without
 * users it is in gpu->dying_runs, and the reaper frees it when it is idle.
 *
 * @users: VMAs and DMA mappings of the export that has this run
 * @holders: DMA mappings and pins alone: these outlive revocation
 * @fence: with a reference; until it is signaled, an importer that has unmapped
 *	may do DMA
 * @in_hw: the device has the mapping
 * @idle_end: pages below were found idle since the last user went
 * @pieces: with a reference to each buffer, which counts it in nr_runs
 */
struct pln_run {
	struct list_head node;
	struct pln_gpu *gpu;
	u64 bar1;
	u64 size;
	unsigned int users;
	struct list_head holders;
	struct dma_fence *fence;
	bool in_hw;
	u64 idle_end;
	unsigned int nr_pieces;
	struct pln_piece pieces[] __counted_by(nr_pieces);
};

int pln_aperture_init(struct pln_gpu *gpu);
void pln_aperture_fini(struct pln_gpu *gpu);
void pln_aperture_was_reset(struct pln_gpu *gpu);
struct pln_run *pln_run_create(struct pln_gpu *gpu,
			       const struct pln_piece *pieces,
			       unsigned int nr_pieces);
void pln_run_drain(struct pln_run *run);
void pln_run_kill(struct pln_run *run);
bool pln_below_one_switch(struct pln_gpu *gpu, struct pci_dev *peer);
struct pln_run *pln_run_pin(const struct pln_piece *piece,
			    struct pln_holder *holder);
void pln_run_orphan(struct pln_run *run);
void pln_run_unpin(struct pln_run *run, struct pln_holder *holder);
bool pln_runs_reap(struct pln_gpu *gpu);

#endif /* _PLN_APERTURE_H */
