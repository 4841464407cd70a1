/* SPDX-License-Identifier: MIT */
/*
 * Peerlane libcuda: what its files share.
 *
 * Locks, in the order in which they are taken:
 *   pln.lock		objects, ranges, contexts, devices
 *   file->submit_lock	one submission at a time, so that "last job" is true
 *   job->lock		one waiter asks the kernel, the others wait for it
 *   file->jobs_lock	queue FIFOs, job state
 * No call that can wait for the engine is made under pln.lock or jobs_lock.
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

struct pln_job {
	atomic_int refs;
	struct pln_file *file;
	struct pln_sink *sink;
	uint64_t id;			/* the kernel's number */
	uint64_t seq;			/* order of submission to its file */
	unsigned int queue;
	pthread_mutex_t lock;
	atomic_bool done;
	CUresult err;
	uint64_t result;
	uint64_t t_done;		/* CLOCK_MONOTONIC, ns */
	TAILQ_ENTRY(pln_job) link;
};

TAILQ_HEAD(pln_job_list, pln_job);

/* An open device file: owns memory and jobs in the kernel */
struct pln_file {
	atomic_int refs;
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
	pthread_mutex_t jobs_lock;
	struct pln_job_list queue[PLN_MAX_QUEUES];
};

/* ---- objects that the program holds handles of ---- */
enum pln_type {
	PLN_CTX, PLN_STREAM, PLN_EVENT, PLN_MEM, PLN_CODE, PLN_FUNCTION, PLN_POOL
};

struct pln_obj {
	enum pln_type type;
	atomic_int refs;
};

/* Something to wait for: a job, a recording of an event of two processes */
struct pln_dep {
	struct pln_job *job;		/* or NULL, as */
	struct pln_shared *shared;
	uint64_t number;		/* of the recording */
	struct pln_call *call;		/* of a function of the program */
};

/* Streams that must run in order among themselves share a lane */
struct pln_lane {
	unsigned int queue;
	struct pln_job *last;		/* submit_lock */
	struct pln_job *legacy;		/* likewise, of the default stream */
	struct pln_dep *deps;		/* pln.lock: what is not in this queue */
	size_t nr_deps;
};

struct CUstream_st {
	struct pln_obj obj;
	struct CUctx_st *ctx;
	struct pln_lane *lane;
	struct pln_lane own_lane;	/* of a non-blocking stream */
	struct pln_job *last;		/* submit_lock */
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

struct pln_span {
	uint64_t addr;
	uint64_t size;
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
	struct pln_job *after;		/* likewise: goes before its freeing */
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
	unsigned int api_version;
	unsigned int cache_config;
	size_t limits[3];
	struct pln_lane lane;		/* of all blocking streams */
	struct pln_lane left;		/* what destroyed streams waited for */
	CUstream legacy;
	LIST_HEAD(, CUstream_st) streams;
	LIST_HEAD(, CUevent_st) events;
	LIST_HEAD(, pln_range) ranges;
	LIST_HEAD(, pln_chunk) blocks;
	LIST_HEAD(, CUmod_st) modules;
	uint32_t peers;			/* devices whose memory may be reached */
	LIST_ENTRY(CUctx_st) link;
};

struct pln_global {
	pthread_mutex_t lock;
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

/* ---- job.c ---- */
struct pln_sink *pln_sink_new(void);
struct pln_sink *pln_sink_ref(struct pln_sink *sink);
void pln_sink_put(struct pln_sink *sink);
struct pln_job *pln_job_ref(struct pln_job *job);
void pln_job_put(struct pln_job *job);
/* 0 ended (well or badly), or CUDA_ERROR_NOT_READY, CUDA_ERROR_TIMEOUT */
CUresult pln_job_wait(struct pln_job *job, bool block);
CUresult pln_file_drain(struct pln_file *file);	/* its jobs */
/* All that was asked for until now: of a context; before memory goes */
CUresult pln_ctx_drain(CUcontext ctx);
CUresult pln_drain(struct pln_file *file);
CUresult pln_stream_new(CUcontext ctx, unsigned int flags, int priority,
			bool legacy, CUstream *out);
/* The stream behind a handle; references on it and its context */
CUresult pln_stream_get(CUstream handle, CUcontext *ctx, CUstream *stream);
void pln_stream_free(struct CUstream_st *stream);
void pln_event_free(struct CUevent_st *event);
CUresult pln_event_get(CUevent handle, CUevent *out);	/* a reference */
CUresult pln_event_new(CUcontext ctx, unsigned int flags,
		       struct pln_shared *shared, CUevent *out);
CUresult pln_submit(CUstream stream, struct pln_sink *sink,
		    struct pln_gpu_op *ops, unsigned int n,
		    struct pln_job **out);
CUresult pln_stream_wait(CUstream stream);
CUresult pln_stream_end(CUstream stream, bool block);
/* @stream is not done before @job is, which is of its queue */
void pln_stream_follow(CUstream stream, struct pln_job *job);
CUresult pln_dep_wait(struct pln_dep *dep, bool block);
/* Have what follows in @lane wait for @dep; pln.lock is held */
CUresult pln_lane_depend(struct pln_lane *lane, const struct pln_dep *dep);
void pln_lane_clear(struct pln_lane *lane);
/* Wait for what @lane waits for, and forget it; or what of it has ended */
CUresult pln_lane_settle(struct pln_lane *lane, bool block);
/*
 * A stream may go while a function is to be called in its order, or an event
 * awaited: whoever waits for the context waits for that yet.  pln.lock is held.
 */
CUresult pln_stream_leave(CUstream stream);
/* What has been submitted to @stream until now, or NULL */
CUresult pln_stream_mark(CUstream stream, struct pln_job **job);
/* Have what follows in @stream wait for @job; pln.lock is held */
CUresult pln_lane_wait_for(CUstream stream, struct pln_job *job);

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
CUresult pln_name_memory(struct pln_range *range, struct pln_name *name);
/* @pool: that it is of, a reference that the memory takes over, or NULL */
CUresult pln_open_memory(CUcontext ctx, const struct pln_name *name, int fd,
			 CUmemoryPool pool, CUdeviceptr *ptr);
struct pln_shared;
CUresult pln_shared_new(struct CUevent_st *event);
void pln_shared_put(struct pln_shared *shared);
struct pln_shared *pln_shared_ref(struct pln_shared *shared);
CUresult pln_shared_record(struct CUevent_st *event, CUstream stream,
			   struct pln_job **job);
uint64_t pln_shared_last(struct pln_shared *shared);
CUresult pln_shared_wait(struct pln_shared *shared, uint64_t seq, bool block);

/* ---- callback.c ---- */
struct pln_call;
bool pln_in_call(void);			/* in the thread that makes them */
struct pln_call *pln_call_ref(struct pln_call *call);
void pln_call_put(struct pln_call *call);
CUresult pln_call_wait(struct pln_call *call, bool block);
/* Have what follows in @stream wait for @call; @job goes before it */
CUresult pln_stream_call(CUstream stream, struct pln_call *call,
			 struct pln_job **job);

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
/* ---- copy.c ---- */
/* Where a pointer leads */
struct pln_place {
	bool device;
	bool pinned;			/* host memory known to the library */
	bool io;			/* host addresses of a device: only the CPU copies */
	uint32_t peers;			/* devices that reach it without peer access */
	uint32_t readers, writers;	/* devices that may, as the program has said */
	bool sync_memops;
	CUstream stream;		/* of device memory: its context's default */
	uint32_t handle;
	uint64_t offset;		/* in the handle, or host address */
	uint64_t addr;			/* as the program gave it */
};
CUresult pln_place_get(uint64_t addr, size_t n, struct pln_place *place);
void pln_place_put(struct pln_place *place);
size_t pln_place_piece(uint64_t addr, size_t n);
bool pln_place_on(CUstream stream, const struct pln_place *place);
/* May work in @stream read, or write, there? */
CUresult pln_place_may(CUstream stream, const struct pln_place *place,
		       bool write);
/*
 * Is [@addr, @addr + @n) there in whole, where it begins in memory of a GPU, and
 * may work in the stream read, or write, all of it?
 */
CUresult pln_check_all(uint64_t addr, size_t n, CUstream handle, bool write);
/* What a pointer must be: PLN_DEVICE: what a GPU reaches by itself */
enum { PLN_ANY, PLN_DEVICE };
/* Host memory; an error, and no crash, where there is none */
CUresult pln_host_copy(uint64_t dst, uint64_t src, size_t n);
CUresult pln_copy(uint64_t dst, int dst_kind, uint64_t src, int src_kind,
		  size_t n, CUstream stream, bool sync);
/* Run and wait; @result may be NULL */
CUresult pln_run(CUstream stream, struct pln_gpu_op *op, uint64_t *result);

#endif /* PEERLANE_CUDA_INTERNAL_H */
