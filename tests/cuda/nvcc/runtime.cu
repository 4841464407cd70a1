/* SPDX-License-Identifier: MIT */
/* A program on NVIDIA's CUDA runtime: how its first calls end */
#include <cuda_runtime.h>
#include <stdio.h>

int main(void)
{
	cudaError_t err;
	void *p;
	int n = -1;

	err = cudaGetDeviceCount(&n);
	printf("count %d %s\n", (int)err, cudaGetErrorName(err));
	err = cudaMalloc(&p, 1000);
	printf("malloc %d %s\n", (int)err, cudaGetErrorName(err));
	return 0;
}
