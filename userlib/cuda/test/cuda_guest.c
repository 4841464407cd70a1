// SPDX-License-Identifier: MIT
/*
 * The library on the real driver and the emulated GPU, in a guest.
 *
 *	cuda_guest coherent|plain GPUS
 *
 * Linked against libcuda.so.1 as any program is.  Standard input and output
 * are the result port: "@host ..." asks the host for a fault.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_guest.h"
#include "peerlane/cuda_ext.h"

static bool coherent;
static int gpus;

static uint32_t crc32c(const unsigned char *p, size_t n)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;

	if (!table[1]) {
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int k = 0; k < 8; k++)
				table[i] = table[i] >> 1 ^
					   (table[i] & 1 ? 0x82f63b78 : 0);
		}
	}
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

void pattern(unsigned char *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (unsigned char)(seed >> 24);
	}
}

/* Ask the host; false when it says error */
bool host(const char *command)
{
	char reply[256] = "";

	printf("@host %s\n", command);
	fflush(stdout);
	return fgets(reply, sizeof(reply), stdin) && strncmp(reply, "error", 5);
}

static void device(void)
{
	char name[64], bus[32];
	CUdevice d, back;
	int n, v;
	size_t size;
	FILE *f;
	char path[128];
	CUuuid u[2];

	OK(cuDeviceGetCount(&n));
	CHECK(n == gpus);
	for (int i = 0; i < n; i++) {
		OK(cuDeviceGet(&d, i));
		OK(cuDeviceGetName(name, sizeof(name), d));
		OK(cuDeviceTotalMem_v2(&size, d));
		CHECK(size >= 64 * MiB);
		OK(cuDeviceGetPCIBusId(bus, sizeof(bus), d));
		OK(cuDeviceGetByPCIBusId(&back, bus));
		CHECK(back == d);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/class",
			 bus);
		f = fopen(path, "r");
		CHECK(f && fscanf(f, "%x", (unsigned int *)&v) == 1);
		CHECK(v >> 8 == 0x0302);
		if (f)
			fclose(f);
		OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, d));
		CHECK(v == 1);
		OK(cuDeviceGetUuid_v2(&u[i & 1], d));
		printf("# %s at %s, %zu MiB\n", name, bus, size / MiB);
	}
	if (n > 1)
		CHECK(memcmp(&u[0], &u[1], sizeof(u[0])));
}

static void memory(void)
{
	size_t before, after, total;
	CUdeviceptr p[40], q;
	unsigned char byte;

	OK(cuMemGetInfo_v2(&before, &total));
	for (size_t i = 0; i < 40; i++) {
		OK(cuMemAlloc_v2(&p[i], i % 8 ? 100 + i * 1111 : 3 * MiB + i));
		OK(cuMemcpyDtoH_v2(&byte, p[i], 1));
		CHECK(byte == 0);
		OK(cuMemsetD8_v2(p[i], (unsigned char)i, 100 + i));
	}
	OK(cuMemGetInfo_v2(&after, &total));
	CHECK(before - after >= 15 * MiB && before - after < 40 * MiB);
	for (size_t i = 0; i < 40; i++) {
		OK(cuMemcpyDtoH_v2(&byte, p[i] + 99 + i, 1));
		CHECK(byte == (unsigned char)i);
		OK(cuMemFree_v2(p[i]));
	}
	OK(cuMemGetInfo_v2(&after, &total));
	CHECK(after == before);
	OK(cuMemAlloc_v2(&p[1], MiB));
	IS(cuMemAlloc_v2(&q, total), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(p[1]));
	OK(cuMemAlloc_v2(&q, total));
	OK(cuMemFree_v2(q));
	IS(cuMemFree_v2(p[0]), CUDA_ERROR_INVALID_VALUE);
}

/* What was there before must not be seen by the next owner */
static void zeroed(void)
{
	CUdeviceptr p;
	uint32_t crc, want;
	unsigned char *zero = calloc(1, 8 * MiB);

	OK(cuMemAlloc_v2(&p, 8 * MiB));
	OK(cuMemsetD8_v2(p, 0xee, 8 * MiB));
	OK(cuMemFree_v2(p));
	OK(cuMemAlloc_v2(&p, 8 * MiB));
	OK(plnMemCrc32c(p, 8 * MiB, &crc));
	want = crc32c(zero, 8 * MiB);
	CHECK(crc == want);
	OK(cuMemFree_v2(p));
	free(zero);
}

static void copies(void)
{
	static const size_t sizes[] = { 1, 3, 4095, 4096, 4097, 65537,
					1 * MiB + 13, 20 * MiB };
	size_t max = 20 * MiB + 64;
	unsigned char *in = malloc(max), *out = malloc(max);
	CUdeviceptr a, b;
	uint32_t crc;

	pattern(in, max, 1);
	OK(cuMemAlloc_v2(&a, max));
	OK(cuMemAlloc_v2(&b, max));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i], skew = i * 5 % 17;

		memset(out, 0, n + 2);
		OK(cuMemcpyHtoD_v2(a + skew, in + skew, n));
		OK(cuMemcpyDtoD_v2(b + i, a + skew, n));
		OK(cuMemcpyDtoH_v2(out + 1, b + i, n));
		CHECK(!memcmp(out + 1, in + skew, n));
		CHECK(!out[0] && !out[n + 1]);
		OK(plnMemCrc32c(b + i, n, &crc));
		CHECK(crc == crc32c(in + skew, n));
	}
	/* Read-only memory of the program as the source */
	OK(cuMemcpyHtoD_v2(a, sizes, sizeof(sizes)));
	OK(cuMemcpy((uintptr_t)out, a, sizeof(sizes)));
	CHECK(!memcmp(out, sizes, sizeof(sizes)));
	IS(cuMemcpyHtoD_v2(a, (void *)4096, 10), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemcpyDtoH_v2((void *)(uintptr_t)sizes, a, 8),
	   CUDA_ERROR_INVALID_VALUE);	/* read-only */
	OK(cuMemcpyHtoD_v2(a, in, 16));
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
	free(in);
	free(out);
}

static void fills_and_sums(void)
{
	int v[5] = { 1, 2, 3, 4, 0x7fffffff };
	float f[5] = { 0.5f, -1, 3, 4, 1e20f };
	unsigned char b[16];
	CUdeviceptr p, q;
	uint64_t diff;
	uint32_t crc;

	OK(cuMemAlloc_v2(&p, 4 * MiB));
	OK(cuMemAlloc_v2(&q, 4 * MiB));
	OK(cuMemsetD8_v2(p + 1, 0xaa, 3));
	OK(cuMemsetD16_v2(p + 6, 0x1234, 2));
	OK(cuMemsetD32_v2(p + 12, 0x89abcdef, 1));
	OK(cuMemcpyDtoH_v2(b, p, 16));
	CHECK(!memcmp(b, "\0\xaa\xaa\xaa\0\0\x34\x12\x34\x12\0\0\xef\xcd\xab\x89", 16));
	OK(cuMemcpyHtoD_v2(p, "123456789", 9));
	OK(plnMemCrc32c(p, 9, &crc));
	CHECK(crc == 0xe3069283);
	OK(cuMemcpyDtoD_v2(q, p, 4 * MiB));
	OK(plnMemCompare(p, q, 4 * MiB, &diff));
	CHECK(diff == PLN_COMPARE_SAME);
	OK(cuMemsetD8_v2(q + 3 * MiB + 5, 1, 1));
	OK(plnMemCompare(p, q, 4 * MiB, &diff));
	CHECK(diff == 3 * MiB + 5);
	OK(cuMemcpyHtoD_v2(p, v, sizeof(v)));
	OK(plnMemAdd(p, p, sizeof(v), PLN_DTYPE_INT32));
	OK(cuMemcpyDtoH_v2(v, p, sizeof(v)));
	CHECK(v[0] == 2 && v[3] == 8 && v[4] == -2);
	OK(cuMemcpyHtoD_v2(p, f, sizeof(f)));
	OK(cuMemcpyHtoD_v2(q, f, sizeof(f)));
	OK(plnMemAdd(p, q, sizeof(f), PLN_DTYPE_FLOAT32));
	OK(cuMemcpyDtoH_v2(f, p, sizeof(f)));
	CHECK(f[0] == 1.0f && f[1] == -2.0f && f[4] == 2e20f);
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
}

static void streams(void)
{
	enum { N = 8, SIZE = 1 << 20 };
	unsigned char *pinned, *back;
	CUdeviceptr d[N];
	CUevent e[N], first;
	CUstream s[N];
	void *mem;
	float ms;

	OK(cuMemAllocHost_v2(&mem, 2 * N * SIZE));
	pinned = mem;
	back = pinned + N * SIZE;
	pattern(pinned, N * SIZE, 9);
	OK(cuEventCreate(&first, 0));
	OK(cuEventRecord(first, NULL));
	for (int i = 0; i < N; i++) {
		OK(cuStreamCreate(&s[i], i & 1));
		OK(cuEventCreate(&e[i], 0));
		OK(cuMemAlloc_v2(&d[i], SIZE));
		OK(cuMemcpyHtoDAsync_v2(d[i], pinned + i * SIZE, SIZE, s[i]));
		OK(cuEventRecord(e[i], s[i]));
	}
	/* Each stream reads what another one has written */
	for (int i = 0; i < N; i++) {
		OK(cuStreamWaitEvent(s[i], e[(i + 1) % N], 0));
		OK(cuMemcpyDtoHAsync_v2(back + i * SIZE, d[(i + 1) % N], SIZE,
					s[i]));
	}
	OK(cuCtxSynchronize());
	for (int i = 0; i < N; i++) {
		CHECK(!memcmp(back + i * SIZE, pinned + (i + 1) % N * SIZE,
			      SIZE));
		OK(cuStreamQuery(s[i]));
		OK(cuEventQuery(e[i]));
		OK(cuEventElapsedTime(&ms, first, e[i]));
		CHECK(ms > 0 && ms < 60000);
	}
	/* Many small jobs, in order */
	for (int i = 0; i < 3000; i++)
		OK(cuMemsetD8Async(d[0], (unsigned char)i, 1, s[i % 2 * 2]));
	OK(cuMemcpyDtoHAsync_v2(back, d[0], 1, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(back[0] == (unsigned char)2999);
	for (int i = 0; i < N; i++) {
		OK(cuStreamDestroy_v2(s[i]));
		OK(cuEventDestroy_v2(e[i]));
		OK(cuMemFree_v2(d[i]));
	}
	OK(cuEventDestroy_v2(first));
	OK(cuMemFreeHost(mem));
}
static sigjmp_buf fault;

static void on_fault(int signal_number)
{
	siglongjmp(fault, signal_number);
}

/* Does the CPU of this process reach @cpu?  What it wrote is at @cpu[1]. */
static bool cpu_reaches(volatile unsigned char *cpu, unsigned char want)
{
	struct sigaction act = { .sa_handler = on_fault }, before;
	volatile bool reached = false;

	sigaction(SIGSEGV, &act, &before);
	if (!sigsetjmp(fault, 1)) {
		reached = cpu[0] == want;
		cpu[1] = 0x24;
	}
	sigaction(SIGSEGV, &before, NULL);
	return reached;
}


static void cpu_access(void)
{
	volatile unsigned char *cpu;
	unsigned char seen = 0;
	CUdeviceptr p;
	int status;
	pid_t pid;

	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemsetD8_v2(p, 0x42, 2 * MiB));
	cpu = (volatile unsigned char *)(uintptr_t)p;
	CHECK(cpu_reaches(cpu, 0x42) == coherent);
	OK(cuMemcpyDtoH_v2(&seen, p + 1, 1));
	CHECK(seen == (coherent ? 0x24 : 0x42));
	if (coherent) {
		unsigned char b;

		CHECK(cpu[0] == 0x42 && cpu[2 * MiB - 1] == 0x42);
		cpu[1000] = 7;
		OK(cuMemcpyDtoH_v2(&b, p + 1000, 1));
		CHECK(b == 7);
	}
	fflush(stdout);
	/* Without a window nobody reads it; a child never does */
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		_exit(cpu[0]);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	OK(cuMemFree_v2(p));
}

/* Memory in the order of streams, behind the CPU's back */
static void pools(void)
{
	enum { N = 64, SIZE = 200000 };
	size_t before, after, total;
	unsigned char *out;
	CUdeviceptr p;
	CUstream s[4];
	void *mem;

	OK(cuMemAllocHost_v2(&mem, N * 4));
	out = mem;
	OK(cuMemGetInfo_v2(&before, &total));
	for (int i = 0; i < 4; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	/* Each stream's memory is soon another one's; no bytes get mixed up */
	for (int i = 0; i < N; i++) {
		CUstream t = s[i * 7 % 4];

		OK(cuMemAllocAsync(&p, SIZE + (size_t)i, t));
		OK(cuMemsetD8Async(p, (unsigned char)(i + 1), SIZE, t));
		OK(cuMemcpyDtoHAsync_v2(out + i * 4, p + SIZE - 4, 4, t));
		OK(cuMemFreeAsync(p, t));
	}
	OK(cuCtxSynchronize());
	for (int i = 0; i < N; i++)
		CHECK(out[i * 4] == i + 1 && out[i * 4 + 3] == i + 1);
	for (int i = 0; i < 4; i++)
		OK(cuStreamDestroy_v2(s[i]));
	OK(cuMemGetInfo_v2(&after, &total));
	CHECK(after == before);
	OK(cuMemFreeHost(mem));
}

static CUcontext shared;

static void *worker(void *arg)
{
	uint32_t seed = (uint32_t)(uintptr_t)arg;
	unsigned char in[70000], out[70000];
	CUdeviceptr p;
	CUstream s;

	OK(cuCtxSetCurrent(shared));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < 40; i++) {
		size_t n = 1 + (seed * 7919 + i * 104729) % sizeof(in);
		uint32_t crc;

		pattern(in, n, seed + i);
		OK(cuMemAlloc_v2(&p, n));
		OK(cuMemcpyHtoDAsync_v2(p, in, n, s));
		OK(cuStreamSynchronize(s));
		OK(plnMemCrc32c(p, n, &crc));
		CHECK(crc == crc32c(in, n));
		OK(cuMemcpyDtoHAsync_v2(out, p, n, s));
		CHECK(!memcmp(in, out, n));
		OK(cuMemFree_v2(p));
	}
	OK(cuStreamDestroy_v2(s));
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];
	int made = 0;

	OK(cuCtxGetCurrent(&shared));
	for (uintptr_t i = 0; i < 4; i++)
		made += !pthread_create(&t[i], NULL, worker, (void *)i);
	CHECK(made == 4);
	for (int i = 0; i < made; i++)
		pthread_join(t[i], NULL);
}

static void two_gpus(CUcontext first)
{
	size_t n = 3 * MiB + 5;
	unsigned char *in = malloc(n), *out = malloc(n);
	CUcontext second;
	CUdeviceptr a, b;
	int ordinal;

	pattern(in, n, 5);
	OK(cuMemAlloc_v2(&a, n));
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemAlloc_v2(&b, n));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
	CHECK(ordinal == 1);
	OK(cuMemcpyHtoD_v2(a, in, n));
	OK(cuMemcpyPeer(b, second, a, first, n));
	OK(cuMemcpyDtoH_v2(out, b, n));
	CHECK(!memcmp(in, out, n));
	OK(cuMemsetD8_v2(b, 1, n));
	OK(cuMemcpy(a, b, n));
	OK(cuMemcpyDtoH_v2(out, a, n));
	CHECK(out[0] == 1 && out[n - 1] == 1);
	OK(cuCtxDestroy_v2(second));
	OK(cuMemFree_v2(a));
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	CUcontext ctx;

	if (argc == 2 && !strcmp(argv[1], "busy"))
		return busy();
	if (argc == 2 && !strcmp(argv[1], "held"))
		return held();
	if (argc != 3) {
		fprintf(stderr, "usage: cuda_guest coherent|plain GPUS\n");
		return 2;
	}
	alarm(120);
	coherent = !strcmp(argv[1], "coherent");
	gpus = atoi(argv[2]);
	TEST("cuInit", OK(cuInit(0)));
	TEST("devices", device());
	TEST("a context", OK(cuCtxCreate_v2(&ctx, 0, 0)));
	if (ktap_bad)
		return ktap_end();
	TEST("memory is given and taken", memory());
	TEST("memory comes zeroed", zeroed());
	TEST("copies of all shapes", copies());
	TEST("fills, compares and sums", fills_and_sums());
	TEST("streams and events", streams());
	TEST("the CPU and device memory", cpu_access());
	TEST("dma-buf shows the same bytes", dmabuf());
	TEST("dma-buf ends with the memory", dmabuf_revoked());
	TEST("dma-buf of several mappings", dmabuf_of_parts());
	TEST("memory in the order of streams", pools());
	TEST("threads", threads());
	TEST("fork", after_fork());
	TEST("a process killed at work leaves nothing", killed(argv[0]));
	if (gpus > 1)
		TEST("two GPUs", two_gpus(ctx));
	else
		ktap_skip("two GPUs", "one GPU in this machine");
	TEST("events have the engine's time, not that of a program held up", held_up(argv[0]));
	TEST("an engine error is told and survived", engine_error());
	TEST("an engine error in an allocation", engine_error_in_alloc());
	TEST("a lost interrupt is survived", lost_interrupt());
	TEST("a job that never ends is given up", stuck());
	TEST("the context can be destroyed", OK(cuCtxDestroy_v2(ctx)));
	TEST("a reset ends a context, not the program", reset_gpu());
	TEST("a reset in the middle of work", reset_at_work());
	return ktap_end();
}
