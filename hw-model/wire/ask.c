/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peerlane-wire --ask: the other end of control.c.
 */
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "wire.h"

#define ASK_MORE	10	/* s that an answer may take beyond its own time */

static int ask_failed(const char *folder, const char *what)
{
	fprintf(stderr, "peerlane-wire: %s/control: %s%s\n", folder, what,
		errno == ENOENT || errno == ECONNREFUSED ? " (no wire runs there)" : "");
	return 2;
}

int control_ask(const char *folder, int argc, char **argv)
{
	struct timeval timeout = { .tv_sec = WIRE_WAIT_MAX + ASK_MORE };
	struct sockaddr_un name;
	char line[WIRE_LINE_MAX + 1], *answer = NULL;
	struct json_object *object = NULL, *error;
	size_t len = 0, size = 0;
	FILE *in;
	int fd, status = 2;

	for (int i = 0; i < argc; i++) {
		int more = snprintf(line + len, sizeof(line) - len, "%s%s", argv[i],
				    i + 1 < argc ? " " : "\n");

		if (strchr(argv[i], '\n') || more >= (int)(sizeof(line) - len)) {
			fprintf(stderr, "peerlane-wire: a command is one line of at most %u bytes\n",
				WIRE_LINE_MAX - 1);
			return 2;
		}
		len += more;
	}
	if (wire_address(&name, folder, "control", "")) {
		errno = ENAMETOOLONG;
		return ask_failed(folder, strerror(errno));
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return ask_failed(folder, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	signal(SIGPIPE, SIG_IGN);
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) ||
	    send(fd, line, len, 0) != (ssize_t)len) {
		ask_failed(folder, strerror(errno));
		close(fd);
		return 2;
	}
	in = fdopen(fd, "r");
	errno = 0;
	if (in && getline(&answer, &size, in) > 0)
		object = json_tokener_parse(answer);
	if (object) {
		fputs(answer, stdout);
		status = json_object_object_get_ex(object, "error", &error) ? 1 : 0;
		json_object_put(object);
	} else {
		ask_failed(folder, errno ? strerror(errno) : "the wire ended without an answer");
	}
	free(answer);
	if (in)
		fclose(in);
	else
		close(fd);
	return status;
}
