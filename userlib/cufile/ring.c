// SPDX-License-Identifier: MIT
/*
 * Requests of batches and streams that go p2p or by the kernel module in one piece: an io_uring has as many of
 * them under way as execution.max_io_queue_depth says, and at most MAX_DEPTH.
 *
 * One thread submits and takes completions.  The program's threads do neither:
 * the kernel would interrupt their system calls to deliver completions.
 *
 * The program may close every descriptor that it did not open, and get their numbers
 * for files of its own.  So the ring has none: the thread registers it with itself and
 * closes its descriptor, and others wake the thread by a futex that the ring waits for.
 */
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

#define MAX_DEPTH	4095

/* Linux 6.7; older headers have neither */
#define OP_FUTEX_WAIT	51
#define FUTEX_FLAGS	(0x02 | FUTEX_PRIVATE_FLAG)	/* FUTEX2_SIZE_U32 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring_io *added, **added_end = &added;
static unsigned int under_way;		/* added, and not ended */
static bool running, refused, quit;
static _Atomic uint32_t calls;		/* of the thread; the futex */
static pthread_t thread;

/* Of the thread, and of who starts and ends it */
static struct {
	int fd;				/* -1 once it is registered */
	unsigned int number;		/* as what it is registered */
	bool waits;			/* for the futex */
	unsigned int depth;
	struct io_uring_sqe *sqe;
	unsigned int *sq_head, *sq_tail, sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail, cq_mask;
	struct io_uring_cqe *cqe;
	char *rings;
	size_t rings_size, sqe_size;
} r = { .fd = -1 };

static int setup(unsigned int entries, struct io_uring_params *p)
{
	return (int)syscall(__NR_io_uring_setup, entries, p);
}

static int tell(unsigned int what, void *arg, unsigned int n)
{
	return (int)syscall(__NR_io_uring_register, r.fd, what, arg, n);
}

static int enter(unsigned int submit)
{
	return (int)syscall(__NR_io_uring_enter, r.number, submit, 1,
			    IORING_ENTER_GETEVENTS | IORING_ENTER_REGISTERED_RING,
			    NULL, 0);
}

static void give_up(void)
{
	if (r.rings)
		munmap(r.rings, r.rings_size);
	if (r.sqe)
		munmap(r.sqe, r.sqe_size);
	if (r.fd >= 0)
		close(r.fd);
	r.rings = NULL;
	r.sqe = NULL;
	r.fd = -1;
	r.waits = false;
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

static bool has_futex(void)
{
	struct {
		struct io_uring_probe head;
		struct io_uring_probe_op op[OP_FUTEX_WAIT + 1];
	} p = { 0 };

	return !tell(IORING_REGISTER_PROBE, &p, OP_FUTEX_WAIT + 1) &&
	       p.head.ops_len > OP_FUTEX_WAIT &&
	       p.op[OP_FUTEX_WAIT].flags & IO_URING_OP_SUPPORTED;
}

/* By the thread that is to enter it: 0, or an errno. */
static int make(unsigned int depth)
{
	struct io_uring_rsrc_update as = { .offset = UINT32_MAX };
	struct io_uring_params p = { .flags = IORING_SETUP_CLAMP };
	const unsigned int need = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP |
				  IORING_FEAT_RW_CUR_POS;
	size_t cq;

	/* one more, for the futex */
	r.fd = setup(depth + 1, &p);
	if (r.fd < 0)
		return errno;
	if ((p.features & need) != need || !has_futex())
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
	as.data = (uint64_t)r.fd;
	if (tell(IORING_REGISTER_RING_FDS, &as, 1) != 1)
		return EOPNOTSUPP;
	r.number = as.offset;
	close(r.fd);
	r.fd = -1;
	return 0;
}

/* There is always room: no more are under way than the ring has entries. */
static void put(struct io_uring_sqe sqe)
{
	unsigned int tail = *r.sq_tail, i = tail & r.sq_mask;

	r.sqe[i] = sqe;
	r.sq_array[i] = i;
	__atomic_store_n(r.sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void put_io(struct ring_io *io)
{
	struct io_uring_sqe sqe = { .user_data = (uintptr_t)io };

	io_queue(io, &sqe);
	put(sqe);
}

/* Until the thread is called, unless it has been since @calls were counted */
static void put_wait(uint32_t counted)
{
	put((struct io_uring_sqe){
		.opcode = OP_FUTEX_WAIT,
		.fd = FUTEX_FLAGS,
		.addr = (uintptr_t)&calls,
		.off = counted,
		.addr3 = FUTEX_BITSET_MATCH_ANY,
	});
	r.waits = true;
}

static void nap(long ms)
{
	const struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static void finish(struct ring_io *io, int res)
{
	pthread_mutex_lock(&lock);
	under_way--;
	pthread_mutex_unlock(&lock);
	io->ended(io, res);
}

/* Takes completions; *@err is set when the futex cannot be waited for. */
static void reap(int *err)
{
	unsigned int head = *r.cq_head;

	while (head != __atomic_load_n(r.cq_tail, __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe c = r.cqe[head & r.cq_mask];

		__atomic_store_n(r.cq_head, ++head, __ATOMIC_RELEASE);
		if (c.user_data) {
			finish((struct ring_io *)(uintptr_t)c.user_data, c.res);
			continue;
		}
		r.waits = false;
		if (c.res == -ENOMEM)
			nap(1);
		else if (c.res < 0 && c.res != -EINTR && c.res != -EAGAIN)
			*err = -c.res;
	}
}

/*
 * The ring takes nothing more: a filter of system calls forbids it.  What the kernel
 * has not begun ends as cancelled; what it has begun ends in memory that stays mapped,
 * so this waits for it.
 */
static void abandon(int err)
{
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
		nap(1);
	}
}

/* Who starts the thread waits for it: there is a descriptor only until then. */
struct birth {
	unsigned int depth;
	int err;
	sem_t done;
};

static void *serve(void *arg)
{
	struct birth *birth = arg;
	struct ring_io *io, *next;
	unsigned int submit = 0;
	uint32_t counted;
	bool over;
	int n, err;

	err = birth->err = make(birth->depth);
	if (err)
		give_up();
	sem_post(&birth->done);
	if (err)
		return NULL;
	while (!err) {
		pthread_mutex_lock(&lock);
		io = added;
		added = NULL;
		added_end = &added;
		counted = calls;
		over = quit && !under_way;
		pthread_mutex_unlock(&lock);
		if (over)
			break;
		if (!r.waits) {
			put_wait(counted);
			submit++;
		}
		for (; io; io = next) {
			next = io->next;
			put_io(io);
			submit++;
		}
		n = enter(submit);
		if (n > 0)
			submit -= (unsigned int)n < submit ? (unsigned int)n :
							     submit;
		else if (n < 0 && (errno == EAGAIN || errno == EBUSY ||
				   errno == ENOMEM))
			nap(10);	/* memory may be there again */
		else if (n < 0 && errno != EINTR)
			err = errno;
		reap(&err);
	}
	if (err)
		abandon(err);
	return NULL;
}

/* With the lock held. */
static void start(void)
{
	size_t depth = config.size[CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH];
	struct birth birth = { .depth = (unsigned int)min_of(depth, MAX_DEPTH) };
	sigset_t all, old;
	int err;

	sem_init(&birth.done, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, serve, &birth);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err) {
		while (sem_wait(&birth.done))
			continue;
		err = birth.err;
		if (err)
			pthread_join(thread, NULL);
	}
	sem_destroy(&birth.done);
	running = !err;
	refused = err;
	if (err)
		log_line(LOG_INFO, "no io_uring: %s; batches and streams are done "
			 "by threads", strerror(err));
}

/* With the lock held. */
static void wake(void)
{
	calls++;
	syscall(SYS_futex, &calls, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
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
		if (first)
			wake();
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
	io->dev = (uintptr_t)base + (uint64_t)buf_off;
	if (!io_plan(&io->io, io->dev, size, io->off, &io->window))
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
	io->io.bytes[io->io.way] = io->done;
	/* it sets errno */
	if (!good && !(res < 0 && io_failed(&io->io, -res, io->off)))
		return false;
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
	refused = false;
	end = quit = running;
	if (end)
		wake();
	pthread_mutex_unlock(&lock);
	if (!end)
		return;
	pthread_join(thread, NULL);
	give_up();
	running = quit = false;
}
