/* SPDX-License-Identifier: MIT */
/*
 * What the programs for real GPUs share: both libraries are looked up at run
 * time, so the same program runs Peerlane's libcufile and NVIDIA's.
 */
#ifndef PEERLANE_TEST_GPU_H
#define PEERLANE_TEST_GPU_H

#include <dlfcn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define PEERLANE_CUFILE_WITHOUT_CUDA_H
#include "../cufile.h"
#include <peerlane/file.h>

typedef unsigned long long devptr;

#define CUDA(X) \
	X(cuInit, (unsigned int)) \
	X(cuDeviceGetCount, (int *)) \
	X(cuDeviceGet, (int *, int)) \
	X(cuDeviceGetName, (char *, int, int)) \
	X(cuDriverGetVersion, (int *)) \
	X(cuDevicePrimaryCtxRetain, (void **, int)) \
	X(cuCtxSetCurrent, (void *)) \
	X(cuMemAlloc_v2, (devptr *, size_t)) \
	X(cuMemFree_v2, (devptr)) \
	X(cuMemsetD8_v2, (devptr, unsigned char, size_t)) \
	X(cuCtxSynchronize, (void)) \
	X(cuMemAllocHost_v2, (void **, size_t)) \
	X(cuStreamCreate, (void **, unsigned int)) \
	X(cuStreamSynchronize, (void *)) \
	X(cuMemcpyHtoDAsync_v2, (devptr, const void *, size_t, void *)) \
	X(cuMemcpyDtoHAsync_v2, (void *, devptr, size_t, void *)) \
	X(cuMemcpyDtoH_v2, (void *, devptr, size_t)) \
	X(cuMemcpyHtoD_v2, (devptr, const void *, size_t))

#define CUFILE(X) \
	X(CUfileError_t, DriverOpen, (void)) \
	X(CUfileError_t, DriverClose_v2, (void)) \
	X(CUfileError_t, GetVersion, (int *)) \
	X(CUfileError_t, HandleRegister, (CUfileHandle_t *, CUfileDescr_t *)) \
	X(void, HandleDeregister, (CUfileHandle_t)) \
	X(CUfileError_t, BufRegister, (const void *, size_t, int)) \
	X(CUfileError_t, BufDeregister, (const void *)) \
	X(ssize_t, Read, (CUfileHandle_t, void *, size_t, off_t, off_t)) \
	X(ssize_t, Write, (CUfileHandle_t, const void *, size_t, off_t, off_t))

#define X(name, args) static int (*name) args;
CUDA(X)
#undef X
#define X(type, name, args) static type (*cf##name) args;
CUFILE(X)
#undef X
/* Peerlane's own; NULL in other libraries */
static int (*stats_fn)(void *, struct pln_file_stats *);

/* NULL, or what is missing. */
static inline const char *load_cuda(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int n = 0;

	if (!cuda)
		return "no libcuda.so.1 on this machine";
#define X(name, args) \
	*(void **)&name = dlsym(cuda, #name); \
	if (!name) \
		return "libcuda.so.1 has no " #name;
	CUDA(X)
#undef X
	if (cuInit(0) || cuDeviceGetCount(&n) || !n)
		return "no GPU that the driver can use";
	return NULL;
}

static inline const char *load_cufile(const char *lib)
{
	void *cufile = dlopen(lib, RTLD_NOW);

	if (!cufile)
		return dlerror();
#define X(type, name, args) \
	*(void **)&cf##name = dlsym(cufile, "cuFile" #name); \
	if (!cf##name) \
		return "the library has no cuFile" #name;
	CUFILE(X)
#undef X
	*(void **)&stats_fn = dlsym(cufile, "pln_file_stats");
	return NULL;
}

static inline CUfileHandle_t reg(int fd, int *err)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
			    .handle.fd = fd };
	CUfileHandle_t fh = NULL;

	*err = cfHandleRegister(&fh, &d).err;
	return fh;
}

static inline double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds of processor time of the whole process. */
static inline double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

#endif
