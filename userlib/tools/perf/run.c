// SPDX-License-Identifier: MIT
/*
 * peerlane perf: one run, on both sides.
 *
 * The buffers are cut into slots of one message; message m has slot m % depth
 * on both sides.  At most depth messages are under way, and they end in order,
 * so counters are all the state there is.  How a message moves, and when it has
 * arrived, is for verbs.c and link.c.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "perf.h"
#include "tool.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t perf_offset(const struct perf_engine *g, uint64_t message)
{
	return message % g->r->depth * g->r->size;
}

/* Has the socket something, or is the time over?  1: a message is there. */
static int look_around(struct perf_engine *g)
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

/* After @n messages have moved: 1 if the socket has something, -1: give up */
static int idle(struct perf_engine *g, int n)
{
	if (n > 0) {
		g->idle = 0;
		g->moved = now_wall();
		return 0;
	}
	/* soft-RoCE needs the processor, too */
	sched_yield();
	return ++g->idle % LOOK_EVERY ? 0 : look_around(g);
}

static bool open_engine(struct perf_engine *g, struct perf_end *e,
			struct perf_peer *p, const struct perf_hello *peer,
			const struct perf_run *r, bool server)
{
	*g = (struct perf_engine){
		.e = e, .p = p, .b = &e->mem[r->mem],
		.peer = &peer->mem[r->mem], .r = r, .server = server,
		.mover = r->mem == PERF_STAGED ? &perf_link : &perf_verbs,
		.moved = now_wall(),
	};
	if (g->mover->open(g))
		return true;
	g->mover->close(g);
	return false;
}

/* ---- the client ---- */

/* @count messages, or as many as @limit seconds allow; at least one. */
static bool phase(struct perf_engine *g, uint64_t count, double limit,
		  uint64_t *samples, uint64_t *messages, double *seconds)
{
	uint64_t begin[PERF_MAX_DEPTH], first = g->done, t0 = now_ns(), t;
	uint64_t depth = g->r->depth, target = g->started + count;
	int n;

	while (g->done < target) {
		while (g->started < target && g->started - g->done < depth) {
			begin[g->started % depth] = now_ns();
			if (!g->mover->start(g))
				return false;
			g->started++;
		}
		n = g->mover->ended(g);
		t = now_ns();
		for (int i = 0; i < n; i++, g->done++)
			if (samples)
				samples[g->done - first] =
					t - begin[g->done % depth];
		if (n > 0 && (double)(t - t0) > limit * 1e9)
			target = g->started;
		if (n >= 0)
			n = idle(g, n);
		if (n > 0) {
			struct perf_message m;

			/* it can only be a refusal */
			perf_recv(g->p, PERF_REFUSE, -1, &m);
		}
		if (n)
			return false;
	}
	*messages = g->done - first;
	*seconds = (double)(now_ns() - t0) / 1e9;
	return true;
}

/* After the last message: the server has it all, and it is the same data. */
static int compare(struct perf_engine *g, struct perf_measure *m)
{
	uint64_t n = g->done < g->r->depth ? g->done : g->r->depth;
	struct perf_message msg = { .type = PERF_DONE,
				    .done.messages = g->done };
	bool by_gpu;
	uint32_t crc;

	if (!perf_send(g->p, &msg) ||
	    !perf_recv(g->p, PERF_RESULT, -1, &msg) || !g->mover->rest(g) ||
	    !perf_crc(g->b, n * g->r->size, &crc, &by_gpu))
		return EXIT_IO;
	m->staged_here = g->staged;
	m->staged_there = msg.result.staged;
	m->notices_here = g->notices;
	m->notices_there = msg.result.notices;
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
	g->finished = true;
	return EXIT_OK;
}

static bool prepare(struct perf_engine *g, const struct perf_hello *peer,
		    struct perf_run *r)
{
	struct perf_message m = { .type = PERF_RUN };

	if (!g->link) {
		r->qpn = g->q.qp->qp_num;
		r->psn = g->q.psn;
	}
	m.run = *r;
	if (!perf_fill(g->b, r->depth * r->size, r->op == PERF_READ ? 0 :
		       r->seed) ||
	    !perf_send(g->p, &m) || !perf_recv(g->p, PERF_READY, -1, &m) ||
	    !g->mover->connect(g, peer, m.ready.qpn, m.ready.psn))
		return false;
	g->moved = now_wall();
	return true;
}

static bool timed(struct perf_engine *g, const struct perf_options *o,
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
	struct perf_engine g;
	double ignored;
	int status = EXIT_IO;

	if (!open_engine(&g, e, p, peer, &r, false))
		return EXIT_IO;
	if (prepare(&g, peer, &r) &&
	    (!o->warm_up || phase(&g, o->warm_up, o->seconds, NULL,
				  &m->warm_up, &ignored)) &&
	    timed(&g, o, samples, m))
		status = compare(&g, m);
	if (!g.mover->close(&g))
		status = EXIT_IO;
	if (status == EXIT_OK)
		perf_stat(samples, m->messages, &m->stat);
	return status;
}

/* ---- the server ---- */

/* Until the client has said how many messages there were, and all are here. */
static bool serve(struct perf_engine *g)
{
	struct perf_message m = { .type = 0 };
	int n;

	if (g->r->mem != PERF_STAGED && g->r->op != PERF_SEND) {
		if (!perf_recv(g->p, PERF_DONE, (int)g->r->seconds +
			       g->p->timeout, &m))
			return false;
		g->done = m.done.messages;
		return true;
	}
	while (!m.type || g->done < m.done.messages) {
		n = g->mover->serve(g);
		if (n < 0)
			return false;
		g->done += (uint64_t)n;
		n = idle(g, n);
		if (n < 0)
			return false;
		if (n && m.type) {
			complain("%s speaks before all messages that it announces "
				 "of are here", g->p->name);
			return false;
		}
		if (n && !perf_recv(g->p, PERF_DONE, -1, &m))
			return false;
	}
	return g->mover->rest(g);
}

static bool serve_result(struct perf_engine *g)
{
	uint64_t n = g->done < g->r->depth ? g->done : g->r->depth;
	struct perf_message m = { .type = PERF_RESULT };
	bool by_gpu;

	if (!perf_crc(g->b, n * g->r->size, &m.result.crc, &by_gpu)) {
		perf_refuse(g->p, "the CRC of the data cannot be computed");
		return false;
	}
	m.result.messages = g->done;
	m.result.staged = g->staged;
	m.result.notices = g->notices;
	m.result.crc_by_gpu = by_gpu;
	g->finished = true;
	return perf_send(g->p, &m);
}

static bool serve_run(struct perf_engine *g, const struct perf_hello *peer)
{
	struct perf_message m = { .type = PERF_READY };
	const struct perf_run *r = g->r;

	if (!g->link)
		m.ready = (struct perf_ready){ g->q.qp->qp_num, g->q.psn };
	if (!perf_fill(g->b, r->depth * r->size, r->op == PERF_READ ? r->seed :
		       0)) {
		perf_refuse(g->p, "the run cannot be prepared");
		return false;
	}
	/* a link has both ends connect at once; a queue pair must be ready first */
	if (!g->link && !g->mover->connect(g, peer, r->qpn, r->psn)) {
		perf_refuse(g->p, "the run cannot be prepared");
		return false;
	}
	if (!perf_send(g->p, &m))
		return false;
	if (g->link && !g->mover->connect(g, peer, 0, 0))
		return false;	/* the client knows: it was connecting, too */
	g->moved = now_wall();
	if (!serve(g)) {
		perf_refuse(g->p, "the run failed there");
		return false;
	}
	return serve_result(g);
}

int perf_server_run(struct perf_end *e, struct perf_peer *p,
		    const struct perf_hello *peer, const struct perf_run *r)
{
	struct perf_engine g;
	bool good;

	if (!e->mem[r->mem].info.possible || !peer->mem[r->mem].possible ||
	    r->depth * r->size > e->mem[r->mem].size) {
		complain("%s requests %s memory, which is not possible", p->name,
			 perf_mem_name[r->mem]);
		perf_refuse(p, "there is no such memory");
		return EXIT_IO;
	}
	if (!open_engine(&g, e, p, peer, r, true)) {
		perf_refuse(p, "no queue pair can be made");
		return EXIT_IO;
	}
	good = serve_run(&g, peer);
	return g.mover->close(&g) && good ? EXIT_OK : EXIT_IO;
}
