// SPDX-License-Identifier: MIT
/*
 * For unit tests: "this machine" is the record that PEERLANE_FAKE_MACHINE names, and
 * GPUs can be exchanged.
 */
#include <stdlib.h>

#include "facts.h"
#include "fake_machine.h"
#include "gpu.h"

bool fake_exchanged;

int __real_facts_open(struct facts **f, const char *record);
int __wrap_facts_open(struct facts **f, const char *record);
int __real_drv_io_ioctl(int fd, unsigned long request, void *arg);
int __wrap_drv_io_ioctl(int fd, unsigned long request, void *arg);

int __wrap_facts_open(struct facts **f, const char *record)
{
	return __real_facts_open(f, record ? record :
				    getenv("PEERLANE_FAKE_MACHINE"));
}

int __wrap_drv_io_ioctl(int fd, unsigned long request, void *arg)
{
	int r = __real_drv_io_ioctl(fd, request, arg);

	if (!r && request == PLN_GPU_IOC_QUERY && fake_exchanged)
		((struct pln_gpu_query *)arg)->uuid[0] ^= 0xff;
	return r;
}
