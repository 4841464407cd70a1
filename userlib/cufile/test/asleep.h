/* SPDX-License-Identifier: MIT */
/* Has another thread come to where it waits? */
#ifndef PLN_TEST_ASLEEP_H
#define PLN_TEST_ASLEEP_H

#include <stdbool.h>
#include <stdio.h>

/* Does the thread wait in its call, or is it over? */
static bool asleep(int tid)
{
	char name[64], state = 'R';
	FILE *f;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
	f = tid ? fopen(name, "r") : NULL;
	if (f && fscanf(f, "%*d %*s %c", &state) != 1)
		state = 'R';
	if (f)
		fclose(f);
	return state == 'S' || (tid && !f);
}

#endif
