/* SPDX-License-Identifier: MIT */
/*
 * The functions that the library exports: the one list of them.  Included as it
 * is, it declares them; whoever defines PLN_F makes something else of each:
 *
 *	PLN_F(name, suffix, since, alias, sorts, parameters...)
 *
 * @name	as programs ask cuGetProcAddress() for it
 * @suffix	of its symbol: _v2, or nothing
 * @since	the CUDA version that has this one: 1000 * major + 10 * minor
 * @alias	suffix of a second symbol, for programs that are built with
 *		per-thread default streams: ptsz, ptds, or nothing.  The Makefile
 *		makes those functions.
 * @sorts	of its arguments, for test/cuda_fuzz.c; 0: it takes a structure
 *
 * No include guard and no types of its own: tests/cuda/abi.sh compiles it once
 * more behind NVIDIA's cuda.h, so that the compiler compares the signatures.
 */
#ifndef PLN_F
#define PLN_F(name, suffix, since, alias, sorts, ...) \
	CUresult name##suffix(__VA_ARGS__);
#endif

/* Driver */
PLN_F(cuInit, , 2000, , "i", unsigned int flags)
PLN_F(cuDriverGetVersion, , 2020, , "p", int *version)
PLN_F(cuGetErrorName, , 6000, , "ip", CUresult error, const char **name)
PLN_F(cuGetErrorString, , 6000, , "ip", CUresult error, const char **words)
PLN_F(cuGetProcAddress, , 11030, , "spii",
      const char *symbol, void **fn, int version, cuuint64_t flags)
PLN_F(cuGetProcAddress, _v2, 12000, , "spiip",
      const char *symbol, void **fn, int version, cuuint64_t flags,
      CUdriverProcAddressQueryResult *status)
PLN_F(cuGetExportTable, , 3000, , "pp", const void **table, const CUuuid *id)
PLN_F(cuModuleGetLoadingMode, , 11070, , "p", CUmoduleLoadingMode *mode)

/* Devices */
PLN_F(cuDeviceGet, , 2000, , "pi", CUdevice *dev, int ordinal)
PLN_F(cuDeviceGetCount, , 2000, , "p", int *count)
PLN_F(cuDeviceGetName, , 2000, , "pii", char *name, int len, CUdevice dev)
PLN_F(cuDeviceGetUuid, , 9020, , "pi", CUuuid *uuid, CUdevice dev)
PLN_F(cuDeviceGetUuid, _v2, 11040, , "pi", CUuuid *uuid, CUdevice dev)
PLN_F(cuDeviceTotalMem, _v2, 3020, , "pi", size_t *bytes, CUdevice dev)
PLN_F(cuDeviceGetAttribute, , 2000, , "pii",
      int *value, CUdevice_attribute attr, CUdevice dev)
PLN_F(cuDeviceComputeCapability, , 2000, , "ppi",
      int *major, int *minor, CUdevice dev)
PLN_F(cuDeviceGetByPCIBusId, , 4010, , "ps", CUdevice *dev, const char *id)
PLN_F(cuDeviceGetPCIBusId, , 4010, , "pii", char *id, int len, CUdevice dev)
PLN_F(cuDeviceCanAccessPeer, , 4000, , "pii",
      int *can, CUdevice dev, CUdevice peer)
PLN_F(cuDeviceGetP2PAttribute, , 8000, , "piii",
      int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
PLN_F(cuFlushGPUDirectRDMAWrites, , 11030, , "ii",
      CUflushGPUDirectRDMAWritesTarget target,
      CUflushGPUDirectRDMAWritesScope scope)

/* Contexts */
PLN_F(cuDevicePrimaryCtxRetain, , 7000, , "pi", CUcontext *ctx, CUdevice dev)
PLN_F(cuDevicePrimaryCtxRelease, , 7000, , "i", CUdevice dev)
PLN_F(cuDevicePrimaryCtxRelease, _v2, 11000, , "i", CUdevice dev)
PLN_F(cuDevicePrimaryCtxSetFlags, , 7000, , "ii",
      CUdevice dev, unsigned int flags)
PLN_F(cuDevicePrimaryCtxSetFlags, _v2, 11000, , "ii",
      CUdevice dev, unsigned int flags)
PLN_F(cuDevicePrimaryCtxGetState, , 7000, , "ipp",
      CUdevice dev, unsigned int *flags, int *active)
PLN_F(cuDevicePrimaryCtxReset, , 7000, , "i", CUdevice dev)
PLN_F(cuDevicePrimaryCtxReset, _v2, 11000, , "i", CUdevice dev)
PLN_F(cuCtxCreate, _v2, 3020, , "pii",
      CUcontext *ctx, unsigned int flags, CUdevice dev)
PLN_F(cuCtxCreate, _v3, 11040, , "ppiii",
      CUcontext *ctx, CUexecAffinityParam *params, int n, unsigned int flags,
      CUdevice dev)
PLN_F(cuCtxCreate, _v4, 12050, , "ppii",
      CUcontext *ctx, CUctxCreateParams *params, unsigned int flags,
      CUdevice dev)
PLN_F(cuCtxDestroy, _v2, 4000, , "C", CUcontext ctx)
PLN_F(cuCtxPushCurrent, _v2, 4000, , "C", CUcontext ctx)
PLN_F(cuCtxPopCurrent, _v2, 4000, , "p", CUcontext *ctx)
PLN_F(cuCtxSetCurrent, , 4000, , "C", CUcontext ctx)
PLN_F(cuCtxGetCurrent, , 4000, , "p", CUcontext *ctx)
PLN_F(cuCtxGetDevice, , 2000, , "p", CUdevice *dev)
PLN_F(cuCtxGetDevice, _v2, 13000, , "pC", CUdevice *dev, CUcontext ctx)
PLN_F(cuCtxGetFlags, , 7000, , "p", unsigned int *flags)
PLN_F(cuCtxSetFlags, , 12010, , "i", unsigned int flags)
PLN_F(cuCtxGetId, , 12000, , "Cp", CUcontext ctx, unsigned long long *id)
PLN_F(cuCtxSynchronize, , 2000, , "", void)
PLN_F(cuCtxSynchronize, _v2, 13000, , "C", CUcontext ctx)
PLN_F(cuCtxGetApiVersion, , 3020, , "Cp", CUcontext ctx, unsigned int *version)
PLN_F(cuCtxGetStreamPriorityRange, , 5050, , "pp", int *least, int *greatest)
PLN_F(cuCtxGetLimit, , 3010, , "pi", size_t *value, CUlimit limit)
PLN_F(cuCtxSetLimit, , 3010, , "iz", CUlimit limit, size_t value)
PLN_F(cuCtxGetCacheConfig, , 3020, , "p", CUfunc_cache *config)
PLN_F(cuCtxSetCacheConfig, , 3020, , "i", CUfunc_cache config)
PLN_F(cuCtxEnablePeerAccess, , 4000, , "Ci", CUcontext peer, unsigned int flags)
PLN_F(cuCtxDisablePeerAccess, , 4000, , "C", CUcontext peer)

/* Memory */
PLN_F(cuMemGetInfo, _v2, 3020, , "pp", size_t *avail, size_t *total)
PLN_F(cuMemAlloc, _v2, 3020, , "pz", CUdeviceptr *ptr, size_t size)
PLN_F(cuMemAllocPitch, _v2, 3020, , "ppzzi",
      CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
      unsigned int element)
PLN_F(cuMemFree, _v2, 3020, , "d", CUdeviceptr ptr)
PLN_F(cuMemGetAddressRange, _v2, 3020, , "ppd",
      CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
PLN_F(cuMemAllocManaged, , 6000, , "pzi",
      CUdeviceptr *ptr, size_t size, unsigned int flags)
PLN_F(cuMemAllocHost, _v2, 3020, , "pz", void **ptr, size_t size)
PLN_F(cuMemHostAlloc, , 2020, , "pzi",
      void **ptr, size_t size, unsigned int flags)
PLN_F(cuMemFreeHost, , 2000, , "d", void *ptr)
PLN_F(cuMemHostGetDevicePointer, _v2, 3020, , "pdi",
      CUdeviceptr *dptr, void *ptr, unsigned int flags)
PLN_F(cuMemHostGetFlags, , 2030, , "pd", unsigned int *flags, void *ptr)
PLN_F(cuMemHostRegister, _v2, 6050, , "pzi",
      void *ptr, size_t size, unsigned int flags)
PLN_F(cuMemHostUnregister, , 4000, , "d", void *ptr)
PLN_F(cuMemGetHandleForAddressRange, , 11070, , "pdzii",
      void *handle, CUdeviceptr ptr, size_t size, CUmemRangeHandleType type,
      unsigned long long flags)
PLN_F(cuPointerGetAttribute, , 4000, , "pid",
      void *data, CUpointer_attribute attr, CUdeviceptr ptr)
PLN_F(cuPointerGetAttributes, , 7000, , "ippd",
      unsigned int n, CUpointer_attribute *attrs, void **data, CUdeviceptr ptr)
PLN_F(cuPointerSetAttribute, , 6000, , "pid",
      const void *value, CUpointer_attribute attr, CUdeviceptr ptr)

/* Copies and fills */
PLN_F(cuMemcpy, , 4000, ptds, "ddz", CUdeviceptr dst, CUdeviceptr src, size_t n)
PLN_F(cuMemcpyAsync, , 4000, ptsz, "ddzS",
      CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
PLN_F(cuMemcpyHtoD, _v2, 3020, ptds, "dpz",
      CUdeviceptr dst, const void *src, size_t n)
PLN_F(cuMemcpyHtoDAsync, _v2, 3020, ptsz, "dpzS",
      CUdeviceptr dst, const void *src, size_t n, CUstream stream)
PLN_F(cuMemcpyDtoH, _v2, 3020, ptds, "pdz",
      void *dst, CUdeviceptr src, size_t n)
PLN_F(cuMemcpyDtoHAsync, _v2, 3020, ptsz, "pdzS",
      void *dst, CUdeviceptr src, size_t n, CUstream stream)
PLN_F(cuMemcpyDtoD, _v2, 3020, ptds, "ddz",
      CUdeviceptr dst, CUdeviceptr src, size_t n)
PLN_F(cuMemcpyDtoDAsync, _v2, 3020, ptsz, "ddzS",
      CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
PLN_F(cuMemcpyPeer, , 4000, ptds, "dCdCz",
      CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
      size_t n)
PLN_F(cuMemcpyPeerAsync, , 4000, ptsz, "dCdCzS",
      CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
      size_t n, CUstream stream)
PLN_F(cuMemcpy2D, _v2, 3020, ptds, "p", const CUDA_MEMCPY2D *copy)
PLN_F(cuMemcpy2DUnaligned, _v2, 3020, ptds, "p", const CUDA_MEMCPY2D *copy)
PLN_F(cuMemcpy2DAsync, _v2, 3020, ptsz, "pS",
      const CUDA_MEMCPY2D *copy, CUstream stream)
PLN_F(cuMemsetD8, _v2, 3020, ptds, "diz",
      CUdeviceptr dst, unsigned char value, size_t n)
PLN_F(cuMemsetD16, _v2, 3020, ptds, "diz",
      CUdeviceptr dst, unsigned short value, size_t n)
PLN_F(cuMemsetD32, _v2, 3020, ptds, "diz",
      CUdeviceptr dst, unsigned int value, size_t n)
PLN_F(cuMemsetD8Async, , 3020, ptsz, "dizS",
      CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
PLN_F(cuMemsetD16Async, , 3020, ptsz, "dizS",
      CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
PLN_F(cuMemsetD32Async, , 3020, ptsz, "dizS",
      CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)

/* Streams and events */
PLN_F(cuStreamCreate, , 2000, , "pi", CUstream *stream, unsigned int flags)
PLN_F(cuStreamCreateWithPriority, , 5050, , "pii",
      CUstream *stream, unsigned int flags, int priority)
PLN_F(cuStreamDestroy, _v2, 4000, , "S", CUstream stream)
PLN_F(cuStreamSynchronize, , 2000, ptsz, "S", CUstream stream)
PLN_F(cuStreamQuery, , 2000, ptsz, "S", CUstream stream)
PLN_F(cuStreamWaitEvent, , 3020, ptsz, "SEi",
      CUstream stream, CUevent event, unsigned int flags)
PLN_F(cuStreamGetPriority, , 5050, ptsz, "Sp", CUstream stream, int *priority)
PLN_F(cuStreamGetFlags, , 5050, ptsz, "Sp",
      CUstream stream, unsigned int *flags)
PLN_F(cuStreamGetId, , 12000, ptsz, "Sp",
      CUstream stream, unsigned long long *id)
PLN_F(cuStreamGetCtx, , 9020, ptsz, "Sp", CUstream stream, CUcontext *ctx)
PLN_F(cuStreamGetCtx, _v2, 12050, ptsz, "Spp",
      CUstream stream, CUcontext *ctx, CUgreenCtx *green)
PLN_F(cuStreamGetDevice, , 12080, ptsz, "Sp", CUstream stream, CUdevice *dev)
PLN_F(cuStreamIsCapturing, , 10000, ptsz, "Sp",
      CUstream stream, CUstreamCaptureStatus *status)
PLN_F(cuStreamWaitValue32, , 8000, ptsz, "0",
      CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
PLN_F(cuStreamWaitValue64, , 9000, ptsz, "0",
      CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
PLN_F(cuStreamWriteValue32, , 8000, ptsz, "Sdii",
      CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
PLN_F(cuStreamWriteValue64, , 9000, ptsz, "Sdii",
      CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
PLN_F(cuStreamBatchMemOp, , 8000, ptsz, "0",
      CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
      unsigned int flags)
PLN_F(cuStreamWaitValue32, _v2, 11070, ptsz, "0",
      CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
PLN_F(cuStreamWaitValue64, _v2, 11070, ptsz, "0",
      CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
PLN_F(cuStreamWriteValue32, _v2, 11070, ptsz, "Sdii",
      CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
PLN_F(cuStreamWriteValue64, _v2, 11070, ptsz, "Sdii",
      CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
PLN_F(cuStreamBatchMemOp, _v2, 11070, ptsz, "0",
      CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops,
      unsigned int flags)
PLN_F(cuEventCreate, , 2000, , "pi", CUevent *event, unsigned int flags)
PLN_F(cuEventDestroy, _v2, 4000, , "E", CUevent event)
PLN_F(cuEventRecord, , 2000, ptsz, "ES", CUevent event, CUstream stream)
PLN_F(cuEventRecordWithFlags, , 11010, ptsz, "ESi",
      CUevent event, CUstream stream, unsigned int flags)
PLN_F(cuEventQuery, , 2000, , "E", CUevent event)
PLN_F(cuEventSynchronize, , 2000, , "E", CUevent event)
PLN_F(cuEventElapsedTime, , 2000, , "pEE",
      float *ms, CUevent start, CUevent end)
PLN_F(cuEventElapsedTime, _v2, 12080, , "pEE",
      float *ms, CUevent start, CUevent end)

/* Virtual memory management */
PLN_F(cuMemAddressReserve, , 10020, , "pzzdi",
      CUdeviceptr *ptr, size_t size, size_t align, CUdeviceptr addr,
      unsigned long long flags)
PLN_F(cuMemAddressFree, , 10020, , "dz", CUdeviceptr ptr, size_t size)
PLN_F(cuMemCreate, , 10020, , "pzpi",
      CUmemGenericAllocationHandle *handle, size_t size,
      const CUmemAllocationProp *prop, unsigned long long flags)
PLN_F(cuMemRelease, , 10020, , "G", CUmemGenericAllocationHandle handle)
PLN_F(cuMemMap, , 10020, , "dzzGi",
      CUdeviceptr ptr, size_t size, size_t offset,
      CUmemGenericAllocationHandle handle, unsigned long long flags)
PLN_F(cuMemUnmap, , 10020, , "dz", CUdeviceptr ptr, size_t size)
PLN_F(cuMemSetAccess, , 10020, , "dzpz",
      CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
PLN_F(cuMemGetAccess, , 10020, , "ppd",
      unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
PLN_F(cuMemExportToShareableHandle, , 10020, , "pGii",
      void *shareable, CUmemGenericAllocationHandle handle,
      CUmemAllocationHandleType type, unsigned long long flags)
PLN_F(cuMemImportFromShareableHandle, , 10020, , "ppi",
      CUmemGenericAllocationHandle *handle, void *shareable,
      CUmemAllocationHandleType type)
PLN_F(cuMemGetAllocationGranularity, , 10020, , "ppi",
      size_t *granularity, const CUmemAllocationProp *prop,
      CUmemAllocationGranularity_flags option)
PLN_F(cuMemGetAllocationPropertiesFromHandle, , 10020, , "pG",
      CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
PLN_F(cuMemRetainAllocationHandle, , 11000, , "pd",
      CUmemGenericAllocationHandle *handle, void *addr)

/* Other processes */
PLN_F(cuIpcGetMemHandle, , 4010, , "pd",
      CUipcMemHandle *handle, CUdeviceptr ptr)
PLN_F(cuIpcOpenMemHandle, , 4010, , 0,
      CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
PLN_F(cuIpcOpenMemHandle, _v2, 11000, , 0,
      CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
PLN_F(cuIpcCloseMemHandle, , 4010, , "d", CUdeviceptr ptr)
PLN_F(cuIpcGetEventHandle, , 4010, , "pE",
      CUipcEventHandle *handle, CUevent event)
PLN_F(cuIpcOpenEventHandle, , 4010, , 0,
      CUevent *event, CUipcEventHandle handle)

/* Device code: taken, never run */
PLN_F(cuModuleLoad, , 2000, , "ps", CUmodule *module, const char *file)
PLN_F(cuModuleLoadData, , 2000, , "pm", CUmodule *module, const void *image)
PLN_F(cuModuleLoadDataEx, , 2010, , "pmipp",
      CUmodule *module, const void *image, unsigned int n,
      CUjit_option *options, void **values)
PLN_F(cuModuleLoadFatBinary, , 2000, , "pm",
      CUmodule *module, const void *image)
PLN_F(cuModuleUnload, , 2000, , "M", CUmodule module)
PLN_F(cuModuleGetFunction, , 2000, , "pMs",
      CUfunction *function, CUmodule module, const char *name)
PLN_F(cuModuleGetGlobal, _v2, 3020, , "ppMs",
      CUdeviceptr *ptr, size_t *size, CUmodule module, const char *name)
PLN_F(cuLibraryLoadData, , 12000, , "pmppippi",
      CUlibrary *library, const void *image, CUjit_option *options,
      void **values, unsigned int n, CUlibraryOption *library_options,
      void **library_values, unsigned int library_n)
PLN_F(cuLibraryLoadFromFile, , 12000, , "psppippi",
      CUlibrary *library, const char *file, CUjit_option *options,
      void **values, unsigned int n, CUlibraryOption *library_options,
      void **library_values, unsigned int library_n)
PLN_F(cuLibraryUnload, , 12000, , "L", CUlibrary library)
PLN_F(cuLibraryGetKernel, , 12000, , "pLs",
      CUkernel *kernel, CUlibrary library, const char *name)
PLN_F(cuLibraryGetModule, , 12000, , "pL", CUmodule *module, CUlibrary library)
PLN_F(cuLibraryGetGlobal, , 12000, , "ppLs",
      CUdeviceptr *ptr, size_t *size, CUlibrary library, const char *name)
PLN_F(cuKernelGetFunction, , 12000, , "pK",
      CUfunction *function, CUkernel kernel)
PLN_F(cuKernelGetName, , 12030, , "pK", const char **name, CUkernel kernel)
PLN_F(cuFuncGetName, , 12030, , "pK", const char **name, CUfunction function)
PLN_F(cuFuncGetModule, , 11000, , "pK", CUmodule *module, CUfunction function)
PLN_F(cuFuncGetAttribute, , 2020, , "piK",
      int *value, CUfunction_attribute attr, CUfunction function)
PLN_F(cuFuncSetAttribute, , 9000, , "Kii",
      CUfunction function, CUfunction_attribute attr, int value)
PLN_F(cuLaunchKernel, , 4000, ptsz, "KiiiiiiiSpp",
      CUfunction function, unsigned int grid_x, unsigned int grid_y,
      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
      unsigned int block_z, unsigned int shared, CUstream stream, void **params,
      void **extra)
PLN_F(cuLaunchCooperativeKernel, , 9000, ptsz, "KiiiiiiiSp",
      CUfunction function, unsigned int grid_x, unsigned int grid_y,
      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
      unsigned int block_z, unsigned int shared, CUstream stream, void **params)
PLN_F(cuLaunchKernelEx, , 11060, ptsz, "pKpp",
      const CUlaunchConfig *config, CUfunction function, void **params,
      void **extra)

/* Functions of the program in a stream */
PLN_F(cuLaunchHostFunc, , 10000, ptsz, "Sfp",
      CUstream stream, CUhostFn function, void *arg)
PLN_F(cuStreamAddCallback, , 5000, ptsz, "Sfpi",
      CUstream stream, CUstreamCallback callback, void *arg, unsigned int flags)

/* Memory in the order of a stream, and pools of it */
PLN_F(cuMemAllocAsync, , 11020, ptsz, "pzS",
      CUdeviceptr *ptr, size_t size, CUstream stream)
PLN_F(cuMemAllocFromPoolAsync, , 11020, ptsz, "pzPS",
      CUdeviceptr *ptr, size_t size, CUmemoryPool pool, CUstream stream)
PLN_F(cuMemFreeAsync, , 11020, ptsz, "dS", CUdeviceptr ptr, CUstream stream)
PLN_F(cuMemPoolCreate, , 11020, , "pp",
      CUmemoryPool *pool, const CUmemPoolProps *props)
PLN_F(cuMemPoolDestroy, , 11020, , "P", CUmemoryPool pool)
PLN_F(cuDeviceGetDefaultMemPool, , 11020, , "pi",
      CUmemoryPool *pool, CUdevice dev)
PLN_F(cuMemPoolSetAccess, , 11020, , "Ppz",
      CUmemoryPool pool, const CUmemAccessDesc *desc, size_t n)
PLN_F(cuMemPoolExportToShareableHandle, , 11020, , "pPii",
      void *handle, CUmemoryPool pool, CUmemAllocationHandleType type,
      unsigned long long flags)
PLN_F(cuMemPoolImportFromShareableHandle, , 11020, , "ppii",
      CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type,
      unsigned long long flags)
PLN_F(cuMemPoolExportPointer, , 11020, , "pd",
      CUmemPoolPtrExportData *data, CUdeviceptr ptr)
PLN_F(cuMemPoolImportPointer, , 11020, , "pPp",
      CUdeviceptr *ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
PLN_F(cuMemPoolTrimTo, , 11020, , "Pz", CUmemoryPool pool, size_t keep)
PLN_F(cuMemPoolSetAttribute, , 11020, , "Pip",
      CUmemoryPool pool, CUmemPool_attribute attr, void *value)
PLN_F(cuMemPoolGetAttribute, , 11020, , "Pip",
      CUmemoryPool pool, CUmemPool_attribute attr, void *value)
PLN_F(cuMemPoolGetAccess, , 11020, , "pPp",
      CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
PLN_F(cuDeviceSetMemPool, , 11020, , "iP", CUdevice dev, CUmemoryPool pool)
PLN_F(cuDeviceGetMemPool, , 11020, , "pi", CUmemoryPool *pool, CUdevice dev)
PLN_F(cuMemGetDefaultMemPool, , 13000, , "ppi",
      CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
PLN_F(cuMemGetMemPool, , 13000, , "ppi",
      CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
PLN_F(cuMemSetMemPool, , 13000, , "piP",
      CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)

/* Managed memory */
PLN_F(cuMemPrefetchAsync, , 8000, ptsz, "dziS",
      CUdeviceptr ptr, size_t n, CUdevice dev, CUstream stream)
PLN_F(cuMemPrefetchAsync, _v2, 12020, ptsz, "dzliS",
      CUdeviceptr ptr, size_t n, CUmemLocation location, unsigned int flags,
      CUstream stream)
PLN_F(cuMemAdvise, , 8000, , "dzii",
      CUdeviceptr ptr, size_t n, CUmem_advise advice, CUdevice dev)
PLN_F(cuMemAdvise, _v2, 12020, , "dzil",
      CUdeviceptr ptr, size_t n, CUmem_advise advice, CUmemLocation location)
PLN_F(cuMemRangeGetAttribute, , 8000, , "pbidz",
      void *data, size_t size, CUmem_range_attribute attr, CUdeviceptr ptr,
      size_t n)
PLN_F(cuMemRangeGetAttributes, , 8000, , "pppzdz",
      void **data, size_t *sizes, CUmem_range_attribute *attrs, size_t count,
      CUdeviceptr ptr, size_t n)
PLN_F(cuStreamAttachMemAsync, , 6000, ptsz, "Sdzi",
      CUstream stream, CUdeviceptr ptr, size_t n, unsigned int flags)

/* Many copies in one call */
PLN_F(cuMemcpyBatchAsync, , 12080, ptsz, "pppippipS",
      CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
      CUmemcpyAttributes *attrs, size_t *starts, size_t nr_attrs, size_t *fail,
      CUstream stream)
PLN_F(cuMemcpyBatchAsync, _v2, 13000, ptsz, "pppippiS",
      CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
      CUmemcpyAttributes *attrs, size_t *starts, size_t nr_attrs,
      CUstream stream)

/* Fills of two dimensions */
PLN_F(cuMemsetD2D8, _v2, 3020, ptds, "dzizz",
      CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
      size_t height)
PLN_F(cuMemsetD2D16, _v2, 3020, ptds, "dzizz",
      CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
      size_t height)
PLN_F(cuMemsetD2D32, _v2, 3020, ptds, "dzizz",
      CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
      size_t height)
PLN_F(cuMemsetD2D8Async, , 3020, ptsz, "dzizzS",
      CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
      size_t height, CUstream stream)
PLN_F(cuMemsetD2D16Async, , 3020, ptsz, "dzizzS",
      CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
      size_t height, CUstream stream)
PLN_F(cuMemsetD2D32Async, , 3020, ptsz, "dzizzS",
      CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
      size_t height, CUstream stream)

#undef PLN_F
