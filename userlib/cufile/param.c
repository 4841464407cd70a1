// SPDX-License-Identifier: MIT
/* The cuFile calls for settings, P2P flags and the size of BAR1. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

EXPORT CUfileError_t
cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 12 || !value)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_config(&cfg);
	if (!r)
		*value = cfg.size[param];
	return result(r);
}

EXPORT CUfileError_t
cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 12 || !value)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_config(&cfg);
	if (!r)
		*value = cfg.flag[param];
	return result(r);
}

EXPORT CUfileError_t
cuFileGetParameterString(CUFileStringConfigParameter_t param, char *desc_str,
			 int len)
{
	struct config cfg;
	CUfileOpError r;

	if ((unsigned int)param >= 3 || !desc_str || len <= 0)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_config(&cfg);
	if (r)
		return result(r);
	if (strlen(cfg.text[param]) >= (size_t)len)
		return result(CU_FILE_INVALID_VALUE);
	strcpy(desc_str, cfg.text[param]);
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t
cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
	CUfileOpError r = driver_settable();

	return result(r ? r : config_set_size((unsigned int)param, value));
}

EXPORT CUfileError_t
cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
	CUfileOpError r = driver_settable();

	return result(r ? r : config_set_flag((unsigned int)param, value));
}

EXPORT CUfileError_t
cuFileSetParameterString(CUFileStringConfigParameter_t param,
			 const char *desc_str)
{
	CUfileOpError r = driver_settable();

	return result(r ? r : config_set_text((unsigned int)param,
					      desc_str));
}

EXPORT CUfileError_t
cuFileGetParameterMinMaxValue(CUFileSizeTConfigParameter_t param,
			      size_t *min_value, size_t *max_value)
{
	if ((unsigned int)param >= 12 || !min_value || !max_value)
		return result(CU_FILE_INVALID_VALUE);
	config_size_range((unsigned int)param, min_value, max_value);
	return result(CU_FILE_SUCCESS);
}

/* ---- slabs ---- */

static CUfileError_t set_slabs(bool gpu, const size_t *kb, const size_t *count,
			       int len)
{
	CUfileOpError r = driver_settable();

	if (!kb || !count || len <= 0)
		return result(CU_FILE_INVALID_VALUE);
	return result(r ? r : config_set_slabs(gpu, kb, count,
					       (unsigned int)len));
}

static CUfileError_t get_slabs(bool gpu, size_t *kb, size_t *count, int len)
{
	const struct slabs *s;
	struct config cfg;
	CUfileOpError r;

	if (!kb || !count)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_config(&cfg);
	if (r)
		return result(r);
	s = gpu ? &cfg.gpu_slabs : &cfg.slabs;
	if (len < 0 || (unsigned int)len != s->n)
		return result(CU_FILE_INVALID_VALUE);
	memcpy(kb, s->kb, s->n * sizeof(*kb));
	memcpy(count, s->count, s->n * sizeof(*count));
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t
cuFileSetParameterPosixPoolSlabArray(const size_t *size_values,
				     const size_t *count_values, int len)
{
	return set_slabs(false, size_values, count_values, len);
}

EXPORT CUfileError_t
cuFileGetParameterPosixPoolSlabArray(size_t *size_values, size_t *count_values,
				     int len)
{
	return get_slabs(false, size_values, count_values, len);
}

EXPORT CUfileError_t
cuFileSetParameterGpuBounceBufferSlabArray(const size_t *size_values,
					   const size_t *count_values, int len)
{
	return set_slabs(true, size_values, count_values, len);
}

EXPORT CUfileError_t
cuFileGetParameterGpuBounceBufferSlabArray(size_t *size_values,
					   size_t *count_values, int len)
{
	return get_slabs(true, size_values, count_values, len);
}

/* ---- P2P ---- */

static _Atomic unsigned int p2p_allowed;	/* bits: kinds of storage */

void param_forget(void)
{
	p2p_allowed = 0;
}

EXPORT CUfileError_t
cuFileDriverSetP2PFlags(CUfileDriverStatusFlags_t status_flag,
			CUfileP2PFlags_t p2p_flags)
{
	if (driver_is_child())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	if ((unsigned int)status_flag >= CU_FILE_MAX_TARGET_TYPES ||
	    ((unsigned int)p2p_flags & ~(1u << CUFILE_P2PDMA)))
		return result(CU_FILE_INVALID_VALUE);
	if (p2p_flags)
		p2p_allowed |= 1u << status_flag;
	return result(CU_FILE_SUCCESS);
}

EXPORT CUfileError_t
cuFileDriverGetP2PFlags(CUfileDriverStatusFlags_t status_flag,
			CUfileP2PFlags_t *p2p_flags)
{
	if (driver_is_child())
		return result(CU_FILE_DRIVER_NOT_INITIALIZED);
	if ((unsigned int)status_flag >= CU_FILE_MAX_TARGET_TYPES || !p2p_flags)
		return result(CU_FILE_INVALID_VALUE);
	*p2p_flags = (CUfileP2PFlags_t)(p2p_allowed >> status_flag & 1u);
	return result(CU_FILE_SUCCESS);
}

/*
 * The second line of the device's resource file is BAR1, or the third is where
 * the first region has 64 bits: FIRST LAST FLAGS each.  BAR1 is the first of them
 * that is prefetchable.
 */
static bool bar1_of(const char *bdf, size_t *kb)
{
	unsigned long long first, last, flags;
	char path[80], line[128];
	bool found = false;
	unsigned int i;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", bdf);
	f = fopen(path, "re");
	if (!f)
		return false;
	for (i = 0; i < 6 && !found && fgets(line, sizeof(line), f); i++) {
		if (sscanf(line, "%llx %llx %llx", &first, &last, &flags) != 3 ||
		    last <= first || !(flags & 0x2000))	/* IORESOURCE_PREFETCH */
			continue;
		*kb = (size_t)((last - first + 1) >> 10);
		found = true;
	}
	fclose(f);
	return found;
}

EXPORT CUfileError_t cuFileGetBARSizeInKB(int gpuIndex, size_t *barSize)
{
	NOT_CANCELLED;
	CUfileOpError r;
	CUdevice dev;
	char bdf[32];

	if (!barSize || gpuIndex < 0)
		return result(CU_FILE_INVALID_VALUE);
	r = driver_open_and_begin();
	if (r)
		return result(r);
	if (cu.DeviceGet(&dev, gpuIndex)) {
		r = CU_FILE_INVALID_VALUE;
	} else if (!cu_pci_address(gpuIndex, bdf, sizeof(bdf)) || !bar1_of(bdf, barSize)) {
		r = CU_FILE_DEVICE_NOT_FOUND;
	}
	driver_end();
	return result(r);
}
