// SPDX-License-Identifier: MIT
/* Options of the commands: getopt_long() and --help, from one table each. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

#define WIDTH	79

void fold(int column, int indent, const char *text)
{
	const char *end;
	bool first = true;

	for (text += strspn(text, " "); *text; text = end + strspn(end, " ")) {
		end = text + strcspn(text, " ");
		if (!first && column + 1 + (end - text) > WIDTH) {
			column = printf("\n%*s", indent, "") - 1;
			first = true;
		}
		column += printf("%s%.*s", first ? "" : " ", (int)(end - text),
				 text);
		first = false;
	}
	putchar('\n');
}

/* "-v, --verbose", "--file FILE, --in FILE" */
static void put_names(char *buf, size_t size, const struct opt *o)
{
	const char *space = o->arg ? " " : "", *arg = o->arg ? o->arg : "";
	size_t n = 0;

	if (o->letter)
		n = (size_t)snprintf(buf, size, "-%c, ", o->letter);
	n += (size_t)snprintf(buf + n, size - n, "--%s%s%s", o->name, space,
			      arg);
	if (o->alias)
		snprintf(buf + n, size - n, ", --%s%s%s", o->alias, space, arg);
}

void print_help(const struct command *c)
{
	const char *only = "";
	char names[2 * OPT_MAX_NAME];
	const struct opt *o;
	int indent = 0;

	fputs(c->usage, stdout);
	for (o = c->options; o->name; o++) {
		put_names(names, sizeof(names), o);
		if (indent < 4 + (int)strlen(names))
			indent = 4 + (int)strlen(names);
	}
	if (indent)
		putchar('\n');
	for (o = c->options; o->name; o++) {
		put_names(names, sizeof(names), o);
		if (o->only && strcmp(o->only, only)) {
			only = o->only;
			printf("For %s:\n", only);
		}
		fold(printf("  %-*s", indent - 2, names), indent, o->help);
	}
	if (c->after)
		printf("\n%s", c->after);
}

void say_usage(const struct command *c)
{
	fprintf(stderr, "peerlane %s --help shows the usage\n", c->name);
}

int next_option(const struct command *c, int argc, char **argv, uint32_t *seen)
{
	enum { HELP = 1, FIRST };
	struct option longs[2 * OPT_MAX + 2] = {
		{ "help", no_argument, NULL, HELP },
	};
	char letters[2 * OPT_MAX + 2] = "h", *letter = letters + 1;
	const struct opt *o;
	int n = 1, found;

	for (o = c->options; o->name; o++) {
		struct option *l = &longs[n++];

		l->name = o->name;
		l->has_arg = o->arg ? required_argument : no_argument;
		l->val = FIRST + (int)(o - c->options);
		if (o->alias) {
			longs[n] = *l;
			longs[n++].name = o->alias;
		}
		if (o->letter)
			*letter++ = o->letter;
		if (o->letter && o->arg)
			*letter++ = ':';
	}
	found = getopt_long(argc, argv, letters, longs, NULL);
	if (found == -1)
		return -1;
	if (found == 'h' || found == HELP) {
		print_help(c);
		exit(EXIT_OK);
	}
	for (o = c->options; o->name; o++)
		if (found == FIRST + (int)(o - c->options) ||
		    (o->letter && found == o->letter))
			break;
	if (!o->name)
		return '?';
	if (seen)
		*seen |= 1u << (o - c->options);
	return o->id;
}

bool options_are_for(const struct command *c, uint32_t seen, const char *part)
{
	const struct opt *o;

	for (o = c->options; o->name; o++) {
		if (!(seen & 1u << (o - c->options)) || !o->only ||
		    strstr(o->only, part))
			continue;
		complain("--%s is for %s, not for %s", o->name, o->only, part);
		return false;
	}
	return true;
}
