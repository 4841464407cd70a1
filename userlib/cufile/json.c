// SPDX-License-Identifier: MIT
/* A small reader of JSON text; see json.h. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

#define MAX_DEPTH 32

struct reader {
	const char *at, *end;
	unsigned int line, depth;
	const char *wrong;	/* first error */
};

static struct json *value(struct reader *r);

static void *fail(struct reader *r, const char *words)
{
	if (!r->wrong)
		r->wrong = words;
	return NULL;
}

static void blank(struct reader *r)
{
	while (r->at < r->end) {
		char c = *r->at;

		if (c == '\n')
			r->line++;
		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			r->at++;
		} else if (c == '/' && r->end - r->at > 1 && r->at[1] == '/') {
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		} else if (c == '/' && r->end - r->at > 1 && r->at[1] == '*') {
			r->at += 2;
			while (r->end - r->at > 1 &&
			       !(r->at[0] == '*' && r->at[1] == '/')) {
				if (*r->at == '\n')
					r->line++;
				r->at++;
			}
			if (r->end - r->at < 2) {
				r->at = r->end;
				fail(r, "comment without an end");
				return;
			}
			r->at += 2;
		} else {
			return;
		}
	}
}

static struct json *node(struct reader *r, enum json_type type)
{
	struct json *j = calloc(1, sizeof(*j));

	if (!j)
		return fail(r, "out of memory");
	j->type = type;
	return j;
}

static int hex4(struct reader *r, uint32_t *out)
{
	uint32_t v = 0;
	int i;

	if (r->end - r->at < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		char c = r->at[i];

		v <<= 4;
		if (c >= '0' && c <= '9')
			v |= (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v |= (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v |= (uint32_t)(c - 'A' + 10);
		else
			return -1;
	}
	r->at += 4;
	*out = v;
	return 0;
}

static char *utf8(char *o, uint32_t c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	} else {
		*o++ = (char)(0xf0 | c >> 18);
		*o++ = (char)(0x80 | (c >> 12 & 0x3f));
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	}
	return o;
}

/* after the opening quote */
static char *string(struct reader *r)
{
	const char *quote = r->at;
	char *buf, *o;

	/* no escape is shorter than what it stands for */
	while (quote < r->end && *quote != '"')
		quote += *quote == '\\' && r->end - quote > 1 ? 2 : 1;
	buf = o = malloc((size_t)(quote - r->at) + 1);
	if (!buf)
		return fail(r, "out of memory");
	while (r->at < r->end) {
		unsigned char c = (unsigned char)*r->at++;
		uint32_t u, low;

		if (c == '"') {
			*o = '\0';
			return buf;
		}
		if (c < 0x20)
			break;
		if (c != '\\') {
			*o++ = (char)c;
			continue;
		}
		if (r->at == r->end)
			break;
		switch (*r->at++) {
		case '"': *o++ = '"'; break;
		case '\\': *o++ = '\\'; break;
		case '/': *o++ = '/'; break;
		case 'b': *o++ = '\b'; break;
		case 'f': *o++ = '\f'; break;
		case 'n': *o++ = '\n'; break;
		case 'r': *o++ = '\r'; break;
		case 't': *o++ = '\t'; break;
		case 'u':
			if (hex4(r, &u) || !u || (u >= 0xdc00 && u < 0xe000))
				goto bad;
			if (u >= 0xd800 && u < 0xdc00) {
				if (r->end - r->at < 6 || r->at[0] != '\\' ||
				    r->at[1] != 'u')
					goto bad;
				r->at += 2;
				if (hex4(r, &low) || low < 0xdc00 ||
				    low >= 0xe000)
					goto bad;
				u = 0x10000 + ((u - 0xd800) << 10) +
				    (low - 0xdc00);
			}
			o = utf8(o, u);
			break;
		default:
			goto bad;
		}
	}
	free(buf);
	return fail(r, "string without an end");
bad:
	free(buf);
	return fail(r, "bad escape in a string");
}

static bool digit(const struct reader *r)
{
	return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* The next digit; those that a double cannot have any more are passed over. */
static bool take_digit(struct reader *r, double *v)
{
	bool room = *v < 1e300;

	if (room)
		*v = *v * 10 + (*r->at - '0');
	r->at++;
	return room;
}

static struct json *number(struct reader *r)
{
	bool minus = *r->at == '-', down = false;
	double v = 0, power = 1;
	struct json *j;
	int e = 0, tens = 0, i;

	if (minus)
		r->at++;
	if (!digit(r))
		return fail(r, "not a value");
	if (*r->at == '0' && r->end - r->at > 1 && r->at[1] >= '0' &&
	    r->at[1] <= '9')
		return fail(r, "number with a leading zero");
	while (digit(r))
		tens += !take_digit(r, &v);
	if (r->at < r->end && *r->at == '.') {
		r->at++;
		if (!digit(r))
			return fail(r, "number without digits after the point");
		while (digit(r))
			tens -= take_digit(r, &v);
	}
	if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
		r->at++;
		down = r->at < r->end && *r->at == '-';
		if (r->at < r->end && (*r->at == '-' || *r->at == '+'))
			r->at++;
		if (!digit(r))
			return fail(r, "number without an exponent");
		while (digit(r)) {
			if (e < 100000000)
				e = e * 10 + (*r->at - '0');
			r->at++;
		}
	}
	/*
	 * In one step: 0.3e1 is 3.  Of few digits and a power of ten that a double
	 * has, this makes the nearest number.
	 */
	tens += down ? -e : e;
	for (i = abs(tens); i && power < 1e308; i--)
		power *= 10;
	if (i)
		power = HUGE_VAL;
	j = node(r, JSON_NUMBER);
	if (j && v)
		j->number = tens < 0 ? v / power : v * power;
	if (j && minus)
		j->number = -j->number;
	return j;
}

static struct json *members(struct reader *r, enum json_type type)
{
	char close = type == JSON_OBJECT ? '}' : ']';
	struct json *j = node(r, type), **tail;

	if (!j)
		return NULL;
	tail = &j->child;
	r->at++;
	blank(r);
	if (r->at < r->end && *r->at == close) {
		r->at++;
		return j;
	}
	for (;;) {
		char *key = NULL;
		struct json *v;

		blank(r);
		if (type == JSON_OBJECT) {
			if (r->at == r->end || *r->at != '"') {
				fail(r, "a key in quotes must come here");
				break;
			}
			r->at++;
			key = string(r);
			if (!key)
				break;
			blank(r);
			if (r->at == r->end || *r->at != ':') {
				free(key);
				fail(r, "a colon must come here");
				break;
			}
			r->at++;
		}
		v = value(r);
		if (!v) {
			free(key);
			break;
		}
		v->key = key;
		*tail = v;
		tail = &v->next;
		blank(r);
		if (r->at < r->end && *r->at == ',') {
			r->at++;
			continue;
		}
		if (r->at < r->end && *r->at == close) {
			r->at++;
			return j;
		}
		fail(r, "a comma or the closing bracket must come here");
		break;
	}
	json_free(j);
	return NULL;
}

static bool word(struct reader *r, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n))
		return false;
	r->at += n;
	return true;
}

static struct json *value(struct reader *r)
{
	struct json *j = NULL;

	if (++r->depth > MAX_DEPTH)
		return fail(r, "nested too deep");
	blank(r);
	if (r->wrong)
		return NULL;
	if (r->at == r->end)
		return fail(r, "the text ends here");
	switch (*r->at) {
	case '{':
		j = members(r, JSON_OBJECT);
		break;
	case '[':
		j = members(r, JSON_ARRAY);
		break;
	case '"':
		r->at++;
		j = node(r, JSON_STRING);
		if (j) {
			j->string = string(r);
			if (!j->string) {
				json_free(j);
				j = NULL;
			}
		}
		break;
	case 't':
	case 'f':
		j = node(r, JSON_BOOL);
		if (!j)
			break;
		j->boolean = *r->at == 't';
		if (!word(r, j->boolean ? "true" : "false")) {
			json_free(j);
			j = fail(r, "not a value");
		}
		break;
	case 'n':
		j = word(r, "null") ? node(r, JSON_NULL) :
				      fail(r, "not a value");
		break;
	default:
		j = number(r);
	}
	r->depth--;
	return j;
}

struct json *json_parse(const char *text, size_t len, char *err, size_t size)
{
	struct reader r = { .at = text, .end = text + len, .line = 1 };
	struct json *j = value(&r);

	if (j) {
		blank(&r);
		if (r.at != r.end)
			fail(&r, "text after the end");
	}
	if (r.wrong) {
		snprintf(err, size, "line %u: %s", r.line, r.wrong);
		json_free(j);
		return NULL;
	}
	return j;
}

void json_free(struct json *j)
{
	while (j) {
		struct json *next = j->next;

		json_free(j->child);
		free(j->key);
		free(j->string);
		free(j);
		j = next;
	}
}

const struct json *json_find(const struct json *root, const char *path)
{
	const struct json *j = root, *found;

	while (*path) {
		size_t n = strcspn(path, ".");

		if (!j || j->type != JSON_OBJECT)
			return NULL;
		for (found = NULL, j = j->child; j; j = j->next)
			if (strlen(j->key) == n && !memcmp(j->key, path, n))
				found = j;
		j = found;
		path += n;
		if (*path == '.')
			path++;
	}
	return j;
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = {
		"null", "true or false", "a number", "a string", "a list",
		"an object",
	};

	return names[type];
}
