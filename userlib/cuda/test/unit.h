/* SPDX-License-Identifier: MIT */
/* What the programs share that test the library on the fake driver */
#ifndef PEERLANE_TEST_UNIT_H
#define PEERLANE_TEST_UNIT_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../internal.h"
#include "check.h"
#include "child.h"
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

/* Another process, which has open what this one had; let_go() ends it */
struct keeper {
	pid_t pid;
	int hold;
};

__attribute__((unused))
static struct keeper keep(void)
{
	struct keeper k = { .pid = -1 };
	int hold[2];
	char byte;

	CHECK(!pipe(hold));
	k.pid = fork();
	if (!k.pid) {
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	CHECK(k.pid > 0);
	close(hold[0]);
	k.hold = hold[1];
	return k;
}

__attribute__((unused))
static void let_go(struct keeper *k)
{
	close(k->hold);
	waitpid(k->pid, NULL, 0);
}

#define MAX_OPENED	4
/*
 * Memory of this process, @p, which @handle says is another one's, to be opened by up
 * to @n calls at once.  The fake device knows descriptors by number: those that will be
 * used are exported, and their memory is freed; @rest takes its place.
 */
__attribute__((unused))
static struct keeper keep_memory(CUdeviceptr *p, CUipcMemHandle *handle,
				 unsigned int n, CUdeviceptr *rest)
{
	CUdeviceptr gap[MAX_OPENED];
	struct drv_name name;
	struct keeper k;

	OK(cuMemAlloc_v2(p, 4 * MiB));
	OK(cuIpcGetMemHandle(handle, *p));
	for (unsigned int i = 0; i < n; i++) {
		OK(cuMemAlloc_v2(&gap[i], 4 * MiB));
		OK(cuIpcGetMemHandle((CUipcMemHandle[1]){ 0 }, gap[i]));
	}
	k = keep();
	memcpy(&name, handle, sizeof(name));
	name.pid = k.pid;
	memcpy(handle, &name, sizeof(name));
	for (unsigned int i = 0; i < n; i++)
		OK(cuMemFree_v2(gap[i]));
	/* what they were must not be found */
	OK(cuMemAlloc_v2(rest, n * 4 * MiB));
	return k;
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
