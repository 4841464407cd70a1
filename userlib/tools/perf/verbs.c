// SPDX-License-Identifier: MIT
/*
 * peerlane perf: messages of memory that the NIC reaches itself.
 *
 * The client posts a WRITE, READ or SEND; its completion is the end of the
 * message.  Work requests of one kind complete in order, so counters are all the
 * state there is.  Only of a SEND does the other side's processor know.
 */
#include <string.h>
#include <arpa/inet.h>

#include "perf.h"
#include "tool.h"

/* Receives that are posted: more than messages under way, so none has to wait */
#define RECEIVES(g)	(2 * (g)->r->depth)

static bool post_recv(struct perf_engine *g, uint64_t message)
{
	struct ibv_sge sge = {
		.addr = g->b->addr + perf_offset(g, message),
		.length = (uint32_t)g->r->size, .lkey = g->b->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int r = ibv_post_recv(g->q.qp, &wr, &bad);

	if (r)
		complain("a receive cannot be posted: %s", strerror(r));
	return !r;
}

static bool direct_open(struct perf_engine *g)
{
	uint32_t i;

	if (!perf_qp_open(g->e, &g->q, g->r->depth))
		return false;
	for (i = 0; g->server && g->r->op == PERF_SEND && i < RECEIVES(g); i++)
		if (!post_recv(g, i))
			return false;
	return true;
}

static bool direct_connect(struct perf_engine *g, const struct perf_hello *peer,
			  uint32_t qpn, uint32_t psn)
{
	return perf_qp_connect(g->e, &g->q, peer, qpn, psn);
}

static bool direct_start(struct perf_engine *g)
{
	static const enum ibv_wr_opcode opcode[PERF_OPS] = {
		[PERF_WRITE] = IBV_WR_RDMA_WRITE,
		[PERF_READ] = IBV_WR_RDMA_READ,
		[PERF_SEND] = IBV_WR_SEND_WITH_IMM,
	};
	uint64_t offset = perf_offset(g, g->started);
	struct ibv_sge sge = {
		.addr = g->b->addr + offset, .length = (uint32_t)g->r->size,
		.lkey = g->b->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = opcode[g->r->op], .sg_list = &sge, .num_sge = 1,
		.imm_data = htonl((uint32_t)(g->started % g->r->depth)),
		.wr.rdma = { g->peer->addr + offset, g->peer->rkey },
	}, *bad;
	int r = ibv_post_send(g->q.qp, &wr, &bad);

	if (r)
		complain("a work request cannot be posted: %s", strerror(r));
	return !r;
}

static void failed(const struct perf_engine *g, const struct ibv_wc *wc)
{
	const char *hint = "";

	if (perf_peek(g->p) < 0) {
		complain("%s: the program there has ended", g->p->name);
		return;
	}
	if (wc->status == IBV_WC_RETRY_EXC_ERR)
		hint = ": the peer's device does not answer; look at the link "
		       "and that both ends have one MTU";
	else if (wc->status == IBV_WC_REM_ACCESS_ERR ||
		 wc->status == IBV_WC_LOC_PROT_ERR)
		hint = ": a memory region is no longer valid";
	complain("%s of %llu bytes, %s memory: %s (%d)%s",
		 perf_op_name[g->r->op], (unsigned long long)g->r->size,
		 perf_mem_name[g->r->mem], verbs_lib.wc_status_str(wc->status),
		 wc->status, hint);
}

/* 1: a completion, good; 0: none; -1: complained */
static int completion(struct perf_engine *g, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(g->q.cq, 1, wc);

	if (n < 0)
		complain("the completion queue cannot be polled");
	if (n <= 0)
		return n;
	if (wc->status != IBV_WC_SUCCESS) {
		failed(g, wc);
		return -1;
	}
	return 1;
}

static int direct_ended(struct perf_engine *g)
{
	struct ibv_wc wc;

	return completion(g, &wc);
}

/* SENDs of the client; of WRITE and READ nothing is seen here */
static int direct_serve(struct perf_engine *g)
{
	uint32_t slot = (uint32_t)(g->done % g->r->depth);
	struct ibv_wc wc;
	int n = completion(g, &wc);

	if (n < 1)
		return n;
	if (!(wc.wc_flags & IBV_WC_WITH_IMM)) {
		complain("%s sends without saying which slot", g->p->name);
		return -1;
	}
	if (ntohl(wc.imm_data) != slot) {
		complain("%s sends out of turn: slot %u, not %u", g->p->name,
			 ntohl(wc.imm_data), slot);
		return -1;
	}
	if (wc.byte_len != g->r->size) {
		complain("%s sent %u bytes, not %llu", g->p->name, wc.byte_len,
			 (unsigned long long)g->r->size);
		return -1;
	}
	/* RECEIVES is a multiple of depth, so this one is of the same slot */
	return post_recv(g, g->done) ? 1 : -1;
}

static bool direct_rest(struct perf_engine *g)
{
	(void)g;
	return true;
}

static bool direct_close(struct perf_engine *g)
{
	perf_qp_close(&g->q);
	return true;
}

const struct perf_mover perf_verbs = {
	direct_open, direct_connect, direct_start, direct_ended, direct_serve,
	direct_rest, direct_close,
};
