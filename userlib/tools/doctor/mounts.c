// SPDX-License-Identifier: MIT
/* peerlane doctor: mounts, and the block devices below them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "dio.h"
#include "doctor.h"
#include "mountinfo.h"
#include "tool.h"

/* ---- block devices ---- */

static void add_block(void *arg, const struct topo_block *b)
{
	struct mount *m = arg;

	if (m->n_blocks < DOC_MAX_BLOCKS)
		m->block[m->n_blocks++] = *b;
}

void doc_read_blocks(struct doctor *d, struct mount *m)
{
	char path[PATH_MAX], link[512];
	const char *name = strrchr(m->source, '/');
	int r;

	m->n_blocks = 0;
	/* btrfs and others have a device number of their own */
	if (strncmp(m->device, "0:", 2))
		snprintf(path, sizeof(path), "/sys/dev/block/%s", m->device);
	else if (!strncmp(m->source, "/dev/", 5) && name)
		snprintf(path, sizeof(path), "/sys/class/block/%s", name + 1);
	else
		return;
	r = facts_link(d->f, path, link, sizeof(link));
	if (!r)
		r = topo_blocks(d->f, link, add_block, m);
	if (r && r != -ENOENT)
		doc_missing(d, "the block devices below the mounts", path, r);
}

/* ---- mounts ---- */

static bool parse_mount(struct mount *m, char *line)
{
	struct mount_line l;

	memset(m, 0, sizeof(*m));
	if (!mount_parse(line, &l))
		return false;
	m->id = l.id;
	snprintf(m->device, sizeof(m->device), "%s", l.device);
	snprintf(m->point, sizeof(m->point), "%s", l.point);
	snprintf(m->type, sizeof(m->type), "%s", l.type);
	snprintf(m->source, sizeof(m->source), "%s", l.source);
	snprintf(m->options, sizeof(m->options), "%s,%s", l.options,
		 l.super_options);
	return true;
}

void doc_read_mounts(struct doctor *d)
{
	char *text = malloc(FACTS_VALUE_MAX), *line, *save;
	struct mount *m;
	int r;

	if (!text)
		return;
	/* the last one is for a block device, see doc_find_mount() */
	d->mounts = calloc(1, sizeof(*d->mounts));
	r = facts_text(d->f, "/proc/self/mountinfo", text, FACTS_VALUE_MAX);
	if (r)
		doc_missing(d, "the mounts", "/proc/self/mountinfo", r);
	line = r ? NULL : strtok_r(text, "\n", &save);
	for (; line && d->mounts; line = strtok_r(NULL, "\n", &save)) {
		m = realloc(d->mounts,
			    ((size_t)d->n_mounts + 2) * sizeof(*d->mounts));
		if (!m)
			break;
		d->mounts = m;
		if (!parse_mount(&m[d->n_mounts], line))
			continue;
		doc_read_blocks(d, &m[d->n_mounts]);
		d->n_mounts++;
	}
	free(text);
}

static struct mount *mount_of_device(struct doctor *d, const char *device)
{
	struct mount *m = &d->mounts[d->n_mounts];

	memset(m, 0, sizeof(*m));
	snprintf(m->device, sizeof(m->device), "%s", device);
	snprintf(m->source, sizeof(m->source), "%s", d->path);
	strcpy(m->type, "block");
	doc_read_blocks(d, m);
	return m;
}

static struct mount *mount_of_path(struct doctor *d, const char *path)
{
	struct mount *best = NULL;
	size_t n, length = 0;
	int i;

	/* of two on the same point the later one is on top */
	for (i = 0; i < d->n_mounts; i++) {
		n = strlen(d->mounts[i].point);
		if (n == 1)
			n = 0;	/* "/" */
		if (strncmp(path, d->mounts[i].point, n) ||
		    (path[n] && path[n] != '/') || (best && n < length))
			continue;
		best = &d->mounts[i];
		length = n;
	}
	return best;
}

static int find_live(struct doctor *d)
{
	/* stx_mnt_id, which old headers lack */
	enum { MNT_ID = 0x1000, MNT_ID_AT = 0x90 };
	struct statx sx;
	char full[PATH_MAX], device[32];
	uint64_t id;
	int i;

	/* no open, so that no device is touched */
	if (statx(AT_FDCWD, d->path, 0, STATX_BASIC_STATS | STATX_DIOALIGN |
		  MNT_ID, &sx)) {
		complain("%s: %s", d->path, strerror(errno));
		return -errno;
	}
	d->dio_known = dio_align(&sx, &d->dio_memory, &d->dio_offset);
	if (S_ISBLK(sx.stx_mode)) {
		snprintf(device, sizeof(device), "%u:%u", sx.stx_rdev_major,
			 sx.stx_rdev_minor);
		d->mount = mount_of_device(d, device);
		return 0;
	}
	if (!S_ISREG(sx.stx_mode) && !S_ISDIR(sx.stx_mode)) {
		complain("%s is neither a file nor a folder nor a block device",
			 d->path);
		return -EINVAL;
	}
	/* the alignment told is that of the folder itself */
	if (S_ISDIR(sx.stx_mode))
		d->dio_known = false;
	if (sx.stx_mask & MNT_ID) {
		memcpy(&id, (char *)&sx + MNT_ID_AT, sizeof(id));
		for (i = 0; i < d->n_mounts; i++)
			if (d->mounts[i].id == (long long)id)
				d->mount = &d->mounts[i];
	}
	if (!d->mount && realpath(d->path, full))
		d->mount = mount_of_path(d, full);
	return 0;
}

int doc_find_mount(struct doctor *d)
{
	char path[PATH_MAX], link[512];

	if (!d->mounts)
		return -ENOMEM;
	if (facts_live(d->f)) {
		int r = find_live(d);

		if (r)
			return r;
	} else if (!strncmp(d->path, "/dev/", 5)) {
		snprintf(path, sizeof(path), "/sys/class/block/%s",
			 strrchr(d->path, '/') + 1);
		if (!facts_link(d->f, path, link, sizeof(link)))
			d->mount = mount_of_device(d, "0:0");
	} else if (d->path[0] == '/') {
		d->mount = mount_of_path(d, d->path);
	} else {
		complain("%s: in a record only whole paths mean anything",
			 d->path);
		return -EINVAL;
	}
	if (d->mount)
		return 0;
	complain("%s: no mount of %s holds it", d->path,
		 facts_live(d->f) ? "this machine" : "the record");
	return -ENOENT;
}
