/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of the other end of a ConnectX's cable, which is 10.0.0.2.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/*
 * The socket of this end, and the address of the other.  It is not connected: the other end would not
 * be kept from sending by a queue that is full.
 */
static inline int plug_in(const char *own_path, const char *peer_path, struct sockaddr_un *peer)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	*peer = own;
	snprintf(own.sun_path, sizeof(own.sun_path), "%s", own_path);
	snprintf(peer->sun_path, sizeof(peer->sun_path), "%s", peer_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own))) {
		perror(own_path);
		return -1;
	}
	return fd;
}

static inline void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* Bit by bit: this is not the device's way to get at it */
static inline uint32_t crc_add(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int i = 0; i < 8; i++)
		crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return crc;
}

static inline uint32_t icrc(const uint8_t *ip, uint32_t len)
{
	uint32_t crc = 0xffffffff;

	for (int i = 0; i < 8; i++)
		crc = crc_add(crc, 0xff);
	for (uint32_t i = 0; i < len; i++) {
		/* type of service, time to live, both checksums, congestion */
		int ones = i == 1 || i == 8 || i == 10 || i == 11 || i == 26 || i == 27 ||
			i == 32;

		crc = crc_add(crc, ones ? 0xff : ip[i]);
	}
	return ~crc;
}

static const uint8_t macs[12] = { 0x52, 0x54, 0, 0, 0, 1, 0x52, 0x54, 0, 0, 0, 2 };

#define HEADS 28	/* of IPv4 and UDP */

/* What is in front of a packet of @body bytes */
static inline void head(uint8_t *f, uint32_t from, uint32_t body)
{
	uint8_t *ip = f + 14, *udp = f + 34;

	memcpy(f, macs, sizeof(macs));
	put16(f + 12, 0x0800);
	memset(ip, 0, HEADS);
	ip[0] = 0x45;
	put16(ip + 2, HEADS + body + 4);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	put32(ip + 12, 0x0a000000 | from);
	put32(ip + 16, 0x0a000001);
	put16(udp, 0xc000);
	put16(udp + 2, 4791);
	put16(udp + 4, 8 + body + 4);
}

static inline void sum_up(uint8_t *ip)
{
	uint32_t sum = 0;

	put16(ip + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
}

static inline uint32_t end_frame(uint8_t *f, uint32_t len, uint32_t crc)
{
	for (int i = 0; i < 4; i++)
		f[14 + len + i] = crc >> 8 * i;
	return 14 + len + 4;
}

#define ARP_AT 14
#define ARP_END 42

/* Is it ARP?  Who asks is answered. */
static inline int is_arp(int fd, const struct sockaddr_un *peer, uint8_t *f, ssize_t len)
{
	uint8_t *arp = f + ARP_AT;

	if (len < ARP_END || f[12] != 0x08 || f[13] != 0x06)
		return 0;
	if (arp[7] == 1 && !memcmp(arp + 24, "\x0a\0\0\x02", 4)) {
		memcpy(f, f + 6, 6);
		memcpy(f + 6, macs + 6, 6);
		arp[7] = 2;
		memcpy(arp + 18, arp + 8, 10);
		memcpy(arp + 8, macs + 6, 6);
		memcpy(arp + 14, "\x0a\0\0\x02", 4);
		if (sendto(fd, f, ARP_END, 0, (const struct sockaddr *)peer, sizeof(*peer)) < 0)
			perror("sendto");
	}
	return 1;
}
