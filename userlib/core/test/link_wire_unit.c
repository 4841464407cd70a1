// SPDX-License-Identifier: MIT
/* What a link believes of what its peer says: nothing that cannot be. */
#include <poll.h>

#include "link_pair.h"

static const struct hello good_hello = {
	.qpn = 77, .psn = 5, .mtu = IBV_MTU_4096, .ethernet = 1, .buffers = 1,
	.gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 },
	.buffer = { { .iova = 0x1000, .length = 4096, .rkey = 3,
		      .way = PLN_MR_PLAIN } },
};

static int hello_with(size_t at, uint32_t value, const char **why)
{
	static char reason[PLN_LINK_REASON_MAX];
	uint8_t wire[HELLO_SIZE];
	struct hello h;

	reason[0] = '\0';
	*why = reason;
	hello_encode(&good_hello, wire);
	if (at < HELLO_SIZE)
		for (int i = 0; i < 4; i++)
			wire[at + i] = (uint8_t)(value >> (24 - 8 * i));
	return hello_decode(wire, &h, reason, sizeof(reason));
}

static void t_hello(void)
{
	static const struct {
		size_t at;
		uint32_t value;
		int err;
		const char *what;
	} bad[] = {
		{ 0, 0x47455420, -EPROTO, "the protocol" },
		{ 4, 2u << 16 | HELLO_SIZE, -EPROTONOSUPPORT, "version 2" },
		{ 4, 1u << 16 | 448, -EPROTO, "448 bytes" },
		{ 8, 1, -EPROTO, "queue pair" },
		{ 8, 0x1000000, -EPROTO, "queue pair" },
		{ 12, 0x1000000, -EPROTO, "packet sequence" },
		{ 16, 0, -EPROTO, "an MTU" },
		{ 16, 6, -EPROTO, "an MTU" },
		{ 20, 2, -EPROTO, "link layer" },
		{ 20, 0, -EPROTO, "a LID" },
		{ 24, 0x10000, -EPROTO, "a LID" },
		{ 28, CREDITS + 1, -EPROTO, "credits" },
		{ 32, PLN_LINK_BUFFERS + 1, -EPROTO, "number of buffers" },
		{ 52, 0xffffffff, 0, NULL },
		{ 60, 0xffffffff, 0, NULL },
		{ 64, 0, -EPROTO, "no bytes" },
		{ 72, 0, -EPROTO, "no known way" },
		{ 72, 4, -EPROTO, "no known way" },
		{ 76, 1, -EPROTO, "zeros" },
		{ HELLO_SIZE - 4, 1, -EPROTO, "zeros" },
	};
	struct hello h, wrapping = good_hello;
	uint8_t wire[HELLO_SIZE];
	const char *why;
	char text[128];

	hello_encode(&good_hello, wire);
	ktap(!hello_decode(wire, &h, text, sizeof(text)) &&
	     !memcmp(&h, &good_hello, sizeof(h)), "a hello comes through");
	ktap(wire[8] == 0 && wire[11] == 77 && wire[63] == 0 && wire[66] == 0x10,
	     "big-endian");
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int err = hello_with(bad[i].at, bad[i].value, &why);

		ktap(err == bad[i].err && (!bad[i].what ||
					   strstr(why, bad[i].what)),
		     "a hello with 0x%x at %zu: %s", bad[i].value, bad[i].at,
		     err ? why : "fine");
	}
	wrapping.buffer[0].iova = UINT64_MAX - 4094;
	hello_encode(&wrapping, wire);
	ktap(hello_decode(wire, &h, text, sizeof(text)) == -EPROTO,
	     "a buffer that wraps around: %s", text);
	hello_encode(&good_hello, wire);
	memset(wire + 36, 0, 16);
	ktap(hello_decode(wire, &h, text, sizeof(text)) == -EPROTO,
	     "a hello without a GID");
}

/* One end is a link, the other is what the test writes */
static int meet_with(const void *data, size_t n, int timeout, bool hang_up)
{
	struct meeting m = { .timeout = timeout };
	pthread_t thread;
	uint8_t drop[1024];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pln_link_open(&a, NULL))
		return 1;
	m.link = a;
	m.fd = ends[0];
	if (n && write(ends[1], data, n) != (ssize_t)n)
		return 1;
	pthread_create(&thread, NULL, meet, &m);
	if (hang_up) {
		/* not before it has said hello, or it fails to */
		if (read(ends[1], drop, HELLO_SIZE) != HELLO_SIZE)
			m.result = 1;
		shutdown(ends[1], SHUT_WR);
	}
	pthread_join(thread, NULL);
	close(ends[0]);
	close(ends[1]);
	return m.result;
}

static void t_meeting(void)
{
	uint8_t wire[HELLO_SIZE + 8] = { 0 };
	int err;

	hello_encode(&good_hello, wire);
	memcpy(wire + HELLO_SIZE, "PLNK\0\0\0\0", 8);
	ktap(meet_with(wire, sizeof(wire), 5000, false) == 0,
	     "a meeting with a good hello");
	pln_link_close(a);
	for (size_t n = 0; n < sizeof(wire); n += 37) {
		err = meet_with(wire, n, 5000, true);
		ktap(err == -ECONNRESET && strstr(pln_link_reason(a), "closed"),
		     "it ends after %zu bytes: %s", n, pln_link_reason(a));
		pln_link_close(a);
	}
	err = meet_with(wire, 100, 30, false);
	ktap(err == -ETIMEDOUT,
	     "it stands still: %s", pln_link_reason(a));
	pln_link_close(a);
	err = meet_with("GET / HTTP/1.1\r\n", 16, 5000, false);
	ktap(err == -EPROTO,
	     "somebody else is there: %s", pln_link_reason(a));
	pln_link_close(a);
	wire[HELLO_SIZE + 7] = ENODEV;
	err = meet_with(wire, sizeof(wire), 5000, false);
	ktap(err == -EREMOTEIO &&
	     strstr(pln_link_reason(a), "No such device"),
	     "the peer fails: %s", pln_link_reason(a));
	pln_link_close(a);
	wire[HELLO_SIZE + 5] = 1;
	ktap(meet_with(wire, sizeof(wire), 5000, false) == -EPROTO,
	     "it says nonsense in the end");
	pln_link_close(a);
	ktap(fake_objects == 0, "nothing is left behind");
}

/* Every byte comes back, as from an echo server: no queue pair meets itself */
static void t_echo(void)
{
	struct meeting m = { .timeout = 5000 };
	uint8_t wire[HELLO_SIZE + 8];
	pthread_t thread;
	bool good;

	good = !socketpair(AF_UNIX, SOCK_STREAM, 0, ends) &&
	       !pln_link_open(&a, NULL);
	m.link = a;
	m.fd = ends[0];
	good &= !pthread_create(&thread, NULL, meet, &m);
	good &= recv(ends[1], wire, HELLO_SIZE, MSG_WAITALL) == HELLO_SIZE;
	good &= send(ends[1], wire, HELLO_SIZE, 0) == HELLO_SIZE;
	good &= recv(ends[1], wire, 8, MSG_WAITALL) == 8;
	good &= send(ends[1], wire, 8, 0) == 8;
	pthread_join(thread, NULL);
	ktap(good && m.result == -EPROTO && wire[7] == EPROTO &&
	     strstr(pln_link_reason(a), "own queue pair"),
	     "an echo is no peer: %s", pln_link_reason(a));
	pln_link_close(a);
	close(ends[0]);
	close(ends[1]);
}

/* Never silent, never done: a byte now and then does not prolong the meeting */
static void t_drip(void)
{
	struct meeting m = { .timeout = 1000 };
	int64_t before = now_ms();
	uint8_t wire[HELLO_SIZE];
	unsigned int sent = 0;
	struct pollfd p;
	pthread_t thread;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pln_link_open(&a, NULL))
		return;
	hello_encode(&good_hello, wire);
	m.link = a;
	m.fd = ends[0];
	pthread_create(&thread, NULL, meet, &m);
	p.fd = ends[1];
	p.events = POLLRDHUP;
	while (pthread_tryjoin_np(thread, NULL)) {
		poll(&p, 1, 50);
		sent += sent < 100 && send(ends[1], wire + sent, 1, 0) == 1;
	}
	ktap(m.result == -ETIMEDOUT && sent > 2 && sent < 100 &&
	     now_ms() - before < 10000,
	     "a hello in %u drops is late: %s", sent, pln_link_reason(a));
	pln_link_close(a);
	close(ends[0]);
	close(ends[1]);
}

static const struct message good_notice = {
	.type = MESSAGE_NOTICE, .flags = MESSAGE_LAST, .chunk = 9, .at = 4,
	.start = 4, .length = 9, .tag = 1, .seq = 1,
};

static int message_error(struct message m, uint32_t length, const char **why)
{
	static char reason[PLN_LINK_REASON_MAX];
	uint8_t wire[2 * MESSAGE_SIZE] = { 0 };
	int err;

	if (!pair_up(PLN_MR_PLAIN, PLN_MR_STAGED))
		return 1;
	message_encode(&m, wire);
	fake_send_raw(b->qp->qp_num, wire, length);
	while (pln_link_poll(&b, 1, 0) > 0 && b->arrived == 0)
		;
	err = b->error;
	snprintf(reason, sizeof(reason), "%s", pln_link_reason(b));
	*why = reason;
	pair_down();
	return err;
}

#define BAD(name, word, ...) do {					\
	struct message m = good_notice;					\
	__VA_ARGS__;							\
	int err = message_error(m, MESSAGE_SIZE, &why);			\
	ktap(err == -EPROTO && strstr(why, word), "%s: %s", name, why);	\
} while (0)

static void t_messages(void)
{
	const char *why;

	ktap(message_error(good_notice, MESSAGE_SIZE, &why) == 0,
	     "a good notice");
	ktap(message_error(good_notice, MESSAGE_SIZE - 1, &why) == -EPROTO,
	     "a short message: %s", why);
	BAD("a type", "unknown message", m.type = 9);
	BAD("flags", "unknown flags", m.flags = 3);
	BAD("a buffer", "not shared", m.buffer = 1);
	BAD("a sequence", "missing or repeated", m.seq = 2);
	BAD("a put too far", "beyond the end", m.start = SIZE, m.at = SIZE);
	BAD("a put too long", "beyond the end", m.length = SIZE);
	BAD("a put that wraps", "beyond the end", m.length = UINT64_MAX);
	BAD("a chunk before", "outside of its put", m.at = 3);
	BAD("a chunk behind", "outside of its put", m.at = 14);
	BAD("a chunk too long", "outside of its put", m.chunk = 10);
	BAD("an end too early", "ends before", m.chunk = 8);
	BAD("no end", "ends before", m.flags = 0);
	BAD("more landed than sent", "acknowledges", m.landed = 1);
	BAD("more taken than landed", "acknowledges", m.taken = 1);
	BAD("an acknowledgement that says nothing", "an acknowledgement without a change",
	    m = (struct message){ .type = MESSAGE_ACK });
	BAD("an acknowledgement with a chunk", "zeros",
	    m = (struct message){ .type = MESSAGE_ACK, .chunk = 1 });
	BAD("an acknowledgement with a tag", "zeros",
	    m = (struct message){ .type = MESSAGE_ACK, .tag = 1 });
	BAD("a goodbye with a flag", "zeros",
	    m = (struct message){ .type = MESSAGE_BYE, .flags = 1 });
	BAD("a strange goodbye", "goodbye",
	    m = (struct message){ .type = MESSAGE_BYE, .chunk = 4096 });
}

/* More notices than the receiver has promised to hold */
static void t_flood(void)
{
	uint8_t wire[MESSAGE_SIZE];
	struct message m = good_notice;
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	for (unsigned int i = 0; i < CREDITS + 1; i++) {
		m.seq = i + 1;
		message_encode(&m, wire);
		fake_send_raw(b->qp->qp_num, wire, MESSAGE_SIZE);
	}
	for (unsigned int i = 0; i < 200; i++)
		pln_link_poll(&b, 1, 0);
	ktap(good && b->error == -EPROTO && strstr(pln_link_reason(b),
	     "more notices than"), "too many notices: %s", pln_link_reason(b));
	pair_down();
}

/* Nothing comes after a goodbye: two at once are one too many */
static void t_two_goodbyes(void)
{
	const struct message bye = { .type = MESSAGE_BYE };
	uint8_t wire[MESSAGE_SIZE];
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	message_encode(&bye, wire);
	fake_send_raw(b->qp->qp_num, wire, MESSAGE_SIZE);
	fake_send_raw(b->qp->qp_num, wire, MESSAGE_SIZE);
	pln_link_poll(&b, 1, 0);
	ktap(good && b->error == -EPROTO && strstr(pln_link_reason(b),
	     "after its goodbye"), "two goodbyes: %s", pln_link_reason(b));
	pair_down();
}

int main(void)
{
	fake_install();
	t_hello();
	t_meeting();
	t_echo();
	t_drip();
	t_messages();
	t_flood();
	t_two_goodbyes();
	return ktap_end();
}
