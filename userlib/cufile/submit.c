// SPDX-License-Identifier: MIT
/*
 * Small copies to the GPU, of many callers at once.  A lock of the CUDA driver lets
 * one of them through at a time: so who comes first submits what all have, in one
 * call, waits for it, and tells the others.  Before it leaves, it hands over to one
 * whose copy came meanwhile.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"
#include "lane.h"

#define MOST	64		/* copies of one call */

/* What a copy waits for, and what it gets */
enum { WAIT, SLEEP, LEAD, DONE };

struct copy {
	struct copy *next;
	CUdeviceptr dev;
	const void *host;
	size_t n;
	CUcontext ctx;
	unsigned long long ctx_id;
	_Atomic uint32_t state;
	int result;
};

static struct copy *_Atomic added;	/* the latest first */
static struct copy *left;		/* the leader's: taken, and not submitted */
static _Atomic bool led;

static void tell(struct copy *c, uint32_t state)
{
	/* then @c may be gone: only its address is used */
	if (atomic_exchange(&c->state, state) == SLEEP)
		syscall(SYS_futex, &c->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until it is LEAD or DONE. */
static uint32_t await(struct copy *c)
{
	uint32_t s;

	crew_spin(&c->state);
	while ((s = c->state) < LEAD) {
		if (s == WAIT &&
		    !atomic_compare_exchange_strong(&c->state, &s, SLEEP))
			continue;
		syscall(SYS_futex, &c->state, FUTEX_WAIT_PRIVATE, SLEEP, NULL,
			NULL, 0);
	}
	return s;
}

/* What has been added, in the order in which it was, behind what was left. */
static void collect(void)
{
	struct copy *c = atomic_exchange(&added, NULL), *in_order = NULL, *next, **p;

	for (; c; c = next) {
		next = c->next;
		c->next = in_order;
		in_order = c;
	}
	for (p = &left; *p; p = &(*p)->next)
		continue;
	*p = in_order;
}

static int start(struct lane *l, struct copy **c, unsigned int n)
{
	CUmemcpyAttributes how = { .srcAccessOrder = 1 };	/* in the stream's order */
	CUdeviceptr to[MOST], from[MOST];
	size_t len[MOST], first = 0;
	unsigned int i;
	int r = 0;

	if (n > 1 && cu.BatchAsync && tune.join > 1) {
		for (i = 0; i < n; i++) {
			to[i] = c[i]->dev;
			from[i] = (uintptr_t)c[i]->host;
			len[i] = c[i]->n;
		}
		return cu.BatchAsync(to, from, len, n, &how, &first, 1, l->stream);
	}
	for (i = 0; i < n && !r; i++)
		r = cu.HtoDAsync(c[i]->dev, c[i]->host, c[i]->n, l->stream);
	return r;
}

/* All that is of @mine's context; the others follow with a leader of theirs. */
static void lead(struct lane *l, struct copy *mine)
{
	struct copy *these[MOST], **p = &left, *c;
	unsigned int i, n = 0;
	int r, settled;

	collect();
	while ((c = *p) && n < MOST) {
		if (c->ctx != mine->ctx || c->ctx_id != mine->ctx_id) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		these[n++] = c;
	}
	r = start(l, these, n);
	settled = lane_settle(l);
	r = r ? r : settled;
	for (i = 0; i < n; i++) {
		these[i]->result = r;
		if (these[i] != mine)
			tell(these[i], DONE);
		else
			mine->state = DONE;
	}
}

/* The next leader is one who waits, or nobody. */
static void hand_over(void)
{
	for (;;) {
		if (!left)
			collect();
		if (left) {
			tell(left, LEAD);
			return;
		}
		led = false;
		/* who came before that waits for a leader */
		if (!added || atomic_exchange(&led, true))
			return;
	}
}

int submit_in(const struct mem *mem, struct lane *l, uint64_t dev,
	      const void *host, size_t n)
{
	struct copy c = { .dev = dev, .host = host, .n = n, .ctx = mem->ctx,
			  .ctx_id = mem->ctx_id };
	struct copy *first = added;

	do {
		c.next = first;
	} while (!atomic_compare_exchange_weak(&added, &first, &c));
	if (atomic_exchange(&led, true) && await(&c) == DONE)
		return c.result;
	/* a leader may have had it before it was told that there is none */
	while (c.state != DONE)
		lead(l, &c);
	hand_over();
	return c.result;
}

bool submit_joins(size_t n)
{
	return tune.join && n <= KIB(64) && crew_crowd();
}
