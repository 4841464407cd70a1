/* SPDX-License-Identifier: MIT */
/*
 * An RDMA device in this process, instead of libibverbs: queue pairs, memory
 * regions with keys, RDMA writes and sends, completion queues with events.
 * Work is done when it is posted, or, while fake_hold is set, by fake_run().
 * All objects are counted, and every function can be made to fail.
 */
#ifndef PLN_CORE_TEST_FAKE_NIC_H
#define PLN_CORE_TEST_FAKE_NIC_H

#include "../verbs.h"

extern bool fake_hold;		/* queue what is posted */
extern unsigned int fake_fail_at;	/* this call fails; 1 is the next */
extern __thread bool fake_due;	/* the next call of this thread fails */
extern bool fake_minus_one;	/* it returns -1 for it, with errno */
extern int fake_dereg_errno;	/* of all deregistrations */
extern int fake_objects;	/* that exist */
extern unsigned int fake_devices;	/* 1, or 2: fake1, too */
extern int fake_open_errno;	/* of fake0: it cannot be opened */
extern unsigned int fake_ports;	/* 1, or 2 */
extern struct ibv_port_attr fake_port, fake_port2;
extern uint8_t fake_subnet2;	/* in the link-local GID of port 2 */
extern unsigned int fake_ipv4_gid;	/* index of that GID; 0xff: there is none */
extern enum ibv_wc_status fake_next_status;	/* of the next send */

void fake_install(void);
/* With what a queue pair was brought to the state in which it receives, then to
 * that in which it sends */
const struct ibv_qp_attr *fake_rtr(struct ibv_qp *qp);
const struct ibv_qp_attr *fake_rts(struct ibv_qp *qp);
unsigned int fake_run(unsigned int n);	/* returns how much work was done */
unsigned int fake_held(void);
void fake_send_raw(uint32_t to_qpn, const void *data, uint32_t length);
struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access);
int fake_dereg_mr(struct ibv_mr *mr);
/* Ends what the device refused to give up, and returns how much that was */
unsigned int fake_reap(void);

#endif
