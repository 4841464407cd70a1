// SPDX-License-Identifier: MIT
/*
 * Everything that a link calls fails once, at each place that calls it: the
 * errno, the words, and that nothing is left behind.
 */
#include "link_pair.h"
#include "sites_run.h"

#define PUTS	20		/* more than a link begins with */

static bool unnamed, idle;

static void site_due(void)
{
	fake_due = true;
}

static int site_error(const struct site *site)
{
	static const struct {
		const char *what;
		int error;
	} own[] = {
		{ "calloc", -ENOMEM }, { "aligned_alloc", -ENOMEM },
		{ "getrandom", -EIO }, { "getsockopt", -ENOTSOCK },
		{ "fcntl", -EMFILE }, { "send", -EHOSTUNREACH },
		{ "recv", -EHOSTUNREACH }, { "poll", -ENOMEM },
		{ "query_gid", -EADDRNOTAVAIL }, { "ibv_poll_cq", -EIO },
		{ "epoll_create1", -EMFILE }, { "timerfd_create", -EMFILE },
		{ "eventfd", -EMFILE },
	};

	for (unsigned int i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i].what, site->what))
			return own[i].error;
	return -ENOSPC;		/* fake_nic.c's */
}

/* An error has words, and what the device kept is the only thing left */
static int over(int err, const char *words)
{
	sites_on = false;
	if (err && !words[0])
		return 1000;
	/* what is called by its name was not called */
	fake_due = false;
	fake_hold = false;
	fake_run(~0u);
	fake_reap();
	return fake_objects ? 1001 : err;
}

static int t_open(void)
{
	struct pln_link_options o = { .size = sizeof(o),
				      .device = unnamed ? NULL : "fake0" };
	struct pln_link *link;
	int err;

	sites_on = true;
	err = pln_link_open(&link, &o);
	if (!err)
		pln_link_close(link);
	return over(err, pln_link_reason(NULL));
}

static int first_error(void)
{
	return a->error ? a->error : b->error;
}

static int move(void)
{
	int64_t put = 0;

	for (unsigned int i = 0; i < PUTS && put >= 0; i++)
		put = put_bytes(a, &from, i, 2 * CHUNK, 0, i, i);
	if (put < 0)
		return (int)put;
	for (unsigned int i = 0; i < 2000 && !first_error(); i++) {
		struct pln_link_arrival v = { .size = sizeof(v) };

		if (a->puts_done == PUTS && b->handed == PUTS)
			return idle && pln_link_poll(both, 2, 50) < 0 ?
			       first_error() : first_error();
		if (pln_link_poll(both, 2, 0) < 0)
			break;
		pln_link_arrival(b, &v);
	}
	return first_error() ? first_error() : 1002;
}

static uint32_t ways[2];

static int t_life(void)
{
	struct meeting m = { .timeout = 5000 };
	const char *words;
	pthread_t thread;
	int err;

	if (pair_open(ways[0], ways[1]))
		return 1003;
	m.link = b;
	m.fd = ends[1];
	pthread_create(&thread, NULL, meet, &m);
	sites_on = true;
	err = pln_link_connect(a, ends[0], 5000);
	words = pln_link_reason(a);
	sites_on = false;
	if (err)
		shutdown(ends[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	sites_on = !err;
	if (!err) {
		err = move();
		words = a->error ? pln_link_reason(a) : pln_link_reason(b);
		if (err == -ENOMEM && !first_error())
			words = "out of memory";	/* of one put */
	}
	if (err == -ENOTSOCK)
		words = "no socket";	/* and the link is as it was */
	if (err && !words[0])
		err = 1000;
	/* a goodbye that nobody hears takes a moment, but not a second */
	fake_hold = true;
	shutdown(ends[1], SHUT_RDWR);
	pln_link_close(a);
	sites_on = false;
	fake_due = false;
	a = NULL;
	pair_down();
	return over(err, err ? "said above" : "");
}

/* A write is refused, and whether the peer has gone cannot be told */
static int t_refused(void)
{
	int err;

	if (!pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN))
		return 1003;
	sites_on = true;
	fake_next_status = IBV_WC_REM_ACCESS_ERR;
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	pln_link_wait(a, 1, 5000);
	sites_on = false;
	fake_next_status = IBV_WC_SUCCESS;
	fake_due = false;
	err = a->error && pln_link_reason(a)[0] ? a->error : 1000;
	pair_down();
	return over(err, "said above");
}

/* Nothing happens: one look, and one sleep */
static int t_idle(void)
{
	int err;

	if (!pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN))
		return 1003;
	sites_on = true;
	pln_link_poll(both, 2, 200);
	sites_on = false;
	fake_due = false;
	err = first_error();
	pair_down();
	return over(err, err ? "said above" : "");
}

/* Nothing happens, and a descriptor is to tell of it */
static int t_fd(void)
{
	int err;

	if (!pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN))
		return 1003;
	sites_on = true;
	err = pln_link_fd(a);
	if (err >= 0) {
		pln_link_poll(&a, 1, 0);
		err = first_error();
	}
	sites_on = false;
	fake_due = false;
	pair_down();
	return over(err, "said by errno");
}

int main(void)
{
	int tries;

	fake_install();
	sites_run("opening a named device", t_open);
	unnamed = true;
	sites_run("opening any device", t_open);
	fake_port.state = IBV_PORT_DOWN;
	sites_run("opening no device, as no port is active", t_open);
	fake_install();
	ways[0] = PLN_MR_PLAIN;
	ways[1] = PLN_MR_PLAIN;
	sites_run("direct", t_life);
	idle = true;
	ways[0] = PLN_MR_STAGED;
	ways[1] = PLN_MR_STAGED;
	sites_run("staged, and then idle", t_life);
	sites_run("idle", t_idle);
	sites_run("refused by the peer's device", t_refused);
	sites_run("a descriptor", t_fd);
	/* Whether a goodbye has to wait depends on how quick the other end is */
	for (tries = 0; tries < 5 && sites_left(); tries++)
		sites_run("staged, and then idle, once more", t_life);
	/*
	 * A GID less to choose from, twice; an event less; the poll of a goodbye,
	 * the one whether the peer has gone, and that of a descriptor; seven objects
	 * that the device does not give up.  Posting, polling and asking for events where it is for a
	 * goodbye, if the threads are so that it fails there.
	 */
	sites_all(13, 0, 3);
	return ktap_end();
}
