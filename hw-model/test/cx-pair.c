// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two hosts talk: each verb of a reliable or an unreliable connection, of XRC, or of datagrams, moves what it should.
 *
 *	cx-pair active|passive (lid | gid INDEX) TIMEOUT MTU rc|uc|ud|xrc [whole]
 *
 * Prints a line that says who this is, reads the other's from standard input, and
 * then lines of results: "ok WHAT" or "not ok WHAT".  The active end sends, writes,
 * reads and does atomics; the passive end looks at what arrives.  On a wire
 * that is "whole" it reads a megabyte instead of 64 KiB: soft-RoCE drops all answers behind one that
 * is lost and asks for the rest when its timer ends, so that each loss costs seconds.  There it also
 * ends with a WRITE that is refused, which a lost answer would hide.  The passive end of RC opens a memory
 * window, which a message of the active one closes.
 * Without acknowledges the passive end sends each message back, and the active one sends those again that do not return.
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
#include <unistd.h>
#include <infiniband/verbs.h>

#define SIZE (1u << 20)
#define DEPTH 16
#define SENDS 8
#define ADDS 20
#define LIMIT 120		/* s for a completion */
#define PATIENCE 5		/* s for a message that may be lost */
#define TRIES 12
#define GRH 40
#define Q_KEY 0x11223344
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Lengths of messages: none, less than a packet, and several with and without a rest */
static const uint32_t sizes[SENDS] = { 1, 0, 7, 1024, 1025, 4096, 40000, 65536 };

/* What the ends tell each other */
struct who {
	uint32_t qpn, psn, rkey, srqn, window;
	uint64_t addr;
	unsigned int lid;
	char gid[INET6_ADDRSTRLEN];
};

static enum ibv_qp_type service = IBV_QPT_RC;
static struct ibv_ah *ah;	/* of the other, for datagrams */
static struct ibv_qp *qp;
static struct ibv_srq *srq;	/* of XRC: what the passive end receives by */
static struct ibv_mw *mw;	/* of RC: what the passive end opens */
static uint32_t window;		/* its key */
/* soft-RoCE tells programs of an invalidated key by the number that the flag has in the kernel */
static unsigned int invalidated = IBV_WC_WITH_INV;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *buf;		/* SIZE that the other reaches, SIZE to send from, SIZE to read to */
static struct who other;

/* Requests are acknowledged */
static int reliable(void)
{
	return service != IBV_QPT_UC && service != IBV_QPT_UD;
}

static void die(const char *what)
{
	printf("not ok %s: %s\n", what, strerror(errno));
	exit(1);
}

static void verdict(int good, const char *what)
{
	printf("%s %s\n", good ? "ok" : "not ok", what);
	fflush(stdout);
	/* What comes after it would only wait */
	if (!good)
		exit(1);
}

static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = x >> 24;
	}
}

static int filled(const uint8_t *p, size_t n, uint32_t seed)
{
	static uint8_t want[SIZE];

	fill(want, n, seed);
	return !memcmp(p, want, n);
}

static int next_within(struct ibv_wc *wc, int seconds)
{
	time_t end = time(NULL) + seconds;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return wc->status;
		if (time(NULL) >= end)
			return -1;
		/* the emulated processors have work to do, too */
		usleep(100);
	}
}

static int next(struct ibv_wc *wc)
{
	int status = next_within(wc, LIMIT);

	if (status < 0)
		printf("# no completion\n");
	return status;
}

/* One verb to its end; its status */
static int verb(enum ibv_wr_opcode op, uint32_t from, uint32_t to, uint32_t len, uint32_t imm,
		uint64_t compare_add, uint64_t swap, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)buf + from, len, mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(imm),
	}, *bad;
	struct ibv_wc wc;
	int status;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = other.addr + to;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = compare_add;
		wr.wr.atomic.swap = swap;
	} else {
		wr.wr.rdma.remote_addr = other.addr + to;
		wr.wr.rdma.rkey = rkey;
	}
	if (op == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	if (service == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = other.srqn;
	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
	status = next(&wc);
	if (status > 0 && status != IBV_WC_REM_ACCESS_ERR)
		printf("# %s, vendor error %#x\n", ibv_wc_status_str(status), wc.vendor_err);
	return status;
}

static void receive(uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)buf + at, len, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad))
		die("ibv_post_recv");
}

/* The start of what the other reaches is for atomics */
#define WORD 4096
#define MINE SIZE
#define READ_TO (2 * SIZE)
/* What the window of RC opens, and what comes through it */
#define WINDOW 100000
#define THROUGH 30000

static void active(uint32_t read)
{
	uint64_t *reply = (uint64_t *)(buf + READ_TO);
	int good;

	fill(buf + MINE, SIZE, 100);
	good = !verb(IBV_WR_RDMA_WRITE, MINE, WORD, SIZE - WORD, 0, 0, 0, other.rkey);
	verdict(good, "WRITE of a megabyte");
	memset(buf + READ_TO, 0, SIZE);
	good = !verb(IBV_WR_RDMA_READ, READ_TO, WORD, read, 0, 0, 0, other.rkey) &&
		!memcmp(buf + READ_TO, buf + MINE, read);
	verdict(good, "READ gets what was written");
	good = !verb(IBV_WR_RDMA_READ, READ_TO, WORD, 0, 0, 0, 0, other.rkey);
	verdict(good, "READ of nothing");
	good = 1;
	for (unsigned int i = 0; i < ADDS; i++)
		good &= !verb(IBV_WR_ATOMIC_FETCH_AND_ADD, READ_TO, 0, 8, 0, 1, 0, other.rkey) &&
			*reply == i;
	verdict(good, "FETCH and ADD, each once");
	good = !verb(IBV_WR_ATOMIC_CMP_AND_SWP, READ_TO, 8, 8, 0, 0, 5, other.rkey) &&
		*reply == 0;
	good &= !verb(IBV_WR_ATOMIC_CMP_AND_SWP, READ_TO, 8, 8, 0, 0, 77, other.rkey) &&
		*reply == 5;
	verdict(good, "COMPARE and SWAP, once equal and once not");
	good = 1;
	for (unsigned int i = 0; i < SENDS; i++) {
		fill(buf + MINE, sizes[i], 200 + i);
		good &= !verb(i & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, MINE, 0, sizes[i], 300 + i,
			      0, 0, 0);
	}
	verdict(good, "SEND, with and without immediate");
	fill(buf + MINE, 70000, 400);
	good = !verb(IBV_WR_RDMA_WRITE_WITH_IMM, MINE, 8192, 70000, 500, 0, 0, other.rkey);
	verdict(good, "WRITE with immediate");
	if (service != IBV_QPT_RC)
		return;
	fill(buf + MINE, THROUGH, 600);
	good = !verb(IBV_WR_RDMA_WRITE, MINE, WINDOW, THROUGH, 0, 0, 0, other.window);
	verdict(good, "WRITE through a window");
	good = !verb(IBV_WR_SEND_WITH_INV, MINE, 0, 5000, 0, 0, 0, other.window);
	verdict(good, "SEND that closes it");
}

/* The passive end's window is of this queue pair alone, and can be written */
static void open_window(void)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = window,
			.bind_info = {
				.mr = mr, .addr = (uintptr_t)buf + WINDOW, .length = THROUGH,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			},
		},
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(qp, &wr, &bad))
		die("to open a window");
	if (next(&wc) || wc.opcode != IBV_WC_BIND_MW)
		die("a window is not opened");
}

static void passive(void)
{
	struct ibv_wc wc;
	uint64_t *word = (uint64_t *)buf;
	int good = 1;

	for (unsigned int i = 0; i < SENDS; i++) {
		int one = !next(&wc) && wc.opcode == IBV_WC_RECV && wc.byte_len == sizes[i] &&
			!!(wc.wc_flags & IBV_WC_WITH_IMM) == (i & 1) &&
			(!(i & 1) || ntohl(wc.imm_data) == 300 + i) &&
			filled(buf + SIZE + i * 65536, sizes[i], 200 + i);

		if (!one)
			printf("# message %u: status %d, %u bytes\n", i, wc.status, wc.byte_len);
		good &= one;
	}
	verdict(good, "messages arrive, in order and whole");
	good = !next(&wc) && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 70000 &&
		ntohl(wc.imm_data) == 500 && filled(buf + 8192, 70000, 400);
	verdict(good, "what was written arrives before its immediate");
	/* All before the immediate has happened */
	good = word[0] == ADDS && word[1] == 5;
	verdict(good, "atomics were done once each");
	if (service != IBV_QPT_RC)
		return;
	good = !next(&wc) && wc.opcode == IBV_WC_RECV && wc.byte_len == 5000 && (wc.wc_flags & invalidated) &&
		wc.invalidated_rkey == window && filled(buf + SIZE + SENDS * 65536, 5000, 600);
	verdict(good, "a message closes the window, and says which");
	verdict(filled(buf + WINDOW, THROUGH, 600), "what came through it arrived before");
}

/* Messages without acknowledges: the last byte of an immediate is the number, the others who has sent it */
#define ASKS 0x5a5a5a00
#define ANSWERS 0xa5a5a500
static const uint32_t unreliable[] = { 0, 1, 7, 1000, 1024, 4096, 4097, 30000 };
#define MESSAGES (service == IBV_QPT_UD ? 5u : 8u)
#define SLOT 32768

static void receive_slot(uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)buf + slot * SLOT, SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("ibv_post_recv");
}

static void send_message(uint32_t i, uint32_t who, int write)
{
	/* Of its own: one that was sent before may still be on its way */
	uint32_t at = MINE + i * SLOT;
	struct ibv_sge sge = { (uintptr_t)buf + at, unreliable[i], mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1000, .opcode = write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM,
		.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(who | i),
	}, *bad;

	fill(buf + at, unreliable[i], i);
	if (service == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = other.qpn;
		wr.wr.ud.remote_qkey = Q_KEY;
	} else if (write) {
		wr.wr.rdma.remote_addr = other.addr + READ_TO;
		wr.wr.rdma.rkey = other.rkey;
	}
	if (ibv_post_send(qp, &wr, &bad))
		die("ibv_post_send");
}

/* Is this a message of @who that is as it was sent?  Its number in *@i. */
static int message(const struct ibv_wc *wc, uint32_t who, uint32_t *i)
{
	uint32_t head = service == IBV_QPT_UD ? GRH : 0, imm = ntohl(wc->imm_data);
	const uint8_t *data = buf + wc->wr_id * SLOT + head;

	if (!(wc->opcode & IBV_WC_RECV) || !(wc->wc_flags & IBV_WC_WITH_IMM) ||
	    (imm & ~0xffu) != who || (imm & 0xff) >= MESSAGES)
		return 0;
	*i = imm & 0xff;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		data = buf + READ_TO;
	return wc->byte_len == unreliable[*i] + head && filled(data, unreliable[*i], *i) &&
		(service != IBV_QPT_UD || wc->src_qp == other.qpn);
}

/* What has come, if it is such a message; its receive is there again.  0: nothing within @seconds */
static int arrived(uint32_t who, uint32_t *i, int seconds)
{
	struct ibv_wc wc;
	int status = next_within(&wc, seconds), good;

	if (status < 0)
		return 0;
	if (status)
		die(ibv_wc_status_str(status));
	if (wc.wr_id == 1000)
		return arrived(who, i, seconds);
	good = message(&wc, who, i);
	receive_slot(wc.wr_id);
	if (!good)
		verdict(0, "what arrives is what was sent");
	return 1;
}

static void ask(uint32_t i, int write, const char *what)
{
	for (int n = 0; n < TRIES; n++) {
		uint32_t got;

		send_message(i, ASKS, write);
		while (arrived(ANSWERS, &got, PATIENCE)) {
			if (got == i) {
				verdict(1, what);
				return;
			}
		}
	}
	verdict(0, what);
}

static void active_unreliable(void)
{
	static const char *const what[] = {
		"a message of nothing returns", "one of 1 byte", "one of 7", "one of 1000", "one of 1024",
		"one of 4096", "one of 4097", "one of 30000",
	};

	for (uint32_t i = 0; i < MESSAGES; i++)
		ask(i, 0, what[i]);
	if (service == IBV_QPT_UC)
		ask(MESSAGES - 1, 1, "WRITE with immediate");
}

/* Until the other has all and says so on standard input */
static void passive_unreliable(void)
{
	time_t end = time(NULL) + 180;
	struct pollfd input = { .events = POLLIN };
	unsigned int seen = 0;
	uint32_t i;

	printf("done\n");
	fflush(stdout);
	while (poll(&input, 1, 0) == 0 && time(NULL) < end) {
		if (!arrived(ASKS, &i, 0))
			continue;
		seen |= 1u << i;
		send_message(i, ANSWERS, 0);
	}
	verdict(seen == (1u << MESSAGES) - 1, "all messages arrive whole");
}

static void connect_qp(int global, int sgid, unsigned int timeout, enum ibv_mtu mtu, uint32_t psn)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL, .qkey = Q_KEY,
	};
	int rtr_mask = IBV_QP_STATE, rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = other.qpn,
		.rq_psn = other.psn, .max_dest_rd_atomic = 1, .min_rnr_timer = 20,
		.ah_attr = { .port_num = 1, .dlid = other.lid },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .max_rd_atomic = 1,
		.rnr_retry = 7, .sq_psn = psn,
	};

	if (global) {
		rtr.ah_attr.is_global = 1;
		rtr.ah_attr.grh.sgid_index = sgid;
		rtr.ah_attr.grh.hop_limit = 64;
		if (inet_pton(AF_INET6, other.gid, &rtr.ah_attr.grh.dgid) != 1)
			die("the other's address");
	}
	if (service != IBV_QPT_UD)
		rtr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (service == IBV_QPT_UC)
		init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (service == IBV_QPT_RC || service == IBV_QPT_XRC_RECV)
		rtr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (service == IBV_QPT_RC || service == IBV_QPT_XRC_SEND)
		rts_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (service == IBV_QPT_XRC_RECV)
		rts_mask |= IBV_QP_TIMEOUT;
	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  (service == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		die("to INIT");
	for (unsigned int i = 0; i < SENDS && service != IBV_QPT_XRC_SEND; i++) {
		if (reliable())
			receive(SIZE + i * 65536, 65536);
		else
			receive_slot(i);
	}
	if (reliable() && service != IBV_QPT_XRC_SEND)
		receive(0, 0);
	if (service == IBV_QPT_RC)
		receive(SIZE + SENDS * 65536, 65536);
	if (ibv_modify_qp(qp, &rtr, rtr_mask))
		die("to RTR");
	if (ibv_modify_qp(qp, &rts, rts_mask))
		die("to RTS");
	if (service == IBV_QPT_UD) {
		ah = ibv_create_ah(qp->pd, &rtr.ah_attr);
		if (!ah)
			die("ibv_create_ah");
	}
}

/* One end of XRC sends, the other receives by what it shares */
static void make_xrc(struct ibv_context *ctx, struct ibv_pd *pd, uint32_t *srqn)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex shared = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = pd, .cq = cq,
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = service, .cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};

	if (service == IBV_QPT_XRC_SEND) {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.pd = pd;
		attr.send_cq = cq;
	} else {
		shared.xrcd = ibv_open_xrcd(ctx, &domain);
		if (!shared.xrcd)
			die("ibv_open_xrcd");
		srq = ibv_create_srq_ex(ctx, &shared);
		if (!srq || ibv_get_srq_num(srq, srqn))
			die("ibv_create_srq_ex");
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = shared.xrcd;
	}
	qp = ibv_create_qp_ex(ctx, &attr);
}

int main(int argc, char **argv)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	int global = argc > 2 && !strcmp(argv[2], "gid");
	int whole;
	unsigned int timeout, bytes;
	enum ibv_mtu mtu = IBV_MTU_256;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	uint32_t psn, srqn = 0;

	if (argc < 6 + global)
		die("arguments");
	if (global)
		invalidated |= 1 << 2;
	timeout = atoi(argv[3 + global]);
	bytes = atoi(argv[4 + global]);
	service = !strcmp(argv[5 + global], "uc") ? IBV_QPT_UC :
		!strcmp(argv[5 + global], "ud") ? IBV_QPT_UD :
		strcmp(argv[5 + global], "xrc") ? IBV_QPT_RC :
		strcmp(argv[1], "active") ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND;
	attr.qp_type = service;
	whole = argc > 6 + global;
	while (128u << mtu < bytes)
		mtu++;
	if (!devices || !devices[0])
		die("no RDMA device");
	ctx = ibv_open_device(devices[0]);
	if (!ctx || ibv_query_port(ctx, 1, &port))
		die("ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	if (!pd || !cq || posix_memalign((void **)&buf, 4096, 3 * SIZE))
		die("no domain, completion queue or memory");
	memset(buf, 0, 3 * SIZE);
	mr = ibv_reg_mr(pd, buf, 3 * SIZE, ALL | (service == IBV_QPT_RC ? IBV_ACCESS_MW_BIND : 0));
	if (service == IBV_QPT_XRC_SEND || service == IBV_QPT_XRC_RECV)
		make_xrc(ctx, pd, &srqn);
	else
		qp = ibv_create_qp(pd, &attr);
	if (!mr || !qp)
		die("no key or queue pair");
	if (service == IBV_QPT_RC) {
		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		if (!mw)
			die("ibv_alloc_mw");
		window = ibv_inc_rkey(mw->rkey);
	}
	/* Numbers go round within what is sent */
	psn = 0xfffff0 + (qp->qp_num & 7);
	printf("who %u %u %u %u %u %" PRIu64 " %u\n", qp->qp_num, psn, mr->rkey, srqn, window,
	       (uint64_t)(uintptr_t)buf, port.lid);
	fflush(stdout);
	if (scanf(" who %u %u %u %u %u %" SCNu64 " %u %45s", &other.qpn, &other.psn, &other.rkey,
		  &other.srqn, &other.window, &other.addr, &other.lid, other.gid) != 8)
		die("who the other is");
	connect_qp(global, global ? atoi(argv[3]) : 0, timeout, mtu, psn);
	if (service == IBV_QPT_RC && strcmp(argv[1], "active"))
		open_window();
	printf("ready\n");
	fflush(stdout);
	/* The other is, too */
	if (scanf(" %*s") < 0)
		die("the other is not ready");
	if (!reliable()) {
		/* The passive end is done at once, and goes on until the other is */
		if (strcmp(argv[1], "active")) {
			passive_unreliable();
			return 0;
		}
		active_unreliable();
	} else if (strcmp(argv[1], "active"))
		passive();
	else
		active(whole ? SIZE - WORD : 65536);
	if (reliable() && !strcmp(argv[1], "active") && whole)
		verdict(verb(IBV_WR_RDMA_WRITE, MINE, WINDOW, 64, 0, 0, 0,
			     service == IBV_QPT_RC ? other.window : other.rkey ^ 1) ==
			IBV_WC_REM_ACCESS_ERR, "WRITE with a key that is none any more: remote access error");
	/* A queue pair that is gone does not answer what is sent again */
	printf("done\n");
	fflush(stdout);
	if (scanf(" %*s") < 0)
		die("the other is not done");
	return 0;
}
