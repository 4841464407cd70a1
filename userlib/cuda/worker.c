// SPDX-License-Identifier: MIT
/*
 * Threads of the library: each task has one to itself, so that one that waits
 * holds up no other.  They are made as they are needed, and kept.
 *
 * What the program can hold up, and what it cannot, have threads apart, and one each
 * at least: where no more can be made, work for the engine still begins, and its end is
 * still noticed.
 */
#include <signal.h>

#include "internal.h"

static struct crew {
	pthread_cond_t some;
	STAILQ_HEAD(, drv_task) tasks;
	unsigned int spare;	/* threads that have no task, nor one meant for them */
	unsigned int unserved;	/* tasks that no thread is meant for */
	unsigned int threads;
} crews[] = {
	[DRV_TASK_HELP] = {
		.some = PTHREAD_COND_INITIALIZER,
		.tasks = STAILQ_HEAD_INITIALIZER(crews[DRV_TASK_HELP].tasks),
	},
	[DRV_TASK_WORK] = {
		.some = PTHREAD_COND_INITIALIZER,
		.tasks = STAILQ_HEAD_INITIALIZER(crews[DRV_TASK_WORK].tasks),
	},
};

#define NR_CREWS	(sizeof(crews) / sizeof(crews[0]))

/* A function of the program has ended the thread, so there is one less for tasks */
static void leave(void *arg)
{
	struct crew *crew = arg;

	pthread_mutex_lock(&drv.order);
	crew->threads--;
	drv_tasks_serve();
	pthread_mutex_unlock(&drv.order);
}

static void *work(void *arg)
{
	struct crew *crew = arg;
	struct drv_task *task;

	/* Nobody is to end it in the middle of something */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_mutex_lock(&drv.order);
	for (;;) {
		while (STAILQ_EMPTY(&crew->tasks))
			pthread_cond_wait(&crew->some, &drv.order);
		task = STAILQ_FIRST(&crew->tasks);
		STAILQ_REMOVE_HEAD(&crew->tasks, link);
		pthread_mutex_unlock(&drv.order);
		pthread_cleanup_push(leave, crew);
		task->run(task->arg);
		pthread_cleanup_pop(0);
		pthread_mutex_lock(&drv.order);
		if (crew->unserved)
			crew->unserved--;
		else
			crew->spare++;
	}
	return NULL;
}

/* Signals are the program's own threads' business, but for faults of its functions */
static bool start_thread(struct crew *crew)
{
	sigset_t all, before;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = !pthread_create(&thread, NULL, work, crew);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ok)
		pthread_detach(thread);
	crew->threads += ok;
	return ok;
}

bool drv_workers_ready(void)
{
	bool ready = true;

	for (size_t i = 0; i < NR_CREWS; i++) {
		if (!crews[i].threads && start_thread(&crews[i]))
			crews[i].spare++;
		ready = ready && crews[i].threads;
	}
	return ready;
}

void drv_task_start(struct drv_task *task, enum drv_task_kind kind)
{
	struct crew *crew = &crews[kind];

	drv_tasks_serve();
	STAILQ_INSERT_TAIL(&crew->tasks, task, link);
	if (crew->spare) {
		crew->spare--;
		pthread_cond_signal(&crew->some);
	} else if (!start_thread(crew)) {
		crew->unserved++;
		drv_log("no thread can be made: a stream waits for another one's work");
	}
}

void drv_tasks_serve(void)
{
	for (size_t i = 0; i < NR_CREWS; i++)
		while (crews[i].unserved && start_thread(&crews[i]))
			crews[i].unserved--;
}
