// SPDX-License-Identifier: MIT
#include "facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts_store.h"

/* ---- the store ---- */

static int order(const struct fact *a, char kind, const char *path)
{
	int c = strcmp(a->path, path);

	return c ? c : a->kind - kind;
}

/* Where it is, or where it would be. */
static size_t place(const struct facts *f, char kind, const char *path)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (order(&f->fact[mid], kind, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct fact *facts_find(const struct facts *f, char kind, const char *path)
{
	size_t i = place(f, kind, path);

	return i < f->n && !order(&f->fact[i], kind, path) ? &f->fact[i] : NULL;
}

int facts_add(struct facts *f, char kind, const char *path, int err,
	      const void *data, size_t len)
{
	size_t i = place(f, kind, path), room = f->room ? 2 * f->room : 64;
	struct fact new = { .len = len, .err = err, .kind = kind };

	if (i < f->n && !order(&f->fact[i], kind, path))
		return -EEXIST;
	if (f->n == f->room) {
		struct fact *more = realloc(f->fact, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->fact = more;
		f->room = room;
	}
	new.path = strdup(path);
	new.data = malloc(len + 1);
	if (!new.path || !new.data) {
		free(new.path);
		free(new.data);
		return -ENOMEM;
	}
	if (len)
		memcpy(new.data, data, len);
	new.data[len] = '\0';
	memmove(f->fact + i + 1, f->fact + i, (f->n - i) * sizeof(*f->fact));
	f->fact[i] = new;
	f->n++;
	return 0;
}

int facts_open_live(struct facts **out)
{
	struct facts *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->live = true;
	*out = f;
	return 0;
}

void facts_close(struct facts *f)
{
	size_t i;

	if (!f)
		return;
	for (i = 0; i < f->n; i++) {
		free(f->fact[i].path);
		free(f->fact[i].data);
	}
	free(f->fact);
	free(f);
}

bool facts_live(const struct facts *f)
{
	return f->live;
}

/* ---- this machine: each returns 0 with *data to free, or -errno ---- */

/* Twice the room; 0 or an errno */
static int widen(char **buf, size_t *room)
{
	char *more = realloc(*buf, 2 * *room);

	if (!more)
		return ENOMEM;
	*buf = more;
	*room *= 2;
	return 0;
}

static int live_file(const char *path, char **data, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	size_t room = 4096, n = 0;
	char *buf;
	ssize_t r;
	int err;

	if (fd < 0)
		return -errno;
	buf = malloc(room);
	err = buf ? 0 : ENOMEM;
	while (!err) {
		r = read(fd, buf + n, room - n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			err = errno;
		if (r <= 0)
			break;
		n += (size_t)r;
		if (n > FACTS_VALUE_MAX)
			err = EFBIG;
		if (!err && n == room)
			err = widen(&buf, &room);
	}
	close(fd);
	if (err) {
		free(buf);
		return -err;
	}
	*data = buf;
	*len = n;
	return 0;
}

static int live_link(const char *path, char **data, size_t *len)
{
	*data = realpath(path, NULL);
	if (!*data)
		return -errno;
	*len = strlen(*data);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in @buf, a NUL behind each, in order; takes @buf. */
static int sorted(char *buf, size_t used, size_t count, char **data)
{
	char **name = malloc((count + 1) * sizeof(*name));
	char *all = malloc(used + 1), *at = buf;
	size_t i;

	if (!name || !all) {
		free(name);
		free(all);
		free(buf);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++, at += strlen(at) + 1)
		name[i] = at;
	qsort(name, count, sizeof(*name), by_name);
	for (i = 0, at = all; i < count; i++)
		at = stpcpy(at, name[i]) + 1;
	free(name);
	free(buf);
	*data = all;
	return 0;
}

static int live_list(const char *path, char **data, size_t *len)
{
	size_t room = 1024, used = 0, count = 0, n;
	DIR *dir = opendir(path);
	char *buf;
	struct dirent *d;
	int err;

	if (!dir)
		return -errno;
	buf = malloc(room);
	err = buf ? 0 : ENOMEM;
	while (!err) {
		errno = 0;
		d = readdir(dir);
		if (!d) {
			err = errno;
			break;
		}
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		n = strlen(d->d_name) + 1;
		if (used + n > FACTS_VALUE_MAX) {
			err = EFBIG;
			break;
		}
		if (used + n > room)
			err = widen(&buf, &room);
		if (err)
			break;
		memcpy(buf + used, d->d_name, n);
		used += n;
		count++;
	}
	closedir(dir);
	if (err) {
		free(buf);
		return -err;
	}
	*len = used;
	return sorted(buf, used, count, data);
}

/* ---- asking ---- */

static int ask(struct facts *f, char kind, const char *path,
	       const struct fact **out)
{
	int (*fill)(const char *, char **, size_t *) =
		kind == 'F' ? live_file : kind == 'L' ? live_link : live_list;
	struct fact *e = facts_find(f, kind, path);
	char *data = NULL;
	size_t len = 0;
	int r, added;

	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return -EINVAL;
	if (!e && !f->live) {
		e = facts_find(f, 'E', path);
		if (!e)
			return -ENODATA;
	}
	if (!e) {
		r = fill(path, &data, &len);
		if (facts_ran_out(r))
			return r;
		added = facts_add(f, kind, path, -r, data, len);
		free(data);
		if (added)
			return added;
		e = facts_find(f, kind, path);
	}
	*out = e;
	return -e->err;
}

ssize_t facts_read(struct facts *f, const char *path, void *buf, size_t size)
{
	const struct fact *e;
	int r = ask(f, 'F', path, &e);

	if (r)
		return r;
	if (e->len > size)
		return -EOVERFLOW;
	memcpy(buf, e->data, e->len);
	return (ssize_t)e->len;
}

int facts_trimmed(const char *s, size_t n, char *buf, size_t size)
{
	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	if (n >= size)
		return -EOVERFLOW;
	memcpy(buf, s, n);
	buf[n] = '\0';
	return 0;
}

int facts_text(struct facts *f, const char *path, char *buf, size_t size)
{
	const struct fact *e;
	int r = ask(f, 'F', path, &e);

	return r ? r : facts_trimmed((const char *)e->data, e->len, buf, size);
}

int facts_link(struct facts *f, const char *path, char *buf, size_t size)
{
	const struct fact *e;
	int r = ask(f, 'L', path, &e);

	if (r)
		return r;
	if (e->len >= size)
		return -EOVERFLOW;
	memcpy(buf, e->data, e->len + 1);
	return 0;
}

int facts_list(struct facts *f, const char *path, char ***names)
{
	const struct fact *e;
	int r = ask(f, 'D', path, &e), n = 0;
	char **list, *at;
	size_t i;

	if (r)
		return r;
	for (i = 0; i < e->len; i++)
		n += !e->data[i];
	/* one piece: the pointers, then the names */
	list = malloc(((size_t)n + 1) * sizeof(*list) + e->len);
	if (!list)
		return -ENOMEM;
	at = (char *)(list + n + 1);
	memcpy(at, e->data, e->len);
	for (i = 0; i < (size_t)n; i++, at += strlen(at) + 1)
		list[i] = at;
	list[n] = NULL;
	*names = list;
	return n;
}

void facts_list_free(char **names)
{
	free(names);
}
