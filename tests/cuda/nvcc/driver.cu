/* SPDX-License-Identifier: MIT */
/*
 * A program that nvcc built on the driver interface.
 *
 *	driver FILE KERNEL	load device code, launch the kernel
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ok(CUresult err, const char *what)
{
	if (err) {
		printf("%s: %d\n", what, (int)err);
		exit(1);
	}
}
#define OK(call) ok(call, #call)

int main(int argc, char **argv)
{
	static unsigned char in[1 << 20], out[1 << 20];
	char name[256];
	CUcontext ctx;
	CUdevice dev;
	CUmodule mod;
	CUfunction fn;
	CUstream s;
	CUevent a, b;
	CUdeviceptr p;
	CUresult err;
	float ms;
	int major;

	if (argc != 3)
		return 2;
	OK(cuInit(0));
	OK(cuDeviceGet(&dev, 0));
	OK(cuDeviceGetName(name, sizeof(name), dev));
	OK(cuDeviceGetAttribute(&major,
				CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
				dev));
	OK(cuDevicePrimaryCtxRetain(&ctx, dev));
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, 0));
	OK(cuMemAlloc(&p, sizeof(in)));
	OK(cuMemHostRegister(in, sizeof(in), 0));
	OK(cuMemHostRegister(out, sizeof(out), 0));
	memset(in, 0x5a, sizeof(in));
	OK(cuEventRecord(a, s));
	OK(cuMemcpyHtoDAsync(p, in, sizeof(in), s));
	OK(cuMemcpyDtoHAsync(out, p, sizeof(out), s));
	OK(cuEventRecord(b, s));
	OK(cuEventSynchronize(b));
	OK(cuEventElapsedTime(&ms, a, b));
	printf("%s, copied %s\n", name,
	       memcmp(in, out, sizeof(in)) ? "wrong" : "right");
	OK(cuModuleLoad(&mod, argv[1]));
	OK(cuModuleGetFunction(&fn, mod, argv[2]));
	void *args[] = { &p };
	err = cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
	printf("launch %d\n", (int)err);
	OK(cuModuleUnload(mod));
	OK(cuMemHostUnregister(in));
	OK(cuMemHostUnregister(out));
	OK(cuMemFree(p));
	OK(cuDevicePrimaryCtxRelease(dev));
	return 0;
}
