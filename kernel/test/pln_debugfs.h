/* SPDX-License-Identifier: GPL-2.0-only */
/* Orders to test modules, by their folders in debugfs; cmd() is for that in DIR. */
#ifndef PLN_DEBUGFS_H
#define PLN_DEBUGFS_H

#include <stdarg.h>

#include "pln_test.h"

__attribute__((format(printf, 2, 3)))
static int order(const char *dir, const char *fmt, ...)
{
	char path[96], text[128];
	int fd, ret, err;
	va_list ap;

	snprintf(path, sizeof(path), "%scmd", dir);
	fd = open(path, O_WRONLY);
	need(fd >= 0, "open %s", path);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ret = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

#define cmd(...)	order(DIR, __VA_ARGS__)

#endif
