// SPDX-License-Identifier: MIT
/*
 * Read and write: which path each byte takes.
 *
 * The back ends are asked in the order of their table.  Each moves what it can,
 * and passes on what it cannot to those behind it: the ends of a transfer that are
 * no whole blocks, a piece for which there is no window, or all of it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "crew.h"
#include "ring.h"

static const char *words_of(int err)
{
	switch (err) {
	case ENODATA:
		return "the medium cannot be read or written there";
	case EILSEQ:
		return "what the medium has there is not what was written";
	default:
		return strerror(err);
	}
}

ssize_t io_system_error(struct io *io, int err, uint64_t off, size_t done)
{
	io_because(io, err, "%s of the file on device %u:%u failed from %llu on: "
		"%s (%d): %s", io->write ? "write" : "read",
		major(io->f->dev), minor(io->f->dev),
		(unsigned long long)(off + done), errname(err), err, words_of(err));
	if (done)
		return (ssize_t)done;
	/* O_DIRECT has more names for a medium that cannot be read */
	if (err == ENODATA || err == EILSEQ)
		err = EIO;
	errno = err;
	return -1;
}

ssize_t io_cuda_error(struct io *io, CUresult r)
{
	io_because(io, 0, "CUDA: %s (%d)", cu_name(r), r);
	return -CU_FILE_CUDA_DRIVER_ERROR;
}

ssize_t io_after(size_t done, ssize_t r)
{
	return r >= 0 || (r == -1 && done) ? (ssize_t)done + (r > 0 ? r : 0) :
					     r;
}

/* ---- the paths ---- */

static ssize_t bounce(struct io *io, uint64_t dev, uint64_t off, size_t len,
		      bool probe, int *err)
{
	struct xfer x = {
		.file = io->f, .mem = &io->mem, .dev = dev, .off = off,
		.len = len, .write = io->write,
		.direct = probe || io->f->user_direct ||
			  config.flag[CUFILE_PARAM_FORCE_ODIRECT_MODE],
		.direct_only = probe,
	};

	if (io->write && config.posix_unaligned_writes && !probe &&
	    (off % PAGE || len % PAGE))
		x.direct = false;
	bounce_run(&x);
	io->bytes[PLN_PATH_BOUNCE] += x.done;
	*err = x.err;
	if (x.cu_err)
		return io_cuda_error(io, x.cu_err);
	if (x.err)
		return io_system_error(io, io->gave_eio ? EIO : x.err, off, x.done);
	return (ssize_t)x.done;
}

ssize_t bounce_probe(struct io *io, uint64_t dev, uint64_t off, size_t len,
		     int *err)
{
	return bounce(io, dev, off, len, true, err);
}

static ssize_t bounce_move(struct io *io, uint64_t dev, uint64_t off,
			   size_t len, size_t *pass)
{
	int err;

	(void)pass;
	return bounce(io, dev, off, len, false, &err);
}

/*
 * How many of the next bytes go by one descriptor, and which.  What does not fill pages is
 * written through the page cache, where other writers' parts of the page are: see begin()
 * in p2p.c.
 */
static size_t posix_part(const struct io *io, uint64_t off, size_t len, int *fd)
{
	const struct file *f = io->f;
	uint64_t unit = round_up(PAGE, f->off_align);
	uint64_t lo = round_up(off, unit), hi = round_down(off + len, unit);

	*fd = f->user_direct ? f->direct_fd : f->buffered_fd;
	if (!io->write || !f->user_direct || f->buffered_fd < 0)
		return len;
	if (off == lo && lo < hi)
		return hi - lo;
	*fd = f->buffered_fd;
	return lo < hi ? lo - off : len;
}

static ssize_t posix_move(struct io *io, uint64_t addr, uint64_t off,
			  size_t len, size_t *pass)
{
	struct file *f = io->f;
	char *p = (char *)(uintptr_t)addr;
	size_t done = 0, n;
	bool buffered = false;
	ssize_t r;
	int fd;

	(void)pass;
	while (done < len) {
		n = posix_part(io, off + done, len - done, &fd);
		if (buffered)
			fd = f->buffered_fd;
		r = io->write ? pwrite(fd, p + done, n, (off_t)(off + done))
			      : pread(fd, p + done, n, (off_t)(off + done));
		if (r < 0 && errno == EINTR)
			continue;
		/*
		 * Not aligned for O_DIRECT, or a write into the page cache came between.  A
		 * direct write of memory that ends within it may have written what comes
		 * before, and fails all the same (iomap); the page cache says how much it took.
		 */
		if (r < 0 && (errno == EINVAL || (errno == EIO && !io->write) || errno == EFAULT) &&
		    fd != f->buffered_fd && f->buffered_fd >= 0) {
			buffered = true;
			continue;
		}
		/* after bytes that went, the next call meets it, as with read(2) */
		if (r < 0 && errno == EFAULT && !done) {
			io_because(io, EFAULT, "neither memory of CUDA nor "
				"memory of this process");
			return -CU_FILE_CUDA_POINTER_INVALID;
		}
		if (r < 0)
			return io_system_error(io, errno, off, done);
		if (!r)
			break;
		done += (size_t)r;
		io->bytes[PLN_PATH_POSIX] += (size_t)r;
	}
	return (ssize_t)done;
}

/* ---- the choice ---- */

/*
 * Moves @len bytes between @addr and @off, as io says.  Bytes that went, or a
 * negative result: fewer are all there are, but *@pass, which is 0 before, says
 * how many behind them are for another back end.  This one is asked again for
 * what is behind those.
 */
typedef ssize_t move_fn(struct io *io, uint64_t addr, uint64_t off, size_t len,
			size_t *pass);

/*
 * Puts into the ring what io_plan() has found: by the ring's thread, and @sqe has its
 * user_data.
 */
typedef void queue_fn(struct ring_io *r, struct io_uring_sqe *sqe);

static const struct backend {
	bool host;		/* for the program's own memory, else the GPU's */
	unsigned int path;	/* of what is queued */
	move_fn *move;
	queue_fn *queue;	/* or NULL */
} backends[] = {
	{ .path = PLN_PATH_P2P, .move = p2p_move, .queue = p2p_queue },
	{ .path = PLN_PATH_KERNEL, .move = kernel_move, .queue = kernel_queue },
	{ .move = p2p_part },
	{ .move = cache_move },
	{ .move = bounce_move },
	{ .host = true, .move = posix_move },
};

void io_queue(struct ring_io *r, struct io_uring_sqe *sqe)
{
	const struct backend *b = backends;

	while (b->path != r->io.way)
		b++;
	b->queue(r, sqe);
}

static ssize_t move(struct io *io, const struct backend *b, uint64_t addr,
		    uint64_t off, size_t len)
{
	size_t total = 0, pass;
	ssize_t r;

	while (b->host != (io->mem.kind == MEM_HOST))
		b++;
	do {
		pass = 0;
		r = b->move(io, addr + total, off + total, len - total, &pass);
		if (r < 0)
			break;
		total += (size_t)r;
		if (!pass)
			break;
		r = move(io, b + 1, addr + total, off + total, pass);
		if (r < 0)
			break;
		total += (size_t)r;
	} while ((size_t)r == pass && total < len);
	return r < 0 ? io_after(total, r) : (ssize_t)total;
}

/* The reason of the latest transfer of all, as file.reason_id is of a file */
static _Atomic uint64_t reason_id;

/* io's reason in full: also why the cache path did not move what was staged. */
static void say_all(struct io *io, ssize_t result)
{
	bool more = io->bytes[PLN_PATH_BOUNCE] && (io->no_cache_words || io->no_cache[0]);
	size_t n;

	if (io->reason_id && more)
		io->reason_id = io->no_cache_id ?
			io->reason_id << 32 | io->no_cache_id : 0;
	/* the same as before need not be told again, unless somebody asks */
	io->same = result >= 0 && !io->now->size && io->reason_id &&
		   io->reason_id == io->f->reason_id && io->reason_id == reason_id;
	if (io->same)
		return;
	p2p_say_late(io);
	if (!more)
		return;
	n = strlen(io->reason);
	snprintf(io->reason + n, sizeof(io->reason) - n, "; no cache: %s%s",
		 io->no_lease ? "no read lease: " : "",
		 io->no_cache_words ? io->no_cache_words : io->no_cache);
}

static ssize_t gpu_io(struct io *io, uint64_t dev, uint64_t off, size_t len)
{
	ssize_t r;

	window_look_at_times();
	crew_enter();
	r = cache_quick(io, dev, off, len) ? (ssize_t)len :
	    move(io, backends, dev, off, len);
	crew_leave();
	say_all(io, r);
	return r;
}

/* ---- accounts ---- */

static void account(struct tally *t, _Atomic uint64_t *id, const struct io *io,
		    ssize_t result)
{
	unsigned int i, best = PLN_PATH_NONE;

	for (i = 0; i < PLN_PATH_SLOTS; i++) {
		if (!io->bytes[i])
			continue;
		if (io->write) {
			t->writes[i]++;
			t->bytes_written[i] += io->bytes[i];
		} else {
			t->reads[i]++;
			t->bytes_read[i] += io->bytes[i];
		}
		if (io->bytes[i] > io->bytes[best])
			best = i;
	}
	if (best)
		t->last_path = best;
	if (io->bytes[PLN_PATH_BOUNCE] || io->bytes[PLN_PATH_CACHE])
		t->fallbacks++;
	if (result < 0)
		t->errors++;
	if (result < 0 || (io->reason[0] && !io->same &&
			   (!io->reason_id || io->reason_id != *id))) {
		pthread_mutex_lock(&t->lock);
		*id = io->reason_id;
		t->writing++;
		memcpy(t->reason, io->reason, sizeof(t->reason));
		t->last_errno = io->reason_errno;
		if (result < 0)
			t->last_error = (int)result;
		t->writing++;
		pthread_mutex_unlock(&t->lock);
	}
}

void io_account(struct io *io, size_t size, uint64_t off, ssize_t result,
		uint64_t began)
{
	account(&io->f->tally, &io->f->reason_id, io, result);
	account(&stats_total, &reason_id, io, result);
	result_add(io->now, io->bytes, io->reason_errno, io->reason);
	count_io(io, size, off, result, began);
	if (io->reason[0])
		log_line(LOG_DEBUG, "%s of %zu bytes at %llu: result %zd: %s",
			 io->write ? "write" : "read", size,
			 (unsigned long long)off, result, io->reason);
}

ssize_t io_run(struct file *f, uint64_t file_size, uint64_t base, size_t size, off_t off,
	       off_t buf_off, bool write, const struct ring_io *before,
	       struct pln_file_result *now)
{
	struct io io = { .f = f, .file_size = file_size, .write = write, .since = -1, .now = now };
	size_t done = before ? before->done : 0;
	uint64_t addr = base + (uint64_t)buf_off;
	uint64_t began = count_now();
	struct buf reg;
	CUcontext old;
	ssize_t r;
	int cu_err, saved;
	bool here;

	if (done)
		memcpy(io.bytes, before->io.bytes, sizeof(io.bytes));
	if (buf_find(base, &reg) &&
	    ((uint64_t)buf_off > reg.length ||
	     size > reg.length - (uint64_t)buf_off)) {
		io_because(&io, 0, "%zu bytes from offset %lld on are more than "
			"the registered %zu", size, (long long)buf_off,
			reg.length);
		r = -CU_FILE_INVALID_MAPPING_RANGE;
		goto out;
	}
	cu_err = mem_of(addr, &io.mem);
	if (cu_err) {
		r = io_cuda_error(&io, cu_err);
		goto out;
	}
	if (io.mem.kind == MEM_HOST) {
		if (!config.flag[CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY]) {
			io_because(&io, 0, "host memory, and allow_system_memory "
				"is off");
			r = -CU_FILE_CUDA_MEMORY_TYPE_INVALID;
		} else {
			r = move(&io, backends, addr, (uint64_t)off, size);
		}
		goto out;
	}
	if (mem_extent(&io.mem, addr, size) < size) {
		io_because(&io, 0, "%zu bytes are more than the memory at this "
			"address has", size);
		r = -CU_FILE_CUDA_POINTER_RANGE_ERROR;
		goto out;
	}
	here = cu.GetCurrent && !cu.GetCurrent(&old) && old == io.mem.ctx;
	cu_err = here ? 0 : cu.Push(io.mem.ctx);
	if (cu_err) {
		r = io_cuda_error(&io, cu_err);
		goto out;
	}
	r = gpu_io(&io, addr + done, (uint64_t)off + done, size - done);
	r = io_after(done, r);
	saved = errno;
	if (!here)
		cu.Pop(&old);
	if (io.since >= 0)
		close(io.since);
	errno = saved;
out:
	saved = errno;
	io_account(&io, size, (uint64_t)off, r, began);
	errno = saved;
	return r;
}
