// SPDX-License-Identifier: MIT
/*
 * What /sys says about GPUs, by the readers of userlib/core: ids, links, where
 * they are.  A call opens what it reads and closes it, nothing is kept.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "topo.h"

/* Of a reader of core: a negative errno.  What is not there, nobody knows. */
static nvmlReturn_t of_system(int r)
{
	switch (r) {
	case -ENOENT:
	case -ENODATA:
		return NVML_ERROR_NOT_SUPPORTED;
	case -ENODEV:
		return NVML_ERROR_UNKNOWN;
	default:
		return r < 0 ? nvml_errno(-r) : NVML_SUCCESS;
	}
}

/* An attribute of a GPU as text */
static nvmlReturn_t attribute(struct facts *facts,
			      const struct pln_gpu_query *info,
			      const char *name, char *text, size_t size)
{
	char id[DRV_BUS_ID_TEXT], path[128];

	drv_bus_id_text(info, id);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", id, name);
	return of_system(facts_text(facts, path, text, size));
}

nvmlReturn_t nvml_attribute(const struct pln_gpu_query *gpu, const char *name,
			    char *text, size_t size)
{
	struct facts *facts;
	nvmlReturn_t err = of_system(facts_open(&facts, NULL));

	if (err)
		return err;
	err = attribute(facts, gpu, name, text, size);
	facts_close(facts);
	return err;
}

/* ---- ids ---- */

static nvmlReturn_t number(struct facts *facts,
			   const struct pln_gpu_query *info, const char *name,
			   unsigned long *out)
{
	char text[64], *end;
	nvmlReturn_t err = attribute(facts, info, name, text, sizeof(text));

	if (err)
		return err;
	errno = 0;
	*out = strtoul(text, &end, 16);
	return end == text || *end || errno ? NVML_ERROR_UNKNOWN :
					      NVML_SUCCESS;
}

static nvmlReturn_t ids(nvmlDevice_t device, const void *out,
			struct pln_gpu_query *info, nvmlPciInfoExt_t *pci)
{
	static const char *const names[] = {
		"device", "vendor", "subsystem_device", "subsystem_vendor",
		"class",
	};
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = nvml_gpu(device, &gpu);
	unsigned long value[5];
	struct facts *facts;

	if (err)
		return err;
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	*info = gpu.info;
	err = of_system(facts_open(&facts, NULL));
	if (err)
		return err;
	for (int i = 0; i < 5 && !err; i++)
		err = number(facts, info, names[i], &value[i]);
	facts_close(facts);
	/* the GPU has no place in /sys any more */
	if (err == NVML_ERROR_NOT_SUPPORTED)
		err = NVML_ERROR_GPU_IS_LOST;
	if (err)
		return err;
	*pci = (nvmlPciInfoExt_t){
		.version = nvmlPciInfoExt_v1,
		.domain = info->pci_domain, .bus = info->pci_bus,
		.device = info->pci_devfn >> 3,
		.pciDeviceId = (unsigned int)(value[0] << 16 | value[1]),
		.pciSubSystemId = (unsigned int)(value[2] << 16 | value[3]),
		.baseClass = (unsigned int)(value[4] >> 16 & 0xff),
		.subClass = (unsigned int)(value[4] >> 8 & 0xff),
	};
	snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.%X",
		 pci->domain, pci->bus, pci->device, info->pci_devfn & 7);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	struct pln_gpu_query info;
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = nvml_gpu(device, &gpu);

	if (!err && pci && pci->version != nvmlPciInfoExt_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return err ? err : ids(device, pci, &info, pci);
}

/* Only the first @size bytes: the structure was shorter */
static nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci,
			     size_t size)
{
	struct pln_gpu_query info;
	nvmlPciInfoExt_t ext;
	nvmlReturn_t err = ids(device, pci, &info, &ext);
	nvmlPciInfo_t all = { .domain = 0 };

	if (err)
		return err;
	all.domain = ext.domain;
	all.bus = ext.bus;
	all.device = ext.device;
	all.pciDeviceId = ext.pciDeviceId;
	all.pciSubSystemId = ext.pciSubSystemId;
	memcpy(all.busId, ext.busId, sizeof(all.busId));
	/* no room for a domain of more than four digits, of virtual bridges */
	snprintf(all.busIdLegacy, sizeof(all.busIdLegacy), "%s",
		 all.busId + (all.domain > 0xffff ? 0 : 4));
	memcpy(pci, &all, size);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_info(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_info(device, pci, offsetof(nvmlPciInfo_t, busId));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_info(device, pci, sizeof(*pci));
}

/* ---- the tree ---- */

struct machine {
	struct facts *facts;
	struct topo *topo;
};

static nvmlReturn_t look(struct machine *m)
{
	int r = facts_open(&m->facts, NULL);

	if (r)
		return of_system(r);
	r = topo_build(&m->topo, m->facts);
	if (r)
		facts_close(m->facts);
	return of_system(r);
}

static void look_away(struct machine *m)
{
	topo_free(m->topo);
	facts_close(m->facts);
}

/* Index of the device in the tree, -1: it is not there */
static int place(const struct topo *t, const struct pln_gpu_query *info)
{
	char id[DRV_BUS_ID_TEXT];

	drv_bus_id_text(info, id);
	for (int i = 0; i < t->devs; i++)
		if (!strcmp(t->node[t->dev[i].node].address, id))
			return i;
	return -1;
}

/* 16.0 GT/s PCIe is generation 4; 0: "Unknown" */
static unsigned int generation(const char *speed)
{
	static const unsigned long gts[] = { 2, 5, 8, 16, 32, 64 };
	unsigned long n = strtoul(speed, NULL, 10);	/* of 2.5 the 2 */

	for (unsigned int i = 0; i < sizeof(gts) / sizeof(gts[0]); i++)
		if (n == gts[i])
			return i + 1;
	return 0;
}

enum link { NOW, GPU_MAX, MAX };

static unsigned int generation_of(const struct topo_node *n, enum link which)
{
	return generation(which == NOW ? n->speed : n->max_speed);
}

static unsigned int width_of(const struct topo_node *n, enum link which)
{
	return (unsigned int)(which == NOW ? n->width : n->max_width);
}

static nvmlReturn_t link_fact(nvmlDevice_t device, unsigned int *out,
			      enum link which,
			      unsigned int (*get)(const struct topo_node *,
						  enum link))
{
	unsigned int value = 0, above;
	const struct topo_node *node;
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = nvml_gpu(device, &gpu);
	struct machine m;
	int i;

	if (err)
		return err;
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	err = look(&m);
	if (err)
		return err;
	i = place(m.topo, &gpu.info);
	if (i < 0) {
		err = NVML_ERROR_GPU_IS_LOST;
	} else {
		node = &m.topo->node[m.topo->dev[i].node];
		value = get(node, which);
		if (which == MAX && node->parent >= 0) {
			above = get(&m.topo->node[node->parent], which);
			if (above < value)
				value = above;
		}
		if (!value)
			err = NVML_ERROR_NOT_SUPPORTED;
	}
	look_away(&m);
	if (!err)
		*out = value;
	return err;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device,
						 unsigned int *out)
{
	return link_fact(device, out, NOW, generation_of);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device,
						unsigned int *out)
{
	return link_fact(device, out, MAX, generation_of);
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device,
						   unsigned int *out)
{
	return link_fact(device, out, GPU_MAX, generation_of);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device,
					    unsigned int *out)
{
	return link_fact(device, out, NOW, width_of);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device,
					   unsigned int *out)
{
	return link_fact(device, out, MAX, width_of);
}

/* ---- how far apart ---- */

static nvmlReturn_t level_of(const struct topo *t,
			     const struct pln_gpu_query *a,
			     const struct pln_gpu_query *b,
			     nvmlGpuTopologyLevel_t *level)
{
	static const nvmlGpuTopologyLevel_t levels[] = {
		[PLN_RELATION_SELF] = NVML_TOPOLOGY_INTERNAL,
		[PLN_RELATION_PIX] = NVML_TOPOLOGY_SINGLE,
		[PLN_RELATION_PXB] = NVML_TOPOLOGY_MULTIPLE,
		[PLN_RELATION_PHB] = NVML_TOPOLOGY_HOSTBRIDGE,
		[PLN_RELATION_NODE] = NVML_TOPOLOGY_NODE,
		[PLN_RELATION_SYS] = NVML_TOPOLOGY_SYSTEM,
	};
	int i = place(t, a), j = place(t, b);
	struct pln_topo_pair pair;

	if (i < 0 || j < 0)
		return NVML_ERROR_GPU_IS_LOST;
	topo_pair(t, i, j, &pair);
	*level = levels[pair.relation];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1,
						 nvmlDevice_t device2,
						 nvmlGpuTopologyLevel_t *level)
{
	struct nvmlDevice_st a, b;
	nvmlReturn_t err = nvml_gpu(device1, &a);
	struct machine m;

	if (!err)
		err = nvml_gpu(device2, &b);
	if (err)
		return err;
	if (!level)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (a.index == b.index)
		return NVML_ERROR_NOT_SUPPORTED;
	err = look(&m);
	if (err)
		return err;
	err = level_of(m.topo, &a.info, &b.info, level);
	look_away(&m);
	return err;
}

/*
 * Gives handles to a caller that has room for @count, or asks how many, which is
 * 0: how many there are, or were given
 */
static unsigned int give(const nvmlDevice_t *found, unsigned int n,
			 unsigned int count, nvmlDevice_t *devices)
{
	if (count && n > count)
		n = count;
	if (count)
		memcpy(devices, found, n * sizeof(*found));
	return n;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
					      nvmlGpuTopologyLevel_t level,
					      unsigned int *count,
					      nvmlDevice_t *devices)
{
	nvmlDevice_t found[DRV_MAX_DEVICES], handle;
	struct nvmlDevice_st gpu, other;
	nvmlReturn_t err = nvml_gpu(device, &gpu);
	nvmlGpuTopologyLevel_t away;
	unsigned int n = 0;
	struct machine m;

	if (err)
		return err;
	if (!count || (*count && !devices) || (int)level < 0 ||
	    level > NVML_TOPOLOGY_SYSTEM || level % NVML_TOPOLOGY_SINGLE)
		return NVML_ERROR_INVALID_ARGUMENT;
	err = look(&m);
	if (err)
		return err;
	for (unsigned int i = 0; !nvml_nth(i, &other, &handle); i++)
		if (i != gpu.index &&
		    !level_of(m.topo, &gpu.info, &other.info, &away) &&
		    away == level)
			found[n++] = handle;
	look_away(&m);
	*count = give(found, n, *count, devices);
	return NVML_SUCCESS;
}

/* ---- near which processors ---- */

#define SET_BITS	(8 * sizeof(unsigned long))
#define SET_SIZE	(8192 / SET_BITS)	/* processors that Linux has */

static bool has(const unsigned long *set, unsigned int bit)
{
	return set[bit / SET_BITS] >> bit % SET_BITS & 1;
}

/* Adds the bits of a list such as "0-3,8" to @set of SET_SIZE elements */
static nvmlReturn_t parse_list(const char *list, unsigned long *set)
{
	unsigned long first, last;
	char *end;

	while (*list) {
		first = last = strtoul(list, &end, 10);
		if (end != list && *end == '-') {
			list = end + 1;
			last = strtoul(list, &end, 10);
		}
		if (end == list || (*end && *end != ',') || last < first ||
		    last / SET_BITS >= SET_SIZE)
			return NVML_ERROR_UNKNOWN;
		for (; first <= last; first++)
			set[first / SET_BITS] |= 1ul << first % SET_BITS;
		list = *end ? end + 1 : end;
	}
	return NVML_SUCCESS;
}

/* For a caller that has room for @size elements */
static nvmlReturn_t give_set(const unsigned long *set, unsigned long *out,
			     unsigned int size)
{
	for (unsigned int i = size; i < SET_SIZE; i++)
		if (set[i])
			return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < size; i++)
		out[i] = i < SET_SIZE ? set[i] : 0;
	return NVML_SUCCESS;
}

/* Adds what a file has as a list */
__attribute__((format(printf, 3, 4)))
static nvmlReturn_t add_list(struct facts *facts, unsigned long *set,
			     const char *format, ...)
{
	char path[128], list[4096];
	nvmlReturn_t err;
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	err = of_system(facts_text(facts, path, list, sizeof(list)));
	return err ? err : parse_list(list, set);
}

/* The processors near a GPU, or all of their sockets */
static nvmlReturn_t near_gpu(struct facts *facts,
			     const struct pln_gpu_query *info,
			     nvmlAffinityScope_t scope, unsigned long *set)
{
	unsigned long node[SET_SIZE] = { 0 };
	char list[4096];
	nvmlReturn_t err = attribute(facts, info, "local_cpulist", list,
				     sizeof(list));

	if (!err)
		err = parse_list(list, node);
	memcpy(set, node, sizeof(node));
	for (unsigned int cpu = 0; scope == NVML_AFFINITY_SCOPE_SOCKET && !err &&
	     cpu < SET_SIZE * SET_BITS; cpu++)
		if (has(node, cpu))
			err = add_list(facts, set, "/sys/devices/system/cpu/"
				       "cpu%u/topology/package_cpus_list", cpu);
	return err;
}

/* The NUMA node of a GPU, or all nodes that have processors of its sockets */
static nvmlReturn_t nodes_near(struct facts *facts,
			       const struct pln_gpu_query *info,
			       nvmlAffinityScope_t scope, unsigned long *set)
{
	unsigned long cpus[SET_SIZE], nodes[SET_SIZE] = { 0 };
	char text[32];
	nvmlReturn_t err = attribute(facts, info, "numa_node", text,
				     sizeof(text));

	if (!err && text[0] == '-')	/* -1: the system does not say */
		err = NVML_ERROR_NOT_SUPPORTED;
	if (!err)
		err = parse_list(text, set);
	if (err || scope == NVML_AFFINITY_SCOPE_NODE)
		return err;
	err = near_gpu(facts, info, scope, cpus);
	if (!err)
		err = add_list(facts, nodes, "/sys/devices/system/node/online");
	for (unsigned int i = 0; !err && i < SET_SIZE * SET_BITS; i++) {
		unsigned long own[SET_SIZE] = { 0 };

		if (!has(nodes, i))
			continue;
		err = add_list(facts, own,
			       "/sys/devices/system/node/node%u/cpulist", i);
		for (unsigned int j = 0; j < SET_SIZE; j++)
			if (own[j] & cpus[j])
				set[i / SET_BITS] |= 1ul << i % SET_BITS;
	}
	return err;
}

typedef nvmlReturn_t near_fn(struct facts *facts,
			     const struct pln_gpu_query *info,
			     nvmlAffinityScope_t scope, unsigned long *set);

static nvmlReturn_t affinity(nvmlDevice_t device, unsigned int size,
			     unsigned long *out, nvmlAffinityScope_t scope,
			     near_fn *near)
{
	unsigned long set[SET_SIZE] = { 0 };
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = nvml_gpu(device, &gpu);
	struct facts *facts;

	if (err)
		return err;
	if (!size || !out || scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	err = of_system(facts_open(&facts, NULL));
	if (err)
		return err;
	err = near(facts, &gpu.info, scope, set);
	facts_close(facts);
	return err ? err : give_set(set, out, size);
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device,
						 unsigned int size,
						 unsigned long *set,
						 nvmlAffinityScope_t scope)
{
	return affinity(device, size, set, scope, near_gpu);
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size,
				      unsigned long *set)
{
	return nvmlDeviceGetCpuAffinityWithinScope(device, size, set,
						   NVML_AFFINITY_SCOPE_NODE);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
					 unsigned long *set,
					 nvmlAffinityScope_t scope)
{
	return affinity(device, size, set, scope, nodes_near);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
					 nvmlDevice_t *devices)
{
	nvmlDevice_t found[DRV_MAX_DEVICES], handle;
	nvmlReturn_t err = nvml_ready();
	struct nvmlDevice_st gpu;
	unsigned int n = 0;
	struct facts *facts;

	if (err)
		return err;
	if (!count || (*count && !devices))
		return NVML_ERROR_INVALID_ARGUMENT;
	err = of_system(facts_open(&facts, NULL));
	if (err)
		return err;
	for (unsigned int i = 0; !err && !nvml_nth(i, &gpu, &handle); i++) {
		unsigned long set[SET_SIZE] = { 0 };

		err = near_gpu(facts, &gpu.info, NVML_AFFINITY_SCOPE_NODE, set);
		if (!err && cpu < SET_SIZE * SET_BITS && has(set, cpu))
			found[n++] = handle;
	}
	facts_close(facts);
	if (err)
		return err;
	n = give(found, n, *count, devices);
	if (!*count)
		*count = n;	/* else it is the room, and stays */
	return NVML_SUCCESS;
}
