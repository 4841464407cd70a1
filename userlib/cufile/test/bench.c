// SPDX-License-Identifier: MIT
/*
 * Two and more libcufile.so.0 side by side on a real GPU: speed and processor
 * time of reads and writes, as a table in Markdown.
 *
 *	cufile-bench [--dir DIR] [--size MIB] [--seconds S] [--pairs N]
 *		     [--only TEXT] LIB [NAME=VALUE... LIB]...
 *
 * Each library is in a process of its own, which lives to the end: the first LIB is
 * what the others are compared with.  NAME=VALUE goes into the environment of the
 * LIB behind it.  Instead of a library it may be the bare calls, which say what a library
 * can reach: bare:file reads and writes pinned memory, bare:copy copies between that and
 * the GPU and waits, and bare:both does one after the other.  A cell of the table is measured N times; each time all libraries
 * run it one after another, in turning order, and the ratio of a library to the
 * first is of the same time.  What is shown is the median, and the least and
 * the largest ratio.  After each measurement every caller compares its last block
 * with what must be there.
 *
 * Exit status: 0 measured, 1 a library failed or gave wrong bytes, 2 wrong
 * arguments, 77 nothing to measure with.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

#define LIBS	8
#define CALLERS	16
#define PAIRS	31
#define BLOCK	((size_t)16 << 20)	/* the longest IO */
#define WAIT_MS	60000			/* for the answer to one cell */

enum kind {
	AGAIN,		/* all has been read by this handle before */
	FIRST,		/* each byte for the first time by this handle */
	WRITER,		/* somebody has the file open for writing */
	WRITE,
	READ_DIRECT,
	WRITE_DIRECT,
	KINDS
};

static const char *const kind_name[KINDS] = {
	"read again", "read first", "read, has a writer", "write",
	"read O_DIRECT", "write O_DIRECT",
};

static const size_t length[] = { 4 << 10, 64 << 10, 1 << 20, BLOCK };
#define LENGTHS	(sizeof(length) / sizeof(*length))

struct cell {
	enum kind kind;
	unsigned int callers;
	size_t len;
};

struct result {
	int err;		/* of the library, or -1: see @text */
	double rate, cpu;	/* GB/s, s/GiB */
	char text[160];		/* what went wrong, or which path */
};

struct lib {
	const char *path;
	char **env;
	unsigned int envs;
	pid_t pid;
	int sock;
	struct result got[PAIRS];
};

static struct lib libs[LIBS];
static unsigned int nlibs, pairs = 5;
static const char *dir = "/var/tmp", *only = "";
static char read_path[4096], write_path[4096];
static size_t size = (size_t)768 << 20;	/* below the budget of the cache path */
static double seconds = 0.25;

/* ---- one library, in its own process ---- */

static bool bare_file, bare_copy;

struct caller {
	pthread_t thread;
	const struct cell *cell;
	CUfileHandle_t fh;
	devptr g;
	size_t from, to;	/* its part of the file */
	size_t last;		/* where its last IO was */
	size_t moved;
	double end;
	ssize_t r;
	int err;
};

static struct caller caller[CALLERS];
static pthread_barrier_t start;
static double deadline;
static void *ctx;

/* The word at @at of the file, and of what generation @gen writes there. */
static uint64_t word(uint64_t at, uint64_t gen)
{
	uint64_t x = (at ^ gen << 48) * 0x9e3779b97f4a7c15ull;

	return x ^ x >> 29;
}

/* ---- the bare calls instead of a library ---- */

static struct {
	void *buf, *stream;
} bare[CALLERS];

static ssize_t bare_io(CUfileHandle_t fh, void *g, size_t len, off_t off, bool write)
{
	int fd = (int)(intptr_t)fh - 1;
	devptr dev = (devptr)(uintptr_t)g;
	unsigned int i = 0;
	ssize_t r = (ssize_t)len;

	while (caller[i].g != dev)
		i++;
	if (bare_file && !write)
		r = pread(fd, bare[i].buf, len, off);
	if (bare_copy && ((write ? cuMemcpyDtoHAsync_v2(bare[i].buf, dev, len, bare[i].stream) :
			   cuMemcpyHtoDAsync_v2(dev, bare[i].buf, len, bare[i].stream)) ||
			  cuStreamSynchronize(bare[i].stream)))
		r = -1;
	if (bare_file && write && r > 0)
		r = pwrite(fd, bare[i].buf, len, off);
	return r;
}

static ssize_t bare_read(CUfileHandle_t fh, void *g, size_t len, off_t off, off_t at)
{
	return at ? -1 : bare_io(fh, g, len, off, false);
}

static ssize_t bare_write(CUfileHandle_t fh, const void *g, size_t len, off_t off, off_t at)
{
	return at ? -1 : bare_io(fh, (void *)(uintptr_t)g, len, off, true);
}

static CUfileError_t bare_open(void)
{
	CUfileError_t good = { 0 }, bad = { .err = CU_FILE_CUDA_MEMORY_TYPE_INVALID };
	unsigned int i;

	for (i = 0; i < CALLERS; i++)
		if (cuMemAllocHost_v2(&bare[i].buf, BLOCK) ||
		    cuStreamCreate(&bare[i].stream, 1 /* beside all others */))
			return bad;
	return good;
}

static CUfileError_t bare_register(CUfileHandle_t *fh, CUfileDescr_t *d)
{
	CUfileError_t good = { 0 };

	*fh = (CUfileHandle_t)(intptr_t)(d->handle.fd + 1);
	return good;
}

static void bare_deregister(CUfileHandle_t fh)
{
	(void)fh;
}

static CUfileError_t bare_buffer(const void *g, size_t len, int flags)
{
	CUfileError_t good = { 0 };

	(void)g;
	(void)len;
	(void)flags;
	return good;
}

static const char *load_bare(const char *what)
{
	bare_file = strcmp(what, "copy");
	bare_copy = strcmp(what, "file");
	if (bare_file && bare_copy && strcmp(what, "both"))
		return "bare: is followed by file, copy or both";
	cfDriverOpen = bare_open;
	cfHandleRegister = bare_register;
	cfHandleDeregister = bare_deregister;
	cfBufRegister = bare_buffer;
	cfRead = bare_read;
	cfWrite = bare_write;
	return NULL;
}

/* ---- a measurement ---- */

static bool is_write(enum kind k)
{
	return k == WRITE || k == WRITE_DIRECT;
}

static void *call(void *arg)
{
	struct caller *c = arg;
	size_t len = c->cell->len, at = c->from;
	bool write = is_write(c->cell->kind);

	cuCtxSetCurrent(ctx);
	pthread_barrier_wait(&start);
	do {
		void *g = (void *)(uintptr_t)c->g;

		c->r = write ? cfWrite(c->fh, g, len, (off_t)at, 0)
			     : cfRead(c->fh, g, len, (off_t)at, 0);
		if (c->r != (ssize_t)len) {
			c->err = errno;
			break;
		}
		c->last = at;
		c->moved += len;
		at += len;
		if (at + len > c->to) {
			if (c->cell->kind == FIRST)
				break;
			at = c->from;
		}
		c->end = wall();
	} while (c->end < deadline);
	c->end = wall();
	return NULL;
}

static bool right(const struct caller *c, uint64_t gen, uint64_t *buf, int fd)
{
	size_t i, len = c->cell->len;

	/* half of the work leaves nothing to look at */
	if (bare_file != bare_copy)
		return true;
	if (is_write(c->cell->kind)) {
		if (pread(fd, buf, len, (off_t)c->last) != (ssize_t)len)
			return false;
	} else if (cuMemcpyDtoH_v2(buf, c->g, len)) {
		return false;
	}
	for (i = 0; i < len / 8; i++)
		if (buf[i] != (is_write(c->cell->kind) ?
				word(i * 8, gen) : word(c->last + i * 8, 0)))
			return false;
	return true;
}

static void tell_path(CUfileHandle_t fh, struct result *res)
{
	struct pln_file_stats s = { .size = sizeof(s) };
	uint64_t all = 0, n[PLN_PATH_COUNT];
	unsigned int i;
	size_t at = 0;

	if (!stats_fn || stats_fn(fh, &s))
		return;
	for (i = 0; i < PLN_PATH_COUNT; i++) {
		n[i] = s.path[i].bytes_read + s.path[i].bytes_written;
		all += n[i];
	}
	for (i = 0; all && i < PLN_PATH_COUNT; i++)
		if (n[i])
			at += (size_t)snprintf(res->text + at,
				sizeof(res->text) - at, "%s%s %.0f%%",
				at ? ", " : "",
				i == PLN_PATH_CACHE ? "cache" :
				i == PLN_PATH_BOUNCE ? "bounce" :
				i == PLN_PATH_P2P ? "p2p" :
				i == PLN_PATH_KERNEL ? "kernel" : "other",
				100.0 * (double)n[i] / (double)all);
}

static void fail(struct result *res, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(res->text, sizeof(res->text), fmt, ap);
	va_end(ap);
	res->err = -1;
}

/* The whole file by this handle, untimed. */
static bool warm(CUfileHandle_t fh)
{
	size_t at;

	for (at = 0; at + BLOCK <= size; at += BLOCK)
		if (cfRead(fh, (void *)(uintptr_t)caller[0].g, BLOCK,
			   (off_t)at, 0) != (ssize_t)BLOCK)
			return false;
	return true;
}

static void measure(const struct cell *cell, struct result *res)
{
	static uint64_t gen, buf[BLOCK / 8];
	bool write = is_write(cell->kind);
	bool direct = cell->kind == READ_DIRECT || cell->kind == WRITE_DIRECT;
	size_t part = size / cell->callers / cell->len * cell->len;
	size_t moved = 0, i;
	double from, used, end = 0;
	CUfileHandle_t fh;
	int fd, err;

	fd = open(write ? write_path : read_path,
		  (write ? O_RDWR : O_RDONLY) | (direct ? O_DIRECT : 0));
	if (fd < 0) {
		fail(res, "%s: %s", write ? write_path : read_path,
		     strerror(errno));
		return;
	}
	fh = reg(fd, &err);
	if (err) {
		fail(res, "cuFileHandleRegister: %d", err);
		close(fd);
		return;
	}
	if (write) {
		gen++;
		for (i = 0; i < BLOCK / 8; i++)
			buf[i] = word(i * 8, gen);
	}
	for (i = 0; i < cell->callers; i++) {
		struct caller *c = &caller[i];

		*c = (struct caller){ .cell = cell, .fh = fh, .g = c->g,
				      .from = part * i, .to = part * (i + 1) };
		if (write)
			cuMemcpyHtoD_v2(c->g, buf, BLOCK);
		else
			cuMemsetD8_v2(c->g, 0xee, BLOCK);
	}
	cuCtxSynchronize();
	if (cell->kind == AGAIN && !warm(fh))
		fail(res, "reading before the measurement failed");
	pthread_barrier_init(&start, NULL, cell->callers + 1);
	for (i = 0; i < cell->callers; i++)
		if (pthread_create(&caller[i].thread, NULL, call, &caller[i]))
			abort();
	used = cpu();
	from = wall();
	deadline = from + seconds;
	pthread_barrier_wait(&start);
	for (i = 0; i < cell->callers; i++) {
		pthread_join(caller[i].thread, NULL);
		moved += caller[i].moved;
		if (caller[i].end > end)
			end = caller[i].end;
	}
	used = cpu() - used;
	pthread_barrier_destroy(&start);
	for (i = 0; i < cell->callers && !res->err; i++)
		if (caller[i].r != (ssize_t)cell->len)
			fail(res, "%zd instead of %zu, errno %d", caller[i].r,
			     cell->len, caller[i].err);
	if (!res->err)
		tell_path(fh, res);
	cfHandleDeregister(fh);
	close(fd);
	fd = open(write_path, O_RDONLY);
	for (i = 0; i < cell->callers && !res->err; i++)
		if (!right(&caller[i], gen, buf, fd))
			fail(res, "WRONG BYTES at %zu", caller[i].last);
	close(fd);
	res->rate = (double)moved / (end - from) / 1e9;
	res->cpu = used / ((double)moved / (1 << 30));
}

/* Until the parent closes its end. */
static int serve(struct lib *l)
{
	const char *missing;
	struct result res;
	struct cell cell;
	unsigned int i;
	int dev;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < l->envs; i++)
		putenv(l->env[i]);
	memset(&res, 0, sizeof(res));
	missing = load_cuda();
	if (!missing)
		missing = strncmp(l->path, "bare:", 5) ? load_cufile(l->path) :
							  load_bare(l->path + 5);
	if (!missing && (cuDeviceGet(&dev, 0) ||
			 cuDeviceGetName(res.text, sizeof(res.text), dev) ||
			 cuDevicePrimaryCtxRetain(&ctx, dev) ||
			 cuCtxSetCurrent(ctx)))
		missing = "the GPU gives no context";
	if (!missing && cfDriverOpen().err)
		missing = "cuFileDriverOpen failed";
	for (i = 0; i < CALLERS && !missing; i++)
		if (cuMemAlloc_v2(&caller[i].g, BLOCK) ||
		    cfBufRegister((void *)(uintptr_t)caller[i].g, BLOCK, 0).err)
			missing = "GPU memory cannot be registered";
	if (missing)
		fail(&res, "%s", missing);
	do {
		if (send(l->sock, &res, sizeof(res), MSG_NOSIGNAL) !=
		    sizeof(res))
			break;
		memset(&res, 0, sizeof(res));
		if (recv(l->sock, &cell, sizeof(cell), 0) != sizeof(cell))
			break;
		measure(&cell, &res);
	} while (1);
	return 0;
}

/* ---- all of them ---- */

static bool answer(struct lib *l, struct result *res)
{
	struct pollfd p = { .fd = l->sock, .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) > 0 &&
	    recv(l->sock, res, sizeof(*res), 0) == sizeof(*res))
		return !res->err;
	fail(res, "no answer");
	return false;
}

static bool begin(struct lib *l)
{
	int s[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s))
		return false;
	fflush(NULL);
	l->pid = fork();
	if (!l->pid) {
		close(s[0]);
		l->sock = s[1];
		_exit(serve(l));
	}
	close(s[1]);
	l->sock = s[0];
	return l->pid > 0 && answer(l, &l->got[0]);
}

static void finish(void)
{
	unsigned int i;

	for (i = 0; i < nlibs; i++)
		if (libs[i].pid > 0) {
			close(libs[i].sock);
			kill(libs[i].pid, SIGKILL);
			waitpid(libs[i].pid, NULL, 0);
		}
	unlink(read_path);
	unlink(write_path);
}

static void interrupted(int sig)
{
	unlink(read_path);
	unlink(write_path);
	_exit(128 + sig);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct result *r, size_t member, double *least,
		     double *most)
{
	double v[PAIRS];
	unsigned int i;

	for (i = 0; i < pairs; i++)
		v[i] = *(const double *)((const char *)&r[i] + member);
	qsort(v, pairs, sizeof(*v), by_value);
	*least = v[0];
	*most = v[pairs - 1];
	return pairs % 2 ? v[pairs / 2] : (v[pairs / 2 - 1] + v[pairs / 2]) / 2;
}

static void row(const struct cell *cell)
{
	struct result ratio[PAIRS];
	double least, most, mid;
	unsigned int i, k;

	printf("| %s | %u | %zu KiB", kind_name[cell->kind], cell->callers,
	       cell->len >> 10);
	for (i = 0; i < nlibs; i++) {
		mid = median(libs[i].got, offsetof(struct result, rate), &least,
			     &most);
		printf(" | %.2f", mid);
		mid = median(libs[i].got, offsetof(struct result, cpu), &least,
			     &most);
		printf(" | %.3f", mid);
		if (i) {
			for (k = 0; k < pairs; k++)
				ratio[k].rate = libs[i].got[k].rate /
						libs[0].got[k].rate;
			mid = median(ratio, offsetof(struct result, rate),
				     &least, &most);
			printf(" | **%.2f** (%.2f to %.2f)", mid, least, most);
		}
		if (i && libs[i].got[0].text[0])
			printf(", %s", libs[i].got[0].text);
	}
	printf(" |\n");
	fflush(stdout);
}

static void head(const char *gpu)
{
	unsigned int i;

	printf("%s, %ld processors; each cell %u times %.2f s, file of %zu MiB "
	       "in %s\n\n", gpu, sysconf(_SC_NPROCESSORS_ONLN), pairs, seconds,
	       size >> 20, dir);
	for (i = 0; i < nlibs; i++) {
		unsigned int k;

		printf("- %c:", 'A' + i);
		for (k = 0; k < libs[i].envs; k++)
			printf(" %s", libs[i].env[k]);
		printf(" %s\n", libs[i].path);
	}
	printf("\n| what | callers | IO");
	for (i = 0; i < nlibs; i++)
		printf(" | %c: GB/s | CPU s/GiB%s", 'A' + i,
		       i ? " | ratio to A, path" : "");
	printf(" |\n|---|---|---");
	for (i = 0; i < nlibs; i++)
		printf("|---|---%s", i ? "|---" : "");
	printf("|\n");
}

static bool run_cell(const struct cell *cell)
{
	unsigned int k, i;
	int fd = -1;

	if (cell->kind == WRITER) {
		fd = open(read_path, O_WRONLY);
		if (fd < 0)
			return false;
	}
	for (k = 0; k < pairs; k++)
		for (i = 0; i < nlibs; i++) {
			struct lib *l = &libs[(i + k) % nlibs];

			if (send(l->sock, cell, sizeof(*cell), MSG_NOSIGNAL) !=
			    sizeof(*cell) || !answer(l, &l->got[k])) {
				printf("\n%s: %s, %u callers, %zu KiB: %s\n",
				       l->path, kind_name[cell->kind],
				       cell->callers, cell->len >> 10,
				       l->got[k].text);
				if (fd >= 0)
					close(fd);
				return false;
			}
		}
	if (fd >= 0)
		close(fd);
	row(cell);
	return true;
}

static bool make_file(const char *path)
{
	static uint64_t buf[BLOCK / 8];
	size_t at, i;
	bool good = true;
	int fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return false;
	for (at = 0; at < size && good; at += BLOCK) {
		for (i = 0; i < BLOCK / 8; i++)
			buf[i] = word(at + i * 8, 0);
		good = write(fd, buf, BLOCK) == (ssize_t)BLOCK;
	}
	good = good && !fsync(fd);
	return !close(fd) && good;
}

static int usage(void)
{
	fprintf(stderr, "usage: cufile-bench [--dir DIR] [--size MIB] "
		"[--seconds S] [--pairs N] [--only TEXT] "
		"LIB [NAME=VALUE... LIB]...\n");
	return 2;
}

static int arguments(int argc, char **argv)
{
	int i, from;

	for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (i + 1 == argc)
			return usage();
		if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		else if (!strcmp(argv[i], "--size"))
			size = strtoul(argv[i + 1], NULL, 10) << 20;
		else if (!strcmp(argv[i], "--seconds"))
			seconds = strtod(argv[i + 1], NULL);
		else if (!strcmp(argv[i], "--pairs"))
			pairs = (unsigned int)strtoul(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--only"))
			only = argv[i + 1];
		else
			return usage();
	}
	for (from = i; i < argc; i++) {
		if (strchr(argv[i], '='))
			continue;
		if (nlibs == LIBS)
			return usage();
		libs[nlibs].path = argv[i];
		libs[nlibs].env = argv + from;
		libs[nlibs++].envs = (unsigned int)(i - from);
		from = i + 1;
	}
	size = size / BLOCK * BLOCK;
	if (!nlibs || from != argc || !pairs || pairs > PAIRS ||
	    !(seconds > 0 && seconds < 10) || size < BLOCK)
		return usage();
	return 0;
}

int main(int argc, char **argv)
{
	struct cell cell;
	char name[64];
	unsigned int i;
	bool good = true;

	if (arguments(argc, argv))
		return 2;
	snprintf(read_path, sizeof(read_path), "%s/peerlane-bench-r.%d", dir,
		 (int)getpid());
	snprintf(write_path, sizeof(write_path), "%s/peerlane-bench-w.%d", dir,
		 (int)getpid());
	for (i = 0; i < nlibs; i++)
		if (!begin(&libs[i])) {
			fprintf(stderr, "%s: %s\n", libs[i].path,
				libs[i].got[0].text);
			finish();
			return 77;
		}
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	if (!make_file(read_path) || !make_file(write_path)) {
		fprintf(stderr, "no room for two files of %zu MiB in %s: %s\n",
			size >> 20, dir, strerror(errno));
		finish();
		return 77;
	}
	head(libs[0].got[0].text);
	for (cell.kind = 0; cell.kind < KINDS; cell.kind++)
		for (cell.callers = 1; cell.callers <= CALLERS;
		     cell.callers += CALLERS - 1)
			for (i = 0; i < LENGTHS; i++) {
				cell.len = length[i];
				snprintf(name, sizeof(name), "%s/%u/%zu",
					 kind_name[cell.kind], cell.callers,
					 cell.len >> 10);
				if (strstr(name, only) &&
				    size / cell.callers >= cell.len)
					good = run_cell(&cell) && good;
			}
	finish();
	return good ? 0 : 1;
}
