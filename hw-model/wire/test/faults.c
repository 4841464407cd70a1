/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wire does the harm that was ordered, no other, and counts it. */
#include <sys/prctl.h>

#include "wire.h"

#define MANY 1000

static struct roce roce = { .from = 0, .to = 1, .opcode = 4, .qp = 17, .body = 104 };

/* Sends MANY frames from a to b, and writes down which came, by PSN in order */
static unsigned int flood(uint32_t *came)
{
	uint8_t data[FRAME + 1];
	unsigned int n = 0;

	for (roce.psn = 0; roce.psn < MANY; roce.psn++) {
		roce_send(&roce);
		while (n < 2 * MANY && receive(1, data, 0) >= 0)
			came[n++] = psn_of(data);
	}
	while (n < 2 * MANY && next(1, data) >= 0)
		do
			came[n++] = psn_of(data);
		while (n < 2 * MANY && receive(1, data, 0) >= 0);
	return n;
}

static bool rising(const uint32_t *came, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++)
		if (came[i] <= came[i - 1])
			return false;
	return true;
}

static void loss(void)
{
	uint32_t first[2 * MANY], again[2 * MANY];
	uint8_t data[FRAME + 1];
	unsigned int n, m;

	wire_begin("--seed", "7");
	check_eq("without an order nothing is lost", MANY, flood(first));
	order("a.out loss 30%");
	order("seed 7");
	n = flood(first);
	/* 9 standard deviations */
	check(n > 570 && n < 830, "of %u frames with 30%% loss %u came", MANY, n);
	check_eq("the others are counted", MANY - n, counter("a/out/drops/loss"));
	check_eq("as RoCE", MANY - n, counter("a/out/roce/dropped"));
	check(rising(first, n), "those that came are in order");
	order("seed 7");
	m = flood(again);
	check(m == n && !memcmp(first, again, n * sizeof(*first)),
	      "the same seed loses the same frames");
	order("seed 8");
	m = flood(again);
	check(m != n || memcmp(first, again, n * sizeof(*first)),
	      "another seed loses others");
	order("a.out corrupt 10%");
	order("seed 7");
	m = flood(again);
	check(m == n && !memcmp(first, again, n * sizeof(*first)),
	      "another fault does not change what is lost");
	check_eq("the wire ends well", 0, wire_done());

	wire_begin("--seed", "7");
	order("a.out loss 30%");
	m = flood(again);
	check(m == n && !memcmp(first, again, n * sizeof(*first)),
	      "--seed is the same as the command");
	order("a.out loss 100% roce");
	ethernet(data, 0, 1);
	transmit(0, data, 60);
	check_eq("\"roce\" spares all else", 1, drain(1));
	check_eq("but no RoCE", 0, flood(again));
	order("all clear");
	check_eq("clear ends it", MANY, flood(again));
	order("b.in loss 100%");
	roce.to = -1;
	roce_send(&roce);
	roce.to = 1;
	check(drain(1) == 0 && drain(2) == 1, "what b does not receive c may");
	check_eq("it was lost on b's cable", 1, counter("b/in/drops/loss"));
	order("b clear");
	order("b loss 100%");
	roce.from = 1;
	roce.to = 2;
	roce_send(&roce);
	check(drain(2) == 0 && counter("b/out/drops/loss") == 1,
	      "without a way it is both ways");
	roce.from = 0;
	roce.to = 1;
	check_eq("the wire ends well", 0, wire_done());
}

static void delay(void)
{
	uint32_t came[2 * MANY];
	uint8_t data[FRAME + 1];
	uint64_t start;
	unsigned int n;

	wire_begin("--seed", "1");
	order("a.out delay 60ms");
	order("b.in delay 40ms");
	start = now_ms();
	roce_send(&roce);
	check(receive(1, data, BOUND) > 0 && now_ms() - start >= 100,
	      "delays of both ways add up");
	check_eq("it is counted where it was", 1, counter("a/out/delayed"));
	check_eq("(both)", 1, counter("b/in/delayed"));
	order("b.in delay 0");
	order("a.out delay 1ms 20ms");
	n = flood(came);
	check(n == MANY && rising(came, n), "chance does not change the order");
	start = now_ms();
	order("a.out delay 1s");
	roce_send(&roce);
	order("a.out delay 0");
	roce_send(&roce);
	check(receive(1, data, BOUND) > 0 && now_ms() - start >= 1000,
	      "a shorter delay does not change the order either");
	check(receive(1, data, BOUND) > 0, "(the second)");
	check_eq("the wire ends well", 0, wire_done());
}

/* The header's checksum over IPv4 is right */
static bool header_right(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static void header_sum(uint8_t *ip)
{
	uint32_t sum = 0;

	put16(ip + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
}

/* 20 frames of 1000 bytes for a way that takes 8 s for each.  In no time, that is: within
 * the 4 s that no number here depends on. @name was @before, before the try that did
 */
static bool at_once(const char *command, const char *name, uint64_t *before)
{
	for (int try = 0; try < 5; try++) {
		uint64_t start;

		order("b link down");
		order("b link up");
		*before = counter(name);
		start = now_ms();
		order(command);
		for (roce.psn = 0; roce.psn < 20; roce.psn++)
			roce_send(&roce);
		taken();
		if (now_ms() - start < 4000)
			return true;
	}
	return false;
}

static void rate(void)
{
	uint8_t want[FRAME], got[FRAME + 1];
	uint64_t start, full, marked;
	struct roce big = roce;
	size_t len;
	bool same;

	wire_begin("--seed", "1");
	/* time: never sooner than that many bits take */
	roce.body = 946;	/* 1000 bytes */
	order("b.in rate 800kbit");
	start = now_ms();
	for (roce.psn = 0; roce.psn < 10; roce.psn++)
		roce_send(&roce);
	for (int i = 0; i < 10; i++) {
		if (receive(1, got, BOUND) != 1000)
			die("a frame comes at its rate");
		check(now_ms() - start >= 10u * (i + 1), "frame %d has taken its time", i);
	}
	order("b.in rate 0");
	roce_send(&roce);
	check(receive(1, got, BOUND) == 1000, "without a rate as fast as it goes");

	/* a queue of 10000 bytes: 10 frames; the one that is being sent is one of them */
	check(at_once("b.in rate 1kbit queue 10k", "b/in/drops/full", &full), "20 frames within 4 s");
	check_eq("10 wait", 10, counter("b/queued"));
	check_eq("10 were dropped, as the queue was full", 10, counter("b/in/drops/full") - full);
	order("b clear");
	order("b link down");
	order("b link up");
	roce_send(&roce);
	check(receive(1, got, BOUND) == 1000, "a link that was down forgets what waited");
	check_eq("which is not marked", 0, counter("b/in/marked"));
	roce.to = 2;
	roce_send(&roce);
	roce.to = 1;
	check(receive(2, got, BOUND) == 1000, "another host has a way of its own");

	/* of a slow sender, to all */
	check(at_once("a.out rate 1kbit queue 5k", "a/out/drops/full", &full),
	      "20 frames within 4 s, at the sender");
	check_eq("5 wait", 5, counter("b/queued"));
	check_eq("15 were dropped there", 15, counter("a/out/drops/full") - full);
	order("all clear");
	order("b link down");
	order("b link up");

	/* marks: of those that may be marked, from 4500 bytes on */
	roce.tos = 2;
	check(at_once("b.in rate 1kbit ecn 4500", "b/in/marked", &marked),
	      "20 frames with marks within 4 s");
	check_eq("all wait", 20, counter("b/queued"));
	check_eq("those behind the fifth are marked", 15, counter("b/in/marked") - marked);
	order("all clear");
	order("b link down");
	order("b link up");
	marked = counter("b/in/marked");
	order("b.in rate 100mbit ecn 0");
	for (int tos = 0; tos < 4 * 2; tos++) {
		roce.tos = tos & 3;
		roce.ipv6 = tos > 3;
		len = roce_build(want, &roce);
		if (!roce.ipv6)
			header_sum(want + 14);
		transmit(0, want, len);
		if (receive(1, got, BOUND) != (ssize_t)len)
			die("a frame that may be marked comes");
		same = !memcmp(want, got, 15) && !memcmp(want + 16, got + 16, 8) &&
			!memcmp(want + 26, got + 26, len - 26);
		if (roce.ipv6)
			check(same && !memcmp(want + 24, got + 24, 2) &&
			      got[15] == (roce.tos ? 0x30 : 0), "IPv6, codepoint %u: marked or not", roce.tos);
		else
			check(same && header_right(got + 14) && got[15] == (roce.tos ? 3 : 0),
			      "IPv4, codepoint %u: marked or not, and its checksum is right", roce.tos);
	}
	check_eq("those that were marked before are not counted", 4, counter("b/in/marked") - marked);
	ethernet(got, 0, 1);
	transmit(0, got, 60);
	check(receive(1, got, BOUND) == 60, "what is no IP passes");
	check_eq("unmarked", 4, counter("b/in/marked") - marked);
	roce = big;
	check_eq("the wire ends well", 0, wire_done());
}

static void reorder(void)
{
	uint32_t came[2 * MANY];
	bool seen[MANY] = { false };
	uint8_t data[FRAME + 1];
	unsigned int n, late = 0, all = 0;

	wire_begin("--seed", "1");
	order("a.out reorder 10%");
	n = flood(came);
	for (unsigned int i = 0; i < n; i++) {
		all += !seen[came[i]];
		seen[came[i]] = true;
		late += i && came[i] < came[i - 1];
	}
	check(n == MANY && all == MANY, "each frame comes once");
	check(late > 40 && late < 160, "of %u frames with 10%% reordering %u were overtaken",
	      MANY, late);
	n = counter("b/in/reordered");
	/* two in a row that are held change places with one frame */
	check(n >= late && n < 200, "%u are counted", n);
	order("a.out reorder 100%");
	roce_send(&roce);
	check(receive(1, data, BOUND) > 0, "a last frame comes too");
	check_eq("that is no reordering", n, counter("b/in/reordered"));
	check_eq("the wire ends well", 0, wire_done());
}

static void duplicate(void)
{
	uint32_t came[2 * MANY];

	wire_begin("--seed", "1");
	order("a.out duplicate 100%");
	check_eq("each frame comes twice", 2 * MANY, flood(came));
	check_eq("it is counted", MANY, counter("a/out/duplicated"));
	check_eq("the host sent it once", MANY, counter("a/out/frames"));
	check_eq("and received it twice", 2 * MANY, counter("b/in/frames"));
	order("b.in nth 1 any drop");
	roce_send(&roce);
	check_eq("of two copies one can be lost", 1, drain(1));
	order("a.out nth 1 any duplicate");
	order("a.out loss 100%");
	roce_send(&roce);
	check_eq("what is lost has no copy", MANY + 1, counter("a/out/duplicated"));
	check_eq("the wire ends well", 0, wire_done());
}

static void corrupt(void)
{
	uint8_t want[FRAME], got[FRAME + 1];
	bool one = true, covered = true;
	size_t len;

	wire_begin("--seed", "1");
	order("a.out corrupt 100%");
	len = roce_build(want, &roce);
	for (int i = 0; i < 200; i++) {
		unsigned int bits = 0;

		transmit(0, want, len);
		if (receive(1, got, BOUND) != (ssize_t)len)
			die("a corrupted frame comes");
		for (size_t at = 0; at < len; at++) {
			bits += __builtin_popcount(want[at] ^ got[at]);
			/* of what is before, the ICRC leaves bits out */
			covered = covered && (want[at] == got[at] || at >= 54);
		}
		one = one && bits == 1;
	}
	check(one, "one bit of each frame is another");
	check(covered, "one that the ICRC covers");
	check_eq("it is counted", 200, counter("a/out/corrupted"));
	transmit(0, want, 14);
	check(receive(1, got, BOUND) == 14 && !memcmp(want, got, 14),
	      "a frame that is only a header stays what it was");
	check_eq("which is not counted", 200, counter("a/out/corrupted"));
	check_eq("the wire ends well", 0, wire_done());
}

static void rules(void)
{
	uint8_t data[FRAME + 1];
	uint32_t came[8];
	int n = 0;

	wire_begin("--seed", "1");
	order("a.out nth 2 rc-rdma-write-middle drop");
	order("a.out nth 4 any duplicate");
	check_eq("rules wait", 2, counter("a/out/rules_left"));
	for (roce.psn = 0; roce.psn < 6; roce.psn++) {
		roce.opcode = roce.psn % 2 ? 7 : 4;
		roce_send(&roce);
	}
	while (n < 8 && next(1, data) >= 0)
		came[n++] = psn_of(data);
	/* the fourth is both: dropped, so there is nothing to repeat */
	check(n == 5 && came[0] == 0 && came[1] == 1 && came[2] == 2 && came[3] == 4 &&
	      came[4] == 5, "the second of this opcode is gone, and no other");
	check_eq("it is counted", 1, counter("a/out/drops/rule"));
	check_eq("rules are used once", 0, counter("a/out/rules_left"));
	order("b.in nth 1 0x04 corrupt");
	roce.opcode = 4;
	roce_send(&roce);
	check(receive(1, data, BOUND) > 0 && counter("b/in/corrupted") == 1,
	      "an opcode by its number, at the receiver");
	order("a.out nth 2 any cut");
	for (int i = 0; i < 4; i++)
		roce_send(&roce);
	check_eq("the link is cut at the second frame", 1, drain(1));
	check_eq("from then on nothing passes", 3, counter("a/out/drops/link"));
	order("a link up");
	roce_send(&roce);
	check_eq("until it is up again", 1, drain(1));
	order("a.out nth 9 any drop");
	order("a clear");
	check_eq("clear takes rules away", 0, counter("a/out/rules_left"));
	check_eq("the wire ends well", 0, wire_done());
}

static void links(void)
{
	struct json_object *object, *link = NULL;
	uint8_t data[FRAME + 1];

	wire_begin("--seed", "1");
	order("a link down");
	roce_send(&roce);
	roce.from = 1;
	roce.to = 0;
	roce_send(&roce);
	check(drain(0) == 0 && drain(1) == 0, "a link that is down carries nothing");
	check_eq("what a sent is counted there", 1, counter("a/out/drops/link"));
	check_eq("what b sent crossed b's cable", 1, counter("b/out/frames"));
	check_eq("and ended before a's", 1, counter("a/in/drops/link"));
	object = ask("counters");
	check(!json_pointer_get(object, "/ports/a/link", &link) &&
	      !strcmp(json_object_get_string(link), "down"), "the counters say that it is down");
	json_object_put(object);
	order("a link up");
	order("a.in delay 5s");
	roce_send(&roce);
	order("a link down");
	order("a link up");
	check_eq("what was under way is gone", 0, drain(0));
	check_eq("and counted", 2, counter("a/in/drops/link"));
	order("a.in delay 0");
	roce_send(&roce);
	/* in its order, behind the ones that are gone */
	check(receive(0, data, BOUND) > 0, "then it carries again");
	roce.from = 0;
	roce.to = 1;
	check_eq("the wire ends well", 0, wire_done());
}

/* Hosts that are not there or go away, a wire that does, and frames that are under way */
static void peers(void)
{
	struct sockaddr_un port = path("w/%c", 0);
	uint8_t data[FRAME + 1];
	unsigned int n = 0;
	int stranger;

	wire_begin("--seed", "1");
	close(host[1]);
	roce_send(&roce);
	check_eq("a frame for a host that is gone is counted", 1, counter("b/in/drops/peer"));
	host_open(1);
	roce_send(&roce);
	check_eq("when the host is back it receives", 1, drain(1));
	close(host[1]);
	host_open(1);
	roce_send(&roce);
	check_eq("also when the wire did not notice", 1, drain(1));

	stranger = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sendto(stranger, data, 60, 0, (struct sockaddr *)&port, sizeof(port));
	check_eq("frames of strangers go nowhere", 0, drain(1) + drain(2));
	close(stranger);

	n = counter("a/out/frames");
	kill(wire_pid, SIGKILL);
	if (waitpid(wire_pid, NULL, 0) != wire_pid)
		die("the wire is killed");
	check(n > 0 && !transmit(0, data, 60), "nobody takes frames when the wire was killed");
	wire_start("--seed", "1");
	n = 0;
	check_eq("another can take its place", 0, counter("a/out/frames"));
	roce_send(&roce);
	check_eq("and its hosts go on", 1, drain(1));

	order("b.in delay 10s");
	for (n = 0; n < 5000; n++)
		roce_send(&roce);
	check(counter("b/queued") == 4096 && counter("b/queued_most") == 4096,
	      "under way is a bounded number of frames");
	check_eq("the rest is counted", 5000 - 4096, counter("b/in/drops/queue"));
	check_eq("and nobody waits for what is under way", 0, counter("a/pauses"));
	check_eq("the wire ends well", 0, wire_done());
}

/* Host FROM sends to host TO, from PSN *NEXT on, until the wire waits with its port, whose socket is full; false: it
 * takes all of it
 */
static bool fill(int from, int to, uint32_t *next)
{
	struct roce frame = { .from = from, .to = to, .opcode = 4, .qp = 17, .body = 100 };
	bool waits = false;
	char pauses[16];
	uint64_t before;

	snprintf(pauses, sizeof(pauses), "%c/pauses", 'a' + from);
	before = counter_now(pauses);
	for (uint32_t most = *next + 20000; *next < most;) {
		uint8_t data[FRAME];
		size_t len;

		frame.psn = *next;
		len = roce_build(data, &frame);
		if (transmit_now(from, data, len))
			(*next)++;
		else if (errno != EAGAIN)
			die("a frame is sent");
		else if (waits)
			return true;
		else
			waits = counter_now(pauses) > before;
	}
	return false;
}

/* Host N receives PSNs *FROM to TO, which are all that there is, and in order */
static bool all_come(int n, uint32_t *from, uint32_t to)
{
	uint8_t data[FRAME + 1];

	while (*from < to && receive(n, data, BOUND) > 0 && psn_of(data) == *from)
		++*from;
	return *from == to;
}

/* Host FROM reaches host TO; nothing else is on its way to it */
static bool reaches(int from, int to)
{
	struct roce frame = { .from = from, .to = to, .opcode = 4, .qp = 17, .psn = 1, .body = 100 };
	uint32_t psn = 1;

	roce_send(&frame);
	return all_come(to, &psn, 2);
}

/* Hosts that are slow, and hosts that take nothing at all */
static void slow(void)
{
	struct roce more = { .from = 0, .to = 1, .opcode = 4, .qp = 17, .body = 100 };
	uint32_t sent = 0, came = 0, sent_back = 0, came_back = 0;
	uint64_t before, lost, taken_by_b;

	wire_begin("--seed", "1");
	/* longer than all that follows takes */
	order("deaf 600");
	check(fill(0, 1, &sent), "who sends to a host that does not read is not read either");
	check(sent > 4096 && counter_now("b/queued") == 4096 && counter_now("b/queued_most") == 4096,
	      "a bounded number of frames waits (%u)", sent);
	check(reaches(2, 0), "others receive meanwhile, and so does the sender");
	check(all_come(1, &came, sent), "when the host reads, each frame comes, in its order");
	check_eq("none was dropped", 0, counter("b/in/drops/queue"));
	check_eq("once the sender waited", 1, counter("a/pauses"));
	check(reaches(0, 2), "now it sends again");

	check(fill(0, 1, &sent) && fill(1, 0, &sent_back), "two hosts wait for each other");
	check(all_come(1, &came, sent) && all_come(0, &came_back, sent_back), "both go on as soon as both read");
	check_eq("nothing was dropped", 0, counter("a/in/drops/queue") + counter("b/in/drops/queue"));

	check(fill(0, 1, &sent), "who sends waits for a host");
	close(host[1]);
	check(reaches(0, 2), "which is killed: the sender goes on");
	check(counter("b/in/drops/peer") > 4096 && !counter("b/in/drops/queue"), "and what was for it is counted");
	host_open(1);
	came = sent;
	check(fill(0, 1, &sent), "who sends waits again");
	close(host[0]);
	host_open(0);
	check(all_come(1, &came, sent), "and is killed: what it has sent comes");
	check(reaches(2, 0) && reaches(0, 1), "and who takes its place is read");

	check(fill(0, 1, &sent), "who sends waits");
	json_object_put(ask_now("a link down"));
	order("a link up");
	lost = counter("a/out/drops/link");
	check(lost > 0 && all_come(1, &came, sent - lost), "its link goes down: what it has sent by then is dropped");
	came = sent;
	check(reaches(0, 1), "and what it sends when the link is up again comes");

	before = counter("a/out/frames");
	check(fill(0, 1, &sent), "who sends waits");
	close(host[0]);
	roce_send(&(struct roce){ .from = 2, .to = 0, .opcode = 4, .qp = 17, .body = 100 });
	check_eq("and is killed: a frame for it goes nowhere", 1, counter("a/in/drops/peer"));
	host_open(0);
	check(reaches(0, 2), "but who takes its place is read");
	check_eq("what the wire had read comes", counter("a/out/frames") - before - 1, drain(1));
	came = sent;

	taken_by_b = counter("b/in/frames");
	check(fill(0, 1, &sent), "the host takes nothing any more");
	json_object_put(ask_now("deaf 1"));
	check(reaches(0, 2), "after the time for the deaf the sender goes on without it");
	check(counter("b/queued") == 4096, "what waits for it is kept");
	roce_send(&more);
	taken_by_b = counter("b/in/frames") - taken_by_b;
	check_eq("the rest is dropped, and counted", sent + 1 - came - taken_by_b - 4096, counter("b/in/drops/queue"));
	check_eq("the wire ends well", 0, wire_done());
}

/* A host that is another process: it sends FRAME before anything is sent to it, and lives until it is killed.  What sending
 * said is in *ERROR
 */
static pid_t host_apart(int n, const struct roce *frame, int *error)
{
	uint8_t data[FRAME];
	int said[2];
	pid_t pid;

	if (pipe(said))
		die("a pipe from a host");
	pid = fork();
	if (pid < 0)
		die("a host that is another process");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		host_open(n);
		/* Its answer comes when the wire has seen that the host is there */
		json_object_put(ask_now("help"));
		*error = transmit(n, data, roce_build(data, frame)) ? 0 : errno;
		if (write(said[1], error, sizeof(*error)) != sizeof(*error))
			_exit(1);
		for (;;)
			pause();
	}
	close(said[1]);
	if (read(said[0], error, sizeof(*error)) != sizeof(*error))
		die("a host that is another process says what it did");
	close(said[0]);
	return pid;
}

static void host_killed(pid_t pid)
{
	if (kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid)
		die("a host is killed");
}

/* Host N sends FRAME, if need be after what the host before it had sent has been read; MOST: turns of the wire */
static bool transmit_after(int n, const struct roce *frame, unsigned int most)
{
	uint8_t data[FRAME];
	size_t len = roce_build(data, frame);

	while (!transmit_now(n, data, len)) {
		if (errno != EPERM || !most--)
			return false;
		json_object_put(ask_now("help"));
	}
	return true;
}

/* A host that is killed and comes again under its name, and sends before anything is sent to it */
static void again(void)
{
	struct roce frame = { .from = 0, .to = 1, .opcode = 4, .qp = 17, .body = 100 };
	uint32_t came = 0, sent = 0;
	uint8_t data[FRAME + 1];
	uint64_t queued, until;
	unsigned long events;
	char name[32];
	FILE *file;
	int before, error;

	wire_begin("--seed", "1");
	order("deaf 600");
	close(host[0]);
	for (; frame.psn < 3; frame.psn++) {
		pid_t pid = host_apart(0, &frame, &error);

		check_eq(frame.psn ? "another one in place of one that was killed sends first" : "a host sends first", 0, error);
		check(receive(1, data, error ? 0 : BOUND) > 0 && psn_of(data) == frame.psn, "and its frame comes");
		host_killed(pid);
	}
	host_open(0);
	json_object_put(ask_now("help"));
	check(transmit_after(0, &frame, 0) && receive(1, data, BOUND) > 0, "one that opens its socket again sends first");
	check(reaches(1, 0), "and receives");
	check_eq("four frames of the four hosts of this name have passed", 4, counter("a/out/frames"));

	/* more than a turn of the wire takes, in the socket and unread */
	check(fill(0, 1, &sent), "who sends waits for a host that does not read");
	close(host[0]);
	host_open(0);
	frame.psn = sent;
	error = transmit_after(0, &frame, 4096) ? 0 : errno;
	check_eq("and is killed: who takes its place sends first", 0, error);
	queued = counter_now("b/queued");
	for (uint32_t most = ++sent + 20000; sent < most; sent++) {
		frame.psn = sent;
		if (!transmit_now(0, data, roce_build(data, &frame)))
			break;
	}
	check(frame.psn == sent && errno == EAGAIN, "and waits in turn");
	check_eq("unread", queued, counter_now("b/queued"));
	close(host[2]);
	host_open(2);
	json_object_put(ask_now("help"));
	check_eq("also when another host is another one", queued, counter_now("b/queued"));
	check(all_come(1, &came, sent), "what both have sent comes, in its order");
	check(reaches(0, 1) && reaches(1, 0), "and they go on");
	check_eq("nothing was dropped", 0,
		 counter("a/out/drops/peer") + counter("b/in/drops/queue") + counter("b/in/drops/peer"));

	/* as many as a turn of the wire takes, and then nothing that would wake it */
	kill(wire_pid, SIGSTOP);
	for (frame.psn = 0; frame.psn < 64; frame.psn++)
		roce_send(&frame);
	close(host[0]);
	host_open(0);
	kill(wire_pid, SIGCONT);
	until = now_ms() + BOUND;
	while (!transmit_now(0, data, roce_build(data, &frame)) && errno == EPERM && now_ms() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	came = 0;
	check(all_come(1, &came, 65), "who takes its place sends as soon as all of that is read");

	/* bind() makes the name first; the wire may look before the socket is there */
	close(host[0]);
	unlink("w/a.host");
	file = fopen("w/a.host", "we");
	if (!file)
		die("a name without a socket");
	fclose(file);
	json_object_put(ask_now("help"));
	host_open(0);
	check(reaches(0, 1) && reaches(1, 0), "a host whose name came before its socket sends");

	/* a name is only a name */
	unlink("w/a.host");
	json_object_put(ask_now("help"));
	check(reaches(0, 1), "a host whose name is taken away goes on sending");
	check(reaches(1, 0), "and receiving");
	before = host[0];
	host_open(0);
	json_object_put(ask_now("help"));
	check(reaches(0, 1), "until another one has that name, which sends");
	check(reaches(1, 0), "and receives");
	close(host[0]);
	host[0] = before;
	check(!transmit_after(0, &frame, 0) && errno == EPERM, "the one before sends no more");
	close(host[0]);

	/* more names come than the kernel keeps for the wire */
	host_open(0);
	json_object_put(ask_now("help"));
	check(reaches(0, 1), "a host sends");
	file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	if (!file || fscanf(file, "%lu", &events) != 1)
		die("how many events the kernel keeps");
	fclose(file);
	kill(wire_pid, SIGSTOP);
	for (unsigned long i = 0; i <= events; i++) {
		snprintf(name, sizeof(name), "w/%lu", i % 2);
		if (mkdir(name, 0700) || rmdir(name))
			die("names come and go");
	}
	close(host[0]);
	host_open(0);
	kill(wire_pid, SIGCONT);
	json_object_put(ask_now("help"));
	check(transmit_after(0, &frame, 0) && receive(1, data, BOUND) > 0, "who takes its place unseen sends first");
	check_eq("the wire ends well", 0, wire_done());
}

/* Clients that wait, stammer, leave, or come in numbers */
static void clients(void)
{
	/* 14 bytes each */
	static const char *const binary[] = { "a loss 100%\0a\n", "a loss\x01 100% \n", "a loss 100%\xff \n" };
	struct json_object *object, *frames = NULL;
	int fd, many[40];

	wire_begin("--seed", "1");
	fd = control_connect();
	dprintf(fd, "a.out wait 2 rc-send-only 10\na.out loss 100%%\n");
	roce_send(&roce);
	roce_send(&roce);
	object = control_answer(fd);
	check(object && json_object_object_get_ex(object, "frames", &frames) &&
	      json_object_get_int(frames) == 2, "a wait ends with the frame that it is for");
	json_object_put(object);
	object = control_answer(fd);
	check(object && json_object_object_get_ex(object, "ok", &frames),
	      "the next command is done after it");
	json_object_put(object);
	check_eq("not before", 2, drain(1));
	dprintf(fd, "a.out lo");
	check_eq("half a command does nothing", 0, counter("a/out/drops/loss"));
	dprintf(fd, "ss 0%%\n");
	json_object_put(control_answer(fd));
	roce_send(&roce);
	check_eq("with its other half it does", 1, drain(1));
	dprintf(fd, "%0600d\n", 1);
	object = control_answer(fd);
	check(object && json_object_object_get_ex(object, "error", &frames) &&
	      strstr(json_object_get_string(frames), "more than 511 bytes"),
	      "a line that is too long is refused");
	json_object_put(object);
	dprintf(fd, "%03000d\na clear\n", 1);
	json_object_put(control_answer(fd));
	object = control_answer(fd);
	check(object && json_object_object_get_ex(object, "ok", &frames),
	      "once, all of it, and the next command is understood");
	json_object_put(object);
	for (size_t i = 0; i < sizeof(binary) / sizeof(binary[0]); i++) {
		if (send(fd, binary[i], 14, 0) != 14)
			die("a command that is no text");
		object = control_answer(fd);
		check(object && json_object_object_get_ex(object, "error", &frames) &&
		      strstr(json_object_get_string(frames), "plain text"),
		      "no text is refused (%zu)", i);
		json_object_put(object);
	}
	roce_send(&roce);
	check_eq("and nothing of it is done", 1, drain(1));
	dprintf(fd, "a.out wait 1000 any 1\na.out wait 1001 any 1\n");
	for (uint64_t want = 1000; want < 1002; want++) {
		char text[64];

		object = control_answer(fd);
		snprintf(text, sizeof(text), "of %d frames came in time", (int)want);
		check(object && json_object_object_get_ex(object, "error", &frames) &&
		      strstr(json_object_get_string(frames), text),
		      "one wait after the other ends in time (%d)", (int)want);
		json_object_put(object);
	}
	close(fd);
	for (int i = 0; i < 40; i++) {
		many[i] = control_connect();
		dprintf(many[i], "a.out wait 1000 any 60\n");
		if (i % 2)
			close(many[i]);
	}
	for (int i = 0; i < 40; i += 2)
		close(many[i]);
	object = ask("counters");
	check(!!object, "clients that leave while they wait make room for others");
	json_object_put(object);
	check_eq("the wire ends well", 0, wire_done());
}

int main(int argc, char **argv)
{
	wire_program = argc == 2 ? argv[1] : "peerlane-wire";
	loss();
	delay();
	rate();
	reorder();
	duplicate();
	corrupt();
	rules();
	links();
	peers();
	slow();
	again();
	clients();
	return results();
}
