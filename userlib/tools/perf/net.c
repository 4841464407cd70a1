// SPDX-License-Identifier: MIT
/* peerlane perf: the socket between the two programs. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"
#include "socket.h"
#include "tool.h"

#define RETRY_MS	100	/* between two calls at a peer not there yet */

static bool resolve(const char *host, unsigned int port, int flags,
		    struct addrinfo **list)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
		.ai_flags = flags | AI_NUMERICSERV,
	};
	char text[16];
	int r;

	snprintf(text, sizeof(text), "%u", port);
	r = getaddrinfo(host, text, &hints, list);
	if (!r)
		return true;
	complain("%s has no address: %s", host ? host : "this host",
		 gai_strerror(r));
	return false;
}

static void name_peer(struct perf_peer *p, const struct sockaddr *sa,
		      socklen_t len)
{
	if (getnameinfo(sa, len, p->name, sizeof(p->name), NULL, 0,
			NI_NUMERICHOST))
		snprintf(p->name, sizeof(p->name), "the peer");
}

static bool call_one(const struct addrinfo *a, struct perf_peer *p, int64_t end)
{
	struct pollfd pfd = { .events = POLLOUT };
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC |
			SOCK_NONBLOCK, 0), one = 1, err = 0;
	socklen_t len = sizeof(err);

	if (fd < 0)
		return false;
	pfd.fd = fd;
	if (connect(fd, a->ai_addr, a->ai_addrlen)) {
		if (errno == EINPROGRESS) {
			err = ETIMEDOUT;
			if (poll(&pfd, 1, left_ms(end)) == 1 &&
			    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
				err = errno;
		} else {
			err = errno;
		}
	}
	if (err) {
		close(fd);
		errno = err;
		return false;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	p->fd = fd;
	name_peer(p, a->ai_addr, a->ai_addrlen);
	return true;
}

bool perf_connect(const struct perf_options *o, struct perf_peer *p)
{
	int64_t end = now_ms() + 1000LL * o->wait;
	struct addrinfo *list, *a;
	bool there = false;
	int err = 0;

	p->timeout = o->timeout;
	if (!resolve(o->host, o->tcp_port, 0, &list))
		return false;
	do {
		for (a = list; a && !there; a = a->ai_next) {
			there = call_one(a, p, end);
			err = errno;
		}
		/* the server may not have started yet */
		if (!there && (err == ECONNREFUSED || err == EHOSTUNREACH ||
			       err == ENETUNREACH))
			poll(NULL, 0, RETRY_MS);
		else
			break;
	} while (left_ms(end));
	freeaddrinfo(list);
	if (!there)
		complain("%s port %u: %s%s", o->host, o->tcp_port,
			 strerror(err), err == ECONNREFUSED ?
			 ": start \"peerlane perf\" there first" : "");
	return there;
}

int perf_listen(const struct perf_options *o)
{
	struct addrinfo *list, *a;
	int fd = -1, one = 1, err = 0;

	if (!resolve(o->bind, o->tcp_port, AI_PASSIVE, &list))
		return -1;
	for (a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC |
			    SOCK_NONBLOCK, 0);
		if (fd < 0) {
			err = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 4)) {
			err = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		complain("port %u cannot be listened on: %s", o->tcp_port,
			 strerror(err));
	return fd;
}

bool perf_accept(const struct perf_options *o, int listener,
		 struct perf_peer *p)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	struct sockaddr_storage sa;
	int64_t end = now_ms() + 1000LL * o->wait;
	int one = 1, ms;
	socklen_t len;

	p->timeout = o->timeout;
	while ((ms = left_ms(end))) {
		if (poll(&pfd, 1, ms) < 1)
			continue;
		len = sizeof(sa);
		p->fd = accept4(listener, (struct sockaddr *)&sa, &len,
				SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (p->fd < 0)
			continue;	/* it has gone again */
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		name_peer(p, (struct sockaddr *)&sa, len);
		return true;
	}
	complain("no client within %d s (--wait): start \"peerlane perf HOST\" "
		 "on the other host", o->wait);
	return false;
}

/* ---- messages ---- */

static bool gone(struct perf_peer *p, const char *what, int err)
{
	complain("%s: %s", p->name, err == ETIMEDOUT ? what :
		 err != ECONNRESET ? strerror(err) :
		 "the connection was closed: the program there has ended, its "
		 "last words say why");
	return false;
}

bool perf_send(struct perf_peer *p, const struct perf_message *m)
{
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY];
	int err = socket_move(p->fd, buf, perf_encode(m, buf), true,
			      now_ms() + 1000LL * p->timeout);

	return !err || gone(p, "it accepts no more messages", -err);
}

static bool take(struct perf_peer *p, uint8_t *buf, size_t n, int64_t end)
{
	int err = socket_move(p->fd, buf, n, false, end);

	return !err || gone(p, "no answer in time (--timeout)", -err);
}

bool perf_recv(struct perf_peer *p, enum perf_type want, int timeout,
	       struct perf_message *m)
{
	int64_t end = now_ms() + 1000LL * (timeout < 0 ? p->timeout : timeout);
	uint8_t buf[PERF_MAX_BODY];
	enum perf_type type;
	char why[256];
	int n;

	if (!take(p, buf, PERF_HEADER, end))
		return false;
	n = perf_decode_header(buf, &type, why, sizeof(why));
	if (n >= 0 && !take(p, buf, (size_t)n, end))
		return false;
	if (n < 0 || !perf_decode(type, buf, (size_t)n, m, why, sizeof(why))) {
		complain("%s: %s", p->name, why);
		perf_refuse(p, why);
		return false;
	}
	if (type == PERF_REFUSE) {
		complain("%s refuses: %s", p->name, m->refuse);
		return false;
	}
	if (want && type != want) {
		snprintf(why, sizeof(why), "a message of type %d came where "
			 "%d should", type, want);
		complain("%s: %s", p->name, why);
		perf_refuse(p, why);
		return false;
	}
	return true;
}

void perf_refuse(struct perf_peer *p, const char *why)
{
	uint8_t buf[PERF_HEADER + PERF_MAX_BODY];
	struct perf_message m = { .type = PERF_REFUSE };

	snprintf(m.refuse, sizeof(m.refuse), "%.*s", PERF_TEXT - 1, why);
	/* the last word: if it does not get through, so be it */
	if (send(p->fd, buf, perf_encode(&m, buf), MSG_NOSIGNAL | MSG_DONTWAIT) <
	    0)
		return;
}

int perf_peek(struct perf_peer *p)
{
	char c;
	ssize_t r = recv(p->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return r > 0 ? 1 : r < 0 && (errno == EAGAIN || errno == EINTR) ? 0 :
	       -1;
}
