// SPDX-License-Identifier: MIT
/*
 * GPUs: handles, names, memory, and which reach each other.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* ---- handles ---- */

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index,
					   nvmlDevice_t *device)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	return device ? nvml_nth(index, NULL, device) :
			NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index,
					nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void uuid_text(const struct nvmlDevice_st *gpu,
		      char out[4 + DRV_UUID_TEXT])
{
	memcpy(out, "GPU-", 4);
	drv_uuid_text(gpu->info.uuid, out + 4);
}

/* By @id if it is not NULL, else by @uuid */
static nvmlReturn_t search(const unsigned int *id, const char *uuid,
			   nvmlDevice_t *device)
{
	char text[4 + DRV_UUID_TEXT];
	struct nvmlDevice_st gpu;
	nvmlDevice_t handle;

	for (unsigned int i = 0; !nvml_nth(i, &gpu, &handle); i++) {
		uuid_text(&gpu, text);
		if (id ? drv_bus_id_is(id, &gpu.info) :
			 !strcmp(uuid, text) || !strcmp(uuid, text + 4)) {
			*device = handle;
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id,
					      nvmlDevice_t *device)
{
	nvmlReturn_t err = nvml_ready();
	unsigned int parts[4];

	if (err)
		return err;
	if (!id || !device || !drv_bus_id_parse(id, parts) || parts[3])
		return NVML_ERROR_INVALID_ARGUMENT;
	return search(parts, NULL, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	return search(NULL, uuid, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial,
					 nvmlDevice_t *device)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	return serial && device ? NVML_ERROR_NOT_FOUND :
				  NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- what is always the same ---- */

/* The GPU behind @device; INVALID_ARGUMENT, too, if @out is NULL */
static nvmlReturn_t known(nvmlDevice_t device, const void *out,
			  struct nvmlDevice_st *gpu)
{
	nvmlReturn_t err = nvml_gpu(device, gpu);

	return !err && !out ? NVML_ERROR_INVALID_ARGUMENT : err;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, index, &gpu);

	if (!err)
		*index = gpu.index;
	return err;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, minor, &gpu);

	if (!err)
		*minor = gpu.minor;
	return err;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name,
			       unsigned int length)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, name, &gpu);

	return err ? err : nvml_text(DRV_GPU_NAME, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid,
			       unsigned int length)
{
	char text[4 + DRV_UUID_TEXT];
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, uuid, &gpu);

	if (err)
		return err;
	uuid_text(&gpu, text);
	return nvml_text(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major,
						int *minor)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, minor ? major : NULL, &gpu);

	if (!err) {
		*major = DRV_GPU_CC_MAJOR;
		*minor = DRV_GPU_CC_MINOR;
	}
	return err;
}

/* ---- what changes ---- */

nvmlReturn_t nvml_now(nvmlDevice_t device, const void *out,
		      struct pln_gpu_query *now)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, out, &gpu);

	if (!err)
		err = nvml_errno(drv_gpu_query(gpu.minor, now));
	if (!err && memcmp(now->uuid, gpu.info.uuid, sizeof(now->uuid)))
		err = NVML_ERROR_GPU_IS_LOST;
	return err;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct pln_gpu_query now;
	nvmlReturn_t err = nvml_now(device, memory, &now);

	if (!err)
		*memory = (nvmlMemory_t){
			.total = now.vram_size, .free = now.vram_free,
			.used = now.vram_size - now.vram_free,
		};
	return err;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device,
					nvmlMemory_v2_t *memory)
{
	struct pln_gpu_query now;
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = known(device, memory, &gpu);

	if (!err && memory->version != nvmlMemory_v2)
		err = NVML_ERROR_FUNCTION_NOT_FOUND;
	if (!err)
		err = nvml_now(device, memory, &now);
	if (!err)
		*memory = (nvmlMemory_v2_t){
			.version = nvmlMemory_v2, .total = now.vram_size,
			.free = now.vram_free,
			.used = now.vram_size - now.vram_free,
		};
	return err;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device,
					 nvmlBAR1Memory_t *memory)
{
	struct pln_gpu_query now;
	nvmlReturn_t err = nvml_now(device, memory, &now);

	if (!err)
		*memory = (nvmlBAR1Memory_t){
			.bar1Total = now.bar1_size, .bar1Free = now.bar1_free,
			.bar1Used = now.bar1_size - now.bar1_free,
		};
	return err;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
				    nvmlGpuP2PCapsIndex_t index,
				    nvmlGpuP2PStatus_t *status)
{
	struct nvmlDevice_st a, b;
	nvmlReturn_t err = known(device1, status, &a);

	if (!err)
		err = nvml_gpu(device2, &b);
	if (err)
		return err;
	switch ((int)index) {
	case NVML_P2P_CAPS_INDEX_READ:
	case NVML_P2P_CAPS_INDEX_WRITE:
	case NVML_P2P_CAPS_INDEX_PCI:
		*status = a.index == b.index ? NVML_P2P_STATUS_NOT_SUPPORTED :
			  drv_gpu_reachable(&b.info) ? NVML_P2P_STATUS_OK :
			  NVML_P2P_STATUS_GPU_NOT_SUPPORTED;
		return NVML_SUCCESS;
	case NVML_P2P_CAPS_INDEX_NVLINK:
	case NVML_P2P_CAPS_INDEX_ATOMICS:
		*status = NVML_P2P_STATUS_NOT_SUPPORTED;
		return NVML_SUCCESS;
	default:
		*status = NVML_P2P_STATUS_OK;	/* NVIDIA's says so, too */
		return NVML_SUCCESS;
	}
}
