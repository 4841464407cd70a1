/* SPDX-License-Identifier: MIT */
/* peerlane doctor, inside: the parts of what it says about RDMA. */
#ifndef PEERLANE_DOCTOR_RDMA_H
#define PEERLANE_DOCTOR_RDMA_H

#include "doctor.h"

#define RDMA_CLASS	"/sys/class/infiniband"

/* ---- ports.c ---- */
/* Notes each port of @device. */
void doc_look_ports(struct doctor *d, const char *device);
void doc_check_ports(struct doctor *d, const struct rule *r);
void doc_check_mtus(struct doctor *d, const struct rule *r);
void doc_check_gids(struct doctor *d, const struct rule *r);

#endif
