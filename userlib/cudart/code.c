// SPDX-License-Identifier: MIT
/*
 * The program's device code, as the compiler registers it, and launches.
 *
 * nvcc has each program hand over its device code before main(), and name each
 * kernel and variable by the address of something of its own.  The code is
 * given to the driver when the first kernel or variable of it is used.  What
 * the driver says to a launch is the answer: Peerlane's refuses, and names the
 * kernel on standard error.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define WRAPPER_MAGIC	0x466243b1

/* What the compiler hands over */
struct wrapper {
	int magic;
	int version;
	const void *image;
	void *more;
};

struct image {
	void *handle;			/* first: the program has its address */
	const void *data;
	CUlibrary library;		/* NULL: not loaded yet */
	struct image *next;
};

struct symbol {
	const void *address;		/* of the program's */
	const char *name;
	struct image *image;
	bool variable;
	size_t size;			/* of a variable */
	void **managed;			/* where the program wants its address, or NULL */
	CUkernel kernel;		/* NULL: not looked up yet */
	unsigned long number;		/* the newest has the largest, and is first */
	struct symbol *next;
};

struct launch {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
	struct launch *below;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct image *images;
static struct symbol *symbols;
static __thread struct launch *launches;

void rt_code_lock(bool on)
{
	if (on)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}

/* ---- what the compiler calls ---- */

void **__cudaRegisterFatBinary(void *wrapper)
{
	const struct wrapper *w = wrapper;
	struct image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->data = w && w->magic == WRAPPER_MAGIC ? w->image : wrapper;
	pthread_mutex_lock(&lock);
	image->next = images;
	images = image;
	pthread_mutex_unlock(&lock);
	return &image->handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

/* When the program ends, or unloads a library of its own */
void __cudaUnregisterFatBinary(void **handle)
{
	struct image *image = (struct image *)handle, **at;
	struct symbol **s = &symbols, *gone;

	pthread_mutex_lock(&lock);
	for (at = &images; *at && *at != image; at = &(*at)->next)
		;
	if (*at) {
		*at = image->next;
		while (*s) {
			gone = *s;
			if (gone->image == image) {
				*s = gone->next;
				free(gone);
			} else {
				s = &gone->next;
			}
		}
		/* The driver may be gone by now, and its memory with it */
		free(image);
	}
	pthread_mutex_unlock(&lock);
}

static void add_symbol(void **handle, const void *address, const char *name,
		       bool variable, size_t size, void **managed)
{
	struct symbol *s = calloc(1, sizeof(*s));

	if (!s || !handle) {
		free(s);		/* its use will not find it */
		return;
	}
	s->address = address;
	s->name = name;
	s->image = (struct image *)handle;
	s->variable = variable;
	s->size = size;
	s->managed = managed;
	pthread_mutex_lock(&lock);
	s->number = symbols ? symbols->number + 1 : 1;
	s->next = symbols;
	symbols = s;
	pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *function, char *stub,
			    const char *name, int thread_limit, uint3 *tid,
			    uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
	(void)stub;
	(void)thread_limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	add_symbol(handle, function, name, false, 0, NULL);
}

void __cudaRegisterVar(void **handle, char *variable, char *address,
		       const char *name, int ext, size_t size, int constant,
		       int global)
{
	(void)address;
	(void)ext;
	(void)constant;
	(void)global;
	add_symbol(handle, variable, name, true, size, NULL);
}

void __cudaRegisterManagedVar(void **handle, void **variable, char *address,
			      const char *name, int ext, size_t size,
			      int constant, int global)
{
	(void)address;
	(void)ext;
	(void)constant;
	(void)global;
	add_symbol(handle, variable, name, true, size, variable);
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream)
{
	struct launch *l = malloc(sizeof(*l));

	if (!l)
		return 1;		/* the program does not launch then */
	*l = (struct launch){ grid, block, shared, stream, launches };
	launches = l;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
				       void *stream)
{
	struct launch *l = launches;

	if (!l)
		return rt_end(cudaErrorMissingConfiguration);
	*grid = l->grid;
	*block = l->block;
	*shared = l->shared;
	*(cudaStream_t *)stream = l->stream;
	launches = l->below;
	free(l);
	return cudaSuccess;
}

/* ---- finding ---- */

/* lock is held */
static cudaError_t load(struct image *image)
{
	cudaError_t err = cudaSuccess;

	if (!image->library)
		err = DRIVER(cuLibraryLoadData, &image->library, image->data,
			     NULL, NULL, 0, NULL, NULL, 0);
	if (err)
		image->library = NULL;
	return err;
}

static struct symbol *find(const void *address, bool variable)
{
	struct symbol *s;

	for (s = symbols; s; s = s->next)
		if (s->address == address && s->variable == variable)
			return s;
	return NULL;
}

static cudaError_t get_kernel(const void *function, CUkernel *kernel)
{
	struct symbol *s;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	s = find(function, false);
	if (!s)
		err = cudaErrorInvalidDeviceFunction;
	else
		err = load(s->image);
	if (!err && !s->kernel)
		err = DRIVER(cuLibraryGetKernel, &s->kernel, s->image->library,
			     s->name);
	if (!err)
		*kernel = s->kernel;
	pthread_mutex_unlock(&lock);
	return err == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction :
						err;
}

static cudaError_t get_function(const void *address, CUfunction *function)
{
	CUkernel kernel;
	cudaError_t err = get_kernel(address, &kernel);

	/* Which error a kernel that is not there gives, changed with CUDA 13 */
	if (err == cudaErrorInvalidDeviceFunction && CUDART_MAJOR >= 13)
		err = cudaErrorInvalidResourceHandle;
	return err ? err : DRIVER(cuKernelGetFunction, function, kernel);
}

/* The variable at @address of the program, and the driver's module that has it */
static cudaError_t look_up(const void *address, struct symbol *found,
			   CUmodule *module)
{
	CUlibrary library = NULL;
	struct symbol *s;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	s = find(address, true);
	err = s ? load(s->image) : cudaErrorInvalidSymbol;
	if (!err) {
		*found = *s;
		library = s->image->library;
	}
	pthread_mutex_unlock(&lock);
	/* The driver may wait for functions of the program, which need the lock */
	return err ? err : DRIVER(cuLibraryGetModule, module, library);
}

static cudaError_t driver_place(const struct symbol *s, CUmodule module,
				CUdeviceptr *at, size_t *have)
{
	cudaError_t err = DRIVER(cuModuleGetGlobal_v2, at, have, module,
				 s->name);

	return err == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : err;
}

cudaError_t rt_variable(const void *address, size_t offset, size_t n,
			void **ptr, size_t *size)
{
	CUdeviceptr at = 0;
	size_t have = 0;
	struct symbol s;
	CUmodule module;
	cudaError_t err = look_up(address, &s, &module);

	if (err)
		return err;
	err = driver_place(&s, module, &at, &have);
	if (err == cudaErrorNotSupported && !s.managed)
		fprintf(stderr, "libcudart (Peerlane): the variable %s has no place: its code is compressed, or PTX alone; nvcc --no-compress, with code for an sm_ architecture, leaves it readable\n",
			s.name);
	if (err)
		return err;
	if (offset > have || n > have - offset)
		return cudaErrorInvalidValue;
	*ptr = (void *)(uintptr_t)(at + offset);
	if (size)
		*size = have;
	return cudaSuccess;
}

/* ---- managed variables ---- */

/* Of the program's module, or, where code does not run, a place of our @own */
static cudaError_t make_place(const struct symbol *s, CUdeviceptr *at,
			      bool *own)
{
	struct symbol found;
	CUmodule module;
	size_t have;
	cudaError_t err = look_up(s->address, &found, &module);

	if (!err)
		err = driver_place(&found, module, at, &have);
	*own = err == cudaErrorNotSupported;
	if (*own)
		err = DRIVER(cuMemAllocManaged, at, s->size,
			     CU_MEM_ATTACH_GLOBAL);
	return err;
}

/* Does the driver know the memory no more? */
static bool is_gone(const void *ptr)
{
	CUpointer_attribute attr = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned int type = 0;
	void *data = &type;

	return DRIVER(cuPointerGetAttributes, 1, &attr, &data,
		      (uintptr_t)ptr) || !type;
}

/* A variable that wants a place, older than @before, and the one that it has */
static bool next_placeless(void **handle, unsigned long before,
			   struct symbol *found, void **was)
{
	struct symbol *s;

	pthread_mutex_lock(&lock);
	for (s = symbols; s; s = s->next)
		if (s->number < before && s->managed &&
		    (handle ? (void *)s->image == (void *)handle && !*s->managed :
			      *s->managed && is_gone(*s->managed)))
			break;
	if (s) {
		*found = *s;
		*was = *s->managed;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

/* False: another thread was first, or the program's code is gone meanwhile */
static bool give_place(const struct symbol *to, const void *was, CUdeviceptr at)
{
	struct symbol *s;
	bool given;

	pthread_mutex_lock(&lock);
	for (s = symbols; s && s->number != to->number; s = s->next)
		;
	given = s && *s->managed == was;
	if (given)
		*s->managed = (void *)(uintptr_t)at;
	pthread_mutex_unlock(&lock);
	return given;
}

/* Of the program's code @handle, those without a place; NULL: that lost theirs */
static void place(void **handle)
{
	struct symbol s = { .number = ULONG_MAX };
	CUdeviceptr at = 0;
	cudaError_t err;
	void *was;
	bool own;

	/* The driver is called without the lock, see look_up() */
	while (next_placeless(handle, s.number, &s, &was)) {
		err = make_place(&s, &at, &own);
		if (err)
			fprintf(stderr, "libcudart (Peerlane): no memory for the managed variable %s: %s\n",
				s.name, cudaGetErrorString(err));
		else if (!give_place(&s, was, at) && own)
			(void)DRIVER(cuMemFree_v2, at);
	}
}

/* Called before the first use of a managed variable, and not again later */
char __cudaInitModule(void **handle)
{
	place(handle);
	return 1;
}

void rt_place_again(void)
{
	place(NULL);
}

/* ---- launches ---- */

static cudaError_t launch(CUfunction function, dim3 grid, dim3 block,
			  void **args, size_t shared, cudaStream_t stream)
{
	return DRIVER(cuLaunchKernel, function, grid.x, grid.y, grid.z,
		      block.x, block.y, block.z, (unsigned int)shared, stream,
		      args, NULL);
}

BOTH(cudaLaunchKernel, _ptsz,
     (const void *function, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream),
	CUfunction f;
	cudaError_t err = get_function(function, &f);

	return rt_end(err ? err : launch(f, grid, block, args, shared,
					 S(stream)));
);

/* What CUDA 13's compiler calls, with the kernel as cudaGetKernel() gave it */
BOTH(__cudaLaunchKernel, _ptsz,
     (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream),
	CUfunction f;
	cudaError_t err = rt_enter();

	if (!err)
		err = kernel ? DRIVER(cuKernelGetFunction, &f, kernel) :
			       cudaErrorInvalidDeviceFunction;
	return rt_end(err ? err : launch(f, grid, block, args, shared,
					 S(stream)));
);

BOTH(cudaLaunchCooperativeKernel, _ptsz,
     (const void *function, dim3 grid, dim3 block, void **args, size_t shared,
      cudaStream_t stream),
	CUfunction f;
	cudaError_t err = get_function(function, &f);

	return rt_end(err ? err :
		      DRIVER(cuLaunchCooperativeKernel, f, grid.x, grid.y,
			     grid.z, block.x, block.y, block.z,
			     (unsigned int)shared, S(stream), args));
);

BOTH(cudaLaunchKernelExC, _ptsz,
     (const cudaLaunchConfig_t *config, const void *function, void **args),
	CUlaunchConfig c;
	CUfunction f;
	cudaError_t err = config ? get_function(function, &f) :
				   cudaErrorInvalidValue;

	if (err)
		return rt_end(err);
	memset(&c, 0, sizeof(c));
	c.gridDimX = config->gridDim.x;
	c.gridDimY = config->gridDim.y;
	c.gridDimZ = config->gridDim.z;
	c.blockDimX = config->blockDim.x;
	c.blockDimY = config->blockDim.y;
	c.blockDimZ = config->blockDim.z;
	c.sharedMemBytes = (unsigned int)config->dynamicSmemBytes;
	c.hStream = S(config->stream);
	c.attrs = (CUlaunchAttribute *)config->attrs;
	c.numAttrs = config->numAttrs;
	return rt_end(DRIVER(cuLaunchKernelEx, &c, f, args, NULL));
);

/* ---- what a kernel is ---- */

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	return rt_end(kernel ? get_kernel(function, kernel) :
			       cudaErrorInvalidValue);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
	return cudaGetKernel(kernel, function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	return rt_end(function ? get_function(symbol, function) :
				 cudaErrorInvalidValue);
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
	struct symbol *s;

	if (!name)
		return rt_end(cudaErrorInvalidValue);
	pthread_mutex_lock(&lock);
	s = find(function, false);
	if (s)
		*name = s->name;
	pthread_mutex_unlock(&lock);
	return rt_end(s ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attrs,
				  const void *function)
{
	struct cudaFuncAttributes a;
	/* By the driver's numbers, from 0; the first four are not int */
	int value[16] = { 0 };
	CUfunction f;
	cudaError_t err = attrs ? get_function(function, &f) :
				  cudaErrorInvalidValue;

	for (unsigned int i = 0; i < 16 && !err; i++)
		err = DRIVER(cuFuncGetAttribute, &value[i], i, f);
	if (err)
		return rt_end(err);
	memset(&a, 0, sizeof(a));
	a.maxThreadsPerBlock = value[0];
	a.sharedSizeBytes = (size_t)value[1];
	a.constSizeBytes = (size_t)value[2];
	a.localSizeBytes = (size_t)value[3];
	a.numRegs = value[4];
	a.ptxVersion = value[5];
	a.binaryVersion = value[6];
	a.cacheModeCA = value[7];
	a.maxDynamicSharedSizeBytes = value[8];
	a.preferredShmemCarveout = value[9];
	a.clusterDimMustBeSet = value[10];
	a.requiredClusterWidth = value[11];
	a.requiredClusterHeight = value[12];
	a.requiredClusterDepth = value[13];
	a.nonPortableClusterSizeAllowed = value[14];
	a.clusterSchedulingPolicyPreference = value[15];
	*attrs = a;
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function,
				 enum cudaFuncAttribute attr, int value)
{
	CUfunction f;
	cudaError_t err = get_function(function, &f);

	return rt_end(err ? err : DRIVER(cuFuncSetAttribute, f,
					 (CUfunction_attribute)attr, value));
}

/* A hint, and there is nothing that could take it */
cudaError_t cudaFuncSetCacheConfig(const void *function,
				   enum cudaFuncCache config)
{
	CUkernel kernel;
	cudaError_t err = get_kernel(function, &kernel);

	if (!err && (int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		err = cudaErrorInvalidValue;
	return rt_end(err);
}
