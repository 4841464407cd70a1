/* SPDX-License-Identifier: MIT */
/* Ways in which others change a file that somebody reads. */
#ifndef PLN_TEST_WRITERS_H
#define PLN_TEST_WRITERS_H

#include <stddef.h>

enum { REWRITE, WRITE, EXTEND, RENAME, PUNCH, MAPPED, DIRECT, CUT, WAYS };

/* Seconds, by a clock that no test turns */
double writers_now(void);
/*
 * Changes @path, of @size bytes of @old, with bytes of @new, of which there are
 * MIB(1) more.  @other lies on the same file system.  Seconds that opening took;
 * below 0: it failed.
 */
double write_as(int way, const char *path, const char *other, const char *new,
		size_t size);
/* Turns @new into what a reader who had @path open must find then; its size. */
size_t written(int way, const char *old, char *new, size_t size);

#endif
