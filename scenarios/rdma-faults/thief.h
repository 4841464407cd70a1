/* SPDX-License-Identifier: MIT */
/*
 * Another process, which takes all GPU memory that there is and watches it.
 * The program that includes this file calls thief() when its first argument
 * is "thief".
 */
#ifndef RDMA_FAULTS_THIEF_H
#define RDMA_FAULTS_THIEF_H

#include <spawn.h>
#include <sys/wait.h>

#include "rdma.h"

extern char **environ;

/* thief: all memory that there is; in the end, whether it is as it was */
static inline int thief(void)
{
	static gpu_ptr p[4096];
	static uint32_t crc[4096];
	static size_t size[4096];
	size_t total = 0, left, all, step = MIB(16);
	unsigned int n = 0, bad = 0;
	char line[8];

	gpu_open();
	while (step >= KIB(64) && n < 4096) {
		if (cuMemAlloc_v2(&p[n], step)) {
			step /= 2;
			continue;
		}
		size[n] = step;
		total += step;
		cuMemsetD8_v2(p[n], 0x33, step);
		crc[n] = gpu_crc(p[n], step);
		n++;
	}
	if (cuMemGetInfo_v2(&left, &all))
		return 1;
	printf("%zu %zu\n", total, left);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (unsigned int i = 0; i < n; i++)
		bad += gpu_crc(p[i], size[i]) != crc[i];
	printf("%u\n", bad);
	return 0;
}

struct thief {
	pid_t pid;
	FILE *to, *from;
	size_t left;		/* that nobody has */
};

static inline size_t thief_start(struct thief *t)
{
	static char self[] = "/proc/self/exe", part[] = "thief";
	char *argv[] = { self, part, NULL };
	posix_spawn_file_actions_t a;
	int in[2], out[2];
	size_t total = 0;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    posix_spawn_file_actions_init(&a) ||
	    posix_spawn_file_actions_adddup2(&a, in[0], 0) ||
	    posix_spawn_file_actions_adddup2(&a, out[1], 1) ||
	    posix_spawn(&t->pid, self, &a, NULL, argv, environ))
		die("another process");
	close(in[0]);
	close(out[1]);
	t->to = fdopen(in[1], "w");
	t->from = fdopen(out[0], "r");
	if (!t->to || !t->from || fscanf(t->from, "%zu %zu", &total, &t->left) != 2)
		die("what another process says");
	return total;
}

static inline unsigned int thief_end(struct thief *t)
{
	unsigned int bad = ~0u;
	int status;

	fprintf(t->to, "go\n");
	fflush(t->to);
	if (fscanf(t->from, "%u", &bad) != 1)
		bad = ~0u;
	fclose(t->to);
	fclose(t->from);
	waitpid(t->pid, &status, 0);
	return bad;
}

#endif /* RDMA_FAULTS_THIEF_H */
