// SPDX-License-Identifier: MIT
/*
 * System calls on /dev/peerlane-gpuN.  Unit tests replace this file by
 * test/fake_gpu.c, which has the same four functions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

int drv_io_open(unsigned int minor)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/peerlane-gpu%u", minor);
	return open(path, O_RDWR | O_CLOEXEC);
}

int drv_io_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg);
}

void *drv_io_mmap(void *addr, size_t len, int prot, int fd, uint64_t offset)
{
	return mmap(addr, len, prot, MAP_SHARED | MAP_FIXED, fd,
		    (off_t)offset);
}

int drv_io_close(int fd)
{
	return close(fd);
}
