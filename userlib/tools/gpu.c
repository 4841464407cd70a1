// SPDX-License-Identifier: MIT
/* A GPU through whatever libcuda.so.1 this machine has. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "../cuda/cuda.h"
#include "load.h"
#include "tool.h"

/* Of Peerlane's libcuda alone: libcuda-peerlane(7) */
CUresult plnMemCrc32c(CUdeviceptr p, size_t n, uint32_t *crc);

#define FUNCTIONS(X) \
	X(1, cuInit) \
	X(1, cuDeviceGetCount) \
	X(1, cuDeviceGet) \
	X(1, cuDevicePrimaryCtxRetain) \
	X(1, cuCtxSetCurrent) \
	X(1, cuMemAlloc_v2) \
	X(1, cuMemFree_v2) \
	X(1, cuMemsetD8_v2) \
	X(1, cuMemcpyHtoD_v2) \
	X(1, cuMemcpyDtoH_v2) \
	X(1, cuCtxSynchronize) \
	X(1, cuGetErrorName) \
	X(0, cuDeviceGetName) \
	X(0, cuDeviceGetPCIBusId) \
	X(0, cuStreamCreate) \
	X(0, cuStreamSynchronize) \
	X(0, cuMemcpyHtoDAsync_v2) \
	X(0, cuMemcpyDtoHAsync_v2) \
	X(0, cuMemHostRegister_v2) \
	X(0, cuMemAllocHost_v2) \
	X(0, cuMemGetAllocationGranularity) \
	X(0, cuMemCreate) \
	X(0, cuMemAddressReserve) \
	X(0, cuMemMap) \
	X(0, cuMemSetAccess) \
	X(0, plnMemCrc32c)

static struct {
#define X(required, name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} cu;

static CUcontext context;	/* of the GPU that is open */
static int device;

static const char *name_of(int r)
{
	const char *name = NULL;

	if (cu.cuGetErrorName)
		cu.cuGetErrorName(r, &name);
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
	static const struct load_function functions[] = {
#define X(required, name) { &cu.name, #name, NULL, required },
		FUNCTIONS(X)
#undef X
	};
	static bool loaded;
	char said[256];
	int r;

	if (loaded)
		return true;
	if (load_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL, functions,
			 LOAD_COUNT(functions), said, sizeof(said))) {
		snprintf(why, size, "no CUDA driver: %s.  Install the driver "
			 "of the GPU, or start Peerlane's guest", said);
		return false;
	}
	r = cu.cuInit(0);
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
	r = cu.cuDeviceGetCount(count);
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
	int count;

	if (!counted(&count))
		return false;
	if (ordinal < 0 || ordinal >= count) {
		complain("there is no GPU %d: this machine has %d, numbered "
			 "from 0", ordinal, count);
		return false;
	}
	return ok(cu.cuDeviceGet(&device, ordinal), "cuDeviceGet") &&
	       ok(cu.cuDevicePrimaryCtxRetain(&context, device),
		  "cuDevicePrimaryCtxRetain") &&
	       gpu_here();
}

bool gpu_here(void)
{
	return ok(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

bool gpu_stream(void **stream)
{
	CUstream s = NULL;

	if (!cu.cuStreamCreate || !cu.cuStreamSynchronize) {
		complain("libcuda.so.1 has no streams");
		return false;
	}
	if (!ok(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate"))
		return false;
	*stream = s;
	return true;
}

bool gpu_stream_wait(void *stream)
{
	return ok(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

bool gpu_emulated(void)
{
	/* its driver is there in emulated machines only */
	return !access("/sys/module/peerlane_gpu", F_OK);
}

bool gpu_at(const char *address, int *ordinal)
{
	char text[32];
	int count, dev, i;

	if (!counted(&count) || !cu.cuDeviceGetPCIBusId)
		return false;
	for (i = 0; i < count; i++) {
		if (cu.cuDeviceGet(&dev, i) ||
		    cu.cuDeviceGetPCIBusId(text, sizeof(text), dev) ||
		    strcasecmp(text, address))
			continue;
		*ordinal = i;
		return true;
	}
	return false;
}

/* As sysfs writes it */
bool gpu_address(int ordinal, char *address, size_t size)
{
	int dev;

	if (!cu.cuDeviceGetPCIBusId || cu.cuDeviceGet(&dev, ordinal) ||
	    cu.cuDeviceGetPCIBusId(address, (int)size, dev))
		return false;
	for (; *address; address++)
		if (*address >= 'A' && *address <= 'F')
			*address += 'a' - 'A';
	return true;
}

void gpu_name(int ordinal, char *name, size_t size)
{
	int dev;

	name[0] = 0;
	if (!cu.cuDeviceGetName || cu.cuDeviceGet(&dev, ordinal) ||
	    cu.cuDeviceGetName(name, (int)size, dev))
		name[0] = 0;
}

bool gpu_alloc(uint64_t size, uint64_t *ptr)
{
	CUdeviceptr p;

	if (!ok(cu.cuMemAlloc_v2(&p, size), "allocation of GPU memory"))
		return false;
	*ptr = p;
	return true;
}

void gpu_free(uint64_t ptr)
{
	ok(cu.cuMemFree_v2(ptr), "cuMemFree");
}

bool gpu_alloc_vmm(uint64_t size, uint64_t *ptr)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
		.allocFlags.gpuDirectRDMACapable = 1,
	};
	const CUmemAccessDesc access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;
	size_t unit;

	if (!cu.cuMemGetAllocationGranularity || !cu.cuMemCreate ||
	    !cu.cuMemAddressReserve || !cu.cuMemMap || !cu.cuMemSetAccess) {
		complain("libcuda.so.1 has no cuMemCreate, or lacks related "
		  "functions");
		return false;
	}
	if (!ok(cu.cuMemGetAllocationGranularity(&unit, &prop,
						 CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		"cuMemGetAllocationGranularity"))
		return false;
	size = (size + unit - 1) / unit * unit;
	if (!ok(cu.cuMemCreate(&handle, size, &prop, 0), "cuMemCreate") ||
	    !ok(cu.cuMemAddressReserve(&p, size, 0, 0, 0), "cuMemAddressReserve") ||
	    !ok(cu.cuMemMap(p, size, 0, handle, 0), "cuMemMap") ||
	    !ok(cu.cuMemSetAccess(p, size, &access, 1), "cuMemSetAccess"))
		return false;
	*ptr = p;
	return true;
}

bool gpu_alloc_pinned(uint64_t size, void **p)
{
	if (!cu.cuMemAllocHost_v2) {
		complain("libcuda.so.1 has no cuMemAllocHost");
		return false;
	}
	return ok(cu.cuMemAllocHost_v2(p, size), "cuMemAllocHost");
}

bool gpu_set(uint64_t ptr, unsigned char value, uint64_t n)
{
	return ok(cu.cuMemsetD8_v2(ptr, value, n), "cuMemsetD8") &&
	       ok(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

bool gpu_put(uint64_t ptr, const void *host, size_t n)
{
	return ok(cu.cuMemcpyHtoD_v2(ptr, host, n), "cuMemcpyHtoD");
}

bool gpu_get(void *host, uint64_t ptr, size_t n)
{
	return ok(cu.cuMemcpyDtoH_v2(host, ptr, n), "cuMemcpyDtoH");
}

bool gpu_pin(void *host, size_t n)
{
	if (!cu.cuMemHostRegister_v2) {
		complain("libcuda.so.1 page-locks no memory");
		return false;
	}
	return ok(cu.cuMemHostRegister_v2(host, n, 0), "cuMemHostRegister");
}

bool gpu_put_by(void *stream, uint64_t ptr, const void *host, size_t n)
{
	return cu.cuMemcpyHtoDAsync_v2 &&
	       ok(cu.cuMemcpyHtoDAsync_v2(ptr, host, n, stream),
		  "cuMemcpyHtoDAsync") && gpu_stream_wait(stream);
}

bool gpu_get_by(void *stream, void *host, uint64_t ptr, size_t n)
{
	return cu.cuMemcpyDtoHAsync_v2 &&
	       ok(cu.cuMemcpyDtoHAsync_v2(host, ptr, n, stream),
		  "cuMemcpyDtoHAsync") && gpu_stream_wait(stream);
}

bool gpu_crc32c(uint64_t ptr, uint64_t n, uint32_t *crc, const char **by)
{
	const size_t step = 4 << 20;
	bool good = true;
	char *buf;

	*by = "gpu";
	if (cu.plnMemCrc32c)
		return ok(cu.plnMemCrc32c(ptr, n, crc), "plnMemCrc32c");
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
