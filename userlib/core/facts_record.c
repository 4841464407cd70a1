// SPDX-License-Identifier: MIT
/* Records: a struct facts as a text file that can be read and reviewed. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts_store.h"

/* ---- reading ---- */

struct reader {
	struct facts *f;
	const char *name;
	unsigned int line;
	bool versioned;
	char *why;
	size_t size;
};

static int __attribute__((format(printf, 2, 3)))
bad(struct reader *r, const char *fmt, ...)
{
	int n = snprintf(r->why, r->size, "%s: line %u: ", r->name, r->line);
	va_list ap;

	va_start(ap, fmt);
	if (n > 0 && (size_t)n < r->size)
		vsnprintf(r->why + n, r->size - (size_t)n, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static int hex_byte(const char *s)
{
	int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);

	return low < 0 ? -1 : high << 4 | low;
}

/* In place: what it says between here and @end; its length, or -EBADMSG. */
static ssize_t unescape(struct reader *r, char *s, const char *end)
{
	char *from = s, *to = s;
	int byte;

	while (from < end) {
		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		if (from[1] == 'n' || from[1] == 't' || from[1] == '\\') {
			*to++ = from[1] == 'n' ? '\n' :
				from[1] == 't' ? '\t' : '\\';
			from += 2;
			continue;
		}
		byte = from[1] == 'x' && end - from >= 4 ?
		       hex_byte(from + 2) : -1;
		if (byte < 0)
			return bad(r, "\"\\\" must be followed by n, t, \\ or "
				   "x and two digits of 0-9a-f");
		*to++ = (char)byte;
		from += 4;
	}
	*to = '\0';
	return to - s;
}

/* X: pairs of hex digits, and "(N)" for N zeros, as bytes in *@out, to be
 * freed; twice over, to know how many and then to write them. */
static ssize_t unhex(struct reader *r, const char *s, const char *end,
		     char **out)
{
	const char *p;
	char *after;
	size_t n, count;
	int byte;

	for (*out = NULL; ; ) {
		for (p = s, n = 0; p < end; n += count) {
			count = 1;
			byte = end - p < 2 ? -1 : hex_byte(p);
			after = (char *)p + 2;
			if (*p == '(' && isdigit((unsigned char)p[1])) {
				count = strtoul(p + 1, &after, 10);
				byte = *after++ == ')' ? 0 : -1;
			}
			if (byte < 0)
				return bad(r, "\"%.*s\" is neither two digits "
					   "of 0-9a-f nor a number of zeros "
					   "in brackets",
					   end - p < 2 ? 1 : 2, p);
			if (count > FACTS_VALUE_MAX ||
			    n + count > FACTS_VALUE_MAX)
				return bad(r, "more than %d bytes",
					   FACTS_VALUE_MAX);
			if (*out)
				memset(*out + n, byte, count);
			p = after;
		}
		if (*out)
			return (ssize_t)n;
		*out = malloc(n + 1);
		if (!*out) {
			bad(r, "%s", strerror(ENOMEM));
			return -ENOMEM;
		}
	}
}

static int errno_named(const char *name)
{
	int i;

	for (i = 1; i < 134; i++)
		if (strerrorname_np(i) && !strcmp(strerrorname_np(i), name))
			return i;
	return 0;
}

/* D: names with a space between them become names with a NUL behind each. */
static ssize_t names(struct reader *r, char *s, char *end)
{
	char *start = s, *to = s, *next, *last = NULL;
	ssize_t n;

	for (; s < end; s = next + 1) {
		next = memchr(s, ' ', (size_t)(end - s));
		if (!next)
			next = end;
		n = unescape(r, s, next);
		if (n < 0)
			return n;
		if (!n || strlen(s) != (size_t)n || strchr(s, '/'))
			return bad(r, "a name is empty, or has a slash or a "
				   "NUL in it");
		if (last && strcmp(last, s) >= 0)
			return bad(r, "\"%s\" is not in order, or occurs twice", s);
		last = memmove(to, s, (size_t)n + 1);
		to += n + 1;
	}
	return to - start;
}

static int one_line(struct reader *r, char *s, char *end)
{
	char kind = *s, *path = s + 2, *rest, *bytes = NULL;
	ssize_t n;
	int err = 0;

	if (s == end || kind == '#')
		return 0;
	for (rest = s; rest < end; rest++)
		if (*rest < ' ' || *rest > '~')
			return bad(r, "byte 0x%02x must be written as \\x%02x",
				   (unsigned char)*rest, (unsigned char)*rest);
	if (!r->versioned) {
		if (end - s != 3 || memcmp(s, "V 1", 3))
			return bad(r, "the first line must be \"V 1\"");
		r->versioned = true;
		return 0;
	}
	if (!strchr("FXLDE", kind) || s + 1 == end || s[1] != ' ')
		return bad(r, "a line begins with F, X, L, D or E and a space, "
			   "or with #");
	rest = memchr(path, ' ', (size_t)(end - path));
	if (!rest)
		rest = end;
	n = unescape(r, path, rest);
	if (n < 0)
		return (int)n;
	if (path[0] != '/' || strlen(path) != (size_t)n)
		return bad(r, "a path must begin with a slash and have no NUL");
	if (rest < end)
		rest++;
	n = kind == 'X' ? unhex(r, rest, end, &bytes) :
	    kind == 'D' ? names(r, rest, end) :
	    unescape(r, rest, end);
	if (n < 0)
		return (int)n;
	if (n > FACTS_VALUE_MAX)
		return bad(r, "more than %d bytes", FACTS_VALUE_MAX);
	if (kind == 'L' && (rest[0] != '/' || strlen(rest) != (size_t)n))
		return bad(r, "a link's target must begin with a slash and "
			   "have no NUL");
	if (kind == 'E') {
		err = errno_named(rest);
		if (!err)
			return bad(r, "\"%s\" is no name of an error", rest);
		n = 0;
	}
	err = facts_add(r->f, kind == 'X' ? 'F' : kind, path, err,
			kind == 'X' ? bytes : rest, (size_t)n);
	free(bytes);
	if (err == -EEXIST)
		return bad(r, "%s is there twice", path);
	if (err)
		bad(r, "%s", strerror(-err));
	return err;
}

static int whole_file(const char *name, char **text, size_t *len)
{
	FILE *in = fopen(name, "re");
	char *buf;
	int err;

	if (!in)
		return -errno;
	buf = malloc(FACTS_RECORD_MAX + 1);
	if (!buf) {
		fclose(in);
		return -ENOMEM;
	}
	errno = 0;
	*len = fread(buf, 1, FACTS_RECORD_MAX + 1, in);
	err = ferror(in) ? (errno ? errno : EIO) : 0;
	fclose(in);
	if (!err && *len > FACTS_RECORD_MAX)
		err = EFBIG;
	if (err) {
		free(buf);
		return -err;
	}
	*text = buf;
	return 0;
}

static int load(struct facts *f, const char *record, char *why, size_t size)
{
	struct reader r = { .f = f, .name = record, .why = why, .size = size };
	char *text = NULL, *at, *end, *newline;
	size_t len = 0;
	int err = whole_file(record, &text, &len);

	if (err) {
		snprintf(why, size, "%s: %s", record, strerror(-err));
		return err;
	}
	for (at = text, end = text + len; at < end && !err; at = newline + 1) {
		r.line++;
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline) {
			err = bad(&r, "no newline at the end: it was cut off");
			break;
		}
		err = one_line(&r, at, newline);
	}
	if (!err && !r.versioned)
		err = bad(&r, "the first line must be \"V 1\"");
	free(text);
	return err;
}

static _Thread_local char last_error[512];

const char *facts_error(void)
{
	return last_error;
}

int facts_open(struct facts **out, const char *record)
{
	struct facts *f;
	int r = facts_open_live(&f);

	last_error[0] = '\0';
	if (r) {
		snprintf(last_error, sizeof(last_error), "out of memory");
		return r;
	}
	if (record) {
		f->live = false;
		r = load(f, record, last_error, sizeof(last_error));
	}
	if (r)
		facts_close(f);
	else
		*out = f;
	return r;
}

/* ---- writing ---- */

/* "LVM-..." says what it is, the rest which one it is */
#define DM_UUID "/dm/uuid"

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

/* Files that say which machine this is, wherever they are. */
static bool private_file(const char *path)
{
	static const char *const names[] = {
		"serial", "serial_number", "product_uuid", "product_serial",
		"board_serial", "chassis_serial", "uuid", "nguid", "eui",
		"wwid", "vpd", "unique_id", "hostname", "hostnqn",
		"hostid", "machine-id", "node_guid", "sys_image_guid",
		"port_guid", "node_desc",
	};
	const char *base = strrchr(path, '/') + 1;
	size_t i;

	/* a MAC address here, a PCI address elsewhere */
	if (!strcmp(base, "address") && strstr(path, "/net/"))
		return true;
	if (ends_with(path, DM_UUID))
		return false;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(base, names[i]))
			return true;
	return false;
}

/* 'x' in @shape is a hex digit: does @s have it, and end there? */
static bool has_shape(const char *s, const char *shape)
{
	for (; *shape; s++, shape++)
		if (*shape == 'x' ? !isxdigit((unsigned char)*s) : *s != *shape)
			return false;
	return !isalnum((unsigned char)*s);
}

/* In place, of the same length or shorter. */
static void without_names(char *s, const char *host)
{
	static const char *const shapes[] = {
		"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",	/* UUID */
		"xx:xx:xx:xx:xx:xx",			/* MAC address */
		"xxxx:xxxx:xxxx:xxxx",			/* GUID, half a GID */
	};
	size_t i, n = strlen(host);
	char *p;

	for (p = s; *p; p++) {
		if (p > s && isalnum((unsigned char)p[-1]))
			continue;
		for (i = 0; i < 3; i++) {
			const char *shape = shapes[i];

			if (!has_shape(p, shape))
				continue;
			for (; *shape; shape++, p++)
				if (*shape == 'x')
					*p = '0';
			p--;
			break;
		}
		if (i == 3 && n >= 4 && !strncmp(p, host, n) &&
		    !isalnum((unsigned char)p[n])) {
			memcpy(p, "host", 4);
			memmove(p + 4, p + n, strlen(p + n) + 1);
		}
	}
}

/* The Device Serial Number capability of a PCI config space becomes zeros. */
static void without_serial(unsigned char *config, size_t len)
{
	size_t at = 0x100, hops;
	uint32_t head;

	for (hops = 0; hops < 960 && at >= 0x100 && at + 12 <= len; hops++) {
		head = config[at] | config[at + 1] << 8 |
		       config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
		if ((head & 0xffff) == 0x0003)
			memset(config + at + 4, 0, 8);
		at = head >> 20 & 0xffc;
	}
}

static void put(FILE *out, const char *s, size_t n, bool spaces)
{
	size_t i;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\\')
			fputs("\\\\", out);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else if (c < ' ' || c > '~' ||
			 (c == ' ' && (!spaces || i + 1 == n)))
			fprintf(out, "\\x%02x", c);
		else
			putc(c, out);
	}
}

static void put_hex(FILE *out, const unsigned char *b, size_t n)
{
	size_t i, zeros;

	for (i = 0; i < n; i += zeros ? zeros : 1) {
		for (zeros = 0; i + zeros < n && !b[i + zeros]; )
			zeros++;
		if (zeros < 8)
			zeros = 0;
		if (zeros)
			fprintf(out, "(%zu)", zeros);
		else
			fprintf(out, "%02x", b[i]);
	}
}

static bool is_text(const struct fact *e)
{
	size_t i;

	for (i = 0; i < e->len; i++)
		if ((e->data[i] < ' ' && !strchr("\n\t", e->data[i])) ||
		    !e->data[i] || e->data[i] > '~')
			return false;
	return true;
}

static int save_one(FILE *out, const struct fact *e, const char *host)
{
	char kind = e->err ? 'E' : e->kind == 'F' && !is_text(e) ? 'X' :
		    e->kind;
	size_t i, n = strlen(e->path);
	char *copy;

	if (kind != 'E' && private_file(e->path)) {
		fprintf(out, "# %s is left out\n", e->path);
		return 0;
	}
	copy = malloc(e->len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, e->data, e->len + 1);
	fprintf(out, "%c ", kind);
	put(out, e->path, n, false);
	switch (kind) {
	case 'E':
		fprintf(out, " %s", strerrorname_np(e->err));
		break;
	case 'X':
		if (ends_with(e->path, "/config"))
			without_serial((unsigned char *)copy, e->len);
		putc(' ', out);
		put_hex(out, (unsigned char *)copy, e->len);
		break;
	case 'D':
		for (i = 0; i < e->len; i += strlen(copy + i) + 1) {
			putc(' ', out);
			put(out, copy + i, strlen(copy + i), false);
		}
		break;
	case 'F':
		if (ends_with(e->path, DM_UUID))
			copy[strcspn(copy, "-")] = '\0';
		without_names(copy, host);
		/* fall through */
	default:
		putc(' ', out);
		put(out, copy, strlen(copy), true);
	}
	putc('\n', out);
	free(copy);
	return 0;
}

int facts_save(const struct facts *f, const char *file)
{
	FILE *out = fopen(file, "we");
	char host[65] = "";
	int err = 0;
	size_t i;

	if (!out)
		return -errno;
	if (f->live && gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	if (!strcmp(host, "localhost"))
		host[0] = '\0';
	fputs("# SPDX-License-Identifier: MIT\n"
	      "# A machine as Peerlane's tools see it, see peerlane-record(5)."
	      "\nV 1\n", out);
	for (i = 0; i < f->n && !err; i++) {
		const struct fact *e = &f->fact[i];

		/* one error speaks for all that was asked of a path */
		if (e->err && i && f->fact[i - 1].err &&
		    !strcmp(f->fact[i - 1].path, e->path))
			continue;
		err = save_one(out, e, host);
	}
	if (!err && ferror(out))
		err = -EIO;
	if (fclose(out) && !err)
		err = -errno;
	return err;
}
