// SPDX-License-Identifier: MIT
/*
 * A ring all-reduce: each of N processes has an array in GPU memory; in the
 * end all have the sum of all arrays.
 *
 * The array is cut into N segments.  First segments travel around the ring, and
 * each process adds its own part to what comes (reduce-scatter): after N - 1
 * steps process R has the full sum of segment R + 1.  Then the full sums travel
 * around (all-gather).  Each process sends 2 (N - 1) / N of an array, which is
 * the least that is possible.
 *
 * A segment travels in pieces, and nobody waits for a whole segment: a piece
 * that has arrived is added by the GPU and sent on while others are on their
 * way.  There are no steps in the program, only what follows from an arrival.
 *
 * Segments to be added arrive in a second array, "scratch", each in a place of
 * its own, so the left neighbour need not ask before it writes.
 */
#include <getopt.h>

#include "peers.h"

#include <peerlane/cuda_ext.h>

#define RANKS_MAX	8
#define CASES_MAX	16
#define RUN_SECONDS	100

enum { DATA, SCRATCH };			/* buffers, by their numbers */
enum { REDUCE, GATHER };		/* phases */

static unsigned int rank, ranks, port = 7100, ordinal;
static const char *ips[RANKS_MAX];
static uint64_t piece = 256 << 10;	/* bytes */
static uint64_t cases[CASES_MAX];	/* elements */
static unsigned int case_count;
static unsigned int way_flags;
static struct pln_link_options options = { .size = sizeof(options) };

static struct pln_link *left, *right;
static int left_fd, right_fd;
static gpu_ptr data, scratch;
static struct pln_mr *data_mr, *scratch_mr;

/* the array that is being reduced */
static uint64_t elements;
static int type;			/* PLN_DTYPE_* */

/* --- who has what ------------------------------------------------------------ */

static uint64_t segment_start(unsigned int s)
{
	return elements * s / ranks * 4;
}

static uint64_t segment_size(unsigned int s)
{
	return segment_start(s + 1) - segment_start(s);
}

static uint64_t segment_pieces(unsigned int s)
{
	return (segment_size(s) + piece - 1) / piece;
}

/* The segment that this process sends in a step, and the one it gets */
static unsigned int sends(int phase, unsigned int step)
{
	return (rank + ranks + (phase == GATHER) - step) % ranks;
}

static unsigned int gets(int phase, unsigned int step)
{
	return (rank + ranks + (phase == GATHER) - step - 1 + ranks) % ranks;
}

/* Where a piece is in the array */
static uint64_t piece_start(unsigned int s, uint64_t p)
{
	return segment_start(s) + p * piece;
}

static uint64_t piece_size(unsigned int s, uint64_t p)
{
	uint64_t left_over = segment_size(s) - p * piece;

	return left_over < piece ? left_over : piece;
}

static uint64_t tag_of(int phase, unsigned int step, uint64_t p)
{
	return (uint64_t)phase << 63 | (uint64_t)step << 48 | p;
}

/* --- the work ---------------------------------------------------------------- */

static void send_piece(int phase, unsigned int step, uint64_t p)
{
	unsigned int s = sends(phase, step);
	uint64_t at = piece_start(s, p);
	int64_t put = pln_link_put(right, &(struct pln_link_request){
		.size = sizeof(struct pln_link_request), .mr = data_mr,
		.offset = at, .length = piece_size(s, p),
		.buffer = phase == REDUCE ? SCRATCH : DATA, .at = at,
		.tag = tag_of(phase, step, p),
	});

	if (put < 0)
		quit("a piece cannot be sent: %s (%s)", pln_link_reason(right),
		     pln_strerror((int)put));
}

/* A piece is here: what follows from that */
static void arrived(const struct pln_link_arrival *a)
{
	int phase = a->tag >> 63 ? GATHER : REDUCE;
	unsigned int step = (unsigned int)(a->tag >> 48 & 0x7fff);
	uint64_t p = a->tag & 0xffffffffffff;
	unsigned int s;
	int r;

	if (step + 1 >= ranks)
		quit("a piece of step %u, which does not exist", step);
	s = gets(phase, step);
	if (p >= segment_pieces(s) || a->offset != piece_start(s, p) ||
	    a->length != piece_size(s, p) ||
	    a->buffer != (phase == REDUCE ? SCRATCH : DATA))
		quit("a piece that does not belong where it is");
	if (phase == REDUCE) {
		r = plnMemAdd(data + a->offset, scratch + a->offset, a->length,
			      type);
		if (r)
			quit("the GPU cannot add: CUDA error %d", r);
	}
	if (step + 2 < ranks)
		send_piece(phase, step + 1, p);
	else if (phase == REDUCE)
		send_piece(GATHER, 0, p);
}

static void all_reduce(void)
{
	struct pln_link *both[] = { left, right };
	struct pln_link_arrival a = { .size = sizeof(a) };
	long long until = now_ms() + RUN_SECONDS * 1000;
	uint64_t wanted = 0, got = 0, put;
	int n;

	for (unsigned int step = 0; step + 1 < ranks; step++)
		wanted += segment_pieces(gets(REDUCE, step)) +
			  segment_pieces(gets(GATHER, step));
	for (uint64_t p = 0; p < segment_pieces(sends(REDUCE, 0)); p++)
		send_piece(REDUCE, 0, p);
	put = link_stats(right).puts;
	while (got < wanted || link_stats(right).puts_done < put) {
		n = pln_link_poll(both, 2, 1000);
		if (n < 0)
			quit("a link failed: %s%s", pln_link_reason(left),
			     pln_link_reason(right));
		if (now_ms() > until)
			quit("no end within %d s: %" PRIu64 " of %" PRIu64
			     " pieces arrived", RUN_SECONDS, got, wanted);
		while (!(n = pln_link_arrival(left, &a))) {
			arrived(&a);
			got++;
		}
		put = link_stats(right).puts;
	}
}

/* --- is it right? -------------------------------------------------------------- */

/*
 * Element i of process r.  As float, sums of such numbers are exact whatever
 * their order, so all must come out the same to the last bit.
 */
static uint32_t element(unsigned int r, uint64_t i)
{
	uint32_t x = (uint32_t)i * 2654435761u + r * 40503u;
	union { float f; uint32_t u; } v;

	x ^= x >> 15;
	if (type == PLN_DTYPE_INT32)
		return x;
	v.f = (float)((int)(x & 0xffff) - 0x8000) / 8;
	return v.u;
}

/* What the sum has to be, one after the other, by the processor */
static uint32_t serial_sum(uint64_t i)
{
	union { float f; uint32_t u; } v = { .f = 0 };
	uint32_t sum = 0;

	for (unsigned int r = 0; r < ranks; r++) {
		union { float f; uint32_t u; } x = { .u = element(r, i) };

		sum += x.u;
		v.f += x.f;
	}
	return type == PLN_DTYPE_INT32 ? sum : v.u;
}

static void fill(uint32_t *host)
{
	for (uint64_t i = 0; i < elements; i++)
		host[i] = element(rank, i);
	if (cuMemcpyHtoD_v2(data, host, elements * 4) ||
	    cuMemsetD8_v2(scratch, 0xa5, elements * 4))
		quit("the GPU's memory cannot be filled");
}

static bool verify(uint32_t *host, uint64_t bytes)
{
	uint64_t wrong = 0, first = 0;

	/* one element more: nothing beyond the end was touched */
	if (cuMemcpyDtoH_v2(host, data, bytes))
		quit("the GPU's memory cannot be read");
	for (uint64_t i = 0; i < elements; i++)
		if (host[i] != serial_sum(i) && !wrong++)
			first = i;
	if (wrong)
		note("%" PRIu64 " of %" PRIu64 " elements are wrong, the first "
		     "is %" PRIu64 ": 0x%08x, not 0x%08x", wrong, elements,
		     first, host[first], serial_sum(first));
	for (uint64_t i = elements * 4; i < bytes; i++)
		if (((uint8_t *)host)[i] != 0x5a && !wrong++)
			note("byte %" PRIu64 " beyond the end was written", i);
	return !wrong;
}

/* --- the rest -------------------------------------------------------------------- */

static const char *type_name(void)
{
	return type == PLN_DTYPE_INT32 ? "int32" : "float32";
}

static void greeting(char *text, unsigned int from, unsigned int to)
{
	snprintf(text, GREETING_SIZE, "allreduce 1: process %u of %u to %u, "
		 "pieces of %" PRIu64 ", %u arrays, the first of %" PRIu64 " %s",
		 from, ranks, to, piece, case_count, cases[0], type_name());
}

static void connect_ring(void)
{
	unsigned int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	int listening = peer_listen(ips[rank], port + rank);
	char text[GREETING_SIZE];

	right_fd = peer_connect(ips[next], port + next);
	left_fd = peer_accept(listening);
	close(listening);
	greeting(text, rank, next);
	say(right_fd, text);
	greeting(text, last, rank);
	hear(left_fd, text);

	/* somebody has to begin with the other side, or all wait for all */
	if (!rank)
		must_link(right, right_fd);
	must_link(left, left_fd);
	if (rank)
		must_link(right, right_fd);
}

/* When all have come here: a token goes around twice */
static void ring_barrier(void)
{
	char token = 0;

	for (int round = 0; round < 2; round++) {
		if (!rank)
			send_all(right_fd, &token, 1);
		receive_all(left_fd, &token, 1);
		if (rank)
			send_all(right_fd, &token, 1);
	}
}

static void set_up(uint64_t bytes)
{
	gpu_open_at((int)ordinal);
	data = gpu_alloc(bytes);
	scratch = gpu_alloc(bytes);
	must_open_link(&left, &options);
	options.device = NULL;
	options.pd = pln_link_pd(left);
	must_open_link(&right, &options);
	data_mr = must_register(pln_link_pd(left), data, bytes, way_flags);
	scratch_mr = must_register(pln_link_pd(left), scratch, bytes, way_flags);
	must_share(left, data_mr);
	must_share(left, scratch_mr);
	connect_ring();
}

static void tear_down(void)
{
	ring_barrier();
	pln_link_close(right);
	is(pln_mr_dereg(data_mr), 0, "the array's registration ends");
	is(pln_mr_dereg(scratch_mr), 0, "and that of the second array");
	pln_link_close(left);
	is(cuMemFree_v2(data), 0, "its memory is freed");
	is(cuMemFree_v2(scratch), 0, "and that of the second");
}

static void usage(void)
{
	fprintf(stderr,
"usage: allreduce --rank R --hosts IP,IP,... --elements N[,N...]\n"
"  --type int32|float32   (default int32)\n"
"  --piece BYTES          of a segment travel together (default 262144)\n"
"  --way best|direct|staged   how GPU memory is registered (default best)\n"
"  --gpu N  --device NAME  --port TCP-PORT of the first  --count LABEL\n");
	exit(2);
}

static void parse_hosts(char *list)
{
	for (char *ip; (ip = strsep(&list, ",")); ranks++) {
		if (ranks == RANKS_MAX)
			quit("more than %d hosts", RANKS_MAX);
		ips[ranks] = ip;
	}
}

static void parse_elements(char *list)
{
	for (char *n; (n = strsep(&list, ",")); case_count++) {
		if (case_count == CASES_MAX)
			quit("more than %d arrays", CASES_MAX);
		cases[case_count] = number(n, "--elements");
		if (!cases[case_count] || cases[case_count] > 1u << 28)
			quit("an array has 1 to 2^28 elements");
	}
}

static const char *parse(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "rank", 1, NULL, 'r' }, { "hosts", 1, NULL, 'h' },
		{ "elements", 1, NULL, 'e' }, { "type", 1, NULL, 't' },
		{ "piece", 1, NULL, 'p' }, { "way", 1, NULL, 'w' },
		{ "gpu", 1, NULL, 'g' }, { "device", 1, NULL, 'd' },
		{ "port", 1, NULL, 'P' }, { "count", 1, NULL, 'c' },
		{ }
	};
	const char *label = NULL;
	int c;

	type = PLN_DTYPE_INT32;
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case 'r': rank = (unsigned int)number(optarg, "--rank"); break;
		case 'h': parse_hosts(optarg); break;
		case 'e': parse_elements(optarg); break;
		case 'p': piece = number(optarg, "--piece"); break;
		case 'w': way_flags = way_of(optarg); break;
		case 'g': ordinal = (unsigned int)number(optarg, "--gpu"); break;
		case 'd': options.device = optarg; break;
		case 'P': port = (unsigned int)number(optarg, "--port"); break;
		case 'c': label = optarg; break;
		case 't':
			if (!strcmp(optarg, "float32"))
				type = PLN_DTYPE_FLOAT32;
			else if (strcmp(optarg, "int32"))
				quit("--type is int32 or float32");
			break;
		default: usage();
		}
	}
	if (optind != argc || ranks < 2 || rank >= ranks || !case_count)
		usage();
	if (!piece || piece % 4 || piece > 1u << 30)
		quit("--piece is a multiple of 4 up to 1 GiB");
	return label;
}

int main(int argc, char **argv)
{
	const char *label = parse(argc, argv);
	uint64_t most = 0, bytes;
	double cpu = 0;
	struct pln_link_stats left_before = { 0 }, right_before = { 0 };
	struct json_object *result;
	uint32_t *host;

	for (unsigned int i = 0; i < case_count; i++)
		if (cases[i] > most)
			most = cases[i];
	bytes = most * 4 + 64;		/* with room to see what strays */
	host = malloc(bytes);
	if (!host)
		die("malloc");
	set_up(bytes);
	for (unsigned int i = 0; i < case_count; i++) {
		elements = cases[i];
		if (cuMemsetD8_v2(data, 0x5a, bytes))
			quit("the GPU's memory cannot be filled");
		fill(host);
		ring_barrier();
		if (label && i + 1 == case_count)
			count_begin(label);
		left_before = link_stats(left);
		right_before = link_stats(right);
		cpu = cpu_seconds();
		all_reduce();
		cpu = cpu_seconds() - cpu;
		if (label && i + 1 == case_count)
			count_end(label);
		ok(verify(host, bytes), "process %u: the sum of %" PRIu64
		   " %s of %u processes is the serial sum (%s)", rank, elements,
		   type_name(), ranks, mr_way(data_mr));
		ring_barrier();
	}
	if (label) {
		print_transfer(label, "rdma-source", data_mr,
			       link_stats(right).bytes_put - right_before.bytes_put,
			       cpu);
		print_transfer(label, "rdma-target", data_mr,
			       link_stats(left).bytes_arrived -
			       left_before.bytes_arrived, cpu);
	}
	result = json_object_new_object();
	json_set(result, "way", mr_way(data_mr));
	json_set(result, "elements", elements);
	json_set(result, "ranks", ranks);
	json_set(result, "left", link_json(left, &left_before));
	json_set(result, "right", link_json(right, &right_before));
	tell_fact(label ? label : "link", result);
	tear_down();
	free(host);
	return finish();
}
