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
extern struct ibv_port_attr fake_port;	/* of its active port, the last one */
extern uint8_t fake_ports;
extern struct ibv_ah_attr fake_path;	/* of the last queue pair that was connected */
extern unsigned int fake_ipv4_gid;	/* index of that GID; 0xff: there is none */
extern enum ibv_wc_status fake_next_status;	/* of the next send */

void fake_install(void);
unsigned int fake_run(unsigned int n);	/* returns how much work was done */
unsigned int fake_held(void);
void fake_send_raw(uint32_t to_qpn, const void *data, uint32_t length);
struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access);
int fake_dereg_mr(struct ibv_mr *mr);
/* Ends what the device refused to give up, and returns how much that was */
unsigned int fake_reap(void);

#endif
