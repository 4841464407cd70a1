// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Feeds QEMU with lines of the qtest protocol, many at a time, and prints the answer to each.
 *
 *	qtest-feed 3>QTEST 4<QTEST <LINES >ANSWERS
 *
 * A line "engine-idle ID" is repeated until the engine of that device is idle; its answer is FAIL after a minute.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT 60		/* s for an engine */
#define IN_FLIGHT 4096		/* bytes of answers, which any pipe takes */
#define SHORT 64		/* more than an answer that is no data */

static FILE *to, *from;
static char *line, *answer;
static size_t line_room, answer_room;

static FILE *stream(int fd, const char *mode)
{
	FILE *f = fdopen(fd, mode);

	if (!f) {
		perror("qtest-feed");
		exit(1);
	}
	return f;
}

static void send_line(void)
{
	if (fputs(line, to) < 0) {
		perror("qtest-feed");
		exit(1);
	}
}

static void get_answer(void)
{
	do {
		if (fflush(to) || getline(&answer, &answer_room, from) < 0) {
			fprintf(stderr, "# QEMU died before the answer to: %s", line);
			exit(1);
		}
	} while (!strncmp(answer, "IRQ", 3));
}

static void print_answers(unsigned int n)
{
	while (n--) {
		get_answer();
		fputs(answer, stdout);
	}
}

static void wait_idle(void)
{
	time_t end = time(NULL) + LIMIT;

	for (get_answer(); !strcmp(answer, "OK 0\n"); get_answer()) {
		if (time(NULL) > end) {
			printf("FAIL after %d s: %s", LIMIT, line);
			return;
		}
		send_line();
	}
	fputs(answer, stdout);
}

int main(void)
{
	unsigned int n = 0;
	size_t bytes = 0;

	to = stream(3, "w");
	from = stream(4, "r");
	while (getline(&line, &line_room, stdin) > 0) {
		bool idle = !strncmp(line, "engine-idle ", 12);
		long data = 0;

		sscanf(line, "read %*s %li", &data);
		if (bytes + SHORT + 2 * data > IN_FLIGHT) {
			print_answers(n);
			n = bytes = 0;
		}
		send_line();
		n++;
		bytes += SHORT + 2 * data;
		if (idle) {
			print_answers(n - 1);
			wait_idle();
			n = bytes = 0;
		}
	}
	print_answers(n);
	return fflush(stdout) ? 1 : 0;
}
