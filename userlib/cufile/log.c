// SPDX-License-Identifier: MIT
/* Log lines, and what the kernel said. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "internal.h"

static int log_level = PLN_LOG_ERROR;
static char log_file[256];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

int pln_log_parse_level(const char *name)
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
		return PLN_LOG_INFO;
	if (!strcasecmp(name, "trace"))
		return PLN_LOG_DEBUG;
	return -1;
}

void pln_log_setup(int level, const char *file)
{
	pthread_mutex_lock(&log_lock);
	log_level = level;
	snprintf(log_file, sizeof(log_file), "%s", file ? file : "");
	pthread_mutex_unlock(&log_lock);
}

void pln_log(int level, const char *fmt, ...)
{
	static const char *const names[] = { "notice", "error", "warning",
					     "info", "debug" };
	char line[PLN_REASON_MAX + 256];
	int n, fd = STDERR_FILENO, saved = errno;
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
	if (fd < 0)
		fd = STDERR_FILENO;
	/* a log line that cannot be written is lost, on purpose */
	if (write(fd, line, strlen(line)) < 0)
		errno = saved;
	if (fd != STDERR_FILENO)
		close(fd);
	pthread_mutex_unlock(&log_lock);
	errno = saved;
}

bool pln_kernel_words(const char *gpu_bdf, char *out, size_t size)
{
	char rec[4096], near[PLN_REASON_MAX] = "";
	const char *path = getenv("PEERLANE_KMSG");
	bool found = false, exact = false;
	ssize_t n;
	int fd, turns;

	fd = open(path ? path : "/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* one record for each read, oldest first; EPIPE: some were overwritten */
	for (turns = 0; turns < 1 << 17; turns++) {
		char *text, *end;

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
		if (gpu_bdf[0] && strcasestr(text, gpu_bdf)) {
			snprintf(out, size, "%s", text);
			exact = found = true;
		} else {
			snprintf(near, sizeof(near), "%s", text);
			found = true;
		}
	}
	close(fd);
	if (found && !exact)
		snprintf(out, size, "%s", near);
	return found;
}
