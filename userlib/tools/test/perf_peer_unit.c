// SPDX-License-Identifier: MIT
/*
 * peerlane perf on a NIC of the test's own, and peers that do not keep to the
 * protocol: say nothing, too little, too much, something else, or go away.
 * Each time the program ends soon, says why, and leaves nothing open.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../core/test/fake_nic.h"
#include "../../cuda/test/ktap.h"
#include "perf/perf.h"
#include "tool.h"

#define MAX	(1 << 16)
#define SOON	5.0	/* s; the timeout is 1 */

/* What the program has said, all of it */
static char said[8192];

void __wrap_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void __wrap_complain(const char *fmt, ...)
{
	size_t at = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + at, sizeof(said) - at, fmt, ap);
	va_end(ap);
	strncat(said, "; ", sizeof(said) - strlen(said) - 1);
}

/* ---- what the peer sends ---- */

struct script {
	uint8_t bytes[MAX];
	size_t n;
	bool stay;	/* the socket stays open after that */
};

static void add(struct script *s, const struct perf_message *m)
{
	s->n += perf_encode(m, s->bytes + s->n);
}

static struct perf_message hello(void)
{
	struct perf_message m = { .type = PERF_HELLO };

	snprintf(m.hello.device, sizeof(m.hello.device), "peer0");
	m.hello.gid[10] = m.hello.gid[11] = 0xff;
	m.hello.gid[15] = 2;
	m.hello.port = 1;
	m.hello.mtu = IBV_MTU_1024;
	m.hello.reads = 1;
	m.hello.roce = true;
	m.hello.buffer = 65536;
	m.hello.mem[PERF_HOST].possible = true;
	return m;
}

static struct perf_message run(enum perf_op op)
{
	return (struct perf_message){ .type = PERF_RUN, .run = {
		.op = (uint8_t)op, .mem = PERF_HOST, .depth = 4, .seconds = 1,
		.size = 4096, .seed = 7, .qpn = 17, .psn = 1,
	} };
}

static struct perf_message of(enum perf_type type)
{
	return (struct perf_message){ .type = type };
}

/* ---- the program, in another thread ---- */

struct program {
	struct perf_options o;
	struct perf_peer p;
	bool client;
	int status;
};

static void *start(void *arg)
{
	struct program *g = arg;

	g->status = g->client ? perf_client(&g->o, &g->p) :
				perf_serve(&g->o, &g->p);
	close(g->p.fd);
	return NULL;
}

static struct perf_message answer;	/* the last one that it sent */

static void last_of(const uint8_t *buf, size_t n)
{
	enum perf_type type;
	struct perf_message m;
	char why[256];
	size_t at;
	int body;

	answer = of(0);
	for (at = 0; at + PERF_HEADER <= n; at += PERF_HEADER + (size_t)body) {
		body = perf_decode_header(buf + at, &type, why, sizeof(why));
		if (body < 0 || at + PERF_HEADER + (size_t)body > n ||
		    !perf_decode(type, buf + at + PERF_HEADER, (size_t)body, &m,
				 why, sizeof(why))) {
			answer = of(PERF_TYPES);	/* nonsense */
			return;
		}
		answer = m;
	}
}

/* Its exit status, or -1: it took too long, or left something open. */
static int play(const struct script *s, bool client)
{
	struct program g = {
		.o = { .ops = 1 << PERF_WRITE, .mems = 1 << PERF_HOST,
		       .tests = 1 << PERF_LATENCY, .sizes = { 8 },
		       .n_sizes = 1, .count = 10, .depth = 4, .seconds = 1,
		       .gid_index = -1, .timeout = 1 },
		.p = { .timeout = 1, .name = "peer" },
		.client = client,
	};
	static uint8_t heard[1 << 20];
	size_t at = 0, n = 0;
	double begin = now_wall();
	pthread_t thread;
	ssize_t r;
	int fd[2];

	said[0] = '\0';
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -1;
	g.p.fd = fd[1];
	if (pthread_create(&thread, NULL, start, &g))
		return -1;
	while (at < s->n && (r = send(fd[0], s->bytes + at, s->n - at,
				      MSG_NOSIGNAL)) > 0)
		at += (size_t)r;
	if (!s->stay)
		shutdown(fd[0], SHUT_WR);
	while (n < sizeof(heard) &&
	       (r = read(fd[0], heard + n, sizeof(heard) - n)) > 0)
		n += (size_t)r;
	pthread_join(thread, NULL);
	close(fd[0]);
	last_of(heard, n);
	if (now_wall() - begin > SOON || fake_objects)
		return -1;
	return g.status;
}

/* It ends with @status, says @words, and the last that it sent is an @type. */
static void ends(const struct script *s, bool client, int status,
		 enum perf_type type, const char *words, const char *what)
{
	int got = play(s, client);

	ktap(got == status && answer.type == type && strstr(said, words),
	     "%s: %s: status %d, message %d, %s", client ? "client" : "server",
	     what, got, (int)answer.type, said);
}

#define SERVER(status, type, words, what, ...) do { \
	struct perf_message m_[] = { __VA_ARGS__ }; \
	struct script s_ = { .n = 0 }; \
	for (size_t i_ = 0; i_ < sizeof(m_) / sizeof(*m_); i_++) \
		add(&s_, &m_[i_]); \
	ends(&s_, false, status, type, words, what); \
} while (0)

#define CHANGED(message, change) ({ \
	struct perf_message c = message; \
	change; \
	c; \
})

/* Bytes before or in place of messages */
static void raw(bool client, const char *bytes, size_t n, bool stay,
		int status, enum perf_type type, const char *words,
		const char *what)
{
	struct script s = { .n = n, .stay = stay };

	memcpy(s.bytes, bytes, n);
	ends(&s, client, status, type, words, what);
}

/* What both make of a peer that does not speak as it must */
static void strange(bool client)
{
	enum perf_type first = client ? PERF_BYE : 0;
	/* the client says hello before it listens */
	enum perf_type more = client ? PERF_BYE : PERF_REFUSE;

	raw(client, "", 0, false, EXIT_IO, first, "closed", "gone at once");
	raw(client, "", 0, true, EXIT_IO, first, "no answer in time",
	    "it says nothing");
	raw(client, "PLPF\0", 5, false, EXIT_IO, first, "closed",
	    "gone in a header");
	raw(client, "PLPF\0", 5, true, EXIT_IO, first, "no answer in time",
	    "half a header");
	raw(client, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, true, EXIT_IO, more,
	    "not peerlane perf", "another protocol");
	raw(client, "PLPF\0\7\0\1\0\0\0\0", 12, true, EXIT_IO, more,
	    "speaks version 7", "another version");
	raw(client, "PLPF\0\2\0\1\377\377\377\377", 12, true, EXIT_IO, more,
	    "4294967295 bytes", "4 GiB");
	raw(client, "PLPF\0\2\0\1\0\0\0\4abcd", 16, true, EXIT_IO, more,
	    "a wrong length or form", "a short hello");
	raw(client, "PLPF\0\2\0\7\0\0\0\1x", 13, true, EXIT_IO, more,
	    "a wrong length or form", "a goodbye with something behind it");
}

static void t_server(void)
{
	strange(false);
	SERVER(EXIT_OK, 0, "", "a client that cannot, and says so", of(PERF_BYE));
	SERVER(EXIT_IO, PERF_REFUSE, "where its hello should",
	       "no hello first", of(PERF_READY));
	SERVER(EXIT_IO, PERF_REFUSE, "no memory to send from",
	       "a client without memory",
	       CHANGED(hello(), c.hello.mem[PERF_HOST].possible = false));
	SERVER(EXIT_IO, PERF_REFUSE, "InfiniBand and the other on Ethernet",
	       "another link layer",
	       CHANGED(hello(), (c.hello.roce = false, c.hello.lid = 3)));
	SERVER(EXIT_OK, PERF_HELLO, "", "a client that only looks", hello(),
	       of(PERF_BYE));
	SERVER(EXIT_IO, PERF_HELLO, "closed", "gone after the hello", hello());
	SERVER(EXIT_IO, PERF_REFUSE, "where a run should", "two hellos",
	       hello(), hello());
	SERVER(EXIT_IO, PERF_REFUSE, "where a run should", "done before a run",
	       hello(), of(PERF_DONE));
	SERVER(EXIT_IO, PERF_REFUSE, "direct memory, which is not possible",
	       "memory that was not in the hello", hello(),
	       CHANGED(run(PERF_WRITE), c.run.mem = PERF_DIRECT));
	SERVER(EXIT_IO, PERF_REFUSE, "staged memory, which is not possible",
	       "a link without its memory", hello(),
	       CHANGED(run(PERF_WRITE), c.run.mem = PERF_STAGED));
	SERVER(EXIT_IO, PERF_REFUSE, "direct memory, which is not possible",
	       "memory that only the client has",
	       CHANGED(hello(), c.hello.mem[PERF_DIRECT].possible = true),
	       CHANGED(run(PERF_WRITE), c.run.mem = PERF_DIRECT));
	SERVER(EXIT_IO, PERF_REFUSE, "host memory, which is not possible",
	       "more than was in the hello", hello(),
	       CHANGED(run(PERF_WRITE), c.run.size = 65536));
	SERVER(EXIT_OK, PERF_RESULT, "", "a run of no messages", hello(),
	       run(PERF_SEND), of(PERF_DONE), of(PERF_BYE));
	SERVER(EXIT_OK, PERF_RESULT, "", "WRITEs that are told of", hello(),
	       run(PERF_WRITE),
	       CHANGED(of(PERF_DONE), c.done.messages = 3), of(PERF_BYE));
	ktap(answer.result.messages == 3, "... are counted as told");
	SERVER(EXIT_IO, PERF_REFUSE, "program there has ended",
	       "gone in a run", hello(), run(PERF_SEND));
	SERVER(EXIT_IO, PERF_REFUSE, "where 5 should", "a run in a run",
	       hello(), run(PERF_WRITE), run(PERF_WRITE));
	SERVER(EXIT_IO, PERF_REFUSE, "speaks before all messages",
	       "more words while SENDs are missing", hello(), run(PERF_SEND),
	       CHANGED(of(PERF_DONE), c.done.messages = 5), of(PERF_BYE));
	{
		struct script s = { .stay = true };
		struct perf_message m[] = { hello(), run(PERF_SEND),
			CHANGED(of(PERF_DONE), c.done.messages = 5) };

		for (int i = 0; i < 3; i++)
			add(&s, &m[i]);
		ends(&s, false, EXIT_IO, PERF_REFUSE, "nothing has moved for 1 s",
		     "SENDs that are told of and do not come");
		/* without end, from here on */
		memset(s.bytes + s.n, 'x', MAX - s.n);
		s.n = MAX;
		ends(&s, false, EXIT_IO, PERF_REFUSE, "speaks before",
		     "it does not stop to talk");
	}
}

#define CLIENT(status, type, words, what, ...) do { \
	struct perf_message m_[] = { __VA_ARGS__ }; \
	struct script s_ = { .n = 0, .stay = true }; \
	for (size_t i_ = 0; i_ < sizeof(m_) / sizeof(*m_); i_++) \
		add(&s_, &m_[i_]); \
	ends(&s_, true, status, type, words, what); \
} while (0)

static void t_client(void)
{
	strange(true);
	CLIENT(EXIT_IO, PERF_BYE, "refuses: no device",
	       "a server that refuses",
	       CHANGED(of(PERF_REFUSE), snprintf(c.refuse, 20, "no device")));
	CLIENT(EXIT_REFUSED, PERF_BYE, "host memory is not possible there: none",
	       "a server without memory",
	       CHANGED(hello(), (c.hello.mem[PERF_HOST].possible = false,
			snprintf(c.hello.mem[PERF_HOST].reason, 20, "none"))));
	CLIENT(EXIT_IO, PERF_REFUSE, "no answer in time",
	       "a server that does not get ready", hello());
	CLIENT(EXIT_IO, PERF_REFUSE, "where 4 should",
	       "a result instead of ready", hello(), of(PERF_RESULT));
	CLIENT(EXIT_IO, PERF_REFUSE, "transport retry counter exceeded",
	       "a queue pair that there is not", hello(),
	       CHANGED(of(PERF_READY), c.ready.qpn = 4711));
}

/* ---- messages on queue pairs, both ends in this thread ---- */

static struct perf_end end[2];		/* 0: the client, 1: the server */
static struct perf_engine engine[2];
static struct perf_hello hellos[2];
static struct perf_run runs[2];
static struct perf_peer nobody = { .timeout = 1, .name = "peer" };

static bool pair_up(enum perf_op op, uint64_t clients_size)
{
	struct perf_options o = { .gid_index = -1 };
	bool good = true;
	int i;

	said[0] = '\0';
	for (i = 0; i < 2; i++) {
		good = good && perf_end_open(&end[i], &o) &&
		       perf_end_memory(&end[i], 1 << PERF_HOST, 65536, 0);
		perf_end_hello(&end[i], &hellos[i]);
		runs[i] = run(op).run;
	}
	runs[0].size = clients_size;
	for (i = 0; i < 2 && good; i++) {
		engine[i] = (struct perf_engine){
			.e = &end[i], .p = &nobody, .b = &end[i].mem[PERF_HOST],
			.peer = &hellos[!i].mem[PERF_HOST], .r = &runs[i],
			.mover = &perf_verbs, .server = i,
		};
		good = perf_verbs.open(&engine[i]);
	}
	for (i = 0; i < 2 && good; i++)
		good = perf_verbs.connect(&engine[i], &hellos[!i],
					  engine[!i].q.qp->qp_num,
					  engine[!i].q.psn);
	return good;
}

static void part(void)
{
	for (int i = 0; i < 2; i++) {
		perf_verbs.close(&engine[i]);
		perf_end_close(&end[i]);
	}
}

/* @n messages, each to its end; the server sees to those that it knows of */
static bool moved(int n)
{
	bool sends = runs[0].op == PERF_SEND;

	while (n--) {
		if (!perf_verbs.start(&engine[0]))
			return false;
		engine[0].started++;
		if (perf_verbs.ended(&engine[0]) != 1 ||
		    perf_verbs.ended(&engine[0]) != 0 ||
		    perf_verbs.serve(&engine[1]) != sends)
			return false;
		engine[0].done++;
		engine[1].done += sends;
	}
	return true;
}

static void t_moves(void)
{
	uint8_t want[4 * 4096];
	enum perf_op op;
	int from, ok;

	for (op = 0; op < PERF_OPS; op++) {
		from = op == PERF_READ;
		ok = pair_up(op, 4096) &&
		     perf_fill(&end[from].mem[PERF_HOST], sizeof(want), 5) &&
		     perf_fill(&end[!from].mem[PERF_HOST], sizeof(want), 0);
		if (ok)
			memcpy(want, end[from].mem[PERF_HOST].host,
			       sizeof(want));
		ktap(ok && moved(3) && !memcmp(end[!from].mem[PERF_HOST].host,
					       want, 3 * 4096) &&
		     !((uint8_t *)end[!from].mem[PERF_HOST].host)[3 * 4096],
		     "%s: three messages are in their slots, and no more",
		     perf_op_name[op]);
		ktap(moved(6) && !memcmp(end[!from].mem[PERF_HOST].host, want,
					 sizeof(want)),
		     "... and six more go around");
		part();
	}
}

static void t_bad_moves(void)
{
	static uint8_t page[4096];
	int fd[2];

	ktap(pair_up(PERF_SEND, 4096) && moved(1), "a SEND in turn");
	engine[0].started++;
	ktap(perf_verbs.start(&engine[0]) && perf_verbs.serve(&engine[1]) < 0 &&
	     strstr(said, "out of turn: slot 2, not 1"), "then: %s", said);
	part();
	ktap(pair_up(PERF_SEND, 2048) && perf_verbs.start(&engine[0]) &&
	     perf_verbs.serve(&engine[1]) < 0 &&
	     strstr(said, "sent 2048 bytes, not 4096"), "size: %s", said);
	part();
	if (pair_up(PERF_SEND, 4096))
		fake_send_raw(engine[1].q.qp->qp_num, page, sizeof(page));
	ktap(perf_verbs.serve(&engine[1]) < 0 && strstr(said, "without saying which"),
	     "without a slot: %s", said);
	part();
	ktap(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd),
	     "a peer that is there");
	nobody.fd = fd[0];
	ktap(pair_up(PERF_WRITE, 4096), "a WRITE");
	fake_next_status = IBV_WC_REM_ACCESS_ERR;
	ktap(perf_verbs.start(&engine[0]) && perf_verbs.ended(&engine[0]) < 0 &&
	     strstr(said, "a memory region is no longer valid"),
	     "is refused: %s", said);
	part();
	close(fd[0]);
	close(fd[1]);
	ktap(!fake_objects, "nothing is left of all these");
}

/* Good conversations with random damage: bounded, and nothing is left */
static void t_fuzz(void)
{
	static struct script s;
	int i, k, bad = 0, ended[8] = { 0 }, status;

	srandom(1963);
	for (i = 0; i < 1500; i++) {
		struct perf_message m[] = {
			hello(), run((enum perf_op)(random() % PERF_OPS)),
			of(PERF_DONE), of(PERF_BYE),
		};

		s.n = 0;
		s.stay = false;
		for (k = 0; k < 4; k++)
			if (random() % 8)
				add(&s, &m[random() % 10 ? k :
					   (int)(random() % 4)]);
		for (k = (int)(random() % 3); k > 0 && s.n; k--)
			s.bytes[(size_t)random() % s.n] = (uint8_t)random();
		if (s.n && !(random() % 4))
			s.n = (size_t)random() % s.n;
		status = play(&s, false);
		bad += status < 0 || status > EXIT_MISMATCH ||
		       answer.type == PERF_TYPES;
		if (status >= 0 && status < 8)
			ended[status]++;
	}
	ktap(!bad && ended[EXIT_OK] && ended[EXIT_IO],
	     "1500 damaged conversations: %d went well, %d failed, %d hung, "
	     "leaked or were answered with nonsense", ended[EXIT_OK],
	     ended[EXIT_IO], bad);
}

int main(void)
{
	fake_install();
	t_server();
	t_client();
	t_moves();
	t_bad_moves();
	t_fuzz();
	return ktap_end();
}
