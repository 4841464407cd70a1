// SPDX-License-Identifier: MIT
/* peerlane perf: options. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "tool.h"

static const char usage[] =
"usage: peerlane perf [OPTION...]             server: serves one client\n"
"       peerlane perf [OPTION...] HOST        client: measures and prints\n"
"       peerlane perf [OPTION...] --loopback  both, on this host\n"
"\n"
"Measures latency, bandwidth and message rate of RDMA between two memories: GPU\n"
"memory that the NIC accesses itself (direct), GPU memory through host memory\n"
"(staged), and host memory (host).\n";

#define DEFAULT_SIZES	"8,64,512,4K,32K,256K,1M"

enum {
	OP = 1, MEMORY, TEST, SIZES, COUNT, SECONDS, WARM_UP, DEPTH, JSON,
	GNUPLOT, DEVICE, IB_PORT, GID_INDEX, GPU, TCP_PORT, WAIT, TIMEOUT, BIND,
	KEEP, LOOPBACK,
};

static const struct opt options[] = {
	{ DEVICE, "device", "NIC",
	  .help = "RDMA device (the first one with an active port)" },
	{ IB_PORT, "ib-port", "N",
	  .help = "port of the device, from 1 (the first active one)" },
	{ GID_INDEX, "gid-index", "N",
	  .help = "GID of the port (RoCE v2 of an IPv4 address)",
	  .more = "Without it: the first GID of RoCE v2 with an IPv4 address, "
	  "then with an IPv6 address, a link-local one last; on InfiniBand the first "
	  "one." },
	{ GPU, "gpu", "N", .words = "0", .help = "CUDA number of the GPU (0)" },
	{ TCP_PORT, "tcp-port", "N",
	  .help = "where the server listens (18516)" },
	{ WAIT, "wait", "S",
	  .help = "seconds to wait for the other program (60)" },
	{ TIMEOUT, "timeout", "S",
	  .help = "fail after S seconds without progress or an answer (20)" },
	{ LOOPBACK, "loopback", .help = "both ends on this host" },
	{ OP, "op", "LIST", .words = "write read send", .only = "the client",
	  .help = "of write, read and send, separated by commas (all)" },
	{ MEMORY, "memory", "LIST", .words = "direct staged host",
	  .only = "the client", .help = "of direct, staged and host (all)" },
	{ TEST, "test", "LIST", .words = "latency stream",
	  .only = "the client", .help = "of latency and stream (both)" },
	{ SIZES, "sizes", "LIST", .only = "the client",
	  .help = "bytes of a message, 8,64,4K, or the powers of two 2:8M "
	  "(" DEFAULT_SIZES ")",
	  .more = "At most 1G. 2:8M means the powers of two from 2 to 8 MiB." },
	{ COUNT, "count", "N", .only = "the client",
	  .help = "messages of each run (1000)" },
	{ SECONDS, "seconds", "S", .only = "the client",
	  .help = "start no more messages after S seconds (1)",
	  .more = "At least one message is sent. The warm-up has the same "
	  "limit." },
	{ WARM_UP, "warm-up", "N", .only = "the client",
	  .help = "uncounted messages at the beginning (100)" },
	{ DEPTH, "depth", "N", .only = "the client",
	  .help = "stream: messages in flight, 1 to 256 (16)" },
	{ JSON, "json", .only = "the client", .help = "print one JSON object" },
	{ GNUPLOT, "gnuplot", "FILE", .only = "the client",
	  .help = "also write a plot, as a script for gnuplot(1)",
	  .more = "The script holds the data: latency (median, minimum and "
	  "p99), bandwidth and message rate by size. gnuplot FILE > FILE.svg "
	  "draws it." },
	{ BIND, "bind", "ADDRESS", .only = "the server",
	  .help = "listen on this address only" },
	{ KEEP, "keep", .only = "the server",
	  .help = "serve more clients, until none comes within the "
	  "time of --wait" },
	{ 0 }
};

const struct command perf_command = {
	.name = "perf",
	.what = "latency, bandwidth and message rate of RDMA with GPU memory",
	.usage = usage, .options = options,
};

static bool add_size(uint64_t *sizes, unsigned int *n, uint64_t size)
{
	if (*n == PERF_MAX_SIZES) {
		complain("--sizes: more than %d", PERF_MAX_SIZES);
		return false;
	}
	sizes[(*n)++] = size;
	return true;
}

static bool one_size(const char *text, uint64_t *size)
{
	if (parse_size(text, size) && *size && *size <= PERF_MAX_SIZE)
		return true;
	complain("--sizes: \"%s\" is no size from 1 to 1G", text);
	return false;
}

bool perf_parse_sizes(const char *text, uint64_t *sizes, unsigned int *n)
{
	char copy[1024], *word, *save, *colon;
	uint64_t from, to;

	*n = 0;
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		complain("--sizes: too long");
		return false;
	}
	for (word = strtok_r(copy, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		colon = strchr(word, ':');
		if (colon)
			*colon++ = '\0';
		if (!one_size(word, &from) || (colon && !one_size(colon, &to)))
			return false;
		if (colon && to < from) {
			complain("--sizes: in %s:%s the first size is larger "
			  "than the last", word, colon);
			return false;
		}
		if (!add_size(sizes, n, from))
			return false;
		while (colon && (from *= 2) <= to)
			if (!add_size(sizes, n, from))
				return false;
	}
	if (!*n)
		complain("--sizes: no size in \"%s\"", text);
	return *n;
}

/* Words of @names as a set of bits */
static bool set_of(const char *option, const char *text,
		   const char *const *names, unsigned int n, unsigned int *set)
{
	char copy[256], *word, *save;
	unsigned int i;

	*set = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		for (i = 0; i < n && strcmp(word, names[i]); i++)
			;
		if (i == n) {
			complain("%s does not know \"%s\"", option, word);
			return false;
		}
		*set |= 1u << i;
	}
	if (!*set)
		complain("%s: no name in \"%s\"", option, text);
	return *set;
}

static bool duration(const char *option, const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && *out > 0 && *out <= PERF_MAX_SECONDS)
		return true;
	complain("%s needs seconds, more than 0 and up to %d, not \"%s\"",
		 option, PERF_MAX_SECONDS, text);
	return false;
}

static bool take(struct perf_options *o, int c, const char *arg)
{
	uint64_t n = 0;
	bool ok = true;

	switch (c) {
	case OP:
		return set_of("--op", arg, perf_op_name, PERF_OPS, &o->ops);
	case MEMORY:
		return set_of("--memory", arg, perf_mem_name, PERF_MEMS,
			      &o->mems);
	case TEST:
		return set_of("--test", arg, perf_test_name, PERF_TESTS,
			      &o->tests);
	case SIZES:
		return perf_parse_sizes(arg, o->sizes, &o->n_sizes);
	case COUNT:
		return number_of("--count", arg, 1, PERF_MAX_COUNT, &o->count);
	case SECONDS:
		return duration("--seconds", arg, &o->seconds);
	case WARM_UP:
		return number_of("--warm-up", arg, 0, PERF_MAX_COUNT,
			      &o->warm_up);
	case DEPTH:
		return number_of("--depth", arg, 1, PERF_MAX_DEPTH, &o->depth);
	case JSON: o->json = true; break;
	case GNUPLOT: o->gnuplot = arg; break;
	case DEVICE: o->device = arg; break;
	case IB_PORT:
		ok = number_of("--ib-port", arg, 1, 254, &n);
		o->ib_port = (unsigned int)n;
		break;
	case GID_INDEX:
		ok = number_of("--gid-index", arg, 0, 255, &n);
		o->gid_index = (int)n;
		break;
	case GPU:
		ok = number_of("--gpu", arg, 0, 1023, &n);
		o->gpu = (int)n;
		break;
	case TCP_PORT:
		ok = number_of("--tcp-port", arg, 1, 65535, &n);
		o->tcp_port = (unsigned int)n;
		break;
	case WAIT:
		ok = number_of("--wait", arg, 1, 86400, &n);
		o->wait = (int)n;
		break;
	case TIMEOUT:
		ok = number_of("--timeout", arg, 1, 3600, &n);
		o->timeout = (int)n;
		break;
	case BIND: o->bind = arg; break;
	case KEEP: o->keep = true; break;
	case LOOPBACK: o->loopback = true; break;
	default:
		return false;
	}
	return ok;
}

static bool fits(const struct perf_options *o, uint32_t seen)
{
	if (o->host && o->loopback) {
		complain("--loopback needs no host, so not \"%s\"", o->host);
		return false;
	}
	return options_are_for(&perf_command, seen, o->host || o->loopback ?
			       "the client" : "the server");
}

int perf_parse(int argc, char **argv, struct perf_options *o)
{
	uint32_t seen = 0;
	int c;

	*o = (struct perf_options){
		.ops = (1u << PERF_OPS) - 1, .mems = (1u << PERF_MEMS) - 1,
		.tests = (1u << PERF_TESTS) - 1, .count = 1000, .warm_up = 100,
		.depth = 16, .seconds = 1, .tcp_port = 18516, .gid_index = -1,
		.wait = 60, .timeout = 20,
	};
	perf_parse_sizes(DEFAULT_SIZES, o->sizes, &o->n_sizes);
	while ((c = next_option(&perf_command, argc, argv, &seen)) != -1) {
		if (!take(o, c, optarg)) {
			say_usage(&perf_command);
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		o->host = argv[optind++];
	if (optind < argc) {
		complain("one HOST, not \"%s\" too", argv[optind]);
		return EXIT_USAGE;
	}
	return fits(o, seen) ? -1 : EXIT_USAGE;
}
