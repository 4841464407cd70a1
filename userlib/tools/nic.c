// SPDX-License-Identifier: MIT
/* An RDMA device, a port of it and an address there: the choice. */
#include "nic.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Some tables have 1024 places; those that are taken come first. */
#define MAX_GIDS	64

/* The GID at a place; false: there is none, or it cannot be known */
static bool gid_at(struct ibv_context *ctx, uint8_t port, int i,
		   struct ibv_gid_entry *e)
{
	return pln_verbs.query_gid_ex &&
	       !pln_verbs.query_gid_ex(ctx, port, (uint32_t)i, e, 0, sizeof(*e));
}

const char *nic_gid_kind(struct ibv_context *ctx, uint8_t port, int n,
			 int *index)
{
	static const char *const kinds[] = { "none", "other", "link-local",
					     "ipv6", "ipv4" };
	struct ibv_gid_entry e;
	int i, kind, best = 0;

	*index = -1;
	for (i = 0; i < n && i < MAX_GIDS; i++) {
		if (!gid_at(ctx, port, i, &e))
			continue;
		kind = e.gid_type != IBV_GID_TYPE_ROCE_V2 ? 1 :
		       is_ipv4(&e.gid) ? 4 : e.gid.raw[0] != 0xfe ? 3 : 2;
		if (kind <= best)
			continue;
		best = kind;
		*index = i;
	}
	return kinds[best];
}

static bool choose_gid(struct nic_port *p, int wanted, char *why, size_t size)
{
	struct ibv_gid_entry e;
	bool found = false;
	int i, n = p->attr.gid_tbl_len;

	if (!pln_verbs.query_gid_ex) {
		snprintf(why, size, "libibverbs.so.1 cannot tell GIDs: it is "
			 "older than rdma-core 32");
		return false;
	}
	if (wanted < 0 && n > MAX_GIDS)
		n = MAX_GIDS;
	for (i = wanted < 0 ? 0 : wanted; i < n; i++) {
		if (gid_at(p->ctx, p->port, i, &e) &&
		    (wanted >= 0 || !p->roce ||
		     e.gid_type == IBV_GID_TYPE_ROCE_V2) &&
		    (!found || (is_ipv4(&e.gid) && !is_ipv4(&p->gid)))) {
			p->gid = e.gid;
			p->gid_index = e.gid_index;
			found = true;
		}
		if (wanted >= 0)
			break;
	}
	if (!found && wanted >= 0)
		snprintf(why, size, "%s port %u has no GID with index %d: look "
			 "at /sys/class/infiniband/%s/ports/%u/gids", p->device,
			 p->port, wanted, p->device, p->port);
	else if (!found)
		snprintf(why, size, "%s port %u has no RoCE v2 GID: give its "
			 "network device an address (ip addr add)", p->device,
			 p->port);
	return found;
}

/*
 * The device is open: the active port of it that is wanted, or the first one.
 * False: @why there is none.
 */
static bool choose_port(struct nic_port *p, unsigned int wanted, char *why,
			size_t size)
{
	struct ibv_device_attr dev = { .phys_port_cnt = 0 };
	unsigned int i, first = wanted ? wanted : 1, last;

	if (pln_verbs.query_device(p->ctx, &dev)) {
		snprintf(why, size, "%s does not tell how many ports it has: "
			 "%s", p->device, strerror(errno));
		return false;
	}
	if (wanted > dev.phys_port_cnt) {
		snprintf(why, size, "%s has no port %u: %s", p->device, wanted,
			 dev.phys_port_cnt == 1 ? "its only one is 1" :
			 "rdma link shows those that it has");
		return false;
	}
	last = wanted ? wanted : dev.phys_port_cnt;
	for (i = first; i <= last; i++) {
		memset(&p->attr, 0, sizeof(p->attr));
		if (pln_verbs.query_port(p->ctx, (uint8_t)i, &p->attr)) {
			snprintf(why, size, "port %u of %s cannot be asked: %s",
				 i, p->device, strerror(errno));
			return false;
		}
		if (p->attr.state == IBV_PORT_ACTIVE) {
			p->port = (uint8_t)i;
			p->roce = p->attr.link_layer ==
				  IBV_LINK_LAYER_ETHERNET;
			return true;
		}
	}
	if (wanted)
		snprintf(why, size, "port %u of %s is not active", wanted,
			 p->device);
	else
		snprintf(why, size, "no port of %s is active", p->device);
	snprintf(why + strlen(why), size - strlen(why), ": ip link set NETDEV "
		 "up, and rdma link; InfiniBand: look at the cable and the "
		 "subnet manager");
	return false;
}

static bool open_one(struct nic_port *p, struct ibv_device *dev,
		     unsigned int port, char *why, size_t size)
{
	char path[PATH_MAX];

	snprintf(p->device, sizeof(p->device), "%s",
		 pln_verbs.get_device_name(dev));
	p->ctx = pln_verbs.open_device(dev);
	if (!p->ctx) {
		snprintf(why, size, "%s cannot be opened: %s%s", p->device,
			 strerror(errno), errno == EACCES || errno == EPERM ?
			 " (this user may not use /dev/infiniband/uverbs*)" :
			 "");
		return false;
	}
	if (!choose_port(p, port, why, size)) {
		pln_verbs.close_device(p->ctx);
		p->ctx = NULL;
		return false;
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device",
		 p->device);
	p->software = access(path, F_OK) != 0;
	return true;
}

bool nic_open(struct nic_port *p, const char *device, unsigned int port,
		int gid_index, char *why, size_t size)
{
	struct ibv_device **list;
	bool found = false;
	int i, n;

	memset(p, 0, sizeof(*p));
	if (pln_verbs_load(why, size))
		return false;
	list = pln_verbs.get_device_list(&n);
	if (!list || !n) {
		snprintf(why, size, "there is no RDMA device that libibverbs "
			 "knows%s%s: for soft-RoCE, rdma link add rxe0 type rxe "
			 "netdev NETDEV", list ? "" : ": ",
			 list ? "" : strerror(errno));
		if (list)
			pln_verbs.free_device_list(list);
		return false;
	}
	if (device)
		snprintf(why, size, "there is no RDMA device %s: "
			 "/sys/class/infiniband has the names", device);
	for (i = 0; i < n && !found; i++)
		if (!device || !strcmp(device, pln_verbs.get_device_name(list[i])))
			found = open_one(p, list[i], port, why, size);
	pln_verbs.free_device_list(list);
	if (found && !choose_gid(p, gid_index, why, size)) {
		nic_close(p);
		found = false;
	}
	return found;
}

void nic_close(struct nic_port *p)
{
	if (p->ctx)
		pln_verbs.close_device(p->ctx);
	p->ctx = NULL;
}
