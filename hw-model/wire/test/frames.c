/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wire takes frames where they belong, and counts them. */
#include "wire.h"

static void addresses(void)
{
	uint8_t data[FRAME + 1], got[FRAME + 1];

	wire_begin("--seed", "1");
	for (int i = 0; i < FRAME; i++)
		data[i] = i * 31;
	ethernet(data, 0, 1);
	transmit(0, data, FRAME);
	check(receive(1, got, BOUND) == FRAME && !memcmp(data, got, FRAME),
	      "a frame comes to the host that has its address, as it was");
	check_eq("and to no other", 0, drain(2));
	check_eq("nor back to its sender", 0, drain(0));
	ethernet(data, 0, -1);
	transmit(0, data, 60);
	check(receive(1, got, BOUND) == 60 && receive(2, got, BOUND) == 60,
	      "a broadcast comes to all others");
	ethernet(data, 0, 9);
	transmit(0, data, 60);
	check(receive(1, got, BOUND) == 60 && receive(2, got, BOUND) == 60,
	      "so does a frame to an address that no port has");
	ethernet(data, 0, 0);
	transmit(0, data, 60);
	check_eq("a frame to its own sender goes nowhere", 0,
		 drain(0) + drain(1) + drain(2));
	check_eq("and is counted", 1, counter("a/in/drops/own"));
	check_eq("frames that a sent", 4, counter("a/out/frames"));
	check_eq("and their bytes", FRAME + 180, counter("a/out/bytes"));
	check_eq("frames that b received", 3, counter("b/in/frames"));
	check_eq("frames that c received", 2, counter("c/in/frames"));
	check_eq("bytes that c received", 120, counter("c/in/bytes"));
	check_eq("none of them is RoCE", 0, counter("a/out/roce/frames"));

	transmit(0, data, 13);
	data[FRAME] = 0;
	ethernet(data, 0, 1);
	transmit(0, data, FRAME + 1);
	transmit(0, data, 0);
	check_eq("runt and oversize frames do not pass", 0, drain(1));
	check_eq("runts are counted", 2, counter("a/out/drops/runt"));
	check_eq("oversize frames are counted", 1, counter("a/out/drops/oversize"));
	transmit(0, data, 14);
	check(receive(1, got, BOUND) == 14, "a header alone passes");
	check_eq("the wire ends well", 0, wire_done());
	check(access("w/a", F_OK) && access("w/control", F_OK), "and takes its sockets away");
}

/* Extended headers from the tables of the InfiniBand specification, chapter 9 */
static const struct {
	const char *name;
	uint8_t opcode;
	size_t headers;
} operations[] = {
	{ "rc-send-first", 0x00, 0 },
	{ "rc-send-last-with-immediate", 0x03, 4 },
	{ "rc-send-only", 0x04, 0 },
	{ "rc-rdma-write-first", 0x06, 16 },
	{ "rc-rdma-write-middle", 0x07, 0 },
	{ "rc-rdma-write-only", 0x0a, 16 },
	{ "rc-rdma-write-only-with-immediate", 0x0b, 20 },
	{ "rc-rdma-read-response-first", 0x0d, 4 },
	{ "rc-rdma-read-response-middle", 0x0e, 0 },
	{ "rc-rdma-read-response-only", 0x10, 4 },
	{ "rc-send-only-with-invalidate", 0x17, 4 },
	{ "uc-rdma-write-only", 0x2a, 16 },
	{ "ud-send-only", 0x64, 8 },
	{ "ud-send-only-with-immediate", 0x65, 12 },
};

static const struct {
	const char *name;
	uint8_t opcode;
	size_t headers;
} empty[] = {
	{ "rc-rdma-read-request", 0x0c, 16 },
	{ "rc-acknowledge", 0x11, 4 },
	{ "rc-atomic-acknowledge", 0x12, 12 },
	{ "rc-compare-swap", 0x13, 28 },
	{ "rc-fetch-add", 0x14, 28 },
	{ "cnp", 0x81, 16 },
};

static void opcodes(void)
{
	const size_t n = sizeof(operations) / sizeof(operations[0]);
	char name[96];

	wire_begin("--seed", "1");
	for (size_t i = 0; i < n; i++) {
		struct roce roce = { .from = 0, .to = 1, .opcode = operations[i].opcode,
				     .qp = 17, .psn = i, .pad = 3,
				     .body = operations[i].headers + 1021 + 3 + 4 };

		roce_send(&roce);
		snprintf(name, sizeof(name), "a/out/roce/opcodes/%s/payload_bytes",
			 operations[i].name);
		check(counter(name) == 1021, "%s: what is behind its headers is payload",
		      operations[i].name);
	}
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		struct roce roce = { .from = 0, .to = 1, .opcode = empty[i].opcode,
				     .body = empty[i].headers + 4 };

		roce_send(&roce);
		snprintf(name, sizeof(name), "a/out/roce/opcodes/%s/frames", empty[i].name);
		check(counter(name) == 1, "%s is known", empty[i].name);
	}
	check_eq("all payload together", n * 1021, counter("a/out/roce/payload_bytes"));
	drain(1);
	check_eq("all of it came to b", n * 1021, counter("b/in/roce/payload_bytes"));
	roce_send(&(struct roce){ .from = 0, .to = 1, .opcode = 0xff, .body = 100 });
	check_eq("an opcode without a name has its number", 1,
		 counter("a/out/roce/opcodes/0xff/frames"));
	check_eq("the wire ends well", 0, wire_done());
}

/* What is RoCE, and what only looks like it */
static void parsing(void)
{
	struct roce roce = { .from = 0, .to = 1, .opcode = 4, .body = 104 };
	uint8_t data[FRAME], got[FRAME + 1];
	uint64_t frames;
	size_t len;

	wire_begin("--seed", "1");
	roce.ipv6 = true;
	roce_send(&roce);
	check_eq("over IPv6", 100, counter("a/out/roce/payload_bytes"));
	roce.vlan = true;
	roce_send(&roce);
	check_eq("with a VLAN tag", 200, counter("a/out/roce/payload_bytes"));
	roce.ipv6 = roce.vlan = false;
	frames = counter("a/out/roce/frames");

	len = roce_build(data, &roce);
	put16(data + 36, 4792);
	transmit(0, data, len);
	check_eq("not to another port", frames, counter("a/out/roce/frames"));
	len = roce_build(data, &roce);
	data[23] = 6;
	transmit(0, data, len);
	check_eq("not over TCP", frames, counter("a/out/roce/frames"));
	len = roce_build(data, &roce);
	put16(data + 20, 0x2001);
	transmit(0, data, len);
	check_eq("not a later fragment", frames, counter("a/out/roce/frames"));
	len = roce_build(data, &roce);
	put16(data + 38, len);
	transmit(0, data, len);
	check_eq("not longer than its frame", frames, counter("a/out/roce/frames"));
	len = roce_build(data, &roce);
	put16(data + 38, 23);
	transmit(0, data, len);
	check_eq("not shorter than its headers", frames, counter("a/out/roce/frames"));
	len = roce_build(data, &roce);
	data[14] = 0x41;
	transmit(0, data, len);
	check_eq("not with an IPv4 header of 4 bytes", frames, counter("a/out/roce/frames"));
	for (size_t cut = 14; cut < 14 + 20 + 8 + 12 + 4; cut++) {
		roce_build(data, &roce);
		transmit(0, data, cut);
	}
	check_eq("not any frame that ends before its ICRC", frames,
		 counter("a/out/roce/frames"));
	drain(1);
	check_eq("all of these passed", 2 + 6 + 44, counter("b/in/frames"));

	/* whatever comes, it goes on */
	srand(1);
	for (int i = 0; i < 20000; i++) {
		len = roce_build(data, &roce);
		for (int j = rand() % 8; j >= 0; j--)
			data[6 + rand() % 60] = rand();
		len = 14 + rand() % len;
		/* The wire can wait for b, which this program is, too */
		while (!transmit_now(0, data, len)) {
			if (errno != EAGAIN)
				die("a frame is sent");
			receive(1, got, 1);
		}
		while (receive(1, got, 0) >= 0)
			;
	}
	check_eq("the wire ends well after 20000 frames with random bytes", 0, wire_done());
}

/* What a sender repeats is told apart by its PSN */
static void repeats(void)
{
	static const uint32_t psn[] = {
		0xfffffe, 0xffffff, 0, 1, 0xffffff, 0, 1, 2, 3, 3, 4
	};
	struct roce roce = { .from = 0, .to = 1, .opcode = 4, .qp = 0x123456, .body = 1004 };

	wire_begin("--seed", "1");
	for (size_t i = 0; i < sizeof(psn) / sizeof(psn[0]); i++) {
		roce.psn = psn[i];
		roce_send(&roce);
	}
	check_eq("first ones, over the end of the numbers", 7000,
		 counter("a/out/roce/unique_payload_bytes"));
	check_eq("repeated ones", 4, counter("a/out/roce/repeated"));
	check_eq("both are payload that passed", 11000, counter("a/out/roce/payload_bytes"));
	roce.qp++;
	roce_send(&roce);
	check_eq("another queue pair has numbers of its own", 8000,
		 counter("a/out/roce/unique_payload_bytes"));
	roce.opcode = 0x0e;
	roce_send(&roce);
	check_eq("and so have responses", 9000, counter("a/out/roce/unique_payload_bytes"));
	roce.opcode = 4;
	roce.to = 2;
	roce_send(&roce);
	check_eq("and another host", 10000, counter("a/out/roce/unique_payload_bytes"));
	roce.psn = 0x400000;
	roce_send(&roce);
	roce.psn = 5;
	roce_send(&roce);
	check_eq("far back is a new connection", 12000,
		 counter("a/out/roce/unique_payload_bytes"));
	/* now the last one is 5 */
	static const uint32_t gap[] = { 7, 9, 8, 6, 8, 2054, 11, 7, 0 };

	for (size_t i = 0; i < sizeof(gap) / sizeof(gap[0]); i++) {
		roce.psn = gap[i];
		roce_send(&roce);
	}
	/* 8 and 7 again; 0 is so far below 2054 that it cannot be new; 11 is */
	check_eq("what comes late comes for the first time", 18000,
		 counter("a/out/roce/unique_payload_bytes"));
	check_eq("once", 7, counter("a/out/roce/repeated"));
	order("a.out loss 100%");
	roce.psn = 2055;
	roce_send(&roce);
	order("a.out loss 0%");
	roce_send(&roce);
	check_eq("what the wire loses was sent, and comes a second time", 19000,
		 counter("a/out/roce/unique_payload_bytes"));
	check_eq("it is repeated", 8, counter("a/out/roce/repeated"));
	roce.opcode = 0x64;
	roce.body = 8 + 1000 + 4;
	roce_send(&roce);
	roce_send(&roce);
	check_eq("datagrams are never repeated", 21000,
		 counter("a/out/roce/unique_payload_bytes"));
	check_eq("the wire ends well", 0, wire_done());
}

/* The time of day, in ns */
static uint64_t time_of_day(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* A record is what a host's own tcpdump would show */
static void record(void)
{
	struct roce roce = { .from = 0, .to = 1, .opcode = 4, .body = 104 };
	uint32_t header[6], one[4];
	uint8_t want[FRAME], got[FRAME];
	struct stat stat_a, stat_b;
	uint64_t before, after, stamp;
	size_t len;
	FILE *file;

	wire_begin("--pcap-max", "1000");
	check_eq("without --pcap nothing is recorded", 0, wire_done());
	check(access("w/a.pcap", F_OK), "(no file)");
	wire_begin("--pcap", "--seed=1");
	before = time_of_day();
	len = roce_send(&roce);
	order("b.in loss 100%");
	roce_send(&roce);
	check_eq("the wire ends well", 0, wire_done());
	after = time_of_day();
	roce_build(want, &roce);
	file = fopen("w/b.pcap", "r");
	check(file && fread(header, sizeof(header), 1, file) == 1 &&
	      header[0] == 0xa1b23c4d && header[5] == 1,
	      "the file is a pcap of Ethernet, in ns");
	check(file && fread(one, sizeof(one), 1, file) == 1 && one[2] == len &&
	      one[3] == len && fread(got, len, 1, file) == 1 && !memcmp(got, want, len),
	      "it has the frame");
	stamp = one[0] * 1000000000ULL + one[1];
	check(before <= stamp && stamp <= after, "with the time of day");
	check(file && fgetc(file) == EOF, "and not the one that b did not get");
	check(!stat("w/a.pcap", &stat_a) && !stat("w/b.pcap", &stat_b) &&
	      stat_a.st_size == stat_b.st_size + 16 + (off_t)len, "which a's file has");
	if (file)
		fclose(file);
}

/* Is GOT a train of these N frames? */
static bool is_train_of(const uint8_t *got, ssize_t len, uint8_t frame[][FRAME], const size_t *size, int n)
{
	size_t at = TRAIN_HEAD;

	if (!is_train(got, len))
		return false;
	for (int i = 0; i < n; i++) {
		if (at + 2 + size[i] > (size_t)len || (got[at] << 8 | got[at + 1]) != (int)size[i] ||
		    memcmp(got + at + 2, frame[i], size[i]))
			return false;
		at += 2 + size[i];
	}
	return at == (size_t)len;
}

static void trains(void)
{
	static uint8_t frame[4][FRAME], train[5 * FRAME], bad[5 * FRAME], got[TRAIN + 1];
	struct roce roce = { .from = 0, .to = 1, .opcode = 7, .qp = 17, .body = 1004 };
	size_t size[4], len = 0;
	bool ok = true;

	wire_begin("--seed", "1");
	for (int i = 0; i < 4; i++) {
		roce.psn = i;
		roce.body = 1004 + 4 * i;
		size[i] = roce_build(frame[i], &roce);
		couple(train, &len, frame[i], size[i]);
	}
	transmit(0, train, len);
	for (int i = 0; i < 4; i++)
		ok = receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[i] && !memcmp(got, frame[i], size[i]) && ok;
	check(ok, "the frames of a train come one by one to a host that sends none");
	check_eq("each is counted", 4, counter("a/out/roce/frames"));
	check_eq("with its payload", 4000 + 4 + 8 + 12, counter("a/out/roce/unique_payload_bytes"));
	check_eq("one datagram went out", 1, counter("a/out/datagrams"));
	check_eq("and four came in", 4, counter("b/in/datagrams"));

	order("a.out nth 2 rc-rdma-write-middle drop");
	order("b.in nth 2 rc-rdma-write-middle corrupt");
	transmit(0, train, len);
	ok = receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[0] && !memcmp(got, frame[0], size[0]);
	ok = receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[2] && memcmp(got, frame[2], size[2]) && ok;
	ok = receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[3] && !memcmp(got, frame[3], size[3]) && ok;
	check(ok, "one of them can be lost, and another one damaged");
	check_eq("the others are repeated", 4, counter("a/out/roce/repeated"));

	/* b says that it takes trains; what waits for it while it is held up comes in one */
	transmit(1, train, TRAIN_HEAD);
	check_eq("an empty train has no frame", 0, counter("b/out/frames") + counter("b/out/drops/runt"));
	transmit(0, train, len);
	check(is_train_of(got, receive_most(1, got, sizeof(got), BOUND), frame, size, 4),
	      "a host that sent a train gets one, of the same frames");
	check_eq("(and nothing else)", 0, drain(1));
	check_eq("that is one datagram more", 3 + 4 + 1, counter("b/in/datagrams"));
	check_eq("and four frames", 4 + 3 + 4, counter("b/in/frames"));
	order("b.in nth 2 any duplicate");
	order("b.in nth 3 any drop");
	transmit(0, train, len);
	memmove(frame[2], frame[1], FRAME);
	size[2] = size[1];
	check(is_train_of(got, receive_most(1, got, sizeof(got), BOUND), frame, size, 4),
	      "with one of them twice, and one missing");
	ethernet(got, 1, 2);
	transmit(1, got, 60);
	check_eq("a single frame passes as ever", 60, receive_most(2, got, sizeof(got), BOUND));
	transmit(0, frame[0], size[0]);
	check(receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[0] && !memcmp(got, frame[0], size[0]),
	      "then its sender gets single frames again");
	transmit(1, train, TRAIN_HEAD);
	json_object_put(ask("help"));
	close(host[1]);
	host_open(1);
	transmit(0, frame[0], size[0]);
	check(receive_most(1, got, sizeof(got), BOUND) == (ssize_t)size[0], "and so does a host that is new");

	/* many: as QEMU takes no datagram above 68 KiB */
	transmit(1, train, TRAIN_HEAD);
	order("b.in delay 300ms");
	for (int i = 0; i < 40; i++)
		transmit(0, train, len);
	order("b.in delay 0");
	for (unsigned int frames = 0; frames < 160; ) {
		ssize_t came = receive_most(1, got, sizeof(got), BOUND);

		if (came < 0 || came > TRAIN) {
			ok = false;
			break;
		}
		frames += frames_in(got, came);
	}
	check(ok, "no train is longer than 69632 bytes");

	/* what is wrong */
	order("all clear");
	roce.psn = 900;
	roce.body = 1004;
	size[0] = roce_build(frame[0], &roce);
	static const struct {
		const char *what;
		int length;		/* of the second frame, as it is told; -1: one byte alone stands there */
		unsigned int frames, runts, oversize;
	} wrong[] = {
		{ "a length beyond the end", 2000, 1, 1, 0 },
		{ "half of a length", -1, 1, 1, 0 },
		{ "a frame of 13 bytes, and then too much of a length", 13, 1, 2, 0 },
		{ "a frame of no bytes, likewise", 0, 1, 2, 0 },
		{ "a frame that is too long", FRAME + 1, 1, 0, 1 },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t before[3] = { counter("a/out/frames"), counter("a/out/drops/runt"),
				       counter("a/out/drops/oversize") };
		size_t rest = wrong[i].length > FRAME ? wrong[i].length : wrong[i].length < 0 ? 0 : 100;

		len = 0;
		couple(bad, &len, frame[0], size[0]);
		memset(bad + len, 0xff, sizeof(bad) - len);
		if (wrong[i].length >= 0)
			put16(bad + len, wrong[i].length);
		transmit(0, bad, len + (wrong[i].length < 0 ? 1 : 2 + rest));
		check(counter("a/out/frames") - before[0] == wrong[i].frames &&
		      counter("a/out/drops/runt") - before[1] == wrong[i].runts &&
		      counter("a/out/drops/oversize") - before[2] == wrong[i].oversize,
		      "%s: the frames before it pass, and it is counted", wrong[i].what);
	}
	drain(1);
	check_eq("the wire ends well", 0, wire_done());
}

int main(int argc, char **argv)
{
	wire_program = argc == 2 ? argv[1] : "peerlane-wire";
	addresses();
	opcodes();
	parsing();
	repeats();
	record();
	trains();
	return results();
}
