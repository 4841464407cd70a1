// SPDX-License-Identifier: MIT
/* The drives below a block device: partitions, multipath, RAID, device mapper. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "topo.h"

#define MAX_DEPTH	8

struct walk {
	struct facts *f;
	void (*each)(void *arg, const struct topo_block *b);
	void *arg;
	int failed;		/* memory or files ran out, or it goes round */
};

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool link_of(struct walk *w, const char *path, char *to, size_t size)
{
	int r = facts_link(w->f, path, to, size);

	if (facts_ran_out(r))
		w->failed = r;
	return !r;
}

static int list_of(struct walk *w, const char *path, char ***names)
{
	int r = facts_list(w->f, path, names);

	if (facts_ran_out(r))
		w->failed = r;
	return r;
}

static void text_of(struct walk *w, const char *sysfs, const char *file,
		    char *buf, size_t size)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s", sysfs, file);
	r = facts_text(w->f, path, buf, size);
	if (r)
		buf[0] = '\0';
	if (facts_ran_out(r))
		w->failed = r;
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
	for (i = 0; i < n; i++) {
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
	char disk[PATH_MAX], path[PATH_MAX + 32], link[PATH_MAX], **names;
	struct topo_block b = { .kind = "other" };
	int i, n;

	if (depth > MAX_DEPTH) {
		w->failed = -ELOOP;
		return;
	}
	snprintf(disk, sizeof(disk), "%s", sysfs);
	text_of(w, disk, "partition", path, sizeof(path));
	if (path[0])
		*strrchr(disk, '/') = '\0';
	snprintf(b.name, sizeof(b.name), "%s", strrchr(disk, '/') + 1);
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
	for (i = 0; i < n; i++) {
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
	return w.failed;
}
