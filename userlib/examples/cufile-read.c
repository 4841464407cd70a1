/* SPDX-License-Identifier: MIT */
/* cufile-read FILE: a file into GPU memory with cuFile, and the path that it took */
#define _GNU_SOURCE
#include <cuda.h>
#include <cufile.h>
#include <err.h>
#include <fcntl.h>
#include <peerlane/file.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	CUfileDescr_t file = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct pln_file_result result = { .size = sizeof(result) };
	CUfileHandle_t handle;
	CUcontext context;
	CUdevice gpu;
	CUdeviceptr memory;
	ssize_t n, size;

	if (argc != 2)
		errx(2, "usage: cufile-read FILE");
	file.handle.fd = open(argv[1], O_RDONLY | O_DIRECT);
	if (file.handle.fd < 0 || (size = lseek(file.handle.fd, 0, SEEK_END)) < 0)
		err(1, "%s", argv[1]);
	if (cuInit(0) || cuDeviceGet(&gpu, 0) || cuDevicePrimaryCtxRetain(&context, gpu) ||
	    cuCtxSetCurrent(context) || cuMemAlloc(&memory, size))
		errx(1, "no GPU, or it has no %zd bytes", size);
	n = cuFileHandleRegister(&handle, &file).err;
	if (n)
		errx(1, "%s: cuFileHandleRegister: %s", argv[1], CUFILE_ERRSTR(n));
	pln_file_next_result(&result, 1);
	n = cuFileRead(handle, (void *)memory, size, 0, 0);
	if (n < 0)
		errx(1, "%s: cuFileRead returned %zd. %s", argv[1], n, result.reason);
	printf("%zd bytes are in GPU memory, path %s%s%s\n", n, pln_path_name(result.path),
	       *result.reason ? "\nreason: " : "", result.reason);
	return n != size;
}
