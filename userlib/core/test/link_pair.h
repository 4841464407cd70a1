/* SPDX-License-Identifier: MIT */
/*
 * Two links in one process, on an RDMA device that is part of it (fake_nic.c)
 * and on memory registrations that are (below).
 */
#ifndef PLN_CORE_TEST_LINK_PAIR_H
#define PLN_CORE_TEST_LINK_PAIR_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cuda/test/ktap.h"
#include "../link_internal.h"
#include "../mr_inside.h"
#include "fake_nic.h"

#define SIZE	(1 << 20)
#define CHUNK	4096u

/* --- registrations, "staged" ones with a GPU behind them ------------------------- */

struct pln_mr {
	struct ibv_mr *mr;
	uint8_t *host;		/* what the device sees */
	uint8_t *gpu;		/* staged: what the program sees */
	uint64_t length;
	uint32_t way;
};

static int copy_error;

static void mr_make(struct pln_mr *mr, struct ibv_pd *pd, uint32_t way)
{
	mr->length = SIZE;
	mr->way = way;
	mr->host = calloc(1, SIZE);
	mr->gpu = way == PLN_MR_STAGED ? calloc(1, SIZE) : mr->host;
	mr->mr = fake_reg_mr(pd, mr->host, SIZE, IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_REMOTE_WRITE);
}

static void mr_drop(struct pln_mr *mr)
{
	fake_dereg_mr(mr->mr);
	if (mr->gpu != mr->host)
		free(mr->gpu);
	free(mr->host);
}

uint32_t mr_way(const struct pln_mr *mr)
{
	return mr->way;
}

uint64_t mr_length(const struct pln_mr *mr)
{
	return mr->length;
}

struct ibv_mr *pln_mr_verbs(struct pln_mr *mr)
{
	return mr->mr;
}

uint64_t pln_mr_iova(struct pln_mr *mr, size_t offset)
{
	return (uintptr_t)mr->host + offset;
}

static unsigned int flushes;	/* calls for memory that is not staged */
static uint64_t flushed_at, flushed;

int pln_mr_to_gpu(struct pln_mr *mr, size_t offset, size_t length)
{
	if (copy_error)
		return copy_error;
	if (mr->way == PLN_MR_STAGED) {
		memcpy(mr->gpu + offset, mr->host + offset, length);
		return 0;
	}
	flushes++;
	flushed_at = offset;
	flushed = length;
	return 0;
}

int pln_mr_from_gpu(struct pln_mr *mr, size_t offset, size_t length)
{
	if (copy_error)
		return copy_error;
	memcpy(mr->host + offset, mr->gpu + offset, length);
	return 0;
}

/* --- libibverbs, when it is not this process ------------------------------------- */

static const char *loads;	/* what is loaded instead; NULL: nothing is there */

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
	(void)name;
	return __real_dlopen(loads ? loads : "no-such-library.so", flags);
}

/* --- a pair of links --------------------------------------------------------------- */

static struct pln_link *a, *b, *both[2];
static struct pln_mr from, to;
static int ends[2];

struct meeting {
	struct pln_link *link;
	int fd, result, timeout;
};

static void *meet(void *arg)
{
	struct meeting *m = arg;

	m->result = pln_link_connect(m->link, m->fd, m->timeout);
	return NULL;
}

/* Both ends at once; returns a's result and leaves b's in *other */
static int meet_both(int *other)
{
	struct meeting m = { .link = b, .fd = ends[1], .timeout = 5000 };
	pthread_t thread;
	int err;

	pthread_create(&thread, NULL, meet, &m);
	err = pln_link_connect(a, ends[0], 5000);
	if (err)
		shutdown(ends[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	*other = m.result;
	return err;
}

static int pair_open(uint32_t from_way, uint32_t to_way)
{
	struct pln_link_options o = { .size = sizeof(o), .chunk = CHUNK,
				      .depth = 4 };

	fake_hold = false;
	copy_error = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ||
	    pln_link_open(&a, &o) || pln_link_open(&b, &o))
		return -1;
	both[0] = a;
	both[1] = b;
	mr_make(&from, pln_link_pd(a), from_way);
	mr_make(&to, pln_link_pd(b), to_way);
	return pln_link_share(b, &to);
}

__attribute__((unused))
static bool pair_up(uint32_t from_way, uint32_t to_way)
{
	int other;

	return !pair_open(from_way, to_way) && !meet_both(&other) && !other;
}

__attribute__((unused))
static void pair_down(void)
{
	mr_drop(&from);
	mr_drop(&to);
	fake_hold = false;
	fake_run(~0u);
	pln_link_close(a);
	pln_link_close(b);
	close(ends[0]);
	close(ends[1]);
}

/* @length bytes at @offset of @mr to byte @at of the peer's @buffer */
__attribute__((unused))
static int64_t put_bytes(struct pln_link *link, struct pln_mr *mr, uint64_t offset,
			 uint64_t length, uint32_t buffer, uint64_t at,
			 uint64_t tag)
{
	const struct pln_link_request r = {
		.size = sizeof(r), .buffer = buffer, .mr = mr,
		.offset = offset, .length = length, .at = at, .tag = tag,
	};

	return pln_link_put(link, &r);
}

#endif
