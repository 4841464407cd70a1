// SPDX-License-Identifier: MIT
/*
 * cuda_procs: memory made by hand, and of pools, which another process gets by
 * way of a descriptor.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cuda_procs.h"

/* ---- memory made by hand, by a descriptor ---- */

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static const CUmemAccessDesc access_all = {
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static bool pass_fd(int sock, int *fd, bool out)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c;
	char byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = sizeof(c),
	};

	memset(&c, 0, sizeof(c));
	if (out) {
		c.h.cmsg_level = SOL_SOCKET;
		c.h.cmsg_type = SCM_RIGHTS;
		c.h.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&c.h), fd, sizeof(int));
		return sendmsg(sock, &m, 0) == 1;
	}
	if (recvmsg(sock, &m, 0) != 1 || c.h.cmsg_type != SCM_RIGHTS)
		return false;
	memcpy(fd, CMSG_DATA(&c.h), sizeof(int));
	return true;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h, size_t size)
{
	CUdeviceptr p = 0;

	OK(cuMemAddressReserve(&p, size, 0, 0, 0));
	OK(cuMemMap(p, size, 0, h, 0));
	OK(cuMemSetAccess(p, size, &access_all, 1));
	return p;
}

static void unmap(CUdeviceptr p, size_t size)
{
	OK(cuMemUnmap(p, size));
	OK(cuMemAddressFree(p, size));
}

int part_by_hand(void)
{
	CUmemGenericAllocationHandle h = 0;
	unsigned char b = 0;
	CUdeviceptr p;
	int fd = -1;
	char go;

	start();
	CHECK(pass_fd(SOCK, &fd, false));
	OK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, 1));
	close(fd);
	p = map(h, 4 * MiB);
	OK(cuMemRelease(h));
	OK(cuMemcpyDtoH_v2(&b, p + 4 * MiB - 1, 1));
	CHECK(b == 0x21);
	OK(cuMemsetD8_v2(p, 0x22, 4 * MiB));
	CHECK(say(SOCK, "d", 1) && hear(SOCK, &go, 1));
	/* Gone there, still here */
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 0x22);
	unmap(p, 4 * MiB);
	return failed;
}

void by_hand(void)
{
	size_t before = free_memory();
	struct part part = begin("by-hand");
	CUmemGenericAllocationHandle h = 0;
	unsigned char b = 0;
	CUdeviceptr p;
	int fd = -1;
	char go;

	OK(cuMemCreate(&h, 4 * MiB, &prop, 0));
	p = map(h, 4 * MiB);
	OK(cuMemsetD8_v2(p, 0x21, 4 * MiB));
	OK(cuMemExportToShareableHandle(&fd, h, 1, 0));
	CHECK(pass_fd(part.sock, &fd, true));
	close(fd);
	CHECK(hear(part.sock, &go, 1));
	OK(cuMemcpyDtoH_v2(&b, p + 7, 1));
	CHECK(b == 0x22);
	unmap(p, 4 * MiB);
	OK(cuMemRelease(h));
	CHECK(free_memory() == before - 4 * MiB);
	CHECK(say(part.sock, "g", 1));
	CHECK(end(&part) == 0);
	CHECK(free_again(before));
}

/* ---- memory of a pool ---- */

struct pool_words {
	CUmemPoolPtrExportData data;
	size_t size;
};

int part_pool(void)
{
	CUmemoryPool pool = NULL;
	struct pool_words w;
	unsigned char b = 0;
	CUdeviceptr p = 0, base = 0;
	size_t size = 0;
	int fd = -1;

	start();
	CHECK(pass_fd(SOCK, &fd, false));
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, 1,
					      0));
	close(fd);
	CHECK(hear(SOCK, &w, sizeof(w)));
	OK(cuMemPoolImportPointer(&p, pool, &w.data));
	OK(cuMemGetAddressRange_v2(&base, &size, p + 1));
	CHECK(base == p && size == w.size);
	OK(cuMemcpyDtoH_v2(&b, p + w.size - 1, 1));
	CHECK(b == 0x61);
	OK(cuMemsetD8Async(p, 0x62, w.size, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemPoolDestroy(pool));
	CHECK(say(SOCK, "d", 1));
	return failed;
}

void pool(void)
{
	size_t before = free_memory();
	struct part part = begin("pool");
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	struct pool_words w = { .size = 300000 };
	CUmemoryPool ours = NULL;
	unsigned char b = 0;
	CUdeviceptr p = 0, q = 0;
	int fd = -1;
	char go;

	OK(cuMemPoolCreate(&ours, &props));
	OK(cuMemAllocFromPoolAsync(&q, 1000, ours, NULL));
	OK(cuMemAllocFromPoolAsync(&p, w.size, ours, NULL));
	OK(cuMemsetD8_v2(p, 0x61, w.size));
	OK(cuMemsetD8_v2(q, 0x77, 1000));
	OK(cuMemPoolExportToShareableHandle(&fd, ours, 1, 0));
	OK(cuMemPoolExportPointer(&w.data, p));
	CHECK(pass_fd(part.sock, &fd, true));
	close(fd);
	CHECK(say(part.sock, &w, sizeof(w)) && hear(part.sock, &go, 1));
	OK(cuMemcpyDtoH_v2(&b, p + w.size - 1, 1));
	CHECK(b == 0x62);
	OK(cuMemcpyDtoH_v2(&b, q + 999, 1));
	CHECK(b == 0x77);	/* the neighbour in the slab */
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemPoolDestroy(ours));
	CHECK(end(&part) == 0);
	CHECK(free_again(before));
}
