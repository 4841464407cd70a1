/* SPDX-License-Identifier: MIT */
/*
 * A C program on the CUDA runtime, which needs its header and library and no
 * nvcc: the structures are those of its CUDA, to the last byte.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

static int attribute(enum cudaDeviceAttr attr)
{
	int value = -1;

	cudaDeviceGetAttribute(&value, attr, 0);
	return value;
}

int main(void)
{
	static struct {
		struct cudaDeviceProp prop;
		unsigned char guard[4096];
	} x;
	struct cudaPointerAttributes at;
	char out[64] = "", in[64] = "plain";
	int version = 0, bad;
	void *p = NULL;

	memset(&x, 0x5a, sizeof(x));
	cudaRuntimeGetVersion(&version);
	printf("built by %d, runs on %d\n", CUDART_VERSION / 1000,
	       version / 1000);
	printf("properties %d, %s\n", (int)cudaGetDeviceProperties(&x.prop, 0),
	       x.prop.name);
	bad = x.prop.major != attribute(cudaDevAttrComputeCapabilityMajor) ||
	      x.prop.multiProcessorCount !=
	      attribute(cudaDevAttrMultiProcessorCount) ||
	      x.prop.l2CacheSize != attribute(cudaDevAttrL2CacheSize) ||
	      x.prop.clusterLaunch != attribute(cudaDevAttrClusterLaunch) ||
	      x.prop.ipcEventSupported !=
	      attribute(cudaDevAttrIpcEventSupport);
	printf("fields %s\n", bad ? "wrong" : "right");
	for (size_t i = 0; i < sizeof(x.guard); i++)
		bad |= x.guard[i] != 0x5a;
	printf("what follows them %s\n", bad ? "wrong" : "right");
	bad = cudaMalloc(&p, sizeof(in)) != cudaSuccess ||
	      cudaMemcpy(p, in, sizeof(in), cudaMemcpyHostToDevice) ||
	      cudaMemcpy(out, p, sizeof(out), cudaMemcpyDeviceToHost) ||
	      strcmp(out, "plain") || cudaPointerGetAttributes(&at, p) ||
	      at.type != cudaMemoryTypeDevice || at.devicePointer != p ||
	      cudaFree(p);
	printf("memory %s\n", bad ? "wrong" : "right");
	return 0;
}
