// SPDX-License-Identifier: MIT
/*
 * File -> real GPU -> file, with whatever libcufile.so.0 and libcuda.so.1 are
 * found: data checked through cuMemcpyDtoH and a CRC on the CPU, and
 * what the library answers to wrong calls.  Everything is looked up at run
 * time, so the same program measures Peerlane's library and NVIDIA's.
 *
 *   cufile-gpu [--lib FILE] [--dir DIR] [--size MIB] [--answers]
 *
 * Exit status: 0 all good, 1 something is wrong, 77 nothing to test with.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu.h"

static unsigned int checks, failed;

static bool check(bool good, const char *what)
{
	checks++;
	failed += !good;
	printf("%sok %u - %s\n", good ? "" : "not ", checks, what);
	fflush(stdout);
	return good;
}

static int skip(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	return 77;
}

/* ---- CRC32C ---- */

static uint32_t crc_table[8][256];

static void crc_setup(void)
{
	unsigned int i, j;

	for (i = 0; i < 256; i++) {
		uint32_t c = i;

		for (j = 0; j < 8; j++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
		crc_table[0][i] = c;
	}
	for (i = 0; i < 256; i++)
		for (j = 1; j < 8; j++)
			crc_table[j][i] = crc_table[j - 1][i] >> 8 ^
				crc_table[0][crc_table[j - 1][i] & 0xff];
}

static uint32_t crc32c(const unsigned char *p, size_t n)
{
	uint32_t c = ~0u;

	for (; n >= 8; p += 8, n -= 8) {
		uint64_t x;

		memcpy(&x, p, 8);
		x ^= c;
		c = crc_table[7][x & 0xff] ^ crc_table[6][x >> 8 & 0xff] ^
		    crc_table[5][x >> 16 & 0xff] ^ crc_table[4][x >> 24 & 0xff] ^
		    crc_table[3][x >> 32 & 0xff] ^ crc_table[2][x >> 40 & 0xff] ^
		    crc_table[1][x >> 48 & 0xff] ^ crc_table[0][x >> 56];
	}
	for (; n; n--)
		c = c >> 8 ^ crc_table[0][(c ^ *p++) & 0xff];
	return ~c;
}

/* ---- what is tested ---- */

static const char *dir = "/var/tmp", *lib = "libcufile.so.0";
static size_t size = 256u << 20;
static char in_path[512], out_path[512];
static unsigned char *data, *back;

static bool same(devptr g, size_t at, size_t n, const unsigned char *want)
{
	return !cuMemcpyDtoH_v2(back, g + at, n) && !memcmp(back, want, n);
}

static void tell_path(CUfileHandle_t fh, const char *what)
{
	struct pln_file_stats s = { .size = sizeof(s) };

	if (!stats_fn || stats_fn(fh, &s))
		return;
	printf("# %s: cache %llu bytes, bounce %llu, p2p %llu; %s\n", what,
	       (unsigned long long)s.path[PLN_PATH_CACHE].bytes_read,
	       (unsigned long long)(s.path[PLN_PATH_BOUNCE].bytes_read +
				    s.path[PLN_PATH_BOUNCE].bytes_written),
	       (unsigned long long)(s.path[PLN_PATH_P2P].bytes_read +
				    s.path[PLN_PATH_P2P].bytes_written),
	       s.reason[0] ? s.reason : "no fall-back");
}

static void test_data(devptr g, int flags, const char *name)
{
	static const size_t off[] = { 0, 1, 4095, 4096, 70001 };
	static const size_t len[] = { 1, 4095, 4096, 65536, 1000003 };
	char what[128];
	CUfileHandle_t fh, out;
	unsigned int i, j, bad = 0;
	int fd, ofd, rfd, err;
	uint32_t want = crc32c(data, size), got;
	struct stat st;
	ssize_t r;

	fd = open(in_path, O_RDONLY | flags);
	ofd = open(out_path, O_RDWR | O_CREAT | O_TRUNC | flags, 0644);
	if (fd < 0 || ofd < 0) {
		printf("# %s: %s\n", name, strerror(errno));
		return;
	}
	fh = reg(fd, &err);
	snprintf(what, sizeof(what), "%s: the file is registered (%d)", name,
		 err);
	if (!check(!err, what))
		return;
	out = reg(ofd, &err);
	cuMemsetD8_v2(g, 0xee, size);
	cuCtxSynchronize();
	r = cfRead(fh, (void *)(uintptr_t)g, size, 0, 0);
	snprintf(what, sizeof(what), "%s: %zu MiB go to the GPU", name,
		 size >> 20);
	if (!check(r == (ssize_t)size, what))
		printf("# got %zd, errno %d\n", r, errno);
	cuMemcpyDtoH_v2(back, g, size);
	got = crc32c(back, size);
	printf("# CRC32C of the file 0x%08x, of GPU memory 0x%08x\n", want, got);
	snprintf(what, sizeof(what), "%s: CRC32C is the same", name);
	check(got == want, what);
	r = cfWrite(out, (void *)(uintptr_t)g, size, 0, 0);
	snprintf(what, sizeof(what), "%s: and from the GPU to a file", name);
	if (!check(r == (ssize_t)size, what))
		printf("# got %zd, errno %d\n", r, errno);
	memset(back, 0, size);
	fsync(ofd);
	rfd = open(out_path, O_RDONLY);
	r = 0;
	for (size_t at = 0; at < size; at += (size_t)r) {
		r = pread(rfd, back + at, size - at, (off_t)at);
		if (r <= 0)
			break;
	}
	got = crc32c(back, size);
	printf("# CRC32C of the second file 0x%08x\n", got);
	snprintf(what, sizeof(what), "%s: the second file has it too", name);
	check(got == want, what);
	tell_path(fh, "read");
	tell_path(out, "write");
	for (i = 0; i < 5; i++)
		for (j = 0; j < 5; j++) {
			cuMemsetD8_v2(g, 0, 4 << 20);
			cuCtxSynchronize();
			r = cfRead(fh, (void *)(uintptr_t)g, len[j],
				   (off_t)off[i], (off_t)off[j]);
			if (r != (ssize_t)len[j] ||
			    !same(g, off[j], len[j], data + off[i]))
				bad++;
			/* and back, one place on */
			r = cfWrite(out, (void *)(uintptr_t)g, len[j],
				    (off_t)(size + off[i]), (off_t)off[j]);
			if (r != (ssize_t)len[j] ||
			    pread(rfd, back, len[j], (off_t)(size + off[i])) !=
				    (ssize_t)len[j] ||
			    memcmp(back, data + off[i], len[j]))
				bad++;
		}
	snprintf(what, sizeof(what), "%s: unaligned transfers", name);
	check(!bad, what);
	if (fstat(ofd, &st))
		abort();
	snprintf(what, sizeof(what), "%s: the file ends where it must", name);
	check((size_t)st.st_size == size + 70001 + 1000003, what);
	r = cfRead(fh, (void *)(uintptr_t)g, 65536, (off_t)(size - 100), 0);
	snprintf(what, sizeof(what), "%s: short at the end of the file", name);
	check(r == 100, what);
	cfHandleDeregister(fh);
	cfHandleDeregister(out);
	close(fd);
	close(ofd);
	close(rfd);
}

/*
 * Readers of a file that nobody can write: its first pass over the page cache, and
 * further ones.  Each caller has a part of the file and of GPU memory.
 */
struct reader {
	pthread_t thread;
	CUfileHandle_t fh;
	void *ctx;
	devptr g;
	size_t from, to, len;
	unsigned int passes;
	ssize_t r;
};

static void *read_part(void *arg)
{
	struct reader *r = arg;
	unsigned int pass;
	size_t at;

	cuCtxSetCurrent(r->ctx);
	for (pass = 0; pass < r->passes; pass++)
		for (at = r->from; at + r->len <= r->to; at += r->len) {
			r->r = cfRead(r->fh, (void *)(uintptr_t)r->g, r->len,
				      (off_t)at, (off_t)at);
			if (r->r != (ssize_t)r->len)
				return NULL;
		}
	return NULL;
}

/* True: all was read. */
static bool read_passes(CUfileHandle_t fh, void *ctx, devptr g, size_t len,
			unsigned int callers, unsigned int passes)
{
	struct reader r[16];
	unsigned int i;
	bool good = true;

	for (i = 0; i < callers; i++) {
		r[i] = (struct reader){
			.fh = fh, .ctx = ctx, .g = g, .len = len,
			.from = size / callers / len * len * i,
			.to = size / callers / len * len * (i + 1),
			.passes = passes,
		};
		if (pthread_create(&r[i].thread, NULL, read_part, &r[i]))
			abort();
	}
	for (i = 0; i < callers; i++) {
		pthread_join(r[i].thread, NULL);
		good = good && r[i].r == (ssize_t)len;
	}
	return good;
}

static void test_readers(devptr g, void *ctx)
{
	static const size_t len[] = { 4 << 10, 64 << 10, 1 << 20, 16 << 20 };
	unsigned int i, callers, bad = 0;
	CUfileHandle_t fh;
	int fd, err;

	for (callers = 1; callers <= 16; callers += 15)
		for (i = 0; i < 4; i++) {
			fd = open(in_path, O_RDONLY);
			fh = reg(fd, &err);
			if (fd < 0 || err || size / callers < len[i]) {
				close(fd);
				continue;
			}
			bad += !read_passes(fh, ctx, g, len[i], callers, 1);
			bad += !read_passes(fh, ctx, g, len[i], callers, 4);
			tell_path(fh, "read-only");
			cfHandleDeregister(fh);
			close(fd);
		}
	check(!bad, "readers of a file that nobody can write");
	memset(back, 0, size);
	cuMemcpyDtoH_v2(back, g, size);
	check(crc32c(back, size) == crc32c(data, size),
	      "GPU memory has the file's CRC32C after them");
}

/* How the library answers: a table to compare two libraries by. */
static void answers(devptr g)
{
	CUfileDescr_t d = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileHandle_t fh = NULL, no = NULL;
	int fd, err, pipes[2], rfd;
	char host[4096];

#define SAY_E(what, call) do { \
	CUfileError_t e_ = call; \
	printf("answer %-42s %d\n", what, (int)e_.err); \
} while (0)
#define SAY_R(what, call) do { \
	ssize_t r_; \
	errno = 0; \
	r_ = call; \
	printf("answer %-42s %zd errno %d\n", what, r_, errno); \
} while (0)
	void *gp = (void *)(uintptr_t)g;

	fd = open(in_path, O_RDWR | O_DIRECT);
	if (fd < 0)
		fd = open(in_path, O_RDWR);
	fh = reg(fd, &err);
	printf("answer %-42s %d\n", "register a file", err);
	if (err)
		return;
	d.handle.fd = fd;
	SAY_E("register the same fd again", cfHandleRegister(&no, &d));
	d.handle.fd = -1;
	SAY_E("register fd -1", cfHandleRegister(&no, &d));
	if (!pipe(pipes)) {
		d.handle.fd = pipes[0];
		SAY_E("register a pipe", cfHandleRegister(&no, &d));
	}
	rfd = open(dir, O_RDONLY | O_DIRECTORY);
	d.handle.fd = rfd;
	SAY_E("register a directory", cfHandleRegister(&no, &d));
	close(rfd);
	rfd = open(in_path, O_RDWR | O_APPEND);
	d.handle.fd = rfd;
	SAY_E("register an O_APPEND file", cfHandleRegister(&no, &d));
	close(rfd);
	SAY_E("buffer NULL", cfBufRegister(NULL, 4096, 0));
	SAY_E("buffer length 0", cfBufRegister(gp, 0, 0));
	SAY_E("buffer too long", cfBufRegister(gp, size * 64, 0));
	SAY_E("buffer", cfBufRegister(gp, 1 << 20, 0));
	SAY_E("buffer twice", cfBufRegister(gp, 1 << 20, 0));
	SAY_E("buffer of host memory", cfBufRegister(host, sizeof(host), 0));
	SAY_E("deregister it", cfBufDeregister(host));
	SAY_E("deregister an unknown buffer", cfBufDeregister(host));
	SAY_R("read size 0", cfRead(fh, gp, 0, 0, 0));
	SAY_R("read 4096", cfRead(fh, gp, 4096, 0, 0));
	SAY_R("read NULL buffer", cfRead(fh, NULL, 4096, 0, 0));
	SAY_R("read negative file offset", cfRead(fh, gp, 4096, -4096, 0));
	SAY_R("read negative buffer offset", cfRead(fh, gp, 4096, 0, -4096));
	SAY_R("read past the registration",
	      cfRead(fh, gp, 2 << 20, 0, 0));
	SAY_R("read at the end", cfRead(fh, gp, 4096, (off_t)size, 0));
	SAY_R("read across the end", cfRead(fh, gp, 8192, (off_t)size - 4096,
					    0));
	SAY_R("read into host memory", cfRead(fh, host, 4096, 0, 0));
	SAY_R("read into nothing", cfRead(fh, (void *)16, 4096, 0, 0));
	rfd = open(in_path, O_RDONLY | O_DIRECT);
	if (rfd < 0)
		rfd = open(in_path, O_RDONLY);
	no = reg(rfd, &err);
	if (!err) {
		SAY_R("write to a read-only file",
		      cfWrite(no, gp, 4096, 0, 0));
		cfHandleDeregister(no);
		SAY_R("read by a deregistered handle",
		      cfRead(no, gp, 4096, 0, 0));
	}
	SAY_E("deregister the buffer", cfBufDeregister(gp));
	cfHandleDeregister(fh);
	close(rfd);
	close(fd);
}

int main(int argc, char **argv)
{
	const char *missing;
	void *ctx;
	bool want_answers = false;
	int i, dev, version = 0, fd;
	char gpu[128] = "";
	CUfileError_t e;
	uint64_t s = 1;
	devptr g;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--answers"))
			want_answers = true;
		else if (!strcmp(argv[i], "--lib") && i + 1 < argc)
			lib = argv[++i];
		else if (!strcmp(argv[i], "--dir") && i + 1 < argc)
			dir = argv[++i];
		else if (!strcmp(argv[i], "--size") && i + 1 < argc)
			size = (size_t)atof(argv[++i]) << 20;
		else {
			fprintf(stderr, "usage: cufile-gpu [--lib FILE] [--dir "
				"DIR] [--size MIB] [--answers]\n");
			return 2;
		}
	}
	if (size < 64u << 20)
		size = 64u << 20;
	missing = load_cuda();
	if (missing)
		return skip(missing);
	missing = load_cufile(lib);
	if (missing) {
		printf("# %s\n", missing);
		check(false, "the library loads");
		return 1;
	}
	cuDriverGetVersion(&version);
	if (cuDeviceGet(&dev, 0) || cuDeviceGetName(gpu, sizeof(gpu), dev) ||
	    cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx) ||
	    cuMemAlloc_v2(&g, size + (4 << 20)))
		return skip("the GPU gives no context and no memory");
	printf("# GPU %s, CUDA %d.%d, %s library, %d CPUs\n", gpu,
	       version / 1000, version % 1000 / 10,
	       stats_fn ? "Peerlane's" : "another", (int)sysconf(_SC_NPROCESSORS_ONLN));
	crc_setup();
	check(crc32c((const unsigned char *)"123456789", 9) == 0xe3069283,
	      "CRC32C of the test itself");
	data = malloc(size + (1 << 20));
	back = malloc(size + (1 << 20));
	if (!data || !back)
		return skip("not enough host memory");
	for (size_t k = 0; k < size / 8; k++) {
		s = s * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(data + k * 8, &s, 8);
	}
	snprintf(in_path, sizeof(in_path), "%s/peerlane-gpu-in.%d", dir,
		 (int)getpid());
	snprintf(out_path, sizeof(out_path), "%s/peerlane-gpu-out.%d", dir,
		 (int)getpid());
	fd = open(in_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || fsync(fd)) {
		printf("# %s: %s\n", in_path, strerror(errno));
		unlink(in_path);
		return skip("no room for the test file");
	}
	close(fd);
	e = cfDriverOpen();
	if (!check(!e.err, "the library opens"))
		printf("# %d\n", e.err);
	if (want_answers)
		answers(g);
	check(!cfBufRegister((void *)(uintptr_t)g, size, 0).err,
	      "the GPU buffer is registered");
	test_data(g, 0, "page cache");
	test_data(g, O_DIRECT, "O_DIRECT");
	test_readers(g, ctx);
	cfBufDeregister((void *)(uintptr_t)g);
	check(!cfDriverClose_v2().err, "the library closes");
	cuMemFree_v2(g);
	unlink(in_path);
	unlink(out_path);
	printf("1..%u\n", checks);
	return failed ? 1 : 0;
}
