// SPDX-License-Identifier: MIT
/* peerlane perf: the server, the client, and both at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"
#include "tool.h"

/* All messages of a stream that are under way, but not for huge ones */
#define BUFFER	(64ULL << 20)

static uint64_t depth_for(const struct perf_options *o, enum perf_test test,
			  uint64_t size)
{
	uint64_t fits = BUFFER / size;

	if (test == PERF_LATENCY || !fits)
		return 1;
	return o->depth < fits ? o->depth : fits;
}

/* ---- the server ---- */

static int serve_runs(struct perf_end *e, struct perf_peer *p,
		      const struct perf_hello *peer)
{
	struct perf_message m;
	int status = EXIT_OK;

	while (!status) {
		if (!perf_recv(p, 0, -1, &m))
			return EXIT_IO;
		if (m.type == PERF_BYE)
			return EXIT_OK;
		if (m.type != PERF_RUN) {
			complain("%s: a message of type %d came where a run "
				 "should", p->name, m.type);
			perf_refuse(p, "that message is out of place");
			return EXIT_IO;
		}
		status = perf_server_run(e, p, peer, &m.run);
	}
	return status;
}

int perf_serve(const struct perf_options *o, struct perf_peer *p)
{
	struct perf_message m, mine = { .type = PERF_HELLO };
	struct perf_end e = { .emulated = false };
	unsigned int mems = 0;
	const char *apart;
	int i, status = EXIT_IO;

	if (!perf_recv(p, 0, -1, &m))
		return EXIT_IO;
	if (m.type == PERF_BYE)
		return EXIT_OK;	/* it cannot, and has said why */
	if (m.type != PERF_HELLO) {
		complain("%s: a message of type %d came where its hello should",
			 p->name, m.type);
		perf_refuse(p, "the first message must be a hello");
		return EXIT_IO;
	}
	for (i = 0; i < PERF_MEMS; i++)
		mems |= (unsigned int)m.hello.mem[i].possible << i;
	if (!m.hello.buffer || !mems) {
		complain("%s has no memory to send from", p->name);
		perf_refuse(p, "a client without memory");
		return EXIT_IO;
	}
	if (!perf_end_open(&e, o)) {
		perf_refuse(p, "no RDMA device can be used; the words of the "
			    "program there say why");
		perf_end_close(&e);
		return EXIT_NO_GPU;
	}
	apart = verbs_apart(&e.port.attr, &e.port.gid, m.hello.roce,
			    m.hello.gid);
	if (apart) {
		complain("%s cannot be reached: %s", p->name, apart);
		perf_refuse(p, apart);
		perf_end_close(&e);
		return EXIT_IO;
	}
	/* what is not possible here, the client is told with the reason */
	perf_end_memory(&e, mems, m.hello.buffer, o->gpu);
	perf_end_hello(&e, &mine.hello);
	if (perf_send(p, &mine))
		status = serve_runs(&e, p, &m.hello);
	perf_end_close(&e);
	return status;
}

static int server(const struct perf_options *o)
{
	int listener = perf_listen(o), status;
	struct perf_peer p;
	struct perf_end e = { .emulated = false };
	bool usable;

	if (listener < 0)
		return EXIT_IO;
	/* no client can help against a device that is missing */
	usable = perf_end_open(&e, o);
	perf_end_close(&e);
	if (!usable) {
		close(listener);
		return EXIT_NO_GPU;
	}
	fprintf(stderr, "peerlane perf: waiting for a client on port %u\n",
		o->tcp_port);
	do {
		if (!perf_accept(o, listener, &p)) {
			status = EXIT_IO;
			break;
		}
		status = perf_serve(o, &p);
		close(p.fd);
	} while (o->keep);
	close(listener);
	return status;
}

/* ---- the client ---- */

static int measure_all(struct perf_end *e, struct perf_peer *p,
		       struct perf_report *rep)
{
	const struct perf_options *o = rep->o;
	uint64_t *samples = malloc(o->count * sizeof(*samples));
	unsigned int test, op, size, mem;
	int status = EXIT_OK;

	if (!samples) {
		complain("no memory for %llu samples",
			 (unsigned long long)o->count);
		return EXIT_IO;
	}
	for (test = 0; test < PERF_TESTS; test++)
	for (op = 0; op < PERF_OPS; op++)
	for (size = 0; size < o->n_sizes; size++)
	for (mem = 0; mem < PERF_MEMS; mem++) {
		struct perf_measure *m = &rep->measure[rep->n];

		if (!(o->tests & 1u << test) || !(o->ops & 1u << op) ||
		    !(o->mems & 1u << mem) || rep->skip[mem])
			continue;
		*m = (struct perf_measure){
			.test = test, .op = op, .mem = mem,
			.size = o->sizes[size],
			.depth = depth_for(o, test, o->sizes[size]),
		};
		status = perf_client_run(e, p, rep->peer, o, m, samples);
		if (status)
			goto out;
		if (!o->json)
			perf_print_one(rep, m);
		rep->n++;
	}
out:
	free(samples);
	return status;
}

/* Which memories both ends have; false: none. */
static bool choose(struct perf_report *rep)
{
	bool any = false;
	int i;

	for (i = 0; i < PERF_MEMS; i++) {
		const struct perf_memory *here = &rep->end->mem[i].info;
		const struct perf_memory *there = &rep->peer->mem[i];

		rep->skip[i] = !(rep->o->mems & 1u << i) || !here->possible ||
			       !there->possible;
		any |= !rep->skip[i];
		if (!rep->skip[i] || !(rep->o->mems & 1u << i))
			continue;
		snprintf(rep->skipped[i], sizeof(rep->skipped[i]), "%s: %s",
			 here->possible ? "there" : "here",
			 here->possible ? there->reason : here->reason);
	}
	return any;
}

static int report(struct perf_end *e, struct perf_peer *p,
		  struct perf_report *rep, bool *said)
{
	struct perf_message bye = { .type = PERF_BYE };
	const struct perf_options *o = rep->o;
	int status, i;

	*said = true;
	if (!choose(rep)) {
		for (i = 0; i < PERF_MEMS; i++)
			if (o->mems & 1u << i)
				complain("%s memory is not possible %s",
					 perf_mem_name[i], rep->skipped[i]);
		perf_send(p, &bye);
		if (o->json)
			perf_print_json(rep, EXIT_REFUSED);
		return EXIT_REFUSED;
	}
	rep->measure = calloc((size_t)PERF_TESTS * PERF_OPS * PERF_MEMS *
			      o->n_sizes, sizeof(*rep->measure));
	if (!rep->measure) {
		complain("out of memory");
		return EXIT_IO;
	}
	if (!o->json)
		perf_print_head(rep);
	status = measure_all(e, p, rep);
	if (status)
		perf_refuse(p, "the client has given up");
	else
		perf_send(p, &bye);
	if (o->json)
		perf_print_json(rep, status);
	else if (!status)
		perf_print_tail(rep);
	if (!status && o->gnuplot && !perf_write_gnuplot(rep, o->gnuplot))
		status = EXIT_IO;
	free(rep->measure);
	return status;
}

int perf_client(const struct perf_options *o, struct perf_peer *p)
{
	struct perf_message mine = { .type = PERF_HELLO }, m;
	struct perf_end e = { .emulated = false };
	struct perf_report rep = { .o = o, .end = &e, .peer = &m.hello };
	struct perf_message bye = { .type = PERF_BYE };
	uint64_t buffer = 0, n;
	unsigned int i;
	bool said = false;
	int status = EXIT_IO;

	for (i = 0; i < o->n_sizes; i++) {
		n = o->sizes[i] * depth_for(o, PERF_STREAM, o->sizes[i]);
		if (n > buffer)
			buffer = n;
	}
	if (!perf_end_open(&e, o)) {
		status = EXIT_NO_GPU;
	} else if (!perf_end_memory(&e, o->mems, buffer, o->gpu)) {
		for (i = 0; i < PERF_MEMS; i++)
			if (o->mems & 1u << i)
				complain("%s memory is not possible here: %s",
					 perf_mem_name[i],
					 e.mem[i].info.reason);
		status = EXIT_REFUSED;
	} else if (p->fd >= 0 || perf_connect(o, p)) {
		perf_end_hello(&e, &mine.hello);
		if (perf_send(p, &mine) && perf_recv(p, PERF_HELLO, -1, &m))
			status = report(&e, p, &rep, &said);
	}
	if (!said && p->fd >= 0)
		perf_send(p, &bye);
	/* one object, whatever happens */
	if (o->json && !said) {
		struct json_object *none = json_object_new_object();

		json_object_object_add(none, "what", json_object_new_string("perf"));
		json_object_object_add(none, "ok", json_object_new_boolean(false));
		json_object_object_add(none, "transfers", json_object_new_array());
		print_json(none);
	}
	perf_end_close(&e);
	return status;
}

/* A second process is the server, so that each has its own GPU context. */
static int loopback(const struct perf_options *o)
{
	struct perf_peer here = { .timeout = o->timeout, .name = "the server" };
	struct perf_peer there = { .timeout = o->timeout,
				   .name = "the client" };
	int fd[2], status, its;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		complain("no socket: %s", strerror(errno));
		return EXIT_IO;
	}
	pid = fork();
	if (pid < 0) {
		complain("no second process: %s", strerror(errno));
		return EXIT_IO;
	}
	here.fd = fd[0];
	there.fd = fd[1];
	if (!pid) {
		close(fd[0]);
		_exit(perf_serve(o, &there));
	}
	close(fd[1]);
	status = perf_client(o, &here);
	close(fd[0]);
	if (waitpid(pid, &its, 0) == pid && !status &&
	    (!WIFEXITED(its) || WEXITSTATUS(its))) {
		complain("the server ended badly");
		status = EXIT_IO;
	}
	return status;
}

int cmd_perf(int argc, char **argv)
{
	struct perf_peer p = { .fd = -1 };
	struct perf_options o;
	int status = perf_parse(argc, argv, &o);

	if (status >= 0)
		return status;
	if (o.loopback)
		return loopback(&o);
	if (!o.host)
		return server(&o);
	status = perf_client(&o, &p);
	if (p.fd >= 0)
		close(p.fd);
	return status;
}
