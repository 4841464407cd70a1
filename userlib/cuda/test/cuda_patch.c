// SPDX-License-Identifier: MIT
/*
 * Functions of a libcuda.so.1 are replaced in memory and still called, the way UCX's
 * memory hooks do it: "bistro" in its sources.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cuda_abi.h"
#include "check.h"

#define NEAR	5	/* jmp rel32 */
#define FAR	12	/* mov imm64, %rax; jmp *%rax */

/* Those that UCX 1.22 replaces, of what there is here */
static const char *const replaced[] = {
	"cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocPitch_v2", "cuMemMap",
	"cuModuleGetGlobal_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
	"cuLibraryGetGlobal", "cuMemFree_v2", "cuMemFreeHost", "cuMemUnmap",
	"cuMemFreeAsync",
};

static void *lib;

/* Length of an instruction that UCX can move as it is; 0: it cannot */
static size_t movable(const uint8_t *code)
{
	size_t rex = (code[0] & 0xf0) == 0x40;
	const uint8_t *op = code + rex;

	if ((!rex || code[0] == 0x41) && (op[0] & 0xf0) == 0x50)
		return rex + 1;				/* push, pop */
	if (rex && code[0] == 0x48) {
		if (op[0] == 0x83 && op[1] == 0xec)
			return 4;			/* sub imm8, %rsp */
		if (op[0] == 0x81 && op[1] == 0xec)
			return 7;			/* sub imm32, %rsp */
		if (op[0] == 0x89 && op[1] == 0xe5)
			return 3;			/* mov %rsp, %rbp */
	}
	if (!rex && (op[0] & 0xf8) == 0xb8)
		return 5;				/* mov imm32, %reg */
	return 0;
}

/* Bytes of whole instructions at @code, at least @n; 0: not movable */
static size_t prologue(const uint8_t *code, size_t n)
{
	size_t len = 0, one;

	while (len < n) {
		one = movable(code + len);
		if (!one)
			return 0;
		len += one;
	}
	return len;
}

static void protect(void *at, size_t n, int prot)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)at & ~(page - 1);

	if (mprotect((void *)from, (uintptr_t)at + n - from, prot)) {
		perror("mprotect");
		exit(2);
	}
}

/* jmp *0(%rip) and the address: no register changes */
static void jump(uint8_t *at, const void *to)
{
	static const uint8_t code[6] = { 0xff, 0x25 };

	memcpy(at, code, sizeof(code));
	memcpy(at + sizeof(code), &to, sizeof(to));
}

/* Replace @function by @hook; what calls the original */
static void *replace(void *function, void *hook)
{
	uint8_t far[FAR] = { 0x48, 0xb8, [10] = 0xff, 0xe0 };
	uint8_t *moved = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t n = prologue(function, FAR);

	if (moved == MAP_FAILED || !n)
		return NULL;
	memcpy(moved, function, n);
	jump(moved + n, (uint8_t *)function + n);
	protect(moved, 4096, PROT_READ | PROT_EXEC);
	memcpy(far + 2, &hook, sizeof(hook));
	protect(function, FAR, PROT_READ | PROT_WRITE);
	memcpy(function, far, FAR);
	protect(function, FAR, PROT_READ | PROT_EXEC);
	return moved;
}

static __typeof__(&cuMemAlloc_v2) alloc;
static __typeof__(&cuMemFree_v2) free_;
static unsigned int allocs, frees;
static size_t bytes;

static CUresult hook_alloc(CUdeviceptr *ptr, size_t size)
{
	allocs++;
	bytes += size;
	return alloc(ptr, size);
}

static CUresult hook_free(CUdeviceptr ptr)
{
	frees++;
	return free_(ptr);
}

#define CALL(fn, ...)	((__typeof__(&fn))dlsym(lib, #fn))(__VA_ARGS__)

static void t_called(void)
{
	size_t size = 0;
	CUdeviceptr p = 0;
	CUcontext ctx;
	void *entry = NULL;
	CUdriverProcAddressQueryResult found;

	OK(CALL(cuInit, 0));
	OK(CALL(cuCtxCreate_v2, &ctx, 0, 0));
	alloc = replace(dlsym(lib, "cuMemAlloc_v2"), hook_alloc);
	free_ = replace(dlsym(lib, "cuMemFree_v2"), hook_free);
	CHECK(alloc && free_);
	if (!alloc || !free_)
		return;
	OK(CALL(cuMemAlloc_v2, &p, 12345));
	OK(CALL(cuMemGetAddressRange_v2, NULL, &size, p));
	CHECK(size == 12345);
	OK(CALL(cuMemFree_v2, p));
	CHECK(allocs == 1 && frees == 1 && bytes == 12345);
	/* what a runtime is given is the same entry */
	OK(CALL(cuGetProcAddress_v2, "cuMemFree", &entry, 13000, 0, &found));
	CHECK(entry == dlsym(lib, "cuMemFree_v2"));
	/* and an error comes back as it is */
	IS(CALL(cuMemFree_v2, p), CUDA_ERROR_INVALID_VALUE);
	CHECK(frees == 2);
}

int main(void)
{
	void *at;

	lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		printf("# %s\n", dlerror());
		return 2;
	}
#ifdef __x86_64__
	for (size_t i = 0; i < sizeof(replaced) / sizeof(*replaced); i++) {
		at = dlsym(lib, replaced[i]);
		ktap(at && prologue(at, NEAR) && prologue(at, FAR),
		     "%s can be replaced", replaced[i]);
	}
	TEST("the replacement is called, and the original", t_called());
#else
	ktap_skip("replacing functions", "not an x86-64");
#endif
	return ktap_end();
}
