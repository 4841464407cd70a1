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
