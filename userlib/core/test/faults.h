/* SPDX-License-Identifier: MIT */
/*
 * Calls of the C library that a test makes fail, wrapped by the linker (FAULTY
 * in ../Makefile): the fail_at[kind]th call from now fails once.
 */
#ifndef PEERLANE_CORE_TEST_FAULTS_H
#define PEERLANE_CORE_TEST_FAULTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

enum fault { MALLOC, OPEN, READ, NR_FAULTS };
static unsigned int calls[NR_FAULTS], fail_at[NR_FAULTS];
static int open_error = EMFILE, read_error = EIO;

static bool faulty(enum fault what)
{
	return ++calls[what] == fail_at[what];
}

#define ALLOC(type, name, args, pass)					\
	type __real_##name args;					\
	type __wrap_##name args;					\
	type __wrap_##name args						\
	{								\
		if (!faulty(MALLOC))					\
			return __real_##name pass;			\
		errno = ENOMEM;						\
		return NULL;						\
	}
ALLOC(void *, malloc, (size_t n), (n))
ALLOC(void *, calloc, (size_t n, size_t m), (n, m))
ALLOC(void *, realloc, (void *p, size_t n), (p, n))
ALLOC(char *, strdup, (const char *s), (s))
ALLOC(char *, realpath, (const char *s, char *to), (s, to))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (!faulty(OPEN))
		return __real_open(path, flags);
	errno = open_error;
	return -1;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!faulty(OPEN))
		return __real_fopen(path, mode);
	errno = open_error;
	return NULL;
}

void *__real_opendir(const char *path);
void *__wrap_opendir(const char *path);
void *__wrap_opendir(const char *path)
{
	if (!faulty(OPEN))
		return __real_opendir(path);
	errno = open_error;
	return NULL;
}

ssize_t __real_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n);
ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	if (!faulty(READ))
		return __real_read(fd, buf, n);
	errno = read_error;
	return -1;
}

int __wrap_gethostname(char *name, size_t n);
int __wrap_gethostname(char *name, size_t n)
{
	return snprintf(name, n, "machine-7") < 0;
}

__attribute__((unused)) static void faults_reset(void)
{
	memset(calls, 0, sizeof(calls));
	memset(fail_at, 0, sizeof(fail_at));
}

#endif
