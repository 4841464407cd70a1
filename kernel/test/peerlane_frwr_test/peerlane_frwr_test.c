// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: what kernel users of an RDMA device do with their memory: they register it by work
 * requests, the other end invalidates it with a message, or they do it themselves.
 *
 * All is done while the module is loaded, between two queue pairs of the first port of the device
 * that the parameter names.  The log has a line for each result, as KTAP.  Loading fails if a test
 * could not be made.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

static char *device = "mlx5_0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "name of the RDMA device");

#define TEST_PAGES	40	/* a list that is not in the entry itself */
#define TEST_FEW	5	/* one that is */
#define TEST_DEPTH	16
#define TEST_MESSAGE	10000
#define TEST_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

struct test_end {
	struct ib_cq *cq;
	struct ib_qp *qp;
};

struct test {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_port_attr port;
	struct test_end a, b;	/* a sends, b has the memory */
	struct ib_mr *mr;	/* of pages */
	struct ib_mr *gaps;	/* of pieces */
	struct page *page[TEST_PAGES];
	struct scatterlist sg[TEST_PAGES];
	u8 *from, *to;		/* of messages */
	u64 from_dma, to_dma;
	int results, failures;
};

static int test_status = -ENODEV;	/* of all of it */

static void test_result(struct test *t, bool good, const char *what)
{
	pr_info(KBUILD_MODNAME ": %sok %d - %s\n", good ? "" : "not ", ++t->results, what);
	t->failures += !good;
}

/* The next completion; its status, or -1 when there is none in 10 s */
static int test_next(struct test_end *e, struct ib_wc *wc)
{
	unsigned long end = jiffies + 10 * HZ;

	do {
		int n = ib_poll_cq(e->cq, 1, wc);

		if (n)
			return n < 0 ? n : wc->status;
		usleep_range(50, 100);
	} while (time_before(jiffies, end));
	pr_info(KBUILD_MODNAME ": # no completion\n");
	return -1;
}

static int test_state(struct test *t, struct test_end *e, u32 qpn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	int err;

	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_INIT;
	attr.port_num = 1;
	attr.qp_access_flags = TEST_ACCESS;
	err = err ?: ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				  IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_4096;
	attr.dest_qp_num = qpn;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr.type = rdma_ah_find_type(t->dev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, t->port.lid);
	err = err ?: ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				  IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
				  IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	return err ?: ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				   IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* Both are as new, and have no completions */
static int test_connect(struct test *t)
{
	struct ib_wc wc;
	int err = test_state(t, &t->a, t->b.qp->qp_num) ?: test_state(t, &t->b, t->a.qp->qp_num);

	while (ib_poll_cq(t->a.cq, 1, &wc) > 0 || ib_poll_cq(t->b.cq, 1, &wc) > 0)
		;
	return err;
}

static int test_make_end(struct test *t, struct test_end *e)
{
	struct ib_cq_init_attr attr = { .cqe = 4 * TEST_DEPTH };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = TEST_DEPTH, .max_recv_wr = TEST_DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	e->cq = ib_create_cq(t->dev, NULL, NULL, NULL, &attr);
	if (IS_ERR(e->cq))
		return PTR_ERR(e->cq);
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	e->qp = ib_create_qp(t->pd, &init);
	return PTR_ERR_OR_ZERO(e->qp);
}

static void test_free_end(struct test_end *e)
{
	if (!IS_ERR_OR_NULL(e->qp))
		ib_destroy_qp(e->qp);
	if (!IS_ERR_OR_NULL(e->cq))
		ib_destroy_cq(e->cq);
}

/* Post one request of @e; the status of its completion, which is in @wc */
static int test_post(struct test_end *e, struct ib_send_wr *wr, struct ib_wc *wc)
{
	int err = ib_post_send(e->qp, wr, NULL);

	return err ?: test_next(e, wc);
}

static int test_reg(struct test_end *e, struct ib_mr *mr, u32 key, struct ib_wc *wc)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR }, .mr = mr, .key = key, .access = TEST_ACCESS,
	};

	return test_post(e, &wr.wr, wc);
}

static int test_invalidate(struct test_end *e, u32 key, struct ib_wc *wc)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };

	return test_post(e, &wr, wc);
}

static int test_write(struct test *t, struct ib_mr *mr, u32 key, u32 at, u32 len,
		      struct ib_wc *wc)
{
	struct ib_sge sge = {
		.addr = t->from_dma, .length = len, .lkey = t->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = mr->iova + at, .rkey = key,
	};

	return test_post(&t->a, &wr.wr, wc);
}

/* A message that invalidates @key; a's status, and b's completion in @wc */
static int test_send_inv(struct test *t, u32 key, struct ib_wc *wc)
{
	struct ib_sge to = {
		.addr = t->to_dma, .length = TEST_MESSAGE, .lkey = t->pd->local_dma_lkey,
	};
	struct ib_recv_wr recv = { .wr_id = 5, .sg_list = &to, .num_sge = 1 };
	struct ib_sge from = {
		.addr = t->from_dma, .length = TEST_MESSAGE, .lkey = t->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_INV, .sg_list = &from, .num_sge = 1,
		.ex.invalidate_rkey = key,
	};
	int err = ib_post_recv(t->b.qp, &recv, NULL);
	struct ib_wc sent;

	err = err ?: test_post(&t->a, &wr, &sent);
	return test_next(&t->b, wc) < 0 ? -1 : err;
}

/* Bytes of the pieces, from @at of the first on, are those that are sent; then they are others */
static bool test_arrived(struct test *t, u32 at, u32 len, u32 piece, u32 offset)
{
	bool good = true;
	unsigned int i;

	for (i = 0; i < len; i++) {
		u8 *p = (u8 *)page_address(t->page[(at + i) / piece]) + offset + (at + i) % piece;

		good &= *p == t->from[i];
		*p = ~t->from[i];
	}
	return good;
}

/* The first @n pages have @len bytes each, from @offset on */
static int test_map(struct test *t, struct ib_mr *mr, unsigned int n, unsigned int len,
		    unsigned int offset)
{
	unsigned int i;

	sg_init_table(t->sg, n);
	for (i = 0; i < n; i++)
		sg_set_page(&t->sg[i], t->page[i], len, offset);
	if (ib_dma_map_sg(t->dev, t->sg, n, DMA_BIDIRECTIONAL) != n)
		return -EIO;
	return ib_map_mr_sg(mr, t->sg, n, NULL, PAGE_SIZE) == n ? 0 : -EINVAL;
}

static void test_unmap(struct test *t, unsigned int n)
{
	ib_dma_unmap_sg(t->dev, t->sg, n, DMA_BIDIRECTIONAL);
}

static int test_pages(struct test *t)
{
	struct ib_mr *mr = t->mr;
	struct ib_wc wc;
	int err = test_map(t, mr, TEST_FEW, PAGE_SIZE, 0);
	u32 old;

	if (err)
		return err;
	test_result(t, !test_reg(&t->b, mr, mr->rkey, &wc) && wc.opcode == IB_WC_REG_MR,
		    "five pages are registered");
	test_result(t, !test_write(t, mr, mr->rkey, 100, TEST_MESSAGE, &wc) &&
		    test_arrived(t, 100, TEST_MESSAGE, PAGE_SIZE, 0), "WRITE to them");
	test_result(t, !test_send_inv(t, mr->rkey, &wc) && !wc.status && wc.opcode == IB_WC_RECV &&
		    wc.wr_id == 5 &&
		    wc.byte_len == TEST_MESSAGE && (wc.wc_flags & IB_WC_WITH_INVALIDATE) &&
		    wc.ex.invalidate_rkey == mr->rkey && !memcmp(t->from, t->to, TEST_MESSAGE),
		    "SEND with invalidate: its completion names the key");
	test_result(t, test_write(t, mr, mr->rkey, 0, 100, &wc) == IB_WC_REM_ACCESS_ERR &&
		    !test_arrived(t, 0, 1, PAGE_SIZE, 0),
		    "the key is of no use any more: remote access error");
	test_unmap(t, TEST_FEW);

	err = test_connect(t) ?: test_map(t, mr, TEST_PAGES, PAGE_SIZE, 0);
	if (err)
		return err;
	old = mr->rkey;
	ib_update_fast_reg_key(mr, (u8)(old + 1));
	test_result(t, mr->rkey != old && !test_reg(&t->b, mr, mr->rkey, &wc),
		    "forty pages are registered, by another key of the region");
	test_result(t, !test_write(t, mr, mr->rkey, 37 * PAGE_SIZE - 5, TEST_MESSAGE, &wc) &&
		    test_arrived(t, 37 * PAGE_SIZE - 5, TEST_MESSAGE, PAGE_SIZE, 0),
		    "WRITE to the last ones");
	test_result(t, test_write(t, mr, old, 0, 100, &wc) == IB_WC_REM_ACCESS_ERR,
		    "the key that it had: remote access error");
	err = test_connect(t);
	if (err)
		return err;
	test_result(t, test_invalidate(&t->b, old, &wc) == IB_WC_MW_BIND_ERR,
		    "that is not invalidated: bind error");
	err = test_connect(t);
	if (err)
		return err;
	test_result(t, test_reg(&t->b, mr, mr->rkey, &wc) == IB_WC_MW_BIND_ERR,
		    "what is registered is not registered again: bind error");
	err = test_connect(t);
	if (err)
		return err;
	test_result(t, !test_write(t, mr, mr->rkey, 0, 100, &wc) &&
		    test_arrived(t, 0, 100, PAGE_SIZE, 0),
		    "none of that has changed the region");
	test_result(t, !test_invalidate(&t->b, mr->rkey, &wc) && wc.opcode == IB_WC_LOCAL_INV,
		    "its owner invalidates it");
	test_result(t, test_write(t, mr, mr->rkey, 0, 100, &wc) == IB_WC_REM_ACCESS_ERR,
		    "then it is of no use: remote access error");
	test_unmap(t, TEST_PAGES);
	return test_connect(t);
}

/* Pieces that are no whole pages */
static int test_gaps(struct test *t)
{
	struct ib_mr *mr = t->gaps;
	struct ib_wc wc;
	int err = test_map(t, mr, TEST_PAGES, 1001, 77);

	if (err)
		return err;
	test_result(t, !test_reg(&t->b, mr, mr->rkey, &wc) && mr->length == 1001 * TEST_PAGES,
		    "forty pieces of pages are registered");
	test_result(t, !test_write(t, mr, mr->rkey, 1000, TEST_MESSAGE, &wc) &&
		    test_arrived(t, 1000, TEST_MESSAGE, 1001, 77), "WRITE to ten of them");
	test_result(t, !test_send_inv(t, mr->rkey, &wc) && !wc.status &&
		    wc.ex.invalidate_rkey == mr->rkey,
		    "SEND with invalidate");
	test_result(t, test_write(t, mr, mr->rkey, 0, 100, &wc) == IB_WC_REM_ACCESS_ERR,
		    "the key is of no use any more: remote access error");
	test_unmap(t, TEST_PAGES);
	return test_connect(t);
}

/* Both ends of what must not be invalidated fail */
static int test_refused(struct test *t)
{
	struct ib_wc wc;

	test_result(t, test_send_inv(t, 0x12345600, &wc) == IB_WC_REM_ACCESS_ERR &&
		    wc.status == IB_WC_REM_INV_REQ_ERR && wc.wr_id == 5,
		    "SEND that invalidates what is no key: remote access error");
	return test_connect(t);
}

static int test_make(struct test *t)
{
	unsigned int i;
	int err;

	t->pd = ib_alloc_pd(t->dev, 0);
	if (IS_ERR(t->pd))
		return PTR_ERR(t->pd);
	err = ib_query_port(t->dev, 1, &t->port) ?: test_make_end(t, &t->a) ?:
	      test_make_end(t, &t->b);
	if (err)
		return err;
	t->mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, TEST_PAGES);
	if (IS_ERR(t->mr))
		return PTR_ERR(t->mr);
	t->gaps = ib_alloc_mr(t->pd, IB_MR_TYPE_SG_GAPS, TEST_PAGES);
	if (IS_ERR(t->gaps))
		return PTR_ERR(t->gaps);
	t->from = kmalloc(TEST_MESSAGE, GFP_KERNEL);
	t->to = kzalloc(TEST_MESSAGE, GFP_KERNEL);
	if (!t->from || !t->to)
		return -ENOMEM;
	for (i = 0; i < TEST_MESSAGE; i++)
		t->from[i] = i * 7 + i / 251 + 1;
	for (i = 0; i < TEST_PAGES; i++) {
		t->page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!t->page[i])
			return -ENOMEM;
	}
	t->from_dma = ib_dma_map_single(t->dev, t->from, TEST_MESSAGE, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(t->dev, t->from_dma)) {
		t->from_dma = 0;
		return -EIO;
	}
	t->to_dma = ib_dma_map_single(t->dev, t->to, TEST_MESSAGE, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(t->dev, t->to_dma)) {
		t->to_dma = 0;
		return -EIO;
	}
	return test_connect(t);
}

static void test_free(struct test *t)
{
	unsigned int i;

	test_free_end(&t->a);
	test_free_end(&t->b);
	if (!IS_ERR_OR_NULL(t->gaps))
		ib_dereg_mr(t->gaps);
	if (!IS_ERR_OR_NULL(t->mr))
		ib_dereg_mr(t->mr);
	if (t->from_dma)
		ib_dma_unmap_single(t->dev, t->from_dma, TEST_MESSAGE, DMA_TO_DEVICE);
	if (t->to_dma)
		ib_dma_unmap_single(t->dev, t->to_dma, TEST_MESSAGE, DMA_FROM_DEVICE);
	kfree(t->from);
	kfree(t->to);
	for (i = 0; i < TEST_PAGES; i++)
		if (t->page[i])
			__free_page(t->page[i]);
	if (!IS_ERR_OR_NULL(t->pd))
		ib_dealloc_pd(t->pd);
}

/* For each device that there is, and then for none any more */
static int test_device(struct ib_device *dev)
{
	struct test *t;
	int err;

	if (strcmp(dev_name(&dev->dev), device))
		return 0;
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t) {
		test_status = -ENOMEM;
		return 0;
	}
	t->dev = dev;
	err = test_make(t) ?: test_pages(t) ?: test_gaps(t) ?: test_refused(t);
	if (err)
		pr_err(KBUILD_MODNAME ": ends after %d results: error %d\n", t->results, err);
	else
		pr_info(KBUILD_MODNAME ": 1..%d\n", t->results);
	test_free(t);
	kfree(t);
	test_status = err;
	return 0;
}

static struct ib_client test_client = {
	.name = "peerlane_frwr_test",
	.add = test_device,
};

static int __init test_init(void)
{
	int err = ib_register_client(&test_client);

	if (err)
		return err;
	ib_unregister_client(&test_client);
	if (test_status == -ENODEV)
		pr_err(KBUILD_MODNAME ": no RDMA device %s: give its name as parameter device\n",
		       device);
	return test_status;
}

static void __exit test_exit(void)
{
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("Peerlane: memory registered by work requests, for the tests");
MODULE_AUTHOR("The Peerlane authors");
MODULE_LICENSE("GPL");
