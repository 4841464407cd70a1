// SPDX-License-Identifier: MIT
/*
 * odp-bug: RDMA WRITEs of host memory over soft-RoCE, to a region registered
 * plainly and to one registered with IBV_ACCESS_ON_DEMAND.  A line for each:
 *
 *	KIND MTU OFFSET right			every byte of the target
 *	KIND MTU OFFSET as-predicted N		success, but N bytes are wrong, and
 *						the target is byte for byte what
 *						two missing additions would leave
 *	KIND MTU OFFSET wrong N			success, and wrong in another way
 *	KIND MTU OFFSET status TEXT		the completion says so
 *	ondemand - - refused TEXT		the device does not register it
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE		4096u
#define SIZE		(5 * PAGE)	/* of the region */
#define LENGTH		(3 * PAGE + 500)	/* of a WRITE */
#define COMPLETION_MS	20000

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static union ibv_gid gid;
static int gid_index;
static uint8_t *source, *target, predicted[SIZE];

static void __attribute__((noreturn)) die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *pages(void)
{
	void *p = aligned_alloc(PAGE, SIZE);

	if (!p)
		die("aligned_alloc");
	return p;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		die("no RDMA device");
	ctx = ibv_open_device(list[0]);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	channel = pd ? ibv_create_comp_channel(ctx) : NULL;
	cq = channel ? ibv_create_cq(ctx, 8, NULL, channel, 0) : NULL;
	if (!cq)
		die("the device");
	while (ibv_query_gid(ctx, 1, gid_index, &gid) ||
	       memcmp(gid.raw, "\0\0\0\0\0\0\0\0\0\0\377\377", 12))
		if (++gid_index == 16)
			die("no GID of an IPv4 address");
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2,
			 .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

static void ready(struct ibv_qp *qp, uint32_t peer, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("INIT");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .path_mtu = mtu,
		.dest_qp_num = peer, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = gid, .hop_limit = 1,
				      .sgid_index = (uint8_t)gid_index } } };
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("RTR");
	a = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 17,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("RTS");
}

/*
 * What a copy into pages leaves that adds neither the offset in the page to
 * where it writes nor what it has copied to where it reads, packet by packet.
 */
static void predict(size_t offset, size_t mtu)
{
	memset(predicted, 0xee, SIZE);
	for (size_t at = 0; at < LENGTH; at += mtu) {
		size_t left = LENGTH - at < mtu ? LENGTH - at : mtu;
		size_t page = (offset + at) / PAGE, skip = (offset + at) % PAGE;

		while (left) {
			size_t n = PAGE - skip < left ? PAGE - skip : left;

			memcpy(predicted + page * PAGE, source + at, n);
			left -= n;
			page++;
			skip = 0;
		}
	}
}

static void try(const char *kind, int access, enum ibv_mtu mtu, size_t bytes,
		size_t offset)
{
	struct ibv_mr *from, *to;
	struct ibv_qp *one = make_qp(), *two = make_qp();
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	unsigned int wrong = 0;
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int n;

	memset(target, 0xee, SIZE);
	from = ibv_reg_mr(pd, source, SIZE, 0);
	to = ibv_reg_mr(pd, target, SIZE, access | IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE);
	if (!from)
		die("ibv_reg_mr");
	if (!to) {
		printf("%s - - refused %s\n", kind, strerror(errno));
		return;
	}
	ready(one, two->qp_num, mtu);
	ready(two, one->qp_num, mtu);
	sge = (struct ibv_sge) { (uintptr_t)source, LENGTH, from->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)target + offset;
	wr.wr.rdma.rkey = to->rkey;
	if (ibv_req_notify_cq(cq, 0) || ibv_post_send(one, &wr, &bad))
		die("ibv_post_send");
	if (poll(&p, 1, COMPLETION_MS) == 1) {
		struct ibv_cq *which;
		void *context;

		if (ibv_get_cq_event(channel, &which, &context))
			die("ibv_get_cq_event");
		ibv_ack_cq_events(which, 1);
	}
	n = ibv_poll_cq(cq, 1, &wc);
	if (n != 1)
		die("no completion");
	printf("%s %zu %zu ", kind, bytes, offset);
	for (size_t i = 0; i < SIZE; i++)
		wrong += target[i] != (i >= offset && i < offset + LENGTH ?
				       source[i - offset] : 0xee);
	predict(offset, bytes);
	if (wc.status)
		printf("status %s\n", ibv_wc_status_str(wc.status));
	else if (!wrong)
		printf("right\n");
	else
		printf("%s %u\n", memcmp(target, predicted, SIZE) ? "wrong" :
		       "as-predicted", wrong);
	ibv_destroy_qp(one);
	ibv_destroy_qp(two);
	ibv_dereg_mr(from);
	ibv_dereg_mr(to);
}

int main(void)
{
	static const struct {
		enum ibv_mtu mtu;
		size_t bytes, offset;
	} shapes[] = {
		{ IBV_MTU_1024, 1024, 0 }, { IBV_MTU_1024, 1024, 100 },
		{ IBV_MTU_4096, 4096, 100 }, { IBV_MTU_4096, 4096, 0 },
	};

	open_device();
	source = pages();
	target = pages();
	srandom(1);
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (uint8_t)(random() >> 8);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		try("plain", 0, shapes[i].mtu, shapes[i].bytes,
		    shapes[i].offset);
		try("ondemand", IBV_ACCESS_ON_DEMAND, shapes[i].mtu,
		    shapes[i].bytes, shapes[i].offset);
	}
	return 0;
}
