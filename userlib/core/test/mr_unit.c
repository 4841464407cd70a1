// SPDX-License-Identifier: MIT
/*
 * Registration with a false libibverbs and a false libcuda: what is asked of
 * them, what is said about their refusals, and that every failure leaves nothing
 * behind.
 *
 *	mr_unit FOLDER [old]	with the two libraries; "old": without the
 *				functions that newer ones have
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "mr_unit.h"

bool failed;

static void arguments(void)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	struct ibv_pd orphan = { 0 };
	struct pln_mr *mr = NULL;
	struct {
		struct pln_mr_info info;
		char more[32];
	} later;

	reset();
	bad(0, 1, RW, 0, -EINVAL, "the address is NULL");
	bad(BASE, 0, RW, 0, -EINVAL, "the length is 0");
	bad(BASE, SIZE_MAX, RW, 0, -EINVAL, "round the end");
	bad(BASE, 1, RW, 1u << 4, -EINVAL, "unknown flags");
	bad(BASE, 1, RW, PLN_MR_ONLY_PLAIN | PLN_MR_ONLY_DMABUF, -EINVAL,
	    "more than one");
	bad(BASE, 1, RW, PLN_MR_STRICT | PLN_MR_ONLY_STAGED, -EINVAL,
	    "PLN_MR_STRICT forbids");
	bad(BASE, 1, RW | IBV_ACCESS_ON_DEMAND, 0, -EINVAL,
	    "IBV_ACCESS_ON_DEMAND");
	bad(BASE, 1, RW | IBV_ACCESS_ZERO_BASED, 0, -EINVAL,
	    "IBV_ACCESS_ZERO_BASED");
	CHECK(pln_mr_reg(NULL, &info, 1, RW, 0, &mr) == -EINVAL);
	says("no protection domain");
	CHECK(pln_mr_reg(&orphan, &info, 1, RW, 0, &mr) == -EINVAL);
	says("no protection domain");
	CHECK(pln_mr_reg(&pd, &info, 1, RW, 0, NULL) == -EINVAL);
	says("no place for the result");
	CHECK(!fv->plains && !fv->dmabufs && !fc->calls[FAKE_POINTER]);
	done("each wrong argument is refused, before anything is asked");

	CHECK(!pln_mr_dereg(NULL));
	CHECK(!pln_mr_verbs(NULL));
	CHECK(!pln_mr_iova(NULL, 0));
	CHECK(pln_mr_to_gpu(NULL, 0, 1) == -EINVAL);
	CHECK(pln_mr_from_gpu(NULL, 0, 1) == -EINVAL);
	CHECK(pln_mr_info(NULL, NULL) == -EINVAL);
	info.size--;
	CHECK(pln_mr_info(NULL, &info) == -EINVAL);
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	memset(&later, 0xff, sizeof(later));
	later.info.size = sizeof(later);
	CHECK(!pln_mr_info(mr, &later.info));
	CHECK(later.info.size == sizeof(later) && later.info.addr == BASE &&
	      later.info.length == 4096 && !later.more[0] && !later.more[31]);
	CHECK(!pln_mr_dereg(mr));
	CHECK(!strcmp(pln_mr_way_name(PLN_MR_NONE), "none"));
	CHECK(!strcmp(pln_mr_way_name(PLN_MR_DMABUF), "dmabuf"));
	CHECK(!strcmp(pln_mr_way_name(PLN_MR_PLAIN), "plain"));
	CHECK(!strcmp(pln_mr_way_name(PLN_MR_STAGED), "staged"));
	CHECK(!strcmp(pln_mr_way_name(4), "?"));
	CHECK(clean());
	done("no handle, no place, sizes of the structure, names");
}

static void host(void)
{
	static const int unknown[] = {
		CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NO_DEVICE,
	};
	static char memory[100];
	const uint64_t at = (uintptr_t)memory + 1;
	struct pln_mr *mr;
	size_t i;

	reset();
	CHECK(!reg(at, 99, RW, PLN_MR_STRICT, &mr));
	CHECK(fv->addr == at && fv->length == 99 && fv->access == RW);
	CHECK(!strcmp(fv->call, "ibv_reg_mr"));
	CHECK(info_of(mr)->way == PLN_MR_PLAIN && info_of(mr)->gpu == -1);
	CHECK(!strcmp(info_of(mr)->reason, "plain: host memory, on fake0"));
	CHECK(pln_mr_iova(mr, 99) == at + 99 && !pln_mr_iova(mr, 100));
	CHECK(!pln_mr_to_gpu(mr, 0, 99));
	CHECK(pln_mr_to_gpu(mr, 0, 100) == -ERANGE);
	CHECK(pln_mr_from_gpu(mr, 100, 0) == -ERANGE);
	CHECK(!pln_mr_dereg(mr));
	bad(at, 99, RW, PLN_MR_ONLY_STAGED, -EPERM, "this is of the host");
	bad(at, 99, RW, PLN_MR_ONLY_DMABUF, -EPERM, "this is of the host");
	/* What libcuda says before cuInit() and without a GPU */
	for (i = 0; i < 2; i++) {
		fc->fails = FAKE_POINTER;
		fc->at = 1;
		fc->with = unknown[i];
		CHECK(!reg(at, 99, RW, 0, &mr));
		CHECK(info_of(mr)->gpu == -1);
		CHECK(!pln_mr_dereg(mr));
	}
	setenv("PEERLANE_MR_WAYS", "dmabuf", 1);
	CHECK(!reg(at, 99, RW, 0, &mr));
	CHECK(!pln_mr_dereg(mr));
	unsetenv("PEERLANE_MR_WAYS");
	fv->host_errno = EFAULT;
	bad(at, 99, RW, 0, -EFAULT, "nor is it memory of a GPU: freed");
	CHECK(!fv->probes && !fv->dmabufs && clean());
	done("host memory goes to ibv_reg_mr()");

	reset();
	CHECK(!reg(at, 99, RW | IBV_ACCESS_RELAXED_ORDERING, 0, &mr));
	CHECK(!strcmp(fv->call, "ibv_reg_mr_iova2") && fv->iova == at);
	CHECK(fv->access == (RW | (unsigned int)IBV_ACCESS_RELAXED_ORDERING));
	CHECK(!pln_mr_dereg(mr));
	done("optional access flags go to ibv_reg_mr_iova2()");
}

static void dmabuf_at(uint64_t addr, size_t length, uint64_t start,
		      uint64_t size)
{
	struct pln_mr *mr;

	CHECK(!reg(addr, length, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(fc->export_start == start && fc->export_size == size);
	CHECK(fv->offset == addr - start && fv->length == length &&
	      fv->iova == addr && fv->access == RW);
	CHECK(fv->fd_good && fcntl(fv->fd, F_GETFD) < 0);
	CHECK(pln_mr_iova(mr, 0) == addr);
	CHECK(pln_mr_verbs(mr) &&
	      pln_mr_verbs(mr)->addr == (void *)(uintptr_t)addr);
	CHECK(!pln_mr_to_gpu(mr, 0, length) && !pln_mr_from_gpu(mr, 0, length));
	CHECK(!fc->calls[FAKE_COPY]);
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
}

static void dmabuf(void)
{
	struct pln_mr *mr;

	reset();
	dmabuf_at(BASE, 16 * MiB, BASE, 16 * MiB);
	dmabuf_at(BASE + 5, 1, BASE, 4096);
	dmabuf_at(BASE + 0x23456, 0x11, BASE + 0x20000, 0x4000);
	dmabuf_at(BASE + 16 * MiB - 1, 1, BASE + 16 * MiB - 0x10000, 0x10000);
	dmabuf_at(ODD + 7, 993, ODD & ~4095ull, 4096);
	dmabuf_at(OTHER + 4096, 8192, OTHER, 0x3000);
	CHECK(!fv->plains);
	done("dma-bufs: whole pages are exported, offset and address are right");

	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(!strcmp(info_of(mr)->reason,
		      "dmabuf: fake0 maps the memory of GPU 0 itself"));
	CHECK(!strcmp(info_of(mr)->tried[PLN_MR_PLAIN].words,
		      "not tried: not needed"));
	CHECK(!info_of(mr)->tried[PLN_MR_DMABUF].words[0]);
	CHECK(!pln_mr_dereg(mr));
	CHECK(!reg(NEXT, 4096, RW, 0, &mr));
	CHECK(fc->primaries == 1);
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("memory of no context is used through the primary one");
}

/* A device that cannot is told from a buffer that it does not take */
static void device_refuses(void)
{
	struct pln_mr *mr;

	reset();
	fv->probe_errno = EOPNOTSUPP;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_PLAIN);
	CHECK(info_of(mr)->tried[PLN_MR_DMABUF].error == -EOPNOTSUPP);
	says("plain: fake0 took the pointer to memory of GPU 0; dmabuf refused: EOPNOTSUPP: fake0 cannot take dma-bufs");
	CHECK(!pln_mr_dereg(mr));
	fv->probe_errno = EPROTONOSUPPORT;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->tried[PLN_MR_DMABUF].error == -EPROTONOSUPPORT);
	CHECK(!pln_mr_dereg(mr));
	CHECK(fv->probes == 2 && !fv->dmabufs && !fc->calls[FAKE_EXPORT]);

	/* Another device, at the same place in memory */
	fv->probe_errno = EBADF;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(!pln_mr_dereg(mr));
	/* Odd: it gives no reason, and what errno was before is none */
	fv->silent = 1;
	errno = EOPNOTSUPP;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(!pln_mr_dereg(mr));
	fv->silent = 0;
	/* Odd: it registers no descriptor at all */
	fv->probe_errno = 0;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("a device's refusal of dma-bufs is the device's, each time anew");
}

/* Whatever a device is called, what it does is what counts */
static void names(void)
{
	static const char *const name[] = { "mlx5_0", "rxe0", "irdma0", "" };
	struct pln_mr *mr;
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		strcpy(device.name, name[i]);
		reset();
		CHECK(!reg(BASE, 4096, RW, 0, &mr));
		CHECK(info_of(mr)->way == PLN_MR_DMABUF && fv->probes == 1);
		CHECK(!pln_mr_dereg(mr));
		fv->probe_errno = EOPNOTSUPP;
		CHECK(!reg(BASE, 4096, RW, 0, &mr));
		CHECK(info_of(mr)->way == PLN_MR_PLAIN && fv->dmabufs == 1);
		CHECK(!pln_mr_dereg(mr));
		fv->plain_errno = EFAULT;
		CHECK(!reg(BASE, 4096, RW, 0, &mr));
		CHECK(info_of(mr)->way == PLN_MR_STAGED);
		CHECK(!pln_mr_dereg(mr) && clean());
	}
	strcpy(device.name, "fake0");
	done("devices are told by trial, not by name");
}

static void dmabuf_refusals(void)
{
	static const struct {
		int error;
		const char *words;
	} table[] = {
		{ EOPNOTSUPP, "takes dma-bufs, but not this one" },
		{ EREMOTEIO, "no peer-to-peer route from fake0" },
		{ ENOSPC, "BAR1" },
		{ ENOMEM, "no room for regions" },
		{ EINVAL, "no peer-to-peer route from fake0" },
		{ EINVAL, "need LOCAL_WRITE" },
		{ EIO, "has the device gone?" },
		{ EBUSY, "Device or resource busy" },
	};
	struct pln_mr *mr;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		reset();
		fv->dmabuf_errno = table[i].error;
		bad(BASE, 4096, RW, PLN_MR_ONLY_DMABUF, -table[i].error,
		    table[i].words);
		says("plain not tried: a PLN_MR_ONLY_ flag forbids it");
		CHECK(fcntl(fv->fd, F_GETFD) < 0);
		CHECK(!reg(BASE, 4096, RW, 0, &mr));
		CHECK(info_of(mr)->way == PLN_MR_PLAIN);
		says(table[i].words);
		CHECK(!pln_mr_dereg(mr));
	}
	reset();
	fc->fails = FAKE_EXPORT;
	fc->at = 1;
	fc->with = CUDA_ERROR_NOT_SUPPORTED;
	bad(BASE, 4096, RW, PLN_MR_ONLY_DMABUF, -EOPNOTSUPP,
	    "cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801): the GPU's driver exports no dma-buf");
	/* Two allocations are no dma-buf, but may be plain */
	CHECK(!reg(BASE + 8 * MiB, 16 * MiB, RW, 0, &mr));
	says("plain: fake0 took");
	says("if it is several allocations, register them one by one");
	CHECK(!pln_mr_dereg(mr));
	done("dma-bufs: every refusal has its errno, and words");
}

static void plain_refusals(void)
{
	static const struct {
		int error;
		const char *words;
	} table[] = {
		{ EFAULT, "the kernel has no peer-memory client that knows GPU 0's memory" },
		{ EREMOTEIO, "for peer-to-peer DMA, and the kernel allows none from fake0" },
		{ EOPNOTSUPP, "does not pin memory of this kind" },
		{ EINVAL, "need LOCAL_WRITE" },
		{ ENODEV, "has the device gone?" },
		{ EPERM, "Operation not permitted" },
	};
	struct rlimit old, limit;
	struct pln_mr *mr;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		reset();
		fv->probe_errno = EOPNOTSUPP;
		fv->plain_errno = table[i].error;
		bad(BASE, 4096, RW, PLN_MR_STRICT, -table[i].error,
		    table[i].words);
		says("dmabuf refused: EOPNOTSUPP");
		says("staged not tried: PLN_MR_STRICT forbids it");
	}
	reset();
	fv->probe_errno = EOPNOTSUPP;
	fv->plain_errno = ENOMEM;
	CHECK(!getrlimit(RLIMIT_MEMLOCK, &old));
	limit = old;
	limit.rlim_cur = 4096;
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	bad(BASE, 8192, RW, PLN_MR_STRICT, -ENOMEM,
	    "8192 bytes of GPU memory are more than may be locked: RLIMIT_MEMLOCK is 4096 bytes; raise it");
	fv->host_errno = ENOMEM;
	bad(BASE, 8192, RW, 0, -ENOMEM,
	    "8192 bytes of host memory for staging are more than may be locked");
	bad(BASE, 16, RW, PLN_MR_STRICT, -ENOMEM, "is used up");
	fv->host_errno = EINVAL;
	bad(BASE, 8192, RW, 0, -EINVAL, "of host memory for staging on fake0");
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &old));
	reset_staged();
	bad(BASE + 16 * MiB - 16, 32 * MiB, RW, 0, -EFAULT,
	    "the memory of GPU 0 ends 16777200 bytes before the range does");
	bad(OTHER + 16 * MiB - 16, 20, RW, 0, -EFAULT,
	    "the memory of GPU 1 ends 4 bytes before");
	bad(BASE - 100, 101, RW, 0, -EFAULT,
	    "begins in host memory and ends in memory of GPU 0");
	CHECK(!fv->plains);
	CHECK(reg(ODD, 1000, RW, 0, &mr) == 0);
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("the pointer: every refusal has its errno, and words");
}

/* Addresses that were reserved, and are not all mapped */
static void reserved(void)
{
	struct pln_mr *mr;

	reset_staged();
	for (int i = 0; i < 2; i++) {
		fc->range[i].range = BASE;
		fc->range[i].range_size = 64 * MiB;
	}
	bad(BASE, 33 * MiB, RW, 0, -EFAULT,
	    "the memory of GPU 0 ends 1048576 bytes before the range does");
	CHECK(!reg(BASE + 15 * MiB, 2 * MiB, RW, 0, &mr));
	CHECK(!pln_mr_to_gpu(mr, 0, MiB));
	fc->range[1].id = 77;
	CHECK(pln_mr_to_gpu(mr, 0, MiB) == -EFAULT);
	CHECK(!pln_mr_dereg(mr) && clean());
	done("of reserved addresses, what is mapped there is memory");
}

static void managed(void)
{
	struct pln_mr *mr;

	reset();
	fc->range[0].managed = 1;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(!pln_mr_dereg(mr));
	fv->probe_errno = EOPNOTSUPP;
	bad(BASE, 4096, RW, PLN_MR_STRICT, -EOPNOTSUPP,
	    "plain refused: EOPNOTSUPP: managed memory moves");
	/* Where it lies in the range does not matter */
	fc->range[0].managed = 0;
	fc->range[1].managed = 1;
	bad(NEXT - 4096, 8192, RW, PLN_MR_STRICT, -EOPNOTSUPP,
	    "plain refused: EOPNOTSUPP: managed memory moves");
	CHECK(!fv->plains);
	fc->range[0].managed = 1;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_STAGED);
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("managed memory is never registered by its pointer");
}

static void allowed(void)
{
	struct pln_mr *mr;

	reset();
	setenv("PEERLANE_MR_WAYS", "staged,plain", 1);
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_PLAIN && !fv->probes);
	says("dmabuf not tried: PEERLANE_MR_WAYS forbids it");
	CHECK(!pln_mr_dereg(mr));
	bad(BASE, 4096, RW, PLN_MR_ONLY_DMABUF, -EPERM, "no way left");
	setenv("PEERLANE_MR_WAYS", "staged", 1);
	bad(BASE, 4096, RW, PLN_MR_STRICT, -EPERM, "no way left");
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_STAGED && !fv->probes);
	CHECK(!pln_mr_dereg(mr));
	setenv("PEERLANE_MR_WAYS", "dmabuf", 1);
	fv->probe_errno = EOPNOTSUPP;
	bad(BASE, 4096, RW, 0, -EOPNOTSUPP, "plain not tried: PEERLANE_MR_WAYS");
	setenv("PEERLANE_MR_WAYS", "plain,fast", 1);
	bad(BASE, 4096, RW, 0, -EINVAL, "there is no way \"fast\"");
	setenv("PEERLANE_MR_WAYS", "plain,", 1);
	bad(BASE, 4096, RW, 0, -EINVAL, "there is no way \"\"");
	setenv("PEERLANE_MR_WAYS", "", 1);
	bad(BASE, 4096, RW, 0, -EINVAL, "there is no way \"\"");
	unsetenv("PEERLANE_MR_WAYS");
	done("PEERLANE_MR_WAYS and the flags choose among the ways");
}

static void staged(void)
{
	const size_t n = 9 * MiB, at = 77;
	struct pln_mr *mr;
	unsigned char *b;
	size_t i;

	reset_staged();
	CHECK(!reg(BASE + at, n, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_STAGED && fc->hosts == 1);
	says("staged: fake0 sees host memory, and the copy engine of GPU 0 moves the data; dmabuf refused: EOPNOTSUPP");
	says("plain refused: EFAULT: ");
	b = pln_mr_verbs(mr)->addr;
	CHECK(pln_mr_iova(mr, 3) == (uintptr_t)b + 3 && fv->length == n);
	for (i = 0; i < n; i++)
		b[i] = (unsigned char)(i * 7 + (i >> 13));
	memset(vram, 1, 16 * MiB);
	CHECK(!pln_mr_to_gpu(mr, 0, n));
	CHECK(!memcmp(vram + at, b, n) && vram[at - 1] == 1 &&
	      vram[at + n] == 1);
	CHECK(fc->calls[FAKE_COPY] == 3 && fc->calls[FAKE_WAIT] == 2 &&
	      fc->most_busy == 2);
	memset(b, 0, n);
	CHECK(!pln_mr_from_gpu(mr, 1000, 5 * MiB));
	CHECK(!memcmp(vram + at + 1000, b + 1000, 5 * MiB) && !b[999] &&
	      !b[1000 + 5 * MiB]);
	CHECK(!pln_mr_from_gpu(mr, n, 0) && !pln_mr_to_gpu(mr, 5, 0));
	CHECK(pln_mr_to_gpu(mr, n, 1) == -ERANGE);
	CHECK(pln_mr_to_gpu(mr, 1, n) == -ERANGE);
	CHECK(pln_mr_from_gpu(mr, SIZE_MAX, 2) == -ERANGE);
	CHECK(info_of(mr)->to_gpu == n && info_of(mr)->copies_to_gpu == 3);
	CHECK(info_of(mr)->from_gpu == 5 * MiB &&
	      info_of(mr)->copies_from_gpu == 2);
	fv->dereg_errno = EBUSY;
	CHECK(pln_mr_dereg(mr) == -EBUSY);
	fv->minus_one = 1;
	CHECK(pln_mr_dereg(mr) == -EBUSY);
	fv->dereg_errno = 0;
	CHECK(!pln_mr_from_gpu(mr, 0, 1));
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("staged: bytes go both ways, in pieces, and are counted");

	reset_staged();
	CHECK(!reg(BASE + 15 * MiB, 2 * MiB, RW, 0, &mr));
	memset(vram, 9, 16 * MiB);
	memset(pln_mr_verbs(mr)->addr, 8, 2 * MiB);
	fc->range[1].id = 77;
	CHECK(pln_mr_to_gpu(mr, 0, MiB) == -EFAULT);
	fc->range[1].id = 2;
	fc->range[1].size = 0;
	CHECK(pln_mr_to_gpu(mr, 0, MiB) == -EFAULT);
	fc->range[1].size = 16 * MiB;
	fc->range[0].size = 0;
	CHECK(pln_mr_from_gpu(mr, 0, 1) == -EFAULT);
	CHECK(!fc->calls[FAKE_COPY] && vram[15 * MiB] == 9);
	fc->range[0].size = 16 * MiB;
	CHECK(!pln_mr_to_gpu(mr, 0, MiB));
	CHECK(vram[15 * MiB] == 8);
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("staged: memory that was freed, or allocated anew, is not touched");

	reset_staged();
	fc->range[1].id = 0;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(!pln_mr_to_gpu(mr, 0, 4096));
	fc->range[0].id = 0;
	CHECK(pln_mr_to_gpu(mr, 0, 4096) == -EFAULT);
	CHECK(!pln_mr_dereg(mr));
	fc->range[0].id = 1;
	bad(BASE + 15 * MiB, 2 * MiB, RW, 0, -EOPNOTSUPP, "gives no id of the memory");
	fc->range[1].id = 2;
	fc->range[0].id = 0;
	bad(BASE, 4096, RW, 0, -EOPNOTSUPP, "gives no id of the memory");
	fv->probe_errno = EBADF;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(!pln_mr_dereg(mr) && clean());
	done("staged: memory without an id could not be told from other memory");
}

/* Copies of memory that a device may reach are over when their call returns */
static void in_order(void)
{
	struct pln_mr *mr;

	reset();
	CHECK(!reg(BASE + 15 * MiB, 2 * MiB, RW, 0, &mr));
	CHECK(info_of(mr)->way != PLN_MR_STAGED);
	CHECK(fc->range[0].in_order == 1 && fc->range[1].in_order == 1 && !fc->range[2].in_order);
	CHECK(!pln_mr_dereg(mr) && clean());
	reset();
	fc->range[0].in_order = -1;
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF && fc->calls[FAKE_SET] == 1);
	CHECK(!pln_mr_dereg(mr) && clean());
	done("memory is made to be copied in order, where it can be");
	reset_staged();
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(!fc->calls[FAKE_SET]);
	CHECK(!pln_mr_dereg(mr) && clean());
	done("but not where its bytes are staged");
}

/* Memory that the device writes itself: whether the GPU shows it, may depend */
static void writes(void)
{
	struct pln_mr *mr;

	reset();
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(!pln_mr_to_gpu(mr, 0, 8192) && !fc->calls[FAKE_FLUSH]);
	CHECK(!pln_mr_dereg(mr));
	fc->flush = 1;
	fc->order = 100;	/* for the GPU that has it, as on an H100 */
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(!pln_mr_to_gpu(mr, 0, 8192) && !fc->calls[FAKE_FLUSH]);
	CHECK(!pln_mr_dereg(mr));
	fc->order = 0;
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_DMABUF);
	CHECK(!pln_mr_from_gpu(mr, 0, 8192) && !pln_mr_to_gpu(mr, 0, 0) &&
	      pln_mr_to_gpu(mr, 1, 8192) == -ERANGE && !fc->calls[FAKE_FLUSH]);
	CHECK(!pln_mr_to_gpu(mr, 4096, 1) && fc->calls[FAKE_FLUSH] == 1);
	CHECK(!info_of(mr)->to_gpu && !info_of(mr)->copies_to_gpu);
	fc->fails = FAKE_FLUSH;
	fc->at = 1;
	CHECK(pln_mr_to_gpu(mr, 4096, 1) == -EIO);
	fc->fails = FAKE_PUSH;
	fc->at = 1;
	fc->with = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	CHECK(pln_mr_to_gpu(mr, 4096, 1) == -EFAULT);
	CHECK(!pln_mr_dereg(mr) && clean());
	reset_staged();
	fc->order = 0;
	fc->flush = 1;
	CHECK(!reg(BASE, 8192, RW, 0, &mr));
	CHECK(!pln_mr_to_gpu(mr, 0, 8192) && !fc->calls[FAKE_FLUSH]);
	CHECK(!pln_mr_dereg(mr) && clean());
	done("what a device writes itself is flushed, where the GPU needs it");

	/* A driver without flush, one that knows no such thing, an old GPU */
	for (int i = 0; i < 3; i++) {
		reset();
		fc->order = i == 1 ? -1 : 0;
		fc->flush = i == 2 ? 2 : 0;
		CHECK(!reg(BASE, 4096, RW, 0, &mr));
		CHECK(info_of(mr)->way == PLN_MR_STAGED && !fv->probes);
		says("plain not tried: the device would write, and the GPU's driver can neither order nor flush such writes");
		CHECK(!pln_mr_dereg(mr));
		bad(BASE, 4096, RW, PLN_MR_STRICT, -EPERM, "no way left");
		CHECK(!reg(BASE, 4096, 0, PLN_MR_STRICT, &mr));
		CHECK(info_of(mr)->way == PLN_MR_DMABUF);
		CHECK(!pln_mr_dereg(mr) && clean());
	}
	/* No device writes that GPU: the CPU does, into coherent pages */
	fc->no_rdma = 1;
	fc->order = fc->flush = 0;
	fv->probe_errno = EOPNOTSUPP;
	CHECK(!reg(BASE, 4096, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_PLAIN);
	CHECK(!pln_mr_to_gpu(mr, 0, 4096) && !fc->calls[FAKE_FLUSH]);
	CHECK(!pln_mr_dereg(mr) && clean());
	fc->fails = FAKE_ATTRIBUTE;
	fc->at = 2;
	bad(BASE, 4096, RW, 0, -EIO, "cuDeviceGetAttribute: CUDA_ERROR_UNKNOWN (999)");
	done("where writes cannot be made sure, the device writes host memory");
}

static void copies_fail(void)
{
	static const struct {
		enum fake_call call;
		int with, error;
	} table[] = {
		{ FAKE_COPY, CUDA_ERROR_INVALID_VALUE, -EFAULT },
		{ FAKE_COPY, CUDA_ERROR_LAUNCH_FAILED, -EIO },
		{ FAKE_WAIT, CUDA_ERROR_ILLEGAL_ADDRESS, -EIO },
		{ FAKE_WAIT, CUDA_ERROR_DEVICE_UNAVAILABLE, -ENODEV },
		{ FAKE_PUSH, CUDA_ERROR_CONTEXT_IS_DESTROYED, -EFAULT },
		{ FAKE_POINTER, CUDA_ERROR_DEINITIALIZED, -ENODEV },
		{ FAKE_POINTER, CUDA_ERROR_INVALID_VALUE, -EFAULT },
	};
	struct pln_mr *mr;
	unsigned int at;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		for (at = 1; at <= 2; at++) {
			reset_staged();
			CHECK(!reg(BASE, 16 * MiB, RW, 0, &mr));
			fc->fails = table[i].call;
			fc->at = table[i].call == FAKE_PUSH ? 1 : at;
			fc->with = table[i].with;
			CHECK(pln_mr_to_gpu(mr, 0, 16 * MiB) == table[i].error);
			CHECK(!fc->running && !fc->depth);
			CHECK(!info_of(mr)->to_gpu);
			CHECK(!pln_mr_from_gpu(mr, 0, 16 * MiB));
			CHECK(!pln_mr_dereg(mr));
			CHECK(clean());
		}
	reset_staged();
	fc->fails = FAKE_STREAM;
	fc->at = 2;
	bad(BASE, 4096, RW, 0, -EIO, "cuStreamCreate: CUDA_ERROR_UNKNOWN (999): the GPU's driver makes no stream");
	fc->fails = FAKE_PUSH;
	fc->at = 1;
	bad(BASE, 4096, RW, 0, -EIO, "cuCtxPushCurrent: CUDA_ERROR_UNKNOWN (999): the memory's context is gone");
	fc->fails = FAKE_HOST_ALLOC;
	fc->at = 1;
	bad(BASE, 4096, RW, 0, -EIO, "cuMemHostAlloc: CUDA_ERROR_UNKNOWN (999): no host memory");
	/* The context went first: what can be given back is */
	reset_staged();
	CHECK(!reg(NEXT, 4096, RW, 0, &mr));
	fc->fails = FAKE_PUSH;
	fc->at = 1;
	CHECK(!pln_mr_dereg(mr));
	CHECK(clean());
	done("staged: failed copies leave nothing running");
}

static void *other_thread(void *arg)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	int *r = arg;

	*r = pln_mr_info(NULL, &info);
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	int r = 0;

	reset();
	bad(0, 1, RW, 0, -EINVAL, "is NULL");
	CHECK(!pthread_create(&thread, NULL, other_thread, &r));
	CHECK(!pthread_join(thread, NULL));
	CHECK(r == -ENOENT);
	says("is NULL");
	done("the last registration is the thread's own");
}

static void old_libraries(void)
{
	static char memory[16];
	struct pln_mr *mr;

	reset();
	CHECK(!reg((uintptr_t)memory, 16,
		   RW | IBV_ACCESS_RELAXED_ORDERING, 0, &mr));
	CHECK(fv->access == RW);
	CHECK(!pln_mr_dereg(mr));
	CHECK(!reg(BASE, 16, RW, 0, &mr));
	CHECK(info_of(mr)->way == PLN_MR_PLAIN);
	says("ENOSYS: libibverbs.so.1 has no ibv_reg_dmabuf_mr()");
	CHECK(!pln_mr_dereg(mr));
	fv->plain_errno = EFAULT;
	bad(BASE, 16, RW, 0, -ENOSYS, "libcuda.so.1 lacks functions for streams");
	/* Without names of errors either */
	fc->fails = FAKE_DEVICE;
	fc->at = 1;
	bad(BASE, 16, RW, 0, -EIO, "cuDeviceGet: an error without a name (999)");
	done("older libraries: what is missing is named");
}

int main(int argc, char **argv)
{
	static char memory[16];
	const char *old = argc > 2 ? "old/" : "";
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr = NULL;
	void *lib;

	if (argc < 2)
		return 2;
	CHECK(pln_mr_info(NULL, &info) == -ENOENT);
	CHECK(pln_mr_reg(&pd, memory, 1, RW, 0, &mr) == -ENOSYS);
	says("no libibverbs.so.1 is loaded");
	lib = load(argv[1], old, "libibverbs.so.1");
	if (!lib)
		return 1;
	fv = dlsym(lib, "fake_verbs");
	CHECK(!reg((uintptr_t)memory, 1, RW, 0, &mr));
	CHECK(!pln_mr_dereg(mr));
	CHECK(fv->deregs == 1 && !fv->live);
	done("libibverbs is looked for at each call until it is there");
	lib = load(argv[1], old, "libcuda.so.1");
	if (!lib)
		return 1;
	fc = dlsym(lib, "fake_cuda");
	vram = malloc(16 * MiB);
	if (argc > 2) {
		old_libraries();
	} else {
		arguments();
		host();
		dmabuf();
		device_refuses();
		names();
		dmabuf_refusals();
		plain_refusals();
		reserved();
		managed();
		allowed();
		staged();
		in_order();
		writes();
		copies_fail();
		threads();
	}
	free(vram);
	return ktap_end();
}
