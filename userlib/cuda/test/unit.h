/* SPDX-License-Identifier: MIT */
/* What the programs share that test the library on the fake driver */
#ifndef PEERLANE_TEST_UNIT_H
#define PEERLANE_TEST_UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../internal.h"
#include "check.h"
#include "fake_gpu.h"
#include "ktap.h"

#define INVALID		CUDA_ERROR_INVALID_VALUE
#define BAD_PTR(t)	((t)(uintptr_t)0x1234560)

static const struct fake_config one = {
	.gpus = 1, .vram = 64 * MiB, .queues = 4, .dmabuf = true,
};

__attribute__((unused))
static CUcontext start(const struct fake_config *cfg)
{
	CUcontext ctx = NULL;

	fake_setup(cfg);
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	return ctx;
}

/* Everything given back to the kernel? */
__attribute__((unused))
static void end(CUcontext ctx)
{
	OK(cuCtxDestroy_v2(ctx));
	CHECK(fake_handles() == 0);
	CHECK(fake_jobs() == 0);
	CHECK(fake_files() == 0);
	CHECK(fake_leaks() == 0);
}

__attribute__((unused))
static void pattern(unsigned char *p, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

/* Exit status of the test in a process of its own, 128 + signal, 124 slow */
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

#endif /* PEERLANE_TEST_UNIT_H */
