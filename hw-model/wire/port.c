/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port: what its host sends goes through faults into the queues of others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define FAIR 64		/* frames of one host before the others' turn, and the rest of a train */
#define TRAIN_FRAMES 256	/* in one to a host */
#define FORMER 4096	/* datagrams; a socket holds fewer of a host that is gone */

/* What a train begins with; the sender is told by the cable */
#define TRAIN_HEAD 14
static const uint8_t train_head[TRAIN_HEAD] = {
	0x03, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, 0, 0, 0x88, 0xb6
};

const char *const wire_drop_names[DROPS] = {
	"runt", "oversize", "link", "loss", "rule", "queue", "peer", "own", "full"
};

const char *const wire_fault_names[FAULTS] = {
	"loss", "corrupt", "duplicate", "reorder"
};

const char *const wire_action_names[ACTIONS] = {
	"drop", "corrupt", "duplicate", "cut"
};

/* What becomes of a frame */
struct verdict {
	enum wire_drop drop;		/* DROPS: it goes on */
	unsigned int copies;
	bool held;
	uint64_t delay;
};

/* splitmix64: any seed is good, and seeds that differ by 1 give other numbers */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

void port_seed(struct wire *wire)
{
	for (unsigned int i = 0; i < wire->ports; i++)
		for (int way = 0; way < WAYS; way++) {
			struct wire_path *path = &wire->port[i].path[way];
			uint64_t mix = wire->seed + ((uint64_t)i * WAYS + way + 1) *
				0xd1342543de82ef95ull;

			for (int fault = 0; fault < FAULTS; fault++)
				path->prng[fault] = draw(&mix);
			path->prng_jitter = draw(&mix);
		}
}

/* --- pcap ------------------------------------------------------------------ */

static void pcap_open(struct wire *wire, struct wire_port *port)
{
	/* times in ns, version 2.4, whole frames of Ethernet */
	static const uint32_t header[6] = {
		0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1
	};
	struct sockaddr_un name;

	if (wire_address(&name, wire->folder, port->name, ".pcap"))
		return;
	port->pcap = fopen(name.sun_path, "we");
	if (!port->pcap || fwrite(header, sizeof(header), 1, port->pcap) != 1) {
		fprintf(stderr, "peerlane-wire: cannot write %s: %s; the frames of %s are not recorded\n",
			name.sun_path, strerror(errno), port->name);
		if (port->pcap)
			fclose(port->pcap);
		port->pcap = NULL;
	}
}

static void pcap_write(struct wire *wire, struct wire_port *port,
		       const uint8_t *data, size_t len)
{
	uint32_t header[4] = { 0, 0, len, len };
	struct timespec now;

	if (!port->pcap)
		return;
	/* of the day, so that the file can be laid beside logs */
	clock_gettime(CLOCK_REALTIME, &now);
	header[0] = now.tv_sec;
	header[1] = now.tv_nsec;
	port->pcap_bytes += sizeof(header) + len;
	if (port->pcap_bytes <= wire->pcap_max &&
	    fwrite(header, sizeof(header), 1, port->pcap) == 1 &&
	    fwrite(data, len, 1, port->pcap) == 1)
		return;
	fprintf(stderr, "peerlane-wire: the record of %s ends after %llu bytes (%s)\n",
		port->name, (unsigned long long)wire->pcap_max,
		port->pcap_bytes > wire->pcap_max ? "--pcap-max" : strerror(errno));
	fclose(port->pcap);
	port->pcap = NULL;
}

/* --- faults ---------------------------------------------------------------- */

/* One bit, where a checksum of the receiver sees it */
static void corrupt(struct wire_path *path, const struct wire_info *info,
		    uint8_t *data, size_t len)
{
	uint64_t bit;

	if (info->harmless >= len)
		return;
	path->count.done[FAULT_CORRUPT]++;
	bit = draw(&path->prng[FAULT_CORRUPT]) % ((len - info->harmless) * 8);
	data[info->harmless + bit / 8] ^= 1 << bit % 8;
}

static bool strikes(struct wire_path *path, enum wire_fault fault,
		    const struct wire_info *info)
{
	if (!path->rate[fault] || (path->roce_only[fault] && !info->roce))
		return false;
	return draw(&path->prng[fault]) % WIRE_ALL < path->rate[fault];
}

static void apply_rules(struct wire_port *port, struct wire_path *path,
			const struct wire_info *info, uint8_t *data, size_t len,
			struct verdict *verdict)
{
	unsigned int i = 0;

	while (i < path->rules) {
		struct wire_rule *rule = &path->rule[i];
		enum wire_action action = rule->action;

		if ((rule->opcode != WIRE_ANY && rule->opcode != info->opcode) ||
		    ++rule->seen != rule->nth) {
			i++;
			continue;
		}
		path->rules--;
		memmove(rule, rule + 1, (path->rules - i) * sizeof(*rule));
		switch (action) {
		case ACTION_DROP:
			verdict->drop = DROP_RULE;
			break;
		case ACTION_CORRUPT:
			corrupt(path, info, data, len);
			break;
		case ACTION_DUPLICATE:
			verdict->copies++;
			break;
		case ACTION_CUT:
			verdict->drop = DROP_LINK;
			port_link(port, false);
			break;
		case ACTIONS:
			break;
		}
	}
}

/* Says "congestion experienced" in a frame whose sender can be told so */
static bool mark(const struct wire_info *info, uint8_t *data)
{
	uint8_t *ip = data + info->ip, old = ip[1];
	uint32_t sum;

	if (!info->ip)
		return false;
	if (ip[0] >> 4 == 6) {
		if ((old & 0x30) != 0x10 && (old & 0x30) != 0x20)
			return false;
		ip[1] |= 0x30;
		return true;
	}
	if ((old & 3) != 1 && (old & 3) != 2)
		return false;
	ip[1] |= 3;
	/* RFC 1624 */
	sum = (uint16_t)~(ip[10] << 8 | ip[11]) + (uint16_t)~old + ip[1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = sum >> 8;
	ip[11] = sum;
	return true;
}

/* The way has a rate: the frame waits for those before it, if there is room for it to wait */
static void queue(struct wire_path *path, const struct wire_info *info, uint8_t *data,
		  size_t len, uint64_t now, struct verdict *verdict)
{
	uint64_t comes = now + verdict->delay;
	uint64_t start = path->busy_until > comes ? path->busy_until : comes;
	uint64_t backlog = (start - comes) * path->kbits / 8000000;

	if (backlog + len > path->room) {
		verdict->drop = DROP_FULL;
		return;
	}
	if (backlog >= path->mark && mark(info, data))
		path->count.marked++;
	path->busy_until = start + len * 8000000 / path->kbits;
	verdict->delay = path->busy_until - now;
}

static void apply(struct wire_port *port, enum wire_way way,
		  const struct wire_info *info, uint8_t *data, size_t len,
		  uint64_t now, struct verdict *verdict)
{
	struct wire_path *path = &port->path[way];

	if (!port->up) {
		verdict->drop = DROP_LINK;
		return;
	}
	if (info->roce)
		apply_rules(port, path, info, data, len, verdict);
	if (verdict->drop != DROPS)
		return;
	if (strikes(path, FAULT_LOSS, info)) {
		verdict->drop = DROP_LOSS;
		return;
	}
	if (path->kbits)
		queue(path, info, data, len, now, verdict);
	if (verdict->drop != DROPS)
		return;
	if (strikes(path, FAULT_CORRUPT, info))
		corrupt(path, info, data, len);
	if (strikes(path, FAULT_DUPLICATE, info))
		verdict->copies++;
	path->count.done[FAULT_DUPLICATE] += verdict->copies - 1;
	if (strikes(path, FAULT_REORDER, info))
		verdict->held = true;
	verdict->delay += path->delay_ns;
	if (path->jitter_ns)
		verdict->delay += draw(&path->prng_jitter) % (path->jitter_ns + 1);
	if (path->delay_ns || path->jitter_ns)
		path->count.delayed++;
}

static void count(struct wire_path *path, const struct wire_info *info, size_t len)
{
	path->count.frames++;
	path->count.bytes += len;
	if (!info->roce)
		return;
	path->count.roce_frames++;
	path->count.roce_payload += info->payload;
	path->count.opcode[info->opcode]++;
	path->count.opcode_payload[info->opcode] += info->payload;
}

static void dropped(struct wire_path *path, const struct wire_info *info,
		    enum wire_drop why)
{
	path->count.drops[why]++;
	if (info->roce)
		path->count.roce_drops++;
}

/* --- queues ---------------------------------------------------------------- */

static void insert(struct wire_port *port, struct wire_frame *frame)
{
	struct wire_frame **at = &port->queue;

	if (port->tail && port->tail->due <= frame->due)
		at = &port->tail->next;
	else
		while (*at && (*at)->due <= frame->due)
			at = &(*at)->next;
	frame->next = *at;
	*at = frame;
	if (!frame->next)
		port->tail = frame;
}

static struct wire_frame *take(struct wire_port *port, struct wire_frame **at)
{
	struct wire_frame *frame = *at;

	*at = frame->next;
	port->held -= frame->held;
	if (port->tail == frame) {
		port->tail = port->queue;
		while (port->tail && port->tail->next)
			port->tail = port->tail->next;
	}
	return frame;
}

/* FRAME has come: those that were held for it go right behind it */
static void release_held(struct wire_port *port, uint64_t due)
{
	struct wire_frame **at = &port->queue;

	while (port->held) {
		struct wire_frame *frame = *at;

		if (!frame->held) {
			at = &frame->next;
			continue;
		}
		take(port, at);
		frame->held = false;
		frame->due = due;
		port->path[WAY_IN].count.done[FAULT_REORDER]++;
		insert(port, frame);
		at = &port->queue;
	}
}

static struct wire_frame *frame_new(const uint8_t *data, size_t len)
{
	struct wire_frame *frame = malloc(sizeof(*frame) + len);

	if (!frame)
		return NULL;
	*frame = (struct wire_frame){ .len = len, .prefix = { len >> 8, len } };
	memcpy(frame->data, data, len);
	frame_parse(frame->data, len, &frame->info);
	return frame;
}

/* It is the host that its queue waits for, and it still takes something now and then */
static bool is_slow(const struct wire *wire, const struct wire_port *port, uint64_t now)
{
	return port->queue && port->queue->due <= now &&
		(!port->blocked_since || now - port->blocked_since < wire->deaf_ns);
}

static bool has_room(const struct wire *wire, const struct wire_port *port, uint64_t now)
{
	return port->queued < WIRE_QUEUE_MAX || is_slow(wire, port, now);
}

bool port_reads(struct wire *wire, struct wire_port *port, uint64_t now, uint64_t *next)
{
	for (unsigned int i = 0; i < wire->ports; i++) {
		const struct wire_port *to = &wire->port[i];

		if (!(port->waits & 1u << i))
			continue;
		if (!to->blocked_since || to->queued <= WIRE_QUEUE_MAX / 2 ||
		    !is_slow(wire, to, now))
			port->waits &= ~(1u << i);
		else if (to->blocked_since + wire->deaf_ns < *next)
			*next = to->blocked_since + wire->deaf_ns;
	}
	/* what the last host has sent is read to its end, for which nothing polls */
	if (port->former)
		*next = now;
	return !port->waits;
}

/* Takes FIRST */
static void enqueue(struct wire *wire, struct wire_port *to, struct wire_port *from,
		    struct wire_frame *first, const struct verdict *verdict, uint64_t now)
{
	uint64_t *last_due = &to->last_due[from - wire->port];

	for (unsigned int copies = verdict->copies; copies; copies--) {
		struct wire_frame *frame = copies > 1 ? frame_new(first->data, first->len) : first;

		if (!frame || !has_room(wire, to, now)) {
			dropped(&to->path[WAY_IN], &first->info, DROP_QUEUE);
			free(frame);
			continue;
		}
		frame->due = now + verdict->delay;
		if (frame->due < *last_due)
			frame->due = *last_due;
		*last_due = frame->due;
		frame->held = verdict->held;
		to->held += frame->held;
		if (frame->held)
			frame->due += WIRE_HOLD_NS;
		insert(to, frame);
		if (!frame->held)
			release_held(to, frame->due);
		if (++to->queued > to->queued_most)
			to->queued_most = to->queued;
	}
	if (to->queued >= WIRE_QUEUE_MAX && is_slow(wire, to, now)) {
		from->pauses += !from->waits;
		from->waits |= 1u << (to - wire->port);
	}
}

static void flush(struct wire_port *port)
{
	while (port->queue) {
		struct wire_frame *frame = take(port, &port->queue);

		dropped(&port->path[WAY_IN], &frame->info, DROP_LINK);
		free(frame);
	}
	port->queued = 0;
	memset(port->last_due, 0, sizeof(port->last_due));
}

void port_link(struct wire_port *port, bool up)
{
	port->up = up;
	if (up)
		return;
	/* what the host has sent ends here, and does not wait until the link is up again */
	port->waits = 0;
	flush(port);
	for (int way = 0; way < WAYS; way++)
		port->path[way].busy_until = 0;
}

/* One copy, to the port that has the address, or to all others */
static void forward(struct wire *wire, struct wire_port *from, const uint8_t *data,
		    size_t len, const struct wire_info *info, const struct verdict *verdict,
		    uint64_t now)
{
	int only = -1;

	for (unsigned int i = 0; i < wire->ports; i++)
		if (!memcmp(wire->port[i].mac, data, 6))
			only = i;
	for (unsigned int i = 0; i < wire->ports; i++) {
		struct wire_port *to = &wire->port[i];
		struct verdict mine = { .drop = DROPS, .copies = 1, .held = verdict->held,
					.delay = verdict->delay };
		struct wire_frame *frame;

		if (only >= 0 ? (int)i != only : to == from)
			continue;
		if (to == from) {
			dropped(&to->path[WAY_IN], info, DROP_OWN);
			continue;
		}
		/* each receiver has faults of its own */
		frame = has_room(wire, to, now) ? frame_new(data, len) : NULL;
		if (!frame) {
			dropped(&to->path[WAY_IN], info, DROP_QUEUE);
			continue;
		}
		apply(to, WAY_IN, &frame->info, frame->data, len, now, &mine);
		if (mine.drop == DROPS) {
			enqueue(wire, to, from, frame, &mine, now);
		} else {
			dropped(&to->path[WAY_IN], &frame->info, mine.drop);
			free(frame);
		}
	}
}

/* --- sockets --------------------------------------------------------------- */

int port_watch(struct wire *wire)
{
	wire->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (wire->watch < 0 ||
	    inotify_add_watch(wire->watch, wire->folder, IN_CREATE) < 0)
		return -errno;
	return 0;
}

void port_look(struct wire *wire)
{
	union {
		struct inotify_event first;
		char data[4096];
	} events;
	const struct inotify_event *event;
	ssize_t len;

	while ((len = read(wire->watch, &events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < len; at += sizeof(*event) + event->len) {
			event = (const struct inotify_event *)(events.data + at);
			for (unsigned int i = 0; i < wire->ports; i++) {
				struct wire_port *port = &wire->port[i];
				const char *name = strrchr(port->peer.sun_path, '/') + 1;

				/* after an overflow it may be any */
				if (port->connected && (event->mask & IN_Q_OVERFLOW ||
							(event->len && !strcmp(event->name, name))))
					port->former = FORMER;
			}
		}
}

/*
 * Connects to the host that has the name now.  Linux then drops what is unread of another peer.
 *
 * Why the socket has a peer: it takes from its peer as much as the peer's send buffer holds, and
 * the peer polls as not writable meanwhile.  From others it takes net.unix.max_dgram_qlen
 * datagrams alone, and they poll as writable, so QEMU would try again and again.  But a socket with
 * a peer refuses all others with EPERM, also when the peer is gone, and Linux does not tell when
 * that happens.  So port_look() looks for names of new hosts.
 */
static bool port_connect(struct wire *wire, struct wire_port *port)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	/* names that have come by now are no newer than this connection */
	port_look(wire);
	port->former = 0;
	/* who is there now says anew what it takes */
	port->trains = false;
	port->connected = connect(port->fd, (struct sockaddr *)&port->peer,
				  sizeof(port->peer)) == 0;
	/* a host that is just coming has a name first; to a socket without a peer it can send */
	if (!port->connected)
		connect(port->fd, &nobody, sizeof(nobody));
	return port->connected;
}

int port_open(struct wire *wire, struct wire_port *port)
{
	struct sockaddr_un name;
	int err = wire_address(&name, wire->folder, port->name, "");

	port->fd = -1;
	if (!err)
		err = wire_address(&port->peer, wire->folder, port->name, ".host");
	if (err)
		return err;
	port->fd = wire_bind(SOCK_DGRAM, &name);
	if (port->fd < 0)
		return port->fd;
	port->up = true;
	port->flows = flow_new();
	if (!port->flows) {
		port_close(wire, port);
		return -ENOMEM;
	}
	if (wire->pcap)
		pcap_open(wire, port);
	return 0;
}

void port_close(struct wire *wire, struct wire_port *port)
{
	struct sockaddr_un name;

	flush(port);
	free(port->flows);
	if (port->pcap)
		fclose(port->pcap);
	if (port->fd < 0)
		return;
	close(port->fd);
	if (!wire_address(&name, wire->folder, port->name, ""))
		unlink(name.sun_path);
}

static void take_frame(struct wire *wire, struct wire_port *port, uint8_t *data, size_t len,
		       uint64_t now)
{
	struct verdict verdict = { .drop = DROPS, .copies = 1 };
	struct wire_path *path = &port->path[WAY_OUT];
	struct wire_info info = { 0 };

	if (len < WIRE_FRAME_MIN || len > WIRE_FRAME_MAX) {
		dropped(path, &info, len < WIRE_FRAME_MIN ? DROP_RUNT : DROP_OVERSIZE);
		return;
	}
	pcap_write(wire, port, data, len);
	frame_parse(data, len, &info);
	if (flow_repeats(port->flows, data, &info))
		path->count.roce_repeats++;
	else
		path->count.roce_unique += info.payload;
	apply(port, WAY_OUT, &info, data, len, now, &verdict);
	if (verdict.drop != DROPS) {
		dropped(path, &info, verdict.drop);
		return;
	}
	count(path, &info, len);
	while (verdict.copies--)
		forward(wire, port, data, len, &info, &verdict, now);
}

static bool is_train(const uint8_t *data, size_t len)
{
	return len >= TRAIN_HEAD && len <= WIRE_TRAIN_MAX && !memcmp(data, train_head, 6) &&
		!memcmp(data + 12, train_head + 12, 2);
}

/* Each frame has its length in front; one that is cut off has no length that could be told.
 * Returns how many there were.
 */
static unsigned int take_train(struct wire *wire, struct wire_port *port, uint8_t *data,
			       size_t len, uint64_t now)
{
	size_t at = TRAIN_HEAD;
	unsigned int frames = 0;

	while (at < len) {
		size_t each = len - at < 2 ? len : data[at] * 256u + data[at + 1];

		at += 2;
		frames++;
		if (at > len || each > len - at) {
			take_frame(wire, port, data, 0, now);
			break;
		}
		take_frame(wire, port, data + at, each, now);
		at += each;
	}
	return frames;
}

void port_receive(struct wire *wire, struct wire_port *port)
{
	static uint8_t data[WIRE_TRAIN_MAX];

	for (unsigned int frames = 0; frames < FAIR && (port->former || !port->waits); frames++) {
		struct sockaddr_un from = { 0 };
		socklen_t size = sizeof(from);
		struct wire_info nothing = { 0 };
		ssize_t len;

		len = recvfrom(port->fd, data, sizeof(data), MSG_TRUNC,
			       (struct sockaddr *)&from, &size);
		if (len < 0 && (errno == ECONNREFUSED || errno == ECONNRESET)) {
			port->connected = false;
			continue;
		}
		if (len < 0) {
			if (port->former)
				port_connect(wire, port);
			return;
		}
		if (!port->connected) {
			if (strncmp(from.sun_path, port->peer.sun_path,
				    sizeof(from.sun_path))) {
				dropped(&port->path[WAY_OUT], &nothing, DROP_PEER);
				continue;
			}
			port_connect(wire, port);
		}
		port->path[WAY_OUT].count.datagrams++;
		port->trains = is_train(data, len);
		if (port->trains)
			frames += take_train(wire, port, data, len, wire_now());
		else
			take_frame(wire, port, data, len, wire_now());
		/* a host that is not gone may send without end */
		if (port->former && !--port->former)
			port_connect(wire, port);
	}
}

/* Gives the host the first frame, or as many of those that are due as fit into a train;
 * returns how many, 0: it does not take them
 */
static unsigned int put(struct wire_port *port, uint64_t now)
{
	struct iovec part[1 + TRAIN_FRAMES];
	struct msghdr message = { .msg_iov = part, .msg_iovlen = 1 };
	struct wire_frame *frame = port->queue;
	size_t size = TRAIN_HEAD;

	if (!port->trains)
		return send(port->fd, frame->data, frame->len, 0) >= 0;
	part[0] = (struct iovec){ (void *)train_head, TRAIN_HEAD };
	while (frame && frame->due <= now && message.msg_iovlen <= TRAIN_FRAMES &&
	       size + 2 + frame->len <= WIRE_TRAIN_MAX) {
		size += 2 + frame->len;
		part[message.msg_iovlen++] = (struct iovec){ frame->prefix, 2 + frame->len };
		frame = frame->next;
	}
	return sendmsg(port->fd, &message, 0) >= 0 ? message.msg_iovlen - 1 : 0;
}

uint64_t port_send(struct wire *wire, struct wire_port *port, uint64_t now)
{
	struct wire_path *path = &port->path[WAY_IN];

	while (port->queue && !port->blocked_since) {
		unsigned int frames = 0, left;

		if (port->queue->due > now)
			return port->queue->due;
		/* a host that went and came again has another socket */
		for (int try = 0; try < 2 && !frames; try++) {
			if (!port->connected && !port_connect(wire, port))
				break;
			frames = put(port, now);
			if (frames)
				break;
			if (errno == EAGAIN) {
				port->blocked_since = now;
				return UINT64_MAX;
			}
			/* who comes in its place cannot send until it is read */
			port->connected = false;
			port->waits = 0;
		}
		path->count.datagrams += frames > 0;
		for (left = frames ? frames : 1; left; left--) {
			struct wire_frame *frame = take(port, &port->queue);

			port->queued--;
			if (frames) {
				count(path, &frame->info, frame->len);
				pcap_write(wire, port, frame->data, frame->len);
			} else {
				dropped(path, &frame->info, DROP_PEER);
			}
			free(frame);
		}
	}
	return UINT64_MAX;
}
