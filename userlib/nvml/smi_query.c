// SPDX-License-Identifier: MIT
/* nvidia-smi --query-gpu: fields by their names, as comma-separated values. */
#include <stdio.h>
#include <string.h>

#include "smi.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* ---- getters: into @out, with no unit ---- */

typedef nvmlReturn_t getter(nvmlDevice_t gpu, char *out, unsigned int size);

static nvmlReturn_t put(nvmlReturn_t err, unsigned long long value, char *out,
			unsigned int size)
{
	if (!err)
		snprintf(out, size, "%llu", value);
	return err;
}

/* One number by a function of NVML */
#define NUMBER(name, function)						\
static nvmlReturn_t name(nvmlDevice_t gpu, char *out, unsigned int size)	\
{									\
	unsigned int value = 0;						\
	nvmlReturn_t err = function(gpu, &value);			\
									\
	return put(err, value, out, size);				\
}

NUMBER(get_index, nvmlDeviceGetIndex)
NUMBER(get_minor, nvmlDeviceGetMinorNumber)
NUMBER(get_gen, nvmlDeviceGetCurrPcieLinkGeneration)
NUMBER(get_gen_max, nvmlDeviceGetMaxPcieLinkGeneration)
NUMBER(get_gen_gpu_max, nvmlDeviceGetGpuMaxPcieLinkGeneration)
NUMBER(get_width, nvmlDeviceGetCurrPcieLinkWidth)
NUMBER(get_width_max, nvmlDeviceGetMaxPcieLinkWidth)

/* One member of a structure that a function of NVML fills */
#define MEMBER(name, type, function, value, format)			\
static nvmlReturn_t name(nvmlDevice_t gpu, char *out, unsigned int size)	\
{									\
	type got;							\
	nvmlReturn_t err = function(gpu, &got);				\
									\
	if (!err)							\
		snprintf(out, size, format, value);			\
	return err;							\
}

#define MIB(bytes)	((bytes) >> 20)
MEMBER(get_total, nvmlMemory_t, nvmlDeviceGetMemoryInfo, MIB(got.total), "%llu")
MEMBER(get_used, nvmlMemory_t, nvmlDeviceGetMemoryInfo, MIB(got.used), "%llu")
MEMBER(get_free, nvmlMemory_t, nvmlDeviceGetMemoryInfo, MIB(got.free), "%llu")
MEMBER(get_bus_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.busId, "%s")
MEMBER(get_domain, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.domain, "0x%04X")
MEMBER(get_bus, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.bus, "0x%02X")
MEMBER(get_device, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.device, "0x%02X")
MEMBER(get_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.pciDeviceId, "0x%08X")
MEMBER(get_sub_id, nvmlPciInfo_t, nvmlDeviceGetPciInfo, got.pciSubSystemId,
       "0x%08X")
MEMBER(get_gpu_use, nvmlUtilization_t, nvmlDeviceGetUtilizationRates, got.gpu,
       "%u")

static nvmlReturn_t get_degrees(nvmlDevice_t gpu, char *out, unsigned int size)
{
	unsigned int value = 0;
	nvmlReturn_t err = nvmlDeviceGetTemperature(gpu, NVML_TEMPERATURE_GPU,
						    &value);

	return put(err, value, out, size);
}

static nvmlReturn_t get_power(nvmlDevice_t gpu, char *out, unsigned int size)
{
	unsigned int milliwatts = 0;
	nvmlReturn_t err = nvmlDeviceGetPowerUsage(gpu, &milliwatts);

	return put(err, milliwatts / 1000, out, size);
}

static nvmlReturn_t get_driver(nvmlDevice_t gpu, char *out, unsigned int size)
{
	(void)gpu;
	return nvmlSystemGetDriverVersion(out, size);
}

static nvmlReturn_t get_count(nvmlDevice_t gpu, char *out, unsigned int size)
{
	unsigned int n = 0;
	nvmlReturn_t err = nvmlDeviceGetCount(&n);

	(void)gpu;
	return put(err, n, out, size);
}

static nvmlReturn_t get_capability(nvmlDevice_t gpu, char *out,
				   unsigned int size)
{
	int major, minor;
	nvmlReturn_t err = nvmlDeviceGetCudaComputeCapability(gpu, &major,
							      &minor);

	if (!err)
		snprintf(out, size, "%d.%d", major, minor);
	return err;
}

/* ---- the table ---- */

static const struct field {
	const char *name, *alias, *unit;
	getter *get;
} fields[] = {
	{ "index", NULL, NULL, get_index },
	{ "name", "gpu_name", NULL, nvmlDeviceGetName },
	{ "uuid", "gpu_uuid", NULL, nvmlDeviceGetUUID },
	{ "count", NULL, NULL, get_count },
	{ "driver_version", NULL, NULL, get_driver },
	{ "compute_cap", NULL, NULL, get_capability },
	{ "minor_number", NULL, NULL, get_minor },
	{ "serial", "gpu_serial", NULL, nvmlDeviceGetSerial },
	{ "pci.bus_id", "gpu_bus_id", NULL, get_bus_id },
	{ "pci.domain", NULL, NULL, get_domain },
	{ "pci.bus", NULL, NULL, get_bus },
	{ "pci.device", NULL, NULL, get_device },
	{ "pci.device_id", NULL, NULL, get_id },
	{ "pci.sub_device_id", NULL, NULL, get_sub_id },
	{ "pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, get_gen },
	{ "pcie.link.gen.max", NULL, NULL, get_gen_max },
	{ "pcie.link.gen.gpumax", NULL, NULL, get_gen_gpu_max },
	{ "pcie.link.width.current", NULL, NULL, get_width },
	{ "pcie.link.width.max", NULL, NULL, get_width_max },
	{ "memory.total", NULL, "MiB", get_total },
	{ "memory.used", NULL, "MiB", get_used },
	{ "memory.free", NULL, "MiB", get_free },
	{ "temperature.gpu", NULL, NULL, get_degrees },
	{ "power.draw", NULL, "W", get_power },
	{ "utilization.gpu", NULL, "%", get_gpu_use },
};

static const struct field *find(const char *name)
{
	for (size_t i = 0; i < COUNT(fields); i++)
		if (!strcmp(name, fields[i].name) ||
		    (fields[i].alias && !strcmp(name, fields[i].alias)))
			return &fields[i];
	return NULL;
}

static void value_of(const struct field *f, nvmlDevice_t gpu, bool units,
		     char *out, unsigned int size)
{
	nvmlReturn_t err = f->get(gpu, out, size);
	size_t n;

	if (err == NVML_ERROR_NOT_SUPPORTED) {
		snprintf(out, size, "[N/A]");
	} else if (err) {
		snprintf(out, size, "[%s]", nvmlErrorString(err));
	} else if (units && f->unit) {
		n = strlen(out);
		snprintf(out + n, size - n, " %s", f->unit);
	}
}

bool smi_value(nvmlDevice_t gpu, const char *name, bool units, char *out,
	       unsigned int size)
{
	const struct field *f = find(name);

	if (f)
		value_of(f, gpu, units, out, size);
	return f;
}

void smi_list_fields(void)
{
	for (size_t i = 0; i < COUNT(fields); i++)
		printf("  %s\n", fields[i].name);
}

/* ---- the command ---- */

/* Cuts the first part off a list with commas; NULL: there is none left */
static char *part(char **list)
{
	char *one = strsep(list, ",");

	return one ? one + strspn(one, " ") : NULL;
}

static bool parse_format(const char *format, bool *header, bool *units)
{
	char text[64], *rest = text, *one;
	bool csv = false;

	if (strlen(format) >= sizeof(text))
		return false;
	strcpy(text, format);
	while ((one = part(&rest))) {
		if (!strcmp(one, "csv"))
			csv = true;
		else if (!strcmp(one, "noheader"))
			*header = false;
		else if (!strcmp(one, "nounits"))
			*units = false;
		else
			return false;
	}
	return csv;
}

int smi_query(const struct smi_gpus *gpus, const char *names,
	      const char *format)
{
	const struct field *chosen[64];
	char text[2048], value[128], *rest = text, *one;
	bool header = true, units = true;
	size_t n = 0;

	if (!names) {
		smi_complain("--format goes with --query-gpu");
		return smi_status(NVML_ERROR_INVALID_ARGUMENT);
	}
	if (!format || !parse_format(format, &header, &units)) {
		smi_complain("--query-gpu needs --format=csv, which noheader "
			     "and nounits can follow: --format=csv,noheader");
		return smi_status(NVML_ERROR_INVALID_ARGUMENT);
	}
	if (strlen(names) >= sizeof(text)) {
		smi_complain("--query-gpu: the list is too long");
		return smi_status(NVML_ERROR_INVALID_ARGUMENT);
	}
	strcpy(text, names);
	while ((one = part(&rest))) {
		if (n == COUNT(chosen)) {
			smi_complain("--query-gpu: more than %zu fields", n);
			return smi_status(NVML_ERROR_INVALID_ARGUMENT);
		}
		chosen[n] = find(one);
		if (!chosen[n++]) {
			smi_complain("--query-gpu: there is no field \"%s\"; "
				     "--help-query-gpu lists them", one);
			return smi_status(NVML_ERROR_INVALID_ARGUMENT);
		}
	}
	for (size_t f = 0; header && f < n; f++)
		printf("%s%s%s%s%s", chosen[f]->name,
		       units && chosen[f]->unit ? " [" : "",
		       units && chosen[f]->unit ? chosen[f]->unit : "",
		       units && chosen[f]->unit ? "]" : "",
		       f + 1 < n ? ", " : "\n");
	for (unsigned int i = 0; i < gpus->n; i++)
		for (size_t f = 0; f < n; f++) {
			value_of(chosen[f], gpus->gpu[i], units, value,
				 sizeof(value));
			printf("%s%s", value, f + 1 < n ? ", " : "\n");
		}
	return 0;
}
