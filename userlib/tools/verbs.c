// SPDX-License-Identifier: MIT
/* libibverbs, found at run time, and the choice of a device, port and GID. */
#include "verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct verbs verbs;

bool verbs_load(char *why, size_t size)
{
	static bool loaded;
	void *lib;

	if (loaded)
		return true;
	lib = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!lib) {
		snprintf(why, size, "no RDMA library (%s): install libibverbs1 "
			 "and ibverbs-providers (Debian) or rdma-core",
			 dlerror());
		return false;
	}
#define FIND(member, symbol) do { \
	*(void **)&verbs.member = dlsym(lib, symbol); \
	if (!verbs.member) { \
		snprintf(why, size, "libibverbs.so.1 has no " symbol \
			 ": it is older than rdma-core 34"); \
		dlclose(lib); \
		return false; \
	} \
} while (0)
#define X(type, name, args) FIND(name, "ibv_" #name);
	VERBS_FUNCTIONS(X)
#undef X
	FIND(query_gid_table, "_ibv_query_gid_table");
	loaded = true;
	return true;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static bool choose_gid(struct verbs_port *p, int wanted, char *why, size_t size)
{
	struct ibv_gid_entry e[256];
	const struct ibv_gid_entry *best = NULL;
	ssize_t i, n;

	n = verbs.query_gid_table(p->ctx, e, sizeof(e) / sizeof(e[0]), 0,
				  sizeof(e[0]));
	if (n < 0) {
		snprintf(why, size, "the GIDs of %s cannot be read: %s",
			 p->device, strerror((int)-n));
		return false;
	}
	for (i = 0; i < n; i++) {
		if (e[i].port_num != p->port)
			continue;
		if (wanted >= 0) {
			if (e[i].gid_index == (uint32_t)wanted)
				best = &e[i];
			continue;
		}
		if (!p->roce) {
			if (!best)
				best = &e[i];
		} else if (e[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
			   (!best || (is_ipv4(&e[i].gid) &&
				      !is_ipv4(&best->gid)))) {
			best = &e[i];
		}
	}
	if (!best && wanted >= 0)
		snprintf(why, size, "%s port %u has no GID with index %d: look "
			 "at /sys/class/infiniband/%s/ports/%u/gids", p->device,
			 p->port, wanted, p->device, p->port);
	else if (!best)
		snprintf(why, size, "%s port %u has no RoCE v2 GID: give its "
			 "network device an address (ip addr add)", p->device,
			 p->port);
	if (!best)
		return false;
	p->gid = best->gid;
	p->gid_index = best->gid_index;
	return true;
}

/* The device is open: an active port of it, @wanted or the first one. */
static bool choose_port(struct verbs_port *p, unsigned int wanted)
{
	unsigned int i;

	for (i = wanted ? wanted : 1; i <= (wanted ? wanted : 255); i++) {
		memset(&p->attr, 0, sizeof(p->attr));
		if (verbs.query_port(p->ctx, (uint8_t)i, &p->attr))
			return false;	/* past the last one */
		if (p->attr.state == IBV_PORT_ACTIVE) {
			p->port = (uint8_t)i;
			p->roce = p->attr.link_layer ==
				  IBV_LINK_LAYER_ETHERNET;
			return true;
		}
	}
	return false;
}

static bool open_one(struct verbs_port *p, struct ibv_device *dev,
		     unsigned int port, char *why, size_t size)
{
	char path[PATH_MAX];

	snprintf(p->device, sizeof(p->device), "%s",
		 verbs.get_device_name(dev));
	p->ctx = verbs.open_device(dev);
	if (!p->ctx) {
		snprintf(why, size, "%s cannot be opened: %s%s", p->device,
			 strerror(errno), errno == EACCES || errno == EPERM ?
			 " (this user may not use /dev/infiniband/uverbs*)" :
			 "");
		return false;
	}
	if (!choose_port(p, port)) {
		if (port)
			snprintf(why, size, "port %u of %s is not there or not "
				 "active: ip link set NETDEV up, or rdma link",
				 port, p->device);
		else
			snprintf(why, size, "no port of %s is active: ip link "
				 "set NETDEV up, or rdma link", p->device);
		verbs.close_device(p->ctx);
		p->ctx = NULL;
		return false;
	}
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device",
		 p->device);
	p->software = access(path, F_OK) != 0;
	return true;
}

bool verbs_open(struct verbs_port *p, const char *device, unsigned int port,
		int gid_index, char *why, size_t size)
{
	struct ibv_device **list;
	bool found = false;
	int i, n;

	memset(p, 0, sizeof(*p));
	if (!verbs_load(why, size))
		return false;
	list = verbs.get_device_list(&n);
	if (!list || !n) {
		snprintf(why, size, "there is no RDMA device that libibverbs "
			 "knows%s%s: for soft-RoCE, rdma link add rxe0 type rxe "
			 "netdev NETDEV", list ? "" : ": ",
			 list ? "" : strerror(errno));
		if (list)
			verbs.free_device_list(list);
		return false;
	}
	if (device)
		snprintf(why, size, "there is no RDMA device %s: "
			 "/sys/class/infiniband has the names", device);
	for (i = 0; i < n && !found; i++)
		if (!device || !strcmp(device, verbs.get_device_name(list[i])))
			found = open_one(p, list[i], port, why, size);
	verbs.free_device_list(list);
	if (found && !choose_gid(p, gid_index, why, size)) {
		verbs_close(p);
		found = false;
	}
	return found;
}

void verbs_close(struct verbs_port *p)
{
	if (p->ctx)
		verbs.close_device(p->ctx);
	p->ctx = NULL;
}
