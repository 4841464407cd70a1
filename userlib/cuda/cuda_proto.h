/* SPDX-License-Identifier: MIT */
/*
 * The functions that the library exports.  No include guard and no types of
 * its own: tests/cuda/abi.sh compiles it once more behind NVIDIA's cuda.h, so
 * that the compiler compares the signatures.
 */

/* Driver */
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorString(CUresult error, const char **words);
CUresult cuGetProcAddress(const char *symbol, void **fn, int version,
			  cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version,
			     cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status);
CUresult cuGetExportTable(const void **table, const CUuuid *id);
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode);

/* Devices */
CUresult cuDeviceGet(CUdevice *dev, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr,
			      CUdevice dev);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev);
CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr,
				 CUdevice src, CUdevice dst);
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
				    CUflushGPUDirectRDMAWritesScope scope);

/* Contexts */
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev);
CUresult cuDevicePrimaryCtxRelease(CUdevice dev);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
				    int *active);
CUresult cuDevicePrimaryCtxReset(CUdevice dev);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int n,
			unsigned int flags, CUdevice dev);
CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params,
			unsigned int flags, CUdevice dev);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *ctx);
CUresult cuCtxGetDevice(CUdevice *dev);
CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext ctx);
CUresult cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxSetFlags(unsigned int flags);
CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache *config);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);

/* Memory */
CUresult cuMemGetInfo_v2(size_t *avail, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width,
			    size_t height, unsigned int element);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
				 CUdeviceptr ptr);
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags);
CUresult cuMemAllocHost_v2(void **ptr, size_t size);
CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr,
				      unsigned int flags);
CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr);
CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags);
CUresult cuMemHostUnregister(void *ptr);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
				       size_t size, CUmemRangeHandleType type,
				       unsigned long long flags);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
			       CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attrs,
				void **data, CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr,
			       CUdeviceptr ptr);

/* Copies and fills */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n,
		       CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n,
			      CUstream stream);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n,
			      CUstream stream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n,
			      CUstream stream);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
		      CUcontext src_ctx, size_t n);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
			   CUcontext src_ctx, size_t n, CUstream stream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n);
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n,
			 CUstream stream);
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n,
			  CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n,
			  CUstream stream);

/* Streams and events */
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
				    int priority);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags);
CUresult cuStreamGetId(CUstream stream, unsigned long long *id);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx);
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *dev);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
				unsigned int flags);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);

/* Virtual memory management */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t align,
			     CUdeviceptr addr, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size,
			const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(unsigned long long *flags,
			const CUmemLocation *location, CUdeviceptr ptr);
CUresult cuMemExportToShareableHandle(void *shareable,
				      CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type,
				      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					void *shareable,
					CUmemAllocationHandleType type);
CUresult cuMemGetAllocationGranularity(size_t *granularity,
				       const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(
				CUmemAllocationProp *prop,
				CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
				     void *addr);

/* Other processes */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle,
			    unsigned int flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle,
			       unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);

/* Device code: taken, never run */
CUresult cuModuleLoad(CUmodule *module, const char *file);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
			    unsigned int n, CUjit_option *options,
			    void **values);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
			     const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *size, CUmodule module,
			      const char *name);
CUresult cuLibraryLoadData(CUlibrary *library, const void *image,
			   CUjit_option *options, void **values,
			   unsigned int n, CUlibraryOption *library_options,
			   void **library_values, unsigned int library_n);
CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file,
			       CUjit_option *options, void **values,
			       unsigned int n, CUlibraryOption *library_options,
			       void **library_values, unsigned int library_n);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
			    const char *name);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *size, CUlibrary library,
			    const char *name);
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
CUresult cuKernelGetName(const char **name, CUkernel kernel);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr,
			    CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attr,
			    int value);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
			unsigned int grid_y, unsigned int grid_z,
			unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared,
			CUstream stream, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
				   unsigned int grid_y, unsigned int grid_z,
				   unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared,
				   CUstream stream, void **params);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
			  void **params, void **extra);

/* Functions of the program in a stream */
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
			     void *arg, unsigned int flags);

/* Memory in the order of a stream, and pools of it */
CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size,
				 CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc,
			    size_t n);
CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
					  CUmemAllocationHandleType type,
					  unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr, CUmemoryPool pool,
				CUmemPoolPtrExportData *data);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
			       void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
			       void *value);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
			    CUmemLocation *location);
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
				CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
			 CUmemAllocationType type);
CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type,
			 CUmemoryPool pool);

/* Managed memory */
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t n, CUdevice dev,
			    CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t n,
			       CUmemLocation location, unsigned int flags,
			       CUstream stream);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t n, CUmem_advise advice,
		     CUdevice dev);
CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t n, CUmem_advise advice,
			CUmemLocation location);
CUresult cuMemRangeGetAttribute(void *data, size_t size,
				CUmem_range_attribute attr, CUdeviceptr ptr,
				size_t n);
CUresult cuMemRangeGetAttributes(void **data, size_t *sizes,
				 CUmem_range_attribute *attrs, size_t count,
				 CUdeviceptr ptr, size_t n);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t n,
				unsigned int flags);

/* Many copies in one call */
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs,
			    size_t *sizes, size_t count,
			    CUmemcpyAttributes *attrs, size_t *starts,
			    size_t nr_attrs, size_t *fail, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs,
			       size_t *sizes, size_t count,
			       CUmemcpyAttributes *attrs, size_t *starts,
			       size_t nr_attrs, CUstream stream);

/* Fills of two dimensions */
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value,
			 size_t width, size_t height);
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value,
			  size_t width, size_t height);
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value,
			  size_t width, size_t height);
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value,
			   size_t width, size_t height, CUstream stream);
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch,
			    unsigned short value, size_t width, size_t height,
			    CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value,
			    size_t width, size_t height, CUstream stream);
