// SPDX-License-Identifier: MIT
/*
 * What a link does when something breaks: one end puts, the other one takes, and
 * each act breaks something else.
 *
 *	link-faults ACT WAY --serve IP	the end that takes
 *	link-faults ACT WAY --to IP	the end that puts
 *
 * WAY is how GPU memory is registered, on both ends: direct, or staged.
 *
 * Both ends talk about it over their socket, so that things break at a known
 * moment.
 */
#include <signal.h>

#include "peers.h"

#define SIZE		MIB(2)
#define PIECE		KIB(64)
#define PIECES		(SIZE / PIECE)

static const char *peer_ip, *own_ip;
static struct pln_link_options options = { .size = sizeof(options) };
static struct pln_link *conn;
static struct pln_mr *mr;
static gpu_ptr memory;
static int fd;
static unsigned int way;	/* flags of pln_mr_reg() */

/* --- both ends ------------------------------------------------------------------ */

static uint32_t pattern(uint64_t i)
{
	uint32_t x = (uint32_t)i * 2654435761u;

	return x ^ x >> 13;
}

static uint32_t *pattern_of(size_t size)
{
	uint32_t *p = malloc(size);

	for (uint64_t i = 0; p && i < size / 4; i++)
		p[i] = pattern(i);
	return p;
}

static void tell(char word)
{
	send_all(fd, &word, 1);
}

static void expect_word(char want)
{
	char word;

	receive_all(fd, &word, 1);
	if (word != want)
		quit("the peer says %c, not %c", word, want);
}

static void meet(void)
{
	gpu_open();
	memory = gpu_alloc(SIZE);
	if (cuMemsetD8_v2(memory, 0xa5, SIZE))
		quit("the GPU's memory cannot be filled");
	must_open_link(&conn, &options);
	mr = must_register(pln_link_pd(conn), memory, SIZE, way);
	must_share(conn, mr);
	if (own_ip) {
		int listening = peer_listen(own_ip, 7300);

		fd = peer_accept(listening);
		close(listening);
	} else {
		fd = peer_connect(peer_ip, 7300);
	}
	must_link(conn, fd);
}

static void part(void)
{
	if (mr)
		is(pln_mr_dereg(mr), 0, "the registration ends");
	pln_link_close(conn);
	if (memory)
		is(cuMemFree_v2(memory), 0, "the memory is freed");
	close(fd);
}

static int64_t try_put(uint64_t at, uint64_t length, uint64_t tag)
{
	const struct pln_link_request r = {
		.size = sizeof(r), .mr = mr, .offset = at, .length = length,
		.at = at, .tag = tag,
	};

	return pln_link_put(conn, &r);
}

static void put(uint64_t piece)
{
	int64_t n = try_put(piece % PIECES * PIECE, PIECE, piece);

	if (n < 0)
		note("put %" PRIu64 ": %s", piece, pln_strerror((int)n));
}

/* Polls until the link has failed, at most @seconds; its error, or 0 */
static int failure(int seconds)
{
	long long until = now_ms() + seconds * 1000;
	struct pln_link_arrival a = { .size = sizeof(a) };
	int n;

	do {
		n = pln_link_poll(&conn, 1, 1000);
		while (!pln_link_arrival(conn, &a))
			;
	} while (n >= 0 && now_ms() < until);
	note("%s", pln_link_reason(conn));
	return n < 0 ? n : 0;
}

static void fails_with(int want, int seconds, const char *word)
{
	int got = failure(seconds);

	ok(got == want && strstr(pln_link_reason(conn), word),
	   "the link fails with %s and says why", pln_errname(want));
	if (got != want)
		note("got %s", pln_errname(got));
	is(try_put(0, 1, 0), want, "it takes nothing more");
	if (link_stats(conn).puts)
		is(pln_link_wait(conn, 0, 1000), want, "and waits for nothing");
}

static uint64_t taken;

static void take(uint64_t most, int seconds)
{
	long long until = now_ms() + seconds * 1000;
	struct pln_link_arrival a = { .size = sizeof(a) };

	while (taken < most && now_ms() < until) {
		if (pln_link_poll(&conn, 1, 1000) < 0)
			quit("the link failed: %s", pln_link_reason(conn));
		while (taken < most && !pln_link_arrival(conn, &a))
			if (a.tag != taken++)
				quit("piece %" PRIu64 " out of order", a.tag);
	}
	is((long long)taken, (long long)most, "all pieces arrived, in order");
}

static void whole(void)
{
	uint32_t *want = pattern_of(SIZE);
	uint8_t *got = malloc(SIZE);

	if (!want || !got || cuMemcpyDtoH_v2(got, memory, SIZE))
		quit("the GPU's memory cannot be read");
	ok(!memcmp(got, want, SIZE), "every byte is right");
	free(want);
	free(got);
}

static void load(void)
{
	uint32_t *p = pattern_of(SIZE);

	if (!p || cuMemcpyHtoD_v2(memory, p, SIZE))
		quit("the GPU's memory cannot be filled");
	free(p);
}

/* --- acts ------------------------------------------------------------------------- */

/* The taking process is killed in the middle */
static void killed_put(void)
{
	uint64_t i;

	meet();
	load();
	for (i = 0; i < 8; i++)
		put(i);
	is(pln_link_wait(conn, 0, 60000), 0, "the network works");
	for (; i < 200; i++)
		put(i);
	tell('k');
	fails_with(-ECONNRESET, 30, "process is gone");
	part();
}

static void killed_take(void)
{
	meet();
	take(8, 60);
	expect_word('k');
	/* what it has found out so far is said in full */
	finish();
	raise(SIGKILL);
}

/* The network is down for longer than retries last */
static void down_put(void)
{
	/* seven tries of 67 ms or somewhat more each */
	options.timeout = 14;
	meet();
	load();
	for (uint64_t i = 0; i < 8; i++)
		put(i);
	is(pln_link_wait(conn, 0, 60000), 0, "the network works");
	expect_word('8');
	host_must("wire b link down");
	put(8);
	fails_with(-ETIMEDOUT, 60, "does not answer");
	ok(link_stats(conn).puts_done == 8, "what was done is done, no more");
	host_must("wire b link up");
	tell('u');
	part();
}

static void down_take(void)
{
	struct pln_link_arrival a = { .size = sizeof(a) };

	meet();
	take(8, 60);
	tell('8');
	/* TCP goes on when the network does */
	expect_word('u');
	ok(pln_link_arrival(conn, &a) != 0, "nothing arrived after that");
	part();
}

/* ... for less long */
static void blip_put(void)
{
	meet();
	load();
	for (uint64_t i = 0; i < PIECES / 2; i++)
		put(i);
	host_must("wire b link down");
	for (uint64_t i = PIECES / 2; i < PIECES; i++)
		put(i);
	is(pln_link_wait(conn, PIECES, 100), -ETIMEDOUT,
	   "a wait ends when its time is over");
	host_must("wire b link up");
	is(pln_link_wait(conn, 0, 60000), 0, "and the link is none the worse");
	expect_word('w');
	part();
}

static void all_take(void)
{
	meet();
	take(PIECES, 90);
	whole();
	tell('w');
	part();
}

/* Packets are lost and overtake each other */
static void lossy_put(void)
{
	/* each loss costs this, 0.54 s; tries have no end (7), so a busy host may take longer */
	options.timeout = 17;
	options.retries = 7;
	meet();
	load();
	host_must("wire a loss 1%% roce");
	host_must("wire a reorder 2%% roce");
	for (uint64_t i = 0; i < PIECES; i++)
		put(i);
	is(pln_link_wait(conn, 0, 90000), 0, "all is done");
	host_must("wire a clear");
	expect_word('w');
	part();
}

/* The taking end does nothing for a while */
static void idle_put(void)
{
	meet();
	load();
	for (uint64_t i = 0; i < PIECES; i++)
		put(i);
	is(pln_link_wait(conn, 0, 500), -ETIMEDOUT,
	   "a peer that does not poll makes no progress");
	ok(link_stats(conn).puts_done < PIECES, "not all is done");
	tell('p');
	is(pln_link_wait(conn, 0, 60000), 0, "until it polls");
	expect_word('w');
	part();
}

static void idle_take(void)
{
	meet();
	expect_word('p');
	take(PIECES, 60);
	whole();
	ok(link_stats(conn).bytes_to_gpu == SIZE, "staged, by its own count");
	tell('w');
	part();
}

/* What was shared is no longer registered */
static void dereg_put(void)
{
	meet();
	load();
	expect_word('d');
	put(0);
	fails_with(-EACCES, 30, "refused the write");
	tell('x');
	part();
}

static void dereg_take(void)
{
	meet();
	is(pln_mr_dereg(mr), 0, "the shared memory is deregistered");
	mr = NULL;
	tell('d');
	expect_word('x');
	ok(gpu_is(memory, SIZE, 0xa5), "not a byte of it was written");
	part();
}

/* The GPU memory behind staged memory is freed */
static void freed_put(void)
{
	meet();
	load();
	expect_word('f');
	put(0);
	fails_with(-EPIPE, 30, "given the link up: Bad address");
	part();
}

static void freed_take(void)
{
	meet();
	is(cuMemFree_v2(memory), 0, "the memory is freed under its registration");
	memory = 0;
	tell('f');
	fails_with(-EFAULT, 30, "could not copy");
	part();
}

/* The GPU of one end is reset: what is staged cannot get out of it, or into it */
static void reset(void)
{
	gpu_reset();
	memory = 0;	/* lost, as all that the GPU had */
}

static void reset_there_put(void)
{
	meet();
	load();
	expect_word('r');
	put(0);
	fails_with(-EPIPE, 30, "given the link up: No such device");
	part();
}

static void reset_there_take(void)
{
	meet();
	reset();
	tell('r');
	fails_with(-ENODEV, 30, "could not copy");
	part();
}

static void reset_here_put(void)
{
	meet();
	load();
	reset();
	put(0);
	fails_with(-ENODEV, 30, "could not copy");
	part();
}

static void reset_here_take(void)
{
	struct pln_link_arrival a = { .size = sizeof(a) };

	meet();
	fails_with(-EPIPE, 30, "given the link up: No such device");
	ok(pln_link_arrival(conn, &a) != 0, "nothing arrived");
	ok(gpu_is(memory, SIZE, 0xa5), "not a byte of this GPU's memory was written");
	part();
}

/* --- the rest ----------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*put)(void);
	void (*take)(void);
} acts[] = {
	{ "killed", killed_put, killed_take },
	{ "down", down_put, down_take },
	{ "blip", blip_put, all_take },
	{ "lossy", lossy_put, all_take },
	{ "idle", idle_put, idle_take },
	{ "dereg", dereg_put, dereg_take },
	{ "freed", freed_put, freed_take },
	{ "reset-there", reset_there_put, reset_there_take },
	{ "reset-here", reset_here_put, reset_here_take },
};

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[3], "--serve"))
		own_ip = argv[4];
	else if (argc == 5 && !strcmp(argv[3], "--to"))
		peer_ip = argv[4];
	for (unsigned int i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		if ((!own_ip && !peer_ip) || strcmp(acts[i].name, argv[1]))
			continue;
		way = way_of(argv[2]);
		(own_ip ? acts[i].take : acts[i].put)();
		return finish();
	}
	fprintf(stderr, "usage: link-faults ACT direct|staged --serve IP | --to IP\n");
	return 2;
}
