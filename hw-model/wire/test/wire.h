/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of the wire: hosts without QEMU.  A test starts a wire in the
 * current folder's "w", and is all of its hosts.
 */
#ifndef TEST_WIRE_H
#define TEST_WIRE_H

#include <errno.h>
#include <json-c/json.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOSTS	3
#define FRAME	9018
#define TRAIN	69632
#define BOUND	10000	/* ms that anything may take */

static const char *wire_program;
static pid_t wire_pid;
static int host[HOSTS];
static int checks, failures;

static void check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void check(bool ok, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	failures += !ok;
	printf("%s %d - ", ok ? "ok" : "not ok", ++checks);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
}

static void check_eq(const char *what, uint64_t want, uint64_t got)
{
	check(want == got, "%s", what);
	if (want != got)
		printf("# want: %llu\n# got:  %llu\n", (unsigned long long)want,
		       (unsigned long long)got);
}

static void die(const char *what)
{
	printf("not ok %d - %s: %s\n", ++checks, what, strerror(errno));
	if (wire_pid > 0)
		kill(wire_pid, SIGKILL);
	exit(1);
}

static int wire_done(void);

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct sockaddr_un path(const char *format, int n)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), format, 'a' + n);
	return address;
}

static void host_open(int n)
{
	struct sockaddr_un mine = path("w/%c.host", n);
	struct timeval bound = { .tv_sec = BOUND / 1000 };

	unlink(mine.sun_path);
	host[n] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (host[n] < 0 || bind(host[n], (struct sockaddr *)&mine, sizeof(mine)))
		die("a host's socket");
	setsockopt(host[n], SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
}

static bool transmit_with(int n, const void *data, size_t len, int flags)
{
	struct sockaddr_un port = path("w/%c", n);

	/* a call with a time limit ends when the process is stopped and continued */
	return TEMP_FAILURE_RETRY(sendto(host[n], data, len, flags, (struct sockaddr *)&port,
					 sizeof(port))) == (ssize_t)len;
}

/* false: the wire does not take it */
static bool transmit(int n, const void *data, size_t len)
{
	return transmit_with(n, data, len, 0);
}

/* false, with EAGAIN: not now */
static bool transmit_now(int n, const void *data, size_t len)
{
	return transmit_with(n, data, len, MSG_DONTWAIT);
}

/* The next datagram's length, at most SIZE, or -1 after MS without one */
static ssize_t receive_most(int n, void *data, size_t size, int ms)
{
	struct pollfd fd = { .fd = host[n], .events = POLLIN };

	if (poll(&fd, 1, ms) != 1)
		return -1;
	return recv(host[n], data, size, 0);
}

/* ... which is a frame */
static ssize_t receive(int n, void *data, int ms)
{
	return receive_most(n, data, FRAME + 1, ms);
}

/* --- frames ---------------------------------------------------------------- */

#define TRAIN_HEAD 14

/* Puts a frame behind those that are in a train of *LEN bytes */
static void couple(uint8_t *train, size_t *len, const void *frame, size_t size)
{
	if (!*len) {
		memcpy(train, "\x03\0\0\0\0\x01\x52\x54\0\0\0\x09\x88\xb6", TRAIN_HEAD);
		*len = TRAIN_HEAD;
	}
	train[*len] = size >> 8;
	train[*len + 1] = size;
	memcpy(train + *len + 2, frame, size);
	*len += 2 + size;
}

static bool is_train(const uint8_t *data, ssize_t len)
{
	return len >= TRAIN_HEAD && !memcmp(data, "\x03\0\0\0\0\x01", 6) && !memcmp(data + 12, "\x88\xb6", 2);
}

/* In a datagram that has come */
static unsigned int frames_in(const uint8_t *data, ssize_t len)
{
	unsigned int frames = 0;

	if (!is_train(data, len))
		return 1;
	for (ssize_t at = TRAIN_HEAD; at < len; at += 2 + (data[at] << 8 | data[at + 1]))
		frames++;
	return frames;
}

struct roce {
	int from, to;
	uint8_t opcode;
	uint32_t qp, psn;
	size_t body;		/* bytes behind the BTH, with extended headers, pad, ICRC */
	uint8_t pad;
	bool ipv6, vlan;
	uint8_t tos;		/* of which the last two bits are for congestion */
};

static void put16(uint8_t *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static void ethernet(uint8_t *data, int from, int to)
{
	memset(data, 0xff, 6);
	if (to >= 0) {
		memcpy(data, "\x52\x54\0\0\0", 5);
		data[5] = to + 1;
	}
	memcpy(data + 6, "\x52\x54\0\0\0", 5);
	data[11] = from + 1;
	put16(data + 12, 0x88b5);	/* for experiments */
}

static size_t roce_build(uint8_t *data, const struct roce *roce)
{
	size_t at = 14, udp = 8 + 12 + roce->body;

	memset(data, 0, FRAME);
	ethernet(data, roce->from, roce->to);
	if (roce->vlan) {
		put16(data + 12, 0x8100);
		put16(data + 14, 7);
		at = 18;
	}
	put16(data + at - 2, roce->ipv6 ? 0x86dd : 0x0800);
	if (roce->ipv6) {
		data[at] = 0x60;
		data[at + 1] = roce->tos << 4;
		put16(data + at + 4, udp);
		data[at + 6] = 17;
		at += 40;
	} else {
		data[at] = 0x45;
		data[at + 1] = roce->tos;
		put16(data + at + 2, 20 + udp);
		data[at + 9] = 17;
		at += 20;
	}
	put16(data + at, 0xc000);
	put16(data + at + 2, 4791);
	put16(data + at + 4, udp);
	at += 8;
	data[at] = roce->opcode;
	data[at + 1] = roce->pad << 4;
	data[at + 5] = roce->qp >> 16;
	put16(data + at + 6, roce->qp);
	data[at + 9] = roce->psn >> 16;
	put16(data + at + 10, roce->psn);
	at += 12;
	for (size_t i = 0; i < roce->body; i++)
		data[at + i] = roce->psn + i * 7;
	return at + roce->body;
}

static size_t roce_send(const struct roce *roce)
{
	uint8_t data[FRAME];
	size_t len = roce_build(data, roce);

	if (!transmit(roce->from, data, len))
		die("a frame is sent");
	return len;
}

/* The PSN of a RoCE frame over IPv4 */
static uint32_t psn_of(const uint8_t *data)
{
	return data[51] << 16 | data[52] << 8 | data[53];
}

/* --- commands -------------------------------------------------------------- */

static int control_connect(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "w/control" };
	struct timeval bound = { .tv_sec = BOUND / 1000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)))
		die("control");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	return fd;
}

/* One line of JSON, or NULL */
static struct json_object *control_answer(int fd)
{
	static char line[1 << 16];
	size_t used = 0;

	while (used < sizeof(line) - 1 && TEMP_FAILURE_RETRY(recv(fd, line + used, 1, 0)) == 1)
		if (line[used++] == '\n') {
			line[used] = 0;
			return json_tokener_parse(line);
		}
	return NULL;
}

/* The wire has taken all that was sent */
static void taken(void)
{
	uint64_t until = now_ms() + BOUND;
	struct timespec moment = { .tv_nsec = 100000 };

	for (int i = 0; i < HOSTS; i++)
		for (;;) {
			int bytes = 0;

			if (ioctl(host[i], SIOCOUTQ, &bytes) || !bytes)
				break;
			if (now_ms() > until)
				die("the wire takes frames");
			nanosleep(&moment, NULL);
		}
}

static struct json_object *ask_now(const char *command)
{
	struct json_object *object;
	int fd;

	fd = control_connect();
	if (dprintf(fd, "%s\n", command) < 0)
		die(command);
	object = control_answer(fd);
	close(fd);
	if (!object)
		die(command);
	return object;
}

/* What was sent before the command is counted before it */
static struct json_object *ask(const char *command)
{
	taken();
	return ask_now(command);
}

static void order(const char *command)
{
	struct json_object *object = ask(command), *error;

	if (json_object_object_get_ex(object, "error", &error)) {
		printf("# %s: %s\n", command, json_object_get_string(error));
		die(command);
	}
	json_object_put(object);
}

/* A number among the counters: "a/out/roce/frames"; 0 where there is none */
static uint64_t counter_in(struct json_object *counters, const char *name)
{
	struct json_object *found = NULL;
	char pointer[128];

	snprintf(pointer, sizeof(pointer), "/ports/%s", name);
	return json_pointer_get(counters, pointer, &found) ? 0 :
		json_object_get_uint64(found);
}

static uint64_t counter_of(struct json_object *counters, const char *name)
{
	uint64_t value = counter_in(counters, name);

	json_object_put(counters);
	return value;
}

static uint64_t counter(const char *name)
{
	return counter_of(ask("counters"), name);
}

/* While the wire does not take all */
static uint64_t counter_now(const char *name)
{
	return counter_of(ask_now("counters"), name);
}

/* What a way of host N counts: "out/frames" */
static uint64_t of(struct json_object *counters, int n, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "%c/%s", 'a' + n, what);
	return counter_in(counters, name);
}

/* All drops of a way, "out", of host N */
static uint64_t drops_of(struct json_object *counters, int n, const char *way)
{
	struct json_object *drops = NULL;
	char pointer[64];
	uint64_t sum = 0;

	snprintf(pointer, sizeof(pointer), "/ports/%c/%s/drops", 'a' + n, way);
	if (json_pointer_get(counters, pointer, &drops))
		die(pointer);
	json_object_object_foreach(drops, why, count) {
		(void)why;
		sum += json_object_get_uint64(count);
	}
	return sum;
}

/*
 * What has become of all frames so far, if each is meant for RECEIVERS hosts.  What
 * the wire took from the hosts must be what they sent, and the copies that left
 * senders what came to an end somewhere.
 */
struct balance {
	uint64_t taken[HOSTS];
	uint64_t begun, ended;
};

static struct balance balance(unsigned int receivers)
{
	struct json_object *counters = ask("counters");
	struct balance balance = { 0 };

	for (int i = 0; i < HOSTS; i++) {
		uint64_t frames = of(counters, i, "out/frames");

		balance.taken[i] = frames + drops_of(counters, i, "out");
		balance.begun += (frames + of(counters, i, "out/duplicated")) * receivers +
			of(counters, i, "in/duplicated");
		balance.ended += of(counters, i, "in/frames") + drops_of(counters, i, "in") +
			of(counters, i, "queued");
	}
	json_object_put(counters);
	return balance;
}

/*
 * The next frame, or -1: none comes.  That is known, not waited for: the wire has
 * taken all, and nothing waits in its queue.
 */
static ssize_t next_most(int n, void *data, size_t size)
{
	char name[16];
	ssize_t len;

	snprintf(name, sizeof(name), "%c/queued", 'a' + n);
	for (;;) {
		uint64_t queued;

		/* one turn of its loop takes a frame, the next gives it away */
		json_object_put(ask("help"));
		queued = counter(name);
		len = receive_most(n, data, size, 0);
		if (len >= 0 || !queued)
			return len;
	}
}

static ssize_t next(int n, void *data)
{
	return next_most(n, data, FRAME + 1);
}

/* How many frames come until none does */
static unsigned int drain(int n)
{
	static uint8_t data[TRAIN];
	unsigned int frames = 0;
	ssize_t len;

	while ((len = next_most(n, data, sizeof(data))) >= 0)
		do
			frames += frames_in(data, len);
		while ((len = receive_most(n, data, sizeof(data), 0)) >= 0);
	return frames;
}

/* --- the wire -------------------------------------------------------------- */

/* In the folder that is there */
static void wire_start(const char *option, const char *value)
{
	char line[16] = "";
	int out[2];
	struct pollfd fd;

	if (pipe(out))
		die("a pipe from the wire");
	wire_pid = fork();
	if (!wire_pid) {
		dup2(out[1], 1);
		execl(wire_program, wire_program, option, value, "w", "a", "b", "c", NULL);
		_exit(127);
	}
	close(out[1]);
	fd = (struct pollfd){ .fd = out[0], .events = POLLIN };
	if (poll(&fd, 1, BOUND) != 1 || read(out[0], line, sizeof(line) - 1) <= 0 ||
	    strcmp(line, "ready\n"))
		die("the wire starts");
	close(out[0]);
}

static void wire_begin(const char *option, const char *value)
{
	if (system("rm -rf w && mkdir w"))
		die("a folder for the wire");
	for (int i = 0; i < HOSTS; i++)
		host_open(i);
	wire_start(option, value);
}

/* Its exit status */
static int wire_done(void)
{
	int status = -1;

	for (int i = 0; i < HOSTS; i++)
		close(host[i]);
	kill(wire_pid, SIGTERM);
	if (waitpid(wire_pid, &status, 0) != wire_pid)
		return -1;
	wire_pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int results(void)
{
	printf("1..%d\n", checks);
	return failures ? 1 : 0;
}

#endif
