// SPDX-License-Identifier: MIT
/*
 * A drive that fails one command of several:
 *
 *	drive-errors DIR MODE
 *
 * DIR has "file", which has a block that cannot be read and one that cannot be
 * written, and "twin" with the same bytes.  A transfer of LEN bytes is several NVMe
 * commands; the bad block is in the first, in one between, or in the last.  Beside
 * each stands plain pread() or pwrite() of the same range.
 */
#include <pthread.h>
#include <sys/sysmacros.h>

#include "guest.h"

int cuStreamCreate(CUstream *s, unsigned int flags);
int cuStreamSynchronize(CUstream s);

#define BLOCK	KIB(4)
/* Behind what is changed and looked at, there is as much for the page cache's path: it
 * registers 8 MiB that are all cached, or none. */
#define FILE_SIZE MIB(24)
#define CHANGED	MIB(16)
#define NEXT	MIB(20)
#define BAD_READ MIB(4)
#define BAD_WRITE MIB(12)
#define LEN	MIB(2)
#define GUARD	KIB(128)
#define OPS	4			/* of a batch or a stream */
#define ROOM	(OPS * LEN + 2 * GUARD)
#define THREADS	3
#define RANDOM	24			/* reads of each thread, and writes */

static const struct mode {
	const char *name, *env[3];
	unsigned int path;
	int flags;
	bool host, read_only;
} modes[] = {
	{ .name = "p2p", .path = PLN_PATH_P2P },
	{ .name = "kernel", .path = PLN_PATH_KERNEL, .env = { "CUFILE_USE_PCIP2PDMA=0" } },
	{ .name = "bounce", .path = PLN_PATH_BOUNCE,
	  .env = { "CUFILE_FORCE_COMPAT_MODE=1", "PEERLANE_PAGE_CACHE=0" } },
	{ .name = "bounce-direct", .path = PLN_PATH_BOUNCE, .flags = O_DIRECT,
	  .env = { "CUFILE_FORCE_COMPAT_MODE=1", "PEERLANE_PAGE_CACHE=0" } },
	{ .name = "cache", .path = PLN_PATH_CACHE, .read_only = true,
	  .env = { "CUFILE_FORCE_COMPAT_MODE=1", "PEERLANE_PAGE_CACHE=1" } },
	{ .name = "posix", .path = PLN_PATH_POSIX, .host = true },
};

enum way { SYNC, BATCH, STREAM, WAYS };
static const char *const way_name[] = { "sync", "batch", "stream" };

static const struct place {
	const char *name;
	size_t before;			/* of the range, before the bad block */
} places[] = {
	{ "first", 0 },
	{ "middle", LEN / 2 + KIB(64) },
	{ "last", LEN - BLOCK },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* Memory for transfers, and a copy of what must be in it */
struct area {
	char *base;
	uint8_t *want, *now;
	size_t size;			/* of what is used, with the guards */
	bool host;
	CUstream stream;
};

struct op {
	off_t off;
	size_t len, at;			/* at: in the area */
	ssize_t r;
	int err;
	struct pln_file_result res;
	bool spoilt;			/* plain pread() fails there, too */
};

static const struct mode *mode;
static const char *dir;
static dev_t device;
static uint8_t *file;			/* what must be in it */
static int direct, plain;		/* descriptors of controls */
static __thread uint64_t seed = 1;
static __thread char why[400];

static bool __attribute__((format(printf, 1, 2))) wrong(const char *fmt, ...)
{
	va_list ap;

	if (why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x9e3779b97f4a7c15ull >> 11;
}

static off_t bad_block(bool write)
{
	return (off_t)(write ? BAD_WRITE : BAD_READ);
}

/* Does it touch the bad block?  As whole blocks go, and pages are cached. */
static bool meets(off_t off, size_t len, bool write)
{
	off_t bad = bad_block(write);

	return off < bad + (off_t)BLOCK && off + (off_t)len > bad;
}

/* ---- memory ---- */

static struct area *area_new(void)
{
	struct area *a = calloc(1, sizeof(*a));

	a->host = mode->host;
	if (posix_memalign((void **)&a->want, BLOCK, ROOM))
		die("memory");
	a->now = malloc(ROOM);
	if (a->host && posix_memalign((void **)&a->base, BLOCK, ROOM))
		die("memory");
	if (!a->host)
		a->base = addr(gpu_alloc(ROOM));
	if (!a->now || cuStreamCreate(&a->stream, 1))
		die("memory");
	return a;
}

/* For @n transfers */
static void area_set(struct area *a, unsigned int n)
{
	uint64_t x = any();

	a->size = n * LEN + 2 * GUARD;
	for (size_t i = 0; i < a->size / 8; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(a->want + i * 8, &x, 8);
	}
	if (a->host)
		memcpy(a->base, a->want, a->size);
	else if (cuMemcpyHtoD_v2((uintptr_t)a->base, a->want, a->size))
		die("cuMemcpyHtoD");
}

static bool area_same(struct area *a, const char *what)
{
	size_t i = 0;

	if (a->host)
		memcpy(a->now, a->base, a->size);
	else if (cuMemcpyDtoH_v2(a->now, (uintptr_t)a->base, a->size))
		die("cuMemcpyDtoH");
	/* byte by byte takes long on an emulated processor */
	if (!memcmp(a->now, a->want, a->size))
		return true;
	while (a->now[i] == a->want[i])
		i++;
	return wrong("%s: byte %zu of the memory is %02x, not %02x", what, i,
		     a->now[i], a->want[i]);
}

/* ---- transfers ---- */

static bool transfer(struct area *a, enum way way, CUfileHandle_t fh, struct op *o,
		     unsigned int n, bool write)
{
	CUfileIOParams_t io[OPS] = { 0 };
	CUfileIOEvents_t e[OPS];
	struct timespec limit = { .tv_sec = 60 };
	struct pln_file_result res[OPS];
	CUfileBatchHandle_t b;
	off_t at[OPS];
	unsigned int i;
	int r = 0;

	for (i = 0; i < n; i++) {
		memset(&res[i], 0, sizeof(res[i]));
		at[i] = (off_t)o[i].at;
		o[i].r = -9999;
		o[i].err = 0;
		io[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh, .cookie = &o[i],
			.opcode = write ? CUFILE_WRITE : CUFILE_READ,
			.u.batch = { a->base, o[i].off, at[i], o[i].len },
		};
	}
	res[0].size = sizeof(res[0]);
	switch (way) {
	case BATCH:
		r = cuFileBatchIOSetUp(&b, OPS).err;
		if (r)
			break;
		pln_file_next_result(res, n);
		r = cuFileBatchIOSubmit(b, n, io, 0).err;
		if (!r)
			r = cuFileBatchIOGetStatus(b, n, &n, e, &limit).err;
		for (i = 0; !r && i < n; i++) {
			struct op *p = e[i].cookie;

			p->r = (ssize_t)e[i].ret;
			if ((e[i].status == CUFILE_COMPLETE) != (p->r >= 0))
				wrong("status %d of a result of %zd",
				      (int)e[i].status, p->r);
			if (p->r < 0 && p->r > -CUFILEOP_BASE_ERR) {
				p->err = (int)-p->r;
				p->r = -1;
			}
		}
		cuFileBatchIODestroy(b);
		break;
	case STREAM:
		for (i = 0; i < n && !r; i++) {
			memset(&res[i], 0, sizeof(res[i]));
			res[i].size = sizeof(res[i]);
			pln_file_next_result(&res[i], 1);
			r = write ? cuFileWriteAsync(fh, a->base, &o[i].len, &o[i].off,
						     &at[i], &o[i].r, a->stream).err :
				    cuFileReadAsync(fh, a->base, &o[i].len, &o[i].off,
						    &at[i], &o[i].r, a->stream).err;
		}
		r = r ? r : cuStreamSynchronize(a->stream);
		/* the count has no errno */
		for (i = 0; i < n; i++)
			o[i].err = o[i].r == -1 ? res[i].error : 0;
		break;
	default:
		for (i = 0; i < n; i++) {
			memset(&res[i], 0, sizeof(res[i]));
			res[i].size = sizeof(res[i]);
			pln_file_next_result(&res[i], 1);
			o[i].r = write ? cuFileWrite(fh, a->base, o[i].len, o[i].off,
						     at[i]) :
					 cuFileRead(fh, a->base, o[i].len, o[i].off,
						    at[i]);
			o[i].err = o[i].r == -1 ? errno : 0;
		}
	}
	for (i = 0; i < n; i++)
		o[i].res = res[i];
	return !r || wrong("error %d", r);
}

/* By whole pages it is the mode's path; what is crooked may be staged. */
static bool right_path(const struct op *o)
{
	size_t told = o->r > 0 ? (size_t)o->r : 0, other = 0;

	for (unsigned int i = 0; i < PLN_PATH_SLOTS; i++)
		if (i != mode->path)
			other += o->res.bytes[i];
	if (o->off % BLOCK || o->len % BLOCK || o->at % BLOCK)
		return true;
	/* what is not in the cache, and will not come there, is staged */
	if (mode->path == PLN_PATH_CACHE)
		return o->res.bytes[PLN_PATH_CACHE] + o->res.bytes[PLN_PATH_BOUNCE] >= told ||
		       wrong("%zu bytes by the cache's path", told);
	return (!other && o->res.bytes[mode->path] >= told) ||
	       wrong("%zu bytes by another path than %s, told %zu: %s", other,
		     mode->name, told, o->res.reason);
}

/* Says the reason what failed, where, and on which drive? */
static bool good_reason(const struct op *o, bool write)
{
	const char *s = o->res.reason;
	char at[80];
	off_t bad = bad_block(write), off;
	char *p;

	snprintf(at, sizeof(at), "%s of the file on device %u:%u failed from ",
		 write ? "write" : "read", major(device), minor(device));
	p = strstr(s, at);
	if (!p)
		return wrong("the reason names no place: %s", s);
	off = strtoll(p + strlen(at), NULL, 10);
	/* that of the call, or of what is left of it */
	return (off >= o->off && off <= bad) || wrong("the reason has another place: %s", s);
}

/* A result where the bad block is @before bytes behind its start, or not met */
static bool good_result(const struct op *o, bool write)
{
	off_t before = bad_block(write) - o->off;

	if (o->spoilt)
		return (o->r == -1 && o->err == EIO) || (o->r > 0 && o->r < (ssize_t)o->len) ||
		       wrong("read of %zu at %lld: %zd, errno %d", o->len,
			     (long long)o->off, o->r, o->err);
	if (!meets(o->off, o->len, write))
		return o->r == (ssize_t)o->len ||
		       wrong("%s of %zu at %lld: %zd, errno %d: %s", write ? "write" : "read",
			     o->len, (long long)o->off, o->r, o->err, o->res.reason);
	if (!(o->r == -1 && o->err == EIO) &&
	    !(o->r > 0 && o->r <= before))
		return wrong("%s of %zu at %lld, bad after %lld: %zd, errno %d",
			     write ? "write" : "read", o->len, (long long)o->off,
			     (long long)before, o->r, o->err);
	return good_reason(o, write);
}

static bool judge_read(struct area *a, const struct op *o, unsigned int n)
{
	bool good = true;

	/* what an error has left of the range is undefined */
	for (unsigned int i = 0; i < n; i++) {
		size_t told = o[i].r > 0 ? (size_t)o[i].r : 0;

		good = good_result(&o[i], false) && right_path(&o[i]) && good;
		if (told > o[i].len)
			told = o[i].len;
		memcpy(a->want + o[i].at, file + o[i].off, told);
		if (a->host)
			memcpy(a->want + o[i].at + told, a->base + o[i].at + told,
			       o[i].len - told);
		else if (cuMemcpyDtoH_v2(a->want + o[i].at + told,
					 (uintptr_t)a->base + o[i].at + told,
					 o[i].len - told))
			die("cuMemcpyDtoH");
	}
	return area_same(a, "after a read") && good;
}

/* What is on the drive, but for the block that cannot be read */
static void read_file(uint8_t *to)
{
	static const struct { off_t at; size_t n; } part[] = {
		{ 0, BAD_READ }, { BAD_READ + BLOCK, CHANGED - BAD_READ - BLOCK },
	};

	if (posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED))
		die("posix_fadvise");
	for (unsigned int i = 0; i < 2; i++)
		for (size_t done = 0; done < part[i].n; ) {
			off_t at = part[i].at + (off_t)done;
			size_t n = part[i].n - done;
			ssize_t r = pread(direct, to + at, n < LEN ? n : LEN, at);

			if (r <= 0)
				die("pread of the file");
			done += (size_t)r;
		}
	memcpy(to + BAD_READ, file + BAD_READ, BLOCK);
}

static bool judge_write(struct area *a, const struct op *o, unsigned int n, int fd)
{
	static uint8_t *now;
	bool good = true, lost = false, met = false;
	unsigned int i;
	size_t k;

	if (!now && posix_memalign((void **)&now, BLOCK, CHANGED))
		die("memory");
	/* what went into the page cache only is told there, as for write(2) */
	lost = fsync(fd);
	for (i = 0; i < n; i++) {
		met |= meets(o[i].off, o[i].len, true);
		good = ((lost && o[i].r == (ssize_t)o[i].len) || good_result(&o[i], true)) &&
		       right_path(&o[i]) && good;
	}
	if (lost && !met)
		good = wrong("fsync: %s", strerror(errno));
	read_file(now);
	for (i = 0; i < n; i++) {
		size_t told = o[i].r > 0 ? (size_t)o[i].r : 0;
		const uint8_t *new = a->want + o[i].at;
		size_t len = memcmp(now + o[i].off, new, o[i].len) ? o[i].len : 0;

		for (k = 0; k < len; k++) {
			size_t at = (size_t)o[i].off + k;

			if (now[at] != new[k] && (now[at] != file[at] ||
						  (k < told && !lost)))
				good = wrong("byte %zu of the file is %02x", at,
					     now[at]);
		}
		memcpy(file + o[i].off, now + o[i].off, o[i].len);
	}
	if (good && memcmp(now, file, CHANGED)) {
		for (k = 0; now[k] == file[k]; k++)
			;
		good = wrong("byte %zu of the file was not to be written: %02x, not %02x",
			     k, now[k], file[k]);
	}
	return area_same(a, "after a write") && good;
}

static int open_file(bool write)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/file", dir);
	return must_open(path, (write ? O_RDWR : O_RDONLY) | mode->flags);
}

/* What has been read often enough goes by the page cache. */
static void warm(CUfileHandle_t fh, struct area *a)
{
	if (mode->path != PLN_PATH_CACHE)
		return;
	/* into the page cache; what is cold is read around it */
	for (size_t at = CHANGED; at < FILE_SIZE; at += LEN)
		if (pread(plain, a->now, LEN, (off_t)at) != (ssize_t)LEN)
			die("pread");
	for (int i = 0; i < 6; i++)
		if (cuFileRead(fh, a->base, LEN, NEXT, 0) != (ssize_t)LEN)
			die("cuFileRead");
}

/* Nothing is the worse for it: a good transfer takes the mode's path. */
static bool next_works(struct area *a, CUfileHandle_t fh)
{
	struct op o = { .off = NEXT, .len = LEN, .at = GUARD };

	if (!transfer(a, SYNC, fh, &o, 1, false) || !judge_read(a, &o, 1))
		return wrong("the next read: %zd", o.r);
	return o.res.bytes[mode->path] == LEN ||
	       wrong("the next read went by %s: %s", pln_path_name(o.res.path),
		     o.res.reason);
}

/* ---- controls ---- */

static uint64_t commands(bool write)
{
	unsigned long long n[5];
	struct stat st;
	char name[64];
	FILE *f;

	if (fstat(plain, &st))
		die("fstat");
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/stat", major(st.st_dev),
		 minor(st.st_dev));
	f = fopen(name, "r");
	if (!f || fscanf(f, "%llu %llu %llu %llu %llu", n, n + 1, n + 2, n + 3, n + 4) != 5)
		die(name);
	fclose(f);
	return n[write ? 4 : 0];
}

/* Plain calls of the same ranges: which of them tell the error, and how */
static void controls(uint8_t *buf)
{
	unsigned int told = 0;
	ssize_t r;

	for (unsigned int i = 0; i < PLACES; i++) {
		off_t off = (off_t)(BAD_READ - places[i].before);

		r = pread(direct, buf, LEN, off);
		told += r < 0;
		note("pread() of %zu bytes, bad in the %s command: O_DIRECT %zd (%s)", LEN,
		     places[i].name, r, r < 0 ? strerror(errno) : "");
		posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);
		r = pread(plain, buf, LEN, off);
		told += r < (ssize_t)LEN;
		note("	by the page cache %zd (%s)", r, r < 0 ? strerror(errno) : "");
		off = (off_t)(BAD_WRITE - places[i].before);
		r = pwrite(direct, file + off, LEN, off);
		told += r < 0;
		note("pwrite() there: O_DIRECT %zd (%s)", r, r < 0 ? strerror(errno) : "");
	}
	ok(told == 3 * PLACES, "plain calls tell each error");
}

/* ---- cells ---- */

static void cell(struct area *a, enum way way, const struct place *p, bool write)
{
	struct op o[OPS] = { 0 };
	unsigned int i, n = way == SYNC ? 1 : OPS;
	CUfileHandle_t fh;
	bool good;
	int fd;

	why[0] = '\0';
	fd = open_file(write);
	fh = must_reg(fd, "file");
	warm(fh, a);
	area_set(a, n);
	/* one of them is bad, between others */
	for (i = 0; i < n; i++) {
		bool bad = i == n / 2;

		o[i].len = LEN;
		o[i].at = GUARD + i * LEN;
		o[i].off = bad ? bad_block(write) - (off_t)p->before :
			   (off_t)(write ? i * MIB(1) / 2 : MIB(7) + i * MIB(2));
	}
	/* those of writes must not overlap */
	for (i = 0; write && i < n; i++)
		if (i != n / 2) {
			o[i].len = MIB(1);
			o[i].off = (off_t)(MIB(5) + i * MIB(1));
		}
	good = transfer(a, way, fh, o, n, write) &&
	       (write ? judge_write(a, o, n, fd) : judge_read(a, o, n)) &&
	       next_works(a, fh);
	ok(good, "%s: %s, by %s, the bad block in the %s command: %zd", mode->name,
	   write ? "write" : "read", way_name[way], p->name, o[n / 2].r);
	if (!good)
		note("%s", why);
	else if (way == SYNC)
		note("%s", o[0].res.reason);
	cuFileHandleDeregister(fh);
	close(fd);
}

static void choose(struct op *o, bool write)
{
	off_t from = bad_block(write) - MIB(2);

	o->off = from + (off_t)(any() % MIB(3));
	o->len = 1 + any() % LEN;
	o->at = GUARD - any() % (GUARD / 2);
	if (any() % 4) {
		o->off = o->off / (off_t)BLOCK * (off_t)BLOCK;
		o->len = (o->len + BLOCK - 1) / BLOCK * BLOCK;
		o->at = o->at / BLOCK * BLOCK;
	}
}

struct reader {
	pthread_t thread;
	unsigned int number, done;
	struct area *a;
	CUfileHandle_t fh;
	char why[400];
};

/*
 * A read of any range.  In the page cache the bad block spoils all of its folio, of up
 * to 2 MiB, as long as that is there: who reads another part of it gets the error,
 * too, as by pread().
 */
static bool read_any(struct area *a, CUfileHandle_t fh, struct op *o)
{
	bool direct_io = mode->path == PLN_PATH_P2P || mode->path == PLN_PATH_KERNEL ||
			 mode->flags & O_DIRECT;
	bool cached = !direct_io || o->off % BLOCK || o->len % BLOCK || o->at % BLOCK;

	for (int i = 0; i < 3; i++) {
		if (!transfer(a, any() % WAYS, fh, o, 1, false))
			return false;
		if (!cached || meets(o->off, o->len, false) || o->r == (ssize_t)o->len)
			break;
		if (pread(plain, a->now, o->len, o->off) < (ssize_t)o->len) {
			o->spoilt = true;
			break;
		}
	}
	return judge_read(a, o, 1);
}

static void *reader(void *arg)
{
	struct reader *r = arg;

	cuCtxSetCurrent(guest_ctx);
	seed = 0x9e3779b97f4a7c15ull * (r->number + 1);
	area_set(r->a, 1);
	for (r->done = 0; r->done < RANDOM && !why[0]; r->done++) {
		struct op o = { 0 };

		choose(&o, false);
		if (!read_any(r->a, r->fh, &o))
			break;
	}
	memcpy(r->why, why, sizeof(why));
	return NULL;
}

static void random_reads(struct area *a)
{
	struct reader r[THREADS];
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	fd = open_file(false);
	fh = must_reg(fd, "file");
	warm(fh, a);
	for (i = 0; i < THREADS; i++) {
		r[i] = (struct reader){ .number = i, .fh = fh, .a = area_new() };
		if (pthread_create(&r[i].thread, NULL, reader, &r[i]))
			die("pthread_create");
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(r[i].thread, NULL);
		if (!ok(r[i].done == RANDOM && !r[i].why[0],
			"%s: any %u reads, beside others", mode->name, RANDOM))
			note("%s", r[i].why);
	}
	why[0] = '\0';
	area_set(a, 1);
	if (!ok(next_works(a, fh), "%s: and the next one works", mode->name))
		note("%s", why);
	cuFileHandleDeregister(fh);
	close(fd);
}

static void random_writes(struct area *a)
{
	CUfileHandle_t fh;
	unsigned int i;
	int fd;

	why[0] = '\0';
	fd = open_file(true);
	fh = must_reg(fd, "file");
	for (i = 0; i < RANDOM / 3 && !why[0]; i++) {
		struct op o = { 0 };

		area_set(a, 1);
		choose(&o, true);
		if (!transfer(a, any() % WAYS, fh, &o, 1, true) ||
		    !judge_write(a, &o, 1, fd))
			break;
	}
	if (!ok(i == RANDOM / 3 && !why[0], "%s: any %u writes", mode->name, RANDOM / 3))
		note("%s", why);
	cuFileHandleDeregister(fh);
	close(fd);
}

/* A transfer is as many commands as it needs for first, middle and last ones. */
static void split(struct area *a)
{
	struct op o = { .off = 0, .len = LEN, .at = GUARD };
	CUfileHandle_t fh;
	uint64_t n;
	int fd;

	fd = open_file(false);
	fh = must_reg(fd, "file");
	area_set(a, 1);
	posix_fadvise(plain, 0, 0, POSIX_FADV_DONTNEED);
	n = commands(false);
	if (!ok(transfer(a, SYNC, fh, &o, 1, false) && judge_read(a, &o, 1) &&
		commands(false) - n >= 3, "%s: %zu bytes are three commands or more",
		mode->name, LEN))
		note("they are %" PRIu64 "; %s", commands(false) - n, why);
	cuFileHandleDeregister(fh);
	close(fd);
}

int main(int argc, char **argv)
{
	char path[256];
	struct area *a;
	struct stat st;
	int fd;

	if (argc != 3)
		return 2;
	dir = argv[1];
	for (mode = modes; mode < modes + sizeof(modes) / sizeof(modes[0]); mode++)
		if (!strcmp(mode->name, argv[2]))
			break;
	if (mode == modes + sizeof(modes) / sizeof(modes[0]))
		return 2;
	for (unsigned int i = 0; i < 3 && mode->env[i]; i++)
		putenv(strdup(mode->env[i]));
	if (posix_memalign((void **)&file, BLOCK, FILE_SIZE))
		die("memory");
	snprintf(path, sizeof(path), "%s/file", dir);
	/* a file that somebody writes is not read by the page cache's path */
	direct = must_open(path, (mode->read_only ? O_RDONLY : O_RDWR) | O_DIRECT);
	plain = must_open(path, O_RDONLY);
	if (fstat(plain, &st))
		die("fstat");
	device = st.st_dev;
	/* the block that cannot be read is known from the twin */
	snprintf(path, sizeof(path), "%s/twin", dir);
	fd = must_open(path, O_RDONLY);
	if (pread(fd, file, FILE_SIZE, 0) != (ssize_t)FILE_SIZE)
		die("pread of the twin");
	close(fd);
	read_file(file);
	gpu_open();
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	a = area_new();
	if (mode->path == PLN_PATH_P2P)
		controls(a->want);
	/* a bad one is the first of this process: nothing is known of any path yet */
	for (unsigned int w = 0; w < (mode->read_only ? 1 : 2); w++)
		for (unsigned int p = 0; p < PLACES; p++)
			for (enum way way = 0; way < WAYS; way++)
				cell(a, way, &places[p], w);
	split(a);
	random_reads(a);
	if (!mode->read_only)
		random_writes(a);
	if (cuFileDriverClose().err)
		die("cuFileDriverClose");
	return finish();
}
