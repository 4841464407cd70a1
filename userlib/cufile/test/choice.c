// SPDX-License-Identifier: MIT
/* The choice of the path: what the settings allow, and what is said about it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

/* No compat mode: no file is staged as a whole, ends of files are */
void test_no_compat(void)
{
	static const char json[] = "{\"properties\":{"
		"\"allow_compat_mode\":false}}";
	char data[10000], *g = gpu(65536);
	CUfileHandle_t fh, tmpfs;
	int fd, mfd;

	fresh(json);
	noise(data, sizeof(data));
	fd = make(path, 0, data, sizeof(data));
	fh = reg(fd);
	is(cuFileRead(fh, g, sizeof(data), 0, 0), sizeof(data),
	   "no compat mode: a file whose end is no whole block");
	check(!memcmp(mem(g), data, sizeof(data)), "the right data");
	check(stats_of(fh).path[PLN_PATH_P2P].bytes_read >= 8192 &&
	      strstr(stats_of(fh).reason, "unaligned"),
	      "the whole blocks by p2p: %s", stats_of(fh).reason);
	is(cuFileRead(fh, g, 100, 7, 3), 100, "a few bytes of it");
	check(!memcmp(mem(g) + 3, data + 7, 100), "the right ones");
	is(cuFileRead(fh, g, 4096, 0, 1), 4096, "to an odd address");
	is(cuFileWrite(fh, g, 5000, 1000, 0), 5000, "a write to the middle");
	is(cuFileWrite(fh, g, 4097, 0, 0), 4097, "a write of a page and a byte");
	check(pread(fd, data, 4097, 0) == 4097 && !memcmp(mem(g), data, 4097),
	      "is in the file");
	mfd = memfd_create("data", 0);
	if (write(mfd, data, sizeof(data)) != sizeof(data))
		return;
	tmpfs = reg(mfd);
	is(cuFileRead(tmpfs, g, 8192, 0, 0), -5008,
	   "a file that cannot be read by p2p is refused");
	is(cuFileRead(tmpfs, g, 100, 0, 0), -5008, "a part of it, too");
	close(mfd);

	fresh(json);
	fh = reg(fd);
	mock.p2p_errno = EREMOTEIO;
	is(cuFileRead(fh, g, 10000, 0, 0), -5008, "p2p is refused: no read");
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "nor of a few bytes");
	check(strstr(stats_of(fh).reason, "refused before"), "why: %s",
	      stats_of(fh).reason);
	is(cuFileWrite(fh, g, 9000, 100, 0), -5008, "nor a write of more");
	is((long long)mock.host_bytes, 0, "nothing is staged");
	mock.p2p_errno = 0;
	is(cuFileRead(fh, g, 100, 0, 0), -5008, "while p2p has not worked");
	is(cuFileRead(fh, g, 10000, 0, 0), 10000, "p2p works, so does the end");
	is(cuFileRead(fh, g, 100, 0, 0), 100, "and the few bytes");
	close(fd);
	gpu_free(g);
}
