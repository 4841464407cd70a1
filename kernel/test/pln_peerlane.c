// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: files and GPU memory, by the module peerlane.
 *
 *	pln_peerlane TARGET DISK NAME PORT
 *	pln_peerlane merges DISK NAME
 *	pln_peerlane realtime DISK NAME
 *	pln_peerlane pages DISK NAME PORT
 *
 * TARGET is a file that is overwritten, or the block device DISK itself; NAME, what
 * the host side calls the drive, so that it can be made slow; PORT, the switch's port
 * above it, which counts what the drive writes to and reads from host memory.
 *
 * merges: with a drive that takes one command at a time.
 * realtime: DISK is made an xfs whose data is in two places.
 * pages: with a driver of the GPU that makes no struct pages of BAR1, and
 *	the module peerlane_fail_test.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include <linux/blkpg.h>
#include <linux/fs.h>
#include <linux/io_uring.h>

#include <linux/peerlane.h>

#include "pln_late.h"

#define LEN	(8 * MIB)

static const char *target, *disk, *drive, *port;
static bool raw;

static int pln_open(void)
{
	int fd = open("/dev/peerlane", O_RDWR | O_CLOEXEC);

	need(fd >= 0, "open /dev/peerlane");
	return fd;
}

static int target_open(int flags)
{
	int fd = open(target, flags | O_CLOEXEC, 0600);

	need(fd >= 0, "open %s", target);
	return fd;
}

static int reg(int pf, const void *p, size_t len, struct pln_register *r)
{
	*r = (struct pln_register){ .address = (uintptr_t)p, .size = len };
	return ioctl(pf, PLN_IOC_REGISTER, r);
}

static uint32_t must_reg(int pf, const void *p, size_t len)
{
	struct pln_register r;

	need(!reg(pf, p, len, &r) && r.handle && !r.reason, "register");
	return r.handle;
}

static int unreg(int pf, uint32_t handle)
{
	struct pln_unregister u = { .handle = handle };

	return ioctl(pf, PLN_IOC_UNREGISTER, &u);
}

static uint32_t io_reason;

/* Bytes, or -1 with errno and io_reason */
static ssize_t io(int pf, uint32_t op, int fd, uint64_t file_offset,
		  uint32_t handle, uint64_t offset, uint64_t size)
{
	struct pln_io a = {
		.op = op, .fd = fd, .file_offset = file_offset,
		.handle = handle, .offset = offset, .size = size,
	};
	int ret = ioctl(pf, PLN_IOC_IO, &a);

	io_reason = a.reason;
	return ret ? -1 : (ssize_t)a.done;
}

static void check_io(ssize_t ret, int want, uint32_t reason, const char *what)
{
	int err = errno;

	if (ret == -1 && err == want && io_reason == reason)
		check(true, "%s: %s, reason %u", what, strerror(want), reason);
	else
		check(false, "%s: want %s, reason %u; got %zd (%s), reason %u",
		      what, strerror(want), reason, ret,
		      ret == -1 ? strerror(err) : "success", io_reason);
}

/* A line of the module's state */
static long long state(const char *name)
{
	FILE *f = fopen("/sys/kernel/debug/peerlane/state", "r");
	char word[32];
	long long n;

	need(f, "the module's state");
	while (fscanf(f, "%31s %lld", word, &n) == 2) {
		if (strcmp(word, name))
			continue;
		fclose(f);
		return n;
	}
	need(false, "no %s in the module's state", name);
	return -1;
}

/* Some IO is under way */
static void await_ios(void)
{
	double end = now() + 60;

	while (!state("ios"))
		need(now() < end, "IO that is under way");
}

static bool state_becomes(const char *name, long long want)
{
	int i;

	for (i = 0; i < 3000; i++) {
		if (state(name) == want)
			return true;
		usleep(10000);
	}
	printf("# %s is %lld\n", name, state(name));
	return false;
}

/* A number that a command prints after "name" */
static unsigned long long number_of(const char *cmd, const char *name)
{
	unsigned long long n = 0;
	char text[4096], *p;
	FILE *f;
	size_t got;

	fflush(stdout);
	f = popen(cmd, "r");
	need(f, "%s", cmd);
	got = fread(text, 1, sizeof(text) - 1, f);
	text[got] = 0;
	p = strstr(text, name);
	need(!pclose(f) && p && sscanf(p + strlen(name), "%*[^0-9]%llu", &n) == 1,
	     "%s of %s: %s", name, cmd, text);
	return n;
}

struct counts {
	unsigned long long bar1_write, bar1_read, host_write, host_read;
};

static struct counts counts(void)
{
	char cmd[128];
	struct counts c;

	c.bar1_write = number_of("cat /sys/kernel/debug/peerlane_gpu/*/counters",
				 "bar1-dma-write");
	c.bar1_read = number_of("cat /sys/kernel/debug/peerlane_gpu/*/counters",
				"bar1-dma-read");
	snprintf(cmd, sizeof(cmd), "host counters %s", port);
	c.host_write = number_of(cmd, "\"host-write\"");
	c.host_read = number_of(cmd, "\"host-read\"");
	return c;
}

static void test_data(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, LEN), b = gpu_alloc(fd, LEN);
	char *pa = dev_map(fd, &a), *pb = dev_map(fd, &b);
	/* The program's descriptor is not O_DIRECT */
	int d = target_open(O_RDWR | O_CREAT), direct;
	uint32_t ha = must_reg(pf, pa, LEN), hb = must_reg(pf, pb, LEN);
	struct counts c0, c1;
	struct pln_gpu_op op;
	uint64_t result;
	char *in;

	in = aligned_alloc(4096, LEN);
	need(in, "memory");
	pattern(in, LEN, 7);
	direct = target_open(O_RDWR | O_DIRECT);
	/* No byte from here to there is in the page cache */
	memset(in, 0x11, LEN);
	need(pwrite(direct, in, LEN, 16 * MIB) == LEN, "write");
	pattern(in, LEN, 7);
	need(pwrite(direct, in, LEN, 0) == LEN && !fsync(direct), "write");

	c0 = counts();
	check(io(pf, PLN_IO_READ, d, 0, ha, 0, LEN) == LEN,
	      "read into GPU memory");
	c1 = counts();
	check(c1.bar1_write - c0.bar1_write == LEN,
	      "by the drive, all of it: %llu bytes",
	      c1.bar1_write - c0.bar1_write);
	check(c1.host_write - c0.host_write < LEN / 64,
	      "which wrote its completions to host memory: %llu bytes",
	      c1.host_write - c0.host_write);
	op = op_crc(a.handle, 0, LEN);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, LEN),
	      "what arrived is right");

	op = op_two(PLN_GPU_OP_COPY, b.handle, 4096, a.handle, 0, LEN - 4096, 0);
	need(!gpu_run(fd, &op, 1, NULL), "copy");
	c0 = counts();
	check(io(pf, PLN_IO_WRITE, d, 16 * MIB, hb, 4096, LEN - 4096) ==
	      LEN - 4096, "write from GPU memory");
	c1 = counts();
	check(c1.bar1_read - c0.bar1_read == LEN - 4096,
	      "by the drive, all of it: %llu bytes",
	      c1.bar1_read - c0.bar1_read);
	check(c1.host_read - c0.host_read < LEN / 64,
	      "which read its commands from host memory: %llu bytes",
	      c1.host_read - c0.host_read);
	memset(in, 0, LEN);
	check(pread(direct, in, LEN, 16 * MIB) == LEN, "read back");
	op = op_crc(a.handle, 0, LEN - 4096);
	check(!gpu_run(fd, &op, 1, &result) &&
	      result == crc32c(0, in, LEN - 4096), "what was written is right");
	check(in[LEN - 4096] == 0x11 && in[LEN - 1] == 0x11,
	      "and nothing behind it was");

	/* A piece in the middle, over the borders of the segments */
	op = op_fill(b.handle, 0, LEN, 1, 0x5a);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	pattern(in, LEN, 7);
	check(io(pf, PLN_IO_READ, d, 512 * 3, hb, 65536 - 512, 65536 * 2 + 1024) ==
	      65536 * 2 + 1024, "read a piece");
	op = op_crc(b.handle, 65536 - 512, 65536 * 2 + 1024);
	check(!gpu_run(fd, &op, 1, &result) &&
	      result == crc32c(0, in + 512 * 3, 65536 * 2 + 1024),
	      "it is right");
	memset(in, 0x5a, 65536);
	op = op_crc(b.handle, 0, 65536 - 512);
	check(!gpu_run(fd, &op, 1, &result) &&
	      result == crc32c(0, in, 65536 - 512), "and nothing before it");
	op = op_crc(b.handle, 65536 * 3 + 512, 65536 - 512);
	check(!gpu_run(fd, &op, 1, &result) &&
	      result == crc32c(0, in, 65536 - 512), "or behind it was written");

	check(!unreg(pf, ha) && !unreg(pf, hb), "unregister");
	check_errno(unreg(pf, ha), ENOENT, "unregister again");
	munmap(pa, LEN);
	munmap(pb, LEN);
	gpu_free(fd, a.handle);
	gpu_free(fd, b.handle);
	free(in);
	close(d);
	close(direct);
}

/* What the page cache holds and nobody has written to the drive yet */
static void test_cache(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	char *in = malloc(MIB), *cached;
	int d = target_open(O_RDWR);
	struct pln_gpu_op op;
	uint64_t result;

	need(in, "memory");
	pattern(in, MIB, 9);
	need(pwrite(d, in, MIB, 0) == MIB, "write to the page cache");
	check(io(pf, PLN_IO_READ, d, 0, h, 0, MIB) == MIB,
	      "read what is dirty in the page cache");
	op = op_crc(a.handle, 0, MIB);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, MIB),
	      "it is right");

	cached = mmap(NULL, MIB, PROT_READ, MAP_SHARED, d, 0);
	need(cached != MAP_FAILED && cached[0] == in[0], "map the file");
	op = op_fill(a.handle, 0, MIB, 1, 0x77);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	check(io(pf, PLN_IO_WRITE, d, 0, h, 0, MIB) == MIB,
	      "write what is in the page cache");
	check(cached[0] == 0x77 && cached[MIB - 1] == 0x77,
	      "mappings of the file see it");
	munmap(cached, MIB);
	unreg(pf, h);
	gpu_free(fd, a.handle);
	free(in);
	close(d);
}

static void test_align(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	int d = target_open(O_RDWR);
	struct pln_check c = { .fd = d };

	need(!ioctl(pf, PLN_IOC_CHECK, &c), "check the file");
	check(!c.reason && c.offset_align && c.memory_align,
	      "check: file offset %u, memory %u", c.offset_align,
	      c.memory_align);
	check_io(io(pf, PLN_IO_READ, d, c.offset_align / 2, h, 0, 4096), EINVAL,
		 PLN_REASON_ALIGNMENT, "file offset not aligned");
	check_io(io(pf, PLN_IO_READ, d, 0, h, 0, 4096 + c.offset_align / 2),
		 EINVAL, PLN_REASON_ALIGNMENT, "size not aligned");
	check_io(io(pf, PLN_IO_READ, d, 0, h, c.memory_align / 2, 4096), EINVAL,
		 PLN_REASON_ALIGNMENT, "memory not aligned");
	check(io(pf, PLN_IO_READ, d, c.offset_align, h, c.memory_align, 4096) ==
	      4096, "each aligned as it must be");
	check(io(pf, PLN_IO_READ, d, 0, h, 0, 0) == 0, "0 bytes are read");
	unreg(pf, h);
	gpu_free(fd, a.handle);
	close(d);
}

static void test_args(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a), *host = aligned_alloc(65536, 65536);
	uint32_t h = must_reg(pf, p, MIB), again;
	int d = target_open(O_RDONLY);
	struct pln_query q = { 0 };
	struct pln_register r;
	struct pln_io bad = { .fd = d, .handle = h, .size = 4096, .flags = 1 };
	struct pln_check c = { .fd = 1000 };

	check(!ioctl(pf, PLN_IOC_QUERY, &q) &&
	      q.abi_version == PLN_ABI_VERSION && q.page_size == UNIT &&
	      q.pinned == MIB && q.max_pinned == UINT64_MAX, "query");
	q = (struct pln_query){ .flags = 1 };
	check_errno(ioctl(pf, PLN_IOC_QUERY, &q), EINVAL, "query: flags");
	check_errno(ioctl(pf, _IOWR(PLN_IOC_MAGIC, 0x4f, struct pln_io), &bad),
		    ENOTTY, "no such call");
	check_errno(ioctl(pf, PLN_IOC_IO, (void *)8), EFAULT, "bad pointer");
	check_errno(ioctl(pf, PLN_IOC_IO, &bad), EINVAL, "io: flags");
	bad.flags = 0;
	bad.op = 2;
	check_errno(ioctl(pf, PLN_IOC_IO, &bad), EINVAL, "io: operation");
	bad.op = PLN_IO_READ;
	bad.reserved[1] = 1;
	check_errno(ioctl(pf, PLN_IOC_IO, &bad), EINVAL, "io: reserved");
	check_io(io(pf, PLN_IO_READ, d, 0, h + 1, 0, 4096), ENOENT, 0,
		 "io: no such handle");
	check_io(io(pf, PLN_IO_READ, d, 0, h, 0, MIB + 4096), ERANGE, 0,
		 "io: longer than the memory");
	check_io(io(pf, PLN_IO_READ, d, 0, h, MIB - 4096, 8192), ERANGE, 0,
		 "io: beyond the end of the memory");
	check_io(io(pf, PLN_IO_READ, d, 0, h, -4096ull, 8192), ERANGE, 0,
		 "io: offset and size wrap");
	check_io(io(pf, PLN_IO_READ, d, -8192ull, h, 0, 4096), EINVAL,
		 PLN_REASON_REFUSED, "io: negative file offset");
	check_io(io(pf, PLN_IO_READ, 1000, 0, h, 0, 4096), EBADF, 0,
		 "io: no such file");
	check_errno(ioctl(pf, PLN_IOC_CHECK, &c), EBADF, "check: no such file");

	check_errno(reg(pf, p + 4096, 65536, &r), EINVAL,
		    "register: address not aligned");
	check_errno(reg(pf, p, 4096, &r), EINVAL, "register: size not aligned");
	check_errno(reg(pf, p, 0, &r), EINVAL, "register: nothing");
	check_errno(reg(pf, p, 2 * MIB, &r), EINVAL,
		    "register: more than the allocation");
	check_errno(reg(pf, (void *)-65536ul, 131072, &r), EINVAL,
		    "register: wraps");
	memset(host, 0, 65536);
	check_errno(reg(pf, host, 65536, &r), EINVAL, "register: host memory");
	r = (struct pln_register){ .address = (uintptr_t)p, .size = MIB };
	memcpy(host, &r, sizeof(r));
	need(!mprotect(host, 65536, PROT_READ), "mprotect");
	check_errno(ioctl(pf, PLN_IOC_REGISTER, host), EFAULT,
		    "register: the handle cannot be told");
	check(state("pinned") == MIB && state("memories") == 1,
	      "then nothing is registered");
	need(!mprotect(host, 65536, PROT_READ | PROT_WRITE), "mprotect");
	again = must_reg(pf, p + 65536, 65536);
	check(again != h && !unreg(pf, again), "register: a part, once more");
	unreg(pf, h);
	gpu_free(fd, a.handle);
	free(host);
	close(d);
}

/* Files that cannot be had this way say why */
static void test_refused(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	static const struct {
		const char *path, *what;
		uint32_t reason;
	} files[] = {
		{ "/tmp/file", "a file on tmpfs", PLN_REASON_FILE_SYSTEM },
		{ "/dev/null", "a character device", PLN_REASON_FILE_TYPE },
		{ "/tmp", "a directory", PLN_REASON_FILE_TYPE },
		{ "/dev/peerlane", "the module itself", PLN_REASON_FILE_TYPE },
		{ "/proc/self/status", "a file of proc", PLN_REASON_FILE_SYSTEM },
	};
	struct pln_check c;
	int pipefd[2], d;
	unsigned int i;
	bool ok;

	close(open("/tmp/file", O_CREAT | O_RDWR, 0600));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		d = open(files[i].path, O_RDONLY);
		need(d >= 0, "open %s", files[i].path);
		c = (struct pln_check){ .fd = d };
		ok = ioctl(pf, PLN_IOC_CHECK, &c) && errno == EOPNOTSUPP &&
		     c.reason == files[i].reason;
		check(ok, "check: %s: reason %u", files[i].what, c.reason);
		check_io(io(pf, PLN_IO_READ, d, 0, h, 0, 4096), EOPNOTSUPP,
			 files[i].reason, files[i].what);
		close(d);
	}
	need(!pipe(pipefd), "pipe");
	check_io(io(pf, PLN_IO_READ, pipefd[0], 0, h, 0, 4096), EOPNOTSUPP,
		 PLN_REASON_FILE_TYPE, "a pipe");
	close(pipefd[0]);
	close(pipefd[1]);
	unreg(pf, h);
	gpu_free(fd, a.handle);
}

/* The end of a file, and holes */
static void test_end_of_file(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	char path[256], *in = malloc(MIB);
	struct pln_gpu_op op;
	uint64_t result;
	struct stat st;
	int d;

	snprintf(path, sizeof(path), "%s.end", target);
	d = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(d >= 0 && in, "open %s", path);
	pattern(in, MIB, 3);
	need(pwrite(d, in, 100000, 0) == 100000 && !fsync(d), "write");
	check(io(pf, PLN_IO_READ, d, 0, h, 0, MIB) == 100000,
	      "read to the end of the file");
	op = op_crc(a.handle, 0, 100000);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, 100000),
	      "it is right");
	check(io(pf, PLN_IO_READ, d, 131072, h, 0, MIB) == 0,
	      "nothing behind it");

	need(!ftruncate(d, 0) && !ftruncate(d, MIB), "make a hole");
	op = op_fill(a.handle, 0, MIB, 1, 0x5a);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	check(io(pf, PLN_IO_READ, d, 0, h, 0, MIB) == MIB, "read a hole");
	memset(in, 0, MIB);
	op = op_crc(a.handle, 0, MIB);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, MIB),
	      "it is zeros");

	op = op_fill(a.handle, 0, MIB, 1, 0x33);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	check(io(pf, PLN_IO_WRITE, d, MIB, h, 0, MIB) == MIB &&
	      !fstat(d, &st) && st.st_size == 2 * MIB, "a write makes the file longer");
	check(pread(d, in, MIB, MIB) == MIB && in[0] == 0x33 &&
	      in[MIB - 1] == 0x33, "what was written is right");
	unreg(pf, h);
	gpu_free(fd, a.handle);
	free(in);
	close(d);
	unlink(path);
}

static int set_limit(const char *text)
{
	int f = open("/sys/module/peerlane/parameters/max_pinned_mib", O_WRONLY);
	int ret = f >= 0 && write(f, text, strlen(text)) > 0 ? 0 : -1;

	close(f);
	return ret;
}

/* As nobody: exit status is the number of the first thing that is wrong */
static int nobody(int pf, uint32_t handle, char *p)
{
	struct pln_gpu_alloc a;
	struct pln_register r;
	int own, gpu, d;

	if (setgid(65534) || setuid(65534))
		return 1;
	d = open(target, O_RDONLY);
	if (d >= 0)
		return 2;
	own = open("/dev/peerlane", O_RDWR | O_CLOEXEC);
	if (own < 0)
		return 3;
	/* Another open file's handle */
	if (io(own, PLN_IO_READ, 0, 0, handle, 0, 4096) != -1 || errno != ENOENT)
		return 4;
	/* A handle that was handed on, by a process that must not unregister it */
	if (unreg(pf, handle) != -1 || errno != EPERM)
		return 5;
	/* Memory of another process */
	if (munmap(p, MIB) || !reg(own, p, MIB, &r) || errno != EINVAL)
		return 6;
	/* Its own memory, over the limit and below */
	gpu = gpu_open();
	a = gpu_alloc(gpu, 2 * MIB);
	p = dev_map(gpu, &a);
	if (!reg(own, p, 2 * MIB, &r) || errno != EDQUOT ||
	    r.reason != PLN_REASON_LIMIT)
		return 7;
	if (reg(own, p, MIB, &r))
		return 8;
	if (!reg(own, p + MIB, UNIT, &r) || errno != EDQUOT)
		return 9;
	return 0;
}

static void test_rights(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	uint32_t h = must_reg(pf, p, MIB);
	struct rlimit lim, old;
	int d, status;
	pid_t pid;

	d = open(target, O_PATH);
	need(d >= 0, "open with O_PATH");
	check_io(io(pf, PLN_IO_READ, d, 0, h, 0, 4096), EBADF, 0,
		 "a descriptor with O_PATH");
	close(d);
	d = target_open(O_RDONLY);
	check_io(io(pf, PLN_IO_WRITE, d, 0, h, 0, 4096), EBADF, 0,
		 "write to a file open for reading");
	close(d);
	d = target_open(O_WRONLY);
	check_io(io(pf, PLN_IO_READ, d, 0, h, 0, 4096), EBADF, 0,
		 "read from a file open for writing");
	close(d);
	d = target_open(O_WRONLY | O_APPEND);
	check_io(io(pf, PLN_IO_WRITE, d, 0, h, 0, 4096), EINVAL,
		 PLN_REASON_APPEND, "write to a file open with O_APPEND");
	close(d);
	if (!raw) {
		d = target_open(O_RDWR);
		need(!getrlimit(RLIMIT_FSIZE, &old), "limit");
		signal(SIGXFSZ, SIG_IGN);
		lim = (struct rlimit){ MIB, old.rlim_max };
		need(!setrlimit(RLIMIT_FSIZE, &lim), "limit");
		check_io(io(pf, PLN_IO_WRITE, d, MIB, h, 0, 4096), EFBIG, 0,
			 "write beyond RLIMIT_FSIZE");
		need(!setrlimit(RLIMIT_FSIZE, &old), "limit");
		close(d);
	}

	need(!set_limit("1"), "set the limit");
	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(nobody(pf, h, p));
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(WIFEXITED(status) && !WEXITSTATUS(status),
	      "an ordinary user gets at nothing that is not his (%d)",
	      WEXITSTATUS(status));
	need(!set_limit("32768"), "set the limit");
	check(state("pinned") == MIB, "what he had registered is not any more");
	unreg(pf, h);
	gpu_free(fd, a.handle);
}

/* Reads into GPU memory until it cannot: 42 when that has been freed */
static int reader(int pf, uint32_t handle, size_t len)
{
	int d = target_open(O_RDONLY);

	while (io(pf, PLN_IO_READ, d, 0, handle, 0, len) == (ssize_t)len)
		;
	return errno == EIDRM && io_reason == PLN_REASON_FREED ? 42 : 1;
}

/* The memory is freed while another process does IO with it */
static void test_free_in_flight(int fd, int pf)
{
	struct pln_gpu_query q0 = gpu_query_idle(fd);
	int i, status, bad = 0;
	struct pln_register r;

	for (i = 0; i < 15; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, LEN);
		char *p = dev_map(fd, &a);
		uint32_t h = must_reg(pf, p, LEN);
		pid_t pid;

		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			_exit(reader(pf, h, LEN));
		await_ios();
		usleep(i * 1000);
		bad += gpu_free(fd, a.handle) != 0;
		bad += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		       WEXITSTATUS(status) != 42;
		bad += io(pf, PLN_IO_READ, 0, 0, h, 0, 4096) != -1 ||
		       errno != EIDRM || io_reason != PLN_REASON_FREED;
		bad += unreg(pf, h) != 0;
		bad += !reg(pf, p, LEN, &r);
		munmap(p, LEN);
	}
	check(!bad, "free in the middle of IO: it ends with EIDRM");
	check(state("pinned") == 0 && state("ios") == 0, "nothing stays pinned");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
}

/*
 * A slow drive reads into memory that is freed.  When that returns the GPU's driver may
 * give the memory to others at once, so the drive must have ended.
 */
static void test_slow_disk(int fd, int pf, bool killed)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	uint32_t h = must_reg(pf, p, MIB);
	int status, d = target_open(O_RDONLY);
	pid_t pid;

	need(!host_throttle(drive, MIB / 4), "slow the drive down");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(io(pf, PLN_IO_READ, d, 0, h, 0, MIB) != MIB);
	await_disk_reads(disk);
	if (killed)
		need(!kill(pid, SIGKILL), "kill");
	check(!gpu_free(fd, a.handle) && !disk_reads(disk),
	      "memory is freed when the slow drive has ended%s",
	      killed ? ", though the reader was killed" : "");
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(killed ? WIFSIGNALED(status) : WIFEXITED(status) &&
	      !WEXITSTATUS(status), "%s", killed ? "who is gone" :
	      "what was under way ended well");
	need(!host_throttle(drive, 0), "speed the drive up");
	check(!unreg(pf, h), "unregister");
	munmap(p, MIB);
	check(room_is(fd, &q0), "all memory and BAR1 are back");
	close(d);
}

/* A process of its own that reads into GPU memory again and again; it has begun */
static pid_t start_reader(void)
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (!pid) {
		int g = gpu_open(), pf = pln_open();
		struct pln_gpu_alloc a = gpu_alloc(g, LEN);

		_exit(reader(pf, must_reg(pf, dev_map(g, &a), LEN), LEN));
	}
	await_ios();
	return pid;
}

/* A process with memory, registration and IO of its own is killed */
static void test_kill(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	int i, status, bad = 0;
	pid_t pid;

	for (i = 0; i < 15; i++) {
		pid = start_reader();
		usleep(i * 1000);
		bad += kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid ||
		       !WIFSIGNALED(status);
	}
	check(!bad, "kill -9 in the middle of IO");
	check(state_becomes("pinned", 0) && state_becomes("ios", 0),
	      "nothing stays pinned");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
}

/*
 * The last one who closes the file is not the process that has registered the memory:
 * NVIDIA's driver will not unpin it for him.  It stays until it is freed.
 */
static void test_handed_on(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	int pf = pln_open(), pipefd[2];
	pid_t pid;
	char c;

	must_reg(pf, p, MIB);
	need(!pipe(pipefd), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		close(pipefd[1]);
		_exit(read(pipefd[0], &c, 1) != 0);
	}
	close(pipefd[0]);
	close(pf);
	check(state("orphans") == 0 && state("pinned") == MIB,
	      "another process has the file");
	close(pipefd[1]);
	need(waitpid(pid, NULL, 0) == pid, "wait");
	check(state_becomes("orphans", 1) && state("pinned") == MIB,
	      "which closes it: the memory stays pinned");
	check(shell("rmmod peerlane 2>/dev/null"), "and the module loaded");
	check(!gpu_free(fd, a.handle) && state("orphans") == 0 &&
	      state("pinned") == 0, "until it is freed");
	munmap(p, MIB);
}

struct freezer {
	int pf, d;
	uint32_t handle;
	ssize_t ret;
	int err;
};

static void *frozen_write(void *arg)
{
	struct freezer *f = arg;

	f->ret = io(f->pf, PLN_IO_WRITE, f->d, 0, f->handle, 0, MIB);
	f->err = errno;
	return NULL;
}

/* Writes wait for a file system that is frozen; the GPU may be reset meanwhile */
static void test_freeze(int fd, int pf, bool lost)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	struct freezer f = { .pf = pf, .handle = h };
	char *in = aligned_alloc(4096, MIB);
	struct pln_gpu_op op;
	pthread_t thread;
	bool waits = false;
	int i, direct;

	f.d = target_open(O_RDWR);
	direct = target_open(O_RDWR | O_DIRECT);
	memset(in, 0x22, MIB);
	need(pwrite(direct, in, MIB, 0) == MIB, "write");
	op = op_fill(a.handle, 0, MIB, 1, 0x44);
	need(!gpu_run(fd, &op, 1, NULL), "fill");

	need(!ioctl(f.d, FIFREEZE, 0), "freeze");
	need(!pthread_create(&thread, NULL, frozen_write, &f), "thread");
	/* Until it sleeps in the kernel for the thaw */
	for (i = 0; i < 500 && !waits; i++) {
		waits = !shell("cat /proc/%d/task/*/stack | grep -q percpu_rwsem_wait",
			       getpid());
		usleep(10000);
	}
	check(waits && pread(direct, in, MIB, 0) == MIB && in[0] == 0x22 &&
	      in[MIB - 1] == 0x22, "a write waits for a frozen file system");
	if (lost)
		check(!shell("echo 1 >/sys/bus/pci/devices/%04x:%02x:%02x.%x/reset",
			     q.pci_domain, q.pci_bus, q.pci_devfn >> 3,
			     q.pci_devfn & 7),
		      "a reset does not wait for the thaw");
	need(!ioctl(f.d, FITHAW, 0), "thaw");
	need(!pthread_join(thread, NULL), "join");
	errno = f.err;
	if (lost)
		check_io(f.ret, EIDRM, PLN_REASON_FREED,
			 "a write of memory that was lost before the drive could read it");
	else
		check(f.ret == MIB && pread(direct, in, MIB, 0) == MIB &&
		      in[0] == 0x44 && in[MIB - 1] == 0x44,
		      "and goes on when it thaws");
	unreg(pf, h);
	gpu_free(fd, a.handle);
	free(in);
	close(direct);
	close(f.d);
}

#define SLOTS	4

static struct race {
	int fd, pf;
	volatile bool end;
	struct pln_gpu_alloc mem[SLOTS];
	char *volatile ptr[SLOTS];
	volatile uint32_t handle[SLOTS];
	volatile unsigned int done, freed, gone, bad;
} race;

/* Each thread has its own */
static unsigned int next(unsigned int *x)
{
	return (*x = *x * 1664525 + 1013904223) >> 8;
}

static void *race_io(void *arg)
{
	unsigned int x = (uintptr_t)arg;
	int d = target_open(O_RDWR);
	struct pln_io a;
	uint32_t n;

	while (!race.end) {
		n = next(&x);
		a = (struct pln_io){
			.op = n & 64 ? PLN_IO_READ : PLN_IO_WRITE, .fd = d,
			.handle = race.handle[n % SLOTS],
			.file_offset = (n >> 8) % 64 * 4096ull,
			.offset = next(&x) % 128 * 4096ull,
			.size = (1 + next(&x) % 128) * 4096ull,
		};
		if (!ioctl(race.pf, PLN_IOC_IO, &a))
			__sync_fetch_and_add(&race.done, 1);
		else if (errno == EIDRM)
			__sync_fetch_and_add(&race.freed, 1);
		else if (errno == ENOENT)
			__sync_fetch_and_add(&race.gone, 1);
		else
			__sync_fetch_and_add(&race.bad, 1);
	}
	close(d);
	return NULL;
}

static void *race_register(void *arg)
{
	unsigned int x = (uintptr_t)arg;
	struct pln_register r;
	uint32_t n;

	while (!race.end) {
		n = next(&x) % SLOTS;
		if (race.handle[n] && unreg(race.pf, race.handle[n]) &&
		    errno != ENOENT)
			__sync_fetch_and_add(&race.bad, 1);
		race.handle[n] = 0;
		if (!reg(race.pf, race.ptr[n], MIB, &r))
			race.handle[n] = r.handle;
		else if (errno != EINVAL && errno != EIO)
			__sync_fetch_and_add(&race.bad, 1);
	}
	return NULL;
}

/* IO, registration and frees meet, in one process and one open file */
static void test_race(int fd)
{
	struct pln_gpu_query q0 = gpu_query(fd);
	const char *ms = getenv("PLN_RACE_MS");
	double end = now() + (ms ? atoi(ms) : 1500) / 1000.0;
	pthread_t threads[3];
	unsigned int i, x = 9;

	race.fd = fd;
	race.pf = pln_open();
	for (i = 0; i < SLOTS; i++) {
		race.mem[i] = gpu_alloc(fd, MIB);
		race.ptr[i] = dev_map(fd, &race.mem[i]);
	}
	for (i = 0; i < 3; i++)
		need(!pthread_create(&threads[i], NULL,
				     i < 2 ? race_io : race_register,
				     (void *)(uintptr_t)(i + 1)), "thread");
	while (now() < end || !race.done || !race.freed) {
		need(now() < end + 60, "IO, and memory that was freed");
		i = next(&x) % SLOTS;
		need(!gpu_free(fd, race.mem[i].handle), "free");
		race.mem[i] = gpu_alloc(fd, MIB);
		map_at(fd, race.ptr[i], race.mem[i].mmap_offset, MIB);
		usleep(next(&x) % 4000);
	}
	race.end = true;
	for (i = 0; i < 3; i++)
		need(!pthread_join(threads[i], NULL), "join");
	printf("# %u IOs, %u of freed memory, %u of none\n", race.done,
	       race.freed, race.gone);
	check(!race.bad, "IO, registration and frees meet: %u wrong answers",
	      race.bad);
	close(race.pf);
	for (i = 0; i < SLOTS; i++) {
		munmap(race.ptr[i], MIB);
		gpu_free(fd, race.mem[i].handle);
	}
	check(state("pinned") == 0 && state("memories") == 0,
	      "nothing stays pinned");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
}

static void *register_too_much(void *arg)
{
	struct pln_register r;

	(void)arg;
	while (!race.end) {
		/* With what is registered all the time it is 0 modulo 2^64 */
		if (reg(race.pf, NULL, -(size_t)UNIT, &r) != -1 ||
		    errno != EINVAL)
			race.bad++;
		race.done++;
	}
	return NULL;
}

/* Sums of what a user has registered must not wrap, whoever else registers meanwhile */
static void test_sum(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, 2 * UNIT);
	struct pln_query q = { 0 };
	unsigned int i, turns = often(300, 2000);
	char *p = dev_map(fd, &a);
	pthread_t t;

	race.pf = pln_open();
	race.end = false;
	race.done = race.bad = 0;
	must_reg(race.pf, p, UNIT);
	need(!pthread_create(&t, NULL, register_too_much, NULL), "thread");
	for (i = 0; i < turns || race.done < turns; i++)
		need(!unreg(race.pf, must_reg(race.pf, p + UNIT, UNIT)),
		     "unregister");
	race.end = true;
	need(!pthread_join(t, NULL), "join");
	check(!race.bad, "more than there can be is refused, beside others' calls: %u times",
	      race.done);
	need(!ioctl(race.pf, PLN_IOC_QUERY, &q), "query");
	check(q.pinned == UNIT && state("pinned") == UNIT,
	      "and what is registered is counted as before");
	close(race.pf);
	munmap(p, 2 * UNIT);
	gpu_free(fd, a.handle);
}

#define DEPTH	16

/* A ring of io_uring, with long completions */
struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	char *cqes;
};

static struct ring ring_open(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_CQE32 };
	struct ring r;
	size_t sq, cq;
	char *s, *c;

	r.fd = syscall(SYS_io_uring_setup, DEPTH, &p);
	need(r.fd >= 0, "io_uring_setup");
	sq = p.sq_off.array + p.sq_entries * sizeof(unsigned int);
	cq = p.cq_off.cqes + p.cq_entries * 32;
	s = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd,
		 IORING_OFF_SQ_RING);
	c = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd,
		 IORING_OFF_CQ_RING);
	r.sqes = mmap(NULL, p.sq_entries * sizeof(*r.sqes),
		      PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_SQES);
	need(s != MAP_FAILED && c != MAP_FAILED && r.sqes != MAP_FAILED, "ring");
	r.sq_tail = (unsigned int *)(s + p.sq_off.tail);
	r.sq_mask = (unsigned int *)(s + p.sq_off.ring_mask);
	r.sq_array = (unsigned int *)(s + p.sq_off.array);
	r.cq_head = (unsigned int *)(c + p.cq_off.head);
	r.cq_tail = (unsigned int *)(c + p.cq_off.tail);
	r.cq_mask = (unsigned int *)(c + p.cq_off.ring_mask);
	r.cqes = c + p.cq_off.cqes;
	return r;
}

/* @io is read meanwhile */
static void ring_put(struct ring *r, int pf, struct pln_io *io, unsigned int op)
{
	unsigned int tail = *r->sq_tail, i = tail & *r->sq_mask;
	struct pln_uring u = { .io = (uintptr_t)io };

	memset(&r->sqes[i], 0, sizeof(r->sqes[i]));
	r->sqes[i].opcode = IORING_OP_URING_CMD;
	r->sqes[i].fd = pf;
	/* Of headers that are older than the field's name: off */
	r->sqes[i].off = op;
	r->sqes[i].user_data = (uintptr_t)io;
	/* The command is the last 16 bytes */
	memcpy((char *)&r->sqes[i] + 48, &u, sizeof(u));
	r->sq_array[i] = i;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
	need(syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) == 1,
	     "io_uring_enter");
}

/* Waits for one; returns its result */
static int ring_get(struct ring *r)
{
	struct io_uring_cqe *cqe;
	int ret;

	while (__atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE) == *r->cq_head)
		need(!syscall(SYS_io_uring_enter, r->fd, 0, 1,
			      IORING_ENTER_GETEVENTS, NULL, 0) || errno == EINTR,
		     "io_uring_enter");
	cqe = (void *)(r->cqes + (*r->cq_head & *r->cq_mask) * 32);
	ret = cqe->res;
	io_reason = *(uint64_t *)((char *)cqe + 16);
	__atomic_store_n(r->cq_head, *r->cq_head + 1, __ATOMIC_RELEASE);
	return ret;
}

/* One IO at a time: do those who watch the file learn of each, before its end is told? */
static void test_uring_watched(struct ring *r, int pf, struct pln_io *io,
			       uint32_t op, uint32_t event)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event e;
	unsigned int i, seen = 0;

	need(watch >= 0 && inotify_add_watch(watch, target, event) >= 0,
	     "watch %s", target);
	io->op = op;
	for (i = 0; i < DEPTH; i++) {
		ring_put(r, pf, io, PLN_IOC_IO);
		need(ring_get(r) == (int)io->size, "IO");
		seen += read(watch, &e, sizeof(e)) == sizeof(e) &&
			e.mask == event;
	}
	check(seen == DEPTH, "io_uring: who watches the file learns of each of %d %ss (%u)",
	      DEPTH, op == PLN_IO_WRITE ? "write" : "read", seen);
	close(watch);
}

static void test_uring(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, LEN);
	char *p = dev_map(fd, &a), *in = aligned_alloc(4096, LEN);
	uint32_t h = must_reg(pf, p, LEN);
	struct pln_io ios[DEPTH];
	struct ring r = ring_open();
	struct pln_gpu_op op;
	unsigned int i, n, bad = 0, most = 0;
	int d = target_open(O_RDWR), status;
	uint64_t result;
	pid_t pid;

	need(in, "memory");
	pattern(in, LEN, 21);
	need(pwrite(d, in, LEN, 0) == LEN && !fsync(d), "write");
	n = LEN / DEPTH;
	for (i = 0; i < DEPTH; i++)
		ios[i] = (struct pln_io){
			.op = PLN_IO_READ, .fd = d, .handle = h,
			.file_offset = i * n, .offset = i * n, .size = n,
		};
	need(!host_throttle(drive, MIB / 2), "slow the drive down");
	for (i = 0; i < DEPTH; i++)
		ring_put(&r, pf, &ios[i], PLN_IOC_IO);
	for (i = 0; i < 5000 && most < 8; i++) {
		if (disk_reads(disk) > most)
			most = disk_reads(disk);
		usleep(1000);
	}
	need(!host_throttle(drive, 0), "speed the drive up");
	for (i = 0; i < DEPTH; i++)
		bad += ring_get(&r) != (int)n || io_reason;
	check(!bad, "io_uring: %u reads", DEPTH);
	check(most >= 8, "one thread has %u under way", most);
	op = op_crc(a.handle, 0, LEN);
	check(!gpu_run(fd, &op, 1, &result) && result == crc32c(0, in, LEN),
	      "what arrived is right");

	op = op_fill(a.handle, 0, LEN, 1, 0x66);
	need(!gpu_run(fd, &op, 1, NULL), "fill");
	for (i = 0; i < DEPTH; i++) {
		ios[i].op = PLN_IO_WRITE;
		ring_put(&r, pf, &ios[i], PLN_IOC_IO);
	}
	for (i = 0; i < DEPTH; i++)
		bad += ring_get(&r) != (int)n;
	memset(in, 0x66, LEN);
	result = crc32c(0, in, LEN);
	check(!bad && pread(d, in, LEN, 0) == LEN && crc32c(0, in, LEN) == result,
	      "io_uring: %u writes, the data is right", DEPTH);
	test_uring_watched(&r, pf, &ios[0], PLN_IO_READ, IN_ACCESS);
	test_uring_watched(&r, pf, &ios[0], PLN_IO_WRITE, IN_MODIFY);

	ring_put(&r, pf, &ios[0], PLN_IOC_QUERY);
	check(ring_get(&r) == -ENOTTY, "io_uring: no such command");
	ring_put(&r, pf, (void *)8, PLN_IOC_IO);
	check(ring_get(&r) == -EFAULT, "io_uring: bad pointer");
	ios[0].offset = 1;
	ring_put(&r, pf, &ios[0], PLN_IOC_IO);
	check(ring_get(&r) == -EINVAL && io_reason == PLN_REASON_ALIGNMENT,
	      "io_uring: not aligned, and it says so");
	ios[0].offset = 0;

	/* Freed while they are under way */
	need(!host_throttle(drive, 4 * MIB), "slow the drive down");
	for (i = 0; i < DEPTH; i++) {
		ios[i].op = PLN_IO_READ;
		ring_put(&r, pf, &ios[i], PLN_IOC_IO);
	}
	await_disk_reads(disk);
	check(!gpu_free(fd, a.handle) && !disk_reads(disk),
	      "io_uring: memory is freed when the slow drive has ended");
	for (i = 0; i < DEPTH; i++) {
		status = ring_get(&r);
		bad += status != (int)n &&
		       (status != -EIDRM || io_reason != PLN_REASON_FREED);
	}
	check(!bad, "each has ended, or was refused as freed");
	unreg(pf, h);
	munmap(p, LEN);
	close(r.fd);

	/* Killed while they are under way */
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		int g = gpu_open(), own = pln_open();
		struct pln_gpu_alloc mine = gpu_alloc(g, LEN);

		h = must_reg(own, dev_map(g, &mine), LEN);
		r = ring_open();
		for (i = 0; i < DEPTH; i++) {
			ios[i].handle = h;
			ring_put(&r, own, &ios[i], PLN_IOC_IO);
		}
		for (;;)
			pause();
	}
	await_disk_reads(disk);
	need(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid, "kill");
	check(state_becomes("pinned", 0) && state_becomes("ios", 0) &&
	      state_becomes("files", 1), "kill -9: nothing stays pinned");
	need(!host_throttle(drive, 0), "speed the drive up");
	free(in);
	close(d);
}

/* The GPU is reset, or its driver
 unbound, in the middle of IO */
static void test_gpu_goes(int fd, const char *what, const char *command)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, LEN);
	int pf = pln_open(), status;
	char *p = dev_map(fd, &a);
	uint32_t h = must_reg(pf, p, LEN);
	pid_t pid;

	fflush(stdout);
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid)
		_exit(reader(pf, h, LEN));
	await_ios();
	need(!shell("pci=%04x:%02x:%02x.%x; %s", q.pci_domain, q.pci_bus,
		    q.pci_devfn >> 3, q.pci_devfn & 7, command), "%s", what);
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 42, "%s in the middle of IO: EIDRM", what);
	check(!unreg(pf, h) && state("pinned") == 0, "nothing stays pinned");
	munmap(p, LEN);
	close(pf);
}

/* Writes from GPU memory that is lost meanwhile: 42 when the program hears of it */
static int writer(int pf, uint32_t handle, size_t len)
{
	int d = target_open(O_WRONLY);
	ssize_t ret = io(pf, PLN_IO_WRITE, d, 0, handle, 0, len);

	printf("# it wrote %zd: %s, reason %u\n", ret,
	       ret == -1 ? strerror(errno) : "success", io_reason);
	fflush(stdout);
	/* EIO: the GPU was not there yet when the drive read it anew */
	return ret == -1 && ((errno == EIDRM && io_reason == PLN_REASON_FREED) ||
			     errno == EIO) ? 42 : 1;
}

/*
 * The bus above drive and GPU is reset while a slow drive reads or writes.  Linux tells
 * the drive's driver first, and that keeps the request until the reset is over, so the
 * GPU's must not wait for it.
 */
static void test_bus_goes(int fd, bool write, const char *what,
			  const char *command)
{
	struct pln_gpu_query q = gpu_query(fd), q0;
	const size_t len = LEN / 2;
	struct pln_gpu_alloc a = gpu_alloc(fd, len);
	int pf = pln_open(), status = 0, d;
	char *p = dev_map(fd, &a), *host = malloc(MIB);
	uint32_t h = must_reg(pf, p, len);
	double end = now() + 60;
	pid_t rd, reset;

	need(!host_throttle(drive, 2 * MIB), "slow the drive down");
	fflush(stdout);
	rd = fork();
	need(rd >= 0, "fork");
	if (!rd)
		_exit(write ? writer(pf, h, len) : reader(pf, h, len));
	if (write)
		await_ios();
	else
		await_disk_reads(disk);
	reset = fork();
	need(reset >= 0, "fork");
	if (!reset)
		_exit(shell("port=$(readlink -f /sys/bus/pci/devices/%04x:%02x:%02x.%x/../..)\n"
			    "%s", q.pci_domain, q.pci_bus, q.pci_devfn >> 3,
			    q.pci_devfn & 7, command) != 0);
	while (!waitpid(reset, &status, WNOHANG) && now() < end)
		usleep(10000);
	need(now() < end && WIFEXITED(status) && !WEXITSTATUS(status),
	     "%s in the middle of slow IO: it ends", what);
	need(!host_throttle(drive, 0), "speed the drive up");
	check(waitpid(rd, &status, 0) == rd && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 42, "%s in the middle of a slow %s: an error",
	      what, write ? "write" : "read");
	check(!unreg(pf, h) && state("pinned") == 0, "nothing stays pinned");
	munmap(p, len);
	gpu_free(fd, a.handle);

	q0 = gpu_query(fd);
	a = gpu_alloc(fd, MIB);
	p = dev_map(fd, &a);
	h = must_reg(pf, p, MIB);
	d = target_open(O_RDONLY);
	need(host && pread(d, host, MIB, 0) == MIB, "read the drive");
	check(io(pf, PLN_IO_READ, d, 0, h, 0, MIB) == MIB && !memcmp(host, p, MIB),
	      "GPU and drive work again");
	check(!unreg(pf, h) && !gpu_free(fd, a.handle), "free");
	munmap(p, MIB);
	check(room_is(fd, &q0), "all memory and BAR1 are back");
	free(host);
	close(d);
	close(pf);
}

/* ---- what lies beside it on the drive ---- */

/*
 * Memory that another program has to bring, and does not: whatever call waits for
 * its argument, or to write its answer there, the GPU's driver can be unbound.
 */
static void test_late(void)
{
	static const unsigned long calls[] = {
		PLN_IOC_QUERY, PLN_IOC_REGISTER, PLN_IOC_UNREGISTER,
		PLN_IOC_CHECK, PLN_IOC_IO, PLN_IOC_REGISTER, PLN_IOC_IO,
	};
	enum { ARGUMENTS = 5, ANSWERS = 2, ALL = ARGUMENTS + ANSWERS };
	char *page = late_memory(ALL * 4096), *answers = page + ARGUMENTS * 4096;
	struct pln_register *r = (void *)answers;
	struct pln_io *a = (void *)(answers + 4096);
	int fd = gpu_open(), pf = pln_open(), i;
	int file = target_open(raw ? O_RDWR : O_RDWR | O_CREAT);
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc mem = gpu_alloc(fd, MIB);
	struct late_call c[ALL];
	char *p = dev_map(fd, &mem);
	int missing, protected;

	need(pwrite(file, p, MIB, 0) == MIB && !fsync(file), "write a file");
	*a = (struct pln_io){
		.op = PLN_IO_READ, .fd = file, .size = MIB,
		.handle = must_reg(pf, p, MIB),
	};
	*r = (struct pln_register){ .address = (uintptr_t)p, .size = MIB };
	missing = late_begin(page, ARGUMENTS * 4096,
			     UFFDIO_REGISTER_MODE_MISSING);
	protected = late_begin(answers, ANSWERS * 4096,
			       UFFDIO_REGISTER_MODE_WP);
	for (i = 0; i < ALL; i++) {
		c[i] = (struct late_call){
			.fd = pf, .nr = calls[i], .arg = page + i * 4096,
		};
		late_call_start(&c[i]);
	}
	late_await(missing, ARGUMENTS);
	late_await(protected, ANSWERS);
	check(driver_does(&q, "unbind"),
	      "late memory: the GPU's driver is unbound while %d calls wait for it",
	      ALL);
	late_end(missing, page, ARGUMENTS * 4096);
	late_end(protected, answers, ANSWERS * 4096);
	for (i = 0; i < ALL; i++)
		pthread_join(c[i].thread, NULL);
	check(!c[ARGUMENTS].err && r->handle && !c[ALL - 1].err && a->done == MIB,
	      "late memory: what was done is told");
	check(!c[0].err && c[1].err == EINVAL && c[2].err == ENOENT &&
	      c[4].err, "late memory: and what was asked is answered");
	close(file);
	close(pf);
	check(state("files") == 0 && state("memories") == 0 &&
	      state("pinned") == 0 && state("ios") == 0,
	      "late memory: nothing is left");
	munmap(p, MIB);
	munmap(page, ALL * 4096);
	close(fd);
	need(driver_does(&q, "bind"), "bind");
}

static void set_queue(const char *name, const char *to)
{
	need(!shell("echo %s >/sys/block/%s/queue/%s", to,
		    strrchr(disk, '/') + 1, name), "queue/%s", name);
}

/* Of reads, since the drive is there */
static unsigned long merges(void)
{
	unsigned long n;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/block/%s/stat",
		 strrchr(disk, '/') + 1);
	f = fopen(path, "r");
	need(f && fscanf(f, "%*u %lu", &n) == 1, "%s", path);
	fclose(f);
	return n;
}

/* A process that reads @len bytes at @at: by the module, or into host memory */
static pid_t read_by(int pf, uint32_t h, int d, uint64_t at, size_t len)
{
	pid_t pid = fork();
	void *p;

	need(pid >= 0, "fork");
	if (pid)
		return pid;
	if (pf >= 0)
		_exit(io(pf, PLN_IO_READ, d, at, h, 0, len) != (ssize_t)len);
	p = aligned_alloc(4096, len);
	_exit(!p || pread(d, p, len, at) != (ssize_t)len);
}

/* Its read has come to the drive's queue: it waits where nothing interrupts it */
static bool waits(pid_t pid)
{
	double end = now() + 30;
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (now() < end) {
		f = fopen(path, "r");
		need(f && fscanf(f, "%*d %*s %c", &state) == 1, "%s", path);
		fclose(f);
		if (state == 'D' || state == 'Z')
			return state == 'D';
		usleep(1000);
	}
	return false;
}

/* From Linux 6.17 on the drive's driver maps a request as its first page is; before, page by page */
static bool merges_mix_up(void)
{
	int major = 0, minor = 0;
	struct utsname u;

	need(!uname(&u) && sscanf(u.release, "%d.%d", &major, &minor) == 2, "uname");
	return major > 6 || (major == 6 && minor >= 17);
}

/*
 * A slow drive is at a read, and one of host memory waits for it.  The module's read
 * of the block behind must not become a part of that one, as a read of host memory of
 * the block before does, and shows that it could have.
 */
static void test_merges(int fd, int pf)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a), *in = aligned_alloc(4096, 65536);
	char *much = aligned_alloc(4096, MIB / 2);
	int d = open(disk, O_RDWR | O_DIRECT | O_CLOEXEC), i, k, status, bad = 0;
	uint32_t h = must_reg(pf, p, MIB);
	const uint64_t at = 4 * MIB;
	unsigned long before, ours, theirs;
	struct pln_gpu_op op = op_crc(a.handle, 0, 4096);
	bool proved = false;
	pid_t pid[5];
	uint64_t result;
	cpu_set_t one;

	need(d >= 0 && in && much, "open %s", disk);
	pattern(in, 65536, 5);
	need(pwrite(d, in, 65536, at) == 65536, "write");
	/* one queue of the drive's */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	need(!sched_setaffinity(0, sizeof(one), &one), "affinity");
	set_queue("scheduler", "mq-deadline");
	set_queue("nomerges", "0");
	set_queue("nr_requests", "16");
	/* the drive may have ended too early, or the host's turn may have come late */
	for (i = 0; i < 10 && !proved && !bad; i++) {
		memset(p, 0, 4096);
		need(!host_throttle(drive, MIB / 16), "slow the drive down");
		/* for this one it waits when it has ended: before the next */
		need(pread(d, much, MIB / 2, 32 * MIB) == MIB / 2, "read");
		before = merges();
		/* at the drive, and the next that is to go there */
		pid[0] = read_by(-1, 0, d, 40 * MIB, 4096);
		proved = waits(pid[0]);
		pid[1] = read_by(-1, 0, d, 48 * MIB, 4096);
		proved &= waits(pid[1]);
		pid[2] = read_by(-1, 0, d, at + 8192, 4096);
		proved &= waits(pid[2]);
		pid[3] = read_by(pf, h, d, at + 12288, 4096);
		proved &= waits(pid[3]);
		ours = merges() - before;
		pid[4] = read_by(-1, 0, d, at + 4096, 4096);
		proved &= waits(pid[4]);
		theirs = merges() - before;
		need(!host_throttle(drive, 0), "speed the drive up");
		for (k = 0; k < 5; k++)
			bad += waitpid(pid[k], &status, 0) != pid[k] ||
			       status != 0;
		/* the drive was still at the first one, and the queue could merge */
		proved &= theirs > ours;
		printf("# merged: %lu by the module's, %lu in all\n", ours,
		       theirs);
		bad += merges_mix_up() && ours != 0;
		bad += gpu_run(fd, &op, 1, &result) ||
		       result != crc32c(0, in + 12288, 4096);
	}
	check(!bad, merges_mix_up() ? "IO of the module is not merged with that of host memory" :
	      "IO of the module may be merged with that of host memory, and is right");
	check(proved, "which is merged with its like");
	set_queue("scheduler", "none");
	unreg(pf, h);
	gpu_free(fd, a.handle);
	free(much);
	free(in);
	close(d);
}

/* ---- struct pages that the module makes ---- */

static char gpu_pci[32];

static void set_own_pages(unsigned int mib)
{
	need(!shell("echo %u >/sys/module/peerlane/parameters/own_pages_mib",
		    mib), "set own_pages_mib");
}

/* Lines of the kernel's log */
static int logged(const char *words)
{
	char cmd[256];
	FILE *f;
	int n;

	fflush(stdout);
	snprintf(cmd, sizeof(cmd), "dmesg | grep -c '%s: peerlane: .*%s'",
		 gpu_pci, words);
	f = popen(cmd, "r");
	need(f && fscanf(f, "%d", &n) == 1, "%s", cmd);
	pclose(f);
	return n;
}

#define MADE	"has [0-9]* MiB of struct pages"

static void *map_bar1(const char *name, size_t offset, size_t len)
{
	char path[96];
	void *p;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", gpu_pci,
		 name);
	fd = open(path, O_RDWR);
	need(fd >= 0, "open %s", path);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
	need(p != MAP_FAILED, "map %s", path);
	close(fd);
	return p;
}

/* Asked twice, it looks once, and says why */
static void refuses(int pf, const void *p, unsigned int mib, const char *words)
{
	int before = logged(words), made = logged(MADE), i, bad = 0;
	struct pln_register r;

	set_own_pages(mib);
	for (i = 0; i < 2; i++)
		bad += !reg(pf, p, MIB, &r) || errno != EOPNOTSUPP ||
		       r.reason != PLN_REASON_NO_PAGES;
	check(!bad && logged(words) == before + 1 && logged(MADE) == made,
	      "own_pages_mib=%u: %s", mib, words);
}

/* Who does IO is killed, and the module unloaded as soon as that is allowed */
static void test_unload(void)
{
	double end = now() + 120;
	int status;
	pid_t pid;

	pid = start_reader();
	check(shell("rmmod peerlane 2>/dev/null"), "no unloading under IO");
	need(!kill(pid, SIGKILL), "kill");
	while (shell("rmmod peerlane 2>/dev/null"))
		need(now() < end, "unload");
	need(waitpid(pid, &status, 0) == pid, "wait");
	check(WIFSIGNALED(status), "unload behind who was killed in the middle of IO");
	need(!shell("modprobe peerlane"), "load");
}

static void find_gpu(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);

	snprintf(gpu_pci, sizeof(gpu_pci), "%04x:%02x:%02x.%x", q.pci_domain,
		 q.pci_bus, q.pci_devfn >> 3, q.pci_devfn & 7);
	need(!(q.features & PLN_GPU_FEAT_P2PDMA), "a driver without pages");
}

/* Its pages are made when they are needed, and the path is direct */
static void test_made(const char *when)
{
	int fd = gpu_open(), pf = pln_open(), before = logged(MADE), i;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	uint32_t h[2];

	for (i = 0; i < 2; i++)
		h[i] = must_reg(pf, p, MIB);
	check(logged(MADE) == before + 1, "%s: the module makes pages, once",
	      when);
	check(shell("test -e /sys/bus/pci/devices/%s/p2pmem/allocate", gpu_pci),
	      "which the kernel gives to nobody else");
	for (i = 0; i < 2; i++)
		unreg(pf, h[i]);
	munmap(p, MIB);
	gpu_free(fd, a.handle);
	test_data(fd, pf);
	close(pf);
	close(fd);
}

/* The driver anew, with pages of its own or without */
static void bind_anew(bool pages)
{
	need(!shell("cd /sys/bus/pci/drivers/peerlane_gpu && echo %s >unbind && echo %d >/sys/module/peerlane_gpu/parameters/p2pdma && echo %s >bind",
		    gpu_pci, pages, gpu_pci), "bind");
}

#define HOLD	"/sys/kernel/debug/peerlane_fail_test/"

/* @what: "hold" or "linger" */
static void fail_test(const char *what, bool on)
{
	char name[64];
	int f;

	snprintf(name, sizeof(name), HOLD "%s", what);
	f = open(name, O_WRONLY | O_CLOEXEC);
	need(f >= 0 && write(f, on ? "1" : "0", 1) == 1, "peerlane_fail_test");
	close(f);
}

/* A registration wants a lock that it does not get */
static bool held(void)
{
	FILE *f;
	int n, i;

	for (i = 0; i < 2000; i++) {
		f = fopen(HOLD "held", "re");
		need(f && fscanf(f, "%d", &n) == 1, "peerlane_fail_test");
		fclose(f);
		if (n)
			return true;
		usleep(10000);
	}
	return false;
}

/* How a registration ended; 1 is what need() ends a program with, too */
enum { DONE, WRONG, REFUSED, MET, ENDS };

static int try_register(int say, bool meet, int wait_us)
{
	int fd = gpu_open(), pf = pln_open();
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	char *p = dev_map(fd, &a);
	struct pln_register r;

	if (meet)
		fail_test("hold", true);
	need(write(say, "", 1) == 1, "write");
	usleep(wait_us);
	if (!reg(pf, p, MIB, &r))
		return DONE;
	if (errno == EIDRM)
		return MET;
	return errno == EINVAL || errno == EIO || errno == ENODEV ? REFUSED :
								    WRONG;
}

/*
 * Memory is registered for the first time while the GPU's driver is unbound: who unbinds
 * has the device locked, and waits for the registration, which wants that lock.  In even
 * rounds they meet for sure: the registration does not get the lock before.  In odd ones
 * the one that was early waits a little longer in the next round.
 */
static void test_register_unbound(void)
{
	int i, status, pipefd[2], late = 0, n[ENDS] = { 0 }, met = 0;
	int unbind = open("/sys/bus/pci/drivers/peerlane_gpu/unbind", O_WRONLY);
	pid_t pid;
	char c;

	need(unbind >= 0, "unbind");
	for (i = 0; i < 12; i++) {
		bool meet = i % 2 == 0;

		need(!pipe(pipefd), "pipe");
		fflush(stdout);
		pid = fork();
		need(pid >= 0, "fork");
		if (!pid)
			_exit(try_register(pipefd[1], meet,
					   late < 0 && !meet ? -late : 0));
		need(read(pipefd[0], &c, 1) == 1, "read");
		if (meet)
			need(held(), "a registration that waits for the lock");
		else
			usleep(late > 0 ? late : 0);
		need(write(unbind, gpu_pci, strlen(gpu_pci)) > 0, "unbind");
		need(waitpid(pid, &status, 0) == pid, "wait");
		fail_test("hold", false);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
		n[status < ENDS ? status : WRONG]++;
		met += meet && status == MET;
		late += status == DONE ? -20 : status == REFUSED ? 20 : 0;
		need(!shell("echo %s >/sys/bus/pci/drivers/peerlane_gpu/bind",
			    gpu_pci), "bind");
		close(pipefd[0]);
		close(pipefd[1]);
	}
	close(unbind);
	printf("# %d before the unbinding, %d after it, %d met it\n", n[DONE],
	       n[REFUSED], n[MET]);
	check(met == 6, "a registration that meets unbinding is told of it (%d of 6)",
	      met);
	check(!n[WRONG] && state("pinned") == 0 && state("ios") == 0,
	      "registrations beside unbinding end");
}

static void test_own_pages(void)
{
	int fd = gpu_open(), pf = pln_open();
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	size_t size = gpu_query(fd).bar1_size;
	/* 64 bytes for each page of 4 KiB */
	unsigned int takes = size / 4096 * 64 / MIB;
	int before;
	char *p = dev_map(fd, &a), *wc, *uc;
	struct pln_register r;

	find_gpu(fd);
	set_own_pages(0);
	check(reg(pf, p, MIB, &r) && errno == EOPNOTSUPP &&
	      r.reason == PLN_REASON_NO_PAGES && !logged("struct pages"),
	      "it makes none unasked");
	need(takes > 1, "a BAR1 of 128 MiB");
	refuses(pf, p, takes - 1, "more host memory than own_pages_mib allows");

	wc = map_bar1("resource1_wc", 0, size);
	refuses(pf, p, takes, "its mappings are write-combining");
	munmap(wc, size);
	wc = map_bar1("resource1_wc", 0, size / 2);
	uc = map_bar1("resource1", size / 2, size / 2);
	refuses(pf, p, takes + 1, "the kernel refuses");
	munmap(wc, size / 2);
	munmap(uc, size / 2);
	set_own_pages(takes);
	close(pf);
	munmap(p, MIB);
	close(fd);

	test_made("as much as they take");
	test_unload();
	set_own_pages(takes);
	test_made("loaded again");
	fd = gpu_open();
	test_gpu_goes(fd, "removal",
		      "echo 1 >/sys/bus/pci/devices/$pci/remove");
	close(fd);
	need(!shell("echo 1 >/sys/bus/pci/rescan"), "rescan");
	fd = gpu_open();
	find_gpu(fd);
	close(fd);
	test_made("a GPU that is there again");

	bind_anew(true);
	before = logged(MADE);
	fd = gpu_open();
	pf = pln_open();
	test_data(fd, pf);
	check(logged(MADE) == before,
	      "a driver with pages of its own: the module makes none");
	close(pf);
	close(fd);
	bind_anew(false);
	test_register_unbound();
	test_made("bound anew");
}

static int partition(int fd, int op, int nr, long long start, long long length)
{
	struct blkpg_partition p = {
		.start = start, .length = length, .pno = nr,
	};
	struct blkpg_ioctl_arg arg = {
		.op = op, .datalen = sizeof(p), .data = &p,
	};

	return ioctl(fd, BLKPG, &arg);
}

/* A file of xfs whose data is on the file system's second device */
static void test_realtime(int fd, int pf)
{
	const long long first = 400 * MIB;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	uint32_t h = must_reg(pf, dev_map(fd, &a), MIB);
	struct fsxattr attr = { .fsx_xflags = FS_XFLAG_REALTIME };
	int blk = open(disk, O_RDWR | O_CLOEXEC), i, d;
	unsigned long long size;

	need(blk >= 0 && !ioctl(blk, BLKGETSIZE64, &size), "the drive's size");
	need(!partition(blk, BLKPG_ADD_PARTITION, 1, MIB, first) &&
	     !partition(blk, BLKPG_ADD_PARTITION, 2, MIB + first,
			size - MIB - first), "two partitions");
	need(!shell("mkfs.xfs -q -f -r rtdev=%sp2 %sp1 && mkdir -p /tmp/rt && "
		    "mount -t xfs -o rtdev=%sp2 %sp1 /tmp/rt", disk, disk, disk,
		    disk), "an xfs on both");
	for (i = 0; i < 2; i++) {
		d = open(i ? "/tmp/rt/there" : "/tmp/rt/here",
			 O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		need(d >= 0, "a file");
		need(!i || !ioctl(d, FS_IOC_FSSETXATTR, &attr),
		     "its data is on the second device");
		need(!ftruncate(d, MIB), "its size");
		if (i)
			check_io(io(pf, PLN_IO_WRITE, d, 0, h, 0, MIB),
				 EOPNOTSUPP, PLN_REASON_FILE_SYSTEM,
				 "a file on xfs's realtime device");
		else
			check(io(pf, PLN_IO_WRITE, d, 0, h, 0, MIB) == MIB,
			      "a file beside it");
		close(d);
	}
	need(!shell("umount /tmp/rt"), "unmount");
	need(!partition(blk, BLKPG_DEL_PARTITION, 1, 0, 0) &&
	     !partition(blk, BLKPG_DEL_PARTITION, 2, 0, 0), "no partitions");
	close(blk);
	unreg(pf, h);
	gpu_free(fd, a.handle);
}

static void on_processor(unsigned int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n, &set);
	need(!sched_setaffinity(0, sizeof(set), &set), "a second processor");
}

struct late {
	int pf;
	unsigned int handle;
	bool ok;
};

static void *unregister_late(void *arg)
{
	struct late *l = arg;

	on_processor(1);
	fail_test("linger", true);
	l->ok = !unreg(l->pf, l->handle);
	return NULL;
}

/*
 * Memory is unregistered, and freed just before its pages are put; what is registered then
 * has the same address, of the table too, as it comes from the same processor.  It is
 * not that which is put.
 */
static void test_late_put(void)
{
	int fd = gpu_open(), pf = pln_open(), i, wrong = 0;
	struct pln_gpu_query q0 = gpu_query(fd), q;

	on_processor(0);
	for (i = 0; i < 5; i++) {
		struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
		char *p = dev_map(fd, &a);
		struct late l = { .pf = pf, .handle = must_reg(pf, p, MIB) };
		unsigned int handle;
		pthread_t thread;

		q = gpu_query(fd);
		need(!pthread_create(&thread, NULL, unregister_late, &l), "thread");
		need(held(), "who unregisters is to put the pages");
		need(!gpu_free(fd, a.handle), "free");
		a = gpu_alloc(fd, MIB);
		map_at(fd, p, a.mmap_offset, MIB);
		handle = must_reg(pf, p, MIB);
		fail_test("linger", false);
		need(!pthread_join(thread, NULL), "join");
		wrong += !l.ok || gpu_query(fd).bar1_free != q.bar1_free;
		wrong += unreg(pf, handle) != 0;
		munmap(p, MIB);
		gpu_free(fd, a.handle);
	}
	check(!wrong, "memory that is freed, before its pages are put late: what is registered meanwhile stays pinned");
	check(state("memories") == 0 && state("orphans") == 0, "nothing is left");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
	close(pf);
	close(fd);
}

int main(int argc, char **argv)
{
	struct pln_gpu_query q0;
	struct pln_query q = { 0 };
	bool uring, all;
	int fd, pf;

	if (argc == 4) {
		disk = argv[2];
		drive = argv[3];
		fd = gpu_open();
		pf = pln_open();
		if (!strcmp(argv[1], "merges"))
			test_merges(fd, pf);
		else if (!strcmp(argv[1], "realtime"))
			test_realtime(fd, pf);
		else
			need(false, "no test of the name %s", argv[1]);
		return test_end();
	}
	need(argc == 5, "usage: pln_peerlane TARGET DISK NAME PORT");
	target = argv[1];
	disk = argv[2];
	drive = argv[3];
	port = argv[4];
	if (!strcmp(target, "puts")) {
		target = disk;
		test_late_put();
		return test_end();
	}
	if (!strcmp(target, "pages")) {
		target = disk;
		test_own_pages();
		return test_end();
	}
	raw = !strcmp(target, disk);
	/* What is the same with all targets: by day with files alone */
	all = !raw || often(0, 1);
	umask(077);
	/* While nothing holds the number of the GPU, which is bound anew */
	test_late();
	fd = gpu_open();
	q0 = gpu_query(fd);
	pf = pln_open();
	need(!ioctl(pf, PLN_IOC_QUERY, &q), "query");
	uring = q.features & PLN_FEAT_URING_CMD;
	printf("# commands of io_uring: %s\n", uring ? "yes" : "no");
	check(shell("rmmod peerlane 2>/dev/null"), "no unloading while it is open");
	test_data(fd, pf);
	test_cache(fd, pf);
	test_align(fd, pf);
	if (all) {
		test_args(fd, pf);
		test_refused(fd, pf);
	}
	if (!raw) {
		test_end_of_file(fd, pf);
		test_freeze(fd, pf, false);
		test_freeze(fd, pf, true);
	}
	if (all)
		test_rights(fd, pf);
	test_free_in_flight(fd, pf);
	test_slow_disk(fd, pf, false);
	test_slow_disk(fd, pf, true);
	if (uring)
		test_uring(fd, pf);
	close(pf);
	test_race(fd);
	if (all) {
		test_kill(fd);
		test_handed_on(fd);
		test_sum(fd);
	}
	check(state("files") == 0 && state("memories") == 0 &&
	      state("orphans") == 0 && state("ios") == 0, "nothing is left");
	check(room_is(fd, &q0), "all memory and BAR1 are back");
	if (raw) {
		test_bus_goes(fd, false, "a reset of the bus",
			      "echo 1 >$port/reset_subordinate");
		test_bus_goes(fd, true, "a reset of the bus",
			      "echo 1 >$port/reset_subordinate");
		test_bus_goes(fd, false, "a fatal error",
			      "n=$(dmesg | grep -c 'peerlane_gpu .*reset done')\n"
			      "host link-error sw0 | grep -q ok || exit\n"
			      "until [ \"$(dmesg | grep -c 'peerlane_gpu .*reset done')\" -gt \"$n\" ]; do sleep 0.05; done");
	}
	test_gpu_goes(fd, "reset", "echo 1 >/sys/bus/pci/devices/$pci/reset");
	test_gpu_goes(fd, "unbind",
		      "echo $pci >/sys/bus/pci/drivers/peerlane_gpu/unbind");
	check(state("files") == 0 && state("memories") == 0, "nothing is left");
	close(fd);
	return test_end();
}
