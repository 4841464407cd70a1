/* SPDX-License-Identifier: MIT */
/*
 * Inside libcufile: who does what.
 *
 *   driver.c  open and close, properties
 *   param.c   parameters and the like
 *   config.c  cufile.json (json.c), environment, parameters set by call
 *   deny.c    its denylist, and keys that nobody knows
 *   cu.c      libcuda.so.1 by dlopen(); what a pointer is
 *   handle.c  file handles and registered buffers
 *   node.c    descriptors, which the program may have closed
 *   io.c      read and write: the table of paths, and the choice
 *   p2p.c     the p2p path and the kernel path: what they have in common
 *   scratch.c GPU memory of its own, for parts of blocks
 *   module.c  the kernel module, which does the latter's IO
 *   layers.c  what between a file and its drives keeps p2p from them
 *   fabric.c  whether the RDMA devices of other hosts' drives reach the GPU
 *   cache.c   the cache path: leases and registrations of the page cache
 *   batch.c   batches of them
 *   ring.c    what batches and streams have in an io_uring
 *   async.c   those in the order of CUDA streams
 *   work.c    threads that do what is not done by its caller
 *   verdict.c what is known of paths between device and GPU, and said about p2p
 *   window.c  their mappings and registrations of GPU memory, a cache with eviction
 *   uvm.c     those that nvidia-uvm lends of a real NVIDIA GPU (nvrm.c)
 *   bounce.c  the bounce path: its two stages
 *   lane.c    its pinned buffers and streams
 *   crew.c    its helper threads
 *   stats.c   counters and reasons, and the page where others read them (page.h)
 *   page_json.c  what it has, as JSON
 *   count.c   the counters of cuFile's own statistics
 *   log.c     log lines, the kernel's own words
 */
#ifndef PLN_CUFILE_INTERNAL_H
#define PLN_CUFILE_INTERNAL_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cufile.h"
#include "cu.h"
#include "node.h"
#include "page.h"
#include <peerlane/file.h>

#define EXPORT	__attribute__((visibility("default")))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#define KIB(x)		((size_t)(x) << 10)
#define MIB(x)		((size_t)(x) << 20)
#define GPU_PAGE	KIB(64)	/* granularity of GPU mappings */
#define PAGE		KIB(4)	/* and of dma-bufs, as of the CPU */

static inline uint64_t round_down(uint64_t x, uint64_t align)
{
	return x / align * align;
}

static inline uint64_t round_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) / align * align;
}

static inline size_t min_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- log.c ---- */
/* A notice comes at every level but off: it is no error, and must be seen. */
enum { LOG_NOTICE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(int level, const char *file);
int log_parse_level(const char *name);	/* -1: no such level */
void log_forked(void);		/* in a child */
void log_line(int level, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* /dev/kmsg, to read what comes from now on; -1: it cannot be read. */
int log_kernel_now(void);
/* What the kernel has said of peer-to-peer DMA since; mostly about this GPU. */
bool log_kernel_since(int since, const char *gpu_bdf, char *out, size_t size);
/*
 * What it has said since it was started of this GPU and the device @dev: it says
 * it once for each pair, perhaps to a process before this one.
 */
bool log_kernel_said(uint64_t dev, const char *gpu_bdf, char *out, size_t size);

/* ---- config.c ---- */
enum deny_list {
	DENY_DRIVERS, DENY_DEVICES, DENY_MOUNTS, DENY_FILESYSTEMS, DENY_LISTS
};

struct deny {
	/* each: strings one behind the other, then an empty one; or NULL */
	char *items[DENY_LISTS];
};

#define MAX_SLABS	8

struct slabs {
	size_t kb[MAX_SLABS];
	size_t count[MAX_SLABS];
	unsigned int n;
};

struct config {
	/* SetParameter, SizeT, in the order of the enumeration */
	size_t size[12];
	bool flag[12];
	char text[3][PATH_MAX];
	/* not reachable through parameters */
	struct slabs slabs;
	struct slabs gpu_slabs;	/* told back only */
	size_t window_kb;
	bool posix_unaligned_writes;
	bool strict;
	bool page_cache;
	bool nvidia_uvm;
	bool kernel_module;
	bool stats_1_19;	/* the program's statistics have the layout of 1.19 */
	size_t page_cache_kb;	/* registered at most */
	char group[2048];	/* the directory of the cgroup */
	size_t group_root;	/* of its characters: those of the mount */
	struct deny deny;
	char unknown[240];	/* keys of the file, or "" */
	char no_effect[2048];	/* those that are accepted, and change nothing */
	char unused[240];	/* variables CUFILE_..., or "" */
};

/*
 * Defaults, file, environment, parameters; false with words in @err.  After true
 * the caller frees the denylist.  The log is as they say from then on, also where some
 * are wrong: so far as they can be read.
 */
bool config_load(struct config *cfg, char *err, size_t size);
/* Bytes that this process may still use; what is in the page cache can make room. */
uint64_t config_memory_left(void);	/* while open */
/*
 * What /proc says behind @key, in decimal; false: nothing.  @fd is the calling thread's, which may
 * have unshared its descriptors or outlive main()'s thread.  It does not wait for who uses @fd, so
 * of two calls another thread may have moved the position between them.
 */
bool of_descriptor(int fd, const char *key, uint64_t *n);
CUfileOpError config_set_size(unsigned int param, size_t value);
CUfileOpError config_set_flag(unsigned int param, bool value);
CUfileOpError config_set_text(unsigned int param, const char *value);
bool config_size_ok(unsigned int param, size_t value);
void config_size_range(unsigned int param, size_t *min, size_t *max);
CUfileOpError config_set_slabs(bool gpu, const size_t *kb, const size_t *n,
			       unsigned int len);

void config_forked(void);	/* in a child */

extern struct config config;	/* valid while open */
/* One that cuFileDriverSet...() may change meanwhile; it does so with the driver's lock held. */
static inline size_t config_now(unsigned int param)
{
	return __atomic_load_n(&config.size[param], __ATOMIC_RELAXED);
}
/* Has it an effect, or is it told back? */
bool config_has_key(const char *key);

/* ---- deny.c ---- */
struct json;
bool deny_take(struct deny *deny, const struct json *root, char *err, size_t size);
void deny_free(struct deny *deny);
/* Those that neither this library nor NVIDIA's has, in words; or have no effect here. */
void deny_keys(const struct json *root, bool unknown, char *list, size_t size);
/* A line of the log is one line, whatever the file or the environment has. */
void deny_printable(char *s);
/* Why the file must not go directly, or NULL. */
const char *deny_file(int fd, uint64_t dev, bool block);
/* Where the file's file system is mounted, its type, of 64 bytes, and the device of its super block. */
bool deny_mount(int fd, char *point, char *type, uint64_t *dev);

/* ---- layers.c ---- */
/*
 * Is there a layer between the block device of sysfs's @folder and its drives that
 * keeps DMA to peers from them?  @passes: the block device takes memory of devices.
 */
bool layers_stop(const char *folder, bool passes, char *why, size_t size);

/* ---- topology.c ---- */
/*
 * Does the kernel's P2PDMA let the PCI device @address reach the GPU @gpu?  1: yes; 0: no, or
 * that is not known, and @why says so; or -errno: files or memory have run out.
 */
int topology_p2pdma(const char *address, const char *gpu, char *why, size_t size);
void topology_forked(void);	/* in a child */

/* ---- stats.c ---- */
/* The process's own until the library was opened, then one that others can read */
extern struct stats_page *_Atomic stats_page;
#define stats_total	(stats_page->total)
#define stats_gauges	(stats_page->gauges)

void stats_publish(void);
/* In a child: what is there is the parent's. */
void stats_forked(void);

/* ---- result.c ---- */
/* Where the program wants to be told what comes of a call's transfers */
struct wanted {
	char *at;
	uint32_t size;		/* of each */
	unsigned int count;	/* 0: nowhere */
};

/* Of one of them; @to may be NULL */
struct answer {
	void *to;
	uint32_t size;
};

/* By this thread for its next call, which this is */
struct wanted result_wanted(void);
/* Not 0: somebody wants to know of the transfer that begins. */
uint32_t result_asked(void);
struct answer result_of(const struct wanted *w, unsigned int i);
/* A part of the transfer has moved so many bytes by each path. */
void result_add(struct pln_file_result *now, const uint64_t *bytes, int err,
		const char *reason);
/* It has ended with @r, where that is -1 with @err. */
void result_tell(const struct answer *a, struct pln_file_result *now, ssize_t r,
		 int err);

/* ---- work.c ---- */
/* Part of what is to be done; run() may free it. */
struct work {
	struct work *next;
	void (*run)(struct work *w);
};

/* There is a thread to do it, or could be made; with the library held open. */
bool work_ready(void);
/* @now: before all that is not; a stream waits for it. */
void work_add(struct work *w, bool now);
/* Of what is not urgent: nobody has begun it, and nobody will. */
bool work_remove(struct work *w);
void work_shutdown(void);

/* ---- handle.c ---- */
/* So many large writes into the page cache of a file go on at once: see bounce.c */
#define FILE_TURNS	2

struct file {
	struct work work;	/* to be closed */
	struct file *next;	/* of those closed by the program, but kept */
	uint64_t value;		/* what the program holds */
	_Atomic unsigned int refs; /* one is the table's */
	bool dead;
	int user_fd;		/* number only: to find it registered twice */
	int fd;			/* our duplicate of the program's: not for data */
	int direct_fd;		/* O_DIRECT, or -1 */
	int buffered_fd;	/* without O_DIRECT, or -1 */
	_Atomic int warm_fd;	/* of file_warm_fd(), negative: there is none */
	int access;		/* O_RDONLY, O_WRONLY or O_RDWR */
	bool user_direct;	/* the program's own has O_DIRECT */
	int direct_errno;	/* why there is no direct_fd */
	const char *no_direct;	/* why O_DIRECT is not what it says, or NULL */
	_Atomic bool direct_bad; /* O_DIRECT opened but refused aligned IO */
	_Atomic bool no_cachestat; /* the kernel does not say what is cached */
	_Atomic bool refused;	/* p2p of it failed, and nothing else was tried */
	const char *_Atomic no_module; /* why the kernel module refuses it, or NULL */
	_Atomic uint64_t told;	/* causes that transfers of it took another path */
	uint32_t off_align;	/* of O_DIRECT */
	uint32_t mem_align;
	sem_t turns;		/* of those who write into its page cache: see bounce.c */
	_Atomic unsigned int writers;	/* of those, with who waits for his turn */
	uint64_t dev;		/* device that holds the data */
	struct node node;	/* what @fd leads to */
	struct node direct_node, buffered_node, warm_node;
	_Atomic bool lost;	/* the program has closed them */
	/* of cache.c, written under its lock */
	_Atomic int fs;
	struct lease *_Atomic lease;
	_Atomic time_t lease_after;	/* none is asked for before then */
	_Atomic int lease_why;	/* there was none to be had, or no more: see cache.c */
	_Atomic bool lease_making;	/* who asks for it writes @lease_why */
	struct file *making_next;
	unsigned int pin_failures; /* in a row */
	_Atomic time_t pin_after;	/* no registration is tried before then */
	char pin_why[PLN_FILE_REASON_MAX / 4];
	struct tally tally;
	_Atomic uint64_t reason_id; /* which reason its tally has, 0: one of a kind */
};

CUfileOpError file_register(int fd, CUfileHandle_t *out);
bool file_deregister(CUfileHandle_t fh);
struct file *file_get(CUfileHandle_t fh);
/* *@size as leads_to_size() has it */
struct file *file_get_size(CUfileHandle_t fh, uint64_t *size);
/* To look at what a write will replace; negative: there is none. */
int file_warm_fd(struct file *f);
void file_put(struct file *f);
/* A thread of work.c closes it if need be, which may take long. */
void file_put_later(struct file *f);
void file_drop_all(void);
/* In a child of a process that had it open */
void file_forked(void);

struct buf {
	uint64_t base;
	size_t length;
	bool device;
	int gpu;		/* -1: host memory */
};

CUfileOpError buf_add(const struct buf *buf);
bool buf_remove(uint64_t base, struct buf *out);
bool buf_find(uint64_t base, struct buf *out);
/* Is a part of this registered? */
bool buf_overlaps(uint64_t start, size_t len);
void buf_drop_all(void);

/* ---- window.c ---- */
/* Who says so, or nobody but errno */
#define UVM_WHY_MAX	240

struct no_window {
	CUresult cu_err;
	char uvm[UVM_WHY_MAX];	/* nvidia-uvm; "": it is not there */
	const char *module;
	bool of_module;		/* errno is the module's */
	bool quota;		/* of the module: it has a limit for each user, all processes together */
	bool before;		/* so it was found before, for the same memory */
	bool here;		/* it says nothing about the rest of the memory */
	uint32_t id;		/* as io.reason_id, of a lasting one */
};

struct window {
	struct window *prev, *next;	/* the newest first; or next of the spare ones */
	uint64_t start;		/* GPU address */
	size_t len;
	uint64_t buffer_id;
	int gpu;
	char *host;		/* where @start is mapped, or NULL: registered */
	uint64_t map_start;	/* whole pages, of which the above is a part */
	size_t map_len;
	char *map;
	bool uvm;		/* it is lent by nvidia-uvm */
	uint32_t handle;	/* of the kernel module */
	int err;		/* why there is neither, and never will be */
	struct no_window why;
	_Atomic bool used;	/* since eviction has passed by */
	_Atomic uint32_t refs;	/* and WINDOW_DEAD; last: window_new() leaves it */
};

/*
 * A window that holds @addr, and up to @len bytes from there.  Returns 0, or
 * -errno: -ENOSPC when BAR1 is full of windows in use.  *@why has what CUDA or
 * the kernel module has said.  *@fresh is set when the window is new.  *@avail
 * after an error: so many bytes of this memory will never have a window.
 */
int window_get(const struct mem *mem, uint64_t addr, size_t len,
	       struct window **out, size_t *avail, bool *fresh,
	       struct no_window *why);
/* This thread was told so of all of it, and nothing has changed since: without a lock. */
bool window_refused(const struct mem *mem, uint64_t addr, size_t len);
/*
 * What is at @addr, and in *@len how much of that follows, without a lock: so it may be
 * unknown of any.  It may be another one when this returns.
 */
enum window_kind { WINDOW_UNKNOWN, WINDOW_NONE, WINDOW_MAPPED, WINDOW_REGISTERED };
enum window_kind window_peek(const struct mem *mem, uint64_t addr, size_t *len);
void window_put(struct window *w);
void window_kill(struct window *w);	/* and forget; caller holds it */
/*
 * The kernel takes no pages of this GPU's mappings: from now on its memory is
 * registered with the kernel module, and mapped only where it cannot be.  False:
 * there is no module.
 */
bool window_no_pages(int gpu);
/*
 * The memory there, which was registered, has windows from now on, so far as there is
 * room that nobody has; or what a transfer is told of why there are none.
 */
void window_prepare(uint64_t start, size_t len);
/* Those of memory that is freed by now, or some of them, are dropped. */
void window_look(void);
void window_look_at_times(void);	/* if none has for a while: by who does IO */
/* After the registration of this range has changed. */
void window_drop_range(uint64_t start, size_t len);
void window_drop_all(void);

/* ---- uvm.c ---- */
/*
 * @len bytes of @mem from @start on are mapped at *@host.  0, or -errno and why not:
 * @no->uvm is "" where there is no such driver, or it is not to be asked.
 */
int uvm_map(const struct mem *mem, uint64_t start, size_t len, char **host,
	    struct no_window *no);
void uvm_unmap(char *host, size_t len);
void uvm_forked(void);	/* in a child */
void uvm_close(void);	/* with no mapping left */

/* ---- module.c ---- */
/* While the library is opened, and while it is closed when nothing is under way. */
void module_open(void);
void module_close(void);
bool module_there(void);
bool module_queues(void);	/* and it does IO of an io_uring */
/* 0 or -errno, and what the module says, or NULL. */
int module_register(uint64_t start, size_t len, uint32_t *handle,
		    const char **why);
void module_unregister(uint32_t handle);

/* ---- bounce.c ---- */
struct xfer {
	/* in */
	struct file *file;
	const struct mem *mem;
	uint64_t dev;		/* GPU address */
	uint64_t off;		/* in the file */
	size_t len;
	bool write;
	bool direct;		/* use direct_fd where aligned */
	bool direct_only;	/* and say EINVAL instead of using another */
	/* out */
	size_t done;		/* contiguous bytes from the start */
	int err;		/* errno, 0 */
	CUresult cu_err;	/* CUDA's, 0 */
	/* inside */
	bool may_be_cold;	/* what is not in the page cache may be read directly */
	bool cold;		/* it begins with such */
	uint64_t base;		/* where the first chunk begins, or would */
	size_t first, chunk;	/* bytes of the first one, of the others */
	_Atomic size_t next;
	_Atomic bool stop;
	pthread_mutex_t lock;
	uint64_t end;		/* lowest end seen: EOF, full disk or error */
	uint64_t err_at;
};

void bounce_run(struct xfer *x);
void bounce_shutdown(void);

/* ---- lane.c ---- */
/* When the library is opened: whatever fails later, there is one. */
void lane_open(void);

/* ---- scratch.c ---- */
void scratch_free_all(void);

/* ---- cache.c ---- */
void cache_forget(struct file *f);
void cache_shutdown(void);

/* ---- io.c ---- */
struct ring_io;
/*
 * @before: its first bytes, and by which paths, count as this transfer's; or NULL.
 * @file_size: what file_get_size() has just told; 0: whoever needs it asks.
 */
ssize_t io_run(struct file *f, uint64_t file_size, uint64_t base, size_t size, off_t off,
	       off_t buf_off, bool write, const struct ring_io *before,
	       struct pln_file_result *now);

/* ---- verdict.c ---- */
uint32_t reason_new(void);	/* a number for another reason, below 1 << 31 */
void verdict_forget_all(void);
bool verdict_direct_worked(void); /* for any device and GPU, since the open */
bool verdict_p2p_worked(int gpu);	/* with some device */

/* ---- driver.c ---- */
bool driver_is_child(void);
bool driver_is_open(void);
CUfileOpError driver_settable(void);
/* What is in force, or would be if the library were opened now; no denylist. */
CUfileOpError driver_config(struct config *cfg);
/*
 * Between begin and end the library stays open: the last close waits.  begin()
 * says no when it is closed.
 */
CUfileOpError driver_open_and_begin(void);
bool driver_begin(void);
void driver_begin_more(unsigned int n);
void driver_end(void);
/* Do the arguments of a read or write make sense? */
bool driver_may_transfer(const void *base, size_t size, off_t off, off_t buf_off);
/* They are checked, and it is done; as cuFileRead().  @file_size and @before as in io_run().  @now gets what
 * came of it. */
ssize_t driver_transfer(struct file *f, uint64_t file_size, const void *base, size_t size, off_t off,
			off_t buf_off, bool write, const struct ring_io *before,
			struct pln_file_result *now);

static inline CUfileError_t result(CUfileOpError err)
{
	return (CUfileError_t){ .err = err };
}

static inline CUfileError_t cuda_result(int r)
{
	return (CUfileError_t){ .err = CU_FILE_CUDA_DRIVER_ERROR,
				.cu_err = (CUresult)r };
}

/* ---- param.c ---- */
void param_forget(void);

/* ---- batch.c and async.c ---- */
void batch_forked(void);	/* in a child */
void batch_drop_all(void);
bool stream_supported(void);
void stream_drop_all(void);
void async_forked(void);	/* in a child */
/*
 * For what is put into the default stream, and waits for what is in others before.  False:
 * a transfer is in one of them, and may need what the caller has.  After true nothing
 * is put into a stream until stream_go_on(), which is to be soon.
 */
bool stream_hold_back(void);
void stream_go_on(void);
/* The same for a call that waits itself: until stream_accept() orders are refused. */
bool stream_refuse(void);
/* The same, between stream_hold_back() and stream_go_on(). */
void stream_refuse_held(void);
void stream_accept(void);

/* ---- count.c ---- */
struct io;
void count_open(void);
uint64_t count_now(void);	/* nanoseconds, or 0 when nothing is counted */
void count_op(enum op op, bool ok);
void count_io(const struct io *io, size_t size, uint64_t off, ssize_t result,
	      uint64_t began);
/* A call of cuFileReadv() or cuFileWritev(), with its pieces between the two */
uint64_t count_vector_begin(void);
void count_vector_end(bool write, ssize_t result, uint64_t began);
void count_buf(int gpu, size_t length, bool ok);
void count_buf_free(int gpu);
void count_batch_submit(uint64_t began, size_t read, size_t written);
void count_batch_done(uint64_t began, size_t bytes, bool write);

static inline int cancel_not_now(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void cancel_as_before(int *old)
{
	pthread_setcancelstate(*old, NULL);
}

/*
 * First in a call that does file IO or waits: pthread_cancel() there would leave
 * locks held and transfers counted for ever.  It takes effect after the call.
 */
#define NOT_CANCELLED \
	int cancel_state __attribute__((cleanup(cancel_as_before))) = cancel_not_now()

#endif
