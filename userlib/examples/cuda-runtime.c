/* SPDX-License-Identifier: MIT */
/* cuda-runtime FILE: with cuFile into memory of cudaMalloc(), and back on a stream */
#define _GNU_SOURCE
#include <cufile.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else	/* no CUDA Toolkit: the functions that are called here */
typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum { cudaMemcpyDeviceToHost = 2 };
cudaError_t cudaMalloc(void **memory, size_t size);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocHost(void **memory, size_t size);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, int kind,
			    cudaStream_t stream);
const char *cudaGetErrorString(cudaError_t error);
#endif

#define SIZE	(1 << 20)

static void must(cudaError_t e, const char *call)
{
	if (e)
		errx(1, "%s: %s", call, cudaGetErrorString(e));
}

int main(int argc, char **argv)
{
	CUfileDescr_t file = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	void *gpu, *host, *expected;
	CUfileHandle_t handle;
	cudaStream_t stream;
	CUfileError_t e;
	ssize_t n;

	if (argc != 2)
		errx(2, "usage: cuda-runtime FILE");
	file.handle.fd = open(argv[1], O_RDONLY);
	if (file.handle.fd < 0)
		err(1, "%s", argv[1]);
	must(cudaMalloc(&gpu, SIZE), "cudaMalloc");
	must(cudaMallocHost(&host, SIZE), "cudaMallocHost");
	must(cudaMallocHost(&expected, SIZE), "cudaMallocHost");
	must(cudaStreamCreate(&stream), "cudaStreamCreate");
	e = cuFileHandleRegister(&handle, &file);
	if (e.err)
		errx(1, "cuFileHandleRegister: %s", CUFILE_ERRSTR(e.err));

	n = cuFileRead(handle, gpu, SIZE, 0, 0);	/* returns when the data is there */
	if (n < 0)
		errx(1, "cuFileRead: %s", n == -1 ? strerror(errno) : CUFILE_ERRSTR(-n));
	must(cudaMemcpyAsync(host, gpu, n, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
	must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	if (pread(file.handle.fd, expected, n, 0) != n || memcmp(host, expected, n))
		errx(1, "the data is not that of the file");
	printf("%zd bytes went through GPU memory, all right\n", n);

	cuFileHandleDeregister(handle);
	must(cudaStreamDestroy(stream), "cudaStreamDestroy");
	must(cudaFreeHost(expected), "cudaFreeHost");
	must(cudaFreeHost(host), "cudaFreeHost");
	must(cudaFree(gpu), "cudaFree");
	return 0;
}
