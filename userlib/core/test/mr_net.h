/* SPDX-License-Identifier: MIT */
/*
 * Two connected queue pairs on one RDMA device, for test programs that look at
 * memory regions and not at networks.
 */
#ifndef PEERLANE_CORE_TEST_MR_NET_H
#define PEERLANE_CORE_TEST_MR_NET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NET_ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define NET_SECONDS	60
#define NET_PIECE	(1u << 20)

struct net {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
};

/* The GID of an IPv4 address */
static bool net_gid(struct net *n)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	int i;

	for (i = 0; i < 16; i++) {
		if (ibv_query_gid(n->context, 1, i, &n->gid))
			return false;
		if (memcmp(n->gid.raw, v4, sizeof(v4)))
			continue;
		n->gid_index = i;
		return true;
	}
	return false;
}

static bool net_join(struct net *n, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = NET_ALL_ACCESS,
	};

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return false;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = n->mtu,
		.dest_qp_num = peer, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = n->gid, .hop_limit = 1,
				.sgid_index = (uint8_t)n->gid_index,
			},
		},
	};
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return false;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 4,
	};
	return !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void net_close(struct net *n)
{
	int i;

	for (i = 0; i < 2; i++)
		if (n->qp[i])
			ibv_destroy_qp(n->qp[i]);
	if (n->cq)
		ibv_destroy_cq(n->cq);
	if (n->pd)
		ibv_dealloc_pd(n->pd);
	if (n->context)
		ibv_close_device(n->context);
	memset(n, 0, sizeof(*n));
}

/* What failed, or NULL */
static const char *net_open(struct net *n)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_device **list;
	struct ibv_port_attr port;
	int i, count = 0;

	memset(n, 0, sizeof(*n));
	list = ibv_get_device_list(&count);
	if (!list)
		return "list of devices";
	if (count)
		n->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!n->context)
		return "device";
	if (ibv_query_port(n->context, 1, &port))
		return "port";
	n->mtu = port.active_mtu;
	if (!net_gid(n))
		return "GID of an IPv4 address";
	n->pd = ibv_alloc_pd(n->context);
	n->cq = ibv_create_cq(n->context, 64, NULL, NULL, 0);
	if (!n->pd || !n->cq)
		return "protection domain or completion queue";
	init.send_cq = n->cq;
	init.recv_cq = n->cq;
	for (i = 0; i < 2; i++) {
		n->qp[i] = ibv_create_qp(n->pd, &init);
		if (!n->qp[i])
			return "queue pair";
	}
	if (!net_join(n, n->qp[0], n->qp[1]->qp_num) ||
	    !net_join(n, n->qp[1], n->qp[0]->qp_num))
		return "connection";
	return NULL;
}

/* One request on the first queue pair; the completion's status, or -1 */
static int net_one(struct net *n, enum ibv_wr_opcode opcode, uint64_t local,
		   uint32_t lkey, uint64_t remote, uint32_t rkey,
		   uint32_t length)
{
	struct ibv_sge sge = { local, length, lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, rkey },
	};
	struct timespec now, end;
	struct ibv_wc wc;
	int got;

	if (ibv_post_send(n->qp[0], &wr, &bad))
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += NET_SECONDS;
	do {
		got = ibv_poll_cq(n->cq, 1, &wc);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!got && now.tv_sec < end.tv_sec);
	if (got == 1 && wc.status)
		printf("# completion: %s\n", ibv_wc_status_str(wc.status));
	return got == 1 ? (int)wc.status : -1;
}

/* The same in pieces, so that progress does not hang on one long message */
static int net_do(struct net *n, enum ibv_wr_opcode opcode, uint64_t local,
		  uint32_t lkey, uint64_t remote, uint32_t rkey,
		  uint32_t length)
{
	uint32_t done, size;
	int r = 0;

	for (done = 0; done < length && !r; done += size) {
		size = length - done < NET_PIECE ? length - done : NET_PIECE;
		r = net_one(n, opcode, local + done, lkey, remote + done, rkey,
			    size);
	}
	return r;
}

#endif
