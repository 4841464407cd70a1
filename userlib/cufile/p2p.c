// SPDX-License-Identifier: MIT
/*
 * The p2p path and the kernel path: whole blocks go between the storage device and
 * windows of GPU memory.  Where a window is a mapping, the p2p path moves them; where it
 * is a registration with the kernel module, the kernel path, by the module.  All else is
 * the same.  The first transfer of each pair of device and GPU finds out whether
 * that works between the two, and the answer is kept with its reason; a refusal
 * for some time (verdict.c).
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "ring.h"
#include "scratch.h"

/* In @why, or a text that stays */
static const char *meaning(const struct io *io, int err, char *why, size_t size)
{
	bool kernel = io->way == PLN_PATH_KERNEL;
	char folder[64];

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u",
		 major(io->f->dev), minor(io->f->dev));
	/* the first errno is the kernel's where the queue has no such feature */
	if (kernel ? io->device_refused :
	    err == EREMOTEIO || err == EINVAL || err == EOPNOTSUPP)
		if (layers_stop(folder, !kernel && err != EREMOTEIO, why, size))
			return why;
	if (kernel && io->module_says)
		return io->module_says;
	if (kernel && err == EFAULT)
		return "the GPU memory was freed, or lost in a reset";
	/* of a network, or one that has device numbers of its own */
	if (err == EREMOTEIO && !major(io->f->dev))
		return "the file system takes no memory of devices";
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
	case EIO:
		return "the medium failed, or a write into the page cache came "
		       "between";
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

/*
 * Where host memory is to be the last way, or none, GPU memory of the library's own
 * has whole blocks of the file for what is not aligned in the program's.
 */
static bool by_scratch(struct io *io, uint64_t off, size_t len)
{
	uint64_t unit = round_up(PAGE, io->f->off_align);

	/* what is beside it in a block would be written over what others write there */
	io->part = p2p_only() && !(io->write && (off % unit || len % unit));
	return io->part;
}

/* Why a part of a page is not written so, where nothing else is to be done */
static const char *beside(const struct io *io)
{
	return io->write && p2p_only() ? "; a part of a page is written "
		"through the page cache, so that data that others write beside "
		"it is not lost" : "";
}

/* What is known of the path that is tried first */
static void take_first(struct io *io)
{
	io->way = config.flag[CUFILE_PARAM_USE_PCIP2PDMA] ? PLN_PATH_P2P :
							    PLN_PATH_KERNEL;
	io->state = verdict_ask(io, io->way);
}

/* Errors that say "this way does not work", not "this data is lost"; EIDRM is the module's EFAULT. */
static bool path_error(int err)
{
	return err == EFAULT || err == EIDRM || err == EINVAL || err == EREMOTEIO ||
	       err == EOPNOTSUPP || err == ENXIO || err == ENOTTY ||
	       err == ENODEV || err == ENOMEM || err == EAGAIN;
}

/* Errors of this moment: the next request may well go the same way. */
static bool transient(int err)
{
	return err == ENOMEM || err == EAGAIN;
}

/*
 * Linux also has this error for a direct read of bytes that were written into the page
 * cache at that moment, where the file had no blocks before: at its end, or in a hole
 * (iomap, for extents of delayed allocation).  The page cache has them then.  A direct
 * write allocates the blocks itself.
 */
static bool may_collide(const struct io *io, int err)
{
	return err == EIO && !io->write;
}

/* As io_system_error(), of what no other way is to do. */
static ssize_t last_error(struct io *io, int err, uint64_t off, size_t done)
{
	ssize_t r = io_system_error(io, err, off, done);
	size_t n = strlen(io->reason);
	int saved = errno;

	if (may_collide(io, err))
		snprintf(io->reason + n, sizeof(io->reason) - n, "; a write into "
			 "the page cache may have come between, but no other path is "
			 "allowed");
	errno = saved;
	return r;
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

enum went { WENT, WENT_SHORT, SEAM, REGISTERED, NOT_MAPPED, NOT_MOVED, NOT_THIS_FILE,
	    REFUSED_BEFORE, NOT_REACHED, NOT_KNOWN };

/* Why there is no window: -@err from window_get(). */
static void no_window(struct io *io, int err, const struct no_window *why)
{
	if (why->module)
		io_because(io, err, "the module peerlane cannot register this "
			"memory: %s%s%s", why->module, why->uvm[0] ?
			"; nvidia-uvm lends no mapping of it: " : "",
			why->uvm);
	else if (why->uvm[0])
		io_because(io, err, "nvidia-uvm lends no mapping of this memory: "
			"%s", why->uvm);
	else if (err == ENOSPC)
		io_because(io, err, "BAR1 is full of mappings in use");
	else if (why->cu_err)
		io_because(io, err, "no dma-buf of this GPU memory: %s (%d)",
			cu_name(why->cu_err), why->cu_err);
	else if (why->of_module)
		io_because(io, err, "the module peerlane cannot register this "
			"memory: %s (%d): %s", errname(err), err,
			strerror(err));
	else
		io_because(io, err, "the GPU's dma-buf cannot be mapped: %s "
			"(%d): %s", errname(err), err,
			err == ENOTSUPP || err == ENODEV ?
			"its driver has no mmap for it" : strerror(err));
}

void p2p_say_late(struct io *io)
{
	uint64_t id = io->reason_id;

	if (!io->late)
		return;
	no_window(io, io->reason_errno, &io->why);
	io->reason_id = id;
}

/* @w decides on the way; another one than before has another verdict. */
static void take_way(struct io *io, const struct window *w)
{
	unsigned int way = w->host ? PLN_PATH_P2P : PLN_PATH_KERNEL;

	if (way == io->way)
		return;
	/* that was the other way's, and nothing is staged for it */
	if (io->state == REFUSED && !io->bytes[PLN_PATH_BOUNCE] && !io->bytes[PLN_PATH_CACHE])
		io->reason[0] = '\0';
	io->way = way;
	io->state = verdict_ask(io, way);
}

/* Where it is in the mapping */
static char *mapped(const struct window *w, uint64_t dev)
{
	return w->host + (dev - w->start);
}

/* And in the registration */
static uint64_t registered(const struct window *w, uint64_t dev)
{
	return dev - w->map_start;
}

static ssize_t transfer(struct io *io, const struct window *w, uint64_t dev,
			uint64_t off, size_t len)
{
	int fd = io->f->direct_fd;

	if (!w->host)
		return module_move(io, w->handle, registered(w, dev), off, len);
	return io->write ? pwrite(fd, mapped(w, dev), len, (off_t)off) :
			   pread(fd, mapped(w, dev), len, (off_t)off);
}

/*
 * Of a file that ends before, no more than its last block: direct IO would fill
 * the memory behind it with zeros.  0: there is nothing more to read.  It may have
 * grown since it was asked.
 */
static size_t to_the_end(struct io *io, uint64_t off, size_t len)
{
	uint64_t block = io->f->off_align > PAGE ? io->f->off_align : PAGE, end;
	struct stat st;

	/* a file that cannot be read says so at its end, too */
	if (io->write || io->f->access == O_WRONLY)
		return len;
	if (off >= round_up(io->file_size, block)) {
		if (fstat(io->f->fd, &st))
			return len;
		io->file_size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : INT64_MAX;
	}
	end = round_up(io->file_size, block);
	return off < end ? min_of(len, end - off) : 0;
}

/*
 * One piece of a transfer, up to the end of a window at most: *@piece bytes.
 * *@done: bytes that went.  REGISTERED: it is for kernel_move().  NOT_MAPPED: there is
 * no window, because of io's reason, nor will there be one if *@err is set.
 * NOT_MOVED: the system call failed with *@err.  SEAM: a block lies across two
 * windows.  NOT_THIS_FILE: the kernel module does not take it.  REFUSED_BEFORE: so
 * says the verdict.  NOT_REACHED: nobody may even try.  NOT_KNOWN: whether one may, for lack of
 * what it takes to look.  *@known: it was not mapped before, the memory is the same.
 */
static enum went direct_piece(struct io *io, uint64_t dev, uint64_t off,
			      size_t len, size_t *done, size_t *piece, int *err,
			      bool *known)
{
	size_t max = KIB(config_now(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB));
	size_t unit = io->f->off_align > io->f->mem_align ?
		      io->f->off_align : io->f->mem_align;
	char far[PLN_FILE_REASON_MAX];
	struct no_window why;
	struct window *w;
	size_t avail;
	bool fresh, ends;
	ssize_t r;
	int turn, stops;

	*done = 0;
	*err = 0;
	*known = false;
	*piece = 0;
	/*
	 * No window is needed for pages behind the last one of the file, nor missed.  Where
	 * there is none, and others read, the file need not be asked for its end.
	 */
	ends = p2p_only() || !window_refused(&io->mem, dev, len);
	if (ends) {
		len = to_the_end(io, off, len);
		if (!len)
			return WENT_SHORT;
	}
	for (turn = 0; turn < 2; turn++) {
		int e = 0;

		if (io->handed.w) {
			w = io->handed.w;
			avail = io->handed.avail;
			fresh = io->handed.fresh;
			io->handed.w = NULL;
		} else {
			e = -window_get(&io->mem, dev, min_of(len, max), &w,
					&avail, &fresh, &why);
		}
		*piece = min_of(len, avail ? round_up(avail, unit) :
				      KIB(config.window_kb));
		if (e) {
			*err = avail ? e : 0;
			*known = why.before;
			if (why.before && e && avail && !transient(e) &&
			    verdict_told(io, MEMORY) && !p2p_only()) {
				io->reason_errno = e;
				io->reason_id = why.id;
				io->why = why;
				io->late = true;
			} else {
				no_window(io, e, &why);
			}
			return NOT_MAPPED;
		}
		if (!w->host && !io->registered) {
			io->handed.w = w;
			io->handed.avail = avail;
			io->handed.fresh = fresh;
			return REGISTERED;
		}
		if (!ends) {	/* another thread has just forgotten the refusal */
			ends = true;
			len = to_the_end(io, off, len);
			if (!len) {
				window_put(w);
				*piece = 0;
				return WENT_SHORT;
			}
		}
		*piece = avail < len ? round_down(avail, unit) : len;
		if (!*piece) {
			window_put(w);
			*piece = min_of(len, unit);
			io_because(io, 0, "a block is in two mappings");
			return SEAM;
		}
		take_way(io, w);
		if (io->state == UNKNOWN && (w->host || !io->f->no_module))
			io->state = verdict_try(io, io->way);
		if (io->state == REFUSED || (!w->host && io->f->no_module)) {
			window_put(w);
			if (io->state == REFUSED)
				return REFUSED_BEFORE;
			io_because(io, 0, "the module peerlane refuses the file: "
				"%s", io->f->no_module);
			return NOT_THIS_FILE;
		}
		stops = io->state == UNKNOWN ? fabric_stops(io, far, sizeof(far)) : 0;
		if (stops) {
			window_put(w);
			io_because(io, stops < 0 ? -stops : 0, "%s", far);
			return stops < 0 ? NOT_KNOWN : NOT_REACHED;
		}
		if (io->state == UNKNOWN && io->since < 0)
			io->since = log_kernel_now();
		do {
			r = transfer(io, w, dev + *done, off + *done,
				     *piece - *done);
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

/* Why p2p is out of the question for all of this. */
static enum cause ruled_out(const struct io *io)
{
	const struct file *f = io->f;

	if (config.flag[CUFILE_PARAM_FORCE_COMPAT_MODE] ||
	    (!config.flag[CUFILE_PARAM_USE_PCIP2PDMA] && !module_there()))
		return SETTING;
	if (io->mem.kind == MEM_MANAGED)
		return MANAGED;
	return f->direct_fd < 0 || f->no_direct || f->direct_bad ? NO_DIRECT : POSSIBLE;
}

/* The same, with io's reason. */
static enum cause no_p2p(struct io *io)
{
	enum cause cause = ruled_out(io);
	struct file *f = io->f;

	if (cause == SETTING && config.flag[CUFILE_PARAM_FORCE_COMPAT_MODE])
		io_because(io, 0, "force_compat_mode is set");
	else if (cause == SETTING)
		io_because(io, 0, "use_pci_p2pdma is off, and there is no "
			"/dev/peerlane");
	else if (cause == MANAGED)
		io_because(io, 0, "managed memory has no fixed place on the GPU");
	else if (cause == NO_DIRECT && f->direct_fd < 0)
		io_because(io, f->direct_errno, "the file cannot be opened with "
			"O_DIRECT: %s (%d): %s", errname(f->direct_errno),
			f->direct_errno, strerror(f->direct_errno));
	else if (cause == NO_DIRECT && f->no_direct)
		io_because(io, 0, "%s", f->no_direct);
	else if (cause == NO_DIRECT)
		io_because(io, EINVAL, "O_DIRECT does not work on this file");
	return cause;
}

bool p2p_is_out(const struct io *io, uint64_t dev, uint64_t off, size_t len, time_t now)
{
	const struct file *f = io->f;
	bool no_map, no_module;
	uint64_t lo, hi;
	size_t n;

	if (ruled_out(io) != POSSIBLE)
		return true;
	lo = round_up(off, f->off_align);
	hi = round_down(off + len, f->off_align);
	if (lo >= hi || (dev + (lo - off)) % f->mem_align)
		return true;
	no_map = !config.flag[CUFILE_PARAM_USE_PCIP2PDMA] ||
		 verdict_refused(io, PLN_PATH_P2P, now);
	no_module = !module_there() || f->no_module ||
		    verdict_refused(io, PLN_PATH_KERNEL, now);
	/* where one of them works, the windows tell whose the memory is */
	for (dev += lo - off; !(no_map && no_module) && lo < hi; dev += n, lo += n) {
		enum window_kind kind;

		n = hi - lo;
		kind = window_peek(&io->mem, dev, &n);
		if (kind == WINDOW_UNKNOWN || (kind == WINDOW_MAPPED && !no_map) ||
		    (kind == WINDOW_REGISTERED && !no_module))
			return false;
	}
	return true;
}

/*
 * The first look at a request: which of its bytes may go p2p, and how.  0, or why
 * there is no going on; *@pass: so many bytes at its start are for others.
 */
static ssize_t begin(struct io *io, uint64_t dev, uint64_t off, size_t len,
		     size_t *pass)
{
	uint32_t unit = io->f->off_align;
	enum cause cause = no_p2p(io);
	uint64_t lo, hi;
	size_t end;

	if (cause != POSSIBLE) {
		if (p2p_only())
			return refuse(io, cause);
		verdict_tell(io, cause);
		*pass = len;
		return 0;
	}
	/* what is behind the end of the file is no reason to refuse it */
	if ((off + len) % unit) {
		end = to_the_end(io, off, len);
		len = end ? end : len;
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
		*pass = len;
		if (by_scratch(io, off, len)) {
			take_first(io);
			return 0;
		}
		io_because(io, 0, lo >= hi ? "unaligned: no whole block of %u "
			"bytes%s" : "unaligned: the GPU address does not match "
			"the file offset in blocks of %u bytes%s",
			lo >= hi ? unit : io->f->mem_align,
			beside(io));
		if (!may_stage(io))
			return refuse(io, ALIGNMENT);
		if (lo < hi)
			verdict_tell(io, ALIGNMENT);
		return 0;
	}
	if ((lo > off || hi < off + len) && !by_scratch(io, off, len)) {
		io_because(io, 0, "unaligned: %llu bytes before and %llu after "
			"the whole blocks of %u%s",
			(unsigned long long)(lo - off),
			(unsigned long long)(off + len - hi), unit,
			beside(io));
		/* without a part before them, the whole blocks tell */
		if (config.strict || (lo > off && !may_stage(io)))
			return refuse(io, ALIGNMENT);
	}
	*pass = lo - off;
	io->unit = unit;
	take_first(io);
	return 0;
}

/* Where io's path is refused its memory, or the next, may be for the other: its window tells. */
static bool may_go(const struct io *io)
{
	return io->state != REFUSED || (io->way == PLN_PATH_P2P ?
		module_there() : config.flag[CUFILE_PARAM_USE_PCIP2PDMA]);
}

/*
 * How many of @len bytes at @dev, for which io's way is out, have no other: those of its
 * memory, and of the memories behind it of which the same is known, so that they are not
 * staged one by one; in whole blocks.
 */
static size_t out_from(const struct io *io, uint64_t dev, size_t len)
{
	enum window_kind kind, ours = io->way == PLN_PATH_P2P ? WINDOW_MAPPED : WINDOW_REGISTERED;
	struct mem mem = io->mem;
	uint64_t end = mem.start + mem.len;
	size_t n;

	if (!mem.len)
		return len;
	while (end - dev < len && !mem_of(end, &mem) && mem.kind == io->mem.kind &&
	       mem.gpu == io->mem.gpu && mem.start <= end && end - mem.start < mem.len) {
		n = mem.len;
		kind = window_peek(&mem, end, &n);
		if (kind != ours && kind != WINDOW_NONE)
			break;
		end = mem.start + mem.len;
	}
	return min_of(len, round_up(end - dev, io->unit));
}

/*
 * What is mapped, up to the first that is registered; with io->registered also that.
 * After begin(): of whole blocks.
 */
static ssize_t direct_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
			   size_t *pass)
{
	size_t total = 0, done, piece, whole;
	int err, probed;
	bool known, collides, refused;
	enum cause cause;
	enum went w;
	char why[PLN_FILE_REASON_MAX / 2];
	ssize_t r;

	io->gave_eio = false;
	whole = round_down(len, io->unit);
	while (total < whole && may_go(io)) {
		if (!follow(io, dev + total))
			return freed(io);
		w = direct_piece(io, dev + total, off + total, whole - total,
				 &done, &piece, &err, &known);
		total += done;
		io->bytes[io->way] += done;
		if (done && io->state == UNKNOWN) {
			io->state = WORKS;
			verdict_set(io, io->way, WORKS);
		}
		if (done && io->f->refused)
			io->f->refused = false;
		if (w == WENT)
			continue;
		if (w == WENT_SHORT)
			return (ssize_t)total;
		if (w == REGISTERED) {
			io->registered = true;
			*pass = len - total;
			return (ssize_t)total;
		}
		if (w == REFUSED_BEFORE) {
			io->part = false;
			*pass = out_from(io, dev + total, len - total);
			return (ssize_t)total;
		}
		if (w == NOT_REACHED) {
			if (p2p_only()) {
				io->f->refused = true;
				return refuse(io, PAIR);
			}
			verdict_set(io, io->way, REFUSED);
			verdict_tell(io, PAIR);
			io->state = REFUSED;
			continue;
		}
		if (done)
			piece -= done;
		if (w == NOT_KNOWN) {
			verdict_not_tried(io, io->way);
			piece = len - total;
		}
		collides = w == NOT_MOVED && may_collide(io, err) && !p2p_only();
		if (w == NOT_MOVED && !path_error(err) && !collides)
			return last_error(io, err, off, total);
		if (!known && memory_gone(io, dev + total))
			return freed(io);
		/* not of the two devices, but of the mapping */
		if (w == NOT_MOVED && err == EFAULT && io->way == PLN_PATH_P2P &&
		    io->state == UNKNOWN && !io->no_pages &&
		    !verdict_p2p_worked(io->mem.gpu)) {
			io->no_pages = window_no_pages(io->mem.gpu);
			if (io->no_pages)
				continue;
		}
		if (w == NOT_MOVED && io->way == PLN_PATH_KERNEL &&
		    io->file_refused) {
			io->f->no_module = io->module_says;
			continue;	/* then it is NOT_THIS_FILE */
		}
		if (w == NOT_THIS_FILE) {
			if (p2p_only())
				return refuse(io, NO_DIRECT);
			verdict_tell(io, NO_DIRECT);
			io->part = false;
			*pass = out_from(io, dev + total, len - total);
			return (ssize_t)total;
		}
		refused = w == NOT_MOVED && io->way == PLN_PATH_KERNEL &&
			  io->request_refused;
		if (w == NOT_MOVED)
			io_because(io, err, "%s %s failed: %s (%d): %s%s",
				pln_path_name(io->way),
				io->write ? "write" : "read", errname(err),
				err, meaning(io, err, why, sizeof(why)),
				err == EINVAL && io->state == UNKNOWN && !refused ?
				", or direct IO on this file" : "");
		/* as a block in two mappings: of this piece alone */
		if (refused)
			w = SEAM;
		if (w == NOT_MAPPED)
			cause = !err || transient(err) ? NO_ROOM : MEMORY;
		else
			cause = w == SEAM ? ALIGNMENT : w == NOT_KNOWN ||
				transient(err) || collides ? SHORTAGE : PAIR;
		if (w != SEAM && p2p_only()) {
			if (cause == PAIR && io->state == UNKNOWN) {
				verdict_kernel_says(io);
				io->f->refused = true;
			}
			return refuse(io, cause);
		}
		if (w == NOT_MAPPED || (cause == PAIR && io->state == WORKS))
			verdict_tell(io, cause);
		if (w != NOT_MOVED || io->state == WORKS || cause == SHORTAGE) {
			io->part = w == SEAM && p2p_only();
			io->gave_eio = collides;
			*pass = piece;
			return (ssize_t)total;
		}
		/*
		 * Is it p2p that fails, or O_DIRECT?  The same request with host
		 * memory tells.
		 */
		r = bounce_probe(io, dev + total, off + total, piece, &probed);
		if (r >= 0 && !probed) {
			io_because(io, err, "%s refused: %s (%d): %s",
				pln_path_name(io->way), errname(err), err,
				meaning(io, err, why, sizeof(why)));
			verdict_kernel_says(io);
			verdict_set(io, io->way, REFUSED);
			verdict_tell(io, PAIR);
			io->state = REFUSED;
		} else if (r < 0 && probed == EINVAL) {
			io->f->direct_bad = true;
			io_because(io, EINVAL, "O_DIRECT does not work on this "
				"file, not even with host memory");
			verdict_tell(io, NO_DIRECT);
			*pass = len - total;
			return (ssize_t)total;
		}
		if (r < 0)
			return io_after(total, r);
		total += (size_t)r;
		if ((size_t)r < piece)
			return (ssize_t)total;
	}
	/* what is left of a block, if nothing stopped it before */
	if (total < whole || !by_scratch(io, off + total, len - total))
		io->part = false;
	*pass = len - total;
	return (ssize_t)total;
}

ssize_t p2p_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		 size_t *pass)
{
	ssize_t r;

	if (!io->unit) {
		r = begin(io, dev, off, len, pass);
		if (r || *pass)
			return r;
	}
	return direct_move(io, dev, off, len, pass);
}

/*
 * All behind the first memory that is registered, so that nobody looks for each window
 * twice: also what is mapped there.
 */
ssize_t kernel_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		    size_t *pass)
{
	ssize_t r;

	if (!io->registered) {
		*pass = len;
		return 0;
	}
	r = direct_move(io, dev, off, len, pass);
	/* where the file ends here, or the memory has gone */
	if (io->handed.w)
		window_put(io->handed.w);
	io->handed.w = NULL;
	return r;
}

/* By both paths, of whole blocks at the place @off, with memory of @s. */
static ssize_t by_way_of(struct io *io, struct scratch *s, uint64_t off, size_t len,
			 size_t *left)
{
	uint64_t bytes[PLN_PATH_SLOTS];
	struct mem mem = io->mem;
	uint32_t unit = io->unit;
	bool was = io->registered;
	ssize_t r;

	memcpy(bytes, io->bytes, sizeof(bytes));
	io->mem = s->mem;
	io->unit = io->f->off_align;
	io->registered = true;
	*left = 0;
	r = direct_move(io, s->at, off, len, left);
	io->mem = mem;
	io->unit = unit;
	io->registered = was;
	/* of a transfer that may have fewer */
	memcpy(io->bytes, bytes, sizeof(bytes));
	return r;
}

/*
 * So many bytes went, the first *@n of what is asked for; or a negative result.
 * *@n: of those that p2p was to move.
 */
static ssize_t part_piece(struct io *io, struct scratch *s, uint64_t dev, uint64_t off,
			  size_t len, size_t room, size_t *n, size_t *left)
{
	size_t skip = off % io->f->off_align;
	ssize_t r;
	int err;

	*n = min_of(round_up(skip + len, io->f->off_align), room) - skip;
	err = io->write ? scratch_copy(s, s->at, dev, *n) : 0;
	if (err)
		return io_cuda_error(io, err);
	r = by_way_of(io, s, off - skip, skip + *n, left);
	if (r < 0 || *left)
		return r;
	r = (size_t)r > skip ? (ssize_t)min_of((size_t)r - skip, len) : 0;
	*n = min_of(*n, len);
	err = r && !io->write ? scratch_copy(s, dev, s->at + skip, (size_t)r) : 0;
	if (err)
		return io_cuda_error(io, err);
	io->bytes[io->way] += (size_t)r;
	return r;
}

/* There is no such memory for it, for io's reason. */
static ssize_t no_scratch(struct io *io, enum cause cause, size_t len, size_t *pass)
{
	/* the module has refused whole blocks, which are not to be staged */
	if (!may_stage(io) || io->request_refused)
		return refuse(io, cause);
	verdict_tell(io, cause);
	*pass = len;
	return 0;
}

ssize_t p2p_part(struct io *io, uint64_t dev, uint64_t off, size_t len, size_t *pass)
{
	size_t total = 0, room, n, left = 0;
	struct no_window why;
	struct scratch *s;
	struct window *w;
	bool fresh;
	ssize_t r;
	int err;

	*pass = len;
	if (!io->part)
		return 0;
	*pass = 0;
	s = scratch_get(&io->mem, &err);
	if (!s) {
		io_because(io, 0, "unaligned, and there is no GPU memory for whole "
			"blocks: %s", err ? cu_name(err) :
			"max_device_cache_size_kb is too small");
		return no_scratch(io, MEMORY, len, pass);
	}
	/* as long as it is held, what fails is not for lack of a mapping */
	err = -window_get(&s->mem, s->at, s->size, &w, &room, &fresh, &why);
	if (err) {
		scratch_put(s);
		no_window(io, err, &why);
		return no_scratch(io, !room || transient(err) ? NO_ROOM : MEMORY, len,
				  pass);
	}
	room = round_down(room, io->f->off_align);
	do {
		r = room ? part_piece(io, s, dev + total, off + total, len - total,
				      room, &n, &left) : 0;
		if (r < 0)
			break;
		if (!room || left) {
			if (!io->request_refused)
				io_because(io, 0, "unaligned, and the GPU memory for "
					"whole blocks cannot have one of %u bytes",
					io->f->off_align);
			r = no_scratch(io, ALIGNMENT, len - total, pass);
			break;
		}
		total += (size_t)r;
	} while (total < len && (size_t)r == n);
	window_put(w);
	scratch_put(s);
	return r < 0 ? io_after(total, r) : (ssize_t)total;
}

bool io_failed(struct io *io, int err, uint64_t off)
{
	/*
	 * The last two say that nobody tried.  A security module may allow ioctl() and no
	 * command of a ring; a thread's ioctl() has the errno that counts.
	 */
	if ((io->way == PLN_PATH_KERNEL &&
	     (err == EACCES || err == EPERM || err == EBADF)) ||
	    path_error(err) || err == EINTR || err == ECANCELED ||
	    (may_collide(io, err) && !p2p_only()))
		return false;
	last_error(io, err, off, 0);
	return true;
}

bool io_plan(struct io *io, uint64_t addr, size_t size, uint64_t off,
	     struct window **w)
{
	uint32_t unit = io->f->off_align;
	struct no_window why;
	size_t avail = 0;
	struct stat st;
	CUcontext old;
	bool fresh;
	int r;

	/* as begin() does: see there */
	if (io->write && unit < PAGE)
		unit = PAGE;
	if (off % unit || size % unit || addr % io->f->mem_align ||
	    size > KIB(config_now(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB)))
		return false;
	if (!io->write && (fstat(io->f->fd, &st) ||
			   (S_ISREG(st.st_mode) &&
			    off + size > (uint64_t)st.st_size)))
		return false;
	if (mem_of(addr, &io->mem) || io->mem.kind != MEM_DEVICE ||
	    mem_extent(&io->mem, addr, size) < size || no_p2p(io) != POSSIBLE)
		return false;
	take_first(io);
	/* its window tells whether memory is the module's */
	if (io->state != WORKS && (io->way == PLN_PATH_KERNEL || !module_queues()))
		return false;
	window_look_at_times();
	if (cu.Push(io->mem.ctx))
		return false;
	r = window_get(&io->mem, addr, size, w, &avail, &fresh, &why);
	cu.Pop(&old);
	if (r)
		return false;
	take_way(io, *w);
	if (avail == size && io->state == WORKS &&
	    ((*w)->host || (module_queues() && !io->f->no_module)))
		return true;
	window_put(*w);
	return false;
}

void p2p_queue(struct ring_io *r, struct io_uring_sqe *sqe)
{
	sqe->opcode = r->io.write ? IORING_OP_WRITE : IORING_OP_READ;
	sqe->fd = r->io.f->direct_fd;
	sqe->addr = (uintptr_t)mapped(r->window, r->dev);
	sqe->len = (unsigned int)r->len;
	sqe->off = r->off;
}

void kernel_queue(struct ring_io *r, struct io_uring_sqe *sqe)
{
	module_queue(r, registered(r->window, r->dev), sqe);
}
