// SPDX-License-Identifier: MIT
/* Files: how far transfers get, and what registration does to descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

/* A write ends in the middle of a block, without an error */
void test_odd_write(void)
{
	char *g = gpu(65536);
	CUfileHandle_t fh;
	int fd;

	fresh(NULL);
	fd = make(path, 0, NULL, 0);
	fh = reg(fd);
	mock.odd_write = 8292;
	is(cuFileWrite(fh, g, 65536, 0, 0), 8292,
	   "a write ends in a block: so many bytes are told");
	is(cuFileWrite(fh, g, 65536, 0, 0), 65536, "the next one goes to its end");
	close(fd);
	gpu_free(g);
}

/* Several lanes write, and that of the second MiB meets a full disk */
void test_short_write(void)
{
	const size_t n = MIB(16);
	CUfileHandle_t fh;
	struct stat st;
	char *g = gpu(n);
	int fd, filled;

	for (filled = 0; filled < 2; filled++) {
		fresh("{\"properties\":{\"force_compat_mode\":true},\"peerlane\":"
		      "{\"max_io_threads\":4,\"max_request_parallelism\":4}}");
		fd = make(path, O_DIRECT, NULL, 0);
		if (filled && posix_fallocate(fd, 0, (off_t)n))
			return;
		fh = reg(fd);
		mock.slow_ms = 10;
		mock.bad_from = MIB(1);
		mock.bad_to = MIB(2);
		mock.media_errno = ENOSPC;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)MIB(1),
		   "a write by several lanes, to a full disk");
		fstat(fd, &st);
		is((long long)st.st_size, (long long)(filled ? n : MIB(1)),
		   filled ? "the file is as long as it was" :
			    "the file ends where it is told");
		mock.media_errno = 0;
		mock.most_in_io = 0;
		is(cuFileWrite(fh, g, n, 0, 0), (long long)n, "the next one");
		check(!filled == (mock.most_in_io == 1),
		      filled ? "several lanes write what does not grow" :
			       "one lane makes a file longer");
		close(fd);
	}
	gpu_free(g);
}
