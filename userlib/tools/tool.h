/* SPDX-License-Identifier: MIT */
/* The parts of the peerlane tool. */
#ifndef PEERLANE_TOOL_H
#define PEERLANE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status; documented in peerlane(1) */
enum {
	EXIT_OK = 0,
	EXIT_IO = 1,		/* a transfer failed */
	EXIT_USAGE = 2,
	EXIT_NO_GPU = 3,	/* no driver, no GPU, no memory on it, settings */
	EXIT_REFUSED = 4,	/* strict mode refused to fall back */
	EXIT_MISMATCH = 5,	/* data is not what it must be */

	/* topo and doctor, after sysexits(3) */
	EXIT_WRONG = 64,	/* usage */
	EXIT_BAD_RECORD = 65,
	EXIT_NO_INPUT = 66,	/* a record or machine that cannot be read */
	EXIT_NO_OUTPUT = 73,

	/* run, as a shell */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

int cmd_io(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_run(int argc, char **argv);

/* ---- topo.c ---- */
struct facts;
/* This machine, or the record @from: EXIT_OK, or complains. */
int facts_for(const char *from, struct facts **f);

/* ---- fabric.c ---- */
int fabric_stats(bool json, const char *from);

/* ---- util.c ---- */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "64K", "1M", "2G", "4096"; false when it is no such thing. */
bool parse_size(const char *text, uint64_t *out);
/* @bytes of a pattern from its byte @at on, both multiples of 8: every 8 bytes
 * differ, and by @seed. */
void pattern(uint64_t *buf, size_t bytes, uint64_t at, uint64_t seed);
double now_wall(void);
double now_cpu(void);

/* ---- crc.c ---- */
uint32_t crc32c_of(uint32_t crc_so_far, const void *p, size_t n);
/* ---- near.c ---- */
/* The GPU nearest to @file, or complains: its ordinal, and @why it is that. */
bool gpu_near(const char *file, int *ordinal, char *why, size_t size);

/* ---- gpu.c: the CUDA driver, found at run time ---- */
bool gpu_open(int ordinal);
/* The ordinal of the GPU with that PCI address; false: CUDA shows none there. */
bool gpu_at(const char *address, int *ordinal);
/* How many GPUs CUDA shows; false: @why there are none.  Does not complain. */
bool gpu_count(int *count, char *why, size_t size);
bool gpu_address(int ordinal, char *address, size_t size);
/* What CUDA calls it; empty when it does not. */
void gpu_name(int ordinal, char *name, size_t size);
bool gpu_alloc(uint64_t size, uint64_t *ptr);
void gpu_free(uint64_t ptr);
bool gpu_set(uint64_t ptr, unsigned char value, uint64_t n);
bool gpu_put(uint64_t ptr, const void *host, size_t n);
bool gpu_get(void *host, uint64_t ptr, size_t n);
/* By the GPU itself where it can, *@by: "gpu" or "cpu". */
bool gpu_crc32c(uint64_t ptr, uint64_t n, uint32_t *crc, const char **by);

#endif
