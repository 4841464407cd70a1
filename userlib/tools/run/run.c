// SPDX-License-Identifier: MIT
/* peerlane run: a program on Peerlane's CUDA runtime, however nvcc linked it. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define LIBRARY	"libpeerlane-cudart.so.0"

static const char usage[] =
"usage: peerlane run PROGRAM [ARG...]\n"
"\n"
"Runs a program of NVIDIA's CUDA runtime, 12 or 13, on Peerlane's, whether nvcc\n"
"linked the runtime in or not, and on whatever libcuda.so.1 the loader finds.\n"
"Programs that it starts run so, too.\n"
"\n"
"It sets three variables, each before what is there, and runs PROGRAM:\n"
"  LD_PRELOAD       " LIBRARY ", which has the runtime in it\n"
"  LD_AUDIT         the same, which leads programs and libraries there\n"
"  LD_LIBRARY_PATH  the folder of that, for libcudart.so.12 and .13\n"
"\n"
"The exit status is PROGRAM's; 126: it cannot be run, 127: it is not there.\n";

static const struct opt no_options[] = { { 0 } };

const struct command run_command = {
	.name = "run", .operands = "COMMAND",
	.what = "run a program of NVIDIA's CUDA runtime on Peerlane's runtime",
	.usage = usage, .options = no_options,
};

/* VARIABLE=@value, or @value:what-it-was */
static bool put_first(const char *variable, const char *value)
{
	const char *was = getenv(variable);
	char *all;

	if (asprintf(&all, was && *was ? "%s:%s" : "%s", value, was) < 0)
		return false;
	return !setenv(variable, all, 1);	/* @all: until the exec */
}

/* The same with a list of libraries, which the loader would load a second time */
static bool add(const char *variable, const char *library)
{
	const char *was = getenv(variable);
	size_t n = strlen(library);

	/* Between colons or, in LD_PRELOAD, blanks; strchr() finds the end, too */
	for (const char *s = was; s && (s = strstr(s, library)); s += n)
		if ((s == was || strchr(": ", s[-1])) && strchr(": ", s[n]))
			return true;
	return put_first(variable, library);
}

int cmd_run(int argc, char **argv)
{
	struct link_map *map;
	char *path, *folder;
	void *lib;

	if (argc < 2 || *argv[1] == '-') {
		if (argc < 2)
			complain("run needs a program");
		else
			complain("run has no option \"%s\"; a program of that name: ./%s",
				 argv[1], argv[1]);
		return EXIT_USAGE;
	}
	/* Where the loader finds it, which knows where this program looks */
	lib = dlopen(LIBRARY, RTLD_LAZY);
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		complain("%s; it lies beside peerlane, or in ../lib/peerlane",
			 dlerror());
		return EXIT_CANNOT_RUN;
	}
	path = realpath(map->l_name, NULL);
	if (path && strpbrk(path, ": ")) {
		complain("%s: the loader takes no library by a path with a blank or a colon in it; install it elsewhere",
			 path);
		return EXIT_CANNOT_RUN;
	}
	folder = path ? strndup(path, (size_t)(strrchr(path, '/') - path)) :
			NULL;
	if (!folder || !add("LD_PRELOAD", path) ||
	    !add("LD_AUDIT", path) ||
	    !put_first("LD_LIBRARY_PATH", folder)) {
		complain("run: %s", strerror(errno));
		return EXIT_CANNOT_RUN;
	}
	execvp(argv[1], argv + 1);
	complain("cannot run %s: %s", argv[1], strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
