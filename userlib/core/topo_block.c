// SPDX-License-Identifier: MIT
/* The drives below a block device: partitions, multipath, RAID, device mapper. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "topo.h"

#define MAX_DEPTH	8
#define MAX_BLOCKS	1024	/* each as often as it is stood on */

struct walk {
	struct facts *f;
	void (*each)(void *arg, const struct topo_block *b);
	void *arg;
	int blocks;
	int failed;		/* it ends: memory or files ran out, it goes round */
	int unread;		/* it goes on: the first that could not be read */
};

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* Most devices lack most files, which records need not say. */
static int note(struct walk *w, int r)
{
	if (facts_ran_out(r))
		w->failed = r;
	else if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ENODATA &&
		 !w->unread)
		w->unread = r;
	return r;
}

static bool link_of(struct walk *w, const char *path, char *to, size_t size)
{
	int r = note(w, facts_link(w->f, path, to, size));

	if (r == -ENODATA && !w->unread)
		w->unread = r;
	return !r;
}

static int list_of(struct walk *w, const char *path, char ***names)
{
	return note(w, facts_list(w->f, path, names));
}

static void text_of(struct walk *w, const char *sysfs, const char *file,
		    char *buf, size_t size)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/%s", sysfs, file);
	if (note(w, facts_text(w->f, path, buf, size)))
		buf[0] = '\0';
}

static void nvme(struct walk *w, struct topo_block *b, const char *sysfs)
{
	char path[PATH_MAX], *rest = path, *part;

	snprintf(path, sizeof(path), "%s", sysfs);
	while ((part = strsep(&rest, "/")))
		if (topo_is_address(part))	/* the last one is the drive's */
			snprintf(b->address, sizeof(b->address), "%s", part);
	b->kind = b->address[0] ? "nvme" : "nvme-fabric";
	w->each(w->arg, b);
}

/* Of one drive that several controllers lead to, they are what counts. */
static void controllers(struct walk *w, const char *head)
{
	char subsystem[PATH_MAX], path[2 * PATH_MAX], link[PATH_MAX], **names;
	unsigned int number;
	int i, n, len;

	snprintf(subsystem, sizeof(subsystem), "%s", head);
	*strrchr(subsystem, '/') = '\0';
	n = list_of(w, subsystem, &names);
	for (i = 0; i < n && !w->failed; i++) {
		struct topo_block b = { .name = "" };

		len = 0;
		if (sscanf(names[i], "nvme%u%n", &number, &len) != 1 ||
		    names[i][len])
			continue;
		snprintf(path, sizeof(path), "%s/%s", subsystem, names[i]);
		if (!link_of(w, path, link, sizeof(link)))
			continue;
		snprintf(b.name, sizeof(b.name), "%s", names[i]);
		nvme(w, &b, link);
	}
	if (n >= 0)
		facts_list_free(names);
}

static void below(struct walk *w, const char *sysfs, int depth)
{
	char disk[PATH_MAX], path[PATH_MAX + 32], link[PATH_MAX], **names, *slash;
	struct topo_block b = { .kind = "other" };
	int i, n;

	if (depth > MAX_DEPTH) {
		w->failed = -ELOOP;
		return;
	}
	if (++w->blocks > MAX_BLOCKS) {
		w->failed = -E2BIG;
		return;
	}
	snprintf(disk, sizeof(disk), "%s", sysfs);
	text_of(w, disk, "partition", path, sizeof(path));
	slash = strrchr(disk, '/');
	if (path[0] && slash && slash != disk) {
		*slash = '\0';
		slash = strrchr(disk, '/');
	}
	snprintf(b.name, sizeof(b.name), "%.63s", slash ? slash + 1 : disk);
	if (strstr(disk, "/nvme-subsystem/")) {
		b.kind = "nvme-head";
		w->each(w->arg, &b);
		controllers(w, disk);
		return;
	}
	if (starts(b.name, "nvme")) {
		nvme(w, &b, disk);
		return;
	}
	if (starts(b.name, "md")) {
		b.kind = "md";
		text_of(w, disk, "md/level", b.detail, sizeof(b.detail));
	} else if (starts(b.name, "dm-")) {
		b.kind = "dm";
		text_of(w, disk, "dm/uuid", b.detail, sizeof(b.detail));
		b.detail[strcspn(b.detail, "-")] = '\0';
	} else if (starts(b.name, "loop")) {
		b.kind = "loop";
	}
	w->each(w->arg, &b);
	snprintf(path, sizeof(path), "%s/slaves", disk);
	n = list_of(w, path, &names);
	for (i = 0; i < n && !w->failed; i++) {
		snprintf(path, sizeof(path), "/sys/class/block/%s", names[i]);
		if (link_of(w, path, link, sizeof(link)))
			below(w, link, depth + 1);
	}
	if (n >= 0)
		facts_list_free(names);
}

int topo_blocks(struct facts *f, const char *sysfs,
		void (*each)(void *arg, const struct topo_block *b), void *arg)
{
	struct walk w = { .f = f, .each = each, .arg = arg };

	below(&w, sysfs, 0);
	return w.failed ? w.failed : w.unread;
}
