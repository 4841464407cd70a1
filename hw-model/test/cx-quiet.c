// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cx-quiet: a ConnectX works beside the processors, and rests when there is nothing to do.  Prints KTAP and facts, of
 * which the host judges what the emulator needed of its processors.
 */
#include <sys/mman.h>

#include "cx-loop.h"

#define BUFFER	MIB(64)
#define WRITES	32
#define IDLE_S	3

static struct ibv_mr *mr;
static char *buffer;

static void rest(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What the emulator has used of the processors, in ms */
static long long used(void)
{
	return host_does("used");
}

static void post(enum ibv_wr_opcode op, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)buffer, (uint32_t)size, mr->lkey };
	struct ibv_send_wr *bad, wr = { .opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = (uintptr_t)buffer + BUFFER;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(qp[0], &wr, &bad))
		die("ibv_post_send");
}

/* 2 GiB of WRITEs.  Who posts them does not wait for them, and a program that sleeps wakes up as if there were none. */
static void stream(void)
{
	double began = now(), posted, woke, last, longest = 0;
	struct json_object *o = json_object_new_object();
	unsigned int wakes = 0, done = 0;
	struct ibv_wc wc;
	int n;

	for (int i = 0; i < WRITES; i++)
		post(IBV_WR_RDMA_WRITE, BUFFER);
	posted = last = now();
	while (done < WRITES && last - began < 60) {
		while ((n = ibv_poll_cq(cq, 1, &wc)) > 0) {
			if (wc.status)
				quit("a WRITE ends with status %d", wc.status);
			done++;
		}
		if (n < 0)
			die("ibv_poll_cq");
		rest(1);
		woke = now();
		longest = woke - last > longest ? woke - last : longest;
		wakes++;
		last = woke;
	}
	ok(done == WRITES, "2 GiB of WRITEs within a minute");
	json_set(o, "seconds", last - began);
	json_set(o, "posting", posted - began);
	json_set(o, "wakes", wakes);
	json_set(o, "longest_sleep", longest);
	tell_fact("stream", o);
}

int main(void)
{
	struct json_object *o = json_object_new_object();
	struct ibv_recv_wr *bad, recv = { 0 };
	struct ibv_qp_attr slow = { .min_rnr_timer = 0 };	/* 655 ms */
	long long before, after;
	struct ibv_wc wc;

	open_all();
	buffer = mmap(NULL, 2 * BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffer == MAP_FAILED)
		die("mmap");
	mr = ibv_reg_mr(pd, buffer, 2 * BUFFER, RIGHTS);
	if (!mr)
		die("ibv_reg_mr");

	before = used();
	rest(IDLE_S * 1000);
	after = used();
	json_set(o, "nothing", after - before);

	before = used();
	stream();
	after = used();
	json_set(o, "streaming", after - before);

	/* A receive that nothing comes for, an armed queue, and a SEND for which there is no receive, which is tried again and again */
	if (ibv_post_recv(qp[0], &recv, &bad) || ibv_req_notify_cq(cq, 0) ||
	    ibv_modify_qp(qp[1], &slow, IBV_QP_MIN_RNR_TIMER))
		die("what is waited for");
	post(IBV_WR_SEND, 1);
	before = used();
	rest(IDLE_S * 1000);
	after = used();
	json_set(o, "waiting", after - before);
	is(ibv_poll_cq(cq, 1, &wc), 0, "the SEND is waiting all the time");
	tell_fact("used_ms", o);
	return finish();
}
