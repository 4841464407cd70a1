// SPDX-License-Identifier: MIT
/*
 * Wrong use of every function: arguments from a pool of what is alive, what
 * is destroyed and what never was, in any place of the same sort.  The library
 * must answer with an error of CUDA, and never end or hang.  What CUDA leaves
 * undefined is left out: pointers that results are written to are good or NULL.
 *
 *	cuda_fuzz [ROUNDS [FIRST SEED]]
 */
#include <signal.h>
#include <sys/mman.h>

#include "unit.h"

#define CALLS		1500	/* of one round, a process of its own */
#define SCRATCH		(256 * KiB)

typedef long (*any_fn)(long, long, long, long, long, long, long, long, long,
		       long, long);

/*
 * Sorts: h handle, d address, z size, i number, s name, m device code, p good
 * pointer to zeros or to anything
 */
static const struct {
	const char *name;
	any_fn fn;
	const char *sorts;
} functions[] = {
#define F(name, sorts) { #name, (any_fn)(void (*)(void))name, sorts },
#include "cuda_fuzz.inc"
#undef F
};

#define NR_FUNCTIONS	(sizeof(functions) / sizeof(functions[0]))

static uint64_t state;

static uint32_t dice(uint32_t sides)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % sides;
}

static unsigned char *scratch;
static uint64_t handles[64], addresses[64];
static unsigned int nr_handles, nr_addresses;

static void handle(const void *h)
{
	handles[nr_handles++ % 64] = (uintptr_t)h;
}

static void address(uint64_t a)
{
	addresses[nr_addresses++ % 64] = a;
}

/* Something of each kind, alive and dead */
static void world(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_50\n"
				  ".entry k()\n{\nret;\n}\n";
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = 1,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = { prop.location, 3 };
	CUmemPoolProps pool_props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemoryPool pool;
	CUmemGenericAllocationHandle mem;
	CUcontext ctx;
	CUstream s;
	CUevent e;
	CUdeviceptr p;
	CUmodule m;
	CUlibrary l;
	CUkernel k;
	CUfunction f;
	void *host;

	nr_handles = nr_addresses = 0;
	for (int alive = 0; alive < 2; alive++) {
		cuCtxCreate_v2(&ctx, 0, (CUdevice)dice(2));
		handle(ctx);
		cuStreamCreate(&s, dice(2));
		handle(s);
		cuEventCreate(&e, dice(2) ? 0 : CU_EVENT_INTERPROCESS |
						CU_EVENT_DISABLE_TIMING);
		cuEventRecord(e, s);
		handle(e);
		cuMemAlloc_v2(&p, dice(2) ? 5000 : 3 * MiB);
		address(p);
		address(p + 4000);
		cuMemAllocManaged(&p, 9000, CU_MEM_ATTACH_GLOBAL);
		address(p);
		cuMemPoolCreate(&pool, &pool_props);
		handle(pool);
		cuMemAllocFromPoolAsync(&p, 7000, pool, NULL);
		address(p);
		cuMemAllocHost_v2(&host, 70000);
		address((uintptr_t)host);
		cuModuleLoadData(&m, ptx);
		handle(m);
		cuModuleGetFunction(&f, m, "k");
		handle(f);
		cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
		handle(l);
		cuLibraryGetKernel(&k, l, "k");
		handle(k);
		cuMemCreate(&mem, 2 * MiB, &prop, 0);
		handle((void *)(uintptr_t)mem);
		cuMemAddressReserve(&p, 4 * MiB, 0, 0, 0);
		address(p);
		address(p + 2 * MiB);
		cuMemMap(p, 2 * MiB, 0, mem, 0);
		cuMemSetAccess(p, 2 * MiB, &access, 1);
		if (!alive) {
			cuMemUnmap(p, 2 * MiB);
			cuMemAddressFree(p, 4 * MiB);
			cuMemRelease(mem);
			cuLibraryUnload(l);
			cuMemFreeAsync(p, NULL);
			cuMemPoolDestroy(pool);
			cuCtxDestroy_v2(ctx);
		}
	}
	handle(NULL);
	handle(CU_STREAM_LEGACY);
	handle(CU_STREAM_PER_THREAD);
	handle((void *)-1l);
	handle(&state);
	address(0);
	address(1);
	address(~0ull);
	address((uintptr_t)scratch);
	address(1ull << 63);
}

static long pick(char sort)
{
	static const uint64_t sizes[] = { 0, 1, 3, 64, 4096, 5000, 65536,
					  2 * MiB, 4 * MiB, 1ull << 40,
					  ~0ull, 1ull << 63 };
	static const long numbers[] = { 0, 1, 2, 3, 4, 7, 8, 11, 14, 64, 255,
					1000, 12000, -1, 0x7fffffff };
	static const char * const names[] = {
		"", "k", "cuInit", "0000:03:01.0", "nothing", "/dev/null",
		"/dev/zero", "/nonexistent", "\xff\xfe",
	};
	static const char * const images[] = {
		"", "x", ".version 7.0\n.entry k(){}", "/* open", "\x7f" "ELF",
		"\x50\xed\x55\xba", "\xb1\x43\x62\x46", "\x7f",
	};

	switch (sort) {
	case 'h':
		return (long)handles[dice(nr_handles)];
	case 'd':
		return (long)(addresses[dice(nr_addresses)] +
			      (dice(4) ? 0 : dice(5000)));
	case 'z':
		return (long)sizes[dice(sizeof(sizes) / sizeof(sizes[0]))];
	case 's':
		return dice(10) ? (long)names[dice(9)] : 0;
	case 'm':
		return dice(10) ? (long)images[dice(8)] : 0;
	case 'p':
		return dice(8) ? (long)(scratch + 4096 * dice(16)) : 0;
	default:
		return numbers[dice(sizeof(numbers) / sizeof(numbers[0]))];
	}
}

/* Structures with something in them, as good as the pool */
static void fill_scratch(void)
{
	memset(scratch, 0, 64 * KiB);
	if (dice(2))
		return;
	for (unsigned int page = 0; page < 16; page++) {
		unsigned char *p = scratch + 4096 * page;

		for (unsigned int i = 0; i < 16; i++) {
			uint64_t v = (uint64_t)pick("hdzii"[dice(5)]);

			memcpy(p + 8 * i, &v, 8);
		}
	}
}

/* These take pointers to pointers, which are the program's to get right */
static bool wants_zeros(const char *name)
{
	return strstr(name, "Attributes") || strstr(name, "CtxCreate_v");
}

static void by_value(void)
{
	union {
		CUipcMemHandle mem;
		CUipcEventHandle event;
		uint32_t word[16];
	} u;
	CUdeviceptr p;
	CUevent e;

	if (dice(2) || cuIpcGetMemHandle(&u.mem, addresses[dice(nr_addresses)]))
		memset(&u, (int)dice(256), sizeof(u));
	u.word[dice(16)] ^= 1u << dice(32);
	cuIpcOpenMemHandle_v2(&p, u.mem, 1);
	cuIpcOpenEventHandle(&e, u.event);
}

bool failed;

static const char *volatile doing;

static void died(int sig)
{
	const char *name = doing ? doing : "?";

	if (write(1, "# in ", 5) == 5 &&
	    write(1, name, strlen(name)) >= 0 && write(1, "\n", 1) == 1)
		fsync(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static uint64_t seed;

static void round_of_calls(void)
{
	struct fake_config cfg = {
		.gpus = 2, .vram = 64 * MiB, .queues = 4, .dmabuf = true,
		.coherent = seed % 2, .manual = seed / 2 % 2,
	};
	static unsigned int wrong, right;
	const char *name;

	state = seed * 2654435761u + 99;
	if (!freopen("/dev/null", "w", stderr))
		return;
#ifndef __SANITIZE_ADDRESS__
	signal(SIGSEGV, died);
	signal(SIGABRT, died);
#endif
	signal(SIGALRM, died);
	fake_setup(&cfg);
	OK(cuInit(0));
	world();
	for (int i = 0; i < CALLS && !failed; i++) {
		unsigned int n = dice(NR_FUNCTIONS);
		const char *sorts = functions[n].sorts;
		long a[11] = { 0 };
		CUresult err;

		if (i % 100 == 99)
			world();
		if (i % 50 == 0)
			by_value();
		if (wants_zeros(functions[n].name))
			memset(scratch, 0, 64 * KiB);
		else
			fill_scratch();
		for (int k = 0; sorts[k]; k++)
			a[k] = pick(sorts[k]);
		doing = functions[n].name;
		err = (CUresult)functions[n].fn(a[0], a[1], a[2], a[3], a[4],
						a[5], a[6], a[7], a[8], a[9],
						a[10]);
		if (cuGetErrorName(err, &name))
			printf("# %s: %d is no error of CUDA\n",
			       functions[n].name, err);
		CHECK(!cuGetErrorName(err, &name));
		*(err ? &wrong : &right) += 1;
	}
	/* A round in which all is refused, or nothing, tests little */
	CHECK(wrong > CALLS / 4 && right > CALLS / 20);
	/* What is left is given back to the driver by its close */
	_exit(failed);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 12;

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	/* What lies behind it is out of reach, whatever size a call is given */
	scratch = mmap(NULL, 2 * SCRATCH, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (scratch == MAP_FAILED ||
	    mprotect(scratch, SCRATCH, PROT_READ | PROT_WRITE))
		return 2;
	for (unsigned long i = 0; i < rounds; i++, seed++)
		ktap(!in_child(round_of_calls), "seed %lu",
		     (unsigned long)seed);
	return ktap_end();
}
