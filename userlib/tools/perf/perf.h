/* SPDX-License-Identifier: MIT */
/*
 * peerlane perf, inside.
 *
 * Two programs talk over a socket: the client decides and measures, the server
 * has the other end of the data.  A run is one operation, one kind of memory
 * and one size; each run has queue pairs of its own on both sides, so that
 * nothing of an earlier one is left in them.
 *
 * A message has arrived when the initiator knows that the data is in the memory
 * it was meant for.  For memory that the NIC reaches itself that is the
 * completion of the work request, see verbs.c.  Staged memory moves by the
 * library's links, as that of any program does, see link.c.
 */
#ifndef PEERLANE_PERF_H
#define PEERLANE_PERF_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs.h"

enum perf_op { PERF_WRITE, PERF_READ, PERF_SEND, PERF_OPS };
enum perf_mem { PERF_DIRECT, PERF_STAGED, PERF_HOST, PERF_MEMS };
enum perf_test { PERF_LATENCY, PERF_STREAM, PERF_TESTS };

extern const char *const perf_op_name[PERF_OPS];
extern const char *const perf_mem_name[PERF_MEMS];
extern const char *const perf_test_name[PERF_TESTS];

#define PERF_MAX_SIZES	64
#define PERF_MAX_DEPTH	256
#define PERF_MAX_SIZE	(1ULL << 30)	/* one message */
#define PERF_MAX_BUFFER	(1ULL << 30)	/* size times depth */
#define PERF_MAX_COUNT	10000000ULL	/* messages of a run */
#define PERF_MAX_SECONDS 3600

struct perf_options {
	const char *host;		/* client: of the server */
	const char *bind, *device, *gnuplot;
	bool loopback, json, keep;
	unsigned int ops, mems, tests;	/* sets of bits */
	uint64_t sizes[PERF_MAX_SIZES];
	unsigned int n_sizes;
	uint64_t count, warm_up, depth;
	double seconds;			/* the longest that a run may take */
	unsigned int tcp_port, ib_port;
	int gid_index, gpu;
	int wait;	/* s until the peer must be there */
	int timeout;	/* s without any progress */
};

/* ---- opts.c ---- */
/* An exit status, or -1: go on. */
int perf_parse(int argc, char **argv, struct perf_options *o);
/* "1,64,4K", "2:8M" (powers of two): false, and a complaint */
bool perf_parse_sizes(const char *text, uint64_t *sizes, unsigned int *n);

/* ---- stat.c ---- */
/* Nanoseconds; those that too few samples cannot tell are UINT64_MAX. */
#define PERF_UNTOLD	UINT64_MAX

struct perf_stat {
	uint64_t n, min, max, mean, p50, p90, p99, p999;
};

/* Sorts @samples. */
void perf_stat(uint64_t *samples, uint64_t n, struct perf_stat *st);

/* ---- wire.c: what goes over the socket ---- */
#define PERF_VERSION	2
#define PERF_TEXT	512	/* of a reason, with its NUL */
#define PERF_MAX_BODY	2048

enum perf_type {
	PERF_HELLO = 1,		/* client, then server: who I am */
	PERF_REFUSE,		/* either: no, because */
	PERF_RUN,		/* client: get ready for this run */
	PERF_READY,		/* server: I am, my queue pair is */
	PERF_DONE,		/* client: that was it */
	PERF_RESULT,		/* server: what I have seen of it */
	PERF_BYE,		/* client */
	PERF_TYPES
};

struct perf_memory {		/* one kind, at one end */
	bool possible;
	uint64_t addr;		/* for the peer's work requests */
	uint32_t rkey;
	uint8_t way;		/* enum pln_mr_way; 0: host memory */
	char reason[PERF_TEXT];	/* why it is not possible, or not better */
};

struct perf_hello {
	char device[64], gpu[64];
	uint8_t gid[16];
	uint16_t lid;
	uint8_t port;
	uint8_t mtu;		/* enum ibv_mtu */
	uint8_t reads;		/* READs that it can answer at once */
	bool roce, software, emulated;
	uint64_t buffer;	/* bytes of each memory */
	struct perf_memory mem[PERF_MEMS];
};

struct perf_run {
	uint8_t op, mem;
	uint32_t depth, seconds;	/* the longest that it may take */
	uint64_t size, seed;
	uint32_t qpn, psn;		/* 0 for a link */
};

struct perf_ready {
	uint32_t qpn, psn;
};

struct perf_done {
	uint64_t messages;
};

struct perf_result {
	uint64_t messages, staged;	/* staged: bytes copied by this end */
	uint64_t notices;		/* of its link */
	uint32_t crc;
	bool crc_by_gpu;
};

struct perf_message {
	enum perf_type type;
	union {
		struct perf_hello hello;
		struct perf_run run;
		struct perf_ready ready;
		struct perf_done done;
		struct perf_result result;
		char refuse[PERF_TEXT];
	};
};

#define PERF_HEADER	12	/* bytes */

/* The bytes of @m, PERF_HEADER + PERF_MAX_BODY at most: how many. */
size_t perf_encode(const struct perf_message *m, uint8_t *buf);
/* The header: bytes of the body that follows, or -1 and @why. */
int perf_decode_header(const uint8_t *buf, enum perf_type *type, char *why,
		       size_t size);
/* All of it checked; false and @why, and then what is in @m means nothing. */
bool perf_decode(enum perf_type type, const uint8_t *body, size_t n,
		 struct perf_message *m, char *why, size_t size);

/* ---- net.c ---- */
struct perf_peer {
	int fd;
	int timeout;		/* s for each message */
	char name[128];
};

/* All complain, and are false, when it does not work. */
bool perf_connect(const struct perf_options *o, struct perf_peer *p);
int perf_listen(const struct perf_options *o);	/* an fd, or -1 */
bool perf_accept(const struct perf_options *o, int listener,
		 struct perf_peer *p);
bool perf_send(struct perf_peer *p, const struct perf_message *m);
/* The next one; a refusal or another type than @want is a complaint.  With
 * @want 0 any.  @timeout: seconds, or -1 for the peer's. */
bool perf_recv(struct perf_peer *p, enum perf_type want, int timeout,
	       struct perf_message *m);
void perf_refuse(struct perf_peer *p, const char *why);
/* What has arrived while data goes on: 0 nothing, 1 a message, -1 it is gone */
int perf_peek(struct perf_peer *p);

/* ---- rdma.c: one end's device and memory ---- */
struct pln_mr;

struct perf_buffer {
	struct perf_memory info;	/* as the peer is told */
	struct ibv_mr *mr;		/* host memory */
	struct pln_mr *pln;		/* GPU memory */
	void *host;
	uint64_t gpu;
	uint32_t lkey;
	uint64_t addr;			/* for own work requests */
	uint64_t size;
};

struct perf_end {
	struct verbs_port port;
	struct ibv_pd *pd;
	struct perf_buffer mem[PERF_MEMS];
	char gpu[64];
	bool emulated;
	bool software;		/* no PCI device below it: rxe, siw */
	uint8_t reads;		/* READs that the device can answer at once */
};

bool perf_end_open(struct perf_end *e, const struct perf_options *o);
void perf_end_close(struct perf_end *e);
/* Memory of @size bytes of each kind in @mems that is possible here. */
bool perf_end_memory(struct perf_end *e, unsigned int mems, uint64_t size,
		     int gpu);
void perf_end_hello(const struct perf_end *e, struct perf_hello *h);
bool perf_fill(struct perf_buffer *b, uint64_t n, uint64_t seed);
bool perf_crc(struct perf_buffer *b, uint64_t n, uint32_t *crc, bool *by_gpu);

struct perf_qp {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t psn;
};

bool perf_qp_open(struct perf_end *e, struct perf_qp *q, uint32_t depth);
bool perf_qp_connect(struct perf_end *e, struct perf_qp *q,
		     const struct perf_hello *peer, uint32_t qpn, uint32_t psn);
void perf_qp_close(struct perf_qp *q);

/* ---- one run's messages, on one side ---- */
struct pln_link;
struct perf_mover;

struct perf_engine {
	struct perf_end *e;
	struct perf_peer *p;
	struct perf_buffer *b;
	const struct perf_memory *peer;
	const struct perf_run *r;
	const struct perf_mover *mover;
	bool server;
	struct perf_qp q;	/* verbs.c */
	struct pln_link *link;	/* link.c */
	uint64_t started, done;
	uint64_t progress, staged, notices;	/* of the link */
	bool finished;		/* and both sides know */
	double moved;		/* when something last did */
	unsigned int idle;
};

/* How messages move; what fails has complained. */
struct perf_mover {
	bool (*open)(struct perf_engine *g);
	bool (*connect)(struct perf_engine *g, const struct perf_hello *peer,
			uint32_t qpn, uint32_t psn);
	/* client: begin message g->started */
	bool (*start)(struct perf_engine *g);
	/* client: how many messages have ended now, -1: failed */
	int (*ended)(struct perf_engine *g);
	/* server: how many of the client's have been seen to now, -1: failed */
	int (*serve)(struct perf_engine *g);
	/* after the last one: g->staged and g->notices are final */
	bool (*rest)(struct perf_engine *g);
	bool (*close)(struct perf_engine *g);
};

extern const struct perf_mover perf_verbs, perf_link;

/* ---- run.c ---- */
/* Where message number @message is in the buffer */
uint64_t perf_offset(const struct perf_engine *g, uint64_t message);

struct perf_measure {		/* what the client has of one run */
	enum perf_test test;
	enum perf_op op;
	enum perf_mem mem;
	uint64_t size, depth, messages, warm_up;
	double seconds, cpu_seconds;
	uint64_t staged_here, staged_there;
	uint64_t notices_here, notices_there;
	bool crc_by_gpu;
	struct perf_stat stat;
};

/* EXIT_OK, or complains and is what the program exits with. */
int perf_client_run(struct perf_end *e, struct perf_peer *p,
		    const struct perf_hello *peer,
		    const struct perf_options *o, struct perf_measure *m,
		    uint64_t *samples);
int perf_server_run(struct perf_end *e, struct perf_peer *p,
		    const struct perf_hello *peer, const struct perf_run *r);

/* ---- perf.c: the two programs, whose socket is connected; exit statuses ---- */
int perf_serve(const struct perf_options *o, struct perf_peer *p);
/* With p->fd -1 it connects first. */
int perf_client(const struct perf_options *o, struct perf_peer *p);

/* ---- print.c ---- */
struct perf_report {
	const struct perf_options *o;
	const struct perf_end *end;
	const struct perf_hello *peer;
	struct perf_measure *measure;
	unsigned int n;
	bool skip[PERF_MEMS];
	char skipped[PERF_MEMS][2 * PERF_TEXT];
};

void perf_print_head(const struct perf_report *r);
void perf_print_one(const struct perf_report *r, const struct perf_measure *m);
void perf_print_tail(const struct perf_report *r);
void perf_print_json(const struct perf_report *r, int status);
/* ---- plot.c ---- */
bool perf_write_gnuplot(const struct perf_report *r, const char *file);
/* "p2p", "coherent", "bounce"; "host" of host memory */
const char *perf_path(const struct perf_report *r, enum perf_mem mem);

#endif
