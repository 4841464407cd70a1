/* SPDX-License-Identifier: MIT */
/*
 * The PCI Express tree around GPUs, NICs and NVMe drives: what the library's
 * pln_topo_*() and the tools see of it.  topo.c reads it, topo_rules.c judges.
 */
#ifndef PEERLANE_CORE_TOPO_H
#define PEERLANE_CORE_TOPO_H

#include <stdbool.h>
#include <stdint.h>

#include "facts.h"
#include "peerlane/topo.h"

/* Peerlane's own devices */
enum {
	TOPO_OURS = 0x1234,	/* vendor */
	TOPO_OUR_GPU = 0x9e71,
	TOPO_OUR_UPSTREAM = 0x9e72,
	TOPO_OUR_DOWNSTREAM = 0x9e73,
};

enum topo_port {
	TOPO_ENDPOINT,
	TOPO_ROOT_PORT,
	TOPO_UPSTREAM,		/* of a switch */
	TOPO_DOWNSTREAM,	/* of a switch */
	TOPO_BRIDGE,		/* any other */
};

struct topo_host {		/* a host bridge and its root bus */
	char name[24];		/* "pci0000:00" */
	uint16_t vendor, device; /* of the device that the kernel looks up */
	bool known;		/* there is such a device */
};

/* A PCI function: a device of interest, or a bridge above one */
struct topo_node {
	char address[16];	/* "0000:01:00.0" */
	int parent;		/* index of the bridge above, -1: root bus */
	int host;		/* index */
	enum topo_port port;
	bool port_guessed;	/* from its place, its config is out of reach */
	uint16_t vendor, device;
	uint32_t class;		/* 0x030200 */
	int numa;		/* -1: not said */
	int acs_error;		/* 0, or -errno: whether there is ACS is not
				 * known */
	uint16_t acs_cap;	/* 0: no ACS capability */
	uint16_t acs_ctrl;
	unsigned int vsec;	/* where our switch's counters are, or 0 */
	int group;		/* IOMMU group, -1: none */
	enum pln_iommu iommu;
	char driver[32];
	char speed[24], max_speed[24];	/* "16.0 GT/s PCIe" */
	int width, max_width;		/* lanes, 0: not said */
};

struct topo_dev {		/* in the order of pln_topo_info() */
	enum pln_topo_kind kind;
	char label[16];
	int node;
	char name[32];		/* mlx5_0, nvme0 */
	char **drives;		/* NVMe: "nvme0n1", ..., then NULL */
};

struct topo {
	struct facts *facts;
	struct topo_host *host;
	struct topo_node *node;	/* parents before children */
	struct topo_dev *dev;
	int hosts, nodes, devs;
	char kernel[65];	/* release */
	int p2pdma;		/* 1 on, 0 off, -1 not known */
	char p2pdma_source[128];
	bool p2pdma_old;	/* off for drives: it is for kernel users alone,
				 * not for reads into mapped memory */
	int zen;		/* AMD Zen or later: 1, 0, -1 not known */
	char cpu[64];		/* vendor and family */
	bool nvidia_fs;		/* the module is there */
	int failed;		/* while it is built: memory ran out */
	/* What could not be read, one line each, then NULL */
	char **missing;
};

/* Reads the first @len bytes of a config space into @n: port type, ACS, where
 * our switch has its counters.  0, or -errno if they do not tell it all:
 * -EACCES with the 64 bytes that everybody gets. */
int topo_config(struct topo_node *n, const unsigned char *c, size_t len);

/* Is it a PCI address, 0000:01:00.0? */
bool topo_is_address(const char *s);

/* A block device, or a controller of a drive that has several */
struct topo_block {
	char name[64];		/* as in /sys/class/block */
	char part[64];		/* the partition of it that something stands on, or "" */
	const char *kind;	/* nvme, nvme-head (multipath), nvme-fabric, md,
				 * dm, loop, other */
	char detail[64];	/* of md its level; of dm LVM, CRYPT, mpath... */
	char address[16];	/* nvme: of its controller */
};

/*
 * That whose canonical folder is @sysfs and those that it stands on, from top to
 * bottom; of partitions their disks.  0, or -errno: -ELOOP, it goes round;
 * -E2BIG, there are too many; memory or files ran out; else @each has those that
 * could be read, and this is what another could not be read for.
 */
int topo_blocks(struct facts *f, const char *sysfs,
		void (*each)(void *arg, const struct topo_block *b), void *arg);

/* @f stays the caller's, and must stay open; 0 or -errno. */
int topo_build(struct topo **t, struct facts *f);
void topo_free(struct topo *t);

/* Index of the common bridge of two nodes, -1 if there is none. */
int topo_common(const struct topo *t, int a, int b);
void topo_pair(const struct topo *t, int a, int b, struct pln_topo_pair *pair);
/* The same by the kernel's P2PDMA, whoever's drivers they have; what is not known counts
 * only if it matters */
void topo_p2pdma(const struct topo *t, int a, int b, struct pln_topo_pair *pair);
/* The bridges of a path on which ACS redirects peers, with the ends: indices
 * of nodes; how many, at most @max are written. */
int topo_redirects(const struct topo *t, int a, int b, int *nodes, int max);
/* The nearest GPU to a device by its index; -ENODEV. */
int topo_nearest(const struct topo *t, const int *devs, int n, char *reason,
		 size_t size);
/* Indices of the devices behind a name or, live only, a path: number or
 * -errno. */
int topo_find(struct topo *t, const char *what, int *devs, int max);
/* Both: the nearest GPU, or -errno and what is wrong in @reason. */
int topo_near(struct topo *t, const char *what, char *reason, size_t size);

const char *topo_port_name(enum topo_port port);	/* "root port" */
/* "SV+ TB- ...": of a control or capability word, into @buf; @buf. */
const char *topo_acs_text(uint16_t word, char *buf, size_t size);

/* Is it on the kernel's list?  hosts.c */
bool topo_host_allowed(uint16_t vendor, uint16_t device, bool same);
extern const char topo_host_list[];	/* "Linux 7.2" */

#endif
