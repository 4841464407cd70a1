// SPDX-License-Identifier: MIT
/*
 * What two ends of a link tell each other, as bytes, and the meeting itself.
 * Nothing that the other end says is believed before it was looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link_internal.h"
#include "peerlane/peerlane.h"

static const uint8_t magic[4] = { 'P', 'L', 'N', 'K' };

/* Behind the hello: magic, and 0 or the errno for which an end gave up */
#define READY_SIZE	8

/* Above are the addresses of groups */
#define LID_LAST	0xbfffu

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, (uint16_t)(v >> 16)), (uint16_t)v);
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint16_t get16(const uint8_t **p)
{
	const uint8_t *b = *p;

	*p += 2;
	return (uint16_t)(b[0] << 8 | b[1]);
}

static uint32_t get32(const uint8_t **p)
{
	uint32_t high = get16(p);

	return high << 16 | get16(p);
}

static uint64_t get64(const uint8_t **p)
{
	uint64_t high = get32(p);

	return high << 32 | get32(p);
}

void message_encode(const struct message *m, uint8_t wire[MESSAGE_SIZE])
{
	uint8_t *p = wire;

	*p++ = m->type;
	*p++ = m->flags;
	p = put16(p, m->buffer);
	p = put32(p, m->chunk);
	p = put64(p, m->at);
	p = put64(p, m->start);
	p = put64(p, m->length);
	p = put64(p, m->tag);
	p = put64(p, m->landed);
	p = put64(p, m->taken);
	put64(p, m->seq);
}

void message_decode(const uint8_t wire[MESSAGE_SIZE], struct message *m)
{
	const uint8_t *p = wire + 2;

	m->type = wire[0];
	m->flags = wire[1];
	m->buffer = get16(&p);
	m->chunk = get32(&p);
	m->at = get64(&p);
	m->start = get64(&p);
	m->length = get64(&p);
	m->tag = get64(&p);
	m->landed = get64(&p);
	m->taken = get64(&p);
	m->seq = get64(&p);
}

void hello_encode(const struct hello *hello, uint8_t wire[HELLO_SIZE])
{
	uint8_t *p = wire;

	memset(wire, 0, HELLO_SIZE);
	memcpy(p, magic, sizeof(magic));
	p = put16(p + 4, HELLO_VERSION);
	p = put16(p, HELLO_SIZE);
	p = put32(p, hello->qpn);
	p = put32(p, hello->psn);
	p = put32(p, hello->mtu);
	p = put32(p, hello->ethernet);
	p = put32(p, hello->lid);
	p = put32(p, CREDITS);
	p = put32(p, hello->buffers);
	memcpy(p, hello->gid, sizeof(hello->gid));
	p += sizeof(hello->gid);
	for (unsigned int i = 0; i < hello->buffers; i++) {
		p = put64(p, hello->buffer[i].iova);
		p = put64(p, hello->buffer[i].length);
		p = put32(p, hello->buffer[i].rkey);
		p = put32(p, hello->buffer[i].way);
	}
}

static int head_decode(const uint8_t wire[HELLO_HEAD], char *why, size_t size)
{
	const uint8_t *p = wire + 4;
	unsigned int version, length;

	if (memcmp(wire, magic, sizeof(magic))) {
		snprintf(why, size, "the other end of the socket does not "
			 "speak the protocol of pln_link_connect()");
		return -EPROTO;
	}
	version = get16(&p);
	length = get16(&p);
	if (version != HELLO_VERSION) {
		snprintf(why, size, "the peer speaks version %u of the link "
			 "protocol, this library version %u: use the same "
			 "Peerlane on both", version, HELLO_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (length != HELLO_SIZE) {
		snprintf(why, size, "the peer's hello is %u bytes long, not "
			 "%u", length, HELLO_SIZE);
		return -EPROTO;
	}
	return 0;
}

static const char *buffer_fault(const struct hello_buffer *b)
{
	if (!b->length)
		return "it has no bytes";
	if (b->iova + b->length < b->iova)
		return "it wraps around the end of addresses";
	if (b->way < PLN_MR_DMABUF || b->way > PLN_MR_STAGED)
		return "it is registered in no known way";
	return NULL;
}

int hello_decode(const uint8_t wire[HELLO_SIZE], struct hello *hello,
		 char *why, size_t size)
{
	static const uint8_t zero[HELLO_SIZE];
	const uint8_t *p = wire + HELLO_HEAD;
	uint32_t credits;
	const char *fault = NULL;
	int err = head_decode(wire, why, size);

	if (err)
		return err;
	memset(hello, 0, sizeof(*hello));
	hello->qpn = get32(&p);
	hello->psn = get32(&p);
	hello->mtu = get32(&p);
	hello->ethernet = get32(&p);
	hello->lid = get32(&p);
	credits = get32(&p);
	hello->buffers = get32(&p);
	memcpy(hello->gid, p, sizeof(hello->gid));
	p += sizeof(hello->gid);

	/* 0 and 1 are the management queue pairs */
	if (hello->qpn < 2 || hello->qpn > 0xffffff)
		fault = "a queue pair number";
	else if (hello->psn > 0xffffff)
		fault = "a packet sequence number";
	else if (hello->mtu < IBV_MTU_256 || hello->mtu > IBV_MTU_4096)
		fault = "an MTU";
	else if (hello->ethernet > 1)
		fault = "a link layer";
	else if (!memcmp(hello->gid, zero, 16))
		fault = "a GID";
	else if (hello->lid > (hello->ethernet ? 0xffffu : LID_LAST) ||
		 (!hello->ethernet && !hello->lid))
		fault = "a LID";
	else if (credits != CREDITS)
		fault = "a number of credits";
	else if (hello->buffers > PLN_LINK_BUFFERS)
		fault = "a number of buffers";
	if (fault) {
		snprintf(why, size, "the peer gives %s that cannot be", fault);
		return -EPROTO;
	}
	for (unsigned int i = 0; i < hello->buffers; i++) {
		struct hello_buffer *b = &hello->buffer[i];

		b->iova = get64(&p);
		b->length = get64(&p);
		b->rkey = get32(&p);
		b->way = get32(&p);
		fault = buffer_fault(b);
		if (fault) {
			snprintf(why, size, "the peer's buffer %u cannot be: "
				 "%s", i, fault);
			return -EPROTO;
		}
	}
	if (memcmp(p, zero, (size_t)(wire + HELLO_SIZE - p))) {
		snprintf(why, size, "the peer's hello has something where "
			 "zeros belong");
		return -EPROTO;
	}
	return 0;
}

/* Exactly @size bytes, one way or the other, before @deadline */
static int transfer(struct pln_link *link, uint8_t *buf, size_t size, bool out,
		    int64_t deadline, const char *what)
{
	int err = socket_move(link->fd, buf, size, out, deadline);

	if (!err)
		return 0;
	if (err == -ECONNRESET)
		return link_fail(link, err, "the peer closed the socket instead "
			"of %s", out ? "listening" : what);
	if (err == -ETIMEDOUT)
		return link_fail(link, err, "the peer did not send %s in time",
			out ? "anything" : what);
	return link_fail(link, err, "the socket to the peer: %s",
		pln_strerror(err));
}

static int exchange_hello(struct pln_link *link, int64_t deadline)
{
	char why[PLN_LINK_REASON_MAX];
	uint8_t wire[HELLO_SIZE];
	struct hello me = {
		.qpn = link->qp->qp_num,
		.psn = link->psn,
		.mtu = link->at.attr.active_mtu,
		.ethernet = link->at.attr.link_layer ==
			    IBV_LINK_LAYER_ETHERNET,
		.lid = link->at.attr.lid,
		.buffers = link->shares,
	};
	const char *apart;
	int err;

	memcpy(me.gid, link->at.gid.raw, sizeof(me.gid));
	memcpy(me.buffer, link->mine, sizeof(me.buffer));
	hello_encode(&me, wire);
	err = transfer(link, wire, sizeof(wire), true, deadline, NULL);
	if (!err)
		err = transfer(link, wire, HELLO_HEAD, false, deadline,
			       "its hello");
	if (err)
		return err;
	/* before more is waited for, which another version may never send */
	err = head_decode(wire, why, sizeof(why));
	if (!err)
		err = transfer(link, wire + HELLO_HEAD,
			       HELLO_SIZE - HELLO_HEAD, false, deadline,
			       "all of its hello");
	if (link->error)
		return link->error;
	if (!err)
		err = hello_decode(wire, &link->peer, why, sizeof(why));
	if (err)
		return link_fail(link, err, "%s", why);
	/* or the device would write to itself, with keys of the peer's choice */
	if (link->peer.qpn == me.qpn && (me.ethernet ?
	    !memcmp(link->peer.gid, me.gid, 16) : link->peer.lid == me.lid))
		return link_fail(link, -EPROTO, "the peer names this end's "
			"own queue pair: is the socket connected to itself?");
	apart = verbs_apart(&link->at.attr, &link->at.gid,
			    link->peer.ethernet, link->peer.gid);
	return apart ? link_fail(link, -EPROTO, "%s", apart) : 0;
}

/* Nobody sends before both can receive, and each learns if the other cannot */
static int exchange_ready(struct pln_link *link, int64_t deadline)
{
	uint8_t wire[READY_SIZE];
	const uint8_t *p = wire + 4;
	int mine = link->error;
	uint32_t theirs;
	int err;

	memcpy(wire, magic, sizeof(magic));
	put32(wire + 4, (uint32_t)-mine);
	err = transfer(link, wire, sizeof(wire), true, deadline, NULL);
	if (mine)
		return mine;
	if (!err)
		err = transfer(link, wire, sizeof(wire), false, deadline,
			       "that it is ready");
	if (err)
		return err;
	theirs = get32(&p);
	if (memcmp(wire, magic, sizeof(magic)) || theirs > 4095)
		return link_fail(link, -EPROTO, "the peer did not send that it "
			"is ready");
	if (theirs)
		return link_fail(link, -EREMOTEIO, "the peer could not "
			"connect: %s", pln_strerror(-(int)theirs));
	return 0;
}

int link_meet(struct pln_link *link, int64_t deadline)
{
	int err = exchange_hello(link, deadline);

	if (err == -ECONNRESET || err == -ETIMEDOUT)
		return err;
	if (!err)
		err = link_to_rts(link);
	return exchange_ready(link, deadline) ?: err;
}
