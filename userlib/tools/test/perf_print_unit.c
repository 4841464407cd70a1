// SPDX-License-Identifier: MIT
/*
 * What peerlane perf prints of measurements that are known: the shell test has
 * the sums done by hand.
 *	perf_print_unit text|json|plot hard|here|there
 * hard: two NICs; here, there: soft-RoCE at one end
 */
#include <stdio.h>
#include <string.h>

#include <peerlane/mr.h>

#include "perf/perf.h"
#include "tool.h"

static struct perf_measure measure(enum perf_test test, enum perf_op op,
				   enum perf_mem mem, uint64_t messages,
				   double seconds, uint64_t p50)
{
	return (struct perf_measure){
		.test = test, .op = op, .mem = mem, .size = 4096,
		.depth = test == PERF_LATENCY ? 1 : 16, .warm_up = 10,
		.messages = messages, .seconds = seconds, .cpu_seconds = 0.125,
		.staged_here = mem == PERF_STAGED ? 11 : 0,
		.staged_there = mem == PERF_STAGED ? 22 : 0,
		.notices_here = mem == PERF_STAGED ? 33 : 0,
		.notices_there = mem == PERF_STAGED ? 44 : 0,
		.crc_by_gpu = mem != PERF_HOST,
		.stat = { messages, p50 / 2, p50 + 1000, p50 + 500, p50,
			  p50 + 2000, p50 + 3000, PERF_UNTOLD },
	};
}

int main(int argc, char **argv)
{
	struct perf_measure list[] = {
		measure(PERF_LATENCY, PERF_WRITE, PERF_DIRECT, 100, 1, 2000),
		measure(PERF_LATENCY, PERF_WRITE, PERF_STAGED, 100, 1, 9000),
		measure(PERF_LATENCY, PERF_WRITE, PERF_HOST, 100, 1, 1500),
		measure(PERF_STREAM, PERF_WRITE, PERF_DIRECT, 600, 0.25, 7000),
		measure(PERF_STREAM, PERF_WRITE, PERF_STAGED, 200, 0.5, 8000),
		/* a READ that was measured in one way only */
		measure(PERF_STREAM, PERF_READ, PERF_DIRECT, 600, 0.25, 7000),
	};
	struct perf_options o = {
		.depth = 16,
		.mems = (1 << PERF_MEMS) - 1, .tests = (1 << PERF_TESTS) - 1,
	};
	struct perf_end e = {
		.port = { .device = "mlx5_0", .port = 2,
			  .attr = { .active_mtu = IBV_MTU_4096,
				    .link_layer = IBV_LINK_LAYER_ETHERNET } },
		.gpu = "A GPU",
	};
	struct perf_hello peer = {
		.device = "mlx5_7", .port = 1, .lid = 3, .mtu = IBV_MTU_1024,
	};
	struct perf_report r = {
		.o = &o, .end = &e, .peer = &peer, .measure = list,
		.n = sizeof(list) / sizeof(*list),
	};
	unsigned int i;

	if (argc != 3)
		return 2;
	e.port.gid.raw[0] = 0xfe;
	e.software = !strcmp(argv[2], "here");
	peer.software = !strcmp(argv[2], "there");
	for (i = 0; i < PERF_MEMS; i++)
		e.mem[i].info.possible = peer.mem[i].possible = true;
	e.mem[PERF_DIRECT].info.way = PLN_MR_DMABUF;
	peer.mem[PERF_DIRECT].way = PLN_MR_PLAIN;
	e.mem[PERF_STAGED].info.way = peer.mem[PERF_STAGED].way = PLN_MR_STAGED;
	/* an operation has a plot when all of it was measured */
	o.ops = 1 << PERF_WRITE;
	if (!strcmp(argv[1], "plot"))
		return !perf_write_gnuplot(&r, "/proc/self/fd/1");
	if (!strcmp(argv[1], "json")) {
		perf_print_json(&r, EXIT_OK);
		return 0;
	}
	perf_print_head(&r);
	for (i = 0; i < r.n; i++)
		perf_print_one(&r, &list[i]);
	perf_print_tail(&r);
	return 0;
}
