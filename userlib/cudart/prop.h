/* SPDX-License-Identifier: MIT */
/*
 * struct cudaDeviceProp, field by field.
 *   F(type, name, count, attribute)	in CUDA 12 and 13
 *   O(type, name, count, attribute)	in CUDA 12 only
 * attribute: the driver's number for it (of several: of the first); 0: none
 */
#ifndef PEERLANE_CUDART_PROP_H
#define PEERLANE_CUDART_PROP_H

#define PLN_CUDART_PROP(F, O) \
	F(char, name, 256, 0) \
	F(char, uuid, 16, 0) \
	F(char, luid, 8, 0) \
	F(unsigned int, luidDeviceNodeMask, 1, 0) \
	F(size_t, totalGlobalMem, 1, 0) \
	F(size_t, sharedMemPerBlock, 1, 8) \
	F(int, regsPerBlock, 1, 12) \
	F(int, warpSize, 1, 10) \
	F(size_t, memPitch, 1, 11) \
	F(int, maxThreadsPerBlock, 1, 1) \
	F(int, maxThreadsDim, 3, 2) \
	F(int, maxGridSize, 3, 5) \
	O(int, clockRate, 1, 13) \
	F(size_t, totalConstMem, 1, 9) \
	F(int, major, 1, 75) \
	F(int, minor, 1, 76) \
	F(size_t, textureAlignment, 1, 14) \
	F(size_t, texturePitchAlignment, 1, 51) \
	O(int, deviceOverlap, 1, 15) \
	F(int, multiProcessorCount, 1, 16) \
	O(int, kernelExecTimeoutEnabled, 1, 17) \
	F(int, integrated, 1, 18) \
	F(int, canMapHostMemory, 1, 19) \
	O(int, computeMode, 1, 20) \
	F(int, maxTexture1D, 1, 21) \
	F(int, maxTexture1DMipmap, 1, 77) \
	O(int, maxTexture1DLinear, 1, 69) \
	F(int, maxTexture2D, 2, 22) \
	F(int, maxTexture2DMipmap, 2, 73) \
	F(int, maxTexture2DLinear, 3, 70) \
	F(int, maxTexture2DGather, 2, 45) \
	F(int, maxTexture3D, 3, 24) \
	F(int, maxTexture3DAlt, 3, 47) \
	F(int, maxTextureCubemap, 1, 52) \
	F(int, maxTexture1DLayered, 2, 42) \
	F(int, maxTexture2DLayered, 3, 27) \
	F(int, maxTextureCubemapLayered, 2, 53) \
	F(int, maxSurface1D, 1, 55) \
	F(int, maxSurface2D, 2, 56) \
	F(int, maxSurface3D, 3, 58) \
	F(int, maxSurface1DLayered, 2, 61) \
	F(int, maxSurface2DLayered, 3, 63) \
	F(int, maxSurfaceCubemap, 1, 66) \
	F(int, maxSurfaceCubemapLayered, 2, 67) \
	F(size_t, surfaceAlignment, 1, 30) \
	F(int, concurrentKernels, 1, 31) \
	F(int, ECCEnabled, 1, 32) \
	F(int, pciBusID, 1, 33) \
	F(int, pciDeviceID, 1, 34) \
	F(int, pciDomainID, 1, 50) \
	F(int, tccDriver, 1, 35) \
	F(int, asyncEngineCount, 1, 40) \
	F(int, unifiedAddressing, 1, 41) \
	O(int, memoryClockRate, 1, 36) \
	F(int, memoryBusWidth, 1, 37) \
	F(int, l2CacheSize, 1, 38) \
	F(int, persistingL2CacheMaxSize, 1, 108) \
	F(int, maxThreadsPerMultiProcessor, 1, 39) \
	F(int, streamPrioritiesSupported, 1, 78) \
	F(int, globalL1CacheSupported, 1, 79) \
	F(int, localL1CacheSupported, 1, 80) \
	F(size_t, sharedMemPerMultiprocessor, 1, 81) \
	F(int, regsPerMultiprocessor, 1, 82) \
	F(int, managedMemory, 1, 83) \
	F(int, isMultiGpuBoard, 1, 84) \
	F(int, multiGpuBoardGroupID, 1, 85) \
	F(int, hostNativeAtomicSupported, 1, 86) \
	O(int, singleToDoublePrecisionPerfRatio, 1, 87) \
	F(int, pageableMemoryAccess, 1, 88) \
	F(int, concurrentManagedAccess, 1, 89) \
	F(int, computePreemptionSupported, 1, 90) \
	F(int, canUseHostPointerForRegisteredMem, 1, 91) \
	F(int, cooperativeLaunch, 1, 95) \
	O(int, cooperativeMultiDeviceLaunch, 1, 96) \
	F(size_t, sharedMemPerBlockOptin, 1, 97) \
	F(int, pageableMemoryAccessUsesHostPageTables, 1, 100) \
	F(int, directManagedMemAccessFromHost, 1, 101) \
	F(int, maxBlocksPerMultiProcessor, 1, 106) \
	F(int, accessPolicyMaxWindowSize, 1, 109) \
	F(size_t, reservedSharedMemPerBlock, 1, 111) \
	F(int, hostRegisterSupported, 1, 99) \
	F(int, sparseCudaArraySupported, 1, 112) \
	F(int, hostRegisterReadOnlySupported, 1, 113) \
	F(int, timelineSemaphoreInteropSupported, 1, 114) \
	F(int, memoryPoolsSupported, 1, 115) \
	F(int, gpuDirectRDMASupported, 1, 116) \
	F(unsigned int, gpuDirectRDMAFlushWritesOptions, 1, 117) \
	F(int, gpuDirectRDMAWritesOrdering, 1, 118) \
	F(unsigned int, memoryPoolSupportedHandleTypes, 1, 119) \
	F(int, deferredMappingCudaArraySupported, 1, 121) \
	F(int, ipcEventSupported, 1, 125) \
	F(int, clusterLaunch, 1, 120) \
	F(int, unifiedFunctionPointers, 1, 129)

/* What CUDA 13 has after them */
#define PLN_CUDART_PROP_13(F) \
	F(int, deviceNumaConfig, 1, 130) \
	F(int, deviceNumaId, 1, 131) \
	F(int, mpsEnabled, 1, 133) \
	F(int, hostNumaId, 1, 134) \
	F(unsigned int, gpuPciDeviceID, 1, 139) \
	F(unsigned int, gpuPciSubsystemID, 1, 140) \
	F(int, hostNumaMultinodeIpcSupported, 1, 143)

#define PLN_PROP_NONE(type, name, n, attr)

struct cudaDeviceProp {
#define PLN_F(type, name, n, attr)	type name[n];
#if CUDART_MAJOR >= 13
	PLN_CUDART_PROP(PLN_F, PLN_PROP_NONE)
	PLN_CUDART_PROP_13(PLN_F)
	int reserved[56];
#else
	PLN_CUDART_PROP(PLN_F, PLN_F)
	int reserved[63];
#endif
#undef PLN_F
};

#endif
