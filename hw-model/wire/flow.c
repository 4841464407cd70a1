/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which of a host's RoCE frames are repeated: packet sequence numbers (24 bits)
 * that a flow has had.  A flow is what goes to one queue pair, requests apart
 * from responses.  They need not come in order: a host may drop one of its own
 * frames, and send it after later ones.
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
#define SEEN		2048u	/* of so many below the last it is known which have come */

struct wire_flow {
	bool used;
	uint8_t mac;
	bool response;
	uint32_t qp;
	uint32_t last;		/* PSN */
	uint64_t seen[SEEN / 64];
};

struct wire_flows {
	struct wire_flow flow[FLOWS];
};

struct wire_flows *flow_new(void)
{
	return calloc(1, sizeof(struct wire_flows));
}

/* Remembers PSN; was it there already? */
static bool see(uint64_t *seen, uint32_t psn)
{
	uint64_t bit = 1ull << psn % 64, *word = &seen[psn % SEEN / 64];
	bool was = *word & bit;

	*word |= bit;
	return was;
}

static bool repeats(struct wire_flow *flow, uint32_t psn)
{
	uint32_t ahead = (psn - flow->last) & PSN_MASK, back = (flow->last - psn) & PSN_MASK;

	if (back < SEEN)
		return see(flow->seen, psn);
	if (back < PSN_WINDOW)
		return true;
	/* also where it is a new connection */
	if (ahead >= SEEN)
		memset(flow->seen, 0, sizeof(flow->seen));
	for (uint32_t i = 1; i < ahead && ahead < SEEN; i++) {
		uint32_t between = (flow->last + i) & PSN_MASK;

		flow->seen[between % SEEN / 64] &= ~(1ull << between % 64);
	}
	flow->last = psn;
	flow->seen[psn % SEEN / 64] |= 1ull << psn % 64;
	return false;
}

bool flow_repeats(struct wire_flows *flows, const uint8_t *data,
		  const struct wire_info *info)
{
	uint32_t slot = (info->qp * 2654435761u) >> 16 ^ data[5] << 4 ^ info->response;
	struct wire_flow *flow;

	if (!flows || !info->ordered)
		return false;
	for (unsigned int i = 0; i < PROBES; i++) {
		flow = &flows->flow[(slot + i) % FLOWS];
		if (flow->used && flow->mac == data[5] && flow->qp == info->qp &&
		    flow->response == info->response)
			return repeats(flow, info->psn);
		if (!flow->used)
			break;
	}
	/* when there is no room, the last one is forgotten */
	memset(flow, 0, sizeof(*flow));
	flow->used = true;
	flow->mac = data[5];
	flow->response = info->response;
	flow->qp = info->qp;
	flow->last = info->psn;
	see(flow->seen, info->psn);
	return false;
}
