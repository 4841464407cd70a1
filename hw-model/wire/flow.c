/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of a host's RoCE frames are repeated: packet sequence numbers (24 bits)
 * that a flow has had.  A flow is what goes to one queue pair, requests apart
 * from responses.
 */
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define FLOWS		4096
#define PROBES		8
#define PSN_MASK	0xffffffu
#define PSN_HALF	0x800000u
/* So far back is no retransmission: the queue pair has a new connection */
#define PSN_WINDOW	0x8000u

struct wire_flows {
	struct {
		bool used;
		uint8_t mac;
		bool response;
		uint32_t qp;
		uint32_t last;		/* PSN */
	} flow[FLOWS];
};

struct wire_flows *flow_new(void)
{
	return calloc(1, sizeof(struct wire_flows));
}

bool flow_repeats(struct wire_flows *flows, const uint8_t *data,
		  const struct wire_info *info)
{
	uint32_t slot = (info->qp * 2654435761u) >> 16 ^ data[5] << 4 ^ info->response;
	unsigned int at = slot % FLOWS;
	uint32_t ahead, last;

	if (!flows || !info->ordered)
		return false;
	for (unsigned int i = 0; i < PROBES; i++) {
		unsigned int try = (slot + i) % FLOWS;

		if (!flows->flow[try].used ||
		    (flows->flow[try].mac == data[5] && flows->flow[try].qp == info->qp &&
		     flows->flow[try].response == info->response)) {
			at = try;
			break;
		}
	}
	if (!flows->flow[at].used || flows->flow[at].mac != data[5] ||
	    flows->flow[at].qp != info->qp ||
	    flows->flow[at].response != info->response) {
		flows->flow[at].used = true;
		flows->flow[at].mac = data[5];
		flows->flow[at].qp = info->qp;
		flows->flow[at].response = info->response;
		flows->flow[at].last = info->psn;
		return false;
	}
	last = flows->flow[at].last;
	ahead = (info->psn - last) & PSN_MASK;
	if ((ahead == 0 || ahead >= PSN_HALF) &&
	    ((last - info->psn) & PSN_MASK) < PSN_WINDOW)
		return true;
	flows->flow[at].last = info->psn;
	return false;
}
