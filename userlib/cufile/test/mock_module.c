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
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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
	if (mock.no_again && !strncmp(path, "/proc/self/fd/", 14)) {
		errno = EACCES;
		return -1;
	}
	if (kmsg && !strcmp(path, kmsg))
		mock.kmsg_opened++;
	if (strcmp(path, "/dev/peerlane"))
		return real_open(path, flags, mode);
	if (!mock.module) {
		errno = ENOENT;
		return -1;
	}
	return real_open("/dev/null", flags, mode);
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

	mock.module_calls++;
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
	if (_IOC_TYPE(cmd) != PLN_IOC_MAGIC)
		return real_ioctl(fd, cmd, arg);
	if (cmd == PLN_IOC_IO)
		return move(arg);
	pthread_mutex_lock(&lock);
	switch (cmd) {
	case PLN_IOC_QUERY:
		((struct pln_query *)arg)->abi_version = mock.module;
		((struct pln_query *)arg)->page_size = PAGE;
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
