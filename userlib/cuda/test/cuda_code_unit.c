// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: device code, functions of the program.
 * Each test runs in a process of its own.
 */

#include <sys/mman.h>

#include "code_image.h"
#include "unit.h"

/* ---- device code ---- */

static const char ptx[] = "// by hand\n.version 7.0\n.target sm_50\n"
	".address_size 64\n.visible .entry first()\n{\nret;\n}\n"
	".entry second(.param .u64 a)\n{\nret;\n}\n";

static void t_modules(void)
{
	static const uint32_t fat[4] = { 0xba55ed50, 0x00100001, 8, 0 };
	CUcontext ctx = start(&one);
	CUmodule m, n, again;
	CUfunction f, g;
	CUlibrary l;
	CUkernel k;
	const char *name;
	CUdeviceptr p;
	size_t size;
	int v;

	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "first"));
	OK(cuModuleGetFunction(&g, m, "first"));
	CHECK(f == g);
	OK(cuModuleGetFunction(&g, m, "second"));
	CHECK(f != g);
	IS(cuModuleGetFunction(&g, m, "firs"), CUDA_ERROR_NOT_FOUND);
	IS(cuModuleGetFunction(&g, m, "first2"), CUDA_ERROR_NOT_FOUND);
	IS(cuModuleGetGlobal_v2(&p, &size, m, "none"), CUDA_ERROR_NOT_FOUND);
	OK(cuFuncGetName(&name, f));
	CHECK(!strcmp(name, "first"));
	OK(cuFuncGetModule(&again, f));
	CHECK(again == m);
	OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	CHECK(v == 1024);
	IS(cuFuncGetAttribute(&v, 99, f), INVALID);
	OK(cuModuleUnload(m));
	IS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	IS(cuFuncGetName(&name, f), CUDA_ERROR_INVALID_HANDLE);
	IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	   CUDA_ERROR_INVALID_HANDLE);
	/* No binary code in it that could be looked into */
	OK(cuModuleLoadFatBinary(&m, fat));
	OK(cuModuleGetFunction(&f, m, "any"));
	IS(cuModuleGetGlobal_v2(&p, &size, m, "any"), CUDA_ERROR_NOT_SUPPORTED);
	/* A library is of no context, its module of one */
	OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
	IS(cuModuleUnload((CUmodule)l), CUDA_ERROR_INVALID_HANDLE);
	IS(cuLibraryUnload((CUlibrary)m), CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryGetKernel(&k, l, "second"));
	OK(cuKernelGetName(&name, k));
	CHECK(!strcmp(name, "second"));
	OK(cuKernelGetFunction(&f, k));
	IS(cuLibraryGetGlobal(&p, &size, l, "none"), CUDA_ERROR_NOT_FOUND);
	IS(cuLibraryGetGlobal(&p, &size, l, "second"), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuLibraryGetGlobal(&p, &size, l, NULL), INVALID);
	IS(cuLibraryGetGlobal(&p, &size, (CUlibrary)m, "any"),
	   CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryGetModule(&n, l));
	OK(cuLibraryGetModule(&again, l));
	CHECK(again == n);
	OK(cuModuleGetFunction(&g, n, "second"));
	OK(cuLibraryUnload(l));
	IS(cuKernelGetName(&name, k), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleUnload(n), CUDA_ERROR_INVALID_HANDLE);
	end(ctx);		/* with the module */
	IS(cuModuleGetFunction(&f, m, "any"), CUDA_ERROR_INVALID_HANDLE);
}

static void t_variables(void)
{
	struct fat fat = fat_of(&binary);
	struct wrapper wrapper = { 0x466243b1, 1, &fat };
	CUcontext ctx = start(&one), other;
	CUdeviceptr p = 0, q = 0;
	struct image bad;
	char got[8] = "";
	CUmodule m, n;
	CUlibrary l;
	size_t size;

	OK(cuModuleLoadData(&m, &binary));
	OK(cuModuleGetGlobal_v2(&p, &size, m, "one"));
	CHECK(p && size == 4);
	OK(cuMemcpyDtoH_v2(got, p, 4));
	CHECK(!memcmp(got, "\x0b\x0c\x0d\x0e", 4));
	/* it is the module's, and stays what it is */
	OK(cuMemsetD8_v2(p, 5, 4));
	OK(cuModuleGetGlobal_v2(&q, NULL, m, "one"));
	CHECK(p == q);
	IS(cuMemFree_v2(p), INVALID);
	OK(cuModuleGetGlobal_v2(NULL, &size, m, "zero"));
	CHECK(size == 8000);
	OK(cuModuleGetGlobal_v2(&q, &size, m, "zero"));
	OK(cuMemcpyDtoH_v2(got, q + 7992, 8));
	CHECK(!memcmp(got, "\0\0\0\0\0\0\0", 8));
	OK(cuModuleGetGlobal_v2(&q, &size, m, "two"));
	CHECK(size == 2);
	IS(cuModuleGetGlobal_v2(&q, &size, m, "three"), CUDA_ERROR_NOT_FOUND);
	IS(cuModuleGetGlobal_v2(&q, &size, m, ".nv.global"),
	   CUDA_ERROR_NOT_FOUND);
	/* in the module's context, whichever is current */
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuModuleGetGlobal_v2(&q, &size, m, "man"));
	OK(cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_CONTEXT, q));
	CHECK((CUcontext)n == ctx);
	OK(cuCtxDestroy_v2(other));
	OK(cuModuleUnload(m));
	IS(cuMemcpyDtoH_v2(got, p, 4), INVALID);
	/* each module of a library has its own */
	OK(cuLibraryLoadData(&l, &fat, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetGlobal(&p, &size, l, "one"));
	OK(cuLibraryGetModule(&n, l));
	OK(cuModuleGetGlobal_v2(&q, &size, n, "one"));
	CHECK(p == q && size == 4);
	IS(cuModuleUnload(n), CUDA_ERROR_NOT_PERMITTED);
	OK(cuMemcpyDtoH_v2(got, p, 4));
	OK(cuLibraryUnload(l));
	IS(cuMemcpyDtoH_v2(got, p, 4), INVALID);
	/* as the compiler hands it over */
	OK(cuModuleLoadData(&m, &wrapper));
	OK(cuModuleGetGlobal_v2(&q, &size, m, "one"));
	OK(cuModuleUnload(m));
	/* compressed: nobody knows */
	fat.flags = 0x8000;
	OK(cuModuleLoadData(&m, &fat));
	IS(cuModuleGetGlobal_v2(&q, &size, m, "one"),
	   CUDA_ERROR_NOT_SUPPORTED);
	OK(cuModuleUnload(m));
	/* managed: not memory of the GPU alone */
	bad = binary;
	bad.symbols[4].st_other = 4;
	OK(cuModuleLoadData(&m, &bad));
	IS(cuModuleGetGlobal_v2(&q, &size, m, "man"),
	   CUDA_ERROR_NOT_SUPPORTED);
	OK(cuModuleUnload(m));
	/* no memory for it */
	bad = binary;
	bad.s[3].sh_size = bad.symbols[2].st_size = 1ull << 40;
	OK(cuModuleLoadData(&m, &bad));
	IS(cuModuleGetGlobal_v2(&q, &size, m, "zero"),
	   CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuModuleGetGlobal_v2(&q, &size, m, "one"));
	end(ctx);		/* with the variable */
}

/* Each byte of the tables once wrong, in memory that ends with the image */
static void t_broken_image(void)
{
	static const unsigned char wrong[] = { 0, 1, 0x7f, 0xff };
	CUcontext ctx = start(&one);
	struct image *image = malloc(sizeof(*image));
	size_t size, i = 0;
	CUdeviceptr p;
	CUmodule m;
	int fd = memfd_create("image", 0);
	char path[64];

	CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (i = 4; i < sizeof(*image); i++)
		for (size_t j = 0; j < sizeof(wrong); j++) {
			*image = binary;
			((unsigned char *)image)[i] = wrong[j];
			CHECK(pwrite(fd, image, sizeof(*image), 0) ==
			      (ssize_t)sizeof(*image));
			if (cuModuleLoad(&m, path))
				continue;
			if (!cuModuleGetGlobal_v2(&p, &size, m, "one"))
				CHECK(size && size <= sizeof(*image));
			OK(cuModuleUnload(m));
		}
	CHECK(i == sizeof(*image));
	free(image);
	close(fd);
	end(ctx);
}

/* In memory that ends with what there is of it; true: it has all its variables */
static bool whole_at(const void *data, size_t n, size_t length)
{
	void *copy = malloc(length);
	struct drv_image *image;
	bool whole;

	memcpy(copy, data, length);
	image = drv_image_new(copy, length);
	free(copy);
	CHECK(image);
	for (size_t i = 0; i < image->n; i++)
		CHECK(*image->vars[i].name && image->vars[i].size);
	whole = image->known && image->n == n;
	drv_image_put(image);
	return whole;
}

static void t_truncated_image(void)
{
	struct fat fat = fat_of(&binary);
	struct wrapper wrapper = { 0x466243b1, 1, &fat };

	for (size_t i = 1; i <= sizeof(binary); i++)
		CHECK(whole_at(&binary, 4, i) == (i == sizeof(binary)));
	for (size_t i = 1; i <= sizeof(fat); i++)
		CHECK(whole_at(&fat, 4, i) == (i == sizeof(fat)));
	for (size_t i = 1; i <= sizeof(wrapper); i++)
		CHECK(!whole_at(&wrapper, 4, i));
}

/* A pointer that stands in a file leads nowhere */
static void t_wrapper_in_file(void)
{
	struct wrapper wrapper = { 0x466243b1, 1, BAD_PTR(void *) };
	CUcontext ctx = start(&one);
	int fd = memfd_create("image", 0);
	CUlibrary l;
	CUmodule m;
	char path[64];

	CHECK(write(fd, &wrapper, sizeof(wrapper)) == sizeof(wrapper));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	IS(cuModuleLoad(&m, path), CUDA_ERROR_INVALID_IMAGE);
	IS(cuLibraryLoadFromFile(&l, path, NULL, NULL, 0, NULL, NULL, 0),
	   CUDA_ERROR_INVALID_IMAGE);
	close(fd);
	end(ctx);
}

/* However often a table names the same bytes, they are copied once */
static void t_repeated_symbols(void)
{
	struct image image = binary;
	struct drv_image *in;

	/* all of one section, by one name */
	for (size_t i = 1; i < 6; i++)
		image.symbols[i] = (Elf64_Sym)VAR(42, 4, 0, 16);
	/* once more the same table */
	image.s[5] = image.s[2];
	in = drv_image_new(&image, sizeof(image));
	CHECK(in && in->known && in->n == 5);
	for (size_t i = 1; i < 5; i++)
		CHECK(in->vars[i].data == in->vars[0].data &&
		      in->vars[i].name == in->vars[0].name);
	CHECK(!memcmp(in->vars[0].data, binary.data, 16));
	drv_image_put(in);
	/* A table of names has an end */
	image.s[1].sh_size = 45;
	in = drv_image_new(&image, sizeof(image));
	CHECK(in && !in->n);
	drv_image_put(in);
}

/* A library has a module in each context, and ends with its own ones only */
static void t_library_modules(void)
{
	CUcontext ctx = start(&one), other;
	CUmodule m[2], x[10], again, victim = NULL;
	CUlibrary l;
	CUfunction f;

	OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetModule(&m[0], l));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuLibraryGetModule(&m[1], l));
	OK(cuLibraryGetModule(&again, l));
	CHECK(m[1] != m[0] && again == m[1]);
	OK(cuModuleGetFunction(&f, m[1], "first"));
	OK(cuFuncGetModule(&again, f));
	CHECK(again == m[1]);
	/* It goes with its library, or with its context */
	IS(cuModuleUnload(m[0]), CUDA_ERROR_NOT_PERMITTED);
	OK(cuModuleGetFunction(&f, m[0], "first"));
	/* The C library keeps the first places that are given back for itself */
	for (int i = 0; i < 10; i++)
		OK(cuModuleLoadData(&x[i], ptx));
	for (int i = 0; i < 10; i++)
		OK(cuModuleUnload(x[i]));
	OK(cuCtxDestroy_v2(other));
	IS(cuModuleGetFunction(&f, m[1], "first"), CUDA_ERROR_INVALID_HANDLE);
	/* One that lies where that lay */
	for (int i = 0; i < 1000 && victim != m[1]; i++)
		OK(cuModuleLoadData(&victim, ptx));
#ifndef __SANITIZE_ADDRESS__ /* which keeps the place, and says itself if that is used */
	CHECK(victim == m[1]);
#endif
	OK(cuLibraryUnload(l));
	IS(cuModuleGetFunction(&f, m[0], "first"), CUDA_ERROR_INVALID_HANDLE);
	OK(cuModuleGetFunction(&f, victim, "second"));
	end(ctx);
}

static void t_function_attributes(void)
{
	CUcontext ctx = start(&one);
	CUfunction f;
	CUmodule m;
	int v;

	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "first"));
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			      232448));
	OK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			      f));
	CHECK(v == 232448);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			      232449), INVALID);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			      -1), INVALID);
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			      50));
	OK(cuFuncGetAttribute(&v,
			      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			      f));
	CHECK(v == 50);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			      101), INVALID);
	/* What is found out of the code, what is not there, and what is nothing */
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION, 90), INVALID);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_LAST, 1),
	   CUDA_ERROR_NOT_SUPPORTED);
	IS(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_LAST + 1, 1), INVALID);
	IS(cuFuncSetAttribute((CUfunction)m,
			      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			      50), CUDA_ERROR_INVALID_HANDLE);
	end(ctx);
}

/* What a refused launch says */
static void t_launch(void)
{
	CUlaunchConfig config = { 1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0 };
	int keep = dup(2), pipe_fd[2];
	CUcontext ctx = start(&one);
	char text[512] = "";
	CUfunction f;
	CUmodule m;
	ssize_t n;

	setenv("PEERLANE_LOG", "0", 1);
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "second"));
	CHECK(!pipe2(pipe_fd, O_NONBLOCK));
	dup2(pipe_fd[1], 2);
	IS(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
	   CUDA_ERROR_NOT_SUPPORTED);
	dup2(keep, 2);
	n = read(pipe_fd[0], text, sizeof(text) - 1);
	CHECK(n > 0 && strstr(text, "kernel second was not launched"));
	dup2(pipe_fd[1], 2);
	IS(cuLaunchKernelEx(&config, f, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL),
	   CUDA_ERROR_NOT_SUPPORTED);
	dup2(keep, 2);
	IS(cuLaunchKernel(f, 1, 1, 0, 32, 1, 1, 0, NULL, NULL, NULL), INVALID);
	IS(cuLaunchKernel(f, 1, 1, 1, 33, 32, 1, 0, NULL, NULL, NULL), INVALID);
	IS(cuLaunchKernel(f, 1, 1, 1, 1u << 31, 1u << 31, 4, 0, NULL, NULL,
			  NULL), INVALID);
	IS(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)f, NULL, NULL),
	   CUDA_ERROR_INVALID_HANDLE);
	IS(cuLaunchKernel((CUfunction)m, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	   CUDA_ERROR_INVALID_HANDLE);
	end(ctx);
}

/* ---- functions of the program ---- */

struct seen {
	atomic_int calls;
	CUresult status;
	CUresult inner;
	unsigned char value;
	const unsigned char *watch;
	int gate[2];
};

static void note(void *arg)
{
	struct seen *seen = arg;
	char byte;
	int n;

	/* Not before it is let */
	if (seen->gate[0] >= 0 && read(seen->gate[0], &byte, 1) != 1)
		return;
	seen->inner = cuDeviceGetCount(&n);
	if (seen->watch)
		seen->value = *seen->watch;
	atomic_fetch_add(&seen->calls, 1);
}

static void note_status(CUstream stream, CUresult status, void *arg)
{
	struct seen *seen = arg;

	(void)stream;
	seen->status = status;
	note(arg);
}

static void t_host_function(void)
{
	struct seen seen = { .gate = { -1, -1 } };
	struct fake_config cfg = one;
	CUcontext ctx;
	unsigned char *b;
	CUdeviceptr p;
	void *pinned;
	CUstream s;
	CUevent e;

	cfg.manual = true;
	ctx = start(&cfg);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&e, 0));
	OK(cuMemAlloc_v2(&p, 4096));
	OK(cuMemAllocHost_v2(&pinned, 4096));
	b = pinned;
	*b = 0;
	seen.watch = b;
	IS(cuLaunchHostFunc(s, NULL, NULL), INVALID);
	IS(cuStreamAddCallback(s, note_status, &seen, 1), INVALID);
	IS(cuLaunchHostFunc(BAD_PTR(CUstream), note, &seen),
	   CUDA_ERROR_INVALID_HANDLE);
	/* After what is before it, and before what is after it */
	OK(cuMemsetD8Async(p, 5, 1, s));
	OK(cuMemcpyDtoHAsync_v2(b, p, 1, s));
	OK(cuLaunchHostFunc(s, note, &seen));
	OK(cuMemsetD8Async(p, 6, 1, s));
	OK(cuMemcpyDtoHAsync_v2(b, p, 1, s));
	OK(cuStreamSynchronize(s));
	CHECK(atomic_load(&seen.calls) == 1);
	CHECK(seen.value == 5 && *b == 6);
	CHECK(seen.inner == CUDA_ERROR_NOT_PERMITTED);
	/* Until it returns the stream is not done, and neither is an event */
	CHECK(!pipe(seen.gate));
	OK(cuLaunchHostFunc(s, note, &seen));
	IS(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(NULL));
	CHECK(write(seen.gate[1], "g", 1) == 1);
	OK(cuEventRecord(e, s));
	OK(cuEventSynchronize(e));
	CHECK(atomic_load(&seen.calls) == 2);
	/* The error of what went before */
	CHECK(write(seen.gate[1], "g", 1) == 1);
	OK(cuStreamAddCallback(s, note_status, &seen, 0));
	OK(cuStreamSynchronize(s));
	CHECK(seen.status == CUDA_SUCCESS);
	fake_bad_jobs(1, -EIO, 1);
	OK(cuLaunchHostFunc(s, note, &seen));
	OK(cuMemsetD8Async(p, 5, 1, s));
	OK(cuMemsetD8Async(p, 6, 1, s));	/* which works */
	OK(cuStreamAddCallback(s, note_status, &seen, 0));
	OK(cuLaunchHostFunc(s, note, &seen));	/* such one is not called then */
	CHECK(write(seen.gate[1], "ggg", 3) == 3);
	IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
	CHECK(seen.status == CUDA_ERROR_LAUNCH_FAILED);
	CHECK(atomic_load(&seen.calls) == 5);
	IS(cuMemFreeHost(pinned), CUDA_ERROR_LAUNCH_FAILED);
	end(ctx);
}

/* The place of a variable waits for nothing that the program has under way */
static void t_variable_beside(void)
{
	struct seen seen = { .gate = { -1, -1 } };
	CUcontext ctx = start(&one);
	CUdeviceptr p;
	CUmodule m;

	alarm(20);
	CHECK(!pipe(seen.gate));
	OK(cuModuleLoadData(&m, &binary));
	OK(cuLaunchHostFunc(NULL, note, &seen));
	OK(cuModuleGetGlobal_v2(&p, NULL, m, "one"));
	OK(cuModuleGetGlobal_v2(&p, NULL, m, "zero"));
	CHECK(!atomic_load(&seen.calls));
	CHECK(write(seen.gate[1], "g", 1) == 1);
	OK(cuStreamSynchronize(NULL));
	CHECK(atomic_load(&seen.calls) == 1);
	close(seen.gate[0]);
	close(seen.gate[1]);
	end(ctx);
}

static const CUuuid runtime = { { 0x6b, (char)0xd5, (char)0xfb, 0x6c,
	0x5b, (char)0xf4, (char)0xe7, 0x4a, (char)0x89, (char)0x87, (char)0xd9,
	0x39, 0x12, (char)0xfd, (char)0x9d, (char)0xf9 } };

static void *hold(void *file)
{
	flockfile(file);
	return NULL;
}

/* Ends in time, and as the program should, even if  is locked for ever */
static void ends_here(FILE *held, bool said_before)
{
	char said[512] = "", before[8] = "";
	int err[2], out[2], status;
	const void *table;
	pthread_t thread;
	pid_t pid;

	CHECK(!pipe(err) && !pipe(out));
	pid = fork();
	if (!pid) {
		alarm(20);
		dup2(err[1], STDERR_FILENO);
		dup2(out[1], STDOUT_FILENO);
		setvbuf(stdout, NULL, _IOFBF, 4096);
		printf("before");
		if (held && (pthread_create(&thread, NULL, hold, held) ||
			     pthread_join(thread, NULL)))
			_exit(1);
		cuGetExportTable(&table, &runtime);
		_exit(0);
	}
	close(err[1]);
	close(out[1]);
	CHECK(read(err[0], said, sizeof(said) - 1) > 0);
	CHECK(strstr(said, "peerlane run") && strchr(said, '\n'));
	CHECK(read(out[0], before, sizeof(before) - 1) ==
	      (said_before ? 6 : 0));
	close(err[0]);
	close(out[0]);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 126);
}

/* What NVIDIA's runtime asks for ends the program, with the reason */
static void t_export_tables(void)
{
	static const CUuuid none = { { 1, 2, 3 } };
	CUcontext ctx = start(&one);
	const void *table = ctx;
	FILE *file = tmpfile();

	IS(cuGetExportTable(&table, &none), CUDA_ERROR_NOT_FOUND);
	CHECK(!table);
	IS(cuGetExportTable(NULL, &none), INVALID);
	IS(cuGetExportTable(&table, NULL), INVALID);
	ends_here(NULL, true);
	/* A thread that ended with a stream has it for ever */
	CHECK(file);
	ends_here(file, true);
	ends_here(stdout, false);
	ends_here(stderr, true);
	fclose(file);
	end(ctx);
}

/* Where there is no GPU a program that asks for one may go on */
static void t_export_no_gpu(void)
{
	struct fake_config none = one;
	const void *table = &none;

	none.gpus = 0;
	fake_setup(&none);
	IS(cuGetExportTable(&table, &runtime), CUDA_ERROR_NO_DEVICE);
	CHECK(!table);
}

/* Before cuInit(), too */
static void t_export_first(void)
{
	fake_setup(&one);
	ends_here(NULL, true);
}

static const struct unit_test tests[] = {
	{ "modules and libraries", t_modules },
	{ "variables", t_variables },
	{ "broken images", t_broken_image },
	{ "truncated images", t_truncated_image },
	{ "a wrapper in a file", t_wrapper_in_file },
	{ "symbols that repeat", t_repeated_symbols },
	{ "a library's modules", t_library_modules },
	{ "attributes of functions", t_function_attributes },
	{ "a launch is refused by name", t_launch },
	{ "functions of the program in a stream", t_host_function },
	{ "a variable's place beside a stream", t_variable_beside },
	{ "tables for the runtime", t_export_tables },
	{ "tables for the runtime, first of all", t_export_first },
	{ "tables for the runtime, no GPU", t_export_no_gpu },
};

UNIT_MAIN(tests)
