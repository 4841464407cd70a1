// SPDX-License-Identifier: MIT
/*
 * cx-dmabuf moves|freed|unbound|barred|paged: GPU memory as dma-bufs, and host
 * memory on demand, under the stock driver of an emulated ConnectX, whose queue
 * pairs talk to each other.  Prints KTAP; the host counts after each move.
 */
#include <sys/mman.h>

#include "peers.h"

int cuMemGetHandleForAddressRange(void *handle, gpu_ptr ptr, size_t size, int type,
				  unsigned long long flags);
#define DMA_BUF_FD	1

#define ALLOC	MIB(8)
#define AT	0x12345		/* of the piece that is registered */
#define LEN	(MIB(3) + 77)
#define GUARD	0xee
#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_ATOMIC)

struct place {
	const char *name;
	uint8_t *host;		/* the whole of it: of the one or the other kind */
	gpu_ptr gpu;
	struct ibv_mr *mr;
	uint64_t iova;		/* of the piece */
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];
static uint8_t data[LEN];

static void connect_qp(struct ibv_qp *q, uint32_t to)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	if (ibv_modify_qp(q, &a, IBV_QP_STATE) || ibv_query_port(ctx, 1, &port))
		die("the queue pair goes to RESET");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("the queue pair goes to INIT");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096,
		.dest_qp_num = to, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .dlid = port.lid, .port_num = 1 } };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("the queue pair goes to RTR");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1 };
	if (ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("the queue pair goes to RTS");
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 } };

	if (!list || !list[0])
		quit("there is an RDMA device");
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!ctx)
		die("ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	if (!pd || !cq)
		die("a protection domain and a completion queue");
	init.send_cq = init.recv_cq = cq;
	for (int i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(pd, &init);
		if (!qp[i])
			die("ibv_create_qp");
	}
	for (int i = 0; i < 2; i++)
		connect_qp(qp[i], qp[!i]->qp_num);
}

/* The next completion, within a minute; its status, or -1 */
static int next(struct ibv_wc *wc)
{
	long long end = now_ms() + 60000;

	while (now_ms() < end) {
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n)
			return wc->status;
	}
	note("no completion");
	return -1;
}

static struct ibv_mr *reg_dmabuf(gpu_ptr p)
{
	struct ibv_mr *mr;
	int fd = -1;
	int r = cuMemGetHandleForAddressRange(&fd, p, ALLOC, DMA_BUF_FD, 0);

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
	struct place p = { .name = name, .gpu = gpu_alloc(ALLOC) };

	p.iova = p.gpu + AT;
	p.mr = reg_dmabuf(p.gpu);
	if (!p.mr)
		die("ibv_reg_dmabuf_mr");
	return p;
}

static struct place host_place(const char *name, int rights)
{
	struct place p = { .name = name };

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
			memcpy(p->host + AT, bytes, LEN);
		return;
	}
	r = cuMemsetD8_v2(p->gpu, GUARD, ALLOC);
	if (!r && bytes)
		r = cuMemcpyHtoD_v2(p->gpu + AT, bytes, LEN);
	if (r)
		quit("%s gets data (CUDA error %d)", p->name, r);
}

/* The data in its place, by the GPU's own CRC if it is there, and the guard around it */
static bool holds(const struct place *p, const uint8_t *bytes)
{
	static uint8_t guard[ALLOC];
	size_t behind = ALLOC - AT - LEN;

	memset(guard, GUARD, sizeof(guard));
	if (p->host)
		return !memcmp(p->host + AT, bytes, LEN) && !memcmp(p->host, guard, AT) &&
		       !memcmp(p->host + AT + LEN, guard, behind);
	return gpu_crc(p->gpu + AT, LEN) == crc32c(0, bytes, LEN) &&
	       gpu_crc(p->gpu, AT) == crc32c(0, guard, AT) &&
	       gpu_crc(p->gpu + AT + LEN, behind) == crc32c(0, guard, behind);
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
	char answer[64];

	printf("@host count %s\n", label);
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin) || strncmp(answer, "ok", 2))
		quit("the host counts");
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
	if (!strcmp(verb, "READ"))
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

/* A way that Linux does not trust: the device has to do without a dma-buf */
static void barred(void)
{
	gpu_ptr p = gpu_alloc(ALLOC);
	struct ibv_mr *mr = reg_dmabuf(p);
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
		{ "moves", moves }, { "freed", freed }, { "unbound", unbound },
		{ "barred", barred }, { "paged", paged },
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
