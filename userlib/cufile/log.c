// SPDX-License-Identifier: MIT
/* Log lines, and what the kernel said. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "internal.h"

static int log_level = LOG_ERROR;
/* The name is written where it is not in force, so that a child has a whole one */
static char names_of_file[2][sizeof(config.text[0]) + 16];
static char *_Atomic log_file = names_of_file[0];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

int log_parse_level(const char *name)
{
	static const char *const names[] = {
		"off", "error", "warn", "info", "debug",
	};
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(name, names[i]) ||
		    (name[0] == (char)('0' + i) && !name[1]))
			return (int)i;
	/* NVIDIA's further names */
	if (!strcasecmp(name, "notice"))
		return LOG_INFO;
	if (!strcasecmp(name, "trace"))
		return LOG_DEBUG;
	return -1;
}

void log_setup(int level, const char *file)
{
	char *name;

	pthread_mutex_lock(&log_lock);
	log_level = level;
	name = names_of_file[log_file == names_of_file[0]];
	snprintf(name, sizeof(names_of_file[0]), "%s", file ? file : "");
	log_file = name;
	pthread_mutex_unlock(&log_lock);
}

void log_forked(void)
{
	pthread_mutex_init(&log_lock, NULL);
}

void log_line(int level, const char *fmt, ...)
{
	static const char *const names[] = { "notice", "error", "warning",
					     "info", "debug" };
	char line[sizeof(config.no_effect) + 256];
	int n, fd = -1, saved = errno;
	va_list ap;

	if (!log_level || level > log_level)
		return;
	n = snprintf(line, sizeof(line), "peerlane: %s: ", names[level]);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	pthread_mutex_lock(&log_lock);
	if (log_file[0])
		fd = open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			  0644);
	/* a log line that cannot be written is lost, on purpose */
	if (write(fd < 0 ? STDERR_FILENO : fd, line, strlen(line)) < 0)
		errno = saved;
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&log_lock);
	errno = saved;
}

static const char *kmsg(void)
{
	const char *path = secure_getenv("PEERLANE_KMSG");

	return path ? path : "/dev/kmsg";
}

int log_kernel_now(void)
{
	int fd = open(kmsg(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* Is there in @text the PCI address of a device that @link leads through? */
static bool names_device(const char *text, const char *link)
{
	const char *dot = text;
	char addr[13];	/* dddd:bb:dd.f */

	while ((dot = strchr(dot + 1, '.'))) {
		if (dot - text < 10 || dot[-3] != ':' || dot[-6] != ':')
			continue;
		snprintf(addr, sizeof(addr), "%s", dot - 10);
		if (strcasestr(link, addr))
			return true;
	}
	return false;
}

/*
 * The last words on peer-to-peer DMA that can be read from @fd, the best of them
 * those that name the GPU.  With @link those only that name it and the device.
 */
static bool read_words(int fd, const char *gpu_bdf, const char *link, char *out,
		       size_t size)
{
	bool found = false, exact = false, named;
	char rec[4096], *text, *end;
	unsigned int turns;
	ssize_t n;

	/* one record for each read, oldest first; EPIPE: some were overwritten */
	for (turns = 0; turns < 1 << 17; turns++) {
		n = read(fd, rec, sizeof(rec) - 1);
		if (n < 0 && (errno == EPIPE || errno == EINTR ||
			      errno == EINVAL))
			continue;
		if (n <= 0)
			break;
		rec[n] = '\0';
		text = strchr(rec, ';');
		if (!text)
			continue;
		text++;
		end = strchr(text, '\n');
		if (end)
			*end = '\0';
		if (!strcasestr(text, "peer-to-peer DMA") &&
		    !strcasestr(text, "p2pdma"))
			continue;
		if (strstr(text, "added peer-to-peer DMA memory"))
			continue;
		named = gpu_bdf[0] && strcasestr(text, gpu_bdf);
		if (link ? !named || !names_device(text, link) :
			   exact && !named)
			continue;
		snprintf(out, size, "%s", text);
		found = true;
		exact = named;
	}
	return found;
}

bool log_kernel_since(int since, const char *gpu_bdf, char *out, size_t size)
{
	return since >= 0 && read_words(since, gpu_bdf, NULL, out, size);
}

bool log_kernel_said(uint64_t dev, const char *gpu_bdf, char *out, size_t size)
{
	char path[64], link[512];
	ssize_t n;
	bool found;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(dev),
		 minor(dev));
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return false;
	link[n] = '\0';
	fd = open(kmsg(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	found = read_words(fd, gpu_bdf, link, out, size);
	close(fd);
	return found;
}
