// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../../cuda/test/ktap.h"
#include "../mountinfo.h"
#include "peerlane/peerlane.h"

/* As proc(5) has them */
static void t_mounts(void)
{
	char line[] = "36 35 98:0 /mnt1 /a\\040b\\134\\18\\018\\080\\x rw,noatime master:1 shared:2 - "
		      "fuse.a\\043b /dev/ro\\011ot rw,errors=continue\n";
	char bare[] = "7 1 0:9 / / rw - tmpfs  rw";
	const char *const none[] = {
		"", "\n", "36 35 98:0 / /mnt rw", "36 35 98:0 / /mnt - a b c",
		"36 35 98:0 / /mnt rw shared:1 ext3 /dev/root rw",
		"36 35 98:0 / /mnt rw - ext3 /dev/root",
	};
	struct mount_line m = { .point = line, .source = line };
	char copy[96];
	bool is;
	size_t i;

	is = mount_parse(line, &m);
	ktap(is && m.id == 36 && !strcmp(m.device, "98:0") &&
	     !strcmp(m.point, "/a b\\\\18\\018\\080\\x") && !strcmp(m.options, "rw,noatime") &&
	     !strcmp(m.type, "fuse.a#b") && !strcmp(m.source, "/dev/ro\tot") &&
	     !strcmp(m.super_options, "rw,errors=continue"),
	     "a mount, its names as they are: %s, %s", m.point, m.source);
	ktap(mount_parse(bare, &m) && !strcmp(m.type, "tmpfs") && !*m.source &&
	     !strcmp(m.super_options, "rw"), "one of a source without a name");
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		strcpy(copy, none[i]);
		ktap(!mount_parse(copy, &m), "no mount: %s", none[i]);
	}
}

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
	t_mounts();
	return ktap_end();
}
