// SPDX-License-Identifier: MIT
/* A libibverbs.so.1 that registers whatever it is told to: see mr_fakes.h */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include "mr_fakes.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct fake_verbs fake_verbs;

/* Addresses of the false libcuda's GPUs are below all of the program's */
#define GPU_END		(1ull << 40)

/* The symbol of version 1.0, which nobody must call */
struct ibv_mr *reg_old(struct ibv_pd *pd, void *addr, size_t length,
		       int access);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access);
struct ibv_mr *reg_new(struct ibv_pd *pd, void *addr, size_t length,
		       int access);

static struct ibv_mr *made(struct ibv_pd *pd, uint64_t addr, uint64_t length,
			   int err)
{
	struct ibv_mr *mr;

	if (fake_verbs.now)
		err = fake_verbs.now;
	fake_verbs.now = 0;
	if (err) {
		errno = err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		abort();
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = (void *)(uintptr_t)addr;
	mr->length = length;
	fake_verbs.live++;
	return mr;
}

static struct ibv_mr *plain(const char *call, struct ibv_pd *pd, void *addr,
			    size_t length, uint64_t iova, unsigned int access)
{
	fake_verbs.plains++;
	fake_verbs.call = call;
	fake_verbs.addr = (uintptr_t)addr;
	fake_verbs.length = length;
	fake_verbs.iova = iova;
	fake_verbs.access = access;
	return made(pd, (uintptr_t)addr, length, (uintptr_t)addr < GPU_END ?
		    fake_verbs.plain_errno : fake_verbs.host_errno);
}

struct ibv_mr *reg_old(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return plain("old", pd, addr, length, (uintptr_t)addr,
		     (unsigned int)access);
}
__asm__(".symver reg_old,ibv_reg_mr@IBVERBS_1.0");

/* As in rdma-core, one of the library's functions calls another */
struct ibv_mr *reg_new(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr,
					     (unsigned int)access);

	fake_verbs.call = "ibv_reg_mr";
	return mr;
}
__asm__(".symver reg_new,ibv_reg_mr@@IBVERBS_1.1");

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	return plain("ibv_reg_mr_iova", pd, addr, length, iova,
		     (unsigned int)access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	return plain("ibv_reg_mr_iova2", pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	if (fd < 0) {
		fake_verbs.probes++;
		if (fake_verbs.silent)
			return NULL;
		return made(pd, offset, length, fake_verbs.probe_errno);
	}
	fake_verbs.dmabufs++;
	fake_verbs.call = "ibv_reg_dmabuf_mr";
	fake_verbs.offset = offset;
	fake_verbs.length = length;
	fake_verbs.iova = iova;
	fake_verbs.access = (unsigned int)access;
	fake_verbs.fd = fd;
	fake_verbs.fd_good = fcntl(fd, F_GETFD) >= 0;
	fake_verbs.fd_size = lseek(fd, 0, SEEK_END);
	return made(pd, offset, length, fake_verbs.dmabuf_errno);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	fake_verbs.deregs++;
	errno = fake_verbs.now ? fake_verbs.now : fake_verbs.dereg_errno;
	if (fake_verbs.now)
		fake_verbs.kept = mr;
	fake_verbs.now = 0;
	if (errno)
		return fake_verbs.minus_one ? -1 : errno;
	fake_verbs.live--;
	free(mr);
	return 0;
}
