// SPDX-License-Identifier: MIT
/*
 * What lies between a file and its drives, and keeps DMA to peers from them.  The walk
 * is core's, and its two files for that are linked in.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../core/topo.h"
#include "internal.h"

struct look {
	struct facts *f;
	char md[64];		/* one that may pass them */
	bool found;
	char *why;
	size_t size;
};

static void look_at(void *arg, const struct topo_block *b)
{
	struct look *l = arg;
	char path[128], label[256];

	if (l->found)
		return;
	l->found = true;
	if (!strcmp(b->kind, "dm")) {
		snprintf(path, sizeof(path), "/sys/class/block/%s/dm/name", b->name);
		if (facts_text(l->f, path, label, sizeof(label)))
			label[0] = '\0';
		if (!strcmp(b->detail, "CRYPT"))
			snprintf(l->why, l->size, "dm-crypt (%s, %s) is between file "
				 "and drive: the processor must decrypt all data",
				 b->name, label);
		else
			snprintf(l->why, l->size, "the device mapper (%s, %s) is "
				 "between file and drive: it does not pass memory of "
				 "devices on", b->name, label);
	} else if (!strcmp(b->kind, "loop")) {
		snprintf(l->why, l->size, "%s is between file and drive: it "
			 "has its own buffers in host memory", b->name);
	} else if (!strcmp(b->kind, "md") && strcmp(b->detail, "raid0") &&
		   strcmp(b->detail, "raid1") && strcmp(b->detail, "raid10")) {
		snprintf(l->why, l->size, "md (%s, %s) is between file and drives: only "
			 "raid0, raid1 and raid10 pass memory of devices on", b->name,
			 b->detail[0] ? b->detail : "of no level");
	} else {
		l->found = false;
		if (!strcmp(b->kind, "md"))
			snprintf(l->md, sizeof(l->md), "%s", b->name);
	}
}

bool layers_stop(const char *folder, bool passes, char *why, size_t size)
{
	struct look l = { .why = why, .size = size };
	char disk[512];

	if (facts_open_live(&l.f))
		return false;
	/* what cannot be read is not told, and the rest may tell enough */
	if (!facts_link(l.f, folder, disk, sizeof(disk)))
		topo_blocks(l.f, disk, look_at, &l);
	facts_close(l.f);
	if (l.found || !l.md[0] || passes)
		return l.found;
	snprintf(why, size, "md (%s) is between file and drives: the drives refuse, or "
		 "it does not pass memory of devices on, as before Linux 7.2 or "
		 "where a drive is not NVMe", l.md);
	return true;
}
