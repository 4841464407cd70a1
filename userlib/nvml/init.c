// SPDX-License-Identifier: MIT
/*
 * Start and end, the table of GPUs, and the system.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"
#include "internal.h"
#include "peerlane/peerlane.h"

static struct {
	pthread_mutex_t lock;
	unsigned int refs;
	unsigned int count;
	struct nvmlDevice_st gpu[DRV_MAX_DEVICES];
} nvml = { .lock = PTHREAD_MUTEX_INITIALIZER };

nvmlReturn_t nvml_errno(int error)
{
	switch (error) {
	case 0:
		return NVML_SUCCESS;
	case EACCES:
	case EPERM:
		return NVML_ERROR_NO_PERMISSION;
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EIO:
		return NVML_ERROR_GPU_IS_LOST;
	case EPROTO:
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	case ENOMEM:
		return NVML_ERROR_MEMORY;
	case EMFILE:
	case ENFILE:
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	default:
		return NVML_ERROR_UNKNOWN;
	}
}

/* Why there is no GPU at all */
static nvmlReturn_t no_gpu(unsigned int flags)
{
	struct facts *facts;
	char **names;
	int r = facts_open(&facts, NULL);

	if (r)
		return nvml_errno(-r);
	r = facts_list(facts, "/sys/module/peerlane_gpu", &names);
	if (r >= 0)
		facts_list_free(names);
	facts_close(facts);
	if (r == -ENOENT)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	return flags & NVML_INIT_FLAG_NO_GPUS ? NVML_SUCCESS :
						NVML_ERROR_GPU_NOT_FOUND;
}

/* The table, in the order of libcuda, which is that of the device files */
static nvmlReturn_t find(unsigned int flags, bool all)
{
	nvmlReturn_t err, bad = NVML_SUCCESS;

	nvml.count = 0;
	for (unsigned int minor = 0; minor < DRV_MAX_DEVICES; minor++) {
		struct nvmlDevice_st *gpu = &nvml.gpu[nvml.count];
		int error = drv_gpu_query(minor, &gpu->info);

		if (error == ENOENT)
			continue;
		if (!error) {
			gpu->index = nvml.count++;
			gpu->minor = minor;
			continue;
		}
		err = nvml_errno(error);
		/* no fact about the GPU: out of memory or files */
		if (all || err == NVML_ERROR_MEMORY ||
		    err == NVML_ERROR_INSUFFICIENT_RESOURCES)
			return err;
		if (!bad)
			bad = err;
	}
	if (nvml.count)
		return NVML_SUCCESS;
	if (bad)
		return flags & NVML_INIT_FLAG_NO_GPUS ? NVML_SUCCESS : bad;
	return no_gpu(flags);
}

static nvmlReturn_t init(unsigned int flags, bool all)
{
	nvmlReturn_t err = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.refs)
		err = find(flags, all);
	if (!err)
		nvml.refs++;
	pthread_mutex_unlock(&nvml.lock);
	return err;
}

nvmlReturn_t nvmlInit(void)
{
	return init(0, true);
}

nvmlReturn_t nvmlInit_v2(void)
{
	return init(0, false);
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	return init(flags, false);
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t err = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (nvml.refs)
		nvml.refs--;
	else
		err = NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&nvml.lock);
	return err;
}

nvmlReturn_t nvml_nth(unsigned int index, struct nvmlDevice_st *gpu,
			  nvmlDevice_t *handle)
{
	nvmlReturn_t err = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.refs) {
		err = NVML_ERROR_UNINITIALIZED;
	} else if (index >= nvml.count) {
		err = NVML_ERROR_INVALID_ARGUMENT;
	} else {
		if (gpu)
			*gpu = nvml.gpu[index];
		if (handle)
			*handle = &nvml.gpu[index];
	}
	pthread_mutex_unlock(&nvml.lock);
	return err;
}

nvmlReturn_t nvml_gpu(nvmlDevice_t handle, struct nvmlDevice_st *gpu)
{
	unsigned int i;

	for (i = 0; i < DRV_MAX_DEVICES; i++)
		if (handle == &nvml.gpu[i])
			break;
	return nvml_nth(i, gpu, NULL);
}

nvmlReturn_t nvml_ready(void)
{
	nvmlReturn_t err = nvml_nth(DRV_MAX_DEVICES, NULL, NULL);

	return err == NVML_ERROR_UNINITIALIZED ? err : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	nvmlReturn_t err = NVML_SUCCESS;

	pthread_mutex_lock(&nvml.lock);
	if (!nvml.refs)
		err = NVML_ERROR_UNINITIALIZED;
	else if (!count)
		err = NVML_ERROR_INVALID_ARGUMENT;
	else
		*count = nvml.count;
	pthread_mutex_unlock(&nvml.lock);
	return err;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch ((int)result) {
#define PLN_X(name, number, words) case number: return words;
	PLN_NVML_RETURNS(PLN_X)
#undef PLN_X
	default:
		return "not an error of NVML";
	}
}

/* ---- the system ---- */

nvmlReturn_t nvml_text(const char *text, char *out, unsigned int length)
{
	size_t n = strlen(text) + 1;

	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (n > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, n);
	return NVML_SUCCESS;
}

#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
/* Three numbers, as NVIDIA's; the first is what programs compare */
#define RELEASE		STRING(DRV_DRIVER_BRANCH) "." \
			STRING(PLN_VERSION_MAJOR) "." STRING(PLN_VERSION_MINOR)

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	nvmlReturn_t err = nvml_ready();

	return err ? err : nvml_text(RELEASE, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return nvml_text(STRING(NVML_API_VERSION) "." RELEASE, version,
			     length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	nvmlReturn_t err = nvml_ready();

	if (err)
		return err;
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = DRV_DRIVER_VERSION;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}
