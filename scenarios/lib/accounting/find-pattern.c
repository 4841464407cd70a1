// SPDX-License-Identifier: MIT
/*
 * find-pattern FILE SEED:BYTES...: how much of each pattern (pattern.h) lies in
 * FILE, an image of memory, at any alignment.  One line of JSON, a list with an
 * object for each pattern:
 *
 *	seed, bytes	as asked
 *	found		bytes of it of which there is a copy, each counted once
 *	longest_run	bytes of the longest piece that lies in order, in one place
 *
 * Seeds are to be further apart than the words of a pattern.  What is shorter
 * than two words (16 bytes) is not looked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../jsonc.h"
#include "pattern.h"

#define MAX_PATTERNS	16
#define MAX_BYTES	(1ull << 36)

struct pattern {
	uint64_t seed, words;
	uint64_t found, longest;
	uint8_t *seen;		/* a bit for each word */
};

static struct pattern patterns[MAX_PATTERNS];
static int npatterns;

static uint64_t word_at(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

static void mark(struct pattern *t, uint64_t first, uint64_t words)
{
	for (uint64_t i = first; i < first + words; i++) {
		uint8_t bit = (uint8_t)(1u << (i & 7));

		if (!(t->seen[i >> 3] & bit)) {
			t->seen[i >> 3] |= bit;
			t->found++;
		}
	}
	if (words > t->longest)
		t->longest = words;
}

/* A piece that begins at P with word FIRST: how many words of T follow each other there. */
static uint64_t piece(struct pattern *t, uint64_t first, const uint8_t *p, const uint8_t *end)
{
	uint64_t n = 1;

	if (first >= t->words)
		return 0;
	while (first + n < t->words && p + 8 * n + 8 <= end &&
	       word_at(p + 8 * n) == pattern_word(t->seed + first + n))
		n++;
	if (n < 2)
		return 0;
	mark(t, first, n);
	return n;
}

static void search(const uint8_t *p, const uint8_t *end)
{
	while (p + 16 <= end) {
		uint64_t n = 0;

		if (word_at(p)) {
			uint64_t where = pattern_where(word_at(p));

			for (int i = 0; i < npatterns && !n; i++)
				n = piece(&patterns[i], where - patterns[i].seed, p, end);
		} else {
			/* most of an idle machine's memory */
			while (p + 16 <= end && !word_at(p + 8))
				p += 8;
		}
		p += n ? 8 * n : 1;
	}
}

/* What the file has; most of the memory of a guest was never written, and is a hole. */
static void search_data(int fd, const uint8_t *mem, off_t size)
{
	off_t at, end;

	for (at = lseek(fd, 0, SEEK_DATA); at >= 0; at = lseek(fd, end, SEEK_DATA)) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0)
			end = size;
		/* a word may end in the hole */
		search(mem + at, mem + (size - end < 8 ? size : end + 8));
	}
}

static bool add(const char *arg)
{
	struct pattern *t = &patterns[npatterns];
	uint64_t bytes = 0;
	char rest;

	if (npatterns == MAX_PATTERNS ||
	    sscanf(arg, "%" SCNu64 ":%" SCNu64 "%c", &t->seed, &bytes, &rest) != 2 ||
	    bytes < 16 || bytes > MAX_BYTES)
		return false;
	t->words = bytes / 8;
	t->seen = calloc(t->words / 8 + 1, 1);
	npatterns++;
	return t->seen;
}

int main(int argc, char **argv)
{
	struct json_object *list;
	struct stat st;
	uint8_t *mem;
	int fd;

	for (int i = 2; i < argc; i++)
		if (!add(argv[i])) {
			fprintf(stderr, "find-pattern: %s is not SEED:BYTES, or one too many\n",
				argv[i]);
			return 2;
		}
	if (!npatterns) {
		fprintf(stderr, "usage: find-pattern FILE SEED:BYTES...\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_size < 16) {
		fprintf(stderr, "find-pattern: %s: %s\n", argv[1],
			fd < 0 ? strerror(errno) : "too short");
		return 1;
	}
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED) {
		fprintf(stderr, "find-pattern: %s: %s\n", argv[1],
			strerror(errno));
		return 1;
	}
	search_data(fd, mem, st.st_size);
	list = json_object_new_array();
	for (int i = 0; i < npatterns; i++) {
		struct json_object *o = json_object_new_object();

		json_set(o, "seed", patterns[i].seed);
		json_set(o, "bytes", patterns[i].words * 8);
		json_set(o, "found", patterns[i].found * 8);
		json_set(o, "longest_run", patterns[i].longest * 8);
		json_object_array_add(list, o);
	}
	print_json(list);
	return 0;
}
