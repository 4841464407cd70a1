// SPDX-License-Identifier: MIT
/*
 * The runtime on a fake device: device code as the compiler hands it over, and
 * what is asked about captures.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/test/check.h"
#include "../../cuda/test/code_image.h"
#include "../cudart_abi.h"

/* One for each version of the interface, and each default stream, as the last one is */
typedef cudaError_t capture_info(cudaStream_t stream, int *status,
				 unsigned long long *id, void *a, void *b,
				 void *c, void *d);
#define INFO(name)	(capture_info *)(void (*)(void))name
static capture_info *const infos[] = {
	INFO(cudaStreamGetCaptureInfo), INFO(cudaStreamGetCaptureInfo_ptsz),
	INFO(cudaStreamGetCaptureInfo_v2), INFO(cudaStreamGetCaptureInfo_v2_ptsz),
	INFO(cudaStreamGetCaptureInfo_v3), INFO(cudaStreamGetCaptureInfo_v3_ptsz),
};

#define MANAGED_SIZE	10000
#define MAX_SHARED	((enum cudaFuncAttribute)		\
			 cudaFuncAttributeMaxDynamicSharedMemorySize)

static const uint32_t image[4] = { 0xba55ed50, 0x00100001, 8, 0 };
static struct {
	int magic, version;
	const void *image;
	void *more;
} wrapper = { 0x466243b1, 1, image, NULL };
static void **handle, **idle, **third;
static unsigned char *managed, *unused;
static char kernel, variable[4];

/* Standard error into a file, until unmute(), which gives what was said */
static int mute(int *keep)
{
	int said = memfd_create("stderr", 0);

	*keep = dup(2);
	fflush(stderr);
	CHECK(dup2(said, 2) == 2);
	return said;
}

static void unmute(int said, int keep, char *text, size_t size)
{
	ssize_t n;

	fflush(stderr);
	dup2(keep, 2);
	close(keep);
	n = pread(said, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	close(said);
}

/* By the driver's interface: the runtime learns of it at its next call */
static void driver_reset(void)
{
	enum cudaDriverEntryPointQueryResult status;
	int (*reset)(int device);
	void *fn = NULL;

	OK(cudaGetDriverEntryPoint("cuDevicePrimaryCtxReset", &fn, 0, &status));
	memcpy(&reset, &fn, sizeof(fn));
	OK((cudaError_t)reset(0));
	OK(cudaDeviceSynchronize());
}

static void t_managed(void)
{
	struct cudaPointerAttributes attrs;
	unsigned char out[MANAGED_SIZE];

	__cudaInitModule(handle);
	CHECK(managed);
	if (!managed)
		return;
	memset(managed, 5, MANAGED_SIZE);
	for (int i = 0; i < 3; i++) {
		if (i < 2)
			OK(cudaDeviceReset());
		else
			driver_reset();
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
	int said, keep;
	unsigned char *before = managed;
	cudaError_t err = cudaSuccess;
	char text[100];

	memset(managed, 9, MANAGED_SIZE);
	said = mute(&keep);
	OK(cudaLaunchHostFunc(NULL, reset, &err));
	OK(cudaDeviceSynchronize());
	unmute(said, keep, text, sizeof(text));
	CHECK(err != cudaSuccess);
	CHECK(!*text);
	CHECK(managed == before && managed[MANAGED_SIZE - 1] == 9);
}

/* What the compiler registers for the variable "one", which begins as 11, 12, 13, 14 */
static char one[4];
static struct fat code;
static struct wrapper readable = { 0x466243b1, 1, &code };

static int first_byte(void)
{
	unsigned char got[4] = { 0 };

	OK(cudaMemcpyFromSymbol(got, one, 4, 0,
				(enum cudaMemcpyKind)cudaMemcpyDeviceToHost));
	return got[0];
}

static void set_first_byte(unsigned char byte)
{
	OK(cudaMemcpyToSymbol(one, &byte, 1, 0,
			      (enum cudaMemcpyKind)cudaMemcpyHostToDevice));
}

/* The end of one device's context: the others' variables stay as they are */
static void t_two(void)
{
	void *at, *after;
	unsigned char got = 0;

	OK(cudaSetDevice(1));
	CHECK(first_byte() == 11);
	set_first_byte(7);
	OK(cudaGetSymbolAddress(&at, one));
	OK(cudaSetDevice(0));
	set_first_byte(8);
	OK(cudaDeviceReset());
	CHECK(first_byte() == 11);
	OK(cudaSetDevice(1));
	CHECK(first_byte() == 7);
	OK(cudaGetSymbolAddress(&after, one));
	CHECK(at == after);
	OK(cudaMemcpy(&got, at, 1,
		      (enum cudaMemcpyKind)cudaMemcpyDeviceToHost));
	CHECK(got == 7);
	OK(cudaDeviceReset());
	OK(cudaSetDevice(0));
}

/* A reset that is refused leaves them, too */
static void t_refused_code(void)
{
	cudaError_t err = cudaSuccess;
	void *at, *after;

	set_first_byte(9);
	OK(cudaGetSymbolAddress(&at, one));
	OK(cudaLaunchHostFunc(NULL, reset, &err));
	OK(cudaDeviceSynchronize());
	IS(err, cudaErrorNotPermitted);
	CHECK(first_byte() == 9);
	OK(cudaGetSymbolAddress(&after, one));
	CHECK(at == after);
}

/* In the code's own memory: refused, by name */
static void t_variable(void)
{
	char text[200], value[4] = "abc";
	size_t size;
	int said, keep;
	void *ptr;

	said = mute(&keep);
	IS(cudaMemcpyToSymbol(variable, value, 4, 0,
			      (enum cudaMemcpyKind)cudaMemcpyHostToDevice),
	   cudaErrorNotSupported);
	unmute(said, keep, text, sizeof(text));
	CHECK(strstr(text, "the variable a_variable has no place"));
	IS(cudaGetLastError(), cudaErrorNotSupported);
	said = mute(&keep);
	IS(cudaGetSymbolAddress(&ptr, variable), cudaErrorNotSupported);
	IS(cudaGetSymbolSize(&size, variable), cudaErrorNotSupported);
	/* one that nobody has registered is none */
	IS(cudaGetSymbolAddress(&ptr, value), cudaErrorInvalidSymbol);
	unmute(said, keep, text, sizeof(text));
	CHECK(cudaGetLastError());
}

/* That a managed variable is no symbol is not for its code to change */
static void t_managed_symbol(void)
{
	char text[200];
	int said, keep;
	void *ptr;

	said = mute(&keep);
	IS(cudaGetSymbolAddress(&ptr, &managed), cudaErrorNotSupported);
	unmute(said, keep, text, sizeof(text));
	CHECK(!*text);
	IS(cudaGetLastError(), cudaErrorNotSupported);
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
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++) {
		status = 7;
		OK(infos[i](stream, &status, &id, NULL, NULL, NULL, NULL));
		CHECK(status == cudaStreamCaptureStatusNone);
		IS(infos[i](stream, NULL, NULL, NULL, NULL, NULL, NULL),
		   cudaErrorInvalidValue);
	}
	OK(cudaStreamDestroy(stream));
}

static atomic_bool ask_on;

static void *ask_runtime(void *arg)
{
	const char *name;
	int n;

	(void)arg;
	while (atomic_load(&ask_on)) {
		cudaFuncGetName(&name, &kernel);
		cudaGetDeviceCount(&n);
	}
	return NULL;
}

/* A child cannot use the runtime, and learns that, whatever other threads were at */
static void t_fork(void)
{
	const char *name;
	pthread_t thread;
	int status = 0, n;
	pid_t pid;

	atomic_store(&ask_on, true);
	CHECK(!pthread_create(&thread, NULL, ask_runtime, NULL));
	for (int i = 0; i < 300 && !status; i++) {
		pid = fork();
		if (!pid) {
			alarm(10);
			_exit(cudaFuncGetName(&name, &kernel) != cudaSuccess ||
			      cudaGetDeviceCount(&n) !=
			      cudaErrorInitializationError);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
	}
	CHECK(!WIFSIGNALED(status));	/* it hung */
	CHECK(!status);
	atomic_store(&ask_on, false);
	pthread_join(thread, NULL);
}

int main(void)
{
	setenv("PEERLANE_FAKE_GPUS", "2", 1);
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterManagedVar(handle, (void **)&managed, NULL, "managed", 0,
				 MANAGED_SIZE, 0, 0);
	__cudaRegisterVar(handle, variable, variable, "a_variable", 0, 4, 0, 0);
	__cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL,
			       NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	idle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterManagedVar(idle, (void **)&unused, NULL, "unused", 0, 4,
				 0, 0);
	__cudaRegisterFatBinaryEnd(idle);
	code = fat_of(&binary);
	third = __cudaRegisterFatBinary(&readable);
	__cudaRegisterVar(third, one, one, "one", 0, 4, 0, 0);
	__cudaRegisterFatBinaryEnd(third);
	TEST("managed variables after a reset", t_managed());
	TEST("a reset that is refused", t_refused());
	TEST("code of another device than the one that is reset", t_two());
	TEST("code, and a reset that is refused", t_refused_code());
	TEST("a variable", t_variable());
	TEST("a managed variable as a symbol", t_managed_symbol());
	TEST("attributes of functions", t_attributes());
	TEST("nothing is captured", t_capture());
	TEST("a fork beside other threads", t_fork());
	return ktap_end();
}
