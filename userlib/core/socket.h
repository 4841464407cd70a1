/* SPDX-License-Identifier: MIT */
/* So many bytes through a socket in time, for the link and for peerlane perf. */
#ifndef PEERLANE_CORE_SOCKET_H
#define PEERLANE_CORE_SOCKET_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

static inline int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until @deadline, of now_ms(), for poll() */
static inline int left_ms(int64_t deadline)
{
	int64_t left = deadline - now_ms();

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/*
 * Sends @size bytes of @buf, or receives them.  0, or -errno: -ETIMEDOUT at @deadline,
 * -ECONNRESET when the other end has closed the socket.
 */
static inline int socket_move(int fd, uint8_t *buf, size_t size, bool out,
			      int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = out ? POLLOUT : POLLIN };
	size_t at = 0;
	int left;
	ssize_t n;

	while (at < size) {
		/* what is there counts, however late this looks */
		left = left_ms(deadline);
		n = out ? send(fd, buf + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL) :
			  recv(fd, buf + at, size - at, MSG_DONTWAIT);
		if (n > 0) {
			at += (size_t)n;
			continue;
		}
		if (!n || errno == EPIPE)
			return -ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		if (!left)
			return -ETIMEDOUT;
		if (poll(&p, 1, left) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

#endif
