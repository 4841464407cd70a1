// SPDX-License-Identifier: MIT
/* What every command needs. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

void complain(const char *fmt, ...)
{
	va_list ap;

	fputs("peerlane: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

bool parse_size(const char *text, uint64_t *out)
{
	unsigned int shift = 0;
	uint64_t v = 0;

	if (!*text)
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return false;
	switch (*text) {
	case 'k': case 'K': shift = 10; break;
	case 'm': case 'M': shift = 20; break;
	case 'g': case 'G': shift = 30; break;
	case 't': case 'T': shift = 40; break;
	case '\0': break;
	default: return false;
	}
	if (shift) {
		text++;
		if (text[0] == 'i' && text[1] == 'B')
			text += 2;
	}
	if (*text || v > UINT64_MAX >> shift || v << shift > INT64_MAX)
		return false;
	*out = v << shift;
	return true;
}

bool number_of(const char *option, const char *text, uint64_t min, uint64_t max,
	       uint64_t *out)
{
	if (parse_size(text, out) && *out >= min && *out <= max)
		return true;
	if (max == UINT64_MAX)
		complain("%s needs a number of at least %llu, such as 4096, 64K "
			 "or 1M, not \"%s\"", option, (unsigned long long)min,
			 text);
	else
		complain("%s needs a number from %llu to %llu, not \"%s\"",
			 option, (unsigned long long)min,
			 (unsigned long long)max, text);
	return false;
}

void print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

int replace_file(const char *name, void (*put)(FILE *f, const void *arg), const void *arg)
{
	char target[PATH_MAX], temporary[PATH_MAX];
	struct stat st;
	FILE *f = NULL;
	bool in_place;
	int fd, n, r;

	in_place = !stat(name, &st) && !S_ISREG(st.st_mode);
	if (in_place) {
		/* a FIFO that nobody reads is an error; one that is read may be full */
		fd = open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 && fcntl(fd, F_SETFL, 0)) {
			close(fd);
			fd = -1;
		}
	} else {
		if (realpath(name, target))
			name = target;
		n = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", name);
		errno = ENAMETOOLONG;
		fd = n < (int)sizeof(temporary) ? mkostemp(temporary, O_CLOEXEC) : -1;
	}
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (!f) {
		complain("%s cannot be written: %s", name, strerror(errno));
		if (fd >= 0) {
			close(fd);
			if (!in_place)
				unlink(temporary);
		}
		return EXIT_NO_OUTPUT;
	}
	put(f, arg);
	r = fflush(f) || ferror(f) || (!in_place && fchmod(fd, 0644));
	r = fclose(f) || r;
	if (!r && (in_place || !rename(temporary, name)))
		return EXIT_OK;
	complain("%s cannot be written: %s", name, strerror(errno));
	if (!in_place)
		unlink(temporary);
	return EXIT_NO_OUTPUT;
}

void pattern(uint64_t *buf, size_t bytes, uint64_t at, uint64_t seed)
{
	size_t i;

	for (i = 0; i < bytes / 8; i++) {
		uint64_t x = (at / 8 + i + 1) * 0x9e3779b97f4a7c15ull +
			     seed * 0xbf58476d1ce4e5b9ull;

		x ^= x >> 29;
		buf[i] = x * 0x94d049bb133111ebull;
	}
}

double now_wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double now_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}
