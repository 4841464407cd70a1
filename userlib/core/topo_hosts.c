// SPDX-License-Identifier: MIT
/*
 * Host bridges through which Linux lets peers reach each other, besides those
 * of AMD's Zen and later: by the first device on the root bus, if that is in
 * slot 00.0 or a root port.  The ids are those in drivers/pci/p2pdma.c of the
 * version named below, read from the table in Debian's kernel image 7.2.12.
 * Older kernels know fewer of them.
 */
#include "topo.h"

const char topo_host_list[] = "Linux 7.2";

static const struct {
	uint16_t vendor;
	int device;		/* -1: any */
	bool same;		/* only between devices of the same one */
} allowed[] = {
	{ 0x8086, 0x3c00, true },	/* Intel Xeon E5 */
	{ 0x8086, 0x3c01, true },
	{ 0x8086, 0x2f00, true },	/* Intel Xeon E5 v3, E7 v3 */
	{ 0x8086, 0x2f01, true },
	{ 0x8086, 0x2030, false },	/* Intel Sky Lake-E, root ports */
	{ 0x8086, 0x2031, false },
	{ 0x8086, 0x2032, false },
	{ 0x8086, 0x2033, false },
	{ 0x8086, 0x2020, false },
	{ 0x8086, 0x09a2, false },	/* Intel Ice Lake and later */
	{ 0x8086, 0x0b25, false },	/* Intel accelerators, first on their */
	{ 0x8086, 0x0cfe, false },	/* root bus */
	{ 0x8086, 0x11fb, false },
	{ 0x8086, 0x1212, false },
	{ 0x8086, 0x1216, false },
	{ 0x8086, 0x4940, false },
	{ 0x8086, 0x4942, false },
	{ 0x8086, 0x4944, false },
	{ 0x8086, 0x4946, false },
	{ 0x8086, 0x4948, false },
	{ 0x1ae0, -1, false },		/* Google */
};

bool topo_host_allowed(uint16_t vendor, uint16_t device, bool same)
{
	size_t i;

	for (i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
		if (allowed[i].vendor == vendor &&
		    (allowed[i].device < 0 || allowed[i].device == device))
			return same || !allowed[i].same;
	return false;
}
