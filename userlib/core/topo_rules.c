// SPDX-License-Identifier: MIT
/*
 * Judging: how far two devices are apart, which way data goes between them and
 * what decides it.
 *
 * Two deciders.  For NVMe drives, and for GPUs whose driver uses it, the
 * kernel's P2PDMA: without ACS redirect on any port between two devices below
 * a common bridge, they use bus addresses; else the way leads through the host
 * bridge if the kernel trusts that one, and to host memory if not.  NVIDIA's
 * driver gives out addresses of its own (to peer-memory clients, for dma-bufs)
 * without asking P2PDMA, so there the hardware alone decides.
 */
#include "topo.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

const char *topo_port_name(enum topo_port port)
{
	static const char *const names[] = {
		"endpoint", "root port", "upstream port", "downstream port",
		"bridge",
	};

	return names[port];
}

const char *topo_acs_text(uint16_t word, char *buf, size_t size)
{
	static const char names[7][3] = {
		"SV", "TB", "RR", "CR", "UF", "EC", "DT",
	};
	size_t used = 0;
	int i;

	buf[0] = '\0';
	for (i = 0; i < 7 && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s%c",
					 i ? " " : "", names[i],
					 word & 1 << i ? '+' : '-');
	return buf;
}

/* ---- the tree ---- */

/* From a node to one above it, or to the root bus with -1: links passed. */
static int hops(const struct topo *t, int from, int to)
{
	int n = 0;

	for (; from != to && from >= 0; from = t->node[from].parent)
		n++;
	return n;
}

int topo_common(const struct topo *t, int a, int b)
{
	int c;

	for (; a >= 0; a = t->node[a].parent)
		for (c = b; c >= 0; c = t->node[c].parent)
			if (a == c)
				return a;
	return -1;
}

static bool redirects(const struct topo_node *n)
{
	return !n->acs_error && n->acs_ctrl & PLN_ACS_REDIRECT;
}

/* The kernel looks at both ends, at all bridges between, and at the common
 * one. */
static int on_path(const struct topo *t, int a, int b, int *nodes, int max,
		   bool (*is)(const struct topo_node *))
{
	int c = topo_common(t, a, b), n = 0, i;

	for (i = a; i >= 0; i = t->node[i].parent) {
		if (is(&t->node[i]) && n++ < max)
			nodes[n - 1] = i;
		if (i == c)
			break;
	}
	for (i = b; i >= 0 && i != c; i = t->node[i].parent)
		if (is(&t->node[i]) && n++ < max)
			nodes[n - 1] = i;
	return n;
}

int topo_redirects(const struct topo *t, int a, int b, int *nodes, int max)
{
	return on_path(t, a, b, nodes, max, redirects);
}

static bool hidden(const struct topo_node *n)
{
	return n->acs_error != 0;
}

static enum pln_relation relation(const struct topo *t, int a, int b)
{
	int c = topo_common(t, a, b);

	if (a == b)
		return PLN_RELATION_SELF;
	/* device, downstream port, upstream port: one switch */
	if (c >= 0)
		return hops(t, a, c) <= 2 && hops(t, b, c) <= 2 ?
		       PLN_RELATION_PIX : PLN_RELATION_PXB;
	if (t->node[a].host == t->node[b].host)
		return PLN_RELATION_PHB;
	return t->node[a].numa == t->node[b].numa ? PLN_RELATION_NODE :
	       PLN_RELATION_SYS;
}

/* ---- verdicts ---- */

static void __attribute__((format(printf, 3, 4)))
judge(struct pln_topo_pair *p, enum pln_verdict verdict, const char *fmt, ...)
{
	size_t used = strlen(p->reason);
	va_list ap;

	p->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(p->reason + used, sizeof(p->reason) - used, fmt, ap);
	va_end(ap);
}

/* "ACS redirect is on at A, B; " or the same about what cannot be read. */
static void name_them(const struct topo *t, struct pln_topo_pair *p,
		      const int *nodes, int n, const char *what)
{
	size_t used;
	int i;

	used = strlen(p->reason);
	snprintf(p->reason + used, sizeof(p->reason) - used, "%s ", what);
	for (i = 0; i < n && i < 8; i++) {
		used = strlen(p->reason);
		snprintf(p->reason + used, sizeof(p->reason) - used, "%s%s",
			 i ? ", " : "", t->node[nodes[i]].address);
	}
	used = strlen(p->reason);
	snprintf(p->reason + used, sizeof(p->reason) - used,
		 i < n ? " and more; " : "; ");
}

/* By way of the host bridge, if the kernel trusts it. */
static void judge_host(const struct topo *t, int a, int b,
		       struct pln_topo_pair *p)
{
	const struct topo_host *ha = &t->host[t->node[a].host],
			       *hb = &t->host[t->node[b].host], *bad;
	bool same = ha == hb;

	if (t->zen == 1) {
		judge(p, PLN_VERDICT_ROOT_COMPLEX, "the kernel trusts the root "
		      "complex of AMD Zen (%s)", t->cpu);
		return;
	}
	bad = !ha->known || !topo_host_allowed(ha->vendor, ha->device, same) ?
	      ha : !hb->known ||
	      !topo_host_allowed(hb->vendor, hb->device, same) ? hb : NULL;
	if (!bad)
		judge(p, PLN_VERDICT_ROOT_COMPLEX, "host bridge %04x:%04x is "
		      "on the list of %s", ha->vendor, ha->device,
		      topo_host_list);
	else if (t->zen < 0)
		judge(p, PLN_VERDICT_UNKNOWN, "whether the kernel trusts the "
		      "root complex depends on the CPU, which is not known");
	else if (bad->known)
		judge(p, PLN_VERDICT_STAGED, "host bridge %04x:%04x of %s is "
		      "not on the list of %s", bad->vendor, bad->device,
		      bad->name, topo_host_list);
	else
		judge(p, PLN_VERDICT_STAGED, "%s has no device by which the "
		      "kernel could know its host bridge", bad->name);
}

/* Whether nothing can be said, as the ACS of a port between is not known. */
static bool judge_hidden(const struct topo *t, int a, int b,
			 struct pln_topo_pair *p)
{
	int list[8], n = on_path(t, a, b, list, 8, hidden);

	if (!n)
		return false;
	name_them(t, p, list, n, "ACS is not known at");
	judge(p, PLN_VERDICT_UNKNOWN, "%s",
	      strerror(-t->node[list[0]].acs_error));
	return true;
}

/* @drive: one of them is one, and then the memory is mapped by a program */
static void judge_p2pdma(const struct topo *t, int a, int b, bool drive,
			 struct pln_topo_pair *p)
{
	int p2pdma = t->p2pdma_old && !drive ? 1 : t->p2pdma;
	int list[8], n, c = topo_common(t, a, b);

	if (p2pdma < 0) {
		judge(p, PLN_VERDICT_UNKNOWN, "whether the kernel has P2PDMA "
		      "is not known");
		return;
	}
	if (!p2pdma) {
		judge(p, PLN_VERDICT_STAGED, t->p2pdma_old ? "Linux %s has "
		      "P2PDMA for kernel users only" : "the kernel has no "
		      "CONFIG_PCI_P2PDMA (%s)", t->p2pdma_old ? t->kernel :
		      t->p2pdma_source);
		return;
	}
	if (c < 0) {
		judge(p, PLN_VERDICT_UNKNOWN, "no bridge in common; ");
		judge_host(t, a, b, p);
		return;
	}
	n = topo_redirects(t, a, b, list, 8);
	if (n) {
		name_them(t, p, list, n, "ACS redirect is on at");
		judge_host(t, a, b, p);
		return;
	}
	if (judge_hidden(t, a, b, p))
		return;
	judge(p, PLN_VERDICT_DIRECT, "both are below %s, and no port between "
	      "has ACS redirect on: bus addresses", t->node[c].address);
}

static void judge_nvidia(const struct topo *t, int a, int b,
			 struct pln_topo_pair *p)
{
	int list[8], n, c = topo_common(t, a, b);
	const struct topo_node *na = &t->node[a], *nb = &t->node[b];

	if (c < 0) {
		judge(p, PLN_VERDICT_ROOT_COMPLEX, "no bridge in common; "
		      "NVIDIA's driver does not ask the kernel, whether this "
		      "root complex forwards, and how fast, is up to it");
		return;
	}
	n = topo_redirects(t, a, b, list, 8);
	if (n) {
		name_them(t, p, list, n, "ACS redirect is on at");
		judge(p, PLN_VERDICT_ROOT_COMPLEX, "NVIDIA's driver does not "
		      "ask the kernel");
		return;
	}
	if (na->iommu == PLN_IOMMU_TRANSLATED ||
	    nb->iommu == PLN_IOMMU_TRANSLATED) {
		judge(p, PLN_VERDICT_ROOT_COMPLEX, "the IOMMU translates for "
		      "%s: what NVIDIA's driver maps for a peer is no bus "
		      "address", na->iommu == PLN_IOMMU_TRANSLATED ?
		      na->address : nb->address);
		return;
	}
	if (judge_hidden(t, a, b, p))
		return;
	if (na->iommu == PLN_IOMMU_UNKNOWN ||
	    nb->iommu == PLN_IOMMU_UNKNOWN) {
		judge(p, PLN_VERDICT_UNKNOWN, "whether an IOMMU translates is "
		      "not known");
		return;
	}
	judge(p, PLN_VERDICT_DIRECT, "both are below %s, no port between has "
	      "ACS redirect on, and no IOMMU translates",
	      t->node[c].address);
}

/* A GPU with NVIDIA's driver, or that would have it */
static bool is_nvidia(const struct topo *t, const struct topo_dev *d)
{
	const struct topo_node *n = &t->node[d->node];

	return d->kind == PLN_TOPO_GPU && n->vendor == 0x10de &&
	       strcmp(n->driver, "peerlane_gpu");
}

static void measure(const struct topo *t, int a, int b, struct pln_topo_pair *p)
{
	int c = topo_common(t, a, b);

	*p = (struct pln_topo_pair){ .size = sizeof(*p) };
	p->relation = relation(t, a, b);
	/* with nothing in common, the kernel counts up to the root bus */
	p->distance = (uint32_t)(hops(t, a, c) + hops(t, b, c));
}

/* Of P2PDMA between a GPU and what takes memory of programs */
static void add_nvidia(const struct topo *t, int a, int b, struct pln_topo_pair *p)
{
	if ((is_nvidia(t, &t->dev[a]) || is_nvidia(t, &t->dev[b])) &&
	    (p->verdict == PLN_VERDICT_DIRECT ||
	     p->verdict == PLN_VERDICT_ROOT_COMPLEX))
		judge(p, (enum pln_verdict)p->verdict, "; NVIDIA's driver must "
		      "offer its memory to P2PDMA (static BAR1)");
}

/* Ports whose ACS is not known do not matter if the kernel takes either way. */
static void judge_either(const struct topo *t, int a, int b, struct pln_topo_pair *p)
{
	struct pln_topo_pair up = { .size = sizeof(up) };

	if (p->verdict != PLN_VERDICT_UNKNOWN || t->p2pdma != 1 ||
	    topo_common(t, a, b) < 0 || on_path(t, a, b, NULL, 0, redirects))
		return;
	judge_host(t, a, b, &up);
	if (up.verdict == PLN_VERDICT_ROOT_COMPLEX)
		judge(p, PLN_VERDICT_ROOT_COMPLEX, ", but if they redirect, %s",
		      up.reason);
}

void topo_pair(const struct topo *t, int a, int b, struct pln_topo_pair *p)
{
	const struct topo_dev *da = &t->dev[a], *db = &t->dev[b];
	bool nvidia = is_nvidia(t, da) || is_nvidia(t, db);
	bool nvme = da->kind == PLN_TOPO_NVME || db->kind == PLN_TOPO_NVME;

	measure(t, da->node, db->node, p);
	if (is_nvidia(t, da) && is_nvidia(t, db) && a != b)
		strcpy(p->reason, "without NVLink: ");
	if (a == b)
		judge(p, PLN_VERDICT_DIRECT, "the same device");
	else if (nvidia && (!nvme || (!t->p2pdma && t->nvidia_fs)))
		judge_nvidia(t, da->node, db->node, p);
	else
		judge_p2pdma(t, da->node, db->node, nvme, p);
	if (nvme && t->p2pdma == 1)
		add_nvidia(t, a, b, p);
}

void topo_p2pdma(const struct topo *t, int a, int b, struct pln_topo_pair *p)
{
	int na = t->dev[a].node, nb = t->dev[b].node;

	measure(t, na, nb, p);
	if (a == b) {
		judge(p, PLN_VERDICT_DIRECT, "the same device");
		return;
	}
	judge_p2pdma(t, na, nb, true, p);
	judge_either(t, na, nb, p);
	add_nvidia(t, a, b, p);
}

/* ---- the nearest GPU ---- */

/* Smaller is better; what is unknown may be direct. */
static unsigned int rank(const struct pln_topo_pair *p)
{
	unsigned int verdict = p->verdict == PLN_VERDICT_UNKNOWN ? 0 :
			       p->verdict - 1;

	return verdict << 24 | p->relation << 16 |
	       (p->distance & 0xffff);
}

int topo_nearest(const struct topo *t, const int *devs, int n, char *reason,
		 size_t size)
{
	struct pln_topo_pair p, worst, best = { .size = 0 }, second = best;
	int gpu, i, worst_dev = 0, gpus = 0, first = -1, best_dev = 0,
	    next = -1;

	for (gpu = 0; gpu < t->devs; gpu++) {
		if (t->dev[gpu].kind != PLN_TOPO_GPU)
			continue;
		gpus++;
		for (i = 0; i < n; i++) {
			topo_pair(t, gpu, devs[i], &p);
			if (!i || rank(&p) > rank(&worst)) {
				worst = p;
				worst_dev = devs[i];
			}
		}
		if (first < 0 || rank(&worst) < rank(&best)) {
			second = best;
			next = first;
			best = worst;
			best_dev = worst_dev;
			first = gpu;
		} else if (next < 0 || rank(&worst) < rank(&second)) {
			second = worst;
			next = gpu;
		}
	}
	if (first < 0) {
		snprintf(reason, size, "this machine has no GPU");
		return -ENODEV;
	}
	n = snprintf(reason, size, "%s to %s %s: %s, %s", t->dev[first].label,
		     t->dev[best_dev].name[0] ? t->dev[best_dev].name :
		     t->dev[best_dev].label, t->node[t->dev[best_dev].node].
		     address, pln_relation_name(best.relation),
		     pln_verdict_name(best.verdict));
	if (n < 0 || (size_t)n >= size)
		return first;
	if (next < 0)
		snprintf(reason + n, size - (size_t)n, "; it is the only GPU");
	else
		snprintf(reason + n, size - (size_t)n, "; %s%s: %s, %s",
			 gpus > 2 ? "next is " : "", t->dev[next].label,
			 pln_relation_name(second.relation),
			 pln_verdict_name(second.verdict));
	return first;
}
