/* SPDX-License-Identifier: MIT */
/* Tests in processes of their own */
#ifndef PEERLANE_TEST_CHILD_H
#define PEERLANE_TEST_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Exit status of the test in a process of its own, 128 + signal, 124 slow */
__attribute__((unused))
static int in_child(void (*test)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(60);
		failed = false;
		test();
		exit(failed ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 125;
	if (WIFSIGNALED(status)) {
		printf("# killed by signal %d\n", WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

#endif
