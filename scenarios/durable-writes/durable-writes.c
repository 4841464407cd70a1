// SPDX-License-Identifier: MIT
/*
 * A write that has been promised, and the power is cut behind it:
 *
 *	durable-writes write WAY DIR	the host cuts the power soon
 *	durable-writes check WAY DIR	in the next life: is it there?
 *
 * In place means that the file's blocks have been written and flushed before: then
 * no journal has anything to write, and nothing but the way itself flushes the
 * drive's cache.
 */
#include "guest.h"

int cuStreamCreate(CUstream *s, unsigned int flags);
int cuStreamSynchronize(CUstream s);

#define SIZE	MIB(1)
#define PIECE	(SIZE / 4)

enum how { SYNC, BATCH, STREAM };

static const struct way {
	const char *name, *env;
	unsigned int path;		/* that most of its bytes take */
	int flags;			/* of open() */
	int (*flush)(int fd);
	enum how how;
	bool grows;
	off_t at;
} ways[] = {
	{ .name = "dsync", .path = PLN_PATH_P2P, .flags = O_DSYNC },
	{ .name = "sync-grows", .path = PLN_PATH_P2P, .flags = O_SYNC, .grows = true },
	{ .name = "fdatasync", .path = PLN_PATH_P2P, .flush = fdatasync },
	{ .name = "fsync-grows", .path = PLN_PATH_P2P, .flush = fsync, .grows = true },
	{ .name = "dsync-batch", .path = PLN_PATH_P2P, .flags = O_DSYNC, .how = BATCH },
	{ .name = "dsync-stream", .path = PLN_PATH_P2P, .flags = O_DSYNC, .how = STREAM },
	{ .name = "dsync-unaligned", .path = PLN_PATH_P2P, .flags = O_DSYNC, .at = 123 },
	{ .name = "dsync-kernel", .path = PLN_PATH_KERNEL, .flags = O_DSYNC,
	  .env = "CUFILE_USE_PCIP2PDMA=0" },
	{ .name = "dsync-bounce", .path = PLN_PATH_BOUNCE, .flags = O_DSYNC,
	  .env = "CUFILE_FORCE_COMPAT_MODE=1" },
	{ .name = "dsync-bounce-direct", .path = PLN_PATH_BOUNCE,
	  .flags = O_DSYNC | O_DIRECT, .env = "CUFILE_FORCE_COMPAT_MODE=1" },
};

static uint64_t data[SIZE / 8], got[SIZE / 8];

/* Its bytes differ from those of other ways, and from the zeros there before. */
static void fill(const struct way *w)
{
	uint64_t x = 0x9e3779b97f4a7c15ull * (uint64_t)(w - ways + 1);

	for (size_t i = 0; i < SIZE / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = x;
	}
}

static void batch(CUfileHandle_t fh, gpu_ptr gpu, off_t at)
{
	CUfileIOParams_t io[SIZE / PIECE] = { 0 };
	CUfileIOEvents_t e[SIZE / PIECE];
	unsigned int i, n = SIZE / PIECE;
	CUfileBatchHandle_t b;

	for (i = 0; i < n; i++)
		io[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH, .fh = fh, .opcode = CUFILE_WRITE,
			.u.batch = { addr(gpu), at + (off_t)(i * PIECE),
				     (off_t)(i * PIECE), PIECE },
		};
	if (cuFileBatchIOSetUp(&b, n).err || cuFileBatchIOSubmit(b, n, io, 0).err ||
	    cuFileBatchIOGetStatus(b, n, &n, e, NULL).err)
		die("a batch");
	for (i = 0; i < n; i++)
		if (e[i].ret != PIECE)
			die("an entry of a batch");
	cuFileBatchIODestroy(b);
}

static void transfer(const struct way *w, CUfileHandle_t fh, gpu_ptr gpu)
{
	off_t off = w->at, at = 0;
	ssize_t done = 0;
	size_t n = SIZE;
	CUstream s;

	switch (w->how) {
	case BATCH:
		batch(fh, gpu, off);
		break;
	case STREAM:
		if (cuStreamCreate(&s, 1) ||
		    cuFileWriteAsync(fh, addr(gpu), &n, &off, &at, &done, s).err ||
		    cuStreamSynchronize(s) || done != (ssize_t)SIZE)
			die("cuFileWriteAsync");
		break;
	default:
		for (; at < (off_t)SIZE; at += (off_t)PIECE)
			if (cuFileWrite(fh, addr(gpu), PIECE, off + at, at) !=
			    (ssize_t)PIECE)
				die("cuFileWrite");
	}
}

/* What is there before is on the medium. */
static void prepare(const struct way *w, const char *name)
{
	int fd = must_open(name, O_RDWR | O_CREAT | O_TRUNC);

	memset(got, 0, SIZE);
	if (!w->grows && (pwrite(fd, got, SIZE, 0) != (ssize_t)SIZE ||
			  pwrite(fd, got, KIB(4), SIZE) != (ssize_t)KIB(4)))
		die("pwrite");
	if (syncfs(fd))
		die("syncfs");
	close(fd);
}

static int write_one(const struct way *w, const char *dir, const char *name)
{
	struct pln_file_stats before, after;
	CUfileHandle_t fh;
	uint64_t bytes;
	gpu_ptr gpu;
	int fd;

	prepare(w, name);
	if (w->env && putenv(strdup(w->env)))
		die("putenv");
	gpu_open();
	/* as crooked as the place in the file, so that whole blocks can go directly */
	gpu = gpu_alloc(MIB(2)) + (gpu_ptr)w->at;
	if (cuMemcpyHtoD_v2(gpu, data, SIZE))
		die("cuMemcpyHtoD");
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	before = stats();
	fd = must_open(name, O_RDWR | w->flags);
	fh = must_reg(fd, name);
	transfer(w, fh, gpu);
	if (w->flush && w->flush(fd))
		die("the flush");
	after = stats();
	bytes = after.path[w->path].bytes_written -
		before.path[w->path].bytes_written;
	/* what is no whole page is staged, of four pieces */
	host_must("wrote %s %s %d", w->name, strrchr(dir, '/') + 1,
		  bytes >= SIZE - 4 * KIB(8));
	return guest_failed;
}

static int check_one(const struct way *w, const char *dir, const char *name)
{
	int fd = must_open(name, O_RDONLY);
	size_t i, wrong = 0;

	memset(got, 0, SIZE);
	if (pread(fd, got, SIZE, w->at) < 0)
		die("pread");
	close(fd);
	for (i = 0; i < SIZE / 512; i++)
		wrong += !!memcmp(got + i * 64, data + i * 64, 512);
	host_must("kept %s %s %zu", w->name, strrchr(dir, '/') + 1, wrong);
	ok(!wrong, "%s: of %u sectors, %zu were lost", name,
	   (unsigned int)(SIZE / 512), wrong);
	return finish();
}

int main(int argc, char **argv)
{
	const struct way *w = ways;
	char name[256];

	if (argc != 4)
		return 2;
	while (w < ways + sizeof(ways) / sizeof(ways[0]) && strcmp(w->name, argv[2]))
		w++;
	if (w == ways + sizeof(ways) / sizeof(ways[0]))
		return 2;
	snprintf(name, sizeof(name), "%s/%s", argv[3], w->name);
	fill(w);
	return !strcmp(argv[1], "write") ? write_one(w, argv[3], name) :
					   check_one(w, argv[3], name);
}
