/* SPDX-License-Identifier: GPL-2.0-only */
/* What nvidia-fs looks up by its name, and calls. */
#ifndef _NVFS_DISK_H
#define _NVFS_DISK_H

struct nvfs_dma_rw_ops;

int scsi_v1_register_dma_scsi_ops(struct nvfs_dma_rw_ops *ops);
void scsi_v1_unregister_dma_scsi_ops(void);

#endif /* _NVFS_DISK_H */
