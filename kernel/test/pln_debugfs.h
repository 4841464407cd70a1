/* SPDX-License-Identifier: GPL-2.0-only */
/* Orders to a test module: DIR is its folder in debugfs. */
#ifndef PLN_DEBUGFS_H
#define PLN_DEBUGFS_H

#include <stdarg.h>

#include "pln_test.h"

__attribute__((format(printf, 1, 2)))
static int cmd(const char *fmt, ...)
{
	int fd = open(DIR "cmd", O_WRONLY), ret, err;
	char text[128];
	va_list ap;

	need(fd >= 0, "open " DIR "cmd");
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ret = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

#endif
