/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who gives a running wire commands: a line each over FOLDER/control, and a line
 * of JSON in return.
 */
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

static struct client {
	int fd;				/* 0: free */
	char line[WIRE_LINE_MAX];
	size_t used;
	bool skip;			/* the rest of a line that was too long */
	char *answer;
	size_t sent;
	struct wire_wait wait;
} clients[CONTROL_CLIENTS];

static void client_end(struct client *client)
{
	close(client->fd);
	free(client->answer);
	memset(client, 0, sizeof(*client));
}

static void client_write(struct client *client)
{
	while (client->answer) {
		size_t left = strlen(client->answer) - client->sent;
		ssize_t sent = send(client->fd, client->answer + client->sent, left, 0);

		if (sent < 0) {
			if (errno != EAGAIN)
				client_end(client);
			return;
		}
		client->sent += sent;
		if ((size_t)sent == left) {
			free(client->answer);
			client->answer = NULL;
			client->sent = 0;
		}
	}
}

static void client_answer(struct client *client, struct json_object *object)
{
	if (asprintf(&client->answer, "%s\n",
		     json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN)) < 0)
		client->answer = NULL;
	json_object_put(object);
	if (!client->answer)
		client_end(client);
	else
		client_write(client);
}

/* What is not would end a command early, or make its answer no JSON */
static bool plain(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((line[i] < 0x20 && line[i] != '\t' && line[i] != '\r') || line[i] > 0x7e)
			return false;
	return true;
}

/* The commands that have come, one after the other's answer */
static void client_commands(struct wire *wire, struct client *client)
{
	while (client->fd && !client->answer && !client->wait.path) {
		char *end = memchr(client->line, '\n', client->used);
		char line[WIRE_LINE_MAX];
		struct json_object *object;
		bool skip = client->skip;
		size_t len;

		if (!end) {
			if (!skip && client->used < sizeof(client->line))
				return;
			client->used = 0;
			client->skip = true;
			if (!skip)
				client_answer(client, command_refuse("a command of more than %u bytes",
								     WIRE_LINE_MAX - 1));
			return;
		}
		len = end - client->line;
		memcpy(line, client->line, len);
		line[len] = 0;
		client->used -= len + 1;
		memmove(client->line, end + 1, client->used);
		client->skip = false;
		if (skip)
			continue;
		if (!plain(line, len))
			object = command_refuse("a command is plain text: ASCII, and no control characters");
		else
			object = command_run(wire, &client->wait, line);
		if (object)
			client_answer(client, object);
	}
}

static void client_read(struct wire *wire, struct client *client)
{
	ssize_t len = recv(client->fd, client->line + client->used,
			   sizeof(client->line) - client->used, 0);

	if (len < 0 && errno == EAGAIN)
		return;
	if (len <= 0) {
		client_end(client);
		return;
	}
	client->used += len;
	client_commands(wire, client);
}

int control_open(struct wire *wire)
{
	struct sockaddr_un name;
	int err = wire_address(&name, wire->folder, "control", "");

	if (err)
		return err;
	wire->listener = wire_bind(SOCK_STREAM, &name);
	if (wire->listener < 0)
		return wire->listener;
	if (listen(wire->listener, CONTROL_CLIENTS))
		return -errno;
	return 0;
}

void control_close(struct wire *wire)
{
	struct sockaddr_un name;

	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (clients[i].fd)
			client_end(&clients[i]);
	if (wire->listener < 0)
		return;
	close(wire->listener);
	if (!wire_address(&name, wire->folder, "control", ""))
		unlink(name.sun_path);
}

unsigned int control_poll(struct wire *wire, struct pollfd *fds)
{
	bool room = false;

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *client = &clients[i];

		/* who does not take an answer is not read from */
		fds[i + 1].fd = client->fd ? client->fd : -1;
		fds[i + 1].events = client->answer ? POLLOUT :
			client->used < sizeof(client->line) ? POLLIN : 0;
		fds[i + 1].revents = 0;
		room = room || !client->fd;
	}
	fds[0].fd = room ? wire->listener : -1;
	fds[0].events = POLLIN;
	fds[0].revents = 0;
	return CONTROL_FDS;
}

void control_serve(struct wire *wire, const struct pollfd *fds, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++) {
		struct client *client = &clients[i - 1];

		if (!client->fd || fds[i].fd != client->fd || !fds[i].revents)
			continue;
		if (fds[i].revents & POLLOUT) {
			client_write(client);
			client_commands(wire, client);
		} else {
			client_read(wire, client);
		}
	}
	if (fds[0].revents) {
		int fd = accept4(wire->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		for (int i = 0; i < CONTROL_CLIENTS && fd >= 0; i++)
			if (!clients[i].fd) {
				clients[i].fd = fd;
				fd = -1;
			}
		if (fd >= 0)
			close(fd);
	}
}

uint64_t control_waits(struct wire *wire, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *client = &clients[i];

		/* behind a wait that is over may stand the next */
		while (client->wait.path) {
			struct json_object *object = command_waited(&client->wait, now);

			if (!object) {
				if (client->wait.until < next)
					next = client->wait.until;
				break;
			}
			client_answer(client, object);
			client_commands(wire, client);
		}
	}
	return next;
}
