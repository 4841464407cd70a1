/* SPDX-License-Identifier: MIT */
/*
 * A GPU driver inside the test process: the four functions of io.c on plain
 * memory, with the rules of <linux/peerlane_gpu.h>.
 */
#ifndef PEERLANE_FAKE_GPU_H
#define PEERLANE_FAKE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#define FAKE_PAGE	0x10000u
#define FAKE_MAX_JOBS	64	/* of one open file, not waited for */

enum fake_call {
	FAKE_OPEN,
	FAKE_QUERY,
	FAKE_ALLOC,
	FAKE_FREE,
	FAKE_EXPORT,
	FAKE_IMPORT,
	FAKE_SUBMIT,
	FAKE_WAIT,
	FAKE_MMAP,
	FAKE_NR_CALLS
};

struct fake_config {
	unsigned int gpus;
	uint64_t vram;
	unsigned int queues;
	bool coherent;
	bool dmabuf;
	bool no_time;		/* a driver that does not tell it */
	bool real_time;		/* the GPUs' clock is the CPU's */
	bool late_writes;	/* see fake_late_write() */
	bool manual;		/* jobs run only in a wait, or in fake_step() */
	uint64_t memlock;	/* host memory of one job, in bytes; 0: any */
	int open_errno;		/* of every open, 0: none */
	uint32_t abi_version;	/* 0: the right one */
};

void fake_setup(const struct fake_config *config);
/* The @nth call of this kind from now on, from 1, fails once */
void fake_fail(enum fake_call call, unsigned int nth, int error);
unsigned int fake_calls(enum fake_call call);
/* What fake_fail() has asked for has not come yet */
bool fake_will_fail(enum fake_call call);
/* The next @n jobs end with this status and device error code */
void fake_bad_jobs(unsigned int n, int status, uint32_t code);
/* Ioctls of this kind that begin from now on stay in the driver, until they are let go */
void fake_hold(enum fake_call call, bool on);
unsigned int fake_held(enum fake_call call);
/*
 * Jobs that do not end, in any wait, until they are let go.  Memory that is freed
 * under them goes when they have ended.
 */
void fake_stick(bool stick);
/* The GPUs' clock goes on; else, without real_time, a nanosecond with each look at it */
void fake_pass_time(uint64_t ns);
/* A peer has written a byte, which is there before the next job of that GPU */
void fake_late_write(unsigned int gpu, uint64_t at, uint8_t byte);
/* Run up to @n jobs of a queue now */
void fake_step(unsigned int gpu, unsigned int queue, unsigned int n);
void fake_reset(unsigned int gpu);	/* memory is lost */
void fake_remove(unsigned int gpu);
/* What has not been given back */
unsigned int fake_files(void);
unsigned int fake_handles(void);
unsigned int fake_jobs(void);
/* What was still there when a file was closed, and had to be cleared away */
unsigned int fake_leaks(void);
uint64_t fake_vram_used(unsigned int gpu);
/* Where in VRAM an exported fd begins, ~0 when it is none */
uint64_t fake_export_offset(int fd);
uint64_t fake_export_size(int fd);
uint8_t *fake_vram(unsigned int gpu);

#endif /* PEERLANE_FAKE_GPU_H */
