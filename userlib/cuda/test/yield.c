// SPDX-License-Identifier: MIT
/*
 * Threads that give way when they give back a lock, so that they meet in more
 * places than they would by chance.  For programs that are linked with
 * --wrap=pthread_mutex_unlock.
 */
#include <pthread.h>
#include <sched.h>

#include "yield.h"

unsigned int yield_every;

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	static __thread unsigned int n;
	int err = __real_pthread_mutex_unlock(lock);

	if (yield_every && ++n % yield_every == 0)
		sched_yield();
	return err;
}
