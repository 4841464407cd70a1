/* SPDX-License-Identifier: MIT */
/* Lines of /proc/self/mountinfo, for libraries and tools. */
#ifndef PEERLANE_CORE_MOUNTINFO_H
#define PEERLANE_CORE_MOUNTINFO_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* All are parts of the line. */
struct mount_line {
	long long id;
	char *device;		/* "259:1" */
	char *point;		/* where it is mounted */
	char *options, *super_options;
	char *type, *source;
};

/* The kernel writes blanks and the like as \040. */
static inline void mount_plain(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Takes @line to pieces; false: it is none. */
static inline bool mount_parse(char *line, struct mount_line *m)
{
	char *field[6], *word;
	int i;

	line[strcspn(line, "\n")] = '\0';
	for (i = 0; i < 6; i++)
		field[i] = strsep(&line, " ");
	do
		word = strsep(&line, " ");
	while (word && strcmp(word, "-"));
	m->type = strsep(&line, " ");
	m->source = strsep(&line, " ");
	m->super_options = strsep(&line, " ");
	if (!m->super_options)
		return false;
	m->id = strtoll(field[0], NULL, 10);
	m->device = field[2];
	m->point = field[4];
	m->options = field[5];
	mount_plain(m->point);
	mount_plain(m->type);
	mount_plain(m->source);
	return true;
}

#endif
