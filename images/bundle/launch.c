// SPDX-License-Identifier: MIT
/*
 * Starts the programs of a bundle, which bring their C library and the loader of it,
 * from wherever the bundle lies.  It is linked statically and stands for each of them
 * by a symbolic link with the program's name:
 *
 *	bin/peerlane-NAME	the script scenarios/NAME
 *	any other		libexec/bin/NAME
 *
 * The kernel knows a loader by a fixed path, and a script's shell too; so both are
 * started here, by name.  Of the environment what would change the loader goes, and a
 * script finds the bundle's tools alone.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#ifdef __aarch64__
#define LOADER		"ld-linux-aarch64.so.1"
#else
#define LOADER		"ld-linux-x86-64.so.2"
#endif

static char root[PATH_MAX];

static char *below(const char *what, const char *name)
{
	char *path = malloc(strlen(root) + strlen(what) + strlen(name) + 1);

	if (!path) {
		perror("peerlane");
		exit(126);
	}
	strcat(strcat(strcpy(path, root), what), name);
	return path;
}

static void find_root(void)
{
	ssize_t n = readlink("/proc/self/exe", root, sizeof(root) - 1);
	int i;

	if (n < 0) {
		fprintf(stderr, "peerlane: /proc/self/exe: %s (is /proc mounted?)\n", strerror(errno));
		exit(126);
	}
	root[n] = '\0';
	/* libexec/launch */
	for (i = 0; i < 2; i++) {
		char *slash = strrchr(root, '/');

		if (slash)
			*slash = '\0';
	}
	/* they separate folders, or stand for something, in lists of them */
	if (strpbrk(root, ":;$\n")) {
		fprintf(stderr, "peerlane: the folder %s has a character of :;$ in its name; move it\n", root);
		exit(126);
	}
}

int main(int argc, char **argv)
{
	static const char *const loaders[] = {
		"LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_PROFILE", "LD_DEBUG", "LD_BIND_NOW",
		"GLIBC_TUNABLES", "LD_SHOW_AUXV", "LD_TRACE_LOADED_OBJECTS", "LD_WARN",
	};
	const char *name = (const char *)getauxval(AT_EXECFN);
	const char *script = NULL;
	char **args = calloc(argc + 8, sizeof(*args));
	int n = 0, i;

	if (!args || !name || argc < 1) {
		fprintf(stderr, "peerlane: nothing to start\n");
		return 126;
	}
	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	find_root();
	for (i = 0; i < (int)(sizeof(loaders) / sizeof(*loaders)); i++)
		unsetenv(loaders[i]);
	if (!strncmp(name, "peerlane-", 9) && access(below("/libexec/bin/", name), X_OK)) {
		script = below("/scenarios/", name + 9);
		if (access(script, R_OK)) {
			fprintf(stderr, "peerlane: there is no program %s: bin/ has their names\n", name);
			return 127;
		}
		name = "sh";
		if (setenv("PATH", below("/libexec/tools", ""), 1)) {
			perror("peerlane");
			return 126;
		}
	}
	args[n++] = below("/libexec/lib/", LOADER);
	args[n++] = "--inhibit-cache";
	args[n++] = "--library-path";
	args[n++] = below("/libexec/lib", "");
	args[n++] = "--argv0";
	args[n++] = script ? "sh" : argv[0];
	args[n++] = below("/libexec/bin/", name);
	if (script)
		args[n++] = (char *)script;
	for (i = 1; i <= argc; i++)
		args[n++] = argv[i];	/* NULL, too */
	execv(args[0], args);
	fprintf(stderr, "peerlane: cannot start %s: %s\n", args[0], strerror(errno));
	return 126;
}
