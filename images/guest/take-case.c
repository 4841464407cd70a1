/* SPDX-License-Identifier: MIT */
/*
 * take-case DRIVE: waits until a case is on the drive, and unpacks it into /.
 *
 * The drive's first sector is one line. "wait" means that the machine is to be
 * saved: this program prints "@ready" and looks again. What starts from the
 * snapshot has another drive, whose line is
 *	case SECONDS WAY
 * the time of day, and "snapshot" or "boot". A cpio archive (newc) follows.
 *
 * From here to the case's first line time counts for every guest. So this is one
 * program without shared libraries, which is running when the machine is saved:
 * the emulator translates each piece of code again after it was loaded, and a
 * shell script with cpio, date and grep took 0.2 s longer.
 */
#define _GNU_SOURCE	/* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECTOR		512
#define CHUNK		(256 * 1024)
#define RESEED_MS	60000
#define RESEED		"crng reseeded due to virtual machine fork"

struct header {		/* of an entry: magic, then 13 fields of 8 hex digits */
	char magic[6];
	char field[13][8];
};

enum { INO, MODE, UID, GID, NLINK, MTIME, SIZE, MAJ, MIN, RMAJ, RMIN, NAMESIZE };

struct link {		/* a file of several names, by its first one */
	struct link *next;
	unsigned long ino, dev;
	char name[];
};

static int drive;
static char *chunk;		/* what was read of the drive last */
static size_t have, used;
static struct link *links;

__attribute__((format(printf, 1, 2)))
static _Noreturn void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("init: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

static void more(void)
{
	ssize_t n = read(drive, chunk, CHUNK);

	if (n <= 0)
		fail("the drive ends in the middle of the case: %s",
		     n ? strerror(errno) : "no trailer");
	have = n;
	used = 0;
}

/* @size bytes of the archive to @to, or to the file @fd, or (NULL, -1) nowhere */
static void take(char *to, int fd, size_t size, const char *name)
{
	while (size) {
		size_t n;

		if (used == have)
			more();
		n = size < have - used ? size : have - used;
		if (to) {
			memcpy(to, chunk + used, n);
			to += n;
		} else if (fd >= 0) {
			ssize_t written = write(fd, chunk + used, n);

			if (written <= 0)
				fail("%s: %s", name, strerror(errno));
			n = written;
		}
		used += n;
		size -= n;
	}
}

static void skip_to_word(size_t size)
{
	take(NULL, -1, -size & 3, "");
}

static unsigned long number(const struct header *h, int field)
{
	char digits[9];

	memcpy(digits, h->field[field], 8);
	digits[8] = 0;
	return strtoul(digits, NULL, 16);
}

static void make_parents(char *name)
{
	for (char *p = strchr(name, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (*name && mkdir(name, 0755) && errno != EEXIST)
			fail("%s: %s", name, strerror(errno));
		*p = '/';
	}
}

/* True: @name is another name of a file that was unpacked before */
static bool linked(const struct header *h, const char *name)
{
	unsigned long ino = number(h, INO), dev = number(h, MAJ) << 20 | number(h, MIN);
	struct link *l;

	if (number(h, NLINK) < 2)
		return false;
	for (l = links; l; l = l->next)
		if (l->ino == ino && l->dev == dev) {
			if (link(l->name, name))
				fail("%s: %s", name, strerror(errno));
			return true;
		}
	l = malloc(sizeof(*l) + strlen(name) + 1);
	if (!l)
		fail("no memory");
	l->ino = ino;
	l->dev = dev;
	strcpy(l->name, name);
	l->next = links;
	links = l;
	return false;
}

static void unpack_file(const struct header *h, const char *name)
{
	size_t size = number(h, SIZE);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };
	int fd;

	if (unlink(name) && errno != ENOENT)
		fail("%s: %s", name, strerror(errno));
	fd = open(name, O_WRONLY | O_CREAT | (linked(h, name) ? 0 : O_EXCL), 0600);
	if (fd < 0)
		fail("%s: %s", name, strerror(errno));
	take(NULL, fd, size, name);
	times[1].tv_sec = number(h, MTIME);
	if (fchmod(fd, number(h, MODE) & 07777) || futimens(fd, times) || close(fd))
		fail("%s: %s", name, strerror(errno));
}

static void unpack_symlink(const struct header *h, const char *name)
{
	size_t size = number(h, SIZE);
	char target[PATH_MAX];

	if (size >= sizeof(target))
		fail("%s: its target has %zu bytes", name, size);
	take(target, -1, size, name);
	target[size] = 0;
	if ((unlink(name) && errno != ENOENT) || symlink(target, name))
		fail("%s: %s", name, strerror(errno));
}

/* False: that was the trailer */
static bool unpack_entry(void)
{
	char name[PATH_MAX];
	struct header h;
	size_t length;
	mode_t mode;

	take((char *)&h, -1, sizeof(h), "header");
	if (memcmp(h.magic, "070701", sizeof(h.magic)))
		fail("the case is no cpio archive of the new format");
	length = number(&h, NAMESIZE);
	if (!length || length > sizeof(name))
		fail("the case has a name of %zu bytes", length);
	take(name, -1, length, "name");
	name[length - 1] = 0;
	skip_to_word(sizeof(h) + length);
	if (!strcmp(name, "TRAILER!!!"))
		return false;
	mode = number(&h, MODE);
	make_parents(name);
	if (S_ISREG(mode)) {
		unpack_file(&h, name);
	} else if (S_ISLNK(mode)) {
		unpack_symlink(&h, name);
	} else if (S_ISDIR(mode)) {
		if (mkdir(name, mode & 07777) && errno != EEXIST)
			fail("%s: %s", name, strerror(errno));
	} else {
		fail("%s: neither file, folder nor symbolic link", name);
	}
	skip_to_word(number(&h, SIZE));
	return true;
}

/*
 * Guests of one snapshot would draw the same random numbers. QEMU tells each that
 * it is another one (vmgenid), and the kernel mixes that in and logs it.
 */
static void wait_for_reseed(int kmsg)
{
	struct pollfd p = { .fd = kmsg, .events = POLLIN };
	char record[8192];

	for (;;) {
		ssize_t n = read(kmsg, record, sizeof(record) - 1);

		if (n > 0) {
			record[n] = 0;
			if (strstr(record, RESEED))
				return;
		} else if (n < 0 && errno == EAGAIN) {
			if (poll(&p, 1, RESEED_MS) <= 0)
				break;
		} else if (n == 0 || errno != EPIPE) {	/* EPIPE: records were overwritten */
			break;
		}
	}
	fail("the kernel has not noticed that it runs from a snapshot");
}

int main(int argc, char **argv)
{
	struct timespec now = { 0 }, pause = { .tv_nsec = 10000000 };
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	bool asked = false;
	char way[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc != 2)
		fail("usage: take-case DRIVE");
	/* Not through the page cache: what is on the drive changes */
	drive = open(argv[1], O_RDONLY | O_DIRECT);
	chunk = aligned_alloc(4096, CHUNK);
	if (drive < 0 || !chunk)
		fail("%s: %s", argv[1], strerror(errno));
	/* QEMU's announcement comes after the machine was saved */
	if (kmsg < 0 || lseek(kmsg, 0, SEEK_END) < 0)
		fail("/dev/kmsg: %s", strerror(errno));
	while (pread(drive, chunk, SECTOR, 0) == SECTOR && !strncmp(chunk, "wait", 4)) {
		if (!asked)
			puts("@ready");
		asked = true;
		nanosleep(&pause, NULL);
	}
	chunk[SECTOR - 1] = 0;
	if (sscanf(chunk, "case %ld %15s", &now.tv_sec, way) != 2)
		fail("the drive with the case begins with something else: %.40s", chunk);
	if (clock_settime(CLOCK_REALTIME, &now))
		fail("the time of day cannot be set: %s", strerror(errno));
	if (chdir("/") || lseek(drive, SECTOR, SEEK_SET) < 0)
		fail("%s: %s", argv[1], strerror(errno));
	while (unpack_entry())
		;
	if (!strcmp(way, "snapshot"))
		wait_for_reseed(kmsg);
	return 0;
}
