// SPDX-License-Identifier: MIT
/*
 * Everything that a registration calls fails once, at each place that calls it:
 * the errno, the words, and that nothing is left behind.
 *
 *	mr_faults FOLDER	with the false libibverbs.so.1 and libcuda.so.1
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "mr_unit.h"
#include "../mr_inside.h"
#include "sites_run.h"

#define LENGTH	(9 * MiB)	/* three pieces for the copy engine */

static struct {
	uint64_t addr;
	unsigned int access, flags;
	bool odd_probe;		/* the device takes a dma-buf that is none */
	bool no_export;
	bool flush;
	int plain_errno;
} how;
static char memory[100];

static bool is_verbs(const struct site *site)
{
	static const char *const verbs[] = {
		"reg_mr", "reg_mr_iova", "reg_mr_iova2", "reg_dmabuf_mr",
		"dereg_mr",
	};
	unsigned int i;

	for (i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(site->what, verbs[i]))
			return true;
	return false;
}

static bool by_name(const struct site *site)
{
	return !strcmp(site->what, "calloc") ||
	       !strcmp(site->what, "getrlimit");
}

static void site_due(void)
{
	if (is_verbs(site_hit))
		fv->now = EXFULL;
	else if (!by_name(site_hit))
		fc->now = CUDA_ERROR_LAUNCH_FAILED;
}

static int site_error(const struct site *site)
{
	if (is_verbs(site))
		return -EXFULL;
	return by_name(site) ? -ENOMEM : -EIO;
}

static int use(struct pln_mr *mr)
{
	int r = pln_mr_from_gpu(mr, 0, 100);

	return r ? r : pln_mr_to_gpu(mr, 0, 100);
}

static int t_life(void)
{
	struct pln_mr *mr = NULL;
	int r, end;

	reset();
	fv->plain_errno = how.plain_errno;
	if (how.odd_probe)
		fv->probe_errno = 0;
	if (how.flush) {
		fc->order = 0;
		fc->flush = 1;
	}
	if (how.no_export) {
		fc->fails = FAKE_EXPORT;
		fc->at = 1;
	}
	sites_on = true;
	r = reg(how.addr, how.addr > 1ull << 40 ? sizeof(memory) : LENGTH,
		(int)how.access, how.flags, &mr);
	fv->now = fc->now = 0;
	if (r && (mr || !info_of(NULL)->reason[0] ||
		  info_of(NULL)->error != r))
		r = 1000;
	if (!r)
		r = use(mr);
	fv->now = fc->now = 0;
	end = pln_mr_dereg(mr);
	sites_on = false;
	fv->now = fc->now = 0;
	if (end && pln_mr_dereg(mr))
		return 1001;
	/* The probe's region, which nobody can end */
	if (how.odd_probe && fv->kept && fv->live == 1) {
		free(fv->kept);
		fv->live = 0;
	}
	return clean() ? r ? r : end : 1002;
}

/* As the shim asks for it: at another address than the memory's */
static int t_address(void)
{
	struct mr_wish wish = { .pd = &pd, .iova = 0x5000, .access = RW };
	struct ibv_mr *mr;
	int r;

	reset();
	errno = 0;
	sites_on = true;
	mr = mr_verbs_reg(mr_verbs(), &wish, memory, sizeof(memory));
	sites_on = false;
	fv->now = fc->now = 0;
	r = -errno;
	if (mr)
		mr_verbs()->dereg_mr(mr);
	return clean() ? r : 1002;
}

/*
 * With all ways allowed, where the next one serves when one has failed: every call
 * of libcuda once, at each place, in each way of failing
 */
static void sweep(void)
{
	static const int with[] = {
		CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY,
		CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_SUPPORTED,
		CUDA_ERROR_DEVICE_UNAVAILABLE, 12345,
	};
	unsigned int call, at, refusals = 0, reached = 0;
	struct pln_mr *mr;
	size_t i;
	int r;

	for (call = FAKE_POINTER; call < FAKE_COPY; call++)
		for (i = 0; i < sizeof(with) / sizeof(with[0]); i++)
			for (at = 1;; at++) {
				reset();
				fv->dmabuf_errno = EREMOTEIO;
				fv->plain_errno = EFAULT;
				fc->fails = call;
				fc->at = at;
				fc->with = with[i];
				/* Over two allocations, the first in no context */
				r = reg(NEXT - MiB, 2 * MiB, RW, 0, &mr);
				CHECK(!r == !!mr && r <= 0);
				CHECK(info_of(NULL)->reason[0]);
				refusals += r < 0;
				CHECK(!pln_mr_dereg(mr));
				CHECK(clean());
				if (fc->fails != FAKE_NOTHING)
					break;	/* all places are seen */
				reached |= 1u << call;
			}
	reset_staged();
	for (at = 1; at <= 4; at++) {
		fc->fails = FAKE_RETAIN;
		fc->at = 1;
		r = reg(NEXT, 4096, RW, 0, &mr);
		CHECK(r == -EIO);
		says("cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN (999)");
		CHECK(clean());
	}
	for (call = FAKE_POINTER; call < FAKE_COPY; call++)
		if (call != FAKE_RETAIN)
			CHECK(reached & 1u << call);
	CHECK(refusals > 20);
	reset();
	fail_at[MALLOC] = 1;
	r = reg(BASE, 4096, RW, 0, &mr);
	CHECK(r == -ENOMEM && clean());
	says("no memory");
	done("whatever of libcuda fails, nothing is left behind");
}

int main(int argc, char **argv)
{
	const unsigned int relaxed = IBV_ACCESS_RELAXED_ORDERING;
	void *lib = argc > 1 ? load(argv[1], "", "libibverbs.so.1") : NULL;

	if (!lib)
		return 2;
	fv = dlsym(lib, "fake_verbs");
	lib = load(argv[1], "", "libcuda.so.1");
	if (!lib)
		return 2;
	fc = dlsym(lib, "fake_cuda");
	vram = malloc(16 * MiB);
	how.access = RW;
	how.addr = (uintptr_t)memory;
	sweep();
	sites_run("host memory", t_life);
	how.addr = BASE;
	how.flags = PLN_MR_ONLY_DMABUF;
	sites_run("dma-buf", t_life);
	how.flush = true;
	sites_run("dma-buf, and a flush", t_life);
	how.flush = false;
	how.odd_probe = true;
	sites_run("dma-buf, and the probe is one", t_life);
	how.odd_probe = false;
	how.no_export = true;
	sites_run("dma-buf, and no export", t_life);
	how.no_export = false;
	how.flags = PLN_MR_ONLY_PLAIN;
	sites_run("plain", t_life);
	how.access |= relaxed;
	sites_run("plain, with optional access", t_life);
	how.plain_errno = ENOMEM;
	sites_run("plain, and no memory", t_life);
	how.plain_errno = 0;
	how.flags = PLN_MR_ONLY_STAGED;
	sites_run("staged", t_life);
	how.addr = NEXT;	/* in no context */
	sites_run("staged, by the primary context", t_life);
	sites_run("at another address", t_address);
	/*
	 * What is given back, but for the region itself: five; the probe, which
	 * only some errors answer; the memory's context, for which the primary
	 * one serves; and that copies be in order.  Entering a context when it is
	 * to give back or for the order, for which the memory is asked after again.
	 */
	sites_all(8, 6, 6);
	free(vram);
	return ktap_end();
}
