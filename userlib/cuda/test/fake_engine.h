/* SPDX-License-Identifier: MIT */
/* What the two halves of the driver in the process share */
#ifndef PEERLANE_FAKE_ENGINE_H
#define PEERLANE_FAKE_ENGINE_H

#include "../internal.h"

#define MAX_GPUS	4
#define MAX_HANDLES	512

struct fjob {
	uint64_t id;
	unsigned int queue;
	bool done;
	int status;
	uint32_t error;
	uint64_t result;
	uint64_t time;			/* of its end */
	unsigned int nr;
	struct pln_gpu_op *ops;
	struct fjob *next;
};

struct fhandle {
	bool used;
	uint64_t offset;
	uint64_t size;
	bool kept;			/* freed, for the jobs that use it */
};

struct ffile {
	unsigned int gpu;
	uint64_t reset_count;
	struct fhandle handle[MAX_HANDLES];
	struct fjob *jobs;		/* oldest first */
	unsigned int nr_jobs;
};

struct fgpu {
	int memfd;
	uint8_t *vram;
	uint8_t *used;			/* one byte per page */
	uint64_t reset_count;
	bool removed;
	bool late;			/* a byte of a peer waits */
	uint64_t late_at;
	uint8_t late_byte;
};

uint64_t fake_time(void);		/* the GPUs' clock */

extern struct fgpu fake_gpus[MAX_GPUS];
extern pthread_cond_t fake_ran;		/* some job has run */

/* What @handle, of one open file, is; or NULL */
struct fhandle *fake_handle(struct ffile *f, uint32_t handle);
/* 0, or the errno that the driver refuses the operation with */
int fake_check_op(struct ffile *f, const struct pln_gpu_op *op);
void fake_run_job(struct ffile *f, struct fjob *job);

#endif
