// SPDX-License-Identifier: MIT
/*
 * large-region: registers memory of 1 GiB, and of a page more, with the first RDMA
 * device.  A line for each: its bytes, and "registered" or why not.  The memory is 2 MiB,
 * mapped again and again, so that a small machine has enough.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GIB	(1ull << 30)
#define PIECE	(2ull << 20)

static void __attribute__((noreturn)) die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	int fd = memfd_create("large", 0);
	uint8_t *all;

	if (!pd)
		die("no RDMA device");
	if (fd < 0 || ftruncate(fd, PIECE))
		die("no memory");
	all = mmap(NULL, GIB + PIECE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		die("no addresses");
	for (uint64_t at = 0; at < GIB + PIECE; at += PIECE)
		if (mmap(all + at, PIECE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			die("no mapping");
	for (uint64_t size = GIB; size <= GIB + 4096; size += 4096) {
		struct ibv_mr *mr = ibv_reg_mr(pd, all, size, IBV_ACCESS_LOCAL_WRITE);

		printf("%llu %s\n", (unsigned long long)size,
		       mr ? "registered" : strerrorname_np(errno));
		if (mr)
			ibv_dereg_mr(mr);
	}
	return 0;
}
