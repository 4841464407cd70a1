// SPDX-License-Identifier: MIT
/*
 * Wrong use of every function: arguments from a pool of what is alive, what
 * is destroyed and what never was, in any place of the same sort.  The library
 * must answer with an error of CUDA, and never end, hang or lose memory.  What
 * CUDA leaves undefined is left out: pointers that results are written to are
 * good or NULL.
 *
 *	cuda_fuzz [ROUNDS [FIRST SEED]]
 *
 * A seed says all about a round: the calls, whether there is a coherent window,
 * whether jobs wait, and whether one thread calls or several do; only how the
 * threads meet is not in it.
 */
#include <search.h>
#include <signal.h>
#include <sys/mman.h>

#include "peerlane/cuda_ext.h"
#include "unit.h"
#include "yield.h"

#define CALLS		1500	/* of one round, a process of its own */
#define THREADS		4	/* at the most */
#define SCRATCH		(256 * KiB)

typedef long (*any_fn)(long, long, long, long, long, long, long, long, long,
		       long, long);

/*
 * Sorts: C S E P G M L K handle of a context, stream, event, pool, memory, module,
 * library, kernel, mostly; d address, z size, i number, s name, m device code, l place,
 * f function of the program, p good pointer to zeros or to anything, b size of
 * what is there
 */
static const struct {
	const char *name;
	any_fn fn;
	const char *sorts;
} functions[] = {
#define EXT(name, sorts) { #name, (any_fn)(void (*)(void))name, sorts },
#define PLN_F(name, suffix, since, alias, sorts, ...) EXT(name##suffix, sorts)
#include "../cuda_proto.h"
	EXT(plnMemCrc32c, "dzp")
	EXT(plnMemCompare, "ddzp")
	EXT(plnMemAdd, "ddzi")
};

#define NR_FUNCTIONS	(sizeof(functions) / sizeof(functions[0]))

/*
 * What the library gives back is never used again for anything else: a copy to
 * a pointer of before must find nothing there, and not the memory of this test.
 */
int __wrap_munmap(void *addr, size_t len);

int __wrap_munmap(void *addr, size_t len)
{
	return mmap(addr, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
		    MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED ? -1 : 0;
}

/* Of one thread that calls */
static __thread uint64_t state;
static __thread unsigned char *scratch;
static __thread struct things {
	uint64_t handles[64], addresses[64];
	char kinds[64];
	unsigned int nr_handles, nr_addresses;
} mine;
/* What all of them use; as it was before they began */
static struct things common;
static __thread const char *volatile doing;

static uint32_t dice(uint32_t sides)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % sides;
}

static void handle(char kind, const void *h)
{
	mine.kinds[mine.nr_handles % 64] = kind;
	mine.handles[mine.nr_handles++ % 64] = (uintptr_t)h;
}

static void address(uint64_t a)
{
	mine.addresses[mine.nr_addresses++ % 64] = a;
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
	/* Where a call fails, what was in the stack is not for the library to write to */
	CUmemoryPool pool = NULL;
	CUmemGenericAllocationHandle mem = 0;
	CUcontext ctx = NULL;
	CUstream s = NULL;
	CUevent e = NULL;
	CUdeviceptr p = 0;
	CUmodule m = NULL;
	CUlibrary l = NULL;
	CUkernel k = NULL;
	CUfunction f = NULL;
	void *host = NULL;

	mine.nr_handles = mine.nr_addresses = 0;
	for (int alive = 0; alive < 2; alive++) {
		cuCtxCreate_v2(&ctx, 0, (CUdevice)dice(2));
		handle('C', ctx);
		cuStreamCreate(&s, dice(2));
		handle('S', s);
		cuEventCreate(&e, dice(2) ? 0 : CU_EVENT_INTERPROCESS |
						CU_EVENT_DISABLE_TIMING);
		cuEventRecord(e, s);
		handle('E', e);
		cuMemAlloc_v2(&p, dice(2) ? 5000 : 3 * MiB);
		address(p);
		address(p + 4000);
		cuMemAllocManaged(&p, 9000, CU_MEM_ATTACH_GLOBAL);
		address(p);
		cuMemPoolCreate(&pool, &pool_props);
		handle('P', pool);
		cuMemAllocFromPoolAsync(&p, 7000, pool, NULL);
		address(p);
		cuMemAllocHost_v2(&host, 70000);
		address((uintptr_t)host);
		cuModuleLoadData(&m, ptx);
		handle('M', m);
		cuModuleGetFunction(&f, m, "k");
		handle('K', f);
		cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0);
		handle('L', l);
		cuLibraryGetKernel(&k, l, "k");
		handle('K', k);
		cuMemCreate(&mem, 2 * MiB, &prop, 0);
		handle('G', (void *)(uintptr_t)mem);
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
	handle(0, NULL);
	handle('S', CU_STREAM_LEGACY);
	handle('S', CU_STREAM_PER_THREAD);
	handle(0, (void *)-1l);
	handle(0, &state);
	address(0);
	address(1);
	address(~0ull);
	address((uintptr_t)scratch);
	address(1ull << 63);
}

static void of_the_program(void)
{
}

/* In two of three cases of the kind that belongs there, alive or dead */
static uint64_t pick_handle(char kind)
{
	const struct things *t = dice(2) ? &common : &mine;
	bool any = !dice(3);
	unsigned int n;

	do {
		n = dice(t->nr_handles);
	} while (!any && t->kinds[n] != kind);
	return t->handles[n];
}

static uint64_t pick_address(void)
{
	const struct things *t = dice(2) ? &common : &mine;

	return t->addresses[dice(t->nr_addresses)];
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
	static const char images[][64] = {	/* whole headers */
		"", "x", ".version 7.0\n.entry k(){}", "/* open", "\x7f" "ELF",
		"\x50\xed\x55\xba", "\xb1\x43\x62\x46", "\x7f",
	};

	switch (sort) {
	case 'd':
		return (long)(pick_address() + (dice(4) ? 0 : dice(5000)));
	case 'z':
		return (long)sizes[dice(sizeof(sizes) / sizeof(sizes[0]))];
	case 's':
		return dice(10) ? (long)names[dice(9)] : 0;
	case 'm':
		return dice(10) ? (long)images[dice(8)] : 0;
	case 'b':
		return 1l << dice(13) >> 1;
	case 'l':
		return (long)((uint64_t)pick('i') << 32 | (uint32_t)pick('i'));
	case 'f':
		return dice(4) ? (long)(uintptr_t)of_the_program : 0;
	case 'p':
		return dice(8) ? (long)(scratch + 4096 * dice(16)) : 0;
	case 'C': case 'S': case 'E': case 'P':
	case 'G': case 'M': case 'L': case 'K':
		return (long)pick_handle(sort);
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
			uint64_t v = (uint64_t)pick("CPGdzii"[dice(7)]);

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

	if (dice(2) || cuIpcGetMemHandle(&u.mem, pick_address()))
		memset(&u, (int)dice(256), sizeof(u));
	u.word[dice(16)] ^= 1u << dice(32);
	doing = "by_value";
	(dice(2) ? cuIpcOpenMemHandle : cuIpcOpenMemHandle_v2)(&p, u.mem, 1);
	cuIpcOpenEventHandle(&e, u.event);
}

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
static unsigned char *all_scratch;
static pthread_barrier_t together;

struct caller {
	pthread_t thread;
	unsigned int number, calls;
	unsigned int wrong, right;
};

/* In a thread's life before its calls */
static void begin(unsigned int number)
{
	state = seed * 2654435761u + 99 + number;
	scratch = all_scratch + number * 2 * SCRATCH;
	world();
}

static void *call_all(void *arg)
{
	struct caller *c = arg;
	const char *name;

	begin(c->number);
	for (unsigned int i = 0; i < c->calls; i++) {
		unsigned int n = dice(NR_FUNCTIONS);
		long a[11] = { 0 };
		const char *sorts;
		CUresult err;

		/* All at once, and every second time the same function */
		pthread_barrier_wait(&together);
		if (i % 2)
			n = (unsigned int)(seed * 31 + i * 7919) % NR_FUNCTIONS;
		sorts = functions[n].sorts;
		if (!sorts) {
			by_value();
			continue;
		}

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
		*(err ? &c->wrong : &c->right) += 1;
	}
	return NULL;
}

/* Of the tree of chunks: is the context at @data the library's own for one? */
static void see_home(const void *node, VISIT which, void *data)
{
	const struct drv_chunk *chunk = *(struct drv_chunk *const *)node;
	CUcontext *ctx = data;

	if ((which == preorder || which == leaf) && chunk->home == *ctx)
		*ctx = NULL;
}

/* It ends with the memory that it is for */
static bool is_home(CUcontext ctx)
{
	twalk_r(drv.chunks, see_home, &ctx);
	return !ctx;
}

/* All contexts: what is lost then, only a counter that is wrong still holds */
static void end_all(void)
{
	CUcontext ctx, next;

	memset(&mine, 0, sizeof(mine));
	memset(&common, 0, sizeof(common));
	for (int dev = 0; dev < 2; dev++) {
		OK(cuDevicePrimaryCtxReset_v2(dev));
		for (ctx = LIST_FIRST(&drv.devices[dev].contexts); ctx; ctx = next) {
			next = LIST_NEXT(ctx, link);
			if (!is_home(ctx))
				OK(cuCtxDestroy_v2(ctx));
		}
	}
	while (!cuCtxPopCurrent_v2(NULL))
		;
	CHECK(fake_jobs() == 0);
}

static void round_of_calls(void)
{
	struct fake_config cfg = {
		.gpus = 2, .vram = 64 * MiB, .queues = 4, .dmabuf = true,
		.coherent = seed % 2, .manual = seed / 2 % 2,
	};
	unsigned int n = seed / 4 % 2 ? THREADS : 1;
	unsigned int wrong = 0, right = 0;
	struct caller c[THREADS] = { 0 };

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	signal(SIGSEGV, died);
	signal(SIGABRT, died);
#endif
	signal(SIGALRM, died);
	fake_setup(&cfg);
	OK(cuInit(0));
	yield_every = n > 1 ? 15 : 0;
	pthread_barrier_init(&together, NULL, n);
	begin(THREADS);
	common = mine;
	for (unsigned int i = 0; i < n; i++) {
		c[i].number = i;
		c[i].calls = CALLS / n;
		if (i)
			CHECK(!pthread_create(&c[i].thread, NULL, call_all,
					      &c[i]));
	}
	call_all(&c[0]);
	for (unsigned int i = 0; i < n; i++) {
		if (i)
			pthread_join(c[i].thread, NULL);
		wrong += c[i].wrong;
		right += c[i].right;
	}
	/* A round in which all is refused, or nothing, tests little */
	CHECK(wrong > CALLS / 4 && right > CALLS / 20);
	end_all();
}

/* Is every function called?  Those without sorts: by_value() calls three */
static void t_all(void)
{
	unsigned int others = 0;

	for (size_t i = 0; i < NR_FUNCTIONS; i++)
		others += !functions[i].sorts;
	CHECK(others == 3);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 16;

	seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	/* What lies behind each is out of reach, whatever size a call is given */
	all_scratch = mmap(NULL, (THREADS + 1) * 2 * SCRATCH, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all_scratch == MAP_FAILED)
		return 2;
	for (int i = 0; i <= THREADS; i++)
		if (mprotect(all_scratch + i * 2 * SCRATCH, SCRATCH,
			     PROT_READ | PROT_WRITE))
			return 2;
	ktap(!in_child(t_all), "every function is called");
	for (unsigned long i = 0; i < rounds; i++, seed++)
		ktap(!in_child(round_of_calls), "seed %lu",
		     (unsigned long)seed);
	return ktap_end();
}
