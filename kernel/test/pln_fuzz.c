// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: random calls by an ordinary user.
 *
 *	pln_fuzz SEED SECONDS FOLDER DISK [GPU-PCI-ADDRESS]
 *
 * FOLDER is of a file system of the drive DISK, for files that the module peerlane
 * reads and writes.
 *
 * Rounds with the seeds SEED, SEED + 1, ... for so many seconds, at least one;
 * "pln_fuzz N 0" is the round of seed N alone.  A round is two processes of
 * nobody that share an open file, with some threads each.  The seed gives what
 * each step of a thread begins to do, whatever those before came to; it does not
 * give how the threads interleave, nor the handles, descriptors and jobs that
 * there are.  In odd rounds the processes are killed after a number of steps.
 * With an address, that GPU is reset meanwhile, by root.
 *
 * Each call is described: what is valid, what its boundaries are, what it may
 * answer.  An argument that the driver must refuse must be refused, and an
 * operation that the driver took must not be refused by the device.  Memory that
 * is given out is zero.  A file that nobody has open to write stays as it is.
 */
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <linux/dma-buf.h>
#include <linux/userfaultfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <linux/peerlane.h>

#include "pln_ring.h"
#include "pln_test.h"

#define NOBODY		65534
#define PROCESSES	2
#define THREADS		3
#define CALLS		400	/* of a thread in a round */
#define PAGE		4096u

#define FDS		24
#define HANDLES		24
#define JOBS		24
#define ARENA		(16 * MIB)
#define TARGETS		20
#define REGISTERED	6
#define FILE_SIZE	MIB
#define DEVICE_ROOM	MIB	/* for a mapping of what a handle names */

/* What all threads of all processes count; shared memory */
enum { QUERY, ALLOC, FREE, EXPORT, SUBMIT, WAIT, IMPORT, PARTS,
       MODULE, REGISTER, UNREGISTER, CHECK, IO, NR_CALLS };

static const char * const call_names[NR_CALLS] = {
	"query", "alloc", "free", "export", "submit", "wait", "import",
	"export-parts", "module query", "register", "unregister", "check", "io",
};

static const unsigned long call_numbers[NR_CALLS] = {
	PLN_GPU_IOC_QUERY, PLN_GPU_IOC_ALLOC, PLN_GPU_IOC_FREE,
	PLN_GPU_IOC_EXPORT, PLN_GPU_IOC_SUBMIT, PLN_GPU_IOC_WAIT,
	PLN_GPU_IOC_IMPORT, PLN_GPU_IOC_EXPORT_PARTS, PLN_IOC_QUERY,
	PLN_IOC_REGISTER, PLN_IOC_UNREGISTER, PLN_IOC_CHECK, PLN_IOC_IO,
};

/* What a call may answer, 0 ends the list; in resets EIO, too */
static const int call_errnos[NR_CALLS][14] = {
	[QUERY] = { EFAULT, EINVAL },
	[ALLOC] = { EFAULT, EINVAL, ENOMEM },
	[FREE] = { EFAULT, EINVAL, ENOENT },
	[EXPORT] = { EFAULT, EINVAL, ENOENT, EMFILE },
	[SUBMIT] = { EFAULT, EINVAL, ENOENT, EAGAIN, ENOMEM, EINTR },
	[WAIT] = { EFAULT, EINVAL, ENOENT, ETIMEDOUT, EINTR },
	[IMPORT] = { EFAULT, EINVAL, ENOENT, EBADF, EACCES, EXDEV },
	[PARTS] = { EFAULT, EINVAL, ENOENT, EMFILE },
	[MODULE] = { EFAULT, EINVAL },
	[REGISTER] = { EFAULT, EINVAL, ENOMEM, EDQUOT },
	[UNREGISTER] = { EFAULT, EINVAL, ENOENT, EPERM },
	[CHECK] = { EFAULT, EINVAL, EBADF, EOPNOTSUPP },
	[IO] = { EFAULT, EINVAL, EBADF, ENOENT, ERANGE, EOPNOTSUPP, EIDRM,
		 EFBIG, ENOSPC, EINTR, EIO },
};

static struct counts {
	atomic_ulong done[NR_CALLS], refused[NR_CALLS], jobs, windows, wrong;
	atomic_ulong steps;	/* of all rounds */
	atomic_ulong fresh;	/* new memory that was compared with zeros */
	atomic_ulong late;	/* pages that came late */
	atomic_ulong moved;	/* bytes, between files and GPU memory */
	atomic_ulong commands;	/* of io_uring that succeeded */
} *counts;

static atomic_ulong resets_made;

static bool resets;	/* happen meanwhile: memory may be lost */

/* Of one process */
static atomic_int fds[FDS];
static atomic_uint handles[HANDLES];
static atomic_ullong sizes[HANDLES], offsets[HANDLES], job_ids[JOBS];
static int sockets[2], null_fd;
/* Of the module: the file that all share, and the process's own */
static int module_fds[2];
static atomic_uint registered[REGISTERED];
static struct {
	int fd;
	bool is_file;	/* of the drive; the others must be refused */
} targets[TARGETS];
static unsigned int nr_targets;
static const char *folder, *disk;
static char *devices;	/* DEVICE_ROOM for each handle */
static char *arena;	/* all mappings are put here, so a stale address hits no other */
static char *ram;	/* UNIT bytes for data, writable */
static char *read_only, *read_only_alias;	/* a page that calls cannot write */
static char *half;	/* a page, and one behind it that cannot be touched */
static char *scribbled;	/* a page that a thread keeps changing */
static char *late;	/* a page for each thread, that comes when it is touched */
static char *late_src;
static int uffd = -1;
static atomic_bool round_over;

struct fuzzer {
	uint64_t rng;
	unsigned int nr, n;	/* of its process, and in that */
	uint64_t seed;
	bool judge;	/* the argument stays as it was written, and can be read */
	bool readable, writable;
	char arg[256], array[256];
	struct ring ring;
	struct pln_io command;
};

/* Each step has draws of its own, so that none depends on what came of others */
static uint64_t mix(const struct fuzzer *f, unsigned int step)
{
	uint64_t x = ((f->seed * PROCESSES + f->nr) * THREADS + f->n) *
		     (CALLS + 1) + step + 1;

	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	x ^= x >> 32;
	return x ? x : 1;
}

static uint32_t rnd(struct fuzzer *f)
{
	f->rng ^= f->rng << 13;
	f->rng ^= f->rng >> 7;
	f->rng ^= f->rng << 17;
	return f->rng * 0x2545f4914f6cdd1dull >> 32;
}

static uint32_t below(struct fuzzer *f, uint32_t n)
{
	return rnd(f) % n;
}

static bool one_in(struct fuzzer *f, uint32_t n)
{
	return !below(f, n);
}

static void wrong(struct fuzzer *f, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	if (atomic_fetch_add(&counts->wrong, 1) >= 20)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("# seed %llu, thread %u: %s\n", (unsigned long long)f->seed,
	       f->n, text);
	fflush(stdout);
}

/* Numbers near the edges of what sizes and offsets may be */
static uint64_t number(struct fuzzer *f)
{
	static const uint64_t edges[] = {
		0, 1, 4, 8, 511, 512, PAGE - 1, PAGE, PAGE + 1, UNIT - 1, UNIT,
		UNIT + 1, 2 * UNIT, 3 * UNIT, MIB, 256ull * MIB, 1ull << 31,
		1ull << 32, 1ull << 47, 1ull << 62, 1ull << 63,
		-(uint64_t)UNIT, ~0ull,
	};

	switch (below(f, 8)) {
	case 0:
		return (uint64_t)rnd(f) << 32 | rnd(f);
	case 1:
		return edges[below(f, sizeof(edges) / sizeof(*edges))] + rnd(f) % 3 - 1;
	default:
		return edges[below(f, sizeof(edges) / sizeof(*edges))];
	}
}

/* Mostly @good */
static uint64_t maybe(struct fuzzer *f, uint64_t good)
{
	return one_in(f, 20) ? number(f) : good;
}

static uint64_t small_size(struct fuzzer *f)
{
	return (1 + below(f, 8)) * UNIT;
}

/* Memory that may be gone, or become another's */
static __thread sigjmp_buf fault_jump;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault_jump, 1);
}

static bool copy_in(void *to, const void *from, size_t size)
{
	if (sigsetjmp(fault_jump, 1))
		return false;
	memcpy(to, from, size);
	return true;
}

static char *arena_at(struct fuzzer *f, size_t *size)
{
	size_t at = below(f, ARENA / PAGE) * PAGE;

	*size = (1 + below(f, 3 * UNIT / PAGE)) * PAGE;
	if (*size > ARENA - at)
		*size = ARENA - at;
	return arena + at;
}

/* Where the argument of a call lies: mostly at @usual */
static void *place(struct fuzzer *f, char *usual, const void *data, size_t size)
{
	size_t len;
	char *p;

	f->judge = f->readable = f->writable = true;
	if (!one_in(f, 5)) {
		memcpy(usual, data, size);
		return usual;
	}
	f->writable = false;
	switch (below(f, 8)) {
	case 0:
		memcpy(read_only_alias, data, size);
		f->judge = false;	/* another thread's, too */
		return read_only;
	case 1:
		p = half + PAGE - 1 - below(f, size - 1);
		memcpy(p, data, half + PAGE - p);
		f->readable = false;
		return p;
	case 2:
		f->readable = false;
		return half + PAGE + below(f, PAGE - size);
	case 3:
		f->readable = false;
		return (void *)(uintptr_t)(one_in(f, 2) ? 0xffff888000000000 :
					   0x8000000000000000 | rnd(f));
	case 4:
		f->readable = false;
		return (void *)(uintptr_t)below(f, PAGE);
	case 5:
		p = arena_at(f, &len);
		copy_in(p, data, size);
		f->judge = false;
		return p;
	case 6:
		f->judge = false;
		memcpy(scribbled, data, size);
		return scribbled;
	default:
		if (uffd < 0) {
			f->readable = false;
			return NULL;
		}
		p = late + f->n * PAGE;
		madvise(p, PAGE, MADV_DONTNEED);
		memcpy(late_src + f->n * PAGE, data, size);
		f->writable = true;
		return p;
	}
}

static bool may_fail(int call, int err)
{
	const int *e;

	if (resets && err == EIO)
		return true;
	for (e = call_errnos[call]; *e; e++)
		if (*e == err)
			return true;
	return false;
}

/*
 * Makes the call.  @bad: it must answer EINVAL.  True: it succeeded, and what
 * it has written is in @data.
 */
static bool make(struct fuzzer *f, int call, int fd, void *data, size_t size,
		 bool bad)
{
	void *arg = place(f, f->arg, data, size);
	/* Any other may have been closed, and opened as something else */
	bool ours = call < MODULE ?
		    fd == atomic_load(&fds[0]) || fd == atomic_load(&fds[1]) :
		    fd == module_fds[0] || fd == module_fds[1];
	int ret = ioctl(fd, call_numbers[call], arg), err = errno;

	if (!ret) {
		atomic_fetch_add(&counts->done[call], 1);
		if (f->judge && (bad || !f->readable))
			wrong(f, "%s took a bad argument", call_names[call]);
		return copy_in(data, arg, size);
	}
	atomic_fetch_add(&counts->refused[call], 1);
	if (!ours)
		return false;
	if (!may_fail(call, err))
		wrong(f, "%s: %s", call_names[call], strerror(err));
	else if (!f->readable && err != EFAULT && (err != EINVAL || f->judge))
		wrong(f, "%s: %s for what cannot be read", call_names[call],
		      strerror(err));
	else if (bad && f->judge && f->readable && err != EINVAL)
		wrong(f, "%s: %s for a bad argument", call_names[call],
		      strerror(err));
	return false;
}

static int any_fd(struct fuzzer *f)
{
	return atomic_load(&fds[below(f, FDS)]);
}

/* Mostly the first, which both processes have */
static int gpu_file(struct fuzzer *f)
{
	return one_in(f, 8) ? any_fd(f) : atomic_load(&fds[one_in(f, 8)]);
}

static void put_fd(struct fuzzer *f, int fd)
{
	/* 0 is the file that all share, 1 the process's own */
	int old = atomic_exchange(&fds[2 + below(f, FDS - 2)], fd);

	if (old >= 0)
		close(old);
}

static uint32_t any_handle(struct fuzzer *f, unsigned int *slot)
{
	*slot = below(f, HANDLES);
	return one_in(f, 20) ? rnd(f) % 64 : atomic_load(&handles[*slot]);
}

static void put_handle(struct fuzzer *f, uint32_t handle, uint64_t size,
		       uint64_t offset)
{
	unsigned int slot = below(f, HANDLES);

	atomic_store(&sizes[slot], size);
	atomic_store(&offsets[slot], offset);
	atomic_store(&handles[slot], handle);
}

static void fuzz_query(struct fuzzer *f)
{
	struct pln_gpu_query q = { 0 };
	bool bad = one_in(f, 6);

	if (bad)
		*(one_in(f, 2) ? (uint64_t *)&q.reserved[below(f, 3)] :
		  (uint64_t *)&q.abi_version) = ~0ull;
	if (make(f, QUERY, gpu_file(f), &q, sizeof(q), bad) &&
	    f->judge && q.vram_free > q.vram_size)
		wrong(f, "query: more memory free than there is");
}

static void fuzz_alloc(struct fuzzer *f)
{
	struct pln_gpu_alloc a = { .size = maybe(f, small_size(f)) };
	bool bad = one_in(f, 10);

	if (bad && one_in(f, 2))
		a.flags = 1u << below(f, 32);
	else if (bad)
		a.reserved = 1ull << below(f, 64);
	if (make(f, ALLOC, gpu_file(f), &a, sizeof(a), bad || !a.size))
		put_handle(f, a.handle, a.size, a.mmap_offset);
}

static void fuzz_free(struct fuzzer *f)
{
	unsigned int slot;
	struct pln_gpu_free fr = { .handle = any_handle(f, &slot) };
	bool bad = one_in(f, 10);

	if (bad)
		fr.reserved = 1u << below(f, 32);
	/* Some stale ones stay */
	if (make(f, FREE, gpu_file(f), &fr, sizeof(fr), bad) && !one_in(f, 4))
		atomic_store(&handles[slot], atomic_load(&handles[below(f, HANDLES)]));
}

static void fuzz_export(struct fuzzer *f)
{
	unsigned int slot;
	struct pln_gpu_export e = {
		.handle = any_handle(f, &slot),
		.flags = one_in(f, 2) ? O_CLOEXEC : 0,
		.offset = maybe(f, below(f, 2) * UNIT + below(f, 2) * PAGE),
		.size = maybe(f, (1 + below(f, 2)) * UNIT - below(f, 2) * PAGE),
	};
	bool bad = one_in(f, 10);

	if (one_in(f, 2)) {
		e.flags |= PLN_GPU_EXPORT_F_IMPORT;
		e.offset = 0;
		e.size = atomic_load(&sizes[slot]);
	}
	if (bad && one_in(f, 2))
		e.flags |= 1u << (1 + below(f, 18));	/* below O_CLOEXEC */
	else if (bad)
		e.reserved = 1u << below(f, 32);
	if (make(f, EXPORT, gpu_file(f), &e, sizeof(e),
		 bad || !e.size || e.size % PAGE || e.offset % PAGE) &&
	    f->writable && f->judge)
		put_fd(f, e.fd);
}

static void fuzz_parts(struct fuzzer *f)
{
	struct pln_gpu_part parts[PLN_GPU_MAX_PARTS];
	unsigned int i, slot, n = 1 + below(f, one_in(f, 8) ? PLN_GPU_MAX_PARTS : 4);
	struct pln_gpu_export_parts e = {
		.nr_parts = maybe(f, n), .flags = one_in(f, 2) ? O_CLOEXEC : 0,
	};
	bool bad = one_in(f, 10);
	uint64_t late = below(f, 2) * PAGE, early = below(f, 2) * PAGE;

	for (i = 0; i < PLN_GPU_MAX_PARTS; i++)
		parts[i] = (struct pln_gpu_part){
			.handle = any_handle(f, &slot),
			.reserved = one_in(f, 200),
			.offset = one_in(f, 40) ? number(f) : 0,
			.size = one_in(f, 40) ? number(f) : UNIT,
		};
	/* It may begin and end within a page of the GPU */
	parts[0].offset += late;
	parts[0].size -= late;
	parts[n - 1].size -= early;
	/* The array; its place is judged by no rule */
	e.parts = (uintptr_t)parts;
	if (one_in(f, 8))
		e.parts = (uintptr_t)place(f, f->array, parts, sizeof(f->array));
	if (bad)
		e.reserved = 1;
	if (make(f, PARTS, gpu_file(f), &e, sizeof(e),
		 bad || !e.nr_parts || e.nr_parts > PLN_GPU_MAX_PARTS) &&
	    f->writable && f->judge)
		put_fd(f, e.fd);
}

static void fuzz_import(struct fuzzer *f)
{
	struct pln_gpu_import i = { .fd = any_fd(f) };
	bool bad = one_in(f, 10);

	if (one_in(f, 10))
		i.fd = one_in(f, 2) ? null_fd : (int)number(f);
	if (bad && one_in(f, 2))
		i.flags = 1u << below(f, 32);
	else if (bad)
		i.reserved = 1u << below(f, 32);
	if (make(f, IMPORT, gpu_file(f), &i, sizeof(i), bad))
		put_handle(f, i.handle, i.size, i.mmap_offset);
}

/* Memory of the program that an operation names */
static uint64_t user_memory(struct fuzzer *f, uint64_t len)
{
	size_t size;

	switch (below(f, 16)) {
	case 0:
		return (uintptr_t)arena_at(f, &size) + below(f, PAGE);
	case 1:
		return (uintptr_t)half + PAGE - below(f, PAGE);
	case 2:
		return (uintptr_t)read_only + below(f, 2);
	case 3:
		if (uffd < 0)
			return 0;
		madvise(late + (THREADS + f->n) * PAGE, PAGE, MADV_DONTNEED);
		return (uintptr_t)late + (THREADS + f->n) * PAGE;
	case 4:
		return number(f);
	default:
		return (uintptr_t)ram + (len < UNIT ? below(f, UNIT - len) : 0);
	}
}

static struct pln_gpu_op random_op(struct fuzzer *f)
{
	unsigned int slot, width = 1u << below(f, 4);
	struct pln_gpu_op op = {
		.opcode = one_in(f, 40) ? number(f) : below(f, 6),
		.src_handle = any_handle(f, &slot),
		.dst_handle = any_handle(f, &slot),
		.src = maybe(f, below(f, UNIT / 16) * 8),
		.dst = maybe(f, below(f, UNIT / 16) * 8),
		.len = maybe(f, (1 + below(f, UNIT / 128)) * 8),
	};

	switch (op.opcode) {
	case PLN_GPU_OP_NOP:
		if (!one_in(f, 10))
			op = (struct pln_gpu_op){ .opcode = PLN_GPU_OP_NOP };
		break;
	case PLN_GPU_OP_FILL:
		op.arg = maybe(f, width);
		op.imm = maybe(f, below(f, 256));
		op.src_handle = 0;
		op.src = 0;
		break;
	case PLN_GPU_OP_ADD:
		op.arg = maybe(f, 1 + below(f, 2));
		break;
	case PLN_GPU_OP_CRC32C:
		op.imm = maybe(f, rnd(f));
		op.dst_handle = 0;
		op.dst = 0;
		break;
	case PLN_GPU_OP_COPY:
		switch (below(f, 3)) {
		case 0:
			op.flags = PLN_GPU_OP_F_SRC_USER;
			op.src = user_memory(f, op.len);
			op.src_handle = 0;
			break;
		case 1:
			op.flags = PLN_GPU_OP_F_DST_USER;
			op.dst = user_memory(f, op.len);
			op.dst_handle = 0;
			break;
		}
	}
	if (one_in(f, 100))
		op.flags |= 1u << below(f, 32);
	if (one_in(f, 100))
		op.reserved = 1u << below(f, 32);
	return op;
}

static void fuzz_submit(struct fuzzer *f)
{
	static __thread struct pln_gpu_op ops[PLN_GPU_MAX_OPS];
	unsigned int i, n = 1 + below(f, one_in(f, 40) ? PLN_GPU_MAX_OPS : 3);
	struct pln_gpu_submit s = {
		.nr_ops = one_in(f, 20) ? number(f) : n,
		.queue = maybe(f, below(f, 2)),
	};
	bool bad = one_in(f, 12);

	for (i = 0; i < n; i++)
		ops[i] = random_op(f);
	s.ops = (uintptr_t)ops;
	if (one_in(f, 8))
		s.ops = (uintptr_t)place(f, f->array, ops, sizeof(f->array));
	if (bad && one_in(f, 2))
		s.flags = 1u << below(f, 32);
	else if (bad)
		s.reserved = 1u << below(f, 32);
	if (make(f, SUBMIT, gpu_file(f), &s, sizeof(s),
		 bad || !s.nr_ops || s.nr_ops > PLN_GPU_MAX_OPS))
		atomic_store(&job_ids[below(f, JOBS)], s.job);
}

static void fuzz_wait(struct fuzzer *f)
{
	struct pln_gpu_wait w = {
		.job = one_in(f, 10) ? number(f) :
				       atomic_load(&job_ids[below(f, JOBS)]),
		.timeout_ns = below(f, 3) * 1000000ull,
	};
	bool bad = one_in(f, 12);

	if (one_in(f, 2))
		w.flags = PLN_GPU_WAIT_F_TIME;
	if (bad && one_in(f, 3))
		w.timeout_ns = 600000000001ull + rnd(f);
	else if (bad && one_in(f, 2))
		w.flags = 2u << below(f, 31);
	else if (bad)
		w.reserved = 1u << below(f, 32);
	if (!make(f, WAIT, gpu_file(f), &w, sizeof(w), bad) || !f->judge)
		return;
	atomic_fetch_add(&counts->jobs, !w.status);
	/* A job that was refused has the error of its submission */
	if (w.status > 0 || (w.status && !may_fail(SUBMIT, -w.status)))
		wrong(f, "wait: status %d", w.status);
	if (w.error && !resets)
		wrong(f, "wait: the device refused what the driver took: error %u",
		      w.error);
}

/* ---- the module peerlane ---- */

static int module_file(struct fuzzer *f)
{
	return one_in(f, 20) ? any_fd(f) : module_fds[one_in(f, 4)];
}

static void fuzz_module(struct fuzzer *f)
{
	struct pln_query q = { 0 };
	bool bad = one_in(f, 6);

	if (bad && one_in(f, 2))
		q.reserved[below(f, 3)] = 1ull << below(f, 64);
	else if (bad)
		*(one_in(f, 2) ? &q.flags : &q.reserved32) = 1u << below(f, 32);
	if (make(f, MODULE, module_file(f), &q, sizeof(q), bad) && f->judge &&
	    q.abi_version != PLN_ABI_VERSION)
		wrong(f, "query of the module: version %u", q.abi_version);
}

static void fuzz_register(struct fuzzer *f)
{
	unsigned int slot = below(f, HANDLES);
	char *p = devices + slot * DEVICE_ROOM;
	uint64_t size = atomic_load(&sizes[slot]);
	struct pln_register r = {
		.address = maybe(f, (uintptr_t)p + below(f, 2) * UNIT),
		.size = maybe(f, (1 + below(f, 3)) * UNIT),
	};
	bool bad = one_in(f, 12);

	if (one_in(f, 3) && size && size <= DEVICE_ROOM)
		mmap(p, size, PROT_NONE, MAP_SHARED | MAP_FIXED,
		     atomic_load(&fds[0]), atomic_load(&offsets[slot]));
	if (bad && one_in(f, 2))
		r.flags = 1u << below(f, 32);
	else if (bad)
		r.reserved = 1u << below(f, 32);
	if (make(f, REGISTER, module_file(f), &r, sizeof(r),
		 bad || !r.size || (r.address | r.size) % UNIT))
		atomic_store(&registered[below(f, REGISTERED)], r.handle);
}

static uint32_t any_registered(struct fuzzer *f)
{
	/* Those of the other process have such numbers, too */
	return one_in(f, 10) ? below(f, 40) :
	       atomic_load(&registered[below(f, REGISTERED)]);
}

static void fuzz_unregister(struct fuzzer *f)
{
	struct pln_unregister u = { .handle = any_registered(f) };
	bool bad = one_in(f, 10);

	if (bad)
		u.reserved = 1u << below(f, 32);
	make(f, UNREGISTER, module_file(f), &u, sizeof(u), bad);
}

static int any_target(struct fuzzer *f, bool *is_file)
{
	unsigned int n = below(f, nr_targets);

	/* Mostly the first, which can be read and written */
	if (one_in(f, 2))
		n = below(f, 2);
	*is_file = targets[n].is_file;
	if (!one_in(f, 16))
		return targets[n].fd;
	*is_file = true;	/* it may be one */
	return one_in(f, 2) ? any_fd(f) : (int)number(f);
}

static void fuzz_check(struct fuzzer *f)
{
	bool bad = one_in(f, 10), is_file;
	struct pln_check c = { .fd = any_target(f, &is_file) };

	if (bad)
		*(one_in(f, 2) ? &c.flags : &c.reserved) = 1u << below(f, 32);
	if (make(f, CHECK, module_file(f), &c, sizeof(c), bad) && f->judge &&
	    !is_file)
		wrong(f, "check took descriptor %d", c.fd);
}

static struct pln_io random_io(struct fuzzer *f, bool *bad, bool *is_file)
{
	struct pln_io io = {
		.op = below(f, 2), .handle = any_registered(f),
		.fd = any_target(f, is_file),
		.file_offset = maybe(f, below(f, FILE_SIZE / PAGE) * PAGE),
		.offset = maybe(f, below(f, UNIT / PAGE) * PAGE),
		.size = maybe(f, (1 + below(f, 16)) * 512),
	};

	*bad = one_in(f, 12);
	if (!*bad)
		return io;
	switch (below(f, 4)) {
	case 0:
		io.op = 2 + (rnd(f) >> 1);
		break;
	case 1:
		io.flags = 1u << below(f, 32);
		break;
	case 2:
		io.reserved32 = 1u << below(f, 32);
		break;
	default:
		io.reserved[below(f, 2)] = 1ull << below(f, 64);
	}
	return io;
}

static void fuzz_io(struct fuzzer *f)
{
	bool bad, is_file;
	struct pln_io io = random_io(f, &bad, &is_file);
	uint64_t size = io.size;

	if (!make(f, IO, module_file(f), &io, sizeof(io), bad) || !f->judge)
		return;
	atomic_fetch_add(&counts->moved, io.done);
	if (!is_file || io.done > size)
		wrong(f, "io with descriptor %d: %llu of %llu bytes", io.fd,
		      (unsigned long long)io.done, (unsigned long long)size);
}

/* By io_uring; some are not waited for, and end when the process does */
static void fuzz_command(struct fuzzer *f)
{
	struct ring *r = &f->ring;
	unsigned int tail = *r->tail, at = tail & *r->mask, head;
	struct pln_uring u = { .io = (uintptr_t)&f->command };
	bool bad, is_file, wait = !one_in(f, 4);
	struct io_uring_sqe *sqe = &r->sqes[at];
	int res;

	f->command = random_io(f, &bad, &is_file);
	if (one_in(f, 10))
		u.io = (uintptr_t)place(f, f->arg, &f->command, sizeof(f->command));
	if (one_in(f, 20))
		u.reserved = 1ull << below(f, 64);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = module_file(f);
	sqe->flags = one_in(f, 6) ? IOSQE_ASYNC : 0;
	/* Of headers that are older than the field's name: off */
	sqe->off = one_in(f, 10) ? call_numbers[below(f, NR_CALLS)] : PLN_IOC_IO;
	/* The command is the last 16 bytes */
	memcpy((char *)sqe + 48, &u, sizeof(u));
	r->array[at] = at;
	__atomic_store_n(r->tail, tail + 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, r->fd, 1, wait, IORING_ENTER_GETEVENTS, NULL, 0);
	for (head = *r->head; head != __atomic_load_n(r->ctail, __ATOMIC_ACQUIRE);
	     head++) {
		res = r->cqes[head & *r->cmask].res;
		atomic_fetch_add(&counts->commands, res >= 0);
		/* EOPNOTSUPP: of another file; ENOTTY: of another command */
		if (res > (int)(16u * MIB) ||
		    (res < 0 && res != -ENOTTY && res != -ECANCELED && !may_fail(IO, -res)))
			wrong(f, "a command of io_uring: %d", res);
	}
	__atomic_store_n(r->head, head, __ATOMIC_RELEASE);
}

static void fuzz_mmap(struct fuzzer *f)
{
	unsigned int slot = below(f, HANDLES);
	size_t size, moved;
	char *p = arena_at(f, &size), *q;
	int fd = gpu_file(f), prot = below(f, 8);
	uint64_t offset = atomic_load(&offsets[slot]);

	/* That of a dma-buf, too, where offsets begin at 0 */
	if (one_in(f, 2)) {
		fd = any_fd(f);
		offset = below(f, 2) * UNIT;
	}
	if (one_in(f, 8))
		offset = number(f) & -(uint64_t)PAGE;
	switch (below(f, 6)) {
	case 0:
		mmap(p, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
		     MAP_NORESERVE, -1, 0);
		break;
	case 1:
		mprotect(p, size, prot & (PROT_READ | PROT_WRITE));
		break;
	case 2:
		q = arena_at(f, &moved);
		if (moved <= size && (q + moved <= p || p + moved <= q) &&
		    mremap(p, moved, moved, MREMAP_MAYMOVE | MREMAP_FIXED, q) != MAP_FAILED)
			mmap(p, moved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS |
			     MAP_FIXED | MAP_NORESERVE, -1, 0);
		break;
	case 3:
		madvise(p, size, below(f, 26));
		break;
	default:
		if (one_in(f, 4))
			prot = PROT_NONE;
		else
			prot = PROT_READ | (prot & PROT_WRITE);
		if (mmap(p, size, prot, (one_in(f, 16) ? MAP_PRIVATE :
			 MAP_SHARED) | MAP_FIXED, fd, offset) != MAP_FAILED)
			atomic_fetch_add(&counts->windows, 1);
	}
}

static void touch(struct fuzzer *f)
{
	size_t size;
	char *p = arena_at(f, &size);

	if (sigsetjmp(fault_jump, 1))
		return;
	if (one_in(f, 2))
		memset(p, 0xdd, size);
	else
		(void)*(volatile char *)p;
}

/* Other parts of the kernel get the mappings */
static void lend(struct fuzzer *f)
{
	static __thread char bounce[4 * UNIT];
	struct iovec local = { bounce, 0 }, remote;
	int pipefd[2];

	remote.iov_base = arena_at(f, &remote.iov_len);
	local.iov_len = remote.iov_len;
	switch (below(f, 4)) {
	case 0:
		process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
		break;
	case 1:
		process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
		break;
	default:
		if (pipe(pipefd))
			return;
		/* The pipe keeps the pages for as long as its slot is not taken */
		vmsplice(pipefd[1], &remote, 1, SPLICE_F_NONBLOCK | SPLICE_F_GIFT);
		close(pipefd[1]);
		put_fd(f, pipefd[0]);
	}
}

static void fuzz_dmabuf(struct fuzzer *f)
{
	struct dma_buf_sync sync = { .flags = one_in(f, 8) ? rnd(f) : below(f, 8) };
	struct dma_buf_export_sync_file out = { .flags = below(f, 4), .fd = -1 };
	struct dma_buf_import_sync_file in = { .flags = below(f, 4), .fd = any_fd(f) };
	int fd = any_fd(f);
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	char name[16];

	switch (below(f, 6)) {
	case 0:
		ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
		break;
	case 1:
		if (!ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &out))
			put_fd(f, out.fd);
		break;
	case 2:
		ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &in);
		break;
	case 3:
		snprintf(name, sizeof(name), "%x", rnd(f));
		ioctl(fd, DMA_BUF_SET_NAME_B, name);
		break;
	case 4:
		poll(&p, 1, 0);
		break;
	default:
		lseek(fd, number(f), below(f, 5));
	}
}

static void move_fds(struct fuzzer *f)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0, name[40];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = space, .msg_controllen = sizeof(space),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	int fd = any_fd(f), end = below(f, 2);

	switch (below(f, 8)) {
	case 0:
		fd = dup(fd);
		if (fd < 0)
			return;
		break;
	case 1:
		fd = open(one_in(f, 2) ? "/dev/peerlane-gpu0" : "/dev/peerlane-gpu1",
			  O_RDWR | O_CLOEXEC);
		break;
	case 2:
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		fd = open(name, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return;
		break;
	case 3:	/* what is never received ends with the sockets */
		if (fd < 0)
			return;
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
		sendmsg(sockets[end], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	case 4:
		if (recvmsg(sockets[end], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1 ||
		    !CMSG_FIRSTHDR(&msg))
			return;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		break;
	default:
		fd = -1;
	}
	put_fd(f, fd);
}

static void strange(struct fuzzer *f)
{
	static __thread char bounce[256];
	int fd = gpu_file(f), ret;
	unsigned int cmd = PLN_GPU_IOC_QUERY, i;

	switch (below(f, 4)) {
	case 0:
		cmd ^= 1u << below(f, 32);
		ret = ioctl(fd, cmd, bounce);
		for (i = 0; i < NR_CALLS && cmd != call_numbers[i]; i++)
			;
		if (!ret && i == NR_CALLS && fd == atomic_load(&fds[0]))
			wrong(f, "ioctl %#x is taken", cmd);
		break;
	case 1:
		ret = read(fd, bounce, 0) + write(fd, bounce, 0);
		break;
	case 2:
		lseek(fd, number(f), below(f, 5));
		break;
	default:
		if (ftruncate(fd, number(f)) == 0 && fd == atomic_load(&fds[0]))
			wrong(f, "the device can be truncated");
	}
}

/* Memory that is given out shows nobody's data */
static void fresh(struct fuzzer *f)
{
	static __thread char zeros[8 * UNIT];
	int fd = open("/dev/peerlane-gpu0", O_RDWR | O_CLOEXEC);
	struct pln_gpu_alloc a = { .size = small_size(f) };
	struct pln_gpu_op ops[2];
	uint64_t crc;
	int ret;

	if (fd < 0)
		return;
	if (!ioctl(fd, PLN_GPU_IOC_ALLOC, &a)) {
		ops[0] = op_crc(a.handle, 0, a.size);
		ret = gpu_run(fd, ops, 1, &crc);
		atomic_fetch_add(&counts->fresh, !ret);
		if (!ret && crc != crc32c(0, zeros, a.size))
			wrong(f, "new memory is not zero");
		else if (ret && !resets)
			wrong(f, "a good job fails: %d (%s)", ret, strerror(errno));
		/* For the next one to find */
		ops[1] = op_fill(a.handle, 0, a.size, 1, 0x99);
		gpu_run(fd, &ops[1], 1, NULL);
	} else if (errno != ENOMEM && !(resets && errno == EIO)) {
		wrong(f, "memory: %s", strerror(errno));
	}
	close(fd);
}

static void *fuzz(void *arg)
{
	static void (*const steps[])(struct fuzzer *f) = {
		fuzz_query, fuzz_alloc, fuzz_alloc, fuzz_alloc, fuzz_free,
		fuzz_export, fuzz_export, fuzz_export, fuzz_parts, fuzz_import,
		fuzz_import, fuzz_submit, fuzz_submit, fuzz_submit, fuzz_wait,
		fuzz_wait, fuzz_wait, fuzz_mmap, fuzz_mmap, fuzz_mmap, touch,
		lend, fuzz_dmabuf, move_fds, move_fds, strange, fuzz_module,
		fuzz_register, fuzz_register, fuzz_register, fuzz_unregister,
		fuzz_check, fuzz_io, fuzz_io, fuzz_io, fuzz_io, fuzz_command,
		fuzz_command, fuzz_command,
	};
	struct fuzzer *f = arg;
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		f->rng = mix(f, i);
		atomic_fetch_add(&counts->steps, 1);
		if (i % 100 == 50)
			fresh(f);
		steps[below(f, sizeof(steps) / sizeof(*steps))](f);
	}
	return NULL;
}

static void *scribble(void *arg)
{
	struct fuzzer f = { .rng = (uintptr_t)arg };

	while (!atomic_load(&round_over)) {
		((volatile uint32_t *)scribbled)[below(&f, 64)] ^= 1u << below(&f, 32);
		if (one_in(&f, 64))
			usleep(10);
	}
	return NULL;
}

/* Brings the pages that are late, after a moment */
static void *bring(void *arg)
{
	struct pollfd p = { uffd, POLLIN, 0 };
	struct uffdio_range wake;
	struct uffdio_copy copy;
	struct uffd_msg msg;

	(void)arg;
	while (!atomic_load(&round_over)) {
		if (poll(&p, 1, 100) != 1 ||
		    read(uffd, &msg, sizeof(msg)) != sizeof(msg))
			continue;
		usleep(500);
		copy = (struct uffdio_copy){
			.dst = msg.arg.pagefault.address & -(uint64_t)PAGE,
			.len = PAGE,
		};
		copy.src = (uintptr_t)late_src + (copy.dst - (uintptr_t)late);
		while (ioctl(uffd, UFFDIO_COPY, &copy) && errno == EAGAIN)
			;
		atomic_fetch_add(&counts->late, 1);
		/* It was there already: nobody has been woken */
		wake = (struct uffdio_range){ copy.dst, PAGE };
		ioctl(uffd, UFFDIO_WAKE, &wake);
	}
	return NULL;
}

static char *anonymous(size_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS |
		       MAP_NORESERVE, -1, 0);

	need(p != MAP_FAILED, "memory");
	return p;
}

static void make_memory(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int memory = memfd_create("read-only", MFD_CLOEXEC);

	arena = anonymous(ARENA, PROT_NONE);
	devices = anonymous((HANDLES + 1) * DEVICE_ROOM, PROT_NONE);
	devices += -(uintptr_t)devices % DEVICE_ROOM;
	ram = anonymous(UNIT + PAGE, PROT_READ | PROT_WRITE);
	scribbled = anonymous(PAGE, PROT_READ | PROT_WRITE);
	half = anonymous(2 * PAGE, PROT_READ | PROT_WRITE);
	late = anonymous(2 * THREADS * PAGE, PROT_READ | PROT_WRITE);
	late_src = anonymous(2 * THREADS * PAGE, PROT_READ | PROT_WRITE);
	need(!mprotect(half + PAGE, PAGE, PROT_NONE), "mprotect");
	need(memory >= 0 && !ftruncate(memory, PAGE), "memfd");
	read_only = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, memory, 0);
	read_only_alias = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			       memory, 0);
	need(read_only != MAP_FAILED && read_only_alias != MAP_FAILED, "mmap");
	close(memory);
	/* Root's, so that it is for faults of the kernel, too */
	uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	need(uffd >= 0, "userfaultfd");
	range.range.start = (uintptr_t)late;
	range.range.len = 2 * THREADS * PAGE;
	need(!ioctl(uffd, UFFDIO_API, &api) &&
	     !ioctl(uffd, UFFDIO_REGISTER, &range), "userfaultfd");
}

static void have(int fd, bool is_file)
{
	need(fd >= 0 && nr_targets < TARGETS, "target %u", nr_targets);
	targets[nr_targets].fd = fd;
	targets[nr_targets++].is_file = is_file;
}

static int in_folder(const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, flags | O_CLOEXEC);
}

/* Descriptors of all kinds; the disk's is root's, who hands it on */
static void make_targets(void)
{
	int pipefd[2];

	need(!pipe2(pipefd, O_CLOEXEC), "pipe");
	have(in_folder("written", O_RDWR), true);
	have(in_folder("written", O_RDWR | O_DIRECT), true);
	have(in_folder("written", O_RDONLY), true);
	have(in_folder("written", O_WRONLY), true);
	have(in_folder("written", O_RDWR | O_APPEND), true);
	have(in_folder("kept", O_RDONLY), true);
	have(in_folder("kept", O_RDONLY | O_DIRECT), true);
	have(open(disk, O_RDONLY | O_CLOEXEC), true);
	have(in_folder("kept", O_PATH), false);
	have(in_folder(".", O_RDONLY), false);
	have(open("/dev/null", O_RDWR | O_CLOEXEC), false);
	have(open("/dev/peerlane", O_RDWR | O_CLOEXEC), false);
	have(open("/proc/self/status", O_RDONLY | O_CLOEXEC), false);
	have(memfd_create("file", MFD_CLOEXEC), false);
	have(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), false);
	have(pipefd[0], false);
	have(pipefd[1], false);
	have(dup(module_fds[0]), false);
}

/* Something to begin with */
static void fill_slots(struct fuzzer *f)
{
	struct pln_gpu_alloc a;
	unsigned int i;

	for (i = 0; i < HANDLES; i++) {
		a = (struct pln_gpu_alloc){ .size = small_size(f) };
		if (!ioctl(atomic_load(&fds[0]), PLN_GPU_IOC_ALLOC, &a))
			put_handle(f, a.handle, a.size, a.mmap_offset);
	}
}

/* One process of nobody, with the file that it shares with the other */
static int one_process(uint64_t seed, unsigned int nr, int shared, int module)
{
	struct sigaction sa = { .sa_handler = on_fault };
	struct fuzzer f[THREADS];
	pthread_t thread[THREADS], others[2];
	unsigned int i;

	module_fds[0] = module;
	make_memory();
	make_targets();
	need(!setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	     !setresuid(NOBODY, NOBODY, NOBODY), "nobody");
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (i = 0; i < FDS; i++)
		atomic_store(&fds[i], -1);
	atomic_store(&fds[0], shared);
	atomic_store(&fds[1], gpu_open());
	module_fds[1] = open("/dev/peerlane", O_RDWR | O_CLOEXEC);
	need(module_fds[1] >= 0, "open /dev/peerlane");

	need(!pthread_create(&others[0], NULL, scribble, (void *)(uintptr_t)(seed + 1)),
	     "thread");
	need(uffd < 0 || !pthread_create(&others[1], NULL, bring, NULL), "thread");
	for (i = 0; i < THREADS; i++) {
		f[i] = (struct fuzzer){
			.nr = nr, .n = i, .seed = seed,
		};
		f[i].rng = mix(&f[i], CALLS);
		ring_make(&f[i].ring);
	}
	fill_slots(&f[0]);
	for (i = 0; i < THREADS; i++)
		need(!pthread_create(&thread[i], NULL, fuzz, &f[i]), "thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&round_over, true);
	pthread_join(others[0], NULL);
	if (uffd >= 0)
		pthread_join(others[1], NULL);
	return 0;
}

/* Within a minute; else it says where the process hangs */
static bool ends(pid_t pid)
{
	double limit = now() + 60;
	int status;

	while (now() < limit) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (status && !(WIFSIGNALED(status) &&
					WTERMSIG(status) == SIGKILL))
				printf("# a process ended with status %#x\n",
				       status);
			return !status || (WIFSIGNALED(status) &&
					   WTERMSIG(status) == SIGKILL);
		}
		usleep(10000);
	}
	shell("for t in /proc/%d/task/*; do echo \"# ${t##*/}: $(cat $t/syscall)\"; sed 's/^/#   /' $t/stack; done",
	      pid);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return false;
}

static void *reset_on(void *arg)
{
	while (!atomic_load(&round_over)) {
		usleep(300000);
		if (!shell("echo 1 > /sys/bus/pci/devices/%s/reset", (char *)arg))
			atomic_fetch_add(&resets_made, 1);
	}
	return NULL;
}

static bool one_round(uint64_t seed, const char *gpu_pci)
{
	unsigned long steps = atomic_load(&counts->steps);
	int shared = gpu_open(), i;
	int module = open("/dev/peerlane", O_RDWR | O_CLOEXEC);
	pthread_t resetter;
	pid_t pid[PROCESSES];
	double limit;
	bool ok = true;

	printf("# seed %llu\n", (unsigned long long)seed);
	need(module >= 0, "open /dev/peerlane");
	fflush(stdout);
	need(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets),
	     "sockets");
	atomic_store(&round_over, false);
	for (i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		need(pid[i] >= 0, "fork");
		if (!pid[i])
			_exit(one_process(seed, i, shared, module));
	}
	close(sockets[0]);
	close(sockets[1]);
	close(shared);
	close(module);
	if (gpu_pci)
		need(!pthread_create(&resetter, NULL, reset_on, (char *)gpu_pci),
		     "thread");
	if (seed % 2) {
		/* Always reached, unless one hangs or dies, which ends() finds */
		steps += 200 + seed * 7919 % (PROCESSES * THREADS * CALLS - 400);
		limit = now() + 60;
		while (atomic_load(&counts->steps) < steps && now() < limit)
			usleep(500);
		for (i = 0; i < PROCESSES; i++)
			kill(pid[i], SIGKILL);
	}
	for (i = 0; i < PROCESSES; i++)
		ok &= ends(pid[i]);
	atomic_store(&round_over, true);
	if (gpu_pci)
		pthread_join(resetter, NULL);
	return ok;
}

/* The file that is made, or what it has now */
static uint32_t kept_crc(bool anew)
{
	static char data[FILE_SIZE];
	int fd = in_folder("kept", O_RDONLY | O_DIRECT), i;
	uint32_t crc;

	if (!anew) {
		need(fd >= 0 && read(fd, data, FILE_SIZE) == FILE_SIZE, "read back");
		close(fd);
		return crc32c(0, data, FILE_SIZE);
	}
	pattern(data, FILE_SIZE, 5);
	crc = crc32c(0, data, FILE_SIZE);
	for (i = 0; i < 2; i++) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", folder,
			 i ? "written" : "kept");
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		need(fd >= 0 && write(fd, data, FILE_SIZE) == FILE_SIZE &&
		     !fsync(fd) && !fchmod(fd, i ? 0666 : 0444), "%s", path);
		close(fd);
	}
	return crc;
}

/* All lines of the module's state that count what there is */
static bool module_idle(void)
{
	long long n, held = 1;
	char word[32];
	FILE *s;
	int i;

	for (i = 0; i < 3000 && held; i++, usleep(10000)) {
		s = fopen("/sys/kernel/debug/peerlane/state", "r");
		need(s, "the module's state");
		for (held = 0; fscanf(s, "%31s %lld", word, &n) == 2;)
			if (strcmp(word, "read") && strcmp(word, "written"))
				held += n;
		fclose(s);
	}
	return !held;
}

static long tainted(void)
{
	FILE *f = fopen("/proc/sys/kernel/tainted", "r");
	long bits;

	need(f && fscanf(f, "%ld", &bits) == 1, "tainted");
	fclose(f);
	return bits;
}

int main(int argc, char **argv)
{
	struct pln_gpu_query q;
	uint64_t seed, first;
	uint32_t crc;
	long before = tainted();
	bool ended = true;
	double end;
	int fd, i;

	need(argc == 5 || argc == 6,
	     "usage: pln_fuzz SEED SECONDS FOLDER DISK [GPU]");
	seed = first = strtoull(argv[1], NULL, 0);
	end = now() + atoi(argv[2]);
	folder = argv[3];
	disk = argv[4];
	resets = argc == 6;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(counts != MAP_FAILED, "memory");
	crc = kept_crc(true);
	fd = gpu_open();
	q = gpu_query(fd);
	do
		ended &= one_round(seed++, resets ? argv[5] : NULL);
	while (now() < end && ended);

	check(ended, "%llu rounds of random calls from seed %llu on: every process ends",
	      (unsigned long long)(seed - first), (unsigned long long)first);
	check(!atomic_load(&counts->wrong), "every answer is one that is allowed");
	/* A reset makes handles useless: then only those that need none succeed for sure */
	for (i = 0; i < NR_CALLS; i++)
		check((counts->done[i] || (resets && i > ALLOC)) &&
		      counts->refused[i],
		      "%s: %lu calls succeeded, %lu were refused",
		      call_names[i], atomic_load(&counts->done[i]),
		      atomic_load(&counts->refused[i]));
	check(counts->fresh, "new memory is zero, %lu times",
	      atomic_load(&counts->fresh));
	check(counts->late, "%lu pages came late", atomic_load(&counts->late));
	if (resets)
		check(resets_made && gpu_query(fd).reset_count >=
		      q.reset_count + resets_made, "%lu resets",
		      atomic_load(&resets_made));
	check(resets || (counts->jobs && counts->windows),
	      "%lu jobs were done, %lu mappings made", atomic_load(&counts->jobs),
	      atomic_load(&counts->windows));
	check(resets || (counts->moved && counts->commands),
	      "%lu bytes went between files and GPU memory, %lu commands of io_uring were done",
	      atomic_load(&counts->moved), atomic_load(&counts->commands));
	check(kept_crc(false) == crc, "what nobody may write is as it was");
	check(module_idle(), "the module holds nothing");
	check(room_is(fd, &q), "all memory is free again");
	check(tainted() == before, "the kernel has nothing to complain of");
	close(fd);
	return test_end();
}
