// SPDX-License-Identifier: MIT
/*
 * A reader for whose files the library keeps registrations of the page cache:
 *
 *	page-cache race DIR ROUNDS		beside processes that change a file,
 *						so often in each of their ways
 *	page-cache pressure FILE LABEL MIB	while the memory is filled: by MIB at
 *						first, then step by step
 */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"
#include "../../userlib/cufile/test/writers.h"

static struct process {
	pid_t pid;
	int to, from;
} process[WAYS];

/* A process that does @work for each order, made before there is CUDA */
static void make(struct process *p, void (*work)(int in, int out))
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		die("pipe");
	fflush(stdout);
	p->pid = fork();
	if (p->pid < 0)
		die("fork");
	if (!p->pid) {
		/* when the reader ends, so does this one; others have their own */
		for (struct process *other = process; other < p; other++)
			close(other->to);
		close(to[1]);
		work(to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	p->to = to[1];
	p->from = from[0];
}

static void tell(struct process *p, const void *order, size_t size)
{
	if (write(p->to, order, size) != (ssize_t)size)
		die("a process takes an order");
}

static void answer(struct process *p, void *a, size_t size)
{
	if (read(p->from, a, size) != (ssize_t)size)
		die("a process answers");
}

/* ---- a race ---- */

#define SIZE	KIB(256)
#define ROOM	(SIZE + MIB(1))		/* as long as a writer makes it */
#define PAGE	KIB(4)
#define MOST	2000			/* rounds of one way */

static const char *const way_name[WAYS] = {
	"rewrite", "write", "extend", "rename", "punch", "mmap", "direct", "truncate"
};
static char path[256], other[256];
/* What the file had when the round began, will have, and what was read */
static char was[ROOM], now[ROOM], got[ROOM];
static size_t was_size, now_size;
/* Which bytes a read of this round had already from the writer; 2: the page has all */
static uint8_t seen[ROOM], seen_page[ROOM / PAGE];
/* Of writers beside the library and, as a control, beside plain reads */
static struct times {
	double took[MOST];
	struct held {
		double from, to;	/* it opened the file, and had it open */
	} held[MOST];
	unsigned int n;
} times[WAYS][2][2];			/* the reader is quiet; is plain */
static unsigned int reads, beside, stale, failed;
static uint64_t moved, kept_bytes;	/* to the GPU; of those by what was kept */
/*
 * Reads before and after a change have memory of their own, which has the contents of
 * the round before: what a read leaves out is not right.
 */
enum { BEFORE, BESIDE, AFTER, TIMES };
static gpu_ptr gpu[TIMES];

struct order {
	int way;
	uint64_t seed;
};

struct answer {
	double took;
	struct held held;
};

static void write_when_told(int in, int out)
{
	struct order o;
	struct answer a;
	double opening;

	while (read(in, &o, sizeof(o)) == sizeof(o)) {
		noise(now, o.way == EXTEND ? ROOM : SIZE, o.seed);
		a.held.from = writers_now();
		opening = write_as(o.way, path, other, now, SIZE);
		if (opening < 0)
			_exit(1);
		a.held.to = a.held.from + opening;
		a.took = writers_now() - a.held.from;
		if (write(out, &a, sizeof(a)) != sizeof(a))
			_exit(1);
	}
}

/*
 * A host that is busy stops the processors of this machine for a while, whatever runs on
 * them.  So on each of them a process that goes before all others looks at the clock again
 * and again: where it could not, nothing ran.
 */
#define LOOK_NS		2000000
#define STOPPED		0.004
#define CPUS		8
#define STOPS		65536

static struct stops {
	_Atomic unsigned int n;		/* all; the latest are kept */
	struct held at[STOPS];
} *stops[CPUS];
static int cpus;

static void watch(int cpu)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	const struct sched_param first = { .sched_priority = 50 };
	struct stops *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double last, time;
	cpu_set_t set;
	pid_t pid;

	if (s == MAP_FAILED)
		die("mmap");
	stops[cpu] = s;
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    sched_setscheduler(0, SCHED_FIFO, &first))
		die("a process that goes before all others");
	for (last = writers_now();; last = time) {
		nanosleep(&look, NULL);
		time = writers_now();
		if (time - last < STOPPED)
			continue;
		s->at[s->n % STOPS] = (struct held){ last + LOOK_NS / 1e9, time };
		s->n++;
	}
}

/* Seconds of @h in which all processors ran */
static double ran(struct held h)
{
	double sum = h.to - h.from, from, to, done = h.from;
	unsigned int at[CPUS] = { 0 };
	struct held *s, *next;
	int cpu, of;

	for (cpu = 0; cpu < cpus; cpu++)
		at[cpu] = stops[cpu]->n > STOPS ? stops[cpu]->n - STOPS : 0;
	/* in the order of their beginnings, and each second once */
	for (;;) {
		next = NULL;
		for (cpu = 0, of = 0; cpu < cpus; cpu++) {
			while (at[cpu] < stops[cpu]->n && stops[cpu]->at[at[cpu] % STOPS].to <= done)
				at[cpu]++;
			s = &stops[cpu]->at[at[cpu] % STOPS];
			if (at[cpu] < stops[cpu]->n && (!next || s->from < next->from)) {
				next = s;
				of = cpu;
			}
		}
		if (!next || next->from >= h.to)
			return sum;
		from = next->from > done ? next->from : done;
		to = next->to < h.to ? next->to : h.to;
		sum -= to > from ? to - from : 0;
		done = to > done ? to : done;
		at[of]++;
	}
}

/* All of the file: by the library or, without @fh, by a plain read */
static ssize_t get(int fd, CUfileHandle_t fh, int when)
{
	ssize_t n;

	if (!fh)
		return pread(fd, got, ROOM, 0);
	reads++;
	n = cuFileRead(fh, addr(gpu[when]), ROOM, 0, 0);
	if (n > 0 && cuMemcpyDtoH_v2(got, gpu[when], (size_t)n))
		die("cuMemcpyDtoH");
	moved += n > 0 ? (uint64_t)n : 0;
	return n;
}

/* Nobody changes the file. */
static void must_have(ssize_t n, const char *data, size_t size, int way, const char *when)
{
	failed += n < 0;
	if (n >= 0 && ((size_t)n != size || memcmp(got, data, size))) {
		note("%s %s: %zd bytes instead of %zu, or others", when,
		     way_name[way], n, size);
		stale++;
	}
}

/*
 * Somebody may: each byte is that of before or that of after, and never that of before
 * when an earlier read had that of after.
 */
static bool one_of_both(size_t at, size_t size)
{
	size_t page = at / PAGE, end = at + PAGE < size ? at + PAGE : size, fresh = 0;
	bool had = end <= was_size && !memcmp(got + at, was + at, end - at);
	bool has = end <= now_size && !memcmp(got + at, now + at, end - at);

	if (has && !had)
		seen_page[page] = end - at == PAGE ? 2 : 1;
	if (has && (had || seen_page[page] == 2))
		return true;
	if (had && !seen_page[page])
		return true;
	for (size_t i = at; i < end; i++) {
		had = i < was_size && got[i] == was[i];
		has = i < now_size && got[i] == now[i];
		if (!has && (!had || seen[i] || seen_page[page] == 2))
			return false;
		seen[i] |= has && !had;
		fresh |= seen[i];
	}
	if (fresh && !seen_page[page])
		seen_page[page] = 1;
	return true;
}

static void may_have(ssize_t n, int way)
{
	size_t least = was_size < now_size ? was_size : now_size;
	size_t most = was_size < now_size ? now_size : was_size, at;

	failed += n < 0;
	if (n < 0)
		return;
	if (way == REWRITE)
		least = 0;
	for (at = 0; at < (size_t)n && one_of_both(at, (size_t)n); at += PAGE)
		continue;
	if ((size_t)n < least || (size_t)n > most || at < (size_t)n) {
		note("beside %s: %zd bytes, wrong from %zu on", way_name[way], n, at);
		stale++;
	}
}

/* The file is registered, and read through what is kept of it; false: something kept not. */
static bool keep(int fd, CUfileHandle_t *fh, int way)
{
	struct pln_file_stats s;
	int turn;

	*fh = must_reg(fd, path);
	/* of a small file not at the first read */
	for (turn = 0; turn < 2; turn++) {
		must_have(get(fd, *fh, BEFORE), was, was_size, way, "before");
		s = stats();
		if (s.last_path == PLN_PATH_CACHE && s.leases == 1) {
			kept_bytes += was_size;
			return true;
		}
	}
	note("nothing is kept: %s", s.reason);
	return false;
}

static bool a_round(int way, uint64_t seed, bool quiet, bool plain)
{
	struct order o = { way, seed };
	struct process *p = &process[way];
	struct times *t = &times[way][quiet][plain];
	struct pollfd reply = { .fd = p->from, .events = POLLIN };
	struct answer a;
	size_t next_size;
	CUfileHandle_t fh = NULL;
	int fd = must_open(path, O_RDONLY), tries = 0;
	bool kept = true;

	noise(now, way == EXTEND ? ROOM : SIZE, seed);
	next_size = now_size = written(way, was, now, SIZE);
	if (way == RENAME) {
		/* this reader has the file that had the name */
		memcpy(now, was, was_size);
		now_size = was_size;
		next_size = SIZE;
	}
	memset(seen, 0, sizeof(seen));
	memset(seen_page, 0, sizeof(seen_page));
	/* into the page cache */
	must_have(get(fd, NULL, BEFORE), was, was_size, way, "before");
	while (!plain && !(kept = keep(fd, &fh, way)) && ++tries < 3)
		cuFileHandleDeregister(fh);
	tell(p, &o, sizeof(o));
	/* a quiet reader leaves it to the library's own thread to give the lease back */
	for (;;) {
		if (!quiet)
			may_have(get(fd, fh, BESIDE), way);
		if (poll(&reply, 1, quiet ? -1 : 0))
			break;
		/* that writer has not ended */
		beside += !plain;
	}
	answer(p, &a, sizeof(a));
	t->took[t->n] = a.took;
	t->held[t->n++] = a.held;
	must_have(get(fd, fh, AFTER), now, now_size, way, "after");
	if (fh)
		cuFileHandleDeregister(fh);
	close(fd);
	if (way == RENAME)
		noise(now, SIZE, seed);
	was_size = next_size;
	memcpy(was, now, was_size);
	return kept;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double most_held(const struct times *t)
{
	double most = 0, one;
	unsigned int i;

	for (i = 0; i < t->n; i++) {
		one = ran(t->held[i]) * 1e3;
		most = one > most ? one : most;
	}
	return most;
}

/* The median is the largest of a half of them. */
static double ms(struct times *t, unsigned int part)
{
	qsort(t->took, t->n, sizeof(t->took[0]), compare);
	return t->took[t->n / part - 1] * 1e3;
}

static int race(const char *dir, unsigned int rounds)
{
	struct json_object *result = json_object_new_object();
	struct json_object *writers = json_object_new_array();
	struct json_object *stopped = json_object_new_array();
	unsigned int round, kept = 0;
	uint64_t seed = 1;
	struct pln_file_stats s;
	int way, fd;

	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(other, sizeof(other), "%s/file.other", dir);
	for (way = 0; way < WAYS; way++)
		make(&process[way], write_when_told);
	cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > CPUS)
		die("more processors than are watched");
	for (way = 0; way < cpus; way++)
		watch(way);
	gpu_open();
	for (way = 0; way < TIMES; way++)
		gpu[way] = gpu_alloc(ROOM);
	noise(was, ROOM, 1);
	was_size = SIZE;
	fd = must_open(path, O_WRONLY | O_CREAT | O_TRUNC);
	if (write(fd, was, was_size) != (ssize_t)was_size)
		die("write");
	close(fd);
	/* some of them are of a plain reader, as a control */
	for (round = 0; round < rounds; round++) {
		for (way = 0; way < WAYS; way++)
			kept += a_round(way, ++seed, round % 2, false);
		for (way = 0; way < WAYS && round % 4 == 3; way++)
			a_round(way, ++seed, round / 4 % 2, true);
	}
	s = stats();
	json_set(result, "rounds", rounds * WAYS);
	json_set(result, "kept", kept);
	json_set(result, "broken", s.leases_broken);
	json_set(result, "renames", rounds);
	json_set(result, "reads", reads);
	json_set(result, "beside", beside);
	json_set(result, "stale", stale);
	json_set(result, "failed", failed);
	json_set(result, "bytes", moved);
	json_set(result, "kept_bytes", kept_bytes);
	json_set(result, "by_cache", s.path[PLN_PATH_CACHE].bytes_read);
	json_set(result, "by_bounce", s.path[PLN_PATH_BOUNCE].bytes_read);
	tell_fact("race", result);
	for (way = 0; way < 2 * WAYS; way++) {
		struct json_object *o = json_object_new_object();
		struct times *t = times[way / 2][way % 2];

		json_set(o, "way", way_name[way / 2]);
		json_set(o, "reader", way % 2 ? "quiet" : "busy");
		json_set(o, "library_held_ms", most_held(&t[0]));
		json_set(o, "control_held_ms", most_held(&t[1]));
		json_set(o, "library_ms", ms(&t[0], 2));
		json_set(o, "control_ms", ms(&t[1], 2));
		json_set(o, "library_most_ms", ms(&t[0], 1));
		json_set(o, "control_most_ms", ms(&t[1], 1));
		json_object_array_add(writers, o);
	}
	tell_fact("writers", writers);
	for (way = 0; way < cpus; way++)
		json_object_array_add(stopped, json_object_new_int64(stops[way]->n));
	tell_fact("stopped", stopped);
	ok(!stale, "%u reads brought other bytes than the file had", stale);
	ok(!failed, "%u reads failed", failed);
	return finish();
}

/* ---- memory becomes short ---- */

#define LARGE	MIB(48)			/* six registrations */
#define STEP	MIB(8)
#define STEPS	100
#define WAIT_S	2			/* the library looks four times a second */
#define AGAIN	40			/* reads, until all is registered again */

/* Takes as much memory as it is told, and keeps it */
static void take_memory(int in, int out)
{
	int fd = must_open("/proc/self/oom_score_adj", O_WRONLY);
	size_t n;
	char *p;

	if (write(fd, "1000", 4) != 4)
		die("oom_score_adj");
	while (read(in, &n, sizeof(n)) == sizeof(n)) {
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			_exit(1);
		memset(p, 1, n);
		if (write(out, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

/* Bytes of the file that are in the page cache */
static size_t cached(int fd)
{
	static unsigned char in[LARGE / PAGE];
	void *p = mmap(NULL, LARGE, PROT_READ, MAP_SHARED, fd, 0);
	size_t n = 0;

	if (p == MAP_FAILED || mincore(p, LARGE, in))
		die("mincore");
	munmap(p, LARGE);
	for (size_t i = 0; i < LARGE / PAGE; i++)
		n += in[i] & 1;
	return n * PAGE;
}

static unsigned long available_kb(void)
{
	unsigned long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && !sscanf(line, "MemAvailable: %lu", &kb))
		continue;
	if (f)
		fclose(f);
	return kb;
}

static struct {
	CUfileHandle_t fh;
	gpu_ptr gpu;
	uint32_t crc;
	unsigned int reads, right;
} big;

/* All of it into the page cache */
static void warm(int fd)
{
	static char piece[KIB(64)];

	for (size_t at = 0; at < LARGE; at += sizeof(piece))
		if (pread(fd, piece, sizeof(piece), (off_t)at) != sizeof(piece))
			die("pread");
}

static struct pln_file_stats read_big(void)
{
	ssize_t n = cuFileRead(big.fh, addr(big.gpu), LARGE, 0, 0);
	struct pln_file_stats s = stats();

	big.reads++;
	big.right += n == (ssize_t)LARGE && gpu_crc(big.gpu, LARGE) == big.crc;
	return s;
}

/* Memory is there: reads, until all is registered; the bytes that are */
static uint64_t registered(int fd)
{
	struct pln_file_stats s;
	unsigned int i = 0;

	do {
		warm(fd);
		s = read_big();
		if (s.cache_bytes == LARGE)
			break;
		usleep(50000);
	} while (++i < AGAIN);
	return s.cache_bytes;
}

static int pressure(const char *file, const char *label, size_t size)
{
	struct json_object *result = json_object_new_object(), *part;
	size_t before, least = LARGE, n;
	uint64_t had, again;
	unsigned int steps, i;
	struct pln_file_stats lack;
	unsigned long kb;
	double end;
	char *piece;
	int fd;

	make(&process[0], take_memory);
	piece = malloc(MIB(1));
	fd = must_open(file, O_RDWR | O_CREAT | O_TRUNC);
	for (i = 0; piece && i < LARGE / MIB(1); i++) {
		noise(piece, MIB(1), i);
		big.crc = crc32c(big.crc, piece, MIB(1));
		if (write(fd, piece, MIB(1)) != (ssize_t)MIB(1))
			die("write");
	}
	/* only what is on the drive, too, can be reclaimed */
	if (fsync(fd))
		die("fsync");
	close(fd);
	fd = must_open(file, O_RDONLY);
	gpu_open();
	big.gpu = gpu_alloc(LARGE);
	big.fh = must_reg(fd, file);
	had = registered(fd);
	before = cached(fd);
	for (steps = 1; steps <= STEPS; steps++, size = STEP) {
		if (size) {
			tell(&process[0], &size, sizeof(size));
			answer(&process[0], &size, sizeof(size));
		}
		/* once the kernel takes pages back, the library has its turn before more goes */
		end = seconds() + WAIT_S;
		do {
			n = cached(fd);
			least = n < least ? n : least;
			lack = read_big();
			kb = available_kb();
		} while (least < before && lack.cache_bytes > LARGE / 3 && seconds() < end);
		if (least < before && lack.cache_bytes <= LARGE / 3)
			break;
	}
	/* the memory is free again */
	close(process[0].to);
	waitpid(process[0].pid, NULL, 0);
	again = registered(fd);
	json_set(result, "size", LARGE);
	part = json_object_new_object();
	json_set(part, "registered", had);
	json_set(part, "cached", before);
	json_set(result, "before", part);
	part = json_object_new_object();
	json_set(part, "registered", lack.cache_bytes);
	json_set(part, "cached", least);
	json_set(part, "available", kb << 10);
	json_set(part, "steps", steps);
	json_set(result, "short", part);
	part = json_object_new_object();
	json_set(part, "registered", again);
	json_set(result, "again", part);
	json_set(result, "reads", big.reads);
	json_set(result, "right", big.right);
	json_set(result, "by_cache", stats().path[PLN_PATH_CACHE].bytes_read);
	tell_fact(label, result);
	note("%s: %s", label, lack.reason);
	ok(big.right == big.reads, "%s: %u of %u reads brought the right bytes", label,
	   big.right, big.reads);
	return finish();
}

int main(int argc, char **argv)
{
	unsigned int rounds;

	if (argc == 4 && !strcmp(argv[1], "race")) {
		rounds = (unsigned int)atoi(argv[3]);
		return rounds >= 16 && rounds <= MOST ? race(argv[2], rounds) : 2;
	}
	if (argc == 5 && !strcmp(argv[1], "pressure"))
		return pressure(argv[2], argv[3], MIB(strtoul(argv[4], NULL, 10)));
	return 2;
}
