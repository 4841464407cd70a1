/* SPDX-License-Identifier: MIT */
/*
 * libibverbs.so.1, found at run time: a program that never uses RDMA needs
 * none.  What the header has as inline functions (post, poll, request for
 * notification) goes through the context's own table and needs nothing here.
 */
#ifndef PLN_CORE_VERBS_H
#define PLN_CORE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* X(required, member, symbol, result, arguments) */
#define VERBS_FUNCTIONS(X) \
	X(1, get_device_list, "ibv_get_device_list", \
	  struct ibv_device **, (int *)) \
	X(1, free_device_list, "ibv_free_device_list", void, \
	  (struct ibv_device **)) \
	X(1, get_device_name, "ibv_get_device_name", const char *, \
	  (struct ibv_device *)) \
	X(1, open_device, "ibv_open_device", struct ibv_context *, \
	  (struct ibv_device *)) \
	X(1, close_device, "ibv_close_device", int, (struct ibv_context *)) \
	X(1, query_device, "ibv_query_device", int, \
	  (struct ibv_context *, struct ibv_device_attr *)) \
	X(1, query_port, "ibv_query_port", int, \
	  (struct ibv_context *, uint8_t, struct ibv_port_attr *)) \
	X(1, query_gid, "ibv_query_gid", int, \
	  (struct ibv_context *, uint8_t, int, union ibv_gid *)) \
	X(0, query_gid_ex, "_ibv_query_gid_ex", int, \
	  (struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, \
	   uint32_t, size_t)) \
	X(1, alloc_pd, "ibv_alloc_pd", struct ibv_pd *, \
	  (struct ibv_context *)) \
	X(1, dealloc_pd, "ibv_dealloc_pd", int, (struct ibv_pd *)) \
	X(1, reg_mr, "ibv_reg_mr", struct ibv_mr *, \
	  (struct ibv_pd *, void *, size_t, int)) \
	X(0, reg_dmabuf_mr, "ibv_reg_dmabuf_mr", struct ibv_mr *, \
	  (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int)) \
	X(1, dereg_mr, "ibv_dereg_mr", int, (struct ibv_mr *)) \
	X(1, create_comp_channel, "ibv_create_comp_channel", \
	  struct ibv_comp_channel *, (struct ibv_context *)) \
	X(1, destroy_comp_channel, "ibv_destroy_comp_channel", int, \
	  (struct ibv_comp_channel *)) \
	X(1, create_cq, "ibv_create_cq", struct ibv_cq *, \
	  (struct ibv_context *, int, void *, struct ibv_comp_channel *, int)) \
	X(1, destroy_cq, "ibv_destroy_cq", int, (struct ibv_cq *)) \
	X(1, get_cq_event, "ibv_get_cq_event", int, \
	  (struct ibv_comp_channel *, struct ibv_cq **, void **)) \
	X(1, ack_cq_events, "ibv_ack_cq_events", void, \
	  (struct ibv_cq *, unsigned int)) \
	X(1, create_qp, "ibv_create_qp", struct ibv_qp *, \
	  (struct ibv_pd *, struct ibv_qp_init_attr *)) \
	X(1, modify_qp, "ibv_modify_qp", int, \
	  (struct ibv_qp *, struct ibv_qp_attr *, int)) \
	X(1, destroy_qp, "ibv_destroy_qp", int, (struct ibv_qp *)) \
	X(1, wc_status_str, "ibv_wc_status_str", const char *, \
	  (enum ibv_wc_status))

struct verbs_lib {
	bool loaded;
#define PLN_X(required, member, symbol, result, args) result (*member) args;
	VERBS_FUNCTIONS(PLN_X)
#undef PLN_X
};

extern struct verbs_lib verbs_lib;

/* ---- verbs_port.c: 0, or -errno with the reason in @why ---- */

/* An open device, a port of it and an address there */
struct verbs_port {
	struct ibv_context *ctx;
	char device[64];
	uint8_t port;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint32_t gid_index;
};

/*
 * Opens @device and takes its port @port, or of any device (NULL) the first one
 * that has such a port, active; 0: any port.  -ENETDOWN: it is not active.  Of
 * any device the error of one that cannot be opened or asked goes before that.
 */
int verbs_open(struct verbs_port *p, const char *device, uint32_t port, char *why,
	       size_t size);
void verbs_close(struct verbs_port *p);
/* The same of a device that is open */
int verbs_choose_port(struct verbs_port *p, uint32_t wanted, char *why,
		      size_t size);
/* The GID in that place, or with -1 the best, see below; @v2: on Ethernet that must
 * be one of RoCE v2 */
int verbs_choose_gid(struct verbs_port *p, int wanted, bool v2, char *why,
		     size_t size);
/* The best that a port has, of RoCE v2: ipv4, ipv6, link-local, else other, none;
 * and its place in the table, -1: none.  On InfiniBand all are other. */
const char *verbs_gid_kind(struct ibv_context *ctx, uint8_t port,
			   const struct ibv_port_attr *attr, int *index);

/* Of one try, about two seconds: shorter ones make soft-RoCE repeat itself on a
 * busy machine.  And not 7 tries more, which it takes for "without end". */
#define VERBS_TIMEOUT	19
#define VERBS_RETRIES	6

/* From a port to a queue pair of the peer */
struct verbs_way {
	uint32_t qpn, psn, lid, own_psn;
	enum ibv_mtu mtu;		/* of the peer's port */
	const uint8_t *gid;
	uint8_t sl, reads, reads_answered, timeout, retries, rnr_retries;
	uint8_t min_rnr_timer;
};

int verbs_qp_init(struct ibv_qp *qp, const struct verbs_port *p,
		  unsigned int access, char *why, size_t size);
/* Ready to receive and to send */
int verbs_qp_connect(struct ibv_qp *qp, const struct verbs_port *p,
		     const struct verbs_way *to, char *why, size_t size);

/* The smaller of both ports' MTUs */
static inline enum ibv_mtu verbs_mtu(const struct verbs_port *p, enum ibv_mtu peer)
{
	return peer < p->attr.active_mtu ? peer : p->attr.active_mtu;
}

static inline unsigned int verbs_mtu_bytes(unsigned int mtu)
{
	return 128u << mtu;
}

/*
 * The way to a port of the peer: on Ethernet by its GID; on InfiniBand by its LID,
 * and with its GID, too, where the port wants that.  The service level is 0, as
 * that of most programs.
 */
void verbs_address(struct ibv_ah_attr *ah, uint8_t port,
		   const struct ibv_port_attr *attr, uint32_t gid_index,
		   uint32_t peer_lid, const uint8_t peer_gid[16]);

/* Does one lead from this port to that of the peer?  NULL, or why none does. */
const char *verbs_apart(const struct ibv_port_attr *attr,
			const union ibv_gid *gid, bool peer_ethernet,
			const uint8_t peer_gid[16]);

/* Load it once; 0, or -ENOENT/-ENOSYS with the reason in @why.  Any thread. */
int verbs_load(char *why, size_t size);

/*
 * What a function of libibverbs failed with, as a negative errno and never 0:
 * @result, if that is an errno; else errno, as after a NULL, or the -1 that
 * some devices' parts of libibverbs return.
 */
int verbs_errno(int result);

#endif
