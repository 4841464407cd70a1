/* SPDX-License-Identifier: MIT */
/*
 * A mock of libcuda.so.1, for tests of libcufile without a GPU.  GPU memory is
 * host memory behind addresses that the CPU cannot touch; a dma-buf is a
 * memfd; BAR1 is a number of bytes.  Asynchronous copies are put off until
 * somebody waits for them, so that a missing wait shows in the data.
 *
 * It proves what the library does, not what a machine does: that is for the
 * scenarios, with the real kernel and the emulated devices.
 */
#ifndef PLN_TEST_MOCK_H
#define PLN_TEST_MOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mock {
	/* what fails; 0 and -1 mean nothing does */
	int handle_error;	/* result of cuMemGetHandleForAddressRange */
	int mmap_errno;		/* of mapping a dma-buf */
	int64_t bar1_size;	/* bytes, -1 no limit: ENOSPC beyond */
	int p2p_errno;		/* of file IO into a mapped dma-buf */
	_Atomic int p2p_after;		/* after so many that go well */
	_Atomic int p2p_count;		/* for so many, -1 for ever */
	int host_errno;		/* of O_DIRECT and buffered IO to host memory */
	int direct_errno;	/* of O_DIRECT reads to host memory */
	_Atomic uint64_t direct_failed;	/* so many did */
	uint64_t bad_from, bad_to; /* file range that gives media_errno */
	int media_errno;
	int file_errno;		/* of mapping a file that is no dma-buf */
	int anon_errno;		/* of mapping 1 MiB or more of anonymous memory */
	_Atomic int anon_together; /* such calls that must be under way at once first */
	size_t short_io;	/* at most so many bytes for each call */
	_Atomic size_t odd_write;	/* what the next write by p2p says that it moved */
	_Atomic bool no_write;	/* the next one moves nothing, and says no error */
	int interrupt;		/* every so many-th call gives EINTR */
	int copy_error;		/* CUresult of copies */
	_Atomic int copy_after;
	int sync_error;		/* CUresult of one wait for copies, which are lost then */
	_Atomic int sync_after;	/* the one after so many */
	uint64_t pretend;	/* the memory that has the file from its start on: no byte
				 * is moved, only looked at where it would be */
	bool no_pinning;
	_Atomic bool gpu_full;	/* no GPU memory is left */
	int register_error;	/* CUresult of registering memory read-only */
	bool no_read_only;	/* the GPU says that it cannot have such */
	bool no_revoke;		/* freeing memory leaves its mappings working */
	_Atomic unsigned int slow_ms;	/* file IO takes so long */
	_Atomic bool hold_io;	/* file IO waits */
	enum { NO_MARKS, MARKS, MARKS_LATE } marks;	/* values that a stream writes: never seen if late */
	bool no_streams;
	bool no_events;
	bool no_record;		/* of events */
	int capture;		/* CUstreamCaptureStatus of all streams */
	_Atomic int64_t alloc_after;	/* the so many-th allocation fails, -1 none */
	const char *kernel_line; /* what the kernel says when p2p fails */
	uint64_t dev;		/* device of all files, 0 what it is */
	int dev_fd;		/* of this descriptor alone, if not 0 */
	uint32_t dio_align;	/* blocks of direct IO, 0 what they are */
	uint32_t dio_memory;	/* and of its memory, 0: a page */
	bool dio_said;		/* both are so, also if they are 0 */
	bool no_dio;		/* statx() knows nothing of direct IO */
	long fs;		/* type of all file systems, 0 what it is */
	int stat_errno;		/* of who asks about a file by fstat() */
	int statx_errno;	/* and by statx() */
	uint64_t other_ino;	/* what is added to the number of each file */
	int again_errno;	/* of who opens a file once more */
	int again_flags;	/* with one of these flags, 0: in any way */
	int again_count;	/* for so many times, 0: always */
	bool no_query;		/* the kernel does not compare descriptors by fcntl() */
	bool query;		/* and does, whatever the real one may do */
	bool kcmp;		/* and does by kcmp(), whatever the real one may do */
	int kcmp_other;		/* which says this of two that are not the same */
	int getlk_errno;	/* of who asks for the lock that is in the way */
	int getlk_closes;	/* the first who asks finds his descriptor closed, and the file locked anew by this one */
	int moved_fd;		/* moved on by each look at a position, 0 none */
	unsigned int moved_turns; /* by those of three in a row that have their bit here, 0: by all */
	unsigned int moved_back; /* at the so many-th look it is moved back, 0: never */
	unsigned int moved_looks; /* so many there were */
	int fdinfo_errno;	/* of who looks at a position */
	const char *locks;	/* what /proc/locks has, NULL: what it is */
	const char *mounts;	/* what mountinfo has, NULL: what it is */
	const char *disk;	/* name of a block device */
	uint64_t disk_dev;	/* and its number */
	int read_errno;		/* of who opens a file below /sys to read it */
	const char *read_name;	/* whose name ends so, NULL: any */
	bool block;		/* who asks about a file is told of a block device, which has the number dev */
	uint32_t sector;	/* its blocks, 0: it does not say */
	int gpu;		/* number of the GPU that all memory is of */
	uint64_t next_gpu;	/* but what is from this address on is of the next one, if not 0 */
	bool no_id;		/* cuPointerGetAttribute has no buffer id */
	size_t start_at;	/* new memory begins so far behind a page of the GPU */
	_Atomic int later;		/* seconds that the monotonic clock is ahead */
	_Atomic int64_t stands;	/* it stands at this second, 0: it goes */
	int stream_turn;	/* stream handles are those of other streams since */
	_Atomic int other_ctx;	/* 1: all streams are of a second context, 2: which is gone, 3: in error, 5: does not tell */
	_Atomic bool hold_info;		/* what asks for the memory of a context waits */
	_Atomic bool in_info;
	bool lose_calls;	/* functions in streams are not called; see mock_lost() */
	_Atomic bool hold_map;	/* who wants a dma-buf waits */
	_Atomic bool hold_stat;	/* who asks about a file waits */
	_Atomic int hold_again;	/* who opens a file once more waits; 2: who does to read only */
	_Atomic bool hold_stream; /* functions in streams wait */
	_Atomic bool hold_host;	/* the first who reads into host memory waits */
	_Atomic bool hold_unmap; /* the first who unmaps a dma-buf waits */
	_Atomic bool hold_close; /* the first who closes a descriptor waits */
	_Atomic bool hold_unpin; /* who unregisters waits, as for work of the GPU */
	_Atomic bool hold_sigset; /* who makes a set of signals waits */
	_Atomic bool hold_file;	/* who maps a file waits */
	_Atomic bool hold_copy;	/* who puts a copy to the GPU into a stream waits */
	_Atomic bool hold_wait;	/* who waits for copies goes on waiting */
	_Atomic bool hold_default; /* the default stream waits, as for the program's work in others */
	_Atomic bool hold_register; /* who registers memory read-only waits */
	_Atomic bool hold_pop;	/* the first who takes a context away waits */
	_Atomic bool hold_lock;	/* who has lock_turns for its lock waits with it */
	_Atomic int lock_turns;	/* so many locks of the library later, 0: none */
	_Atomic int keep_turns;	/* sigtimedwait() returns so often, -1 always */
	_Atomic bool hold_keep;	/* who calls it waits before it does anything */
	_Atomic int lease_lag;	/* seconds that the next question about a lease takes */
	_Atomic bool other_memory; /* what is allocated is of a second context */
	_Atomic bool hold_other; /* who asks for its number waits */
	_Atomic bool no_other;	/* which is gone: see mock_end_other() */
	int cpus;		/* of the process, 0 what they are */
	int unregister_error;	/* CUresult of unregistering memory */
	bool gone_anywhere;	/* that it went with its context is told without a context, too */
	/* /dev/peerlane: its version, 0: there is none */
	unsigned int module;
	int register_errno, module_errno; /* of registering, of IO */
	unsigned int register_reason, module_reason;
	_Atomic int module_count; /* such IOs, 0: all */
	bool module_waits;	/* it does no IO of an io_uring */
	int module_none;	/* errno of who opens it */
	bool module_said;	/* it has pages of so many bytes */
	unsigned int module_page;
	uint64_t module_max;	/* bytes registered at most, 0: no limit */
	/* NVIDIA's driver: its version, NULL: there is none */
	const char *nvidia;
	const char *kernel;	/* what uname() says, NULL: what it is */
	int nv_no_uvm;		/* errno of opening /dev/nvidia-uvm */
	bool nv_no_static, nv_write_combined, nv_no_pages, nv_mig;
	uint8_t nv_type;	/* of imported memory, as RM says */
	/* class, control or ioctl that fails, for so many calls, 0: all */
	unsigned int nv_fail, nv_fail_count;
	uint32_t nv_fail_status;
	int nv_fail_errno, nv_mmap_errno;
	unsigned int nv_mmap_count; /* such mappings, 0: all */
	bool vmm;		/* memory is of cuMemCreate() */
	bool vmm_closed, vmm_foreign; /* and not exportable, of another GPU */
	bool vmm_compressed;
	int vmm_retain_error, vmm_export_error; /* CUresults */

	/* what happened */
	_Atomic uint64_t p2p_calls, p2p_bytes, host_bytes, copies, maps, unmaps,
		allocs;
	_Atomic int64_t bar1_used;
	_Atomic int64_t gpu_used; /* memory, in whole pages of the GPU */
	_Atomic uint64_t directs, parts; /* O_DIRECT writes of host memory; and that do not fill pages */
	_Atomic int in_io;	/* calls under way */
	_Atomic int most_in_io;
	_Atomic int in_map;	/* waiting for a dma-buf */
	_Atomic int in_stat;	/* waiting to be told about a file */
	_Atomic int in_again;	/* waiting to open a file once more */
	_Atomic uint64_t stats;	/* questions about a file, by fstat() and statx() */
	_Atomic unsigned int kmsg_opened; /* how often the file of PEERLANE_KMSG was opened */
	_Atomic uint64_t host_off; /* where the latest read into host memory began */
	_Atomic int in_host;	/* waiting to read into host memory */
	_Atomic int in_close;	/* waiting to close a descriptor */
	_Atomic int in_settle;	/* waiting for functions in streams */
	_Atomic uint64_t handles; /* dma-bufs asked for */
	_Atomic int anon_calls;
	_Atomic int pinned;	/* registrations of host memory that stand */
	_Atomic int64_t pinned_bytes; /* of those that are not read-only */
	_Atomic int read_only;	/* those of them that are read-only */
	_Atomic uint64_t read_only_calls;
	_Atomic uint64_t unregistered; /* such that ended */
	_Atomic uint64_t unpinned; /* copies from memory that is not registered */
	_Atomic int in_unpin;	/* waiting to unregister */
	_Atomic int in_sigset;	/* waiting to make a set of signals */
	_Atomic int in_file;	/* waiting to map a file */
	_Atomic int in_copy;	/* waiting to copy */
	_Atomic int in_wait;	/* waiting for copies */
	_Atomic int in_default;	/* waiting for it */
	_Atomic int in_register; /* waiting to register */
	_Atomic int in_pop;	/* waiting, or past it, since hold_pop */
	_Atomic uint64_t lease_asked; /* questions whether a lease is held */
	_Atomic int in_lock;	/* waiting with a lock */
	_Atomic int in_cond;	/* in the library, waiting for what another thread does */
	_Atomic int in_unmap;	/* waiting to unmap, or past it, since hold_unmap */
	_Atomic int in_keep;	/* in sigtimedwait() that does not return */
	_Atomic int in_other;	/* waiting for the number of the second context */
	_Atomic int before_keep; /* waiting to begin it */
	_Atomic uint64_t waits;	/* for copies */
	_Atomic uint64_t marked; /* values that streams were to write */
	_Atomic uint64_t by_cpu; /* copies by which the CPU reads what is registered of a file */
	_Atomic uint64_t blocking; /* those of them that leave the CPU to others */
	_Atomic uint64_t pretended; /* bytes that file IO was asked for */
	_Atomic uint64_t pretended_copies; /* and copies, of host memory */
	_Atomic uint64_t astray; /* pieces in the wrong place */
	_Atomic uint64_t within; /* bytes copied from GPU memory to GPU memory */
	_Atomic uint64_t reads;	/* calls that move a file's bytes by host memory */
	_Atomic uint64_t registered; /* bytes, by the module */
	_Atomic uint64_t registrations, module_calls, module_bytes;
	_Atomic uint64_t module_queued; /* IOs of an io_uring */
	_Atomic uint64_t nv_calls, nv_lendings;
	_Atomic int nv_opened;	/* devices, since mock_reset() */
	_Atomic int nv_open, nv_memory, nv_lent; /* descriptors, handles, ranges */
	_Atomic int vmm_held;	/* handles of allocations */
};

extern struct mock mock;
void mock_reset(void);

/* Two allocations of @size bytes at addresses side by side; the first of them. */
unsigned long long mock_two(size_t size);
/* These two trade their addresses; each is unmapped, and mapped anew. */
void mock_swap(unsigned long long first);

/* The monotonic clock stands from now on; mock_reset() lets it go. */
void mock_stop_clock(void);

/* The second context is destroyed, with its streams and what was registered in it; mock_reset() makes another. */
void mock_end_other(void);

/* The mappings of dma-bufs end, as of memory whose GPU is gone. */
void mock_revoke(void);

/* Straight to the GPU's memory, for checks. */
void *mock_memory(unsigned long long ptr);
/* The next function of this name, kept in *@at: threads may look for it at once */
void *mock_real(void *_Atomic *at, const char *name);
/* What the library opens, at @from, must end with an exec(): it is no other program's. */
void mock_own(bool closes, void *from);
/* Are they of one open()? */
bool mock_same(int a, int b);
/* Which memory has this address, 0: none */
uint64_t mock_id(unsigned long long ptr);
/* Are all these pages of the GPU's of one memory? */
bool mock_covers(unsigned long long ptr, size_t size);

/*
 * All functions that were put into streams have returned.  Calls that free or
 * unpin memory, copy without a stream, or wait for the context, wait for this, as
 * CUDA's may.
 */
void mock_settle(void);
/* The latest function that was not called is called after all. */
void mock_lost(void);

/* mock_nvidia.c */
#define MOCK_UUID	'u'	/* 16 times */
int mock_nv_open(const char *path);	/* -2: none of its devices */
bool mock_nv_ioctl(int fd, unsigned long cmd, void *arg, int *r);
void mock_nv_copied(int fd, int to);
void mock_nv_close(int fd);
void mock_nv_export(int fd, uint64_t id, size_t size);
bool mock_nv_is_uvm(int fd);
/* What is mapped, of which memory and from where on; or -1 with errno */
int mock_nv_mapped(int fd, void *addr, size_t len, int prot, int flags,
		   uint64_t off, uint64_t *id, uint64_t *at);

int cuInit(unsigned int flags);
int cuMemAlloc_v2(unsigned long long *ptr, size_t size);
int cuMemFree_v2(unsigned long long ptr);

#endif
