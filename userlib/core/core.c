// SPDX-License-Identifier: MIT
#include <limits.h>
#include <string.h>

#include "errname.h"
#include "peerlane/peerlane.h"

#define TEXT2(a, b, c)	#a "." #b "." #c
#define TEXT(a, b, c)	TEXT2(a, b, c)

const char *pln_version(unsigned int *major, unsigned int *minor,
			unsigned int *patch)
{
	if (major)
		*major = PLN_VERSION_MAJOR;
	if (minor)
		*minor = PLN_VERSION_MINOR;
	if (patch)
		*patch = PLN_VERSION_PATCH;
	return TEXT(PLN_VERSION_MAJOR, PLN_VERSION_MINOR, PLN_VERSION_PATCH);
}

const char *pln_strerror(int err)
{
	const char *text;

	if (err >= 0)
		return "Success";
	text = err == INT_MIN ? NULL : strerrordesc_np(-err);
	return text ? text : "Unknown error";
}

const char *pln_errname(int err)
{
	return err >= 0 ? "OK" : err == INT_MIN ? "?" : errname(-err);
}
