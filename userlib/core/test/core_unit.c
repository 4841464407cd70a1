// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../../cuda/test/ktap.h"
#include "peerlane/peerlane.h"

int main(void)
{
	unsigned int a = 9, b = 9, c = 9;
	char text[32];

	snprintf(text, sizeof(text), "%u.%u.%u", PLN_VERSION_MAJOR,
		 PLN_VERSION_MINOR, PLN_VERSION_PATCH);
	ktap(!strcmp(pln_version(&a, &b, &c), text), "the version as text");
	ktap(a == PLN_VERSION_MAJOR && b == PLN_VERSION_MINOR &&
	     c == PLN_VERSION_PATCH, "the version as numbers");
	ktap(!strcmp(pln_version(NULL, NULL, NULL), text),
	     "the version without places for the numbers");
	ktap(!strcmp(pln_strerror(-EINVAL), "Invalid argument"),
	     "words for an errno");
	ktap(!strcmp(pln_strerror(0), "Success") &&
	     !strcmp(pln_strerror(EINVAL), "Success"),
	     "zero and positive values are success");
	ktap(!strcmp(pln_strerror(-99999), "Unknown error") &&
	     !strcmp(pln_strerror(INT_MIN), "Unknown error"),
	     "words for no errno");
	ktap(!strcmp(pln_errname(-EREMOTEIO), "EREMOTEIO") &&
	     !strcmp(pln_errname(7), "OK"), "names");
	ktap(!strcmp(pln_errname(-99999), "?") &&
	     !strcmp(pln_errname(INT_MIN), "?"), "the name of no errno");
	return ktap_end();
}
