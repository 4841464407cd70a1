/* SPDX-License-Identifier: MIT */
/*
 * What the RDMA scenarios' guest programs share: one reliable connection
 * between two processes that do the same steps in turn, on plain libibverbs,
 * with memory of the GPU registered by pln_mr_reg().
 *
 * One end listens, the other connects; a TCP connection between them carries
 * what they must tell each other, and is their barrier.  Every wait is bounded.
 * What a scenario cannot go on without ends the program with a failed check.
 */
#ifndef SCENARIO_RDMA_H
#define SCENARIO_RDMA_H

#include "peers.h"
#include "pattern.h"

int cuMemGetInfo_v2(size_t *avail, size_t *total);
int plnMemCompare(gpu_ptr a, gpu_ptr b, size_t size, uint64_t *first_diff);

#define GUARD		KIB(64)		/* untouched memory on each side */
#define GUARD_BYTE	0xee
#define DEPTH		64		/* work requests of a send queue */
#define RECEIVES	128		/* of a whole GiB, which are posted at once */
#define MAX_REQUEST	MIB(8)		/* bytes of one, unless a program wants more; the device may take less */
#define WC_MS		60000		/* a completion comes within, under emulation */
#define PORT		18515
#define SOCK_SECONDS	150	/* longer than anything one end does alone */

/* A piece of GPU memory and what the other end must know to reach its own. */
struct area {
	gpu_ptr ptr;
	size_t size;
	struct pln_mr *mr;
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

struct end {
	bool active;		/* the end that connected */
	int sock;
	uint64_t steps;		/* in which both ends were together */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_port_attr port;
	int gid_index;
	union ibv_gid gid;
	uint32_t psn;
	uint8_t timeout, retry, rnr;	/* of the QP, as in ibv_modify_qp() */
	size_t max_msg;		/* of one request: the least that either end wants and takes; 0: MAX_REQUEST */
	unsigned int mr_flags;	/* of pln_mr_reg() */
};

/* ---- the two ends ---- */

static inline void tell_end(struct end *e, const void *data, size_t len)
{
	if (send(e->sock, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		quit("the other end can be told something: %s", strerror(errno));
}

static inline void hear_end(struct end *e, void *data, size_t len)
{
	ssize_t n = recv(e->sock, data, len, MSG_WAITALL);

	if (n != (ssize_t)len)
		quit("the other end answers: %s",
		     n < 0 ? strerror(errno) : "it has closed the connection");
}

static inline void swap_words(struct end *e, uint64_t mine, uint64_t *theirs)
{
	tell_end(e, &mine, sizeof(mine));
	hear_end(e, theirs, sizeof(*theirs));
}

/* Both ends have come this far; a step too many of one is noticed. */
static inline void sync_ends(struct end *e)
{
	uint64_t theirs, mine = ++e->steps;

	swap_words(e, mine, &theirs);
	if (theirs != mine)
		quit("both ends are at step %d; the other is at %d", (int)mine,
		     (int)theirs);
}

/*
 * The GID that is the interface's IPv4 address; what has a LID instead is reached at
 * the address that ends with it (peerlane-cx.rst).
 */
static inline int ipv4_gid(struct end *e)
{
	if (e->port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		memcpy(e->gid.raw, "\0\0\0\0\0\0\0\0\0\0\377\377\12\0", 14);
		e->gid.raw[14] = (uint8_t)(e->port.lid >> 8);
		e->gid.raw[15] = (uint8_t)e->port.lid;
		return 0;
	}
	for (int i = 0; i < e->port.gid_tbl_len; i++)
		if (!ibv_query_gid(e->ctx, 1, i, &e->gid) &&
		    !e->gid.global.subnet_prefix &&
		    !memcmp(e->gid.raw + 8, "\0\0\377\377", 4))
			return i;
	return -1;
}

static inline void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = RECEIVES,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("ibv_create_qp");
}

static int left_sock;
static pid_t left_pid;

/*
 * A guest is switched off right after its program: what the other end has not got
 * by then is never sent again.  The other end closes when it has got all.
 */
static void leave_together(void)
{
	struct timeval limit = { .tv_sec = 10 };
	char c;

	if (getpid() != left_pid)
		return;
	setsockopt(left_sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	shutdown(left_sock, SHUT_WR);
	while (recv(left_sock, &c, 1, 0) > 0)
		continue;
}

/*
 * A device, its protection domain, completion queue and QP.  WHERE is "listen",
 * or the other end's IPv4 address.
 */
static inline void rdma_open(struct end *e, const char *where)
{
	struct timeval limit = { .tv_sec = SOCK_SECONDS };
	struct ibv_device **list = ibv_get_device_list(NULL);
	uint64_t theirs;
	int on = 1;

	if (!list || !list[0])
		quit("there is an RDMA device");
	e->ctx = ibv_open_device(list[0]);
	if (!e->ctx)
		die("ibv_open_device");
	ibv_free_device_list(list);
	if (ibv_query_port(e->ctx, 1, &e->port))
		die("ibv_query_port");
	if (e->port.state != IBV_PORT_ACTIVE)
		quit("the RDMA port is active, not %s",
		     ibv_port_state_str(e->port.state));
	e->gid_index = ipv4_gid(e);
	if (e->gid_index < 0)
		quit("the RDMA device has a GID of an IPv4 address");
	e->max_msg = e->max_msg ?: MAX_REQUEST;
	if (e->port.max_msg_sz < e->max_msg)
		e->max_msg = e->port.max_msg_sz;
	/* 2.1 s: emulation is slow at times; a ConnectX takes four times as long */
	e->timeout = e->timeout ?:
		e->port.link_layer == IBV_LINK_LAYER_INFINIBAND ? 17 : 19;
	e->retry = e->retry ?: 7;	/* which soft-RoCE takes for: always */
	e->rnr = e->rnr ?: 7;
	e->pd = ibv_alloc_pd(e->ctx);
	e->channel = ibv_create_comp_channel(e->ctx);
	if (!e->pd || !e->channel)
		die("ibv_alloc_pd, ibv_create_comp_channel");
	if (fcntl(e->channel->fd, F_SETFL, O_NONBLOCK))
		die("the completion channel");
	e->cq = ibv_create_cq(e->ctx, 4 * DEPTH, NULL, e->channel, 0);
	if (!e->cq)
		die("ibv_create_cq");
	make_qp(e);

	e->active = strcmp(where, "listen") != 0;
	if (e->active) {
		e->sock = peer_connect(where, PORT);
	} else {
		int listening = peer_listen("0.0.0.0", PORT);

		e->sock = peer_accept(listening);
		close(listening);
	}
	if (setsockopt(e->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(e->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("setsockopt");
	swap_words(e, e->max_msg, &theirs);
	if (theirs < e->max_msg)
		e->max_msg = theirs;
	left_sock = e->sock;
	left_pid = getpid();
	atexit(leave_together);
}

/*
 * QPs of both ends from RESET to RTS, by both ends at a time.  Also takes a QP
 * out of the error state.
 */
static inline void rdma_connect(struct end *e)
{
	struct { uint64_t qpn, psn; union ibv_gid gid; } me, you;
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET }, a;
	int err, tries;

	e->psn = (e->psn + 0x1000 + e->qp->qp_num) & 0xffffff;
	me.qpn = e->qp->qp_num;
	me.psn = e->psn;
	me.gid = e->gid;
	err = ibv_modify_qp(e->qp, &reset, IBV_QP_STATE);
	if (err)
		quit("the QP goes to RESET: %s", strerror(err));
	/* neither end sends before the other one is ready */
	tell_end(e, &me, sizeof(me));
	hear_end(e, &you, sizeof(you));

	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };
	for (tries = 0; tries < 10; tries++) {
		err = ibv_modify_qp(e->qp, &a, IBV_QP_STATE |
				    IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
		if (err != EINVAL)
			break;
		/*
		 * rxe's responder ends in a work item: what it finds wrong
		 * there can move the QP to the error state after RESET.
		 */
		ibv_modify_qp(e->qp, &reset, IBV_QP_STATE);
	}
	if (err)
		quit("the QP goes to INIT: %s", strerror(err));
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR,
		.path_mtu = e->port.active_mtu,
		.dest_qp_num = (uint32_t)you.qpn, .rq_psn = (uint32_t)you.psn,
		.max_dest_rd_atomic = 16, .min_rnr_timer = 12,
		.ah_attr = { .is_global = e->port.link_layer != IBV_LINK_LAYER_INFINIBAND,
			     .dlid = (uint16_t)(you.gid.raw[14] << 8 | you.gid.raw[15]),
			     .port_num = 1,
			     .grh = { .dgid = you.gid, .hop_limit = 64,
				.sgid_index = (uint8_t)e->gid_index } } };
	err = ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (err)
		quit("the QP goes to RTR: %s", strerror(err));
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS,
		.sq_psn = e->psn, .timeout = e->timeout, .retry_cnt = e->retry,
		.rnr_retry = e->rnr, .max_rd_atomic = 16 };
	err = ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		quit("the QP goes to RTS: %s", strerror(err));
	sync_ends(e);
}

/* The next completion; false after MS milliseconds without one. */
static inline bool wait_wc(struct end *e, struct ibv_wc *wc, int ms)
{
	struct pollfd p = { .fd = e->channel->fd, .events = POLLIN };
	double until = seconds() + ms / 1000.0;
	struct ibv_cq *cq;
	void *context;
	int n;

	for (;;) {
		double left = until - seconds();

		n = ibv_poll_cq(e->cq, 1, wc);
		if (!n) {
			/* what came before the request makes no event */
			if (ibv_req_notify_cq(e->cq, 0))
				die("ibv_req_notify_cq");
			n = ibv_poll_cq(e->cq, 1, wc);
		}
		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return true;
		if (left <= 0)
			return false;
		poll(&p, 1, (int)(left * 1000) + 1);
		while (!ibv_get_cq_event(e->channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
	}
}

/* Polls away what is left of a failed QP's work. */
static inline void rdma_drain(struct end *e, unsigned int *good, unsigned int *flushed)
{
	struct ibv_wc wc;

	*good = *flushed = 0;
	while (ibv_poll_cq(e->cq, 1, &wc) > 0) {
		if (wc.status == IBV_WC_SUCCESS)
			(*good)++;
		else
			(*flushed)++;
	}
}

/* ---- memory ---- */

static inline void area_register(struct end *e, struct area *a, const char *what)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	int err = pln_mr_reg(e->pd, addr(a->ptr), a->size,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
			     e->mr_flags, &a->mr);

	if (err)
		quit("%s is registered: %s", what, strerror(-err));
	pln_mr_info(a->mr, &info);
	note("%s: %zu bytes, registered: %s", what, a->size, info.reason);
}

static inline void area_swap(struct end *e, struct area *a)
{
	uint64_t rkey;

	swap_words(e, pln_mr_iova(a->mr, 0), &a->peer_addr);
	swap_words(e, pln_mr_verbs(a->mr)->rkey, &rkey);
	a->peer_rkey = (uint32_t)rkey;
}

/* Allocates, registers, and exchanges address and key. */
static inline void area_make(struct end *e, struct area *a, size_t size, const char *what)
{
	a->size = size;
	a->ptr = gpu_alloc(size);
	area_register(e, a, what);
	area_swap(e, a);
}

/* Equal, as the GPU's engine sees it. */
static inline bool gpu_same(gpu_ptr a, gpu_ptr b, size_t n, const char *what)
{
	uint64_t diff = 0;
	int err = plnMemCompare(a, b, n, &diff);

	if (err || diff != UINT64_MAX)
		note("%s: %s %" PRIu64, what, err ? "CUDA error" :
		     "differs at byte", err ? (uint64_t)err : diff);
	return !err && diff == UINT64_MAX;
}

static inline void words(uint8_t *to, uint64_t seed, size_t size)
{
	uint64_t w;
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		w = pattern_word(seed + i / 8);
		memcpy(to + i, &w, 8);
	}
	w = pattern_word(seed + i / 8);
	memcpy(to + i, &w, size - i);
}

/* Whether the machine has a coherent window. */
static inline bool cpu_reaches_gpu(void)
{
	static int known = -1;
	char path[128], words[256] = "";
	FILE *f;

	if (known >= 0)
		return known;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/features", guest_bdf);
	f = fopen(path, "r");
	if (!f || !fgets(words, sizeof(words), f))
		die(path);
	fclose(f);
	known = strstr(words, "coherent") != NULL;
	return known;
}

/*
 * The data of SEED at P in GPU memory; through host memory, a piece at a time,
 * only when the CPU cannot store to the GPU's.
 */
static inline void pattern_put(gpu_ptr p, uint64_t seed, size_t size)
{
	static uint8_t piece[1 << 16];

	if (cpu_reaches_gpu()) {
		words(addr(p), seed, size);
		return;
	}
	for (size_t done = 0; done < size; done += sizeof(piece)) {
		size_t n = size - done < sizeof(piece) ? size - done :
			   sizeof(piece);
		int err;

		words(piece, seed + done / 8, n);
		err = cuMemcpyHtoD_v2(p + done, piece, n);
		if (err)
			quit("the data is written (CUDA error %d)", err);
	}
	memset(piece, 0, sizeof(piece));
}

/* A word of registered memory, where this end's GPU sees it */
static inline uint64_t word_of(const struct area *a, size_t at)
{
	uint64_t w = 0;

	/* where it is staged, the NIC's copy is the newer one */
	if (pln_mr_to_gpu(a->mr, at, sizeof(w)) ||
	    cuMemcpyDtoH_v2(&w, a->ptr + at, sizeof(w)))
		die("a word of the GPU's memory");
	return w;
}

static inline void set_word(const struct area *a, size_t at, uint64_t w)
{
	if (cuMemcpyHtoD_v2(a->ptr + at, &w, sizeof(w)) ||
	    pln_mr_from_gpu(a->mr, at, sizeof(w)))
		die("a word of the GPU's memory");
}

static inline uint32_t pattern_crc(uint64_t seed, size_t size)
{
	uint8_t piece[1024];
	uint32_t crc = 0;

	for (size_t done = 0; done < size; done += sizeof(piece)) {
		size_t n = size - done < sizeof(piece) ? size - done :
			   sizeof(piece);

		words(piece, seed + done / 8, n);
		crc = crc32c(crc, piece, n);
	}
	return crc;
}

/* ---- work ---- */

/* one work request of post_request(), of at most max_msg bytes */
struct request {
	enum ibv_wr_opcode opcode;
	const struct area *local;
	size_t at;		/* in the local area */
	const struct area *remote;
	size_t peer_at;		/* in the peer's area */
	size_t size;
	uint32_t imm;
	uint32_t invalidate;	/* a key, by the last of several */
	uint64_t add, compare, swap;
	uint64_t id;
	bool wrong_lkey;
};

/* 0 or an errno */
static inline int post_request(struct end *e, const struct request *r)
{
	struct ibv_sge sge = {
		.addr = pln_mr_iova(r->local->mr, r->at),
		.length = (uint32_t)r->size,
		.lkey = pln_mr_verbs(r->local->mr)->lkey ^
			(r->wrong_lkey ? 0x5a00 : 0),
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = r->id, .sg_list = &sge, .num_sge = r->size ? 1 : 0,
		.opcode = r->opcode, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(r->imm),
	};

	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = r->remote->peer_addr + r->peer_at;
		wr.wr.atomic.rkey = r->remote->peer_rkey;
		wr.wr.atomic.compare_add = r->opcode ==
			IBV_WR_ATOMIC_FETCH_AND_ADD ? r->add : r->compare;
		wr.wr.atomic.swap = r->swap;
	} else if (r->remote) {
		wr.wr.rdma.remote_addr = r->remote->peer_addr + r->peer_at;
		wr.wr.rdma.rkey = r->remote->peer_rkey;
	}
	if (r->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = r->invalidate;
	return ibv_post_send(e->qp, &wr, &bad);
}

static inline int post_receive(struct end *e, const struct area *a, size_t at, size_t size,
		 uint64_t id)
{
	struct ibv_sge sge = {
		.addr = pln_mr_iova(a->mr, at), .length = (uint32_t)size,
		.lkey = pln_mr_verbs(a->mr)->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = size ? 1 : 0,
	};

	return ibv_post_recv(e->qp, &wr, &bad);
}

/*
 * All of WHOLE in requests of at most max_msg, DEPTH / 2 at a time, immediate
 * data counting up.  The first
 * status that is not success ends it; IBV_WC_GENERAL_ERR: no completion in time.
 */
static inline enum ibv_wc_status move(struct end *e, const struct request *whole)
{
	size_t posted = 0, flying = 0;
	uint32_t turn = 0;
	struct ibv_wc wc;

	while (posted < whole->size || flying) {
		if (posted < whole->size && flying < DEPTH / 2) {
			struct request r = *whole;
			int err;

			r.at += posted;
			r.peer_at += posted;
			r.imm += turn++;
			r.size = whole->size - posted;
			if (r.size > e->max_msg) {
				r.size = e->max_msg;
				if (r.opcode == IBV_WR_SEND_WITH_INV)
					r.opcode = IBV_WR_SEND;
			}
			err = post_request(e, &r);
			if (err)
				quit("a request is posted: %s", strerror(err));
			posted += r.size;
			flying++;
			continue;
		}
		if (!wait_wc(e, &wc, WC_MS))
			return IBV_WC_GENERAL_ERR;
		flying--;
		if (wc.status != IBV_WC_SUCCESS)
			return wc.status;
	}
	return IBV_WC_SUCCESS;
}

#endif /* SCENARIO_RDMA_H */
