/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The peer-memory interface of an RDMA core that has it.
 *
 * Stock kernels do not; those of NVIDIA's DOCA and MLNX_OFED packages, and some
 * of distributions, do.  Names, layouts and numbers are theirs, the words are
 * our own.  A client tells the core which user memory it knows, and makes it
 * reachable for a device when a memory region is registered.
 */
#ifndef _PEER_MEM_H
#define _PEER_MEM_H

#include <linux/scatterlist.h>
#include <linux/types.h>

#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16

struct device;

/**
 * struct peer_memory_client - functions of a client, in the order of their use
 * @name: shown in /sys/kernel/mm/memory_peers/
 * @version: likewise; its last byte is 1 when this is the head of a
 *	struct peer_memory_client_ex
 * @acquire: is all of this memory of the calling process the client's?  1: yes,
 *	and *@client_context names it until @release; 0, or an errno: no
 * @get_pages: pin it.  From here on the client may invalidate @core_context
 * @dma_map: fill in a table of addresses for the device.  *@nmap: entries
 * @dma_unmap: undo that.  The core looks at the table no more
 * @put_pages: undo @get_pages, free the table
 * @get_page_size: not used any more
 * @release: undo @acquire
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *unused,
		       char *unused_name, void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context,
			 u64 core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context,
		       struct device *dma_device, int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
};

/* Flag: at invalidation the client itself unmaps and puts */
#define PEER_MEM_INVALIDATE_UNMAPS	(1 << 0)

struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;		/* of this structure */
	u32 flags;
};

/*
 * The client's memory goes away.  When this returns the device does no DMA
 * there.  Without the flag above the core has called dma_unmap and put_pages
 * from within this call.  With it the core calls neither after this; it may be
 * calling them, or release, at this moment.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif /* _PEER_MEM_H */
