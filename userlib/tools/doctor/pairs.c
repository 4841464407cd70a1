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

const char *doc_name(const struct doctor *d, const struct topo_node *n)
{
	const struct topo_dev *dev;
	int i;

	for (i = 0; i < d->t->devs; i++) {
		dev = &d->t->dev[i];
		if (&d->t->node[dev->node] == n)
			return dev->drives && dev->drives[0] ? dev->drives[0] :
			       dev->name[0] ? dev->name : dev->label;
	}
	return topo_port_name(n->port);
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
		if (!strcmp(d->mount->block[k].address, address))
			return true;
	return false;
}

bool doc_gpu_asked(const struct doctor *d, int i)
{
	return d->gpu < 0 || d->gpu == i;
}

bool doc_asked(const struct doctor *d, const struct topo_node *n)
{
	int i;

	for (i = 0; i < doc_gpus(d); i++)
		if (doc_gpu_at(d, i) == n)
			return doc_gpu_asked(d, i);
	for (i = 0; i < doc_drives(d); i++)
		if (doc_drive_at(d, i) == n)
			return doc_drive_asked(d, i);
	return !d->path;	/* NICs */
}

struct topo doc_pci(const struct doctor *d)
{
	struct topo pci = *d->t;

	/* nvidia-fs does not ask the kernel: other rules */
	pci.p2pdma = !(d->nvidia_fs && d->p2pdma == NO);
	return pci;
}

int doc_rank(uint32_t verdict)
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
		better = doc_rank(p.verdict) < doc_rank(pair->verdict) ||
			 (p.verdict == pair->verdict &&
			  p.relation < pair->relation);
		if (*drive >= 0 && better == !!d->path)
			continue;
		*drive = i;
		*pair = p;
	}
	return *drive < 0 ? PLN_VERDICT_UNKNOWN : pair->verdict;
}

bool doc_direct(const struct doctor *d, const char *drive)
{
	struct pln_topo_pair p = { .size = sizeof(p) };
	struct topo pci = doc_pci(d);
	const struct topo_node *g;
	int i, k;

	for (i = 0; i < doc_drives(d); i++) {
		if (strcmp(doc_drive_at(d, i)->address, drive))
			continue;
		for_each_gpu(d, g, k) {
			topo_pair(&pci, device(d, PLN_TOPO_GPU, k),
				  device(d, PLN_TOPO_NVME, i), &p);
			if (p.verdict == PLN_VERDICT_DIRECT)
				return true;
		}
	}
	return false;
}

/* ---- host bridges, distance, links ---- */

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
		if (!doc_gpu_asked(d, i))
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

static bool one_switch(const struct doctor *d, int gpu, int drive)
{
	return topo_common(d->t, (int)(doc_gpu_at(d, gpu) - d->t->node),
			   (int)(doc_drive_at(d, drive) - d->t->node)) >= 0;
}

/* Has it a driver with a direct path? */
static bool is_usable(const struct topo_node *g)
{
	return doc_has_driver(g, "nvidia") || doc_has_driver(g, "peerlane_gpu");
}

/* A drive below the switch of a GPU of the question, for the file to be on */
static bool other_drive(const struct doctor *d, int *gpu, int *drive)
{
	int g, v;

	for (g = 0; g < doc_gpus(d); g++) {
		if (d->gpu < 0 ? !is_usable(doc_gpu_at(d, g)) : d->gpu != g)
			continue;
		for (v = 0; v < doc_drives(d); v++) {
			if (!doc_has_driver(doc_drive_at(d, v), "nvme") ||
			    !one_switch(d, g, v))
				continue;
			*gpu = g;
			*drive = v;
			return true;
		}
	}
	return false;
}

/* A GPU below the switch of all drives of the file */
static bool other_gpu(const struct doctor *d, int *gpu)
{
	int g, v;

	for (g = 0; g < doc_gpus(d); g++) {
		if (doc_gpu_asked(d, g) || !is_usable(doc_gpu_at(d, g)))
			continue;
		for (v = 0; v < doc_drives(d); v++)
			if (doc_drive_asked(d, v) && !one_switch(d, g, v))
				break;
		if (v < doc_drives(d))
			continue;
		*gpu = g;
		return true;
	}
	return false;
}

static bool has_switch(const struct doctor *d)
{
	int i;

	for (i = 0; i < d->t->nodes; i++)
		if (d->t->node[i].port == TOPO_UPSTREAM)
			return true;
	return false;
}

/* GPU and drive have no bridge in common: what there is here to do about it */
static void cure_apart(const struct doctor *d, struct finding *f)
{
	int g, v;

	if (d->path && other_gpu(d, &g)) {
		doc_cure(f, "use %s (%s), which is below the switch of the "
			 "file's drive", doc_label(d, doc_gpu_at(d, g)),
			 doc_gpu_at(d, g)->address);
		doc_cost(f, "none");
	} else if (d->path && other_drive(d, &g, &v)) {
		doc_cure(f, "put the file on %s (%s), which is below the switch "
			 "of %s (%s)", doc_name(d, doc_drive_at(d, v)),
			 doc_drive_at(d, v)->address,
			 doc_label(d, doc_gpu_at(d, g)),
			 doc_gpu_at(d, g)->address);
		doc_cost(f, "the file has to be copied");
	} else if (!has_switch(d)) {
		doc_cure(f, "nothing in this machine: it has no PCIe switch "
			 "that a GPU and a drive could share");
		doc_cost(f, "another machine, or a PCIe switch card");
	}
}

/* Do errors about other things than PCI stage all data? */
static bool staged_anyway(const struct doctor *d)
{
	const struct topo_node *g;
	int i;

	for_each_gpu(d, g, i)
		if (!doc_stop(d, i, NULL, d->now))
			return false;
	return true;
}

/* One finding about all GPUs whose way to a drive is @verdict, or NULL. */
static struct finding *say_pairs(struct doctor *d, const struct rule *r,
				 enum pln_verdict verdict,
				 enum severity severity, const char *how)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, drive, n = 0, all = 0;
	struct finding *f = NULL;

	for (i = 0; i < doc_gpus(d); i++) {
		all += doc_gpu_asked(d, i);
		n += doc_gpu_asked(d, i) && apart(d, i, verdict, &drive, &pair);
	}
	for (i = 0; i < doc_gpus(d); i++) {
		if (!doc_gpu_asked(d, i) || !apart(d, i, verdict, &drive, &pair))
			continue;
		if (!f)
			f = doc_say(d, r, severity, "%d of %d GPUs %s: %s", n,
				    all, how, pair.reason);
		doc_where(f, doc_gpu_at(d, i)->address);
		if (d->path)
			doc_where(f, doc_drive_at(d, drive)->address);
	}
	return f;
}

static void check_untrusted(struct doctor *d, const struct rule *r)
{
	struct finding *f;

	f = say_pairs(d, r, PLN_VERDICT_STAGED, r->severity, d->path ?
		      "cannot be reached by the file's drive" :
		      "can be reached by no drive");
	if (f)
		cure_apart(d, f);
}

static void check_root_complex(struct doctor *d, const struct rule *r)
{
	bool staged = staged_anyway(d);
	struct finding *f;
	char how[128];

	snprintf(how, sizeof(how), "%s%s", d->path ?
		 "are reached through the root complex" :
		 "have no drive below the same switch", staged ?
		 " (it matters once the errors are cured)" : "");
	f = say_pairs(d, r, PLN_VERDICT_ROOT_COMPLEX, staged ? SEV_INFO :
		      r->severity, how);
	if (f)
		cure_apart(d, f);
}

static void check_far_node(struct doctor *d, const struct rule *r)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, drive;
	struct finding *f;

	for (i = 0; i < doc_gpus(d); i++) {
		if (!doc_gpu_asked(d, i))
			continue;
		doc_pair(d, i, &drive, &pair);
		if (drive >= 0 && pair.relation == PLN_RELATION_SYS &&
		    pair.verdict != PLN_VERDICT_STAGED)
			{
			f = doc_say(d, r, r->severity, "%s is on another NUMA "
				    "node than the GPU", d->path ?
				    "the file's drive" : "the nearest drive");
			doc_where(f, doc_gpu_at(d, i)->address);
			if (doc_gpus(d) == 1)
				doc_cure(f, "move the drive into a slot of the "
					 "GPU's processor (NUMA node %d)",
					 doc_gpu_at(d, i)->numa);
		}
	}
}

static void check_nic(struct doctor *d, const struct rule *r)
{
	const struct topo *t = d->t;
	struct finding *f = NULL;
	int i, k, near = 0;

	for (i = 0; i < t->devs; i++) {
		if (t->dev[i].kind != PLN_TOPO_NIC || !doc_gpus(d) || d->path)
			continue;
		for (k = 0; k < doc_gpus(d); k++)
			if (topo_common(t, t->dev[i].node,
					(int)(doc_gpu_at(d, k) - t->node)) >= 0)
				break;
		if (k < doc_gpus(d)) {
			near++;
			continue;
		}
		if (!f)
			f = doc_say(d, r, r->severity,
				    "no GPU is below the same switch as a NIC");
		doc_where(f, t->node[t->dev[i].node].address);
	}
	if (f && !near) {
		doc_cure(f, "move the NIC or the GPU, so that both are below "
			 "one PCIe switch, if there is one");
		doc_cost(f, "work on the machine");
	}
}

/* GB/s of a link: of its transfers, one bit per lane, up to PCIe 2 eight of ten
 * bits are data, from PCIe 3 on 128 of 130, from 6 on nearly all. */
static double bandwidth(const char *speed, int lanes)
{
	double rate = atof(speed);

	return rate * lanes / 8 * (rate <= 5 ? 0.8 : rate <= 32 ? 128 / 130.0 :
				   1);
}

/* NVIDIA's driver slows the link of an idle GPU down: its speed says nothing then, its width does */
static bool at_rest(const struct topo_node *n)
{
	return atof(n->speed) <= 5 && doc_has_driver(n, "nvidia");
}

/* What a port above a device can do, when that is less than the device can */
static bool port_limits(const struct topo *t, const struct topo_node *n)
{
	const struct topo_node *p = n->parent < 0 ? NULL : &t->node[n->parent];

	return p && p->max_width > 0 && p->max_speed[0] &&
	       (p->max_width <= n->width || n->width >= n->max_width) &&
	       (at_rest(n) || atof(p->max_speed) <= atof(n->speed) ||
		atof(n->speed) >= atof(n->max_speed));
}

static void say_link(struct doctor *d, const struct rule *r,
		     const struct topo_node *n)
{
	double now = bandwidth(n->speed, n->width);
	double best = bandwidth(n->max_speed, n->max_width);
	bool idle = n->width >= n->max_width && at_rest(n);
	bool port = !idle && port_limits(d->t, n);
	const char *slot = port ? ", but its slot cannot" : "";
	struct finding *f;

	if (at_rest(n) && !idle)
		f = doc_say(d, r, port ? SEV_INFO : r->severity,
			    "the link has %d lanes, the device can use %d "
			    "(%.1f times as much)%s", n->width, n->max_width,
			    (double)n->max_width / n->width, slot);
	else
		f = doc_say(d, r, idle || port ? SEV_INFO : r->severity,
			    "the link is %.*s GT/s x%d (%.1f GB/s), the device "
			    "can do %.*s GT/s x%d (%.1f GB/s, %.1f times as "
			    "much)%s", (int)strcspn(n->speed, " "), n->speed,
			    n->width, now, (int)strcspn(n->max_speed, " "),
			    n->max_speed, n->max_width, best, best / now, slot);
	doc_where(f, n->address);
	if (idle) {
		doc_cure(f, "look again while the GPU is at work: NVIDIA's "
			 "driver slows the link of an idle GPU down");
		doc_cost(f, "none");
	} else if (port) {
		doc_cure(f, "a slot with %.*s GT/s x%d, if the machine has one",
			 (int)strcspn(n->max_speed, " "), n->max_speed,
			 n->max_width);
	}
}

static void check_link(struct doctor *d, const struct rule *r)
{
	const struct topo_node *n;
	int i;

	if (d->virtual)		/* what is shown there is made up */
		return;
	for (i = 0; i < d->t->devs; i++) {
		n = &d->t->node[d->t->dev[i].node];
		if (doc_asked(d, n) && n->width > 0 && atof(n->speed) > 0 &&
		    (n->width < n->max_width ||
		     atof(n->speed) < atof(n->max_speed)))
			say_link(d, r, n);
	}
}

static const struct rule host_bridge_rules[] = {
	{ "host-bridge-untrusted", SEV_ERROR,
	  "the kernel does not trust this root complex with peer traffic",
	  "GPU and drive meet only in the processor. Not every root complex "
	  "passes peer traffic on, so the kernel has a list of those that do, "
	  "and refuses the others: data is staged in host memory.",
	  "move the drive or the GPU, so that both are below one PCIe switch; "
	  "there is no kernel parameter for the list; a newer kernel may have "
	  "this processor on it (AMD Zen and later always are)",
	  "work on the machine, or a reboot into another kernel",
	  check_untrusted },
	{ "pair-root-complex", SEV_WARNING,
	  "data goes through the root complex",
	  "Peer traffic then goes up to the processor and down again: slower "
	  "than below a switch, above all for reads of GPU memory.",
	  "move the drive or the GPU, so that both are below one PCIe switch "
	  "(peerlane topo --tree shows what is where)", "work on the machine",
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
	{ "link-slow", SEV_WARNING,
	  "the link of a device is slower or narrower than it could be",
	  "The bandwidth of a link is its speed times its lanes, and no "
	  "transfer is faster than the slowest link on its way.",
	  "reseat the card; use a slot with that speed and all lanes wired; check "
	  "whether the firmware limits the speed or splits the slot "
	  "(bifurcation); dmesg shows errors of the link (AER)",
	  "work on the machine", check_link },
};

const struct section doc_host_bridge = {
	"host-bridge", "host bridges, distance and links", look_host_bridge,
	host_bridge_rules, sizeof(host_bridge_rules) / sizeof(struct rule), true
};
