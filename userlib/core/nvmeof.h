/* SPDX-License-Identifier: MIT */
/*
 * Drives of other hosts, by NVMe over Fabrics with RDMA: which RDMA devices have the
 * connections of a controller.  sysfs does not say that; the list of connections does
 * that the kernel gives by netlink.  Also in libcufile, with facts.c and topo_block.c.
 */
#ifndef PEERLANE_CORE_NVMEOF_H
#define PEERLANE_CORE_NVMEOF_H

#include <stdbool.h>

#include "topo.h"

#define NVMEOF_CARDS_MAX	64

struct nvmeof {
	bool rdma;		/* its transport; with another, no device does its DMA */
	unsigned int n;
	char card[NVMEOF_CARDS_MAX][64];	/* mlx5_0 */
};

/*
 * Asks for those of the controller @b, whose kind is nvme-fabric.  0: @x has one or more,
 * or the transport is another one.  -EBADMSG: its address cannot be read; -ENOTCONN: no
 * device has a connection to it; -E2BIG: there are more devices than NVMEOF_CARDS_MAX;
 * -EAGAIN: a device went away each time that it was asked; -ETIMEDOUT: the kernel does
 * not answer; else what netlink says.
 */
int nvmeof_cards(struct facts *f, const struct topo_block *b, struct nvmeof *x);

/* Such an error in words */
const char *nvmeof_error(int r);

#endif
