// SPDX-License-Identifier: MIT
/*
 * Helpers.  Each has a place where its next job is put, and a bit that says whether
 * it has nothing to do: who takes the bit away gives it a job, without a lock, and
 * wakes nobody else.  Who takes the job away again, to do it or because it is not
 * wanted any more, gives the bit back.
 *
 * A helper without a job sleeps at once.  Waking it costs the caller 2 us, and it is
 * there after 7; if it waited for the next job awake, it would take 20 and more of a
 * CPU for each transfer.
 */
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"

/* So long a caller waits awake for the helpers' last chunks, or a lane for its mark */
#define SPIN_NS		50000
/* Where the clock stands still, spinning ends all the same */
#define MOST_TURNS	20000
#define WAITING		(1u << 31)

enum { NOTHING, GO, ASLEEP };

static struct helper {
	_Atomic uint32_t go;
	struct crew_job *_Atomic job;
	pthread_t thread;
} helper[MAX_HELPERS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int helpers;
static _Atomic uint64_t idle;		/* bits: helpers */
static _Atomic unsigned int callers;	/* transfers under way */
static _Atomic unsigned int cpus;
static _Atomic bool quit;

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void futex_wait(_Atomic uint32_t *at, uint32_t value)
{
	syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static unsigned int count_cpus(void)
{
	cpu_set_t set;
	unsigned int n = cpus;

	if (n)
		return n;
	n = sched_getaffinity(0, sizeof(set), &set) ? 1 :
	    (unsigned int)CPU_COUNT(&set);
	cpus = n ? n : 1;
	return cpus;
}

void crew_enter(void)
{
	callers++;
}

void crew_leave(void)
{
	callers--;
}

unsigned int crew_callers(void)
{
	return callers;
}

unsigned int crew_share(unsigned int n)
{
	unsigned int c = callers;

	return c < 2 ? n : n < c ? 1 : n / c;
}

unsigned int crew_spare(void)
{
	unsigned int n = count_cpus(), c = callers;

	return c && n > c ? (n - c) / c : 0;
}

bool crew_spin(const _Atomic uint32_t *at, uint32_t value)
{
	uint64_t end = 0;
	unsigned int i;

	for (i = 0; i < MOST_TURNS; i++) {
		if (*at == value)
			return true;
		relax();
		if (i % 32)
			continue;
		if (!end)
			end = now() + SPIN_NS;
		else if (now() > end || callers >= count_cpus())
			break;
	}
	return *at == value;
}

static void await(struct helper *h)
{
	uint32_t was;

	while (h->go != GO) {
		was = NOTHING;
		atomic_compare_exchange_strong(&h->go, &was, ASLEEP);
		if (was != GO)
			futex_wait(&h->go, ASLEEP);
	}
}

static void *serve(void *arg)
{
	struct helper *h = arg;
	uint64_t bit = 1ull << (h - helper);
	struct crew_job *j;

	for (;;) {
		await(h);
		h->go = NOTHING;
		j = atomic_exchange(&h->job, NULL);
		if (j) {
			j->run(j);
			/* before its caller goes on, who may want a helper again */
			idle |= bit;
			/* then @j may be gone: only its address is used */
			if (atomic_fetch_sub(&j->running, 1) == (1 | WAITING))
				futex_wake(&j->running);
		} else if (quit) {
			break;
		}
	}
	return NULL;
}

static void give(unsigned int i, struct crew_job *j)
{
	struct helper *h = &helper[i];

	j->called |= 1ull << i;
	j->running++;
	h->job = j;
	if (atomic_exchange(&h->go, GO) == ASLEEP)
		futex_wake(&h->go);
}

/* Signals are the program's own threads' business. */
static bool make(struct crew_job *j, unsigned int most)
{
	sigset_t all, old;
	bool ok = false;

	if (helpers >= min_of(most, MAX_HELPERS))
		return false;
	pthread_mutex_lock(&lock);
	if (helpers < min_of(most, MAX_HELPERS)) {
		struct helper *h = &helper[helpers];

		h->go = NOTHING;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		ok = !pthread_create(&h->thread, NULL, serve, h);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (ok)
			give(helpers++, j);
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

void crew_call(struct crew_job *j, unsigned int n, unsigned int most)
{
	j->called = 0;
	j->running = 0;
	while (n) {
		uint64_t have = idle, bit;

		if (!have) {
			/* it works with fewer, and with none */
			if (!make(j, most))
				break;
			n--;
			continue;
		}
		bit = have & -have;
		if (!(atomic_fetch_and(&idle, ~bit) & bit))
			continue;
		give((unsigned int)__builtin_ctzll(bit), j);
		n--;
	}
}

void crew_dismiss(struct crew_job *j)
{
	uint64_t left = j->called;
	uint32_t v;

	for (; left; left &= left - 1) {
		struct helper *h = &helper[__builtin_ctzll(left)];
		struct crew_job *its = j;

		if (!atomic_compare_exchange_strong(&h->job, &its, NULL))
			continue;
		j->running--;
		idle |= left & -left;
	}
	if (!j->running ||
	    (!j->slow && callers < count_cpus() && crew_spin(&j->running, 0)))
		return;
	j->running |= WAITING;
	while ((v = j->running) != WAITING)
		futex_wait(&j->running, v);
}

/* No transfer is under way. */
void crew_shutdown(void)
{
	unsigned int i;

	quit = true;
	for (i = 0; i < helpers; i++)
		if (atomic_exchange(&helper[i].go, GO) == ASLEEP)
			futex_wake(&helper[i].go);
	for (i = 0; i < helpers; i++)
		pthread_join(helper[i].thread, NULL);
	helpers = 0;
	idle = 0;
	quit = false;
	cpus = 0;
}
