/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: memory exported as dma-bufs.
 */
#ifndef _PLN_DMABUF_H
#define _PLN_DMABUF_H

#include "pln_gpu.h"

struct pln_run;

/* What a dma-buf has of one allocation */
struct pln_part {
	struct list_head node;		/* in buf->exports, until detached */
	struct pln_export *exp;
};

/**
 * struct pln_export - a dma-buf of ours
 * @maps: DMA mappings of importers, guarded by the resv lock
 * @gpu: with a reference to its device
 * @inode: of the dma-buf's file, with a reference: its page cache mapping
 *	knows the VMAs.  The export is freed with the dentry, which may outlive
 *	the file: an O_PATH descriptor holds the path alone.
 * @dmabuf: its file is there while @attachments is not 0
 * @attachments: of importers, who each hold the file; guarded by mem_lock
 * @skip: bytes of the first piece before the dma-buf's: pieces are whole GPU pages
 * @size: of the dma-buf
 * @importable: other open files may get a handle of the memory
 * @revoked: one of its allocations was retired; guarded by mem_lock
 * @run: guarded by mem_lock; NULL: not in BAR1 now
 * @parts: one for each piece; in the lists of the buffers, guarded by mem_lock
 * @pieces: with a reference to each buffer
 */
struct pln_export {
	struct list_head maps;
	struct pln_gpu *gpu;
	struct inode *inode;
	struct dma_buf *dmabuf;
	unsigned int attachments;
	u64 skip;
	u64 size;
	bool importable;
	bool revoked;
	struct pln_run *run;
	struct pln_part *parts;
	unsigned int nr_pieces;
	struct pln_piece pieces[] __counted_by(nr_pieces);
};

struct dma_buf *pln_export_pieces(struct pln_gpu *gpu,
				  const struct pln_piece *pieces,
				  unsigned int nr_pieces, bool importable);
void pln_export_unshow(struct pln_export *exp);
void pln_export_detach(struct pln_export *exp);
void pln_export_revoke(struct pln_export *exp);
struct pln_buf *pln_import_buf(struct pln_gpu *gpu, int fd,
			       struct address_space *mapping);

#endif /* _PLN_DMABUF_H */
