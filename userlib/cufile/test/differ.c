// SPDX-License-Identifier: MIT
/*
 * The library against plain POSIX: random operations on a file and on its twin.
 *
 *	cufile-differ DIR [TURNS [SEED]]
 *
 * Each operation is done by the library on a file and GPU memory, and by pread()
 * and pwrite() on a second file and host memory.  Results, memory and files must
 * be the same after each.  Where a fault was injected, a transfer may tell an error
 * or fewer bytes; those it tells must be right, and nothing else may have changed.
 * The test's own IO is by preadv() and pwritev(), which the mock leaves alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "differ.h"

#define GPU_SIZE KIB(640)
#define HOST_SIZE KIB(32)
#define OPS	12		/* under way together at most */
#define PIECES	5
#define FILES	4
#define THREADS	4

int cuLaunchHostFunc(void *s, void (*fn)(void *), void *arg);

/* Memory of both sides: [0] what the library uses, [1] the twin. */
struct area {
	char *base;			/* for the library */
	unsigned char *side[2];
	size_t size;
	bool registered;
};

struct piece {
	struct area *area;
	size_t at, len;
};

struct op {
	bool write;
	unsigned int file, pieces;
	struct piece piece[PIECES];
	off_t off;
	size_t len;			/* of all pieces */
	ssize_t r;
	int err;			/* when that is -1; 0: not told */
	off_t buf_off;			/* for cuFileReadAsync() */
};

enum method { SYNC, VECTOR, BATCH, STREAM, METHODS };
static const char *const method_name[] = { "sync", "vector", "batch", "stream" };

struct world {
	uint64_t seed;
	unsigned int turns, turn;
	bool faults;
	bool shared;			/* with other threads: a part of the file only */
	bool readers;			/* nobody has it open to write */
	bool strict;			/* what is not whole pages is not written */
	off_t lo, hi;
	int fd[2];
	struct { CUfileHandle_t fh; int fd[2], flags; } file[FILES];
	struct area gpu, host;
	CUstream stream[2];
	struct op op[OPS];
	unsigned int ops;
	enum method method;
	struct fault fault;
	struct fault bad;		/* if any: of all operations */
	bool bad_write;			/* of writes alone; nothing may be in the page cache then */
	size_t command;
	unsigned int within;		/* that met it neither in the first nor in the last command */
	int direct;			/* by which the file is looked at then */
	unsigned char *now[2];
	char said[400];
};

static const char *folder;
static char twin[280];
static uint64_t first_seed = 1;

static uint64_t any(struct world *w)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return w->seed;
}

size_t below(struct world *w, size_t n)
{
	return n ? any(w) % n : 0;
}

bool one_of(struct world *w, unsigned int n)
{
	return !below(w, n);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static off_t size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		abort();
	return st.st_size;
}

static ssize_t own(bool write, int fd, void *p, size_t n, off_t off)
{
	struct iovec v = { p, n };

	return write ? pwritev(fd, &v, 1, off) : preadv(fd, &v, 1, off);
}

static bool wrong(struct world *w, const struct op *o, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Keeps the first that is wrong. */
static bool wrong(struct world *w, const struct op *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (w->said[0])
		return false;
	n = snprintf(w->said, sizeof(w->said), "turn %u, %s, fault %d: ", w->turn,
		     method_name[w->method], w->fault.kind);
	if (o)
		n += snprintf(w->said + n, sizeof(w->said) - (size_t)n,
			"%s %zu in %u at %lld, memory at %zu, flags %o, result %zd: ",
			o->write ? "write" : "read", o->len, o->pieces,
			(long long)o->off, o->piece[0].at,
			(unsigned int)w->file[o->file].flags, o->r);
	va_start(ap, fmt);
	vsnprintf(w->said + n, sizeof(w->said) - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- what is done ---- */

/* A place in [lo, hi), often one where something begins. */
static size_t place(struct world *w, size_t lo, size_t hi)
{
	static const size_t unit[] = { 1, 1, 512, 4096, 4096, 4096, 65536 };
	size_t u = unit[below(w, 7)], at = lo + below(w, hi - lo);

	at = at / u * u;
	if (one_of(w, 6))
		at += one_of(w, 2) ? 1 : u - 1;
	return at < lo || at >= hi ? lo : at;
}

static size_t length(struct world *w, size_t most)
{
	static const size_t sizes[] = { 1, 2, 511, 512, 513, 4095, 4096, 4097,
		8191, 8192, 12288, 65535, 65536, 65537, 131072, 262144, 300000 };
	size_t n = one_of(w, 3) ? below(w, 300000) : sizes[below(w, 17)];

	if (one_of(w, 25))
		return 0;
	return smaller(n, most);
}

/* May the library be told to do this with that handle? */
static bool right_way(const struct world *w, const struct op *o)
{
	int access = w->file[o->file].flags & O_ACCMODE;

	return access == O_RDWR || access == (o->write ? O_WRONLY : O_RDONLY);
}

static void choose_op(struct world *w, struct op *o, unsigned int i, bool apart)
{
	size_t lo = (size_t)w->lo, hi = (size_t)w->hi, step, mlo, mhi, left;
	struct area *a;
	unsigned int k;

	memset(o, 0, sizeof(*o));
	o->write = !w->readers && one_of(w, 2);
	o->file = (unsigned int)below(w, FILES);
	while ((w->method == BATCH && !right_way(w, o)))
		o->file = (unsigned int)below(w, FILES);
	if (apart) {
		step = (hi - lo) / w->ops;
		lo += i * step;
		hi = lo + step;
	}
	o->off = (off_t)place(w, lo, hi);
	left = length(w, hi - (size_t)o->off);
	/* from far before what is bad to far behind it */
	if (w->bad.kind && w->ops == 1 && one_of(w, 3)) {
		o->off = w->bad.lo - (off_t)(2 * w->command + below(w, w->command));
		left = 300000;
	}
	/* a call that moves nothing need not look how the file was opened */
	if (!left && !right_way(w, o))
		left = 1;
	o->pieces = w->method == VECTOR ? (unsigned int)below(w, PIECES) + 1 : 1;
	for (k = 0; k < o->pieces; k++) {
		a = one_of(w, 6) && !w->bad_write ? &w->host : &w->gpu;
		mlo = 0;
		mhi = a->size;
		if (apart || w->method == VECTOR) {
			step = mhi / (w->ops * o->pieces);
			mlo = (i * o->pieces + k) * step;
			mhi = mlo + step;
		}
		o->piece[k].area = a;
		o->piece[k].at = place(w, mlo, mhi);
		o->piece[k].len = smaller(k + 1 < o->pieces ? below(w, left + 1) :
					  left, mhi - o->piece[k].at);
		left -= o->piece[k].len;
		o->len += o->piece[k].len;
	}
}

/* What strict mode writes, from anywhere in memory; and what needs no page cache */
static void whole_pages(struct world *w, struct op *o)
{
	size_t skip = (PAGE - (size_t)o->off % PAGE) % PAGE;
	size_t left = o->len > skip ? o->len - skip : 0;
	unsigned int k;

	o->off += (off_t)skip;
	o->len = 0;
	for (k = 0; k < o->pieces; k++) {
		o->piece[k].len = smaller(o->piece[k].len, left) / PAGE * PAGE;
		left -= o->piece[k].len;
		o->len += o->piece[k].len;
	}
	/* as in choose_op() */
	while (!o->len && !right_way(w, o))
		o->file = (unsigned int)below(w, FILES);
}

/*
 * What is under way at the same time must not touch the same bytes; and whether a
 * read meets the end of the file must not depend on a write.  Nor may what a read
 * leaves in the memory behind that end be used by others of its stream.
 */
static void choose(struct world *w)
{
	off_t size = w->shared ? w->hi : size_of(w->fd[1]);
	bool apart, past, reads = w->readers || one_of(w, 2);
	unsigned int i;

	w->method = (enum method)below(w, METHODS);
	w->ops = w->method == BATCH ? 1 + (unsigned int)below(w, OPS) :
		 w->method == STREAM ? 1 + (unsigned int)below(w, 5) : 1;
	apart = w->method == BATCH || w->fault.kind > SOFT;
again:
	for (i = 0; i < w->ops; i++) {
		struct op *o = &w->op[i];

		choose_op(w, o, i, apart);
		past = o->off + (off_t)o->len > size;
		if (past && w->method == STREAM && !apart) {
			apart = true;
			goto again;
		}
		while (past && apart &&
		       (o->write == reads || !right_way(w, o))) {
			o->write = !reads;
			o->file = (unsigned int)below(w, FILES);
		}
		if (w->bad_write || (w->strict && o->write))
			whole_pages(w, o);
	}
}

static char *at(const struct piece *p)
{
	return p->area->base + p->at;
}

static bool batch(struct world *w)
{
	CUfileIOParams_t p[OPS] = { 0 };
	CUfileIOEvents_t e[OPS];
	CUfileBatchHandle_t b;
	unsigned int i, n = w->ops;
	int r;

	if (cuFileBatchIOSetUp(&b, OPS).err)
		return wrong(w, NULL, "no batch");
	for (i = 0; i < w->ops; i++) {
		struct op *o = &w->op[i];

		p[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = w->file[o->file].fh,
			.opcode = o->write ? CUFILE_WRITE : CUFILE_READ,
			.cookie = o,
			.u.batch = { o->piece[0].area->base, o->off,
				     (off_t)o->piece[0].at, o->len },
		};
		o->r = -9999;
	}
	r = cuFileBatchIOSubmit(b, w->ops, p, 0).err;
	if (r)
		return wrong(w, NULL, "a batch is refused: %d", r);
	r = cuFileBatchIOGetStatus(b, n, &n, e, NULL).err;
	if (r || n != w->ops)
		return wrong(w, NULL, "%u of %u of a batch, %d", n, w->ops, r);
	for (i = 0; i < n; i++) {
		struct op *o = e[i].cookie;

		o->r = (ssize_t)e[i].ret;
		if ((e[i].status == CUFILE_COMPLETE) != (o->r >= 0))
			wrong(w, o, "status %d", (int)e[i].status);
		if (o->r < 0 && o->r > -5000) {
			o->err = (int)-o->r;
			o->r = -1;
		}
	}
	cuFileBatchIODestroy(b);
	return true;
}

static void wake(void *arg)
{
	sem_post(arg);
}

static bool stream(struct world *w)
{
	CUstream s = w->stream[below(w, 2)];
	unsigned int i;
	sem_t end;
	int r = 0;

	for (i = 0; i < w->ops && !r; i++) {
		struct op *o = &w->op[i];
		void *base = o->piece[0].area->base;
		CUfileHandle_t fh = w->file[o->file].fh;

		o->r = -9999;
		o->buf_off = (off_t)o->piece[0].at;
		r = o->write ? cuFileWriteAsync(fh, base, &o->len, &o->off,
						&o->buf_off, &o->r, s).err :
			       cuFileReadAsync(fh, base, &o->len, &o->off,
					       &o->buf_off, &o->r, s).err;
	}
	sem_init(&end, 0, 0);
	if (cuLaunchHostFunc(s, wake, &end))
		abort();
	while (sem_wait(&end))
		continue;
	sem_destroy(&end);
	return !r || wrong(w, NULL, "a stream refuses: %d", r);
}

static bool run(struct world *w)
{
	struct op *o = &w->op[0];
	CUfileHandle_t fh = w->file[o->file].fh;
	CUfileIOVec_t v[PIECES];
	unsigned int k;

	switch (w->method) {
	case BATCH:
		return batch(w);
	case STREAM:
		return stream(w);
	case VECTOR:
		for (k = 0; k < o->pieces; k++)
			v[k] = (CUfileIOVec_t){ at(&o->piece[k]),
						o->piece[k].len };
		o->r = o->write ? cuFileWritev(fh, v, o->pieces, o->off, 0) :
				  cuFileReadv(fh, v, o->pieces, o->off, 0);
		break;
	default:
		o->r = o->write ?
		       cuFileWrite(fh, o->piece[0].area->base, o->len, o->off,
				   (off_t)o->piece[0].at) :
		       cuFileRead(fh, o->piece[0].area->base, o->len, o->off,
				  (off_t)o->piece[0].at);
	}
	o->err = o->r == -1 ? errno : 0;
	return true;
}

/* ---- the same on the twin, and what may differ ---- */

/* Are these whole pages on both sides, so that all may go directly? */
static bool is_whole(const struct world *w, const struct op *o)
{
	unsigned int k;

	for (k = 0; k < o->pieces; k++)
		if (o->piece[k].area != &w->gpu || o->piece[k].at % PAGE ||
		    o->piece[k].len % PAGE)
			return false;
	return !(o->off % (off_t)PAGE);
}

/*
 * Bytes of the file, @p is of FILE_MAX bytes.  Of what cannot be read it has those of
 * the twin.
 */
static ssize_t look(struct world *w, unsigned char *p, size_t n, off_t off)
{
	off_t lo = off / (off_t)PAGE * (off_t)PAGE, end = off + (off_t)n;
	unsigned char *pages;

	if (!w->bad.kind)
		return own(false, w->fd[0], p, n, off);
	end = end > (off_t)FILE_MAX ? (off_t)FILE_MAX : end;
	if (end <= off)
		return 0;
	if (posix_memalign((void **)&pages, PAGE, FILE_MAX))
		abort();
	for (off_t at = lo; at < end; ) {
		bool bad = !w->bad_write && at >= w->bad.lo && at < w->bad.hi;
		off_t to = bad ? w->bad.hi : at < w->bad.lo ? w->bad.lo :
			   (off_t)FILE_MAX;
		size_t part = (size_t)((to < end ? to : end) - at);

		part = (part + PAGE - 1) / PAGE * PAGE;
		if (own(false, bad ? w->fd[1] : w->direct, pages + (at - lo), part,
			at) != (ssize_t)part)
			abort();
		at += (off_t)part;
	}
	memcpy(p, pages + (off - lo), (size_t)(end - off));
	free(pages);
	return (ssize_t)(end - off);
}

/* May the fault that was injected show in this one? */
static bool may_fail(const struct world *w, const struct op *o)
{
	off_t lo = o->off / (off_t)PAGE * (off_t)PAGE;
	off_t hi = o->off + (off_t)o->len + (off_t)PAGE - 1;
	bool gpu = false;
	unsigned int k;

	for (k = 0; k < o->pieces; k++)
		gpu |= o->piece[k].area == &w->gpu;
	switch (w->fault.kind) {
	case MEDIA:
		if (w->bad_write && !o->write)
			return false;
		/* through the page cache, what is beside it may fail with it */
		return (lo < w->fault.hi && hi >= w->fault.lo) ||
		       (w->bad.kind && !is_whole(w, o));
	case HOST:
		return true;
	case COPY:
		return gpu;
	default:
		return false;
	}
}

/* Is this what the fault gives? */
static bool is_fault(const struct world *w, const struct op *o)
{
	int err = w->fault.err == ENODATA ? EIO : w->fault.err;

	if (w->fault.kind == COPY)
		return o->r == -5011;
	return o->r == -1 && (!o->err || o->err == err);
}

/*
 * Of what no result tells, a write that met a fault may have left any byte as it
 * was, or new.  The twin gets what is there.
 */
static bool unfinished(struct world *w, const struct op *o)
{
	size_t done = o->r < 0 ? 0 : (size_t)o->r, i, k, n, skip;
	off_t off = o->off;

	for (k = 0; k < o->pieces; k++, off += (off_t)n) {
		const unsigned char *new = o->piece[k].area->side[1] +
					   o->piece[k].at;
		ssize_t have;

		n = o->piece[k].len;
		skip = smaller(done, n);
		done -= skip;
		memset(w->now[1], 0, n);
		have = look(w, w->now[0], n, off);
		if (have < 0 || own(false, w->fd[1], w->now[1], n, off) < 0)
			abort();
		for (i = skip; i < (size_t)have; i++)
			if (w->now[0][i] != w->now[1][i] &&
			    w->now[0][i] != new[i])
				return wrong(w, o, "byte %zu at %lld is %02x, "
					     "neither %02x nor %02x", i,
					     (long long)off, w->now[0][i],
					     w->now[1][i], new[i]);
		if (have > 0 &&
		    own(true, w->fd[1], w->now[0], (size_t)have, off) != have)
			abort();
	}
	return true;
}

/*
 * A piece that was read, of which @told bytes are claimed; how many there were, or
 * -1.  What is behind the end of the file, up to that of its page, and what a fault
 * left out may be anything.  So may all that O_DIRECT has of host memory, which
 * the kernel fills with zeros.
 */
static ssize_t read_twin(struct world *w, const struct op *o,
			 const struct piece *p, off_t off, size_t told, bool fault)
{
	unsigned char *m = p->area->side[1] + p->at;
	bool direct = w->file[o->file].flags & O_DIRECT && p->area == &w->host;
	size_t good, tail, page_left;
	ssize_t r = own(false, w->file[o->file].fd[1], w->now[0], p->len, off);

	if (r < 0)
		return r;
	good = fault ? smaller((size_t)r, told) : (size_t)r;
	page_left = PAGE - 1 - ((size_t)off + (size_t)r + PAGE - 1) % PAGE;
	tail = good < (size_t)r || (direct && (size_t)r < p->len) ? p->len : smaller(p->len, (size_t)r + page_left);
	memcpy(m, w->now[0], good);
	memcpy(m + good, p->area->side[0] + p->at + good, tail - good);
	return r;
}

/* Does the twin say the same of it? */
static bool judge(struct world *w, struct op *o)
{
	bool fault = may_fail(w, o);
	size_t told = o->r < 0 ? 0 : (size_t)o->r, n;
	ssize_t want = 0, r;
	unsigned int k;

	if (!right_way(w, o))
		return (o->r == -1 && (!o->err || o->err == EBADF)) ||
		       (fault && is_fault(w, o)) || wrong(w, o, "want EBADF");
	for (k = 0; k < o->pieces; k++) {
		struct piece *p = &o->piece[k];

		n = p->len;
		if (!o->write) {
			r = read_twin(w, o, p, o->off + want, told, fault);
		} else {
			/* with a fault, what was told and no more */
			if (fault)
				n = smaller(n, told);
			r = n ? own(true, w->file[o->file].fd[1],
				    p->area->side[1] + p->at, n, o->off + want) :
				0;
			if (r == (ssize_t)n)
				r = (ssize_t)p->len;
		}
		if (r < 0)
			return wrong(w, o, "the twin: errno %d", errno);
		want += r;
		told -= smaller(told, p->len);
		if (r < (ssize_t)p->len)
			break;
	}
	if (o->r != want && !(fault && (o->r > 0 ? o->r < want : is_fault(w, o))))
		return wrong(w, o, "errno %d, want %zd", o->err, want);
	/* the command in which it is begins behind the first one's end, and ends before the last one's begin */
	w->within += fault && w->command && o->r != want && o->pieces == 1 &&
		     o->off + (off_t)w->command <= w->bad.lo &&
		     o->off + (off_t)(o->len - w->command) >= w->bad.hi;
	return !o->write || o->r == want || unfinished(w, o);
}

static bool same_memory(struct world *w, const struct area *a, const char *what)
{
	size_t i;

	if (!memcmp(a->side[0], a->side[1], a->size))
		return true;
	for (i = 0; a->side[0][i] == a->side[1][i]; i++)
		continue;
	return wrong(w, &w->op[0], "%s differs from byte %zu on", what, i);
}

static bool same_file(struct world *w)
{
	size_t i, n = (size_t)(w->hi - w->lo);
	ssize_t r[2];

	r[0] = look(w, w->now[0], n, w->lo);
	r[1] = own(false, w->fd[1], w->now[1], n, w->lo);
	if (r[0] != r[1])
		return wrong(w, &w->op[0], "%zd bytes in the file, not %zd", r[0],
			     r[1]);
	if (r[0] < 0 || !memcmp(w->now[0], w->now[1], (size_t)r[0]))
		return true;
	for (i = 0; w->now[0][i] == w->now[1][i]; i++)
		continue;
	return wrong(w, &w->op[0], "the file differs from byte %lld on",
		     (long long)w->lo + (long long)i);
}

/* ---- faults ---- */

static void set_fault(struct world *w)
{
	w->fault.kind = NONE;
	if (w->bad.kind)
		w->fault = w->bad;
	else if (w->faults && one_of(w, 3))
		machine_fault(w, &w->fault);
}

/* ---- what else a program does to its files ---- */

static void open_file(struct world *w, unsigned int i)
{
	static const int flags[] = { O_RDWR, O_RDWR | O_DIRECT, O_RDONLY,
		O_RDONLY | O_DIRECT, O_WRONLY, O_WRONLY | O_DIRECT };

	/* some that write, and some that read */
	w->file[i].flags = w->readers ? O_RDONLY :
			   flags[i < 2 ? i : below(w, 6)];
	w->file[i].fd[0] = open(path, w->file[i].flags);
	w->file[i].fd[1] = open(twin, w->file[i].flags & O_ACCMODE);
	if (w->file[i].fd[0] < 0 || w->file[i].fd[1] < 0)
		abort();
	w->file[i].fh = reg(w->file[i].fd[0]);
}

static void close_file(struct world *w, unsigned int i)
{
	if (one_of(w, 2))
		close(w->file[i].fd[0]);
	else
		w->file[i].flags |= 1 << 30;
	cuFileHandleDeregister(w->file[i].fh);
	if (w->file[i].flags & 1 << 30)
		close(w->file[i].fd[0]);
	close(w->file[i].fd[1]);
}

static bool set_registered(struct world *w, struct area *a)
{
	int r = a->registered ? cuFileBufDeregister(a->base).err :
				cuFileBufRegister(a->base, a->size, 0).err;

	a->registered = !a->registered;
	return !r || wrong(w, NULL, "a buffer is refused: %d", r);
}

/* @how of the file and its twin: by what the program has open, or opens for it */
static bool change(struct world *w, unsigned int how, off_t off, size_t n)
{
	ssize_t r[2] = { 0 };
	int fd, s;

	for (s = 0; s < 2; s++) {
		fd = w->fd[s];
		if (w->readers && !s)
			fd = open(path, O_RDWR);
		if (fd < 0)
			abort();
		switch (how) {
		case 0:
			r[s] = ftruncate(fd, off);
			break;
		case 1:
			r[s] = fallocate(fd, FALLOC_FL_PUNCH_HOLE |
					 FALLOC_FL_KEEP_SIZE, off, (off_t)n);
			break;
		case 2:
			r[s] = fallocate(fd, 0, off, (off_t)n);
			break;
		case 3:
			r[s] = own(true, fd, w->gpu.side[1], n, off);
			break;
		default:
			/* as by O_APPEND */
			off = size_of(fd);
			n = smaller(n, FILE_MAX - (size_t)off);
			r[s] = own(true, fd, w->gpu.side[1], n, off);
		}
		if (w->readers && !s)
			close(fd);
	}
	return r[0] == r[1] || wrong(w, NULL, "change %u: %zd, not %zd", how, r[0],
				     r[1]);
}

static bool something_else(struct world *w)
{
	unsigned int i = (unsigned int)below(w, FILES);
	off_t off = (off_t)place(w, (size_t)w->lo, (size_t)w->hi);
	size_t n = 1 + length(w, (size_t)(w->hi - off) - 1);
	int flags;

	switch (below(w, 8)) {
	case 0:
		if (w->shared)
			return true;
		close_file(w, i);
		open_file(w, i);
		return true;
	case 1:
		return set_registered(w, one_of(w, 2) ? &w->gpu : &w->host);
	case 2:
		/* of the program's descriptor alone */
		flags = fcntl(w->file[i].fd[0], F_GETFL);
		return !fcntl(w->file[i].fd[0], F_SETFL, flags ^
			      (one_of(w, 2) ? O_APPEND : O_DIRECT)) ||
		       wrong(w, NULL, "F_SETFL: errno %d", errno);
	case 3:
		return w->shared || change(w, 0, off, 0);
	case 4:
		return w->shared || change(w, 1, off, n);
	case 5:
		return w->shared || change(w, 2, off, n);
	case 6:
		return w->shared || change(w, 4, 0, n);
	default:
		return w->bad_write || change(w, 3, off, smaller(n, w->gpu.size));
	}
}

/* ---- worlds ---- */


/*
 * Is the file as long as its writes have told?  After bytes that went, an error of
 * CUDA is the result all the same: then it may be longer.
 */
static bool good_size(struct world *w)
{
	off_t is = size_of(w->fd[0]), least = size_of(w->fd[1]), most = least;
	unsigned int i;

	for (i = 0; i < w->ops; i++) {
		const struct op *o = &w->op[i];
		off_t end = o->off + (o->r > 0 ? o->r : 0);

		if (!o->write || (!o->r && !o->len) || !right_way(w, o))
			continue;
		if (o->r > 0 && end > least)
			least = end;
		if (o->r == -5011)
			end += (off_t)o->len;
		if (o->r && end > most)
			most = end;
	}
	if (is < least || is > most)
		return wrong(w, &w->op[0], "the file has %lld bytes, not %lld",
			     (long long)is, (long long)least);
	return true;
}

/*
 * The page cache is registered when so much was read of a file that nobody writes;
 * after a writer it takes a while.
 */
static bool warm(struct world *w)
{
	struct op *o = &w->op[0];
	unsigned int i;

	machine_later();
	w->method = SYNC;
	w->ops = 1;
	w->fault.kind = NONE;
	for (i = 0; i < 10; i++) {
		*o = (struct op){ .pieces = 1, .len = KIB(128),
				  .piece[0] = { &w->gpu, 0, KIB(128) } };
		if (!run(w))
			return false;
		machine_pull(w->gpu.base, w->gpu.side[0], w->gpu.size);
		if (!judge(w, o))
			return false;
	}
	return true;
}

static void live(struct world *w)
{
	unsigned int i;
	bool good;

	for (w->turn = 0; w->turn < w->turns; w->turn++) {
		if (one_of(w, 5) && !something_else(w))
			return;
		if (w->readers && !(w->turn % 20) && !warm(w))
			return;
		set_fault(w);
		choose(w);
		good = run(w);
		if (w->faults)
			machine_no_fault();
		machine_pull(w->gpu.base, w->gpu.side[0], w->gpu.size);
		good = good && good_size(w);
		for (i = 0; i < w->ops && good; i++)
			good = judge(w, &w->op[i]);
		if (!good || !same_memory(w, &w->gpu, "GPU memory") ||
		    !same_memory(w, &w->host, "host memory") ||
		    (one_of(w, 8) && !same_file(w)))
			return;
		/* new bytes to write */
		i = (unsigned int)below(w, (w->gpu.size - PAGE) / 8);
		memset(w->gpu.side[0] + i * 8, (int)w->turn, 999);
		memset(w->gpu.side[1] + i * 8, (int)w->turn, 999);
		machine_push(w->gpu.base, w->gpu.side[0], w->gpu.size);
	}
	same_file(w);
}

static void fill(struct world *w, unsigned char *p, size_t n)
{
	for (; n >= 8; n -= 8, p += 8)
		*(uint64_t *)p = any(w);
}

static void names(void)
{
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(twin, sizeof(twin), "%s.twin", path);
}

static void set_up(struct world *w, unsigned int turns, char *gpu_at, size_t gpu_size)
{
	unsigned int i;

	w->turns = turns;
	w->gpu = (struct area){ .base = gpu_at, .size = gpu_size };
	w->gpu.side[0] = machine_side(gpu_at, gpu_size);
	w->gpu.side[1] = malloc(gpu_size);
	w->host.size = HOST_SIZE;
	w->host.side[1] = malloc(HOST_SIZE);
	if (posix_memalign((void **)&w->host.base, PAGE, HOST_SIZE) ||
	    !w->gpu.side[1] || !w->host.side[1])
		abort();
	w->host.side[0] = (unsigned char *)w->host.base;
	fill(w, w->gpu.side[1], gpu_size);
	fill(w, w->host.side[1], HOST_SIZE);
	memcpy(w->gpu.side[0], w->gpu.side[1], gpu_size);
	machine_push(gpu_at, w->gpu.side[0], gpu_size);
	memcpy(w->host.side[0], w->host.side[1], HOST_SIZE);
	for (i = 0; i < 2; i++) {
		/* for O_DIRECT */
		if (posix_memalign((void **)&w->now[i], PAGE, FILE_MAX))
			abort();
		w->stream[i] = machine_stream(any(w));
	}
}

static void tear_down(struct world *w)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		free(w->now[i]);
		free((i ? &w->host : &w->gpu)->side[1]);
	}
	if (w->host.registered)
		cuFileBufDeregister(w->host.base);
	free(w->host.base);
	machine_side_end(w->gpu.side[0]);
}

/* The file and its twin, both of the same noise. */
static void make_both(struct world *w, size_t size)
{
	unsigned char *data = malloc(size);

	fill(w, data, size);
	w->fd[0] = make(path, 0, data, size);
	w->fd[1] = make(twin, 0, data, size);
	free(data);
}

/* They are there, and stay where they are on the drive. */
static void take_bad(struct world *w, const struct setting *s)
{
	w->shared = true;
	w->bad = (struct fault){ MEDIA, EIO, s->bad_lo, s->bad_hi };
	w->bad_write = s->bad_write;
	w->command = s->command;
	snprintf(path, sizeof(path), "%s/%s", folder, s->bad);
	snprintf(twin, sizeof(twin), "%s.twin", path);
	w->fd[0] = open(path, O_RDWR);
	w->fd[1] = open(twin, O_RDWR);
	w->direct = open(path, O_RDONLY | O_DIRECT);
	if (w->fd[0] < 0 || w->fd[1] < 0 || w->direct < 0 ||
	    size_of(w->fd[0]) != (off_t)FILE_MAX)
		abort();
}

static uint64_t moved(enum pln_path by)
{
	struct pln_file_stats s = stats_of(NULL);

	return s.path[by].bytes_read + s.path[by].bytes_written;
}

static void set(const struct setting *s)
{
	if (s->cache)
		fresh_cache(s->json);
	else
		fresh(s->json);
	machine_set(s);
}

static void ended(struct world *w, const char *what)
{
	if (!check(!w->said[0], "%s: %u turns", what, w->turns))
		printf("# %s\n", w->said);
}

static void alone(const struct setting *s, unsigned int turns, uint64_t seed)
{
	struct world w = { .seed = seed * 0x9e3779b97f4a7c15ull | 1,
			   .faults = s->faults, .readers = s->cache,
			   .strict = s->strict,
			   .hi = FILE_MAX };
	uint64_t before, errors;
	void *g = gpu(GPU_SIZE);
	unsigned int i;

	set(s);
	before = moved(s->path);
	errors = stats_of(NULL).errors;
	if (s->bad)
		take_bad(&w, s);
	else
		make_both(&w, 150000);
	set_up(&w, turns, g, GPU_SIZE);
	if (w.readers) {
		close(w.fd[0]);
		w.fd[0] = open(path, O_RDONLY);
	}
	for (i = 0; i < FILES; i++)
		open_file(&w, i);
	live(&w);
	/* and what is on the drive */
	fsync(w.fd[0]);
	posix_fadvise(w.fd[0], 0, 0, POSIX_FADV_DONTNEED);
	same_file(&w);
	ended(&w, s->what);
	check(moved(s->path) > before, "%s: it took the path %s", s->what,
	      pln_path_name(s->path));
	if (s->bad)
		check(stats_of(NULL).errors > errors && w.within,
		      "%s: some met them, %u within a transfer of several commands", s->what, w.within);
	for (i = 0; i < FILES; i++)
		close_file(&w, i);
	close(w.fd[0]);
	close(w.fd[1]);
	if (s->bad)
		close(w.direct);
	names();
	tear_down(&w);
	fresh(NULL);
	gpu_free(g);
}

static void *live_beside(void *arg)
{
	machine_thread();
	live(arg);
	return NULL;
}

/* Each thread has a part of the file and of the memory, and pages in common. */
static void together(const struct setting *s, unsigned int turns, uint64_t seed)
{
	static struct world w[THREADS];
	const size_t part = FILE_MAX / THREADS - 1001, room = GPU_SIZE / THREADS;
	pthread_t thread[THREADS];
	void *g = gpu(GPU_SIZE);
	unsigned int i;

	set(s);
	memset(w, 0, sizeof(w));
	w[0].strict = s->strict;
	w[0].seed = seed * 0x9e3779b97f4a7c15ull | 1;
	make_both(&w[0], FILE_MAX);
	for (i = 0; i < FILES; i++)
		open_file(&w[0], i);
	for (i = 0; i < THREADS; i++) {
		if (i)
			w[i] = w[0];
		w[i].seed = (seed + i) * 0xd1342543de82ef95ull | 1;
		w[i].shared = true;
		w[i].lo = (off_t)(i * part);
		w[i].hi = w[i].lo + (off_t)part;
		set_up(&w[i], turns, (char *)g + i * room, room - 8);
	}
	machine_short_calls();
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, live_beside, &w[i]))
			abort();
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < THREADS; i++) {
		same_file(&w[i]);
		ended(&w[i], s->what);
		tear_down(&w[i]);
	}
	for (i = 0; i < FILES; i++)
		close_file(&w[0], i);
	close(w[0].fd[0]);
	close(w[0].fd[1]);
	fresh(NULL);
	gpu_free(g);
}

int main(int argc, char **argv)
{
	unsigned int i, turns = 300;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: cufile-differ DIR [TURNS [SEED]]\n");
		return 2;
	}
	if (argc > 2)
		turns = (unsigned int)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		first_seed = strtoull(argv[3], NULL, 10);
	alarm(1300);
	folder = argv[1];
	names();
	snprintf(config, sizeof(config), "%s/cufile.json", argv[1]);
	snprintf(logfile, sizeof(logfile), "%s/log", argv[1]);
	setenv("CUFILE_LOGFILE_PATH", logfile, 1);
	setenv("PEERLANE_KMSG", "/nonexistent", 1);
	printf("# seed %llu\n", (unsigned long long)first_seed);
	machine_start();
	for (i = 0; i < nsettings; i++)
		alone(&settings[i], turns, first_seed * 1000 + i);
	for (i = 0; i < nsettings; i++)
		if (!settings[i].cache && !settings[i].bad)
			together(&settings[i], turns / 4, first_seed * 2000 + i);
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
