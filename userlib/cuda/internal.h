/* SPDX-License-Identifier: MIT */
/*
 * Peerlane libcuda: what its files share.
 *
 * Locks, in the order in which they are taken:
 *   opening (ipc.c)	one handle of memory is opened at a time
 *   shared->lock	one recording of an event for other processes at a time
 *   pln.lock		objects, ranges, contexts, devices
 *   file->submit_lock	one submission at a time, so that queues have the streams' order
 *   job->lock		one waiter asks the kernel, the others wait for it
 *   pln.order		jobs: their state, what they follow, queue FIFOs
 *   files_lock (file.c)	the list of open files
 * No call that can wait for the engine is made under pln.lock or pln.order.
 */
#ifndef PEERLANE_CUDA_INTERNAL_H
#define PEERLANE_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "cuda_abi.h"
#include "gpu.h"
#include "image.h"
#include "peerlane/cuda_ext.h"

#define PLN_MAX_QUEUES		16
/* How long a wait lasts at most in which nothing happens */
#define PLN_WAIT_LIMIT_NS	(120 * 1000000000ull)

#define KiB			1024ull
#define MiB			(1024 * KiB)

/* Shared memory of a kernel's block, and of one that asks for more */
#define PLN_USUAL_SHARED	((int)(48 * KiB))
#define PLN_MAX_SHARED		((int)(227 * KiB))

/*
 * Begins a function that programs replace in memory.  UCX does that to learn of
 * memory that comes and goes: it moves the first 5 to 12 bytes elsewhere, and knows
 * few instructions that can be moved.  A number into a register is one of them,
 * and rax is free where a function begins.
 */
#ifdef __x86_64__
#define PLN_PATCHABLE(name, ...)					\
	__attribute__((used, noipa))					\
	static CUresult name##_body(__VA_ARGS__);			\
	_Pragma("GCC diagnostic push")					\
	_Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")		\
	__attribute__((naked)) CUresult name(__VA_ARGS__)		\
	{								\
		__asm__("mov $0, %eax\n\tmov $0, %eax\n\t"		\
			"mov $0, %eax\n\tjmp " #name "_body");		\
	}								\
	_Pragma("GCC diagnostic pop")					\
	static CUresult name##_body(__VA_ARGS__)
#else
#define PLN_PATCHABLE(name, ...)	CUresult name(__VA_ARGS__)
#endif

/* ---- devices ---- */
struct pln_file;

struct pln_device {
	int ordinal;
	unsigned int minor;
	struct pln_gpu_query info;	/* as of cuInit() */
	struct pln_file *file;		/* shared by contexts, NULL when none */
	unsigned int nr_users;		/* contexts, memory that has none */
	LIST_HEAD(, CUctx_st) contexts;
	CUcontext primary;
	unsigned int primary_refs;
	unsigned int primary_flags;
	LIST_HEAD(, CUmemPoolHandle_st) pools;
	CUmemoryPool default_pool;	/* made when first asked for */
	CUmemoryPool pool;		/* in use instead of it, or NULL */
};

/* Where a job leaves its error until somebody asks */
struct pln_sink {
	atomic_int refs;
	atomic_int err;			/* CUresult */
};

/* Something for a thread of the library to do */
struct pln_task {
	void (*run)(void *arg);
	void *arg;
	STAILQ_ENTRY(pln_task) link;
};

enum pln_task_kind {
	PLN_TASK_HELP,			/* waits for engines and the kernel at most */
	PLN_TASK_WORK,			/* the program may hold it up */
};

struct pln_job;
struct pln_shared;

/* @waiter follows @job; pln.order */
struct pln_edge {
	struct pln_job *waiter;
	struct pln_job *job;		/* a reference; NULL: followed no more */
	LIST_ENTRY(pln_edge) link;
};

enum pln_job_kind {
	PLN_JOB_ENGINE,
	PLN_JOB_WORK,			/* of a thread of the library */
	PLN_JOB_JOIN,			/* nothing but what it follows */
};

enum pln_job_state {
	PLN_JOB_WAITING,		/* for what it follows */
	PLN_JOB_READY,			/* or a thread is at it */
	PLN_JOB_QUEUED,			/* in the kernel */
	PLN_JOB_DONE,
};

/* Whose freeing waits for work of a thread */
enum pln_use {
	PLN_USE_NONE,
	PLN_USE_FILE,			/* memory of its own GPU: the program's functions */
	PLN_USE_SPAN,			/* the memory that it waits for a value in */
	PLN_USE_ANY,			/* memory of its own GPU, and what it copies or fills */
};

struct pln_span {
	uint64_t addr;
	uint64_t size;
};

#define PLN_JOB_MAX_OPS	2

struct pln_job {
	atomic_int refs;
	enum pln_job_kind kind;
	struct pln_file *file;
	struct pln_sink *sink;
	struct pln_sink *fault;		/* its context's */
	uint64_t ctx;			/* number of its context */
	uint64_t stream;		/* likewise */
	struct pln_gpu_op op[PLN_JOB_MAX_OPS];	/* of PLN_JOB_ENGINE */
	unsigned int nr_ops;
	unsigned int queue;
	/* Of PLN_JOB_WORK; what follows must find everything given back */
	CUresult (*work)(struct pln_job *job, void *arg);
	void *arg;
	enum pln_use use;
	struct pln_span span[2];	/* of PLN_USE_SPAN (the first), PLN_USE_ANY */
	struct pln_task task;
	atomic_bool cancelled;		/* its context is gone: no effects */
	uint64_t id;			/* the kernel's number */
	uint64_t seq;			/* order of submission to its file */
	pthread_mutex_t lock;
	atomic_int wanted;		/* threads that wait for its end */
	atomic_int state;		/* pln.order, and what follows */
	uint64_t number;		/* order of those that are not in the kernel */
	unsigned int awaited;		/* threads that sleep until it is there, at least */
	struct pln_edge *edges;		/* what it follows; one: own_edge */
	struct pln_edge own_edge;
	size_t nr_edges, unmet;
	struct pln_job *behind;		/* in its queue, while it is being submitted; or NULL */
	LIST_ENTRY(pln_job) left;	/* of its context */
	bool is_left;
	LIST_HEAD(, pln_edge) waiters;	/* what follows it */
	bool timed;			/* somebody asks for its time */
	bool look;			/* at a value: others come, so it is no progress */
	CUresult before;		/* error of what it follows */
	struct pln_stage *stage;	/* what it copies, which it owns; or NULL */
	struct pln_shared *shared;	/* what it records, a reference; or NULL */
	uint64_t recording;		/* its number there */
	CUresult err;
	uint64_t result;
	uint64_t t_done;		/* CLOCK_MONOTONIC, ns */
	TAILQ_ENTRY(pln_job) link;	/* of its queue, or of what is pending */
	STAILQ_ENTRY(pln_job) next;	/* ready, or ended */
};

TAILQ_HEAD(pln_job_list, pln_job);
STAILQ_HEAD(pln_job_fifo, pln_job);

/* A thread sees to it that the end of the queue's jobs is noticed in time */
struct pln_watch {
	struct pln_file *file;		/* a reference while it is active */
	struct pln_job *upto;		/* the last one that matters, or NULL */
	bool active;
	struct pln_task task;
};

/* An open device file: owns memory and jobs in the kernel */
struct pln_file {
	atomic_int refs;
	LIST_ENTRY(pln_file) link;
	struct pln_device *dev;
	int fd;
	uint64_t features;
	uint64_t reset_count;
	uint32_t page_size;
	unsigned int num_queues;
	unsigned int next_queue;
	atomic_bool lost;		/* memory gone: reset or removal */
	pthread_mutex_t submit_lock;
	uint64_t submitted;		/* submit_lock: jobs so far */
	struct pln_job_list queue[PLN_MAX_QUEUES];	/* pln.order */
	struct pln_watch watch[PLN_MAX_QUEUES];		/* likewise */
	/* Likewise: work of the engine that follows nothing any more */
	struct pln_job_fifo ready;
	bool dispatching;		/* a thread is giving it to the kernel */
	struct pln_task dispatcher;
	unsigned int helpers;		/* likewise: threads of the library at work */
};

/* ---- objects that the program holds handles of ---- */
enum pln_type {
	PLN_CTX, PLN_STREAM, PLN_EVENT, PLN_MEM, PLN_CODE, PLN_FUNCTION, PLN_POOL
};

struct pln_obj {
	enum pln_type type;
	atomic_int refs;
};

struct CUstream_st {
	struct pln_obj obj;
	struct CUctx_st *ctx;
	bool legacy;			/* the default stream */
	uint64_t thread;		/* whose default stream it is, or 0 */
	unsigned int queue;
	struct pln_job *last;		/* pln.order; not of the default stream */
	struct pln_sink *sink;
	unsigned int flags;
	int priority;
	uint64_t id;
	LIST_ENTRY(CUstream_st) link;
};

struct CUevent_st {
	struct pln_obj obj;
	struct CUctx_st *ctx;
	unsigned int flags;
	bool recorded;			/* pln.lock, and what follows */
	struct pln_job *job;
	uint64_t t_record;
	struct pln_shared *shared;	/* of CU_EVENT_INTERPROCESS */
	uint64_t recording;		/* likewise: number of that of job */
	CUdeviceptr words;		/* GPU memory for it, 0: not yet */
	LIST_ENTRY(CUevent_st) link;
};

/* One allocation of the kernel */
struct pln_chunk {
	uint64_t addr;			/* first two: as struct pln_range */
	uint64_t size;
	struct pln_file *file;
	uint32_t handle;
	bool block;			/* shared by small allocations */
	bool exported;			/* a dma-buf may still reach it */
	unsigned int users;		/* allocations, and calls at work */
	unsigned long long id;
	struct pln_mem *mem;		/* of cuMemCreate() */
	struct CUctx_st *home;		/* the library's own, see pointer.c */
	uint8_t *map;			/* of a block: one byte per 512 */
	LIST_ENTRY(pln_chunk) link;
};

/* What a handle for another process holds */
struct pln_name {
	uint32_t magic;
	int32_t pid;
	int32_t fd;
	uint32_t device;		/* of memory: function address on PCI */
	uint64_t inode;			/* the descriptor must still be of it */
	uint64_t offset;		/* of memory, in the dma-buf */
	uint64_t size;
	uint64_t pool;			/* of memory of one: its number */
};

enum pln_range_kind {
	PLN_RANGE_HOST,
	PLN_RANGE_REGISTERED,
	PLN_RANGE_DEVICE,		/* from here on: memory of a GPU */
	PLN_RANGE_IPC,			/* of another process */
	PLN_RANGE_MANAGED,
	PLN_RANGE_VMM,			/* by cuMemMap(), has no context */
	PLN_RANGE_POOL,			/* likewise */
	PLN_RANGE_IMPORTED,		/* of a pool of another process */
	PLN_RANGE_CODE,			/* a variable of a module */
};

/* What a pointer of the program can point into */
struct pln_range {
	uint64_t addr;
	uint64_t size;
	enum pln_range_kind kind;
	struct CUctx_st *ctx;
	struct pln_device *dev;
	struct pln_chunk *chunk;	/* of memory of a GPU */
	uint32_t readers, writers;	/* PLN_RANGE_VMM: devices that may */
	struct CUmemPoolHandle_st *pool;
	struct pln_block *block;	/* PLN_RANGE_POOL: where in the pool */
	struct pln_job *after;		/* likewise: freed, known until this has ended */
	struct pln_advice *advice;	/* PLN_RANGE_MANAGED: the first, or NULL */
	int export_fd;			/* for other processes, plus 1 */
	struct pln_name name;		/* PLN_RANGE_IPC: what was opened, */
	unsigned int opened;		/* and how often */
	size_t map_size;		/* PLN_RANGE_HOST */
	unsigned int flags;
	bool sync_memops;
	unsigned long long id;
	LIST_ENTRY(pln_range) link;
};

static inline bool pln_on_device(const struct pln_range *range)
{
	return range->kind >= PLN_RANGE_DEVICE;
}

struct pln_slab;
struct pln_block;

#define PLN_POOL_REUSES	3		/* attributes 1 to 3, switches */

/* pln.lock for all but what stays as it was made */
struct CUmemPoolHandle_st {
	struct pln_obj obj;
	struct pln_device *dev;
	CUmemPoolProps props;
	uint64_t id;			/* the same in all processes */
	bool imported;
	bool gone;			/* destroyed, some memory is still used */
	uint32_t peers;			/* other devices that reach it */
	int reuse[PLN_POOL_REUSES];
	uint64_t threshold;
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	LIST_HEAD(, pln_slab) slabs;
	LIST_ENTRY(CUmemPoolHandle_st) link;
};

/* Memory of pools and managed memory is not given to other devices */
static inline bool pln_rdma_capable(const struct pln_range *range)
{
	return range->kind != PLN_RANGE_POOL &&
	       range->kind != PLN_RANGE_MANAGED;
}

/* What cuMemCreate() made */
struct pln_mem {
	struct pln_obj obj;
	struct pln_file *file;
	uint32_t handle;
	uint64_t size;
	uint64_t mmap_offset;
	CUmemAllocationProp prop;
	unsigned int handles;		/* pln.lock: that the program holds */
};

struct CUctx_st {
	struct pln_obj obj;
	struct pln_device *dev;
	struct pln_file *file;
	unsigned int flags;
	bool primary;
	atomic_bool destroyed;
	uint64_t id;
	struct pln_sink *fault;		/* of the engine: of all calls from then on */
	unsigned int api_version;
	unsigned int cache_config;
	size_t limits[3];
	struct pln_job *barrier;	/* pln.order: last of the default stream */
	/* Likewise: the last of blocking streams that are gone, since that one */
	LIST_HEAD(, pln_job) left;
	CUstream legacy;
	LIST_HEAD(, CUstream_st) streams;	/* pln.order, too, to change it */
	LIST_HEAD(, CUevent_st) events;
	LIST_HEAD(, pln_range) ranges;
	LIST_HEAD(, pln_chunk) blocks;
	LIST_HEAD(, CUmod_st) modules;
	uint32_t peers;			/* devices whose memory may be reached */
	LIST_ENTRY(CUctx_st) link;
};

/* Memory of another process, open in a context on another GPU than its own */
static inline bool pln_is_far(const struct pln_range *range)
{
	return range->kind == PLN_RANGE_IPC && range->ctx->dev != range->dev;
}

struct pln_global {
	pthread_mutex_t lock;
	pthread_mutex_t order;
	atomic_bool ready;
	atomic_bool forked;
	int nr_devices;
	struct pln_device *devices;
	void *objects;			/* tree of struct pln_obj by address */
	void *ranges;			/* tree of struct pln_range */
	void *chunks;			/* tree of struct pln_chunk */
	void *reservations;		/* tree of struct pln_span */
	atomic_ullong next_id;
};

extern struct pln_global pln;

/* ---- core.c ---- */
void pln_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
CUresult pln_ready(void);
uint64_t pln_now(void);
CUresult pln_obj_add(struct pln_obj *obj);		/* pln.lock held */
void pln_obj_del(struct pln_obj *obj);			/* pln.lock held */
void *pln_obj_find(const void *handle, enum pln_type type); /* likewise */
/* @none: the error when there is no such object; pln.lock is not held */
void *pln_obj_get(const void *handle, enum pln_type type, CUresult none,
		  CUresult *err);
void pln_obj_put(struct pln_obj *obj);
struct pln_device *pln_device_get(CUdevice dev);
/* The device that a call names, in a library that is ready */
CUresult pln_device_named(CUdevice dev, struct pln_device **out);

/* ---- device.c ---- */
CUresult pln_devices_find(void);
bool pln_peers(const struct pln_device *dev, const struct pln_device *peer);

/* ---- file.c ---- */
struct pln_file *pln_file_open(struct pln_device *dev, CUresult *err);
struct pln_file *pln_file_ref(struct pln_file *file);
void pln_file_put(struct pln_file *file);
/* The one after @file, the first after NULL: a reference, for that on @file */
struct pln_file *pln_file_next(struct pln_file *file);
CUresult pln_file_error(struct pln_file *file, int error);
struct pln_file *pln_device_unuse(struct pln_device *dev); /* pln.lock held */
/* The open file of @dev, which stays open while the caller counts as a user */
CUresult pln_file_use(struct pln_device *dev, struct pln_file **file);
void pln_file_unuse(struct pln_file *file);

/* ---- context.c ---- */
CUresult pln_ctx_current(CUcontext *ctx);		/* takes a reference */
CUresult pln_ctx_get(CUcontext handle, CUcontext *ctx);	/* likewise */
CUresult pln_ctx_needed(void);		/* is there a current one? */
/* For questions that a lost context can still answer; no reference */
CUresult pln_ctx_current_any(CUcontext *ctx);
CUresult pln_ctx_state(CUcontext ctx);
void pln_ctx_put(CUcontext ctx);
void pln_ctx_free(struct CUctx_st *ctx);
CUresult pln_ctx_check_flags(unsigned int flags);
/* pln.lock is held; the table has the only reference */
CUresult pln_ctx_new(struct pln_device *dev, unsigned int flags, bool primary,
		     unsigned int version, CUcontext *out);
/* pln.lock is not held; false: somebody else did it */
bool pln_ctx_destroy(CUcontext ctx);

/* ---- job.c, submit.c, follow.c, wait.c ---- */
struct pln_sink *pln_sink_new(void);
struct pln_sink *pln_sink_ref(struct pln_sink *sink);
void pln_sink_put(struct pln_sink *sink);
struct pln_job *pln_job_ref(struct pln_job *job);
void pln_job_put(struct pln_job *job);
/* 0 ended (well or badly), or CUDA_ERROR_NOT_READY, CUDA_ERROR_LAUNCH_TIMEOUT */
CUresult pln_job_wait(struct pln_job *job, bool block);
CUresult pln_file_drain(struct pln_file *file);	/* its jobs */
/* All that was asked for until now: of a context; before memory goes */
CUresult pln_ctx_drain(CUcontext ctx);
CUresult pln_drain(struct pln_file *file, const struct pln_span *span);
/* The jobs that are in the kernel, of every GPU */
CUresult pln_drain_engines(void);
CUresult pln_stream_new(CUcontext ctx, unsigned int flags, int priority,
			bool legacy, CUstream *out);
/* The stream behind a handle; references on it and its context */
CUresult pln_stream_get(CUstream handle, CUcontext *ctx, CUstream *stream);
void pln_stream_free(struct CUstream_st *stream);
void pln_event_free(struct CUevent_st *event);
CUresult pln_event_get(CUevent handle, CUevent *out);	/* a reference */
CUresult pln_event_new(CUcontext ctx, unsigned int flags,
		       struct pln_shared *shared, CUevent *out);
/* Before and after the library's first use of a file */
void pln_file_jobs_init(struct pln_file *file);
/* Wait until no thread of the library is at work on @file */
void pln_file_quiet(struct pln_file *file);
/*
 * Queue @n operations as one job of @stream.  Its error goes to @sink, or to
 * the stream when @sink is NULL.  @out may be NULL.
 */
CUresult pln_submit(CUstream stream, struct pln_sink *sink,
		    const struct pln_gpu_op *ops, unsigned int n,
		    struct pln_job **out);
/* The same for a recording in @shared, with its number */
CUresult pln_submit_record(CUstream stream, struct pln_shared *shared,
			   uint64_t number, const struct pln_gpu_op *ops,
			   unsigned int n, struct pln_job **out);
/* The same for a copy from @stage, which is taken over in any case */
CUresult pln_submit_staged(CUstream stream, struct pln_stage *stage,
			   const struct pln_gpu_op *op);
/* The same at once, whatever the stream has to wait for */
CUresult pln_submit_now(CUstream stream, struct pln_sink *sink,
			const struct pln_gpu_op *op, struct pln_job **out);
/* Likewise, to look at a value that is awaited */
CUresult pln_submit_look(CUstream stream, struct pln_sink *sink,
			 const struct pln_gpu_op *op, struct pln_job **out);
/*
 * Have a thread of the library call @work in the order of @stream.  @span: two, of
 * PLN_USE_SPAN and PLN_USE_ANY, else NULL.  @work is called in any case, and must have no effect but
 * to give back @arg when job->cancelled is set.
 */
CUresult pln_stream_work(CUstream stream, struct pln_sink *sink,
			 enum pln_use use, const struct pln_span *span,
			 CUresult (*work)(struct pln_job *job, void *arg),
			 void *arg, struct pln_job **out);
CUresult pln_stream_wait(CUstream stream);
/* The thread is in a second symbol of a function: NULL is its own default stream */
extern __thread bool pln_own_default;
CUresult pln_stream_end(CUstream stream, bool block);
/*
 * A job that ends with all that was submitted to @stream until now, or NULL.  In the
 * default stream it is one more job, which later ones of blocking streams follow.
 */
CUresult pln_stream_mark(CUstream stream, struct pln_job **job);
/* Does work of @stream wait for what is not in the kernel? */
bool pln_stream_held(CUstream stream);
/* Have what follows in @stream wait for @job */
CUresult pln_stream_follow(CUstream stream, struct pln_job *job);
/* Does what follows in @stream come after @job anyway? */
bool pln_stream_behind(CUstream stream, struct pln_job *job);
/* pln.lock is held, pln.order is not: the stream is in its context's list no more */
void pln_stream_leave(CUstream stream);
/* Let go of what the default stream of @ctx, which nobody uses any more, follows */
void pln_ctx_forget(CUcontext ctx);
/* Somebody asks for the time at which @job ends */
void pln_job_timed(struct pln_job *job);
/* Is something not yet in the kernel that uses that memory? */
bool pln_job_uses(struct pln_file *file, uint32_t handle,
		  const struct pln_span *span);
/*
 * @ctx is to go: wait for all of it.  What is left after the time limit has no
 * effect any more.
 */
void pln_ctx_end(CUcontext ctx);
/*
 * Memory of such a context goes: no value will come there, and what is still to use it
 * after the time limit has no effect.
 */
void pln_span_end(const struct pln_span *span);
/* Likewise @span of @handle, whose number may be another one's soon */
void pln_handle_end(struct pln_file *file, uint32_t handle,
		    const struct pln_span *span);
void pln_order_init(void);
bool pln_is_watcher(void);	/* the thread only looks at the end of jobs */

/* ---- memop.c ---- */
CUresult pln_value_wait(struct pln_job *job, void *arg);

/* ---- worker.c: pln.order is held ---- */
/* Is there a thread of each kind at least? */
bool pln_workers_ready(void);
void pln_task_start(struct pln_task *task, enum pln_task_kind kind);
/* Make threads that could not be made before */
void pln_tasks_serve(void);

/* ---- memory.c ---- */
/* pln.lock is held in what looks at trees */
void *pln_span_find(void *const *tree, uint64_t addr, uint64_t n);
int pln_span_cmp(const void *a, const void *b);
bool pln_span_has(uint64_t addr, uint64_t n, uint64_t base, uint64_t size);
struct pln_range *pln_range_find(uint64_t addr, uint64_t n);
CUresult pln_range_add(struct pln_range *range);
void pln_range_del(struct pln_range *range);
void pln_range_back(struct pln_range *range);	/* pln.lock is not held */
void pln_range_free(struct pln_range *range);
#define PLN_KIND(kind)	(1u << PLN_RANGE_##kind)
/*
 * Free what begins at @addr, behind everything that may use it.  @kinds: bits of
 * PLN_KIND(); @none: the error when nothing is there.
 */
CUresult pln_take_and_free(uint64_t addr, unsigned int kinds, CUresult none);
void *pln_reserve(size_t size, size_t align);
CUresult pln_map(struct pln_file *file, void *va, size_t size,
		 uint64_t offset);
void pln_handle_free(struct pln_file *file, uint32_t handle);
CUresult pln_chunk_new(struct pln_file *file, uint32_t handle, uint64_t size,
		       uint64_t mmap_offset, struct pln_chunk **out);
CUresult pln_chunk_alloc(struct pln_file *file, size_t size, bool block,
			 struct pln_chunk **out);
uint64_t pln_small_align(const struct pln_file *file, uint64_t size);
CUresult pln_chunk_add(CUcontext ctx, struct pln_chunk *chunk);
bool pln_chunk_drop(struct pln_chunk *chunk);
void pln_chunk_free(struct pln_chunk *chunk);
CUresult pln_device_alloc(CUcontext ctx, size_t size,
			  enum pln_range_kind kind, CUdeviceptr *out);
void pln_device_free(CUdeviceptr ptr);
void pln_ctx_free_memory(CUcontext ctx);

/* ---- managed.c ---- */
/* @advice and all behind it */
void pln_advice_free(struct pln_advice *advice);

/* ---- vmm.c ---- */
void pln_mem_free(struct pln_mem *mem);
void pln_vmm_unmap(struct pln_chunk *chunk);

/* ---- pool.c ---- */
CUresult pln_pool_new(struct pln_device *dev, const CUmemPoolProps *props,
		      CUmemoryPool *out);
void pln_pool_free(struct CUmemPoolHandle_st *pool);
CUresult pln_pool_get(CUmemoryPool handle, CUmemoryPool *out);
/* The one that cuMemAllocAsync() uses; a reference when @get */
CUresult pln_pool_current(struct pln_device *dev, bool get, CUmemoryPool *out);

/* ---- slab.c ---- */
/* Give memory back until no more than @keep bytes are reserved; was there any? */
bool pln_pool_trim(CUmemoryPool pool, uint64_t keep);
bool pln_pools_squeeze(struct pln_device *dev);	/* all that nobody uses */
void pln_pools_settle(struct pln_device *dev);	/* what is above the threshold */
void pln_pool_give(struct pln_range *range);

/* ---- ipc.c ---- */
CUresult pln_name_fd(struct pln_name *name, int fd);
/* A descriptor of our own for what @name says */
CUresult pln_take_fd(const struct pln_name *name, uint32_t magic, int *out);
uint32_t pln_device_name(const struct pln_device *dev);
/* The one with that name, or NULL */
struct pln_device *pln_device_of_name(uint32_t name);
CUresult pln_name_memory(struct pln_range *range, struct pln_name *name);
/* @pool: that it is of, a reference that the memory takes over, or NULL */
CUresult pln_open_memory(CUcontext ctx, const struct pln_name *name, int fd,
			 CUmemoryPool pool, CUdeviceptr *ptr);
CUresult pln_shared_new(struct CUevent_st *event);
void pln_shared_put(struct pln_shared *shared);
struct pln_shared *pln_shared_ref(struct pln_shared *shared);
CUresult pln_shared_record(struct CUevent_st *event, CUstream stream,
			   struct pln_job **job, uint64_t *recording);
uint64_t pln_shared_last(struct pln_shared *shared);
CUresult pln_shared_wait(struct pln_shared *shared, uint64_t seq, bool block);
CUresult pln_shared_await(struct pln_shared *shared, CUstream stream);
void pln_shared_unuse(struct CUevent_st *event);
/* The recording that @job is has ended, well or badly; pln.order is held */
void pln_shared_done(struct pln_job *job);

/* ---- callback.c ---- */
bool pln_in_call(void);			/* in a function of the program */

/* ---- module.c ---- */
/* A module, or a library, which has no context */
struct CUmod_st {
	struct pln_obj obj;
	struct CUctx_st *ctx;		/* NULL: a library; no reference */
	struct pln_image *image;	/* shared by a library and its modules */
	CUdeviceptr *at;		/* pln.lock: of a module's variables; or NULL */
	bool gone;			/* likewise: unloaded */
	/* pln.lock: a library's modules, one in each context that asked for it */
	LIST_HEAD(, CUmod_st) modules;
	bool of_library;
	LIST_ENTRY(CUmod_st) sibling;
	LIST_HEAD(, CUfunc_st) functions;
	LIST_ENTRY(CUmod_st) link;
};

/* A kernel, or a function: in one module or library */
struct CUfunc_st {
	struct pln_obj obj;
	struct CUmod_st *code;
	int shared;			/* pln.lock: dynamic, most of a block */
	int carveout;			/* likewise: for shared memory, per cent */
	LIST_ENTRY(CUfunc_st) link;
	char name[];
};

void pln_code_free(struct CUmod_st *code);
void pln_function_free(struct CUfunc_st *function);
void pln_ctx_unload(CUcontext ctx);

/* ---- pointer.c ---- */
/* Where a pointer leads */
struct pln_place {
	bool device;
	bool pinned;			/* host memory known to the library */
	bool io;			/* host addresses of a device: only the CPU copies */
	uint32_t peers;			/* devices that reach it without peer access */
	uint32_t readers, writers;	/* devices that may, as the program has said */
	bool sync_memops;
	CUstream stream;		/* of device memory: its context's default */
	CUcontext owner;		/* it ends with this one, or NULL; goes with @stream */
	uint32_t handle;
	uint64_t offset;		/* in the handle, or host address */
	uint64_t addr;			/* as the program gave it */
};
CUresult pln_place_get(uint64_t addr, size_t n, struct pln_place *place);
void pln_place_put(struct pln_place *place);
/*
 * May a call not go on there in another step, as its memory goes, or has gone with its
 * context?  Its number may be another one's.  The work @by is waited for, until it is
 * cancelled.
 */
bool pln_place_gone(const struct pln_place *place, const struct pln_job *by);
size_t pln_place_piece(uint64_t addr, size_t n);
/* May work in @stream read, or write, there? */
CUresult pln_place_may(CUstream stream, const struct pln_place *place,
		       bool write);

/* ---- copy.c ---- */
/* Pageable memory as it was when the program asked for a copy */
struct pln_stage {
	size_t size;
	unsigned char data[];
};

void pln_stage_free(struct pln_stage *stage);
bool pln_place_on(CUstream stream, const struct pln_place *place);
/*
 * Is [@addr, @addr + @n) there in whole, where it begins in memory of a GPU, and
 * may work in the stream read, or write, all of it?
 */
CUresult pln_check_all(uint64_t addr, size_t n, CUstream handle, bool write);
/* What a pointer must be: PLN_DEVICE: what a GPU reaches by itself */
enum { PLN_ANY, PLN_DEVICE };
/* Host memory; an error, and no crash, where there is none */
CUresult pln_host_copy(uint64_t dst, uint64_t src, size_t n);
CUresult pln_stream_do(CUstream stream, const struct pln_span *span,
		       CUresult (*work)(struct pln_job *job, void *arg),
		       void *arg, bool sync);
CUresult pln_copy(uint64_t dst, int dst_kind, uint64_t src, int src_kind,
		  size_t n, CUstream stream, bool sync);
/* Run and wait; @result may be NULL */
CUresult pln_run(CUstream stream, struct pln_gpu_op *op, uint64_t *result);

/* ---- fill.c ---- */
/* One element of @width bytes, in the order of the stream */
CUresult pln_fill(CUdeviceptr dst, uint64_t value, unsigned int width,
		  CUstream stream);

#endif /* PEERLANE_CUDA_INTERNAL_H */
