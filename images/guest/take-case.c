/* SPDX-License-Identifier: MIT */
/*
 * take-case [-w] DEVICE [COMMAND…]: waits until a case is in the memory of a PCI device, its
 * BAR 2, unpacks it into /, removes the device, and goes on as COMMAND, with $CASE_FAILED
 * after a failure. DEVICE is its folder in sysfs.
 *
 * The first 512 bytes are one line. "wait" means that the machine is to be saved: this
 * program prints "@ready" and looks again. What starts from the snapshot has other
 * contents there, whose line is
 *	case SECONDS RANDOM SIZE
 * the time of day, 64 hexadecimal digits for the kernel's random numbers, and the size
 * of the cpio archive (newc) that follows. With -w it only asks: does it have to wait?
 *
 * From here to the case's first line time counts for every guest, and nearly all of it
 * goes into translating code that runs for the first time since the machine was loaded.
 * So this is one program without shared libraries, which is running when the machine is
 * saved, and it needs neither a driver nor an interrupt.
 */
#define _GNU_SOURCE	/* O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/random.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE		512	/* and what stands before the archive */
#define RANDOM		32
#define COMMAND		4	/* in the configuration space: what the device decodes */

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

static const char *archive;
static size_t left;		/* of it */
static struct link *links;
static char **command;		/* or a NULL */

static _Noreturn void leave(int status)
{
	if (*command) {
		if (status)
			setenv("CASE_FAILED", "1", 1);
		execv(*command, command);
	}
	exit(status);
}

__attribute__((format(printf, 1, 2)))
static _Noreturn void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("init: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	leave(1);
}

/* The next @size bytes of the archive */
static const char *take(size_t size)
{
	const char *taken = archive;

	if (size > left)
		fail("the case ends in the middle: no trailer");
	archive += size;
	left -= size;
	return taken;
}

static void skip_to_word(size_t size)
{
	take(-size & 3);
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
	const char *data = take(size);
	int fd;

	if (unlink(name) && errno != ENOENT)
		fail("%s: %s", name, strerror(errno));
	fd = open(name, O_WRONLY | O_CREAT | (linked(h, name) ? 0 : O_EXCL), 0600);
	if (fd < 0)
		fail("%s: %s", name, strerror(errno));
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written <= 0)
			fail("%s: %s", name, strerror(errno));
		data += written;
		size -= written;
	}
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
	memcpy(target, take(size), size);
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

	memcpy(&h, take(sizeof(h)), sizeof(h));
	if (memcmp(h.magic, "070701", sizeof(h.magic)))
		fail("the case is no cpio archive of the new format");
	length = number(&h, NAMESIZE);
	if (!length || length > sizeof(name))
		fail("the case has a name of %zu bytes", length);
	memcpy(name, take(length), length);
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
 * Guests of one snapshot would draw the same random numbers. Not by QEMU's vmgenid:
 * then each would have to wait until the kernel's ACPI has noticed it.
 */
static void seed(const char *digits)
{
	struct {
		struct rand_pool_info info;
		unsigned char bytes[RANDOM];
	} random = { .info = { .entropy_count = 8 * RANDOM, .buf_size = RANDOM } };
	int fd = open("/dev/urandom", O_WRONLY);

	for (int i = 0; i < RANDOM; i++)
		if (sscanf(digits + 2 * i, "%2hhx", &random.bytes[i]) != 1)
			fail("the case has no random number: %s", digits);
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &random) || ioctl(fd, RNDRESEEDCRNG) || close(fd))
		fail("/dev/urandom: %s", strerror(errno));
}

/* The guest is as if there had been no such device: its place among the addresses is free */
static void drop_device(int device)
{
	int config = openat(device, "config", O_WRONLY), remove = openat(device, "remove", O_WRONLY);
	static const char no_decoding[2];

	if (config < 0 || pwrite(config, no_decoding, sizeof(no_decoding), COMMAND) != sizeof(no_decoding) ||
	    remove < 0 || write(remove, "1", 1) != 1 || close(config) || close(remove))
		fail("the device with the case cannot be removed: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct timespec now = { 0 }, pause = { .tv_nsec = 10000000 };
	char line[LINE], digits[2 * RANDOM + 1];
	bool ask = argc > 1 && !strcmp(argv[1], "-w");
	const char *memory, *name = argv[1 + ask];
	int device, fd;
	struct stat file;
	size_t size;

	setvbuf(stdout, NULL, _IONBF, 0);
	command = argv + (name ? 2 + ask : argc);
	if (!name || *name != '/' || (ask && *command))
		fail("usage: take-case [-w] DEVICE [COMMAND...]");
	device = open(name, O_PATH | O_DIRECTORY);
	if (device < 0)
		fail("%s: %s", name, strerror(errno));
	fd = openat(device, "resource2", O_RDONLY);
	if (fd < 0 || fstat(fd, &file) || file.st_size < LINE)
		fail("%s/resource2: %s", name, fd < 0 ? strerror(errno) : "too small");
	memory = mmap(NULL, LINE, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("%s/resource2: %s", name, strerror(errno));
	if (ask)
		return strncmp(memory, "wait", 4) != 0;
	if (!strncmp(memory, "wait", 4))
		puts("@ready");
	while (!strncmp(memory, "wait", 4))
		nanosleep(&pause, NULL);
	memcpy(line, memory, LINE);
	line[LINE - 1] = 0;
	if (sscanf(line, "case %ld %64s %zu", &now.tv_sec, digits, &size) != 3)
		fail("the case begins with something else: %.40s", line);
	if (size > (size_t)file.st_size - LINE)
		fail("the case has %zu bytes, and there is room for %zu", size, (size_t)file.st_size - LINE);
	memory = mmap(NULL, LINE + size, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("%s/resource2: %s", name, strerror(errno));
	archive = memory + LINE;
	left = size;
	if (clock_settime(CLOCK_REALTIME, &now))
		fail("the time of day cannot be set: %s", strerror(errno));
	seed(digits);
	if (chdir("/"))
		fail("/: %s", strerror(errno));
	while (unpack_entry())
		;
	drop_device(device);
	leave(0);
}
