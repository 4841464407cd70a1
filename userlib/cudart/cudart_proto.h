/* SPDX-License-Identifier: MIT */
/*
 * The functions that the library serves.  No include guard and no types of its
 * own: tests/cudart/abi.sh compiles it once more behind NVIDIA's header, so
 * that the compiler compares the signatures.  Those with a default stream have
 * a second name for programs built with one stream for each thread.
 */

/* Errors */
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

/* Devices */
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaInitDevice(int device, unsigned int device_flags,
			   unsigned int flags);
cudaError_t cudaSetValidDevices(int *devices, int n);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
				   int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr,
				      int src, int dst);
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(
			enum cudaFlushGPUDirectRDMAWritesTarget target,
			enum cudaFlushGPUDirectRDMAWritesScope scope);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn,
			unsigned long long flags,
			enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn,
			unsigned int version, unsigned long long flags,
			enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* Memory */
cudaError_t cudaMalloc(void **ptr, size_t size);
cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width,
			    size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *ptr, struct cudaExtent extent);
cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags);
cudaError_t cudaFree(void *ptr);
cudaError_t cudaMallocHost(void **ptr, size_t size);
cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *ptr);
cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *ptr);
cudaError_t cudaHostGetDevicePointer(void **device, void *host,
				     unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *ptr);
cudaError_t cudaMemGetInfo(size_t *avail, size_t *total);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attrs,
				     const void *ptr);
#if CUDART_MAJOR >= 13
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t n,
				 struct cudaMemLocation where,
				 unsigned int flags, cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *ptr, size_t n,
			  enum cudaMemoryAdvise advice,
			  struct cudaMemLocation where);
#else
cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t n, int device,
				 cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *ptr, size_t n,
			  enum cudaMemoryAdvise advice, int device);
#endif
cudaError_t cudaMemRangeGetAttribute(void *data, size_t size,
				     enum cudaMemRangeAttribute attr,
				     const void *ptr, size_t n);
cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes,
				      enum cudaMemRangeAttribute *attrs,
				      size_t count, const void *ptr, size_t n);
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t n,
				     unsigned int flags);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr);
cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle,
				 unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void *ptr);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle,
				  cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
				   cudaIpcEventHandle_t handle);

/* Copies and fills */
cudaError_t cudaMemcpy(void *dst, const void *src, size_t n,
		       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n,
			    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src,
			   int src_device, size_t n);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src,
				int src_device, size_t n, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src,
			 size_t src_pitch, size_t width, size_t height,
			 enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src,
			      size_t src_pitch, size_t width, size_t height,
			      enum cudaMemcpyKind kind, cudaStream_t stream);
#if CUDART_MAJOR >= 13
cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs,
				 const size_t *sizes, size_t count,
				 struct cudaMemcpyAttributes *attrs,
				 size_t *starts, size_t nr_attrs,
				 cudaStream_t stream);
#else
cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes,
				 size_t count,
				 struct cudaMemcpyAttributes *attrs,
				 size_t *starts, size_t nr_attrs, size_t *fail,
				 cudaStream_t stream);
#endif
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t n,
			       size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src,
				    size_t n, size_t offset,
				    enum cudaMemcpyKind kind,
				    cudaStream_t stream);
cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t n,
				 size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t n,
				      size_t offset, enum cudaMemcpyKind kind,
				      cudaStream_t stream);
cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol);
cudaError_t cudaMemset(void *dst, int value, size_t n);
cudaError_t cudaMemsetAsync(void *dst, int value, size_t n,
			    cudaStream_t stream);
cudaError_t cudaMemset2D(void *dst, size_t pitch, int value, size_t width,
			 size_t height);
cudaError_t cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width,
			      size_t height, cudaStream_t stream);

/* Streams and events */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
				      unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
					 unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
				unsigned int flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
				  enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamAddCallback(cudaStream_t stream,
				  cudaStreamCallback_t callback, void *arg,
				  unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
			       void *arg);
cudaError_t cudaThreadExchangeStreamCaptureMode(
					enum cudaStreamCaptureMode *mode);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
				     unsigned int flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* Memory in the order of a stream */
cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size,
				    cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
			      const struct cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
				    enum cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
				    enum cudaMemPoolAttr attr, void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
				 const struct cudaMemAccessDesc *desc,
				 size_t n);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags,
				 cudaMemPool_t pool,
				 struct cudaMemLocation *location);
cudaError_t cudaMemPoolExportToShareableHandle(void *handle,
				cudaMemPool_t pool,
				enum cudaMemAllocationHandleType type,
				unsigned int flags);
cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool,
				void *handle,
				enum cudaMemAllocationHandleType type,
				unsigned int flags);
cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data,
				     void *ptr);
cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
				     struct cudaMemPoolPtrExportData *data);

/* Values */
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
					enum cudaChannelFormatKind f);

/* Device code */
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
			     void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid,
					dim3 block, void **args, size_t shared,
					cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
				const void *function, void **args);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attrs,
				  const void *function);
cudaError_t cudaFuncSetAttribute(const void *function,
				 enum cudaFuncAttribute attr, int value);
cudaError_t cudaFuncSetCacheConfig(const void *function,
				   enum cudaFuncCache config);
cudaError_t cudaFuncGetName(const char **name, const void *function);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol);
