/* SPDX-License-Identifier: MIT */
/* How a library is asked questions, and its answers printed, one line each */
#ifndef PEERLANE_TEST_ASK_H
#define PEERLANE_TEST_ASK_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library that is asked; one in each program, however many files it has */
__attribute__((weak)) void *ask_lib;

/* A function of it; ends the program without it */
static inline void *sym(const char *name)
{
	void *p = dlsym(ask_lib, name);

	if (!p) {
		printf("no symbol %s\n", name);
		exit(2);
	}
	return p;
}

#define CALL(fn, ...)	((__typeof__(&fn))sym(#fn))(__VA_ARGS__)
#define ASK(what, fn, ...) \
	printf("%-44s %d\n", what, (int)CALL(fn, __VA_ARGS__))
#define SAY(what, value)	printf("%-44s = %lld\n", what, (long long)(value))

struct section {
	const char *name;
	void (*ask)(void);
};

/*
 * Each section in a process of its own, since an error may stay with a context;
 * @library is loaded there, by name as a program of a user does it, and @start
 * called, or NULL.  Gives the program's exit status.
 */
static inline int ask_all(const struct section *sections, size_t n,
			  const char *library,
			  int (*start)(const struct section *section))
{
	int status, bad = 0;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n; i++) {
		printf("[%s]\n", sections[i].name);
		pid = fork();
		if (!pid) {
			ask_lib = dlopen(library, RTLD_NOW);
			if (!ask_lib)
				printf("%s\n", dlerror());
			status = !ask_lib ? 2 :
				 start ? start(&sections[i]) : 0;
			if (!status)
				sections[i].ask();
			exit(status);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 2;
		if (WIFSIGNALED(status))
			printf("killed by signal %d\n", WTERMSIG(status));
		bad |= status;
	}
	return bad ? 1 : 0;
}

#endif
