/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: what the files of the driver share.  What fewer of them
 * know is in aperture.h, dmabuf.h, job.h and queue.h.
 *
 * Locks, outermost first:
 *   mmap_lock, a dma-buf's resv      the core's; we are called under them
 *   pln_p2p_lock                     page tables of other drivers (p2p.c)
 *   gpu->mem_lock                    memory: allocators, states of buffers,
 *                                    BAR1 runs and BAR1 registers; page faults
 *                                    take it for reading
 *   queue->lock                      one engine queue and the jobs on it
 * User memory is neither copied nor pinned under any of ours, nor inside
 * gpu->calls: a fault may wait for a program, and removal waits for these.  Where it
 * is unpinned, nothing waits for the lock of a page, which a program may hold too.
 */
#ifndef _PLN_GPU_H
#define _PLN_GPU_H

#include <linux/bitops.h>
#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/linux/peerlane_gpu.h>
#include <peerlane-gpu-regs.h>

#define PLN_NAME		"peerlane_gpu"
#define PLN_PAGE_SIZE		PLN_BAR1_UNIT_SIZE	/* of our allocators */
#define PLN_PAGE_SHIFT		16
#define PLN_POOL_BASE		SZ_4G	/* gen_pool means failure by 0 */

struct dentry;
struct gen_pool;
struct pln_gpu;
struct pln_queue;

enum pln_state {
	PLN_LIVE,
	PLN_RESETTING,		/* between reset_prepare and reset_done */
	PLN_DEAD,		/* does not answer, or cannot be stopped */
	PLN_GONE,		/* not on the bus any more; removal follows */
	PLN_REMOVED,		/* driver unbound; files may be open */
};

/**
 * struct pln_gpu - one GPU
 * @dev: the character device; its references keep this structure
 * @state: guarded by @mem_lock; readers that only want a hint need no lock
 * @bufs: memory not yet retired
 * @graveyard: retired memory that DMA or mappings may still reach
 * @dying_runs: BAR1 runs without users, whose pages may still be in use
 * @p2p_wq: for callbacks of other drivers, which may wait without bound, and so for
 *	nothing else
 * @drain_wq: likewise, for importers of dma-bufs
 */
struct pln_gpu {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	void __iomem *regs;
	int id;

	struct rw_semaphore mem_lock;
	enum pln_state state;
	bool broken;
	struct work_struct die_work;
	struct srcu_struct calls;	/* calls that use the device */
	wait_queue_head_t state_wait;
	u64 reset_count;
	bool late_writes;		/* through BAR1: to be flushed */
	bool has_time;			/* it tells when descriptors ended */

	u64 vram_size;
	u64 vram_used;		/* allocated and quarantined */
	u64 quarantined;
	struct gen_pool *vram_pool;
	struct list_head bufs;
	struct list_head graveyard;
	struct delayed_work reaper;
	unsigned int reaper_delay;
	wait_queue_head_t reaped;

	u64 bar1_size;
	u64 bar1_used;
	phys_addr_t bar1_phys;
	void *bar1_p2pmem;	/* NULL: no P2PDMA pages */
	struct file *bar1_file;	/* its inode owns them; NULL: none does */
	struct p2pdma_provider *provider;
	struct gen_pool *bar1_pool;
	struct list_head runs;
	struct list_head dying_runs;

	u64 coherent_size;
	phys_addr_t coherent_phys;
	struct dev_pagemap *coherent_pgmap;	/* NULL: none */

	struct pln_queue *queues;
	unsigned int num_queues;
	int irq;		/* of the device, vector 0 */
	unsigned int nr_vectors;
	struct workqueue_struct *wq;
	struct workqueue_struct *p2p_wq;
	struct workqueue_struct *drain_wq;

	u8 uuid[16];
	struct dentry *debugfs;
	atomic64_t nr_files;
	atomic64_t nr_bufs;
	atomic64_t nr_jobs;
	atomic64_t nr_exports;
	atomic64_t nr_pins;	/* page tables given to other drivers */
	atomic64_t pinned;	/* bytes of user memory */
};

/**
 * struct pln_file - one open of the device
 */
struct pln_file {
	struct kref kref;
	struct pln_gpu *gpu;
	struct address_space *mapping;
	struct xarray bufs;
	struct xarray jobs;
	u32 next_buf;
	u32 next_job;
	atomic_t nr_jobs;
	atomic64_t pinned;
};

/**
 * struct pln_buf - one allocation of GPU memory
 * @revoked: no new use; guarded by mem_lock
 * @lost: it was a reset that revoked it
 * @handles: of open files; guarded by mem_lock, 0 when never given out
 * @mapping: of the files it belongs to, while one is open
 * @pid: process that has allocated it
 * @comm: name of that process, for messages only
 * @users: jobs that may still touch the memory
 * @exports: parts of dma-bufs, until these are told that it is revoked
 * @pins: page tables of other drivers, guarded by pln_p2p_lock
 * @idle_end: pages below were found idle since the memory was revoked
 * @drain_work: has a reference; used when the GPU loses its memory
 */
struct pln_buf {
	struct kref kref;
	struct pln_gpu *gpu;
	struct list_head node;		/* bufs or graveyard */
	unsigned int handles;
	struct address_space *mapping;
	struct pid *pid;
	char comm[TASK_COMM_LEN];
	u64 vram;
	u64 size;
	bool revoked;
	bool lost;
	atomic_t users;
	struct list_head exports;
	struct list_head pins;
	unsigned int nr_runs;
	u64 idle_end;
	struct work_struct drain_work;
};

/* A piece of an allocation */
struct pln_piece {
	struct pln_buf *buf;
	u64 offset;
	u64 size;
};

/* Registers */
static inline u32 pln_rd(struct pln_gpu *gpu, u32 reg)
{
	return readl(gpu->regs + reg);
}

static inline void pln_wr(struct pln_gpu *gpu, u32 reg, u32 val)
{
	writel(val, gpu->regs + reg);
}

static inline u64 pln_rd64(struct pln_gpu *gpu, u32 reg)
{
	u32 lo = readl(gpu->regs + reg);

	return lo | (u64)readl(gpu->regs + reg + 4) << 32;
}

/* One access: the high half belongs to the low half that was read last */
static inline u64 pln_time(struct pln_gpu *gpu)
{
	return readq(gpu->regs + PLN_REG_TIME);
}

/*
 * Queues of programs.  The last queue is the driver's own: it zeroes new memory,
 * which must not wait for the work of others.  A GPU with one queue has no other.
 */
static inline unsigned int pln_user_queues(const struct pln_gpu *gpu)
{
	return gpu->num_queues > 1 ? gpu->num_queues - 1 : 1;
}

/* state.c */
#define PLN_REAP_MIN_MS		1
extern const char * const pln_error_names[PLN_NUM_ERRORS];
int pln_state_errno(struct pln_gpu *gpu);
enum pln_state pln_state_unusable(struct pln_gpu *gpu);
int pln_gpu_die(struct pln_gpu *gpu, const char *why);
void pln_reap_soon(struct pln_gpu *gpu);
void pln_file_free(struct kref *kref);

/* vram.c */
int pln_vram_init(struct pln_gpu *gpu);
void pln_vram_fini(struct pln_gpu *gpu);
int pln_vram_take(struct pln_gpu *gpu, struct pln_buf *buf);
void pln_vram_give(struct pln_buf *buf);
void pln_buf_get(struct pln_buf *buf);
void pln_buf_put(struct pln_buf *buf);
int pln_buf_use(struct pln_buf *buf);
void pln_buf_unuse(struct pln_buf *buf);

/* pages.c */
void pln_pages_init(struct pln_gpu *gpu);
void pln_pages_fini(struct pln_gpu *gpu);
bool pln_pages_idle(phys_addr_t phys, u64 size, u64 *end);
u64 pln_pages_busy(phys_addr_t phys, u64 size);

/* memory.c */
void pln_memory_init(struct pln_gpu *gpu);
void pln_memory_fini(struct pln_gpu *gpu);
struct pln_buf *pln_buf_alloc(struct pln_gpu *gpu, u64 size);
void pln_buf_retire(struct pln_buf *buf);
void pln_buf_drop(struct pln_buf *buf);
void pln_bufs_lose_all(struct pln_gpu *gpu);
bool pln_reap_wait(struct pln_gpu *gpu, unsigned int ms);
size_t pln_held_by(struct pln_buf *buf, char *text, size_t size);

/* mapping.c */
int pln_buf_mmap(struct pln_buf *buf, struct vm_area_struct *vma);
struct pln_buf *pln_buf_at(u64 va, u64 len, u64 *offset);
vm_fault_t pln_insert(struct vm_fault *vmf, phys_addr_t phys, bool have_pages);

/* p2p.c */
void pln_p2p_revoke(struct pln_buf *buf, struct workqueue_struct *wq);

/* file.c */
int pln_file_setup(void);
void pln_file_cleanup(void);
int pln_cdev_add(struct pln_gpu *gpu);
void pln_cdev_del(struct pln_gpu *gpu);

/* sysfs.c */
extern const struct attribute_group *pln_dev_groups[];
void pln_debugfs_setup(void);
void pln_debugfs_cleanup(void);
void pln_debugfs_add(struct pln_gpu *gpu);
void pln_debugfs_del(struct pln_gpu *gpu);

#endif /* _PLN_GPU_H */
