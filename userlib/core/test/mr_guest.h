/* SPDX-License-Identifier: MIT */
/* What mr_guest.c checks with: registration, traffic, what the driver counts */
#ifndef PEERLANE_CORE_TEST_MR_GUEST_H
#define PEERLANE_CORE_TEST_MR_GUEST_H

#include <dirent.h>
#include <stdlib.h>

#include "../../cuda/cuda_abi.h"
#include "../../cuda/cuda_proto.h"
#include "../../cuda/test/check.h"
#include "../../cuda/test/ktap.h"
#include "mr_net.h"
#include "peerlane/mr.h"
#include "peerlane/peerlane.h"

#define KiB	1024ull
#define MiB	(1024 * KiB)

static bool window;	/* the CPU reaches GPU memory */
static struct net net;

static void done(const char *desc)
{
	ktap(!failed, "%s", desc);
	failed = false;
}

static struct pln_mr_info info_of(struct pln_mr *mr)
{
	static struct pln_mr_info info;

	info.size = sizeof(info);
	CHECK(!pln_mr_info(mr, &info));
	return info;
}

static struct pln_mr *reg(CUdeviceptr p, size_t n, unsigned int flags)
{
	struct pln_mr *mr = NULL;
	int r = pln_mr_reg(net.pd, (void *)(uintptr_t)p, n, NET_ALL_ACCESS,
			   flags, &mr);

	if (r)
		printf("# %s\n", info_of(NULL).reason);
	return r ? NULL : mr;
}

/* The registration fails with @error, and each of @words is in the reason */
static void refused(CUdeviceptr p, size_t n, unsigned int flags, int error,
		    const char *const *words)
{
	struct pln_mr *mr = NULL;
	struct pln_mr_info info;
	int r = pln_mr_reg(net.pd, (void *)(uintptr_t)p, n, NET_ALL_ACCESS,
			   flags, &mr);

	info = info_of(NULL);
	if (r != error)
		printf("# %s, and not %s\n", pln_errname(r),
		       pln_errname(error));
	CHECK(r == error && !mr && info.error == error && !info.way);
	for (; *words; words++)
		if (!strstr(info.reason, *words)) {
			printf("# \"%s\" does not have: %s\n", info.reason, *words);
			failed = true;
		}
	pln_mr_dereg(mr);
}
#define REFUSED(p, n, flags, error, ...)				\
	refused(p, n, flags, error,					\
		(const char *const []){ __VA_ARGS__, NULL })

static unsigned char pattern(size_t i, unsigned int seed)
{
	return (unsigned char)((i * 2654435761u + seed * 40503u) >> 11);
}

/* Bytes of GPU memory that are not the pattern from its byte @first on */
static size_t wrong(CUdeviceptr p, size_t n, unsigned int seed, size_t first)
{
	unsigned char *b = malloc(n);
	size_t i, bad = 0;

	OK(cuMemcpyDtoH_v2(b, p, n));
	for (i = 0; i < n; i++)
		bad += b[i] != pattern(first + i, seed);
	free(b);
	return bad;
}

/* Bytes of GPU memory that are not @value */
static size_t not_filled(CUdeviceptr p, size_t n, unsigned char value)
{
	unsigned char *b = malloc(n);
	size_t i, bad = 0;

	OK(cuMemcpyDtoH_v2(b, p, n));
	for (i = 0; i < n; i++)
		bad += b[i] != value;
	free(b);
	return bad;
}

/* A number of the GPUs' driver, in one of its files, of all GPUs together */
static long long number(const char *file, const char *name)
{
	char path[300], key[64];
	long long value, sum = -1;
	struct dirent *e;
	DIR *dir = opendir("/sys/kernel/debug/peerlane_gpu");
	FILE *f;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path),
			 "/sys/kernel/debug/peerlane_gpu/%s/%s", e->d_name, file);
		f = fopen(path, "r");
		while (f && fscanf(f, "%63s %lld", key, &value) >= 1) {
			if (!strcmp(key, "state")) {
				if (fscanf(f, "%63s", key) != 1)
					break;
			} else if (!strcmp(key, name)) {
				sum = (sum < 0 ? 0 : sum) + value;
			}
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static long long counted(const char *name)
{
	return number("memory", name);
}

static long long counted_soon(const char *name, long long want)
{
	struct timespec now, end;
	long long got;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 10;
	do {
		got = counted(name);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (got != want && now.tv_sec < end.tv_sec);
	return got;
}

/*
 * WRITE a pattern into the registered memory and READ it back, through the
 * device; what the GPU has is compared in between.  The GPU's engine
 * works for staging, and for nothing else.
 */
static void traffic(struct pln_mr *mr, CUdeviceptr p, size_t n)
{
	static unsigned int seed;
	struct pln_mr *host = NULL;
	unsigned char *b = malloc(n);
	bool staged = info_of(mr).way == PLN_MR_STAGED;
	size_t i, bad = 0;
	long long ops;

	seed++;
	for (i = 0; i < n; i++)
		b[i] = pattern(i, seed);
	CHECK(!pln_mr_reg(net.pd, b, n, NET_ALL_ACCESS, 0, &host));
	CHECK(mr);
	if (!host || !mr)
		goto out;
	ops = number("counters", "descriptors");
	CHECK(!net_do(&net, IBV_WR_RDMA_WRITE, pln_mr_iova(host, 0),
		      pln_mr_verbs(host)->lkey, pln_mr_iova(mr, 0),
		      pln_mr_verbs(mr)->rkey, (uint32_t)n));
	CHECK(!pln_mr_to_gpu(mr, 0, n));
	ops = number("counters", "descriptors") - ops;
	CHECK(staged ? ops > 0 : !ops);
	CHECK(!wrong(p, n, seed, 0));

	/* Another pattern, made on the GPU's side */
	seed++;
	for (i = 0; i < n; i++)
		b[i] = pattern(i, seed);
	OK(cuMemcpyHtoD_v2(p, b, n));
	memset(b, 0, n);
	ops = number("counters", "descriptors");
	CHECK(!pln_mr_from_gpu(mr, 0, n));
	CHECK(!net_do(&net, IBV_WR_RDMA_READ, pln_mr_iova(host, 0),
		      pln_mr_verbs(host)->lkey, pln_mr_iova(mr, 0),
		      pln_mr_verbs(mr)->rkey, (uint32_t)n));
	ops = number("counters", "descriptors") - ops;
	CHECK(staged ? ops > 0 : !ops);
	for (i = 0; i < n; i++)
		bad += b[i] != pattern(i, seed);
	CHECK(!bad);
out:
	CHECK(!pln_mr_dereg(host));
	free(b);
}

#endif
