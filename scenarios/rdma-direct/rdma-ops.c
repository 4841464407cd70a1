// SPDX-License-Identifier: MIT
/*
 * rdma-ops PART listen|ADDRESS ...: operations between the GPU memory of two
 * hosts.  Both ends are started with the same PART and numbers.
 *
 *	table WAY LIMIT		each operation with crooked sizes and addresses,
 *				to LIMIT bytes
 *	atomics WAY		FETCH_ADD and CMP_SWAP
 *	window WAY		a WRITE through a window of the peer, before and after
 *				a SEND that invalidates its key
 *	big WAY BYTES SEED	each operation with BYTES, counted by the host's
 *				side, which also searches the machine's memory
 *				for the data
 *	plant WAY BYTES SEED	the data once in host memory, for the search
 *	late LABEL		a WRITE whose data the peer's GPU shows late
 *	refused			a strict registration where only staging works
 *
 * WAY is how memory must get registered: plain, staged, or any.
 */
#include "rdma.h"

struct op {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool pull;		/* the active end is the target */
	bool receives;		/* the passive end posts receives */
};

static const struct op ops[] = {
	{ "WRITE", IBV_WR_RDMA_WRITE, false, false },
	{ "READ", IBV_WR_RDMA_READ, true, false },
	{ "SEND", IBV_WR_SEND, false, true },
	{ "WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, false, true },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, false, true },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV, false, true },
};
#define BIG_OPS		4	/* the others are a SEND but for its notice */

/* from one crooked address to another */
static const struct shape {
	size_t size, from, to;
} shapes[] = {
	{ 1, 0, 0 }, { 1, 4095, 8191 }, { 3, 1, 2 }, { 8, 0, 4092 },
	{ 511, 513, 7 }, { 4095, 1, 0 }, { 4096, 0, 0 }, { 4096, 4095, 1 },
	{ 4097, 3, 65535 }, { KIB(64) - 1, 17, 4000 }, { KIB(64), 0, 0 },
	{ MIB(1) + 3, 100, 9 }, { MIB(16), 0, 0 }, { MIB(20) + 1, 5, 3 },
};

#define IMM	0x1ab50000u	/* and the number of the request */

static struct area data, ref, guard;
/*
 * The passive end's window: on host memory, as the kernel takes no IBV_ACCESS_MW_BIND
 * for a dma-buf (UVERBS_METHOD_REG_DMABUF_MR).  Its key at both ends is peer_rkey.
 */
static struct area window;
static uint64_t behind_window;
static struct ibv_mw *mw;

static bool is_way(const struct area *a, const char *way)
{
	return !strcmp(way, "any") || ok(!strcmp(mr_way(a->mr), way),
		  "memory of the GPU is registered as %s", way);
}

static void prepare(struct end *e, const char *where, size_t limit)
{
	gpu_open();
	rdma_open(e, where);
	area_make(e, &data, limit + 4 * GUARD, "the GPU's memory");
	ref.ptr = gpu_alloc(limit + 8);
	guard.ptr = gpu_alloc(GUARD);
	cuMemsetD8_v2(guard.ptr, GUARD_BYTE, GUARD);
	rdma_connect(e);
}

static void window_open(struct end *e)
{
	static struct ibv_mr *mr;
	uint64_t rkey = 0;

	if (!e->active) {
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		};
		struct ibv_wc wc;

		mr = mr ?: ibv_reg_mr(e->pd, &behind_window, sizeof(behind_window),
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_MW_BIND);
		mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
		if (!mr || !mw)
			die("ibv_reg_mr, ibv_alloc_mw");
		rkey = ibv_inc_rkey(mw->rkey);
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = (uint32_t)rkey;
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
			.mr = mr, .addr = (uintptr_t)&behind_window,
			.length = sizeof(behind_window),
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
		if (ibv_post_send(e->qp, &wr, &bad) || !wait_wc(e, &wc, WC_MS) ||
		    wc.status || wc.opcode != IBV_WC_BIND_MW)
			die("a window is opened");
		window.peer_rkey = (uint32_t)rkey;
	}
	swap_words(e, (uintptr_t)&behind_window, &window.peer_addr);
	swap_words(e, rkey, &rkey);
	if (e->active)
		window.peer_rkey = (uint32_t)rkey;
}

static void window_free(struct end *e)
{
	if (!e->active && ibv_dealloc_mw(mw))
		die("ibv_dealloc_mw");
}

/* What a receive says besides its length: NULL, or what is wrong with it */
static const char *notice(const struct end *e, enum ibv_wr_opcode opcode, bool last, uint32_t imm,
			  const struct ibv_wc *wc)
{
	bool with_imm = opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool with_inv = opcode == IBV_WR_SEND_WITH_INV && last;
	unsigned int inv = IBV_WC_WITH_INV;

	/* soft-RoCE passes the kernel's number of the flag on to programs */
	if (!strncmp(ibv_get_device_name(e->ctx->device), "rxe", 3))
		inv = 1 << 2;
	if (wc->opcode != (opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
			   IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return "the opcode";
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != with_imm ||
	    (with_imm && ntohl(wc->imm_data) != imm))
		return "immediate data";
	if (!!(wc->wc_flags & inv) != with_inv ||
	    (with_inv && wc->invalidated_rkey != window.peer_rkey))
		return "the invalidated key";
	return NULL;
}

/* The passive end of SEND and WRITE_WITH_IMM: as many as there are requests. */
static bool received(struct end *e, const struct op *op, size_t size)
{
	const char *wrong;
	uint32_t turn = 0;
	struct ibv_wc wc;

	for (size_t done = 0; done < size; turn++) {
		size_t n = size - done < e->max_msg ? size - done : e->max_msg;

		if (!wait_wc(e, &wc, WC_MS) || wc.status != IBV_WC_SUCCESS ||
		    wc.wr_id != turn || wc.byte_len != n) {
			note("receive %u: %s, %u bytes", turn,
			     ibv_wc_status_str(wc.status), wc.byte_len);
			return false;
		}
		wrong = notice(e, op->opcode, done + n == size, IMM + turn, &wc);
		if (wrong) {
			note("receive %u: %s, flags 0x%x, 0x%x", turn, wrong,
			     wc.wc_flags, ntohl(wc.imm_data));
			return false;
		}
		done += n;
	}
	return true;
}

static void post_receives(struct end *e, const struct op *op, size_t at,
			  size_t size)
{
	uint64_t turn = 0;

	for (size_t done = 0; done < size; turn++) {
		size_t n = size - done < e->max_msg ? size - done : e->max_msg;
		int err;

		/* what a WRITE_WITH_IMM brings goes where the writer says */
		err = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
			post_receive(e, &data, 0, 0, turn) :
			post_receive(e, &data, at + done, n, turn);
		if (err) {
			errno = err;
			die("ibv_post_recv");
		}
		done += n;
	}
}

/* One operation; both ends know in the end that it is right in every respect. */
static void run(struct end *e, const struct op *op, const struct shape *s,
		uint64_t seed, const char *label)
{
	bool source = e->active != op->pull, good = true;
	size_t at = GUARD + (source ? s->from : s->to);
	uint64_t status = IBV_WC_SUCCESS, theirs, crc;
	double began, cpu;

	if (op->opcode == IBV_WR_SEND_WITH_INV)
		window_open(e);
	if (source) {
		pattern_put(data.ptr + at, seed, s->size);
	} else {
		cuMemsetD8_v2(data.ptr + s->to, GUARD_BYTE, s->size + 2 * GUARD);
		/* what has to come, while the source makes it too */
		pattern_put(ref.ptr, seed, s->size);
		if (op->receives)
			post_receives(e, op, at, s->size);
	}
	if (label)
		host_must("begin %s", label);
	cpu = cpu_seconds();
	if (source && pln_mr_from_gpu(data.mr, at, s->size))
		good = false;
	sync_ends(e);
	began = seconds();
	if (e->active) {
		struct request r = { .opcode = op->opcode, .local = &data,
			.at = at, .size = s->size, .imm = IMM,
			.invalidate = window.peer_rkey,
			.remote = op->receives && op->opcode != IBV_WR_RDMA_WRITE_WITH_IMM ?
				NULL : &data,
			.peer_at = GUARD + (op->pull ? s->from : s->to) };

		status = move(e, &r);
		if (status)
			note("the request's status: %s",
			     ibv_wc_status_str((enum ibv_wc_status)status));
	} else if (op->receives) {
		good &= received(e, op, s->size);
	}
	swap_words(e, status, &theirs);
	good &= !status && !theirs;
	if (op->opcode == IBV_WR_SEND_WITH_INV)
		window_free(e);
	began = seconds() - began;
	if (!source && pln_mr_to_gpu(data.mr, at, s->size))
		good = false;
	if (label) {
		host_must("end %s", label);
		note("%s: %zu bytes in %.1f s of emulation", op->name, s->size,
		     began);
		print_transfer(label, source ? "rdma-source" : "rdma-target",
			       data.mr, s->size, cpu_seconds() - cpu);
	}

	crc = gpu_crc(data.ptr + at, s->size);
	swap_words(e, crc, &theirs);
	if (crc != theirs)
		note("the GPUs' CRCs: %08" PRIx64 " here, %08" PRIx64 " there",
		     crc, theirs);
	good &= crc == theirs;
	if (s->size <= KIB(64) && crc != pattern_crc(seed, s->size)) {
		note("the processor's CRC of the data is another");
		good = false;
	}
	if (!source) {
		good &= gpu_same(data.ptr + at, ref.ptr, s->size, "the data");
		good &= gpu_same(data.ptr + s->to, guard.ptr, GUARD,
			     "memory in front");
		good &= gpu_same(data.ptr + at + s->size, guard.ptr, GUARD,
			     "memory behind");
	}
	swap_words(e, good, &theirs);
	ok(good && theirs, "%s of %zu bytes, +%zu to +%zu: completions, data, neighbours and both GPUs' CRCs are right",
	   op->name, s->size, s->from, s->to);
}

static int table(struct end *e, const char *where, const char *way, size_t limit)
{
	uint64_t seed = 0x5eed0000;

	prepare(e, where, limit + KIB(128));
	is_way(&data, way);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
			if (shapes[i].size <= limit)
				run(e, &ops[o], &shapes[i], seed += 1ull << 32,
				    NULL);
	return finish();
}

/* ---- atomics ---- */

#define ADDS	500
#define ADD	0x100000003ull

/* an atomic operation on the peer's word 0; the old value comes to OLD */
static uint64_t atomic(struct end *e, struct request *r)
{
	struct ibv_wc wc;

	r->local = r->remote = &data;
	r->at = 64;
	r->size = 8;
	if (post_request(e, r) || !wait_wc(e, &wc, WC_MS) || wc.status)
		die("an atomic operation");
	return word_of(&data, r->at);
}

static int atomics(struct end *e, const char *where, const char *way)
{
	struct request r = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .add = ADD };
	unsigned int bad = 0;
	uint64_t old;

	prepare(e, where, KIB(64));
	is_way(&data, way);
	set_word(&data, 0, 7);
	set_word(&data, 8, GUARD_BYTE);
	sync_ends(e);
	/* both ends at a time, each on a word of the other */
	for (unsigned int i = 0; i < ADDS; i++) {
		old = atomic(e, &r);
		if (old != 7 + i * ADD && !bad++)
			note("addition %u found %" PRIu64, i, old);
	}
	ok(!bad, "%u FETCH_ADD in a row each found what the one before had left",
	   ADDS);
	sync_ends(e);
	ok(word_of(&data, 0) == 7 + ADDS * ADD, "their sum is in GPU memory");
	sync_ends(e);

	r.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	r.compare = 7 + ADDS * ADD;
	r.swap = ~5ull;
	ok(atomic(e, &r) == r.compare, "CMP_SWAP of the value that is there finds it");
	sync_ends(e);
	ok(word_of(&data, 0) == r.swap, "and has changed it");
	sync_ends(e);
	old = r.swap;
	r.swap = 1;
	ok(atomic(e, &r) == old, "CMP_SWAP of another value finds what is there");
	sync_ends(e);
	ok(word_of(&data, 0) == old, "and has changed nothing");
	ok(word_of(&data, 8) == GUARD_BYTE, "nor have any its neighbour");
	sync_ends(e);
	return finish();
}

/* ---- a window that a message closes ---- */

/* Eight bytes of GPU memory through the window; how the request ended */
static enum ibv_wc_status through(struct end *e, uint64_t word)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE, .local = &data, .remote = &window,
		.at = 64, .size = sizeof(word) };

	set_word(&data, r.at, word);
	return move(e, &r);
}

static int closed_window(struct end *e, const char *where, const char *way)
{
	const struct op op = { "SEND_WITH_INV", IBV_WR_SEND_WITH_INV, false, true };
	struct request r = { .opcode = op.opcode, .local = &data, .size = 4096 };
	unsigned int good, flushed;
	enum ibv_wc_status status;

	prepare(e, where, KIB(64));
	is_way(&data, way);
	window_open(e);
	if (!e->active)
		post_receives(e, &op, 0, r.size);
	sync_ends(e);
	r.invalidate = window.peer_rkey;
	if (e->active)
		ok(!through(e, 5), "a WRITE through the window succeeds");
	sync_ends(e);
	if (!e->active)
		ok(behind_window == 5, "and has written");
	sync_ends(e);
	if (e->active)
		ok(!move(e, &r), "a SEND invalidates its key");
	else
		ok(received(e, &op, r.size),
		   "a message says that the key is invalid");
	sync_ends(e);
	if (e->active) {
		status = through(e, 6);
		ok(status == IBV_WC_REM_ACCESS_ERR, "then a WRITE with it is refused: %s",
		   ibv_wc_status_str(status));
	}
	sync_ends(e);
	if (!e->active)
		ok(behind_window == 5, "and has not written");
	rdma_drain(e, &good, &flushed);
	rdma_connect(e);
	window_free(e);
	return finish();
}

/* ---- much data, and where it went ---- */

static void search(struct end *e, const char *label, uint64_t seed, size_t size)
{
	sync_ends(e);
	host_must("search %s %" PRIu64 " %zu", label, seed, size);
	sync_ends(e);
}

static int big(struct end *e, const char *where, const char *way, size_t bytes,
	       uint64_t seed)
{
	struct shape s = { .size = bytes, .from = 0, .to = 0 };

	e->max_msg = bytes;	/* one request, if the device takes it */
	prepare(e, where, bytes);
	is_way(&data, way);
	for (size_t o = 0; o < BIG_OPS; o++) {
		run(e, &ops[o], &s, seed, ops[o].name);
		search(e, ops[o].name, seed, bytes);
		seed += 1ull << 32;
	}
	return finish();
}

/* The control: what the search must find when it is there. */
static int plant(struct end *e, const char *where, const char *way, size_t bytes,
		 uint64_t seed)
{
	uint8_t *copy = malloc(bytes);

	prepare(e, where, bytes);
	is_way(&data, way);
	if (!copy)
		die("malloc");
	pattern_put(data.ptr + GUARD, seed, bytes);
	if (cuMemcpyDtoH_v2(copy, data.ptr + GUARD, bytes))
		die("cuMemcpyDtoH");
	search(e, "planted", seed, bytes);
	ok(crc32c(0, copy, bytes) == gpu_crc(data.ptr + GUARD, bytes),
	   "host memory holds a copy that was put there on purpose");
	return finish();
}

/* ---- a GPU that shows late what was written ---- */

#define BLOCK	4096u

/* How many blocks of WANT do loads of the processor find? */
static unsigned int seen(const uint8_t *want, size_t size)
{
	const uint8_t *there = addr(data.ptr + GUARD);
	unsigned int n = 0;

	for (size_t at = 0; at < size; at += BLOCK)
		n += !memcmp(there + at, want + at, BLOCK);
	return n;
}

static int late(struct end *e, const char *where, const char *name)
{
	struct request r = { .opcode = IBV_WR_RDMA_WRITE, .local = &data, .remote = &data,
		.at = GUARD, .peer_at = GUARD, .size = KIB(256) };
	const uint64_t seed = 0x1a7eull << 32;
	struct json_object *facts = json_object_new_object();
	uint8_t *want = malloc(r.size);
	uint64_t status = IBV_WC_SUCCESS;

	/* The card writes through BAR1; by the coherent window it would not */
	e->mr_flags = PLN_MR_STRICT | PLN_MR_ONLY_DMABUF;
	prepare(e, where, r.size);
	if (!want || !cpu_reaches_gpu())
		die("malloc, a coherent window");
	words(want, seed, r.size);
	if (e->active)
		pattern_put(data.ptr + GUARD, seed, r.size);
	else if (cuMemsetD8_v2(data.ptr, 0, data.size))
		die("cuMemsetD8");
	/* The GPU gets no work from here on: its driver may flush before it */
	host_must("barrier %s.ready", name);
	host_must("begin %s", name);
	sync_ends(e);
	if (e->active)
		status = move(e, &r);
	sync_ends(e);
	host_must("end %s", name);
	if (e->active) {
		ok(!status, "%s: the WRITE succeeds", name);
	} else {
		json_set(facts, "blocks", r.size / BLOCK);
		json_set(facts, "seen_before", seen(want, r.size));
		is(pln_mr_to_gpu(data.mr, GUARD, r.size), 0, "pln_mr_to_gpu()");
		json_set(facts, "seen_after", seen(want, r.size));
		json_set(facts, "gpu_sees",
			 (bool)(gpu_crc(data.ptr + GUARD, r.size) == pattern_crc(seed, r.size)));
		tell_fact(name, facts);
	}
	sync_ends(e);
	return finish();
}

/* ---- refused ---- */

int cuMemGetHandleForAddressRange(void *handle, gpu_ptr p, size_t size,
				  int type, unsigned long long flags);
#define DMA_BUF_FD	1

/* What the kernel says without any library of ours: errno of either way. */
static void refused_by_kernel(struct end *e, gpu_ptr p, size_t size,
			      int *dmabuf, int *plain)
{
	int fd = -1, access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	if (cuMemGetHandleForAddressRange(&fd, p, size, DMA_BUF_FD, 0))
		die("cuMemGetHandleForAddressRange");
	errno = 0;
	ok(!ibv_reg_dmabuf_mr(e->pd, 0, size, p, fd, access),
	   "ibv_reg_dmabuf_mr() of the GPU's memory fails");
	*dmabuf = errno;
	errno = 0;
	ok(!ibv_reg_mr(e->pd, addr(p), size, access),
	   "ibv_reg_mr() of the GPU's memory fails");
	*plain = errno;
	note("with %s and %s", strerror(*dmabuf), strerror(*plain));
	close(fd);
}

static int refused(struct end *e, const char *where)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr = (void *)e;
	gpu_ptr p;
	int err, dmabuf, plain;
	uint32_t before;

	gpu_open();
	rdma_open(e, where);
	p = gpu_alloc(MIB(4));
	pattern_put(p, 0x5eed, MIB(4));
	before = gpu_crc(p, MIB(4));
	refused_by_kernel(e, p, MIB(4), &dmabuf, &plain);
	host_must("begin refused");
	sync_ends(e);
	err = pln_mr_reg(e->pd, addr(p), MIB(4), IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_WRITE, PLN_MR_STRICT, &mr);
	sync_ends(e);
	host_must("end refused");
	is(plain, EFAULT, "the kernel has no pages of it: EFAULT");
	is(err, -plain, "a strict registration fails with the kernel's error");
	ok(mr == (void *)e, "and gives no registration");
	if (pln_mr_info(NULL, &info))
		die("pln_mr_info");
	note("%s", info.reason);
	ok(info.way == PLN_MR_NONE && info.error == err,
	   "the library says that no way worked");
	ok(info.tried[PLN_MR_DMABUF].error == -dmabuf && dmabuf &&
	   info.tried[PLN_MR_DMABUF].words[0],
	   "a dma-buf was refused by the device's driver, in words too");
	ok(info.tried[PLN_MR_PLAIN].error == -plain &&
	   info.tried[PLN_MR_PLAIN].words[0],
	   "plain registration by the kernel, in words too");
	ok(!info.tried[PLN_MR_STAGED].error && info.tried[PLN_MR_STAGED].words[0],
	   "staging was not tried, and the library says why");
	ok(info.reason[0] && strstr(info.reason, "PLN_MR_STRICT"),
	   "the reason, in one line, names what forbids to stage");
	ok(gpu_crc(p, MIB(4)) == before && before == pattern_crc(0x5eed, MIB(4)),
	   "the GPU's memory is as it was");
	e->mr_flags = 0;
	data.ptr = p;
	data.size = MIB(4);
	area_register(e, &data, "the same memory, not strictly");
	is_way(&data, "staged");
	sync_ends(e);
	return finish();
}

int main(int argc, char **argv)
{
	const char *part = argc > 2 ? argv[1] : "";
	uint64_t n[2] = { 0 };
	/* The wire loses nothing: nobody waits for 9 s, but for an emulator that got no processor */
	struct end e = { .timeout = 21 };

	for (int i = 4; i < argc && i < 6; i++)
		n[i - 4] = strtoull(argv[i], NULL, 0);
	if (!strcmp(part, "table") && argc == 5)
		return table(&e, argv[2], argv[3], n[0]);
	if (!strcmp(part, "atomics") && argc == 4)
		return atomics(&e, argv[2], argv[3]);
	if (!strcmp(part, "window") && argc == 4)
		return closed_window(&e, argv[2], argv[3]);
	if (!strcmp(part, "big") && argc == 6)
		return big(&e, argv[2], argv[3], n[0], n[1]);
	if (!strcmp(part, "plant") && argc == 6)
		return plant(&e, argv[2], argv[3], n[0], n[1]);
	if (!strcmp(part, "late") && argc == 4)
		return late(&e, argv[2], argv[3]);
	if (!strcmp(part, "refused") && argc == 3)
		return refused(&e, argv[2]);
	fprintf(stderr, "usage: rdma-ops PART listen|ADDRESS ...\n");
	return 2;
}
