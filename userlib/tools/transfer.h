/* SPDX-License-Identifier: MIT */
/* What the commands that move files have in common. */
#ifndef PEERLANE_TRANSFER_H
#define PEERLANE_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <peerlane/file.h>

struct json_object;

/* Which transfers of a file are meant */
enum flow { READS = 1, WRITES = 2, ALL = READS | WRITES };

/* The path that moved all the bytes; "mixed" where they took several, "none" when
 * nothing moved */
const char *flow_path(const struct pln_file_stats *st, enum flow flow);
/* Bytes by the name of each path that moved some */
struct json_object *flow_by_path(const struct pln_file_stats *st, enum flow flow);
/* The path in @transfer's "path", and behind the word mixed " (p2p 4096, bounce 3)" */
void print_path(struct json_object *transfer);
/* Microseconds are enough. */
struct json_object *json_seconds(double s);
/* What cuFile's result @r, below 0, is in words; errno is that of the call. */
const char *result_words(ssize_t r, char *buf, size_t size);
/*
 * The CRC32C of what a file has from @offset on, @size bytes or up to its end, and
 * how many those were.  Around the page cache, so that what it holds is not
 * disturbed.  False: it has complained.
 */
bool file_crc(const char *name, uint64_t offset, uint64_t size, uint32_t *crc,
	      uint64_t *bytes);

#endif
