// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Frames that are nearly right, for a ConnectX on the other end of a cable.
 *
 *	cx-frames OWN-SOCKET PEER-SOCKET SEED COUNT QPN KEY SERVICE [trains]
 *	cx-frames OWN-SOCKET PEER-SOCKET write|marked|cnp FROM QPN KEY LENGTH
 *
 * From 10.0.0.2 to 10.0.0.1.  With "write" there is one that is right: number 0, from 10.0.0.FROM, so
 * many bytes of 0x5a for address 0x200000; with "marked" the same, with a mark of congestion; with
 * "cnp" a notification of such a mark.  Else most have a right checksum, so that they get to the
 * transport: any opcode of the service (0x00 RC, 0x20 UC, 0x60 UD), sequence numbers near 0, any length.
 * With "trains" half of them are in datagrams of up to four, of which some are cut off.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>
#include "cx-frame.h"

#define MAX 4400
#define LIMIT_MS 60000

static uint32_t x;

static uint32_t rnd(uint32_t n)
{
	x = x * 1664525 + 1013904223;
	return (x >> 8) % n;
}

static uint32_t make_right(uint8_t *f, const char *what, uint32_t from, uint32_t qpn, uint32_t key,
			   uint32_t bytes)
{
	bool cnp = !strcmp(what, "cnp");
	uint32_t body = 28 + (cnp ? 0 : bytes);
	uint8_t *bth = f + 14 + HEADS;

	memset(f, 0, MAX);
	head(f, from, body);
	f[15] = strcmp(what, "marked") ? 0 : 3;
	sum_up(f + 14);
	bth[0] = cnp ? 0x81 : 0x0a;
	put16(bth + 2, 0xffff);
	put32(bth + 4, qpn);
	if (cnp) {
		bth[4] = 0x40;
		return end_frame(f, HEADS + body, icrc(f + 14, HEADS + body));
	}
	put32(bth + 8, 0x80000000);
	put32(bth + 16, 0x200000);
	put32(bth + 20, key);
	put32(bth + 24, bytes);
	memset(bth + 28, 0x5a, bytes);
	return end_frame(f, HEADS + body, icrc(f + 14, HEADS + body));
}

static uint32_t make(uint8_t *f, uint32_t qpn, uint32_t key, uint32_t service)
{
	uint8_t *ip = f + 14, *bth = f + 42;
	uint32_t body = 12 + 4 * rnd(rnd(4) ? 12 : 1050), len = HEADS + body;

	for (uint32_t i = 0; i < MAX; i++)
		f[i] = rnd(3) ? 0 : rnd(256);
	if (!rnd(30)) {
		/* of addresses */
		memcpy(f, macs, sizeof(macs));
		put16(f + 12, 0x0806);
		put32(ip, 0x00010800);
		put32(ip + 4, 0x06040000 | rnd(4));
		put32(ip + 14, 0x0a000000 | rnd(4));
		put32(ip + 24, 0x0a000000 | rnd(4));
		return 14 + rnd(60);
	}
	head(f, 2, body);
	bth[0] = rnd(20) ? service | rnd(0x15) : rnd(256);
	bth[1] = rnd(20) ? rnd(4) << 4 | rnd(2) << 7 : rnd(256);
	put16(bth + 2, rnd(30) ? 0xffff : rnd(65536));
	put32(bth + 4, rnd(20) ? qpn : rnd(80));
	put32(bth + 8, (rnd(2) ? 0x80000000 : 0) | ((rnd(4) ? rnd(6) : rnd(1 << 24)) & 0xffffff));
	if (rnd(4)) {
		/* where in memory: an address, a key, a length */
		put32(bth + 12, 0);
		put32(bth + 16, rnd(10) ? 0x200000 + rnd(0x100000) : rnd(1 << 24) << 8);
		put32(bth + 20, rnd(12) ? key : rnd(1 << 24));
		put32(bth + 24, rnd(4) ? body - 28 : rnd(4) ? rnd(9000) : rnd(1 << 24) << 8);
	}
	/* Now and then, anything in the headers, with checksums that fit or not */
	for (int i = rnd(12) ? 0 : 3; i; i--)
		f[rnd(14 + 28 + 28)] = rnd(256);
	if (rnd(10))
		sum_up(ip);
	return end_frame(f, len, rnd(20) ? icrc(ip, len) : rnd(256)) - (rnd(30) ? 0 : rnd(14 + len));
}

/* Frames behind each other, with their lengths; *n of them at most. What is cut off is one, too. */
static uint32_t make_train(uint8_t *t, uint32_t *n, uint32_t qpn, uint32_t key, uint32_t service)
{
	uint32_t len = 14, more = 1 + rnd(4), cut = 1;

	memcpy(t, "\x03\0\0\0\0\x01\0\0\0\0\0\0\x88\xb6", 14);
	for (*n = more < *n ? more : *n, more = *n; more; more--) {
		uint32_t size = make(t + len + 2, qpn, key, service);

		put16(t + len, size);
		cut = size + 1;
		len += 2 + size;
	}
	return len - (rnd(4) ? 0 : 1 + rnd(cut));
}

int main(int argc, char **argv)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX }, peer = own;
	static uint8_t frame[4 * (MAX + 64)];
	uint32_t qpn, key, n;
	bool right;
	int fd;

	if (argc != 8 && (argc != 9 || strcmp(argv[8], "trains")))
		return 2;
	right = !strcmp(argv[3], "write") || !strcmp(argv[3], "marked") || !strcmp(argv[3], "cnp");
	snprintf(own.sun_path, sizeof(own.sun_path), "%s", argv[1]);
	snprintf(peer.sun_path, sizeof(peer.sun_path), "%s", argv[2]);
	x = strtoul(argv[3], NULL, 0) * 2654435761u;
	n = right ? 1 : strtoul(argv[4], NULL, 0);
	qpn = strtoul(argv[5], NULL, 0);
	key = strtoul(argv[6], NULL, 0);
	unlink(argv[1]);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
	    connect(fd, (struct sockaddr *)&peer, sizeof(peer))) {
		perror(argv[1]);
		return 1;
	}
	while (n) {
		uint32_t frames = argc > 8 && rnd(2) ? n : 0;
		uint32_t last = strtoul(argv[7], NULL, 0);
		uint32_t len = frames ? make_train(frame, &frames, qpn, key, last) :
			!right ? make(frame, qpn, key, last) :
			make_right(frame, argv[3], strtoul(argv[4], NULL, 0), qpn, key, last);

		n -= frames ? frames : 1;
		while (send(fd, frame, len, 0) < 0) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			if (errno != EAGAIN || poll(&p, 1, LIMIT_MS) != 1) {
				perror("send");
				return 1;
			}
		}
		/* What is answered is of no interest, but must not fill up */
		while (recv(fd, frame, sizeof(frame), 0) > 0)
			;
	}
	return 0;
}
