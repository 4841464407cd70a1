// SPDX-License-Identifier: MIT
/*
 * Registration of GPU memory with a real RDMA device, in a guest.
 *
 *	mr_guest window|staged
 *
 * window: the CPU reaches the GPU's memory, so plain registration works;
 * staged: it does not.  The device is soft-RoCE, which takes no dma-bufs.  Two
 * GPUs.  The other process is this program again.
 */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mr_guest.h"

bool failed;

#define SOCK	3

static CUcontext ctx[2];
static const char *self;

/* ---- the checks ---- */

static void host_memory(void)
{
	unsigned char *b = malloc(100000);
	struct pln_mr_info info;
	struct pln_mr *mr = reg((uintptr_t)b + 1, 99999, PLN_MR_STRICT);

	info = info_of(mr);
	CHECK(mr && info.way == PLN_MR_PLAIN && info.gpu == -1);
	CHECK(!strcmp(info.reason, "plain: host memory, on rxe0"));
	CHECK(pln_mr_iova(mr, 5) == (uintptr_t)b + 6);
	CHECK(!pln_mr_to_gpu(mr, 0, 99999));
	CHECK(!pln_mr_dereg(mr));
	REFUSED((uintptr_t)b, 10, PLN_MR_ONLY_STAGED, -EPERM, "this is of the host");
	free(b);
	done("host memory is registered plain");
}

static void best_way(void)
{
	struct pln_mr_info info;
	struct pln_mr *mr;
	CUdeviceptr p;
	size_t n = 5 * MiB;

	OK(cuMemAlloc_v2(&p, n));
	mr = reg(p, n, 0);
	info = info_of(mr);
	printf("# %s\n", info.reason);
	CHECK(info.tried[PLN_MR_DMABUF].error == -EOPNOTSUPP);
	CHECK(strstr(info.reason, "dmabuf refused: EOPNOTSUPP: rxe0 cannot take dma-bufs"));
	if (window) {
		CHECK(info.way == PLN_MR_PLAIN);
		CHECK(!info.tried[PLN_MR_PLAIN].error);
	} else {
		CHECK(info.way == PLN_MR_STAGED);
		CHECK(info.tried[PLN_MR_PLAIN].error == -EFAULT);
		CHECK(strstr(info.reason, "plain refused: EFAULT: the kernel has no peer-memory client"));
	}
	CHECK(info.gpu == 0);
	traffic(mr, p, n);
	info = info_of(mr);
	CHECK(info.to_gpu == (window ? 0 : n));
	CHECK(info.from_gpu == (window ? 0 : n));
	CHECK(info.copies_to_gpu == (window ? 0 : 2));
	CHECK(!pln_mr_dereg(mr));
	OK(cuMemFree_v2(p));
	done(window ? "GPU memory is registered plain, with the reason why not as a dma-buf" :
	     "GPU memory is staged, with the reasons why not otherwise");
}

static void strict(void)
{
	struct pln_mr *mr;
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, MiB));
	if (window) {
		mr = reg(p, MiB, PLN_MR_STRICT);
		CHECK(mr);
		CHECK(!pln_mr_dereg(mr));
	} else {
		REFUSED(p, MiB, PLN_MR_STRICT, -EFAULT,
			"registration failed: EFAULT",
			"dmabuf refused: EOPNOTSUPP",
			"no peer-memory client",
			"staged not tried: PLN_MR_STRICT forbids it");
	}
	REFUSED(p, MiB, PLN_MR_ONLY_DMABUF, -EOPNOTSUPP,
		"rxe0 cannot take dma-bufs", "PLN_MR_ONLY_ flag forbids");
	setenv("PEERLANE_MR_WAYS", "dmabuf", 1);
	REFUSED(p, MiB, 0, -EOPNOTSUPP, "PEERLANE_MR_WAYS forbids it");
	unsetenv("PEERLANE_MR_WAYS");
	OK(cuMemFree_v2(p));
	done("strict: a way that is not direct is refused, with the reasons");
}

static void forced_staging(void)
{
	struct pln_mr *mr;
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, 9 * MiB));
	mr = reg(p + 3, 9 * MiB - 5, PLN_MR_ONLY_STAGED);
	CHECK(info_of(mr).way == PLN_MR_STAGED);
	CHECK(pln_mr_iova(mr, 0) != p + 3);
	traffic(mr, p + 3, 9 * MiB - 5);
	CHECK(!pln_mr_dereg(mr));
	OK(cuMemFree_v2(p));
	done("staging on demand moves every byte");
}

/* Bytes around the registered ones stay as they were */
static void interior(void)
{
	const size_t n = 3 * MiB, at = 69631, len = 1234567;
	struct pln_mr *mr;
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, n));
	OK(cuMemsetD8_v2(p, 0x3c, n));
	mr = reg(p + at, len, 0);
	traffic(mr, p + at, len);
	CHECK(!not_filled(p, at, 0x3c));
	CHECK(!not_filled(p + at + len, n - at - len, 0x3c));
	CHECK(pln_mr_iova(mr, len) == pln_mr_iova(mr, 0) + len);
	CHECK(!pln_mr_iova(mr, len + 1));
	CHECK(pln_mr_to_gpu(mr, len - 1, 2) == -ERANGE);
	/* A part of it */
	OK(cuMemsetD8_v2(p + at, 0x3c, len));
	if (!window) {
		memset((void *)(uintptr_t)pln_mr_iova(mr, 0), 0xa5, len);
		CHECK(!pln_mr_to_gpu(mr, 1001, 17));
		CHECK(!not_filled(p + at, 1001, 0x3c));
		CHECK(!not_filled(p + at + 1001, 17, 0xa5));
		CHECK(!not_filled(p + at + 1018, 4096, 0x3c));
	}
	CHECK(!pln_mr_dereg(mr));
	mr = reg(p + n - 1, 1, 0);
	traffic(mr, p + n - 1, 1);
	CHECK(!pln_mr_dereg(mr));
	OK(cuMemFree_v2(p));
	done("interior pointers and unaligned lengths");
}

static void wrong_ranges(void)
{
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, MiB));
	REFUSED(p, 0, 0, -EINVAL, "length is 0");
	REFUSED(0, 16, 0, -EINVAL, "address is NULL");
	REFUSED(p + MiB - 10, 11, 0, -EFAULT,
		"the memory of GPU 0 ends 1 bytes before the range does");
	REFUSED(p, 1ull << 40, 0, -EFAULT, "of GPU 0 ends");
	OK(cuMemFree_v2(p));
	REFUSED(p, MiB, 0, -EFAULT, "nor is it memory of a GPU");
	done("no length, over the end of an allocation, freed memory");
}

/*
 * Root may lock what it likes; without that right there is a limit.  A process
 * of its own, as rights must not change after the device was opened.
 */
static int limited(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct rlimit old, small = { 256 * KiB, 256 * KiB };
	struct __user_cap_data_struct cap[2];
	CUdeviceptr p;

	CHECK(!syscall(SYS_capget, &head, cap));
	cap[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &head, cap));
	CHECK(!net_open(&net));
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&ctx[0], 0, 0));
	OK(cuMemAlloc_v2(&p, MiB));
	CHECK(!getrlimit(RLIMIT_MEMLOCK, &old));
	small.rlim_max = old.rlim_max;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &small));
	REFUSED(p, MiB, PLN_MR_ONLY_STAGED, -ENOMEM,
		"1048576 bytes of host memory for staging are more than may be locked: RLIMIT_MEMLOCK is 262144 bytes");
	REFUSED(p, MiB, PLN_MR_STRICT, -ENOMEM,
		"1048576 bytes of GPU memory are more than may be locked");
	REFUSED(p, MiB, 0, -ENOMEM, "of GPU memory are more than may",
		"of host memory for staging are more");
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &old));
	CHECK(!pln_mr_dereg(reg(p, 64 * KiB, 0)));
	OK(cuMemFree_v2(p));
	net_close(&net);
	return failed;
}

static void memlock(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		execl(self, self, "limited", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	done("a small limit of locked memory is named");
}

static CUmemGenericAllocationHandle vmm_map(CUdeviceptr at, size_t n, int gpu)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu },
	};
	CUmemAccessDesc access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h = 0;

	OK(cuMemCreate(&h, n, &prop, 0));
	OK(cuMemMap(at, n, 0, h, 0));
	OK(cuMemSetAccess(at, n, &access, 1));
	return h;
}

static void vmm(void)
{
	CUmemGenericAllocationHandle h[3];
	const size_t n = 2 * MiB;
	struct pln_mr *mr;
	CUdeviceptr at;
	int i;

	OK(cuMemAddressReserve(&at, 3 * n, 0, 0, 0));
	h[0] = vmm_map(at, n, 0);
	h[1] = vmm_map(at + n, n, 0);
	h[2] = vmm_map(at + 2 * n, n, 1);
	mr = reg(at + 100, n - 100, 0);
	CHECK(info_of(mr).way == (window ? PLN_MR_PLAIN : PLN_MR_STAGED));
	traffic(mr, at + 100, n - 100);
	CHECK(!pln_mr_dereg(mr));
	/* Two allocations side by side */
	mr = reg(at + n / 2, n, 0);
	CHECK(info_of(mr).way == (window ? PLN_MR_PLAIN : PLN_MR_STAGED));
	if (mr) {
		CHECK(!net_do(&net, IBV_WR_RDMA_WRITE, pln_mr_iova(mr, 0),
			      pln_mr_verbs(mr)->lkey,
			      pln_mr_iova(mr, n / 2 + 1),
			      pln_mr_verbs(mr)->rkey, 4096));
	}
	CHECK(!pln_mr_dereg(mr));
	/* And of two GPUs */
	REFUSED(at, 3 * n, 0, -EFAULT, "the memory of GPU 0 ends 2097152 bytes");
	for (i = 0; i < 3; i++) {
		OK(cuMemUnmap(at + (size_t)i * n, n));
		OK(cuMemRelease(h[i]));
	}
	REFUSED(at, n, 0, -EFAULT, "not all of the range");
	OK(cuMemAddressFree(at, 3 * n));
	done("memory of cuMemCreate(), one and two of them, and of two GPUs");
}

/* GPU 0 to GPU 1, no bytes of the program's in between */
static void two_gpus(void)
{
	const size_t n = 3 * MiB + 7;
	struct pln_mr *a, *b;
	CUdeviceptr p, q;
	size_t i;
	unsigned char *bytes = malloc(n);

	OK(cuMemAlloc_v2(&p, n));
	OK(cuCtxSetCurrent(ctx[1]));
	OK(cuMemAlloc_v2(&q, n));
	OK(cuMemsetD8_v2(q, 0, n));
	OK(cuCtxSetCurrent(ctx[0]));
	for (i = 0; i < n; i++)
		bytes[i] = pattern(i, 99);
	OK(cuMemcpyHtoD_v2(p, bytes, n));
	a = reg(p, n, 0);
	b = reg(q, n, 0);
	CHECK(info_of(a).gpu == 0);
	CHECK(info_of(b).gpu == 1);
	CHECK(!pln_mr_from_gpu(a, 0, n));
	CHECK(!net_do(&net, IBV_WR_RDMA_WRITE, pln_mr_iova(a, 0),
		      pln_mr_verbs(a)->lkey, pln_mr_iova(b, 0),
		      pln_mr_verbs(b)->rkey, (uint32_t)n));
	CHECK(!pln_mr_to_gpu(b, 0, n));
	OK(cuCtxSetCurrent(ctx[1]));
	CHECK(!wrong(q, n, 99, 0));
	OK(cuCtxSetCurrent(ctx[0]));
	CHECK(!pln_mr_dereg(a));
	CHECK(!pln_mr_dereg(b));
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
	free(bytes);
	done("from one GPU to the other");
}

/* ---- memory freed below a live registration ---- */

#define OWNER_VALUE	0x5a
#define MAX_CHUNKS	4096

struct owned {
	long long bytes;	/* that the other process has */
	long long bad;		/* of them, bytes that are not its own */
};

/* The other process: takes all memory of GPU 0 that there is */
static int owner(void)
{
	static struct { CUdeviceptr p; size_t n; } chunk[MAX_CHUNKS];
	struct owned o = { 0 };
	size_t n = 64 * MiB;
	int i, chunks = 0;
	CUcontext c;
	char order;

	OK(cuInit(0));
	OK(cuCtxCreate_v2(&c, 0, 0));
	while (!failed && read(SOCK, &order, 1) == 1) {
		/* 'a': allocate all and fill it; 'c': compare */
		for (n = 64 * MiB; order == 'a' && n >= 64 * KiB;) {
			CUdeviceptr p;

			if (chunks == MAX_CHUNKS || cuMemAlloc_v2(&p, n)) {
				n /= 2;
				continue;
			}
			OK(cuMemsetD8_v2(p, OWNER_VALUE, n));
			chunk[chunks].p = p;
			chunk[chunks++].n = n;
			o.bytes += (long long)n;
		}
		o.bad = 0;
		for (i = 0; i < chunks; i++)
			o.bad += (long long)not_filled(chunk[i].p, chunk[i].n,
						       OWNER_VALUE);
		if (write(SOCK, &o, sizeof(o)) != (ssize_t)sizeof(o))
			failed = true;
	}
	return failed;
}

static struct owned ask(int sock, char order)
{
	struct owned o = { -1, -1 };

	CHECK(write(sock, &order, 1) == 1);
	CHECK(read(sock, &o, sizeof(o)) == (ssize_t)sizeof(o));
	return o;
}

static void freed(void)
{
	const size_t n = 32 * MiB;
	long long size = counted("vram-size") / 2;	/* of two equal GPUs */
	unsigned char *b = malloc(n);
	struct pln_mr *mr, *host;
	struct owned before, after;
	int pair[2], status = -1;
	CUdeviceptr p;
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	pid = fork();
	if (!pid) {
		if (dup2(pair[1], SOCK) == SOCK)
			execl(self, self, "owner", (char *)NULL);
		_exit(127);
	}
	close(pair[1]);

	OK(cuMemAlloc_v2(&p, n));
	memset(b, 0xee, n);
	mr = reg(p, n, 0);
	host = reg((uintptr_t)b, n, 0);
	CHECK(counted("vram-quarantined") == 0);
	OK(cuMemFree_v2(p));
	/* Pinned pages keep the memory away from everybody */
	CHECK(counted_soon("vram-quarantined", window ? (long long)n : 0) ==
	      (window ? (long long)n : 0));
	before = ask(pair[0], 'a');
	printf("# the other process has %lld of %lld bytes\n", before.bytes,
	       size);
	CHECK(!before.bad && before.bytes > size / 2);
	CHECK(before.bytes <= size - (window ? (long long)n : 0));
	done("freed below a registration: another process takes all memory");

	/* The late write: it must not be seen by the new owner */
	if (mr && host)
		CHECK(!net_do(&net, IBV_WR_RDMA_WRITE, pln_mr_iova(host, 0),
			      pln_mr_verbs(host)->lkey, pln_mr_iova(mr, 0),
			      pln_mr_verbs(mr)->rkey, (uint32_t)n));
	CHECK(pln_mr_to_gpu(mr, 0, n) == (window ? 0 : -EFAULT));
	CHECK(pln_mr_from_gpu(mr, 0, 1) == (window ? 0 : -EFAULT));
	after = ask(pair[0], 'c');
	CHECK(after.bytes == before.bytes && !after.bad);
	done(window ? "a late write lands in quarantined memory and nowhere else" :
	     "a late write lands in host memory, and is not copied to the GPU");

	CHECK(!pln_mr_dereg(mr));
	CHECK(!pln_mr_dereg(host));
	CHECK(counted_soon("vram-quarantined", 0) == 0);
	after = ask(pair[0], 'a');
	CHECK(!after.bad);
	CHECK(after.bytes - before.bytes == (window ? (long long)n : 0));
	close(pair[0]);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	done("deregistration gives the memory back");

	free(b);
}

/* The same addresses, and another allocation behind them */
static void remapped(void)
{
	CUmemGenericAllocationHandle h;
	const size_t n = 2 * MiB;
	struct pln_mr *mr;
	CUdeviceptr at;

	OK(cuMemAddressReserve(&at, n, 0, 0, 0));
	h = vmm_map(at, n, 0);
	mr = reg(at, n, PLN_MR_ONLY_STAGED);
	CHECK(!pln_mr_to_gpu(mr, 0, n));
	OK(cuMemUnmap(at, n));
	OK(cuMemRelease(h));
	h = vmm_map(at, n, 0);
	OK(cuMemsetD8_v2(at, 0x77, n));
	CHECK(pln_mr_to_gpu(mr, 0, n) == -EFAULT);
	CHECK(pln_mr_from_gpu(mr, 0, n) == -EFAULT);
	CHECK(!not_filled(at, n, 0x77));
	CHECK(!pln_mr_dereg(mr));
	OK(cuMemUnmap(at, n));
	OK(cuMemRelease(h));
	OK(cuMemAddressFree(at, n));
	done("staging leaves a new allocation at the same addresses alone");
}

/* ---- threads: of one registration, and each with its own ---- */

#define THREADS		4
#define ROUNDS		8

struct worker {
	pthread_t thread;
	struct pln_mr *shared;
	size_t offset, length;
	unsigned int index;
	int bad;
};

/* No context is current in a new thread, and none is left so */
static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned char *host = pln_mr_verbs(w->shared)->addr;
	CUcontext left = (CUcontext)arg;
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr = NULL;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		memset(host + w->offset, (int)(16 * w->index) + i, w->length);
		w->bad |= pln_mr_to_gpu(w->shared, w->offset, w->length);
		memset(host + w->offset, 0xff, w->length);
		w->bad |= pln_mr_from_gpu(w->shared, w->offset, w->length);
		w->bad |= host[w->offset] != 16 * w->index + (unsigned int)i;
		w->bad |= host[w->offset + w->length - 1] !=
			  16 * w->index + (unsigned int)i;
		/* Odd ones fail, and the reason stays the thread's own */
		w->bad |= pln_mr_reg(net.pd, host, w->index % 2 ? 0 : 4096,
				     NET_ALL_ACCESS, 0, &mr) !=
			  (w->index % 2 ? -EINVAL : 0);
		w->bad |= pln_mr_info(NULL, &info);
		w->bad |= info.error != (w->index % 2 ? -EINVAL : 0);
		w->bad |= pln_mr_dereg(mr);
		mr = NULL;
	}
	w->bad |= cuCtxGetCurrent(&left) || left;
	return NULL;
}

static void threads(void)
{
	const size_t n = 8 * MiB + 4;
	struct worker w[THREADS];
	struct pln_mr *mr;
	CUdeviceptr p;
	int i;

	OK(cuMemAlloc_v2(&p, n));
	mr = reg(p, n, PLN_MR_ONLY_STAGED);
	for (i = 0; mr && i < THREADS; i++) {
		w[i] = (struct worker){
			.shared = mr, .offset = n / THREADS * (size_t)i,
			.length = n / THREADS, .index = (unsigned int)i,
		};
		CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (i = 0; mr && i < THREADS; i++) {
		CHECK(!pthread_join(w[i].thread, NULL));
		CHECK(!w[i].bad);
	}
	CHECK(info_of(mr).to_gpu == n * ROUNDS);
	CHECK(info_of(mr).from_gpu == n * ROUNDS);
	CHECK(!pln_mr_dereg(mr));
	OK(cuMemFree_v2(p));
	done("several threads stage, register, and have their own reasons");
}

int main(int argc, char **argv)
{
	const char *what;

	self = argv[0];
	if (argc == 2 && !strcmp(argv[1], "owner"))
		return owner();
	if (argc == 2 && !strcmp(argv[1], "limited"))
		return limited();
	if (argc != 2 || (strcmp(argv[1], "window") &&
			  strcmp(argv[1], "staged"))) {
		fprintf(stderr, "usage: mr_guest window|staged\n");
		return 2;
	}
	window = !strcmp(argv[1], "window");
	what = net_open(&net);
	if (what) {
		printf("Bail out! soft-RoCE: %s: %s\n", what, strerror(errno));
		return 1;
	}
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&ctx[1], 0, 1));
	OK(cuCtxCreate_v2(&ctx[0], 0, 0));
	done("two GPUs");
	host_memory();
	best_way();
	strict();
	forced_staging();
	interior();
	wrong_ranges();
	memlock();
	vmm();
	two_gpus();
	freed();
	remapped();
	threads();
	net_close(&net);
	CHECK(counted("vram-used") >= 0);
	OK(cuCtxDestroy_v2(ctx[0]));
	OK(cuCtxDestroy_v2(ctx[1]));
	CHECK(counted_soon("vram-used", 0) == 0);
	done("nothing is left behind");
	return ktap_end();
}
