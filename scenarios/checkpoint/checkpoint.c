// SPDX-License-Identifier: MIT
/*
 * Checkpoints of a job of several processes, each with a shard in GPU memory:
 *
 *	checkpoint DIR restore	load the newest, and tell the host which it is
 *	checkpoint DIR run	make one after the other, until the power is cut
 *
 * A file is durable when it was written under another name, synced, renamed, and its
 * folder synced.  A checkpoint is durable when its manifest is, which is made last;
 * then it is promised to the host.  At each step the host may cut the power:
 * "part" of a shard is written, a file is "written", "synced" or "renamed", or a
 * checkpoint "promised".
 */
#include <dirent.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "guest.h"

#define SHARDS	8
#define SIZE	KIB(512)
#define MOST	500			/* generations */

static const char *dir;
static uint64_t data[SIZE / 8];

/* The shard that a process has computed */
static uint32_t fill(unsigned int generation, unsigned int shard)
{
	uint64_t x = generation * 0x9e3779b97f4a7c15ull + shard + 1;

	for (size_t i = 0; i < SIZE / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = x;
	}
	return crc32c(0, data, SIZE);
}

/* One process at a time speaks with the host. */
static void tell(const char *what, unsigned int n, const char *more)
{
	int fd = must_open("/tmp/host.lock", O_RDWR | O_CREAT);

	if (flock(fd, LOCK_EX))
		die("flock");
	host_must("%s %u %s", what, n, more);
	close(fd);
	if (guest_failed)
		exit(1);
}

static void name_of(char *name, size_t len, const char *what, unsigned int n)
{
	snprintf(name, len, "%s/%s.%u", dir, what, n);
}

static void shard_name(char *name, size_t len, unsigned int shard, unsigned int n)
{
	char what[32];

	snprintf(what, sizeof(what), "shard%u", shard);
	name_of(name, len, what, n);
}

static void sync_dir(void)
{
	int fd = must_open(dir, O_RDONLY | O_DIRECTORY);

	if (fsync(fd))
		die("fsync of the folder");
	close(fd);
}

/* @fd of the file @name.new is written. */
static void make_durable(int fd, const char *name, unsigned int n)
{
	char new[300];

	snprintf(new, sizeof(new), "%s.new", name);
	tell("step", n, "written");
	if (fsync(fd))
		die("fsync");
	tell("step", n, "synced");
	if (rename(new, name))
		die("rename");
	tell("step", n, "renamed");
	sync_dir();
	close(fd);
}

static int new_file(const char *name, int flags)
{
	char new[300];

	snprintf(new, sizeof(new), "%s.new", name);
	return must_open(new, O_RDWR | O_CREAT | O_TRUNC | flags);
}

static int write_shard(unsigned int generation, unsigned int shard)
{
	CUfileHandle_t fh;
	char name[256];
	gpu_ptr gpu;
	int fd;

	gpu_open();
	gpu = gpu_alloc(SIZE);
	fill(generation, shard);
	if (cuMemcpyHtoD_v2(gpu, data, SIZE))
		die("cuMemcpyHtoD");
	shard_name(name, sizeof(name), shard, generation);
	fd = new_file(name, 0);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	fh = must_reg(fd, name);
	for (size_t at = 0; at < SIZE; at += SIZE / 4) {
		if (cuFileWrite(fh, addr(gpu), SIZE / 4, (off_t)at, (off_t)at) !=
		    (ssize_t)(SIZE / 4))
			die("cuFileWrite");
		tell("step", generation,
		     at + SIZE / 4 < SIZE ? "part" : "written");
	}
	make_durable(fd, name, generation);
	cuFileHandleDeregister(fh);
	cuFileDriverClose();
	return guest_failed;
}

static void write_manifest(unsigned int generation)
{
	char name[256], text[SHARDS * 16];
	int fd, n = 0;

	for (unsigned int i = 0; i < SHARDS; i++)
		n += sprintf(text + n, "%08x\n", fill(generation, i));
	name_of(name, sizeof(name), "checkpoint", generation);
	fd = new_file(name, 0);
	if (write(fd, text, (size_t)n) != n)
		die("write");
	make_durable(fd, name, generation);
}

static void forget(unsigned int generation)
{
	char name[256];

	name_of(name, sizeof(name), "checkpoint", generation);
	unlink(name);
	for (unsigned int i = 0; i < SHARDS; i++) {
		shard_name(name, sizeof(name), i, generation);
		unlink(name);
	}
}

static unsigned int newest(void)
{
	unsigned int n, most = 0;
	struct dirent *e;
	DIR *d = opendir(dir);
	int end;

	if (!d)
		die(dir);
	while ((e = readdir(d))) {
		end = 0;
		if (sscanf(e->d_name, "checkpoint.%u%n", &n, &end) == 1 &&
		    !e->d_name[end] && n > most)
			most = n;
	}
	closedir(d);
	return most;
}

static int restore(void)
{
	unsigned int generation = newest(), right = 0, crc, i;
	char name[256], count[16];
	CUfileHandle_t fh;
	gpu_ptr gpu;
	FILE *f;
	int fd;

	gpu_open();
	gpu = gpu_alloc(SIZE);
	if (cuFileDriverOpen().err)
		die("cuFileDriverOpen");
	name_of(name, sizeof(name), "checkpoint", generation);
	f = generation ? fopen(name, "r") : NULL;
	for (i = 0; f && i < SHARDS; i++) {
		if (fscanf(f, "%x", &crc) != 1 || crc != fill(generation, i))
			continue;
		shard_name(name, sizeof(name), i, generation);
		fd = open(name, O_RDONLY);
		if (fd < 0)
			continue;
		fh = must_reg(fd, name);
		right += cuFileRead(fh, addr(gpu), SIZE, 0, 0) == (ssize_t)SIZE &&
			 gpu_crc(gpu, SIZE) == crc;
		cuFileHandleDeregister(fh);
		close(fd);
	}
	if (f)
		fclose(f);
	cuFileDriverClose();
	snprintf(count, sizeof(count), "%u", right);
	tell("restored", generation, count);
	ok(right == (generation ? SHARDS : 0), "checkpoint %u: %u of its shards are right",
	   generation, right);
	return finish();
}

static int run(void)
{
	unsigned int generation = newest(), i;
	int status;

	while (++generation <= MOST) {
		for (i = 0; i < SHARDS; i++) {
			pid_t pid = fork();

			if (pid < 0)
				die("fork");
			if (!pid)
				_exit(write_shard(generation, i));
		}
		for (i = 0; i < SHARDS; i++)
			if (wait(&status) < 0 || status) {
				ok(false, "a process ended with status %x", status);
				return finish();
			}
		write_manifest(generation);
		tell("promise", generation, "promised");
		if (generation > 2)
			forget(generation - 2);
	}
	ok(false, "nobody has cut the power");
	return finish();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	dir = argv[1];
	return !strcmp(argv[2], "run") ? run() : restore();
}
