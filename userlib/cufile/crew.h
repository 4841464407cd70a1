/* SPDX-License-Identifier: MIT */
/* Helpers of the bounce path: threads that a transfer calls for part of its work. */
#ifndef PLN_CUFILE_CREW_H
#define PLN_CUFILE_CREW_H

#include "internal.h"

#define MAX_HELPERS	64

/* Part of a transfer that several threads do at once. */
struct crew_job {
	void (*run)(struct crew_job *j);
	bool slow;			/* its parts wait for a device */
	/* inside */
	uint64_t called;		/* bits: helpers */
	_Atomic uint32_t running;
};

/* A transfer begins and ends: while there are as many as CPUs, nobody waits awake. */
void crew_enter(void);
void crew_leave(void);
/* So many are under way. */
unsigned int crew_callers(void);
/* The part of @n things that one of them may have, at least 1. */
unsigned int crew_share(unsigned int n);
/* CPUs that no transfer has, for each one that is under way. */
unsigned int crew_spare(void);
/* Until *@at is @value, for a moment, awake.  Is it? */
bool crew_spin(const _Atomic uint32_t *at, uint32_t value);
/*
 * Calls up to @n helpers to run(); there will be at most @most.  Those that do
 * nothing now: nobody waits for one.
 */
void crew_call(struct crew_job *j, unsigned int n, unsigned int most);
/* After this no helper is at it; one that has not begun never will be. */
void crew_dismiss(struct crew_job *j);
void crew_shutdown(void);

#endif
