// SPDX-License-Identifier: MIT
/*
 * Of the mock: /dev/peerlane, with the rules of <linux/peerlane.h>.  The real one
 * does IO in the case cufile/kernel-module.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "mock.h"

#define PAGE	65536
#define MAX	256
#define BLOCK	512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory {
	uint64_t address, size, id;
} memory[MAX];			/* by handle, of which 0 is none */

static bool unreadable(const char *path)
{
	size_t n = mock.read_name ? strlen(mock.read_name) : 0, len = strlen(path);

	return mock.read_errno && !strncmp(path, "/sys/", 5) &&
	       (!n || (len > n && !strcmp(path + len - n, mock.read_name)));
}

/* As another thread that reads by this descriptor moves it */
static void move_on(void)
{
	unsigned int turn = mock.moved_looks % 3;

	mock.moved_looks++;
	if (mock.moved_back && !(mock.moved_looks % mock.moved_back)) {
		if (lseek(mock.moved_fd, 0, SEEK_SET))
			abort();
	} else if ((!mock.moved_turns || mock.moved_turns & 1u << turn) &&
		   lseek(mock.moved_fd, 1, SEEK_CUR) < 0) {
		abort();
	}
}

static bool is_held(int flags)
{
	return mock.hold_again == 1 || (mock.hold_again == 2 && (flags & O_ACCMODE) == O_RDONLY);
}

int open(const char *path, int flags, ...)
{
	static void *_Atomic at;
	const char *kmsg = getenv("PEERLANE_KMSG");
	int (*real_open)(const char *, int, ...);
	mode_t mode = 0;
	va_list ap;
	int fd;

	*(void **)&real_open = mock_real(&at, "open");
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	fd = mock_nv_open(path);
	if (fd != -2)
		return fd;
	mock_own(flags & O_CLOEXEC, __builtin_return_address(0));
	if (is_held(flags) && !strncmp(path, "/proc/thread-self/fd/", 21)) {
		mock.in_again++;
		while (is_held(flags))
			usleep(100);
		mock.in_again--;
	}
	if (mock.again_errno && !strncmp(path, "/proc/thread-self/fd/", 21) &&
	    (!mock.again_flags || flags & mock.again_flags)) {
		errno = mock.again_errno;
		if (mock.again_count && !--mock.again_count)
			mock.again_errno = 0;
		return -1;
	}
	if (unreadable(path)) {
		errno = mock.read_errno;
		return -1;
	}
	if (kmsg && !strcmp(path, kmsg))
		mock.kmsg_opened++;
	if (strcmp(path, "/dev/peerlane"))
		return real_open(path, flags, mode);
	if (!mock.module || mock.module_none) {
		errno = mock.module_none ? mock.module_none : ENOENT;
		return -1;
	}
	return real_open("/dev/null", flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	static void *_Atomic at;
	FILE *(*real_fopen)(const char *, const char *);

	*(void **)&real_fopen = mock_real(&at, "fopen");
	mock_own(strchr(mode, 'e'), __builtin_return_address(0));
	if (!strncmp(path, "/proc/thread-self/fdinfo/", 25)) {
		if (mock.moved_fd)
			move_on();
		errno = mock.fdinfo_errno;
		if (errno)
			return NULL;
	}
	if (unreadable(path)) {
		errno = mock.read_errno;
		return NULL;
	}
	if (mock.locks && !strcmp(path, "/proc/locks"))
		path = mock.locks;
	if (mock.mounts && !strcmp(path, "/proc/thread-self/mountinfo"))
		path = mock.mounts;
	return real_fopen(path, mode);
}

/* What the C library's checks call where the flags are known at run time only */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open(path, flags, 0);
}

static int refuse(uint32_t *field, uint32_t reason, int err)
{
	*field = reason;
	errno = err;
	return -1;
}

/* Only a driver of a GPU knows allocations: see mock_libcuda.c */
static int reg(struct pln_register *r)
{
	unsigned int i;

	if (r->flags || r->reserved || !r->size || r->address % PAGE ||
	    r->size % PAGE || !mock_covers(r->address, r->size)) {
		errno = EINVAL;
		return -1;
	}
	if (mock.register_errno)
		return refuse(&r->reason, mock.register_reason,
			      mock.register_errno);
	if (mock.module_max && mock.registered + r->size > mock.module_max)
		return refuse(&r->reason, PLN_REASON_LIMIT, EDQUOT);
	for (i = 1; i < MAX && memory[i].size; i++)
		continue;
	if (i == MAX) {
		errno = ENOSPC;
		return -1;
	}
	memory[i] = (struct memory){ r->address, r->size,
				     mock_id(r->address) };
	mock.registered += r->size;
	mock.registrations++;
	r->handle = i;
	return 0;
}

static int unregister(const struct pln_unregister *u)
{
	if (u->handle >= MAX || !memory[u->handle].size) {
		errno = ENOENT;
		return -1;
	}
	mock.registered -= memory[u->handle].size;
	memory[u->handle].size = 0;
	return 0;
}

/* Where the data goes, or NULL with errno. */
static char *target(struct pln_io *io)
{
	const struct memory *m = &memory[io->handle < MAX ? io->handle : 0];
	int err = 0;

	if (!m->size)
		err = ENOENT;
	else if (io->offset > m->size || io->size > m->size - io->offset)
		err = ERANGE;
	if (err) {
		errno = err;
		return NULL;
	}
	if (mock_id(m->address) != m->id)
		refuse(&io->reason, PLN_REASON_FREED, EIDRM);
	else if (io->file_offset % BLOCK || io->size % BLOCK ||
		 io->offset % BLOCK)
		refuse(&io->reason, PLN_REASON_ALIGNMENT, EINVAL);
	else if (!mock.module_errno)
		return mock_memory(m->address + io->offset);
	else
		refuse(&io->reason, mock.module_reason, mock.module_errno);
	if (mock.module_count && !--mock.module_count)
		mock.module_errno = 0;
	return NULL;
}

static int move(struct pln_io *io)
{
	static void *_Atomic at[2];
	ssize_t (*get)(int, void *, size_t, off_t);
	ssize_t (*put)(int, const void *, size_t, off_t);
	size_t n = io->size;
	ssize_t r;
	char *p;

	*(void **)&get = mock_real(&at[0], "pread");
	*(void **)&put = mock_real(&at[1], "pwrite");
	pthread_mutex_lock(&lock);
	mock.module_calls++;
	p = target(io);
	pthread_mutex_unlock(&lock);
	if (!p)
		return -1;
	if (mock.short_io && n > mock.short_io)
		n = mock.short_io;
	r = io->op == PLN_IO_WRITE ? put(io->fd, p, n, (off_t)io->file_offset) :
				     get(io->fd, p, n, (off_t)io->file_offset);
	if (r < 0)
		return -1;
	io->done = (uint64_t)r;
	mock.module_bytes += (uint64_t)r;
	return 0;
}

/* ---- its IO in an io_uring: the latest ring of the process, mapped once more ---- */

static struct {
	struct io_uring_params p;
	struct io_uring_sqe *sqe;
	char *rings;
	size_t rings_size;
	struct {
		uint64_t user_data;
		int err;
	} failed[MAX];			/* and not told yet */
} ring;

static void ring_made(int fd, const struct io_uring_params *p)
{
	if (ring.sqe) {
		munmap(ring.sqe, ring.p.sq_entries * sizeof(*ring.sqe));
		munmap(ring.rings, ring.rings_size);
	}
	ring.p = *p;
	ring.rings_size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	ring.sqe = mmap(NULL, p->sq_entries * sizeof(*ring.sqe), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, IORING_OFF_SQES);
	ring.rings = mmap(NULL, ring.rings_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  IORING_OFF_SQ_RING);
	if (ring.sqe == MAP_FAILED || ring.rings == MAP_FAILED)
		abort();
}

/* What the module is asked for the kernel does with the memory where the mock has it. */
static void ring_entered(void)
{
	struct io_uring_sqe *e;
	struct pln_io io;
	unsigned int i;
	char *p;

	pthread_mutex_lock(&lock);
	for (e = ring.sqe; e && e < ring.sqe + ring.p.sq_entries; e++) {
		if (e->opcode != IORING_OP_URING_CMD || e->cmd_op != PLN_IOC_IO)
			continue;
		io = *(const struct pln_io *)(uintptr_t)e->addr3;
		mock.module_queued++;
		p = target(&io);
		for (i = 0; !p && i < MAX; i++)
			if (!ring.failed[i].err) {
				ring.failed[i].user_data = e->user_data;
				ring.failed[i].err = errno;
				break;
			}
		if (mock.short_io && io.size > mock.short_io)
			io.size = mock.short_io;
		mock.module_bytes += p ? io.size : 0;
		*e = (struct io_uring_sqe){
			.opcode = !p ? IORING_OP_NOP : io.op == PLN_IO_WRITE ?
				  IORING_OP_WRITE : IORING_OP_READ,
			.fd = p ? io.fd : 0, .addr = (uintptr_t)p,
			.len = p ? (uint32_t)io.size : 0,
			.off = p ? io.file_offset : 0, .user_data = e->user_data,
		};
	}
	pthread_mutex_unlock(&lock);
}

static void ring_left(void)
{
	const unsigned int *tail = (unsigned int *)(ring.rings + ring.p.cq_off.tail);
	unsigned int i, at = *(unsigned int *)(ring.rings + ring.p.cq_off.head);
	struct io_uring_cqe *c;

	for (; at != __atomic_load_n(tail, __ATOMIC_ACQUIRE); at++) {
		c = (struct io_uring_cqe *)(ring.rings + ring.p.cq_off.cqes) +
		    (at & (ring.p.cq_entries - 1));
		for (i = 0; i < MAX; i++)
			if (ring.failed[i].err && ring.failed[i].user_data == c->user_data) {
				c->res = -ring.failed[i].err;
				ring.failed[i].err = 0;
			}
	}
}

/* Not by the C library's: a sanitizer's malloc() asks for the time, and cannot be asked for a symbol then. */
static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall" : "+a"(nr)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return nr;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "system calls of this processor"
#endif
}

/* Those of one open() have their position in common. */
bool mock_same(int a, int b)
{
	off_t at = lseek(a, 0, SEEK_CUR);
	bool same = at >= 0 && lseek(b, 0, SEEK_CUR) == at && lseek(a, at + 1, SEEK_SET) >= 0 &&
		    lseek(b, 0, SEEK_CUR) == at + 1;

	if (at < 0 || lseek(a, at, SEEK_SET) != at)
		abort();
	return same;
}

/* Of a thread's own descriptors, as the kernel has it. */
static long compare(pid_t one, pid_t two, long type, int a, int b)
{
	pid_t me = (pid_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);

	if (one != me || two != me || type != KCMP_FILE)
		abort();
	return mock_same(a, b) ? 0 : mock.kcmp_other;
}

long syscall(long nr, ...)
{
	long a, b, c, d, e, f, r;
	va_list ap;

	va_start(ap, nr);
	a = va_arg(ap, long);
	b = va_arg(ap, long);
	c = va_arg(ap, long);
	d = va_arg(ap, long);
	e = va_arg(ap, long);
	f = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_kcmp && mock.kcmp)
		return compare((pid_t)a, (pid_t)b, c, (int)d, (int)e);
	if (nr == __NR_io_uring_enter)
		ring_entered();
	r = raw(nr, a, b, c, d, e, f);
	if (nr == __NR_io_uring_setup && r >= 0)
		ring_made((int)r, (const struct io_uring_params *)b);
	if (nr == __NR_io_uring_enter && ring.rings)
		ring_left();
	if (r >= 0 || r < -4095)
		return r;
	errno = (int)-r;
	return -1;
}

int ioctl(int fd, unsigned long cmd, ...)
{
	static int (*real_ioctl)(int, unsigned long, ...);
	va_list ap;
	void *arg;
	int r;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!real_ioctl)
		*(void **)&real_ioctl = dlsym(RTLD_NEXT, "ioctl");
	if (mock_nv_ioctl(fd, cmd, arg, &r))
		return r;
	if (cmd == BLKSSZGET && mock.block) {
		*(int *)arg = (int)mock.sector;
		return 0;
	}
	if (_IOC_TYPE(cmd) != PLN_IOC_MAGIC)
		return real_ioctl(fd, cmd, arg);
	if (cmd == PLN_IOC_IO)
		return move(arg);
	pthread_mutex_lock(&lock);
	switch (cmd) {
	case PLN_IOC_QUERY:
		((struct pln_query *)arg)->abi_version = mock.module;
		((struct pln_query *)arg)->page_size = mock.module_said ? mock.module_page : PAGE;
		if (!mock.module_waits)
			((struct pln_query *)arg)->features = PLN_FEAT_URING_CMD;
		r = 0;
		break;
	case PLN_IOC_REGISTER:
		r = reg(arg);
		break;
	case PLN_IOC_UNREGISTER:
		r = unregister(arg);
		break;
	default:
		errno = ENOTTY;
		r = -1;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
