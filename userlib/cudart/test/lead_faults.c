// SPDX-License-Identifier: MIT
/*
 * A system that does not do what libpeerlane-cudart asks of it; linked into a
 * copy of that, with one of
 *	-DNO_WRITE	code cannot be made writable
 *	-DNO_EXEC	nor executable again
 *	-DNO_OPEN	files cannot be opened
 *	-DOTHER='"F"'	file F is there instead of every file
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(NO_WRITE) || defined(NO_EXEC)
#ifdef NO_WRITE
#define REFUSED	PROT_WRITE
#else
#define REFUSED	PROT_EXEC
#endif
int mprotect(void *at, size_t n, int prot)
{
	if (prot & REFUSED) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_mprotect, at, n, prot);
}
#else
int open(const char *path, int flags, ...)
{
#ifdef NO_OPEN
	(void)path;
	(void)flags;
	errno = EACCES;
	return -1;
#else
	(void)path;
	return (int)syscall(SYS_openat, AT_FDCWD, OTHER, flags);
#endif
}
#endif
