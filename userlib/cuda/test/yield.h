/* SPDX-License-Identifier: MIT */
#ifndef PEERLANE_TEST_YIELD_H
#define PEERLANE_TEST_YIELD_H

/* A thread gives way at each so many locks and unlocks; 0: never */
extern unsigned int yield_every;

#endif
