// SPDX-License-Identifier: MIT
/*
 * The bounce path: file <-> pinned host memory <-> GPU memory.
 *
 * A transfer is cut into chunks.  A lane is pinned memory in two halves and a CUDA
 * stream; while the copies of one half to or from the GPU run, the lane does the
 * file IO of the other, so two stages are in flight even with one lane.  Calls of
 * CUDA cost more than what they move, so there are few: events only where a half is
 * used again, else one wait at the end.
 *
 * Large transfers use several lanes, as long as there are CPUs that no other
 * transfer has: the calling thread has one, helper threads bring theirs, and leave
 * them to it as soon as they have started their last copy: one thread waits for all
 * of them.  A helper that finds no free lane does not wait, so a transfer that has
 * its own always gets to its end.
 */
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "crew.h"
#include "lane.h"

/*
 * As measured on an H100 beside 16 CPUs.  What costs CPU is the kernel's copy out of
 * the page cache, 0.13 to 0.16 s/GiB, whoever does it, and waiting: for each other,
 * and for the GPU, which reads what is still in a CPU's cache at 19 GB/s.  Two lanes
 * from min_io_threshold_size_kb on and four from LARGE on are the last that make a
 * transfer quicker by what they cost.  Chunks are so small that all lanes have a few,
 * and not smaller, as each costs some microseconds of CUDA.
 */
#define LARGE		MIB(4)
#define LANES		2
#define LANES_LARGE	4
#define CHUNK		KIB(256)
/*
 * The largest, and that of a lane without helpers: other callers have the CPUs, and
 * what is in flight beside each other is theirs.  16 callers of 16 MiB get 42 GB/s,
 * and 29 of chunks of half the size.
 */
#define CHUNK_LARGE	MIB(1)
/* Requests to a device: a transfer takes its share of them when it begins */
#define REQUESTS	16
/*
 * With so many callers the link to the GPU is what all wait for, and reading what is
 * in their CPUs' caches holds it up.  16 callers of 1 MiB have 43 GB/s instead of 29
 * when they write it back to the last cache before the copy, those of 64 KiB 16.6
 * instead of 10.5, at two thirds of the CPU.  With four it takes more than it gives.
 */
#define GIVE_CALLERS	8
/* The first chunk of a write by one lane at most: until then the file is idle */
#define CHUNK_FIRST	KIB(256)
/* From here on a chunk is worth the question whether it is in the page cache */
#define COLD		KIB(128)

/* From here on a write into the page cache waits for its turn, see write_cached() */
#define TURN		KIB(256)

/*
 * So much of the page cache comes into this CPU's caches while it waits for a copy.  64 KiB
 * are there in 9 us, and then read() takes 3 of them, and not 9.
 */
#define WARM		KIB(64)
/* With more callers each CPU has another thing to do */
#define WARM_CALLERS	2

#define CLDEMOTE	(1u << 25)	/* of the processor's features */

#ifndef SYS_cachestat
#define SYS_cachestat	451
#endif

/* Lanes of helpers at a transfer */
struct party {
	struct crew_job job;
	struct xfer *x;
	struct lane *left;	/* by helpers, with copies under way; by x->lock */
};

/* ---- results ---- */

static void ended(struct xfer *x, uint64_t at, int err, CUresult cu_err)
{
	pthread_mutex_lock(&x->lock);
	if (at < x->end)
		x->end = at;
	if ((err || cu_err) && at < x->err_at) {
		x->err_at = at;
		x->err = err;
		x->cu_err = cu_err;
	}
	pthread_mutex_unlock(&x->lock);
	x->stop = true;
}

/* ---- file IO of one chunk ---- */

/*
 * Reads or writes all of it.  *@done: bytes moved; less than @n without an
 * error is the end of the file.
 */
static int move(int fd, char *buf, size_t n, uint64_t off, bool write,
		size_t *done)
{
	ssize_t r;

	*done = 0;
	while (*done < n) {
		if (write)
			r = pwrite(fd, buf + *done, n - *done,
				   (off_t)(off + *done));
		else
			r = pread(fd, buf + *done, n - *done,
				  (off_t)(off + *done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return errno;
		if (!r)
			return write ? EIO : 0;
		*done += (size_t)r;
	}
	return 0;
}

/* Whole blocks around [a, a + n); the data starts at buf + *shift. */
static int read_direct(struct file *f, char *buf, uint64_t a, size_t n,
		       size_t *shift, size_t *got)
{
	uint64_t lo = round_down(a, f->off_align);
	uint64_t hi = round_up(a + n, f->off_align);
	size_t done;
	int err;

	*shift = a - lo;
	err = move(f->direct_fd, buf, hi - lo, lo, false, &done);
	/* after an odd number of bytes there is no going on: end of the file */
	if (err == EINVAL && done % f->off_align)
		err = 0;
	*got = done > *shift ? min_of(done - *shift, n) : 0;
	return err && *got < n ? err : 0;
}

/* Is some of it not in the page cache?  Where the kernel does not say: no. */
static bool cold(struct file *f, uint64_t a, size_t n)
{
	struct {
		uint64_t off, len;
	} range = { round_down(a, PAGE), round_up(a + n, PAGE) - round_down(a, PAGE) };
	struct {
		uint64_t cached, dirty, writeback, evicted, recently;
	} is;
	struct stat st;

	if (syscall(SYS_cachestat, f->buffered_fd, &range, &is, 0)) {
		f->no_cachestat = true;
		return false;
	}
	if (is.cached >= range.len / PAGE)
		return false;
	if (fstat(f->fd, &st))
		return false;
	/* a device does not say its size here */
	if (!S_ISREG(st.st_mode))
		return true;
	/* behind its end nothing ever is */
	return (uint64_t)st.st_size > range.off &&
	       is.cached < (min_of(range.len, (uint64_t)st.st_size - range.off) +
			    PAGE - 1) / PAGE;
}

/*
 * What the page cache has there comes into this CPU's caches, by @fd.  The bytes are of no
 * use: all go to the same place.  If some are not there the kernel would begin to read them,
 * and a write wait for that.
 */
static void warm(struct file *f, int fd, uint64_t off, size_t n)
{
	struct iovec v[WARM / PAGE];
	char page[PAGE];
	size_t i, part;

	if (fd < 0 || f->no_cachestat || cold(f, off, n) || f->no_cachestat)
		return;
	for (i = 0; i < WARM / PAGE; i++)
		v[i] = (struct iovec){ page, PAGE };
	while (n) {
		part = min_of(n, WARM);
		if (preadv2(fd, v, (int)((part + PAGE - 1) / PAGE), (off_t)off, RWF_NOWAIT) <= 0)
			return;
		off += part;
		n -= part;
	}
}

/* It leaves this CPU's own caches: a hint, which does nothing where there is none. */
static void give_away(const char *buf, size_t n)
{
#if defined(__x86_64__)
	static _Atomic int known;	/* 0: not asked yet, -1: it cannot */
	unsigned int a, b, c = 0, d;
	int can = known;
	size_t i;

	if (!can)
		known = can = __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
			      (c & CLDEMOTE) ? 1 : -1;
	for (i = 0; can > 0 && i < n; i += 64)
		__asm__ volatile("cldemote %0" : : "m"(buf[i]));
#else
	(void)buf;
	(void)n;
#endif
}

static int read_chunk(struct xfer *x, char *buf, uint64_t a, size_t n,
		      size_t *shift, size_t *got)
{
	struct file *f = x->file;
	bool direct = f->buffered_fd < 0 ||
		      (f->direct_fd >= 0 && f->off_align <= PAGE && x->direct && !f->direct_bad);
	bool is_cold = x->may_be_cold && n >= COLD && !f->direct_bad &&
		       cold(f, a, n);
	size_t more;
	int err;

	*shift = *got = 0;
	/* there is room for a page around a chunk, not for a larger block */
	if ((direct || x->direct_only) && f->off_align > PAGE && (a % f->off_align || n % f->off_align))
		return EINVAL;
	if (direct || is_cold || x->direct_only) {
		err = read_direct(f, buf, a, n, shift, got);
		/* EIO may mean that a write into the page cache came between (iomap) */
		if (!err || x->direct_only || f->buffered_fd < 0 ||
		    (err != EINVAL && err != EIO && !is_cold))
			return err;
		if (err == EINVAL)
			f->direct_bad = true;
	}
	buf += *shift + *got;
	err = move(f->buffered_fd, buf, n - *got, a + *got, false, &more);
	if (more >= MIN_CHUNK && crew_callers() >= GIVE_CALLERS)
		give_away(buf, more);
	*got += more;
	return err;
}

/*
 * Writes into the page cache of one file wait for each other in the kernel, awake.  So of
 * large ones only a few are there, the one that writes and the next; others sleep until it
 * is their turn: 16 callers of 1 MiB on an H100 have 1.1 times the speed then, at two thirds
 * of the CPU.  Small ones are over before a sleeper is awake.  A block device has no such
 * lock.  Who has to wait warms what it will write: then it holds up the others for a shorter
 * time.  16 callers of 64 KiB on an H200 have 1.4 times the speed, at 0.7 of the CPU.
 */
static int write_cached(struct file *f, char *buf, size_t n, uint64_t off, size_t *done)
{
	bool turn = n >= TURN;
	int err;

	if (f->writers++)
		warm(f, file_warm_fd(f), off, n);
	while (turn && sem_wait(&f->turns))
		continue;	/* a signal */
	err = move(f->buffered_fd, buf, n, off, true, done);
	if (turn)
		sem_post(&f->turns);
	f->writers--;
	return err;
}

/* The data starts at buf + a % PAGE. */
static int write_chunk(struct xfer *x, char *buf, uint64_t a, size_t n,
		       size_t *done)
{
	struct file *f = x->file;
	bool direct = f->direct_fd >= 0 &&
		      ((x->direct && !f->direct_bad) || f->buffered_fd < 0);
	/* whole pages only, so that direct and buffered never share one */
	size_t unit = round_up(PAGE, f->off_align);
	uint64_t lo = round_up(a, unit), hi = round_down(a + n, unit);
	size_t part;
	int err = 0;

	*done = 0;
	buf += a % PAGE;
	/* The same request as by p2p, which moves whole blocks of the file */
	if (x->direct_only)
		return a % f->off_align || n % f->off_align ? EINVAL :
			move(f->direct_fd, buf, n, a, true, done);
	if (f->buffered_fd < 0) {
		/* a block that is not whole cannot be written this way */
		if (a % f->off_align || n % f->off_align)
			return EINVAL;
		return move(f->direct_fd, buf, n, a, true, done);
	}
	if (!direct)
		return write_cached(f, buf, n, a, done);
	if (lo >= hi)
		return write_cached(f, buf, n, a, done);
	if (lo > a) {
		err = write_cached(f, buf, lo - a, a, done);
		if (err)
			return err;
	}
	err = move(f->direct_fd, buf + (lo - a), hi - lo, lo, true, &part);
	*done += part;
	if (err == EINVAL && !part) {
		f->direct_bad = true;
		err = write_cached(f, buf + (lo - a), hi - lo, lo, &part);
		*done += part;
	}
	if (err)
		return err;
	if (hi < a + n) {
		err = write_cached(f, buf + (hi - a), a + n - hi, hi, &part);
		*done += part;
	}
	return err;
}

/* ---- the two stages ---- */

/*
 * For want of a stream of its own, in the default one, which waits for what is in the
 * program's before.  What comes after the copy it need not wait for: an event tells its
 * end.  Where that is not to be had, or CUDA would not return before the end of the
 * copy, nobody may put a transfer into a stream meanwhile.
 */
static int copy_by_default_stream(struct lane *l, uint64_t dev, char *buf, size_t n, bool in)
{
	bool copied, started;
	CUevent end;
	int r;

	if (cu.async && l->registered && !cu.EventCreate(&end, CU_EVENT_DISABLE_TIMING)) {
		if (!stream_hold_back()) {
			cu.EventDestroy(end);
			return CUDA_ERROR_NOT_PERMITTED;
		}
		r = in ? cu.HtoDAsync(dev, buf, n, NULL) : cu.DtoHAsync(buf, dev, n, NULL);
		copied = !r;
		if (copied)
			r = cu.EventRecord(end, NULL);
		started = copied && !r;
		if (copied && !started)
			stream_refuse_held();
		stream_go_on();
		if (started)
			r = cu.EventSync(end);
		cu.EventDestroy(end);
		if (started)
			return r;
		/* The lane may not go back before its end, which nothing else tells */
		if (copied) {
			r = cu.StreamSync(NULL);
			stream_accept();
			return r;
		}
	}
	/* if there is a copy already, this one ends behind it */
	if (!stream_refuse())
		return CUDA_ERROR_NOT_PERMITTED;
	r = in ? cu.HtoD(dev, buf, n) : cu.DtoH(buf, dev, n);
	stream_accept();
	return r;
}

static int copy_in(struct lane *l, uint64_t dev, char *buf, size_t n)
{
	int r;

	if (l->stream) {
		if (!cu.HtoDAsync(dev, buf, n, l->stream))
			return 0;
		r = lane_without_stream(l);
		if (r)
			return r;
	}
	return copy_by_default_stream(l, dev, buf, n, true);
}

static int copy_out(struct lane *l, char *buf, uint64_t dev, size_t n)
{
	int r;

	if (l->stream) {
		if (!cu.DtoHAsync(buf, dev, n, l->stream))
			return 0;
		r = lane_without_stream(l);
		if (r)
			return r;
	}
	return copy_by_default_stream(l, dev, buf, n, false);
}

static bool take_chunk(struct xfer *x, uint64_t *a, size_t *n)
{
	uint64_t lo = x->base, hi, end = x->off + x->len;
	size_t i;

	if (x->stop)
		return false;
	i = x->next++;
	if (i)
		lo += x->first + (i - 1) * x->chunk;
	if (lo >= end)
		return false;
	hi = lo + (i ? x->chunk : x->first);
	if (lo < x->off)
		lo = x->off;
	if (hi > end)
		hi = end;
	*a = lo;
	*n = hi - lo;
	return true;
}

/* Chunks that fit in a half, each with its slack */
static unsigned int per_half(const struct xfer *x, const struct lane *l)
{
	return (unsigned int)(l->size / (x->chunk + SLACK));
}

static void lane_read(struct xfer *x, struct lane *l)
{
	const unsigned int k = per_half(x, l);
	/* of the copies from each half, where they begin; and whether there are any */
	uint64_t at[2] = { 0, 0 };
	bool busy[2] = { false, false };
	unsigned int s = 0, i = 0;
	size_t n, got, shift;
	uint64_t a;
	int err, r, lost = 0;
	char *buf;

	while (take_chunk(x, &a, &n)) {
		if (i == k) {
			lost = l->stream ? cu.EventRecord(l->event[s], l->stream) : 0;
			s ^= 1;
			i = 0;
			if (!lost && busy[s] && l->stream)
				lost = cu.EventSync(l->event[s]);
			if (lost) {
				ended(x, a, 0, 0);	/* never read */
				break;
			}
			busy[s] = false;
		}
		buf = l->half[s] + i++ * (x->chunk + SLACK);
		err = read_chunk(x, buf, a, n, &shift, &got);
		if (got) {
			r = copy_in(l, x->dev + (a - x->off), buf + shift, got);
			if (r) {
				/* those before may be lost with it */
				ended(x, a, 0, r);
				lost = r;
				break;
			}
			if (l->stream && !busy[s]) {
				at[s] = a;
				busy[s] = true;
			}
		}
		if (got < n) {
			ended(x, a + got, err, 0);
			break;
		}
	}
	if (!busy[0] && !busy[1])
		return;
	l->unsettled = busy[0] && (!busy[1] || at[0] < at[1]) ? at[0] : at[1];
	if (lost)
		ended(x, l->unsettled, 0, lost);
}

/*
 * The last copy of a read by one lane is under way.  A thread that reads in order will want
 * what is next: it is warmed meanwhile.
 */
static void wait_usefully(struct xfer *x, struct lane *l)
{
	static __thread const struct file *latest;	/* only compared */
	static __thread uint64_t next;
	bool in_order = x->file == latest && x->off == next;

	latest = x->file;
	next = x->off + x->len;
	if (l->unsettled == UINT64_MAX)
		return;
	lane_mark(l, x->len);
	if (in_order && !x->direct && !x->direct_only && !x->cold && !x->stop &&
	    x->file->buffered_fd >= 0 && crew_callers() <= WARM_CALLERS)
		warm(x->file, x->file->buffered_fd, next, min_of(x->len, WARM));
}

static void settle(struct xfer *x, struct lane *l)
{
	int r = l->unsettled == UINT64_MAX ? 0 : lane_settle(l);

	if (r)
		ended(x, l->unsettled, 0, r);
	lane_put(l);
}

/* False: the transfer is over for this lane. */
static bool write_out(struct xfer *x, struct lane *l, unsigned int s,
		      uint64_t a, size_t n, bool last)
{
	struct file *f = x->file;
	size_t done;
	int r = 0, err;

	if (last)
		lane_mark(l, n);
	/* The first is waited for.  With others, who waits for the file warms: write_cached() */
	if (a == x->off && !x->direct && f->buffered_fd >= 0 && crew_callers() < 2)
		warm(f, file_warm_fd(f), a, min_of(n, WARM));
	if (last)
		r = lane_settle(l);
	else if (l->stream)
		r = cu.EventSync(l->event[s]);
	if (r) {
		ended(x, a, 0, r);
		return false;
	}
	err = write_chunk(x, l->half[s], a, n, &done);
	if (done < n) {
		ended(x, a + done, err, 0);
		return false;
	}
	return true;
}

static void lane_write(struct xfer *x, struct lane *l)
{
	unsigned int s = 0;
	bool have = false, settled = true;
	uint64_t a, pa = 0;
	size_t n, pn = 0;
	int r;

	while (take_chunk(x, &a, &n)) {
		/* who comes next waits for this one without what is behind it */
		r = have && l->stream ? cu.EventRecord(l->event[s ^ 1], l->stream) : 0;
		settled = false;
		r = r ? r : copy_out(l, l->half[s] + a % PAGE, x->dev + (a - x->off), n);
		if (r) {
			/* the one before may be lost with it: it is not written */
			ended(x, have ? pa : a, 0, r);
			goto drain;
		}
		if (have && !write_out(x, l, s ^ 1, pa, pn, false)) {
			/* this chunk is copied out, but never written */
			ended(x, a, 0, 0);
			have = false;
			goto drain;
		}
		have = true;
		pa = a;
		pn = n;
		s ^= 1;
	}
	if (have)
		settled = write_out(x, l, s ^ 1, pa, pn, true);
drain:
	/* nothing may be on its way into a buffer that goes back */
	if (!settled)
		lane_settle(l);
}

/* Then @l is to be settled. */
static void run(struct xfer *x, struct lane *l)
{
	l->unsettled = UINT64_MAX;
	if (x->write)
		lane_write(x, l);
	else
		lane_read(x, l);
}

static void help(struct crew_job *j)
{
	struct party *p = (struct party *)j;
	struct xfer *x = p->x;
	struct lane *l;
	CUcontext old;

	if (cu.Push(x->mem->ctx))
		return;
	l = lane_get(x->mem, x->chunk, false);
	if (l)
		run(x, l);
	if (l && l->unsettled == UINT64_MAX) {
		lane_put(l);
	} else if (l) {
		pthread_mutex_lock(&x->lock);
		l->next = p->left;
		p->left = l;
		pthread_mutex_unlock(&x->lock);
	}
	cu.Pop(&old);
}

static bool grows(const struct xfer *x)
{
	struct stat st;

	return !fstat(x->file->fd, &st) && S_ISREG(st.st_mode) &&
	       x->off + x->len > (uint64_t)st.st_size;
}

/* Lanes that may have a part in it at most. */
static size_t most_lanes(const struct xfer *x)
{
	size_t n = min_of(config.size[CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM],
			  config.size[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS]);

	/*
	 * Buffered writes to one file wait for each other in the kernel:
	 * further lanes would only burn CPU.
	 */
	if (!config.flag[CUFILE_PARAM_EXECUTION_PARALLEL_IO] ||
	    (x->write && !x->direct) ||
	    x->len < KIB(config.size
			 [CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB]))
		return 1;
	/*
	 * Chunks behind one that fails would leave the file longer than what the
	 * program is told.  ext4 lets only one write at a time make a file longer
	 * in any case.
	 */
	if (!n || (x->write && grows(x)))
		return 1;
	return n;
}

/* How many lanes, and the chunks. */
static size_t plan(struct xfer *x)
{
	size_t lanes = most_lanes(x), most = lane_chunk(), unit = MIN_CHUNK;
	size_t block = x->file->off_align > PAGE ? x->file->off_align : PAGE;
	/* who waits for the device needs no CPU */
	bool device = x->direct || x->cold;

	/* whole blocks, unless one is more than a lane has room for: read_chunk() */
	if (block > most)
		block = PAGE;
	if (block > unit)
		unit = block;
	most = round_down(most, block);
	lanes = min_of(lanes, x->len < LARGE ? LANES : LANES_LARGE);
	lanes = min_of(lanes, device ? crew_share(REQUESTS) : 1 + crew_spare());
	x->chunk = CHUNK_LARGE;
	if (lanes > 1 && device)
		x->chunk = x->len / lanes;
	else if (lanes > 1 && x->len / (4 * lanes) < CHUNK_LARGE)
		x->chunk = x->len / (4 * lanes) > CHUNK ? x->len / (4 * lanes) : CHUNK;
	x->chunk = min_of(round_up(x->chunk, unit), most);
	x->first = x->chunk;
	x->base = round_down(x->off, block);
	if (lanes < 2 && x->write && x->len > KIB(128) && !x->file->writers)
		/* the sooner there is something to write the better, if the file is idle */
		x->first = min_of(round_up(x->len / 4, unit),
				  min_of(round_up(CHUNK_FIRST, unit), most));
	else if (x->len <= x->chunk)
		/* all of it, wherever it begins: there is room for that */
		x->base = x->off;
	/* no larger slab than what there is to move */
	x->chunk = min_of(x->chunk, round_up(x->len, PAGE));
	return min_of(lanes, (x->off + x->len - x->base + x->chunk - 1) / x->chunk);
}

/* May what is not in the page cache be read around it? */
static bool may_be_cold(const struct xfer *x)
{
	const struct file *f = x->file;

	return !x->write && !x->direct && !x->direct_only &&
	       x->len >= COLD && f->buffered_fd >= 0 &&
	       f->direct_fd >= 0 && f->off_align <= PAGE && !f->direct_bad &&
	       !f->no_direct && !f->no_cachestat;
}

void bounce_run(struct xfer *x)
{
	struct party p = { .job.run = help, .x = x };
	struct lane *l;
	size_t lanes;

	x->may_be_cold = may_be_cold(x);
	x->cold = x->may_be_cold && cold(x->file, x->off, min_of(x->len, MIN_CHUNK));
	lanes = plan(x);
	x->next = 0;
	x->stop = false;
	x->done = 0;
	x->err = 0;
	x->cu_err = 0;
	x->end = x->off + x->len;
	x->err_at = UINT64_MAX;
	pthread_mutex_init(&x->lock, NULL);
	/* before those who leave theirs to this thread */
	l = lane_get(x->mem, x->chunk, true);
	if (l) {
		p.job.slow = x->direct || x->cold;
		if (lanes > 1)
			crew_call(&p.job, (unsigned int)lanes - 1, (unsigned int)
				  config.size[CUFILE_PARAM_EXECUTION_MAX_IO_THREADS]);
		run(x, l);
		if (!x->write)
			wait_usefully(x, l);
		settle(x, l);
		if (lanes > 1)
			crew_dismiss(&p.job);
		while ((l = p.left)) {
			p.left = l->next;
			settle(x, l);
		}
	} else {
		ended(x, x->off, ENOMEM, 0);
	}
	pthread_mutex_destroy(&x->lock);
	x->done = x->end - x->off;
	/* an error further on than the end of the file did not happen */
	if (x->err_at > x->end) {
		x->err = 0;
		x->cu_err = 0;
	}
}

void bounce_shutdown(void)
{
	crew_shutdown();
	lane_free_all();
}
