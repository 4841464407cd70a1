// SPDX-License-Identifier: MIT
/*
 * rdma-faults CASE WAY listen|ADDRESS: what breaks while data goes from one GPU to
 * another host's.  Whatever does: each request ends with a status, a request
 * that succeeded has moved the right bytes, no other bytes change, and
 * afterwards the two ends can work together again.
 *
 * WAY is how the GPU's memory is registered: direct, or staged.
 *
 *	wire NAME ORDER...	the wire does as ordered meanwhile; $ROUNDS transfers
 *				of 2 MiB each instead of one
 *	flap			the link swallows packets, and is up again soon
 *	cut			... not before the sender has given up
 *	carrier			... and the sender's NIC knows
 *	killed			the process that owns the memory is killed
 *	reset			its GPU is reset
 *	freed			it frees the memory, and forgets the registration
 *	deregistered		it ends the registration
 *	wrong			requests that must not be granted
 *	overrun			a completion queue that nobody reads
 *	revoked			it frees the memory, and the device is told so
 *	card HOW		its ConnectX goes: HOW is flr, or what the host does to it
 *
 * A device that is quicker than what is to happen to its stream has $HOLD: the link
 * holds the stream until that has happened.  $TIMEOUT: of a packet, through a wire with
 * faults, as in ibv_modify_qp().
 */
#include <signal.h>
#include <sys/wait.h>

#include "rdma.h"
#include "thief.h"

#define BYTES		MIB(8)
/* through a wire with faults: for some of them soft-RoCE waits until its time is over */
#define WRITE_BYTES	MIB(2)
#define READ_BYTES	MIB(2)
#define PIECE		MIB(1)		/* of a stream */
#define SHORT_PIECE	KIB(512)	/* of one that is done to its end */
#define LOST_PIECE	KIB(64)		/* of one to memory that is lost */
#define STREAM		32		/* requests of it */
#define SEED(n)		((uint64_t)(n) << 40)

static struct area data;
static gpu_ptr ref, guard;
static char label[64];		/* of what is counted, and of facts */

/* How the requests of a stream ended. */
struct tally {
	unsigned int good, bad, flushed, missing;
	enum ibv_wc_status first;	/* that was not success */
	double silence;		/* seconds from the last success to that one */
};

static void open_end(struct end *e, const char *where)
{
	gpu_open();
	e->timeout = e->timeout ?: 17;	/* 0.5 s, and some tries more */
	e->retry = e->retry ?: 6;
	e->rnr = e->rnr ?: 2;
	rdma_open(e, where);
	area_make(e, &data, BYTES + 2 * GUARD, "the GPU's memory");
	ref = gpu_alloc(BYTES);
	guard = gpu_alloc(GUARD);
	cuMemsetD8_v2(guard, GUARD_BYTE, GUARD);
	rdma_connect(e);
}

/* Both ends again, after requests have failed at either. */
static void recover(struct end *e)
{
	unsigned int good, flushed;

	rdma_drain(e, &good, &flushed);
	rdma_connect(e);
}

/*
 * SIZE bytes by one operation; when it fails the QPs recover and it is done
 * again, a few times.  Both ends know whether all is right in the end.
 */
static bool transfer(struct end *e, enum ibv_wr_opcode opcode, size_t size,
		     uint64_t seed, unsigned int *failures)
{
	bool source = e->active != (opcode == IBV_WR_RDMA_READ), good = false;
	uint64_t status, theirs, crc;

	for (unsigned int turn = 0; turn < 5; turn++) {
		struct request r = { .opcode = opcode, .local = &data,
			.remote = &data, .at = GUARD, .peer_at = GUARD,
			.size = size };

		if (source)
			pattern_put(data.ptr + GUARD, seed, size);
		else
			cuMemsetD8_v2(data.ptr, GUARD_BYTE, size + 2 * GUARD);
		/* staged: the neighbours too, so that they are looked at */
		if (pln_mr_from_gpu(data.mr, 0, size + 2 * GUARD))
			die("pln_mr_from_gpu");
		sync_ends(e);
		status = e->active ? move(e, &r) : IBV_WC_SUCCESS;
		if (status)
			note("the request's status: %s",
			     ibv_wc_status_str((enum ibv_wc_status)status));
		swap_words(e, status, &theirs);
		if (!(status | theirs)) {
			good = true;
			break;
		}
		(*failures)++;
		recover(e);
	}
	if (!source && pln_mr_to_gpu(data.mr, 0, size + 2 * GUARD))
		die("pln_mr_to_gpu");
	crc = gpu_crc(data.ptr + GUARD, size);
	swap_words(e, crc, &theirs);
	good &= crc == theirs;
	if (!source) {
		pattern_put(ref, seed, size);
		good &= gpu_same(data.ptr + GUARD, ref, size, "the data") &&
			gpu_same(data.ptr, guard, GUARD, "memory in front") &&
			gpu_same(data.ptr + GUARD + size, guard, GUARD,
			     "memory behind");
	}
	swap_words(e, good, &theirs);
	return good && theirs;
}

/* The proof that nothing is broken. */
static void works(struct end *e)
{
	unsigned int failures = 0;
	bool good = transfer(e, IBV_WR_RDMA_WRITE, MIB(1), SEED(90), &failures);

	good &= transfer(e, IBV_WR_RDMA_READ, MIB(1), SEED(91), &failures);
	ok(good && !failures, "afterwards a WRITE and a READ are right");
}

/* The active end: all of a stream of WRITEs at once, each of so many bytes to its own place. */
static void stream(struct end *e, size_t size)
{
	for (unsigned int i = 0; i < STREAM; i++) {
		struct request r = { .opcode = IBV_WR_RDMA_WRITE,
			.local = &data, .remote = &data, .size = size, .id = i,
			.at = GUARD + i * PIECE % BYTES,
			.peer_at = GUARD + i * PIECE % BYTES };

		if (post_request(e, &r))
			die("ibv_post_send");
	}
}

/* ... and how each of them ended. */
static struct tally ends(struct end *e, const char *suffix)
{
	struct json_object *result = json_object_new_object();
	char key[128];
	struct tally t = { 0 };
	struct ibv_wc wc;
	double heard = seconds();

	for (unsigned int i = 0; i < STREAM; i++) {
		if (!wait_wc(e, &wc, WC_MS)) {
			t.missing = STREAM - i;
			break;
		}
		if (wc.status == IBV_WC_SUCCESS) {
			t.good++;
			heard = seconds();
			if (t.bad + t.flushed)
				note("a success behind a failure");
		} else if (wc.status == IBV_WC_WR_FLUSH_ERR) {
			t.flushed++;
		} else {
			t.bad++;
		}
		if (wc.status && !t.first) {
			t.first = wc.status;
			t.silence = seconds() - heard;
		}
	}
	ok(!t.missing, "each request of the stream ended with a status");
	json_set(result, "good", t.good);
	json_set(result, "failed", t.bad);
	json_set(result, "flushed", t.flushed);
	json_set(result, "first", ibv_wc_status_str(t.first));
	if (t.first)
		json_set(result, "silence", json_decimal(t.silence));
	snprintf(key, sizeof(key), "%s%s", label, suffix);
	tell_fact(key, result);
	return t;
}

/* The passive end, before a stream begins */
static void hold(void)
{
	if (getenv("HOLD"))
		host_must("wire b.out nth 900 rc-rdma-write-middle cut");
}

/* ... until it is well under way */
static void under_way(void)
{
	host_must(getenv("HOLD") ? "lost b.out 30" : "more b.out 700 rc-rdma-write-middle 30");
}

/* ... and it goes on */
static void let_go(void)
{
	if (getenv("HOLD"))
		host_must("wire b link up");
}

/* ---- the wire ---- */

static int wire(struct end *e, const char *where, int orders, char **order)
{
	struct request add = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = 3,
		.local = &data, .remote = &data, .size = 8 };
	const char *rounds = getenv("ROUNDS"), *timeout = getenv("TIMEOUT");
	unsigned int failures = 0, bad = 0, n = rounds ? (unsigned int)atoi(rounds) : 1;
	bool written = true, fetched = true;
	uint64_t old = 0;
	struct ibv_wc wc;

	/*
	 * A packet that is lost stalls the QP for 0.07 s.  Tries have no end (7), so a host
	 * that is slower than that sends something twice, and no more.
	 */
	e->timeout = timeout ? (uint8_t)atoi(timeout) : 14;
	e->retry = 7;
	open_end(e, where);
	set_word(&data, 0, 0);
	if (e->active) {
		host_must("begin %s", label);
		for (int i = 0; i < orders; i++)
			host_must("wire %s", order[i]);
	}
	sync_ends(e);
	/* what is repeated must be done once */
	for (unsigned int i = 0; e->active && i < 300; i++) {
		add.at = 64;
		if (post_request(e, &add) || !wait_wc(e, &wc, WC_MS) ||
		    wc.status != IBV_WC_SUCCESS ||
		    (old = word_of(&data, 64)) != 3 * i) {
			if (!bad++)
				note("addition %u found %" PRIu64 ": %s", i, old,
				     ibv_wc_status_str(wc.status));
			if (wc.status)
				break;
		}
	}
	sync_ends(e);
	if (e->active)
		ok(!bad, "%s: each of 300 FETCH_ADD was done once", label);
	else
		ok(word_of(&data, 0) == 900, "%s: their sum is in GPU memory", label);
	for (unsigned int i = 0; i < n; i++) {
		written &= transfer(e, IBV_WR_RDMA_WRITE, WRITE_BYTES,
				    SEED(100 + 2 * i), &failures);
		fetched &= transfer(e, IBV_WR_RDMA_READ, READ_BYTES,
				    SEED(101 + 2 * i), &failures);
	}
	ok(n && written, "%s: each WRITE of %u is right", label, n);
	ok(n && fetched, "%s: each READ of %u is right", label, n);
	note("%s: %u recoveries of the QP", label, failures);
	if (e->active) {
		host_must("wire all clear");
		host_must("end %s", label);
	}
	sync_ends(e);
	works(e);
	return finish();
}

enum down {
	FLAP,		/* packets vanish; up again before the sender gives up */
	CUT,		/* ... until it has given up */
	CARRIER,	/* the sender's NIC loses its carrier, for long */
};

/* The link goes down in the middle of a stream. */
static int link_down(struct end *e, const char *where, enum down how)
{
	unsigned int failures = 0;
	struct tally t;

	if (how == FLAP)
		e->retry = 7;
	open_end(e, where);
	sync_ends(e);
	if (e->active) {
		host_must("begin %s", label);
		host_must("wire b.out nth 900 rc-rdma-write-middle cut");
		stream(e, SHORT_PIECE);
		/* the packet that the link has swallowed first */
		host_must("lost b.out 30");
		if (how == CARRIER)
			host_must("wire b link down");
		if (how == FLAP)
			host_must("wire b link up");
		t = ends(e, "");
		if (how == FLAP)
			ok(t.good == STREAM,
			   "the stream goes on when the link is up again");
		else if (how == CUT)
			ok(t.first == IBV_WC_RETRY_EXC_ERR && t.bad == 1 &&
			   t.flushed, "the sender gives up, what is behind is flushed");
		else
			ok(t.first && t.good + t.bad + t.flushed == STREAM,
			   "the sender gives up: %s", ibv_wc_status_str(t.first));
		if (how != FLAP)
			host_must("wire b link up");
		host_must("end %s", label);
	}
	sync_ends(e);
	if (how != FLAP)
		recover(e);
	ok(transfer(e, IBV_WR_RDMA_WRITE, BYTES, SEED(3), &failures) && !failures,
	   "with the link up, the same QPs move 8 MiB right");
	works(e);
	return finish();
}

/* ---- the process ---- */

static size_t vram_free(void)
{
	size_t avail = 0, total = 0;

	if (cuMemGetInfo_v2(&avail, &total))
		die("cuMemGetInfo");
	return avail;
}

/* Memory comes back when its pages are idle, soon but not at once. */
static bool vram_becomes(size_t want)
{
	struct timespec pause = { .tv_nsec = 100000000 };

	for (int i = 0; i < 100 && vram_free() != want; i++)
		nanosleep(&pause, NULL);
	if (vram_free() != want)
		note("%zu bytes are free, not %zu", vram_free(), want);
	return vram_free() == want;
}

static int killed(struct end *e, const char *where)
{
	struct end again = { .mr_flags = e->mr_flags };
	struct tally t;
	int pipes[2];
	pid_t child;
	char c;

	if (e->active) {
		open_end(e, where);
		sync_ends(e);
		stream(e, PIECE);
		t = ends(e, "");
		ok(t.first == IBV_WC_RETRY_EXC_ERR || t.first == IBV_WC_REM_ACCESS_ERR ||
		   t.first == IBV_WC_REM_OP_ERR,
		   "the sender learns that nobody is there: %s",
		   ibv_wc_status_str(t.first));
		ok(t.good && t.flushed && t.bad == 1,
		   "what came before is done, what came behind is flushed");
		close(e->sock);
	} else {
		if (pipe(pipes))
			die("pipe");
		child = fork();
		if (!child) {
			open_end(e, where);
			hold();
			sync_ends(e);
			if (write(pipes[1], "", 1) != 1)
				die("pipe");
			hear_end(e, &c, 1);	/* which never comes */
			_exit(1);
		}
		if (child < 0 || read(pipes[0], &c, 1) != 1)
			die("the process that will be killed");
		under_way();
		if (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
			die("kill");
		let_go();
		gpu_open();
		ok(vram_becomes((size_t)atoll(getenv("VRAM_FREE"))),
		   "all memory of the dead process is free again");
	}
	open_end(&again, where);
	works(&again);
	return finish();
}

/* ---- the memory ---- */

/*
 * The memory is lost to its owner, and the peer goes on writing to it: nobody
 * else gets it as long as it is registered, and it comes back afterwards.
 */
static int lost(struct end *e, const char *where, bool reset)
{
	bool staged;
	size_t before = 0, stolen;
	struct thief other;
	uint64_t failed;
	struct tally t;
	int err;

	open_end(e, where);
	staged = e->mr_flags & PLN_MR_ONLY_STAGED;
	sync_ends(e);
	if (e->active) {
		stream(e, PIECE);
		t = ends(e, "");
		note("%u requests succeeded", t.good);
		swap_words(e, t.first, &failed);
		if (t.first)
			recover(e);
		/*
		 * The memory has gone, and all the rest is another's.  What a processor
		 * writes to memory that is lost, the device takes word by word.
		 */
		sync_ends(e);
		stream(e, LOST_PIECE);
		ends(e, "_again");
		sync_ends(e);
		return finish();
	}

	under_way();
	if (reset) {
		gpu_reset();
		err = cuMemsetD8_v2(data.ptr, 0, 1);
		ok(err, "memory from before the reset is lost (CUDA error %d)",
		   err);
	} else {
		before = vram_free();
		ok(!cuMemFree_v2(data.ptr), "memory is freed while it is registered");
		if (staged)
			ok(vram_becomes(before + data.size),
			   "it comes back: what is registered is host memory");
		else
			ok(vram_free() == before,
			   "it does not come back while the registration holds it");
	}
	swap_words(e, 0, &failed);
	if (failed)
		recover(e);
	stolen = thief_start(&other);
	ok(stolen >= BYTES && other.left < MIB(4),
	   "another process takes all memory that there is: %zu MiB",
	   stolen >> 20);
	sync_ends(e);
	sync_ends(e);
	if (staged) {
		err = pln_mr_to_gpu(data.mr, 0, data.size);
		ok(err < 0, "what has arrived cannot be copied to memory that is lost: %s",
		   pln_errname(err));
		err = pln_mr_from_gpu(data.mr, 0, data.size);
		ok(err < 0, "nor can anything be fetched from there: %s",
		   pln_errname(err));
	}
	ok(!thief_end(&other), "what the peer has written since is not in it");
	ok(!pln_mr_dereg(data.mr), "the registration can be ended");
	if (!reset && !staged)
		ok(vram_becomes(before + data.size),
		   "and then the memory comes back");
	return finish();
}

static int deregistered(struct end *e, const char *where)
{
	struct tally t;
	uint32_t crc;
	int err;

	open_end(e, where);
	if (!e->active)
		hold();
	sync_ends(e);
	if (e->active) {
		stream(e, PIECE);
		t = ends(e, "");
		ok(t.first == IBV_WC_REM_ACCESS_ERR && t.bad == 1,
		   "the sender is refused: %s", ibv_wc_status_str(t.first));
		ok(t.good && t.flushed, "what came before is done, what came behind is flushed");
		sync_ends(e);
	} else {
		under_way();
		err = pln_mr_dereg(data.mr);
		crc = gpu_crc(data.ptr, data.size);
		let_go();
		is(err, 0, "the registration ends in the middle of a stream");
		sync_ends(e);
		ok(gpu_crc(data.ptr, data.size) == crc,
		   "not a byte changes from then on");
		area_register(e, &data, "the same memory again");
	}
	area_swap(e, &data);
	recover(e);
	works(e);
	return finish();
}

/*
 * The memory is freed, and the device that has it as a dma-buf must let go of it at
 * once: it is another's, and requests for it are refused.
 */
static int revoked(struct end *e, const char *where)
{
	static const struct {
		const char *what;
		enum ibv_wr_opcode opcode;
	} t[] = {
		{ "a WRITE", IBV_WR_RDMA_WRITE },
		{ "a READ", IBV_WR_RDMA_READ },
		{ "a FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	};
	size_t before = 0, stolen;
	struct thief other;
	struct ibv_wc wc = { 0 };

	/* The device asks its driver for the pages, and the sender to come again */
	e->rnr = 7;
	open_end(e, where);
	if (!e->active) {
		before = vram_free();
		ok(!cuMemFree_v2(data.ptr), "memory is freed while it is registered");
		ok(vram_becomes(before + data.size),
		   "it comes back: the device has no hold on it");
		stolen = thief_start(&other);
		ok(stolen >= BYTES && other.left < MIB(4),
		   "another process takes all memory that there is: %zu MiB",
		   stolen >> 20);
	}
	count_begin(label);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct request r = { .opcode = t[i].opcode, .local = &data,
			.remote = &data, .at = GUARD, .peer_at = GUARD, .add = 1,
			.size = t[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : PIECE };

		sync_ends(e);
		if (e->active) {
			if (post_request(e, &r))
				die("ibv_post_send");
			if (!ok(wait_wc(e, &wc, WC_MS) &&
				wc.status == IBV_WC_REM_ACCESS_ERR,
				"%s to where it was: remote access error", t[i].what))
				note("%s", ibv_wc_status_str(wc.status));
		}
		sync_ends(e);
		recover(e);
	}
	count_end(label);
	if (!e->active) {
		ok(!thief_end(&other), "none of it is in the other process's memory");
		ok(!pln_mr_dereg(data.mr), "the registration can be ended");
	}
	sync_ends(e);
	return finish();
}

/* ---- the card ---- */

/*
 * The passive end's card goes in the middle of a stream; both programs are told, and
 * nothing is written once it has gone.
 */
static int card(struct end *e, const char *where, const char *how)
{
	struct pollfd p = { .events = POLLIN };
	long long until = now_ms() + WC_MS;
	struct ibv_async_event event;
	bool fatal = false;
	struct tally t;
	uint32_t crc;
	int fd;

	open_end(e, where);
	pattern_put(data.ptr, SEED(e->active ? 60 : 61), data.size);
	if (e->active) {
		sync_ends(e);
		stream(e, PIECE);
		t = ends(e, "");
		ok(t.first == IBV_WC_RETRY_EXC_ERR && t.good && t.bad == 1,
		   "%s: the sender learns that nobody is there: %s", how,
		   ibv_wc_status_str(t.first));
		sync_ends(e);
		return finish();
	}
	hold();
	sync_ends(e);
	under_way();
	if (!strcmp(how, "flr")) {
		fd = must_open(getenv("CARD_RESET"), O_WRONLY);
		if (write(fd, "1", 1) != 1)
			die("the card's reset");
		close(fd);
	} else {
		host_must("card %s", how);
	}
	crc = gpu_crc(data.ptr, data.size);
	let_go();
	p.fd = e->ctx->async_fd;
	while (!fatal && now_ms() < until) {
		if (poll(&p, 1, 1000) != 1 || ibv_get_async_event(e->ctx, &event))
			continue;
		fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
		note("%s", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	ok(fatal, "%s: the program learns that its device has gone", how);
	sync_ends(e);
	ok(gpu_crc(data.ptr, data.size) == crc, "%s: not a byte changes once the card has gone", how);
	return finish();
}

/* ---- requests that must not be granted ---- */

static int wrong(struct end *e, const char *where)
{
	struct area bad_key;
	static const struct {
		const char *what;
		enum ibv_wr_opcode opcode;
		/* also, and posted, of ibv_post_send(): what soft-RoCE of Linux 7.2 says instead */
		enum ibv_wc_status want, also;
		bool key, lkey, receive, deaf;
		size_t peer_at, size;
		int posted;
	} t[] = {
		{ "a key that nobody gave out", IBV_WR_RDMA_WRITE,
		  IBV_WC_REM_ACCESS_ERR, .key = true, .size = 4096 },
		{ "a READ with such a key", IBV_WR_RDMA_READ,
		  IBV_WC_REM_ACCESS_ERR, .key = true, .size = 4096 },
		{ "a WRITE past the end", IBV_WR_RDMA_WRITE,
		  IBV_WC_REM_ACCESS_ERR, .peer_at = BYTES + 2 * GUARD - 8,
		  .size = 16 },
		{ "a READ past the end", IBV_WR_RDMA_READ,
		  IBV_WC_REM_ACCESS_ERR, .peer_at = BYTES + 2 * GUARD - 8,
		  .size = 16 },
		{ "a crooked FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD,
		  IBV_WC_REM_INV_REQ_ERR, .peer_at = 4, .size = 8, .posted = EINVAL },
		{ "local memory of no key", IBV_WR_RDMA_WRITE,
		  IBV_WC_LOC_PROT_ERR, .also = IBV_WC_WR_FLUSH_ERR,
		  .lkey = true, .size = 4096 },
		{ "a SEND that is longer than what waits for it", IBV_WR_SEND,
		  IBV_WC_REM_INV_REQ_ERR, .also = IBV_WC_REM_OP_ERR,
		  .receive = true, .size = 8192 },
		{ "a SEND that nothing waits for", IBV_WR_SEND,
		  IBV_WC_RNR_RETRY_EXC_ERR, .size = 4096 },
		{ "a WRITE to a QP that is in error", IBV_WR_RDMA_WRITE,
		  IBV_WC_RETRY_EXC_ERR, .deaf = true, .size = 4096 },
	};
	struct ibv_wc wc = { 0 };
	bool soft;

	open_end(e, where);
	soft = !strncmp(ibv_get_device_name(e->ctx->device), "rxe", 3);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint32_t crc;

		bad_key = data;
		bad_key.peer_rkey ^= 0x5a00;
		pattern_put(data.ptr, SEED(50 + i), data.size);
		crc = gpu_crc(data.ptr, data.size);
		if (!e->active && t[i].receive &&
		    post_receive(e, &data, GUARD, 4096, 1))
			die("ibv_post_recv");
		if (!e->active && t[i].deaf && ibv_modify_qp(e->qp,
			&(struct ibv_qp_attr) { .qp_state = IBV_QPS_ERR },
			IBV_QP_STATE))
			die("ibv_modify_qp");
		sync_ends(e);
		if (e->active) {
			struct request r = { .opcode = t[i].opcode,
				.local = &data, .at = GUARD, .add = 1,
				.remote = t[i].key ? &bad_key : &data,
				.peer_at = t[i].peer_at, .size = t[i].size,
				.wrong_lkey = t[i].lkey };
			int err = post_request(e, &r);

			if (err) {
				ok(soft && err == t[i].posted, "%s is not taken: %s",
				   t[i].what, strerror(err));
			} else {
				bool came = wait_wc(e, &wc, WC_MS);

				if (!ok(came && wc.status &&
					(wc.status == t[i].want ||
					 (soft && wc.status == t[i].also)), "%s: %s",
					t[i].what, came ? ibv_wc_status_str(wc.status) : "no completion"))
					note("not %s", ibv_wc_status_str(t[i].want));
			}
		}
		sync_ends(e);
		if (!e->active && t[i].receive) {
			bool came = wait_wc(e, &wc, WC_MS);

			ok(came && (soft ? wc.status != IBV_WC_SUCCESS :
				    wc.status == IBV_WC_LOC_LEN_ERR),
			   "%s: what waits for it learns of it: %s", t[i].what,
			   came ? ibv_wc_status_str(wc.status) : "no completion");
		}
		/* of a message that is too long the beginning may come */
		if (!t[i].receive)
			ok(gpu_crc(data.ptr, data.size) == crc,
			   "%s: not a byte has changed", t[i].what);
		recover(e);
		works(e);
	}
	return finish();
}

/* ---- completions that have no place ---- */

/* Within WC_MS the program learns of this */
static bool tells(struct end *e, enum ibv_event_type want)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, WC_MS) != 1 || ibv_get_async_event(e->ctx, &event))
		return false;
	note("%s", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	return event.event_type == want;
}

static int overrun(struct end *e, const char *where)
{
	struct ibv_cq *large, *small;

	open_end(e, where);
	large = e->cq;
	small = ibv_create_cq(e->ctx, 7, NULL, NULL, 0);
	if (!small || ibv_destroy_qp(e->qp))
		die("a small completion queue");
	if (e->active)
		e->cq = small;
	make_qp(e);
	rdma_connect(e);
	if (e->active) {
		stream(e, PIECE);
		ok(tells(e, IBV_EVENT_CQ_ERR), "the program learns that its completion queue has run over");
		ok(tells(e, IBV_EVENT_QP_FATAL), "and that its queue pair has failed");
	}
	sync_ends(e);
	if (ibv_destroy_qp(e->qp) || ibv_destroy_cq(small))
		die("the small completion queue");
	e->cq = large;
	make_qp(e);
	rdma_connect(e);
	works(e);
	return finish();
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	struct end e = { 0 };

	if (!strcmp(part, "thief"))
		return thief();
	if (!strcmp(part, "vram")) {
		gpu_open();
		printf("%zu\n", vram_free());
		return 0;
	}
	if (argc < 4)
		goto usage;
	e.mr_flags = way_of(argv[2]);
	e.active = strcmp(argv[3], "listen") != 0;
	snprintf(label, sizeof(label), "%s%s", e.mr_flags & PLN_MR_ONLY_STAGED ?
		 "staged-" : "", argc < 5 ? part : argv[4]);
	if (!strcmp(part, "wire") && argc > 4)
		return wire(&e, argv[3], argc - 5, argv + 5);
	if (!strcmp(part, "flap"))
		return link_down(&e, argv[3], FLAP);
	if (!strcmp(part, "cut"))
		return link_down(&e, argv[3], CUT);
	if (!strcmp(part, "carrier"))
		return link_down(&e, argv[3], CARRIER);
	if (!strcmp(part, "killed"))
		return killed(&e, argv[3]);
	if (!strcmp(part, "reset"))
		return lost(&e, argv[3], true);
	if (!strcmp(part, "freed"))
		return lost(&e, argv[3], false);
	if (!strcmp(part, "deregistered"))
		return deregistered(&e, argv[3]);
	if (!strcmp(part, "wrong"))
		return wrong(&e, argv[3]);
	if (!strcmp(part, "overrun"))
		return overrun(&e, argv[3]);
	if (!strcmp(part, "revoked"))
		return revoked(&e, argv[3]);
	if (!strcmp(part, "card") && argc == 5)
		return card(&e, argv[3], argv[4]);
usage:
	fprintf(stderr, "usage: rdma-faults CASE direct|staged listen|ADDRESS ...\n");
	return 2;
}
