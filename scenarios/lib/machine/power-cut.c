// SPDX-License-Identifier: MIT
/*
 * power-cut DRIVE LOG BYTES SEED: what a drive with a volatile write cache has kept
 *
 * DRIVE is its image from before, LOG what was written since (QEMU's blklogwrites),
 * which had BYTES bytes when the power was cut.  What begins behind them the emulator
 * has finished since then, and it never was: a flush there is none, and of a write
 * there nothing is kept.  All that is before the last flush is kept.  Of what is
 * between that and the cut, each sector is kept or not, as SEED's random numbers have
 * it; none with SEED 0.  A write with FUA is one with a flush behind it in the log.  A
 * write that completes while a flush runs counts as flushed.
 *
 * Prints {writes, flushes, unflushed, kept}: commands and commands, then sectors.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../jsonc.h"

#define SECTOR	512
#define MAGIC	0x6a736677736872ull
#define FLUSH	1

struct entry {
	uint64_t sector, sectors, flags, text;
};

static uint64_t sectors_of_drive;
static int drive, writes_log;

static void __attribute__((noreturn)) die(const char *what, uint64_t n)
{
	fprintf(stderr, "power-cut: %s %" PRIu64 "%s%s\n", what, n, errno ? ": " : "",
		errno ? strerror(errno) : "");
	exit(1);
}

static void get(void *p, uint64_t sector)
{
	errno = 0;
	if (pread(writes_log, p, SECTOR, (off_t)(sector * SECTOR)) != SECTOR)
		die("the log cannot be read at sector", sector);
}

/* The entry at @at of the log, of which there are @end sectors; false: that was all. */
static bool entry_at(uint64_t at, uint64_t end, struct entry *e)
{
	uint64_t raw[SECTOR / 8];

	if (at >= end)
		return false;
	get(raw, at);
	*e = (struct entry){ le64toh(raw[0]), le64toh(raw[1]), le64toh(raw[2]),
			     le64toh(raw[3]) };
	errno = 0;
	if (e->flags & ~(uint64_t)FLUSH || e->text)
		die("an entry that is neither a write nor a flush at sector", at);
	if ((!e->sectors && !e->flags) || e->sectors > sectors_of_drive ||
	    e->sector > sectors_of_drive - e->sectors)
		die("no entry at sector", at);
	if (e->sectors > end - at - 1)
		die("half an entry at sector", at);
	return true;
}

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x9e3779b97f4a7c15u;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-') {
		fprintf(stderr, "power-cut: %s is no number\n", text);
		exit(2);
	}
	return n;
}

static int must_open(const char *path, int flags, uint64_t *sectors)
{
	int fd = open(path, flags);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(1);
	}
	*sectors = (uint64_t)st.st_size / SECTOR;
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t at, end, cut, seed, safe = 0, writes = 0, flushes = 0;
	uint64_t unflushed = 0, kept = 0;
	char sector[SECTOR];
	uint64_t super[SECTOR / 8];
	struct json_object *result;
	struct entry e;

	if (argc != 5) {
		fprintf(stderr, "usage: power-cut DRIVE LOG BYTES SEED\n");
		return 2;
	}
	cut = number(argv[3]) / SECTOR;
	seed = number(argv[4]);
	drive = must_open(argv[1], O_RDWR, &sectors_of_drive);
	writes_log = must_open(argv[2], O_RDONLY, &end);
	get(super, 0);
	errno = 0;
	if (le64toh(super[0]) != MAGIC || le64toh(super[1]) != 1 ||
	    (le64toh(super[3]) & 0xffffffff) != SECTOR)
		die("no log of writes, by sector", 0);
	for (at = 1; at < cut && entry_at(at, end, &e); at += 1 + e.sectors)
		if (e.flags & FLUSH)
			safe = at;
	for (at = 1; at < cut && entry_at(at, end, &e); at += 1 + e.sectors) {
		writes += e.sectors > 0;
		flushes += e.flags & FLUSH;
		for (uint64_t i = 0; i < e.sectors; i++) {
			if (at > safe) {
				unflushed++;
				if (!seed || next(&seed) >> 63)
					continue;
				kept++;
			}
			get(sector, at + 1 + i);
			if (pwrite(drive, sector, SECTOR,
				   (off_t)((e.sector + i) * SECTOR)) != SECTOR)
				die("the drive cannot be written at sector",
				    e.sector + i);
		}
	}
	if (!writes)
		die("nothing was written before sector", cut);
	result = json_object_new_object();
	json_set(result, "writes", writes);
	json_set(result, "flushes", flushes);
	json_set(result, "unflushed", unflushed);
	json_set(result, "kept", kept);
	print_json(result);
	return fflush(stdout) || close(drive) ? 1 : 0;
}
