// SPDX-License-Identifier: MIT
/*
 * A drive writes a file into GPU memory, and the processor loads it from there, before
 * and after cuFlushGPUDirectRDMAWrites().
 *
 *	missing-flush FILE LABEL
 *
 * The read has no library between the program and the kernel, and no work is given to the
 * GPU meanwhile: each library may flush, and the driver does.
 */
#include <sys/mman.h>

#include "guest.h"

#define BLOCK	4096u
#define OPTIONS	117		/* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS */
#define ORDER	118		/* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING */

int cuDeviceGetAttribute(int *value, int attribute, int dev);
int cuMemGetHandleForAddressRange(void *handle, gpu_ptr ptr, size_t size, int type,
				  unsigned long long flags);
int cuFlushGPUDirectRDMAWrites(int target, int scope);

static void must(bool good, const char *what)
{
	if (good)
		return;
	ok(false, "%s (errno %d: %s)", what, errno, strerror(errno));
	exit(1);
}

/* How many blocks of @want do loads find at @ptr? */
static unsigned int seen(gpu_ptr ptr, const char *want, size_t size)
{
	const char *there = (const char *)(uintptr_t)ptr;
	unsigned int n = 0;

	for (size_t at = 0; at < size; at += BLOCK)
		n += !memcmp(there + at, want + at, BLOCK);
	return n;
}

int main(int argc, char **argv)
{
	struct json_object *facts = json_object_new_object();
	int options = -1, order = -1, dmabuf = -1, file;
	char *want, *window, byte;
	struct stat st;
	gpu_ptr ptr;
	size_t size;

	must(argc == 3, "usage: missing-flush FILE LABEL");
	/* Both reads leave the page cache alone */
	file = open(argv[1], O_RDONLY | O_DIRECT | O_CLOEXEC);
	must(file >= 0 && !fstat(file, &st), argv[1]);
	size = (size_t)st.st_size;
	must(size && size % BLOCK == 0, "whole blocks");
	want = aligned_alloc(BLOCK, size);
	must(want && pread(file, want, size, 0) == st.st_size, "the file's content");

	gpu_open();
	must(!cuDeviceGetAttribute(&options, OPTIONS, 0) &&
	     !cuDeviceGetAttribute(&order, ORDER, 0), "its attributes");
	must(!cuMemAlloc_v2(&ptr, size) && !cuMemsetD8_v2(ptr, 0, size) &&
	     !cuMemcpyDtoH_v2(&byte, ptr, 1), "GPU memory");
	must(!cuMemGetHandleForAddressRange(&dmabuf, ptr, size, 1, 0), "a dma-buf");
	window = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, dmabuf, 0);
	must(window != MAP_FAILED, "its mapping");

	is(pread(file, window, size, 0), st.st_size, "the drive has written the file into BAR1");
	json_set(facts, "ordering", order);
	json_set(facts, "options", options);
	json_set(facts, "blocks", size / BLOCK);
	json_set(facts, "seen_before", seen(ptr, want, size));
	is(cuFlushGPUDirectRDMAWrites(0, 100), 0, "cuFlushGPUDirectRDMAWrites()");
	json_set(facts, "seen_after", seen(ptr, want, size));
	tell_fact(argv[2], facts);

	munmap(window, size);
	close(dmabuf);
	must(!cuMemFree_v2(ptr), "the memory goes");
	free(want);
	close(file);
	return finish();
}
