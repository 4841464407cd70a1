// SPDX-License-Identifier: MIT
/* peerlane doctor: drives of other hosts, by NVMe over Fabrics with RDMA. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "nvmeof.h"

#define CLASS		"/sys/class/nvme"
#define CARDS		"/peerlane/nvmeof/%s"	/* where they are told */
/* Since then nvme-rdma takes memory of devices */
#define SINCE		702

/* The controller of a block device that topo_blocks() has found */
static const char *controller(struct doctor *d, const struct topo_block *b,
			      char *buf, size_t size)
{
	/* without multipath that is the disk */
	if (strchr(b->name + 4, 'n'))
		doc_link_name(d, buf, size, "/sys/class/block/%s/device",
			      b->name);
	else
		snprintf(buf, size, "%s", b->name);
	return buf;
}

static bool by_rdma(struct doctor *d, const char *name)
{
	char transport[32];

	return !doc_text(d, NULL, transport, sizeof(transport),
			 CLASS "/%s/transport", name) &&
	       !strcmp(transport, "rdma");
}

bool doc_by_rdma(struct doctor *d, const struct topo_block *b)
{
	char name[64];

	return !strcmp(b->kind, "nvme-fabric") &&
	       by_rdma(d, controller(d, b, name, sizeof(name)));
}

/* Calls @each for each such drive below the file, or of the machine, with the name of
 * its block device, and that of its controller. */
static void for_each_drive(struct doctor *d,
			   void (*each)(struct doctor *d, const char *block,
					const char *name, void *arg), void *arg)
{
	char name[64], **names;
	int i, n;

	if (d->path) {
		for (i = 0; d->mount && i < d->mount->n_blocks; i++)
			if (doc_by_rdma(d, &d->mount->block[i]))
				each(d, d->mount->block[i].name,
				     controller(d, &d->mount->block[i], name,
						sizeof(name)), arg);
		return;
	}
	n = facts_list(d->f, CLASS, &names);
	for (i = 0; i < n; i++)
		if (by_rdma(d, names[i]))
			each(d, names[i], names[i], arg);
	if (n >= 0)
		facts_list_free(names);
}

/* ---- their RDMA devices ---- */

/* Asks this machine, so that records have the answer. */
static void ask(struct doctor *d, const char *block, const char *name, void *arg)
{
	struct nvmeof *x = doc_need(calloc(1, sizeof(*x)));
	struct topo_block b = { .kind = "nvme-fabric" };
	char path[128], words[4096] = "";
	unsigned int i;
	size_t at = 0;
	int r;

	(void)block;
	(void)arg;
	snprintf(b.name, sizeof(b.name), "%.63s", name);
	r = nvmeof_cards(d->f, &b, x);
	for (i = 0; !r && i < x->n && at < sizeof(words); i++)
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
				       i ? " " : "", x->card[i]);
	if (r)
		snprintf(words, sizeof(words), "? %s", nvmeof_error(r));
	snprintf(path, sizeof(path), CARDS, name);
	facts_tell(d->f, path, "cards", words);
	free(x);
}

/* Their names; false: why they are not known */
static bool cards_of(struct doctor *d, const char *name, char *words, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), CARDS, name);
	if (doc_value(d, path, "cards", words, size)) {
		snprintf(words, size, "the record does not say");
		return false;
	}
	if (words[0] != '?')
		return true;
	memmove(words, words + 2, strlen(words + 1));
	return false;
}

static void note(struct doctor *d, const char *block, const char *name, void *arg)
{
	char words[4096];
	bool known = cards_of(d, name, words, sizeof(words));

	(void)arg;
	doc_note(d, block, "of another host, by RDMA: %s%s", known ? "" :
		 "which device is not known: ", words);
}

void doc_look_rdma_drives(struct doctor *d)
{
	if (facts_live(d->f))
		for_each_drive(d, ask, NULL);
	for_each_drive(d, note, NULL);
}

/* ---- their ways to GPUs ---- */

/* The index of the topology's device at that node, -1: it is none of them */
static int device_at(const struct doctor *d, const struct topo_node *n)
{
	int i;

	for (i = 0; i < d->t->devs; i++)
		if (&d->t->node[d->t->dev[i].node] == n)
			return i;
	return -1;
}

static const struct topo_node *card_node(struct doctor *d, const char *card)
{
	char address[32];
	int i;

	doc_link_name(d, address, sizeof(address),
		      "/sys/class/infiniband/%s/device", card);
	for (i = 0; i < d->t->devs; i++)
		if (!strcmp(d->t->node[d->t->dev[i].node].address, address))
			return &d->t->node[d->t->dev[i].node];
	return NULL;
}

/* By PCI alone, as doc_pair() */
static enum pln_verdict between(struct doctor *d, const struct topo_node *card,
				int gpu, struct pln_topo_pair *pair)
{
	struct topo pci = doc_pci(d);

	*pair = (struct pln_topo_pair){ .size = sizeof(*pair) };
	topo_p2pdma(&pci, device_at(d, card), device_at(d, doc_gpu_at(d, gpu)),
		    pair);
	return pair->verdict;
}

/* The worst of what was looked at */
struct worst {
	int gpu;
	const char *card;	/* by its name, also where it has no node */
	char name[64];
	const struct topo_node *node;	/* NULL: it is no PCI device */
	struct pln_topo_pair pair;
	bool unknown;		/* of some drive no device is known */
};

static void look_at_card(struct doctor *d, const char *card, struct worst *w)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	const struct topo_node *node = card_node(d, card);

	if (node)
		between(d, node, w->gpu, &pair);
	else
		pair.verdict = PLN_VERDICT_STAGED;
	if (w->card && (!w->node || (node && doc_rank(pair.verdict) <=
					     doc_rank(w->pair.verdict))))
		return;
	snprintf(w->name, sizeof(w->name), "%.63s", card);
	w->card = w->name;
	w->node = node;
	w->pair = pair;
}

static void look_at(struct doctor *d, const char *block, const char *name, void *arg)
{
	char words[4096], *rest = words, *card;
	struct worst *w = arg;

	(void)block;
	if (!cards_of(d, name, words, sizeof(words))) {
		w->unknown = true;
		return;
	}
	while ((card = strsep(&rest, " ")))
		if (*card)
			look_at_card(d, card, w);
}

enum pln_verdict doc_rdma_pair(struct doctor *d, int gpu,
			       const struct topo_node **card,
			       struct pln_topo_pair *pair)
{
	struct worst w = { .gpu = gpu };

	for_each_drive(d, look_at, &w);
	*card = w.node;
	*pair = w.pair;
	return w.card && !w.unknown ? w.pair.verdict : PLN_VERDICT_UNKNOWN;
}

/* ---- rules ---- */

void doc_check_rdma_old(struct doctor *d, const struct rule *r)
{
	int i;

	if (!d->path || d->version >= SINCE || !d->version)
		return;
	for (i = 0; i < d->mount->n_blocks; i++)
		if (doc_by_rdma(d, &d->mount->block[i]))
			doc_where(doc_say(d, r, r->severity,
					  "nvme-rdma of kernel %s does not "
					  "support device memory", d->release),
				  d->mount->block[i].name);
}

/* A GPU that the device reaches, but none of the question */
static bool other_gpu(struct doctor *d, const struct topo_node *card, int *gpu)
{
	struct pln_topo_pair pair;
	int i;

	for (i = 0; card && i < doc_gpus(d); i++) {
		enum pln_verdict v;

		if (doc_gpu_asked(d, i))
			continue;
		v = between(d, card, i, &pair);
		if (v != PLN_VERDICT_DIRECT && v != PLN_VERDICT_ROOT_COMPLEX)
			continue;
		*gpu = i;
		return true;
	}
	return false;
}

/* Another RDMA device, that reaches the GPU; its name in @name */
static const struct topo_node *other_card(struct doctor *d, int gpu, char *name,
					  size_t size)
{
	const struct topo_node *n, *found = NULL;
	struct pln_topo_pair pair;
	char **names;
	int i, count = facts_list(d->f, "/sys/class/infiniband", &names);

	for (i = 0; i < count && !found; i++) {
		n = card_node(d, names[i]);
		if (!n || between(d, n, gpu, &pair) != PLN_VERDICT_DIRECT)
			continue;
		snprintf(name, size, "%s", names[i]);
		found = n;
	}
	if (count >= 0)
		facts_list_free(names);
	return found;
}

static void cure(struct doctor *d, struct finding *f, const char *name, int gpu,
		 const struct topo_node *card)
{
	const struct topo_node *n;
	char other[64], ports[256] = "";
	int g, i, redirects, list[8];
	size_t at = 0;

	if (d->gpu >= 0 && other_gpu(d, card, &g)) {
		doc_cure(f, "use %s (%s), which the RDMA device reaches",
			 doc_label(d, doc_gpu_at(d, g)),
			 doc_gpu_at(d, g)->address);
		doc_cost(f, "none");
		return;
	}
	n = other_card(d, gpu, other, sizeof(other));
	if (n) {
		doc_cure(f, "connect the drive by %s (%s), which reaches %s: nvme "
			 "disconnect -d %s; nvme connect -t rdma ... "
			 "--host-traddr ADDRESS, one of %s's", other, n->address,
			 doc_label(d, doc_gpu_at(d, gpu)), name, other);
		return;
	}
	redirects = topo_redirects(d->t, (int)(card - d->t->node),
				   (int)(doc_gpu_at(d, gpu) - d->t->node), list, 8);
	for (i = 0; i < redirects && i < 8; i++)
		at += (size_t)snprintf(ports + at, sizeof(ports) - at, "%s%s",
				       i ? ", " : "",
				       d->t->node[list[i]].address);
	if (redirects > 0) {
		doc_cure(f, "turn ACS redirect off at %s: peerlane doctor "
			 "--explain acs-redirect", ports);
		doc_cost(f, "as acs-redirect");
	}
}

/* One drive and one GPU */
static void check_one(struct doctor *d, const struct rule *r, const char *block,
		      const char *name, int gpu, bool only)
{
	struct worst w = { .gpu = gpu };
	const struct topo_node *g = doc_gpu_at(d, gpu);
	struct finding *f;

	look_at(d, block, name, &w);
	if (w.unknown || !w.card || (w.node && w.pair.verdict != PLN_VERDICT_STAGED))
		return;
	if (w.node)
		f = doc_say(d, r, d->path ? r->severity : SEV_WARNING,
			    "%s, the RDMA device of %s, does not reach %s: %s",
			    w.card, name, only ? "any GPU" : doc_label(d, g),
			    w.pair.reason);
	else
		f = doc_say(d, r, d->path ? r->severity : SEV_WARNING,
			    "%s, the RDMA device of %s, is no PCI device", w.card,
			    name);
	doc_where(f, block);
	if (w.node && !only) {
		doc_where(f, g->address);
		cure(d, f, name, gpu, w.node);
	}
}

static void check_drive(struct doctor *d, const char *block, const char *name,
			void *arg)
{
	const struct rule *r = arg;
	const struct topo_node *g;
	char words[4096];
	int i;

	if (!cards_of(d, name, words, sizeof(words))) {
		doc_where(doc_say(d, r, d->path ? r->severity : SEV_WARNING,
				  "which RDMA device %s has is not known: %s",
				  name, words), block);
		return;
	}
	if (d->path) {
		for_each_gpu(d, g, i)
			check_one(d, r, block, name, i, false);
		return;
	}
	/* of a machine's GPUs one is enough */
	for (i = 0; i < doc_gpus(d); i++) {
		struct worst w = { .gpu = i };

		look_at(d, block, name, &w);
		if (w.node && w.pair.verdict != PLN_VERDICT_STAGED)
			return;
	}
	if (i)
		check_one(d, r, block, name, 0, i > 1);
}

void doc_check_rdma_apart(struct doctor *d, const struct rule *r)
{
	for_each_drive(d, check_drive, (void *)r);
}
