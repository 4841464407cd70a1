// SPDX-License-Identifier: MIT
/*
 * libpeerlane-mr.so.0: registration of GPU memory by the best way, for programs
 * that know of none.  It stands before libibverbs, preloaded or linked, takes
 * the calls that register memory, and leaves all others alone.
 *
 * Host memory goes to libibverbs as it came.  GPU memory is tried as dma-buf
 * first, then as it came.  Staging needs a program that takes part, so when
 * both fail, the program gets what libibverbs answered to its own call.
 *
 *	PEERLANE_MR_WAYS	the ways that may be tried
 *	PEERLANE_MR_LOG		a file, or "-" for standard error: each
 *				registration with its reason, totals at exit
 *	PEERLANE_MR_STRICT	1: end the program when GPU memory is refused
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mr_inside.h"
#include "peerlane/peerlane.h"

/* Of each way, and [PLN_MR_NONE]: refused.  Host memory is not among them. */
static atomic_ullong regions[PLN_MR_WAYS], bytes[PLN_MR_WAYS];
static atomic_ullong host_regions, dmabuf_calls;
/* Less than 0 where the program ends regions that it got in other ways */
static atomic_llong live;
static atomic_flag complained = ATOMIC_FLAG_INIT;

/* libibverbs calls itself, and those calls may come through here too */
static __thread bool inside;

static int log_fd = -1;
static bool strict;

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access);
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access);

/* One write, so that lines of several threads and processes stay whole */
__attribute__((format(printf, 2, 3)))
static void say(int fd, const char *format, ...)
{
	char line[PLN_MR_REASON_MAX + 300];
	const size_t room = sizeof(line) - 1;	/* for the end of the line */
	int at, n, saved = errno;
	va_list args;

	at = snprintf(line, room, "peerlane-mr[%d]: ", (int)getpid());
	va_start(args, format);
	n = vsnprintf(line + at, room - (size_t)at, format, args);
	va_end(args);
	at += n < 0 ? 0 : n;
	if ((size_t)at >= room)
		at = (int)room - 1;
	line[at++] = '\n';
	if (write(fd, line, (size_t)at) < 0) {
		/* Nobody is left who could be told */
	}
	errno = saved;
}

__attribute__((constructor))
static void begin(void)
{
	const char *to = secure_getenv("PEERLANE_MR_LOG");
	const char *s = secure_getenv("PEERLANE_MR_STRICT");

	strict = s && *s && strcmp(s, "0");
	if (!to || !*to)
		return;
	if (strcmp(to, "-")) {
		log_fd = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			      0666);
		if (log_fd >= 0)
			return;
		say(STDERR_FILENO, "PEERLANE_MR_LOG: %s: %s; the log goes here",
		    to, strerror(errno));
	}
	log_fd = STDERR_FILENO;
}

__attribute__((destructor))
static void totals(void)
{
	unsigned long long gpu = 0;
	unsigned int way;

	for (way = 1; way < PLN_MR_WAYS; way++)
		gpu += atomic_load(&regions[way]);
	if (log_fd < 0)
		return;
	say(log_fd, "total: GPU memory: %llu registered (dmabuf %llu, %llu bytes; plain %llu, %llu bytes), %llu refused; host memory: %llu registered; dma-bufs of the program's own: %llu; still registered: %lld",
	    gpu, atomic_load(&regions[PLN_MR_DMABUF]),
	    atomic_load(&bytes[PLN_MR_DMABUF]),
	    atomic_load(&regions[PLN_MR_PLAIN]),
	    atomic_load(&bytes[PLN_MR_PLAIN]),
	    atomic_load(&regions[PLN_MR_NONE]), atomic_load(&host_regions),
	    atomic_load(&dmabuf_calls), atomic_load(&live));
}

/* What the program asked for, to be given to libibverbs unchanged */
struct call {
	const char *name;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	uint64_t iova;
	unsigned int access;
	struct ibv_mr *(*pass)(const struct mr_verbs *verbs,
			       const struct call *c);
};

static struct ibv_mr *pass(const struct mr_verbs *verbs, const struct call *c)
{
	bool outer = inside;
	struct ibv_mr *mr;

	inside = true;
	mr = c->pass(verbs, c);
	inside = outer;
	return mr;
}

static void refused(const struct call *c, const struct pln_mr_info *info)
{
	bool first = !atomic_flag_test_and_set(&complained);

	atomic_fetch_add(&regions[PLN_MR_NONE], 1);
	if ((first || strict) && log_fd != STDERR_FILENO)
		say(STDERR_FILENO, "%s(%p, %zu bytes): %s%s", c->name, c->addr,
		    c->length, info->reason,
		    first ? "; printed only once, PEERLANE_MR_LOG shows all" : "");
	if (log_fd >= 0)
		say(log_fd, "%s(%p, %zu bytes): %s", c->name, c->addr,
		    c->length, info->reason);
	if (strict) {
		say(STDERR_FILENO,
		    "PEERLANE_MR_STRICT is set: this ends the program");
		abort();
	}
}

/* GPU memory; the region, or NULL with errno */
static struct ibv_mr *best(const struct mr_verbs *verbs, const struct call *c,
			   const struct mr_memory *mem,
			   struct pln_mr_info *info)
{
	struct pln_mr_attempt *tried = info->tried;
	struct mr_wish wish = { c->pd, c->iova, c->access };
	struct ibv_mr *mr = NULL;
	int allowed, err = EPERM;

	allowed = mr_ways_allowed(&tried[PLN_MR_NONE]);
	if (allowed < 0) {
		info->error = allowed;
		errno = -allowed;
		return NULL;
	}
	mr_refuse(&tried[PLN_MR_STAGED], 0,
		  "not tried: the program must call pln_mr_reg() for it");
	if (allowed & 1 << PLN_MR_DMABUF) {
		inside = true;
		mr = mr_by_dmabuf(verbs, mem, &wish, &tried[PLN_MR_DMABUF]);
		inside = false;
		err = -tried[PLN_MR_DMABUF].error;
	} else {
		mr_refuse(&tried[PLN_MR_DMABUF], 0,
			  "not tried: PEERLANE_MR_WAYS forbids it");
	}
	info->way = mr ? PLN_MR_DMABUF : PLN_MR_NONE;
	if (!mr && allowed & 1 << PLN_MR_PLAIN) {
		errno = 0;
		mr = pass(verbs, c);
		err = errno ? errno : EIO;
		if (mr)
			info->way = PLN_MR_PLAIN;
		else
			mr_words_plain(&tried[PLN_MR_PLAIN],
				       c->pd->context->device->name, err, mem);
	} else if (!mr) {
		mr_refuse(&tried[PLN_MR_PLAIN], 0,
			  "not tried: PEERLANE_MR_WAYS forbids it");
	}
	info->error = mr ? 0 : -err;
	errno = err;
	return mr;
}

static struct ibv_mr *reg(const struct call *c)
{
	struct pln_mr_info info = { .size = sizeof(info), .gpu = -1 };
	const struct mr_verbs *verbs = mr_verbs();
	struct mr_memory mem = { .gpu = -1 };
	struct ibv_mr *mr;
	int err;

	if (!verbs) {
		errno = ENOSYS;
		return NULL;
	}
	/* What is not a GPU's alone, or not right, is libibverbs' to answer */
	if (inside || !c->pd || !c->addr || !c->length ||
	    (c->access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED)) ||
	    mr_memory_get(&mem, c->addr, c->length, &info.tried[0]) ||
	    !mem.cu || mem.managed) {
		mr = pass(verbs, c);
		err = errno;
		mr_memory_put(&mem);
		errno = err;
		if (mr && !inside) {
			atomic_fetch_add(&host_regions, 1);
			atomic_fetch_add(&live, 1);
		}
		return mr;
	}
	info.gpu = mem.gpu;
	mr = best(verbs, c, &mem, &info);
	err = errno;
	mr_memory_put(&mem);
	mr_conclude(&info, c->pd->context->device->name);
	if (mr) {
		atomic_fetch_add(&live, 1);
		atomic_fetch_add(&regions[info.way], 1);
		atomic_fetch_add(&bytes[info.way], c->length);
		if (log_fd >= 0)
			say(log_fd, "%s(%p, %zu bytes): %s", c->name, c->addr,
			    c->length, info.reason);
	} else {
		refused(c, &info);
	}
	errno = err;
	return mr;
}

/* ---- the calls ---- */

static struct ibv_mr *pass_reg_mr(const struct mr_verbs *verbs,
				  const struct call *c)
{
	return verbs->reg_mr(c->pd, c->addr, c->length, (int)c->access);
}

static struct ibv_mr *pass_reg_mr_iova(const struct mr_verbs *verbs,
				       const struct call *c)
{
	if (verbs->reg_mr_iova)
		return verbs->reg_mr_iova(c->pd, c->addr, c->length, c->iova,
					  (int)c->access);
	errno = ENOSYS;
	return NULL;
}

static struct ibv_mr *pass_reg_mr_iova2(const struct mr_verbs *verbs,
					const struct call *c)
{
	if (verbs->reg_mr_iova2)
		return verbs->reg_mr_iova2(c->pd, c->addr, c->length, c->iova,
					   c->access);
	errno = ENOSYS;
	return NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	const struct call c = {
		"ibv_reg_mr", pd, addr, length, (uintptr_t)addr,
		(unsigned int)access, pass_reg_mr,
	};

	return reg(&c);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	const struct call c = {
		"ibv_reg_mr_iova", pd, addr, length, iova,
		(unsigned int)access, pass_reg_mr_iova,
	};

	return reg(&c);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	const struct call c = {
		"ibv_reg_mr_iova2", pd, addr, length, iova, access,
		pass_reg_mr_iova2,
	};

	return reg(&c);
}

/* The program has chosen its way; it is only counted */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	const struct mr_verbs *verbs = mr_verbs();
	struct ibv_mr *mr;
	bool outer = !inside;

	if (!verbs || !verbs->reg_dmabuf_mr) {
		errno = ENOSYS;
		return NULL;
	}
	inside = true;
	mr = verbs->reg_dmabuf_mr(pd, offset, length, iova, fd, access);
	inside = !outer;
	if (!outer)
		return mr;
	if (mr) {
		atomic_fetch_add(&dmabuf_calls, 1);
		atomic_fetch_add(&live, 1);
	}
	if (log_fd >= 0)
		say(log_fd, "ibv_reg_dmabuf_mr(%zu bytes): %s", length,
		    mr ? "done as asked" : pln_strerror(-errno));
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	const struct mr_verbs *verbs = mr_verbs();
	int err = verbs ? verbs->dereg_mr(mr) : ENOSYS;

	if (!err && !inside)
		atomic_fetch_sub(&live, 1);
	return err;
}
