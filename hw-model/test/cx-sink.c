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
#include "cx-frame.h"

#define MAX 70000
#define LIMIT_MS 60000

int main(int argc, char **argv)
{
	static uint8_t frame[MAX];
	struct pollfd p = { .events = POLLIN };
	struct sockaddr_un peer;
	char line[32];

	if (argc != 3)
		return 2;
	p.fd = plug_in(argv[1], argv[2], &peer);
	if (p.fd < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
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
