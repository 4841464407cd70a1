// SPDX-License-Identifier: MIT
/*
 * Drives of other hosts, by NVMe over Fabrics with RDMA: can the RDMA device of each
 * reach the GPU?  The kernel takes GPU memory for such a drive in any case.  Where the
 * device cannot reach it, the memory cannot be mapped below the block device, and the
 * kernel tries the command again for ever, so that no error tells.  Hence the question
 * before the first transfer.
 *
 * sysfs does not say which RDMA device a controller has: the list of connections does
 * that the kernel gives by netlink.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../core/topo.h"
#include "io.h"

/* No message of a dump is larger (NLMSG_GOODSIZE) */
#define MESSAGE_MAX	8192
#define CARDS_MAX	64

/* ---- netlink ---- */

static const size_t header = NLA_HDRLEN;

/* The next of *@left bytes of them, which *@at is then behind; or NULL */
static const struct nlattr *next_of(const char **at, size_t *left)
{
	const struct nlattr *a = (const void *)*at;
	size_t step;

	if (*left < header || a->nla_len < header || a->nla_len > *left)
		return NULL;
	step = min_of((size_t)NLA_ALIGN(a->nla_len), *left);
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
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPROTO;
		if (left > sizeof(got))
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
	char name[64];		/* mlx5_0 */
	bool used;
};

struct cards {
	struct card card[CARDS_MAX];
	unsigned int n;
	bool more;		/* than there is room for */
	struct sockaddr_storage to; /* whose connections are looked for */
	struct card *now;
};

static void add_card(void *arg, const void *attrs, size_t len)
{
	const struct nlattr *index = attribute(attrs, len, RDMA_NLDEV_ATTR_DEV_INDEX,
					       sizeof(uint32_t));
	const char *name = text(attribute(attrs, len, RDMA_NLDEV_ATTR_DEV_NAME, 1));
	struct cards *c = arg;
	struct card *new;

	if (!index || !*name)
		return;
	if (c->n == CARDS_MAX) {
		c->more = true;
		return;
	}
	new = &c->card[c->n++];
	memcpy(&new->index, value(index), sizeof(new->index));
	snprintf(new->name, sizeof(new->name), "%s", name);
	new->used = false;
}

/* The other end of a connection, and its port */
static bool leads_to(const struct nlattr *a, const struct sockaddr_storage *to)
{
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	const struct sockaddr_in *a4 = (const void *)&ss, *b4 = (const void *)to;
	const struct sockaddr_in6 *a6 = (const void *)&ss, *b6 = (const void *)to;

	memcpy(&ss, value(a), min_of(sizeof(ss), length(a)));
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
	struct cards *c = arg;

	while ((id = next_of(&at, &left))) {
		to = attribute(value(id), length(id), RDMA_NLDEV_ATTR_RES_DST_ADDR,
			       sizeof(struct sockaddr_in));
		if (to && leads_to(to, &c->to) &&
		    !strcmp(text(attribute(value(id), length(id),
					   RDMA_NLDEV_ATTR_RES_KERN_NAME, 1)),
			    "nvme_rdma"))
			c->now->used = true;
	}
}

/* Which of them have connections of the kernel's driver to c->to?  How many, or -errno */
static int find_cards(struct cards *c)
{
	/* an answer is there as soon as it is asked for */
	struct timeval most = { .tv_sec = 5 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	unsigned int i;
	int r, found = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most))) {
		r = -errno;
		close(fd);
		return r;
	}
	r = dump(fd, RDMA_NLDEV_CMD_GET, NULL, add_card, c);
	for (i = 0; !r && i < c->n; i++) {
		c->now = &c->card[i];
		r = dump(fd, RDMA_NLDEV_CMD_RES_CM_ID_GET, &c->now->index, look_at_ids, c);
		found += c->now->used;
	}
	close(fd);
	return r ? r : c->more ? -E2BIG : found;
}

/* ---- controllers ---- */

struct look {
	struct facts *f;
	const char *gpu;	/* its PCI address */
	bool stops;
	char *why;
	size_t size;
};

static void PRINTF_LIKE(2, 3) stop(struct look *l, const char *fmt, ...)
{
	va_list ap;

	l->stops = true;
	va_start(ap, fmt);
	vsnprintf(l->why, l->size, fmt, ap);
	va_end(ap);
}

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

static void look_at_card(struct look *l, const char *controller, const char *card)
{
	char path[128], device[PATH_MAX], why[PLN_TOPO_REASON_MAX];
	const char *pci;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", card);
	if (facts_link(l->f, path, device, sizeof(device)))
		device[0] = '\0';
	pci = strrchr(device, '/') ? strrchr(device, '/') + 1 : "";
	if (!topo_is_address(pci))
		stop(l, "the drive is another host's, and the RDMA device of %s, %s, is no "
		     "PCI device", controller, card);
	else if (!topology_p2pdma(pci, l->gpu, why, sizeof(why)))
		stop(l, "the drive is another host's, and P2PDMA between the RDMA device of "
		     "%s, %s (%s), and the GPU (%s) is %s", controller, card, pci,
		     l->gpu, why);
}

static void look_at(void *arg, const struct topo_block *b)
{
	char folder[96], path[128], word[32], address[256];
	struct look *l = arg;
	struct cards *c;
	unsigned int i;
	int r;

	if (l->stops || strcmp(b->kind, "nvme-fabric"))
		return;
	/* a controller below a disk of multipath, or else the disk of the only one */
	snprintf(folder, sizeof(folder), strchr(b->name + 4, 'n') ?
		 "/sys/class/block/%s/device" : "/sys/class/nvme/%s", b->name);
	snprintf(path, sizeof(path), "%s/transport", folder);
	/* with another transport, the block device takes no such memory */
	if (!facts_text(l->f, path, word, sizeof(word)) && strcmp(word, "rdma"))
		return;
	snprintf(path, sizeof(path), "%s/address", folder);
	c = calloc(1, sizeof(*c));
	if (!c || facts_text(l->f, path, address, sizeof(address)) ||
	    !parse_address(address, &c->to)) {
		stop(l, "the drive is another host's, and the address of its controller %s "
		     "cannot be read", b->name);
		free(c);
		return;
	}
	r = find_cards(c);
	if (r <= 0)
		stop(l, "the drive is another host's, and which RDMA device %s has is not "
		     "to be found: %s", b->name, r ? strerror(-r) :
		     "none has a connection to it");
	for (i = 0; i < c->n && !l->stops; i++)
		if (c->card[i].used)
			look_at_card(l, b->name, c->card[i].name);
	free(c);
}

bool fabric_stops(const struct io *io, char *why, size_t size)
{
	char folder[64], disk[PATH_MAX], gpu[32];
	struct look l = { .gpu = gpu, .why = why, .size = size };
	int r;

	snprintf(folder, sizeof(folder), "/sys/dev/block/%u:%u", major(io->f->dev),
		 minor(io->f->dev));
	if (!cu_pci_address(io->mem.gpu, gpu, sizeof(gpu)))
		snprintf(gpu, sizeof(gpu), "?");
	r = facts_open_live(&l.f);
	if (!r) {
		r = facts_link(l.f, folder, disk, sizeof(disk));
		/* what cannot be read is no such drive, or not to be known as one */
		if (!r)
			r = topo_blocks(l.f, disk, look_at, &l);
		facts_close(l.f);
	}
	if (facts_ran_out(r) && !l.stops)
		stop(&l, "the drives of the file cannot be looked for: %s", strerror(-r));
	return l.stops;
}
