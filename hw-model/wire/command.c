/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a running wire can be told and asked: a line in, an object of JSON out.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define WORDS_MAX	8

static const char help_text[] =
	"PORT is a host's name or \"all\"; "
	".out or .in behind it means what the host sends or receives, else both. "
	"counters | seed N | deaf SECONDS | PORT link up|down | PORT loss RATE% [roce] | "
	"PORT corrupt RATE% [roce] | PORT duplicate RATE% [roce] | "
	"PORT reorder RATE% [roce] | PORT delay TIME [JITTER] | "
	"PORT rate BITS [queue BYTES] [ecn BYTES] | PORT clear | "
	"PORT.WAY nth N OPCODE drop|corrupt|duplicate|cut | "
	"PORT.WAY wait N OPCODE SECONDS";

/* --- answers --------------------------------------------------------------- */

struct json_object *command_refuse(const char *format, ...)
{
	struct json_object *object = json_object_new_object();
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_object_add(object, "error", json_object_new_string(text));
	return object;
}

static struct json_object *done(void)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "ok", json_object_new_boolean(true));
	return object;
}

static void add(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static struct json_object *counters_of(const struct wire_path *path, bool out)
{
	struct json_object *object = json_object_new_object();
	struct json_object *roce = json_object_new_object();
	struct json_object *opcodes = json_object_new_object();
	struct json_object *drops = json_object_new_object();
	const struct wire_counters *count = &path->count;

	add(object, "datagrams", count->datagrams);
	add(object, "frames", count->frames);
	add(object, "bytes", count->bytes);
	add(roce, "frames", count->roce_frames);
	add(roce, "payload_bytes", count->roce_payload);
	add(roce, "dropped", count->roce_drops);
	if (out) {
		add(roce, "unique_payload_bytes", count->roce_unique);
		add(roce, "repeated", count->roce_repeats);
	}
	for (int i = 0; i < 256; i++)
		if (count->opcode[i]) {
			struct json_object *one = json_object_new_object();

			add(one, "frames", count->opcode[i]);
			add(one, "payload_bytes", count->opcode_payload[i]);
			json_object_object_add(opcodes, frame_opcode_name(i), one);
		}
	json_object_object_add(roce, "opcodes", opcodes);
	json_object_object_add(object, "roce", roce);
	for (int i = 0; i < DROPS; i++)
		add(drops, wire_drop_names[i], count->drops[i]);
	json_object_object_add(object, "drops", drops);
	add(object, "corrupted", count->done[FAULT_CORRUPT]);
	add(object, "duplicated", count->done[FAULT_DUPLICATE]);
	add(object, "reordered", count->done[FAULT_REORDER]);
	add(object, "delayed", count->delayed);
	add(object, "marked", count->marked);
	add(object, "rules_left", path->rules);
	return object;
}

static struct json_object *counters(struct wire *wire)
{
	struct json_object *object = json_object_new_object();
	struct json_object *ports = json_object_new_object();

	/* looks of several hosts have an order */
	add(object, "look", ++wire->looks);
	add(object, "seed", wire->seed);
	for (unsigned int i = 0; i < wire->ports; i++) {
		const struct wire_port *port = &wire->port[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "link",
				       json_object_new_string(port->up ? "up" : "down"));
		add(one, "queued", port->queued);
		add(one, "queued_most", port->queued_most);
		add(one, "pauses", port->pauses);
		json_object_object_add(one, "out", counters_of(&port->path[WAY_OUT], true));
		json_object_object_add(one, "in", counters_of(&port->path[WAY_IN], false));
		json_object_object_add(ports, port->name, one);
	}
	json_object_object_add(object, "ports", ports);
	return object;
}

/* --- words ----------------------------------------------------------------- */

/* "0.5%": at most four digits behind the point */
static bool parse_rate(const char *text, uint32_t *rate)
{
	uint64_t parts = 0;
	int digits = 0, behind = -1;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && behind < 0 && digits); text++) {
		if (*text == '.') {
			behind = 0;
			continue;
		}
		if (++digits > 7 || behind == 4)
			return false;
		parts = parts * 10 + (*text - '0');
		behind += behind >= 0;
	}
	if (!digits || behind == 0 || strcmp(text, "%"))
		return false;
	for (behind = behind < 0 ? 0 : behind; behind < 4; behind++)
		parts *= 10;
	*rate = parts;
	return parts <= WIRE_ALL;
}

struct unit {
	const char *name;
	uint64_t times;
};

/* "5ms": a number with one of the units, or 0 */
static bool parse_unit(const char *text, const struct unit *unit, uint64_t most, uint64_t *got)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno)
		return false;
	for (; unit->name; unit++)
		if (!strcmp(end, unit->name)) {
			*got = value * unit->times;
			return value <= most / unit->times;
		}
	*got = 0;
	return !value && !*end;
}

static bool parse_time(const char *text, uint64_t *ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { 0 }
	};

	return parse_unit(text, units, WIRE_DELAY_MAX, ns);
}

static bool parse_bits(const char *text, uint64_t *kbits)
{
	static const struct unit units[] = {
		{ "kbit", 1 }, { "mbit", 1000 }, { "gbit", 1000000 }, { 0 }
	};

	return parse_unit(text, units, WIRE_KBITS_MAX, kbits);
}

static bool parse_bytes(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{ "", 1 }, { "k", 1024 }, { "m", 1048576 }, { 0 }
	};

	return parse_unit(text, units, WIRE_ROOM_MAX, bytes);
}

/* --- commands -------------------------------------------------------------- */

struct target {
	unsigned int first, last;	/* ports */
	int ways;			/* a bit for each */
	unsigned int at;		/* where next_path() is */
};

static struct json_object *parse_target(struct wire *wire, char *word, struct target *target)
{
	char *way = strchr(word, '.');

	target->ways = 1 << WAY_OUT | 1 << WAY_IN;
	if (way) {
		*way++ = 0;
		if (!strcmp(way, "out"))
			target->ways = 1 << WAY_OUT;
		else if (!strcmp(way, "in"))
			target->ways = 1 << WAY_IN;
		else
			return command_refuse("%s.%s: behind a host's name stands .out (what it sends) or .in (what it receives)",
				      word, way);
	}
	target->first = 0;
	target->last = wire->ports - 1;
	if (!strcmp(word, "all"))
		return NULL;
	for (unsigned int i = 0; i < wire->ports; i++)
		if (!strcmp(word, wire->port[i].name)) {
			target->first = i;
			target->last = i;
			return NULL;
		}
	return command_refuse("no host or command is called \"%s\"; \"help\" lists the commands",
			      word);
}

/* The ways of a target, one after the other; NULL: that was the last */
static struct wire_path *next_path(struct wire *wire, struct target *target)
{
	while (target->at < wire->ports * WAYS) {
		unsigned int port = target->at / WAYS, way = target->at % WAYS;

		target->at++;
		if (port >= target->first && port <= target->last && target->ways & 1 << way)
			return &wire->port[port].path[way];
	}
	target->at = 0;
	return NULL;
}

static struct json_object *set_rate(struct wire *wire, struct target *target,
				    enum wire_fault fault, int words, char **word)
{
	struct wire_path *path;
	bool roce = words == 4 && !strcmp(word[3], "roce");
	uint32_t rate;

	if (words < 3 || words > 4 || (words == 4 && !roce))
		return command_refuse("%s needs a rate, and perhaps \"roce\"", word[1]);
	if (!parse_rate(word[2], &rate))
		return command_refuse("\"%s\" is no rate: a rate is 0%% to "
		  "100%%, with at most four digits after the point",
			      word[2]);
	while ((path = next_path(wire, target))) {
		path->rate[fault] = rate;
		path->roce_only[fault] = roce;
	}
	return done();
}

static struct json_object *set_delay(struct wire *wire, struct target *target,
				     int words, char **word)
{
	uint64_t delay, jitter = 0;
	struct wire_path *path;

	if (words < 3 || words > 4)
		return command_refuse("delay needs a time, and perhaps a second: the most that chance adds");
	for (int i = 2; i < words; i++)
		if (!parse_time(word[i], i == 2 ? &delay : &jitter))
			return command_refuse("\"%s\" is no time: 0, or a number with ns, us, ms or s, to 10s",
				      word[i]);
	while ((path = next_path(wire, target))) {
		path->delay_ns = delay;
		path->jitter_ns = jitter;
	}
	return done();
}

/* WORD from the third on: a rate, and perhaps a queue and a threshold */
static struct json_object *set_bandwidth(struct wire *wire, struct target *target,
					 int words, char **word)
{
	uint64_t kbits, room = WIRE_ROOM, mark = UINT64_MAX, *to;
	struct wire_path *path;

	if (words < 3 || words % 2 == 0)
		return command_refuse("rate needs bits in a second, and perhaps \"queue\" and \"ecn\", each with bytes");
	if (!parse_bits(word[2], &kbits))
		return command_refuse("\"%s\" is no rate: 0, or a number with kbit, mbit or gbit, to 1000gbit",
				      word[2]);
	for (int i = 3; i < words; i += 2) {
		to = !strcmp(word[i], "queue") ? &room : !strcmp(word[i], "ecn") ? &mark : NULL;
		if (!to)
			return command_refuse("behind a rate stands \"queue\" or \"ecn\", not \"%s\"",
					      word[i]);
		if (!parse_bytes(word[i + 1], to))
			return command_refuse("\"%s\" is no size: a number of bytes, or with k or m, to 64m",
					      word[i + 1]);
	}
	while ((path = next_path(wire, target))) {
		path->kbits = kbits;
		path->room = room;
		path->mark = mark;
		path->busy_until = 0;
	}
	return done();
}

static const char no_opcode[] =
	"\"%s\" is no opcode: rc-rdma-write-only, ..., 0x0a, or any";

static struct json_object *add_rule(struct wire *wire, struct target *target,
				    int words, char **word)
{
	struct wire_rule rule = { 0 };
	struct wire_path *path;

	if (words != 5)
		return command_refuse("nth needs a number, an opcode and what to do");
	if (!wire_number(word[2], &rule.nth) || !rule.nth)
		return command_refuse("\"%s\" is no number from 1", word[2]);
	rule.opcode = frame_opcode_by_name(word[3]);
	if (rule.opcode == -EINVAL)
		return command_refuse(no_opcode, word[3]);
	while (rule.action < ACTIONS && strcmp(word[4], wire_action_names[rule.action]))
		rule.action++;
	if (rule.action == ACTIONS)
		return command_refuse("\"%s\" is neither drop nor corrupt, duplicate, cut",
				      word[4]);
	while ((path = next_path(wire, target)))
		if (path->rules == WIRE_RULES_MAX)
			return command_refuse("%u rules wait already", WIRE_RULES_MAX);
	while ((path = next_path(wire, target)))
		path->rule[path->rules++] = rule;
	return done();
}

static struct json_object *set_link(struct wire *wire, struct target *target,
				    int words, char **word)
{
	bool up = words == 3 && !strcmp(word[2], "up");

	if (words != 3 || (!up && strcmp(word[2], "down")))
		return command_refuse("link needs \"up\" or \"down\"");
	if (target->ways != (1 << WAY_OUT | 1 << WAY_IN))
		return command_refuse("a link has both ways: no .out or .in");
	for (unsigned int i = target->first; i <= target->last; i++)
		port_link(&wire->port[i], up);
	return done();
}

static struct json_object *set_deaf(struct wire *wire, int words, char **word)
{
	uint64_t seconds;

	if (words != 2 || !wire_number(word[1], &seconds) || !seconds || seconds > WIRE_DEAF_MAX)
		return command_refuse("deaf needs seconds (1 to %u)", WIRE_DEAF_MAX);
	wire->deaf_ns = seconds * 1000000000;
	return done();
}

static struct json_object *clear(struct wire *wire, struct target *target)
{
	struct wire_path *path;

	while ((path = next_path(wire, target))) {
		memset(path->rate, 0, sizeof(path->rate));
		path->delay_ns = 0;
		path->jitter_ns = 0;
		path->kbits = 0;
		path->rules = 0;
	}
	return done();
}

static struct json_object *start_wait(struct wire *wire, struct wire_wait *wait,
				      struct target *target, int words, char **word)
{
	uint64_t seconds;

	if (words != 5 || !wire_number(word[2], &wait->want) ||
	    !wire_number(word[4], &seconds) || !seconds || seconds > WIRE_WAIT_MAX)
		return command_refuse("wait needs a number, an opcode and seconds (1 to %u)",
			      WIRE_WAIT_MAX);
	if (target->first != target->last ||
	    target->ways == (1 << WAY_OUT | 1 << WAY_IN))
		return command_refuse("wait needs one way of one host: a.out");
	wait->opcode = frame_opcode_by_name(word[3]);
	if (wait->opcode == -EINVAL)
		return command_refuse(no_opcode, word[3]);
	wait->path = &wire->port[target->first].path[target->ways == 1 << WAY_OUT ?
						     WAY_OUT : WAY_IN];
	wait->until = wire_now() + seconds * 1000000000;
	return NULL;
}

struct json_object *command_run(struct wire *wire, struct wire_wait *wait, char *line)
{
	struct json_object *error;
	char *word[WORDS_MAX], *save = NULL;
	struct target target = { 0 };
	int words = 0;

	for (char *at = strtok_r(line, " \t\r", &save); at; at = strtok_r(NULL, " \t\r", &save)) {
		if (words == WORDS_MAX)
			return command_refuse("more than %u words", WORDS_MAX);
		word[words++] = at;
	}
	if (!words)
		return command_refuse("an empty command; \"help\" lists the commands");
	if (words == 1 && !strcmp(word[0], "counters"))
		return counters(wire);
	if (words == 1 && !strcmp(word[0], "help")) {
		struct json_object *object = json_object_new_object();

		json_object_object_add(object, "help", json_object_new_string(help_text));
		return object;
	}
	if (!strcmp(word[0], "seed")) {
		if (words != 2 || !wire_number(word[1], &wire->seed))
			return command_refuse("seed needs a number");
		port_seed(wire);
		return done();
	}
	if (!strcmp(word[0], "deaf"))
		return set_deaf(wire, words, word);
	error = parse_target(wire, word[0], &target);
	if (error)
		return error;
	if (words == 1)
		return command_refuse("%s, and what? \"help\" lists the commands", word[0]);
	for (int fault = 0; fault < FAULTS; fault++)
		if (!strcmp(word[1], wire_fault_names[fault]))
			return set_rate(wire, &target, fault, words, word);
	if (!strcmp(word[1], "delay"))
		return set_delay(wire, &target, words, word);
	if (!strcmp(word[1], "rate"))
		return set_bandwidth(wire, &target, words, word);
	if (!strcmp(word[1], "nth"))
		return add_rule(wire, &target, words, word);
	if (!strcmp(word[1], "link"))
		return set_link(wire, &target, words, word);
	if (!strcmp(word[1], "clear") && words == 2)
		return clear(wire, &target);
	if (!strcmp(word[1], "wait"))
		return start_wait(wire, wait, &target, words, word);
	return command_refuse("no command is called \"%s\"; \"help\" lists the commands", word[1]);
}

struct json_object *command_waited(struct wire_wait *wait, uint64_t now)
{
	const struct wire_counters *count = &wait->path->count;
	uint64_t have = wait->opcode == WIRE_ANY ? count->roce_frames :
		count->opcode[wait->opcode];
	struct json_object *object;

	if (have < wait->want && now < wait->until)
		return NULL;
	wait->path = NULL;
	if (have < wait->want)
		return command_refuse("only %llu of %llu frames came in time",
				      (unsigned long long)have,
				      (unsigned long long)wait->want);
	object = done();
	add(object, "frames", have);
	return object;
}
