// SPDX-License-Identifier: MIT
/* Waiting for links to move, and taking leave of their peers. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "link_internal.h"
#include "peerlane/peerlane.h"

#define LINKS_MAX	64
#define BYE_MS		1000

/* The peer's process has let go of its socket; what it sent before counts */
static void peer_gone(struct pln_link *link)
{
	/* more than that cannot be left, if the peer is honest */
	unsigned int most = RX_SLOTS + link->depth + TX_SLOTS;

	while (most-- && link_progress(link))
		;
	link_fail(link, -ECONNRESET, PEER_GONE);
}

static void clear_events(struct pln_link *link)
{
	struct ibv_cq *cq;
	void *context;

	while (!verbs_lib.get_cq_event(link->channel, &cq, &context))
		verbs_lib.ack_cq_events(cq, 1);
}

/* Ask for an event; what came before that is not announced, so look again */
static bool arm_and_look(struct pln_link *link)
{
	int r;

	errno = 0;
	r = ibv_req_notify_cq(link->cq, 0);
	if (r)
		link_fail(link, verbs_errno(r), "the completion queue "
			  "gives no notification: %s",
			  pln_strerror(verbs_errno(r)));
	link_drain(link);
	return !link->error;
}

static void fds_of(const struct pln_link *link, struct pollfd fds[2])
{
	fds[0] = (struct pollfd){ .fd = link->channel->fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = link->fd, .events = POLLRDHUP };
}

/* What poll() has said of them */
static void heed(struct pln_link *link, const struct pollfd fds[2])
{
	clear_events(link);
	if (fds[0].revents & ~POLLIN)
		link_fail(link, -ENODEV, "the RDMA device is "
			  "gone: its completion channel has ended");
	if (fds[1].revents)
		peer_gone(link);
}

/* Has it done something, or has something happened, since the last question? */
static bool look_again(struct pln_link *link)
{
	uint64_t before = link->completions;
	bool done;

	arm_and_look(link);
	done = link_progress(link);
	return done || link->completions != before || link->news;
}

/*
 * Sleep until something may have happened on a link.  Returns false when the
 * deadline has passed.
 */
static bool doze(struct pln_link **links, unsigned int count, int64_t deadline)
{
	struct pollfd fds[2 * LINKS_MAX];
	int64_t now = now_ms(), left = deadline - now;
	bool done = false;

	if (left <= 0)
		return false;
	for (unsigned int i = 0; i < count; i++) {
		fds_of(links[i], &fds[2 * i]);
		done |= look_again(links[i]);
		if (links[i]->refused_until && !links[i]->error &&
		    left > links[i]->refused_until - now)
			left = links[i]->refused_until - now;
	}
	if (done)
		return true;
	left = left < 0 ? 0 : left > 60000 ? 60000 : left;
	if (poll(fds, 2 * count, (int)left) < 0) {
		int err = -errno;

		for (unsigned int i = 0; i < count && err != -EINTR; i++)
			link_fail(links[i], err, "poll: %s",
				  pln_strerror(err));
		return true;
	}
	for (unsigned int i = 0; i < count; i++)
		heed(links[i], &fds[2 * i]);
	return true;
}

/* ---- the descriptor ---- */

static void set_wake(struct pln_link *link, bool on)
{
	uint64_t n = 1;
	ssize_t r;

	/* Neither can fail but by being so already */
	r = on ? write(link->wake, &n, sizeof(n)) :
		 read(link->wake, &n, sizeof(n));
	(void)r;
}

/* Something is to be done, or may have been seen, that no event tells of */
void link_wake(struct pln_link *link)
{
	if (link->wake >= 0)
		set_wake(link, true);
}

/* The descriptor is ready from now on when something happens, or if there is more to do */
static void rearm(struct pln_link *link)
{
	struct itimerspec when = { .it_value.tv_sec = 0 };
	struct pollfd fds[2];

	if (link->wake < 0)
		return;
	set_wake(link, true);
	fds_of(link, fds);
	if (poll(fds, 2, 0) < 0)
		return;
	heed(link, fds);
	if (look_again(link) || link->error || link->arrived != link->handed)
		return;
	set_wake(link, false);
	when.it_value.tv_sec = link->refused_until / 1000;
	when.it_value.tv_nsec = link->refused_until % 1000 * 1000000;
	timerfd_settime(link->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void link_close_fd(struct pln_link *link)
{
	int *fds[] = { &link->timer, &link->wake, &link->epoll };

	for (int i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int add(struct pln_link *link, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };

	return fd < 0 || epoll_ctl(link->epoll, EPOLL_CTL_ADD, fd, &e) ?
	       -errno : 0;
}

static int make_fd(struct pln_link *link)
{
	int err = 0;

	link->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (link->epoll < 0)
		return -errno;
	link->wake = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	err = add(link, link->wake, EPOLLIN);
	if (!err) {
		link->timer = timerfd_create(CLOCK_MONOTONIC,
					     TFD_CLOEXEC | TFD_NONBLOCK);
		err = add(link, link->timer, EPOLLIN);
	}
	if (!err)
		err = add(link, link->channel->fd, EPOLLIN);
	if (!err)
		err = add(link, link->fd, EPOLLRDHUP);
	if (err)
		link_close_fd(link);
	return err;
}

/* Until there is nothing to do, something is new, or the time is over */
static void work(struct pln_link *link, int64_t deadline)
{
	while (link_progress(link) && !link->news &&
	       now_ms() < deadline)
		;
}

static int usable(const struct pln_link *link)
{
	if (!link)
		return -EINVAL;
	if (!link->connected)
		return link->error ? link->error : -ENOTCONN;
	return 0;
}

int pln_link_fd(struct pln_link *link)
{
	int err = usable(link);

	if (!err && link->epoll < 0)
		err = make_fd(link);
	return err ? err : link->epoll;
}

static int poll_links(struct pln_link **links, unsigned int count,
		      int64_t deadline)
{
	int err = 0, n;

	do {
		n = 0;
		for (unsigned int i = 0; i < count; i++) {
			struct pln_link *link = links[i];

			work(link, deadline);
			n += link->news || link->arrived != link->handed;
			link->news = false;
			if (link->error)
				err = link->error;
		}
		if (n || err)
			return n ? n : err;
	} while (doze(links, count, deadline));
	return 0;
}

int pln_link_poll(struct pln_link **links, unsigned int count, int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;
	int err = 0, n;

	if (!links || !count || count > LINKS_MAX || timeout_ms < 0)
		return -EINVAL;
	for (unsigned int i = 0; i < count && !err; i++)
		err = usable(links[i]);
	if (err)
		return err;
	n = poll_links(links, count, deadline);
	for (unsigned int i = 0; i < count; i++)
		rearm(links[i]);
	return n;
}

int pln_link_wait(struct pln_link *link, int64_t put, int timeout_ms)
{
	int64_t deadline = now_ms() + timeout_ms;
	int err = usable(link);
	uint64_t want;
	bool news;

	if (err)
		return err;
	if (put < 0 || timeout_ms < 0)
		return -EINVAL;
	want = put ? (uint64_t)put : link->puts_given;
	if (want > link->puts_given)
		return -ERANGE;
	/* what is new stays new, for pln_link_poll() */
	news = link->news;
	do {
		do {
			link->news = false;
			work(link, deadline);
			news |= link->news;
		} while (link->news && link->puts_done < want && !link->error);
		if (link->puts_done >= want || link->error)
			break;
	} while (doze(&link, 1, deadline));
	link->news |= news;
	link_wake(link);
	if (link->puts_done >= want)
		return 0;
	link_settle(link, true);
	return link->error ? link->error : -ETIMEDOUT;
}

/* A peer that hears it knows more than one that only sees a socket close */
void link_say_bye(struct pln_link *link)
{
	struct message m = {
		.type = MESSAGE_BYE,
		.chunk = (uint32_t)-link->error,
	};
	int64_t deadline = now_ms() + BYE_MS, left = BYE_MS;

	if (!link->connected || link->broken || link->bye ||
	    link->error == -ECONNRESET)
		return;
	link->error = 0;
	link_drain(link);
	if (link->error || link->bye ||
	    link->tx_posted - link->tx_done >= TX_SLOTS || link_post(link, NULL, &m))
		return;
	/* all that was sent before has arrived when this has */
	while (!link->bye && !link->error && link->tx_done < link->tx_posted) {
		struct pollfd fds[] = {
			{ .fd = link->channel->fd, .events = POLLIN },
			{ .fd = link->fd, .events = POLLRDHUP },
		};

		if (left <= 0 || !arm_and_look(link))
			break;
		if (link->tx_done == link->tx_posted)
			break;
		if (poll(fds, 2, (int)left) < 0 && errno != EINTR)
			break;
		if (fds[1].revents || fds[0].revents & ~POLLIN)
			break;
		clear_events(link);
		left = deadline - now_ms();
	}
}
