// SPDX-License-Identifier: MIT
/*
 * Helpers of the bounce path, each state of them held: it is crew.c itself with
 * calls of futex(2) that can hold who is woken, a clock that counts who asks for the
 * time, and a look at what is said when a part ends.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int held;	/* helpers that have slept wait */
static _Atomic int in_held;
static _Atomic unsigned int times;

static int clock_of(clockid_t id, struct timespec *t)
{
	times++;
	return clock_gettime(id, t);
}

static void slept(void)
{
	if (!held)
		return;
	in_held++;
	while (held)
		usleep(100);
	in_held--;
}

static void ending(void);

#define clock_gettime	clock_of
#define syscall(nr, at, op, ...) do { \
	syscall(nr, at, op, __VA_ARGS__); \
	if ((op) == FUTEX_WAIT_PRIVATE) \
		slept(); \
} while (0)
#undef atomic_fetch_sub
#define atomic_fetch_sub(at, n) \
	(ending(), atomic_fetch_sub_explicit(at, n, memory_order_seq_cst))
#include "../crew.c"
#undef clock_gettime
#undef syscall

static _Atomic uint64_t idle_at_end;

/* A helper has done its part, and is about to say so. */
static void ending(void)
{
	idle_at_end = idle;
}

static unsigned int checks, failed;

static void check(bool good, const char *what)
{
	checks++;
	failed += !good;
	printf("%s %u - %s\n", good ? "ok" : "not ok", checks, what);
}

/* A part of a transfer that ends when it may */
struct part {
	struct crew_job job;
	_Atomic int begun, ended;
	_Atomic int hold;
};

static void run_part(struct crew_job *j)
{
	struct part *p = (struct part *)j;

	p->begun++;
	while (p->hold)
		usleep(100);
	p->ended++;
}

/* For what is certain to come; a minute is too long. */
#define AWAIT(what) do { \
	int turn_; \
	for (turn_ = 0; turn_ < 600000 && !(what); turn_++) \
		usleep(100); \
	if (!(what)) { \
		printf("not ok - waited in vain: %s\n", #what); \
		exit(1); \
	} \
} while (0)

static bool asleep(unsigned int i)
{
	return helper[i].go == ASLEEP && idle & 1ull << i;
}

static void all_asleep(void)
{
	unsigned int i;

	for (i = 0; i < helpers; i++)
		AWAIT(asleep(i));
}

static void test_states(void)
{
	struct part p = { .job.run = run_part };

	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 1);
	crew_dismiss(&p.job);
	check(helpers == 1, "the first job makes a helper");
	all_asleep();
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 2);
	crew_dismiss(&p.job);
	check(helpers == 1, "and there still is one");
	check(idle_at_end == 1, "it can be called again before its part has ended");
	crew_shutdown();
}

/* What one transfer may have, of so many */
static void test_share(void)
{
	static const struct {
		unsigned int callers, share, spare;
	} of[] = {
		{ 0, 16, 0 }, { 1, 16, 15 }, { 2, 8, 7 }, { 5, 3, 2 }, { 8, 2, 1 },
		{ 9, 1, 0 }, { 16, 1, 0 }, { 17, 1, 0 },
	};
	unsigned int i;

	cpus = 16;
	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		while (callers < of[i].callers)
			crew_enter();
		check(crew_callers() == of[i].callers, "so many transfers");
		check(crew_share(16) == of[i].share, "each has its share of 16 requests");
		check(crew_spare() == of[i].spare, "and of the CPUs that nobody has");
	}
	while (callers)
		crew_leave();
	crew_shutdown();
}

/* Called, but not wanted any more before it has begun */
static void test_unwanted(void)
{
	struct part p = { .job.run = run_part }, q = p;

	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 1);
	crew_dismiss(&p.job);
	all_asleep();
	held = 1;
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(in_held == 1);
	check(!idle, "one that is called has something to do");
	crew_dismiss(&p.job);
	check(!p.job.running && idle == 1, "a job that nobody has begun is taken back");
	crew_call(&q.job, 1, MAX_HELPERS);
	check(helpers == 1 && q.job.called == 1, "the same one is called again");
	held = 0;
	AWAIT(q.ended == 1);
	crew_dismiss(&q.job);
	check(p.ended == 1, "what was taken back was never begun");
	all_asleep();
	crew_shutdown();
}

static void test_many(void)
{
	struct part p = { .job.run = run_part, .hold = 1 }, q = p;

	crew_call(&p.job, 5, 2);
	AWAIT(p.begun == 2);
	check(helpers == 2 && p.job.called == 3, "five are wanted, two may be");
	crew_call(&q.job, 1, 2);
	check(!q.job.called, "all have something to do: nobody is called");
	crew_dismiss(&q.job);
	check(!q.begun, "nobody is waited for");
	p.hold = 0;
	crew_dismiss(&p.job);
	check(p.ended == 2, "who dismisses waits for those at it");
	crew_shutdown();
}

static void *let_go(void *arg)
{
	struct part *p = arg;

	AWAIT(p->job.running & WAITING);
	p->hold = 0;
	return NULL;
}

static void test_dismiss(void)
{
	struct part q = { .job.run = run_part, .hold = 1 };
	pthread_t thread;
	int slow;

	for (slow = 0; slow < 2; slow++) {
		q.job.slow = slow;
		q.hold = 1;
		q.begun = q.ended = 0;
		crew_call(&q.job, 1, MAX_HELPERS);
		AWAIT(q.begun == 1);
		times = 0;
		pthread_create(&thread, NULL, let_go, &q);
		crew_dismiss(&q.job);
		check(q.ended == 1, "who sleeps until a job ends is woken");
		check(slow ? !times : times > 1, slow ?
		      "who waits for a device sleeps at once" :
		      "another waits awake first");
		pthread_join(thread, NULL);
	}
	crew_shutdown();
}

static void test_shutdown(void)
{
	struct part p = { .job.run = run_part };
	int turn;

	for (turn = 0; turn < 2; turn++) {
		p.hold = 1;
		p.begun = p.ended = 0;
		crew_call(&p.job, 3, MAX_HELPERS);
		AWAIT(p.begun == 3);
		p.hold = 0;
		crew_dismiss(&p.job);
		if (!turn)
			all_asleep();
		crew_shutdown();
		check(!helpers && !idle,
		      turn ? "closed while helpers are awake" :
			     "closed while helpers sleep");
	}
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 4);
	crew_dismiss(&p.job);
	check(helpers == 1, "there are new ones later");
	crew_shutdown();
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_share, test_states, test_unwanted, test_many, test_dismiss,
		test_shutdown,
	};
	unsigned int i;

	alarm(300);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		cpus = 8;	/* whatever the machine has; a shutdown forgets it */
		tests[i]();
	}
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
