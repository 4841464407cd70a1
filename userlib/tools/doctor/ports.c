// SPDX-License-Identifier: MIT
/* peerlane doctor: the ports of RDMA devices. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "rdma.h"

#define PORT	RDMA_CLASS "/%s/ports/%s"

struct port {
	char device[64];
	char number[8];
	char state[32];		/* "4: ACTIVE" */
	char layer[32];		/* its link layer: Ethernet, InfiniBand */
	char rate[48];
	char lid[16], sm_lid[16];
	char netdev[32];	/* of its first GID: RoCE */
	/* by trial, else empty: see try.c */
	char mtu[16], gid[32], gid_index[16];
};

static void read_text(struct doctor *d, const struct port *p, char *buf,
		      size_t size, const char *file)
{
	if (doc_text(d, NULL, buf, size, PORT "/%s", p->device, p->number, file))
		buf[0] = '\0';
}

static void read_trial(struct doctor *d, const struct port *p, char *buf,
		       size_t size, const char *key)
{
	if (doc_trial(d, buf, size, key, "/peerlane/trial/%s/ports/%s",
		      p->device, p->number))
		buf[0] = '\0';
}

static void read_port(struct doctor *d, const char *device, const char *number,
		      struct port *p)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->device, sizeof(p->device), "%.63s", device);
	snprintf(p->number, sizeof(p->number), "%.7s", number);
	read_text(d, p, p->state, sizeof(p->state), "state");
	read_text(d, p, p->layer, sizeof(p->layer), "link_layer");
	read_text(d, p, p->rate, sizeof(p->rate), "rate");
	read_text(d, p, p->lid, sizeof(p->lid), "lid");
	read_text(d, p, p->sm_lid, sizeof(p->sm_lid), "sm_lid");
	read_text(d, p, p->netdev, sizeof(p->netdev), "gid_attrs/ndevs/0");
	read_trial(d, p, p->mtu, sizeof(p->mtu), "mtu");
	read_trial(d, p, p->gid, sizeof(p->gid), "gid");
	read_trial(d, p, p->gid_index, sizeof(p->gid_index), "gid_index");
}

typedef void port_fn(struct doctor *d, const struct port *p,
		     const struct rule *r);

static void each_port_of(struct doctor *d, const char *device, port_fn *fn,
			 const struct rule *r)
{
	char folder[128], **names;
	struct port p;
	int i, n;

	snprintf(folder, sizeof(folder), RDMA_CLASS "/%.63s/ports", device);
	n = facts_list(d->f, folder, &names);
	if (n < 0) {
		doc_missing(d, "the ports of an RDMA device", folder, n);
		return;
	}
	for (i = 0; i < n; i++) {
		read_port(d, device, names[i], &p);
		fn(d, &p, r);
	}
	facts_list_free(names);
}

static void each_port(struct doctor *d, port_fn *fn, const struct rule *r)
{
	char **names;
	int i, n = facts_list(d->f, RDMA_CLASS, &names);

	for (i = 0; i < n; i++)
		each_port_of(d, names[i], fn, r);
	if (n >= 0)
		facts_list_free(names);
}

static bool is_ethernet(const struct port *p)
{
	return !strcmp(p->layer, "Ethernet");
}

static bool is_active(const struct port *p)
{
	return strstr(p->state, "ACTIVE");
}

#define GIDS	16	/* those that drivers fill first */

/* Has it GIDs of RoCE v2?  @list: their places in its table, with commas. */
static enum tri has_gid(struct doctor *d, const struct port *p, char *list,
			size_t size)
{
	char text[32];
	int i, r;

	list[0] = '\0';
	for (i = 0; i < GIDS; i++) {
		r = doc_text(d, NULL, text, sizeof(text),
			     PORT "/gid_attrs/types/%d", p->device, p->number, i);
		if (r == -ENODATA && !list[0])
			return UNKNOWN;
		if (!r && !strcmp(text, "RoCE v2"))
			snprintf(list + strlen(list), size - strlen(list),
				 "%s%d", list[0] ? ", " : "", i);
	}
	return list[0] ? YES : NO;
}

static void add(char *line, size_t size, const char *before, const char *what)
{
	if (what[0])
		snprintf(line + strlen(line), size - strlen(line), ", %s%s",
			 before, what);
}

static void look_port(struct doctor *d, const struct port *p,
		      const struct rule *r)
{
	char key[80], line[512], list[64], mtu[32] = "";
	long long bytes;

	(void)r;
	snprintf(line, sizeof(line), "%s",
		 p->state[0] ? p->state : "state not known");
	add(line, sizeof(line), "", p->layer);
	add(line, sizeof(line), "", p->rate);
	add(line, sizeof(line), "", p->netdev);
	bytes = p->netdev[0] ?
		doc_number(d, "/sys/class/net/%s/mtu", p->netdev) : 0;
	if (bytes > 0)
		snprintf(mtu, sizeof(mtu), "%lld", bytes);
	add(line, sizeof(line), "with MTU ", mtu);
	add(line, sizeof(line), "path MTU ", p->mtu);
	if (!is_ethernet(p)) {
		add(line, sizeof(line), "LID ", p->lid);
		add(line, sizeof(line), "subnet manager ", p->sm_lid);
	} else if (has_gid(d, p, list, sizeof(list)) == NO) {
		add(line, sizeof(line), "", "no GID of RoCE v2");
	} else {
		add(line, sizeof(line), "GIDs of RoCE v2: ", list);
	}
	/* InfiniBand goes by the LID */
	if (is_ethernet(p) && p->gid_index[0]) {
		add(line, sizeof(line), "best GID ", p->gid_index);
		snprintf(line + strlen(line), sizeof(line) - strlen(line),
			 " (%s)", p->gid);
	}
	snprintf(key, sizeof(key), "%s port %s", p->device, p->number);
	doc_note(d, key, "%s", line);
}

void doc_look_ports(struct doctor *d, const char *device)
{
	each_port_of(d, device, look_port, NULL);
}

/* ---- the rules ---- */

static void judge_state(struct doctor *d, const struct port *p,
			const struct rule *r)
{
	struct finding *f;

	if (!p->state[0] || is_active(p))
		return;
	f = doc_say(d, r, r->severity, "port %s of %s is in state %s",
		    p->number, p->device, p->state);
	doc_where(f, p->device);
	if (is_ethernet(p) && p->netdev[0])
		doc_cure(f, "ip link set %s up; look at its cable and at the "
			 "port of the switch", p->netdev);
	else if (!is_ethernet(p))
		doc_cure(f, "look at the cable and the subnet manager (ibstat "
			 "%s %s; sminfo)", p->device, p->number);
}

void doc_check_ports(struct doctor *d, const struct rule *r)
{
	each_port(d, judge_state, r);
}

#define ROCE_MTU	4200	/* path MTU 4096 and the headers */

static void judge_mtu(struct doctor *d, const struct port *p,
		      const struct rule *r)
{
	long long mtu;

	if (!p->netdev[0])
		return;
	mtu = doc_number(d, "/sys/class/net/%s/mtu", p->netdev);
	if (mtu > 0 && mtu < ROCE_MTU)
		doc_where(doc_say(d, r, r->severity,
				  "the network device has MTU %lld", mtu),
			  p->netdev);
}

void doc_check_mtus(struct doctor *d, const struct rule *r)
{
	each_port(d, judge_mtu, r);
}

/* One that is down has a finding of its own. */
static void judge_gid(struct doctor *d, const struct port *p,
		      const struct rule *r)
{
	char list[64];
	struct finding *f = NULL;

	if (!is_ethernet(p) || (p->state[0] && !is_active(p)))
		return;
	if (has_gid(d, p, list, sizeof(list)) == NO)
		f = doc_say(d, r, r->severity, "port %s of %s has no RoCE v2 "
			    "GID", p->number, p->device);
	else if (!strcmp(p->gid, "link-local"))
		f = doc_say(d, r, SEV_INFO, "port %s of %s has link-local GIDs "
			    "only", p->number, p->device);
	if (!f)
		return;
	doc_where(f, p->device);
	if (p->netdev[0])
		doc_cure(f, "ip addr add ADDRESS/24 dev %s; then choose the "
			 "GID: NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX, "
			 "ib_write_bw -x (show_gids or rdma link)", p->netdev);
}

void doc_check_gids(struct doctor *d, const struct rule *r)
{
	each_port(d, judge_gid, r);
}
