// SPDX-License-Identifier: MIT
/*
 * For a test of peerlane doctor --try: a libibverbs.so.1 with one device of two
 * ports, of which the second is down.  TRY_VERBS in the environment is what is
 * wrong with it: crash, exit, hang, linger (as hang, with its files closed),
 * refused (the device cannot be opened), locked (nothing can be registered),
 * dmabuf (it takes them).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../core/test/fake_nic.h"

/* What fake_nic.c fills; this library has no other part of core */
struct verbs_lib verbs_lib;

int verbs_errno(int result);
int verbs_errno(int result)
{
	return result;
}

static bool is(const char *what)
{
	const char *mode = getenv("TRY_VERBS");

	return mode && !strcmp(mode, what);
}

__attribute__((constructor))
static void begin(void)
{
	fake_install();
	fake_ports = 2;
	fake_port2.state = IBV_PORT_DOWN;
	fake_port2.active_mtu = IBV_MTU_1024;
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#undef ibv_query_port
#undef ibv_reg_mr

struct ibv_device **ibv_get_device_list(int *n)
{
	return verbs_lib.get_device_list(n);
}

void ibv_free_device_list(struct ibv_device **list)
{
	verbs_lib.free_device_list(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return verbs_lib.get_device_name(dev);
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	if (is("crash"))
		raise(SIGSEGV);
	if (is("exit"))
		_exit(3);
	if (is("linger"))
		close_range(3, ~0u, 0);
	while (is("hang") || is("linger"))
		pause();
	if (is("refused")) {
		errno = EACCES;
		return NULL;
	}
	return verbs_lib.open_device(dev);
}

int ibv_close_device(struct ibv_context *ctx)
{
	return verbs_lib.close_device(ctx);
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	return verbs_lib.query_device(ctx, attr);
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	return verbs_lib.query_port(ctx, port, (struct ibv_port_attr *)attr);
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int i,
		  union ibv_gid *gid)
{
	return verbs_lib.query_gid(ctx, port, i, gid);
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t i,
		      struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	return verbs_lib.query_gid_ex(ctx, port, i, e, flags, size);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	return verbs_lib.alloc_pd(ctx);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return verbs_lib.dealloc_pd(pd);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access)
{
	if (is("locked")) {
		errno = ENOMEM;
		return NULL;
	}
	return fake_reg_mr(pd, p, n, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t n,
				 uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)n;
	(void)iova;
	(void)fd;
	(void)access;
	errno = is("dmabuf") ? EBADF : EOPNOTSUPP;
	return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return fake_dereg_mr(mr);
}

/* Of these only the names are wanted */
void absent(void)
{
	abort();
}

#define ABSENT(name) __asm__(".globl " name "\n.set " name ", absent");
ABSENT("ibv_create_comp_channel")
ABSENT("ibv_destroy_comp_channel")
ABSENT("ibv_create_cq")
ABSENT("ibv_destroy_cq")
ABSENT("ibv_get_cq_event")
ABSENT("ibv_ack_cq_events")
ABSENT("ibv_create_qp")
ABSENT("ibv_modify_qp")
ABSENT("ibv_destroy_qp")
ABSENT("ibv_wc_status_str")
