/* SPDX-License-Identifier: MIT */
/*
 * What the tools know about a machine: files, links and folders of /sys, /proc
 * and a few others, of this machine or of a record of one.
 *
 * A struct facts is a snapshot: each path is asked for once, and the answer is
 * kept, so that facts_save() can write down what was read and nothing else.
 * For counters that move, open another one.
 *
 * All functions return 0 or more, or -errno.  Those that matter:
 *   -ENOENT   it is not there
 *   -EACCES   it may be there, and this user must not know (-EPERM likewise)
 *   -ENODATA  the record does not say, since its writer did not look
 *   -ENOKEY   facts_value(): the file is there and has no such line
 * Out of memory and out of files are never kept as an answer: facts_ran_out().
 *
 * Not for several threads at once.  The format is in peerlane-record(5).
 */
#ifndef PEERLANE_FACTS_H
#define PEERLANE_FACTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct facts;

#define FACTS_VALUE_MAX		(1 << 20)	/* bytes of one file */
#define FACTS_RECORD_MAX	(16 << 20)	/* bytes of a record */

static inline bool facts_ran_out(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* @record: file name, or NULL for this machine.  A record with a mistake is
 * -EBADMSG, and facts_error() says where. */
int facts_open(struct facts **f, const char *record);
/* This machine. Needs facts.c alone, without records and zlib. */
int facts_open_live(struct facts **f);
void facts_close(struct facts *f);

/* One line about the latest facts_open() of this thread that failed. */
const char *facts_error(void);

bool facts_live(const struct facts *f);

/* The whole file, -EOVERFLOW if it is larger than @size: its length. */
ssize_t facts_read(struct facts *f, const char *path, void *buf, size_t size);

/* The same as text: without white space at its ends, NUL at the end. */
int facts_text(struct facts *f, const char *path, char *buf, size_t size);

/*
 * One value of a file of many lines, which is not kept as a whole: what stands
 * behind "KEY=" or "KEY :" in the first such line, trimmed.  Reads .gz files.
 * In /proc/kallsyms @key is a symbol and its value is the symbol's type.
 */
int facts_value(struct facts *f, const char *path, const char *key, char *buf,
		size_t size);

/*
 * Has the running kernel @option, as y or m?  Where no file with its configuration
 * can be read: is @symbol in it?  1 or 0; -errno: /proc/kallsyms does not tell.
 * @source: the file that told.
 */
int facts_kconfig(struct facts *f, const char *option, const char *symbol,
		  char *source, size_t size);

/*
 * Keeps what a tool has found out by other means than reading: facts_value() of
 * @path and @key gives it from now on, and records have it.  -EEXIST, -ENOMEM.
 */
int facts_tell(struct facts *f, const char *path, const char *key,
	       const char *value);

/* What realpath(3) says. */
int facts_link(struct facts *f, const char *path, char *buf, size_t size);

/* Names in a folder, sorted, without "." and "..", then NULL: how many. */
int facts_list(struct facts *f, const char *path, char ***names);
void facts_list_free(char **names);

/*
 * Writes all that was read as a record.  Left out: files named like serial
 * numbers and ids; in what is written, UUIDs, MAC addresses, GUIDs and PCI
 * serial numbers become zeros, and this machine's name becomes "host".
 */
int facts_save(const struct facts *f, const char *file);

#endif
