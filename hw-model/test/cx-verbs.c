// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two queue pairs of one RDMA device talk to each other: each verb moves what it
 * should, and what is not permitted moves nothing and says so.  Prints KTAP.
 * With "overrun" a completion queue runs over instead, of which the driver warns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <infiniband/verbs.h>

#define SIZE (2u << 20)
#define DEPTH 64
#define GRH 40			/* bytes in front of a datagram */
#define Q_KEY 0x11223344
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *ctx;
static struct ibv_port_attr port;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static union ibv_gid gid;
static enum ibv_qp_type service = IBV_QPT_RC;
static struct ibv_srq *srq;	/* where b takes receives from; NULL: it has its own */
static int completions = 4 * DEPTH;	/* that there is room for */
static int cases, failures;

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct pair {
	struct end a, b;
};

static void verdict(int good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++cases, what);
	failures += !good;
	fflush(stdout);
}

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Bytes that differ between places, seeds and positions */
static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = x >> 24;
	}
}

static void make_memory(struct end *e, struct ibv_pd *of)
{
	if (posix_memalign((void **)&e->buf, 4096, SIZE))
		die("memory");
	memset(e->buf, 0, SIZE);
	e->mr = ibv_reg_mr(of, e->buf, SIZE, ALL | IBV_ACCESS_MW_BIND);
	if (!e->mr)
		die("ibv_reg_mr");
}

static void init_end(struct end *e)
{
	enum ibv_qp_type type = e->qp->qp_type;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = Q_KEY,
		.qp_access_flags = type == IBV_QPT_UC ?
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : ALL,
	};

	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		die("to INIT");
}

static void make_end(struct end *e, struct ibv_srq *shared)
{
	struct ibv_qp_init_attr init = {
		.qp_type = service, .srq = shared,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 128 },
	};

	e->cq = ibv_create_cq(ctx, completions, NULL, channel, 0);
	if (!e->cq)
		die("ibv_create_cq");
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(pd, &init);
	if (!e->qp)
		die("ibv_create_qp");
	init_end(e);
	make_memory(e, pd);
}

static void connect_end(struct end *e, uint32_t qpn, int rnr_retry)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = qpn,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1, .max_rd_atomic = 1,
		.rnr_retry = rnr_retry,
	};
	enum ibv_qp_type type = e->qp->qp_type;
	int rtr_mask = IBV_QP_STATE, rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (type != IBV_QPT_UD)
		rtr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV)
		rtr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND)
		rts_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (type == IBV_QPT_XRC_RECV)
		rts_mask |= IBV_QP_TIMEOUT;
	if (ibv_modify_qp(e->qp, &rtr, rtr_mask))
		die("to RTR");
	if (ibv_modify_qp(e->qp, &rts, rts_mask))
		die("to RTS");
}

static void make_pair(struct pair *p, int rnr_retry)
{
	make_end(&p->a, NULL);
	make_end(&p->b, srq);
	connect_end(&p->a, p->b.qp->qp_num, rnr_retry);
	connect_end(&p->b, p->a.qp->qp_num, rnr_retry);
	fill(p->a.buf, SIZE, 1);
	fill(p->b.buf, SIZE, 2);
}

static void free_end(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || ibv_destroy_cq(e->cq) ||
	    (e->mr && ibv_dereg_mr(e->mr)))
		die("destroy");
	free(e->buf);
}

static void free_pair(struct pair *p)
{
	free_end(&p->a);
	free_end(&p->b);
}

/* The next completion, within 20 s; its status, or -1 */
static int next(struct end *e, struct ibv_wc *wc)
{
	time_t end = time(NULL) + 20;
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return wc->status;
	} while (time(NULL) < end);
	printf("# no completion\n");
	return -1;
}

static void post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(e->qp, wr, &bad))
		die("ibv_post_send");
}

/* One verb from a to b; both from offset 0 of what is registered there, unless told */
static struct ibv_sge list[4];
static struct ibv_send_wr simple(struct pair *p, enum ibv_wr_opcode op, uint32_t from,
				 uint32_t to, uint32_t len)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = op, .sg_list = list, .num_sge = 1 };

	list[0] = (struct ibv_sge){ (uintptr_t)p->a.buf + from, len, p->a.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf + to;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	return wr;
}

static void post_recv(struct end *e, uint64_t id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + at, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		die("ibv_post_recv");
}

/* Bytes of buf from 0 to SIZE that are not those of the seed, outside [at, at + len) */
static int touched(const uint8_t *buf, uint32_t seed, uint32_t at, uint32_t len)
{
	static uint8_t want[SIZE];

	fill(want, SIZE, seed);
	return memcmp(buf, want, at) || memcmp(buf + at + len, want + at + len, SIZE - at - len);
}

static void data(void)
{
	static const uint32_t sizes[] = { 1, 7, 4095, 4097, 65536, 262145, 1 << 20 };
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;
	int good = 1;

	make_pair(&p, 7);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t n = sizes[i];

		fill(p.b.buf, SIZE, 2);
		wr = simple(&p, IBV_WR_RDMA_WRITE, 3, 4091, n);
		post(&p.a, &wr);
		good &= !next(&p.a, &wc) && wc.opcode == IBV_WC_RDMA_WRITE && wc.wr_id == 7 &&
			!memcmp(p.a.buf + 3, p.b.buf + 4091, n) && !touched(p.b.buf, 2, 4091, n);
	}
	verdict(good, "WRITE: bytes arrive, and no others");
	good = 1;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t n = sizes[i];

		fill(p.a.buf, SIZE, 1);
		fill(p.b.buf, SIZE, 3 + i);
		wr = simple(&p, IBV_WR_RDMA_READ, 5, 4090, n);
		post(&p.a, &wr);
		good &= !next(&p.a, &wc) && wc.opcode == IBV_WC_RDMA_READ &&
			!memcmp(p.a.buf + 5, p.b.buf + 4090, n) && !touched(p.a.buf, 1, 5, n);
	}
	verdict(good, "READ: bytes arrive, and no others");

	fill(p.a.buf, SIZE, 4);
	fill(p.b.buf, SIZE, 5);
	post_recv(&p.b, 11, 4000, 5000);
	wr = simple(&p, IBV_WR_SEND, 100, 0, 1000);
	list[1] = (struct ibv_sge){ (uintptr_t)p.a.buf + 9000, 3, p.a.mr->lkey };
	list[2] = (struct ibv_sge){ (uintptr_t)p.a.buf + 20000, 2000, p.a.mr->lkey };
	wr.num_sge = 3;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_SEND;
	good &= !next(&p.b, &wc) && wc.opcode == IBV_WC_RECV && wc.wr_id == 11 &&
		wc.byte_len == 3003 && wc.src_qp == 0 && wc.qp_num == p.b.qp->qp_num;
	good &= !memcmp(p.b.buf + 4000, p.a.buf + 100, 1000) &&
		!memcmp(p.b.buf + 5000, p.a.buf + 9000, 3) &&
		!memcmp(p.b.buf + 5003, p.a.buf + 20000, 2000) &&
		!touched(p.b.buf, 5, 4000, 3003);
	verdict(good, "SEND of three pieces into one receive");

	post_recv(&p.b, 12, 0, 64);
	wr = simple(&p, IBV_WR_SEND_WITH_IMM, 0, 0, 33);
	wr.imm_data = htonl(0x12345678);
	wr.send_flags = IBV_SEND_INLINE;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 12 && wc.byte_len == 33 &&
		(wc.wc_flags & IBV_WC_WITH_IMM) && ntohl(wc.imm_data) == 0x12345678 &&
		!memcmp(p.a.buf, p.b.buf, 33);
	verdict(good, "SEND with immediate, inline");

	fill(p.b.buf, SIZE, 6);
	post_recv(&p.b, 13, 0, 64);
	wr = simple(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 70000, 500);
	wr.imm_data = htonl(99);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 13 &&
		wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 99 &&
		wc.byte_len == 500 && !memcmp(p.a.buf, p.b.buf + 70000, 500) &&
		!touched(p.b.buf, 6, 70000, 500);
	verdict(good, "WRITE with immediate takes a receive and leaves its memory");

	/* Five times round the rings, several at a time, without a completion for most */
	good = 1;
	for (int i = 0; i < 5 * DEPTH; i++) {
		memcpy(p.a.buf, &i, sizeof(i));
		post_recv(&p.b, i, 4096 + 4 * (i % DEPTH), 4);
		wr = simple(&p, IBV_WR_SEND, 0, 0, 4);
		wr.send_flags = IBV_SEND_INLINE;
		post(&p.a, &wr);
		if (i % 8 != 7)
			continue;
		for (int j = 7; j >= 0; j--) {
			int got;

			good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == (uint64_t)i - j;
			memcpy(&got, p.b.buf + 4096 + 4 * ((i - j) % DEPTH), 4);
			good &= got == i - j;
		}
	}
	verdict(good, "the queues go round five times, in order");
	free_pair(&p);
}

static void atomics(void)
{
	struct ibv_send_wr wr;
	uint64_t *word, *reply;
	struct ibv_wc wc;
	struct pair p;
	int good;

	make_pair(&p, 7);
	word = (uint64_t *)(p.b.buf + 4096);
	reply = (uint64_t *)(p.a.buf + 8192);
	*word = 0xfffffffffffffff0;
	wr = simple(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, 0, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	wr.wr.atomic.compare_add = 0x123;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_FETCH_ADD &&
		*reply == 0xfffffffffffffff0 && *word == 0x113;
	verdict(good, "FETCH and ADD");
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 0x112;
	wr.wr.atomic.swap = 5;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_COMP_SWAP && *reply == 0x113 &&
		*word == 0x113;
	wr.wr.atomic.compare_add = 0x113;
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && *reply == 0x113 && *word == 5;
	verdict(good, "COMPARE and SWAP, once not equal and once equal");
	free_pair(&p);
}

static void events(void)
{
	struct ibv_send_wr wr;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct pair p;
	void *context;
	int good = 1;

	make_pair(&p, 7);
	for (int i = 0; i < 20; i++) {
		if (ibv_req_notify_cq(p.a.cq, 0))
			die("ibv_req_notify_cq");
		wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
		post(&p.a, &wr);
		if (ibv_get_cq_event(channel, &cq, &context))
			die("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		good &= cq == p.a.cq && !next(&p.a, &wc);
	}
	verdict(good, "an armed completion queue tells, twenty times");
	free_pair(&p);
}

static int state(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init))
		die("ibv_query_qp");
	return attr.qp_state;
}

/*
 * The first fails like that, the second is flushed, and nobody's memory has changed.  Without acknowledges
 * it can send again then.
 */
static void refused(const char *what, struct pair *p, struct ibv_send_wr *wr,
		    enum ibv_wc_status want)
{
	struct ibv_qp_attr again = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	int unreliable = service == IBV_QPT_UD || service == IBV_QPT_UC;
	struct ibv_send_wr more = *wr;
	struct ibv_wc wc, flushed;
	int status, second;

	post(&p->a, wr);
	post(&p->a, &more);
	status = next(&p->a, &wc);
	second = next(&p->a, &flushed);
	if (status != (int)want)
		printf("# %s, not %s\n", ibv_wc_status_str(status), ibv_wc_status_str(want));
	verdict(status == (int)want && second == IBV_WC_WR_FLUSH_ERR &&
		state(&p->a) == (unreliable ? IBV_QPS_SQE : IBV_QPS_ERR) &&
		!touched(p->a.buf, 1, 0, 0) && !touched(p->b.buf, 2, 0, 0) &&
		(!unreliable || (!ibv_modify_qp(p->a.qp, &again, IBV_QP_STATE | IBV_QP_CUR_STATE) &&
				 state(&p->a) == IBV_QPS_RTS)), what);
	free_pair(p);
}

static void errors(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct ibv_mr *mr;
	struct pair p;
	int good;

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 300000);
	wr.wr.rdma.rkey ^= 1;
	refused("WRITE with another key: remote access error", &p, &wr, IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, SIZE - 300000, 300001);
	refused("WRITE to one byte behind the end: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_RDMA_READ, 0, 0, 300000);
	wr.wr.rdma.remote_addr--;
	refused("READ from one byte before the start: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 7);
	/* The first piece is longer than what the device moves at a time */
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 300000);
	list[1] = (struct ibv_sge){ (uintptr_t)p.a.buf, 8, p.a.mr->lkey ^ 0x100 };
	wr.num_sge = 2;
	refused("WRITE of memory that is not the sender's: local protection error", &p, &wr,
		IBV_WC_LOC_PROT_ERR);

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)p.b.buf + 4;
	wr.wr.atomic.compare_add = 1;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	refused("an atomic on no boundary: remote invalid request", &p, &wr,
		IBV_WC_REM_INV_REQ_ERR);

	make_pair(&p, 7);
	mr = ibv_reg_mr(pd, p.b.buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		die("ibv_reg_mr");
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	wr.wr.rdma.rkey = mr->rkey;
	post(&p.a, &wr);
	good = next(&p.a, &wc) == IBV_WC_REM_ACCESS_ERR && !touched(p.b.buf, 2, 0, 0);
	verdict(good, "WRITE where only reading is permitted: remote access error");
	free_pair(&p);

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_dereg_mr(mr))
		die("ibv_dereg_mr");
	refused("WRITE with a key that is gone: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 1);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	refused("SEND without a receive: receiver not ready", &p, &wr, IBV_WC_RNR_RETRY_EXC_ERR);

	make_pair(&p, 7);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	post(&p.a, &wr);
	good = !ibv_poll_cq(p.a.cq, 1, &wc);
	post_recv(&p.b, 5, 0, 64);
	good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 5;
	verdict(good, "SEND waits for a receive when it may wait forever");
	free_pair(&p);

	make_pair(&p, 7);
	post_recv(&p.b, 5, 0, 63);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	post(&p.a, &wr);
	good = next(&p.a, &wc) == IBV_WC_REM_INV_REQ_ERR && next(&p.b, &wc) == IBV_WC_LOC_LEN_ERR &&
		wc.wr_id == 5 && !touched(p.b.buf, 2, 0, 0);
	verdict(good, "SEND of more than the receive has: both ends are told");
	free_pair(&p);

	/* Of a receive only what the message fills is looked at */
	make_pair(&p, 7);
	list[2] = (struct ibv_sge){ (uintptr_t)p.b.buf, 64, p.b.mr->lkey };
	list[3] = (struct ibv_sge){ (uintptr_t)p.b.buf, 64, p.b.mr->lkey ^ 0x100 };
	for (int i = 0; i < 2; i++) {
		struct ibv_recv_wr two = { .wr_id = 5 + i, .sg_list = list + 2, .num_sge = 2 }, *bad;

		if (ibv_post_recv(p.b.qp, &two, &bad))
			die("ibv_post_recv");
	}
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 5 &&
		!memcmp(p.a.buf, p.b.buf, 64) && !touched(p.b.buf, 2, 0, 64);
	verdict(good, "SEND that does not reach a bad second piece of the receive");
	fill(p.b.buf, SIZE, 2);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 65);
	post(&p.a, &wr);
	good = next(&p.a, &wc) == IBV_WC_REM_OP_ERR && next(&p.b, &wc) == IBV_WC_LOC_PROT_ERR &&
		wc.wr_id == 6 && !touched(p.b.buf, 2, 0, 0);
	verdict(good, "SEND of a byte more, which does: both ends are told");
	free_pair(&p);

	make_pair(&p, 7);
	post_recv(&p.b, 5, 0, 63);
	post_recv(&p.b, 6, 0, 63);
	if (ibv_modify_qp(p.b.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE))
		die("to ERR");
	good = next(&p.b, &wc) == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 5 &&
		next(&p.b, &wc) == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 6;
	post_recv(&p.b, 8, 0, 63);
	good &= next(&p.b, &wc) == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 8;
	verdict(good, "receives of a queue pair in error are flushed, later ones too");
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	refused("nobody answers: retries exceeded", &p, &wr, IBV_WC_RETRY_EXC_ERR);
}

static struct ibv_ah *address(const union ibv_gid *to)
{
	struct ibv_ah_attr attr = { .dlid = port.lid, .port_num = 1 };
	struct ibv_ah *ah;

	if (to) {
		attr.is_global = 1;
		attr.grh.dgid = *to;
		attr.grh.hop_limit = 3;
		attr.grh.traffic_class = 0x5a;
		attr.grh.flow_label = 0x12345;
	}
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		die("ibv_create_ah");
	return ah;
}

/* A datagram from a to b */
static struct ibv_send_wr datagram(struct pair *p, struct ibv_ah *ah, uint32_t len)
{
	struct ibv_send_wr wr = simple(p, IBV_WR_SEND, 0, 0, len);

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p->b.qp->qp_num;
	wr.wr.ud.remote_qkey = Q_KEY;
	return wr;
}

/*
 * A message is a byte longer than receive @id of @room bytes, of a service that answers nothing: nobody
 * learns of it, and the next one, which is a byte shorter, gets that receive
 */
static void too_long(const char *what, struct pair *p, struct ibv_send_wr *wr, uint64_t id,
		     uint32_t room)
{
	struct ibv_wc wc;
	int good;

	post(&p->a, wr);
	good = !next(&p->a, &wc);
	wr->sg_list->length--;
	post(&p->a, wr);
	good &= !next(&p->a, &wc) && !next(&p->b, &wc) && wc.wr_id == id && wc.byte_len == room &&
		state(&p->b) == IBV_QPS_RTS && state(&p->a) == IBV_QPS_RTS;
	verdict(good, what);
}

static void datagrams(void)
{
	struct ibv_ah *ah = address(NULL), *global = address(&gid), *wrong;
	union ibv_gid other = gid;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;
	int good;

	other.raw[15] ^= 1;
	wrong = address(&other);
	service = IBV_QPT_UD;
	make_pair(&p, 0);
	post_recv(&p.b, 1, 8192, GRH + 100);
	wr = datagram(&p, ah, 100);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_SEND;
	good &= !next(&p.b, &wc) && wc.opcode == IBV_WC_RECV && wc.wr_id == 1 &&
		wc.byte_len == GRH + 100 && wc.src_qp == p.a.qp->qp_num && wc.slid == port.lid &&
		!(wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM));
	good &= !memcmp(p.b.buf + 8192 + GRH, p.a.buf, 100) &&
		!touched(p.b.buf, 2, 8192 + GRH, 100);
	verdict(good, "datagram: arrives behind the place of a route header, with its sender");

	post_recv(&p.b, 2, 8192, GRH + 4096);
	wr = datagram(&p, global, 4096);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htonl(77);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 2 &&
		(wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM)) == (IBV_WC_GRH | IBV_WC_WITH_IMM) &&
		ntohl(wc.imm_data) == 77 && !memcmp(p.b.buf + 8192 + GRH, p.a.buf, 4096);
	/* Headers of base and datagram, immediate and checksum count, too */
	good &= !memcmp(p.b.buf + 8192, "\x65\xa1\x23\x45\x10\x1c\x1b\x03", 8) &&
		!memcmp(p.b.buf + 8200, &gid, 16) && !memcmp(p.b.buf + 8216, &gid, 16);
	verdict(good, "datagram of a whole packet, with route header and immediate");

	/* What is not for it leaves the receive to what is */
	post_recv(&p.b, 3, 8192, GRH + 100);
	wr = datagram(&p, wrong, 50);
	post(&p.a, &wr);
	wr = datagram(&p, ah, 51);
	wr.wr.ud.remote_qkey ^= 1;
	post(&p.a, &wr);
	wr = datagram(&p, ah, 52);
	wr.wr.ud.remote_qkey = 0x80000000;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.a, &wc) && !next(&p.a, &wc);
	good &= !next(&p.b, &wc) && wc.wr_id == 3 && wc.byte_len == GRH + 52;
	verdict(good, "datagrams of another Q_Key or to another GID are dropped, one of its own Q_Key is not");

	wr = datagram(&p, ah, 60);
	post(&p.a, &wr);
	good = !next(&p.a, &wc);
	post_recv(&p.b, 4, 8192, GRH + 100);
	wr = datagram(&p, ah, 61);
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 4 && wc.byte_len == GRH + 61;
	verdict(good, "datagram that nobody receives is lost, and its sender does not learn of it");

	fill(p.b.buf, SIZE, 2);
	post_recv(&p.b, 5, 8192, GRH + 99);
	wr = datagram(&p, ah, 100);
	too_long("datagram of a byte more than the receive has is dropped", &p, &wr, 5, GRH + 99);
	free_pair(&p);

	make_pair(&p, 0);
	wr = datagram(&p, ah, 4097);
	refused("datagram of more than a packet: local length error", &p, &wr, IBV_WC_LOC_LEN_ERR);
	service = IBV_QPT_RC;
	if (ibv_destroy_ah(ah) || ibv_destroy_ah(global) || ibv_destroy_ah(wrong))
		die("ibv_destroy_ah");
}

static void unreliable(void)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;
	int good;

	service = IBV_QPT_UC;
	make_pair(&p, 0);
	post_recv(&p.b, 1, 0, 300000);
	wr = simple(&p, IBV_WR_SEND_WITH_IMM, 7, 0, 300000);
	wr.imm_data = htonl(5);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_SEND && !next(&p.b, &wc) &&
		wc.wr_id == 1 && wc.byte_len == 300000 && ntohl(wc.imm_data) == 5 &&
		!memcmp(p.a.buf + 7, p.b.buf, 300000) && !touched(p.b.buf, 2, 0, 300000);
	verdict(good, "UC: SEND of many packets, with immediate");

	fill(p.b.buf, SIZE, 2);
	post_recv(&p.b, 2, 0, 8);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 3, 4091, 100000);
	post(&p.a, &wr);
	wr = simple(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 100003, 104091, 200000);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && wc.opcode == IBV_WC_RDMA_WRITE && !next(&p.a, &wc) &&
		!next(&p.b, &wc) && wc.wr_id == 2 && wc.byte_len == 200000 &&
		!memcmp(p.a.buf + 3, p.b.buf + 4091, 300000) && !touched(p.b.buf, 2, 4091, 300000);
	verdict(good, "UC: WRITE, with and without immediate");

	/* Neither is told of what is not done, and what comes after it is */
	fill(p.b.buf, SIZE, 2);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 10000);
	wr.wr.rdma.rkey ^= 1;
	post(&p.a, &wr);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 10000);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !next(&p.a, &wc);
	post_recv(&p.b, 3, 4096, 10000);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 9999);
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 3 && wc.byte_len == 9999 &&
		!touched(p.b.buf, 2, 4096, 9999) && state(&p.b) == IBV_QPS_RTS;
	verdict(good, "UC: WRITE with another key, and SEND that nobody receives, are lost");

	fill(p.b.buf, SIZE, 2);
	post_recv(&p.b, 4, 0, 63);
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	too_long("UC: SEND of more than the receive has is dropped", &p, &wr, 4, 63);
	free_pair(&p);

	make_pair(&p, 0);
	wr = simple(&p, IBV_WR_RDMA_READ, 0, 0, 64);
	refused("UC: READ: local QP operation error", &p, &wr, IBV_WC_LOC_QP_OP_ERR);
	service = IBV_QPT_RC;
}

/* The next event that is of no completion queue, within 20 s; its type, or -1 */
static int event(struct ibv_async_event *e)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };

	if (poll(&p, 1, 20000) != 1) {
		printf("# no event\n");
		return -1;
	}
	if (ibv_get_async_event(ctx, e))
		die("ibv_get_async_event");
	ibv_ack_async_event(e);
	return e->event_type;
}

/* A receive for whoever gets the next message, into the memory of @e */
static void post_shared(struct end *e, uint64_t id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)e->buf + at, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_srq_recv(srq, &wr, &bad))
		die("ibv_post_srq_recv");
}

static int sent(struct pair *p, struct end *to, uint32_t len, uint64_t id)
{
	struct ibv_send_wr wr = simple(p, IBV_WR_SEND, 0, 0, len);
	struct ibv_wc wc;

	post(&p->a, &wr);
	return !next(&p->a, &wc) && !next(to, &wc) && wc.wr_id == id && wc.byte_len == len;
}

static void shared(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 7, .max_sge = 2 } };
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_async_event e;
	struct ibv_send_wr wr;
	struct pair p, q, last;
	struct ibv_wc wc;
	int good = 1;

	srq = ibv_create_srq(pd, &init);
	if (!srq)
		die("ibv_create_srq");
	make_pair(&p, 7);
	make_pair(&q, 7);
	make_pair(&last, 1);
	/* Five times round, messages of several packets to both in turn */
	for (int i = 0; i < 40; i++) {
		post_shared(&p.b, 2 * i, 0, 20000);
		post_shared(&p.b, 2 * i + 1, 30000, 20000);
		good &= sent(&p, &p.b, 10000 + i, 2 * i) && sent(&q, &q.b, 19000 + i, 2 * i + 1) &&
			!memcmp(p.b.buf, p.a.buf, 10000 + i) &&
			!memcmp(p.b.buf + 30000, q.a.buf, 19000 + i);
	}
	verdict(good, "shared receives go to two queue pairs, in order and five times round");

	wr = simple(&last, IBV_WR_SEND, 0, 0, 64);
	post(&last.a, &wr);
	good = next(&last.a, &wc) == IBV_WC_RNR_RETRY_EXC_ERR;
	wr = simple(&p, IBV_WR_SEND, 0, 0, 64);
	post(&p.a, &wr);
	good &= !ibv_poll_cq(p.a.cq, 1, &wc);
	post_shared(&p.b, 90, 0, 64);
	good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 90;
	verdict(good, "shared receives that are used up: not ready, until there is one more");

	for (int i = 0; i < 5; i++)
		post_shared(&p.b, i, 0, 64);
	if (ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) || ibv_query_srq(srq, &attr))
		die("ibv_modify_srq");
	good = attr.srq_limit == 3 && sent(&p, &p.b, 1, 0) && sent(&q, &q.b, 2, 1);
	/* There are 3: that is no news */
	good &= poll(&(struct pollfd){ .fd = ctx->async_fd, .events = POLLIN }, 1, 0) == 0 &&
		!ibv_query_srq(srq, &attr) && attr.srq_limit == 3;
	good &= sent(&p, &p.b, 3, 2) && event(&e) == IBV_EVENT_SRQ_LIMIT_REACHED &&
		e.element.srq == srq && !ibv_query_srq(srq, &attr) && attr.srq_limit == 0;
	verdict(good, "the limit of shared receives: an event when there are fewer, once");

	/* The receive that it has taken is given back */
	post_shared(&q.b, 5, 0, 64);
	wr = simple(&q, IBV_WR_SEND, 0, 0, 65);
	post(&q.a, &wr);
	good = next(&q.a, &wc) == IBV_WC_REM_INV_REQ_ERR && next(&q.b, &wc) == IBV_WC_LOC_LEN_ERR &&
		wc.wr_id == 3 && event(&e) == IBV_EVENT_QP_LAST_WQE_REACHED &&
		e.element.qp == q.b.qp && state(&q.b) == IBV_QPS_ERR;
	good &= sent(&p, &p.b, 4, 4) && sent(&p, &p.b, 5, 5);
	verdict(good, "a queue pair that fails takes no more shared receives, and says so");
	free_pair(&q);
	free_pair(&last);

	service = IBV_QPT_UC;
	make_pair(&q, 0);
	post_shared(&q.b, 6, 0, 20000);
	wr = simple(&q, IBV_WR_SEND, 0, 0, 20000);
	post(&q.a, &wr);
	wr = simple(&q, IBV_WR_SEND, 0, 0, 20000);
	post(&q.a, &wr);
	good = !next(&q.a, &wc) && !next(&q.a, &wc) && !next(&q.b, &wc) && wc.wr_id == 6;
	post_shared(&q.b, 7, 0, 20000);
	good &= sent(&q, &q.b, 20000, 7);
	verdict(good, "UC: a shared receive; what finds none is lost");
	service = IBV_QPT_RC;
	good = ibv_destroy_srq(srq) == EBUSY;
	free_pair(&p);
	free_pair(&q);
	good &= !ibv_destroy_srq(srq);
	srq = NULL;
	verdict(good, "shared receives stay while a queue pair has them");
}

/* Receives of an XRC domain; who sends names them by @number */
static struct ibv_srq *named(struct ibv_xrcd *xrcd, struct ibv_pd *of, struct ibv_cq *cq,
			     uint32_t *number)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 8, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .xrcd = xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = of, .cq = cq,
	};
	struct ibv_srq *made = ibv_create_srq_ex(ctx, &init);

	if (!made || ibv_get_srq_num(made, number))
		die("ibv_create_srq_ex");
	return made;
}

/* a sends in the domain pd; the memory of b is in another one */
static void make_xrc(struct pair *p, struct ibv_xrcd *xrcd, struct ibv_pd *of)
{
	struct ibv_qp_init_attr_ex send = {
		.qp_type = IBV_QPT_XRC_SEND, .pd = pd, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 4 },
	}, recv = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	p->a.cq = ibv_create_cq(ctx, completions, NULL, NULL, 0);
	p->b.cq = ibv_create_cq(ctx, completions, NULL, NULL, 0);
	if (!p->a.cq || !p->b.cq)
		die("ibv_create_cq");
	send.send_cq = p->a.cq;
	p->a.qp = ibv_create_qp_ex(ctx, &send);
	p->b.qp = ibv_create_qp_ex(ctx, &recv);
	if (!p->a.qp || !p->b.qp)
		die("ibv_create_qp_ex");
	init_end(&p->a);
	init_end(&p->b);
	make_memory(&p->a, pd);
	make_memory(&p->b, of);
	connect_end(&p->a, p->b.qp->qp_num, 7);
	connect_end(&p->b, p->a.qp->qp_num, 7);
	fill(p->a.buf, SIZE, 1);
	fill(p->b.buf, SIZE, 2);
}

static void xrc(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &attr), *foreign = ibv_open_xrcd(ctx, &attr);
	struct ibv_pd *of = ibv_alloc_pd(ctx);
	struct ibv_srq *one, *two, *far;
	uint32_t number[2], beyond;
	struct ibv_send_wr wr;
	struct end second;
	struct ibv_wc wc;
	struct pair p, q;
	int good = 1;

	if (!xrcd || !foreign || !of)
		die("XRC domain");
	make_xrc(&p, xrcd, of);
	make_xrc(&q, xrcd, of);
	second = p.b;
	second.cq = q.b.cq;
	one = named(xrcd, of, p.b.cq, &number[0]);
	two = named(xrcd, of, second.cq, &number[1]);
	far = named(foreign, of, second.cq, &beyond);
	/* Three times round, messages of several packets from both to both */
	for (int i = 0; i < 24; i++) {
		struct pair *from = i % 4 < 2 ? &p : &q;
		struct end *to = i & 1 ? &second : &p.b;

		srq = i & 1 ? two : one;
		fill(p.b.buf, SIZE, 2);
		fill(from->a.buf, SIZE, 10 + i);
		post_shared(to, i, 4096, 20000);
		wr = simple(from, IBV_WR_SEND_WITH_IMM, 5, 0, 10000 + i);
		wr.imm_data = htonl(i);
		wr.qp_type.xrc.remote_srqn = number[i & 1];
		post(&from->a, &wr);
		good &= !next(&from->a, &wc) && wc.opcode == IBV_WC_SEND && !next(to, &wc) &&
			wc.wr_id == (uint64_t)i && wc.byte_len == 10000u + i &&
			ntohl(wc.imm_data) == (uint32_t)i && wc.qp_num == from->b.qp->qp_num &&
			!memcmp(p.b.buf + 4096, from->a.buf + 5, 10000 + i) &&
			!touched(p.b.buf, 2, 4096, 10000 + i);
	}
	verdict(good, "XRC: two senders reach the shared receives that each message names");

	fill(p.a.buf, SIZE, 1);
	fill(p.b.buf, SIZE, 2);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 3, 4091, 100000);
	wr.qp_type.xrc.remote_srqn = number[0];
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !memcmp(p.a.buf + 3, p.b.buf + 4091, 100000) &&
		!touched(p.b.buf, 2, 4091, 100000);
	wr = simple(&p, IBV_WR_RDMA_READ, 300000, 4091, 100000);
	wr.qp_type.xrc.remote_srqn = number[0];
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && wc.opcode == IBV_WC_RDMA_READ &&
		!memcmp(p.a.buf + 300000, p.b.buf + 4091, 100000);
	memset(p.b.buf, 0, 8);
	wr = simple(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)p.b.buf;
	wr.wr.atomic.rkey = p.b.mr->rkey;
	wr.wr.atomic.compare_add = 77;
	wr.qp_type.xrc.remote_srqn = number[0];
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && wc.opcode == IBV_WC_FETCH_ADD && p.b.buf[0] == 77;
	srq = one;
	post_shared(&p.b, 50, 0, 0);
	wr = simple(&p, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 4091, 5000);
	wr.imm_data = htonl(99);
	wr.qp_type.xrc.remote_srqn = number[0];
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && !next(&p.b, &wc) && wc.wr_id == 50 && wc.byte_len == 5000 &&
		wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(wc.imm_data) == 99;
	verdict(good, "XRC: WRITE, READ and an atomic, in memory of the receives' domain");

	fill(p.a.buf, SIZE, 1);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	wr.wr.rdma.remote_addr = (uintptr_t)p.a.buf + 4096;
	wr.wr.rdma.rkey = p.a.mr->rkey;
	wr.qp_type.xrc.remote_srqn = number[0];
	post(&p.a, &wr);
	good = next(&p.a, &wc) == IBV_WC_REM_ACCESS_ERR && state(&p.a) == IBV_QPS_ERR &&
		!touched(p.a.buf, 1, 0, 0);
	verdict(good, "XRC: WRITE into memory of the sender's domain: remote access error");

	srq = far;
	post_shared(&q.b, 1, 0, 64);
	wr = simple(&q, IBV_WR_SEND, 0, 0, 64);
	wr.qp_type.xrc.remote_srqn = beyond;
	post(&q.a, &wr);
	good = next(&q.a, &wc) == IBV_WC_REM_INV_REQ_ERR && state(&q.a) == IBV_QPS_ERR &&
		!ibv_poll_cq(q.b.cq, 1, &wc);
	verdict(good, "XRC: shared receives of another XRC domain: remote invalid request");
	srq = NULL;
	if (ibv_destroy_qp(p.a.qp) || ibv_destroy_qp(p.b.qp) || ibv_destroy_qp(q.a.qp) ||
	    ibv_destroy_qp(q.b.qp) || ibv_destroy_srq(one) || ibv_destroy_srq(two) ||
	    ibv_destroy_srq(far) || ibv_dereg_mr(p.a.mr) || ibv_dereg_mr(p.b.mr) ||
	    ibv_dereg_mr(q.a.mr) || ibv_dereg_mr(q.b.mr) || ibv_destroy_cq(p.a.cq) ||
	    ibv_destroy_cq(p.b.cq) || ibv_destroy_cq(q.a.cq) || ibv_destroy_cq(q.b.cq) ||
	    ibv_close_xrcd(xrcd) || ibv_close_xrcd(foreign) || ibv_dealloc_pd(of))
		die("destroy");
	free(p.a.buf);
	free(p.b.buf);
	free(q.a.buf);
	free(q.b.buf);
}

/* Nobody reads a completion queue until there is no room in it */
static void overrun(void)
{
	struct ibv_async_event e;
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p, q;
	time_t end = time(NULL) + 20;
	int good, room;

	make_pair(&q, 7);
	completions = 8;
	make_pair(&p, 7);
	room = p.a.cq->cqe + 1;
	for (int i = 0; i < room - 1; i++) {
		wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
		post(&p.a, &wr);
	}
	/* The data of the last one is there when those before it are done; the other pair comes after it */
	wr = simple(&p, IBV_WR_RDMA_READ, 4096, 8192, 64);
	post(&p.a, &wr);
	while (memcmp(p.a.buf + 4096, p.b.buf + 8192, 64) && time(NULL) < end)
		;
	wr = simple(&q, IBV_WR_RDMA_WRITE, 0, 0, 64);
	post(&q.a, &wr);
	good = time(NULL) < end && !next(&q.a, &wc) && state(&p.a) == IBV_QPS_RTS &&
		poll(&(struct pollfd){ .fd = ctx->async_fd, .events = POLLIN }, 1, 0) == 0;
	verdict(good, "a completion queue that is full is no error");
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	post(&p.a, &wr);
	good = event(&e) == IBV_EVENT_CQ_ERR && e.element.cq == p.a.cq;
	verdict(good, "one that runs over is told of");
	good = event(&e) == IBV_EVENT_QP_FATAL && e.element.qp == p.a.qp &&
		state(&p.a) == IBV_QPS_ERR;
	verdict(good, "the queue pair that completes there fails, and says so");
	good = state(&p.b) == IBV_QPS_RTS && state(&q.a) == IBV_QPS_RTS;
	wr = simple(&q, IBV_WR_RDMA_WRITE, 0, 0, 64);
	post(&q.a, &wr);
	good &= !next(&q.a, &wc);
	verdict(good, "the others work on");
	free_pair(&p);
	free_pair(&q);
}

/* Is there a completion event, within @ms? */
static int told(int ms)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, ms) != 1)
		return 0;
	if (ibv_get_cq_event(channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return 1;
}

static void queues(void)
{
	struct ibv_modify_cq_attr moderate = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 4 },
	};
	static const int sizes[] = { 1000, 15, 63 };
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct pair p;
	int good = 1;

	make_pair(&p, 7);
	/* Some completions are there or on their way when the queue gets another size */
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (int round = 0; round < 20; round++) {
			for (int j = 0; j < 10; j++) {
				wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 3000);
				wr.wr_id = j;
				post(&p.a, &wr);
			}
			if (round == 3)
				good &= !ibv_resize_cq(p.a.cq, sizes[i]) && p.a.cq->cqe >= sizes[i];
			for (int j = 0; j < 10; j++)
				good &= !next(&p.a, &wc) && wc.wr_id == (uint64_t)j;
		}
	}
	verdict(good, "a completion queue gets other sizes while it is used");

	if (ibv_modify_cq(p.a.cq, &moderate) || ibv_req_notify_cq(p.a.cq, 0))
		die("ibv_modify_cq");
	good = 1;
	for (int i = 0; i < 4; i++) {
		good &= !told(0);
		wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 1);
		post(&p.a, &wr);
		good &= !next(&p.a, &wc);
	}
	good &= told(20000);
	verdict(good, "an armed completion queue tells of four completions at a time");
	moderate.moderate.cq_count = 1000;
	if (ibv_modify_cq(p.a.cq, &moderate) || ibv_req_notify_cq(p.a.cq, 0))
		die("ibv_modify_cq");
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 1);
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !told(0);
	moderate.moderate.cq_period = 2000;
	if (ibv_modify_cq(p.a.cq, &moderate))
		die("ibv_modify_cq");
	good &= told(20000);
	verdict(good, "or of one, when its time is over");
	free_pair(&p);
}

/* What the other end of @p may reach by @rkey: [WINDOW, WINDOW + WINDOW_LEN) of its memory */
#define WINDOW 8192
#define WINDOW_LEN 5000

static struct ibv_send_wr into(struct pair *p, uint32_t rkey, uint32_t at, uint32_t len)
{
	struct ibv_send_wr wr = simple(p, IBV_WR_RDMA_WRITE, 0, WINDOW + at, len);

	wr.wr.rdma.rkey = rkey;
	return wr;
}

static struct ibv_mw_bind_info bind_info(struct pair *p, uint32_t len)
{
	return (struct ibv_mw_bind_info){
		.mr = p->b.mr, .addr = (uintptr_t)p->b.buf + WINDOW, .length = len,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
}

static struct ibv_mw *make_window(struct pair *p, enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	if (!mw)
		die("ibv_alloc_mw");
	make_pair(p, 7);
	return mw;
}

/* b opens the window, if that is not its entry that fails */
static int bind_1(struct pair *p, struct ibv_mw *mw, uint32_t len)
{
	struct ibv_mw_bind bind = {
		.wr_id = 31, .send_flags = IBV_SEND_SIGNALED, .bind_info = bind_info(p, len),
	};
	struct ibv_wc wc;

	if (ibv_bind_mw(p->b.qp, mw, &bind))
		die("ibv_bind_mw");
	return !next(&p->b, &wc) && wc.wr_id == 31 && wc.opcode == IBV_WC_BIND_MW;
}

static int bind_2(struct pair *p, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw, .rkey = rkey, .bind_info = bind_info(p, WINDOW_LEN) },
	};
	struct ibv_wc wc;

	post(&p->b, &wr);
	return next(&p->b, &wc);
}

static void close_window(struct ibv_mw *mw)
{
	if (ibv_dealloc_mw(mw))
		die("ibv_dealloc_mw");
}

/* b gets a message that says that @rkey is not used any more */
static int invalidated(struct pair *p, uint32_t rkey, uint32_t len)
{
	struct ibv_send_wr wr = simple(p, IBV_WR_SEND_WITH_INV, 0, 0, len);
	struct ibv_wc wc;

	post_recv(&p->b, 32, 0, len);
	wr.invalidate_rkey = rkey;
	post(&p->a, &wr);
	return !next(&p->a, &wc) && wc.opcode == IBV_WC_SEND && !next(&p->b, &wc) &&
		wc.wr_id == 32 && wc.opcode == IBV_WC_RECV && wc.byte_len == len &&
		(wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == rkey &&
		!memcmp(p->a.buf, p->b.buf, len);
}

/* Memory windows, and how their keys end */
static void windows(void)
{
	struct ibv_send_wr wr;
	struct pair p, other;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t rkey;
	int good;

	mw = make_window(&p, IBV_MW_TYPE_1);
	good = bind_1(&p, mw, WINDOW_LEN);
	wr = into(&p, mw->rkey, 0, WINDOW_LEN);
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && !memcmp(p.a.buf, p.b.buf + WINDOW, WINDOW_LEN) &&
		!touched(p.b.buf, 2, WINDOW, WINDOW_LEN);
	verdict(good, "WRITE through a window of type 1: all of it, and nothing else");
	fill(p.b.buf, SIZE, 2);
	wr = into(&p, mw->rkey, 1, WINDOW_LEN);
	refused("one byte behind it: remote access error", &p, &wr, IBV_WC_REM_ACCESS_ERR);
	make_pair(&p, 7);
	good = bind_1(&p, mw, WINDOW_LEN);
	wr = into(&p, mw->rkey, 0, 64);
	wr.opcode = IBV_WR_RDMA_READ;
	verdict(good, "a window is bound anew");
	refused("READ through a window to write: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);
	make_pair(&p, 7);
	good = bind_1(&p, mw, WINDOW_LEN);
	rkey = mw->rkey;
	good &= bind_1(&p, mw, WINDOW_LEN);
	verdict(good && rkey != mw->rkey, "bound twice, it has another key");
	wr = into(&p, rkey, 0, 64);
	refused("the key before that: remote access error", &p, &wr, IBV_WC_REM_ACCESS_ERR);
	make_pair(&p, 7);
	good = bind_1(&p, mw, WINDOW_LEN) && bind_1(&p, mw, 0);
	verdict(good, "a window of no bytes is closed");
	wr = into(&p, mw->rkey, 0, 64);
	refused("through that: remote access error", &p, &wr, IBV_WC_REM_ACCESS_ERR);
	close_window(mw);

	mw = make_window(&p, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	good = !bind_2(&p, mw, rkey);
	wr = into(&p, rkey, 7, 100);
	post(&p.a, &wr);
	good &= !next(&p.a, &wc) && !memcmp(p.a.buf, p.b.buf + WINDOW + 7, 100) &&
		!touched(p.b.buf, 2, WINDOW + 7, 100);
	verdict(good, "WRITE through a window of type 2");
	verdict(invalidated(&p, rkey, 10000), "SEND with invalidate, of three packets");
	fill(p.b.buf, SIZE, 2);
	wr = into(&p, rkey, 7, 100);
	refused("the key is of no use any more: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 7);
	rkey = ibv_inc_rkey(rkey);
	good = !bind_2(&p, mw, rkey);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };
	post(&p.b, &wr);
	good &= !next(&p.b, &wc) && wc.opcode == IBV_WC_LOCAL_INV;
	verdict(good, "its owner invalidates it");
	wr = into(&p, rkey, 7, 100);
	refused("its key: remote access error", &p, &wr, IBV_WC_REM_ACCESS_ERR);

	make_pair(&p, 7);
	make_pair(&other, 7);
	rkey = ibv_inc_rkey(rkey);
	good = !bind_2(&p, mw, rkey);
	wr = into(&other, rkey, 7, 100);
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf + WINDOW;
	refused("another queue pair uses its key: remote access error", &other, &wr,
		IBV_WC_REM_ACCESS_ERR);
	good &= !touched(p.b.buf, 2, 0, 0) && bind_2(&p, mw, ibv_inc_rkey(rkey)) ==
		IBV_WC_MW_BIND_ERR;
	verdict(good, "a window that is bound is not bound again: bind error");
	free_pair(&p);
	close_window(mw);

	/* A region's key stays: the receive fails, and so does the message */
	make_pair(&p, 7);
	post_recv(&p.b, 33, 0, 64);
	wr = simple(&p, IBV_WR_SEND_WITH_INV, 0, 0, 64);
	wr.invalidate_rkey = p.b.mr->rkey;
	post(&p.a, &wr);
	good = next(&p.a, &wc) == IBV_WC_REM_ACCESS_ERR && next(&p.b, &wc) ==
		IBV_WC_REM_INV_REQ_ERR && wc.wr_id == 33;
	verdict(good, "a key that nobody may invalidate: remote access error");
	free_pair(&p);
}

/* One key for all memory, of which pages come when they are asked for */
static void implicit(void)
{
	struct ibv_device_attr_ex attr = { .comp_mask = 0 };
	const size_t giga = 1ul << 30, len = 1 << 20;
	uint8_t *all, *middle;
	struct ibv_send_wr wr;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct pair p;
	int good;

	if (ibv_query_device_ex(ctx, NULL, &attr))
		die("ibv_query_device_ex");
	mr = attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT ?
		ibv_reg_mr(pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND) : NULL;
	verdict(!!mr, "all memory has one key, on demand");
	if (!mr)
		return;
	make_pair(&p, 7);
	/* Two pieces of the key meet at each gigabyte */
	all = mmap(NULL, 2 * giga, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		die("mmap");
	middle = (uint8_t *)(((uintptr_t)all + giga) / giga * giga);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, len);
	wr.wr.rdma.remote_addr = (uintptr_t)middle - len / 2 - 3;
	wr.wr.rdma.rkey = mr->rkey;
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !memcmp(p.a.buf, middle - len / 2 - 3, len);
	verdict(good, "WRITE across two pieces, by pages that were not there");
	if (madvise(middle - len, len, MADV_DONTNEED))
		die("madvise");
	fill(middle - len, len, 9);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, len);
	list[0] = (struct ibv_sge){ (uintptr_t)middle - len, len, mr->lkey };
	post(&p.a, &wr);
	good = !next(&p.a, &wc) && !memcmp(middle - len, p.b.buf, len);
	verdict(good, "WRITE from it, of pages that were given back and are others now");
	if (munmap(middle, 4096))
		die("munmap");
	fill(p.b.buf, SIZE, 2);
	wr = simple(&p, IBV_WR_RDMA_WRITE, 0, 0, 64);
	wr.wr.rdma.remote_addr = (uintptr_t)middle + 8;
	wr.wr.rdma.rkey = mr->rkey;
	refused("to where there is no memory: remote access error", &p, &wr,
		IBV_WC_REM_ACCESS_ERR);
	if (ibv_dereg_mr(mr) || munmap(all, 2 * giga))
		die("release");
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	if (!devices || !devices[0])
		die("no RDMA device");
	ctx = ibv_open_device(devices[0]);
	if (!ctx)
		die("ibv_open_device");
	ibv_free_device_list(devices);
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	if (!pd || !channel || ibv_query_port(ctx, 1, &port) || ibv_query_gid(ctx, 1, 0, &gid))
		die("no protection domain, channel or port");
	if (argc > 1 && !strcmp(argv[1], "overrun")) {
		overrun();
	} else {
		data();
		atomics();
		events();
		errors();
		datagrams();
		unreliable();
		shared();
		xrc();
		queues();
		windows();
		implicit();
	}
	printf("1..%d\n", cases);
	if (ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(pd) || ibv_close_device(ctx))
		die("close");
	return failures ? 1 : 0;
}
