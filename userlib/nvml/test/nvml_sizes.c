// SPDX-License-Identifier: MIT
/*
 * Print the numbers, sizes and offsets of our header as assertions, to be compiled
 * behind another nvml.h; those that the types of go-nvml give are asserted here.
 */
#include <stddef.h>
#include <stdio.h>

#include "nvml.h"

/* Facts: of x86-64, from the fields that the bindings list */
#define SIZES(X) \
	X(nvmlPciInfo_t, 68) \
	X(nvmlPciInfoExt_v1_t, 64) \
	X(nvmlMemory_t, 24) \
	X(nvmlMemory_v2_t, 40) \
	X(nvmlBAR1Memory_t, 24) \
	X(nvmlProcessInfo_v1_t, 16) \
	X(nvmlProcessInfo_v2_t, 24) \
	X(nvmlProcessInfo_t, 24) \
	X(nvmlFieldValue_t, 40) \
	X(nvmlValue_t, 8) \
	X(nvmlGpuFabricInfo_t, 28) \
	X(nvmlGpuFabricInfo_v2_t, 36) \
	X(nvmlGpuFabricInfo_v3_t, 40) \
	X(nvmlPlatformInfo_v2_t, 44) \
	X(nvmlConfComputeSystemState_t, 12) \
	X(nvmlSystemConfComputeSettings_v1_t, 20) \
	X(nvmlUtilization_t, 8) \
	X(nvmlReturn_t, 4) \
	X(nvmlDevice_t, 8)

#define OFFSETS(X) \
	X(nvmlPciInfo_t, domain, 16) \
	X(nvmlPciInfo_t, pciDeviceId, 28) \
	X(nvmlPciInfo_t, pciSubSystemId, 32) \
	X(nvmlPciInfo_t, busId, 36) \
	X(nvmlPciInfoExt_v1_t, baseClass, 24) \
	X(nvmlPciInfoExt_v1_t, busId, 32) \
	X(nvmlMemory_t, free, 8) \
	X(nvmlMemory_t, used, 16) \
	X(nvmlMemory_v2_t, total, 8) \
	X(nvmlMemory_v2_t, reserved, 16) \
	X(nvmlMemory_v2_t, free, 24) \
	X(nvmlMemory_v2_t, used, 32) \
	X(nvmlBAR1Memory_t, bar1Free, 8) \
	X(nvmlBAR1Memory_t, bar1Used, 16) \
	X(nvmlProcessInfo_v2_t, usedGpuMemory, 8) \
	X(nvmlProcessInfo_v2_t, gpuInstanceId, 16) \
	X(nvmlFieldValue_t, timestamp, 8) \
	X(nvmlFieldValue_t, valueType, 24) \
	X(nvmlFieldValue_t, nvmlReturn, 28) \
	X(nvmlFieldValue_t, value, 32) \
	X(nvmlGpuFabricInfo_t, state, 24) \
	X(nvmlGpuFabricInfo_v2_t, status, 20) \
	X(nvmlGpuFabricInfo_v2_t, state, 28) \
	X(nvmlGpuFabricInfo_v2_t, healthMask, 32) \
	X(nvmlGpuFabricInfo_v3_t, healthSummary, 36) \
	X(nvmlPlatformInfo_v2_t, chassisSerialNumber, 20) \
	X(nvmlPlatformInfo_v2_t, moduleId, 40) \
	X(nvmlSystemConfComputeSettings_v1_t, multiGpuMode, 16)

#define NUMBERS(X) \
	X(nvmlMemory_v2, 0x02000028) \
	X(nvmlPciInfoExt_v1, 0x01000040) \
	X(nvmlGpuFabricInfo_v2, 0x02000024) \
	X(nvmlGpuFabricInfo_v3, 0x03000028) \
	X(nvmlPlatformInfo_v2, 0x0200002c) \
	X(nvmlSystemConfComputeSettings_v1, 0x01000014) \
	X(NVML_SUCCESS, 0) \
	X(NVML_ERROR_UNINITIALIZED, 1) \
	X(NVML_ERROR_INVALID_ARGUMENT, 2) \
	X(NVML_ERROR_NOT_SUPPORTED, 3) \
	X(NVML_ERROR_NO_PERMISSION, 4) \
	X(NVML_ERROR_NOT_FOUND, 6) \
	X(NVML_ERROR_INSUFFICIENT_SIZE, 7) \
	X(NVML_ERROR_DRIVER_NOT_LOADED, 9) \
	X(NVML_ERROR_GPU_IS_LOST, 15) \
	X(NVML_ERROR_LIB_RM_VERSION_MISMATCH, 18) \
	X(NVML_ERROR_IN_USE, 19) \
	X(NVML_ERROR_MEMORY, 20) \
	X(NVML_ERROR_INSUFFICIENT_RESOURCES, 23) \
	X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25) \
	X(NVML_ERROR_GPU_NOT_FOUND, 28) \
	X(NVML_ERROR_UNKNOWN, 999) \
	X(NVML_TOPOLOGY_INTERNAL, 0) \
	X(NVML_TOPOLOGY_SINGLE, 10) \
	X(NVML_TOPOLOGY_MULTIPLE, 20) \
	X(NVML_TOPOLOGY_HOSTBRIDGE, 30) \
	X(NVML_TOPOLOGY_NODE, 40) \
	X(NVML_TOPOLOGY_SYSTEM, 50) \
	X(NVML_P2P_STATUS_OK, 0) \
	X(NVML_P2P_STATUS_GPU_NOT_SUPPORTED, 2) \
	X(NVML_P2P_STATUS_NOT_SUPPORTED, 5) \
	X(NVML_P2P_CAPS_INDEX_READ, 0) \
	X(NVML_P2P_CAPS_INDEX_WRITE, 1) \
	X(NVML_P2P_CAPS_INDEX_NVLINK, 2) \
	X(NVML_P2P_CAPS_INDEX_ATOMICS, 3) \
	X(NVML_P2P_CAPS_INDEX_PROP, 4) \
	X(NVML_NVLINK_CAP_COUNT, 6) \
	X(NVML_INIT_FLAG_NO_GPUS, 1) \
	X(NVML_INIT_FLAG_NO_ATTACH, 2) \
	X(NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE, 32) \
	X(NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE, 16) \
	X(NVML_DEVICE_UUID_BUFFER_SIZE, 80) \
	X(NVML_DEVICE_UUID_V2_BUFFER_SIZE, 96) \
	X(NVML_DEVICE_NAME_BUFFER_SIZE, 64) \
	X(NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, 80) \
	X(NVML_FI_DEV_NVLINK_LINK_COUNT, 91) \
	X(NVML_FI_DEV_NVLINK_GET_STATE, 165) \
	X(NVML_FI_DEV_C2C_LINK_COUNT, 170)

#define SIZE(type, n) _Static_assert(sizeof(type) == (n), #type);
#define OFFSET(type, member, n) \
	_Static_assert(offsetof(type, member) == (n), #type "." #member);
#define NUMBER(name, n) _Static_assert((int)(name) == (n), #name);
SIZES(SIZE)
OFFSETS(OFFSET)
NUMBERS(NUMBER)

int main(void)
{
#define PRINT_SIZE(type, n) puts("_Static_assert(sizeof(" #type ") == " #n \
				 ", \"" #type "\");");
#define PRINT_OFFSET(type, member, n) \
	puts("_Static_assert(offsetof(" #type ", " #member ") == " #n \
	     ", \"" #type "." #member "\");");
#define PRINT_NUMBER(name, n) \
	puts("_Static_assert((int)(" #name ") == " #n ", \"" #name "\");");
	SIZES(PRINT_SIZE)
	OFFSETS(PRINT_OFFSET)
	NUMBERS(PRINT_NUMBER)
	return 0;
}
