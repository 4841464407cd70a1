// SPDX-License-Identifier: MIT
/*
 * Threads that give way before they take a lock and after they give it back, so
 * that they meet in more places than they would by chance.  For programs that
 * are linked with --wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock.
 */
#include <pthread.h>
#include <sched.h>

#include "yield.h"

unsigned int yield_every;
__thread void (*after_unlock)(const pthread_mutex_t *lock);

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

static void give_way(void)
{
	static __thread unsigned int n;

	if (yield_every && ++n % yield_every == 0)
		sched_yield();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	give_way();
	return __real_pthread_mutex_lock(lock);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	void (*then)(const pthread_mutex_t *lock) = after_unlock;
	int err = __real_pthread_mutex_unlock(lock);

	give_way();
	if (then) {
		after_unlock = NULL;
		then(lock);
		after_unlock = then;
	}
	return err;
}
