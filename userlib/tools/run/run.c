// SPDX-License-Identifier: MIT
/* peerlane run: a program on Peerlane's CUDA runtime, however nvcc linked it. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "tool.h"

/* Whether the first @n bytes of @entry are the path of a library of this name */
static bool is_library(const char *entry, size_t n)
{
	size_t m = strlen("/" RUN_LIBRARY);

	return n >= m && !memcmp(entry + n - m, "/" RUN_LIBRARY, m);
}

/* Takes the first entry from the list @all that is @folder, of @n bytes */
static void take_folder(char *all, const char *folder, size_t n)
{
	char *end;

	for (char *s = all; *s; s = *end ? end + 1 : end) {
		end = strchrnul(s, ':');
		if ((size_t)(end - s) == n && !memcmp(s, folder, n)) {
			memmove(s, *end ? end + 1 : end,
				strlen(*end ? end + 1 : end) + 1);
			return;
		}
	}
}

/*
 * Takes what another run, of any installation, has put into the lists: its library
 * from @all, and the folder of that from @folders, or NULL.  Two auditors would both
 * lead a program over, and libraries of two installations would meet in it.
 */
static void take_other(char *all, const char *between, char *folders)
{
	char *s = all;
	size_t n;

	while (*s) {
		n = strcspn(s, between);
		if (!is_library(s, n)) {
			s += n + !!s[n];
			continue;
		}
		if (folders)
			take_folder(folders, s,
				    n - strlen("/" RUN_LIBRARY));
		memmove(s, s + n + !!s[n], strlen(s + n + !!s[n]) + 1);
	}
}

/* A copy of the variable's value that may be changed; NULL: no memory */
static char *value_of(const char *variable)
{
	const char *was = getenv(variable);

	return strdup(was ? was : "");
}

/* VARIABLE=@first, or @first:@rest */
static bool set(const char *variable, const char *first, const char *rest)
{
	char *all;

	if (asprintf(&all, *rest ? "%s:%s" : "%s", first, rest) < 0)
		return false;
	return !setenv(variable, all, 1);	/* @all: until the exec */
}

/* The variables as if no other run had set them, and then as this one does */
static bool set_variables(const char *path, const char *folder)
{
	char *preload = value_of("LD_PRELOAD"), *audit = value_of("LD_AUDIT");
	char *folders = value_of("LD_LIBRARY_PATH");

	if (!preload || !audit || !folders)
		return false;
	take_other(preload, ": ", folders);
	take_other(audit, ":", NULL);
	return set("LD_PRELOAD", path, preload) &&
	       set("LD_AUDIT", path, audit) &&
	       set("LD_LIBRARY_PATH", folder, folders);
}

/* Where this program lies itself, or in @place from there; NULL: it is not there */
static char *beside(const char *place)
{
	char *self = realpath("/proc/self/exe", NULL), *at, *path = NULL;

	if (self)
		*strrchr(self, '/') = '\0';
	if (self && asprintf(&at, "%s/%s/" RUN_LIBRARY, self, place) >= 0) {
		path = realpath(at, NULL);
		free(at);
	}
	free(self);
	return path;
}

/*
 * The loader is asked last: below another run it knows a library of that name, which
 * may be of another installation.
 */
static char *find_library(void)
{
	static const char *const places[] = { ".", "../lib", "../lib/peerlane" };
	struct link_map *map;
	char *path = NULL;
	void *lib;

	for (size_t i = 0; !path && i < sizeof(places) / sizeof(*places); i++)
		path = beside(places[i]);
	if (path)
		return path;
	lib = dlopen(RUN_LIBRARY, RTLD_LAZY);
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		complain("%s; it must be in the folder of peerlane, or in "
		  "../lib/peerlane",
			 dlerror());
		return NULL;
	}
	path = realpath(map->l_name, NULL);
	if (!path)
		complain("run: %s", strerror(errno));
	return path;
}

int cmd_run(int argc, char **argv)
{
	char *path, *folder;

	if (argc < 2 || *argv[1] == '-') {
		if (argc < 2)
			complain("run needs a program");
		else
			complain("run has no option \"%s\"; a program of that name: ./%s",
				 argv[1], argv[1]);
		return EXIT_USAGE;
	}
	path = find_library();
	if (!path)
		return EXIT_CANNOT_RUN;
	if (strpbrk(path, ": ")) {
		complain("%s: the loader accepts no path with a blank or a "
		  "colon; install it elsewhere",
			 path);
		return EXIT_CANNOT_RUN;
	}
	folder = strndup(path, (size_t)(strrchr(path, '/') - path));
	if (!folder || !set_variables(path, folder)) {
		complain("run: %s", strerror(errno));
		return EXIT_CANNOT_RUN;
	}
	execvp(argv[1], argv + 1);
	complain("cannot run %s: %s", argv[1], strerror(errno));
	return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
