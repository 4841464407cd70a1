/* SPDX-License-Identifier: MIT */
/*
 * Copies GPU memory to another process, usually on another host, over one
 * reliable RDMA connection of any device that libibverbs supports.
 *
 *	pln_link_open()			create a queue pair and its resources
 *	pln_mr_reg(pln_link_pd(), ...)	register memory, by the way that works
 *	pln_link_share()		share memory that the peer may write
 *	pln_link_connect()		connect to the peer over a connected socket
 *	pln_link_put()			write local bytes into memory of the peer
 *	pln_link_poll()			make progress; pln_link_wait() for one put
 *	pln_link_arrival()		fetch an arrival in local memory
 *	pln_link_close()
 *
 * A put is split into chunks, several of which are in flight at once.  If
 * memory of an end is staged (PLN_MR_STAGED), the GPU's copy engine copies
 * one chunk while the network transfers others.
 *
 * Links have no threads: all progress happens inside pln_link_poll() and
 * pln_link_wait().  Only one thread at a time may use a link, and all links of
 * one pln_link_poll(); different threads may use links that share a protection
 * domain.  After fork() a link belongs to the parent only; a child that neither
 * ends nor executes another program keeps the socket open, and then the peer
 * does not detect that the parent has ended.
 *
 * After a failure all further calls return the same error, and
 * pln_link_reason() returns it as text; only pln_link_close() is possible.
 * These are the errors of a connected link:
 *
 *	-EPIPE		the peer has closed the link
 *	-ECONNRESET	the peer's process has ended without doing so
 *	-ETIMEDOUT	the peer does not answer: host or network is down
 *	-EACCES		the peer's device refused a write: its memory is no longer
 *			registered, or was revoked
 *	-EFAULT		memory of this end is no longer registered, or was freed
 *	-ENODEV		this end's device was removed
 *	-ECONNABORTED	the queue pair is in its error state, because of a request
 *			of the peer or a reset of the device
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
 * struct pln_link_options - options of a link; zero means the default
 * @size: in: sizeof(struct pln_link_options)
 * @port: of the device, from 1; default: its first active one
 * @gid: index of the port's GID plus 1, up to 256; default: the first GID, on
 *	Ethernet the first RoCE v2 GID of an IPv4 address, else of an IPv6
 *	address, else a link-local one, if there is one.
 *	On InfiniBand packets carry GIDs only when it is set, or the port demands
 *	it; set it at both ends or at none
 * @chunk: bytes, a multiple of 4096 up to 1 GiB; default 256 KiB
 * @depth: most chunks in flight, up to 256; default 8
 * @retries: how often the device retransmits a packet before the connection
 *	counts as broken, 1 to 7; default 6, because soft-RoCE treats 7 as
 *	"for ever"
 * @timeout: of one try, as in the InfiniBand specification: 4.096 µs times
 *	two to the power of this, 8 to 22; default 19, two seconds: with shorter
 *	ones soft-RoCE retransmits needlessly on a busy machine
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
 * struct pln_link_request - the bytes of a put and their target
 * @size: in: sizeof(struct pln_link_request)
 * @buffer: number of the peer's buffer
 * @mr: where the bytes are: registered in pln_link_pd(), and to live until the
 *	put is done; may be NULL when @length is 0
 * @offset: of the first byte in @mr
 * @length: bytes; 0 only tells the peer @tag
 * @at: where in the peer's buffer
 * @tag: anything; the peer gets it with the arrival
 * @reserved: 0
 */
struct pln_link_request {
	uint32_t size;
	uint32_t buffer;
	struct pln_mr *mr;
	uint64_t offset;
	uint64_t length;
	uint64_t at;
	uint64_t tag;
	uint64_t reserved[4];
};

/**
 * struct pln_link_arrival - a put of the peer that is completely in local memory
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
 * struct pln_link_stats - statistics of a link
 * @size: in: sizeof(struct pln_link_stats)
 * @mtu: bytes of payload in a packet, once connected
 * @puts: accepted by pln_link_put()
 * @puts_done: of them, those whose bytes are in the peer's memory
 * @bytes_put: bytes handed to the device for the peer's memory
 * @bytes_direct: of @bytes_put, those that no end staged
 * @bytes_from_gpu: copied to host memory first, as the source is staged
 * @bytes_for_staged: of @bytes_put, those into staged memory of the peer
 * @bytes_to_gpu: that arrived in host memory and were copied to the GPU
 * @arrivals: puts of the peer that have arrived completely
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
 * pln_link_open - make one end of a connection that moves GPU memory
 * @link: out: the link, to be closed with pln_link_close()
 * @options: NULL for all defaults
 *
 * Creates one end of a reliable connection on an RDMA device: a queue pair with
 * its resources. pln_link_connect() connects it.
 *
 * The function loads libibverbs.so.1; programs need not be linked with it.
 *
 * In @options, 0 means the default of a field. Reserved fields must be 0.
 *
 * Links have no threads: everything moves inside of pln_link_poll() and
 * pln_link_wait(). A link is for one thread at a time, and so are all links
 * that are given to one pln_link_poll().
 *
 * Return: 0, or a negative errno; pln_link_reason() of NULL has the reason in words.
 *
 * -EINVAL: An option is out of range, its size is less than that of version 0.1,
 *   or a reserved or unknown field is not 0.
 * -ENOENT: libibverbs.so.1 cannot be loaded.
 * -ENOSYS: It lacks a function.
 * -ENODEV: There is no such device, or none with an active port. If
 *   devices cannot be opened or queried, the function returns that error instead.
 * -ENETDOWN: The port is not active, or the device has no active port.
 * -EADDRNOTAVAIL: The port has no such GID, or none at all; or it is an
 *   InfiniBand port without a LID.
 * -EMSGSIZE: Chunks are larger than the port's messages may be.
 * -ENOMEM: Out of memory.
 *
 * Other errors are those of the device.
 *
 * Example:
 *
 *	struct pln_link *link;
 *
 *	if (pln_link_open(&link, NULL))
 *		fprintf(stderr, "%s\n", pln_link_reason(NULL));
 *
 * Notes:
 *
 * After fork(2) a link belongs to the parent only. A child that neither ends nor
 * executes another program keeps its socket open, and then the peer does not
 * detect that the parent has ended.
 *
 * Tested with soft-RoCE on stock Linux 7.2. On InfiniBand a link addresses its
 * peer by LID within one subnet, without routers; this was tested only with
 * a mock device and with an emulated one.
 *
 * Since 0.1.
 *
 * See also: pln_link_connect(), pln_link_close(), pln_link_share(),
 * pln_link_put(), pln_link_reason(), pln_mr_reg()
 */
int pln_link_open(struct pln_link **link,
		  const struct pln_link_options *options);

/**
 * pln_link_close - close a link
 * @link: may be NULL
 *
 * A link may be closed at any time and in any state.
 *
 * Puts that are not done are lost. The function notifies the peer, for at most a
 * second: the peer's link fails with -EPIPE after it has received all earlier data.
 *
 * A link without a @pd in its options has its own protection domain,
 * which this function frees, so memory that was registered in it must be
 * deregistered before.
 *
 * Since 0.1.
 *
 * See also: pln_link_open(), pln_mr_dereg()
 */
void pln_link_close(struct pln_link *link);

/**
 * pln_link_pd - protection domain of a link
 * @link: the link
 *
 * Memory is registered in it with pln_mr_reg(), and further links can be opened
 * with it as their @pd.
 *
 * Return: the domain of the link's options, or the link's own, which lives as
 * long as the link; NULL without a link.
 *
 * Since 0.1.
 *
 * See also: pln_link_open(), pln_mr_reg()
 */
struct ibv_pd *pln_link_pd(struct pln_link *link);

/**
 * pln_link_share - let the peer of a link write into memory
 * @link: a link that is not yet connected
 * @mr: registered in pln_link_pd() with IBV_ACCESS_LOCAL_WRITE and
 *	IBV_ACCESS_REMOTE_WRITE; once it is deregistered, only
 *	pln_link_close() may be called
 *
 * Lets the peer write into @mr, once connected. It was registered in
 * pln_link_pd() with IBV_ACCESS_LOCAL_WRITE and IBV_ACCESS_REMOTE_WRITE, by
 * any way.
 *
 * Buffers are numbered in the order in which they are shared; both ends must
 * agree on the use of each. After @mr is deregistered, only pln_link_close()
 * may be called.
 *
 * Return: The buffer's number, 0 for the first; or a negative errno.
 *
 * -EINVAL: There is no link or no registration, or it is in another
 *   protection domain than pln_link_pd().
 * -EISCONN: The link is connected already, or has tried to be.
 * -ENOSPC: PLN_LINK_BUFFERS (16) are shared already.
 *
 * Since 0.1.
 *
 * See also: pln_link_peer(), pln_link_put(), pln_mr_reg()
 */
int pln_link_share(struct pln_link *link, struct pln_mr *mr);

/**
 * pln_link_connect - connect a link to its peer over a socket
 * @link: a link that is not yet connected
 * @fd: a connected stream socket; the peer calls the same function on its
 *	other end
 * @timeout_ms: for all of it
 *
 * Connects to the peer, which calls the same function on the other end of the
 * connected stream socket @fd. The ends exchange their addresses and their shared
 * buffers, check them, and return when both can receive.
 *
 * The function takes at most @timeout_ms milliseconds. No value means without end:
 * INT_MAX, almost 25 days, is the longest time.
 *
 * After that the program may use the socket for other purposes, or close it: the
 * link keeps a duplicate, with which it detects the end of the peer's process. It
 * reads nothing from it, but a shutdown(2) of the socket breaks the peer's link.
 *
 * Return: 0, or a negative errno; pln_link_reason() returns the reason. After an
 * error only pln_link_close() is possible.
 *
 * -EINVAL: There is no link, or @timeout_ms is negative; the link can still be
 *   connected.
 * -EISCONN: This function has been called before.
 * -EBADF, -ENOTSOCK: @fd is no stream socket; the link can still be
 *   connected.
 * -ETIMEDOUT: The time is over.
 * -ECONNRESET: The peer has closed the socket.
 * -EPROTO: The other end does not use the protocol of this function, or
 *   sent an invalid value.
 * -EPROTONOSUPPORT: It uses another version of the protocol.
 * -EREMOTEIO: The peer failed to connect.
 *
 * Other errors are those of the device.
 *
 * Since 0.1.
 *
 * See also: pln_link_open(), pln_link_share(), pln_link_reason()
 */
int pln_link_connect(struct pln_link *link, int fd, int timeout_ms);

/**
 * pln_link_peer - what the peer of a link has shared
 * @link: a connected link
 * @buffer: its number, from 0
 * @info: in: its size; out: the rest
 *
 * Returns the peer's shared buffer number @buffer: @length in bytes, and
 * @way, the enum pln_mr_way of its registration at the peer. The caller
 * sets @info->size to sizeof(struct pln_link_buffer).
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: There is no link, no structure, or its size is less than that of
 *   version 0.1.
 * -ENOTCONN: The link is not connected.
 * -ERANGE: The peer has shared fewer buffers.
 *
 * Since 0.1.
 *
 * See also: pln_link_share(), pln_link_put(), pln_mr_way_name()
 */
int pln_link_peer(const struct pln_link *link, unsigned int buffer,
		  struct pln_link_buffer *info);

/**
 * pln_link_put - write GPU memory into memory of the peer
 * @link: a connected link
 * @request: in: its size, which bytes go where, and a tag; copied
 *
 * Starts to write @request->length bytes at @request->offset of the
 * registration @request->mr into the peer's buffer number @request->buffer,
 * from byte @request->at of it, and returns at once. The peer gets them as one
 * arrival, with @request->tag. A length of 0 only sends the tag to the peer; then
 * the registration may be NULL. Fields that are not set must be 0. The caller sets
 * @request->size to sizeof(struct pln_link_request).
 *
 * A put is cut into chunks. Where the registration or the peer's buffer is staged
 * (PLN_MR_STAGED), the GPU's copy engine works on one chunk while the network
 * carries others.
 *
 * Puts of one link arrive completely and in order. The program must not change
 * the bytes or end the registration until the put is done (pln_link_wait()).
 * Puts that are in flight together must not overlap in the peer's memory.
 *
 * The peer holds at most 64 arrivals that its program has not fetched; further
 * puts wait until it fetches them.
 *
 * Return: The number of the put, from 1; or a negative errno.
 *
 * -EINVAL: There is no link, no @request, its size is less than that of version
 *   0.1, or a field that this library does not know is not 0; there is no
 *   registration for the bytes, or it is in another protection domain than
 *   pln_link_pd().
 * -ENOTCONN: The link is not connected.
 * -ERANGE: The bytes are outside of the registration or of the peer's buffer, or there is
 *   no such buffer.
 * -EAGAIN: 65536 puts are waiting: pln_link_poll() first.
 * -ENOMEM: Out of memory.
 *
 * Others are the link's, see pln_link_reason().
 *
 * Example:
 *
 *	int64_t put = pln_link_put(link, &(struct pln_link_request){
 *		.size = sizeof(struct pln_link_request),
 *		.mr = mr, .length = 1 << 20, .tag = 42,
 *	});
 *
 *	if (put < 0 || pln_link_wait(link, put, 10000))
 *		fprintf(stderr, "%s\n", pln_link_reason(link));
 *
 * Since 0.1.
 *
 * See also: pln_link_wait(), pln_link_arrival(), pln_link_share(),
 * pln_mr_reg()
 */
int64_t pln_link_put(struct pln_link *link,
		     const struct pln_link_request *request);

/**
 * pln_link_poll - make progress on links until an event occurs
 * @links: connected ones
 * @count: of them, from 1 to 64
 * @timeout_ms: how long to wait for something; 0 only looks
 *
 * Makes progress on @count links, 1 to 64 of them, until an event occurs on one:
 * a put is done, a put of the peer has arrived, or the link has failed. It waits
 * at most @timeout_ms milliseconds for that, without using the processor; with 0
 * it returns at once. No value means without end: a program that waits for as long
 * as it takes calls the function again when it returns 0.
 *
 * A link makes progress only while one of its functions runs, so a program that
 * waits for a peer should wait in this function.
 *
 * Return: The number of links with an event since the last call, or with a waiting
 * arrival; 0 if no event occurred in time; or a negative errno.
 *
 * -EINVAL: There is no link, there are more than 64, or @timeout_ms is
 *   negative.
 * -ENOTCONN: A link is not connected.
 *
 * Other errors are those of a failed link, if no link has an event; see
 * pln_link_reason().
 *
 * Since 0.1.
 *
 * See also: pln_link_fd(), pln_link_arrival(), pln_link_wait(), pln_link_put()
 */
int pln_link_poll(struct pln_link **links, unsigned int count, int timeout_ms);

/**
 * pln_link_fd - descriptor that becomes readable when a link needs pln_link_poll()
 * @link: a connected link
 *
 * Returns a descriptor for poll(2), epoll(7) and similar calls, for programs that
 * also wait for other events. It is readable when pln_link_poll() may find an
 * event, has more work to do, or has an arrival that was not fetched; after the
 * link has failed it is always readable.
 *
 * The program then calls pln_link_poll() with a timeout of 0, and fetches
 * arrivals. This call also makes progress, so the descriptor may be readable
 * without an event.
 *
 * The link owns the descriptor and closes it; the program must not read from it.
 * Every call returns the same descriptor.
 *
 * Return: The descriptor, or a negative errno.
 *
 * -EINVAL: There is no link.
 * -ENOTCONN: The link is not connected.
 * -EMFILE, -ENFILE, -ENOMEM, -ENOSPC: Three more descriptors cannot be created.
 *
 * Other errors are those of a link that failed to connect, see pln_link_reason().
 *
 * Example:
 *
 *	struct pln_link_arrival a = { .size = sizeof(a) };
 *	struct pollfd fds[] = {
 *		{ .fd = pln_link_fd(link), .events = POLLIN },
 *		{ .fd = other, .events = POLLIN },
 *	};
 *
 *	while (poll(fds, 2, -1) >= 0 && pln_link_poll(&link, 1, 0) >= 0)
 *		while (!pln_link_arrival(link, &a))
 *			use(a.buffer, a.offset, a.length, a.tag);
 *
 * Since 0.1.
 *
 * See also: pln_link_poll(), pln_link_arrival(), pln_link_wait()
 */
int pln_link_fd(struct pln_link *link);

/**
 * pln_link_wait - wait until a put is done
 * @link: a connected link
 * @put: what pln_link_put() returned; 0: all puts so far
 * @timeout_ms: bound
 *
 * Makes progress until @put, a number that pln_link_put() returned, and all puts
 * before it are done; 0 stands for all puts so far.
 *
 * Done means that the bytes are in the memory that the peer has registered, also
 * in GPU memory. For staged memory the peer must copy them there, and does so when
 * it calls pln_link_poll() or pln_link_wait().
 *
 * Other links make no progress meanwhile. No value of @timeout_ms means without end;
 * after -ETIMEDOUT the program may call the function again.
 *
 * Return: 0, or a negative errno.
 *
 * -EINVAL: There is no link, or a number is negative.
 * -ERANGE: There was no such put.
 * -ENOTCONN: The link is not connected.
 * -ETIMEDOUT: The put is not done after @timeout_ms milliseconds. The link
 *   still works if pln_link_reason() returns an empty text.
 *
 * Other errors are those of the link.
 *
 * Since 0.1.
 *
 * See also: pln_link_put(), pln_link_poll(), pln_link_reason()
 */
int pln_link_wait(struct pln_link *link, int64_t put, int timeout_ms);

/**
 * pln_link_arrival - fetch the next arrival from the peer
 * @link: a link
 * @arrival: in: its size; out: the rest
 *
 * Fetches the oldest put of the peer that is completely in this end's memory:
 * @buffer, @offset and @length are its place, and @tag is the value that the peer
 * passed to pln_link_put(). The caller sets @arrival->size to sizeof(struct
 * pln_link_arrival).
 *
 * pln_link_poll() finds arrivals; this function only returns them,
 * also after the link has failed.
 *
 * Return: 0, or a negative errno.
 *
 * -EAGAIN: There is none now.
 * -EINVAL: There is no link, no structure, or its size is less than that of
 *   version 0.1.
 * -ENOTCONN: The link is not connected.
 *
 * Other errors are those of a failed link, if no arrival is left; see
 * pln_link_reason().
 *
 * Example:
 *
 *	struct pln_link_arrival a = { .size = sizeof(a) };
 *
 *	while (pln_link_poll(&link, 1, 1000) >= 0)
 *		while (!pln_link_arrival(link, &a))
 *			use(a.buffer, a.offset, a.length, a.tag);
 *
 * Since 0.1.
 *
 * See also: pln_link_poll(), pln_link_put()
 */
int pln_link_arrival(struct pln_link *link, struct pln_link_arrival *arrival);

/**
 * pln_link_stats - get the statistics of a link
 * @link: a link, also a failed one
 * @stats: in: its size; out: the rest
 *
 * Returns the statistics of a link, also of one that has failed. The caller sets
 * @stats->size to sizeof(struct pln_link_stats).
 *
 * These are the library's own counts; devices and the wire have their own. Since
 * 0.1.
 *
 * Return: 0, or -EINVAL: there is no link, no structure, or its size is less than
 * that of version 0.1.
 *
 * Since 0.1.
 *
 * See also: pln_link_put(), pln_mr_info()
 */
int pln_link_stats(const struct pln_link *link, struct pln_link_stats *stats);

/**
 * pln_link_reason - get the reason of a link's failure as text
 * @link: a link, or NULL for this thread's latest failed pln_link_open()
 *
 * Returns the reason of a link's failure as text; with NULL, the reason why this
 * thread's latest pln_link_open() failed. The link keeps the first failure: from
 * then on all functions return its errno, and only pln_link_close() is possible.
 * Earlier arrivals can still be fetched.
 *
 * Once connected, a link fails with
 *
 * -EPIPE: The peer has closed the link or failed; the text has the reason.
 * -ECONNRESET: The peer's process has ended without doing so.
 * -ETIMEDOUT: The peer does not answer: its host or the network is down.
 * -EACCES: The peer's device refused a write: the memory is no longer
 *   registered there, or was revoked.
 * -EFAULT: Memory of this end is no longer registered, or was freed.
 * -ENODEV: A device of this end was removed, or its GPU was reset and the
 *   memory content is lost.
 * -ECONNABORTED: The queue pair is in its error state: a request of the peer
 *   was refused here, or the device was reset.
 * -EREMOTEIO: The peer's device failed.
 * -ENOBUFS, -EPROTO: The peer does not keep to the protocol.
 * -EIO, ...: This end's device failed, or the GPU's copy engine.
 *
 * Return: A text of the link, empty without a failure, valid until
 * pln_link_close(); for NULL until this thread's next pln_link_open().
 *
 * Since 0.1.
 *
 * See also: pln_link_open(), pln_link_connect(), pln_strerror()
 */
const char *pln_link_reason(const struct pln_link *link);

#ifdef __cplusplus
}
#endif

#endif /* PEERLANE_LINK_H */
