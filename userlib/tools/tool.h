/* SPDX-License-Identifier: MIT */
/* The parts of the peerlane tool. */
#ifndef PEERLANE_TOOL_H
#define PEERLANE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "exit_status.h"

/*
 * An option of a command.  getopt_long(), --help, the manual page and
 * completion are made from it.
 */
struct opt {
	int id;			/* what next_option() returns, from 1 */
	const char *name;	/* without the dashes; at the end of a table NULL */
	const char *arg;	/* its value; FILE, DIR, NIC and ID are completed */
	const char *help;	/* a phrase */
	const char *more;	/* sentences that only the manual page has */
	const char *words;	/* values that completion offers */
	const char *alias;	/* another name */
	const char *only;	/* the parts that take it, "write, copy"; NULL: all,
				 * which are first in the table */
	char letter;		/* of a short option */
};
#define OPT_MAX		32	/* in a table */
#define OPT_MAX_NAME	40	/* with its value */

struct command {
	const char *name;
	const char *what;	/* in one line */
	const char *parts;	/* words that follow the name: "read write" */
	const char *operands;	/* completion: FILE, COMMAND, or NULL */
	const char *usage;	/* in --help before the options */
	const struct opt *options;
	const char *after;	/* in --help after the options */
};

int cmd_io(int argc, char **argv);
int cmd_copy(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_perf(int argc, char **argv);
int cmd_run(int argc, char **argv);

extern const struct command io_command, copy_command, stats_command,
	topo_command, doctor_command, perf_command, run_command;

/* ---- options.c ---- */
/*
 * The id of the next option, with optarg; -1 at the end; '?' for a mistake, about
 * which it has complained.  --help prints and exits.  Sets a bit for each row in
 * *@seen, which may be NULL.
 */
int next_option(const struct command *c, int argc, char **argv, uint32_t *seen);
/* Complains about an option that @part of the command does not take. */
bool options_are_for(const struct command *c, uint32_t seen, const char *part);
/* The text of --help */
void print_help(const struct command *c);
/* After a complaint: where the usage is */
void say_usage(const struct command *c);
/* Prints words and a newline; from @column, later lines from @indent on. */
void fold(int column, int indent, const char *text);

/* ---- topo/topo.c ---- */
struct facts;
/* This machine, or the record @from: EXIT_OK, or complains: EXIT_BAD_RECORD,
 * EXIT_NO_INPUT. */
int facts_for(const char *from, struct facts **f);

/* ---- stats/fabric.c ---- */
int fabric_stats(bool json, const char *from);

/* ---- util.c ---- */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct json_object;
/* In one line; @o is the caller's no more. */
void print_json(struct json_object *o);
/*
 * Writes a file by @put; who reads it sees the one before or all of the new one.  A link
 * stays, and what is no regular file (a pipe, a device) is written as it is.
 * EXIT_OK, or complains: EXIT_NO_OUTPUT.
 */
int replace_file(const char *name, void (*put)(FILE *f, const void *arg), const void *arg);
/* "64K", "1M", "2G", "4096"; false when it is no such thing. */
bool parse_size(const char *text, uint64_t *out);
/* The same of an option's value, or complains; @max: UINT64_MAX for none. */
bool number_of(const char *option, const char *text, uint64_t min, uint64_t max,
	       uint64_t *out);
/* @bytes of a pattern from its byte @at on, both multiples of 8: every 8 bytes
 * differ, and by @seed. */
void pattern(uint64_t *buf, size_t bytes, uint64_t at, uint64_t seed);
double now_wall(void);
double now_cpu(void);

/* ---- crc.c ---- */
uint32_t crc32c_of(uint32_t crc_so_far, const void *p, size_t n);
/* ---- io/near.c ---- */
/* The GPU nearest to @file, or complains: its ordinal, and @why it is that. */
bool gpu_near(const char *file, int *ordinal, char *why, size_t size);

/* ---- gpu.c: the CUDA driver, found at run time ---- */
bool gpu_open(int ordinal);
/* Another thread than that which opened it may use it. */
bool gpu_here(void);
bool gpu_emulated(void);
bool gpu_stream(void **stream);
bool gpu_stream_wait(void *stream);
/* The ordinal of the GPU with that PCI address; false: CUDA shows none there. */
bool gpu_at(const char *address, int *ordinal);
/* How many GPUs CUDA shows; false: @why there are none.  Does not complain. */
bool gpu_count(int *count, char *why, size_t size);
bool gpu_address(int ordinal, char *address, size_t size);
/* What CUDA calls it; empty when it does not. */
void gpu_name(int ordinal, char *name, size_t size);
bool gpu_alloc(uint64_t size, uint64_t *ptr);
void gpu_free(uint64_t ptr);
/* Memory of cuMemCreate(), mapped; and the host's, of cuMemAllocHost() */
bool gpu_alloc_vmm(uint64_t size, uint64_t *ptr);
bool gpu_alloc_pinned(uint64_t size, void **p);
bool gpu_set(uint64_t ptr, unsigned char value, uint64_t n);
bool gpu_put(uint64_t ptr, const void *host, size_t n);
bool gpu_get(void *host, uint64_t ptr, size_t n);
/* The same in the order of a stream, and waits for that; with memory of gpu_pin() the GPU copies. */
bool gpu_put_by(void *stream, uint64_t ptr, const void *host, size_t n);
bool gpu_get_by(void *stream, void *host, uint64_t ptr, size_t n);
bool gpu_pin(void *host, size_t n);
/* By the GPU itself where it can, *@by: "gpu" or "cpu". */
bool gpu_crc32c(uint64_t ptr, uint64_t n, uint32_t *crc, const char **by);

#endif
