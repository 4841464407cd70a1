/* SPDX-License-Identifier: MIT */
/*
 * What programs on several hosts share: sockets by which they find each other,
 * GPU memory that is registered, and a look at what links did.
 */
#ifndef SCENARIO_PEERS_H
#define SCENARIO_PEERS_H

#include "guest.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <peerlane/link.h>
#include <peerlane/mr.h>
#include <peerlane/peerlane.h>

#define CONNECT_SECONDS	60
#define GREETING_SIZE	160

static inline void __attribute__((noreturn, format(printf, 1, 2)))
quit(const char *fmt, ...)
{
	va_list ap;
	char text[1024];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ok(false, "%s", text);
	exit(1);
}

static inline long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline uint64_t number(const char *text, const char *what)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		quit("%s is not a number: %s", what, text);
	return v;
}

static inline struct sockaddr_in address(const char *ip, unsigned int port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
	};

	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		quit("not an IPv4 address: %s", ip);
	return a;
}

static inline int peer_listen(const char *ip, unsigned int port)
{
	struct sockaddr_in a = address(ip, port);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1))
		die("listen");
	return fd;
}

static inline int peer_accept(int listening)
{
	struct pollfd p = { .fd = listening, .events = POLLIN };
	int fd;

	if (poll(&p, 1, CONNECT_SECONDS * 1000) != 1)
		quit("nobody connects within %d s", CONNECT_SECONDS);
	fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		die("accept");
	return fd;
}

/* The peer may start later than this one */
static inline int peer_connect(const char *ip, unsigned int port)
{
	struct sockaddr_in a = address(ip, port);
	long long until = now_ms() + CONNECT_SECONDS * 1000;

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			die("socket");
		if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
			return fd;
		if (errno != ECONNREFUSED || now_ms() > until)
			die(ip);
		close(fd);
		poll(NULL, 0, 50);
	}
}

static inline void send_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t got = send(fd, p, n, MSG_NOSIGNAL);

		if (got <= 0)
			die("send");
		p += got;
		n -= (size_t)got;
	}
}

static inline void receive_all(int fd, void *data, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char *at = data;

	while (n) {
		ssize_t got;

		if (poll(&p, 1, CONNECT_SECONDS * 1000) != 1)
			quit("the peer is silent for %d s", CONNECT_SECONDS);
		got = recv(fd, at, n, 0);
		if (got <= 0)
			quit("the peer has closed the connection");
		at += got;
		n -= (size_t)got;
	}
}

/* What this process is about to do; the other end must mean the same */
static inline void say(int fd, const char *text)
{
	char out[GREETING_SIZE] = "";

	snprintf(out, sizeof(out), "%s", text);
	send_all(fd, out, sizeof(out));
}

static inline void hear(int fd, const char *want)
{
	char in[GREETING_SIZE];

	receive_all(fd, in, sizeof(in));
	in[sizeof(in) - 1] = 0;
	if (strcmp(in, want))
		quit("the peer is about something else: \"%s\", not \"%s\"", in,
		     want);
}

/* How GPU memory may be registered */
static inline unsigned int way_of(const char *text)
{
	if (!strcmp(text, "direct"))
		return PLN_MR_STRICT;
	if (!strcmp(text, "staged"))
		return PLN_MR_ONLY_STAGED;
	if (strcmp(text, "best"))
		quit("--way is best, direct or staged, not %s", text);
	return 0;
}

static inline struct pln_mr *must_register(struct ibv_pd *pd, gpu_ptr p,
					   size_t size, unsigned int flags)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr;
	int err = pln_mr_reg(pd, addr(p), size, IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_REMOTE_WRITE, flags, &mr);

	if (err) {
		pln_mr_info(NULL, &info);
		quit("registration of %zu bytes of GPU memory: %s (%s)", size,
		     pln_strerror(err), info.reason);
	}
	return mr;
}

static inline const char *mr_way(struct pln_mr *mr)
{
	struct pln_mr_info info = { .size = sizeof(info) };

	pln_mr_info(mr, &info);
	return pln_mr_way_name(info.way);
}

static inline void must_open_link(struct pln_link **link,
				  const struct pln_link_options *options)
{
	int err = pln_link_open(link, options);

	if (err)
		quit("a link cannot be opened: %s (%s)",
		     pln_link_reason(NULL), pln_strerror(err));
}

static inline void must_link(struct pln_link *link, int fd)
{
	int err = pln_link_connect(link, fd, CONNECT_SECONDS * 1000);

	if (err)
		quit("the link is not connected: %s (%s)",
		     pln_link_reason(link), pln_strerror(err));
}

static inline void must_share(struct pln_link *link, struct pln_mr *mr)
{
	int err = pln_link_share(link, mr);

	if (err < 0)
		quit("memory cannot be shared: %s", pln_strerror(err));
}

static inline struct pln_link_stats link_stats(struct pln_link *link)
{
	struct pln_link_stats s = { .size = sizeof(s) };

	pln_link_stats(link, &s);
	return s;
}

/* What a link has done since @before; most_in_flight is of all time */
static inline struct json_object *
link_json(struct pln_link *link, const struct pln_link_stats *before)
{
	struct pln_link_stats s = link_stats(link);
	struct json_object *o = json_object_new_object();

	json_set(o, "mtu", s.mtu);
	json_set(o, "most_in_flight", s.most_in_flight);
#define SINCE(name) json_set(o, #name, s.name - before->name)
	SINCE(puts);
	SINCE(puts_done);
	SINCE(bytes_put);
	SINCE(bytes_direct);
	SINCE(bytes_from_gpu);
	SINCE(bytes_for_staged);
	SINCE(bytes_to_gpu);
	SINCE(arrivals);
	SINCE(bytes_arrived);
	SINCE(chunks);
	SINCE(messages);
	SINCE(copies_overlapped);
	SINCE(landings_overlapped);
	SINCE(stalls_depth);
	SINCE(stalls_credit);
#undef SINCE
	return o;
}

/*
 * For the result: what was counted as LABEL was BYTES out of this host's GPU
 * ("rdma-source") or into it ("rdma-target").
 */
static inline void print_transfer(const char *label, const char *what,
				  struct pln_mr *mr, uint64_t bytes, double cpu)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	bool staged;

	pln_mr_info(mr, &info);
	staged = info.way == PLN_MR_STAGED;
	tell_transfer(label, transfer_json(what, staged ? "bounce" :
					   info.way == PLN_MR_PLAIN ? "coherent" : "p2p",
					   bytes, cpu, staged ? info.reason : ""));
}

/*
 * What all hosts do between these two is counted, see counted_all; nobody begins
 * while another still does something that is not.
 */
static inline void count_begin(const char *label)
{
	host_must("barrier %s.quiet", label);
	host_must("begin %s", label);
	host_must("barrier %s.begin", label);
}

static inline void count_end(const char *label)
{
	host_must("barrier %s.end", label);
	host_must("end %s", label);
}

#endif /* SCENARIO_PEERS_H */
