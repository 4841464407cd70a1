/* SPDX-License-Identifier: MIT */
/*
 * Moving GPU memory to another process, mostly on another host: one reliable
 * RDMA connection, over any device that libibverbs knows.
 *
 *	pln_link_open()			a queue pair and what it needs
 *	pln_mr_reg(pln_link_pd(), ...)	memory, by whatever way works
 *	pln_link_share()		memory that the peer may write
 *	pln_link_connect()		meet the peer over a connected socket
 *	pln_link_put()			bytes of mine into memory of the peer
 *	pln_link_poll()			let things move; pln_link_wait() for one put
 *	pln_link_arrival()		what has come into memory of mine
 *	pln_link_close()
 *
 * A put is cut into chunks, several of which are under way at once.  Where
 * memory of an end is staged (PLN_MR_STAGED), the GPU's copy engine works on
 * one chunk while the network carries others.
 *
 * Links have no threads: everything moves inside of pln_link_poll() and
 * pln_link_wait().  A link, and all links that are given to one
 * pln_link_poll(), are for one thread at a time; links that share a protection
 * domain may be used by different threads.  After fork() a link is the parent's
 * alone; a child that neither ends nor executes another program keeps the socket
 * open, and then the peer does not see that the parent has ended.
 *
 * Once something went wrong, all further calls return that error and
 * pln_link_reason() tells it in words; the only way on is pln_link_close().
 * These are the errors of a connected link:
 *
 *	-EPIPE		the peer has closed the link
 *	-ECONNRESET	the peer's process has ended without doing so
 *	-ETIMEDOUT	the peer does not answer: host or network is down
 *	-EACCES		the peer's device refused a write: its memory is no longer
 *			registered, or was revoked
 *	-EFAULT		memory of this end is no longer registered, or was freed
 *	-ENODEV		this end's device has gone
 *	-ECONNABORTED	the queue pair is in its error state, for a request of the
 *			peer or a reset of the device
 *	-EREMOTEIO	the peer's device failed
 *	-ENOBUFS, -EPROTO	the peer does not keep to the protocol
 *	-EIO, ...	this end's device failed, or the GPU's copy engine
 */
#ifndef PEERLANE_LINK_H
#define PEERLANE_LINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_pd;
struct pln_link;
struct pln_mr;

#define PLN_LINK_BUFFERS	16	/* that one end can share */
#define PLN_LINK_REASON_MAX	512

/**
 * struct pln_link_options - how a link is to be; zero means the default
 * @size: in: sizeof(struct pln_link_options)
 * @port: of the device, from 1; default: its first active one
 * @gid: index of the port's GID plus 1, up to 256; default: the first GID, on
 *	Ethernet the first RoCE v2 GID of an IPv4 address if there is one.
 *	On InfiniBand packets carry GIDs only when it is set, or the port demands
 *	it; set it at both ends or at none
 * @chunk: bytes, a multiple of 4096 up to 1 GiB; default 256 KiB
 * @depth: chunks under way at most, up to 256; default 8
 * @retries: how often the device sends a packet again before the connection
 *	counts as broken, 1 to 7; default 6, as soft-RoCE takes 7 for "without
 *	end"
 * @timeout: of one try, as in the InfiniBand specification: 4.096 µs times
 *	two to the power of this, 8 to 22; default 19, two seconds: shorter
 *	ones make soft-RoCE repeat itself on a busy machine
 * @sl: service level, 0 to 15; default 0.  On Ethernet the lower three bits
 *	become the packets' priority
 * @device: "rxe0", "mlx5_0"; default: the first one with an active port
 * @pd: of another link or of the program's own; then @device must be NULL,
 *	and @pd must live longer than the link
 * @reserved: 0
 */
struct pln_link_options {
	uint32_t size;
	uint32_t port;
	uint32_t gid;
	uint32_t chunk;
	uint32_t depth;
	uint32_t retries;
	uint32_t timeout;
	uint32_t sl;
	const char *device;
	struct ibv_pd *pd;
	uint64_t reserved[4];
};

/**
 * struct pln_link_buffer - memory that the peer has shared
 * @size: in: sizeof(struct pln_link_buffer)
 * @way: enum pln_mr_way by which the peer has registered it
 * @length: bytes
 * @reserved: 0
 */
struct pln_link_buffer {
	uint32_t size;
	uint32_t way;
	uint64_t length;
	uint64_t reserved[4];
};

/**
 * struct pln_link_arrival - a put of the peer, all of it now in my memory
 * @size: in: sizeof(struct pln_link_arrival)
 * @buffer: number that pln_link_share() returned
 * @offset: of the first byte in that buffer
 * @length: bytes, may be 0
 * @tag: what the peer gave to pln_link_put()
 * @reserved: 0
 */
struct pln_link_arrival {
	uint32_t size;
	uint32_t buffer;
	uint64_t offset;
	uint64_t length;
	uint64_t tag;
	uint64_t reserved[4];
};

/**
 * struct pln_link_stats - what a link has done so far
 * @size: in: sizeof(struct pln_link_stats)
 * @mtu: bytes of payload in a packet, once connected
 * @puts: accepted by pln_link_put()
 * @puts_done: of them, those whose bytes are in the peer's memory
 * @bytes_put: bytes handed to the device for the peer's memory
 * @bytes_direct: of @bytes_put, those that no end staged
 * @bytes_from_gpu: copied to host memory first, as the source is staged
 * @bytes_for_staged: of @bytes_put, those into staged memory of the peer
 * @bytes_to_gpu: that arrived in host memory and were copied to the GPU
 * @arrivals: puts of the peer that are all here
 * @bytes_arrived: their bytes
 * @chunks: handed to the device
 * @messages: notices and acknowledgements sent, 64 bytes each
 * @most_in_flight: chunks under way at the same time, at most
 * @copies_overlapped: of the chunks copied from the GPU, those copied while
 *	the device had another chunk under way
 * @landings_overlapped: of the chunks copied to the GPU, those during whose
 *	copy another one arrived
 * @stalls_depth: times that sending waited because @depth chunks were under
 *	way
 * @stalls_credit: times that sending waited for the peer to take what was
 *	sent
 * @reserved: 0
 */
struct pln_link_stats {
	uint32_t size;
	uint32_t mtu;
	uint64_t puts;
	uint64_t puts_done;
	uint64_t bytes_put;
	uint64_t bytes_direct;
	uint64_t bytes_from_gpu;
	uint64_t bytes_for_staged;
	uint64_t bytes_to_gpu;
	uint64_t arrivals;
	uint64_t bytes_arrived;
	uint64_t chunks;
	uint64_t messages;
	uint64_t most_in_flight;
	uint64_t copies_overlapped;
	uint64_t landings_overlapped;
	uint64_t stalls_depth;
	uint64_t stalls_credit;
	uint64_t reserved[8];
};

/**
 * pln_link_open - a queue pair on an RDMA device, not yet connected
 * @link: out: the link, to be closed with pln_link_close()
 * @options: NULL for all defaults
 *
 * Returns 0; -EINVAL: an option out of range, another size, or a reserved
 * field that is not 0; -ENOENT: libibverbs.so.1 cannot be loaded; -ENOSYS: it
 * lacks a function; -ENODEV: no such RDMA device, or none with an active port
 * and all could be asked;
 * -ENETDOWN: the port is not active, or none of the device's is;
 * -EADDRNOTAVAIL: no such GID, or an InfiniBand port without a LID; -EMSGSIZE:
 * chunks are larger than the port's messages; -ENOMEM; or the device's error.
 * pln_link_reason(NULL) has it in words.  Since 0.1.
 */
int pln_link_open(struct pln_link **link,
		  const struct pln_link_options *options);

/**
 * pln_link_close - give a link back, at any time
 * @link: may be NULL
 *
 * Puts that are not done are lost; the peer learns that this end is gone.
 * Memory that was registered in the link's own protection domain has to be
 * deregistered before.  Since 0.1.
 */
void pln_link_close(struct pln_link *link);

/**
 * pln_link_pd - the protection domain, to register memory in
 * @link: the link
 *
 * Returns the domain: the one in its options, or the link's own, which lives
 * as long as the link.  NULL without a link.  Since 0.1.
 */
struct ibv_pd *pln_link_pd(struct pln_link *link);

/**
 * pln_link_share - let the peer write into memory
 * @link: a link that is not yet connected
 * @mr: registered in pln_link_pd() with IBV_ACCESS_LOCAL_WRITE and
 *	IBV_ACCESS_REMOTE_WRITE; once it is deregistered, only
 *	pln_link_close() may be called
 *
 * Returns the buffer's number: 0 for the first, 1 for the next, ...; both ends
 * agree on who is what by that order.  -EINVAL: no link, no registration,
 * or one in another protection domain; -EISCONN: too late; -ENOSPC: already
 * PLN_LINK_BUFFERS; or the link's error.  Since 0.1.
 */
int pln_link_share(struct pln_link *link, struct pln_mr *mr);

/**
 * pln_link_connect - meet the peer
 * @link: a link that is not yet connected
 * @fd: a connected stream socket; the peer calls the same function on its
 *	other end
 * @timeout_ms: for all of it
 *
 * The ends tell each other how to be reached and what they share.  Afterwards
 * the program may use the socket as it likes; the link watches its connection
 * to learn that the peer is gone, so it must stay open while the link is used.
 *
 * Returns 0; -EINVAL; -EISCONN: connected or failed before; -EBADF, -ENOTSOCK:
 * @fd is no stream socket;
 * -ETIMEDOUT; -ECONNRESET: the peer went away; -EPROTO: the other end does not
 * speak this protocol, or says something impossible; -EPROTONOSUPPORT: it
 * speaks another version; -EREMOTEIO: the peer failed to connect; or the device's error.  A link that
 * failed to connect is good for nothing but pln_link_reason() and
 * pln_link_close(); after -EINVAL, -EBADF and -ENOTSOCK it is as before.
 * Since 0.1.
 */
int pln_link_connect(struct pln_link *link, int fd, int timeout_ms);

/**
 * pln_link_peer - what the peer has shared
 * @link: a connected link
 * @buffer: its number, from 0
 * @info: in: its size; out: the rest
 *
 * Returns 0; -EINVAL: no link, no structure or another size; -ENOTCONN;
 * -ERANGE: the peer has shared fewer.  Since 0.1.
 */
int pln_link_peer(const struct pln_link *link, unsigned int buffer,
		  struct pln_link_buffer *info);

/**
 * pln_link_put - start to write into the peer's memory
 * @link: a connected link
 * @mr: where the bytes are: registered in pln_link_pd(), and to live until the
 *	put is done; may be NULL when @length is 0
 * @offset: of the first byte in @mr
 * @length: bytes; 0 only tells the peer @tag
 * @buffer: number of the peer's buffer
 * @at: where in that buffer
 * @tag: anything; the peer gets it with the arrival
 *
 * Returns at once.  The bytes must not change until the put is done.  Puts of
 * one link arrive whole and in order; puts that are under way together must
 * not overlap in the peer's memory.
 *
 * Returns the number of the put, from 1; -EINVAL: no link, no @mr for bytes, or
 * one in another protection domain; -ENOTCONN; -ERANGE: outside of @mr or of
 * the peer's buffer, or there is no such buffer; -EAGAIN: 65536 puts are
 * waiting, pln_link_poll() first; -ENOMEM; or the link's error.  Since 0.1.
 */
int64_t pln_link_put(struct pln_link *link, struct pln_mr *mr, uint64_t offset,
		     uint64_t length, unsigned int buffer, uint64_t at,
		     uint64_t tag);

/**
 * pln_link_poll - let links work until something happened on one of them
 * @links: connected ones
 * @count: of them, from 1 to 64
 * @timeout_ms: how long to wait for something; 0 only looks
 *
 * Something is: a put done, a put of the peer arrived, a link failed.
 *
 * Returns the number of links on which something is new since the last look,
 * or for which an arrival waits; 0: nothing within @timeout_ms; -EINVAL;
 * -ENOTCONN; the error of a failed link when nothing is new on any.  Since
 * 0.1.
 */
int pln_link_poll(struct pln_link **links, unsigned int count, int timeout_ms);

/**
 * pln_link_wait - until a put is done
 * @link: a connected link
 * @put: what pln_link_put() returned; 0: all puts so far
 * @timeout_ms: bound
 *
 * Done means: the bytes are in the peer's memory, in the GPU's own where that
 * is what the peer registered.  For staged memory of the peer that needs the
 * peer to poll.  Only this link is worked on meanwhile.
 *
 * Returns 0; -EINVAL; -ERANGE: there was no such put; -ENOTCONN; -ETIMEDOUT,
 * which is no error of the link; or the link's error.  Since 0.1.
 */
int pln_link_wait(struct pln_link *link, int64_t put, int timeout_ms);

/**
 * pln_link_arrival - take the oldest put of the peer that is all here
 * @link: a link
 * @arrival: in: its size; out: the rest
 *
 * What has arrived before an error can still be taken.
 *
 * Returns 0; -EAGAIN: none now; -EINVAL; -ENOTCONN; or the link's error when
 * none is left.  Since 0.1.
 */
int pln_link_arrival(struct pln_link *link, struct pln_link_arrival *arrival);

/**
 * pln_link_stats - what a link has done so far
 * @link: a link, also a failed one
 * @stats: in: its size; out: the rest
 *
 * Returns 0 or -EINVAL.  Since 0.1.
 */
int pln_link_stats(const struct pln_link *link, struct pln_link_stats *stats);

/**
 * pln_link_reason - what went wrong, in words
 * @link: a link, or NULL for this thread's latest failed pln_link_open()
 *
 * Returns a text of the link, "" when nothing went wrong; valid until
 * pln_link_close(), for NULL until this thread's next pln_link_open().  Since
 * 0.1.
 */
const char *pln_link_reason(const struct pln_link *link);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_LINK_H */
