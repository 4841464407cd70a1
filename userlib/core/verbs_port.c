// SPDX-License-Identifier: MIT
/*
 * An RDMA device, a port of it and an address there, and queue pairs from that to
 * a peer's: the same for links and for the tools.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peerlane/peerlane.h"
#include "verbs.h"

/* After a function of libibverbs, whose errno stands behind the words */
#define FAILED(result, ...) ({ \
	int err_ = verbs_errno(result); \
	size_t n_ = (size_t)snprintf(why, size, __VA_ARGS__); \
	if (n_ < size) \
		snprintf(why + n_, size - n_, ": %s%s", pln_strerror(err_), \
			 err_ == -EACCES || err_ == -EPERM ? " (this user may " \
			 "not use /dev/infiniband/uverbs*)" : ""); \
	err_; })

/* ---- addresses ---- */

/* What programs that use IPv4 find in a place of the table, better ones higher */
enum gid_kind { NO_GID, OTHER, LINK_LOCAL, IPV6, IPV4 };

static enum gid_kind gid_at(struct ibv_context *ctx, uint8_t port, bool ethernet,
			    int i, union ibv_gid *gid)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	static const union ibv_gid none;
	struct ibv_gid_entry e = { .gid_type = IBV_GID_TYPE_ROCE_V2 };

	if (verbs_lib.query_gid(ctx, port, i, gid) ||
	    !memcmp(gid, &none, sizeof(none)))
		return NO_GID;
	if (!ethernet || !verbs_lib.query_gid_ex ||
	    verbs_lib.query_gid_ex(ctx, port, (uint32_t)i, &e, 0, sizeof(e)) ||
	    e.gid_type != IBV_GID_TYPE_ROCE_V2)
		return OTHER;
	return !memcmp(gid->raw, ipv4, sizeof(ipv4)) ? IPV4 :
	       gid->raw[0] != 0xfe ? IPV6 : LINK_LOCAL;
}

/* The best of the places from @first on: where, or -1 */
static int best_gid(struct ibv_context *ctx, uint8_t port,
		    const struct ibv_port_attr *attr, int first, int end,
		    enum gid_kind *best, union ibv_gid *gid)
{
	bool ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
	union ibv_gid now;
	enum gid_kind kind;
	int i, at = -1;

	*best = NO_GID;
	/* an address handle has 8 bits for it */
	for (i = first; i < end && i < attr->gid_tbl_len && i < 256; i++) {
		kind = gid_at(ctx, port, ethernet, i, &now);
		if (kind <= *best)
			continue;
		*best = kind;
		*gid = now;
		at = i;
		if (kind == (ethernet ? IPV4 : OTHER))
			break;
	}
	return at;
}

const char *verbs_gid_kind(struct ibv_context *ctx, uint8_t port,
			   const struct ibv_port_attr *attr, int *index)
{
	static const char *const kinds[] = { "none", "other", "link-local",
					     "ipv6", "ipv4" };
	union ibv_gid gid;
	enum gid_kind kind;

	*index = best_gid(ctx, port, attr, 0, 256, &kind, &gid);
	return kinds[kind];
}

int verbs_choose_gid(struct verbs_port *p, int wanted, bool v2, char *why,
		     size_t size)
{
	enum gid_kind kind;
	int i = best_gid(p->ctx, p->port, &p->attr, wanted < 0 ? 0 : wanted,
			 wanted < 0 ? 256 : wanted + 1, &kind, &p->gid);

	if (wanted >= 0 || p->attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		v2 = false;
	if (i >= 0 && (!v2 || kind != OTHER)) {
		p->gid_index = (uint32_t)i;
		return 0;
	}
	if (wanted >= 0)
		snprintf(why, size, "%s port %u has no GID with index %d: look "
			 "at /sys/class/infiniband/%s/ports/%u/gids", p->device,
			 p->port, wanted, p->device, p->port);
	else if (i >= 0 && !verbs_lib.query_gid_ex)
		snprintf(why, size, "%s port %u: libibverbs.so.1 does not "
			 "report which GID is for RoCE v2: it is older than "
			 "rdma-core 32", p->device,
			 p->port);
	else
		snprintf(why, size, "%s port %u has no %sGID: give its network "
			 "device an address (ip addr add)", p->device, p->port,
			 v2 ? "RoCE v2 " : "");
	return -EADDRNOTAVAIL;
}

/* ---- ports and devices ---- */

int verbs_choose_port(struct verbs_port *p, uint32_t wanted, char *why,
		      size_t size)
{
	struct ibv_device_attr dev = { .phys_port_cnt = 0 };
	uint32_t i;
	int r;

	snprintf(p->device, sizeof(p->device), "%s",
		 verbs_lib.get_device_name(p->ctx->device));
	errno = 0;
	r = verbs_lib.query_device(p->ctx, &dev);
	if (r)
		return FAILED(r, "%s does not report its number of ports",
			      p->device);
	if (wanted > dev.phys_port_cnt) {
		snprintf(why, size, "%s has no port %u: it has %u", p->device,
			 wanted, dev.phys_port_cnt);
		return -EINVAL;
	}
	for (i = wanted ? wanted : 1; i <= dev.phys_port_cnt; i++) {
		memset(&p->attr, 0, sizeof(p->attr));
		r = verbs_lib.query_port(p->ctx, (uint8_t)i, &p->attr);
		if (r)
			return FAILED(r, "port %u of %s cannot be queried", i,
				      p->device);
		p->port = (uint8_t)i;
		if (p->attr.state == IBV_PORT_ACTIVE)
			return 0;
		if (wanted)
			break;
	}
	if (wanted)
		snprintf(why, size, "port %u of %s is not active", wanted,
			 p->device);
	else
		snprintf(why, size, "no port of %s is active", p->device);
	r = (int)strlen(why);
	snprintf(why + r, size - (size_t)r, ": ip link set NETDEV up, and rdma "
		 "link; InfiniBand: look at the cable and the subnet manager");
	return -ENETDOWN;
}

static int open_one(struct verbs_port *p, struct ibv_device *dev, uint32_t port,
		    char *why, size_t size)
{
	int r;

	errno = 0;
	p->ctx = verbs_lib.open_device(dev);
	if (!p->ctx)
		return FAILED(0, "%s cannot be opened",
			      verbs_lib.get_device_name(dev));
	r = verbs_choose_port(p, port, why, size);
	if (r) {
		verbs_lib.close_device(p->ctx);
		p->ctx = NULL;
	}
	return r;
}

/* Says the error that another device may do better?  Others are of the machine. */
static bool lacks_port(int r)
{
	return r == -ENODEV || r == -ENETDOWN || r == -EINVAL;
}

int verbs_open(struct verbs_port *p, const char *device, uint32_t port, char *why,
	       size_t size)
{
	char each[512] = "", number[16] = "";
	int i, now, n = 0, r = -ENODEV;
	struct ibv_device **list;

	errno = 0;
	list = verbs_lib.get_device_list(&n);
	if (!list) {
		r = verbs_errno(0);
		snprintf(why, size, "the RDMA devices cannot be listed: %s; load "
			 "ib_uverbs; for soft-RoCE: rdma link add rxe0 type rxe netdev "
			 "NETDEV", pln_strerror(r));
		return r;
	}
	if (device)
		snprintf(why, size, "there is no RDMA device %s: "
			 "/sys/class/infiniband has the names", device);
	else
		snprintf(why, size, "there is no RDMA device that libibverbs "
			 "knows: for soft-RoCE, rdma link add rxe0 type rxe "
			 "netdev NETDEV");
	for (i = 0; i < n && r; i++) {
		if (device && strcmp(device, verbs_lib.get_device_name(list[i])))
			continue;
		now = open_one(p, list[i], port, each, sizeof(each));
		if (now && !lacks_port(r))
			continue;
		r = now;
		snprintf(why, size, "%s", each);
	}
	verbs_lib.free_device_list(list);
	if (!device && n > 1 && lacks_port(r)) {
		if (port)
			snprintf(number, sizeof(number), " %u", port);
		snprintf(why, size, "none of the %d RDMA devices has an active "
			 "port%s: ip link set NETDEV up, and rdma link", n, number);
		r = -ENETDOWN;
	}
	return r;
}

void verbs_close(struct verbs_port *p)
{
	if (p->ctx)
		verbs_lib.close_device(p->ctx);
	p->ctx = NULL;
}

/* ---- queue pairs ---- */

int verbs_qp_init(struct ibv_qp *qp, const struct verbs_port *p,
		  unsigned int access, char *why, size_t size)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = p->port,
		.qp_access_flags = access,
	};
	int r = verbs_lib.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	return r ? FAILED(r, "the queue pair cannot be initialized") : 0;
}

int verbs_qp_connect(struct ibv_qp *qp, const struct verbs_port *p,
		     const struct verbs_way *to, char *why, size_t size)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .dest_qp_num = to->qpn,
		.rq_psn = to->psn, .max_dest_rd_atomic = to->reads_answered,
		.min_rnr_timer = to->min_rnr_timer, .path_mtu = verbs_mtu(p, to->mtu),
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .sq_psn = to->own_psn,
		.timeout = to->timeout, .retry_cnt = to->retries,
		.rnr_retry = to->rnr_retries, .max_rd_atomic = to->reads,
	};
	int r;

	verbs_address(&rtr.ah_attr, p->port, &p->attr, p->gid_index, to->lid,
		      to->gid);
	rtr.ah_attr.sl = to->sl;
	r = verbs_lib.modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV |
				IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);
	if (r)
		return FAILED(r, "the queue pair cannot receive from the peer");
	r = verbs_lib.modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT |
				IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	return r ? FAILED(r, "the queue pair cannot send") : 0;
}
