/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peerlane-wire: an Ethernet switch between QEMUs that counts RoCEv2 and does
 * harm to order.
 *
 * A port is a host's cable.  Its two ways are named as that host sees them:
 * "out" is what the host sends, "in" is what it receives.  A frame goes through
 * the faults of its sender's "out", then, each copy, those of each receiver's "in".
 *
 * Nothing that it has read gets lost uncounted.  What a host has sent is its
 * "out" frames and drops; what was meant for a host, with the copies that its
 * "in" made, is its "in" frames and drops, and what is queued.
 *
 * For a host that is slow nothing gets lost: whoever has filled its queue is not
 * read until half of it is gone.  The queue then has one datagram of each sender
 * more than its limit at most, one more each time that a sender's link comes back,
 * and what a sender has sent each time that another one comes in its place.  Hosts
 * that wait for each other go on as long as each receives while it cannot send.  A
 * host that takes nothing for "deaf" seconds is waited for no more, and what does not
 * fit into its queue is dropped.  They begin anew with each datagram that it takes, so
 * one that takes only a few holds its senders up without a limit.
 */
#ifndef PEERLANE_WIRE_H
#define PEERLANE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/un.h>

#define WIRE_PORTS_MAX	16
#define WIRE_NAME_MAX	15
#define WIRE_FRAME_MIN	14		/* an Ethernet header */
#define WIRE_FRAME_MAX	9018		/* MTU 9000, header, VLAN tag */
#define WIRE_TRAIN_MAX	69632		/* several frames in one datagram, as QEMU takes it */
#define WIRE_QUEUE_MAX	4096		/* frames that wait for one host */
#define WIRE_DEAF	10		/* s; who has taken nothing for so long holds nobody up */
#define WIRE_DEAF_MAX	600
#define WIRE_RULES_MAX	64		/* for each way of a port */
#define WIRE_HOLD_NS	10000000ull	/* a frame to be overtaken waits so long */
#define WIRE_DELAY_MAX	10000000000ull
#define WIRE_LINE_MAX	512		/* of a command */
#define WIRE_WAIT_MAX	600		/* s that a command may wait */
#define WIRE_ANY	(-1)		/* any opcode */
#define WIRE_ALL	1000000u	/* a rate, in parts per million */
#define WIRE_ROOM	1048576		/* bytes that wait in front of a rate, if nothing is said */
#define WIRE_ROOM_MAX	67108864
#define WIRE_KBITS_MAX	1000000000ull	/* 1000gbit */

enum wire_way { WAY_OUT, WAY_IN, WAYS };

enum wire_drop {
	DROP_RUNT, DROP_OVERSIZE, DROP_LINK, DROP_LOSS, DROP_RULE, DROP_QUEUE,
	DROP_PEER, DROP_OWN, DROP_FULL, DROPS
};

enum wire_fault { FAULT_LOSS, FAULT_CORRUPT, FAULT_DUPLICATE, FAULT_REORDER, FAULTS };

enum wire_action { ACTION_DROP, ACTION_CORRUPT, ACTION_DUPLICATE, ACTION_CUT, ACTIONS };

struct wire_counters {
	uint64_t datagrams;		/* in which they came or went */
	uint64_t frames;		/* passed this way */
	uint64_t bytes;
	uint64_t roce_frames;		/* of these */
	uint64_t roce_payload;		/* bytes behind RoCE's headers */
	uint64_t roce_unique;		/* of "out": what the host sent for the first time, */
	uint64_t roce_repeats;		/* and frames that it sent again; before any fault */
	uint64_t opcode[256];
	uint64_t opcode_payload[256];
	uint64_t drops[DROPS];		/* did not pass */
	uint64_t roce_drops;		/* of these */
	uint64_t done[FAULTS];		/* corrupted, duplicated, reordered */
	uint64_t delayed;
	uint64_t marked;		/* "congestion experienced" */
};

/* The nth RoCE frame with this opcode from now on */
struct wire_rule {
	enum wire_action action;
	int opcode;
	uint64_t nth;
	uint64_t seen;
};

/* One way of a port */
struct wire_path {
	struct wire_counters count;
	uint32_t rate[FAULTS];		/* parts per million */
	bool roce_only[FAULTS];
	uint64_t prng[FAULTS];		/* each fault has its own numbers */
	uint64_t prng_jitter;
	uint64_t delay_ns;
	uint64_t jitter_ns;
	uint64_t kbits;			/* in a second; 0: as fast as it goes */
	uint64_t room;			/* bytes of the queue in front of that */
	uint64_t mark;			/* frames are marked behind so many; UINT64_MAX: none is */
	uint64_t busy_until;		/* when the queue is empty */
	struct wire_rule rule[WIRE_RULES_MAX];
	unsigned int rules;
};

/* What a frame is, as far as the wire wants to know */
struct wire_info {
	size_t ip;			/* where the header of IPv4 or IPv6 is; 0: there is none */
	bool roce;
	uint8_t opcode;
	bool ordered;			/* a reliable flow: repeats have the PSN of the first */
	bool response;
	uint32_t qp;
	uint32_t psn;
	uint32_t payload;		/* bytes, without padding and ICRC */
	size_t harmless;		/* a flipped bit from here on is found by a checksum */
};

struct wire_frame {
	struct wire_frame *next;
	uint64_t due;
	bool held;			/* lets one other frame overtake it */
	struct wire_info info;
	uint16_t len;
	uint8_t prefix[2];		/* the length, in front of the data as in a train */
	uint8_t data[];
};

struct wire_port {
	char name[WIRE_NAME_MAX + 1];
	uint8_t mac[6];
	int fd;				/* our end; connected to the host's when that is there */
	bool connected;
	unsigned int former;		/* so many datagrams of the last host are read first */
	uint64_t blocked_since;		/* the host's socket is full; 0: it is not */
	uint32_t waits;			/* for these ports, a bit for each: it is not read */
	uint64_t pauses;		/* how often it began to, if only for one turn */
	bool trains;			/* the host takes several frames in one datagram */
	bool up;
	struct sockaddr_un peer;
	struct wire_path path[WAYS];
	struct wire_frame *queue, *tail;	/* for the host, by time */
	uint64_t last_due[WIRE_PORTS_MAX];	/* from each port: jitter does not reorder */
	unsigned int queued;
	unsigned int held;		/* of these */
	unsigned int queued_most;
	struct wire_flows *flows;	/* of what the host sends */
	FILE *pcap;			/* what this cable carried */
	uint64_t pcap_bytes;
};

struct wire {
	const char *folder;
	struct wire_port port[WIRE_PORTS_MAX];
	unsigned int ports;
	uint64_t seed;
	uint64_t deaf_ns;
	uint64_t looks;			/* how many times the counters were read */
	bool pcap;
	uint64_t pcap_max;
	int listener;
	int watch;			/* inotify: names of hosts that come */
};

/* A command that waits for frames */
struct wire_wait {
	const struct wire_path *path;	/* NULL: none */
	int opcode;
	uint64_t want;
	uint64_t until;
};

/* frame.c */
void frame_parse(const uint8_t *data, size_t len, struct wire_info *info);
/* "rc-send-only"; a static buffer for opcodes without a name: "0x3f" */
const char *frame_opcode_name(uint8_t opcode);
/* the opcode, WIRE_ANY for "any", or -EINVAL */
int frame_opcode_by_name(const char *name);

/* flow.c */
struct wire_flows *flow_new(void);
/* Has this sender sent the frame before?  FLOWS may be NULL: nobody knows */
bool flow_repeats(struct wire_flows *flows, const uint8_t *data,
		  const struct wire_info *info);

/* port.c */
int port_open(struct wire *wire, struct wire_port *port);
void port_close(struct wire *wire, struct wire_port *port);
void port_seed(struct wire *wire);
void port_link(struct wire_port *port, bool up);
/* Watches the folder for hosts that come again; -errno */
int port_watch(struct wire *wire);
/* Takes note of those that have come */
void port_look(struct wire *wire);
/* Is the port to be read?  If not, *NEXT is not later than when to ask again */
bool port_reads(struct wire *wire, struct wire_port *port, uint64_t now, uint64_t *next);
/* Takes what the host has sent, no more than is fair to the others */
void port_receive(struct wire *wire, struct wire_port *port);
/* Gives the host what is due; returns when the next is, or UINT64_MAX */
uint64_t port_send(struct wire *wire, struct wire_port *port, uint64_t now);
extern const char *const wire_drop_names[DROPS];
extern const char *const wire_fault_names[FAULTS];
extern const char *const wire_action_names[ACTIONS];

/* command.c: answers are objects of JSON, which the caller puts */
struct json_object;
/* Does what stands in LINE, which it takes apart; NULL: WAIT is what it waits for */
struct json_object *command_run(struct wire *wire, struct wire_wait *wait, char *line);
/* The answer of a wait that is over; NULL: it is not */
struct json_object *command_waited(struct wire_wait *wait, uint64_t now);
struct json_object *command_refuse(const char *format, ...);

/* control.c */
int control_open(struct wire *wire);
void control_close(struct wire *wire);
/* fills fds with what to poll, returns how many (at most CONTROL_FDS) */
struct pollfd;
#define CONTROL_CLIENTS 16
#define CONTROL_FDS (CONTROL_CLIENTS + 1)
unsigned int control_poll(struct wire *wire, struct pollfd *fds);
void control_serve(struct wire *wire, const struct pollfd *fds, unsigned int n);
/* answers "wait" commands; returns when the next one's time is over */
uint64_t control_waits(struct wire *wire, uint64_t now);

/* ask.c */
/* Gives the wire in FOLDER a command, prints the answer; an exit status: 1 it was
 * refused, 2 there was no answer
 */
int control_ask(const char *folder, int argc, char **argv);

/* main.c */
uint64_t wire_now(void);
/* a whole number of decimal digits and nothing else */
bool wire_number(const char *text, uint64_t *value);
int wire_address(struct sockaddr_un *address, const char *folder,
		 const char *name, const char *suffix);
/* A socket with that name, which does not block, or -errno; what a wire that was
 * killed has left there gives way
 */
int wire_bind(int type, const struct sockaddr_un *name);

#endif
