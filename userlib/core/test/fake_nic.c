// SPDX-License-Identifier: MIT
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_nic.h"

#define QPS	8
#define MRS	16
#define RING	1024
#define FIRST_QPN	100

bool fake_hold;
unsigned int fake_fail_at;
__thread bool fake_due;
bool fake_minus_one;
int fake_dereg_errno;
int fake_objects;
unsigned int fake_devices, fake_ports;
int fake_open_errno;
struct ibv_port_attr fake_port, fake_port2;
uint8_t fake_subnet2;
unsigned int fake_ipv4_gid = 1;
enum ibv_wc_status fake_next_status;

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[RING];
	unsigned int head, tail;
	bool armed;
};

struct fake_rx {
	uint64_t wr_id;
	void *to;
	uint32_t length;
};

struct fake_qp {
	struct ibv_qp qp;
	uint32_t peer;
	struct fake_rx rx[RING];
	unsigned int rx_head, rx_tail, rx_max;
	struct ibv_qp_attr rtr, rts;
};

struct work {
	struct fake_qp *qp;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

static struct fake_qp *qps[QPS];
static struct ibv_mr *mrs[MRS];
static uint32_t next_qpn = FIRST_QPN, next_key = 7;
static struct work held[RING];
static unsigned int held_head, held_tail;
static struct ibv_device devices[2] = { { .name = "fake0" }, { .name = "fake1" } };
static struct ibv_context context;

static bool fails(void)
{
	bool due = fake_due;

	fake_due = false;
	if (!due && (!fake_fail_at || --fake_fail_at))
		return false;
	errno = ENOSPC;
	return true;
}

static int refusal(void)
{
	return fake_minus_one ? -1 : ENOSPC;
}

/* What the device did not give up when it was told to */
static void *undead[4];
static unsigned int undeads;
static struct ibv_mr *undead_mr;

static void *made(void *p)
{
	fake_objects += p != NULL;
	return p;
}

static int gone(void *p)
{
	if (fails()) {
		undead[undeads++] = p;
		return refusal();
	}
	fake_objects--;
	free(p);
	return 0;
}

/* --- the device -------------------------------------------------------------- */

static struct ibv_device **get_device_list(int *n)
{
	struct ibv_device **list;

	if (fails())
		return NULL;
	list = made(calloc(3, sizeof(*list)));
	for (*n = 0; *n < (int)fake_devices; ++*n)
		list[*n] = &devices[*n];
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	fake_objects--;
	free(list);
}

static const char *get_device_name(struct ibv_device *d)
{
	return d->name;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
	if (fails())
		return NULL;
	if (fake_open_errno && d == devices) {
		errno = fake_open_errno;
		return NULL;
	}
	context.device = d;
	fake_objects++;
	return &context;
}

static int close_device(struct ibv_context *ctx)
{
	/* It goes with the process */
	fake_objects -= ctx == &context;
	return fails() ? refusal() : 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port,
		      struct ibv_port_attr *attr)
{
	if (fails())
		return refusal();
	if (port < 1 || port > fake_ports) {
		errno = EINVAL;
		return EINVAL;
	}
	(void)ctx;
	*attr = port == 1 ? fake_port : fake_port2;
	return 0;
}

static int query_gid(struct ibv_context *ctx, uint8_t port, int index,
		     union ibv_gid *gid)
{
	static const union ibv_gid v4 = { .raw = { [10] = 0xff, [11] = 0xff,
						   [12] = 10, [15] = 1 } };
	static const union ibv_gid local = { .raw = { 0xfe, 0x80, [15] = 1 } };

	(void)ctx;
	if (fails())
		return refusal();
	if (fake_ipv4_gid == 0xff || index > 1)
		memset(gid, 0, sizeof(*gid));
	else
		*gid = (unsigned int)index == fake_ipv4_gid ? v4 : local;
	if (port == 2)
		gid->raw[7] = fake_subnet2;
	return 0;
}

static int query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = (struct ibv_device_attr){ .phys_port_cnt = (uint8_t)fake_ports,
					  .max_qp_rd_atom = 16 };
	return fails() ? refusal() : 0;
}

static int query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
			struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	static const union ibv_gid none;

	(void)flags;
	if (fails())
		return refusal();
	if (size != sizeof(*e) || query_gid(ctx, (uint8_t)port, (int)index,
					    &e->gid) ||
	    !memcmp(&e->gid, &none, sizeof(none)))
		return ENODATA;
	e->gid_index = index;
	e->port_num = port;
	e->gid_type = fake_port.link_layer == IBV_LINK_LAYER_ETHERNET ?
		      IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = fails() ? NULL : made(calloc(1, sizeof(*pd)));

	if (pd)
		pd->context = ctx;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return gone(pd);
}

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access)
{
	struct ibv_mr *mr = fails() ? NULL : made(calloc(1, sizeof(*mr)));
	unsigned int i;

	if (!mr)
		return NULL;
	for (i = 0; i < MRS && mrs[i]; i++)
		;
	mrs[i] = mr;
	mr->pd = pd;
	mr->addr = p;
	mr->length = n;
	mr->lkey = next_key++;
	mr->rkey = access & IBV_ACCESS_REMOTE_WRITE ? next_key++ : 0;
	return mr;
}

int fake_dereg_mr(struct ibv_mr *mr)
{
	if (fake_dereg_errno)
		return fake_dereg_errno;
	if (fails()) {
		undead_mr = mr;
		return refusal();
	}
	for (unsigned int i = 0; i < MRS; i++)
		if (mrs[i] == mr)
			mrs[i] = NULL;
	return gone(mr);
}

static struct ibv_mr *region(uint32_t key, bool remote, uint64_t at, uint64_t n)
{
	for (unsigned int i = 0; i < MRS; i++) {
		struct ibv_mr *mr = mrs[i];

		if (mr && (remote ? mr->rkey : mr->lkey) == key &&
		    at >= (uintptr_t)mr->addr &&
		    at + n <= (uintptr_t)mr->addr + mr->length)
			return mr;
	}
	return NULL;
}

/* --- completions ------------------------------------------------------------- */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *c = fails() ? NULL :
				     made(calloc(1, sizeof(*c)));

	if (c) {
		c->context = ctx;
		c->fd = eventfd(0, EFD_CLOEXEC);
	}
	return c;
}

static int destroy_comp_channel(struct ibv_comp_channel *c)
{
	close(c->fd);
	return gone(c);
}

static struct ibv_cq *create_cq(struct ibv_context *ctx, int n, void *arg,
				struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *f = fails() ? NULL : made(calloc(1, sizeof(*f)));

	(void)n;
	(void)vector;
	if (!f)
		return NULL;
	f->cq.context = ctx;
	f->cq.channel = channel;
	f->cq.cq_context = arg;
	return &f->cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
	return gone(cq);
}

static void complete(struct ibv_cq *cq, struct ibv_wc wc)
{
	struct fake_cq *f = (struct fake_cq *)cq;
	uint64_t one = 1;

	f->wc[f->tail++ % RING] = wc;
	if (f->armed && write(cq->channel->fd, &one, sizeof(one)) > 0)
		f->armed = false;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake_cq *f = (struct fake_cq *)cq;
	int got = 0;

	if (fails())
		return -1;
	while (got < n && f->head != f->tail)
		wc[got++] = f->wc[f->head++ % RING];
	return got;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	if (fails())
		return refusal();
	((struct fake_cq *)cq)->armed = true;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			void **arg)
{
	uint64_t n;

	*cq = NULL;
	*arg = NULL;
	if (fails())
		return refusal();
	return read(channel->fd, &n, sizeof(n)) == sizeof(n) ? 0 : -1;
}

static void ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

/* --- queue pairs -------------------------------------------------------------- */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct fake_qp *q = fails() ? NULL : made(calloc(1, sizeof(*q)));
	unsigned int i;

	if (!q)
		return NULL;
	for (i = 0; i < QPS && qps[i]; i++)
		;
	qps[i] = q;
	q->qp.context = pd->context;
	q->qp.pd = pd;
	q->qp.send_cq = a->send_cq;
	q->qp.recv_cq = a->recv_cq;
	q->qp.qp_num = next_qpn++;
	q->rx_max = a->cap.max_recv_wr;
	return &q->qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
	for (unsigned int i = 0; i < QPS; i++)
		if (qps[i] && &qps[i]->qp == qp)
			qps[i] = NULL;
	for (; held_head != held_tail && &held[held_head % RING].qp->qp == qp;)
		held_head++;
	return gone(qp);
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const enum ibv_qp_state before[] = {
		[IBV_QPS_INIT] = IBV_QPS_RESET,
		[IBV_QPS_RTR] = IBV_QPS_INIT,
		[IBV_QPS_RTS] = IBV_QPS_RTR,
	};

	if (fails())
		return refusal();
	if (!(mask & IBV_QP_STATE) || before[attr->qp_state] != qp->state)
		return EINVAL;
	qp->state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RTR)
		((struct fake_qp *)qp)->rtr = *attr;
	if (attr->qp_state == IBV_QPS_RTS)
		((struct fake_qp *)qp)->rts = *attr;
	if (mask & IBV_QP_DEST_QPN)
		((struct fake_qp *)qp)->peer = attr->dest_qp_num;
	return 0;
}

const struct ibv_qp_attr *fake_rtr(struct ibv_qp *qp)
{
	return &((struct fake_qp *)qp)->rtr;
}

const struct ibv_qp_attr *fake_rts(struct ibv_qp *qp)
{
	return &((struct fake_qp *)qp)->rts;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)qp;

	*bad = wr;
	if (fails())
		return refusal();
	if (q->rx_tail - q->rx_head == q->rx_max)
		return ENOMEM;
	q->rx[q->rx_tail++ % RING] = (struct fake_rx){
		.wr_id = wr->wr_id,
		.to = (void *)(uintptr_t)wr->sg_list->addr,
		.length = wr->sg_list->length,
	};
	return 0;
}

/* @imm: immediate data, or NULL */
static void arrive(struct fake_qp *q, const void *data, uint32_t n,
		   const uint32_t *imm)
{
	struct fake_rx *rx = &q->rx[q->rx_head++ % RING];

	memcpy(rx->to, data, n < rx->length ? n : rx->length);
	complete(q->qp.recv_cq, (struct ibv_wc){ .wr_id = rx->wr_id,
		 .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV,
		 .byte_len = n, .wc_flags = imm ? IBV_WC_WITH_IMM : 0,
		 .imm_data = imm ? *imm : 0 });
}

static struct fake_qp *qp_of(uint32_t qpn)
{
	for (unsigned int i = 0; i < QPS; i++)
		if (qps[i] && qps[i]->qp.qp_num == qpn)
			return qps[i];
	return NULL;
}

static enum ibv_wc_status transfer(struct fake_qp *q, const struct work *w)
{
	struct fake_qp *peer = qp_of(q->peer);
	uint64_t to = w->wr.wr.rdma.remote_addr;
	const void *from = (const void *)(uintptr_t)w->sge.addr;

	if (fake_next_status) {
		enum ibv_wc_status s = fake_next_status;

		fake_next_status = IBV_WC_SUCCESS;
		return s;
	}
	if (!peer || peer->qp.state < IBV_QPS_RTR)
		return IBV_WC_RETRY_EXC_ERR;
	if (!region(w->sge.lkey, false, w->sge.addr, w->sge.length))
		return IBV_WC_LOC_PROT_ERR;
	if (w->wr.opcode == IBV_WR_RDMA_WRITE) {
		if (!region(w->wr.wr.rdma.rkey, true, to, w->sge.length))
			return IBV_WC_REM_ACCESS_ERR;
		memcpy((void *)(uintptr_t)to, from, w->sge.length);
		return IBV_WC_SUCCESS;
	}
	if (w->wr.opcode == IBV_WR_RDMA_READ) {
		if (!region(w->wr.wr.rdma.rkey, true, to, w->sge.length))
			return IBV_WC_REM_ACCESS_ERR;
		memcpy((void *)(uintptr_t)w->sge.addr,
		       (const void *)(uintptr_t)to, w->sge.length);
		return IBV_WC_SUCCESS;
	}
	if (peer->rx_head == peer->rx_tail)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	arrive(peer, from, w->sge.length,
	       w->wr.opcode == IBV_WR_SEND_WITH_IMM ? &w->wr.imm_data : NULL);
	return IBV_WC_SUCCESS;
}

static void run_one(const struct work *w)
{
	struct fake_qp *q = w->qp;
	struct ibv_wc wc = { .wr_id = w->wr.wr_id };

	wc.status = q->qp.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR :
						 transfer(q, w);
	if (wc.status)
		q->qp.state = IBV_QPS_ERR;
	complete(q->qp.send_cq, wc);
}

unsigned int fake_run(unsigned int n)
{
	unsigned int done = 0;

	for (; done < n && held_head != held_tail; done++)
		run_one(&held[held_head++ % RING]);
	return done;
}

unsigned int fake_held(void)
{
	return held_tail - held_head;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	*bad = wr;
	if (fails())
		return refusal();
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
		return EINVAL;
	for (; wr; wr = wr->next)
		held[held_tail++ % RING] = (struct work){
			.qp = (struct fake_qp *)qp, .wr = *wr,
			.sge = *wr->sg_list,
		};
	if (!fake_hold)
		fake_run(~0u);
	return 0;
}

void fake_send_raw(uint32_t to_qpn, const void *data, uint32_t length)
{
	arrive(qp_of(to_qpn), data, length, NULL);
}

unsigned int fake_reap(void)
{
	unsigned int n = undeads + (undead_mr != NULL);

	while (undeads)
		gone(undead[--undeads]);
	if (undead_mr) {
		/* As its owner must have left it: this is a crash otherwise */
		memset(undead_mr->addr, 0, undead_mr->length);
		free(undead_mr->addr);
		fake_dereg_mr(undead_mr);
		undead_mr = NULL;
	}
	return n;
}

static const char *wc_status_str(enum ibv_wc_status status)
{
	return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded"
					      : "another status";
}

void fake_install(void)
{
	fake_port = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 4, .max_msg_sz = 1u << 30,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	fake_port2 = fake_port;
	fake_ports = fake_devices = 1;
	fake_open_errno = 0;
	fake_subnet2 = 0;
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
	verbs_lib = (struct verbs_lib){
		.loaded = true,
		.get_device_list = get_device_list,
		.free_device_list = free_device_list,
		.get_device_name = get_device_name,
		.open_device = open_device,
		.query_device = query_device,
		.query_gid_ex = query_gid_ex,
		.close_device = close_device,
		.query_port = query_port,
		.query_gid = query_gid,
		.alloc_pd = alloc_pd,
		.dealloc_pd = dealloc_pd,
		.reg_mr = fake_reg_mr,
		.dereg_mr = fake_dereg_mr,
		.create_comp_channel = create_comp_channel,
		.destroy_comp_channel = destroy_comp_channel,
		.create_cq = create_cq,
		.destroy_cq = destroy_cq,
		.get_cq_event = get_cq_event,
		.ack_cq_events = ack_cq_events,
		.create_qp = create_qp,
		.modify_qp = modify_qp,
		.destroy_qp = destroy_qp,
		.wc_status_str = wc_status_str,
	};
}
