/* SPDX-License-Identifier: MIT */
/* Between facts.c, which asks for all but facts_value.c's, and facts_record.c, which reads
 * and writes records. */
#ifndef PEERLANE_FACTS_STORE_H
#define PEERLANE_FACTS_STORE_H

#include "facts.h"

/* What was asked: a file's bytes, a link, a folder; 'E': a record's error, for
 * any of them. */
struct fact {
	char *path;
	unsigned char *data;	/* a NUL behind it; 'D': names, a NUL each */
	size_t len;
	int err;		/* 0 or a positive errno: then no data */
	char kind;		/* 'F', 'L', 'D' or 'E' */
};

struct facts {
	struct fact *fact;	/* sorted by path, then kind */
	size_t n, room;
	bool live;
};

/* Copies all; -EEXIST, -ENOMEM. */
int facts_add(struct facts *f, char kind, const char *path, int err,
	      const void *data, size_t len);
struct fact *facts_find(const struct facts *f, char kind, const char *path);

/* Without white space at its ends and with a NUL, or -EOVERFLOW */
int facts_trimmed(const char *s, size_t n, char *buf, size_t size);

#endif
