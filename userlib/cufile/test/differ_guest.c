// SPDX-License-Identifier: MIT
/*
 * differ.c in a guest: the real library, drive and kernel, and the emulated GPU.  Faults
 * are those of the drive, which moves at most 64 KiB by one command: some pages of a
 * file cannot be read, of another one not written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differ.h"

int cuDeviceGet(int *dev, int ordinal);
int cuDevicePrimaryCtxRetain(void **ctx, int dev);
int cuCtxSetCurrent(void *ctx);
int cuMemcpyHtoD_v2(unsigned long long d, const void *h, size_t n);
int cuMemcpyDtoH_v2(void *h, unsigned long long d, size_t n);
int cuStreamCreate(void **s, unsigned int flags);

/* common.c asks for them; there is none here */
struct mock mock;

void mock_reset(void)
{
}

void *mock_memory(unsigned long long ptr)
{
	(void)ptr;
	abort();
}

#define BAD_LO	((off_t)(512 * 1024 + 4096))
#define BAD_HI	(BAD_LO + 8192)

#define COMMAND	KIB(64)
#define NO_READ	.bad = "bad", .bad_lo = BAD_LO, .bad_hi = BAD_HI, .command = COMMAND
/*
 * Whole pages, by O_DIRECT alone: what is in the page cache meets it later, and after a
 * direct write that fails has what was there before.
 */
#define NO_WRITE .bad = "worse", .bad_lo = BAD_LO, .bad_hi = BAD_HI, .command = COMMAND, \
		 .bad_write = true, .strict = true

const struct setting settings[] = {
	{ "p2p", NULL, .path = PLN_PATH_P2P },
	{ "p2p, pages that cannot be read", NULL, .path = PLN_PATH_P2P, NO_READ },
	{ "p2p, pages that cannot be written", "{\"peerlane\":{\"strict\":true}}",
	  .path = PLN_PATH_P2P, NO_WRITE },
	{ "p2p, windows of 64 KiB", "{\"peerlane\":{\"window_size_kb\":64}}",
	  .path = PLN_PATH_P2P },
	{ "strict", "{\"peerlane\":{\"strict\":true}}", .strict = true,
	  .path = PLN_PATH_P2P },
	{ "the module", "{\"peerlane\":{\"use_pci_p2pdma\":false}}",
	  .path = PLN_PATH_KERNEL },
	{ "the module, pages that cannot be read",
	  "{\"peerlane\":{\"use_pci_p2pdma\":false}}", .path = PLN_PATH_KERNEL, NO_READ },
	{ "the module, pages that cannot be written",
	  "{\"peerlane\":{\"use_pci_p2pdma\":false,\"strict\":true}}",
	  .path = PLN_PATH_KERNEL, NO_WRITE },
	{ "bounce", "{\"properties\":{\"force_compat_mode\":true}}",
	  .path = PLN_PATH_BOUNCE },
	{ "bounce, always O_DIRECT", "{\"properties\":{\"force_odirect_mode\":true,"
	  "\"force_compat_mode\":true}}", .path = PLN_PATH_BOUNCE },
	{ "bounce, pages that cannot be written", "{\"properties\":{\"force_odirect_mode\":true,"
	  "\"force_compat_mode\":true}}", .path = PLN_PATH_BOUNCE, NO_WRITE },
	{ "the page cache", "{\"properties\":{\"force_compat_mode\":true}}", .cache = true,
	  .path = PLN_PATH_CACHE },
};
const unsigned int nsettings = sizeof(settings) / sizeof(settings[0]);

static void *ctx;

static void must(int r)
{
	if (r) {
		printf("Bail out! CUDA: %d\n", r);
		exit(1);
	}
}

void machine_start(void)
{
	int dev;

	must(cuInit(0));
	must(cuDeviceGet(&dev, 0));
	must(cuDevicePrimaryCtxRetain(&ctx, dev));
	must(cuCtxSetCurrent(ctx));
}

void machine_thread(void)
{
	must(cuCtxSetCurrent(ctx));
}

unsigned char *machine_side(void *gpu, size_t n)
{
	unsigned char *side = malloc(n);

	(void)gpu;
	if (!side)
		abort();
	return side;
}

void machine_side_end(unsigned char *side)
{
	free(side);
}

void machine_pull(void *gpu, unsigned char *side, size_t n)
{
	must(cuMemcpyDtoH_v2(side, (uintptr_t)gpu, n));
}

void machine_push(void *gpu, unsigned char *side, size_t n)
{
	must(cuMemcpyHtoD_v2((uintptr_t)gpu, side, n));
}

CUstream machine_stream(uint64_t any)
{
	void *s;

	(void)any;
	must(cuStreamCreate(&s, 1));	/* CU_STREAM_NON_BLOCKING */
	return s;
}

void machine_set(const struct setting *s)
{
	(void)s;
}

void machine_fault(struct world *w, struct fault *f)
{
	(void)w;
	(void)f;
}

void machine_no_fault(void)
{
}

void machine_short_calls(void)
{
}

void machine_later(void)
{
}
