// SPDX-License-Identifier: MIT
/*
 * Read and write: which path each byte takes.
 *
 * Memory of the program's own takes plain pread and pwrite.  GPU memory takes
 * p2p when everything needed is there; blocks that are not whole, and whatever
 * p2p cannot do, take the bounce path.  The first transfer of each pair of
 * storage device and GPU finds out whether p2p works between the two, and the
 * answer is kept with its reason.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

#define PAGE		KIB(4)

static const char *meaning(int err)
{
	switch (err) {
	case EFAULT:
		return "the kernel cannot take pages of the GPU's mapping: no "
		       "P2PDMA in this kernel or in the GPU's driver";
	case EINVAL:
	case EREMOTEIO:
		return "the kernel refuses DMA between this storage device and "
		       "this GPU";
	case EOPNOTSUPP:
		return "the storage driver does not do peer-to-peer DMA";
	default:
		return strerror(err);
	}
}

/* What could go p2p must not go another way. */
static bool p2p_only(void)
{
	return config.strict ||
	       !config.flag[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE];
}

/*
 * May be staged what is no whole block?  In strict mode never; without compat
 * mode unless p2p is refused, as then all of the file would be.
 */
static bool may_stage(struct io *io)
{
	if (io->f->refused && !config.strict)
		io_because(io, 0, "unaligned, and p2p of this file was refused "
			"before");
	return !io->f->refused && !config.strict;
}

/* Errors that say "this way does not work", not "this data is lost". */
static bool path_error(int err)
{
	return err == EFAULT || err == EINVAL || err == EREMOTEIO ||
	       err == EOPNOTSUPP || err == ENXIO || err == ENOTTY ||
	       err == ENODEV || err == ENOMEM || err == EAGAIN;
}

/* Errors of this moment: the next request may well go the same way. */
static bool transient(int err)
{
	return err == ENOMEM || err == EAGAIN;
}

/*
 * What the program gets for a system call that failed after @done bytes: those
 * bytes, as from read(2) and write(2), or the error.  The next call then meets
 * it.
 */
static ssize_t system_error(struct io *io, int err, size_t done)
{
	io_because(io, err, "%s of the file failed after %zu bytes: %s (%d): %s",
		io->write ? "write" : "read", done, errname(err), err,
		strerror(err));
	if (done)
		return (ssize_t)done;
	/* O_DIRECT has more names for a medium that cannot be read */
	if (err == ENODATA || err == EILSEQ)
		err = EIO;
	errno = err;
	return -1;
}

static ssize_t cuda_error(struct io *io, CUresult r)
{
	io_because(io, 0, "CUDA: %s (%d)", cu_name(r), r);
	return -CU_FILE_CUDA_DRIVER_ERROR;
}

/* ---- the paths ---- */

/* Bytes that went, or a negative result; *@err: what ended it, or 0. */
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
	if (err)
		*err = x.err;
	if (x.cu_err)
		return cuda_error(io, x.cu_err);
	if (x.err)
		return system_error(io, x.err, x.done);
	return (ssize_t)x.done;
}

/* The result of a transfer of which @done bytes went before this part of it. */
static ssize_t after(size_t done, ssize_t r)
{
	return r >= 0 || (r == -1 && done) ? (ssize_t)done + (r > 0 ? r : 0) :
					     r;
}

/*
 * A range of addresses may be mapped to one allocation after another: io's memory
 * is that at @dev from here on.  False: there is none of this GPU.
 */
static bool follow(struct io *io, uint64_t dev)
{
	struct mem next;

	if (!io->mem.len ||
	    (dev >= io->mem.start && dev - io->mem.start < io->mem.len))
		return true;
	if (mem_of(dev, &next) || next.kind != io->mem.kind ||
	    next.gpu != io->mem.gpu)
		return false;
	io->mem = next;
	return true;
}

/* Is this still the memory that the piece began with? */
static bool memory_gone(struct io *io, uint64_t dev)
{
	struct mem now;

	return mem_of(dev, &now) || now.kind == MEM_HOST ||
	       now.buffer_id != io->mem.buffer_id;
}

/* Neither p2p nor another way, for io's reason. */
static ssize_t refuse(struct io *io, enum cause cause)
{
	verdict_tell(io, cause);
	return -CU_FILE_IO_NOT_SUPPORTED;
}

static ssize_t freed(struct io *io)
{
	io_because(io, EFAULT, "the GPU memory was freed during the transfer");
	return -CU_FILE_CUDA_POINTER_INVALID;
}

enum went { WENT, WENT_SHORT, SEAM, NOT_MAPPED, NOT_MOVED };

/*
 * One piece of a transfer, up to the end of a window at most: *@piece bytes.
 * *@done: bytes that went.  NOT_MAPPED: there is no window, because of io's
 * reason, nor will there be one if *@err is set.
 * NOT_MOVED: the system call failed with *@err.  SEAM: a block lies across two
 * windows.
 */
static enum went p2p_piece(struct io *io, uint64_t dev, uint64_t off,
			   size_t len, size_t *done, size_t *piece, int *err)
{
	size_t max = KIB(config.size
			 [CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB]);
	size_t unit = io->f->off_align > io->f->mem_align ?
		      io->f->off_align : io->f->mem_align;
	int turn, fd = io->f->direct_fd;
	struct window *w;
	size_t avail;
	CUresult cu_err;
	bool fresh;
	ssize_t r;
	char *p;

	*done = 0;
	*err = 0;
	for (turn = 0; turn < 2; turn++) {
		int e = -window_get(&io->mem, dev, min_of(len, max), &w,
				    &avail, &fresh, &cu_err);

		*piece = min_of(len, avail ? round_up(avail, unit) :
				      KIB(config.window_kb));
		if (e) {
			*err = avail ? e : 0;
			if (e == ENOSPC)
				io_because(io, e, "BAR1 is full of mappings in "
					"use");
			else if (cu_err)
				io_because(io, e, "no dma-buf of this GPU memory: "
					"%s (%d)", cu_name(cu_err), cu_err);
			else
				io_because(io, e, "the GPU's dma-buf cannot be "
					"mapped: %s (%d): %s", errname(e), e,
					e == ENOTSUPP || e == ENODEV ?
					"its driver has no mmap for it" :
					strerror(e));
			return NOT_MAPPED;
		}
		*piece = avail < len ? round_down(avail, unit) : len;
		if (!*piece) {
			window_put(w);
			*piece = min_of(len, unit);
			io_because(io, 0, "a block lies across two mappings");
			return SEAM;
		}
		if (io->untried && io->since < 0)
			io->since = log_kernel_now();
		p = w->host + (dev - w->start);
		do {
			r = io->write ? pwrite(fd, p + *done, *piece - *done,
					       (off_t)(off + *done))
				      : pread(fd, p + *done, *piece - *done,
					      (off_t)(off + *done));
			e = r < 0 ? errno : 0;
			if (r > 0)
				*done += (size_t)r;
			/* blocks only: after part of one there is no going on */
		} while (e == EINTR || (r > 0 && *done < *piece &&
					!(*done % io->f->off_align)));
		if (e == EFAULT)
			window_kill(w);	/* it may have been revoked */
		else
			window_put(w);
		if (!e && !*done && io->write)
			e = EIO;	/* no progress and no reason */
		if (!e)
			return *done < *piece ? WENT_SHORT : WENT;
		*err = e;
		/* an old window may have been of memory freed since */
		if (e != EFAULT || fresh)
			break;
		dev += *done;
		off += *done;
		len -= *done;
		if (*done) {
			*piece = *done;
			return WENT;
		}
	}
	return NOT_MOVED;
}

/* Bytes that went, or a negative result.  All of it is whole blocks. */
static ssize_t p2p(struct io *io, uint64_t dev, uint64_t off, size_t len)
{
	enum state state = verdict_ask(io);
	size_t total = 0, done, piece;
	int err, probed = 0;
	enum cause cause;
	enum went w;
	ssize_t r;

	io->untried = state == UNKNOWN;
	while (total < len) {
		if (!follow(io, dev + total))
			return freed(io);
		if (state == REFUSED) {
			r = bounce(io, dev + total, off + total, len - total,
				   false, NULL);
			return after(total, r);
		}
		w = p2p_piece(io, dev + total, off + total, len - total, &done,
			      &piece, &err);
		total += done;
		io->bytes[PLN_PATH_P2P] += done;
		if (done && state == UNKNOWN) {
			state = WORKS;
			io->untried = false;
			verdict_set(io, WORKS);
		}
		if (done && io->f->refused)
			io->f->refused = false;
		if (w == WENT)
			continue;
		if (w == WENT_SHORT)
			break;
		if (done)
			piece -= done;
		if (w == NOT_MOVED && !path_error(err))
			return system_error(io, err, total);
		if (memory_gone(io, dev + total))
			return freed(io);
		if (w == NOT_MOVED)
			io_because(io, err, "p2p %s failed: %s (%d): %s%s",
				io->write ? "write" : "read", errname(err),
				err, meaning(err),
				err == EINVAL && state == UNKNOWN ?
				", or direct IO on this file" : "");
		if (w == NOT_MAPPED)
			cause = !err || transient(err) ? NO_ROOM : MEMORY;
		else
			cause = w == SEAM ? ALIGNMENT :
				transient(err) ? SHORTAGE : PAIR;
		if (w == SEAM ? !may_stage(io) : p2p_only()) {
			if (cause == PAIR && state == UNKNOWN) {
				verdict_kernel_says(io);
				io->f->refused = true;
			}
			return refuse(io, cause);
		}
		if (w == NOT_MAPPED || (cause == PAIR && state == WORKS))
			verdict_tell(io, cause);
		if (w != NOT_MOVED || state == WORKS || transient(err)) {
			r = bounce(io, dev + total, off + total, piece, false,
				   NULL);
		} else {
			/*
			 * Is it p2p that fails, or O_DIRECT?  The same request
			 * with host memory tells.
			 */
			r = bounce(io, dev + total, off + total, piece, true,
				   &probed);
			if (r >= 0 && !probed) {
				io_because(io, err, "p2p refused: %s (%d): %s",
					errname(err), err, meaning(err));
				verdict_kernel_says(io);
				verdict_set(io, REFUSED);
				verdict_tell(io, PAIR);
				state = REFUSED;
			} else if (r < 0 && probed == EINVAL) {
				io->f->direct_bad = true;
				io_because(io, EINVAL, "O_DIRECT does not work on "
					"this file, not even with host memory");
				verdict_tell(io, NO_DIRECT);
				r = bounce(io, dev + total, off + total,
					   len - total, false, NULL);
				return after(total, r);
			}
		}
		if (r < 0)
			return after(total, r);
		total += (size_t)r;
		if ((size_t)r < piece)
			break;
	}
	return (ssize_t)total;
}

/* Why p2p is out of the question for all of this. */
static enum cause no_p2p(struct io *io)
{
	struct file *f = io->f;

	if (config.flag[CUFILE_PARAM_FORCE_COMPAT_MODE]) {
		io_because(io, 0, "force_compat_mode is set");
		return SETTING;
	}
	if (!config.flag[CUFILE_PARAM_USE_PCIP2PDMA]) {
		io_because(io, 0, "use_pci_p2pdma is off");
		return SETTING;
	}
	if (io->mem.kind == MEM_MANAGED) {
		io_because(io, 0, "managed memory has no fixed place on the GPU");
		return MANAGED;
	}
	if (f->direct_fd < 0)
		io_because(io, f->direct_errno, "the file cannot be opened with "
			"O_DIRECT: %s (%d): %s", errname(f->direct_errno),
			f->direct_errno, strerror(f->direct_errno));
	else if (f->no_direct)
		io_because(io, 0, "%s", f->no_direct);
	else if (f->direct_bad)
		io_because(io, EINVAL, "O_DIRECT does not work on this file");
	else
		return POSSIBLE;
	return NO_DIRECT;
}

static ssize_t gpu_io(struct io *io, uint64_t dev, uint64_t off, size_t len)
{
	uint32_t unit = io->f->off_align;
	uint64_t lo, hi;
	size_t total = 0;
	enum cause cause;
	struct stat st;
	ssize_t r;

	/*
	 * Of a file that ends before, no more than its last block: direct IO
	 * would fill the memory behind it with zeros.
	 */
	if (!io->write && !fstat(io->f->fd, &st) && S_ISREG(st.st_mode)) {
		uint64_t end = round_up((uint64_t)st.st_size, PAGE);

		if (off < end && len > end - off)
			len = end - off;
	}
	cause = no_p2p(io);
	if (cause != POSSIBLE) {
		if (p2p_only())
			return refuse(io, cause);
		verdict_tell(io, cause);
		return bounce(io, dev, off, len, false, NULL);
	}
	/*
	 * Writes leave pages that are not whole to the page cache, whatever the
	 * drive's block is.  So what goes through the cache and what goes around
	 * it never share a page.  On a block device nothing else keeps the page of
	 * a neighbour's buffered write from being written over a direct one.
	 */
	if (io->write && (off % PAGE || len % PAGE) && unit < PAGE)
		unit = PAGE;
	lo = round_up(off, unit);
	hi = round_down(off + len, unit);
	if (lo >= hi || (dev + (lo - off)) % io->f->mem_align) {
		io_because(io, 0, lo >= hi ? "unaligned: no whole block of %u "
			"bytes" : "unaligned: the GPU address does not match "
			"the file offset in blocks of %u bytes",
			lo >= hi ? unit : io->f->mem_align);
		if (!may_stage(io))
			return refuse(io, ALIGNMENT);
		if (lo < hi)
			verdict_tell(io, ALIGNMENT);
		return bounce(io, dev, off, len, false, NULL);
	}
	if (lo > off || hi < off + len) {
		io_because(io, 0, "unaligned: %llu bytes before and %llu after "
			"the whole blocks of %u",
			(unsigned long long)(lo - off),
			(unsigned long long)(off + len - hi), unit);
		/* without a part before them, the whole blocks tell */
		if (config.strict || (lo > off && !may_stage(io)))
			return refuse(io, ALIGNMENT);
	}
	if (lo > off) {
		r = bounce(io, dev, off, lo - off, false, NULL);
		if (r < 0 || (size_t)r < lo - off)
			return r;
		total = (size_t)r;
	}
	r = p2p(io, dev + (lo - off), lo, hi - lo);
	if (r < 0)
		return after(total, r);
	total += (size_t)r;
	if ((size_t)r < hi - lo || hi == off + len)
		return (ssize_t)total;
	r = bounce(io, dev + (hi - off), hi, off + len - hi, false, NULL);
	return after(total, r);
}

static ssize_t posix_io(struct io *io, uint64_t addr, uint64_t off, size_t len)
{
	struct file *f = io->f;
	char *p = (char *)(uintptr_t)addr;
	size_t done = 0;
	int fd = f->user_direct ? f->direct_fd : f->buffered_fd;
	ssize_t r;

	while (done < len) {
		r = io->write ? pwrite(fd, p + done, len - done,
				       (off_t)(off + done))
			      : pread(fd, p + done, len - done,
				      (off_t)(off + done));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EINVAL && fd != f->buffered_fd &&
		    f->buffered_fd >= 0) {
			fd = f->buffered_fd;	/* not aligned for O_DIRECT */
			continue;
		}
		if (r < 0 && errno == EFAULT) {
			io_because(io, EFAULT, "neither memory that CUDA knows "
				"nor memory of this process");
			return -CU_FILE_CUDA_POINTER_INVALID;
		}
		if (r < 0)
			return system_error(io, errno, done);
		if (!r)
			break;
		done += (size_t)r;
		io->bytes[PLN_PATH_POSIX] += (size_t)r;
	}
	return (ssize_t)done;
}

/* ---- accounts ---- */

static void account(struct tally *t, const struct io *io, ssize_t result)
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
	if (io->bytes[PLN_PATH_BOUNCE])
		t->fallbacks++;
	if (result < 0)
		t->errors++;
	if (result < 0 || io->reason[0]) {
		pthread_mutex_lock(&t->lock);
		memcpy(t->reason, io->reason, sizeof(t->reason));
		t->last_errno = io->reason_errno;
		if (result < 0)
			t->last_error = (int)result;
		pthread_mutex_unlock(&t->lock);
	}
}

ssize_t io_run(struct file *f, uint64_t base, size_t size, off_t off,
	       off_t buf_off, bool write)
{
	struct io io = { .f = f, .write = write, .since = -1 };
	uint64_t addr = base + (uint64_t)buf_off;
	struct buf reg;
	CUcontext old;
	ssize_t r;
	int cu_err, saved;

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
		r = cuda_error(&io, cu_err);
		goto out;
	}
	if (io.mem.kind == MEM_HOST) {
		if (!config.flag[CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY]) {
			io_because(&io, 0, "host memory, and allow_system_memory "
				"is off");
			r = -CU_FILE_CUDA_MEMORY_TYPE_INVALID;
		} else {
			r = posix_io(&io, addr, (uint64_t)off, size);
		}
		goto out;
	}
	if (mem_extent(&io.mem, addr, size) < size) {
		io_because(&io, 0, "%zu bytes are more than the memory at this "
			"address has", size);
		r = -CU_FILE_CUDA_POINTER_RANGE_ERROR;
		goto out;
	}
	cu_err = cu.Push(io.mem.ctx);
	if (cu_err) {
		r = cuda_error(&io, cu_err);
		goto out;
	}
	r = gpu_io(&io, addr, (uint64_t)off, size);
	saved = errno;
	cu.Pop(&old);
	if (io.since >= 0)
		close(io.since);
	errno = saved;
out:
	saved = errno;
	account(&f->tally, &io, r);
	account(&stats_total, &io, r);
	if (io.reason[0])
		log_line(LOG_DEBUG, "%s of %zu bytes at %lld: result %zd: "
			 "%s", write ? "write" : "read", size, (long long)off,
			 r, io.reason);
	errno = saved;
	return r;
}
