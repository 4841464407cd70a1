// SPDX-License-Identifier: MIT
/*
 * The runtime on a fake device: device code as the compiler hands it over, and
 * what is asked about captures.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../cuda/test/check.h"
#include "../cudart_abi.h"

/* What the compiler calls */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterManagedVar(void **handle, void **variable, char *address,
			      const char *name, int ext, size_t size,
			      int constant, int global);
void __cudaRegisterFunction(void **handle, const char *function, char *stub,
			    const char *name, int thread_limit, uint3 *tid,
			    uint3 *bid, dim3 *block, dim3 *grid, int *warp);
char __cudaInitModule(void **handle);

/* One for each version of the interface, and each default stream */
#define INFO(name) cudaError_t name(cudaStream_t stream, int *status, \
	unsigned long long *id, void *a, void *b, void *c, void *d);
#define INFOS(X)							\
	X(cudaStreamGetCaptureInfo) X(cudaStreamGetCaptureInfo_ptsz)	\
	X(cudaStreamGetCaptureInfo_v2) X(cudaStreamGetCaptureInfo_v2_ptsz) \
	X(cudaStreamGetCaptureInfo_v3) X(cudaStreamGetCaptureInfo_v3_ptsz)
INFOS(INFO)

#define MANAGED_SIZE	10000
#define MAX_SHARED	((enum cudaFuncAttribute)		\
			 cudaFuncAttributeMaxDynamicSharedMemorySize)

static const uint32_t image[4] = { 0xba55ed50, 0x00100001, 8, 0 };
static struct {
	int magic, version;
	const void *image;
	void *more;
} wrapper = { 0x466243b1, 1, image, NULL };
static void **handle, **idle;
static unsigned char *managed, *unused;
static char kernel;

static void t_managed(void)
{
	struct cudaPointerAttributes attrs;
	unsigned char out[MANAGED_SIZE];

	__cudaInitModule(handle);
	CHECK(managed);
	if (!managed)
		return;
	memset(managed, 5, MANAGED_SIZE);
	for (int i = 0; i < 2; i++) {
		OK(cudaDeviceReset());
		/* The compiler does not ask for it once more */
		memset(managed, 6 + i, MANAGED_SIZE);
		OK(cudaMemcpy(out, managed, MANAGED_SIZE,
			      (enum cudaMemcpyKind)cudaMemcpyDefault));
		CHECK(out[0] == 6 + i && out[MANAGED_SIZE - 1] == 6 + i);
		OK(cudaPointerGetAttributes(&attrs, managed));
		CHECK((int)attrs.type == cudaMemoryTypeManaged);
	}
	CHECK(!unused);			/* the other code's, not yet used */
	__cudaInitModule(idle);
	CHECK(unused);
}

static void reset(void *err)
{
	*(cudaError_t *)err = cudaDeviceReset();
}

/* From where it is not permitted: nothing is gone, and nothing is missed */
static void t_refused(void)
{
	int said = memfd_create("stderr", 0), keep = dup(2);
	unsigned char *before = managed;
	cudaError_t err = cudaSuccess;

	memset(managed, 9, MANAGED_SIZE);
	fflush(stderr);
	CHECK(dup2(said, 2) == 2);
	OK(cudaLaunchHostFunc(NULL, reset, &err));
	OK(cudaDeviceSynchronize());
	fflush(stderr);
	dup2(keep, 2);
	CHECK(err != cudaSuccess);
	CHECK(lseek(said, 0, SEEK_END) == 0);
	CHECK(managed == before && managed[MANAGED_SIZE - 1] == 9);
	close(said);
	close(keep);
}

static void t_attributes(void)
{
	struct cudaFuncAttributes attrs;

	OK(cudaFuncSetAttribute(&kernel, MAX_SHARED, 200000));
	OK(cudaFuncGetAttributes(&attrs, &kernel));
	CHECK(attrs.maxDynamicSharedSizeBytes == 200000);
	IS(cudaFuncSetAttribute(&kernel, MAX_SHARED, 300000),
	   cudaErrorInvalidValue);
	IS(cudaGetLastError(), cudaErrorInvalidValue);
}

static void t_capture(void)
{
	unsigned long long id = 0;
	cudaStream_t stream;
	int status;

	OK(cudaStreamCreate(&stream));
#define ASK(name)							\
	status = 7;							\
	OK(name(stream, &status, &id, NULL, NULL, NULL, NULL));		\
	CHECK(status == cudaStreamCaptureStatusNone);			\
	IS(name(stream, NULL, NULL, NULL, NULL, NULL, NULL),		\
	   cudaErrorInvalidValue);
	INFOS(ASK)
	OK(cudaStreamDestroy(stream));
}

int main(void)
{
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterManagedVar(handle, (void **)&managed, NULL, "managed", 0,
				 MANAGED_SIZE, 0, 0);
	__cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL,
			       NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	idle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterManagedVar(idle, (void **)&unused, NULL, "unused", 0, 4,
				 0, 0);
	__cudaRegisterFatBinaryEnd(idle);
	TEST("managed variables after a reset", t_managed());
	TEST("a reset that is refused", t_refused());
	TEST("attributes of functions", t_attributes());
	TEST("nothing is captured", t_capture());
	return ktap_end();
}
