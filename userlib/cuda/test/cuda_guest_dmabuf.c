// SPDX-License-Identifier: MIT
/* cuda_guest: memory of the GPU as dma-bufs */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_guest.h"

#define GRANULE	65536ul
#define EXPORT(fd, p, n) \
	cuMemGetHandleForAddressRange(fd, p, n, \
				      CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)

void dmabuf(void)
{
	size_t n = 4 * MiB;
	unsigned char *want = malloc(n), *map;
	CUdeviceptr p, small;
	unsigned char b;
	int fd = -1;

	OK(cuMemAlloc_v2(&p, n));
	pattern(want, n, 77);
	OK(cuMemcpyHtoD_v2(p, want, n));
	OK(EXPORT(&fd, p, n));
	map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	if (map != MAP_FAILED) {
		CHECK(!memcmp(map, want, n));
		map[123] = (unsigned char)~want[123];
		OK(cuMemcpyDtoH_v2(&b, p + 123, 1));
		CHECK(b == (unsigned char)~want[123]);
		munmap(map, n);
	}
	close(fd);
	/* A part of it */
	OK(EXPORT(&fd, p + MiB, GRANULE));
	map = mmap(NULL, GRANULE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	if (map != MAP_FAILED) {
		CHECK(!memcmp(map, want + MiB, GRANULE));
		munmap(map, GRANULE);
	}
	close(fd);
	/* Of a page of the CPU, and no more */
	OK(EXPORT(&fd, p + 4096, 4096));
	CHECK(lseek(fd, 0, SEEK_END) == 4096);
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !memcmp(map, want + 4096, 4096));
	if (map != MAP_FAILED)
		munmap(map, 4096);
	CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);
	OK(cuMemFree_v2(p));
	/* Inside a block that small allocations share */
	OK(cuMemAlloc_v2(&small, 2 * GRANULE));
	OK(cuMemcpyHtoD_v2(small, want, 2 * GRANULE));
	OK(EXPORT(&fd, small + GRANULE, GRANULE));
	map = mmap(NULL, GRANULE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !memcmp(map, want + GRANULE, GRANULE));
	if (map != MAP_FAILED)
		munmap(map, GRANULE);
	close(fd);
	OK(cuMemFree_v2(small));
	free(want);
}

/* Freed memory of the GPU is out of reach of what was exported from it */
void dmabuf_revoked(void)
{
	volatile unsigned char *map;
	CUdeviceptr p;
	int fd = -1, status;
	pid_t pid;

	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(EXPORT(&fd, p, 2 * MiB));
	map = mmap(NULL, 2 * MiB, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && map[0] == 0);
	OK(cuMemFree_v2(p));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		_exit(map[0]);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status));
	munmap((void *)map, 2 * MiB);
	close(fd);
}

/* A range that three allocations are mapped in, as one dma-buf */
void dmabuf_of_parts(void)
{
	CUmemAllocationProp by_hand = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = { by_hand.location, 3 };
	CUmemGenericAllocationHandle h[3];
	unsigned char *map;
	CUdeviceptr p;
	int fd = -1;

	OK(cuMemAddressReserve(&p, 6 * MiB, 0, 0, 0));
	for (int i = 2; i >= 0; i--) {
		OK(cuMemCreate(&h[i], 2 * MiB, &by_hand, 0));
		OK(cuMemMap(p + (CUdeviceptr)i * 2 * MiB, 2 * MiB, 0, h[i], 0));
		OK(cuMemSetAccess(p + (CUdeviceptr)i * 2 * MiB, 2 * MiB,
				  &access, 1));
		OK(cuMemsetD8_v2(p + (CUdeviceptr)i * 2 * MiB,
				 (unsigned char)(0x70 + i), 2 * MiB));
	}
	OK(EXPORT(&fd, p + MiB, 4 * MiB));
	map = mmap(NULL, 4 * MiB, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	if (map != MAP_FAILED) {
		CHECK(map[0] == 0x70 && map[MiB - 1] == 0x70);
		CHECK(map[MiB] == 0x71 && map[3 * MiB - 1] == 0x71);
		CHECK(map[3 * MiB] == 0x72 && map[4 * MiB - 1] == 0x72);
		munmap(map, 4 * MiB);
	}
	close(fd);
	for (int i = 0; i < 3; i++) {
		OK(cuMemUnmap(p + (CUdeviceptr)i * 2 * MiB, 2 * MiB));
		OK(cuMemRelease(h[i]));
	}
	OK(cuMemAddressFree(p, 6 * MiB));
}
