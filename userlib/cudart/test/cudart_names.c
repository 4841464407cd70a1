// SPDX-License-Identifier: MIT
/* Print our numbers and layouts as assertions, for NVIDIA's header */
#include <stdio.h>

#include "../cudart_abi.h"

int main(void)
{
#define X2(name, number) \
	printf("_Static_assert((int)(%s) == %d, \"%s\");\n", #name, number, #name);
#define X3(name, number, words) X2(name, number)
	PLN_CUDART_ERRORS(X3)
	PLN_CUDART_NUMBERS(X2)
#define SIZE(type) \
	printf("_Static_assert(sizeof(%s) == %zu, \"%s\");\n", #type, sizeof(type), #type);
#define OFFSET(type, member) \
	printf("_Static_assert(offsetof(%s, %s) == %zu, \"%s.%s\");\n", \
	       #type, #member, offsetof(type, member), #type, #member);
	SIZE(struct cudaDeviceProp)
#define F(type, name, n, attr)	OFFSET(struct cudaDeviceProp, name)
	PLN_CUDART_PROP(F, PLN_PROP_NONE)
	PLN_CUDART_PROP_13(F)
	SIZE(struct cudaPointerAttributes)
	OFFSET(struct cudaPointerAttributes, hostPointer)
	SIZE(struct cudaChannelFormatDesc)
	OFFSET(struct cudaChannelFormatDesc, f)
	SIZE(struct cudaFuncAttributes)
	OFFSET(struct cudaFuncAttributes, nonPortableClusterSizeAllowed)
	SIZE(struct cudaMemPoolProps)
	SIZE(struct cudaMemAccessDesc)
	SIZE(struct cudaMemLocation)
	SIZE(struct cudaMemcpyAttributes)
	SIZE(struct cudaPitchedPtr)
	SIZE(cudaLaunchConfig_t)
	OFFSET(cudaLaunchConfig_t, numAttrs)
	SIZE(cudaIpcMemHandle_t)
	SIZE(cudaIpcEventHandle_t)
	SIZE(struct cudaMemPoolPtrExportData)
	return 0;
}
