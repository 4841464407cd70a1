// SPDX-License-Identifier: MIT
/*
 * small-bar1 DIR BAR1-MIB [here]
 *
 * More GPU memory is registered, and used for IO, than the aperture can show
 * at once.  DIR/data is a file of at least three times the aperture's size.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"

#define BUFFERS		12
#define THREADS		4

static size_t bar1;
static char path[256], copy[256];

static bool whole(CUfileHandle_t fh, int fd, gpu_ptr p, size_t size, off_t off)
{
	ssize_t n;

	cuMemsetD8_v2(p, 0xee, size);
	n = cuFileRead(fh, addr(p), size, off, 0);
	if (n != (ssize_t)size) {
		note("read of %zu bytes at %lld: %zd, errno %d", size,
		     (long long)off, n, errno);
		return false;
	}
	if (gpu_crc(p, size) != file_crc(fd, off, size)) {
		note("read of %zu bytes at %lld: wrong data", size,
		     (long long)off);
		return false;
	}
	return true;
}

static void transfer(const char *what, size_t bytes, double cpu, double began,
		     const struct pln_file_stats *from)
{
	struct json_object *o, *paths = json_object_new_object();
	struct pln_file_stats now = stats();
	bool write = !strcmp(what, "write");
	uint64_t by[PLN_PATH_COUNT], most = 0;
	unsigned int best = 0;

	for (unsigned int i = 0; i < PLN_PATH_COUNT; i++) {
		by[i] = write ? now.path[i].bytes_written - from->path[i].bytes_written
			      : now.path[i].bytes_read - from->path[i].bytes_read;
		if (by[i] > most) {
			most = by[i];
			best = i;
		}
	}
	json_set(paths, "p2p", by[PLN_PATH_P2P]);
	json_set(paths, "bounce", by[PLN_PATH_BOUNCE]);
	o = transfer_json(what, pln_path_name(best), bytes, cpu_seconds() - cpu,
			  now.reason);
	json_set(o, "seconds", seconds() - began);
	json_set(o, "paths", paths);
	json_set(o, "evictions", now.window_evictions - from->window_evictions);
	json_set(o, "nospace", now.window_nospace - from->window_nospace);
	tell_transfer(write ? "write" : "read", o);
}

struct job {
	pthread_t thread;
	CUfileHandle_t fh;
	int fd;
	gpu_ptr p;
	size_t size;
	off_t off;
	bool good;
};

static void *reader(void *arg)
{
	struct job *j = arg;

	cuCtxSetCurrent(guest_ctx);
	j->good = true;
	for (int i = 0; i < 2; i++) {
		ssize_t n = cuFileRead(j->fh, addr(j->p), j->size, j->off, 0);

		if (n != (ssize_t)j->size) {
			note("thread at %lld: %zd, errno %d", (long long)j->off,
			     n, errno);
			j->good = false;
		}
	}
	return NULL;
}

/* Holds as much of the aperture as it can get, until the pipe is closed. */
static void hog(int ready, int wait)
{
	size_t size = bar1;
	gpu_ptr p;
	char byte = 1;
	ssize_t n;
	int fd;

	gpu_open();
	p = gpu_alloc(size);
	fd = must_open(path, O_RDONLY | O_DIRECT);
	n = cuFileRead(must_reg(fd, "the hog's file"), addr(p), size, 0, 0);
	if (n != (ssize_t)size)
		byte = 0;
	if (write(ready, &byte, 1) != 1)
		_exit(1);
	while (read(wait, &byte, 1) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct pln_file_stats before;
	struct job jobs[THREADS];
	gpu_ptr buf[BUFFERS], big;
	int ready[2], hold[2], fd, out, status;
	size_t each, total, step;
	CUfileHandle_t fh, wh;
	bool good = true, here;
	double cpu, began;
	uint32_t crc;
	pid_t child;
	char byte;

	if (argc != 3 && argc != 4)
		return 2;
	here = argc == 4;
	bar1 = MIB(strtoul(argv[2], NULL, 0));
	snprintf(path, sizeof(path), "%s/data", argv[1]);
	snprintf(copy, sizeof(copy), "%s/copy", argv[1]);

	/* the hog is a process of its own, made before there is a context */
	if (pipe(ready) || pipe(hold))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		/* it starts when told, not before */
		close(hold[1]);
		if (read(hold[0], &byte, 1) != 1)
			_exit(1);
		hog(ready[1], hold[0]);
	}
	close(hold[0]);
	close(ready[1]);

	gpu_open();
	fd = must_open(path, O_RDONLY | O_DIRECT);
	fh = must_reg(fd, "the file");
	each = bar1 / 4;
	total = each * BUFFERS;
	out = must_open(path, O_RDONLY);

	for (int i = 0; i < BUFFERS; i++) {
		buf[i] = gpu_alloc(each);
		if (cuFileBufRegister(addr(buf[i]), each, 0).err)
			good = false;
	}
	ok(good, "%d buffers of %zu MiB are registered before an aperture of %zu MiB",
	   BUFFERS, each >> 20, bar1 >> 20);

	before = stats();
	cpu = cpu_seconds();
	began = seconds();
	host_must("begin read");
	good = true;
	for (int i = 0; i < BUFFERS; i++)
		good &= cuFileRead(fh, addr(buf[i]), each, (off_t)each * i, 0) ==
			(ssize_t)each;
	host_must("end read");
	transfer("read", total, cpu, began, &before);
	ok(good, "each buffer is read into, one after the other");
	good = true;
	for (int i = 0; i < BUFFERS; i++)
		good &= gpu_crc(buf[i], each) ==
			file_crc(out, (off_t)each * i, each);
	ok(good, "and holds its part of the file");

	good = true;
	for (int round = 0; round < 2; round++)
		for (int i = BUFFERS - 1; i >= 0; i--)
			good &= whole(fh, out, buf[i], each,
				      (off_t)each * ((i + round) % BUFFERS));
	ok(good, "again in the other order, with other data");

	/* small pieces that wander over all buffers */
	good = true;
	step = KIB(64);
	for (int i = 0; i < 96; i++) {
		size_t off = (size_t)i * 5 * step % each;
		gpu_ptr p = buf[i * 7 % BUFFERS];

		if (cuFileRead(fh, addr(p), step, (off_t)(i * step),
			       (off_t)off) != (ssize_t)step ||
		    gpu_crc(p + off, step) != file_crc(out, (off_t)(i * step),
						       step))
			good = false;
	}
	ok(good, "small reads all over them");

	wh = must_reg(must_open(copy, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT),
		      "the copy");
	for (int i = 0; i < BUFFERS; i++)
		if (!whole(fh, out, buf[i], each, (off_t)each * i))
			good = false;
	before = stats();
	cpu = cpu_seconds();
	began = seconds();
	host_must("begin write");
	for (int i = 0; i < BUFFERS; i++)
		if (cuFileWrite(wh, addr(buf[i]), each, (off_t)each * i, 0) !=
		    (ssize_t)each)
			good = false;
	host_must("end write");
	transfer("write", total, cpu, began, &before);
	ok(good, "all of them are written to a second file");
	sync();

	for (int i = 0; i < BUFFERS; i++) {
		cuFileBufDeregister(addr(buf[i]));
		cuMemFree_v2(buf[i]);
	}

	big = gpu_alloc(bar1 * 5 / 2);
	is(cuFileBufRegister(addr(big), bar1 * 5 / 2, 0).err, CU_FILE_SUCCESS,
	   "one buffer of 2.5 times the aperture is registered");
	ok(whole(fh, out, big, bar1 * 5 / 2, 0), "and filled by one read");
	ok(whole(fh, out, big, bar1 * 5 / 2, (off_t)bar1 / 2),
	   "and by another");

	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){ .fh = fh, .fd = out,
					.p = big + i * (bar1 / 2),
					.size = bar1 / 2,
					.off = (off_t)(i * bar1 / 2) };
		if (pthread_create(&jobs[i].thread, NULL, reader, &jobs[i]))
			die("pthread_create");
	}
	good = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(jobs[i].thread, NULL);
		good &= jobs[i].good;
	}
	for (int i = 0; i < THREADS; i++)
		good &= gpu_crc(jobs[i].p, jobs[i].size) ==
			file_crc(out, jobs[i].off, jobs[i].size);
	ok(good, "%d threads share it, with twice the aperture in flight",
	   THREADS);
	cuFileBufDeregister(addr(big));
	cuMemFree_v2(big);

	/* somebody else has it all: nothing of ours can be given up */
	if (write(hold[1], "x", 1) != 1 || read(ready[0], &byte, 1) != 1)
		die("the other process");
	ok(byte == 1, "another process fills the aperture");
	big = gpu_alloc(MIB(8));
	before = stats();
	ok(whole(fh, out, big, MIB(8), 0),
	   "a read while another process holds the aperture is right");
	if (here)
		ok(stats().path[PLN_PATH_BOUNCE].bytes_read >
		   before.path[PLN_PATH_BOUNCE].bytes_read &&
		   strstr(stats().reason, "BAR1"),
		   "it was staged, and the reason is the full aperture");
	note("reason: %s", stats().reason);
	close(hold[1]);
	if (waitpid(child, &status, 0) != child || status)
		ok(false, "the other process ends well");
	before = stats();
	crc = 0;
	/* its space comes back when its pages are idle, which takes a moment */
	for (int i = 0; here && i < 200; i++) {
		before = stats();
		if (!whole(fh, out, big, MIB(8), 0))
			break;
		if (stats().path[PLN_PATH_P2P].bytes_read >
		    before.path[PLN_PATH_P2P].bytes_read) {
			crc = 1;
			break;
		}
		usleep(10000);
	}
	if (here)
		ok(crc, "when it has ended, reads are direct again");
	return finish();
}
