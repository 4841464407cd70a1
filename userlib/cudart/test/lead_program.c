// SPDX-License-Identifier: MIT
/*
 * A program, or with -DLIBRARY a library, that has a runtime linked in, real or
 * the fake of lead_fake.c.  Its functions are declared by hand, for no header of
 * CUDA is needed then.
 *
 *	lead_program table	where each function of names.inc leads; not
 *				with -DNO_TABLE
 *	lead_program calls	what some of them answer: before main, in it, in
 *				threads, in another process
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct three {
	unsigned int x, y, z;
};

void lead_table(void);
int cudaGetDeviceCount(int *n);
int cudaRuntimeGetVersion(int *version);
int cudaMalloc(void **p, size_t n);
int cudaMemset(void *p, int value, size_t n);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);
int cudaFree(void *p);
int cudaLaunchKernel(const void *function, struct three grid,
		     struct three block, void **args, size_t shared,
		     void *stream);
int cudaGetLastError(void);
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **handle, const char *function, char *stub,
			    const char *name, int limit, void *tid, void *bid,
			    void *block, void *grid, int *warp);

#ifdef LIBRARY
#define WHO	"library"
#else
#define WHO	"program"
#endif

/* As the compiler does it: before main, and in a library before the program */
static char stub;

__attribute__((constructor))
static void begin(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_50\n"
		".visible .entry " WHO "_kernel()\n{\nret;\n}\n";
	static struct {
		int magic, version;
		const void *image;
		void *more;
	} wrapper = { 0x466243b1, 1, ptx, NULL };
	int n = -1, err = cudaGetDeviceCount(&n);
	void **handle;

	printf(WHO ": before main: count %d, error %d\n", n, err);
	if (err == 4242)
		return;			/* the fake has no more to give */
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, &stub, &stub, WHO "_kernel", -1, NULL,
			       NULL, NULL, NULL, NULL);
}

static void calls(const char *who)
{
	const struct three one = { 1, 1, 1 };
	char in[100] = "", out[100] = "";
	int err, launch;
	int version = -1;
	void *p = NULL;

	cudaRuntimeGetVersion(&version);
	memset(in, 'x', sizeof(in));
	err = cudaMalloc(&p, sizeof(in));
	if (!err)
		err = cudaMemcpy(p, in, sizeof(in), 1);
	if (!err)
		err = cudaMemset((char *)p + 1, 'y', 1);
	if (!err)
		err = cudaMemcpy(out, p, sizeof(out), 2);
	launch = cudaLaunchKernel(&stub, one, one, NULL, 0, NULL);
	printf("%s: CUDA %d, memory %d %.3s, launch %d, last %d, free %d\n", who,
	       version / 1000, err, out, launch, cudaGetLastError(), cudaFree(p));
	fflush(stdout);
}

#ifdef LIBRARY
void library_calls(void);
void library_calls(void)
{
	calls("library");
}
#else
int lead_own(void);

__attribute__((weak)) void library_calls(void);

static void *thread(void *arg)
{
	calls(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[4];

	if (argc != 2)
		return 2;
#ifndef NO_TABLE
	if (!strcmp(argv[1], "table")) {
		lead_table();
		return 0;
	}
#endif
	if (!strcmp(argv[1], "child")) {
		calls("child");
		return 0;
	}
	printf("own %d\n", lead_own());
	calls("main");
	if (library_calls)
		library_calls();
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, thread, "thread"))
			return 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (!fork()) {
		execl("/proc/self/exe", "child", "child", NULL);
		_exit(1);
	}
	wait(NULL);
	return 0;
}
#endif
