// SPDX-License-Identifier: MIT
/*
 * peerlane perf: messages of staged memory, by the library's own links.
 *
 * A link knows puts only: bytes into memory of the peer, who learns of it.
 *
 *	write, send	the client puts; when the put is done, the bytes are in
 *			the server's GPU
 *	read		the client asks with a put of no bytes, whose tag is the
 *			message; the server puts; when that has arrived, the bytes
 *			are in the client's GPU
 *
 * Chunks, pipelining and copies are what a program gets from pln_link_open() with
 * its defaults.
 */
#include <errno.h>

#include <peerlane/link.h>
#include <peerlane/mr.h>
#include <peerlane/peerlane.h>

#include "perf.h"
#include "tool.h"

static bool fail(struct perf_engine *g, const char *what, int r)
{
	const char *why = pln_link_reason(g->link);

	if (r != -EPROTO && perf_peek(g->p) < 0)
		complain("%s: the program there has ended", g->p->name);
	else
		complain("%s of %llu bytes, staged memory: %s failed: %s",
			 perf_op_name[g->r->op], (unsigned long long)g->r->size,
			 what, why[0] ? why : pln_strerror(r));
	return false;
}

static bool link_open(struct perf_engine *g)
{
	struct pln_link_options o = {
		.size = sizeof(o), .pd = g->e->pd, .port = g->e->port.port,
		.gid = g->e->port.attr.link_layer ==
			IBV_LINK_LAYER_ETHERNET ? g->e->port.gid_index + 1 : 0,
	};
	int r = pln_link_open(&g->link, &o);

	if (r)
		return fail(g, "making a link", r);
	r = pln_link_share(g->link, g->b->pln);
	return r == 0 || fail(g, "sharing memory", r);
}

static bool link_connect(struct perf_engine *g, const struct perf_hello *peer,
			 uint32_t qpn, uint32_t psn)
{
	int r = pln_link_connect(g->link, g->p->fd, g->p->timeout * 1000);

	(void)peer;
	(void)qpn;
	(void)psn;
	return !r || fail(g, "connecting the link", r);
}

static bool put(struct perf_engine *g, uint64_t message, uint64_t size)
{
	uint64_t at = perf_offset(g, message);
	int64_t r = pln_link_put(g->link, &(struct pln_link_request){
		.size = sizeof(struct pln_link_request), .mr = g->b->pln,
		.offset = at, .length = size, .at = at, .tag = message,
	});

	return r > 0 || fail(g, "a put", (int)r);
}

static bool link_start(struct perf_engine *g)
{
	return put(g, g->started, g->r->op == PERF_READ ? 0 : g->r->size);
}

/* Lets the link work; what it has done is progress, also within a message. */
static bool work(struct perf_engine *g, struct pln_link_stats *s)
{
	int r = pln_link_poll(&g->link, 1, 0);
	uint64_t moved;

	if (r < 0)
		return fail(g, "the link", r);
	s->size = sizeof(*s);
	pln_link_stats(g->link, s);
	moved = s->bytes_put + s->bytes_to_gpu + s->messages;
	if (moved != g->progress)
		g->moved = now_wall();
	g->progress = moved;
	g->staged = s->bytes_from_gpu + s->bytes_to_gpu;
	g->notices = s->messages;
	return true;
}

/* The next put of the peer, which must be @message with @size bytes: 1, 0, -1 */
static int arrival(struct perf_engine *g, uint64_t message, uint64_t size)
{
	struct pln_link_arrival a = { .size = sizeof(a) };
	int r = pln_link_arrival(g->link, &a);

	if (r == -EAGAIN)
		return 0;
	if (r) {
		fail(g, "the link", r);
		return -1;
	}
	if (a.tag == message && a.length == size &&
	    a.offset == perf_offset(g, message))
		return 1;
	complain("%s puts out of turn: message %llu with %llu bytes, not %llu "
		 "with %llu", g->p->name, (unsigned long long)a.tag,
		 (unsigned long long)a.length, (unsigned long long)message,
		 (unsigned long long)size);
	return -1;
}

static int link_ended(struct perf_engine *g)
{
	struct pln_link_stats s;

	if (!work(g, &s))
		return -1;
	if (g->r->op == PERF_READ)
		return arrival(g, g->done, g->r->size);
	return (int)(s.puts_done - g->done);
}

static int link_serve(struct perf_engine *g)
{
	bool read = g->r->op == PERF_READ;
	struct pln_link_stats s;
	int n;

	if (!work(g, &s))
		return -1;
	n = arrival(g, g->done, read ? 0 : g->r->size);
	if (n == 1 && read && !put(g, g->done, g->r->size))
		return -1;
	return n;
}

/* What is still to be acknowledged; the counts are final then. */
static bool link_rest(struct perf_engine *g)
{
	struct pln_link_stats s;

	return work(g, &s);
}

/*
 * The client says goodbye, the server waits for it: so the last acknowledgements
 * are not cut off, and the count of messages on the wire is known.
 */
static bool link_close(struct perf_engine *g)
{
	bool wait = g->finished && g->server;
	int r = wait;

	while (r > 0)
		r = pln_link_poll(&g->link, 1, g->p->timeout * 1000);
	wait = wait && r != -EPIPE && !fail(g, "the goodbye", r ? r : -ETIMEDOUT);
	pln_link_close(g->link);
	return !wait;
}

const struct perf_mover perf_link = {
	link_open, link_connect, link_start, link_ended, link_serve, link_rest,
	link_close,
};
