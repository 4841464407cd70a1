/* SPDX-License-Identifier: MIT */
/* Direct IO: what file systems and statx(2) tell of it, for library and tools. */
#ifndef PEERLANE_CORE_DIO_H
#define PEERLANE_CORE_DIO_H

#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN	0x00002000U
#endif

/* What statx() said of alignment, which old headers lack; false: nothing */
static inline bool dio_align(const struct statx *sx, uint32_t *memory,
			     uint32_t *offset)
{
	memcpy(memory, (const char *)sx + 0x98, sizeof(*memory));
	memcpy(offset, (const char *)sx + 0x9c, sizeof(*offset));
	return sx->stx_mask & STATX_DIOALIGN;
}

/*
 * Some file systems take O_DIRECT and copy with the CPU all the same, also into
 * device memory.  So only those count that say how they want direct IO, and those
 * that do it and do not say: older ext4 and xfs, and NFS, whose pages RDMA fills or, if
 * they are memory of devices, the kernel refuses.
 */
enum dio_kind { DIO_UNSAID, DIO_DOES, DIO_IN_MEMORY };

/* By its name, or by its number from statfs() */
static inline enum dio_kind dio_kind(const char *name, uint32_t magic)
{
	static const struct {
		const char *name;
		uint32_t magic;
		enum dio_kind kind;
	} types[] = {
		{ "ext4", EXT4_SUPER_MAGIC, DIO_DOES },
		{ "xfs", XFS_SUPER_MAGIC, DIO_DOES },
		{ "nfs", NFS_SUPER_MAGIC, DIO_DOES },
		{ "nfs4", NFS_SUPER_MAGIC, DIO_DOES },
		{ "tmpfs", TMPFS_MAGIC, DIO_IN_MEMORY },
		{ "devtmpfs", TMPFS_MAGIC, DIO_IN_MEMORY },
		{ "ramfs", RAMFS_MAGIC, DIO_IN_MEMORY },
		{ "hugetlbfs", HUGETLBFS_MAGIC, DIO_IN_MEMORY },
		{ "proc", PROC_SUPER_MAGIC, DIO_IN_MEMORY },
		{ "sysfs", SYSFS_MAGIC, DIO_IN_MEMORY },
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (name ? !strcmp(name, types[i].name) : magic == types[i].magic)
			return types[i].kind;
	return DIO_UNSAID;
}

#endif
