/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What cx-quiet and cx-dmabuf share: a ConnectX, and two queue pairs of it that talk to each other.
 */
#ifndef CX_LOOP_H
#define CX_LOOP_H

#include "peers.h"

#define STREAM	64	/* requests at a time */
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];

static inline void connect_qp(struct ibv_qp *q, uint32_t to)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(q, &a, IBV_QP_STATE) || ibv_query_port(ctx, 1, &port))
		die("the queue pair goes to RESET");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("the queue pair goes to INIT");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = to, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .dlid = port.lid, .port_num = 1 } };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("the queue pair goes to RTR");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1 };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("the queue pair goes to RTS");
}

static inline void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = STREAM, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 } };

	if (!list || !list[0])
		quit("there is an RDMA device");
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!ctx)
		die("ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 2 * STREAM, NULL, NULL, 0);
	if (!pd || !cq)
		die("a protection domain and a completion queue");
	init.send_cq = init.recv_cq = cq;
	for (int i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(pd, &init);
		if (!qp[i])
			die("ibv_create_qp");
	}
	for (int i = 0; i < 2; i++)
		connect_qp(qp[i], qp[!i]->qp_num);
}

/* The next completion, within a minute; its status, or -1 */
static inline int next(struct ibv_wc *wc)
{
	long long end = now_ms() + 60000;

	while (now_ms() < end) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return wc->status;
	}
	note("no completion");
	return -1;
}

/* The host does that, and says ok, or a number after it */
static inline long long host_does(const char *what)
{
	char answer[64];

	printf("@host %s\n", what);
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin) || strncmp(answer, "ok", 2))
		quit("the host does: %s", what);
	return atoll(answer + 2);
}

#endif
