// SPDX-License-Identifier: MIT
/*
 * File handles and registered buffers.
 *
 * A handle is a number: a slot of a table and a count that never repeats.  So
 * a stale or invented one is found out by comparing, and is never followed.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../core/dio.h"
#include "internal.h"

#define MAX_FILES	65536
#define SLOT_SHIFT	4
#define COUNT_SHIFT	20
#define NOT_OPENED	(-2)	/* file.warm_fd */
#define MARK		0x9	/* odd: no aligned address looks like it */

#ifndef __O_TMPFILE
#define __O_TMPFILE	020000000
#endif
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY	1027
#endif
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct file **table;
static unsigned int slots;
static uint64_t count;

static void alignment(struct file *f, int fd, const struct stat *st)
{
	uint32_t memory = 0, offset = 0;
	struct statfs fs = { .f_type = 0 };
	struct statx sx;
	enum dio_kind kind;
	int block = 0;

	/* the node of a block device lies in a tmpfs; its data does not */
	kind = S_ISBLK(st->st_mode) ? DIO_DOES : fstatfs(fd, &fs) ? DIO_UNSAID :
	       dio_kind(NULL, (uint32_t)fs.f_type);
	f->mem_align = f->off_align = 4096;
	if (kind == DIO_IN_MEMORY)
		f->no_direct = "the file system keeps its data in host memory";
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) &&
	    dio_align(&sx, &memory, &offset)) {
		if (!memory || !offset)
			f->no_direct = "the file system does no direct IO on "
				       "this file";
	} else if (kind == DIO_UNSAID) {
		f->no_direct = "the file system is not known to do direct IO "
			       "between device and memory";
	}
	if (memory && offset) {
		f->mem_align = memory;
		f->off_align = offset;
	} else if (S_ISBLK(st->st_mode) && !ioctl(fd, BLKSSZGET, &block) &&
		   block > 0) {
		f->mem_align = f->off_align = (uint32_t)block;
	}
	/* below 512 nothing is gained, and older kernels were stricter */
	if (f->mem_align < 512)
		f->mem_align = 512;
}

/*
 * Standard streams that the program has not are occupied while files are opened, by all threads
 * that open some together: who is still opening one must not get a number that another gives back.
 * The lock is not held while a file is opened, as its server may not answer.
 */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int streams_users;
static bool streams_taken[3];
static struct node streams_node;

static void take_streams(void)
{
	int fd;

	pthread_mutex_lock(&streams_lock);
	streams_users++;
	while ((fd = open("/", O_PATH | O_CLOEXEC)) >= 0 && fd < 3) {
		streams_taken[fd] = true;
		streams_node = node_of(fd);
	}
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&streams_lock);
}

/* The program may have closed some, or may have their numbers for files of its own. */
static void close_streams(void)
{
	int i, flags;

	for (i = 0; i < 3; i++) {
		flags = streams_taken[i] ? fcntl(i, F_GETFL) : -1;
		if (flags >= 0 && flags & O_PATH)
			close_own(i, &streams_node);
		streams_taken[i] = false;
	}
}

static void give_streams(void)
{
	int saved = errno;

	pthread_mutex_lock(&streams_lock);
	if (!--streams_users)
		close_streams();
	pthread_mutex_unlock(&streams_lock);
	errno = saved;
}

/* A child has no thread that opens files; nor does it take any lock here. */
void file_forked(void)
{
	close_streams();
	streams_users = 0;
}

/*
 * The same file once more, with O_DIRECT or without it, or with O_NOATIME.  Never by the number
 * of a standard stream that the program has not: what it writes there would get into the file.
 */
static int open_again(int fd, int flags, int more)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	flags &= O_ACCMODE | O_SYNC;
	flags |= O_CLOEXEC | more;
	take_streams();
	again = open(path, flags);
	give_streams();
	return again;
}

/*
 * The duplicate is the program's open, so it has no mark: another open of the same file, for
 * the same access, is not told apart.
 */
static bool has_duplicate(const struct file *f)
{
	return leads_to(f->fd, &f->node) &&
	       (fcntl(f->fd, F_GETFL) & O_ACCMODE) == f->access;
}

/* All its descriptors are still the library's */
static bool intact(const struct file *f)
{
	return !f->lost && has_duplicate(f) &&
	       (f->direct_fd < 0 || leads_to(f->direct_fd, &f->direct_node)) &&
	       (f->buffered_fd < 0 || leads_to(f->buffered_fd, &f->buffered_node)) &&
	       (f->warm_fd < 0 || leads_to(f->warm_fd, &f->warm_node));
}

static void lose(struct file *f)
{
	if (!atomic_exchange(&f->lost, true))
		log_line(LOG_ERROR, "the program has closed descriptors of the "
			 "library: register the file anew");
}

/* Is it told from other opens of the same file? */
static bool is_told(const struct node *n)
{
	return n->marked || n->placed;
}

/* Who closes all descriptors has closed this one, too. */
static bool has_data_fd(const struct file *f)
{
	return is_told(&f->direct_node) ? has_mark(f->direct_fd, &f->direct_node) :
					  has_mark(f->buffered_fd, &f->buffered_node);
}

static bool is_own(int fd, const struct node *n)
{
	return is_told(n) && has_mark(fd, n);
}

static void destroy(struct file *f)
{
	/* before they are closed; who closed all has closed the duplicate, too, which has no mark */
	const bool ours = !f->lost &&
		(is_own(f->direct_fd, &f->direct_node) ||
		 is_own(f->buffered_fd, &f->buffered_node) ||
		 !(is_told(&f->direct_node) || is_told(&f->buffered_node)));

	if (!f->lost && f->direct_fd != f->fd)
		close_own(f->direct_fd, &f->direct_node);
	if (!f->lost && f->buffered_fd != f->fd)
		close_own(f->buffered_fd, &f->buffered_node);
	if (!f->lost)
		close_own(f->warm_fd, &f->warm_node);
	if (ours && has_duplicate(f))
		close(f->fd);
	sem_destroy(&f->turns);
	pthread_mutex_destroy(&f->tally.lock);
	free(f);
}

/*
 * Closing any descriptor of a file drops the record locks that the process has
 * on it.  So those of a file that it has locked stay open until it has not, and
 * serve again when the program registers its descriptor again.
 *
 * kept_lock is held across questions to file systems, which a network may answer;
 * so it is not the lock of the handles.
 */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *kept;

/* A line of /proc/locks: N: POSIX ADVISORY READ PID MAJOR:MINOR:INODE FIRST LAST */
static bool names(const char *line, const char *pid, const char *device, const char *inode)
{
	const char *p = strstr(line, " POSIX ") ? strstr(line, pid) : NULL;

	return p && !strncmp(p + strlen(pid), device, strlen(device)) && strstr(p, inode);
}

/*
 * As /proc/locks has it: the device of the super block.  stat() has another one for a
 * subvolume of btrfs, or a layer of overlayfs.  "": the mount is not ours to see, and
 * the inode number alone has to do, as descriptors kept for nothing do no harm.
 */
static void super_block(int fd, char *device, size_t size)
{
	char point[PATH_MAX], type[64];
	uint64_t dev;

	device[0] = '\0';
	if (deny_mount(fd, point, type, &dev))
		snprintf(device, size, "%02x:%02x:", major(dev), minor(dev));
}

/*
 * Has this process a record lock on the file?  The first lock that is in the way may be another's
 * with ours behind it, as readers share; /proc/locks has all that the kernel keeps, also where the
 * server of the file does not answer, and is not asked which inode it is.  What a server of FUSE
 * keeps itself is not there: of such locks only the first is seen.  Where /proc/locks cannot be
 * read, anybody's lock counts; where the inode is not known, any of ours.  Less than 0: another
 * thread has closed the descriptor.
 */
static int locked(int fd)
{
	struct flock l = { .l_type = F_WRLCK };
	char line[256], pid[32], device[32], inode[32] = "";
	bool ours = false;
	struct statx sx;
	FILE *f;

	if (fcntl(fd, F_OFD_GETLK, &l)) {
		/* a server may say EBADF of one that is open */
		if (errno == EBADF && fcntl(fd, F_GETFD) < 0)
			return -1;
	} else if (l.l_type == F_UNLCK) {
		return false;
	}
	if (l.l_pid == getpid())
		return true;
	f = fopen("/proc/locks", "re");
	if (!f)
		return true;
	snprintf(pid, sizeof(pid), " %d ", (int)getpid());
	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &sx))
		snprintf(inode, sizeof(inode), ":%llu ", (unsigned long long)sx.stx_ino);
	super_block(fd, device, sizeof(device));
	while (!ours && fgets(line, sizeof(line), f))
		ours = names(line, pid, device, inode);
	fclose(f);
	return ours;
}

static bool is_left(const struct file *f, int fd, const struct node *n)
{
	return fd != f->fd && leads_to(fd, n);
}

/*
 * One that destroy() would close, or -1.  The program may have closed others of them, and locked
 * the file since.
 */
static int left_open(const struct file *f)
{
	if (f->lost)
		return -1;
	if (has_duplicate(f))
		return f->fd;
	if (is_left(f, f->direct_fd, &f->direct_node))
		return f->direct_fd;
	if (is_left(f, f->buffered_fd, &f->buffered_node))
		return f->buffered_fd;
	return is_left(f, f->warm_fd, &f->warm_node) ? f->warm_fd : -1;
}

/* Is there anything to close, which would end a lock?  Who closes faster than this looks is asked later. */
static bool must_stay(const struct file *f)
{
	int fd, r, tries = 8;

	do {
		fd = left_open(f);
		r = fd < 0 ? false : locked(fd);
	} while (r < 0 && --tries);
	return r;
}

/* What was kept and need not be any more is closed. */
static void close_kept(void)
{
	struct file **p = &kept, *f, *gone = NULL;

	pthread_mutex_lock(&kept_lock);
	while ((f = *p)) {
		if (must_stay(f)) {
			p = &f->next;
			continue;
		}
		*p = f->next;
		f->next = gone;
		gone = f;
	}
	pthread_mutex_unlock(&kept_lock);
	while (gone) {
		f = gone;
		gone = f->next;
		destroy(f);
	}
}

static void bury(struct file *f)
{
	cache_forget(f);
	pthread_mutex_lock(&kept_lock);
	f->next = kept;
	kept = f;
	pthread_mutex_unlock(&kept_lock);
	close_kept();
}

static CUfileOpError check(int fd, struct stat *st, int *flags)
{
	*flags = fcntl(fd, F_GETFL);
	if (*flags < 0 || fstat(fd, st))
		return CU_FILE_INVALID_VALUE;
	if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
		return CU_FILE_INVALID_FILE_TYPE;
	if (*flags & (O_APPEND | O_NONBLOCK | O_NOATIME | O_PATH | O_ASYNC |
		      __O_TMPFILE))
		return CU_FILE_INVALID_FILE_OPEN_FLAG;
	return CU_FILE_SUCCESS;
}

/* With the lock held: a free slot, or MAX_FILES. */
static unsigned int free_slot(void)
{
	struct file **bigger;
	unsigned int i, n;

	for (i = 0; i < slots; i++)
		if (!table[i])
			return i;
	if (slots == MAX_FILES)
		return MAX_FILES;
	n = slots ? slots * 2 : 64;
	bigger = realloc(table, n * sizeof(*table));
	if (!bigger)
		return MAX_FILES;
	memset(bigger + slots, 0, (n - slots) * sizeof(*table));
	table = bigger;
	i = slots;
	slots = n;
	return i;
}

/*
 * Have they one position?  Another thread may read by it meanwhile, in short calls: then @b's is
 * between two of @a's, and again the next time.  One that stands still is so once at most.
 */
static bool same_position(int a, int b)
{
	uint64_t before, between, after;
	int tries, passed = 0;

	for (tries = 0; tries < 8; tries++) {
		if (!of_descriptor(a, "pos:", &before) || !of_descriptor(b, "pos:", &between) ||
		    !of_descriptor(a, "pos:", &after))
			return false;
		if (before == after)
			return between == before;
		passed += before <= between && between <= after;
	}
	return passed > 1;
}

/*
 * Are these descriptors of one open()?  Where the kernel does not tell, as it does
 * from 6.10 on or to who may compare processes: of one file, with the flags and the
 * position that those of one open() have in common.  lseek() is not asked for it, as it
 * waits until a read() of another thread has ended.
 */
static bool same_open(int a, int b)
{
	struct stat sa, sb;
	long me, r = fcntl(a, F_DUPFD_QUERY, b);

	if (r >= 0)
		return r;
	me = syscall(SYS_gettid);
	r = syscall(SYS_kcmp, me, me, KCMP_FILE, a, b);
	if (r >= 0)
		return !r;
	return !fstat(a, &sa) && !fstat(b, &sb) && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino && fcntl(a, F_GETFL) == fcntl(b, F_GETFL) &&
	       same_position(a, b);
}

/* With the lock held: is this descriptor registered? */
static bool registered(int fd)
{
	unsigned int i;

	for (i = 0; i < slots; i++)
		/* the same number of another open(): the first was closed */
		if (table[i] && table[i]->user_fd == fd &&
		    same_open(fd, table[i]->fd) && intact(table[i]))
			return true;
	return false;
}

/* Too many open files, and not that the file cannot be opened like this. */
static bool no_descriptor(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

/*
 * With O_DIRECT and without it, both opened anew: a duplicate has its flags in
 * common with the program's descriptor, which fcntl() may give O_APPEND later.
 * It serves only where the file cannot be opened again.  What was kept of a handle
 * before may have one of them.  0 or an errno.
 */
static int open_both(struct file *f, int flags, bool block)
{
	int err = 0;

	if (f->buffered_fd < 0) {
		f->buffered_fd = open_again(f->fd, flags, 0);
		err = f->buffered_fd < 0 ? errno : 0;
		f->buffered_node = node_of_own(f->buffered_fd, !block);
	}
	if (f->direct_fd < 0) {
		f->direct_fd = open_again(f->fd, flags, O_DIRECT);
		f->direct_errno = f->direct_fd < 0 ? errno : 0;
		f->direct_node = node_of_own(f->direct_fd, false);
	}
	if (no_descriptor(err))
		return err;
	if (f->direct_fd < 0 && f->user_direct)
		f->direct_fd = f->fd;
	if (f->buffered_fd < 0 && !f->user_direct)
		f->buffered_fd = f->fd;
	return f->direct_errno;
}

static bool has_number(const struct file *f, int fd)
{
	return fd >= 0 && (fd == f->fd || fd == f->direct_fd || fd == f->buffered_fd ||
			   fd == f->warm_fd);
}

/* With the lock held: who had this number, which is @f's now, has it no more. */
static void take_number(const struct file *f, int fd)
{
	unsigned int i;

	for (i = 0; i < slots; i++)
		if (table[i] && table[i] != f && has_number(table[i], fd))
			lose(table[i]);
}

static void take_numbers(const struct file *f)
{
	take_number(f, f->fd);
	take_number(f, f->direct_fd);
	take_number(f, f->buffered_fd);
	take_number(f, f->warm_fd);
}

/*
 * A write is no access to what was there before, so the time of the last one stays: only the
 * file's owner may ask for that.  Whoever asks while another opens it gets none.
 */
int file_warm_fd(struct file *f)
{
	int fd = f->warm_fd;

	if (fd == NOT_OPENED && atomic_compare_exchange_strong(&f->warm_fd, &fd, -1)) {
		fd = open_again(f->fd, O_RDONLY, O_NOATIME);
		pthread_rwlock_wrlock(&lock);
		if (f->lost) {
			/* what it was opened by may be another file's by now */
			if (fd >= 0)
				close(fd);
			fd = -1;
		} else {
			f->warm_node = node_of_own(fd, false);
			f->warm_fd = fd;
			take_number(f, fd);
		}
		pthread_rwlock_unlock(&lock);
	}
	return fd;
}

/* The descriptors that were kept of this one, if any were. */
static bool take_kept(struct file *f)
{
	struct file **p, *old;

	pthread_mutex_lock(&kept_lock);
	for (p = &kept; *p; p = &(*p)->next)
		if (intact(*p) && same_open(f->user_fd, (*p)->fd))
			break;
	old = *p;
	if (old)
		*p = old->next;
	pthread_mutex_unlock(&kept_lock);
	if (!old)
		return false;
	f->fd = old->fd;
	f->direct_fd = old->direct_fd;
	f->buffered_fd = old->buffered_fd;
	f->warm_fd = old->warm_fd;
	f->direct_node = old->direct_node;
	f->buffered_node = old->buffered_node;
	f->warm_node = old->warm_node;
	old->fd = old->direct_fd = old->buffered_fd = old->warm_fd = -1;
	destroy(old);
	return true;
}

CUfileOpError file_register(int fd, CUfileHandle_t *out)
{
	const char *denied;
	CUfileOpError r;
	struct file *f;
	struct stat st;
	unsigned int i;
	int flags, err;

	r = check(fd, &st, &flags);
	if (r)
		return r;
	close_kept();
	/* Before any descriptor: closing one drops the program's record locks */
	pthread_rwlock_wrlock(&lock);
	if (registered(fd))
		r = CU_FILE_HANDLE_ALREADY_REGISTERED;
	pthread_rwlock_unlock(&lock);
	if (r)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f)
		return CU_FILE_NOMEM_ERROR;
	pthread_mutex_init(&f->tally.lock, NULL);
	sem_init(&f->turns, 0, S_ISBLK(st.st_mode) ? INT_MAX : FILE_TURNS);
	f->refs = 1;
	f->user_fd = fd;
	f->direct_fd = f->buffered_fd = -1;
	/* writes to a block device do not wait for each other */
	f->warm_fd = S_ISBLK(st.st_mode) ? -1 : NOT_OPENED;
	f->user_direct = flags & O_DIRECT;
	f->access = flags & O_ACCMODE;
	f->dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	f->node = node_of(fd);
	/* our own, so that the program may close its own at any time */
	if (!take_kept(f))
		f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = f->fd < 0 ? EMFILE : open_both(f, flags, S_ISBLK(st.st_mode));
	if (no_descriptor(err)) {
		bury(f);
		return CU_FILE_GETNEWFD_FAILED;
	}
	alignment(f, f->fd, &st);
	denied = deny_file(f->fd, f->dev, S_ISBLK(st.st_mode));
	if (denied)
		f->no_direct = denied;

	pthread_rwlock_wrlock(&lock);
	/* before: what was registered so may have had the numbers, and has been closed since */
	take_numbers(f);
	if (registered(fd)) {
		r = CU_FILE_HANDLE_ALREADY_REGISTERED;
		goto out;
	}
	i = free_slot();
	if (i == MAX_FILES) {
		r = CU_FILE_NOMEM_ERROR;
		goto out;
	}
	f->value = ++count << COUNT_SHIFT | (uint64_t)i << SLOT_SHIFT | MARK;
	table[i] = f;
	*out = (CUfileHandle_t)(uintptr_t)f->value;
out:
	pthread_rwlock_unlock(&lock);
	if (r)
		bury(f);
	return r;
}

/* With the lock held. */
static struct file **slot_of(CUfileHandle_t fh)
{
	uint64_t v = (uint64_t)(uintptr_t)fh;
	unsigned int i = v >> SLOT_SHIFT & (MAX_FILES - 1);

	if (i >= slots || !table[i] || table[i]->value != v)
		return NULL;
	return &table[i];
}

struct file *file_get(CUfileHandle_t fh)
{
	uint64_t size;

	return file_get_size(fh, &size);
}

struct file *file_get_size(CUfileHandle_t fh, uint64_t *size)
{
	struct file **p, *f = NULL;

	pthread_rwlock_rdlock(&lock);
	p = slot_of(fh);
	if (p) {
		f = *p;
		f->refs++;
	}
	pthread_rwlock_unlock(&lock);
	if (f && !(leads_to_size(f->fd, &f->node, size) && has_data_fd(f)))
		lose(f);
	if (f && f->lost) {
		file_put(f);
		f = NULL;
	}
	return f;
}

/* Nobody uses it any more. */
static bool put_last(struct file *f)
{
	return !--f->refs;
}

void file_put(struct file *f)
{
	if (put_last(f))
		bury(f);
}

static void bury_it(struct work *w)
{
	bury((struct file *)((char *)w - offsetof(struct file, work)));
}

void file_put_later(struct file *f)
{
	if (!put_last(f))
		return;
	f->work.run = bury_it;
	work_add(&f->work, false);
}

bool file_deregister(CUfileHandle_t fh)
{
	struct file **p, *f = NULL;

	pthread_rwlock_wrlock(&lock);
	p = slot_of(fh);
	if (p) {
		f = *p;
		*p = NULL;
	}
	pthread_rwlock_unlock(&lock);
	if (f)
		file_put(f);
	return f;
}

void file_drop_all(void)
{
	unsigned int i;

	for (i = 0; ; i++) {
		struct file *f;

		pthread_rwlock_wrlock(&lock);
		if (i >= slots) {
			pthread_rwlock_unlock(&lock);
			return;
		}
		f = table[i];
		table[i] = NULL;
		pthread_rwlock_unlock(&lock);
		if (f)
			file_put(f);
	}
}

/* ---- registered buffers ---- */

static pthread_rwlock_t buf_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct buf *bufs;	/* sorted by base */
static size_t nbufs, cap;

static size_t buf_place(uint64_t base)
{
	size_t lo = 0, hi = nbufs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (bufs[mid].base < base)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

CUfileOpError buf_add(const struct buf *buf)
{
	CUfileOpError r = CU_FILE_SUCCESS;
	size_t i;

	pthread_rwlock_wrlock(&buf_lock);
	i = buf_place(buf->base);
	if (i < nbufs && bufs[i].base == buf->base) {
		r = CU_FILE_MEMORY_ALREADY_REGISTERED;
		goto out;
	}
	if (nbufs == cap) {
		size_t n = cap ? cap * 2 : 64;
		struct buf *bigger = realloc(bufs, n * sizeof(*bufs));

		if (!bigger) {
			r = CU_FILE_NOMEM_ERROR;
			goto out;
		}
		bufs = bigger;
		cap = n;
	}
	memmove(bufs + i + 1, bufs + i, (nbufs - i) * sizeof(*bufs));
	bufs[i] = *buf;
	nbufs++;
out:
	pthread_rwlock_unlock(&buf_lock);
	return r;
}

bool buf_find(uint64_t base, struct buf *out)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&buf_lock);
	i = buf_place(base);
	if (i < nbufs && bufs[i].base == base) {
		*out = bufs[i];
		found = true;
	}
	pthread_rwlock_unlock(&buf_lock);
	return found;
}

bool buf_remove(uint64_t base, struct buf *out)
{
	bool found = false;
	size_t i;

	pthread_rwlock_wrlock(&buf_lock);
	i = buf_place(base);
	if (i < nbufs && bufs[i].base == base) {
		*out = bufs[i];
		memmove(bufs + i, bufs + i + 1,
			(nbufs - i - 1) * sizeof(*bufs));
		nbufs--;
		found = true;
	}
	pthread_rwlock_unlock(&buf_lock);
	return found;
}

bool buf_overlaps(uint64_t start, size_t len)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&buf_lock);
	for (i = 0; i < nbufs && !found && bufs[i].base < start + len; i++)
		found = bufs[i].base + bufs[i].length > start;
	pthread_rwlock_unlock(&buf_lock);
	return found;
}

void buf_drop_all(void)
{
	pthread_rwlock_wrlock(&buf_lock);
	free(bufs);
	bufs = NULL;
	nbufs = cap = 0;
	pthread_rwlock_unlock(&buf_lock);
}
