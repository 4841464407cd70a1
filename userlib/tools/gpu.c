// SPDX-License-Identifier: MIT
/* A GPU through whatever libcuda.so.1 this machine has. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "tool.h"

typedef unsigned long long devptr;

#define FUNCTIONS(X) \
	X(1, cuInit, (unsigned int)) \
	X(1, cuDeviceGetCount, (int *)) \
	X(1, cuDeviceGet, (int *, int)) \
	X(1, cuDevicePrimaryCtxRetain, (void **, int)) \
	X(1, cuCtxSetCurrent, (void *)) \
	X(1, cuMemAlloc_v2, (devptr *, size_t)) \
	X(1, cuMemFree_v2, (devptr)) \
	X(1, cuMemsetD8_v2, (devptr, unsigned char, size_t)) \
	X(1, cuMemcpyHtoD_v2, (devptr, const void *, size_t)) \
	X(1, cuMemcpyDtoH_v2, (void *, devptr, size_t)) \
	X(1, cuCtxSynchronize, (void)) \
	X(1, cuGetErrorName, (int, const char **)) \
	X(0, cuDeviceGetName, (char *, int, int)) \
	X(0, cuDeviceGetPCIBusId, (char *, int, int)) \
	X(0, plnMemCrc32c, (devptr, size_t, uint32_t *))

#define X(required, name, args) static int (*name) args;
FUNCTIONS(X)
#undef X

static const char *name_of(int r)
{
	const char *name = NULL;

	if (cuGetErrorName)
		cuGetErrorName(r, &name);
	return name ? name : "no name";
}

static bool ok(int r, const char *what)
{
	if (r)
		complain("%s failed: %s (%d)", what, name_of(r), r);
	return !r;
}

/* The driver, once; false: @why it cannot be used. */
static bool load(char *why, size_t size)
{
	static bool loaded;
	void *lib;
	int r;

	if (loaded)
		return true;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!lib) {
		snprintf(why, size, "no CUDA driver: %s.  Install the driver "
			 "of the GPU, or start Peerlane's guest", dlerror());
		return false;
	}
#define X(required, name, args) \
	*(void **)&name = dlsym(lib, #name); \
	if (required && !name) { \
		snprintf(why, size, "libcuda.so.1 has no " #name); \
		return false; \
	}
	FUNCTIONS(X)
#undef X
	r = cuInit(0);
	if (r)
		snprintf(why, size, "cuInit failed: %s (%d)", name_of(r), r);
	loaded = !r;
	return loaded;
}

bool gpu_count(int *count, char *why, size_t size)
{
	int r;

	*count = 0;
	if (!load(why, size))
		return false;
	r = cuDeviceGetCount(count);
	if (r)
		snprintf(why, size, "cuDeviceGetCount failed: %s (%d)",
			 name_of(r), r);
	return !r;
}

/* The same, for those who give up then */
static bool counted(int *count)
{
	char why[512];
	bool good = gpu_count(count, why, sizeof(why));

	if (!good)
		complain("%s", why);
	return good;
}

bool gpu_open(int ordinal)
{
	int count, dev;
	void *ctx;

	if (!counted(&count))
		return false;
	if (ordinal < 0 || ordinal >= count) {
		complain("there is no GPU %d: this machine has %d, numbered "
			 "from 0", ordinal, count);
		return false;
	}
	return ok(cuDeviceGet(&dev, ordinal), "cuDeviceGet") &&
	       ok(cuDevicePrimaryCtxRetain(&ctx, dev),
		  "cuDevicePrimaryCtxRetain") &&
	       ok(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
}

bool gpu_at(const char *address, int *ordinal)
{
	char text[32];
	int count, dev, i;

	if (!counted(&count) || !cuDeviceGetPCIBusId)
		return false;
	for (i = 0; i < count; i++) {
		if (cuDeviceGet(&dev, i) ||
		    cuDeviceGetPCIBusId(text, sizeof(text), dev) ||
		    strcasecmp(text, address))
			continue;
		*ordinal = i;
		return true;
	}
	return false;
}

bool gpu_address(int ordinal, char *address, size_t size)
{
	int dev;

	return cuDeviceGetPCIBusId && !cuDeviceGet(&dev, ordinal) &&
	       !cuDeviceGetPCIBusId(address, (int)size, dev);
}

void gpu_name(int ordinal, char *name, size_t size)
{
	int dev;

	name[0] = 0;
	if (!cuDeviceGetName || cuDeviceGet(&dev, ordinal) ||
	    cuDeviceGetName(name, (int)size, dev))
		name[0] = 0;
}

bool gpu_alloc(uint64_t size, uint64_t *ptr)
{
	devptr p;

	if (!ok(cuMemAlloc_v2(&p, size), "allocation of GPU memory"))
		return false;
	*ptr = p;
	return true;
}

void gpu_free(uint64_t ptr)
{
	ok(cuMemFree_v2(ptr), "cuMemFree");
}

bool gpu_set(uint64_t ptr, unsigned char value, uint64_t n)
{
	return ok(cuMemsetD8_v2(ptr, value, n), "cuMemsetD8") &&
	       ok(cuCtxSynchronize(), "cuCtxSynchronize");
}

bool gpu_put(uint64_t ptr, const void *host, size_t n)
{
	return ok(cuMemcpyHtoD_v2(ptr, host, n), "cuMemcpyHtoD");
}

bool gpu_get(void *host, uint64_t ptr, size_t n)
{
	return ok(cuMemcpyDtoH_v2(host, ptr, n), "cuMemcpyDtoH");
}

bool gpu_crc32c(uint64_t ptr, uint64_t n, uint32_t *crc, const char **by)
{
	const size_t step = 4 << 20;
	bool good = true;
	char *buf;

	*by = "gpu";
	if (plnMemCrc32c)
		return ok(plnMemCrc32c(ptr, n, crc), "plnMemCrc32c");
	*by = "cpu";
	buf = malloc(step);
	if (!buf) {
		complain("out of memory");
		return false;
	}
	for (*crc = 0; n && good; ) {
		size_t part = n < step ? (size_t)n : step;

		good = gpu_get(buf, ptr, part);
		if (good)
			*crc = crc32c_of(*crc, buf, part);
		ptr += part;
		n -= part;
	}
	free(buf);
	return good;
}
