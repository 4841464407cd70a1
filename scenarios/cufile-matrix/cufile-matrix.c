// SPDX-License-Identifier: MIT
/*
 * One file system, all paths of libcufile, each way to ask, each kind of place:
 *
 *	cufile-matrix FS DIR|DEVICE [here] [staged] [uncached] [few] [kernel [refused=WORDS]]
 *
 * few: each way to ask for aligned places, and each other place in one way.
 * kernel: the module peerlane is loaded; with refused= it takes no such file, and the reason has these words.  here: p2p must
 * work.  staged: it must not, since a layer below the file keeps it from the drive.  uncached: the page cache's path must not
 * take such a file.
 *
 * low0 and low1 of DIR, where they are there, are files of a lower layer of overlayfs.
 *
 * A cell is four pieces read or written.  Its data is compared with what the file
 * must have, and what the GPU counted with what the path must move.
 */
#include <glob.h>

#include "guest.h"

int cuStreamCreate(CUstream *s, unsigned int flags);
int cuStreamSynchronize(CUstream s);

#define MAX	4			/* pieces */
#define FILE_SIZE (MIB(1) + 1000)
#define HOLE_AT	KIB(512)
#define HOLE	KIB(256)
#define ROOM	MIB(1)
#define OUT_AT	(off_t)MIB(8)		/* on a raw device */
#define END_SIZE MIB(1)			/* of what is used at its end */

static const char *fs, *where;
static bool raw, ram;			/* no holes, and no growing; no drive */
static off_t raw_size;
static bool here;			/* p2p must work */
static bool staged;			/* it must not */
static bool uncached;			/* nor the page cache's path */
static bool few;			/* not each way for each place */
static bool module;			/* there is the kernel's path */
static const char *refused;		/* and why it is not taken */
static bool holes;			/* files have one */
static size_t file_size = FILE_SIZE;
static gpu_ptr gpu;
static uint8_t *host_memory, *now;
static CUstream stream;

/* strict: p2p for every byte; its writes have a row of their own, where the host sees reads alone in the other */
enum path { P2P, KERNEL, BOUNCE, CACHE, POSIX, STRICT, STRICT_WRITE, PATHS };
static const char *const path_name[] = {
	"p2p", "kernel", "bounce", "cache", "posix", "strict", "strict_write"
};

static bool is_strict(enum path path)
{
	return path == STRICT || path == STRICT_WRITE;
}

enum way { SYNC, BATCH, STREAM, WAYS };
static const char *const way_name[] = { "sync", "batch", "stream" };

/* Also the last one at the end has the 64 KiB from which the path through the page cache takes reads */
static const struct place {
	const char *name;
	off_t off;
	size_t piece, at;		/* the first one's place in memory */
	unsigned int n;
} places[] = {
	{ "aligned", KIB(64), KIB(64), 0, 4 },
	{ "unaligned", KIB(64) + 123, KIB(68) - 321, 123, 4 },
	{ "sparse", HOLE_AT - KIB(64), KIB(96), 0, 4 },
	{ "end", MIB(1) - KIB(232), KIB(80), 0, 3 },
	/* whole pages of the file, which strict mode moves by GPU memory of the library */
	{ "address", KIB(64), KIB(68), 123, 4 },
};
#define ALIGNED (&places[0])
#define UNALIGNED (&places[1])
#define SPARSE	(&places[2])
#define END	(&places[3])
#define ADDRESS	(&places[4])
#define PLACES (sizeof(places) / sizeof(places[0]))

/* The third one ends behind the device */
static const struct place raw_end = { "end", END_SIZE - KIB(160), KIB(64), 0, 3 };

/* ---- what the devices count ---- */

struct counts {
	uint64_t in, out;		/* by the drive, from and to GPU memory */
	uint64_t engine_in, engine_out;	/* by the GPU's engine, host memory */
	uint64_t path[PLN_PATH_COUNT];	/* as the library says */
};

static struct counts counts(void)
{
	static const int of[] = { PLN_PATH_P2P, PLN_PATH_KERNEL, PLN_PATH_BOUNCE,
				  PLN_PATH_CACHE, PLN_PATH_POSIX };
	const unsigned int n = sizeof(of) / sizeof(of[0]);
	struct pln_file_stats s = stats();
	struct counts c = { 0 };
	unsigned long long value;
	char name[64];
	glob_t found;
	FILE *f;

	if (glob("/sys/kernel/debug/peerlane_gpu/*/counters", 0, NULL, &found) ||
	    !(f = fopen(found.gl_pathv[0], "r")))
		die("the GPU's counters");
	while (fscanf(f, "%63s %llu", name, &value) == 2) {
		if (!strcmp(name, "bar1-dma-write"))
			c.in = value;
		else if (!strcmp(name, "bar1-dma-read"))
			c.out = value;
		else if (!strcmp(name, "engine-host-read"))
			c.engine_in = value;
		else if (!strcmp(name, "engine-host-write"))
			c.engine_out = value;
	}
	fclose(f);
	globfree(&found);
	for (unsigned int i = 0; i < n; i++)
		c.path[of[i]] = s.path[of[i]].bytes_read +
				s.path[of[i]].bytes_written;
	return c;
}

static struct counts since(struct counts before)
{
	struct counts c = counts();

	c.in -= before.in;
	c.out -= before.out;
	c.engine_in -= before.engine_in;
	c.engine_out -= before.engine_out;
	for (unsigned int i = 0; i < PLN_PATH_COUNT; i++)
		c.path[i] -= before.path[i];
	return c;
}

/* ---- data ---- */

static void fill(uint8_t *to, size_t n, unsigned int generation)
{
	uint64_t x;

	for (size_t at = 0; at < n; at += sizeof(x)) {
		x = (at / 8 + 1) * 0x9e3779b97f4a7c15ull +
		    generation * 0xd1342543de82ef95ull;
		x ^= x >> 29;
		x *= 0xbf58476d1ce4e5b9ull;
		memcpy(to + at, &x, n - at < sizeof(x) ? n - at : sizeof(x));
	}
}

/* All of a new file */
static const uint8_t *was(void)
{
	static uint8_t all[FILE_SIZE];
	static int has_hole = -1;

	if (has_hole != holes) {
		fill(all, FILE_SIZE, 0);
		if (holes)
			memset(all + HOLE_AT, 0, HOLE);
		has_hole = holes;
	}
	return all;
}

static void put(int fd, const void *p, size_t n, off_t off)
{
	if (pwrite(fd, p, n, off) != (ssize_t)n)
		die("pwrite");
}

static int open_as(const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), raw ? "%s" : "%s/%s", where, name);
	return must_open(path, flags);
}

static bool has(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", where, name);
	return !access(path, R_OK);
}

/* New bytes, on the drive and not only in the page cache */
static void make(const char *name, off_t base)
{
	int fd = open_as(name, raw ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC);

	if (!holes) {
		put(fd, was(), file_size, base);
	} else {
		put(fd, was(), HOLE_AT, 0);
		put(fd, was() + HOLE_AT + HOLE, file_size - HOLE_AT - HOLE,
		    HOLE_AT + HOLE);
	}
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die("fsync");
	close(fd);
}

/* ---- a cell ---- */

struct cell {
	enum path path;
	enum way way;
	const struct place *place;
	bool write;
	off_t base;			/* of the file */
	void *memory;
	ssize_t r[MAX];
	size_t bytes;			/* to be moved */
	char why[160];
};

static bool transfer(struct cell *c, CUfileHandle_t fh)
{
	const struct place *p = c->place;
	CUfileIOParams_t io[MAX] = { 0 };
	CUfileIOEvents_t e[MAX];
	CUfileBatchHandle_t b;
	unsigned int i, n = p->n;
	size_t size = p->piece;
	off_t off[MAX], at[MAX];
	struct timespec limit = { .tv_sec = 60 };
	int r = 0;

	for (i = 0; i < n; i++) {
		off[i] = c->base + p->off + (off_t)(i * size);
		at[i] = (off_t)(p->at + i * size);
		c->r[i] = -9999;
		io[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh, .cookie = &c->r[i],
			.opcode = c->write ? CUFILE_WRITE : CUFILE_READ,
			.u.batch = { c->memory, off[i], at[i], size },
		};
	}
	switch (c->way) {
	case BATCH:
		r = cuFileBatchIOSetUp(&b, MAX).err;
		if (r)
			break;
		r = cuFileBatchIOSubmit(b, n, io, 0).err;
		if (!r)
			r = cuFileBatchIOGetStatus(b, n, &n, e, &limit).err;
		for (i = 0; !r && i < n; i++)
			*(ssize_t *)e[i].cookie = (ssize_t)e[i].ret;
		cuFileBatchIODestroy(b);
		break;
	case STREAM:
		for (i = 0; i < n && !r; i++)
			r = c->write ?
			    cuFileWriteAsync(fh, c->memory, &size, &off[i],
					     &at[i], &c->r[i], stream).err :
			    cuFileReadAsync(fh, c->memory, &size, &off[i],
					    &at[i], &c->r[i], stream).err;
		r = r ? r : cuStreamSynchronize(stream);
		break;
	default:
		for (i = 0; i < n; i++)
			c->r[i] = c->write ?
				  cuFileWrite(fh, c->memory, size, off[i], at[i]) :
				  cuFileRead(fh, c->memory, size, off[i], at[i]);
	}
	if (r)
		snprintf(c->why, sizeof(c->why), "error %d", r);
	return !r;
}

static void to_memory(const struct cell *c, const uint8_t *p)
{
	if (c->path == POSIX)
		memcpy(c->memory, p, ROOM);
	else if (cuMemcpyHtoD_v2((uintptr_t)c->memory, p, ROOM))
		die("cuMemcpyHtoD");
}

static bool compare(struct cell *c, const uint8_t *got, const uint8_t *want,
		    size_t n, const char *what)
{
	if (!memcmp(got, want, n))
		return true;
	for (size_t i = 0; i < n; i++)
		if (got[i] != want[i]) {
			snprintf(c->why, sizeof(c->why), "%s: byte %zu is %02x, "
				 "not %02x", what, i, got[i], want[i]);
			return false;
		}
	return true;
}

static bool run_cell(struct cell *c, CUfileHandle_t fh, int fd, struct counts *d)
{
	static uint8_t want[ROOM + FILE_SIZE], memory[ROOM];
	static unsigned int generation;
	const struct place *p = c->place;
	/* a part of a page is written through the page cache, or not at all */
	bool refusal = c->path == STRICT_WRITE && p == UNALIGNED, good;
	size_t all = p->n * p->piece, i;
	struct counts before;

	c->bytes = refusal ? 0 : all;
	if (!refusal && (raw || !c->write) && (size_t)p->off + all > file_size)
		c->bytes = file_size - (size_t)p->off;
	generation++;
	fill(memory, ROOM, generation);
	to_memory(c, memory);
	before = counts();
	good = transfer(c, fh);
	*d = since(before);
	for (i = 0; i < p->n && good; i++) {
		size_t left = c->bytes > i * p->piece ? c->bytes - i * p->piece : 0;

		left = left < p->piece ? left : p->piece;
		good = c->r[i] == (refusal ? -CU_FILE_IO_NOT_SUPPORTED : (ssize_t)left);
		if (!good)
			snprintf(c->why, sizeof(c->why), "piece %zu: %zd, not %zu", i,
				 c->r[i], left);
	}
	if (!good)
		return false;
	if (c->write) {
		size_t n = (size_t)p->off + c->bytes;

		n = n > file_size ? n : file_size;
		memcpy(want, was(), file_size);
		memcpy(want + p->off, memory + p->at, c->bytes);
		if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			die("fsync");
		if (pread(fd, now, n, c->base) != (ssize_t)n)
			die("pread");
		return compare(c, now, want, n, "the file");
	}
	/* the rest of a page at the end of the file is not told */
	memcpy(want, memory, ROOM);
	memcpy(want + p->at, was() + p->off, c->bytes);
	if (c->path == POSIX)
		memcpy(now, c->memory, ROOM);
	else if (cuMemcpyDtoH_v2(now, (uintptr_t)c->memory, ROOM))
		die("cuMemcpyDtoH");
	if (c->bytes < all)
		memcpy(want + p->at + c->bytes, now + p->at + c->bytes,
		       (KIB(4) - file_size % KIB(4)) % KIB(4));
	return compare(c, now, want, ROOM, "the memory");
}

/* Did the devices move what this path has to? */
static bool moved(struct cell *c, const struct counts *d)
{
	uint64_t p2p = d->path[c->path == KERNEL ? PLN_PATH_KERNEL : PLN_PATH_P2P];
	uint64_t dma = c->write ? d->out : d->in;
	uint64_t engine = c->write ? d->engine_out : d->engine_in;
	uint64_t want = c->bytes;
	/* what the io_uring moved to the end of the device, a thread asks for again */
	uint64_t again = c->place == &raw_end && c->way != SYNC ? KIB(32) : 0;
	uint64_t slack = c->write ? 0 : c->place->n * KIB(8);
	/* a hole of a tmpfs is not in the page cache, so that such a file is copied */
	bool good, no_cache = uncached || (ram && c->place == SPARSE);

	/* the processor fills memory with the zeros of a hole */
	if (!c->write && c->place == SPARSE)
		want -= HOLE;
	if (c->path == POSIX)
		good = !d->in && !d->out && d->path[PLN_PATH_POSIX] == c->bytes;
	else if (c->path == CACHE && !no_cache)
		good = !d->in && d->path[PLN_PATH_CACHE] == c->bytes &&
		       engine >= c->bytes;
	else if (is_strict(c->path))
		/* around odd ends whole blocks, and the engine has commands only */
		good = p2p == c->bytes && dma >= want && !(c->write ? d->in : d->out) &&
		       dma - want <= again + (c->place == UNALIGNED || c->place == END ||
					      c->place == &raw_end ? slack : 0) &&
		       d->engine_in + d->engine_out < KIB(16);
	else if ((c->path != P2P && c->path != KERNEL) || staged || !(here || p2p) ||
		 (c->path == KERNEL && refused))
		good = !d->in && !d->out && d->path[PLN_PATH_BOUNCE] == c->bytes &&
		       engine >= c->bytes;
	else if (c->place == ALIGNED || c->place == SPARSE)
		good = dma == want && p2p == c->bytes;
	else	/* whole blocks; the device does not know where a file ends */
		good = p2p && dma >= p2p && dma - p2p < KIB(4) + again &&
		       p2p + d->path[PLN_PATH_BOUNCE] == c->bytes;
	if (!good)
		snprintf(c->why, sizeof(c->why), "%zu bytes: direct %" PRIu64
			 " bounce %" PRIu64 " cache %" PRIu64 "; the drive moved %"
			 PRIu64 " and %" PRIu64 ", the engine %" PRIu64, c->bytes,
			 p2p, d->path[PLN_PATH_BOUNCE], d->path[PLN_PATH_CACHE],
			 d->in, d->out, engine);
	return good;
}

/* ---- rows ---- */

/* Is that why the module has not moved it? */
static bool said_so(struct cell *c, CUfileHandle_t fh)
{
	struct pln_file_stats s = { .size = sizeof(s) };

	/* the latest may be that the device has no more room */
	if (c->path != KERNEL || !refused || (c->write && c->place == &raw_end))
		return true;
	if (!pln_file_stats(fh, &s) && strstr(s.reason, refused))
		return true;
	snprintf(c->why, sizeof(c->why), "the reason: %.140s", s.reason);
	return false;
}

/* Registered so far that reads of a piece go by the page cache, too */
static void warm(CUfileHandle_t fh, int fd)
{
	for (int i = 0; i < 4; i++) {
		if (pread(fd, now, file_size, 0) != (ssize_t)file_size)
			die("pread");
		if (cuFileRead(fh, addr(gpu), ROOM, 0, 0) != (ssize_t)ROOM)
			die("cuFileRead");
	}
}

static void path_of(enum path path)
{
	struct json_object *result = json_object_new_object();
	struct counts sum = { 0 }, d;
	unsigned int cells = 0, right = 0;
	uint64_t bytes = 0;
	char line[200], key[64];

	if ((is_strict(path) && (!here || staged)) || (path == KERNEL && !module))
		return;
	setenv("CUFILE_USE_PCIP2PDMA", path == KERNEL ? "0" : "1", 1);
	setenv("PEERLANE_STRICT", is_strict(path) ? "1" : "0", 1);
	setenv("CUFILE_FORCE_COMPAT_MODE", path == BOUNCE || path == CACHE ? "1" :
	       "0", 1);
	setenv("PEERLANE_PAGE_CACHE", path == CACHE ? "1" : "0", 1);
	holes = !raw && !(ram && path == CACHE);
	make("in", 0);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	host_must("begin %s_%s", fs, path_name[path]);
	for (unsigned int w = path == STRICT_WRITE; w < 2; w++) {
		/* nothing is written by the page cache's path */
		if (w && (path == CACHE || path == STRICT))
			break;
		for (unsigned int p = 0; p < PLACES; p++) {
			const struct place *place = raw && &places[p] == END ? &raw_end : &places[p];
			off_t base = place == &raw_end ? raw_size - (off_t)END_SIZE : raw && w ? OUT_AT : 0;
			int n, words;

			if ((place == SPARSE && raw) || (place == ADDRESS && !is_strict(path)))
				continue;
			if (place == SPARSE && ram && path == CACHE) {
				holes = true;
				make("in", 0);
			} else if (place == &raw_end) {
				file_size = END_SIZE;
				make("in", base);
			}
			n = snprintf(line, sizeof(line), "%-6s %-6.6s %-5s %-9s", fs,
					 path_name[path], w ? "write" : "read",
					 place->name);
			words = n;

			for (enum way way = 0; way < WAYS; way++) {
				struct cell c = {
					.path = path, .way = way, .write = w,
					.place = place, .base = base,
					.memory = path == POSIX ? host_memory :
						  addr(gpu),
				};
				CUfileHandle_t fh;
				bool good;
				int fd;

				if (few && place != ALIGNED && way != SYNC)
					continue;
				if (w)
					make("out", c.base);
				fd = open_as(w ? "out" : "in", w ? O_RDWR : O_RDONLY);
				fh = must_reg(fd, "a file");
				if (path == CACHE)
					warm(fh, fd);
				good = run_cell(&c, fh, fd, &d);
				good = moved(&c, &d) && said_so(&c, fh) && good;
				cuFileHandleDeregister(fh);
				close(fd);
				cells++;
				right += good;
				if (!good)
					note("%.*s %s: %s", words, line, way_name[way],
					     c.why);
				n += snprintf(line + n, sizeof(line) - (size_t)n,
					      " %-7s", good ? way_name[way] : "WRONG");
				bytes += c.bytes;
				sum.in += d.in;
				sum.out += d.out;
				for (int i = 0; i < PLN_PATH_COUNT; i++)
					sum.path[i] += d.path[i];
			}
			printf("@text table %s\n", line);
			if (place == SPARSE && ram && path == CACHE) {
				holes = false;
				make("in", 0);
			}
			file_size = FILE_SIZE;
		}
	}
	host_must("end %s_%s", fs, path_name[path]);
	json_set(result, "cells", cells);
	json_set(result, "right", right);
	json_set(result, "bytes", bytes);
	json_set(result, "p2p", sum.path[PLN_PATH_P2P]);
	json_set(result, "kernel", sum.path[PLN_PATH_KERNEL]);
	json_set(result, "bounce", sum.path[PLN_PATH_BOUNCE]);
	json_set(result, "cache", sum.path[PLN_PATH_CACHE]);
	json_set(result, "posix", sum.path[PLN_PATH_POSIX]);
	json_set(result, "in", sum.in);
	json_set(result, "out", sum.out);
	snprintf(key, sizeof(key), "%s_%s", fs, path_name[path]);
	tell_fact(key, result);
	ok(right == cells, "%s, %s: %u of %u cells are right", fs, path_name[path],
	   right, cells);
	if (cuFileDriverClose().err)
		die("cuFileDriverClose");
}

/*
 * Who has such a file open to read would have a mapping of the lower one for ever, even
 * when somebody has copied it up since: reads must show what that one wrote.
 */
static void copied_up(const char *name, enum path path)
{
	CUfileHandle_t fh;
	bool good = true;
	int fd, other;
	/* large reads need no lease to be registered */
	gpu_ptr large = gpu_alloc(MIB(4));

	setenv("CUFILE_FORCE_COMPAT_MODE", path == CACHE ? "1" : "0", 1);
	setenv("PEERLANE_PAGE_CACHE", path == CACHE ? "1" : "0", 1);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	fd = open_as(name, O_RDONLY);
	fh = must_reg(fd, name);
	if (cuFileRead(fh, addr(large), MIB(4), 0, 0) != (ssize_t)MIB(4))
		die("cuFileRead");
	for (unsigned int turn = 1; turn <= 2; turn++) {
		fill(now, file_size, turn);
		other = open_as(name, O_RDWR);
		put(other, now, file_size, 0);
		close(other);
		for (int i = 0; i < 4; i++) {
			if (cuMemsetD8_v2(large, 0, MIB(4)) ||
			    cuFileRead(fh, addr(large), MIB(4), 0, 0) !=
				    (ssize_t)MIB(4) ||
			    cuMemcpyDtoH_v2(host_memory, large, ROOM))
				die("cuFileRead");
			good = good && !memcmp(host_memory, now, ROOM);
		}
	}
	ok(good, "%s, %s: what was copied up is read as it is now", fs,
	   path_name[path]);
	cuFileHandleDeregister(fh);
	close(fd);
	if (cuFileDriverClose().err || cuMemFree_v2(large))
		die("cuFileDriverClose");
}

int main(int argc, char **argv)
{
	struct stat st;
	int i;

	if (argc < 3 || stat(argv[2], &st))
		return 2;
	fs = argv[1];
	where = argv[2];
	for (i = 3; i < argc; i++) {
		here |= !strcmp(argv[i], "here");
		staged |= !strcmp(argv[i], "staged");
		uncached |= !strcmp(argv[i], "uncached");
		few |= !strcmp(argv[i], "few");
		module |= !strcmp(argv[i], "kernel");
		if (!strncmp(argv[i], "refused=", 8))
			refused = argv[i] + 8;
	}
	raw = S_ISBLK(st.st_mode);
	ram = !strcmp(fs, "tmpfs");
	staged |= ram;
	uncached |= raw;
	if (raw) {
		i = must_open(where, O_RDONLY);
		raw_size = lseek(i, 0, SEEK_END);
		close(i);
	}
	gpu_open();
	gpu = gpu_alloc(ROOM);
	now = malloc(ROOM + FILE_SIZE);
	if (!now || posix_memalign((void **)&host_memory, 4096, ROOM) ||
	    cuStreamCreate(&stream, 1))
		die("memory");
	for (enum path p = 0; p < PATHS; p++)
		path_of(p);
	setenv("PEERLANE_STRICT", "0", 1);
	if (!raw && has("low0")) {
		copied_up("low0", P2P);
		copied_up("low1", CACHE);
	}
	return finish();
}
