// SPDX-License-Identifier: MIT
/* What a PCI config space says about a port. */
#include <errno.h>

#include "topo.h"

static unsigned int word(const unsigned char *c, size_t at)
{
	return c[at] | c[at + 1] << 8;
}

static uint32_t dword(const unsigned char *c, size_t at)
{
	return word(c, at) | (uint32_t)word(c, at + 2) << 16;
}

/*
 * PCI Express port type, ACS, our switch's counters.  Without root, Linux
 * gives the first 64 bytes, which do not reach the capabilities.
 */
int topo_config(struct topo_node *n, const unsigned char *c, size_t len)
{
	static const enum topo_port ports[16] = {
		[4] = TOPO_ROOT_PORT, [5] = TOPO_UPSTREAM,
		[6] = TOPO_DOWNSTREAM, [7] = TOPO_BRIDGE, [8] = TOPO_BRIDGE,
	};
	size_t at, express = 0;
	int hops;

	if (len < 64)
		return -EPROTO;
	if (word(c, 0) == 0xffff)
		return -EIO;
	if (!(word(c, 6) & 0x10)) {	/* no capabilities at all */
		n->port_guessed = false;
		return 0;
	}
	if (len < 256)
		return -EACCES;
	for (at = c[0x34] & 0xfc, hops = 0; at; at = c[at + 1] & 0xfc) {
		if (at < 0x40 || ++hops > 48)
			return -EPROTO;
		if (c[at] == 0x10)
			express = at;
	}
	n->port_guessed = false;
	if (!express)
		return 0;
	n->port = ports[word(c, express + 2) >> 4 & 0xf];
	if (len < 4096)		/* conventional access to config space only */
		return -EOPNOTSUPP;
	for (at = 0x100, hops = 0; at; at = dword(c, at) >> 20 & 0xffc) {
		if (at < 0x100 || at + 8 > len || ++hops > 960)
			return -EPROTO;
		if (!dword(c, at) || dword(c, at) == 0xffffffff)
			break;
		if (word(c, at) == 0x000d) {
			n->acs_cap = (uint16_t)word(c, at + 4);
			n->acs_ctrl = (uint16_t)word(c, at + 6);
		}
		if (word(c, at) == 0x000b && n->vendor == TOPO_OURS &&
		    (n->device == TOPO_OUR_UPSTREAM ||
		     n->device == TOPO_OUR_DOWNSTREAM) &&
		    word(c, at + 4) == 0x504c)
			n->vsec = (unsigned int)at;
	}
	return 0;
}
