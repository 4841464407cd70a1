// SPDX-License-Identifier: MIT
/* What programs see of the tree, and how a file leads to its drives. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mountinfo.h"
#include "sized.h"
#include "topo.h"

struct pln_topo {
	struct facts *facts;
	struct topo *t;
};

const char *pln_relation_name(unsigned int relation)
{
	static const char *const names[] = {
		"X", "PIX", "PXB", "PHB", "NODE", "SYS",
	};

	return relation < 6 ? names[relation] : "?";
}

const char *pln_verdict_name(unsigned int verdict)
{
	static const char *const names[] = {
		"unknown", "direct", "root-complex", "staged",
	};

	return verdict < 4 ? names[verdict] : "?";
}

const char *pln_iommu_name(unsigned int iommu)
{
	static const char *const names[] = {
		"unknown", "off", "passthrough", "translated",
	};

	return iommu < 4 ? names[iommu] : "?";
}

int pln_topo_open(struct pln_topo **topo, const char *record)
{
	struct pln_topo *new;
	int r;

	if (!topo)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	r = facts_open(&new->facts, record);
	if (!r)
		r = topo_build(&new->t, new->facts);
	if (r) {
		pln_topo_close(new);
		return r;
	}
	*topo = new;
	return 0;
}

void pln_topo_close(struct pln_topo *topo)
{
	if (!topo)
		return;
	topo_free(topo->t);
	facts_close(topo->facts);
	free(topo);
}

int pln_topo_count(const struct pln_topo *topo)
{
	return topo ? topo->t->devs : -EINVAL;
}

/* "16.0 GT/s PCIe", "8 GT/s", "Unknown" */
static uint32_t speed_of(const char *text)
{
	unsigned int whole, tenth = 0;

	if (sscanf(text, "%4u.%1u GT/s", &whole, &tenth) < 1)
		return 0;
	return whole * 1000 + tenth * 100;
}

static struct pln_topo_device info_of(const struct topo_node *n)
{
	struct pln_topo_device now = {
		.vendor = n->vendor, .device = n->device, .numa_node = n->numa,
		.link_speed = speed_of(n->speed),
		.max_link_speed = speed_of(n->max_speed),
		.link_width = (uint32_t)n->width,
		.max_link_width = (uint32_t)n->max_width,
		.iommu = n->iommu, .iommu_group = n->group,
	};

	if (!n->acs_error) {
		now.acs = n->acs_cap ? PLN_ACS_PRESENT : PLN_ACS_NONE;
		now.acs_capability = n->acs_cap;
		now.acs_control = n->acs_ctrl;
	}
	strcpy(now.address, n->address);
	strcpy(now.driver, n->driver);
	return now;
}

int pln_topo_info(const struct pln_topo *topo, unsigned int index,
		  struct pln_topo_device *info)
{
	struct pln_topo_device now;
	const struct topo_dev *d;

	if (!topo || !info || !sized_ok(info->size, TOPO_DEVICE_LEAST))
		return -EINVAL;
	if (index >= (unsigned int)topo->t->devs)
		return -ERANGE;
	d = &topo->t->dev[index];
	now = info_of(&topo->t->node[d->node]);
	now.kind = d->kind;
	strcpy(now.label, d->label);
	strcpy(now.name, d->name);
	SIZED_OUT(info, &now);
	return 0;
}

int pln_topo_above(const struct pln_topo *topo, unsigned int index,
		   unsigned int level, struct pln_topo_device *info)
{
	static const uint32_t kinds[] = {
		[TOPO_ENDPOINT] = PLN_TOPO_BRIDGE,	/* it has a device below it */
		[TOPO_ROOT_PORT] = PLN_TOPO_ROOT_PORT,
		[TOPO_UPSTREAM] = PLN_TOPO_UPSTREAM,
		[TOPO_DOWNSTREAM] = PLN_TOPO_DOWNSTREAM,
		[TOPO_BRIDGE] = PLN_TOPO_BRIDGE,
	};
	struct pln_topo_device now;
	int i;

	if (!topo || !info || !sized_ok(info->size, TOPO_DEVICE_LEAST))
		return -EINVAL;
	if (index >= (unsigned int)topo->t->devs)
		return -ERANGE;
	i = topo->t->node[topo->t->dev[index].node].parent;
	while (i >= 0 && level--)
		i = topo->t->node[i].parent;
	if (i < 0)
		return -ERANGE;
	now = info_of(&topo->t->node[i]);
	now.kind = kinds[topo->t->node[i].port];
	SIZED_OUT(info, &now);
	return 0;
}

static int pair_by(void (*rule)(const struct topo *t, int a, int b,
				struct pln_topo_pair *pair),
		   const struct pln_topo *topo, unsigned int a, unsigned int b,
		   struct pln_topo_pair *pair)
{
	struct pln_topo_pair now;

	if (!topo || !pair || !sized_ok(pair->size, TOPO_PAIR_LEAST))
		return -EINVAL;
	if (a >= (unsigned int)topo->t->devs ||
	    b >= (unsigned int)topo->t->devs)
		return -ERANGE;
	rule(topo->t, (int)a, (int)b, &now);
	SIZED_OUT(pair, &now);
	return 0;
}

int pln_topo_between(const struct pln_topo *topo, unsigned int a,
		     unsigned int b, struct pln_topo_pair *pair)
{
	return pair_by(topo_pair, topo, a, b, pair);
}

int pln_topo_p2pdma(const struct pln_topo *topo, unsigned int a,
		    unsigned int b, struct pln_topo_pair *pair)
{
	return pair_by(topo_p2pdma, topo, a, b, pair);
}

/* ---- from a file to drives ---- */

struct search {
	struct topo *t;
	int *devs, n, max;
};

static void found(struct search *s, int dev)
{
	int i;

	for (i = 0; i < s->n && i < s->max; i++)
		if (s->devs[i] == dev)
			return;
	if (s->n < s->max)
		s->devs[s->n] = dev;
	s->n++;
}

static void found_named(struct search *s, const char *name)
{
	char **drive;
	int i;

	for (i = 0; i < s->t->devs; i++) {
		if (!strcmp(name, s->t->dev[i].name))
			found(s, i);
		for (drive = s->t->dev[i].drives; drive && *drive; drive++)
			if (!strcmp(name, *drive))
				found(s, i);
	}
}

static void found_block(void *arg, const struct topo_block *b)
{
	struct search *s = arg;
	int i;

	for (i = 0; b->address[0] && i < s->t->devs; i++)
		if (!strcmp(b->address, s->t->node[s->t->dev[i].node].address))
			found(s, i);
}

/* File systems such as btrfs have device numbers of their own: what is mounted
 * there tells. */
static int mounted(dev_t dev, dev_t *block)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned int ma, mi;
	struct mount_line m;
	char *line = NULL;
	size_t room = 0;
	struct stat st;

	if (!f)
		return -errno;
	*block = 0;
	while (getline(&line, &room, f) > 0) {
		if (!mount_parse(line, &m) ||
		    sscanf(m.device, "%u:%u", &ma, &mi) != 2 ||
		    makedev(ma, mi) != dev)
			continue;
		if (m.source[0] == '/' && !stat(m.source, &st) &&
		    S_ISBLK(st.st_mode))
			*block = st.st_rdev;
	}
	free(line);
	fclose(f);
	return *block ? 0 : -ENOTBLK;
}

static int search_path(struct search *s, const char *what)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct stat st;
	dev_t dev;
	int r;

	if (!facts_live(s->t->facts))
		return -EOPNOTSUPP;
	if (strlen(what) >= sizeof(path))
		return -ENAMETOOLONG;
	if (stat(what, &st)) {
		/* a file that is still to be written: its folder */
		if (errno != ENOENT)
			return -errno;
		strcpy(path, what);
		*(strrchr(path, '/') + 1) = '\0';
		if (stat(path, &st))
			return -errno;
	}
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	if (!major(dev)) {
		r = mounted(dev, &dev);
		if (r)
			return r;
	}
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev),
		 minor(dev));
	r = facts_link(s->t->facts, path, target, sizeof(target));
	return r ? (r == -ENOENT ? -ENOTBLK : r) :
	       topo_blocks(s->t->facts, target, found_block, s);
}

int topo_find(struct topo *t, const char *what, int *devs, int max)
{
	struct search s = { .t = t, .devs = devs, .max = max };
	int i, r;
	char path[PATH_MAX];

	if (!*what)
		return -EINVAL;
	if (strchr(what, '/')) {
		r = search_path(&s, what);
		if (r)
			return r;
		if (!s.n)
			return -ENOTBLK;
		return s.n > max ? -E2BIG : s.n;
	}
	for (i = 0; i < t->devs; i++)
		if (!strcmp(what, t->dev[i].label) ||
		    !strcmp(what, t->node[t->dev[i].node].address))
			found(&s, i);
	if (!s.n)
		found_named(&s, what);
	/* no device: a file of that name */
	if (!s.n && facts_live(t->facts) && !access(what, F_OK)) {
		snprintf(path, sizeof(path), "./%s", what);
		return topo_find(t, path, devs, max);
	}
	return s.n ? s.n > max ? -E2BIG : s.n : -ENOENT;
}

int topo_near(struct topo *t, const char *what, char *reason, size_t size)
{
	int devs[64], r;

	r = topo_find(t, what, devs, 64);
	if (r > 0)
		return topo_nearest(t, devs, r, reason, size);
	if (r == -ENOTBLK)
		snprintf(reason, size, "%.256s is on no NVMe drive of this "
			 "machine", what);
	else
		snprintf(reason, size, "%.256s: %s", what, strerror(-r));
	return r;
}

int pln_topo_nearest(struct pln_topo *topo, const char *what, char *reason,
		     size_t size)
{
	char text[PLN_TOPO_REASON_MAX] = "";
	int r;

	if (!topo || !what || (size && !reason))
		return -EINVAL;
	r = topo_near(topo->t, what, text, sizeof(text));
	if (size)
		snprintf(reason, size, "%s", text);
	return r;
}
