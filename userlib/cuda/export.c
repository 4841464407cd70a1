// SPDX-License-Identifier: MIT
/*
 * cuGetExportTable(): what NVIDIA's CUDA runtime asks of a driver beyond the
 * documented interface.  A table is an array of words; most begin with their
 * size in bytes, the others are functions.  Names are ours: what is known is
 * what the runtime is seen to do with an entry, and what public projects wrote
 * about it.
 *
 *	6bd5fb6c-5bf4-e74a-8987-d93912fd9df9	runtime interface
 *		2: the primary context of a device, not retained
 *	a094798c-2e74-2e74-93f2-0800200c0a66	hooks for tools
 *		2, 6: areas that a profiler would fill with callbacks
 *	42d85a81-23f6-cb47-8298-f6e78a3aecdc	thread storage of tools
 *	c693336e-1121-df11-a8c3-68f355d89593	storage in a context, no size
 *		0: put a value under a key, 1: remove it, 2: get it
 *	263e8860-7cd2-6143-92f6-bbd5006dfa7e	checks of a context
 *		2: of a context, 3: of the process; 0 means nothing special
 *
 *	d4082055-bde6-704b-8d34-ba123c66e1f2	proof of origin
 *		1: an answer that only a key in NVIDIA's binaries can give
 *
 * The last one is refused, on purpose: this driver is not NVIDIA's and does not
 * say that it is.  The runtime (from CUDA 11.2 on, static and shared) ends its
 * start with our error then, 801, and would with its own, 103, for a false
 * answer.  Programs are led to our own runtime instead, which asks for none of
 * this: cudart/lead.c.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- storage in a context ---- */

typedef void (*cls_drop)(CUcontext ctx, void *key, void *value);

struct pln_cls {
	void *key;
	void *value;
	cls_drop drop;
	LIST_ENTRY(pln_cls) link;
};

/* pln.lock is held */
static struct pln_cls *cls_find(CUcontext ctx, const void *key)
{
	struct pln_cls *cls;

	LIST_FOREACH(cls, &ctx->cls, link)
		if (cls->key == key)
			return cls;
	return NULL;
}

/* @handle, or the current context when it is NULL; takes a reference */
static CUresult cls_ctx(CUcontext handle, CUcontext *ctx)
{
	return handle ? pln_ctx_get(handle, ctx) : pln_ctx_current(ctx);
}

static CUresult cls_put(CUcontext handle, void *key, void *value, cls_drop drop)
{
	struct pln_cls *cls, *new = calloc(1, sizeof(*new));
	CUcontext ctx;
	CUresult err;

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	err = cls_ctx(handle, &ctx);
	if (err) {
		free(new);
		return err;
	}
	pthread_mutex_lock(&pln.lock);
	cls = cls_find(ctx, key);
	if (atomic_load(&ctx->destroyed)) {
		err = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	} else if (!cls) {
		cls = new;
		new = NULL;
		cls->key = key;
		LIST_INSERT_HEAD(&ctx->cls, cls, link);
	}
	if (!err) {
		cls->value = value;
		cls->drop = drop;
	}
	pthread_mutex_unlock(&pln.lock);
	free(new);
	pln_ctx_put(ctx);
	return err;
}

static CUresult cls_remove(CUcontext handle, void *key)
{
	struct pln_cls *cls;
	CUcontext ctx;
	CUresult err = cls_ctx(handle, &ctx);

	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	cls = cls_find(ctx, key);
	if (cls)
		LIST_REMOVE(cls, link);
	pthread_mutex_unlock(&pln.lock);
	free(cls);
	pln_ctx_put(ctx);
	return cls ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult cls_get(void **value, CUcontext handle, void *key)
{
	struct pln_cls *cls;
	CUcontext ctx;
	CUresult err;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	err = cls_ctx(handle, &ctx);
	if (err)
		return err;
	pthread_mutex_lock(&pln.lock);
	cls = cls_find(ctx, key);
	if (cls)
		*value = cls->value;
	else
		err = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&pln.lock);
	pln_ctx_put(ctx);
	return err;
}

/* Of a context that is being destroyed */
void pln_cls_drop(CUcontext ctx)
{
	struct pln_cls *cls;

	for (;;) {
		pthread_mutex_lock(&pln.lock);
		cls = LIST_FIRST(&ctx->cls);
		if (cls)
			LIST_REMOVE(cls, link);
		pthread_mutex_unlock(&pln.lock);
		if (!cls)
			return;
		if (cls->drop)
			cls->drop(ctx, cls->key, cls->value);
		free(cls);
	}
}

/* ---- the rest ---- */

static CUresult not_here(void)
{
	pln_log("an undocumented function of the driver was called, which is not there");
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult primary_of(CUcontext *out, CUdevice dev)
{
	CUresult err;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	err = cuDevicePrimaryCtxRetain(out, dev);
	return err ? err : cuDevicePrimaryCtxRelease_v2(dev);
}

static uint64_t hooks[512], more_hooks[16];

static void get_hooks(void **area, size_t *size)
{
	*area = hooks;
	*size = sizeof(hooks);
}

static void get_more_hooks(void **area, size_t *size)
{
	*area = more_hooks;
	*size = sizeof(more_hooks);
}

static CUresult check_ctx(CUcontext ctx, unsigned int *result,
			  const void **more)
{
	(void)ctx;
	(void)more;
	if (result)
		*result = 0;
	return CUDA_SUCCESS;
}

static unsigned int check_process(void)
{
	return 0;
}

static CUresult no_proof(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fputs("peerlane: libcuda: NVIDIA's CUDA runtime in this program wants proof that the driver is NVIDIA's, and stops with error 801; start it by \"peerlane run\", which leads it to Peerlane's runtime, or, if it was, see which part of it that cannot reach: libcudart-peerlane(7)\n",
		      stderr);
	return CUDA_ERROR_NOT_SUPPORTED;
}

typedef void (*fn)(void);

union word {
	size_t size;
	fn call;
};

static const union word runtime[10] = {
	{ .size = sizeof(runtime) }, { .call = (fn)not_here },
	{ .call = (fn)primary_of }, { .call = (fn)not_here },
	{ .call = (fn)not_here }, { .call = (fn)not_here },
	{ .call = (fn)not_here }, { .call = (fn)not_here },
	{ .call = (fn)not_here }, { .call = (fn)not_here },
};

static const union word tools[7] = {
	{ .size = sizeof(tools) }, { .call = (fn)not_here },
	{ .call = (fn)get_hooks }, { .call = (fn)not_here },
	{ .call = (fn)not_here }, { .call = (fn)not_here },
	{ .call = (fn)get_more_hooks },
};

static const union word tools_tls[4] = {
	{ .size = sizeof(tools_tls) }, { .call = (fn)not_here },
	{ .call = (fn)not_here }, { .call = (fn)not_here },
};

static const union word storage[4] = {
	{ .call = (fn)cls_put }, { .call = (fn)cls_remove },
	{ .call = (fn)cls_get }, { .call = (fn)not_here },
};

static const union word checks[4] = {
	{ .size = sizeof(checks) }, { .call = (fn)not_here },
	{ .call = (fn)check_ctx }, { .call = (fn)check_process },
};

static const union word proof[3] = {
	{ .size = sizeof(proof) }, { .call = (fn)no_proof },
	{ .call = (fn)not_here },
};

static const struct {
	unsigned char id[16];
	const union word *table;
} tables[] = {
	{ { 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9,
	    0x39, 0x12, 0xfd, 0x9d, 0xf9 }, runtime },
	{ { 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08,
	    0x00, 0x20, 0x0c, 0x0a, 0x66 }, tools },
	{ { 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6,
	    0xe7, 0x8a, 0x3a, 0xec, 0xdc }, tools_tls },
	{ { 0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68,
	    0xf3, 0x55, 0xd8, 0x95, 0x93 }, storage },
	{ { 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb,
	    0xd5, 0x00, 0x6d, 0xfa, 0x7e }, checks },
	{ { 0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba,
	    0x12, 0x3c, 0x66, 0xe1, 0xf2 }, proof },
};

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (!memcmp(id->bytes, tables[i].id, sizeof(tables[i].id))) {
			*table = tables[i].table;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}
