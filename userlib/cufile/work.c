// SPDX-License-Identifier: MIT
/*
 * Threads that do transfers of batches and streams: as many as
 * peerlane.max_io_threads says, made when there is work that no idle one takes.
 */
#include <signal.h>

#include "internal.h"

#define MAX_THREADS	64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
static struct queue {
	struct work *first, **last;
} urgent = { .last = &urgent.first }, later = { .last = &later.first };
static unsigned int queued;
static pthread_t thread[MAX_THREADS];
static unsigned int threads, idle;
static bool quit;

/* With the lock held.  One of @q, or NULL. */
static struct work *next_of(struct queue *q)
{
	struct work *w = q->first;

	if (!w)
		return NULL;
	q->first = w->next;
	if (!q->first)
		q->last = &q->first;
	queued--;
	return w;
}

static void *serve(void *arg)
{
	struct work *w;

	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		idle++;
		while (!queued && !quit)
			pthread_cond_wait(&come, &lock);
		idle--;
		w = next_of(&urgent);
		if (!w)
			w = next_of(&later);
		if (!w)
			break;
		pthread_mutex_unlock(&lock);
		w->run(w);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* With the lock held.  Signals are the program's own threads' business. */
static void make_thread(void)
{
	size_t max = config.size[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS];
	sigset_t all, old;

	max = min_of(max ? max : 1, MAX_THREADS);
	if (threads >= max)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!pthread_create(&thread[threads], NULL, serve, NULL))
		threads++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bool work_ready(void)
{
	bool ok;

	pthread_mutex_lock(&lock);
	if (!threads)
		make_thread();
	ok = threads;
	pthread_mutex_unlock(&lock);
	return ok;
}

void work_add(struct work *w, bool now)
{
	struct queue *q = now ? &urgent : &later;

	pthread_mutex_lock(&lock);
	w->next = NULL;
	*q->last = w;
	q->last = &w->next;
	if (++queued > idle)
		make_thread();
	pthread_cond_signal(&come);
	pthread_mutex_unlock(&lock);
}

bool work_remove(struct work *w)
{
	struct work **p;
	bool found;

	pthread_mutex_lock(&lock);
	for (p = &later.first; *p && *p != w; p = &(*p)->next)
		continue;
	found = *p;
	if (found) {
		*p = w->next;
		if (!*p)
			later.last = p;
		queued--;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Nothing is under way, as nothing keeps the library open. */
void work_shutdown(void)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	quit = true;
	pthread_cond_broadcast(&come);
	pthread_mutex_unlock(&lock);
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	threads = 0;
	quit = false;
}
