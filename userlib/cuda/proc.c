// SPDX-License-Identifier: MIT
/*
 * cuGetProcAddress(): functions by base name and by the version that
 * introduced them, of the legacy default stream or of the thread's own.
 */
#include <string.h>

#include "internal.h"

/* The second symbol of a function, or the one that it has */
#define OWN_(symbol)		symbol
#define OWN_ptsz(symbol)	symbol##_ptsz
#define OWN_ptds(symbol)	symbol##_ptds

#define PLN_F(name, suffix, since, alias, sorts, ...) \
	CUresult OWN_##alias(name##suffix)(__VA_ARGS__);
#include "cuda_proto.h"
#undef PLN_F

static const struct {
	const char *base;		/* the name without _vN */
	int since;			/* CUDA version, 1000 * major + 10 * minor */
	void (*fn)(void);
	void (*own)(void);
} table[] = {
#define PLN_F(name, suffix, since, alias, sorts, ...) \
	{ #name, since, (void (*)(void))name##suffix, \
	  (void (*)(void))OWN_##alias(name##suffix) },
#include "cuda_proto.h"
};

static void (*look_up(const char *name, int version, bool own,
		      unsigned int *status))(void)
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
				fn = own ? table[i].own : table[i].fn;
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
	    version > DRV_DRIVER_VERSION ||
	    (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
				   CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)))
		return CUDA_ERROR_INVALID_VALUE;
	fn = look_up(symbol, version,
		     flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		     status);
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
