// SPDX-License-Identifier: MIT
/*
 * Device code: modules and libraries are taken and named, and nothing in them
 * is ever run; kernel.c refuses.
 *
 * Text (PTX) is searched for the names of its kernels.  Of binary code every
 * kernel that the program asks for is said to be there.  Variables are those of
 * image.c; a module's get their memory when they are first asked for.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

void drv_code_free(struct CUmod_st *code)
{
	drv_image_put(code->image);
	free(code->at);
	free(code);
}

void drv_function_free(struct CUfunc_st *function)
{
	free(function);
}

/* ---- loading ---- */

static bool is_ptx(const char *text)
{
	const char *p = text;

	/* Only blanks and comments come before .version */
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (!strncmp(p, "//", 2)) {
			p += strcspn(p, "\n");
		} else if (!strncmp(p, "/*", 2)) {
			p = strstr(p, "*/");
			if (!p)
				return false;
			p += 2;
		} else {
			return !strncmp(p, ".version", 8);
		}
	}
}

/* Takes over the caller's reference on @image, which may be NULL: no memory */
static CUresult code_new(struct drv_image *image, struct CUmod_st **out)
{
	struct CUmod_st *code = image ? calloc(1, sizeof(*code)) : NULL;

	if (!code) {
		drv_image_put(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	code->image = image;
	code->obj.type = DRV_CODE;
	atomic_init(&code->obj.refs, 1);
	LIST_INIT(&code->functions);
	LIST_INIT(&code->modules);
	*out = code;
	return CUDA_SUCCESS;
}

/* drv.lock is held: put it where the program finds it */
static CUresult code_add(struct CUmod_st *code, CUcontext ctx)
{
	CUresult err;

	if (ctx && atomic_load(&ctx->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	err = drv_obj_add(&code->obj);
	if (!err && ctx) {
		code->ctx = ctx;
		LIST_INSERT_HEAD(&ctx->modules, code, link);
	}
	return err;
}

typedef CUresult load_fn(const void *from, CUcontext ctx,
			 struct CUmod_st **out);

static CUresult load_sized(const void *data, size_t size, CUcontext ctx,
			   struct CUmod_st **out)
{
	struct CUmod_st *code;
	CUresult err;

	if (!out || !data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_image_is_binary(data, size) && !is_ptx(data))
		return CUDA_ERROR_INVALID_IMAGE;
	err = code_new(drv_image_new(data, size), &code);
	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	err = code_add(code, ctx);
	pthread_mutex_unlock(&drv.lock);
	if (err)
		drv_obj_put(&code->obj);
	else
		*out = code;
	return err;
}

static CUresult load(const void *data, CUcontext ctx, struct CUmod_st **out)
{
	return load_sized(data, 0, ctx, out);
}

static CUresult load_file(const void *name, CUcontext ctx,
			  struct CUmod_st **out)
{
	struct stat st;
	ssize_t got;
	CUresult err;
	char *image;
	int fd;

	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? CUDA_ERROR_FILE_NOT_FOUND :
					 CUDA_ERROR_OPERATING_SYSTEM;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size ||
	    st.st_size > 1 << 30) {
		close(fd);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	image = calloc(1, (size_t)st.st_size + 4);
	got = image ? read(fd, image, (size_t)st.st_size) : 0;
	close(fd);
	err = !image ? CUDA_ERROR_OUT_OF_MEMORY :
	      got != st.st_size ? CUDA_ERROR_OPERATING_SYSTEM :
	      load_sized(image, (size_t)st.st_size, ctx, out);
	free(image);
	return err;
}

static CUresult module_load(CUmodule *module, const void *from,
			    load_fn *loader)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	err = loader(from, ctx, module);
	drv_ctx_put(ctx);
	return err;
}

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
	return module_load(module, file, load_file);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return module_load(module, image, load);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
			    unsigned int n, CUjit_option *options,
			    void **values)
{
	if (n && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	return module_load(module, image, load);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return module_load(module, image, load);
}

/* Options are not looked at; some of a library's have no value */
static CUresult library_load(CUlibrary *library, const void *from,
			     load_fn *loader, CUjit_option *options,
			     void **values, unsigned int n,
			     CUlibraryOption *library_options,
			     unsigned int library_n)
{
	struct CUmod_st *code;
	CUresult err = drv_ready();

	if (!err && (!library || (n && (!options || !values)) ||
		     (library_n && !library_options)))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = loader(from, NULL, &code);
	if (!err)
		*library = (CUlibrary)code;
	return err;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image,
			   CUjit_option *options, void **values,
			   unsigned int n, CUlibraryOption *library_options,
			   void **library_values, unsigned int library_n)
{
	(void)library_values;
	return library_load(library, image, load, options, values, n,
			    library_options, library_n);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *file,
			       CUjit_option *options, void **values,
			       unsigned int n, CUlibraryOption *library_options,
			       void **library_values, unsigned int library_n)
{
	(void)library_values;
	return library_load(library, file, load_file, options, values, n,
			    library_options, library_n);
}

/* ---- unloading ---- */

/* drv.lock is held; the caller puts the table's reference then */
static void code_del(struct CUmod_st *code)
{
	struct CUfunc_st *function;

	while ((function = LIST_FIRST(&code->functions))) {
		LIST_REMOVE(function, link);
		drv_obj_del(&function->obj);
		function->code = NULL;
		drv_obj_put(&function->obj);
	}
	code->gone = true;
	drv_obj_del(&code->obj);
	if (code->ctx)
		LIST_REMOVE(code, link);
	if (code->of_library)
		LIST_REMOVE(code, sibling);
}

/* drv.lock is held */
static struct CUmod_st *code_find(const void *handle, bool library)
{
	struct CUmod_st *code = drv_obj_find(handle, DRV_CODE);

	if (code && library == !!code->ctx) {
		drv_obj_put(&code->obj);
		return NULL;
	}
	return code;
}

/* Of a module that is unloaded; a context that is destroyed frees all memory */
static void free_variables(struct CUmod_st *code)
{
	for (size_t i = 0; code->at && i < code->image->n; i++)
		if (code->at[i])
			drv_take_and_free(code->at[i], DRV_KIND(CODE),
					  CUDA_ERROR_INVALID_VALUE);
}

static CUresult unload(const void *handle, bool library)
{
	struct CUmod_st *code, *module;
	CUresult err = drv_ready();
	bool mine;

	if (err)
		return err;
	pthread_mutex_lock(&drv.lock);
	code = code_find(handle, library);
	/* One of a library is the library's */
	if (code && code->of_library) {
		pthread_mutex_unlock(&drv.lock);
		drv_obj_put(&code->obj);
		return CUDA_ERROR_NOT_PERMITTED;
	}
	while (code && (module = LIST_FIRST(&code->modules))) {
		code_del(module);
		pthread_mutex_unlock(&drv.lock);
		free_variables(module);
		drv_obj_put(&module->obj);	/* the table's */
		pthread_mutex_lock(&drv.lock);
	}
	mine = code && !code->gone;
	if (mine)
		code_del(code);
	pthread_mutex_unlock(&drv.lock);
	if (mine) {
		free_variables(code);
		drv_obj_put(&code->obj);	/* the table's */
	}
	if (code)
		drv_obj_put(&code->obj);
	return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule module)
{
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	drv_ctx_put(ctx);
	return unload(module, false);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return unload(library, true);
}

/* Of a context that is being destroyed */
void drv_ctx_unload(CUcontext ctx)
{
	struct CUmod_st *code;

	for (;;) {
		pthread_mutex_lock(&drv.lock);
		code = LIST_FIRST(&ctx->modules);
		if (code)
			code_del(code);
		pthread_mutex_unlock(&drv.lock);
		if (!code)
			return;
		drv_obj_put(&code->obj);
	}
}

/* ---- kernels ---- */

static bool word_at(const char *p, const char *name, size_t n)
{
	return !strncmp(p, name, n) && !isalnum((unsigned char)p[n]) &&
	       p[n] != '_' && p[n] != '$';
}

/* Does the text have a kernel @name? */
static bool ptx_has(const char *ptx, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(ptx, ".entry"); p;
	     p = strstr(p, ".entry")) {
		p += strlen(".entry");
		while (isspace((unsigned char)*p))
			p++;
		if (word_at(p, name, n))
			return true;
	}
	return false;
}

/* drv.lock is held */
static CUresult function_get(struct CUmod_st *code, const char *name,
			     struct CUfunc_st **out)
{
	struct CUfunc_st *function;
	size_t len = strlen(name) + 1;
	CUresult err;

	LIST_FOREACH(function, &code->functions, link) {
		if (!strcmp(function->name, name)) {
			*out = function;
			return CUDA_SUCCESS;
		}
	}
	if (code->image->ptx && !ptx_has(code->image->ptx, name))
		return CUDA_ERROR_NOT_FOUND;
	function = calloc(1, sizeof(*function) + len);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->obj.type = DRV_FUNCTION;
	atomic_init(&function->obj.refs, 1);
	function->code = code;
	function->shared = DRV_USUAL_SHARED;
	function->carveout = -1;	/* the driver's choice */
	memcpy(function->name, name, len);
	err = drv_obj_add(&function->obj);
	if (err) {
		free(function);
		return err;
	}
	LIST_INSERT_HEAD(&code->functions, function, link);
	*out = function;
	return CUDA_SUCCESS;
}

static CUresult named(struct CUfunc_st **out, const void *handle, bool library,
		      const char *name)
{
	struct CUmod_st *code;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	code = code_find(handle, library);
	err = code ? function_get(code, name, out) : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&drv.lock);
	if (code)
		drv_obj_put(&code->obj);
	return err;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
			     const char *name)
{
	return named(function, module, false, name);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
			    const char *name)
{
	struct CUfunc_st *f;
	CUresult err = kernel ? named(&f, library, true, name) :
				CUDA_ERROR_INVALID_VALUE;

	if (!err)
		*kernel = (CUkernel)f;
	return err;
}

/* In a stream of its own: what the program has put into others is not waited for */
static CUresult fill_variable(CUdeviceptr at, const struct drv_var *var)
{
	CUstream stream;
	CUresult err = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), end;

	if (err)
		return err;
	err = var->data ?
	      cuMemcpyHtoDAsync_v2(at, var->data, var->size, stream) :
	      cuMemsetD8Async(at, 0, var->size, stream);
	end = cuStreamSynchronize(stream);
	cuStreamDestroy_v2(stream);
	return err ? err : end;
}

/*
 * Memory of variable number @i, of a module in @ctx.  Whoever comes first keeps
 * what it made; one that comes when the module is gone finds nothing.
 */
static CUresult place(struct CUmod_st *code, CUcontext ctx, size_t i,
		      CUdeviceptr *out)
{
	const struct drv_var *var = &code->image->vars[i];
	CUdeviceptr made = 0;
	CUresult err = drv_device_alloc(ctx, var->size, DRV_RANGE_CODE, &made);

	if (err)
		return err;
	err = cuCtxPushCurrent_v2(ctx);
	if (!err) {
		err = fill_variable(made, var);
		cuCtxPopCurrent_v2(NULL);
	}
	pthread_mutex_lock(&drv.lock);
	if (!err && code->gone)
		err = CUDA_ERROR_INVALID_HANDLE;
	if (!err && !code->at) {
		code->at = calloc(code->image->n, sizeof(*code->at));
		if (!code->at)
			err = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!err && !code->at[i]) {
		code->at[i] = made;
		made = 0;
	}
	if (!err)
		*out = code->at[i];
	pthread_mutex_unlock(&drv.lock);
	if (made)
		drv_take_and_free(made, DRV_KIND(CODE),
				  CUDA_ERROR_INVALID_VALUE);
	return err;
}

/* Number of the variable; an error if its place is not for the library to give */
static CUresult find_variable(const struct drv_image *image, const char *name,
			      size_t *i)
{
	if (image->ptx)
		return strstr(image->ptx, name) ? CUDA_ERROR_NOT_SUPPORTED :
						  CUDA_ERROR_NOT_FOUND;
	for (*i = 0; *i < image->n; ++*i)
		if (!strcmp(image->vars[*i].name, name))
			return image->vars[*i].managed ?
			       CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	return image->known ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult variable(CUdeviceptr *ptr, size_t *size, const void *handle,
			 bool library, const char *name)
{
	struct CUmod_st *code;
	CUcontext ctx = NULL;
	CUdeviceptr at = 0;
	CUmodule module;
	size_t i = 0;
	CUresult err = drv_ready();

	if (err)
		return err;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&drv.lock);
	code = code_find(handle, library);
	err = code ? find_variable(code->image, name, &i) :
		     CUDA_ERROR_INVALID_HANDLE;
	if (!err && code->at)
		at = code->at[i];
	if (!err && code->ctx) {
		ctx = code->ctx;
		atomic_fetch_add(&ctx->obj.refs, 1);
	}
	pthread_mutex_unlock(&drv.lock);
	if (!err && library) {
		err = cuLibraryGetModule(&module, (CUlibrary)code);
		if (!err)
			err = variable(ptr, size, module, false, name);
	} else if (!err) {
		if (!at)
			err = place(code, ctx, i, &at);
		if (!err && ptr)
			*ptr = at;
		if (!err && size)
			*size = code->image->vars[i].size;
	}
	if (ctx)
		drv_ctx_put(ctx);
	if (code)
		drv_obj_put(&code->obj);
	return err;
}

DRV_PATCHABLE(cuModuleGetGlobal_v2, CUdeviceptr *ptr, size_t *size,
	      CUmodule module, const char *name)
{
	return variable(ptr, size, module, false, name);
}

DRV_PATCHABLE(cuLibraryGetGlobal, CUdeviceptr *ptr, size_t *size,
	      CUlibrary library, const char *name)
{
	return variable(ptr, size, library, true, name);
}

/* A library's module in the current context: the same code once more */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	struct CUmod_st *code, *copy;
	CUcontext ctx;
	CUresult err = drv_ctx_current(&ctx);

	if (err)
		return err;
	if (!module) {
		drv_ctx_put(ctx);
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&drv.lock);
	code = code_find(library, true);
	if (!code) {
		err = CUDA_ERROR_INVALID_HANDLE;
		goto out;
	}
	LIST_FOREACH(copy, &code->modules, sibling)
		if (copy->ctx == ctx)
			break;
	if (!copy) {
		err = code_new(drv_image_ref(code->image), &copy);
		if (err)
			goto out;
		err = code_add(copy, ctx);
		if (err) {
			drv_obj_put(&copy->obj);
			goto out;
		}
		copy->of_library = true;
		LIST_INSERT_HEAD(&code->modules, copy, sibling);
	}
	*module = copy;
out:
	pthread_mutex_unlock(&drv.lock);
	if (code)
		drv_obj_put(&code->obj);
	drv_ctx_put(ctx);
	return err;
}
