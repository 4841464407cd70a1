// SPDX-License-Identifier: MIT
/*
 * A program on the CUDA runtime, in a guest: linked with our libcudart by its
 * name, on our libcuda and the emulated GPU.
 *
 *	cudart_guest_13 coherent|plain
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cudart_abi.h"
#include "../../cuda/test/check.h"

#define KiB	1024ul
#define MiB	(1024 * KiB)

static bool coherent;

#define KIND(n)		((enum cudaMemcpyKind)(n))
#define H2D		KIND(cudaMemcpyHostToDevice)
#define D2H		KIND(cudaMemcpyDeviceToHost)
#define ANY		KIND(cudaMemcpyDefault)

static void pattern(unsigned char *p, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
}

static void devices(void)
{
	struct cudaDeviceProp prop;
	int n = 0, device = 77, value = 0;
	char id[32];

	OK(cudaGetDeviceCount(&n));
	CHECK(n >= 1);
	OK(cudaGetDevice(&device));
	CHECK(device == 0);
	memset(&prop, 0x5a, sizeof(prop));
#if CUDART_MAJOR >= 13
	OK(cudaGetDeviceProperties(&prop, 0));
#else
	OK(cudaGetDeviceProperties_v2(&prop, 0));
#endif
	CHECK(!strcmp(prop.name, "Peerlane emulated GPU"));
	CHECK(prop.major[0] == 9 && prop.minor[0] == 0);
	CHECK(prop.warpSize[0] == 32 && prop.unifiedAddressing[0] == 1);
	CHECK(prop.managedMemory[0] == coherent);
	OK(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
	CHECK((unsigned int)prop.pciBusID[0] ==
	      strtoul(id + 5, NULL, 16));
	OK(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)33, 0));
	CHECK(value == prop.pciBusID[0]);
	IS(cudaSetDevice(n), cudaErrorInvalidDevice);
	IS(cudaGetLastError(), cudaErrorInvalidDevice);
	OK(cudaGetLastError());
	OK(cudaRuntimeGetVersion(&value));
	CHECK(value / 1000 == CUDART_MAJOR);
}

static void copies(void)
{
	static unsigned char in[3 * 1024 * 1024 + 17], out[sizeof(in)];
	unsigned char *d, *e;
	cudaStream_t s;
	cudaEvent_t a, b;
	float ms = -1;
	void *p;

	pattern(in, sizeof(in), 1);
	OK(cudaMalloc(&p, sizeof(in)));
	d = p;
	OK(cudaMalloc(&p, sizeof(in)));
	e = p;
	OK(cudaMemcpy(d, in, sizeof(in), H2D));
	OK(cudaMemcpy(e, d, sizeof(in), KIND(cudaMemcpyDeviceToDevice)));
	OK(cudaMemcpy(out, e, sizeof(in), ANY));
	CHECK(!memcmp(in, out, sizeof(in)));
	/* With a stream, events, page-locked memory */
	OK(cudaHostRegister(out, sizeof(out), 0));
	OK(cudaStreamCreateWithFlags(&s, 1));
	OK(cudaEventCreate(&a));
	OK(cudaEventCreate(&b));
	OK(cudaEventRecord(a, s));
	OK(cudaMemsetAsync(d, 0x42, 100, s));
	OK(cudaMemcpyAsync(out, d, sizeof(out), D2H, s));
	OK(cudaEventRecord(b, s));
	OK(cudaEventSynchronize(b));
	CHECK(out[0] == 0x42 && out[99] == 0x42 &&
	      !memcmp(in + 100, out + 100, sizeof(in) - 100));
	OK(cudaEventElapsedTime(&ms, a, b));
	CHECK(ms >= 0);
	OK(cudaHostUnregister(out));
	/* Two dimensions */
	OK(cudaMemset2D(d, 256, 7, 16, 8));
	OK(cudaMemcpy2D(out, 16, d, 256, 16, 8, D2H));
	for (int i = 0; i < 16 * 8; i++)
		CHECK(out[i] == 7);
	/* In the thread's own default stream */
	OK(cudaMemsetAsync_ptsz(d, 9, 64, NULL));
	OK(cudaStreamSynchronize_ptsz(NULL));
	OK(cudaMemcpy_ptds(out, d, 64, D2H));
	CHECK(out[0] == 9 && out[63] == 9);
	IS(cudaMemcpy(out, d, 1, KIND(5)), cudaErrorInvalidMemcpyDirection);
	IS(cudaMemcpy(d, in, 64 * MiB, H2D), cudaErrorInvalidValue);
	OK(cudaStreamDestroy(s));
	OK(cudaEventDestroy(a));
	OK(cudaEventDestroy(b));
	OK(cudaFree(d));
	OK(cudaFree(e));
	IS(cudaFree(e), cudaErrorInvalidValue);
	(void)cudaGetLastError();
}

static void pools(void)
{
	unsigned char out[1000];
	uint64_t used = 77;
	cudaMemPool_t pool;
	cudaStream_t s;
	void *p;

	OK(cudaStreamCreate(&s));
	OK(cudaMallocAsync(&p, sizeof(out), s));
	OK(cudaMemsetAsync(p, 0x33, sizeof(out), s));
	OK(cudaMemcpyAsync(out, p, sizeof(out), D2H, s));
	OK(cudaFreeAsync(p, s));
	OK(cudaStreamSynchronize(s));
	CHECK(out[0] == 0x33 && out[999] == 0x33);
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)7, &used));
	CHECK(used == 0);
	OK(cudaStreamDestroy(s));
}

static sigjmp_buf fault;

static void on_fault(int signal_number)
{
	siglongjmp(fault, signal_number);
}

/* With a window the CPU reaches memory of the GPU; without one it faults */
static void cpu_access(void)
{
	struct sigaction act = { .sa_handler = on_fault }, before;
	volatile unsigned char *cpu, seen = 0;
	unsigned char b = 0;
	volatile int got;
	void *p;

	OK(cudaMalloc(&p, 4096));
	OK(cudaMemset(p, 0x61, 4096));
	cpu = p;
	sigaction(SIGSEGV, &act, &before);
	got = sigsetjmp(fault, 1);
	if (!got) {
		seen = cpu[100];
		cpu[101] = 0x62;
	}
	sigaction(SIGSEGV, &before, NULL);
	if (coherent) {
		CHECK(!got && seen == 0x61);
		OK(cudaMemcpy(&b, (char *)p + 101, 1, D2H));
		CHECK(b == 0x62);
	} else {
		CHECK(got == SIGSEGV);
		OK(cudaMemcpy(&b, (char *)p + 101, 1, D2H));
		CHECK(b == 0x61);
	}
	OK(cudaFree(p));
}

static void managed(void)
{
	struct cudaPointerAttributes attrs;
	unsigned char *m, b;
	void *p = NULL;

	if (!coherent) {
		IS(cudaMallocManaged(&p, 100, 1), cudaErrorNotSupported);
		IS(cudaGetLastError(), cudaErrorNotSupported);
		return;
	}
	OK(cudaMallocManaged(&p, 100000, 1));
	m = p;
	pattern(m, 100000, 5);
	OK(cudaMemcpy(&b, m + 77777, 1, ANY));
	CHECK(b == m[77777]);
	OK(cudaMemset(m, 1, 100000));
	CHECK(m[0] == 1 && m[99999] == 1);
	OK(cudaPointerGetAttributes(&attrs, m + 5));
	CHECK((int)attrs.type == cudaMemoryTypeManaged);
	OK(cudaFree(p));
}

/* The driver's functions, by way of the runtime: export as a dma-buf */
static void driver(void)
{
	int (*export_range)(void *, unsigned long long, size_t, unsigned int,
			    unsigned long long);
	unsigned int status = 77;
	unsigned char *map;
	void *fn, *p;
	int fd = -1;

	OK(cudaGetDriverEntryPoint("cuMemGetHandleForAddressRange", &fn, 0,
				   (void *)&status));
	CHECK(status == cudaDriverEntryPointSuccess && fn);
	if (!fn)
		return;
	memcpy(&export_range, &fn, sizeof(fn));
	OK(cudaMalloc(&p, 2 * MiB));
	OK(cudaMemset(p, 0x55, 2 * MiB));
	CHECK(!export_range(&fd, (uintptr_t)p, 2 * MiB, 1, 0));
	map = mmap(NULL, 2 * MiB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && map[12345] == 0x55);
	if (map != MAP_FAILED) {
		/*
		 * The mapping is of a device: registered as IO memory, it can
		 * be copied from and to as another device's memory is.
		 */
		unsigned char b[2] = { 0 };
		void *q;

		IS(cudaHostRegister(b, 2, 4), cudaErrorInvalidValue);
		OK(cudaHostRegister(map, 2 * MiB, 4));
		OK(cudaMalloc(&q, 2 * MiB));
		OK(cudaMemset(q, 0x44, 2 * MiB));
		OK(cudaMemcpy(q, map, 1 * MiB + 3, ANY));
		OK(cudaMemcpy(b, (char *)q + MiB + 2, 2, D2H));
		CHECK(b[0] == 0x55 && b[1] == 0x44);
		OK(cudaMemset(q, 0x66, 2 * MiB));
		OK(cudaMemcpy(map + 5, (char *)q + 5, MiB, ANY));
		OK(cudaMemcpy(b, (char *)p + 4, 2, D2H));
		CHECK(b[0] == 0x55 && b[1] == 0x66);
		OK(cudaFree(q));
		OK(cudaHostUnregister(map));
		munmap(map, 2 * MiB);
	}
	close(fd);
	OK(cudaFree(p));
}

/* Device code as the compiler hands it over; the kernel is not run */
static void launch(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_50\n"
				  ".visible .entry double_all()\n{\nret;\n}\n";
	static const struct {
		int magic, version;
		const void *image;
		void *more;
	} wrapper = { 0x466243b1, 1, ptx, NULL };
	static char stub, other;
	int pair[2], saved = dup(2);
	dim3 one = { 1, 1, 1 };
	char said[500] = "";
	const char *name = NULL;
	void **handle;

	handle = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
	__cudaRegisterFunction(handle, &stub, &stub, "double_all", -1, NULL,
			       NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	CHECK(!pipe(pair));
	dup2(pair[1], 2);
	IS(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL),
	   cudaErrorNotSupported);
	dup2(saved, 2);
	close(pair[1]);
	CHECK(read(pair[0], said, sizeof(said) - 1) > 0);
	CHECK(strstr(said, "double_all"));
	close(pair[0]);
	close(saved);
	IS(cudaGetLastError(), cudaErrorNotSupported);
	OK(cudaFuncGetName(&name, &stub));
	CHECK(name && !strcmp(name, "double_all"));
	CHECK(cudaLaunchKernel(&other, one, one, NULL, 0, NULL));
	(void)cudaGetLastError();
	__cudaUnregisterFatBinary(handle);
	CHECK(cudaLaunchKernel(&stub, one, one, NULL, 0, NULL));
	(void)cudaGetLastError();
}

static void *other_thread(void *p)
{
	unsigned char b = 0;

	/* Its own last error, the same device and its memory */
	OK(cudaGetLastError());
	OK(cudaMemcpy(&b, p, 1, D2H));
	CHECK(b == 0x21);
	IS(cudaSetDevice(77), cudaErrorInvalidDevice);
	return NULL;
}

static void threads_and_reset(void)
{
	pthread_t thread;
	void *p;

	OK(cudaMalloc(&p, 100));
	OK(cudaMemset(p, 0x21, 100));
	CHECK(!pthread_create(&thread, NULL, other_thread, p));
	pthread_join(thread, NULL);
	OK(cudaGetLastError());
	OK(cudaDeviceReset());
	IS(cudaFree(p), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	OK(cudaMalloc(&p, 100));
	OK(cudaMemset(p, 1, 100));
	OK(cudaFree(p));
}

static const struct {
	const char *name;
	void (*fn)(void);
} parts[] = {
	{ "devices", devices },
	{ "copies, streams, events", copies },
	{ "memory in the order of a stream", pools },
	{ "the CPU on memory of the GPU", cpu_access },
	{ "managed memory", managed },
	{ "the driver's functions, and IO memory", driver },
	{ "a launch is refused by name", launch },
	{ "threads, and a reset", threads_and_reset },
};

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s coherent|plain\n", argv[0]);
		return 2;
	}
	coherent = !strcmp(argv[1], "coherent");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		failed = false;
		parts[i].fn();
		ktap(!failed, "runtime %d: %s", CUDART_MAJOR, parts[i].name);
	}
	return ktap_end();
}
