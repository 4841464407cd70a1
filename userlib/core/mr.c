// SPDX-License-Identifier: MIT
/*
 * Registration of memory with an RDMA device: the ways in their order, and the
 * account of them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mr_inside.h"
#include "peerlane/peerlane.h"
#include "sized.h"

#define ONLY	(PLN_MR_ONLY_DMABUF | PLN_MR_ONLY_PLAIN | PLN_MR_ONLY_STAGED)

struct pln_mr {
	const struct mr_verbs *verbs;
	struct ibv_mr *mr;
	struct mr_memory mem;
	struct mr_stage stage;
	struct pln_mr_info info;	/* but for the four below */
	atomic_ullong bytes[2], copies[2];
};

/* Index of bytes and copies */
enum { TO_GPU, FROM_GPU };

/* The last call of the thread, for pln_mr_info(NULL); size 0: there was none */
static __thread struct pln_mr_info last;

static int check(struct ibv_pd *pd, void *addr, size_t length, int access,
		 unsigned int flags, struct pln_mr_attempt *why)
{
	unsigned int only = flags & ONLY;
	const char *words = NULL;

	if (!pd || !pd->context)
		words = "no protection domain";
	else if (!addr || !length)
		words = "no memory: the address is NULL or the length is 0";
	else if ((uintptr_t)addr + length < (uintptr_t)addr)
		words = "the range wraps around the end of the address space";
	else if (flags & ~(PLN_MR_STRICT | ONLY))
		words = "unknown flags";
	else if (only & (only - 1))
		words = "more than one PLN_MR_ONLY_ flag";
	else if ((flags & PLN_MR_STRICT) && only == PLN_MR_ONLY_STAGED)
		words = "PLN_MR_STRICT forbids what PLN_MR_ONLY_STAGED demands";
	else if (access & IBV_ACCESS_ON_DEMAND)
		words = "IBV_ACCESS_ON_DEMAND is not for GPU memory, and soft-RoCE moves wrong bytes with it";
	else if (access & IBV_ACCESS_ZERO_BASED)
		words = "IBV_ACCESS_ZERO_BASED: addresses in work requests are those of pln_mr_iova()";
	if (words)
		mr_refuse(why, -EINVAL, "%s", words);
	return words ? -EINVAL : 0;
}

/* The ways that may be tried, as bits; the others get their words */
static unsigned int ways_of(const struct mr_memory *mem, int access,
			    unsigned int flags, unsigned int allowed,
			    struct pln_mr_attempt *tried)
{
	static const unsigned int only[PLN_MR_WAYS] = {
		[PLN_MR_DMABUF] = PLN_MR_ONLY_DMABUF,
		[PLN_MR_PLAIN] = PLN_MR_ONLY_PLAIN,
		[PLN_MR_STAGED] = PLN_MR_ONLY_STAGED,
	};
	bool host = !mem->cu;
	unsigned int way, ways = 0;
	const char *words;

	for (way = 1; way < PLN_MR_WAYS; way++) {
		if ((flags & ONLY) && !(flags & only[way]))
			words = "not tried: a PLN_MR_ONLY_ flag forbids it";
		else if (way == PLN_MR_STAGED && (flags & PLN_MR_STRICT))
			words = "not tried: PLN_MR_STRICT forbids it";
		else if (host && way != PLN_MR_PLAIN)
			words = "not tried: it is for GPU memory, and this is of the host";
		else if (!host && !(allowed & 1u << way))
			words = "not tried: PEERLANE_MR_WAYS forbids it";
		else if (way != PLN_MR_STAGED && (access & IBV_ACCESS_LOCAL_WRITE) &&
			 mem->writes == MR_WRITES_UNSURE)
			words = "not tried: the device would write, and the "
			  "GPU's driver can neither order nor flush such "
			  "writes";
		else
			words = NULL;
		if (words)
			mr_refuse(&tried[way], 0, "%s", words);
		else
			ways |= 1u << way;
	}
	return ways;
}

static void try(struct pln_mr *new, const struct mr_wish *wish,
		unsigned int ways)
{
	struct pln_mr_attempt *tried = new->info.tried;
	unsigned int way;

	for (way = 1; way < PLN_MR_WAYS; way++) {
		if (!(ways & 1u << way))
			continue;
		if (new->mr) {
			mr_refuse(&tried[way], 0, "not tried: not needed");
			continue;
		}
		if (way == PLN_MR_DMABUF)
			new->mr = mr_by_dmabuf(new->verbs, &new->mem, wish,
					       &tried[way]);
		else if (way == PLN_MR_PLAIN)
			new->mr = mr_by_plain(new->verbs, &new->mem, wish,
					      &tried[way]);
		else
			new->mr = mr_by_staging(new->verbs, &new->mem, wish,
						&new->stage, &tried[way]);
		if (new->mr)
			new->info.way = way;
		else
			new->info.error = tried[way].error;
	}
	if (!new->mr)
		return;
	new->info.error = 0;
	if (new->info.way != PLN_MR_STAGED)
		mr_memory_in_order(&new->mem);
}

static int reg(struct pln_mr *new, struct ibv_pd *pd, void *addr,
	       size_t length, int access, unsigned int flags)
{
	struct mr_wish wish = {
		.pd = pd, .iova = (uintptr_t)addr,
		.access = (unsigned int)access,
	};
	struct pln_mr_attempt *why = &new->info.tried[PLN_MR_NONE];
	unsigned int ways;
	int r, allowed;

	r = check(pd, addr, length, access, flags, why);
	if (r)
		return r;
	allowed = mr_ways_allowed(why);
	if (allowed < 0)
		return allowed;
	new->verbs = mr_verbs();
	if (!new->verbs) {
		mr_refuse(why, -ENOSYS,
			  "no libibverbs.so.1 is loaded that has ibv_reg_mr() and ibv_dereg_mr() of version IBVERBS_1.1");
		return -ENOSYS;
	}
	r = mr_memory_get(&new->mem, addr, length, why);
	if (r)
		return r;
	new->info.gpu = new->mem.gpu;
	ways = ways_of(&new->mem, access, flags, (unsigned int)allowed,
		       new->info.tried);
	if (!ways) {
		mr_refuse(why, -EPERM, "there is no way left to try");
		r = -EPERM;
	} else {
		try(new, &wish, ways);
		r = new->info.error;
	}
	if (r)
		mr_memory_put(&new->mem);
	return r;
}

int pln_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access,
	       unsigned int flags, struct pln_mr **mr)
{
	struct pln_mr *new;
	int r;

	memset(&last, 0, sizeof(last));
	last.size = sizeof(last);
	last.gpu = -1;
	last.addr = (uintptr_t)addr;
	last.length = length;
	new = calloc(1, sizeof(*new));
	if (!new || !mr) {
		r = mr ? -ENOMEM : -EINVAL;
		mr_refuse(&last.tried[PLN_MR_NONE], r, "%s",
			  mr ? "no memory" : "no place for the result");
	} else {
		new->info = last;
		r = reg(new, pd, addr, length, access, flags);
		last = new->info;
	}
	last.error = r;
	mr_conclude(&last, pd && pd->context ? pd->context->device->name : "?");
	if (r) {
		free(new);
		return r;
	}
	new->info = last;
	*mr = new;
	return 0;
}

int pln_mr_dereg(struct pln_mr *mr)
{
	int err;

	if (!mr)
		return 0;
	errno = 0;
	err = mr->verbs->dereg_mr(mr->mr);
	if (err < 0)
		err = errno ? errno : EIO;
	if (err)
		return -err;
	mr_stage_end(&mr->mem, &mr->stage);
	mr_memory_put(&mr->mem);
	free(mr);
	return 0;
}

struct ibv_mr *pln_mr_verbs(struct pln_mr *mr)
{
	return mr ? mr->mr : NULL;
}

uint64_t pln_mr_iova(struct pln_mr *mr, size_t offset)
{
	if (!mr || offset > mr->mem.length)
		return 0;
	return (mr->stage.host ? (uintptr_t)mr->stage.host : mr->mem.addr) +
	       offset;
}

int pln_mr_info(struct pln_mr *mr, struct pln_mr_info *info)
{
	struct pln_mr_info now;

	if (!info || !sized_ok(info->size, MR_INFO_LEAST))
		return -EINVAL;
	if (!mr && !last.size)
		return -ENOENT;
	now = mr ? mr->info : last;
	if (mr) {
		now.to_gpu = atomic_load(&mr->bytes[TO_GPU]);
		now.from_gpu = atomic_load(&mr->bytes[FROM_GPU]);
		now.copies_to_gpu = atomic_load(&mr->copies[TO_GPU]);
		now.copies_from_gpu = atomic_load(&mr->copies[FROM_GPU]);
	}
	SIZED_OUT(info, &now);
	return 0;
}

uint32_t mr_way(const struct pln_mr *mr)
{
	return mr->info.way;
}

uint64_t mr_length(const struct pln_mr *mr)
{
	return mr->info.length;
}

static int stage(struct pln_mr *mr, size_t offset, size_t length, int to)
{
	uint64_t pieces = 0;
	int r;

	if (!mr)
		return -EINVAL;
	if (offset > mr->mem.length || length > mr->mem.length - offset)
		return -ERANGE;
	if (!length)
		return 0;
	if (!mr->stage.host)
		return to == TO_GPU && mr->mem.writes == MR_WRITES_FLUSH ?
		       mr_memory_flush(&mr->mem) : 0;
	r = mr_stage_copy(&mr->mem, &mr->stage, offset, length, to == TO_GPU,
			  &pieces);
	if (r)
		return r;
	atomic_fetch_add(&mr->bytes[to], length);
	atomic_fetch_add(&mr->copies[to], pieces);
	return 0;
}

int pln_mr_to_gpu(struct pln_mr *mr, size_t offset, size_t length)
{
	return stage(mr, offset, length, TO_GPU);
}

int pln_mr_from_gpu(struct pln_mr *mr, size_t offset, size_t length)
{
	return stage(mr, offset, length, FROM_GPU);
}
