/* SPDX-License-Identifier: MIT */
/*
 * Inside libcufile: who does what.
 *
 *   driver.c  open and close, properties, parameters
 *   config.c  cufile.json (json.c), environment, parameters set by call
 *   cu.c      libcuda.so.1 by dlopen(); what a pointer is
 *   handle.c  file handles and registered buffers
 *   io.c      read and write: the choice of the path
 *   verdict.c what is known of p2p between device and GPU, and said about it
 *   window.c  the p2p path's mappings of GPU memory, a cache with eviction
 *   bounce.c  the bounce path: its two stages, and helper threads
 *   lane.c    its pinned buffers and streams
 *   stats.c   counters and reasons
 *   log.c     log lines, the kernel's own words
 */
#ifndef PLN_CUFILE_INTERNAL_H
#define PLN_CUFILE_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cufile.h"
#include "cu.h"
#include <peerlane/file.h>

#define EXPORT	__attribute__((visibility("default")))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#define KIB(x)		((size_t)(x) << 10)
#define MIB(x)		((size_t)(x) << 20)
#define GPU_PAGE	KIB(64)	/* granularity of GPU mappings */

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
struct config {
	/* SetParameter, SizeT, in the order of the enumeration */
	size_t size[12];
	bool flag[12];
	char text[3][256];
	/* not reachable through parameters */
	size_t slab_kb[8];
	size_t slab_count[8];
	unsigned int slabs;
	size_t window_kb;
	bool posix_unaligned_writes;
	bool strict;
	char denylist[41];	/* a list of it that is not empty, or "" */
};

/* Defaults, file, environment, parameters; false with words in @err. */
bool config_load(struct config *cfg, char *err, size_t size);
CUfileOpError config_set_size(unsigned int param, size_t value);
CUfileOpError config_set_flag(unsigned int param, bool value);
CUfileOpError config_set_text(unsigned int param, const char *value);
bool config_size_ok(unsigned int param, size_t value);

extern struct config config;	/* valid while open */

/* ---- stats.c ---- */
struct tally {
	_Atomic uint64_t reads[PLN_PATH_SLOTS];
	_Atomic uint64_t writes[PLN_PATH_SLOTS];
	_Atomic uint64_t bytes_read[PLN_PATH_SLOTS];
	_Atomic uint64_t bytes_written[PLN_PATH_SLOTS];
	_Atomic uint64_t errors;
	_Atomic uint64_t fallbacks;
	_Atomic uint32_t last_path;
	pthread_mutex_t lock;		/* of the three below */
	int last_errno;
	int last_error;
	char reason[PLN_FILE_REASON_MAX];
};

struct gauges {
	_Atomic uint64_t windows;
	_Atomic uint64_t window_bytes;
	_Atomic uint64_t window_hits;
	_Atomic uint64_t window_maps;
	_Atomic uint64_t window_evictions;
	_Atomic uint64_t window_nospace;
	_Atomic uint64_t lanes;
};

extern struct tally stats_total;
extern struct gauges stats_gauges;

/* ---- handle.c ---- */
struct file {
	struct file *next;	/* of those closed by the program, but kept */
	uint64_t value;		/* what the program holds */
	unsigned int refs;	/* under the table's lock */
	bool dead;
	int user_fd;		/* number only: to find it registered twice */
	int fd;			/* our duplicate of the program's: not for data */
	int direct_fd;		/* O_DIRECT, or -1 */
	int buffered_fd;	/* without O_DIRECT, or -1 */
	bool user_direct;	/* the program's own has O_DIRECT */
	int direct_errno;	/* why there is no direct_fd */
	const char *no_direct;	/* why O_DIRECT is not what it says, or NULL */
	_Atomic bool direct_bad; /* O_DIRECT opened but refused aligned IO */
	_Atomic bool refused;	/* p2p of it failed, and nothing else was tried */
	_Atomic uint64_t told;	/* causes that transfers of it took another path */
	uint32_t off_align;	/* of O_DIRECT */
	uint32_t mem_align;
	uint64_t dev;		/* device that holds the data */
	uint64_t ino;
	struct tally tally;
};

CUfileOpError file_register(int fd, CUfileHandle_t *out);
void file_deregister(CUfileHandle_t fh);
struct file *file_get(CUfileHandle_t fh);
void file_put(struct file *f);
void file_drop_all(void);

struct buf {
	uint64_t base;
	size_t length;
	bool device;
};

CUfileOpError buf_add(const struct buf *buf);
bool buf_remove(uint64_t base, struct buf *out);
bool buf_find(uint64_t base, struct buf *out);
void buf_drop_all(void);

/* ---- window.c ---- */
struct window {
	struct window *prev, *next;	/* most recently used first */
	uint64_t start;		/* GPU address */
	size_t len;
	uint64_t buffer_id;
	char *host;		/* where @start is mapped */
	char *map;		/* whole GPU pages, of which the above is a part */
	size_t map_len;
	int err;		/* why there is no mapping, and never will be */
	CUresult cu_err;
	unsigned int refs;
	bool dead;
};

/*
 * A mapping that holds @addr, and up to @len bytes from there.  Returns 0, or
 * -errno: -ENOSPC when BAR1 is full of windows in use.  *@cu_err is set when
 * CUDA was what failed, *@fresh when the mapping is new.  *@avail after an
 * error: so many bytes of this memory will never have a mapping.
 */
int window_get(const struct mem *mem, uint64_t addr, size_t len,
	       struct window **out, size_t *avail, bool *fresh,
	       CUresult *cu_err);
void window_put(struct window *w);
void window_kill(struct window *w);	/* and forget; caller holds it */
void window_drop_range(uint64_t start, size_t len);
void window_drop_all(void);

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
	size_t chunk;
	_Atomic size_t next;
	_Atomic bool stop;
	pthread_mutex_t lock;
	uint64_t end;		/* lowest end seen: EOF, full disk or error */
	uint64_t err_at;
};

void bounce_run(struct xfer *x);
void bounce_shutdown(void);

/* ---- io.c ---- */
ssize_t io_run(struct file *f, uint64_t base, size_t size, off_t off,
	       off_t buf_off, bool write);

/* ---- verdict.c ---- */
void verdict_forget_all(void);
bool verdict_p2p_worked(void);	/* for any device and GPU, since the open */

/* driver.c */
bool driver_is_child(void);

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
