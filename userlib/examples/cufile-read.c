/* SPDX-License-Identifier: MIT */
/* cufile-read FILE: a file into GPU memory with cuFile, and the path that it took */
#define _GNU_SOURCE
#include <cuda.h>
#include <cufile.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <peerlane/file.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	CUfileDescr_t file = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct pln_file_result result = { .size = sizeof(result) };
	CUfileHandle_t handle;
	CUcontext context;
	CUdevice gpu;
	CUdeviceptr memory;
	CUfileError_t e;
	struct stat st;
	ssize_t n;

	if (argc != 2)
		errx(2, "usage: cufile-read FILE");
	file.handle.fd = open(argv[1], O_RDONLY | O_DIRECT);
	if (file.handle.fd < 0 || fstat(file.handle.fd, &st))
		err(1, "%s", argv[1]);
	if (cuInit(0) || cuDeviceGet(&gpu, 0) || cuDevicePrimaryCtxRetain(&context, gpu) ||
	    cuCtxSetCurrent(context) || cuMemAlloc(&memory, st.st_size))
		errx(1, "no GPU, or it has no %lld bytes", (long long)st.st_size);
	e = cuFileHandleRegister(&handle, &file);
	if (e.err)
		errx(1, "cuFileHandleRegister: %s", CUFILE_ERRSTR(e.err));

	pln_file_next_result(&result, 1);
	n = cuFileRead(handle, (void *)memory, st.st_size, 0, 0);
	if (n < 0)
		errx(1, "%s: %s: %s", argv[1], n == -1 ? strerror(errno) : CUFILE_ERRSTR(-n),
		     result.reason);
	printf("%zd bytes are in GPU memory, path %s\n", n, pln_path_name(result.path));
	if (*result.reason)
		printf("reason: %s\n", result.reason);
	cuFileHandleDeregister(handle);
	cuMemFree(memory);
	return n != st.st_size;
}
