// SPDX-License-Identifier: MIT
/*
 * The library on a fake driver: memory of another GPU.
 * Each test runs in a process of its own.
 */
#include "unit.h"

/* ---- peer access ---- */

static void t_peers(void)
{
	struct fake_config cfg = one;
	CUcontext first, second;
	unsigned char in[100], out[100];
	unsigned int jobs;
	CUdeviceptr a, b;
	int can = 0;

	cfg.gpus = 2;
	cfg.coherent = true;
	first = start(&cfg);
	pattern(in, sizeof(in), 1);
	OK(cuMemAlloc_v2(&a, 4096));
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemAlloc_v2(&b, 4096));
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can == 1);
	OK(cuDeviceGetP2PAttribute(&can, 2, 0, 1));
	CHECK(can == 1);
	IS(cuCtxEnablePeerAccess(second, 0),
	   CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);	/* itself */
	IS(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(first, 0));
	IS(cuCtxEnablePeerAccess(first, 0),
	   CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuMemcpyHtoD_v2(b, in, 100));
	jobs = fake_calls(FAKE_SUBMIT);
	OK(cuMemcpyDtoD_v2(a, b, 100));
	CHECK(fake_calls(FAKE_SUBMIT) == jobs + 1);	/* one engine does all */
	OK(cuMemcpyDtoH_v2(out, a, 100));
	CHECK(!memcmp(in, out, 100));
	OK(cuMemsetD8_v2(a, 8, 100));
	OK(cuMemcpyDtoD_v2(b, a, 100));
	/* Both on the other one, and from the other one to the host */
	OK(cuMemcpyDtoD_v2(a + 200, a, 100));
	OK(cuMemcpyDtoH_v2(out, a + 200, 100));
	CHECK(out[0] == 8 && out[99] == 8);
	OK(cuMemcpyDtoH_v2(out, b, 100));
	CHECK(out[0] == 8 && out[99] == 8);
	OK(cuCtxDisablePeerAccess(first));
	IS(cuCtxDisablePeerAccess(first), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	/* Without access each engine stays in its own memory */
	jobs = fake_calls(FAKE_SUBMIT);
	OK(cuMemcpyDtoD_v2(a, b, 100));
	CHECK(fake_calls(FAKE_SUBMIT) == jobs + 2);
	OK(cuCtxDestroy_v2(second));
	end(first);
}

static void t_no_peers(void)
{
	struct fake_config cfg = one;
	CUcontext first, second;
	int can = 1;

	cfg.gpus = 2;
	first = start(&cfg);
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can == 0);
	IS(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	OK(cuCtxDestroy_v2(second));
	end(first);
}

/* ---- memory by hand of another GPU ---- */

static const CUmemAllocationProp far_prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
};

static const CUmemAccessDesc far_all[2] = {
	{ { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
	{ { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
};

struct far {
	CUcontext ctx;			/* of the first GPU, and there is no other */
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;			/* 2 MiB of the second one */
	unsigned char in[100], out[100];
};

static struct far far(bool coherent)
{
	struct fake_config cfg = one;
	struct far f;

	cfg.gpus = 2;
	cfg.coherent = coherent;
	f.ctx = start(&cfg);
	pattern(f.in, sizeof(f.in), 5);
	memset(f.out, 0, sizeof(f.out));
	OK(cuMemCreate(&f.h, 2 * MiB, &far_prop, 0));
	OK(cuMemAddressReserve(&f.p, 2 * MiB, 0, 0, 0));
	OK(cuMemMap(f.p, 2 * MiB, 0, f.h, 0));
	return f;
}

static void far_end(struct far *f)
{
	OK(cuMemUnmap(f->p, 2 * MiB));
	OK(cuMemRelease(f->h));
	OK(cuMemAddressFree(f->p, 2 * MiB));
	end(f->ctx);
}

static unsigned long long far_access(CUdevice dev, CUdeviceptr p)
{
	CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, dev };
	unsigned long long flags = 77;

	OK(cuMemGetAccess(&flags, &where, p));
	return flags;
}

/* Both GPUs have access, and the program a context on the other one only */
static void t_vmm_no_context(void)
{
	struct far f = far(true);
	CUcontext second;

	OK(cuMemSetAccess(f.p, 2 * MiB, far_all, 2));
	OK(cuMemcpyHtoD_v2(f.p + 7, f.in, 100));
	CHECK(!memcmp(fake_vram(1) + 7, f.in, 100));
	OK(cuMemsetD8_v2(f.p + 17, 3, 10));
	OK(cuMemcpyDtoH_v2(f.out, f.p + 7, 100));
	CHECK(f.out[9] == f.in[9] && f.out[10] == 3 && f.out[19] == 3 &&
	      f.out[20] == f.in[20]);
	/* Contexts come and go */
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemsetD8_v2(f.p, 4, 1));
	OK(cuCtxDestroy_v2(second));
	OK(cuMemcpyDtoH_v2(f.out, f.p, 1));
	CHECK(f.out[0] == 4);
	/* A reset is noticed as elsewhere */
	fake_reset(1);
	IS(cuMemsetD8_v2(f.p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	far_end(&f);
}

/* The library's own context is no handle, whatever once was at its address */
static void t_vmm_home(void)
{
	struct far f = far(true);
	unsigned int flags;
	CUcontext home;

	OK(cuMemSetAccess(f.p, 2 * MiB, far_all, 2));
	OK(cuMemsetD8_v2(f.p, 4, 1));
	home = LIST_FIRST(&drv.devices[1].contexts);
	CHECK(home);
	IS(cuCtxGetApiVersion(home, &flags), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxSetCurrent(home), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuCtxDestroy_v2(home), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemcpyDtoH_v2(f.out, f.p, 1));
	CHECK(f.out[0] == 4);
	far_end(&f);
}

/* Without a window no GPU reaches another one's memory: said, and not later */
static void t_vmm_no_peer(void)
{
	struct far f = far(false);

	IS(cuMemSetAccess(f.p, 2 * MiB, &far_all[1], 1),
	   CUDA_ERROR_INVALID_DEVICE);
	IS(cuMemSetAccess(f.p, 2 * MiB, far_all, 2), CUDA_ERROR_INVALID_DEVICE);
	CHECK(far_access(0, f.p) == 0 && far_access(1, f.p) == 0);
	IS(cuMemsetD8_v2(f.p, 1, 1), INVALID);
	far_end(&f);
}

/* Map, then access for the own GPU only: what programs do with a peer's buffer */
static void t_vmm_peer(void)
{
	struct far f = far(true);
	CUmemAccessDesc desc = far_all[1];
	unsigned int jobs;
	CUdeviceptr own;

	OK(cuMemAlloc_v2(&own, 4096));
	OK(cuMemSetAccess(f.p, 2 * MiB, &desc, 1));
	CHECK(far_access(0, f.p) == 3 && far_access(1, f.p) == 0);
	OK(cuMemcpyHtoD_v2(f.p, f.in, 100));
	CHECK(!memcmp(fake_vram(1), f.in, 100));
	OK(cuMemsetD8_v2(f.p + 100, 3, 10));
	OK(cuMemcpyDtoH_v2(f.out, f.p + 10, 100));
	CHECK(!memcmp(f.out, f.in + 10, 90) && f.out[90] == 3);
	jobs = fake_calls(FAKE_SUBMIT);
	OK(cuMemcpyDtoD_v2(own, f.p, 100));
	OK(cuMemcpyDtoD_v2(f.p + 200, own, 100));
	CHECK(fake_calls(FAKE_SUBMIT) == jobs + 2);	/* one engine each */
	CHECK(!memcmp(fake_vram(1) + 200, f.in, 100));
	/* Reading is no right to write */
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	OK(cuMemSetAccess(f.p, 2 * MiB, &desc, 1));
	CHECK(far_access(0, f.p) == 1);
	OK(cuMemcpyDtoD_v2(own, f.p, 100));
	IS(cuMemcpyDtoD_v2(f.p, own, 100), INVALID);
	IS(cuMemcpyHtoD_v2(f.p, f.in, 100), INVALID);
	IS(cuMemsetD8_v2(f.p, 1, 1), INVALID);
	/* Whatever the memory's own GPU may: the right given here is the one */
	OK(cuMemSetAccess(f.p, 2 * MiB, &far_all[0], 1));
	CHECK(far_access(0, f.p) == 1 && far_access(1, f.p) == 3);
	OK(cuMemcpyDtoD_v2(own, f.p, 100));
	IS(cuMemcpyDtoD_v2(f.p, own, 100), INVALID);
	IS(cuMemcpyHtoD_v2(f.p, f.in, 100), INVALID);
	IS(cuMemsetD8_v2(f.p, 1, 1), INVALID);
	OK(cuMemSetAccess(f.p, 2 * MiB, (CUmemAccessDesc[]){ {
		{ CU_MEM_LOCATION_TYPE_DEVICE, 1 },
		CU_MEM_ACCESS_FLAGS_PROT_NONE } }, 1));
	/* And none is none */
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemSetAccess(f.p, 2 * MiB, &desc, 1));
	IS(cuMemcpyDtoH_v2(f.out, f.p, 100), INVALID);
	OK(cuMemFree_v2(own));
	far_end(&f);
}

/* ---- memory of another process on another GPU ---- */

struct theirs {
	CUcontext ctx;			/* of the first GPU, and current */
	CUcontext maker;		/* of the second one */
	CUdeviceptr made, rest;
	CUipcMemHandle handle;
	struct keeper other;
};

static struct theirs theirs(bool coherent)
{
	struct fake_config cfg = one;
	struct theirs t;

	cfg.gpus = 2;
	cfg.coherent = coherent;
	t.ctx = start(&cfg);
	OK(cuCtxCreate_v2(&t.maker, 0, 1));
	t.other = keep_memory(&t.made, &t.handle, 2, &t.rest);
	OK(cuCtxPopCurrent_v2(NULL));
	return t;
}

/* The engine of the context's own GPU reaches it, with no context on the other one */
static void t_ipc_far(void)
{
	struct theirs t = theirs(true);
	unsigned char in[100], out[100];
	CUdeviceptr p = 0, q = 0, own;
	unsigned int jobs;
	CUcontext holder;
	int dev = -1;

	pattern(in, sizeof(in), 7);
	OK(cuMemAlloc_v2(&own, 4096));
	OK(cuIpcOpenMemHandle_v2(&p, t.handle, 1));
	OK(cuIpcOpenMemHandle_v2(&q, t.handle, 1));
	CHECK(p && p == q && p != t.made);
	OK(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	CHECK(dev == 0);
	OK(cuPointerGetAttribute(&holder, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CHECK(holder == t.ctx);
	/* Peer access is of this memory alone */
	IS(cuCtxDisablePeerAccess(t.maker), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	/* It is whole, and all of it, when its maker has nothing any more */
	OK(cuMemFree_v2(t.rest));
	OK(cuCtxDestroy_v2(t.maker));
	OK(cuMemcpyHtoD_v2(p, in, 100));
	CHECK(memmem(fake_vram(1), 64 * MiB, in, 100));
	CHECK(!memmem(fake_vram(0), 64 * MiB, in, 100));
	jobs = fake_calls(FAKE_SUBMIT);
	OK(cuMemcpyDtoD_v2(own, p, 100));
	CHECK(fake_calls(FAKE_SUBMIT) == jobs + 1);	/* one engine does all */
	OK(cuMemcpyDtoH_v2(out, own, 100));
	CHECK(!memcmp(in, out, 100));
	OK(cuMemsetD8_v2(own, 3, 50));
	OK(cuMemcpyDtoD_v2(p + 4 * MiB - 50, own, 50));
	OK(cuMemcpyHtoD_v2(p + 100, in, 100));
	OK(cuMemsetD8_v2(p + 150, 4, 10));
	OK(cuMemcpyDtoH_v2(out, p + 100, 100));
	CHECK(!memcmp(in, out, 50) && out[50] == 4 && out[59] == 4 &&
	      !memcmp(in + 60, out + 60, 40));
	OK(cuMemcpyDtoH_v2(out, p + 4 * MiB - 50, 50));
	CHECK(out[0] == 3 && out[49] == 3);
	IS(cuMemcpyDtoH_v2(out, p + 4 * MiB - 50, 51), INVALID);
	OK(cuIpcCloseMemHandle(p));
	OK(cuMemsetD8_v2(p, 1, 1));
	OK(cuIpcCloseMemHandle(p));
	IS(cuIpcCloseMemHandle(p), INVALID);
	IS(cuMemsetD8_v2(p, 1, 1), INVALID);
	CHECK(!drv.devices[1].nr_users && !drv.devices[1].file);
	let_go(&t.other);
	OK(cuMemFree_v2(own));
	end(t.ctx);
}

/* Ends when the context that is @arg is being destroyed */
static void until_destroyed(void *arg)
{
	CUcontext ctx = arg;

	for (int i = 0; i < 60000 && !atomic_load(&ctx->destroyed); i++)
		usleep(1000);
	CHECK(atomic_load(&ctx->destroyed));
}

/*
 * The context that it is open in goes, with work of the other GPU to come: that was
 * asked for, so it is done before.
 */
static void t_ipc_far_end(void)
{
	struct theirs t = theirs(true);
	unsigned char in[100], *vram, *first;
	CUdeviceptr p, own;

	pattern(in, sizeof(in), 9);
	OK(cuIpcOpenMemHandle_v2(&p, t.handle, 1));
	OK(cuCtxPushCurrent_v2(t.maker));
	OK(cuMemAlloc_v2(&own, 4096));
	OK(cuMemcpyHtoD_v2(own, in, 100));
	OK(cuLaunchHostFunc(NULL, until_destroyed, t.ctx));
	OK(cuMemcpyDtoDAsync_v2(p + 1000, own, 100, NULL));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuCtxDestroy_v2(t.ctx));
	OK(cuCtxPushCurrent_v2(t.maker));
	vram = (unsigned char *)fake_vram(1);
	first = memmem(vram, 64 * MiB, in, 100);
	CHECK(first && memmem(first + 1, 64 * MiB - (size_t)(first + 1 - vram),
			      in, 100));
	OK(cuStreamSynchronize(NULL));
	IS(cuMemsetD8_v2(p, 1, 1), INVALID);
	let_go(&t.other);
	end(t.maker);
}

/* Which cannot be is said at once, and leaves nothing */
static void t_ipc_far_refused(void)
{
	struct theirs t = theirs(false);
	unsigned int users = drv.devices[1].nr_users;
	struct drv_name name;
	CUdeviceptr p;

	IS(cuIpcOpenMemHandle_v2(&p, t.handle, 1),
	   CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	memcpy(&name, &t.handle, sizeof(name));
	name.device += 0x10000;		/* nobody's */
	memcpy(&t.handle, &name, sizeof(name));
	IS(cuIpcOpenMemHandle_v2(&p, t.handle, 1), CUDA_ERROR_NOT_SUPPORTED);
	CHECK(drv.devices[1].nr_users == users);
	let_go(&t.other);
	OK(cuCtxDestroy_v2(t.maker));
	end(t.ctx);
}

static void t_ipc_far_failure(void)
{
	struct theirs t = theirs(true);
	unsigned int users = drv.devices[1].nr_users;
	CUdeviceptr p;

	fake_fail(FAKE_IMPORT, 1, EINVAL);
	IS(cuIpcOpenMemHandle_v2(&p, t.handle, 1), INVALID);
	fake_fail(FAKE_MMAP, 1, ENOMEM);
	IS(cuIpcOpenMemHandle_v2(&p, t.handle, 1), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(drv.devices[1].nr_users == users);
	OK(cuIpcOpenMemHandle_v2(&p, t.handle, 1));
	CHECK(drv.devices[1].nr_users > users);
	fake_reset(1);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuIpcCloseMemHandle(p));
	CHECK(drv.devices[1].nr_users == users);
	let_go(&t.other);
	OK(cuCtxDestroy_v2(t.maker));
	end(t.ctx);
}

static const struct unit_test tests[] = {
	{ "peer access", t_peers },
	{ "no peer access without a window", t_no_peers },
	{ "memory by hand, no context on its GPU", t_vmm_no_context },
	{ "memory by hand, the library's own context", t_vmm_home },
	{ "memory by hand, no peers", t_vmm_no_peer },
	{ "memory by hand of a peer", t_vmm_peer },
	{ "memory of another process and GPU", t_ipc_far },
	{ "memory of another process and GPU, its context ends", t_ipc_far_end },
	{ "memory of another process and GPU, refused", t_ipc_far_refused },
	{ "memory of another process and GPU, failures", t_ipc_far_failure },
};

UNIT_MAIN(tests)
