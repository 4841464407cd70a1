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
	int err = verbs_errno(result);
	char what[PLN_LINK_REASON_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return link_fail(link, err, "%.400s: %s", what, pln_strerror(err));
}

int link_device(struct pln_link *link,
		const struct pln_link_options *options)
{
	struct verbs_port *at = &link->at;
	char why[PLN_LINK_REASON_MAX];
	int err;

	if (options->pd) {
		link->pd = options->pd;
		at->ctx = link->pd->context;
		err = verbs_choose_port(at, options->port, why, sizeof(why));
	} else {
		err = verbs_open(at, options->device, options->port, why,
				 sizeof(why));
		link->own_ctx = !err;
		/* of no device in particular, none has what is wanted */
		if (err == -ENETDOWN && !options->device)
			err = -ENODEV;
	}
	if (err)
		return link_fail(link, err, "%s", why);
	if (!link->pd) {
		errno = 0;
		link->pd = verbs_lib.alloc_pd(at->ctx);
		if (!link->pd)
			return failed(link, 0, "no protection domain");
		link->own_pd = true;
	}
	if (link->chunk > link->at.attr.max_msg_sz)
		return link_fail(link, -EMSGSIZE, "chunks of %u bytes are "
			"larger than messages of port %u may be, %u",
			link->chunk, link->at.port, link->at.attr.max_msg_sz);
	/* who names a GID wants it on the way, also where a LID would do */
	if (options->gid)
		link->at.attr.flags |= IBV_QPF_GRH_REQUIRED;
	if (link->at.attr.link_layer != IBV_LINK_LAYER_ETHERNET &&
	    !link->at.attr.lid)
		return link_fail(link, -EADDRNOTAVAIL, "port %u has no "
			"LID: does a subnet manager run?", link->at.port);
	err = verbs_choose_gid(at, (int)options->gid - 1, false, why,
			       sizeof(why));
	return err ? link_fail(link, err, "%s", why) : 0;
}

int link_post_rx(struct pln_link *link, unsigned int slot)
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
	char why[PLN_LINK_REASON_MAX];
	int err;

	errno = 0;
	link->qp = verbs_lib.create_qp(link->pd, &init);
	if (!link->qp)
		return failed(link, 0, "no queue pair with %u sends and %u "
			      "receives", init.cap.max_send_wr,
			      init.cap.max_recv_wr);
	err = verbs_qp_init(link->qp, &link->at, IBV_ACCESS_LOCAL_WRITE |
			    IBV_ACCESS_REMOTE_WRITE, why, sizeof(why));
	if (err)
		return link_fail(link, err, "%s", why);
	for (unsigned int i = 0; i < RX_SLOTS && !err; i++)
		err = link_post_rx(link, i);
	return err;
}

/* All of the queue pair, ready to be connected */
int link_queue(struct pln_link *link)
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
		return link_fail(link, -EIO, "no random numbers");
	link->psn &= 0xffffff;
	link->messages = aligned_alloc(page, size);
	if (!link->messages)
		return link_fail(link, -ENOMEM, "out of memory");
	memset(link->messages, 0, size);
	errno = 0;
	link->message_mr = verbs_lib.reg_mr(link->pd, link->messages, size,
					    IBV_ACCESS_LOCAL_WRITE);
	if (!link->message_mr)
		return failed(link, 0, "%zu bytes of host memory cannot be "
			      "registered, is the limit of locked memory "
			      "(ulimit -l) too low?", size);
	errno = 0;
	link->channel = verbs_lib.create_comp_channel(link->at.ctx);
	if (!link->channel)
		return failed(link, 0, "no completion channel");
	if (fcntl(link->channel->fd, F_SETFL, O_NONBLOCK))
		return failed(link, 0, "the completion channel cannot be made "
			      "non-blocking");
	errno = 0;
	link->cq = verbs_lib.create_cq(link->at.ctx, (int)(link->depth + TX_SLOTS +
						 RX_SLOTS), NULL,
				       link->channel, 0);
	if (!link->cq)
		return failed(link, 0, "no completion queue");
	return make_qp(link);
}

int link_to_rts(struct pln_link *link)
{
	const struct hello *peer = &link->peer;
	const struct verbs_way to = {
		.qpn = peer->qpn, .psn = peer->psn, .own_psn = link->psn,
		.lid = peer->lid, .gid = peer->gid,
		.mtu = (enum ibv_mtu)peer->mtu, .sl = (uint8_t)link->sl,
		.reads = 1, .reads_answered = 1,
		.timeout = (uint8_t)link->timeout,
		.retries = (uint8_t)link->retries,
		/*
		 * Never needed, as there are credits; so a peer without buffers is
		 * an error, not something to wait for without end, which 7 means
		 */
		.rnr_retries = 3,
		.min_rnr_timer = 12,
	};
	char why[PLN_LINK_REASON_MAX];
	int err = verbs_qp_connect(link->qp, &link->at, &to, why, sizeof(why));

	if (err)
		return link_fail(link, err, "%s", why);
	link->stats.mtu = verbs_mtu_bytes(verbs_mtu(&link->at, to.mtu));
	return 0;
}

/* Whatever there is of it */
void link_free_queue(struct pln_link *link)
{
	if (link->qp)
		verbs_lib.destroy_qp(link->qp);
	if (link->cq)
		verbs_lib.destroy_cq(link->cq);
	if (link->channel)
		verbs_lib.destroy_comp_channel(link->channel);
	/* memory that the device may still write must not become another's */
	if (!link->message_mr || !verbs_lib.dereg_mr(link->message_mr))
		free(link->messages);
	if (link->own_pd)
		verbs_lib.dealloc_pd(link->pd);
	if (link->own_ctx)
		verbs_close(&link->at);
}
