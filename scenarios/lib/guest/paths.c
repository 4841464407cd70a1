/* SPDX-License-Identifier: MIT */
/*
 * paths.so: preloaded into the programs of scenarios/try.  When one ends by exit(), and
 * has libcufile, it says in a line for each path how many bytes took it, and why not a
 * better one: PROGRAM, "read" or "write", path, bytes, errors, reason, with tabs between.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <peerlane/file.h>
#include <stdio.h>
#include <unistd.h>

#define SAID "/tmp/paths"

static void say(const char *what, const char *path, uint64_t bytes, const struct pln_file_stats *stats, int why)
{
	char line[PLN_FILE_REASON_MAX + 512];
	int fd, i, n;

	n = snprintf(line, sizeof(line), "%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t", program_invocation_short_name,
		     what, path, bytes, stats->errors);
	if (n < 0 || n >= (int)sizeof(line) - PLN_FILE_REASON_MAX - 1)
		return;
	for (i = 0; why && i < PLN_FILE_REASON_MAX && stats->reason[i]; i++)
		line[n++] = stats->reason[i] == '\t' || stats->reason[i] == '\n' ? ' ' : stats->reason[i];
	line[n++] = '\n';
	fd = open(SAID, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		fprintf(stderr, "paths: %s: a line is lost\n", SAID);
	close(fd);
}

static void __attribute__((destructor)) leave(void)
{
	void *cufile = dlopen("libcufile.so.0", RTLD_LAZY | RTLD_NOLOAD);
	struct pln_file_stats stats = { .size = sizeof(stats) };
	int (*get)(void *handle, struct pln_file_stats *stats);
	const char *(*name)(unsigned int path);
	unsigned int i, lines = 0;

	if (!cufile)
		return;
	*(void **)&get = dlsym(cufile, "pln_file_stats");
	*(void **)&name = dlsym(cufile, "pln_path_name");
	/* a child has nothing of its own */
	if (!get || !name || get(NULL, &stats))
		return;
	for (i = 0; i < PLN_PATH_COUNT; i++) {
		int direct = i == PLN_PATH_P2P || i == PLN_PATH_KERNEL;

		if (stats.path[i].bytes_read)
			say("read", name(i), stats.path[i].bytes_read, &stats, !direct);
		if (stats.path[i].bytes_written)
			say("write", name(i), stats.path[i].bytes_written, &stats, !direct);
		lines += stats.path[i].bytes_read || stats.path[i].bytes_written;
	}
	if (!lines && stats.errors)
		say("-", "none", 0, &stats, 1);
}
