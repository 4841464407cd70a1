// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The other end of a ConnectX's cable, that takes frames when it is told to.
 *
 *	cx-sink OWN-SOCKET PEER-SOCKET
 *
 * Each line of standard input is a number: it takes so many datagrams, waiting for each, and says how
 * many of them were no ARP; or 0: it takes all that come, until none has come for a second, and says
 * likewise.  10.0.0.2 is its address, and it answers whoever asks for that.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX 70000
#define LIMIT_MS 60000
#define ARP_AT 14
#define ARP_END 42

static const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, 2 };
static const uint8_t address[4] = { 10, 0, 0, 2 };

/* Is it ARP?  Who asks is answered. */
static int is_arp(int fd, const struct sockaddr_un *peer, uint8_t *f, ssize_t len)
{
	uint8_t *arp = f + ARP_AT;

	if (len < ARP_END || f[12] != 0x08 || f[13] != 0x06)
		return 0;
	if (arp[7] == 1 && !memcmp(arp + 24, address, 4)) {
		memcpy(f, f + 6, 6);
		memcpy(f + 6, mac, 6);
		arp[7] = 2;
		memcpy(arp + 18, arp + 8, 10);
		memcpy(arp + 8, mac, 6);
		memcpy(arp + 14, address, 4);
		if (sendto(fd, f, ARP_END, 0, (const struct sockaddr *)peer, sizeof(*peer)) < 0)
			perror("sendto");
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX }, peer = own;
	static uint8_t frame[MAX];
	struct pollfd p = { .events = POLLIN };
	char line[32];

	if (argc != 3)
		return 2;
	snprintf(own.sun_path, sizeof(own.sun_path), "%s", argv[1]);
	snprintf(peer.sun_path, sizeof(peer.sun_path), "%s", argv[2]);
	p.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (p.fd < 0 || bind(p.fd, (struct sockaddr *)&own, sizeof(own))) {
		perror(argv[1]);
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	/* Not connected: a peer would not be kept from sending by a queue that is full */
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long want = strtoul(line, NULL, 0), all = 0, frames = 0;

		while (!want || all < want) {
			ssize_t len;

			if (poll(&p, 1, want ? LIMIT_MS : 1000) != 1)
				break;
			len = recv(p.fd, frame, sizeof(frame), 0);
			if (len < 0) {
				perror("recv");
				return 1;
			}
			all++;
			frames += !is_arp(p.fd, &peer, frame, len);
		}
		printf("%lu\n", all < want ? 0 : frames);
	}
	return 0;
}
