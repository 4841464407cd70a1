// SPDX-License-Identifier: MIT
/*
 * Which RDMA devices a drive of another host has, from answers of netlink that are right,
 * malformed, short, of later kernels, of several devices, or of devices that go away.  The
 * calls on the socket are wrapped by the linker.  Works in the current folder.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../cuda/test/ktap.h"
#include "../nvmeof.h"
#include "peerlane/peerlane.h"

#define FD	777		/* of the socket, which nobody else has */
#define MAX	20000

/* ---- what the kernel answers ---- */

struct datagram {
	unsigned char bytes[MAX];
	size_t n;
	int err;		/* recv() fails with it instead */
};

static struct datagram queue[160], *last;
static unsigned int queued, taken;

/* The questions, and which part of the queue is the answer to each */
static struct {
	uint32_t command, index;
	unsigned int first, end;
} answer[80];
static unsigned int answers, asked;

static unsigned int sockets, closed;
static int socket_error, setsockopt_error, send_error;

static void forget(void)
{
	while (queued) {
		queue[--queued].n = 0;
		queue[queued].err = 0;
	}
	taken = answers = asked = sockets = closed = 0;
	socket_error = setsockopt_error = send_error = 0;
}

/* From here on: the answer to that question, the next one */
static void answer_to(uint32_t command, uint32_t index)
{
	answer[answers].command = command;
	answer[answers].index = index;
	answer[answers].first = answer[answers].end = queued;
	answers++;
}

static void datagram(void)
{
	last = &queue[queued++];
	answer[answers - 1].end = queued;
}

static void *put(const void *data, size_t n)
{
	void *at = last->bytes + last->n;

	if (data)
		memcpy(at, data, n);
	last->n += n;
	return at;
}

/* Offsets, since a length is written when the end is known */
static size_t begin_message(uint16_t type)
{
	struct nlmsghdr h = { .nlmsg_type = type };
	size_t at = last->n;

	put(&h, sizeof(h));
	return at;
}

static void end_message(size_t at)
{
	uint32_t n = (uint32_t)(last->n - at);

	memcpy(last->bytes + at, &n, sizeof(n));
	last->n = at + NLMSG_ALIGN(n);
}

static size_t begin(uint16_t type)
{
	struct nlattr a = { .nla_type = type };
	size_t at = last->n;

	put(&a, sizeof(a));
	return at;
}

static void end(size_t at)
{
	uint16_t n = (uint16_t)(last->n - at);

	memcpy(last->bytes + at, &n, sizeof(n));
	last->n = at + NLA_ALIGN(n);
}

static void attr(uint16_t type, const void *data, size_t n)
{
	size_t at = begin(type);

	put(data, n);
	end(at);
}

static void status(uint16_t type, int r)
{
	size_t at = begin_message(type);

	put(&r, sizeof(r));
	end_message(at);
}

static void done(void)
{
	status(NLMSG_DONE, 0);
}

/* A whole one in a message of its own */
static void device(uint32_t index, const char *name)
{
	size_t at = begin_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));

	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	attr(RDMA_NLDEV_ATTR_DEV_NAME, name, strlen(name) + 1);
	end_message(at);
}

static struct sockaddr_storage address_of(const char *host, uint16_t port)
{
	struct sockaddr_storage ss = { .ss_family = AF_INET };
	struct sockaddr_in *in = (void *)&ss;
	struct sockaddr_in6 *in6 = (void *)&ss;

	in->sin_port = htons(port);
	if (inet_pton(AF_INET, host, &in->sin_addr) != 1) {
		ss.ss_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, host, &in6->sin6_addr);
	}
	return ss;
}

static size_t begin_ids(size_t *all)
{
	size_t at = begin_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CM_ID_GET));

	*all = begin(RDMA_NLDEV_ATTR_RES_CM_ID | NLA_F_NESTED);
	return at;
}

static void id(const char *host, uint16_t port, const char *who)
{
	struct sockaddr_storage to = address_of(host, port), from = address_of(host, 1);
	size_t at = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY | NLA_F_NESTED);

	attr(RDMA_NLDEV_ATTR_RES_SRC_ADDR, &from, sizeof(from));
	attr(RDMA_NLDEV_ATTR_RES_DST_ADDR, &to, sizeof(to));
	if (who)
		attr(RDMA_NLDEV_ATTR_RES_KERN_NAME, who, strlen(who) + 1);
	end(at);
}

/* The answer of a device that has one connection */
static void ids(uint32_t index, const char *host, uint16_t port, const char *who)
{
	size_t all, at;

	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, index);
	datagram();
	at = begin_ids(&all);
	id(host, port, who);
	end(all);
	end_message(at);
	datagram();
	done();
}

static void devices(unsigned int n, ...)
{
	__builtin_va_list ap;

	answer_to(RDMA_NLDEV_CMD_GET, 0);
	if (n)
		datagram();
	__builtin_va_start(ap, n);
	while (n--) {
		uint32_t index = __builtin_va_arg(ap, uint32_t);

		device(index, __builtin_va_arg(ap, const char *));
	}
	__builtin_va_end(ap);
	datagram();
	done();
}

/* ---- the calls ---- */

int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || !(type & SOCK_CLOEXEC) || protocol != NETLINK_RDMA)
		abort();
	errno = socket_error;
	sockets += !socket_error;
	return socket_error ? -1 : FD;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	if (fd != FD)
		return __real_close(fd);
	closed++;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	if (fd != FD || level != SOL_SOCKET || name != SO_RCVTIMEO || !val || !len)
		abort();
	errno = setsockopt_error;
	return setsockopt_error ? -1 : 0;
}

ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t n, int flags)
{
	const struct nlmsghdr *h = buf;
	const struct nlattr *a = (const void *)(h + 1);
	uint32_t index = 0, command = h->nlmsg_type & 0x3ff;

	(void)flags;
	if (fd != FD || h->nlmsg_len != n || h->nlmsg_type >> 10 != RDMA_NL_NLDEV ||
	    h->nlmsg_flags != (NLM_F_REQUEST | NLM_F_DUMP))
		abort();
	if (n > sizeof(*h)) {
		if (a->nla_type != RDMA_NLDEV_ATTR_DEV_INDEX || a->nla_len != 8)
			abort();
		memcpy(&index, a + 1, sizeof(index));
	}
	errno = send_error;
	if (send_error)
		return -1;
	/* In the order of the script; what is asked beside that has no answer */
	taken = queued;
	if (asked < answers && answer[asked].command == command &&
	    answer[asked].index == index)
		taken = answer[asked].first;
	asked++;
	return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t size, int flags)
{
	const struct datagram *g;

	if (fd != FD || !(flags & MSG_TRUNC))
		abort();
	if (!asked || asked > answers || taken >= answer[asked - 1].end) {
		errno = EAGAIN;
		return -1;
	}
	g = &queue[taken++];
	errno = g->err;
	if (g->err)
		return -1;
	memcpy(buf, g->bytes, g->n < size ? g->n : size);
	return (ssize_t)g->n;
}

/* ---- a machine ---- */

static struct facts *machine(const char *transport, const char *address)
{
	FILE *out = fopen("rec", "w");
	struct facts *f;

	if (!out)
		exit(1);
	fputs("# SPDX-License-Identifier: MIT\nV 1\n", out);
	if (transport)
		fprintf(out, "F /sys/class/nvme/nvme0/transport %s\\n\n", transport);
	if (address)
		fprintf(out, "F /sys/class/nvme/nvme0/address %s\\n\n", address);
	if (fclose(out) || facts_open(&f, "rec")) {
		printf("Bail out! %s\n", facts_error());
		exit(1);
	}
	return f;
}

static const struct topo_block nvme0 = { .name = "nvme0", .kind = "nvme-fabric" };
static struct nvmeof x;

/* What is found for a controller of that address: its devices, or an error */
static const char *found_at(const char *transport, const char *address)
{
	static char said[512];
	struct facts *f = machine(transport, address);
	int r = nvmeof_cards(f, &nvme0, &x);
	unsigned int i;

	facts_close(f);
	if (sockets != closed)
		return "a socket that is left open";
	if (r) {
		snprintf(said, sizeof(said), "%s", pln_errname(r));
		return said;
	}
	if (!x.rdma)
		return "no RDMA";
	said[0] = '\0';
	for (i = 0; i < x.n; i++)
		snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s",
			 i ? " " : "", x.card[i]);
	return said;
}

static const char *found(void)
{
	return found_at("rdma", "traddr=10.0.0.2,trsvcid=4420,src_addr=10.0.0.1");
}

static void is(const char *what, const char *want, const char *got)
{
	ktap(!strcmp(want, got), "%s: %s", what, want);
	if (strcmp(want, got))
		printf("# got: %s\n", got);
}

/* ---- what is right ---- */

static void right(void)
{
	size_t all, at;

	forget();
	devices(1, 7u, "mlx5_0");
	ids(7, "10.0.0.2", 4420, "nvme_rdma");
	is("one device, one connection", "mlx5_0", found());

	forget();
	devices(3, 0u, "mlx5_0", 1u, "mlx5_1", 5u, "rxe0");
	ids(0, "10.0.0.2", 4420, "nvme_rdma");
	ids(1, "10.0.0.3", 4420, "nvme_rdma");
	ids(5, "10.0.0.2", 4420, "nvme_rdma");
	is("several devices, of which two have one", "mlx5_0 rxe0", found());

	forget();
	devices(5, 0u, "a", 1u, "b", 2u, "c", 3u, "d", 4u, "e");
	ids(0, "10.0.0.2", 4421, "nvme_rdma");
	ids(1, "10.0.0.2", 4420, "nvmet_rdma");
	ids(2, "10.0.0.2", 4420, "nvme_rdma2");
	ids(3, "10.0.0.2", 4420, NULL);
	ids(4, "::ffff:10.0.0.2", 4420, "nvme_rdma");
	is("another port, another's, a program's, another family", "ENOTCONN", found());

	forget();
	devices(1, 0u, "mlx5_0");
	ids(0, "fe80::1", 4420, "nvme_rdma");
	is("IPv6, with a scope", "mlx5_0",
	   found_at("rdma", "traddr=fe80::1%eth0,trsvcid=4420"));
	forget();
	devices(1, 0u, "mlx5_0");
	ids(0, "fe80::2", 4420, "nvme_rdma");
	is("another address of IPv6", "ENOTCONN",
	   found_at("rdma", "traddr=fe80::1%eth0,trsvcid=4420"));

	/* the third of three, in the second message of the second datagram */
	forget();
	devices(1, 0u, "mlx5_0");
	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0);
	datagram();
	at = begin_ids(&all);
	id("10.0.0.9", 4420, "nvme_rdma");
	end(all);
	end_message(at);
	datagram();
	at = begin_ids(&all);
	end(all);
	end_message(at);
	at = begin_ids(&all);
	id("10.0.0.8", 4420, "nvme_rdma");
	id("10.0.0.2", 4420, "nvme_rdma");
	end(all);
	end_message(at);
	done();
	is("several datagrams, messages and connections", "mlx5_0", found());
}

/* ---- later kernels ---- */

static void later(void)
{
	uint32_t index = 3;
	size_t all, at, one, inner;
	struct sockaddr_storage to = address_of("10.0.0.2", 4420);

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	at = begin_message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET));
	attr(0x3fff, "what", 4);
	attr(1000, NULL, 0);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0", 7);
	inner = begin(1001 | NLA_F_NESTED);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "inside", 7);
	end(inner);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX | NLA_F_NET_BYTEORDER, &index, sizeof(index));
	attr(1002, "xyz", 3);
	end_message(at);
	done();
	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, 3);
	datagram();
	at = begin_ids(&all);
	one = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	attr(1003, "a", 1);
	attr(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvme_rdma", 10);
	attr(1004, NULL, 0);
	attr(RDMA_NLDEV_ATTR_RES_DST_ADDR, &to, sizeof(to));
	end(one);
	end(all);
	attr(1005, "behind", 6);
	end_message(at);
	done();
	is("attributes that nobody knows, in another order", "mlx5_0", found());
}

/* ---- what is malformed ---- */

/* The length of an attribute or message that has been written */
static void length_at(size_t at, uint32_t n, size_t bytes)
{
	memcpy(last->bytes + at, &n, bytes);
}

static void malformed(void)
{
	static const char name[70] = "a-name-that-has-more-characters-than-the-kernel-permits-by-far-xyz";
	struct sockaddr_storage to = address_of("10.0.0.2", 4420);
	uint32_t index = 3;
	size_t all, at, one;

	/* devices */
	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "no_index", 9);
	end_message(at);
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 3);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "short_index", 12);
	end_message(at);
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "no_end", 6);
	end_message(at);
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, "", 1);
	end_message(at);
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, NULL, 0);
	end_message(at);
	at = begin_message(1);
	end_message(at);
	at = begin_message(1);
	attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
	attr(RDMA_NLDEV_ATTR_DEV_NAME, name, sizeof(name));
	end_message(at);
	done();
	ids(3, "10.0.0.2", 4420, "nvme_rdma");
	found();
	ktap(x.n == 1 && !strncmp(x.card[0], name, 63) && strlen(x.card[0]) == 63,
	     "of devices without a number, a name, or the end of one, none is asked; a long name is cut");

	/* an attribute that is longer than what is left, or shorter than itself: what is before counts */
	for (int bad = 0; bad < 3; bad++) {
		static const char *const how[] = {
			"an attribute longer than what is left", "one shorter than itself",
			"one of no length",
		};

		forget();
		answer_to(RDMA_NLDEV_CMD_GET, 0);
		datagram();
		at = begin_message(1);
		attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
		attr(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0", 7);
		one = begin(77);
		put("1234", 4);
		end(one);
		length_at(one, bad == 0 ? 9 : bad == 1 ? 3 : 0, 2);
		attr(RDMA_NLDEV_ATTR_DEV_NAME, "behind", 7);
		end_message(at);
		at = begin_message(1);
		one = begin(77);
		put("1234", 4);
		end(one);
		length_at(one, bad == 0 ? 0xffff : bad == 1 ? 3 : 0, 2);
		attr(RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
		attr(RDMA_NLDEV_ATTR_DEV_NAME, "hidden", 7);
		end_message(at);
		done();
		ids(3, "10.0.0.2", 4420, "nvme_rdma");
		is(how[bad], "mlx5_0", found());
	}

	/* connections */
	forget();
	devices(1, 0u, "mlx5_0");
	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0);
	datagram();
	at = begin_ids(&all);
	one = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	attr(RDMA_NLDEV_ATTR_RES_DST_ADDR, &to, sizeof(struct sockaddr_in) - 1);
	attr(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvme_rdma", 10);
	end(one);
	one = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	attr(RDMA_NLDEV_ATTR_RES_DST_ADDR, &to, sizeof(to));
	attr(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvme_rdma", 9);
	end(one);
	one = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	end(one);
	end(all);
	end_message(at);
	at = begin_message(1);
	end_message(at);
	done();
	is("an address that is cut off, a name without its end, nothing", "ENOTCONN", found());
	forget();
	devices(1, 0u, "mlx5_0");
	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, 0);
	datagram();
	at = begin_ids(&all);
	one = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	attr(RDMA_NLDEV_ATTR_RES_DST_ADDR, &to, sizeof(struct sockaddr_in));
	attr(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvme_rdma", 10);
	end(one);
	end(all);
	end_message(at);
	done();
	is("an address as long as its family's", "mlx5_0", found());
}

static void messages(void)
{
	size_t at;

	forget();
	devices(1, 0u, "mlx5_0");
	ids(0, "10.0.0.2", 4420, "nvme_rdma");
	/* in place of the end */
	last->n = 0;
	at = begin_message(NLMSG_DONE);
	end_message(at);
	is("an end without a result", "EPROTO", found());

	forget();
	devices(0);
	is("no device at all", "ENOTCONN", found());

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	is("an answer of no bytes", "EPROTO", found());

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	put("123456789012345", 15);
	datagram();
	device(0, "mlx5_0");
	done();
	ids(0, "10.0.0.2", 4420, "nvme_rdma");
	is("less than a header: the next datagram counts", "mlx5_0", found());

	for (int bad = 0; bad < 2; bad++) {
		static const char *const how[] = {
			"a message that is longer than its datagram",
			"a message that is shorter than its header",
		};

		forget();
		answer_to(RDMA_NLDEV_CMD_GET, 0);
		datagram();
		device(0, "mlx5_0");
		at = begin_message(1);
		put("12345678", 8);
		end_message(at);
		length_at(at, bad == 0 ? 28 : 15, 4);
		datagram();
		done();
		ids(0, "10.0.0.2", 4420, "nvme_rdma");
		is(how[bad], "mlx5_0", found());
	}

	/* the next one would begin where the datagram before had a device */
	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	device(0, "mlx5_0");
	at = last->n;
	device(1, "mlx5_1");
	datagram();
	begin_message(1);
	last->n = at - 3;
	length_at(0, (uint32_t)last->n, 4);
	datagram();
	done();
	ids(0, "10.0.0.9", 4420, "nvme_rdma");
	ids(1, "10.0.0.2", 4420, "nvme_rdma");
	is("a message that ends between two words, with its datagram", "mlx5_1", found());
	ktap(asked == 3, "what was there before is not looked at again");

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	device(0, "mlx5_0");
	last->n = 8193;
	is("a datagram that was cut off", "EMSGSIZE", found());

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	status(NLMSG_ERROR, -EPERM);
	is("the kernel refuses", "EPERM", found());

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	device(0, "mlx5_0");
	is("no end within 5 s", "ETIMEDOUT", found());
	ktap(asked == 1, "which is not tried again");

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	last->err = ENOBUFS;
	is("recv() fails", "ENOBUFS", found());
	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	last->err = EINTR;
	datagram();
	device(0, "mlx5_0");
	done();
	ids(0, "10.0.0.2", 4420, "nvme_rdma");
	is("a signal while it waits", "mlx5_0", found());
	forget();
	send_error = EACCES;
	is("send() fails", "EACCES", found());
	forget();
	setsockopt_error = ENOPROTOOPT;
	is("setsockopt() fails", "ENOPROTOOPT", found());
	forget();
	socket_error = EPROTONOSUPPORT;
	is("socket() fails", "EPROTONOSUPPORT", found());
}

/* ---- many, and such as go away ---- */

static void many(unsigned int n, const char *want)
{
	char name[16];
	uint32_t i;

	forget();
	answer_to(RDMA_NLDEV_CMD_GET, 0);
	datagram();
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "rxe%u", i);
		device(i, name);
	}
	done();
	for (i = 0; i < NVMEOF_CARDS_MAX; i++)
		ids(i, i == 63 ? "10.0.0.2" : "10.0.0.9", 4420, "nvme_rdma");
	is(n > NVMEOF_CARDS_MAX ? "more devices than there is room for" :
	   "as many as there is room for", want, found());
}

static void gone(uint32_t index, int err)
{
	answer_to(RDMA_NLDEV_CMD_RES_CM_ID_GET, index);
	datagram();
	status(NLMSG_ERROR, err);
}

static void races(void)
{
	int err;

	for (err = EINVAL; err; err = err == EINVAL ? ENODEV : 0) {
		forget();
		devices(2, 0u, "mlx5_0", 1u, "mlx5_1");
		ids(0, "10.0.0.2", 4420, "nvme_rdma");
		gone(1, -err);
		devices(1, 0u, "mlx5_0");
		ids(0, "10.0.0.2", 4420, "nvme_rdma");
		is("one goes away before it is asked: all are asked again", "mlx5_0", found());
		ktap(asked == 5 && sockets == 1, "by the same socket, once");
	}
	/* its connection is another's by then */
	forget();
	devices(1, 0u, "mlx5_0");
	gone(0, -EINVAL);
	devices(1, 2u, "mlx5_1");
	ids(2, "10.0.0.2", 4420, "nvme_rdma");
	is("the drive's goes away, and another has the connection", "mlx5_1", found());
	forget();
	devices(1, 0u, "mlx5_0");
	gone(0, -EINVAL);
	devices(0);
	is("the only one goes away", "ENOTCONN", found());
	forget();
	for (int i = 0; i < 3; i++) {
		devices(1, 0u, "mlx5_0");
		gone(0, -EINVAL);
	}
	devices(1, 0u, "mlx5_0");
	is("one goes away each time", "EAGAIN", found());
	ktap(asked == 6, "which is tried three times");
	forget();
	devices(1, 0u, "mlx5_0");
	gone(0, -EPERM);
	is("another error is none of going away", "EPERM", found());
	ktap(asked == 2, "and not tried again");
}

/* ---- controllers ---- */

static void controllers(void)
{
	static const char *const bad[] = {
		"", "trsvcid=4420", "traddr=10.0.0.2", "traddr=10.0.0.2,trsvcid=0",
		"traddr=10.0.0.2,trsvcid=65536", "traddr=10.0.0.2,trsvcid=4420x",
		"traddr=10.0.0,trsvcid=4420", "traddr=,trsvcid=4420",
		"traddr=nn-0x10000090fa945677,trsvcid=4420",
	};
	struct facts *f;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		forget();
		ktap(!strcmp(found_at("rdma", bad[i]), "EBADMSG") && !sockets,
		     "nobody is asked for the address \"%s\"", bad[i]);
	}
	forget();
	is("no address", "EBADMSG", found_at("rdma", NULL));
	forget();
	is("TCP", "no RDMA", found_at("tcp", "traddr=10.0.0.2,trsvcid=4420"));
	ktap(!sockets, "of which nobody is asked");
	devices(1, 0u, "mlx5_0");
	ids(0, "10.0.0.2", 4420, "nvme_rdma");
	is("a transport that cannot be read may be RDMA", "mlx5_0",
	   found_at(NULL, "traddr=10.0.0.2,trsvcid=4420"));
	/* the disk of the only controller */
	f = machine("rdma", "traddr=10.0.0.2,trsvcid=4420");
	ktap(nvmeof_cards(f, &(struct topo_block){ .name = "nvme0n1" }, &x) == -EBADMSG,
	     "a disk has the files of its controller elsewhere");
	facts_close(f);
	ktap(!strcmp(nvmeof_error(-ENOTCONN), "none has a connection to it") &&
	     !strcmp(nvmeof_error(-EBADMSG), "its address cannot be read") &&
	     !strcmp(nvmeof_error(-EPERM), strerror(EPERM)) &&
	     strstr(nvmeof_error(-EAGAIN), "come and go") &&
	     strstr(nvmeof_error(-ETIMEDOUT), "does not answer"), "errors have words");
}

/* ---- anything ---- */

static uint32_t seed = 1;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void anything(void)
{
	struct facts *f = machine("rdma", "traddr=10.0.0.2,trsvcid=4420");
	unsigned int i, k, right_ones = 0, n = 20000;

	for (i = 0; i < n; i++) {
		forget();
		devices(2, 0u, "mlx5_0", 1u, "mlx5_1");
		ids(0, "10.0.0.9", 4420, "nvme_rdma");
		ids(1, "10.0.0.2", 4420, "nvme_rdma");
		for (k = 1 + rnd(4); k; k--) {
			struct datagram *g = &queue[rnd(queued)];

			if (!g->n)
				continue;
			if (rnd(3))
				g->bytes[rnd((uint32_t)g->n)] = (unsigned char)rnd(256);
			else
				g->n = rnd((uint32_t)g->n + 1);
		}
		right_ones += !nvmeof_cards(f, &nvme0, &x) && x.n == 1 &&
			      !strcmp(x.card[0], "mlx5_1");
		if (sockets != closed)
			break;
	}
	facts_close(f);
	ktap(i == n && right_ones && right_ones < n,
	     "%u answers with something wrong in them: %u are as if nothing were", n, right_ones);
}

int main(void)
{
	right();
	later();
	malformed();
	messages();
	many(NVMEOF_CARDS_MAX, "rxe63");
	many(NVMEOF_CARDS_MAX + 1, "E2BIG");
	races();
	controllers();
	anything();
	return ktap_end();
}
