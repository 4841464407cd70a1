// SPDX-License-Identifier: MIT
/* peerlane doctor: size and use of BAR1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define SMALL_BAR1	(256LL << 20)
#define MEM_64		0x00100000ULL	/* IORESOURCE_MEM_64 */

struct bar1 {
	int resource;		/* its number in sysfs */
	unsigned long long start;
	long long size;
};

/*
 * BAR1 is the second base address.  A 64-bit BAR takes two resources, so that
 * it is resource 2 where BAR0 has 64 bits, as on Hopper.  False: not known.
 */
static bool find_bar1(struct doctor *d, const struct topo_node *g,
		      struct bar1 *bar)
{
	unsigned long long end, flags = 0;
	char text[2048], *line = text;
	int i;

	if (doc_text(d, "BAR sizes", text, sizeof(text),
		     "/sys/bus/pci/devices/%s/resource", g->address) ||
	    sscanf(text, "%*x %*x %llx", &flags) != 1)
		return false;
	bar->resource = flags & MEM_64 ? 2 : 1;
	for (i = 0; i < bar->resource && line; i++) {
		line = strchr(line, '\n');
		line += !!line;
	}
	if (!line || sscanf(line, "%llx %llx", &bar->start, &end) != 2 ||
	    end < bar->start)
		return false;
	bar->size = end ? (long long)(end - bar->start + 1) : 0;
	return true;
}

/* An attribute of Peerlane's driver, -ENOENT for others. */
static long long ours(struct doctor *d, const struct topo_node *g,
		      const char *name)
{
	if (!doc_has_driver(g, "peerlane_gpu"))
		return -ENOENT;
	return doc_number(d, "/sys/bus/pci/devices/%s/%s", g->address, name);
}

static void look_bar1(struct doctor *d)
{
	const struct topo_node *g;
	struct bar1 bar;
	char key[32];
	long long v;
	int i;

	for_each_gpu(d, g, i) {
		snprintf(key, sizeof(key), "gpu%d_size", i);
		if (find_bar1(d, g, &bar))
			doc_note(d, key, "%lld", bar.size);
		v = ours(d, g, "vram_size");
		snprintf(key, sizeof(key), "gpu%d_vram", i);
		if (v >= 0)
			doc_note(d, key, "%lld", v);
		v = ours(d, g, "bar1_free");
		snprintf(key, sizeof(key), "gpu%d_free", i);
		if (v >= 0)
			doc_note(d, key, "%lld", v);
	}
}

static void check_unassigned(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	struct bar1 bar;
	int i;

	for_each_gpu(d, g, i)
		if (find_bar1(d, g, &bar) && (!bar.size || !bar.start))
			doc_where(doc_say(d, r, r->severity,
					  "BAR1 has no address"),
				  g->address);
}

bool doc_bar1_small(struct doctor *d, const struct topo_node *g)
{
	long long vram = ours(d, g, "vram_size");
	struct bar1 bar;

	return find_bar1(d, g, &bar) && bar.size &&
	       (vram >= 0 ? bar.size < vram : bar.size <= SMALL_BAR1);
}

/* A slot beside it has a piece of the bridge's window, even when it is empty */
static const char resize_cost[] =
	"until the next reboot only; at ENOSPC (no space left on device) the "
	"bridges above have no room, so remove the other ports before (echo 1 "
	"> /sys/bus/pci/devices/PORT/remove), and echo 1 > /sys/bus/pci/rescan "
	"after it";

static void check_small(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	struct finding *f;
	long long vram, sizes;
	struct bar1 bar;
	char text[32], can[64];
	int i, largest;

	for_each_gpu(d, g, i) {
		if (!doc_bar1_small(d, g))
			continue;
		find_bar1(d, g, &bar);
		/* bit N: it can be made 2^N MiB large */
		sizes = doc_text(d, NULL, text, sizeof(text),
				 "/sys/bus/pci/devices/%s/resource%d_resize",
				 g->address, bar.resource) ? 0 :
				 strtoll(text, NULL, 16);
		largest = sizes >= bar.size >> 20 << 1 ?
			  63 - __builtin_clzll((uint64_t)sizes) : -1;
		/* then the cure is for it alone, so must the text be */
		can[0] = '\0';
		if (largest >= 0)
			snprintf(can, sizeof(can), ", %s can have %lld",
				 doc_label(d, g), 1LL << largest);
		vram = ours(d, g, "vram_size");
		if (vram >= 0)
			f = doc_say(d, r, SEV_WARNING,
				    "BAR1 shows %lld of %lld MiB%s",
				    bar.size >> 20, vram >> 20, can);
		else	/* NVIDIA's driver makes its pages for all or nothing */
			f = doc_say(d, r, doc_has_driver(g, "nvidia") &&
				    d->p2pdma == YES && !d->nvidia_fs ?
				    r->severity : SEV_WARNING,
				    "BAR1 has %lld MiB%s", bar.size >> 20, can);
		doc_where(f, g->address);
		if (largest >= 0 && !g->driver[0]) {
			doc_cure(f, "echo %d > /sys/bus/pci/devices/BDF/"
				 "resource%d_resize (%lld MiB)", largest,
				 bar.resource, 1LL << largest);
			doc_cost(f, resize_cost);
		} else if (largest >= 0) {
			doc_cure(f, "stop what uses the GPU; echo BDF > "
				 "/sys/bus/pci/drivers/%s/unbind; echo %d > "
				 "/sys/bus/pci/devices/BDF/resource%d_resize "
				 "(%lld MiB); echo BDF > "
				 "/sys/bus/pci/drivers/%s/bind", g->driver,
				 largest, bar.resource, 1LL << largest,
				 g->driver);
			doc_cost(f, resize_cost);
		} else if (vram >= 0) {
			doc_cure(f, "give the GPU a larger BAR1 in the "
				 "topology file: bar1=%lldM", vram >> 20);
			doc_cost(f, "none");
		}
	}
}

static void check_full(struct doctor *d, const struct rule *r)
{
	const struct topo_node *g;
	struct bar1 bar;
	long long left;
	int i;

	for_each_gpu(d, g, i) {
		left = ours(d, g, "bar1_free");
		if (left >= 0 && find_bar1(d, g, &bar) && left < bar.size / 10)
			doc_where(doc_say(d, r, r->severity,
					  "%lld of %lld KiB of BAR1 are "
					  "free", left >> 10, bar.size >> 10),
				  g->address);
	}
}

static const struct rule bar1_rules[] = {
	{ "bar1-unassigned", SEV_ERROR, "BAR1 has no address",
	  "The firmware found no room for it: no device can reach the GPU's "
	  "memory.",
	  "enable \"Above 4G decoding\" in the firmware set-up, or boot with "
	  "pci=realloc", "a reboot; very old operating systems may not boot",
	  check_unassigned },
	{ "bar1-small", SEV_ERROR, "BAR1 shows a part of the GPU's memory",
	  "Peers reach only what BAR1 shows. When all of it is in use, further "
	  "buffers are staged in host memory. NVIDIA's driver makes "
	  "peer-to-peer pages only of a BAR1 that shows all memory (static "
	  "BAR1): it makes none for this GPU.",
	  "enable \"Above 4G decoding\" and \"Resizable BAR\" in the firmware "
	  "set-up; on A40, L40 and RTX cards NVIDIA's displaymodeselector sets "
	  "the compute mode with a large BAR1",
	  "a reboot; in compute mode the display outputs are off",
	  check_small },
	{ "bar1-full", SEV_WARNING, "BAR1 is almost all in use",
	  "New mappings fail or push older ones out; transfers of further "
	  "buffers are staged in host memory.",
	  "deregister buffers that are not in use; find who holds them: fuser "
	  "-v /dev/peerlane-gpu* /dev/nvidia*, nvidia-smi -q -d MEMORY",
	  "none", check_full },
};

const struct section doc_bar1 = {
	"bar1", "size and use of BAR1", look_bar1,
	bar1_rules, sizeof(bar1_rules) / sizeof(struct rule), true
};
