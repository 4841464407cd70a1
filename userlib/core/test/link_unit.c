// SPDX-License-Identifier: MIT
/* Links: what they move and count, wrong use, and every way to fail. */
#include <malloc.h>
#include <poll.h>

#include "link_pair.h"

static struct pln_link_stats stats_of(struct pln_link *link)
{
	struct pln_link_stats s = { .size = sizeof(s) };

	pln_link_stats(link, &s);
	return s;
}

static bool done(struct pln_link *link, uint64_t puts)
{
	for (int i = 0; i < 10000 && stats_of(link).puts_done < puts; i++)
		if (pln_link_poll(both, 2, 0) < 0)
			return false;
	return stats_of(link).puts_done == puts;
}

static bool next_is(struct pln_link *link, uint64_t offset, uint64_t length,
		    uint64_t tag)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	int err = -EAGAIN;

	for (int i = 0; i < 10000 && err == -EAGAIN; i++) {
		err = pln_link_arrival(link, &v);
		if (err == -EAGAIN)
			pln_link_poll(both, 2, 0);
	}
	return !err && v.buffer == 0 && v.offset == offset &&
	       v.length == length && v.tag == tag;
}

static void fill(uint8_t *p, unsigned int seed)
{
	for (unsigned int i = 0; i < SIZE; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

/* --- moving --------------------------------------------------------------------------- */

static void t_ways(uint32_t from_way, uint32_t to_way, const char *what)
{
	static const uint64_t sizes[] = { 0, 1, CHUNK - 1, CHUNK, CHUNK + 1,
					  77777, SIZE - 5 };
	bool good = pair_up(from_way, to_way), whole = true;
	struct pln_link_stats s, t;
	uint64_t sum = 0;

	ktap(good, "%s: two ends meet", what);
	for (unsigned int i = 0; good && i < 7; i++) {
		fill(from.gpu, i);
		memset(to.gpu, 0xee, SIZE);
		good = put_bytes(a, &from, 3, sizes[i], 0, 5, i) == i + 1;
		good = good && done(a, i + 1) && next_is(b, 5, sizes[i], i);
		whole &= !memcmp(to.gpu + 5, from.gpu + 3, sizes[i]);
		for (uint64_t at = 0; at < SIZE; at++)
			if (at < 5 || at >= 5 + sizes[i])
				whole &= to.gpu[at] == 0xee;
		sum += sizes[i];
	}
	ktap(good, "%s: seven puts are done and arrive in order", what);
	ktap(whole, "%s: with their bytes, and nothing else is touched", what);
	s = stats_of(a);
	t = stats_of(b);
	ktap(s.bytes_put == sum && t.bytes_arrived == sum && s.puts == 7 &&
	     s.puts_done == 7 && t.arrivals == 7, "%s: both count that", what);
	ktap(s.bytes_direct == (from_way != PLN_MR_STAGED &&
				to_way != PLN_MR_STAGED ? sum : 0) &&
	     s.bytes_from_gpu == (from_way == PLN_MR_STAGED ? sum : 0) &&
	     s.bytes_for_staged == (to_way == PLN_MR_STAGED ? sum : 0) &&
	     t.bytes_to_gpu == (to_way == PLN_MR_STAGED ? sum : 0),
	     "%s: and by which way", what);
	pair_down();
	ktap(fake_objects == 0, "%s: nothing is left behind", what);
}

/* More than a receiver can hold, while nobody takes what arrives */
static void t_credits(void)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	unsigned int got = 0;
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	for (unsigned int i = 0; i < 300; i++)
		good &= put_bytes(a, &from, 0, 8, 0, 8 * i, i) == i + 1;
	for (unsigned int i = 0; i < 1000; i++)
		pln_link_poll(both, 2, 0);
	ktap(good && stats_of(a).puts_done == CREDITS &&
	     stats_of(b).arrivals == CREDITS,
	     "an end that takes nothing gets no more than %u puts", CREDITS);
	ktap(stats_of(a).stalls_credit == 1, "the other counts one stall");
	while (got < 300 && good) {
		int err = pln_link_arrival(b, &v);

		if (err == -EAGAIN)
			good = pln_link_poll(both, 2, 0) >= 0;
		else
			good = !err && v.tag == got++;
	}
	ktap(good && got == 300, "they all arrive when they are taken");
	ktap(pln_link_wait(a, 0, 0) == 0 && stats_of(a).puts_done == 300,
	     "and are done");
	pair_down();
}

static void t_pipeline(void)
{
	bool good = pair_up(PLN_MR_STAGED, PLN_MR_STAGED);

	fake_hold = true;
	ktap(good && put_bytes(a, &from, 0, 10 * CHUNK, 0, 0, 1) == 1 &&
	     fake_held() == 0, "a put of staged memory waits for a poll");
	pln_link_poll(both, 2, 20);
	pln_link_wait(a, 1, 20);
	ktap(fake_held() == 8 && stats_of(a).most_in_flight == 4,
	     "four chunks and their notices are under way, as deep as allowed");
	ktap(stats_of(a).copies_overlapped == 3,
	     "three were copied while others were under way");
	ktap(stats_of(a).stalls_depth == 1 && stats_of(a).chunks == 4,
	     "then sending waits");
	fake_run(4);
	pln_link_wait(a, 1, 20);
	ktap(stats_of(a).chunks == 6 && stats_of(a).most_in_flight == 4,
	     "two done, two more go");
	fake_hold = false;
	fake_run(~0u);
	ktap(done(a, 1) && stats_of(b).arrivals == 1, "all of it arrives");
	pair_down();
}

/* A look takes no longer for all that there is to do */
static void t_look(void)
{
	bool good = pair_up(PLN_MR_STAGED, PLN_MR_PLAIN);

	put_bytes(a, &from, 0, SIZE, 0, 0, 1);
	good &= pln_link_poll(&a, 1, 0) == 0;
	ktap(good && stats_of(a).chunks == 1,
	     "a look sends a chunk of %u, and returns", SIZE / CHUNK);
	ktap(done(a, 1) && next_is(b, 0, SIZE, 1), "many looks send all");
	pair_down();
}

static void t_waiting(void)
{
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
	int64_t before = now_ms();

	ktap(good && pln_link_poll(both, 2, 60) == 0 &&
	     now_ms() - before >= 60, "nothing happens for 60 ms");
	fake_hold = true;
	put_bytes(a, &from, 0, 1, 0, 0, 0);
	ktap(pln_link_wait(a, 1, 30) == -ETIMEDOUT, "a put takes too long");
	ktap(pln_link_wait(a, 2, 0) == -ERANGE &&
	     pln_link_wait(a, -1, 0) == -EINVAL &&
	     pln_link_wait(a, 1, -1) == -EINVAL,
	     "wrong questions to wait for");
	fake_hold = false;
	fake_run(~0u);
	ktap(pln_link_wait(a, 1, 1000) == 0, "then it is done");
	ktap(pln_link_poll(both, 2, 1000) == 2,
	     "both links have something new: a put done, an arrival");
	ktap(pln_link_poll(both, 2, 0) == 1, "the arrival stays new");
	pair_down();
}

/* --- the descriptor ---------------------------------------------------------------------- */

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

/* Only what the descriptors say is done; true: they fall silent, in time */
static bool falls_silent(const int fd[2])
{
	for (int i = 0; i < 10000; i++) {
		bool any = false;

		for (int n = 0; n < 2; n++) {
			if (!is_ready(fd[n]))
				continue;
			any = true;
			if (pln_link_poll(&both[n], 1, 0) < 0)
				return false;
		}
		if (!any)
			return true;
	}
	return false;
}

/* Like it, and takes @n arrivals at the second one */
static bool all_taken(const int fd[2], unsigned int n)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	unsigned int got = 0;

	for (int i = 0; i < 10000 && (is_ready(fd[0]) || is_ready(fd[1])); i++) {
		for (int k = 0; k < 2; k++)
			if (is_ready(fd[k]) && pln_link_poll(&both[k], 1, 0) < 0)
				return false;
		while (!pln_link_arrival(b, &v))
			got++;
	}
	return got == n && !is_ready(fd[0]) && !is_ready(fd[1]);
}

static void t_fd(void)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
	struct pln_link *alone;
	struct pollfd p;
	int fd[2];

	ktap(pln_link_fd(NULL) == -EINVAL && !pln_link_open(&alone, NULL) &&
	     pln_link_fd(alone) == -ENOTCONN, "links that have no descriptor");
	pln_link_close(alone);
	for (int i = 0; i < 2; i++)
		fd[i] = pln_link_fd(both[i]);
	ktap(good && fd[0] >= 0 && fd[1] >= 0 && pln_link_fd(a) == fd[0],
	     "connected ones have one each");
	ktap(is_ready(fd[0]) && is_ready(fd[1]) && falls_silent(fd),
	     "ready at first, and silent when there is nothing to do");
	fake_hold = true;
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	ktap(is_ready(fd[0]) && falls_silent(fd), "so it is when a put is under way");
	fake_hold = false;
	fake_run(~0u);
	ktap(is_ready(fd[0]) && is_ready(fd[1]), "its end makes both ready");
	ktap(pln_link_poll(&a, 1, 0) == 1 && pln_link_poll(&b, 1, 0) == 1 &&
	     is_ready(fd[1]) && pln_link_poll(&b, 1, 0) == 1,
	     "and stays so where an arrival waits");
	ktap(!pln_link_arrival(b, &v) && falls_silent(fd), "until it is taken");
	fake_hold = true;
	put_bytes(a, &from, 0, 9, 0, 0, 2);
	good = falls_silent(fd) && pln_link_wait(a, 2, 0) == -ETIMEDOUT;
	ktap(good && is_ready(fd[0]) && falls_silent(fd),
	     "what was seen by a wait is looked at again");
	fake_hold = false;
	fake_run(~0u);
	ktap(all_taken(fd, 1), "then the put is done");
	for (unsigned int i = 0; i < 300; i++)
		put_bytes(a, &from, 0, 8, 0, 8 * i, i);
	ktap(all_taken(fd, 300), "nothing is forgotten where credits are short");
	fake_next_status = IBV_WC_REM_ACCESS_ERR;
	put_bytes(a, &from, 0, 9, 0, 0, 3);
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	for (int i = 0; i < 100 && !*pln_link_reason(a); i++) {
		good = poll(&p, 1, 30000) == 1;
		pln_link_poll(&a, 1, 0);
	}
	ktap(good && strstr(pln_link_reason(a), "refused the write"),
	     "a refusal that is not told at once: %s", pln_link_reason(a));
	pln_link_poll(&a, 1, 0);
	ktap(pln_link_poll(&a, 1, 0) == -EACCES && is_ready(fd[0]),
	     "a link that failed is ready for ever");
	pair_down();

	good = pair_up(PLN_MR_STAGED, PLN_MR_STAGED);
	for (int i = 0; i < 2; i++)
		fd[i] = pln_link_fd(both[i]);
	good = good && falls_silent(fd);
	put_bytes(a, &from, 0, SIZE, 0, 0, 1);
	ktap(good && all_taken(fd, 1) && stats_of(a).puts_done == 1,
	     "staged memory is moved, and no more is said");
	shutdown(ends[1], SHUT_RDWR);
	ktap(is_ready(fd[0]), "an end of the peer makes it ready");
	pln_link_poll(&a, 1, 0);
	pln_link_poll(&a, 1, 0);
	ktap(pln_link_poll(&a, 1, 0) == -ECONNRESET && is_ready(fd[0]),
	     "and is found: %s", pln_link_reason(a));
	pair_down();
	ktap(fake_objects == 0, "nothing is left behind");
}

/* --- wrong use --------------------------------------------------------------------------- */

static int open_with(struct pln_link_options o)
{
	struct pln_link *link;
	int err;

	if (!o.size)
		o.size = sizeof(o);
	err = pln_link_open(&link, &o);
	if (!err)
		pln_link_close(link);
	return err;
}

#define OPEN(...) open_with((struct pln_link_options){ __VA_ARGS__ })

static void t_options(void)
{
	struct ibv_pd pd;

	ktap(OPEN(.size = 8) == -EINVAL, "another size of options");
	ktap(OPEN(.reserved = { 1 }) == -EINVAL &&
	     OPEN(.reserved = { 0, 0, 0, 1 }) == -EINVAL, "reserved fields");
	ktap(OPEN(.sl = 16) == -EINVAL, "a service level beyond 15");
	ktap(OPEN(.port = 256) == -EINVAL, "a port beyond 255");
	ktap(OPEN(.gid = 257) == -EINVAL, "a GID index beyond 255");
	ktap(OPEN(.chunk = 1000) == -EINVAL &&
	     OPEN(.chunk = (1u << 30) + 4096) == -EINVAL, "odd chunks");
	ktap(OPEN(.depth = 257) == -EINVAL, "too deep");
	ktap(OPEN(.retries = 8) == -EINVAL, "too many retries");
	ktap(OPEN(.timeout = 7) == -EINVAL && OPEN(.timeout = 23) == -EINVAL,
	     "odd timeouts");
	ktap(OPEN(.device = "fake0", .pd = &pd) == -EINVAL &&
	     strstr(pln_link_reason(NULL), "both device and pd"),
	     "a device and a domain, with the reason");
	ktap(pln_link_open(NULL, NULL) == -EINVAL, "nowhere to put it");
	ktap(OPEN(.device = "fake1") == -ENODEV &&
	     strstr(pln_link_reason(NULL), "fake1"), "no such device");
	fake_port.max_msg_sz = 65536;
	ktap(OPEN(.device = "fake0") == -EMSGSIZE, "chunks beyond the port's");
	fake_port.state = IBV_PORT_DOWN;
	ktap(OPEN(.device = "fake0") == -ENETDOWN, "a port that is down");
	ktap(OPEN(.port = 0) == -ENODEV, "no device with an active port");
	fake_install();
	ktap(OPEN(.gid = 3) == -EADDRNOTAVAIL && OPEN(.gid = 9) ==
	     -EADDRNOTAVAIL, "no such GID");
	fake_ipv4_gid = 0xff;
	ktap(OPEN(.port = 1) == -EADDRNOTAVAIL, "no GID at all");
	fake_ipv4_gid = 1;
	ktap(OPEN(.port = 1) == 0 && !pln_link_reason(NULL)[0],
	     "all is well, and there is nothing to say");
	ktap(fake_objects == 0, "nothing is left of all these");
}

static void t_load(void)
{
	verbs_lib.loaded = false;
	ktap(OPEN(.port = 1) == -ENOENT &&
	     strstr(pln_link_reason(NULL), "install rdma-core"),
	     "no libibverbs: %s", pln_link_reason(NULL));
	loads = "libc.so.6";
	ktap(OPEN(.port = 1) == -ENOSYS &&
	     strstr(pln_link_reason(NULL), "has no ibv_"),
	     "one that lacks functions: %s", pln_link_reason(NULL));
	fake_install();
}

static void t_misuse(void)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	struct pln_link_buffer info = { .size = sizeof(info) };
	struct pln_link_stats s = { .size = sizeof(s) };
	struct pln_link *none = NULL;
	int fds[2], other;

	pair_open(PLN_MR_PLAIN, PLN_MR_PLAIN);
	ktap(put_bytes(a, &from, 0, 1, 0, 0, 0) == -ENOTCONN &&
	     pln_link_poll(both, 2, 0) == -ENOTCONN &&
	     pln_link_wait(a, 0, 0) == -ENOTCONN &&
	     pln_link_arrival(a, &v) == -ENOTCONN &&
	     pln_link_peer(a, 0, &info) == -ENOTCONN, "not yet connected");
	ktap(pln_link_connect(a, -1, 0) == -EBADF && !pipe(fds) &&
	     pln_link_connect(a, fds[0], 0) == -ENOTSOCK, "no socket");
	close(fds[0]);
	close(fds[1]);
	ktap(pln_link_share(a, NULL) == -EINVAL &&
	     pln_link_share(NULL, &from) == -EINVAL, "nothing to share");
	for (int i = 1; i < PLN_LINK_BUFFERS; i++)
		if (pln_link_share(b, &to) != i)
			break;
	ktap(pln_link_share(b, &to) == -ENOSPC, "no more than 16 buffers");
	ktap(!meet_both(&other) && !other, "then they meet");
	ktap(pln_link_connect(a, ends[0], 0) == -EISCONN &&
	     pln_link_share(b, &to) == -EISCONN, "but once");
	ktap(pln_link_peer(a, 15, &info) == 0 && info.length == SIZE &&
	     info.way == PLN_MR_PLAIN && pln_link_peer(a, 16, &info) ==
	     -ERANGE && pln_link_peer(b, 0, &info) == -ERANGE,
	     "each knows what the other shares");
	info.size = 1;
	v.size = 1;
	s.size = 1;
	ktap(pln_link_peer(a, 0, &info) == -EINVAL &&
	     pln_link_arrival(a, &v) == -EINVAL &&
	     pln_link_stats(a, &s) == -EINVAL, "structures of another size");
	ktap(put_bytes(a, &from, SIZE, 1, 0, 0, 0) == -ERANGE &&
	     put_bytes(a, &from, 1, SIZE, 0, 0, 0) == -ERANGE &&
	     put_bytes(a, &from, UINT64_MAX, 2, 0, 0, 0) == -ERANGE &&
	     put_bytes(a, &from, 0, 2, 0, SIZE - 1, 0) == -ERANGE &&
	     put_bytes(a, &from, 0, 2, 0, UINT64_MAX, 0) == -ERANGE &&
	     put_bytes(a, &from, 0, 1, 16, 0, 0) == -ERANGE &&
	     put_bytes(b, &to, 0, 1, 0, 0, 0) == -ERANGE,
	     "puts beyond either end");
	ktap(put_bytes(a, NULL, 0, 1, 0, 0, 0) == -EINVAL &&
	     put_bytes(NULL, &from, 0, 1, 0, 0, 0) == -EINVAL,
	     "puts of nothing");
	ktap(pln_link_poll(NULL, 1, 0) == -EINVAL &&
	     pln_link_poll(both, 0, 0) == -EINVAL &&
	     pln_link_poll(both, 65, 0) == -EINVAL &&
	     pln_link_poll(both, 2, -1) == -EINVAL &&
	     pln_link_poll(&none, 1, 0) == -EINVAL, "wrong polls");
	ktap(put_bytes(a, NULL, 0, 0, 0, SIZE, 9) == 1 && next_is(b, SIZE, 0, 9),
	     "a put of no bytes only tells");
	info.size = sizeof(info);
	ktap(!pln_link_pd(NULL) && pln_link_stats(NULL, &s) == -EINVAL &&
	     pln_link_connect(NULL, ends[0], 0) == -EINVAL &&
	     pln_link_wait(NULL, 0, 0) == -EINVAL &&
	     pln_link_peer(NULL, 0, &info) == -EINVAL &&
	     pln_link_arrival(NULL, &v) == -EINVAL, "no link");
	ktap(pln_link_connect(a, ends[0], -1) == -EINVAL, "no time");
	pln_link_close(NULL);
	/* or the peer's device would refuse, and the peer be told of a fault */
	ktap(pln_link_share(a, &to) == -EINVAL &&
	     put_bytes(a, &to, 0, 1, 0, 0, 0) == -EINVAL,
	     "memory of another protection domain");
	pair_down();
}

/* A program that is newer than the library */
static void t_larger(void)
{
	struct { struct pln_link_options o; uint64_t more[2]; } o = { 0 };
	struct { struct pln_link_buffer b; uint64_t more[2]; } info;
	struct { struct pln_link_arrival v; uint64_t more[2]; } v;
	struct { struct pln_link_stats s; uint64_t more[2]; } s;
	struct { struct pln_link_request r; uint64_t more[2]; } r = {
		.r = { .mr = &from, .length = 9, .at = 5, .tag = 77 },
	};
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
	struct pln_link *link = NULL;

	o.o.size = sizeof(o);
	ktap(!pln_link_open(&link, &o.o), "options that are larger");
	pln_link_close(link);
	o.more[1] = 1;
	ktap(pln_link_open(&link, &o.o) == -EINVAL &&
	     strstr(pln_link_reason(NULL), "does not know"),
	     "with something unknown: %s", pln_link_reason(NULL));
	memset(&info, 0xff, sizeof(info));
	memset(&v, 0xff, sizeof(v));
	memset(&s, 0xff, sizeof(s));
	ktap(pln_link_stats(a, &s.s) == -EINVAL, "a size that was never set");
	info.b.size = sizeof(info);
	v.v.size = sizeof(v);
	s.s.size = sizeof(s);
	good &= pln_link_put(a, NULL) == -EINVAL &&
		pln_link_put(a, &r.r) == -EINVAL;	/* no size */
	r.r.size = sizeof(r.r) - 1;
	good &= pln_link_put(a, &r.r) == -EINVAL;
	r.r.size = sizeof(r);
	r.more[1] = 1;
	good &= pln_link_put(a, &r.r) == -EINVAL;
	r.more[1] = 0;
	r.r.reserved[3] = 1;
	good &= pln_link_put(a, &r.r) == -EINVAL;
	r.r.reserved[3] = 0;
	ktap(good, "a request without a size, a smaller one, with something unknown");
	ktap(pln_link_put(a, &r.r) == 1, "a larger request");
	while (good && !stats_of(b).arrivals)
		good = pln_link_poll(both, 2, 1000) > 0;
	ktap(good && !pln_link_arrival(b, &v.v) && v.v.tag == 77 &&
	     v.v.length == 9 && v.v.offset == 5 &&
	     v.v.size == sizeof(v) && !v.more[0] && !v.more[1],
	     "a larger arrival: the rest is 0");
	ktap(!pln_link_peer(a, 0, &info.b) && info.b.length == SIZE &&
	     info.b.size == sizeof(info) && !info.more[0] && !info.more[1] &&
	     !pln_link_stats(a, &s.s) && s.s.puts == 1 &&
	     s.s.size == sizeof(s) && !s.more[0] && !s.more[1],
	     "a larger buffer, larger statistics");
	pair_down();
}

static void t_many_puts(void)
{
	bool good = pair_up(PLN_MR_STAGED, PLN_MR_PLAIN);
	int64_t put = 0;

	for (unsigned int i = 0; i < PUTS_MAX && good; i++) {
		put = put_bytes(a, &from, 0, 1, 0, 0, i);
		good = put == i + 1;
	}
	ktap(good, "65536 puts may wait");
	ktap(put_bytes(a, &from, 0, 1, 0, 0, 0) == -EAGAIN, "and no more");
	pair_down();
	ktap(fake_objects == 0, "closing drops them");
}

/* --- failures ---------------------------------------------------------------------------- */

static void t_status(enum ibv_wc_status status, int err, const char *word)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	good &= put_bytes(a, &from, 0, 9, 0, 0, 1) == 1 && next_is(b, 0, 9, 1);
	good &= pln_link_wait(a, 1, 1000) == 0;
	fake_next_status = status;
	good &= put_bytes(a, &from, 0, 9, 0, 0, 2) == 2;
	ktap(good && pln_link_wait(a, 2, 1000) == err,
	     "status %d becomes %s", status, strerrorname_np(-err));
	ktap(strstr(pln_link_reason(a), word) != NULL, "in words: %s",
	     pln_link_reason(a));
	ktap(put_bytes(a, &from, 0, 9, 0, 0, 3) == err &&
	     pln_link_poll(&a, 1, 0) == 1 && pln_link_poll(&a, 1, 0) == err &&
	     pln_link_arrival(a, &v) == err && pln_link_wait(a, 1, 0) == 0,
	     "and stays, but what was done is done");
	pair_down();
}

/* As some devices' parts of libibverbs fail */
static void t_minus_one(void)
{
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	fake_minus_one = true;
	fake_fail_at = 1;
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	ktap(good && pln_link_wait(a, 1, 0) == -ENOSPC &&
	     strstr(pln_link_reason(a), "no more work: No space left"),
	     "a device that returns -1 and sets errno: %s", pln_link_reason(a));
	pair_down();
	fake_fail_at = 50;
	ktap(OPEN(.port = 1) == -ENOSPC &&
	     strstr(pln_link_reason(NULL), "No space left"),
	     "the same when a link is opened: %s", pln_link_reason(NULL));
	fake_fail_at = 0;
	fake_minus_one = false;
}

/* What the device may still write into is nobody else's memory */
static void t_messages_kept(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_mr *mr;
	void *memory;

	pln_link_open(&a, NULL);
	mr = a->message_mr;
	memory = a->messages;
	ktap((uintptr_t)memory % page == 0 && mr->length % page == 0 &&
	     mr->addr == memory, "messages have pages of their own");
	fake_dereg_errno = EBUSY;
	pln_link_close(a);
	fake_dereg_errno = 0;
	/* with the sanitizers this tells whether it was freed */
	memset(memory, 1, mr->length);
	ktap(malloc_usable_size(memory) >= mr->length && fake_objects == 1,
	     "they stay when they cannot be deregistered");
	fake_dereg_mr(mr);
	free(memory);
}

/* The device's driver has gone: its completion channel only ever reports an error */
static void t_device_gone(void)
{
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
	int64_t before = now_ms();
	int fds[2];

	good &= !pipe(fds) && dup2(fds[0], a->channel->fd) >= 0;
	close(fds[0]);
	close(fds[1]);
	ktap(good && pln_link_poll(&a, 1, 5000) == 1 &&
	     pln_link_poll(&a, 1, 0) == -ENODEV &&
	     strstr(pln_link_reason(a), "device is gone") &&
	     now_ms() - before < 4000,
	     "a device that is gone is noticed: %s", pln_link_reason(a));
	fake_hold = true;
	before = now_ms();
	pln_link_close(a);
	a = NULL;
	ktap(now_ms() - before < 800, "and nobody waits for its goodbye");
	pair_down();
}

/* The peer deregisters what it has shared: no byte goes anywhere */
static void t_revoked(void)
{
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	fake_dereg_mr(to.mr);
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	ktap(good && pln_link_wait(a, 1, 1000) == -EACCES,
	     "memory that the peer no longer has registered");
	to.mr = fake_reg_mr(pln_link_pd(b), to.host, SIZE, 0);
	pair_down();
}

/* Whether its process is gone shows in time; who only looks does not wait */
static void t_revoked_look(void)
{
	char text[PLN_LINK_REASON_MAX];
	int64_t before, longest, look;
	int err, i = 0;
	bool good;

	/* On a busy machine a look may take long once: then another one is tried */
	do {
		good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);
		before = now_ms();
		longest = err = 0;
		fake_dereg_mr(to.mr);
		put_bytes(a, &from, 0, 9, 0, 0, 1);
		while (err >= 0 && now_ms() - before < 5000) {
			look = now_ms();
			err = pln_link_poll(&a, 1, 0);
			look = now_ms() - look;
			if (look > longest)
				longest = look;
			usleep(1000);
		}
		good = good && err == -EACCES;
		snprintf(text, sizeof(text), "%s", pln_link_reason(a));
		to.mr = fake_reg_mr(pln_link_pd(b), to.host, SIZE, 0);
		pair_down();
	} while (good && longest >= 500 && ++i < 10);
	ktap(good && longest < 500,
	     "a look at a refused write takes %lld ms, and it fails: %s",
	     (long long)longest, text);
}

/* The kernel takes the memory of a process that ends first, its socket second */
static void t_dying(void)
{
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	fake_dereg_mr(to.mr);
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	shutdown(ends[1], SHUT_RDWR);
	ktap(good && pln_link_wait(a, 1, 1000) == -ECONNRESET &&
	     strstr(pln_link_reason(a), "process is gone"),
	     "memory of a process that is gone");
	to.mr = fake_reg_mr(pln_link_pd(b), to.host, SIZE, 0);
	pair_down();
}

/* Nothing on PCIe keeps a notice behind the bytes, which went another way */
static void t_flush(void)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_PLAIN);

	flushes = 0;
	put_bytes(a, &from, 0, 5 * CHUNK + 1, 0, 7, 1);
	while (good && !stats_of(b).arrivals)
		good = pln_link_poll(both, 2, 1000) >= 0;
	ktap(good && !pln_link_arrival(b, &v) && flushes == 1 &&
	     flushed_at == 7 && flushed == 5 * CHUNK + 1,
	     "what arrived without a copy is flushed, once and all of it");
	put_bytes(a, &from, 0, 9, 0, 0, 2);
	copy_error = -EIO;
	for (int i = 0; i < 10 && pln_link_poll(both, 2, 1000) > 0; i++)
		;
	ktap(good && pln_link_poll(&b, 1, 1000) == -EIO && flushes == 1 &&
	     strstr(pln_link_reason(b), "could not flush what arrived in 9 bytes"),
	     "it is no arrival before: %s", pln_link_reason(b));
	pair_down();
}

static void t_copy_fails(void)
{
	bool good = pair_up(PLN_MR_STAGED, PLN_MR_PLAIN);

	copy_error = -EFAULT;
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	ktap(good && pln_link_wait(a, 1, 1000) == -EFAULT &&
	     strstr(pln_link_reason(a), "could not copy 9 bytes to host"),
	     "the GPU cannot copy out");
	pair_down();
	good = pair_up(PLN_MR_PLAIN, PLN_MR_STAGED);
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	copy_error = -EIO;
	ktap(good && pln_link_wait(b, 0, 0) == 0 &&
	     pln_link_poll(&b, 1, 0) == 1 && pln_link_poll(&b, 1, 0) == -EIO &&
	     strstr(pln_link_reason(b), "arrived in host memory"),
	     "the GPU cannot copy in");
	pln_link_close(b);
	b = NULL;
	ktap(pln_link_wait(a, 1, 1000) == -EPIPE && strstr(pln_link_reason(a),
	     "given the link up: Input/output error"),
	     "the other end is told: %s", pln_link_reason(a));
	pair_down();
}

static void t_goodbye(void)
{
	struct pln_link_arrival v = { .size = sizeof(v) };
	bool good = pair_up(PLN_MR_PLAIN, PLN_MR_STAGED);

	fill(from.gpu, 3);
	put_bytes(a, &from, 0, SIZE / 2, 0, 0, 7);
	while (stats_of(a).chunks < SIZE / 2 / CHUNK && good)
		good = pln_link_poll(both, 2, 0) >= 0;
	pln_link_close(a);
	a = NULL;
	/* whatever had been sent is here, and can be taken */
	while (pln_link_poll(&b, 1, 1000) > 0 && stats_of(b).arrivals == 0)
		;
	ktap(good && pln_link_arrival(b, &v) == 0 && v.tag == 7 &&
	     !memcmp(to.gpu, from.gpu, SIZE / 2),
	     "what was sent before goodbye has arrived");
	while (pln_link_poll(&b, 1, 1000) > 0)
		;
	ktap(pln_link_arrival(b, &v) == -EPIPE && strstr(pln_link_reason(b),
	     "has closed the link"), "then the link is closed: %s",
	     pln_link_reason(b));
	pair_down();
}

static void t_killed(void)
{
	struct meeting m = { .timeout = 5000 };
	struct pln_link_arrival v = { .size = sizeof(v) };
	pthread_t thread;
	int64_t before;
	bool good;

	/* its process ends: the kernel closes its sockets, nobody says goodbye */
	pair_open(PLN_MR_PLAIN, PLN_MR_PLAIN);
	m.link = b;
	m.fd = ends[1];
	pthread_create(&thread, NULL, meet, &m);
	good = !pln_link_connect(a, ends[0], 5000);
	pthread_join(thread, NULL);
	put_bytes(a, &from, 0, 9, 0, 0, 1);
	shutdown(ends[0], SHUT_RDWR);
	before = now_ms();
	while (pln_link_poll(&b, 1, 5000) > 0 && !pln_link_arrival(b, &v))
		;
	pln_link_poll(&b, 1, 5000);
	ktap(good && v.length == 9 && pln_link_poll(&b, 1, 0) == -ECONNRESET &&
	     strstr(pln_link_reason(b), "process is gone") &&
	     now_ms() - before < 4000,
	     "a peer that is gone is noticed, after what it had sent");
	pair_down();
}

int main(void)
{
	fake_install();
	t_ways(PLN_MR_PLAIN, PLN_MR_PLAIN, "direct");
	t_ways(PLN_MR_STAGED, PLN_MR_PLAIN, "staged here");
	t_ways(PLN_MR_PLAIN, PLN_MR_STAGED, "staged there");
	t_ways(PLN_MR_STAGED, PLN_MR_STAGED, "staged");
	t_credits();
	t_pipeline();
	t_waiting();
	t_look();
	t_fd();
	t_options();
	t_load();
	t_misuse();
	t_larger();
	t_many_puts();
	t_status(IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT, "does not answer");
	t_status(IBV_WC_REM_ACCESS_ERR, -EACCES, "refused the write");
	t_status(IBV_WC_LOC_PROT_ERR, -EFAULT, "this end's memory");
	t_status(IBV_WC_RNR_RETRY_EXC_ERR, -ENOBUFS, "no buffer");
	t_status(IBV_WC_REM_OP_ERR, -EREMOTEIO, "could not do it");
	t_status(IBV_WC_WR_FLUSH_ERR, -ECONNABORTED, "error state");
	t_status(IBV_WC_FATAL_ERR, -EIO, "the device failed");
	t_minus_one();
	t_messages_kept();
	t_device_gone();
	t_revoked();
	t_revoked_look();
	t_dying();
	t_flush();
	t_copy_fails();
	t_goodbye();
	t_killed();
	return ktap_end();
}
