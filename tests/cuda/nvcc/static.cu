/* SPDX-License-Identifier: MIT */
/*
 * A program, and with -DLIBRARY the library that it is linked with, each with a
 * CUDA runtime linked in, as nvcc does it: a call before main, threads, events,
 * managed memory, a kernel that will not run.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N	(1 << 18)

#ifdef LIBRARY
#define WHO	"library"
#define kernel	library_kernel
#define all_of	library_all
#define early	library_early
#else
#define WHO	"program"
#define kernel	program_kernel
#define all_of	program_all
#define early	program_early
void library_all();
#endif

static __global__ void kernel(int *a)
{
	*a += 1;
}

static __device__ __managed__ int variable = 5;

/* Its constructor runs before main, a library's before the program's */
static struct early {
	early()
	{
		cudaDeviceProp prop;
		cudaError_t err = cudaGetDeviceProperties(&prop, 0);

		printf(WHO ": before main: %d, %s\n", (int)err,
		       err ? "" : prop.name);
	}
} before;

static void *thread(void *)
{
	int *in = new int[N], *out = new int[N], *p;
	cudaEvent_t a, b;
	cudaStream_t s;
	float ms = -1;
	int bad = 0;

	for (int i = 0; i < N; i++) {
		in[i] = i * 2654435761u;
		out[i] = 0;
	}
	bad |= cudaStreamCreate(&s) | cudaEventCreate(&a) | cudaEventCreate(&b);
	bad |= cudaMalloc(&p, N * sizeof(int));
	bad |= cudaEventRecord(a, s);
	bad |= cudaMemcpyAsync(p, in, N * sizeof(int), cudaMemcpyHostToDevice,
			       s);
	bad |= cudaMemcpyAsync(out, p, N * sizeof(int), cudaMemcpyDeviceToHost,
			       s);
	bad |= cudaEventRecord(b, s);
	bad |= cudaStreamSynchronize(s);
	bad |= cudaEventElapsedTime(&ms, a, b);
	bad |= memcmp(in, out, N * sizeof(int)) != 0;
	printf(WHO ": thread: copied %s, event %d\n", bad ? "wrong" : "right",
	       ms < 0);
	cudaFree(p);
	cudaEventDestroy(a);
	cudaEventDestroy(b);
	cudaStreamDestroy(s);
	delete[] in;
	delete[] out;
	return NULL;
}

void all_of()
{
	pthread_t threads[4];
	cudaGraph_t graph;
	cudaError_t err;
	int *m, seen = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	err = cudaMallocManaged(&m, sizeof(*m));
	if (!err) {
		*m = 42;
		err = cudaMemcpy(&seen, m, sizeof(seen), cudaMemcpyDefault);
	}
	printf(WHO ": managed %s\n", !err && seen == 42 ? "right" : "wrong");
	variable = 5;			/* code that does not run sets no value */
	printf(WHO ": variable %d\n", variable);
	kernel<<<1, 1>>>(m);
	err = cudaGetLastError();
	printf(WHO ": launch %d %s\n", (int)err, cudaGetErrorName(err));
	err = cudaDeviceSynchronize();
	printf(WHO ": after it %d, %d\n", (int)err, err ? 0 : *m);
	printf(WHO ": graph %d\n", (int)cudaGraphCreate(&graph, 0));
	(void)cudaGetLastError();	/* one may be the library's as well */
	cudaFree(m);
	fflush(stdout);
}

#ifndef LIBRARY
int main()
{
	program_all();
	library_all();
	return 0;
}
#endif
