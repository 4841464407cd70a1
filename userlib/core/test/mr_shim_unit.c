// SPDX-License-Identifier: MIT
/*
 * A program that registers GPU memory by its pointer, as programs do that know
 * of no better way.  It is run alone, with libpeerlane-mr.so.0 preloaded, and
 * linked with it; libibverbs and libcuda are false ones.
 *
 *	mr_shim_unit alone|dmabuf|refused|plain|foreign|unknown|forbidden
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/cuda_abi.h"
#include "../../cuda/test/check.h"
#include "../../cuda/test/ktap.h"
#include "mr_fakes.h"

bool failed;

#define MiB	(1024ul * 1024)
#define GPU	0x10000000ul
#define LENGTH	(16 * MiB)
#define RW	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_device device = { .name = "fake0" };
static struct ibv_context context = { .device = &device };
static struct ibv_pd pd = { .context = &context };
static char memory[100];
static unsigned int optional = IBV_ACCESS_RELAXED_ORDERING;

static void *at(unsigned long p)
{
	return (void *)p;
}

static void done(const char *desc)
{
	ktap(!failed, "%s", desc);
	failed = false;
}

/* Host memory must look as if nothing stood between */
static void host(void)
{
	struct ibv_mr *mr = ibv_reg_mr(&pd, memory, 100, RW);

	CHECK(mr && mr->addr == memory && fake_verbs.plains == 1);
	CHECK(!strcmp(fake_verbs.call, "ibv_reg_mr"));
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr_iova(&pd, memory, 100, 0x5000, RW);
	CHECK(mr && !strcmp(fake_verbs.call, "ibv_reg_mr_iova"));
	CHECK(fake_verbs.iova == 0x5000 && fake_verbs.plains == 2);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr(&pd, memory, 100, RW | optional);
	CHECK(mr && !strcmp(fake_verbs.call, "ibv_reg_mr_iova2"));
	CHECK(fake_verbs.access == (RW | optional));
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr(&pd, NULL, SIZE_MAX, RW | IBV_ACCESS_ON_DEMAND);
	CHECK(mr && fake_verbs.access == (RW | IBV_ACCESS_ON_DEMAND));
	CHECK(mr && !ibv_dereg_mr(mr));
	fake_verbs.host_errno = EPERM;
	errno = 0;
	CHECK(!ibv_reg_mr(&pd, memory, 100, RW) && errno == EPERM);
	fake_verbs.host_errno = 0;
	CHECK(!fake_verbs.live && fake_verbs.deregs == 4 &&
	      !fake_verbs.probes && !fake_verbs.dmabufs);
	done("host memory is registered as the program asked");
}

static void alone(void)
{
	errno = 0;
	CHECK(!ibv_reg_mr(&pd, at(GPU), LENGTH, RW) && errno == EFAULT);
	CHECK(!fake_verbs.probes);
	done("alone: GPU memory is refused");
}

static void dmabuf(void)
{
	struct ibv_mr *mr = ibv_reg_mr(&pd, at(GPU + 0x12345), 1000, RW);

	CHECK(mr && mr->addr == at(GPU + 0x12345) && mr->length == 1000);
	CHECK(!strcmp(fake_verbs.call, "ibv_reg_dmabuf_mr"));
	CHECK(fake_verbs.offset == 0x2345 && fake_verbs.iova == GPU + 0x12345);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr_iova(&pd, at(GPU + 4096), 8192, 0x7000, RW);
	CHECK(mr && fake_verbs.iova == 0x7000 && fake_verbs.offset == 4096);
	CHECK(mr && !ibv_dereg_mr(mr));
	mr = ibv_reg_mr(&pd, at(GPU), LENGTH, RW | optional);
	CHECK(mr && fake_verbs.access == (RW | optional));
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(fake_verbs.dmabufs == 3 && !fake_verbs.live &&
	      !fake_verbs.plains && fcntl(fake_verbs.fd, F_GETFD) < 0);
	CHECK(!fake_cuda.depth && !fake_cuda.primaries && !fake_cuda.wrong);
	done("GPU memory is registered as a dma-buf");

	mr = ibv_reg_dmabuf_mr(&pd, 0, 4096, GPU, 0, RW);
	CHECK(mr && fake_verbs.dmabufs == 4 && fake_verbs.fd == 0);
	CHECK(mr && !ibv_dereg_mr(mr));
	fake_verbs.dmabuf_errno = EIO;
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(&pd, 0, 4096, GPU, 0, RW) && errno == EIO);
	/* Past the end: libibverbs decides, by the pointer */
	fake_verbs.plain_errno = EFAULT;
	errno = 0;
	CHECK(!ibv_reg_mr(&pd, at(GPU + LENGTH - 1), 2, RW));
	CHECK(errno == EFAULT && fake_verbs.plains == 1);
	fake_verbs.dereg_errno = EBUSY;
	fake_verbs.dmabuf_errno = 0;
	mr = ibv_reg_mr(&pd, at(GPU), 4096, RW);
	CHECK(mr && ibv_dereg_mr(mr) == EBUSY);
	fake_verbs.dereg_errno = 0;
	CHECK(mr && !ibv_dereg_mr(mr));
	done("errors are libibverbs' own");

	/* What moves between host and GPU is as the program asked, good or bad */
	fake_verbs.plain_errno = 0;
	fake_cuda.range[0].managed = 1;
	mr = ibv_reg_mr(&pd, at(GPU), 4096, RW);
	CHECK(mr && fake_verbs.plains == 2);
	CHECK(mr && !ibv_dereg_mr(mr));
	done("managed memory is registered as the program asked");
}

static void refused(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		errno = 0;
		CHECK(!ibv_reg_mr(&pd, at(GPU), LENGTH, RW));
		CHECK(errno == EFAULT);
	}
	CHECK(fake_verbs.probes == 2 && fake_verbs.plains == 2 &&
	      !fake_cuda.hosts);
	done("GPU memory that no way takes: the errno of the program's own call");
}

static void plain(void)
{
	struct ibv_mr *mr = ibv_reg_mr(&pd, at(GPU), LENGTH, RW);

	CHECK(mr && fake_verbs.plains == 1);
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK(!fake_verbs.live);
	done("GPU memory is registered by its pointer");
}

/* A region that the shim has not seen, as one of device memory is */
static void foreign(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) = NULL;
	struct ibv_mr *mr;

	if (lib)
		*(void **)&reg = dlvsym(lib, "ibv_reg_mr", "IBVERBS_1.0");
	mr = reg ? reg(&pd, memory, 100, RW) : NULL;
	CHECK(mr && !ibv_dereg_mr(mr) && !fake_verbs.live);
	if (lib)
		dlclose(lib);
	done("a region from elsewhere is deregistered");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	fake_verbs.probe_errno = EBADF;
	fake_cuda.range[0] = (struct fake_range){ .base = GPU, .size = LENGTH, .id = 1 };
	if (!strcmp(what, "alone")) {
		host();
		fake_verbs.plain_errno = EFAULT;
		alone();
	} else if (!strcmp(what, "dmabuf")) {
		host();
		memset(&fake_verbs, 0, sizeof(fake_verbs));
		fake_verbs.probe_errno = EBADF;
		dmabuf();
	} else if (!strcmp(what, "refused")) {
		fake_verbs.probe_errno = EOPNOTSUPP;
		fake_verbs.plain_errno = EFAULT;
		refused();
	} else if (!strcmp(what, "plain")) {
		fake_verbs.probe_errno = EOPNOTSUPP;
		plain();
	} else if (!strcmp(what, "foreign")) {
		foreign();
	} else if (!strcmp(what, "unknown")) {
		errno = 0;
		CHECK(!ibv_reg_mr(&pd, at(GPU), LENGTH, RW));
		CHECK(errno == EINVAL && !fake_verbs.plains);
		done("an unknown way in PEERLANE_MR_WAYS is an error");
	} else if (!strcmp(what, "forbidden")) {
		fake_verbs.probe_errno = EOPNOTSUPP;
		errno = 0;
		CHECK(!ibv_reg_mr(&pd, at(GPU), LENGTH, RW));
		CHECK(errno == EOPNOTSUPP && !fake_verbs.plains);
		done("PEERLANE_MR_WAYS forbids the pointer");
	}
	return ktap_end();
}
