// SPDX-License-Identifier: MIT
/*
 * cuGetProcAddress(): functions by base name and by the version that
 * introduced them.
 */
#include <string.h>

#include "internal.h"

static const struct {
	const char *base;		/* the name without _vN */
	int since;			/* CUDA version, 1000 * major + 10 * minor */
	void (*fn)(void);
} table[] = {
#define PLN_F(name, suffix, since, alias, sorts, ...) \
	{ #name, since, (void (*)(void))name##suffix },
#include "cuda_proto.h"
};

static void (*look_up(const char *name, int version, unsigned int *status))(void)
{
	void (*fn)(void) = NULL;
	int best = -1;

	*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!strcmp(table[i].base, name)) {
			if (!fn)
				*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
			if (table[i].since <= version && table[i].since > best) {
				best = table[i].since;
				fn = table[i].fn;
			}
		}
	}
	if (fn)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	return fn;
}

static CUresult get_proc(const char *symbol, void **out, int version,
			 cuuint64_t flags, unsigned int *status)
{
	void (*fn)(void);

	if (!symbol || !out || version < 0 ||
	    version > PLN_DRIVER_VERSION ||
	    (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)))
		return CUDA_ERROR_INVALID_VALUE;
	fn = look_up(symbol, version, status);
	memcpy(out, &fn, sizeof(*out));
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **fn, int version,
			  cuuint64_t flags)
{
	unsigned int status;
	CUresult err = get_proc(symbol, fn, version, flags, &status);

	if (!err && status != CU_GET_PROC_ADDRESS_SUCCESS)
		err = CUDA_ERROR_NOT_FOUND;
	return err;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version,
			     cuuint64_t flags,
			     CUdriverProcAddressQueryResult *out)
{
	unsigned int status;
	CUresult err = get_proc(symbol, fn, version, flags, &status);

	if (!err && out)
		*out = status;
	return err;
}
