// SPDX-License-Identifier: MIT
/*
 * A file of this host into the memory of another host's GPU, piece by piece:
 * the drive writes a piece into GPU memory here (cuFileRead), and the network
 * carries it from there to the GPU over there (pln_link_put).  While the network
 * carries some pieces, the drive delivers the next one.
 *
 *	feed --serve IP --bytes N		the GPU that is fed
 *	feed --to IP --bytes N --file FILE	the host with the drive
 */
#include <getopt.h>

#include "peers.h"

#define RUN_SECONDS	100

static uint64_t bytes, piece = 1 << 20;
static unsigned int slots = 4, port = 7200, way_flags;
static const char *label, *own_ip, *peer_ip, *file;
static struct pln_link_options options = { .size = sizeof(options) };
static struct pln_link *conn;
static struct pln_mr *mr;

static void greeting(char *text)
{
	snprintf(text, GREETING_SIZE, "feed 1: %" PRIu64 " bytes in pieces of %"
		 PRIu64, bytes, piece);
}

static void begin(void)
{
	if (label)
		count_begin(label);
}

static void end(void)
{
	if (label)
		count_end(label);
}

static void report(struct json_object *result)
{
	const struct pln_link_stats none = { 0 };
	struct pln_mr_info info = { .size = sizeof(info) };

	pln_mr_info(mr, &info);
	json_set(result, "way", pln_mr_way_name(info.way));
	json_set(result, "link", link_json(conn, &none));
	tell_fact(label ? label : "feed", result);
	note("%s", info.reason);
}

/* --- the GPU that is fed -------------------------------------------------------- */

static void receive(void)
{
	struct pln_link_arrival a = { .size = sizeof(a) };
	long long until = now_ms() + RUN_SECONDS * 1000;
	uint64_t got = 0;
	int n;

	while (got < bytes) {
		n = pln_link_poll(&conn, 1, 1000);
		if (n < 0)
			quit("the link failed: %s", pln_link_reason(conn));
		if (now_ms() > until)
			quit("no end within %d s: %" PRIu64 " bytes arrived",
			     RUN_SECONDS, got);
		while (!(n = pln_link_arrival(conn, &a))) {
			if (a.buffer || a.offset != got || a.tag != got / piece)
				quit("piece %" PRIu64 " at %" PRIu64 ", while %"
				     PRIu64 " is next", a.tag, a.offset, got);
			got += a.length;
		}
	}
}

static void serve(void)
{
	struct json_object *result = json_object_new_object();
	char text[GREETING_SIZE], sum[16];
	struct pln_link_arrival none = { .size = sizeof(none) };
	int listening, fd;
	uint32_t crc;
	gpu_ptr p;
	double cpu;

	gpu_open();
	p = gpu_alloc(bytes + 4096);
	if (cuMemsetD8_v2(p, 0xa5, bytes + 4096))
		quit("the GPU's memory cannot be filled");
	must_open_link(&conn, &options);
	mr = must_register(pln_link_pd(conn), p, bytes, way_flags);
	must_share(conn, mr);
	listening = peer_listen(own_ip, port);
	fd = peer_accept(listening);
	close(listening);
	greeting(text);
	hear(fd, text);
	must_link(conn, fd);
	begin();
	cpu = cpu_seconds();
	receive();
	cpu = cpu_seconds() - cpu;
	end();
	is(pln_link_arrival(conn, &none), -EAGAIN, "nothing more arrives");
	crc = gpu_crc(p, bytes);
	ok(gpu_is(p + bytes, 4096, 0xa5), "nothing was written beyond the end");
	print_transfer(label ? label : "feed", "rdma-target", mr, bytes, cpu);
	snprintf(sum, sizeof(sum), "0x%08x", crc);
	json_set(result, "bytes", bytes);
	json_set(result, "crc32c", sum);
	report(result);
	send_all(fd, "done", 4);
	is(pln_mr_dereg(mr), 0, "the registration ends");
	pln_link_close(conn);
	is(cuMemFree_v2(p), 0, "the memory is freed");
	close(fd);
}

/* --- the host with the drive ------------------------------------------------------ */

/* Wait until at most @most puts are not done; returns how many are not */
static uint64_t under_way(uint64_t most)
{
	long long until = now_ms() + RUN_SECONDS * 1000;

	for (;;) {
		struct pln_link_stats s = link_stats(conn);
		int n;

		if (s.puts - s.puts_done <= most)
			return s.puts - s.puts_done;
		n = pln_link_poll(&conn, 1, 1000);
		if (n < 0)
			quit("the link failed: %s", pln_link_reason(conn));
		if (now_ms() > until)
			quit("the network stands still");
	}
}

/* *read_cpu: processor time of the reads */
static void feed(gpu_ptr p, CUfileHandle_t fh, uint64_t *overlapped, double *read_cpu)
{
	uint64_t i, at;
	double cpu;

	for (i = 0, at = 0; at < bytes; i++, at += piece) {
		uint64_t n = bytes - at < piece ? bytes - at : piece;
		uint64_t slot = i % slots * piece;
		ssize_t got;
		int64_t put;

		/* the slot's last content has to be over there */
		*overlapped += under_way(slots - 1) > 0;
		cpu = cpu_seconds();
		got = cuFileRead(fh, addr(p), n, (off_t)at, (off_t)slot);
		*read_cpu += cpu_seconds() - cpu;
		if (got != (ssize_t)n)
			quit("cuFileRead of %" PRIu64 " bytes at %" PRIu64
			     ": %zd (errno %d)", n, at, got, errno);
		put = pln_link_put(conn, &(struct pln_link_request){
			.size = sizeof(struct pln_link_request), .mr = mr,
			.offset = slot, .length = n, .at = at, .tag = i,
		});
		if (put < 0)
			quit("piece %" PRIu64 " cannot be sent: %s (%s)", i,
			     pln_link_reason(conn), pln_strerror((int)put));
	}
	under_way(0);
}

static void send_file(void)
{
	struct json_object *result = json_object_new_object();
	char text[GREETING_SIZE], done[4];
	struct pln_link_buffer there = { .size = sizeof(there) };
	uint64_t overlapped = 0, size = slots * piece;
	int fd, file_fd = must_open(file, O_RDONLY | O_DIRECT);
	struct pln_file_stats s;
	CUfileHandle_t fh;
	gpu_ptr p;
	double cpu, read_cpu = 0;

	gpu_open();
	if (cuFileDriverOpen().err)
		quit("cuFileDriverOpen failed");
	fh = must_reg(file_fd, file);
	p = gpu_alloc(size);
	if (cuFileBufRegister(addr(p), size, 0).err)
		quit("cuFileBufRegister failed");
	must_open_link(&conn, &options);
	mr = must_register(pln_link_pd(conn), p, size, way_flags);
	fd = peer_connect(peer_ip, port);
	greeting(text);
	say(fd, text);
	must_link(conn, fd);
	is(pln_link_peer(conn, 0, &there), 0, "the peer shares its memory");
	is((long long)there.length, (long long)bytes, "as much as the file has");
	begin();
	cpu = cpu_seconds();
	feed(p, fh, &overlapped, &read_cpu);
	cpu = cpu_seconds() - cpu;
	end();
	s = stats();
	tell_transfer(label ? label : "feed",
		      transfer_json("read", pln_path_name(s.last_path), bytes, read_cpu,
				    s.reason));
	print_transfer(label ? label : "feed", "rdma-source", mr, bytes, cpu - read_cpu);
	json_set(result, "reads", (bytes + piece - 1) / piece);
	json_set(result, "reads_while_sending", overlapped);
	json_set(result, "cpu_seconds", cpu);
	report(result);
	receive_all(fd, done, sizeof(done));
	is(pln_mr_dereg(mr), 0, "the registration ends");
	pln_link_close(conn);
	close(fd);
	is(cuFileBufDeregister(addr(p)).err, 0, "cuFile lets go of the memory");
	cuFileHandleDeregister(fh);
	is(cuMemFree_v2(p), 0, "the memory is freed");
	close(file_fd);
	cuFileDriverClose();
}

static void usage(void)
{
	fprintf(stderr,
"usage: feed --serve IP --bytes N [options]            the GPU that is fed\n"
"       feed --to IP --file FILE --bytes N [options]   the host with the drive\n"
"  --piece BYTES  a multiple of 4096 (default 1 MiB)   --slots N  (default 4)\n"
"  --way best|direct|staged   --device NAME   --port PORT   --count LABEL\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "serve", 1, NULL, 's' }, { "to", 1, NULL, 't' },
		{ "file", 1, NULL, 'f' }, { "bytes", 1, NULL, 'b' },
		{ "piece", 1, NULL, 'p' }, { "slots", 1, NULL, 'n' },
		{ "way", 1, NULL, 'w' }, { "device", 1, NULL, 'd' },
		{ "port", 1, NULL, 'P' }, { "count", 1, NULL, 'c' },
		{ }
	};
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case 's': own_ip = optarg; break;
		case 't': peer_ip = optarg; break;
		case 'f': file = optarg; break;
		case 'b': bytes = number(optarg, "--bytes"); break;
		case 'p': piece = number(optarg, "--piece"); break;
		case 'n': slots = (unsigned int)number(optarg, "--slots"); break;
		case 'w': way_flags = way_of(optarg); break;
		case 'd': options.device = optarg; break;
		case 'P': port = (unsigned int)number(optarg, "--port"); break;
		case 'c': label = optarg; break;
		default: usage();
		}
	}
	if (optind != argc || !own_ip == !peer_ip || !peer_ip != !file || !bytes)
		usage();
	if (!piece || piece % 4096 || piece > 1u << 30 || !slots || slots > 64)
		quit("--piece is a multiple of 4096 up to 1 GiB, --slots 1 to 64");
	/* a piece goes out as a whole, so that nothing waits for the next poll */
	options.depth = (uint32_t)(slots * ((piece + (256 << 10) - 1) / (256 << 10)));
	if (options.depth > 256)
		options.depth = 256;
	if (own_ip)
		serve();
	else
		send_file();
	return finish();
}
