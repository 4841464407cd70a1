// SPDX-License-Identifier: MIT
/*
 * The runtime on a fake device, used by several threads at once: its start, the
 * program's code, and functions of the program that the driver waits for.  Built with
 * the sanitizer that watches threads.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../cuda/cuda_abi.h"
#include "../../cuda/test/check.h"
#include "../../cuda/test/code_image.h"
#include "../cudart_abi.h"

#define THREADS		6
#define ROUNDS		20
#define MANAGED_SIZE	((size_t)2 << 20)

/* Code that cannot be read: its managed variables get memory of the runtime's own */
static const uint32_t nothing[4] = { 0xba55ed50, 0x00100001, 8, 0 };
static struct wrapper unreadable = { 0x466243b1, 1, nothing };

static pthread_barrier_t together;

static void all_at_once(void *(*run)(void *), void *args, size_t size)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&together, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (char *)args + i * size);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&together);
}

/* ---- the first call ---- */

struct first {
	cudaError_t err;
	void *memory;
};

static void *first_call(void *arg)
{
	struct first *f = arg;

	pthread_barrier_wait(&together);
	f->err = cudaMalloc(&f->memory, 1000);
	return NULL;
}

static void t_start(void)
{
	struct first f[THREADS] = { { 0 } };

	all_at_once(first_call, f, sizeof(*f));
	for (size_t i = 0; i < THREADS; i++) {
		OK(f[i].err);
		OK(cudaMemset(f[i].memory, 1, 1000));
		OK(cudaFree(f[i].memory));
	}
}

/* ---- the first use of a managed variable ---- */

static unsigned char *managed[ROUNDS];

struct use {
	void **handle;
	unsigned char **variable, *seen;
};

static void *use_variable(void *arg)
{
	struct use *u = arg;

	pthread_barrier_wait(&together);
	__cudaInitModule(u->handle);
	u->seen = *u->variable;
	return NULL;
}

static void t_managed(void)
{
	struct use u[THREADS];
	size_t before, after, total;

	OK(cudaMemGetInfo(&before, &total));
	for (int i = 0; i < ROUNDS; i++) {
		void **handle = __cudaRegisterFatBinary(&unreadable);

		__cudaRegisterManagedVar(handle, (void **)&managed[i], NULL,
					 "managed", 0, MANAGED_SIZE, 0, 0);
		for (size_t j = 0; j < THREADS; j++)
			u[j] = (struct use){ handle, &managed[i], NULL };
		all_at_once(use_variable, u, sizeof(*u));
		CHECK(managed[i]);
		for (size_t j = 0; j < THREADS; j++)
			CHECK(u[j].seen == managed[i]);
		__cudaUnregisterFatBinary(handle);
	}
	OK(cudaMemGetInfo(&after, &total));
	CHECK(before - after == ROUNDS * MANAGED_SIZE);
}

/* ---- a library goes while another thread resets the device ---- */

static void *come_and_go(void *arg)
{
	static unsigned char *variable;
	static char kernel;
	atomic_bool *end = arg;
	const char *name;

	while (!atomic_load(end)) {
		void **handle = __cudaRegisterFatBinary(&unreadable);

		variable = NULL;
		__cudaRegisterManagedVar(handle, (void **)&variable, NULL,
					 "a variable", 0, 4096, 0, 0);
		__cudaRegisterFunction(handle, &kernel, NULL, "a kernel", -1,
				       NULL, NULL, NULL, NULL, NULL);
		__cudaInitModule(handle);
		cudaFuncGetName(&name, &kernel);
		__cudaUnregisterFatBinary(handle);
	}
	return NULL;
}

static void t_unload(void)
{
	atomic_bool end = false;
	pthread_t thread;

	pthread_create(&thread, NULL, come_and_go, &end);
	for (int i = 0; i < 100; i++)
		OK(cudaDeviceReset());
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	cudaGetLastError();
}

/* ---- a reset waits for a function, and that for another thread ---- */

static struct {
	sem_t done;
	int seen;			/* sem_timedwait() of it */
	pid_t main;
	char kernel, zero[8000];
} wait;

static void function(void *arg)
{
	struct timespec until;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	wait.seen = sem_timedwait(&wait.done, &until);
}

/* Once the main thread sleeps, this one asks the runtime */
static void *other(void *arg)
{
	char path[64], text[256], *state;
	const char *name;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", wait.main);
	do {
		f = fopen(path, "r");
		if (!f || !fgets(text, sizeof(text), f))
			strcpy(text, ") S");
		if (f)
			fclose(f);
		state = strrchr(text, ')');
	} while (state[2] != 'S');
	*(cudaError_t *)arg = cudaFuncGetName(&name, &wait.kernel);
	sem_post(&wait.done);
	return NULL;
}

static void t_function(void)
{
	struct fat code = fat_of(&binary);
	struct wrapper wrapper = { 0x466243b1, 1, &code };
	void **handle = __cudaRegisterFatBinary(&wrapper);
	cudaError_t err = cudaSuccess;
	pthread_t thread;
	void *at;

	__cudaRegisterVar(handle, wait.zero, wait.zero, "zero", 0, 8000, 0, 0);
	__cudaRegisterFunction(handle, &wait.kernel, NULL, "kernel", -1, NULL,
			       NULL, NULL, NULL, NULL);
	OK(cudaGetSymbolAddress(&at, wait.zero));
	sem_init(&wait.done, 0, 0);
	wait.main = (pid_t)syscall(SYS_gettid);
	OK(cudaLaunchHostFunc(NULL, function, NULL));
	pthread_create(&thread, NULL, other, &err);
	OK(cudaDeviceReset());
	pthread_join(thread, NULL);
	OK(err);
	CHECK(!wait.seen);
	__cudaUnregisterFatBinary(handle);
}

/* ---- a reset, and what other threads do then ---- */

static struct {
	pthread_barrier_t step;
	cudaError_t err[3];
} beside;

static void use_memory(cudaError_t *err)
{
	void *p = NULL;

	*err = cudaMalloc(&p, 1000);
	if (!*err)
		*err = cudaMemset(p, 1, 1000);
	if (!*err)
		*err = cudaFree(p);
}

static void *worker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		use_memory(&beside.err[i]);
		pthread_barrier_wait(&beside.step);
		/* main resets */
		pthread_barrier_wait(&beside.step);
	}
	return NULL;
}

/* The driver's interface, which the runtime has loaded for all */
#define DRV(name)	((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

static cudaError_t driver_reset(void)
{
	return (cudaError_t)DRV(cuDevicePrimaryCtxReset)(0);
}

/* Whoever resets: the next call of any thread has a new context */
static void t_reset_beside(void)
{
	pthread_t thread;
	cudaError_t err;
	void *p;

	pthread_barrier_init(&beside.step, NULL, 2);
	pthread_create(&thread, NULL, worker, NULL);
	for (int i = 0; i < 3; i++) {
		OK(cudaMalloc(&p, 1000));
		pthread_barrier_wait(&beside.step);
		OK(i == 1 ? driver_reset() : cudaDeviceReset());
		pthread_barrier_wait(&beside.step);
		use_memory(&err);
		OK(err);
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++)
		OK(beside.err[i]);
	pthread_barrier_destroy(&beside.step);
}

static void in_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, arg);
	pthread_join(thread, NULL);
}

static void *use_once(void *arg)
{
	use_memory(arg);
	return NULL;
}

/* What the program has made since a reset is not the runtime's to give back */
static void t_release(void)
{
	cudaError_t err;
	CUdeviceptr p = 0;
	CUcontext ctx;

	use_memory(&err);
	OK(err);
	OK(driver_reset());
	OK(DRV(cuDevicePrimaryCtxRetain)(&ctx, 0));
	OK(DRV(cuCtxSetCurrent)(ctx));
	OK(DRV(cuMemAlloc_v2)(&p, 4096));
	OK(DRV(cuDevicePrimaryCtxRelease_v2)(0));
	in_thread(use_once, &err);
	OK(err);
	OK(DRV(cuMemsetD8_v2)(p, 1, 4096));
	OK(DRV(cuMemFree_v2)(p));
}

/* The program gives back what the runtime holds, and goes on */
static void t_release_more(void)
{
	cudaError_t err;
	int i;

	for (i = 0; i < 2; i++) {
		use_memory(&err);
		OK(err);
		OK(DRV(cuDevicePrimaryCtxRelease_v2)(0));
	}
	use_memory(&err);
	OK(err);
	in_thread(use_once, &err);
	OK(err);
}

/* Below a context of the program's own */
static void t_reset_below(void)
{
	cudaError_t err;
	CUcontext ctx;

	use_memory(&err);
	OK(err);
	OK(DRV(cuCtxCreate_v2)(&ctx, 0, 0));
	OK(cudaDeviceReset());
	use_memory(&err);
	OK(err);
	OK(DRV(cuCtxDestroy_v2)(ctx));
	use_memory(&err);
	OK(err);
}

static void *guest(void *arg)
{
	OK(DRV(cuCtxSetCurrent)(arg));
	pthread_barrier_wait(&beside.step);
	/* main resets */
	pthread_barrier_wait(&beside.step);
	use_memory(&beside.err[0]);
	return NULL;
}

/* A thread that the program gave the runtime's context */
static void t_reset_given(void)
{
	pthread_t thread;
	cudaError_t err;
	CUcontext ctx;

	use_memory(&err);
	OK(err);
	OK(DRV(cuCtxGetCurrent)(&ctx));
	pthread_barrier_init(&beside.step, NULL, 2);
	pthread_create(&thread, NULL, guest, ctx);
	pthread_barrier_wait(&beside.step);
	OK(cudaDeviceReset());
	pthread_barrier_wait(&beside.step);
	pthread_join(thread, NULL);
	OK(beside.err[0]);
	pthread_barrier_destroy(&beside.step);
}

int main(void)
{
	TEST("the first call, by all at once", t_start());
	TEST("a managed variable's first use, by all at once", t_managed());
	TEST("code that goes during a reset", t_unload());
	TEST("a reset, and other threads after it", t_reset_beside());
	TEST("memory in the context that comes after a reset", t_release());
	TEST("a context that is released once too often", t_release_more());
	TEST("a reset below another context", t_reset_below());
	TEST("a reset, and a thread that was given the context", t_reset_given());
	TEST("a reset, a function, and who it waits for", t_function());
	return ktap_end();
}
