// SPDX-License-Identifier: MIT
/* libcuda.so.1, whoever provides it: found at run time, never linked. */
#include "../core/load.h"
#include "internal.h"

struct cu cu;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

bool cu_load(char *err, size_t size)
{
	static const struct load_function functions[] = {
#define PLN_X(required, name, symbol) { &cu.name, #symbol, NULL, required },
		CU_FUNCTIONS(PLN_X)
#undef PLN_X
	};
	static bool there;	/* the library, with its functions */
	bool ok;
	int r;

	pthread_mutex_lock(&load_lock);
	if (cu.loaded)
		goto out;
	if (!there)
		there = !load_library("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL,
				      functions, LOAD_COUNT(functions), err,
				      size);
	if (!there)
		goto out;
	r = cu.Init(0);
	if (r) {
		snprintf(err, size, "cuInit: %s", cu_name(r));
		goto out;
	}
	cu.async = cu.HtoDAsync && cu.DtoHAsync && cu.StreamCreate &&
		   cu.StreamDestroy && cu.StreamSync && cu.EventCreate &&
		   cu.EventDestroy && cu.EventRecord && cu.EventSync;
	cu.loaded = true;
out:
	ok = cu.loaded;
	pthread_mutex_unlock(&load_lock);
	return ok;
}

const char *cu_name(int result)
{
	const char *name = NULL;

	if (cu.GetErrorName && !cu.GetErrorName(result, &name) && name)
		return name;
	return "a CUDA error without a name";
}

bool cu_lives(CUcontext ctx, unsigned long long id)
{
	unsigned long long now = 0;

	return cu.CtxGetId && !cu.CtxGetId(ctx, &now) && now == id;
}

bool cu_pci_address(int gpu, char *buf, size_t size)
{
	char said[32];
	CUdevice dev;
	char *p;

	if (!cu.DeviceGetPCIBusId || cu.DeviceGet(&dev, gpu) ||
	    cu.DeviceGetPCIBusId(said, sizeof(said), dev))
		return false;
	for (p = said; *p; p++)
		if (*p >= 'A' && *p <= 'F')
			*p += 'a' - 'A';
	/* NVIDIA's driver may write eight digits of the domain */
	snprintf(buf, size, "%s", strlen(said) == 16 ? said + 4 : said);
	return true;
}

/* The context in which memory without one of its own is copied. */
static int primary_of(int gpu, CUcontext *ctx)
{
	static CUcontext kept[64];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUdevice dev;
	int r = 0;

	if (gpu < 0 || gpu >= 64)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!kept[gpu]) {
		r = cu.DeviceGet(&dev, gpu);
		if (!r)
			r = cu.PrimaryRetain(&kept[gpu], dev);
	}
	*ctx = kept[gpu];
	pthread_mutex_unlock(&lock);
	return r;
}

/*
 * What this thread learnt last: no other memory will ever have the same id, nor a
 * context that.
 */
static __thread struct mem latest;

static bool remembered(uint64_t ptr)
{
	unsigned long long id = 0, ctx_id = 0;

	return latest.buffer_id && ptr - latest.start < latest.len &&
	       !cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr) &&
	       id == latest.buffer_id && cu.CtxGetId &&
	       !cu.CtxGetId(latest.ctx, &ctx_id) && ctx_id == latest.ctx_id;
}

static int ask(uint64_t ptr, struct mem *mem)
{
	unsigned int type = 0, managed = 0;
	unsigned long long id = 0;
	CUdeviceptr start = 0, map_start = 0;
	CUcontext ctx = NULL;
	size_t len = 0, map_len = 0;
	int gpu = -1, r;
	CUpointer_attribute attr[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
		CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
	};
	void *out[] = { &type, &ctx, &gpu, &managed, &start, &len, &id,
			&map_start, &map_len };
	const unsigned int n = sizeof(attr) / sizeof(attr[0]);

	memset(mem, 0, sizeof(*mem));
	if (!cu.PointerGetAttributes ||
	    cu.PointerGetAttributes(n, attr, out, ptr)) {
		unsigned int i;

		type = 0;
		r = cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr);
		if (r == CUDA_ERROR_INVALID_VALUE)
			return 0;	/* memory that CUDA has not heard of */
		if (r)
			return r;
		for (i = 1; i < n; i++)
			cu.PointerGetAttribute(out[i], attr[i], ptr);
	}
	if (!type)
		return 0;
	mem->known = true;
	if (type == CU_MEMORYTYPE_HOST && !managed)
		return 0;
	mem->kind = managed ? MEM_MANAGED : MEM_DEVICE;
	mem->gpu = gpu;
	mem->start = start;
	mem->len = len;
	/*
	 * The range of a reserved address is all that was reserved; what is mapped
	 * there is one piece of it.  Of memory that was allocated it is the other
	 * way round: several allocations may lie in one mapping.
	 */
	if (len && map_start <= ptr && ptr - map_start < map_len) {
		uint64_t end = min_of(start + len, map_start + map_len);

		mem->start = start > map_start ? start : map_start;
		mem->len = end - mem->start;
	}
	mem->buffer_id = id;
	mem->ctx = ctx;
	if (!ctx) {
		r = primary_of(gpu < 0 ? 0 : gpu, &mem->ctx);
		if (r)
			return r;
	}
	if (cu.CtxGetId)
		cu.CtxGetId(mem->ctx, &mem->ctx_id);
	return 0;
}

int mem_of(uint64_t ptr, struct mem *mem)
{
	int r;

	if (remembered(ptr)) {
		*mem = latest;
		return 0;
	}
	r = ask(ptr, mem);
	latest = *mem;
	if (r || mem->kind != MEM_DEVICE)
		latest.buffer_id = 0;
	return r;
}

bool mem_freed(uint64_t ptr, uint64_t buffer_id)
{
	unsigned long long id = 0;
	int r = cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr);

	return r == CUDA_ERROR_INVALID_VALUE || (!r && id != buffer_id);
}

size_t mem_extent(const struct mem *mem, uint64_t ptr, size_t want)
{
	struct mem m = *mem;
	uint64_t at = ptr;

	for (;;) {
		if (!m.len)
			return want;	/* CUDA does not tell: trust */
		if (at < m.start || at - m.start >= m.len)
			return at - ptr;
		if (m.len - (at - m.start) >= want - (at - ptr))
			return want;
		at = m.start + m.len;
		/* memory mapped piece by piece goes on in the next one */
		if (mem_of(at, &m) || m.kind == MEM_HOST ||
		    m.gpu != mem->gpu)
			return at - ptr;
	}
}

bool mem_may_grow(uint64_t ptr)
{
	int legacy = 1;

	return !cu.PointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, ptr) &&
	       !legacy;
}
