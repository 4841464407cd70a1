// SPDX-License-Identifier: MIT
/* One value of a file of many lines, which may be compressed. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "facts_store.h"

/* The value in @line if it is @key's, else NULL. */
static const char *value_in(const char *line, const char *key, bool symbols)
{
	size_t n = strlen(key);
	const char *at;

	if (symbols) {
		/* address type name [module] */
		at = strchr(line, ' ');
		if (!at || !at[1] || at[2] != ' ' || strncmp(at + 3, key, n) ||
		    !strchr("\t\n", at[3 + n]))
			return NULL;
		return at + 1;
	}
	if (strncmp(line, key, n))
		return NULL;
	at = line + n;
	at += strspn(at, " \t");
	return *at == ':' || *at == '=' ? at + 1 : NULL;
}

static int live_value(const char *path, const char *key, char *buf, size_t size)
{
	bool symbols = !strcmp(path, "/proc/kallsyms");
	bool whole = true, start;
	int r = -ENOKEY, error;
	char line[8192];
	gzFile file;

	/* reads what is not compressed as it is */
	errno = ENOMEM;
	file = gzopen(path, "re");
	if (!file)
		return -errno;
	while (gzgets(file, line, sizeof(line))) {
		const char *v;

		/* a line too long for here comes in pieces */
		start = whole;
		whole = strchr(line, '\n') != NULL;
		v = start ? value_in(line, key, symbols) : NULL;

		if (!v)
			continue;
		r = facts_trimmed(v, symbols ? 1 : strlen(v), buf, size);
		break;
	}
	if (r == -ENOKEY) {
		gzerror(file, &error);
		if (error < 0)
			r = -EIO;
	}
	gzclose(file);
	return r;
}

int facts_tell(struct facts *f, const char *path, const char *key,
	       const char *value)
{
	char name[PATH_MAX];

	if (path[0] != '/' || !*key ||
	    snprintf(name, sizeof(name), "%s#%s", path, key) >=
	    (int)sizeof(name))
		return -EINVAL;
	return facts_add(f, 'F', name, 0, value, strlen(value));
}

int facts_value(struct facts *f, const char *path, const char *key, char *buf,
		size_t size)
{
	char name[PATH_MAX], value[4096] = "";
	struct fact *e;
	int r;

	if (path[0] != '/' || !*key ||
	    snprintf(name, sizeof(name), "%s#%s", path, key) >=
	    (int)sizeof(name))
		return -EINVAL;
	if (f->live && !facts_find(f, 'F', name)) {
		r = live_value(path, key, value, sizeof(value));
		if (facts_ran_out(r))
			return r;
		r = facts_add(f, 'F', name, -r, value, strlen(value));
		if (r)
			return r;
	}
	/* a record may say of the whole file why it cannot be read */
	e = facts_find(f, 'F', name);
	if (!e)
		e = facts_find(f, 'E', name);
	if (!e)
		e = facts_find(f, 'E', path);
	if (!e)
		return -ENODATA;
	return e->err ? -e->err :
	       facts_trimmed((const char *)e->data, e->len, buf, size);
}

int facts_kconfig(struct facts *f, const char *option, const char *symbol,
		  char *source, size_t size)
{
	static const char *const files[][2] = {
		{ "/proc/config.gz", "" }, { "/boot/config-", "" },
		{ "/lib/modules/", "/config" }, { "/lib/modules/", "/build/.config" },
	};
	char release[65], value[64];
	size_t i;
	int r;

	snprintf(source, size, "/proc/sys/kernel/osrelease");
	r = facts_text(f, source, release, sizeof(release));
	if (facts_ran_out(r))
		return r;
	if (r)
		release[0] = '\0';
	for (i = 0; i < 4 && (!i || release[0]); i++) {
		snprintf(source, size, "%s%s%s", files[i][0], i ? release : "",
			 files[i][1]);
		r = facts_value(f, source, option, value, sizeof(value));
		if (!r || r == -ENOKEY)
			return !r && (value[0] == 'y' || value[0] == 'm');
		if (facts_ran_out(r))
			return r;
	}
	/* a symbol that always is there proves that the table can be believed */
	snprintf(source, size, "/proc/kallsyms");
	r = facts_value(f, source, symbol, value, sizeof(value));
	return !r ? 1 : r != -ENOKEY ? r :
	       facts_value(f, source, "pci_enable_device", value, sizeof(value));
}
