/* SPDX-License-Identifier: MIT */
/*
 * libibverbs, found at run time: the tool has to start on hosts without it.
 * Functions on the data path (ibv_post_send, ibv_poll_cq) are inline in
 * <infiniband/verbs.h> and go through the device's own table; those that the
 * library exports are members of `verbs`.
 */
#ifndef PEERLANE_VERBS_H
#define PEERLANE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_FUNCTIONS(X) \
	X(struct ibv_device **, get_device_list, (int *)) \
	X(void, free_device_list, (struct ibv_device **)) \
	X(const char *, get_device_name, (struct ibv_device *)) \
	X(struct ibv_context *, open_device, (struct ibv_device *)) \
	X(int, close_device, (struct ibv_context *)) \
	X(int, query_device, (struct ibv_context *, struct ibv_device_attr *)) \
	X(int, query_port, (struct ibv_context *, uint8_t, \
			    struct ibv_port_attr *)) \
	X(struct ibv_pd *, alloc_pd, (struct ibv_context *)) \
	X(int, dealloc_pd, (struct ibv_pd *)) \
	X(struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int)) \
	X(struct ibv_mr *, reg_dmabuf_mr, (struct ibv_pd *, uint64_t, size_t, \
					   uint64_t, int, int)) \
	X(int, dereg_mr, (struct ibv_mr *)) \
	X(struct ibv_cq *, create_cq, (struct ibv_context *, int, void *, \
				       struct ibv_comp_channel *, int)) \
	X(int, destroy_cq, (struct ibv_cq *)) \
	X(struct ibv_qp *, create_qp, (struct ibv_pd *, \
				       struct ibv_qp_init_attr *)) \
	X(int, destroy_qp, (struct ibv_qp *)) \
	X(int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int)) \
	X(const char *, wc_status_str, (enum ibv_wc_status))

struct verbs {
#define X(type, name, args) type (*name) args;
	VERBS_FUNCTIONS(X)
#undef X
	/* not by its macro's name */
	ssize_t (*query_gid_table)(struct ibv_context *,
				   struct ibv_gid_entry *, size_t, uint32_t,
				   size_t);
};

extern struct verbs verbs;

/* Loads the library, once; false: @why tells what is missing. */
bool verbs_load(char *why, size_t size);

/* A device that is open, with one port of it. */
struct verbs_port {
	struct ibv_context *ctx;
	char device[64];
	uint8_t port;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint32_t gid_index;
	bool roce;
	bool software;		/* no PCI device below it: rxe, siw */
};

/*
 * Opens @device (NULL: the first one with an active port), its port @port (0:
 * the first active one), and picks a GID: @gid_index, or with -1 RoCE v2 of an
 * IPv4 address, then any RoCE v2.  False: @why tells it all.
 */
bool verbs_open(struct verbs_port *p, const char *device, unsigned int port,
		int gid_index, char *why, size_t size);
void verbs_close(struct verbs_port *p);

/* Bytes of a path MTU */
static inline unsigned int verbs_mtu(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

#endif
