// SPDX-License-Identifier: MIT
/* What the library takes from /sys, here from the records of machines. */
#include <string.h>

#include "nvml_unit.h"

void t_pci(void)
{
	nvmlPciInfoExt_t ext = { .version = nvmlPciInfoExt_v1 };
	nvmlDevice_t gpu[4];
	nvmlPciInfo_t pci;

	start(&four, gpu);
	OK(nvmlDeviceGetPciInfo_v3(gpu[0], &pci));
	CHECK(!strcmp(pci.busId, "00000000:03:01.0"));
	CHECK(!strcmp(pci.busIdLegacy, "0000:03:01.0"));
	CHECK(pci.domain == 0 && pci.bus == 3 && pci.device == 1);
	CHECK(pci.pciDeviceId == 0x9e711234 && pci.pciSubSystemId == 0x11001af4);
	/* what the structures of before had not is not written */
	memset(&pci, 0x5a, sizeof(pci));
	OK(nvmlDeviceGetPciInfo_v2(gpu[0], &pci));
	CHECK(pci.pciSubSystemId == 0x11001af4 && pci.busId[0] == 0x5a);
	memset(&pci, 0x5a, sizeof(pci));
	OK(nvmlDeviceGetPciInfo(gpu[0], &pci));
	CHECK(pci.pciDeviceId == 0x9e711234 &&
	      pci.pciSubSystemId == 0x5a5a5a5a);
	CHECK(!strcmp(pci.busIdLegacy, "0000:03:01.0"));
	IS(nvmlDeviceGetPciInfo_v3(gpu[0], NULL), INVALID);
	OK(nvmlDeviceGetPciInfoExt(gpu[0], &ext));
	CHECK(ext.baseClass == 3 && ext.subClass == 2 && ext.bus == 3);
	CHECK(!strcmp(ext.busId, "00000000:03:01.0"));
	ext.version++;
	IS(nvmlDeviceGetPciInfoExt(gpu[0], &ext),
	   NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	IS(nvmlDeviceGetPciInfoExt(gpu[0], NULL), INVALID);
	/* not in this machine */
	on(no_driver);
	IS(nvmlDeviceGetPciInfo_v3(gpu[0], &pci), NVML_ERROR_GPU_IS_LOST);
}

void t_links(void)
{
	nvmlDevice_t gpu[4];
	unsigned int n = 77;

	start(&four, gpu);
	OK(nvmlDeviceGetCurrPcieLinkGeneration(gpu[0], &n));
	CHECK(n == 1);
	OK(nvmlDeviceGetGpuMaxPcieLinkGeneration(gpu[0], &n));
	CHECK(n == 5);
	OK(nvmlDeviceGetMaxPcieLinkGeneration(gpu[0], &n));
	CHECK(n == 3);
	OK(nvmlDeviceGetCurrPcieLinkWidth(gpu[0], &n));
	CHECK(n == 4);
	OK(nvmlDeviceGetMaxPcieLinkWidth(gpu[0], &n));
	CHECK(n == 8);
	IS(nvmlDeviceGetMaxPcieLinkWidth(gpu[0], NULL), INVALID);
	/* "Unknown", and nothing at all */
	n = 77;
	IS(nvmlDeviceGetCurrPcieLinkGeneration(gpu[1], &n), ABSENT);
	IS(nvmlDeviceGetCurrPcieLinkWidth(gpu[1], &n), ABSENT);
	IS(nvmlDeviceGetMaxPcieLinkGeneration(gpu[2], &n), ABSENT);
	CHECK(n == 77);
}

static void levels(const int want[4][4])
{
	nvmlGpuTopologyLevel_t level;
	nvmlDevice_t gpu[4];

	for (unsigned int i = 0; i < 4; i++)
		OK(nvmlDeviceGetHandleByIndex_v2(i, &gpu[i]));
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			if (i == j)
				continue;
			OK(nvmlDeviceGetTopologyCommonAncestor(gpu[i], gpu[j],
							       &level));
			CHECK((int)level == want[i][j]);
		}
	IS(nvmlDeviceGetTopologyCommonAncestor(gpu[0], gpu[1], NULL), INVALID);
}

void t_switches(void)
{
	static const int want[4][4] = {
		{ 0, 10, 20, 50 },
		{ 10, 0, 20, 50 },
		{ 20, 20, 0, 50 },
		{ 50, 50, 50, 0 },
	};

	start(&four, NULL);
	levels(want);
}

void t_bridges(void)
{
	static const int want[4][4] = {
		{ 0, 30, 40, 50 },
		{ 30, 0, 40, 50 },
		{ 40, 40, 0, 50 },
		{ 50, 50, 50, 0 },
	};

	start(&four, NULL);
	on(bridges);
	levels(want);
}

void t_nearest(void)
{
	nvmlDevice_t gpu[4], got[4] = { NULL };
	unsigned int n = 0;

	start(&four, gpu);
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[2], NVML_TOPOLOGY_MULTIPLE, &n,
					    NULL));
	CHECK(n == 2);
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[2], NVML_TOPOLOGY_MULTIPLE, &n,
					    got));
	CHECK(n == 2 && got[0] == gpu[0] && got[1] == gpu[1] && !got[2]);
	n = 1;
	got[1] = NULL;
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[3], NVML_TOPOLOGY_SYSTEM, &n,
					    got));
	CHECK(n == 1 && got[0] == gpu[0] && !got[1]);
	n = 4;
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[0], NVML_TOPOLOGY_MULTIPLE, &n,
					    got));
	CHECK(n == 1 && got[0] == gpu[2]);
	n = 4;
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[0], NVML_TOPOLOGY_INTERNAL, &n,
					    got));
	CHECK(n == 0);
	n = 4;
	OK(nvmlDeviceGetTopologyNearestGpus(gpu[3], NVML_TOPOLOGY_NODE, &n,
					    got));
	CHECK(n == 0);
	IS(nvmlDeviceGetTopologyNearestGpus(gpu[3], NVML_TOPOLOGY_NODE, NULL,
					    got), INVALID);
	n = 1;
	IS(nvmlDeviceGetTopologyNearestGpus(gpu[3], NVML_TOPOLOGY_NODE, &n,
					    NULL), INVALID);
	IS(nvmlDeviceGetTopologyNearestGpus(gpu[3], (nvmlGpuTopologyLevel_t)60,
					    &n, got), INVALID);
}

void t_processors(void)
{
	unsigned long set[3] = { 9, 9, 9 };
	nvmlDevice_t gpu[4], got[4];
	unsigned int n = 0;

	start(&four, gpu);
	OK(nvmlDeviceGetCpuAffinity(gpu[0], 3, set));
	CHECK(set[0] == 0xf && set[1] == 0 && set[2] == 0);
	OK(nvmlDeviceGetCpuAffinity(gpu[3], 2, set));
	CHECK(set[0] == 0x10 && set[1] == 3);
	set[0] = 9;
	IS(nvmlDeviceGetCpuAffinity(gpu[3], 1, set),
	   NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK(set[0] == 9);
	IS(nvmlDeviceGetCpuAffinity(gpu[0], 0, set), INVALID);
	IS(nvmlDeviceGetCpuAffinity(gpu[0], 1, NULL), INVALID);
	IS(nvmlDeviceGetCpuAffinityWithinScope(gpu[0], 1, set, 2), INVALID);
	/* two sockets, the first one with two nodes */
	OK(nvmlDeviceGetCpuAffinityWithinScope(gpu[0], 3, set,
		NVML_AFFINITY_SCOPE_SOCKET));
	CHECK(set[0] == 0xff0f && set[1] == 0 && set[2] == 0);
	OK(nvmlDeviceGetMemoryAffinity(gpu[0], 1, set,
				       NVML_AFFINITY_SCOPE_SOCKET));
	CHECK(set[0] == 5);
	/* this one's socket is not described */
	IS(nvmlDeviceGetMemoryAffinity(gpu[3], 1, set,
				       NVML_AFFINITY_SCOPE_SOCKET), ABSENT);
	OK(nvmlDeviceGetMemoryAffinity(gpu[3], 1, set, 0));
	CHECK(set[0] == 2);
	OK(nvmlDeviceGetMemoryAffinity(gpu[0], 1, set, 0));
	CHECK(set[0] == 1);
	/* -1: the system does not say */
	IS(nvmlDeviceGetMemoryAffinity(gpu[2], 1, set, 0), ABSENT);
	IS(nvmlDeviceGetMemoryAffinity(gpu[0], 1, set, 2), INVALID);
	OK(nvmlSystemGetTopologyGpuSet(65, &n, NULL));
	CHECK(n == 1);
	OK(nvmlSystemGetTopologyGpuSet(65, &n, got));
	CHECK(n == 1 && got[0] == gpu[3]);
	n = 0;
	OK(nvmlSystemGetTopologyGpuSet(3, &n, NULL));
	CHECK(n == 3);
	n = 0;
	OK(nvmlSystemGetTopologyGpuSet(8192, &n, NULL));
	CHECK(n == 0);
	IS(nvmlSystemGetTopologyGpuSet(0, NULL, got), INVALID);
}
