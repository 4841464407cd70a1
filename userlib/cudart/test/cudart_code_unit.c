// SPDX-License-Identifier: MIT
/*
 * The runtime on a fake device: device code as the compiler hands it over, and
 * what is asked about captures.
 */
#include <stdint.h>

#include "../../cuda/test/check.h"
#include "../cudart_abi.h"

/* What the compiler calls */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *function, char *stub,
			    const char *name, int thread_limit, uint3 *tid,
			    uint3 *bid, dim3 *block, dim3 *grid, int *warp);

/* One for each version of the interface, and each default stream */
#define INFO(name) cudaError_t name(cudaStream_t stream, int *status, \
	unsigned long long *id, void *a, void *b, void *c, void *d);
#define INFOS(X)							\
	X(cudaStreamGetCaptureInfo) X(cudaStreamGetCaptureInfo_ptsz)	\
	X(cudaStreamGetCaptureInfo_v2) X(cudaStreamGetCaptureInfo_v2_ptsz) \
	X(cudaStreamGetCaptureInfo_v3) X(cudaStreamGetCaptureInfo_v3_ptsz)
INFOS(INFO)

#define MAX_SHARED	((enum cudaFuncAttribute)		\
			 cudaFuncAttributeMaxDynamicSharedMemorySize)

static const uint32_t image[4] = { 0xba55ed50, 0x00100001, 8, 0 };
static struct {
	int magic, version;
	const void *image;
	void *more;
} wrapper = { 0x466243b1, 1, image, NULL };
static void **handle;
static char kernel;

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
	__cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL,
			       NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	TEST("attributes of functions", t_attributes());
	TEST("nothing is captured", t_capture());
	return ktap_end();
}
