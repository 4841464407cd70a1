// SPDX-License-Identifier: MIT
#include "nvmeof.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* No message of a dump is larger (NLMSG_GOODSIZE) */
#define MESSAGE_MAX	8192
/* How often all is asked again because a device has gone away */
#define TRIES		3

/* ---- netlink ---- */

static const size_t header = NLA_HDRLEN;

/* The next of *@left bytes of them, which *@at is then behind; or NULL */
static const struct nlattr *next_of(const char **at, size_t *left)
{
	const struct nlattr *a = (const void *)*at;
	size_t step;

	if (*left < header || a->nla_len < header || a->nla_len > *left)
		return NULL;
	step = NLA_ALIGN(a->nla_len);
	if (step > *left)
		step = *left;
	*at += step;
	*left -= step;
	return a;
}

/* The first of a type, if it has so many bytes at @least */
static const struct nlattr *attribute(const void *attrs, size_t len, unsigned int type,
				      size_t least)
{
	const char *at = attrs;
	const struct nlattr *a;

	while ((a = next_of(&at, &len)))
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a->nla_len - header >= least ? a : NULL;
	return NULL;
}

static const void *value(const struct nlattr *a)
{
	return (const char *)a + header;
}

static size_t length(const struct nlattr *a)
{
	return a->nla_len - header;
}

/* A string that ends where it says, or "" */
static const char *text(const struct nlattr *a)
{
	return a && length(a) && !((const char *)value(a))[length(a) - 1] ? value(a) : "";
}

typedef void each_fn(void *arg, const void *attrs, size_t len);

/* All that the kernel answers to one question, of RDMA device *@index if not NULL */
static int dump(int fd, uint16_t command, const uint32_t *index, each_fn *each, void *arg)
{
	struct {
		struct nlmsghdr h;
		struct nlattr a;
		uint32_t index;
	} ask = {
		.h.nlmsg_len = index ? sizeof(ask) : sizeof(ask.h),
		.h.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.a.nla_len = NLA_HDRLEN + sizeof(ask.index),
		.a.nla_type = RDMA_NLDEV_ATTR_DEV_INDEX,
		.index = index ? *index : 0,
	};
	union {
		struct nlmsghdr h;
		char bytes[MESSAGE_MAX];
	} got;

	if (send(fd, &ask, ask.h.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, &got, sizeof(got), MSG_TRUNC);
		const struct nlmsghdr *h = &got.h;
		int left = (int)n;	/* which NLMSG_NEXT() may take below 0 */

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (!n)
			return -EPROTO;
		if (n > (ssize_t)sizeof(got))
			return -EMSGSIZE;
		for (; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			/* both begin with 0 or -errno */
			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return NLMSG_PAYLOAD(h, 0) < sizeof(int) ?
				       -EPROTO : *(const int *)NLMSG_DATA(h);
			each(arg, NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0));
		}
	}
}

/* ---- RDMA devices ---- */

struct card {
	uint32_t index;
	char name[sizeof(((struct nvmeof *)0)->card[0])];
};

struct look {
	struct card card[NVMEOF_CARDS_MAX];
	unsigned int n;
	bool more;		/* than there is room for */
	struct sockaddr_storage to; /* whose connections are looked for */
	bool found;		/* one, of the device that is asked */
};

static void add_card(void *arg, const void *attrs, size_t len)
{
	const struct nlattr *index = attribute(attrs, len, RDMA_NLDEV_ATTR_DEV_INDEX,
					       sizeof(uint32_t));
	const char *name = text(attribute(attrs, len, RDMA_NLDEV_ATTR_DEV_NAME, 1));
	struct look *l = arg;
	struct card *new;

	if (!index || !*name)
		return;
	if (l->n == NVMEOF_CARDS_MAX) {
		l->more = true;
		return;
	}
	new = &l->card[l->n++];
	memcpy(&new->index, value(index), sizeof(new->index));
	snprintf(new->name, sizeof(new->name), "%s", name);
}

/* The other end of a connection, and its port */
static bool leads_to(const struct nlattr *a, const struct sockaddr_storage *to)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in *a4 = (const void *)&ss, *b4 = (const void *)to;
	const struct sockaddr_in6 *a6 = (const void *)&ss, *b6 = (const void *)to;

	memcpy(&ss, value(a), length(a) < sizeof(ss) ? length(a) : sizeof(ss));
	if (ss.ss_family != to->ss_family)
		return false;
	if (ss.ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr &&
		       a4->sin_port == b4->sin_port;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) &&
	       a6->sin6_port == b6->sin6_port;
}

static void look_at_ids(void *arg, const void *attrs, size_t len)
{
	const struct nlattr *all = attribute(attrs, len, RDMA_NLDEV_ATTR_RES_CM_ID, 0);
	const char *at = all ? value(all) : NULL;
	size_t left = all ? length(all) : 0;
	const struct nlattr *id, *to;
	struct look *l = arg;

	while ((id = next_of(&at, &left))) {
		to = attribute(value(id), length(id), RDMA_NLDEV_ATTR_RES_DST_ADDR,
			       sizeof(struct sockaddr_in));
		if (to && leads_to(to, &l->to) &&
		    !strcmp(text(attribute(value(id), length(id),
					   RDMA_NLDEV_ATTR_RES_KERN_NAME, 1)),
			    "nvme_rdma"))
			l->found = true;
	}
}

/* Those that have connections of the kernel's driver to l->to */
static int find_cards(int fd, struct look *l, struct nvmeof *x)
{
	unsigned int i;
	int r;

	l->n = 0;
	x->n = 0;
	r = dump(fd, RDMA_NLDEV_CMD_GET, NULL, add_card, l);
	for (i = 0; !r && i < l->n; i++) {
		l->found = false;
		r = dump(fd, RDMA_NLDEV_CMD_RES_CM_ID_GET, &l->card[i].index, look_at_ids,
			 l);
		/* There is none of that index any more: it may have had the connection */
		if (r == -EINVAL || r == -ENODEV)
			return -EAGAIN;
		if (l->found)
			memcpy(x->card[x->n++], l->card[i].name, sizeof(l->card[i].name));
	}
	return r ? r : l->more ? -E2BIG : x->n ? 0 : -ENOTCONN;
}

static int ask(struct look *l, struct nvmeof *x)
{
	/* an answer is there as soon as it is asked for */
	struct timeval most = { .tv_sec = 5 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	int r, tries = TRIES;

	if (fd < 0)
		return -errno;
	r = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) ? -errno : 0;
	if (!r) {
		do
			r = find_cards(fd, l, x);
		while (r == -EAGAIN && --tries);
	}
	close(fd);
	return r;
}

/* ---- controllers ---- */

/* traddr=10.0.0.2,trsvcid=4420,...: false, it is no address of an IP network */
static bool parse_address(char *address, struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
	char *part, *host = NULL, *end;
	unsigned long port = 0;

	memset(to, 0, sizeof(*to));
	while ((part = strsep(&address, ","))) {
		if (!strncmp(part, "traddr=", 7))
			host = part + 7;
		if (!strncmp(part, "trsvcid=", 8)) {
			port = strtoul(part + 8, &end, 10);
			if (*end)
				return false;
		}
	}
	if (!host || !port || port > UINT16_MAX)
		return false;
	host[strcspn(host, "%")] = '\0';	/* fe80::1%eth0 */
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		return true;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1;
}

int nvmeof_cards(struct facts *f, const struct topo_block *b, struct nvmeof *x)
{
	char folder[96], path[128], word[32], address[256];
	struct look *l;
	int r;

	x->rdma = false;
	x->n = 0;
	/* a controller below a disk of multipath, or else the disk of the only one */
	snprintf(folder, sizeof(folder), strchr(b->name + 4, 'n') ?
		 "/sys/class/block/%s/device" : "/sys/class/nvme/%s", b->name);
	snprintf(path, sizeof(path), "%s/transport", folder);
	if (!facts_text(f, path, word, sizeof(word)) && strcmp(word, "rdma"))
		return 0;
	x->rdma = true;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/address", folder);
	r = facts_text(f, path, address, sizeof(address));
	if (!facts_ran_out(r))
		r = r || !parse_address(address, &l->to) ? -EBADMSG : ask(l, x);
	free(l);
	return r;
}

const char *nvmeof_error(int r)
{
	switch (r) {
	case -EBADMSG:
		return "its address cannot be read";
	case -ENOTCONN:
		return "none has a connection to it";
	case -EAGAIN:
		return "RDMA devices come and go";
	case -ETIMEDOUT:
		return "the kernel does not answer";
	default:
		return strerror(-r);
	}
}
