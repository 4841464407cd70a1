// SPDX-License-Identifier: MIT
/*
 * Processes: which have memory of a GPU, as the driver tells in sysfs, and their
 * names.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define MAX_PROCESSES	256	/* more than the driver lists */
#define NO_INSTANCE	0xffffffffu

struct processes {
	nvmlProcessInfo_t info[MAX_PROCESSES];
	unsigned int n;
};

/*
 * A line each: the process and its bytes.  Number 0 is those that this one's
 * namespace does not have.
 */
static nvmlReturn_t parse(const char *text, struct processes *all)
{
	unsigned long long size;
	unsigned int pid;
	int len;

	all->n = 0;
	while (*text) {
		if (sscanf(text, "%u %llu%n", &pid, &size, &len) != 2 ||
		    (text[len] && text[len] != '\n') || all->n == MAX_PROCESSES)
			return NVML_ERROR_UNKNOWN;
		text += text[len] ? len + 1 : len;
		if (pid)
			all->info[all->n++] = (nvmlProcessInfo_t){
				.pid = pid, .usedGpuMemory = size,
				.gpuInstanceId = NO_INSTANCE,
				.computeInstanceId = NO_INSTANCE,
			};
	}
	return NVML_SUCCESS;
}

/* Those of now.  @count: in: room for so many; out: how many there are */
static nvmlReturn_t look(nvmlDevice_t device, unsigned int *count,
			 const void *infos, struct processes *all)
{
	struct pln_gpu_query now;
	nvmlReturn_t err = nvml_now(device, count, &now);
	char text[4096 + 1];
	unsigned int room;

	if (!err)
		err = nvml_attribute(&now, "processes", text, sizeof(text));
	if (!err)
		err = parse(text, all);
	if (err)
		return err;
	room = *count;
	*count = all->n;
	if (all->n > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	return all->n && !infos ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
						     unsigned int *count,
						     nvmlProcessInfo_t *infos)
{
	struct processes all;
	nvmlReturn_t err = look(device, count, infos, &all);

	if (!err && all.n)
		memcpy(infos, all.info, all.n * sizeof(*infos));
	return err;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
						     unsigned int *count,
						     nvmlProcessInfo_v2_t *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device,
						  unsigned int *count,
						  nvmlProcessInfo_v1_t *infos)
{
	struct processes all;
	nvmlReturn_t err = look(device, count, infos, &all);

	for (unsigned int i = 0; !err && i < all.n; i++)
		infos[i] = (nvmlProcessInfo_v1_t){
			.pid = all.info[i].pid,
			.usedGpuMemory = all.info[i].usedGpuMemory,
		};
	return err;
}

/* Nobody draws with these GPUs */
static nvmlReturn_t none(nvmlDevice_t device, unsigned int *count)
{
	struct pln_gpu_query now;
	nvmlReturn_t err = nvml_now(device, count, &now);

	if (!err)
		*count = 0;
	return err;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device,
						      unsigned int *count,
						      nvmlProcessInfo_t *infos)
{
	(void)infos;
	return none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device,
						      unsigned int *count,
						      nvmlProcessInfo_v2_t *infos)
{
	(void)infos;
	return none(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device,
						   unsigned int *count,
						   nvmlProcessInfo_v1_t *infos)
{
	(void)infos;
	return none(device, count);
}

/* Up to @size - 1 bytes of a file of a process, up to its first NUL */
static nvmlReturn_t of_process(unsigned int pid, const char *file, char *out,
			       size_t size)
{
	nvmlReturn_t err;
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? NVML_ERROR_NOT_FOUND :
					 nvml_errno(errno);
	n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	err = ferror(f) ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;	/* it has ended */
	fclose(f);
	return err;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name,
				      unsigned int length)
{
	nvmlReturn_t err = nvml_ready();
	char text[4096];

	if (err)
		return err;
	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	err = of_process(pid, "cmdline", text, sizeof(text));
	if (!err && !text[0]) {	/* a thread of the kernel */
		err = of_process(pid, "comm", text, sizeof(text));
		text[err ? 0 : strcspn(text, "\n")] = '\0';
	}
	if (!err)
		snprintf(name, length, "%s", text);
	return err;
}
