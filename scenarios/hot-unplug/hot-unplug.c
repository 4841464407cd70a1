// SPDX-License-Identifier: MIT
/*
 * hot-unplug gpu FILE SIZE
 * hot-unplug drive FILE SIZE [OTHER-FILE]
 *
 * A read from FILE into GPU memory, in the middle of which the GPU or the drive
 * is pulled out, and what a program can still do then.
 */
#include "guest.h"

#define AT_ONCE	2.0	/* seconds: nothing is waited for any more */

static gpu_ptr buffer;
static size_t size;
static CUfileHandle_t fh;

static bool at_once(double began)
{
	double took = seconds() - began;

	if (took >= AT_ONCE)
		note("it took %.3f s", took);
	return took < AT_ONCE;
}

/*
 * Reads until one fails.  PCIe writes get no answer, so the drive does not know
 * that what it sent to a GPU is lost, and the read that is under way may end
 * well; it is an IO error if the drive knows.  The next one fails in any case.
 */
static ssize_t read_on(void)
{
	int i, saved;
	ssize_t n = 0;

	for (i = 0; i < 2 && n >= 0; i++)
		n = cuFileRead(fh, addr(buffer), size, 0, 0);
	saved = errno;
	note("%d reads; the last one: %zd, errno %d (%s)", i, n, saved,
	     n == -1 ? strerror(saved) : "");
	errno = saved;
	return n;
}

static void without_gpu(void)
{
	unsigned char byte;
	double began;
	gpu_ptr p = 0;
	ssize_t n;

	n = read_on();
	ok(n == -CU_FILE_CUDA_DRIVER_ERROR || (n == -1 && errno == EIO),
	   "reading ends with an error of the GPU or of the drive");
	began = seconds();
	n = cuFileRead(fh, addr(buffer), size, 0, 0);
	is(n, -CU_FILE_CUDA_DRIVER_ERROR,
	   "the next read says that the GPU does not work");
	ok(cuMemcpyDtoH_v2(&byte, buffer, 1) != 0, "so does a copy of GPU memory");
	ok(cuMemAlloc_v2(&p, size) != 0, "so does an allocation");
	ok(at_once(began), "and all of them at once");
}

static void without_drive(const char *other)
{
	double began;
	ssize_t n;
	int fd;

	is_errno(read_on(), EIO, "reading ends with EIO");
	began = seconds();
	n = cuFileRead(fh, addr(buffer), size, 0, 0);
	is_errno(n, EIO, "so does the next read");
	ok(at_once(began), "at once");
	cuMemsetD8_v2(buffer, 0x5a, size);
	ok(gpu_is(buffer, size, 0x5a), "GPU memory can be used as before");
	if (!other)
		return;
	fd = must_open(other, O_RDONLY);
	n = cuFileRead(must_reg(fd, other), addr(buffer), size, 0, 0);
	is(n, (long long)size, "another drive reads into it");
	ok(gpu_crc(buffer, size) == file_crc(fd, 0, size), "the right data");
}

int main(int argc, char **argv)
{
	bool gpu = argc == 4 && !strcmp(argv[1], "gpu");
	CUfileError_t e;

	if (!gpu && (argc < 4 || argc > 5 || strcmp(argv[1], "drive"))) {
		fprintf(stderr, "usage: hot-unplug gpu|drive FILE SIZE [OTHER-FILE]\n");
		return 2;
	}
	size = strtoull(argv[3], NULL, 0);
	gpu_open();
	buffer = gpu_alloc(size);
	fh = must_reg(must_open(argv[2], O_RDONLY), argv[2]);
	e = cuFileBufRegister(addr(buffer), size, 0);
	is(e.err, 0, "GPU memory is registered");
	if (gpu)
		without_gpu();
	else
		without_drive(argv[4]);
	e = cuFileBufDeregister(addr(buffer));
	is(e.err, 0, "GPU memory can be deregistered");
	cuFileHandleDeregister(fh);
	return finish();
}
