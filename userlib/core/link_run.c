// SPDX-License-Identifier: MIT
/* What makes a link move: chunks out, notices in, acknowledgements. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "link_internal.h"
#include "peerlane/peerlane.h"

/* wr_id of what is sent; of a receive it is the slot */
#define SENT_CHUNK	(1ull << 32)
#define SENT_NOTICE	(2ull << 32)
#define SENT_OTHER	(3ull << 32)

/* Of a process that ends the kernel takes the memory first, the socket soon after */
#define GONE_MS		1000

static bool peer_stages(const struct pln_link *link, const struct put *put)
{
	return link->peer.buffer[put->buffer].way == PLN_MR_STAGED;
}

/* --- completions ---------------------------------------------------------- */

/* What a status means for who uses the link */
static int status_error(enum ibv_wc_status status, const char **meaning)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		*meaning = "the peer does not answer: its process or host is gone, or the network is down";
		return -ETIMEDOUT;
	case IBV_WC_REM_ACCESS_ERR:
		*meaning = "the peer's device refused the write: the memory is no longer registered there, or was revoked";
		return -EACCES;
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		*meaning = "the peer's device could not do it";
		return -EREMOTEIO;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		*meaning = "the peer has no buffer for a message";
		return -ENOBUFS;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		*meaning = "this end's memory is no longer registered, or was revoked";
		return -EFAULT;
	case IBV_WC_WR_FLUSH_ERR:
		*meaning = "the queue pair is in its error state: a request of the peer was refused here, or the device was reset";
		return -ECONNABORTED;
	default:
		*meaning = "the device failed";
		return -EIO;
	}
}

static const char *work_name(uint64_t wr_id)
{
	switch (wr_id & ~0xffffffffull) {
	case SENT_CHUNK:
		return "writing a chunk into the peer's memory";
	case SENT_NOTICE:
	case SENT_OTHER:
		return "sending a message to the peer";
	default:
		return "receiving from the peer";
	}
}

static void failed(struct pln_link *link, const struct ibv_wc *wc)
{
	const char *meaning;
	int err = status_error(wc->status, &meaning);

	link_fail(link, err, "%s failed: %s (status %d of the queue pair: "
		  "%s, vendor's code %#x)", work_name(wc->wr_id), meaning,
		  (int)wc->status, verbs_lib.wc_status_str(wc->status),
		  wc->vendor_err);
}

static void bad_completion(struct pln_link *link, const struct ibv_wc *wc)
{
	const char *meaning;

	link->broken = true;
	/* of a peer that has said goodbye no answer is wanted */
	if (link->bye || link->refused_until)
		return;
	if (status_error(wc->status, &meaning) != -EACCES) {
		failed(link, wc);
		return;
	}
	link->refusal = *wc;
	link->refused_until = now_ms() + GONE_MS;
}

/*
 * The link fails if a write was refused: as the peer is gone, or, when that does
 * not show in time, cannot be told or must be known @now, because of the refusal.
 */
void link_settle(struct pln_link *link, bool now)
{
	struct pollfd p = { .fd = link->fd, .events = POLLRDHUP };
	int gone;

	if (!link->refused_until || link->error)
		return;
	gone = poll(&p, 1, 0);
	if (gone > 0)
		link_fail(link, -ECONNRESET, PEER_GONE);
	else if (gone < 0 || now || now_ms() >= link->refused_until)
		failed(link, &link->refusal);
}

static int nonsense(struct pln_link *link, const char *what)
{
	return link_fail(link, -EPROTO, "the peer broke the protocol: %s",
			 what);
}

static int notice(struct pln_link *link, const struct message *m)
{
	const struct hello_buffer *b;
	bool last = m->flags & MESSAGE_LAST;

	if (m->seq != link->received + 1)
		return nonsense(link, "a notice is missing or repeated");
	if (link->received - link->taken >= CREDITS)
		return nonsense(link, "more notices than it has credits");
	if (m->buffer >= link->shares)
		return nonsense(link, "a notice for a buffer that is not shared");
	b = &link->mine[m->buffer];
	if (m->start > b->length || m->length > b->length - m->start)
		return nonsense(link, "a put beyond the end of its buffer");
	if (m->at < m->start || m->at - m->start > m->length ||
	    m->chunk > m->length - (m->at - m->start))
		return nonsense(link, "a chunk outside of its put");
	if (last != (m->at + m->chunk == m->start + m->length))
		return nonsense(link, "a put that ends before its end");
	link->queue[link->received++ % CREDITS] = *m;
	return 0;
}

/* It has nothing that only a notice has */
static bool bare(const struct message *m)
{
	return !(m->flags | m->buffer | m->at | m->start | m->length | m->tag |
		 m->seq);
}

static int message(struct pln_link *link, const struct ibv_wc *wc)
{
	unsigned int slot = (unsigned int)wc->wr_id;
	struct message m;
	bool news;

	if (wc->opcode != IBV_WC_RECV || wc->byte_len != MESSAGE_SIZE)
		return nonsense(link, "a message of another length or kind");
	message_decode(link->messages + (TX_SLOTS + slot) * MESSAGE_SIZE,
		       &m);
	if (link->bye)
		return nonsense(link, "it sent a message after its goodbye");
	if (m.flags & ~MESSAGE_LAST)
		return nonsense(link, "unknown flags");
	if (m.landed < link->peer_landed || m.landed > link->notices ||
	    m.taken < link->peer_taken || m.taken > m.landed)
		return nonsense(link, "it acknowledges what cannot be");
	news = m.landed > link->peer_landed || m.taken > link->peer_taken;
	link->peer_landed = m.landed;
	link->peer_taken = m.taken;
	switch (m.type) {
	case MESSAGE_NOTICE:
		if (notice(link, &m))
			return link->error;
		break;
	case MESSAGE_ACK:
		if (!bare(&m) || m.chunk)
			return nonsense(link, "something where zeros belong");
		/* or there would be no end of them, nor of reading them */
		if (!news)
			return nonsense(link, "an acknowledgement without a "
			  "change");
		break;
	case MESSAGE_BYE:
		if (!bare(&m))
			return nonsense(link, "something where zeros belong");
		if (m.chunk > 4095)
			return nonsense(link, "a goodbye for no known reason");
		link->bye = true;
		link->bye_error = (int)m.chunk;
		break;
	default:
		return nonsense(link, "an unknown message");
	}
	return link_post_rx(link, slot);
}

/* Returns how many completions there were */
int link_drain(struct pln_link *link)
{
	struct ibv_wc wc[16];
	int n, total = 0;

	while (!link->error) {
		n = ibv_poll_cq(link->cq, 16, wc);
		if (n < 0)
			link_fail(link, -EIO, "the completion queue cannot "
				  "be polled");
		if (n <= 0)
			break;
		total += n;
		link->completions += (uint64_t)n;
		for (int i = 0; i < n && !link->error; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				bad_completion(link, &wc[i]);
			else if (wc[i].wr_id < RX_SLOTS)
				message(link, &wc[i]);
			else if (wc[i].wr_id == SENT_CHUNK)
				link->in_flight--;
			else
				link->tx_done++;
			if (wc[i].status == IBV_WC_SUCCESS &&
			    wc[i].wr_id == SENT_NOTICE)
				link->notices_sent++;
		}
	}
	return total;
}

/* --- out ------------------------------------------------------------------ */

/* Behind @chunk, when there is one; the caller has looked for a free slot */
int link_post(struct pln_link *link, struct ibv_send_wr *chunk,
	      struct message *m)
{
	uint8_t *slot = link->messages +
			(link->tx_posted % TX_SLOTS) * MESSAGE_SIZE;
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot,
		.length = MESSAGE_SIZE,
		.lkey = link->message_mr->lkey,
	};
	struct ibv_send_wr send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *first = chunk ? chunk : &send, *bad;
	int err;

	if (m) {
		m->landed = link->landed;
		m->taken = link->taken;
		message_encode(m, slot);
		send.wr_id = m->type == MESSAGE_NOTICE ? SENT_NOTICE :
							 SENT_OTHER;
		if (chunk)
			chunk->next = &send;
	}
	errno = 0;
	err = ibv_post_send(link->qp, first, &bad);
	if (err) {
		link->broken = true;
		err = verbs_errno(err);
		return link_fail(link, err, "the device accepts no more work: "
				 "%s", pln_strerror(err));
	}
	if (m) {
		link->tx_posted++;
		link->stats.messages++;
		link->told_landed = m->landed;
		link->told_taken = m->taken;
		link->urgent = false;
	}
	return 0;
}

static bool stall(bool *flag, uint64_t *count)
{
	if (!*flag)
		++*count;
	*flag = true;
	return false;
}

static bool may_send(struct pln_link *link, bool chunk, bool tell)
{
	if (chunk && link->in_flight == link->depth)
		return stall(&link->stalled_depth, &link->stats.stalls_depth);
	if (tell && link->tx_posted - link->tx_done >= CREDITS)
		return stall(&link->stalled_depth, &link->stats.stalls_depth);
	if (tell && link->notices - link->peer_taken >= CREDITS)
		return stall(&link->stalled_credit, &link->stats.stalls_credit);
	link->stalled_depth = false;
	link->stalled_credit = false;
	return true;
}

static int fetch(struct pln_link *link, const struct put *put, uint64_t n)
{
	bool busy = link->in_flight;
	int err = pln_mr_from_gpu(put->mr, put->offset + put->sent, n);

	if (err)
		return link_fail(link, err, "the GPU could not copy %llu "
			"bytes to host memory for the device to send: %s",
			(unsigned long long)n, pln_strerror(err));
	link->stats.bytes_from_gpu += n;
	link->stats.copies_overlapped += busy;
	return 0;
}

static void count_chunk(struct pln_link *link, const struct put *put,
			uint64_t n)
{
	struct pln_link_stats *s = &link->stats;

	link->in_flight++;
	s->chunks++;
	s->bytes_put += n;
	if (link->in_flight > s->most_in_flight)
		s->most_in_flight = link->in_flight;
	if (peer_stages(link, put))
		s->bytes_for_staged += n;
	else if (!put->staged)
		s->bytes_direct += n;
}

/* The next chunk; false when there is none, or it has to wait */
static bool send_chunk(struct pln_link *link)
{
	struct put *put = &link->puts[link->puts_sent & (link->puts_size - 1)];
	uint64_t n = put->length - put->sent;
	bool last = n <= link->chunk, tell;
	struct message m = { .type = MESSAGE_NOTICE };
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = SENT_CHUNK,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (!last)
		n = link->chunk;
	tell = last || peer_stages(link, put);
	if (!may_send(link, n, tell) ||
	    (n && put->staged && fetch(link, put, n)))
		return false;
	if (n) {
		const struct hello_buffer *to = &link->peer.buffer[put->buffer];

		sge.addr = pln_mr_iova(put->mr, put->offset + put->sent);
		sge.length = (uint32_t)n;
		sge.lkey = pln_mr_verbs(put->mr)->lkey;
		wr.wr.rdma.remote_addr = to->iova + put->at + put->sent;
		wr.wr.rdma.rkey = to->rkey;
	}
	m.flags = last ? MESSAGE_LAST : 0;
	m.buffer = (uint16_t)put->buffer;
	m.chunk = (uint32_t)n;
	m.at = put->at + put->sent;
	m.start = put->at;
	m.length = put->length;
	m.tag = put->tag;
	m.seq = link->notices + 1;
	if (link_post(link, n ? &wr : NULL, tell ? &m : NULL))
		return false;
	if (n)
		count_chunk(link, put, n);
	link->notices += tell;
	put->sent += n;
	if (last) {
		put->seq = m.seq;
		link->puts_sent++;
	}
	return true;
}

int link_pump(struct pln_link *link, bool copy)
{
	int sent = 0;

	while (!link->error && !link->bye && !link->broken &&
	       link->puts_sent < link->puts_given) {
		const struct put *put = &link->puts[link->puts_sent &
						    (link->puts_size - 1)];
		bool staged = put->staged;

		if ((staged && !copy) || !send_chunk(link))
			break;
		sent++;
		/* a copy takes a while, in which other things have happened */
		if (staged)
			break;
	}
	return sent;
}

static void finish_puts(struct pln_link *link)
{
	while (link->puts_done < link->puts_sent) {
		const struct put *put = &link->puts[link->puts_done &
						    (link->puts_size - 1)];

		if (put->seq > link->peer_landed &&
		    (peer_stages(link, put) || put->seq > link->notices_sent))
			break;
		link->puts_done++;
		link->news = true;
	}
	link->stats.puts_done = link->puts_done;
}

/* --- in ------------------------------------------------------------------- */

/* Chunks are copied; a put that needs no copy is flushed when all of it is here */
static int into_gpu(struct pln_link *link, const struct message *m, bool staged)
{
	struct pln_mr *mr = link->shared[m->buffer];
	uint64_t before = link->received;
	int err;

	if (staged)
		err = pln_mr_to_gpu(mr, m->at, m->chunk);
	else
		err = m->flags & MESSAGE_LAST ?
		      pln_mr_to_gpu(mr, m->start, m->length) : 0;
	if (err) {
		link->lost = true;
		return link_fail(link, err, staged ?
			"the GPU could not copy %llu bytes that arrived in host memory: %s" :
			"the GPU could not flush what arrived in %llu bytes of its memory: %s",
			(unsigned long long)(staged ? m->chunk : m->length),
			pln_strerror(err));
	}
	if (staged && m->chunk) {
		link->stats.bytes_to_gpu += m->chunk;
		link_drain(link);
		link->stats.landings_overlapped += link->received != before;
	}
	return 0;
}

/* The oldest notice that has not been seen to; false when there is none */
static bool land(struct pln_link *link)
{
	struct message m;
	bool staged;

	if (link->lost || link->landed == link->received)
		return false;
	m = link->queue[link->landed % CREDITS];
	staged = link->mine[m.buffer].way == PLN_MR_STAGED;
	if (into_gpu(link, &m, staged))
		return false;
	link->landed++;
	if (!(m.flags & MESSAGE_LAST)) {
		link->taken++;
		return true;
	}
	link->arrivals[link->arrived++ % CREDITS] = (struct pln_link_arrival){
		.size = sizeof(struct pln_link_arrival),
		.buffer = m.buffer,
		.offset = m.start,
		.length = m.length,
		.tag = m.tag,
	};
	link->stats.arrivals++;
	link->stats.bytes_arrived += m.length;
	link->urgent |= staged;
	link->news = true;
	return true;
}

static void tell(struct pln_link *link)
{
	struct message m = { .type = MESSAGE_ACK };
	uint64_t landed = link->landed - link->told_landed;
	uint64_t taken = link->taken - link->told_taken;

	if (link->error || link->bye || link->broken ||
	    link->tx_posted - link->tx_done >= CREDITS + 1)
		return;
	if ((landed && link->urgent) || landed >= CREDITS / 4 ||
	    taken >= CREDITS / 4)
		link_post(link, NULL, &m);
}

/* Returns 0 when there was nothing to do */
int link_progress(struct pln_link *link)
{
	int done = link_drain(link);

	link_settle(link, false);
	done += land(link);
	done += link_pump(link, true);
	tell(link);
	finish_puts(link);
	if (!done && link->bye && link->landed == link->received)
		link_fail(link, -EPIPE, link->bye_error ?
			"the peer has given the link up: %s" :
			"the peer has closed the link",
			pln_strerror(-link->bye_error));
	return done;
}
