// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cx-dmabuf moves|devx|piece|freed|unbound|used|barred|paged: GPU memory as dma-bufs, and host
 * memory on demand, under the stock driver of an emulated ConnectX, whose queue
 * pairs talk to each other.  Prints KTAP; the host counts after each move.
 */
#include <sys/mman.h>
#include <sys/utsname.h>

#include "cx-devx.h"

int cuMemGetHandleForAddressRange(void *handle, gpu_ptr ptr, size_t size, int type,
				  unsigned long long flags);
#define DMA_BUF_FD	1

#define ALLOC	MIB(8)
#define AT	0x12345		/* of the piece that is registered */
#define LEN	(MIB(3) + 77)
#define GUARD	0xee

struct place {
	const char *name;
	uint8_t *host;		/* the whole of it: of the one or the other kind */
	gpu_ptr gpu;
	size_t at;		/* of the piece */
	struct ibv_mr *mr;
	uint64_t iova;		/* likewise */
};

static uint8_t data[LEN];

/* AT behind the beginning of what is exported: SIZE bytes from P on */
static struct ibv_mr *reg_dmabuf(gpu_ptr p, size_t size)
{
	struct ibv_mr *mr;
	int fd = -1;
	int r = cuMemGetHandleForAddressRange(&fd, p, size, DMA_BUF_FD, 0);

	if (r)
		quit("GPU memory is exported (CUDA error %d)", r);
	mr = ibv_reg_dmabuf_mr(pd, AT, LEN, p + AT, fd, RIGHTS);
	r = errno;
	close(fd);
	errno = r;
	return mr;
}

static struct place gpu_place(const char *name)
{
	struct place p = { .name = name, .gpu = gpu_alloc(ALLOC), .at = AT };

	p.iova = p.gpu + AT;
	p.mr = reg_dmabuf(p.gpu, ALLOC);
	if (!p.mr)
		die("ibv_reg_dmabuf_mr");
	return p;
}

static struct place host_place(const char *name, int rights)
{
	struct place p = { .name = name, .at = AT };

	p.host = mmap(NULL, ALLOC, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p.host == MAP_FAILED)
		die("mmap");
	p.iova = (uintptr_t)p.host + AT;
	p.mr = ibv_reg_mr(pd, p.host + AT, LEN, rights);
	if (!p.mr)
		die("ibv_reg_mr");
	return p;
}

/* The guard everywhere, or around the data */
static void put(const struct place *p, const uint8_t *bytes)
{
	int r = 0;

	if (p->host) {
		memset(p->host, GUARD, ALLOC);
		if (bytes)
			memcpy(p->host + p->at, bytes, LEN);
		return;
	}
	r = cuMemsetD8_v2(p->gpu, GUARD, ALLOC);
	if (!r && bytes)
		r = cuMemcpyHtoD_v2(p->gpu + p->at, bytes, LEN);
	if (r)
		quit("%s gets data (CUDA error %d)", p->name, r);
}

/* The data in its place, by the GPU's own CRC if it is there, and the guard around it */
static bool holds(const struct place *p, const uint8_t *bytes)
{
	static uint8_t guard[ALLOC];
	size_t behind = ALLOC - p->at - LEN;

	memset(guard, GUARD, sizeof(guard));
	if (p->host)
		return !memcmp(p->host + p->at, bytes, LEN) && !memcmp(p->host, guard, p->at) &&
		       !memcmp(p->host + p->at + LEN, guard, behind);
	return gpu_crc(p->gpu + p->at, LEN) == crc32c(0, bytes, LEN) &&
	       gpu_crc(p->gpu, p->at) == crc32c(0, guard, p->at) &&
	       gpu_crc(p->gpu + p->at + LEN, behind) == crc32c(0, guard, behind);
}

static void fill(uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < LEN; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
}

/* The host looks at all counters now */
static void counted(const char *label)
{
	char what[80];

	snprintf(what, sizeof(what), "count %s", label);
	host_does(what);
}

/* One request of the first queue pair; what is local is what it sends, or reads into */
static int request(enum ibv_wr_opcode op, const struct place *local, const struct place *remote)
{
	struct ibv_sge sge = { local->iova, LEN, local->mr->lkey };
	struct ibv_sge into = { remote->iova, LEN, remote->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &into, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;
	int status;

	wr.wr.rdma.remote_addr = remote->iova;
	wr.wr.rdma.rkey = remote->mr->rkey;
	if ((op == IBV_WR_SEND && ibv_post_recv(qp[1], &recv, &bad_recv)) ||
	    ibv_post_send(qp[0], &wr, &bad))
		die("posting");
	status = next(&wc);
	if (op == IBV_WR_SEND && !status)
		status = next(&wc);
	return status;
}

static void move(const char *verb, const struct place *from, const struct place *to)
{
	static uint32_t seed;
	char label[64];
	int status;

	snprintf(label, sizeof(label), "%s-%s-%s", verb, from->name, to->name);
	fill(++seed);
	put(from, data);
	put(to, NULL);
	counted("before");
	if (!strcmp(verb, "DEVX"))
		status = devx_write(from->iova, from->mr->lkey, to->iova, to->mr->rkey, LEN);
	else if (!strcmp(verb, "READ"))
		status = request(IBV_WR_RDMA_READ, to, from);
	else
		status = request(!strcmp(verb, "SEND") ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, from, to);
	counted(label);
	if (!ok(!status && holds(to, data) && holds(from, data), "%s of %zu bytes from %s to %s",
		verb, LEN, from->name, to->name))
		note("status %d", status);
}

static void moves(void)
{
	static const char *const verbs[] = { "WRITE", "READ", "SEND" };
	struct place host = host_place("host", RIGHTS), one = gpu_place("gpu");
	struct place two = gpu_place("gpu2");
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr;
	int err;

	for (int i = 0; i < 3; i++) {
		move(verbs[i], &host, &one);
		move(verbs[i], &one, &host);
		move(verbs[i], &one, &two);
	}
	err = pln_mr_reg(pd, addr(one.gpu + 1), 100000, RIGHTS, PLN_MR_STRICT, &mr);
	if (!err)
		pln_mr_info(mr, &info);
	if (!ok(!err && info.way == PLN_MR_DMABUF, "pln_mr_reg() takes a dma-buf"))
		note("error %d: %s", err, info.reason);
	ok(!err && !pln_mr_dereg(mr) && !ibv_dereg_mr(one.mr) && !ibv_dereg_mr(two.mr) &&
	   !ibv_dereg_mr(host.mr), "all is deregistered");
}

/*
 * GPU memory for queues is pinned, and its owner cannot be told that it goes: the GPU's driver, which can always take its
 * memory back, refuses that.  The importer of Linux 6.12 has a callback for it, which does nothing: there it is taken, and
 * memory that is freed stays in quarantine.
 */
static void queues_in_gpu(void)
{
	struct mlx5dv_devx_umem *got;
	struct utsname linux_is;
	struct mlx5dv_devx_umem_in umem = {
		.size = ALLOC, .access = IBV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = UINT64_MAX & ~4095ull,
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF, .dmabuf_fd = -1,
	};

	if (cuMemGetHandleForAddressRange(&umem.dmabuf_fd, gpu_alloc(ALLOC), ALLOC, DMA_BUF_FD, 0))
		quit("GPU memory is exported");
	errno = 0;
	got = mlx5dv_devx_umem_reg_ex(ctx, &umem);
	if (!uname(&linux_is) && atoi(linux_is.release) < 7)
		ok(got && !mlx5dv_devx_umem_dereg(got), "GPU memory for queues of DEVX is taken, pinned");
	else if (!ok(!got && errno == EOPNOTSUPP, "GPU memory for queues of DEVX, which is pinned, is refused"))
		note("%s", strerror(errno));
	close(umem.dmabuf_fd);
}

/* The same by queues in memory of the program, and a doorbell of its own */
static void by_devx(void)
{
	struct place host = host_place("host", RIGHTS), one = gpu_place("gpu");
	struct place two = gpu_place("gpu2");

	devx_open();
	move("DEVX", &host, &one);
	move("DEVX", &one, &host);
	move("DEVX", &one, &two);
	ok(devx_close(), "its queues can be given up");
	queues_in_gpu();
}

/* A part of an allocation is exported, and a part of that is registered */
static void piece(void)
{
	struct place host = host_place("host", RIGHTS);
	struct place part = { .name = "gpu", .gpu = gpu_alloc(ALLOC), .at = MIB(2) + AT };
	uint64_t past;
	int fd = -1;

	part.iova = part.gpu + part.at;
	part.mr = reg_dmabuf(part.gpu + MIB(2), MIB(4));
	if (!part.mr)
		die("ibv_reg_dmabuf_mr");
	move("WRITE", &host, &part);
	move("READ", &part, &host);
	/* What is behind it is the same allocation, and not exported */
	past = MIB(4) - LEN + 1;
	if (cuMemGetHandleForAddressRange(&fd, part.gpu + MIB(2), MIB(4), DMA_BUF_FD, 0))
		quit("GPU memory is exported");
	errno = 0;
	ok(!ibv_reg_dmabuf_mr(pd, past, LEN, part.iova, fd, RIGHTS) && errno == EINVAL,
	   "one byte beyond what is exported: EINVAL");
	close(fd);
	ok(!ibv_dereg_mr(part.mr) && !ibv_dereg_mr(host.mr), "both are deregistered");
}

/* The GPU's memory has gone from under the registration: nothing arrives there, nothing comes from there */
static void gone(struct place *dead, const char *why)
{
	struct place host = host_place("host", RIGHTS);
	int status;

	fill(77);
	put(&host, data);
	counted("before");
	status = request(IBV_WR_RDMA_WRITE, &host, dead);
	counted("WRITE");
	if (!ok(status == IBV_WC_REM_ACCESS_ERR, "%s: WRITE is a remote access error", why))
		note("status %d", status);
	for (int i = 0; i < 2; i++)
		connect_qp(qp[i], qp[!i]->qp_num);
	put(&host, NULL);
	counted("before");
	status = request(IBV_WR_RDMA_WRITE, dead, &host);
	counted("WRITE-from");
	if (!ok(status == IBV_WC_LOC_PROT_ERR, "%s: WRITE from there is a local protection error", why))
		note("status %d", status);
	for (size_t i = 0; i < ALLOC; i++)
		if (host.host[i] != GUARD) {
			ok(false, "%s: byte %zu has come from there", why, i);
			break;
		}
	ok(!ibv_dereg_mr(dead->mr), "%s: the registration can be given up", why);
}

static void freed(void)
{
	struct place dead = gpu_place("gpu");

	if (cuMemFree_v2(dead.gpu))
		quit("GPU memory that is registered can be freed");
	gone(&dead, "freed");
}

static void unbound(void)
{
	struct place dead = gpu_place("gpu");
	char path[] = "/sys/bus/pci/drivers/peerlane_gpu/unbind";
	int fd = must_open(path, O_WRONLY);

	if (write(fd, guest_bdf, strlen(guest_bdf)) != (ssize_t)strlen(guest_bdf))
		die(path);
	close(fd);
	gone(&dead, "unbound");
}

/*
 * The memory is freed while a stream of WRITEs goes there: once that has returned it is somebody else's, and
 * the rest of the stream is refused.
 */
static void used(void)
{
	struct place host = host_place("host", RIGHTS), dead = gpu_place("gpu");
	struct ibv_sge sge = { host.iova, LEN, host.mr->lkey };
	unsigned int good = 0, refused = 0, flushed = 0, others = 0, wrong = 0;
	static uint8_t guard[ALLOC];
	gpu_ptr other[64];
	struct ibv_wc wc;

	fill(99);
	put(&host, data);
	memset(guard, GUARD, sizeof(guard));
	for (int i = 0; i < STREAM; i++) {
		struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED };

		wr.wr.rdma.remote_addr = dead.iova;
		wr.wr.rdma.rkey = dead.mr->rkey;
		if (ibv_post_send(qp[0], &wr, &bad))
			die("posting");
	}
	if (next(&wc))
		quit("the stream begins");
	if (cuMemFree_v2(dead.gpu))
		quit("GPU memory that is in use can be freed");
	while (others < 64 && !cuMemAlloc_v2(&other[others], ALLOC))
		if (cuMemsetD8_v2(other[others++], GUARD, ALLOC))
			quit("another allocation gets data");
	for (good = 1; good + refused + flushed < STREAM; ) {
		switch (next(&wc)) {
		case IBV_WC_SUCCESS:
			good++;
			break;
		case IBV_WC_REM_ACCESS_ERR:
			refused++;
			break;
		case IBV_WC_WR_FLUSH_ERR:
			flushed++;
			break;
		default:
			quit("a request ends with another status: %d", wc.status);
		}
	}
	note("%u requests are done, %u refused, %u flushed; %u allocations of 8 MiB follow", good, refused, flushed, others);
	ok(refused == 1 && flushed, "in use: one WRITE is a remote access error, those behind it are flushed");
	/* 128 MiB in all: that of the dead one is among them */
	ok(others >= 14, "in use: all memory of the GPU belongs to others then");
	for (unsigned int i = 0; i < others; i++)
		wrong += gpu_crc(other[i], ALLOC) != crc32c(0, guard, ALLOC);
	ok(!wrong, "in use: none of them has seen a byte of the stream");
	ok(!ibv_dereg_mr(dead.mr) && !ibv_dereg_mr(host.mr), "in use: the registration can be given up");
}

/* A way that Linux does not trust: the device has to do without a dma-buf */
static void barred(void)
{
	gpu_ptr p = gpu_alloc(ALLOC);
	struct ibv_mr *mr = reg_dmabuf(p, ALLOC);
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *staged;
	int err;

	note("ibv_reg_dmabuf_mr: %s", mr ? "taken" : strerror(errno));
	ok(!mr && errno != EOPNOTSUPP, "ibv_reg_dmabuf_mr is refused");
	err = pln_mr_reg(pd, addr(p + AT), LEN, RIGHTS, 0, &staged);
	if (err)
		quit("pln_mr_reg: %s", strerror(-err));
	pln_mr_info(staged, &info);
	note("%s", info.reason);
	ok(info.way == PLN_MR_STAGED && info.tried[PLN_MR_DMABUF].error,
	   "pln_mr_reg() stages, and has the error of the dma-buf");
	ok(strstr(info.reason, "dmabuf refused: ") != NULL, "and says why");
	ok(!pln_mr_dereg(staged), "which can be given up");
}

/* Host memory whose pages come when they are asked for, go, and come again */
static void paged(void)
{
	struct place host = host_place("host", RIGHTS);
	struct place lazy = host_place("lazy", RIGHTS | IBV_ACCESS_ON_DEMAND);
	static const char *const rounds[] = { "never touched", "given back" };

	for (uint32_t i = 0; i < 2; i++) {
		fill(100 + i);
		put(&host, data);
		if (i && madvise(lazy.host, ALLOC, MADV_DONTNEED))
			die("madvise");
		counted("before");
		ok(!request(IBV_WR_RDMA_WRITE, &host, &lazy) && !memcmp(lazy.host + AT, data, LEN),
		   "WRITE to memory that was %s", rounds[i]);
		counted(i ? "again" : "first");
		fill(200 + i);
		put(&host, data);
		if (madvise(lazy.host, ALLOC, MADV_DONTNEED))
			die("madvise");
		ok(!request(IBV_WR_SEND, &host, &lazy) && !memcmp(lazy.host + AT, data, LEN),
		   "SEND to memory that was %s", rounds[1]);
		memcpy(lazy.host + AT, data, LEN);
		put(&host, NULL);
		ok(!request(IBV_WR_RDMA_READ, &host, &lazy) && !memcmp(host.host + AT, data, LEN),
		   "READ from it");
	}
	/* What is not mapped any more can be no page */
	if (munmap(lazy.host, ALLOC))
		die("munmap");
	ok(request(IBV_WR_RDMA_WRITE, &host, &lazy) == IBV_WC_REM_ACCESS_ERR,
	   "WRITE to memory that is unmapped: remote access error");
	ok(!ibv_dereg_mr(lazy.mr) && !ibv_dereg_mr(host.mr), "both can be given up");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {
		{ "moves", moves }, { "devx", by_devx }, { "piece", piece }, { "freed", freed }, { "unbound", unbound },
		{ "used", used }, { "barred", barred }, { "paged", paged },
	};

	gpu_open();
	open_all();
	for (unsigned int i = 0; argc == 2 && i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(argv[1], parts[i].name)) {
			parts[i].run();
			return finish();
		}
	quit("a part that there is");
}
