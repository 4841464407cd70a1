// SPDX-License-Identifier: MIT
/*
 * The bounce path: file <-> pinned host memory <-> GPU memory.
 *
 * A transfer is cut into chunks.  A lane is two pinned buffers and a CUDA
 * stream; while the copy of one buffer to or from the GPU runs, the lane does
 * the file IO of the other, so two stages are in flight even with one lane.
 * Large transfers use several lanes: the calling thread has one, helper
 * threads bring theirs.  A helper that finds no free lane does not wait, so a
 * transfer that has its own always gets to its end.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lane.h"

#define PAGE		KIB(4)

struct job {
	struct job *next;
	struct xfer *x;
	unsigned int want, running;
};

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_come = PTHREAD_COND_INITIALIZER;
static pthread_cond_t job_done = PTHREAD_COND_INITIALIZER;
static struct job *jobs;
static pthread_t helper[64];
static unsigned int helpers;
static bool quit;

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
	if (err && done < *shift + n)
		return err;
	*got = done > *shift ? min_of(done - *shift, n) : 0;
	return 0;
}

static int read_chunk(struct xfer *x, char *buf, uint64_t a, size_t n,
		      size_t *shift, size_t *got)
{
	struct file *f = x->file;
	bool direct = f->direct_fd >= 0 && f->off_align <= PAGE &&
		      ((x->direct && !f->direct_bad) || f->buffered_fd < 0);
	int err;

	*got = 0;
	if (direct || x->direct_only) {
		err = read_direct(f, buf, a, n, shift, got);
		if (err != EINVAL || x->direct_only || f->buffered_fd < 0)
			return err;
		f->direct_bad = true;
	}
	*shift = 0;
	return move(f->buffered_fd, buf, n, a, false, got);
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
		return move(f->buffered_fd, buf, n, a, true, done);
	if (lo >= hi)
		return move(f->buffered_fd, buf, n, a, true, done);
	if (lo > a) {
		err = move(f->buffered_fd, buf, lo - a, a, true, done);
		if (err)
			return err;
	}
	err = move(f->direct_fd, buf + (lo - a), hi - lo, lo, true, &part);
	*done += part;
	if (err == EINVAL && !part) {
		f->direct_bad = true;
		err = move(f->buffered_fd, buf + (lo - a), hi - lo, lo, true,
			   &part);
		*done += part;
	}
	if (err)
		return err;
	if (hi < a + n) {
		err = move(f->buffered_fd, buf + (hi - a), a + n - hi, hi,
			   true, &part);
		*done += part;
	}
	return err;
}

/* ---- the two stages ---- */

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
	if (!stream_hold_back())
		return CUDA_ERROR_NOT_PERMITTED;
	r = cu.HtoD(dev, buf, n);
	stream_go_on();
	return r;
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
	if (!stream_hold_back())
		return CUDA_ERROR_NOT_PERMITTED;
	r = cu.DtoH(buf, dev, n);
	stream_go_on();
	return r;
}

/* A transfer of one chunk waits for the stream and needs no event. */
static bool single(const struct xfer *x)
{
	return x->off % x->chunk + x->len <= x->chunk;
}

static int mark(const struct xfer *x, struct lane *l, unsigned int s)
{
	return l->stream && !single(x) ?
	       cu.EventRecord(l->event[s], l->stream) : 0;
}

static int settle(const struct xfer *x, struct lane *l, unsigned int s)
{
	if (!l->stream)
		return 0;
	return single(x) ? cu.StreamSync(l->stream) : cu.EventSync(l->event[s]);
}

static bool take_chunk(struct xfer *x, uint64_t *a, size_t *n)
{
	uint64_t base = round_down(x->off, x->chunk), end = x->off + x->len;
	uint64_t lo, hi;

	if (x->stop)
		return false;
	lo = base + (uint64_t)x->next++ * x->chunk;
	if (lo >= end)
		return false;
	hi = lo + x->chunk;
	if (lo < x->off)
		lo = x->off;
	if (hi > end)
		hi = end;
	*a = lo;
	*n = hi - lo;
	return true;
}

static void lane_read(struct xfer *x, struct lane *l)
{
	uint64_t at[2] = { 0, 0 };
	bool busy[2] = { false, false };
	size_t n, got, shift;
	unsigned int s = 0;
	uint64_t a;
	int err, r;

	while (take_chunk(x, &a, &n)) {
		if (busy[s]) {
			r = settle(x, l, s);
			busy[s] = false;
			if (r) {
				ended(x, at[s], 0, r);
				ended(x, a, 0, 0);	/* never read */
				break;
			}
		}
		err = read_chunk(x, l->buf[s], a, n, &shift, &got);
		if (got) {
			r = copy_in(l, x->dev + (a - x->off), l->buf[s] + shift,
				    got);
			r = r ? r : mark(x, l, s);
			if (r) {
				ended(x, a, 0, r);
				break;
			}
			at[s] = a;
			busy[s] = l->stream != NULL;
		}
		if (got < n) {
			ended(x, a + got, err, 0);
			break;
		}
		s ^= 1;
	}
	for (s = 0; s < 2; s++)
		if (busy[s]) {
			r = settle(x, l, s);
			if (r)
				ended(x, at[s], 0, r);
		}
}

/* False: the transfer is over for this lane. */
static bool write_out(struct xfer *x, struct lane *l, unsigned int s,
		      uint64_t a, size_t n)
{
	size_t done;
	int r = settle(x, l, s), err;

	if (r) {
		ended(x, a, 0, r);
		return false;
	}
	err = write_chunk(x, l->buf[s], a, n, &done);
	if (done < n) {
		ended(x, a + done, err, 0);
		return false;
	}
	return true;
}

static void lane_write(struct xfer *x, struct lane *l)
{
	unsigned int s = 0;
	bool have = false;
	uint64_t a, pa = 0;
	size_t n, pn = 0;
	int r;

	while (take_chunk(x, &a, &n)) {
		r = copy_out(l, l->buf[s] + a % PAGE, x->dev + (a - x->off), n);
		r = r ? r : mark(x, l, s);
		if (r) {
			ended(x, a, 0, r);
			break;
		}
		if (have && !write_out(x, l, s ^ 1, pa, pn)) {
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
		write_out(x, l, s ^ 1, pa, pn);
drain:
	/* nothing may be on its way into a buffer that goes back */
	if (l->stream)
		cu.StreamSync(l->stream);
}

static bool run(struct xfer *x, bool wait)
{
	struct lane *l = lane_get(x->mem, wait);

	if (!l)
		return false;
	if (x->write)
		lane_write(x, l);
	else
		lane_read(x, l);
	lane_put(l);
	return true;
}

/* ---- helpers ---- */

static void *help(void *arg)
{
	struct job *j, **p;

	(void)arg;
	pthread_mutex_lock(&job_lock);
	while (!quit) {
		CUcontext old;

		j = jobs;
		if (!j) {
			pthread_cond_wait(&job_come, &job_lock);
			continue;
		}
		j->running++;
		if (!--j->want) {
			for (p = &jobs; *p != j; p = &(*p)->next)
				continue;
			*p = j->next;
		}
		pthread_mutex_unlock(&job_lock);
		if (!cu.Push(j->x->mem->ctx)) {
			run(j->x, false);
			cu.Pop(&old);
		}
		pthread_mutex_lock(&job_lock);
		if (!--j->running)
			pthread_cond_broadcast(&job_done);
	}
	pthread_mutex_unlock(&job_lock);
	return NULL;
}

static void ask(struct job *j)
{
	struct job **p;

	pthread_mutex_lock(&job_lock);
	while (helpers < j->want && helpers < 64 && !quit) {
		sigset_t all, old;
		int r;

		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		r = pthread_create(&helper[helpers], NULL, help, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (r)
			break;	/* it works with fewer, and with none */
		helpers++;
	}
	for (p = &jobs; *p; p = &(*p)->next)
		continue;
	*p = j;
	if (j->want == 1)
		pthread_cond_signal(&job_come);
	else
		pthread_cond_broadcast(&job_come);
	pthread_mutex_unlock(&job_lock);
}

static void dismiss(struct job *j)
{
	struct job **p;

	pthread_mutex_lock(&job_lock);
	for (p = &jobs; *p; p = &(*p)->next)
		if (*p == j) {
			*p = j->next;
			break;
		}
	while (j->running)
		pthread_cond_wait(&job_done, &job_lock);
	pthread_mutex_unlock(&job_lock);
}

static bool grows(const struct xfer *x)
{
	struct stat st;

	return !fstat(x->file->fd, &st) && S_ISREG(st.st_mode) &&
	       x->off + x->len > (uint64_t)st.st_size;
}

void bounce_run(struct xfer *x)
{
	size_t n, slab = lane_size(&n), parts = 1, ways;
	struct job j = { .x = x };

	/*
	 * Buffered writes to one file wait for each other in the kernel:
	 * further lanes would only burn CPU.
	 */
	if (config.flag[CUFILE_PARAM_EXECUTION_PARALLEL_IO] &&
	    (!x->write || x->direct) &&
	    x->len >= KIB(config.size
			  [CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB])) {
		parts = min_of(config.size[
				CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM],
			       config.size[
				CUFILE_PARAM_EXECUTION_MAX_IO_THREADS]);
		/* waking more than four helpers costs more than it brings */
		if (parts > 4 && parts > x->len / MIB(1))
			parts = x->len / MIB(1) > 4 ? x->len / MIB(1) : 4;
		/*
		 * Chunks behind one that fails would leave the file longer than
		 * what the program is told.  ext4 lets only one write at a time
		 * make a file longer in any case.
		 */
		if (!parts || (x->write && grows(x)))
			parts = 1;
	}
	ways = parts > 1 ? parts * 2 : 4;
	x->chunk = round_up((x->len + ways - 1) / ways, MIN_CHUNK);
	if (x->chunk > slab)
		x->chunk = slab;
	parts = min_of(parts, (x->len + x->chunk - 1) / x->chunk);
	x->next = 0;
	x->stop = false;
	x->done = 0;
	x->err = 0;
	x->cu_err = 0;
	x->end = x->off + x->len;
	x->err_at = UINT64_MAX;
	pthread_mutex_init(&x->lock, NULL);
	if (parts > 1) {
		j.want = (unsigned int)parts - 1;
		ask(&j);
	}
	if (!run(x, true))
		ended(x, x->off, ENOMEM, 0);
	if (parts > 1)
		dismiss(&j);
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
	unsigned int i;

	pthread_mutex_lock(&job_lock);
	quit = true;
	pthread_cond_broadcast(&job_come);
	pthread_mutex_unlock(&job_lock);
	for (i = 0; i < helpers; i++)
		pthread_join(helper[i], NULL);
	helpers = 0;
	quit = false;
	lane_free_all();
}
