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
	/* Bridges, which pln_topo_above() finds */
	PLN_TOPO_ROOT_PORT = 4,
	PLN_TOPO_UPSTREAM = 5,		/* port of a switch */
	PLN_TOPO_DOWNSTREAM = 6,	/* port of a switch */
	PLN_TOPO_BRIDGE = 7,		/* any other */
};

/* What the IOMMU does with the addresses of a device's DMA */
enum pln_iommu {
	PLN_IOMMU_UNKNOWN = 0,
	PLN_IOMMU_OFF = 1,		/* there is none, or none for this device */
	PLN_IOMMU_PASSTHROUGH = 2,
	PLN_IOMMU_TRANSLATED = 3,
};

/* Access Control Services, which can send a port's peers past each other */
enum pln_acs {
	PLN_ACS_UNKNOWN = 0,		/* root can read it */
	PLN_ACS_NONE = 1,
	PLN_ACS_PRESENT = 2,		/* the device or port has it */
};

/* Bits of @acs_capability and @acs_control, as PCI Express numbers them */
enum {
	PLN_ACS_SV = 0x01,
	PLN_ACS_TB = 0x02,
	PLN_ACS_RR = 0x04,
	PLN_ACS_CR = 0x08,
	PLN_ACS_UF = 0x10,
	PLN_ACS_EC = 0x20,
	PLN_ACS_DT = 0x40,
	/* Any of these on, and the kernel takes the port's peers as redirected */
	PLN_ACS_REDIRECT = PLN_ACS_RR | PLN_ACS_CR | PLN_ACS_EC,
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
 * struct pln_topo_device - one device, or a bridge above one
 * @size: in: sizeof(struct pln_topo_device)
 * @kind: enum pln_topo_kind; of a bridge a guess by its place where @acs is
 *	PLN_ACS_UNKNOWN
 * @label: "GPU0": kinds are numbered by PCI address; empty for a bridge
 * @address: PCI address, "0000:01:00.0"
 * @name: what the system calls it, "mlx5_0", "nvme0"; empty if nothing
 * @driver: of the kernel; empty if none is bound
 * @vendor: PCI vendor id
 * @device: PCI device id
 * @numa_node: -1 if the system does not say
 * @link_speed: of a lane of the link above it, now, in million transfers for each
 *	second: 16000 is 16 GT/s; 0 if the system does not say
 * @max_link_speed: what the device can do
 * @link_width: lanes of that link, now; 0 if the system does not say
 * @max_link_width: what the device has
 * @iommu: enum pln_iommu
 * @iommu_group: of the kernel, -1 if it is in none
 * @acs: enum pln_acs
 * @acs_capability: bits that can be on, PLN_ACS_SV and so on; 0 without ACS
 * @acs_control: bits that are on
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
	uint32_t link_speed;
	uint32_t max_link_speed;
	uint32_t link_width;
	uint32_t max_link_width;
	uint32_t iommu;
	int32_t iommu_group;
	uint32_t acs;
	uint16_t acs_capability;
	uint16_t acs_control;
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
 * pln_topo_open - read the PCI Express tree of a machine
 * @topo: out: the handle, to be closed with pln_topo_close()
 * @record: file name of a peerlane-record(5); NULL for this machine
 *
 * Reads the places of the GPUs, RDMA NICs and NVMe drives in the PCI Express tree
 * of this machine, or of the machine of @record, a peerlane-record(5), and sets
 * *topo to a handle for the other functions. The handle is a
 * snapshot. It is for one thread at a time; different handles are independent.
 * It works for any user; facts that only root can read are then unknown.
 *
 * Return: 0, or a negative errno; then *topo is unchanged.
 *
 * -EINVAL: @topo is NULL.
 * -ENODEV: The machine has no PCI bus.
 * -EBADMSG: @record contains an error.
 * -ENOENT, -EACCES, ...: @record cannot be opened.
 * -ENODATA: @record does not contain the devices of its machine.
 * -ENOMEM: Out of memory.
 *
 * Example:
 *
 *	struct pln_topo *t;
 *	int err = pln_topo_open(&t, NULL);
 *
 *	if (err)
 *		return err;
 *	printf("%d devices\n", pln_topo_count(t));
 *	pln_topo_close(t);
 *
 * Since 0.1.
 *
 * See also: pln_topo_close(), pln_topo_info(), pln_topo_between(),
 * pln_topo_nearest(), peerlane-topo(1)
 */
int pln_topo_open(struct pln_topo **topo, const char *record);

/**
 * pln_topo_close - free the handle of a PCI Express tree
 * @topo: may be NULL
 *
 * Frees the handle of pln_topo_open(). @topo may be NULL.
 *
 * Since 0.1.
 *
 * See also: pln_topo_open()
 */
void pln_topo_close(struct pln_topo *topo);

/**
 * pln_topo_count - the number of GPUs, NICs and NVMe drives
 * @topo: the handle
 *
 * The devices have the indices from 0 to one less than this number: GPUs
 * first, then RDMA NICs, then NVMe drives, each by PCI address. Virtual
 * functions are omitted.
 *
 * Return: The number, or a negative errno.
 *
 * -EINVAL: @topo is NULL.
 *
 * Since 0.1.
 *
 * See also: pln_topo_open(), pln_topo_info()
 */
int pln_topo_count(const struct pln_topo *topo);

/**
 * pln_topo_info - get the facts about a device of a PCI Express tree
 * @topo: the handle
 * @index: of the device
 * @info: in: its size; out: the rest
 *
 * Fills @info for the device @index: its names, its NUMA node, the link above
 * it, its IOMMU mode, and its ACS bits. The caller sets
 * @info->size to sizeof(struct pln_topo_device).
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @topo or @info is NULL, or its size is less than that of version 0.1.
 * -ERANGE: There is no device of this index.
 *
 * Example:
 *
 *	struct pln_topo_device d = { .size = sizeof(d) };
 *
 *	for (int i = 0; !pln_topo_info(t, i, &d); i++)
 *		printf("%s is %s\n", d.label, d.address);
 *
 * Since 0.1.
 *
 * See also: pln_topo_count(), pln_topo_above(), pln_topo_between(), pln_iommu_name()
 */
int pln_topo_info(const struct pln_topo *topo, unsigned int index,
		  struct pln_topo_device *info);

/**
 * pln_topo_above - get the facts about a bridge above a device
 * @topo: the handle
 * @index: of the device
 * @level: 0: the bridge that the device is below, 1: the one above that, and so on
 * @info: in: its size; out: the rest
 *
 * Fills @info for one of the bridges between the device @index and its host
 * bridge: root ports, ports of switches and others. The caller sets
 * @info->size to sizeof(struct pln_topo_device). For two devices below
 * the same bridge the address of the bridge is the same.
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @topo or @info is NULL, or its size is less than that of version 0.1.
 * -ERANGE: There is no device of this index, or no bridge of this level.
 *
 * Example:
 *
 *	struct pln_topo_device b = { .size = sizeof(b) };
 *
 *	for (int i = 0; !pln_topo_above(t, gpu, i, &b); i++)
 *		if (b.acs_control & PLN_ACS_REDIRECT)
 *			printf("%s redirects\n", b.address);
 *
 * Since 0.1.
 *
 * See also: pln_topo_info(), pln_topo_between(), pln_iommu_name()
 */
int pln_topo_above(const struct pln_topo *topo, unsigned int index,
		   unsigned int level, struct pln_topo_device *info);

/**
 * pln_topo_between - get the relation of two devices, and the path of data between them
 * @topo: the handle
 * @a: index of the one
 * @b: index of the other, may be the same
 * @pair: in: its size; out: the rest
 *
 * Fills @pair for the devices of indices @a and @b, in any order. The caller
 * sets @pair->size to sizeof(struct pln_topo_pair).
 *
 * @relation is PLN_RELATION_SELF, PIX, PXB, PHB,
 * NODE or SYS; @distance is the number of links between them as the kernel
 * counts it. @verdict is PLN_VERDICT_DIRECT (below the root complex),
 * ROOT_COMPLEX (up to it and down again), STAGED (through host memory) or
 * UNKNOWN, and @reason is the reason for it. peerlane-topo(1) explains both.
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @topo or @pair is NULL, or its size is less than that of version 0.1.
 * -ERANGE: There is no device of one of the indices.
 *
 * Example:
 *
 *	struct pln_topo_pair p = { .size = sizeof(p) };
 *
 *	if (!pln_topo_between(t, 0, 1, &p))
 *		printf("%s: %s\n", pln_verdict_name(p.verdict), p.reason);
 *
 * Since 0.1.
 *
 * See also: pln_topo_nearest(), pln_relation_name(), pln_verdict_name(),
 * peerlane-topo(1)
 */
int pln_topo_between(const struct pln_topo *topo, unsigned int a,
		     unsigned int b, struct pln_topo_pair *pair);

/**
 * pln_topo_p2pdma - whether the kernel's P2PDMA lets data go between two devices
 * @topo: the handle
 * @a: index of the one
 * @b: index of the other, may be the same
 * @pair: in: its size; out: the rest
 *
 * Like pln_topo_between(), but with the rules of the kernel for direct IO with a
 * program's mapping of GPU memory as the buffer, for any two devices. An example is
 * a drive of another host over NVMe over Fabrics: there the RDMA NIC does the DMA, and
 * the kernel decides, not NVIDIA's driver, which otherwise connects a NIC and a GPU
 * without the kernel's rules.
 * If the ACS bits of ports between two devices are unknown, but the kernel trusts the
 * root complex, so that it uses the path through the root complex if the ports redirect,
 * the verdict is PLN_VERDICT_ROOT_COMPLEX.
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: @topo or @pair is NULL, or its size is less than that of version 0.1.
 * -ERANGE: There is no device of one of the indices.
 *
 * Since 0.1.
 *
 * See also: pln_topo_between(), pln_verdict_name()
 */
int pln_topo_p2pdma(const struct pln_topo *topo, unsigned int a,
		    unsigned int b, struct pln_topo_pair *pair);

/**
 * pln_topo_nearest - the GPU that is nearest to a file or a device
 * @topo: the handle
 * @what: a path with a slash in it: a file, folder or block device of this
 *	machine; or a PCI address, a label, or a name such as "nvme0n1"; or
 *	a file here
 * @reason: out: the reason for this GPU, or the error; may be NULL
 * @size: of @reason; PLN_TOPO_REASON_MAX is enough
 *
 * @what is a path, if it has a slash, of a file, a folder or a block device of
 * this machine; a file that does not exist yet counts as its folder. Else it
 * is a PCI address, a label (NVME0), or the name of a device or drive (mlx5_0,
 * nvme0n1), or else a file of that name here. A file on several drives (RAID, device mapper) counts by the worst
 * of them.
 *
 * The function selects the best verdict (unknown counts as direct), then the nearest
 * relation, then the shortest path, then the lowest index. @reason gets a text
 * of at most @size bytes: the reason for this GPU, or the error; PLN_TOPO_REASON_MAX
 * is always enough. It may be NULL with a @size of 0.
 *
 * Return: The index of the GPU, or a negative errno.
 *
 * -ENODEV: There is no GPU.
 * -ENOENT: There is no such file or device.
 * -ENOTBLK: The file is on no NVMe drive of this machine: on tmpfs,
 *   overlayfs, a network file system or another kind of disk.
 * -EOPNOTSUPP: @what is a path, and @topo is a record.
 * -EINVAL: An argument is NULL, or @what is empty.
 * -E2BIG, -ELOOP: The file is on more than 64 drives, or on more than
 *   8 layers.
 * -EACCES, ...: From stat(2).
 *
 * Example:
 *
 *	char why[PLN_TOPO_REASON_MAX];
 *	int gpu = pln_topo_nearest(t, "/data/model.bin", why, sizeof(why));
 *
 * Since 0.1.
 *
 * See also: pln_topo_between(), pln_topo_info()
 */
int pln_topo_nearest(struct pln_topo *topo, const char *what, char *reason,
		     size_t size);

/**
 * pln_relation_name - the short name of a relation between two devices
 * @relation: enum pln_relation
 *
 * Gives X, PIX, PXB, PHB, NODE or SYS for a value of enum pln_relation. May be
 * called in any thread.
 *
 * Return: A text that belongs to the library, never NULL: "?" for any other number.
 *
 * Since 0.1.
 *
 * See also: pln_topo_between()
 */
const char *pln_relation_name(unsigned int relation);

/**
 * pln_verdict_name - the name of a path of data between two devices
 * @verdict: enum pln_verdict
 *
 * Gives unknown, direct, root-complex or staged for a value of enum
 * pln_verdict. May be called in any thread.
 *
 * Return: A text that belongs to the library, never NULL: "?" for any other number.
 *
 * Since 0.1.
 *
 * See also: pln_topo_between()
 */
const char *pln_verdict_name(unsigned int verdict);

/**
 * pln_iommu_name - the name of an IOMMU mode
 * @iommu: enum pln_iommu
 *
 * Gives unknown, off, passthrough or translated for a value of enum pln_iommu.
 * May be called in any thread.
 *
 * Return: A text that belongs to the library, never NULL: "?" for any other number.
 *
 * Since 0.1.
 *
 * See also: pln_topo_info()
 */
const char *pln_iommu_name(unsigned int iommu);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_TOPO_H */
