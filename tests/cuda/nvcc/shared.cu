/* SPDX-License-Identifier: MIT */
/*
 * A program on the CUDA runtime, as nvcc -cudart shared builds it: memory,
 * copies, a stream, and a kernel that will not run.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define N	(1 << 20)

static __global__ void add_three(int *a)
{
	a[threadIdx.x] += 3;
}

static int ok(cudaError_t err, const char *what)
{
	if (err)
		printf("%s: %d %s\n", what, (int)err, cudaGetErrorName(err));
	return !err;
}
#define OK(call)	do { if (!ok(call, #call)) return 1; } while (0)

int main(void)
{
	static int in[N], out[N];
	cudaDeviceProp prop;
	cudaStream_t s;
	cudaError_t err;
	int count = 0;
	int *p;

	OK(cudaGetDeviceCount(&count));
	OK(cudaGetDeviceProperties(&prop, 0));
	printf("count %d, %s, compute %d.%d\n", count, prop.name, prop.major,
	       prop.minor);
	for (int i = 0; i < N; i++)
		in[i] = i * 2654435761u;
	OK(cudaMalloc(&p, sizeof(in)));
	OK(cudaStreamCreate(&s));
	OK(cudaMemcpyAsync(p, in, sizeof(in), cudaMemcpyHostToDevice, s));
	OK(cudaMemcpyAsync(out, p, sizeof(out), cudaMemcpyDeviceToHost, s));
	OK(cudaStreamSynchronize(s));
	printf("copied %s\n", memcmp(in, out, sizeof(in)) ? "wrong" : "right");
	add_three<<<1, 32, 0, s>>>(p);
	err = cudaGetLastError();
	printf("launch %d %s\n", (int)err, cudaGetErrorName(err));
	OK(cudaStreamDestroy(s));
	OK(cudaFree(p));
	return 0;
}
