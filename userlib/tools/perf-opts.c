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
"       peerlane perf [OPTION...] HOST        client: measures, and prints\n"
"       peerlane perf [OPTION...] --loopback  both, on this host\n"
"\n"
"Latency, bandwidth and message rate of RDMA between two memories: GPU memory\n"
"that the NIC reaches itself (direct), GPU memory by way of host memory\n"
"(staged), and host memory.\n"
"\n"
"What is measured, for the client:\n"
"  --op LIST          of write, read, send (all)\n"
"  --memory LIST      of direct, staged, host (all)\n"
"  --test LIST        of latency, stream (both)\n"
"  --sizes LIST       8,64,4K or 2:8M, powers of two (8,64,512,4K,32K,256K,1M)\n"
"  --count N          messages of each run (1000)\n"
"  --seconds S        ... and the longest that it may take (1)\n"
"  --warm-up N        messages before, which are not counted (100)\n"
"  --depth N          stream: messages under way at once (16)\n"
"  --json             one JSON object instead of text\n"
"  --gnuplot FILE     also write a plot, as a script for gnuplot\n"
"For both:\n"
"  --device NAME      RDMA device (the first one with an active port)\n"
"  --ib-port N        its port (the first active one)\n"
"  --gid-index N      its GID (RoCE v2 of an IPv4 address)\n"
"  --gpu N            which GPU (0)\n"
"  --tcp-port N       where the server listens (18516)\n"
"  --wait S           how long to wait for the other program (60)\n"
"  --timeout S        give up when nothing has moved for so long (20)\n"
"For the server:\n"
"  --bind ADDRESS     listen on this address only\n"
"  --keep             serve client after client, until none comes in time\n";

#define DEFAULT_SIZES	"8,64,512,4K,32K,256K,1M"

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
			complain("--sizes: %s:%s goes backwards", word, colon);
			return false;
		}
		if (!add_size(sizes, n, from))
			return false;
		while (colon && (from *= 2) <= to)
			if (!add_size(sizes, n, from))
				return false;
	}
	if (!*n)
		complain("--sizes: there is none in \"%s\"", text);
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
		complain("%s: there is none in \"%s\"", option, text);
	return *set;
}

static bool number(const char *option, const char *text, uint64_t min,
		   uint64_t max, uint64_t *out)
{
	if (parse_size(text, out) && *out >= min && *out <= max)
		return true;
	complain("%s needs a number from %llu to %llu; \"%s\" is none", option,
		 (unsigned long long)min, (unsigned long long)max, text);
	return false;
}

static bool duration(const char *option, const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	if (end != text && !*end && *out > 0 && *out <= PERF_MAX_SECONDS)
		return true;
	complain("%s needs seconds, more than 0 and up to %d; \"%s\" are none",
		 option, PERF_MAX_SECONDS, text);
	return false;
}

enum {
	OP = 256, MEMORY, TEST, SIZES, COUNT, SECONDS, WARM_UP, DEPTH, JSON,
	GNUPLOT, DEVICE, IB_PORT, GID_INDEX, GPU, TCP_PORT, WAIT, TIMEOUT, BIND,
	KEEP, LOOPBACK,
};

static const struct option options[] = {
	{ "op", required_argument, NULL, OP },
	{ "memory", required_argument, NULL, MEMORY },
	{ "test", required_argument, NULL, TEST },
	{ "sizes", required_argument, NULL, SIZES },
	{ "count", required_argument, NULL, COUNT },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "warm-up", required_argument, NULL, WARM_UP },
	{ "depth", required_argument, NULL, DEPTH },
	{ "json", no_argument, NULL, JSON },
	{ "gnuplot", required_argument, NULL, GNUPLOT },
	{ "device", required_argument, NULL, DEVICE },
	{ "ib-port", required_argument, NULL, IB_PORT },
	{ "gid-index", required_argument, NULL, GID_INDEX },
	{ "gpu", required_argument, NULL, GPU },
	{ "tcp-port", required_argument, NULL, TCP_PORT },
	{ "wait", required_argument, NULL, WAIT },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "bind", required_argument, NULL, BIND },
	{ "keep", no_argument, NULL, KEEP },
	{ "loopback", no_argument, NULL, LOOPBACK },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

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
		return number("--count", arg, 1, PERF_MAX_COUNT, &o->count);
	case SECONDS:
		return duration("--seconds", arg, &o->seconds);
	case WARM_UP:
		return number("--warm-up", arg, 0, PERF_MAX_COUNT,
			      &o->warm_up);
	case DEPTH:
		return number("--depth", arg, 1, PERF_MAX_DEPTH, &o->depth);
	case JSON: o->json = true; break;
	case GNUPLOT: o->gnuplot = arg; break;
	case DEVICE: o->device = arg; break;
	case IB_PORT:
		ok = number("--ib-port", arg, 1, 254, &n);
		o->ib_port = (unsigned int)n;
		break;
	case GID_INDEX:
		ok = number("--gid-index", arg, 0, 255, &n);
		o->gid_index = (int)n;
		break;
	case GPU:
		ok = number("--gpu", arg, 0, 1023, &n);
		o->gpu = (int)n;
		break;
	case TCP_PORT:
		ok = number("--tcp-port", arg, 1, 65535, &n);
		o->tcp_port = (unsigned int)n;
		break;
	case WAIT:
		ok = number("--wait", arg, 1, 86400, &n);
		o->wait = (int)n;
		break;
	case TIMEOUT:
		ok = number("--timeout", arg, 1, 3600, &n);
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

/* An option that the other side decides would be without effect. */
static bool misplaced(const struct perf_options *o, unsigned int seen)
{
	const unsigned int of_client = 1u << (GNUPLOT - OP + 1);
	unsigned int i;

	if ((o->host || o->loopback) && (o->bind || o->keep)) {
		complain("%s is for the server", o->bind ? "--bind" : "--keep");
		return true;
	}
	if (o->host && o->loopback) {
		complain("--loopback needs no host, so not \"%s\"", o->host);
		return true;
	}
	if (o->host || o->loopback || !(seen & (of_client - 1)))
		return false;
	for (i = 0; !(seen & 1u << i); i++)
		;
	complain("--%s is for the client, and without a HOST this is the "
		 "server", options[i].name);
	return true;
}

int perf_parse(int argc, char **argv, struct perf_options *o)
{
	unsigned int seen = 0;
	int c;

	*o = (struct perf_options){
		.ops = (1u << PERF_OPS) - 1, .mems = (1u << PERF_MEMS) - 1,
		.tests = (1u << PERF_TESTS) - 1, .count = 1000, .warm_up = 100,
		.depth = 16, .seconds = 1, .tcp_port = 18516, .gid_index = -1,
		.wait = 60, .timeout = 20,
	};
	perf_parse_sizes(DEFAULT_SIZES, o->sizes, &o->n_sizes);
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return EXIT_OK;
		}
		if (!take(o, c, optarg)) {
			fputs("peerlane perf --help tells more\n", stderr);
			return EXIT_USAGE;
		}
		seen |= 1u << (c - OP);
	}
	if (optind < argc)
		o->host = argv[optind++];
	if (optind < argc) {
		complain("one HOST, not \"%s\" too", argv[optind]);
		return EXIT_USAGE;
	}
	return misplaced(o, seen) ? EXIT_USAGE : -1;
}
