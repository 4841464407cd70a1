// SPDX-License-Identifier: MIT
/*
 * In a guest, nvml_guest GPUS: what the library says and what libcuda says are the
 * same, and memory that is taken is seen.  Of two GPUs the second one has a window.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/cuda.h"
#include "../../cuda/test/check.h"
#include "../nvml.h"

#define MiB	(1024 * 1024ull)

static void same(unsigned int i)
{
	char ours[96], theirs[96], text[64];
	int major, minor, a, b;
	nvmlDevice_t gpu, other;
	unsigned char uuid[16];
	nvmlMemory_t memory;
	nvmlPciInfo_t pci;
	unsigned int n;
	size_t total;
	CUuuid got;
	CUdevice d;

	OK(nvmlDeviceGetHandleByIndex(i, &gpu));
	OK(cuDeviceGet(&d, (int)i));
	OK(nvmlDeviceGetName(gpu, ours, sizeof(ours)));
	OK(cuDeviceGetName(theirs, sizeof(theirs), d));
	CHECK(!strcmp(ours, theirs));
	OK(nvmlDeviceGetUUID(gpu, ours, sizeof(ours)));
	OK(cuDeviceGetUuid(&got, d));
	memcpy(uuid, got.bytes, 16);
	n = (unsigned int)snprintf(theirs, sizeof(theirs), "GPU-");
	for (int k = 0; k < 16; k++)
		n += (unsigned int)snprintf(theirs + n, sizeof(theirs) - n,
			"%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ?
			"-" : "", uuid[k]);
	CHECK(!strcmp(ours, theirs));
	OK(cuDeviceGetPCIBusId(text, sizeof(text), d));
	OK(nvmlDeviceGetHandleByPciBusId(text, &other));
	CHECK(other == gpu);
	OK(nvmlDeviceGetPciInfo(gpu, &pci));
	CHECK(!strcmp(pci.busIdLegacy, text));
	CHECK(pci.pciDeviceId == 0x9e711234);
	OK(nvmlDeviceGetCudaComputeCapability(gpu, &major, &minor));
	OK(cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
				d));
	OK(cuDeviceGetAttribute(&b, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
				d));
	CHECK(major == a && minor == b);
	OK(nvmlDeviceGetMemoryInfo(gpu, &memory));
	OK(cuDeviceTotalMem(&total, d));
	CHECK(memory.total == total);
	CHECK(memory.used + memory.free == memory.total);
}

static void memory_is_seen(void)
{
	nvmlMemory_t before, after;
	nvmlDevice_t gpu;
	CUdeviceptr p;
	CUcontext ctx;

	OK(nvmlDeviceGetHandleByIndex(0, &gpu));
	OK(cuCtxCreate(&ctx, 0, 0));
	OK(nvmlDeviceGetMemoryInfo(gpu, &before));
	OK(cuMemAlloc(&p, 16 * MiB));
	OK(nvmlDeviceGetMemoryInfo(gpu, &after));
	CHECK(after.used == before.used + 16 * MiB);
	OK(cuMemFree(p));
	OK(cuCtxDestroy(ctx));
}

/* Another process takes memory, and ends */
static int other(int ready, int end)
{
	CUdeviceptr p;
	CUcontext ctx;
	char byte;

	if (cuInit(0) || cuCtxCreate(&ctx, 0, 0) || cuMemAlloc(&p, 8 * MiB) ||
	    write(ready, "", 1) != 1)
		return 1;
	return read(end, &byte, 1) != 0;
}

/* What NVML says that a process has of the first GPU */
static unsigned long long used_by(pid_t pid)
{
	nvmlProcessInfo_t info[8];
	unsigned long long used = 0;
	unsigned int n = 8;
	nvmlDevice_t gpu;

	OK(nvmlDeviceGetHandleByIndex(0, &gpu));
	OK(nvmlDeviceGetComputeRunningProcesses(gpu, &n, info));
	for (unsigned int i = 0; i < n; i++)
		if (info[i].pid == (unsigned int)pid)
			used += info[i].usedGpuMemory;
	return used;
}

static pid_t start_other(int *end)
{
	int ready[2], ends[2];
	char byte;
	pid_t pid;

	CHECK(!pipe(ready) && !pipe(ends));
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit(other(ready[1], ends[0]));
	}
	close(ready[1]);
	close(ends[0]);
	CHECK(pid > 0 && read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	*end = ends[1];
	return pid;
}

static void processes_are_seen(pid_t pid, int end)
{
	unsigned long long own;
	CUdeviceptr p;
	CUcontext ctx;
	int status;

	CHECK(used_by(pid) >= 8 * MiB && used_by(pid) < 16 * MiB);
	OK(cuCtxCreate(&ctx, 0, 0));
	own = used_by(getpid());
	OK(cuMemAlloc(&p, 16 * MiB));
	CHECK(used_by(getpid()) == own + 16 * MiB);
	CHECK(used_by(pid) >= 8 * MiB);
	fflush(stdout);
	CHECK(!system("nvidia-smi | sed 's/^/# smi: /'"));
	OK(cuMemFree(p));
	OK(cuCtxDestroy(ctx));
	close(end);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!used_by(pid));
}

static void peers(unsigned int gpus)
{
	nvmlGpuP2PStatus_t status;
	nvmlDevice_t a, b;
	int can;

	for (unsigned int i = 0; i < gpus; i++)
		for (unsigned int j = 0; j < gpus; j++) {
			OK(nvmlDeviceGetHandleByIndex(i, &a));
			OK(nvmlDeviceGetHandleByIndex(j, &b));
			OK(nvmlDeviceGetP2PStatus(a, b,
				NVML_P2P_CAPS_INDEX_READ, &status));
			OK(cuDeviceCanAccessPeer(&can, (int)i, (int)j));
			CHECK((status == NVML_P2P_STATUS_OK) == can);
		}
}

static void one_way(void)
{
	nvmlGpuP2PStatus_t status;
	nvmlDevice_t a, b;

	OK(nvmlDeviceGetHandleByIndex(0, &a));
	OK(nvmlDeviceGetHandleByIndex(1, &b));
	OK(nvmlDeviceGetP2PStatus(a, b, NVML_P2P_CAPS_INDEX_READ, &status));
	CHECK(status == NVML_P2P_STATUS_OK);
	OK(nvmlDeviceGetP2PStatus(b, a, NVML_P2P_CAPS_INDEX_READ, &status));
	CHECK(status == NVML_P2P_STATUS_GPU_NOT_SUPPORTED);
}

static void versions(void)
{
	int ours, theirs;

	OK(nvmlSystemGetCudaDriverVersion(&ours));
	OK(cuDriverGetVersion(&theirs));
	CHECK(ours == theirs);
}

static void count(unsigned int gpus)
{
	unsigned int n;
	int m;

	OK(nvmlDeviceGetCount(&n));
	OK(cuDeviceGetCount(&m));
	CHECK(n == gpus && m == (int)gpus);
}

int main(int argc, char **argv)
{
	unsigned int gpus = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	/* Before there are threads */
	int end;
	pid_t pid = start_other(&end);

	TEST("both libraries start", {
		OK(nvmlInit());
		OK(cuInit(0));
	});
	TEST("as many GPUs", count(gpus));
	for (unsigned int i = 0; i < gpus; i++)
		TEST("a GPU is the same to both", same(i));
	TEST("memory that is taken is seen", memory_is_seen());
	TEST("by which process", processes_are_seen(pid, end));
	TEST("who reaches whom, as libcuda says", peers(gpus));
	if (gpus == 2)
		TEST("only the second GPU has a window", one_way());
	TEST("the version of CUDA", versions());
	TEST("the library ends", OK(nvmlShutdown()));
	return ktap_end();
}
