// SPDX-License-Identifier: MIT
/*
 * The cache path.  What the mock's GPU reads through a registration is what the
 * file had when it was made, so a registration kept too long shows in the data.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/peerlane.h>

#include "unit.h"
#include "writers.h"

#define COMPAT	"\"properties\":{\"force_compat_mode\":true}"
#define SIZE	(MIB(20) + 1234)

static char *data;
static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

static struct {
	void *at;
	size_t len;
} warmed[2];
static unsigned int nr_warmed;

/* The system may take pages of all files out of the page cache from here on. */
void may_cool(void)
{
	while (nr_warmed) {
		nr_warmed--;
		munmap(warmed[nr_warmed].at, warmed[nr_warmed].len);
	}
}

/*
 * All of the file is in the page cache, and stays there, as the system may reclaim
 * what it thinks nobody needs: locked, where that is allowed.  By the system call:
 * the sanitizers have an mlock() that does nothing.
 */
static void warm(int fd, size_t n)
{
	static bool told;
	char *buf = malloc(MIB(1));
	size_t at;
	void *p;

	p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || nr_warmed == 2)
		abort();
	/* children have none of it, and what was locked stays so */
	madvise(p, n, MADV_DONTFORK);
	if (syscall(SYS_mlock, p, n)) {
		if (!told)
			printf("# the page cache cannot be locked: %s\n",
			       strerror(errno));
		told = true;
		munmap(p, n);
	} else {
		warmed[nr_warmed].at = p;
		warmed[nr_warmed++].len = n;
	}
	for (at = 0; at < n; at += MIB(1))
		if (pread(fd, buf, MIB(1), (off_t)at) < 0)
			abort();
	free(buf);
}

void warm_file(const char *name, size_t n)
{
	int fd = open(name, O_RDONLY);

	if (fd < 0)
		abort();
	warm(fd, n);
	close(fd);
}

/* The file, cached, opened with @flags */
static int a_file(int flags, size_t n)
{
	int fd;

	if (!data) {
		data = malloc(MIB(64));
		noise(data, MIB(64));
	}
	may_cool();
	unlink(path);		/* another test may have it open still */
	close(make(path, 0, data, n));
	warm_file(path, n);
	fd = open(path, flags);
	if (fd < 0)
		abort();
	return fd;
}

static uint64_t by(CUfileHandle_t fh, enum pln_path way)
{
	return stats_of(fh).path[way].bytes_read;
}

/* The latest transfer went so; if not, why is said. */
static void by_cache(CUfileHandle_t fh, const char *what)
{
	struct pln_file_stats s = stats_of(fh);
	bool good = s.last_path == PLN_PATH_CACHE;

	check(good, "%s", what);
	if (!good)
		printf("# path %u: %s\n", s.last_path, s.reason);
}

/* Waits until no registration is left; false: there still is one. */
static bool none_left(void)
{
	int i;

	for (i = 0; i < 5000 && stats_of(NULL).cache_windows; i++)
		usleep(1000);
	return !stats_of(NULL).cache_windows && !mock.read_only;
}

void test_cache(void)
{
	int fd = a_file(O_RDONLY, SIZE), fd2, i, bad = 0;
	char *g = gpu(MIB(48));
	struct pln_file_stats s;
	CUfileHandle_t fh;
	size_t at;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), SIZE, "all of a cached file");
	check(!memcmp(mem(g), data, SIZE), "the right data");
	by_cache(fh, "by the cache path");
	is((long long)by(fh, PLN_PATH_CACHE), SIZE, "all of it");
	is((long long)mock.host_bytes, 0, "the CPU reads nothing");
	is((long long)mock.unpinned, 0, "nor copies from the mapping");
	s = stats_of(NULL);
	check(s.cache_windows == 3 && s.leases == 1 && s.cache_bytes >= SIZE,
	      "three registrations are kept, under a lease");
	is((long long)stats_of(fh).fallbacks, 1, "which is not p2p");
	check(strstr(stats_of(fh).reason, "force_compat_mode"),
	      "and why is said: %s", stats_of(fh).reason);
	i = (int)mock.read_only_calls;
	/* what nobody uses is given up after some seconds */
	mock_stop_clock();
	for (at = 0; at < SIZE; at += KIB(64))
		bad += cuFileRead(fh, g, KIB(64), (off_t)at, 0) !=
		       (ssize_t)(SIZE - at < KIB(64) ? SIZE - at : KIB(64)) ||
		       memcmp(mem(g), data + at, SIZE - at < KIB(64) ? SIZE - at :
								       KIB(64));
	is(bad, 0, "all of it, piece by piece");
	is((long long)mock.read_only_calls, i, "needs no other registration");
	for (i = 0; i < 500; i++) {
		size_t off = rnd() % (SIZE + 9000), n = 1 + rnd() % MIB(3);
		size_t to = rnd() % 999, want;

		n = rnd() % 3 ? n % 9000 : n;
		want = off >= SIZE ? 0 : n < SIZE - off ? n : SIZE - off;
		if (cuFileRead(fh, g, n, (off_t)off, (off_t)to) !=
		    (ssize_t)want || memcmp(mem(g) + to, data + off, want))
			bad++;
	}
	is(bad, 0, "500 reads at odd places, beyond the end too");
	cuFileHandleDeregister(fh);
	check(none_left(), "closed, nothing is registered");
	is((long long)stats_of(NULL).leases, 0, "nor leased");

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "a small read, the first");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is copied");
	check(strstr(stats_of(fh).reason, "no cache: too little was read"),
	      "why: %s", stats_of(fh).reason);
	for (at = 0; at < MIB(2); at += KIB(64))
		cuFileRead(fh, g, KIB(64), (off_t)at, 0);
	by_cache(fh, "after some it is not");
	is(cuFileRead(fh, g, 100, 0, 0), 100, "100 bytes");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "are copied");
	fd2 = open(path, O_RDONLY | O_DIRECT);
	is(cuFileRead(reg(fd2), g, MIB(8), 0, 0), MIB(8), "with O_DIRECT");
	check(strstr(stats_of(NULL).reason, "O_DIRECT"), "it is read so: %s",
	      stats_of(NULL).reason);
	is(unlink(path), 0, "the file is removed");
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "it is read to its end");
	check(!memcmp(mem(g), data, SIZE), "and has the right data");
	close(fd2);
	close(fd);

	fd = a_file(O_RDONLY, SIZE);
	fresh("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "the path by default");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is not taken");
	fresh("{" COMPAT ",\"peerlane\":{\"page_cache\":true}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "switched on by its key");
	by_cache(fh, "it is");
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	may_cool();
	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		abort();
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "not in the page cache");
	check(strstr(stats_of(fh).reason, "not all of it is in the page cache"),
	      "why: %s", stats_of(fh).reason);
	check(!memcmp(mem(g), data, MIB(8)), "the right data");
	close(fd);
	gpu_free(g);
}

/* One page of a large read is not in the page cache; the page behind the read, which is, does not stand for it. */
void test_cache_page(void)
{
	const size_t n = MIB(5) - 150;
	int fd = a_file(O_RDWR, SIZE);
	char *g = gpu(MIB(8));
	CUfileHandle_t fh;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	/* it goes from the page cache, whatever it is there a part of */
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096))
		abort();
	is(cuFileRead(fh, g, n, 100, 0), (long long)n, "a page is not in the page cache");
	check(!memcmp(mem(g), data + 100, 3996) && !mem(g)[3996] &&
	      !memcmp(mem(g) + 8092, data + 8192, n - 8092), "the right data");
	is((long long)mock.read_only_calls, 0, "so nothing is registered");
	check(strstr(stats_of(fh).reason, "not all of it is in the page cache"),
	      "why: %s", stats_of(fh).reason);
	may_cool();
	close(fd);
	gpu_free(g);
}

/* One read of more than a read uses registrations at once */
void test_cache_many(void)
{
	const size_t part = MIB(8), n = 17 * part;	/* one more than a read uses at once */
	int fd = a_file(O_RDWR, part), i, bad = 0;
	char *g = gpu(n);
	CUfileHandle_t fh;

	may_cool();
	for (i = 1; i < 17; i++)
		bad += pwrite(fd, data + i, part, (off_t)part * i) != (ssize_t)part;
	if (bad || fsync(fd))
		abort();
	close(fd);
	warm_file(path, n);
	fd = open(path, O_RDONLY);
	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":262144}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, n, 0, 0), (long long)n, "136 MiB");
	for (i = 0; i < 17; i++)
		bad += memcmp(mem(g) + part * i, data + i, part) != 0;
	is(bad, 0, "the right data");
	if (strstr(stats_of(fh).reason, "no cache: memory is short")) {
		printf("# registrations of 136 MiB are not tested: memory is short\n");
	} else {
		is((long long)by(fh, PLN_PATH_CACHE), (long long)n, "all by the cache path");
		is((long long)mock.read_only_calls, 17, "by a registration for each 8 MiB");
	}
	mock.later += 30;
	check(none_left(), "none of which is in use after it");
	close(fd);
	gpu_free(g);
}

/* A kernel that has no cachestat() */
void test_cache_mincore(void)
{
	int fd = a_file(O_RDONLY, SIZE), status = -1;
	CUfileHandle_t fh;
	pid_t child;
	char *g;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	may_cool();
	child = fork();
	if (!child) {
		forbid(451, ENOSYS);
		fresh_cache("{" COMPAT "}");
		g = gpu(MIB(24));
		fh = reg(fd);
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			_exit(2);
		if (cuFileRead(fh, g, MIB(8), 0, 0) != MIB(8) || mock.read_only_calls ||
		    !strstr(stats_of(fh).reason, "not all of it is in the page cache"))
			_exit(3);
		warm_file(path, SIZE);
		if (cuFileRead(fh, g, MIB(8), 0, 0) != MIB(8) ||
		    stats_of(fh).last_path != PLN_PATH_CACHE || memcmp(mem(g), data, MIB(8)))
			_exit(4);
		_exit(0);
	}
	waitpid(child, &status, 0);
	is(status, 0, "without cachestat(), what is not cached is copied, and what is goes by the cache path");
	close(fd);
}

/* Who has a lease, and what is done without */
void test_cache_lease(void)
{
	int fd = a_file(O_RDWR, SIZE), i;
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a file opened to write");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "is copied");
	check(strstr(stats_of(fh).reason, "no read lease: the file is open for "
		     "writing"), "why: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, MIB(24), 5000, 0), SIZE - 5000, "a large read");
	by_cache(fh, "is not");
	check(!memcmp(mem(g), data + 5000, SIZE - 5000), "the right data");
	check(none_left(), "and nothing stays registered");
	for (i = 0; i < 20; i++) {
		if (pwrite(fd, data + i, MIB(5), MIB(i % 9)) != MIB(5))
			abort();
		if (cuFileRead(fh, g, MIB(5), MIB(i % 9), 0) != MIB(5) ||
		    memcmp(mem(g), data + i, MIB(5)))
			break;
	}
	is(i, 20, "what is written between reads is read");
	close(fd);
	cuFileHandleDeregister(fh);
	close(a_file(O_RDONLY, SIZE));
	fd = open(path, O_RDONLY);
	fh = reg(fd);
	i = open(path, O_WRONLY);
	cuFileRead(fh, g, MIB(5), 0, 0);
	is((long long)stats_of(NULL).leases, 0, "no lease beside a writer");
	close(i);
	cuFileRead(fh, g, MIB(5), 0, 0);
	is((long long)stats_of(NULL).leases, 0, "nor at once after it");
	mock.later += 2;
	cuFileRead(fh, g, MIB(5), 0, 0);
	is((long long)stats_of(NULL).leases, 1, "but later");
	close(fd);
	gpu_free(g);
}

/* Gives back each byte that it gets */
static void *answer(void *arg)
{
	char c;

	while (read(*(int *)arg, &c, 1) == 1 && write(*(int *)arg, &c, 1) == 1)
		continue;
	return NULL;
}

/*
 * How long a writer waits on this machine at this moment: one question to a thread of the
 * reader's process, as the kernel has one for the keeper, and a file without a lease
 */
static double without_lease(int question)
{
	double began = writers_now();
	char name[300], c = 0;
	int fd;

	snprintf(name, sizeof(name), "%s.free", path);
	if (write(question, &c, 1) != 1 || read(question, &c, 1) != 1)
		return -1;
	fd = open(name, O_RDWR | O_CREAT, 0644);
	return fd < 0 ? -1 : writers_now() - began;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A reader that keeps registrations, and all ways to change the file */
void test_cache_writers(void)
{
	enum { ROUNDS = 2 * WAYS };
	struct sigaction act = { .sa_handler = count_signal }, old;
	char *g = gpu(MIB(24)), *new = malloc(MIB(24));
	/* how long writers wait, with a lease and without */
	double took[2], with[ROUNDS], without[ROUNDS];
	uint64_t broken = stats_of(NULL).leases_broken;
	int fd, round, status, stale = 0, kept = 0, pipes[2], question[2];
	char name[300];
	pthread_t thread;
	CUfileHandle_t fh;

	sigaction(SIGURG, &act, &old);
	fresh_cache("{" COMPAT "}");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, question) ||
	    pthread_create(&thread, NULL, answer, &question[0]))
		abort();
	for (round = 0; round < ROUNDS; round++) {
		int way = round % WAYS;
		size_t size, i;
		pid_t pid;

		fd = a_file(O_RDONLY, SIZE);
		fh = reg(fd);
		if (cuFileRead(fh, g, SIZE, 0, 0) != SIZE ||
		    memcmp(mem(g), data, SIZE))
			stale++;
		if (stats_of(NULL).cache_windows >= 2)
			kept++;
		else
			printf("# round %d: %s\n", round, stats_of(fh).reason);
		noise(new, 4096);
		for (i = 4096; i < MIB(24); i *= 2)
			memcpy(new + i, new, i < MIB(12) ? i : MIB(24) - i);
		if (pipe(pipes))
			abort();
		pid = fork();
		if (!pid) {
			took[0] = without_lease(question[1]);
			took[1] = write_as(way, path, other, new, SIZE);
			_exit(write(pipes[1], took, sizeof(took)) < 0);
		}
		if (read(pipes[0], took, sizeof(took)) != sizeof(took) ||
		    took[0] < 0 || took[1] < 0)
			abort();
		close(pipes[0]);
		close(pipes[1]);
		waitpid(pid, &status, 0);
		without[round] = took[0];
		with[round] = took[1];
		size = written(way, data, new, SIZE);
		may_cool();
		warm_file(path, size);
		if (cuFileRead(fh, g, MIB(24), 0, 0) != (ssize_t)size ||
		    memcmp(mem(g), new, size)) {
			printf("# stale after way %d\n", way);
			stale++;
		}
		/* by small reads, too, which only kept registrations serve */
		for (i = 0; i < size; i += MIB(1) + 4096)
			if (cuFileRead(fh, g, KIB(64), (off_t)i, 0) < 1 ||
			    memcmp(mem(g), new + i, size - i < (int)KIB(64) ? (size_t)(size - i) :
									 KIB(64)))
				stale++;
		cuFileHandleDeregister(fh);
		close(fd);
	}
	is(stale, 0, "nobody reads what was there before");
	is(kept, round, "though registrations were kept");
	/* who renames another file over it does not write it */
	is((long long)(stats_of(NULL).leases_broken - broken), 2 * (WAYS - 1),
	   "and leases broken");
	close(question[1]);
	pthread_join(thread, NULL);
	close(question[0]);
	snprintf(name, sizeof(name), "%s.free", path);
	unlink(name);
	/* a busy machine keeps either of them from running */
	qsort(with, ROUNDS, sizeof(with[0]), by_size);
	qsort(without, ROUNDS, sizeof(without[0]), by_size);
	check(with[WAYS] < without[WAYS] + 0.1, "no writer waits for 100 ms: %.1f ms, and "
	      "%.1f ms where there is no lease", with[WAYS] * 1e3, without[WAYS] * 1e3);
	check(with[ROUNDS - 1] < without[ROUNDS - 1] + 5, "nor does one wait until the kernel "
	      "takes the lease: %.1f ms at most, and %.1f ms", with[ROUNDS - 1] * 1e3,
	      without[ROUNDS - 1] * 1e3);
	is(signals, 0, "the program gets none of the signals");
	sigaction(SIGURG, &old, NULL);
	gpu_free(g);
	free(new);
}

/* Registrations come and go within the budget */
void test_cache_budget(void)
{
	int fd = a_file(O_RDONLY, MIB(48)), turn, bad = 0;
	char *g = gpu(MIB(48));
	uint64_t most = 0, n;
	CUfileHandle_t fh;
	size_t at;

	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":32768}}");
	fh = reg(fd);
	for (turn = 0; turn < 6; turn++)
		for (at = 0; at < MIB(48); at += MIB(4)) {
			if (cuFileRead(fh, g, MIB(4), (off_t)at, 0) != MIB(4) ||
			    memcmp(mem(g), data + at, MIB(4)))
				bad++;
			n = stats_of(NULL).cache_bytes;
			most = n > most ? n : most;
		}
	is(bad, 0, "six times around a file that is larger than the budget");
	check(most == MIB(32), "which is used and kept: %llu KiB",
	      (unsigned long long)most >> 10);
	check(by(fh, PLN_PATH_CACHE) >= MIB(48), "by the cache path mostly");
	mock.later += 30;
	check(none_left(), "what nobody uses is given up");
	is((long long)stats_of(NULL).leases, 1, "the lease is not");
	is(cuFileRead(fh, g, MIB(4), 0, 0), MIB(4), "it is used again");
	by_cache(fh, "by the cache path");
	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":0}}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "without a budget");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "all is copied");
	check(strstr(stats_of(fh).reason, "max_page_cache_kb is used up"),
	      "why: %s", stats_of(fh).reason);
	close(fd);
	gpu_free(g);
}

/* From slot @first of 8 MiB on, @n slots, one read for each; false: other bytes came. */
static bool read_slots(CUfileHandle_t fh, char *g, unsigned int first, unsigned int n)
{
	const size_t slot = MIB(8);
	bool good = true;

	for (; n--; first++)
		good &= cuFileRead(fh, g, slot, (off_t)(first * slot), 0) == (ssize_t)slot &&
			!memcmp(mem(g), data + first * slot, slot);
	return good;
}

/* The same, and what a read displaces is unregistered before the next one. */
static bool read_settled(CUfileHandle_t fh, char *g, unsigned int first, unsigned int n)
{
	uint64_t ended, before;
	bool good = true;

	for (; n--; first++) {
		ended = mock.unregistered;
		before = by(fh, PLN_PATH_CACHE);
		good &= read_slots(fh, g, first, 1);
		/* the reason is of this read only if it was copied */
		if (by(fh, PLN_PATH_CACHE) == before &&
		    strstr(stats_of(fh).reason, "have not ended"))
			AWAIT(mock.unregistered > ended &&
			      (size_t)mock.read_only == stats_of(NULL).cache_windows);
	}
	return good;
}

/* So many rounds of @n slots from @first on, or less, until one needs nothing else */
static int rounds_until_kept(CUfileHandle_t fh, char *g, unsigned int first, unsigned int n,
			     int most, bool *good)
{
	uint64_t before;
	int i;

	for (i = 1; i <= most; i++) {
		before = by(fh, PLN_PATH_CACHE);
		*good &= read_settled(fh, g, first, n);
		if (by(fh, PLN_PATH_CACHE) - before == n * MIB(8))
			return i;
	}
	return i;
}

/* A budget of half of what is read: as much stays as has room */
void test_cache_scan(void)
{
	int fd = a_file(O_RDONLY, MIB(32)), i;
	char *g = gpu(MIB(8));
	CUfileHandle_t fh;
	uint64_t calls;
	bool good = true;

	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":16384}}");
	mock_stop_clock();	/* nothing is given up because it is old */
	fh = reg(fd);
	for (i = 0; i < 5; i++)
		good &= read_slots(fh, g, 0, 4);
	check(good, "five times around a file of twice the budget: the right data");
	is((long long)by(fh, PLN_PATH_CACHE), 5 * MIB(16), "half of it by the cache path");
	is((long long)mock.read_only_calls, 2, "with as many registrations as have room");
	check(strstr(stats_of(fh).reason, "no cache: peerlane.max_page_cache_kb is used up"),
	      "why not all: %s", stats_of(fh).reason);
	/* what is read once beside what is read often has none */
	good &= read_slots(fh, g, 0, 2) && read_slots(fh, g, 2, 1) && read_slots(fh, g, 0, 2);
	is((long long)mock.read_only_calls, 2, "what is read between has none");

	i = rounds_until_kept(fh, g, 2, 2, 50, &good);
	check(i <= 50, "another part is read: it has them in round %d", i);
	calls = mock.read_only_calls;
	for (i = 0; i < 3; i++)
		good &= read_slots(fh, g, 2, 2);
	is((long long)mock.read_only_calls, (long long)calls, "and keeps them");
	/* one of three is read four times as often as the others */
	for (i = 0; i < 20 && rounds_until_kept(fh, g, 0, 1, 4, &good) > 4; i++)
		good &= read_settled(fh, g, 2, 2);
	check(i < 20, "what is read more often displaces one of them, in round %d", i);
	check(good, "all with the right data");
	check(stats_of(NULL).cache_bytes <= MIB(16), "within the budget");
	close(fd);
	gpu_free(g);
}

/* What has the budget goes for what is read again and can be registered, and no other. */
void test_cache_displaced(void)
{
	static const char used_up[] = "no cache: peerlane.max_page_cache_kb is used up";
	int fd = a_file(O_RDONLY, MIB(32)), i;
	char *g = gpu(MIB(8));
	CUfileHandle_t fh;
	bool good = true;

	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":16384}}");
	mock_stop_clock();
	fh = reg(fd);
	good &= read_slots(fh, g, 0, 2);
	is(cuFileRead(fh, g, KIB(64), MIB(24), 0), KIB(64), "the budget is full, and little is read");
	check(strstr(stats_of(fh).reason, used_up), "why it has none: %s", stats_of(fh).reason);
	may_cool();
	for (i = 0; i < 5; i++) {
		/* a read may bring it back */
		if (posix_fadvise(fd, MIB(16), MIB(8), POSIX_FADV_DONTNEED))
			abort();
		good &= read_slots(fh, g, 2, 1);
	}
	check(strstr(stats_of(fh).reason, "not all of it is in the page cache"),
	      "what is read again is not cached: %s", stats_of(fh).reason);
	is((long long)by(fh, PLN_PATH_CACHE), MIB(16), "it is copied");
	good &= read_slots(fh, g, 0, 2);
	is((long long)by(fh, PLN_PATH_CACHE), 2 * MIB(16), "and displaces nothing");
	is((long long)mock.read_only_calls, 2, "which was not registered anew");
	close(fd);

	fd = a_file(O_RDONLY, MIB(32));
	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":16384}}");
	mock_stop_clock();
	fh = reg(fd);
	mock.hold_unpin = true;
	good &= read_slots(fh, g, 0, 3) && read_slots(fh, g, 2, 1);
	check(strstr(stats_of(fh).reason, "no cache: registrations that are not kept have not ended"),
	      "one is displaced, but has not ended: %s", stats_of(fh).reason);
	mock.hold_unpin = false;
	AWAIT(mock.unregistered == 1 && stats_of(NULL).cache_windows == 1);
	good &= read_slots(fh, g, 3, 1);
	is((long long)mock.read_only_calls, 2, "what is read once does not get its room");
	check(strstr(stats_of(fh).reason, used_up), "why: %s", stats_of(fh).reason);
	good &= read_slots(fh, g, 2, 1);
	by_cache(fh, "what was read again does");
	good &= read_slots(fh, g, 1, 1);
	is((long long)by(fh, PLN_PATH_CACHE), 4 * MIB(8), "and the other one stays");
	is((long long)mock.read_only_calls, 3, "as it was");
	close(fd);

	/* 2 MiB that were read long ago, 8 that are read often, and 8 that want room */
	fd = a_file(O_RDONLY, MIB(18));
	fresh_cache("{" COMPAT ",\"peerlane\":{\"max_page_cache_kb\":10240}}");
	mock_stop_clock();
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(2), MIB(16), 0), MIB(2), "a small one is registered");
	for (i = 0; i < 4; i++)
		good &= read_slots(fh, g, 0, 1);
	good &= read_slots(fh, g, 1, 1) && read_slots(fh, g, 0, 2);
	is(cuFileRead(fh, g, MIB(2), MIB(16), 0), MIB(2), "it is not enough room for another");
	is((long long)by(fh, PLN_PATH_CACHE), 5 * MIB(8) + 2 * MIB(2), "so it stays");
	is((long long)mock.read_only_calls, 2, "as it was, too");
	check(good, "all with the right data");
	close(fd);
	gpu_free(g);
}

void test_cache_refused(void)
{
	int fd = a_file(O_RDONLY, SIZE), fd2;
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;
	uint64_t calls;
	unsigned int i, bad = 0;
	ssize_t r;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.register_error = 801;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "CUDA does not do it");
	check(!memcmp(mem(g), data, SIZE), "the right data");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "by the other path");
	check(strstr(stats_of(fh).reason, "no cache: the page cache cannot be "
		     "registered: CUDA_ERROR_NOT_SUPPORTED (801)"), "why: %s",
	      stats_of(fh).reason);
	calls = mock.read_only_calls;
	mock.register_error = 0;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "again");
	is((long long)mock.read_only_calls, (long long)calls, "it is remembered");
	check(strstr(stats_of(fh).reason, "(801)"), "with its reason: %s",
	      stats_of(fh).reason);
	is((long long)log_count("notice: device "), 2, "p2p and this are told");
	is((long long)log_count(": no cache: the page cache cannot be registered"), 1,
	   "each once");
	mock.later += 11;
	fd2 = open(path, O_RDONLY);
	is(cuFileRead(reg(fd2), g, KIB(64), 0, 0), KIB(64), "a read too small to be worth it");
	is((long long)mock.read_only_calls, (long long)calls, "does not try it again");
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "some time later");
	by_cache(fh, "it is tried, and works");
	close(fd2);

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.register_error = 1;
	for (i = 0; i < 10; i++)
		is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "this file cannot be registered");
	check(mock.read_only_calls <= 4, "it is not tried for ever: %d times",
	      (int)mock.read_only_calls);
	check(strstr(stats_of(fh).reason, "no cache: the page cache cannot be "
			     "registered: "), "why: %s", stats_of(fh).reason);
	mock.register_error = 0;
	mock.later += 11;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "but later");
	by_cache(fh, "again, and works");

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.register_error = 1;
	for (i = 0; i < 2; i++)
		is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "it cannot, twice");
	mock.register_error = 0;
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "then it can");
	mock.register_error = 1;
	is(cuFileRead(fh, g, MIB(8), MIB(8), 0), MIB(8), "another part cannot, once");
	mock.register_error = 0;
	is(cuFileRead(fh, g, MIB(8), MIB(8), 0), MIB(8), "that is not three times in a row");
	by_cache(fh, "so it is tried again at once");

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.register_error = 2;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "no memory to register");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "by the other path");
	mock.register_error = 0;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "then there is");
	by_cache(fh, "it was of the moment");

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.no_read_only = true;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "the GPU cannot do it");
	is((long long)mock.read_only_calls, 0, "it is not tried");
	mock.no_read_only = false;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	cuFileRead(fh, g, SIZE, 0, 0);
	mock.copy_error = 700;
	is(cuFileRead(fh, g, SIZE, 0, 0), -5011, "copies fail: an error");
	mock.copy_error = 0;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "then they work");
	check(!memcmp(mem(g), data, SIZE), "and bring the right data");
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.file_errno = ENOMEM;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "the file cannot be mapped");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "by the other path");
	check(strstr(stats_of(fh).reason, "no cache: the file cannot be mapped: "
		     "Cannot allocate memory"), "why: %s", stats_of(fh).reason);
	is((long long)stats_of(NULL).leases, 0, "and no lease is left");
	mock.file_errno = 0;
	for (i = 0; i < 16; i++) {
		fresh_cache("{" COMPAT "}");
		fh = reg(fd);
		mock.alloc_after = i;
		r = cuFileRead(fh, g, SIZE, 0, 0);
		mock.alloc_after = -1;
		if (r >= 0 ? r != SIZE || memcmp(mem(g), data, SIZE) :
			     errno != ENOMEM)
			bad++;
		mock.later += 2;
		if (cuFileRead(fh, g, SIZE, 0, 0) != SIZE ||
		    stats_of(fh).last_path != PLN_PATH_CACHE)
			bad++;
	}
	is(bad, 0, "each allocation fails, and then none");
	fresh_cache("{\"peerlane\":{\"strict\":true}," COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), -5008, "strict mode is p2p alone");
	close(fd);
	gpu_free(g);
}

/* CUDA waits for the program's work before it unregisters.  Nobody else does. */
void test_cache_pending(void)
{
	int fd = a_file(O_RDWR, SIZE), i, out;
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;
	double took;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.hold_unpin = true;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a read beside work of the GPU");
	by_cache(fh, "by the cache path, ends");
	for (i = 0; i < 5000 && !mock.in_unpin; i++)
		usleep(1000);
	check(mock.in_unpin == 1, "while one waits to unregister");
	cuFileHandleDeregister(fh);
	close(fd);
	fd = a_file(O_RDONLY, SIZE);
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "registrations are kept");
	took = writers_now();
	out = open(path, O_WRONLY);
	took = writers_now() - took;
	check(out >= 0 && took < 5, "a writer does not wait for them: %.1f ms",
	      took * 1e3);
	if (pwrite(out, "new", 3, 0) != 3)
		abort();
	is(cuFileRead(fh, g, 4096, 0, 0), 4096, "what it wrote");
	check(!memcmp(mem(g), "new", 3), "is read");
	close(out);
	mock.hold_unpin = false;
	check(none_left(), "when the GPU is idle all are unregistered");
	close(fd);
	gpu_free(g);
}

/*
 * What was retired while CUDA waits for work of the GPU is registered still: as long as that
 * lasts its addresses cannot be registered again, which is no failure of the file's.
 */
void test_cache_again(void)
{
	int fd = a_file(O_RDONLY, SIZE), i;
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "three registrations");
	mock.hold_unpin = true;
	mock.later += 30;
	AWAIT(mock.in_unpin == 1);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "read while the old ones end");
	check(!memcmp(mem(g), data, SIZE), "the right data");
	check(strstr(stats_of(fh).reason, "have not ended"), "why it is staged: %s",
	      stats_of(fh).reason);
	is((long long)mock.read_only_calls, 3, "nobody tries to register it");
	mock.hold_unpin = false;
	check(none_left(), "then they have ended");
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "and at once");
	by_cache(fh, "it goes by the cache path again");

	/* the same, and the file is closed meanwhile */
	mock.hold_unpin = true;
	mock.later += 30;
	AWAIT(mock.in_unpin == 1);
	cuFileHandleDeregister(fh);
	mock.hold_unpin = false;
	check(none_left(), "a file that was closed meanwhile");

	/* whoever has it registered */
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock.register_error = 712;
	for (i = 0; i < 4; i++)
		cuFileRead(fh, g, SIZE, 0, 0);
	check(strstr(stats_of(fh).reason, "(712)"), "registered already: %s",
	      stats_of(fh).reason);
	mock.register_error = 0;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "and not any more");
	by_cache(fh, "it was of the moment");
	close(fd);
	gpu_free(g);
}

/*
 * A context is destroyed, and the registrations that were made in it are gone: they count
 * for nothing, and nobody ends in their place what was registered there since.
 */
void test_cache_context(void)
{
	int fd = a_file(O_RDONLY, SIZE), i;
	char *g = gpu(MIB(24)), *h;
	CUfileHandle_t fh;

	mock.other_memory = true;
	h = gpu(MIB(24));
	mock.other_memory = false;
	for (i = 0; i < 2; i++) {
		fresh_cache("{" COMPAT "}");
		mock.gone_anywhere = i;
		fh = reg(fd);
		is(cuFileRead(fh, h, SIZE, 0, 0), SIZE, "a read into memory of another context");
		by_cache(fh, "by the cache path");
		mock_end_other();
		cuFileHandleDeregister(fh);
		check(none_left(), "the context is gone, and nothing is registered");
		check(!log_has("stays mapped"), "nor does anything stay mapped");
	}

	fresh_cache("{" COMPAT "}");
	mock_stop_clock();	/* the lease was held just now, as long as it stands */
	fh = reg(fd);
	is(cuFileRead(fh, h, SIZE, 0, 0), SIZE, "once more");
	by_cache(fh, "by the cache path");
	mock_end_other();
	mock.hold_unpin = true;
	is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "another context reads a little of what it had");
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "and all");
	check(!memcmp(mem(g), data, SIZE), "the right data");
	is((long long)mock.unpinned, 0, "nothing by what is not registered any more");
	mock.hold_unpin = false;
	check(none_left(), "nothing of it is left");
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "and again");
	by_cache(fh, "it has registrations of its own");
	is(mock.read_only, 3, "that stand");
	is((long long)stats_of(NULL).cache_windows, 3, "and no other");
	check(!log_has("stays mapped"), "nothing stays mapped");
	close(fd);
	gpu_free(g);
	gpu_free(h);
}

/* The lease ends with the process that has it, whatever its children do. */
void test_cache_fork(void)
{
	int fd = a_file(O_RDONLY, SIZE), pipes[2], out;
	pid_t reader, child = 0;
	char *g;

	if (pipe(pipes))
		abort();
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	reader = fork();
	if (!reader) {
		fresh_cache("{" COMPAT "}");
		g = gpu(MIB(24));
		cuFileRead(reg(fd), g, SIZE, 0, 0);
		if (stats_of(NULL).leases != 1)
			_exit(1);
		child = fork();
		if (!child) {
			/* fork() has returned here: the lease's descriptor is closed */
			child = getpid();
			if (write(pipes[1], &child, sizeof(child)) < 0)
				_exit(1);
		}
		for (;;)
			pause();
	}
	close(pipes[1]);
	check(read(pipes[0], &child, sizeof(child)) == sizeof(child),
	      "a reader has a lease and a child");
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	out = open(path, O_WRONLY | O_NONBLOCK);
	check(out >= 0, "the reader is killed, a writer need not wait: %s",
	      strerror(out < 0 ? errno : 0));
	if (child)
		kill(child, SIGKILL);
	close(out);
	close(pipes[0]);
	close(fd);
}

/* The leased descriptors of this process, and those that tell one thread so */
static int leased(int *tell_thread)
{
	struct f_owner_ex owner;
	int fd, n = 0;

	*tell_thread = 0;
	for (fd = 0; fd < 1024; fd++) {
		if (fcntl(fd, F_GETLEASE) != F_RDLCK)
			continue;
		n++;
		*tell_thread += !fcntl(fd, F_GETOWN_EX, &owner) &&
				owner.type == F_OWNER_TID && owner.pid > 0;
	}
	return n;
}

struct first {
	pthread_t thread;
	CUfileHandle_t fh;
	char *g;
	_Atomic bool done;
};

static void *read_first(void *arg)
{
	struct first *f = arg;

	cuFileRead(f->fh, f->g, SIZE, 0, 0);
	f->done = true;
	return NULL;
}

/* Two threads read two files before the thread that answers for leases runs. */
void test_cache_start(void)
{
	int fd = a_file(O_RDONLY, SIZE), fd2, tell, i;
	struct first a = { .g = gpu(MIB(24)) }, b = { .g = gpu(MIB(24)) };

	close(make(other, 0, data, SIZE));
	fd2 = open(other, O_RDONLY);
	warm(fd2, SIZE);
	fresh_cache("{" COMPAT "}");
	a.fh = reg(fd);
	b.fh = reg(fd2);
	mock.hold_sigset = true;
	pthread_create(&a.thread, NULL, read_first, &a);
	for (i = 0; i < 50000 && !mock.in_sigset; i++)
		usleep(100);
	check(mock.in_sigset > 0, "the thread begins");
	pthread_create(&b.thread, NULL, read_first, &b);
	/* nothing tells that it waits: so long, it may take a lease too early */
	for (i = 0; i < 3000 && !b.done; i++)
		usleep(100);
	check(!b.done, "meanwhile nobody has a lease");
	mock.hold_sigset = false;
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	is(leased(&tell), 2, "two leases");
	is(tell, 2, "each of which tells one thread");
	close(fd);
	close(fd2);
	unlink(other);
	gpu_free(a.g);
	gpu_free(b.g);
}

/* Has a thread of this process the signal pending? */
static bool is_pending(int sig)
{
	unsigned long long mask = 0;
	struct dirent *e;
	char name[300], line[128];
	bool found = false;
	DIR *d = opendir("/proc/self/task");
	FILE *f;

	while ((e = readdir(d))) {
		snprintf(name, sizeof(name), "/proc/self/task/%s/status", e->d_name);
		f = fopen(name, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "SigPnd: %llx", &mask) == 1)
				found |= mask >> (sig - 1) & 1;
		if (f)
			fclose(f);
	}
	closedir(d);
	return found;
}

static void *close_driver(void *arg)
{
	_Atomic bool *done = arg;

	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	*done = true;
	return NULL;
}

/* A signal that is pending goes when the program says that it wants to ignore it. */
void test_cache_signal_lost(void)
{
	int fd = a_file(O_RDWR, SIZE);
	_Atomic bool done = false;
	char *g = gpu(MIB(24));
	pthread_t thread;

	fresh_cache("{" COMPAT "}");
	mock.hold_keep = true;
	is(cuFileRead(reg(fd), g, SIZE, 0, 0), SIZE, "a read without a lease");
	AWAIT(mock.before_keep == 1);
	pthread_create(&thread, NULL, close_driver, &done);
	AWAIT(is_pending(SIGURG));
	signal(SIGURG, SIG_DFL);
	check(!is_pending(SIGURG), "who waits for leases is told to end, and never hears of it");
	mock.hold_keep = false;
	AWAIT(done);
	pthread_join(thread, NULL);
	close(fd);
	gpu_free(g);
}

/* A child that is made while a lease is being taken does not have it. */
void test_cache_fork_early(void)
{
	int fd = a_file(O_RDONLY, SIZE), status = -1, tell, i;
	struct first a = { .g = gpu(MIB(24)) };
	pid_t child;

	fresh_cache("{" COMPAT "}");
	a.fh = reg(fd);
	mock.hold_file = true;
	pthread_create(&a.thread, NULL, read_first, &a);
	for (i = 0; i < 50000 && !mock.in_file; i++)
		usleep(100);
	is(leased(&tell), 1, "a reader has just taken a lease");
	child = fork();
	if (!child)
		_exit(leased(&tell));
	waitpid(child, &status, 0);
	is(status, 0, "a child does not have it");
	mock.hold_file = false;
	pthread_join(a.thread, NULL);
	by_cache(a.fh, "the reader does");
	close(fd);
	gpu_free(a.g);
}

/* The kernel does not count who made it among those that write it. */
void test_cache_memfd(void)
{
	int fd = memfd_create("file", 0), in;
	char *g = gpu(MIB(24)), name[64];
	CUfileHandle_t fh;

	if (fd < 0 || pwrite(fd, data, SIZE, 0) != SIZE)
		abort();
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	in = open(name, O_RDONLY);
	if (in < 0)
		abort();
	may_cool();
	warm(in, SIZE);
	fresh_cache("{" COMPAT "}");
	fh = reg(in);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "a file that only has descriptors");
	is((long long)stats_of(NULL).leases, 0, "is not leased");
	check(!memcmp(mem(g), data, SIZE), "the right data");
	if (ftruncate(fd, 0) || pwrite(fd, data + 1, SIZE, 0) != SIZE)
		abort();
	may_cool();		/* it has other pages now */
	warm(in, SIZE);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "written anew");
	check(!memcmp(mem(g), data + 1, SIZE), "it has its new bytes");
	by_cache(fh, "by the cache path");
	close(in);
	close(fd);
	gpu_free(g);
}

/* Of a file that the caller neither owns nor may write nothing says what is cached. */
void test_cache_foreign(void)
{
	int fd = a_file(O_RDONLY, SIZE), status = -1;
	CUfileHandle_t fh;
	pid_t child;
	char *g;

	if (geteuid()) {
		printf("# not root: no file of another user\n");
		close(fd);
		return;
	}
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	may_cool();
	child = fork();
	if (!child) {
		fresh_cache("{" COMPAT "}");
		g = gpu(MIB(24));
		fh = reg(fd);
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
		    seteuid(65534))
			_exit(2);
		if (cuFileRead(fh, g, MIB(8), 0, 0) != MIB(8))
			_exit(3);
		_exit(stats_of(fh).last_path != PLN_PATH_BOUNCE);
	}
	waitpid(child, &status, 0);
	is(status, 0, "another's file that is not cached is copied");
	close(fd);
}

/* The budget by default */
void test_cache_cgroup(void)
{
	int fd = a_file(O_RDONLY, MIB(48));
	char *g = gpu(MIB(48));
	CUfileHandle_t fh;

	group();
	group_says("memory.max", "268435456\n");
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "in a group of 256 MiB");
	is((long long)stats_of(NULL).cache_bytes, MIB(32), "an eighth is used");
	group_says("memory.max", "536870912\n");
	group_says("memory.high", "268435456\n");
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "of 512 MiB, that has to wait from 256 on");
	is((long long)stats_of(NULL).cache_bytes, MIB(32), "an eighth of the lesser is");
	group_says("memory.high", "max\n");
	group_says("memory.max", "max\n");
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "in one without a limit");
	is((long long)stats_of(NULL).cache_bytes, MIB(48), "more is");
	no_group();
	close(fd);
	gpu_free(g);
}

/* Half of the memory that is left is the most, and registrations go when it is less. */
void test_cache_memory(void)
{
	int fd = a_file(O_RDONLY, MIB(48)), i;
	char *g = gpu(MIB(48));
	CUfileHandle_t fh;
	int64_t stands;

	group();
	group_says("memory.max", "max\n");
	group_says("memory.high", "1073741824\n");
	/* 964 MiB are used: 60 are left */
	group_says("memory.current", "1010827264\n");
	fresh_cache("{" COMPAT "}");
	mock_stop_clock();
	stands = mock.stands;
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "memory for three");
	is((long long)stats_of(NULL).cache_bytes, MIB(24), "are registered");
	/* 20 and 20 of the 964 can go: 100 are left */
	group_says("memory.stat", "anon 7\ninactive_file 20971520\n"
		   "active_file 20971520\nunevictable 5\n");
	/* who opens it anew does not go by what was seen before, however short ago */
	fresh_cache("{" COMPAT "}");
	mock.stands = stands;
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "memory enough");
	is((long long)stats_of(NULL).cache_bytes, MIB(48), "all is registered");
	/* 70: no more than 35 are registered, four of 8 */
	group_says("memory.stat", "inactive_file 0\nactive_file 0\n");
	group_says("memory.current", "1000341504\n");
	mock.later += 1;
	for (i = 0; i < 5000 && stats_of(NULL).cache_bytes != MIB(32); i++)
		usleep(1000);
	is((long long)stats_of(NULL).cache_bytes, MIB(32), "it is less: some goes");
	is(cuFileRead(fh, g, MIB(4), 0, 0), MIB(4), "what was used longest ago");
	check(strstr(stats_of(fh).reason, "no cache: memory is short"), "has none: %s",
	      stats_of(fh).reason);
	group_says("memory.current", "900000000\n");
	mock.later += 1;
	is(cuFileRead(fh, g, MIB(4), 0, 0), MIB(4), "there is more again");
	is((long long)stats_of(NULL).cache_bytes, MIB(40), "and it is registered at once");
	group_says("memory.current", "1000341504\n");
	mock.later += 1;
	AWAIT(stats_of(NULL).cache_bytes == MIB(32));
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "all is read again");
	check(!memcmp(mem(g), data, MIB(48)), "the right data");
	check(stats_of(NULL).cache_bytes <= MIB(32), "within what is left");
	/* none: more is used than may be */
	group_says("memory.current", "1073750000\n");
	mock.later += 1;
	check(none_left(), "no memory is left: all goes");
	is((long long)stats_of(NULL).leases, 1, "the lease does not");
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "it is read all the same");
	check(!memcmp(mem(g), data, MIB(48)), "with the right data");
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "by the other path");
	check(strstr(stats_of(fh).reason, "no cache: memory is short"), "why: %s",
	      stats_of(fh).reason);
	group_says("memory.current", "0\n");
	mock.later += 1;
	is(cuFileRead(fh, g, MIB(48), 0, 0), MIB(48), "there is memory again");
	is((long long)stats_of(NULL).cache_bytes, MIB(48), "all is registered");
	no_group();
	close(fd);
	gpu_free(g);
}

/* A registration that CUDA does not end keeps its pages where they are. */
void test_cache_stands(void)
{
	int fd = a_file(O_RDONLY, MIB(8)), i;
	char *g = gpu(MIB(8)), line[512];
	unsigned int mapped = 0;
	CUfileHandle_t fh;
	FILE *f;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "a registration");
	mock.unregister_error = 999;
	cuFileHandleDeregister(fh);
	for (i = 0; i < 5000 && !log_has("stays mapped"); i++)
		usleep(1000);
	is((long long)log_count("stays mapped"), 1, "that CUDA does not end is told");
	may_cool();		/* the test has it mapped, too */
	f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		mapped += !!strstr(line, path);
	fclose(f);
	is(mapped, 1, "and its pages stay mapped");
	is((long long)stats_of(NULL).cache_bytes, MIB(8), "and counted");
	close(fd);
	gpu_free(g);
	fresh(NULL);
	unlink(path);
	free(data);
	data = NULL;
}

struct cutter {
	_Atomic bool stop;
	_Atomic unsigned int cuts;
};

static void *cut(void *arg)
{
	struct cutter *c = arg;

	while (!c->stop) {
		if (truncate(path, MIB(4) + 100) || truncate(path, SIZE))
			abort();
		c->cuts++;
	}
	return NULL;
}

/* A file that becomes shorter while it is read: no signal, and no error */
void test_cache_shorter(void)
{
	int fd = a_file(O_RDWR, SIZE), i, bad = 0;
	struct cutter c = { 0 };
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;
	pthread_t thread;
	ssize_t r;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	pthread_create(&thread, NULL, cut, &c);
	/* 200 times, and until both have happened */
	for (i = 0; i < 200 || (i < 4000 && (c.cuts <= 10 || !by(fh, PLN_PATH_CACHE)));
	     i++) {
		r = cuFileRead(fh, g, MIB(24), 0, 0);
		if (r < (ssize_t)MIB(4) + 100 || r > (ssize_t)SIZE ||
		    memcmp(mem(g), data, MIB(4)))
			bad++;
	}
	c.stop = true;
	pthread_join(thread, NULL);
	is(bad, 0, "reads of a file that is cut and made longer");
	check(c.cuts > 10, "meanwhile, %u times", c.cuts);
	check(by(fh, PLN_PATH_CACHE) > 0, "by the cache path, too");
	close(fd);
	gpu_free(g);
}

/*
 * CUDA may have the CPU read a small piece of what is registered, and of a file that has
 * become shorter that is a signal: such pieces are staged.
 */
void test_cache_small(void)
{
	static const size_t n[] = { KIB(64), KIB(64) - 1, 4096, KIB(64) + 1 };
	const off_t seam = MIB(8);	/* between registrations */
	int fd = a_file(O_RDONLY, SIZE);
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;
	unsigned int i;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	is(cuFileRead(fh, g, MIB(16), 0, 0), MIB(16), "what is registered");
	for (i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		memset(mem(g), 0, MIB(1));
		is(cuFileRead(fh, g, n[i], 100, 0), (long long)n[i], "a read");
		check(!memcmp(mem(g), data + 100, n[i]), "the right data");
		is(stats_of(fh).last_path, n[i] < KIB(64) ? PLN_PATH_BOUNCE : PLN_PATH_CACHE,
		   n[i] < KIB(64) ? "too small: staged" : "by the cache path");
	}
	is(cuFileRead(fh, g, MIB(1), seam - 5000, 0), MIB(1), "a read with a small piece");
	check(!memcmp(mem(g), data + seam - 5000, MIB(1)), "the right data");
	is((long long)(stats_of(fh).path[PLN_PATH_BOUNCE].bytes_read), KIB(68) - 1 + 5000,
	   "which is staged alone");
	is((long long)mock.by_cpu, 0, "the CPU reads nothing that is registered");
	close(fd);
	gpu_free(g);
}

/* Nobody opens it now to write; the kernel begins to break a lease. */
static bool held_back(void)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EWOULDBLOCK;
}

/*
 * Reads that find a registration ask nobody for the lease when it was held so lately
 * that nobody else has the file yet: the keeper does not run in this test.
 */
void test_cache_sure(void)
{
	char *g = gpu(MIB(2));
	CUfileHandle_t fh;
	int fd, lag;

	for (lag = 0; lag < 2; lag++) {
		fd = a_file(O_RDONLY, MIB(2));
		fresh_cache("{" COMPAT "}");
		fh = reg(fd);
		mock_stop_clock();
		is(cuFileRead(fh, g, MIB(2), 0, 0), MIB(2), "a registration");
		by_cache(fh, "is kept");
		mock.keep_turns = 0;
		AWAIT(mock.in_keep == 1);
		if (lag) {
			/* one question, and an answer that comes a second later */
			mock.lease_lag = 1;
			mock.keep_turns = 1;
			AWAIT(mock.in_keep == 1 && !mock.lease_lag);
		}
		check(held_back(), "a writer is held back");
		if (!lag) {
			is(cuFileRead(fh, g, KIB(64), 4096, 0), KIB(64),
			   "the keeper does not know it");
			by_cache(fh, "the pages are the file's, and are read");
			check(!memcmp(mem(g), data + 4096, KIB(64)), "as they are");
			check(held_back(), "the writer still is");
			mock.later += 1;
		}
		is((long long)stats_of(NULL).leases, 1, "the lease is not given back");
		is(cuFileRead(fh, g, KIB(64), 4096, 0), KIB(64), lag ?
		   "the keeper asked before, and heard of it just now" :
		   "the keeper has not asked for a second");
		check(stats_of(fh).last_path == PLN_PATH_BOUNCE,
		      "so the read asks, and does without");
		is((long long)stats_of(NULL).leases, 0, "and gives the lease back");
		check(!held_back(), "nobody is held back any more");
		mock.keep_turns = -1;
		close(fd);
	}
	gpu_free(g);
}

struct part {
	CUfileHandle_t fh;
	char *g;
	size_t len, off;
	pthread_t thread;
	ssize_t r;
};

static void *read_part(void *arg)
{
	struct part *p = arg;

	p->r = cuFileRead(p->fh, p->g, p->len, (off_t)p->off, 0);
	return NULL;
}

static void begin(struct part *p, CUfileHandle_t fh, size_t len, size_t off)
{
	p->fh = fh;
	p->len = len;
	p->off = off;
	pthread_create(&p->thread, NULL, read_part, p);
}

static void end(struct part *p, unsigned int n)
{
	unsigned int i, bad = 0;

	for (i = 0; i < n; i++) {
		pthread_join(p[i].thread, NULL);
		bad += p[i].r != (ssize_t)p[i].len ||
		       memcmp(mem(p[i].g), data + p[i].off, p[i].len);
	}
	is(bad, 0, "all reads have their data");
}

/* Nobody waits for CUDA with what the lease's keeper needs. */
void test_cache_asks(void)
{
	int fd = a_file(O_RDONLY, SIZE), turn;
	struct part a = { .g = gpu(MIB(24)) };
	CUfileHandle_t fh;
	char *h;

	fresh_cache("{" COMPAT "}");
	mock.other_memory = true;
	h = gpu(MIB(24));
	mock.other_memory = false;
	fh = reg(fd);
	is(cuFileRead(fh, h, SIZE, 0, 0), SIZE, "a read into memory of another context");
	by_cache(fh, "its registrations are kept");
	mock.hold_other = true;
	begin(&a, fh, MIB(8), 0);
	AWAIT(mock.in_other == 1);
	for (turn = 0; turn < 5000 && held_back(); turn++)
		usleep(1000);
	check(turn < 5000, "while a read asks CUDA whether that context is there, a writer need not wait");
	mock.hold_other = false;
	end(&a, 1);
	check(none_left(), "then nothing is registered");
	close(fd);
	gpu_free(a.g);
	gpu_free(h);
}

/* The lease is given back between the check and the copy */
void test_cache_broken(void)
{
	int fd = a_file(O_RDONLY, SIZE), out;
	struct part a = { .g = gpu(MIB(24)) };
	char *g = gpu(MIB(24));
	CUfileHandle_t fh;

	fresh_cache("{" COMPAT "}");
	mock_stop_clock();	/* the lease was held just now, as long as it stands */
	fh = reg(fd);
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "registrations");
	by_cache(fh, "are kept");
	mock.hold_copy = true;
	begin(&a, fh, MIB(1), 4096);
	AWAIT(mock.in_copy == 1);
	/* waits until the keeper has given it back */
	out = open(path, O_WRONLY | O_TRUNC);
	if (out < 0 || pwrite(out, data + 1, SIZE, 0) != SIZE)
		abort();
	is((long long)stats_of(NULL).leases, 0, "a file is written anew meanwhile");
	check(mock.read_only, "what the copy reads stays registered");
	mock.hold_copy = false;
	end(&a, 1);	/* what was there when it began */
	by_cache(fh, "by the cache path");
	check(none_left(), "then nothing is registered");
	close(out);
	warm_file(path, SIZE);
	mock.later += 2;
	is(cuFileRead(fh, g, SIZE, 0, 0), SIZE, "the next one");
	check(!memcmp(mem(g), data + 1, SIZE), "has the new bytes");
	close(fd);
	gpu_free(g);
	gpu_free(a.g);
}

/* Several callers wait for much: only then the CPU is left to others */
void test_cache_crowd(void)
{
	static const struct {
		unsigned int n;
		size_t len;
		int blocking;
		const char *what;
		bool no_record;
	} how[] = {
		{ 3, MIB(1), 0, "three callers, 3 MiB: all spin", false },
		{ 4, KIB(508), 0, "four, not 2 MiB: all spin", false },
		{ 4, KIB(512), 1, "four, 2 MiB: the last does not", false },
		{ 5, MIB(1), 2, "five: the last two do not", false },
		{ 5, MIB(1), 0, "but where no event can be recorded", true },
	};
	struct pln_file_result result = { .size = sizeof(result) };
	int fd = a_file(O_RDONLY, MIB(2));
	struct part p[5];
	CUfileHandle_t fh;
	unsigned int i, k;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	for (i = 0; i < 5; i++)
		p[i].g = gpu(MIB(2));
	is(cuFileRead(fh, p[0].g, MIB(2), 0, 0), MIB(2), "a registration");
	by_cache(fh, "is kept");
	/* who asks is told, also where no other path was asked */
	pln_file_next_result(&result, 1);
	is(cuFileRead(fh, p[0].g, KIB(64), 0, 0), KIB(64), "a read within it");
	check(result.bytes[PLN_PATH_CACHE] == KIB(64) &&
	      strstr(result.reason, "force_compat_mode"),
	      "its result tells the path, and why it is not p2p: %s", result.reason);
	for (k = 0; k < sizeof(how) / sizeof(how[0]); k++) {
		mock.blocking = 0;
		mock.no_record = how[k].no_record;
		mock.hold_wait = true;
		for (i = 0; i < how[k].n; i++) {
			begin(&p[i], fh, how[k].len, 4096 * i);
			AWAIT(mock.in_wait == (int)i + 1);
		}
		is((long long)mock.blocking, how[k].blocking, how[k].what);
		mock.hold_wait = false;
		end(p, how[k].n);
		mock.no_record = false;
	}
	is((long long)by(fh, PLN_PATH_BOUNCE), 0, "all by the cache path");
	mock.blocking = 0;
	mock.copy_error = 999;
	mock.copy_after = 0;
	is(cuFileRead(fh, p[0].g, KIB(64), 0, 0), -5011, "a copy that fails");
	mock.copy_error = 0;
	/* what it had under way is not counted any more */
	mock.hold_wait = true;
	for (i = 0; i < 4; i++) {
		begin(&p[i], fh, KIB(508) + 4096 * (i == 3 ? 3 : 0), 0);
		AWAIT(mock.in_wait == (int)i + 1);
	}
	is((long long)mock.blocking, 0, "is not under way");
	mock.hold_wait = false;
	end(p, 4);
	for (i = 0; i < 5; i++)
		gpu_free(p[i].g);
	close(fd);
}

/*
 * What is not worth a registration yet is counted and passed on by one look: nobody is
 * asked for the lease, and the words of before are not made again.
 */
void test_cache_early(void)
{
	int fd = a_file(O_RDONLY, MIB(8)), i;
	char *g = gpu(MIB(2));
	uint64_t asked, staged;
	CUfileHandle_t fh;

	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	mock_stop_clock();	/* the lease was held just now, as long as it stands */
	is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "a read, which takes the lease");
	mock.keep_turns = 0;
	AWAIT(mock.in_keep == 1);
	asked = mock.lease_asked;
	for (i = 1; i < 10; i++)
		cuFileRead(fh, g, KIB(64), (off_t)KIB(64) * i, 0);
	is((long long)by(fh, PLN_PATH_BOUNCE), KIB(64) * 10, "ten are copied");
	is((long long)(mock.lease_asked - asked), 0, "and ask nobody");
	check(strstr(stats_of(fh).reason, "no cache: too little was read"),
	      "why: %s", stats_of(fh).reason);
	for (i = 10; i < 40 && !by(fh, PLN_PATH_CACHE); i++)
		cuFileRead(fh, g, KIB(64), (off_t)KIB(64) * i, 0);
	/* an eighth of it is worth one */
	staged = by(fh, PLN_PATH_BOUNCE);
	is((long long)staged + KIB(64), MIB(1), "each is counted once");
	by_cache(fh, "the one that makes it an eighth is the first by the cache path");
	mock.keep_turns = -1;
	close(fd);
	gpu_free(g);
}

/*
 * Ten more reads of 64 KiB, into @g and @h in turn, find what is registered, and ask nobody
 * for the lease.
 */
static bool quick(CUfileHandle_t fh, char *g, char *h)
{
	char *to[] = { g, h };

	uint64_t asked = mock.lease_asked, n = by(fh, PLN_PATH_CACHE);
	int i;

	for (i = 0; i < 10; i++)
		if (cuFileRead(fh, to[i % 2], KIB(64), (off_t)KIB(64) * i, 0) != KIB(64) ||
		    memcmp(mem(to[i % 2]), data + KIB(64) * i, KIB(64)))
			return false;
	return mock.lease_asked == asked && by(fh, PLN_PATH_CACHE) == n + 10 * KIB(64);
}

/* What is registered serves reads that p2p cannot move, as long as it cannot. */
void test_cache_after_p2p(void)
{
	static const struct {
		int handle_error, p2p_errno, module_errno;
		unsigned int module;
		const char *what;
	} out[] = {
		{ 0, EREMOTEIO, 0, 0, "p2p is refused" },
		{ 801, 0, 0, 0, "memory without a window" },
		{ 0, EREMOTEIO, 0, PLN_ABI_VERSION, "mapped memory, and nobody has asked the module" },
		{ 801, 0, EREMOTEIO, PLN_ABI_VERSION, "registered memory, and nobody has asked for p2p" },
	};
	int fd = a_file(O_RDONLY, MIB(8));
	char *g = gpu(MIB(16)), *h = gpu(MIB(16));
	CUfileHandle_t fh;
	unsigned int i, k;
	uint64_t asked;

	fresh_cache(NULL);
	fh = reg(fd);
	mock_stop_clock();	/* the lease was held just now, as long as it stands */
	is(cuFileRead(fh, g, MIB(8), 0, 1), MIB(8), "a read to an odd address");
	by_cache(fh, "is none for p2p");
	mock.keep_turns = 0;
	AWAIT(mock.in_keep == 1);
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "a read of the same part that is");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "goes p2p");
	check(quick(fh, g + 1, g + 1), "others to odd addresses do not, at once");
	mock.keep_turns = -1;

	fresh_cache(NULL);
	fh = reg(fd);
	mock.bar1_size = 0;
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "no room for a window");
	by_cache(fh, "is no p2p");
	mock.bar1_size = -1;
	is(cuFileRead(fh, g, MIB(1), 0, 0), MIB(1), "then there is");
	is(stats_of(fh).last_path, PLN_PATH_P2P, "and the read goes p2p");

	for (i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		fresh_cache(NULL);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
		mock.module = out[i].module;
		fh = reg(fd);
		mock_stop_clock();
		mock.handle_error = out[i].handle_error;
		mock.p2p_errno = out[i].p2p_errno;
		mock.module_errno = out[i].module_errno;
		for (k = 0; k < 4; k++)
			is(cuFileRead(fh, k % 2 ? h : g, MIB(8), 0, 0), MIB(8), out[i].what);
		by_cache(fh, "by the cache path");
		mock.keep_turns = 0;
		AWAIT(mock.in_keep == 1);
		check(quick(fh, g, g), "then small ones do, at once");
		check(quick(fh, g, h), "also into two memories in turn");
		check(quick(fh, g + MIB(6), h), "and far from where it was asked");
		mock.keep_turns = -1;
	}
	fresh_cache(NULL);
	fh = reg(fd);
	mock_stop_clock();
	mock.p2p_errno = EREMOTEIO;
	cuFileRead(fh, g, MIB(8), 0, 0);
	is(cuFileRead(fh, g, MIB(8), 0, 0), MIB(8), "once more: refused");
	by_cache(fh, "so by the cache path");
	mock.p2p_errno = 0;
	/* what is read keeps the registration, which does not keep p2p from being tried */
	for (k = 4; k <= 12; k += 4) {
		mock.later += 4;
		asked = mock.lease_asked;
		AWAIT(mock.lease_asked >= asked + 2);
		is(cuFileRead(fh, g, KIB(64), 0, 0), KIB(64), "some seconds later");
		is((long long)stats_of(NULL).cache_windows, 1, "what is registered is kept");
		if (k < 10)
			by_cache(fh, "and read");
	}
	is(stats_of(fh).last_path, PLN_PATH_P2P, "after ten p2p is tried, and works");
	close(fd);
	gpu_free(g);
	gpu_free(h);
}

/*
 * Where a path is refused that the other does not replace, memories side by side are read
 * into as one.
 */
void test_cache_beside(void)
{
	static const char *const what[] = {
		"mapped memory, and p2p is refused", "registered memory, and the module refuses",
		"or refuses the file", "mapped memory, and behind it some that has no window",
	};
	const size_t n = MIB(8);	/* no copy is into both: the mock has none such */
	int fd = a_file(O_RDONLY, 2 * n), i, k;
	CUfileHandle_t fh;
	uint64_t asked;
	char *g[2];

	for (i = 0; i < 4; i++) {
		fresh_cache(NULL);
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
		mock.module = PLN_ABI_VERSION;
		fh = reg(fd);
		g[0] = gpu(2 * n);
		g[1] = (char *)(uintptr_t)mock_two(n);
		mock.handle_error = i % 3 ? 801 : 0;
		mock.p2p_errno = EREMOTEIO;
		mock.module_errno = EOPNOTSUPP;
		mock.module_reason = i == 2 ? PLN_REASON_FILE_SYSTEM : PLN_REASON_MERGES;
		if (i == 3) {
			is(cuFileRead(fh, g[1], n, 0, 0), (long long)n, "the first of two");
			mock.handle_error = 801;
			mock.register_errno = EOPNOTSUPP;
		}
		for (k = 0; k < 4; k++)
			is(cuFileRead(fh, g[k % 2], 2 * n, 0, 0), (long long)(2 * n), what[i]);
		mock.keep_turns = 0;
		AWAIT(mock.in_keep == 1);
		asked = mock.lease_asked;
		memset(mem(g[1]), 0, n);
		memset(mem(g[1] + n), 0, n);
		is(cuFileRead(fh, g[1], 2 * n, 0, 0), (long long)(2 * n), "two memories");
		is((long long)(mock.lease_asked - asked), 1, "as one");
		check(!memcmp(mem(g[1]), data, n) && !memcmp(mem(g[1] + n), data + n, n), "the right data");
		by_cache(fh, "by the cache path");
		mock.keep_turns = -1;
		while (cuFileUseCount() > 0)
			cuFileDriverClose();
		gpu_free(g[0]);
		gpu_free(g[1]);
		gpu_free(g[1] + n);
	}
	close(fd);
}

/* One registration is made at a time; for one read only if there are few callers */
void test_cache_registering(void)
{
	int fd = a_file(O_RDONLY, SIZE), i;
	struct part p[3];
	CUfileHandle_t fh;

	for (i = 0; i < 3; i++)
		p[i].g = gpu(MIB(24));
	fresh_cache("{" COMPAT "}");
	mock.cpus = 1;		/* no helpers */
	fh = reg(fd);

	/* three callers, of which one reads a whole slot, and does so again */
	for (i = 0; i < 2; i++) {
		mock.read_only_calls = 0;
		mock.hold_wait = true;
		begin(&p[0], fh, 4096, MIB(16));
		AWAIT(mock.in_wait == 1);
		begin(&p[1], fh, 4096, MIB(17));
		AWAIT(mock.in_wait == 2);
		begin(&p[2], fh, MIB(8), 0);
		AWAIT(mock.in_wait == 3);
		is((long long)mock.read_only_calls, i, i ? "it is read again, and registered" :
		   "what is read once in a crowd is not registered");
		mock.hold_wait = false;
		end(p, 3);
	}
	fresh_cache("{" COMPAT "}");
	mock.cpus = 1;
	fh = reg(fd);
	mock.read_only_calls = 0;
	mock.hold_register = true;
	begin(&p[0], fh, MIB(1) * 4, 0);
	AWAIT(mock.in_register == 1);
	begin(&p[1], fh, MIB(4), MIB(16));
	end(&p[1], 1);
	check(strstr(stats_of(fh).reason, "no cache: another read makes a registration"),
	      "a read beside one that registers: %s", stats_of(fh).reason);
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "does not wait");
	is((long long)mock.read_only_calls, 1, "nor make another one");
	mock.hold_register = false;
	end(&p[0], 1);
	by_cache(fh, "the first has its own");
	begin(&p[1], fh, MIB(4), MIB(16));
	end(&p[1], 1);
	by_cache(fh, "later the other has, too");
	is((long long)mock.read_only_calls, 2, "of another part");
	close(fd);

	fd = a_file(O_RDWR, SIZE);
	fresh_cache("{" COMPAT "}");
	mock.cpus = 1;
	fh = reg(fd);
	begin(&p[0], fh, MIB(16), 0);
	end(&p[0], 1);
	by_cache(fh, "without a lease");
	is((long long)mock.read_only_calls, 2, "16 MiB are two registrations");
	mock.hold_register = true;
	begin(&p[0], fh, MIB(8), 0);
	AWAIT(mock.in_register == 1);
	begin(&p[1], fh, MIB(16), MIB(1));
	end(&p[1], 1);
	is(stats_of(fh).last_path, PLN_PATH_BOUNCE, "a read beside it does not wait");
	is((long long)mock.read_only_calls, 3, "nor register");
	mock.hold_register = false;
	end(&p[0], 1);

	/* two callers, then three */
	mock.read_only_calls = 0;
	mock.hold_wait = true;
	begin(&p[0], fh, 4096, 0);
	AWAIT(mock.in_wait == 1);
	begin(&p[1], fh, MIB(8), 0);
	AWAIT(mock.in_wait == 2);
	is((long long)mock.read_only_calls, 1, "the second caller registers");
	begin(&p[2], fh, MIB(8), 0);
	AWAIT(mock.in_wait == 3);
	is((long long)mock.read_only_calls, 1, "the third does not");
	mock.hold_wait = false;
	end(p, 3);
	for (i = 0; i < 3; i++)
		gpu_free(p[i].g);
	close(fd);
}

/* The number of a descriptor with a lease leads to the program's own, with a lease of its own. */
void test_cache_number(void)
{
	char *g = gpu(SIZE);
	CUfileHandle_t fh;
	int fd, own, i;

	close(a_file(O_RDONLY, SIZE));
	fd = open(path, O_RDONLY);
	fresh_cache("{" COMPAT "}");
	fh = reg(fd);
	cuFileRead(fh, g, MIB(5), 0, 0);
	is((long long)stats_of(NULL).leases, 1, "a lease");
	for (i = 3; i < 1024 && fcntl(i, F_GETLEASE) != F_RDLCK; i++)
		continue;
	own = open(path, O_RDONLY);
	if (fcntl(own, F_SETLEASE, F_RDLCK) || dup2(own, i) != i)
		abort();
	AWAIT(!stats_of(NULL).leases);
	is(fcntl(own, F_GETLEASE), F_RDLCK, "that of the program is none of the library's");
	is(cuFileRead(fh, g, MIB(5), 0, 0), MIB(5), "the file is read");
	cuFileHandleDeregister(fh);
	while (cuFileUseCount() > 0)
		cuFileDriverClose();
	is(fcntl(own, F_GETLEASE), F_RDLCK, "and it stays when the library is closed");
	is(fcntl(i, F_GETLEASE), F_RDLCK, "by both numbers");
	close(i);
	close(own);
	close(fd);
	gpu_free(g);
}
