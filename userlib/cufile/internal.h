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

#define PLN_EXPORT	__attribute__((visibility("default")))
#define PLN_PRINTF(f, a) __attribute__((format(printf, f, a)))

#define KIB(x)		((size_t)(x) << 10)
#define MIB(x)		((size_t)(x) << 20)
#define PLN_GPU_PAGE	KIB(64)	/* granularity of GPU mappings */

static inline uint64_t pln_down(uint64_t x, uint64_t align)
{
	return x / align * align;
}

static inline uint64_t pln_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) / align * align;
}

static inline size_t pln_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- log.c ---- */
/* A notice comes at every level but off: it is no error, and must be seen. */
enum { PLN_LOG_NOTICE, PLN_LOG_ERROR, PLN_LOG_WARN, PLN_LOG_INFO, PLN_LOG_DEBUG };

void pln_log_setup(int level, const char *file);
int pln_log_parse_level(const char *name);	/* -1: no such level */
void pln_log(int level, const char *fmt, ...) PLN_PRINTF(2, 3);
/* /dev/kmsg, to read what comes from now on; -1: it cannot be read. */
int pln_kernel_now(void);
/* What the kernel has said of peer-to-peer DMA since; mostly about this GPU. */
bool pln_kernel_since(int since, const char *gpu_bdf, char *out, size_t size);
/*
 * What it has said since it was started of this GPU and the device @dev: it says
 * it once for each pair, perhaps to a process before this one.
 */
bool pln_kernel_said(uint64_t dev, const char *gpu_bdf, char *out, size_t size);

/* ---- config.c ---- */
struct pln_config {
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
};

/* Defaults, file, environment, parameters; false with words in @err. */
bool pln_config_load(struct pln_config *cfg, char *err, size_t size);
CUfileOpError pln_config_set_size(unsigned int param, size_t value);
CUfileOpError pln_config_set_flag(unsigned int param, bool value);
CUfileOpError pln_config_set_text(unsigned int param, const char *value);
bool pln_size_param_ok(unsigned int param, size_t value);

extern struct pln_config pln_cfg;	/* valid while open */

/* ---- stats.c ---- */
struct pln_tally {
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
	char reason[PLN_REASON_MAX];
};

struct pln_gauges {
	_Atomic uint64_t windows;
	_Atomic uint64_t window_bytes;
	_Atomic uint64_t window_hits;
	_Atomic uint64_t window_maps;
	_Atomic uint64_t window_evictions;
	_Atomic uint64_t window_nospace;
	_Atomic uint64_t lanes;
};

extern struct pln_tally pln_total;
extern struct pln_gauges pln_gauges;

/* ---- handle.c ---- */
struct pln_file {
	struct pln_file *next;	/* of those closed by the program, but kept */
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
	struct pln_tally tally;
};

CUfileOpError pln_file_register(int fd, CUfileHandle_t *out);
void pln_file_deregister(CUfileHandle_t fh);
struct pln_file *pln_file_get(CUfileHandle_t fh);
void pln_file_put(struct pln_file *f);
void pln_file_drop_all(void);

struct pln_buf {
	uint64_t base;
	size_t length;
	bool device;
};

CUfileOpError pln_buf_add(const struct pln_buf *buf);
bool pln_buf_remove(uint64_t base, struct pln_buf *out);
bool pln_buf_find(uint64_t base, struct pln_buf *out);
void pln_buf_drop_all(void);

/* ---- window.c ---- */
struct pln_window {
	struct pln_window *prev, *next;	/* most recently used first */
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
int pln_window_get(const struct pln_mem *mem, uint64_t addr, size_t len,
		   struct pln_window **out, size_t *avail, bool *fresh,
		   CUresult *cu_err);
void pln_window_put(struct pln_window *w);
void pln_window_kill(struct pln_window *w);	/* and forget; caller holds it */
void pln_window_drop_range(uint64_t start, size_t len);
void pln_window_drop_all(void);

/* ---- bounce.c ---- */
struct pln_xfer {
	/* in */
	struct pln_file *file;
	const struct pln_mem *mem;
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

void pln_bounce(struct pln_xfer *x);
void pln_bounce_shutdown(void);

/* ---- io.c ---- */
ssize_t pln_io(struct pln_file *f, uint64_t base, size_t size, off_t off,
	       off_t buf_off, bool write);

/* ---- verdict.c ---- */
void pln_verdicts_forget(void);
bool pln_p2p_worked(void);	/* for any device and GPU, since the open */

/* driver.c */
bool pln_is_child(void);

static inline int pln_not_cancelled(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void pln_as_before(int *old)
{
	pthread_setcancelstate(*old, NULL);
}

/*
 * First in a call that does file IO or waits: pthread_cancel() there would leave
 * locks held and transfers counted for ever.  It takes effect after the call.
 */
#define NOT_CANCELLED \
	int cancel_state __attribute__((cleanup(pln_as_before))) = pln_not_cancelled()

#endif
