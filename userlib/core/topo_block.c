// SPDX-License-Identifier: MIT
/*
 * The drives below a block device: partitions, multipath, RAID, device mapper.  Also in
 * libcufile, with facts.c and nothing else of this folder.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "topo.h"

#define MAX_DEPTH	8
#define MAX_BLOCKS	1024	/* each as often as it is stood on */

/* Callers' stacks may be small: each path is here once, and none in each level. */
struct walk {
	struct facts *f;
	void (*each)(void *arg, const struct topo_block *b);
	void *arg;
	int blocks;
	int failed;		/* it ends: memory or files ran out, it goes round */
	int unread;		/* it goes on: the first that could not be read */
	char disk[PATH_MAX];	/* the folder of the one that is looked at */
	char path[PATH_MAX + 64];
};

static bool starts(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* At least four digits of domain */
bool topo_is_address(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= 4 && n <= 8 && s[n] == ':' && isxdigit(s[n + 1]) &&
	       isxdigit(s[n + 2]) && s[n + 3] == ':' && isxdigit(s[n + 4]) &&
	       isxdigit(s[n + 5]) && s[n + 6] == '.' && s[n + 7] >= '0' &&
	       s[n + 7] <= '7' && !s[n + 8];
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

/* What w->path leads to is looked at from now on. */
static bool follow(struct walk *w)
{
	int r = note(w, facts_link(w->f, w->path, w->disk, sizeof(w->disk)));

	if (r == -ENODATA && !w->unread)
		w->unread = r;
	return !r;
}

static int list_of(struct walk *w, const char *path, char ***names)
{
	return note(w, facts_list(w->f, path, names));
}

static void text_of(struct walk *w, const char *file, char *buf, size_t size)
{
	snprintf(w->path, sizeof(w->path), "%s/%s", w->disk, file);
	if (note(w, facts_text(w->f, w->path, buf, size)))
		buf[0] = '\0';
}

static void nvme(struct walk *w, struct topo_block *b)
{
	char *rest = w->disk, *part;

	while ((part = strsep(&rest, "/")))
		if (topo_is_address(part))	/* the last one is the drive's */
			snprintf(b->address, sizeof(b->address), "%s", part);
	b->kind = b->address[0] ? "nvme" : "nvme-fabric";
	w->each(w->arg, b);
}

/* Of one drive that several controllers lead to, they are what counts. */
static void controllers(struct walk *w)
{
	char subsystem[PATH_MAX], **names;
	unsigned int number;
	int i, n, len;

	*strrchr(w->disk, '/') = '\0';
	strcpy(subsystem, w->disk);
	n = list_of(w, subsystem, &names);
	for (i = 0; i < n && !w->failed; i++) {
		struct topo_block b = { .name = "" };

		len = 0;
		if (sscanf(names[i], "nvme%u%n", &number, &len) != 1 ||
		    names[i][len])
			continue;
		snprintf(w->path, sizeof(w->path), "%s/%.40s", subsystem, names[i]);
		if (!follow(w))
			continue;
		snprintf(b.name, sizeof(b.name), "%s", names[i]);
		nvme(w, &b);
	}
	if (n >= 0)
		facts_list_free(names);
}

/* The device mapper's UUIDs begin with a word for who made it. */
static void dm(struct walk *w, struct topo_block *b)
{
	char uuid[256];		/* the kernel's longest has 128 */

	b->kind = "dm";
	text_of(w, "dm/uuid", uuid, sizeof(uuid));
	uuid[strcspn(uuid, "-")] = '\0';
	snprintf(b->detail, sizeof(b->detail), "%.63s", uuid);
}

static void below(struct walk *w, int depth)
{
	struct topo_block b = { .kind = "other" };
	char partition[16], **names, *slash;
	int i, n;

	if (depth > MAX_DEPTH) {
		w->failed = -ELOOP;
		return;
	}
	if (++w->blocks > MAX_BLOCKS) {
		w->failed = -E2BIG;
		return;
	}
	text_of(w, "partition", partition, sizeof(partition));
	slash = strrchr(w->disk, '/');
	if (partition[0] && slash && slash != w->disk) {
		snprintf(b.part, sizeof(b.part), "%.63s", slash + 1);
		*slash = '\0';
		slash = strrchr(w->disk, '/');
	}
	snprintf(b.name, sizeof(b.name), "%.63s", slash ? slash + 1 : w->disk);
	if (strstr(w->disk, "/nvme-subsystem/")) {
		b.kind = "nvme-head";
		w->each(w->arg, &b);
		controllers(w);
		return;
	}
	if (starts(b.name, "nvme")) {
		nvme(w, &b);
		return;
	}
	if (starts(b.name, "md")) {
		b.kind = "md";
		text_of(w, "md/level", b.detail, sizeof(b.detail));
	} else if (starts(b.name, "dm-")) {
		dm(w, &b);
	} else if (starts(b.name, "loop")) {
		b.kind = "loop";
	}
	w->each(w->arg, &b);
	snprintf(w->path, sizeof(w->path), "%s/slaves", w->disk);
	n = list_of(w, w->path, &names);
	for (i = 0; i < n && !w->failed; i++) {
		snprintf(w->path, sizeof(w->path), "/sys/class/block/%s", names[i]);
		if (follow(w))
			below(w, depth + 1);
	}
	if (n >= 0)
		facts_list_free(names);
}

int topo_blocks(struct facts *f, const char *sysfs,
		void (*each)(void *arg, const struct topo_block *b), void *arg)
{
	struct walk w = { .f = f, .each = each, .arg = arg };

	if (snprintf(w.disk, sizeof(w.disk), "%s", sysfs) >= (int)sizeof(w.disk))
		return -ENAMETOOLONG;
	below(&w, 0);
	return w.failed ? w.failed : w.unread;
}
