// SPDX-License-Identifier: MIT
/* peerlane doctor: devices by kind and number, pairs of them, links. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "tool.h"

static int count(const struct doctor *d, enum pln_topo_kind kind)
{
	int i, n = 0;

	for (i = 0; i < d->t->devs; i++)
		n += d->t->dev[i].kind == kind;
	return n;
}

/* The index of the topology's device, -1 when there is none. */
static int device(const struct doctor *d, enum pln_topo_kind kind, int number)
{
	int i;

	for (i = 0; i < d->t->devs; i++)
		if (d->t->dev[i].kind == kind && !number--)
			return i;
	return -1;
}

static const struct topo_node *at(const struct doctor *d,
				  enum pln_topo_kind kind, int number)
{
	int i = device(d, kind, number);

	return i < 0 ? NULL : &d->t->node[d->t->dev[i].node];
}

int doc_gpus(const struct doctor *d)
{
	return count(d, PLN_TOPO_GPU);
}

const struct topo_node *doc_gpu_at(const struct doctor *d, int i)
{
	return at(d, PLN_TOPO_GPU, i);
}

int doc_drives(const struct doctor *d)
{
	return count(d, PLN_TOPO_NVME);
}

const struct topo_node *doc_drive_at(const struct doctor *d, int i)
{
	return at(d, PLN_TOPO_NVME, i);
}

const char *doc_label(const struct doctor *d, const struct topo_node *n)
{
	int i;

	for (i = 0; i < d->t->devs; i++)
		if (&d->t->node[d->t->dev[i].node] == n)
			return d->t->dev[i].label;
	return n->address;
}

bool doc_has_driver(const struct topo_node *n, const char *driver)
{
	return !strcmp(n->driver, driver);
}

int doc_find_gpu(struct doctor *d, const char *what)
{
	int i, n = doc_gpus(d);
	char *end, full[32];
	long v = strtol(what, &end, 10);

	if (*what && !*end) {
		if (v >= 0 && v < n)
			return (int)v;
	} else {
		/* the domain may be left out */
		snprintf(full, sizeof(full), "0000:%s", what);
		for (i = 0; i < n; i++) {
			const struct topo_node *g = doc_gpu_at(d, i);

			if (!strcasecmp(what, g->address) ||
			    !strcasecmp(full, g->address) ||
			    !strcasecmp(what, doc_label(d, g)))
				return i;
		}
	}
	complain("there is no GPU %s: %s has %d, numbered from 0", what,
		 facts_live(d->f) ? "this machine" : "the record", n);
	return -1;
}

bool doc_drive_asked(const struct doctor *d, int i)
{
	const char *address = doc_drive_at(d, i)->address;
	int k;

	if (!d->path)
		return true;
	for (k = 0; k < d->mount->n_blocks; k++)
		if (!strcmp(d->mount->block[k].bdf, address))
			return true;
	return false;
}

struct topo doc_pci(const struct doctor *d)
{
	struct topo pci = *d->t;

	/* nvidia-fs does not ask the kernel: other rules */
	pci.p2pdma = !(d->nvidia_fs && d->p2pdma == NO);
	return pci;
}

/* From good to bad */
static int rank(uint32_t verdict)
{
	return verdict == PLN_VERDICT_DIRECT ? 0 :
	       verdict == PLN_VERDICT_ROOT_COMPLEX ? 1 :
	       verdict == PLN_VERDICT_UNKNOWN ? 2 : 3;
}

enum pln_verdict doc_pair(const struct doctor *d, int gpu, int *drive,
			  struct pln_topo_pair *pair)
{
	struct topo pci = doc_pci(d);
	struct pln_topo_pair p = { .size = sizeof(p) };
	int i, n = doc_drives(d), a = device(d, PLN_TOPO_GPU, gpu);

	*drive = -1;
	for (i = 0; i < n; i++) {
		bool better;

		if (!doc_drive_asked(d, i))
			continue;
		topo_pair(&pci, a, device(d, PLN_TOPO_NVME, i), &p);
		better = rank(p.verdict) < rank(pair->verdict) ||
			 (p.verdict == pair->verdict &&
			  p.relation < pair->relation);
		if (*drive >= 0 && better == !!d->path)
			continue;
		*drive = i;
		*pair = p;
	}
	return *drive < 0 ? PLN_VERDICT_UNKNOWN : pair->verdict;
}

/* ---- host bridges, distance, links ---- */

static bool gpu_asked(const struct doctor *d, int i)
{
	return d->gpu < 0 || d->gpu == i;
}

static void look_host_bridge(struct doctor *d)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	const struct topo_host *h;
	int i, drive;

	for (i = 0; i < d->t->hosts; i++) {
		h = &d->t->host[i];
		doc_note(d, h->name, "%04x:%04x%s", h->vendor, h->device,
			 h->known && topo_host_allowed(h->vendor, h->device,
						       true) ?
			 ", on the kernel's list" : "");
	}
	if (d->t->zen < 0)
		doc_missing(d, "the processor's family", "/proc/cpuinfo",
			    -ENOENT);
	doc_note(d, "processor", "%s%s", d->t->cpu,
		 d->t->zen == 1 ? ", trusted" : "");
	for (i = 0; i < doc_gpus(d); i++) {
		if (!gpu_asked(d, i))
			continue;
		doc_pair(d, i, &drive, &pair);
		if (drive >= 0)
			doc_note(d, doc_label(d, doc_gpu_at(d, i)),
				 "%s drive %s: %s, %s",
				 d->path ? "worst" : "best",
				 doc_drive_at(d, drive)->address,
				 pln_verdict_name(pair.verdict), pair.reason);
	}
}

/* Do GPU and drive meet in the root complex only, with this verdict? */
static bool apart(const struct doctor *d, int gpu, enum pln_verdict verdict,
		  int *drive, struct pln_topo_pair *pair)
{
	return doc_pair(d, gpu, drive, pair) == verdict && *drive >= 0 &&
	       topo_common(d->t, (int)(doc_gpu_at(d, gpu) - d->t->node),
			   (int)(doc_drive_at(d, *drive) - d->t->node)) < 0;
}

/* One finding about all GPUs whose way to a drive is @verdict. */
static void say_pairs(struct doctor *d, const struct rule *r,
		      enum pln_verdict verdict, const char *how)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, drive, n = 0, all = 0;
	struct json_object *o = NULL;

	for (i = 0; i < doc_gpus(d); i++) {
		all += gpu_asked(d, i);
		n += gpu_asked(d, i) && apart(d, i, verdict, &drive, &pair);
	}
	for (i = 0; i < doc_gpus(d); i++) {
		if (!gpu_asked(d, i) || !apart(d, i, verdict, &drive, &pair))
			continue;
		if (!o)
			o = doc_say(d, r, n == all ? r->severity : SEV_WARNING,
				    "%d of %d GPUs %s: %s", n, all, how,
				    pair.reason);
		doc_where(o, doc_gpu_at(d, i)->address);
		if (d->path)
			doc_where(o, doc_drive_at(d, drive)->address);
	}
}

static void check_untrusted(struct doctor *d, const struct rule *r)
{
	say_pairs(d, r, PLN_VERDICT_STAGED, d->path ?
		  "cannot be reached by the file's drive" :
		  "can be reached by no drive");
}

static void check_root_complex(struct doctor *d, const struct rule *r)
{
	say_pairs(d, r, PLN_VERDICT_ROOT_COMPLEX, d->path ?
		  "are reached through the root complex" :
		  "have no drive below the same switch");
}

static void check_far_node(struct doctor *d, const struct rule *r)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, drive;

	for (i = 0; i < doc_gpus(d); i++) {
		if (!gpu_asked(d, i))
			continue;
		doc_pair(d, i, &drive, &pair);
		if (drive >= 0 && pair.relation == PLN_RELATION_SYS &&
		    pair.verdict != PLN_VERDICT_STAGED)
			doc_where(doc_say(d, r, r->severity, "%s is on another "
					  "NUMA node than the GPU", d->path ?
					  "the file's drive" :
					  "the nearest drive"),
				  doc_gpu_at(d, i)->address);
	}
}

static void check_nic(struct doctor *d, const struct rule *r)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	struct topo pci = doc_pci(d);
	struct json_object *o = NULL;
	int i, k, direct;

	for (i = 0; i < pci.devs; i++) {
		if (pci.dev[i].kind != PLN_TOPO_NIC || !doc_gpus(d) || d->path)
			continue;
		for (direct = 0, k = 0; k < doc_gpus(d); k++) {
			topo_pair(&pci, i, device(d, PLN_TOPO_GPU, k), &pair);
			direct += pair.verdict == PLN_VERDICT_DIRECT ||
				  pair.verdict == PLN_VERDICT_UNKNOWN;
		}
		if (direct)
			continue;
		if (!o)
			o = doc_say(d, r, r->severity,
				    "no GPU is below the same switch as a NIC");
		doc_where(o, pci.node[pci.dev[i].node].address);
	}
}

static void check_link(struct doctor *d, const struct rule *r)
{
	const struct topo_node *n;
	int i, k;

	if (d->virtual)		/* what is shown there is made up */
		return;
	for (i = 0; i < d->t->devs; i++) {
		n = &d->t->node[d->t->dev[i].node];
		for (k = 0; k < doc_drives(d); k++)
			if (doc_drive_at(d, k) == n && !doc_drive_asked(d, k))
				break;
		if (k < doc_drives(d) || n->width <= 0 ||
		    n->width >= n->max_width)
			continue;
		doc_where(doc_say(d, r, r->severity,
				  "%d of %d lanes are in use", n->width,
				  n->max_width), n->address);
	}
}

static const struct rule host_bridge_rules[] = {
	{ "host-bridge-untrusted", SEV_ERROR,
	  "the kernel does not trust this root complex with peer traffic",
	  "GPU and drive meet only in the processor. Not every root complex "
	  "passes peer traffic on, so the kernel has a list of those that do, "
	  "and refuses the others: data is staged in host memory.",
	  "move the drive (or the GPU) into a slot below the same PCIe switch; "
	  "there is no kernel parameter for the list; a newer kernel may have "
	  "this processor on it (AMD Zen and later always are)",
	  "work on the machine, or a reboot into another kernel",
	  check_untrusted },
	{ "pair-root-complex", SEV_WARNING,
	  "data goes through the root complex",
	  "It does not touch host memory, but goes up to the processor and down "
	  "again: slower than below a switch, above all for reads of GPU "
	  "memory.",
	  "use the drive that is below the GPU's switch (peerlane topo shows "
	  "it), or move the drive there", "work on the machine",
	  check_root_complex },
	{ "pair-far-node", SEV_WARNING, "GPU and drive are on two NUMA nodes",
	  "The data crosses the link between the processors, which is shared "
	  "by all and often has a low limit for peer traffic.",
	  "use a GPU and a drive of one node (peerlane topo; peerlane io --gpu "
	  "near)", "none", check_far_node },
	{ "pair-nic", SEV_INFO, "a NIC has no GPU below the same switch",
	  "RDMA to GPU memory through this NIC goes through the root complex.",
	  "use the NIC that is below the GPU's switch; NCCL does so by itself",
	  "none", check_nic },
	{ "link-narrow", SEV_WARNING, "a device has fewer lanes than it could",
	  "Half the lanes are half the bandwidth.",
	  "seat the card anew, look into a slot with all lanes wired, and "
	  "whether the firmware splits the slot (bifurcation)",
	  "work on the machine", check_link },
};

const struct section doc_host_bridge = {
	"host-bridge", "host bridges, distance and links", look_host_bridge,
	host_bridge_rules, sizeof(host_bridge_rules) / sizeof(struct rule), true
};
