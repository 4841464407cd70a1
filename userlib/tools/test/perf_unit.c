// SPDX-License-Identifier: MIT
/* peerlane perf without a device: statistics, sizes, messages, the socket. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf/perf.h"
#include "tool.h"

static int checks, bad;

static void check(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++checks, what);
	bad += !good;
}

/* ---- statistics ---- */

/* 1 to @n in another order */
static uint64_t *numbers(uint64_t n)
{
	uint64_t *v = malloc(n * sizeof(*v)), i;

	for (i = 0; i < n; i++)
		v[i] = (i * 7919) % n + 1;	/* 7919 is prime */
	return v;
}

static void statistics(void)
{
	struct perf_stat s;
	uint64_t *v = numbers(1000), one = 5, two[] = { 9, 3 };

	perf_stat(v, 1000, &s);
	check(s.n == 1000 && s.min == 1 && s.max == 1000 && s.mean == 500,
	      "1 to 1000: least, greatest, mean");
	check(s.p50 == 500 && s.p90 == 900 && s.p99 == 990 && s.p999 == 999,
	      "1 to 1000: percentiles by nearest rank");
	free(v);
	v = numbers(999);
	perf_stat(v, 999, &s);
	check(s.p99 == 990 && s.p999 == PERF_UNTOLD,
	      "999 samples do not tell p99.9");
	free(v);
	v = numbers(99);
	perf_stat(v, 99, &s);
	check(s.p90 == 90 && s.p99 == PERF_UNTOLD, "99 do not tell p99");
	free(v);
	v = numbers(9);
	perf_stat(v, 9, &s);
	check(s.p50 == 5 && s.p90 == PERF_UNTOLD, "9 do not tell p90");
	free(v);
	perf_stat(&one, 1, &s);
	check(s.min == 5 && s.p50 == 5 && s.max == 5 && s.mean == 5,
	      "one sample is its own median");
	perf_stat(two, 2, &s);
	check(s.p50 == 3 && s.max == 9, "of two the lesser is the median");
	perf_stat(NULL, 0, &s);
	check(!s.n && s.p50 == PERF_UNTOLD && s.max == PERF_UNTOLD,
	      "no samples tell nothing");
}

/*
 * The definition, computed without sorting: of the samples that at least
 * @thousandths of all do not exceed, the least.  And whether there are enough of
 * them that it is not the maximum for want of others.
 */
static uint64_t by_counting(const uint64_t *v, uint64_t n, uint64_t thousandths)
{
	uint64_t best = PERF_UNTOLD, i, k, not_above;

	if (thousandths > 500 && n * (1000 - thousandths) < 1000)
		return PERF_UNTOLD;
	for (i = 0; i < n; i++) {
		for (k = not_above = 0; k < n; k++)
			not_above += v[k] <= v[i];
		if (not_above * 1000 >= n * thousandths && v[i] < best)
			best = v[i];
	}
	return best;
}

/* Of other sizes and shapes: few values many times, a long tail */
static void counted(void)
{
	static uint64_t v[2300], copy[2300];
	uint64_t n, i, sum, least, most;
	struct perf_stat s;
	bool good = true;

	srandom(42);
	for (n = 1; n <= 2300; n += n < 130 ? 1 : 217) {
		for (i = sum = most = 0, least = UINT64_MAX; i < n; i++) {
			v[i] = (uint64_t)random() % (n % 3 ? 1000000 : 5);
			if (!(random() % 50))
				v[i] *= 1000;
			sum += v[i];
			most = v[i] > most ? v[i] : most;
			least = v[i] < least ? v[i] : least;
		}
		memcpy(copy, v, sizeof(v));
		perf_stat(copy, n, &s);
		good &= s.n == n && s.min == least && s.max == most &&
			s.mean == sum / n &&
			s.p50 == by_counting(v, n, 500) &&
			s.p90 == by_counting(v, n, 900) &&
			s.p99 == by_counting(v, n, 990) &&
			s.p999 == by_counting(v, n, 999);
	}
	check(good, "as counting says, for 1 to 2300 samples of several shapes");
}

/* ---- options ---- */

static bool sizes_are(const char *text, const uint64_t *want, unsigned int n)
{
	uint64_t v[PERF_MAX_SIZES];
	unsigned int got;

	return perf_parse_sizes(text, v, &got) && got == n &&
	       !memcmp(v, want, n * sizeof(*v));
}

static void sizes(void)
{
	static const char *const wrong[] = {
		"", ",", "0", "x", "-1", "8,", "1:", ":8", "8:4", "2G", "1.5",
		"8 16", "4K:64T", "1:1G,1:1G,1:1G", "18446744073709551617",
	};
	uint64_t v[PERF_MAX_SIZES];
	unsigned int i, n;

	check(sizes_are("1,64,4K", (uint64_t[]){ 1, 64, 4096 }, 3), "a list");
	check(sizes_are("2:16", (uint64_t[]){ 2, 4, 8, 16 }, 4), "a range");
	check(sizes_are("3:13,1M", (uint64_t[]){ 3, 6, 12, 1 << 20 }, 4),
	      "a range that does not end on its end, and one more");
	check(sizes_are("1G", (uint64_t[]){ 1 << 30 }, 1), "the largest");
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char what[80];

		/* a trailing comma is forgiven */
		snprintf(what, sizeof(what), "not sizes: \"%s\"", wrong[i]);
		if (!strcmp(wrong[i], "8,"))
			check(perf_parse_sizes(wrong[i], v, &n) && n == 1,
			      "a comma at the end is no size");
		else
			check(!perf_parse_sizes(wrong[i], v, &n), what);
	}
}

/* ---- messages ---- */

static struct perf_message sample(enum perf_type type)
{
	struct perf_message m = { .type = type };
	int i;

	switch (type) {
	case PERF_HELLO:
		snprintf(m.hello.device, sizeof(m.hello.device), "rxe0");
		snprintf(m.hello.gpu, sizeof(m.hello.gpu), "GPU");
		memset(m.hello.gid, 0xfe, sizeof(m.hello.gid));
		m.hello.gid[15] = 1;
		m.hello.mtu = IBV_MTU_4096;
		m.hello.reads = 16;
		m.hello.lid = 0x1234;
		m.hello.port = 2;
		m.hello.roce = true;
		m.hello.buffer = 1 << 20;
		for (i = 0; i < PERF_MEMS; i++) {
			m.hello.mem[i].possible = i != 1;
			m.hello.mem[i].addr = 0x123456789abcdef0ull + i;
			m.hello.mem[i].rkey = 0x9abcdef0u + i;
			m.hello.mem[i].way = (uint8_t)(3 - i);
			snprintf(m.hello.mem[i].reason, PERF_TEXT, "why %d", i);
		}
		break;
	case PERF_REFUSE:
		snprintf(m.refuse, sizeof(m.refuse), "no");
		break;
	case PERF_RUN:
		m.run = (struct perf_run){
			.op = PERF_SEND, .mem = PERF_STAGED, .depth = 16,
			.seconds = 3, .size = 4096, .seed = 7, .qpn = 17,
			.psn = 0xffffff,
		};
		break;
	case PERF_READY:
		m.ready = (struct perf_ready){ 18, 1 };
		break;
	case PERF_DONE:
		m.done.messages = 1000;
		break;
	case PERF_RESULT:
		m.result = (struct perf_result){ 1000, 4096, 7, 0xdeadbeef,
						true };
		break;
	default:
		break;
	}
	return m;
}

/* What sample() is on the wire, by hand: the other program may be another build */
#define HEAD(type, n)	'P', 'L', 'P', 'F', 0, 2, 0, type, 0, 0, (n) >> 8, (n) & 255

static const uint8_t hello_bytes[12 + 1738] = {
	HEAD(1, 1738),
	[12] = 'r', 'x', 'e', '0',			/* device */
	[76] = 'G', 'P', 'U',				/* gpu */
	[140] = 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe,
	0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 1,	/* gid */
	0x12, 0x34, 2, 5, 16,				/* lid, port, mtu, reads */
	1, 0, 0,					/* roce, software, emulated */
	0, 0, 0, 0, 0, 0x10, 0, 0,			/* buffer */
	/* direct: possible, addr, rkey, way, reason */
	[172] = 1, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
	0x9a, 0xbc, 0xde, 0xf0, 3, 'w', 'h', 'y', ' ', '0',
	/* staged */
	[698] = 0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf1,
	0x9a, 0xbc, 0xde, 0xf1, 2, 'w', 'h', 'y', ' ', '1',
	/* host */
	[1224] = 1, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf2,
	0x9a, 0xbc, 0xde, 0xf2, 1, 'w', 'h', 'y', ' ', '2',
};
static const uint8_t refuse_bytes[12 + 512] = { HEAD(2, 512), 'n', 'o' };
static const uint8_t run_bytes[] = {
	HEAD(3, 34),
	2, 1,						/* op, mem */
	0, 0, 0, 16, 0, 0, 0, 3,			/* depth, seconds */
	0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 7,	/* size, seed */
	0, 0, 0, 17, 0, 0xff, 0xff, 0xff,		/* qpn, psn */
};
static const uint8_t ready_bytes[] = {
	HEAD(4, 8), 0, 0, 0, 18, 0, 0, 0, 1,		/* qpn, psn */
};
static const uint8_t done_bytes[] = {
	HEAD(5, 8), 0, 0, 0, 0, 0, 0, 3, 0xe8,		/* messages */
};
static const uint8_t result_bytes[] = {
	HEAD(6, 29),
	0, 0, 0, 0, 0, 0, 3, 0xe8,			/* messages */
	0, 0, 0, 0, 0, 0, 0x10, 0,			/* staged */
	0, 0, 0, 0, 0, 0, 0, 7,				/* notices */
	0xde, 0xad, 0xbe, 0xef, 1,			/* crc, crc_by_gpu */
};
static const uint8_t bye_bytes[] = { HEAD(7, 0) };

#define BYTES(b)	{ b, sizeof(b) }
static const struct {
	const uint8_t *bytes;
	size_t n;
} wire[PERF_TYPES] = {
	[PERF_HELLO] = BYTES(hello_bytes), [PERF_REFUSE] = BYTES(refuse_bytes),
	[PERF_RUN] = BYTES(run_bytes), [PERF_READY] = BYTES(ready_bytes),
	[PERF_DONE] = BYTES(done_bytes), [PERF_RESULT] = BYTES(result_bytes),
	[PERF_BYE] = BYTES(bye_bytes),
};

static bool decodes(const uint8_t *buf, size_t n, struct perf_message *m,
		    char *why, size_t size)
{
	enum perf_type type;
	int body = perf_decode_header(buf, &type, why, size);

	return body >= 0 && (size_t)body == n - PERF_HEADER &&
	       perf_decode(type, buf + PERF_HEADER, (size_t)body, m, why, size);
}

static void messages(void)
{
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY];
	struct perf_message m, back;
	enum perf_type type;
	char why[256], what[80];
	size_t n, cut;
	bool good;
	int i, k;

	for (type = 1; type < PERF_TYPES; type++) {
		m = sample(type);
		n = perf_encode(&m, buf);
		good = decodes(buf, n, &back, why, sizeof(why)) &&
		       !memcmp(&m, &back, sizeof(m));
		snprintf(what, sizeof(what), "type %d comes back the same",
			 type);
		check(good, what);
		snprintf(what, sizeof(what), "type %d: its bytes", type);
		check(n == wire[type].n && !memcmp(buf, wire[type].bytes, n),
		      what);
		for (cut = 0, good = true; cut < n - PERF_HEADER; cut++)
			good &= !perf_decode(type, buf + PERF_HEADER, cut, &back,
					     why, sizeof(why));
		good &= !perf_decode(type, buf + PERF_HEADER,
				     n - PERF_HEADER + 1, &back, why,
				     sizeof(why));
		snprintf(what, sizeof(what),
			 "type %d: a shorter or longer one is refused", type);
		check(good, what);
	}
	/* Of three flags two are the same in any one message */
	for (i = 0, good = true; i < 3; i++) {
		m = sample(PERF_HELLO);
		m.hello.roce = i == 0;
		m.hello.software = i == 1;
		m.hello.emulated = i == 2;
		perf_encode(&m, buf);
		for (k = 0; k < 3; k++)
			good &= buf[161 + k] == (k == i);
	}
	check(good, "hello: each flag has its byte");
	m = sample(PERF_BYE);
	perf_encode(&m, buf);
	buf[5] = PERF_VERSION + 1;
	check(perf_decode_header(buf, &type, why, sizeof(why)) < 0 &&
	      strstr(why, "version 3") && strstr(why, "install the same"),
	      "another version is refused, with the cure");
	buf[5] = PERF_VERSION;
	buf[7] = PERF_TYPES;
	check(perf_decode_header(buf, &type, why, sizeof(why)) < 0,
	      "an unknown type is refused");
	buf[7] = PERF_BYE;
	buf[8] = 1;
	check(perf_decode_header(buf, &type, why, sizeof(why)) < 0,
	      "16 MiB are refused");
	memcpy(buf, "HTTP/1.1 400", PERF_HEADER);
	check(perf_decode_header(buf, &type, why, sizeof(why)) < 0 &&
	      strstr(why, "not peerlane perf"), "another protocol is refused");
}

/* A good message of @type, one thing changed by @spoil */
#define REFUSED(type_, change, what) do { \
	uint8_t buf_[PERF_HEADER + PERF_MAX_BODY]; \
	struct perf_message m = sample(type_), back_; \
	char why_[256]; \
	size_t n_; \
	change; \
	n_ = perf_encode(&m, buf_); \
	check(!decodes(buf_, n_, &back_, why_, sizeof(why_)), what); \
} while (0)

static void contents(void)
{
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY];
	struct perf_message hello = sample(PERF_HELLO), back;
	char why[256];
	size_t n;

	REFUSED(PERF_HELLO, m.hello.mtu = 0, "hello: MTU 0");
	REFUSED(PERF_HELLO, m.hello.mtu = IBV_MTU_4096 + 1, "hello: MTU 6");
	REFUSED(PERF_HELLO, m.hello.port = 0, "hello: port 0");
	REFUSED(PERF_HELLO, memset(m.hello.gid, 0, 16), "hello: RoCE, no GID");
	REFUSED(PERF_HELLO, m.hello.roce = false; m.hello.lid = 0,
		"hello: InfiniBand, no LID");
	REFUSED(PERF_HELLO, m.hello.mem[1].way = 4, "hello: an unknown way");
	REFUSED(PERF_HELLO, m.hello.reads = 0, "hello: a device without READ");
	REFUSED(PERF_HELLO, m.hello.buffer = PERF_MAX_BUFFER + 1,
		"hello: a huge buffer");
	REFUSED(PERF_RUN, m.run.op = PERF_OPS, "run: an unknown operation");
	REFUSED(PERF_RUN, m.run.mem = PERF_MEMS, "run: an unknown memory");
	REFUSED(PERF_RUN, m.run.size = 0, "run: no bytes");
	REFUSED(PERF_RUN, m.run.size = PERF_MAX_SIZE + 1, "run: 1 GiB and 1");
	REFUSED(PERF_RUN, m.run.depth = 0, "run: depth 0");
	REFUSED(PERF_RUN, m.run.depth = PERF_MAX_DEPTH + 1, "run: depth 257");
	REFUSED(PERF_RUN, m.run.seconds = 100000, "run: more than a day");
	REFUSED(PERF_RUN, m.run.size = PERF_MAX_BUFFER / 8,
		"run: 2 GiB under way");
	REFUSED(PERF_RUN, m.run.qpn = 1 << 24, "run: a queue pair of 25 bits");
	REFUSED(PERF_RUN, m.run.psn = 1 << 24, "run: a packet of 25 bits");
	REFUSED(PERF_READY, m.ready.qpn = 1 << 24,
		"ready: a queue pair of 25 bits");
	REFUSED(PERF_READY, m.ready.psn = 1 << 24, "ready: a packet of 25 bits");
	REFUSED(PERF_DONE, m.done.messages = UINT64_MAX, "done: countless");
	n = perf_encode(&hello, buf);
	memset(buf + PERF_HEADER, 'x', 64);
	check(!decodes(buf, n, &back, why, sizeof(why)),
	      "a text without an end is refused");
	snprintf(hello.hello.device, sizeof(hello.hello.device), "\033[2Jx\n\177\233");
	n = perf_encode(&hello, buf);
	check(decodes(buf, n, &back, why, sizeof(why)) &&
	      !strcmp(back.hello.device, "?[2Jx???"),
	      "what a terminal would obey is not printed");
}

/* Random messages, and good ones with random damage: no crash, and what is
 * taken is within bounds. */
static void fuzz(void)
{
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY + 1];
	struct perf_message m, back;
	unsigned long taken = 0;
	char why[256];
	bool good = true;
	size_t n;
	int i, k;

	srandom(4711);
	for (i = 0; i < 200000; i++) {
		m = sample(1 + (enum perf_type)(random() % (PERF_TYPES - 1)));
		n = perf_encode(&m, buf);
		for (k = (int)(random() % 4); k >= 0; k--)
			buf[(size_t)random() % n] = (uint8_t)random();
		if (!(random() % 8))
			n = PERF_HEADER + (size_t)random() %
			    (n - PERF_HEADER + 1);
		if (!decodes(buf, n, &back, why, sizeof(why)))
			continue;
		taken++;
		if (back.type == PERF_RUN)
			good &= back.run.op < PERF_OPS &&
				back.run.mem < PERF_MEMS && back.run.size &&
				back.run.size <= PERF_MAX_SIZE &&
				back.run.depth &&
				back.run.depth <= PERF_MAX_DEPTH;
		if (back.type == PERF_HELLO)
			good &= strlen(back.hello.device) < 64 &&
				strlen(back.hello.mem[2].reason) < PERF_TEXT &&
				back.hello.buffer <= PERF_MAX_BUFFER;
	}
	check(good && taken > 1000 && taken < 199000,
	      "200000 damaged messages: refused, or within bounds");
}

/* ---- the socket ---- */

static void socket_words(void)
{
	struct perf_peer p = { .timeout = 1, .name = "peer" };
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY];
	struct perf_message m = sample(PERF_READY), got;
	int fd[2];
	size_t n;
	double t;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd)) {
		check(false, "a socket");
		return;
	}
	p.fd = fd[0];
	n = perf_encode(&m, buf);
	check(!perf_peek(&p), "nothing has come yet");
	check(write(fd[1], buf, 5) == 5 && perf_peek(&p) == 1, "a part has");
	t = now_wall();
	check(!perf_recv(&p, PERF_READY, -1, &got) && now_wall() - t < 10,
	      "the rest does not come: it is not waited for without end");
	check(write(fd[1], buf, n) == (ssize_t)n &&
	      perf_recv(&p, PERF_READY, -1, &got) && got.ready.qpn == 18,
	      "a whole one is taken");
	check(write(fd[1], buf, n) == (ssize_t)n &&
	      !perf_recv(&p, PERF_RESULT, -1, &got),
	      "one of another type is refused");
	check(read(fd[1], buf, sizeof(buf)) > PERF_HEADER &&
	      buf[7] == PERF_REFUSE, "... and the peer is told so");
	m = sample(PERF_REFUSE);
	n = perf_encode(&m, buf);
	check(write(fd[1], buf, n) == (ssize_t)n &&
	      !perf_recv(&p, 0, -1, &got), "a refusal ends it");
	close(fd[1]);
	check(perf_peek(&p) < 0 && !perf_recv(&p, 0, -1, &got),
	      "the peer has gone");
	check(!perf_send(&p, &m), "... and cannot be told anything");
	close(fd[0]);
}

int main(void)
{
	statistics();
	counted();
	sizes();
	messages();
	contents();
	fuzz();
	socket_words();
	printf("1..%d\n", checks);
	return bad ? 1 : 0;
}
