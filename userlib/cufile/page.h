/* SPDX-License-Identifier: MIT */
/*
 * What libcufile counts, as other processes see it.
 *
 * It lies in a memfd of this name that the library keeps open from the first time it
 * is opened, and that nobody else can write or make shorter.  So the kernel decides
 * who may see it, who may look at /proc/PID/fd: its user and root, also from outside
 * of a container.  There is no name in a shared folder that somebody could take
 * before, and nothing stays behind a process that is killed.  A child has it of its
 * parent until it has its own: @pid tells, which is the process's own number, in its
 * own namespace.
 *
 * The reader, userlib/tools/stats/procs.c, believes nothing: it reads the file as any
 * other, and compares @magic, @version and @size.  Whoever changes a structure here
 * changes STATS_VERSION.
 */
#ifndef PLN_CUFILE_PAGE_H
#define PLN_CUFILE_PAGE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include <peerlane/file.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	8	/* from Linux 6.3 on; may be required there */
#endif

#define STATS_NAME	"peerlane-cufile"
#define STATS_MAGIC	0x7374617473504c4eull	/* "NLPstats" in memory */
#define STATS_VERSION	2u
#define STATS_BINS	32
#define STATS_GPUS	16

enum op {
	OP_FILE_REGISTER, OP_FILE_DEREGISTER, OP_BUF_REGISTER,
	OP_BUF_DEREGISTER, OP_BATCH_SUBMIT, OP_BATCH_COMPLETE, OP_BATCH_SETUP,
	OP_BATCH_CANCEL, OP_BATCH_DESTROY, OP_BATCH_ENQUEUED,
	OP_BATCH_PROCESSED, OP_BATCH_RING, OP_BATCH_POSIX_ENQUEUED,
	OP_BATCH_POSIX_PROCESSED, OPS
};

/* Transfers of one handle, or of all: always counted */
struct tally {
	_Atomic uint64_t reads[PLN_PATH_SLOTS];
	_Atomic uint64_t writes[PLN_PATH_SLOTS];
	_Atomic uint64_t bytes_read[PLN_PATH_SLOTS];
	_Atomic uint64_t bytes_written[PLN_PATH_SLOTS];
	_Atomic uint64_t errors;
	_Atomic uint64_t fallbacks;
	_Atomic uint32_t last_path;
	_Atomic uint32_t writing;	/* odd: one of the three below is changed now */
	pthread_mutex_t lock;		/* of those, within the process */
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
	_Atomic uint64_t cache_windows;
	_Atomic uint64_t cache_bytes;
	_Atomic uint64_t leases;
	_Atomic uint64_t leases_broken;
};

/* Reads or writes */
struct flow {
	_Atomic uint64_t ok, err, bytes, ns;
	_Atomic uint64_t bin[STATS_BINS];	/* below 4096 bytes, 8192, ... */
};

struct gpu_flow {
	_Atomic uint64_t ok, err, bytes, ns, p2p, staged, unaligned;
};

/* cuFile's statistics: count.c has what is counted at which level */
struct counters {
	_Atomic uint64_t ok[OPS], err[OPS];
	struct flow flow[2];			/* of writes is the second */
	struct gpu_flow gpu_flow[STATS_GPUS][2];
	struct {
		_Atomic uint64_t ok, err, freed, bytes;
	} buf[STATS_GPUS];
	struct {
		_Atomic uint64_t ok, err, bytes, ns;
	} vector[2];				/* calls; of writes is the second */
	_Atomic uint64_t batch_bytes[2], last_batch[2];
	_Atomic uint64_t submits, submit_ns, ends, end_ns;
	_Atomic uint64_t counted_ns;		/* before `since` */
	_Atomic uint64_t since;			/* 0: stopped */
};

struct stats_page {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	int32_t pid;
	_Atomic int32_t level;
	struct tally total;
	struct gauges gauges;
	struct counters counters;
};

static inline int stats_memfd(void)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(STATS_NAME, flags | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(STATS_NAME, flags) : fd;
}

#endif
