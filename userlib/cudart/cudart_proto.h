/* SPDX-License-Identifier: MIT */
/*
 * The functions that the library exports: the one list of them.  Included as it
 * is, it declares those that are served; whoever defines one of these makes
 * something else of each:
 *
 *	PLN_RT(result, name, alias, parameters...)	one that is served
 *	PLN_RT_OTHER(result, name, alias, parameters...)	likewise, but NVIDIA's
 *		takes more, of types that are not written down here
 *	PLN_ABSENT(name, alias)		one that CUDA 12.4 or 13.0 has, and is not
 *		served here
 *
 * @alias	suffix of a second name, for programs that are built with one
 *		default stream for each thread: ptsz, ptds, or nothing
 *
 * No include guard and no types of its own: tests/cudart/abi.sh compiles it
 * once more behind NVIDIA's header, so that the compiler compares signatures.
 */
#ifndef PLN_RT
#define PLN_RT(result, name, alias, ...) \
	result name(__VA_ARGS__); \
	PLN_RT_##alias(result, name, __VA_ARGS__)
#endif
#define PLN_RT_(result, name, ...)
#define PLN_RT_ptsz(result, name, ...)	result name##_ptsz(__VA_ARGS__);
#define PLN_RT_ptds(result, name, ...)	result name##_ptds(__VA_ARGS__);
#ifndef PLN_RT_OTHER
#define PLN_RT_OTHER	PLN_RT
#endif
#ifndef PLN_ABSENT
#define PLN_ABSENT(name, alias)
#endif

/* Errors */
PLN_RT(cudaError_t, cudaGetLastError, , void)
PLN_RT(cudaError_t, cudaPeekAtLastError, , void)
PLN_RT(const char *, cudaGetErrorName, , cudaError_t error)
PLN_RT(const char *, cudaGetErrorString, , cudaError_t error)

/* Devices */
PLN_RT(cudaError_t, cudaDriverGetVersion, , int *version)
PLN_RT(cudaError_t, cudaRuntimeGetVersion, , int *version)
PLN_RT(cudaError_t, cudaGetDeviceCount, , int *count)
PLN_RT(cudaError_t, cudaGetDevice, , int *device)
PLN_RT(cudaError_t, cudaSetDevice, , int device)
PLN_RT(cudaError_t, cudaInitDevice, ,
      int device, unsigned int device_flags, unsigned int flags)
PLN_RT(cudaError_t, cudaSetValidDevices, , int *devices, int n)
PLN_RT(cudaError_t, cudaGetDeviceFlags, , unsigned int *flags)
PLN_RT(cudaError_t, cudaSetDeviceFlags, , unsigned int flags)
PLN_RT(cudaError_t, cudaDeviceGetAttribute, ,
      int *value, enum cudaDeviceAttr attr, int device)
PLN_RT(cudaError_t, cudaGetDeviceProperties, ,
      struct cudaDeviceProp *prop, int device)
#if CUDART_MAJOR < 13
PLN_RT(cudaError_t, cudaGetDeviceProperties_v2, ,
      struct cudaDeviceProp *prop, int device)
PLN_RT(cudaError_t, cudaThreadSynchronize, , void)
PLN_RT(cudaError_t, cudaThreadExit, , void)
#endif
PLN_RT(cudaError_t, cudaDeviceSynchronize, , void)
PLN_RT(cudaError_t, cudaDeviceReset, , void)
PLN_RT(cudaError_t, cudaDeviceGetLimit, , size_t *value, enum cudaLimit limit)
PLN_RT(cudaError_t, cudaDeviceSetLimit, , enum cudaLimit limit, size_t value)
PLN_RT(cudaError_t, cudaDeviceGetCacheConfig, , enum cudaFuncCache *config)
PLN_RT(cudaError_t, cudaDeviceSetCacheConfig, , enum cudaFuncCache config)
PLN_RT(cudaError_t, cudaDeviceGetByPCIBusId, , int *device, const char *id)
PLN_RT(cudaError_t, cudaDeviceGetPCIBusId, , char *id, int len, int device)
PLN_RT(cudaError_t, cudaDeviceGetStreamPriorityRange, ,
      int *least, int *greatest)
PLN_RT(cudaError_t, cudaDeviceCanAccessPeer, , int *can, int device, int peer)
PLN_RT(cudaError_t, cudaDeviceEnablePeerAccess, , int peer, unsigned int flags)
PLN_RT(cudaError_t, cudaDeviceDisablePeerAccess, , int peer)
PLN_RT(cudaError_t, cudaDeviceGetP2PAttribute, ,
      int *value, enum cudaDeviceP2PAttr attr, int src, int dst)
PLN_RT(cudaError_t, cudaDeviceFlushGPUDirectRDMAWrites, ,
      enum cudaFlushGPUDirectRDMAWritesTarget target,
      enum cudaFlushGPUDirectRDMAWritesScope scope)
PLN_RT(cudaError_t, cudaGetDriverEntryPoint, ptsz,
      const char *symbol, void **fn, unsigned long long flags,
      enum cudaDriverEntryPointQueryResult *status)
PLN_RT(cudaError_t, cudaGetDriverEntryPointByVersion, ptsz,
      const char *symbol, void **fn, unsigned int version,
      unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
PLN_RT(cudaError_t, cudaProfilerStart, , void)
PLN_RT(cudaError_t, cudaProfilerStop, , void)

/* Memory */
PLN_RT(cudaError_t, cudaMalloc, , void **ptr, size_t size)
PLN_RT(cudaError_t, cudaMallocPitch, ,
      void **ptr, size_t *pitch, size_t width, size_t height)
PLN_RT(cudaError_t, cudaMalloc3D, ,
      struct cudaPitchedPtr *ptr, struct cudaExtent extent)
PLN_RT(cudaError_t, cudaMallocManaged, ,
      void **ptr, size_t size, unsigned int flags)
PLN_RT(cudaError_t, cudaFree, , void *ptr)
PLN_RT(cudaError_t, cudaMallocHost, , void **ptr, size_t size)
PLN_RT(cudaError_t, cudaHostAlloc, ,
      void **ptr, size_t size, unsigned int flags)
PLN_RT(cudaError_t, cudaFreeHost, , void *ptr)
PLN_RT(cudaError_t, cudaHostRegister, ,
      void *ptr, size_t size, unsigned int flags)
PLN_RT(cudaError_t, cudaHostUnregister, , void *ptr)
PLN_RT(cudaError_t, cudaHostGetDevicePointer, ,
      void **device, void *host, unsigned int flags)
PLN_RT(cudaError_t, cudaHostGetFlags, , unsigned int *flags, void *ptr)
PLN_RT(cudaError_t, cudaMemGetInfo, , size_t *avail, size_t *total)
PLN_RT(cudaError_t, cudaPointerGetAttributes, ,
      struct cudaPointerAttributes *attrs, const void *ptr)
#if CUDART_MAJOR >= 13
PLN_RT(cudaError_t, cudaMemPrefetchAsync, ptsz,
      const void *ptr, size_t n, struct cudaMemLocation where,
      unsigned int flags, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemAdvise, ,
      const void *ptr, size_t n, enum cudaMemoryAdvise advice,
      struct cudaMemLocation where)
#else
PLN_RT(cudaError_t, cudaMemPrefetchAsync, ptsz,
      const void *ptr, size_t n, int device, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemAdvise, ,
      const void *ptr, size_t n, enum cudaMemoryAdvise advice, int device)
PLN_RT(cudaError_t, cudaMemPrefetchAsync_v2, ptsz,
      const void *ptr, size_t n, struct cudaMemLocation where,
      unsigned int flags, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemAdvise_v2, ,
      const void *ptr, size_t n, enum cudaMemoryAdvise advice,
      struct cudaMemLocation where)
#endif
PLN_RT(cudaError_t, cudaMemRangeGetAttribute, ,
      void *data, size_t size, enum cudaMemRangeAttribute attr, const void *ptr,
      size_t n)
PLN_RT(cudaError_t, cudaMemRangeGetAttributes, ,
      void **data, size_t *sizes, enum cudaMemRangeAttribute *attrs,
      size_t count, const void *ptr, size_t n)
PLN_RT(cudaError_t, cudaStreamAttachMemAsync, ptsz,
      cudaStream_t stream, void *ptr, size_t n, unsigned int flags)
PLN_RT(cudaError_t, cudaIpcGetMemHandle, ,
      cudaIpcMemHandle_t *handle, void *ptr)
PLN_RT(cudaError_t, cudaIpcOpenMemHandle, ,
      void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
PLN_RT(cudaError_t, cudaIpcCloseMemHandle, , void *ptr)
PLN_RT(cudaError_t, cudaIpcGetEventHandle, ,
      cudaIpcEventHandle_t *handle, cudaEvent_t event)
PLN_RT(cudaError_t, cudaIpcOpenEventHandle, ,
      cudaEvent_t *event, cudaIpcEventHandle_t handle)

/* Copies and fills */
PLN_RT(cudaError_t, cudaMemcpy, ptds,
      void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
PLN_RT(cudaError_t, cudaMemcpyAsync, ptsz,
      void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
      cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemcpyPeer, ,
      void *dst, int dst_device, const void *src, int src_device, size_t n)
PLN_RT(cudaError_t, cudaMemcpyPeerAsync, ,
      void *dst, int dst_device, const void *src, int src_device, size_t n,
      cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemcpy2D, ptds,
      void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
      size_t width, size_t height, enum cudaMemcpyKind kind)
PLN_RT(cudaError_t, cudaMemcpy2DAsync, ptsz,
      void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
      size_t width, size_t height, enum cudaMemcpyKind kind,
      cudaStream_t stream)
#if CUDART_MAJOR >= 13
PLN_RT(cudaError_t, cudaMemcpyBatchAsync, ptsz,
      void *const *dsts, const void *const *srcs, const size_t *sizes,
      size_t count, struct cudaMemcpyAttributes *attrs, size_t *starts,
      size_t nr_attrs, cudaStream_t stream)
#else
PLN_RT(cudaError_t, cudaMemcpyBatchAsync, ptsz,
      void **dsts, void **srcs, size_t *sizes, size_t count,
      struct cudaMemcpyAttributes *attrs, size_t *starts, size_t nr_attrs,
      size_t *fail, cudaStream_t stream)
#endif
PLN_RT(cudaError_t, cudaMemcpyToSymbol, ptds,
      const void *symbol, const void *src, size_t n, size_t offset,
      enum cudaMemcpyKind kind)
PLN_RT(cudaError_t, cudaMemcpyToSymbolAsync, ptsz,
      const void *symbol, const void *src, size_t n, size_t offset,
      enum cudaMemcpyKind kind, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemcpyFromSymbol, ptds,
      void *dst, const void *symbol, size_t n, size_t offset,
      enum cudaMemcpyKind kind)
PLN_RT(cudaError_t, cudaMemcpyFromSymbolAsync, ptsz,
      void *dst, const void *symbol, size_t n, size_t offset,
      enum cudaMemcpyKind kind, cudaStream_t stream)
PLN_RT(cudaError_t, cudaGetSymbolAddress, , void **ptr, const void *symbol)
PLN_RT(cudaError_t, cudaGetSymbolSize, , size_t *size, const void *symbol)
PLN_RT(cudaError_t, cudaMemset, ptds, void *dst, int value, size_t n)
PLN_RT(cudaError_t, cudaMemsetAsync, ptsz,
      void *dst, int value, size_t n, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMemset2D, ptds,
      void *dst, size_t pitch, int value, size_t width, size_t height)
PLN_RT(cudaError_t, cudaMemset2DAsync, ptsz,
      void *dst, size_t pitch, int value, size_t width, size_t height,
      cudaStream_t stream)

/* Streams and events */
PLN_RT(cudaError_t, cudaStreamCreate, , cudaStream_t *stream)
PLN_RT(cudaError_t, cudaStreamCreateWithFlags, ,
      cudaStream_t *stream, unsigned int flags)
PLN_RT(cudaError_t, cudaStreamCreateWithPriority, ,
      cudaStream_t *stream, unsigned int flags, int priority)
PLN_RT(cudaError_t, cudaStreamDestroy, , cudaStream_t stream)
PLN_RT(cudaError_t, cudaStreamSynchronize, ptsz, cudaStream_t stream)
PLN_RT(cudaError_t, cudaStreamQuery, ptsz, cudaStream_t stream)
PLN_RT(cudaError_t, cudaStreamWaitEvent, ptsz,
      cudaStream_t stream, cudaEvent_t event, unsigned int flags)
PLN_RT(cudaError_t, cudaStreamGetPriority, ptsz,
      cudaStream_t stream, int *priority)
PLN_RT(cudaError_t, cudaStreamGetFlags, ptsz,
      cudaStream_t stream, unsigned int *flags)
PLN_RT(cudaError_t, cudaStreamGetId, ptsz,
      cudaStream_t stream, unsigned long long *id)
PLN_RT(cudaError_t, cudaStreamGetDevice, ptsz, cudaStream_t stream, int *device)
PLN_RT(cudaError_t, cudaStreamIsCapturing, ptsz,
      cudaStream_t stream, enum cudaStreamCaptureStatus *status)
PLN_RT_OTHER(cudaError_t, cudaStreamGetCaptureInfo, ptsz,
      cudaStream_t stream, enum cudaStreamCaptureStatus *status,
      unsigned long long *id)
PLN_RT_OTHER(cudaError_t, cudaStreamGetCaptureInfo_v2, ptsz,
      cudaStream_t stream, enum cudaStreamCaptureStatus *status,
      unsigned long long *id, void *, void *, void *)
PLN_RT_OTHER(cudaError_t, cudaStreamGetCaptureInfo_v3, ptsz,
      cudaStream_t stream, enum cudaStreamCaptureStatus *status,
      unsigned long long *id, void *, void *, void *, void *)
PLN_RT(cudaError_t, cudaStreamAddCallback, ptsz,
      cudaStream_t stream, cudaStreamCallback_t callback, void *arg,
      unsigned int flags)
PLN_RT(cudaError_t, cudaLaunchHostFunc, ptsz,
      cudaStream_t stream, cudaHostFn_t function, void *arg)
PLN_RT(cudaError_t, cudaThreadExchangeStreamCaptureMode, ,
      enum cudaStreamCaptureMode *mode)
PLN_RT(cudaError_t, cudaEventCreate, , cudaEvent_t *event)
PLN_RT(cudaError_t, cudaEventCreateWithFlags, ,
      cudaEvent_t *event, unsigned int flags)
PLN_RT(cudaError_t, cudaEventDestroy, , cudaEvent_t event)
PLN_RT(cudaError_t, cudaEventRecord, ptsz,
      cudaEvent_t event, cudaStream_t stream)
PLN_RT(cudaError_t, cudaEventRecordWithFlags, ptsz,
      cudaEvent_t event, cudaStream_t stream, unsigned int flags)
PLN_RT(cudaError_t, cudaEventQuery, , cudaEvent_t event)
PLN_RT(cudaError_t, cudaEventSynchronize, , cudaEvent_t event)
PLN_RT(cudaError_t, cudaEventElapsedTime, ,
      float *ms, cudaEvent_t start, cudaEvent_t end)

/* Memory in the order of a stream */
PLN_RT(cudaError_t, cudaMallocAsync, ptsz,
      void **ptr, size_t size, cudaStream_t stream)
PLN_RT(cudaError_t, cudaMallocFromPoolAsync, ptsz,
      void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream)
PLN_RT(cudaError_t, cudaFreeAsync, ptsz, void *ptr, cudaStream_t stream)
PLN_RT(cudaError_t, cudaDeviceGetDefaultMemPool, ,
      cudaMemPool_t *pool, int device)
PLN_RT(cudaError_t, cudaDeviceGetMemPool, , cudaMemPool_t *pool, int device)
PLN_RT(cudaError_t, cudaDeviceSetMemPool, , int device, cudaMemPool_t pool)
PLN_RT(cudaError_t, cudaMemPoolCreate, ,
      cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
PLN_RT(cudaError_t, cudaMemPoolDestroy, , cudaMemPool_t pool)
PLN_RT(cudaError_t, cudaMemPoolTrimTo, , cudaMemPool_t pool, size_t keep)
PLN_RT(cudaError_t, cudaMemPoolGetAttribute, ,
      cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
PLN_RT(cudaError_t, cudaMemPoolSetAttribute, ,
      cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
PLN_RT(cudaError_t, cudaMemPoolSetAccess, ,
      cudaMemPool_t pool, const struct cudaMemAccessDesc *desc, size_t n)
PLN_RT(cudaError_t, cudaMemPoolGetAccess, ,
      enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
      struct cudaMemLocation *location)
PLN_RT(cudaError_t, cudaMemPoolExportToShareableHandle, ,
      void *handle, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
      unsigned int flags)
PLN_RT(cudaError_t, cudaMemPoolImportFromShareableHandle, ,
      cudaMemPool_t *pool, void *handle, enum cudaMemAllocationHandleType type,
      unsigned int flags)
PLN_RT(cudaError_t, cudaMemPoolExportPointer, ,
      struct cudaMemPoolPtrExportData *data, void *ptr)
PLN_RT(cudaError_t, cudaMemPoolImportPointer, ,
      void **ptr, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data)

/* Values */
PLN_RT(struct cudaChannelFormatDesc, cudaCreateChannelDesc, ,
      int x, int y, int z, int w, enum cudaChannelFormatKind f)

/* Device code */
PLN_RT(cudaError_t, cudaLaunchKernel, ptsz,
      const void *function, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream)
PLN_RT(cudaError_t, cudaLaunchCooperativeKernel, ptsz,
      const void *function, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream)
PLN_RT(cudaError_t, cudaLaunchKernelExC, ptsz,
      const cudaLaunchConfig_t *config, const void *function, void **args)
PLN_RT(cudaError_t, cudaFuncGetAttributes, ,
      struct cudaFuncAttributes *attrs, const void *function)
PLN_RT(cudaError_t, cudaFuncSetAttribute, ,
      const void *function, enum cudaFuncAttribute attr, int value)
PLN_RT(cudaError_t, cudaFuncSetCacheConfig, ,
      const void *function, enum cudaFuncCache config)
PLN_RT(cudaError_t, cudaFuncGetName, , const char **name, const void *function)
PLN_RT(cudaError_t, cudaGetKernel, , cudaKernel_t *kernel, const void *function)
PLN_RT(cudaError_t, cudaGetFuncBySymbol, ,
      cudaFunction_t *function, const void *symbol)

/* What code of the compiler calls: it hands over device code, and launches */
PLN_RT(void **, __cudaRegisterFatBinary, , void *wrapper)
PLN_RT(void, __cudaRegisterFatBinaryEnd, , void **handle)
PLN_RT(void, __cudaUnregisterFatBinary, , void **handle)
PLN_RT(void, __cudaRegisterFunction, ,
      void **handle, const char *function, char *stub, const char *name,
      int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
      int *warp)
PLN_RT(void, __cudaRegisterVar, ,
      void **handle, char *variable, char *address, const char *name, int ext,
      size_t size, int constant, int global)
PLN_RT(void, __cudaRegisterManagedVar, ,
      void **handle, void **variable, char *address, const char *name, int ext,
      size_t size, int constant, int global)
PLN_RT(unsigned int, __cudaPushCallConfiguration, ,
      dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
PLN_RT(cudaError_t, __cudaPopCallConfiguration, ,
      dim3 *grid, dim3 *block, size_t *shared, void *stream)
PLN_RT(cudaError_t, __cudaLaunchKernel, ptsz,
      cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream)
PLN_RT(cudaError_t, __cudaGetKernel, ,
      cudaKernel_t *kernel, const void *function)
PLN_RT(char, __cudaInitModule, , void **handle)

/* Peerlane's own, for libpeerlane-cudart.so.0: a name that is not listed here */
PLN_RT(cudaError_t, __cudaPeerlaneAbsent, , const char *name)

PLN_ABSENT(__cudaGetProcAddress, )
PLN_ABSENT(__cudaRegisterHostVar, )
PLN_ABSENT(__cudaRegisterUnifiedTable, )
PLN_ABSENT(cudaArrayGetInfo, )
PLN_ABSENT(cudaArrayGetMemoryRequirements, )
PLN_ABSENT(cudaArrayGetPlane, )
PLN_ABSENT(cudaArrayGetSparseProperties, )
PLN_ABSENT(cudaChooseDevice, )
PLN_ABSENT(cudaCreateSurfaceObject, )
PLN_ABSENT(cudaCreateTextureObject, )
PLN_ABSENT(cudaCtxResetPersistingL2Cache, )
PLN_ABSENT(cudaDestroyExternalMemory, )
PLN_ABSENT(cudaDestroyExternalSemaphore, )
PLN_ABSENT(cudaDestroySurfaceObject, )
PLN_ABSENT(cudaDestroyTextureObject, )
PLN_ABSENT(cudaDeviceGetGraphMemAttribute, )
PLN_ABSENT(cudaDeviceGetHostAtomicCapabilities, )
PLN_ABSENT(cudaDeviceGetNvSciSyncAttributes, )
PLN_ABSENT(cudaDeviceGetP2PAtomicCapabilities, )
PLN_ABSENT(cudaDeviceGetSharedMemConfig, )
PLN_ABSENT(cudaDeviceGetTexture1DLinearMaxWidth, )
PLN_ABSENT(cudaDeviceGraphMemTrim, )
PLN_ABSENT(cudaDeviceRegisterAsyncNotification, )
PLN_ABSENT(cudaDeviceSetGraphMemAttribute, )
PLN_ABSENT(cudaDeviceSetSharedMemConfig, )
PLN_ABSENT(cudaDeviceUnregisterAsyncNotification, )
PLN_ABSENT(cudaEGLStreamConsumerAcquireFrame, )
PLN_ABSENT(cudaEGLStreamConsumerConnect, )
PLN_ABSENT(cudaEGLStreamConsumerConnectWithFlags, )
PLN_ABSENT(cudaEGLStreamConsumerDisconnect, )
PLN_ABSENT(cudaEGLStreamConsumerReleaseFrame, )
PLN_ABSENT(cudaEGLStreamProducerConnect, )
PLN_ABSENT(cudaEGLStreamProducerDisconnect, )
PLN_ABSENT(cudaEGLStreamProducerPresentFrame, )
PLN_ABSENT(cudaEGLStreamProducerReturnFrame, )
PLN_ABSENT(cudaEventCreateFromEGLSync, )
PLN_ABSENT(cudaExternalMemoryGetMappedBuffer, )
PLN_ABSENT(cudaExternalMemoryGetMappedMipmappedArray, )
PLN_ABSENT(cudaFreeArray, )
PLN_ABSENT(cudaFreeMipmappedArray, )
PLN_ABSENT(cudaFuncGetParamInfo, )
PLN_ABSENT(cudaFuncSetSharedMemConfig, )
PLN_ABSENT(cudaGLGetDevices, )
PLN_ABSENT(cudaGLMapBufferObject, )
PLN_ABSENT(cudaGLMapBufferObjectAsync, )
PLN_ABSENT(cudaGLRegisterBufferObject, )
PLN_ABSENT(cudaGLSetBufferObjectMapFlags, )
PLN_ABSENT(cudaGLSetGLDevice, )
PLN_ABSENT(cudaGLUnmapBufferObject, )
PLN_ABSENT(cudaGLUnmapBufferObjectAsync, )
PLN_ABSENT(cudaGLUnregisterBufferObject, )
PLN_ABSENT(cudaGetChannelDesc, )
PLN_ABSENT(cudaGetExportTable, )
PLN_ABSENT(cudaGetMipmappedArrayLevel, )
PLN_ABSENT(cudaGetSurfaceObjectResourceDesc, )
PLN_ABSENT(cudaGetTextureObjectResourceDesc, )
PLN_ABSENT(cudaGetTextureObjectResourceViewDesc, )
PLN_ABSENT(cudaGetTextureObjectTextureDesc, )
PLN_ABSENT(cudaGraphAddChildGraphNode, )
PLN_ABSENT(cudaGraphAddDependencies, )
PLN_ABSENT(cudaGraphAddDependencies_v2, )
PLN_ABSENT(cudaGraphAddEmptyNode, )
PLN_ABSENT(cudaGraphAddEventRecordNode, )
PLN_ABSENT(cudaGraphAddEventWaitNode, )
PLN_ABSENT(cudaGraphAddExternalSemaphoresSignalNode, )
PLN_ABSENT(cudaGraphAddExternalSemaphoresWaitNode, )
PLN_ABSENT(cudaGraphAddHostNode, )
PLN_ABSENT(cudaGraphAddKernelNode, )
PLN_ABSENT(cudaGraphAddMemAllocNode, )
PLN_ABSENT(cudaGraphAddMemFreeNode, )
PLN_ABSENT(cudaGraphAddMemcpyNode, )
PLN_ABSENT(cudaGraphAddMemcpyNode1D, )
PLN_ABSENT(cudaGraphAddMemcpyNodeFromSymbol, )
PLN_ABSENT(cudaGraphAddMemcpyNodeToSymbol, )
PLN_ABSENT(cudaGraphAddMemsetNode, )
PLN_ABSENT(cudaGraphAddNode, )
PLN_ABSENT(cudaGraphAddNode_v2, )
PLN_ABSENT(cudaGraphChildGraphNodeGetGraph, )
PLN_ABSENT(cudaGraphClone, )
PLN_ABSENT(cudaGraphConditionalHandleCreate, )
PLN_ABSENT(cudaGraphCreate, )
PLN_ABSENT(cudaGraphDebugDotPrint, )
PLN_ABSENT(cudaGraphDestroy, )
PLN_ABSENT(cudaGraphDestroyNode, )
PLN_ABSENT(cudaGraphEventRecordNodeGetEvent, )
PLN_ABSENT(cudaGraphEventRecordNodeSetEvent, )
PLN_ABSENT(cudaGraphEventWaitNodeGetEvent, )
PLN_ABSENT(cudaGraphEventWaitNodeSetEvent, )
PLN_ABSENT(cudaGraphExecChildGraphNodeSetParams, )
PLN_ABSENT(cudaGraphExecDestroy, )
PLN_ABSENT(cudaGraphExecEventRecordNodeSetEvent, )
PLN_ABSENT(cudaGraphExecEventWaitNodeSetEvent, )
PLN_ABSENT(cudaGraphExecExternalSemaphoresSignalNodeSetParams, )
PLN_ABSENT(cudaGraphExecExternalSemaphoresWaitNodeSetParams, )
PLN_ABSENT(cudaGraphExecGetFlags, )
PLN_ABSENT(cudaGraphExecHostNodeSetParams, )
PLN_ABSENT(cudaGraphExecKernelNodeSetParams, )
PLN_ABSENT(cudaGraphExecMemcpyNodeSetParams, )
PLN_ABSENT(cudaGraphExecMemcpyNodeSetParams1D, )
PLN_ABSENT(cudaGraphExecMemcpyNodeSetParamsFromSymbol, )
PLN_ABSENT(cudaGraphExecMemcpyNodeSetParamsToSymbol, )
PLN_ABSENT(cudaGraphExecMemsetNodeSetParams, )
PLN_ABSENT(cudaGraphExecNodeSetParams, )
PLN_ABSENT(cudaGraphExecUpdate, )
PLN_ABSENT(cudaGraphExternalSemaphoresSignalNodeGetParams, )
PLN_ABSENT(cudaGraphExternalSemaphoresSignalNodeSetParams, )
PLN_ABSENT(cudaGraphExternalSemaphoresWaitNodeGetParams, )
PLN_ABSENT(cudaGraphExternalSemaphoresWaitNodeSetParams, )
PLN_ABSENT(cudaGraphGetEdges, )
PLN_ABSENT(cudaGraphGetEdges_v2, )
PLN_ABSENT(cudaGraphGetNodes, )
PLN_ABSENT(cudaGraphGetRootNodes, )
PLN_ABSENT(cudaGraphHostNodeGetParams, )
PLN_ABSENT(cudaGraphHostNodeSetParams, )
PLN_ABSENT(cudaGraphInstantiate, )
PLN_ABSENT(cudaGraphInstantiateWithFlags, )
PLN_ABSENT(cudaGraphInstantiateWithParams, ptsz)
PLN_ABSENT(cudaGraphKernelNodeCopyAttributes, )
PLN_ABSENT(cudaGraphKernelNodeGetAttribute, )
PLN_ABSENT(cudaGraphKernelNodeGetParams, )
PLN_ABSENT(cudaGraphKernelNodeSetAttribute, )
PLN_ABSENT(cudaGraphKernelNodeSetParams, )
PLN_ABSENT(cudaGraphLaunch, ptsz)
PLN_ABSENT(cudaGraphMemAllocNodeGetParams, )
PLN_ABSENT(cudaGraphMemFreeNodeGetParams, )
PLN_ABSENT(cudaGraphMemcpyNodeGetParams, )
PLN_ABSENT(cudaGraphMemcpyNodeSetParams, )
PLN_ABSENT(cudaGraphMemcpyNodeSetParams1D, )
PLN_ABSENT(cudaGraphMemcpyNodeSetParamsFromSymbol, )
PLN_ABSENT(cudaGraphMemcpyNodeSetParamsToSymbol, )
PLN_ABSENT(cudaGraphMemsetNodeGetParams, )
PLN_ABSENT(cudaGraphMemsetNodeSetParams, )
PLN_ABSENT(cudaGraphNodeFindInClone, )
PLN_ABSENT(cudaGraphNodeGetDependencies, )
PLN_ABSENT(cudaGraphNodeGetDependencies_v2, )
PLN_ABSENT(cudaGraphNodeGetDependentNodes, )
PLN_ABSENT(cudaGraphNodeGetDependentNodes_v2, )
PLN_ABSENT(cudaGraphNodeGetEnabled, )
PLN_ABSENT(cudaGraphNodeGetType, )
PLN_ABSENT(cudaGraphNodeSetEnabled, )
PLN_ABSENT(cudaGraphNodeSetParams, )
PLN_ABSENT(cudaGraphReleaseUserObject, )
PLN_ABSENT(cudaGraphRemoveDependencies, )
PLN_ABSENT(cudaGraphRemoveDependencies_v2, )
PLN_ABSENT(cudaGraphRetainUserObject, )
PLN_ABSENT(cudaGraphUpload, ptsz)
PLN_ABSENT(cudaGraphicsEGLRegisterImage, )
PLN_ABSENT(cudaGraphicsGLRegisterBuffer, )
PLN_ABSENT(cudaGraphicsGLRegisterImage, )
PLN_ABSENT(cudaGraphicsMapResources, )
PLN_ABSENT(cudaGraphicsResourceGetMappedEglFrame, )
PLN_ABSENT(cudaGraphicsResourceGetMappedMipmappedArray, )
PLN_ABSENT(cudaGraphicsResourceGetMappedPointer, )
PLN_ABSENT(cudaGraphicsResourceSetMapFlags, )
PLN_ABSENT(cudaGraphicsSubResourceGetMappedArray, )
PLN_ABSENT(cudaGraphicsUnmapResources, )
PLN_ABSENT(cudaGraphicsUnregisterResource, )
PLN_ABSENT(cudaGraphicsVDPAURegisterOutputSurface, )
PLN_ABSENT(cudaGraphicsVDPAURegisterVideoSurface, )
PLN_ABSENT(cudaImportExternalMemory, )
PLN_ABSENT(cudaImportExternalSemaphore, )
PLN_ABSENT(cudaKernelSetAttributeForDevice, )
PLN_ABSENT(cudaLaunchCooperativeKernelMultiDevice, )
PLN_ABSENT(cudaLibraryEnumerateKernels, )
PLN_ABSENT(cudaLibraryGetGlobal, )
PLN_ABSENT(cudaLibraryGetKernel, )
PLN_ABSENT(cudaLibraryGetKernelCount, )
PLN_ABSENT(cudaLibraryGetManaged, )
PLN_ABSENT(cudaLibraryGetUnifiedFunction, )
PLN_ABSENT(cudaLibraryLoadData, )
PLN_ABSENT(cudaLibraryLoadFromFile, )
PLN_ABSENT(cudaLibraryUnload, )
PLN_ABSENT(cudaLogsCurrent, )
PLN_ABSENT(cudaLogsDumpToFile, )
PLN_ABSENT(cudaLogsDumpToMemory, )
PLN_ABSENT(cudaLogsRegisterCallback, )
PLN_ABSENT(cudaLogsUnregisterCallback, )
PLN_ABSENT(cudaMalloc3DArray, )
PLN_ABSENT(cudaMallocArray, )
PLN_ABSENT(cudaMallocMipmappedArray, )
PLN_ABSENT(cudaMemDiscardAndPrefetchBatchAsync, ptsz)
PLN_ABSENT(cudaMemDiscardBatchAsync, ptsz)
PLN_ABSENT(cudaMemGetDefaultMemPool, )
PLN_ABSENT(cudaMemGetMemPool, )
PLN_ABSENT(cudaMemPrefetchBatchAsync, ptsz)
PLN_ABSENT(cudaMemSetMemPool, )
PLN_ABSENT(cudaMemcpy2DArrayToArray, ptds)
PLN_ABSENT(cudaMemcpy2DFromArray, ptds)
PLN_ABSENT(cudaMemcpy2DFromArrayAsync, ptsz)
PLN_ABSENT(cudaMemcpy2DToArray, ptds)
PLN_ABSENT(cudaMemcpy2DToArrayAsync, ptsz)
PLN_ABSENT(cudaMemcpy3D, ptds)
PLN_ABSENT(cudaMemcpy3DAsync, ptsz)
PLN_ABSENT(cudaMemcpy3DBatchAsync, ptsz)
PLN_ABSENT(cudaMemcpy3DPeer, ptds)
PLN_ABSENT(cudaMemcpy3DPeerAsync, ptsz)
PLN_ABSENT(cudaMemcpyArrayToArray, ptds)
PLN_ABSENT(cudaMemcpyFromArray, ptds)
PLN_ABSENT(cudaMemcpyFromArrayAsync, ptsz)
PLN_ABSENT(cudaMemcpyToArray, ptds)
PLN_ABSENT(cudaMemcpyToArrayAsync, ptsz)
PLN_ABSENT(cudaMemset3D, ptds)
PLN_ABSENT(cudaMemset3DAsync, ptsz)
PLN_ABSENT(cudaMipmappedArrayGetMemoryRequirements, )
PLN_ABSENT(cudaMipmappedArrayGetSparseProperties, )
PLN_ABSENT(cudaOccupancyAvailableDynamicSMemPerBlock, )
PLN_ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessor, )
PLN_ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, )
PLN_ABSENT(cudaOccupancyMaxActiveClusters, )
PLN_ABSENT(cudaOccupancyMaxPotentialClusterSize, )
PLN_ABSENT(cudaSetDoubleForDevice, )
PLN_ABSENT(cudaSetDoubleForHost, )
PLN_ABSENT(cudaSignalExternalSemaphoresAsync, ptsz)
PLN_ABSENT(cudaSignalExternalSemaphoresAsync_v2, ptsz)
PLN_ABSENT(cudaStreamBeginCapture, ptsz)
PLN_ABSENT(cudaStreamBeginCaptureToGraph, ptsz)
PLN_ABSENT(cudaStreamCopyAttributes, ptsz)
PLN_ABSENT(cudaStreamEndCapture, ptsz)
PLN_ABSENT(cudaStreamGetAttribute, ptsz)
PLN_ABSENT(cudaStreamSetAttribute, ptsz)
PLN_ABSENT(cudaStreamUpdateCaptureDependencies, ptsz)
PLN_ABSENT(cudaStreamUpdateCaptureDependencies_v2, ptsz)
PLN_ABSENT(cudaThreadGetCacheConfig, )
PLN_ABSENT(cudaThreadGetLimit, )
PLN_ABSENT(cudaThreadSetCacheConfig, )
PLN_ABSENT(cudaThreadSetLimit, )
PLN_ABSENT(cudaUserObjectCreate, )
PLN_ABSENT(cudaUserObjectRelease, )
PLN_ABSENT(cudaUserObjectRetain, )
PLN_ABSENT(cudaVDPAUGetDevice, )
PLN_ABSENT(cudaVDPAUSetVDPAUDevice, )
PLN_ABSENT(cudaWaitExternalSemaphoresAsync, ptsz)
PLN_ABSENT(cudaWaitExternalSemaphoresAsync_v2, ptsz)

#undef PLN_RT
#undef PLN_RT_
#undef PLN_RT_ptsz
#undef PLN_RT_ptds
#undef PLN_RT_OTHER
#undef PLN_ABSENT
