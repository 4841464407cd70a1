// SPDX-License-Identifier: MIT
/*
 * peerlane perf: the messages of the two programs, as bytes and back.
 *
 * Each has a header: the letters "PLPF", then in network order its version, its
 * type (16 bits each) and the bytes that follow (32 bits).  These are the fields
 * of the tables below, without gaps: numbers in network order, texts in a fixed
 * room and with a NUL.  What does not fit exactly is refused.
 *
 * Links have a protocol of their own (link-protocol.md), which cannot carry these:
 * the programs speak before it is known whether a link is possible, and say why
 * not; it has no READ and no SEND of data; and perf counts every byte that RDMA
 * moves.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <peerlane/mr.h>

#include "perf.h"

const char *const perf_op_name[PERF_OPS] = { "write", "read", "send" };
const char *const perf_mem_name[PERF_MEMS] = { "direct", "staged", "host" };
const char *const perf_test_name[PERF_TESTS] = { "latency", "stream" };

static const uint8_t magic[4] = { 'P', 'L', 'P', 'F' };

/* Where it is in a struct perf_message, and what it may be */
struct field {
	enum { NUMBER, TEXT, BYTES } is;
	size_t at, size;
	uint64_t least, most;		/* a number */
	const char *fault;		/* when it is another one; NULL: of its form */
};

#define AT(member)	offsetof(struct perf_message, member), \
			sizeof(((struct perf_message *)NULL)->member)
#define N(member, least, most, fault) { NUMBER, AT(member), least, most, fault }
#define ANY(member)	N(member, 0, UINT64_MAX, NULL)
#define FLAG(member)	N(member, 0, 1, NULL)
#define T(member)	{ TEXT, AT(member), 0, 0, NULL }
#define B(member)	{ BYTES, AT(member), 0, 0, NULL }
#define MEMORY(i) \
	FLAG(hello.mem[i].possible), ANY(hello.mem[i].addr), \
	ANY(hello.mem[i].rkey), N(hello.mem[i].way, 0, PLN_MR_STAGED, \
		"has an unknown way of registering memory"), \
	T(hello.mem[i].reason)

#define FORM	"has a wrong length or form"
#define NO_SUCH	"has an unknown operation or memory"
#define RANGE	"has a size, depth or time out of range"
#define BITS_24	"has a queue pair or packet number beyond 24 bits"
#define NOWHERE	"has a port without an address"

static const struct field hello[] = {
	T(hello.device), T(hello.gpu), B(hello.gid), ANY(hello.lid),
	N(hello.port, 1, UINT8_MAX, NOWHERE),
	N(hello.mtu, IBV_MTU_256, IBV_MTU_4096, "has an unknown MTU"),
	N(hello.reads, 1, UINT8_MAX, "has a device that answers no READ"),
	FLAG(hello.roce), FLAG(hello.software), FLAG(hello.emulated),
	N(hello.buffer, 0, PERF_MAX_BUFFER,
	  "has a buffer that is too large"),
	MEMORY(PERF_DIRECT), MEMORY(PERF_STAGED), MEMORY(PERF_HOST),
};
static const struct field refuse[] = { T(refuse) };
static const struct field run[] = {
	N(run.op, 0, PERF_OPS - 1, NO_SUCH), N(run.mem, 0, PERF_MEMS - 1, NO_SUCH),
	N(run.depth, 1, PERF_MAX_DEPTH, RANGE),
	N(run.seconds, 0, 2 * PERF_MAX_SECONDS + 1, RANGE),
	N(run.size, 1, PERF_MAX_SIZE, RANGE), ANY(run.seed),
	N(run.qpn, 0, 0xffffff, BITS_24), N(run.psn, 0, 0xffffff, BITS_24),
};
static const struct field ready[] = {
	N(ready.qpn, 0, 0xffffff, BITS_24), N(ready.psn, 0, 0xffffff, BITS_24),
};
static const struct field done[] = {
	N(done.messages, 0, 2 * PERF_MAX_COUNT,
	  "counts too many messages"),
};
static const struct field result[] = {
	ANY(result.messages), ANY(result.staged), ANY(result.notices),
	ANY(result.crc), FLAG(result.crc_by_gpu),
};

#define TABLE(fields)	{ fields, sizeof(fields) / sizeof((fields)[0]) }
static const struct {
	const struct field *field;
	size_t n;
} types[PERF_TYPES] = {
	[PERF_HELLO] = TABLE(hello), [PERF_REFUSE] = TABLE(refuse),
	[PERF_RUN] = TABLE(run), [PERF_READY] = TABLE(ready),
	[PERF_DONE] = TABLE(done), [PERF_RESULT] = TABLE(result),
};

/* From the host's order of bytes to the network's, and back */
static void turn(void *to, const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = ((const uint8_t *)from)
			[htons(1) == 1 ? i : n - 1 - i];
}

static uint64_t get(const uint8_t *from, size_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *from++;
	return v;
}

size_t perf_encode(const struct perf_message *m, uint8_t *buf)
{
	uint8_t *to = buf + PERF_HEADER;
	size_t i;

	for (i = 0; i < types[m->type].n; i++) {
		const struct field *f = &types[m->type].field[i];
		const char *from = (const char *)m + f->at;

		memset(to, 0, f->size);
		if (f->is == NUMBER)
			turn(to, from, f->size);
		else
			memcpy(to, from, f->is == TEXT ?
			       strnlen(from, f->size - 1) : f->size);
		to += f->size;
	}
	memcpy(buf, magic, sizeof(magic));
	turn(buf + 4, &(uint16_t){ PERF_VERSION }, 2);
	turn(buf + 6, &(uint16_t){ (uint16_t)m->type }, 2);
	turn(buf + 8, &(uint32_t){ (uint32_t)(to - buf) - PERF_HEADER }, 4);
	return (size_t)(to - buf);
}

int perf_decode_header(const uint8_t *buf, enum perf_type *type, char *why,
		       size_t size)
{
	unsigned int version = (unsigned int)get(buf + 4, 2);
	unsigned int t = (unsigned int)get(buf + 6, 2);
	unsigned int n = (unsigned int)get(buf + 8, 4);

	if (memcmp(buf, magic, sizeof(magic))) {
		snprintf(why, size, "it is not peerlane perf: another program "
			 "listens on that port, or calls this one");
		return -1;
	}
	if (version != PERF_VERSION) {
		snprintf(why, size, "it speaks version %u of the protocol, and "
			 "this program version %d: install the same Peerlane on "
			 "both hosts", version, PERF_VERSION);
		return -1;
	}
	if (!t || t >= PERF_TYPES || n > PERF_MAX_BODY) {
		snprintf(why, size, "an unknown message of type %u with %u bytes", t, n);
		return -1;
	}
	*type = (enum perf_type)t;
	return (int)n;
}

/* One field; NULL, or what is wrong with it. */
static const char *decode(const struct field *f, const uint8_t *from, char *to)
{
	uint64_t v;
	char *s;

	if (f->is == NUMBER) {
		v = get(from, f->size);
		if (v < f->least || v > f->most)
			return f->fault ? f->fault : FORM;
		turn(to, from, f->size);
		return NULL;
	}
	memcpy(to, from, f->size);
	if (f->is == BYTES)
		return NULL;
	if (to[f->size - 1])
		return FORM;
	/* it goes to a terminal */
	for (s = to; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
	return NULL;
}

/* What no field alone can tell */
static const char *whole(const struct perf_message *m)
{
	static const uint8_t zero[16];

	if (m->type == PERF_HELLO && (m->hello.roce ?
	    !memcmp(m->hello.gid, zero, sizeof(zero)) : !m->hello.lid))
		return NOWHERE;
	if (m->type == PERF_RUN && m->run.depth * m->run.size > PERF_MAX_BUFFER)
		return RANGE;
	return NULL;
}

bool perf_decode(enum perf_type type, const uint8_t *buf, size_t n,
		 struct perf_message *m, char *why, size_t size)
{
	const char *what = NULL;
	size_t i, at = 0;

	memset(m, 0, sizeof(*m));
	m->type = type;
	for (i = 0; i < types[type].n; i++)
		at += types[type].field[i].size;
	if (at != n)
		what = FORM;
	for (i = at = 0; i < types[type].n && !what; i++) {
		const struct field *f = &types[type].field[i];

		what = decode(f, buf + at, (char *)m + f->at);
		at += f->size;
	}
	if (!what)
		what = whole(m);
	if (what)
		snprintf(why, size, "its message of type %d %s", type, what);
	return !what;
}
