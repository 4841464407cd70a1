/* SPDX-License-Identifier: MIT */
/*
 * Peerlane libcuda: what its files share.
 *
 * Locks, in the order in which they are taken:
 *   opening (ipc.c)	one handle of memory is opened at a time
 *   shared->lock	one recording of an event for other processes at a time
 *   drv.lock		objects, ranges, contexts, devices
 *   file->submit_lock	one submission at a time, so that queues have the streams' order
 *   job->lock		one waiter asks the kernel, the others wait for it
 *   drv.order		jobs: their state, what they follow, queue FIFOs
 *   files_lock (file.c)	the list of open files
 * No call that can wait for the engine is made under drv.lock or drv.order.
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

#define DRV_MAX_QUEUES		16
/* How long a wait lasts at most in which nothing happens */
#define DRV_WAIT_LIMIT_NS	(120 * 1000000000ull)

#define KiB			1024ull
#define MiB			(1024 * KiB)

/* Shared memory of a kernel's block, and of one that asks for more */
#define DRV_USUAL_SHARED	((int)(48 * KiB))
#define DRV_MAX_SHARED		((int)(227 * KiB))

/*
 * Begins a function that programs replace in memory.  UCX does that to learn of
 * memory that comes and goes: it moves the first 5 to 12 bytes elsewhere, and knows
 * few instructions that can be moved.  A number into a register is one of them,
 * and rax is free where a function begins.
 */
#ifdef __x86_64__
#define DRV_PATCHABLE(name, ...)					\
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
#define DRV_PATCHABLE(name, ...)	CUresult name(__VA_ARGS__)
#endif

/* ---- devices ---- */
struct drv_file;

struct drv_device {
	int ordinal;
	unsigned int minor;
	struct pln_gpu_query info;	/* as of cuInit() */
	struct drv_file *file;		/* shared by contexts, NULL when none */
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
struct drv_sink {
	atomic_int refs;
	atomic_int err;			/* CUresult */
	/* drv.order: of a stream that is gone: where its errors go; a reference */
	struct drv_sink *forward;
};

/* Something for a thread of the library to do */
struct drv_task {
	void (*run)(void *arg);
	void *arg;
	STAILQ_ENTRY(drv_task) link;
};

enum drv_task_kind {
	DRV_TASK_HELP,			/* waits for engines and the kernel at most */
	DRV_TASK_WORK,			/* the program may hold it up */
};

struct drv_job;
struct drv_shared;

/* @waiter follows @job; drv.order */
struct drv_edge {
	struct drv_job *waiter;
	struct drv_job *job;		/* a reference; NULL: followed no more */
	LIST_ENTRY(drv_edge) link;
};

enum drv_job_kind {
	DRV_JOB_ENGINE,
	DRV_JOB_WORK,			/* of a thread of the library */
	DRV_JOB_JOIN,			/* nothing but what it follows */
};

enum drv_job_state {
	DRV_JOB_WAITING,		/* for what it follows */
	DRV_JOB_READY,			/* or a thread is at it */
	DRV_JOB_QUEUED,			/* in the kernel */
	DRV_JOB_DONE,
};

/* Whose freeing waits for work of a thread */
enum drv_use {
	DRV_USE_NONE,
	DRV_USE_FILE,			/* memory of its own GPU: the program's functions */
	DRV_USE_SPAN,			/* the memory that it waits for a value in */
	DRV_USE_ANY,			/* memory of its own GPU, and what it copies or fills */
};

struct drv_span {
	uint64_t addr;
	uint64_t size;
};

#define DRV_JOB_MAX_OPS	2

struct drv_job {
	atomic_int refs;
	enum drv_job_kind kind;
	struct drv_file *file;
	struct drv_sink *sink;
	struct drv_sink *fault;		/* its context's */
	uint64_t ctx;			/* number of its context */
	uint64_t stream;		/* likewise */
	struct pln_gpu_op op[DRV_JOB_MAX_OPS];	/* of DRV_JOB_ENGINE */
	unsigned int nr_ops;
	unsigned int queue;
	/* Of DRV_JOB_WORK; what follows must find everything given back */
	CUresult (*work)(struct drv_job *job, void *arg);
	void *arg;
	enum drv_use use;
	struct drv_span span[2];	/* of DRV_USE_SPAN (the first), DRV_USE_ANY */
	struct drv_task task;
	atomic_bool cancelled;		/* its context is gone: no effects */
	uint64_t id;			/* the kernel's number */
	uint64_t seq;			/* order of submission to its file */
	pthread_mutex_t lock;
	atomic_int wanted;		/* threads that wait for its end */
	atomic_int state;		/* drv.order, and what follows */
	uint64_t number;		/* order of those that are not in the kernel */
	unsigned int awaited;		/* threads that sleep until it is there, at least */
	struct drv_edge *edges;		/* what it follows; one: own_edge */
	struct drv_edge own_edge;
	size_t nr_edges, unmet;
	struct drv_job *behind;		/* in its queue, while it is being submitted; or NULL */
	LIST_ENTRY(drv_job) left;	/* of its context */
	bool is_left;
	LIST_HEAD(, drv_edge) waiters;	/* what follows it */
	bool stray;			/* of a context that was given up; or it follows such */
	bool look;			/* at a value: others come, so it is no progress */
	CUresult before;		/* error of what it follows */
	struct drv_stage *stage;	/* what it copies, which it owns; or NULL */
	struct drv_shared *shared;	/* what it records, a reference; or NULL */
	uint64_t recording;		/* its number there */
	CUresult err;
	uint64_t result;
	uint64_t t_done;		/* by drv_file_time() */
	TAILQ_ENTRY(drv_job) link;	/* of its queue, or of what is pending */
	STAILQ_ENTRY(drv_job) next;	/* ready, or ended */
};

TAILQ_HEAD(drv_job_list, drv_job);
STAILQ_HEAD(drv_job_fifo, drv_job);

/* A thread sees to it that the end of the queue's jobs is noticed in time */
struct drv_watch {
	struct drv_file *file;		/* a reference while it is active */
	struct drv_job *upto;		/* the last one that matters, or NULL */
	bool active;
	struct drv_task task;
};

/* An open device file: owns memory and jobs in the kernel */
struct drv_file {
	atomic_int refs;
	LIST_ENTRY(drv_file) link;
	struct drv_device *dev;
	int fd;
	uint64_t features;
	uint64_t reset_count;
	uint32_t page_size;
	unsigned int num_queues;
	unsigned int next_queue;
	atomic_bool lost;		/* memory gone: reset or removal */
	pthread_mutex_t submit_lock;
	uint64_t submitted;		/* submit_lock: jobs so far */
	struct drv_job_list queue[DRV_MAX_QUEUES];	/* drv.order */
	struct drv_watch watch[DRV_MAX_QUEUES];		/* likewise */
	/* Likewise: work of the engine that follows nothing any more */
	struct drv_job_fifo ready;
	bool dispatching;		/* a thread is giving it to the kernel */
	struct drv_task dispatcher;
	unsigned int helpers;		/* likewise: threads of the library at work */
};

/* ---- objects that the program holds handles of ---- */
enum drv_type {
	DRV_CTX, DRV_STREAM, DRV_EVENT, DRV_MEM, DRV_CODE, DRV_FUNCTION, DRV_POOL
};

struct drv_obj {
	enum drv_type type;
	atomic_int refs;
};

struct CUstream_st {
	struct drv_obj obj;
	struct CUctx_st *ctx;
	bool legacy;			/* the default stream */
	uint64_t thread;		/* whose default stream it is, or 0 */
	unsigned int queue;
	struct drv_job *last;		/* drv.order; not of the default stream */
	struct drv_sink *sink;
	unsigned int flags;
	int priority;
	uint64_t id;
	LIST_ENTRY(CUstream_st) link;
};

struct CUevent_st {
	struct drv_obj obj;
	struct CUctx_st *ctx;
	unsigned int flags;
	bool recorded;			/* drv.lock, and what follows */
	struct drv_job *job;
	uint64_t t_record;
	struct drv_shared *shared;	/* of CU_EVENT_INTERPROCESS */
	uint64_t recording;		/* likewise: number of that of job */
	CUdeviceptr words;		/* GPU memory for it, 0: not yet */
	LIST_ENTRY(CUevent_st) link;
};

/* One allocation of the kernel */
struct drv_chunk {
	uint64_t addr;			/* first two: as struct drv_range */
	uint64_t size;
	struct drv_file *file;
	uint32_t handle;
	bool block;			/* shared by small allocations */
	unsigned int exports;		/* dma-bufs that may still reach it */
	unsigned int users;		/* allocations, and calls at work */
	unsigned long long id;
	struct drv_mem *mem;		/* of cuMemCreate() */
	struct CUctx_st *home;		/* the library's own, see pointer.c */
	uint8_t *map;			/* of a block: one byte per 512 */
	LIST_ENTRY(drv_chunk) link;
};

/* What a handle for another process holds */
struct drv_name {
	uint32_t magic;
	int32_t pid;
	int32_t fd;
	uint32_t device;		/* of memory: function address on PCI */
	uint64_t inode;			/* the descriptor must still be of it */
	uint64_t offset;		/* of memory, in the dma-buf */
	uint64_t size;
	uint64_t pool;			/* of memory of one: its number */
};

enum drv_range_kind {
	DRV_RANGE_HOST,
	DRV_RANGE_REGISTERED,
	DRV_RANGE_DEVICE,		/* from here on: memory of a GPU */
	DRV_RANGE_IPC,			/* of another process */
	DRV_RANGE_MANAGED,
	DRV_RANGE_VMM,			/* by cuMemMap(), has no context */
	DRV_RANGE_POOL,			/* likewise */
	DRV_RANGE_IMPORTED,		/* of a pool of another process */
	DRV_RANGE_CODE,			/* a variable of a module */
};

/* What a pointer of the program can point into */
struct drv_range {
	uint64_t addr;
	uint64_t size;
	enum drv_range_kind kind;
	struct CUctx_st *ctx;
	struct drv_device *dev;
	struct drv_chunk *chunk;	/* of memory of a GPU */
	uint32_t readers, writers;	/* DRV_RANGE_VMM: devices that may */
	struct CUmemPoolHandle_st *pool;
	struct drv_block *block;	/* DRV_RANGE_POOL: where in the pool */
	struct drv_job *after;		/* likewise: freed, known until this has ended */
	struct drv_advice *advice;	/* DRV_RANGE_MANAGED: the first, or NULL */
	int export_fd;			/* for other processes, plus 1 */
	struct drv_name name;		/* DRV_RANGE_IPC, IMPORTED: what was opened, */
	unsigned int opened;		/* and how often */
	size_t map_size;		/* DRV_RANGE_HOST */
	unsigned int flags;
	bool sync_memops;
	struct drv_job *left;		/* ends with what synchronous calls have left; or NULL */
	unsigned long long id;
	LIST_ENTRY(drv_range) link;
};

static inline bool drv_on_device(const struct drv_range *range)
{
	return range->kind >= DRV_RANGE_DEVICE;
}

struct drv_slab;
struct drv_block;

#define DRV_POOL_REUSES	3		/* attributes 1 to 3, switches */

/* drv.lock for all but what stays as it was made */
struct CUmemPoolHandle_st {
	struct drv_obj obj;
	struct drv_device *dev;
	CUmemPoolProps props;
	uint64_t id;			/* the same in all processes */
	bool imported;
	bool gone;			/* destroyed, some memory is still used */
	uint32_t peers;			/* other devices that reach it */
	int reuse[DRV_POOL_REUSES];
	uint64_t threshold;
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	LIST_HEAD(, drv_slab) slabs;
	LIST_ENTRY(CUmemPoolHandle_st) link;
};

/* Memory of pools, of other processes and managed memory is not given to other devices */
static inline bool drv_rdma_capable(const struct drv_range *range)
{
	return range->kind != DRV_RANGE_POOL &&
	       range->kind != DRV_RANGE_IMPORTED &&
	       range->kind != DRV_RANGE_IPC &&
	       range->kind != DRV_RANGE_MANAGED;
}

/* What cuMemCreate() made */
struct drv_mem {
	struct drv_obj obj;
	struct drv_file *file;
	uint32_t handle;
	uint64_t size;
	uint64_t mmap_offset;
	CUmemAllocationProp prop;
	bool imported;
	unsigned int handles;		/* drv.lock: that the program holds */
};

/* Of a context: one that peer access is on for, until that one is destroyed */
struct drv_peer {
	CUcontext ctx;
	LIST_ENTRY(drv_peer) link;
};

struct CUctx_st {
	struct drv_obj obj;
	struct drv_device *dev;
	struct drv_file *file;
	unsigned int flags;
	bool primary;
	atomic_bool destroyed;
	uint64_t id;
	struct drv_sink *fault;		/* of the engine: of all calls from then on */
	struct drv_sink *gone;		/* of streams that are gone */
	unsigned int api_version;
	unsigned int cache_config;
	size_t limits[3];
	struct drv_job *barrier;	/* drv.order: last of the default stream */
	/* Likewise: the last of blocking streams that are gone, since that one */
	LIST_HEAD(, drv_job) left;
	CUstream legacy;
	LIST_HEAD(, CUstream_st) streams;	/* drv.order, too, to change it */
	LIST_HEAD(, CUevent_st) events;
	LIST_HEAD(, drv_range) ranges;
	LIST_HEAD(, drv_chunk) blocks;
	LIST_HEAD(, CUmod_st) modules;
	LIST_HEAD(, drv_peer) peers;	/* contexts whose memory may be reached */
	STAILQ_HEAD(, drv_words) words;	/* for events */
	LIST_ENTRY(CUctx_st) link;
};

/* Memory that contexts on other devices reach by peer access to its own */
static inline bool drv_is_apart(const struct drv_range *range)
{
	return range->kind == DRV_RANGE_DEVICE || range->kind == DRV_RANGE_IPC;
}

/* Memory of another process, open in a context on another GPU than its own */
static inline bool drv_is_far(const struct drv_range *range)
{
	return (range->kind == DRV_RANGE_IPC ||
		range->kind == DRV_RANGE_IMPORTED) &&
	       range->ctx->dev != range->dev;
}

struct drv_global {
	pthread_mutex_t lock;
	pthread_mutex_t order;
	atomic_bool ready;
	atomic_bool forked;
	int nr_devices;
	struct drv_device *devices;
	void *objects;			/* tree of struct drv_obj by address */
	void *ranges;			/* tree of struct drv_range */
	void *chunks;			/* tree of struct drv_chunk */
	void *reservations;		/* tree of struct drv_span */
	atomic_ullong next_id;
};

extern struct drv_global drv;

/* ---- core.c ---- */
void drv_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
CUresult drv_ready(void);
uint64_t drv_now(void);
CUresult drv_obj_add(struct drv_obj *obj);		/* drv.lock held */
void drv_obj_del(struct drv_obj *obj);			/* drv.lock held */
void *drv_obj_find(const void *handle, enum drv_type type); /* likewise */
/* @none: the error when there is no such object; drv.lock is not held */
void *drv_obj_get(const void *handle, enum drv_type type, CUresult none,
		  CUresult *err);
void drv_obj_put(struct drv_obj *obj);
struct drv_device *drv_device_get(CUdevice dev);
/* The device that a call names, in a library that is ready */
CUresult drv_device_named(CUdevice dev, struct drv_device **out);

/* ---- device.c ---- */
CUresult drv_devices_find(void);
bool drv_peers(const struct drv_device *dev, const struct drv_device *peer);

/* ---- file.c ---- */
struct drv_file *drv_file_open(struct drv_device *dev, CUresult *err);
struct drv_file *drv_file_ref(struct drv_file *file);
void drv_file_put(struct drv_file *file);
/* The one after @file, the first after NULL: a reference, for that on @file */
struct drv_file *drv_file_next(struct drv_file *file);
CUresult drv_file_error(struct drv_file *file, int error);
/*
 * @t: the clock of its GPU, in ns; of the CPU where the driver does not tell it.  As it
 * was after an error.
 */
CUresult drv_file_time(struct drv_file *file, uint64_t *t);
struct drv_file *drv_device_unuse(struct drv_device *dev); /* drv.lock held */
/* The open file of @dev, which stays open while the caller counts as a user */
CUresult drv_file_use(struct drv_device *dev, struct drv_file **file);
void drv_file_unuse(struct drv_file *file);

/* ---- context.c ---- */
CUresult drv_ctx_current(CUcontext *ctx);		/* takes a reference */
CUresult drv_ctx_get(CUcontext handle, CUcontext *ctx);	/* likewise */
CUresult drv_ctx_needed(void);		/* is there a current one? */
/* drv.lock is held: does peer access, or its own device, let @ctx reach memory of @owner? */
bool drv_ctx_reaches(CUcontext ctx, CUcontext owner);
/* drv.lock is held: it reaches nobody any more, nor does anybody reach it */
void drv_ctx_unpeer(CUcontext ctx);
/* For questions that a lost context can still answer; no reference */
CUresult drv_ctx_current_any(CUcontext *ctx);
CUresult drv_ctx_state(CUcontext ctx);
void drv_ctx_put(CUcontext ctx);
void drv_ctx_free(struct CUctx_st *ctx);
CUresult drv_ctx_check_flags(unsigned int flags);
/* drv.lock is held; the table has the only reference */
CUresult drv_ctx_new(struct drv_device *dev, unsigned int flags, bool primary,
		     unsigned int version, CUcontext *out);
/* drv.lock is not held; false: somebody else did it */
bool drv_ctx_destroy(CUcontext ctx);

/* ---- job.c, submit.c, follow.c, wait.c ---- */
struct drv_sink *drv_sink_new(void);
struct drv_sink *drv_sink_ref(struct drv_sink *sink);
void drv_sink_put(struct drv_sink *sink);
struct drv_job *drv_job_ref(struct drv_job *job);
void drv_job_put(struct drv_job *job);
/* 0 ended (well or badly), or CUDA_ERROR_NOT_READY, CUDA_ERROR_LAUNCH_TIMEOUT */
CUresult drv_job_wait(struct drv_job *job, bool block);
CUresult drv_file_drain(struct drv_file *file);	/* its jobs */
/* All that was asked for until now: of a context; before memory goes */
CUresult drv_ctx_drain(CUcontext ctx);
CUresult drv_drain(struct drv_file *file, const struct drv_span *span);
/* The jobs that are in the kernel, of every GPU */
CUresult drv_drain_engines(void);
CUresult drv_stream_new(CUcontext ctx, unsigned int flags, int priority,
			bool legacy, CUstream *out);
/* The stream behind a handle; references on it and its context */
CUresult drv_stream_get(CUstream handle, CUcontext *ctx, CUstream *stream);
void drv_stream_free(struct CUstream_st *stream);
void drv_event_free(struct CUevent_st *event);
CUresult drv_event_get(CUevent handle, CUevent *out);	/* a reference */
CUresult drv_event_new(CUcontext ctx, unsigned int flags,
		       struct drv_shared *shared, CUevent *out);
/* Before and after the library's first use of a file */
void drv_file_jobs_init(struct drv_file *file);
/* Wait until no thread of the library is at work on @file */
void drv_file_quiet(struct drv_file *file);
/*
 * Queue @n operations as one job of @stream.  Its error goes to @sink, or to
 * the stream when @sink is NULL.  @out may be NULL.
 */
CUresult drv_submit(CUstream stream, struct drv_sink *sink,
		    const struct pln_gpu_op *ops, unsigned int n,
		    struct drv_job **out);
/* The same for a recording in @shared, with its number */
CUresult drv_submit_record(CUstream stream, struct drv_shared *shared,
			   uint64_t number, const struct pln_gpu_op *ops,
			   unsigned int n, struct drv_job **out);
/* The same for a copy from @stage, which is taken over in any case */
CUresult drv_submit_staged(CUstream stream, struct drv_stage *stage,
			   const struct pln_gpu_op *op);
/* The same at once, whatever the stream has to wait for */
CUresult drv_submit_now(CUstream stream, struct drv_sink *sink,
			const struct pln_gpu_op *op, struct drv_job **out);
/* Likewise, to look at a value that is awaited */
CUresult drv_submit_look(CUstream stream, struct drv_sink *sink,
			 const struct pln_gpu_op *op, struct drv_job **out);
/*
 * Have a thread of the library call @work in the order of @stream.  @span: two, of
 * DRV_USE_SPAN and DRV_USE_ANY, else NULL.  @work is called in any case, and must have no effect but
 * to give back @arg when job->cancelled is set.
 */
CUresult drv_stream_work(CUstream stream, struct drv_sink *sink,
			 enum drv_use use, const struct drv_span *span,
			 CUresult (*work)(struct drv_job *job, void *arg),
			 void *arg, struct drv_job **out);
CUresult drv_stream_wait(CUstream stream);
/* The thread is in a second symbol of a function: NULL is its own default stream */
extern __thread bool drv_own_default;
CUresult drv_stream_end(CUstream stream, bool block);
/*
 * A job that ends with all that was submitted to @stream until now, or NULL.  In the
 * default stream it is one more job, which later ones of blocking streams follow.
 */
CUresult drv_stream_mark(CUstream stream, struct drv_job **job);
/* Likewise, and with what contexts that were given up have in the kernel */
CUresult drv_stream_mark_all(CUstream stream, struct drv_job **job);
/*
 * drv.lock is held: a job that ends with all that uses the memory of @range, of a GPU,
 * by now; NULL: nothing does.
 */
CUresult drv_range_mark(const struct drv_range *range, struct drv_job **job);
/*
 * *@left, a job or NULL, is to end with what is last in @stream, too.  Returns that, with
 * a reference, where there is no memory to note it, or @left is NULL; else NULL.
 */
struct drv_job *drv_stream_left(CUstream stream, struct drv_job **left);
/* Does work of @stream wait for what is not in the kernel? */
bool drv_stream_held(CUstream stream);
/* Have what follows in @stream wait for @job */
CUresult drv_stream_follow(CUstream stream, struct drv_job *job);
/* Does what follows in @stream come after @job anyway? */
bool drv_stream_behind(CUstream stream, struct drv_job *job);
/* drv.lock is held, drv.order is not: the stream is in its context's list no more */
void drv_stream_leave(CUstream stream);
/* Let go of what the default stream of @ctx, which nobody uses any more, follows */
void drv_ctx_forget(CUcontext ctx);
/* Let the kernel forget ended jobs, so that it has room for new ones; no lock is held */
void drv_reap(struct drv_file *file);
/* Has something not ended that uses that memory? */
bool drv_job_uses(struct drv_file *file, uint32_t handle,
		  const struct drv_span *span);
/*
 * @ctx is to go: wait for all of it.  What is left after the time limit has no
 * effect any more.
 */
void drv_ctx_end(CUcontext ctx);
/*
 * Memory of such a context goes: no value will come there, and what is still to use it
 * after the time limit has no effect.
 */
void drv_span_end(const struct drv_span *span);
/* Likewise @span of @handle, whose number may be another one's soon */
void drv_handle_end(struct drv_file *file, uint32_t handle,
		    const struct drv_span *span);
void drv_order_init(void);
bool drv_is_watcher(void);	/* the thread only looks at the end of jobs */

/* ---- memop.c ---- */
CUresult drv_value_wait(struct drv_job *job, void *arg);

/* ---- worker.c: drv.order is held ---- */
/* Is there a thread of each kind at least? */
bool drv_workers_ready(void);
void drv_task_start(struct drv_task *task, enum drv_task_kind kind);
/* Make threads that could not be made before */
void drv_tasks_serve(void);

/* ---- memory.c ---- */
/* drv.lock is held in what looks at trees */
void *drv_span_find(void *const *tree, uint64_t addr, uint64_t n);
int drv_span_cmp(const void *a, const void *b);
bool drv_span_has(uint64_t addr, uint64_t n, uint64_t base, uint64_t size);
struct drv_range *drv_range_find(uint64_t addr, uint64_t n);
CUresult drv_range_add(struct drv_range *range);
void drv_range_del(struct drv_range *range);
void drv_range_back(struct drv_range *range);	/* drv.lock is not held */
void drv_range_free(struct drv_range *range);
#define DRV_KIND(kind)	(1u << DRV_RANGE_##kind)
/*
 * Free what begins at @addr, behind everything that may use it.  @kinds: bits of
 * DRV_KIND(); @none: the error when nothing is there.
 */
CUresult drv_take_and_free(uint64_t addr, unsigned int kinds, CUresult none);
void *drv_reserve(size_t size, size_t align);
CUresult drv_map(struct drv_file *file, void *va, size_t size,
		 uint64_t offset);
void drv_handle_free(struct drv_file *file, uint32_t handle);
CUresult drv_chunk_new(struct drv_file *file, uint32_t handle, uint64_t size,
		       uint64_t mmap_offset, struct drv_chunk **out);
CUresult drv_chunk_alloc(struct drv_file *file, size_t size, bool block,
			 struct drv_chunk **out);
uint64_t drv_small_align(const struct drv_file *file, uint64_t size);
CUresult drv_chunk_add(CUcontext ctx, struct drv_chunk *chunk);
bool drv_chunk_drop(struct drv_chunk *chunk);
void drv_chunk_free(struct drv_chunk *chunk);
CUresult drv_device_alloc(CUcontext ctx, size_t size,
			  enum drv_range_kind kind, CUdeviceptr *out);
/* The library's own in @ctx, which nothing uses */
void drv_device_free(CUcontext ctx, CUdeviceptr ptr);
void drv_ctx_free_memory(CUcontext ctx);

/* ---- managed.c ---- */
/* @advice and all behind it */
void drv_advice_free(struct drv_advice *advice);

/* ---- vmm.c ---- */
void drv_mem_free(struct drv_mem *mem);
/* Nobody reaches memory there: addresses that the program has reserved and not mapped */
void *drv_no_access(uint64_t addr, size_t size);

/* ---- pool.c ---- */
CUresult drv_pool_new(struct drv_device *dev, const CUmemPoolProps *props,
		      CUmemoryPool *out);
void drv_pool_free(struct CUmemPoolHandle_st *pool);
CUresult drv_pool_get(CUmemoryPool handle, CUmemoryPool *out);
/* The one that cuMemAllocAsync() uses; a reference when @get */
CUresult drv_pool_current(struct drv_device *dev, bool get, CUmemoryPool *out);

/* ---- slab.c ---- */
/* Give memory back that nobody uses, and keep @keep bytes at least; was there any? */
bool drv_pool_trim(CUmemoryPool pool, uint64_t keep);
bool drv_pools_squeeze(struct drv_device *dev);	/* all that nobody uses */
void drv_pools_settle(struct drv_device *dev);	/* what is above the threshold */
void drv_pool_give(struct drv_range *range);
/* cuMemFree() of memory of a pool; false: there is none at @ptr, or it can only be waited for */
bool drv_pool_memory_free(CUdeviceptr ptr);

/* ---- ipc.c ---- */
CUresult drv_name_fd(struct drv_name *name, int fd);
/* A descriptor of our own for what @name says */
CUresult drv_take_fd(const struct drv_name *name, uint32_t magic, int *out);
uint32_t drv_device_name(const struct drv_device *dev);
/* The one with that name, or NULL */
struct drv_device *drv_device_of_name(uint32_t name);
CUresult drv_name_memory(struct drv_range *range, struct drv_name *name);
/* @pool: that it is of, or NULL.  What is open in @ctx is given again, to be closed as often */
CUresult drv_open_memory(CUcontext ctx, const struct drv_name *name, int fd,
			 CUmemoryPool pool, CUdeviceptr *ptr);
CUresult drv_shared_new(struct CUevent_st *event);
void drv_shared_put(struct drv_shared *shared);
struct drv_shared *drv_shared_ref(struct drv_shared *shared);
CUresult drv_shared_record(struct CUevent_st *event, CUstream stream,
			   struct drv_job **job, uint64_t *recording);
uint64_t drv_shared_last(struct drv_shared *shared);
CUresult drv_shared_wait(struct drv_shared *shared, uint64_t seq, bool block);
CUresult drv_shared_await(struct drv_shared *shared, CUstream stream);
void drv_shared_unuse(struct CUevent_st *event);
/* And those of @ctx, which is gone */
void drv_shared_forget(CUcontext ctx);
/* The recording that @job is has ended, well or badly; drv.order is held */
void drv_shared_done(struct drv_job *job);

/* ---- callback.c ---- */
bool drv_in_call(void);			/* in a function of the program */

/* ---- module.c ---- */
/* A module, or a library, which has no context */
struct CUmod_st {
	struct drv_obj obj;
	struct CUctx_st *ctx;		/* NULL: a library; no reference */
	struct drv_image *image;	/* shared by a library and its modules */
	CUdeviceptr *at;		/* drv.lock: of a module's variables; or NULL */
	bool gone;			/* likewise: unloaded */
	/* drv.lock: a library's modules, one in each context that asked for it */
	LIST_HEAD(, CUmod_st) modules;
	bool of_library;
	LIST_ENTRY(CUmod_st) sibling;
	LIST_HEAD(, CUfunc_st) functions;
	LIST_ENTRY(CUmod_st) link;
};

/* A kernel, or a function: in one module or library */
struct CUfunc_st {
	struct drv_obj obj;
	struct CUmod_st *code;
	int shared;			/* drv.lock: dynamic, most of a block */
	int carveout;			/* likewise: for shared memory, per cent */
	LIST_ENTRY(CUfunc_st) link;
	char name[];
};

void drv_code_free(struct CUmod_st *code);
void drv_function_free(struct CUfunc_st *function);
void drv_ctx_unload(CUcontext ctx);

/* ---- pointer.c ---- */
/* Where a pointer leads */
struct drv_place {
	bool device;
	bool pinned;			/* host memory known to the library */
	bool io;			/* host addresses of a device: only the CPU copies */
	bool apart;			/* other devices reach it by peer access to its owner */
	uint32_t peers;			/* devices that reach it without peer access */
	uint32_t readers, writers;	/* devices that may, as the program has said */
	bool sync_memops;
	CUstream stream;		/* of device memory: its context's default */
	CUcontext owner;		/* it ends with this one, or NULL; goes with @stream */
	uint32_t handle;
	uint64_t offset;		/* in the handle, or host address */
	uint64_t addr;			/* as the program gave it */
};
/* drv.lock is held: does @ctx reach it, without another one's engine? */
bool drv_range_reached(const struct drv_range *range, CUcontext ctx);
/* A synchronous call has left its work with the memory at @addr to @stream */
CUresult drv_left(CUstream stream, uint64_t addr);
CUresult drv_place_get(uint64_t addr, size_t n, struct drv_place *place);
void drv_place_put(struct drv_place *place);
/*
 * May a call not go on there in another step, as its memory goes, or has gone with its
 * context?  Its number may be another one's.  The work @by is waited for, until it is
 * cancelled.
 */
bool drv_place_gone(const struct drv_place *place, const struct drv_job *by);
size_t drv_place_piece(uint64_t addr, size_t n);
/* What work does in a place */
enum {
	DRV_READS	= 0,
	DRV_WRITES	= 1,
	DRV_ALONE	= 2,		/* and in no other place */
};
/* May work of @ctx do that there? */
CUresult drv_place_may(CUcontext ctx, const struct drv_place *place,
		       unsigned int does);

/* ---- copy.c ---- */
/* Pageable memory as it was when the program asked for a copy */
struct drv_stage {
	size_t size;
	unsigned char data[];
};

void drv_stage_free(struct drv_stage *stage);
bool drv_place_on(CUstream stream, const struct drv_place *place);
/*
 * Is [@addr, @addr + @n) there in whole, where it begins in memory of a GPU, and
 * may work of the stream do that in all of it?
 */
CUresult drv_check_all(uint64_t addr, size_t n, CUstream handle,
		       unsigned int does);
/* What a pointer must be: DRV_DEVICE: what a GPU reaches by itself */
enum { DRV_ANY, DRV_DEVICE };
/* Host memory; an error, and no crash, where there is none */
CUresult drv_host_copy(uint64_t dst, uint64_t src, size_t n);
CUresult drv_stream_do(CUstream stream, const struct drv_span *span,
		       CUresult (*work)(struct drv_job *job, void *arg),
		       void *arg, bool sync);
CUresult drv_copy(uint64_t dst, int dst_kind, uint64_t src, int src_kind,
		  size_t n, CUstream stream, bool sync);
/* Run and wait; @result may be NULL */
CUresult drv_run(CUstream stream, struct pln_gpu_op *op, uint64_t *result);

/* ---- fill.c ---- */
/* One element of @width bytes, in the order of the stream */
CUresult drv_fill(CUdeviceptr dst, uint64_t value, unsigned int width,
		  CUstream stream);

#endif /* PEERLANE_CUDA_INTERNAL_H */
