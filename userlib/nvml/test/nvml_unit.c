// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver and the record of a machine: nvml_unit SWITCHES
 * BRIDGES NO-DRIVER [TEST].  tests/nvml/unit.sh makes the records; what is expected
 * stands in its descriptions.  Each test runs in a process of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_machine.h"
#include "nvml_unit.h"

const char *switches, *bridges, *no_driver;

const struct fake_config four = {
	.gpus = 4, .vram = 64 * MiB, .queues = 4, .dmabuf = true,
};

void on(const char *machine)
{
	setenv("PEERLANE_FAKE_MACHINE", machine, 1);
}

void start(const struct fake_config *cfg, nvmlDevice_t gpu[4])
{
	on(switches);
	fake_setup(cfg);
	OK(nvmlInit_v2());
	for (unsigned int i = 0; gpu && i < cfg->gpus; i++)
		OK(nvmlDeviceGetHandleByIndex_v2(i, &gpu[i]));
}

/* ---- start and end ---- */

static void t_not_initialized(void)
{
	nvmlMemory_t memory;
	nvmlDevice_t gpu;
	unsigned int n;
	char text[96];
	int version;

	fake_setup(&four);
	IS(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetCount(NULL), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetHandleByPciBusId_v2("x", &gpu),
	   NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetHandleByUUID(NULL, &gpu), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetHandleBySerial("1", &gpu), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetMemoryInfo(NULL, &memory), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetTemperature(NULL, NVML_TEMPERATURE_GPU, &n),
	   NVML_ERROR_UNINITIALIZED);
	IS(nvmlSystemGetDriverVersion(text, sizeof(text)),
	   NVML_ERROR_UNINITIALIZED);
	IS(nvmlSystemGetProcessName(1, text, sizeof(text)),
	   NVML_ERROR_UNINITIALIZED);
	IS(nvmlSystemGetTopologyGpuSet(0, &n, NULL), NVML_ERROR_UNINITIALIZED);
	IS(nvmlSystemGetConfComputeState(NULL), NVML_ERROR_UNINITIALIZED);
	IS(nvmlSystemGetCudaDriverVersion_v2(&version),
	   NVML_ERROR_UNINITIALIZED);
	/* these work without */
	OK(nvmlSystemGetNVMLVersion(text, sizeof(text)));
	CHECK(!strncmp(text, "13.", 3));
	IS(nvmlSystemGetNVMLVersion(NULL, 80), INVALID);
	IS(nvmlSystemGetNVMLVersion(text, 3), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(*nvmlErrorString(NVML_SUCCESS));
	CHECK(strcmp(nvmlErrorString(NVML_ERROR_UNKNOWN),
		     nvmlErrorString((nvmlReturn_t)12345)));
}

static void t_counted(void)
{
	nvmlDevice_t gpu[4];
	unsigned int n = 0;

	start(&four, gpu);
	OK(nvmlInit());
	OK(nvmlShutdown());
	OK(nvmlDeviceGetCount_v2(&n));
	CHECK(n == 4);
	OK(nvmlShutdown());
	IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
	IS(nvmlDeviceGetIndex(gpu[0], &n), NVML_ERROR_UNINITIALIZED);
	IS(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	CHECK(fake_files() == 0);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount(&n));
	CHECK(n == 4);
	OK(nvmlShutdown());
}

static void t_no_gpu(void)
{
	struct fake_config none = four;
	unsigned int n = 9;

	none.gpus = 0;
	fake_setup(&none);
	on(no_driver);
	IS(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	IS(nvmlInit(), NVML_ERROR_DRIVER_NOT_LOADED);
	IS(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS),
	   NVML_ERROR_DRIVER_NOT_LOADED);
	on(switches);
	IS(nvmlInit_v2(), NVML_ERROR_GPU_NOT_FOUND);
	IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
	OK(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS));
	OK(nvmlDeviceGetCount_v2(&n));
	CHECK(n == 0);
	OK(nvmlShutdown());
}

static void t_refused(void)
{
	struct fake_config cfg = four;

	on(switches);
	cfg.open_errno = EACCES;
	fake_setup(&cfg);
	IS(nvmlInit_v2(), NVML_ERROR_NO_PERMISSION);
	OK(nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS));
	OK(nvmlShutdown());
}

static void t_other_driver(void)
{
	struct fake_config cfg = four;

	on(switches);
	cfg.abi_version = PLN_GPU_ABI_VERSION + 1;
	fake_setup(&cfg);
	IS(nvmlInit_v2(), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
}

static void t_one_is_bad(void)
{
	nvmlDevice_t gpu;
	unsigned int n;

	on(switches);
	fake_setup(&four);
	fake_fail(FAKE_QUERY, 2, EIO);
	IS(nvmlInit(), NVML_ERROR_GPU_IS_LOST);
	IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
	fake_fail(FAKE_QUERY, 2, EIO);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&n));
	CHECK(n == 3);
	OK(nvmlDeviceGetHandleByIndex_v2(1, &gpu));
	OK(nvmlDeviceGetMinorNumber(gpu, &n));
	CHECK(n == 2);
	OK(nvmlShutdown());
	fake_fail(FAKE_OPEN, 3, EMFILE);
	IS(nvmlInit_v2(), NVML_ERROR_INSUFFICIENT_RESOURCES);
	fake_fail(FAKE_OPEN, 3, ENOMEM);
	IS(nvmlInit_v2(), NVML_ERROR_MEMORY);
	CHECK(fake_files() == 0);
}

/* ---- GPUs ---- */

/* The fake driver's: bytes 0 to 15, 16 to 31, ... */
#define UUID0	"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
#define UUID1	"GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"

static void t_names(void)
{
	nvmlDevice_t gpu[4];
	unsigned int n;
	char text[96];
	int a, b;

	start(&four, gpu);
	for (unsigned int i = 0; i < 4; i++) {
		OK(nvmlDeviceGetIndex(gpu[i], &n));
		CHECK(n == i);
		OK(nvmlDeviceGetMinorNumber(gpu[i], &n));
		CHECK(n == i);
	}
	OK(nvmlDeviceGetName(gpu[0], text, sizeof(text)));
	CHECK(!strcmp(text, "Peerlane emulated GPU"));
	OK(nvmlDeviceGetName(gpu[0], text, 22));
	strcpy(text, "as before");
	IS(nvmlDeviceGetName(gpu[0], text, 21), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(!strcmp(text, "as before"));
	OK(nvmlDeviceGetUUID(gpu[1], text, sizeof(text)));
	CHECK(!strcmp(text, UUID1));
	OK(nvmlDeviceGetUUID(gpu[0], text, 41));
	CHECK(!strcmp(text, UUID0));
	IS(nvmlDeviceGetUUID(gpu[0], text, 40), NVML_ERROR_INSUFFICIENT_SIZE);
	IS(nvmlDeviceGetUUID(gpu[0], NULL, 96), INVALID);
	OK(nvmlDeviceGetCudaComputeCapability(gpu[0], &a, &b));
	CHECK(a == 9 && b == 0);
	IS(nvmlDeviceGetCudaComputeCapability(gpu[0], &a, NULL), INVALID);
	IS(nvmlDeviceGetCudaComputeCapability(gpu[0], NULL, &b), INVALID);
	IS(nvmlDeviceGetIndex(gpu[0], NULL), INVALID);
	IS(nvmlDeviceGetCount_v2(NULL), INVALID);
	OK(nvmlSystemGetDriverVersion(text, sizeof(text)));
	CHECK(strspn(text, "0123456789.") == strlen(text) && *text);
	IS(nvmlSystemGetDriverVersion(text, (unsigned int)strlen(text)),
	   NVML_ERROR_INSUFFICIENT_SIZE);
}

static void t_found(void)
{
	nvmlDevice_t gpu[4], got = NULL;

	start(&four, gpu);
	OK(nvmlDeviceGetHandleByPciBusId_v2("00000000:04:01.0", &got));
	CHECK(got == gpu[1]);
	OK(nvmlDeviceGetHandleByPciBusId("0000:05:01.0", &got));
	CHECK(got == gpu[2]);
	OK(nvmlDeviceGetHandleByPciBusId_v2("6:1.0", &got));
	CHECK(got == gpu[3]);
	IS(nvmlDeviceGetHandleByPciBusId_v2("0000:07:01.0", &got),
	   NVML_ERROR_NOT_FOUND);
	IS(nvmlDeviceGetHandleByPciBusId_v2("0001:04:01.0", &got),
	   NVML_ERROR_NOT_FOUND);
	/* too large for a domain: NVIDIA's takes its low bits, too */
	OK(nvmlDeviceGetHandleByPciBusId_v2("100000000:04:01.0", &got));
	IS(nvmlDeviceGetHandleByPciBusId_v2("gpu", &got), INVALID);
	IS(nvmlDeviceGetHandleByPciBusId_v2("", &got), INVALID);
	IS(nvmlDeviceGetHandleByPciBusId_v2(NULL, &got), INVALID);
	OK(nvmlDeviceGetHandleByUUID(UUID0, &got));
	CHECK(got == gpu[0]);
	OK(nvmlDeviceGetHandleByUUID(UUID1, &got));
	CHECK(got == gpu[1]);
	IS(nvmlDeviceGetHandleByUUID("GPU-10111213-1415-1617-1819-"
				     "1A1B1C1D1E1F", &got),
	   NVML_ERROR_NOT_FOUND);
	IS(nvmlDeviceGetHandleByUUID(NULL, &got), INVALID);
	IS(nvmlDeviceGetHandleBySerial("0", &got), NVML_ERROR_NOT_FOUND);
	IS(nvmlDeviceGetHandleBySerial(NULL, &got), INVALID);
	IS(nvmlDeviceGetHandleByIndex_v2(4, &got), INVALID);
	IS(nvmlDeviceGetHandleByIndex(0, NULL), INVALID);
}

static void t_forged(void)
{
	struct fake_config two = four;
	nvmlDevice_t gpu[4], bad[6];
	nvmlMemory_t memory;
	nvmlPciInfo_t pci;
	unsigned int n;

	two.gpus = 2;
	start(&two, gpu);
	bad[0] = NULL;
	bad[1] = (nvmlDevice_t)(uintptr_t)1;
	bad[2] = (nvmlDevice_t)((uintptr_t)gpu[0] + 1);
	bad[3] = gpu[1] + 1;	/* a place in the table without a GPU */
	bad[4] = gpu[0] - 1;
	bad[5] = (nvmlDevice_t)&n;
	for (int i = 0; i < 6; i++) {
		IS(nvmlDeviceGetIndex(bad[i], &n), INVALID);
		IS(nvmlDeviceGetMemoryInfo(bad[i], &memory), INVALID);
		IS(nvmlDeviceGetPciInfo_v3(bad[i], &pci), INVALID);
		IS(nvmlDeviceGetPowerUsage(bad[i], &n), INVALID);
		IS(nvmlDeviceGetTopologyCommonAncestor(gpu[0], bad[i],
						       (void *)&n), INVALID);
		IS(nvmlDeviceGetP2PStatus(gpu[0], bad[i], 0, (void *)&n),
		   INVALID);
	}
}

static void t_memory(void)
{
	struct pln_gpu_alloc alloc = { .size = 2 * MiB };
	nvmlMemory_v2_t v2 = { .version = nvmlMemory_v2 };
	nvmlBAR1Memory_t bar1;
	nvmlDevice_t gpu[4];
	nvmlMemory_t v1;
	int fd;

	start(&four, gpu);
	fd = drv_io_open(1);
	OK(drv_io_ioctl(fd, PLN_GPU_IOC_ALLOC, &alloc));
	OK(nvmlDeviceGetMemoryInfo(gpu[1], &v1));
	CHECK(v1.total == 64 * MiB && v1.used == 2 * MiB &&
	      v1.free == 62 * MiB);
	OK(nvmlDeviceGetMemoryInfo_v2(gpu[1], &v2));
	CHECK(v2.total == 64 * MiB && v2.used == 2 * MiB &&
	      v2.free == 62 * MiB && v2.reserved == 0);
	CHECK(v2.version == 0x02000028);
	OK(nvmlDeviceGetMemoryInfo(gpu[0], &v1));
	CHECK(v1.used == 0);
	OK(nvmlDeviceGetBAR1MemoryInfo(gpu[1], &bar1));
	CHECK(bar1.bar1Total == 16 * MiB && bar1.bar1Free == 16 * MiB &&
	      bar1.bar1Used == 0);
	drv_io_close(fd);
}

static void t_lost(void)
{
	nvmlDevice_t gpu[4];
	nvmlMemory_t memory;
	unsigned int n;

	start(&four, gpu);
	fake_remove(1);
	IS(nvmlDeviceGetMemoryInfo(gpu[1], &memory), NVML_ERROR_GPU_IS_LOST);
	OK(nvmlDeviceGetMemoryInfo(gpu[2], &memory));
	OK(nvmlDeviceGetIndex(gpu[1], &n));
	fake_exchanged = true;
	IS(nvmlDeviceGetMemoryInfo(gpu[2], &memory), NVML_ERROR_GPU_IS_LOST);
	fake_exchanged = false;
	OK(nvmlDeviceGetMemoryInfo(gpu[2], &memory));
	fake_fail(FAKE_OPEN, 1, EACCES);
	IS(nvmlDeviceGetMemoryInfo(gpu[0], &memory), NVML_ERROR_NO_PERMISSION);
	fake_fail(FAKE_QUERY, 1, ENOMEM);
	IS(nvmlDeviceGetMemoryInfo(gpu[0], &memory), NVML_ERROR_MEMORY);
	CHECK(fake_files() == 0);
}

static void p2p(bool coherent, nvmlGpuP2PStatus_t want)
{
	struct fake_config cfg = four;
	nvmlGpuP2PStatus_t s;
	nvmlDevice_t gpu[4];

	cfg.coherent = coherent;
	start(&cfg, gpu);
	OK(nvmlDeviceGetP2PStatus(gpu[0], gpu[1], NVML_P2P_CAPS_INDEX_READ, &s));
	CHECK(s == want);
	OK(nvmlDeviceGetP2PStatus(gpu[3], gpu[1], NVML_P2P_CAPS_INDEX_WRITE,
				  &s));
	CHECK(s == want);
	OK(nvmlDeviceGetP2PStatus(gpu[0], gpu[1], NVML_P2P_CAPS_INDEX_PROP, &s));
	CHECK(s == want);
	OK(nvmlDeviceGetP2PStatus(gpu[0], gpu[1], NVML_P2P_CAPS_INDEX_NVLINK,
				  &s));
	CHECK(s == NVML_P2P_STATUS_NOT_SUPPORTED);
	OK(nvmlDeviceGetP2PStatus(gpu[0], gpu[1], NVML_P2P_CAPS_INDEX_ATOMICS,
				  &s));
	CHECK(s == NVML_P2P_STATUS_NOT_SUPPORTED);
}

static void t_p2p_window(void)
{
	p2p(true, NVML_P2P_STATUS_OK);
}

static void t_p2p_none(void)
{
	p2p(false, NVML_P2P_STATUS_GPU_NOT_SUPPORTED);
}

static void t_process(void)
{
	char own[4096] = "", text[4096], small[3];
	FILE *f = fopen("/proc/self/cmdline", "r");

	start(&four, NULL);
	CHECK(f && fread(own, 1, sizeof(own) - 1, f) > 3);
	if (f)
		fclose(f);
	OK(nvmlSystemGetProcessName((unsigned int)getpid(), text,
				    sizeof(text)));
	CHECK(!strcmp(text, own));
	OK(nvmlSystemGetProcessName((unsigned int)getpid(), small, 3));
	CHECK(!strncmp(small, own, 2) && !small[2]);
	IS(nvmlSystemGetProcessName(0, text, 80), NVML_ERROR_NOT_FOUND);
	IS(nvmlSystemGetProcessName(4294967295u, text, 80),
	   NVML_ERROR_NOT_FOUND);
	IS(nvmlSystemGetProcessName(1, NULL, 80), INVALID);
	IS(nvmlSystemGetProcessName(1, text, 0), INVALID);
}

static bool is_process(const nvmlProcessInfo_t *p, unsigned int pid,
		       unsigned long long used)
{
	return p->pid == pid && p->usedGpuMemory == used &&
	       p->gpuInstanceId == 0xffffffff &&
	       p->computeInstanceId == 0xffffffff;
}

/*
 * tests/nvml/lib.sh has them: two on the first GPU, and some that are in no
 * namespace of ours; none on the second; nonsense of the third; of the last one
 * the driver does not tell.
 */
static void t_processes(void)
{
	nvmlProcessInfo_v1_t old[3] = { { .pid = 7 } };
	nvmlProcessInfo_t info[3] = { { .pid = 7 } };
	nvmlDevice_t gpu[4];
	unsigned int n = 0;

	start(&four, gpu);
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], &n, NULL),
	   NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(n == 2);
	n = 1;
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], &n, info),
	   NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(n == 2 && info[0].pid == 7);
	n = 1;
	IS(nvmlDeviceGetComputeRunningProcesses(gpu[0], &n, old),
	   NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(n == 2 && old[0].pid == 7);
	n = 3;
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], &n, NULL), INVALID);
	CHECK(n == 2);
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], NULL, info),
	   INVALID);
	OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], &n, info));
	CHECK(n == 2 && is_process(&info[0], 1234, 4 * MiB) &&
	      is_process(&info[1], 4194304, 17179869184) && !info[2].pid);
	memset(info, 0, sizeof(info));
	n = 3;
	OK(nvmlDeviceGetComputeRunningProcesses_v2(gpu[0], &n, info));
	CHECK(n == 2 && is_process(&info[0], 1234, 4 * MiB));
	n = 3;
	OK(nvmlDeviceGetComputeRunningProcesses(gpu[0], &n, old));
	CHECK(n == 2 && old[0].pid == 1234 && old[0].usedGpuMemory == 4 * MiB &&
	      old[1].pid == 4194304 && old[1].usedGpuMemory == 17179869184);

	/* Without any, it does not matter where they would go */
	n = 3;
	OK(nvmlDeviceGetComputeRunningProcesses_v3(gpu[1], &n, NULL));
	CHECK(n == 0);
	n = 3;
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[2], &n, info),
	   NVML_ERROR_UNKNOWN);
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[3], &n, info), ABSENT);
	CHECK(n == 3);
	fake_remove(0);
	IS(nvmlDeviceGetComputeRunningProcesses_v3(gpu[0], &n, info),
	   NVML_ERROR_GPU_IS_LOST);

	OK(nvmlDeviceGetGraphicsRunningProcesses_v3(gpu[1], &n, NULL));
	CHECK(n == 0);
	n = 3;
	OK(nvmlDeviceGetGraphicsRunningProcesses_v2(gpu[1], &n, info));
	CHECK(n == 0);
	n = 3;
	OK(nvmlDeviceGetGraphicsRunningProcesses(gpu[1], &n, old));
	CHECK(n == 0);
	IS(nvmlDeviceGetGraphicsRunningProcesses(gpu[1], NULL, old), INVALID);
}

/* ---- what is absent ---- */

static void t_absent(void)
{
	nvmlGpuFabricInfoV_t fabric = { .version = nvmlGpuFabricInfo_v2 };
	nvmlPlatformInfo_t platform = { .version = nvmlPlatformInfo_v2 };
	nvmlSystemConfComputeSettings_t settings = {
		.version = nvmlSystemConfComputeSettings_v1,
	};
	nvmlFieldValue_t values[2] = { { .fieldId = 91 }, { .fieldId = 170 } };
	nvmlDevice_t gpu[4];
	nvmlPciInfo_t pci;
	unsigned int n = 1, m;
	char text[30];

	start(&four, gpu);
	IS(nvmlDeviceGetFieldValues(gpu[0], 2, values), ABSENT);
	CHECK(values[0].nvmlReturn == ABSENT && values[1].nvmlReturn == ABSENT);
	IS(nvmlDeviceGetFieldValues(gpu[0], 0, values), INVALID);
	IS(nvmlDeviceGetFieldValues(gpu[0], 1, NULL), INVALID);
	IS(nvmlDeviceGetNvLinkState(gpu[0], 0, (void *)&n), ABSENT);
	IS(nvmlDeviceGetNvLinkVersion(gpu[0], 0, &n), ABSENT);
	IS(nvmlDeviceGetNvLinkCapability(gpu[0], 0, 0, &n), ABSENT);
	IS(nvmlDeviceGetNvLinkCapability(gpu[0], 0, NVML_NVLINK_CAP_COUNT, &n),
	   INVALID);
	IS(nvmlDeviceGetNvLinkRemotePciInfo(gpu[0], 0, &pci), ABSENT);
	IS(nvmlDeviceGetNvLinkRemotePciInfo_v2(gpu[0], 0, NULL), INVALID);
	IS(nvmlDeviceGetGpuFabricInfoV(gpu[0], &fabric), ABSENT);
	fabric.version = nvmlGpuFabricInfo_v3;
	IS(nvmlDeviceGetGpuFabricInfoV(gpu[0], &fabric), ABSENT);
	fabric.version = 0;
	IS(nvmlDeviceGetGpuFabricInfoV(gpu[0], &fabric),
	   NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	IS(nvmlDeviceGetGpuFabricInfoV(gpu[0], NULL), INVALID);
	IS(nvmlDeviceGetGpuFabricInfo(gpu[0], NULL), INVALID);
	IS(nvmlDeviceGetPlatformInfo(gpu[0], &platform), ABSENT);
	platform.version ^= 1;
	IS(nvmlDeviceGetPlatformInfo(gpu[0], &platform), ABSENT);
	platform.version = 0;
	IS(nvmlDeviceGetPlatformInfo(gpu[0], &platform), ABSENT);
	IS(nvmlDeviceGetPlatformInfo(gpu[0], NULL), INVALID);
	IS(nvmlSystemGetConfComputeSettings(&settings), ABSENT);
	settings.version = 1;
	IS(nvmlSystemGetConfComputeSettings(&settings),
	   NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	IS(nvmlSystemGetConfComputeSettings(NULL), INVALID);
	IS(nvmlDeviceGetTemperature(gpu[0], NVML_TEMPERATURE_GPU, &n), ABSENT);
	IS(nvmlDeviceGetTemperature(gpu[0], NVML_TEMPERATURE_COUNT, &n),
	   INVALID);
	IS(nvmlDeviceGetPowerUsage(gpu[0], NULL), INVALID);
	IS(nvmlDeviceGetSerial(gpu[0], text, sizeof(text)), ABSENT);
	IS(nvmlDeviceGetMigMode(gpu[0], &n, &m), ABSENT);
	IS(nvmlDeviceGetMigMode(gpu[0], &n, NULL), INVALID);
}

/* ---- threads ---- */

static void *busy(void *arg)
{
	nvmlGpuTopologyLevel_t level;
	nvmlDevice_t gpu, other;
	nvmlMemory_t memory;
	unsigned int n;

	(void)arg;
	for (int i = 0; i < 50; i++) {
		OK(nvmlInit_v2());
		OK(nvmlDeviceGetCount_v2(&n));
		CHECK(n == 4);
		OK(nvmlDeviceGetHandleByIndex_v2((unsigned int)i % 4, &gpu));
		OK(nvmlDeviceGetHandleByIndex_v2((unsigned int)(i + 1) % 4,
						 &other));
		OK(nvmlDeviceGetMemoryInfo(gpu, &memory));
		CHECK(memory.total == 64 * MiB);
		if (i % 10 == 0)
			OK(nvmlDeviceGetTopologyCommonAncestor(gpu, other,
							       &level));
		OK(nvmlShutdown());
	}
	return NULL;
}

static void t_threads(void)
{
	pthread_t thread[4];
	unsigned int n;

	on(switches);
	fake_setup(&four);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, busy, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	IS(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
	CHECK(fake_files() == 0);
}

/* ---- all ---- */

int main(int argc, char **argv)
{
#define T(name) { #name, t_##name }
	static const struct {
		const char *name;
		void (*fn)(void);
	} tests[] = {
		T(not_initialized), T(counted), T(no_gpu), T(refused),
		T(other_driver), T(one_is_bad), T(names), T(found), T(forged), T(memory),
		T(lost), T(p2p_window), T(p2p_none), T(pci), T(links),
		T(switches), T(bridges), T(nearest), T(processors),
		T(process), T(processes), T(absent), T(threads),
	};

	if (argc < 4)
		return 2;
	switches = argv[1];
	bridges = argv[2];
	no_driver = argv[3];
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 5 || !strcmp(argv[4], tests[i].name))
			ktap(!in_child(tests[i].fn), "%s", tests[i].name);
	return ktap_end();
}
