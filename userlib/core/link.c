// SPDX-License-Identifier: MIT
/* Links: their life, what they are asked, and how they fail. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link_internal.h"
#include "mr_inside.h"
#include "sized.h"
#include "peerlane/peerlane.h"

static __thread char open_reason[PLN_LINK_REASON_MAX];

/* The first thing that goes wrong is what is told, from then on */
int link_fail(struct pln_link *link, int err, const char *fmt, ...)
{
	va_list ap;

	if (link->error)
		return link->error;
	link->error = err;
	link->news = true;
	va_start(ap, fmt);
	vsnprintf(link->reason, sizeof(link->reason), fmt, ap);
	va_end(ap);
	return err;
}

const char *pln_link_reason(const struct pln_link *link)
{
	return link ? link->reason : open_reason;
}

static bool all_zero(const uint64_t *v, size_t n)
{
	while (n)
		if (v[--n])
			return false;
	return true;
}

static const char *option_fault(const struct pln_link_options *o)
{
	if (!all_zero(o->reserved, 4))
		return "a reserved field is not 0";
	if (o->port > 255)
		return "port is not 1 to 255";
	if (o->gid > 256)
		return "gid is beyond 256";
	if (o->chunk % 4096 || o->chunk > 1u << 30)
		return "chunk is not a multiple of 4096 up to 1 GiB";
	if (o->depth > 256)
		return "depth is not 1 to 256";
	if (o->retries > 7)
		return "retries is not 1 to 7";
	if (o->timeout && (o->timeout < 8 || o->timeout > 22))
		return "timeout is not 8 to 22";
	if (o->sl > 15)
		return "sl is not 0 to 15";
	if (o->device && o->pd)
		return "both device and pd are given";
	return NULL;
}

static int open_link(struct pln_link *link, const struct pln_link_options *o)
{
	char why[PLN_LINK_REASON_MAX] = "";
	int err;

	link->fd = link->epoll = link->wake = link->timer = -1;
	link->sl = o->sl;
	link->chunk = o->chunk ? o->chunk : 256 << 10;
	link->depth = o->depth ? o->depth : 8;
	link->retries = o->retries ? o->retries : VERBS_RETRIES;
	link->timeout = o->timeout ? o->timeout : VERBS_TIMEOUT;
	link->puts_size = 16;
	link->puts = calloc(link->puts_size, sizeof(*link->puts));
	if (!link->puts)
		return link_fail(link, -ENOMEM, "out of memory");
	err = verbs_load(why, sizeof(why));
	if (err)
		return link_fail(link, err, "%s", why);
	return link_device(link, o) ?: link_queue(link);
}

int pln_link_open(struct pln_link **out, const struct pln_link_options *options)
{
	static const struct pln_link_options defaults = {
		.size = sizeof(defaults),
	};
	struct pln_link_options o = defaults;
	const char *fault = NULL;
	struct pln_link *link;
	int err;

	open_reason[0] = '\0';
	if (options && !sized_ok(options->size, LINK_OPTIONS_LEAST))
		fault = "size is not that of struct pln_link_options";
	else if (options && !SIZED_IN(&o, options))
		fault = "some that this library does not know are not 0";
	else
		fault = option_fault(&o);
	if (!out || fault) {
		snprintf(open_reason, sizeof(open_reason), "options: %s",
			 fault ? fault : "nowhere to put the link");
		return -EINVAL;
	}
	link = calloc(1, sizeof(*link));
	if (!link) {
		snprintf(open_reason, sizeof(open_reason), "out of memory");
		return -ENOMEM;
	}
	err = open_link(link, &o);
	if (err) {
		memcpy(open_reason, link->reason, sizeof(open_reason));
		pln_link_close(link);
		return err;
	}
	*out = link;
	return 0;
}

void pln_link_close(struct pln_link *link)
{
	if (!link)
		return;
	link_say_bye(link);
	if (link->fd >= 0)
		close(link->fd);
	link_close_fd(link);
	link_free_queue(link);
	free(link->puts);
	free(link);
}

struct ibv_pd *pln_link_pd(struct pln_link *link)
{
	return link ? link->pd : NULL;
}

int pln_link_share(struct pln_link *link, struct pln_mr *mr)
{
	struct hello_buffer *b;

	if (!link || !mr || pln_mr_verbs(mr)->pd != link->pd)
		return -EINVAL;
	if (link->error)
		return link->error;
	if (link->met)
		return -EISCONN;
	if (link->shares == PLN_LINK_BUFFERS)
		return -ENOSPC;
	b = &link->mine[link->shares];
	b->way = mr_way(mr);
	b->length = mr_length(mr);
	b->iova = pln_mr_iova(mr, 0);
	b->rkey = pln_mr_verbs(mr)->rkey;
	link->shared[link->shares] = mr;
	return (int)link->shares++;
}

int pln_link_connect(struct pln_link *link, int fd, int timeout_ms)
{
	int type;
	socklen_t len = sizeof(type);
	int err;

	if (!link || timeout_ms < 0)
		return -EINVAL;
	if (link->met)
		return -EISCONN;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len))
		return errno == EBADF ? -EBADF : -ENOTSOCK;
	if (type != SOCK_STREAM)
		return -ENOTSOCK;
	link->met = true;
	link->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (link->fd < 0)
		return link_fail(link, -errno, "the socket: %s",
				 pln_strerror(-errno));
	err = link_meet(link, now_ms() + timeout_ms);
	link->connected = !err;
	return err;
}

int pln_link_peer(const struct pln_link *link, unsigned int buffer,
		  struct pln_link_buffer *info)
{
	struct pln_link_buffer now = { 0 };

	if (!link || !info || !sized_ok(info->size, LINK_BUFFER_LEAST))
		return -EINVAL;
	if (!link->connected)
		return -ENOTCONN;
	if (buffer >= link->peer.buffers)
		return -ERANGE;
	now.way = link->peer.buffer[buffer].way;
	now.length = link->peer.buffer[buffer].length;
	SIZED_OUT(info, &now);
	return 0;
}

/* Room for one more put in the ring */
static int grow(struct pln_link *link)
{
	uint64_t waiting = link->puts_given - link->puts_done;
	uint32_t size = link->puts_size * 2;
	struct put *puts;

	if (waiting < link->puts_size)
		return 0;
	if (waiting >= PUTS_MAX)
		return -EAGAIN;
	puts = calloc(size, sizeof(*puts));
	if (!puts)
		return -ENOMEM;
	for (uint64_t i = link->puts_done; i < link->puts_given; i++)
		puts[i & (size - 1)] = link->puts[i & (link->puts_size - 1)];
	free(link->puts);
	link->puts = puts;
	link->puts_size = size;
	return 0;
}

int64_t pln_link_put(struct pln_link *link,
		     const struct pln_link_request *request)
{
	const struct hello_buffer *to;
	struct pln_link_request r;
	uint32_t way = PLN_MR_NONE;
	uint64_t have = 0;
	int err;

	if (!link || !request || !sized_ok(request->size, LINK_REQUEST_LEAST) ||
	    !SIZED_IN(&r, request) || !all_zero(r.reserved, 4) ||
	    (!r.mr && r.length) ||
	    (r.mr && pln_mr_verbs(r.mr)->pd != link->pd))
		return -EINVAL;
	if (!link->connected)
		return link->error ? link->error : -ENOTCONN;
	if (link->error)
		return link->error;
	if (r.buffer >= link->peer.buffers)
		return -ERANGE;
	to = &link->peer.buffer[r.buffer];
	if (r.at > to->length || r.length > to->length - r.at)
		return -ERANGE;
	if (r.mr) {
		way = mr_way(r.mr);
		have = mr_length(r.mr);
	}
	if (r.mr && (r.offset > have || r.length > have - r.offset))
		return -ERANGE;
	err = grow(link);
	if (err)
		return err;
	link->puts[link->puts_given & (link->puts_size - 1)] = (struct put){
		.mr = r.mr,
		.offset = r.offset,
		.length = r.length,
		.buffer = r.buffer,
		.at = r.at,
		.tag = r.tag,
		.staged = way == PLN_MR_STAGED,
	};
	link->stats.puts++;
	/* a failure from here on is the link's, and shows itself there */
	link->puts_given++;
	if (way != PLN_MR_STAGED)
		link_pump(link, false);
	link_wake(link);
	return (int64_t)link->puts_given;
}

int pln_link_arrival(struct pln_link *link, struct pln_link_arrival *arrival)
{
	if (!link || !arrival || !sized_ok(arrival->size, LINK_ARRIVAL_LEAST))
		return -EINVAL;
	if (!link->connected)
		return link->error ? link->error : -ENOTCONN;
	if (link->handed == link->arrived)
		return link->error ? link->error : -EAGAIN;
	SIZED_OUT(arrival, &link->arrivals[link->handed++ % CREDITS]);
	link->taken++;
	return 0;
}

int pln_link_stats(const struct pln_link *link, struct pln_link_stats *stats)
{
	if (!link || !stats || !sized_ok(stats->size, LINK_STATS_LEAST))
		return -EINVAL;
	SIZED_OUT(stats, &link->stats);
	return 0;
}
