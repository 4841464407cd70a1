/* SPDX-License-Identifier: MIT */
/*
 * patience.so: to be preloaded by RDMA programs of others in a guest.
 *
 * Many give their queue pairs the 67 ms of an example to be acknowledged.  An
 * emulated machine on a busy computer is slower than that, so they send again
 * what was not lost, hundreds of times.  Here they wait for at least 2 s.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>

#define TWO_SECONDS 19	/* 4.096 us << 19 */

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*modify)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	struct ibv_qp_attr patient = *attr;

	*(void **)&modify = dlsym(RTLD_NEXT, "ibv_modify_qp");
	/* The library may be one that a plugin has brought, for itself alone */
	if (!modify) {
		void *verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

		if (!verbs)
			return ENOSYS;
		*(void **)&modify = dlsym(verbs, "ibv_modify_qp");
		dlclose(verbs);	/* the plugin has it */
		if (!modify)
			return ENOSYS;
	}
	/* 0 is for ever */
	if (mask & IBV_QP_TIMEOUT && attr->timeout && attr->timeout < TWO_SECONDS)
		patient.timeout = TWO_SECONDS;
	return modify(qp, &patient, mask);
}
