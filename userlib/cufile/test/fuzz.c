// SPDX-License-Identifier: MIT
/*
 * Wrong use of every function of libcufile, on a mock of the CUDA driver: handles
 * and batches that are alive, given up or never were, descriptors of every kind,
 * offsets and sizes that nobody has, from one thread or several, while the library
 * is opened and closed.  It must answer with what cufile.h says, and never end, hang
 * or lose memory; and the files have what was accepted, and nothing else is changed.
 * What is the program's to get right is left out: pointers are to memory that is
 * there, is the GPU's, or cannot be anybody's.
 *
 *	cufile-fuzz DIR [ROUNDS [FIRST SEED]]
 *
 * A seed says all about a round but how its threads meet.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PEERLANE_CUFILE_WITHOUT_CUDA_H
#include "../cufile.h"
#include "mock.h"
#include "test/child.h"
#include <peerlane/file.h>

#define KIB(x)		((size_t)(x) << 10)
#define MIB(x)		((size_t)(x) << 20)
#define CALLS		1200	/* of one round, a process of its own */
#define THREADS		4	/* at the most */
#define FILE_SIZE	MIB(4)
#define GPU_SIZE	(KIB(192) - 8)	/* some bytes of its last page are nobody's */
#define HOST_SIZE	KIB(64)
#define GUARD		MIB(4)	/* of both sides: nobody's */
#define POOL		48
#define MOST		256	/* entries of a batch */

/* ---- what the rounds have ---- */

static const struct setting {
	const char *json;
	bool cache, p2p_refused, module;
	int64_t bar1;
} settings[] = {
	{ NULL, .bar1 = -1 },
	{ "{\"properties\":{\"force_compat_mode\":true}}", .bar1 = -1 },
	{ "{\"peerlane\":{\"window_size_kb\":64}}", .bar1 = (int64_t)KIB(128) },
	{ "{\"properties\":{\"allow_compat_mode\":false}}", .bar1 = 0 },
	{ "{\"properties\":{\"allow_system_memory\":false},\"profile\":"
	  "{\"cufile_stats\":3}}", .p2p_refused = true, .bar1 = -1 },
	{ "{\"peerlane\":{\"strict\":true}}", .p2p_refused = true, .bar1 = -1 },
	{ "{\"properties\":{\"force_compat_mode\":true}}", .cache = true,
	  .bar1 = -1 },
	{ "{\"peerlane\":{\"use_pci_p2pdma\":false}}", .module = true,
	  .bar1 = -1 },
};

static uint64_t seed;
static char dir[200], written[256], kept[256];
static unsigned char *was;		/* what both files were made with */
static _Atomic unsigned char *marks;	/* bytes of the first that a write may have changed */
static _Atomic uint64_t longest;	/* it may be */
static char *gpus[3];			/* the last one was freed */
static char *host;
static _Atomic uintptr_t handles[POOL], batches[POOL];
static uint64_t *written_in_all;	/* bytes, of all rounds */
static _Atomic unsigned int wrong, right;

static struct {
	int fd;
	int want;	/* what registering it answers; 0: it can be had */
} fds[24];
static unsigned int nr_fds;

/* A transfer in a stream: it is used until its result is there */
struct order {
	struct order *next;
	size_t size;
	off_t off, buf_off;
	ssize_t result;
	bool write;
};

struct caller {
	pthread_t thread;
	uint64_t state;
	unsigned int calls;
	bool sane;		/* but for one thing, the call makes sense */
	struct order *orders;
};

static __thread const char *volatile doing;

static void died(int sig)
{
	const char *name = doing ? doing : "?";

	if (write(1, "# in ", 5) == 5 &&
	    write(1, name, strlen(name)) >= 0 && write(1, "\n", 1) == 1)
		fsync(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static uint32_t dice(struct caller *c, uint32_t sides)
{
	c->state = c->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(c->state >> 33) % sides;
}

#define ONE_OF(c, list) ((list)[dice(c, sizeof(list) / sizeof((list)[0]))])

/* ---- arguments ---- */

/* Before its arguments are chosen; what is not sane is so by chance */
static void begin_call(struct caller *c)
{
	c->sane = dice(c, 3);
}

/* One argument of this call is to be odd */
static bool odd(struct caller *c, unsigned int sides)
{
	return !dice(c, c->sane ? 40 : sides);
}

static uintptr_t pooled(struct caller *c, _Atomic uintptr_t *pool)
{
	static const uintptr_t others[] = { 0, 1, 9, 11, UINTPTR_MAX,
					    UINTPTR_MAX - 6, 1ul << 63 };
	uintptr_t v = pool[dice(c, POOL)];

	if (!odd(c, 3))
		return v;
	switch (dice(c, 4)) {
	case 0:
		return ONE_OF(c, others);
	case 1:
		return (uintptr_t)c;
	case 2:
		return v ^ 1ul << dice(c, 64);
	default:	/* a batch for a file, and the other way round */
		return (pool == handles ? batches : handles)[dice(c, POOL)];
	}
}

static CUfileHandle_t handle(struct caller *c)
{
	return (CUfileHandle_t)pooled(c, handles);
}

static CUfileBatchHandle_t batch(struct caller *c)
{
	return (CUfileBatchHandle_t)pooled(c, batches);
}

/* Memory that is there, the GPU's, that was the GPU's, or none */
static void *memory(struct caller *c)
{
	static const uintptr_t none[] = { 0, 1, 4095, 1ul << 47, 1ul << 62,
					  1ul << 63, UINTPTR_MAX - 4095,
					  UINTPTR_MAX };

	if (odd(c, 4))
		return dice(c, 2) ? (void *)ONE_OF(c, none) : gpus[2];
	return dice(c, 4) ? gpus[dice(c, 2)] : host;
}

/* From any such: in it, behind its end, or where nothing can be */
static off_t inside(struct caller *c)
{
	static const off_t some[] = { 0, 0, 0, 0, 1, 511, 512, 4096, 4097,
				      8192, 32768 };
	static const off_t wild[] = { -1, -4096, INT64_MIN, INT64_MAX,
				      INT64_MAX - 4095, 1ll << 47, 1ll << 62,
				      65536 - 1, 65536, GPU_SIZE - 1, GPU_SIZE };

	return odd(c, 4) ? ONE_OF(c, wild) : ONE_OF(c, some);
}

static off_t offset(struct caller *c)
{
	static const off_t some[] = { 1, 511, 4095, FILE_SIZE - 4096,
				      FILE_SIZE - 1, FILE_SIZE, FILE_SIZE + 7 };
	static const off_t wild[] = { -1, -4096, INT64_MIN, INT64_MAX,
				      INT64_MAX - 4095, 1ll << 32, 1ll << 43,
				      1ll << 62 };

	if (odd(c, 4))
		return dice(c, 2) ? ONE_OF(c, some) : ONE_OF(c, wild);
	return (off_t)dice(c, FILE_SIZE / 512) * 512;
}

static size_t size(struct caller *c)
{
	static const size_t some[] = { 0, 1, 2, 511, 512, 513, 4095, 4096, 4096,
				       4097, 8192, 12288 };
	static const size_t wild[] = { GPU_SIZE, GPU_SIZE + 1, 65537, 1ul << 31,
				       1ul << 40, SSIZE_MAX, (size_t)SSIZE_MAX + 1,
				       SIZE_MAX, SIZE_MAX - 4095 };

	return odd(c, 4) ? ONE_OF(c, wild) : ONE_OF(c, some);
}

static unsigned int number(struct caller *c)
{
	static const unsigned int some[] = { 0, 1, 2, 3, 4, 7, 8, 11, 12, 14, 16,
					     64, 128, 255, 256, 257, 4096,
					     INT_MAX, 1u << 31, UINT_MAX };

	return ONE_OF(c, some);
}

/* ---- answers ---- */

static bool is_in(int err, va_list may)
{
	for (int each = va_arg(may, int); each; each = va_arg(may, int))
		if (each == err)
			return true;
	return false;
}

static bool said(const char *name, CUfileError_t r, ...)
{
	bool good = !r.err;
	va_list may;

	va_start(may, r);
	good |= is_in((int)r.err, may);
	va_end(may);
	*(r.err ? &wrong : &right) += 1;
	if (!good || (r.cu_err && r.err != CU_FILE_CUDA_DRIVER_ERROR)) {
		printf("# %s: %d, %d\n", name, r.err, r.cu_err);
		CHECK(!"an answer that cufile.h does not have");
	}
	return !r.err;
}

/* As SAID(cuFileX(a, b), errors...); true when it succeeded */
#define SAID(call, ...) (doing = #call, said(#call, call, ##__VA_ARGS__, 0))
#define OPENS	CU_FILE_DRIVER_NOT_INITIALIZED, CU_FILE_DRIVER_INVALID_PROPS, \
		CU_FILE_PLATFORM_NOT_SUPPORTED

/* Bytes that a write may have changed, in a file of at most 2^63 - 1; no memory has more than GPU_SIZE */
static void mark(off_t off, size_t n)
{
	uint64_t end = (uint64_t)off + n, old = longest;

	if (end > INT64_MAX)
		end = INT64_MAX;

	while (end > old && !atomic_compare_exchange_weak(&longest, &old, end))
		continue;
	for (uint64_t i = (uint64_t)off; i < end && i < FILE_SIZE; i++)
		atomic_store_explicit(&marks[i], 1, memory_order_relaxed);
}

/* Nothing was moved, and nobody can have it otherwise */
static bool is_refusal(ssize_t r, int err)
{
	switch (-r) {
	case 1:
		return err == EBADF;
	case CU_FILE_DRIVER_NOT_INITIALIZED:
	case CU_FILE_HANDLE_NOT_REGISTERED:
	case CU_FILE_INVALID_VALUE:
	case CU_FILE_INVALID_MAPPING_RANGE:
	case CU_FILE_CUDA_MEMORY_TYPE_INVALID:
	case CU_FILE_CUDA_POINTER_RANGE_ERROR:
		return true;
	}
	return false;
}

/* @err: errno, when the result is -1; 0: it is not told */
static void moved(const char *name, ssize_t r, int err, size_t n, off_t off,
		  bool write)
{
	bool good = r >= 0 ? (size_t)r <= n : is_refusal(r, err);

	switch (-r) {
	case 1:
		good |= !err || err == EFBIG || err == ENOSPC || err == EINVAL;
		break;
	case CU_FILE_IO_NOT_SUPPORTED:
	case CU_FILE_CUDA_DRIVER_ERROR:
	case CU_FILE_NOMEM_ERROR:
		good = true;
		break;
	case CU_FILE_CUDA_POINTER_INVALID:
		/* the kernel may have taken what is there, or have made the file longer */
		good = true;
		n = n < HOST_SIZE ? n : HOST_SIZE;
	}
	*(r < 0 ? &wrong : &right) += 1;
	if (!good) {
		printf("# %s: %zd, errno %d, of %zu at %lld\n", name, r, err, n,
		       (long long)off);
		CHECK(!"a result that the manual does not have");
	}
	if (write && r > 0)
		mark(off, (size_t)r);
	else if (write && r < 0 && !is_refusal(r, err) && off >= 0)
		mark(off, n < GPU_SIZE ? n : GPU_SIZE);
}

/* ---- calls ---- */

static void open_or_close(struct caller *c)
{
	CUfileDrvProps_t props;

	switch (dice(c, 12)) {
	case 0:
		SAID(cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
		break;
	case 1:
		SAID(cuFileDriverClose_v2(), CU_FILE_DRIVER_NOT_INITIALIZED);
		break;
	case 2:
	case 3:
		CHECK(cuFileUseCount() >= 0);
		break;
	case 4:
		SAID(cuFileDriverGetProperties(dice(c, 4) ? &props : NULL), OPENS,
		     CU_FILE_INVALID_VALUE);
		break;
	default:
		SAID(cuFileDriverOpen(), OPENS);
	}
}

static void register_handle(struct caller *c)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	unsigned int n = dice(c, nr_fds);
	CUfileHandle_t fh = NULL;
	CUfileError_t r;

	if (!dice(c, 10))
		d.type = (enum CUfileFileHandleType)number(c);
	d.handle.fd = fds[n].fd;
	if (!dice(c, 20)) {
		SAID(cuFileHandleRegister(dice(c, 2) ? &fh : NULL, NULL),
		     CU_FILE_INVALID_VALUE);
		return;
	}
	doing = "cuFileHandleRegister";
	r = cuFileHandleRegister(&fh, &d);
	if (d.type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
		said(doing, r, CU_FILE_INVALID_VALUE, CU_FILE_IO_NOT_SUPPORTED, 0);
	else if (fds[n].want)
		said(doing, r, OPENS, fds[n].want, 0);
	else
		said(doing, r, OPENS, CU_FILE_HANDLE_ALREADY_REGISTERED, 0);
	CHECK(r.err || (fh && d.type == CU_FILE_HANDLE_TYPE_OPAQUE_FD &&
			!fds[n].want));
	if (!r.err)
		handles[dice(c, POOL)] = (uintptr_t)fh;
}

static void deregister_handle(struct caller *c)
{
	doing = "cuFileHandleDeregister";
	cuFileHandleDeregister(handle(c));
}

static void buffer(struct caller *c)
{
	void *base = memory(c);
	size_t n = size(c);

	/* of the host as much as there is: more is the program's mistake */
	if (base == host && n > HOST_SIZE)
		n = HOST_SIZE;
	if (dice(c, 2))
		SAID(cuFileBufRegister(base, n, (int)number(c)), OPENS,
		     CU_FILE_INVALID_VALUE, CU_FILE_CUDA_POINTER_RANGE_ERROR,
		     CU_FILE_MEMORY_ALREADY_REGISTERED);
	else
		SAID(cuFileBufDeregister(base), CU_FILE_INVALID_VALUE,
		     CU_FILE_MEMORY_NOT_REGISTERED,
		     CU_FILE_DRIVER_NOT_INITIALIZED);
}

static void transfer(struct caller *c)
{
	bool write = dice(c, 2);
	CUfileHandle_t fh = handle(c);
	void *base = memory(c);
	off_t off = offset(c), in = inside(c);
	size_t n = size(c);
	ssize_t r;

	doing = write ? "cuFileWrite" : "cuFileRead";
	errno = 4711;
	r = write ? cuFileWrite(fh, base, n, off, in) :
		    cuFileRead(fh, base, n, off, in);
	CHECK(errno == (r >= 0 ? 4711 : r == -1 ? errno : (int)-r));
	moved(doing, r, errno, n, off, write);
}

static void vector(struct caller *c)
{
	unsigned int i, n = dice(c, 6);
	/* exactly as many: reading on is seen */
	CUfileIOVec_t *v = malloc(n * sizeof(*v) + 1);
	unsigned int flags = odd(c, 8) ? number(c) : 0;
	bool write = dice(c, 2);
	CUfileHandle_t fh = handle(c);
	off_t off = offset(c);
	size_t all = 0;
	ssize_t r;

	for (i = 0; i < n; i++) {
		v[i].base = memory(c);
		v[i].len = size(c);
		if (__builtin_add_overflow(all, v[i].len, &all))
			all = SIZE_MAX;
	}
	doing = write ? "cuFileWritev" : "cuFileReadv";
	r = write ? cuFileWritev(fh, dice(c, 20) ? v : NULL, n, off, flags) :
		    cuFileReadv(fh, dice(c, 20) ? v : NULL, n, off, flags);
	moved(doing, r, errno, all, off, write);
	/* What failed of the piece in which it ended may have been written */
	for (i = 0, all = 0; write && r > 0 && i < n; i++) {
		if (all <= (size_t)r && (size_t)r - all < v[i].len) {
			mark(off + (off_t)all, v[i].len < GPU_SIZE ? v[i].len :
						GPU_SIZE);
			break;
		}
		all += v[i].len;
	}
	free(v);
}

static void in_stream(struct caller *c)
{
	static const uintptr_t streams[] = { 0, 16, 4096, UINTPTR_MAX };
	CUstream s = (CUstream)ONE_OF(c, streams);
	struct order *o = calloc(1, sizeof(*o));
	unsigned int absent = dice(c, 60);
	CUfileHandle_t fh = handle(c);
	void *base = memory(c);

	o->next = c->orders;
	c->orders = o;
	*o = (struct order){ .next = o->next, .size = size(c), .off = offset(c),
			     .buf_off = inside(c), .result = -77,
			     .write = dice(c, 2) };
	doing = o->write ? "cuFileWriteAsync" : "cuFileReadAsync";
	said(doing, (o->write ? cuFileWriteAsync : cuFileReadAsync)
		    (fh, base, absent == 0 ? NULL : &o->size,
		     absent == 1 ? NULL : &o->off, absent == 2 ? NULL : &o->buf_off,
		     absent == 3 ? NULL : &o->result, s),
	     CU_FILE_INVALID_VALUE, CU_FILE_HANDLE_NOT_REGISTERED,
	     CU_FILE_DRIVER_NOT_INITIALIZED, CU_FILE_CUDA_DRIVER_ERROR, 0);
	if (dice(c, 2))
		return;
	if (dice(c, 2))
		SAID(cuFileStreamRegister(s, dice(c, 4) ? dice(c, 16) : number(c)),
		     OPENS, CU_FILE_INVALID_VALUE);
	else
		SAID(cuFileStreamDeregister(s), CU_FILE_INVALID_VALUE,
		     CU_FILE_DRIVER_NOT_INITIALIZED);
}

static void submit(struct caller *c)
{
	unsigned int i, n = dice(c, dice(c, 3) ? 4 : 12);
	unsigned int nr = odd(c, 20) ? number(c) : n;
	CUfileBatchHandle_t b = batch(c);
	CUfileIOParams_t *p;

	/* More than a batch can have is refused before anybody looks */
	if (nr <= MOST)
		n = nr;
	p = malloc(n * sizeof(*p) + 1);
	for (i = 0; i < n; i++) {
		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = handle(c),
			.opcode = dice(c, 2) ? CUFILE_WRITE : CUFILE_READ,
			.cookie = &p[i],
			.u.batch = { memory(c), offset(c), inside(c), size(c) },
		};
		if (odd(c, 20))
			p[i].mode = (CUfileBatchMode_t)number(c);
		if (odd(c, 20))
			p[i].opcode = (CUfileOpcode_t)number(c);
	}
	if (SAID(cuFileBatchIOSubmit(b, nr, dice(c, 30) ? p : NULL,
				     dice(c, 4) ? 0 : number(c)),
		 CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR)) {
		CHECK(nr && nr <= n);
		for (i = 0; i < nr && i < n; i++)
			if (p[i].opcode == CUFILE_WRITE)
				mark(p[i].u.batch.file_offset,
				     p[i].u.batch.size < GPU_SIZE ?
					     p[i].u.batch.size : GPU_SIZE);
	}
	free(p);
}

static void events(struct caller *c)
{
	static const struct timespec some[] = {
		{ 0, 0 }, { 0, 1000 }, { 0, 1000000 }, { 0, 1000000000 },
		{ 0, -1 }, { -1, 0 }, { INT64_MAX, 0 }, { INT64_MAX, 999999999 },
	};
	struct timespec t = ONE_OF(c, some);
	CUfileIOEvents_t *e = calloc(MOST, sizeof(*e));
	unsigned int nr = number(c), most = nr, i;
	CUfileBatchHandle_t b = batch(c);

	if (SAID(cuFileBatchIOGetStatus(b, dice(c, 2) ? 0 : number(c),
					dice(c, 30) ? &nr : NULL,
					dice(c, 30) ? e : NULL,
					dice(c, 3) ? &t : NULL),
		 CU_FILE_INVALID_VALUE, CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR)) {
		CHECK(nr <= most && nr <= MOST);
		for (i = 0; i < nr && i < MOST; i++) {
			ssize_t r = (ssize_t)e[i].ret;

			CHECK((e[i].status == CUFILE_COMPLETE && r >= 0) ||
			      (e[i].status == CUFILE_CANCELED && !r) ||
			      (e[i].status == CUFILE_FAILED && r < 0));
		}
	}
	free(e);
}

static void of_batches(struct caller *c)
{
	CUfileBatchHandle_t b = NULL;

	switch (dice(c, 10)) {
	case 0:
	case 1:
		if (SAID(cuFileBatchIOSetUp(dice(c, 20) ? &b : NULL, number(c)),
			 OPENS, CU_FILE_INVALID_VALUE))
			batches[dice(c, POOL)] = (uintptr_t)b;
		break;
	case 2:
		SAID(cuFileBatchIOCancel(batch(c)));
		break;
	case 3:
		doing = "cuFileBatchIODestroy";
		cuFileBatchIODestroy(batch(c));
		break;
	case 4: case 5: case 6:
		events(c);
		break;
	default:
		submit(c);
	}
}

#define ANY(c, type) ((type)(dice(c, 4) ? dice(c, 13) : number(c)))
#define SETTABLE CU_FILE_INVALID_VALUE, CU_FILE_DRIVER_ALREADY_OPEN, \
		 CU_FILE_DRIVER_NOT_INITIALIZED
#define TOLD	CU_FILE_INVALID_VALUE, CU_FILE_DRIVER_INVALID_PROPS, \
		CU_FILE_DRIVER_NOT_INITIALIZED

static void slabs(struct caller *c)
{
	unsigned int i, n = dice(c, 9);
	int len = dice(c, 8) ? (int)n : (int)number(c);
	size_t *kb, *count;

	if (len > 0 && len <= 8)
		n = (unsigned int)len;
	/* exactly as many */
	kb = malloc(n * sizeof(*kb) + 1);
	count = malloc(n * sizeof(*count) + 1);
	for (i = 0; i < n; i++) {
		kb[i] = dice(c, 8) ? 1 + dice(c, 64) : size(c);
		count[i] = dice(c, 8) ? 1 + dice(c, 4) : size(c);
	}
	/* one in place of both: as many as one has */
	switch (dice(c, 4)) {
	case 0:
		SAID(cuFileSetParameterPosixPoolSlabArray(kb, dice(c, 9) ? count :
							  NULL, len), SETTABLE);
		break;
	case 1:
		SAID(cuFileGetParameterPosixPoolSlabArray(dice(c, 9) ? kb : NULL,
							  count, len), TOLD);
		break;
	case 2:
		SAID(cuFileSetParameterGpuBounceBufferSlabArray(kb, dice(c, 9) ?
					count : NULL, len), SETTABLE);
		break;
	default:
		SAID(cuFileGetParameterGpuBounceBufferSlabArray(dice(c, 9) ? kb :
					NULL, count, len), TOLD);
	}
	free(kb);
	free(count);
}

static void parameters(struct caller *c)
{
	static const char *const texts[] = { "", "error", "OFF", "9", "\xff\xfe",
					     "no such level", NULL };
	size_t n, *low = malloc(sizeof(*low)), *high = malloc(sizeof(*high));
	bool *flag = malloc(sizeof(*flag));
	int len = dice(c, 3) ? (int)dice(c, 300) : -(int)dice(c, 3);
	char *text = malloc(len > 0 ? (size_t)len : 1), *path;
	static char longer[400];

	switch (dice(c, 8)) {
	case 0:
		SAID(cuFileGetParameterSizeT(ANY(c, CUFileSizeTConfigParameter_t),
					     dice(c, 9) ? low : NULL), TOLD);
		break;
	case 1:
		SAID(cuFileGetParameterBool(ANY(c, CUFileBoolConfigParameter_t),
					    dice(c, 9) ? flag : NULL), TOLD);
		break;
	case 2:
		if (SAID(cuFileGetParameterString((CUFileStringConfigParameter_t)
						  dice(c, 4),
						  dice(c, 9) ? text : NULL, len),
			 TOLD))
			CHECK(len > 0 && memchr(text, 0, (size_t)len));
		break;
	case 3:
		SAID(cuFileSetParameterSizeT(ANY(c, CUFileSizeTConfigParameter_t),
					     dice(c, 2) ? number(c) : size(c)),
		     SETTABLE, CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
		break;
	case 4:
		/* a mode that refuses all would leave nothing to try */
		SAID(cuFileSetParameterBool((CUFileBoolConfigParameter_t)
					    (dice(c, 3) ? 3 + dice(c, 3) : 12 + number(c) / 2),
					    dice(c, 2)), SETTABLE);
		break;
	case 5:
		memset(longer, 'a', sizeof(longer) - 1);
		path = dice(c, 4) ? (char *)ONE_OF(c, texts) : longer;
		SAID(cuFileSetParameterString((CUFileStringConfigParameter_t)
					      (dice(c, 4) ? 0 : number(c) | 3),
					      path), SETTABLE);
		break;
	case 6:
		if (SAID(cuFileGetParameterMinMaxValue(
				ANY(c, CUFileSizeTConfigParameter_t),
				dice(c, 9) ? low : NULL, dice(c, 9) ? high : NULL),
			 CU_FILE_INVALID_VALUE))
			CHECK(*low <= *high);
		break;
	default:
		n = dice(c, 2) ? dice(c, 400) * 4 : size(c);
		switch (dice(c, 4)) {
		case 0:
			SAID(cuFileDriverSetPollMode(dice(c, 2), n),
			     CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
			break;
		case 1:
			SAID(cuFileDriverSetMaxDirectIOSize(n),
			     CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
			break;
		case 2:
			SAID(cuFileDriverSetMaxCacheSize(n),
			     CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
			break;
		default:
			SAID(cuFileDriverSetMaxPinnedMemSize(n),
			     CU_FILE_DRIVER_UNSUPPORTED_LIMIT);
		}
	}
	free(low);
	free(high);
	free(flag);
	free(text);
}

/* Structures of the exact size, so that writing on is seen */
static void statistics(struct caller *c)
{
	void *p = malloc(dice(c, 2) ? sizeof(CUfileStatsLevel3_t) :
				      sizeof(CUfileStatsLevel1_t));
	bool large, null = !dice(c, 9);
	int *level = malloc(sizeof(*level));

	free(p);
	switch (dice(c, 9)) {
	case 0:
		SAID(cuFileSetStatsLevel((int)dice(c, 6) - 1),
		     CU_FILE_INVALID_VALUE);
		break;
	case 1:
		if (SAID(cuFileGetStatsLevel(null ? NULL : level),
			 CU_FILE_INVALID_VALUE))
			CHECK(*level >= 0 && *level <= 3);
		break;
	case 2:
		SAID(cuFileStatsStart(), CU_FILE_DRIVER_NOT_INITIALIZED,
		     CU_FILE_INVALID_VALUE);
		break;
	case 3:
		SAID(cuFileStatsStop(), CU_FILE_DRIVER_NOT_INITIALIZED);
		break;
	case 4:
		SAID(cuFileStatsReset(), CU_FILE_DRIVER_NOT_INITIALIZED);
		break;
	case 5:
		p = malloc(sizeof(CUfileStatsLevel1_t));
		SAID(cuFileGetStatsL1(null ? NULL : p), CU_FILE_INVALID_VALUE,
		     CU_FILE_DRIVER_NOT_INITIALIZED);
		free(p);
		break;
	case 6:
		large = dice(c, 2);
		p = malloc(large ? sizeof(CUfileStatsLevel3_t) :
				   sizeof(CUfileStatsLevel2_t));
		if (large)
			SAID(cuFileGetStatsL3(null ? NULL : p),
			     CU_FILE_INVALID_VALUE,
			     CU_FILE_DRIVER_NOT_INITIALIZED);
		else
			SAID(cuFileGetStatsL2(null ? NULL : p),
			     CU_FILE_INVALID_VALUE,
			     CU_FILE_DRIVER_NOT_INITIALIZED);
		free(p);
		break;
	case 7: {
		size_t size = dice(c, 4096);
		char *text = malloc(size + 1);
		int r;

		text[size] = 0x5a;
		doing = "pln_file_stats_json";
		r = pln_file_stats_json(dice(c, 3) ? handle(c) : NULL, null ? NULL : text, size);
		CHECK(r > 0 || r == -EINVAL || r == -EBADF);
		CHECK(text[size] == 0x5a);
		CHECK(r <= 0 || null || !size || memchr(text, 0, size));
		free(text);
		break;
	}
	default: {
		static const uint32_t rooms[] = { 0, 4, 64,
			sizeof(struct pln_file_stats) - 8,
			sizeof(struct pln_file_stats),
			sizeof(struct pln_file_stats) + 64 };
		uint32_t room = ONE_OF(c, rooms);
		struct pln_file_stats *s = calloc(1, room < 4 ? 4 : room);
		int r;

		memcpy(s, &room, sizeof(room));
		doing = "pln_file_stats";
		r = pln_file_stats(dice(c, 3) ? handle(c) : NULL,
				   null ? NULL : s);
		CHECK(!r || r == -EINVAL || r == -EBADF);
		CHECK(r || room >= sizeof(*s) - 8);
		free(s);
	}
	}
	free(level);
}

static void others(struct caller *c)
{
	CUfileP2PFlags_t flags;
	char name[PATH_MAX + 100];
	const char *const names[] = { NULL, "", dir, "/dev/full", "/nonexistent/topology", name };
	size_t kb;
	int version;

	switch (dice(c, 6)) {
	case 0:
		SAID(cuFileGetVersion(dice(c, 4) ? &version : NULL),
		     CU_FILE_INVALID_VALUE);
		break;
	case 1:
		SAID(cuFileDriverSetP2PFlags(ANY(c, CUfileDriverStatusFlags_t),
					     (CUfileP2PFlags_t)dice(c, 5)),
		     CU_FILE_INVALID_VALUE);
		break;
	case 2:
		SAID(cuFileDriverGetP2PFlags(ANY(c, CUfileDriverStatusFlags_t),
					     dice(c, 9) ? &flags : NULL),
		     CU_FILE_INVALID_VALUE);
		break;
	case 3:
		SAID(cuFileGetBARSizeInKB((int)number(c), dice(c, 9) ? &kb : NULL),
		     OPENS, CU_FILE_INVALID_VALUE, CU_FILE_DEVICE_NOT_FOUND);
		break;
	case 4:
		/* a name that is none, one that cannot be written, too long a one, and one of its own */
		snprintf(name, sizeof(name), "%s/topology%0*d", dir,
			 dice(c, 4) ? 1 : PATH_MAX, 0);
		SAID(cuFileExportPCIeTopology(ONE_OF(c, names)),
		     CU_FILE_INVALID_VALUE, CU_FILE_IO_ERROR,
		     access("/sys/bus/pci", F_OK) ? CU_FILE_INTERNAL_ERROR : 0);
		break;
	default:
		CHECK(pln_path_name(number(c)));
	}
}

static void *call_all(void *arg)
{
	static void (*const steps[])(struct caller *c) = {
		open_or_close, register_handle, register_handle, register_handle,
		deregister_handle, buffer, transfer, transfer, transfer, transfer,
		transfer, vector, vector, in_stream, in_stream, of_batches,
		of_batches, of_batches, of_batches, parameters, slabs, statistics,
		statistics, others,
	};
	struct caller *c = arg;

	for (unsigned int i = 0; i < c->calls; i++) {
		begin_call(c);
		ONE_OF(c, steps)(c);
	}
	return NULL;
}

/* ---- rounds ---- */

static void have(int fd, int want)
{
	fds[nr_fds].fd = fd;
	fds[nr_fds++].want = want;
}

static int must_open(const char *name, int flags)
{
	int fd = open(name, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		abort();
	return fd;
}

/* Files of the test's own bytes, and descriptors of all kinds */
static void make_files(void)
{
	char gone[256];
	int pair[2], fd, i;
	struct iovec v = { was, FILE_SIZE };

	snprintf(gone, sizeof(gone), "%s/gone", dir);
	for (i = 0; i < 2; i++) {
		fd = must_open(i ? kept : written, O_RDWR | O_CREAT | O_TRUNC);
		if (pwritev(fd, &v, 1, 0) != FILE_SIZE || fsync(fd))
			abort();
		close(fd);
	}
	have(must_open(written, O_RDWR), 0);
	have(must_open(written, O_RDWR | O_DIRECT), 0);
	have(must_open(written, O_RDWR | O_DSYNC), 0);
	have(must_open(written, O_RDONLY), 0);
	have(must_open(written, O_WRONLY), 0);
	have(must_open(kept, O_RDONLY), 0);
	have(must_open(kept, O_RDONLY | O_DIRECT), 0);
	have(must_open(gone, O_RDWR | O_CREAT), 0);
	unlink(gone);
	have(memfd_create("file", MFD_CLOEXEC), 0);
	have(must_open(written, O_RDWR | O_APPEND), CU_FILE_INVALID_FILE_OPEN_FLAG);
	have(must_open(written, O_RDWR | O_NONBLOCK), CU_FILE_INVALID_FILE_OPEN_FLAG);
	have(must_open(kept, O_PATH), CU_FILE_INVALID_FILE_OPEN_FLAG);
	have(must_open(dir, O_RDONLY), CU_FILE_INVALID_FILE_TYPE);
	have(must_open(dir, O_PATH), CU_FILE_INVALID_FILE_TYPE);
	have(must_open("/dev/null", O_RDWR), CU_FILE_INVALID_FILE_TYPE);
	have(must_open("/dev/zero", O_RDONLY), CU_FILE_INVALID_FILE_TYPE);
	have(eventfd(0, EFD_CLOEXEC), CU_FILE_INVALID_FILE_TYPE);
	if (pipe2(pair, O_CLOEXEC))
		abort();
	have(pair[0], CU_FILE_INVALID_FILE_TYPE);
	have(pair[1], CU_FILE_INVALID_FILE_TYPE);
	have(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
	     CU_FILE_INVALID_FILE_TYPE);
	/* Of nobody: the library may open the lowest that are free */
	have(-1, CU_FILE_INVALID_VALUE);
	have(INT_MIN, CU_FILE_INVALID_VALUE);
	have(INT_MAX, CU_FILE_INVALID_VALUE);
}

static void make_memory(void)
{
	unsigned long long p;
	char *area;
	int i;

	area = mmap(NULL, 2 * GUARD + HOST_SIZE, PROT_NONE, MAP_PRIVATE |
		    MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	host = area + GUARD;
	if (area == MAP_FAILED ||
	    mprotect(host, HOST_SIZE, PROT_READ | PROT_WRITE))
		abort();
#ifdef __SANITIZE_THREAD__
	void AnnotateBenignRaceSized(const char *file, int line,
				     const volatile void *at, size_t len,
				     const char *what);

	AnnotateBenignRaceSized(__FILE__, __LINE__, host, HOST_SIZE,
				"of the program that calls");
#endif
	for (i = 0; i < 3; i++) {
		if (cuMemAlloc_v2(&p, GPU_SIZE))
			abort();
		gpus[i] = (char *)(uintptr_t)p;
		memset(mock_memory(p), 0xa0 + i, GPU_SIZE);
	}
	cuMemFree_v2((uintptr_t)gpus[2]);
}

static void use(const struct setting *s)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/cufile.json", dir);
	unsetenv("CUFILE_ENV_PATH_JSON");
	if (s->json) {
		fd = must_open(name, O_WRONLY | O_CREAT | O_TRUNC);
		if (write(fd, s->json, strlen(s->json)) < 0)
			abort();
		close(fd);
		setenv("CUFILE_ENV_PATH_JSON", name, 1);
	}
	setenv("PEERLANE_PAGE_CACHE", s->cache ? "1" : "0", 1);
	mock_reset();
	mock.bar1_size = s->bar1;
	mock.p2p_errno = s->p2p_refused ? EREMOTEIO : 0;
	mock.module = s->module;
}

/* The one has what was accepted, the other is as it was */
static void check_files(void)
{
	unsigned char *now = malloc(FILE_SIZE);
	struct iovec v = { now, FILE_SIZE };
	size_t i, left = 0;
	struct stat st;
	int fd;

	fd = must_open(kept, O_RDONLY);
	CHECK(!fstat(fd, &st) && st.st_size == FILE_SIZE);
	CHECK(preadv(fd, &v, 1, 0) == FILE_SIZE && !memcmp(now, was, FILE_SIZE));
	close(fd);
	fd = must_open(written, O_RDONLY);
	CHECK(!fstat(fd, &st));
	if (st.st_size < (off_t)FILE_SIZE || st.st_size > (off_t)longest)
		printf("# it has %lld bytes, and should have at most %llu\n",
		       (long long)st.st_size, (unsigned long long)longest);
	CHECK(st.st_size >= (off_t)FILE_SIZE && st.st_size <= (off_t)longest);
	CHECK(preadv(fd, &v, 1, 0) == FILE_SIZE);
	for (i = 0; i < FILE_SIZE; i++) {
		left += !marks[i];
		if (marks[i] || now[i] == was[i])
			continue;
		printf("# byte %zu of the file was changed\n", i);
		CHECK(!"only accepted writes change the file");
		break;
	}
	*written_in_all += FILE_SIZE - left;
	close(fd);
	free(now);
}

/* Some opens, handles and batches to begin with, of which some are given up later */
static void begin(void)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileBatchHandle_t b = NULL;
	CUfileHandle_t fh;
	unsigned int i, k;

	for (i = 0; i < 3; i++)
		OK(cuFileDriverOpen().err);
	for (i = k = 0; i < nr_fds; i++) {
		d.handle.fd = fds[i].fd;
		if (fds[i].want)
			continue;
		OK(cuFileHandleRegister(&fh, &d).err);
		handles[k++] = (uintptr_t)fh;
	}
	/* in other places the same ones, but for some */
	for (i = k; i < POOL - 8; i++)
		handles[i] = handles[i % k];
	for (i = 0; i < POOL - 8; i++) {
		if (i < 6)
			OK(cuFileBatchIOSetUp(&b, 4u << i).err);
		batches[i] = i < 6 ? (uintptr_t)b : batches[i % 6];
	}
}

static void end(struct caller *c)
{
	struct order *o;

	while ((o = c->orders)) {
		c->orders = o->next;
		/* -77: it was refused; 0: or lost with the library's end */
		if (o->result != -77)
			moved("in a stream", o->result, 0, o->size, o->off,
			      o->write);
		free(o);
	}
}

static void round_of_calls(void)
{
	unsigned int i, n = seed / 8 % 2 ? THREADS : 1;
	struct caller c[THREADS] = { 0 };

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	signal(SIGSEGV, died);
	signal(SIGABRT, died);
#endif
#ifdef __SANITIZE_THREAD__
	/* It calls no handler while a thread waits for a lock: the alarm itself ends it. */
	(void)died;
#else
	signal(SIGALRM, died);
#endif
	was = malloc(FILE_SIZE);
	marks = calloc(FILE_SIZE, 1);
	for (i = 0; i < FILE_SIZE; i++)
		was[i] = (unsigned char)((i * 2654435761u >> 13) + seed);
	longest = FILE_SIZE;
	use(&settings[seed % (sizeof(settings) / sizeof(settings[0]))]);
	make_files();
	make_memory();
	begin();
	for (i = 0; i < n; i++) {
		c[i].state = seed * 2654435761u + 99 + i;
		c[i].calls = CALLS / n;
		if (i && pthread_create(&c[i].thread, NULL, call_all, &c[i]))
			abort();
	}
	call_all(&c[0]);
	for (i = 1; i < n; i++)
		pthread_join(c[i].thread, NULL);
	doing = "the last close";
	while (cuFileUseCount())
		cuFileDriverClose();
	mock_settle();
	for (i = 0; i < n; i++)
		end(&c[i]);
	check_files();
	/* A round in which all is refused, or nothing, tests little */
	CHECK(wrong > CALLS / 8 && right > CALLS / 8);
	for (i = 0; i < nr_fds; i++)
		close(fds[i].fd);
	free(was);
	free((void *)marks);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 16;
	char log[256];

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: cufile-fuzz DIR [ROUNDS [FIRST SEED]]\n");
		return 2;
	}
	seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;
	snprintf(dir, sizeof(dir), "%s", argv[1]);
	snprintf(written, sizeof(written), "%s/written", dir);
	snprintf(kept, sizeof(kept), "%s/kept", dir);
	snprintf(log, sizeof(log), "%s/log", dir);
	written_in_all = mmap(NULL, sizeof(*written_in_all), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (written_in_all == MAP_FAILED)
		return 2;
	setenv("CUFILE_LOGFILE_PATH", log, 1);
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	for (unsigned long i = 0; i < rounds; i++, seed++)
		ktap(!in_child(round_of_calls), "seed %lu", (unsigned long)seed);
	/* else it shows little */
	ktap(*written_in_all > 0 && *written_in_all < rounds * FILE_SIZE / 2,
	     "less than half of the files was to be written: %llu bytes",
	     (unsigned long long)*written_in_all);
	return ktap_end();
}
