/* SPDX-License-Identifier: MIT */
/* peerlane io, inside. */
#ifndef PEERLANE_IO_H
#define PEERLANE_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cufile.h>

struct json_object;

enum io_what { READ, WRITE, COPY, CRC, LOAD, IO_WHATS };

extern const char *const io_what_name[IO_WHATS];

/* How the bytes of a load move; in gdsio they are numbers. */
enum io_way {
	BY_CUFILE, BY_CPU, BY_COPY, BY_ASYNC, BY_STREAM, BY_BATCH,
	BY_STREAMS, IO_WAYS
};

/* Where the data of a load is; in gdsio they are numbers, from 0 on. */
enum io_memory {
	IN_DEVICE, IN_VMM, IN_PINNED, IN_MALLOC, IN_MMAP, IO_MEMORIES
};

extern const char *const io_memory_name[IO_MEMORIES];

#define IO_SIZES	65536u	/* of the calls of a load, at most */

struct options {
	enum io_what what;
	const char *in, *out;
	int gpu;
	char gpu_reason[512];	/* of near */
	bool near, have_size, direct, unregistered, crc, verify, sync, strict,
	     json, fill;
	uint64_t size, offset, to_offset, gpu_offset, chunk, loops, seed;
	/* of a load */
	enum io_way way;
	bool writes, random;
	int mix;		/* of 100 calls so many read; -1: not asked for */
	enum io_memory memory;
	uint64_t threads, seconds;
	uint64_t batch;		/* calls that a thread begins together; 0: not asked for */
	/* calls are of chunk, chunk + step, ... up to most bytes in turn; 0: all of chunk */
	uint64_t chunk_most, chunk_step;
	uint64_t align;		/* random calls begin at its multiples; 0: at blocks */
	/* of a job beside others: pipes.  It closes the first when it is ready, and
	 * begins when the other one ends. */
	bool is_job;
	int ready, go;
};

struct io_file {
	const char *name;
	int fd;			/* -1: there is no such file yet */
	CUfileHandle_t fh;
	bool regular;
	dev_t dev;		/* dev and ino name a file, whatever its path is */
	ino_t ino;
	uint64_t size;
};

/* ---- io.c ---- */
/* Does it all, and says what came of it: an exit status. */
int io_run(struct options *o);
/* For the next four: EXIT_OK, or what io_give_up() returns. */
/* @may_lack: that there is no such file is no error. */
int io_open(const struct options *o, struct io_file *f, const char *name,
	    int flags, bool may_lack);
int io_register(const struct options *o, struct io_file *f);
/* The GPU, libcufile, and @all bytes of GPU memory at *@base */
int io_start(struct options *o, uint64_t all, uint64_t *base);
/* A transfer, which is the caller's no more: prints it, or keeps it for io_finish() */
void io_say(const struct options *o, struct json_object *transfer);
/* The end: prints the object of --json; @status, and @error or NULL. */
int io_finish(const struct options *o, int status, const char *error);
/* The same after a complaint, which is the error */
int io_give_up(const struct options *o, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- load.c ---- */
int load_run(struct options *o);

/* ---- opts.c ---- */
/* Sets the option of that long name, or complains. */
bool io_option(struct options *o, const char *name, const char *text);

/* ---- jobs.c ---- */
/* All loads that a job file of gdsio has, beside each other; what it leaves open is
 * as in @base.  An exit status. */
int jobs_run(const struct options *base, const char *file);

#endif
