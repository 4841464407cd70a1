// SPDX-License-Identifier: MIT
/*
 * peerlane perf: one run, on both sides.
 *
 * The buffers are cut into slots of one message; message m has slot m % depth
 * on both sides.  At most depth messages are under way, all that follows comes
 * in order, so counters are all the state there is.
 *
 *	direct, host	the client posts a WRITE, READ or SEND; its completion
 *			is the end of the message
 *	staged write,	the client copies from its GPU, posts a WRITE with
 *	send		immediate data or a SEND; the server copies to its GPU
 *			and answers with a word; that is the end
 *	staged read	the client asks with a word; the server copies from its
 *			GPU and answers with a word; the client READs and copies
 *			to its GPU; that is the end
 *
 * A word is an empty SEND whose immediate data is the slot.  While one slot is
 * copied the NIC works on others: that is the pipeline.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <arpa/inet.h>

#include "perf.h"
#include "tool.h"

enum { WR_DATA = 1, WR_WORD, WR_RECV };

struct engine {
	struct perf_peer *p;
	struct perf_buffer *b;
	const struct perf_memory *peer;
	const struct perf_run *r;
	struct perf_qp q;
	uint64_t started, done, owed, paid, sends, room;
	double moved;		/* when something last did */
	unsigned int idle;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint32_t slot_of(const struct engine *g, uint64_t message)
{
	return (uint32_t)(message % g->r->depth);
}

static bool is_staged(const struct engine *g)
{
	return g->r->mem == PERF_STAGED;
}

/* ---- posting ---- */

static bool post(struct engine *g, enum ibv_wr_opcode opcode, uint64_t wr_id,
		 uint32_t slot, bool data)
{
	uint64_t offset = slot * g->r->size;
	struct ibv_sge sge = {
		.addr = g->b->addr + offset, .length = (uint32_t)g->r->size,
		.lkey = g->b->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .imm_data = htonl(slot),
		.sg_list = data ? &sge : NULL, .num_sge = data,
		.wr.rdma = { g->peer->addr + offset, g->peer->rkey },
	}, *bad;
	int r = ibv_post_send(g->q.qp, &wr, &bad);

	if (r)
		complain("a work request cannot be posted: %s", strerror(r));
	else
		g->sends++;
	return !r;
}

static bool post_word(struct engine *g, uint32_t slot)
{
	return post(g, IBV_WR_SEND_WITH_IMM, WR_WORD, slot, false);
}

/* The server's receives for SEND have room for data, all others are for words */
static bool post_recv(struct engine *g, uint64_t message, bool data)
{
	uint64_t offset = slot_of(g, message) * g->r->size;
	struct ibv_sge sge = {
		.addr = g->b->addr + offset, .length = (uint32_t)g->r->size,
		.lkey = g->b->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = WR_RECV, .sg_list = data ? &sge : NULL,
		.num_sge = data,
	}, *bad;
	int r = ibv_post_recv(g->q.qp, &wr, &bad);

	if (r)
		complain("a receive cannot be posted: %s", strerror(r));
	return !r;
}

/* ---- completions ---- */

static bool failed(struct engine *g, const struct ibv_wc *wc)
{
	const char *hint = "";

	if (perf_peek(g->p) < 0) {
		complain("%s: the program there has ended", g->p->name);
		return false;
	}
	if (wc->status == IBV_WC_RETRY_EXC_ERR)
		hint = ": the peer's device does not answer; look at the link "
		       "and that both ends have one MTU";
	else if (wc->status == IBV_WC_REM_ACCESS_ERR ||
		 wc->status == IBV_WC_LOC_PROT_ERR)
		hint = ": a memory region is no longer valid";
	complain("%s of %llu bytes, %s memory: %s (%d)%s",
		 perf_op_name[g->r->op], (unsigned long long)g->r->size,
		 perf_mem_name[g->r->mem], pln_verbs.wc_status_str(wc->status),
		 wc->status, hint);
	return false;
}

/* Has the socket something, or is the time over?  1: a message is there. */
static int look_around(struct engine *g)
{
	int r = perf_peek(g->p);

	if (r < 0) {
		complain("%s: the program there has ended", g->p->name);
		return -1;
	}
	if (r > 0)
		return 1;
	if (now_wall() - g->moved > g->p->timeout) {
		complain("%s of %llu bytes, %s memory: nothing has moved for "
			 "%d s (--timeout)", perf_op_name[g->r->op],
			 (unsigned long long)g->r->size,
			 perf_mem_name[g->r->mem], g->p->timeout);
		return -1;
	}
	return 0;
}

#define LOOK_EVERY	64

/* 1: a completion, good; 2: the socket has a message; 0: neither; -1 */
static int next(struct engine *g, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(g->q.cq, 1, wc);

	if (n < 0) {
		complain("the completion queue cannot be polled");
		return -1;
	}
	if (!n) {
		/* soft-RoCE needs the processor, too */
		sched_yield();
		if (++g->idle % LOOK_EVERY)
			return 0;
		n = look_around(g);
		return n > 0 ? 2 : n;
	}
	g->idle = 0;
	g->moved = now_wall();
	if (wc->status != IBV_WC_SUCCESS) {
		failed(g, wc);
		return -1;
	}
	if (wc->wr_id != WR_RECV)
		g->sends--;
	return 1;
}

/* The other side's immediate data must be the slot whose turn it is. */
static bool in_turn(const struct engine *g, const struct ibv_wc *wc,
		    uint64_t message)
{
	if (wc->wc_flags & IBV_WC_WITH_IMM &&
	    ntohl(wc->imm_data) == slot_of(g, message))
		return true;
	complain("%s sends a word out of turn: slot %u, not %u", g->p->name,
		 ntohl(wc->imm_data), slot_of(g, message));
	return false;
}

static bool open_engine(struct engine *g, struct perf_end *e,
			struct perf_peer *p, const struct perf_hello *peer,
			const struct perf_run *r)
{
	*g = (struct engine){
		.p = p, .b = &e->mem[r->mem], .peer = &peer->mem[r->mem],
		.r = r, .room = 2 * r->depth + 2, .moved = now_wall(),
	};
	return perf_qp_open(e, &g->q, r->depth);
}

/* ---- the client ---- */

static bool start(struct engine *g)
{
	uint32_t slot = slot_of(g, g->started);
	enum ibv_wr_opcode opcode;

	if (g->r->op == PERF_READ && is_staged(g)) {
		g->started++;
		return post_word(g, slot);
	}
	if (is_staged(g) && !perf_from_gpu(g->b, slot * g->r->size, g->r->size))
		return false;
	opcode = g->r->op == PERF_SEND ? IBV_WR_SEND_WITH_IMM :
		 g->r->op == PERF_READ ? IBV_WR_RDMA_READ :
		 is_staged(g) ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	g->started++;
	return post(g, opcode, WR_DATA, slot, true);
}

/* One completion; *@end: it was the end of message g->done. */
static bool advance(struct engine *g, const struct ibv_wc *wc, bool *end)
{
	bool read = g->r->op == PERF_READ;

	*end = false;
	if (wc->wr_id == WR_RECV) {
		/* only staged messages are answered */
		if (!post_recv(g, 0, false) ||
		    !in_turn(g, wc, read ? g->owed : g->done))
			return false;
		g->owed++;
		*end = !read;
	} else if (wc->wr_id == WR_DATA && is_staged(g) && read) {
		*end = true;
		return perf_to_gpu(g->b, slot_of(g, g->done) * g->r->size,
				   g->r->size);
	} else if (wc->wr_id == WR_DATA && !is_staged(g)) {
		*end = true;
	}
	return true;
}

/* Staged reads that the server is ready for */
static bool read_ready(struct engine *g)
{
	while (g->r->op == PERF_READ && g->paid < g->owed &&
	       g->sends < g->room)
		if (!post(g, IBV_WR_RDMA_READ, WR_DATA,
			  slot_of(g, g->paid++), true))
			return false;
	return true;
}

/* @count messages, or as many as @limit seconds allow; at least one. */
static bool phase(struct engine *g, uint64_t count, double limit,
		  uint64_t *samples, uint64_t *messages, double *seconds)
{
	uint64_t begin[PERF_MAX_DEPTH], first = g->done, t0 = now_ns(), t;
	uint64_t target = g->started + count;
	bool ended = false;
	struct ibv_wc wc;
	int r;

	while (g->done < target) {
		while (g->started < target && g->sends < g->room &&
		       g->started - g->done < g->r->depth) {
			begin[slot_of(g, g->started)] = now_ns();
			if (!start(g))
				return false;
		}
		r = next(g, &wc);
		if (r < 0)
			return false;
		if (r == 2) {
			struct perf_message m;

			/* it can only be a refusal */
			perf_recv(g->p, PERF_REFUSE, -1, &m);
			return false;
		}
		if (r && !advance(g, &wc, &ended))
			return false;
		if (!read_ready(g))
			return false;
		if (!r || !ended)
			continue;
		t = now_ns();
		if (samples)
			samples[g->done - first] = t - begin[slot_of(g, g->done)];
		g->done++;
		if ((double)(t - t0) > limit * 1e9)
			target = g->started;
	}
	*messages = g->done - first;
	*seconds = (double)(now_ns() - t0) / 1e9;
	return true;
}

/* After the last message: the server has it all, and it is the same data. */
static int compare(struct engine *g, struct perf_measure *m)
{
	uint64_t n = g->done < g->r->depth ? g->done : g->r->depth;
	struct perf_message msg = { .type = PERF_DONE,
				    .done.messages = g->done };
	bool by_gpu;
	uint32_t crc;

	if (!perf_send(g->p, &msg) ||
	    !perf_recv(g->p, PERF_RESULT, -1, &msg) ||
	    !perf_crc(g->b, n * g->r->size, &crc, &by_gpu))
		return EXIT_IO;
	m->staged_there = msg.result.staged;
	m->crc_by_gpu = by_gpu && msg.result.crc_by_gpu;
	if (msg.result.messages != g->done) {
		complain("%s has seen %llu of %llu messages", g->p->name,
			 (unsigned long long)msg.result.messages,
			 (unsigned long long)g->done);
		return EXIT_MISMATCH;
	}
	if (msg.result.crc != crc) {
		complain("%s of %llu bytes, %s memory: the data differs, CRC32C "
			 "0x%08x here and 0x%08x there", perf_op_name[g->r->op],
			 (unsigned long long)g->r->size,
			 perf_mem_name[g->r->mem], crc, msg.result.crc);
		return EXIT_MISMATCH;
	}
	return EXIT_OK;
}

static bool prepare(struct engine *g, struct perf_end *e,
		    const struct perf_hello *peer, struct perf_run *r)
{
	struct perf_message m = { .type = PERF_RUN };
	uint64_t i;

	r->qpn = g->q.qp->qp_num;
	r->psn = g->q.psn;
	m.run = *r;
	if (!perf_fill(g->b, r->depth * r->size, r->op == PERF_READ ? 0 :
		       r->seed) ||
	    !perf_send(g->p, &m) || !perf_recv(g->p, PERF_READY, -1, &m))
		return false;
	for (i = 0; is_staged(g) && i < 2 * r->depth; i++)
		if (!post_recv(g, 0, false))
			return false;
	g->moved = now_wall();
	return perf_qp_connect(e, &g->q, peer, m.ready.qpn, m.ready.psn);
}

static bool timed(struct engine *g, const struct perf_options *o,
		  uint64_t *samples, struct perf_measure *m)
{
	double cpu = now_cpu();
	bool good = phase(g, o->count, o->seconds, samples, &m->messages,
			  &m->seconds);

	m->cpu_seconds = now_cpu() - cpu;
	return good;
}

int perf_client_run(struct perf_end *e, struct perf_peer *p,
		    const struct perf_hello *peer,
		    const struct perf_options *o, struct perf_measure *m,
		    uint64_t *samples)
{
	static uint64_t seed;
	struct perf_run r = {
		.op = (uint8_t)m->op, .mem = (uint8_t)m->mem, .size = m->size,
		.depth = (uint32_t)m->depth, .seed = ++seed,
		.seconds = (uint32_t)(2 * o->seconds) + 1,
	};
	uint64_t before = e->mem[r.mem].staged;
	struct engine g;
	double ignored;
	int status = EXIT_IO;

	if (!open_engine(&g, e, p, peer, &r))
		return EXIT_IO;
	if (prepare(&g, e, peer, &r) &&
	    (!o->warm_up || phase(&g, o->warm_up, o->seconds, NULL,
				  &m->warm_up, &ignored)) &&
	    timed(&g, o, samples, m))
		status = compare(&g, m);
	perf_qp_close(&g.q);
	m->staged_here = e->mem[r.mem].staged - before;
	if (status == EXIT_OK)
		perf_stat(samples, m->messages, &m->stat);
	return status;
}

/* ---- the server ---- */

/* What the client's next message asks for */
static bool serve_one(struct engine *g, const struct ibv_wc *wc, bool data)
{
	uint64_t at = slot_of(g, g->done) * g->r->size;

	if (!in_turn(g, wc, g->done))
		return false;
	if (data && wc->byte_len != g->r->size) {
		complain("%s sent %u bytes, not %llu", g->p->name, wc->byte_len,
			 (unsigned long long)g->r->size);
		return false;
	}
	if (is_staged(g)) {
		if (!(g->r->op == PERF_READ ?
		      perf_from_gpu(g->b, at, g->r->size) :
		      perf_to_gpu(g->b, at, g->r->size)))
			return false;
		g->owed++;
	}
	/* 2 * depth are posted, so this one is of the same slot */
	if (!post_recv(g, g->done, data))
		return false;
	g->done++;
	return true;
}

/* Until the client has said how many messages there were, and all are here. */
static bool serve(struct engine *g, bool data)
{
	bool passive = !is_staged(g) && g->r->op != PERF_SEND;
	struct perf_message m = { .type = 0 };
	struct ibv_wc wc;
	int r;

	if (passive) {
		if (!perf_recv(g->p, PERF_DONE, (int)g->r->seconds +
			       g->p->timeout, &m))
			return false;
		g->done = m.done.messages;
		return true;
	}
	while (!m.type || g->done < m.done.messages || g->paid < g->owed) {
		while (g->paid < g->owed && g->sends < g->room)
			if (!post_word(g, slot_of(g, g->paid++)))
				return false;
		r = next(g, &wc);
		if (r < 0 || (r == 2 && m.type) ||
		    (r == 1 && wc.wr_id == WR_RECV && !serve_one(g, &wc, data)))
			return false;
		if (r == 2 && !perf_recv(g->p, PERF_DONE, -1, &m))
			return false;
	}
	return true;
}

int perf_server_run(struct perf_end *e, struct perf_peer *p,
		    const struct perf_hello *peer, const struct perf_run *r)
{
	struct perf_message m = { .type = PERF_READY };
	bool data = r->op == PERF_SEND, by_gpu;
	uint64_t before, n, i;
	struct engine g;
	int status = EXIT_IO;

	if (!e->mem[r->mem].info.possible || !peer->mem[r->mem].possible ||
	    r->depth * r->size > e->mem[r->mem].size) {
		complain("%s asks for %s memory that there is not", p->name,
			 perf_mem_name[r->mem]);
		perf_refuse(p, "there is no such memory");
		return EXIT_IO;
	}
	if (!open_engine(&g, e, p, peer, r)) {
		perf_refuse(p, "no queue pair can be made");
		return EXIT_IO;
	}
	before = g.b->staged;
	for (i = 0; (is_staged(&g) || data) && i < 2 * r->depth; i++)
		if (!post_recv(&g, i, data))
			goto out;
	if (!perf_fill(g.b, r->depth * r->size, r->op == PERF_READ ? r->seed :
		       0) ||
	    !perf_qp_connect(e, &g.q, peer, r->qpn, r->psn)) {
		perf_refuse(p, "the run cannot be prepared");
		goto out;
	}
	m.ready = (struct perf_ready){ g.q.qp->qp_num, g.q.psn };
	if (!perf_send(p, &m))
		goto out;
	g.moved = now_wall();
	if (!serve(&g, data)) {
		perf_refuse(p, "the run failed there");
		goto out;
	}
	n = g.done < r->depth ? g.done : r->depth;
	m = (struct perf_message){ .type = PERF_RESULT };
	m.result.messages = g.done;
	m.result.staged = g.b->staged - before;
	if (!perf_crc(g.b, n * r->size, &m.result.crc, &by_gpu)) {
		perf_refuse(p, "the CRC of the data cannot be computed");
		goto out;
	}
	m.result.crc_by_gpu = by_gpu;
	if (perf_send(p, &m))
		status = EXIT_OK;
out:
	perf_qp_close(&g.q);
	return status;
}
