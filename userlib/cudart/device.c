// SPDX-License-Identifier: MIT
/*
 * What devices are and can.
 */
#include <string.h>

#include "internal.h"

cudaError_t cudaDriverGetVersion(int *version)
{
	cudaError_t err = version ? rt_start() : cudaErrorInvalidValue;

	if (err == cudaErrorInsufficientDriver) {
		*version = 0;		/* none: no error here */
		return cudaSuccess;
	}
	return rt_end(err ? err : DRIVER(cuDriverGetVersion, version));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_end(cudaErrorInvalidValue);
	*version = CUDART_MAJOR * 1000;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t err = count ? rt_start() : cudaErrorInvalidValue;

	if (!err)
		err = DRIVER(cuDeviceGetCount, count);
	else if (count)
		*count = 0;
	return rt_end(err);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
				   int device)
{
	RUN_WITHOUT(cuDeviceGetAttribute, value, (CUdevice_attribute)attr,
		    device);
}

/* ---- properties ---- */

static int attribute(int device, int attr)
{
	int value = 0;

	if (rt_driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)attr,
					   device))
		return 0;	/* a driver that does not know it */
	return value;
}

#define FILL(type, name, n, attr)					\
	if (sizeof(type) >= sizeof(int))				\
		for (int i_ = 0; i_ < (n) && (attr); i_++)		\
			prop->name[i_] = (type)attribute(device, (attr) + i_);

static cudaError_t fill(struct cudaDeviceProp *prop, int device)
{
	cudaError_t err;
	size_t total;
	CUdevice dev;
	CUuuid uuid;

	err = DRIVER(cuDeviceGet, &dev, device);
	if (!err)
		err = DRIVER(cuDeviceTotalMem_v2, &total, dev);
	if (!err)
		err = DRIVER(cuDeviceGetUuid_v2, &uuid, dev);
	if (err)
		return err;
	/* What is reserved, NVIDIA's clears in CUDA 12 and leaves in 13 */
	memset(prop, 0, CUDART_MAJOR >= 13 ?
	       offsetof(struct cudaDeviceProp, reserved) : sizeof(*prop));
	err = DRIVER(cuDeviceGetName, prop->name, (int)sizeof(prop->name), dev);
	if (err)
		return err;
	memcpy(prop->uuid, uuid.bytes, sizeof(prop->uuid));
	prop->totalGlobalMem[0] = total;
#if CUDART_MAJOR >= 13
	PLN_CUDART_PROP(FILL, PLN_PROP_NONE)
	PLN_CUDART_PROP_13(FILL)
#else
	PLN_CUDART_PROP(FILL, FILL)
#endif
	return cudaSuccess;
}

static cudaError_t properties(struct cudaDeviceProp *prop, int device)
{
	cudaError_t err = rt_start();

	if (err)
		return err;
	return prop ? fill(prop, device) : cudaErrorInvalidValue;
}

#if CUDART_MAJOR >= 13
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	return rt_end(properties(prop, device));
}
#else
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *prop, int device)
{
	return rt_end(properties(prop, device));
}

/* Of programs written for CUDA 11: the same structure, but shorter */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	struct cudaDeviceProp whole;
	cudaError_t err = prop ? properties(&whole, device) :
				 cudaErrorInvalidValue;

	if (!err)
		memcpy(prop, &whole, offsetof(struct cudaDeviceProp,
					      hostRegisterSupported));
	return rt_end(err);
}
#endif

/* ---- the context of a device ---- */

cudaError_t cudaDeviceSynchronize(void)
{
	RUN(cuCtxSynchronize);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	RUN(cuCtxGetLimit, value, (CUlimit)limit);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	RUN(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	RUN(cuCtxGetCacheConfig, (CUfunc_cache *)config);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	RUN(cuCtxSetCacheConfig, (CUfunc_cache)config);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	RUN(cuCtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	RUN_WITHOUT(cuDeviceGetByPCIBusId, device, id);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	RUN_WITHOUT(cuDeviceGetPCIBusId, id, len, device);
}

/* ---- other devices ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	RUN_WITHOUT(cuDeviceCanAccessPeer, can, device, peer);
}

static cudaError_t peer_context(int peer, CUcontext *ctx)
{
	cudaError_t err = rt_enter();
	CUdevice dev;

	if (!err)
		err = DRIVER(cuDeviceGet, &dev, peer);
	return err ? err : rt_primary(peer, ctx);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext ctx;
	cudaError_t err = peer_context(peer, &ctx);

	return rt_end(err ? err : DRIVER(cuCtxEnablePeerAccess, ctx, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;
	cudaError_t err = peer_context(peer, &ctx);

	return rt_end(err ? err : DRIVER(cuCtxDisablePeerAccess, ctx));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
				      int src, int dst)
{
	RUN_WITHOUT(cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attr,
		    src, dst);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(
			enum cudaFlushGPUDirectRDMAWritesTarget target,
			enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	RUN(cuFlushGPUDirectRDMAWrites,
	    (CUflushGPUDirectRDMAWritesTarget)target,
	    (CUflushGPUDirectRDMAWritesScope)scope);
}

/* ---- the driver's functions, for the program ---- */

static cudaError_t entry(const char *symbol, void **fn, int version,
			 unsigned long long flags,
			 enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult got = 0;
	cudaError_t err = rt_start();

	if (!err && (!symbol || !fn))
		err = cudaErrorInvalidValue;
	if (!err)
		err = DRIVER(cuGetProcAddress_v2, symbol, fn, version, flags,
			     &got);
	/* Not found is the status, where there is a place for it */
	if (!err && status)
		*(unsigned int *)status = got;
	else if (!err && got)
		err = cudaErrorSymbolNotFound;
	return rt_end(err);
}

/* The flags of the runtime: 0 and 1 the legacy stream, 2 one for each thread */
#define ENTRY(name, params, version)					\
	BOTH(name, _ptsz, params,					\
		return entry(symbol, fn, version,			\
			     own_ && !flags ?				\
			     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : \
			     flags, status);)

ENTRY(cudaGetDriverEntryPoint,
      (const char *symbol, void **fn, unsigned long long flags,
       enum cudaDriverEntryPointQueryResult *status), CUDART_MAJOR * 1000);
ENTRY(cudaGetDriverEntryPointByVersion,
      (const char *symbol, void **fn, unsigned int version,
       unsigned long long flags, enum cudaDriverEntryPointQueryResult *status),
      (int)version);

/* There is no profiler to start: no error, as without one on a real GPU */
cudaError_t cudaProfilerStart(void)
{
	return rt_end(rt_enter());
}

cudaError_t cudaProfilerStop(void)
{
	return rt_end(rt_enter());
}

#if CUDART_MAJOR < 13
/* The names that CUDA 3 had for some of the above */
cudaError_t cudaThreadSynchronize(void)
{
	return cudaDeviceSynchronize();
}

cudaError_t cudaThreadExit(void)
{
	return cudaDeviceReset();
}
#endif
