// SPDX-License-Identifier: MIT
/* peerlane doctor: IOMMU and ACS. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define MAX_BRIDGES	256

/* ---- IOMMU ---- */

static void look_iommu(struct doctor *d)
{
	const struct topo_node *n;
	int i;

	for (i = 0; i < d->t->devs; i++) {
		n = &d->t->node[d->t->dev[i].node];
		if (!doc_asked(d, n))
			continue;
		if (n->iommu == PLN_IOMMU_UNKNOWN)
			doc_missing(d, "the IOMMU's mode",
				    "/sys/kernel/iommu_groups", -ENOENT);
		if (n->group >= 0)
			doc_note(d, n->address, "%s, group %d",
				 pln_iommu_name(n->iommu), n->group);
		else
			doc_note(d, n->address, "%s",
				 pln_iommu_name(n->iommu));
	}
}

/* How many GPUs have a direct way to a drive? */
static int direct_gpus(const struct doctor *d)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, drive, n = 0;

	for (i = 0; i < doc_gpus(d); i++)
		if (doc_gpu_asked(d, i) &&
		    doc_pair(d, i, &drive, &pair) == PLN_VERDICT_DIRECT)
			n++;
	return n;
}

/* Pairs below a switch of a GPU and another device that the IOMMU alone keeps
 * from being direct; *@a and *@b are of the first. */
static int translated_pairs(const struct doctor *d, const char **a,
			    const char **b)
{
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	struct topo pci = doc_pci(d);
	int i, k, n = 0, list[1];

	for (i = 0; i < pci.devs && pci.dev[i].kind == PLN_TOPO_GPU; i++) {
		for (k = i + 1; k < pci.devs; k++) {
			int na = pci.dev[i].node, nb = pci.dev[k].node;

			if ((d->path && pci.dev[k].kind != PLN_TOPO_NVME) ||
			    !doc_asked(d, &d->t->node[na]) ||
			    !doc_asked(d, &d->t->node[nb]) ||
			    topo_common(&pci, na, nb) < 0 ||
			    topo_redirects(&pci, na, nb, list, 1))
				continue;
			topo_pair(&pci, i, k, &pair);
			if (pair.verdict != PLN_VERDICT_ROOT_COMPLEX)
				continue;
			if (!n++) {
				*a = pci.dev[i].label;
				*b = doc_name(d, &d->t->node[nb]);
			}
		}
	}
	return n;
}

static void check_translated(struct doctor *d, const struct rule *r)
{
	struct finding *f = NULL;
	const struct topo_node *n;
	const char *a, *b;
	int i, pairs = translated_pairs(d, &a, &b);

	for (i = 0; i < d->t->devs; i++) {
		n = &d->t->node[d->t->dev[i].node];
		if (!doc_asked(d, n) || n->iommu != PLN_IOMMU_TRANSLATED)
			continue;
		if (!f && pairs)
			f = doc_say(d, r, r->severity,
				    "the IOMMU translates addresses: %d pair%s "
				    "below a switch (such as %s and %s) go%s "
				    "through the root complex", pairs,
				    pairs == 1 ? "" : "s", a, b,
				    pairs == 1 ? "es" : "");
		else if (!f)
			f = doc_say(d, r, direct_gpus(d) ? SEV_INFO :
				    r->severity,
				    "the IOMMU translates addresses");
		doc_where(f, n->address);
	}
}

static const struct rule iommu_rules[] = {
	{ "iommu-translated", SEV_WARNING, "the IOMMU translates addresses",
	  "Peer traffic that goes up to the root complex is translated there: "
	  "each miss costs a walk of page tables. The kernel also turns ACS "
	  "redirect on when an IOMMU is in use. Below a switch, NVMe drives "
	  "still use bus addresses (P2PDMA), but what NVIDIA's driver "
	  "maps for a NIC or another GPU are the IOMMU's addresses, so that "
	  "this traffic goes up to the root complex.",
	  "boot with iommu=pt (and intel_iommu=on or amd_iommu=on), or turn the "
	  "IOMMU off in the firmware set-up",
	  "iommu=pt: a faulty device or driver can write anywhere in memory; "
	  "VFIO still works. Off: no VFIO", check_translated },
};

const struct section doc_iommu = {
	"iommu", "IOMMU mode and groups", look_iommu,
	iommu_rules, sizeof(iommu_rules) / sizeof(struct rule), true
};

/* ---- ACS ---- */

struct redirects {
	int bridge[MAX_BRIDGES], n;
	int pairs, staged;
	int a, b;		/* devices of the first pair, by node */
};

/* The pairs that ACS alone keeps from being direct: of a GPU and another. */
static void find_redirects(const struct doctor *d, struct redirects *x)
{
	struct topo pci = doc_pci(d);
	struct pln_topo_pair pair = { .size = sizeof(pair) };
	int i, k, m, n, at, list[MAX_BRIDGES];
	const struct topo_node *a, *b;

	memset(x, 0, sizeof(*x));
	for (i = 0; i < pci.devs; i++) {
		if (pci.dev[i].kind != PLN_TOPO_GPU)
			continue;
		a = &d->t->node[pci.dev[i].node];
		for (k = 0; k < pci.devs; k++) {
			b = &d->t->node[pci.dev[k].node];
			if ((pci.dev[k].kind == PLN_TOPO_GPU &&
			     (d->path || k <= i)) ||
			    !doc_asked(d, a) || !doc_asked(d, b) ||
			    topo_common(&pci, pci.dev[i].node,
					pci.dev[k].node) < 0)
				continue;
			n = topo_redirects(&pci, pci.dev[i].node,
					   pci.dev[k].node, list, MAX_BRIDGES);
			if (n <= 0)
				continue;
			if (!x->pairs++) {
				x->a = pci.dev[i].node;
				x->b = pci.dev[k].node;
			}
			topo_pair(&pci, i, k, &pair);
			x->staged += pair.verdict == PLN_VERDICT_STAGED;
			for (m = 0; m < n && m < MAX_BRIDGES; m++) {
				for (at = 0; at < x->n; at++)
					if (x->bridge[at] == list[m])
						break;
				if (at == x->n && x->n < MAX_BRIDGES)
					x->bridge[x->n++] = list[m];
			}
		}
	}
}

static void look_acs(struct doctor *d)
{
	const struct topo_node *n;
	char text[64];
	int i;

	for (i = 0; i < d->t->nodes; i++) {
		n = &d->t->node[i];
		if (n->port == TOPO_ENDPOINT)
			continue;
		if (n->acs_error)
			doc_missing(d, "the ACS control bits of bridges",
				    n->address, n->acs_error);
		else
			doc_note(d, n->address, "%s, ACS %s",
				 topo_port_name(n->port), !n->acs_cap ? "none" :
				 topo_acs_text(n->acs_ctrl, text,
					       sizeof(text)));
	}
}

static void cure_redirect(struct doctor *d, struct finding *o,
			  const struct redirects *x)
{
	const struct topo_node *n, *first = &d->t->node[x->bridge[0]];
	char list[MAX_BRIDGES * 14], now[MAX_BRIDGES * 48], id[32] = "";
	size_t at = 0, now_at = 0;
	bool same = true;
	int i;

	list[0] = now[0] = '\0';
	for (i = 0; i < x->n; i++) {
		n = &d->t->node[x->bridge[i]];
		same = same && n->vendor == first->vendor &&
		       n->device == first->device;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i ? ";" : "", n->address);
		now_at += (size_t)snprintf(now + now_at, sizeof(now) - now_at,
					   "%ssetpci -s %s ECAP_ACS+6.w=0:2c",
					   i ? "; " : "", n->address);
	}
	if (x->n > 4) {
		now_at = (size_t)snprintf(now, sizeof(now), "for port in");
		for (i = 0; i < x->n; i++)
			now_at += (size_t)snprintf(now + now_at,
						   sizeof(now) - now_at, " %s",
				d->t->node[x->bridge[i]].address);
		snprintf(now + now_at, sizeof(now) - now_at,
			 "; do setpci -s $port ECAP_ACS+6.w=0:2c; done");
	}
	if (same)
		snprintf(id, sizeof(id), "pci:%04x:%04x", first->vendor,
			 first->device);
	/* 6.11 has more control, and a fault with lists that 6.14 mended */
	doc_cure(o, "boot with \"pci=disable_acs_redir=%s\"%s%s%s%s%s%s%s; to "
		 "try it until the next reset: %s, then load the GPU's driver "
		 "again",
		 same ? id : list,
		 same ? " (all such ports) or \"pci=disable_acs_redir=" : "",
		 same ? list : "", same ? "\"" : "",
		 d->version >= 611 ? ", or \"pci=config_acs=x0x00xx@" : "",
		 d->version >= 611 ? same ? id : list : "",
		 d->version >= 611 ? "\"" : "",
		 d->version >= 611 && d->version < 614 && !same ?
		 " (before 6.14 a list may be misread: name one port, or all of "
		 "a kind as pci:VENDOR:DEVICE)" : "", now);
}

static void check_redirect(struct doctor *d, const struct rule *r)
{
	struct finding *o;
	struct redirects x;
	int i;

	find_redirects(d, &x);
	if (!x.pairs)
		return;
	o = doc_say(d, r, x.staged && !direct_gpus(d) ? r->severity :
		    SEV_WARNING,
		    "ACS sends peer traffic of %d pair%s (such as %s and %s) up "
		    "to the root complex%s, at %d bridge%s", x.pairs,
		    x.pairs == 1 ? "" : "s", doc_name(d, &d->t->node[x.a]),
		    doc_name(d, &d->t->node[x.b]),
		    x.staged ? ", which the kernel does not trust with it" : "",
		    x.n, x.n == 1 ? "" : "s");
	for (i = 0; i < x.n; i++)
		doc_where(o, d->t->node[x.bridge[i]].address);
	cure_redirect(d, o, &x);
}

static void check_unheeded(struct doctor *d, const struct rule *r)
{
	struct redirects x;
	char text[4096];
	const char *at;

	if (doc_text(d, NULL, text, sizeof(text), "/proc/cmdline"))
		return;
	at = strstr(text, "disable_acs_redir=");
	if (!at)
		at = strstr(text, "config_acs=");
	find_redirects(d, &x);
	if (at && x.pairs)
		doc_where(doc_say(d, r, r->severity,
				  "the kernel was given \"%.*s\", and still "
				  "redirects", (int)strcspn(at, " \""), at),
			  d->t->node[x.bridge[0]].address);
}

/* QEMU's own switch: no ACS, and yet all goes through the IOMMU */
static void check_qemu_switch(struct doctor *d, const struct rule *r)
{
	const struct topo_node *n;
	struct finding *f;
	int i, k;

	for (i = 0; i < doc_gpus(d); i++) {
		const struct topo_node *g = doc_gpu_at(d, i);

		if (!doc_gpu_asked(d, i) || g->iommu != PLN_IOMMU_TRANSLATED)
			continue;
		for (k = g->parent; k >= 0; k = n->parent) {
			n = &d->t->node[k];
			if (n->vendor == 0x104c && n->device == 0x8233) {
				f = doc_say(d, r, r->severity,
					"%s is below QEMU's xio3130 switch "
					"and an IOMMU that translates",
					doc_label(d, g));
				doc_where(f, n->address);
				doc_where(f, g->address);
				break;
			}
		}
	}
}

static const struct rule acs_rules[] = {
	{ "acs-redirect", SEV_ERROR,
	  "ACS sends peer traffic up to the root complex",
	  "Two devices below one switch could talk inside it. With redirect on "
	  "(RR, CR or EC) every request goes up to the processor and down "
	  "again: twice the traffic on the uplink and often a fifth of the "
	  "speed; where the kernel does not trust the root complex, data is "
	  "staged in host memory.",
	  "boot with \"pci=disable_acs_redir=BDF;BDF...\" (Linux 4.20, also "
	  "pci:VENDOR:DEVICE for all ports of a kind), or "
	  "\"pci=config_acs=x0x00xx@BDF;...\" (Linux 6.11); to try it until the "
	  "next reset: setpci -s BDF ECAP_ACS+6.w=0:2c",
	  "a reboot; the devices below that switch then share one IOMMU group "
	  "and cannot be given to different virtual machines (VFIO), and the "
	  "IOMMU no longer checks what they write to each other",
	  check_redirect },
	{ "acs-parameter-unheeded", SEV_WARNING,
	  "a kernel parameter against ACS redirect has no effect",
	  "The address or ID has changed (bus numbers change with "
	  "cards), or firmware or a tool turned redirect on again; Linux 6.11 "
	  "to 6.13 may misread a list of devices.",
	  "name the ports by id: pci=disable_acs_redir=pci:VENDOR:DEVICE; look "
	  "for \"ACS\" in dmesg", "as acs-redirect", check_unheeded },
	{ "acs-qemu-switch", SEV_ERROR,
	  "QEMU's own switch corrupts peer traffic",
	  "Its ports have no ACS, so the kernel lets peers use bus addresses, "
	  "but QEMU sends all their traffic through the IOMMU, which refuses "
	  "it. The IO reports success and the data is wrong.",
	  "use model=peerlane for the switch, or iommu=off or passthrough for "
	  "the machine, in the topology file", "none", check_qemu_switch },
};

const struct section doc_acs = {
	"acs", "ACS control bits of bridges", look_acs,
	acs_rules, sizeof(acs_rules) / sizeof(struct rule), true
};

