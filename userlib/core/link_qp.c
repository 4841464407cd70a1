// SPDX-License-Identifier: MIT
/* A link's part of an RDMA device: port, address, queues, their states. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "link_internal.h"
#include "peerlane/peerlane.h"

/* After a function of libibverbs: its errno, and these words before it */
__attribute__((format(printf, 3, 4)))
static int failed(struct pln_link *link, int result, const char *fmt, ...)
{
	int err = pln_verbs_errno(result);
	char what[PLN_LINK_REASON_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return pln_link_fail(link, err, "%.400s: %s", what, pln_strerror(err));
}

/*
 * The wanted port, or the device's first active one, with its attributes.
 * -ENETDOWN: not active; else its errno, with no words said.
 */
static int find_port(struct pln_link *link, uint32_t wanted)
{
	struct ibv_device_attr device;
	uint32_t p = wanted ? wanted : 1, last = wanted;
	int r;

	memset(&device, 0, sizeof(device));
	errno = 0;
	r = wanted ? 0 : pln_verbs.query_device(link->ctx, &device);
	if (!wanted)
		last = device.phys_port_cnt;
	for (; !r && p <= last; p++) {
		link->port = p;
		memset(&link->port_attr, 0, sizeof(link->port_attr));
		r = pln_verbs.query_port(link->ctx, (uint8_t)p,
					 &link->port_attr);
		if (!r && link->port_attr.state == IBV_PORT_ACTIVE)
			return 0;
	}
	return r ? pln_verbs_errno(r) : -ENETDOWN;
}

/* The named device, or the first one that has such a port, active */
static int choose_device(struct pln_link *link, const char *want, uint32_t port)
{
	struct ibv_device **list;
	int n = 0, err = -ENODEV, why = -ENETDOWN;

	errno = 0;
	list = pln_verbs.get_device_list(&n);
	if (!list)
		return failed(link, 0, "the RDMA devices cannot be listed, is "
			      "the kernel's ib_uverbs loaded?");
	for (int i = 0; i < n && err == -ENODEV; i++) {
		if (want && strcmp(pln_verbs.get_device_name(list[i]), want))
			continue;
		errno = 0;
		link->ctx = pln_verbs.open_device(list[i]);
		if (!link->ctx && want)
			err = failed(link, 0, "%s cannot be opened", want);
		if (!link->ctx) {
			why = pln_verbs_errno(0);
			continue;
		}
		err = want ? 0 : find_port(link, port);
		if (!err)
			break;
		why = err == -ENETDOWN ? why : err;
		err = -ENODEV;
		pln_verbs.close_device(link->ctx);
		link->ctx = NULL;
	}
	pln_verbs.free_device_list(list);
	if (err == -ENODEV && want)
		return pln_link_fail(link, err, "there is no RDMA device %s",
				     want);
	if (err == -ENODEV && why != -ENETDOWN)
		return pln_link_fail(link, why, "none of the %d RDMA devices "
			"can be used: %s", n, pln_strerror(why));
	if (err == -ENODEV && port)
		return pln_link_fail(link, err, "none of the %d RDMA devices "
			"has an active port %u", n, port);
	if (err == -ENODEV)
		return pln_link_fail(link, err, "none of the %d RDMA devices "
			"has an active port", n);
	link->own_ctx = !err;
	return err;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* The wanted GID, counted from 1, or the best one */
static int choose_gid(struct pln_link *link, uint32_t wanted)
{
	static const union ibv_gid none;
	int first = -1, best = -1;
	int gids = link->port_attr.gid_tbl_len;

	/* an address handle has 8 bits for it */
	if (gids > 256)
		gids = 256;
	for (int i = 0; i < gids && best < 0; i++) {
		struct ibv_gid_entry entry = { .gid_type = IBV_GID_TYPE_ROCE_V2 };
		union ibv_gid gid;

		if (wanted && (uint32_t)i != wanted - 1)
			continue;
		if (pln_verbs.query_gid(link->ctx, (uint8_t)link->port, i,
					&gid) || !memcmp(&gid, &none, 16))
			continue;
		if (first < 0)
			first = i;
		if (link->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET &&
		    pln_verbs.query_gid_ex &&
		    pln_verbs.query_gid_ex(link->ctx, link->port, (uint32_t)i,
					   &entry, 0, sizeof(entry)))
			continue;
		if (link->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
		    (entry.gid_type == IBV_GID_TYPE_ROCE_V2 && is_ipv4(&gid)))
			best = i;
	}
	if (best < 0)
		best = first;
	if (best < 0 && wanted)
		return pln_link_fail(link, -EADDRNOTAVAIL, "port %u has no "
			"GID at index %u", link->port, wanted - 1);
	if (best < 0)
		return pln_link_fail(link, -EADDRNOTAVAIL, "port %u has no "
			"GID: give its network interface an address",
			link->port);
	link->gid_index = (uint32_t)best;
	return pln_verbs.query_gid(link->ctx, (uint8_t)link->port, best,
				   &link->gid) ?
	       pln_link_fail(link, -EADDRNOTAVAIL, "GID %d is gone", best) : 0;
}

int pln_link_device(struct pln_link *link,
		    const struct pln_link_options *options)
{
	int err;

	if (options->pd) {
		link->pd = options->pd;
		link->ctx = link->pd->context;
	} else {
		err = choose_device(link, options->device, options->port);
		if (err)
			return err;
		errno = 0;
		link->pd = pln_verbs.alloc_pd(link->ctx);
		if (!link->pd)
			return failed(link, 0, "no protection domain");
		link->own_pd = true;
	}
	err = find_port(link, options->port);
	if (err == -ENETDOWN && options->port)
		return pln_link_fail(link, err, "port %u is not active: is its "
			"cable in, its network interface up?", options->port);
	if (err == -ENETDOWN)
		return pln_link_fail(link, err, "no port is active: is a cable "
			"in, its network interface up?");
	if (err)
		return failed(link, -err, "the device has no port %u that can be "
			      "asked", link->port);
	if (link->chunk > link->port_attr.max_msg_sz)
		return pln_link_fail(link, -EMSGSIZE, "chunks of %u bytes are "
			"larger than messages of port %u may be, %u",
			link->chunk, link->port, link->port_attr.max_msg_sz);
	/* who names a GID wants it on the way, also where a LID would do */
	if (options->gid)
		link->port_attr.flags |= IBV_QPF_GRH_REQUIRED;
	if (link->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET &&
	    !link->port_attr.lid)
		return pln_link_fail(link, -EADDRNOTAVAIL, "port %u has no "
			"LID: does a subnet manager run?", link->port);
	return choose_gid(link, options->gid);
}

int pln_link_post_rx(struct pln_link *link, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(link->messages +
				    (TX_SLOTS + slot) * MESSAGE_SIZE),
		.length = MESSAGE_SIZE,
		.lkey = link->message_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(link->qp, &wr, &bad);

	return err ? failed(link, err, "a buffer for messages cannot be "
			    "posted") : 0;
}

static int make_qp(struct pln_link *link)
{
	struct ibv_qp_init_attr init = {
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = link->depth + TX_SLOTS,
			.max_recv_wr = RX_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)link->port,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE,
	};
	int err;

	errno = 0;
	link->qp = pln_verbs.create_qp(link->pd, &init);
	if (!link->qp)
		return failed(link, 0, "no queue pair with %u sends and %u "
			      "receives", init.cap.max_send_wr,
			      init.cap.max_recv_wr);
	err = pln_verbs.modify_qp(link->qp, &attr, IBV_QP_STATE |
				  IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				  IBV_QP_ACCESS_FLAGS);
	if (err)
		return failed(link, err, "the queue pair cannot be "
			      "initialized");
	for (unsigned int i = 0; i < RX_SLOTS && !err; i++)
		err = pln_link_post_rx(link, i);
	return err;
}

/* All of the queue pair, ready to be connected */
int pln_link_queue(struct pln_link *link)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (TX_SLOTS + RX_SLOTS) * MESSAGE_SIZE;

	/*
	 * Whole pages: ibv_fork_init() keeps registered ones from a child, which
	 * must not miss anything else there
	 */
	size = (size + page - 1) & ~(page - 1);
	if (getrandom(&link->psn, sizeof(link->psn), 0) !=
	    sizeof(link->psn))
		return pln_link_fail(link, -EIO, "no random numbers");
	link->psn &= 0xffffff;
	link->messages = aligned_alloc(page, size);
	if (!link->messages)
		return pln_link_fail(link, -ENOMEM, "out of memory");
	memset(link->messages, 0, size);
	errno = 0;
	link->message_mr = pln_verbs.reg_mr(link->pd, link->messages, size,
					    IBV_ACCESS_LOCAL_WRITE);
	if (!link->message_mr)
		return failed(link, 0, "%zu bytes of host memory cannot be "
			      "registered, is the limit of locked memory "
			      "(ulimit -l) too low?", size);
	errno = 0;
	link->channel = pln_verbs.create_comp_channel(link->ctx);
	if (!link->channel)
		return failed(link, 0, "no completion channel");
	if (fcntl(link->channel->fd, F_SETFL, O_NONBLOCK))
		return failed(link, 0, "the completion channel cannot be made "
			      "non-blocking");
	errno = 0;
	link->cq = pln_verbs.create_cq(link->ctx, (int)(link->depth + TX_SLOTS +
						 RX_SLOTS), NULL,
				       link->channel, 0);
	if (!link->cq)
		return failed(link, 0, "no completion queue");
	return make_qp(link);
}

int pln_link_to_rts(struct pln_link *link)
{
	const struct hello *peer = &link->peer;
	uint32_t mtu = link->port_attr.active_mtu;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	int err;

	if (peer->mtu < mtu)
		mtu = peer->mtu;
	attr.path_mtu = (enum ibv_mtu)mtu;
	pln_verbs_address(&attr.ah_attr, (uint8_t)link->port, &link->port_attr,
			  link->gid_index, peer->lid, peer->gid);
	attr.ah_attr.sl = (uint8_t)link->sl;
	err = pln_verbs.modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_AV |
				  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				  IBV_QP_MIN_RNR_TIMER);
	if (err)
		return failed(link, err, "the queue pair cannot receive from "
			      "the peer");
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = link->psn;
	attr.timeout = (uint8_t)link->timeout;
	attr.retry_cnt = (uint8_t)link->retries;
	/* never needed, as there are credits; so a peer without buffers is
	 * an error, not something to wait for without end, which 7 means
	 */
	attr.rnr_retry = 3;
	attr.max_rd_atomic = 1;
	err = pln_verbs.modify_qp(link->qp, &attr, IBV_QP_STATE |
				  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				  IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		return failed(link, err, "the queue pair cannot send");
	link->stats.mtu = 128u << mtu;
	return 0;
}

/* Whatever there is of it */
void pln_link_free_queue(struct pln_link *link)
{
	if (link->qp)
		pln_verbs.destroy_qp(link->qp);
	if (link->cq)
		pln_verbs.destroy_cq(link->cq);
	if (link->channel)
		pln_verbs.destroy_comp_channel(link->channel);
	/* memory that the device may still write must not become another's */
	if (!link->message_mr || !pln_verbs.dereg_mr(link->message_mr))
		free(link->messages);
	if (link->own_pd)
		pln_verbs.dealloc_pd(link->pd);
	if (link->own_ctx)
		pln_verbs.close_device(link->ctx);
}
