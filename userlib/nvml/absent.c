// SPDX-License-Identifier: MIT
/*
 * What emulated GPUs do not have: arguments are checked, and the answer is
 * NVML_ERROR_NOT_SUPPORTED.
 */
#include <stdbool.h>
#include <stddef.h>

#include "internal.h"

/* @good: are the other arguments? */
static nvmlReturn_t absent(nvmlDevice_t device, bool good)
{
	struct nvmlDevice_st gpu;
	nvmlReturn_t err = nvml_gpu(device, &gpu);

	if (err)
		return err;
	return good ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

/* The same of a structure with a version */
static nvmlReturn_t absent_version(nvmlDevice_t device, const unsigned int *got,
				   unsigned int want, unsigned int or)
{
	nvmlReturn_t err = absent(device, got);

	if (err == NVML_ERROR_NOT_SUPPORTED && *got != want && *got != or)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return err;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
				      nvmlFieldValue_t *values)
{
	nvmlReturn_t err = absent(device, count > 0 && values);

	for (int i = 0; err == NVML_ERROR_NOT_SUPPORTED && i < count; i++)
		values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	return err;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
				      nvmlEnableState_t *active)
{
	(void)link;
	return absent(device, active);
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
					unsigned int *version)
{
	(void)link;
	return absent(device, version);
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device,
					   unsigned int link,
					   nvmlNvLinkCapability_t capability,
					   unsigned int *result)
{
	(void)link;
	return absent(device, result &&
		      (unsigned int)capability < NVML_NVLINK_CAP_COUNT);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
						 unsigned int link,
						 nvmlPciInfo_t *pci)
{
	(void)link;
	return absent(device, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device,
					      unsigned int link,
					      nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device,
					nvmlGpuFabricInfo_t *info)
{
	return absent(device, info);
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
					 nvmlGpuFabricInfoV_t *info)
{
	return absent_version(device, info ? &info->version : NULL,
			      nvmlGpuFabricInfo_v2, nvmlGpuFabricInfo_v3);
}

nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device,
				       nvmlPlatformInfo_t *info)
{
	/* A real one takes any version, and says which it gives */
	return absent(device, info);
}

nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	return state ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t
nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	if (!settings)
		return NVML_ERROR_INVALID_ARGUMENT;
	return settings->version == nvmlSystemConfComputeSettings_v1 ?
	       NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
				      nvmlTemperatureSensors_t sensor,
				      unsigned int *degrees)
{
	return absent(device, degrees &&
		      (unsigned int)sensor < NVML_TEMPERATURE_COUNT);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device,
				     unsigned int *milliwatts)
{
	return absent(device, milliwatts);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
					   nvmlUtilization_t *rates)
{
	return absent(device, rates);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial,
				 unsigned int length)
{
	(void)length;
	return absent(device, serial);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device,
					  nvmlEnableState_t *mode)
{
	return absent(device, mode);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
				  unsigned int *pending)
{
	return absent(device, current && pending);
}
