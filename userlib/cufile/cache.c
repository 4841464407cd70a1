// SPDX-License-Identifier: MIT
/*
 * The cache path: the GPU's copy engine reads the page cache itself.  The cached
 * pages are mapped and registered with CUDA, read-only; the CPU never touches the
 * mapping, neither here nor in CUDA, so a file that becomes shorter is no SIGBUS.
 *
 * A registration holds the pages of its moment, and a file that is truncated and
 * written anew gets others.  So registrations are kept only under a read lease:
 * before anybody opens the file for writing, or truncates it, the kernel tells the
 * keeper, a thread, and waits until that has given the lease back.  Without a
 * lease, a registration is for one read, and made for large ones only.
 *
 * cuMemHostUnregister() waits for all work of the context, for kernels and host
 * functions of the program too, and meanwhile holds up what other threads ask of CUDA,
 * asynchronous copies as well (NVIDIA's driver 580 on an H100).  So neither a
 * reader nor the keeper calls it: another thread does.  A reader whose lease is
 * given back meanwhile ends with what was there when it began, as read(2) may.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "io.h"
#include "lane.h"

/*
 * CUDA has the CPU read what is copied to the GPU if it is less than this: of a file that is
 * shorter by then that is a SIGBUS.  Driver 580 on an H200 does so up to 24 KiB, not with 28.
 */
#define LEAST		KIB(64)
/* What is registered at once under a lease, and of one read without it */
#define SLOT		MIB(8)
#define PIECE		MIB(8)
/*
 * With more callers than these, bounce is quicker than a registration that only one
 * read uses: 34 GB/s and 18 of 16 callers on an H100.
 */
#define FEW		2
/* Reads from here on are worth a registration of their own */
#define LARGE		MIB(4)
/*
 * Others are copied until so much of a slot was read: it may be read only once.  With
 * more than FEW callers all are, until more was read than there is.
 */
#define WORTH(len)	((len) / 8 > KIB(256) ? (len) / 8 : KIB(256))
#define IDLE_S		5	/* a registration that nobody uses is kept so long */
#define RETRY_S		1	/* at least, until a refused lease is asked for again */
#define HELD		16	/* registrations that one read uses at once */
/* After so many failures in a row a file's registrations are not tried for a while */
#define FAILURES	3
#define HOLD_OFF_S	10
#define POLL_NS		50000000
#define LOOK_NS		250000000	/* how often to see what memory is left */
/* A lease that was held so lately is: who wants it away waits a second at least */
#define SURE_NS		200000000
/*
 * Sent to the keeper's thread alone, which waits for it.  By default it is ignored,
 * it is never turned into SIGIO for lack of memory, and nobody needs it blocked.
 */
#define SIGNAL		SIGURG

#ifndef SYS_cachestat
#define SYS_cachestat	451
#endif
#ifndef F2FS_SUPER_MAGIC
#define F2FS_SUPER_MAGIC 0xF2F52010
#endif

/* A mapping of a file, or of a part of it */
struct view {
	unsigned int refs;	/* pins, and who mapped it */
	char *map;
	size_t len;
};

/* A registration */
struct pin {
	struct pin *prev, *next; /* of kept ones, most recently used first */
	struct view *view;
	char *at;
	size_t len;
	struct slot *slot;	/* that keeps it, or NULL */
	struct slot *left;	/* that kept it, of a lease that is not broken, or NULL */
	CUcontext ctx;		/* in which it was made */
	unsigned long long ctx_id;
	unsigned int users;
	time_t used;
};

struct slot {
	struct pin *pin;
	struct pin *ending;	/* the one before, until CUDA has ended it */
	/* bytes read of it, counted anew each time that they are more than it has */
	size_t touched;
	uint64_t since;		/* read_bytes when that count began */
};

struct lease {
	struct lease *next;
	struct file *file;
	unsigned int refs;	/* the list's, and readers' */
	bool broken;
	uint64_t seen;		/* when it was asked for last, and was held */
	struct view *view;	/* all of the file, of which the size is fixed */
	uint64_t size;
	size_t slots;
	struct slot slot[];
};

/* Of all below, and file.lease; never held across what can wait: so who waits
 * for it looks a few times before he sleeps */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static struct lease *leases;
static struct file *making;		/* those for which a lease is asked */
static struct pin *head, *tail;
static uint64_t read_bytes;		/* of all slots: the clock of admission */
static size_t used_up;			/* the limit when there was no room, see kept_pin() */
static struct pin *doomed;		/* to be unregistered */
static struct pin *standing;		/* that CUDA did not end */
static size_t dying;			/* bytes of those, and of those in use */
static _Atomic size_t spare = SIZE_MAX;	/* what memory there is for registrations */
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static uint64_t looked;		/* when that was seen; with the lock looking */
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static pthread_t keeper, unpinner;
static pid_t keeper_tid;
static bool keeping, unpinning, quit;
/*
 * One read makes a registration: the driver makes one at a time.  Others bounce, as
 * waiting takes longer.
 */
static bool registering;
static _Atomic bool started;	/* both threads are there */

static uint64_t ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static time_t seconds_now(void)
{
	return (time_t)(ns_now() / 1000000000);
}

static void PRINTF_LIKE(2, 3) because(struct io *io, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(io->no_cache, sizeof(io->no_cache), fmt, ap);
	va_end(ap);
	io->no_cache_id = 0;
	io->no_cache_words = NULL;
	io->no_lease = false;
}

/*
 * What many reads in a row meet: always the same words, with a number, so that they are
 * neither copied nor told again.  Numbers of leases and of other reasons are smaller.
 */
enum plain { TOO_LITTLE = 1000, REGISTERING, NOT_CACHED, SHORT, USED_UP, NOT_ENDED,
	     BROKEN, TOO_FEW };

static void plainly(struct io *io, enum plain why)
{
	static const char *const words[] = {
		"too little was read here to be worth a registration",
		"another read makes a registration",
		"not all of it is in the page cache",
		"memory is short",
		"peerlane.max_page_cache_kb is used up",
		"registrations that are not kept have not ended",
		"the read lease was broken",
		"pieces of less than 64 KiB might be read by the CPU",
	};

	io->no_cache_words = words[why - TOO_LITTLE];
	io->no_lease = false;
	io->no_cache_id = (uint32_t)why | 1u << 31;
}

/* ---- mappings and registrations; with the lock held, but where it says so ---- */

static void unlink_pin(struct pin *p)
{
	*(p->prev ? &p->prev->next : &head) = p->next;
	*(p->next ? &p->next->prev : &tail) = p->prev;
	p->prev = p->next = NULL;
}

static void to_front(struct pin *p)
{
	p->prev = NULL;
	p->next = head;
	*(head ? &head->prev : &tail) = p;
	head = p;
	p->used = seconds_now();
}

static void doom(struct pin *p)
{
	p->next = doomed;
	doomed = p;
	pthread_cond_broadcast(&change);
}

static void retire(struct pin *p)
{
	struct slot *s = p->slot;

	unlink_pin(p);
	s->pin = NULL;
	s->ending = p;
	s->touched = 0;
	p->slot = NULL;
	p->left = s;
	used_up = 0;
	dying += p->len;
	if (!p->users)
		doom(p);
}

static void unuse(struct pin *p)
{
	if (!--p->users && !p->slot)
		doom(p);
}

/* Without the lock: @v is nobody's any more. */
static void unmap(struct view *v)
{
	munmap(v->map, v->len);
	free(v);
}

static void put_view(struct view *v)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--v->refs;
	pthread_mutex_unlock(&lock);
	if (last)
		unmap(v);
}

/* Without the lock. */
static struct view *map_file(int fd, uint64_t off, size_t len)
{
	struct view *v = calloc(1, sizeof(*v));
	void *p;

	if (!v)
		return NULL;
	v->len = round_up(len, PAGE);
	p = mmap(NULL, v->len, PROT_READ, MAP_SHARED, fd, (off_t)off);
	if (p == MAP_FAILED) {
		free(v);
		return NULL;
	}
	/* no page that a registration holds is a child's to copy */
	madvise(p, v->len, MADV_DONTFORK);
	v->map = p;
	v->refs = 1;
	return v;
}

/* Without the lock: nothing of it, which is mapped at @at, has to be read from the device. */
static bool cached(int fd, uint64_t off, const char *at, size_t len)
{
	const size_t lead = off % PAGE;
	struct {
		uint64_t off, len;
	} range = { off - lead, round_up(len + lead, PAGE) };
	struct {
		uint64_t cached, dirty, writeback, evicted, recently;
	} stat;
	unsigned char vec[1024];
	size_t done, n, i;

	if (!syscall(SYS_cachestat, fd, &range, &stat, 0))
		return stat.cached >= range.len / PAGE;
	/*
	 * Where the caller neither owns the file nor may write it, cachestat()
	 * refuses and mincore() says yes to all.
	 */
	if (errno != ENOSYS)
		return false;
	for (done = 0; done < range.len; done += n) {
		n = min_of(range.len - done, sizeof(vec) * PAGE);
		if (mincore((char *)at - lead + done, n, vec))
			return false;
		for (i = 0; i < n / PAGE; i++)
			if (!(vec[i] & 1))
				return false;
	}
	return true;
}

/*
 * Without the lock.  What is registered cannot be reclaimed, though it is counted among
 * what can: registrations have no more than half of that.
 */
static void look_at_memory(void)
{
	uint64_t now;

	/* who finds that somebody has looked finds what he saw, too */
	pthread_mutex_lock(&looking);
	now = ns_now();
	if (now - looked >= LOOK_NS) {
		spare = config_memory_left() / 2;
		looked = now;
	}
	pthread_mutex_unlock(&looking);
}

static size_t limit_now(void)
{
	return min_of(KIB(config.page_cache_kb), spare);
}

static bool full(size_t len)
{
	return stats_gauges.cache_bytes - dying + len > limit_now();
}

/* @n bytes of @s, which has @len, are read. */
static void count(struct slot *s, size_t len, size_t n)
{
	if (!s->touched || (s->pin && s->touched + n > len)) {
		s->touched = 0;
		s->since = read_bytes;
	}
	s->touched += n;
	read_bytes += n;
}

/* Nobody uses it, and its count began before @before. */
static bool may_go(const struct pin *p, uint64_t before)
{
	return !p->users && p->slot->since < before;
}

/* What was used longest ago goes, if it may, until @len bytes have room. */
static void make_room(size_t len, uint64_t before)
{
	struct pin *p, *next;

	for (p = tail; p && full(len); p = next) {
		next = p->prev;
		if (may_go(p, before))
			retire(p);
	}
}

/*
 * All of @s was read again.  It may have the room of what has not been read so in twice
 * the time; false: there is not so much.  What is read in order, again and again, and
 * is larger than the budget, would else always lose what it needs next: like this, as
 * much of it stays as there is room for.  Twice, as of what is read in no order some
 * is always a little slower.
 */
static bool instead_of_others(const struct slot *s, size_t len)
{
	uint64_t age = read_bytes - s->since;
	uint64_t before = s->since >= age ? s->since - age + 1 : 0;
	size_t others = 0;
	struct pin *p;

	for (p = tail; p; p = p->prev)
		if (may_go(p, before))
			others += p->len;
	if (stats_gauges.cache_bytes - dying - others + len > limit_now())
		return false;
	make_room(len, before);
	/* what it leaves is not for what comes first */
	used_up = limit_now();
	return true;
}

static enum plain limited(void)
{
	return limit_now() < KIB(config.page_cache_kb) ? SHORT : USED_UP;
}

/* Why @len bytes have none, or 0 */
static enum plain no_room(size_t len)
{
	return stats_gauges.cache_bytes + len <= limit_now() ? 0 :
	       full(len) ? limited() : NOT_ENDED;
}

/* Room for a registration of @len bytes, counted from now on. */
static bool reserve(struct io *io, size_t len)
{
	enum plain why = no_room(len);

	if (why)
		plainly(io, why);
	else
		stats_gauges.cache_bytes += len;
	return !why;
}

/*
 * Without the lock: pages [@at, @at + @len) of @v, for which there is room.  In
 * use, and not kept.
 */
static struct pin *pin(struct io *io, struct view *v, char *at, size_t len)
{
	/* others may have found it out, while this read looked for what to register */
	bool refused = verdict_try(io, PLN_PATH_CACHE) == REFUSED;
	struct pin *p = refused ? NULL : calloc(1, sizeof(*p));
	int r = CUDA_ERROR_OUT_OF_MEMORY;
	struct file *f = io->f;

	if (p)
		r = cu.HostRegister(at, len, CU_MEMHOSTREGISTER_PORTABLE |
				    CU_MEMHOSTREGISTER_READ_ONLY);
	if (!r)
		verdict_set(io, PLN_PATH_CACHE, WORKS);
	else if (!refused)
		because(io, "the page cache cannot be registered: %s (%d)",
			cu_name(r), r);
	/* others may be of the moment, or of this file */
	if (r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_NOT_PERMITTED)
		verdict_set(io, PLN_PATH_CACHE, REFUSED);
	pthread_mutex_lock(&lock);
	if (!r) {
		f->pin_failures = 0;
		f->pin_after = 0;
	} else if (r != CUDA_ERROR_OUT_OF_MEMORY &&
		   r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
		   ++f->pin_failures >= FAILURES) {
		f->pin_after = seconds_now() + HOLD_OFF_S;
		memcpy(f->pin_why, io->no_cache, sizeof(f->pin_why));
	}
	if (r) {
		stats_gauges.cache_bytes -= len;
		pthread_mutex_unlock(&lock);
		free(p);
		return NULL;
	}
	v->refs++;
	stats_gauges.cache_windows++;
	dying += len;		/* until somebody keeps it */
	pthread_mutex_unlock(&lock);
	p->view = v;
	p->at = at;
	p->len = len;
	p->ctx = io->mem.ctx;
	p->ctx_id = io->mem.ctx_id;
	p->users = 1;
	return p;
}

/* Without the lock: CUDA may keep who asks waiting. */
static bool alive(const struct pin *p)
{
	unsigned long long id = 0;

	return !cu.CtxGetId || (!cu.CtxGetId(p->ctx, &id) && id == p->ctx_id);
}

/* Without the lock; false: the registration may still stand. */
static bool unregister(const struct pin *p)
{
	bool pushed = alive(p) && !cu.Push(p->ctx);
	int r = cu.HostUnregister(p->at);
	CUcontext old;

	if (pushed)
		cu.Pop(&old);
	if (!r || r == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ||
	    r == CUDA_ERROR_DEINITIALIZED)
		return true;
	/* it went with its context, perhaps just now */
	if ((r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED) && !alive(p))
		return true;
	log_line(LOG_ERROR, "a registration of the page cache was not ended: "
		 "%s (%d); its part of the file stays mapped", cu_name(r), r);
	return false;
}

static void *unpin_all(void *arg)
{
	struct pin *p;
	bool ended;

	pthread_mutex_lock(&lock);
	for (;;) {
		while (!doomed && !quit)
			pthread_cond_wait(&change, &lock);
		p = doomed;
		if (!p)
			break;
		doomed = p->next;
		pthread_mutex_unlock(&lock);
		/*
		 * CUDA would take other memory at these addresses for the pages
		 * of a registration that stands: then the view is never put.
		 */
		ended = unregister(p);
		if (ended)
			put_view(p->view);
		pthread_mutex_lock(&lock);
		dying -= p->len;
		if (ended) {
			if (p->left)
				p->left->ending = NULL;
			stats_gauges.cache_bytes -= p->len;
			stats_gauges.cache_windows--;
			free(p);
		} else {
			p->next = standing;
			standing = p;
		}
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* ---- leases ---- */

enum { FS_UNKNOWN, FS_LOCAL, FS_TMPFS, FS_OTHER };

/* Why there is no lease: an errno, or one of these */
enum { WRITTEN = -5, NOT_ANEW, WRITER, NO_NAME, NOT_MAPPED };

static const char *lease_words(int why)
{
	switch (why) {
	case WRITTEN:
		return "a process opened the file for writing";
	case NOT_ANEW:
		return "the file cannot be opened again";
	case WRITER:
		return "the file is open for writing";
	case NO_NAME:
		return "the file has no name";
	case NOT_MAPPED:
		return "the file cannot be mapped";
	default:
		return strerrordesc_np(why);
	}
}

/* Numbers of other reasons are smaller. */
static void no_lease(struct io *io, int why)
{
	io->no_cache_words = lease_words(why);
	io->no_lease = true;
	io->no_cache_id = (uint32_t)why | 1u << 31;
}

/* With the lock held. */
static bool unref_lease(struct lease *l)
{
	return !--l->refs;
}

static void free_lease(struct lease *l)
{
	put_view(l->view);
	free(l);
}

static void put_lease(struct lease *l)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = unref_lease(l);
	pthread_mutex_unlock(&lock);
	if (last)
		free_lease(l);
}

static bool holds(const struct lease *l)
{
	return fcntl(l->file->buffered_fd, F_GETLEASE) == F_RDLCK;
}

/*
 * Is the descriptor what the lease was asked for?  The program may have its number, for a
 * file that it has a lease of its own on.  The kernel takes the owner away with the lease.
 */
static bool is_ours(const struct lease *l)
{
	struct f_owner_ex owner;

	return !fcntl(l->file->buffered_fd, F_GETOWN_EX, &owner) &&
	       owner.type == F_OWNER_TID && owner.pid == keeper_tid;
}

/* With the lock held: nobody begins to use its registrations after this. */
static bool give_back(struct lease *l)
{
	struct lease **at;
	size_t i;

	for (at = &leases; *at != l; at = &(*at)->next)
		continue;
	*at = l->next;
	l->broken = true;
	/* get_lease() reads these without the lock, the other way round */
	l->file->lease_why = WRITTEN;
	l->file->lease_after = seconds_now() + RETRY_S;
	l->file->lease = NULL;
	if (is_ours(l))
		fcntl(l->file->buffered_fd, F_SETLEASE, F_UNLCK);
	stats_gauges.leases--;
	for (i = 0; i < l->slots; i++) {
		if (l->slot[i].pin)
			retire(l->slot[i].pin);
		/* it may end after the lease */
		if (l->slot[i].ending)
			l->slot[i].ending->left = NULL;
	}
	return unref_lease(l);
}

static void *keep(void *arg)
{
	/*
	 * The program may lose a signal that is pending, by sigaction(2): so this looks
	 * now and then, too, at leases and for a new one or the end.
	 */
	const struct timespec turn = { .tv_nsec = POLL_NS }, idle = { .tv_sec = 1 };
	struct lease *l;
	struct pin *p;
	sigset_t set;
	uint64_t t;
	bool last;

	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	pthread_mutex_lock(&lock);
	keeper_tid = (pid_t)syscall(SYS_gettid);
	pthread_cond_broadcast(&change);
	while (!quit) {
		bool some = leases;

		pthread_mutex_unlock(&lock);
		sigtimedwait(&set, NULL, some ? &turn : &idle);
		pthread_mutex_lock(&lock);
again:
		/* the time before the question, as we may be stopped between them */
		for (t = ns_now(), l = leases; l && holds(l) && is_ours(l); l = l->next, t = ns_now())
			l->seen = t;
		if (l) {
			stats_gauges.leases_broken++;
			last = give_back(l);
			if (last) {
				pthread_mutex_unlock(&lock);
				free_lease(l);
				pthread_mutex_lock(&lock);
			}
			goto again;
		}
		if (!leases)
			continue;	/* nor is anything kept */
		/* writers have waited for that, and need not for this */
		pthread_mutex_unlock(&lock);
		look_at_memory();
		pthread_mutex_lock(&lock);
		make_room(0, UINT64_MAX);
		while ((p = tail) && !p->users &&
		       seconds_now() - p->used >= IDLE_S)
			retire(p);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* A child has neither the threads nor a use for the leases: they end with us. */
static void fork_begins(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	struct lease *l;
	struct file *f;

	for (l = leases; l; l = l->next)
		close_own(l->file->buffered_fd, &l->file->buffered_node);
	for (f = making; f; f = f->making_next)
		close_own(f->buffered_fd, &f->buffered_node);
	leases = NULL;
	making = NULL;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(fork_begins, in_parent, in_child);
}

/* With the lock held, which it may release: both threads run, or false. */
static bool start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, old;

	if (!unpinning || !keeping) {
		pthread_once(&once, watch_forks);
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		if (!unpinning)
			unpinning = !pthread_create(&unpinner, NULL, unpin_all,
						    NULL);
		if (!keeping) {
			keeper_tid = 0;
			keeping = !pthread_create(&keeper, NULL, keep, NULL);
		}
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	/* others may have made them, and be waiting here */
	while (keeping && !keeper_tid)
		pthread_cond_wait(&change, &lock);
	started = unpinning && keeping;
	return started;
}

/*
 * Without the lock, of a file in @making: a lease and a view of the file, or NULL
 * for io's reason.  @tid: the keeper's.
 */
static struct lease *take_lease(struct io *io, pid_t tid)
{
	struct file *f = io->f;
	struct f_owner_ex owner = { F_OWNER_TID, tid };
	int fd = f->buffered_fd;
	struct lease *l = NULL;
	struct view *v = NULL;
	struct stat st;
	uint64_t t;
	size_t n;

	if (fd < 0 || fd == f->fd) {
		no_lease(io, f->lease_why = NOT_ANEW);
		return NULL;
	}
	t = ns_now();
	/* in this order: a signal without an owner would be SIGIO to the program */
	if (fcntl(fd, F_SETSIG, SIGNAL) || fcntl(fd, F_SETOWN_EX, &owner) ||
	    fcntl(fd, F_SETLEASE, F_RDLCK)) {
		no_lease(io, f->lease_why = errno == EAGAIN ? WRITER : errno);
		return NULL;
	}
	/*
	 * The kernel does not count the descriptor that memfd_create() gives among
	 * the writers.  Such a file never has a name.
	 */
	if (f->fs == FS_TMPFS && (fstat(fd, &st) || !st.st_nlink)) {
		no_lease(io, f->lease_why = NO_NAME);
		fcntl(fd, F_SETLEASE, F_UNLCK);
		return NULL;
	}
	/* from here on the size is fixed */
	if (!fstat(fd, &st) && st.st_size > 0) {
		n = ((size_t)st.st_size + SLOT - 1) / SLOT;
		l = calloc(1, sizeof(*l) + n * sizeof(l->slot[0]));
		v = l ? map_file(fd, 0, (size_t)st.st_size) : NULL;
	}
	if (!v) {
		f->lease_why = NOT_MAPPED;
		because(io, "%s: %s", lease_words(NOT_MAPPED), strerror(errno));
		fcntl(fd, F_SETLEASE, F_UNLCK);
		free(l);
		return NULL;
	}
	l->file = f;
	l->refs = 2;
	l->view = v;
	l->size = (uint64_t)st.st_size;
	l->slots = n;
	l->seen = t;
	return l;
}

/* The lease of io's file, held, or NULL for io's reason. */
static struct lease *get_lease(struct io *io)
{
	struct file *f = io->f, **at;
	struct lease *l;
	pid_t tid;
	bool wait;

	if (!f->lease && !f->lease_making && f->lease_after >= seconds_now()) {
		no_lease(io, f->lease_why);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	tid = keeper_tid;
	l = f->lease;
	if (l)
		l->refs++;
	wait = f->lease_making || f->lease_after >= seconds_now();
	if (!l && f->lease_making)
		because(io, "no read lease: another read asks for it");
	else if (!l && wait)
		no_lease(io, f->lease_why);
	if (!l && !wait) {
		f->lease_making = true;
		f->making_next = making;
		making = f;
	}
	pthread_mutex_unlock(&lock);
	if (!l && wait)
		return NULL;
	if (l) {
		/* who was stopped for 45 seconds has lost it without a word */
		if (!holds(l)) {
			pthread_mutex_lock(&lock);
			if (!l->broken) {
				stats_gauges.leases_broken++;
				give_back(l);
			}
			pthread_mutex_unlock(&lock);
		}
		return l;
	}
	l = take_lease(io, tid);
	pthread_mutex_lock(&lock);
	f->lease_making = false;
	for (at = &making; *at != f; at = &(*at)->making_next)
		continue;
	*at = f->making_next;
	if (!l) {
		f->lease_after = seconds_now() + RETRY_S;
	} else {
		f->lease = l;
		l->next = leases;
		leases = l;
		stats_gauges.leases++;
		/* it looks at all of them: this one may be broken already */
		pthread_kill(keeper, SIGNAL);
	}
	pthread_mutex_unlock(&lock);
	return l;
}

/* The last reference to a file goes: nobody reads it any more. */
void cache_forget(struct file *f)
{
	struct lease *l;
	bool last = false;

	pthread_mutex_lock(&lock);
	l = f->lease;
	if (l)
		last = give_back(l);
	pthread_mutex_unlock(&lock);
	if (last)
		free_lease(l);
}

/* No file is registered any more. */
void cache_shutdown(void)
{
	bool kept, unpinned;

	pthread_mutex_lock(&lock);
	quit = true;
	kept = keeping;
	unpinned = unpinning;
	pthread_cond_broadcast(&change);
	pthread_mutex_unlock(&lock);
	if (kept) {
		pthread_kill(keeper, SIGNAL);
		pthread_join(keeper, NULL);
	}
	if (unpinned)
		pthread_join(unpinner, NULL);
	pthread_mutex_lock(&lock);
	keeping = unpinning = quit = started = false;
	pthread_mutex_unlock(&lock);
	/* the next configuration may be that of another group */
	pthread_mutex_lock(&looking);
	looked = 0;
	pthread_mutex_unlock(&looking);
}

/* ---- reads ---- */

/*
 * Why @n bytes of a slot that has @len and no registration are not worth one, when
 * @touched have been read with them, or 0.
 */
static enum plain too_early(size_t len, size_t n, size_t touched)
{
	size_t enough;
	bool scarce;

	/*
	 * Once the budget is used up, what is read for the first time has to do without:
	 * until some of it goes for nobody, or there is more of it.
	 */
	if (full(round_up(len, PAGE)))
		used_up = limit_now();
	scarce = used_up >= limit_now();
	enough = scarce || crew_callers() > FEW ? len + 1 :
		 n < LARGE ? WORTH(len) : 0;
	return touched >= enough ? 0 : scarce ? limited() : TOO_LITTLE;
}

/*
 * The registration that holds [@off, @off + @n), which is within a slot; in use.
 * *@more: there is none, nor perhaps for what is behind it.
 */
static struct pin *kept_pin(struct io *io, struct lease *l, uint64_t off,
			    size_t n, bool *more)
{
	struct slot *s = &l->slot[off / SLOT];
	uint64_t start = round_down(off, SLOT);
	size_t len = min_of(SLOT, l->size - start), size = round_up(len, PAGE);
	bool make = false, displaced = false, dead;
	enum plain why;
	struct pin *p;

	*more = false;
	pthread_mutex_lock(&lock);
	p = s->pin;
	if (p && (p->ctx != io->mem.ctx || p->ctx_id != io->mem.ctx_id)) {
		p->users++;
		pthread_mutex_unlock(&lock);
		dead = !alive(p);
		pthread_mutex_lock(&lock);
		if (dead && p->slot)
			retire(p);
		unuse(p);
		p = s->pin;
	}
	count(s, len, n);
	if (p) {
		p->users++;
		unlink_pin(p);
		to_front(p);
		pthread_mutex_unlock(&lock);
		return p;
	}
	why = l->broken ? BROKEN : too_early(len, n, s->touched);
	if (!why)
		why = s->ending ? NOT_ENDED : registering ? REGISTERING :
		      full(size) ? 0 : no_room(size);
	if (why)
		plainly(io, why);
	registering |= !why;
	pthread_mutex_unlock(&lock);
	if (why)
		return NULL;
	*more = !cached(l->file->buffered_fd, start, l->view->map + start,
			   len);
	pthread_mutex_lock(&lock);
	if (*more) {
		plainly(io, NOT_CACHED);
	} else {
		displaced = full(size) && !l->broken && instead_of_others(s, size);
		make = reserve(io, size);
	}
	if (make) {
		pthread_mutex_unlock(&lock);
		p = pin(io, l->view, l->view->map + start, size);
		pthread_mutex_lock(&lock);
	}
	registering = false;
	if (!displaced) {
		s->touched = n;
		s->since = read_bytes - n;
	}
	if (p && !l->broken) {
		s->pin = p;
		p->slot = s;
		dying -= p->len;
		to_front(p);
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* As much as one without a lease has; for this read.  *@more: as above. */
static struct pin *own_pin(struct io *io, struct view *v, size_t at, size_t n,
			   bool *more)
{
	struct pin *p;
	bool make;

	n = round_up(n, PAGE);
	pthread_mutex_lock(&lock);
	*more = !registering;
	if (registering)
		plainly(io, REGISTERING);
	make = !registering && reserve(io, n);
	registering |= make;
	pthread_mutex_unlock(&lock);
	if (!make)
		return NULL;
	p = pin(io, v, v->map + at, n);
	pthread_mutex_lock(&lock);
	registering = false;
	pthread_mutex_unlock(&lock);
	return p;
}

/*
 * After bytes that are not to be had: how many of the rest of @len are not, either.
 * The more there are, the better is the other path.
 */
static size_t more_missing(struct lease *l, uint64_t off, size_t len)
{
	size_t done = 0, n;
	bool kept;

	while (done < len) {
		n = min_of(len - done, SLOT - (off + done) % SLOT);
		pthread_mutex_lock(&lock);
		kept = l->broken || l->slot[(off + done) / SLOT].pin;
		pthread_mutex_unlock(&lock);
		if (kept || cached(l->file->buffered_fd, off + done,
				   l->view->map + off + done, n))
			break;
		done += n;
	}
	return done;
}

static void release(struct pin **held, unsigned int *n)
{
	pthread_mutex_lock(&lock);
	while (*n)
		unuse(held[--*n]);
	pthread_mutex_unlock(&lock);
}

/*
 * By what @l keeps or, without a lease, by registrations of @v, in whose first page
 * the read begins.  Bytes that went; *@pass: as a back end has it.
 */
static size_t copy(struct io *io, struct lane *lane, struct lease *l,
		   struct view *v, uint64_t dev, uint64_t off, size_t len,
		   size_t *pass)
{
	size_t first = l ? off : off % PAGE, total = 0, done = 0, at, n;
	const size_t unit = l ? SLOT : PIECE;
	struct pin *held[HELD], *p;
	unsigned int nr = 0;
	bool more;
	int r = 0;

	while (total < len) {
		at = first + total;
		n = min_of(len - total, unit - at % unit);
		if (n < LEAST) {
			plainly(io, TOO_FEW);
			*pass = n;
			break;
		}
		p = l ? kept_pin(io, l, at, n, &more) :
			own_pin(io, v, round_down(at, PAGE), n + at % PAGE, &more);
		if (!p) {
			*pass = !more ? n : !l ? len - total :
				n + more_missing(l, at + n, len - total - n);
			break;
		}
		held[nr++] = p;
		r = lane_in(lane, dev + total, v->map + at, n);
		if (r)
			break;
		total += n;
		if (nr < HELD && total < len)
			continue;
		r = lane_settle(lane);
		if (r)
			break;
		release(held, &nr);
		done = total;
	}
	if (!r && nr) {
		r = lane_settle(lane);
		done = r ? done : total;
	}
	if (r) {
		because(io, "CUDA: %s (%d)", cu_name(r), r);
		lane_without_stream(lane);
		*pass = len - done;
	}
	release(held, &nr);
	return done;
}

/*
 * Is it a file of which nobody else changes what is in the page cache?  Not on
 * overlayfs: a mapping there shows the lower file, even after it was copied up.
 */
static bool local(struct file *f)
{
	static const uint32_t types[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC,
	};
	int kind = f->fs;
	struct statfs fs;
	struct stat st;
	size_t i;

	if (kind)
		return kind != FS_OTHER;
	kind = FS_OTHER;
	if (!fstat(f->fd, &st) && S_ISREG(st.st_mode) && !fstatfs(f->fd, &fs))
		for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if ((uint32_t)fs.f_type == types[i])
				kind = types[i] == TMPFS_MAGIC ? FS_TMPFS :
								 FS_LOCAL;
	f->fs = kind;
	return kind != FS_OTHER;
}

/* May this read be tried at all?  Without a word where nobody expects it. */
static bool possible(struct io *io, size_t len)
{
	struct file *f = io->f;
	enum state state;
	CUdevice dev;
	bool ready, held_off;
	int can = 1;

	if (io->write || len < PAGE || !config.page_cache ||
	    f->access == O_WRONLY)
		return false;
	if (len < LEAST) {
		plainly(io, TOO_FEW);
		return false;
	}
	if (f->user_direct || config.flag[CUFILE_PARAM_FORCE_ODIRECT_MODE] ||
	    f->buffered_fd < 0) {
		because(io, "the file is read with O_DIRECT");
		return false;
	}
	if (!local(f)) {
		because(io, "it is no file of a local file system that is known "
			"for this");
		return false;
	}
	if (!cu.HostRegister || !cu.HostUnregister || !cu.async) {
		because(io, "the CUDA driver has not what it needs");
		return false;
	}
	state = verdict_ask(io, PLN_PATH_CACHE);
	if (state == UNKNOWN && cu.DeviceGetAttribute &&
	    !cu.DeviceGet(&dev, io->mem.gpu) &&
	    !cu.DeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
				   dev) && !can) {
		state = verdict_try(io, PLN_PATH_CACHE);
		if (state == UNKNOWN) {
			because(io, "the GPU has no memory that is registered "
				"read-only");
			verdict_set(io, PLN_PATH_CACHE, REFUSED);
		}
		return false;
	}
	if (state == REFUSED)
		return false;
	if (started && !f->pin_after)
		return true;
	pthread_mutex_lock(&lock);
	held_off = f->pin_after > seconds_now();
	if (held_off)
		memcpy(io->no_cache, f->pin_why, sizeof(io->no_cache));
	ready = !held_off && start();
	pthread_mutex_unlock(&lock);
	if (!ready && !held_off)
		because(io, "no thread can be made");
	return ready;
}

/*
 * What is within one registration that is kept goes without anything but the copy.  What
 * is not worth one yet is found so by one look: a crowd of small reads would wait for
 * each other at what cache_move() asks.
 */
bool cache_quick(struct io *io, uint64_t dev, uint64_t off, size_t len)
{
	struct pin *p = NULL;
	struct lane *lane;
	struct slot *s;
	struct lease *l;
	uint64_t t;
	const char *from = NULL;
	enum plain why;
	size_t size;
	int r = 1;

	/* who asks for the result wants to know why it was not p2p, too */
	if (io->write || len < LEAST || !io->f->lease || config.strict || io->now->size ||
	    !config.flag[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE])
		return false;
	t = ns_now();
	/* what p2p can move is not to be read from the page cache because others were */
	if (!p2p_is_out(io, dev, off, len, (time_t)(t / 1000000000u)))
		return false;
	pthread_mutex_lock(&lock);
	l = io->f->lease;
	if (l && t < l->seen + SURE_NS && off < l->size && len <= l->size - off &&
	    off / SLOT == (off + len - 1) / SLOT) {
		s = &l->slot[off / SLOT];
		p = s->pin;
		size = min_of(SLOT, l->size - round_down(off, SLOT));
		why = p ? 0 : too_early(size, len, s->touched + len);
		if (why) {
			count(s, size, len);
			plainly(io, why);
			io->no_cache_quick = true;
		}
		if (p && (p->ctx != io->mem.ctx || p->ctx_id != io->mem.ctx_id))
			p = NULL;
	}
	if (p) {
		count(s, p->len, len);
		p->users++;
		if (p->used != (time_t)(t / 1000000000u)) {
			unlink_pin(p);
			to_front(p);
		}
		from = l->view->map + off;
	}
	pthread_mutex_unlock(&lock);
	if (!p)
		return false;
	lane = lane_get(&io->mem, 0, false);
	if (lane && lane->stream) {
		r = lane_in(lane, dev, from, len);
		if (!r)
			lane_mark(lane, len);
		r = r ? r : lane_settle(lane);
		if (r)
			lane_without_stream(lane);
	}
	if (lane)
		lane_put(lane);
	pthread_mutex_lock(&lock);
	unuse(p);
	pthread_mutex_unlock(&lock);
	if (!r)
		io->bytes[PLN_PATH_CACHE] += len;
	return !r;
}

ssize_t cache_move(struct io *io, uint64_t dev, uint64_t off, size_t len,
		   size_t *pass)
{
	struct view *v = NULL;
	struct lane *lane;
	struct lease *l;
	size_t done = 0;
	uint64_t size;
	struct stat st;

	*pass = len;
	if (io->no_cache_quick || !possible(io, len))
		return 0;
	l = get_lease(io);
	if (!l && (len < LARGE || crew_callers() > FEW))
		return 0;
	look_at_memory();
	size = l ? l->size : fstat(io->f->fd, &st) ? 0 : (uint64_t)st.st_size;
	if (off >= size)
		goto out;
	len = min_of(len, size - off);
	if (l) {
		v = l->view;
	} else {
		if (len < LARGE)	/* to its end */
			goto out;
		v = map_file(io->f->buffered_fd, round_down(off, PAGE),
			     len + off % PAGE);
		if (!v) {
			because(io, "the file cannot be mapped: %s",
				strerror(errno));
			goto out;
		}
		if (!cached(io->f->buffered_fd, off, v->map + off % PAGE, len)) {
			plainly(io, NOT_CACHED);
			goto out;
		}
	}
	lane = lane_get(&io->mem, 0, true);
	if (lane && lane->stream) {
		*pass = 0;
		done = copy(io, lane, l, v, dev, off, len, pass);
		io->bytes[PLN_PATH_CACHE] += done;
	} else {
		because(io, "no CUDA stream can be made");
	}
	if (lane)
		lane_put(lane);
out:
	if (l)
		put_lease(l);
	else if (v)
		put_view(v);
	return (ssize_t)done;
}
