// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queue pairs for somebody who looks at their statistics: two of RC that are connected to each
 * other, and two of UC.  Prints the numbers of the passive ones, "qps RC UC", and then does what
 * standard input says, one line for each:
 *
 *	write N, read N, add N	so many WRITEs, READs, FETCH and ADDs to the passive one of RC
 *	uc N			WRITEs to the passive one of UC
 *	drop N			the same of WRITEs with immediate, which find no receive
 *	new			a third pair, of RC, that is not connected yet; prints its number
 *	connect			it is now
 *	third N			WRITEs to the passive one of that
 *	reset			the first pair is reset, and connected anew
 *	fail			a WRITE that the passive one of RC refuses: both are in error
 *
 * Behind those of UC, whose completion does not say that they have come, there is a READ of RC.
 * Prints "done" when all of that has completed as it should, or what is wrong.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>

#define SIZE 4096u
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct pair {
	struct ibv_qp *a, *b;
};

static struct ibv_context *ctx;
static struct ibv_port_attr port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t buf[2 * SIZE] __attribute__((aligned(4096)));

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_qp *make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = qp->qp_type == IBV_QPT_RC ? ALL :
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("to INIT");
}

static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 17, .retry_cnt = 7, .max_rd_atomic = 1,
		.rnr_retry = 7,
	};
	bool rc = qp->qp_type == IBV_QPT_RC;

	if (ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		die("to RTR");
	if (ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN |
			  (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			   IBV_QP_MAX_QP_RD_ATOMIC : 0)))
		die("to RTS");
}

static void make_pair(struct pair *p, enum ibv_qp_type type)
{
	p->a = make(type);
	p->b = make(type);
	to_init(p->a);
	to_init(p->b);
}

static void connect_pair(struct pair *p)
{
	to_rts(p->b, p->a->qp_num);
	to_rts(p->a, p->b->qp_num);
}

static void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("to RESET");
	to_init(qp);
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf, .lkey = mr->lkey,
		.length = op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64,
	};
	struct ibv_send_wr wr = {
		.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)buf + SIZE;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)buf + SIZE;
		wr.wr.rdma.rkey = rkey;
	}
	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
}

/* The next completion, within 20 s */
static enum ibv_wc_status next(void)
{
	time_t end = time(NULL) + 20;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return wc.status;
	} while (time(NULL) < end);
	printf("no completion\n");
	exit(1);
}

static void right(void)
{
	enum ibv_wc_status status = next();

	if (status) {
		printf("%s\n", ibv_wc_status_str(status));
		exit(1);
	}
}

static void several(struct ibv_qp *qp, enum ibv_wr_opcode op, int n)
{
	while (n--) {
		post(qp, op, mr->rkey);
		right();
	}
}

int main(void)
{
	struct pair rc, uc, third = { NULL, NULL };
	struct ibv_device **list = ibv_get_device_list(NULL);
	char line[64], what[16];
	int n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ctx = list && *list ? ibv_open_device(*list) : NULL;
	if (!ctx || ibv_query_port(ctx, 1, &port))
		die("no device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, buf, sizeof(buf), ALL) : NULL;
	if (!cq || !mr)
		die("no memory region or completion queue");
	make_pair(&rc, IBV_QPT_RC);
	connect_pair(&rc);
	make_pair(&uc, IBV_QPT_UC);
	connect_pair(&uc);
	printf("qps %u %u\n", rc.b->qp_num, uc.b->qp_num);
	while (fgets(line, sizeof(line), stdin)) {
		n = 0;
		if (sscanf(line, "%15s %d", what, &n) < 1)
			continue;
		if (!strcmp(what, "write")) {
			several(rc.a, IBV_WR_RDMA_WRITE, n);
		} else if (!strcmp(what, "read")) {
			several(rc.a, IBV_WR_RDMA_READ, n);
		} else if (!strcmp(what, "add")) {
			several(rc.a, IBV_WR_ATOMIC_FETCH_AND_ADD, n);
		} else if (!strcmp(what, "uc")) {
			several(uc.a, IBV_WR_RDMA_WRITE, n);
			several(rc.a, IBV_WR_RDMA_READ, 1);
		} else if (!strcmp(what, "drop")) {
			several(uc.a, IBV_WR_RDMA_WRITE_WITH_IMM, n);
			several(rc.a, IBV_WR_RDMA_READ, 1);
		} else if (!strcmp(what, "new")) {
			make_pair(&third, IBV_QPT_RC);
			printf("%u\n", third.b->qp_num);
			continue;
		} else if (!strcmp(what, "connect")) {
			connect_pair(&third);
		} else if (!strcmp(what, "third")) {
			several(third.a, IBV_WR_RDMA_WRITE, n);
		} else if (!strcmp(what, "reset")) {
			reset(rc.a);
			reset(rc.b);
			connect_pair(&rc);
		} else if (!strcmp(what, "fail")) {
			post(rc.a, IBV_WR_RDMA_WRITE, mr->rkey ^ 1);
			if (next() != IBV_WC_REM_ACCESS_ERR)
				die("it was not refused");
		} else {
			die(what);
		}
		printf("done\n");
	}
	return 0;
}
