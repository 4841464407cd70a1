/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random frames and random commands: the wire goes on, what it counts adds up, and
 * it keeps to its memory.
 *
 *	fuzz WIRE [SEED [STEPS]]
 *
 * A failure says its seed.
 */
#include "wire.h"

static uint64_t state;

/* A number below N */
static unsigned int pick(unsigned int n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

#define ONE_OF(list) ((list)[pick(sizeof(list) / sizeof((list)[0]))])

static const char *const targets[] = {
	"a", "b", "c", "all", "a.out", "a.in", "b.out", "b.in", "all.in", "c.up", "d", "."
};
static const char *const verbs[] = {
	"loss", "corrupt", "duplicate", "reorder", "delay", "nth", "link", "clear", "wait",
	"seed", "counters", "help", "", "nonsense", "rate"
};
static const char *const values[] = {
	"0%", "1%", "30%", "100%", "0.0001%", "101%", "%", "-1%", "99999999999999999999%",
	"0", "1us", "2ms", "9ms", "11s", "1", "3", "63", "18446744073709551616", "up",
	"down", "roce", "any", "rc-send-only", "0x0a", "0xff", "0x", "drop", "corrupt",
	"duplicate", "cut", "x", "\\", "queue", "ecn", "1k", "64m", "100mbit", "9gbit"
};
static const char *const actions[] = { "drop", "corrupt", "duplicate", "cut", "loss" };

/* A command that may be right; the wire may also be told what is no text at all */
static size_t command_build(char *line, size_t size)
{
	size_t len;

	if (!pick(8)) {
		len = 1 + pick(pick(4) ? 40 : size - 2);
		for (size_t i = 0; i < len; i++)
			line[i] = pick(3) ? ' ' + pick(95) : pick(256);
	} else if (!pick(8)) {
		len = snprintf(line, size, "%s rate %umbit queue %uk ecn %u", ONE_OF(targets), pick(20) + 90, pick(200),
			       pick(90000));
	} else if (!pick(3)) {
		len = snprintf(line, size, "%s nth %u any %s", ONE_OF(targets), pick(9), ONE_OF(actions));
	} else {
		len = snprintf(line, size, "%s %s", ONE_OF(targets), ONE_OF(verbs));
		for (unsigned int i = pick(5); i; i--)
			len += snprintf(line + len, size - len, " %s", ONE_OF(values));
	}
	if (pick(16))
		line[len++] = '\n';
	return len;
}

/* Clients that say something, and stay for the answer or not */
static void commands(void)
{
	char line[2000], answer[4096];
	int fd = control_connect();

	for (unsigned int i = pick(4) + 1; i; i--) {
		size_t len = command_build(line, sizeof(line) - 2);

		if (send(fd, line, len, MSG_NOSIGNAL) < 0)
			break;
	}
	if (pick(2))
		while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
			;
	close(fd);
}

/* TO: a host, or -1: all */
static size_t frame_build(uint8_t *data, int from, int to)
{
	static const uint8_t opcodes[] = { 0x00, 0x04, 0x0a, 0x0e, 0x11, 0x13, 0x64, 0x81, 0xff };
	struct roce roce = {
		.from = from, .to = to, .opcode = ONE_OF(opcodes), .qp = pick(20), .psn = pick(3000),
		.body = 4 + pick(pick(8) ? 100 : 8000), .pad = pick(4),
		.ipv6 = pick(2), .vlan = !pick(4),
	};
	size_t len = roce_build(data, &roce);

	if (!pick(3))
		for (unsigned int i = pick(6); i; i--)
			data[12 + pick(60)] = pick(256);
	if (!pick(6))
		len = 6 + pick(FRAME - 4);	/* runts, too, and one byte too many */
	return len;
}

/* Some frames at once, and perhaps one that is cut off; how many there were */
static unsigned int train_send(uint8_t *data, int from, unsigned int receivers, int to)
{
	unsigned int frames = pick(6);
	uint8_t frame[FRAME + 2];
	size_t len = 0;

	for (unsigned int i = 0; i < frames; i++) {
		size_t size = frame_build(frame, from, receivers == 1 ? (int)pick(HOSTS) : to);

		couple(data, &len, frame, size);
	}
	if (frames && !pick(4)) {
		len -= 1 + pick(5);
		return transmit(from, data, len) ? frames : 0;
	}
	if (!frames)
		couple(data, &len, frame, 0);
	return transmit(from, data, frames ? len : TRAIN_HEAD) ? frames : 0;
}

/* Frames, of which each is meant for so many hosts: 1, or all others */
static void frames(unsigned int steps, unsigned int receivers)
{
	uint64_t sent[HOSTS] = { 0 }, got[HOSTS] = { 0 };
	static uint8_t data[TRAIN], back[TRAIN];
	struct balance now;
	ssize_t len;

	wire_begin("--seed", "5");
	for (unsigned int i = 0; i < steps; i++) {
		int from = pick(HOSTS), to = receivers == 1 ? (int)pick(HOSTS) : -1;

		/* what is cut stays so */
		if (i % 64 == 0)
			order("all link up");
		if (pick(3))
			sent[from] += transmit(from, data, frame_build(data, from, to));
		else
			sent[from] += train_send(data, from, receivers, to);
		if (!pick(3))
			commands();
		for (int n = 0; n < HOSTS && !pick(8); n++)
			while ((len = receive_most(n, back, sizeof(back), 0)) >= 0)
				got[n] += frames_in(back, len);
	}
	now = balance(receivers);
	for (int n = 0; n < HOSTS; n++)
		check_eq("all that a host sent has passed or was dropped", sent[n], now.taken[n]);
	check_eq("all that left a sender has come, was dropped, or waits", now.begun, now.ended);
	order("all clear");
	order("all link up");
	for (int n = 0; n < HOSTS; n++)
		got[n] += drain(n);
	now = balance(receivers);
	check_eq("so it is when nothing waits any more", now.begun, now.ended);
	for (int n = 0; n < HOSTS; n++) {
		char name[32];

		snprintf(name, sizeof(name), "%c/in/frames", 'a' + n);
		check_eq("a host received what was counted", counter(name), got[n]);
	}
	ethernet(data, 0, 1);
	transmit(0, data, 60);
	check_eq("the wire still works", 1, drain(1));
	check_eq("and ends well", 0, wire_done());
}

/* Most memory of the wire so far, in KiB */
static unsigned long memory(void)
{
	char name[64], line[128];
	unsigned long most = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)wire_pid);
	file = fopen(name, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmHWM: %lu", &most);
	if (file)
		fclose(file);
	return most;
}

/* What is under way is bounded: the rest is dropped, and counted */
static void bounded(void)
{
	uint8_t data[FRAME];
	struct balance now;
	unsigned long before;

	wire_begin("--seed", "1");
	order("all.in delay 10s 10s");
	before = memory();
	for (unsigned int i = 0; i < 3 * 4096; i++) {
		ethernet(data, 0, 1);
		memset(data + 14, i, sizeof(data) - 14);
		transmit(0, data, sizeof(data));
	}
	now = balance(1);
	check_eq("4096 frames wait for a host", 4096, counter("b/queued"));
	check_eq("the others are dropped", 2 * 4096, counter("b/in/drops/queue"));
	check_eq("nothing is missing", now.begun, now.ended);
	/* sanitizers need some; all frames together are 108 MiB */
	check(memory() - before < 4096 * 16, "%lu KiB hold them", memory() - before);
	order("b link down");
	check_eq("a link that goes down ends the waiting", 0, counter("b/queued"));
	now = balance(1);
	check_eq("and nothing is missing", now.begun, now.ended);
	check_eq("the wire ends well", 0, wire_done());
}

int main(int argc, char **argv)
{
	unsigned int steps = argc > 3 ? atoi(argv[3]) : 2000;

	wire_program = argc > 1 ? argv[1] : "peerlane-wire";
	state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	printf("# seed %llu\n", (unsigned long long)state);
	frames(steps, 1);
	frames(steps, HOSTS - 1);
	bounded();
	return results();
}
