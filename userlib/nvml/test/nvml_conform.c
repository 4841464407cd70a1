// SPDX-License-Identifier: MIT
/*
 * Ask a libnvidia-ml.so.1 questions and print its answers, one line each, so that
 * the answers of ours can be compared with those of NVIDIA's on a real GPU
 * (conform.golden: driver 580.159.04, an H100, the only GPU of its machine; who has
 * memory: an H200).  Only questions whose answer does not depend on the machine, and
 * that NVIDIA's library does not crash on.
 * Left out: numbers that are too large, signs and blanks in addresses, which that
 * library takes as sscanf() does.
 *
 * The library is loaded as a program of a user does it: by name.
 */
#include <string.h>

#include "../../cuda/test/ask.h"
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "../nvml.h"

#define UUID_NONE	"GPU-00000000-0000-0000-0000-000000000000"

static nvmlDevice_t gpu;
static char text[128];
static unsigned int n;

static int start(const struct section *section)
{
	if (!strcmp(section->name, "before"))
		return 0;
	return CALL(nvmlInit_v2) ||
	       CALL(nvmlDeviceGetHandleByIndex_v2, 0, &gpu) ? 2 : 0;
}

static void before(void)
{
	int version;

	ASK("shutdown", nvmlShutdown);
	ASK("count", nvmlDeviceGetCount_v2, &n);
	ASK("count without a place", nvmlDeviceGetCount_v2, NULL);
	ASK("handle 99", nvmlDeviceGetHandleByIndex_v2, 99, &gpu);
	ASK("handle by words", nvmlDeviceGetHandleByPciBusId_v2, "x", &gpu);
	ASK("index of NULL", nvmlDeviceGetIndex, NULL, &n);
	ASK("driver version", nvmlSystemGetDriverVersion, text, 80);
	ASK("CUDA version", nvmlSystemGetCudaDriverVersion, &version);
	ASK("CUDA version 2", nvmlSystemGetCudaDriverVersion_v2, &version);
	ASK("NVML version", nvmlSystemGetNVMLVersion, text, 80);
	ASK("name of process 1", nvmlSystemGetProcessName, 1, text, 80);
	SAY("words for success", !!CALL(nvmlErrorString, NVML_SUCCESS));
	SAY("words for 4242", !!CALL(nvmlErrorString, (nvmlReturn_t)4242));
	ASK("init, unknown flags", nvmlInitWithFlags, 0xffff0000);
	ASK("init, flags 3", nvmlInitWithFlags, 3);
	ASK("init", nvmlInit_v2);
	ASK("init 1", nvmlInit);
	for (int i = 0; i < 4; i++) {
		ASK("count", nvmlDeviceGetCount_v2, &n);
		ASK("shutdown", nvmlShutdown);
	}
	ASK("count", nvmlDeviceGetCount_v2, &n);
	ASK("shutdown", nvmlShutdown);
	ASK("init again", nvmlInit_v2);
	ASK("count", nvmlDeviceGetCount, &n);
}

/* Numbers joined by dots: how many, and whether there is anything else */
static void form(const char *what)
{
	unsigned int dots = 0;

	for (const char *c = text; *c; c++)
		dots += *c == '.';
	SAY(what, dots);
	SAY("digits and dots alone",
	    strspn(text, "0123456789.") == strlen(text));
}

static void versions(void)
{
	unsigned int len;
	int version = 0;

	ASK("driver", nvmlSystemGetDriverVersion, text, 80);
	form("dots");
	SAY("the branch", strtol(text, NULL, 10));
	len = (unsigned int)strlen(text);
	ASK("without a place", nvmlSystemGetDriverVersion, NULL, 80);
	ASK("in 0 bytes", nvmlSystemGetDriverVersion, text, 0);
	ASK("in 3 bytes", nvmlSystemGetDriverVersion, text, 3);
	ASK("without room for the end", nvmlSystemGetDriverVersion, text, len);
	ASK("with it", nvmlSystemGetDriverVersion, text, len + 1);
	ASK("NVML", nvmlSystemGetNVMLVersion, text, 80);
	form("dots");
	SAY("begins with the interface's", !strncmp(text, "13.580.", 7));
	ASK("NVML in 1 byte", nvmlSystemGetNVMLVersion, text, 1);
	ASK("NVML without a place", nvmlSystemGetNVMLVersion, NULL, 80);
	ASK("CUDA without a place", nvmlSystemGetCudaDriverVersion, NULL);
	ASK("CUDA 2 without a place", nvmlSystemGetCudaDriverVersion_v2, NULL);
	ASK("CUDA", nvmlSystemGetCudaDriverVersion, &version);
	SAY("CUDA", version);
	ASK("CUDA 2", nvmlSystemGetCudaDriverVersion_v2, &version);
	SAY("CUDA 2", version);
}

static void processes(void)
{
	nvmlProcessInfo_v1_t old[9];
	nvmlProcessInfo_t info[9];
	unsigned int own = (unsigned int)getpid();

	ASK("name", nvmlSystemGetProcessName, own, text, 80);
	SAY("is that of the program", !!strstr(text, "nvml_conform"));
	ASK("of none", nvmlSystemGetProcessName, 99999999, text, 80);
	ASK("without a place", nvmlSystemGetProcessName, own, NULL, 80);
	ASK("in 2 bytes", nvmlSystemGetProcessName, own, text, 2);
	SAY("length", strlen(text));
	ASK("in 0 bytes", nvmlSystemGetProcessName, own, text, 0);

	/* No process has memory of the GPU */
	n = 9;
	ASK("who has memory, 9 places", nvmlDeviceGetComputeRunningProcesses_v3,
	    gpu, &n, info);
	SAY("how many", n);
	n = 9;
	ASK("no place for them", nvmlDeviceGetComputeRunningProcesses_v3, gpu,
	    &n, NULL);
	SAY("how many", n);
	ASK("how many, no place", nvmlDeviceGetComputeRunningProcesses_v3, gpu,
	    NULL, info);
	n = 9;
	ASK("version 1", nvmlDeviceGetComputeRunningProcesses, gpu, &n, old);
	SAY("how many", n);
	n = 9;
	ASK("who draws", nvmlDeviceGetGraphicsRunningProcesses_v3, gpu, &n,
	    NULL);
	SAY("how many", n);
	ASK("how many, no place", nvmlDeviceGetGraphicsRunningProcesses_v3, gpu,
	    NULL, info);
}

static void handles(void)
{
	char uuid[128], other[128];
	nvmlDevice_t got = NULL;

	ASK("count", nvmlDeviceGetCount_v2, &n);
	SAY("is more than 0", n > 0);
	ASK("count without a place", nvmlDeviceGetCount_v2, NULL);
	ASK("0 without a place", nvmlDeviceGetHandleByIndex_v2, 0, NULL);
	ASK("99", nvmlDeviceGetHandleByIndex_v2, 99, &got);
	ASK("0", nvmlDeviceGetHandleByIndex_v2, 0, &got);
	SAY("is the same", got == gpu);
	ASK("0, version 1", nvmlDeviceGetHandleByIndex, 0, &got);
	SAY("is the same", got == gpu);
	ASK("UUID", nvmlDeviceGetUUID, gpu, uuid, 96);
	SAY("length", strlen(uuid));
	SAY("begins with GPU-", !strncmp(uuid, "GPU-", 4));
	ASK("by UUID NULL", nvmlDeviceGetHandleByUUID, NULL, &got);
	ASK("by no UUID", nvmlDeviceGetHandleByUUID, "", &got);
	ASK("by x", nvmlDeviceGetHandleByUUID, "x", &got);
	ASK("by UUID of none", nvmlDeviceGetHandleByUUID, UUID_NONE, &got);
	ASK("by UUID without a place", nvmlDeviceGetHandleByUUID, uuid, NULL);
	got = NULL;
	ASK("by UUID", nvmlDeviceGetHandleByUUID, uuid, &got);
	SAY("is the same", got == gpu);
	ASK("by UUID without GPU-", nvmlDeviceGetHandleByUUID, uuid + 4, &got);
	snprintf(other, sizeof(other), "%.39s", uuid);
	ASK("by UUID, cut", nvmlDeviceGetHandleByUUID, other, &got);
	snprintf(other, sizeof(other), "gpu-%.100s", uuid + 4);
	ASK("by UUID with gpu-", nvmlDeviceGetHandleByUUID, other, &got);
	ASK("by no serial number", nvmlDeviceGetHandleBySerial, "", &got);
	ASK("by serial number 1", nvmlDeviceGetHandleBySerial, "1", &got);
	ASK("by serial number NULL", nvmlDeviceGetHandleBySerial, NULL, &got);
}

static void bus_ids(void)
{
	/* domain, bus, device: what is not GPU's is written out */
	static const char *const forms[] = {
		"%08x:%02x:%02x.0", "%04x:%02x:%02x.0", "%x:%x:%x.0",
		"0x%x:0x%x:0x%x.0", "%04x:%02x:%02x", "%04x:%02x:%02x.1",
		"%04x:%02x:%02x.8", "%04x:%02x:%02x.00", "%04x:%02x:%02x.0 ",
		"%04x:%02x:%02x.0z", "%04x:%02x:%02x.", "%04x:%02x:",
		"%04x.%02x.%02x.0", "1%x:%x:%x.0", "%04x:%02x:%02x.0:0",
		"+%04x:%02x:%02x.0", "%04x:+%02x:%02x.0", "%04x:%02x:+%02x.0",
		"%04x:%02x:%02x.+0", "-%04x:%02x:%02x.0",
		"%04x:%02x:-%02x.0", "%04x:%02x:%02x.-0", " %04x:%02x:%02x.0",
		"%04x: %02x:%02x.0", "%016x:%02x:%02x.0", "%024x:%02x:%02x.0",
		"%040x:%02x:%02x.0", "%04x:%020x:%02x.0", "%04x:%02x:%020x.0",
		"%04x:%02x:%02x.00000000000000000000", "10000000000000000%x:%x:%x.0",
		"%04x:%02x:%02x.0x", "%04x:%02x:%02x.0X", "%04x:%02x:%02x.0x1",
		"%04x:%02x:%02x.0xz", "%04x:%02x:%02x.00x", "%04x:%02x:%02xx",
	};
	static const char *const short_forms[] = {	/* bus, device */
		"%02x:%02x.0", "%x:%x.0", "%02x:%02x", "%x:%x", "%02x:%02x.1",
		"%02x:%02x.0z", ":%02x:%02x.0",
	};
	static const char *const none[] = {
		"0000:ff:1f.0", "0000:100:00.0", "0000:00:ff.0", "zzz", "",
		":", "::.", "0",
	};
	nvmlDevice_t got;
	nvmlPciInfo_t pci;
	char id[64];

	ASK("PCI", nvmlDeviceGetPciInfo_v3, gpu, &pci);
	ASK("its id", nvmlDeviceGetHandleByPciBusId_v2, pci.busId, &got);
	ASK("its older id", nvmlDeviceGetHandleByPciBusId_v2, pci.busIdLegacy,
	    &got);
	ASK("its id, version 1", nvmlDeviceGetHandleByPciBusId, pci.busId, &got);
	ASK("NULL", nvmlDeviceGetHandleByPciBusId_v2, NULL, &got);
	ASK("without a place", nvmlDeviceGetHandleByPciBusId_v2, pci.busId,
	    NULL);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		snprintf(id, sizeof(id), forms[i], pci.domain, pci.bus,
			 pci.device);
		ASK(forms[i], nvmlDeviceGetHandleByPciBusId_v2, id, &got);
	}
	for (size_t i = 0; i < sizeof(short_forms) / sizeof(*short_forms); i++) {
		snprintf(id, sizeof(id), short_forms[i], pci.bus, pci.device);
		ASK(short_forms[i], nvmlDeviceGetHandleByPciBusId_v2, id, &got);
	}
#pragma GCC diagnostic pop
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		ASK(none[i], nvmlDeviceGetHandleByPciBusId_v2, none[i], &got);
}

static void pci(void)
{
	nvmlPciInfoExt_t ext = { .version = nvmlPciInfoExt_v1 };
	nvmlPciInfo_t info;
	char id[64];

	memset(&info, 0x5a, sizeof(info));
	ASK("PCI", nvmlDeviceGetPciInfo_v3, gpu, &info);
	snprintf(id, sizeof(id), "%08X:%02X:%02X.0", info.domain, info.bus,
		 info.device);
	SAY("its id", !strcmp(id, info.busId));
	SAY("its older id", !strcmp(id + 4, info.busIdLegacy));
	memset(&info, 0x5a, sizeof(info));
	ASK("version 2", nvmlDeviceGetPciInfo_v2, gpu, &info);
	SAY("has the subsystem", info.pciSubSystemId != 0x5a5a5a5a);
	SAY("leaves the new id alone", info.busId[0] == 0x5a);
	memset(&info, 0x5a, sizeof(info));
	ASK("version 1", nvmlDeviceGetPciInfo, gpu, &info);
	SAY("leaves the subsystem alone", info.pciSubSystemId == 0x5a5a5a5a);
	SAY("leaves the new id alone", info.busId[0] == 0x5a);
	ASK("without a place", nvmlDeviceGetPciInfo_v3, gpu, NULL);
	ASK("of NULL", nvmlDeviceGetPciInfo_v3, NULL, &info);
	ASK("with the class", nvmlDeviceGetPciInfoExt, gpu, &ext);
	ext.version = 0;
	ASK("of version 0", nvmlDeviceGetPciInfoExt, gpu, &ext);
	ASK("with the class, without a place", nvmlDeviceGetPciInfoExt, gpu,
	    NULL);
}

static void names(void)
{
	int major = 0, minor = 0;

	ASK("index", nvmlDeviceGetIndex, gpu, &n);
	SAY("index", n);
	ASK("index without a place", nvmlDeviceGetIndex, gpu, NULL);
	ASK("index of NULL", nvmlDeviceGetIndex, NULL, &n);
	ASK("name in 0 bytes", nvmlDeviceGetName, gpu, text, 0);
	ASK("name in 4 bytes", nvmlDeviceGetName, gpu, text, 4);
	ASK("name without a place", nvmlDeviceGetName, gpu, NULL, 96);
	ASK("name of NULL", nvmlDeviceGetName, NULL, text, 96);
	ASK("name", nvmlDeviceGetName, gpu, text, 96);
	ASK("UUID in 0 bytes", nvmlDeviceGetUUID, gpu, text, 0);
	ASK("UUID in 40 bytes", nvmlDeviceGetUUID, gpu, text, 40);
	ASK("UUID in 41 bytes", nvmlDeviceGetUUID, gpu, text, 41);
	ASK("UUID without a place", nvmlDeviceGetUUID, gpu, NULL, 96);
	ASK("minor number", nvmlDeviceGetMinorNumber, gpu, &n);
	ASK("minor number without a place", nvmlDeviceGetMinorNumber, gpu,
	    NULL);
	ASK("capability", nvmlDeviceGetCudaComputeCapability, gpu, &major,
	    &minor);
	SAY("capability", 10 * major + minor);
	ASK("capability without a place", nvmlDeviceGetCudaComputeCapability,
	    gpu, NULL, &minor);
	ASK("without the other", nvmlDeviceGetCudaComputeCapability, gpu,
	    &major, NULL);
}

static void memory(void)
{
	nvmlMemory_v2_t v2 = { .version = 0 };
	nvmlBAR1Memory_t bar;
	nvmlMemory_t v1;

	ASK("memory", nvmlDeviceGetMemoryInfo, gpu, &v1);
	SAY("the sum is right", v1.total == v1.free + v1.used);
	ASK("without a place", nvmlDeviceGetMemoryInfo, gpu, NULL);
	ASK("of NULL", nvmlDeviceGetMemoryInfo, NULL, &v1);
	ASK("of version 0", nvmlDeviceGetMemoryInfo_v2, gpu, &v2);
	v2.version = 1;
	ASK("of version 1", nvmlDeviceGetMemoryInfo_v2, gpu, &v2);
	v2.version = nvmlMemory_v2;
	ASK("version 2", nvmlDeviceGetMemoryInfo_v2, gpu, &v2);
	SAY("the sum is right", v2.total == v2.free + v2.used + v2.reserved);
	ASK("version 2 without a place", nvmlDeviceGetMemoryInfo_v2, gpu, NULL);
	ASK("aperture", nvmlDeviceGetBAR1MemoryInfo, gpu, &bar);
	SAY("the sum is right", bar.bar1Total == bar.bar1Free + bar.bar1Used);
	ASK("aperture without a place", nvmlDeviceGetBAR1MemoryInfo, gpu, NULL);
}

static void links(void)
{
	ASK("generation", nvmlDeviceGetCurrPcieLinkGeneration, gpu, &n);
	ASK("the most", nvmlDeviceGetMaxPcieLinkGeneration, gpu, &n);
	ASK("the GPU's", nvmlDeviceGetGpuMaxPcieLinkGeneration, gpu, &n);
	ASK("width", nvmlDeviceGetCurrPcieLinkWidth, gpu, &n);
	ASK("the most", nvmlDeviceGetMaxPcieLinkWidth, gpu, &n);
	ASK("without a place", nvmlDeviceGetCurrPcieLinkGeneration, gpu, NULL);
}

#define NEAREST	nvmlDeviceGetTopologyNearestGpus
static void topology(void)
{
	nvmlGpuTopologyLevel_t level = 77;
	nvmlDevice_t got[64];

	ASK("with itself", nvmlDeviceGetTopologyCommonAncestor, gpu, gpu,
	    &level);
	SAY("wrote nothing", level == 77);
	ASK("with NULL", nvmlDeviceGetTopologyCommonAncestor, gpu, NULL, &level);
	ASK("without a place", nvmlDeviceGetTopologyCommonAncestor, gpu, gpu,
	    NULL);
	n = 0;
	ASK("how many are far away", NEAREST, gpu, NVML_TOPOLOGY_SYSTEM, &n,
	    NULL);
	ASK("level 77", NEAREST, gpu, 77, &n, got);
	ASK("level 15", NEAREST, gpu, 15, &n, got);
	ASK("level 60", NEAREST, gpu, 60, &n, got);
	ASK("level -10", NEAREST, gpu, -10, &n, got);
	ASK("no count", NEAREST, gpu, NVML_TOPOLOGY_SYSTEM, NULL, got);
	n = 0;
	ASK("the same device, how many", NEAREST, gpu, NVML_TOPOLOGY_INTERNAL,
	    &n, NULL);
	SAY("the same device, how many", n);
	n = 0;
	ASK("near processor 0, how many", nvmlSystemGetTopologyGpuSet, 0, &n,
	    NULL);
	SAY("at least one", n > 0);
	n = 64;
	ASK("near processor 0", nvmlSystemGetTopologyGpuSet, 0, &n, got);
	SAY("room for so many", n);
	SAY("the first", got[0] == gpu);
	n = 0;
	ASK("near processor 9999, how many", nvmlSystemGetTopologyGpuSet, 9999,
	    &n, NULL);
	SAY("near processor 9999, how many", n);
}

#define WITHIN	nvmlDeviceGetCpuAffinityWithinScope
static void processors(void)
{
	unsigned long set[128];

	memset(set, 0x5a, sizeof(set));
	ASK("processors", nvmlDeviceGetCpuAffinity, gpu, 128, set);
	SAY("the last", set[127]);
	ASK("in no room", nvmlDeviceGetCpuAffinity, gpu, 0, set);
	ASK("without a place", nvmlDeviceGetCpuAffinity, gpu, 128, NULL);
	ASK("of the node", WITHIN, gpu, 128, set, 0);
	ASK("of the socket", WITHIN, gpu, 128, set, 1);
	SAY("there are some", !!set[0] || !!set[1]);
	ASK("of scope 7", WITHIN, gpu, 128, set, 7);
	ASK("nodes", nvmlDeviceGetMemoryAffinity, gpu, 16, set, 0);
	ASK("nodes of the socket", nvmlDeviceGetMemoryAffinity, gpu, 16, set, 1);
	ASK("nodes of scope 7", nvmlDeviceGetMemoryAffinity, gpu, 16, set, 7);
	ASK("nodes in no room", nvmlDeviceGetMemoryAffinity, gpu, 0, set, 0);
}

static void peers(void)
{
	nvmlGpuP2PStatus_t status;

	for (int i = -1; i < 7; i++) {
		status = (nvmlGpuP2PStatus_t)77;
		snprintf(text, sizeof(text), "way %d to itself", i);
		ASK(text, nvmlDeviceGetP2PStatus, gpu, gpu,
		    (nvmlGpuP2PCapsIndex_t)i, &status);
		SAY(text, status);
	}
	ASK("without a place", nvmlDeviceGetP2PStatus, gpu, gpu, 0, NULL);
	ASK("to NULL", nvmlDeviceGetP2PStatus, gpu, NULL, 0, &status);
	ASK("from NULL", nvmlDeviceGetP2PStatus, NULL, gpu, 0, &status);
}

/* Wrong arguments of what an emulated GPU does not have */
static void absent(void)
{
	nvmlGpuFabricInfoV_t fabric = { .version = 0 };
	nvmlSystemConfComputeSettings_t settings = { .version = 0 };
	nvmlFieldValue_t value = { .fieldId = 1 };

	ASK("fields, none", nvmlDeviceGetFieldValues, gpu, 0, &value);
	ASK("fields, no place", nvmlDeviceGetFieldValues, gpu, 1, NULL);
	ASK("fabric of version 0", nvmlDeviceGetGpuFabricInfoV, gpu, &fabric);
	ASK("fabric, no place", nvmlDeviceGetGpuFabricInfoV, gpu, NULL);
	ASK("confidential state, no place", nvmlSystemGetConfComputeState,
	    NULL);
	ASK("confidential settings, version 0", nvmlSystemGetConfComputeSettings,
	    &settings);
	ASK("temperature, sensor 9", nvmlDeviceGetTemperature, gpu, 9, &n);
	ASK("temperature, no place", nvmlDeviceGetTemperature, gpu, 0, NULL);
	ASK("power, no place", nvmlDeviceGetPowerUsage, gpu, NULL);
	ASK("serial number, no place", nvmlDeviceGetSerial, gpu, NULL, 30);
	ASK("parts, no place", nvmlDeviceGetMigMode, gpu, NULL, &n);
}

int main(void)
{
#define S(name) { #name, name }
	static const struct section sections[] = {
		S(before), S(versions), S(processes), S(handles), S(bus_ids),
		S(pci), S(names), S(memory), S(links), S(topology),
		S(processors), S(peers), S(absent),
	};

	return ask_all(sections, sizeof(sections) / sizeof(*sections),
		       "libnvidia-ml.so.1", start);
}
