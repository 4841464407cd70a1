/* SPDX-License-Identifier: MIT */
/*
 * Put before the library's own sources (-include) when they are compiled for
 * link_faults and mr_faults: each place that calls libibverbs, libcuda, or
 * something of the C library that can fail, becomes a site.  All sites stand in
 * one section of the program, so a new call is a new site, whether a test
 * comes there or not.
 */
#ifndef PLN_CORE_TEST_SITES_H
#define PLN_CORE_TEST_SITES_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "../mr_inside.h"
#include "../verbs.h"
#include "site.h"

#define SITE(name) ({							\
	static struct site site_ = { name, __FILE__, __LINE__, 0, false, false }; \
	static struct site *const at_					\
		__attribute__((section("sites"), used)) = &site_;	\
	site_reached(at_); })

/* By its name: it need not be called to fail */
#define FAIL(name, err, result, call)					\
	(SITE(name) ? (errno = (err), (result)) : (call))

#define malloc(n)	FAIL("malloc", ENOMEM, NULL, malloc(n))
#define calloc(n, m)	FAIL("calloc", ENOMEM, NULL, calloc(n, m))
#define realloc(p, n)	FAIL("realloc", ENOMEM, NULL, realloc(p, n))
#define aligned_alloc(a, n)						\
	FAIL("aligned_alloc", ENOMEM, NULL, aligned_alloc(a, n))
#define getrandom(p, n, f) FAIL("getrandom", EINTR, -1, getrandom(p, n, f))
#define getrlimit(what, p) FAIL("getrlimit", EPERM, -1, getrlimit(what, p))
#define getsockopt(...)	FAIL("getsockopt", EPERM, -1, getsockopt(__VA_ARGS__))
#define fcntl(...)	FAIL("fcntl", EMFILE, -1, fcntl(__VA_ARGS__))
#define send(...)	FAIL("send", EHOSTUNREACH, -1, send(__VA_ARGS__))
#define recv(...)	FAIL("recv", EHOSTUNREACH, -1, recv(__VA_ARGS__))
#define poll(...)	FAIL("poll", ENOMEM, -1, poll(__VA_ARGS__))
#define epoll_create1(f) FAIL("epoll_create1", EMFILE, -1, epoll_create1(f))
#define epoll_ctl(...)	FAIL("epoll_ctl", ENOSPC, -1, epoll_ctl(__VA_ARGS__))
#define eventfd(n, f)	FAIL("eventfd", EMFILE, -1, eventfd(n, f))
#define timerfd_create(c, f) FAIL("timerfd_create", EMFILE, -1, timerfd_create(c, f))

/* By a pointer: what is called has to look whether it is to fail */
#define VIA(name, first, ...)						\
	name(((void)SITE(#name), (first)), ##__VA_ARGS__)

#define SITES_VERBS	20	/* and 4 that cannot fail */
#define get_device_list(...)	VIA(get_device_list, __VA_ARGS__)
#define open_device(...)	VIA(open_device, __VA_ARGS__)
#define close_device(...)	VIA(close_device, __VA_ARGS__)
#define query_device(...)	VIA(query_device, __VA_ARGS__)
#define query_port(...)		VIA(query_port, __VA_ARGS__)
#define query_gid(...)		VIA(query_gid, __VA_ARGS__)
#define query_gid_ex(...)	VIA(query_gid_ex, __VA_ARGS__)
#define alloc_pd(...)		VIA(alloc_pd, __VA_ARGS__)
#define dealloc_pd(...)		VIA(dealloc_pd, __VA_ARGS__)
#define reg_mr(...)		VIA(reg_mr, __VA_ARGS__)
#define reg_dmabuf_mr(...)	VIA(reg_dmabuf_mr, __VA_ARGS__)
#define dereg_mr(...)		VIA(dereg_mr, __VA_ARGS__)
#define create_comp_channel(...) VIA(create_comp_channel, __VA_ARGS__)
#define destroy_comp_channel(...) VIA(destroy_comp_channel, __VA_ARGS__)
#define create_cq(...)		VIA(create_cq, __VA_ARGS__)
#define destroy_cq(...)		VIA(destroy_cq, __VA_ARGS__)
#define get_cq_event(...)	VIA(get_cq_event, __VA_ARGS__)
#define create_qp(...)		VIA(create_qp, __VA_ARGS__)
#define modify_qp(...)		VIA(modify_qp, __VA_ARGS__)
#define destroy_qp(...)		VIA(destroy_qp, __VA_ARGS__)

#define ibv_poll_cq(...)	VIA(ibv_poll_cq, __VA_ARGS__)
#define ibv_req_notify_cq(...)	VIA(ibv_req_notify_cq, __VA_ARGS__)
#define ibv_post_send(...)	VIA(ibv_post_send, __VA_ARGS__)
#define ibv_post_recv(...)	VIA(ibv_post_recv, __VA_ARGS__)

#define SITES_MR	5	/* of them, three have the names above */
#define reg_mr_iova(...)	VIA(reg_mr_iova, __VA_ARGS__)
#define reg_mr_iova2(...)	VIA(reg_mr_iova2, __VA_ARGS__)

#define SITES_CUDA	18
#define pointer_get(...)	VIA(pointer_get, __VA_ARGS__)
#define ctx_push(...)		VIA(ctx_push, __VA_ARGS__)
#define ctx_pop(...)		VIA(ctx_pop, __VA_ARGS__)
#define device_get(...)		VIA(device_get, __VA_ARGS__)
#define device_attribute(...)	VIA(device_attribute, __VA_ARGS__)
#define primary_retain(...)	VIA(primary_retain, __VA_ARGS__)
#define primary_release(...)	VIA(primary_release, __VA_ARGS__)
#define error_name(...)		VIA(error_name, __VA_ARGS__)
#define pointer_set(...)		VIA(pointer_set, __VA_ARGS__)
#define range_handle(...)	VIA(range_handle, __VA_ARGS__)
#define host_alloc(...)		VIA(host_alloc, __VA_ARGS__)
#define host_free(...)		VIA(host_free, __VA_ARGS__)
#define copy_to_gpu(...)	VIA(copy_to_gpu, __VA_ARGS__)
#define copy_from_gpu(...)	VIA(copy_from_gpu, __VA_ARGS__)
#define stream_create(...)	VIA(stream_create, __VA_ARGS__)
#define stream_destroy(...)	VIA(stream_destroy, __VA_ARGS__)
#define stream_wait(...)	VIA(stream_wait, __VA_ARGS__)
#define flush_writes(...)	VIA(flush_writes, __VA_ARGS__)

/* A function that is new in one of the lists needs its line above */
#define SITES_X(...)	+ 1
_Static_assert(0 VERBS_FUNCTIONS(SITES_X) == SITES_VERBS + 4, "verbs.h");
_Static_assert(0 MR_VERBS_FUNCTIONS(SITES_X) == SITES_MR, "mr_inside.h");
_Static_assert(0 MR_CUDA_FUNCTIONS(SITES_X) == SITES_CUDA, "mr_inside.h");

#endif
