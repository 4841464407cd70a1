// SPDX-License-Identifier: MIT
/* peerlane doctor: questions to the facts layer, with formatted paths. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define FORMAT_PATH(path, fmt) do { \
	va_list ap_; \
	int n_; \
	va_start(ap_, fmt); \
	n_ = vsnprintf(path, sizeof(path), fmt, ap_); \
	va_end(ap_); \
	if (n_ < 0 || n_ >= (int)sizeof(path)) \
		path[0] = '\0'; /* not there, then */ \
} while (0)

int doc_text(struct doctor *d, const char *fact, char *buf, size_t size,
	     const char *fmt, ...)
{
	char path[PATH_MAX];
	int r;

	FORMAT_PATH(path, fmt);
	buf[0] = '\0';
	r = facts_text(d->f, path, buf, size);
	if (r && r != -ENOENT && r != -ENOTDIR && fact)
		doc_missing(d, fact, path, r);
	return r;
}

long long doc_number(struct doctor *d, const char *fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	long long v;
	int r;

	FORMAT_PATH(path, fmt);
	r = facts_text(d->f, path, text, sizeof(text));
	if (r < 0)
		return r;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || errno || v < 0)
		return -EINVAL;
	return v;
}

int doc_value(struct doctor *d, const char *path, const char *key, char *buf,
	      size_t size)
{
	buf[0] = '\0';
	return facts_value(d->f, path, key, buf, size);
}

int doc_trial(struct doctor *d, char *buf, size_t size, const char *key,
	      const char *fmt, ...)
{
	char path[PATH_MAX];

	FORMAT_PATH(path, fmt);
	buf[0] = '\0';
	if (facts_live(d->f) && !d->trying)
		return -ENODATA;
	return facts_value(d->f, path, key, buf, size);
}

/* What the answer of facts_list() says about a folder */
static enum tri answered(int r)
{
	return r >= 0 ? YES : r == -ENOENT || r == -ENOTDIR ? NO : UNKNOWN;
}

enum tri doc_there(struct doctor *d, const char *fmt, ...)
{
	char path[PATH_MAX], **names;
	int r;

	FORMAT_PATH(path, fmt);
	r = facts_list(d->f, path, &names);
	if (r >= 0)
		facts_list_free(names);
	return answered(r);
}

void doc_link_name(struct doctor *d, char *buf, size_t size, const char *fmt,
		   ...)
{
	char path[PATH_MAX], to[PATH_MAX];
	const char *name;

	FORMAT_PATH(path, fmt);
	buf[0] = '\0';
	if (facts_link(d->f, path, to, sizeof(to)))
		return;
	name = strrchr(to, '/');
	snprintf(buf, size, "%s", name ? name + 1 : to);
}

enum tri doc_has(struct doctor *d, const char *folder, const char *name)
{
	char **names;
	int i, n = facts_list(d->f, folder, &names);

	if (n < 0)
		return answered(n);
	for (i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			break;
	facts_list_free(names);
	return i < n ? YES : NO;
}

bool doc_has_rdma(struct doctor *d)
{
	char **names;
	int n = facts_list(d->f, "/sys/class/infiniband", &names);

	if (n >= 0)
		facts_list_free(names);
	return n > 0;
}

enum tri doc_kconfig(struct doctor *d, const char *option, const char *symbol)
{
	char source[128], why[96];
	int r = facts_kconfig(d->f, option, symbol, source, sizeof(source));

	if (r >= 0)
		return r ? YES : NO;
	snprintf(why, sizeof(why), "the kernel's %s", option);
	doc_missing(d, why, source, r);
	return UNKNOWN;
}

int doc_version(const char *release)
{
	char *end;
	long major = strtol(release, &end, 10), minor;

	if (end == release || *end != '.' || major < 0 || major > 99)
		return 0;
	release = end + 1;
	minor = strtol(release, &end, 10);
	if (end == release || minor < 0 || minor > 99)
		return 0;
	return (int)(major * 100 + minor);
}
