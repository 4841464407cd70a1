/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peerlane emulated GPU: what the files of the driver share.
 *
 * Locks, outermost first:
 *   mmap_lock, a dma-buf's resv      the core's; we are called under them
 *   pln_p2p_lock                     page tables of other drivers (p2p.c)
 *   gpu->mem_lock                    memory: allocators, states of buffers,
 *                                    BAR1 runs and BAR1 registers; page faults
 *                                    take it for reading
 *   queue->lock                      one engine queue and the jobs on it
 * User memory is neither copied nor pinned under any of ours, nor inside
 * gpu->calls: a fault may wait for a program, and removal waits for these.
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
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
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
struct pln_job;

enum pln_state {
	PLN_LIVE,
	PLN_RESETTING,		/* between reset_prepare and reset_done */
	PLN_DEAD,		/* does not answer, or cannot be stopped */
	PLN_GONE,		/* not on the bus any more; removal follows */
	PLN_REMOVED,		/* driver unbound; files may be open */
};

/**
 * struct pln_queue - one engine queue
 * @lock: guards all below and the queue's registers
 * @jobs: in order; those on the ring come first
 * @stopped: 0, or the errno for jobs given to it; registers are off limits
 * @head: sequence number of the oldest descriptor not known to be done
 * @tail: sequence number of the next descriptor; slot = number modulo size
 * @marks: sequence numbers on the ring that write a completion record
 * @unmarked: bytes and descriptors since the last mark
 * @progress: when the last mark completed, in jiffies
 */
struct pln_queue {
	struct pln_gpu *gpu;
	unsigned int index;
	void __iomem *regs;
	int irq;
	struct mutex lock;	/* see above */
	struct list_head jobs;
	int stopped;
	u8 *ring;
	dma_addr_t ring_dma;
	u8 *comp;
	dma_addr_t comp_dma;
	u64 head;
	u64 tail;
	u64 *marks;
	unsigned int mark_head;
	unsigned int mark_tail;
	unsigned int unmarked_descs;
	u64 unmarked_bytes;
	unsigned long progress;
	struct delayed_work watchdog;
	u64 nr_jobs;
	u64 nr_recovered;
	char name[32];
};

/**
 * struct pln_gpu - one GPU
 * @dev: the character device; its references keep this structure
 * @state: guarded by @mem_lock; readers that only want a hint need no lock
 * @bufs: memory not yet retired
 * @graveyard: retired memory that DMA or mappings may still reach
 * @dying_runs: BAR1 runs without users, whose pages may still be in use
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
 * @users: jobs that may still touch the memory
 * @exports: parts of dma-bufs
 * @pins: page tables of other drivers, guarded by pln_p2p_lock
 * @idle_end: pages below were found idle since the memory was revoked
 */
struct pln_buf {
	struct kref kref;
	struct pln_gpu *gpu;
	struct list_head node;		/* bufs or graveyard */
	unsigned int handles;
	struct address_space *mapping;
	u64 vram;
	u64 size;
	bool revoked;
	bool lost;
	atomic_t users;
	struct list_head exports;
	struct list_head pins;
	unsigned int nr_runs;
	u64 idle_end;
};

/* A piece of an allocation */
struct pln_piece {
	struct pln_buf *buf;
	u64 offset;
	u64 size;
};

/* A DMA mapping or a pin of a run; the device is NULL when not known */
struct pln_holder {
	struct list_head node;
	struct device *dev;
};

/**
 * struct pln_run - a run of BAR1 units that shows pieces of VRAM in a row
 * @users: VMAs and DMA mappings of the export
 * @holders: DMA mappings and pins alone: these outlive revocation
 * @fence: until it is signaled, an importer that has unmapped may do DMA
 * @in_hw: the device has the mapping
 */
struct pln_run {
	struct list_head node;
	struct pln_gpu *gpu;
	u64 bar1;
	u64 size;
	unsigned int users;
	struct list_head holders;
	struct dma_fence *fence;
	bool in_hw;
	u64 idle_end;
	unsigned int nr_pieces;
	struct pln_piece pieces[] __counted_by(nr_pieces);
};

/* What a dma-buf has of one allocation */
struct pln_part {
	struct list_head node;		/* in buf->exports, while not revoked */
	struct pln_export *exp;
};

/**
 * struct pln_export - a dma-buf of ours
 * @maps: guarded by the resv lock
 * @inode: of the dma-buf's file, with a reference: its page cache mapping
 *	knows the VMAs.  The export is freed with the dentry, which may outlive
 *	the file: an O_PATH descriptor holds the path alone.
 * @dmabuf: its file is there while @attachments is not 0
 * @attachments: of importers, who each hold the file; guarded by mem_lock
 * @importable: other open files may get a handle of the memory
 * @revoked: one of its allocations was retired; guarded by mem_lock
 * @run: guarded by mem_lock; NULL: not in BAR1 now
 * @parts: one for each piece
 */
struct pln_export {
	struct list_head maps;
	struct pln_gpu *gpu;
	struct inode *inode;
	struct dma_buf *dmabuf;
	unsigned int attachments;
	u64 size;
	bool importable;
	bool revoked;
	struct pln_run *run;
	struct pln_part *parts;
	unsigned int nr_pieces;
	struct pln_piece pieces[] __counted_by(nr_pieces);
};

/* User memory of one operation */
struct pln_pin {
	struct page **pages;
	unsigned long nr_pages;
	struct sg_table sgt;
	enum dma_data_direction dir;
	bool mapped;
};

struct pln_jop {
	struct pln_gpu_op op;
	struct pln_buf *src;
	struct pln_buf *dst;
	struct pln_pin *pin;
};

/**
 * struct pln_job - operations given to a queue at once
 * @done: completed when the device has no more to do with it
 * @pinned: bytes of user memory that count for the limits
 * @mm: with a reference, while @pinned is not 0: its pinned_vm counts them too
 * @op: cursor: next operation to put on the ring
 * @off: bytes of it on the ring
 * @sg: segment of its user memory to go on with, and @sg_off in it
 * @first: sequence number of the first descriptor
 * @last: of the latest
 * @wait_seq: of the descriptor whose result decides how to go on, else 0
 */
struct pln_job {
	struct kref kref;
	struct pln_gpu *gpu;
	struct pln_file *file;		/* NULL: the driver's own */
	struct list_head node;
	struct completion done;
	bool started;
	bool emitted;			/* all of it is on the ring */
	bool cancelled;
	unsigned int op;
	u64 off;
	struct scatterlist *sg;
	unsigned int sg_off;
	u64 first;
	u64 last;
	u64 wait_seq;
	u64 crc;
	u64 result;
	int status;
	u32 error;
	u64 pinned;
	struct mm_struct *mm;
	unsigned int nr_ops;
	struct pln_jop ops[] __counted_by(nr_ops);
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
void pln_buf_retire(struct pln_buf *buf, bool lost);
void pln_buf_drop(struct pln_buf *buf);
void pln_bufs_retire_all(struct pln_gpu *gpu, bool lost);
bool pln_reap_wait(struct pln_gpu *gpu, unsigned int ms);
size_t pln_held_by(struct pln_buf *buf, char *text, size_t size);

/* aperture.c */
int pln_aperture_init(struct pln_gpu *gpu);
void pln_aperture_fini(struct pln_gpu *gpu);
void pln_aperture_was_reset(struct pln_gpu *gpu);
struct pln_run *pln_run_create(struct pln_gpu *gpu,
			       const struct pln_piece *pieces,
			       unsigned int nr_pieces);
void pln_run_drain(struct pln_run *run);
void pln_run_kill(struct pln_run *run);
bool pln_below_one_switch(struct pln_gpu *gpu, struct pci_dev *peer);
struct pln_run *pln_run_pin(const struct pln_piece *piece,
			    struct pln_holder *holder);
void pln_run_orphan(struct pln_run *run);
void pln_run_unpin(struct pln_run *run, struct pln_holder *holder);
bool pln_runs_reap(struct pln_gpu *gpu);

/* mapping.c */
int pln_buf_mmap(struct pln_buf *buf, struct vm_area_struct *vma);
struct pln_buf *pln_buf_at(u64 va, u64 len, u64 *offset);
vm_fault_t pln_insert(struct vm_fault *vmf, phys_addr_t phys, bool have_pages);

/* dmabuf.c */
struct dma_buf *pln_export_pieces(struct pln_gpu *gpu,
				  const struct pln_piece *pieces,
				  unsigned int nr_pieces, bool importable);
void pln_export_detach(struct pln_export *exp);
void pln_export_revoke(struct pln_export *exp);
struct pln_buf *pln_import_buf(struct pln_gpu *gpu, int fd,
			       struct address_space *mapping);

/* p2p.c */
void pln_p2p_revoke(struct pln_buf *buf);

/* ring.c */
#define PLN_RING_SIZE		512		/* descriptors, 2^n */
#define PLN_PIECE		(64ULL << 20)	/* bytes of one descriptor */

static inline u32 pln_slot(u64 seq)
{
	return seq & (PLN_RING_SIZE - 1);
}

static inline u32 pln_q_rd(struct pln_queue *q, u32 reg)
{
	return readl(q->regs + reg);
}

int pln_hw_stop(struct pln_queue *q);
int pln_hw_start(struct pln_queue *q);
void pln_emit(struct pln_queue *q, struct pln_job *job);
void pln_next_op(struct pln_job *job);

/* queue.c */
int pln_queues_init(struct pln_gpu *gpu);
void pln_queues_fini(struct pln_gpu *gpu);
void pln_queues_stop(struct pln_gpu *gpu, int err);
int pln_queues_start(struct pln_gpu *gpu);
int pln_queue_submit(struct pln_queue *q, struct pln_job *job);
void pln_queue_kick(struct pln_queue *q);

/* job.c */
extern unsigned int pln_watchdog_ms;
struct pln_job *pln_job_alloc(struct pln_gpu *gpu, unsigned int nr_ops);
struct pln_job *pln_job_build(struct pln_file *file, struct pln_gpu_op *ops,
			      unsigned int nr_ops);
int pln_job_bind(struct pln_job *job);
void pln_job_get(struct pln_job *job);
void pln_job_put(struct pln_job *job);
void pln_job_release_resources(struct pln_job *job);
void pln_pins_wake(void);

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
