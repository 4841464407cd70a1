// SPDX-License-Identifier: MIT
/*
 * Processes for tests of peerlane stats: what they have is not what it should be, or
 * they are forked.  Prints the number of each process and waits until its input ends.
 *
 *	stats_process good|text|writing|magic|version|size|pid|short
 *	stats_process fork	the library is open before the fork
 *	stats_process open	the child opens it after the fork
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cufile/page.h"

static void wait_for_end(void)
{
	char c;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		continue;
}

static void fake(const char *mode)
{
	static struct stats_page page = {
		.magic = STATS_MAGIC, .version = STATS_VERSION,
		.size = sizeof(page),
	};
	size_t size = sizeof(page);
	int fd = memfd_create(STATS_NAME, 0);

	page.pid = getpid();
	page.total.writes[PLN_PATH_P2P] = 7;
	page.total.bytes_written[PLN_PATH_P2P] = 7000;
	if (!strcmp(mode, "text")) {
		/* no end, and what a terminal would obey */
		memset(page.total.reason, '\033', sizeof(page.total.reason));
		prctl(PR_SET_NAME, "a\"\\\n\033[2J");
	}
	page.magic += !strcmp(mode, "magic");
	page.version += !strcmp(mode, "version");
	page.size += !strcmp(mode, "size");
	page.pid += !strcmp(mode, "pid");
	size -= !strcmp(mode, "short");
	page.total.writing = !strcmp(mode, "writing");
	if (fd < 0 || write(fd, &page, size) != (ssize_t)size)
		abort();
	wait_for_end();
}

static void call(void *lib, const char *name)
{
	struct { int err, cu; } (*f)(void);

	*(void **)&f = dlsym(lib, name);
	if (!f || f().err)
		abort();
}

static void family(bool child_opens)
{
	void *lib = dlopen("libcufile.so.0", RTLD_NOW);
	pid_t child;

	if (!lib)
		abort();
	call(lib, "cuFileDriverOpen");
	if (child_opens)
		call(lib, "cuFileDriverClose_v2");
	child = fork();
	if (!child) {
		if (child_opens)
			call(lib, "cuFileDriverOpen");
		wait_for_end();
		_exit(0);
	}
	wait_for_end();
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "good";

	if (!strcmp(mode, "fork") || !strcmp(mode, "open"))
		family(!strcmp(mode, "open"));
	else
		fake(mode);
	return 0;
}
