// SPDX-License-Identifier: MIT
/* peerlane: the commands. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <peerlane/peerlane.h>

#include "tool.h"

#ifdef PEERLANE_STATIC
static int in_other(int argc, char **argv)
{
	(void)argc;
	complain("%s: this is the static program, which cannot load libraries such "
		 "as a GPU's driver: install the other one", argv[0]);
	return strcmp(argv[0], "run") ? EXIT_NO_GPU : EXIT_CANNOT_RUN;
}

#define WITH_LIBRARIES(run) in_other
#else
#define WITH_LIBRARIES(run) run
#endif

static const struct {
	const struct command *command;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ &io_command, WITH_LIBRARIES(cmd_io) },
	{ &copy_command, WITH_LIBRARIES(cmd_copy) },
	{ &stats_command, cmd_stats },
	{ &topo_command, cmd_topo },
	{ &doctor_command, cmd_doctor },
	{ &perf_command, WITH_LIBRARIES(cmd_perf) },
	{ &run_command, WITH_LIBRARIES(cmd_run) },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void usage(FILE *to)
{
	size_t i;

	fputs("usage: peerlane COMMAND [OPTION...]\n\n", to);
	for (i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-7s %s\n", commands[i].command->name,
			commands[i].command->what);
	fputs("\n"
	      "peerlane help COMMAND shows the options of a command, --describe all of them as\n"
	      "JSON, --version the version.  Exit status: 0 success, 1 a transfer failed, 3 no usable\n"
	      "GPU, 4 refused by strict mode, 5 data differs, 64 wrong usage, 65 an error in\n"
	      "a record, 66 the input cannot be read, 73 the output cannot be written; of\n"
	      "doctor 0 healthy, 1 degraded, 2 broken; of run the program's, 126 it cannot be\n"
	      "run, 127 it does not exist.\n", to);
}

static void put(struct json_object *o, const char *key, const char *text)
{
	if (text)
		json_object_object_add(o, key, json_object_new_string(text));
}

static struct json_object *describe_options(const struct opt *opt)
{
	struct json_object *all = json_object_new_array(), *o;

	for (; opt->name; opt++) {
		char letter[2] = { opt->letter };

		o = json_object_new_object();
		put(o, "name", opt->name);
		put(o, "letter", *letter ? letter : NULL);
		put(o, "alias", opt->alias);
		put(o, "arg", opt->arg);
		put(o, "only", opt->only);
		put(o, "help", opt->help);
		put(o, "more", opt->more);
		put(o, "words", opt->words);
		json_object_array_add(all, o);
	}
	return all;
}

/* Manual pages and completion are made from this. */
static void describe(void)
{
	struct json_object *all = json_object_new_array(), *o;
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		const struct command *c = commands[i].command;

		o = json_object_new_object();
		put(o, "name", c->name);
		put(o, "what", c->what);
		put(o, "parts", c->parts);
		put(o, "operands", c->operands);
		json_object_object_add(o, "options",
				       describe_options(c->options));
		json_object_array_add(all, o);
	}
	puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(all);
}

/* Its place in the table; -1: there is none */
static int find(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].command->name))
			return (int)i;
	complain("there is no command \"%s\"; peerlane --help has them", name);
	return -1;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* What was not written was not said: a full disk, or a closed output */
static void check_output(int status, void *unused)
{
	(void)unused;
	if (status || (!ferror(stdout) && !fflush(stdout)))
		return;
	complain("the output cannot be written: %s", strerror(errno));
	_exit(EXIT_NO_OUTPUT);
}

/*
 * A file that is opened must not become standard input or output.  Of what takes their
 * place, a read and a write fail as before.
 */
static bool fill_standard(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int i;

	/* there may be no place to say so */
	if (!fill_standard())
		return EXIT_NO_OUTPUT;
	on_exit(check_output, NULL);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--version")) {
		printf("peerlane %d.%d.%d\n", PLN_VERSION_MAJOR,
		       PLN_VERSION_MINOR, PLN_VERSION_PATCH);
		return EXIT_OK;
	}
	if (!strcmp(name, "--describe")) {
		describe();
		return EXIT_OK;
	}
	if (is_help(name) || (!strcmp(name, "help") && argc == 2)) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(name, "help")) {
		i = find(argv[2]);
		if (i < 0)
			return EXIT_USAGE;
		print_help(commands[i].command);
		return EXIT_OK;
	}
	i = find(name);
	if (i < 0)
		return EXIT_USAGE;
	if (argc > 2 && is_help(argv[2])) {
		print_help(commands[i].command);
		return EXIT_OK;
	}
	return commands[i].run(argc - 1, argv + 1);
}
