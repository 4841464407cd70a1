// SPDX-License-Identifier: MIT
/*
 * Page-locked host memory, allocated or registered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#define HOST_PAGE	4096ull

static CUresult host_alloc(void **ptr, size_t size, unsigned int flags)
{
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);
	size_t all;
	void *p;

	if (err)
		return err;
	all = (size + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);
	if (!ptr || (flags & ~7u))
		err = CUDA_ERROR_INVALID_VALUE;
	else if (all < size)
		err = CUDA_ERROR_OUT_OF_MEMORY;
	if (!err && !size) {
		*ptr = NULL;		/* nothing, as NVIDIA's driver has it */
		drv_ctx_put(ctx);
		return CUDA_SUCCESS;
	}
	range = err ? NULL : calloc(1, sizeof(*range));
	if (!range) {
		drv_ctx_put(ctx);
		return err ? err : CUDA_ERROR_OUT_OF_MEMORY;
	}
	p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED) {
		free(range);
		drv_ctx_put(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->addr = (uintptr_t)p;
	range->size = size;
	range->map_size = all;
	range->kind = DRV_RANGE_HOST;
	range->ctx = ctx;
	range->dev = ctx->dev;
	range->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
	pthread_mutex_lock(&drv.lock);
	err = drv_range_add(range);
	pthread_mutex_unlock(&drv.lock);
	if (err) {
		munmap(p, all);
		free(range);
	} else {
		*ptr = p;
	}
	drv_ctx_put(ctx);
	return err;
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	return host_alloc(ptr, size, flags);
}

/* With unified addressing all host memory is portable and mapped */
CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	return host_alloc(ptr, size, CU_MEMHOSTALLOC_PORTABLE |
			  CU_MEMHOSTALLOC_DEVICEMAP);
}

DRV_PATCHABLE(cuMemFreeHost, void *ptr)
{
	CUresult err = drv_ctx_needed();

	return err ? err : drv_take_and_free((uintptr_t)ptr, DRV_KIND(HOST),
					     CUDA_ERROR_INVALID_VALUE);
}

static bool is_mapped(uintptr_t addr, size_t size)
{
	uintptr_t at = addr & ~(uintptr_t)(HOST_PAGE - 1);
	uintptr_t last = addr + (size - 1);
	unsigned char vec[1024];

	for (;;) {
		size_t n = last - at + 1;

		if (n > sizeof(vec) * HOST_PAGE)
			n = sizeof(vec) * HOST_PAGE;
		if (mincore((void *)at, n, vec))
			return false;
		if (last - at < n)
			return true;
		at += n;
	}
}

/*
 * Is all of it a mapping of a device, say of a NIC's doorbells?  The kernel says
 * so in the flags of each mapping: "io", "pf" for pages without a struct, or "mm"
 * for pages of a device that have one.
 */
static bool is_io(uintptr_t addr, size_t size)
{
	uintptr_t at = addr, last = addr + (size - 1);
	unsigned long start = 0, end = 0;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			continue;
		if (strncmp(line, "VmFlags:", 8) || at < start || at >= end)
			continue;
		if (!strstr(line, " io") && !strstr(line, " pf") &&
		    !strstr(line, " mm"))
			break;
		if (last < end) {
			fclose(f);
			return true;
		}
		at = end;
	}
	fclose(f);
	return false;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!ptr || !size || (flags & ~0xfu) ||
	    (uintptr_t)ptr + (size - 1) < (uintptr_t)ptr)
		err = CUDA_ERROR_INVALID_VALUE;
	else if (flags & CU_MEMHOSTREGISTER_IOMEMORY ?
		 !is_io((uintptr_t)ptr, size) :
		 !is_mapped((uintptr_t)ptr, size))
		err = CUDA_ERROR_INVALID_VALUE;
	range = err ? NULL : calloc(1, sizeof(*range));
	if (!range) {
		drv_ctx_put(ctx);
		return err ? err : CUDA_ERROR_OUT_OF_MEMORY;
	}
	range->addr = (uintptr_t)ptr;
	range->size = size;
	range->kind = DRV_RANGE_REGISTERED;
	range->ctx = ctx;
	range->dev = ctx->dev;
	range->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
	pthread_mutex_lock(&drv.lock);
	err = drv_range_add(range);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		free(range);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuMemHostUnregister(void *ptr)
{
	CUresult err = ptr ? drv_ctx_needed() : drv_ready();

	if (!err && !ptr)
		err = CUDA_ERROR_INVALID_VALUE;
	return err ? err :
	       drv_take_and_free((uintptr_t)ptr, DRV_KIND(REGISTERED),
				 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr,
				      unsigned int flags)
{
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!dptr || flags) {
		drv_ctx_put(ctx);
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find((uintptr_t)ptr, 1);
	if (range && !drv_on_device(range))
		*dptr = (uintptr_t)ptr;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	struct drv_range *range;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	range = drv_range_find((uintptr_t)ptr, 1);
	if (flags && range && !drv_on_device(range))
		*flags = range->flags;
	else
		err = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&drv.lock);
	drv_ctx_put(ctx);
	return err;
}

