// SPDX-License-Identifier: MIT
/*
 * Print our numbers as assertions, to be compiled behind NVIDIA's cuda.h; or,
 * with "symbols", the functions that cuGetProcAddress() can give.
 */
#include <stdio.h>
#include <string.h>

#include "../cuda_abi.h"

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "symbols")) {
#define PLN_F(name, suffix, since, alias, sorts, ...) puts(#name #suffix);
#include "../cuda_proto.h"
		return 0;
	}
#define X2(name, number) \
	printf("_Static_assert((int)(%s) == %d, \"%s\");\n", #name, number, #name);
#define X3(name, number, words) X2(name, number)
	PLN_CUDA_ERRORS(X3)
	PLN_CUDA_DEVICE_ATTRIBUTES(X2)
	PLN_CUDA_POINTER_ATTRIBUTES(X2)
	PLN_CUDA_MEMORYTYPES(X2)
	PLN_CUDA_FLAGS(X2)
	PLN_CUDA_MACROS(X2)
#define SIZE(type) \
	printf("_Static_assert(sizeof(%s) == %zu, \"%s\");\n", #type, sizeof(type), #type);
	SIZE(CUdeviceptr)
	SIZE(CUdevice)
	SIZE(CUuuid)
	SIZE(CUresult)
	SIZE(CUdevice_attribute)
	SIZE(CUpointer_attribute)
	SIZE(CUmemorytype)
	SIZE(CUmemRangeHandleType)
	SIZE(CUdriverProcAddressQueryResult)
	SIZE(CUctxCreateParams)
	SIZE(CUmemGenericAllocationHandle)
	SIZE(CUmemAllocationProp)
	SIZE(CUmemAccessDesc)
	SIZE(CUmemLocation)
	SIZE(CUmemPoolProps)
	SIZE(CUmemPoolPtrExportData)
	SIZE(CUmemcpyAttributes)
	SIZE(CUstreamBatchMemOpParams)
	SIZE(CUipcMemHandle)
	SIZE(CUipcEventHandle)
	SIZE(CUlaunchConfig)
	SIZE(CUDA_MEMCPY2D)
	SIZE(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS)
#define OFFSET(type, member) \
	printf("_Static_assert(offsetof(%s, %s) == %zu, \"%s.%s\");\n", \
	       #type, #member, offsetof(type, member), #type, #member);
	OFFSET(CUmemAllocationProp, location)
	OFFSET(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable)
	OFFSET(CUmemAccessDesc, flags)
	OFFSET(CUmemPoolProps, maxSize)
	OFFSET(CUmemPoolProps, usage)
	OFFSET(CUmemcpyAttributes, dstLocHint)
	OFFSET(CUmemcpyAttributes, flags)
	OFFSET(CUstreamBatchMemOpParams, waitValue.value64)
	OFFSET(CUstreamBatchMemOpParams, waitValue.flags)
	OFFSET(CUlaunchConfig, hStream)
	OFFSET(CUlaunchConfig, numAttrs)
	OFFSET(CUDA_MEMCPY2D, srcMemoryType)
	OFFSET(CUDA_MEMCPY2D, srcDevice)
	OFFSET(CUDA_MEMCPY2D, srcPitch)
	OFFSET(CUDA_MEMCPY2D, dstXInBytes)
	OFFSET(CUDA_MEMCPY2D, dstHost)
	OFFSET(CUDA_MEMCPY2D, dstDevice)
	OFFSET(CUDA_MEMCPY2D, dstPitch)
	OFFSET(CUDA_MEMCPY2D, WidthInBytes)
	OFFSET(CUDA_MEMCPY2D, Height)
	return 0;
}
