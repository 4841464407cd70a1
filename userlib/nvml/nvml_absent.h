/* SPDX-License-Identifier: MIT */
/*
 * What emulated GPUs do not have, and programs ask for: a part of nvml.h, which
 * is the header to include and says what holds for all functions.
 */
#ifndef PEERLANE_NVML_ABSENT_H
#define PEERLANE_NVML_ABSENT_H

typedef enum nvmlEnableState_enum {
	NVML_FEATURE_DISABLED = 0,
	NVML_FEATURE_ENABLED = 1
} nvmlEnableState_t;

typedef enum nvmlNvLinkCapability_enum {
	NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
	NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
	NVML_NVLINK_CAP_P2P_ATOMICS = 2,
	NVML_NVLINK_CAP_SYSMEM_ATOMICS = 3,
	NVML_NVLINK_CAP_SLI_BRIDGE = 4,
	NVML_NVLINK_CAP_VALID = 5,
	NVML_NVLINK_CAP_COUNT
} nvmlNvLinkCapability_t;

typedef enum nvmlTemperatureSensors_enum {
	NVML_TEMPERATURE_GPU = 0,
	NVML_TEMPERATURE_COUNT
} nvmlTemperatureSensors_t;

typedef enum nvmlValueType_enum {
	NVML_VALUE_TYPE_DOUBLE = 0,
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
	NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
	NVML_VALUE_TYPE_SIGNED_INT = 5,
	NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
	NVML_VALUE_TYPE_COUNT
} nvmlValueType_t;

typedef union nvmlValue_st {
	double dVal;
	int siVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
	signed long long sllVal;
	unsigned short usVal;
} nvmlValue_t;

typedef struct nvmlFieldValue_st {
	unsigned int fieldId;		/* in */
	unsigned int scopeId;		/* in */
	long long timestamp;
	long long latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn;	/* out: of this field */
	nvmlValue_t value;
} nvmlFieldValue_t;

/* Fields that NCCL and UCX ask for */
#define NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON		90
#define NVML_FI_DEV_NVLINK_LINK_COUNT			91
#define NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID		146
#define NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT	147
#define NVML_FI_DEV_NVLINK_GET_SPEED			164
#define NVML_FI_DEV_NVLINK_GET_STATE			165
#define NVML_FI_DEV_C2C_LINK_COUNT			170
#define NVML_FI_DEV_C2C_LINK_GET_STATUS			171
#define NVML_FI_DEV_C2C_LINK_GET_MAX_BW			172

#define NVML_GPU_FABRIC_UUID_LEN		16
#define NVML_GPU_FABRIC_STATE_NOT_SUPPORTED	0
#define NVML_GPU_FABRIC_STATE_NOT_STARTED	1
#define NVML_GPU_FABRIC_STATE_IN_PROGRESS	2
#define NVML_GPU_FABRIC_STATE_COMPLETED		3

typedef unsigned char nvmlGpuFabricState_t;

typedef struct {
	unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
	nvmlReturn_t status;
	unsigned int cliqueId;
	nvmlGpuFabricState_t state;
} nvmlGpuFabricInfo_t;

typedef struct {
	unsigned int version;		/* in: nvmlGpuFabricInfo_v2 */
	unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
	nvmlReturn_t status;
	unsigned int cliqueId;
	nvmlGpuFabricState_t state;
	unsigned int healthMask;
} nvmlGpuFabricInfo_v2_t;
#define nvmlGpuFabricInfo_v2	NVML_STRUCT_VERSION(GpuFabricInfo, 2)

typedef struct {
	unsigned int version;		/* in: nvmlGpuFabricInfo_v3 */
	unsigned char clusterUuid[NVML_GPU_FABRIC_UUID_LEN];
	nvmlReturn_t status;
	unsigned int cliqueId;
	nvmlGpuFabricState_t state;
	unsigned int healthMask;
	unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
typedef nvmlGpuFabricInfo_v3_t nvmlGpuFabricInfoV_t;
#define nvmlGpuFabricInfo_v3	NVML_STRUCT_VERSION(GpuFabricInfo, 3)

typedef struct {
	unsigned int version;		/* in: nvmlPlatformInfo_v2 */
	unsigned char ibGuid[16];
	unsigned char chassisSerialNumber[16];
	unsigned char slotNumber;
	unsigned char trayIndex;
	unsigned char hostId;
	unsigned char peerType;
	unsigned char moduleId;
} nvmlPlatformInfo_v2_t;
typedef nvmlPlatformInfo_v2_t nvmlPlatformInfo_t;
#define nvmlPlatformInfo_v2	NVML_STRUCT_VERSION(PlatformInfo, 2)

typedef struct nvmlConfComputeSystemState_st {
	unsigned int environment;
	unsigned int ccFeature;
	unsigned int devToolsMode;
} nvmlConfComputeSystemState_t;

typedef struct {
	unsigned int version;		/* in: nvmlSystemConfComputeSettings_v1 */
	unsigned int environment;
	unsigned int ccFeature;
	unsigned int devToolsMode;
	unsigned int multiGpuMode;
} nvmlSystemConfComputeSettings_v1_t;
typedef nvmlSystemConfComputeSettings_v1_t nvmlSystemConfComputeSettings_t;
#define nvmlSystemConfComputeSettings_v1 \
	NVML_STRUCT_VERSION(SystemConfComputeSettings, 1)

typedef struct nvmlUtilization_st {
	unsigned int gpu;
	unsigned int memory;
} nvmlUtilization_t;

/*
 * These check their arguments as all others do, and then answer NOT_SUPPORTED.
 * nvmlDeviceGetFieldValues() answers so in each of the @count fields, too.
 */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
				      nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
				      nvmlEnableState_t *active);
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
					unsigned int *version);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device,
					   unsigned int link,
					   nvmlNvLinkCapability_t capability,
					   unsigned int *result);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device,
						 unsigned int link,
						 nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device,
					nvmlGpuFabricInfo_t *info);
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
					 nvmlGpuFabricInfoV_t *info);
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device,
				       nvmlPlatformInfo_t *info);
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *state);
nvmlReturn_t
nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *settings);
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device,
				      nvmlTemperatureSensors_t sensor,
				      unsigned int *degrees);
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device,
				     unsigned int *milliwatts);
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
					   nvmlUtilization_t *rates);
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial,
				 unsigned int length);
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device,
					  nvmlEnableState_t *mode);
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
				  unsigned int *pending);

#endif /* PEERLANE_NVML_ABSENT_H */
