/* SPDX-License-Identifier: MIT */
/*
 * Where GPUs, NICs and NVMe drives sit in the PCI Express tree, how far two of
 * them are apart, and which way a transfer between them goes.
 *
 * Only reads, and works for any user; without root, config spaces can be read
 * in part only, and what depends on them is PLN_VERDICT_UNKNOWN.
 *
 * A handle is a snapshot; open another one to look again.  One handle is for
 * one thread at a time; different handles are independent.
 */
#ifndef PEERLANE_TOPO_H
#define PEERLANE_TOPO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pln_topo;

enum pln_topo_kind {
	PLN_TOPO_GPU = 1,
	PLN_TOPO_NIC = 2,
	PLN_TOPO_NVME = 3,
};

/* How far apart, nearest first */
enum pln_relation {
	PLN_RELATION_SELF = 0,	/* X: the same device */
	PLN_RELATION_PIX = 1,	/* one switch, or one slot, in common */
	PLN_RELATION_PXB = 2,	/* more switches, but no host bridge */
	PLN_RELATION_PHB = 3,	/* one host bridge */
	PLN_RELATION_NODE = 4,	/* host bridges of one NUMA node */
	PLN_RELATION_SYS = 5,	/* NUMA nodes */
};

/* Which way data goes between two devices */
enum pln_verdict {
	PLN_VERDICT_UNKNOWN = 0,	/* a fact is missing; the reason says */
	PLN_VERDICT_DIRECT = 1,		/* below the root complex */
	PLN_VERDICT_ROOT_COMPLEX = 2,	/* up to it and down again */
	PLN_VERDICT_STAGED = 3,		/* through host memory */
};

/**
 * struct pln_topo_device - one device
 * @size: in: sizeof(struct pln_topo_device)
 * @kind: enum pln_topo_kind
 * @label: "GPU0": kinds are numbered by PCI address
 * @address: PCI address, "0000:01:00.0"
 * @name: what the system calls it, "mlx5_0", "nvme0"; empty if nothing
 * @driver: of the kernel; empty if none is bound
 * @vendor: PCI vendor id
 * @device: PCI device id
 * @numa_node: -1 if the system does not say
 * @reserved: 0
 */
struct pln_topo_device {
	uint32_t size;
	uint32_t kind;
	char label[16];
	char address[16];
	char name[32];
	char driver[32];
	uint16_t vendor;
	uint16_t device;
	int32_t numa_node;
	uint64_t reserved[4];
};

#define PLN_TOPO_REASON_MAX	512

/**
 * struct pln_topo_pair - what lies between two devices
 * @size: in: sizeof(struct pln_topo_pair)
 * @relation: enum pln_relation
 * @verdict: enum pln_verdict
 * @distance: links on the way, as the kernel counts them; 4 below one switch
 * @reserved: 0
 * @reason: what decides the verdict
 */
struct pln_topo_pair {
	uint32_t size;
	uint32_t relation;
	uint32_t verdict;
	uint32_t distance;
	uint64_t reserved[4];
	char reason[PLN_TOPO_REASON_MAX];
};

/**
 * pln_topo_open - look at this machine, or at a record of one
 * @topo: out: the handle, to be closed with pln_topo_close()
 * @record: file name of a peerlane-record(5); NULL for this machine
 *
 * Returns 0, or -ENOENT or another errno of open(2) for @record, -EBADMSG for
 * a mistake in it, -ENODEV without a PCI bus, -EINVAL, -ENOMEM.  Since 0.1.
 */
int pln_topo_open(struct pln_topo **topo, const char *record);

/**
 * pln_topo_close - give a handle back
 * @topo: may be NULL
 *
 * Since 0.1.
 */
void pln_topo_close(struct pln_topo *topo);

/**
 * pln_topo_count - number of GPUs, NICs and NVMe drives
 * @topo: the handle
 *
 * They have the indices 0 to one less: GPUs first, then NICs, then NVMe, each
 * by PCI address.  Returns the number, or -EINVAL.  Since 0.1.
 */
int pln_topo_count(const struct pln_topo *topo);

/**
 * pln_topo_info - what is known about a device
 * @topo: the handle
 * @index: of the device
 * @info: in: its size; out: the rest
 *
 * Returns 0, or -EINVAL: no handle, no structure or its size is another;
 * -ERANGE: no such device.  Since 0.1.
 */
int pln_topo_info(const struct pln_topo *topo, unsigned int index,
		  struct pln_topo_device *info);

/**
 * pln_topo_between - what lies between two devices
 * @topo: the handle
 * @a: index of the one
 * @b: index of the other, may be the same
 * @pair: in: its size; out: the rest
 *
 * The order does not matter.  Returns as pln_topo_info().  Since 0.1.
 */
int pln_topo_between(const struct pln_topo *topo, unsigned int a,
		     unsigned int b, struct pln_topo_pair *pair);

/**
 * pln_topo_nearest - the GPU that is nearest to a file or a device
 * @topo: the handle
 * @what: a path with a slash in it: a file, folder or block device of this
 *	machine; or a PCI address, a label, or a name such as "nvme0n1"
 * @reason: out: why this one, or what is wrong; may be NULL
 * @size: of @reason; PLN_TOPO_REASON_MAX is enough
 *
 * The best verdict wins (unknown counts as direct), then the nearest relation,
 * then the shortest way, then the lowest number.  For a file on several drives
 * the worst of them counts.
 *
 * Returns the index of the GPU; or -ENODEV: there is no GPU; -ENOENT: there is
 * no such file or device; -ENOTBLK: the file is on no drive of this machine
 * that is a PCI device; -EINVAL; -EOPNOTSUPP: a path, and this is a record;
 * another errno of stat(2).  Since 0.1.
 */
int pln_topo_nearest(struct pln_topo *topo, const char *what, char *reason,
		     size_t size);

/**
 * pln_relation_name - "X", "PIX", "PXB", "PHB", "NODE", "SYS"
 * @relation: enum pln_relation
 *
 * Returns a text of the library, "?" for any other number.  Since 0.1.
 */
const char *pln_relation_name(unsigned int relation);

/**
 * pln_verdict_name - "unknown", "direct", "root-complex", "staged"
 * @verdict: enum pln_verdict
 *
 * Returns a text of the library, "?" for any other number.  Since 0.1.
 */
const char *pln_verdict_name(unsigned int verdict);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_TOPO_H */
