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

#define INVALID		CUDA_ERROR_INVALID_VALUE
#define BAD_PTR(t)	((t)(uintptr_t)0x1234560)
#define EXPORT(out, ptr, size) \
	cuMemGetHandleForAddressRange(out, ptr, size, \
				      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)

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

struct unit_test {
	const char *name;
	void (*fn)(void);
};

/* All, or those with the program's argument in their names */
__attribute__((unused))
static void unit_run(const struct unit_test *tests, size_t n, int argc,
		     char **argv)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("PEERLANE_LOG");
	for (size_t i = 0; i < n; i++)
		if (argc < 2 || strstr(tests[i].name, argv[1]))
			ktap(!in_child(tests[i].fn), "%s", tests[i].name);
}

/* The main() of a program that has nothing but @tests */
#define UNIT_MAIN(tests)						\
int main(int argc, char **argv)						\
{									\
	unit_run(tests, sizeof(tests) / sizeof((tests)[0]), argc, argv);	\
	return ktap_end();						\
}

#endif /* PEERLANE_TEST_UNIT_H */
