// SPDX-License-Identifier: MIT
/*
 * cuda_guest: processes that fork or are killed, engines that fail or hang, and
 * GPUs that are reset.
 */
#include <fcntl.h>
#include <signal.h>
#include <linux/peerlane_gpu.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_guest.h"

/* ---- processes ---- */

void after_fork(void)
{
	CUdeviceptr p;
	int status, n;
	pid_t pid;
	unsigned char b = 0;

	OK(cuMemAlloc_v2(&p, MiB));
	OK(cuMemsetD8_v2(p, 5, MiB));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		bool good = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
			    cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED &&
			    cuMemFree_v2(p) == CUDA_ERROR_NOT_INITIALIZED;

		exit(good ? 0 : 1);	/* exit handlers too */
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	OK(cuMemcpyDtoH_v2(&b, p + MiB - 1, 1));
	CHECK(b == 5);
	OK(cuMemFree_v2(p));
}

static size_t free_memory(void)
{
	size_t n = 0, total;

	OK(cuMemGetInfo_v2(&n, &total));
	return n;
}

/* Another process is killed in the middle of its work */
void killed(const char *self)
{
	size_t before = free_memory(), after = 0;
	struct timespec nap = { 0, 10000000 };
	int pipe_fd[2], status;
	char go = 0;
	pid_t pid;

	CHECK(!pipe(pipe_fd));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(pipe_fd[1], 1);
		execl(self, self, "busy", (char *)NULL);
		_exit(127);
	}
	close(pipe_fd[1]);
	CHECK(read(pipe_fd[0], &go, 1) == 1 && go == '!');
	CHECK(free_memory() < before);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(pipe_fd[0]);
	/* The driver gives it back when no DMA can reach it: soon */
	for (int i = 0; i < 500; i++) {
		after = free_memory();
		if (after == before)
			break;
		nanosleep(&nap, NULL);
	}
	CHECK(after == before);
}

int busy(void)
{
	CUdeviceptr p, q;
	CUcontext ctx;

	if (cuInit(0) || cuCtxCreate_v2(&ctx, 0, 0) ||
	    cuMemAlloc_v2(&p, 32 * MiB) || cuMemAlloc_v2(&q, 32 * MiB))
		return 1;
	for (int i = 0;; i++) {
		if (cuMemcpyDtoDAsync_v2(p, q, 32 * MiB, NULL))
			return 1;
		if (i == 3 && write(1, "!", 1) != 1)
			return 1;
	}
}

/* The GPU's clock */
static uint64_t gpu_time(void)
{
	struct pln_gpu_query q = { 0 };
	int fd = open("/dev/peerlane-gpu0", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0 && !ioctl(fd, PLN_GPU_IOC_QUERY, &q));
	CHECK(q.features & PLN_GPU_FEAT_TIME);
	close(fd);
	return q.time_ns;
}

/*
 * Another process is stopped while the engine is at its work, and is let go when that
 * has ended long ago.  Between its two events lies what it did before it was stopped, and
 * the engine's work: no more than from @start to @end, no less than from @asked to @let.
 */
void held_up(const char *self)
{
	struct timespec nap = { 0, 1000000 };
	uint64_t start = gpu_time(), asked, let, end;
	int out[2], in[2], status = 0;
	double ns = -1;
	CUdeviceptr p;
	float ms = -1;
	char go = 0;
	pid_t pid;

	OK(cuMemAlloc_v2(&p, 4096));
	CHECK(!pipe(out) && !pipe(in));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(self, self, "held", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	CHECK(read(out[0], &go, 1) == 1 && go == 'a');
	asked = gpu_time();
	CHECK(host("set gpu0 fault-hung-engine true"));
	CHECK(write(in[1], "!", 1) == 1);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	let = gpu_time();
	CHECK(host("set gpu0 fault-hung-engine false"));
	/* The same queue of the engine */
	OK(cuMemsetD8_v2(p, 1, 1));
	OK(cuStreamSynchronize(NULL));
	end = gpu_time();
	while (!failed && gpu_time() < 2 * end - start)
		nanosleep(&nap, NULL);
	kill(pid, SIGCONT);
	CHECK(read(out[0], &ms, sizeof(ms)) == sizeof(ms));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	/* A float is exact to some nanoseconds */
	ns = (double)ms * 1e6;
	if (ns < (double)(let - asked) - 1000 ||
	    ns > (double)(end - start) + 1000)
		printf("# %.0f ns, not between %llu and %llu\n", ns,
		       (unsigned long long)(let - asked),
		       (unsigned long long)(end - start));
	CHECK(ns >= (double)(let - asked) - 1000);
	CHECK(ns <= (double)(end - start) + 1000);
	close(in[1]);
	close(out[0]);
	OK(cuMemFree_v2(p));
}

int held(void)
{
	CUevent a, b;
	CUdeviceptr p;
	CUcontext ctx;
	float ms;
	char go;

	if (cuInit(0) || cuCtxCreate_v2(&ctx, 0, 0) || cuMemAlloc_v2(&p, 4096) ||
	    cuEventCreate(&a, 0) || cuEventCreate(&b, 0) ||
	    cuMemsetD8Async(p, 1, 4096, NULL) || cuEventRecord(a, NULL) ||
	    cuEventSynchronize(a) || write(1, "a", 1) != 1 ||
	    read(0, &go, 1) != 1 || cuMemsetD8Async(p, 2, 4096, NULL) ||
	    cuEventRecord(b, NULL) || raise(SIGSTOP) || cuEventSynchronize(b) ||
	    cuEventElapsedTime(&ms, a, b))
		return 1;
	return write(1, &ms, sizeof(ms)) != sizeof(ms);
}

/* ---- the device ---- */

/* The context is lost each time, and no other one */
void engine_error(void)
{
	CUdeviceptr p, q;
	CUcontext ctx;
	CUstream s;
	char b;

	OK(cuMemAlloc_v2(&q, 4096));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	CHECK(host("set gpu0 fault-engine-error 1"));
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(host("set gpu0 fault-engine-error 1"));
	OK(cuMemsetD8Async(p, 1, 1, s));
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuCtxDestroy_v2(ctx));
	OK(cuMemsetD8_v2(q, 3, 1));
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	CHECK(b == 3);
	OK(cuMemFree_v2(q));
}

/* The driver has the engine zero memory before it gives it */
void engine_error_in_alloc(void)
{
	CUdeviceptr p;

	CHECK(host("set gpu0 fault-engine-error 1"));
	IS(cuMemAlloc_v2(&p, 4 * MiB), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuMemAlloc_v2(&p, 4 * MiB));
	OK(cuMemFree_v2(p));
}

void lost_interrupt(void)
{
	CUdeviceptr p;
	char b = 0;

	OK(cuMemAlloc_v2(&p, 4096));
	CHECK(host("set gpu0 fault-lost-irq 1"));
	OK(cuMemsetD8_v2(p, 9, 1));
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 9);
	OK(cuMemFree_v2(p));
}

/* The engine never says that it is done: the driver gives up, we go on */
void stuck(void)
{
	static const char param[] =
		"/sys/module/peerlane_gpu/parameters/watchdog_ms";
	int fd = open(param, O_WRONLY);
	CUdeviceptr p;
	CUcontext ctx;
	char b = 0;

	CHECK(fd >= 0 && write(fd, "500", 3) == 3);
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	CHECK(host("set gpu0 fault-stuck-fence 1"));
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
	IS(cuMemsetD8_v2(p, 6, 1), CUDA_ERROR_LAUNCH_TIMEOUT);
	OK(cuCtxDestroy_v2(ctx));
	/* Nor that it has zeroed new memory */
	CHECK(host("set gpu0 fault-stuck-fence 1"));
	IS(cuMemAlloc_v2(&p, 4 * MiB), CUDA_ERROR_LAUNCH_TIMEOUT);
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemsetD8_v2(p, 6, 1));
	OK(cuMemcpyDtoH_v2(&b, p, 1));
	CHECK(b == 6);
	OK(cuMemFree_v2(p));
	CHECK(pwrite(fd, "10000", 5, 0) == 5);
	close(fd);
}

static void write_reset(void)
{
	char bus[32], path[128];
	int fd;

	OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", bus);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, "1", 1) == 1);
	close(fd);
}

/* Whatever the jobs under way come to, nothing hangs and the next works */
void reset_at_work(void)
{
	CUdeviceptr p, q;
	CUcontext ctx;
	CUstream s[3];
	CUresult err;
	char b = 0;

	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 64 * MiB));
	OK(cuMemAlloc_v2(&q, 64 * MiB));
	for (int i = 0; i < 3; i++)
		OK(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 60; i++)
		OK(cuMemcpyDtoDAsync_v2(p, q, 64 * MiB, s[i % 3]));
	write_reset();
	for (int i = 0; i < 3; i++) {
		err = cuStreamSynchronize(s[i]);
		printf("# stream %d: %d\n", i, err);
		CHECK(err == CUDA_SUCCESS || err == CUDA_ERROR_LAUNCH_FAILED ||
		      err == CUDA_ERROR_DEVICE_UNAVAILABLE);
	}
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 64 * MiB));
	OK(cuMemsetD8_v2(p, 5, 64 * MiB));
	OK(cuMemcpyDtoH_v2(&b, p + 64 * MiB - 1, 1));
	CHECK(b == 5);
	OK(cuCtxDestroy_v2(ctx));
}

void reset_gpu(void)
{
	CUdeviceptr p, q;
	CUcontext ctx, next;
	unsigned char b = 0;

	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuMemAlloc_v2(&p, 2 * MiB));
	OK(cuMemsetD8_v2(p, 1, 2 * MiB));
	write_reset();
	IS(cuMemcpyDtoH_v2(&b, p, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuMemAlloc_v2(&q, 4096), CUDA_ERROR_DEVICE_UNAVAILABLE);
	IS(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxCreate_v2(&next, 0, 0));
	OK(cuMemAlloc_v2(&q, 2 * MiB));
	OK(cuMemsetD8_v2(q, 4, 2 * MiB));
	OK(cuMemcpyDtoH_v2(&b, q + 2 * MiB - 1, 1));
	CHECK(b == 4);
	IS(cuMemcpyDtoD_v2(q, p, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxDestroy_v2(ctx));
	OK(cuMemcpyDtoH_v2(&b, q, 1));
	OK(cuCtxDestroy_v2(next));
	OK(cuCtxPopCurrent_v2(NULL));	/* the destroyed one */
}
