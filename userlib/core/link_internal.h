/* SPDX-License-Identifier: MIT */
/*
 * Inside of a link.
 *
 * Chunks are RDMA WRITEs into the peer's buffer.  Behind the last chunk of a
 * put, and behind each chunk for a staged buffer, goes a notice: a SEND of 64
 * bytes.  As one connection keeps the order, what a notice speaks of is there
 * when the notice is.
 *
 * A notice takes one of the receiver's CREDITS, which comes back when the
 * receiver has no more use for it: for the last one of a put, when the program
 * has taken the arrival, else when the chunk is in the GPU's memory.  Every
 * message tells how many notices have "landed" (their bytes are where they
 * belong) and been "taken" (their credits are free).  An acknowledgement is a
 * message that tells nothing else.  Of these, twice CREDITS at most can be
 * unseen by their receiver, as each one tells something new; with one message
 * to say goodbye, a receiver that has posted RX_SLOTS buffers never runs out.
 */
#ifndef PLN_CORE_LINK_INTERNAL_H
#define PLN_CORE_LINK_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "peerlane/link.h"
#include "peerlane/mr.h"
#include "socket.h"
#include "verbs.h"

#define CREDITS		64u
#define TX_SLOTS	(CREDITS + 2)	/* one for an ack, one for goodbye */
#define RX_SLOTS	(3 * CREDITS + 1)
#define MESSAGE_SIZE	64u
#define PEER_GONE	"the peer's process is gone: it ended without closing the link"
#define PUTS_MAX	65536u

#define HELLO_VERSION	1
#define HELLO_SIZE	512
#define HELLO_HEAD	8	/* magic, version, size: the same in all versions */

enum message_type { MESSAGE_NOTICE = 1, MESSAGE_ACK = 2, MESSAGE_BYE = 3 };
#define MESSAGE_LAST	1u	/* flag: the put's last chunk */

/* On the wire: big-endian, in this order, with no gaps, MESSAGE_SIZE bytes */
struct message {
	uint8_t type;
	uint8_t flags;
	uint16_t buffer;
	uint32_t chunk;		/* bytes of this chunk; goodbye: an errno */
	uint64_t at;		/* where it is in the buffer */
	uint64_t start;		/* where its put begins */
	uint64_t length;	/* of the put */
	uint64_t tag;
	uint64_t landed;
	uint64_t taken;
	uint64_t seq;		/* of this notice, from 1 */
};

/* What one end tells the other when they meet */
struct hello {
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;		/* enum ibv_mtu */
	uint32_t ethernet;	/* 1: RoCE, 0: InfiniBand */
	uint32_t lid;
	uint32_t buffers;
	uint8_t gid[16];
	struct hello_buffer {
		uint64_t iova;
		uint64_t length;
		uint32_t rkey;
		uint32_t way;
	} buffer[PLN_LINK_BUFFERS];
};

struct put {
	struct pln_mr *mr;
	uint64_t offset;
	uint64_t length;
	uint64_t at;
	uint64_t tag;
	uint64_t sent;		/* bytes handed to the device */
	uint64_t seq;		/* of its last notice; 0: not sent yet */
	uint32_t buffer;
	bool staged;
};

struct pln_link {
	/* the device */
	struct verbs_port at;
	struct ibv_pd *pd;
	bool own_ctx, own_pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *message_mr;
	uint8_t *messages;	/* TX_SLOTS, then RX_SLOTS */
	uint32_t sl, psn, chunk, depth, retries, timeout;

	/* the peer */
	int fd;			/* shows that its process is gone */
	bool met, connected, broken, bye;
	int64_t refused_until;	/* a write was refused; see link_settle() */
	struct ibv_wc refusal;
	int bye_error;
	struct hello peer;
	struct pln_mr *shared[PLN_LINK_BUFFERS];
	struct hello_buffer mine[PLN_LINK_BUFFERS];
	unsigned int shares;

	/* sending; puts are numbered from 1, number N is in slot N - 1 */
	struct put *puts;
	uint32_t puts_size;	/* a power of two */
	uint64_t puts_given, puts_sent, puts_done;
	uint32_t in_flight;	/* chunks */
	uint64_t notices;	/* posted */
	uint64_t notices_sent;	/* of them, completed by the device */
	uint64_t peer_landed, peer_taken;
	uint64_t tx_posted, tx_done;	/* messages; SENDs complete in order */
	bool stalled_depth, stalled_credit;

	/* receiving: notices received, landed, and as arrivals taken */
	struct message queue[CREDITS];
	uint64_t received, landed, taken;
	struct pln_link_arrival arrivals[CREDITS];
	uint64_t arrived, handed;
	uint64_t told_landed, told_taken;
	bool lost;		/* a chunk, and with it all that follows */
	bool urgent;		/* the peer waits for what has landed */

	int epoll;		/* of the channel, fd, and these; -1: not asked for */
	int wake;		/* an eventfd: there is something to do */
	int timer;		/* over at refused_until */
	uint64_t completions;	/* seen so far */
	bool news;
	int error;
	char reason[PLN_LINK_REASON_MAX];
	struct pln_link_stats stats;
};

/* link.c */
int link_fail(struct pln_link *link, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* link_qp.c */
int link_device(struct pln_link *link,
		const struct pln_link_options *options);
int link_queue(struct pln_link *link);
int link_to_rts(struct pln_link *link);
void link_free_queue(struct pln_link *link);
int link_post_rx(struct pln_link *link, unsigned int slot);

/* link_hello.c */
void hello_encode(const struct hello *hello, uint8_t wire[HELLO_SIZE]);
int hello_decode(const uint8_t wire[HELLO_SIZE], struct hello *hello,
		 char *why, size_t size);
void message_encode(const struct message *m, uint8_t wire[MESSAGE_SIZE]);
void message_decode(const uint8_t wire[MESSAGE_SIZE], struct message *m);

int link_meet(struct pln_link *link, int64_t deadline);

/* link_run.c */
int link_drain(struct pln_link *link);
void link_settle(struct pln_link *link, bool now);
int link_post(struct pln_link *link, struct ibv_send_wr *chunk,
	      struct message *m);
int link_progress(struct pln_link *link);
int link_pump(struct pln_link *link, bool copy);

/* link_wait.c */
void link_say_bye(struct pln_link *link);
void link_wake(struct pln_link *link);
void link_close_fd(struct pln_link *link);

#endif
