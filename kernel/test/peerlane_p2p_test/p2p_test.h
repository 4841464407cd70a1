/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _P2P_TEST_H
#define _P2P_TEST_H

#include <linux/pci.h>
#include <linux/sizes.h>

#define PEER_BUF_SIZE	SZ_64K

/* peer.c: a device with an engine */
int peer_setup(void);
void peer_cleanup(void);

/* For kernel/test/nvfs_disk, too */
struct pci_dev *peer_get(void **buf);
void peer_put(void);
int peer_dma(u64 addr, bool write);

/* For other test modules, by symbol_get() */
int peer_do_dma(u64 addr, bool write);

#endif /* _P2P_TEST_H */
