// SPDX-License-Identifier: MIT
/* peerlane perf: text and JSON. */
#include <stdio.h>
#include <string.h>

#include <peerlane/mr.h>

#include "perf.h"
#include "tool.h"

#define NOTE "emulated: times and rates say nothing about hardware"

static bool emulated(const struct perf_report *r)
{
	return r->end->emulated || r->peer->emulated;
}

const char *perf_path(const struct perf_report *r, enum perf_mem mem)
{
	if (mem != PERF_DIRECT)
		return mem == PERF_STAGED ? "bounce" : "host";
	/* software moves data with the processor, through a coherent window */
	return r->end->software || r->peer->software ? "coherent" : "p2p";
}

static double rate(const struct perf_measure *m)
{
	return m->seconds > 0 ? (double)m->messages / m->seconds : 0;
}

/* ---- text ---- */

static void print_end(const char *name, const struct perf_hello *h)
{
	printf("%-6s %s port %u, %s, MTU %u%s%s\n", name, h->device, h->port,
	       h->roce ? "RoCE v2" : "InfiniBand", verbs_mtu_bytes(h->mtu),
	       h->gpu[0] ? ", GPU " : "", h->gpu);
}

void perf_print_head(const struct perf_report *r)
{
	const struct perf_hello *peer = r->peer;
	struct perf_hello here;
	int i;

	perf_end_hello(r->end, &here);
	print_end("here", &here);
	print_end("there", peer);
	for (i = 0; i < PERF_MEMS; i++) {
		if (!(r->o->mems & 1u << i))
			continue;
		if (r->skip[i])
			printf("%-6s not possible %s\n", perf_mem_name[i],
			       r->skipped[i]);
		else if (i == PERF_HOST)
			printf("%-6s host memory on both sides\n",
			       perf_mem_name[i]);
		else
			printf("%-6s %s; here %s, there %s\n",
			       perf_mem_name[i], perf_path(r, i),
			       pln_mr_way_name(r->end->mem[i].info.way),
			       pln_mr_way_name(peer->mem[i].way));
	}
	if (emulated(r))
		printf("%s\n", NOTE);
}

static void usec(uint64_t ns)
{
	if (ns == PERF_UNTOLD)
		printf(" %9s", "-");
	else
		printf(" %9.1f", (double)ns / 1e3);
}

void perf_print_one(const struct perf_report *r, const struct perf_measure *m)
{
	static int last = -1;

	if (last != (int)m->test) {
		last = (int)m->test;
		if (m->test == PERF_LATENCY)
			printf("\nlatency, in microseconds: until the data is "
			       "in the other memory and this side knows\n");
		else
			printf("\nstream, up to %llu messages in flight; "
			       "percentiles in microseconds\n",
			       (unsigned long long)r->o->depth);
		printf("%-5s %-6s %10s %8s", "op", "memory", "bytes", "messages");
		if (m->test == PERF_STREAM)
			printf(" %9s %10s", "MB/s", "messages/s");
		printf(" %9s %9s %9s %9s %9s\n", "p50", "p90", "p99", "p99.9",
		       "max");
	}
	printf("%-5s %-6s %10llu %8llu", perf_op_name[m->op],
	       perf_mem_name[m->mem], (unsigned long long)m->size,
	       (unsigned long long)m->messages);
	if (m->test == PERF_STREAM)
		printf(" %9.2f %10.0f", rate(m) * (double)m->size / 1e6,
		       rate(m));
	usec(m->stat.p50);
	usec(m->stat.p90);
	usec(m->stat.p99);
	usec(m->stat.p999);
	usec(m->stat.max);
	putchar('\n');
	fflush(stdout);
}

static const struct perf_measure *find(const struct perf_report *r,
				       const struct perf_measure *like,
				       enum perf_test test, enum perf_mem mem)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->measure[i].test == test && r->measure[i].mem == mem &&
		    r->measure[i].op == like->op &&
		    r->measure[i].size == like->size)
			return &r->measure[i];
	return NULL;
}

/* How many times more staging needs, or 0 when one of the two is not there. */
static double latency_ratio(const struct perf_report *r,
			    const struct perf_measure *m)
{
	const struct perf_measure *d = find(r, m, PERF_LATENCY, PERF_DIRECT);
	const struct perf_measure *s = find(r, m, PERF_LATENCY, PERF_STAGED);

	return d && s && d->stat.p50 && d->stat.p50 != PERF_UNTOLD &&
	       s->stat.p50 != PERF_UNTOLD ?
	       (double)s->stat.p50 / (double)d->stat.p50 : 0;
}

static double rate_ratio(const struct perf_report *r,
			 const struct perf_measure *m)
{
	const struct perf_measure *d = find(r, m, PERF_STREAM, PERF_DIRECT);
	const struct perf_measure *s = find(r, m, PERF_STREAM, PERF_STAGED);

	return d && s && rate(s) > 0 ? rate(d) / rate(s) : 0;
}

/* Is @m the first of its operation and size? */
static bool first_of(const struct perf_report *r, const struct perf_measure *m)
{
	const struct perf_measure *x;

	for (x = r->measure; x < m; x++)
		if (x->op == m->op && x->size == m->size)
			return false;
	return true;
}

static void ratio(double x)
{
	if (x > 0)
		printf(" %10.2f", x);
	else
		printf(" %10s", "-");
}

void perf_print_tail(const struct perf_report *r)
{
	const struct perf_measure *m;

	if (!r->skip[PERF_DIRECT] && !r->skip[PERF_STAGED]) {
		printf("\ndirect and staged compared: how many times better "
		       "direct is\n%-5s %10s %10s %10s\n", "op", "bytes",
		       "latency", "rate");
		for (m = r->measure; m < r->measure + r->n; m++) {
			if (!first_of(r, m))
				continue;
			printf("%-5s %10llu", perf_op_name[m->op],
			       (unsigned long long)m->size);
			ratio(latency_ratio(r, m));
			ratio(rate_ratio(r, m));
			putchar('\n');
		}
	}
	if (emulated(r))
		printf("\n%s\n", NOTE);
}

/* ---- JSON ---- */

static struct json_object *real(double v, const char *format)
{
	char text[64];

	snprintf(text, sizeof(text), format, v);
	return json_object_new_double_s(v, text);
}

static void put(struct json_object *o, const char *key, struct json_object *v)
{
	json_object_object_add(o, key, v);
}

static struct json_object *text(const char *s)
{
	return json_object_new_string(s);
}

static void put_usec(struct json_object *o, const char *key, uint64_t ns)
{
	put(o, key, ns == PERF_UNTOLD ? NULL : real((double)ns / 1e3, "%.3f"));
}

static struct json_object *json_measure(const struct perf_report *r,
					const struct perf_measure *m)
{
	struct json_object *o = json_object_new_object();
	struct json_object *us = json_object_new_object();

	put(o, "what", text(perf_op_name[m->op]));
	put(o, "test", text(perf_test_name[m->test]));
	put(o, "memory", text(perf_mem_name[m->mem]));
	put(o, "path", text(perf_path(r, m->mem)));
	put(o, "reason", text(r->end->mem[m->mem].info.reason));
	put(o, "size", json_object_new_uint64(m->size));
	put(o, "depth", json_object_new_uint64(m->depth));
	put(o, "warm_up", json_object_new_uint64(m->warm_up));
	put(o, "messages", json_object_new_uint64(m->messages));
	put(o, "bytes", json_object_new_uint64(m->messages * m->size));
	put(o, "seconds", real(m->seconds, "%.6f"));
	put(o, "cpu_seconds", real(m->cpu_seconds, "%.6f"));
	put(o, "bytes_per_second", real(rate(m) * (double)m->size, "%.0f"));
	put(o, "messages_per_second", real(rate(m), "%.1f"));
	put_usec(us, "min", m->stat.min);
	put_usec(us, "mean", m->stat.mean);
	put_usec(us, "p50", m->stat.p50);
	put_usec(us, "p90", m->stat.p90);
	put_usec(us, "p99", m->stat.p99);
	put_usec(us, "p99.9", m->stat.p999);
	put_usec(us, "max", m->stat.max);
	put(o, "microseconds", us);
	put(o, "staged_here", json_object_new_uint64(m->staged_here));
	put(o, "staged_there", json_object_new_uint64(m->staged_there));
	put(o, "notices_here", json_object_new_uint64(m->notices_here));
	put(o, "notices_there", json_object_new_uint64(m->notices_there));
	put(o, "crc_by", text(m->crc_by_gpu ? "gpu" : "cpu"));
	return o;
}

static struct json_object *json_end(const struct perf_hello *h,
				    unsigned int mems)
{
	struct json_object *o = json_object_new_object();
	struct json_object *ways = json_object_new_object(), *w;
	char hex[40] = "";
	int i;

	for (i = 0; i < 16; i++)
		snprintf(hex + strlen(hex), sizeof(hex) - strlen(hex),
			 "%s%02x", i && !(i % 2) ? ":" : "", h->gid[i]);
	put(o, "device", text(h->device));
	put(o, "port", json_object_new_int(h->port));
	put(o, "link", text(h->roce ? "Ethernet" : "InfiniBand"));
	put(o, "gid", text(hex));
	put(o, "software", json_object_new_boolean(h->software));
	put(o, "mtu", json_object_new_int((int)verbs_mtu_bytes(h->mtu)));
	put(o, "gpu", h->gpu[0] ? text(h->gpu) : NULL);
	for (i = 0; i < PERF_MEMS; i++) {
		if (!(mems & 1u << i))
			continue;
		w = json_object_new_object();
		put(w, "possible", json_object_new_boolean(h->mem[i].possible));
		put(w, "way", i == PERF_HOST || !h->mem[i].possible ? NULL :
		    text(pln_mr_way_name(h->mem[i].way)));
		put(w, "reason", text(h->mem[i].reason));
		put(ways, perf_mem_name[i], w);
	}
	put(o, "memory", ways);
	return o;
}

static struct json_object *json_compared(const struct perf_report *r)
{
	struct json_object *list = json_object_new_array(), *o;
	const struct perf_measure *m;
	double l, b;

	for (m = r->measure; m < r->measure + r->n; m++) {
		l = latency_ratio(r, m);
		b = rate_ratio(r, m);
		if (!first_of(r, m) || (l <= 0 && b <= 0))
			continue;
		o = json_object_new_object();
		put(o, "what", text(perf_op_name[m->op]));
		put(o, "size", json_object_new_uint64(m->size));
		put(o, "latency", l > 0 ? real(l, "%.3f") : NULL);
		put(o, "rate", b > 0 ? real(b, "%.3f") : NULL);
		json_object_array_add(list, o);
	}
	return list;
}

void perf_print_json(const struct perf_report *r, int status)
{
	struct json_object *o = json_object_new_object();
	struct json_object *list = json_object_new_array();
	struct json_object *skipped = json_object_new_object();
	struct perf_hello here;
	unsigned int i;

	perf_end_hello(r->end, &here);
	for (i = 0; i < PERF_MEMS; i++)
		if (r->o->mems & 1u << i && r->skip[i])
			put(skipped, perf_mem_name[i], text(r->skipped[i]));
	put(o, "what", text("perf"));
	put(o, "ok", json_object_new_boolean(!status));
	put(o, "emulated", json_object_new_boolean(emulated(r)));
	if (emulated(r))
		put(o, "note", text(NOTE));
	put(o, "here", json_end(&here, r->o->mems));
	put(o, "there", json_end(r->peer, r->o->mems));
	put(o, "skipped", skipped);
	for (i = 0; i < r->n; i++)
		json_object_array_add(list, json_measure(r, &r->measure[i]));
	put(o, "transfers", list);
	put(o, "compared", json_compared(r));
	print_json(o);
}
