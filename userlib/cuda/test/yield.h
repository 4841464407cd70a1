/* SPDX-License-Identifier: MIT */
#ifndef PEERLANE_TEST_YIELD_H
#define PEERLANE_TEST_YIELD_H

#include <pthread.h>

/* A thread gives way at each so many locks and unlocks; 0: never */
extern unsigned int yield_every;
/* What a thread does after each unlock, but for its unlocks in there; or NULL */
extern __thread void (*after_unlock)(const pthread_mutex_t *lock);

#endif
