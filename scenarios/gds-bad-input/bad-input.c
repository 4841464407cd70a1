// SPDX-License-Identifier: MIT
/*
 * bad-input PART DIR: what must fail, must fail as documented; what must not,
 * must be right; and after each of them the next IO works.
 *
 * DIR has "data" (64 MiB), "victim" (8 MiB, the drive cannot read the block at
 * 4 MiB) and "slow" (8 MiB, the drive takes 2 s for the block at 2 MiB).
 */
#include <poll.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "guest.h"

int cuMemGetInfo_v2(size_t *avail, size_t *total);

#define DATA_SIZE	MIB(64)
#define BAD_AT		MIB(4)
#define SLOW_AT		MIB(2)

static char dir[200];

static const char *in_dir(const char *name)
{
	static char path[8][256];
	static unsigned int turn;
	char *p = path[turn++ % 8];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

/* The proof that nothing is broken: 1 MiB of the file is read and is right. */
static void next_io_works(CUfileHandle_t fh, int plain, gpu_ptr p)
{
	ssize_t n;

	cuMemsetD8_v2(p, 0, MIB(1));
	n = cuFileRead(fh, addr(p), MIB(1), (off_t)MIB(7), 0);
	if (!ok(n == (ssize_t)MIB(1) && gpu_crc(p, MIB(1)) ==
		file_crc(plain, (off_t)MIB(7), MIB(1)), "the next IO works"))
		note("it gave %zd, errno %d", n, errno);
}

/* ---- arguments ---- */

static void handles(void)
{
	int pipes[2], fd, again;
	CUfileHandle_t fh = NULL, other = NULL;
	CUfileDescr_t d;

	fd = must_open(dir, O_RDONLY | O_DIRECTORY);
	is(reg(&fh, fd).err, CU_FILE_INVALID_FILE_TYPE,
	   "a directory is no file to register");
	close(fd);
	if (pipe(pipes))
		die("pipe");
	is(reg(&fh, pipes[0]).err, CU_FILE_INVALID_FILE_TYPE,
	   "nor is a pipe");
	close(pipes[0]);
	close(pipes[1]);
	fd = must_open("/dev/null", O_RDWR);
	is(reg(&fh, fd).err, CU_FILE_INVALID_FILE_TYPE,
	   "nor is a character device");
	close(fd);
	is(reg(&fh, fd).err, CU_FILE_INVALID_VALUE, "nor is a closed descriptor");
	is(reg(&fh, -1).err, CU_FILE_INVALID_VALUE, "nor is -1");
	fd = must_open(in_dir("data"), O_RDWR | O_APPEND);
	is(reg(&fh, fd).err, CU_FILE_INVALID_FILE_OPEN_FLAG,
	   "nor is a file opened with O_APPEND");
	close(fd);

	fd = must_open(in_dir("data"), O_RDONLY | O_DIRECT);
	is(cuFileHandleRegister(NULL, NULL).err, CU_FILE_INVALID_VALUE,
	   "no arguments");
	is(cuFileHandleRegister(&fh, NULL).err, CU_FILE_INVALID_VALUE,
	   "no description");
	memset(&d, 0, sizeof(d));
	d.type = CU_FILE_HANDLE_TYPE_OPAQUE_WIN32;
	d.handle.fd = fd;
	is(cuFileHandleRegister(&fh, &d).err, CU_FILE_IO_NOT_SUPPORTED,
	   "a handle of another operating system");
	is(reg(&fh, fd).err, CU_FILE_SUCCESS, "a file is registered");
	is(reg(&other, fd).err, CU_FILE_HANDLE_ALREADY_REGISTERED,
	   "and cannot be once more");
	again = dup(fd);
	is(reg(&other, again).err, CU_FILE_SUCCESS,
	   "but by another descriptor it can");
	cuFileHandleDeregister(other);
	close(again);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(fh);
	cuFileHandleDeregister(NULL);
	ok(true, "a handle that is gone is no harm to deregister");
	close(fd);
}

static void buffers(void)
{
	gpu_ptr p = gpu_alloc(MIB(2));
	char local;

	is(cuFileBufRegister(NULL, 4096, 0).err, CU_FILE_INVALID_VALUE,
	   "no buffer");
	is(cuFileBufRegister(addr(p), 0, 0).err, CU_FILE_INVALID_VALUE,
	   "an empty buffer");
	is(cuFileBufRegister(addr(p), MIB(3), 0).err,
	   CU_FILE_CUDA_POINTER_RANGE_ERROR, "more than the memory has");
	is(cuFileBufRegister(addr(p), MIB(2), 0).err, CU_FILE_SUCCESS,
	   "a buffer is registered");
	is(cuFileBufRegister(addr(p), MIB(2), 0).err,
	   CU_FILE_MEMORY_ALREADY_REGISTERED, "and cannot be once more");
	is(cuFileBufDeregister(addr(p)).err, CU_FILE_SUCCESS, "deregistered");
	is(cuFileBufDeregister(addr(p)).err, CU_FILE_MEMORY_NOT_REGISTERED,
	   "and that once only");
	is(cuFileBufDeregister(&local).err, CU_FILE_MEMORY_NOT_REGISTERED,
	   "something never registered");
	cuMemFree_v2(p);
}

static void reads(CUfileHandle_t fh, int fd, int plain)
{
	gpu_ptr p = gpu_alloc(MIB(2)), q;
	CUfileHandle_t old;
	int other;

	cuMemsetD8_v2(p, 0x5a, MIB(2));
	is(cuFileRead(fh, addr(p), 4096, -4096, 0), -CU_FILE_INVALID_VALUE,
	   "a negative file offset");
	is(cuFileRead(fh, addr(p), 4096, 0, -4096), -CU_FILE_INVALID_VALUE,
	   "a negative offset in the buffer");
	is(cuFileRead(fh, NULL, 4096, 0, 0), -CU_FILE_INVALID_VALUE,
	   "no buffer to read into");
	is(cuFileRead(fh, addr(p), 0, 0, 0), 0, "nothing to read");
	is(cuFileRead(fh, addr(p), MIB(1), (off_t)DATA_SIZE, 0), 0,
	   "at the end of the file");
	is(cuFileRead(fh, addr(p), MIB(1), (off_t)DATA_SIZE * 4, 0), 0,
	   "far past the end of the file");
	is(cuFileRead(fh, addr(p), MIB(1) + 4096, 0, (off_t)MIB(1)),
	   -CU_FILE_CUDA_POINTER_RANGE_ERROR, "past the end of the memory");
	ok(gpu_is(p, MIB(2), 0x5a), "none of them wrote to the memory");
	is(cuFileRead(fh, addr(p), MIB(1), (off_t)(DATA_SIZE - KIB(256)), 0),
	   (long long)KIB(256), "across the end of the file: what there is");
	ok(gpu_crc(p, KIB(256)) == file_crc(plain, (off_t)(DATA_SIZE - KIB(256)),
					    KIB(256)), "that is right");
	ok(gpu_is(p + KIB(256), MIB(2) - KIB(256), 0x5a),
	   "and the memory behind it is untouched");
	is(cuFileBufRegister(addr(p), MIB(1), 0).err, CU_FILE_SUCCESS,
	   "half of the memory is registered");
	is(cuFileRead(fh, addr(p), MIB(1), 0, (off_t)KIB(512)),
	   -CU_FILE_INVALID_MAPPING_RANGE, "past the registered part");
	cuFileBufDeregister(addr(p));
	next_io_works(fh, plain, p);

	other = must_open(in_dir("data"), O_RDONLY | O_DIRECT);
	old = must_reg(other, "another descriptor");
	cuFileHandleDeregister(old);
	is(cuFileRead(old, addr(p), 4096, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED,
	   "a handle that was deregistered");
	is(cuFileRead(NULL, addr(p), 4096, 0, 0), -CU_FILE_HANDLE_NOT_REGISTERED,
	   "no handle");
	is(cuFileRead((CUfileHandle_t)(uintptr_t)0xdeadbeef1009, addr(p), 4096,
		      0, 0), -CU_FILE_HANDLE_NOT_REGISTERED,
	   "an invented handle");
	old = must_reg(other, "another descriptor again");
	close(other);
	cuMemsetD8_v2(p, 0, 4096);
	is(cuFileRead(old, addr(p), 4096, 0, 0), 4096,
	   "a descriptor closed by the program: the handle keeps the file");
	cuFileHandleDeregister(old);
	next_io_works(fh, plain, p);

	q = gpu_alloc(MIB(1));
	is(cuFileRead(fh, addr(q), MIB(1), 0, 0), (long long)MIB(1),
	   "a buffer is used");
	cuMemFree_v2(q);
	is(cuFileRead(fh, addr(q), MIB(1), 0, 0), -CU_FILE_CUDA_POINTER_INVALID,
	   "and freed: it cannot be used");
	other = must_open(in_dir("fresh"), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT);
	old = must_reg(other, "a file opened for writing");
	is(cuFileWrite(old, addr(q), MIB(1), 0, 0), -CU_FILE_CUDA_POINTER_INVALID,
	   "nor written from");
	q = gpu_alloc(MIB(1));
	is(cuFileBufRegister(addr(q), MIB(1), 0).err, CU_FILE_SUCCESS,
	   "a registered buffer");
	is(cuFileRead(fh, addr(q), MIB(1), 0, 0), (long long)MIB(1),
	   "is used");
	cuMemFree_v2(q);
	is(cuFileRead(fh, addr(q), MIB(1), 0, 0), -CU_FILE_CUDA_POINTER_INVALID,
	   "and freed while registered: it cannot be used");
	cuFileBufDeregister(addr(q));
	next_io_works(fh, plain, p);

	is_errno(cuFileWrite(fh, addr(p), 4096, 0, 0), EBADF,
		 "a write to a file opened for reading");
	is_errno(cuFileRead(old, addr(p), 4096, 0, 0), EBADF,
		 "a read of a file opened for writing");
	cuFileHandleDeregister(old);
	close(other);
	if (chmod(in_dir("fresh"), 0444))
		die("chmod");
	next_io_works(fh, plain, p);
	(void)fd;
	cuMemFree_v2(p);
}

static void unaligned(CUfileHandle_t fh, int plain)
{
	static const size_t offsets[] = { 0, 1, 511, 512, 513, 4095, 4097, 65537 };
	static const size_t sizes[] = { 1, 511, 512, 4095, 4097, 65535, 1000003 };
	size_t buf_off[] = { 0, 1, 512, 4095, 70001 };
	gpu_ptr p = gpu_alloc(MIB(2));
	uint8_t *want = malloc(MIB(2)), *got = malloc(MIB(2));
	unsigned int bad = 0, count = 0;
	CUfileHandle_t wh;
	int wfd;

	if (!want || !got)
		die("malloc");
	for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			size_t b = buf_off[(o + s) % 5], n = sizes[s];
			ssize_t r;

			cuMemsetD8_v2(p, 0x77, b + n + 64);
			r = cuFileRead(fh, addr(p), n, (off_t)offsets[o],
				       (off_t)b);
			memset(want, 0x77, b + n + 64);
			if (pread(plain, want + b, n, (off_t)offsets[o]) !=
			    (ssize_t)n)
				die("pread");
			cuMemcpyDtoH_v2(got, p, b + n + 64);
			count++;
			if (r != (ssize_t)n || memcmp(got, want, b + n + 64)) {
				if (++bad < 5)
					note("read of %zu at %zu to +%zu: %zd",
					     n, offsets[o], b, r);
			}
		}
	ok(!bad, "%u reads with crooked offsets, sizes and pointers are right",
	   count);

	wfd = must_open(in_dir("crooked"), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	wh = must_reg(wfd, "a file to write to");
	bad = count = 0;
	memset(want, 0, MIB(2));
	for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			size_t b = buf_off[(o + s) % 5], n = sizes[s];
			unsigned char value = (unsigned char)(count + 1);

			cuMemsetD8_v2(p, value, b + n + 64);
			if (cuFileWrite(wh, addr(p), n, (off_t)offsets[o],
					(off_t)b) != (ssize_t)n && ++bad < 5)
				note("write of %zu at %zu from +%zu failed, errno %d",
				     n, offsets[o], b, errno);
			memset(want + offsets[o], value, n);
			count++;
		}
	cuFileHandleDeregister(wh);
	close(wfd);
	wfd = must_open(in_dir("crooked"), O_RDONLY);
	if (pread(wfd, got, 1065540, 0) != 1065540 ||
	    memcmp(got, want, 1065540))
		bad++;
	close(wfd);
	ok(!bad, "%u crooked writes are right, neighbours included", count);
	unlink(in_dir("crooked"));
	next_io_works(fh, plain, p);
	cuMemFree_v2(p);
	free(want);
	free(got);
}

static void full_disk(CUfileHandle_t fh, int plain)
{
	gpu_ptr p = gpu_alloc(MIB(16));
	size_t total = 0;
	CUfileHandle_t wh;
	ssize_t n = 0;
	int fd, i;

	cuMemsetD8_v2(p, 0x42, MIB(16));
	fd = must_open(in_dir("full"), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	wh = must_reg(fd, "a file to fill the disk with");
	for (i = 0; i < 64; i++) {
		n = cuFileWrite(wh, addr(p), MIB(16), (off_t)total, 0);
		if (n <= 0)
			break;
		total += (size_t)n;
	}
	is_errno(n, ENOSPC, "the disk gets full, and the write says so");
	note("%zu MiB fitted", total >> 20);
	ok(total > 0 && i < 64, "what fitted was written");
	cuMemsetD8_v2(p, 0, MIB(1));
	ok(cuFileRead(wh, addr(p), MIB(1), 0, 0) == (ssize_t)MIB(1) &&
	   gpu_is(p, MIB(1), 0x42), "and is there");
	next_io_works(fh, plain, p);
	cuFileHandleDeregister(wh);
	close(fd);
	unlink(in_dir("full"));
	sync();
	fd = must_open(in_dir("after"), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	wh = must_reg(fd, "a file after that");
	is(cuFileWrite(wh, addr(p), MIB(1), 0, 0), (long long)MIB(1),
	   "with room again, the next write works");
	cuFileHandleDeregister(wh);
	close(fd);
	unlink(in_dir("after"));
	cuMemFree_v2(p);
}

static int arguments(void)
{
	CUfileHandle_t fh;
	int fd, plain;

	gpu_open();
	fd = must_open(in_dir("data"), O_RDONLY | O_DIRECT);
	plain = must_open(in_dir("data"), O_RDONLY);
	handles();
	buffers();
	fh = must_reg(fd, "the file");
	reads(fh, fd, plain);
	unaligned(fh, plain);
	full_disk(fh, plain);
	cuFileHandleDeregister(fh);
	is(cuFileDriverClose().err, CU_FILE_SUCCESS, "the library closes");
	return finish();
}

/* ---- a medium that cannot be read ---- */

static int media(void)
{
	CUfileHandle_t fh, good;
	gpu_ptr p;
	ssize_t n;
	off_t at = 0;
	int plain;

	gpu_open();
	p = gpu_alloc(MIB(8));
	plain = must_open(in_dir("data"), O_RDONLY);
	good = must_reg(must_open(in_dir("data"), O_RDONLY | O_DIRECT), "data");
	fh = must_reg(must_open(in_dir("victim"), O_RDONLY | O_DIRECT), "victim");
	is(cuFileRead(fh, addr(p), MIB(1), 0, 0), (long long)MIB(1),
	   "a part before the bad block is read");
	is_errno(cuFileRead(fh, addr(p), KIB(64), (off_t)BAD_AT, 0), EIO,
		 "the bad block: an error of the medium");
	/* as read(2): what is before it, in one or more parts, then the error */
	for (n = cuFileRead(fh, addr(p), MIB(8), 0, 0); n > 0;
	     n = cuFileRead(fh, addr(p), MIB(8) - (size_t)at, at, at))
		at += n;
	is_errno(n, EIO, "the whole file: too");
	ok(at <= (off_t)BAD_AT, "and nothing from behind the bad block");
	is(cuFileRead(fh, addr(p), MIB(1), (off_t)MIB(6), 0), (long long)MIB(1),
	   "a part behind it is read");
	next_io_works(good, plain, p);
	return finish();
}

/* ---- ends in the middle of an IO ---- */

/* Bounded: until a request is with the drive. */
static bool in_flight(void)
{
	char name[64];
	struct stat st;

	if (stat(dir, &st))
		return false;
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/inflight",
		 major(st.st_dev), minor(st.st_dev));
	for (int i = 0; i < 5000; i++) {
		unsigned int r = 0, w = 0;
		FILE *f = fopen(name, "r");

		if (f) {
			if (fscanf(f, "%u %u", &r, &w) != 2)
				r = 0;
			fclose(f);
		}
		if (r)
			return true;
		usleep(2000);
	}
	return false;
}

/* Reads the slow block; tells how it went by its status. */
static void __attribute__((noreturn)) slow_reader(int ready)
{
	CUfileHandle_t fh, good;
	gpu_ptr p, q;
	ssize_t n, m;
	off_t at = 0;

	gpu_open();
	p = gpu_alloc(MIB(4));
	q = gpu_alloc(MIB(1));
	good = must_reg(must_open(in_dir("data"), O_RDONLY | O_DIRECT), "data");
	fh = must_reg(must_open(in_dir("slow"), O_RDONLY | O_DIRECT), "slow");
	/* the path is known and mapped before the slow read */
	if (cuFileRead(good, addr(p), MIB(4), 0, 0) != (ssize_t)MIB(4) ||
	    cuFileRead(good, addr(q), MIB(1), 0, 0) != (ssize_t)MIB(1))
		_exit(10);
	if (write(ready, "r", 1) != 1)
		_exit(11);
	do {
		errno = 0;
		n = cuFileRead(fh, addr(p), MIB(4) - (size_t)at, at, at);
		note("the read in flight gave %zd, errno %d", n, errno);
		at += n > 0 ? n : 0;
	} while (n > 0 && at < (off_t)MIB(4));
	errno = 0;
	m = cuFileRead(good, addr(q), MIB(1), 0, 0);
	note("the next one of that process gave %zd, errno %d", m, errno);
	fflush(stdout);
	/* documented: the data, or an error; never success without data */
	if (at == (off_t)MIB(4) || (n == -1 && errno) || n < -CUFILEOP_BASE_ERR)
		_exit(m > 0 ? 20 : 21);
	_exit(12);
}

static pid_t start_slow_reader(void)
{
	struct pollfd pfd;
	int ready[2];
	pid_t child;
	char byte;

	fflush(stdout);
	if (pipe(ready))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		close(ready[0]);
		slow_reader(ready[1]);
	}
	close(ready[1]);
	pfd = (struct pollfd){ .fd = ready[0], .events = POLLIN };
	if (poll(&pfd, 1, 20000) != 1 || read(ready[0], &byte, 1) != 1)
		die("the reader");
	close(ready[0]);
	return child;
}

/* Bounded: the child's status, or -1. */
static int wait_for(pid_t child)
{
	for (int i = 0; i < 2000; i++) {
		int status;
		pid_t got = waitpid(child, &status, WNOHANG);

		if (got == child)
			return status;
		if (got < 0)
			die("waitpid");
		usleep(10000);
	}
	kill(child, SIGKILL);
	return -1;
}

static void fresh_process_works(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		int plain = must_open(in_dir("data"), O_RDONLY), fd;
		gpu_ptr p;

		gpu_open();
		p = gpu_alloc(MIB(1));
		fd = must_open(in_dir("data"), O_RDONLY | O_DIRECT);
		_exit(cuFileRead(must_reg(fd, "data"), addr(p), MIB(1),
				 (off_t)MIB(7), 0) == (ssize_t)MIB(1) &&
		      gpu_crc(p, MIB(1)) == file_crc(plain, (off_t)MIB(7),
						     MIB(1)) ? 0 : 1);
	}
	status = wait_for(child);
	if (!ok(status == 0, "a new process reads right"))
		note("its status: 0x%x", status);
}

static int killed(void)
{
	double began;
	pid_t child = start_slow_reader();
	int status;

	ok(in_flight(), "a read is with the drive");
	began = seconds();
	if (kill(child, SIGKILL))
		die("kill");
	status = wait_for(child);
	ok(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	   "kill -9 ends its process");
	note("after %.2f s", seconds() - began);
	fresh_process_works();
	return finish();
}

static int reset(const char *bdf)
{
	char path[256];
	double began;
	pid_t child;
	int fd, status;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", bdf);
	fd = must_open(path, O_WRONLY);
	child = start_slow_reader();
	ok(in_flight(), "a read is with the drive");
	began = seconds();
	n = write(fd, "1", 1);
	ok(n == 1, "the reset comes back");
	note("after %.2f s with %zd, errno %d", seconds() - began, n,
	     n < 0 ? errno : 0);
	ok(seconds() - began < 15, "soon enough");
	status = wait_for(child);
	ok(status != -1 && WIFEXITED(status) && WEXITSTATUS(status) >= 20,
	   "the process that was reading got data or an error, and goes on");
	ok(status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 21,
	   "memory from before the reset is lost, and IO on it says so");
	if (status != -1)
		note("its status: 0x%x", status);
	close(fd);
	fresh_process_works();
	return finish();
}

/* ---- nothing is lost ---- */

static int vram(void)
{
	size_t avail = 0, total = 0;

	gpu_open();
	if (cuMemGetInfo_v2(&avail, &total))
		return 1;
	printf("%zu\n", avail);
	return 0;
}

static int bdf(void)
{
	gpu_open();
	printf("%s\n", guest_bdf);
	return 0;
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN);
	snprintf(dir, sizeof(dir), "%s", argc > 2 ? argv[2] : "");
	if (!strcmp(part, "arguments"))
		return arguments();
	if (!strcmp(part, "media"))
		return media();
	if (!strcmp(part, "kill"))
		return killed();
	if (!strcmp(part, "reset") && argc > 3)
		return reset(argv[3]);
	if (!strcmp(part, "vram"))
		return vram();
	if (!strcmp(part, "bdf"))
		return bdf();
	fprintf(stderr, "usage: bad-input PART DIR\n");
	return 2;
}
