/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue pair that is connected to itself, with a completion queue: commands of DEVX made both, in memory of this
 * program, and a doorbell is rung in a page of its own.  Fields are where the programmer's manual has them.
 */
#ifndef CX_DEVX_H
#define CX_DEVX_H

#include <infiniband/mlx5dv.h>

#include "cx-loop.h"

#define DEVX_SIZE	16384	/* the memory: completions, entries, and a record for each queue */
#define DEVX_SQ		4096
#define DEVX_CQ_RECORD	8192
#define DEVX_RECORD	8256
#define DEVX_ENTRIES	8	/* of the one queue; 16 of the other */
#define DEVX_ENTRY	64

static struct {
	uint8_t *memory;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_uar *page;
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t qpn;
	uint32_t posted;
} devx;

static inline void be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void be32(uint8_t *p, uint32_t v)
{
	be16(p, (uint16_t)(v >> 16));
	be16(p + 2, (uint16_t)v);
}

static inline void be64(uint8_t *p, uint64_t v)
{
	be32(p, (uint32_t)(v >> 32));
	be32(p + 4, (uint32_t)v);
}

/* The number of what a command has made */
static inline uint32_t made(const uint8_t *out)
{
	return (uint32_t)out[9] << 16 | out[10] << 8 | out[11];
}

static inline void devx_step(uint16_t opcode, uint8_t *in)
{
	uint8_t out[16] = { 0 };

	be16(in, opcode);
	be32(in + 8, devx.qpn);
	if (mlx5dv_devx_obj_modify(devx.qp, in, 272, out, sizeof(out)))
		die("mlx5dv_devx_obj_modify");
}

static inline void devx_connect(void)
{
	struct ibv_port_attr port;
	uint8_t in[272] = { [170] = 0xe0 };	/* all rights */

	if (ibv_query_port(ctx, 1, &port))
		die("ibv_query_port");
	devx_step(0x502, in);
	memset(in, 0, sizeof(in));
	in[32] = 0xa0;				/* MTU 4096 */
	be32(in + 44, devx.qpn);
	be16(in + 54, port.lid);
	devx_step(0x503, in);
	memset(in, 0, sizeof(in));
	in[56] = 18 << 3;			/* timeout, retries */
	in[137] = 7;
	devx_step(0x504, in);
}

static inline void devx_open(void)
{
	struct mlx5dv_pd domain;
	struct mlx5dv_obj obj = { .pd = { .in = pd, .out = &domain } };
	uint8_t cq_in[272] = { 0 }, qp_in[272] = { 0 }, out[16] = { 0 };
	uint32_t eqn;

	devx.memory = aligned_alloc(4096, DEVX_SIZE);
	if (!devx.memory)
		die("memory");
	/* Completions that are none yet */
	memset(devx.memory, 0xff, DEVX_SQ);
	memset(devx.memory + DEVX_SQ, 0, DEVX_SIZE - DEVX_SQ);
	devx.umem = mlx5dv_devx_umem_reg(ctx, devx.memory, DEVX_SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!devx.umem)
		die("mlx5dv_devx_umem_reg");
	devx.page = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	if (!devx.page)
		die("mlx5dv_devx_alloc_uar");
	if (mlx5dv_devx_query_eqn(ctx, 0, &eqn) || mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD))
		die("the numbers of an event queue and of the domain");

	be16(cq_in, 0x400);
	be32(cq_in + 20, devx.umem->umem_id);	/* of the record */
	be32(cq_in + 28, 4u << 24 | devx.page->page_id);
	be32(cq_in + 36, eqn);
	be64(cq_in + 72, DEVX_CQ_RECORD);
	be64(cq_in + 80, 0);
	be32(cq_in + 88, devx.umem->umem_id);
	devx.cq = mlx5dv_devx_obj_create(ctx, cq_in, sizeof(cq_in), out, sizeof(out));
	if (!devx.cq)
		die("a completion queue by DEVX");

	be16(qp_in, 0x500);
	be32(qp_in + 28, domain.pdn);
	qp_in[34] = 3 << 3;			/* 8 entries to send */
	be32(qp_in + 36, devx.page->page_id);
	be32(qp_in + 148, made(out));
	be64(qp_in + 184, DEVX_RECORD);
	qp_in[196] = 3;				/* no receives */
	be32(qp_in + 252, devx.umem->umem_id);	/* of the record */
	be64(qp_in + 256, DEVX_SQ);
	be32(qp_in + 264, devx.umem->umem_id);
	devx.qp = mlx5dv_devx_obj_create(ctx, qp_in, sizeof(qp_in), out, sizeof(out));
	if (!devx.qp)
		die("a queue pair by DEVX");
	devx.qpn = made(out);
	devx_connect();
}

/* WRITE, until it is done; 0, or the syndrome of its completion, or -1 */
static inline int devx_write(uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey, uint32_t len)
{
	uint8_t *entry = devx.memory + DEVX_SQ + devx.posted % DEVX_ENTRIES * DEVX_ENTRY;
	volatile uint8_t *done = devx.memory + devx.posted % 16 * DEVX_ENTRY;
	uint8_t owner = devx.posted / 16 & 1;
	long long end = now_ms() + 60000;
	uint64_t bell;

	memset(entry, 0, DEVX_ENTRY);
	be32(entry, devx.posted << 8 | 0x08);
	be32(entry + 4, devx.qpn << 8 | 3);
	entry[11] = 0x08;			/* with a completion */
	be64(entry + 16, to);
	be32(entry + 24, rkey);
	be32(entry + 32, len);
	be32(entry + 36, lkey);
	be64(entry + 40, from);
	devx.posted++;
	memcpy(&bell, entry, sizeof(bell));
	/* The entry, then the record, then the doorbell */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	be32(devx.memory + DEVX_RECORD + 4, devx.posted);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)devx.page->reg_addr = bell;
	while (now_ms() < end) {
		uint8_t state = done[0x3f];

		if (state >> 4 == 0xf || (state & 1) != owner)
			continue;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		return state >> 4 == 0xd ? done[0x37] : 0;
	}
	note("no completion");
	return -1;
}

static inline bool devx_close(void)
{
	bool good = !mlx5dv_devx_obj_destroy(devx.qp) && !mlx5dv_devx_obj_destroy(devx.cq);

	mlx5dv_devx_free_uar(devx.page);
	return !mlx5dv_devx_umem_dereg(devx.umem) && good;
}

#endif
