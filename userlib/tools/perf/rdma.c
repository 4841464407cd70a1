// SPDX-License-Identifier: MIT
/* peerlane perf: one end's device, memory and queue pairs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <peerlane/mr.h>
#include <peerlane/peerlane.h>

#include "perf.h"
#include "tool.h"

#define MAX_READS	16
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ)

bool perf_end_open(struct perf_end *e, const struct perf_options *o)
{
	struct ibv_device_attr attr;
	char why[512];

	if (verbs_load(why, sizeof(why)) ||
	    verbs_open(&e->port, o->device, o->ib_port, why, sizeof(why)) ||
	    verbs_choose_gid(&e->port, o->gid_index, true, why, sizeof(why))) {
		complain("%s", why);
		return false;
	}
	if (verbs_lib.query_device(e->port.ctx, &attr) || attr.max_qp_rd_atom < 1)
		attr.max_qp_rd_atom = 1;
	e->reads = (uint8_t)(attr.max_qp_rd_atom < MAX_READS ?
			     attr.max_qp_rd_atom : MAX_READS);
	e->pd = verbs_lib.alloc_pd(e->port.ctx);
	if (!e->pd) {
		complain("%s gives no protection domain: %s", e->port.device,
			 strerror(errno));
		return false;
	}
	snprintf(why, sizeof(why), "/sys/class/infiniband/%s/device",
		 e->port.device);
	e->software = access(why, F_OK) != 0;
	e->emulated = gpu_emulated();
	return true;
}

/* ---- memory ---- */

static void host_memory(struct perf_end *e, struct perf_buffer *b)
{
	b->host = mmap(NULL, b->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->host == MAP_FAILED) {
		b->host = NULL;
		snprintf(b->info.reason, sizeof(b->info.reason),
			 "%llu bytes of host memory cannot be had: %s",
			 (unsigned long long)b->size, strerror(errno));
		return;
	}
	b->mr = verbs_lib.reg_mr(e->pd, b->host, b->size, ACCESS);
	if (!b->mr) {
		snprintf(b->info.reason, sizeof(b->info.reason),
			 "host memory cannot be registered: %s%s",
			 strerror(errno), errno == ENOMEM ?
			 " (ulimit -l limits how much may be locked)" : "");
		return;
	}
	b->addr = (uint64_t)(uintptr_t)b->host;
	b->lkey = b->mr->lkey;
	b->info.rkey = b->mr->rkey;
	b->info.possible = true;
}

static void gpu_memory(struct perf_end *e, struct perf_buffer *b, bool staged)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	struct ibv_mr *mr;
	int r;

	if (!gpu_alloc(b->size, &b->gpu)) {
		snprintf(b->info.reason, sizeof(b->info.reason),
			 "%llu bytes of GPU memory cannot be had",
			 (unsigned long long)b->size);
		return;
	}
	r = pln_mr_reg(e->pd, (void *)(uintptr_t)b->gpu, b->size, ACCESS,
		       staged ? PLN_MR_ONLY_STAGED : PLN_MR_STRICT, &b->pln);
	if (pln_mr_info(r ? NULL : b->pln, &info))
		info.reason[0] = '\0';
	snprintf(b->info.reason, sizeof(b->info.reason), "%.*s",
		 PERF_TEXT - 1, info.reason[0] || !r ? info.reason :
		 pln_strerror(r));
	if (r)
		return;
	mr = pln_mr_verbs(b->pln);
	b->addr = pln_mr_iova(b->pln, 0);
	b->lkey = mr->lkey;
	b->info.rkey = mr->rkey;
	b->info.way = (uint8_t)info.way;
	b->info.possible = true;
}

bool perf_end_memory(struct perf_end *e, unsigned int mems, uint64_t size,
		     int gpu)
{
	const unsigned int of_gpu = 1u << PERF_DIRECT | 1u << PERF_STAGED;
	bool any = false, there;
	int i;

	there = mems & of_gpu && gpu_open(gpu);
	if (there)
		gpu_name(gpu, e->gpu, sizeof(e->gpu));
	for (i = 0; i < PERF_MEMS; i++) {
		struct perf_buffer *b = &e->mem[i];

		if (!(mems & 1u << i))
			continue;
		b->size = size;
		if (i == PERF_HOST)
			host_memory(e, b);
		else if (there)
			gpu_memory(e, b, i == PERF_STAGED);
		else
			snprintf(b->info.reason, sizeof(b->info.reason),
				 "there is no GPU that can be used");
		b->info.addr = b->addr;
		any |= b->info.possible;
	}
	return any;
}

static void release(struct perf_buffer *b)
{
	if (b->pln)
		pln_mr_dereg(b->pln);
	if (b->mr)
		verbs_lib.dereg_mr(b->mr);
	if (b->host)
		munmap(b->host, b->size);
	if (b->gpu)
		gpu_free(b->gpu);
	memset(b, 0, sizeof(*b));
}

void perf_end_close(struct perf_end *e)
{
	int i;

	for (i = 0; i < PERF_MEMS; i++)
		release(&e->mem[i]);
	if (e->pd)
		verbs_lib.dealloc_pd(e->pd);
	verbs_close(&e->port);
	memset(e, 0, sizeof(*e));
}

void perf_end_hello(const struct perf_end *e, struct perf_hello *h)
{
	int i;

	memset(h, 0, sizeof(*h));
	snprintf(h->device, sizeof(h->device), "%s", e->port.device);
	snprintf(h->gpu, sizeof(h->gpu), "%s", e->gpu);
	memcpy(h->gid, e->port.gid.raw, sizeof(h->gid));
	h->lid = e->port.attr.lid;
	h->port = e->port.port;
	h->mtu = (uint8_t)e->port.attr.active_mtu;
	h->reads = e->reads;
	h->roce = e->port.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	h->software = e->software;
	h->emulated = e->emulated;
	for (i = 0; i < PERF_MEMS; i++) {
		h->mem[i] = e->mem[i].info;
		if (e->mem[i].size > h->buffer)
			h->buffer = e->mem[i].size;
	}
}

#define STEP	(1 << 20)

/* The pattern of a seed; seed 0: zeros. */
bool perf_fill(struct perf_buffer *b, uint64_t n, uint64_t seed)
{
	uint64_t *buf = malloc(STEP), at;
	bool good = buf != NULL;

	if (!good)
		complain("out of memory");
	for (at = 0; good && at < n; at += STEP) {
		uint64_t part = n - at < STEP ? n - at : STEP;

		if (seed)
			pattern(buf, (part + 7) / 8 * 8, at, seed);
		else
			memset(buf, 0, part);
		if (b->host)
			memcpy((char *)b->host + at, buf, part);
		else
			good = gpu_put(b->gpu + at, buf, part);
	}
	free(buf);
	return good;
}

bool perf_crc(struct perf_buffer *b, uint64_t n, uint32_t *crc, bool *by_gpu)
{
	const char *by = "cpu";
	bool good = true;

	/* what the device wrote is there when it is looked at; staged is copied elsewhere */
	if (b->pln && b->info.way != PLN_MR_STAGED) {
		int r = pln_mr_to_gpu(b->pln, 0, n);

		if (r) {
			complain("what has arrived cannot be flushed: %s", pln_strerror(r));
			return false;
		}
	}
	if (b->host)
		*crc = crc32c_of(0, b->host, n);
	else
		good = gpu_crc32c(b->gpu, n, crc, &by);
	*by_gpu = !strcmp(by, "gpu");
	return good;
}

/* ---- queue pairs ---- */

bool perf_qp_open(struct perf_end *e, struct perf_qp *q, uint32_t depth)
{
	uint32_t room = 2 * depth;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = room, .max_recv_wr = room,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};
	char why[512];

	memset(q, 0, sizeof(*q));
	if (getrandom(&q->psn, sizeof(q->psn), GRND_NONBLOCK) !=
	    sizeof(q->psn))
		q->psn = (uint32_t)(now_wall() * 1e6);
	q->psn &= 0xffffff;
	q->cq = verbs_lib.create_cq(e->port.ctx, (int)(2 * room), NULL, NULL, 0);
	if (!q->cq) {
		complain("%s gives no completion queue of %u entries: %s",
			 e->port.device, 2 * room, strerror(errno));
		return false;
	}
	init.send_cq = init.recv_cq = q->cq;
	q->qp = verbs_lib.create_qp(e->pd, &init);
	if (!q->qp)
		complain("%s gives no queue pair with room for %u requests: "
			 "%s; try a smaller --depth", e->port.device, room,
			 strerror(errno));
	else if (verbs_qp_init(q->qp, &e->port, IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ, why, sizeof(why)))
		complain("%s", why);
	else
		return true;
	perf_qp_close(q);
	return false;
}

bool perf_qp_connect(struct perf_end *e, struct perf_qp *q,
		     const struct perf_hello *peer, uint32_t qpn, uint32_t psn)
{
	const struct verbs_way to = {
		.qpn = qpn, .psn = psn, .own_psn = q->psn, .lid = peer->lid,
		.gid = peer->gid, .mtu = (enum ibv_mtu)peer->mtu,
		.reads = e->reads < peer->reads ? e->reads : peer->reads,
		.reads_answered = e->reads, .timeout = 18,
		.retries = VERBS_RETRIES,
		/*
		 * Without end: a peer whose program lags may be slow to post
		 * receives; that alone is not its end.
		 */
		.rnr_retries = 7, .min_rnr_timer = 1,
	};
	char why[512];
	int r = verbs_qp_connect(q->qp, &e->port, &to, why, sizeof(why));

	if (r)
		complain("%s", why);
	return !r;
}

void perf_qp_close(struct perf_qp *q)
{
	if (q->qp)
		verbs_lib.destroy_qp(q->qp);
	if (q->cq)
		verbs_lib.destroy_cq(q->cq);
	memset(q, 0, sizeof(*q));
}
