/* SPDX-License-Identifier: MIT */
/* What mr_unit.c checks with: the false libraries' state, registration, words */
#ifndef PEERLANE_CORE_TEST_MR_UNIT_H
#define PEERLANE_CORE_TEST_MR_UNIT_H

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include "../../cuda/test/check.h"
#include "../../cuda/test/ktap.h"
#include "../mr_inside.h"
#include "faults.h"
#include "mr_fakes.h"
#include "peerlane/mr.h"
#include "peerlane/peerlane.h"

#define KiB	1024ull
#define MiB	(1024 * KiB)
#define BASE	0x10000000ull		/* the first range of GPU 0 */
#define NEXT	(BASE + 16 * MiB)	/* the one after it, in no context */
#define OTHER	(NEXT + 16 * MiB)	/* and one of GPU 1 */
#define ODD	0x30000200ull		/* small, at no page's start */
#define RW	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct fake_verbs *fv;
static struct fake_cuda *fc;
static unsigned char *vram;		/* of the first range */
static struct ibv_device device = { .name = "fake0" };
static struct ibv_context context = { .device = &device };
static struct ibv_pd pd = { .context = &context };

__attribute__((unused))
static void done(const char *desc)
{
	ktap(!failed, "%s", desc);
	failed = false;
}

static void reset(void)
{
	const struct fake_range range[FAKE_RANGES] = {
		{ BASE, 16 * MiB, 1, 0, 0, vram, 0, 0, 0, 0 },
		{ NEXT, 16 * MiB, 2, 0, 1, vram, 0, 0, 0, 0 },
		{ OTHER, 16 * MiB, 3, 1, 0, vram, 0, 0, 0, 0 },
		{ ODD, 1000, 4, 0, 0, vram, 0, 0, 0, 0 },
	};

	*fv = (struct fake_verbs){ .probe_errno = EBADF };
	*fc = (struct fake_cuda){
		.with = CUDA_ERROR_UNKNOWN,
		.order = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES,
	};
	memcpy(fc->range, range, sizeof(range));
	faults_reset();
}

/* As a device that takes no dma-bufs, and memory without pages */
__attribute__((unused))
static void reset_staged(void)
{
	reset();
	fv->probe_errno = EOPNOTSUPP;
	fv->plain_errno = EFAULT;
}

static bool clean(void)
{
	if (fv->live || fc->depth || fc->primaries || fc->hosts ||
	    fc->streams || fc->running || fc->wrong)
		printf("# left: %u regions, %u contexts, %u primary, %u host, %u streams, %u copies, %u wrong\n",
		       fv->live, fc->depth, fc->primaries, fc->hosts,
		       fc->streams, fc->running, fc->wrong);
	return !fv->live && !fc->depth && !fc->primaries && !fc->hosts &&
	       !fc->streams && !fc->running && !fc->wrong;
}

static int reg(uint64_t addr, size_t length, int access, unsigned int flags,
	       struct pln_mr **mr)
{
	*mr = NULL;
	return pln_mr_reg(&pd, (void *)(uintptr_t)addr, length, access, flags,
			  mr);
}

static struct pln_mr_info *info_of(struct pln_mr *mr)
{
	static struct pln_mr_info info;

	info.size = sizeof(info);
	CHECK(!pln_mr_info(mr, &info));
	CHECK(!mr || (mr_way(mr) == info.way && mr_length(mr) == info.length));
	return &info;
}

static void says(const char *words)
{
	const char *reason = info_of(NULL)->reason;

	if (!strstr(reason, words)) {
		printf("# \"%s\" does not have: %s\n", reason, words);
		failed = true;
	}
}

/* A registration that fails so, and says so */
__attribute__((unused))
static void bad(uint64_t addr, size_t length, int access, unsigned int flags,
		int error, const char *words)
{
	struct pln_mr *mr;
	int r = reg(addr, length, access, flags, &mr);

	if (r != error)
		printf("# %s, not %s\n", pln_errname(r), pln_errname(error));
	CHECK(r == error && !mr);
	CHECK(info_of(NULL)->error == error && !info_of(NULL)->way);
	says("registration failed: ");
	says(words);
	CHECK(clean());
}

static void *load(const char *folder, const char *old, const char *name)
{
	char path[500];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s%s", folder, old, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		printf("Bail out! %s\n", dlerror());
	return lib;
}

#endif
