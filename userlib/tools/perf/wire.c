// SPDX-License-Identifier: MIT
/*
 * peerlane perf: the messages of the two programs, as bytes and back.
 *
 * Each has a header: the letters "PLPF", then in network order its version, its
 * type (16 bits each) and the bytes that follow (32 bits).  All numbers are in
 * network order, texts have a fixed room and a NUL.  What does not fit exactly
 * is refused.
 */
#include <string.h>
#include <stdio.h>

#include <peerlane/mr.h>

#include "perf.h"

const char *const perf_op_name[PERF_OPS] = { "write", "read", "send" };
const char *const perf_mem_name[PERF_MEMS] = { "direct", "staged", "host" };
const char *const perf_test_name[PERF_TESTS] = { "latency", "stream" };

static const uint8_t magic[4] = { 'P', 'L', 'P', 'F' };

/* A place in a message, to write to or to read from. */
struct cursor {
	uint8_t *out;
	const uint8_t *in, *end;
	bool bad;
};

static void number(struct cursor *c, uint64_t *v, unsigned int bytes)
{
	unsigned int i;

	if (c->out) {
		for (i = 0; i < bytes; i++)
			*c->out++ = (uint8_t)(*v >> 8 * (bytes - 1 - i));
		return;
	}
	*v = 0;
	if ((size_t)(c->end - c->in) < bytes) {
		c->bad = true;
		return;
	}
	for (i = 0; i < bytes; i++)
		*v = *v << 8 | *c->in++;
}

#define FIELD(bits) \
static void u##bits(struct cursor *c, uint##bits##_t *v) \
{ \
	uint64_t x = *v; \
\
	number(c, &x, bits / 8); \
	*v = (uint##bits##_t)x; \
}
FIELD(8)
FIELD(16)
FIELD(32)
FIELD(64)
#undef FIELD

static void flag(struct cursor *c, bool *v)
{
	uint8_t x = *v;

	u8(c, &x);
	if (x > 1)
		c->bad = true;
	*v = x == 1;
}

/* Printable, and with a NUL: it goes to a terminal. */
static void text(struct cursor *c, char *s, size_t room)
{
	size_t i;

	if (c->out) {
		memset(c->out, 0, room);
		memcpy(c->out, s, strnlen(s, room - 1));
		c->out += room;
		return;
	}
	if ((size_t)(c->end - c->in) < room) {
		c->bad = true;
		return;
	}
	memcpy(s, c->in, room);
	c->in += room;
	if (s[room - 1])
		c->bad = true;
	s[room - 1] = '\0';
	for (i = 0; s[i]; i++)
		if (s[i] < ' ' || s[i] > '~')
			s[i] = '?';
}

static void bytes(struct cursor *c, uint8_t *p, size_t n)
{
	if (c->out) {
		memcpy(c->out, p, n);
		c->out += n;
	} else if ((size_t)(c->end - c->in) < n) {
		c->bad = true;
	} else {
		memcpy(p, c->in, n);
		c->in += n;
	}
}

static void body_hello(struct cursor *c, struct perf_hello *h)
{
	int i;

	text(c, h->device, sizeof(h->device));
	text(c, h->gpu, sizeof(h->gpu));
	bytes(c, h->gid, sizeof(h->gid));
	u16(c, &h->lid);
	u8(c, &h->port);
	u8(c, &h->mtu);
	u8(c, &h->reads);
	flag(c, &h->roce);
	flag(c, &h->software);
	flag(c, &h->emulated);
	u64(c, &h->buffer);
	for (i = 0; i < PERF_MEMS; i++) {
		struct perf_memory *m = &h->mem[i];

		flag(c, &m->possible);
		u64(c, &m->addr);
		u32(c, &m->rkey);
		u8(c, &m->way);
		text(c, m->reason, sizeof(m->reason));
	}
}

static void body(struct cursor *c, struct perf_message *m)
{
	switch (m->type) {
	case PERF_HELLO:
		body_hello(c, &m->hello);
		break;
	case PERF_REFUSE:
		text(c, m->refuse, sizeof(m->refuse));
		break;
	case PERF_RUN:
		u8(c, &m->run.op);
		u8(c, &m->run.mem);
		u32(c, &m->run.depth);
		u32(c, &m->run.seconds);
		u64(c, &m->run.size);
		u64(c, &m->run.seed);
		u32(c, &m->run.qpn);
		u32(c, &m->run.psn);
		break;
	case PERF_READY:
		u32(c, &m->ready.qpn);
		u32(c, &m->ready.psn);
		break;
	case PERF_DONE:
		u64(c, &m->done.messages);
		break;
	case PERF_RESULT:
		u64(c, &m->result.messages);
		u64(c, &m->result.staged);
		u64(c, &m->result.notices);
		u32(c, &m->result.crc);
		flag(c, &m->result.crc_by_gpu);
		break;
	default:
		break;
	}
}

size_t perf_encode(const struct perf_message *m, uint8_t *buf)
{
	struct perf_message copy = *m;
	struct cursor c = { .out = buf + PERF_HEADER };
	uint64_t v;

	body(&c, &copy);
	v = (uint64_t)(c.out - buf) - PERF_HEADER;
	memcpy(buf, magic, sizeof(magic));
	c.out = buf + sizeof(magic);
	number(&c, &(uint64_t){ PERF_VERSION }, 2);
	number(&c, &(uint64_t){ m->type }, 2);
	number(&c, &v, 4);
	return PERF_HEADER + v;
}

int perf_decode_header(const uint8_t *buf, enum perf_type *type, char *why,
		       size_t size)
{
	struct cursor c = { .in = buf + sizeof(magic),
			    .end = buf + PERF_HEADER };
	uint64_t version, t, n;

	if (memcmp(buf, magic, sizeof(magic))) {
		snprintf(why, size, "it is not peerlane perf: another program "
			 "listens on that port, or calls this one");
		return -1;
	}
	number(&c, &version, 2);
	number(&c, &t, 2);
	number(&c, &n, 4);
	if (version != PERF_VERSION) {
		snprintf(why, size, "it speaks version %u of the protocol, and "
			 "this program version %d: install the same Peerlane on "
			 "both hosts", (unsigned int)version, PERF_VERSION);
		return -1;
	}
	if (!t || t >= PERF_TYPES || n > PERF_MAX_BODY) {
		snprintf(why, size, "a message of type %u with %u bytes, which "
			 "there is not", (unsigned int)t, (unsigned int)n);
		return -1;
	}
	*type = (enum perf_type)t;
	return (int)n;
}

#define NUMBER_24	0xffffffu

static bool known_ways(const struct perf_hello *h)
{
	int i;

	for (i = 0; i < PERF_MEMS; i++)
		if (h->mem[i].way > PLN_MR_STAGED)
			return false;
	return true;
}

bool perf_decode(enum perf_type type, const uint8_t *buf, size_t n,
		 struct perf_message *m, char *why, size_t size)
{
	static const uint8_t zero[16];
	struct cursor c = { .in = buf, .end = buf + n };
	const char *what = NULL;

	memset(m, 0, sizeof(*m));
	m->type = type;
	body(&c, m);
	if (c.bad || c.in != c.end)
		what = "has another length or form than it must";
	else if (type == PERF_HELLO &&
		 (m->hello.mtu < IBV_MTU_256 || m->hello.mtu > IBV_MTU_4096))
		what = "tells an MTU that there is not";
	else if (type == PERF_HELLO && !m->hello.reads)
		what = "says that its device answers no READ";
	else if (type == PERF_HELLO && (!m->hello.port ||
		 (m->hello.roce ? !memcmp(m->hello.gid, zero, sizeof(zero)) :
		  !m->hello.lid)))
		what = "tells a port without an address";
	else if (type == PERF_HELLO && !known_ways(&m->hello))
		what = "tells a way of registering memory that there is not";
	else if (type == PERF_HELLO && m->hello.buffer > PERF_MAX_BUFFER)
		what = "tells a buffer larger than there can be";
	else if (type == PERF_RUN &&
		 (m->run.op >= PERF_OPS || m->run.mem >= PERF_MEMS))
		what = "names an operation or a memory that there is not";
	else if (type == PERF_RUN &&
		 (!m->run.size || m->run.size > PERF_MAX_SIZE ||
		  !m->run.depth || m->run.depth > PERF_MAX_DEPTH ||
		  m->run.depth * m->run.size > PERF_MAX_BUFFER ||
		  m->run.seconds > 2 * PERF_MAX_SECONDS + 1))
		what = "has a size, depth or time out of range";
	else if ((type == PERF_RUN &&
		  (m->run.qpn > NUMBER_24 || m->run.psn > NUMBER_24)) ||
		 (type == PERF_READY &&
		  (m->ready.qpn > NUMBER_24 || m->ready.psn > NUMBER_24)))
		what = "has a queue pair or packet number beyond 24 bits";
	else if (type == PERF_DONE && m->done.messages > 2 * PERF_MAX_COUNT)
		what = "counts more messages than there can be";
	if (what)
		snprintf(why, size, "its message of type %d %s", type, what);
	return !what;
}
