// SPDX-License-Identifier: MIT
/* A mock of libcuda.so.1: see mock.h. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "mock.h"

#define MAX		4096
/* Contexts */
#define OURS		0xc0de
#define OTHER		0xd0de
#define GRANULE		65536
#define GPU_PAGE	65536ull
#define INVALID_VALUE	1
#define OUT_OF_MEMORY	2
#define INVALID_CONTEXT	201
#define ILLEGAL_ADDRESS	700
#define ALREADY_REGISTERED 712
#define NOT_REGISTERED	713
#define NOT_SUPPORTED	801
#define BY_CPU		28672

struct mock mock;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct memory {
	uint64_t start, reserved;
	size_t len, room;
	uint64_t id;
	uint64_t ctx;
	uint64_t range;		/* reserved addresses that it was mapped into, or 0 */
	size_t range_len;
	int fd;
	char *backing;
} memory[MAX];
static unsigned int memories;
static uint64_t next_id = 1;

static struct export {
	_Atomic bool used;
	uint64_t id;
	uint64_t off;
	uint64_t at;		/* its address */
} exports[MAX];			/* by file descriptor */

static struct mapping {
	char *_Atomic at;		/* set last: munmap() looks without the lock */
	size_t len;
	size_t taken;		/* of BAR1: whole pages of the GPU */
	uint64_t gpu;		/* its address there */
	uint64_t id;
	bool lent;		/* by nvidia-uvm, which holds the memory */
} mappings[MAX];

/*
 * Of host memory.  Pages registered read-only are those of that moment: here they
 * are copied, so that nothing that is written later is seen through them.  It ends with
 * its context, whoever else may use it.
 */
static struct registration {
	char *at;
	size_t len;
	char *pages;
	uint64_t ctx;
} registrations[MAX];
/* Those that have gone with their context, and nobody has ended yet */
static char *gone[MAX];
static uint64_t other_id = 79;	/* of the context OTHER */

/* Where the GPU finds what is at @p, or NULL: it is not registered. */
static char *as_registered(char *p)
{
	char *found = NULL;
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX && !found; i++) {
		struct registration *r = &registrations[i];

		if (r->at && p >= r->at && p < r->at + r->len)
			found = r->pages ? r->pages + (p - r->at) : p;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static __thread int current;	/* depth of the context stack */
static __thread uint64_t stack[64];	/* from 1 on */

static uint64_t context(void)
{
	return current ? stack[current] : 0;
}

static void not_in_call(void);

/* Who reads and writes GPU memory at the same time is the program's business. */
static void of_gpu(void *p, size_t n)
{
#ifdef __SANITIZE_THREAD__
	void AnnotateBenignRaceSized(const char *file, int line,
				     const volatile void *at, size_t size,
				     const char *what);

	AnnotateBenignRaceSized(__FILE__, __LINE__, p, n, "GPU memory");
#else
	(void)p;
	(void)n;
#endif
}

void mock_reset(void)
{
	pthread_mutex_lock(&lock);
	memset(gone, 0, sizeof(gone));
	pthread_mutex_unlock(&lock);
	memset(&mock, 0, offsetof(struct mock, p2p_calls));
	mock.bar1_size = -1;
	mock.alloc_after = -1;
	mock.p2p_count = -1;
	mock.nv_type = 1;
	mock.keep_turns = -1;
	mock.p2p_calls = mock.p2p_bytes = mock.host_bytes = mock.copies = 0;
	mock.maps = mock.unmaps = mock.allocs = mock.handles = 0;
	mock.most_in_io = 0;
	mock.unpinned = mock.read_only_calls = mock.unregistered = 0;
	mock.waits = mock.blocking = mock.reads = mock.within = 0;
	mock.pretended = mock.pretended_copies = mock.astray = 0;
	mock.by_cpu = mock.marked = 0;
	mock.in_host = 0;
	mock.in_close = 0;
	mock.in_unmap = 0;
	mock.in_pop = 0;
	mock.registrations = mock.module_calls = mock.module_bytes = 0;
	mock.module_queued = 0;
	mock.nv_calls = mock.nv_lendings = 0;
	mock.nv_opened = 0;
}

/* ---- the C library's calls, with faults ---- */

/*
 * TSan puts itself before the mock.  While it tells of a race, with locks of its own
 * held, it maps and unmaps programs to read their debug information, and its calls
 * come through here.  If such a call were watched, or took a lock that a thread with
 * another race to tell of can hold, it would wait for itself.
 */
#ifdef __SANITIZE_THREAD__
#define UNWATCHED __attribute__((no_sanitize_thread))
#else
#define UNWATCHED
#endif

typedef void *mmap_fn(void *, size_t, int, int, int, off_t);
typedef int munmap_fn(void *, size_t);
typedef int close_fn(int);
typedef ssize_t pread_fn(int, void *, size_t, off_t);
typedef ssize_t pwrite_fn(int, const void *, size_t, off_t);

static mmap_fn *real_mmap;
static munmap_fn *real_munmap;
static close_fn *real_close;
static pread_fn *real_pread;
static pwrite_fn *real_pwrite;

UNWATCHED static void real(void)
{
	if (real_pwrite)
		return;
	*(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
	*(void **)&real_munmap = dlsym(RTLD_NEXT, "munmap");
	*(void **)&real_close = dlsym(RTLD_NEXT, "close");
	*(void **)&real_pread = dlsym(RTLD_NEXT, "pread");
	*(void **)&real_pwrite = dlsym(RTLD_NEXT, "pwrite");
}

/* Threads may look for it at once */
void *mock_real(void *_Atomic *at, const char *name)
{
	void *p = *at;

	if (!p)
		*at = p = dlsym(RTLD_NEXT, name);
	return p;
}

static bool is_library(void *from)
{
	const char *slash;
	Dl_info of;

	if (!dladdr(from, &of))
		return false;
	slash = strrchr(of.dli_fname, '/');
	return strstr(slash ? slash : of.dli_fname, "libcufile");
}

void mock_own(bool closes, void *from)
{
	if (!closes && is_library(from))
		abort();
}

/* File IO that is under way */
static void linger(void)
{
	while (mock.hold_io)
		usleep(100);
	if (mock.slow_ms)
		usleep(mock.slow_ms * 1000);
}

int uname(struct utsname *u)
{
	if (syscall(SYS_uname, u))
		return -1;
	if (mock.kernel)
		strcpy(u->release, mock.kernel);
	return 0;
}

int sigaddset(sigset_t *set, int sig)
{
	static void *_Atomic at;
	int (*add)(sigset_t *set, int sig);

	mock.in_sigset++;
	while (mock.hold_sigset)
		usleep(100);
	mock.in_sigset--;
	*(void **)&add = mock_real(&at, "sigaddset");
	return add(set, sig);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *most)
{
	static void *_Atomic at;
	int (*wait)(const sigset_t *, siginfo_t *, const struct timespec *);
	bool held = false;
	int r, turns;

	*(void **)&wait = mock_real(&at, "sigtimedwait");
	mock.before_keep++;
	while (mock.hold_keep)
		usleep(100);
	mock.before_keep--;
	r = wait(set, info, most);
	while (!(turns = mock.keep_turns)) {
		mock.in_keep += !held;
		held = true;
		usleep(100);
	}
	mock.in_keep -= held;
	if (turns > 0)
		mock.keep_turns--;
	return r;
}

#ifndef __SANITIZE_THREAD__

/* The library has just got a lock, at @from; others count for nothing. */
static int locked(int r, void *from)
{
	int turns = mock.lock_turns;

	if (r || !turns || !is_library(from))
		return r;
	while (turns && !atomic_compare_exchange_strong(&mock.lock_turns, &turns, turns - 1))
		continue;
	if (turns != 1)
		return r;
	mock.in_lock++;
	while (mock.hold_lock)
		usleep(100);
	mock.in_lock--;
	return r;
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	static void *_Atomic at;
	int (*f)(pthread_mutex_t *);

	*(void **)&f = mock_real(&at, "pthread_mutex_lock");
	return locked(f(m), __builtin_return_address(0));
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	static void *_Atomic at;
	int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	int r;

	*(void **)&wait = mock_real(&at, "pthread_cond_wait");
	mock.in_cond++;
	r = wait(c, m);
	mock.in_cond--;
	return r;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	static void *_Atomic at;
	int (*f)(pthread_rwlock_t *);

	*(void **)&f = mock_real(&at, "pthread_rwlock_rdlock");
	return locked(f(l), __builtin_return_address(0));
}

int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	static void *_Atomic at;
	int (*f)(pthread_rwlock_t *);

	*(void **)&f = mock_real(&at, "pthread_rwlock_wrlock");
	return locked(f(l), __builtin_return_address(0));
}

#endif

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif

static int lease_asked(int r)
{
	mock.lease_asked++;
	mock.later += atomic_exchange(&mock.lease_lag, 0);
	return r;
}

int fcntl(int fd, int cmd, ...)
{
	struct flock l = { .l_type = F_WRLCK };
	static void *_Atomic at;
	int (*real_fcntl)(int, int, ...);
	va_list ap;
	void *arg;
	int r;

	*(void **)&real_fcntl = mock_real(&at, "fcntl");
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (cmd == F_DUPFD_QUERY && mock.no_query) {
		errno = EINVAL;
		return -1;
	}
	if (cmd == F_DUPFD_QUERY && mock.query)
		return mock_same(fd, (int)(intptr_t)arg);
	mock_own(cmd != F_DUPFD, __builtin_return_address(0));
	if (cmd == F_OFD_GETLK && mock.getlk_closes) {
		if (close(fd) || real_fcntl(mock.getlk_closes, F_SETLK, &l))
			abort();
		mock.getlk_closes = 0;
	}
	if (cmd == F_OFD_GETLK && mock.getlk_errno) {
		errno = mock.getlk_errno;
		return -1;
	}
	if (cmd == F_GETLEASE)
		return lease_asked(real_fcntl(fd, cmd));
	r = real_fcntl(fd, cmd, arg);
	if (cmd == F_DUPFD_CLOEXEC && r >= 0)
		mock_nv_copied(fd, r);
	return r;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	static void *_Atomic at;
	int (*get)(pid_t, size_t, cpu_set_t *);
	int i;

	if (!mock.cpus) {
		*(void **)&get = mock_real(&at, "sched_getaffinity");
		return get(pid, size, set);
	}
	CPU_ZERO_S(size, set);
	for (i = 0; i < mock.cpus; i++)
		CPU_SET_S((size_t)i, size, set);
	return 0;
}

/* For programs that cannot set the mock's variables */
static int from_env(const char *name, int value)
{
	const char *e = getenv(name);

	return e ? (int)strtol(e, NULL, 10) : value;
}

__attribute__((constructor)) static void at_load(void)
{
	real();
	mock_reset();
	mock.p2p_errno = from_env("MOCK_P2P_ERRNO", mock.p2p_errno);
	mock.mmap_errno = from_env("MOCK_MMAP_ERRNO", mock.mmap_errno);
	mock.p2p_after = from_env("MOCK_P2P_AFTER", mock.p2p_after);
	mock.p2p_count = from_env("MOCK_P2P_COUNT", mock.p2p_count);
}

/* Without dlsym(): the sanitizers look at the clock before that can be called. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);
	int64_t stands = mock.stands;

	if (r || clock != CLOCK_MONOTONIC)
		return r;
	if (stands)
		*t = (struct timespec){ .tv_sec = stands };
	t->tv_sec += mock.later;
	return 0;
}

void mock_stop_clock(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	mock.stands = t.tv_sec;
}

UNWATCHED void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct export lent, *e = NULL;
	unsigned int i;
	size_t taken;
	void *p;

	real();
	if (fd >= 0 && fd < MAX && exports[fd].used)
		e = &exports[fd];
	if (mock_nv_is_uvm(fd)) {
		e = &lent;
		fd = mock_nv_mapped(fd, addr, len, prot, flags, (uint64_t)off,
				    &lent.id, &lent.off);
		if (fd < 0)
			return MAP_FAILED;
		off = 0;
		lent.at = (uintptr_t)addr;
	}
	if (fd < 0 && flags & MAP_HUGETLB && mock.anon_errno) {
		errno = ENOMEM;	/* then it is tried without */
		return MAP_FAILED;
	}
	if (fd < 0 && len >= 1 << 20 && mock.anon_errno) {
		int turn = ++mock.anon_calls;

		/* one after the other: the last has the others waiting for it */
		while (mock.anon_calls < mock.anon_together)
			usleep(100);
		usleep(turn * 20000);
		errno = mock.anon_errno;
		return MAP_FAILED;
	}
	if (!e && fd >= 0 && mock.hold_file) {
		mock.in_file++;
		while (mock.hold_file)
			usleep(100);
		mock.in_file--;
	}
	if (!e && fd >= 0 && mock.file_errno) {
		errno = mock.file_errno;
		return MAP_FAILED;
	}
	if (!e)
		return real_mmap(addr, len, prot, flags, fd, off);
	if (mock.mmap_errno && e != &lent) {
		errno = mock.mmap_errno;
		return MAP_FAILED;
	}
	taken = ((e->at + len + GPU_PAGE - 1) & -GPU_PAGE) - (e->at & -GPU_PAGE);
	pthread_mutex_lock(&lock);
	if (mock.bar1_size >= 0 &&
	    mock.bar1_used + (int64_t)taken > mock.bar1_size) {
		pthread_mutex_unlock(&lock);
		errno = ENOSPC;
		return MAP_FAILED;
	}
	p = real_mmap(addr, len, prot, flags, fd, off + (off_t)e->off);
	if (p != MAP_FAILED) {
		for (i = 0; mappings[i].at; i++)
			continue;
		of_gpu(p, len);
		mappings[i].len = len;
		mappings[i].taken = taken;
		mappings[i].gpu = e->at;
		mappings[i].id = e->id;
		mappings[i].lent = e == &lent;
		mappings[i].at = p;
		mock.bar1_used += (int64_t)taken;
		mock.maps++;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

UNWATCHED int munmap(void *addr, size_t len)
{
	unsigned int i;

	real();
	for (i = 0; i < MAX; i++)
		if (addr && mappings[i].at == addr && mappings[i].len == len) {
			if (mock.hold_unmap && !mock.in_unmap++)
				while (mock.hold_unmap)
					usleep(100);
			pthread_mutex_lock(&lock);
			mappings[i].at = NULL;
			mappings[i].len = 0;
			mock.bar1_used -= (int64_t)mappings[i].taken;
			mock.unmaps++;
			pthread_mutex_unlock(&lock);
			break;
		}
	return real_munmap(addr, len);
}

UNWATCHED int close(int fd)
{
	real();
	if (mock.hold_close && !mock.in_close++)
		while (mock.hold_close)
			usleep(1000);
	if (fd >= 0 && fd < MAX)
		exports[fd].used = false;
	mock_nv_close(fd);
	return real_close(fd);
}

static int about(int fd, struct stat *st)
{
	static void *_Atomic at;
	int (*real_fstat)(int, struct stat *);
	int r;

	*(void **)&real_fstat = mock_real(&at, "fstat");
	mock.stats++;
	mock.in_stat++;
	while (mock.hold_stat)
		usleep(1000);
	mock.in_stat--;
	r = real_fstat(fd, st);
	if (mock.stat_errno) {
		errno = mock.stat_errno;
		return -1;
	}
	if (mock.block) {
		st->st_mode = S_IFBLK | 0600;
		st->st_rdev = mock.dev;
		st->st_size = 0;
	} else if (mock.dev && (!mock.dev_fd || mock.dev_fd == fd)) {
		st->st_dev = mock.dev;
	}
	return r;
}

int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *sx)
{
	static void *_Atomic at;
	int (*real_statx)(int, const char *, int, unsigned int, struct statx *);
	uint32_t align[] = { mock.dio_memory || mock.dio_said ? mock.dio_memory : 4096, mock.dio_align };
	int r;

	*(void **)&real_statx = mock_real(&at, "statx");
	mock.stats++;
	r = real_statx(dir, path, flags, mask, sx);
	if (mock.statx_errno) {
		errno = mock.statx_errno;
		return -1;
	}
	if (!r && mock.dev && mock.dev_fd == dir && dir) {
		sx->stx_dev_major = major(mock.dev);
		sx->stx_dev_minor = minor(mock.dev);
	}
	if (!r)
		sx->stx_ino += mock.other_ino;
	if (!r && mock.block) {
		sx->stx_mode = S_IFBLK | 0600;
		sx->stx_size = 0;
	}
	if (!r && (mock.dio_align || mock.dio_said)) {
		sx->stx_mask |= 0x2000;		/* STATX_DIOALIGN */
		memcpy((char *)sx + 0x98, align, sizeof(align));
	} else if (!r && mock.no_dio) {
		sx->stx_mask &= ~0x2000u;
		memset((char *)sx + 0x98, 0, sizeof(align));
	}
	return r;
}

int fstatfs(int fd, struct statfs *fs)
{
	static void *_Atomic at;
	int (*real_fstatfs)(int, struct statfs *);
	int r;

	*(void **)&real_fstatfs = mock_real(&at, "fstatfs");
	r = real_fstatfs(fd, fs);
	if (mock.fs)
		fs->f_type = mock.fs;
	return r;
}

int stat(const char *name, struct stat *st)
{
	static void *_Atomic at;
	int (*real_stat)(const char *, struct stat *);

	*(void **)&real_stat = mock_real(&at, "stat");
	if (!mock.disk || strcmp(name, mock.disk))
		return real_stat(name, st);
	*st = (struct stat){ .st_mode = S_IFBLK | 0600, .st_dev = 6, .st_rdev = mock.disk_dev };
	return 0;
}

int fstat(int fd, struct stat *st)
{
	return about(fd, st);
}

#ifdef __SANITIZE_THREAD__
/* what its fstat() calls instead */
int __fxstat(int version, int fd, struct stat *st);
int __fxstat(int version, int fd, struct stat *st)
{
	(void)version;
	return about(fd, st);
}
#endif

void mock_revoke(void)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX; i++)
		if (mappings[i].at &&
		    mprotect(mappings[i].at, mappings[i].len, PROT_NONE))
			abort();
	pthread_mutex_unlock(&lock);
}

/* -1: not in a mapped dma-buf; 0: in one of freed memory; 1: in a good one */
static int where(const char *p)
{
	unsigned int i, m;
	int r = -1;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX && r < 0; i++) {
		if (!mappings[i].at || p < mappings[i].at ||
		    p >= mappings[i].at + mappings[i].len)
			continue;
		r = mock.no_revoke || mappings[i].lent;
		for (m = 0; m < memories; m++)
			if (memory[m].id == mappings[i].id && memory[m].len)
				r = 1;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void kernel_says(void)
{
	const char *to = getenv("PEERLANE_KMSG");
	int fd = mock.kernel_line && to ? open(to, O_WRONLY | O_APPEND) : -1;

	if (fd >= 0 && write(fd, mock.kernel_line,
			     strlen(mock.kernel_line)) < 0)
		abort();
	if (fd >= 0)
		close(fd);
}

/* How many bytes may go, or -1 with errno. */
static ssize_t fault(const char *buf, size_t n, uint64_t off)
{
	static _Atomic int turn;
	int w = where(buf);

	if (mock.interrupt && ++turn % mock.interrupt == 0) {
		errno = EINTR;
		return -1;
	}
	if (w >= 0)
		mock.p2p_calls++;
	if (!w) {
		errno = EFAULT;
		return -1;
	}
	if (w > 0 && mock.p2p_errno && mock.p2p_count) {
		if (mock.p2p_after > 0) {
			mock.p2p_after--;
		} else {
			if (mock.p2p_count > 0)
				mock.p2p_count--;
			kernel_says();
			errno = mock.p2p_errno;
			return -1;
		}
	}
	if (w < 0) {
		mock.reads++;
		mock.host_off = off;
	}
	if (w < 0 && mock.hold_host && !mock.in_host++)
		while (mock.hold_host)
			usleep(1000);
	if (w < 0 && mock.host_errno) {
		errno = mock.host_errno;
		return -1;
	}
	if (mock.media_errno && off < mock.bad_to && off + n > mock.bad_from) {
		if (off >= mock.bad_from) {
			errno = mock.media_errno;
			return -1;
		}
		n = (size_t)(mock.bad_from - off);
	}
	if (mock.short_io && n > mock.short_io)
		n = mock.short_io;
	return (ssize_t)n;
}

static void counted(const char *buf, ssize_t r)
{
	if (r > 0 && where(buf) > 0)
		mock.p2p_bytes += (uint64_t)r;
	else if (r > 0)
		mock.host_bytes += (uint64_t)r;
}

/* The address on the GPU of what is mapped at @p, or 0 */
static uint64_t gpu_address(const char *p)
{
	uint64_t at = 0;
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX && !at; i++)
		if (mappings[i].at && p >= mappings[i].at &&
		    p < mappings[i].at + mappings[i].len)
			at = mappings[i].gpu + (uint64_t)(p - mappings[i].at);
	pthread_mutex_unlock(&lock);
	return at;
}

static bool in_lane(const char *p)
{
	return as_registered((char *)p);
}

/*
 * A piece of file IO: what is staged carries its place in its first bytes, for the copy
 * before or behind.  As read(2), it moves no more than 2 GiB less a page.
 */
static ssize_t pretend(char *p, size_t n, uint64_t off, bool write)
{
	uint64_t at = gpu_address(p), said = off;

	if (n > 0x7ffff000)
		n = 0x7ffff000;
	if (!at && in_lane(p)) {
		if (write)
			memcpy(&said, p, sizeof(said));
		else
			memcpy(p, &off, sizeof(off));
	} else {
		said = (at ? at : (uintptr_t)p) - mock.pretend;
	}
	mock.astray += said != off;
	mock.pretended += n;
	return (ssize_t)n;
}

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	ssize_t r;

	real();
	if (mock.pretend)
		return pretend(buf, n, (uint64_t)off, false);
	if (mock.direct_errno && where(buf) < 0 && fcntl(fd, F_GETFL) & O_DIRECT) {
		mock.direct_failed++;
		errno = mock.direct_errno;
		return -1;
	}
	r = fault(buf, n, (uint64_t)off);
	if (r < 0)
		return r;
	mock.in_io++;
	linger();
	n = (size_t)r;
	r = real_pread(fd, buf, n, off);
	/* direct IO does so behind the end of a file */
	if (r >= 0 && (size_t)r < n && where(buf) > 0)
		memset((char *)buf + r, 0, n - (size_t)r);
	counted(buf, r);
	mock.in_io--;
	return r;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t off)
{
	ssize_t r;

	real();
	if (mock.pretend)
		return pretend((char *)buf, n, (uint64_t)off, true);
	if (mock.no_write && where(buf) > 0) {
		mock.no_write = false;
		return 0;
	}
	r = fault(buf, n, (uint64_t)off);
	if (r < 0)
		return r;
	if (++mock.in_io > mock.most_in_io)
		mock.most_in_io = mock.in_io;
	linger();
	r = real_pwrite(fd, buf, (size_t)r, off);
	if (r > 0 && where(buf) < 0 && fcntl(fd, F_GETFL) & O_DIRECT) {
		mock.directs++;
		mock.parts += off % 4096 || r % 4096;
	}
	if (mock.odd_write && where(buf) > 0) {
		r = (ssize_t)mock.odd_write;
		mock.odd_write = 0;
	}
	counted(buf, r);
	mock.in_io--;
	return r;
}

#ifndef __SANITIZE_ADDRESS__
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool no_memory(void)
{
	mock.allocs++;
	if (mock.alloc_after < 0 || mock.alloc_after--)
		return false;
	errno = ENOMEM;
	return true;
}

void *calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return no_memory() ? NULL : __libc_realloc(p, size);
}
#endif

/* ---- memory ---- */

/* With the lock held. */
static struct memory *find(uint64_t ptr)
{
	unsigned int i;

	for (i = 0; i < memories; i++)
		if (memory[i].len && ptr >= memory[i].start &&
		    ptr - memory[i].start < memory[i].len)
			return &memory[i];
	return NULL;
}

void *mock_memory(unsigned long long ptr)
{
	struct memory *m;
	void *p;

	pthread_mutex_lock(&lock);
	m = find(ptr);
	p = m ? m->backing + (ptr - m->start) : NULL;
	pthread_mutex_unlock(&lock);
	return p;
}

uint64_t mock_id(unsigned long long ptr)
{
	struct memory *m;
	uint64_t id;

	pthread_mutex_lock(&lock);
	m = find(ptr);
	id = m ? m->id : 0;
	pthread_mutex_unlock(&lock);
	return id;
}

bool mock_covers(unsigned long long ptr, size_t size)
{
	struct memory *m;
	bool ok;

	pthread_mutex_lock(&lock);
	m = find(ptr);
	ok = m && ptr - m->start + size <= m->room;
	pthread_mutex_unlock(&lock);
	return ok;
}

int cuInit(unsigned int flags)
{
	return flags ? INVALID_VALUE : 0;
}

/* Memory of the same size gets the address that was freed last. */
/* With the lock held. */
static void back(struct memory *m, size_t size)
{
	m->fd = memfd_create("mock-gpu", MFD_CLOEXEC);
	if (m->fd < 0 || ftruncate(m->fd, (off_t)m->room))
		abort();
	m->backing = real_mmap(NULL, m->room, PROT_READ | PROT_WRITE,
			       MAP_SHARED, m->fd, 0);
	of_gpu(m->backing, m->room);
	m->start = m->reserved + mock.start_at;
	m->len = size;
	m->id = next_id++;
	m->ctx = mock.other_memory || context() == OTHER ? OTHER : OURS;
}

unsigned long long mock_two(size_t size)
{
	unsigned long long first;
	struct memory *m;
	char *p;

	real();
	size = (size + GRANULE - 1) / GRANULE * GRANULE;
	p = real_mmap(NULL, 2 * size + GRANULE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	first = ((uint64_t)(uintptr_t)p + GRANULE - 1) / GRANULE * GRANULE;
	pthread_mutex_lock(&lock);
	for (m = &memory[memories]; m < &memory[memories + 2]; m++) {
		m->reserved = first + (m == &memory[memories] ? 0 : size);
		m->room = size;
		m->range = first;
		m->range_len = 2 * size;
		back(m, size);
	}
	memories += 2;
	pthread_mutex_unlock(&lock);
	return first;
}

void mock_swap(unsigned long long first)
{
	struct memory *a, *b;
	uint64_t at;

	pthread_mutex_lock(&lock);
	a = find(first);
	b = find(first + a->room);
	at = a->reserved;
	a->reserved = a->start = b->reserved;
	b->reserved = b->start = at;
	a->id = next_id++;
	b->id = next_id++;
	pthread_mutex_unlock(&lock);
}

int cuMemAlloc_v2(unsigned long long *ptr, size_t size)
{
	size_t room = (size + GRANULE - 1) / GRANULE * GRANULE;
	struct memory *m = NULL;
	unsigned int i;

	real();
	if (mock.gpu_full)
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	for (i = 0; i < memories; i++)
		if (!memory[i].len && memory[i].room == room)
			m = &memory[i];
	if (!m) {
		char *p = real_mmap(NULL, room + 2 * GRANULE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		m = &memory[memories++];
		m->reserved = ((uint64_t)(uintptr_t)p + GRANULE - 1) /
			      GRANULE * GRANULE;
		m->room = room;
	}
	back(m, size);
	mock.gpu_used += (int64_t)room;
	*ptr = m->start;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuMemFree_v2(unsigned long long ptr)
{
	struct memory *m;
	int r = INVALID_VALUE;

	mock_settle();
	pthread_mutex_lock(&lock);
	m = find(ptr);
	if (m && m->start == ptr) {
		real_munmap(m->backing, m->room);
		close(m->fd);
		m->len = 0;
		mock.gpu_used -= (int64_t)m->room;
		r = 0;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr,
				  size_t size, int type,
				  unsigned long long flags);
int cuMemGetHandleForAddressRange(void *handle, unsigned long long ptr,
				  size_t size, int type,
				  unsigned long long flags)
{
	struct memory *m;
	int fd;

	mock.handles++;
	mock.in_map++;
	while (mock.hold_map)
		usleep(1000);
	mock.in_map--;
	if (mock.handle_error)
		return mock.handle_error;
	if (type != 1 || flags || !size || ptr % 4096 || size % 4096)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	m = find(ptr);
	if (!m || ptr + size > m->start + m->room) {
		pthread_mutex_unlock(&lock);
		return INVALID_VALUE;
	}
	fd = dup(m->fd);
	if (fd < 0 || fd >= MAX)
		abort();
	exports[fd].id = m->id;
	exports[fd].off = ptr - m->start;
	exports[fd].at = ptr;
	exports[fd].used = true;
	pthread_mutex_unlock(&lock);
	*(int *)handle = fd;
	return 0;
}

/* ---- memory of cuMemCreate(), as all is if mock.vmm; a handle is its number ---- */

int cuMemRetainAllocationHandle(uint64_t *handle, void *at);
int cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
	if (mock.vmm_retain_error)
		return mock.vmm_retain_error;
	*handle = mock.vmm ? mock_id((uintptr_t)at) : 0;
	if (!*handle)
		return INVALID_VALUE;
	mock.vmm_held++;
	return 0;
}

int cuMemRelease(uint64_t handle);
int cuMemRelease(uint64_t handle)
{
	(void)handle;
	mock.vmm_held--;
	return 0;
}

struct allocation {
	unsigned int type, handle_types;
	struct { unsigned int type; int id; } location;
	void *win32;
	unsigned char compression, flags[7];
};

int cuMemGetAllocationPropertiesFromHandle(struct allocation *prop,
					   uint64_t handle);
int cuMemGetAllocationPropertiesFromHandle(struct allocation *prop,
					   uint64_t handle)
{
	(void)handle;
	memset(prop, 0, sizeof(*prop));
	prop->type = 1;
	prop->handle_types = mock.vmm_closed ? 0 : 1;
	prop->compression = mock.vmm_compressed;
	prop->location.type = 1;
	prop->location.id = mock.gpu + mock.vmm_foreign;
	return 0;
}

int cuMemExportToShareableHandle(void *to, uint64_t handle, unsigned int type,
				 unsigned long long flags);
int cuMemExportToShareableHandle(void *to, uint64_t handle, unsigned int type,
				 unsigned long long flags)
{
	struct memory *m = NULL;
	unsigned int i;
	int fd;

	if (mock.vmm_export_error)
		return mock.vmm_export_error;
	if (type != 1 || flags || mock.vmm_closed)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (i = 0; i < memories; i++)
		if (memory[i].len && memory[i].id == handle)
			m = &memory[i];
	fd = m ? dup(m->fd) : -1;
	if (m && (fd < 0 || fd >= MAX))
		abort();
	if (m)
		mock_nv_export(fd, m->id, m->room);
	pthread_mutex_unlock(&lock);
	*(int *)to = fd;
	return m ? 0 : INVALID_VALUE;
}

int cuPointerGetAttribute(void *data, int attr, unsigned long long ptr);
int cuPointerGetAttribute(void *data, int attr, unsigned long long ptr)
{
	struct memory *m;
	int r = 0;

	pthread_mutex_lock(&lock);
	m = find(ptr);
	if (!m) {
		r = INVALID_VALUE;
		goto out;
	}
	switch (attr) {
	case 1: *(uint64_t *)data = m->ctx; break;
	case 2: *(unsigned int *)data = 2; break;
	case 7:
		if (mock.no_id)
			r = INVALID_VALUE;
		else
			*(uint64_t *)data = m->id;
		break;
	case 8: *(unsigned int *)data = 0; break;
	case 9: *(int *)data = mock.gpu + (mock.next_gpu && ptr >= mock.next_gpu); break;
	case 10: *(int *)data = !m->range; break;
	/* as a driver of NVIDIA's says, on an H100 */
	case 11: *(uint64_t *)data = m->range ? m->range : m->start; break;
	case 12: *(size_t *)data = m->range ? m->range_len : m->len; break;
	case 18: *(size_t *)data = m->room; break;
	case 19: *(uint64_t *)data = m->start; break;
	default: r = INVALID_VALUE;
	}
out:
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- contexts, devices ---- */

int cuDeviceGet(int *dev, int ordinal);
int cuDeviceGet(int *dev, int ordinal)
{
	*dev = ordinal;
	return ordinal ? INVALID_VALUE : 0;
}

int cuDeviceGetCount(int *n);
int cuDeviceGetCount(int *n)
{
	*n = 1;
	return 0;
}

int cuDeviceGetName(char *name, int len, int dev);
int cuDeviceGetName(char *name, int len, int dev)
{
	if (dev || len < 1)
		return 101;
	snprintf(name, (size_t)len, "mock");
	return 0;
}

int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

int cuCtxSetCurrent(void *ctx);
int cuCtxSetCurrent(void *ctx)
{
	current = ctx ? 1 : 0;
	stack[1] = (uintptr_t)ctx;
	return 0;
}

int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
	mock_settle();
	return 0;
}

int cuMemsetD8_v2(unsigned long long ptr, unsigned char value, size_t n);
int cuMemsetD8_v2(unsigned long long ptr, unsigned char value, size_t n)
{
	char *p = mock_memory(ptr);

	if (!p || !mock_memory(ptr + n - 1))
		return INVALID_VALUE;
	memset(p, value, n);
	return 0;
}

int cuDeviceGetPCIBusId(char *id, int len, int dev);
int cuDeviceGetPCIBusId(char *id, int len, int dev)
{
	(void)dev;
	if (len < 13)
		return INVALID_VALUE;
	strcpy(id, "0000:42:00.0");
	return 0;
}

int cuDevicePrimaryCtxRetain(void **ctx, int dev);
int cuDevicePrimaryCtxRetain(void **ctx, int dev)
{
	(void)dev;
	*ctx = (void *)OURS;
	return 0;
}

static __thread bool other_current;

static bool is_there(uint64_t ctx)
{
	return ctx == OURS || (ctx == OTHER && !mock.no_other) ||
	       (ctx == 0xdead && mock.other_ctx & 1);
}

int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPushCurrent_v2(void *ctx)
{
	not_in_call();
	other_current = (uintptr_t)ctx == 0xdead && (mock.other_ctx & 1);
	if (!is_there((uintptr_t)ctx))
		return INVALID_CONTEXT;
	if (current == 63)
		abort();
	stack[++current] = (uintptr_t)ctx;
	return 0;
}

int cuMemGetInfo_v2(size_t *avail, size_t *total);
int cuMemGetInfo_v2(size_t *avail, size_t *total)
{
	if (!current)
		return INVALID_CONTEXT;
	for (int tries = 0; mock.hold_info && tries < 30000; tries++) {
		mock.in_info = true;
		usleep(1000);
	}
	mock.in_info = false;
	*avail = *total = 1 << 30;
	if (!other_current || mock.other_ctx == 1)
		return 0;
	return mock.other_ctx == 3 ? ILLEGAL_ADDRESS : OUT_OF_MEMORY;
}

int cuCtxPopCurrent_v2(void **ctx);
int cuCtxPopCurrent_v2(void **ctx)
{
	if (!current)
		return INVALID_CONTEXT;
	if (mock.hold_pop && !mock.in_pop++)
		while (mock.hold_pop)
			usleep(100);
	other_current = false;
	*ctx = (void *)(uintptr_t)stack[current--];
	return 0;
}

int cuCtxGetId(void *ctx, unsigned long long *id);
int cuCtxGetId(void *ctx, unsigned long long *id)
{
	if (!is_there((uintptr_t)ctx))
		return INVALID_CONTEXT;
	if (ctx == (void *)OTHER) {
		mock.in_other++;
		while (mock.hold_other)
			usleep(100);
		mock.in_other--;
	}
	*id = ctx == (void *)OURS ? 77 : ctx == (void *)OTHER ? other_id : 78;
	return 0;
}

/* ---- copies: put off until somebody waits ---- */

struct op {
	void *dst;
	const void *src;
	size_t n;
	uint64_t number;
};

/* What ends with its context, if nobody destroys it before */
static struct owned {
	struct owned *next;
	uint64_t ctx;
} *owned;

struct stream {
	struct owned owned;	/* first */
	struct op op[64];
	unsigned int ops;
	uint64_t number;
};

struct event {
	struct owned owned;	/* first */
	struct stream *stream;
	uint64_t number;
	uint64_t calls;		/* of the default stream: functions of before */
	bool blocking;
};

static void *of_context(size_t size)
{
	struct owned *o = calloc(1, size);

	if (!o)
		return NULL;
	o->ctx = context();
	pthread_mutex_lock(&lock);
	o->next = owned;
	owned = o;
	pthread_mutex_unlock(&lock);
	return o;
}

static void destroy(struct owned *o)
{
	struct owned **at = &owned;

	pthread_mutex_lock(&lock);
	while (*at && *at != o)
		at = &(*at)->next;
	if (!*at)
		abort();
	*at = o->next;
	pthread_mutex_unlock(&lock);
	free(o);
}

/* Of the default stream, by each thread */
static __thread struct stream by_default;

static void perform(struct stream *s, uint64_t upto)
{
	unsigned int i, kept = 0;

	for (i = 0; i < s->ops; i++) {
		if (s->op[i].number > upto) {
			s->op[kept++] = s->op[i];
			continue;
		}
		memcpy(s->op[i].dst, s->op[i].src, s->op[i].n);
	}
	s->ops = kept;
}

static int put_off(struct stream *s, unsigned long long dev, void *host,
		   size_t n, bool to_gpu)
{
	char *g = mock_memory(dev), *last = n ? mock_memory(dev + n - 1) : g;
	struct op *op;

	if (!current || (s != &by_default && s->owned.ctx != context()))
		return INVALID_CONTEXT;
	if (mock.copy_error) {
		if (mock.copy_after <= 0)
			return mock.copy_error;
		mock.copy_after--;
	}
	if (!g || last != g + n - 1)
		return INVALID_VALUE;
	if (mock.pretend) {
		uint64_t off = dev - mock.pretend;

		if (to_gpu)
			mock.astray += memcmp(host, &off, sizeof(off)) != 0;
		else
			memcpy(host, &off, sizeof(off));
		mock.pretended_copies += n;
		return 0;
	}
	if (to_gpu && as_registered(host))
		host = as_registered(host);
	else if (to_gpu)
		mock.unpinned++;
	if (s->ops == 64)
		perform(s, UINT64_MAX);
	op = &s->op[s->ops++];
	op->dst = to_gpu ? (void *)g : host;
	op->src = to_gpu ? host : (void *)g;
	op->n = n;
	op->number = ++s->number;
	return 0;
}

static int host_copy(struct stream *s, unsigned long long dev, void *host,
		     size_t n, bool to_gpu)
{
	mock.copies++;
	return put_off(s, dev, host, n, to_gpu);
}

/* The default stream has come to what was put into it. */
static void default_waits(void)
{
	mock.in_default++;
	while (mock.hold_default)
		usleep(100);
	mock.in_default--;
}

static int copy_and_wait(unsigned long long dev, void *host, size_t n, bool to_gpu)
{
	int r;

	mock_settle();
	default_waits();
	r = host_copy(&by_default, dev, host, n, to_gpu);
	perform(&by_default, UINT64_MAX);
	return r;
}

int cuMemcpyHtoD_v2(unsigned long long d, const void *h, size_t n);
int cuMemcpyHtoD_v2(unsigned long long d, const void *h, size_t n)
{
	return copy_and_wait(d, (void *)h, n, true);
}

int cuMemcpyDtoH_v2(void *h, unsigned long long d, size_t n);
int cuMemcpyDtoH_v2(void *h, unsigned long long d, size_t n)
{
	return copy_and_wait(d, h, n, false);
}

int cuMemcpyHtoDAsync_v2(unsigned long long d, const void *h, size_t n,
			 void *s);
int cuMemcpyHtoDAsync_v2(unsigned long long d, const void *h, size_t n,
			 void *s)
{
	char *pages = as_registered((char *)h);

	mock.in_copy++;
	while (mock.hold_copy)
		usleep(100);
	mock.in_copy--;
	/* the driver has the CPU put few bytes into its commands */
	if (n < BY_CPU && pages && pages != h)
		mock.by_cpu++;
	return host_copy(s ? s : &by_default, d, (void *)h, n, true);
}

/* What the stream has is done, and then this is there: at once, or for who waits for it. */
int cuStreamWriteValue32_v2(void *s, unsigned long long at, unsigned int value,
			    unsigned int flags);
int cuStreamWriteValue32_v2(void *s, unsigned long long at, unsigned int value,
			    unsigned int flags)
{
	struct stream *stream = s;

	if (!mock.marks || flags)
		return NOT_SUPPORTED;
	mock.marked++;
	if (mock.marks == MARKS_LATE)
		return 0;
	perform(stream, UINT64_MAX);
	*(_Atomic unsigned int *)(uintptr_t)at = value;
	return 0;
}

int cuMemcpyDtoHAsync_v2(void *h, unsigned long long d, size_t n, void *s);
int cuMemcpyDtoHAsync_v2(void *h, unsigned long long d, size_t n, void *s)
{
	return host_copy(s ? s : &by_default, d, h, n, false);
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n,
			 void *s);
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n,
			 void *s)
{
	char *p = mock_memory(to);

	if (!p || mock_memory(to + n - 1) != p + n - 1)
		return INVALID_VALUE;
	mock.within += n;
	return put_off(s, from, p, n, false);
}

int cuStreamCreate(void **s, unsigned int flags);
int cuStreamCreate(void **s, unsigned int flags)
{
	(void)flags;
	if (mock.no_streams || !current)
		return INVALID_CONTEXT;
	*s = of_context(sizeof(struct stream));
	return *s ? 0 : OUT_OF_MEMORY;
}

int cuStreamDestroy_v2(void *s);
int cuStreamDestroy_v2(void *s)
{
	destroy(s);
	return 0;
}

/* ---- functions in streams: one thread, one after the other ---- */

static struct call {
	struct call *next;
	void (*fn)(void *);
	void *arg;
	void *stream;
} *calls;
static unsigned int calling;
static uint64_t launched, returned;
static void *called_in;		/* the stream of the one that is called now */
static bool have_caller;
static __thread bool is_caller;
static pthread_cond_t calls_change = PTHREAD_COND_INITIALIZER;

static void *call_all(void *unused)
{
	struct call *c;

	is_caller = true;
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!calls)
			pthread_cond_wait(&calls_change, &lock);
		c = calls;
		calls = c->next;
		called_in = c->stream;
		pthread_mutex_unlock(&lock);
		while (mock.hold_stream)
			usleep(100);
		c->fn(c->arg);
		free(c);
		pthread_mutex_lock(&lock);
		calling--;
		returned++;
		called_in = NULL;
		pthread_cond_broadcast(&calls_change);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

/* With the lock held: one of its functions has not returned. */
static bool calls_in(void *s)
{
	struct call *c;

	for (c = calls; c && c->stream != s; c = c->next)
		continue;
	return c || (s && called_in == s);
}

/* Who waits for copies, until they may end.  The CUresult. */
static int await_copies(bool blocking)
{
	mock.waits++;
	mock.blocking += blocking;
	mock.in_wait++;
	while (mock.hold_wait)
		usleep(100);
	mock.in_wait--;
	return mock.sync_error && !mock.sync_after-- ? mock.sync_error : 0;
}

int cuStreamSynchronize(void *s);
int cuStreamSynchronize(void *s)
{
	struct stream *stream = s ? s : &by_default;
	int r;

	pthread_mutex_lock(&lock);
	while (s ? calls_in(s) : returned < launched)
		pthread_cond_wait(&calls_change, &lock);
	pthread_mutex_unlock(&lock);
	if (!s)
		default_waits();
	r = await_copies(false);
	if (r)
		stream->ops = 0;
	else
		perform(stream, UINT64_MAX);
	return r;
}

/* As with CUDA, such a function must not call it. */
static void not_in_call(void)
{
	if (is_caller)
		abort();
}

int cuStreamIsCapturing(void *s, int *status);
int cuStreamIsCapturing(void *s, int *status)
{
	(void)s;
	*status = mock.capture;
	return 0;
}

int cuStreamGetId(void *s, unsigned long long *id);
int cuStreamGetId(void *s, unsigned long long *id)
{
	*id = (uintptr_t)s + (unsigned int)mock.stream_turn;
	return 0;
}

int cuStreamGetCtx(void *s, void **ctx);
int cuStreamGetCtx(void *s, void **ctx)
{
	(void)s;
	*ctx = (void *)(uintptr_t)(mock.other_ctx ? 0xdead : 0xc0de);
	return 0;
}

static struct call lost;

void mock_lost(void)
{
	lost.fn(lost.arg);
}

int cuLaunchHostFunc(void *s, void (*fn)(void *), void *arg);
int cuLaunchHostFunc(void *s, void (*fn)(void *), void *arg)
{
	struct call *c = malloc(sizeof(*c)), **p;
	pthread_t caller;

	if (s == (void *)-1 || !c) {
		free(c);
		return INVALID_CONTEXT;
	}
	*c = (struct call){ .fn = fn, .arg = arg, .stream = s };
	if (mock.lose_calls) {
		lost = *c;
		free(c);
		return 0;
	}
	pthread_mutex_lock(&lock);
	for (p = &calls; *p; p = &(*p)->next)
		continue;
	*p = c;
	calling++;
	launched++;
	if (!have_caller)
		have_caller = !pthread_create(&caller, NULL, call_all, NULL);
	pthread_cond_broadcast(&calls_change);
	pthread_mutex_unlock(&lock);
	return 0;
}

void mock_settle(void)
{
	not_in_call();
	mock.in_settle++;
	pthread_mutex_lock(&lock);
	while (calling)
		pthread_cond_wait(&calls_change, &lock);
	pthread_mutex_unlock(&lock);
	mock.in_settle--;
}

int cuDeviceGetUuid_v2(char *id, int dev);
int cuDeviceGetUuid_v2(char *id, int dev)
{
	memset(id, MOCK_UUID + dev, 16);
	return 0;
}

int cuEventCreate(void **e, unsigned int flags);
int cuEventCreate(void **e, unsigned int flags)
{
	if (mock.no_events)
		return OUT_OF_MEMORY;
	*e = of_context(sizeof(struct event));
	if (*e)
		((struct event *)*e)->blocking = flags & 1;
	return *e ? 0 : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(void *e);
int cuEventDestroy_v2(void *e)
{
	destroy(e);
	return 0;
}

int cuEventRecord(void *e, void *s);
int cuEventRecord(void *e, void *s)
{
	struct event *ev = e;

	if (mock.no_record)
		return OUT_OF_MEMORY;
	ev->stream = s ? s : &by_default;
	ev->number = ev->stream->number;
	pthread_mutex_lock(&lock);
	ev->calls = s ? 0 : launched;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuEventSynchronize(void *e);
int cuEventSynchronize(void *e)
{
	struct event *ev = e;
	int r;

	pthread_mutex_lock(&lock);
	while (returned < ev->calls)
		pthread_cond_wait(&calls_change, &lock);
	pthread_mutex_unlock(&lock);
	if (ev->stream == &by_default)
		default_waits();
	r = await_copies(ev->blocking);
	if (!r && ev->stream)
		perform(ev->stream, ev->number);
	return r;
}

/* With the lock held. */
static void forget(struct registration *r)
{
	if (r->pages) {
		munmap(r->pages, r->len);
		mock.read_only--;
		mock.unregistered++;
	} else {
		mock.pinned_bytes -= (int64_t)r->len;
	}
	r->at = NULL;
	mock.pinned--;
}

/* With the lock held: was it gone?  It is ended now. */
static bool was_gone(const char *p)
{
	unsigned int i;

	for (i = 0; i < MAX; i++)
		if (gone[i] == p) {
			gone[i] = NULL;
			return true;
		}
	return false;
}

int cuMemHostRegister_v2(void *p, size_t n, unsigned int flags);
int cuMemHostRegister_v2(void *p, size_t n, unsigned int flags)
{
	bool read_only = flags & 8;
	struct registration *r = NULL;
	struct iovec from = { p, n }, to;
	unsigned int i;
	int err = 0;

	if (mock.no_pinning)
		return OUT_OF_MEMORY;
	if (!is_there(context()))
		return INVALID_CONTEXT;
	if (read_only)
		mock.read_only_calls++;
	if (read_only && mock.hold_register) {
		mock.in_register++;
		while (mock.hold_register)
			usleep(100);
		mock.in_register--;
	}
	if (read_only && mock.register_error)
		return mock.register_error;
	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX; i++) {
		if (!registrations[i].at)
			r = &registrations[i];
		else if ((char *)p < registrations[i].at + registrations[i].len &&
			 registrations[i].at < (char *)p + n)
			err = ALREADY_REGISTERED;
	}
	/* TSan has to know that it is new memory: not by real_mmap() */
	to.iov_base = read_only ? mmap(NULL, n, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	to.iov_len = n;
	/* by the kernel: pages that are not there are an error and no signal */
	if (!err && read_only &&
	    process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)n)
		err = INVALID_VALUE;
	if (err && read_only)
		munmap(to.iov_base, n);
	if (!err) {
		*r = (struct registration){ p, n, to.iov_base, context() };
		was_gone(p);
		if (read_only)
			mock.read_only++;
		else
			mock.pinned_bytes += (int64_t)n;
		mock.pinned++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

int cuMemAllocHost_v2(void **p, size_t n);
int cuMemAllocHost_v2(void **p, size_t n)
{
	return posix_memalign(p, 4096, n) ? 2 : 0;
}

int cuMemHostUnregister(void *p);
int cuMemHostUnregister(void *p)
{
	int r = mock.unregister_error;
	unsigned int i;

	mock_settle();
	mock.in_unpin++;
	while (mock.hold_unpin)
		usleep(1000);
	mock.in_unpin--;
	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX && registrations[i].at != p; i++)
		continue;
	/* nobody ends what never was */
	if (i == MAX && !was_gone(p))
		abort();
	if (!is_there(context()) && (i < MAX || !mock.gone_anywhere))
		r = INVALID_CONTEXT;
	else if (i == MAX)
		r = NOT_REGISTERED;
	else
		forget(&registrations[i]);
	pthread_mutex_unlock(&lock);
	return r;
}

void mock_end_other(void)
{
	struct owned **at = &owned, *o;
	unsigned int i, k;

	pthread_mutex_lock(&lock);
	while ((o = *at)) {
		if (o->ctx == OTHER) {
			*at = o->next;
			free(o);
		} else {
			at = &o->next;
		}
	}
	other_id += 100;
	mock.no_other = true;
	for (i = 0; i < MAX; i++)
		if (registrations[i].at && registrations[i].ctx == OTHER) {
			for (k = 0; gone[k]; k++)
				if (k == MAX - 1)
					abort();
			gone[k] = registrations[i].at;
			forget(&registrations[i]);
		}
	pthread_mutex_unlock(&lock);
}

int cuDeviceGetAttribute(int *value, int attr, int dev);
int cuDeviceGetAttribute(int *value, int attr, int dev)
{
	if (dev || attr != 113)
		return INVALID_VALUE;
	*value = !mock.no_read_only;
	return 0;
}

int cuGetErrorName(int r, const char **name);
int cuGetErrorName(int r, const char **name)
{
	*name = r == NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "MOCK_ERROR";
	return 0;
}
