/* SPDX-License-Identifier: MIT */
/* An RDMA device, a port of it and an address there: the choice. */
#ifndef PEERLANE_NIC_H
#define PEERLANE_NIC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs.h"	/* of core: libibverbs at run time */

struct nic_port {
	struct ibv_context *ctx;
	char device[64];
	uint8_t port;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint32_t gid_index;
	bool roce;
	bool software;		/* no PCI device below it: rxe, siw */
};

/*
 * Opens @device (NULL: the first one with an active port), its port @port (0:
 * the first active one), and picks a GID: @gid_index, or with -1 RoCE v2 of an
 * IPv4 address, then any RoCE v2.  False: @why tells it all.
 */
bool nic_open(struct nic_port *p, const char *device, unsigned int port,
	      int gid_index, char *why, size_t size);
void nic_close(struct nic_port *p);

/* What programs find there for IPv4, best first: ipv4, ipv6, link-local, other
 * (not RoCE v2), none; and its place in the table, -1: none */
const char *nic_gid_kind(struct ibv_context *ctx, uint8_t port, int n,
			 int *index);

/* Bytes of a path MTU */
static inline unsigned int nic_mtu(unsigned int mtu)
{
	return 128u << mtu;
}

#endif
