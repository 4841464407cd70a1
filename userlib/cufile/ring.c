// SPDX-License-Identifier: MIT
/*
 * Requests of batches and streams that go p2p in one piece: an io_uring has as many of
 * them under way as execution.max_io_queue_depth says, and at most MAX_DEPTH.
 *
 * One thread submits and takes completions.  The program's threads do neither:
 * the kernel would interrupt their system calls to deliver completions.
 */
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

#define MAX_DEPTH	4095

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring_io *added, **added_end = &added;
static unsigned int under_way;		/* added, and not ended */
static bool running, refused, quit;
static bool lost;			/* the eventfd is, for the rest of the process */
static pthread_t thread;

/* Of the thread, and of who starts and ends it */
static struct {
	int fd, wake;
	unsigned int depth;
	struct io_uring_sqe *sqe;
	unsigned int *sq_head, *sq_tail, sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, cq_mask;
	struct io_uring_cqe *cqe;
	char *rings;
	size_t rings_size, sqe_size;
	uint64_t woken;			/* what the eventfd gives */
} r = { .fd = -1, .wake = -1 };

static int setup(unsigned int entries, struct io_uring_params *p)
{
	return (int)syscall(__NR_io_uring_setup, entries, p);
}

static int enter(unsigned int submit)
{
	return (int)syscall(__NR_io_uring_enter, r.fd, submit, 1,
			    IORING_ENTER_GETEVENTS, NULL, 0);
}

static void give_up(void)
{
	if (r.rings)
		munmap(r.rings, r.rings_size);
	if (r.sqe)
		munmap(r.sqe, r.sqe_size);
	if (r.fd >= 0)
		close(r.fd);
	if (r.wake >= 0)
		close(r.wake);
	r.rings = NULL;
	r.sqe = NULL;
	r.fd = r.wake = -1;
}

static void *map(size_t size, off_t what)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r.fd, what);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_DONTFORK);
	return p;
}

/* 0, or an errno. */
static int make(unsigned int depth)
{
	struct io_uring_params p = { .flags = IORING_SETUP_CLAMP };
	const unsigned int need = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP |
				  IORING_FEAT_RW_CUR_POS;
	size_t cq;

	/* one more, for the eventfd */
	r.fd = setup(depth + 1, &p);
	if (r.fd < 0)
		return errno;
	r.wake = eventfd(0, EFD_CLOEXEC);
	if (r.wake < 0)
		return errno;
	if ((p.features & need) != need)
		return EOPNOTSUPP;
	/* the kernel may make more entries than are asked for, or fewer */
	r.depth = (unsigned int)min_of(depth, p.sq_entries - 1);
	r.rings_size = p.sq_off.array + p.sq_entries * sizeof(*r.sq_array);
	cq = p.cq_off.cqes + p.cq_entries * sizeof(*r.cqe);
	if (cq > r.rings_size)
		r.rings_size = cq;
	r.sqe_size = p.sq_entries * sizeof(*r.sqe);
	r.rings = map(r.rings_size, IORING_OFF_SQ_RING);
	r.sqe = map(r.sqe_size, IORING_OFF_SQES);
	if (!r.rings || !r.sqe)
		return ENOMEM;
	r.sq_head = (unsigned int *)(r.rings + p.sq_off.head);
	r.sq_tail = (unsigned int *)(r.rings + p.sq_off.tail);
	r.sq_mask = *(unsigned int *)(r.rings + p.sq_off.ring_mask);
	r.sq_array = (unsigned int *)(r.rings + p.sq_off.array);
	r.cq_head = (unsigned int *)(r.rings + p.cq_off.head);
	r.cq_tail = (unsigned int *)(r.rings + p.cq_off.tail);
	r.cq_mask = *(unsigned int *)(r.rings + p.cq_off.ring_mask);
	r.cqe = (struct io_uring_cqe *)(r.rings + p.cq_off.cqes);
	return 0;
}

/* There is always room: no more are under way than the ring has entries. */
static void put(unsigned char op, int fd, void *buf, size_t len, uint64_t off,
		void *data)
{
	unsigned int tail = *r.sq_tail, i = tail & r.sq_mask;

	memset(&r.sqe[i], 0, sizeof(r.sqe[i]));
	r.sqe[i].opcode = op;
	r.sqe[i].fd = fd;
	r.sqe[i].addr = (uintptr_t)buf;
	r.sqe[i].len = (unsigned int)len;
	r.sqe[i].off = off;
	r.sqe[i].user_data = (uintptr_t)data;
	r.sq_array[i] = i;
	__atomic_store_n(r.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void finish(struct ring_io *io, int res)
{
	pthread_mutex_lock(&lock);
	under_way--;
	pthread_mutex_unlock(&lock);
	io->ended(io, res);
}

/*
 * Takes completions; how many requests are to be submitted because of them.
 * *@err is set when the eventfd cannot be read any more.
 */
static unsigned int reap(int *err)
{
	unsigned int head = *r.cq_head, again = 0;

	while (head != __atomic_load_n(r.cq_tail, __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe c = r.cqe[head & r.cq_mask];

		__atomic_store_n(r.cq_head, ++head, __ATOMIC_RELEASE);
		if (c.user_data) {
			finish((struct ring_io *)(uintptr_t)c.user_data, c.res);
		} else if (c.res < 0 && c.res != -EINTR && c.res != -EAGAIN) {
			*err = -c.res;
		} else {
			put(IORING_OP_READ, r.wake, &r.woken, sizeof(r.woken),
			    0, NULL);
			again++;
		}
	}
	return again;
}

/*
 * The ring takes nothing more: a filter of system calls forbids it, or the program
 * has closed the descriptor.  What the kernel has not begun ends as cancelled;
 * what it has begun ends in memory that stays mapped, so this waits for it.
 */
static void abandon(int err)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	unsigned int i, left, tail = *r.sq_tail;
	struct ring_io *io, *next;

	pthread_mutex_lock(&lock);
	refused = true;
	io = added;
	added = NULL;
	added_end = &added;
	pthread_mutex_unlock(&lock);
	log_line(LOG_WARN, "io_uring does not work any more: %s; batches and "
		 "streams are done by threads", strerror(err));
	for (; io; io = next) {
		next = io->next;
		finish(io, -ECANCELED);
	}
	for (i = __atomic_load_n(r.sq_head, __ATOMIC_ACQUIRE); i != tail; i++) {
		io = (struct ring_io *)(uintptr_t)r.sqe[i & r.sq_mask].user_data;
		if (io)
			finish(io, -ECANCELED);
	}
	for (;;) {
		reap(&err);
		pthread_mutex_lock(&lock);
		left = under_way;
		pthread_mutex_unlock(&lock);
		if (!left)
			break;
		nanosleep(&ms, NULL);
	}
}

static void *serve(void *arg)
{
	struct ring_io *io, *next;
	unsigned int submit = 1;
	bool over;
	int n, err = 0;

	put(IORING_OP_READ, r.wake, &r.woken, sizeof(r.woken), 0, NULL);
	while (!err) {
		pthread_mutex_lock(&lock);
		io = added;
		added = NULL;
		added_end = &added;
		over = quit && !under_way;
		pthread_mutex_unlock(&lock);
		if (over)
			break;
		for (; io; io = next) {
			next = io->next;
			put(io->io.write ? IORING_OP_WRITE : IORING_OP_READ,
			    io->io.f->direct_fd, io->host, io->len, io->off, io);
			submit++;
		}
		n = enter(submit);
		if (n > 0) {
			submit -= (unsigned int)n < submit ? (unsigned int)n :
							     submit;
		} else if (n < 0 && (errno == EAGAIN || errno == EBUSY ||
				     errno == ENOMEM)) {
			/* until something ends, or memory is there again */
			struct pollfd p = { .fd = r.fd, .events = POLLIN };

			poll(&p, 1, 10);
		} else if (n < 0 && errno != EINTR) {
			err = errno;
		}
		submit += reap(&err);
	}
	if (err)
		abandon(err);
	return arg;
}

/* With the lock held. */
static void start(void)
{
	size_t depth = config.size[CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH];
	sigset_t all, old;
	int err;

	err = make((unsigned int)min_of(depth, MAX_DEPTH));
	if (!err) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		err = pthread_create(&thread, NULL, serve, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	running = !err;
	refused = err;
	if (err) {
		log_line(LOG_INFO, "no io_uring: %s; batches and streams are done "
			 "by threads", strerror(err));
		give_up();
	}
}

/*
 * With the lock held.  False: the program has closed the eventfd; its number may
 * be that of another file from then on.
 */
static bool wake(void)
{
	const uint64_t one = 1;
	ssize_t n;

	while (!lost) {
		n = write(r.wake, &one, sizeof(one));
		if (n > 0)
			break;
		lost = errno != EINTR;
	}
	return !lost;
}

static bool add(struct ring_io *io)
{
	bool taken = false, first;

	pthread_mutex_lock(&lock);
	if (!running && !refused)
		start();
	if (running && !refused && under_way < r.depth) {
		taken = true;
		first = !added;
		io->next = NULL;
		*added_end = io;
		added_end = &io->next;
		under_way++;
		/* under the lock: the eventfd is there until shutdown */
		if (first && !wake()) {
			taken = false;
			refused = true;
			added = NULL;
			added_end = &added;
			under_way--;
		}
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

bool ring_move(struct ring_io *io, struct file *f, const void *base, size_t size,
	       off_t off, off_t buf_off, bool write)
{
	io->done = 0;
	if (!config.flag[CUFILE_PARAM_PREFER_IO_URING] || !size ||
	    !driver_may_transfer(base, size, off, buf_off))
		return false;
	io->io = (struct io){ .f = f, .since = -1, .write = write };
	io->len = size;
	io->off = (uint64_t)off;
	if (!io_plan(&io->io, (uintptr_t)base + (uint64_t)buf_off, size, io->off,
		     &io->window, &io->host))
		return false;
	if (add(io))
		return true;
	window_put(io->window);
	return false;
}

bool ring_result(struct ring_io *io, int res, struct pln_file_result *now,
		 ssize_t *result)
{
	/* nothing to read is the end, and after a part of a block there is no going on */
	bool good = res > 0 ? (size_t)res == io->len || res % io->io.f->off_align :
			      !res && !io->io.write;

	window_put(io->window);
	io->done = res > 0 ? (size_t)res : 0;
	/* it sets errno */
	if (!good && !(res < 0 && io_failed(&io->io, -res, io->off)))
		return false;
	io->io.bytes[PLN_PATH_P2P] = io->done;
	*result = good ? res : -1;
	res = errno;
	io->io.now = now;
	io_account(&io->io, io->len, io->off, *result, io->began);
	errno = res;
	return true;
}

void ring_shutdown(void)
{
	bool end;

	pthread_mutex_lock(&lock);
	/*
	 * A thread that cannot be woken sleeps, with nothing to do, until somebody
	 * interrupts it.  The ring stays as it is then, and there is no other.
	 */
	refused = running && !wake();
	end = quit = running && !refused;
	pthread_mutex_unlock(&lock);
	if (!end)
		return;
	pthread_join(thread, NULL);
	give_up();
	running = quit = false;
}
