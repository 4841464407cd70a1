// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The other end of a ConnectX's cable, that says and hears packets as it is told to.
 *
 *	cx-peer OWN-SOCKET PEER-SOCKET
 *
 * Lines of standard input, all numbers in hexadecimal:
 *
 *	say OPCODE QPN PSN [BODY]
 *		sends a packet: what is behind the base transport header is BODY, a multiple of 4 bytes. With the highest
 *		bit of PSN it asks for an acknowledge
 *	hear
 *		waits for a packet, and prints its opcode, its PSN, "ask" if it asks for an acknowledge, else "-", and its
 *		body; or "nothing"
 */
#include <poll.h>
#include "cx-frame.h"

#define MAX 4400
#define LIMIT_MS 60000
#define BTH_AT (14 + HEADS)
#define BODY_AT (BTH_AT + 12)
#define ICRC 4

static int say(int fd, const struct sockaddr_un *peer, char *words)
{
	static uint8_t f[MAX];
	unsigned int opcode, qpn, psn, len = 0;
	int n = 0;
	char *hex;

	if (sscanf(words, "%x %x %x %n", &opcode, &qpn, &psn, &n) != 3)
		return -1;
	for (hex = words + n; sscanf(hex, "%2hhx", f + BODY_AT + len) == 1; hex += 2) {
		if (++len == MAX - BODY_AT - ICRC)
			return -1;
	}
	head(f, 2, 12 + len);
	sum_up(f + 14);
	f[BTH_AT] = opcode;
	f[BTH_AT + 1] = 0;
	put16(f + BTH_AT + 2, 0xffff);
	put32(f + BTH_AT + 4, qpn);
	put32(f + BTH_AT + 8, psn);
	len = end_frame(f, HEADS + 12 + len, icrc(f + 14, HEADS + 12 + len));
	return sendto(fd, f, len, 0, (const struct sockaddr *)peer, sizeof(*peer));
}

static int hear(int fd, const struct sockaddr_un *peer)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	static uint8_t f[MAX];
	ssize_t len;

	do {
		if (poll(&p, 1, LIMIT_MS) != 1) {
			puts("nothing");
			return 0;
		}
		len = recv(fd, f, sizeof(f), 0);
		if (len < 0)
			return -1;
	} while (is_arp(fd, peer, f, len));
	printf("%02x %02x%02x%02x %s ", f[BTH_AT], f[BTH_AT + 9], f[BTH_AT + 10], f[BTH_AT + 11],
	       f[BTH_AT + 8] & 0x80 ? "ask" : "-");
	for (ssize_t i = BODY_AT; i < len - ICRC; i++)
		printf("%02x", f[i]);
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	static char line[2 * MAX];
	struct sockaddr_un peer;
	int fd;

	if (argc != 3)
		return 2;
	fd = plug_in(argv[1], argv[2], &peer);
	if (fd < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if ((strncmp(line, "say ", 4) ? hear(fd, &peer) : say(fd, &peer, line + 4)) < 0) {
			perror(line);
			return 1;
		}
	}
	return 0;
}
