// SPDX-License-Identifier: MIT
/*
 * Helpers of the bounce path, each state of them held: it is crew.c itself with a
 * clock that can hold who asks for the time, and calls of futex(2) that are counted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic int held_clock;	/* helpers that ask for the time wait */
static _Atomic int in_clock;
static _Atomic unsigned int wakes;
static __thread int is_main;

static int clock_of(clockid_t id, struct timespec *t)
{
	if (!is_main && held_clock) {
		in_clock++;
		while (held_clock)
			usleep(100);
		in_clock--;
	}
	return clock_gettime(id, t);
}

#define clock_gettime	clock_of
#define syscall(nr, at, op, ...) do { \
	wakes += (op) == FUTEX_WAKE_PRIVATE; \
	syscall(nr, at, op, __VA_ARGS__); \
} while (0)
#include "../crew.c"
#undef clock_gettime
#undef syscall

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
	unsigned int was;

	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 1);
	crew_dismiss(&p.job);
	check(helpers == 1, "the first job makes a helper");
	all_asleep();
	was = wakes;
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.ended == 2);
	crew_dismiss(&p.job);
	check(wakes > was, "one that sleeps is woken");

	/* it has just had one, so it spins */
	all_asleep();
	p.hold = 1;
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.begun == 3);
	/* within await(), before it spins; it takes the job for a soon one */
	held_clock = 1;
	p.hold = 0;
	AWAIT(in_clock == 1);
	crew_dismiss(&p.job);
	check(helper[0].go != ASLEEP, "one that asks for the time is awake");
	was = wakes;
	crew_call(&p.job, 1, MAX_HELPERS);
	check(wakes == was, "it is given a job without a wake");
	held_clock = 0;
	AWAIT(p.ended == 4);
	crew_dismiss(&p.job);
	check(helpers == 1, "and there still is one");
	crew_shutdown();
}

/* Of two, the one that spins has it */
static void test_spinning(void)
{
	struct part p = { .job.run = run_part, .hold = 1 }, q = p;
	unsigned int was;

	crew_call(&p.job, 2, MAX_HELPERS);
	AWAIT(p.begun == 2);
	check(helpers == 2, "two helpers");
	p.hold = 0;
	crew_dismiss(&p.job);
	all_asleep();
	/* the second one spins, which its bit says, and is held there */
	spinning = 2;
	was = wakes;
	crew_call(&q.job, 1, MAX_HELPERS);
	AWAIT(q.begun == 1);
	check(q.job.called == 2, "who spins is called before who sleeps");
	spinning = 0;
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(p.begun == 3);
	check(p.job.called == 1, "then the other");
	check(wakes - was == 2, "each is woken once");
	crew_dismiss(&p.job);
	q.hold = 0;
	crew_dismiss(&q.job);
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
	struct part p = { .job.run = run_part }, q = { .job.run = run_part, .hold = 1 };
	pthread_t thread;

	/* a new helper asks for the time first */
	held_clock = 1;
	crew_call(&p.job, 1, MAX_HELPERS);
	AWAIT(in_clock == 1);
	crew_dismiss(&p.job);
	check(!p.job.running, "a job that nobody has begun is taken back");
	held_clock = 0;
	all_asleep();
	check(!p.begun, "and never begun");

	crew_call(&q.job, 1, MAX_HELPERS);
	AWAIT(q.begun == 1);
	pthread_create(&thread, NULL, let_go, &q);
	crew_dismiss(&q.job);
	check(q.ended == 1, "who sleeps until a job ends is woken");
	pthread_join(thread, NULL);
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
			all_asleep();	/* else they spin, mostly */
		crew_shutdown();
		check(!helpers && !idle && !spinning,
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
		test_states, test_spinning, test_many, test_dismiss, test_shutdown,
	};
	unsigned int i;

	is_main = 1;
	alarm(300);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		cpus = 8;	/* whatever the machine has; a shutdown forgets it */
		tests[i]();
	}
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
