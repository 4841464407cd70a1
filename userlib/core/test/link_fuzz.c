// SPDX-License-Identifier: MIT
/*
 * A hostile peer, by chance: what it says over the socket and by RDMA is made of
 * right messages that were changed a little.  Whatever it is, the call comes back
 * in time, nothing is written but what was shared, the link either goes on or has
 * an error in words, and nothing is left behind.
 *
 *	link_fuzz [SEED]	the seed of a failure is told, and repeats it
 */
#include <limits.h>

#include "link_pair.h"

#define HELLOS		40000u
#define MEETINGS	400u
#define MESSAGES	4000u
#define GUARD		64u	/* bytes around what is shared */
#define LATE_MS		3000

static uint64_t state;

/* splitmix64 */
static uint32_t chance(uint32_t n)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ z >> 31) % n);
}

/* One change of the kinds that find faults in readers of messages */
static void mutate(uint8_t *p, size_t n)
{
	static const uint8_t edge[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t at = chance((uint32_t)n), len = 1u << chance(4), other;

	if (len > n - at)
		len = n - at;
	switch (chance(6)) {
	case 0:			/* a bit */
		p[at] ^= (uint8_t)(1u << chance(8));
		break;
	case 1:			/* a byte */
		p[at] = (uint8_t)chance(256);
		break;
	case 2:			/* a number, the least or the greatest */
		memset(p + at, edge[chance(sizeof(edge))], len);
		break;
	case 3:			/* one more, one less */
		p[at + len - 1] += chance(2) ? 1 : 0xff;
		break;
	case 4:			/* what stands elsewhere */
		other = chance((uint32_t)(n - len + 1));
		memmove(p + at, p + other, len);
		break;
	default:		/* any number */
		for (size_t i = 0; i < len; i++)
			p[at + i] = (uint8_t)chance(256);
	}
}

static void hello_of_chance(uint8_t wire[HELLO_SIZE])
{
	struct hello h = {
		.qpn = 2 + chance(0xfffffe), .psn = chance(1u << 24),
		.mtu = 1 + chance(5), .ethernet = 1,
		.buffers = chance(PLN_LINK_BUFFERS + 1),
		.gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 },
	};

	for (unsigned int i = 0; i < h.buffers; i++)
		h.buffer[i] = (struct hello_buffer){
			.iova = chance(UINT_MAX), .length = 1 + chance(SIZE),
			.rkey = chance(UINT_MAX), .way = 1 + chance(3),
		};
	hello_encode(&h, wire);
	for (uint32_t n = chance(4); n; n--)
		mutate(wire, HELLO_SIZE);
}

/* All that docs/reference/link-protocol.md says of a hello */
static bool can_be(const struct hello *h)
{
	static const uint8_t none[16];
	bool good = h->qpn >= 2 && h->qpn < 1u << 24 && h->psn < 1u << 24 &&
		    h->mtu >= 1 && h->mtu <= 5 && h->ethernet <= 1 &&
		    h->buffers <= PLN_LINK_BUFFERS &&
		    memcmp(h->gid, none, 16) && h->lid < 1u << 16 &&
		    (h->ethernet || (h->lid && h->lid < 0xc000));

	for (unsigned int i = 0; i < PLN_LINK_BUFFERS; i++) {
		const struct hello_buffer *s = &h->buffer[i];

		if (i < h->buffers)
			good &= s->length && s->way >= 1 && s->way <= 3 &&
				s->iova + s->length >= s->iova;
		else
			good &= !s->iova && !s->length && !s->rkey && !s->way;
	}
	return good;
}

/* What is taken is what can be, and the same bytes again */
static void t_hellos(void)
{
	uint8_t wire[HELLO_SIZE], again[HELLO_SIZE];
	unsigned int taken = 0, bad = 0;
	char why[PLN_LINK_REASON_MAX];
	struct hello h;

	for (unsigned int i = 0; i < HELLOS; i++) {
		why[0] = '\0';
		memset(&h, 0, sizeof(h));
		hello_of_chance(wire);
		if (hello_decode(wire, &h, why, sizeof(why))) {
			bad += !why[0];
			continue;
		}
		hello_encode(&h, again);
		taken++;
		bad += !can_be(&h) || memcmp(wire, again, sizeof(wire));
	}
	ktap(!bad && taken > HELLOS / 10 && taken < HELLOS * 9 / 10,
	     "%u hellos, %u of them taken", HELLOS, taken);
}

/* Over a socket: changed, cut off, in pieces, with more behind */
static void t_meetings(void)
{
	uint8_t wire[HELLO_SIZE + 8 + 32];
	unsigned int met = 0, bad = 0;
	int64_t longest = 0;

	for (unsigned int i = 0; i < MEETINGS; i++) {
		int64_t before = now_ms();
		size_t n = sizeof(wire);
		int err;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
		    pln_link_open(&a, NULL))
			break;
		memset(wire, 0, sizeof(wire));
		hello_of_chance(wire);
		memcpy(wire + HELLO_SIZE, "PLNK", 4);
		if (chance(2))
			mutate(wire + HELLO_SIZE, 8);
		if (chance(3) == 0)
			n = chance((uint32_t)n);
		bad += write(ends[1], wire, n) != (ssize_t)n;
		if (chance(2))
			shutdown(ends[1], SHUT_WR);
		err = pln_link_connect(a, ends[0], 5);
		met += !err;
		bad += err > 0 || !err != !pln_link_reason(a)[0] ||
		       err != a->error || (!err && !can_be(&a->peer));
		pln_link_close(a);
		close(ends[0]);
		close(ends[1]);
		bad += fake_objects != 0;
		before = now_ms() - before;
		longest = before > longest ? before : longest;
	}
	ktap(!bad && met > MEETINGS / 50 && met < MEETINGS,
	     "%u meetings, %u of them good", MEETINGS, met);
	ktap(longest < LATE_MS, "the longest took %lld ms",
	     (long long)longest);
}

/* --- by RDMA --- */

static uint8_t *around;		/* what the peer may write, and its guards */

/* As pair_up(), with guards around the memory of the GPU */
static bool guarded_up(void)
{
	int other;

	if (pair_open(PLN_MR_PLAIN, PLN_MR_STAGED) ||
	    pln_link_share(a, &from) || meet_both(&other) || other)
		return false;
	around = malloc(SIZE + 2 * GUARD);
	memset(around, 0x5a, SIZE + 2 * GUARD);
	free(to.gpu);
	to.gpu = around + GUARD;
	return true;
}

static bool guarded_down(void)
{
	bool whole = true;

	for (unsigned int i = 0; i < GUARD; i++)
		whole &= around[i] == 0x5a &&
			 around[GUARD + SIZE + i] == 0x5a;
	to.gpu = around;	/* mr_drop() frees it */
	pair_down();
	return whole && fake_objects == 0;
}

/* A message that could be the next one, and then is changed, or not */
static void message_of_chance(uint8_t wire[MESSAGE_SIZE])
{
	uint64_t start = chance(SIZE), length = chance(SIZE - (uint32_t)start);
	/* right in itself, but longer than what is shared */
	uint64_t more = chance(16) ? 0 : chance(2 * SIZE);
	uint64_t chunk = chance((uint32_t)(length += more) + 1);
	struct message m = {
		.type = MESSAGE_NOTICE, .flags = chance(2), .start = start,
		.length = length, .at = start + length - chunk,
		.chunk = (uint32_t)chunk, .tag = chance(99),
		.landed = b->peer_landed, .taken = b->peer_taken,
		.seq = b->received + 1,
	};

	if (!m.flags && chunk)
		m.at = start, m.chunk = (uint32_t)chunk - 1;
	if (chance(24) == 0)
		m = (struct message){
			.type = MESSAGE_ACK,
			.landed = b->peer_landed + chance(2),
			.taken = b->peer_taken + chance(2),
		};
	if (chance(200) == 0)
		m = (struct message){
			.type = MESSAGE_BYE, .chunk = chance(200),
			.landed = b->peer_landed, .taken = b->peer_taken,
		};
	message_encode(&m, wire);
	for (uint32_t n = chance(12) ? 0 : 1 + chance(3); n; n--)
		mutate(wire, MESSAGE_SIZE);
}

static void t_messages(void)
{
	unsigned int links = 1, arrivals = 0, refused = 0, bad = 0;
	struct pln_link_arrival v = { .size = sizeof(v) };
	uint8_t wire[2 * MESSAGE_SIZE] = { 0 };

	bad += !guarded_up();
	for (unsigned int i = 0; i < MESSAGES && !bad; i++) {
		uint32_t size = chance(500) ? MESSAGE_SIZE :
					      chance(2 * MESSAGE_SIZE);

		message_of_chance(wire);
		/* something of its own to be acknowledged */
		if (chance(4) == 0)
			put_bytes(b, NULL, 0, 0, 0, 0, 0);
		if (pln_link_poll(&a, 1, 0) > 0)
			pln_link_arrival(a, &v);
		fake_send_raw(b->qp->qp_num, wire, size);
		if (pln_link_poll(&b, 1, 0) > 0 && chance(8))
			while (!pln_link_arrival(b, &v)) {
				bad += v.buffer || v.offset > SIZE ||
				       v.length > SIZE - v.offset;
				arrivals++;
			}
		bad += b->error > 0 || !b->error != !pln_link_reason(b)[0];
		if (!b->error)
			continue;
		refused += b->error == -EPROTO;
		bad += b->error != -EPROTO && b->error != -EPIPE;
		bad += !guarded_down() || !guarded_up();
		links++;
	}
	bad += !guarded_down();
	ktap(!bad && arrivals > MESSAGES / 10 && refused > MESSAGES / 100,
	     "%u messages: %u arrivals, %u of %u links have ended for one that cannot be",
	     MESSAGES, arrivals, refused, links);
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	printf("# seed %llu\n", (unsigned long long)state);
	fake_install();
	t_hellos();
	t_meetings();
	t_messages();
	return ktap_end();
}
