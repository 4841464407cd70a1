// SPDX-License-Identifier: MIT
/*
 * To preload: faults of the N-th call, for tests of commands that move files.
 *
 *	FAULT_FLIP=N	the N-th read of a file has another first byte
 *	FAULT_KILL=N	the N-th call that changes a file kills the program: a write when half
 *			of it is done, any other before it
 *	FAULT_RUN=COMMAND	instead of that, the command is run before it
 *	FAULT_SYNC=ERRNO	that of a folder fails so
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic long reads, changes;

static long number(const char *name)
{
	const char *e = getenv(name);

	return e ? strtol(e, NULL, 10) : 0;
}

static int dies(void)
{
	long n = number("FAULT_KILL");
	const char *command = getenv("FAULT_RUN");

	if (!n || ++changes != n)
		return 0;
	if (!command)
		return 1;
	unsetenv("LD_PRELOAD");
	if (system(command))
		abort();
	return 0;
}

#define REAL(name, ...) (((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__))

ssize_t pread(int fd, void *p, size_t n, off_t off)
{
	ssize_t r = REAL(pread, fd, p, n, off);

	if (r > 0 && ++reads == number("FAULT_FLIP"))
		*(char *)p ^= 1;
	return r;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t off)
{
	if (!dies())
		return REAL(pwrite, fd, p, n, off);
	/* whole blocks, for O_DIRECT */
	if (REAL(pwrite, fd, p, n > 8192 ? n / 8192 * 4096 : n / 2, off) < 0)
		perror("FAULT_KILL");
	raise(SIGKILL);
	return -1;
}

int ftruncate(int fd, off_t size)
{
	struct stat st;

	/* not of a memfd */
	if (!fstat(fd, &st) && st.st_nlink && dies())
		raise(SIGKILL);
	return REAL(ftruncate, fd, size);
}

int fsync(int fd)
{
	struct stat st;

	if (number("FAULT_SYNC") && !fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		errno = (int)number("FAULT_SYNC");
		return -1;
	}
	if (dies())
		raise(SIGKILL);
	return REAL(fsync, fd);
}

int rename(const char *from, const char *to)
{
	if (dies())
		raise(SIGKILL);
	return REAL(rename, from, to);
}
