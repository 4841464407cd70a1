// SPDX-License-Identifier: MIT
/*
 * Registration with a true libcuda.so.1 and its GPU, and a false libibverbs
 * beside it, in the folder mr/: what the GPU's driver exports, and staging.
 *
 *	mr_gpu FOLDER		the folder of the false libibverbs.so.1
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../cuda/cuda_abi.h"
#include "../../cuda/test/check.h"
#include "../../cuda/test/ktap.h"
#include "mr_fakes.h"
#include "peerlane/mr.h"
#include "peerlane/peerlane.h"

bool failed;

#define MiB	(1024ul * 1024)
#define RW	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

#define CUDA(X)								\
	X(cuInit, (unsigned int))					\
	X(cuDeviceGet, (CUdevice *, int))				\
	X(cuDeviceGetName, (char *, int, CUdevice))			\
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))		\
	X(cuCtxPushCurrent_v2, (CUcontext))				\
	X(cuCtxPopCurrent_v2, (CUcontext *))				\
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))			\
	X(cuMemFree_v2, (CUdeviceptr))					\
	X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned int))	\
	X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))		\
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))		\
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))		\
	X(cuMemHostAlloc, (void **, size_t, unsigned int))		\
	X(cuMemFreeHost, (void *))					\
	X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t,		\
				CUdeviceptr, unsigned long long))	\
	X(cuMemAddressFree, (CUdeviceptr, size_t))			\
	X(cuMemCreate, (CUmemGenericAllocationHandle *, size_t,		\
			const CUmemAllocationProp *, unsigned long long)) \
	X(cuMemMap, (CUdeviceptr, size_t, size_t,			\
		     CUmemGenericAllocationHandle, unsigned long long))	\
	X(cuMemSetAccess, (CUdeviceptr, size_t,				\
			   const CUmemAccessDesc *, size_t))		\
	X(cuMemUnmap, (CUdeviceptr, size_t))				\
	X(cuMemRelease, (CUmemGenericAllocationHandle))

static struct {
#define X(name, args) CUresult (*name)args;
	CUDA(X)
#undef X
} cu;

static struct fake_verbs *fv;
static struct ibv_device device = { .name = "fake0" };
static struct ibv_context context = { .device = &device };
static struct ibv_pd pd = { .context = &context };
static struct pln_mr_info info;

static void done(const char *desc)
{
	ktap(!failed, "%s", desc);
	failed = false;
}

static struct pln_mr *reg(CUdeviceptr p, size_t n, int error)
{
	struct pln_mr *mr = NULL;
	int r;

	r = pln_mr_reg(&pd, (void *)(uintptr_t)p, n, RW, 0, &mr);
	info.size = sizeof(info);
	CHECK(!pln_mr_info(mr, &info));
	if (r != error)
		printf("# %s: %s\n", pln_errname(r), info.reason);
	CHECK(r == error);
	return mr;
}

static void takes(bool dmabufs)
{
	*fv = (struct fake_verbs){
		.probe_errno = dmabufs ? EBADF : EOPNOTSUPP,
		/* GPU addresses are far up here, as the host's are */
		.host_errno = 0,
	};
}

static void dmabuf_at(CUdeviceptr p, size_t n)
{
	const long page = sysconf(_SC_PAGESIZE);
	struct pln_mr *mr = reg(p, n, 0);

	CHECK(info.way == PLN_MR_DMABUF && fv->fd_good);
	CHECK(fv->iova == p && fv->length == n);
	CHECK(fv->offset % (uint64_t)page == p % (uint64_t)page);
	CHECK(fv->fd_size >= (int64_t)(fv->offset + n));
	if (info.way != PLN_MR_DMABUF)
		printf("# %s\n", info.reason);
	CHECK(!pln_mr_dereg(mr));
}

static void dmabuf(void)
{
	CUdeviceptr p, q;

	takes(true);
	OK(cu.cuMemAlloc_v2(&p, 64 * MiB));
	dmabuf_at(p, 64 * MiB);
	dmabuf_at(p + 1234567, 7654321);
	dmabuf_at(p + 64 * MiB - 1, 1);
	OK(cu.cuMemAlloc_v2(&q, 1000));
	dmabuf_at(q, 1000);
	dmabuf_at(q + 999, 1);
	reg(p, 64 * MiB + 1, -EFAULT);
	OK(cu.cuMemFree_v2(q));
	OK(cu.cuMemFree_v2(p));
	CHECK(!fv->live);
	done("dma-bufs of whole allocations, inside of them and of small ones");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void speed(struct pln_mr *mr, CUdeviceptr p, void *pinned, size_t n)
{
	const int times = n > 64 * MiB ? 10 : 100;
	double t[4];
	int i;

	t[0] = now();
	for (i = 0; i < times; i++)
		CHECK(!pln_mr_to_gpu(mr, 0, n));
	t[1] = now();
	for (i = 0; i < times; i++)
		CHECK(!pln_mr_from_gpu(mr, 0, n));
	t[2] = now();
	for (i = 0; i < times; i++)
		OK(cu.cuMemcpyHtoD_v2(p, pinned, n));
	t[3] = now();
	printf("# %zu bytes: to_gpu %.2f GB/s (%.1f us), from_gpu %.2f GB/s (%.1f us), cuMemcpyHtoD from pinned memory %.2f GB/s (%.1f us)\n",
	       n, (double)n * times / (t[1] - t[0]) / 1e9,
	       (t[1] - t[0]) / times * 1e6,
	       (double)n * times / (t[2] - t[1]) / 1e9,
	       (t[2] - t[1]) / times * 1e6,
	       (double)n * times / (t[3] - t[2]) / 1e9,
	       (t[3] - t[2]) / times * 1e6);
}

static void staged(void)
{
	static const size_t sizes[] = { 8, 4096, 1 * MiB, 8 * MiB, 64 * MiB,
					256 * MiB };
	const size_t n = 256 * MiB, odd = 33 * MiB + 13;
	unsigned char *host, *b = malloc(odd);
	struct pln_mr *mr;
	CUdeviceptr p, q;
	void *pinned;
	size_t i;

	takes(false);
	setenv("PEERLANE_MR_WAYS", "dmabuf,staged", 1);
	OK(cu.cuMemAlloc_v2(&p, n));
	mr = reg(p + 77, odd, 0);
	CHECK(info.way == PLN_MR_STAGED);
	host = pln_mr_verbs(mr)->addr;
	for (i = 0; i < odd; i++)
		host[i] = (unsigned char)(i * 2654435761u >> 13);
	OK(cu.cuMemsetD8_v2(p, 0x11, n));
	CHECK(!pln_mr_to_gpu(mr, 0, odd));
	OK(cu.cuMemcpyDtoH_v2(b, p + 77, odd));
	CHECK(!memcmp(b, host, odd));
	OK(cu.cuMemcpyDtoH_v2(b, p, 77));
	for (i = 0; i < 77; i++)
		CHECK(b[i] == 0x11);
	memset(host, 0, odd);
	CHECK(!pln_mr_from_gpu(mr, 5, odd - 5));
	OK(cu.cuMemcpyDtoH_v2(b, p + 77, odd));
	CHECK(!memcmp(b + 5, host + 5, odd - 5));
	CHECK(!pln_mr_dereg(mr));
	done("staged: the bytes are right");

	mr = reg(p, n, 0);
	OK(cu.cuMemHostAlloc(&pinned, n, CU_MEMHOSTALLOC_PORTABLE));
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		speed(mr, p, pinned, sizes[i]);
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuMemFree_v2(p));
	CHECK(pln_mr_to_gpu(mr, 0, n) == -EFAULT);
	CHECK(pln_mr_from_gpu(mr, n - 1, 1) == -EFAULT);
	OK(cu.cuMemAlloc_v2(&q, n));
	printf("# the new allocation is at the %s addresses\n",
	       q == p ? "same" : "other");
	OK(cu.cuMemsetD8_v2(q, 0x22, n));
	CHECK(pln_mr_to_gpu(mr, 0, n) == -EFAULT);
	OK(cu.cuMemcpyDtoH_v2(b, q, odd));
	for (i = 0; i < odd && b[i] == 0x22; i++)
		;
	CHECK(i == odd);
	OK(cu.cuMemFree_v2(q));
	CHECK(!pln_mr_dereg(mr));
	CHECK(!fv->live);
	unsetenv("PEERLANE_MR_WAYS");
	free(b);
	done("staged: freed memory, and a new owner's, is left alone");
}

static void vmm(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.allocFlags = { .gpuDirectRDMACapable = 1 },
	};
	CUmemAccessDesc access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h[2];
	const size_t n = 4 * MiB;
	struct pln_mr *mr;
	CUdeviceptr at;
	int i;

	OK(cu.cuMemAddressReserve(&at, 2 * n, 0, 0, 0));
	for (i = 0; i < 2; i++) {
		OK(cu.cuMemCreate(&h[i], n, &prop, 0));
		OK(cu.cuMemMap(at + (size_t)i * n, n, 0, h[i], 0));
	}
	OK(cu.cuMemSetAccess(at, 2 * n, &access, 1));
	takes(true);
	dmabuf_at(at + 4097, n - 4097);
	mr = reg(at + n / 2, n, 0);
	printf("# two allocations: %s\n", info.reason);
	CHECK(!pln_mr_dereg(mr));
	takes(false);
	setenv("PEERLANE_MR_WAYS", "staged", 1);
	mr = reg(at + n / 2, n, 0);
	CHECK(info.way == PLN_MR_STAGED);
	memset(pln_mr_verbs(mr)->addr, 0x66, n);
	CHECK(!pln_mr_to_gpu(mr, 0, n));
	memset(pln_mr_verbs(mr)->addr, 0, n);
	CHECK(!pln_mr_from_gpu(mr, 0, n));
	CHECK(((unsigned char *)pln_mr_verbs(mr)->addr)[n - 1] == 0x66);
	for (i = 0; i < 2; i++) {
		OK(cu.cuMemUnmap(at + (size_t)i * n, n));
		OK(cu.cuMemRelease(h[i]));
	}
	CHECK(pln_mr_to_gpu(mr, 0, n) == -EFAULT);
	/* Other memory at the same addresses */
	for (i = 0; i < 2; i++) {
		OK(cu.cuMemCreate(&h[i], n, &prop, 0));
		OK(cu.cuMemMap(at + (size_t)i * n, n, 0, h[i], 0));
	}
	OK(cu.cuMemSetAccess(at, 2 * n, &access, 1));
	CHECK(pln_mr_to_gpu(mr, 0, n) == -EFAULT);
	for (i = 0; i < 2; i++) {
		OK(cu.cuMemUnmap(at + (size_t)i * n, n));
		OK(cu.cuMemRelease(h[i]));
	}
	CHECK(!pln_mr_dereg(mr));
	OK(cu.cuMemAddressFree(at, 2 * n));
	unsetenv("PEERLANE_MR_WAYS");
	CHECK(!fv->live);
	done("memory of cuMemCreate(), one and two of them side by side");
}

static void host(void)
{
	struct pln_mr *mr;
	static char own[100];
	void *pinned;

	takes(true);
	OK(cu.cuMemHostAlloc(&pinned, MiB, CU_MEMHOSTALLOC_PORTABLE));
	mr = reg((uintptr_t)pinned + 10, 1000, 0);
	CHECK(info.way == PLN_MR_PLAIN && info.gpu == -1);
	CHECK(!pln_mr_dereg(mr));
	mr = reg((uintptr_t)own, 100, 0);
	CHECK(info.way == PLN_MR_PLAIN && info.gpu == -1);
	CHECK(!pln_mr_dereg(mr));
	OK(cu.cuMemFreeHost(pinned));
	done("host memory, the GPU driver's and the program's");
}

/* Never by its pointer: the kernel would pin pages that the memory leaves */
static void managed(void)
{
	struct pln_mr *mr;
	unsigned int i;
	CUdeviceptr p;

	if (cu.cuMemAllocManaged(&p, 4 * MiB, 1)) {
		ktap_skip("managed memory", "the driver has none");
		return;
	}
	for (i = 0; i < 2; i++) {
		takes(false);
		if (i)
			OK(cu.cuMemsetD8_v2(p, 0x55, 4 * MiB));
		else
			memset((void *)(uintptr_t)p, 0x55, 4 * MiB);
		mr = reg(p, 4 * MiB, 0);
		printf("# %s\n", info.reason);
		CHECK(info.way == PLN_MR_STAGED);
		CHECK(!pln_mr_from_gpu(mr, 0, 4 * MiB));
		CHECK(((unsigned char *)pln_mr_verbs(mr)->addr)[4 * MiB - 1] ==
		      0x55);
		CHECK(!pln_mr_dereg(mr));
	}
	takes(true);
	mr = reg(p, 4 * MiB, 0);
	printf("# %s\n", info.reason);
	CHECK(info.way == PLN_MR_DMABUF || info.way == PLN_MR_STAGED);
	CHECK(!pln_mr_dereg(mr));
	OK(cu.cuMemFree_v2(p));
	done("managed memory, touched by the host and by the GPU");
}

int main(int argc, char **argv)
{
	char path[500], name[100] = "";
	CUcontext ctx;
	CUdevice dev;
	void *lib;

	if (argc != 2)
		return 2;
	snprintf(path, sizeof(path), "%s/libibverbs.so.1", argv[1]);
	lib = dlopen(path, RTLD_NOW);
	fv = lib ? dlsym(lib, "fake_verbs") : NULL;
	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!fv || !lib) {
		printf("Bail out! %s\n", dlerror());
		return 1;
	}
#define X(name, args)							\
	*(void **)&cu.name = dlsym(lib, #name);				\
	CHECK(cu.name);
	CUDA(X)
#undef X
	if (failed)
		return 1;
	OK(cu.cuInit(0));
	OK(cu.cuDeviceGet(&dev, 0));
	OK(cu.cuDeviceGetName(name, sizeof(name), dev));
	printf("# %s\n", name);
	OK(cu.cuDevicePrimaryCtxRetain(&ctx, dev));
	OK(cu.cuCtxPushCurrent_v2(ctx));
	done("a GPU");
	if (ktap_bad)
		return ktap_end();
	host();
	dmabuf();
	staged();
	vmm();
	managed();
	/* None was left current, and the program's own is */
	CHECK(cu.cuCtxPopCurrent_v2(&ctx) == CUDA_SUCCESS);
	CHECK(cu.cuCtxPopCurrent_v2(&ctx) == CUDA_ERROR_INVALID_CONTEXT);
	done("contexts are as they were");
	return ktap_end();
}
