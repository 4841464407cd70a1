/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is in a frame: Ethernet, IPv4 or IPv6, UDP to port 4791, and the base
 * transport header of InfiniBand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define ETH_HEADER	14
#define ETHERTYPE_VLAN	0x8100
#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define IPPROTO_UDP_	17
#define IPV6_HEADER	40
#define UDP_HEADER	8
#define ROCE_PORT	4791
#define BTH		12
#define ICRC		4

/*
 * Extended headers behind the BTH, in bytes: RETH 16, AETH 4, immediate 4,
 * IETH 4, AtomicETH 28, AtomicAckETH 8, DETH 8, FETH 4.
 */
static const struct {
	const char *name;
	uint8_t headers;
} operations[32] = {
	[0x00] = { "send-first", 0 },
	[0x01] = { "send-middle", 0 },
	[0x02] = { "send-last", 0 },
	[0x03] = { "send-last-with-immediate", 4 },
	[0x04] = { "send-only", 0 },
	[0x05] = { "send-only-with-immediate", 4 },
	[0x06] = { "rdma-write-first", 16 },
	[0x07] = { "rdma-write-middle", 0 },
	[0x08] = { "rdma-write-last", 0 },
	[0x09] = { "rdma-write-last-with-immediate", 4 },
	[0x0a] = { "rdma-write-only", 16 },
	[0x0b] = { "rdma-write-only-with-immediate", 20 },
	[0x0c] = { "rdma-read-request", 16 },
	[0x0d] = { "rdma-read-response-first", 4 },
	[0x0e] = { "rdma-read-response-middle", 0 },
	[0x0f] = { "rdma-read-response-last", 4 },
	[0x10] = { "rdma-read-response-only", 4 },
	[0x11] = { "acknowledge", 4 },
	[0x12] = { "atomic-acknowledge", 12 },
	[0x13] = { "compare-swap", 28 },
	[0x14] = { "fetch-add", 28 },
	[0x16] = { "send-last-with-invalidate", 4 },
	[0x17] = { "send-only-with-invalidate", 4 },
	[0x1c] = { "flush", 20 },
	[0x1d] = { "atomic-write", 16 },
};

/* by the three upper bits of the opcode */
static const char *const transports[8] = { "rc", "uc", "rd", "ud", "cnp", "xrc" };

/* those that send again */
static const bool ordered[8] = { [0] = true, [2] = true, [5] = true };

#define READ_RESPONSE_FIRST	0x0d
#define ACKNOWLEDGE		0x11
#define ATOMIC_ACKNOWLEDGE	0x12
#define TRANSPORT_RD	2
#define TRANSPORT_UD	3
#define OPCODE_CNP	0x81

static unsigned int get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

/* Bytes of extended headers, or -1: an opcode without a name */
static int opcode_headers(uint8_t opcode)
{
	unsigned int transport = opcode >> 5, operation = opcode & 31;

	if (opcode == OPCODE_CNP)
		return 16;
	if (!transports[transport] || !operations[operation].name || transport == 4)
		return -1;
	return operations[operation].headers +
		(transport == TRANSPORT_UD ? 8 : transport == TRANSPORT_RD ? 12 :
		 transport == 5 && (operation < 0x0d || operation > 0x12) ? 4 : 0);
}

const char *frame_opcode_name(uint8_t opcode)
{
	static char name[48];

	if (opcode == OPCODE_CNP)
		snprintf(name, sizeof(name), "cnp");
	else if (opcode_headers(opcode) < 0)
		snprintf(name, sizeof(name), "0x%02x", opcode);
	else
		snprintf(name, sizeof(name), "%s-%s", transports[opcode >> 5],
			 operations[opcode & 31].name);
	return name;
}

int frame_opcode_by_name(const char *name)
{
	char *end;
	unsigned long number;

	if (!strcmp(name, "any"))
		return WIRE_ANY;
	for (int opcode = 0; opcode < 256; opcode++)
		if (!strcmp(name, frame_opcode_name(opcode)))
			return opcode;
	if (strncmp(name, "0x", 2) || strlen(name) > 4)
		return -EINVAL;
	number = strtoul(name + 2, &end, 16);
	if (end == name + 2 || *end)
		return -EINVAL;
	return number;
}

void frame_parse(const uint8_t *data, size_t len, struct wire_info *info)
{
	size_t at = ETH_HEADER, udp_len, headers;
	unsigned int type, operation;
	int extended;

	memset(info, 0, sizeof(*info));
	info->harmless = len < ETH_HEADER ? len : ETH_HEADER;
	if (len < ETH_HEADER)
		return;
	type = get16(data + 12);
	if (type == ETHERTYPE_VLAN && len >= at + 4) {
		type = get16(data + at + 2);
		at += 4;
	}
	if (type == ETHERTYPE_IPV4) {
		size_t header;

		if (len < at + 20 || data[at] >> 4 != 4)
			return;
		info->ip = at;
		header = (data[at] & 15) * 4;
		/* a later fragment has no UDP header */
		if (header < 20 || len < at + header || data[at + 9] != IPPROTO_UDP_ ||
		    get16(data + at + 6) & 0x1fff)
			return;
		at += header;
	} else if (type == ETHERTYPE_IPV6) {
		if (len < at + IPV6_HEADER || data[at] >> 4 != 6)
			return;
		info->ip = at;
		if (data[at + 6] != IPPROTO_UDP_)
			return;
		at += IPV6_HEADER;
	} else {
		return;
	}
	if (len < at + UDP_HEADER + BTH + ICRC || get16(data + at + 2) != ROCE_PORT)
		return;
	udp_len = get16(data + at + 4);
	if (udp_len < UDP_HEADER + BTH + ICRC || udp_len > len - at)
		return;
	at += UDP_HEADER;
	info->roce = true;
	info->opcode = data[at];
	info->harmless = at + BTH;
	extended = opcode_headers(info->opcode);
	if (extended < 0)
		return;
	operation = info->opcode & 31;
	info->response = operation >= READ_RESPONSE_FIRST && operation <= ATOMIC_ACKNOWLEDGE;
	/* acknowledgements of several frames may be one */
	info->ordered = ordered[info->opcode >> 5] && operation != ACKNOWLEDGE &&
		operation != ATOMIC_ACKNOWLEDGE;
	info->qp = (uint32_t)data[at + 5] << 16;
	info->qp |= get16(data + at + 6);
	info->psn = data[at + 9] << 16 | get16(data + at + 10);
	headers = UDP_HEADER + BTH + extended + (data[at + 1] >> 4 & 3) + ICRC;
	if (udp_len > headers)
		info->payload = udp_len - headers;
}
